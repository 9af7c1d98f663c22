-- Each kind of statement that evaluates a default, or calls a function: as many distinct IDs as rows. In the end, all are distinct.
\pset format unaligned
\pset footer off
CREATE TABLE received (kind text, id bigint UNIQUE, n int GENERATED ALWAYS AS IDENTITY);
CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
CREATE PROCEDURE pg_temp.take(kind text, statement text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('WITH given AS (%s) INSERT INTO received (kind, id) SELECT %L, id FROM given', statement, kind);
END $$;
-- What COPY and statements without RETURNING put into a table.
CREATE PROCEDURE pg_temp.take_from(kind text, statement text, relation text DEFAULT 't') LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    EXECUTE format('INSERT INTO received (kind, id) SELECT %L, id FROM %s AS r WHERE NOT EXISTS (SELECT FROM received WHERE received.id = r.id)', kind, relation);
END $$;
CALL pg_temp.take_from('COPY', $$COPY t (note) FROM PROGRAM 'seq 5000'$$);
CREATE TABLE parted (id bigint DEFAULT snowflake_nextval(), day int) PARTITION BY HASH (day);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE parted_1 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CALL pg_temp.take_from('COPY into partitions', $$COPY parted (day) FROM PROGRAM 'seq 2000'$$, 'parted');
CREATE FUNCTION give() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.id := snowflake_nextval(); RETURN NEW; END';
CREATE TABLE triggered (id bigint PRIMARY KEY, note text);
CREATE TRIGGER give BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION give();
CALL pg_temp.take_from('COPY with a trigger', $$COPY triggered (note) FROM PROGRAM 'seq 1000'$$, 'triggered');
CALL pg_temp.take('INSERT with a trigger', $$INSERT INTO triggered (note) SELECT 'n' FROM generate_series(1, 1000) RETURNING id$$);
CALL pg_temp.take('INSERT SELECT', $$INSERT INTO t (note) SELECT 'n' FROM generate_series(1, 5000) RETURNING id$$);
\set ECHO none
SELECT format('CALL pg_temp.take(%L, %L)', 'VALUES of ' || row, format('INSERT INTO t %s VALUES %s RETURNING id', columns, string_agg(row, ', ')))
FROM (VALUES ('(note)', $$('n')$$), ('', $$(DEFAULT, 'n')$$)) AS v (columns, row), generate_series(1, 500) GROUP BY row, columns \gexec
\set ECHO all
CALL pg_temp.take('DEFAULT VALUES', 'INSERT INTO t DEFAULT VALUES RETURNING id');
CALL pg_temp.take_from('MERGE', $$MERGE INTO t USING generate_series(1, 500) AS n ON false WHEN NOT MATCHED THEN INSERT (note) VALUES (n::text)$$);
CALL pg_temp.take('ON CONFLICT', $$INSERT INTO t (note) SELECT 'n' FROM generate_series(1, 500) ON CONFLICT DO NOTHING RETURNING id$$);
CALL pg_temp.take('LATERAL', 'SELECT id FROM generate_series(1, 300) AS n, LATERAL (SELECT snowflake_nextval() + 0 * n AS id) AS each');
CALL pg_temp.take('runs in the list', 'SELECT snowflake_nextvals(500) AS id');
CALL pg_temp.take('runs of growing counts', 'SELECT id FROM generate_series(1, 20) AS n, LATERAL snowflake_nextvals(n) AS id');
CALL pg_temp.take('runs with a limit', '(SELECT id FROM snowflake_nextvals(1000) AS id LIMIT 10) UNION ALL (SELECT snowflake_nextvals(1000) LIMIT 10)');
CREATE TABLE old AS SELECT n FROM generate_series(1, 3000) AS n;
CALL pg_temp.take_from('ADD COLUMN', 'ALTER TABLE old ADD COLUMN id bigint NOT NULL DEFAULT snowflake_nextval()', 'old');
CALL pg_temp.take_from('ALTER TYPE USING', 'ALTER TABLE old ALTER COLUMN id TYPE bigint USING snowflake_nextval()', 'old');
CALL pg_temp.take('UPDATE', 'UPDATE old SET id = snowflake_nextval() RETURNING id');
CALL pg_temp.take('UPDATE SET DEFAULT', 'UPDATE old SET id = DEFAULT RETURNING id');
CALL pg_temp.take_from('CREATE TABLE AS', 'CREATE TABLE made AS SELECT snowflake_nextval() AS id FROM generate_series(1, 2000)', 'made');
CALL pg_temp.take_from('CREATE MATERIALIZED VIEW', 'CREATE MATERIALIZED VIEW seen AS SELECT snowflake_nextval() AS id FROM generate_series(1, 2000)', 'seen');
CALL pg_temp.take_from('REFRESH MATERIALIZED VIEW', 'REFRESH MATERIALIZED VIEW seen', 'seen');
CALL pg_temp.take_from('WITH, UNION ALL', 'WITH fresh AS (SELECT snowflake_nextval() AS id FROM generate_series(1, 500)) INSERT INTO made SELECT id FROM fresh UNION ALL SELECT snowflake_nextval() FROM generate_series(1, 500)', 'made');
CREATE FUNCTION fresh() RETURNS bigint LANGUAGE sql AS 'SELECT snowflake_nextval()';
CREATE TEMP TABLE passing (id bigint DEFAULT fresh(), note text);
CALL pg_temp.take('an SQL function', $$INSERT INTO passing (note) SELECT 'n' FROM generate_series(1, 500) RETURNING id$$);
-- Loops, dynamic statements, subtransactions that fail.
DO $$
DECLARE
    given bigint;
BEGIN
    FOR i IN 1..500 LOOP
        given := snowflake_nextval();
        INSERT INTO received (kind, id) VALUES ('PL/pgSQL', given);
        INSERT INTO t (note) VALUES ('default') RETURNING id INTO given;
        INSERT INTO received (kind, id) VALUES ('PL/pgSQL', given);
        ASSERT given = snowflake_currval();
        BEGIN
            INSERT INTO t (note) VALUES ('lost') RETURNING id INTO given;
            RAISE division_by_zero;
        EXCEPTION WHEN division_by_zero THEN
            INSERT INTO received (kind, id) VALUES ('PL/pgSQL', given);
        END;
        EXECUTE 'INSERT INTO t (note) VALUES ($1) RETURNING id' INTO given USING 'dynamic';
        INSERT INTO received (kind, id) VALUES ('PL/pgSQL', given);
    END LOOP;
END $$;
-- Prepared statements, whichever plan they have.
PREPARE again AS INSERT INTO received (kind, id) SELECT 'prepared', snowflake_nextval();
\set ECHO none
SELECT CASE n % 21 WHEN 0 THEN format('SET plan_cache_mode = %s', ('{auto,force_generic_plan,force_custom_plan}'::text[])[n / 21 + 1]) ELSE 'EXECUTE again' END FROM generate_series(0, 62) AS n \gexec
\set ECHO all
RESET plan_cache_mode;
-- Cursors that are left in the middle, with other calls between their rows.
DO $$
DECLARE
    one NO SCROLL CURSOR FOR SELECT snowflake_nextvals(3000) AS id;
    two NO SCROLL CURSOR FOR SELECT snowflake_nextval() AS id FROM generate_series(1, 3000);
    given bigint;
BEGIN
    OPEN one; OPEN two;
    FOR i IN 1..1000 LOOP
        FETCH one INTO given;
        ASSERT given = snowflake_currval();
        INSERT INTO received (kind, id) VALUES ('cursors', given);
        IF i % 7 = 0 THEN INSERT INTO received (kind, id) VALUES ('cursors', snowflake_nextval()); END IF;
        FETCH two INTO given;
        ASSERT given = snowflake_currval();
        INSERT INTO received (kind, id) VALUES ('cursors', given);
    END LOOP;
END $$;
-- Several calls in one list.
DO $$
DECLARE
    list text;
    a bigint;
    b bigint;
BEGIN
    FOREACH list IN ARRAY ARRAY['snowflake_nextvals(4) AS a, snowflake_nextval() AS b', 'snowflake_nextvals(5000) AS a, snowflake_nextval() AS b', 'snowflake_nextval() AS a, snowflake_nextvals(5000) AS b'] LOOP
        FOR a, b IN EXECUTE 'SELECT ' || list LOOP
            INSERT INTO received (kind, id) VALUES ('lists', a), ('lists', b);
        END LOOP;
    END LOOP;
END $$;
-- Transactions and savepoints that are rolled back.
SELECT snowflake_nextval() AS first \gset
BEGIN; INSERT INTO t (note) VALUES ('lost'); SAVEPOINT here; INSERT INTO t (note) VALUES ('lost'); ROLLBACK TO here;
SELECT snowflake_nextval() AS second \gset
ROLLBACK;
INSERT INTO received (kind, id) VALUES ('rolled back', :first), ('rolled back', :second), ('rolled back', snowflake_nextval());
SELECT kind, count(*), count(DISTINCT id) AS ids FROM received GROUP BY kind ORDER BY kind COLLATE "C";
SELECT count(*), count(DISTINCT id) FROM received;
-- Kinds whose IDs do not ascend in the order in which they were received: a table is read by partition.
SELECT DISTINCT kind FROM (SELECT kind, id < lag(id) OVER (ORDER BY n) AS descends FROM received) AS r WHERE descends;
\set VERBOSITY sqlstate
CREATE INDEX ON t ((id + snowflake_nextval()));
\set VERBOSITY default
DROP MATERIALIZED VIEW seen;
DROP TABLE received, t, parted, triggered, old, made, passing;
DROP FUNCTION give(), fresh();

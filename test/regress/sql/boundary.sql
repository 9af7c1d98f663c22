-- Deleting by time: the recipe of README.md deletes no rows whose numbers have no time, wherever the table went.
SET client_min_messages = error;
\set recipe 'DELETE FROM orders WHERE id >= snowflake_id_boundary(''orders'') AND id < snowflake_min_id(now() - interval ''90 days'')'
-- Old numbers, IDs of 91 days ago, and new ones, by another note each. What is left of them; where the recipe is refused, its remedy is executed.
CREATE PROCEDURE pg_temp.fill(old text DEFAULT 'n') LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO orders (id, note) SELECT %s, ''old'' FROM generate_series(1, 1000) AS n', old);
    INSERT INTO orders (id, note) SELECT snowflake_compose(now() - interval '91 days' + n * interval '1 ms', 1, 0, 0), 'aged' FROM generate_series(1, 1000) AS n;
    INSERT INTO orders (id, note) SELECT snowflake_nextval(), 'new' FROM generate_series(1, 1000);
END $$;
CREATE FUNCTION pg_temp.retained(recipe text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    EXECUTE recipe;
    RETURN (SELECT string_agg(note || ' ' || count, ', ' ORDER BY note) FROM (SELECT note, count(*) FROM orders GROUP BY note) AS c);
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    EXECUTE coalesce(substring(hint FROM ' run (.*?)\. '), 'SELECT');
    RETURN CASE WHEN hint ~ ' run ' THEN 'refused, then as the hint says: ' ELSE 'refused: ' END || regexp_replace(detail, '-?\d{7,}', '#', 'g');
END $$;
\pset format unaligned
\pset tuples_only on
-- Tables of several kinds without a boundary.
\set ECHO none
SELECT format('CREATE TABLE orders (id bigint DEFAULT snowflake_nextval(), note text)%s; CALL pg_temp.fill(%L)', definition, old), again, again, 'DROP TABLE orders CASCADE'
FROM format('SELECT pg_temp.retained(%L)', :'recipe') AS again, (VALUES
    ('; ALTER TABLE orders ADD PRIMARY KEY (id)', 'n'), ('', 'n'), ('; CREATE TABLE child (PRIMARY KEY (id)) INHERITS (orders); CREATE INDEX ON orders (id)', 'n'),
    (' PARTITION BY RANGE (id); CREATE TABLE first PARTITION OF orders FOR VALUES FROM (0) TO (501); CREATE TABLE other PARTITION OF orders DEFAULT; ALTER TABLE orders ADD PRIMARY KEY (id)', 'n'),
    ('; CREATE INDEX ON orders (id) WHERE id > 1000000; CREATE INDEX ON orders USING hash (id); CREATE INDEX ON orders (note, id); CREATE INDEX ON orders (abs(id))', 'n'),
    ('; ALTER TABLE orders ADD PRIMARY KEY (id)', '-n'), ('; ALTER TABLE orders ADD PRIMARY KEY (id)', $$snowflake_compose(now() - interval '2 years' + n * interval '1 ms', 1, 0, 0, 'twitter')$$),
    ('; ALTER TABLE orders ADD PRIMARY KEY (id)', 'snowflake_nextval()')) AS k (definition, old) \gexec
\set ECHO all
-- A migrated table, where it is copied, and after it was reverted.
CREATE TABLE orders (id serial PRIMARY KEY, note text); INSERT INTO orders (note) SELECT 'old' FROM generate_series(1, 1000); CREATE SCHEMA former;
CALL snowflake_migrate.run('orders');
INSERT INTO orders SELECT snowflake_compose(now() - interval '91 days' + n * interval '1 ms', 1, 0, 0), 'aged' FROM generate_series(1, 1000) AS n;
ALTER TABLE orders SET SCHEMA former; CREATE TABLE orders (LIKE former.orders INCLUDING ALL); INSERT INTO orders TABLE former.orders;
SELECT pg_temp.retained(:'recipe');
DROP TABLE orders; ALTER TABLE former.orders SET SCHEMA public;
SELECT pg_temp.retained(:'recipe');
SELECT pg_temp.retained(:'recipe');
CALL snowflake_migrate.revert('orders');
INSERT INTO orders (note) VALUES ('old');
SELECT pg_temp.retained(:'recipe');
SELECT pg_temp.retained(:'recipe');
DELETE FROM orders WHERE id < snowflake_min_id(now() - interval '90 days');
SELECT count(*) AS left_without_the_boundary FROM orders;
DROP TABLE orders;
-- A default set by hand gets its boundary from run().
CREATE TABLE orders (id bigserial PRIMARY KEY, note text) PARTITION BY RANGE (id); CREATE TABLE orders_first PARTITION OF orders FOR VALUES FROM (0) TO (501);
CREATE TABLE orders_second PARTITION OF orders FOR VALUES FROM (501) TO (1000000); CREATE TABLE orders_other PARTITION OF orders DEFAULT;
ALTER TABLE orders ALTER id SET DEFAULT snowflake_nextval();
CALL pg_temp.fill();
SELECT finding, ids FROM snowflake_audit_tables() WHERE table_name = 'orders'::regclass;
SELECT window_way, online_way, left(findings[1], 72) FROM snowflake_migrate.survey() WHERE table_name = 'orders'::regclass;
CALL snowflake_migrate.run('orders');
SELECT (SELECT count(*) FROM snowflake_audit_tables() WHERE table_name = 'orders'::regclass), (SELECT count(*) FROM snowflake_migrate.survey() WHERE table_name = 'orders'::regclass), (SELECT count(*) FROM snowflake_migrate.plan('orders'));
-- Partitions with old rows are not expired, by the condition of docs/reading.md; roles that may read a partition's column learn its boundary.
SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = 'orders'::regclass AND substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''(\d+)''\)')::bigint <= snowflake_min_id(now() - interval '90 days')
  AND substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \(''(\d+)''\)')::bigint >= snowflake_id_boundary('orders');
CREATE ROLE regress_reader; GRANT SELECT (id) ON orders_first TO regress_reader;
SELECT snowflake_id_boundary('orders') AS boundary \gset
SET ROLE regress_reader;
SELECT snowflake_id_boundary('orders_first') = :boundary AS same, snowflake_id_boundary('orders_first', 'id') = :boundary AS same_by_column;
SELECT snowflake_id_boundary('orders');
RESET ROLE;
SELECT pg_temp.retained(:'recipe');
-- Names that are none, and boundaries that cannot be.
CREATE VIEW seen AS TABLE orders; CREATE TABLE apart (id bigint PRIMARY KEY, note text);
SELECT snowflake_id_boundary('apart');
SELECT snowflake_id_boundary('orders', 'note');
SELECT snowflake_id_boundary('orders', 'nothing');
SELECT snowflake_id_boundary('orders', 'ctid');
SELECT snowflake_id_boundary('seen');
SELECT snowflake_id_boundary(0);
SELECT snowflake_id_boundary(NULL);
SELECT snowflake_set_id_boundary('apart', 'id', -1);
SELECT snowflake_set_id_boundary('apart', 'id', NULL);
SELECT snowflake_set_id_boundary('apart', 'nothing', 1);
SELECT snowflake_set_id_boundary('apart', 'id', 7) FROM generate_series(1, 2);
SELECT snowflake_set_id_boundary('apart', 'id', 6);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake_set_id_boundary('apart', 'id', 8);
ROLLBACK;
SELECT snowflake_id_boundary('apart');
SET ROLE regress_reader;
SELECT snowflake_set_id_boundary('apart', 'id', 8);
\set VERBOSITY sqlstate
SELECT snowflake_set_id_boundary('apart', 'id', 8); RESET ROLE;
SELECT snowflake_set_id_boundary('apart', 'id', -1); SELECT snowflake_set_id_boundary('apart', 'id', NULL); SELECT snowflake_set_id_boundary('apart', 'no', 1);
\set VERBOSITY default
RESET ROLE; DROP VIEW seen; DROP TABLE orders, apart; DROP SCHEMA former; DROP ROLE regress_reader;

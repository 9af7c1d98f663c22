-- What docs/partitions.md has of figures. In a database of its own that can be thrown away, with 6 GB free:
--   psql -X -d bench -v rows=5000000 -v referencing=10000000 -f bench/sql/partitions.sql
\set ON_ERROR_STOP on
\timing off
SET TimeZone = 'UTC';
CREATE EXTENSION IF NOT EXISTS snowflake_partitions CASCADE;
CREATE TABLE one_table (id bigint PRIMARY KEY, what text);
CREATE TABLE days (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), what text) PARTITION BY RANGE (id);
SELECT snowflake_partitions.configure('days', '1 day', 'UTC', '1 day');
CALL snowflake_partitions_internal.maintain('days', '2026-03-01 01:00+00', 1, 0);
INSERT INTO one_table
SELECT snowflake_compose('2026-03-01 00:00+00'::timestamptz + n * interval '2 days' / :rows / 2, 1, 0, (n % 4096)::int), md5(n::text)
FROM generate_series(0, 2 * :rows - 1) AS n;
INSERT INTO days TABLE one_table;
VACUUM (ANALYZE) one_table, days;
CHECKPOINT;
CREATE TABLE figures (what text, milliseconds numeric, wal bigint);
CREATE PROCEDURE measure(label text, statement text) LANGUAGE plpgsql AS $$
DECLARE
    lsn pg_lsn := pg_current_wal_insert_lsn();
    at timestamptz := clock_timestamp();
BEGIN
    EXECUTE statement;
    INSERT INTO figures VALUES (label, 1000 * extract(epoch FROM clock_timestamp() - at), pg_current_wal_insert_lsn() - lsn);
END
$$;
-- Another session, which waits while a call has its locks.
CREATE TABLE stopped (at timestamptz);
CREATE PROCEDURE wait_beside(label text, statement text) LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz;
    longest interval = '0';
BEGIN
    WHILE NOT EXISTS (SELECT FROM stopped) LOOP
        at := clock_timestamp();
        EXECUTE statement;
        longest := greatest(longest, clock_timestamp() - at);
        COMMIT;
        PERFORM pg_sleep(0.002);
    END LOOP;
    DELETE FROM stopped;
    INSERT INTO figures VALUES (label, 1000 * extract(epoch FROM longest));
END
$$;
\setenv PGDATABASE :DBNAME
\setenv PGHOST :HOST
\setenv PGPORT :PORT
\setenv PGUSER :USER
CALL measure('DELETE of a day', $$DELETE FROM one_table WHERE id < snowflake_min_id('2026-03-02 00:00+00')$$);
-- VACUUM and CALL are no statements of a procedure.
CREATE TEMP TABLE started AS SELECT clock_timestamp() AS at, pg_current_wal_insert_lsn() AS lsn;
VACUUM one_table;
INSERT INTO figures SELECT 'VACUUM after it', 1000 * extract(epoch FROM clock_timestamp() - at), pg_current_wal_insert_lsn() - lsn FROM started;
SELECT snowflake_partitions.configure('days', '1 day', 'UTC', '0 days', '0 days');
\! psql -X -q -c "SET statement_timeout = '10min'" -c "CALL wait_beside('  the longest wait of a query beside it', 'SELECT FROM days LIMIT 0')" </dev/null & sleep 1
UPDATE started SET at = clock_timestamp(), lsn = pg_current_wal_insert_lsn();
CALL snowflake_partitions_internal.maintain('days', '2026-03-02 00:00+00', 30, 0.5);
INSERT INTO figures SELECT 'a call that drops a day', 1000 * extract(epoch FROM clock_timestamp() - at), pg_current_wal_insert_lsn() - lsn FROM started;
INSERT INTO stopped VALUES (now());
\! sleep 1
DROP TABLE one_table, days;
-- Referencing rows of later days, without an index and with one. A call looks for them twice:
-- before its locks, and PostgreSQL under them.
CREATE TABLE parents (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
SELECT snowflake_partitions.configure('parents', '1 day', 'UTC', '2 days');
CALL snowflake_partitions_internal.maintain('parents', '2026-03-01 01:00+00', 1, 0);
INSERT INTO parents SELECT snowflake_compose('2026-03-01 00:00+00'::timestamptz + n * interval '3 days' / 300000, 1, 0, 0) FROM generate_series(0, 299999) AS n;
CREATE TABLE children (parent bigint NOT NULL);
INSERT INTO children SELECT snowflake_compose('2026-03-03 00:00+00'::timestamptz + (n % 99999) * interval '3 days' / 300000, 1, 0, 0)
FROM generate_series(0, :referencing - 1) AS n;
ALTER TABLE children ADD FOREIGN KEY (parent) REFERENCES parents;
VACUUM (ANALYZE) children, parents;
SELECT snowflake_partitions.configure('parents', '1 day', 'UTC', '0 days', '0 days');
\! psql -X -q -c "SET statement_timeout = '10min'" -c "CALL wait_beside('  the longest wait of an INSERT into the referencing table', 'INSERT INTO children SELECT parent FROM children LIMIT 1')" </dev/null & sleep 1
UPDATE started SET at = clock_timestamp(), lsn = pg_current_wal_insert_lsn();
CALL snowflake_partitions_internal.maintain('parents', '2026-03-02 00:00+00', 30, 0.5);
INSERT INTO figures SELECT 'a call that drops a day, referencing rows without an index', 1000 * extract(epoch FROM clock_timestamp() - at),
       pg_current_wal_insert_lsn() - lsn FROM started;
INSERT INTO stopped VALUES (now());
\! sleep 1
CREATE INDEX ON children (parent);
CALL measure('DETACH of a day by hand, referencing rows with an index', $sql$DO $do$
BEGIN
    ALTER TABLE parents DETACH PARTITION parents_p20260302;
    RAISE EXCEPTION 'rolled back';
EXCEPTION WHEN raise_exception THEN
    NULL;
END
$do$$sql$);
\! psql -X -q -c "SET statement_timeout = '10min'" -c "CALL wait_beside('  the longest wait of an INSERT into the referencing table', 'INSERT INTO children SELECT parent FROM children LIMIT 1')" </dev/null & sleep 1
UPDATE started SET at = clock_timestamp(), lsn = pg_current_wal_insert_lsn();
CALL snowflake_partitions_internal.maintain('parents', '2026-03-03 00:00+00', 30, 0.5);
INSERT INTO figures SELECT 'a call that drops a day, referencing rows with an index', 1000 * extract(epoch FROM clock_timestamp() - at),
       pg_current_wal_insert_lsn() - lsn FROM started;
INSERT INTO stopped VALUES (now());
\! sleep 1
DROP TABLE children, parents;
CREATE TABLE idle (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
SELECT snowflake_partitions.configure('idle', '1 day', 'UTC', '999 days', '1000 days');
CALL snowflake_partitions_internal.maintain('idle', '2026-03-01 01:00+00', 1, 0);
UPDATE started SET at = clock_timestamp(), lsn = pg_current_wal_insert_lsn();
CALL snowflake_partitions_internal.maintain('idle', '2026-03-01 01:00+00', 1, 0);
INSERT INTO figures SELECT 'a call with nothing to do, 1,000 partitions', 1000 * extract(epoch FROM clock_timestamp() - at), pg_current_wal_insert_lsn() - lsn FROM started;
SELECT what, round(milliseconds, 1) AS ms, pg_size_pretty(wal) AS wal FROM figures;

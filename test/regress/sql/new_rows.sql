-- Reading new rows by key: what a transaction holds back, and when it no longer does.
\pset format unaligned
\pset footer off
CREATE SCHEMA regress_snowflake;
SET search_path = regress_snowflake, public;
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
CREATE FUNCTION new_rows(last bigint) RETURNS SETOF text LANGUAGE sql STABLE
    AS 'SELECT note FROM events WHERE id > last AND id < snowflake_resolved_id() ORDER BY id';
-- Rows of the present tick are read in the next one.
INSERT INTO events (note) VALUES ('committed');
SELECT pg_sleep(0.02);
SELECT * FROM new_rows(0);
SELECT snowflake_resolved_id() > max(id) AS is_above, snowflake_resolved_id() <= snowflake_max_id(clock_timestamp()) AS not_ahead
FROM events;
-- An open transaction holds back its own rows, and all later ones.
BEGIN;
INSERT INTO events (note) VALUES ('open');
SELECT pg_sleep(0.02);
SELECT * FROM new_rows(0);
SELECT pid = pg_backend_pid() AS own, gid, first_id <= (SELECT max(id) FROM events) AS is_bound,
       snowflake_timestamp(first_id) = first_id_at AS is_its_time, age > '0', usename = current_user AS own_role, state
FROM snowflake_unresolved;
SELECT resolved_id <= (SELECT max(id) FROM events) AS is_below, resolved_age > '0.01 s' AS has_age, unknown_prepared
FROM snowflake_status;
COMMIT;
SELECT * FROM new_rows(0);
SELECT count(*) FROM snowflake_unresolved;
SELECT resolved_age, unknown_prepared FROM snowflake_status;
-- So does one whose savepoint is rolled back, until it ends.
BEGIN;
SAVEPOINT one;
INSERT INTO events (note) VALUES ('rolled back');
ROLLBACK TO one;
SELECT count(*) FROM snowflake_unresolved;
ROLLBACK;
SELECT count(*) FROM snowflake_unresolved;
-- And one that has drawn and not inserted.
BEGIN;
SELECT snowflake_nextval() > 0 AS drawn;
SELECT count(*) FROM snowflake_unresolved;
COMMIT;
-- Statements between which no transaction has ended have one answer, those of REPEATABLE READ too.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM new_rows(0);
SELECT snowflake_resolved_id() AS first \gset
SELECT pg_sleep(0.02);
SELECT snowflake_resolved_id() = :first AS same, min(snowflake_resolved_id()) = max(snowflake_resolved_id()) AS one_a_statement
FROM generate_series(1, 1000);
COMMIT;
SELECT snowflake_resolved_id() > :first AS has_grown;
-- A range on the key, computed once.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS off) SELECT * FROM events WHERE id > 5 AND id < snowflake_resolved_id() ORDER BY id LIMIT 10;
RESET search_path;
DROP SCHEMA regress_snowflake CASCADE;

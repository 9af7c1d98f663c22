-- The extensions that servers have beside this one, in one database.
\set ECHO none
SET client_min_messages = warning;
\set ECHO all
SELECT count(*) AS libraries FROM regexp_split_to_table(current_setting('shared_preload_libraries'), ',');
CREATE EXTENSION snowflake_migrate CASCADE;
CREATE EXTENSION snowflake_partitions;
CREATE EXTENSION hypopg;
CREATE EXTENSION pg_qualstats;
CREATE EXTENSION pg_repack;
CREATE EXTENSION pg_stat_kcache CASCADE;
CREATE EXTENSION pg_wait_sampling;
CREATE EXTENSION pgaudit;
CREATE EXTENSION pgtap;
CREATE EXTENSION plpgsql_check;
CREATE EXTENSION set_user;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
INSERT INTO orders SELECT snowflake_compose(timestamptz '2026-03-01 00:00+00' + n * interval '1 minute', 1, 0, 0), 'n' || n FROM generate_series(1, 20000) AS n;
CREATE VIEW timed AS SELECT o.*, snowflake_timestamp(o.id) AS created_at FROM orders AS o;
VACUUM ANALYZE orders;

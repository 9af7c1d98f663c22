-- The IDs in SQL alone, for an ordinary owner. The file is not echoed.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE ROLE regress_sql_owner;
CREATE ROLE regress_sql_app;
SELECT current_database() AS database \gset
GRANT CREATE ON DATABASE :"database" TO regress_sql_owner;
CREATE SCHEMA regress_sql_rows AUTHORIZATION regress_sql_owner;
\getenv directory PG_ABS_SRCDIR
\set file :directory '/../../sql/without_library.sql'
\set node 5
\set schema 'regress "ids"'
SET SESSION AUTHORIZATION regress_sql_owner;
SET client_min_messages = warning;
\set ECHO none
\i :file
\set ECHO all
\set ON_ERROR_STOP off
\set SHOW_CONTEXT never
SET search_path = 'regress "ids"';
-- An ID has the time, the node number, and the number modulo 65,536.
CREATE TABLE regress_sql_rows.orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
INSERT INTO regress_sql_rows.orders (note) SELECT 'order ' || n FROM generate_series(1, 1000) AS n;
SELECT count(DISTINCT o.id) AS ids, count(*) FILTER (WHERE o.id < lag) AS out_of_order, min(d.node_id), max(d.node_id),
       bool_and(d.created_at BETWEEN now() - interval '1 minute' AND clock_timestamp()) AS is_now,
       min(o.id) > snowflake_first_id() AS is_above_first, max(d.backend_id << 12 | d.sequence) - min(d.backend_id << 12 | d.sequence) AS numbers
FROM (SELECT id, lag(id) OVER (ORDER BY substr(note, 7)::int) FROM regress_sql_rows.orders) AS o, snowflake_decode(o.id) AS d;
SELECT * FROM snowflake_audit_installation();
-- Another role needs USAGE on the schema.
GRANT USAGE ON SCHEMA "regress ""ids""", regress_sql_rows TO regress_sql_app;
GRANT INSERT ON regress_sql_rows.orders TO regress_sql_app;
SET SESSION AUTHORIZATION regress_sql_app;
INSERT INTO regress_sql_rows.orders (note) VALUES ('from another role');
SELECT setval('ids', 1);
SELECT setval('mark', 1);
SELECT snowflake_adopt(6);
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION regress_sql_owner;
-- Reading and bounds, as the extension's.
SELECT * FROM snowflake_decode(249443647487999999);
SELECT * FROM snowflake_decode(1541815603606036480, 'twitter');
SELECT snowflake_timestamp(-1);
SELECT snowflake_timestamp(1, 'timestamp:60 sequence:4');
SELECT snowflake_timestamp(5000, 'timestamp:4 sequence:4');
SELECT snowflake_min_id('2026-11-20 08:00+00') AS min_id, snowflake_max_id('2026-11-20 08:00+00') AS max_id,
       snowflake_max_id_before('2026-11-20 08:00+00') AS max_id_before;
SELECT snowflake_min_id('-infinity') AS min_id, snowflake_max_id('2000-01-01 00:00+00') AS max_id,
       snowflake_max_id('infinity') AS max_id, snowflake_max_id_before('infinity') AS max_id_before;
SELECT snowflake_min_id('2100-01-01 00:00+00');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS off)
SELECT id FROM regress_sql_rows.orders WHERE snowflake_between(id, '2026-11-20 08:00+00', '2026-11-20 09:00+00', 'default');
EXPLAIN (COSTS off) SELECT id FROM regress_sql_rows.orders WHERE snowflake_between(id, now() - interval '1 hour', now());
-- Text.
SELECT snowflake_to_text(249431905924104192), snowflake_to_text(249431905924104192, 'base62'),
       snowflake_from_text('06xh8zwt42goo'), snowflake_from_text('0IQOqa0An0C', 'base62');
SELECT snowflake_from_text('06XH8');
SELECT snowflake_from_text('06XH8ZWT42G0!');
SELECT snowflake_from_text('ZZZZZZZZZZZZZ');
SELECT snowflake_to_text(1, 'base64');
-- The settings of a session change nothing.
SET TimeZone = 'America/St_Johns';
SET DateStyle = 'SQL, DMY';
SET IntervalStyle = 'postgres_verbose';
SET extra_float_digits = -15;
SELECT snowflake_min_id('2026-11-20 08:00+00', 'default') = 249443647488000000 AS same_bound,
       snowflake_timestamp(249443647488000000) = '2026-11-20 08:00+00' AS same_time,
       snowflake_timestamp(249443647488000000, 'default') = '2026-11-20 08:00+00' AS same_time_by_layout;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
-- A clock that is behind the mark.
SELECT count(nextval('mark')) FROM generate_series(1, 200);
\set VERBOSITY sqlstate
SELECT snowflake_nextval();
-- What the audit finds.
ALTER SEQUENCE ids CACHE 20 CYCLE INCREMENT 2;
GRANT UPDATE ON SEQUENCE mark TO regress_sql_app;
GRANT CREATE ON SCHEMA "regress ""ids""" TO regress_sql_app;
ALTER SEQUENCE mark RESTART;
CREATE FUNCTION planted() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';
SELECT * FROM snowflake_audit_installation() ORDER BY finding COLLATE "C", object COLLATE "C";
SELECT snowflake_nextval();
SELECT snowflake_adopt(64);
SELECT snowflake_adopt(5);
RESET SESSION AUTHORIZATION;
RESET search_path;
\set VERBOSITY default
SET client_min_messages = warning;
DROP OWNED BY regress_sql_owner, regress_sql_app;
DROP ROLE regress_sql_owner, regress_sql_app;
-- To the extension: views keep their options, and one of a function that the extension does not have is left.
\set schema snowflake_sql
\set node 7
\set ECHO none
\i :file
\set ECHO all
CREATE TABLE cards (id bigint PRIMARY KEY DEFAULT snowflake_sql.snowflake_nextval(), note text);
INSERT INTO cards (note) VALUES ('before');
CREATE VIEW shown WITH (security_invoker = true, security_barrier) AS SELECT note, snowflake_sql.snowflake_node_id(id) AS node FROM cards;
CREATE TABLE links (code text PRIMARY KEY DEFAULT snowflake_sql.snowflake_to_text(snowflake_sql.snowflake_nextval()));
CREATE VIEW newer AS SELECT id FROM cards WHERE id >= snowflake_sql.snowflake_first_id();
\set file :directory '/../../docs/without-library/to_extension.sql'
\set ECHO none
\i :file
\set ECHO all
\set ON_ERROR_STOP off
INSERT INTO cards (note) VALUES ('after');
SELECT * FROM shown ORDER BY (SELECT id FROM cards AS c WHERE c.note = shown.note);
SELECT relname, reloptions, pg_get_viewdef(oid) ~ 'snowflake_sql' AS is_left FROM pg_class WHERE relname IN ('shown', 'newer') ORDER BY 1;
SELECT d.adrelid::regclass, pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef AS d WHERE d.adrelid IN ('cards'::regclass, 'links'::regclass) ORDER BY 1;
-- And back.
CREATE TABLE coded (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), code text DEFAULT snowflake_to_text(snowflake_nextval()));
\set file :directory '/../../docs/without-library/back.sql'
\set ECHO none
\o /dev/null
\i :file
\o
\set ECHO all
\set ON_ERROR_STOP off
SELECT d.adrelid::regclass, pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef AS d WHERE d.adrelid IN ('cards'::regclass, 'coded'::regclass) ORDER BY 1, 2;
DROP TABLE cards, coded, links CASCADE;
DROP SCHEMA snowflake_sql CASCADE;

-- A script for a server that takes no library, while the tables are in use: what it consists of, its run, and its way back.
\pset format unaligned
\pset footer off
SET client_min_messages = warning;
CREATE ROLE online_script_owner;
CREATE ROLE online_script_reader;
CREATE FUNCTION pg_temp.made(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text;
BEGIN
    RETURN array_length(string_to_array(snowflake_migrate.script(command::regclass, online => true), E'\n'), 1) > 0;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN concat_ws(' ', SQLSTATE, SQLERRM, detail);
END $$;
SELECT $schema$
CREATE SCHEMA shop AUTHORIZATION online_script_owner;
SET ROLE online_script_owner;
CREATE TABLE shop.orders (id serial PRIMARY KEY, note text, CHECK (id > 0));
CREATE TABLE shop.lines (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id integer REFERENCES shop.orders, n integer);
CREATE INDEX by_order ON shop.lines (order_id) WHERE n > 1 AND ((ARRAY[1, 2])[1:n])[1] = 1;
CREATE VIEW shop.sold AS SELECT o.id, sum(l.n) AS n FROM shop.orders AS o JOIN shop.lines AS l ON l.order_id = o.id GROUP BY o.id;
COMMENT ON VIEW shop.sold IS 'of an order';
GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON shop.sold TO online_script_reader;
CREATE FUNCTION shop.checked() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''fired''; END';
CREATE TRIGGER checked BEFORE UPDATE ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.checked();
RESET ROLE;
$schema$ AS tables \gset
BEGIN;
:tables
-- What it consists of.
SELECT l.line FROM string_to_table(snowflake_migrate.script('shop.orders', also => '{shop.lines}', online => true), E'\n') AS l (line)
WHERE l.line ~ '^(SELECT [$]sql[$])?(-- Unit|ALTER TABLE|CREATE (UNIQUE )?INDEX|CREATE TRIGGER|        FOR EACH|ANALYZE|CALL :"schema".widening_(guard|unguard|backfill|swap))';
\getenv directory PG_ABS_BUILDDIR
\if :{?directory}
\else
\set directory /tmp
\endif
\set file :directory '/online_widening_script.sql'
\t on
SELECT snowflake_migrate.script('shop.orders', also => '{shop.lines}', online => true) \g :file
\t off
-- What it refuses.
ALTER TABLE shop.lines DISABLE TRIGGER ALL;
SELECT pg_temp.made('shop.orders');
ALTER TABLE shop.lines ENABLE TRIGGER ALL;
CREATE TABLE wide (id bigserial PRIMARY KEY);
SELECT pg_temp.made('wide');
CREATE TABLE narrow (id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (MAXVALUE 2147483647));
SELECT pg_temp.made('narrow');
ROLLBACK;
-- Another database has the schema, and rows.
SELECT current_database() AS former_database \gset
CREATE DATABASE online_widening_target TEMPLATE template0;
GRANT CREATE ON DATABASE online_widening_target TO online_script_owner;
\c online_widening_target
:tables
INSERT INTO shop.orders SELECT FROM generate_series(1, 100);
INSERT INTO shop.lines (order_id, n) SELECT id, 3 FROM shop.orders;
-- MAINTAIN stays as it is found: the copy could be older.
GRANT ALL ON shop.sold TO online_script_reader;
-- It is not the login of the owner: that is for Rust tests.
\set role_override on
-- psql puts no variable into what is a slice.
\set n 'n is a variable'
\set messages warning
SET ROLE online_script_owner;
\set ECHO none
\i :file
\set ECHO all
\set ON_ERROR_STOP off
RESET search_path;
RESET client_min_messages;
SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns WHERE table_schema = 'shop' ORDER BY 1, ordinal_position;
SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'shop' ORDER BY 2;
SELECT conrelid::regclass, conname, convalidated FROM pg_constraint WHERE contype IN ('p', 'f', 'c') AND connamespace = 'shop'::regnamespace ORDER BY 2;
SELECT sequencename, data_type, max_value, last_value FROM pg_sequences ORDER BY 1;
SELECT count(*), sum(s.n), obj_description('shop.sold'::regclass) FROM shop.sold AS s;
SELECT bool_or(a.privilege_type = 'MAINTAIN') = (current_setting('server_version_num')::integer >= 170000) AS maintain_is_kept
FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
WHERE c.oid = 'shop.sold'::regclass AND a.grantee = 'online_script_reader'::regrole;
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal;
SELECT setval('shop.orders_id_seq', 2147483647);
INSERT INTO shop.orders DEFAULT VALUES RETURNING id;
-- Nothing of it is left, and nothing is to be reverted.
SELECT nspname FROM pg_namespace WHERE nspname ~ 'snowflake|widening';
\set revert on
\set ECHO none
\i :file
\set ECHO all
\set ON_ERROR_STOP off
RESET search_path;
SELECT nspname FROM pg_namespace WHERE nspname ~ 'snowflake|widening';
RESET ROLE;
\c :former_database
DROP DATABASE online_widening_target;
DROP ROLE online_script_owner, online_script_reader;

-- A script for a server that takes no library: it is made from a copy of the schema, and run in a database without the extension.
\pset format unaligned
\pset footer off
SET client_min_messages = warning;
CREATE ROLE script_owner;
CREATE FUNCTION pg_temp.made(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text;
BEGIN
    RETURN array_length(string_to_array(snowflake_migrate.script(command::regclass), E'\n'), 1) > 0;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN concat_ws(' ', SQLSTATE, SQLERRM, detail);
END $$;
SELECT $schema$
CREATE SCHEMA shop AUTHORIZATION script_owner;
SET ROLE script_owner;
CREATE TABLE shop.orders (id serial PRIMARY KEY, note text, CHECK (id > 0));
CREATE TABLE shop.lines (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id integer REFERENCES shop.orders, n integer);
CREATE VIEW shop.sold AS SELECT o.id, sum(l.n) AS n FROM shop.orders AS o JOIN shop.lines AS l ON l.order_id = o.id GROUP BY o.id;
-- PostgreSQL prints IN otherwise after it has read it once.
CREATE VIEW shop.noted AS SELECT id FROM shop.orders WHERE note::varchar IN ('a', 'b');
ALTER TABLE shop.orders ADD CONSTRAINT known CHECK (note::varchar IN ('a', 'b'));
COMMENT ON VIEW shop.sold IS 'of an order';
CREATE FUNCTION shop.checked() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE TRIGGER checked BEFORE INSERT ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.checked();
RESET ROLE;
$schema$ AS schema \gset
BEGIN;
:schema
-- What it changes.
SELECT l.line FROM string_to_table(snowflake_migrate.script('shop.orders', also => '{shop.lines}'), E'\n') AS l (line)
WHERE l.line ~ '^(-- Unit|LOCK|ALTER|ANALYZE|CALL :"schema".widening_(try|drop|create)_?|    EXECUTE \$)';
-- What it was made for.
SELECT l.line FROM string_to_table(snowflake_migrate.script('shop.orders', also => '{shop.lines}'), E'\n') AS l (line)
WHERE l.line ~ '^    \(''shop.lines''';
\getenv directory PG_ABS_BUILDDIR
\if :{?directory}
\else
\set directory /tmp
\endif
\set file :directory '/widening_script.sql'
\t on
SELECT snowflake_migrate.script('shop.orders', also => '{shop.lines}') \g :file
\t off
-- What it refuses.
ALTER TABLE shop.lines DISABLE TRIGGER ALL;
SELECT pg_temp.made('shop.orders');
ALTER TABLE shop.lines ENABLE TRIGGER ALL;
ALTER VIEW shop.sold OWNER TO CURRENT_USER;
SELECT pg_temp.made('shop.orders') ~ '^0A000 cannot make one script.*several owners' AS several_owners;
CREATE TABLE wide (id bigserial PRIMARY KEY);
SELECT pg_temp.made('wide');
ROLLBACK;
-- Another database has the schema, and rows.
SELECT current_database() AS former_database \gset
CREATE DATABASE widening_target TEMPLATE template0;
GRANT CREATE ON DATABASE widening_target TO script_owner;
\c widening_target
:schema
INSERT INTO shop.orders DEFAULT VALUES;
INSERT INTO shop.lines (order_id, n) VALUES (1, 3);
-- Compared and tried without a change, then run. It is not the login of the owner: that is for Rust tests.
\set role_override on
SET ROLE script_owner;
\set ECHO none
\i :file
\set ECHO all
\set ON_ERROR_STOP off
RESET search_path;
RESET client_min_messages;
SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'shop' ORDER BY 1, ordinal_position;
SELECT sequencename, data_type, max_value FROM pg_sequences ORDER BY 1;
SELECT s.*, obj_description('shop.sold'::regclass) FROM shop.sold AS s;
SELECT setval('shop.orders_id_seq', 2147483647);
INSERT INTO shop.orders DEFAULT VALUES RETURNING id;
-- Nothing of it is left.
SELECT nspname FROM pg_namespace WHERE nspname ~ 'snowflake|widening';
RESET ROLE;
\c :former_database
DROP DATABASE widening_target;
DROP ROLE script_owner;

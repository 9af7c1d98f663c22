-- DROP EXTENSION: tables that use it keep it, and it can be created again.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE TABLE orders (id serial PRIMARY KEY);
INSERT INTO orders DEFAULT VALUES;
SET client_min_messages = warning;
\set VERBOSITY terse
CALL snowflake_migrate.run('orders');
INSERT INTO orders DEFAULT VALUES;
RESET client_min_messages;
-- The tool first. A migration that is under way keeps it.
DROP EXTENSION snowflake;
DROP EXTENSION snowflake_migrate;
DROP EXTENSION snowflake;
-- What it knew of former sequences is lost, the first IDs are not.
SELECT count(*) AS old_rows FROM orders WHERE id < snowflake_id_boundary('orders');
SELECT * FROM snowflake_audit('orders');
CREATE EXTENSION snowflake_migrate;
\set VERBOSITY default
CALL snowflake_migrate.revert('orders');
\set VERBOSITY terse
DROP EXTENSION snowflake_migrate;
ALTER TABLE orders ALTER id DROP DEFAULT;
\set VERBOSITY default
DROP EXTENSION snowflake;
SELECT count(*) AS left_over FROM pg_proc WHERE proname LIKE 'snowflake%';
SELECT count(*) AS left_over FROM pg_class WHERE relname LIKE 'snowflake%';
SELECT count(*) AS left_over FROM pg_namespace WHERE nspname LIKE 'snowflake%';
CREATE EXTENSION snowflake;
SELECT snowflake_nextval() > max(id) AS above_the_old FROM orders;
DROP TABLE orders;
DROP EXTENSION snowflake;

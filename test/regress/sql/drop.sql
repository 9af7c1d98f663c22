-- DROP EXTENSION: tables that use it keep it, and it can be created again.
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
INSERT INTO orders DEFAULT VALUES;
\set VERBOSITY terse
DROP EXTENSION snowflake;
\set VERBOSITY default
ALTER TABLE orders ALTER id DROP DEFAULT;
DROP EXTENSION snowflake;
SELECT count(*) AS left_over FROM pg_proc WHERE proname LIKE 'snowflake%';
SELECT count(*) AS left_over FROM pg_class WHERE relname LIKE 'snowflake%';
CREATE EXTENSION snowflake;
SELECT snowflake_nextval() > max(id) AS above_the_old FROM orders;
DROP TABLE orders;
DROP EXTENSION snowflake;

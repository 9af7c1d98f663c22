-- pg_repack between the steps of an online migration, and after it.
\pset format unaligned
\pset footer off
CREATE TABLE packed (id serial PRIMARY KEY, note text);
INSERT INTO packed (note) SELECT 'old' FROM generate_series(1, 2000);
DELETE FROM packed WHERE id % 3 = 0;
CREATE TABLE packed_line (id serial PRIMARY KEY, packed_id int REFERENCES packed);
INSERT INTO packed_line (packed_id) SELECT id FROM packed;
ANALYZE packed, packed_line;
SET client_min_messages = error;
SELECT statement FROM snowflake_migrate.plan('packed', online => true) WHERE statement IS NOT NULL ORDER BY step LIMIT 1
\set ECHO none
\gexec
\set ECHO all
\! pg_repack --dbname=snowflake_regress --no-order --table=packed --table=packed_line 2>&1
SELECT statement FROM snowflake_migrate.plan('packed', online => true) WHERE statement IS NOT NULL ORDER BY step LIMIT 3
\set ECHO none
\gexec
\set ECHO all
\! pg_repack --dbname=snowflake_regress --no-order --table=packed --table=packed_line 2>&1
SELECT statement FROM snowflake_migrate.plan('packed', online => true) WHERE statement IS NOT NULL ORDER BY step LIMIT 3
\set ECHO none
\gexec
\set ECHO all
\! pg_repack --dbname=snowflake_regress --no-order --table=packed --table=packed_line 2>&1
SELECT count(*) > 0 AS is_left FROM snowflake_migrate.plan('packed', online => true);
SELECT statement FROM snowflake_migrate.plan('packed', online => true) WHERE statement IS NOT NULL ORDER BY step LIMIT 100
\set ECHO none
\gexec
\set ECHO all
INSERT INTO packed (note) VALUES ('new');
\! pg_repack --dbname=snowflake_regress --no-order --table=packed 2>&1
SELECT count(*), count(*) FILTER (WHERE id > snowflake_id_boundary('packed')) AS new FROM packed;
SELECT count(*) FROM packed_line AS l JOIN packed AS p ON p.id = l.packed_id;
SELECT * FROM snowflake_audit('packed');
CALL snowflake_migrate.revert('packed');
INSERT INTO packed (note) VALUES ('old again') RETURNING id;

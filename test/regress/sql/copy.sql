-- COPY with a snowflake ID as default.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE TABLE measurements (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), value int);
COPY measurements (value) FROM stdin;
1
2
3
\.
SELECT count(*), count(DISTINCT id), sum(value) FROM measurements;
SELECT string_agg(value::text, ' ' ORDER BY id) AS in_order FROM measurements;
SET snowflake.copy_multi_insert = off;
COPY measurements (value) FROM stdin;
4
5
\.
RESET snowflake.copy_multi_insert;
SELECT string_agg(value::text, ' ' ORDER BY id) AS in_order FROM measurements;
-- IDs that are in the file are taken as they are.
COPY measurements FROM stdin;
7	6
\.
SELECT id FROM measurements WHERE value = 6;
-- A COPY that fails leaves no row.
COPY measurements (value) FROM stdin;
8
nine
\.
SELECT count(*) FROM measurements;
COPY (SELECT value FROM measurements WHERE value < 4 ORDER BY id) TO stdout;
DROP TABLE measurements;

-- wal2json: each row of a COPY in batches, with its ID, and no warning.
\pset format unaligned
\pset footer off
SELECT count(*) FROM pg_create_logical_replication_slot('neighbours', 'wal2json');
CREATE TABLE streamed (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
COPY streamed (note) FROM stdin;
first
second
third
\.
UPDATE streamed SET note = 'changed' WHERE note = 'second';
SELECT snowflake_accept_layout();
CREATE TEMP TABLE change AS
    SELECT c.data::jsonb AS change FROM pg_logical_slot_get_changes('neighbours', NULL, NULL, 'format-version', '2', 'include-transaction', 'false') AS c;
SELECT c.change ->> 'action' AS action, (c.change #>> '{columns,1,value}') AS note, count(s.id) AS ids
FROM change AS c LEFT JOIN streamed AS s ON s.id = (c.change #>> '{columns,0,value}')::bigint
WHERE c.change ->> 'table' = 'streamed' GROUP BY 1, 2 ORDER BY 1, 2;
-- The extension's own rows are in the stream, and can be left out.
SELECT DISTINCT c.change ->> 'schema' AS schema, c.change ->> 'table' AS "table" FROM change AS c ORDER BY 1;
INSERT INTO streamed (note) VALUES ('filtered');
SELECT snowflake_accept_layout();
SELECT DISTINCT c.data::jsonb ->> 'schema' AS schema FROM pg_logical_slot_get_changes('neighbours', NULL, NULL, 'format-version', '2',
    'include-transaction', 'false', 'filter-tables', 'snowflake_internal.*,snowflake_migrate_internal.*') AS c;
SELECT count(*) FROM pg_drop_replication_slot('neighbours');

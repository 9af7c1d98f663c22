-- The trigger that keeps a shadow column in step.
\pset format unaligned
\pset tuples_only on
\set VERBOSITY terse
CREATE TABLE kept (a integer, b smallint, wide_a bigint, wide_b bigint, note text);
CREATE TRIGGER keep_a BEFORE INSERT OR UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.shadow('a', 'wide_a');
CREATE TRIGGER keep_b BEFORE INSERT OR UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.shadow('b', 'wide_b');
INSERT INTO kept (a, b, note) VALUES (2147483647, -32768, 'x'), (-2147483648, NULL, 'y') RETURNING *;
UPDATE kept SET b = 7, wide_a = 3 RETURNING *;
UPDATE kept SET a = NULL, b = 0 RETURNING *;
UPDATE kept SET wide_b = NULL RETURNING *;
-- One that is enabled always fires on a replica.
ALTER TABLE kept ENABLE ALWAYS TRIGGER keep_a;
SET session_replication_role = replica;
INSERT INTO kept (a, b) VALUES (1, 2) RETURNING *;
RESET session_replication_role;
-- A trigger that is defined otherwise.
DROP TRIGGER keep_a ON kept;
DROP TRIGGER keep_b ON kept;
SELECT format('CREATE OR REPLACE TRIGGER it %s EXECUTE FUNCTION snowflake_migrate_internal.shadow(%s)', fires, columns), 'INSERT INTO kept (a) VALUES (1)'
FROM (VALUES ('AFTER INSERT ON kept FOR EACH ROW', $$'a', 'wide_a'$$), ('BEFORE INSERT ON kept FOR EACH STATEMENT', $$'a', 'wide_a'$$), ('BEFORE INSERT ON kept FOR EACH ROW', $$'a'$$),
    ('BEFORE INSERT ON kept FOR EACH ROW', $$'c', 'wide_a'$$), ('BEFORE INSERT ON kept FOR EACH ROW', $$'ctid', 'wide_a'$$), ('BEFORE INSERT ON kept FOR EACH ROW', $$'note', 'wide_a'$$),
    ('BEFORE INSERT ON kept FOR EACH ROW', $$'a', 'note'$$)) AS t (fires, columns) \gexec
DROP TABLE kept;

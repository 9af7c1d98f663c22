-- Prints statements that give the copy the sizes of tables and the values of sequences (docs/managed.md). Changes nothing.
SET search_path = '';
SELECT format('SELECT setval(%L, %s);', format('%I.%I', schemaname, sequencename), last_value)
FROM pg_catalog.pg_sequences WHERE last_value IS NOT NULL;
SELECT format('UPDATE pg_class SET relpages = %s, reltuples = %s WHERE oid = to_regclass(%L);', c.relpages, c.reltuples, c.oid::regclass)
FROM pg_catalog.pg_class AS c WHERE c.relkind IN ('r', 'i', 'm') AND c.relpages > 0 AND c.oid >= 16384;
SELECT format('UPDATE pg_class SET relpages = %s WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE oid = to_regclass(%L));',
              t.relpages, c.oid::regclass)
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_class AS t ON t.oid = c.reltoastrelid
WHERE c.relkind IN ('r', 'm') AND t.relpages > 0 AND c.oid >= 16384;

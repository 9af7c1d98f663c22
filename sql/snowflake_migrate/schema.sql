\echo Use "CREATE EXTENSION snowflake_migrate CASCADE" to load this file. \quit

-- The schemas of the tool: one for people, one for what they do not use directly. All
-- roles may use them, because the functions run with the rights of their caller.
--
-- As for snowflake_internal (sql/snowflake/schema.sql): an empty schema owned by the
-- role that creates the extension is replaced. Any other one causes an error.
DO $do$
DECLARE
    schema_name pg_catalog.name;
BEGIN
    FOR schema_name IN
        SELECT n.nspname FROM pg_catalog.pg_namespace AS n
        JOIN pg_catalog.pg_extension AS e ON e.extowner OPERATOR(pg_catalog.=) n.nspowner
        WHERE (n.nspname OPERATOR(pg_catalog.=) 'snowflake_migrate'::pg_catalog.name
               OR n.nspname OPERATOR(pg_catalog.=) 'snowflake_migrate_internal'::pg_catalog.name)
          AND e.extname OPERATOR(pg_catalog.=) 'snowflake_migrate'::pg_catalog.name
    LOOP
        EXECUTE pg_catalog.format('DROP SCHEMA %I RESTRICT', schema_name);
    END LOOP;
END
$do$;
CREATE SCHEMA snowflake_migrate;
COMMENT ON SCHEMA snowflake_migrate IS 'Migrating tables to snowflake IDs, and back';
CREATE SCHEMA snowflake_migrate_internal;
COMMENT ON SCHEMA snowflake_migrate_internal IS
    'Objects of the extension snowflake_migrate that are not meant to be used directly';
GRANT USAGE ON SCHEMA snowflake_migrate, snowflake_migrate_internal TO PUBLIC;

\echo Use "CREATE EXTENSION snowflake_partitions CASCADE" to load this file. \quit

-- The schemas of the extension: one for people, one for what they do not use directly. An
-- empty schema of the role that creates the extension is replaced: see
-- sql/snowflake/schema.sql.
DO $do$
DECLARE
    schema_name pg_catalog.name;
BEGIN
    FOR schema_name IN
        SELECT n.nspname FROM pg_catalog.pg_namespace AS n
        JOIN pg_catalog.pg_extension AS e ON e.extowner OPERATOR(pg_catalog.=) n.nspowner
        WHERE (n.nspname OPERATOR(pg_catalog.=) 'snowflake_partitions'::pg_catalog.name
               OR n.nspname OPERATOR(pg_catalog.=) 'snowflake_partitions_internal'::pg_catalog.name)
          AND e.extname OPERATOR(pg_catalog.=) 'snowflake_partitions'::pg_catalog.name
    LOOP
        EXECUTE pg_catalog.format('DROP SCHEMA %I RESTRICT', schema_name);
    END LOOP;
END
$do$;
CREATE SCHEMA snowflake_partitions;
COMMENT ON SCHEMA snowflake_partitions IS 'Partitions by the time of snowflake IDs';
CREATE SCHEMA snowflake_partitions_internal;
COMMENT ON SCHEMA snowflake_partitions_internal IS
    'Objects of the extension snowflake_partitions that are not meant to be used directly';
GRANT USAGE ON SCHEMA snowflake_partitions, snowflake_partitions_internal TO PUBLIC;

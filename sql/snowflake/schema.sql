\echo Use "CREATE EXTENSION snowflake" to load this file. \quit

-- Internal objects have a schema of their own, which is not on any search path.
-- So schema tools do not list them among an application's tables, and \df shows
-- only the public functions. All roles may use the schema, because the
-- extension's functions run with the rights of their caller.
--
-- Tools that load a schema (Rails: schema.rb) first create all schemas, then the
-- extensions. So an empty schema owned by the role that creates the extension is
-- replaced. Any other existing schema of this name causes an error.
DO $do$
BEGIN
    IF EXISTS (
        SELECT FROM pg_catalog.pg_namespace AS n
        JOIN pg_catalog.pg_extension AS e ON e.extowner OPERATOR(pg_catalog.=) n.nspowner
        WHERE n.nspname OPERATOR(pg_catalog.=) 'snowflake_internal'::pg_catalog.name
          AND e.extname OPERATOR(pg_catalog.=) 'snowflake'::pg_catalog.name)
    THEN
        DROP SCHEMA snowflake_internal RESTRICT;
    END IF;
END
$do$;
CREATE SCHEMA snowflake_internal;
COMMENT ON SCHEMA snowflake_internal IS
    'Objects of the extension snowflake that are not meant to be used directly';
GRANT USAGE ON SCHEMA snowflake_internal TO PUBLIC;

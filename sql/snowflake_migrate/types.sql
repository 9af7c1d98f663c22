-- Keys, and types of the columns that can be migrated.

CREATE TYPE snowflake_migrate_internal.key AS (target regclass, column_name name);
COMMENT ON TYPE snowflake_migrate_internal.key IS 'A column of a table: a key that is migrated, or a column that is widened';

-- The base type of a domain, also through several levels of domains.
CREATE FUNCTION snowflake_migrate_internal.base_type(type_oid oid)
RETURNS oid LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE layer (oid, typbasetype) AS (
        SELECT t.oid, t.typbasetype FROM pg_type AS t WHERE t.oid = type_oid
      UNION ALL
        SELECT t.oid, t.typbasetype FROM layer JOIN pg_type AS t ON t.oid = layer.typbasetype
    )
    SELECT layer.oid FROM layer WHERE layer.typbasetype = 0
$function$;

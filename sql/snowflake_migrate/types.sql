-- Types of the columns that can be migrated.

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

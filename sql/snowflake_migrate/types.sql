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

-- A finding of a plan. stage is the step that breaks or changes it: 'shadow' (an online plan adds the
-- column), 'type' (the column becomes a bigint; online that is the swap), 'default' (the
-- column gets its new default). relation is the table of that step; column_name is NULL
-- where the finding is about its rows. breaks_writes: INSERT or UPDATE of the table fails
-- afterwards, or new rows do not get snowflake IDs. called is the function that lacks
-- a form for a bigint, where that is the finding. refuses: a session would link new rows to
-- old ones without an error, so it is an obstacle, too.
CREATE TYPE snowflake_migrate_internal.finding AS (
    relation regclass, column_name name, object text, finding text, remedy text, breaks_writes boolean, stage text, called text,
    refuses boolean
);
COMMENT ON TYPE snowflake_migrate_internal.finding IS 'What a migration breaks or changes in code that it does not change itself';

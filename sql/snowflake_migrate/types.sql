-- Keys, and types of the columns that can be migrated.

-- A column of a table: a key that is migrated, or a column that is widened.
CREATE TYPE snowflake_migrate_internal.key AS (target regclass, column_name name);

-- The base type of a domain, also through several levels of domains.
--
-- This and other functions that are called for each column are in PL/pgSQL, which keeps their
-- plans. One in SQL that is called from another one is planned again with each call of that one.
CREATE FUNCTION snowflake_migrate_internal.base_type(type_oid oid)
RETURNS oid LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    below oid := type_oid;
    base oid;
BEGIN
    WHILE below <> 0 LOOP
        base := below;
        below := (SELECT t.typbasetype FROM pg_type AS t WHERE t.oid = base);
    END LOOP;
    RETURN CASE WHEN below = 0 THEN base END;
END
$function$;

-- A finding of a plan. stage is the step that breaks or changes it: 'shadow' (an online plan adds the
-- column), 'type' (the column becomes a bigint; online that is the swap), 'default' (the
-- column gets its new default). relation is the table of that step; column_name is NULL
-- where the finding is about its rows. breaks_writes: INSERT or UPDATE of the table fails
-- afterwards, or new rows do not get snowflake IDs. called is the function that lacks
-- a form for a bigint, where that is the finding. refuses: a session would link new rows to
-- old ones without an error, so it is an obstacle, too. function, and the trigger that calls it:
-- what object names, where it is a function.
CREATE TYPE snowflake_migrate_internal.finding AS (
    relation regclass, column_name name, object text, finding text, remedy text, breaks_writes boolean, stage text, called text,
    refuses boolean, function oid, trigger oid
);

-- A function, and the trigger that calls it, if there is one.
CREATE FUNCTION snowflake_migrate_internal.function_of_trigger(function oid, trigger oid)
RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN concat(function::regprocedure::text, (
        SELECT format(', called by trigger %I of %s', t.tgname, t.tgrelid::regclass) FROM pg_trigger AS t WHERE t.oid = trigger));
END
$function$;

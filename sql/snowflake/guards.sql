-- The triggers of the extension's tables, which only its own code writes.

-- Lets only superusers change a table by SQL, and keeps its rows where replication
-- truncates them (src/migration/guard.rs).
CREATE FUNCTION snowflake_internal.guard() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_guard_wrapper';

-- Keeps the rows of other servers out: a publication FOR ALL TABLES includes these
-- tables, and their rows are valid on one server only.
CREATE FUNCTION snowflake_internal.stay()
RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN NULL;
END
$function$;

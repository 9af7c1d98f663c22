-- It has no SET clause, and passes the caller's search path on, as the others.
CREATE PROCEDURE snowflake_migrate.revert(target regclass, column_name name DEFAULT NULL)
LANGUAGE plpgsql
AS $procedure$
BEGIN
    PERFORM snowflake_migrate_internal.revert(target, column_name, pg_catalog.current_setting('search_path'::pg_catalog.text));
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate.revert(target regclass, column_name name) IS
    'Restores the sequence of a migrated column, or cancels an unfinished online migration';

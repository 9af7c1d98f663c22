-- The procedures have no SET clause, and pass the caller's search path on: functions
-- of indexes, checks and triggers may find other functions by it. All names are
-- qualified.
CREATE PROCEDURE snowflake_migrate(target regclass, column_name name DEFAULT NULL)
LANGUAGE plpgsql
AS $procedure$
BEGIN
    PERFORM snowflake_internal.migration_migrate(ARRAY[target], ARRAY[column_name],
        pg_catalog.current_setting('search_path'::pg_catalog.text));
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate(target regclass, column_name name) IS
    'Migrates a column to snowflake IDs in one transaction: runs the statements of snowflake_migration_plan';

CREATE PROCEDURE snowflake_migrate_tables(targets regclass[], column_names name[] DEFAULT NULL)
LANGUAGE plpgsql
AS $procedure$
BEGIN
    PERFORM snowflake_internal.migration_migrate(targets, column_names,
        pg_catalog.current_setting('search_path'::pg_catalog.text));
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate_tables(targets regclass[], column_names name[]) IS
    'Migrates several tables to snowflake IDs in one transaction: runs the statements of snowflake_migration_plan_tables';

CREATE PROCEDURE snowflake_migrate(target regclass, column_name name DEFAULT NULL)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $procedure$
BEGIN
    PERFORM snowflake_internal.migration_migrate(ARRAY[target], ARRAY[column_name]);
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate(target regclass, column_name name) IS
    'Migrates a column to snowflake IDs in one transaction: runs the statements of snowflake_migration_plan';

CREATE PROCEDURE snowflake_migrate_tables(targets regclass[], column_names name[] DEFAULT NULL)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $procedure$
BEGIN
    PERFORM snowflake_internal.migration_migrate(targets, column_names);
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate_tables(targets regclass[], column_names name[]) IS
    'Migrates several tables to snowflake IDs in one transaction: runs the statements of snowflake_migration_plan_tables';

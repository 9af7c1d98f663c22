-- The procedure has no SET clause, and passes the caller's search path on: functions
-- of indexes, checks and triggers may find other functions by it. All names are
-- qualified.
CREATE PROCEDURE snowflake_migrate.run(
    target regclass, column_name name DEFAULT NULL, also regclass[] DEFAULT NULL, also_columns name[] DEFAULT NULL,
    keep_sequence boolean DEFAULT false
) LANGUAGE plpgsql
AS $procedure$
BEGIN
    PERFORM snowflake_migrate_internal.run_plan(snowflake_migrate_internal.keys(target, column_name, also, also_columns),
        pg_catalog.current_setting('search_path'::pg_catalog.text), coalesce(keep_sequence, false));
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate.run(target regclass, column_name name, also regclass[], also_columns name[],
    keep_sequence boolean) IS
    'Migrates a column, or several tables, to snowflake IDs in one transaction: runs the statements of snowflake_migrate.plan. '
    'With keep_sequence, only widens the columns';

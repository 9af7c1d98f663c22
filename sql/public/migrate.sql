CREATE PROCEDURE snowflake_migrate(target regclass, column_name name DEFAULT NULL)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $procedure$
DECLARE
    plan_step record;
    done integer := 0;
BEGIN
    PERFORM snowflake_internal.migration_limit_locks();
    FOR plan_step IN SELECT * FROM snowflake_internal.migration_steps(target, column_name, false) LOOP
        RAISE NOTICE 'step %: %', plan_step.step, plan_step.note;
        PERFORM snowflake_internal.migration_run(plan_step.relation, plan_step.statement);
        done := done + 1;
    END LOOP;
    IF done = 0 THEN
        RAISE NOTICE 'nothing to do: % is already migrated', target;
    END IF;
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate(target regclass, column_name name) IS
    'Migrates a column to snowflake IDs in one transaction: runs the statements of snowflake_migration_plan';

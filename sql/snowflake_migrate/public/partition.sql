-- They pass the caller's search path on, as those for keys do. All names are qualified.
CREATE FUNCTION snowflake_migrate.partition_plan(
    target regclass, step interval, time_zone text, ahead interval DEFAULT '7 days', lead interval DEFAULT '1 day'
) RETURNS TABLE (step_number integer, what text, lock text, statement text, in_transaction boolean, note text)
LANGUAGE plpgsql STABLE
AS $function$
BEGIN
    RETURN QUERY
        WITH planned AS MATERIALIZED (
            SELECT ARRAY(SELECT s FROM snowflake_migrate_internal.partition_plan(
                target, snowflake_migrate_internal.partition_settings(partition_plan.step, time_zone, ahead, lead),
                pg_catalog.current_setting('search_path'::pg_catalog.text)) AS s) AS steps
        )
        SELECT (w.step).number, w.what, (w.step).lock_level, snowflake_migrate_internal.statement_of(w.step), (w.step).in_transaction,
            (w.step).note
        FROM planned AS p CROSS JOIN LATERAL snowflake_migrate_internal.shown_steps(p.steps) AS w;
END
$function$;
COMMENT ON FUNCTION snowflake_migrate.partition_plan(target regclass, step interval, time_zone text, ahead interval, lead interval) IS
    E'Returns the remaining statements by which a table becomes partitioned by the time of its key, without a rewrite and in use; '
    'for \\gexec. It becomes the first partition, which ends at the end of the step that contains the time lead from now';

CREATE FUNCTION snowflake_migrate.partition_ddl(
    target regclass, step interval, time_zone text, ahead interval DEFAULT '7 days', lead interval DEFAULT '1 day'
) RETURNS TABLE (statement text)
LANGUAGE plpgsql STABLE
AS $function$
BEGIN
    RETURN QUERY
        SELECT s.line
        FROM snowflake_migrate_internal.partition_ddl(target, snowflake_migrate_internal.partition_settings(step, time_zone, ahead, lead),
            pg_catalog.current_setting('search_path'::pg_catalog.text)) AS s (line);
END
$function$;
COMMENT ON FUNCTION snowflake_migrate.partition_ddl(target regclass, step interval, time_zone text, ahead interval, lead interval) IS
    'Returns all statements that the steps of snowflake_migrate.partition_plan execute, as a script with comments for review';

-- It commits after each step.
CREATE PROCEDURE snowflake_migrate.partition(
    target regclass, step interval, time_zone text, ahead interval DEFAULT '7 days', lead interval DEFAULT '1 day'
) LANGUAGE plpgsql
AS $procedure$
DECLARE
    steps snowflake_migrate_internal.step[];
    planned snowflake_migrate_internal.step;
    kind text;
BEGIN
    IF pg_catalog.now() OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp() THEN
        PERFORM snowflake_internal.refuse('25001', 'snowflake_migrate.partition cannot run inside a transaction block',
            detail => 'It commits after each step.');
    END IF;
    steps := ARRAY(SELECT s FROM snowflake_migrate_internal.partition_plan(
        target, snowflake_migrate_internal.partition_settings(step, time_zone, ahead, lead),
        pg_catalog.current_setting('search_path'::pg_catalog.text)) AS s);
    FOREACH planned IN ARRAY steps LOOP
        IF NOT planned.in_transaction THEN
            PERFORM snowflake_internal.refuse('55000', pg_catalog.format('%s needs steps that run in no procedure', target),
                detail => 'Its key is widened first, while the table is in use.',
                hint => E'Nothing was changed. Run the statements of snowflake_migrate.partition_plan() with \\gexec in psql.');
        END IF;
    END LOOP;
    FOREACH planned IN ARRAY steps LOOP
        COMMIT;
        IF planned.kind IS DISTINCT FROM kind THEN
            kind := planned.kind;
            RAISE NOTICE '%', snowflake_migrate_internal.phase_notice(steps, planned.number);
        END IF;
        EXECUTE snowflake_migrate_internal.statement_of(planned);
    END LOOP;
    IF steps OPERATOR(pg_catalog.=) ARRAY[]::snowflake_migrate_internal.step[] THEN
        RAISE NOTICE 'nothing to do: % is already partitioned', target;
    END IF;
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate.partition(target regclass, step interval, time_zone text, ahead interval, lead interval) IS
    'Runs the statements of snowflake_migrate.partition_plan, one transaction each';

CREATE PROCEDURE snowflake_migrate.partition_revert(target regclass) LANGUAGE plpgsql
AS $procedure$
DECLARE
    statements text[];
    statement text;
BEGIN
    IF pg_catalog.now() OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp() THEN
        PERFORM snowflake_internal.refuse('25001', 'snowflake_migrate.partition_revert cannot run inside a transaction block',
            detail => 'It validates foreign keys in transactions of their own.');
    END IF;
    statements := snowflake_migrate_internal.unpartition_table(target);
    FOREACH statement IN ARRAY statements LOOP
        COMMIT;
        PERFORM snowflake_migrate_internal.alter(statement);
    END LOOP;
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate.partition_revert(target regclass) IS
    'Makes a table that snowflake_migrate.partition has partitioned a plain one again, as long as only the first partition has rows, '
    'or cancels an unfinished plan';

CREATE FUNCTION snowflake_migrate.partition_survey(schema_name name DEFAULT NULL)
RETURNS TABLE (target regclass, column_name name, estimated_rows bigint, bytes bigint, obstacles text[])
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT c.oid::regclass, k.name, CASE WHEN c.reltuples >= 0 THEN least(c.reltuples, '1e18')::bigint END, pg_total_relation_size(c.oid),
           snowflake_migrate_internal.obstacle_lines(ARRAY(
               SELECT o FROM snowflake_migrate_internal.partition_obstacles(c.oid, k.name) AS o))
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
    CROSS JOIN LATERAL (SELECT a.attname) AS k (name)
    WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND NOT c.relispartition AND pg_has_role(c.relowner, 'USAGE')
      AND (partition_survey.schema_name IS NULL OR n.nspname = partition_survey.schema_name)
      AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
      AND (snowflake_internal.has_ids(c.oid, a.attname)
           OR EXISTS (SELECT FROM snowflake_migrate_internal.sequence_columns() AS s WHERE s.relation = c.oid AND s.attribute = a.attnum))
    ORDER BY pg_total_relation_size(c.oid) DESC, c.oid::regclass::text
$function$;
COMMENT ON FUNCTION snowflake_migrate.partition_survey(schema_name name) IS
    'The tables of the caller that can become partitioned by the time of their keys, the largest first, and what prevents it';

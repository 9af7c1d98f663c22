-- The progress of copying rows, and the next step.

-- Records that a table's rows are to be copied. An interrupted copy resumes. A
-- finished one starts again, because the caller requested another pass.
CREATE FUNCTION snowflake_internal.migration_record_backfill(target regclass, column_name name, relation regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- Waits for a session that copies the same table.
    step snowflake_internal.progress := snowflake_internal.migration_progress(target, column_name, relation);
    file CONSTANT oid := pg_relation_filenode(relation);
    is_unfinished CONSTANT boolean := step.filenode = file AND (step.blocks_done < step.blocks_total OR step.skipped <> '{}');
BEGIN
    IF is_unfinished IS NOT TRUE THEN
        step.target := target;
        step.column_name := column_name;
        step.relation := relation;
        step.filenode := file;
        step.blocks_done := 0;
        step.blocks_total := ceil(pg_relation_size(relation, 'main')::numeric / current_setting('block_size')::bigint);
        step.skipped := '{}';
        step.rows_done := 0;
        -- A former estimate is kept, because the first pass has enlarged the table.
        step.rows_total := coalesce(step.rows_total, snowflake_internal.migration_row_estimate(relation));
    END IF;
    step.batch_blocks := NULL;
    step.run_rows := 0;
    step.run_seconds := 0;
    step.updated_at := clock_timestamp();
    PERFORM snowflake_internal.migration_keep_progress(step);
END
$function$;
COMMENT ON FUNCTION snowflake_internal.migration_record_backfill(target regclass, column_name name, relation regclass) IS
    'A step of snowflake_migration_plan: records that the rows of a table are to be copied';

-- Records the progress of a batch, in the transaction of the batch.
CREATE FUNCTION snowflake_internal.migration_record_progress(step snowflake_internal.progress)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    step.updated_at := clock_timestamp();
    PERFORM snowflake_internal.migration_keep_progress(step);
END
$function$;
COMMENT ON FUNCTION snowflake_internal.migration_record_progress(step snowflake_internal.progress) IS
    'Used by snowflake_migrate_backfill: records the progress of a batch';

-- The planner's estimate of the number of rows, from the table's present size.
CREATE FUNCTION snowflake_internal.migration_row_estimate(relation regclass)
RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN c.reltuples >= 0 AND c.relpages > 0
                THEN round(c.reltuples / c.relpages * size.blocks)
                -- Not analyzed yet: estimated from the width of a row, as the planner does.
                ELSE round(size.blocks * ((size.block - 24) / (28 + size.width)::double precision)) END::bigint
    FROM pg_class AS c
    CROSS JOIN LATERAL (
        SELECT pg_relation_size(c.oid, 'main')::numeric / b.block AS blocks, b.block,
               (SELECT sum(CASE WHEN a.attlen > 0 THEN a.attlen ELSE 32 END) FROM pg_attribute AS a
                WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS width
        FROM (SELECT current_setting('block_size')::bigint AS block) AS b
    ) AS size
    WHERE c.oid = relation
$function$;
COMMENT ON FUNCTION snowflake_internal.migration_row_estimate(relation regclass) IS
    'Used by snowflake_migrations: the planner''s estimate of the number of rows';

-- The next step.
CREATE FUNCTION snowflake_internal.migration_online_step(target regclass, column_name name)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE
        WHEN EXISTS (SELECT FROM snowflake_internal.migration_shadows(target, column_name) AS s
                     WHERE s.shadow IS NULL) THEN 'adding shadow columns'
        WHEN EXISTS (SELECT FROM snowflake_internal.migration_shadows(target, column_name) AS s
                     WHERE NOT s.is_filled)
            THEN CASE WHEN EXISTS (SELECT FROM snowflake_internal.progress AS p
                                   WHERE p.target = migration_online_step.target
                                     AND p.column_name = migration_online_step.column_name
                                     AND (p.blocks_done < p.blocks_total OR p.skipped <> '{}'))
                      THEN 'backfill' ELSE 'validating rows' END
        WHEN EXISTS (SELECT FROM snowflake_internal.migration_shadow_indexes(target, column_name) AS i
                     WHERE NOT i.is_ready) THEN 'building indexes'
        WHEN EXISTS (SELECT FROM snowflake_internal.migration_shadow_foreign_keys(target, column_name) AS f
                     WHERE NOT f.is_ready) THEN 'adding foreign keys'
        ELSE 'ready to swap' END
$function$;
COMMENT ON FUNCTION snowflake_internal.migration_online_step(target regclass, column_name name) IS
    'Used by snowflake_migrations: the next step';

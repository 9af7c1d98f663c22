-- How far the copying of rows is: for whoever watches, and for a backfill that
-- was interrupted. That all rows are copied is not concluded from it: the
-- constraint that is validated afterwards looks at each of them.
CREATE TABLE snowflake_progress (
    target regclass NOT NULL,
    column_name name NOT NULL,
    relation regclass NOT NULL,
    -- The table's file: one that was written anew has its rows elsewhere.
    filenode oid,
    blocks_done bigint NOT NULL DEFAULT 0,
    blocks_total bigint NOT NULL DEFAULT 0,
    batch_blocks bigint,
    -- Blocks with rows that other transactions had locked.
    skipped int8multirange NOT NULL DEFAULT '{}',
    rows_done bigint NOT NULL DEFAULT 0,
    rows_total bigint NOT NULL DEFAULT 0,
    -- Of the present run, or the last one.
    run_rows bigint NOT NULL DEFAULT 0,
    run_seconds double precision NOT NULL DEFAULT 0,
    updated_at timestamp with time zone NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    PRIMARY KEY (target, column_name, relation)
) WITH (fillfactor = 50);
GRANT SELECT ON snowflake_progress TO PUBLIC;

-- Each server has its own, as of snowflake_origins.
CREATE TRIGGER snowflake_progress_stay BEFORE INSERT OR UPDATE OR DELETE ON snowflake_progress
    FOR EACH ROW EXECUTE FUNCTION snowflake_origins_stay();
ALTER TABLE snowflake_progress ENABLE REPLICA TRIGGER snowflake_progress_stay;

-- Notes that a table's rows are to be copied. One that is through begins anew:
-- then somebody has reason to ask again. One that was interrupted goes on.
CREATE FUNCTION snowflake_migration_begin(target regclass, column_name name, relation regclass)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    blocks CONSTANT bigint := ceil(pg_relation_size(relation, 'main')::numeric / current_setting('block_size')::bigint);
    is_going_on boolean;
    known bigint;
BEGIN
    PERFORM @extschema@.snowflake_migration_require_owner(target);
    PERFORM @extschema@.snowflake_migration_require_owner(relation);
    DELETE FROM @extschema@.snowflake_progress AS p
    WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = p.relation)
       OR NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = p.target);
    SELECT p.filenode = pg_relation_filenode(snowflake_migration_begin.relation)
           AND (p.blocks_done < p.blocks_total OR p.skipped <> '{}') INTO is_going_on
    FROM @extschema@.snowflake_progress AS p
    WHERE p.target = snowflake_migration_begin.target AND p.column_name = snowflake_migration_begin.column_name
      AND p.relation = snowflake_migration_begin.relation;
    IF is_going_on THEN
        UPDATE @extschema@.snowflake_progress AS p SET batch_blocks = NULL, run_rows = 0, run_seconds = 0, updated_at = clock_timestamp()
        WHERE p.target = snowflake_migration_begin.target AND p.column_name = snowflake_migration_begin.column_name
          AND p.relation = snowflake_migration_begin.relation;
    ELSE
        DELETE FROM @extschema@.snowflake_progress AS p
        WHERE p.target = snowflake_migration_begin.target AND p.column_name = snowflake_migration_begin.column_name
          AND p.relation = snowflake_migration_begin.relation
        RETURNING p.rows_total INTO known;
        INSERT INTO @extschema@.snowflake_progress (target, column_name, relation, filenode, blocks_total, rows_total)
        SELECT snowflake_migration_begin.target, snowflake_migration_begin.column_name, snowflake_migration_begin.relation,
               pg_relation_filenode(snowflake_migration_begin.relation), blocks,
               -- The table has grown by what the first time has written.
               coalesce(known, @extschema@.snowflake_migration_row_estimate(snowflake_migration_begin.relation));
    END IF;
END
$function$;

-- Where a batch begins. Two sessions that copy the same table take turns.
CREATE FUNCTION snowflake_migration_progress(target regclass, column_name name, relation regclass)
RETURNS snowflake_progress LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    step @extschema@.snowflake_progress;
BEGIN
    PERFORM @extschema@.snowflake_migration_require_owner(relation);
    SELECT p.* INTO step FROM @extschema@.snowflake_progress AS p
    WHERE p.target = snowflake_migration_progress.target AND p.column_name = snowflake_migration_progress.column_name
      AND p.relation = snowflake_migration_progress.relation
    FOR UPDATE;
    RETURN step;
END
$function$;

-- Notes what a batch has done. Called in its transaction.
CREATE FUNCTION snowflake_migration_note(step snowflake_progress)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM @extschema@.snowflake_migration_require_owner(step.relation);
    UPDATE @extschema@.snowflake_progress AS p
    SET blocks_done = step.blocks_done, batch_blocks = step.batch_blocks, skipped = step.skipped, rows_done = step.rows_done,
        run_rows = step.run_rows, run_seconds = step.run_seconds,
        updated_at = clock_timestamp()
    WHERE p.target = step.target AND p.column_name = step.column_name AND p.relation = step.relation;
END
$function$;

-- Forgets it: the migration is over, or was taken back.
CREATE FUNCTION snowflake_migration_end(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM @extschema@.snowflake_migration_require_owner(target);
    DELETE FROM @extschema@.snowflake_progress AS p
    WHERE p.target = snowflake_migration_end.target AND p.column_name = snowflake_migration_end.column_name;
END
$function$;

-- How many rows a table has, as the planner guesses from its present size.
CREATE FUNCTION snowflake_migration_row_estimate(relation regclass)
RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN c.reltuples >= 0 AND c.relpages > 0
                THEN round(c.reltuples / c.relpages * size.blocks)
                -- Not analyzed yet: as the planner, from the width of a row.
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

-- What comes next.
CREATE FUNCTION snowflake_migration_online_step(target regclass, column_name name)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE
        WHEN EXISTS (SELECT FROM @extschema@.snowflake_migration_shadows(target, column_name) AS s
                     WHERE s.shadow IS NULL) THEN 'adding shadow columns'
        WHEN EXISTS (SELECT FROM @extschema@.snowflake_migration_shadows(target, column_name) AS s
                     WHERE NOT s.is_filled)
            THEN CASE WHEN EXISTS (SELECT FROM @extschema@.snowflake_progress AS p
                                   WHERE p.target = snowflake_migration_online_step.target
                                     AND p.column_name = snowflake_migration_online_step.column_name
                                     AND (p.blocks_done < p.blocks_total OR p.skipped <> '{}'))
                      THEN 'backfill' ELSE 'validating rows' END
        WHEN EXISTS (SELECT FROM @extschema@.snowflake_migration_shadow_indexes(target, column_name) AS i
                     WHERE NOT i.is_ready) THEN 'building indexes'
        WHEN EXISTS (SELECT FROM @extschema@.snowflake_migration_shadow_foreign_keys(target, column_name) AS f
                     WHERE NOT f.is_ready) THEN 'adding foreign keys'
        ELSE 'ready to swap' END
$function$;

CREATE VIEW snowflake_migrations AS
    SELECT c.oid::pg_catalog.regclass AS table_name,
           p.column_name,
           @extschema@.snowflake_migration_online_step(c.oid, p.column_name) AS step,
           p.rows_done, p.rows_total,
           pg_catalog.round(p.run_rows / nullif(p.run_seconds, 0))::bigint AS rows_per_second,
           pg_catalog.make_interval(secs => pg_catalog.round(
               (p.rows_total - p.rows_done) * p.run_seconds / nullif(p.run_rows, 0))) AS time_left
    FROM (SELECT target, column_name, pg_catalog.sum(rows_done)::bigint AS rows_done, pg_catalog.sum(rows_total)::bigint AS rows_total,
                 pg_catalog.sum(run_rows) ::double precision AS run_rows, pg_catalog.sum(run_seconds) AS run_seconds
          FROM snowflake_progress
          GROUP BY target, column_name) AS p
    JOIN pg_catalog.pg_class AS c ON c.oid = p.target
    WHERE EXISTS (SELECT FROM @extschema@.snowflake_migration_shadows(c.oid, p.column_name) AS s WHERE s.trigger_oid IS NOT NULL);

GRANT SELECT ON snowflake_migrations TO PUBLIC;

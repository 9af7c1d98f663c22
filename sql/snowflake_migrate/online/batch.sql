-- Copying the narrow columns to their shadows, batch by batch.
--
-- A batch is a range of blocks, and one transaction. It updates the rows whose
-- shadow value is wrong, and skips rows that other transactions have locked. It
-- never waits for a row lock, so other sessions wait for it only while it writes.
-- Skipped rows are tried again later.

-- The user's triggers that an UPDATE of shadow columns would fire.
CREATE FUNCTION snowflake_migrate_internal.update_triggers(relations regclass[])
RETURNS TABLE (relation regclass, trigger_name name, enabled text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT t.tgrelid, t.tgname, t.tgenabled::text
    FROM pg_trigger AS t
    WHERE t.tgrelid = ANY (relations) AND NOT t.tgisinternal AND t.tgenabled <> 'D'
      AND t.tgfoid <> 'snowflake_migrate_internal.shadow()'::regprocedure
      -- UPDATE of any column.
      AND t.tgtype & 16 <> 0 AND cardinality(t.tgattr::smallint[]) = 0
$function$;

-- A batch of a backfill: its blocks, from first to before last; how to find and copy their rows; and the numbers
-- of rows.
CREATE TYPE snowflake_migrate_internal.batch AS (
    relation regclass, assignments text, condition text, search_path text, size integer,
    is_retry boolean, first bigint, last bigint, to_copy bigint, written bigint, missing bigint, locked_blocks int8multirange
);

-- Chooses the blocks of a batch: the next ones, or those of skipped rows. The range
-- shrinks until it has no more rows than a batch.
--
-- The statements run by the caller's search path, because planning them may
-- already inline functions of the table's indexes, and triggers run with them.
-- The types of both columns have an operator = in pg_catalog, which is first.
CREATE FUNCTION snowflake_migrate_internal.choose_blocks(
    step snowflake_migrate_internal.progress, is_missing text, INOUT batch snowflake_migrate_internal.batch
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF batch.is_retry THEN
        -- A random range, so that rows that stay locked do not delay the other ranges.
        SELECT lower(r), upper(r) INTO batch.first, batch.last FROM unnest(step.skipped) AS r ORDER BY random() LIMIT 1;
    ELSE
        batch.first := step.blocks_done;
        -- The size of the first batch follows from the estimated number of rows.
        batch.last := least(batch.first + coalesce(step.batch_blocks,
                                greatest(1, batch.size * step.blocks_total / greatest(step.rows_total, 1))), step.blocks_total);
    END IF;
    LOOP
        batch.condition := format('source.ctid OPERATOR(pg_catalog.>=) %L::pg_catalog.tid '
                                  'AND source.ctid OPERATOR(pg_catalog.<) %L::pg_catalog.tid AND %s',
                                  format('(%s,0)', batch.first), format('(%s,0)', batch.last), is_missing);
        SELECT r.found[1]::bigint INTO batch.missing FROM snowflake_internal.run(batch.relation, format(
            'SELECT pg_catalog.count(*) FROM ONLY %s AS source WHERE %s',
            snowflake_migrate_internal.name_of(batch.relation), batch.condition), batch.search_path) AS r (found);
        EXIT WHEN batch.missing <= batch.size OR batch.last - batch.first <= 1;
        batch.last := batch.first + greatest(1, (batch.last - batch.first) * batch.size / batch.missing);
    END LOOP;
    batch.to_copy := batch.missing;  -- Rows that move are not counted twice.
    batch.written := 0;
END
$function$;

-- Copies the missing values of the blocks, without firing the user's triggers, and
-- finds the blocks with rows that were locked.
CREATE FUNCTION snowflake_migrate_internal.copy_blocks(keys snowflake_migrate_internal.key[], INOUT batch snowflake_migrate_internal.batch)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    quoted_name CONSTANT text := snowflake_migrate_internal.name_of(batch.relation);
    former_role text;
    former_copying CONSTANT text := coalesce(current_setting('snowflake_migrate_internal.copying', true), '');
    former_timeout text;
    -- The check of a DEFERRABLE constraint waits for other transactions, at the end
    -- of the statement here. They may wait for the rows written above.
    has_deferrable CONSTANT boolean := EXISTS (
        SELECT FROM pg_constraint AS k
        WHERE k.conrelid = batch.relation AND k.contype IN ('p', 'u', 'x', 'f', 't') AND k.condeferrable);
BEGIN
    -- As the UPDATE does. No trigger can be newer than the check.
    PERFORM snowflake_internal.run(batch.relation, format('LOCK TABLE ONLY %s IN ROW EXCLUSIVE MODE', quoted_name));
    IF NOT snowflake_migrate_internal.copies_as_replica(batch.relation) THEN
        IF EXISTS (SELECT FROM snowflake_migrate_internal.update_triggers(ARRAY[batch.relation]) AS t WHERE t.enabled IN ('O', 'A')) THEN
            PERFORM snowflake_migrate_internal.require_guarded(batch.relation);
            SET LOCAL snowflake_migrate_internal.copying = 'on';
        END IF;
    ELSIF EXISTS (SELECT FROM snowflake_migrate_internal.update_triggers(ARRAY[batch.relation]) AS t WHERE t.enabled = 'O') THEN
        -- The setting is also that of the owner's code, which the UPDATE runs: it
        -- disables foreign keys of other roles, and marks rows as replicated. So the
        -- caller lends it to no owner who may not set it.
        PERFORM snowflake_migrate_internal.refuse_obstacles(
            ARRAY(SELECT o FROM snowflake_migrate_internal.update_obstacles(ARRAY[batch.relation], true) AS o),
            format('cannot copy %s', snowflake_migrate_internal.key_names(keys)), text 'Remove the obstacles, then run it again.');
        former_role := current_setting('session_replication_role');
        SET LOCAL session_replication_role = replica;
    END IF;
    IF has_deferrable THEN
        SET CONSTRAINTS ALL IMMEDIATE;
        former_timeout := current_setting('lock_timeout');
        EXECUTE format('SET LOCAL lock_timeout = %L', snowflake_migrate_internal.short_wait());
    END IF;
    BEGIN
        SELECT r.found[1]::bigint INTO batch.written FROM snowflake_internal.run(batch.relation, format(
            'WITH written AS (
                 UPDATE ONLY %1$s AS source SET %2$s
                 WHERE source.ctid OPERATOR(pg_catalog.=) ANY (ARRAY(
                     SELECT source.ctid FROM ONLY %1$s AS source WHERE %3$s
                     LIMIT %4$L::pg_catalog.int8 FOR NO KEY UPDATE SKIP LOCKED))
                 RETURNING 1)
             SELECT pg_catalog.count(*) FROM written',
            quoted_name, batch.assignments, batch.condition,
            -- Of different size each time, until one succeeds.
            CASE WHEN has_deferrable AND batch.is_retry THEN ceil(batch.size * random() ^ 3)::bigint ELSE batch.size END),
            batch.search_path) AS r (found);
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        IF NOT has_deferrable THEN
            RAISE;
        END IF;
        -- All rows are tried again.
        batch.written := 0;
    END;
    IF has_deferrable THEN
        EXECUTE format('SET LOCAL lock_timeout = %L', former_timeout);
    END IF;
    IF former_role IS NOT NULL THEN
        EXECUTE format('SET LOCAL session_replication_role = %L', former_role);
    END IF;
    PERFORM set_config('snowflake_migrate_internal.copying', former_copying, true);
    SELECT r.found[1]::bigint, r.found[2]::int8multirange INTO batch.missing, batch.locked_blocks
    FROM snowflake_internal.run(batch.relation, format(
        'SELECT pg_catalog.count(*), pg_catalog.range_agg(pg_catalog.int8range(m.block, m.block OPERATOR(pg_catalog.+) 1))
         FROM (SELECT (source.ctid::pg_catalog.text::pg_catalog.point)[0]::pg_catalog.int8 AS block
               FROM ONLY %s AS source WHERE %s) AS m', quoted_name, batch.condition), batch.search_path) AS r (found);
END
$function$;

-- Records the progress of a batch that has taken some seconds.
CREATE FUNCTION snowflake_migrate_internal.record_batch(
    step snowflake_migrate_internal.progress, batch snowflake_migrate_internal.batch, elapsed double precision
) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- Batches are smaller if rows are large or disks are slow.
    target_seconds CONSTANT double precision := 0.5;
    most_blocks CONSTANT bigint := 8192;
BEGIN
    IF batch.missing > 0 AND batch.written >= batch.size THEN
        -- One block with more rows than a batch: the next batch continues.
        IF NOT batch.is_retry THEN
            step.rows_done := step.rows_done + batch.written;
            step.rows_total := greatest(step.rows_total, step.rows_done);
            step.run_rows := step.run_rows + batch.written;
        END IF;
    ELSIF batch.is_retry THEN
        step.skipped := step.skipped - int8range(batch.first, batch.last)::int8multirange + coalesce(batch.locked_blocks, '{}');
    ELSE
        step.blocks_done := batch.last;
        step.skipped := step.skipped + coalesce(batch.locked_blocks, '{}');
        -- The estimate remains for the blocks that follow; the others have been counted.
        step.rows_total := step.rows_done + batch.to_copy
            + round(greatest(step.rows_total - step.rows_done, 0)
                    * ((step.blocks_total - batch.last)::double precision / (step.blocks_total - batch.first)))::bigint;
        step.rows_done := step.rows_done + batch.to_copy;
        step.run_rows := step.run_rows + batch.to_copy;
        step.batch_blocks := least(most_blocks, greatest(1, (batch.last - batch.first)
            * least(2, batch.size / greatest(batch.written, 1)::double precision, target_seconds / greatest(elapsed, 0.001))));
    END IF;
    -- The time since the last record, including the pauses.
    step.run_seconds := step.run_seconds + extract(epoch FROM clock_timestamp() - (
        SELECT max(p.updated_at) FROM snowflake_migrate_internal.progress AS p
        WHERE p.target = step.target AND p.column_name = step.column_name));
    step.updated_at := clock_timestamp();
    step.bytes_now := pg_total_relation_size(step.relation);
    PERFORM snowflake_migrate_internal.keep_progress(step);
END
$function$;

-- What a backfill reports after a batch of a table.
CREATE FUNCTION snowflake_migrate_internal.batch_report(keys snowflake_migrate_internal.key[], relation regclass, is_waiting boolean)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN is_waiting THEN format('%s: rows are locked by other transactions, and will be tried again', batch_report.relation)
           ELSE format('copying %s: %s %% of all rows (%s of about %s), %s rows/s, %s left', batch_report.relation,
                       coalesce(floor(100 * s.done / nullif(s.total, 0)), 100), s.done, s.total, round(s.rate)::bigint,
                       coalesce(make_interval(secs => round((s.total - s.done) / nullif(s.rate, 0)))::text, 'unknown time')) END
    FROM (SELECT sum(p.rows_done) AS done, sum(p.rows_total) AS total, sum(p.run_rows) / nullif(sum(p.run_seconds), 0) AS rate
          FROM snowflake_migrate_internal.progress AS p
          WHERE p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name) AS s
$function$;

-- Copies the missing values of one range of blocks, and records the progress.
-- is_done is true when no rows remain.
CREATE FUNCTION snowflake_migrate_internal.backfill_batch(
    keys snowflake_migrate_internal.key[], relation regclass, batch_size integer, search_path text DEFAULT NULL,
    OUT is_done boolean, OUT is_waiting boolean, OUT report text
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    started_at CONSTANT timestamptz := clock_timestamp();
    step snowflake_migrate_internal.progress;
    batch snowflake_migrate_internal.batch;
    is_missing text;
BEGIN
    is_waiting := false;
    step := snowflake_migrate_internal.progress((keys[1]).target, (keys[1]).column_name, relation);
    SELECT string_agg(format('%I = source.%I', s.shadow_name, s.narrow), ', '),
           '(' || string_agg(format('source.%I IS DISTINCT FROM source.%I', s.shadow_name, s.narrow), ' OR ') || ')'
    INTO batch.assignments, is_missing
    FROM snowflake_migrate_internal.shadows(keys, relation) AS s
    WHERE s.is_kept;
    IF step.target IS NULL OR batch.assignments IS NULL THEN
        PERFORM snowflake_internal.refuse('55000',
            format('the migration of %s was ended by another session', snowflake_migrate_internal.key_names(keys)));
    ELSIF step.filenode IS DISTINCT FROM pg_relation_filenode(relation) THEN
        -- Rewritten by VACUUM FULL or a similar command.
        PERFORM snowflake_migrate_internal.record_backfill(keys, relation);
        is_done := false;
        report := format('%s was rewritten: its rows are checked again', relation);
        RETURN;
    END IF;
    batch.relation := relation;
    batch.search_path := search_path;
    batch.size := batch_size;
    batch.is_retry := step.blocks_done >= step.blocks_total;
    is_done := batch.is_retry AND step.skipped = '{}';
    IF is_done THEN
        RETURN;
    END IF;
    batch := snowflake_migrate_internal.choose_blocks(step, is_missing, batch);
    IF batch.missing > 0 THEN
        batch := snowflake_migrate_internal.copy_blocks(keys, batch);
    END IF;
    is_waiting := batch.is_retry AND batch.written = 0 AND batch.missing > 0;
    PERFORM snowflake_migrate_internal.record_batch(step, batch, extract(epoch FROM clock_timestamp() - started_at)::double precision);
    report := snowflake_migrate_internal.batch_report(keys, relation, is_waiting);
EXCEPTION WHEN disk_full THEN
    PERFORM snowflake_internal.refuse(SQLSTATE, SQLERRM,
        detail => format('Nothing is lost: this batch of %s was rolled back, and the rows of earlier batches stay copied.', relation),
        hint => 'Free disk space, then request the plan again: it resumes where it was. max_growth of snowflake_migrate.backfill() '
                'stops it before. snowflake_migrate.revert() cancels it.');
END
$function$;

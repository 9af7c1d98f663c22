-- Copying the narrow columns to their shadows, batch by batch.
--
-- A batch is a range of blocks, and one transaction. It updates the rows whose
-- shadow value is wrong, and skips rows that other transactions have locked. It
-- never waits for a row lock, so other sessions wait for it only while it writes.
-- Skipped rows are tried again later.

-- The user's triggers that an UPDATE of a shadow column would fire.
CREATE FUNCTION snowflake_migrate_internal.update_triggers(relation regclass)
RETURNS TABLE (trigger_name name, enabled text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT t.tgname, t.tgenabled::text
    FROM pg_trigger AS t
    WHERE t.tgrelid = relation AND NOT t.tgisinternal AND t.tgenabled <> 'D'
      AND t.tgfoid <> 'snowflake_migrate_internal.shadow()'::regprocedure
      -- UPDATE of any column.
      AND t.tgtype & 16 <> 0 AND cardinality(t.tgattr::smallint[]) = 0
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
    -- Batches are smaller if rows are large or disks are slow.
    target_seconds CONSTANT double precision := 0.5;
    most_blocks CONSTANT bigint := 8192;
    quoted_name CONSTANT text := snowflake_migrate_internal.name_of(relation);
    found text[];
    started_at CONSTANT timestamptz := clock_timestamp();
    step snowflake_migrate_internal.progress;
    assignments text;
    is_missing text;
    in_blocks text;
    is_retry boolean;
    first bigint;
    last bigint;
    missing bigint;
    to_copy bigint;  -- Rows that a batch finds: rows that move are not counted twice.
    written bigint := 0;
    locked_blocks int8multirange;
    elapsed double precision;
    former_role text;
    former_timeout text;
    has_deferrable boolean;
    rate double precision;
BEGIN
    is_waiting := false;
    step := snowflake_migrate_internal.progress((keys[1]).target, (keys[1]).column_name, relation);
    SELECT string_agg(format('%I = source.%I', s.shadow_name, s.narrow), ', '),
           '(' || string_agg(format('source.%I IS DISTINCT FROM source.%I', s.shadow_name, s.narrow), ' OR ') || ')'
    INTO assignments, is_missing
    FROM snowflake_migrate_internal.shadows(keys, relation) AS s
    WHERE s.is_kept;
    IF step.target IS NULL OR assignments IS NULL THEN
        PERFORM snowflake_internal.refuse('55000', format('the migration of %s was ended by another session', snowflake_migrate_internal.key_names(keys)));
    ELSIF step.filenode IS DISTINCT FROM pg_relation_filenode(relation) THEN
        -- Rewritten by VACUUM FULL or a similar command.
        PERFORM snowflake_migrate_internal.record_backfill(keys, relation);
        is_done := false;
        report := format('%s was rewritten: its rows are checked again', relation);
        RETURN;
    END IF;

    is_retry := step.blocks_done >= step.blocks_total;
    is_done := is_retry AND step.skipped = '{}';
    IF is_done THEN
        RETURN;
    ELSIF is_retry THEN
        -- A random range, so that rows that stay locked do not delay the other ranges.
        SELECT lower(r), upper(r) INTO first, last FROM unnest(step.skipped) AS r ORDER BY random() LIMIT 1;
    ELSE
        first := step.blocks_done;
        -- The size of the first batch follows from the estimated number of rows.
        last := least(first + coalesce(step.batch_blocks, greatest(1, batch_size * step.blocks_total / greatest(step.rows_total, 1))),
                      step.blocks_total);
    END IF;

    -- The statements run by the caller's search path, because planning them may
    -- already inline functions of the table's indexes, and triggers run with them.
    -- The types of both columns have an operator = in pg_catalog, which is first.
    LOOP
        in_blocks := format('source.ctid OPERATOR(pg_catalog.>=) %L::pg_catalog.tid AND source.ctid OPERATOR(pg_catalog.<) %L::pg_catalog.tid',
                            format('(%s,0)', first), format('(%s,0)', last));
        found := snowflake_internal.run(relation, format(
            'SELECT pg_catalog.count(*) FROM ONLY %s AS source WHERE %s AND %s',
            quoted_name, in_blocks, is_missing), search_path);
        missing := found[1]::bigint;
        EXIT WHEN missing <= batch_size OR last - first <= 1;
        last := first + greatest(1, (last - first) * batch_size / missing);
    END LOOP;
    to_copy := missing;

    IF missing > 0 THEN
        IF EXISTS (SELECT FROM snowflake_migrate_internal.update_triggers(relation) AS t WHERE t.enabled = 'O') THEN
            -- The setting is also that of the owner's code, which the UPDATE runs: it
            -- disables foreign keys of other roles, and marks rows as replicated. So the
            -- caller lends it to no owner who may not set it. A trigger may be newer than
            -- the check for obstacles.
            IF NOT EXISTS (SELECT FROM pg_class AS c
                           WHERE c.oid = relation AND has_parameter_privilege(c.relowner, 'session_replication_role', 'SET')) THEN
                PERFORM snowflake_migrate_internal.refuse_obstacles(ARRAY(SELECT o FROM snowflake_migrate_internal.update_obstacles(relation) AS o),
                    format('cannot copy %s', snowflake_migrate_internal.key_names(keys)), text 'Remove the obstacles, then run it again.');
            END IF;
            former_role := current_setting('session_replication_role');
            SET LOCAL session_replication_role = replica;
        END IF;
        -- The check of a DEFERRABLE constraint waits for other transactions, at the end
        -- of the statement here. They may wait for the rows written above.
        has_deferrable := EXISTS (SELECT FROM pg_constraint AS k
                                  WHERE k.conrelid = relation AND k.contype IN ('p', 'u', 'x', 'f', 't') AND k.condeferrable);
        IF has_deferrable THEN
            SET CONSTRAINTS ALL IMMEDIATE;
            former_timeout := current_setting('lock_timeout');
            EXECUTE format('SET LOCAL lock_timeout = %L', snowflake_migrate_internal.short_wait());
        END IF;
        BEGIN
            found := snowflake_internal.run(relation, format(
                'WITH written AS (
                     UPDATE ONLY %2$s AS source SET %3$s
                     WHERE source.ctid OPERATOR(pg_catalog.=) ANY (ARRAY(
                         SELECT source.ctid FROM ONLY %2$s AS source WHERE %4$s AND %1$s
                         LIMIT %5$L::pg_catalog.int8 FOR NO KEY UPDATE SKIP LOCKED))
                     RETURNING 1)
                 SELECT pg_catalog.count(*) FROM written',
                is_missing, quoted_name, assignments, in_blocks,
                -- Of different size each time, until one succeeds.
                CASE WHEN has_deferrable AND is_retry THEN ceil(batch_size * random() ^ 3)::bigint ELSE batch_size END), search_path);
            written := found[1]::bigint;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF NOT has_deferrable THEN
                RAISE;
            END IF;
            -- All rows are tried again.
            written := 0;
        END;
        IF has_deferrable THEN
            EXECUTE format('SET LOCAL lock_timeout = %L', former_timeout);
        END IF;
        IF former_role IS NOT NULL THEN
            EXECUTE format('SET LOCAL session_replication_role = %L', former_role);
        END IF;
        found := snowflake_internal.run(relation, format(
            'SELECT pg_catalog.count(*), pg_catalog.range_agg(pg_catalog.int8range(m.block, m.block OPERATOR(pg_catalog.+) 1))
             FROM (SELECT (source.ctid::pg_catalog.text::pg_catalog.point)[0]::pg_catalog.int8 AS block
                   FROM ONLY %s AS source WHERE %s AND %s) AS m',
            quoted_name, in_blocks, is_missing), search_path);
        missing := found[1]::bigint;
        locked_blocks := found[2]::int8multirange;
    END IF;

    elapsed := extract(epoch FROM clock_timestamp() - started_at);
    IF missing > 0 AND written >= batch_size THEN
        -- One block with more rows than a batch: the next batch continues.
        IF NOT is_retry THEN
            step.rows_done := step.rows_done + written;
            step.rows_total := greatest(step.rows_total, step.rows_done);
            step.run_rows := step.run_rows + written;
        END IF;
    ELSIF is_retry THEN
        step.skipped := step.skipped - int8range(first, last)::int8multirange + coalesce(locked_blocks, '{}');
        is_waiting := written = 0 AND missing > 0;
    ELSE
        step.blocks_done := last;
        step.skipped := step.skipped + coalesce(locked_blocks, '{}');
        -- The estimate remains for the blocks that follow; the others have been counted.
        step.rows_total := step.rows_done + to_copy
            + round(greatest(step.rows_total - step.rows_done, 0) * ((step.blocks_total - last)::double precision / (step.blocks_total - first)))::bigint;
        step.rows_done := step.rows_done + to_copy;
        step.run_rows := step.run_rows + to_copy;
        step.batch_blocks := least(most_blocks, greatest(1, (last - first)
            * least(2, batch_size / greatest(written, 1)::double precision, target_seconds / greatest(elapsed, 0.001))));
    END IF;
    -- The time since the last record, including the pauses.
    step.run_seconds := step.run_seconds + extract(epoch FROM clock_timestamp() - (
        SELECT max(p.updated_at) FROM snowflake_migrate_internal.progress AS p
        WHERE p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name));
    PERFORM snowflake_migrate_internal.record_progress(step);

    SELECT m.rows_per_second INTO rate FROM (
        SELECT sum(p.run_rows) / nullif(sum(p.run_seconds), 0) AS rows_per_second
        FROM snowflake_migrate_internal.progress AS p
        WHERE p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name) AS m;
    report := CASE WHEN is_waiting
        THEN format('%s: rows are locked by other transactions, and will be tried again', step.relation)
        ELSE (SELECT format('copying %s: %s %% of all rows (%s of about %s), %s rows/s, %s left', step.relation,
                            coalesce(floor(100 * sum(p.rows_done) / nullif(sum(p.rows_total), 0)), 100), sum(p.rows_done), sum(p.rows_total), round(rate)::bigint,
                            coalesce(make_interval(secs => round((sum(p.rows_total) - sum(p.rows_done)) / nullif(rate, 0)))::text, 'unknown time'))
              FROM snowflake_migrate_internal.progress AS p
              WHERE p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name) END;
END
$function$;

-- The standbys and subscribers that are behind by more than max_replay_lag. Their
-- replay_lag is the age of the last change that they replayed, and does not grow
-- while replay is stuck. So they also have to pass a watermark, a position of the
-- write-ahead log, within that time.
CREATE FUNCTION snowflake_migrate_internal.replay_lag(max_replay_lag interval, INOUT mark pg_lsn, INOUT marked_at timestamptz, OUT lagging text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF mark IS NULL OR NOT EXISTS (SELECT FROM pg_stat_replication AS r WHERE r.state <> 'backup' AND coalesce(r.replay_lsn < mark, true)) THEN
        mark := pg_current_wal_lsn();
        marked_at := clock_timestamp();
    END IF;
    SELECT string_agg(DISTINCT coalesce(nullif(r.application_name, ''), r.pid::text), ', ') INTO lagging
    FROM pg_stat_replication AS r
    WHERE r.state <> 'backup'
      AND (r.replay_lag > max_replay_lag
           OR coalesce(r.replay_lsn < mark, true) AND clock_timestamp() - marked_at > max_replay_lag);
END
$function$;

-- Checks the arguments of the backfill, starts it, and returns the tables whose
-- rows have to be copied.
CREATE FUNCTION snowflake_migrate_internal.backfill_begin(
    keys snowflake_migrate_internal.key[], batch_size integer, pause interval, max_replay_lag interval, max_active_sessions integer
) RETURNS regclass[] LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relations regclass[];
    missing text;
    relation regclass;
BEGIN
    PERFORM snowflake_migrate_internal.require_owner(key.target) FROM unnest(keys) AS key;
    PERFORM snowflake_migrate_internal.exclude_others(keys);
    SELECT array_agg(DISTINCT s.relation) FILTER (WHERE s.is_kept),
           string_agg(format('%s.%I', s.relation, s.narrow), ', ') FILTER (WHERE NOT s.is_kept)
    INTO relations, missing
    FROM snowflake_migrate_internal.shadows(keys) AS s;
    IF missing IS NOT NULL THEN
        PERFORM snowflake_internal.refuse('55000', format('columns have no shadow column yet: %s', missing),
            hint => 'Run the statements of snowflake_migrate.plan() with online => true in order.');
    END IF;
    PERFORM snowflake_migrate_internal.refuse_obstacles(
        ARRAY(SELECT o FROM unnest(relations) AS r (relation)
              CROSS JOIN LATERAL snowflake_migrate_internal.update_obstacles(r.relation) AS o),
        format('cannot copy %s', snowflake_migrate_internal.key_names(keys)), text 'Nothing was changed. Remove the obstacles, then run it again.');
    PERFORM snowflake_migrate_internal.set_pace(keys, batch_size, pause, max_replay_lag, max_active_sessions, NULL);
    -- Another role may have set the limits.
    PERFORM snowflake_migrate_internal.require_statistics(s.max_replay_lag, s.max_active_sessions)
    FROM snowflake_migrate_internal.pace_settings((keys[1]).target, (keys[1]).column_name) AS s;
    relations := ARRAY(SELECT r.relation FROM unnest(relations) AS r (relation) ORDER BY r.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, r.relation::text);
    FOREACH relation IN ARRAY relations LOOP
        PERFORM snowflake_migrate_internal.record_backfill(keys, relation);
    END LOOP;
    RETURN relations;
END
$function$;

-- The tables whose rows are to be copied, and what that takes; NULLs if there are none.
CREATE FUNCTION snowflake_migrate_internal.backfill_needs(
    keys snowflake_migrate_internal.key[], OUT names text[], OUT tables bigint, OUT rows numeric, OUT bytes numeric, OUT wal numeric
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    -- WAL of an updated row: a record of its lock, one of the new row, and an entry
    -- in each index unless the row's page has room (HOT). In addition, each page
    -- is logged in full once after a checkpoint.
    SELECT array_agg(t.relation::text ORDER BY t.relation::text), count(*), sum(t.rows), sum(t.bytes),
           sum(t.rows * (140 + 72 * t.indexes) + t.heap + t.bytes)
    FROM (SELECT DISTINCT s.relation, snowflake_migrate_internal.row_estimate(s.relation) AS rows,
                 pg_relation_size(s.relation) AS heap, pg_relation_size(s.relation) + pg_indexes_size(s.relation) AS bytes,
                 (SELECT count(*) FROM pg_index AS i WHERE i.indrelid = s.relation) AS indexes
          FROM snowflake_migrate_internal.shadows(keys) AS s WHERE NOT s.is_filled) AS t
$function$;

-- The step that copies the rows, and those that check each row afterwards.
CREATE FUNCTION snowflake_migrate_internal.backfill_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    tables text[];
    bytes numeric;
    wal numeric;
    rows numeric;
BEGIN
    SELECT n.names, n.bytes, n.wal, n.rows INTO tables, bytes, wal, rows
    FROM snowflake_migrate_internal.backfill_needs(keys) AS n;
    IF tables IS NULL THEN
        RETURN;
    END IF;
    -- Not needed if all tables are copied. The validation that follows would show
    -- any missing rows.
    IF EXISTS (SELECT FROM snowflake_migrate_internal.shadows(keys) AS s
               LEFT JOIN snowflake_migrate_internal.progress AS p
                   ON p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name AND p.relation = s.relation
               WHERE NOT s.is_filled
                 AND (s.is_kept AND p.blocks_done >= p.blocks_total AND p.skipped = '{}' AND p.filenode = pg_relation_filenode(s.relation)) IS NOT TRUE)
    THEN
        RETURN NEXT snowflake_migrate_internal.step(text 'copy', (keys[1]).target, text 'ROW EXCLUSIVE',
            format('copies about %s of %s', snowflake_migrate_internal.counted(rows::bigint, text 'row'),
                   snowflake_migrate_internal.counted(cardinality(tables), text 'table')),
            format('%s, in batches, one transaction each. Each row is written again: up to %s more disk space until it is vacuumed, and about %s of WAL',
                   snowflake_migrate_internal.some_names(tables), pg_size_pretty(bytes), pg_size_pretty(wal)),
            ARRAY[snowflake_migrate_internal.command(text 'copy', (keys[1]).target,
                format('CALL snowflake_migrate.backfill(%L::pg_catalog.regclass, %L::pg_catalog.name%s)',
                    snowflake_migrate_internal.name_of((keys[1]).target), (keys[1]).column_name,
                    (SELECT format(', %L::pg_catalog.regclass[], %L::pg_catalog.name[]',
                                   array_agg(snowflake_migrate_internal.name_of(k.target) ORDER BY k.place), array_agg(k.column_name ORDER BY k.place))
                     FROM unnest(keys[2:]) WITH ORDINALITY AS k (target, column_name, place) HAVING count(*) > 0)))],
            keys, in_transaction => false);
    END IF;
    RETURN QUERY
        SELECT (snowflake_migrate_internal.step(text 'validation', s.relation, text 'SHARE UPDATE EXCLUSIVE',
            format('checks the copies of %s.%I', s.relation, s.narrow),
            text 'later steps rely on it that each row has its shadow. If it fails (23514), CALL snowflake_migrate.backfill() again',
            ARRAY[snowflake_migrate_internal.command(text 'alter', s.relation,
                format('ALTER TABLE %s VALIDATE CONSTRAINT %I', snowflake_migrate_internal.name_of(s.relation), s.check_name))])).*
        FROM snowflake_migrate_internal.shadows(keys) AS s
        WHERE NOT s.is_filled
        ORDER BY s.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, s.relation::text, s.attribute;
END
$function$;

-- The backfill as a whole: when it waits, how it begins, and what it takes. Its
-- batches are in batch.sql.

-- The standbys and subscribers that are behind by more than max_replay_lag. Their
-- replay_lag is the age of the last change that they replayed, and does not grow
-- while replay is stuck. So they also have to pass a watermark, a position of the
-- write-ahead log, within that time.
CREATE FUNCTION snowflake_migrate_internal.replay_lag(
    max_replay_lag interval, INOUT mark pg_lsn, INOUT marked_at timestamptz, OUT lagging text
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF mark IS NULL
       OR NOT EXISTS (SELECT FROM pg_stat_replication AS r WHERE r.state <> 'backup' AND coalesce(r.replay_lsn < mark, true)) THEN
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
    keys snowflake_migrate_internal.key[], batch_size integer, pause interval, max_replay_lag interval, max_active_sessions integer,
    max_slot_wal text, max_growth text
) RETURNS regclass[] LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relations regclass[];
    missing text;
BEGIN
    PERFORM snowflake_migrate_internal.require_owner(key.target) FROM unnest(keys) AS key;
    PERFORM snowflake_migrate_internal.exclude_others(keys);
    SELECT array_agg(DISTINCT s.relation) FILTER (WHERE s.is_kept AND NOT s.is_partitioned),
           string_agg(format('%s.%I', s.relation, s.narrow), ', ') FILTER (WHERE NOT s.is_kept)
    INTO relations, missing
    FROM snowflake_migrate_internal.shadows(keys) AS s;
    IF missing IS NOT NULL THEN
        PERFORM snowflake_internal.refuse('55000', format('columns have no shadow column yet: %s', missing),
            hint => 'Run the statements of snowflake_migrate.plan() with online => true in order.');
    END IF;
    PERFORM snowflake_migrate_internal.refuse_obstacles(
        ARRAY(SELECT o FROM snowflake_migrate_internal.update_obstacles(relations, true) AS o),
        format('cannot copy %s', snowflake_migrate_internal.key_names(keys)),
        text 'Nothing was changed. Remove the obstacles, then run it again.');
    PERFORM snowflake_migrate_internal.set_pace(keys, batch_size, pause, max_replay_lag, max_active_sessions,
                                                max_slot_wal, max_growth, NULL);
    -- Another role may have set the limits.
    PERFORM snowflake_migrate_internal.require_statistics(s.max_replay_lag, s.max_active_sessions)
    FROM snowflake_migrate_internal.pace_settings((keys[1]).target, (keys[1]).column_name) AS s;
    relations := ARRAY(SELECT r.relation FROM unnest(relations) AS r (relation)
                       ORDER BY r.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, r.relation::text);
    PERFORM snowflake_migrate_internal.record_backfill(keys, r) FROM unnest(relations) AS r;
    RETURN relations;
END
$function$;

-- The tables whose rows are to be copied, and what that takes; NULLs if there are none.
CREATE FUNCTION snowflake_migrate_internal.backfill_needs(
    keys snowflake_migrate_internal.key[], OUT names text[], OUT tables bigint, OUT rows numeric, OUT bytes numeric, OUT wal numeric,
    OUT seconds numeric
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT array_agg(t.relation::text ORDER BY t.relation::text), count(*), sum(t.rows), sum(t.bytes),
           sum(snowflake_migrate_internal.copy_wal(t.relation, t.rows, t.heap)),
           -- Of the rows that are left. What the procedure looks up takes a while for few rows, too.
           0.3 + sum(CASE WHEN NOT snowflake_migrate_internal.is_small(t.relation)
                    THEN snowflake_migrate_internal.copy_seconds(t.relation, t.rows, t.heap) END * coalesce((
               SELECT 1 - least(p.blocks_done::numeric / nullif(p.blocks_total, 0), 1)
               FROM snowflake_migrate_internal.progress AS p
               WHERE p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name AND p.relation = t.relation
                 AND p.filenode = pg_relation_filenode(t.relation)), 1))
    FROM (SELECT DISTINCT s.relation, snowflake_migrate_internal.row_estimate(s.relation) AS rows,
                 pg_relation_size(s.relation) AS heap, pg_relation_size(s.relation) + pg_indexes_size(s.relation) AS bytes
          FROM snowflake_migrate_internal.shadows(keys) AS s WHERE NOT s.is_filled AND NOT s.is_partitioned) AS t
$function$;

-- The step that copies the rows, and those that check each row afterwards.
CREATE FUNCTION snowflake_migrate_internal.backfill_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    needs CONSTANT record := snowflake_migrate_internal.backfill_needs(keys);
BEGIN
    -- Not needed if all tables are copied. The validation that follows would show
    -- any missing rows.
    IF EXISTS (SELECT FROM snowflake_migrate_internal.shadows(keys) AS s
               LEFT JOIN snowflake_migrate_internal.progress AS p
                   ON p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name AND p.relation = s.relation
               WHERE NOT s.is_filled AND NOT s.is_partitioned
                 AND (s.is_kept AND p.blocks_done >= p.blocks_total AND p.skipped = '{}'
                      AND p.filenode = pg_relation_filenode(s.relation)) IS NOT TRUE)
    THEN
        RETURN NEXT snowflake_migrate_internal.step(text 'copy', (keys[1]).target, text 'ROW EXCLUSIVE',
            format('copies about %s of %s', snowflake_migrate_internal.counted(needs.rows::bigint, text 'row'),
                   snowflake_migrate_internal.counted(needs.tables, text 'table')),
            format('%s, in batches, one transaction each. '
                   'Each row is written again: up to %s more disk space until it is vacuumed, and about %s of WAL. Its %s',
                   snowflake_migrate_internal.some_names(needs.names), pg_size_pretty(needs.bytes), pg_size_pretty(needs.wal),
                   snowflake_migrate_internal.pace_report(keys)),
            ARRAY[snowflake_migrate_internal.command(text 'copy', (keys[1]).target,
                format('CALL snowflake_migrate.backfill(%L::pg_catalog.regclass, %L::pg_catalog.name%s)',
                    snowflake_migrate_internal.name_of((keys[1]).target), (keys[1]).column_name,
                    (SELECT format(', %L::pg_catalog.regclass[], %L::pg_catalog.name[]',
                                   array_agg(snowflake_migrate_internal.name_of(k.target) ORDER BY k.place),
                                   array_agg(k.column_name ORDER BY k.place))
                     FROM unnest(keys[2:]) WITH ORDINALITY AS k (target, column_name, place) HAVING count(*) > 0)))],
            keys, in_transaction => false, work => (needs.rows, needs.bytes, needs.seconds)::snowflake_migrate_internal.work);
    END IF;
    RETURN QUERY
        SELECT (snowflake_migrate_internal.step(text 'validation', s.relation, text 'SHARE UPDATE EXCLUSIVE',
            text 'checks the copies of %s.%s',
            text 'later steps rely on it that each row has its shadow. If it fails (23514), CALL snowflake_migrate.backfill() again',
            ARRAY[snowflake_migrate_internal.command(text 'alter', s.relation,
                format('ALTER TABLE %s VALIDATE CONSTRAINT %I', snowflake_migrate_internal.name_of(s.relation), s.check_name))],
            names => ARRAY[s.relation::text, quote_ident(s.narrow)], work => snowflake_migrate_internal.scan_work(s.relation))).*
        FROM snowflake_migrate_internal.shadows(keys) AS s
        WHERE NOT s.is_filled
        -- Partitions first, so that their parent has nothing left to read.
        ORDER BY s.declared_by IN (SELECT k.target FROM unnest(keys) AS k) DESC, s.declared_by::text, s.is_partitioned,
                 s.relation <> s.declared_by DESC, s.relation::text, s.attribute;
END
$function$;

-- What fills a disk while rows are copied: WAL that replication slots keep, files that
-- grow, and dead rows that no vacuum may remove. SQL cannot see free space.

-- A size as a person writes it, '20 GB'; 0 removes a limit.
CREATE FUNCTION snowflake_migrate_internal.limit_bytes(argument text, size text)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    bytes bigint;
BEGIN
    BEGIN
        bytes := pg_size_bytes(size);
    EXCEPTION WHEN data_exception THEN
        PERFORM snowflake_internal.refuse('22023', format('invalid size of %s: "%s"', argument, size),
            hint => 'Write a number and a unit: 20 GB.');
    END;
    IF bytes < 0 THEN
        PERFORM snowflake_internal.refuse('22023', format('%s must not be negative, but is %s', argument, size),
            hint => '0 removes the limit.');
    END IF;
    RETURN bytes;
END
$function$;

-- The most WAL that a slot may keep: max_slot_wal_keep_size in bytes; NULL without a limit.
CREATE FUNCTION snowflake_migrate_internal.slot_wal_kept_at_most()
RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT nullif(greatest(pg_size_bytes(current_setting('max_slot_wal_keep_size')), -1), -1)
$function$;

-- The replication slots that keep WAL, and how much. A lost one keeps none. A standby
-- has no position of its own to compare with, and no migrations.
CREATE FUNCTION snowflake_migrate_internal.slots_with_wal()
RETURNS TABLE (slot_name name, is_active boolean, kept bigint, until_lost bigint) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF pg_is_in_recovery() THEN
        RETURN;
    END IF;
    RETURN QUERY
        SELECT s.slot_name, s.active, greatest(pg_current_wal_lsn() - s.restart_lsn, 0)::bigint, s.safe_wal_size
        FROM pg_replication_slots AS s
        WHERE s.restart_lsn IS NOT NULL AND s.wal_status IS DISTINCT FROM 'lost';
END
$function$;

-- What the backfill waits for because of the disk; NULLs if it does not.
CREATE FUNCTION snowflake_migrate_internal.disk_wait(
    keys snowflake_migrate_internal.key[], max_slot_wal bigint, max_growth bigint, OUT cause text, OUT report text
) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    slots record;
    -- Since the backfill first began, after its last batch of each table; NULL before.
    grown CONSTANT bigint := (
        SELECT sum(p.bytes_now - p.bytes_before)::bigint FROM snowflake_migrate_internal.progress AS p
        WHERE p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name AND max_growth IS NOT NULL);
BEGIN
    IF grown >= max_growth THEN
        cause := format('max_growth: the tables have grown by %s', pg_size_pretty(max_growth));
        report := format('stopped: the tables have grown by %s, and max_growth is %s. Nothing is lost. When the disk has space, '
                         'CALL snowflake_migrate.pace(%L, max_growth => ...) with a larger one resumes it',
                         pg_size_pretty(grown), pg_size_pretty(max_growth), (keys[1]).target);
        RETURN;
    END IF;
    IF max_slot_wal IS NOT NULL THEN
        SELECT snowflake_migrate_internal.some_names(array_agg(quote_ident(s.slot_name) ORDER BY s.slot_name)) AS names, max(s.kept) AS kept
        INTO slots
        FROM snowflake_migrate_internal.slots_with_wal() AS s WHERE s.kept > max_slot_wal HAVING count(*) > 0;
        IF slots.names IS NOT NULL THEN
            cause := format('replication slots: %s keep more than %s of WAL', slots.names, pg_size_pretty(max_slot_wal));
            report := format('waiting for replication slots: %s (max_slot_wal is %s, and up to %s are kept). '
                             'Start their consumers, or drop slots that are not used any more',
                             slots.names, pg_size_pretty(max_slot_wal), pg_size_pretty(slots.kept));
        END IF;
    END IF;
END
$function$;

-- Who has kept dead rows of this database from being removed for more than a minute: the
-- one with the oldest snapshot. Other roles' sessions are visible to members of
-- pg_read_all_stats only. The caller's own transaction is short.
CREATE FUNCTION snowflake_migrate_internal.vacuum_held_back_by()
RETURNS text LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp SET intervalstyle = 'postgres'
AS $function$
    SELECT h.holder
    FROM (SELECT format('process %s, whose transaction is open for %s', a.pid,
                        make_interval(secs => floor(extract(epoch FROM clock_timestamp() - a.xact_start)))) AS holder,
                 greatest(age(a.backend_xid), age(a.backend_xmin)) AS age
          FROM pg_stat_activity AS a
          WHERE a.datname = current_database() AND a.backend_type <> 'autovacuum worker' AND a.pid <> pg_backend_pid()
            AND coalesce(a.backend_xid, a.backend_xmin) IS NOT NULL AND clock_timestamp() - a.xact_start > interval '1 minute'
        UNION ALL
          SELECT format('prepared transaction %L, open for %s', p.gid,
                        make_interval(secs => floor(extract(epoch FROM clock_timestamp() - p.prepared)))), age(p.transaction)
          FROM pg_prepared_xacts AS p
          WHERE p.database = current_database() AND clock_timestamp() - p.prepared > interval '1 minute'
        UNION ALL
          SELECT format('inactive replication slot %I', s.slot_name), age(s.xmin)
          FROM pg_replication_slots AS s
          WHERE s.xmin IS NOT NULL AND NOT s.active) AS h
    ORDER BY h.age DESC
    LIMIT 1
$function$;

-- Dead rows of the tables of a migration, as the statistics have them, the time of the last vacuum of the one that has
-- most of them, and what they wait for.
CREATE FUNCTION snowflake_migrate_internal.dead_rows(
    keys snowflake_migrate_internal.key[], OUT dead_rows bigint, OUT last_vacuum timestamptz, OUT held_back_by text
) LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT sum(t.dead)::bigint, (array_agg(t.last_vacuum ORDER BY t.dead DESC, t.relation))[1],
           snowflake_migrate_internal.vacuum_held_back_by()
    FROM (SELECT p.relation::oid AS relation, pg_stat_get_dead_tuples(p.relation) AS dead,
                 greatest(pg_stat_get_last_vacuum_time(p.relation), pg_stat_get_last_autovacuum_time(p.relation)) AS last_vacuum
          FROM snowflake_migrate_internal.progress AS p
          WHERE p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name) AS t
$function$;

-- What the NOTICE of progress adds, because vacuum cannot remove what is being replaced.
-- A session reports to the statistics when its CALL ends, so its own rows are added.
CREATE FUNCTION snowflake_migrate_internal.vacuum_report(keys snowflake_migrate_internal.key[])
RETURNS text LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN d.held_back_by IS NOT NULL
                THEN format('; about %s dead rows, which vacuum cannot remove because of %s', d.dead_rows + own.rows, d.held_back_by) END
    FROM snowflake_migrate_internal.dead_rows(keys) AS d
    CROSS JOIN (SELECT sum(p.run_rows) AS rows
                FROM snowflake_migrate_internal.progress AS p
                WHERE p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name) AS own
$function$;

-- What the first NOTICE of a backfill says: its pace, and what has no limit.
CREATE FUNCTION snowflake_migrate_internal.pace_report(keys snowflake_migrate_internal.key[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET intervalstyle = 'postgres'
AS $function$
    SELECT concat(format('pace: batches of at most %s rows, a pause of %s ms after each',
                         s.batch_size, round(1000 * extract(epoch FROM s.pause))),
                  ', replay lag at most ' || s.max_replay_lag,
                  ', slots keep at most ' || pg_size_pretty(s.max_slot_wal),
                  ', growth at most ' || pg_size_pretty(s.max_growth),
                  ', other active sessions at most ' || s.max_active_sessions,
                  '. No limit: ' || nullif(concat_ws(', ',
                      CASE WHEN s.max_replay_lag IS NULL THEN 'max_replay_lag (standbys)' END,
                      CASE WHEN s.max_active_sessions IS NULL THEN 'max_active_sessions (load)' END,
                      CASE WHEN s.max_slot_wal IS NULL THEN 'max_slot_wal (WAL of replication slots)' END,
                      CASE WHEN s.max_growth IS NULL THEN 'max_growth (nothing watches the disk: SQL cannot see free space)' END), ''))
    FROM snowflake_migrate_internal.pace_settings((keys[1]).target, (keys[1]).column_name) AS s
$function$;

-- The WAL that a migration will write, about.
CREATE FUNCTION snowflake_migrate_internal.wal_needs(keys snowflake_migrate_internal.key[], online boolean)
RETURNS numeric LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF online THEN
        RETURN coalesce((SELECT n.wal FROM snowflake_migrate_internal.backfill_needs(keys) AS n), 0)
            + coalesce((SELECT sum(snowflake_migrate_internal.main_bytes(i.index)) FROM snowflake_migrate_internal.shadow_indexes(keys) AS i
                        WHERE NOT i.is_ready), 0);
    END IF;
    RETURN (SELECT coalesce(sum(snowflake_migrate_internal.rewrite_wal(
                snowflake_migrate_internal.row_estimate(t.relation), snowflake_migrate_internal.total_bytes(t.relation))), 0)
            FROM (SELECT DISTINCT f.relation FROM snowflake_migrate_internal.linked_tree(keys) AS f WHERE f.is_narrow) AS t
            JOIN pg_class AS c ON c.oid = t.relation AND c.relkind = 'r');
END
$function$;

-- Warns of slots that will keep the WAL of a migration, and of those that would be lost.
CREATE FUNCTION snowflake_migrate_internal.warn_of_slots(keys snowflake_migrate_internal.key[], online boolean)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    most CONSTANT bigint := snowflake_migrate_internal.slot_wal_kept_at_most();
    remedy CONSTANT text := CASE WHEN online
        THEN ' max_slot_wal of snowflake_migrate.backfill() limits what slots keep: it waits for them.' ELSE '' END;
    wal numeric;
    inactive text;
    kept bigint;
    lost text;
BEGIN
    IF NOT EXISTS (SELECT FROM snowflake_migrate_internal.slots_with_wal()) THEN
        RETURN;
    END IF;
    wal := snowflake_migrate_internal.wal_needs(keys, online);
    IF wal = 0 THEN
        RETURN;
    END IF;
    SELECT snowflake_migrate_internal.some_names(array_agg(quote_ident(s.slot_name) ORDER BY s.slot_name) FILTER (WHERE NOT s.is_active)),
           max(s.kept) FILTER (WHERE NOT s.is_active),
           snowflake_migrate_internal.some_names(array_agg(quote_ident(s.slot_name) ORDER BY s.slot_name) FILTER (WHERE s.until_lost < wal))
    INTO inactive, kept, lost
    FROM snowflake_migrate_internal.slots_with_wal() AS s;
    IF inactive IS NOT NULL THEN
        RAISE WARNING 'replication slots that are not active will keep all WAL of the migration, about %', pg_size_pretty(wal)
            USING DETAIL = format('Inactive: %s. They keep up to %s now. ', inactive, pg_size_pretty(kept))
                           || CASE WHEN most IS NULL THEN 'max_slot_wal_keep_size does not limit it: the disk may become full.'
                                   ELSE format('max_slot_wal_keep_size is %s.', pg_size_pretty(most)) END,
                  HINT = 'Before the migration, start their consumers, or drop slots that are not used any more.' || remedy;
    END IF;
    IF lost IS NOT NULL THEN
        RAISE WARNING 'replication slots will be lost if their consumers fall behind by the WAL of the migration, about %',
            pg_size_pretty(wal)
            USING DETAIL = format('Slots: %s. max_slot_wal_keep_size is %s.', lost, pg_size_pretty(most)),
                  HINT = 'Increase max_slot_wal_keep_size, if the disk has space.' || remedy;
    END IF;
END
$function$;

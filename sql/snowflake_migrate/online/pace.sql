-- How fast rows are copied: the settings, which another session may change, and
-- what the backfill waits for.

-- Commits, and waits without a snapshot.
CREATE PROCEDURE snowflake_migrate_internal.sleep(milliseconds integer)
    LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_sleep_wrapper';

-- The settings that hold now. Without arguments they are those that protect what SQL
-- can see: standbys, if the role may see them, and slots that would be lost. How many
-- active sessions are many depends on the machine, so there is no default. The owner of the table may have written values that
-- snowflake_migrate.pace() rejects.
CREATE FUNCTION snowflake_migrate_internal.pace_settings(
    target regclass, column_name name,
    OUT batch_size integer, OUT pause interval, OUT max_replay_lag interval, OUT max_active_sessions integer,
    OUT max_slot_wal bigint, OUT max_growth bigint, OUT is_paused boolean
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT greatest(coalesce(p.batch_size, 10000), 1), greatest(coalesce(p.pause, interval '20 milliseconds'), interval '0'),
           nullif(coalesce(p.max_replay_lag,
                           CASE WHEN pg_has_role('pg_read_all_stats', 'USAGE') THEN interval '10 seconds' END), interval '0'),
           p.max_active_sessions,
           nullif(coalesce(p.max_slot_wal, snowflake_migrate_internal.slot_wal_kept_at_most() / 2), 0),
           p.max_growth, coalesce(p.is_paused, false)
    FROM (VALUES (true)) AS always (is_one)
    LEFT JOIN snowflake_migrate_internal.pace AS p
        ON p.target = pace_settings.target AND p.column_name = pace_settings.column_name
$function$;

-- Fails unless the current role can see what these limits need.
CREATE FUNCTION snowflake_migrate_internal.require_statistics(max_replay_lag interval, max_active_sessions integer)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF pg_has_role('pg_read_all_stats', 'USAGE') THEN
        RETURN;
    ELSIF max_replay_lag IS NOT NULL THEN
        PERFORM snowflake_internal.refuse('42501', 'permission denied to read the replay lag of standbys',
            hint => format('GRANT pg_monitor TO %I, or leave max_replay_lag out.', current_user));
    ELSIF max_active_sessions IS NOT NULL THEN
        PERFORM snowflake_internal.refuse('42501', 'permission denied to read the state of other sessions',
            hint => format('GRANT pg_monitor TO %I, or leave max_active_sessions out.', current_user));
    END IF;
END
$function$;

-- Checks and records the settings that are not NULL. The others stay as they are.
CREATE FUNCTION snowflake_migrate_internal.set_pace(
    keys snowflake_migrate_internal.key[],
    batch_size integer, pause interval, max_replay_lag interval, max_active_sessions integer,
    max_slot_wal text, max_growth text, is_paused boolean
) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    pace snowflake_migrate_internal.pace;
    slot_bytes CONSTANT bigint := snowflake_migrate_internal.limit_bytes('max_slot_wal', max_slot_wal);
    growth_bytes CONSTANT bigint := snowflake_migrate_internal.limit_bytes('max_growth', max_growth);
BEGIN
    PERFORM snowflake_internal.refuse('22023', format('%s, but is %s', c.rule, c.value), hint => c.hint)
    FROM (VALUES ('batch_size must be at least 1', batch_size < 1, batch_size::text, NULL),
                 ('pause must not be negative', pause < interval '0', pause::text, NULL),
                 ('max_replay_lag must not be negative', max_replay_lag < interval '0', max_replay_lag::text, '0 removes the limit.'),
                 ('max_active_sessions must be at least -1', max_active_sessions < -1, max_active_sessions::text, '-1 removes the limit.')
         ) AS c (rule, is_broken, value, hint)
    WHERE c.is_broken;
    IF num_nonnulls(batch_size, pause, max_replay_lag, max_active_sessions, max_slot_wal, max_growth, is_paused) = 0 THEN
        RETURN;
    END IF;
    PERFORM snowflake_migrate_internal.require_statistics(nullif(max_replay_lag, interval '0'), nullif(max_active_sessions, -1));
    -- Waits for a session that changes the same pace.
    pace := snowflake_migrate_internal.pace((keys[1]).target, (keys[1]).column_name);
    pace.target := (keys[1]).target;
    pace.column_name := (keys[1]).column_name;
    pace.batch_size := coalesce(set_pace.batch_size, pace.batch_size);
    pace.pause := coalesce(set_pace.pause, pace.pause);
    pace.max_replay_lag := coalesce(set_pace.max_replay_lag, pace.max_replay_lag);
    pace.max_active_sessions := nullif(coalesce(set_pace.max_active_sessions, pace.max_active_sessions), -1);
    pace.max_slot_wal := coalesce(slot_bytes, pace.max_slot_wal);
    pace.max_growth := nullif(coalesce(growth_bytes, pace.max_growth), 0);
    pace.is_paused := coalesce(set_pace.is_paused, pace.is_paused, false);
    PERFORM snowflake_migrate_internal.keep_pace(pace);
END
$function$;

-- Whether the backfill reports again: at most every 10 seconds.
CREATE FUNCTION snowflake_migrate_internal.is_notice_due(last_notice_at timestamptz)
RETURNS boolean LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(clock_timestamp() - last_notice_at > interval '10 seconds', true)
$function$;

-- How the backfill slows down while more other sessions are active than allowed: each
-- batch doubles the pause. cause is NULL unless the longer pause is not over.
CREATE FUNCTION snowflake_migrate_internal.slow_down(
    max_active_sessions integer, pause double precision, elapsed double precision, batch_ended_at timestamptz,
    INOUT slow_seconds double precision, INOUT slowed_at timestamptz, OUT cause text, OUT report text
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    shortest_slow CONSTANT double precision := 0.1;
    longest_slow CONSTANT double precision := 10;
    -- Other sessions of clients that run a statement in this database. Only members of
    -- pg_read_all_stats see the state of other roles' sessions.
    active CONSTANT bigint := (
        SELECT count(*) FROM pg_stat_activity AS a
        WHERE a.datname = current_database() AND a.backend_type = 'client backend' AND a.state = 'active' AND a.pid <> pg_backend_pid());
BEGIN
    IF slowed_at IS DISTINCT FROM batch_ended_at THEN
        slowed_at := batch_ended_at;
        slow_seconds := CASE WHEN active > max_active_sessions
            THEN least(greatest(longest_slow, pause), 2 * greatest(slow_seconds, pause, shortest_slow / 2))
            ELSE slow_seconds / 2 END;
        slow_seconds := CASE WHEN slow_seconds >= shortest_slow THEN slow_seconds ELSE 0 END;
    END IF;
    IF active > max_active_sessions AND elapsed < slow_seconds THEN
        cause := format('other sessions: more than %s are active', max_active_sessions);
        report := format('slowing down to a pause of %s s: %s other sessions are active, more than %s',
                         round(slow_seconds::numeric, 1), active, max_active_sessions);
    END IF;
END
$function$;

-- Records what the backfill of a table waits for, if that has changed. Fails if the migration was
-- ended. paused: what is recorded while it is paused by a person.
CREATE FUNCTION snowflake_migrate_internal.record_wait(
    keys snowflake_migrate_internal.key[], relation regclass, cause text, paused text
) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    pid CONSTANT integer := CASE WHEN cause IS NOT NULL THEN pg_backend_pid() END;
    step snowflake_migrate_internal.progress;
    is_changed boolean := false;
BEGIN
    SELECT p.* INTO step FROM snowflake_migrate_internal.progress AS p
    WHERE p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name AND p.relation = record_wait.relation;
    IF step.target IS NOT NULL AND (step.waiting_for, step.waiting_pid) IS DISTINCT FROM (cause, pid) THEN
        step := snowflake_migrate_internal.progress((keys[1]).target, (keys[1]).column_name, relation);
        IF step.waiting_for = paused THEN
            -- The rate of rows does not count the time in which it was paused.
            step.updated_at := clock_timestamp();
        END IF;
        step.waiting_for := cause;
        step.waiting_pid := pid;
        is_changed := true;
    END IF;
    IF step.target IS NULL THEN
        PERFORM snowflake_internal.refuse('55000',
            format('the migration of %s was ended by another session', snowflake_migrate_internal.key_names(keys)));
    END IF;
    IF is_changed THEN
        PERFORM snowflake_migrate_internal.keep_progress(step);
    END IF;
END
$function$;

-- What the backfill does next: it waits for a time of at most 0.2 s, after which it
-- asks again, or copies a batch if that time is NULL. So it follows changes of the
-- pace within that time. A wait is recorded when it begins and when it ends.
CREATE FUNCTION snowflake_migrate_internal.backfill_wait(
    keys snowflake_migrate_internal.key[], relation regclass, batch_ended_at timestamptz, is_locked boolean,
    INOUT mark pg_lsn, INOUT marked_at timestamptz, INOUT slow_seconds double precision, INOUT slowed_at timestamptz,
    OUT batch_size integer, OUT milliseconds integer, OUT cause text, OUT report text
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    look_again_after CONSTANT double precision := 0.2;
    retry_after CONSTANT double precision := 0.5;
    paused CONSTANT text := 'snowflake_migrate.pace(is_paused => false)';
    settings record;
    pause double precision;
    elapsed CONSTANT double precision := extract(epoch FROM clock_timestamp() - batch_ended_at);
    seconds double precision := look_again_after;
    lagging text;
BEGIN
    SELECT s.* INTO settings FROM snowflake_migrate_internal.pace_settings((keys[1]).target, (keys[1]).column_name) AS s;
    batch_size := settings.batch_size;
    pause := extract(epoch FROM settings.pause);
    IF settings.is_paused THEN
        cause := paused;
        report := format('paused: CALL snowflake_migrate.pace(%L, is_paused => false) resumes it', (keys[1]).target);
    ELSIF num_nonnulls(settings.max_replay_lag, settings.max_active_sessions) > 0 AND NOT pg_has_role('pg_read_all_stats', 'USAGE') THEN
        -- Another role has set the limit. Copying without it could do harm.
        cause := format('GRANT pg_monitor TO %I', current_user);
        report := format('waiting: a limit is set, but %I lacks the privileges of pg_monitor to observe it', current_user);
    ELSIF settings.max_replay_lag IS NOT NULL THEN
        SELECT l.mark, l.marked_at, l.lagging INTO mark, marked_at, lagging
        FROM snowflake_migrate_internal.replay_lag(settings.max_replay_lag, mark, marked_at) AS l;
        IF lagging IS NOT NULL THEN
            cause := format('%s: more than %s behind', lagging, settings.max_replay_lag);
            report := 'waiting for ' || cause;
        END IF;
    END IF;
    IF cause IS NULL THEN
        SELECT d.cause, d.report INTO cause, report
        FROM snowflake_migrate_internal.disk_wait(keys, settings.max_slot_wal, settings.max_growth) AS d;
    END IF;
    IF settings.max_active_sessions IS NULL THEN
        slow_seconds := 0;
    ELSIF cause IS NULL AND batch_ended_at IS NOT NULL THEN
        SELECT d.slow_seconds, d.slowed_at, d.cause, d.report INTO slow_seconds, slowed_at, cause, report
        FROM snowflake_migrate_internal.slow_down(
            settings.max_active_sessions, pause, elapsed, batch_ended_at, slow_seconds, slowed_at) AS d;
        IF cause IS NOT NULL THEN
            seconds := slow_seconds - elapsed;
        END IF;
    END IF;
    IF cause IS NULL THEN
        seconds := greatest(pause, CASE WHEN is_locked THEN retry_after ELSE 0 END) - elapsed;
        cause := CASE WHEN is_locked AND seconds > 0 THEN 'rows that other transactions have locked' END;
    END IF;
    milliseconds := CASE WHEN seconds > 0 THEN ceil(1000 * least(seconds, look_again_after)) END;
    PERFORM snowflake_migrate_internal.record_wait(keys, relation, cause, paused);
END
$function$;

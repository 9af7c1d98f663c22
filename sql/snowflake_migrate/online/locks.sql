-- Widening a key while its table is in use. Shadow columns are added beside the
-- narrow ones and kept up to date by a trigger. They are filled batch by batch,
-- and get indexes and foreign keys. One statement replaces the narrow columns.
--
-- The state of a migration is what the catalog shows; nothing else is recorded.
-- The names of added objects follow from those of existing ones. So the whole
-- plan can be generated before its first step.
--
-- This file: acquiring a lock without blocking other sessions for long.

-- How long a step tries to acquire its locks before it fails.
CREATE FUNCTION snowflake_migrate_internal.lock_time_limit()
RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '10 minutes'::pg_catalog.interval;

-- The longest wait for a lock that other sessions are not to notice, in
-- milliseconds. It is shorter than deadlock_timeout, because resolving a deadlock
-- could cancel another session's transaction.
CREATE FUNCTION snowflake_migrate_internal.short_wait()
RETURNS integer LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT greatest(1, least(100, min(CASE s.name WHEN 'deadlock_timeout' THEN s.setting::integer / 2
                                                  ELSE nullif(s.setting::integer, 0) END)))
    FROM pg_settings AS s WHERE s.name IN ('lock_timeout', 'deadlock_timeout')
$function$;

-- The locks of others on tables that conflict with a mode.
CREATE FUNCTION snowflake_migrate_internal.conflicting_locks(relations regclass[], mode text)
RETURNS TABLE (relation regclass, pid integer, virtual_transaction text) LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT l.relation::regclass, l.pid, l.virtualtransaction
    FROM pg_locks AS l
    WHERE l.locktype = 'relation' AND l.relation = ANY (relations) AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
      AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
      AND CASE conflicting_locks.mode WHEN 'ACCESS EXCLUSIVE' THEN true WHEN 'ACCESS SHARE' THEN l.mode = 'AccessExclusiveLock'
                   ELSE l.mode NOT IN ('AccessShareLock', 'RowShareLock') END
$function$;

-- Who holds them, in words, NULL if no one does; and what can be done.
CREATE FUNCTION snowflake_migrate_internal.lock_holders(relations regclass[], mode text, OUT holders text, OUT hint text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    -- Otherwise it is what the transaction saw at first.
    PERFORM pg_stat_clear_snapshot();
    -- A prepared transaction has no process, but a lock on its transaction ID.
    -- Of other roles' sessions, pg_stat_activity shows only the process to most roles.
    SELECT nullif(concat_ws(' and ', 'process ' || string_agg(DISTINCT l.pid::text || coalesce(format(' (%s)', nullif(concat_ws(', ',
                                  'application_name ' || quote_literal(nullif(a.application_name, '')),
                                  CASE WHEN a.application_name IS NOT NULL THEN a.state END,
                                  'last query started ' || date_trunc('second', clock_timestamp() - a.query_start) || ' ago'), '')), ''),
                              ', process '),
                     'prepared transactions ' || string_agg(DISTINCT quote_literal(p.gid), ', ')), ''),
           'See pg_stat_activity for what they are doing'
           || CASE WHEN count(p.gid) > 0 THEN '. COMMIT PREPARED or ROLLBACK PREPARED ends a prepared transaction' ELSE '' END
           || '. Run it again when they have ended.'
    INTO holders, hint
    FROM snowflake_migrate_internal.conflicting_locks(relations, mode) AS l
    LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
    LEFT JOIN pg_locks AS x ON l.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid' AND x.granted
                           AND x.virtualtransaction = l.virtual_transaction
    LEFT JOIN pg_prepared_xacts AS p ON p.transaction = x.transactionid;
END
$function$;
-- The tables that a statement locks which changes columns of these tables: their partitions
-- and children, and the other tables of their foreign keys.
CREATE FUNCTION snowflake_migrate_internal.locked_with(relations regclass[])
RETURNS regclass[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH tree (oid) AS MATERIALIZED (SELECT snowflake_internal.tree(relations))
    SELECT ARRAY(
        SELECT tree.oid::regclass FROM tree
      UNION
        SELECT k.confrelid::regclass FROM pg_constraint AS k WHERE k.contype = 'f' AND k.conrelid IN (SELECT tree.oid FROM tree)
      UNION
        SELECT k.conrelid::regclass FROM pg_constraint AS k WHERE k.contype = 'f' AND k.confrelid IN (SELECT tree.oid FROM tree))
$function$;

-- Reports a lock timeout with the tables that others hold. PostgreSQL's own error names
-- no table: by then the lock is not waited for any more. An error of the tool's own,
-- which has a detail, is left to the caller.
CREATE FUNCTION snowflake_migrate_internal.lock_timed_out(relations regclass[], mode text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    held CONSTANT regclass[] := ARRAY(
        SELECT DISTINCT l.relation FROM snowflake_migrate_internal.conflicting_locks(relations, mode) AS l ORDER BY 1);
    held_by CONSTANT record := snowflake_migrate_internal.lock_holders(held, mode);
BEGIN
    PERFORM snowflake_internal.refuse('55P03',
        format('could not lock %s within lock_timeout (%s)',
               snowflake_migrate_internal.some_names(ARRAY(SELECT snowflake_migrate_internal.name_of(h.relation)
                                                           FROM unnest(CASE held WHEN '{}' THEN relations ELSE held END) AS h (relation))),
               current_setting('lock_timeout')),
        detail => coalesce('Held by ' || held_by.holders || '.', 'No process holds it at this moment.'),
        hint => 'Nothing was changed. ' || held_by.hint);
END
$function$;

-- Called when a lock on one of these tables was not acquired in time. It reports
-- the holders at intervals, and fails after the time limit, or at once if one of them
-- waits for this transaction. It returns the time of the last report.
CREATE FUNCTION snowflake_migrate_internal.lock_missed(
    relations regclass[], mode text, begun timestamptz, reported_at timestamptz,
    time_limit interval DEFAULT snowflake_migrate_internal.lock_time_limit()
) RETURNS timestamptz LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET intervalstyle = 'postgres'
AS $function$
DECLARE
    -- A holder that waits for this transaction waits until it ends: CREATE INDEX CONCURRENTLY
    -- does so for each older snapshot. No deadlock is detected, as the attempts end before.
    is_waited_for CONSTANT boolean := EXISTS (
        SELECT FROM snowflake_migrate_internal.conflicting_locks(relations, text 'ACCESS EXCLUSIVE') AS l
        WHERE pg_backend_pid() = ANY (pg_blocking_pids(l.pid)));
    wanted text;
    held_by record;
BEGIN
    IF NOT is_waited_for AND clock_timestamp() - reported_at <= interval '5 seconds' AND clock_timestamp() - begun <= time_limit THEN
        RETURN reported_at;
    END IF;
    wanted := snowflake_migrate_internal.some_names(ARRAY(
        SELECT snowflake_migrate_internal.name_of(r.relation)
        FROM (SELECT DISTINCT given.relation FROM unnest(relations) AS given (relation)) AS r ORDER BY r.relation::oid));
    held_by := snowflake_migrate_internal.lock_holders(relations, mode);
    IF is_waited_for THEN
        PERFORM snowflake_internal.refuse('55P03', format('could not lock %s: who holds it waits for this transaction', wanted),
            detail => 'Held by ' || held_by.holders || '.', hint => held_by.hint);
    ELSIF clock_timestamp() - begun > time_limit AND time_limit = current_setting('lock_timeout')::interval THEN
        PERFORM snowflake_migrate_internal.lock_timed_out(relations, mode);
    ELSIF clock_timestamp() - begun > time_limit THEN
        PERFORM snowflake_internal.refuse('55P03', format('could not lock %s within %s', wanted, time_limit),
            detail => coalesce('Held by ' || held_by.holders || '.', 'Other transactions kept locking it.'),
            hint => held_by.hint);
    END IF;
    RAISE NOTICE 'waiting for a lock on % for %', wanted, date_trunc('second', clock_timestamp() - begun)
        USING DETAIL = coalesce('Held by ' || held_by.holders || '.', 'No process holds it at this moment.');
    RETURN clock_timestamp();
END
$function$;

-- The checks under a lock have to see the present state.
CREATE FUNCTION snowflake_migrate_internal.require_read_committed()
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        PERFORM snowflake_internal.refuse('55000', 'a migration requires the isolation level READ COMMITTED',
            detail => format('The isolation level of this transaction is %s.', upper(current_setting('transaction_isolation'))),
            hint => 'SET default_transaction_isolation = ''read committed''.');
    END IF;
END
$function$;

-- Locks tables, all or none. A session that waits for a strong lock blocks all
-- sessions queued behind it. So each attempt is short, and is repeated after a
-- pause in which the others continue. The short lock_timeout also holds for the
-- statements that follow, until the caller restores it.
--
-- An INSERT locks its table first, and then the sequence of a default, and what it references; a
-- transaction that calls nextval() itself has them in the other order. Where sessions have what is
-- locked last before what is locked first, an attempt is in vain. So views are first, as in each query
-- with them, then tables as given, the plan's own first, and in another order in each attempt: a
-- transaction that writes to a table and then reads a view has them in the other order, too.
CREATE FUNCTION snowflake_migrate_internal.lock(
    relations regclass[], mode text, time_limit interval DEFAULT snowflake_migrate_internal.lock_time_limit()
) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- The longest time of one attempt for all tables together.
    longest_wait CONSTANT integer := snowflake_migrate_internal.short_wait();
    sequences CONSTANT regclass[] := ARRAY(
        SELECT DISTINCT c.oid::regclass FROM pg_class AS c WHERE c.oid = ANY (relations) AND c.relkind = 'S' ORDER BY 1);
    -- Newer ones can be over older ones.
    views CONSTANT regclass[] := ARRAY(
        SELECT DISTINCT c.oid::regclass FROM pg_class AS c WHERE c.oid = ANY (relations) AND c.relkind IN ('v', 'm') ORDER BY 1 DESC);
    tables regclass[] := ARRAY(
        SELECT c.oid::regclass
        FROM unnest(relations) WITH ORDINALITY AS r (relation, place)
        -- What alters a partitioned table alters its partitions.
        CROSS JOIN LATERAL (SELECT r.relation UNION SELECT p.relid FROM pg_partition_tree(r.relation) AS p) AS t (relation)
        JOIN pg_class AS c ON c.oid = t.relation AND c.relkind NOT IN ('S', 'v', 'm')
        GROUP BY c.oid ORDER BY min(r.place));
    -- The orders of the three, before tables are rotated.
    orders CONSTANT integer := CASE views WHEN '{}' THEN 1 ELSE 2 END * CASE sequences WHEN '{}' THEN 1 ELSE 2 END;
    attempts integer := 0;
    ordered regclass[];
    started_at CONSTANT timestamptz := clock_timestamp();
    last_notice_at timestamptz := started_at;
    attempt_started_at timestamptz;
    pause double precision := 0.25;
    table_to_lock regclass;
BEGIN
    IF mode IS NULL OR mode NOT IN ('SHARE ROW EXCLUSIVE', 'ACCESS EXCLUSIVE') THEN
        PERFORM snowflake_internal.refuse('22023', format('invalid lock mode: "%s"', mode));
    END IF;
    PERFORM snowflake_migrate_internal.require_read_committed();
    LOOP
        BEGIN
            attempt_started_at := clock_timestamp();
            -- Every other attempt has views last, every other pair of attempts sequences first.
            ordered := CASE WHEN sequences <> '{}' AND attempts * 2 / orders % 2 = 1 THEN sequences || tables ELSE tables || sequences END;
            ordered := CASE WHEN attempts % 2 = 1 THEN ordered || views ELSE views || ordered END;
            FOREACH table_to_lock IN ARRAY ordered LOOP
                EXECUTE format('SET LOCAL lock_timeout = %L', greatest(1,
                    longest_wait - round(1000 * extract(epoch FROM clock_timestamp() - attempt_started_at)))::integer);
                PERFORM snowflake_internal.lock_table(table_to_lock, mode);
            END LOOP;
            EXECUTE format('SET LOCAL lock_timeout = %L', longest_wait);
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            NULL;
        END;
        last_notice_at := snowflake_migrate_internal.lock_missed(relations, mode, started_at, last_notice_at, time_limit);
        attempts := attempts + 1;
        IF attempts % orders = 0 THEN
            tables := tables[2:] || tables[:1];
        END IF;
        PERFORM snowflake_migrate_internal.wait((1000 * pause * (0.5 + random()))::integer);
        pause := least(pause * 1.5, 2);
    END LOOP;
END
$function$;

-- The same, but no longer than lock_timeout, which stays as it is: for a window, in which
-- the role that runs the plan has set it.
CREATE FUNCTION snowflake_migrate_internal.lock_within_timeout(relations regclass[], mode text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    former_timeout CONSTANT text := current_setting('lock_timeout');
BEGIN
    IF relations <> '{}' THEN
        PERFORM snowflake_migrate_internal.lock(relations, mode,
                                                coalesce(nullif(former_timeout, '0')::interval,
                                                         snowflake_migrate_internal.lock_time_limit()));
        EXECUTE format('SET LOCAL lock_timeout = %L', former_timeout);
    END IF;
END
$function$;

-- Running a plan in one transaction.

-- Limits the wait for a lock to a few seconds, unless the caller has set
-- lock_timeout. A session that waits for ACCESS EXCLUSIVE blocks all sessions
-- queued behind it. Returns the former value, which the caller restores at its
-- end: the rest of the transaction is not the extension's. After an error, the end
-- of the subtransaction or transaction restores it.
CREATE FUNCTION snowflake_migrate_internal.limit_locks()
RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    former CONSTANT text := current_setting('lock_timeout');
BEGIN
    IF former = '0' THEN
        SET LOCAL lock_timeout = '5s';
    END IF;
    RETURN former;
END
$function$;

-- Keeps the names of the schemas that a migration's statements are written with, until
-- the end of the transaction: those of the tables, of their sequences, and the
-- extension's own. Otherwise who owns one of them could put another one in its place
-- before a statement is run. In order, so that two sessions do not wait for each other.
CREATE FUNCTION snowflake_migrate_internal.pin(keys snowflake_migrate_internal.key[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_migrate_internal.pin_schemas(ARRAY(
        SELECT DISTINCT c.relnamespace FROM pg_class AS c
        WHERE c.oid IN (
            SELECT f.relation FROM snowflake_migrate_internal.linked_tree(keys) AS f
          UNION
            SELECT s.sequence
            FROM unnest(keys) AS key
            CROSS JOIN LATERAL snowflake_migrate_internal.source(key.target, key.column_name) AS s)
      UNION
        SELECT p.pronamespace FROM pg_proc AS p WHERE p.oid = snowflake_migrate_internal.nextval_function()
        ORDER BY 1));
END
$function$;

-- Takes the locks that a plan needs at its beginning.
CREATE FUNCTION snowflake_migrate_internal.lock_first(keys snowflake_migrate_internal.key[], keep_sequence boolean)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_migrate_internal.require_locks(keys);
    IF NOT keep_sequence THEN
        PERFORM snowflake_migrate_internal.lock_within_timeout(ARRAY(
            SELECT r.relation FROM snowflake_migrate_internal.sequences_at_switch(keys) AS s
            CROSS JOIN LATERAL (VALUES (s.target), (s.sequence)) AS r (relation)
            WHERE s.fate <> 'kept'), text 'ACCESS EXCLUSIVE');
    END IF;
END
$function$;

-- Runs a step. A rewrite may change the states of triggers of foreign keys, so they are
-- restored, with the caller's own rights: the table's owner may not.
CREATE FUNCTION snowflake_migrate_internal.run_step(plan_step snowflake_migrate_internal.step, search_path text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    states jsonb;
BEGIN
    IF plan_step.rewrites THEN
        states := snowflake_migrate_internal.trigger_states(ARRAY(
            SELECT t.oid::regclass FROM snowflake_internal.tree(ARRAY[plan_step.relation]) AS t (oid)));
    END IF;
    PERFORM snowflake_internal.run(plan_step.relation, snowflake_migrate_internal.statement_of(plan_step), search_path);
    IF states IS NOT NULL THEN
        PERFORM snowflake_migrate_internal.restore_trigger_states(states);
    END IF;
END
$function$;

-- What run() says at its end: what it has done, or that nothing was left to do.
CREATE FUNCTION snowflake_migrate_internal.report_run(
    keys snowflake_migrate_internal.key[], is_done boolean, was_switched boolean, keep_sequence boolean
) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    former text;
BEGIN
    IF is_done AND keep_sequence THEN
        RAISE NOTICE '%', snowflake_migrate_internal.done_notice(keys, true);
    ELSIF is_done THEN
        IF NOT was_switched THEN
            RAISE NOTICE '%', snowflake_migrate_internal.done_notice(keys, false);
        END IF;
        RAISE NOTICE 'old rows keep their IDs: %', snowflake_migrate_internal.retention_note(keys);
        FOR former IN SELECT f.name FROM snowflake_migrate_internal.former_sequences(keys) AS f LOOP
            RAISE NOTICE 'sequence % is kept for sessions that wait for it: DROP SEQUENCE %, '
                         'so that lastval() fails in those that have used it', former, former;
        END LOOP;
    ELSIF cardinality(keys) = 1 THEN
        RAISE NOTICE 'nothing to do: % is already migrated', (keys[1]).target;
    ELSE
        RAISE NOTICE 'nothing to do: % are already migrated', (
            SELECT string_agg(k.target::text, ', ' ORDER BY k.place) FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place));
    END IF;
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.run_plan(keys snowflake_migrate_internal.key[], search_path text, keep_sequence boolean)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    former_timeout CONSTANT text := snowflake_migrate_internal.limit_locks();
    steps snowflake_migrate_internal.step[];
    plan_step snowflake_migrate_internal.step;
    kind text;
    done integer := 0;
    recompiles boolean := false;
    is_widened boolean := false;
    -- Then only the boundary may be left to set.
    was_switched CONSTANT boolean := (SELECT bool_and(snowflake_internal.has_ids(k.target, k.column_name)) FROM unnest(keys) AS k);
    -- What the present step locks; NULL while the plan is made.
    locking regclass[];
    lock_mode text;
    detail text;
    by_rates numeric;
    factor numeric;
    began timestamptz;
BEGIN
    PERFORM snowflake_migrate_internal.exclude_others(keys);
    PERFORM snowflake_migrate_internal.pin(keys);
    -- Not by the steps, which run as the tables' owners.
    SET LOCAL snowflake_migrate_internal.recompiles_later = 'on';
    BEGIN
        steps := ARRAY(SELECT s FROM snowflake_migrate_internal.plan(keys, false, search_path, keep_sequence, factor => 1) AS s);
        by_rates := (SELECT sum((s.work).seconds) FROM unnest(steps) AS s);
        IF by_rates >= 1 THEN
            factor := coalesce(snowflake_migrate_internal.rehearsed_factor(), snowflake_migrate_internal.processor_factor());
            steps := ARRAY(SELECT s FROM snowflake_migrate_internal.steps_at(steps, factor) AS s);
        END IF;
        began := clock_timestamp();
        FOREACH plan_step IN ARRAY steps LOOP
            IF done = 0 THEN
                PERFORM snowflake_migrate_internal.lock_first(keys, keep_sequence);
            END IF;
            -- A session that waits for the sequence would find none (XX000).
            EXIT WHEN plan_step.kind = 'former' AND NOT was_switched;
            recompiles := recompiles OR EXISTS (SELECT FROM unnest(plan_step.commands) AS c WHERE c.kind = 'recompile');
            IF plan_step.kind IS DISTINCT FROM kind THEN
                kind := plan_step.kind;
                RAISE NOTICE '%', snowflake_migrate_internal.phase_notice(steps, plan_step.number);
            END IF;
            lock_mode := plan_step.lock_level;
            locking := CASE WHEN plan_step.relation IS NOT NULL THEN ARRAY[plan_step.relation]
                            ELSE ARRAY(SELECT d.target FROM unnest(snowflake_migrate_internal.dependent_columns(keys)) AS d)
                                 || snowflake_migrate_internal.dependent_relations(snowflake_migrate_internal.dependent_columns(keys)) END;
            IF plan_step.kind <> 'widen' THEN
                PERFORM snowflake_migrate_internal.run_step(plan_step, search_path);
            ELSIF NOT is_widened THEN
                -- All groups at once: a transaction keeps the locks of each to its end anyway.
                PERFORM snowflake_migrate_internal.widen(snowflake_migrate_internal.dependent_columns(keys),
                                                         coalesce(search_path, current_setting('search_path')));
                is_widened := true;
            END IF;
            done := done + 1;
        END LOOP;
    EXCEPTION WHEN lock_not_available THEN
        GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
        IF detail <> '' THEN
            RAISE;
        END IF;
        -- The plan also reads the tables, to find their views' columns.
        PERFORM snowflake_migrate_internal.lock_timed_out(
            snowflake_migrate_internal.locked_with(coalesce(locking, ARRAY(
                SELECT k.target FROM unnest(keys) AS k UNION SELECT r.relation FROM snowflake_migrate_internal.linked_columns(keys) AS r))),
            coalesce(lock_mode, 'ACCESS SHARE'));
    END;
    SET LOCAL snowflake_migrate_internal.recompiles_later = '';
    IF recompiles THEN
        -- With the caller's own rights: functions may have other owners than the tables.
        PERFORM snowflake_migrate_internal.recompile(keys);
    END IF;
    EXECUTE format('SET LOCAL lock_timeout = %L', former_timeout);
    PERFORM snowflake_migrate_internal.report_run(keys, done > 0, was_switched, keep_sequence);
    PERFORM snowflake_migrate_internal.report_time(by_rates, by_rates * factor, extract(epoch FROM clock_timestamp() - began));
END
$function$;

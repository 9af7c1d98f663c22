-- The remaining steps of a migration.

-- Fails unless everything is ready for switching the default, and sets the boundary. The plan's last
-- statement calls it first, because psql continues after an error.
CREATE FUNCTION snowflake_migrate_internal.check_switch(target regclass, column_name name, search_path text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    narrow text;
BEGIN
    IF snowflake_internal.has_ids(target, column_name) THEN
        PERFORM snowflake_internal.refuse('55000', format('column "%s" of %s already has snowflake IDs', column_name, target),
            hint => 'Request the plan again.');
    END IF;
    IF NOT snowflake_migrate_internal.is_recorded(target, column_name) THEN
        PERFORM snowflake_internal.refuse('55000', format('the sequence of column "%s" of %s is not recorded yet', column_name, target),
            hint => 'Run the statements of snowflake_migrate.plan() in order.');
    END IF;
    SELECT string_agg(format('%s.%I', r.relation, r.attname), ', ') INTO narrow
    FROM snowflake_migrate_internal.linked_columns(ARRAY[(target, column_name)::snowflake_migrate_internal.key]) AS r
    WHERE r.is_narrow;
    IF narrow IS NOT NULL THEN
        PERFORM snowflake_internal.refuse('55000', format('columns are still too narrow for snowflake IDs: %s', narrow),
            hint => 'Run the statements of snowflake_migrate.plan() in order.');
    END IF;
    PERFORM snowflake_migrate_internal.check_rows(target, column_name, search_path, true);
    -- The sequence has advanced since it was recorded.
    PERFORM snowflake_migrate_internal.record_origin(target, column_name);
    PERFORM snowflake_internal.run(s.relation, s.statement)
    FROM snowflake_migrate_internal.boundary_statements(snowflake_migrate_internal.origin(target, column_name)) AS s;
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.require_possible(
    keys snowflake_migrate_internal.key[], online boolean, search_path text, keep_sequence boolean,
    findings snowflake_migrate_internal.finding[]
) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    obstacles CONSTANT snowflake_migrate_internal.obstacle[] :=
        ARRAY(SELECT o FROM snowflake_migrate_internal.obstacles(keys, search_path, keep_sequence) AS o)
        || ARRAY(SELECT o FROM snowflake_migrate_internal.plan_obstacles(
                     snowflake_migrate_internal.keys_outside_citus(keys), online, search_path, true) AS o)
        || ARRAY(SELECT o FROM snowflake_migrate_internal.finding_obstacles(findings) AS o);
    possible CONSTANT snowflake_migrate_internal.key[] := snowflake_migrate_internal.keys_without(keys, obstacles);
BEGIN
    PERFORM snowflake_migrate_internal.refuse_obstacles(obstacles, format('cannot migrate %s', snowflake_migrate_internal.key_names(keys)),
        'Nothing was changed. Remove the obstacles'
        || coalesce(', or leave out ' || snowflake_migrate_internal.some_names((
               SELECT array_agg(n.name ORDER BY n.name)
               FROM (SELECT DISTINCT format('%s.%I', k.target, k.column_name) AS name FROM unnest(keys) AS k WHERE k <> ALL (possible)) AS n
               WHERE possible <> '{}')), '')
        || ', then request the plan again.');
END
$function$;

-- The steps that record the sequences, for revert(), and those that set the boundaries of
-- keys whose default was set by hand.
CREATE FUNCTION snowflake_migrate_internal.first_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH key AS MATERIALIZED (
        SELECT k.* FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
    ), planned (is_second, place, step) AS (
        SELECT false, k.place, snowflake_migrate_internal.step(text 'record', k.target, text 'SHARE UPDATE EXCLUSIVE',
            text 'records the sequence of %s.%s', text 'for snowflake_migrate.revert()',
            ARRAY[snowflake_migrate_internal.command(text 'record', k.target, columns => ARRAY[k.column_name])],
            names => ARRAY[k.target::text, quote_ident(k.column_name)])
        FROM key AS k
        WHERE NOT snowflake_internal.has_ids(k.target, k.column_name)
          AND NOT snowflake_migrate_internal.is_recorded(k.target, k.column_name)
      UNION ALL
        SELECT true, k.place, snowflake_migrate_internal.step(text 'boundary', k.target, text 'ACCESS EXCLUSIVE',
            text 'sets the boundary of %s.%s',
            format('its default was not set by a migration. Smaller numbers than %s are old: %s', snowflake_internal.oldest_id(),
                   snowflake_migrate_internal.retention_note(ARRAY[(k.target, k.column_name)::snowflake_migrate_internal.key])),
            snowflake_migrate_internal.lock_command(ARRAY[k.target])
            || ARRAY(SELECT snowflake_migrate_internal.command(text 'alter', s.relation, s.statement)
                     FROM snowflake_internal.boundary_statements(k.target, k.column_name, snowflake_internal.oldest_id(), NULL) AS s),
            names => ARRAY[k.target::text, quote_ident(k.column_name)])
        FROM key AS k
        WHERE snowflake_migrate_internal.lacks_boundary(k.target, k.column_name)
    )
    SELECT p.step FROM planned AS p ORDER BY p.is_second, p.place
$function$;

-- The steps for keys(), all of which the caller migrates.
CREATE FUNCTION snowflake_migrate_internal.steps(
    keys snowflake_migrate_internal.key[], online boolean, search_path text, keep_sequence boolean
) RETURNS SETOF snowflake_migrate_internal.step LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    is_narrow boolean := EXISTS (
        SELECT FROM snowflake_migrate_internal.linked_columns(keys) AS r WHERE r.is_narrow);
    is_widening CONSTANT boolean := is_narrow OR EXISTS (
        SELECT FROM unnest(keys) AS key
        CROSS JOIN LATERAL snowflake_migrate_internal.origin(key.target, key.column_name) AS o
        WHERE NOT keep_sequence AND o.reverted_at IS NULL AND o.data_type IN ('smallint', 'integer'));
    is_switched CONSTANT boolean := CASE
        WHEN keep_sequence THEN NOT EXISTS (SELECT FROM snowflake_migrate_internal.narrow_sequences(keys))
        ELSE NOT EXISTS (SELECT FROM unnest(keys) AS key WHERE NOT snowflake_internal.has_ids(key.target, key.column_name)) END;
    findings snowflake_migrate_internal.finding[] := snowflake_migrate_internal.plan_findings(keys, online AND is_narrow, keep_sequence);
BEGIN
    IF is_narrow OR NOT is_switched THEN
        PERFORM snowflake_migrate_internal.require_possible(keys, online, search_path, keep_sequence, findings);
    END IF;
    findings := snowflake_migrate_internal.warn(keys, findings, is_narrow OR NOT is_switched);
    IF is_narrow THEN
        PERFORM snowflake_migrate_internal.warn_of_slots(keys, online);
    END IF;
    IF NOT keep_sequence THEN
        RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.first_steps(keys) AS s;
        IF EXISTS (SELECT FROM snowflake_migrate_internal.citus_keys(keys) AS c) THEN
            RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.citus_steps(keys) AS s;
            keys := snowflake_migrate_internal.keys_outside_citus(keys);
            is_narrow := EXISTS (SELECT FROM snowflake_migrate_internal.linked_columns(keys) AS r WHERE r.is_narrow);
            IF keys = '{}' THEN
                RETURN;
            END IF;
        END IF;
    END IF;
    IF online AND is_narrow THEN
        RETURN QUERY
            SELECT s.number, s.kind, s.relation, s.lock_level, s.rewrites, s.in_transaction, s.what,
                   s.note || CASE s.kind WHEN 'shadow' THEN snowflake_migrate_internal.finding_notes(findings, text 'shadow', s.relation)
                                         WHEN 'swap' THEN snowflake_migrate_internal.finding_notes(findings, text 'type', NULL)
                                                          || snowflake_migrate_internal.finding_notes(findings, text 'default', NULL)
                                         ELSE '' END,
                   s.commands, s.keys, s.names, s.work
            FROM snowflake_migrate_internal.online_steps(keys, keep_sequence) AS s;
        RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.former_steps(keys) AS s WHERE NOT keep_sequence;
        RETURN;
    END IF;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.widening_steps(keys, findings) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.rewriting_steps(keys, findings) AS s;
    IF keep_sequence THEN
        RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.sequence_steps(keys) AS s;
        IF is_narrow THEN
            RETURN NEXT snowflake_migrate_internal.step(text 'recompile', (keys[1]).target, text 'ACCESS SHARE',
                text 'refreshes functions', text 'sessions compile those again that use the columns',
                ARRAY[snowflake_migrate_internal.command(text 'recompile', (keys[1]).target)], keys);
        END IF;
    ELSE
        RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.switch_steps(keys, online, is_widening, findings) AS s;
    END IF;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.analyze_steps(keys, is_widening) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.former_steps(keys) AS s WHERE NOT keep_sequence;
END
$function$;

-- The plan for the keys that a caller specifies, or for all keys of the unfinished
-- online migration that they belong to.
-- Compiling a query over the catalog takes longer than running it.
CREATE FUNCTION snowflake_migrate_internal.plan(
    keys snowflake_migrate_internal.key[], online boolean, search_path text DEFAULT NULL, keep_sequence boolean DEFAULT false,
    factor numeric DEFAULT NULL
) RETURNS SETOF snowflake_migrate_internal.step LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    steps snowflake_migrate_internal.step[];
    is_paused boolean := false;
BEGIN
    IF online THEN
        -- As MOST_KEYS in src/migrate/records.rs.
        IF cardinality(keys) > 1600 THEN
            PERFORM snowflake_internal.refuse('54000', 'cannot migrate more than 1600 keys together online',
                detail => format('%s keys are specified.', cardinality(keys)),
                hint => 'Migrate the tables in several sets.');
        END IF;
        keys := snowflake_migrate_internal.unfinished(keys);
        SELECT m.factor, m.paused INTO factor, is_paused FROM snowflake_migrate_internal.measured_factor(keys) AS m;
    END IF;
    steps := ARRAY(
        SELECT s
        FROM snowflake_migrate_internal.steps(keys, coalesce(online, false), search_path, coalesce(keep_sequence, false)) AS s);
    IF factor IS NULL THEN
        factor := snowflake_migrate_internal.rehearsed_factor();
        is_paused := false;
    END IF;
    -- Measuring takes a part of a second.
    IF factor IS NULL AND (SELECT sum((s.work).seconds) FROM unnest(steps) AS s) >= 1 THEN
        factor := snowflake_migrate_internal.processor_factor();
    END IF;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.steps_at(steps, factor, is_paused) AS s;
END
$function$;

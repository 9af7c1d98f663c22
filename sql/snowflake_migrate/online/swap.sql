-- Replacing all narrow columns by their shadow columns, in one statement that
-- only changes the catalog.

CREATE FUNCTION snowflake_migrate_internal.swap_columns(keys snowflake_migrate_internal.key[])
RETURNS snowflake_migrate_internal.key[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT array_agg((s.relation, s.narrow)::snowflake_migrate_internal.key) FROM snowflake_migrate_internal.shadows(keys) AS s
$function$;

-- The tables that are changed, those at the other end of foreign keys, and the
-- views and tables of the objects that are dropped and created again.
CREATE FUNCTION snowflake_migrate_internal.swap_relations(keys snowflake_migrate_internal.key[])
RETURNS regclass[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH other (relation) AS (
        SELECT s.relation FROM snowflake_migrate_internal.shadows(keys) AS s
      UNION
        SELECT f.relation FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS f
      UNION
        SELECT f.referenced FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS f
      UNION
        SELECT unnest(snowflake_migrate_internal.dependent_relations(snowflake_migrate_internal.swap_columns(keys)))
    ), own (targets) AS (
        SELECT ARRAY(SELECT k.target FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place) GROUP BY k.target ORDER BY min(k.place))
    )
    -- Locked in this order.
    SELECT own.targets || ARRAY(SELECT o.relation FROM other AS o WHERE o.relation <> ALL (own.targets))
    FROM own
$function$;

-- The sequences that the columns own, or use as identity columns, and those that are made
-- anew, as far as they are the owners' of the tables.
CREATE FUNCTION snowflake_migrate_internal.swap_sequences(keys snowflake_migrate_internal.key[], keep_sequence boolean)
RETURNS regclass[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY(
        -- What the switch renames or drops.
        SELECT w.sequence FROM snowflake_migrate_internal.sequences_at_switch(keys) AS w WHERE w.fate <> 'kept' AND NOT keep_sequence
      UNION
        SELECT d.objid::regclass
        FROM snowflake_migrate_internal.shadows(keys) AS s
        JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                           AND d.refobjid = s.relation AND d.refobjsubid = s.attribute AND d.deptype IN ('a', 'i')
        JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S')
$function$;

-- Obstacles to the swap: missing or invalid shadow objects, and all others.
CREATE FUNCTION snowflake_migrate_internal.swap_obstacles(keys snowflake_migrate_internal.key[], search_path text, keep_sequence boolean)
RETURNS TABLE (obstacle text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('column %I of %s has no shadow column that is kept up to date', s.narrow, s.relation)
    FROM snowflake_migrate_internal.shadows(keys) AS s
    WHERE NOT s.is_kept
  UNION ALL
    SELECT format('not all rows of %s are known to have the shadow value of column %I', s.relation, s.narrow)
    FROM snowflake_migrate_internal.shadows(keys) AS s
    WHERE s.is_kept AND NOT s.is_filled
  UNION ALL
    SELECT format('trigger %I of %s still has the condition that it has while rows are copied', u.name, u.relation)
    FROM snowflake_migrate_internal.guarded_triggers(ARRAY(
        SELECT DISTINCT s.relation FROM snowflake_migrate_internal.shadows(keys) AS s)) AS u
  UNION ALL
    SELECT format(CASE WHEN i.shadow IS NULL THEN 'index %s has no counterpart on the shadow columns'
                       ELSE 'the counterpart of index %s is not valid' END, i.index)
    FROM snowflake_migrate_internal.shadow_indexes(keys) AS i
    WHERE NOT i.is_ready
  UNION ALL
    SELECT format(CASE WHEN f.shadow IS NULL THEN 'foreign key %I of %s has no counterpart on the shadow columns'
                       ELSE 'the counterpart of foreign key %I of %s is not validated' END, f.name, f.relation)
    FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS f
    WHERE NOT f.is_ready
  UNION ALL
    SELECT format(CASE WHEN k.shadow IS NULL THEN 'check constraint %I of %s has no counterpart on the shadow columns'
                       ELSE 'the counterpart of check constraint %I of %s is not validated' END, k.name, k.relation)
    FROM snowflake_migrate_internal.shadow_checks(keys) AS k
    WHERE NOT k.is_ready
  UNION ALL
    SELECT format('statistics object %I.%I has no counterpart on the shadow columns', x.schema, x.name)
    FROM snowflake_migrate_internal.shadow_statistics(keys) AS x
    WHERE x.shadow IS NULL
  UNION ALL
    SELECT DISTINCT format('%s: %s', o.obstacle, o.remedy) FROM snowflake_migrate_internal.obstacles(keys, search_path, keep_sequence) AS o
  UNION ALL
    SELECT DISTINCT format('%s: %s', o.obstacle, o.remedy) FROM snowflake_migrate_internal.plan_kind_obstacles(keys, true, true) AS o
$function$;

-- The not-null constraints that tables have since PostgreSQL 18. Their names and
-- comments are restored after the swap.
CREATE FUNCTION snowflake_migrate_internal.not_null_names(keys snowflake_migrate_internal.key[])
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(jsonb_agg(jsonb_build_object('relation', s.relation::oid, 'column', s.narrow, 'name', k.conname,
                                                 'comment', obj_description(k.oid, 'pg_constraint'),
                                                 'is_inherited', NOT k.connoinherit)), '[]')
    FROM snowflake_migrate_internal.shadows(keys) AS s
    JOIN pg_constraint AS k ON k.conrelid = s.relation AND k.contype = 'n' AND k.conkey = ARRAY[s.attribute]
    -- Partitions have the names of their parent's.
    WHERE s.relation = s.declared_by
$function$;

-- The places of the catalog's rows on some tables, and the transactions that
-- wrote them. While these are unchanged, so is the content.
CREATE FUNCTION snowflake_migrate_internal.fingerprint(relations regclass[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat(string_agg(format('%s %s %s', r.tableoid::oid, r.ctid, r.xmin), ', ' ORDER BY r.tableoid, r.ctid),
                  -- And the records of migrations, as far as the caller may see them.
                  (SELECT string_agg(o::text, ', ' ORDER BY a.attrelid, a.attnum)
                   FROM pg_attribute AS a
                   CROSS JOIN LATERAL snowflake_migrate_internal.origin(a.attrelid::regclass, a.attname) AS o
                   WHERE a.attrelid = ANY (relations) AND a.attnum > 0 AND NOT a.attisdropped AND o.target IS NOT NULL))
    FROM (SELECT c.tableoid, c.ctid, c.xmin FROM pg_class AS c
          WHERE c.oid = ANY (relations) OR c.oid IN (SELECT i.indexrelid FROM pg_index AS i WHERE i.indrelid = ANY (relations))
        UNION ALL SELECT a.tableoid, a.ctid, a.xmin FROM pg_attribute AS a WHERE a.attrelid = ANY (relations)
        UNION ALL SELECT d.tableoid, d.ctid, d.xmin FROM pg_attrdef AS d WHERE d.adrelid = ANY (relations)
        UNION ALL SELECT i.tableoid, i.ctid, i.xmin FROM pg_index AS i WHERE i.indrelid = ANY (relations)
        UNION ALL SELECT k.tableoid, k.ctid, k.xmin FROM pg_constraint AS k WHERE k.conrelid = ANY (relations)
        UNION ALL SELECT t.tableoid, t.ctid, t.xmin FROM pg_trigger AS t WHERE t.tgrelid = ANY (relations)
        UNION ALL SELECT w.tableoid, w.ctid, w.xmin FROM pg_rewrite AS w WHERE w.ev_class = ANY (relations)
        UNION ALL SELECT h.tableoid, h.ctid, h.xmin FROM pg_inherits AS h WHERE h.inhparent = ANY (relations)
        -- Views, policies, publications, foreign keys of other tables, ...
        UNION ALL SELECT d.tableoid, d.ctid, d.xmin FROM pg_depend AS d
                  WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY (relations)
        UNION ALL SELECT e.tableoid, e.ctid, e.xmin FROM pg_description AS e
                  WHERE e.classoid = 'pg_class'::regclass AND e.objoid = ANY (relations)) AS r
$function$;

CREATE FUNCTION snowflake_migrate_internal.refuse_swap(keys snowflake_migrate_internal.key[], missing text)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_internal.refuse('55000', format('%s not ready to be swapped', snowflake_migrate_internal.key_names(keys)
            || CASE WHEN cardinality(keys) = 1 THEN ' is' ELSE ' are' END),
        detail => missing,
        hint => 'Nothing was changed by this statement. Request the plan again, and run its statements in order.');
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.require_ready(keys snowflake_migrate_internal.key[], search_path text, keep_sequence boolean)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    missing text;
BEGIN
    IF NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadows(keys)) THEN
        missing := 'No column is too narrow.';
    ELSIF EXISTS (SELECT FROM unnest(keys) AS key
                  WHERE NOT keep_sequence AND NOT snowflake_internal.has_ids(key.target, key.column_name)
                    AND NOT snowflake_migrate_internal.is_recorded(key.target, key.column_name)) THEN
        missing := 'The sequence of the column is not recorded yet.';
    ELSE
        SELECT string_agg(o.obstacle, E'\n') INTO missing
        FROM snowflake_migrate_internal.swap_obstacles(keys, search_path, keep_sequence) AS o;
    END IF;
    PERFORM snowflake_migrate_internal.refuse_swap(keys, missing) WHERE missing IS NOT NULL;
END
$function$;

-- Transactions whose snapshot may be older than the proof that all rows have
-- shadow values. After the swap they would read old versions of rows, with NULL
-- in the key. The age of the proof is that of the constraint's catalog row, which
-- VALIDATE CONSTRAINT has written. Transactions on a standby are known only if it
-- sends hot_standby_feedback.
CREATE FUNCTION snowflake_migrate_internal.old_snapshots(keys snowflake_migrate_internal.key[])
RETURNS TABLE (holder text, virtual_transaction text) LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH proof AS MATERIALIZED (
        SELECT min(age(k.xmin)) AS age
        FROM snowflake_migrate_internal.shadows(keys) AS s
        JOIN pg_constraint AS k ON k.oid = s.check_oid
        WHERE age(k.xmin) >= 0
    )
    SELECT format('process %s', a.pid), l.virtualxid
    FROM proof
    JOIN pg_stat_activity AS a ON age(a.backend_xmin) >= proof.age
    LEFT JOIN pg_locks AS l ON l.locktype = 'virtualxid' AND l.pid = a.pid AND l.granted AND l.virtualxid = l.virtualtransaction
    WHERE a.pid <> pg_backend_pid()
      -- Not autovacuum, which returns rows to no session.
      AND a.usesysid IS NOT NULL AND (a.datname = current_database() OR a.datname IS NULL)
  UNION ALL
    SELECT format('replication slot %s', r.slot_name), NULL
    FROM proof JOIN pg_replication_slots AS r ON age(r.xmin) >= proof.age
$function$;

CREATE FUNCTION snowflake_migrate_internal.await_snapshots(keys snowflake_migrate_internal.key[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    time_limit CONSTANT interval := snowflake_migrate_internal.lock_time_limit();
    started_at CONSTANT timestamptz := clock_timestamp();
    last_notice_at timestamptz := started_at;
    -- Only the present transactions matter. Later ones have new snapshots, even
    -- if an old transaction still running makes them look older.
    initial_holders CONSTANT text[] := ARRAY(SELECT o.virtual_transaction FROM snowflake_migrate_internal.old_snapshots(keys) AS o);
    holders text;
BEGIN
    LOOP
        PERFORM pg_stat_clear_snapshot();
        SELECT string_agg(o.holder, ', ') INTO holders
        FROM snowflake_migrate_internal.old_snapshots(keys) AS o
        WHERE o.virtual_transaction IS NULL OR o.virtual_transaction = ANY (initial_holders);
        IF holders IS NULL THEN
            RETURN;
        ELSIF clock_timestamp() - started_at > time_limit THEN
            PERFORM snowflake_internal.refuse('55000',
                format('transactions that started before all rows of %s were copied have not ended within %s',
                       snowflake_migrate_internal.key_names(keys), time_limit),
                detail => format('They belong to: %s.', holders),
                hint => 'They would read rows without a key. Nothing was changed by this statement. Run it again when they have ended.');
        ELSIF clock_timestamp() - last_notice_at > interval '5 seconds' THEN
            last_notice_at := clock_timestamp();
            RAISE NOTICE 'waiting for transactions that started before all rows were copied'
                USING DETAIL = format('They belong to: %s.', holders);
        END IF;
        PERFORM snowflake_migrate_internal.wait(200);
    END LOOP;
END
$function$;

-- Gives NOT NULL constraints the names, comments and inheritance of those that they replace.
CREATE FUNCTION snowflake_migrate_internal.restore_not_nulls(not_nulls jsonb)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    not_null record;
BEGIN
    FOR not_null IN
        SELECT e ->> 'name' AS former, e ->> 'comment' AS comment, (e ->> 'is_inherited')::boolean AS is_inherited, k.conname AS present,
               k.conrelid::regclass AS relation, snowflake_migrate_internal.name_of(k.conrelid::regclass) AS quoted_name
        FROM jsonb_array_elements(not_nulls) AS e
        JOIN pg_attribute AS a ON a.attrelid = (e ->> 'relation')::oid AND a.attname = e ->> 'column'
        JOIN pg_constraint AS k ON k.conrelid = a.attrelid AND k.contype = 'n' AND k.conkey = ARRAY[a.attnum]
    LOOP
        IF not_null.present <> not_null.former THEN
            PERFORM snowflake_internal.run(not_null.relation,
                                           format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I',
                                                  not_null.quoted_name, not_null.present, not_null.former));
        END IF;
        IF NOT not_null.is_inherited THEN
            PERFORM snowflake_internal.run(not_null.relation,
                                           format('ALTER TABLE %s ALTER CONSTRAINT %I NO INHERIT', not_null.quoted_name, not_null.former));
        END IF;
        IF not_null.comment IS NOT NULL THEN
            PERFORM snowflake_internal.run(not_null.relation,
                                           format('COMMENT ON CONSTRAINT %I ON %s IS %L',
                                                  not_null.former, not_null.quoted_name, not_null.comment));
        END IF;
    END LOOP;
END
$function$;

-- What the swap runs and creates again. fingerprint is that of dependents.
CREATE TYPE snowflake_migrate_internal.prepared_swap AS (
    commands snowflake_migrate_internal.command[], not_nulls jsonb, narrow snowflake_migrate_internal.key[],
    fingerprint text, dependents jsonb
);

CREATE FUNCTION snowflake_migrate_internal.prepare_swap(keys snowflake_migrate_internal.key[], keep_sequence boolean)
RETURNS snowflake_migrate_internal.prepared_swap LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    swap snowflake_migrate_internal.prepared_swap;
BEGIN
    swap.commands := ARRAY(SELECT c FROM snowflake_migrate_internal.swap_commands(keys, keep_sequence) AS c);
    swap.not_nulls := snowflake_migrate_internal.not_null_names(keys);
    swap.narrow := snowflake_migrate_internal.swap_columns(keys);
    -- Before they are read.
    swap.fingerprint := snowflake_migrate_internal.dependents_fingerprint(swap.narrow);
    PERFORM snowflake_migrate_internal.pin_dependents(swap.narrow);
    swap.dependents := snowflake_migrate_internal.save_dependents(swap.narrow);
    RETURN swap;
END
$function$;

-- Locks the tables and swaps. The arguments were read before the lock. If nothing
-- has changed when the lock is acquired, nothing has to be checked again.
CREATE FUNCTION snowflake_migrate_internal.swap_locked(
    keys snowflake_migrate_internal.key[], locked regclass[], relations regclass[], before text,
    swap snowflake_migrate_internal.prepared_swap, search_path text, keep_sequence boolean
) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    identities snowflake_migrate_internal.origins[];
BEGIN
    PERFORM snowflake_migrate_internal.lock(locked, text 'ACCESS EXCLUSIVE');
    IF snowflake_migrate_internal.fingerprint(relations) IS DISTINCT FROM before
       OR snowflake_migrate_internal.dependents_fingerprint(snowflake_migrate_internal.swap_columns(keys))
          IS DISTINCT FROM swap.fingerprint THEN
        PERFORM snowflake_migrate_internal.refuse_swap(keys, text 'A foreign key, a view or a partition was added in the meantime.')
        WHERE NOT snowflake_migrate_internal.swap_relations(keys) <@ relations;
        PERFORM snowflake_migrate_internal.require_ready(keys, search_path, keep_sequence);
        swap := snowflake_migrate_internal.prepare_swap(keys, keep_sequence);
    END IF;
    IF keep_sequence THEN
        identities := snowflake_migrate_internal.lock_identities(keys);
        -- If the migration was begun with another end in mind.
        PERFORM snowflake_migrate_internal.record_reverted(key.target, key.column_name)
        FROM unnest(keys) AS key WHERE NOT snowflake_internal.has_ids(key.target, key.column_name);
    ELSE
        -- The sequence has advanced since it was recorded.
        PERFORM snowflake_migrate_internal.record_origin(key.target, key.column_name)
        FROM unnest(keys) AS key;
    END IF;
    PERFORM snowflake_migrate_internal.drop_dependents(swap.dependents);
    PERFORM snowflake_migrate_internal.run_all(swap.commands, search_path);
    IF NOT keep_sequence THEN
        PERFORM snowflake_internal.run(s.relation, s.statement)
        FROM unnest(keys) AS key
        CROSS JOIN LATERAL snowflake_migrate_internal.boundary_statements(
            snowflake_migrate_internal.origin(key.target, key.column_name)) AS s;
    END IF;
    PERFORM snowflake_migrate_internal.restore_not_nulls(swap.not_nulls);
    PERFORM snowflake_migrate_internal.continue_identity(i) FROM unnest(identities) AS i;
    -- After the constraints, which views with GROUP BY may use.
    PERFORM snowflake_migrate_internal.create_dependents(swap.dependents);
    PERFORM snowflake_migrate_internal.require_same(
        swap.dependents -> 'description', snowflake_migrate_internal.describe_dependents(swap.narrow), text 'the columns');
    -- Only needed for a layout whose first IDs fit into an integer.
    IF NOT keep_sequence AND snowflake_migrate_internal.first_id_at(now()) <= 2147483647 THEN
        PERFORM snowflake_migrate_internal.refuse_obstacles(
            ARRAY(SELECT o FROM unnest(keys) AS key
                  CROSS JOIN LATERAL snowflake_migrate_internal.row_obstacles(key.target, key.column_name, search_path) AS o),
            format('cannot migrate %s', snowflake_migrate_internal.key_names(keys)), text 'Nothing was changed by this statement.');
    END IF;
    PERFORM snowflake_migrate_internal.end_backfill((keys[1]).target, (keys[1]).column_name);
END
$function$;

-- The swap. As much as possible is checked and prepared before the lock, which is
-- held only for the changes.
CREATE FUNCTION snowflake_migrate_internal.swap(keys snowflake_migrate_internal.key[], search_path text DEFAULT NULL,
                                                keep_sequence boolean DEFAULT false)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    relations CONSTANT regclass[] := snowflake_migrate_internal.swap_relations(keys);
    -- Before the tables: a transaction that has called nextval() may write to its table next.
    locked CONSTANT regclass[] := snowflake_migrate_internal.swap_sequences(keys, keep_sequence) || relations;
    former_timeout CONSTANT text := current_setting('lock_timeout');
    before CONSTANT text := snowflake_migrate_internal.fingerprint(relations);
    prepared snowflake_migrate_internal.prepared_swap;
    started_at timestamptz;
    last_notice_at timestamptz;
    pause double precision := 0.25;
BEGIN
    PERFORM snowflake_migrate_internal.require_owner(key.target) FROM unnest(keys) AS key;
    -- The checks lock the tables, which would keep another session's swap waiting.
    PERFORM snowflake_migrate_internal.exclude_others(keys);
    PERFORM snowflake_migrate_internal.require_ready(keys, search_path, keep_sequence);
    PERFORM snowflake_migrate_internal.await_snapshots(keys);
    PERFORM snowflake_migrate_internal.pin(keys);
    prepared := snowflake_migrate_internal.prepare_swap(keys, keep_sequence);
    started_at := clock_timestamp();
    last_notice_at := started_at;
    LOOP
        BEGIN
            PERFORM snowflake_migrate_internal.swap_locked(keys, locked, relations, before, prepared, search_path, keep_sequence);
            PERFORM snowflake_migrate_internal.recompile(keys);
            EXECUTE format('SET LOCAL lock_timeout = %L', former_timeout);
            RAISE NOTICE '%', snowflake_migrate_internal.done_notice(keys, keep_sequence);
            IF NOT keep_sequence THEN
                RAISE NOTICE 'old rows keep their IDs: %', snowflake_migrate_internal.retention_note(keys);
            END IF;
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            -- A statement of the swap may lock a relation that was made since.
            last_notice_at := snowflake_migrate_internal.lock_missed(locked, text 'ACCESS EXCLUSIVE', started_at, last_notice_at);
        END;
        PERFORM snowflake_migrate_internal.wait((1000 * pause * (0.5 + random()))::integer);
        pause := least(pause * 1.5, 2);
    END LOOP;
END
$function$;

-- The columns that the planner has no statistics of after the swap: all shadows, and wide
-- columns without, because the check after a migration includes them. The statistics
-- of statistics objects and of expressions in indexes take an ANALYZE of the whole table.
CREATE FUNCTION snowflake_migrate_internal.online_analyze_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.step(text 'analyze', c.relation, text 'SHARE UPDATE EXCLUSIVE',
        text 'analyzes %s', text 'collects statistics for the planner',
        ARRAY[snowflake_migrate_internal.command(text 'plain', c.relation,
            concat('ANALYZE ', snowflake_migrate_internal.name_of(c.relation),
                   CASE WHEN w.relation IS NULL THEN format(' (%s)', string_agg(quote_ident(c.name), ', ' ORDER BY c.attribute)) END))],
        names => ARRAY[c.relation::text])
    FROM (SELECT s.relation, s.attribute, s.shadow_name AS name
          FROM snowflake_migrate_internal.shadows(keys) AS s
          WHERE NOT s.is_kept OR NOT s.is_filled OR snowflake_migrate_internal.lacks_statistics(s.relation, s.shadow_name)
        UNION ALL
          SELECT r.relation, r.attribute, r.attname
          FROM snowflake_migrate_internal.linked_columns(keys) AS r
          JOIN pg_class AS o ON o.oid = r.relation AND pg_has_role(o.relowner, 'USAGE')
          WHERE NOT r.is_narrow AND snowflake_migrate_internal.lacks_statistics(r.relation, r.attname)
        UNION ALL
          SELECT w.relation, NULL, NULL
          FROM snowflake_migrate_internal.analyzed_whole(keys) AS w WHERE w.is_lacking) AS c
    LEFT JOIN snowflake_migrate_internal.analyzed_whole(keys) AS w ON w.relation = c.relation
    GROUP BY c.relation, w.relation
    ORDER BY c.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, c.relation::text
$function$;

CREATE FUNCTION snowflake_migrate_internal.swap_step(keys snowflake_migrate_internal.key[], keep_sequence boolean)
RETURNS snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.step(text 'swap', (keys[1]).target, text 'ACCESS EXCLUSIVE',
        format('swaps %s of %s', snowflake_migrate_internal.counted(count(*), text 'column'),
               snowflake_migrate_internal.counted(count(DISTINCT s.relation), text 'table')),
        format('checks everything again under the lock, then replaces %s by their shadows: only the catalog changes. '
               'They become the last columns of their tables. %s',
               snowflake_migrate_internal.some_names(array_agg(format('%s.%I', s.relation, s.narrow)
                   ORDER BY s.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, s.relation::text, s.attribute)),
               CASE WHEN keep_sequence THEN 'Sequences go on, above the end of an integer, too'
                    ELSE 'N' || substr(snowflake_migrate_internal.new_ids_note(keys), 2) || (
                              SELECT snowflake_migrate_internal.renewal_note(array_agg(q.fate), array_agg(q.sequence))
                              FROM snowflake_migrate_internal.sequences_at_switch(keys) AS q) END)
        || coalesce('. It ' || snowflake_migrate_internal.dependents_note(snowflake_migrate_internal.swap_columns(keys))
                    || ' in the same transaction', ''),
        ARRAY[snowflake_migrate_internal.command(CASE WHEN keep_sequence THEN 'swap, keep' ELSE 'swap' END, (keys[1]).target)], keys,
        -- Under the lock; measured with 148 to 212 columns.
        work => (NULL, NULL, 0.1 + 0.012 * count(*))::snowflake_migrate_internal.work)
    FROM snowflake_migrate_internal.shadows(keys) AS s
$function$;

-- The remaining steps before the swap, and the swap.
CREATE FUNCTION snowflake_migrate_internal.online_steps(keys snowflake_migrate_internal.key[], keep_sequence boolean)
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.shadow_steps(keys) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.guard_steps(keys) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.backfill_steps(keys) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.unguard_steps(keys) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.leftover_steps(keys) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.check_steps(keys) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.statistics_steps(keys) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.index_steps(keys) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.foreign_key_steps(keys) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.online_analyze_steps(keys) AS s;
    RETURN NEXT snowflake_migrate_internal.swap_step(keys, keep_sequence);
END
$function$;

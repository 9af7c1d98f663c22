-- The progress of copying rows, and the next step.

-- Records that a table's rows are to be copied. An interrupted copy resumes. A
-- finished one starts again, because the caller requested another pass.
CREATE FUNCTION snowflake_migrate_internal.record_backfill(keys snowflake_migrate_internal.key[], relation regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- Waits for a session that copies the same table.
    step snowflake_migrate_internal.progress := snowflake_migrate_internal.progress((keys[1]).target, (keys[1]).column_name, relation);
    file CONSTANT oid := pg_relation_filenode(relation);
    is_unfinished CONSTANT boolean := step.filenode = file AND (step.blocks_done < step.blocks_total OR step.skipped <> '{}');
BEGIN
    -- A statement of an older plan has added shadows to columns that were widened meanwhile.
    IF NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadows(keys, relation) AS s WHERE s.shadow IS NOT NULL) THEN
        PERFORM snowflake_internal.refuse('55000', format('%s has no column that a shadow could replace', relation),
            hint => 'Nothing was changed by this statement. Request the plan again.');
    END IF;
    IF is_unfinished IS NOT TRUE THEN
        step.target := (keys[1]).target;
        step.column_name := (keys[1]).column_name;
        step.relation := relation;
        step.filenode := file;
        step.blocks_done := 0;
        step.blocks_total := ceil(pg_relation_size(relation, 'main')::numeric / current_setting('block_size')::bigint);
        step.skipped := '{}';
        step.rows_done := 0;
        -- A former estimate is kept, because the first pass has enlarged the table.
        step.rows_total := coalesce(step.rows_total, snowflake_migrate_internal.row_estimate(relation));
    END IF;
    -- Owners may have changed, and with them the set.
    SELECT array_agg(k.target ORDER BY k.place), array_agg(k.column_name ORDER BY k.place) INTO step.key_targets, step.key_column_names
    FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place);
    step.bytes_now := pg_total_relation_size(relation);
    step.bytes_before := coalesce(step.bytes_before, step.bytes_now);
    step.batch_blocks := NULL;
    step.run_rows := 0;
    step.run_seconds := 0;
    step.updated_at := clock_timestamp();
    PERFORM snowflake_migrate_internal.keep_progress(step);
END
$function$;

-- The keys of the unfinished online migration that includes one of these keys, or
-- these keys.
--
-- The role that writes a row has the privileges of the owners of all its keys, but
-- owners change afterwards. So a row counts only if two roles could write it now: the
-- caller, who otherwise could neither continue nor cancel a migration of the caller's
-- own table; and the owner of the row's table, so that a superuser who does what that
-- owner requests changes no table of a third role. A set of tables of several owners
-- is found only if all of its tables are specified.
CREATE FUNCTION snowflake_migrate_internal.unfinished(keys snowflake_migrate_internal.key[])
RETURNS snowflake_migrate_internal.key[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    theirs snowflake_migrate_internal.key[];
    common bigint;
BEGIN
    FOR theirs IN
        SELECT ARRAY(SELECT (k.target, k.column_name)::snowflake_migrate_internal.key
                     FROM unnest(s.key_targets, s.key_column_names) WITH ORDINALITY AS k (target, column_name, place)
                     ORDER BY k.place)
        -- Once for each owner, because each table of a set has a row.
        FROM (SELECT DISTINCT p.key_targets, p.key_column_names, o.relowner
              FROM snowflake_migrate_internal.progress AS p
              JOIN pg_class AS o ON o.oid = p.relation
              WHERE p.key_targets && ARRAY(SELECT k.target FROM unnest(keys) AS k)) AS s
        WHERE NOT EXISTS (SELECT FROM unnest(s.key_targets) AS t (target)
                          LEFT JOIN pg_class AS c ON c.oid = t.target
                          -- Not what a table that was dropped has left.
                          WHERE c.oid IS NULL
                             OR NOT pg_has_role(c.relowner, 'USAGE')
                             OR NOT pg_has_role(s.relowner, c.relowner, 'USAGE'))
    LOOP
        SELECT count(*) INTO common FROM unnest(keys) AS k WHERE (k.target, k.column_name) IN (SELECT * FROM unnest(theirs));
        CONTINUE WHEN common = 0
            -- What is left of a migration whose columns were dropped by hand.
            OR NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadows(theirs) AS s WHERE s.trigger_oid IS NOT NULL);
        IF common < cardinality(keys) THEN
            PERFORM snowflake_internal.refuse('55000', format('cannot migrate %s', snowflake_migrate_internal.key_names(keys)),
                detail => format('An online migration of %s has begun.', snowflake_migrate_internal.key_names(theirs)),
                hint => 'Finish that migration first, or cancel it with snowflake_migrate.revert().');
        END IF;
        RETURN theirs;
    END LOOP;
    RETURN keys;
END
$function$;

-- The planner's estimate of the number of rows, from the table's present size.
CREATE FUNCTION snowflake_migrate_internal.row_estimate(relation regclass)
RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN c.reltuples >= 0 AND c.relpages > 0
                THEN round(least(c.reltuples / c.relpages * size.blocks, '1e18'))
                -- Not analyzed yet: estimated from the width of a row, as the planner does.
                ELSE round(size.blocks * ((size.block - 24) / (28 + size.width)::double precision)) END::bigint
    FROM pg_class AS c
    CROSS JOIN LATERAL (
        SELECT snowflake_migrate_internal.main_bytes(c.oid)::numeric / b.block AS blocks, b.block,
               (SELECT sum(CASE WHEN a.attlen > 0 THEN a.attlen ELSE 32 END) FROM pg_attribute AS a
                WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS width
        FROM (SELECT current_setting('block_size')::bigint AS block) AS b
    ) AS size
    WHERE c.oid = relation
$function$;

CREATE FUNCTION snowflake_migrate_internal.backfill_summary(keys snowflake_migrate_internal.key[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('%s rows of %s %s copied; the next step checks each row', sum(p.rows_done), count(*),
                  CASE count(*) WHEN 1 THEN 'table are' ELSE 'tables are' END)
    FROM snowflake_migrate_internal.progress AS p
    WHERE p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name
$function$;

-- What a migration has done, for its last NOTICE.
CREATE FUNCTION snowflake_migrate_internal.done_notice(keys snowflake_migrate_internal.key[], keep_sequence boolean)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format(CASE WHEN keep_sequence
                       THEN '%s widened, with the columns that reference it; the sequence continues%s. '
                            'Clients must reconnect if they have prepared statements or know the types of columns'
                       ELSE 'new rows of %s get snowflake IDs from %s on. '
                            'If a column was widened, reconnect clients that have prepared statements or know the types of columns' END,
                  snowflake_migrate_internal.key_names(keys),
                  CASE WHEN keep_sequence
                       THEN (SELECT ' after ' || min(q.last_value)
                             FROM unnest(keys[1:1]) AS k
                             CROSS JOIN LATERAL snowflake_migrate_internal.source(k.target, k.column_name) AS s
                             CROSS JOIN LATERAL snowflake_migrate_internal.sequence_state(s.sequence, k.target) AS q
                             WHERE cardinality(keys) = 1 AND q.is_called)
                       ELSE snowflake_migrate_internal.first_id_at(now())::text END)
$function$;

-- The next step, with the number of those of its kind. Empty sets are skipped.
CREATE FUNCTION snowflake_migrate_internal.online_step(keys snowflake_migrate_internal.key[], OUT step text, OUT is_backfill boolean)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.* FROM snowflake_migrate_internal.shadows(keys) AS s
    ), phase (place, name, done, total) AS (
        SELECT 1, 'adding shadow columns', count(*) FILTER (WHERE s.shadow IS NOT NULL), count(*) FROM shadow AS s
      UNION ALL
        SELECT 2, 'backfill', count(*) FILTER (WHERE p.blocks_done >= p.blocks_total AND p.skipped = '{}'), count(*)
        FROM snowflake_migrate_internal.progress AS p
        WHERE p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name
          AND EXISTS (SELECT FROM shadow AS s WHERE NOT s.is_filled)
      UNION ALL
        SELECT 3, 'validating rows', count(*) FILTER (WHERE v.is_ready), count(*)
        FROM (SELECT s.is_filled AS is_ready FROM shadow AS s
            UNION ALL
              SELECT k.is_ready FROM snowflake_migrate_internal.shadow_checks(keys) AS k) AS v
      UNION ALL
        SELECT 4, 'building indexes', count(*) FILTER (WHERE i.is_ready), count(*) FROM snowflake_migrate_internal.shadow_indexes(keys) AS i
      UNION ALL
        SELECT 5, 'adding foreign keys', count(*) FILTER (WHERE f.is_ready), count(*)
        FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS f
    )
    SELECT coalesce(p.text, 'ready to swap'), p.place IS NOT DISTINCT FROM 2
    FROM (VALUES (1)) AS always
    LEFT JOIN (SELECT p.place, format('%s, %s of %s', p.name, p.done + 1, p.total) AS text
               FROM phase AS p WHERE p.done < p.total ORDER BY p.place LIMIT 1) AS p ON true
$function$;

-- The keys of the survey: all columns with a sequence, of a schema or of the database.
CREATE FUNCTION snowflake_migrate_internal.survey_keys(schema_name name)
RETURNS snowflake_migrate_internal.key[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT ARRAY(
        SELECT DISTINCT (c.oid, s.column_name)::snowflake_migrate_internal.key
        FROM snowflake_migrate_internal.columns() AS s
        JOIN pg_namespace AS n ON n.nspname = s.schema_name
        JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = s.table_name
        WHERE c.relkind IN ('r', 'p')
          AND (survey_keys.schema_name IS NULL OR n.nspname = survey_keys.schema_name)
          -- The tables of an extension are not migrated.
          AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
        ORDER BY 1)
$function$;

-- The obstacles of each of several keys: those that both kinds of plan have, or those of
-- one. All keys are checked at once. An error is an obstacle of the key whose check
-- raises it, which is found by dividing the keys.
CREATE FUNCTION snowflake_migrate_internal.obstacles_of_each(keys snowflake_migrate_internal.key[], kind text, keep_sequence boolean)
RETURNS TABLE (target regclass, column_name name, obstacles text[]) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    half CONSTANT integer := cardinality(keys) / 2;
    found snowflake_migrate_internal.obstacle[];
BEGIN
    BEGIN
        found := CASE kind WHEN 'common' THEN ARRAY(SELECT o FROM snowflake_migrate_internal.obstacles(keys, NULL, keep_sequence) AS o)
                           ELSE ARRAY(SELECT o FROM snowflake_migrate_internal.plan_obstacles(
                               snowflake_migrate_internal.keys_outside_citus(keys), kind = 'online') AS o) END;
        RETURN QUERY
            SELECT b.target, b.column_name, snowflake_migrate_internal.obstacle_lines(b.obstacles)
            FROM snowflake_migrate_internal.obstacles_by_key(keys, found) AS b;
    EXCEPTION WHEN OTHERS THEN
        IF half = 0 THEN
            RETURN QUERY SELECT k.target, k.column_name, ARRAY[SQLERRM] FROM unnest(keys) AS k;
        ELSE
            RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.obstacles_of_each(keys[:half], kind, keep_sequence) AS o;
            RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.obstacles_of_each(keys[half + 1:], kind, keep_sequence) AS o;
        END IF;
    END;
END
$function$;

-- The obstacles of each key to both ways, for the survey.
CREATE FUNCTION snowflake_migrate_internal.survey_obstacles(
    keys snowflake_migrate_internal.key[], found snowflake_migrate_internal.finding[], keep_sequence boolean
) RETURNS TABLE (target regclass, column_name name, window_obstacles text[], online_obstacles text[]) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH checked (kind, place, target, column_name, obstacles) AS MATERIALIZED (
        SELECT k.kind, k.place, o.*
        FROM (VALUES ('common', 1), ('window', 3), ('online', 3)) AS k (kind, place)
        CROSS JOIN LATERAL snowflake_migrate_internal.obstacles_of_each(keys, k.kind, keep_sequence) AS o
      UNION ALL
        SELECT 'finding', 2, b.target, b.column_name, snowflake_migrate_internal.obstacle_lines(b.obstacles)
        FROM snowflake_migrate_internal.obstacles_by_key(keys, ARRAY(
            SELECT o FROM snowflake_migrate_internal.finding_obstacles(found) AS o)) AS b
    )
    SELECT c.target, c.column_name,
           coalesce(array_agg(o.text ORDER BY c.place, o.place) FILTER (WHERE c.kind <> 'online'), '{}'),
           coalesce(array_agg(o.text ORDER BY c.place, o.place) FILTER (WHERE c.kind <> 'window'), '{}')
    FROM checked AS c CROSS JOIN LATERAL unnest(c.obstacles) WITH ORDINALITY AS o (text, place)
    GROUP BY c.target, c.column_name
$function$;

-- What the survey says of the columns that seem to hold the IDs of a key without a foreign key.
CREATE FUNCTION snowflake_migrate_internal.unlinked_notes(keys snowflake_migrate_internal.key[])
RETURNS TABLE (target regclass, column_name name, note text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT n.target, n.column_name, string_agg(n.note, ' ' ORDER BY n.place)
    FROM (
        SELECT (keys[1]).target, (keys[1]).column_name, 1, snowflake_migrate_internal.no_foreign_keys(keys)
      UNION ALL
        SELECT u.target, u.target_column, 2,
               format('%s to hold these IDs without a foreign key: %s. '
                      'Widen those that do: snowflake_migrate.unlinked() has the statements.',
                      CASE cardinality(u.names) WHEN 1 THEN '1 column seems'
                           ELSE to_char(cardinality(u.names), 'FM999,999') || ' columns seem' END,
                      snowflake_migrate_internal.some_names(u.names))
        FROM (SELECT u.target, u.target_column,
                     array_agg(format('%s.%I', u.relation::regclass, u.attname) ORDER BY u.relation::regclass::text, u.attname) AS names
              FROM snowflake_migrate_internal.unlinked_columns(keys) AS u
              GROUP BY u.target, u.target_column) AS u
    ) AS n (target, column_name, place, note)
    WHERE n.note IS NOT NULL
    GROUP BY n.target, n.column_name
$function$;

-- The keys of the survey, with the columns that hold their IDs, in order.
CREATE FUNCTION snowflake_migrate_internal.survey_columns(keys snowflake_migrate_internal.key[])
RETURNS TABLE (
    relation regclass, attname name, data_type text, percent_used numeric, limited_by text, is_wide boolean,
    is_narrow boolean, linked snowflake_migrate_internal.key[], narrow snowflake_migrate_internal.key[]
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT DISTINCT ON (n.nspname, s.table_name, s.column_name)
           c.oid::regclass, s.column_name, s.data_type, s.percent_used, s.limited_by, w.relation IS NULL,
           coalesce(l.is_narrow, false), l.linked, l.narrow
    FROM snowflake_migrate_internal.columns() AS s
    JOIN pg_namespace AS n ON n.nspname = s.schema_name
    JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = s.table_name
    LEFT JOIN (SELECT r.target, r.column_name, bool_or(r.is_narrow) AS is_narrow,
                      array_agg((r.relation, r.attname)::snowflake_migrate_internal.key) AS linked,
                      array_agg((r.relation, r.attname)::snowflake_migrate_internal.key) FILTER (WHERE r.is_narrow) AS narrow
               FROM snowflake_migrate_internal.columns_of_each(keys) AS r
               GROUP BY r.target, r.column_name) AS l ON l.target = c.oid AND l.column_name = s.column_name
    -- Of a wide column, the sequence may end as an integer.
    LEFT JOIN snowflake_migrate_internal.narrow_sequences(keys) AS w ON w.relation = c.oid AND w.column_name = s.column_name
    WHERE c.oid IN (SELECT k.target FROM unnest(keys) AS k)
    ORDER BY n.nspname, s.table_name, s.column_name, s.percent_used DESC NULLS LAST
$function$;

-- An error at a column is a text in its row, because each check is in a
-- subtransaction. The functions of the application are read once, for all
-- columns together. Compiling a query over the catalog takes longer than running
-- it, so jit is off.
CREATE FUNCTION snowflake_migrate_internal.survey(schema_name name, keep_sequence boolean)
RETURNS TABLE (
    table_name regclass, column_name name, data_type text, percent_used numeric, limited_by text, row_estimate bigint,
    tables_rewritten bigint, bytes_rewritten bigint, window_way text, online_way text,
    window_obstacles text[], online_obstacles text[], findings text[]
) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    keys CONSTANT snowflake_migrate_internal.key[] := snowflake_migrate_internal.survey_keys(schema_name);
    found snowflake_migrate_internal.finding[];
    finding_error text;
    key record;
BEGIN
    IF keys = '{}' THEN
        RETURN;
    END IF;
    BEGIN
        found := ARRAY(SELECT f FROM snowflake_migrate_internal.findings(keys, true) AS f
                       WHERE f.stage = ANY (snowflake_migrate_internal.stages(keep_sequence)));
    EXCEPTION WHEN OTHERS THEN
        finding_error := SQLERRM;
    END;
    FOR key IN
        SELECT c.*, coalesce(o.window_obstacles, '{}') AS window_obstacles, coalesce(o.online_obstacles, '{}') AS online_obstacles, u.note
        FROM snowflake_migrate_internal.survey_columns(keys)
            WITH ORDINALITY AS c (relation, attname, data_type, percent_used, limited_by, is_wide, is_narrow, linked, narrow, place)
        LEFT JOIN snowflake_migrate_internal.survey_obstacles(keys, found, keep_sequence) AS o
            ON o.target = c.relation AND o.column_name = c.attname
        LEFT JOIN snowflake_migrate_internal.unlinked_notes(keys) AS u ON u.target = c.relation AND u.column_name = c.attname
        ORDER BY c.place
    LOOP
        table_name := key.relation;
        column_name := key.attname;
        data_type := key.data_type;
        percent_used := key.percent_used;
        limited_by := key.limited_by;
        row_estimate := NULL;
        tables_rewritten := NULL;
        bytes_rewritten := NULL;
        findings := '{}';
        BEGIN
            row_estimate := (SELECT sum(snowflake_migrate_internal.row_estimate(f.relation))
                             FROM snowflake_migrate_internal.table_tree(key.relation, key.attname) AS f
                             JOIN pg_class AS c ON c.oid = f.relation AND c.relkind = 'r');
            -- A table with several of the columns is rewritten once.
            SELECT count(*), coalesce(sum(snowflake_migrate_internal.total_bytes(t.relation)), 0) INTO tables_rewritten, bytes_rewritten
            FROM (SELECT DISTINCT f.relation
                  FROM unnest(key.narrow) AS n
                  CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(n.target, n.column_name) AS f
                  JOIN pg_class AS c ON c.oid = f.relation AND c.relkind = 'r') AS t;
            window_obstacles := key.window_obstacles;
            window_way := CASE WHEN cardinality(window_obstacles) > 0 THEN 'not possible'
                               WHEN key.is_narrow THEN 'rewrite'
                               WHEN keep_sequence AND key.is_wide THEN 'not needed' ELSE 'catalog only' END;
            online_obstacles := CASE WHEN key.is_narrow THEN key.online_obstacles ELSE '{}' END;
            online_way := CASE WHEN NOT key.is_narrow THEN 'not needed' WHEN cardinality(online_obstacles) > 0 THEN 'not possible'
                               ELSE 'possible' END;
            findings := ARRAY(
                SELECT format('%s %s. %s', f.object, f.finding, f.remedy)
                FROM generate_subscripts(found, 1) AS n (place)
                CROSS JOIN LATERAL unnest(found[n.place:n.place]) AS f
                WHERE EXISTS (SELECT FROM unnest(key.linked) AS l
                              WHERE l.target = f.relation AND (f.column_name IS NULL OR l.column_name = f.column_name))
                ORDER BY n.place) || array_remove(ARRAY[finding_error, key.note], NULL);
        EXCEPTION WHEN OTHERS THEN
            window_way := 'not possible';
            online_way := 'not possible';
            window_obstacles := ARRAY[SQLERRM];
            online_obstacles := ARRAY[SQLERRM];
        END;
        RETURN NEXT;
    END LOOP;
END
$function$;

-- In the order in which they are to be migrated: first what can be, and of that what
-- runs out first.
CREATE FUNCTION snowflake_migrate.survey(schema_name name DEFAULT NULL, keep_sequence boolean DEFAULT false)
RETURNS TABLE (
    table_name regclass, column_name name, data_type text, percent_used numeric, row_estimate bigint,
    tables_rewritten bigint, bytes_rewritten bigint, window_way text, online_way text,
    window_obstacles text[], online_obstacles text[], findings text[]
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT s.table_name, s.column_name, s.data_type, s.percent_used, s.row_estimate,
           s.tables_rewritten, s.bytes_rewritten, s.window_way, s.online_way,
           s.window_obstacles, s.online_obstacles,
           array_remove(ARRAY[
               CASE WHEN s.percent_used >= 50 AND s.is_first
                    THEN format('runs out first: %s %% is used, limited by %s%s', s.percent_used, s.limited_by,
                                CASE WHEN s.is_possible THEN '' ELSE '. Remove the obstacles' END)
                    WHEN s.percent_used >= 50 AND s.is_possible AND s.is_first_of_kind
                    THEN format('runs out first of the columns that can be migrated: %s %% is used, limited by %s',
                                s.percent_used, s.limited_by) END], NULL) || s.findings
    FROM (SELECT a.*, p.is_possible,
                 row_number() OVER (ORDER BY a.percent_used DESC NULLS LAST, p.is_possible DESC, a.place) = 1 AS is_first,
                 row_number() OVER (PARTITION BY p.is_possible ORDER BY a.percent_used DESC NULLS LAST, a.place) = 1 AS is_first_of_kind
          FROM snowflake_migrate_internal.survey(survey.schema_name, coalesce(survey.keep_sequence, false)) WITH ORDINALITY AS a (
              table_name, column_name, data_type, percent_used, limited_by, row_estimate, tables_rewritten, bytes_rewritten,
              window_way, online_way, window_obstacles, online_obstacles, findings, place)
          CROSS JOIN LATERAL (SELECT a.window_way <> 'not possible' OR a.online_way = 'possible') AS p (is_possible)
        UNION ALL
          SELECT t.table_oid, k.name, 'bigint', NULL, NULL, snowflake_migrate_internal.row_estimate(t.table_oid), 0, 0,
                 'catalog only', 'not needed', '{}', '{}',
                 ARRAY[format('has snowflake IDs, and older numbers without a boundary: rows cannot be deleted by time. '
                              'CALL snowflake_migrate.run(%L, %L) sets it.', t.table_oid, k.name)],
                 NULL, true, false, false
          FROM snowflake_internal.tables_with_ids() AS t
          JOIN pg_class AS c ON c.oid = t.table_oid
          JOIN pg_namespace AS n ON n.oid = c.relnamespace
          CROSS JOIN LATERAL unnest(t.column_names) AS k (name)
          WHERE (survey.schema_name IS NULL OR n.nspname = survey.schema_name) AND survey.keep_sequence IS NOT TRUE
            AND snowflake_migrate_internal.lacks_boundary(t.table_oid, k.name)) AS s
    ORDER BY s.is_possible DESC, s.percent_used DESC NULLS LAST, s.place
$function$;
COMMENT ON FUNCTION snowflake_migrate.survey(schema_name name, keep_sequence boolean) IS
    'Returns for each column with a sequence, and for those whose boundary is not set, how it can be migrated, what prevents that, '
    'what it costs, and what it affects; of one schema or of all. With keep_sequence, how it can be widened';

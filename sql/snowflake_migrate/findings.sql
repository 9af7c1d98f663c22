-- Findings: what a migration will break, or what continues to use the old
-- sequence, in functions, triggers and views of the application. They are found by
-- what the bodies contain, as text, so they are hints for a person. A migration is
-- not refused because of them. What can be tried with a new number is an obstacle.
--
-- Cost: the bodies of the functions in user schemas are read once. A body of more than
-- 1 MB is not read, and its function is named as not searched.

-- Trigger functions that pass a column that will be a bigint to a function that has a form for
-- an integer there, and none for a bigint.
CREATE FUNCTION snowflake_migrate_internal.call_findings(
    columns snowflake_migrate_internal.code_column[], triggers snowflake_migrate_internal.code_trigger[],
    bodies snowflake_migrate_internal.code_body[]
) RETURNS SETOF snowflake_migrate_internal.finding LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH call AS (
        SELECT DISTINCT c.relation, c.attname, argument.function_name, argument.schema_name, argument.place::integer AS place,
               argument.count::integer AS count, t.function, t.trigger
        FROM unnest(triggers) AS t
        JOIN unnest(columns) AS c ON c.relation = t.relation AND c.attname = t.attname AND c.is_narrow
        JOIN unnest(bodies) AS b ON b.function = t.function
        JOIN pg_proc AS p ON p.oid = t.function
        CROSS JOIN LATERAL regexp_split_to_table(snowflake_migrate_internal.calls(p.prosrc), E'\n') AS line
        CROSS JOIN LATERAL (
            SELECT f[1]::name AS function_name, f[2]::name AS schema_name, f[3] AS place, f[4] AS count, f[5] AS value
            FROM string_to_array(line, E'\t') AS f WHERE cardinality(f) = 5) AS argument
        WHERE (strpos(b.code, format(' new . %s ', c.column_code)) > 0 OR strpos(b.code, format(' old . %s ', c.column_code)) > 0)
          AND argument.place ~ '^[0-9]{1,4}$' AND argument.count ~ '^[0-9]{1,4}$'
          AND (argument.value IN ('new . ' || c.column_code, 'old . ' || c.column_code)
               OR starts_with(argument.value, format('coalesce ( new . %s ,', c.column_code))
               OR starts_with(argument.value, format('coalesce ( old . %s ,', c.column_code)))
    ), narrow_call AS (
        SELECT c.relation, c.attname, c.function, c.trigger, min(p.oid::regprocedure::text) FILTER (WHERE type.is_narrow) AS signature,
               bool_and(n.nspname = 'pg_catalog') AS is_built_in
        FROM call AS c
        JOIN pg_proc AS p ON p.proname = c.function_name AND c.count BETWEEN p.pronargs - p.pronargdefaults AND p.pronargs
        JOIN pg_namespace AS n ON n.oid = p.pronamespace AND (c.schema_name = '' OR n.nspname = c.schema_name)
        JOIN pg_type AS t ON t.oid = p.proargtypes[c.place - 1]
        CROSS JOIN LATERAL (
            SELECT CASE WHEN t.typtype = 'd' THEN snowflake_migrate_internal.base_type(t.oid) ELSE t.oid END
                   IN ('int2'::regtype, 'int4'::regtype) AS is_narrow) AS type
        GROUP BY c.relation, c.attname, c.function, c.trigger, c.function_name, c.place
        -- A bigint is implicitly converted to other types of numbers.
        HAVING bool_or(type.is_narrow) AND NOT bool_or(NOT type.is_narrow AND (t.typtype = 'p' OR t.typcategory = 'N'))
    )
    SELECT c.relation, c.attname, format('function %s,', snowflake_migrate_internal.function_of_trigger(c.function, c.trigger)),
           format('passes column %I to %s, which has no form for a bigint', c.attname, c.signature),
           CASE WHEN c.is_built_in THEN format('Before the migration, pass another value, for example hashint8(NEW.%I).', c.attname)
                ELSE 'Before the migration, create that function with bigint (CREATE FUNCTION makes a second one), '
                     'then drop the one with integer. A bigint parameter also takes integer columns.' END,
           true, 'type', c.signature, false, c.function, c.trigger
    FROM narrow_call AS c
$function$;

-- Triggers of the module autoinc, which sets integers only.
CREATE FUNCTION snowflake_migrate_internal.autoinc_findings(
    columns snowflake_migrate_internal.code_column[], triggers snowflake_migrate_internal.code_trigger[]
) RETURNS SETOF snowflake_migrate_internal.finding LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT DISTINCT c.relation, c.attname,
           format('function %s,', snowflake_migrate_internal.function_of_trigger(t.function, t.trigger)),
           format('(autoinc) requires that column %I is an integer', c.attname),
           'Before the migration, drop the trigger: the default replaces it.', true, 'type', NULL, false, t.function, t.trigger
    FROM unnest(triggers) AS t
    JOIN unnest(columns) AS c ON c.relation = t.relation AND c.attname = t.attname AND c.is_narrow
    JOIN pg_trigger AS g ON g.oid = t.trigger
    JOIN pg_proc AS p ON p.oid = t.function AND p.prosrc = 'autoinc' AND p.probin LIKE '%autoinc%'
    -- The arguments, each with a zero byte at its end.
    WHERE encode(convert_to(c.attname::text, getdatabaseencoding()), 'escape') = ANY (string_to_array(encode(g.tgargs, 'escape'), E'\\000'))
$function$;

-- Defaults of other columns, and views, that use the sequences.
CREATE FUNCTION snowflake_migrate_internal.sequence_user_findings(columns snowflake_migrate_internal.code_column[])
RETURNS TABLE (
    place integer, relation regclass, column_name name, object text, finding text, remedy text, breaks_writes boolean,
    stage text, called text, refuses boolean, function oid, trigger oid
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH used AS MATERIALIZED (
        SELECT s.relation, s.attname, s.sequence, d.classid, d.objid
        FROM snowflake_migrate_internal.key_sequences(columns) AS s
        JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.sequence
    )
    SELECT DISTINCT 90, u.relation, u.attname, format('the default of %s.%I', e.adrelid::regclass, a.attname),
           format('calls currval(%L), which does not return the new row''s ID any more', u.sequence),
           'Before the migration, insert the ID that INSERT ... RETURNING returned.', false, 'default', NULL, true, NULL::oid, NULL::oid
    FROM used AS u
    JOIN pg_attrdef AS e ON u.classid = 'pg_attrdef'::regclass AND e.oid = u.objid
    JOIN pg_attribute AS a ON a.attrelid = e.adrelid AND a.attnum = e.adnum
    WHERE pg_get_expr(e.adbin, e.adrelid) ~ E'\\mcurrval\\('
  UNION ALL
    SELECT DISTINCT 120, u.relation, u.attname, format('view %s', w.ev_class::regclass), format('uses sequence %s', u.sequence),
           'Its values are old numbers after the migration.', false, 'default', NULL, false, NULL::oid, NULL::oid
    FROM used AS u
    JOIN pg_rewrite AS w ON u.classid = 'pg_rewrite'::regclass AND w.oid = u.objid
$function$;

-- The findings of a plan, of both goals.
CREATE FUNCTION snowflake_migrate_internal.findings(keys snowflake_migrate_internal.key[], online boolean)
RETURNS SETOF snowflake_migrate_internal.finding LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    columns CONSTANT snowflake_migrate_internal.code_column[] := ARRAY(SELECT c FROM snowflake_migrate_internal.code_columns(keys) AS c);
    triggers CONSTANT snowflake_migrate_internal.code_trigger[] := ARRAY(
        SELECT t FROM snowflake_migrate_internal.code_triggers(columns) AS t);
    bodies CONSTANT snowflake_migrate_internal.code_body[] := ARRAY(
        SELECT b FROM snowflake_migrate_internal.code_bodies(columns, triggers, online) AS b);
BEGIN
    RETURN QUERY
        SELECT f.relation, f.column_name, f.object, f.finding, f.remedy, f.breaks_writes, f.stage, f.called, f.refuses,
               f.function, f.trigger
        FROM (SELECT p.* FROM snowflake_migrate_internal.pattern_findings(keys, columns, triggers, bodies, online) AS p
            UNION ALL
              SELECT 40, c.* FROM snowflake_migrate_internal.call_findings(columns, triggers, bodies) AS c
            UNION ALL
              SELECT 60, a.* FROM snowflake_migrate_internal.autoinc_findings(columns, triggers) AS a
            UNION ALL
              SELECT u.* FROM snowflake_migrate_internal.sequence_user_findings(columns) AS u
            UNION ALL
              -- Once, with the first table.
              SELECT 110, (keys[1]).target, NULL, format('function %s', b.function::regprocedure),
                     'was not searched, because its body is larger than 1 MB',
                     'Look in it for statements that use the tables, the columns or their sequences.', false, 'default', NULL, false,
                     b.function, NULL
              FROM unnest(bodies) AS b
              WHERE b.code IS NULL
            UNION ALL
              SELECT 130, n.* FROM snowflake_migrate_internal.new_id_findings(keys) AS n
            UNION ALL
              SELECT 140, s.* FROM snowflake_migrate_internal.same_key_findings(keys) AS s
            UNION ALL
              SELECT 150, s.* FROM snowflake_migrate_internal.bounded_sequence_findings(keys) AS s
            UNION ALL
              SELECT 160, i.* FROM snowflake_migrate_internal.integer_findings(keys) AS i
            UNION ALL
              SELECT 170, i.* FROM snowflake_migrate_internal.integer_number_findings(keys) AS i) AS f
        ORDER BY f.place, f.relation::text, f.column_name, f.object, f.finding;
END
$function$;

-- The findings of a plan, for its obstacles, warnings and notes. Most of them are hints,
-- so an error of the search does not prevent a plan.
CREATE FUNCTION snowflake_migrate_internal.plan_findings(keys snowflake_migrate_internal.key[], online boolean, keep_sequence boolean)
RETURNS snowflake_migrate_internal.finding[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN ARRAY(SELECT f FROM snowflake_migrate_internal.findings(keys, online) AS f
                 WHERE f.stage = ANY (snowflake_migrate_internal.stages(keep_sequence)));
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'could not search functions and triggers for code that the migration affects: %', SQLERRM;
    RETURN ARRAY[]::snowflake_migrate_internal.finding[];
END
$function$;

-- Those that are obstacles.
CREATE FUNCTION snowflake_migrate_internal.finding_obstacles(findings snowflake_migrate_internal.finding[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT f.relation, f.column_name,
           concat_ws(' ', f.object, f.finding) || ': new rows would get no number, or that of an old row',
           f.remedy, '55000'
    FROM unnest(findings) AS f
    WHERE f.refuses
$function$;

-- The warnings of the findings that break writes: one for each function without a form for a bigint,
-- and one for the triggers of which the same is to be said.
CREATE FUNCTION snowflake_migrate_internal.finding_warnings(findings snowflake_migrate_internal.finding[])
RETURNS TABLE (message text, detail text, hint text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH found AS MATERIALIZED (
        SELECT f.*,
               CASE WHEN f.called IS NULL AND f.trigger IS NULL THEN f.place END AS alone,
               CASE WHEN f.called IS NULL AND f.trigger IS NOT NULL THEN ROW(f.function, f.stage, f.finding, f.remedy) END AS said,
               -- Tables and triggers are named once: several columns may be found in one.
               row_number() OVER (PARTITION BY f.called, f.function, f.stage, f.finding, f.remedy, f.relation ORDER BY f.place)
                   AS table_turn,
               row_number() OVER (PARTITION BY f.called, f.function, f.stage, f.finding, f.remedy, f.trigger ORDER BY f.place)
                   AS trigger_turn
        FROM unnest(findings) WITH ORDINALITY AS f (
            relation, column_name, object, finding, remedy, breaks_writes, stage, called, refuses, function, trigger, place)
        WHERE f.breaks_writes
    ), warning AS MATERIALIZED (
        SELECT min(f.place) AS place, count(*) FILTER (WHERE f.called IS NOT NULL OR f.trigger_turn = 1) AS places,
               f.called, min(f.object) AS object, min(f.function) AS function,
               min(f.finding) AS finding, min(f.stage) AS stage, min(f.remedy) AS remedy,
               count(*) FILTER (WHERE f.table_turn = 1) AS tables,
               snowflake_migrate_internal.some_names(
                   array_agg(f.relation::text ORDER BY f.place) FILTER (WHERE f.table_turn = 1)) AS relations,
               snowflake_migrate_internal.some_names(array_agg(
                   CASE WHEN f.called IS NULL THEN (SELECT format('%I of %s', t.tgname, t.tgrelid::regclass)
                                                    FROM pg_trigger AS t WHERE t.oid = f.trigger)
                        ELSE format('function %s (column %I)', snowflake_migrate_internal.function_of_trigger(f.function, f.trigger),
                                    f.column_name) END ORDER BY f.place)
                   FILTER (WHERE f.called IS NOT NULL OR f.trigger_turn = 1)) AS names
        FROM found AS f
        GROUP BY f.called, f.alone, f.said
    )
    SELECT CASE WHEN w.called IS NOT NULL AND w.places > 1
                THEN format('%s receives migrated columns, and has no form for a bigint', w.called)
                WHEN w.places > 1
                THEN format('function %s, called by %s triggers, %s', w.function::regprocedure, to_char(w.places, 'FM999,999'), w.finding)
                ELSE format('%s %s', w.object, w.finding) END,
           CASE WHEN w.called IS NOT NULL AND w.places > 1
                THEN format('Writes to their tables will fail as soon as the columns are bigints. It is called in %s places: %s.',
                            to_char(w.places, 'FM999,999'), w.names)
                ELSE format(CASE w.stage
                         WHEN 'shadow' THEN 'Writes to %s will fail from the step on that adds a column to %s.'
                         WHEN 'type' THEN 'Writes to %s, or calls of the function, will fail as soon as the %s.'
                         ELSE 'Writes to %s will fail, or continue to use old numbers, as soon as the %s.' END,
                         w.relations,
                         CASE w.stage WHEN 'shadow' THEN CASE w.tables WHEN 1 THEN 'it' ELSE 'them' END
                                      WHEN 'type' THEN CASE w.tables WHEN 1 THEN 'column is a bigint' ELSE 'columns are bigints' END
                                      ELSE CASE w.tables WHEN 1 THEN 'column has its new default'
                                                         ELSE 'columns have their new defaults' END END)
                     || CASE WHEN w.places > 1 THEN format(' Triggers: %s.', w.names) ELSE '' END END,
           w.remedy
    FROM warning AS w
    ORDER BY w.place
$function$;

-- Warns of them, and returns the findings for the notes of the steps. Nothing is said of columns
-- without a foreign key when the migration is complete.
CREATE FUNCTION snowflake_migrate_internal.warn(
    keys snowflake_migrate_internal.key[], found_ones snowflake_migrate_internal.finding[], is_pending boolean
) RETURNS snowflake_migrate_internal.finding[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    most_warnings CONSTANT integer := 50;
    findings snowflake_migrate_internal.finding[] := ARRAY[]::snowflake_migrate_internal.finding[];
    warnings integer := 0;
    warned record;
    unlinked text[];
    holders regclass[];
BEGIN
    BEGIN
        PERFORM snowflake_migrate_internal.warn_without_foreign_keys(keys) WHERE is_pending;
        SELECT array_agg(format('%s.%I', u.relation::regclass, u.attname) ORDER BY u.relation::regclass::text, u.attname),
               (SELECT array_agg(DISTINCT t.target) FROM unnest(array_agg(u.target)) AS t (target))
        INTO unlinked, holders
        FROM (SELECT u.relation, u.attname, min(u.target) AS target
              FROM snowflake_migrate_internal.unlinked_columns(keys) AS u WHERE is_pending GROUP BY u.relation, u.attname) AS u;
        IF unlinked IS NOT NULL THEN
            findings := ARRAY[((keys[1]).target, NULL, NULL,
                format('Seem to hold these IDs without a foreign key: %s', snowflake_migrate_internal.some_names(unlinked)),
                NULL, false, 'default', NULL, false, NULL, NULL)::snowflake_migrate_internal.finding];
            RAISE WARNING '% to hold these IDs without a foreign key',
                CASE cardinality(unlinked) WHEN 1 THEN '1 column seems'
                     ELSE to_char(cardinality(unlinked), 'FM999,999') || ' columns seem' END
                USING DETAIL = format('Found by names and by the columns of their tables: %s. '
                                      'Writes of new IDs to them will fail (22003).', snowflake_migrate_internal.some_names(unlinked)),
                      HINT = format('Before the migration, widen those that hold the IDs: %s has the statements.',
                                    snowflake_migrate_internal.some_names(ARRAY(
                                        SELECT format('SELECT * FROM snowflake_migrate.unlinked(%L)', h.target)
                                        FROM unnest(holders) AS h (target) ORDER BY h.target::text)));
        END IF;
        found_ones := ARRAY(
            SELECT f FROM unnest(found_ones) AS f
            ORDER BY f.breaks_writes DESC, f.called IS NOT NULL, f.called, f.relation::text, f.stage, f.object, f.finding);
        findings := findings || found_ones;
        FOR warned IN SELECT w.* FROM snowflake_migrate_internal.finding_warnings(found_ones) AS w LOOP
            warnings := warnings + 1;
            IF warnings <= most_warnings THEN
                RAISE WARNING '%', warned.message USING DETAIL = warned.detail, HINT = warned.hint;
            END IF;
        END LOOP;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'could not search functions and triggers for code that the migration affects: %', SQLERRM;
    END;
    IF warnings > most_warnings THEN
        RAISE WARNING '% more functions and triggers will fail', warnings - most_warnings
            USING HINT = 'snowflake_migrate.survey() contains all of them.';
    END IF;
    RETURN findings;
END
$function$;

-- What the note of a step has of the findings: the first ten, and each remedy once.
-- relation is NULL for all tables.
CREATE FUNCTION snowflake_migrate_internal.finding_notes(findings snowflake_migrate_internal.finding[], stage text, relation regclass)
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH found AS (
        SELECT concat_ws(' ', f.object, f.finding) AS finding, rtrim(f.remedy, '.') AS remedy,
               row_number() OVER (ORDER BY f.place) AS number
        FROM unnest(findings) WITH ORDINALITY AS f (
            relation, column_name, object, finding, remedy, breaks_writes, stage, called, refuses, function, trigger, place)
        WHERE (f.stage = finding_notes.stage OR f.stage = 'held' AND finding_notes.stage = 'type')
          AND (finding_notes.relation IS NULL OR f.relation = finding_notes.relation)
    )
    SELECT coalesce((SELECT string_agg(r.text, '' ORDER BY r.number)
                     FROM (SELECT '. ' || string_agg(f.finding, '; ' ORDER BY f.number) || coalesce(': ' || f.remedy, '') AS text,
                                  min(f.number) AS number
                           FROM found AS f WHERE f.number <= 10
                           GROUP BY f.remedy) AS r), '')
           || (SELECT CASE WHEN count(*) > 10
                           THEN format('. And %s more findings: see snowflake_migrate.survey()', to_char(count(*) - 10, 'FM999,999'))
                           ELSE '' END
               FROM found)
$function$;

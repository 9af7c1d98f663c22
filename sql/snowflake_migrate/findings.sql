-- Findings: what a migration will break, or what continues to use the old
-- sequence, in functions, triggers and views of the application. They are found by
-- what the bodies contain, as text, so they are hints for a person. A migration is
-- not refused because of them. What can be tried with a new number is an obstacle.
--
-- Cost: the bodies of the functions in user schemas are read once. A body of more than
-- 1 MB is not read, and its function is named as not searched.

-- The findings of a plan, of both goals.
CREATE FUNCTION snowflake_migrate_internal.findings(keys snowflake_migrate_internal.key[], online boolean)
RETURNS SETOF snowflake_migrate_internal.finding LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH linked AS MATERIALIZED (
        SELECT r.relation, c.relname, n.nspname, c.reltype, a.attname, a.attnum, r.is_narrow, code.code AS column_code, code.pattern AS column_pattern,
               (r.relation, a.attname) IN (SELECT * FROM unnest(keys)) AS is_key
        FROM snowflake_migrate_internal.linked_columns(keys) AS r
        JOIN pg_class AS c ON c.oid = r.relation
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        CROSS JOIN LATERAL snowflake_migrate_internal.code_name(a.attname) AS code
    ), linked_table AS MATERIALIZED (
        SELECT l.relation, l.reltype, bool_or(l.is_narrow) AS is_narrow, table_code.code AS table_code, schema_code.code AS schema_code
        FROM linked AS l
        CROSS JOIN LATERAL snowflake_migrate_internal.code_name(l.relname) AS table_code
        CROSS JOIN LATERAL snowflake_migrate_internal.code_name(l.nspname) AS schema_code
        GROUP BY l.relation, l.reltype, table_code.code, schema_code.code
    ), source AS MATERIALIZED (
        -- Otherwise the function is evaluated once for each key.
        SELECT s.relation, s.attribute, s.sequence FROM snowflake_migrate_internal.sequence_columns() AS s
    ), key_sequence AS MATERIALIZED (
        SELECT l.relation, l.attname, l.column_code, s.oid::regclass AS sequence, a.attidentity <> '' AS is_dropped,
               sequence_code.code AS sequence_code, schema_code.code AS schema_code
        FROM linked AS l
        JOIN pg_attribute AS a ON a.attrelid = l.relation AND a.attname = l.attname
        JOIN source ON source.relation = l.relation AND source.attribute = l.attnum
        JOIN pg_class AS s ON s.oid = source.sequence
        JOIN pg_namespace AS n ON n.oid = s.relnamespace
        CROSS JOIN LATERAL snowflake_migrate_internal.code_name(s.relname) AS sequence_code
        CROSS JOIN LATERAL snowflake_migrate_internal.code_name(n.nspname) AS schema_code
        WHERE l.is_key
    ), hooked AS MATERIALIZED (
        -- Partitions have copies of their parent's triggers.
        SELECT t.tgrelid, t.tgname, t.tgfoid, t.tgtype, t.tgargs, t.tgnewtable, t.tgoldtable, l.relation, l.attname
        FROM linked AS l
        CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(l.relation, l.attname) AS f
        JOIN pg_trigger AS t ON t.tgrelid = f.relation AND NOT t.tgisinternal AND t.tgparentid = 0 AND t.tgenabled <> 'D'
                            AND t.tgfoid <> 'snowflake_migrate_internal.shadow()'::regprocedure
    ), body AS MATERIALIZED (
        SELECT p.oid, p.prorettype, p.prosrc, snowflake_migrate_internal.code(p.prosrc) AS code
        FROM pg_proc AS p
        JOIN pg_namespace AS n ON n.oid = p.pronamespace
        JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname IN ('plpgsql', 'sql')
        WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'snowflake_internal', 'snowflake_migrate_internal') AND n.nspname !~ '^pg_(toast|temp)'
          AND p.prosqlbody IS NULL
          -- code() returns NULL for such a body.
          AND CASE WHEN octet_length(p.prosrc) > 1048576 THEN true
                   ELSE p.prosrc ~* '(?:nextval|currval|setval|lastval|insert)'
                        OR p.oid IN (SELECT h.tgfoid FROM hooked AS h)
                        OR p.prorettype IN (SELECT t.reltype FROM linked_table AS t WHERE online) END
          AND p.oid NOT IN (SELECT e.oid FROM snowflake_migrate_internal.functions_of_extensions() AS e (oid))
    ), inserting AS MATERIALIZED (
        SELECT b.oid, regexp_replace(s.statement, E' exists \\( select \\* ', ' exists ( select ', 'g') AS statement
        FROM body AS b
        CROSS JOIN LATERAL string_to_table(b.code, ' ; ') AS part
        CROSS JOIN LATERAL (SELECT ' ' || part || ' ') AS s (statement)
        WHERE strpos(b.code, ' insert into ') > 0 AND strpos(s.statement, ' insert into ') > 0
    ), named AS MATERIALIZED (
        -- The tables that these statements read as a whole, or insert into without
        -- naming columns.
        SELECT DISTINCT i.oid, 'copy' AS use, m[1] AS schema_code, m[2] AS table_code
        FROM inserting AS i
        CROSS JOIN LATERAL regexp_matches(i.statement, E' (?:from|join|,) (?:only )?(?:("(?:[^"]|"")*"|[^ "]+) \\. )?("(?:[^"]|"")*"|[^ "]+)(?= )', 'g') AS m
        WHERE online AND i.statement ~ E' insert into .*(?:select|,|\\.) \\* '
      UNION
        SELECT i.oid, 'unnamed', m[1], m[2]
        FROM inserting AS i
        CROSS JOIN LATERAL regexp_matches(i.statement, E' insert into (?:("(?:[^"]|"")*"|[^ "]+) \\. )?("(?:[^"]|"")*"|[^ "]+) (?:as [^ ]+ )?(?:values|select|with|table) ', 'g') AS m
        WHERE online
    ), returning_rows AS MATERIALIZED (
        -- Few functions return rows of these tables, so only their bodies are read.
        SELECT b.oid, b.prorettype, b.code
        FROM body AS b
        WHERE b.prorettype IN (SELECT t.reltype FROM linked_table AS t WHERE online AND t.is_narrow)
    ), fired AS MATERIALIZED (
        SELECT h.tgfoid, h.tgtype, h.tgnewtable, h.tgoldtable, l.relation, l.attname, l.is_narrow, l.is_key,
               l.column_code, l.column_pattern, b.code, b.prosrc, p.prosrc = 'autoinc' AND p.probin LIKE '%autoinc%' AS is_autoinc,
               h.tgargs, format('function %s, called by trigger %I of %s,', p.oid::regprocedure, h.tgname, h.tgrelid::regclass) AS object,
               strpos(b.code, format(' new . %s ', l.column_code)) > 0 OR strpos(b.code, format(' old . %s ', l.column_code)) > 0 AS has_column
        FROM hooked AS h
        JOIN linked AS l ON l.relation = h.relation AND l.attname = h.attname
        JOIN pg_proc AS p ON p.oid = h.tgfoid
        LEFT JOIN body AS b ON b.oid = h.tgfoid
    ), row_copy AS (
        SELECT DISTINCT f.tgfoid, f.relation, f.object
        FROM fired AS f
        -- A comparison of rows copies nothing.
        CROSS JOIN LATERAL regexp_replace(f.code,
            E'(?:old|new) \\. \\* (?:\\) )?(?:is (?:not )?distinct from|=|< >|! =) (?:row )?(?:\\( )?(?:old|new) \\. \\* ', '', 'g') AS bare (code)
        CROSS JOIN LATERAL snowflake_migrate_internal.code_name(coalesce(f.tgnewtable, f.tgoldtable)) AS new_rows
        CROSS JOIN LATERAL snowflake_migrate_internal.code_name(coalesce(f.tgoldtable, f.tgnewtable)) AS old_rows
        WHERE f.is_narrow AND online AND strpos(bare.code, ' insert into ') > 0
          AND (bare.code ~ E' insert into [^;]* (?:old|new) (?:\\) )?\\. \\* '
               OR bare.code ~ E' insert into [^;]*\\$1 (?:\\) )?\\. \\* ' AND bare.code ~ ' using (?:old|new) '
               OR coalesce(f.tgnewtable, f.tgoldtable) IS NOT NULL
                  AND bare.code ~ format(E' insert into [^;]*(?:select|,|\\.) \\* [^;]*(?:from|join|,) (?:%s|%s) ', new_rows.pattern, old_rows.pattern))
    ), call AS (
        SELECT DISTINCT f.relation, f.attname, f.column_code, f.tgfoid, f.object, field.parts[1]::name AS function_name, field.parts[2]::name AS schema_name,
               field.parts[3]::integer AS place, field.parts[4]::integer AS count
        FROM fired AS f
        CROSS JOIN LATERAL regexp_split_to_table(snowflake_migrate_internal.calls(f.prosrc), E'\n') AS line
        CROSS JOIN LATERAL string_to_array(line, E'\t') AS field (parts)
        WHERE f.is_narrow AND f.has_column AND cardinality(field.parts) = 5 AND field.parts[3] ~ '^[0-9]{1,4}$' AND field.parts[4] ~ '^[0-9]{1,4}$'
          AND (field.parts[5] IN ('new . ' || f.column_code, 'old . ' || f.column_code)
               OR starts_with(field.parts[5], format('coalesce ( new . %s ,', f.column_code))
               OR starts_with(field.parts[5], format('coalesce ( old . %s ,', f.column_code)))
    ), narrow_call AS (
        SELECT c.relation, c.attname, c.object, c.function_name, min(p.oid::regprocedure::text) FILTER (WHERE type.is_narrow) AS signature,
               bool_and(n.nspname = 'pg_catalog') AS is_built_in
        FROM call AS c
        JOIN pg_proc AS p ON p.proname = c.function_name AND c.count BETWEEN p.pronargs - p.pronargdefaults AND p.pronargs
        JOIN pg_namespace AS n ON n.oid = p.pronamespace AND (c.schema_name = '' OR n.nspname = c.schema_name)
        JOIN pg_type AS t ON t.oid = p.proargtypes[c.place - 1]
        CROSS JOIN LATERAL (
            SELECT CASE WHEN t.typtype = 'd' THEN snowflake_migrate_internal.base_type(t.oid) ELSE t.oid END
                   IN ('int2'::regtype, 'int4'::regtype) AS is_narrow) AS type
        GROUP BY c.relation, c.attname, c.object, c.function_name, c.place
        -- A bigint is implicitly converted to other types of numbers.
        HAVING bool_or(type.is_narrow) AND NOT bool_or(NOT type.is_narrow AND (t.typtype = 'p' OR t.typcategory = 'N'))
    ), narrow_variable AS (
        SELECT DISTINCT f.relation, f.attname, f.object, found.variable
        FROM fired AS f
        CROSS JOIN LATERAL (
            SELECT m[1] AS variable
            FROM regexp_matches(f.code, format(E' ([^ ]+) (?:constant )?(?:int|integer|int4|smallint|int2) (?::=|=|default) (?:new|old) \\. %s ', f.column_pattern), 'g') AS m
          UNION
            SELECT m[1]
            FROM regexp_matches(f.code, format(E' ([^ ]+) (?::=|=) (?:new|old) \\. %s ;', f.column_pattern), 'g') AS m
            WHERE f.code ~ format(' %s (?:constant )?(?:int|integer|int4|smallint|int2) ',
                                  regexp_replace(m[1], E'([][\\\\.*+?(){}|^$])', E'\\\\\\1', 'g'))
        ) AS found
        WHERE f.is_narrow AND f.has_column
    ), key_setter AS (
        SELECT DISTINCT f.relation, f.attname, f.object, f.tgfoid,
               strpos(f.code, format(' new . %s is null ', f.column_code)) > 0
               OR strpos(f.code, format(' coalesce ( new . %s ', f.column_code)) > 0 AS is_conditional
        FROM fired AS f
        -- BEFORE INSERT, each row.
        WHERE f.is_key AND f.has_column AND f.tgtype & 7 = 7
          AND f.code !~ ' snowflake_(?:nextval|id) '
          AND (f.code ~ format(E' (?:;|begin|then|else|loop) new \\. %1$s (?::=|=) (?!old \\. %1$s )', f.column_pattern)
               OR f.code ~ format(E' select [^;]* into (?:strict )?new \\. %s ', f.column_pattern))
    ), word_call AS MATERIALIZED (
        SELECT b.oid, m[1] AS word, m[2] AS schema_code, m[3] AS sequence_code
        FROM body AS b
        CROSS JOIN LATERAL regexp_matches(b.code, E' (nextval|currval|setval) \\( '' (?:("(?:[^"]|"")*"|[^ "]+) \\. )?("(?:[^"]|"")*"|[^ "]+) ''(?= )', 'g') AS m
        WHERE strpos(b.code, 'val ( '' ') > 0
    ), serial_call AS MATERIALIZED (
        SELECT b.oid, m[1] AS word, m[2] AS schema_code, m[3] AS table_code, m[4] AS column_code
        FROM body AS b
        CROSS JOIN LATERAL regexp_matches(b.code,
            E' (nextval|currval|setval) \\( (?:pg_catalog \\. )?pg_get_serial_sequence \\( '' (?:("(?:[^"]|"")*"|[^ "]+) \\. )?("(?:[^"]|"")*"|[^ "]+) '' , '' ([^'']+) '' ', 'g') AS m
        WHERE strpos(b.code, ' pg_get_serial_sequence ( ') > 0
    ), last_call AS MATERIALIZED (
        SELECT i.oid, m[1] AS schema_code, m[2] AS table_code
        FROM body AS b
        JOIN inserting AS i ON i.oid = b.oid
        CROSS JOIN LATERAL regexp_matches(i.statement, E' insert into (?:("(?:[^"]|"")*"|[^ "]+) \\. )?("(?:[^"]|"")*"|[^ "]+)(?= )', 'g') AS m
        WHERE strpos(b.code, ' lastval ( ) ') > 0
    ), sequence_call AS (
        SELECT DISTINCT s.relation, s.attname, s.sequence, s.is_dropped, c.oid, c.word
        FROM (SELECT w.oid, w.word, s.sequence
              FROM word_call AS w
              JOIN key_sequence AS s ON s.sequence_code = w.sequence_code AND coalesce(w.schema_code, s.schema_code) = s.schema_code
            UNION ALL
              SELECT w.oid, w.word, s.sequence
              FROM serial_call AS w
              JOIN linked_table AS t ON t.table_code = w.table_code AND coalesce(w.schema_code, t.schema_code) = t.schema_code
              JOIN key_sequence AS s ON s.relation = t.relation AND s.column_code = w.column_code
            UNION ALL
              SELECT w.oid, 'lastval', s.sequence
              FROM last_call AS w
              JOIN linked_table AS t ON t.table_code = w.table_code AND coalesce(w.schema_code, t.schema_code) = t.schema_code
              JOIN key_sequence AS s ON s.relation = t.relation) AS c
        JOIN key_sequence AS s ON s.sequence = c.sequence
        WHERE NOT EXISTS (SELECT FROM key_setter AS k WHERE k.tgfoid = c.oid AND k.relation = s.relation)
    )
    SELECT r.relation, NULL::name, r.object,
           'inserts whole rows of this table into another one, which lacks the column that the migration adds',
           'Before the migration, name the columns: INSERT INTO ... (a, b) VALUES (OLD.a, OLD.b).', true, 'shadow', NULL, false
    FROM row_copy AS r
  UNION ALL
    SELECT DISTINCT t.relation, NULL::name, format('function %s', u.oid::regprocedure),
           CASE u.use WHEN 'copy' THEN format('copies rows of %s by SELECT * or RETURNING *, and the migration adds a column', t.relation)
                ELSE format('inserts into %s without naming its columns, of which the key becomes the last', t.relation) END,
           CASE u.use WHEN 'copy' THEN 'Before the migration, name the columns in both lists.'
                ELSE 'Before the migration, name the columns.' END,
           EXISTS (SELECT FROM hooked AS h WHERE h.tgfoid = u.oid), 'shadow', NULL, false
    FROM named AS u
    JOIN linked_table AS t ON t.table_code = u.table_code AND coalesce(u.schema_code, t.schema_code) = t.schema_code
    WHERE t.is_narrow
  UNION ALL
    SELECT t.relation, NULL::name, format('function %s', b.oid::regprocedure),
           format('returns rows of %s and names their columns, and the migration adds a column', t.relation),
           'Use SELECT * there, or declare the columns: RETURNS TABLE (...).', false, 'shadow', NULL, false
    FROM linked_table AS t
    JOIN returning_rows AS b ON b.prorettype = t.reltype
    WHERE b.code ~ ' select ' AND b.code !~ E' (?:select|,|\\.) \\* '
  UNION ALL
    SELECT c.relation, c.attname, c.object,
           format('passes column %I to %s, which has no form for a bigint', c.attname, c.signature),
           CASE WHEN c.is_built_in THEN format('Before the migration, pass another value, for example hashint8(NEW.%I).', c.attname)
                ELSE 'Before the migration, create that function with bigint (CREATE FUNCTION makes a second one), then drop the one with integer. A bigint parameter also takes integer columns.' END,
           true, 'type', c.signature, false
    FROM narrow_call AS c
  UNION ALL
    SELECT v.relation, v.attname, v.object, format('assigns column %I to the integer variable %s, which cannot hold snowflake IDs', v.attname, v.variable),
           format('Before the migration, declare it as bigint, or as %I%%TYPE.', v.attname), true, 'default', NULL, false
    FROM narrow_variable AS v
  UNION ALL
    SELECT DISTINCT f.relation, f.attname, f.object, format('(autoinc) requires that column %I is an integer', f.attname),
           'Before the migration, drop the trigger: the default replaces it.', true, 'type', NULL, false
    FROM fired AS f
    WHERE f.is_autoinc AND f.is_narrow
      -- The arguments, each with a zero byte at its end.
      AND encode(convert_to(f.attname::text, getdatabaseencoding()), 'escape') = ANY (string_to_array(encode(f.tgargs, 'escape'), E'\\000'))
  UNION ALL
    SELECT k.relation, k.attname, k.object,
           CASE WHEN k.is_conditional THEN format('sets column %I where it is NULL: only rows that are inserted with NULL keep old numbers', k.attname)
                ELSE format('sets column %I of each new row itself, so new rows do not get snowflake IDs', k.attname) END,
           'Drop the trigger, or remove that assignment from its function: the default sets the column.', NOT k.is_conditional, 'default', NULL, false
    FROM key_setter AS k
  UNION ALL
    SELECT c.relation, c.attname, format('function %s', c.oid::regprocedure),
           format('calls %s(%s)%s', c.word, CASE WHEN c.word <> 'lastval' THEN quote_literal(c.sequence::text) END,
                  CASE WHEN c.is_dropped THEN ', and that sequence is dropped with the identity'
                       WHEN c.word = 'nextval' THEN ', which continues to return old numbers'
                       WHEN c.word = 'setval' THEN ', which has no effect on new IDs any more'
                       ELSE ', which does not return the new row''s ID any more' END),
           CASE c.word WHEN 'nextval' THEN 'Call snowflake_nextval() instead, or leave the column to its default.'
                       WHEN 'setval' THEN 'Remove the call after the migration.'
                       ELSE 'Use INSERT ... RETURNING.' END,
           c.is_dropped AND EXISTS (SELECT FROM hooked AS h WHERE h.tgfoid = c.oid), 'default', NULL,
           c.word = 'currval' AND EXISTS (
               SELECT FROM pg_depend AS d
               LEFT JOIN pg_trigger AS g ON d.classid = 'pg_trigger'::regclass AND g.oid = d.objid AND g.tgisinternal
               WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = c.oid AND g.oid IS NULL
                 AND d.classid IN ('pg_attrdef'::regclass, 'pg_trigger'::regclass, 'pg_rewrite'::regclass))
    FROM sequence_call AS c
  UNION ALL
    SELECT DISTINCT s.relation, s.attname, format('the default of %s.%I', e.adrelid::regclass, a.attname), format('calls currval(%L), which does not return the new row''s ID any more', s.sequence),
           'Before the migration, insert the ID that INSERT ... RETURNING returned.', false, 'default', NULL, true
    FROM key_sequence AS s
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.sequence AND d.classid = 'pg_attrdef'::regclass
    JOIN pg_attrdef AS e ON e.oid = d.objid
    JOIN pg_attribute AS a ON a.attrelid = e.adrelid AND a.attnum = e.adnum
    WHERE pg_get_expr(e.adbin, e.adrelid) ~ E'\\mcurrval\\('
  UNION ALL
    -- Once, with the first table: any caller may have inserted into it.
    SELECT (keys[1]).target, NULL::name, format('function %s', b.oid::regprocedure),
           'calls lastval(), which fails after an INSERT of a new ID, or returns the number of another sequence',
           'Use INSERT ... RETURNING.', false, 'default', NULL, false
    FROM body AS b
    WHERE strpos(b.code, ' lastval ( ) ') > 0 AND b.oid NOT IN (SELECT w.oid FROM last_call AS w)
  UNION ALL
    -- Once, with the first table.
    SELECT (keys[1]).target, NULL::name, format('function %s', b.oid::regprocedure),
           'was not searched, because its body is larger than 1 MB',
           'Look in it for statements that use the tables, the columns or their sequences.', false, 'default', NULL, false
    FROM body AS b
    WHERE b.code IS NULL
  UNION ALL
    SELECT DISTINCT s.relation, s.attname, format('view %s', w.ev_class::regclass), format('uses sequence %s', s.sequence),
           'Its values are old numbers after the migration.', false, 'default', NULL, false
    FROM key_sequence AS s
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.sequence AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite AS w ON w.oid = d.objid
  UNION ALL
    SELECT f.* FROM snowflake_migrate_internal.new_id_findings(keys) AS f
  UNION ALL
    SELECT f.* FROM snowflake_migrate_internal.same_key_findings(keys) AS f
  UNION ALL
    SELECT f.* FROM snowflake_migrate_internal.bounded_sequence_findings(keys) AS f
  UNION ALL
    SELECT f.* FROM snowflake_migrate_internal.integer_findings(keys) AS f
  UNION ALL
    SELECT f.* FROM snowflake_migrate_internal.integer_number_findings(keys) AS f
$function$;

-- The findings of a plan, for its obstacles, warnings and notes. Most of them are hints,
-- so an error of the search does not prevent a plan.
CREATE FUNCTION snowflake_migrate_internal.plan_findings(keys snowflake_migrate_internal.key[], online boolean, keep_sequence boolean)
RETURNS snowflake_migrate_internal.finding[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN ARRAY(SELECT f FROM snowflake_migrate_internal.findings(keys, online) AS f WHERE f.stage = ANY (snowflake_migrate_internal.stages(keep_sequence)));
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

-- Warns of the findings that break writes, once for each function without a form for
-- a bigint, and returns all of them for the notes of the steps. Nothing is said of columns
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
    places text[];
    found record;
    unlinked text[];
BEGIN
    BEGIN
        SELECT array_agg(format('%s.%I', u.relation::regclass, u.attname) ORDER BY u.relation::regclass::text, u.attname) INTO unlinked
        FROM (SELECT DISTINCT u.relation, u.attname FROM snowflake_migrate_internal.unlinked_columns(keys) AS u WHERE is_pending) AS u;
        IF unlinked IS NOT NULL THEN
            findings := ARRAY[((keys[1]).target, NULL, NULL,
                format('Seem to hold these IDs without a foreign key: %s', snowflake_migrate_internal.some_names(unlinked)),
                NULL, false, 'default', NULL, false)::snowflake_migrate_internal.finding];
            RAISE WARNING '% to hold these IDs without a foreign key',
                CASE cardinality(unlinked) WHEN 1 THEN '1 column seems' ELSE to_char(cardinality(unlinked), 'FM999,999') || ' columns seem' END
                USING DETAIL = format('Found by names and by the columns of their tables: %s. Writes of new IDs to them will fail (22003).', snowflake_migrate_internal.some_names(unlinked)),
                      HINT = format('Before the migration, widen those that hold the IDs: SELECT * FROM snowflake_migrate.unlinked(%L) has the statements.', (keys[1]).target);
        END IF;
        FOR found IN
            SELECT f.*, f AS whole, row_number() OVER same AS place,
                   count(*) OVER (PARTITION BY f.breaks_writes, f.called, CASE WHEN f.called IS NULL THEN f END) AS places
            FROM unnest(found_ones) AS f
            WINDOW same AS (PARTITION BY f.breaks_writes, f.called, CASE WHEN f.called IS NULL THEN f END
                            ORDER BY f.relation::text, f.stage, f.object, f.finding)
            ORDER BY f.breaks_writes DESC, f.called IS NOT NULL, f.called, f.relation::text, f.stage, f.object, f.finding
        LOOP
            findings := findings || found.whole;
            places := CASE WHEN found.place = 1 THEN ARRAY[]::text[] ELSE places END
                      || concat(rtrim(found.object, ','), format(' (column %s)', quote_ident(found.column_name)));
            IF NOT found.breaks_writes OR found.place < found.places THEN
                CONTINUE;
            END IF;
            warnings := warnings + 1;
            IF warnings > most_warnings THEN
                CONTINUE;
            ELSIF found.places = 1 THEN
                RAISE WARNING '% %', found.object, found.finding
                    USING DETAIL = format(CASE found.stage
                              WHEN 'shadow' THEN 'Writes to %s will fail from the step on that adds a column to it.'
                              WHEN 'type' THEN 'Writes to %s, or calls of the function, will fail as soon as the column is a bigint.'
                              ELSE 'Writes to %s will fail, or continue to use old numbers, as soon as the column has its new default.' END,
                              found.relation),
                          HINT = found.remedy;
            ELSE
                RAISE WARNING '% receives migrated columns, and has no form for a bigint', found.called
                    USING DETAIL = format('Writes to their tables will fail as soon as the columns are bigints. It is called in %s places: %s.',
                                          to_char(found.places, 'FM999,999'), snowflake_migrate_internal.some_names(places)),
                          HINT = found.remedy;
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
        SELECT concat_ws(' ', f.object, f.finding) AS finding, rtrim(f.remedy, '.') AS remedy, row_number() OVER (ORDER BY f.place) AS number
        FROM unnest(findings) WITH ORDINALITY AS f (relation, column_name, object, finding, remedy, breaks_writes, stage, called, refuses, place)
        WHERE (f.stage = finding_notes.stage OR f.stage = 'held' AND finding_notes.stage = 'type')
          AND (finding_notes.relation IS NULL OR f.relation = finding_notes.relation)
    )
    SELECT coalesce((SELECT string_agg(r.text, '' ORDER BY r.number)
                     FROM (SELECT '. ' || string_agg(f.finding, '; ' ORDER BY f.number) || coalesce(': ' || f.remedy, '') AS text, min(f.number) AS number
                           FROM found AS f WHERE f.number <= 10
                           GROUP BY f.remedy) AS r), '')
           || (SELECT CASE WHEN count(*) > 10 THEN format('. And %s more findings: see snowflake_migrate.survey()', to_char(count(*) - 10, 'FM999,999')) ELSE '' END
               FROM found)
$function$;

-- Findings by what the bodies of functions contain: a table of patterns, one query that
-- searches for all of them, and one that tells where the names lead that are found.

-- What is searched for, and what it means: a row for each pattern.
--
-- place: of its findings among those of a plan.
-- scope: where. 'body': in each function. 'statement': in its statements that insert. 'result': in
--     functions that return rows of a table with a narrow column. In trigger functions of the tables
--     'column', which use a narrow column; 'new key', which use a key before each INSERT; 'row',
--     with a narrow column, without comparisons of rows; 'new rows', the same, with transition tables.
-- contains: what the whole body has to contain. Most do not, which is faster to find out.
-- required, excluded: what the text has to contain, or not to contain, besides the pattern.
-- pattern: {name} is the column, or any of the transition tables. Its parentheses are the
--     schema and the name of what names says; for a sequence, also the schema, table and column.
-- declared: what the text has to contain of the name that is {found}.
-- names: 'table', 'sequence', or 'sequence of table'; NULL for the trigger's table, or none.
-- breaks_writes: NULL if it does so in triggers; with a sequence, if that is dropped.
-- links_rows: whether it links new rows to old ones in what calls the function by itself.
-- finding, consequence, remedy: formats of the table, the column, the name and the sequence. A
--     sequence that is dropped has another consequence.
CREATE FUNCTION snowflake_migrate_internal.code_patterns()
RETURNS TABLE (
    place integer, scope text, contains text, required text, excluded text, pattern text, declared text, names text,
    stage text, breaks_writes boolean, links_rows boolean, finding text, consequence text, remedy text
) LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT p.place, p.scope, p.contains, p.required, p.excluded,
           replace(replace(replace(p.pattern,
               '{sequence}', E'(?:'' {table} ''(?= )|(?:pg_catalog \\. )?pg_get_serial_sequence \\( '' {table} '' , '' ([^'']+) '' )'),
               '{table}', E'(?:("(?:[^"]|"")*"|[^ "]+) \\. )?("(?:[^"]|"")*"|[^ "]+)'), '{integer}', i.types),
           replace(p.declared, '{integer}', i.types),
           p.names, p.stage, p.breaks_writes, p.links_rows, p.finding, coalesce(p.consequence, ''), p.remedy
    FROM (VALUES
        (10, 'row', ' insert into ', NULL, NULL, E' insert into [^;]* (?:old|new) (?:\\) )?\\. \\* ', NULL, NULL, 'shadow', true, false,
         'inserts whole rows of this table into another one, which lacks the column that the migration adds', NULL,
         'Before the migration, name the columns: INSERT INTO ... (a, b) VALUES (OLD.a, OLD.b).'),
        (10, 'row', ' insert into ', ' using (?:old|new) ', NULL,
         E' insert into [^;]*\\$1 (?:\\) )?\\. \\* ', NULL, NULL, 'shadow', true, false,
         'inserts whole rows of this table into another one, which lacks the column that the migration adds', NULL,
         'Before the migration, name the columns: INSERT INTO ... (a, b) VALUES (OLD.a, OLD.b).'),
        (10, 'new rows', ' insert into ', NULL, NULL,
         E' insert into [^;]*(?:select|,|\\.) \\* [^;]*(?:from|join|,) {name} ', NULL, NULL, 'shadow', true, false,
         'inserts whole rows of this table into another one, which lacks the column that the migration adds', NULL,
         'Before the migration, name the columns: INSERT INTO ... (a, b) VALUES (OLD.a, OLD.b).'),
        (20, 'statement', ' insert into ', E' insert into .*(?:select|,|\\.) \\* ', NULL,
         ' (?:from|join|,) (?:only )?{table}(?= )', NULL, 'table', 'shadow', NULL, false,
         'copies rows of %1$s by SELECT * or RETURNING *, and the migration adds a column', NULL,
         'Before the migration, name the columns in both lists.'),
        (20, 'statement', ' insert into ', NULL, NULL,
         ' insert into {table} (?:as [^ ]+ )?(?:values|select|with|table) ', NULL, 'table', 'shadow', NULL, false,
         'inserts into %1$s without naming its columns, of which the key becomes the last', NULL,
         'Before the migration, name the columns.'),
        (30, 'result', ' select ', NULL, E' (?:select|,|\\.) \\* ', ' select ', NULL, NULL, 'shadow', false, false,
         'returns rows of %1$s and names their columns, and the migration adds a column', NULL,
         'Use SELECT * there, or declare the columns: RETURNS TABLE (...).'),
        (50, 'column', ' . ', NULL, NULL,
         E' ()([^ ]+) (?:constant )?{integer} (?::=|=|default) (?:new|old) \\. {name} ', NULL, NULL, 'default', true, false,
         'assigns column %2$I to the integer variable %3$s, which cannot hold snowflake IDs', NULL,
         'Before the migration, declare it as bigint, or as %2$I%%TYPE.'),
        (50, 'column', ' . ', NULL, NULL,
         E' ()([^ ]+) (?::=|=) (?:new|old) \\. {name} ;', ' {found} (?:constant )?{integer} ', NULL, 'default', true, false,
         'assigns column %2$I to the integer variable %3$s, which cannot hold snowflake IDs', NULL,
         'Before the migration, declare it as bigint, or as %2$I%%TYPE.'),
        (70, 'new key', ' . ', NULL, E' (?:snowflake_(?:nextval|id)|new \\. {name} is null|coalesce \\( new \\. {name}) ',
         E' (?:(?:;|begin|then|else|loop) new \\. {name} (?::=|=) (?!old \\. {name} )|select [^;]* into (?:strict )?new \\. {name} )',
         NULL, NULL, 'default', true, false,
         'sets column %2$I of each new row itself, so new rows do not get snowflake IDs', NULL,
         'Drop the trigger, or remove that assignment from its function: the default sets the column.'),
        (70, 'new key', ' . ', E' (?:new \\. {name} is null|coalesce \\( new \\. {name}) ', ' snowflake_(?:nextval|id) ',
         E' (?:(?:;|begin|then|else|loop) new \\. {name} (?::=|=) (?!old \\. {name} )|select [^;]* into (?:strict )?new \\. {name} )',
         NULL, NULL, 'default', false, false,
         'sets column %2$I where it is NULL: only rows that are inserted with NULL keep old numbers', NULL,
         'Drop the trigger, or remove that assignment from its function: the default sets the column.'),
        (80, 'body', ' nextval ( ', NULL, NULL, E' nextval \\( {sequence}', NULL, 'sequence', 'default', NULL, false,
         'calls nextval(%4$L)', ', which continues to return old numbers',
         'Call snowflake_nextval() instead, or leave the column to its default.'),
        (80, 'body', ' setval ( ', NULL, NULL, E' setval \\( {sequence}', NULL, 'sequence', 'default', NULL, false,
         'calls setval(%4$L)', ', which has no effect on new IDs any more', 'Remove the call after the migration.'),
        (80, 'body', ' currval ( ', NULL, NULL, E' currval \\( {sequence}', NULL, 'sequence', 'default', NULL, true,
         'calls currval(%4$L)', ', which does not return the new row''s ID any more', 'Use INSERT ... RETURNING.'),
        (80, 'statement', ' lastval ( ) ', NULL, NULL, ' insert into {table}(?= )', NULL, 'sequence of table', 'default', NULL, false,
         'calls lastval()', ', which does not return the new row''s ID any more', 'Use INSERT ... RETURNING.'),
        (100, 'body', ' lastval ( ) ', NULL, ' insert into [^; ]', E' lastval \\( \\) ', NULL, NULL, 'default', false, false,
         'calls lastval(), which fails after an INSERT of a new ID, or returns the number of another sequence', NULL,
         'Use INSERT ... RETURNING.')
    ) AS p (place, scope, contains, required, excluded, pattern, declared, names,
            stage, breaks_writes, links_rows, finding, consequence, remedy)
    CROSS JOIN (VALUES ('(?:int|integer|int4|smallint|int2)')) AS i (types)
$function$;

-- Where the bodies contain the patterns: the names that are found, and for a trigger function the
-- trigger with its table and column.
CREATE FUNCTION snowflake_migrate_internal.code_matches(
    columns snowflake_migrate_internal.code_column[], triggers snowflake_migrate_internal.code_trigger[],
    bodies snowflake_migrate_internal.code_body[], online boolean
) RETURNS TABLE (
    pattern bigint, function oid, trigger oid, relation regclass, attname name, schema_code text, name_code text,
    serial_schema_code text, serial_table_code text, serial_column_code text
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH fired AS MATERIALIZED (
        SELECT t.*, c.is_narrow, c.column_code, c.column_pattern, c.is_key AND g.tgtype & 7 = 7 AS is_new_key,
               (SELECT '(?:' || string_agg(n.pattern, '|') || ')'
                FROM unnest(ARRAY[g.tgnewtable, g.tgoldtable]) AS r (name)
                CROSS JOIN LATERAL snowflake_migrate_internal.code_name(r.name) AS n
                WHERE r.name IS NOT NULL) AS rows_pattern
        FROM unnest(triggers) AS t
        JOIN unnest(columns) AS c ON c.relation = t.relation AND c.attname = t.attname
        JOIN pg_trigger AS g ON g.oid = t.trigger
    )
    SELECT DISTINCT p.ordinality, b.function, s.trigger, s.relation, s.attname, m.*
    FROM unnest(bodies) AS b
    JOIN snowflake_migrate_internal.code_patterns() WITH ORDINALITY AS p
        ON (online OR p.stage <> 'shadow') AND strpos(b.code, p.contains) > 0
    CROSS JOIN LATERAL (
        SELECT NULL::oid AS trigger, NULL::regclass AS relation, NULL::name AS attname, b.code AS text, text '' AS name_pattern
        WHERE p.scope = 'body'
      UNION ALL
        SELECT NULL, NULL, NULL, regexp_replace(concat(' ', t.tokens, ' '), E' exists \\( select \\* ', ' exists ( select ', 'g'), ''
        FROM string_to_table(b.code, ' ; ') AS t (tokens)
        WHERE p.scope = 'statement' AND strpos(concat(' ', t.tokens, ' '), ' insert into ') > 0
      UNION ALL
        SELECT NULL, c.relation, NULL, b.code, ''
        FROM unnest(columns) AS c
        WHERE p.scope = 'result' AND c.row_type = b.row_type AND c.is_narrow
      UNION ALL
        SELECT f.trigger, f.relation, f.attname, b.code, f.column_pattern
        FROM fired AS f
        WHERE f.function = b.function AND CASE p.scope WHEN 'column' THEN f.is_narrow WHEN 'new key' THEN f.is_new_key END
          AND (strpos(b.code, format(' new . %s ', f.column_code)) > 0 OR strpos(b.code, format(' old . %s ', f.column_code)) > 0)
      UNION ALL
        -- A comparison of rows copies nothing.
        SELECT f.trigger, f.relation, NULL,
               regexp_replace(b.code, E'(?:old|new) \\. \\* (?:\\) )?(?:is (?:not )?distinct from|=|< >|! =) (?:row )?(?:\\( )?'
                                      '(?:old|new) \\. \\* ', '', 'g'),
               CASE p.scope WHEN 'row' THEN '' ELSE f.rows_pattern END
        FROM fired AS f
        WHERE f.function = b.function AND f.is_narrow AND p.scope IN ('row', 'new rows')) AS s
    CROSS JOIN LATERAL regexp_matches(s.text, replace(p.pattern, '{name}', s.name_pattern), 'g') AS found (parts)
    CROSS JOIN LATERAL (SELECT parts[1], parts[2], parts[3], parts[4], parts[5]) AS m (
        schema_code, name_code, serial_schema_code, serial_table_code, serial_column_code)
    WHERE (p.required IS NULL OR s.text ~ replace(p.required, '{name}', s.name_pattern))
      AND (p.excluded IS NULL OR s.text !~ replace(p.excluded, '{name}', s.name_pattern))
      AND (p.declared IS NULL OR s.text ~ replace(p.declared, '{found}', snowflake_migrate_internal.escaped_code(m.name_code)))
$function$;

-- The sequences that the keys take their values from. An identity is dropped with its sequence.
CREATE FUNCTION snowflake_migrate_internal.key_sequences(columns snowflake_migrate_internal.code_column[])
RETURNS TABLE (
    relation regclass, attname name, sequence regclass, is_dropped boolean, sequence_code text, sequence_schema_code text,
    column_code text, table_code text, schema_code text
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH source AS MATERIALIZED (
        -- Otherwise the function is evaluated once for each key.
        SELECT s.relation, s.attribute, s.sequence FROM snowflake_migrate_internal.sequence_columns() AS s
    )
    SELECT c.relation, c.attname, s.oid::regclass, a.attidentity <> '', sequence_name.code, schema_name.code,
           c.column_code, c.table_code, c.schema_code
    FROM unnest(columns) AS c
    JOIN pg_attribute AS a ON a.attrelid = c.relation AND a.attnum = c.attnum
    JOIN source ON source.relation = c.relation AND source.attribute = c.attnum
    JOIN pg_class AS s ON s.oid = source.sequence
    JOIN pg_namespace AS n ON n.oid = s.relnamespace
    CROSS JOIN LATERAL snowflake_migrate_internal.code_name(s.relname) AS sequence_name
    CROSS JOIN LATERAL snowflake_migrate_internal.code_name(n.nspname) AS schema_name
    WHERE c.is_key
$function$;

-- What the matches mean, with the tables, columns and sequences that have the names. Those that
-- lead to no table of the keys are not findings.
CREATE FUNCTION snowflake_migrate_internal.pattern_findings(
    keys snowflake_migrate_internal.key[], columns snowflake_migrate_internal.code_column[],
    triggers snowflake_migrate_internal.code_trigger[], bodies snowflake_migrate_internal.code_body[], online boolean
) RETURNS TABLE (
    place integer, relation regclass, column_name name, object text, finding text, remedy text, breaks_writes boolean,
    stage text, called text, refuses boolean, function oid, trigger oid
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH matched AS MATERIALIZED (
        SELECT m.*, p.scope, p.names
        FROM snowflake_migrate_internal.code_matches(columns, triggers, bodies, online) AS m
        JOIN snowflake_migrate_internal.code_patterns() WITH ORDINALITY AS p ON p.ordinality = m.pattern
    ), key_sequence AS MATERIALIZED (
        SELECT s.* FROM snowflake_migrate_internal.key_sequences(columns) AS s
    ), meant AS (
        SELECT m.pattern, m.function, m.trigger, m.relation, m.attname, m.name_code, NULL::regclass AS sequence, NULL::boolean AS is_dropped
        FROM matched AS m WHERE m.relation IS NOT NULL
      UNION ALL
        -- Once, with the first table: any caller may have inserted into it.
        SELECT m.pattern, m.function, NULL, (keys[1]).target, NULL, NULL, NULL, NULL
        FROM matched AS m WHERE m.relation IS NULL AND m.names IS NULL
      UNION ALL
        SELECT m.pattern, m.function, NULL, c.relation, NULL, NULL, NULL, NULL
        FROM matched AS m
        JOIN unnest(columns) AS c ON c.table_code = m.name_code AND coalesce(m.schema_code, c.schema_code) = c.schema_code AND c.is_narrow
        WHERE m.names = 'table'
      UNION ALL
        SELECT c.pattern, c.function, NULL, s.relation, s.attname, NULL, s.sequence, s.is_dropped
        FROM (SELECT m.pattern, m.function, s.sequence
              FROM matched AS m
              JOIN key_sequence AS s ON s.sequence_code = m.name_code
                                    AND coalesce(m.schema_code, s.sequence_schema_code) = s.sequence_schema_code
              WHERE m.names = 'sequence'
            UNION
              SELECT m.pattern, m.function, s.sequence
              FROM matched AS m
              JOIN key_sequence AS s ON s.table_code = m.serial_table_code AND s.column_code = m.serial_column_code
                                    AND coalesce(m.serial_schema_code, s.schema_code) = s.schema_code
              WHERE m.names = 'sequence'
            UNION
              SELECT m.pattern, m.function, s.sequence
              FROM matched AS m
              JOIN key_sequence AS s ON s.table_code = m.name_code AND coalesce(m.schema_code, s.schema_code) = s.schema_code
              WHERE m.names = 'sequence of table') AS c
        JOIN key_sequence AS s ON s.sequence = c.sequence
        -- That has its own finding.
        WHERE NOT EXISTS (SELECT FROM matched AS k WHERE k.scope = 'new key' AND k.function = c.function AND k.relation = s.relation)
    )
    SELECT DISTINCT p.place, m.relation, m.attname,
           format('function %s%s', snowflake_migrate_internal.function_of_trigger(m.function, m.trigger),
                  CASE WHEN m.trigger IS NOT NULL THEN ',' END),
           format(p.finding, m.relation, m.attname, m.name_code, m.sequence)
               || CASE WHEN m.is_dropped THEN ', and that sequence is dropped with the identity' ELSE p.consequence END,
           format(p.remedy, m.relation, m.attname),
           coalesce(p.breaks_writes, m.is_dropped IS NOT FALSE AND m.function IN (SELECT t.function FROM unnest(triggers) AS t)),
           p.stage, NULL,
           p.links_rows AND EXISTS (
               SELECT FROM pg_depend AS d
               LEFT JOIN pg_trigger AS i ON d.classid = 'pg_trigger'::regclass AND i.oid = d.objid AND i.tgisinternal
               WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = m.function AND i.oid IS NULL
                 AND d.classid IN ('pg_attrdef'::regclass, 'pg_trigger'::regclass, 'pg_rewrite'::regclass)),
           m.function, m.trigger
    FROM meant AS m
    JOIN snowflake_migrate_internal.code_patterns() WITH ORDINALITY AS p ON p.ordinality = m.pattern
$function$;

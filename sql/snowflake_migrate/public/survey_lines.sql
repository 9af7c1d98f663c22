-- A text in lines of at most so many characters, each after an indentation. A longer word is divided.
CREATE FUNCTION snowflake_migrate_internal.wrapped(content text, first text, indentation text, width integer)
RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE l.place WHEN 1 THEN first ELSE indentation END || coalesce(l.parts[1], l.parts[2])
    FROM (SELECT width - greatest(length(first), length(indentation)) AS width) AS s
    CROSS JOIN LATERAL regexp_matches(
        content, format(E'\\s*(?:(\\S.{0,%s})(?=\\s|$)|(\\S{%s}))', s.width - 1, s.width), 'g')
        WITH ORDINALITY AS l (parts, place)
    ORDER BY l.place
$function$;

-- The survey for a screen of 80 columns. What several keys have in common, as an obstacle of
-- a table that references two of them, is there for each.
CREATE FUNCTION snowflake_migrate.survey_lines(schema_name name DEFAULT NULL, keep_sequence boolean DEFAULT false)
RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT w.line
    FROM snowflake_migrate.survey(survey_lines.schema_name, survey_lines.keep_sequence) WITH ORDINALITY AS s (
        table_name, column_name, data_type, percent_used, row_estimate, tables_rewritten, bytes_rewritten, window_way, online_way,
        window_obstacles, online_obstacles, findings, place)
    CROSS JOIN LATERAL (
        SELECT 1 AS part, 1::bigint AS place, format('%s.%I (%s)%s', s.table_name, s.column_name, s.data_type,
                                             coalesce(': ' || s.percent_used || ' % used', '')) AS content, text '' AS first
      UNION ALL
        SELECT 2, 1, format('window: %s%s; online: %s; %s', s.window_way,
                            CASE WHEN s.tables_rewritten > 0
                                 THEN format(', %s, %s', snowflake_migrate_internal.counted(s.tables_rewritten, text 'table'),
                                             pg_size_pretty(s.bytes_rewritten)) ELSE '' END,
                            s.online_way,
                            coalesce(nullif(snowflake_migrate_internal.counted(s.row_estimate, text 'row'), ' rows'),
                                     'rows not known')), '  '
      UNION ALL
        -- Both ways have most obstacles in common.
        SELECT 3, o.place, o.text, CASE WHEN o.text <> ALL (coalesce(s.online_obstacles, '{}')) THEN '  - window: ' ELSE '  - ' END
        FROM unnest(s.window_obstacles) WITH ORDINALITY AS o (text, place)
      UNION ALL
        SELECT 4, o.place, o.text, '  - online: '
        FROM unnest(s.online_obstacles) WITH ORDINALITY AS o (text, place)
        WHERE o.text <> ALL (coalesce(s.window_obstacles, '{}'))
      UNION ALL
        SELECT 5, f.place, f.text, '  * ' FROM unnest(s.findings) WITH ORDINALITY AS f (text, place)) AS l
    CROSS JOIN LATERAL snowflake_migrate_internal.wrapped(
        l.content, l.first, '    ', 78) WITH ORDINALITY AS w (line, place)
    ORDER BY s.place, l.part, l.place, w.place
$function$;
COMMENT ON FUNCTION snowflake_migrate.survey_lines(schema_name name, keep_sequence boolean) IS
    'Returns snowflake_migrate.survey as lines for a screen of 80 columns: each column with a sequence, below it its obstacles (-) '
    'and what a migration affects (*)';

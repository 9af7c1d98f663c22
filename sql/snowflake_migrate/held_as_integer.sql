-- Functions that hold a key as an integer: in a variable, or as what they return. PL/pgSQL
-- compares the types of RETURN QUERY with those that the function returns, so it fails as
-- soon as the column is a bigint (42804); the others fail with the first number that an
-- integer cannot hold (22003). Found by what the bodies contain, as the other findings.

-- The items of a list of tokens. A comma in parentheses ends none, unless others follow in them.
CREATE FUNCTION snowflake_migrate_internal.listed(tokens text)
RETURNS TABLE (item text, place bigint) LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT btrim(i.item, ' '), i.place
    FROM regexp_split_to_table(tokens, E' , (?![^()]*\\))') WITH ORDINALITY AS i (item, place)
$function$;

-- The places at which functions return integers: OUT parameters and columns, attributes of
-- rows, or one value.
CREATE FUNCTION snowflake_migrate_internal.integer_results(function oid)
RETURNS TABLE (place bigint) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT o.place
    FROM (SELECT a.type, row_number() OVER (ORDER BY a.place) AS place
          FROM pg_proc AS p
          CROSS JOIN LATERAL unnest(p.proallargtypes, p.proargmodes) WITH ORDINALITY AS a (type, mode, place)
          WHERE p.oid = function AND a.mode IN ('o', 'b', 't')
        UNION ALL
          SELECT a.atttypid, row_number() OVER (ORDER BY a.attnum)
          FROM pg_proc AS p
          JOIN pg_type AS t ON t.oid = p.prorettype
          JOIN pg_attribute AS a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
          -- A row of a table is as wide as its columns.
          JOIN pg_class AS c ON c.oid = a.attrelid AND c.relkind = 'c'
          WHERE p.oid = function AND p.proargmodes IS NULL
        UNION ALL
          SELECT p.prorettype, 1 FROM pg_proc AS p WHERE p.oid = function AND p.proargmodes IS NULL) AS o
    WHERE o.type IN ('int2'::regtype, 'int4'::regtype)
$function$;

-- Bodies of functions that have integers, as tokens.
CREATE FUNCTION snowflake_migrate_internal.integer_bodies()
RETURNS TABLE (function oid, language name, code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT p.oid, l.lanname, snowflake_migrate_internal.code(b.body)
    FROM pg_proc AS p
    CROSS JOIN LATERAL (
        SELECT CASE WHEN p.prosqlbody IS NULL THEN p.prosrc ELSE snowflake_migrate_internal.parsed_body(p.oid) END) AS b (body)
    JOIN pg_namespace AS n ON n.oid = p.pronamespace
    JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname IN ('plpgsql', 'sql')
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'snowflake_internal', 'snowflake_migrate_internal')
      AND n.nspname !~ '^pg_(toast|temp)'
      AND octet_length(b.body) <= 1048576
      AND b.body ~* E'\\m(?:select|returning|nextval|currval)\\M'
      AND (b.body ~* E'\\m(?:int|integer|int4|smallint|int2)\\M'
           OR EXISTS (SELECT FROM snowflake_migrate_internal.integer_results(p.oid)))
      AND p.oid NOT IN (SELECT e.oid FROM snowflake_migrate_internal.functions_of_extensions() AS e (oid))
$function$;

-- What their statements put into integers: items of SELECT and RETURNING, with the variable,
-- or the place in what the function returns.
CREATE FUNCTION snowflake_migrate_internal.integer_values()
RETURNS TABLE (function oid, statement text, item text, variable text, place bigint, fails_at_once boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH body AS MATERIALIZED (
        SELECT b.* FROM snowflake_migrate_internal.integer_bodies() AS b
    ), variable AS MATERIALIZED (
        SELECT b.function, m[1] AS name
        FROM body AS b
        CROSS JOIN LATERAL regexp_matches(b.code,
            E' ("(?:[^"]|"")*"|[^ "]+) (?:constant )?(?:int|integer|int4|smallint|int2) (?:;|:=|=|default|not) ', 'g') AS m
      UNION
        SELECT b.function, c.code
        FROM body AS b
        JOIN pg_proc AS p ON p.oid = b.function
        CROSS JOIN LATERAL unnest(p.proargnames, coalesce(p.proallargtypes, p.proargtypes::oid[])) AS a (name, type)
        CROSS JOIN LATERAL snowflake_migrate_internal.code_name(a.name::name) AS c
        WHERE a.name <> '' AND a.type IN ('int2'::regtype, 'int4'::regtype)
    ), statement AS MATERIALIZED (
        -- What is looked for behind each SELECT may be at the end, and any role can create a function: of long ones, nothing.
        SELECT b.function, b.language, s.number = count(*) OVER (PARTITION BY b.function) AS is_last,
               CASE WHEN length(s.tokens) <= 10000 AND length(replace(s.tokens, ' select ', '')) >= length(s.tokens) - 8 * 50
                    THEN concat(' ', s.tokens, ' ') END AS tokens
        FROM body AS b
        CROSS JOIN LATERAL string_to_table(btrim(b.code, ' ;'), ' ; ') WITH ORDINALITY AS s (tokens, number)
    )
    SELECT s.function, s.tokens, i.item, v.item, NULL::bigint, false
    FROM statement AS s
    CROSS JOIN LATERAL (
        SELECT m[1] AS items, m[2] AS variables
        FROM regexp_matches(s.tokens, ' returning (.*) into (?:strict )?(.*) $') AS m
      UNION ALL
        SELECT m[1], m[2]
        FROM regexp_matches(s.tokens, ' select (?!.* into .* into )(.*?) into (?:strict )?(.*?) from ') AS m
      UNION ALL
        SELECT m[1], m[2]
        FROM regexp_matches(s.tokens, ' select (?!.* into .* from )(.*?) from .* into (?:strict )?(.*) $') AS m
      UNION ALL
        SELECT m[2], m[1] FROM regexp_matches(s.tokens, E' ([^ ]+) (?::=|=) \\( select (.*?) from ') AS m) AS found
    CROSS JOIN LATERAL snowflake_migrate_internal.listed(found.items) AS i
    JOIN LATERAL snowflake_migrate_internal.listed(found.variables) AS v ON v.place = i.place
    WHERE s.language = 'plpgsql' AND (s.function, v.item) IN (SELECT * FROM variable)
  UNION ALL
    SELECT s.function, s.tokens, i.item, NULL, i.place, found.fails_at_once
    FROM statement AS s
    CROSS JOIN LATERAL (
        SELECT m[2] AS items, m[1] = 'query' AS fails_at_once
        FROM regexp_matches(s.tokens, E' return (query|\\() select (?:distinct )?(.*?) from ') AS m
        WHERE s.language = 'plpgsql'
      UNION ALL
        SELECT coalesce(m[1], m[2]), false
        FROM regexp_matches(s.tokens, '^ (?:select (?:distinct )?(.*?) from | *(?:insert|update|delete) .* returning (.*) $)') AS m
        WHERE s.language = 'sql' AND s.is_last) AS found
    CROSS JOIN LATERAL snowflake_migrate_internal.listed(found.items) AS i
    WHERE i.place IN (SELECT r.place FROM snowflake_migrate_internal.integer_results(s.function) AS r)
$function$;

-- The tables that a statement names, with their aliases.
CREATE FUNCTION snowflake_migrate_internal.named_tables(statement text)
RETURNS TABLE (schema_code text, table_code text, alias text) LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT m[1], m[2], coalesce(m[3], m[4], m[2])
    FROM regexp_matches(statement,
        E' (?:from|join|into|update|,) (?:only )?(?:("(?:[^"]|"")*"|[^ "]+) \\. )?("(?:[^"]|"")*"|[^ "(]+)(?= )'
        '(?: as ("(?:[^"]|"")*"|[^ "(]+)(?= )'
        '| (?!from |where |join |left |inner |on |group |order |limit |set |values |returning |select |into )("[^"]*"|[a-z_][^ "]*)(?= ))?',
        'g') AS m
$function$;

-- Functions that hold the columns of these keys.
CREATE FUNCTION snowflake_migrate_internal.integer_findings(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.finding LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH linked AS MATERIALIZED (
        SELECT l.*, c.relname, c.relnamespace
        FROM snowflake_migrate_internal.code_columns(keys) AS l JOIN pg_class AS c ON c.oid = l.relation
    ), named AS MATERIALIZED (
        SELECT v.*, t.*
        FROM snowflake_migrate_internal.integer_values() AS v
        CROSS JOIN LATERAL snowflake_migrate_internal.named_tables(v.statement) AS t
    ), held AS (
        SELECT DISTINCT l.relation, l.attname, l.is_narrow, n.function, n.variable, n.fails_at_once
        FROM named AS n
        JOIN pg_proc AS p ON p.oid = n.function
        JOIN linked AS l ON l.table_code = n.table_code
            -- A name without a schema may be that of a table beside the function.
            AND CASE WHEN n.schema_code IS NOT NULL THEN n.schema_code = l.schema_code
                     ELSE l.relnamespace = p.pronamespace
                          OR NOT EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = p.pronamespace AND c.relname = l.relname) END
        JOIN LATERAL (SELECT m[1] AS alias FROM regexp_matches(n.item, format(
            E'^(?:(?:max|min|coalesce) \\( )?(?:("(?:[^"]|"")*"|[^ ".]+) \\. )?%s(?: \\)| , .*\\))?(?: as [^ ]+)?$',
            l.column_pattern)) AS m) AS found
            ON found.alias IS NULL OR found.alias = n.alias
    )
    SELECT h.relation, h.attname, format('function %s', h.function::regprocedure),
           format('returns column %I of %s by RETURN QUERY as an integer, and fails (42804) as soon as it is a bigint',
                  h.attname, h.relation),
           format('Before the migration, cast it in the query, %1$I::integer; for greater numbers, create a function of another name '
                  'that returns bigint, with %1$I::bigint, and use it.', h.attname),
           true, 'type', NULL::text, false, h.function, NULL::oid
    FROM held AS h
    WHERE h.fails_at_once AND h.is_narrow
  UNION ALL
    SELECT h.relation, h.attname, format('function %s', h.function::regprocedure),
           format(CASE WHEN h.variable IS NULL THEN 'returns column %I of %s as an integer, and fails with a number above 2147483647'
                       ELSE 'puts column %I of %s into the integer %s, and fails with a number above 2147483647' END,
                  h.attname, h.relation, h.variable),
           CASE WHEN h.variable IS NULL
                THEN format('Before the migration, create a function of another name that returns bigint, with %I::bigint, and use it.',
                            h.attname)
                ELSE format('Before the migration, declare %s as bigint.', h.variable) END,
           s.stage = 'default', s.stage, NULL, false, h.function, NULL
    FROM held AS h
    CROSS JOIN LATERAL (VALUES ('default', true), ('held', h.is_narrow)) AS s (stage, is_one)
    WHERE NOT h.fails_at_once AND s.is_one
$function$;

-- Functions that return the numbers of sequences of these keys as integers, where the
-- sequences are kept.
CREATE FUNCTION snowflake_migrate_internal.integer_number_findings(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.finding LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH call AS MATERIALIZED (
        SELECT b.function, m[1] AS word, m[2] AS schema_code, m[3] AS sequence_code
        FROM snowflake_migrate_internal.integer_bodies() AS b
        CROSS JOIN LATERAL regexp_matches(b.code,
            E' (nextval|currval) \\( '' (?:("(?:[^"]|"")*"|[^ "]+) \\. )?("(?:[^"]|"")*"|[^ "]+) ''(?= )', 'g') AS m
        WHERE strpos(b.code, 'val ( '' ') > 0
    ), key_sequence AS MATERIALIZED (
        SELECT r.relation, r.attname, c.oid::regclass AS sequence, sequence_code.code AS sequence_code, schema_code.code AS schema_code
        FROM snowflake_migrate_internal.linked_columns(keys) AS r
        JOIN snowflake_migrate_internal.sequence_columns() AS s ON s.relation = r.relation AND s.attribute = r.attribute
        JOIN pg_class AS c ON c.oid = s.sequence
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        CROSS JOIN LATERAL snowflake_migrate_internal.code_name(c.relname) AS sequence_code
        CROSS JOIN LATERAL snowflake_migrate_internal.code_name(n.nspname) AS schema_code
        WHERE r.is_narrow
    )
    SELECT DISTINCT q.relation, q.attname, format('function %s', c.function::regprocedure),
           format('calls %s(%L) and returns an integer, so it fails with a number above 2147483647', c.word, q.sequence),
           'Before the migration, create a function of another name that returns bigint, and use it, also in defaults and views.',
           false, 'held', NULL::text, false, c.function, NULL::oid
    FROM call AS c
    JOIN key_sequence AS q ON q.sequence_code = c.sequence_code AND coalesce(c.schema_code, q.schema_code) = q.schema_code
    WHERE EXISTS (SELECT FROM snowflake_migrate_internal.integer_results(c.function))
$function$;

-- The stages of the findings that concern a migration: of those that hold a key as an integer,
-- one is of the new default, and the other, where the sequence is kept, of later numbers.
CREATE FUNCTION snowflake_migrate_internal.stages(keep_sequence boolean)
RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY['shadow', 'type', CASE WHEN keep_sequence THEN 'held' ELSE 'default' END];

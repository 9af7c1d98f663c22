-- Numbers in documents: a key of a JSON object whose values are IDs has no type that could be
-- too narrow, but what reads it casts it. They are compared as the numbers of columns are.

-- One key of the objects of a column.
CREATE TYPE snowflake_migrate_internal.json_key AS (relation oid, attname name, type_name text, key text, numbers bigint[]);

-- The keys of a table's documents, of at most 1,000 rows from about 100 pages. As numbers_of_rows(), it
-- reads nothing that the caller may not read, or where row security would apply.
CREATE FUNCTION snowflake_migrate_internal.json_keys(relation regclass, attnums smallint[])
RETURNS SETOF snowflake_migrate_internal.json_key LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off SET lock_timeout = '1s' SET jit = off
AS $function$
DECLARE
    percentage CONSTANT numeric := snowflake_migrate_internal.sampled_percentage(relation);
    query text;
BEGIN
    IF percentage IS NULL THEN
        RETURN;
    END IF;
    SELECT format('WITH rows AS MATERIALIZED (SELECT %s FROM %s TABLESAMPLE SYSTEM (%s) REPEATABLE (0) LIMIT 1000) SELECT %s',
                  string_agg(format('%I AS c%s', a.attname, g.place), ', ' ORDER BY g.place),
                  snowflake_migrate_internal.name_of(relation), percentage,
                  -- Longer numbers are no integers.
                  string_agg(format(
                      '(SELECT pg_catalog.jsonb_object_agg(k.key, k.numbers) FROM (SELECT e.key, pg_catalog.jsonb_agg(DISTINCT e.value) '
                      'AS numbers FROM rows CROSS JOIN LATERAL pg_catalog.jsonb_each('
                      'CASE pg_catalog.jsonb_typeof(rows.c%1$s::pg_catalog.jsonb) '
                      'WHEN ''object'' THEN rows.c%1$s::pg_catalog.jsonb END) AS e (key, value) '
                      'WHERE pg_catalog.jsonb_typeof(e.value) OPERATOR(pg_catalog.=) ''number'' '
                      'AND e.value::pg_catalog.text OPERATOR(pg_catalog.~) ''^[1-9][0-9]{0,9}$'' '
                      'GROUP BY e.key ORDER BY pg_catalog.count(*) DESC, e.key LIMIT 50) AS k)', g.place), ', ' ORDER BY g.place))
    INTO query
    FROM unnest(attnums) WITH ORDINALITY AS g (attnum, place)
    JOIN pg_attribute AS a ON a.attrelid = relation AND a.attnum = g.attnum;
    RETURN QUERY
        SELECT relation::oid, a.attname, format_type(a.atttypid, NULL), e.key,
               snowflake_migrate_internal.some_numbers(ARRAY(SELECT jsonb_array_elements_text(e.value)::bigint))
        FROM unnest(attnums, snowflake_internal.read(relation, query)) AS g (attnum, keys)
        JOIN pg_attribute AS a ON a.attrelid = relation AND a.attnum = g.attnum
        CROSS JOIN LATERAL jsonb_each(g.keys::jsonb) AS e (key, value);
EXCEPTION WHEN OTHERS THEN
    RETURN;
END
$function$;

-- Those whose numbers, or names and numbers, are IDs of this key.
CREATE FUNCTION snowflake_migrate_internal.json_references(key snowflake_migrate_internal.key)
RETURNS TABLE (relation oid, attname name, type_name text, certainty text, reason text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    keys CONSTANT snowflake_migrate_internal.json_key[] := ARRAY(
        SELECT j
        FROM (SELECT c.oid, array_agg(a.attnum ORDER BY a.attnum) AS attnums
              FROM pg_class AS c
              JOIN pg_namespace AS n ON n.oid = c.relnamespace
              JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
              WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.atttypid IN ('json'::regtype, 'jsonb'::regtype)
                AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'snowflake_internal', 'snowflake_migrate_internal')
                AND n.nspname !~ '^pg_(toast|temp)'
              GROUP BY c.oid) AS t
        CROSS JOIN LATERAL snowflake_migrate_internal.json_keys(t.oid::regclass, t.attnums) AS j
        ORDER BY j.relation, j.attname, j.key LIMIT 1000);
BEGIN
    RETURN QUERY
        WITH given AS MATERIALIZED (
            SELECT j.place, j.relation, j.attname, j.type_name, j.key, j.numbers,
                   CASE WHEN EXISTS (
                       SELECT FROM snowflake_migrate_internal.reference_names((json_references.key).target,
                                                                              (json_references.key).column_name) AS f
                       WHERE array_to_string(snowflake_migrate_internal.words(left(j.key, 63)::name), '_') IN (f.behind, f.ahead))
                        THEN 'strong' END AS name_says
            FROM unnest(keys) WITH ORDINALITY AS j (relation, attname, type_name, key, numbers, place)
        ), match AS MATERIALIZED (
            -- The place stands for the number of a column.
            SELECT m.* FROM snowflake_migrate_internal.matches(
                (json_references.key).target, (json_references.key).column_name,
                ARRAY(SELECT (g.relation, g.place, g.numbers, 'a sample of documents')::snowflake_migrate_internal.numbers
                      FROM given AS g)) AS m
        )
        SELECT g.relation, g.attname, g.type_name, v.certainty,
               format('JSON key %s: %s%s. Casts of it to integer have to be changed', quote_ident(left(g.key, 63)),
                      CASE WHEN g.name_says IS NOT NULL
                           THEN format('the name is that of a reference to %s; ', (json_references.key).target) ELSE '' END, v.reason)
        FROM given AS g
        LEFT JOIN match ON match.relation = g.relation AND match.attnum = g.place
        CROSS JOIN LATERAL snowflake_migrate_internal.certainty(g.name_says, NULL, match) AS v
        WHERE v.certainty IN ('surely', 'likely');
END
$function$;

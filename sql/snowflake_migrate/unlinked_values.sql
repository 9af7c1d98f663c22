-- What the values of a column say about the key whose IDs it may hold.
--
-- The numbers of a column are those of its statistics, which PostgreSQL shows to roles
-- that may read the column. Where there are none, a bounded sample of the table is read.
-- They are looked up in the key's index. Each table is read with the privileges of its
-- owner or of the caller, and not at all where row security would apply.
--
-- Small numbers are IDs of every key. So the share of numbers that are IDs is compared with
-- the shares of their neighbors and of numbers at equal distances in the same range.

-- Up to 200 different positive numbers of a column.
CREATE TYPE snowflake_migrate_internal.numbers AS (relation oid, attnum smallint, numbers bigint[], source text);

-- Of all numbers, these: hashing chooses at random, and the same ones each time. The largest
-- shows whether the range of the key is exceeded.
CREATE FUNCTION snowflake_migrate_internal.some_numbers(numbers bigint[])
RETURNS bigint[] LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT array_agg(n.number ORDER BY n.number)
    FROM (SELECT d.number, row_number() OVER (ORDER BY hashint8(d.number)) AS place, max(d.number) OVER () AS largest
          FROM (SELECT DISTINCT a.number FROM unnest(numbers) AS a (number) WHERE a.number > 0) AS d) AS n
    WHERE n.place < 200 OR n.number = n.largest
$function$;

-- The view shows nothing of a column that the caller may not read, or of a table with row
-- security for the caller. An array's elements have no histogram.
CREATE FUNCTION snowflake_migrate_internal.numbers_of_statistics(relations oid[], attnums smallint[], are_arrays boolean[])
RETURNS SETOF snowflake_migrate_internal.numbers LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    -- As texts until the columns are known to be of integers.
    WITH shown AS MATERIALIZED (
          SELECT g.relation, g.attnum, g.is_array, s.most_common_vals::text AS common, s.histogram_bounds::text AS bounds,
                 s.most_common_elems::text AS elements
        FROM unnest(relations, attnums, are_arrays) AS g (relation, attnum, is_array)
          JOIN pg_class AS c ON c.oid = g.relation
          JOIN pg_namespace AS n ON n.oid = c.relnamespace
          JOIN pg_attribute AS a ON a.attrelid = g.relation AND a.attnum = g.attnum
          JOIN pg_stats AS s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
    )
    SELECT f.relation, f.attnum, snowflake_migrate_internal.some_numbers(array_agg(v.number)), 'statistics'
    FROM shown AS f
    CROSS JOIN LATERAL unnest(CASE WHEN f.is_array THEN f.elements::bigint[]
                                   ELSE f.common::bigint[] || f.bounds::bigint[] END) AS v (number)
    GROUP BY f.relation, f.attnum
$function$;

-- The share of the pages of a table, in percent, that are about 100 pages; NULL if it has none.
CREATE FUNCTION snowflake_migrate_internal.sampled_percentage(relation regclass)
RETURNS numeric LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT least(100, round(100 * 100 / (nullif(sum(pg_relation_size(t.oid)), 0) / current_setting('block_size')::numeric), 6))
    FROM snowflake_internal.tree(ARRAY[relation]) AS t (oid)
$function$;

-- Of at most 10,000 rows from about 100 pages. A table that cannot be read, or is locked for
-- a second, has no row. With row security off, its policies are not run: they are an error.
CREATE FUNCTION snowflake_migrate_internal.numbers_of_rows(relation regclass, attnums smallint[])
RETURNS SETOF snowflake_migrate_internal.numbers LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off SET lock_timeout = '1s'
AS $function$
DECLARE
    percentage numeric;
    query text;
    results text[];
BEGIN
    percentage := snowflake_migrate_internal.sampled_percentage(relation);
    IF percentage IS NULL THEN
        RETURN;
    END IF;
    SELECT format('WITH rows AS MATERIALIZED (SELECT %s FROM %s TABLESAMPLE SYSTEM (%s) REPEATABLE (0) LIMIT 10000) SELECT %s',
                  string_agg(format('%I AS c%s', a.attname, g.place), ', ' ORDER BY g.place),
                  snowflake_migrate_internal.name_of(relation), percentage,
                  string_agg(format(
                      '(SELECT pg_catalog.array_agg(d.n) FROM (SELECT v.n FROM (SELECT DISTINCT %s AS n FROM rows) AS v '
                      'WHERE v.n OPERATOR(pg_catalog.>) 0 ORDER BY pg_catalog.hashint8(v.n) LIMIT 1000) AS d)',
                      CASE WHEN t.typlen = -1 THEN format('pg_catalog.unnest(rows.c%s::pg_catalog.int4[])::pg_catalog.int8', g.place)
                           ELSE format('rows.c%s::pg_catalog.int8', g.place) END), ', ' ORDER BY g.place))
    INTO query
    FROM unnest(attnums) WITH ORDINALITY AS g (attnum, place)
    JOIN pg_attribute AS a ON a.attrelid = relation AND a.attnum = g.attnum
    JOIN pg_type AS t ON t.oid = a.atttypid;
    results := snowflake_internal.read(relation, query);
    RETURN QUERY
        SELECT relation::oid, g.attnum, snowflake_migrate_internal.some_numbers(r.numbers::bigint[]), text 'a sample of rows'
        FROM unnest(attnums, results) AS g (attnum, numbers) CROSS JOIN LATERAL (SELECT g.numbers) AS r (numbers)
        WHERE r.numbers IS NOT NULL;
EXCEPTION WHEN OTHERS THEN
    RETURN;
END
$function$;

-- Of these columns, from statistics or else from rows.
CREATE FUNCTION snowflake_migrate_internal.numbers_of(relations oid[], attnums smallint[], are_arrays boolean[])
RETURNS SETOF snowflake_migrate_internal.numbers LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH known AS MATERIALIZED (
        SELECT s.* FROM snowflake_migrate_internal.numbers_of_statistics(relations, attnums, are_arrays) AS s WHERE s.numbers IS NOT NULL
    )
    SELECT k.* FROM known AS k
  UNION ALL
    SELECT r.*
    FROM (SELECT g.relation, array_agg(g.attnum ORDER BY g.attnum) AS attnums
          FROM unnest(relations, attnums) AS g (relation, attnum)
          JOIN pg_class AS c ON c.oid = g.relation AND c.relkind IN ('r', 'p')
          WHERE NOT EXISTS (SELECT FROM known AS k WHERE k.relation = g.relation AND k.attnum = g.attnum)
          GROUP BY g.relation) AS unknown
    CROSS JOIN LATERAL snowflake_migrate_internal.numbers_of_rows(unknown.relation::regclass, unknown.attnums) AS r
$function$;

-- The largest ID, and those of the given numbers that are IDs; NULL if they may not be read,
-- or not by an index. LIMIT makes it one look into the index for each number.
CREATE FUNCTION snowflake_migrate_internal.ids_among(
    target regclass, column_name name, numbers bigint[], OUT largest bigint, OUT ids bigint[]
) RETURNS record LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off SET lock_timeout = '1s' SET jit = off
AS $function$
BEGIN
    IF EXISTS (SELECT FROM snowflake_migrate_internal.id_indexes(target, column_name) AS i WHERE NOT i.is_indexed) THEN
        RETURN;
    END IF;
    SELECT max(f.value::bigint) FILTER (WHERE f.place = 1), coalesce((max(f.value) FILTER (WHERE f.place = 2))::bigint[], '{}')
    INTO largest, ids
    FROM unnest(snowflake_internal.read(target, format(
        'SELECT (SELECT pg_catalog.max(k.%1$I) FROM %2$s AS k), (SELECT pg_catalog.array_agg(g.number) '
        'FROM pg_catalog.unnest(%3$L::pg_catalog.int8[]) AS g (number) '
        'CROSS JOIN LATERAL (SELECT 1 FROM %2$s AS k WHERE k.%1$I OPERATOR(pg_catalog.=) g.number LIMIT 1) AS found '
        'WHERE g.number OPERATOR(pg_catalog.<=) (SELECT pg_catalog.max(k.%1$I) FROM %2$s AS k))',
        column_name, snowflake_migrate_internal.name_of(target), numbers))) WITH ORDINALITY AS f (value, place);
EXCEPTION WHEN OTHERS THEN
    largest := NULL;
    ids := NULL;
END
$function$;

-- How many numbers of a column are IDs of a key (found of examined), how many are larger than
-- all IDs, and what share of IDs unrelated numbers would have (chance). tenths counts the
-- tenths of the range of IDs in which there are numbers.
CREATE TYPE snowflake_migrate_internal.match AS (
    relation oid, attnum smallint, examined integer, found integer, beyond integer, chance numeric, tenths integer,
    top bigint, largest bigint, source text
);

-- Up to 200 numbers at equal distances, from the smallest to the largest of these.
CREATE FUNCTION snowflake_migrate_internal.spaced_numbers(numbers bigint[])
RETURNS SETOF bigint LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT DISTINCT (e.smallest + (e.largest - e.smallest)::numeric * i / 199)::bigint
    FROM (SELECT min(v.number), max(v.number) FROM unnest(numbers) AS v (number)) AS e (smallest, largest)
    CROSS JOIN generate_series(0, 199) AS i
    WHERE e.smallest < e.largest
$function$;

CREATE FUNCTION snowflake_migrate_internal.matches(
    target regclass, column_name name, numbers snowflake_migrate_internal.numbers[]
) RETURNS SETOF snowflake_migrate_internal.match LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    largest bigint;
    ids bigint[];
BEGIN
    SELECT i.largest, i.ids INTO largest, ids
    FROM snowflake_migrate_internal.ids_among(target, column_name, ARRAY(
        SELECT v.number FROM unnest(numbers) AS n CROSS JOIN LATERAL unnest(n.numbers) AS v (number)
      UNION
        SELECT v.number + 1 FROM unnest(numbers) AS n CROSS JOIN LATERAL unnest(n.numbers) AS v (number)
      UNION
        SELECT s.number FROM unnest(numbers) AS n CROSS JOIN LATERAL snowflake_migrate_internal.spaced_numbers(n.numbers) AS s (number)
    )) AS i;
    IF largest IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
        WITH id AS MATERIALIZED (SELECT i.number FROM unnest(ids) AS i (number)), column_number AS MATERIALIZED (
            SELECT n.relation, n.attnum, n.source, v.kind, v.number
            FROM unnest(numbers) AS n
            CROSS JOIN LATERAL (
                SELECT 1, v.number FROM unnest(n.numbers) AS v (number)
              UNION ALL
                SELECT 2, v.number + 1 FROM unnest(n.numbers) AS v (number) WHERE v.number < largest
              UNION ALL
                SELECT 3, s.number FROM snowflake_migrate_internal.spaced_numbers(n.numbers) AS s (number)
            ) AS v (kind, number)
        )
        SELECT c.relation, c.attnum, (count(*) FILTER (WHERE c.kind = 1))::integer,
               (count(*) FILTER (WHERE c.kind = 1 AND id.number IS NOT NULL))::integer,
               (count(*) FILTER (WHERE c.kind = 1 AND c.number > largest))::integer,
               -- The larger of both shares. Few numbers say little about it.
               greatest((1.0 + count(*) FILTER (WHERE c.kind = 2 AND id.number IS NOT NULL)) / (2 + count(*) FILTER (WHERE c.kind = 2)),
                        (1.0 + count(*) FILTER (WHERE c.kind = 3 AND id.number IS NOT NULL)) / (2 + count(*) FILTER (WHERE c.kind = 3))),
               (count(DISTINCT least(9, div(c.number * 10, greatest(largest, 0)::numeric + 1))) FILTER (WHERE c.kind = 1))::integer,
               max(c.number) FILTER (WHERE c.kind = 1), largest, min(c.source)
        FROM column_number AS c LEFT JOIN id ON id.number = c.number
        GROUP BY c.relation, c.attnum;
END
$function$;

-- What they say, and why. A name is a reason of its own ('strong'), or one together with values
-- ('weak'). Rows in a history may be of keys that were deleted. Numbers that do not exceed
-- those of small enumerations are IDs of every key, and decide nothing without a name.
CREATE FUNCTION snowflake_migrate_internal.certainty(
    name_says text, kind text, match snowflake_migrate_internal.match, OUT certainty text, OUT reason text
) RETURNS record LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH given AS (
        SELECT m.examined, m.found, m.beyond, m.found::numeric / m.examined AS share,
               (m.found - m.chance * m.examined) / sqrt(greatest(m.chance * (1 - m.chance), 0.0001) * m.examined) AS deviations,
               m.beyond <= 0.01 * m.examined AND m.examined >= 50 AND m.largest >= 1000 AND m.tenths >= 7 AS is_spread,
               m.chance, m.source
        FROM (SELECT match.*) AS m
        WHERE m.examined > 0
    ), judged AS (
        SELECT g.*,
               CASE WHEN g.beyond > 0.05 * g.examined OR g.share < 0.5 AND g.examined >= 3 AND kind IS DISTINCT FROM 'history'
                    THEN 'not'
                    WHEN kind = 'history' THEN CASE WHEN g.share >= 0.9 THEN 'surely' ELSE 'likely' END
                    WHEN g.share >= 0.9 AND (name_says = 'strong' OR name_says = 'weak' AND g.is_spread
                                             OR g.examined >= 10 AND g.chance <= 0.95 AND g.deviations >= 4) THEN 'surely'
                    WHEN name_says IS NOT NULL THEN 'likely'
                    WHEN g.examined >= 10 AND g.chance <= 0.95 AND g.deviations >= 4 OR g.share >= 0.95 AND g.is_spread THEN 'likely'
               END AS certainty
        FROM given AS g
    )
    SELECT coalesce(j.certainty, CASE WHEN j.examined IS NULL AND name_says = 'strong' THEN 'likely' END),
           CASE WHEN j.examined IS NULL THEN 'no values are known'
                ELSE format('%s of %s numbers (%s) are IDs, %s%% would be by chance%s%s', j.found, j.examined, j.source,
                            round(100 * j.chance),
                            CASE WHEN j.beyond > 0 THEN format(', %s are larger than all IDs', j.beyond) ELSE '' END,
                            CASE WHEN j.certainty IS NULL THEN ': too small, too few or too close together to decide' ELSE '' END) END
    FROM (SELECT) AS one LEFT JOIN judged AS j ON true
$function$;

-- The columns whose numbers are surely IDs of other keys, by their values alone.
CREATE FUNCTION snowflake_migrate_internal.rivals(
    others snowflake_migrate_internal.key[], numbers snowflake_migrate_internal.numbers[]
) RETURNS TABLE (relation oid, attnum smallint, target text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT m.relation, m.attnum, min(o.target::text)
    FROM unnest(others) AS o
    CROSS JOIN LATERAL snowflake_migrate_internal.matches(o.target, o.column_name, numbers) AS m
    CROSS JOIN LATERAL snowflake_migrate_internal.certainty(NULL, NULL, m) AS v
    WHERE cardinality(numbers) > 0 AND v.certainty = 'surely'
    GROUP BY m.relation, m.attnum
$function$;

-- The different texts in a sample of a table, for want of statistics. Only of PostgreSQL's own
-- types, whose output is code of PostgreSQL.
CREATE FUNCTION snowflake_migrate_internal.kinds_of_rows(relation regclass, attnum smallint)
RETURNS text[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off SET lock_timeout = '1s'
AS $function$
DECLARE
    column_name name;
    kinds text;
BEGIN
    SELECT a.attname INTO column_name
    FROM pg_attribute AS a
    WHERE a.attrelid = relation AND a.attnum = kinds_of_rows.attnum
      AND snowflake_migrate_internal.base_type(a.atttypid) IN ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype, 'name'::regtype);
    SELECT max(r.kinds) INTO kinds
    FROM unnest(snowflake_internal.read(relation, format(
        'SELECT pg_catalog.array_agg(d.kind) FROM (SELECT DISTINCT r.kind FROM (SELECT t.%I::pg_catalog.text AS kind '
        'FROM %s AS t TABLESAMPLE SYSTEM (%s) REPEATABLE (0) LIMIT 10000) AS r WHERE r.kind IS NOT NULL LIMIT 100) AS d',
        column_name, snowflake_migrate_internal.name_of(relation),
        snowflake_migrate_internal.sampled_percentage(relation)))) AS r (kinds)
    WHERE column_name IS NOT NULL;
    RETURN kinds::text[];
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$function$;

-- What a new row meets: checks, index expressions, generated columns, policies, domains and
-- bounds of partitions are tried with new IDs before anything changes. Nothing is
-- inserted: defaults and triggers would draw numbers that no rollback gives back.

-- The numbers that are tried: the next ones, with many last bits, because one of them may
-- pass a remainder by luck. With keep_sequence, numbers that an integer cannot hold.
CREATE FUNCTION snowflake_migrate_internal.trial_ids(keep_sequence boolean)
RETURNS bigint[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY(SELECT CASE WHEN keep_sequence THEN 2147483648 ELSE snowflake_migrate_internal.first_id_at(now()) END + d.distance
                 FROM unnest(ARRAY[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 4095, 65535]) AS d (distance))
$function$;

-- What to do before the migration of the key of a partitioned table: a partition up to
-- the IDs of this day, and those of the days to come.
CREATE FUNCTION snowflake_migrate_internal.partitions_remedy(relation regclass)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN b.highest IS NULL THEN 'Before the migration, add partitions for new IDs'
                ELSE format('Before the migration, add one up to the IDs of today: '
                            'CREATE TABLE %1$s PARTITION OF %2$s FOR VALUES FROM (%3$s) TO (%4$s); and those of the days to come: '
                            'CREATE EXTENSION snowflake_partitions; SELECT snowflake_partitions.ddl(%5$L, %6$L, %7$L, ''1 day'')',
                            format('%I.%I', n.nspname, left(c.relname, 50) || '_before_' || to_char(b.today, 'YYYYMMDD')),
                            snowflake_migrate_internal.name_of(relation), b.highest,
                            snowflake_internal.min_id(b.today), relation, b.today, b.today + interval '7 days') END
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL (
        -- Of a key of one column: FOR VALUES FROM ('0') TO ('10000').
        SELECT max(m.high::bigint) AS highest, date_trunc('day', now()) AS today
        FROM pg_partitioned_table AS p
        JOIN pg_inherits AS i ON i.inhparent = p.partrelid
        JOIN pg_class AS t ON t.oid = i.inhrelid
        CROSS JOIN LATERAL substring(pg_get_expr(t.relpartbound, t.oid), E'TO \\(''?(\\d+)''?\\)$') AS m (high)
        WHERE p.partrelid = relation AND p.partstrat = 'r' AND p.partnatts = 1) AS b
    WHERE c.oid = relation
$function$;

-- What a row of a table has to satisfy, or has to be computed for it, with these columns.
-- if_false: what it means that it is false; NULL if it may be. Constraints and indexes that
-- partitions and child tables have from their parents are the parents'.
CREATE FUNCTION snowflake_migrate_internal.row_expressions(relation regclass, attributes smallint[])
RETURNS TABLE (kind text, description text, expression text, if_false text, remedy text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT e.kind, e.description, e.expression, CASE WHEN e.is_condition THEN 'it is false' END,
           CASE e.kind WHEN 'constraint' THEN 'Drop it, or replace it by one that accepts them'
                ELSE format('Drop it, and create the %s again with an expression that takes a bigint', e.kind) END
    FROM snowflake_migrate_internal.expressions(relation, attributes) AS e
    -- Of policies, those together that a new row has to satisfy.
    WHERE e.kind <> 'policy'
  UNION ALL
    -- An assignment fails where a cast would cut off characters. Those of narrow columns are
    -- obstacles to the widening.
    SELECT 'generated column', format('generated column %I of %s', a.attname, relation),
           CASE WHEN a.atttypid IN ('varchar'::regtype, 'bpchar'::regtype) AND a.atttypmod > 4
                THEN format('pg_catalog.length((%s)::pg_catalog.text) OPERATOR(pg_catalog.<=) %s',
                            pg_get_expr(e.adbin, e.adrelid), a.atttypmod - 4)
                ELSE format('(%s)::%s', pg_get_expr(e.adbin, e.adrelid), format_type(a.atttypid, a.atttypmod)) END,
           CASE WHEN a.atttypid IN ('varchar'::regtype, 'bpchar'::regtype)
                THEN format('the value is too long for %s', format_type(a.atttypid, a.atttypmod)) END,
           'Drop that column, and add it again with an expression that takes a bigint'
    FROM pg_attribute AS a
    JOIN pg_attrdef AS e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
    WHERE a.attrelid = relation AND a.attgenerated <> '' AND a.attinhcount = 0
      AND EXISTS (SELECT FROM pg_depend AS d
                  JOIN pg_attribute AS u ON u.attrelid = d.refobjid AND u.attnum = d.refobjsubid
                                           AND snowflake_migrate_internal.base_type(u.atttypid) = 'int8'::regtype
                  WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = relation AND d.refobjsubid = ANY (attributes)
                  AND (d.classid = 'pg_attrdef'::regclass AND d.objid = e.oid
                       OR d.classid = 'pg_class'::regclass AND d.objid = relation AND d.objsubid = a.attnum))
  UNION ALL
    -- The column itself is given a bigint.
    SELECT 'domain', format('domain %s of column %I of %s', a.atttypid::regtype, a.attname, relation),
           format('%I::%s', a.attname, a.atttypid::regtype), NULL,
           format('Drop the constraint of the domain (ALTER DOMAIN %s DROP CONSTRAINT), or give the column its base type',
                  a.atttypid::regtype)
    FROM pg_attribute AS a
    JOIN pg_type AS t ON t.oid = a.atttypid AND t.typtype = 'd'
    WHERE a.attrelid = relation AND a.attnum = ANY (attributes) AND snowflake_migrate_internal.base_type(a.atttypid) = 'int8'::regtype
  UNION ALL
    -- A row has to satisfy one of the permissive policies, and each restrictive one.
    SELECT 'policy',
           CASE WHEN p.is_permissive THEN format('the policies of %s for INSERT', relation)
                ELSE format('policy %I of %s', p.name, relation) END,
           p.condition, 'no row with them passes', 'Alter it (ALTER POLICY) so that it accepts them'
    FROM (SELECT p.polpermissive AS is_permissive, CASE WHEN NOT p.polpermissive THEN p.polname END AS name,
                 string_agg(format('(%s)', coalesce(pg_get_expr(p.polwithcheck, p.polrelid), pg_get_expr(p.polqual, p.polrelid), 'true')),
                            ' OR ') AS condition,
                 bool_or(EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_policy'::regclass AND d.objid = p.oid
                                   AND d.refclassid = 'pg_class'::regclass AND d.refobjid = relation
                                   AND d.refobjsubid = ANY (attributes))) AS uses_column
          FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid AND c.relrowsecurity
          WHERE p.polrelid = relation AND p.polcmd IN ('a', '*')
          GROUP BY 1, 2) AS p
    WHERE p.uses_column
  UNION ALL
    SELECT d.kind, format('partitioned table %s', relation),
           string_agg(format('(%s)', pg_get_partition_constraintdef(t.relid)), ' OR '), 'none of its partitions has room for them',
           snowflake_migrate_internal.partitions_remedy(relation)
    FROM pg_partitioned_table AS p
    CROSS JOIN LATERAL pg_partition_tree(p.partrelid) AS t
    -- All partitions, and those that are not the DEFAULT one.
    CROSS JOIN (VALUES ('partitions', true), ('other partitions', false)) AS d (kind, with_default)
    JOIN pg_class AS c ON c.oid = t.relid
    WHERE p.partrelid = relation AND t.isleaf AND t.relid <> relation AND p.partstrat <> 'h'
      AND (d.with_default OR p.partdefid <> 0 AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT')
      AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = relation)
      AND EXISTS (SELECT FROM pg_partition_tree(relation) AS u
                  -- The table as a whole depends on the columns of its key.
                  JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = u.relid AND d.objsubid <> 0
                   AND d.refclassid = 'pg_class'::regclass AND d.refobjid = u.relid AND d.refobjsubid = 0 AND d.deptype = 'i'
                  JOIN pg_attribute AS a ON a.attrelid = u.relid AND a.attnum = d.objsubid
                  WHERE a.attname IN (SELECT o.attname FROM pg_attribute AS o WHERE o.attrelid = relation AND o.attnum = ANY (attributes)))
    GROUP BY d.kind
$function$;

-- Why a query fails, or what it counts; NULL if neither. What it does is rolled back. If the
-- owner may not read the table, or its code is slow, nothing is known.
CREATE FUNCTION snowflake_migrate_internal.try_query(
    relation regclass, query text, if_false text, search_path text, OUT failure text, OUT code text
) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    counted text;
BEGIN
    IF octet_length(query) > 2000000 THEN
        RETURN;
    END IF;
    counted := (snowflake_migrate_internal.try(relation, query, search_path))[1];
    RAISE SQLSTATE 'SF000';
EXCEPTION
    WHEN SQLSTATE 'SF000' THEN
        failure := CASE WHEN counted <> '0' THEN if_false END;
    WHEN insufficient_privilege THEN
        failure := NULL;
    WHEN statement_completion_unknown THEN
        code := SQLSTATE;
    WHEN OTHERS THEN
        code := SQLSTATE;
        failure := format('%s (%s)', SQLERRM, SQLSTATE);
END
$function$;

-- The query that counts for which numbers, in some columns of some rows, a condition is
-- false. Without numbers, the rows are as they are. A reference that is NULL stays so.
CREATE FUNCTION snowflake_migrate_internal.trial_query(
    relation regclass, attributes smallint[], changed smallint[], expression text, if_false text, ids bigint[], rows text
) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('SELECT pg_catalog.count(*) FILTER (WHERE (%s) IS %s) FROM (SELECT %s FROM %s OFFSET 0) AS %I',
                  expression, CASE WHEN if_false IS NOT NULL THEN 'FALSE' ELSE 'NULL' END,
                  string_agg(CASE WHEN a.attnum = ANY (changed) AND rows IS NULL THEN format('number AS %I', a.attname)
                                  WHEN a.attnum = ANY (changed)
                                  THEN format('CASE WHEN source.%1$I IS NOT NULL THEN number END AS %1$I', a.attname)
                                  WHEN a.attnum = ANY (attributes) THEN format('source.%1$I::pg_catalog.int8 AS %1$I', a.attname)
                                  ELSE format('source.%I', a.attname) END, ', ' ORDER BY a.attnum),
                  concat_ws(' CROSS JOIN ', rows || ' AS source',
                            CASE WHEN changed <> '{}' THEN format('pg_catalog.unnest(%L::pg_catalog.int8[]) AS number', ids) END),
                  c.relname)
    FROM pg_class AS c
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                          AND (rows IS NOT NULL OR a.attnum = ANY (changed))
    WHERE c.oid = relation
    GROUP BY c.relname
$function$;

-- Why an expression does not accept numbers in these columns; NULL if it does, if it fails
-- for the rows as they are, or if it takes too long, which is undecided. It is parsed as after the widening. If it uses other
-- columns, the last rows are tried, and one of NULLs beside 1. One that uses several of these columns
-- is refused only if it fails with new numbers in all of them, and in each of them.
CREATE FUNCTION snowflake_migrate_internal.trial(
    relation regclass, attributes smallint[], expression text, if_false text, ids bigint[], search_path text,
    OUT failure text, OUT is_undecided boolean
) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- Of a table that no index of the columns leads to, any rows.
    rows CONSTANT text := (
        SELECT format('(SELECT last_rows.* FROM (SELECT * FROM %s%s LIMIT 1000) AS last_rows UNION ALL SELECT %s)',
                      snowflake_migrate_internal.name_of(relation),
                      (SELECT format(' ORDER BY %I DESC', l.attname)
                       FROM pg_index AS i JOIN pg_attribute AS l ON l.attrelid = i.indrelid AND l.attnum = i.indkey[0]
                       WHERE i.indrelid = relation AND l.attnum = ANY (attributes) AND i.indisvalid AND i.indpred IS NULL LIMIT 1),
                      string_agg(CASE WHEN a.attnum = ANY (attributes) THEN '1' ELSE 'NULL' END
                                 || '::' || format_type(snowflake_migrate_internal.base_type(a.atttypid), a.atttypmod),
                                 ', ' ORDER BY a.attnum))
        FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped);
    variant record;
    tried record;
    first_failure text;
BEGIN
    -- The parser cannot be cancelled.
    IF octet_length(expression) > 1000000 THEN
        is_undecided := true;
        RETURN;
    END IF;
    FOR variant IN
        SELECT v.changed, v.rows
        FROM (SELECT 1 AS place, attributes AS changed, NULL AS rows
            UNION ALL SELECT 2, attributes, rows
            UNION ALL SELECT 3, ARRAY[u.attribute], rows FROM unnest(attributes) AS u (attribute) WHERE cardinality(attributes) > 1
            UNION ALL SELECT 4, '{}', rows) AS v
        ORDER BY v.place
    LOOP
        tried := snowflake_migrate_internal.try_query(relation,
            snowflake_migrate_internal.trial_query(relation, attributes, variant.changed, expression, if_false, ids, variant.rows),
            if_false, search_path);
        -- It uses other columns.
        CONTINUE WHEN tried.code = '42703' AND variant.rows IS NULL;
        is_undecided := tried.code IS NOT DISTINCT FROM '40003';
        IF variant.changed = '{}' THEN
            failure := CASE WHEN tried.failure IS NULL AND NOT is_undecided THEN first_failure END;
            RETURN;
        ELSIF tried.failure IS NULL THEN
            RETURN;
        END IF;
        first_failure := coalesce(first_failure, tried.failure);
    END LOOP;
END
$function$;

-- Whether a table may have such an expression.
CREATE FUNCTION snowflake_migrate_internal.may_refuse(relation regclass, attributes smallint[])
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = relation AND c.relkind = 'p')
        OR EXISTS (SELECT FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid AND t.typtype = 'd'
                   WHERE a.attrelid = relation AND a.attnum = ANY (attributes))
        OR EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attgenerated <> '')
        OR EXISTS (SELECT FROM pg_depend AS d
                   WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = relation AND d.refobjsubid = ANY (attributes)
                     AND (d.classid IN ('pg_policy'::regclass, 'pg_statistic_ext'::regclass)
                          OR d.classid = 'pg_constraint'::regclass
                             AND EXISTS (SELECT FROM pg_constraint AS k WHERE k.oid = d.objid AND k.contype IN ('c', 'x'))
                          OR d.classid = 'pg_class'::regclass
                             AND EXISTS (SELECT FROM pg_index AS i
                                         WHERE i.indexrelid = d.objid AND num_nonnulls(i.indexprs, i.indpred) > 0)))
$function$;

-- All of them, of the columns that hold the IDs of these keys.
CREATE FUNCTION snowflake_migrate_internal.key_expressions(keys snowflake_migrate_internal.key[])
RETURNS TABLE (
    relation regclass, attributes smallint[], names name[], kind text, description text, expression text, if_false text, remedy text
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT t.relation, t.attributes, t.names, e.kind, e.description, e.expression, e.if_false, e.remedy
    FROM (SELECT f.relation, array_agg(DISTINCT f.attribute) AS attributes, array_agg(DISTINCT r.attname) AS names
          FROM snowflake_migrate_internal.columns_of_each(keys) AS r
          CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(r.relation, r.attname) AS f
          GROUP BY f.relation) AS t
    CROSS JOIN LATERAL snowflake_migrate_internal.row_expressions(t.relation, t.attributes) AS e
    -- Most tables have none, which is faster to find out.
    WHERE snowflake_migrate_internal.may_refuse(t.relation, t.attributes)
    -- Whole rows have another type in the query than in the table.
      AND snowflake_migrate_internal.rename_columns(e.expression, '{}'::name[], '{}'::name[]) IS NOT NULL
    ORDER BY t.relation::text, e.description
$function$;

CREATE FUNCTION snowflake_migrate_internal.new_id_obstacles(keys snowflake_migrate_internal.key[], keep_sequence boolean, search_path text)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    ids CONSTANT bigint[] := snowflake_migrate_internal.trial_ids(keep_sequence);
    tried record;
    failure text;
BEGIN
    FOR tried IN SELECT e.* FROM snowflake_migrate_internal.key_expressions(keys) AS e WHERE e.kind <> 'other partitions' LOOP
        failure := (snowflake_migrate_internal.trial(
            tried.relation, tried.attributes, tried.expression, tried.if_false, ids, search_path)).failure;
        IF failure IS NOT NULL THEN
            RETURN QUERY
                SELECT tried.relation, n.name,
                       format('%s: new numbers, such as %s, are not accepted: %s', tried.description, ids[1], failure),
                       tried.remedy || '.', '55000'
                FROM unnest(tried.names) AS n (name);
        END IF;
    END LOOP;
END
$function$;

-- Unique indexes whose expressions make two of these numbers one.
CREATE FUNCTION snowflake_migrate_internal.same_key_findings(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.finding LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    ids CONSTANT bigint[] := snowflake_migrate_internal.trial_ids(false);
    tried record;
BEGIN
    FOR tried IN
        SELECT r.relation, r.attname, a.attnum, i.indexrelid::regclass AS index, x.expressions
        FROM snowflake_migrate_internal.columns_of_each(keys) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attname = r.attname
        JOIN pg_index AS i ON i.indrelid = r.relation AND i.indisunique AND i.indexprs IS NOT NULL
        CROSS JOIN LATERAL (
            SELECT string_agg(pg_get_indexdef(i.indexrelid, k.place::integer, false), ', ' ORDER BY k.place) AS expressions
            FROM generate_series(1, i.indnkeyatts) AS k (place)) AS x
        -- References repeat, and a unique one is to.
        WHERE (r.relation, r.attname) IN (SELECT * FROM unnest(keys))
          AND EXISTS (SELECT FROM pg_depend AS d
                      WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = r.relation AND d.refobjsubid = a.attnum)
        ORDER BY r.relation::text, 4
    LOOP
        -- One that uses other columns fails (42703).
        IF (snowflake_migrate_internal.try_query(tried.relation,
                format('SELECT pg_catalog.count(*) OPERATOR(pg_catalog.-) pg_catalog.count(DISTINCT (%s)) '
                       'FROM (SELECT number AS %I FROM pg_catalog.unnest(%L::pg_catalog.int8[]) AS number OFFSET 0) AS %I',
                       tried.expressions, tried.attname, ids, (SELECT c.relname FROM pg_class AS c WHERE c.oid = tried.relation)),
                'they are one', NULL)).failure = 'they are one' THEN
            RETURN QUERY SELECT tried.relation, tried.attname, format('unique index %s', tried.index),
                                'makes two new IDs one, so that a row with the second is refused (23505)',
                                'Drop it, or create it again on the column itself.', true, 'default', NULL::text, false,
                                NULL::oid, NULL::oid;
        END IF;
    END LOOP;
END
$function$;

-- What accepts the next IDs, but not all that the layout has; keys whose new rows are all
-- in the DEFAULT partition; and what takes too long to be tried.
CREATE FUNCTION snowflake_migrate_internal.new_id_findings(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.finding LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    ids CONSTANT bigint[] := snowflake_migrate_internal.trial_ids(false);
    tried record;
    answer record;
    accepted timestamptz;
    refused timestamptz;
    middle timestamptz;
BEGIN
    FOR tried IN SELECT e.* FROM snowflake_migrate_internal.key_expressions(keys) AS e WHERE e.kind <> 'partitions' LOOP
        answer := snowflake_migrate_internal.trial(tried.relation, tried.attributes, tried.expression, tried.if_false,
            CASE WHEN tried.kind = 'other partitions' THEN ids ELSE ARRAY[snowflake_migrate_internal.first_id_at('infinity')] END, NULL);
        IF answer.is_undecided THEN
            RETURN QUERY SELECT tried.relation, NULL::name, tried.description,
                                'was not tried with new IDs, because it is too large, or takes longer than two seconds',
                                'Try an INSERT with one of them in a copy of the table.', false, 'type', NULL, false, NULL::oid, NULL::oid;
        END IF;
        CONTINUE WHEN answer.failure IS NULL;
        IF tried.kind = 'other partitions' THEN
            RETURN QUERY SELECT tried.relation, NULL::name, tried.description,
                                'has room for new IDs in its DEFAULT partition only, which then has all new rows',
                                tried.remedy || '.', false, 'default', NULL, false, NULL::oid, NULL::oid;
            CONTINUE;
        END IF;
        accepted := now();
        refused := now() + interval '300 years';
        -- What does not accept the next IDs is an obstacle.
        CONTINUE WHEN (snowflake_migrate_internal.trial(
            tried.relation, tried.attributes, tried.expression, tried.if_false, ids, NULL)).failure IS NOT NULL;
        WHILE refused - accepted > interval '1 day' LOOP
            middle := accepted + (refused - accepted) / 2;
            IF (snowflake_migrate_internal.trial(tried.relation, tried.attributes, tried.expression, tried.if_false,
                                                 ARRAY[snowflake_migrate_internal.first_id_at(middle)], NULL)).failure IS NULL THEN
                accepted := middle;
            ELSE
                refused := middle;
            END IF;
        END LOOP;
        RETURN QUERY SELECT tried.relation, NULL::name, tried.description, format('does not accept the IDs of %s and later', refused::date),
                            tried.remedy || '.', false, 'default', NULL, false, NULL::oid, NULL::oid;
    END LOOP;
END
$function$;

-- The extended statistics of shadow columns: one statistics object for each of those
-- that use a narrow column.

-- A statistics object of narrow columns, and its counterpart.
CREATE TYPE snowflake_migrate_internal.shadow_statistic AS (
    statistics oid, name name, schema name, relation regclass, owner oid, shadow_name name, shadow oid, definition text, target integer
);

-- The statistics objects of narrow columns, and those of their shadows.
CREATE FUNCTION snowflake_migrate_internal.shadow_statistics(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.shadow_statistic LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.* FROM snowflake_migrate_internal.shadows(keys) AS s
    ), renamed AS MATERIALIZED (
        SELECT s.relation, array_agg(s.narrow) AS former, array_agg(s.shadow_name) AS present, array_agg(s.attribute) AS attributes
        FROM shadow AS s GROUP BY s.relation
    ), narrow_statistics AS MATERIALIZED (
        SELECT x.*, n.nspname, r.former, r.present,
               coalesce(pg_get_statisticsobjdef_expressions(x.oid), '{}') AS expressions
        FROM renamed AS r
        JOIN pg_statistic_ext AS x ON x.stxrelid = r.relation
        JOIN pg_namespace AS n ON n.oid = x.stxnamespace
        WHERE x.stxexprs::text ~ ':varattno 0 '
           OR EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_statistic_ext'::regclass AND d.objid = x.oid
                        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = r.relation AND d.refobjsubid = ANY (r.attributes))
    ), named AS MATERIALIZED (
        -- The definition is part of the name, so that no counterpart survives another one of the same name.
        SELECT m.*, snowflake_migrate_internal.shadow_name(
                   concat_ws(' ', 'statistics', m.stxkeys::text, m.stxkind::text, array_to_string(m.expressions, ' ')),
                   m.stxname) AS shadow_name
        FROM narrow_statistics AS m
    )
    SELECT m.oid, m.stxname, m.nspname, m.stxrelid::regclass, m.stxowner, m.shadow_name, x.oid,
           format('CREATE STATISTICS %I.%I', m.nspname, m.shadow_name)
           || CASE WHEN cardinality(m.stxkeys::smallint[]) + cardinality(m.expressions) < 2 THEN ''
                   ELSE (SELECT format(' (%s)', string_agg(k.name, ', ' ORDER BY k.name))
                         FROM (VALUES ('d', 'ndistinct'), ('f', 'dependencies'), ('m', 'mcv')) AS k (kind, name)
                         WHERE k.kind::"char" = ANY (m.stxkind)) END
           || ' ON ' || snowflake_migrate_internal.portable(part.texts) || ' FROM '
           || snowflake_migrate_internal.name_of(m.stxrelid::regclass),
           coalesce(m.stxstattarget, -1)
    FROM named AS m
    CROSS JOIN LATERAL (
        -- NULL if an expression cannot be mapped.
        SELECT CASE WHEN bool_and(p.text IS NOT NULL) THEN string_agg(p.text, ', ' ORDER BY p.kind, p.place) END AS texts
        FROM (SELECT 1 AS kind, k.place, quote_ident(coalesce(s.shadow_name, a.attname)) AS text
              FROM unnest(m.stxkeys::smallint[]) WITH ORDINALITY AS k (attribute, place)
              JOIN pg_attribute AS a ON a.attrelid = m.stxrelid AND a.attnum = k.attribute
              LEFT JOIN shadow AS s ON s.relation = m.stxrelid AND s.attribute = k.attribute
            UNION ALL
              SELECT 2, e.place, '(' || snowflake_migrate_internal.rename_columns(e.expression, m.former, m.present) || ')'
              FROM unnest(m.expressions) WITH ORDINALITY AS e (expression, place)) AS p
    ) AS part
    LEFT JOIN pg_statistic_ext AS x ON x.stxrelid = m.stxrelid AND x.stxname = m.shadow_name AND x.stxnamespace = m.stxnamespace
$function$;

-- They are created with the rights of the table's owner, who owns them and renames
-- them in the swap.
CREATE FUNCTION snowflake_migrate_internal.statistics_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.step(text 'statistics', x.relation, text 'SHARE UPDATE EXCLUSIVE',
        text 'adds statistics %s of %s', format('the counterpart of statistics object %I.%I', x.schema, x.name),
        ARRAY[snowflake_migrate_internal.command(text 'run', x.relation, x.definition)]
        || CASE WHEN x.target <> -1
                THEN ARRAY[snowflake_migrate_internal.command(text 'run', x.relation,
                               format('ALTER STATISTICS %I.%I SET STATISTICS %s', x.schema, x.shadow_name, x.target))] END,
        names => ARRAY[quote_ident(x.name), x.relation::text])
    FROM snowflake_migrate_internal.shadow_statistics(keys) AS x
    WHERE x.shadow IS NULL
    ORDER BY x.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, x.relation::text, x.schema, x.name
$function$;

-- The tables with counterparts that only an ANALYZE of the whole table fills: those
-- of statistics objects, and of indexes with expressions.
CREATE FUNCTION snowflake_migrate_internal.analyzed_whole(keys snowflake_migrate_internal.key[])
RETURNS TABLE (relation regclass, is_lacking boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT e.relation,
           bool_or(e.is_lacking) AND c.reltuples <> 0 AND pg_relation_size(c.oid) > 0
           AND pg_has_role(c.relowner, 'USAGE') AND NOT row_security_active(c.oid)
    FROM (SELECT x.relation,
                 -- None are collected for a target of 0, of the object or of a column.
                 x.target <> 0
                 AND NOT EXISTS (SELECT FROM pg_statistic_ext AS o JOIN pg_attribute AS a
                                     ON a.attrelid = o.stxrelid AND a.attnum = ANY (o.stxkeys::smallint[]) AND a.attstattarget = 0
                                 WHERE o.oid = x.statistics)
                 AND NOT EXISTS (SELECT FROM pg_stats_ext AS t
                                 WHERE t.statistics_schemaname = x.schema AND t.statistics_name = x.shadow_name) AS is_lacking
          FROM snowflake_migrate_internal.shadow_statistics(keys) AS x
        UNION ALL
          SELECT i.relation,
                 NOT EXISTS (SELECT FROM pg_class AS s
                             JOIN pg_namespace AS n ON n.oid = s.relnamespace
                             JOIN pg_stats AS t ON t.schemaname = n.nspname AND t.tablename = s.relname
                             WHERE s.oid = i.shadow)
          FROM snowflake_migrate_internal.shadow_indexes(keys) AS i
          JOIN pg_index AS x ON x.indexrelid = i.index AND x.indexprs IS NOT NULL) AS e
    JOIN pg_class AS c ON c.oid = e.relation
    GROUP BY e.relation, c.oid, c.reltuples, c.relowner
$function$;

-- Counterparts of objects that have been dropped or replaced since: the swap would
-- leave them.
CREATE FUNCTION snowflake_migrate_internal.leftover_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH dependent AS MATERIALIZED (
        SELECT DISTINCT s.relation, d.classid, d.objid
        FROM snowflake_migrate_internal.shadows(keys) AS s
        JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.relation AND d.refobjsubid = s.shadow
        WHERE s.is_kept
    ), leftover (place, relation, lock_level, in_transaction, original, commands, name) AS (
        SELECT 1, k.conrelid::regclass, 'ACCESS EXCLUSIVE', true, 'a constraint',
               ARRAY[snowflake_migrate_internal.lock_command(ARRAY(
                         SELECT c.oid::regclass FROM pg_class AS c WHERE c.oid IN (k.conrelid, k.confrelid) ORDER BY c.oid)),
                     snowflake_migrate_internal.command(text 'alter', k.conrelid::regclass,
                         format('ALTER TABLE %s DROP CONSTRAINT %I', snowflake_migrate_internal.name_of(k.conrelid::regclass), k.conname))],
               k.conname
        FROM (SELECT DISTINCT d.objid FROM dependent AS d WHERE d.classid = 'pg_constraint'::regclass) AS d
        JOIN pg_constraint AS k ON k.oid = d.objid AND k.contype IN ('c', 'f') AND k.coninhcount = 0 AND k.conname LIKE E'snowflake\\_%'
        WHERE NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadows(keys) AS s WHERE s.check_oid = k.oid)
          AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadow_checks(keys) AS s WHERE s.shadow = k.oid)
          AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS s WHERE s.shadow = k.oid)
      UNION ALL
        SELECT 2, d.relation, 'SHARE UPDATE EXCLUSIVE', false, 'an index',
               ARRAY[snowflake_migrate_internal.command(text 'plain', d.relation,
                         format('DROP INDEX CONCURRENTLY %s', snowflake_migrate_internal.name_of(c.oid::regclass)))],
               c.relname
        FROM dependent AS d
        JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind = 'i' AND c.relname LIKE E'snowflake\\_%'
        WHERE NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadow_indexes(keys) AS i WHERE i.shadow = c.oid)
      UNION ALL
        SELECT 3, d.relation, 'SHARE UPDATE EXCLUSIVE', true, 'a statistics object',
               ARRAY[snowflake_migrate_internal.command(text 'plain', d.relation, format('DROP STATISTICS %I.%I', n.nspname, x.stxname))],
               x.stxname
        FROM dependent AS d
        JOIN pg_statistic_ext AS x ON d.classid = 'pg_statistic_ext'::regclass AND x.oid = d.objid AND x.stxname LIKE E'snowflake\\_%'
        JOIN pg_namespace AS n ON n.oid = x.stxnamespace
        WHERE NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadow_statistics(keys) AS s WHERE s.shadow = x.oid)
    )
    SELECT snowflake_migrate_internal.step(text 'leftover', l.relation, l.lock_level, text 'removes counterpart %s of %s',
        format('of %s that has been dropped or replaced', l.original), l.commands, in_transaction => l.in_transaction,
        names => ARRAY[quote_ident(l.name), l.relation::text])
    FROM leftover AS l
    ORDER BY l.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, l.relation::text, l.place, l.name
$function$;

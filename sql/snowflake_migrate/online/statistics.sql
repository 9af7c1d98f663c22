-- The extended statistics of shadow columns: one statistics object for each of those
-- that use a narrow column.

-- The statistics objects of narrow columns, and those of their shadows.
CREATE FUNCTION snowflake_migrate_internal.shadow_statistics(keys snowflake_migrate_internal.key[])
RETURNS TABLE (
    statistics oid, name name, schema name, relation regclass, owner oid, shadow_name name, shadow oid, definition text, target integer
) LANGUAGE sql STABLE
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
                   concat_ws(' ', 'statistics', m.stxkeys::text, m.stxkind::text, array_to_string(m.expressions, ' ')), m.stxname) AS shadow_name
        FROM narrow_statistics AS m
    )
    SELECT m.oid, m.stxname, m.nspname, m.stxrelid::regclass, m.stxowner, m.shadow_name, x.oid,
           format('CREATE STATISTICS %I.%I', m.nspname, m.shadow_name)
           || CASE WHEN cardinality(m.stxkeys::smallint[]) + cardinality(m.expressions) < 2 THEN ''
                   ELSE (SELECT format(' (%s)', string_agg(k.name, ', ' ORDER BY k.name))
                         FROM (VALUES ('d', 'ndistinct'), ('f', 'dependencies'), ('m', 'mcv')) AS k (kind, name)
                         WHERE k.kind::"char" = ANY (m.stxkind)) END
           || ' ON ' || snowflake_migrate_internal.portable(part.texts) || ' FROM ' || snowflake_migrate_internal.name_of(m.stxrelid::regclass),
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
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.do_block(string_agg(
               format(E'    PERFORM snowflake_internal.run(%L::pg_catalog.regclass, %L::pg_catalog.text);\n',
                      snowflake_migrate_internal.name_of(x.relation), command.text), '' ORDER BY command.place)),
           'SHARE UPDATE EXCLUSIVE', true, format('adds statistics of %s; the counterpart of statistics object %I.%I', x.relation, x.schema, x.name)
    FROM snowflake_migrate_internal.shadow_statistics(keys) AS x
    CROSS JOIN LATERAL (
        SELECT 1 AS place, x.definition AS text
      UNION ALL
        SELECT 2, format('ALTER STATISTICS %I.%I SET STATISTICS %s', x.schema, x.shadow_name, x.target) WHERE x.target <> -1) AS command
    WHERE x.shadow IS NULL
    GROUP BY x.relation, x.schema, x.name
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
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH dependent AS MATERIALIZED (
        SELECT DISTINCT s.relation, d.classid, d.objid
        FROM snowflake_migrate_internal.shadows(keys) AS s
        JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.relation AND d.refobjsubid = s.shadow
        WHERE s.is_kept
    ), step (place, relation, statement, lock_level, in_transaction, note) AS (
        SELECT 1, k.conrelid::regclass,
               snowflake_migrate_internal.do_block(
                   format(E'    PERFORM snowflake_migrate_internal.lock(%L::pg_catalog.regclass[], ''ACCESS EXCLUSIVE''::pg_catalog.text);\n',
                          ARRAY(SELECT snowflake_migrate_internal.name_of(c.oid::regclass) FROM pg_class AS c WHERE c.oid IN (k.conrelid, k.confrelid) ORDER BY c.oid))
                   || snowflake_migrate_internal.altering_line(
                          format('ALTER TABLE %s DROP CONSTRAINT %I', snowflake_migrate_internal.name_of(k.conrelid::regclass), k.conname))),
               'ACCESS EXCLUSIVE', true, 'removes a counterpart; of a constraint that has been dropped or replaced'
        FROM (SELECT DISTINCT d.objid FROM dependent AS d WHERE d.classid = 'pg_constraint'::regclass) AS d
        JOIN pg_constraint AS k ON k.oid = d.objid AND k.contype IN ('c', 'f') AND k.conparentid = 0 AND k.conname LIKE E'snowflake\\_%'
        WHERE NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadows(keys) AS s WHERE s.check_oid = k.oid)
          AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadow_checks(keys) AS s WHERE s.shadow = k.oid)
          AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS s WHERE s.shadow = k.oid)
      UNION ALL
        SELECT 2, d.relation, format('DROP INDEX CONCURRENTLY %s', snowflake_migrate_internal.name_of(c.oid::regclass)), 'SHARE UPDATE EXCLUSIVE', false,
               'removes a counterpart; of an index that has been dropped or replaced'
        FROM dependent AS d
        JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind = 'i' AND c.relname LIKE E'snowflake\\_%'
        WHERE NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadow_indexes(keys) AS i WHERE i.shadow = c.oid)
      UNION ALL
        SELECT 3, d.relation, format('DROP STATISTICS %I.%I', n.nspname, x.stxname), 'SHARE UPDATE EXCLUSIVE', true,
               'removes a counterpart; of a statistics object that has been dropped or replaced'
        FROM dependent AS d
        JOIN pg_statistic_ext AS x ON d.classid = 'pg_statistic_ext'::regclass AND x.oid = d.objid AND x.stxname LIKE E'snowflake\\_%'
        JOIN pg_namespace AS n ON n.oid = x.stxnamespace
        WHERE NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadow_statistics(keys) AS s WHERE s.shadow = x.oid)
    )
    SELECT s.statement, s.lock_level, s.in_transaction, s.note
    FROM step AS s
    ORDER BY s.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, s.relation::text, s.place, s.statement
$function$;

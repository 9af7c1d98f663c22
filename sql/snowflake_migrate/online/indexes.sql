-- The indexes of the shadow columns: one for each index that uses a narrow column, as
-- a key, in an expression or in its WHERE clause. The definition is NULL if an
-- expression cannot be mapped to the shadows, because it uses whole rows.

-- The columns of indexes, in the words of CREATE INDEX, with the shadow columns in place
-- of the narrow ones. is_mapped is false if an expression uses whole rows.
CREATE FUNCTION snowflake_migrate_internal.shadow_index_columns(shadows snowflake_migrate_internal.shadow_column[], indexes oid[])
RETURNS TABLE (index oid, is_mapped boolean, attributes smallint[], keys text, included text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
    WITH renamed AS MATERIALIZED (
        SELECT s.relation, array_agg(s.narrow) AS former, array_agg(s.shadow_name) AS present
        FROM unnest(shadows) AS s GROUP BY s.relation
    ), narrow_index AS MATERIALIZED (
        SELECT i.*, c.relam, r.former, r.present
        FROM unnest(indexes) AS given (oid)
        JOIN pg_index AS i ON i.indexrelid = given.oid
        JOIN pg_class AS c ON c.oid = i.indexrelid
        JOIN renamed AS r ON r.relation = i.indrelid
    ), part AS (
        SELECT m.indexrelid, k.place, coalesce(s.shadow, k.attribute) AS attribute,
               CASE WHEN s.attribute IS NOT NULL THEN quote_ident(s.shadow_name)
                    WHEN k.attribute = 0
                    THEN snowflake_migrate_internal.rename_columns(
                        pg_get_indexdef(m.indexrelid, k.place::integer, false), m.former, m.present)
                    ELSE pg_get_indexdef(m.indexrelid, k.place::integer, true) END
               || CASE WHEN k.place > m.indnkeyatts THEN '' ELSE
                   coalesce((SELECT format(' COLLATE %I.%I', n.nspname, l.collname)
                             FROM pg_collation AS l JOIN pg_namespace AS n ON n.oid = l.collnamespace
                             WHERE l.oid = o.collation_oid AND l.oid IS DISTINCT FROM t.attcollation), '')
                   -- A shadow column gets bigint's default operator class of the access method.
                   || CASE WHEN s.attribute IS NOT NULL THEN '' ELSE
                       coalesce((SELECT format(' %I.%I', n.nspname, c.opcname)
                                 FROM pg_opclass AS c JOIN pg_namespace AS n ON n.oid = c.opcnamespace
                                 WHERE c.oid = o.opclass AND (NOT c.opcdefault OR a.attoptions IS NOT NULL)), '')
                       || coalesce(' (' || (SELECT string_agg(format('%I = %L', v.option_name, v.option_value), ', ')
                                            FROM pg_options_to_table(a.attoptions) AS v) || ')', '') END
                   || CASE WHEN pg_indexam_has_property(m.relam, 'can_order')
                       THEN CASE WHEN o.option & 1 <> 0 THEN ' DESC' ELSE '' END
                            || CASE WHEN o.option & 3 = 2 THEN ' NULLS FIRST' WHEN o.option & 3 = 1 THEN ' NULLS LAST' ELSE '' END
                       ELSE '' END END AS text
        FROM narrow_index AS m
        CROSS JOIN LATERAL unnest(m.indkey::smallint[]) WITH ORDINALITY AS k (attribute, place)
        LEFT JOIN LATERAL ROWS FROM (unnest(m.indclass::oid[]), unnest(m.indcollation::oid[]), unnest(m.indoption::smallint[]))
            WITH ORDINALITY AS o (opclass, collation_oid, option, place) ON o.place = k.place
        LEFT JOIN pg_attribute AS a ON a.attrelid = m.indexrelid AND a.attnum = k.place
        LEFT JOIN pg_attribute AS t ON t.attrelid = m.indrelid AND t.attnum = k.attribute
        LEFT JOIN unnest(shadows) AS s ON s.relation = m.indrelid AND s.attribute = k.attribute
    )
    SELECT p.indexrelid, bool_and(p.text IS NOT NULL), array_agg(p.attribute ORDER BY p.place),
           string_agg(p.text, ', ' ORDER BY p.place) FILTER (WHERE p.place <= i.indnkeyatts),
           string_agg(p.text, ', ' ORDER BY p.place) FILTER (WHERE p.place > i.indnkeyatts)
    FROM part AS p JOIN pg_index AS i ON i.indexrelid = p.indexrelid
    GROUP BY p.indexrelid
$function$;

-- An index of narrow columns, and its counterpart.
CREATE TYPE snowflake_migrate_internal.shadow_index AS (
    index regclass, relation regclass, shadow_name name, shadow regclass, is_ready boolean, definition text,
    -- Of a partitioned table, at this level of its tree; and whether it belongs to one.
    is_partitioned boolean, level integer, is_attached boolean
);

-- The indexes of the narrow columns, and those of their shadows.
CREATE FUNCTION snowflake_migrate_internal.shadow_indexes(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.shadow_index LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.* FROM snowflake_migrate_internal.shadows(keys) AS s
    ), renamed AS MATERIALIZED (
        SELECT s.relation, array_agg(s.narrow) AS former, array_agg(s.shadow_name) AS present,
               array_agg(s.attribute) AS attributes
        FROM shadow AS s GROUP BY s.relation
    ), narrow_index AS MATERIALIZED (
        SELECT i.*, c.relname, c.relnamespace, c.relam, c.reltablespace, c.reloptions, r.former, r.present,
               c.relkind = 'I' AS is_partitioned, h.inhparent AS parent,
               EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid AND k.conrelid = i.indrelid
                                                        AND k.contype IN ('p', 'u')) AS is_of_constraint,
               -- Expressions are part of it, so that no counterpart survives another index of the same name.
               snowflake_migrate_internal.shadow_name(
                   concat_ws(' ', 'index', pg_get_expr(i.indexprs, i.indrelid), pg_get_expr(i.indpred, i.indrelid)),
                   c.relname) AS shadow_name
        FROM renamed AS r
        JOIN pg_index AS i ON i.indrelid = r.relation
        JOIN pg_class AS c ON c.oid = i.indexrelid
        LEFT JOIN pg_inherits AS h ON h.inhrelid = i.indexrelid
        -- Invalid indexes, left by CREATE INDEX CONCURRENTLY, are not used and not copied.
        -- An index cannot become an exclusion constraint.
        WHERE i.indisvalid AND i.indislive AND NOT i.indisexclusion
          AND (r.attributes && i.indkey::smallint[]
               OR i.indexprs::text ~ ':varattno 0 ' OR i.indpred::text ~ ':varattno 0 '
               OR (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)
                  AND EXISTS (SELECT FROM pg_depend AS d
                              WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                                AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid
                                AND d.refobjsubid = ANY (r.attributes)))
    ), definition AS MATERIALIZED (
        SELECT d.* FROM snowflake_migrate_internal.shadow_index_columns(
            ARRAY(SELECT s::snowflake_migrate_internal.shadow_column FROM shadow AS s),
            ARRAY(SELECT m.indexrelid FROM narrow_index AS m)) AS d
    ), mapped AS (
        SELECT m.*, p.keys, p.included, p.attributes, w.predicate,
               p.is_mapped AND (m.indpred IS NULL OR w.predicate IS NOT NULL) AS is_mapped
        FROM narrow_index AS m
        CROSS JOIN LATERAL (
            SELECT snowflake_migrate_internal.rename_columns(pg_get_expr(m.indpred, m.indrelid), m.former, m.present) AS predicate) AS w
        JOIN definition AS p ON p.index = m.indexrelid
    )
    SELECT m.indexrelid::regclass, m.indrelid::regclass, coalesce(jc.relname, m.shadow_name), j.indexrelid::regclass,
           -- That of a partitioned table's constraint is made by the swap, of those of the partitions.
           m.is_partitioned AND m.is_of_constraint OR coalesce(j.indisvalid AND j.indisready AND j.indislive AND j.indisunique = m.indisunique
                    AND (j.indexprs IS NULL) = (m.indexprs IS NULL) AND (j.indpred IS NULL) = (m.indpred IS NULL)
                    AND NOT snowflake_migrate_internal.uses_other_code('pg_class', m.indexrelid, j.indexrelid)
                    AND j.indnkeyatts = m.indnkeyatts AND ARRAY(SELECT unnest(j.indkey::smallint[])) = m.attributes, false),
           CASE WHEN m.is_mapped THEN snowflake_migrate_internal.portable(concat(
                  'CREATE ', CASE WHEN m.indisunique THEN 'UNIQUE ' END, 'INDEX ', CASE WHEN NOT m.is_partitioned THEN 'CONCURRENTLY ' END,
                  quote_ident(m.shadow_name),
                  ' ON ', snowflake_migrate_internal.name_of(m.indrelid::regclass),
                  ' USING ', (SELECT quote_ident(am.amname) FROM pg_am AS am WHERE am.oid = m.relam),
                  ' (', m.keys, ')', ' INCLUDE (' || m.included || ')',
                  CASE WHEN m.indnullsnotdistinct THEN ' NULLS NOT DISTINCT' END,
                  ' WITH (' || (SELECT string_agg(format('%I = %L', v.option_name, v.option_value), ', ')
                                FROM pg_options_to_table(m.reloptions) AS v) || ')',
                  ' TABLESPACE ' || (SELECT quote_ident(t.spcname) FROM pg_tablespace AS t
                                    -- Else it would be in default_tablespace.
                                    WHERE t.oid = coalesce(nullif(m.reltablespace, 0), (
                                        SELECT b.dattablespace FROM pg_database AS b
                                        WHERE b.datname = current_database() AND current_setting('default_tablespace') <> ''))),
                  ' WHERE ' || m.predicate)) END,
           m.is_partitioned, (SELECT count(*) FROM pg_partition_ancestors(m.indrelid))::integer,
           m.parent IS NOT NULL AND NOT m.is_of_constraint
    FROM mapped AS m
    LEFT JOIN narrow_index AS p ON p.indexrelid = m.parent
    LEFT JOIN (pg_index AS j JOIN pg_class AS jc ON jc.oid = j.indexrelid)
        ON j.indrelid = m.indrelid
        -- By its name; or that of a partition made since, by that of its parent.
        AND CASE WHEN jc.relispartition
                 THEN EXISTS (SELECT FROM pg_inherits AS h JOIN pg_class AS c ON c.oid = h.inhparent
                              WHERE h.inhrelid = j.indexrelid AND c.relname = p.shadow_name AND c.relnamespace = p.relnamespace)
                 ELSE jc.relname = m.shadow_name AND jc.relnamespace = m.relnamespace END
$function$;

-- The steps that build the indexes. An interrupted build leaves an invalid index,
-- which has to be dropped first.
CREATE FUNCTION snowflake_migrate_internal.index_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.step(text 'index', i.relation,
        CASE WHEN i.is_partitioned THEN m.mode ELSE text 'SHARE UPDATE EXCLUSIVE' END,
        step.what, step.note,
        CASE WHEN i.is_partitioned THEN ARRAY[snowflake_migrate_internal.lock_command(ARRAY[i.relation], m.mode)] ELSE '{}' END
        || snowflake_migrate_internal.command(text 'plain', i.relation, step.statement), in_transaction => i.is_partitioned,
        names => ARRAY[quote_ident(step.name), i.relation::text], work => step.work)
    FROM snowflake_migrate_internal.shadow_indexes(keys) AS i
    CROSS JOIN LATERAL (
        SELECT 1 AS place, format('DROP INDEX %s%s', CASE WHEN NOT i.is_partitioned THEN 'CONCURRENTLY ' END,
                                  snowflake_migrate_internal.name_of(i.shadow)) AS statement,
               'removes index %s of %s' AS what, 'it is invalid, of an interrupted build' AS note, quote_ident(i.shadow_name) AS name,
               NULL::snowflake_migrate_internal.work AS work
        WHERE i.shadow IS NOT NULL
      UNION ALL
        SELECT 2, i.definition, CASE WHEN i.is_partitioned THEN 'joins index %s of %s' ELSE 'builds index %s of %s' END,
               format(CASE WHEN i.is_partitioned
                           THEN 'the counterpart of %s, of those of the partitions. Holds the lock for a moment, after short attempts to '
                                'acquire it. A partition that was made since gets its own'
                           ELSE 'the counterpart of %s. Needs as much disk space as that index (%s now), and as much WAL' END,
                      i.index, pg_size_pretty(snowflake_migrate_internal.main_bytes(i.index))),
               (SELECT quote_ident(c.relname) FROM pg_class AS c WHERE c.oid = i.index),
               CASE WHEN NOT i.is_partitioned THEN snowflake_migrate_internal.index_work(i.relation, i.index) END
    ) AS step
    CROSS JOIN LATERAL (SELECT CASE step.place WHEN 1 THEN text 'ACCESS EXCLUSIVE' ELSE 'SHARE ROW EXCLUSIVE' END) AS m (mode)
    WHERE NOT i.is_ready
    -- Those of partitions first, so that their parents' are made of them.
    ORDER BY i.is_partitioned, CASE WHEN i.is_partitioned THEN -i.level END,
             i.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, i.relation::text, i.index::text, step.place
$function$;

-- Bodies between BEGIN ATOMIC and END are parsed here, as views are, while the extension's
-- schema is on the search path. Each operator has operands of exactly the types that
-- pg_catalog's operator takes, so that a planted operator in that schema is never a better
-- match. Functions read no view, because restrict_nonsystem_relation_kind may refuse it.
-- Without a SET clause, the planner inlines these functions as it does views.
--
-- Catalogs may have thousands of tables, and no statistics. So what is known of a
-- column is looked up by indexes on that column, for any estimate of the planner:
-- foreign keys by their dependency on the column, because pg_constraint has no
-- index on the referenced table. OFFSET keeps a sub-query from becoming a join.

-- The sequence of a default that looks for it by name, nextval('numbers'::text), as very old
-- applications have them; NULL if it is none. A name without a schema is that of a sequence
-- in the table's schema, or of the only one.
CREATE FUNCTION snowflake_migrate_internal.late_bound_sequence(default_oid oid)
RETURNS oid LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
AS $function$
BEGIN
    RETURN (
        SELECT CASE WHEN count(*) FILTER (WHERE q.is_near) > 0 THEN min(q.oid) FILTER (WHERE q.is_near)
                    WHEN count(*) = 1 THEN min(q.oid) END
        FROM (SELECT s.oid, s.relnamespace = c.relnamespace OR m.schema IS NOT NULL AS is_near
              FROM pg_attrdef AS f
              JOIN pg_class AS c ON c.oid = f.adrelid
              CROSS JOIN LATERAL (
                  SELECT btrim(g.groups[1], '"') AS schema, btrim(g.groups[2], '"') AS name
                  FROM regexp_matches(pg_get_expr(f.adbin, f.adrelid),
                           E'^nextval\\(\\(''(?:([a-z_][a-z0-9_$]*|"[^"'']+")[.])?'
                           '([a-z_][a-z0-9_$]*|"[^"'']+")''::text\\)::regclass\\)$') AS g (groups)) AS m
              JOIN pg_class AS s ON s.relname = m.name AND s.relkind = 'S'
              JOIN pg_namespace AS n ON n.oid = s.relnamespace AND n.nspname = coalesce(m.schema, n.nspname)
              WHERE f.oid = default_oid) AS q);
END
$function$;

-- The columns that take their values from a sequence, and the sequence.
CREATE FUNCTION snowflake_migrate_internal.sequence_columns()
RETURNS TABLE (relation oid, attribute smallint, sequence oid, kind text) LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT source.relation, source.attribute, source.sequence, source.kind
    FROM (
        -- Identity columns own their sequence internally.
        SELECT a.attrelid AS relation, a.attnum AS attribute, d.objid AS sequence,
               CASE WHEN a.attidentity = 'a'::"char" THEN 'identity always' ELSE 'identity by default' END AS kind
        FROM pg_catalog.pg_attribute AS a
        JOIN pg_catalog.pg_depend AS d
          ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
         AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
         AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND d.deptype = 'i'::"char"
        JOIN pg_catalog.pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'::"char"
        WHERE a.attidentity <> ''::"char"
      UNION ALL
        -- A default depends on the sequence that it uses.
        SELECT f.adrelid, f.adnum, d.refobjid,
               CASE WHEN owned.objid IS NOT NULL THEN 'serial' ELSE 'default' END
        FROM pg_catalog.pg_attrdef AS f
        JOIN pg_catalog.pg_depend AS d
          ON d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid AND d.objid = f.oid
         AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
        JOIN pg_catalog.pg_class AS s ON s.oid = d.refobjid AND s.relkind = 'S'::"char"
        LEFT JOIN pg_catalog.pg_depend AS owned
          ON owned.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND owned.objid = s.oid
         AND owned.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
         AND owned.refobjid = f.adrelid AND owned.refobjsubid = f.adnum AND owned.deptype = 'a'::"char"
      UNION ALL
        SELECT f.adrelid, f.adnum, late.sequence, 'default'
        FROM pg_catalog.pg_attrdef AS f
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum AND a.attgenerated = ''::"char"
        CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.late_bound_sequence(f.oid) AS sequence) AS late
        WHERE (a.atttypid = 'pg_catalog.int2'::pg_catalog.regtype::pg_catalog.oid
               OR a.atttypid = 'pg_catalog.int4'::pg_catalog.regtype::pg_catalog.oid
               OR a.atttypid = 'pg_catalog.int8'::pg_catalog.regtype::pg_catalog.oid)
          -- One that depends on a sequence, or on a function that is no system's, is another.
          AND NOT EXISTS (
              SELECT FROM pg_catalog.pg_depend AS d
              WHERE d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid AND d.objid = f.oid
                AND (d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
                     OR d.refobjid <> f.adrelid))
          AND late.sequence IS NOT NULL
    ) AS source
    -- Partitions and child tables are left out, unless they use a sequence of
    -- their own.
    WHERE NOT EXISTS (
        SELECT FROM pg_catalog.pg_attribute AS a
        JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = a.attrelid
        JOIN pg_catalog.pg_attribute AS pa ON pa.attrelid = i.inhparent AND pa.attname = a.attname
        WHERE a.attrelid = source.relation AND a.attnum = source.attribute
          AND (EXISTS (
                   SELECT FROM pg_catalog.pg_attrdef AS f
                   JOIN pg_catalog.pg_depend AS d
                     ON d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid AND d.objid = f.oid
                    AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
                    AND d.refobjid = source.sequence
                   WHERE f.adrelid = pa.attrelid AND f.adnum = pa.attnum)
               OR pa.attidentity <> ''::"char" AND EXISTS (
                   SELECT FROM pg_catalog.pg_depend AS d
                   WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND d.objid = source.sequence
                     AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
                     AND d.refobjid = pa.attrelid AND d.refobjsubid = pa.attnum AND d.deptype = 'i'::"char"))
        OFFSET 0);
END;

-- The last number that a type holds, in the direction of a sequence.
CREATE FUNCTION snowflake_migrate_internal.type_end(type_oid oid, is_ascending boolean)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN is_ascending THEN t.highest ELSE - t.highest - 1 END
    FROM (SELECT CASE type_oid WHEN 'int2'::regtype THEN 32767 WHEN 'int4'::regtype THEN 2147483647
                               WHEN 'int8'::regtype THEN 9223372036854775807 END) AS t (highest)
$function$;

-- The columns that reference a column, the one of the narrowest type, and the last number that
-- this one can hold in the direction of a sequence.
CREATE FUNCTION snowflake_migrate_internal.referencing_columns(referenced_table oid, referenced_attribute smallint, is_ascending boolean)
RETURNS TABLE (names text[], narrowest text, type_end bigint) LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT pg_catalog.array_agg(r.name ORDER BY r.name) AS names,
           (pg_catalog.array_agg(r.name ORDER BY pg_catalog.abs(r.type_end::pg_catalog.numeric), r.name))[1] AS narrowest,
           CASE WHEN is_ascending THEN pg_catalog.min(r.type_end) ELSE pg_catalog.max(r.type_end) END AS type_end
    FROM (SELECT pg_catalog.format('%s.%I', k.conrelid::pg_catalog.regclass, ra.attname) AS name,
                 snowflake_migrate_internal.type_end(snowflake_migrate_internal.base_type(ra.atttypid), is_ascending) AS type_end
          FROM (SELECT DISTINCT d.objid AS foreign_key
                FROM pg_catalog.pg_depend AS d
                WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
                  AND d.refobjid = referenced_table AND d.refobjsubid = referenced_attribute
                  AND d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid OFFSET 0) AS d
          JOIN pg_catalog.pg_constraint AS k ON k.oid = d.foreign_key
          CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(k.conkey), pg_catalog.unnest(k.confkey))
              AS key (referencing, referenced)
          JOIN pg_catalog.pg_attribute AS ra ON ra.attrelid = k.conrelid AND ra.attnum = key.referencing
          WHERE k.contype = 'f'::"char" AND k.conparentid = 0::pg_catalog.oid
            AND k.confrelid = referenced_table AND key.referenced = referenced_attribute) AS r;
END;

-- What the view below has, for functions.
CREATE FUNCTION snowflake_migrate_internal.columns()
RETURNS TABLE (
    schema_name name, table_name name, column_name name, data_type text, kind text, sequence regclass, last_value bigint,
    last_possible bigint, limited_by text, percent_used numeric, days_left numeric, referenced_by text[]
) LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT n.nspname AS schema_name,
           c.relname AS table_name,
           a.attname AS column_name,
           pg_catalog.format_type(a.atttypid, a.atttypmod) AS data_type,
           source.kind,
           source.sequence::pg_catalog.regclass AS sequence,
           used.last_value,
           bound.last_possible,
           CASE WHEN bound.is_second_range THEN 'the numbers that were used before'
                ELSE CASE bound.last_possible WHEN own.type_end THEN pg_catalog.format('the type of %I', a.attname)
                                    WHEN referencing.type_end THEN pg_catalog.format('the type of %s', referencing.narrowest)
                                    WHEN own.sequence_end THEN 'the sequence' END END AS limited_by,
           pg_catalog.round(100.0 * (used.last_value::pg_catalog.numeric - bound.first)
               / CASE WHEN bound.last_possible::pg_catalog.numeric <> bound.first
                      THEN bound.last_possible::pg_catalog.numeric - bound.first END, 2) AS percent_used,
           pg_catalog.floor(pg_catalog.abs(bound.last_possible::pg_catalog.numeric - used.last_value::pg_catalog.numeric)
               / pg_catalog.abs(own.increment::pg_catalog.numeric)
               / CASE WHEN inserted.a_day > 0::pg_catalog.numeric THEN inserted.a_day END) AS days_left,
           coalesce(referencing.names, '{}') AS referenced_by
    FROM snowflake_migrate_internal.sequence_columns() AS source
    JOIN pg_catalog.pg_class AS c ON c.oid = source.relation
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = source.attribute
    CROSS JOIN LATERAL (
        -- Reading a sequence requires a privilege. Without it, the view still shows the column.
        SELECT CASE WHEN pg_catalog.has_sequence_privilege(source.sequence, 'USAGE, SELECT')
                    THEN pg_catalog.pg_sequence_last_value(source.sequence) END AS last_value
    ) AS used
    CROSS JOIN LATERAL (
        SELECT q.seqincrement AS increment, q.seqincrement > 0::bigint AS is_ascending,
               CASE WHEN q.seqincrement > 0::bigint THEN q.seqmax ELSE q.seqmin END AS sequence_end,
               CASE WHEN q.seqincrement > 0::bigint THEN q.seqmin ELSE q.seqmax END AS sequence_begin, q.seqstart AS start,
               -- Only a domain has another base type.
               snowflake_migrate_internal.type_end(
                   CASE WHEN a.atttypid = 'pg_catalog.int2'::pg_catalog.regtype::pg_catalog.oid
                          OR a.atttypid = 'pg_catalog.int4'::pg_catalog.regtype::pg_catalog.oid
                          OR a.atttypid = 'pg_catalog.int8'::pg_catalog.regtype::pg_catalog.oid
                        THEN a.atttypid ELSE snowflake_migrate_internal.base_type(a.atttypid) END,
                   q.seqincrement > 0::bigint) AS type_end
        FROM pg_catalog.pg_sequence AS q WHERE q.seqrelid = source.sequence
    ) AS own
    CROSS JOIN LATERAL snowflake_migrate_internal.referencing_columns(c.oid, a.attnum, own.is_ascending) AS referencing
    CROSS JOIN LATERAL (
        -- A sequence that began above zero and is below it now was restarted in the negative
        -- range, which ends at the numbers that it used first.
        SELECT w.is_second_range,
               CASE WHEN w.is_second_range THEN CASE WHEN own.is_ascending THEN (-1)::bigint ELSE 1::bigint END
                    WHEN own.is_ascending THEN least(own.type_end, referencing.type_end, own.sequence_end)
                    ELSE greatest(own.type_end, referencing.type_end, own.sequence_end) END AS last_possible,
               CASE WHEN w.is_second_range AND own.is_ascending THEN greatest(own.sequence_begin, - own.type_end - 1::bigint)
                    WHEN w.is_second_range THEN least(own.sequence_begin, - own.type_end - 1::bigint)
                    WHEN own.is_ascending = (own.start < 0::bigint) THEN own.start ELSE 0::bigint END::pg_catalog.numeric AS first
        FROM (SELECT coalesce(CASE WHEN own.is_ascending THEN used.last_value < 0::bigint AND own.start > 0::bigint
                                   ELSE used.last_value > 0::bigint AND own.start < 0::bigint END, false) AS is_second_range) AS w
    ) AS bound
    CROSS JOIN LATERAL (
        -- Since the statistics were reset, if that is known.
        SELECT t.rows::pg_catalog.numeric * 86400::pg_catalog.numeric
               / CASE WHEN s.seconds > 0::pg_catalog.numeric THEN s.seconds END AS a_day
        FROM (SELECT CASE WHEN c.relkind = 'p'::"char"
                          THEN (SELECT pg_catalog.sum(pg_catalog.pg_stat_get_tuples_inserted(p.relid::pg_catalog.oid))
                                FROM pg_catalog.pg_partition_tree(c.oid::pg_catalog.regclass) AS p WHERE p.isleaf)
                          ELSE pg_catalog.pg_stat_get_tuples_inserted(c.oid)::pg_catalog.numeric END AS rows) AS t
        CROSS JOIN (SELECT extract(epoch FROM pg_catalog.now() - pg_catalog.pg_stat_get_db_stat_reset_time(b.oid)) AS seconds
                    FROM pg_catalog.pg_database AS b WHERE b.datname = pg_catalog.current_database()) AS s
    ) AS inserted
    WHERE NOT pg_catalog.pg_is_other_temp_schema(n.oid)
      AND n.nspname <> 'pg_catalog'::pg_catalog.name AND n.nspname <> 'information_schema'::pg_catalog.name;
END;

CREATE VIEW snowflake_migrate.columns AS
    SELECT schema_name, table_name, column_name, data_type, kind, sequence, last_value, last_possible, limited_by, percent_used,
           days_left, referenced_by
    FROM snowflake_migrate_internal.columns();
COMMENT ON VIEW snowflake_migrate.columns IS 'Columns that take their values from a sequence, and how much of their numbers is used';
COMMENT ON COLUMN snowflake_migrate.columns.schema_name IS 'Schema of the table';
COMMENT ON COLUMN snowflake_migrate.columns.table_name
    IS 'Table name. Partitions and child tables that use their parent''s sequence are not listed separately';
COMMENT ON COLUMN snowflake_migrate.columns.column_name IS 'Column name';
COMMENT ON COLUMN snowflake_migrate.columns.data_type IS 'Type of the column';
COMMENT ON COLUMN snowflake_migrate.columns.kind
    IS 'serial, identity always, identity by default, or default: a sequence that the column does not own';
COMMENT ON COLUMN snowflake_migrate.columns.sequence IS 'Sequence that the column uses';
COMMENT ON COLUMN snowflake_migrate.columns.last_value
    IS 'Last value of the sequence; NULL before the first one, or if the user may not read the sequence';
COMMENT ON COLUMN snowflake_migrate.columns.last_possible
    IS 'Last number that the column''s type, the sequence and the columns that reference it can hold';
COMMENT ON COLUMN snowflake_migrate.columns.limited_by IS 'Which of them that is';
COMMENT ON COLUMN snowflake_migrate.columns.percent_used
    IS 'Percentage of the numbers up to last_possible that are used: from zero, from the start of a sequence that begins below it, '
       'or, after a restart in the negative range, from there';
COMMENT ON COLUMN snowflake_migrate.columns.days_left
    IS 'Days until last_possible, at the rate of rows inserted since the statistics of the database were reset; NULL if they never were';
COMMENT ON COLUMN snowflake_migrate.columns.referenced_by IS 'Columns that reference the column';

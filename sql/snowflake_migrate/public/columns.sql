-- Views are parsed while the extension's schema is on the search path. Each
-- operator has operands of exactly the types that pg_catalog's operator takes,
-- so that a planted operator in that schema is never a better match.
--
-- Catalogs may have thousands of tables, and no statistics. So what is known of a
-- column is looked up by indexes on that column, for any estimate of the planner:
-- foreign keys by their dependency on the column, because pg_constraint has no
-- index on the referenced table. OFFSET keeps a sub-query from becoming a join.

-- The columns that take their values from a sequence, and the sequence.
CREATE VIEW snowflake_migrate_internal.sequence_columns AS
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
COMMENT ON VIEW snowflake_migrate_internal.sequence_columns IS
    'Used by snowflake_migrate.columns and snowflake_migrate_internal.source: columns and the sequences they use';

CREATE VIEW snowflake_migrate.columns AS
    SELECT n.nspname AS schema_name,
           c.relname AS table_name,
           a.attname AS column_name,
           pg_catalog.format_type(a.atttypid, a.atttypmod) AS data_type,
           source.kind,
           source.sequence::pg_catalog.regclass AS sequence,
           used.last_value,
           -- Sequences may be descending.
           pg_catalog.round(pg_catalog.abs(100.0 * used.last_value::pg_catalog.numeric)
               / CASE WHEN base.type_oid = 'pg_catalog.int2'::pg_catalog.regtype::pg_catalog.oid THEN 32767::pg_catalog.numeric
                      WHEN base.type_oid = 'pg_catalog.int4'::pg_catalog.regtype::pg_catalog.oid THEN 2147483647::pg_catalog.numeric
                      WHEN base.type_oid = 'pg_catalog.int8'::pg_catalog.regtype::pg_catalog.oid THEN 9223372036854775807::pg_catalog.numeric
                 END, 2) AS percent_used,
           ARRAY(SELECT pg_catalog.format('%s.%I', k.conrelid::pg_catalog.regclass, ra.attname)
                 FROM (SELECT DISTINCT d.objid AS foreign_key
                       FROM pg_catalog.pg_depend AS d
                       WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
                         AND d.refobjid = c.oid AND d.refobjsubid = a.attnum
                         AND d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid OFFSET 0) AS d
                 JOIN pg_catalog.pg_constraint AS k ON k.oid = d.foreign_key
                 CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(k.conkey), pg_catalog.unnest(k.confkey))
                     AS key (referencing, referenced)
                 JOIN pg_catalog.pg_attribute AS ra ON ra.attrelid = k.conrelid AND ra.attnum = key.referencing
                 WHERE k.contype = 'f'::"char" AND k.conparentid = 0::pg_catalog.oid
                   AND k.confrelid = c.oid AND key.referenced = a.attnum
                 ORDER BY 1) AS referenced_by
    FROM snowflake_migrate_internal.sequence_columns AS source
    JOIN pg_catalog.pg_class AS c ON c.oid = source.relation
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = source.attribute
    CROSS JOIN LATERAL (
        -- Reading a sequence requires a privilege. Without it, the view still shows the column.
        SELECT CASE WHEN pg_catalog.has_sequence_privilege(source.sequence, 'USAGE, SELECT')
                    THEN pg_catalog.pg_sequence_last_value(source.sequence) END AS last_value
    ) AS used
    CROSS JOIN LATERAL (
        -- Only a domain has another base type.
        SELECT CASE WHEN a.atttypid = 'pg_catalog.int2'::pg_catalog.regtype::pg_catalog.oid
                      OR a.atttypid = 'pg_catalog.int4'::pg_catalog.regtype::pg_catalog.oid
                      OR a.atttypid = 'pg_catalog.int8'::pg_catalog.regtype::pg_catalog.oid
                    THEN a.atttypid ELSE snowflake_migrate_internal.base_type(a.atttypid) END AS type_oid
    ) AS base
    WHERE NOT pg_catalog.pg_is_other_temp_schema(n.oid)
      AND n.nspname <> 'pg_catalog'::pg_catalog.name AND n.nspname <> 'information_schema'::pg_catalog.name;
COMMENT ON VIEW snowflake_migrate.columns IS 'Columns that take their values from a sequence';
COMMENT ON COLUMN snowflake_migrate.columns.schema_name IS 'Schema of the table';
COMMENT ON COLUMN snowflake_migrate.columns.table_name IS 'Table name. Partitions and child tables that use their parent''s sequence are not listed separately';
COMMENT ON COLUMN snowflake_migrate.columns.column_name IS 'Column name';
COMMENT ON COLUMN snowflake_migrate.columns.data_type IS 'Type of the column';
COMMENT ON COLUMN snowflake_migrate.columns.kind IS 'serial, identity always, identity by default, or default: a sequence that the column does not own';
COMMENT ON COLUMN snowflake_migrate.columns.sequence IS 'Sequence that the column uses';
COMMENT ON COLUMN snowflake_migrate.columns.last_value IS 'Last value of the sequence; NULL before the first one, or if the user may not read the sequence';
COMMENT ON COLUMN snowflake_migrate.columns.percent_used IS 'Percentage of the type''s range that last_value has reached';
COMMENT ON COLUMN snowflake_migrate.columns.referenced_by IS 'Columns that reference the column';

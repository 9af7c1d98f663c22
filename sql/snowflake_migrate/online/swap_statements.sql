-- The statements of the swap. They are executed by place, then depth, then text:
--   1 to 5  free the narrow columns and the names from what would keep them
--   6       drops the narrow columns, and with them their indexes, constraints and statistics objects
--   7 to 11 give the shadow columns and the counterparts the former names
--  12 to 17 restore what belonged to the dropped ones, from the defaults to the owners
-- kind and role are those of the command.
CREATE TYPE snowflake_migrate_internal.swap_statement AS (
    place integer, depth integer, kind text, relation regclass, text text, role oid
);

-- The shadow columns take the place of the narrow ones.
CREATE FUNCTION snowflake_migrate_internal.swap_column_statements(shadows snowflake_migrate_internal.shadow_column[])
RETURNS SETOF snowflake_migrate_internal.swap_statement LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.*, snowflake_migrate_internal.name_of(s.relation) AS quoted_name FROM unnest(shadows) AS s
    ), declared AS (
        -- These change partitions, too.
        SELECT s.* FROM shadow AS s WHERE s.relation = s.declared_by
    ), owned AS MATERIALIZED (
        -- Sequences that the columns own would be dropped with the columns.
        SELECT s.relation, s.quoted_name, s.narrow, snowflake_migrate_internal.name_of(d.objid::regclass) AS sequence
        FROM shadow AS s
        JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                           AND d.refobjid = s.relation AND d.refobjsubid = s.attribute AND d.deptype = 'a'
        JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S'
    ), statement (place, relation, text) AS (
        SELECT 2, o.relation, format('ALTER SEQUENCE %s OWNED BY NONE', o.sequence) FROM owned AS o
      UNION ALL
        SELECT 3, s.relation, format('DROP TRIGGER %I ON %s', s.trigger_name, s.quoted_name) FROM declared AS s
      UNION ALL
        -- The validated constraint makes a scan unnecessary.
        SELECT 4, s.relation, format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', s.quoted_name, s.shadow_name)
        FROM declared AS s WHERE s.is_required
      UNION ALL
        SELECT 5, s.relation, format('ALTER TABLE %s DROP CONSTRAINT %I', s.quoted_name, s.check_name) FROM declared AS s
      UNION ALL
        -- This drops its indexes, constraints and statistics objects too.
        SELECT 6, s.relation, format('ALTER TABLE %s DROP COLUMN %I', s.quoted_name, s.narrow) FROM declared AS s
      UNION ALL
        SELECT 7, s.relation, format('ALTER TABLE %s RENAME COLUMN %I TO %I', s.quoted_name, s.shadow_name, s.narrow) FROM declared AS s
      UNION ALL
        SELECT 13, o.relation, format('ALTER SEQUENCE %s OWNED BY %s.%I', o.sequence, o.quoted_name, o.narrow) FROM owned AS o
    )
    SELECT s.place, 0, 'plain', s.relation, s.text, NULL::oid FROM statement AS s
$function$;

-- The columns keep what belongs to them beside their values. Keys that get snowflake
-- IDs do not keep their defaults.
CREATE FUNCTION snowflake_migrate_internal.swap_property_statements(
    keys snowflake_migrate_internal.key[], keep_sequence boolean, shadows snowflake_migrate_internal.shadow_column[]
) RETURNS SETOF snowflake_migrate_internal.swap_statement LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.*, snowflake_migrate_internal.name_of(s.relation) AS quoted_name FROM unnest(shadows) AS s
    )
    -- The column's statistics settings, if they were changed in the meantime.
    -- After its parent, whose statement changes a partition, too.
    SELECT c.place, (s.relation <> s.declared_by)::integer, 'plain', s.relation,
           format('ALTER TABLE %s ALTER COLUMN %I %s', s.quoted_name, s.narrow, c.action), NULL::oid
    FROM shadow AS s
    JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attribute
    JOIN pg_attribute AS b ON b.attrelid = s.relation AND b.attnum = s.shadow
    CROSS JOIN LATERAL (
        SELECT snowflake_migrate_internal.column_options(a.attoptions) AS narrow,
               snowflake_migrate_internal.column_options(b.attoptions) AS shadow) AS options
    CROSS JOIN LATERAL (
        SELECT 12 AS place, format('SET STATISTICS %s', coalesce(a.attstattarget, -1)) AS action
        WHERE a.attstattarget IS DISTINCT FROM b.attstattarget
      UNION ALL
        SELECT 12, format('RESET (%s)', (SELECT string_agg(quote_ident(o.option_name), ', ') FROM pg_options_to_table(options.shadow) AS o))
        WHERE options.shadow IS NOT NULL AND options.narrow IS DISTINCT FROM options.shadow
      UNION ALL
        SELECT 13, format('SET (%s)', array_to_string(options.narrow, ', '))
        WHERE options.narrow IS NOT NULL AND options.narrow IS DISTINCT FROM options.shadow
    ) AS c
  UNION ALL
    SELECT 12, (s.relation <> s.declared_by)::integer, 'default', s.relation,
           format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', s.quoted_name, s.narrow, pg_get_expr(d.adbin, d.adrelid)), NULL
    FROM shadow AS s JOIN pg_attrdef AS d ON d.adrelid = s.relation AND d.adnum = s.attribute
    WHERE keep_sequence OR (s.declared_by, s.narrow) NOT IN (SELECT * FROM unnest(keys))
  UNION ALL
    -- A partition that was attached may have none.
    SELECT 13, 0, 'plain', s.relation, format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', s.quoted_name, s.narrow), NULL
    FROM shadow AS s
    WHERE s.relation <> s.declared_by AND (keep_sequence OR (s.declared_by, s.narrow) NOT IN (SELECT * FROM unnest(keys)))
      AND NOT EXISTS (SELECT FROM pg_attrdef AS d WHERE d.adrelid = s.relation AND d.adnum = s.attribute)
      AND EXISTS (SELECT FROM shadow AS p JOIN pg_attrdef AS d ON d.adrelid = p.relation AND d.adnum = p.attribute
                  WHERE p.relation = s.declared_by AND p.narrow = s.narrow)
  UNION ALL
    SELECT 15, g.depth, 'plain', s.relation,
           format('GRANT %s (%I) ON %s TO %s%s', g.privilege_type, s.narrow, s.quoted_name,
                  CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END,
                  CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END),
           g.role
    FROM shadow AS s
    JOIN pg_class AS c ON c.oid = s.relation
    JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attribute
    CROSS JOIN LATERAL snowflake_migrate_internal.grants(c.relowner, c.relnamespace, a.attacl) AS g
  UNION ALL
    SELECT 16, 0, 'plain', s.relation,
           format('COMMENT ON COLUMN %s.%I IS %L', s.quoted_name, s.narrow, col_description(s.relation, s.attribute)), NULL
    FROM shadow AS s WHERE col_description(s.relation, s.attribute) IS NOT NULL
  UNION ALL
    SELECT 16, 0, 'plain', s.relation,
           format('SECURITY LABEL FOR %I ON COLUMN %s.%I IS %L', l.provider, s.quoted_name, s.narrow, l.label), NULL
    FROM shadow AS s JOIN pg_seclabel AS l ON l.classoid = 'pg_class'::regclass AND l.objoid = s.relation AND l.objsubid = s.attribute
$function$;

-- The indexes of the shadow columns take the place of those of the narrow ones, also
-- as those of their constraints.
CREATE FUNCTION snowflake_migrate_internal.swap_index_statements(
    keys snowflake_migrate_internal.key[], shadows snowflake_migrate_internal.shadow_column[]
) RETURNS SETOF snowflake_migrate_internal.swap_statement LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH indexed AS MATERIALIZED (
        SELECT x.index, x.shadow, x.shadow_name, x.relation, snowflake_migrate_internal.name_of(x.relation) AS quoted_name,
               c.relname AS name, n.nspname AS schema, k.oid AS constraint_oid, k.contype,
               i.indisreplident, i.indisclustered, x.is_partitioned, x.level, x.is_attached,
               x.is_partitioned AND k.oid IS NOT NULL AS is_made_anew
        FROM snowflake_migrate_internal.shadow_indexes(keys) AS x
        JOIN pg_index AS i ON i.indexrelid = x.index
        JOIN pg_class AS c ON c.oid = x.index
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        LEFT JOIN pg_constraint AS k ON k.conindid = x.index AND k.conrelid = x.relation AND k.contype IN ('p', 'u')
    ), statement (place, depth, relation, text) AS (
        SELECT 8, 0, i.relation, format('ALTER INDEX %I.%I RENAME TO %I', i.schema, i.shadow_name, i.name)
        FROM indexed AS i WHERE NOT i.is_made_anew
      UNION ALL
        -- An index's columns have their own names, which do not follow the table's.
        -- For an index that does not exist yet, they follow from the shadow columns' names.
        SELECT 9, 0, i.relation, format('ALTER TABLE %I.%I RENAME COLUMN %I TO %I', i.schema, i.name, b.name, a.attname)
        FROM indexed AS i
        JOIN pg_index AS x ON x.indexrelid = i.index
        JOIN pg_attribute AS a ON a.attrelid = i.index AND a.attnum > 0
        CROSS JOIN LATERAL (
            SELECT m.attname AS name FROM pg_attribute AS m WHERE m.attrelid = i.shadow AND m.attnum = a.attnum
          UNION ALL
            SELECT s.shadow_name FROM unnest(shadows) AS s
            WHERE i.shadow IS NULL AND s.relation = i.relation
              AND CASE x.indkey[a.attnum - 1] WHEN 0 THEN s.narrow = a.attname ELSE s.attribute = x.indkey[a.attnum - 1] END) AS b
        -- Renaming that of a partitioned table's index renames those of the partitions.
        WHERE b.name <> a.attname AND NOT i.is_made_anew AND NOT i.is_attached
      UNION ALL
        SELECT 10, 0, i.relation, format('ALTER TABLE %s ADD CONSTRAINT %I %s USING INDEX %I', i.quoted_name, i.name,
                         CASE i.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END, i.name)
        FROM indexed AS i WHERE i.constraint_oid IS NOT NULL AND NOT i.is_partitioned
      UNION ALL
        -- After those of its partitions, which become its own.
        SELECT 10, 1000 - i.level, i.relation,
               format('ALTER TABLE %s ADD CONSTRAINT %I %s', i.quoted_name, i.name, pg_get_constraintdef(i.constraint_oid))
        FROM indexed AS i WHERE i.is_made_anew
      UNION ALL
        SELECT 14, 0, i.relation, format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', i.quoted_name, i.name) FROM indexed AS i
        -- By default, the primary key is the replica identity.
        WHERE i.indisreplident
      UNION ALL
        SELECT 14, 0, i.relation, format('ALTER TABLE %s CLUSTER ON %I', i.quoted_name, i.name) FROM indexed AS i WHERE i.indisclustered
      UNION ALL
        SELECT 14, 0, i.relation, format('ALTER INDEX %I.%I ALTER COLUMN %s SET STATISTICS %s', i.schema, i.name, a.attnum, a.attstattarget)
        FROM indexed AS i JOIN pg_attribute AS a ON a.attrelid = i.index AND a.attnum > 0 AND a.attstattarget >= 0
      UNION ALL
        SELECT 16, 0, i.relation, format('COMMENT ON INDEX %I.%I IS %L', i.schema, i.name, obj_description(i.index, 'pg_class'))
        FROM indexed AS i WHERE obj_description(i.index, 'pg_class') IS NOT NULL
      UNION ALL
        SELECT 16, 0, i.relation, format('COMMENT ON CONSTRAINT %I ON %s IS %L',
                                      i.name, i.quoted_name, obj_description(i.constraint_oid, 'pg_constraint'))
        FROM indexed AS i WHERE obj_description(i.constraint_oid, 'pg_constraint') IS NOT NULL
    )
    SELECT s.place, s.depth, 'plain', s.relation, s.text, NULL::oid FROM statement AS s
$function$;

-- The same for foreign keys and CHECK constraints. A foreign key would keep the index
-- that it references from being dropped.
CREATE FUNCTION snowflake_migrate_internal.swap_constraint_statements(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.swap_statement LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH swapped AS MATERIALIZED (
        SELECT f.foreign_key AS constraint_oid, f.name, f.shadow_name, f.relation,
               -- That of a partition goes with its parent's.
               CASE WHEN NOT f.is_inherited THEN 1 END AS drop_place
        FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS f
      UNION ALL
        SELECT k.check_constraint, k.name, k.shadow_name, k.relation, 5
        FROM snowflake_migrate_internal.shadow_checks(keys) AS k
    ), named AS MATERIALIZED (
        SELECT s.*, snowflake_migrate_internal.name_of(s.relation) AS quoted_name,
               obj_description(s.constraint_oid, 'pg_constraint') AS comment
        FROM swapped AS s
    )
    SELECT c.place, 0, 'plain', n.relation, c.text, NULL::oid
    FROM named AS n
    CROSS JOIN LATERAL (VALUES
        (n.drop_place, CASE WHEN n.drop_place > 0 THEN format('ALTER TABLE %s DROP CONSTRAINT %I', n.quoted_name, n.name) END),
        (11, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', n.quoted_name, n.shadow_name, n.name)),
        (16, CASE WHEN n.comment IS NOT NULL THEN format('COMMENT ON CONSTRAINT %I ON %s IS %L', n.name, n.quoted_name, n.comment) END)
    ) AS c (place, text)
    WHERE c.text IS NOT NULL
$function$;

-- The same for statistics objects.
CREATE FUNCTION snowflake_migrate_internal.swap_statistics_statements(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.swap_statement LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.place, 0, 'plain', x.relation, c.text, NULL::oid
    FROM snowflake_migrate_internal.shadow_statistics(keys) AS x
    JOIN pg_class AS r ON r.oid = x.relation
    LEFT JOIN pg_statistic_ext AS o ON o.oid = x.shadow
    CROSS JOIN LATERAL (SELECT obj_description(x.statistics, 'pg_statistic_ext') AS comment) AS d
    CROSS JOIN LATERAL (VALUES
        (11, format('ALTER STATISTICS %I.%I RENAME TO %I', x.schema, x.shadow_name, x.name)),
        (14, CASE WHEN o.oid IS NOT NULL AND coalesce(o.stxstattarget, -1) <> x.target
                  THEN format('ALTER STATISTICS %I.%I SET STATISTICS %s', x.schema, x.name, x.target) END),
        (16, CASE WHEN d.comment IS NOT NULL THEN format('COMMENT ON STATISTICS %I.%I IS %L', x.schema, x.name, d.comment) END),
        (17, CASE WHEN x.owner <> r.relowner
                  THEN format('ALTER STATISTICS %I.%I OWNER TO %I', x.schema, x.name, pg_get_userbyid(x.owner)) END)
    ) AS c (place, text)
    WHERE c.text IS NOT NULL
$function$;

-- Where new IDs come from after the swap: wider sequences, or snowflake_nextval() and
-- what has to be made anew for it.
CREATE FUNCTION snowflake_migrate_internal.swap_source_statements(keys snowflake_migrate_internal.key[], keep_sequence boolean)
RETURNS SETOF snowflake_migrate_internal.swap_statement LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT 14, 0, 'plain', n.relation, snowflake_migrate_internal.sequence_widening(n.sequence), NULL::oid
    FROM snowflake_migrate_internal.narrow_sequences(keys) AS n WHERE keep_sequence
  UNION ALL
    SELECT 12, 0, 'default', key.target,
           format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.snowflake_nextval()',
                  snowflake_migrate_internal.name_of(key.target), key.column_name, snowflake_migrate_internal.core_schema()), NULL
    FROM unnest(keys) AS key WHERE NOT keep_sequence
  UNION ALL
    SELECT 13, r.place::integer, r.kind, r.relation, r.sql, r.role
    FROM snowflake_migrate_internal.renewal_commands(keys) WITH ORDINALITY AS r (kind, relation, sql, columns, relations, role, place)
    WHERE NOT keep_sequence
$function$;

CREATE FUNCTION snowflake_migrate_internal.swap_commands(keys snowflake_migrate_internal.key[], keep_sequence boolean)
RETURNS SETOF snowflake_migrate_internal.command LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH given AS MATERIALIZED (
        SELECT ARRAY(SELECT s FROM snowflake_migrate_internal.shadows(keys) AS s) AS shadows
    ), statement AS (
        SELECT s.* FROM given AS g CROSS JOIN LATERAL snowflake_migrate_internal.swap_column_statements(g.shadows) AS s
      UNION ALL
        SELECT s.*
        FROM given AS g
        CROSS JOIN LATERAL snowflake_migrate_internal.swap_property_statements(keys, keep_sequence, g.shadows) AS s
      UNION ALL
        SELECT s.* FROM given AS g CROSS JOIN LATERAL snowflake_migrate_internal.swap_index_statements(keys, g.shadows) AS s
      UNION ALL
        SELECT s.* FROM snowflake_migrate_internal.swap_constraint_statements(keys) AS s
      UNION ALL
        SELECT s.* FROM snowflake_migrate_internal.swap_statistics_statements(keys) AS s
      UNION ALL
        SELECT s.* FROM snowflake_migrate_internal.swap_source_statements(keys, keep_sequence) AS s
    )
    SELECT snowflake_migrate_internal.command(s.kind, s.relation, s.text, role => s.role)
    FROM statement AS s
    ORDER BY s.place, s.depth, s.text
$function$;

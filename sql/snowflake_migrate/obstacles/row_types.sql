-- Objects that use the row type of a table whose columns are migrated.
--
-- ALTER COLUMN ... TYPE fails if rows of that type are stored in columns: of the
-- type, of its arrays, of domains, ranges and composite types over it. The minor
-- releases from 15.20, 16.16, 17.12 and 18.7 on also reject it if an expression
-- uses the type (CVE-2026-6460). They have the setting composite_type_mismatch,
-- which tells them from earlier ones.
--
-- An online migration changes no type, and none of them rejects its statements. It
-- replaces the column by another one at the end of the row. So stored rows, and
-- rows that are written down in expressions, would lose the column's value.

-- What refers to a type that contains rows of these tables: arrays, domains, ranges, composites.
CREATE FUNCTION snowflake_migrate_internal.row_type_references(relations regclass[])
RETURNS TABLE (relation regclass, type oid, class oid, object oid, subobject integer, times bigint) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE row_type (relation, oid) AS (
        SELECT c.oid::regclass, c.reltype FROM pg_class AS c WHERE c.oid = ANY (relations) AND c.reltype <> 0
      UNION
        SELECT t.relation, CASE d.classid WHEN 'pg_type'::regclass THEN d.objid ELSE c.reltype END
        FROM row_type AS t
        JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid
        LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind = 'c'
        WHERE d.classid = 'pg_type'::regclass OR c.reltype IS NOT NULL
    )
    SELECT t.relation, t.oid, d.classid, d.objid, d.objsubid, count(*)
    FROM row_type AS t
    JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid AND d.deptype = 'n'
    GROUP BY t.relation, t.oid, d.classid, d.objid, d.objsubid
$function$;

-- The columns that store rows, and the objects whose expressions use the type.
-- kind is 'column' or 'expression'; type is a type that contains the rows.
CREATE FUNCTION snowflake_migrate_internal.row_type_users(relations regclass[])
RETURNS TABLE (kind text, rank integer, relation regclass, type oid, class oid, object oid, description text, expression text, remedy text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH reference AS MATERIALIZED (
        SELECT r.*, pg_describe_object(r.class, r.object, 0) AS description,
               'Drop it, and create it again after the column is widened.' AS remedy
        FROM snowflake_migrate_internal.row_type_references(relations) AS r
    ), used (rank, relation, type, class, object, description, expression, remedy) AS (
        SELECT 1, r.relation, r.type, r.class, r.object,
               CASE w.rulename WHEN '_RETURN' THEN pg_describe_object('pg_class'::regclass, w.ev_class, 0) ELSE r.description END,
               w.ev_action::text || coalesce(w.ev_qual::text, ''),
               CASE w.rulename WHEN '_RETURN' THEN 'Drop it, and create it again after the column is widened: '
                   'pg_dump --schema-only shows its definition and privileges.' ELSE r.remedy END
        FROM reference AS r JOIN pg_rewrite AS w ON w.oid = r.object
        WHERE r.class = 'pg_rewrite'::regclass
      UNION ALL
        SELECT 2, r.relation, r.type, r.class, r.object, r.description, concat(p.polqual::text, p.polwithcheck::text), r.remedy
        FROM reference AS r JOIN pg_policy AS p ON p.oid = r.object WHERE r.class = 'pg_policy'::regclass
      UNION ALL
        -- A function depends on a type once for its arguments and its result,
        -- which are allowed, and once more for each of its expressions.
        SELECT 3, r.relation, r.type, r.class, r.object, r.description, concat(p.proargdefaults::text, p.prosqlbody::text),
               CASE WHEN p.prosqlbody IS NULL THEN 'Create it again without the default of its parameter until the column is widened.'
                    ELSE 'Drop it and create it again after the column is widened, '
                         'or give it a body in a string and no such default of a parameter.' END
        FROM reference AS r JOIN pg_proc AS p ON p.oid = r.object
        WHERE r.class = 'pg_proc'::regclass
          AND r.times > CASE WHEN r.type = p.prorettype OR r.type = ANY (p.proargtypes::oid[]) OR r.type = ANY (p.proallargtypes)
                             THEN 1 ELSE 0 END
      UNION ALL
        -- Partitions have copies of their parent's triggers, indexes and constraints.
        SELECT 4, r.relation, r.type, r.class, r.object, r.description, t.tgqual::text, r.remedy
        FROM reference AS r JOIN pg_trigger AS t ON t.oid = r.object AND t.tgparentid = 0
        WHERE r.class = 'pg_trigger'::regclass
      UNION ALL
        SELECT 5, r.relation, r.type, r.class, r.object,
               CASE WHEN k.contypid = 0 THEN r.description ELSE format('constraint %I of domain %s', k.conname, k.contypid::regtype) END,
               k.conbin::text, 'Drop it, and add it again after the column is widened.'
        FROM reference AS r JOIN pg_constraint AS k ON k.oid = r.object AND (k.conislocal OR k.contypid <> 0)
        WHERE r.class = 'pg_constraint'::regclass
      UNION ALL
        SELECT 6, r.relation, r.type, r.class, r.object, r.description, e.adbin::text,
               CASE WHEN a.attgenerated = ''
                    THEN format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT until the column is widened.', e.adrelid::regclass, a.attname)
                    ELSE 'Drop that column, and add it again after the column is widened.' END
        FROM reference AS r JOIN pg_attrdef AS e ON e.oid = r.object
        JOIN pg_attribute AS a ON a.attrelid = e.adrelid AND a.attnum = e.adnum
        WHERE r.class = 'pg_attrdef'::regclass
      UNION ALL
        SELECT 7, r.relation, r.type, r.class, r.object, r.description, concat(i.indexprs::text, i.indpred::text),
               CASE WHEN EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
                    THEN 'Drop its constraint, and add it again after the column is widened.' ELSE r.remedy END
        FROM reference AS r JOIN pg_index AS i ON i.indexrelid = r.object
        WHERE r.class = 'pg_class'::regclass AND NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid)
      UNION ALL
        SELECT 8, r.relation, r.type, r.class, r.object, format('the partition key of %s', p.partrelid::regclass), p.partexprs::text,
               'The partition key cannot be changed: copy the rows to a new table without it.'
        FROM reference AS r JOIN pg_partitioned_table AS p ON p.partrelid = r.object
        WHERE r.class = 'pg_class'::regclass AND r.subobject = 0
      UNION ALL
        SELECT 9, r.relation, r.type, r.class, r.object, r.description, x.stxexprs::text, r.remedy
        FROM reference AS r JOIN pg_statistic_ext AS x ON x.oid = r.object WHERE r.class = 'pg_statistic_ext'::regclass
      UNION ALL
        -- As a function, a domain may use the type as its base and in its default.
        SELECT 10, r.relation, r.type, r.class, r.object, format('the default of domain %s', y.oid::regtype), y.typdefaultbin::text,
               format('ALTER DOMAIN %s DROP DEFAULT until the column is widened.', y.oid::regtype)
        FROM reference AS r JOIN pg_type AS y ON y.oid = r.object AND y.typtype = 'd' AND y.typdefaultbin IS NOT NULL
        WHERE r.class = 'pg_type'::regclass AND r.times > CASE WHEN y.typbasetype = r.type THEN 1 ELSE 0 END
    )
    SELECT 'column', 0, r.relation, r.type, r.class, r.object, format('column %I of %s', a.attname, a.attrelid::regclass), NULL,
           'Give that column another type, or drop it, until the column is widened.'
    FROM reference AS r
    JOIN pg_class AS c ON c.oid = r.object AND c.relkind IN ('r', 'p', 'm', 'f')
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = r.subobject AND a.attnum > 0 AND NOT a.attisdropped
    WHERE r.class = 'pg_class'::regclass
  UNION ALL
    SELECT 'expression', u.* FROM used AS u
$function$;

-- What such an obstacle is to one of the two kinds of plan.
CREATE FUNCTION snowflake_migrate_internal.row_type_obstacles(relations regclass[], online boolean)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH server AS MATERIALIZED (
        SELECT current_setting('composite_type_mismatch', true) IS NOT NULL AS checks_expressions
    ), found AS (
        SELECT DISTINCT u.rank, u.relation, format('%s uses the row type of %s', u.description, u.relation) AS obstacle, u.remedy
        FROM server CROSS JOIN snowflake_migrate_internal.row_type_users(relations) AS u
        WHERE CASE WHEN u.kind = 'column'
                   -- Earlier minor releases do not look at foreign tables.
                   THEN server.checks_expressions OR online
                        OR NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = u.object AND c.relkind = 'f')
                   ELSE server.checks_expressions AND NOT online END
      UNION ALL
        -- ROW(...) and constants: their values are those of the columns in order.
        SELECT DISTINCT u.rank, u.relation, format('%s contains a row of the type of %s', u.description, u.relation), u.remedy
        FROM snowflake_migrate_internal.row_type_users(relations) AS u
        WHERE online AND u.kind = 'expression'
          AND u.expression ~ format(':row_typeid %1$s |:consttype %1$s [^{}]*:constisnull false', u.type)
    )
    SELECT f.relation, NULL::name, f.obstacle, f.remedy, '55000' FROM found AS f ORDER BY f.rank, f.obstacle
$function$;

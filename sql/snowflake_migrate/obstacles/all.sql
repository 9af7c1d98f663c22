-- Obstacles to a migration, reported before anything is changed. Each obstacle
-- has a remedy.

CREATE FUNCTION snowflake_migrate_internal.server_obstacles()
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT NULL::regclass, NULL::name, 'this server does not issue IDs: ' || o.reason,
           o.remedy, '55000'
    FROM snowflake_internal.get_status() AS s
    CROSS JOIN LATERAL (SELECT current_setting('server_version_num')::integer >= 170000) AS v (loads_later)
    CROSS JOIN LATERAL (VALUES
        (NOT s.preloaded AND NOT v.loads_later, 'snowflake is not in shared_preload_libraries',
         'Add it to shared_preload_libraries and restart the server.'),
        (s.node_id IS NULL AND (s.preloaded OR v.loads_later), 'snowflake.node_id is not set',
         CASE WHEN s.preloaded THEN 'Set it in postgresql.conf and restart the server.'
              ELSE 'A superuser sets it by ALTER SYSTEM SET snowflake.node_id = 0, and runs SELECT pg_reload_conf().' END)
    ) AS o (applies, reason, remedy)
    WHERE o.applies
  UNION ALL
    SELECT NULL, NULL, 'permission denied for function snowflake_nextval',
           format('GRANT EXECUTE ON FUNCTION %s to the roles that insert rows.', p.oid::regprocedure), '42501'
    FROM pg_proc AS p
    WHERE p.oid = snowflake_migrate_internal.nextval_function() AND NOT has_function_privilege(p.oid, 'EXECUTE')
$function$;

-- Obstacles of table ownership. ALTER TABLE requires the ownership of a table and
-- of its partitions. A superuser alters them with the rights of their owners.
CREATE FUNCTION snowflake_migrate_internal.owner_obstacles(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH root (relation, attname) AS (
        SELECT key.target, key.column_name FROM unnest(keys) AS key
      UNION
        SELECT r.relation, r.attname FROM snowflake_migrate_internal.linked_columns(keys) AS r WHERE r.is_narrow
    ), altered AS MATERIALIZED (
        SELECT DISTINCT c.oid::regclass AS relation, root.attname, c.relowner, c.relnamespace, r.oid::regclass AS root, r.relowner AS root_owner
        FROM root
        CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(root.relation, root.attname) AS f
        JOIN pg_class AS c ON c.oid = f.relation
        JOIN pg_class AS r ON r.oid = root.relation
    )
    SELECT a.relation, a.attname, format('must be owner of table %s', a.relation),
           format('Run it as a member of %I, or as a superuser.', pg_get_userbyid(a.relowner)), '42501'
    FROM altered AS a WHERE NOT pg_has_role(a.relowner, 'USAGE')
  UNION ALL
    -- What a partition has of its parent is altered by the parent's owner.
    SELECT a.relation, a.attname, format('%I, the owner of %s, must be owner of table %s', pg_get_userbyid(a.root_owner), a.root, a.relation),
           format('ALTER TABLE %s OWNER TO %I.', a.relation, pg_get_userbyid(a.root_owner)), '42501'
    FROM altered AS a WHERE NOT pg_has_role(a.root_owner, a.relowner, 'USAGE') AND pg_has_role(a.relowner, 'USAGE')
  UNION ALL
    SELECT a.relation, a.attname, format('permission denied for schema %I', n.nspname),
           format('GRANT USAGE ON SCHEMA %I to the owner of the tables in it.', n.nspname), '42501'
    FROM altered AS a JOIN pg_namespace AS n ON n.oid = a.relnamespace
    WHERE NOT (has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(a.relowner, n.oid, 'USAGE'))
  UNION ALL
    -- The new default is set with the owner's rights.
    SELECT a.relation, a.attname, format('permission denied for schema %I, which contains the extension', n.nspname),
           format('GRANT USAGE ON SCHEMA %I TO %I.', n.nspname, pg_get_userbyid(a.relowner)), '42501'
    FROM altered AS a
    JOIN pg_proc AS p ON p.oid = snowflake_migrate_internal.nextval_function()
    JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE (a.relation, a.attname) IN (SELECT k.target, k.column_name FROM unnest(keys) AS k)
      AND NOT has_schema_privilege(a.relowner, n.oid, 'USAGE')
$function$;

CREATE FUNCTION snowflake_migrate_internal.column_obstacles(target regclass, column_name name)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH target_column AS MATERIALIZED (
        SELECT c.oid::regclass AS relation, c.relforcerowsecurity, a.attname, a.attnum, a.attinhcount, a.attgenerated,
               a.atttypid, snowflake_migrate_internal.base_type(a.atttypid) AS base_type,
               format_type(a.atttypid, a.atttypmod) AS type_name
        FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = column_name
        WHERE c.oid = target
    )
    SELECT target, column_name, o.obstacle, o.remedy, '55000'
    FROM target_column AS m
    CROSS JOIN LATERAL (VALUES
        (1, m.attinhcount > 0, format('column %I of %s is inherited', m.attname, m.relation),
         'Migrate the table it is inherited from; its partitions and child tables follow.'),
        (2, m.attgenerated <> '', format('column %I of %s is generated from other columns', m.attname, m.relation),
         'A generated column cannot have a default.'),
        (3, m.relforcerowsecurity,
         format('row-level security is forced on the owner of %s, but the migration has to see every row', m.relation),
         format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY while it is migrated.', m.relation)),
        (4, m.base_type NOT IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype),
         format('column %I of %s is of type %s', m.attname, m.relation, m.type_name),
         'Snowflake IDs are bigint: only smallint, integer and bigint columns can be migrated.')
    ) AS o (place, applies, obstacle, remedy)
    WHERE o.applies
  UNION ALL
    SELECT target, column_name, format('column %I of %s is an identity column with its own sequence', a.attname, f.relation),
           format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY; it will get the default of its parent.', f.relation, a.attname), '55000'
    FROM snowflake_migrate_internal.table_tree(target, column_name) AS f
    JOIN pg_attribute AS a ON a.attrelid = f.relation AND a.attnum = f.attribute AND a.attidentity <> ''
    WHERE f.relation <> target
      AND EXISTS (SELECT FROM pg_depend AS d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = f.relation
                    AND d.refobjsubid = f.attribute AND d.classid = 'pg_class'::regclass AND d.deptype = 'i')
  UNION ALL
    SELECT target, column_name, format('%s depends on sequence %s', pg_describe_object(d.classid, d.objid, d.objsubid), s.oid::regclass),
           'Give it a sequence of its own, because DROP IDENTITY drops this one.', '55000'
    FROM target_column AS m
    JOIN pg_depend AS own ON own.refclassid = 'pg_class'::regclass AND own.refobjid = m.relation AND own.refobjsubid = m.attnum
                         AND own.classid = 'pg_class'::regclass AND own.deptype = 'i'
    JOIN pg_class AS s ON s.oid = own.objid AND s.relkind = 'S'
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.oid AND d.deptype = 'n'
$function$;

-- Obstacles to changing a column's type in the column and in its tables. ALTER TABLE also
-- changes partitions and child tables, so theirs are obstacles too.
CREATE FUNCTION snowflake_migrate_internal.type_obstacles(target regclass, column_name name)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH tree AS MATERIALIZED (
        SELECT f.relation, f.attribute, c.relkind, c.reloftype, a.atttypid, a.attinhcount,
               format_type(a.atttypid, a.atttypmod) AS type_name
        FROM snowflake_migrate_internal.table_tree(target, column_name) AS f
        JOIN pg_class AS c ON c.oid = f.relation
        JOIN pg_attribute AS a ON a.attrelid = f.relation AND a.attnum = f.attribute
    ), found (rank, obstacle, remedy) AS (
        SELECT o.rank, o.obstacle, o.remedy
        FROM tree AS f
        CROSS JOIN LATERAL (VALUES
            (1, EXISTS (SELECT FROM pg_type AS t WHERE t.oid = f.atttypid AND t.typtype = 'd'),
             format('column %I of %s is of the domain %s, which cannot hold a bigint', column_name, f.relation, f.type_name),
             'First give the column its base type (ALTER COLUMN ... TYPE), and add the domain''s checks as table constraints.'),
            (2, f.reloftype <> 0, format('%s is a typed table', f.relation),
             format('Make it an ordinary table first: ALTER TABLE %s NOT OF.', f.relation)),
            -- The table as a whole depends on the columns of its key, also on those in expressions.
            (3, EXISTS (SELECT FROM pg_partitioned_table AS p
                        JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = p.partrelid AND d.objsubid = f.attribute
                         AND d.refclassid = 'pg_class'::regclass AND d.refobjid = p.partrelid AND d.refobjsubid = 0 AND d.deptype = 'i'
                        WHERE p.partrelid = f.relation),
             format('column %I of %s is part of its partition key', column_name, f.relation),
             'The type of a partition key cannot be changed: copy the rows to a new table that is partitioned by a bigint.'),
            (4, f.relkind = 'f', format('%s is a foreign table', f.relation),
             'Its rows are on another server. Detach the table, and change the column on both servers.'),
            -- Most have one parent, which is in the tree.
            (5, f.relation <> target AND f.attinhcount > 1
                AND f.attinhcount > (SELECT count(*) FROM pg_inherits AS i JOIN tree AS p ON p.relation = i.inhparent
                                     WHERE i.inhrelid = f.relation),
             format('column %I of %s is inherited from several tables', column_name, f.relation),
             format('The types of its parents can only change together: ALTER TABLE %s NO INHERIT for all but one, '
                    'and INHERIT again afterwards.', f.relation))
        ) AS o (rank, applies, obstacle, remedy)
        WHERE o.applies
    )
    SELECT target, column_name, f.obstacle, f.remedy, '55000' FROM found AS f ORDER BY f.rank, f.obstacle
$function$;

-- Obstacles to it in what uses the column: generated columns, publications, indexes and
-- constraints.
CREATE FUNCTION snowflake_migrate_internal.type_user_obstacles(target regclass, column_name name)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH tree AS MATERIALIZED (
        SELECT f.relation, f.attribute FROM snowflake_migrate_internal.table_tree(target, column_name) AS f
    ), dependent AS MATERIALIZED (
        SELECT f.relation, d.classid, d.objid, d.objsubid
        FROM tree AS f
        JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.relation AND d.refobjsubid = f.attribute
    ), found (rank, obstacle, remedy) AS (
        SELECT DISTINCT 1, format('column %I of %s is generated from column %I', g.attname, g.attrelid::regclass, column_name),
               'Drop it, and add it again after the column is widened.'
        FROM dependent AS d
        JOIN pg_attribute AS g ON g.attrelid = d.relation AND g.attgenerated <> ''
        JOIN pg_attrdef AS e ON e.adrelid = g.attrelid AND e.adnum = g.attnum
        WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = e.oid
           OR d.classid = 'pg_class'::regclass AND d.objid = g.attrelid AND d.objsubid = g.attnum
      UNION ALL
        SELECT DISTINCT 2, format('publication %I has %s that uses column %I of %s', p.pubname,
                   CASE WHEN r.prqual IS NULL THEN 'a column list' WHEN r.prattrs IS NULL THEN 'a WHERE clause'
                        ELSE 'a WHERE clause or a column list' END,
                   column_name, d.relation),
               'Remove it (ALTER PUBLICATION ... SET TABLE), and add it again after the column is widened.'
        FROM dependent AS d
        JOIN pg_publication_rel AS r ON d.classid = 'pg_publication_rel'::regclass AND r.oid = d.objid
        JOIN pg_publication AS p ON p.oid = r.prpubid
      UNION ALL
        SELECT DISTINCT 3, format('index %s uses operator class %I, which does not support bigint', i.indexrelid::regclass, o.opcname),
               'Drop it, and create it with an operator class for bigint after the column is widened.'
        FROM tree AS f
        JOIN pg_index AS i ON i.indrelid = f.relation
        CROSS JOIN LATERAL unnest(i.indkey::smallint[], i.indclass::oid[]) AS k (attribute, opclass)
        JOIN pg_opclass AS o ON o.oid = k.opclass AND NOT o.opcdefault AND o.opcintype IN ('int2'::regtype, 'int4'::regtype)
        WHERE k.attribute = f.attribute
          AND NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid)
      UNION ALL
        -- PostgreSQL restores the replica identity of an index that it rebuilds,
        -- but not of one that belongs to a partitioned table's index.
        SELECT DISTINCT 4, format('the replica identity of partition %s is index %s with column %I, '
                                  'which loses that role when it is rebuilt',
                                  f.relation, i.indexrelid::regclass, column_name),
               format('ALTER TABLE %s REPLICA IDENTITY FULL, and USING INDEX after the column is widened.', f.relation)
        FROM tree AS f
        JOIN pg_index AS i ON i.indrelid = f.relation AND i.indisreplident
        JOIN pg_inherits AS h ON h.inhrelid = i.indexrelid
        WHERE f.attribute = ANY (i.indkey::smallint[])
      UNION ALL
        -- Tables have such constraints since PostgreSQL 18. When it rebuilds them,
        -- it does not find those that have another name.
        SELECT 5, format('not-null constraint %I of %s has another name in the parent %s', k.conname, f.relation, i.inhparent::regclass),
               format('Detach the table from its parent (NO INHERIT, or DETACH), ALTER TABLE %s RENAME CONSTRAINT %I TO %I, '
                      'and attach it again.',
                      f.relation, k.conname, above.conname)
        FROM tree AS f
        JOIN pg_inherits AS i ON i.inhrelid = f.relation
        JOIN tree AS parent ON parent.relation = i.inhparent
        JOIN pg_constraint AS k ON k.conrelid = f.relation AND k.contype = 'n'
                               AND k.conkey = ARRAY[f.attribute] AND k.conislocal AND k.coninhcount > 0
        JOIN pg_constraint AS above ON above.conrelid = parent.relation AND above.contype = 'n'
                                   AND above.conkey = ARRAY[parent.attribute]
        WHERE k.conname <> above.conname
    )
    SELECT target, column_name, f.obstacle, f.remedy, '55000' FROM found AS f ORDER BY f.rank, f.obstacle
$function$;

-- All obstacles that both kinds of plan have.
CREATE FUNCTION snowflake_migrate_internal.obstacles(
    keys snowflake_migrate_internal.key[], search_path text DEFAULT NULL, keep_sequence boolean DEFAULT false
) RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    found snowflake_migrate_internal.obstacle[];
BEGIN
    RETURN QUERY SELECT o.relation, o.column_name, o.obstacle,
                        o.remedy || CASE o.sqlstate_code WHEN '55000' THEN ' Keys are widened without it: keep_sequence => true.' ELSE '' END,
                        o.sqlstate_code
                 FROM snowflake_migrate_internal.server_obstacles() AS o WHERE NOT keep_sequence;
    found := ARRAY(SELECT o FROM snowflake_migrate_internal.owner_obstacles(keys) AS o);
    RETURN QUERY SELECT o.* FROM unnest(found) AS o;
    -- The other checks require the owner's privileges, because they read rows.
    keys := snowflake_migrate_internal.keys_without(keys, found);
    IF keys = '{}' THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM snowflake_internal.citus_tables() AS t) THEN
        RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.citus_obstacles(keys, keep_sequence) AS o;
    END IF;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.role_obstacles(keys) AS o WHERE NOT keep_sequence;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.hypertable_obstacles(keys) AS o WHERE NOT keep_sequence;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.sequence_obstacles(keys) AS o WHERE keep_sequence;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.foreign_key_obstacles(keys, search_path) AS o;
    found := ARRAY(
        SELECT o FROM unnest(keys) AS key
        CROSS JOIN LATERAL snowflake_migrate_internal.column_obstacles(key.target, key.column_name) AS o);
    RETURN QUERY SELECT o.* FROM unnest(found) AS o;
    RETURN QUERY
        SELECT o.*
        FROM unnest(snowflake_migrate_internal.keys_without(keys, found)) AS key
        CROSS JOIN LATERAL snowflake_migrate_internal.row_obstacles(key.target, key.column_name, search_path) AS o
        WHERE NOT keep_sequence;
    RETURN QUERY
        SELECT o.*
        FROM snowflake_migrate_internal.linked_columns(keys) AS r
        CROSS JOIN LATERAL (
            SELECT t.* FROM snowflake_migrate_internal.type_obstacles(r.relation, r.attname) AS t
          UNION ALL
            SELECT u.* FROM snowflake_migrate_internal.type_user_obstacles(r.relation, r.attname) AS u) AS o
        WHERE r.is_narrow;
    RETURN QUERY
        SELECT o.*
        FROM snowflake_migrate_internal.dependent_obstacles(ARRAY(
            SELECT DISTINCT (r.relation, r.attname)::snowflake_migrate_internal.key
            FROM snowflake_migrate_internal.columns_of_each(keys) AS r
            WHERE r.is_narrow)) AS o;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.rebuild_obstacles(keys) AS o;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.new_id_obstacles(keys, keep_sequence, search_path) AS o;
END
$function$;

-- Those of one of the two kinds of plan.
CREATE FUNCTION snowflake_migrate_internal.plan_obstacles(
    keys snowflake_migrate_internal.key[], online boolean, search_path text DEFAULT NULL, is_for_error boolean DEFAULT false
) RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.plan_kind_obstacles(keys, online, is_for_error) AS o;
    RETURN QUERY
        SELECT o.*
        FROM snowflake_migrate_internal.lock_needs(keys) AS n
        CROSS JOIN LATERAL snowflake_migrate_internal.lock_obstacles(n.relation, n.locks, format('rewriting %s', n.relation)) AS o
        WHERE NOT online;
    -- It calls them with the owner's privileges.
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.index_function_obstacles(
        snowflake_migrate_internal.keys_without(keys, ARRAY(SELECT o FROM snowflake_migrate_internal.owner_obstacles(keys) AS o)),
        online, search_path) AS o;
END
$function$;

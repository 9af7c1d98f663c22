-- Obstacles to the counterparts of what uses a narrow column: objects that cannot have
-- one, names that are taken, and privileges that are missing. Each function gets what
-- the obstacles of all keys have in common, so that it is read only once.

-- An expression of an index as that of its counterpart is compared: casts to bigint vanish there.
CREATE FUNCTION snowflake_migrate_internal.without_casts(expression text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog.regexp_replace(expression, '::(bigint|integer|smallint)|[() ]'::pg_catalog.text, ''::pg_catalog.text, 'g'::pg_catalog.text);

-- Indexes, constraints and statistics objects whose definition cannot be mapped to the
-- shadow columns, and indexes that a shadow column cannot have.
CREATE FUNCTION snowflake_migrate_internal.definition_obstacles(
    shadows snowflake_migrate_internal.shadow_column[], indexes snowflake_migrate_internal.shadow_index[],
    checks snowflake_migrate_internal.shadow_check[], statistics_objects snowflake_migrate_internal.shadow_statistic[]
) RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH whole_rows (relation, obstacle) AS (
        SELECT i.relation, format('index %s uses whole rows of %s', i.index, i.relation)
        FROM unnest(indexes) AS i WHERE i.definition IS NULL
      UNION ALL
        SELECT k.relation, format('check constraint %I of %s uses whole rows', k.name, k.relation)
        FROM unnest(checks) AS k WHERE k.definition IS NULL
      UNION ALL
        SELECT x.relation, format('statistics object %I.%I uses whole rows of %s', x.schema, x.name, x.relation)
        FROM unnest(statistics_objects) AS x WHERE x.definition IS NULL
    ), found (relation, obstacle, remedy) AS (
        SELECT w.relation, w.obstacle, 'They change with the columns: use the plan for a maintenance window (online => false).'
        FROM whole_rows AS w
      UNION ALL
        -- The index of the shadow column would refuse a duplicate at once, in statements
        -- that the constraint allows.
        SELECT DISTINCT m.relation, format('constraint %I of %s is DEFERRABLE', k.conname, m.relation),
               'Use the plan for a maintenance window (online => false), or drop the constraint for the migration.'
        FROM unnest(shadows) AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND m.attribute = ANY (k.conkey)
                               AND k.contype IN ('p', 'u') AND k.condeferrable
      UNION ALL
        SELECT DISTINCT i.relation, format('index %s is of %I as a bigint', i.index, m.narrow),
               'It would be one of the column itself. Drop it, or use the plan for a maintenance window (online => false).'
        FROM unnest(indexes) AS i
        JOIN unnest(shadows) AS m ON m.relation = i.relation
        JOIN pg_index AS x ON x.indexrelid = i.index
        CROSS JOIN LATERAL unnest(x.indkey::smallint[]) WITH ORDINALITY AS k (attribute, place)
        WHERE k.attribute = 0
          AND snowflake_migrate_internal.without_casts(pg_get_indexdef(i.index, k.place::integer, true)) = quote_ident(m.narrow)
      UNION ALL
        SELECT DISTINCT m.relation, format('the access method of index %s does not support bigint', x.indexrelid::regclass), 'Drop it.'
        FROM unnest(shadows) AS m
        JOIN pg_index AS x ON x.indrelid = m.relation AND x.indisvalid
        JOIN pg_class AS c ON c.oid = x.indexrelid
        CROSS JOIN LATERAL unnest(x.indkey::smallint[]) WITH ORDINALITY AS k (attribute, place)
        WHERE k.attribute = m.attribute AND k.place <= x.indnkeyatts
          AND NOT EXISTS (SELECT FROM pg_opclass AS o
                          WHERE o.opcmethod = c.relam AND o.opcintype = 'int8'::regtype AND o.opcdefault)
    )
    SELECT f.relation, NULL::name, f.obstacle, f.remedy, '55000' FROM found AS f
$function$;

-- Constraints that cannot be made of an existing index, or not twice, and statistics
-- objects of other roles.
CREATE FUNCTION snowflake_migrate_internal.constraint_obstacles(
    shadows snowflake_migrate_internal.shadow_column[], foreign_keys snowflake_migrate_internal.shadow_foreign_key[],
    statistics_objects snowflake_migrate_internal.shadow_statistic[]
) RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH found (relation, obstacle, remedy) AS (
        -- An exclusion constraint's expressions are in its index only.
        SELECT DISTINCT m.relation, format('exclusion constraint %I of %s uses column %I', k.conname, m.relation, m.narrow),
               'An existing index cannot become such a constraint: use the plan for a maintenance window (online => false).'
        FROM unnest(shadows) AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND k.contype = 'x'
        WHERE m.attribute = ANY (k.conkey)
           OR EXISTS (SELECT FROM pg_depend AS d
                      WHERE (d.classid = 'pg_constraint'::regclass AND d.objid = k.oid
                             OR d.classid = 'pg_class'::regclass AND d.objid = k.conindid)
                        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = m.relation AND d.refobjsubid = m.attribute)
      UNION ALL
        SELECT DISTINCT m.relation, format('constraint %I of %s is WITHOUT OVERLAPS or has a PERIOD', k.conname, k.conrelid::regclass),
               'An existing index cannot become such a constraint: use the plan for a maintenance window (online => false).'
        FROM pg_constraint AS k
        CROSS JOIN LATERAL (VALUES (k.conrelid, k.conkey), (k.confrelid, k.confkey)) AS side (relation, attributes)
        JOIN unnest(shadows) AS m ON m.relation = side.relation
        WHERE k.contype IN ('p', 'u', 'f')
          -- Only of these constraints, because a conversion of every one takes long.
          AND CASE WHEN m.attribute = ANY (side.attributes) THEN (to_jsonb(k) ->> 'conperiod')::boolean END
      UNION ALL
        SELECT DISTINCT side.relation, format('foreign key %I of %s sets a default', f.name, f.relation),
               'If there are two such foreign keys, only the first one to fire works: '
               'use the plan for a maintenance window (online => false).'
        FROM unnest(foreign_keys) AS f
        CROSS JOIN LATERAL unnest(ARRAY[f.relation, f.referenced]) AS side (relation)
        JOIN pg_constraint AS k ON k.oid = f.foreign_key AND 'd' IN (k.confdeltype, k.confupdtype)
      UNION ALL
        SELECT m.relation, format('not-null constraint %I of %s is not valid', k.conname, m.relation),
               format('ALTER TABLE %s VALIDATE CONSTRAINT %I.', m.relation, k.conname)
        FROM unnest(shadows) AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND k.contype = 'n' AND k.conkey = ARRAY[m.attribute] AND NOT k.convalidated
      UNION ALL
        SELECT x.relation, format('statistics object %I.%I of %s belongs to another role, %I',
                                  x.schema, x.name, x.relation, pg_get_userbyid(x.owner)),
               format('The owner of the table creates it again and gives it to that role, but is no member of it: '
                      'ALTER STATISTICS %I.%I OWNER TO %I.', x.schema, x.name, pg_get_userbyid(c.relowner))
        FROM unnest(statistics_objects) AS x
        JOIN pg_class AS c ON c.oid = x.relation
        WHERE x.owner <> c.relowner AND NOT snowflake_migrate_internal.may_become(c.relowner, x.owner)
    )
    SELECT f.relation, NULL::name, f.obstacle, f.remedy, '55000' FROM found AS f
$function$;

-- Indexes and foreign keys of partitions that would become those of another one of their parents: PostgreSQL takes the
-- first that fits, whatever its order, its options and its name.
CREATE FUNCTION snowflake_migrate_internal.adoption_obstacles(
    shadows snowflake_migrate_internal.shadow_column[], indexes snowflake_migrate_internal.shadow_index[],
    foreign_keys snowflake_migrate_internal.shadow_foreign_key[]
) RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH partition AS MATERIALIZED (
        SELECT c.oid, c.relispartition FROM pg_class AS c
        WHERE c.oid IN (SELECT m.relation FROM unnest(shadows) AS m) AND (c.relispartition OR c.relkind = 'p')
    ), indexed AS MATERIALIZED (
        SELECT i.relation, i.index, EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.index) AS is_inherited,
               concat_ws(' ', x.indisunique, x.indnullsnotdistinct, c.relam, x.indnkeyatts, x.indcollation, '|',
                         ARRAY(SELECT snowflake_migrate_internal.without_casts(pg_get_indexdef(i.index, k, true))
                               FROM generate_series(1, x.indnatts) AS k),
                         ARRAY(SELECT o.opcfamily FROM unnest(x.indclass::oid[]) WITH ORDINALITY AS u (oid, place)
                               JOIN pg_opclass AS o ON o.oid = u.oid ORDER BY u.place),
                         snowflake_migrate_internal.without_casts(pg_get_expr(x.indpred, x.indrelid))) AS form
        FROM unnest(indexes) AS i
        JOIN partition AS p ON p.oid = i.relation AND p.relispartition
        JOIN pg_index AS x ON x.indexrelid = i.index
        JOIN pg_class AS c ON c.oid = i.index
    ), found (relation, obstacle, remedy) AS (
        SELECT i.relation, format('indexes %s and %s of partition %s have the same columns', min(i.index::text), max(i.index::text), i.relation),
               'Drop one for the migration, or use the plan for a maintenance window (online => false).'
        FROM indexed AS i GROUP BY i.relation, i.form HAVING count(*) > 1 AND bool_or(i.is_inherited)
      UNION ALL
        SELECT f.relation, format('foreign keys %I and %I of partition %s are the same', min(f.name), max(f.name), f.relation),
               'Drop the one that is not of its parent.'
        FROM unnest(foreign_keys) AS f
        JOIN partition AS p ON p.oid = f.relation AND p.relispartition
        JOIN pg_constraint AS k ON k.oid = f.foreign_key
        GROUP BY f.relation, f.referenced, k.conkey, k.confkey, k.confdeltype, k.confupdtype, k.confmatchtype, k.condeferrable, k.condeferred
        HAVING bool_or(f.is_inherited) AND bool_or(NOT f.is_inherited)
      UNION ALL
        SELECT x.indrelid::regclass, format('index %s of %s lacks those of some partitions', x.indexrelid::regclass, x.indrelid::regclass),
               'ALTER INDEX ... ATTACH PARTITION, or drop it.'
        FROM partition AS p JOIN pg_index AS x ON x.indrelid = p.oid AND NOT x.indisvalid
        JOIN pg_class AS c ON c.oid = x.indexrelid AND c.relkind = 'I'
        WHERE EXISTS (SELECT FROM unnest(shadows) AS m WHERE m.relation = p.oid AND (
                          m.attribute = ANY (x.indkey::smallint[])
                          OR EXISTS (SELECT FROM pg_depend AS d
                                     WHERE d.classid = 'pg_class'::regclass AND d.objid = x.indexrelid
                                       AND d.refclassid = 'pg_class'::regclass AND d.refobjid = p.oid AND d.refobjsubid = m.attribute)))
    )
    SELECT f.relation, NULL::name, f.obstacle, f.remedy, '55000' FROM found AS f ORDER BY f.obstacle COLLATE "C"
$function$;

-- Objects that have the name of a counterpart.
CREATE FUNCTION snowflake_migrate_internal.taken_name_obstacles(
    indexes snowflake_migrate_internal.shadow_index[], checks snowflake_migrate_internal.shadow_check[],
    foreign_keys snowflake_migrate_internal.shadow_foreign_key[]
) RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH found (relation, obstacle) AS (
        SELECT i.relation, format('%s has a name that the migration needs', c.oid::regclass)
        FROM unnest(indexes) AS i
        JOIN pg_class AS c ON c.relname = i.shadow_name
                          AND c.relnamespace = (SELECT o.relnamespace FROM pg_class AS o WHERE o.oid = i.index)
        LEFT JOIN pg_index AS own ON own.indexrelid = c.oid AND own.indrelid = i.relation
        WHERE own.indexrelid IS NULL OR own.indisvalid AND NOT i.is_ready
      UNION ALL
        SELECT side.relation, format('constraint %I of %s has a name that the migration needs', k.conname, f.relation)
        FROM unnest(foreign_keys) AS f
        CROSS JOIN LATERAL unnest(ARRAY[f.relation, f.referenced]) AS side (relation)
        JOIN pg_constraint AS k ON k.conrelid = f.relation AND k.conname = f.shadow_name
        WHERE NOT f.is_ready AND (k.contype <> 'f' OR k.convalidated)
      UNION ALL
        SELECT f.relation, format('constraint %I of %s has a name that the migration needs', k.conname, f.relation)
        FROM unnest(checks) AS f
        JOIN pg_constraint AS k ON k.conrelid = f.relation AND k.conname = f.shadow_name
        WHERE k.contype <> 'c' OR NOT f.is_ready AND (k.convalidated OR NOT f.is_to_be_valid)
    )
    SELECT f.relation, NULL::name, f.obstacle, 'Rename or drop it.', '55000' FROM found AS f
$function$;

-- Privileges that the counterparts take, beyond those of an owner of the tables.
CREATE FUNCTION snowflake_migrate_internal.counterpart_privilege_obstacles(
    shadows snowflake_migrate_internal.shadow_column[], foreign_keys snowflake_migrate_internal.shadow_foreign_key[],
    statistics_objects snowflake_migrate_internal.shadow_statistic[]
) RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH found (relation, obstacle, remedy) AS (
        SELECT DISTINCT m.relation, format('permission denied for table %s, which column %I of %s references',
                                           f.referenced, m.narrow, m.relation),
               format('GRANT REFERENCES, UPDATE ON %s TO %I.', f.referenced, current_user)
        FROM unnest(shadows) AS m
        JOIN unnest(foreign_keys) AS f ON f.relation = m.relation
        WHERE NOT (has_table_privilege(f.referenced, 'REFERENCES') AND has_table_privilege(f.referenced, 'UPDATE, DELETE, TRUNCATE'))
      UNION ALL
        SELECT DISTINCT f.referenced, format('must be owner of table %s', f.relation),
               format('Its foreign key %I has to be created again: run it as a member of %I, or as a superuser.',
                      f.name, pg_get_userbyid(c.relowner))
        FROM unnest(foreign_keys) AS f
        JOIN pg_class AS c ON c.oid = f.relation AND NOT pg_has_role(c.relowner, 'USAGE')
        WHERE NOT EXISTS (SELECT FROM unnest(shadows) AS m WHERE m.relation = f.relation)
      UNION ALL
        -- Building and renaming an index requires CREATE; a rewrite does not.
        SELECT DISTINCT m.relation, format('permission denied for schema %I', n.nspname),
               format('GRANT CREATE ON SCHEMA %I TO %I.', n.nspname, r.rolname)
        FROM unnest(shadows) AS m
        JOIN pg_class AS c ON c.oid = m.relation
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        -- The role that runs the plan builds it, and the table's owner renames it.
        JOIN pg_roles AS r ON (r.rolname = current_user OR r.oid = c.relowner) AND NOT has_schema_privilege(r.oid, n.oid, 'CREATE')
      UNION ALL
        SELECT DISTINCT x.relation, format('permission denied for schema %I, which contains statistics object %I', x.schema, x.name),
               format('GRANT USAGE, CREATE ON SCHEMA %I TO %I.', x.schema, r.rolname)
        FROM unnest(statistics_objects) AS x
        JOIN pg_class AS c ON c.oid = x.relation
        JOIN pg_namespace AS n ON n.nspname = x.schema
        JOIN pg_roles AS r ON r.oid IN (c.relowner, x.owner)
        WHERE NOT has_schema_privilege(r.oid, n.oid, 'CREATE') OR NOT has_schema_privilege(c.relowner, n.oid, 'USAGE')
    )
    SELECT f.relation, NULL::name, f.obstacle, f.remedy, '42501' FROM found AS f
$function$;

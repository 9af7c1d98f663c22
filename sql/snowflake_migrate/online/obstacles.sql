-- Obstacles to an online migration, in addition to those of every migration.

-- Triggers and rules that an UPDATE of every row would fire.
CREATE FUNCTION snowflake_migrate_internal.update_obstacles(relation regclass)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    -- For every caller: the owner's code runs with that setting.
    SELECT relation, NULL::name, format('trigger %I of %s fires on each UPDATE, and would fire when rows are copied', t.trigger_name, relation),
           format('Restrict it to the columns it uses (UPDATE OF), or GRANT SET ON PARAMETER session_replication_role TO %I, so that it does not fire.',
                  CASE WHEN has_parameter_privilege(c.relowner, 'session_replication_role', 'SET') THEN current_user ELSE pg_get_userbyid(c.relowner) END),
           '42501'
    FROM snowflake_migrate_internal.update_triggers(relation) AS t
    JOIN pg_class AS c ON c.oid = relation
    WHERE t.enabled = 'O'
      AND NOT (has_parameter_privilege(c.relowner, 'session_replication_role', 'SET') AND has_parameter_privilege('session_replication_role', 'SET'))
  UNION ALL
    SELECT relation, NULL::name, format('trigger %I of %s fires on each UPDATE, also of replicated rows, and would fire when rows are copied', t.trigger_name, relation),
           format('ALTER TABLE %s ENABLE TRIGGER %I while it is migrated, or restrict it to the columns it uses (UPDATE OF).', relation, t.trigger_name),
           '55000'
    FROM snowflake_migrate_internal.update_triggers(relation) AS t
    WHERE t.enabled = 'A'
       OR t.enabled = 'R' AND EXISTS (SELECT FROM snowflake_migrate_internal.update_triggers(relation) AS u WHERE u.enabled = 'O')
  UNION ALL
    SELECT relation, NULL::name, format('rule %I of %s rewrites UPDATE', w.rulename, relation), 'Drop it, and create it again afterwards.', '55000'
    FROM pg_rewrite AS w WHERE w.ev_class = relation AND w.ev_type = '2' AND w.ev_enabled <> 'D'
$function$;

-- Obstacles to an online migration, and how to remove them.
CREATE FUNCTION snowflake_migrate_internal.online_obstacles(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH narrow_column AS MATERIALIZED (
        SELECT s.*, c.relkind, c.relispartition, c.relpersistence, c.relforcerowsecurity, c.relreplident, c.relnamespace, c.relname,
               c.relowner, a.attidentity
        FROM snowflake_migrate_internal.shadows(keys) AS s
        JOIN pg_class AS c ON c.oid = s.relation
        JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attribute
    ), shadow_index AS MATERIALIZED (
        SELECT i.* FROM snowflake_migrate_internal.shadow_indexes(keys) AS i
    ), shadow_check AS MATERIALIZED (
        SELECT k.* FROM snowflake_migrate_internal.shadow_checks(keys) AS k
    ), shadow_statistic AS MATERIALIZED (
        SELECT x.* FROM snowflake_migrate_internal.shadow_statistics(keys) AS x
    ), shadow_foreign_key AS MATERIALIZED (
        SELECT f.* FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS f
    ), indexed AS MATERIALIZED (
        SELECT DISTINCT m.relation, m.narrow, m.attribute, i.indexrelid, i.indkey, i.indpred
        FROM narrow_column AS m
        JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                           AND d.refobjid = m.relation AND d.refobjsubid = m.attribute
        JOIN pg_index AS i ON i.indexrelid = d.objid AND i.indrelid = m.relation AND i.indisvalid
      UNION
        -- Indexes of constraints depend on the constraint.
        SELECT m.relation, m.narrow, m.attribute, i.indexrelid, i.indkey, i.indpred
        FROM narrow_column AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND m.attribute = ANY (k.conkey) AND k.contype IN ('p', 'u', 'x')
        JOIN pg_index AS i ON i.indexrelid = k.conindid
    ), dependent AS MATERIALIZED (
        SELECT d.* FROM snowflake_migrate_internal.dependents(ARRAY(SELECT (m.relation, m.narrow)::snowflake_migrate_internal.key FROM narrow_column AS m)) AS d
    ), defined AS MATERIALIZED (
        SELECT d.identity, w.oid AS rule, CASE d.kind WHEN 'rule' THEN pg_get_ruledef(w.oid) ELSE pg_get_viewdef(w.ev_class) END AS definition
        FROM dependent AS d
        JOIN pg_rewrite AS w ON CASE d.kind WHEN 'rule' THEN w.oid = d.object ELSE w.ev_class = d.object AND w.rulename = '_RETURN' END
        WHERE d.kind IN ('view', 'materialized view', 'rule')
    ), found (rank, relation, obstacle, remedy, code) AS (
        SELECT DISTINCT 1, m.relation, format('%s is %s', m.relation, CASE WHEN m.relkind = 'p' THEN 'a partitioned table' ELSE 'a partition' END),
               'PostgreSQL can neither build indexes of partitioned tables concurrently nor turn an existing index into their primary key: use the plan for a maintenance window (online => false).', '55000'
        FROM narrow_column AS m WHERE m.relkind = 'p' OR m.relispartition
      UNION ALL
        SELECT DISTINCT 1, f.referenced, format('partitioned table %s references the key', f.relation),
               'A foreign key of a partitioned table cannot be added NOT VALID: use the plan for a maintenance window (online => false).', '55000'
        FROM shadow_foreign_key AS f
        JOIN pg_class AS c ON c.oid = f.relation AND c.relkind = 'p'
        WHERE NOT EXISTS (SELECT FROM narrow_column AS m WHERE m.relation = f.relation)
      UNION ALL
        SELECT DISTINCT 2, m.relation, format('%s has inheritance children or parents', m.relation),
               'Their columns can only be replaced together: use the plan for a maintenance window (online => false).', '55000'
        FROM narrow_column AS m
        WHERE m.relkind <> 'p' AND NOT m.relispartition
          AND EXISTS (SELECT FROM pg_inherits AS i WHERE m.relation IN (i.inhparent, i.inhrelid))
      UNION ALL
        SELECT DISTINCT 3, m.relation, format('%s is a temporary table', m.relation),
               'No other session uses it: use the plan for a maintenance window (online => false).', '55000'
        FROM narrow_column AS m WHERE m.relpersistence = 't'
      UNION ALL
        SELECT 4, m.relation, format('column %I of %s is an identity column that references another one', m.narrow, m.relation),
               'The identity sequence cannot be moved to another column: ALTER COLUMN ... DROP IDENTITY, or use the plan for a maintenance window (online => false).', '55000'
        FROM narrow_column AS m WHERE m.attidentity <> '' AND (m.relation, m.narrow) NOT IN (SELECT * FROM unnest(keys))
      UNION ALL
        SELECT 5, m.relation, format('row-level security is forced on the owner of %s, but the migration has to see every row', m.relation),
               format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY while it is migrated.', m.relation), '55000'
        FROM narrow_column AS m WHERE m.relforcerowsecurity AND m.relation NOT IN (SELECT k.target FROM unnest(keys) AS k)
      UNION ALL
        SELECT 6, i.relation, format('index %s uses whole rows of %s', i.index, i.relation),
               'They change with the columns: use the plan for a maintenance window (online => false).', '55000'
        FROM shadow_index AS i
        WHERE i.definition IS NULL
      UNION ALL
        SELECT 6, k.relation, format('check constraint %I of %s uses whole rows', k.name, k.relation),
               'They change with the columns: use the plan for a maintenance window (online => false).', '55000'
        FROM shadow_check AS k
        WHERE k.definition IS NULL
      UNION ALL
        SELECT 6, x.relation, format('statistics object %I.%I uses whole rows of %s', x.schema, x.name, x.relation),
               'They change with the columns: use the plan for a maintenance window (online => false).', '55000'
        FROM shadow_statistic AS x
        WHERE x.definition IS NULL
      UNION ALL
        -- The index of the shadow column would refuse a duplicate at once, in statements
        -- that the constraint allows.
        SELECT DISTINCT 6, m.relation, format('constraint %I of %s is DEFERRABLE', k.conname, m.relation),
               'Use the plan for a maintenance window (online => false), or drop the constraint for the migration.', '55000'
        FROM narrow_column AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND m.attribute = ANY (k.conkey) AND k.contype IN ('p', 'u') AND k.condeferrable
      UNION ALL
        SELECT DISTINCT 6, i.relation, format('the access method of index %s does not support bigint', i.indexrelid::regclass),
               'Drop it.', '55000'
        FROM indexed AS i
        JOIN pg_index AS x ON x.indexrelid = i.indexrelid
        JOIN pg_class AS c ON c.oid = i.indexrelid
        CROSS JOIN LATERAL unnest(x.indkey::smallint[]) WITH ORDINALITY AS k (attribute, place)
        WHERE k.attribute = i.attribute AND k.place <= x.indnkeyatts
          AND NOT EXISTS (SELECT FROM pg_opclass AS o
                          WHERE o.opcmethod = c.relam AND o.opcintype = 'int8'::regtype AND o.opcdefault)
      UNION ALL
        -- An exclusion constraint's expressions are in its index only.
        SELECT DISTINCT 7, m.relation, format('exclusion constraint %I of %s uses column %I', k.conname, m.relation, m.narrow),
               'An existing index cannot become such a constraint: use the plan for a maintenance window (online => false).', '55000'
        FROM narrow_column AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND k.contype = 'x'
        WHERE m.attribute = ANY (k.conkey)
           OR EXISTS (SELECT FROM pg_depend AS d
                      WHERE d.classid = 'pg_constraint'::regclass AND d.objid = k.oid
                        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = m.relation AND d.refobjsubid = m.attribute
                         OR d.classid = 'pg_class'::regclass AND d.objid = k.conindid
                        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = m.relation AND d.refobjsubid = m.attribute)
      UNION ALL
        SELECT DISTINCT 7, m.relation, format('constraint %I of %s is WITHOUT OVERLAPS or has a PERIOD', k.conname, k.conrelid::regclass),
               'An existing index cannot become such a constraint: use the plan for a maintenance window (online => false).', '55000'
        FROM pg_constraint AS k
        CROSS JOIN LATERAL (VALUES (k.conrelid, k.conkey), (k.confrelid, k.confkey)) AS side (relation, attributes)
        JOIN narrow_column AS m ON m.relation = side.relation
        WHERE k.contype IN ('p', 'u', 'f')
          -- Only of these constraints, because a conversion of every one takes long.
          AND CASE WHEN m.attribute = ANY (side.attributes) THEN (to_jsonb(k) ->> 'conperiod')::boolean END
      UNION ALL
        SELECT DISTINCT 7, side.relation, format('foreign key %I of %s sets a default', f.name, f.relation),
               'If there are two such foreign keys, only the first one to fire works: use the plan for a maintenance window (online => false).', '55000'
        FROM shadow_foreign_key AS f
        CROSS JOIN LATERAL unnest(ARRAY[f.relation, f.referenced]) AS side (relation)
        JOIN pg_constraint AS k ON k.oid = f.foreign_key AND 'd' IN (k.confdeltype, k.confupdtype)
      UNION ALL
        SELECT 8, m.relation, format('not-null constraint %I of %s is not valid', k.conname, m.relation),
               format('ALTER TABLE %s VALIDATE CONSTRAINT %I.', m.relation, k.conname), '55000'
        FROM narrow_column AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND k.contype = 'n' AND k.conkey = ARRAY[m.attribute] AND NOT k.convalidated
      UNION ALL
        SELECT 9, x.relation, format('statistics object %I.%I of %s belongs to another role, %I', x.schema, x.name, x.relation, pg_get_userbyid(x.owner)),
               format('The owner of the table creates it again and gives it to that role, but is no member of it: ALTER STATISTICS %I.%I OWNER TO %I.',
                      x.schema, x.name, pg_get_userbyid(c.relowner)), '55000'
        FROM shadow_statistic AS x
        JOIN pg_class AS c ON c.oid = x.relation
        WHERE x.owner <> c.relowner AND NOT snowflake_migrate_internal.may_become(c.relowner, x.owner)
      UNION ALL
        SELECT DISTINCT 10, m.relation, format('trigger %I of %s fires after the one that keeps the new column up to date', t.tgname, m.relation),
               'Triggers fire in the order of their names: rename it.', '55000'
        FROM narrow_column AS m
        JOIN pg_trigger AS t ON t.tgrelid = m.relation AND NOT t.tgisinternal AND t.tgname > m.trigger_name
                            AND t.tgfoid <> 'snowflake_migrate_internal.shadow()'::regprocedure
        -- BEFORE, each row, INSERT or UPDATE.
        WHERE t.tgtype & 3 = 3 AND t.tgtype & (4 | 16) <> 0
      UNION ALL
        SELECT DISTINCT 11, m.relation, format('%s is published, and its replica identity is FULL', m.relation),
               'Subscribers could not find rows while the column exists only on their side: give the table another replica identity while it is migrated.', '55000'
        FROM narrow_column AS m
        WHERE m.relreplident = 'f' AND snowflake_migrate_internal.publications(m.relation, m.narrow) IS NOT NULL
      UNION ALL
        SELECT DISTINCT 12, m.relation, format('%s is the target of a subscription, and has neither a primary key nor an index as its replica identity', m.relation),
               'Subscriptions find its rows by all columns, and the publisher does not have the new one: give the table a primary key.', '55000'
        FROM narrow_column AS m
        WHERE EXISTS (SELECT FROM pg_subscription_rel AS r WHERE r.srrelid = m.relation)
          AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = m.relation AND (i.indisprimary OR i.indisreplident))
      UNION ALL
        SELECT DISTINCT 13, m.relation, format('another column of %s is being migrated', m.relation),
               'Finish that migration first, or cancel it with snowflake_migrate.revert().', '55000'
        FROM narrow_column AS m
        JOIN pg_trigger AS t ON t.tgrelid = m.relation AND t.tgfoid = 'snowflake_migrate_internal.shadow()'::regprocedure
        WHERE NOT EXISTS (SELECT FROM narrow_column AS own WHERE own.relation = t.tgrelid AND own.trigger_name = t.tgname)
      UNION ALL
        -- Only migrations use such names. Objects may have been left behind or changed by hand.
        SELECT 14, m.relation, format('the trigger that copies column %3$I of %2$s to column %1$I has been changed', m.shadow_name, m.relation, m.narrow),
               CASE WHEN num_nonnulls(m.shadow, m.trigger_oid, m.check_oid) = 3
                    -- The constraint has rejected wrong values in the meantime.
                    THEN format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I.', m.relation, m.trigger_name)
                    ELSE 'Cancel the migration with snowflake_migrate.revert(), drop the remaining objects of these names, and start again.' END, '55000'
        FROM narrow_column AS m
        WHERE NOT m.is_kept
          AND (EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = m.relation AND a.attname = m.shadow_name)
               OR EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = m.relation AND t.tgname = m.trigger_name)
               OR EXISTS (SELECT FROM pg_constraint AS k WHERE k.conrelid = m.relation AND k.conname = m.check_name))
      UNION ALL
        SELECT 14, m.relation, format('the NOT NULL property of column %I of %s has changed since its migration began', m.narrow, m.relation),
               'Cancel the migration with snowflake_migrate.revert(), and start again.', '55000'
        FROM narrow_column AS m
        WHERE m.check_oid IS NOT NULL AND (pg_get_constraintdef(m.check_oid) ~ 'IS NOT NULL') <> m.is_required
      UNION ALL
        -- PostgreSQL writes a list of all columns there, in the order of the table.
        SELECT DISTINCT 14, m.relation, format('%s gives the columns of %s other names', d.identity, m.relation),
               'The order of the columns changes: use the plan for a maintenance window (online => false), or use the names of the table.', '55000'
        FROM narrow_column AS m
        JOIN pg_depend AS p ON p.classid = 'pg_rewrite'::regclass AND p.refclassid = 'pg_class'::regclass AND p.refobjid = m.relation
        JOIN defined AS d ON d.rule = p.objid
        WHERE d.definition ~ (regexp_replace(snowflake_migrate_internal.name_of(m.relation), '([^[:alnum:]_])', E'\\\\\\1', 'g')
                              || E'( ([[:alnum:]_]+|"([^"]|"")+"))?\\(')
      UNION ALL
        SELECT 15, i.relation, format('%s has a name that the migration needs', c.oid::regclass), 'Rename or drop it.', '55000'
        FROM shadow_index AS i
        JOIN pg_class AS c ON c.relname = i.shadow_name
                          AND c.relnamespace = (SELECT o.relnamespace FROM pg_class AS o WHERE o.oid = i.index)
        LEFT JOIN pg_index AS own ON own.indexrelid = c.oid AND own.indrelid = i.relation
        WHERE own.indexrelid IS NULL OR own.indisvalid AND NOT i.is_ready
      UNION ALL
        SELECT 15, side.relation, format('constraint %I of %s has a name that the migration needs', k.conname, f.relation), 'Rename or drop it.', '55000'
        FROM shadow_foreign_key AS f
        CROSS JOIN LATERAL unnest(ARRAY[f.relation, f.referenced]) AS side (relation)
        JOIN pg_constraint AS k ON k.conrelid = f.relation AND k.conname = f.shadow_name
        WHERE NOT f.is_ready AND (k.contype <> 'f' OR k.convalidated)
      UNION ALL
        SELECT 15, f.relation, format('constraint %I of %s has a name that the migration needs', k.conname, f.relation), 'Rename or drop it.', '55000'
        FROM shadow_check AS f
        JOIN pg_constraint AS k ON k.conrelid = f.relation AND k.conname = f.shadow_name
        WHERE k.contype <> 'c' OR NOT f.is_ready AND (k.convalidated OR NOT f.is_to_be_valid)
      UNION ALL
        SELECT DISTINCT 16, m.relation, format('permission denied for table %s, which column %I of %s references', f.referenced, m.narrow, m.relation),
               format('GRANT REFERENCES, UPDATE ON %s TO %I.', f.referenced, current_user), '42501'
        FROM narrow_column AS m
        JOIN shadow_foreign_key AS f ON f.relation = m.relation
        WHERE NOT (has_table_privilege(f.referenced, 'REFERENCES') AND has_table_privilege(f.referenced, 'UPDATE, DELETE, TRUNCATE'))
      UNION ALL
        SELECT DISTINCT 16, f.referenced, format('must be owner of table %s', f.relation),
               format('Its foreign key %I has to be created again: run it as a member of %I, or as a superuser.', f.name, pg_get_userbyid(c.relowner)), '42501'
        FROM shadow_foreign_key AS f
        JOIN pg_class AS c ON c.oid = f.relation AND NOT pg_has_role(c.relowner, 'USAGE')
        WHERE NOT EXISTS (SELECT FROM narrow_column AS m WHERE m.relation = f.relation)
      UNION ALL
        -- Building and renaming an index requires CREATE; a rewrite does not.
        SELECT DISTINCT 17, m.relation, format('permission denied for schema %I', n.nspname),
               format('GRANT CREATE ON SCHEMA %I TO %I.', n.nspname, r.rolname), '42501'
        FROM narrow_column AS m
        JOIN pg_namespace AS n ON n.oid = m.relnamespace
        -- The role that runs the plan builds it, and the table's owner renames it.
        JOIN pg_roles AS r ON (r.rolname = current_user OR r.oid = m.relowner) AND NOT has_schema_privilege(r.oid, n.oid, 'CREATE')
      UNION ALL
        SELECT DISTINCT 17, x.relation, format('permission denied for schema %I, which contains statistics object %I', x.schema, x.name),
               format('GRANT USAGE, CREATE ON SCHEMA %I TO %I.', x.schema, r.rolname), '42501'
        FROM shadow_statistic AS x
        JOIN pg_class AS c ON c.oid = x.relation
        JOIN pg_namespace AS n ON n.nspname = x.schema
        JOIN pg_roles AS r ON r.oid IN (c.relowner, x.owner)
        WHERE NOT has_schema_privilege(r.oid, n.oid, 'CREATE') OR NOT has_schema_privilege(c.relowner, n.oid, 'USAGE')
    )
    SELECT f.relation, NULL::name, f.obstacle, f.remedy, f.code FROM found AS f
  UNION ALL
    SELECT o.*
    FROM (SELECT DISTINCT m.relation FROM narrow_column AS m) AS r
    CROSS JOIN LATERAL snowflake_migrate_internal.update_obstacles(r.relation) AS o
  UNION ALL
    -- One without data is created again in a moment.
    SELECT t.relation, NULL, format('%s has data, and would have to be filled again while its tables are locked', d.identity),
           format('REFRESH MATERIALIZED VIEW %s WITH NO DATA until the swap is done, then REFRESH it, or use the plan for a maintenance window (online => false).',
                  snowflake_migrate_internal.name_of(d.relation)), '55000'
    FROM dependent AS d
    JOIN pg_class AS c ON c.oid = d.object AND c.relispopulated
    JOIN snowflake_migrate_internal.dependent_tables(ARRAY(SELECT (m.relation, m.narrow)::snowflake_migrate_internal.key FROM narrow_column AS m)) AS t
        ON (t.class, t.object) = (d.class, d.object)
    WHERE d.kind = 'materialized view'
$function$;

-- Obstacles to one of the two kinds of plan.
CREATE FUNCTION snowflake_migrate_internal.plan_kind_obstacles(keys snowflake_migrate_internal.key[], online boolean)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF online THEN
        RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.online_obstacles(keys) AS o;
    ELSE
        RETURN QUERY
            SELECT s.relation, s.narrow, format('column %I of %s is being migrated online', s.narrow, s.relation),
                   'Request the rest of that plan (online => true), or cancel it with snowflake_migrate.revert().', '55000'
            FROM snowflake_migrate_internal.shadows(keys) AS s
            WHERE s.trigger_oid IS NOT NULL;
    END IF;
    RETURN QUERY
        SELECT o.*
        FROM snowflake_migrate_internal.row_type_obstacles(ARRAY(
            SELECT DISTINCT f.relation
            FROM snowflake_migrate_internal.linked_columns(keys) AS r
            JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
            CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(r.relation, a.attname) AS f
            WHERE r.is_narrow), online) AS o;
END
$function$;

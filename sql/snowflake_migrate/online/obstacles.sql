-- Obstacles to an online migration, in addition to those of every migration.

-- Triggers and rules that an UPDATE of every row would fire: each trigger by itself, or for an
-- error those of all tables in one sentence.
CREATE FUNCTION snowflake_migrate_internal.update_obstacles(relations regclass[], is_for_error boolean DEFAULT false)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH as_replica (relation) AS MATERIALIZED (
        SELECT snowflake_migrate_internal.copied_as_replica(relations)
    ), fired AS MATERIALIZED (
        SELECT t.*, bool_or(t.enabled = 'O') OVER (PARTITION BY t.relation) AS sets_role
        FROM snowflake_migrate_internal.update_triggers(ARRAY(SELECT a.relation FROM as_replica AS a)) AS t
    ), always AS MATERIALIZED (
        SELECT array_agg(DISTINCT t.relation) AS relations,
               array_agg(format('%I of %s', t.trigger_name, t.relation) ORDER BY t.relation::text, t.trigger_name) AS names,
               min(format('ALTER TABLE %s ENABLE TRIGGER %I', t.relation, t.trigger_name)) AS first_statement
        FROM fired AS t
        WHERE t.enabled = 'A' OR t.enabled = 'R' AND t.sets_role
        GROUP BY CASE WHEN NOT is_for_error THEN ROW(t.relation::oid, t.trigger_name::text) END
    )
    SELECT o.*
    FROM snowflake_migrate_internal.guard_obstacles(ARRAY(
        SELECT unnest(relations) EXCEPT SELECT a.relation FROM as_replica AS a), is_for_error) AS o
  UNION ALL
    SELECT u.relation, NULL::name,
           format(CASE cardinality(t.names)
                      WHEN 1 THEN 'trigger %s fires on each UPDATE, also of replicated rows, and would fire when rows are copied'
                      ELSE 'triggers %s fire on each UPDATE, also of replicated rows, and would fire when rows are copied' END,
                  snowflake_migrate_internal.some_names(t.names)),
           CASE cardinality(t.names)
               WHEN 1 THEN t.first_statement || ' while it is migrated, or restrict it to the columns it uses (UPDATE OF).'
               ELSE 'Enable them as usual while their tables are migrated (ALTER TABLE ... ENABLE TRIGGER), '
                    'or restrict them to the columns they use (UPDATE OF).' END,
           '55000'
    FROM always AS t CROSS JOIN LATERAL unnest(t.relations) AS u (relation)
  UNION ALL
    SELECT w.ev_class, NULL::name, format('rule %I of %s rewrites UPDATE', w.rulename, w.ev_class::regclass),
           'Drop it, and create it again afterwards.', '55000'
    FROM pg_rewrite AS w WHERE w.ev_class = ANY (relations) AND w.ev_type = '2' AND w.ev_enabled <> 'D'
$function$;

-- Tables, and identity columns, that only the plan for a maintenance window can change.
CREATE FUNCTION snowflake_migrate_internal.online_table_obstacles(
    keys snowflake_migrate_internal.key[], shadows snowflake_migrate_internal.shadow_column[],
    foreign_keys snowflake_migrate_internal.shadow_foreign_key[]
) RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH narrow_column AS MATERIALIZED (
        SELECT m.relation, m.narrow, m.is_required, m.declared_by, c.relkind, c.relispartition, c.relpersistence, c.relforcerowsecurity,
               a.attidentity
        FROM unnest(shadows) AS m
        JOIN pg_class AS c ON c.oid = m.relation
        JOIN pg_attribute AS a ON a.attrelid = m.relation AND a.attnum = m.attribute
    ), found (relation, obstacle, remedy) AS (
        SELECT DISTINCT f.referenced, format('foreign key %I of %s references a partitioned table', f.name, f.relation),
               'The primary key of a partitioned table cannot be made of an existing index: '
               'use the plan for a maintenance window (online => false).'
        FROM unnest(foreign_keys) AS f
        JOIN narrow_column AS m ON m.relation = f.referenced AND m.relkind = 'p'
      UNION ALL
        SELECT DISTINCT t.relation, format('%s is partitioned', t.relation),
               'A script does not copy partitions: make it for a maintenance window (online => false).'
        FROM (SELECT m.relation FROM narrow_column AS m WHERE m.relkind = 'p'
            UNION ALL SELECT f.relation FROM unnest(foreign_keys) AS f WHERE f.is_partitioned) AS t
        WHERE current_setting('snowflake_migrate_internal.for_script', true) = 'on'
      UNION ALL
        SELECT m.relation, format('%s is a foreign table', m.relation), 'Detach it while the table is migrated.'
        FROM narrow_column AS m WHERE m.relkind = 'f'
      UNION ALL
        SELECT m.relation, format('column %I of %s is NOT NULL, and in %s it is not', m.narrow, m.relation, m.declared_by),
               format('ALTER TABLE %s ALTER COLUMN %I DROP NOT NULL while it is migrated, or use the plan for a maintenance window '
                      '(online => false).', m.relation, m.narrow)
        FROM narrow_column AS m JOIN narrow_column AS d ON d.relation = m.declared_by AND d.narrow = m.narrow
        WHERE m.is_required AND NOT d.is_required
      UNION ALL
        SELECT DISTINCT m.relation, format('%s has inheritance children or parents', m.relation),
               'Their columns can only be replaced together: use the plan for a maintenance window (online => false).'
        FROM narrow_column AS m
        WHERE m.relkind <> 'p' AND m.relation = m.declared_by
          AND EXISTS (SELECT FROM pg_inherits AS i WHERE m.relation IN (i.inhparent, i.inhrelid))
      UNION ALL
        SELECT DISTINCT m.relation, format('%s is a temporary table', m.relation),
               'No other session uses it: use the plan for a maintenance window (online => false).'
        FROM narrow_column AS m WHERE m.relpersistence = 't'
      UNION ALL
        SELECT m.relation, format('column %I of %s is an identity column that references another one', m.narrow, m.relation),
               'The identity sequence cannot be moved to another column: ALTER COLUMN ... DROP IDENTITY, '
               'or use the plan for a maintenance window (online => false).'
        FROM narrow_column AS m WHERE m.attidentity <> '' AND (m.declared_by, m.narrow) NOT IN (SELECT * FROM unnest(keys))
      UNION ALL
        SELECT m.relation, format('row-level security is forced on the owner of %s, but the migration has to see every row', m.relation),
               format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY while it is migrated.', m.relation)
        FROM narrow_column AS m WHERE m.relforcerowsecurity AND m.relation NOT IN (SELECT k.target FROM unnest(keys) AS k)
    )
    SELECT f.relation, NULL::name, f.obstacle, f.remedy, '55000' FROM found AS f
$function$;

-- Triggers that change the narrow column after its shadow is set, and replication that
-- finds rows by all columns.
CREATE FUNCTION snowflake_migrate_internal.row_change_obstacles(shadows snowflake_migrate_internal.shadow_column[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH found (relation, obstacle, remedy) AS (
        SELECT DISTINCT m.relation,
               format('trigger %I of %s fires after the one that keeps the new column up to date', t.tgname, m.relation),
               'Triggers fire in the order of their names: rename it.'
        FROM unnest(shadows) AS m
        JOIN pg_trigger AS t ON t.tgrelid = m.relation AND NOT t.tgisinternal AND t.tgname > m.trigger_name
                            AND t.tgfoid <> 'snowflake_migrate_internal.shadow()'::regprocedure
        -- BEFORE, each row, INSERT or UPDATE.
        WHERE t.tgtype & 3 = 3 AND t.tgtype & (4 | 16) <> 0
      UNION ALL
        SELECT DISTINCT m.relation, format('%s is published, and its replica identity is FULL', m.relation),
               'Subscribers could not find rows while the column exists only on their side: '
               'give the table another replica identity while it is migrated.'
        FROM unnest(shadows) AS m
        JOIN pg_class AS c ON c.oid = m.relation
        WHERE c.relreplident = 'f' AND snowflake_migrate_internal.publications(m.relation, m.narrow) IS NOT NULL
      UNION ALL
        SELECT DISTINCT m.relation,
               format('%s is the target of a subscription, and has neither a primary key nor an index as its replica identity', m.relation),
               'Subscriptions find its rows by all columns, and the publisher does not have the new one: give the table a primary key.'
        FROM unnest(shadows) AS m
        WHERE EXISTS (SELECT FROM pg_subscription_rel AS r WHERE r.srrelid = m.relation)
          AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = m.relation AND (i.indisprimary OR i.indisreplident))
    )
    SELECT f.relation, NULL::name, f.obstacle, f.remedy, '55000' FROM found AS f
$function$;

-- A migration of another column that has begun, and changes since this one began.
CREATE FUNCTION snowflake_migrate_internal.begun_migration_obstacles(shadows snowflake_migrate_internal.shadow_column[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH found (relation, obstacle, remedy) AS (
        SELECT DISTINCT m.relation, format('another column of %s is being migrated', m.relation),
               'Finish that migration first, or cancel it with snowflake_migrate.revert().'
        FROM unnest(shadows) AS m
        JOIN pg_trigger AS t ON t.tgrelid = m.relation AND t.tgfoid = 'snowflake_migrate_internal.shadow()'::regprocedure
        WHERE NOT EXISTS (SELECT FROM unnest(shadows) AS own WHERE own.relation = t.tgrelid AND own.trigger_name = t.tgname)
      UNION ALL
        -- Only migrations use such names. Objects may have been left behind or changed by hand.
        SELECT m.relation,
               format('the trigger that copies column %3$I of %2$s to column %1$I has been changed', m.shadow_name, m.relation, m.narrow),
               CASE WHEN num_nonnulls(m.shadow, m.trigger_oid, m.check_oid) = 3
                    -- The constraint has rejected wrong values in the meantime.
                    THEN format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I.', m.relation, m.trigger_name)
                    ELSE 'Cancel the migration with snowflake_migrate.revert(), '
                         'drop the remaining objects of these names, and start again.' END
        FROM unnest(shadows) AS m
        WHERE NOT m.is_kept
          AND (EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = m.relation AND a.attname = m.shadow_name)
               OR EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = m.relation AND t.tgname = m.trigger_name)
               OR EXISTS (SELECT FROM pg_constraint AS k WHERE k.conrelid = m.relation AND k.conname = m.check_name))
      UNION ALL
        SELECT m.relation, format('the NOT NULL property of column %I of %s has changed since its migration began', m.narrow, m.relation),
               'Cancel the migration with snowflake_migrate.revert(), and start again.'
        FROM unnest(shadows) AS m
        JOIN pg_constraint AS k ON k.oid = m.check_oid
        -- Only the constraint's expression shows it: both forms have the same name and
        -- columns, and no record has it. Unlike its text, its tree has no names of columns.
        WHERE (k.conbin::text ~ '{NULLTEST ') <> m.is_required AND m.relation = m.declared_by
    )
    SELECT f.relation, NULL::name, f.obstacle, f.remedy, '55000' FROM found AS f
$function$;

-- Views and rules that give the columns of a table other names. PostgreSQL writes a
-- list of all columns there, in the order of the table.
CREATE FUNCTION snowflake_migrate_internal.column_alias_obstacles(columns snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH defined AS MATERIALIZED (
        SELECT d.identity, w.oid AS rule,
               CASE d.kind WHEN 'rule' THEN pg_get_ruledef(w.oid) ELSE pg_get_viewdef(w.ev_class) END AS definition
        FROM snowflake_migrate_internal.dependents(columns) AS d
        JOIN pg_rewrite AS w ON CASE d.kind WHEN 'rule' THEN w.oid = d.object ELSE w.ev_class = d.object AND w.rulename = '_RETURN' END
        WHERE d.kind IN ('view', 'materialized view', 'rule')
    )
    SELECT DISTINCT m.target, NULL::name, format('%s gives the columns of %s other names', d.identity, m.target),
           'The order of the columns changes: use the plan for a maintenance window (online => false), or use the names of the table.',
           '55000'
    FROM unnest(columns) AS m
    JOIN pg_depend AS p ON p.classid = 'pg_rewrite'::regclass AND p.refclassid = 'pg_class'::regclass AND p.refobjid = m.target
    JOIN defined AS d ON d.rule = p.objid
    WHERE d.definition ~ (regexp_replace(snowflake_migrate_internal.name_of(m.target), '([^[:alnum:]_])', E'\\\\\\1', 'g')
                          || E'( ([[:alnum:]_]+|"([^"]|"")+"))?\\(')
$function$;

-- Materialized views with data. One without data is created again in a moment.
CREATE FUNCTION snowflake_migrate_internal.filled_view_obstacles(columns snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT t.relation, NULL::name,
           format('%s %s has data, and would have to be filled again while its tables are locked', i.type, i.identity),
           format('REFRESH MATERIALIZED VIEW %s WITH NO DATA until the swap is done, then REFRESH it, '
                  'or use the plan for a maintenance window (online => false).',
                  snowflake_migrate_internal.name_of(c.oid::regclass)), '55000'
    FROM snowflake_migrate_internal.dependent_tables(columns) AS t
    JOIN pg_class AS c ON t.class = 'pg_class'::regclass AND c.oid = t.object AND c.relkind = 'm' AND c.relispopulated
    CROSS JOIN LATERAL pg_identify_object(t.class, t.object, 0) AS i
    ORDER BY i.identity, t.relation::text
$function$;

-- Obstacles to an online migration, and how to remove them. What several of the checks
-- need is read once, for all keys together.
CREATE FUNCTION snowflake_migrate_internal.online_obstacles(keys snowflake_migrate_internal.key[], is_for_error boolean)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    shadows CONSTANT snowflake_migrate_internal.shadow_column[] :=
        ARRAY(SELECT s FROM snowflake_migrate_internal.shadows(keys) AS s);
    columns CONSTANT snowflake_migrate_internal.key[] :=
        ARRAY(SELECT (m.relation, m.narrow)::snowflake_migrate_internal.key FROM unnest(shadows) AS m);
    indexes CONSTANT snowflake_migrate_internal.shadow_index[] :=
        ARRAY(SELECT i FROM snowflake_migrate_internal.shadow_indexes(keys) AS i);
    checks CONSTANT snowflake_migrate_internal.shadow_check[] :=
        ARRAY(SELECT k FROM snowflake_migrate_internal.shadow_checks(keys) AS k);
    statistics_objects CONSTANT snowflake_migrate_internal.shadow_statistic[] :=
        ARRAY(SELECT x FROM snowflake_migrate_internal.shadow_statistics(keys) AS x);
    foreign_keys CONSTANT snowflake_migrate_internal.shadow_foreign_key[] :=
        ARRAY(SELECT f FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS f);
BEGIN
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.online_table_obstacles(keys, shadows, foreign_keys) AS o;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.definition_obstacles(shadows, indexes, checks, statistics_objects) AS o;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.constraint_obstacles(shadows, foreign_keys, statistics_objects) AS o;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.adoption_obstacles(shadows, indexes, foreign_keys) AS o;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.row_change_obstacles(shadows) AS o;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.begun_migration_obstacles(shadows) AS o;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.column_alias_obstacles(columns) AS o;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.taken_name_obstacles(indexes, checks, foreign_keys) AS o;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.counterpart_privilege_obstacles(shadows, foreign_keys, statistics_objects) AS o;
    RETURN QUERY
        SELECT o.*
        FROM snowflake_migrate_internal.update_obstacles(ARRAY(SELECT DISTINCT m.relation FROM unnest(shadows) AS m), is_for_error) AS o;
    RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.filled_view_obstacles(columns) AS o;
END
$function$;

-- Obstacles to one of the two kinds of plan.
CREATE FUNCTION snowflake_migrate_internal.plan_kind_obstacles(
    keys snowflake_migrate_internal.key[], online boolean, is_for_error boolean
) RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF online THEN
        RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.online_obstacles(keys, is_for_error) AS o;
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
            SELECT DISTINCT f.relation FROM snowflake_migrate_internal.linked_tree(keys) AS f WHERE f.is_narrow), online) AS o;
END
$function$;

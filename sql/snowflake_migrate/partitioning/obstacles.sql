-- What prevents a table from becoming partitioned by the time of its key: all that PostgreSQL
-- refuses for partitioned tables, and what would mean something else afterwards.

-- The column by which a table is partitioned: that of its snowflake IDs, or the one that will have them.
CREATE FUNCTION snowflake_migrate_internal.partition_key_of(target regclass)
RETURNS name LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    own CONSTANT name[] := ARRAY(
        SELECT a.attname
        FROM pg_index AS i
        JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
        WHERE i.indrelid = target AND i.indisprimary AND i.indnkeyatts = 1);
BEGIN
    RETURN CASE WHEN own <> '{}' AND snowflake_internal.has_ids(target, own[1]) THEN own[1]
                ELSE snowflake_migrate_internal.column_of(target, NULL) END;
END
$function$;

-- Its functions are called: without it they are no names.
CREATE FUNCTION snowflake_migrate_internal.require_partitions_extension()
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension AS e WHERE e.extname = 'snowflake_partitions') THEN
        PERFORM snowflake_internal.refuse('55000', 'the extension snowflake_partitions is not installed',
            detail => 'It creates the partitions that new rows need.', hint => 'CREATE EXTENSION snowflake_partitions.');
    END IF;
END
$function$;

-- All that uses a table as a whole, in the form in which dependents() takes it.
CREATE FUNCTION snowflake_migrate_internal.whole(target regclass)
RETURNS snowflake_migrate_internal.key[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY[(target, NULL)::snowflake_migrate_internal.key];

-- The foreign keys of other tables to a table.
CREATE FUNCTION snowflake_migrate_internal.incoming_keys(target regclass)
RETURNS SETOF pg_constraint LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT k.* FROM pg_constraint AS k
    WHERE k.contype = 'f' AND k.conparentid = 0 AND k.confrelid = target AND k.conrelid <> target
$function$;

CREATE FUNCTION snowflake_migrate_internal.partition_table_obstacles(target regclass, column_name name)
RETURNS TABLE (rank integer, obstacle text, remedy text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT o.rank, o.obstacle, o.remedy
    FROM pg_class AS c LEFT JOIN pg_am AS a ON a.oid = c.relam
    CROSS JOIN LATERAL (VALUES
        (1, c.relpersistence <> 'p', format('%s is no permanent table', target),
         'Make it one: ALTER TABLE ... SET LOGGED. Temporary tables are not converted.'),
        (2, c.reloftype <> 0, format('%s is a typed table', target),
         format('Make it an ordinary table first: ALTER TABLE %s NOT OF.', target)),
        (3, a.amname <> 'heap', format('%s has the access method %s', target, quote_ident(a.amname)),
         'New partitions would have another one: ALTER TABLE ... SET ACCESS METHOD heap.'),
        (5, target = ANY (snowflake_internal.distributed_tables()), format('%s is distributed by Citus', target), 'Partition it by hand.'),
        (6, EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = target AND d.deptype = 'e'),
         format('%s belongs to an extension', target), 'Only the extension can change it.'),
        (8, EXISTS (SELECT FROM pg_subscription_rel AS s WHERE s.srrelid = target), format('a subscription replicates into %s', target),
         'Its state is that of the table, which becomes a partition. Convert the publisher''s table, or end the subscription.'),
        -- As a restricted role, also if a superuser calls it.
        (12, NOT has_schema_privilege(c.relowner, c.relnamespace, 'CREATE'),
         format('permission denied for schema %s: %I, the owner of %s, cannot create partitions', c.relnamespace::regnamespace,
                pg_get_userbyid(c.relowner), target),
         format('GRANT CREATE ON SCHEMA %s TO %I.', c.relnamespace::regnamespace, pg_get_userbyid(c.relowner)))
    ) AS o (rank, applies, obstacle, remedy)
    WHERE c.oid = target AND o.applies
  UNION ALL
    -- It gets snowflake IDs first.
    SELECT 0, o.obstacle, o.remedy FROM snowflake_migrate_internal.server_obstacles() AS o
    WHERE NOT snowflake_internal.has_ids(target, column_name)
  UNION ALL
    SELECT 4, CASE WHEN i.inhrelid = target THEN format('%s is a partition or a child of %s', target, i.inhparent::regclass)
                   ELSE format('%s has the child table %s', target, i.inhrelid::regclass) END,
           'PostgreSQL does not combine inheritance with partitions: ALTER TABLE ... NO INHERIT.'
    FROM pg_inherits AS i WHERE target IN (i.inhrelid, i.inhparent)
  UNION ALL
    SELECT 7, format('column %I of %s is an identity column', a.attname, target),
           format('PostgreSQL attaches no partition with one. ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY, '
                  'and give it a default with a sequence.', target, a.attname)
    FROM pg_attribute AS a WHERE a.attrelid = target AND a.attidentity <> '' AND a.attname <> column_name
  UNION ALL
    SELECT 9, format('publication %I publishes the partitions of %s under their own names', p.pubname, target),
           format('ALTER PUBLICATION %I SET (publish_via_partition_root = true). It changes nothing for other tables.', p.pubname)
    FROM pg_publication AS p
    WHERE NOT p.pubviaroot AND (p.puballtables
        OR EXISTS (SELECT FROM pg_publication_rel AS r WHERE r.prpubid = p.oid AND r.prrelid = target)
        OR EXISTS (SELECT FROM pg_publication_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.pnnspid
                   WHERE n.pnpubid = p.oid AND c.oid = target))
  UNION ALL
    SELECT 10, format('%s has the security label %L', pg_describe_object(l.classoid, l.objoid, l.objsubid), l.label),
           'Remove it, and set it again afterwards.'
    FROM pg_seclabel AS l WHERE l.classoid = 'pg_class'::regclass AND l.objoid = target
  UNION ALL
    SELECT 11, format('column %I of %s is of the domain %s', a.attname, target, a.atttypid::regtype),
           format('Partitions are by a bigint: ALTER TABLE %s ALTER COLUMN %I TYPE bigint, and ADD CHECK for what the domain checks.',
                  target, a.attname)
    FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid AND t.typtype = 'd'
    WHERE a.attrelid = target AND a.attname = column_name
$function$;

CREATE FUNCTION snowflake_migrate_internal.partition_constraint_obstacles(target regclass, column_name name)
RETURNS TABLE (rank integer, obstacle text, remedy text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH server AS MATERIALIZED (
        SELECT current_setting('server_version_num')::integer AS version,
               (SELECT a.attnum FROM pg_attribute AS a WHERE a.attrelid = target AND a.attname = column_name) AS attribute
    ), own AS MATERIALIZED (
        SELECT k.*, coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true) AS is_enforced,
               coalesce((to_jsonb(k) ->> 'conperiod')::boolean, false) AS is_period
        FROM pg_constraint AS k
        -- Not what a foreign key has for each partition that it references.
        WHERE k.conrelid = target AND (k.contype <> 'f' OR k.conparentid = 0)
    )
    SELECT 20, CASE WHEN i.indisexclusion THEN format('exclusion constraint %s of %s does not compare %I by =', i.indexrelid::regclass,
        target, column_name)
                    ELSE format('unique index %s of %s does not have %I', i.indexrelid::regclass, target, column_name) END,
           'It could hold for each partition only. Drop it, or make it an index that is not unique; '
           'an INSERT with ON CONFLICT on its columns fails then.'
    FROM server AS s JOIN pg_index AS i ON i.indrelid = target
    WHERE (i.indisunique AND NOT i.indisexclusion AND s.attribute <> ALL (i.indkey[0:i.indnkeyatts - 1]::smallint[]))
       OR i.indisexclusion AND NOT EXISTS (
              SELECT FROM own AS k
              CROSS JOIN LATERAL unnest(k.conkey, k.conexclop) AS e (attribute, operator)
              JOIN pg_operator AS o ON o.oid = e.operator AND o.oprname = '='
              WHERE s.version >= 170000 AND k.conindid = i.indexrelid AND e.attribute = s.attribute)
  UNION ALL
    SELECT 21, format('no valid B-tree index of %s begins with %I', target, column_name),
           format('CREATE UNIQUE INDEX CONCURRENTLY ON %s (%I); better, make it the primary key.', target, column_name)
    FROM server AS s
    WHERE NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
                      JOIN pg_am AS m ON m.oid = c.relam AND m.amname = 'btree'
                      WHERE i.indrelid = target AND i.indkey[0] = s.attribute AND i.indpred IS NULL AND i.indisvalid)
  UNION ALL
    SELECT 22, format('index %s of %s is not valid', i.indexrelid::regclass, target), 'Drop it, or REINDEX it CONCURRENTLY.'
    FROM pg_index AS i WHERE i.indrelid = target AND NOT i.indisvalid
  UNION ALL
    SELECT 23, format('check constraint %I of %s is %s', k.conname, target,
                      CASE WHEN NOT k.is_enforced THEN 'not enforced' WHEN NOT k.convalidated THEN 'not validated'
                          ELSE 'not inherited' END),
           CASE WHEN NOT k.is_enforced OR NOT k.connoinherit THEN format('ALTER TABLE %s VALIDATE CONSTRAINT %I, or drop it.', target,
               k.conname)
                ELSE 'A partitioned table cannot have it. Drop it, and add it without NO INHERIT.' END
    FROM own AS k
    WHERE k.contype = 'c' AND (NOT k.convalidated OR k.connoinherit OR NOT k.is_enforced)
      AND k.conname NOT IN (SELECT c.name FROM snowflake_migrate_internal.partition_check(target) AS c)
      AND k.conname NOT IN (SELECT b.conname FROM snowflake_internal.boundary_checks(target) AS b WHERE b.relation = target)
  UNION ALL
    SELECT 24, format('not-null constraint %I of %s is %s', k.conname, target,
                      CASE WHEN k.connoinherit THEN 'not inherited' ELSE 'not validated' END),
           CASE WHEN k.connoinherit THEN format('ALTER TABLE %s ALTER CONSTRAINT %I INHERIT.', target, k.conname)
                ELSE format('ALTER TABLE %s VALIDATE CONSTRAINT %I.', target, k.conname) END
    FROM own AS k WHERE k.contype = 'n' AND (k.connoinherit OR NOT k.convalidated)
  UNION ALL
    SELECT 25, format('foreign key %I of %s refers to %s itself', k.conname, target, target),
           'PostgreSQL would read all rows under the lock. Drop it, and add it again afterwards.'
    FROM own AS k WHERE k.contype = 'f' AND k.confrelid = target
  UNION ALL
    SELECT 26, format('foreign key %I of %s is %s', k.conname, target, CASE WHEN k.is_enforced THEN 'not validated'
        ELSE 'not enforced' END),
           format('A partitioned table would validate it under the lock. ALTER TABLE %s VALIDATE CONSTRAINT %I, or drop it.', target,
               k.conname)
    FROM own AS k WHERE k.contype = 'f' AND k.confrelid <> target AND NOT (k.convalidated AND k.is_enforced)
  UNION ALL
    SELECT 27, format('constraint %I of %s has a period', k.conname, target), 'Drop it, and add it again afterwards.'
    FROM own AS k WHERE k.is_period
$function$;

CREATE FUNCTION snowflake_migrate_internal.partition_reference_obstacles(target regclass, column_name name)
RETURNS TABLE (rank integer, obstacle text, remedy text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH incoming AS MATERIALIZED (
        SELECT k.*, c.relkind, c.relowner, coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true) AS is_enforced
        FROM snowflake_migrate_internal.incoming_keys(target) AS k JOIN pg_class AS c ON c.oid = k.conrelid
    )
    SELECT 40, format('foreign key %I of %s refers to other columns than %I', k.conname, k.conrelid::regclass, column_name),
           format('They are unique without %I, which a partitioned table cannot ensure. Drop it, or let it refer to %2$I, too.',
               column_name, column_name)
    FROM incoming AS k
    JOIN pg_attribute AS a ON a.attrelid = target AND a.attname = column_name
    WHERE a.attnum <> ALL (k.confkey)
  UNION ALL
    SELECT 41, format('foreign key %I of the partitioned table %s refers to %s', k.conname, k.conrelid::regclass, target),
           'Before PostgreSQL 18, it would be validated under the lock. Drop it, and add it again afterwards.'
    FROM incoming AS k WHERE k.relkind = 'p' AND current_setting('server_version_num')::integer < 180000
  UNION ALL
    SELECT 42, format('foreign key %I of %s is %s', k.conname, k.conrelid::regclass, CASE WHEN k.is_enforced THEN 'not validated'
        ELSE 'not enforced' END),
           format('It will be added again, and validated. %s drop it.', CASE WHEN k.is_enforced THEN format(
               'ALTER TABLE %s VALIDATE CONSTRAINT %I, or', k.conrelid::regclass, k.conname) ELSE 'First' END)
    FROM incoming AS k WHERE NOT (k.convalidated AND k.is_enforced)
  UNION ALL
    SELECT 43, format('%I, the owner of %s, must be a role that you can act as', pg_get_userbyid(k.relowner), k.conrelid::regclass),
           format('Its foreign key %I is added again. Run it as a role that is a member of both owners.', k.conname)
    FROM incoming AS k WHERE NOT pg_has_role(k.relowner, 'USAGE') OR NOT pg_has_role(k.relowner, 'MEMBER')
  UNION ALL
    SELECT 44, format('%I, the owner of %s, has no privilege REFERENCES on %s', pg_get_userbyid(k.relowner), k.conrelid::regclass, target),
           format('Its foreign key %I is added again. GRANT REFERENCES ON %s TO %I.', k.conname, target, pg_get_userbyid(k.relowner))
    FROM incoming AS k
    WHERE EXISTS (SELECT FROM unnest(k.confkey) AS c (attribute)
                  WHERE NOT has_column_privilege(k.relowner, target::oid, c.attribute, 'REFERENCES'))
  UNION ALL
    SELECT 45, format('triggers of foreign key %I of %s are in another state than the usual one', k.conname, k.conrelid::regclass),
           'Enable them: the foreign key is added again.'
    FROM pg_constraint AS k
    WHERE k.contype = 'f' AND k.conparentid = 0 AND target IN (k.conrelid, k.confrelid)
      AND EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgconstraint = k.oid AND t.tgenabled <> 'O')
$function$;

-- Obstacles in what depends on the table otherwise, and in its triggers.
CREATE FUNCTION snowflake_migrate_internal.partition_user_obstacles(target regclass)
RETURNS TABLE (rank integer, obstacle text, remedy text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH given AS MATERIALIZED (
        SELECT ARRAY(SELECT d FROM snowflake_migrate_internal.dependents(snowflake_migrate_internal.whole(target)) AS d) AS dependents
    ), dependent AS MATERIALIZED (
        SELECT d.* FROM given AS g CROSS JOIN LATERAL unnest(g.dependents) AS d
    )
    SELECT 46, format('trigger %I of %s fires for each row, and has a transition table', t.tgname, target),
           'A partitioned table cannot have it. Make it a trigger FOR EACH STATEMENT.'
    FROM pg_trigger AS t
    WHERE t.tgrelid = target AND NOT t.tgisinternal AND t.tgtype & 1 = 1 AND (t.tgoldtable IS NOT NULL OR t.tgnewtable IS NOT NULL)
  UNION ALL
    SELECT o.rank, o.obstacle, o.remedy
    FROM dependent AS d
    CROSS JOIN LATERAL (VALUES
        -- The tables that have such a column are named.
        (47, d.kind = 'other' AND (d.class <> 'pg_type'::regclass
                                   OR EXISTS (SELECT FROM pg_type AS t WHERE t.oid = d.object AND t.typtype IN ('d', 'r'))),
         format('%s uses %s or its row type', d.identity, target),
         'It would go on with the first partition. Drop it, or give a column the type of the values that it needs.'),
        (48, d.kind = 'materialized view', format('%s would be filled again under the lock', d.identity),
         'Drop it, and create it again afterwards.'),
        (49, d.is_extended, format('%s belongs to an extension', d.identity), 'Drop the extension, and create it again afterwards.'),
        (50, d.place IS NULL AND d.kind <> 'other', format('%s depends on itself through other views or functions', d.identity),
         'Drop it, and create it again afterwards.'),
        (51, d.kind <> 'other' AND (SELECT n.nspname LIKE E'pg\\_temp\\_%' FROM pg_namespace AS n WHERE n.oid = d.schema),
         format('%s is temporary', d.identity), 'Drop it, or wait until its session has ended.')
    ) AS o (rank, applies, obstacle, remedy)
    WHERE o.applies
  UNION ALL
    SELECT 52, p.obstacle, p.remedy
    FROM given AS g
    CROSS JOIN LATERAL snowflake_migrate_internal.missing_privileges(g.dependents) AS p
  UNION ALL
    SELECT 53, format('you must be able to act as %I, the owner of %s', o.owner, o.what),
        'It is made anew. Run it as a role that is a member of both owners.'
    FROM (SELECT pg_get_userbyid(p.pubowner) AS owner, format('publication %I', p.pubname) AS what, p.pubowner AS role
          FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = r.prpubid WHERE r.prrelid = target
        UNION ALL
          SELECT pg_get_userbyid(x.stxowner), format('statistics object %I', x.stxname), x.stxowner
          FROM pg_statistic_ext AS x WHERE x.stxrelid = target
        UNION ALL
          SELECT pg_get_userbyid(c.relowner), target::text, c.relowner FROM pg_class AS c WHERE c.oid = target
        UNION ALL
          SELECT pg_get_userbyid(g.grantor), format('grants on %s', target), g.grantor
          FROM (SELECT x.grantor FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS x WHERE c.oid = target
                UNION SELECT x.grantor FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(a.attacl) AS x
                    WHERE a.attrelid = target) AS g) AS o
    WHERE NOT pg_has_role(o.role, 'USAGE') OR NOT pg_has_role(o.role, 'MEMBER')
$function$;

-- Obstacles in its rows: those with IDs beyond the partitions, as of another layout.
CREATE FUNCTION snowflake_migrate_internal.partition_row_obstacles(target regclass, column_name name)
RETURNS TABLE (rank integer, obstacle text, remedy text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    numbers CONSTANT text := CASE WHEN snowflake_internal.has_ids(target, column_name)
                                  THEN snowflake_internal.other_numbers(target, column_name) END;
BEGIN
    IF snowflake_internal.has_other_layout() THEN
        RETURN QUERY SELECT 60, 'IDs of this database are recorded with another layout, with other times', 'See snowflake_accept_layout().';
    ELSIF numbers = 'above' THEN
        RETURN QUERY SELECT 61, format('column %I of %s has numbers above all snowflake IDs of this moment', column_name, target),
                            'They would belong to partitions of the future. Give these rows other numbers.';
    END IF;
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.partition_obstacles(target regclass, column_name name)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
BEGIN
    RETURN QUERY
        SELECT target, NULL::name, o.obstacle, o.remedy, '55000'
        FROM (SELECT t.* FROM snowflake_migrate_internal.partition_table_obstacles(target, column_name) AS t
            UNION
              SELECT k.* FROM snowflake_migrate_internal.partition_constraint_obstacles(target, column_name) AS k
            UNION
              SELECT f.* FROM snowflake_migrate_internal.partition_reference_obstacles(target, column_name) AS f
            UNION
              SELECT u.* FROM snowflake_migrate_internal.partition_user_obstacles(target) AS u
            UNION
              SELECT r.* FROM snowflake_migrate_internal.partition_row_obstacles(target, column_name) AS r) AS o
        ORDER BY o.rank, o.obstacle;
END
$function$;

-- Fails unless a table can be converted now. A key that still takes its numbers from a sequence is
-- no obstacle to the plan, which switches it first.
CREATE FUNCTION snowflake_migrate_internal.require_partitionable(target regclass, column_name name, is_for_plan boolean)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_migrate_internal.require_owner(target);
    PERFORM snowflake_migrate_internal.require_partitions_extension();
    IF (SELECT c.relkind FROM pg_class AS c WHERE c.oid = target) <> 'r' THEN
        PERFORM snowflake_internal.refuse('42809', format('%s is not a plain table', target),
            hint => 'A table that is partitioned already is maintained by snowflake_partitions.configure().');
    ELSIF NOT is_for_plan AND NOT (snowflake_internal.has_ids(target, column_name) AND EXISTS (
              SELECT FROM pg_attribute AS a
              WHERE a.attrelid = target AND a.attname = column_name AND a.atttypid = 'int8'::regtype AND a.attnotnull)) THEN
        PERFORM snowflake_internal.refuse('55000', format('column "%s" of %s has no snowflake IDs yet', column_name, target),
            hint => 'Run the statements of snowflake_migrate.partition_plan() in order.');
    END IF;
    PERFORM snowflake_migrate_internal.refuse_obstacles(
        ARRAY(SELECT o FROM snowflake_migrate_internal.partition_obstacles(target, column_name) AS o),
        format('cannot partition %s', target), text 'Nothing was changed. Remove the obstacles, then request the plan again.');
END
$function$;

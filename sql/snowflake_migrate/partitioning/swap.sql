-- Making the table the first partition, and undoing it: in one statement each, which only changes
-- the catalog while the table is locked.

-- The tables that are locked: the table, its partitions, what depends on it, and those at the other
-- end of foreign keys.
CREATE FUNCTION snowflake_migrate_internal.partition_relations(target regclass)
RETURNS regclass[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT target || array_remove(ARRAY(
        SELECT t.oid::regclass FROM snowflake_internal.tree(ARRAY[target]) AS t (oid)
      UNION
        SELECT CASE k.conrelid WHEN target THEN k.confrelid ELSE k.conrelid END::regclass
        FROM pg_constraint AS k WHERE k.contype = 'f' AND k.conparentid = 0 AND target IN (k.conrelid, k.confrelid)
      UNION
        SELECT unnest(snowflake_migrate_internal.dependent_relations(snowflake_migrate_internal.whole(target)))
      -- lock_partitioned() compares it: the order must not depend on the planner's statistics.
      ORDER BY 1), target)
$function$;

-- Keeps the names that the statements are written with, until the end of the transaction.
CREATE FUNCTION snowflake_migrate_internal.pin_partitioned(target regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_migrate_internal.pin_dependents(snowflake_migrate_internal.whole(target));
    PERFORM snowflake_migrate_internal.pin_schemas(ARRAY(
        SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = ANY (snowflake_migrate_internal.partition_relations(target))
      UNION
        SELECT x.stxnamespace FROM pg_statistic_ext AS x WHERE x.stxrelid = target
      UNION
        SELECT q.relnamespace FROM pg_depend AS d JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S'
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = target AND d.classid = 'pg_class'::regclass
      UNION
        -- Operators, functions, types and collations of columns, checks and indexes.
        SELECT coalesce(p.pronamespace, o.oprnamespace, t.typnamespace, l.collnamespace, y.opcnamespace)
        FROM pg_depend AS d
        LEFT JOIN pg_proc AS p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
        LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
        LEFT JOIN pg_type AS t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
        LEFT JOIN pg_collation AS l ON d.refclassid = 'pg_collation'::regclass AND l.oid = d.refobjid
        LEFT JOIN pg_opclass AS y ON d.refclassid = 'pg_opclass'::regclass AND y.oid = d.refobjid
        WHERE (d.classid, d.objid) IN (
            SELECT 'pg_class'::regclass::oid, i.indexrelid FROM pg_index AS i WHERE i.indrelid = target
            UNION SELECT 'pg_constraint'::regclass, k.oid FROM pg_constraint AS k WHERE k.conrelid = target
            UNION SELECT 'pg_statistic_ext'::regclass, x.oid FROM pg_statistic_ext AS x WHERE x.stxrelid = target)
          AND coalesce(p.pronamespace, o.oprnamespace, t.typnamespace, l.collnamespace, y.opcnamespace) IS NOT NULL
        ORDER BY 1));
END
$function$;

-- Runs the statements, each with the rights of its role. Constants are read as they were written.
-- Bodies of functions are not checked, because they may use other search paths.
CREATE FUNCTION snowflake_migrate_internal.run_partition_statements(statements snowflake_migrate_internal.partition_statement[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET check_function_bodies = off
SET default_tablespace = '' SET default_table_access_method = 'heap'
AS $function$
BEGIN
    PERFORM snowflake_migrate_internal.run_as(s.role, s.statement, NULL) FROM unnest(statements) AS s;
END
$function$;

-- What depends on a table, to compare it afterwards. Partitions have copies of its triggers.
CREATE FUNCTION snowflake_migrate_internal.describe_whole(target regclass)
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT snowflake_migrate_internal.describe_dependents(snowflake_migrate_internal.whole(target))
           - ARRAY(SELECT d.identity FROM snowflake_migrate_internal.dependents(snowflake_migrate_internal.whole(target)) AS d
                   WHERE d.kind = 'trigger of a partition')
$function$;

-- Fails if the CHECK refuses nothing any more, so that rows could be beyond its bound; and if one is.
CREATE FUNCTION snowflake_migrate_internal.require_bound(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    found_check record;
    highest bigint;
BEGIN
    SELECT c.* INTO found_check FROM snowflake_migrate_internal.partition_check(target) AS c;
    IF found_check.name IS NULL THEN
        PERFORM snowflake_internal.refuse('55000', format('%s has no check of its highest ID yet', target),
            hint => 'Run the statements of snowflake_migrate.partition_plan() in order.');
    ELSIF clock_timestamp() >= found_check.expires_at THEN
        PERFORM snowflake_internal.refuse('55000', format('the time of the check "%s" of %s is over', found_check.name, target),
            detail => 'It refuses no rows any more, so that the table can be written to after its bound.',
            hint => 'Nothing was changed by this statement. Request the plan again: it adds a new check.');
    END IF;
    -- A clock that was ahead for a moment. Where row security applies to the owner, too, the CHECK has to do.
    IF NOT EXISTS (SELECT FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner
                   WHERE c.oid = target AND c.relrowsecurity AND c.relforcerowsecurity AND NOT r.rolsuper AND NOT r.rolbypassrls)
    THEN
        highest := (snowflake_internal.run(target, format('SELECT pg_catalog.max(%I) FROM ONLY %s', column_name,
                                                          snowflake_migrate_internal.name_of(target))))[1]::bigint;
        IF highest >= found_check.bound THEN
            PERFORM snowflake_internal.refuse('55000', format('%s has rows beyond the bound of its check', target),
                detail => format('The highest %s is %s.', column_name, highest),
                hint => 'Nothing was changed by this statement. Wait until that time has come, then request the plan again.');
        END IF;
    END IF;
END
$function$;

-- Creates the partitions ahead, which snowflake_partitions.maintain() continues.
CREATE FUNCTION snowflake_migrate_internal.create_ahead(target regclass, settings jsonb)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    owner CONSTANT oid := (SELECT c.relowner FROM pg_class AS c WHERE c.oid = target);
BEGIN
    PERFORM snowflake_partitions.configure(target, (settings ->> 'step')::interval, settings ->> 'time_zone',
        (settings ->> 'ahead')::interval);
    PERFORM snowflake_migrate_internal.run_as(owner, s.text, NULL)
    FROM snowflake_partitions_internal.ahead(target, clock_timestamp()) WITH ORDINALITY AS a (name, low, high, place)
    CROSS JOIN LATERAL unnest(snowflake_partitions_internal.creation(
        target, (a.name, a.low, a.high)::snowflake_partitions_internal.range)) WITH ORDINALITY AS s (text, place)
    ORDER BY a.place, s.place;
END
$function$;

-- Locks what a swap changes, and returns its statements with a description of what depends on the table: those that
-- make it the first partition, or, where `first` is that partition, undo it. Both are made before the lock. Fails if
-- something has changed then.
CREATE FUNCTION snowflake_migrate_internal.lock_partitioned(
    target regclass, column_name name, bound bigint, first regclass,
    OUT statements snowflake_migrate_internal.partition_statement[], OUT dependents jsonb
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    relations CONSTANT regclass[] := snowflake_migrate_internal.partition_relations(target);
    before CONSTANT text := snowflake_migrate_internal.fingerprint(relations);
    whole CONSTANT snowflake_migrate_internal.key[] := snowflake_migrate_internal.whole(target);
    dependents_before CONSTANT text := snowflake_migrate_internal.dependents_fingerprint(whole);
BEGIN
    dependents := snowflake_migrate_internal.describe_whole(target);
    statements := CASE WHEN first IS NULL
        THEN ARRAY(SELECT s FROM snowflake_migrate_internal.partition_statements(target, column_name, bound) AS s)
        ELSE ARRAY(SELECT s FROM snowflake_migrate_internal.unpartition_statements(target, first) AS s) END;
    PERFORM snowflake_migrate_internal.lock(relations, text 'ACCESS EXCLUSIVE');
    IF snowflake_migrate_internal.partition_relations(target) <> relations
       OR snowflake_migrate_internal.fingerprint(relations) IS DISTINCT FROM before
       OR snowflake_migrate_internal.dependents_fingerprint(whole) IS DISTINCT FROM dependents_before
    THEN
        PERFORM snowflake_internal.refuse('40001', format('%s, or what depends on it, has changed in the meantime', target),
            hint => 'Nothing was changed by this statement. Run it again.');
    END IF;
END
$function$;

-- Makes a table the first partition of a new one. As much as possible is checked and prepared
-- before the lock: the validation of the CHECK reads all rows, and blocks no writers.
CREATE FUNCTION snowflake_migrate_internal.partition_table(target regclass, settings jsonb)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    former_timeout CONSTANT text := current_setting('lock_timeout');
    key_name name;
    own record;
    parent regclass;
    swap record;
BEGIN
    PERFORM snowflake_migrate_internal.require_owner(target);
    key_name := snowflake_migrate_internal.partition_key_of(target);
    PERFORM snowflake_migrate_internal.exclude_others(ARRAY[(target, key_name)::snowflake_migrate_internal.key]);
    PERFORM snowflake_migrate_internal.require_partitionable(target, key_name, false);
    PERFORM snowflake_migrate_internal.require_bound(target, key_name);
    SELECT k.name AS check_name, k.bound INTO own FROM snowflake_migrate_internal.partition_check(target) AS k;
    PERFORM snowflake_migrate_internal.pin_partitioned(target);
    PERFORM snowflake_internal.run(target, format('ALTER TABLE %s VALIDATE CONSTRAINT %I',
                                                  snowflake_migrate_internal.name_of(target), own.check_name));
    swap := snowflake_migrate_internal.lock_partitioned(target, key_name, own.bound, NULL);
    PERFORM snowflake_migrate_internal.require_bound(target, key_name);
    PERFORM snowflake_migrate_internal.run_partition_statements(swap.statements);
    parent := (SELECT i.inhparent FROM pg_inherits AS i WHERE i.inhrelid = target);
    PERFORM snowflake_migrate_internal.create_ahead(parent, settings);
    PERFORM snowflake_migrate_internal.require_same(swap.dependents, snowflake_migrate_internal.describe_whole(parent), parent::text);
    PERFORM snowflake_migrate_internal.carry_origin(target, parent, key_name);
    EXECUTE format('SET LOCAL lock_timeout = %L', former_timeout);
END
$function$;

-- The record of the key's sequence goes over to the table that has the name now.
CREATE FUNCTION snowflake_migrate_internal.carry_origin(source regclass, destination regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    origin snowflake_migrate_internal.origins := snowflake_migrate_internal.origin(source, column_name);
BEGIN
    IF origin.target IS NOT NULL THEN
        origin.target := destination;
        PERFORM snowflake_migrate_internal.keep_origin(origin);
    END IF;
END
$function$;

-- Fails if a partition other than the first one has rows. A query of a partition that is partitioned leaves out
-- those that are being detached, which are dropped with it all the same.
CREATE FUNCTION snowflake_migrate_internal.require_only_first(target regclass, first regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    filled regclass;
BEGIN
    FOR filled IN
        SELECT c.oid FROM snowflake_internal.tree(ARRAY[target]) AS t (oid)
        JOIN pg_class AS c ON c.oid = t.oid AND c.relkind <> 'p' AND c.oid <> first ORDER BY c.oid
    LOOP
        IF snowflake_internal.run(filled, format('SELECT 1 FROM ONLY %s LIMIT 1', snowflake_migrate_internal.name_of(filled))) IS NOT NULL THEN
            PERFORM snowflake_internal.refuse('55000', format('partition %s has rows', filled),
                detail => format('Only %s can become the table again without moving rows.', first),
                hint => format('Nothing was changed. Move the rows of the other partitions into a table, delete them from %s, '
                               'revert it, and insert them again.', target));
        END IF;
    END LOOP;
END
$function$;

-- Takes the CHECK from a table that is not partitioned yet.
CREATE FUNCTION snowflake_migrate_internal.drop_partition_check(target regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    check_name CONSTANT name := (SELECT c.name FROM snowflake_migrate_internal.partition_check(target) AS c);
BEGIN
    IF check_name IS NULL THEN
        PERFORM snowflake_internal.refuse('55000', format('%s is not partitioned, and no such plan has begun', target),
            hint => 'snowflake_migrate.revert() restores the sequence of a key.');
    END IF;
    PERFORM snowflake_migrate_internal.lock(ARRAY[target], text 'ACCESS EXCLUSIVE');
    PERFORM snowflake_internal.run(target, format('ALTER TABLE %s DROP CONSTRAINT %I', snowflake_migrate_internal.name_of(target),
        check_name));
    RAISE NOTICE 'the plan to partition % is cancelled: nothing is left of it', target;
END
$function$;

-- Undoes the partitioning, or cancels it. What is left are foreign keys to validate, which are returned.
CREATE FUNCTION snowflake_migrate_internal.unpartition_table(target regclass)
RETURNS text[] LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    former_timeout CONSTANT text := current_setting('lock_timeout');
    key_name name;
    first regclass;
    swap record;
BEGIN
    IF target IS NULL THEN
        PERFORM snowflake_internal.refuse('22004', 'target must not be NULL');
    END IF;
    PERFORM snowflake_migrate_internal.require_owner(target);
    PERFORM snowflake_migrate_internal.exclude_others(ARRAY[(target, NULL)::snowflake_migrate_internal.key]);
    IF (SELECT c.relkind FROM pg_class AS c WHERE c.oid = target) <> 'p' THEN
        PERFORM snowflake_migrate_internal.drop_partition_check(target);
        EXECUTE format('SET LOCAL lock_timeout = %L', former_timeout);
        RETURN ARRAY[]::text[];
    END IF;
    PERFORM snowflake_migrate_internal.require_partitions_extension();
    key_name := (snowflake_partitions_internal.key_of(target)).column_name;
    first := (SELECT p.relation FROM snowflake_partitions_internal.existing(target) AS p WHERE p.low IS NULL AND NOT p.is_default);
    IF NOT EXISTS (SELECT FROM pg_class AS c JOIN pg_class AS t ON t.relowner = c.relowner
                   WHERE c.oid = first AND c.relkind = 'r' AND t.oid = target) THEN
        PERFORM snowflake_internal.refuse('55000', format('%s was not made of a table', target),
            detail => 'No plain table of the same owner is its partition FROM (MINVALUE).',
            hint => 'Only a table that snowflake_migrate.partition_plan() has partitioned can be made a plain table again.');
    END IF;
    PERFORM snowflake_migrate_internal.refuse_obstacles(
        ARRAY(SELECT (target, NULL, o.obstacle, o.remedy, '55000')::snowflake_migrate_internal.obstacle
              FROM (SELECT f.* FROM snowflake_migrate_internal.partition_reference_obstacles(target, key_name) AS f
                  UNION ALL
                    SELECT u.* FROM snowflake_migrate_internal.partition_user_obstacles(target) AS u) AS o
              WHERE o.rank NOT IN (42, 46) ORDER BY o.rank, o.obstacle),
        format('cannot make %s a plain table again', target), text 'Nothing was changed. Remove the obstacles, then run it again.');
    PERFORM snowflake_migrate_internal.require_only_first(target, first);
    PERFORM snowflake_migrate_internal.pin_partitioned(target);
    swap := snowflake_migrate_internal.lock_partitioned(target, key_name, NULL, first);
    PERFORM snowflake_migrate_internal.require_only_first(target, first);
    PERFORM snowflake_migrate_internal.carry_origin(target, first, key_name);
    PERFORM snowflake_partitions.forget(target) WHERE EXISTS (SELECT FROM snowflake_partitions.settings AS s WHERE s.parent = target);
    PERFORM snowflake_migrate_internal.run_partition_statements(swap.statements);
    PERFORM snowflake_migrate_internal.require_same(swap.dependents, snowflake_migrate_internal.describe_whole(first), first::text);
    EXECUTE format('SET LOCAL lock_timeout = %L', former_timeout);
    RETURN ARRAY(SELECT format('ALTER TABLE %s VALIDATE CONSTRAINT %I', snowflake_migrate_internal.name_of(k.conrelid::regclass), k.conname)
                 FROM snowflake_migrate_internal.incoming_keys(first) AS k
                 WHERE NOT k.convalidated AND coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true) ORDER BY 1);
END
$function$;

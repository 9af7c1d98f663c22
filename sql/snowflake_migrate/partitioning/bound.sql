-- A table in use becomes partitioned by the time of its key, without a rewrite: it becomes the
-- first partition, FROM (MINVALUE) TO (a bound ahead), of a new table that takes its name.
--
-- As for keys, the state is what the catalog shows; nothing else is recorded.
--
-- This file: the CHECK that spares ATTACH PARTITION the reading of all rows.

-- The bound of the CHECK; NULL from a time on, with which the CHECK refuses nothing any more. So
-- no row is refused if the swap is late, interrupted or forgotten, without anything to be done.
--
-- PostgreSQL evaluates an IMMUTABLE function of constants once for each statement, when it
-- prepares the CHECK. The swap relies on that, too: the bound is a constant for ATTACH. It is not
-- one for queries: the constraint is committed NOT VALID only, so no plan excludes rows by it. The
-- swap validates it in its own transaction, and drops it.
CREATE FUNCTION snowflake_migrate_internal.partition_bound(bound bigint, expires_at bigint)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN CASE WHEN 1000 * extract(epoch FROM clock_timestamp()) < expires_at THEN bound END;
END
$function$;

-- The CHECK of a table: its name, the bound and the time from which it refuses nothing.
CREATE FUNCTION snowflake_migrate_internal.partition_check(target regclass)
RETURNS TABLE (name name, bound bigint, expires_at timestamp with time zone) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    -- As PostgreSQL writes the arguments.
    SELECT k.conname, p.arguments[1]::bigint, to_timestamp(p.arguments[2]::bigint / 1000.0)
    FROM pg_constraint AS k
    JOIN pg_depend AS d ON d.classid = 'pg_constraint'::regclass AND d.objid = k.oid AND d.refclassid = 'pg_proc'::regclass
                       AND d.refobjid = 'snowflake_migrate_internal.partition_bound(bigint, bigint)'::regprocedure
    CROSS JOIN LATERAL regexp_match(pg_get_expr(k.conbin, k.conrelid), '''([0-9]+)''::bigint, ''([0-9]+)''::bigint') AS p (arguments)
    WHERE k.conrelid = target AND k.contype = 'c' AND p.arguments IS NOT NULL
    ORDER BY k.conname
    LIMIT 1
$function$;

-- The bound for a table: the end of the step of the calendar that contains the time `lead` from
-- now. The CHECK refuses nothing from half of it on: a statement that has begun before still has it.
CREATE FUNCTION snowflake_migrate_internal.new_partition_bound(settings jsonb, OUT bound bigint, OUT expires_at timestamp with time zone)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    step CONSTANT interval := (settings ->> 'step')::interval;
    zone CONSTANT text := snowflake_partitions_internal.zone_of(step, settings ->> 'time_zone');
    lead CONSTANT interval := (settings ->> 'lead')::interval;
    begun CONSTANT timestamp with time zone := clock_timestamp();
BEGIN
    bound := snowflake_internal.min_id(snowflake_partitions_internal.partition_boundary(
        snowflake_partitions_internal.step_start(begun + lead, step, zone), step, 1, zone));
    expires_at := begun + (snowflake_internal.time_of(bound) - begun) / 2;
END
$function$;

-- The statement that adds the CHECK, in place of a former one.
CREATE FUNCTION snowflake_migrate_internal.partition_check_statement(target regclass, column_name name, settings jsonb)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('ALTER TABLE %s %sADD CONSTRAINT snowflake_partition_bound CHECK (%I OPERATOR(pg_catalog.<) '
                  'snowflake_migrate_internal.partition_bound(%L::pg_catalog.int8, %L::pg_catalog.int8)) NO INHERIT NOT VALID',
                  snowflake_migrate_internal.name_of(target),
                  (SELECT format('DROP CONSTRAINT %I, ', c.name) FROM snowflake_migrate_internal.partition_check(target) AS c),
                  column_name, b.bound, floor(1000 * extract(epoch FROM b.expires_at)))
    FROM snowflake_migrate_internal.new_partition_bound(settings) AS b
$function$;

-- Adds it. The bound is that of the moment at which the step is executed, not of the plan's.
CREATE FUNCTION snowflake_migrate_internal.add_partition_check(target regclass, settings jsonb)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    key_name name;
BEGIN
    PERFORM snowflake_migrate_internal.require_owner(target);
    key_name := snowflake_migrate_internal.partition_key_of(target);
    PERFORM snowflake_migrate_internal.exclude_others(ARRAY[(target, key_name)::snowflake_migrate_internal.key]);
    PERFORM snowflake_migrate_internal.require_partitionable(target, key_name, false);
    PERFORM snowflake_migrate_internal.lock(ARRAY[target], text 'ACCESS EXCLUSIVE');
    PERFORM snowflake_internal.run(target, snowflake_migrate_internal.partition_check_statement(target, key_name, settings));
END
$function$;

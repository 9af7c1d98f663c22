-- The plan.

-- How a table is to be partitioned, as an argument of steps: checked before anything is done.
CREATE FUNCTION snowflake_migrate_internal.partition_settings(step interval, time_zone text, ahead interval, lead interval)
RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET intervalstyle = 'postgres'
AS $function$
BEGIN
    PERFORM snowflake_migrate_internal.require_partitions_extension();
    PERFORM snowflake_partitions_internal.check_arguments(step, time_zone, ahead, NULL);
    IF lead IS NULL OR NOT isfinite(lead) OR lead <= interval '0' OR lead > interval '1 year' THEN
        PERFORM snowflake_internal.refuse('22023', format('invalid lead: %s', coalesce(lead::text, 'NULL')),
            hint => 'The first partition ends at least so long from now. Use for example ''1 day''.');
    END IF;
    RETURN jsonb_build_object('step', step::text, 'time_zone', time_zone, 'ahead', ahead::text, 'lead', lead::text);
END
$function$;

-- Trigger functions that ask for the table that fires them: for each row, it is a partition then.
CREATE FUNCTION snowflake_migrate_internal.partition_trigger_note(target regclass)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT '; functions of triggers that use TG_TABLE_NAME or TG_RELID get the partition: '
           || snowflake_migrate_internal.some_names(array_agg(DISTINCT f.oid::regprocedure::text ORDER BY f.oid::regprocedure::text))
    FROM pg_trigger AS t JOIN pg_proc AS f ON f.oid = t.tgfoid
    WHERE t.tgrelid = target AND NOT t.tgisinternal AND t.tgtype & 1 = 1 AND f.prosrc ~* 'tg_(table_name|relname|relid)'
    HAVING count(*) > 0
$function$;

-- The steps that a table needs before it is partitioned, and the one that does it.
CREATE FUNCTION snowflake_migrate_internal.swap_to_partitions(target regclass, column_name name, settings jsonb)
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
AS $function$
DECLARE
    found_check record;
    bound record;
    keys CONSTANT snowflake_migrate_internal.key[] := ARRAY[(target, column_name)::snowflake_migrate_internal.key];
    dependents CONSTANT text := snowflake_migrate_internal.dependents_note(snowflake_migrate_internal.whole(target));
BEGIN
    SELECT c.* INTO found_check FROM snowflake_migrate_internal.partition_check(target) AS c WHERE c.expires_at > clock_timestamp();
    IF found_check.name IS NULL THEN
        bound := snowflake_migrate_internal.new_partition_bound(settings);
        RETURN NEXT snowflake_migrate_internal.step(text 'bound', target, text 'ACCESS EXCLUSIVE',
            text 'adds a check of the highest ID to %s',
            format('if executed now, below %s, the ID of %s. It refuses nothing from %s on, so a swap that is late or forgotten '
                   'harms no writer. Holds the lock for a moment, after short attempts to acquire it', bound.bound,
                   date_trunc('second', snowflake_internal.time_of(bound.bound)), date_trunc('second', bound.expires_at)),
            ARRAY[snowflake_migrate_internal.command(text 'bound', target, settings::text)], keys, names => ARRAY[target::text]);
    END IF;
    RETURN NEXT snowflake_migrate_internal.step(text 'partition', target, text 'ACCESS EXCLUSIVE',
        text 'makes %s the first partition of a new table of its name',
        format('first validates the check, which reads all rows and blocks no writer, then locks the table%s, after short attempts, '
               'and only changes the catalog. The table becomes partition %s. New rows need the partitions of '
               'snowflake_partitions.maintain(). Indexes of new partitions have the default storage parameters%s%s',
               CASE WHEN cardinality(snowflake_migrate_internal.partition_relations(target)) > 1
                    THEN format(' with %s', snowflake_migrate_internal.some_names(ARRAY(
                        SELECT r.relation::text FROM unnest(snowflake_migrate_internal.partition_relations(target)) AS r (relation)
                        WHERE r.relation <> target ORDER BY 1))) ELSE '' END,
               quote_ident(snowflake_migrate_internal.first_partition_name(target)), '; ' || dependents,
                   snowflake_migrate_internal.partition_trigger_note(target)),
        ARRAY[snowflake_migrate_internal.command(text 'partition', target, settings::text, ARRAY[column_name])], keys,
        names => ARRAY[target::text], work => snowflake_migrate_internal.scan_work(target));
END
$function$;

-- The steps that are left once it is partitioned: foreign keys to validate, and statistics of the
-- table as a whole, which autovacuum does not collect.
CREATE FUNCTION snowflake_migrate_internal.steps_after_partitioning(target regclass)
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH own AS MATERIALIZED (
        SELECT c.oid, c.relkind = 'p' AS is_done, snowflake_migrate_internal.name_of(target) AS quoted_name FROM pg_class AS c
            WHERE c.oid = target
    ), planned (place, name, step) AS (
        SELECT 1, k.conrelid::regclass::text || ' ' || k.conname, snowflake_migrate_internal.step(
                   text 'validation', k.conrelid::regclass, text 'SHARE UPDATE EXCLUSIVE', text 'validates foreign key %s of %s',
                   format('reads the existing rows. %s is locked in ROW SHARE mode', target),
                   ARRAY[snowflake_migrate_internal.command(text 'alter', k.conrelid::regclass,
                       format('ALTER TABLE %s VALIDATE CONSTRAINT %I',
                       snowflake_migrate_internal.name_of(k.conrelid::regclass), k.conname))],
                   names => ARRAY[quote_ident(k.conname), k.conrelid::regclass::text],
                   work => snowflake_migrate_internal.reference_work(k.conrelid::regclass, target))
        FROM own AS c CROSS JOIN LATERAL snowflake_migrate_internal.incoming_keys(target) AS k
        WHERE (NOT c.is_done OR NOT k.convalidated) AND coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true)
      UNION ALL
        SELECT 2, '', snowflake_migrate_internal.step(text 'analyze', target, text 'SHARE UPDATE EXCLUSIVE', text 'analyzes %s',
                   text 'autovacuum analyzes the partitions only, not the table as a whole: repeat it from time to time',
                   ARRAY[snowflake_migrate_internal.command(text 'plain', target, 'ANALYZE ' || c.quoted_name)],
                       names => ARRAY[target::text])
        FROM own AS c
        WHERE NOT c.is_done OR EXISTS (
            SELECT FROM pg_inherits AS i
            WHERE i.inhparent = target AND pg_relation_size(i.inhrelid) > 0
              -- -1 is unknown.
              AND (SELECT r.reltuples FROM pg_class AS r WHERE r.oid = target) < 0)
    )
    SELECT p.step FROM planned AS p ORDER BY p.place, p.name
$function$;

-- The remaining steps, from a sequence to partitions.
CREATE FUNCTION snowflake_migrate_internal.partition_plan(target regclass, settings jsonb, path text)
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    key_name name;
    steps snowflake_migrate_internal.step[] := ARRAY[]::snowflake_migrate_internal.step[];
BEGIN
    IF target IS NULL THEN
        PERFORM snowflake_internal.refuse('22004', 'target must not be NULL');
    END IF;
    PERFORM snowflake_migrate_internal.require_owner(target);
    IF (SELECT c.relkind FROM pg_class AS c WHERE c.oid = target) = 'p' THEN
        key_name := (snowflake_partitions_internal.key_of(target)).column_name;
    ELSE
        key_name := snowflake_migrate_internal.partition_key_of(target);
        PERFORM snowflake_migrate_internal.require_partitionable(target, key_name, true);
        IF NOT snowflake_internal.has_ids(target, key_name) THEN
            steps := ARRAY(SELECT p FROM snowflake_migrate_internal.plan(
                ARRAY[(target, key_name)::snowflake_migrate_internal.key], true, path, false) AS p);
        END IF;
        steps := steps || ARRAY(SELECT s FROM snowflake_migrate_internal.swap_to_partitions(target, key_name, settings) AS s);
    END IF;
    steps := steps || ARRAY(SELECT s FROM snowflake_migrate_internal.steps_after_partitioning(target) AS s);
    RETURN QUERY
        SELECT s.place::integer, s.kind, s.relation, s.lock_level, s.rewrites, s.in_transaction, s.what, s.note, s.commands, s.keys,
            s.names, s.work
        FROM unnest(steps) WITH ORDINALITY AS s (
            number, kind, relation, lock_level, rewrites, in_transaction, what, note, commands, keys, names, work, place);
END
$function$;

-- The statements of the step that partitions the table, for the script of ddl().
CREATE FUNCTION snowflake_migrate_internal.partition_script(target regclass, column_name name, settings jsonb)
RETURNS TABLE (role oid, is_own_path boolean, content text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    owner CONSTANT oid := (SELECT c.relowner FROM pg_class AS c WHERE c.oid = target);
    name CONSTANT text := snowflake_migrate_internal.name_of(target);
    bound bigint := (SELECT c.bound FROM snowflake_migrate_internal.partition_check(target) AS c);
BEGIN
    bound := coalesce(bound, (snowflake_migrate_internal.new_partition_bound(settings)).bound);
    RETURN QUERY SELECT owner, true, format('ALTER TABLE %s VALIDATE CONSTRAINT snowflake_partition_bound;', name);
    RETURN QUERY SELECT s.role, true, snowflake_migrate_internal.terminated(s.statement)
                 FROM snowflake_migrate_internal.partition_statements(target, column_name, bound)
                     WITH ORDINALITY AS s (place, rank, role, statement, number) ORDER BY s.number;
    RETURN QUERY SELECT owner, true, format('SELECT snowflake_partitions.configure(%L, %L, %L, %L);', name,
                                            settings ->> 'step', settings ->> 'time_zone', settings ->> 'ahead');
    RETURN QUERY SELECT owner, true, format(E'SELECT snowflake_partitions.statements(%L) \\gexec', name);
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.partition_ddl(target regclass, settings jsonb, path text)
RETURNS SETOF text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
BEGIN
    RETURN QUERY SELECT d.line FROM snowflake_migrate_internal.ddl(
        ARRAY(SELECT p FROM snowflake_migrate_internal.partition_plan(target, settings, path) AS p),
        format('The statements by which %s becomes partitioned.', target), true, path, false) AS d (line);
END
$function$;

-- Whether an ID has the node number of this server.
CREATE FUNCTION snowflake_internal.has_this_node(id bigint) RETURNS boolean
    STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_has_this_node_wrapper';

-- The trigger of snowflake_watch: checks a replicated row that has the node number
-- of this server.
CREATE FUNCTION snowflake_internal.watch() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_watch_wrapper';

-- Whether a column is watched by a trigger as snowflake_watch() creates it, under any
-- name. Its definition is compared as text with that of a trigger for the columns that
-- its condition depends on: a condition that was changed may never be true. The text
-- does not show how a trigger is enabled, nor that of a partition is disabled.
CREATE FUNCTION snowflake_internal.is_watched(target regclass, column_name name)
RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
AS $function$
    SELECT EXISTS (
        SELECT FROM pg_trigger AS t
        JOIN pg_class AS c ON c.oid = t.tgrelid
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        CROSS JOIN LATERAL (
            SELECT string_agg(format(CASE a.atttypid WHEN 'bigint'::regtype THEN 'snowflake_internal.has_this_node(new.%I)'
                                                     ELSE 'snowflake_internal.has_this_node((new.%I)::bigint)' END, a.attname),
                              ' OR ' ORDER BY a.attnum),
                   count(*) > 1,
                   bool_or(a.attname = is_watched.column_name)
            FROM pg_attribute AS a
            WHERE a.attrelid = t.tgrelid AND a.attnum > 0 AND NOT a.attisdropped
              AND EXISTS (SELECT FROM pg_depend AS d
                          WHERE d.classid = 'pg_trigger'::regclass AND d.objid = t.oid
                            AND d.refclassid = 'pg_class'::regclass AND d.refobjid = t.tgrelid AND d.refobjsubid = a.attnum)
        ) AS w (condition, has_several, has_column)
        WHERE t.tgrelid = is_watched.target AND t.tgfoid = 'snowflake_internal.watch()'::regprocedure
          AND t.tgenabled = 'R' AND w.has_column
          AND pg_get_triggerdef(t.oid) = format(
              'CREATE TRIGGER %I AFTER INSERT ON %I.%I FOR EACH ROW WHEN (%s) EXECUTE FUNCTION snowflake_internal.watch()',
              t.tgname, n.nspname, c.relname, CASE WHEN w.has_several THEN format('(%s)', w.condition) ELSE w.condition END)
          AND NOT EXISTS (SELECT FROM pg_partition_tree(is_watched.target) AS p
                          JOIN pg_trigger AS o ON o.tgrelid = p.relid
                          WHERE o.tgfoid = t.tgfoid AND o.tgparentid <> 0 AND o.tgenabled <> 'R'))
$function$;

-- The triggers that notice a second server with this server's node number.
--
-- ENABLE REPLICA: they fire for rows that replication brings, and for sessions
-- with session_replication_role = replica. Other sessions never evaluate the
-- condition. AFTER, because COPY inserts in batches unless a table has a BEFORE
-- trigger. The condition keeps rows of other servers out of the queue of triggers.
--
-- The statements run with the privileges of the table's owner, also if a superuser
-- calls the procedure.
CREATE PROCEDURE snowflake_watch(target regclass DEFAULT NULL, column_name name DEFAULT NULL)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $procedure$
DECLARE
    distributed CONSTANT oid[] := snowflake_internal.distributed_tables();
    watched record;
    left_out text[];
BEGIN
    IF target = ANY (distributed) THEN
        PERFORM snowflake_internal.refuse('0A000', format('cannot watch %s, which is a distributed table of Citus', target),
            detail => 'Distributed tables have no triggers.',
            hint => 'Use snowflake_audit() to find IDs that this server cannot have issued.');
    END IF;
    IF target IS NULL AND column_name IS NOT NULL THEN
        PERFORM snowflake_internal.refuse('22023', 'column_name needs a target',
            hint => 'Pass the table as the first argument.');
    END IF;
    FOR watched IN
        SELECT t.table_oid, t.column_names FROM snowflake_internal.tables_with_ids(target, column_name) AS t
    LOOP
        IF watched.table_oid = ANY (distributed) THEN
            left_out := left_out || watched.table_oid::text;
            CONTINUE;
        END IF;
        BEGIN
            PERFORM snowflake_internal.refuse('42710', format('trigger "snowflake_watch" of %s is not of the extension', watched.table_oid),
                hint => 'Rename the trigger.')
            FROM pg_trigger AS t
            WHERE t.tgrelid = watched.table_oid AND t.tgname = 'snowflake_watch' AND t.tgfoid <> 'snowflake_internal.watch()'::regprocedure;
            -- With the privileges of the table's owner, which the caller must have.
            PERFORM snowflake_internal.run(watched.table_oid, format(
                'CREATE OR REPLACE TRIGGER snowflake_watch AFTER INSERT ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION snowflake_internal.watch()',
                watched.table_oid,
                (SELECT string_agg(format('snowflake_internal.has_this_node(NEW.%I)', c.name), ' OR ' ORDER BY c.position)
                 FROM unnest(watched.column_names) WITH ORDINALITY AS c (name, position))));
            PERFORM snowflake_internal.run(watched.table_oid, format('ALTER TABLE %s ENABLE REPLICA TRIGGER snowflake_watch', watched.table_oid));
        EXCEPTION WHEN duplicate_object OR insufficient_privilege THEN
            -- Of all tables, the others are watched.
            IF target IS NOT NULL THEN
                RAISE;
            END IF;
            RAISE WARNING '% is not watched: %', watched.table_oid, SQLERRM USING ERRCODE = SQLSTATE;
        END;
    END LOOP;
    IF NOT FOUND THEN
        IF target IS NULL THEN
            RAISE NOTICE 'no table has a column whose default is a snowflake ID'
                USING HINT = 'Call snowflake_watch() again when such tables are created.';
        ELSE
            PERFORM snowflake_internal.refuse('22023', format('no column of %s is known to have snowflake IDs', target),
                hint => 'Pass a column of type bigint as the second argument.');
        END IF;
    ELSIF target IS NULL THEN
        RAISE NOTICE 'tables that are created later are not watched'
            USING HINT = 'Call snowflake_watch() for each of them. snowflake_audit_tables() reports those that are not watched.';
    END IF;
    IF left_out IS NOT NULL THEN
        RAISE NOTICE 'distributed tables of Citus are not watched, because they have no triggers: %',
            concat(array_to_string(left_out[:10], ', '), ', and ' || nullif(greatest(cardinality(left_out) - 10, 0), 0) || ' more');
    END IF;
END
$procedure$;
COMMENT ON PROCEDURE snowflake_watch(target regclass, column_name name) IS
    'Creates a trigger that notices replicated rows whose IDs another server issued with this server''s node number; without arguments for all tables that get snowflake IDs by default now, not for those created later';

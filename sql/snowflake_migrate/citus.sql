-- The steps for tables of Citus: the statements that it takes on distributed tables. The
-- new default comes before the boundary. In between, what deletes by time fails, because
-- the boundary is not known.

-- Whether this node of Citus takes statements that change tables: the coordinator.
CREATE FUNCTION snowflake_migrate_internal.is_coordinator()
RETURNS boolean LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    here integer := 0;
BEGIN
    -- The name is put in, because tools that check functions look for the table.
    IF to_regclass('pg_catalog.pg_dist_local_group') IS NOT NULL THEN
        EXECUTE format('SELECT max(g.groupid) FROM pg_catalog.%I AS g', 'pg_dist_local_group') INTO here;
    END IF;
    RETURN coalesce(here, 0) = 0;
END
$function$;

-- The statement that gives a column of a table of Citus its new default. Shards have neither
-- the default nor the identity.
CREATE FUNCTION snowflake_migrate_internal.default_statement(target regclass, column_name name)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('ALTER TABLE %s %sALTER COLUMN %I SET DEFAULT %s.snowflake_nextval()', snowflake_migrate_internal.name_of(target),
                  CASE WHEN a.attidentity <> '' THEN format('ALTER COLUMN %I DROP IDENTITY, ', a.attname) ELSE '' END,
                  a.attname, snowflake_migrate_internal.core_schema())
    FROM pg_attribute AS a WHERE a.attrelid = target AND a.attname = column_name
$function$;

-- Sets the default on this node alone, as Citus does not do for a distribution column, nor for
-- one with an identity. It is called on each node.
CREATE FUNCTION snowflake_migrate_internal.set_default_here(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET citus.enable_ddl_propagation = off SET lock_timeout = '5s'
AS $function$
BEGIN
    PERFORM snowflake_migrate_internal.require_owner(target);
    IF NOT snowflake_internal.has_ids(target, column_name) THEN
        PERFORM snowflake_internal.run(target, snowflake_migrate_internal.default_statement(target, set_default_here.column_name));
    END IF;
END
$function$;

-- Sets the default of such a column on all nodes, on this one last: as long as it
-- has the former one, the migration is not complete, and the plan has the step again. On the
-- others it stays also if this transaction is rolled back: IDs of both kinds are unique.
CREATE FUNCTION snowflake_migrate_internal.set_default_on_nodes(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    failures text;
BEGIN
    PERFORM snowflake_migrate_internal.require_owner(target);
    IF snowflake_internal.has_other_nodes() THEN
        -- The name is put in, because tools that check functions look for the function.
        EXECUTE format(
            'SELECT string_agg(format(''%%s: %%s'', n.name, left(coalesce(r.result, ''not active''), 200)), chr(10) ORDER BY n.name)
             FROM snowflake_internal.citus_nodes() AS n
             LEFT JOIN pg_catalog.%I($1) AS r ON format(''%%s:%%s'', r.nodename, r.nodeport) = n.name
             WHERE NOT n.is_here AND r.success IS NOT TRUE', 'run_command_on_workers')
        INTO failures
        USING format('SELECT snowflake_migrate_internal.set_default_here(%L::pg_catalog.regclass, %L::pg_catalog.name)',
                     snowflake_migrate_internal.name_of(target), set_default_on_nodes.column_name);
        IF failures IS NOT NULL THEN
            PERFORM snowflake_internal.refuse('55000',
                format('cannot set the default of column "%s" of %s on all nodes of Citus', column_name, target),
                detail => failures,
                hint => 'Remove the cause, and request the plan again. Nodes that have the default keep it: their IDs are unique.');
        END IF;
    END IF;
    PERFORM snowflake_migrate_internal.set_default_here(target, column_name);
END
$function$;

-- Fails unless the table is still one of Citus, and its column as it was planned.
CREATE FUNCTION snowflake_migrate_internal.check_citus_switch(target regclass, column_name name, planned_way text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT snowflake_migrate_internal.is_recorded(target, column_name) THEN
        PERFORM snowflake_internal.refuse('55000', format('the sequence of column "%s" of %s is not recorded yet', column_name, target),
            hint => 'Run the statements of snowflake_migrate.plan() in order.');
    ELSIF snowflake_internal.has_ids(target, column_name)
       OR planned_way IS DISTINCT FROM (SELECT c.way FROM snowflake_migrate_internal.citus_keys(ARRAY[
              (target, column_name)::snowflake_migrate_internal.key]) AS c)
    THEN
        PERFORM snowflake_internal.refuse('55000', format('column "%s" of %s has changed since the plan', column_name, target),
            hint => 'Request the plan again.');
    END IF;
END
$function$;

-- What gives a column its new default. Citus refuses another type as long as there is a sequence.
CREATE FUNCTION snowflake_migrate_internal.citus_switch(target regclass, column_name name, way text)
RETURNS snowflake_migrate_internal.command[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.command(text 'call', target,
               format('snowflake_migrate_internal.check_citus_switch(%L::pg_catalog.regclass, %L::pg_catalog.name, %L::pg_catalog.text)',
                      snowflake_migrate_internal.name_of(target), column_name, way))
           || CASE way
                  WHEN 'nodes' THEN ARRAY[snowflake_migrate_internal.command(text 'call', target,
                      format('snowflake_migrate_internal.set_default_on_nodes(%L::pg_catalog.regclass, %L::pg_catalog.name)',
                             snowflake_migrate_internal.name_of(target), column_name))]
                  WHEN 'widen' THEN ARRAY[
                      snowflake_migrate_internal.command(text 'alter', target, format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT',
                          snowflake_migrate_internal.name_of(target), column_name)),
                      snowflake_migrate_internal.command(text 'run', target, 'DROP SEQUENCE '
                          || snowflake_migrate_internal.name_of(snowflake_migrate_internal.owned_sequence(target, column_name))),
                      snowflake_migrate_internal.command(text 'alter', target, format('ALTER TABLE %s ALTER COLUMN %I TYPE bigint',
                          snowflake_migrate_internal.name_of(target), column_name)),
                      snowflake_migrate_internal.command(text 'alter', target,
                          snowflake_migrate_internal.default_statement(target, column_name))]
                  ELSE ARRAY[snowflake_migrate_internal.command(text 'alter', target,
                      snowflake_migrate_internal.default_statement(target, column_name))] END
$function$;

-- The steps after those that record the sequences.
CREATE FUNCTION snowflake_migrate_internal.citus_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH key AS MATERIALIZED (
        SELECT c.*, row_number() OVER () AS place, ARRAY[c.target::text, quote_ident(c.column_name)] AS names
        FROM snowflake_migrate_internal.citus_keys(keys) AS c
        WHERE NOT snowflake_internal.has_ids(c.target, c.column_name)
    ), planned (place, part, step) AS (
        SELECT k.place, 1, snowflake_migrate_internal.step(text 'switch', k.target, text 'ACCESS EXCLUSIVE',
            text 'gives %s.%s snowflake IDs',
            snowflake_migrate_internal.new_ids_note(ARRAY[(k.target, k.column_name)::snowflake_migrate_internal.key])
            || '. New IDs have the number of the node that evaluates the default'
            || CASE k.way WHEN 'nodes' THEN '. Sets the default on each node, because Citus does not for a distribution column and '
                                            'an identity: on the others also if this transaction is rolled back'
                          WHEN 'widen' THEN '. Drops the sequence, and rewrites all shards and their indexes' ELSE '' END,
            snowflake_migrate_internal.citus_switch(k.target, k.column_name, k.way),
            ARRAY[(k.target, k.column_name)::snowflake_migrate_internal.key], rewrites => k.way = 'widen', names => k.names)
        FROM key AS k
      UNION ALL
        SELECT k.place, 2, snowflake_migrate_internal.step(text 'boundary', k.target, text 'ACCESS EXCLUSIVE',
            text 'sets the boundary of %s.%s',
            format('on all nodes. Smaller numbers than %s are old', snowflake_internal.oldest_id()),
            ARRAY(SELECT snowflake_migrate_internal.command(text 'alter', s.relation, s.statement)
                  FROM snowflake_internal.boundary_statements(k.target, k.column_name, snowflake_internal.oldest_id(), NULL) AS s),
            names => k.names)
        FROM key AS k
        WHERE snowflake_internal.set_boundary_of(k.target, k.column_name) IS NULL
    )
    SELECT p.step FROM planned AS p ORDER BY p.place, p.part
$function$;

-- Fails for a table of Citus: what it was before cannot be restored there. Says what can.
CREATE FUNCTION snowflake_migrate_internal.refuse_revert_of_citus(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    origin CONSTANT snowflake_migrate_internal.origins := snowflake_migrate_internal.origin(target, column_name);
    way CONSTANT text := (SELECT c.way FROM snowflake_migrate_internal.citus_keys(ARRAY[
        (target, column_name)::snowflake_migrate_internal.key]) AS c);
    sequence CONSTANT regclass := coalesce(snowflake_migrate_internal.sequence_by_name(origin.sequence_schema, origin.sequence_name),
                                           snowflake_migrate_internal.owned_sequence(target, column_name));
BEGIN
    IF NOT snowflake_internal.is_in_shards(target) THEN
        RETURN;
    END IF;
    PERFORM snowflake_internal.refuse('0A000', format('cannot revert column "%s" of %s, which is a table of Citus', column_name, target),
        detail => 'Citus has sequences of its own on each node, and takes only some changes of a column.',
        hint => CASE WHEN sequence IS NOT NULL AND way = 'default'
                     THEN format('Restore the default yourself, on the coordinator: '
                                 'ALTER TABLE %s ALTER COLUMN %I SET DEFAULT nextval(%L). '
                                 'Its values continue where they were on each node.',
                                 target, column_name, sequence)
                     ELSE format('SELECT undistribute_table(%L). It makes the table anew, so then create a sequence '
                                 'above the highest old ID, and set the default of the column to it.', target) END);
END
$function$;

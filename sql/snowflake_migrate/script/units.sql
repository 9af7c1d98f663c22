-- The units of a script for another server: what changes together, made of the commands of a
-- plan that keeps the sequences.

-- phase: what is dropped (1), changed (2) and created again (3). Which materialized views are
-- filled (4: their names) is only known where the script runs: a dump of the schema has none filled.
CREATE TYPE snowflake_migrate_internal.script_statement AS (
    unit integer, kind text, what text, lock_level text, relation regclass, changed regclass[], phase integer, role oid, statement text
);
COMMENT ON TYPE snowflake_migrate_internal.script_statement IS 'A statement of a script for another server';

-- The columns that it widens, those of partitions and child tables too.
CREATE FUNCTION snowflake_migrate_internal.script_columns(keys snowflake_migrate_internal.key[])
RETURNS TABLE (relation regclass, attname name, declared_by regclass) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT f.relation, a.attname, r.relation
    FROM snowflake_migrate_internal.linked_columns(keys) AS r
    JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
    CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(r.relation, a.attname) AS f
    WHERE r.is_narrow
$function$;

-- The statements of one command.
CREATE FUNCTION snowflake_migrate_internal.script_command(
    command snowflake_migrate_internal.command, keys snowflake_migrate_internal.key[]
) RETURNS TABLE (phase integer, role oid, statement text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF command.kind <> 'widen' THEN
        RETURN QUERY
            SELECT 2, s.role, s.content
            FROM snowflake_migrate_internal.command_script(command, keys, true) AS s
            -- A unit takes its locks itself.
            WHERE command.kind NOT IN ('lock', 'lock in time');
        RETURN;
    END IF;
    RETURN QUERY
        SELECT CASE s.phase WHEN 1 THEN 1 ELSE 3 END, s.role, snowflake_migrate_internal.terminated(s.statement)
        FROM snowflake_migrate_internal.dependent_statements(keys, true) WITH ORDINALITY AS s (phase, role, statement, identity, place)
        WHERE s.phase < 3 ORDER BY s.place;
    RETURN QUERY
        SELECT 4, d.owner, snowflake_migrate_internal.name_of(d.relation)
        FROM snowflake_migrate_internal.dependents(keys) AS d
        WHERE d.kind = 'materialized view' ORDER BY d.place, d.identity;
    RETURN QUERY
        SELECT 2, c.relowner, snowflake_migrate_internal.terminated(w.statement)
        FROM snowflake_migrate_internal.widening_statements(keys) WITH ORDINALITY AS w (relation, statement, place)
        JOIN pg_class AS c ON c.oid = w.relation
        ORDER BY w.place;
    RETURN QUERY
        WITH tree AS (
            SELECT array_agg(DISTINCT f.relation) AS tables
            FROM unnest(keys) AS k CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(k.target, k.column_name) AS f
            JOIN pg_class AS c ON c.oid = f.relation AND c.relkind IN ('r', 'p')
        ), again (role, statement) AS (
            SELECT c.relowner, t.sql
            FROM tree CROSS JOIN LATERAL snowflake_migrate_internal.statistics_targets(tree.tables) AS t
            JOIN pg_class AS c ON c.oid = t.relation
          UNION ALL
            SELECT NULL::oid, t.statement
            FROM tree CROSS JOIN LATERAL snowflake_migrate_internal.trigger_state_statements(
                snowflake_migrate_internal.trigger_states(tree.tables)) AS t
        )
        SELECT 2, a.role, snowflake_migrate_internal.terminated(a.statement) FROM again AS a ORDER BY a.statement;
END
$function$;

-- All statements in order. Only a step that changes something is a unit.
CREATE FUNCTION snowflake_migrate_internal.script_statements(keys snowflake_migrate_internal.key[], path text)
RETURNS SETOF snowflake_migrate_internal.script_statement LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH statement AS MATERIALIZED (
        SELECT p.number, p.kind, p.lock_level, p.relation,
               format(p.what, VARIADIC coalesce(p.names, '{}')) || snowflake_migrate_internal.work_words(p.work) AS what,
               CASE WHEN p.kind = 'widen' THEN ARRAY(SELECT k.target FROM unnest(p.keys) AS k)
                    WHEN p.rewrites THEN ARRAY[p.relation] ELSE '{}' END AS changed,
               c.place AS command, s.*
        FROM snowflake_migrate_internal.plan(keys, false, path, true) AS p
        CROSS JOIN LATERAL generate_subscripts(p.commands, 1) AS c (place)
        CROSS JOIN LATERAL (SELECT p.commands[c.place]) AS given (command)
        CROSS JOIN LATERAL snowflake_migrate_internal.script_command(given.command, p.keys)
            WITH ORDINALITY AS s (phase, role, statement, place)
    )
    SELECT (dense_rank() OVER (ORDER BY s.number)::integer, s.kind, s.what, s.lock_level, s.relation, s.changed, s.phase, s.role,
            s.statement)::snowflake_migrate_internal.script_statement
    FROM statement AS s ORDER BY s.number, s.command, s.phase, s.place
$function$;

-- Refuses what a script without the library, run by one role, cannot do.
CREATE FUNCTION snowflake_migrate_internal.require_script(
    keys snowflake_migrate_internal.key[], statements snowflake_migrate_internal.script_statement[]
) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    names CONSTANT text := snowflake_migrate_internal.key_names(keys);
    refused text;
BEGIN
    IF cardinality(statements) = 0 THEN
        PERFORM snowflake_internal.refuse('55000', format('nothing has to be widened for %s', names),
            detail => 'Its columns are bigint already, and so is its sequence.');
    END IF;
    SELECT snowflake_migrate_internal.some_names(array_agg(DISTINCT n.name)) INTO refused
    FROM unnest(statements) AS s
    CROSS JOIN LATERAL (SELECT coalesce(s.relation::text, 'a table with views')) AS n (name)
    WHERE s.role IS NULL;
    IF refused IS NOT NULL THEN
        PERFORM snowflake_internal.refuse('0A000', format('cannot make a script for %s', names),
            detail => format('Triggers of foreign keys are not in their usual state: %s. Only a superuser can set it again.', refused),
            hint => 'ALTER TABLE ... ENABLE TRIGGER ALL in the schema that the script is made from, and on the other server.');
    END IF;
    SELECT snowflake_migrate_internal.some_names(array_agg(DISTINCT quote_ident(pg_get_userbyid(r.role)))) INTO refused
    FROM (SELECT s.role FROM unnest(statements) AS s
        UNION
          SELECT c.relowner FROM snowflake_migrate_internal.script_columns(keys) AS w JOIN pg_class AS c ON c.oid = w.relation) AS r
    HAVING count(DISTINCT r.role) > 1;
    IF refused IS NOT NULL THEN
        PERFORM snowflake_internal.refuse('0A000', format('cannot make one script for %s', names),
            detail => format('What it changes has several owners: %s. SET ROLE does not protect one from the code of another.', refused),
            hint => 'Give what belongs together to one role, or migrate by ddl() as its parts say.');
    END IF;
END
$function$;

-- The relations that it compares: the tables of all columns that hold the same IDs, and the sequences.
CREATE FUNCTION snowflake_migrate_internal.script_relations(keys snowflake_migrate_internal.key[])
RETURNS TABLE (relation regclass, name text, kind "char") LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH linked AS MATERIALIZED (
        SELECT DISTINCT f.relation, a.attname
        FROM snowflake_migrate_internal.linked_columns(keys) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(r.relation, a.attname) AS f
    )
    SELECT c.oid::regclass, snowflake_migrate_internal.name_of(c.oid::regclass), c.relkind
    FROM pg_class AS c
    WHERE c.oid IN (SELECT l.relation FROM linked AS l
                  UNION
                    SELECT s.sequence FROM linked AS l
                    CROSS JOIN LATERAL snowflake_migrate_internal.source(l.relation, l.attname) AS s)
$function$;

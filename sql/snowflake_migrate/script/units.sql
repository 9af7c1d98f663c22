-- The units of a script for another server: what changes together, made of the commands of a
-- plan that keeps the sequences.

-- phase: what is dropped (1), changed (2) and created again (3). Which materialized views are
-- filled (4: their names) is only known where the script runs: a dump of the schema has none filled.
CREATE TYPE snowflake_migrate_internal.script_statement AS (
    unit integer, kind text, what text, lock_level text, relation regclass, changed regclass[], phase integer, role oid, statement text
);

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
        SELECT s.phase, s.role, s.statement FROM snowflake_migrate_internal.widen_script(keys, true) AS s WHERE s.phase < 4;
    RETURN QUERY
        SELECT 4, d.owner, snowflake_migrate_internal.name_of(d.relation)
        FROM snowflake_migrate_internal.dependents(keys) AS d
        WHERE d.kind = 'materialized view' ORDER BY d.place, d.identity;
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
          SELECT c.relowner FROM snowflake_migrate_internal.linked_tree(keys) AS w JOIN pg_class AS c ON c.oid = w.relation
          WHERE w.is_narrow) AS r
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
RETURNS TABLE (relation regclass, name text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH linked AS MATERIALIZED (
        SELECT DISTINCT f.relation, f.attname FROM snowflake_migrate_internal.linked_tree(keys) AS f
    )
    SELECT c.oid::regclass, snowflake_migrate_internal.name_of(c.oid::regclass)
    FROM pg_class AS c
    WHERE c.oid IN (SELECT l.relation FROM linked AS l
                  UNION
                    SELECT s.sequence FROM linked AS l
                    CROSS JOIN LATERAL snowflake_migrate_internal.source(l.relation, l.attname) AS s)
$function$;

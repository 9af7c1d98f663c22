-- The units of a script that widens keys while their tables are in use: the steps of the online plan, as
-- plain statements where one transaction does it, and calls of the motor where something loops or waits.

-- A unit of an online script for another server, and its text without its frame.
CREATE TYPE snowflake_migrate_internal.online_unit AS (
    number integer, kind text, what text, explanation text, is_new_phase boolean, lines text
);

-- The trigger functions: PL/pgSQL cannot read a column of a variable name fast. Two tables whose columns have one name share it.
CREATE FUNCTION snowflake_migrate_internal.shadow_functions(keys snowflake_migrate_internal.key[])
RETURNS TABLE (narrow name, shadow_name name, function_name text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT s.narrow, s.shadow_name, 'widening_shadow_' || row_number() OVER (ORDER BY s.narrow COLLATE "C")
    FROM snowflake_migrate_internal.shadows(keys) AS s
    GROUP BY s.narrow, s.shadow_name
$function$;

-- The tables whose update triggers get a condition, each with the number of its procedures.
CREATE FUNCTION snowflake_migrate_internal.guarded_tables(keys snowflake_migrate_internal.key[])
RETURNS TABLE (relation regclass, place bigint) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT t.relation, row_number() OVER (ORDER BY t.relation::text)
    FROM snowflake_migrate_internal.unguarded_triggers(ARRAY(
        SELECT DISTINCT s.relation FROM snowflake_migrate_internal.shadows(keys) AS s)) AS t
    GROUP BY t.relation
$function$;

-- The statements of a step in one transaction, with the search_path that each has in the plan.
CREATE FUNCTION snowflake_migrate_internal.online_transaction(
    step snowflake_migrate_internal.step, keys snowflake_migrate_internal.key[], mark text
) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH statement AS MATERIALIZED (
        SELECT c.place AS command, s.place, s.is_own_path, s.content
        FROM unnest(step.commands) WITH ORDINALITY AS c (kind, relation, sql, columns, relations, role, place)
        CROSS JOIN LATERAL (
            SELECT true AS is_own_path, format(E'CREATE TRIGGER %I BEFORE INSERT OR UPDATE ON %s\n        FOR EACH ROW '
                                               'WHEN (NEW.%I IS DISTINCT FROM NEW.%I) EXECUTE FUNCTION :"schema".%s();', c.columns[3],
                                               snowflake_migrate_internal.name_of(c.relation), c.columns[2], c.columns[1],
                                               f.function_name) AS content, 1 AS place
            FROM snowflake_migrate_internal.shadow_functions(keys) AS f WHERE c.kind = 'shadow trigger' AND f.narrow = c.columns[1]
          UNION ALL
            SELECT s.is_own_path, snowflake_migrate_internal.for_psql(s.content), s.place
            FROM snowflake_migrate_internal.command_script(step.commands[c.place], keys, true)
                WITH ORDINALITY AS s (role, is_own_path, content, place)
            WHERE c.kind NOT IN ('lock', 'lock in time', 'shadow trigger')) AS s
    )
    SELECT concat(E'BEGIN;\n',
        coalesce((SELECT string_agg(format(E'CALL :"schema".widening_lock(%L, %L);\n',
                                           snowflake_migrate_internal.names_of(c.relations), c.sql),
                                    '' ORDER BY c.place)
                  FROM unnest(step.commands) WITH ORDINALITY AS c (kind, relation, sql, columns, relations, role, place)
                  WHERE c.kind = 'lock'),
                 -- No session waits behind a request of these locks.
                 E'SET LOCAL lock_timeout = 0;\n'),
        (SELECT string_agg(CASE WHEN s.is_own_path IS DISTINCT FROM s.former
                                THEN CASE WHEN s.is_own_path THEN E'SET LOCAL search_path = pg_catalog, pg_temp;\n'
                                          ELSE E'SET LOCAL search_path = :table_path;\n' END ELSE '' END || s.content || E'\n',
                           '' ORDER BY s.command, s.place)
         FROM (SELECT s.*, lag(s.is_own_path, 1, true) OVER (ORDER BY s.command, s.place) AS former FROM statement AS s) AS s),
        mark, E'COMMIT;\n')
$function$;

-- An index is built outside of a transaction. An interrupted build leaves an invalid one.
CREATE FUNCTION snowflake_migrate_internal.online_index(
    step snowflake_migrate_internal.step, keys snowflake_migrate_internal.key[], mark text
) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format(
$text$SELECT EXISTS (SELECT FROM pg_catalog.pg_index AS i
               WHERE i.indexrelid = pg_catalog.to_regclass(%1$L) AND i.indrelid = %5$L::pg_catalog.regclass AND i.indisvalid) AS valid
\gset widening_
\if :widening_valid
\else
SET client_min_messages = error;
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS %2$s;
SET client_min_messages = warning;
SET search_path = :table_path;
%3$s
SET search_path = pg_catalog, pg_temp;
SET lock_timeout = :'lock_timeout';
\endif
%4$s$text$, x.name, x.name, snowflake_migrate_internal.for_psql(i.definition || ';'), mark, snowflake_migrate_internal.name_of(i.relation))
    FROM snowflake_migrate_internal.shadow_indexes(keys) AS i
    JOIN pg_class AS c ON c.oid = i.index JOIN pg_namespace AS n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL (SELECT format('%I.%I', n.nspname, i.shadow_name)) AS x (name)
    WHERE i.definition = (step.commands[1]).sql
$function$;

-- The tables that the swap locks. A materialized view cannot be locked, and a view would lock tables of others.
CREATE FUNCTION snowflake_migrate_internal.online_locked(keys snowflake_migrate_internal.key[])
RETURNS text[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY(SELECT snowflake_migrate_internal.name_of(c.oid::regclass) FROM pg_class AS c
                 WHERE c.oid = ANY (snowflake_migrate_internal.swap_relations(keys)) AND c.relkind IN ('r', 'p') ORDER BY c.oid)
$function$;

-- The tables whose definitions are compared, and the materialized views of theirs.
CREATE FUNCTION snowflake_migrate_internal.online_compared(keys snowflake_migrate_internal.key[])
RETURNS text[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY(SELECT DISTINCT snowflake_migrate_internal.name_of(s.relation) AS name FROM snowflake_migrate_internal.shadows(keys) AS s
                 ORDER BY name)
$function$;
CREATE FUNCTION snowflake_migrate_internal.online_materialized_views(keys snowflake_migrate_internal.key[])
RETURNS text[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY(SELECT snowflake_migrate_internal.name_of(d.relation)
                 FROM snowflake_migrate_internal.dependents(snowflake_migrate_internal.swap_columns(keys)) AS d
                 WHERE d.kind = 'materialized view' ORDER BY d.identity)
$function$;

CREATE FUNCTION snowflake_migrate_internal.online_unit_lines(
    step snowflake_migrate_internal.step, keys snowflake_migrate_internal.key[], number integer
) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    mark CONSTANT text := format(E'INSERT INTO :"schema".widening_unit VALUES (%s, pg_catalog.clock_timestamp());\n', number);
    quoted_name CONSTANT text := snowflake_migrate_internal.name_of(step.relation);
BEGIN
    RETURN CASE
        WHEN step.kind = 'copy' THEN concat(
            E'SET client_min_messages = :messages;\nSET search_path = pg_catalog, :"schema", pg_temp;\n'
            'CALL :"schema".widening_backfill();\n'
            'SET search_path = pg_catalog, pg_temp;\nSET client_min_messages = warning;\n', mark)
        WHEN step.kind = 'index' THEN snowflake_migrate_internal.online_index(step, keys, mark)
        WHEN step.kind IN ('guard', 'unguard') THEN (
            SELECT format(E'BEGIN;\nCALL :"schema".widening_lock(%L, ''ACCESS EXCLUSIVE'');\n'
                          'CALL :"schema".widening_%s(%L, %s);\n%sCOMMIT;\n',
                          ARRAY[quoted_name], step.kind, quoted_name, g.place, mark)
            FROM snowflake_migrate_internal.guarded_tables(keys) AS g WHERE g.relation = step.relation)
        WHEN step.kind = 'wait' THEN concat(
            E'SET client_min_messages = error;\nSET lock_timeout = 0;\nDROP INDEX CONCURRENTLY IF EXISTS :"schema".widening_wait;\n'
            'CREATE INDEX CONCURRENTLY widening_wait ON :"schema".widening_unit (done_at);\n'
            'SET lock_timeout = :''lock_timeout'';\nSET client_min_messages = warning;\n', mark)
        WHEN step.kind = 'swap' THEN format(
            E'SET client_min_messages = :messages;\nCALL :"schema".widening_swap(%s, %L, %L, %L);\n'
            'SET client_min_messages = warning;\n', number,
            snowflake_migrate_internal.online_locked(keys), snowflake_migrate_internal.online_compared(keys),
            snowflake_migrate_internal.online_materialized_views(keys))
        ELSE snowflake_migrate_internal.online_transaction(step, keys, mark) END;
END
$function$;

-- The units in order. Before the swap, all transactions have to end that could read rows as they were before the copy: they
-- would find no keys in them. Only members of pg_read_all_stats see such transactions, but any role may wait for them.
CREATE FUNCTION snowflake_migrate_internal.online_units(
    keys snowflake_migrate_internal.key[], steps snowflake_migrate_internal.step[]
) RETURNS SETOF snowflake_migrate_internal.online_unit LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH step AS MATERIALIZED (
        SELECT p.number AS step, 1 AS place, p AS given FROM unnest(steps) AS p
      UNION ALL
        SELECT s.number, 0, snowflake_migrate_internal.step(text 'wait', (keys[1]).target, text 'ACCESS SHARE',
            text 'waits for transactions that are older than the copy',
            text 'by an index of its own. No session waits for it. If it takes long, look for old transactions: pg_stat_activity', NULL)
        FROM unnest(steps) AS s WHERE s.kind = 'swap'
    ), numbered AS MATERIALIZED (
        SELECT row_number() OVER (ORDER BY s.step, s.place)::integer AS number, s.given,
               (s.given).kind IS DISTINCT FROM lag((s.given).kind) OVER (ORDER BY s.step, s.place) AS is_new_phase
        FROM step AS s
    )
    SELECT (n.number, (n.given).kind,
            CASE (n.given).kind WHEN 'copy' THEN format('copies the rows of %s', snowflake_migrate_internal.counted(
                                                            cardinality(snowflake_migrate_internal.online_compared(keys)), text 'table'))
                                ELSE format((n.given).what, VARIADIC coalesce((n.given).names, '{}')) END,
            -- Sizes are not known where the script is made.
            (n.given).lock_level || ': ' || CASE (n.given).kind
                WHEN 'copy' THEN 'in batches, one transaction each, at the pace of widening_pace. Each row is written again.'
                WHEN 'index' THEN 'without a lock that blocks readers or writers. It waits for transactions that are open.'
                WHEN 'validation' THEN 'reads the table. If it fails (23514) for a copied column, something has written rows without the '
                                       'trigger: UPDATE widening_table SET filenode = NULL, delete the copy from '
                                       'widening_unit, run the script again.'
                ELSE (n.given).note END,
            n.is_new_phase,
            snowflake_migrate_internal.online_unit_lines(n.given, keys, n.number))::snowflake_migrate_internal.online_unit
    FROM numbered AS n ORDER BY n.number
$function$;

-- Dropping the objects, creating them again, and comparing them with what there
-- was. The caller holds the locks.

-- Runs the saved statements of a phase, each with the rights of its role. A
-- failure is reported with the object's name. Errors that are not about the object are
-- not: after one of a lock, the swap of an online migration tries again.
CREATE FUNCTION snowflake_migrate_internal.run_saved(saved jsonb, phase integer, path text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    entry record;
    message text;
    detail text;
BEGIN
    FOR entry IN
        SELECT (s.entry ->> 'role')::oid AS role, s.entry ->> 'statement' AS statement, s.entry ->> 'identity' AS identity
        FROM jsonb_array_elements(saved -> 'statements') WITH ORDINALITY AS s (entry, place)
        WHERE (s.entry ->> 'phase')::integer = run_saved.phase
        ORDER BY s.place
    LOOP
        BEGIN
            PERFORM snowflake_migrate_internal.run_as(entry.role, entry.statement, path);
        EXCEPTION
            WHEN lock_not_available OR deadlock_detected OR serialization_failure OR insufficient_resources
                 OR read_only_sql_transaction THEN
                RAISE;
            WHEN OTHERS THEN
                GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
                PERFORM snowflake_internal.refuse('55000',
                    format('%s cannot be %s', entry.identity, CASE run_saved.phase WHEN 1 THEN 'dropped'
                           WHEN 2 THEN 'created again with the wider columns' ELSE 'filled again' END),
                    detail => format('%s (SQLSTATE %s)%s', message, SQLSTATE, coalesce(E'\n' || nullif(detail, ''), '')),
                    hint => 'Nothing was changed by this statement. Change the object so that it accepts bigint, '
                            'or drop it and create it again afterwards.');
        END;
    END LOOP;
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.drop_dependents(saved jsonb)
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.run_saved(saved, 1, NULL)
$function$;

-- Constants are read as dependent_statements() has written them. Bodies
-- of functions are not checked, because they may use other search paths.
CREATE FUNCTION snowflake_migrate_internal.create_dependents(saved jsonb)
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET check_function_bodies = off
SET default_tablespace = ''
AS $function$
    SELECT snowflake_migrate_internal.run_saved(saved, 2, NULL)
$function$;

-- The first difference between two descriptions, if there is one. After a column
-- has another type, an expression can mean another function or operator of the
-- same name. It must not be one of a role whose code did not run there before.
CREATE FUNCTION snowflake_migrate_internal.dependent_difference(before jsonb, after jsonb)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN f.before IS NULL THEN format('%s did not depend on the columns before.', f.identity)
                WHEN f.after IS NULL THEN format('%s does not exist any more, or does not depend on the columns.', f.identity)
                WHEN p.property = 'code' THEN format('%s would call functions or operators of %s.', f.identity,
                    (SELECT string_agg(quote_ident(o.owner), ', ')
                     FROM jsonb_array_elements_text(p.after -> 0) AS o (owner) WHERE NOT p.before -> 0 ? o.owner))
                ELSE format('%s: %s was %s, but would be %s.', f.identity, p.property, p.before -> 0, p.after -> 0) END
    FROM (SELECT coalesce(b.key, a.key) AS identity, b.value AS before, a.value AS after
          FROM jsonb_each(dependent_difference.before) AS b
          FULL JOIN jsonb_each(dependent_difference.after) AS a ON a.key = b.key) AS f
    LEFT JOIN LATERAL (
        -- In arrays, because format() writes a null of JSON differently from NULL.
        SELECT k.property, jsonb_build_array(f.before -> k.property) AS before, jsonb_build_array(f.after -> k.property) AS after
        FROM jsonb_object_keys(f.before) AS k (property)
        WHERE CASE WHEN k.property = 'code' THEN EXISTS (
                       SELECT FROM jsonb_array_elements_text(f.after -> k.property) AS o (owner)
                       WHERE NOT f.before -> k.property ? o.owner AND o.owner <> f.before ->> 'owner'
                         AND NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = o.owner AND r.rolsuper))
                   ELSE f.before -> k.property IS DISTINCT FROM f.after -> k.property END) AS p ON true
    WHERE f.before IS NULL OR f.after IS NULL OR p.property IS NOT NULL
    ORDER BY f.identity, p.property
    LIMIT 1
$function$;

-- Fails unless the objects that depend on `what` are as they were.
CREATE FUNCTION snowflake_migrate_internal.require_same(before jsonb, after jsonb, what text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    difference CONSTANT text := snowflake_migrate_internal.dependent_difference(before, after);
BEGIN
    IF difference IS NOT NULL THEN
        PERFORM snowflake_internal.refuse('55000', format('objects that depend on %s would not be as they were', what),
            detail => difference, hint => 'Nothing was changed by this statement. Drop the object, and create it again afterwards.');
    END IF;
END
$function$;

-- The statements that widen columns, one for each table.
CREATE FUNCTION snowflake_migrate_internal.widening_statements(columns snowflake_migrate_internal.key[])
RETURNS TABLE (relation regclass, statement text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT given.target, format('ALTER TABLE %s %s', snowflake_migrate_internal.name_of(given.target),
                                string_agg(format('ALTER COLUMN %I TYPE bigint', a.attname), ', ' ORDER BY a.attnum))
    FROM unnest(columns) AS given
    JOIN pg_attribute AS a ON a.attrelid = given.target AND a.attname = given.column_name AND a.atttypid <> 'int8'::regtype
    GROUP BY given.target
    ORDER BY given.target
$function$;

-- Widens columns together with what depends on them. The tables may be several,
-- because a view of two of them is then created again only once.
CREATE FUNCTION snowflake_migrate_internal.widen(columns snowflake_migrate_internal.key[], path text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    names CONSTANT text := (SELECT string_agg(c.target::text, ', ' ORDER BY c.place)
                            FROM unnest(columns) WITH ORDINALITY AS c (target, column_name, place));
    dependents regclass[];
    tables regclass[];
    saved jsonb;
    states jsonb;
    targets_again snowflake_migrate_internal.command[];
BEGIN
    IF columns IS NULL OR EXISTS (SELECT FROM unnest(columns) AS c WHERE num_nulls(c.target, c.column_name) > 0) THEN
        PERFORM snowflake_internal.refuse('22023', 'columns must be an array without NULL');
    END IF;
    PERFORM snowflake_migrate_internal.require_read_committed();
    PERFORM snowflake_migrate_internal.require_owner(c.target) FROM unnest(columns) AS c;
    PERFORM snowflake_migrate_internal.exclude_others(columns);
    -- Locked as sessions that use the views do: those first, then the tables.
    dependents := snowflake_migrate_internal.dependent_relations(columns);
    tables := ARRAY(SELECT DISTINCT f.relation
                    FROM unnest(columns) AS given
                    CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(given.target, given.column_name) AS f
                    JOIN pg_class AS c ON c.oid = f.relation AND c.relkind IN ('r', 'p')
                    ORDER BY f.relation);
    FOR attempt IN 1 .. 2 LOOP
        PERFORM snowflake_migrate_internal.refuse_obstacles(
            ARRAY(SELECT o FROM snowflake_migrate_internal.dependent_obstacles(columns) AS o),
            format('cannot create again what depends on columns of %s', names),
            text 'Nothing was changed by this statement. Remove the obstacles, then run it again.');
        EXIT WHEN attempt = 2;
        PERFORM snowflake_internal.lock_table(r, text 'ACCESS EXCLUSIVE') FROM unnest(dependents || tables) AS r;
    END LOOP;
    IF NOT snowflake_migrate_internal.dependent_relations(columns) <@ (dependents || tables) THEN
        PERFORM snowflake_internal.refuse('55000', format('the views of %s have changed in the meantime', names),
            hint => 'Nothing was changed by this statement. Run it again.');
    END IF;
    states := snowflake_migrate_internal.trigger_states(tables);
    targets_again := ARRAY(SELECT t FROM snowflake_migrate_internal.statistics_targets(tables) AS t ORDER BY t.sql);
    PERFORM snowflake_migrate_internal.pin_dependents(columns);
    saved := snowflake_migrate_internal.save_dependents(columns);
    PERFORM snowflake_migrate_internal.drop_dependents(saved);
    PERFORM snowflake_internal.run(w.relation, w.statement, path) FROM snowflake_migrate_internal.widening_statements(columns) AS w;
    PERFORM snowflake_migrate_internal.run_all(targets_again);
    PERFORM snowflake_migrate_internal.restore_trigger_states(states) WHERE states IS NOT NULL;
    PERFORM snowflake_migrate_internal.create_dependents(saved);
    PERFORM snowflake_migrate_internal.run_saved(saved, 3, path);
    PERFORM snowflake_migrate_internal.require_same(
        saved -> 'description', snowflake_migrate_internal.describe_dependents(columns), text 'the columns');
END
$function$;

-- Functions that sessions have compiled with the former types of the columns.
--
-- A session compiles a PL/pgSQL function once. If a column has another type since,
-- the function fails until the session ends (42804), and with it each write that
-- fires it as a trigger. A session compiles a function again if the function has
-- been altered. So functions that may use the tables are altered, to what they are.

-- PL/pgSQL functions that triggers of the tables call, or whose source contains the
-- name of one as a whole identifier, quoted or not.
CREATE FUNCTION snowflake_migrate_internal.compiled_functions(relations regclass[])
RETURNS TABLE (function regprocedure, is_trigger boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH trigger_function AS MATERIALIZED (
        SELECT DISTINCT g.tgfoid AS oid
        FROM snowflake_internal.tree(relations) AS t (oid) JOIN pg_trigger AS g ON g.tgrelid = t.oid AND NOT g.tgisinternal
    ), named AS MATERIALIZED (
        SELECT n.text,
               -- A backslash before each character that has a meaning in regular expressions.
               '(?<![[:alnum:]_$])' || regexp_replace(n.text, E'([\\\\^$.|?*+(){}\\[\\]])', E'\\\\\\1', 'g')
               || '(?![[:alnum:]_$])' AS pattern
        -- In double quotes, a double quote is written twice.
        FROM (SELECT DISTINCT replace(lower(c.relname), '"', '""') AS text FROM pg_class AS c WHERE c.oid = ANY (relations)) AS n
    ), compiled AS MATERIALIZED (
        SELECT p.oid, lower(p.prosrc) AS source
        FROM pg_proc AS p
        JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname = 'plpgsql'
        WHERE p.oid NOT IN (SELECT e.oid FROM snowflake_migrate_internal.functions_of_extensions() AS e (oid))
    )
    SELECT p.oid::regprocedure, t.oid IS NOT NULL
    FROM compiled AS p
    LEFT JOIN trigger_function AS t ON t.oid = p.oid
    WHERE t.oid IS NOT NULL
       -- Most functions contain no such name, which is faster to find out.
       OR EXISTS (SELECT FROM named AS n WHERE CASE WHEN strpos(p.source, n.text) > 0 THEN p.source ~ n.pattern END)
$function$;

-- Makes all sessions compile them again, once this transaction has committed. A
-- function that cannot be altered does not prevent the migration.
--
-- snowflake_migrate.run() runs the steps with the privileges of the tables' owners, who
-- may not be able to alter functions of other roles. So it leaves this to its end, and
-- calls this function with the caller's privileges: see run_plan().
CREATE FUNCTION snowflake_migrate_internal.recompile(keys snowflake_migrate_internal.key[])
RETURNS void LANGUAGE plpgsql
-- The cost of a function has all its digits.
SET search_path = pg_catalog, pg_temp SET extra_float_digits = 3
AS $function$
DECLARE
    -- The caller has the rights of the owners of all tables that have changed.
    relations CONSTANT regclass[] := ARRAY(
        SELECT DISTINCT r.relation FROM snowflake_migrate_internal.linked_columns(keys) AS r
        JOIN pg_class AS c ON c.oid = r.relation AND pg_has_role(c.relowner, 'USAGE'));
    compiled record;
    left_out text[] := ARRAY[]::text[];
    reasons text[] := ARRAY[]::text[];
    reason text;
BEGIN
    IF current_setting('snowflake_migrate_internal.recompiles_later', true) = 'on' THEN
        RETURN;
    END IF;
    FOR compiled IN
        SELECT f.function, f.is_trigger, p.proowner, p.procost, p.prokind, p.prosecdef
        FROM snowflake_migrate_internal.compiled_functions(relations) AS f
        JOIN pg_proc AS p ON p.oid = f.function
        ORDER BY f.function::text
    LOOP
        IF pg_has_role(compiled.proowner, 'USAGE') AND pg_has_role(compiled.proowner, 'MEMBER') THEN
            BEGIN
                PERFORM snowflake_migrate_internal.run_as(compiled.proowner,
                    CASE compiled.prokind
                        WHEN 'p' THEN format('ALTER PROCEDURE %s SECURITY %s', compiled.function,
                                             CASE WHEN compiled.prosecdef THEN 'DEFINER' ELSE 'INVOKER' END)
                        ELSE format('ALTER FUNCTION %s COST %s', compiled.function, compiled.procost) END, text '');
                CONTINUE;
            EXCEPTION WHEN OTHERS THEN
                reason := SQLERRM;  -- For example altered or dropped at the same time.
            END;
        ELSE
            reason := format('must be able to act as its owner, %I', pg_get_userbyid(compiled.proowner));
        END IF;
        -- Any role can create a function whose source contains a name.
        IF compiled.is_trigger THEN
            left_out := left_out || compiled.function::text;
            reasons := reasons || format('%s: %s.', compiled.function, reason);
        END IF;
    END LOOP;
    IF left_out <> '{}' THEN
        RAISE WARNING 'sessions that have fired these trigger functions have to reconnect: %', array_to_string(left_out, ', ')
            USING DETAIL = 'Sessions keep the types that columns had when they compiled a PL/pgSQL function. '
                           'The functions could not be altered.' || E'\n' || array_to_string(reasons, E'\n'),
                  HINT = 'Altering a function as its owner, for example its COST, makes all sessions compile it again.';
    END IF;
END
$function$;

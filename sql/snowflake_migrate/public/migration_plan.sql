-- The functions have no SET clause, and pass the caller's search path on: planning
-- a query of a table may inline the functions of its indexes. All names are
-- qualified.
CREATE FUNCTION snowflake_migration_plan(
    target regclass, column_name name DEFAULT NULL, online boolean DEFAULT false
) RETURNS TABLE (step integer, statement text, lock_level text, rewrites boolean, in_transaction boolean, note text)
LANGUAGE plpgsql STABLE
AS $function$
BEGIN
    RETURN QUERY
        SELECT s.step, s.statement, s.lock_level, s.rewrites, s.in_transaction, s.note
        FROM snowflake_internal.migration_plan(ARRAY[target], ARRAY[column_name], online,
            pg_catalog.current_setting('search_path'::pg_catalog.text)) AS s;
END
$function$;
COMMENT ON FUNCTION snowflake_migration_plan(target regclass, column_name name, online boolean) IS
    'Returns the remaining migration statements of a column in order, with the lock each takes and whether it rewrites the table; for \gexec';

-- Not an overload: with one, a call with a name in quotes would be ambiguous.
CREATE FUNCTION snowflake_migration_plan_tables(
    targets regclass[], column_names name[] DEFAULT NULL, online boolean DEFAULT false
) RETURNS TABLE (step integer, statement text, lock_level text, rewrites boolean, in_transaction boolean, note text)
LANGUAGE plpgsql STABLE
AS $function$
BEGIN
    RETURN QUERY
        SELECT s.step, s.statement, s.lock_level, s.rewrites, s.in_transaction, s.note
        FROM snowflake_internal.migration_plan(targets, column_names, online,
            pg_catalog.current_setting('search_path'::pg_catalog.text)) AS s;
END
$function$;
COMMENT ON FUNCTION snowflake_migration_plan_tables(targets regclass[], column_names name[], online boolean) IS
    'Returns the remaining migration statements of several tables together: each table is rewritten, or copied, once';

CREATE FUNCTION snowflake_migrate.ddl(
    target regclass, column_name name DEFAULT NULL, also regclass[] DEFAULT NULL, also_columns name[] DEFAULT NULL,
    online boolean DEFAULT false, keep_sequence boolean DEFAULT false
) RETURNS TABLE (statement text)
LANGUAGE plpgsql STABLE
AS $function$
BEGIN
    RETURN QUERY
        SELECT s.line
        FROM snowflake_migrate_internal.ddl(snowflake_migrate_internal.keys(target, column_name, also, also_columns), online,
            pg_catalog.current_setting('search_path'::pg_catalog.text), keep_sequence) AS s (line);
END
$function$;
COMMENT ON FUNCTION snowflake_migrate.ddl(target regclass, column_name name, also regclass[], also_columns name[],
    online boolean, keep_sequence boolean) IS
    'Returns all statements that the steps of snowflake_migrate.plan execute, as a script with comments for review';

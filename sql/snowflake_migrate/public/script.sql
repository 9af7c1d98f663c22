CREATE FUNCTION snowflake_migrate.script(
    target regclass, column_name name DEFAULT NULL, also regclass[] DEFAULT NULL, also_columns name[] DEFAULT NULL,
    online boolean DEFAULT false
) RETURNS text LANGUAGE plpgsql STABLE
AS $function$
BEGIN
    IF online THEN
        RETURN snowflake_migrate_internal.online_script(snowflake_migrate_internal.keys(target, column_name, also, also_columns),
            pg_catalog.current_setting('search_path'::pg_catalog.text), pg_catalog.current_schemas(false)::pg_catalog.text[]);
    END IF;
    RETURN snowflake_migrate_internal.script(snowflake_migrate_internal.keys(target, column_name, also, also_columns),
        pg_catalog.current_setting('search_path'::pg_catalog.text), pg_catalog.current_schemas(false)::pg_catalog.text[]);
END
$function$;
COMMENT ON FUNCTION snowflake_migrate.script(target regclass, column_name name, also regclass[], also_columns name[], online boolean) IS
    'Returns a psql script that widens a column, or those of several tables, on a server without the extension: '
    'in a window, or while the tables are in use';

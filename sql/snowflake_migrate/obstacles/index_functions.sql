-- Indexes whose functions find others by search_path. From PostgreSQL 17 on, building
-- an index and ANALYZE set a search path of pg_catalog and pg_temp themselves, so
-- such an index cannot be built again, whatever the caller's path is. Before, the
-- caller's path is used (src/migrate/owner.rs).

-- The functions are called for a few rows with the search path that PostgreSQL would
-- set. What fails because a name is not found would fail after the table is locked.
CREATE FUNCTION snowflake_migrate_internal.index_function_obstacles(keys snowflake_migrate_internal.key[], online boolean, search_path text)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    built record;
BEGIN
    IF current_setting('server_version_num')::integer < 170000 THEN
        RETURN;
    END IF;
    FOR built IN
        SELECT DISTINCT i.indexrelid, i.indexrelid::regclass AS index, f.relation,
               format('SELECT ROW(%s) FROM ONLY %s LIMIT 10',
                      concat_ws(', ', pg_get_expr(i.indexprs, i.indrelid), pg_get_expr(i.indpred, i.indrelid)),
                      snowflake_migrate_internal.name_of(f.relation)) AS query
        FROM snowflake_migrate_internal.linked_tree(keys) AS f
        JOIN pg_index AS i ON i.indrelid = f.relation AND num_nonnulls(i.indexprs, i.indpred) > 0
        JOIN pg_class AS c ON c.oid = i.indexrelid AND c.relkind = 'i'
        WHERE f.is_narrow
          -- A rewrite builds all indexes, and the online way those that use the column.
          AND (online IS NOT TRUE
               OR EXISTS (SELECT FROM pg_depend AS u WHERE u.classid = 'pg_class'::regclass AND u.objid = i.indexrelid
                            AND u.refclassid = 'pg_class'::regclass AND u.refobjid = f.relation AND u.refobjsubid = f.attribute))
          -- Not where all functions are PostgreSQL's own.
          AND EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                        AND d.refclassid = 'pg_proc'::regclass)
        ORDER BY i.indexrelid
    LOOP
        BEGIN
            PERFORM snowflake_migrate_internal.query(built.relation, built.query);
        EXCEPTION WHEN undefined_function OR undefined_table OR undefined_object OR undefined_column OR invalid_schema_name THEN
            RETURN QUERY SELECT
                built.relation, NULL::name,
                format('index %s uses a function that finds others by search_path (%s), '
                       'and PostgreSQL builds indexes with a search path of its own',
                       built.index, SQLERRM),
                coalesce((SELECT string_agg(format('ALTER FUNCTION %s SET search_path = %s', p.oid::regprocedure,
                                                   coalesce(index_function_obstacles.search_path, p.pronamespace::regnamespace::text)),
                                            '; ' ORDER BY p.oid)
                          FROM pg_depend AS d JOIN pg_proc AS p ON p.oid = d.refobjid
                          WHERE d.classid = 'pg_class'::regclass AND d.objid = built.indexrelid AND d.refclassid = 'pg_proc'::regclass
                            AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS s WHERE s LIKE 'search_path=%')),
                         'Set search_path for the function') || '.', '55000';
        END;
    END LOOP;
END
$function$;

-- Obstacles of TimescaleDB, whose chunks are intervals of numbers: one that is right for a
-- sequence has room for less than a millisecond of IDs, so that new rows make chunks
-- without end. Nothing but the catalog that belongs to that extension is believed.
CREATE FUNCTION snowflake_migrate_internal.hypertable_obstacles(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    a_day CONSTANT bigint := snowflake_migrate_internal.first_id_at(now() + interval '1 day') - snowflake_migrate_internal.first_id_at(now());
    catalog_schema name;
    api_schema name;
    hypertable record;
BEGIN
    SELECT n.nspname, a.nspname INTO catalog_schema, api_schema
    FROM pg_extension AS e
    JOIN pg_namespace AS a ON a.oid = e.extnamespace
    JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e' AND d.classid = 'pg_class'::regclass
    JOIN pg_class AS c ON c.oid = d.objid AND c.relkind = 'r' AND NOT c.relrowsecurity AND c.relname IN ('hypertable', 'dimension')
    JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = '_timescaledb_catalog'
    JOIN pg_attribute AS t ON t.attrelid = c.oid AND NOT t.attisdropped
     AND (t.attname, t.atttypid) IN (('schema_name', 'name'::regtype), ('table_name', 'name'::regtype), ('id', 'int4'::regtype),
                                     ('hypertable_id', 'int4'::regtype), ('column_name', 'name'::regtype), ('interval_length', 'int8'::regtype))
    WHERE e.extname = 'timescaledb' AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    GROUP BY 1, 2
    -- Both tables have an id.
    HAVING count(*) = 7;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    FOR hypertable IN EXECUTE format(
        'SELECT c.oid AS relation, d.column_name, d.interval_length FROM %1$I.hypertable AS h JOIN %1$I.dimension AS d ON d.hypertable_id = h.id
         JOIN pg_namespace AS n ON n.nspname = h.schema_name JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = h.table_name', catalog_schema)
    LOOP
        RETURN QUERY
            SELECT r.relation, r.attname, format('%s is a hypertable by %I, with %s numbers in a chunk: new rows would make chunks without end',
                                                 r.relation, r.attname, hypertable.interval_length),
                   format('Before the migration, give it chunks of a day: SELECT %I.set_chunk_time_interval(%L, %s).', api_schema, r.relation, a_day), '55000'
            FROM snowflake_migrate_internal.columns_of_each(keys) AS r
            -- Less than an hour.
            WHERE r.relation = hypertable.relation AND r.attname = hypertable.column_name AND hypertable.interval_length < a_day / 24;
    END LOOP;
END
$function$;

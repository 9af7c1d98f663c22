-- Obstacles of TimescaleDB, whose chunks are intervals of numbers: one that is right for a
-- sequence has room for less than a millisecond of IDs, so that new rows make chunks
-- without end. Nothing but the catalog that belongs to that extension is believed.
CREATE FUNCTION snowflake_migrate_internal.hypertable_obstacles(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    a_day CONSTANT bigint := snowflake_migrate_internal.first_id_at(now() + interval '1 day')
                             - snowflake_migrate_internal.first_id_at(now());
    api_schema name;
    hypertable oid;
    dimension name;
    numbers bigint;
BEGIN
    SELECT a.nspname INTO api_schema
    FROM pg_extension AS e
    JOIN pg_namespace AS a ON a.oid = e.extnamespace
    JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
    JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind = 'r' AND NOT c.relrowsecurity
    JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = '_timescaledb_catalog'
    JOIN pg_attribute AS t ON t.attrelid = c.oid AND NOT t.attisdropped
    JOIN (VALUES ('hypertable', 'id', 'int4'), ('hypertable', 'schema_name', 'name'), ('hypertable', 'table_name', 'name'),
                 ('dimension', 'hypertable_id', 'int4'), ('dimension', 'column_name', 'name'), ('dimension', 'interval_length', 'int8')
         ) AS known (relation, attribute, type)
      ON (known.relation, known.attribute, known.type::regtype) = (c.relname, t.attname, t.atttypid)
    WHERE e.extname = 'timescaledb' AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    GROUP BY a.nspname HAVING count(*) = 6;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- The name is put in, because tools that check functions look for the tables.
    FOR hypertable, dimension, numbers IN EXECUTE format(
        'SELECT c.oid, d.column_name, d.interval_length
         FROM %1$I.hypertable AS h
         JOIN %1$I.dimension AS d ON d.hypertable_id = h.id
         JOIN pg_namespace AS n ON n.nspname = h.schema_name
         JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = h.table_name', '_timescaledb_catalog')
    LOOP
        RETURN QUERY
            SELECT r.relation, r.attname,
                   format('%s is a hypertable by %I, with %s numbers in a chunk: new rows would make chunks without end',
                          r.relation, r.attname, numbers),
                   format('Before the migration, give it chunks of a day: SELECT %I.set_chunk_time_interval(%L, %s).',
                          api_schema, r.relation, a_day), '55000'
            FROM snowflake_migrate_internal.columns_of_each(keys) AS r
            -- Less than an hour.
            WHERE r.relation = hypertable AND r.attname = dimension AND numbers < a_day / 24;
    END LOOP;
END
$function$;

CREATE FUNCTION snowflake_partitions.ddl(
    parent regclass,
    since timestamp with time zone,
    until timestamp with time zone,
    step interval,
    time_zone text DEFAULT NULL
) RETURNS SETOF text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    key snowflake_partitions_internal.key;
    name CONSTANT text := snowflake_partitions_internal.name_of(parent);
    first_id bigint;
    end_id bigint;
    range snowflake_partitions_internal.range;
BEGIN
    FOR range IN SELECT m.* FROM snowflake_partitions_internal.missing(parent, since, until, step, time_zone) AS m LOOP
        key := coalesce(key, snowflake_partitions_internal.key_of(parent));
        RETURN NEXT format('CREATE TABLE %I.%I PARTITION OF %s FOR VALUES FROM (%L) TO (%L)',
                           key.schema_name, range.name, name, range.low, range.high);
        first_id := coalesce(first_id, range.low);
        end_id := range.high;
    END LOOP;
    PERFORM snowflake_partitions_internal.refuse_default_rows(parent, first_id, end_id) WHERE first_id IS NOT NULL;
END
$function$;
COMMENT ON FUNCTION snowflake_partitions.ddl(parent regclass, since timestamp with time zone, until timestamp with time zone, step interval,
    time_zone text) IS
    E'Returns CREATE TABLE statements for the partitions missing between since and until, one for each step in the time zone; for \\gexec';

-- The partitions that a table needs from now on, and up to now where calls were missed. They
-- continue at the end of the existing ones.
CREATE FUNCTION snowflake_partitions_internal.ahead(parent regclass, at timestamp with time zone)
RETURNS SETOF snowflake_partitions_internal.range LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT m.*
    FROM snowflake_partitions_internal.settings AS s
    CROSS JOIN LATERAL snowflake_partitions_internal.zone_of(s.step, s.time_zone) AS z (name)
    -- A step that begins in this moment is needed, too.
    CROSS JOIN LATERAL snowflake_partitions_internal.missing(
        parent, snowflake_partitions_internal.step_start(at, s.step, z.name),
        greatest(snowflake_partitions_internal.partition_boundary(at, s.ahead, 1, z.name), at + interval '1 microsecond'),
        s.step, z.name) AS m
    WHERE s.parent = ahead.parent
    LIMIT 2001
$function$;

-- The statement that creates a partition.
CREATE FUNCTION snowflake_partitions_internal.creation(parent regclass, range snowflake_partitions_internal.range)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('CREATE TABLE %I.%I PARTITION OF %s FOR VALUES FROM (%L) TO (%L)',
                  k.schema_name, range.name, snowflake_partitions_internal.name_of(parent), range.low, range.high)
    FROM snowflake_partitions_internal.key_of(parent) AS k
$function$;

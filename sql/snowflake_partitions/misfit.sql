-- Steps that do not fit the existing partitions.

CREATE FUNCTION snowflake_partitions_internal.utc_text(at timestamp with time zone)
RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT replace(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '.000000Z', 'Z')
$function$;

-- Of the zones that are configured, one in which all partitions begin at midnight.
CREATE FUNCTION snowflake_partitions_internal.fitting_zone(parent regclass, edge_at timestamp with time zone)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT z.name
    FROM unnest(ARRAY[current_setting('TimeZone'),
                      (SELECT s.reset_val FROM pg_settings AS s WHERE s.name = 'TimeZone'),
                      current_setting('log_timezone'), 'UTC']) WITH ORDINALITY AS z (name, n)
    WHERE date_trunc('day', edge_at, z.name) = edge_at
      AND NOT EXISTS (
          SELECT FROM snowflake_partitions_internal.existing(parent) AS p
          WHERE p.low > 0 AND date_trunc('day', snowflake_internal.time_of(p.low), z.name) <> snowflake_internal.time_of(p.low))
    ORDER BY z.n LIMIT 1
$function$;

-- Fails with what does not fit: 'gap after' or 'gap before' a partition, or an 'overlap' of its
-- beginning or end. The edge is that bound; begins and ends are those of a new partition.
CREATE FUNCTION snowflake_partitions_internal.refuse_misfit(
    parent regclass, problem text, edge bigint, is_end boolean, since timestamp with time zone,
    begins timestamp with time zone, ends timestamp with time zone, step interval, time_zone text
) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    highest_id CONSTANT bigint := 9223372036854775807;
    parent_name CONSTANT name := (snowflake_partitions_internal.key_of(parent)).table_name;
    edge_at CONSTANT timestamp with time zone := snowflake_internal.time_of(edge);
    is_exact CONSTANT boolean := snowflake_internal.min_id(edge_at) = edge;
    is_other_day CONSTANT boolean := is_exact AND NOT snowflake_partitions_internal.is_midnight(edge_at, time_zone)
        AND (snowflake_partitions_internal.parts_of(step)).rest = interval '0';
    zone CONSTANT text := CASE WHEN is_other_day THEN snowflake_partitions_internal.fitting_zone(parent, edge_at) END;
    part record;
BEGIN
    SELECT c.relname AS name, CASE WHEN p.low >= 0 THEN snowflake_internal.time_of(p.low) END AS low_at,
           CASE WHEN p.high < highest_id THEN snowflake_internal.time_of(p.high) END AS high_at
    INTO part
    FROM snowflake_partitions_internal.existing(parent) AS p JOIN pg_class AS c ON c.oid = p.relation
    WHERE CASE WHEN is_end THEN p.high ELSE p.low END = edge;
    PERFORM snowflake_internal.refuse('42P17',
        CASE problem
            WHEN 'gap after' THEN
                format('partitions of "%s" from %s would leave a gap of %s after partition "%s"',
                       parent_name, snowflake_partitions_internal.utc_text(since), since - edge_at, part.name)
            WHEN 'gap before' THEN
                format('partitions of "%s" to %s would leave a gap of %s before partition "%s"',
                       parent_name, snowflake_partitions_internal.utc_text(begins), edge_at - begins, part.name)
            ELSE
                format('partition of "%s" from %s to %s would overlap partition "%s"', parent_name,
                       snowflake_partitions_internal.utc_text(begins), snowflake_partitions_internal.utc_text(ends), part.name) END,
        detail => format('Partition "%s" contains the IDs from %s to %s.', part.name,
                         coalesce(snowflake_partitions_internal.utc_text(part.low_at), 'MINVALUE'),
                         coalesce(snowflake_partitions_internal.utc_text(part.high_at), 'MAXVALUE'))
            || CASE WHEN NOT is_end THEN ''
                    WHEN NOT is_exact THEN format(' Its end, %s, is not the first ID of a time.', edge)
                    ELSE format(' Its end is not a multiple of %s in time zone %s.',
                                step, coalesce(time_zone, current_setting('TimeZone'))) END,
        hint => CASE
            WHEN zone IS NOT NULL THEN format('Pass time_zone => %L, in which the existing partitions begin at midnight.', zone)
            -- Offsets from UTC are multiples of a quarter of an hour.
            WHEN is_other_day AND extract(epoch FROM edge_at) % 900 = 0 THEN
                'Pass the time_zone in which the existing partitions begin at midnight.'
            WHEN problem = 'gap after' THEN
                format('First create a partition FOR VALUES FROM (%L) TO (%L).', edge, snowflake_internal.min_id(since))
            WHEN problem = 'gap before' THEN
                format('First create a partition FOR VALUES FROM (%L) TO (%L).', snowflake_internal.min_id(begins), edge)
            WHEN part.high_at IS NULL THEN
                format('Pass until => %L, where partition "%s" begins, or detach it first.',
                       snowflake_partitions_internal.utc_text(part.low_at), part.name)
            WHEN is_end AND is_exact THEN
                format('Pass since => %L, the end of partition "%s".', snowflake_partitions_internal.utc_text(part.high_at), part.name)
            ELSE 'Choose since and step so that partitions begin and end at the bounds of the existing ones.' END);
END
$function$;

-- Steps of the calendar of a time zone. They are counted by PostgreSQL's own arithmetic: see
-- "Partitions by time" in docs/design.md.

-- Months and days are those of the calendar, the rest is elapsed time.
CREATE FUNCTION snowflake_partitions_internal.parts_of(step interval, OUT months integer, OUT days integer, OUT rest interval)
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT p.months, p.days, step - make_interval(months => p.months, days => p.days)
    FROM (SELECT (12 * extract(year FROM step) + extract(month FROM step))::integer, extract(day FROM step)::integer) AS p (months, days)
$function$;

-- The time of the zone's clocks. Without a zone the session's setting applies: AT TIME ZONE
-- reads the setting 'CET' as an abbreviation, that is a fixed offset.
CREATE FUNCTION snowflake_partitions_internal.local_time(at timestamp with time zone, time_zone text)
RETURNS timestamp LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN time_zone IS NULL THEN at::timestamp ELSE at AT TIME ZONE time_zone END
$function$;

-- Whether a day begins. Not by the local hour: there are zones in which one can begin at 1 o'clock.
CREATE FUNCTION snowflake_partitions_internal.is_midnight(at timestamp with time zone, time_zone text)
RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT at = CASE WHEN time_zone IS NULL THEN date_trunc('day', at) ELSE date_trunc('day', at, time_zone) END
$function$;

-- The time that is a number of steps after another. Months and days are those of the zone's
-- calendar, as timestamptz + interval counts them in the session's. PostgreSQL has that
-- addition with a zone only since 16 (date_add).
CREATE FUNCTION snowflake_partitions_internal.partition_boundary(
    since timestamp with time zone, step interval, count integer, time_zone text
) RETURNS timestamp with time zone LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    parts record;
    boundary timestamp with time zone := since;
    local_at timestamp;
BEGIN
    parts := snowflake_partitions_internal.parts_of(step);
    -- Only then: local time does not tell the two hours apart that are repeated
    -- when daylight saving time ends.
    IF parts.months <> 0 OR parts.days <> 0 THEN
        -- There are days without a midnight. Others have one.
        local_at := snowflake_partitions_internal.local_time(since, time_zone);
        IF snowflake_partitions_internal.is_midnight(since, time_zone) THEN
            local_at := date_trunc('day', local_at);
        END IF;
        local_at := local_at + count * make_interval(months => parts.months, days => parts.days);
        boundary := CASE WHEN time_zone IS NULL THEN local_at::timestamp with time zone ELSE local_at AT TIME ZONE time_zone END;
    END IF;
    RETURN boundary + count * parts.rest;
END
$function$;

-- The beginning of the step of the calendar that contains a time: of months counted from
-- year 0, weeks and other numbers of days from a Monday, hours and less from midnight.
CREATE FUNCTION snowflake_partitions_internal.step_start(at timestamp with time zone, step interval, time_zone text)
RETURNS timestamp with time zone LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    parts CONSTANT record := snowflake_partitions_internal.parts_of(step);
    local_at CONSTANT timestamp := at AT TIME ZONE time_zone;
    number integer;
    start_at timestamp with time zone;
BEGIN
    IF parts.months <> 0 THEN
        number := 12 * extract(year FROM local_at) + extract(month FROM local_at) - 1;
        start_at := date_trunc('month', local_at - make_interval(months => number % parts.months)) AT TIME ZONE time_zone;
    ELSIF parts.days <> 0 THEN
        -- That day was a Monday.
        number := local_at::date - date '2000-01-03';
        start_at := (local_at::date - ((number % parts.days) + parts.days) % parts.days)::timestamp AT TIME ZONE time_zone;
    ELSE
        -- By the offset of this moment: local time repeats an hour when summer time ends.
        start_at := at - make_interval(secs => (extract(epoch FROM local_at) % extract(epoch FROM parts.rest))::double precision);
    END IF;
    -- Where clocks go back to midnight, the second one begins the day.
    RETURN CASE WHEN start_at > at THEN snowflake_partitions_internal.partition_boundary(start_at, step, -1, time_zone) ELSE start_at END;
END
$function$;

-- The zone in which a step is counted. Hours are those of UTC: after a change of the clocks,
-- six hours from the last end are not six hours of that zone's day.
CREATE FUNCTION snowflake_partitions_internal.zone_of(step interval, time_zone text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN p.rest = interval '0' THEN time_zone ELSE 'UTC' END FROM snowflake_partitions_internal.parts_of(step) AS p
$function$;

-- Whether steps continue at the end of a partition: it begins a step of the calendar. Weeks may
-- begin on Sunday and years in July, if that partition is one of these.
CREATE FUNCTION snowflake_partitions_internal.continues(low bigint, high bigint, step interval, time_zone text)
RETURNS boolean LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    at CONSTANT timestamp with time zone := snowflake_internal.time_of(high);
    local_at CONSTANT timestamp := snowflake_partitions_internal.local_time(at, time_zone);
    parts CONSTANT record := snowflake_partitions_internal.parts_of(step);
    is_one_step boolean := false;
BEGIN
    -- A bound by hand can be any ID.
    IF snowflake_internal.min_id(at) <> high THEN
        RETURN false;
    ELSIF parts.months = 0 AND parts.days = 0 THEN
        RETURN extract(epoch FROM local_at) % extract(epoch FROM parts.rest) = 0;
    ELSIF parts.rest <> interval '0' OR least(parts.months, parts.days) <> 0
          OR NOT snowflake_partitions_internal.is_midnight(at, time_zone)
    THEN
        RETURN false;
    END IF;
    IF low >= 0 THEN
        is_one_step := snowflake_partitions_internal.partition_boundary(snowflake_internal.time_of(low), step, 1, time_zone) = at;
    END IF;
    IF parts.months <> 0 THEN
        RETURN extract(day FROM local_at) = 1
            AND (is_one_step OR (12 * extract(year FROM local_at) + extract(month FROM local_at) - 1) % parts.months = 0);
    END IF;
    -- That day was a Monday.
    RETURN is_one_step OR (local_at::date - date '2000-01-03') % parts.days = 0;
END
$function$;

-- The name of a partition contains the time at which it begins, as precise as the steps from
-- the anchor require. Times within a day are in UTC, because local time repeats an hour when
-- daylight saving time ends.
CREATE FUNCTION snowflake_partitions_internal.partition_name(
    parent_name name, begins timestamp with time zone, anchor timestamp with time zone, step interval, time_zone text
) RETURNS name LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    parts CONSTANT record := snowflake_partitions_internal.parts_of(step);
    local_anchor CONSTANT timestamp := snowflake_partitions_internal.local_time(anchor, time_zone);
    is_utc CONSTANT boolean := parts.rest <> interval '0' OR NOT snowflake_partitions_internal.is_midnight(anchor, time_zone);
    label text := CASE
        WHEN is_utc AND date_trunc('minute', parts.rest) = parts.rest AND date_trunc('minute', anchor) = anchor THEN 'YYYYMMDD_HH24MI"utc"'
        WHEN is_utc THEN 'YYYYMMDD_HH24MISSUS"utc"'
        WHEN parts.days <> 0 OR extract(day FROM local_anchor) <> 1 THEN 'YYYYMMDD'
        WHEN parts.months % 12 <> 0 OR extract(month FROM local_anchor) <> 1 THEN 'YYYYMM'
        ELSE 'YYYY' END;
    stem text := parent_name;
BEGIN
    label := '_p' || to_char(snowflake_partitions_internal.local_time(begins, CASE WHEN is_utc THEN 'UTC' ELSE time_zone END), label);
    -- PostgreSQL would truncate the end, which distinguishes the partitions.
    WHILE octet_length(stem || label) > 63 LOOP
        stem := left(stem, -1);
    END LOOP;
    RETURN stem || label;
END
$function$;

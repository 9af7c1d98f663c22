-- The beginning of the step of the calendar that contains a time: of months counted from
-- year 0, weeks and other numbers of days from a Monday, hours and less from midnight.
CREATE FUNCTION snowflake_partitions_internal.step_start(at timestamp with time zone, step interval, time_zone text)
RETURNS timestamp with time zone LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    months CONSTANT integer := 12 * extract(year FROM step) + extract(month FROM step);
    days CONSTANT integer := extract(day FROM step);
    seconds CONSTANT numeric := extract(epoch FROM step - make_interval(months => months, days => days));
    local_at CONSTANT timestamp := at AT TIME ZONE time_zone;
    number integer;
    start_at timestamp with time zone;
BEGIN
    IF months <> 0 THEN
        number := 12 * extract(year FROM local_at) + extract(month FROM local_at) - 1;
        RETURN date_trunc('month', local_at - make_interval(months => number % months)) AT TIME ZONE time_zone;
    ELSIF days <> 0 THEN
        -- That day was a Monday.
        number := local_at::date - date '2000-01-03';
        RETURN (local_at::date - ((number % days) + days) % days)::timestamp AT TIME ZONE time_zone;
    END IF;
    -- By the offset of this moment: local time repeats an hour when summer time ends.
    start_at := at - make_interval(secs => (extract(epoch FROM local_at) % seconds)::double precision);
    RETURN start_at;
END
$function$;

-- The zone in which a step is counted. Hours are those of UTC: after a change of the clocks,
-- six hours from the last end are not six hours of that zone's day.
CREATE FUNCTION snowflake_partitions_internal.zone_of(step interval, time_zone text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN step - date_trunc('day', step) = interval '0' THEN time_zone ELSE 'UTC' END
$function$;

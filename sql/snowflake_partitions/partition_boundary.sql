-- The time that is a number of steps after another. Months and days are those of
-- the time zone's calendar, as timestamptz + interval counts them in the session's.
-- PostgreSQL has that addition with a zone only since 16 (date_add).
--
-- Without a zone the session's setting applies: AT TIME ZONE reads the setting
-- 'CET' as an abbreviation, that is a fixed offset.
CREATE FUNCTION snowflake_partitions_internal.partition_boundary(
    since timestamp with time zone,
    step interval,
    count integer,
    time_zone text
) RETURNS timestamp with time zone LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    step_months integer;
    step_days integer;
    boundary timestamp with time zone;
BEGIN
    IF time_zone IS NULL THEN
        RETURN since + count * step;
    END IF;
    step_months := 12 * extract(year FROM step) + extract(month FROM step);
    step_days := extract(day FROM step);
    boundary := since;
    -- Only then: local time does not tell the two hours apart that are repeated
    -- when daylight saving time ends.
    IF step_months <> 0 THEN
        boundary := (boundary AT TIME ZONE time_zone + count * make_interval(months => step_months)) AT TIME ZONE time_zone;
    END IF;
    IF step_days <> 0 THEN
        boundary := (boundary AT TIME ZONE time_zone + count * make_interval(days => step_days)) AT TIME ZONE time_zone;
    END IF;
    RETURN boundary + count * (step - make_interval(months => step_months, days => step_days));
END
$function$;

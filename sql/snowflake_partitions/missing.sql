-- The partitions that a table does not have yet.

-- Fails if there is no range, or if the step does not advance in it.
CREATE FUNCTION snowflake_partitions_internal.require_steps(
    since timestamp with time zone, until timestamp with time zone, step interval, time_zone text
) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT isfinite(since) OR NOT isfinite(until) OR until < since THEN
        PERFORM snowflake_internal.refuse('22023', format('invalid range of partitions: from %s to %s', since, until),
            detail => 'Both ends must be finite, and the second not before the first.',
            hint => 'Create other partitions by hand, with MINVALUE, MAXVALUE or DEFAULT.');
    ELSIF NOT isfinite(step) THEN
        PERFORM snowflake_internal.refuse('22023', format('invalid interval of partitions: %s', step),
            hint => 'Use a positive interval, for example ''1 day'' or ''1 month''.');
    END IF;
    -- This rejects an unknown time zone, whatever the step is.
    PERFORM snowflake_partitions_internal.local_time(since, time_zone);
    -- The second step is compared too, because a time zone can skip a day (Pacific/Apia did in 2011).
    IF snowflake_partitions_internal.partition_boundary(since, step, 1, time_zone) <= since
       AND snowflake_partitions_internal.partition_boundary(since, step, 2, time_zone) <= since
    THEN
        PERFORM snowflake_partitions_internal.refuse_stall(step, since);
    END IF;
END
$function$;

CREATE FUNCTION snowflake_partitions_internal.refuse_stall(step interval, at timestamp with time zone)
RETURNS void LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_internal.refuse('22023', format('an interval of %s does not advance from %s', step, at),
        hint => 'Use a positive interval, for example ''1 day'' or ''1 month''.')
$function$;

-- The end of the existing partitions, at which steps continue: the last one before an ID
-- that no partition has.
CREATE FUNCTION snowflake_partitions_internal.last_end(existing int8multirange, before bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT max(upper(r)) FROM unnest(existing) AS r
    WHERE upper(r) < before AND NOT existing && int8range(before - 1, before + 1)
$function$;

-- Continues the steps at the end of a partition. Returns the time that these must meet if it is not a
-- multiple of the step.
CREATE FUNCTION snowflake_partitions_internal.resume(
    parent regclass, edge bigint, since timestamp with time zone,
    begins timestamp with time zone, ends timestamp with time zone, step interval, time_zone text
) RETURNS timestamp with time zone LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF (SELECT snowflake_partitions_internal.continues(p.low, p.high, step, time_zone)
        FROM snowflake_partitions_internal.existing(parent) AS p WHERE p.high = edge)
    THEN
        RETURN NULL;
    ELSIF edge > snowflake_internal.min_id(begins) THEN
        PERFORM snowflake_partitions_internal.refuse_misfit(parent, 'overlap', edge, true, since, begins, ends, step, time_zone);
    ELSIF snowflake_internal.min_id(snowflake_internal.time_of(edge)) <> edge THEN
        PERFORM snowflake_partitions_internal.refuse_misfit(parent, 'gap after', edge, true, since, begins, ends, step, time_zone);
    END IF;
    -- Steps from there fit if one of them ends at the time requested.
    RETURN since;
END
$function$;

-- Fails if the next partition leaves a gap shorter than a step, which a later call could not close.
CREATE FUNCTION snowflake_partitions_internal.require_gap(
    parent regclass, existing int8multirange, begins timestamp with time zone, ends timestamp with time zone, step interval, time_zone text
) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    begins_id CONSTANT bigint := snowflake_internal.min_id(begins);
    edge CONSTANT bigint := (SELECT min(lower(r)) FROM unnest(existing) AS r WHERE upper(r) > begins_id);
BEGIN
    IF edge > begins_id AND snowflake_internal.time_of(edge) < ends THEN
        PERFORM snowflake_partitions_internal.refuse_misfit(parent, 'gap before', edge, false, begins, begins, ends, step, time_zone);
    END IF;
END
$function$;

-- The partitions of the steps from since to until. IDs of existing partitions are left out.
-- Where these contain a step in part, and where they end before the first step, the steps
-- continue at that end. That requires the end to be a multiple of the step in the time zone:
-- otherwise the existing partitions are those of another zone or step, and an error prevents a
-- gap.
CREATE FUNCTION snowflake_partitions_internal.missing(
    parent regclass, since timestamp with time zone, until timestamp with time zone, step interval, time_zone text
) RETURNS SETOF snowflake_partitions_internal.range LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    parent_name name;
    existing int8multirange;
    common int8multirange;
    -- Partitions begin at the anchor, and at each step after it.
    anchor timestamp with time zone := since;
    number integer := 0;
    begins timestamp with time zone := since;
    ends timestamp with time zone;
    begins_id bigint;
    ends_id bigint;
    -- The end of an existing partition, at which the steps continue.
    edge bigint;
    meets timestamp with time zone;
    is_stalled boolean := false;
    is_written boolean := false;
BEGIN
    IF parent IS NULL OR since IS NULL OR until IS NULL OR step IS NULL THEN
        RETURN;
    END IF;
    PERFORM snowflake_partitions_internal.require_steps(since, until, step, time_zone);
    parent_name := (snowflake_partitions_internal.key_of(parent)).table_name;
    IF since = until THEN
        RETURN;
    END IF;
    begins_id := snowflake_internal.min_id(since);
    existing := snowflake_partitions_internal.existing_ids(parent);
    edge := snowflake_partitions_internal.last_end(existing, begins_id);
    IF edge IS NOT NULL THEN
        meets := snowflake_partitions_internal.resume(parent, edge, since, begins, ends, step, time_zone);
        anchor := snowflake_internal.time_of(edge);
        begins := anchor;
        begins_id := edge;
    END IF;
    WHILE begins < until LOOP
        number := number + 1;
        -- Not begins + step: after 28 February, later partitions would not return to the 31st.
        ends := snowflake_partitions_internal.partition_boundary(anchor, step, number, time_zone);
        IF ends < begins OR ends = begins AND is_stalled THEN
            PERFORM snowflake_partitions_internal.refuse_stall(step, begins);
        END IF;
        -- A day that the time zone skips.
        is_stalled := ends = begins;
        CONTINUE WHEN is_stalled;
        PERFORM snowflake_partitions_internal.refuse_misfit(parent, 'gap after', edge, true, since, begins, ends, step, time_zone)
        WHERE ends > meets;
        meets := nullif(meets, ends);
        ends_id := snowflake_internal.min_id(ends);
        common := existing * int8multirange(int8range(begins_id, ends_id));
        -- Ranges before the epoch contain no IDs.
        IF isempty(common) AND ends_id > begins_id THEN
            RETURN NEXT ROW(snowflake_partitions_internal.partition_name(parent_name, begins, anchor, step, time_zone),
                            begins_id, ends_id)::snowflake_partitions_internal.range;
            is_written := true;
        ELSIF lower(common) > begins_id THEN
            PERFORM snowflake_partitions_internal.refuse_misfit(
                parent, 'overlap', lower(common), false, since, begins, ends, step, time_zone);
        ELSE
            edge := (SELECT min(upper(r)) FROM unnest(common) AS r);
            IF edge < ends_id THEN
                meets := snowflake_partitions_internal.resume(parent, edge, since, begins, ends, step, time_zone);
                anchor := snowflake_internal.time_of(edge);
                number := 0;
                ends := anchor;
                ends_id := edge;
            END IF;
        END IF;
        begins := ends;
        begins_id := ends_id;
    END LOOP;
    PERFORM snowflake_partitions_internal.require_gap(
        parent, existing, begins, snowflake_partitions_internal.partition_boundary(anchor, step, number + 1, time_zone), step, time_zone)
    WHERE is_written;
END
$function$;

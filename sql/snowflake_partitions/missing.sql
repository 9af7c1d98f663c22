-- Time partitions of a table whose partition key is the ID.
--
-- Steps that existing partitions contain are left out. Where they contain a step
-- in part, and where they end before the first step, the steps continue at that
-- end. That requires the end to be a multiple of the step in the time zone:
-- otherwise the existing partitions are those of another zone or step, and
-- the function raises an error instead of a gap.
CREATE FUNCTION snowflake_partitions_internal.missing(
    parent regclass,
    since timestamp with time zone,
    until timestamp with time zone,
    step interval,
    time_zone text
) RETURNS SETOF snowflake_partitions_internal.range LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    parent_name name;
    step_months integer;
    step_days integer;
    step_time interval;
    highest_id CONSTANT bigint := 9223372036854775807;
    -- The bounds of the existing partitions, in ascending order.
    lows bigint[];
    highs bigint[];
    relations oid[];
    total integer;
    neighbour integer := 1;
    -- Partitions begin at the anchor, and at each step after it.
    anchor timestamp with time zone := since;
    local_anchor timestamp without time zone;
    is_midnight boolean;
    number integer := 0;
    begins timestamp with time zone := since;
    ends timestamp with time zone;
    begins_id bigint;
    ends_id bigint;
    is_stalled boolean := false;
    is_written boolean := false;
    -- The existing partition at whose end the steps continue.
    resumed integer;
    is_exact boolean;
    is_one_step boolean;
    is_multiple boolean;
    -- A boundary that the steps must meet, or there would be a gap.
    meets timestamp with time zone;
    label_format text;
    label_is_utc boolean;
    label text;
    stem name;
    -- The existing partition that does not fit, and how.
    problem text;
    blocking integer;
    blocking_name name;
    low_at timestamp with time zone;
    high_at timestamp with time zone;
    edge_at timestamp with time zone;
    edge_id bigint;
    times text[];
    fitting_zone text;
    advice text;
BEGIN
    IF parent IS NULL OR since IS NULL OR until IS NULL OR step IS NULL THEN
        RETURN;
    END IF;
    IF NOT isfinite(since) OR NOT isfinite(until) OR until < since THEN
        PERFORM snowflake_internal.refuse('22023', format('invalid range of partitions: from %s to %s', since, until),
            detail => 'Both ends must be finite, and the second not before the first.',
            hint => 'Create other partitions by hand, with MINVALUE, MAXVALUE or DEFAULT.');
    END IF;

    IF NOT isfinite(step) THEN
        PERFORM snowflake_internal.refuse('22023', format('invalid interval of partitions: %s', step),
            hint => 'Use a positive interval, for example ''1 day'' or ''1 month''.');
    END IF;

    parent_name := (snowflake_partitions_internal.key_of(parent)).table_name;

    -- This rejects an unknown time zone.
    local_anchor := since AT TIME ZONE time_zone;
    -- The second step is compared too, because a time zone can skip a day
    -- (Pacific/Apia did in 2011).
    IF snowflake_partitions_internal.partition_boundary(since, step, 1, time_zone) <= since
       AND snowflake_partitions_internal.partition_boundary(since, step, 2, time_zone) <= since
    THEN
        PERFORM snowflake_internal.refuse('22023', format('an interval of %s does not advance from %s', step, since),
            hint => 'Use a positive interval, for example ''1 day'' or ''1 month''.');
    END IF;
    step_months := 12 * extract(year FROM step) + extract(month FROM step);
    step_days := extract(day FROM step);
    step_time := step - make_interval(months => step_months, days => step_days);
    IF since = until THEN
        RETURN;
    END IF;

    SELECT array_agg(e.low ORDER BY e.low), array_agg(e.high ORDER BY e.low), array_agg(e.relation ORDER BY e.low)
    INTO lows, highs, relations
    FROM (SELECT p.relation::oid AS relation, coalesce(p.low, -9223372036854775808) AS low, coalesce(p.high, highest_id) AS high
          FROM snowflake_partitions_internal.existing(parent) AS p WHERE NOT p.is_default) AS e
    -- No ID is negative.
    WHERE e.high > 0;
    total := coalesce(cardinality(lows), 0);

    begins_id := snowflake_internal.min_id(begins);
    WHILE neighbour <= total AND highs[neighbour] <= begins_id LOOP
        neighbour := neighbour + 1;
    END LOOP;
    IF neighbour > 1 AND highs[neighbour - 1] < begins_id
       AND (neighbour > total OR lows[neighbour] > begins_id)
    THEN
        resumed := neighbour - 1;
    END IF;

    LOOP
        IF label_format IS NULL THEN
            IF resumed IS NOT NULL THEN
                anchor := CASE WHEN highs[resumed] < highest_id THEN snowflake_internal.time_of(highs[resumed]) END;
            END IF;
            -- Not by the local hour: there are zones in which a day can begin at 1 o'clock.
            IF time_zone IS NULL THEN
                local_anchor := anchor::timestamp without time zone;
                is_midnight := date_trunc('day', anchor) = anchor;
            ELSE
                local_anchor := anchor AT TIME ZONE time_zone;
                is_midnight := date_trunc('day', anchor, time_zone) = anchor;
            END IF;

            IF resumed IS NOT NULL THEN
                -- A bound by hand can be any ID.
                is_exact := coalesce(snowflake_internal.min_id(anchor) = highs[resumed], false);
                -- Weeks may begin on Sunday and years in July, if the last partition is one of these.
                is_one_step := false;
                IF is_exact AND lows[resumed] >= 0 THEN
                    is_one_step := snowflake_partitions_internal.partition_boundary(
                        snowflake_internal.time_of(lows[resumed]), step, 1, time_zone) = anchor;
                END IF;
                IF NOT is_exact THEN
                    is_multiple := false;
                ELSIF step_months > 0 AND step_days = 0 AND step_time = interval '0' THEN
                    is_multiple := is_midnight AND extract(day FROM local_anchor) = 1
                        AND (is_one_step
                             OR (12 * extract(year FROM local_anchor) + extract(month FROM local_anchor) - 1) % step_months = 0);
                ELSIF step_months = 0 AND step_days > 0 AND step_time = interval '0' THEN
                    -- That day was a Monday.
                    is_multiple := is_midnight
                        AND (is_one_step OR (local_anchor::date - date '2000-01-03') % step_days = 0);
                ELSIF step_months = 0 AND step_days = 0 THEN
                    is_multiple := extract(epoch FROM local_anchor) % extract(epoch FROM step_time) = 0;
                ELSE
                    is_multiple := false;
                END IF;

                blocking := resumed;
                meets := NULL;
                IF NOT is_multiple THEN
                    IF highs[resumed] > begins_id THEN
                        problem := 'overlap';
                        EXIT;
                    ELSIF NOT is_exact THEN
                        problem := 'gap after';
                        EXIT;
                    END IF;
                    -- Steps from there fit if one of them ends at the time requested.
                    meets := since;
                END IF;
                number := 0;
                begins := anchor;
                begins_id := highs[resumed];
                neighbour := resumed + 1;
                resumed := NULL;
            END IF;

            -- The name of a partition contains the time at which it begins, as precise as
            -- the step requires. Times within a day are in UTC, because local time repeats
            -- an hour when daylight saving time ends.
            label_is_utc := step_time <> interval '0' OR NOT is_midnight;
            label_format := CASE
                WHEN label_is_utc AND date_trunc('minute', step_time) = step_time AND date_trunc('minute', anchor) = anchor
                THEN 'YYYYMMDD_HH24MI"utc"'
                WHEN label_is_utc THEN 'YYYYMMDD_HH24MISSUS"utc"'
                WHEN step_days <> 0 OR extract(day FROM local_anchor) <> 1 THEN 'YYYYMMDD'
                WHEN step_months % 12 <> 0 OR extract(month FROM local_anchor) <> 1 THEN 'YYYYMM'
                ELSE 'YYYY' END;
        END IF;
        EXIT WHEN begins >= until;

        number := number + 1;
        -- Not begins + step: after 28 February, later partitions would not return to the 31st.
        ends := snowflake_partitions_internal.partition_boundary(anchor, step, number, time_zone);
        IF ends < begins OR ends = begins AND is_stalled THEN
            PERFORM snowflake_internal.refuse('22023', format('an interval of %s does not advance from %s', step, begins),
                hint => 'Use a positive interval, for example ''1 day'' or ''1 month''.');
        END IF;
        -- A day that the time zone skips.
        is_stalled := ends = begins;
        CONTINUE WHEN is_stalled;
        IF ends > meets THEN
            problem := 'gap after';
            EXIT;
        ELSIF ends = meets THEN
            meets := NULL;
        END IF;

        ends_id := snowflake_internal.min_id(ends);
        -- Ranges before the epoch contain no IDs.
        IF ends_id > begins_id THEN
            WHILE neighbour <= total AND highs[neighbour] <= begins_id LOOP
                neighbour := neighbour + 1;
            END LOOP;
            IF neighbour > total OR lows[neighbour] >= ends_id THEN
                IF label_is_utc THEN
                    label := '_p' || to_char(begins AT TIME ZONE 'UTC', label_format);
                ELSIF time_zone IS NULL THEN
                    label := '_p' || to_char(begins, label_format);
                ELSE
                    label := '_p' || to_char(begins AT TIME ZONE time_zone, label_format);
                END IF;
                stem := parent_name;
                -- PostgreSQL would truncate the end, which distinguishes the partitions.
                WHILE octet_length(stem || label) > 63 LOOP
                    stem := left(stem, -1);
                END LOOP;
                RETURN NEXT ROW(stem || label, begins_id, ends_id)::snowflake_partitions_internal.range;
                is_written := true;
            ELSIF lows[neighbour] > begins_id THEN
                problem := 'overlap';
                blocking := neighbour;
                EXIT;
            ELSE
                resumed := neighbour;
                WHILE highs[resumed] < ends_id AND resumed < total AND lows[resumed + 1] = highs[resumed] LOOP
                    resumed := resumed + 1;
                END LOOP;
                IF highs[resumed] < ends_id THEN
                    label_format := NULL;
                    CONTINUE;
                END IF;
                resumed := NULL;
            END IF;
        END IF;
        begins := ends;
        begins_id := ends_id;
    END LOOP;

    -- A gap shorter than a step could not be closed by a later call.
    IF problem IS NULL AND is_written THEN
        WHILE neighbour <= total AND highs[neighbour] <= begins_id LOOP
            neighbour := neighbour + 1;
        END LOOP;
        IF neighbour <= total AND lows[neighbour] > begins_id THEN
            blocking := neighbour;
            IF snowflake_internal.time_of(lows[blocking])
               < snowflake_partitions_internal.partition_boundary(anchor, step, number + 1, time_zone)
            THEN
                problem := 'gap before';
            END IF;
        END IF;
    END IF;
    IF problem IS NULL THEN
        RETURN;
    END IF;

    SELECT c.relname INTO blocking_name FROM pg_class AS c WHERE c.oid = relations[blocking];
    low_at := CASE WHEN lows[blocking] >= 0 THEN snowflake_internal.time_of(lows[blocking]) END;
    high_at := CASE WHEN highs[blocking] < highest_id THEN snowflake_internal.time_of(highs[blocking]) END;
    IF problem = 'gap before' OR problem = 'overlap' AND resumed IS NULL THEN
        edge_at := low_at;
        edge_id := lows[blocking];
    ELSE
        edge_at := high_at;
        edge_id := highs[blocking];
    END IF;
    SELECT array_agg(replace(to_char(t.moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '.000000Z', 'Z') ORDER BY t.n)
    INTO times
    FROM unnest(ARRAY[since, begins, ends, low_at, high_at]) WITH ORDINALITY AS t (moment, n);

    is_exact := coalesce(snowflake_internal.min_id(edge_at) = edge_id, false);
    is_midnight := edge_at = CASE WHEN time_zone IS NULL THEN date_trunc('day', edge_at)
                                  ELSE date_trunc('day', edge_at, time_zone) END;
    IF step_time = interval '0' AND is_exact AND NOT is_midnight THEN
        SELECT z.name INTO fitting_zone
        FROM unnest(ARRAY[current_setting('TimeZone'),
                          (SELECT s.reset_val FROM pg_settings AS s WHERE s.name = 'TimeZone'),
                          current_setting('log_timezone'), 'UTC']) WITH ORDINALITY AS z (name, n)
        WHERE date_trunc('day', edge_at, z.name) = edge_at
          AND NOT EXISTS (
              SELECT FROM unnest(lows) AS l (id)
              WHERE l.id > 0
                AND date_trunc('day', snowflake_internal.time_of(l.id), z.name) <> snowflake_internal.time_of(l.id))
        ORDER BY z.n LIMIT 1;
    END IF;
    advice := CASE
        WHEN fitting_zone IS NOT NULL THEN
            format('Pass time_zone => %L, in which the existing partitions begin at midnight.', fitting_zone)
        -- Offsets from UTC are multiples of a quarter of an hour.
        WHEN step_time = interval '0' AND is_exact AND NOT is_midnight AND extract(epoch FROM edge_at) % 900 = 0 THEN
            'Pass the time_zone in which the existing partitions begin at midnight.'
        WHEN problem = 'gap after' THEN
            format('First create a partition FOR VALUES FROM (%L) TO (%L).',
                   edge_id, snowflake_internal.min_id(since))
        WHEN problem = 'gap before' THEN
            format('First create a partition FOR VALUES FROM (%L) TO (%L).', begins_id, edge_id)
        WHEN problem = 'overlap' AND high_at IS NULL THEN
            format('Pass until => %L, where partition "%s" begins, or detach it first.', times[4], blocking_name)
        WHEN resumed IS NOT NULL AND is_exact THEN
            format('Pass since => %L, the end of partition "%s".', times[5], blocking_name)
        ELSE 'Choose since and step so that partitions begin and end at the bounds of the existing ones.' END;
    PERFORM snowflake_internal.refuse('42P17',
        CASE problem
            WHEN 'gap after' THEN
                format('partitions of "%s" from %s would leave a gap of %s after partition "%s"',
                       parent_name, times[1], since - high_at, blocking_name)
            WHEN 'gap before' THEN
                format('partitions of "%s" to %s would leave a gap of %s before partition "%s"',
                       parent_name, times[2], low_at - begins, blocking_name)
            ELSE
                format('partition of "%s" from %s to %s would overlap partition "%s"',
                       parent_name, times[2], times[3], blocking_name) END,
        detail => format('Partition "%s" contains the IDs from %s to %s.', blocking_name,
                        coalesce(times[4], 'MINVALUE'), coalesce(times[5], 'MAXVALUE'))
            || CASE
                WHEN problem = 'gap before' OR problem = 'overlap' AND resumed IS NULL OR high_at IS NULL THEN ''
                WHEN NOT is_exact THEN format(' Its end, %s, is not the first ID of a time.', edge_id)
                ELSE format(' Its end is not a multiple of %s in time zone %s.',
                            step, coalesce(time_zone, current_setting('TimeZone'))) END,
        hint => advice);
END
$function$;

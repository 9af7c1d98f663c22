-- Fails for settings that no table can have.
CREATE FUNCTION snowflake_partitions_internal.check_arguments(step interval, time_zone text, ahead interval, keep interval)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    argument record;
BEGIN
    FOR argument IN
        SELECT a.name, a.value FROM (VALUES ('step', step::text, true), ('time_zone', time_zone, true), ('ahead', ahead::text,
            true)) AS a (name, value, is_required) WHERE a.value IS NULL
    LOOP
        PERFORM snowflake_internal.refuse('22004', format('%s must not be NULL', argument.name));
    END LOOP;
    IF NOT isfinite(step) OR step < interval '1 minute' OR NOT isfinite(ahead) OR ahead < interval '0'
       OR NOT coalesce(isfinite(keep) AND keep >= interval '0', true) OR greatest(step, ahead, keep) > interval '1000 years'
    THEN
        PERFORM snowflake_internal.refuse('22023', 'invalid settings of partitions',
            detail => format('step is %s, ahead %s and keep %s.', step, ahead, coalesce(keep::text, 'NULL')),
            hint => 'step must be a minute or more, ahead and keep not negative, and none more than 1000 years. keep is NULL if no partition is to be dropped.');
    ELSIF date_part('epoch', ahead) > 2000 * date_part('epoch', step) THEN
        PERFORM snowflake_internal.refuse('22023', format('%s ahead would be more than 2000 partitions of %s each', ahead, step));
    END IF;
    -- Partitions begin on one calendar: a day and six hours would drift through it.
    IF (SELECT count(*) FROM (VALUES (extract(year FROM step) * 12 + extract(month FROM step)), (extract(day FROM step)),
            (extract(epoch FROM step - date_trunc('day', step)))) AS p (part) WHERE p.part <> 0) <> 1
    THEN
        PERFORM snowflake_internal.refuse('22023', format('invalid step of partitions: %s', step),
            hint => 'Use months, days or hours, for example ''1 day''.');
    END IF;
    BEGIN
        PERFORM now() AT TIME ZONE time_zone;
    EXCEPTION WHEN invalid_parameter_value THEN
        PERFORM snowflake_internal.refuse('22023', SQLERRM);
    END;
END
$function$;

CREATE FUNCTION snowflake_partitions.configure(
    parent regclass, step interval, time_zone text, ahead interval DEFAULT '7 days', keep interval DEFAULT NULL
) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF parent IS NULL THEN
        PERFORM snowflake_internal.refuse('22004', 'parent must not be NULL');
    END IF;
    PERFORM snowflake_partitions_internal.check_arguments(step, time_zone, ahead, keep);
    INSERT INTO snowflake_partitions_internal.settings AS s (parent, step, time_zone, ahead, keep)
    VALUES (configure.parent, configure.step, configure.time_zone, configure.ahead, configure.keep)
    ON CONFLICT ON CONSTRAINT settings_pkey
    DO UPDATE SET step = excluded.step, time_zone = excluded.time_zone, ahead = excluded.ahead, keep = excluded.keep;
END
$function$;
COMMENT ON FUNCTION snowflake_partitions.configure(parent regclass, step interval, time_zone text, ahead interval, keep interval) IS
    'Sets how snowflake_partitions.maintain partitions a table: the step of the calendar in a time zone, how far ahead, '
    'and how long a partition is kept; NULL: for ever';

CREATE FUNCTION snowflake_partitions.forget(parent regclass) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_partitions_internal.require_settings(parent);
    DELETE FROM snowflake_partitions_internal.settings AS s WHERE s.parent = forget.parent;
END
$function$;
COMMENT ON FUNCTION snowflake_partitions.forget(parent regclass) IS
    'Removes the settings of a table, whose partitions stay; snowflake_partitions.maintain leaves it alone from then on';

CREATE VIEW snowflake_partitions.settings AS
    SELECT s.parent, s.step, s.time_zone, s.ahead, s.keep
    FROM snowflake_partitions_internal.settings AS s
    JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) s.parent;
COMMENT ON VIEW snowflake_partitions.settings IS
    'How tables are partitioned: one row for each that snowflake_partitions.configure was called for';
COMMENT ON COLUMN snowflake_partitions.settings.parent IS 'Partitioned table';
COMMENT ON COLUMN snowflake_partitions.settings.step IS 'Time that each partition spans';
COMMENT ON COLUMN snowflake_partitions.settings.time_zone IS 'Time zone in whose calendar steps are counted';
COMMENT ON COLUMN snowflake_partitions.settings.ahead IS 'For how long from now partitions are created';
COMMENT ON COLUMN snowflake_partitions.settings.keep IS 'For how long a partition is kept after its end; NULL: for ever';

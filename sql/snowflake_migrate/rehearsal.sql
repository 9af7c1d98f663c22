-- What a rehearsal on a copy of the data took, beside the plan of another server: how many times as
-- long as by the rates. It is a setting, so that a session or a database keeps it.

-- The factor that is set; NULL if there is none, or no number that can be one.
CREATE FUNCTION snowflake_migrate_internal.rehearsed_factor()
RETURNS numeric LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN s.text ~ E'^\\d{1,4}(\\.\\d{1,6})?$' THEN nullif(s.text::numeric, 0) END
    FROM current_setting('snowflake_migrate.time_factor', true) AS s (text)
$function$;

-- The same steps, whose times are longer by a factor; only those of the backfill if that had pauses.
CREATE FUNCTION snowflake_migrate_internal.steps_at(
    steps snowflake_migrate_internal.step[], factor numeric, is_paused boolean DEFAULT false
) RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT s.place::integer, s.kind, s.relation, s.lock_level, s.rewrites, s.in_transaction, s.what, s.note,
           s.commands, s.keys, s.names,
           ((s.work).rows, (s.work).bytes,
            (s.work).seconds * CASE WHEN s.kind = 'copy' OR NOT is_paused
                                    THEN coalesce(factor, 1) ELSE 1 END)::snowflake_migrate_internal.work
    FROM unnest(steps) WITH ORDINALITY AS s (
        number, kind, relation, lock_level, rewrites, in_transaction, what, note, commands, keys, names, work, place)
$function$;

-- Says at the end of a run how long it took, and what that says about a run elsewhere.
-- Of what takes less than a second, too much is chance.
CREATE FUNCTION snowflake_migrate_internal.report_time(by_rates numeric, estimated numeric, took numeric)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF by_rates >= 1 AND took >= 1 THEN
        RAISE NOTICE 'it took %, and % were estimated',
            snowflake_migrate_internal.short_time(took), snowflake_migrate_internal.short_time(estimated)
            USING HINT = format('If this was a rehearsal on a copy of the data, keep the speed beside the plan: '
                                'SET snowflake_migrate.time_factor = %s, or ALTER DATABASE ... SET, where the plan is made.',
                                round(took / by_rates, 2));
    END IF;
END
$function$;

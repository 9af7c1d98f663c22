-- The owner of the table may change the pace at any time. The backfill follows.
CREATE PROCEDURE snowflake_migrate.pace(
    target regclass, column_name name DEFAULT NULL, batch_size integer DEFAULT NULL, pause interval DEFAULT NULL,
    max_replay_lag interval DEFAULT NULL, max_active_sessions integer DEFAULT NULL,
    max_slot_wal text DEFAULT NULL, max_growth text DEFAULT NULL, is_paused boolean DEFAULT NULL
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $procedure$
DECLARE
    key_column CONSTANT name := snowflake_migrate_internal.column_of_owned(target, column_name);
    keys snowflake_migrate_internal.key[];
BEGIN
    keys := snowflake_migrate_internal.unfinished(ARRAY[(target, key_column)::snowflake_migrate_internal.key]);
    IF NOT EXISTS (SELECT FROM snowflake_migrate_internal.shadows(keys) AS s WHERE s.trigger_oid IS NOT NULL)
       OR NOT EXISTS (SELECT FROM snowflake_migrate_internal.progress AS p
                      WHERE p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name)
    THEN
        PERFORM snowflake_internal.refuse('55000', format('column "%s" of %s is not being migrated online', key_column, target),
            hint => 'The view snowflake_migrate.progress lists the unfinished online migrations.');
    END IF;
    PERFORM snowflake_migrate_internal.require_owner(key.target) FROM unnest(keys) AS key;
    PERFORM snowflake_migrate_internal.set_pace(keys, batch_size, pause, max_replay_lag, max_active_sessions,
                                                max_slot_wal, max_growth, is_paused);
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate.pace(target regclass, column_name name, batch_size integer, pause interval, max_replay_lag interval,
                                            max_active_sessions integer, max_slot_wal text, max_growth text, is_paused boolean) IS
    'Changes how fast snowflake_migrate.backfill() copies rows, or pauses or resumes it, also while it runs in another session; '
    'NULL leaves a setting as it is, max_active_sessions -1 and 0 of the other limits remove the limit';

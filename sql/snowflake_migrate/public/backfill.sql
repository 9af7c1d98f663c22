-- The procedure commits, so it cannot have a SET clause. All names are qualified.
-- Triggers that fire on the copied rows find names by the caller's search path.
-- Arguments that are not NULL are recorded, as by snowflake_migrate.pace().
CREATE PROCEDURE snowflake_migrate.backfill(
    target regclass, column_name name DEFAULT NULL, also regclass[] DEFAULT NULL, also_columns name[] DEFAULT NULL,
    batch_size integer DEFAULT NULL, pause interval DEFAULT NULL,
    max_replay_lag interval DEFAULT NULL, max_active_sessions integer DEFAULT NULL,
    max_slot_wal pg_catalog.text DEFAULT NULL, max_growth pg_catalog.text DEFAULT NULL
) LANGUAGE plpgsql
AS $procedure$
DECLARE
    keys snowflake_migrate_internal.key[];
    relations pg_catalog.regclass[];
    wait pg_catalog.record;
    batch pg_catalog.record;
    watermark pg_catalog.pg_lsn;
    watermark_at timestamp with time zone;
    batch_ended_at timestamp with time zone;
    is_locked boolean;
    slow_seconds double precision;
    slowed_at timestamp with time zone;
    last_notice_at timestamp with time zone;
    last_cause pg_catalog.text;
    reported_at timestamp with time zone := pg_catalog.clock_timestamp();
BEGIN
    IF pg_catalog.now() OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp() THEN
        PERFORM snowflake_internal.refuse('25001', 'snowflake_migrate.backfill cannot run inside a transaction block',
            detail => 'It commits after each batch.');
    END IF;
    -- Set explicitly, because the server's default may differ: each batch has to
    -- see the rows written before it.
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    keys := snowflake_migrate_internal.unfinished(snowflake_migrate_internal.keys(target, column_name, also, also_columns));
    relations := snowflake_migrate_internal.backfill_begin(keys, batch_size, pause, max_replay_lag, max_active_sessions,
                                                            max_slot_wal, max_growth);
    RAISE NOTICE '%', snowflake_migrate_internal.pace_report(keys);
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    FOR i IN 1 .. pg_catalog.cardinality(relations) LOOP
        LOOP
            -- How long to wait, or what to copy: another session may have changed it.
            SELECT w.* INTO wait
            FROM snowflake_migrate_internal.backfill_wait(keys, relations[i], batch_ended_at, is_locked,
                                                            watermark, watermark_at, slow_seconds, slowed_at) AS w;
            watermark := wait.mark;
            watermark_at := wait.marked_at;
            slow_seconds := wait.slow_seconds;
            slowed_at := wait.slowed_at;
            IF wait.milliseconds IS NOT NULL THEN
                IF wait.report IS NOT NULL
                   AND (last_cause OPERATOR(pg_catalog.<>) wait.cause OR snowflake_migrate_internal.is_notice_due(last_notice_at)) THEN
                    last_notice_at := pg_catalog.clock_timestamp();
                    last_cause := wait.cause;
                    RAISE NOTICE '%', wait.report;
                END IF;
                -- It commits first: a snapshot held while waiting would keep dead rows from being removed.
                CALL snowflake_migrate_internal.sleep(wait.milliseconds);
                SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
                CONTINUE;
            END IF;
            SELECT b.is_done, b.is_waiting, b.report INTO batch
            FROM snowflake_migrate_internal.backfill_batch(
                keys, relations[i], wait.batch_size, pg_catalog.current_setting('search_path'::pg_catalog.text)) AS b;
            COMMIT;
            SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
            is_locked := batch.is_waiting;
            -- The first batch of the next table waits for no pause.
            batch_ended_at := CASE WHEN NOT batch.is_done THEN pg_catalog.clock_timestamp() END;
            EXIT WHEN batch.is_done;
            IF NOT is_locked AND snowflake_migrate_internal.is_notice_due(reported_at) THEN
                reported_at := pg_catalog.clock_timestamp();
                RAISE NOTICE '%', pg_catalog.concat(batch.report, snowflake_migrate_internal.vacuum_report(keys));
            ELSIF is_locked AND snowflake_migrate_internal.is_notice_due(last_notice_at) THEN
                last_notice_at := pg_catalog.clock_timestamp();
                last_cause := 'locks';
                RAISE NOTICE '%', batch.report;
            END IF;
        END LOOP;
    END LOOP;
    RAISE NOTICE '%', snowflake_migrate_internal.backfill_summary(keys);
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate.backfill(
    target regclass, column_name name, also regclass[], also_columns name[],
    batch_size integer, pause interval, max_replay_lag interval, max_active_sessions integer, max_slot_wal text, max_growth text
) IS
    'A step of snowflake_migrate.plan with online => true: '
    'copies the narrow columns to their shadow columns in batches, committing each; resumes after an interruption';

-- The procedure commits, so it cannot have a SET clause. All names are qualified.
-- Triggers that fire on the copied rows find names by the caller's search path.
CREATE PROCEDURE snowflake_migrate_backfill_tables(
    targets regclass[], column_names name[] DEFAULT NULL, batch_size integer DEFAULT 10000,
    pause interval DEFAULT '0', max_replay_lag interval DEFAULT NULL
) LANGUAGE plpgsql
AS $procedure$
DECLARE
    key_targets pg_catalog.regclass[];
    key_columns pg_catalog.name[];
    relations pg_catalog.regclass[];
    watermark pg_catalog.pg_lsn;
    watermark_at timestamp with time zone;
    last_notice_at timestamp with time zone;
    lagging pg_catalog.text;
    is_done boolean;
    is_waiting boolean;
    report pg_catalog.text;
BEGIN
    IF pg_catalog.now() OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp() THEN
        RAISE EXCEPTION 'snowflake_migrate_backfill cannot run inside a transaction block'
            USING ERRCODE = 'active_sql_transaction',
                  DETAIL = 'It commits after each batch.';
    END IF;
    -- Set explicitly, because the server's default may differ: each batch has to
    -- see the rows written before it.
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT u.targets, u.column_names INTO key_targets, key_columns
    FROM snowflake_internal.migration_keys(targets, column_names) AS k
    CROSS JOIN LATERAL snowflake_internal.migration_unfinished(k.targets, k.column_names) AS u;
    relations := snowflake_internal.migration_backfill_begin(key_targets, key_columns, batch_size, pause, max_replay_lag);
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    FOR i IN 1 .. pg_catalog.cardinality(relations) LOOP
        LOOP
            WHILE max_replay_lag IS NOT NULL LOOP
                SELECT l.mark, l.marked_at, l.lagging INTO watermark, watermark_at, lagging
                FROM snowflake_internal.migration_replay_lag(max_replay_lag, watermark, watermark_at) AS l;
                EXIT WHEN lagging IS NULL;
                IF last_notice_at IS NULL OR pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) last_notice_at
                                      OPERATOR(pg_catalog.>) interval '10 seconds' THEN
                    last_notice_at := pg_catalog.clock_timestamp();
                    RAISE NOTICE 'waiting for %: more than % behind', lagging, max_replay_lag;
                END IF;
                PERFORM pg_catalog.pg_sleep(0.2);
                COMMIT;
                SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
            END LOOP;
            SELECT b.is_done, b.is_waiting, b.report INTO is_done, is_waiting, report
            FROM snowflake_internal.migration_backfill_batch(
                key_targets, key_columns, relations[i], batch_size, pg_catalog.current_setting('search_path'::pg_catalog.text)) AS b;
            COMMIT;
            SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
            EXIT WHEN is_done;
            IF NOT is_waiting THEN
                RAISE NOTICE '%', report;
                PERFORM pg_catalog.pg_sleep_for(pause);
            ELSE
                IF last_notice_at IS NULL OR pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) last_notice_at
                                      OPERATOR(pg_catalog.>) interval '10 seconds' THEN
                    last_notice_at := pg_catalog.clock_timestamp();
                    RAISE NOTICE '%', report;
                END IF;
                PERFORM pg_catalog.pg_sleep(0.5);
            END IF;
            -- A snapshot held while waiting would keep dead rows from being removed.
            COMMIT;
            SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        END LOOP;
    END LOOP;
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate_backfill_tables(targets regclass[], column_names name[], batch_size integer, pause interval, max_replay_lag interval) IS
    'A step of snowflake_migration_plan_tables with online => true: copies the narrow columns of several tables to their shadow columns in batches; resumes after an interruption';

CREATE PROCEDURE snowflake_migrate_backfill(
    target regclass, column_name name DEFAULT NULL, batch_size integer DEFAULT 10000,
    pause interval DEFAULT '0', max_replay_lag interval DEFAULT NULL
) LANGUAGE plpgsql
AS $procedure$
BEGIN
    CALL @extschema@.snowflake_migrate_backfill_tables(ARRAY[target], ARRAY[column_name], batch_size, pause, max_replay_lag);
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate_backfill(target regclass, column_name name, batch_size integer, pause interval, max_replay_lag interval) IS
    'A step of snowflake_migration_plan with online => true: copies the narrow columns to their shadow columns in batches, committing each; resumes after an interruption';

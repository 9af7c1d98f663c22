-- As in snowflake_migrate.columns, operands and arguments have exactly the types
-- that pg_catalog's operators and the extension's functions take.
CREATE VIEW snowflake_migrate.progress AS
    SELECT c.oid::pg_catalog.regclass AS table_name,
           key.column_name,
           phase.step,
           p.rows_done, p.rows_total,
           pg_catalog.round(100::numeric * p.rows_done::numeric / CASE WHEN p.rows_total <> 0::bigint THEN p.rows_total END::numeric,
                            1) AS percent_done,
           pg_catalog.round(p.run_rows / CASE WHEN p.run_seconds >= 0.000001::pg_catalog.float8 THEN p.run_seconds END)::bigint AS rows_per_second,
           -- That of indexes and constraints, which follow, is not known.
           CASE WHEN phase.is_backfill AND p.run_rows > 0::pg_catalog.float8 THEN pg_catalog.make_interval(secs => pg_catalog.round(
               least(greatest((p.rows_total - p.rows_done)::pg_catalog.float8 * p.run_seconds / p.run_rows, 0::pg_catalog.float8),
                     100000000000::pg_catalog.float8))) END AS time_left,
           pace.is_paused, pace.batch_size, pace.pause, pace.max_replay_lag, pace.max_active_sessions,
           pace.max_slot_wal, pace.max_growth, p.waiting_for,
           p.growth, dead.dead_rows, dead.last_vacuum, dead.held_back_by AS vacuum_held_back_by
    FROM (SELECT ARRAY(SELECT (k.target, k.column_name)::snowflake_migrate_internal.key
                       FROM ROWS FROM (pg_catalog.unnest(coalesce(s.key_targets, ARRAY[s.target])),
                                       pg_catalog.unnest(coalesce(s.key_column_names, ARRAY[s.column_name])))
                           WITH ORDINALITY AS k (target, column_name, place)
                       ORDER BY k.place) AS keys,
                 pg_catalog.sum(s.rows_done)::bigint AS rows_done, pg_catalog.sum(s.rows_total)::bigint AS rows_total,
                 pg_catalog.sum(s.bytes_now - s.bytes_before)::bigint AS growth,
                 pg_catalog.sum(s.run_rows)::double precision AS run_rows, pg_catalog.sum(s.run_seconds) AS run_seconds,
                 -- Not what a session that was ended has left.
                 pg_catalog.max(s.waiting_for) FILTER (WHERE s.waiting_for IS NOT NULL AND EXISTS (
                     SELECT FROM pg_catalog.pg_stat_activity AS a WHERE a.pid = s.waiting_pid)) AS waiting_for
          FROM snowflake_migrate_internal.progress AS s
          -- The owner of a table can write any row about it, and the view is for all roles: sums stay in their ranges.
          WHERE s.rows_done BETWEEN 0::bigint AND 1000000000000000 AND s.rows_total BETWEEN 0::bigint AND 1000000000000000
            AND s.run_rows BETWEEN 0::bigint AND 1000000000000
            AND s.run_seconds BETWEEN 0::pg_catalog.float8 AND 1000000000::pg_catalog.float8
            AND coalesce(s.bytes_before, 0::bigint) BETWEEN 0::bigint AND 1000000000000000
            AND coalesce(s.bytes_now, 0::bigint) BETWEEN 0::bigint AND 1000000000000000
          GROUP BY 1) AS p
    CROSS JOIN LATERAL snowflake_migrate_internal.dead_rows(p.keys) AS dead
    CROSS JOIN LATERAL pg_catalog.unnest(p.keys) AS key
    JOIN pg_catalog.pg_class AS c ON c.oid = key.target::pg_catalog.oid
    CROSS JOIN LATERAL snowflake_migrate_internal.online_step(p.keys) AS phase
    CROSS JOIN LATERAL snowflake_migrate_internal.pace_settings((p.keys[1]).target, (p.keys[1]).column_name) AS pace
    WHERE EXISTS (SELECT FROM snowflake_migrate_internal.shadows(p.keys) AS s
                  WHERE s.trigger_oid IS NOT NULL);
COMMENT ON VIEW snowflake_migrate.progress IS 'Unfinished online migrations. Tables that are migrated together have the same figures';
COMMENT ON COLUMN snowflake_migrate.progress.table_name IS 'Table whose key is being migrated';
COMMENT ON COLUMN snowflake_migrate.progress.column_name IS 'Key column';
COMMENT ON COLUMN snowflake_migrate.progress.step IS
    'Current or next step, with its number among those of its kind: '
    'adding shadow columns, backfill, validating rows, building indexes, adding foreign keys; or ready to swap';
COMMENT ON COLUMN snowflake_migrate.progress.rows_done IS 'Rows that the backfill has copied, in all tables';
COMMENT ON COLUMN snowflake_migrate.progress.rows_total IS 'Rows to copy: counted in the part that is done, estimated in the rest';
COMMENT ON COLUMN snowflake_migrate.progress.percent_done IS 'Share of rows_total that is done, in percent; NULL if there are none';
COMMENT ON COLUMN snowflake_migrate.progress.rows_per_second IS 'Rows per second of the current or the last call of the backfill';
COMMENT ON COLUMN snowflake_migrate.progress.time_left IS
    'Estimated time until the backfill ends, at that rate; NULL if it is not known, and after the backfill';
COMMENT ON COLUMN snowflake_migrate.progress.is_paused IS 'Whether snowflake_migrate.pace() has paused the backfill';
COMMENT ON COLUMN snowflake_migrate.progress.batch_size IS 'Largest number of rows that the backfill copies in one transaction';
COMMENT ON COLUMN snowflake_migrate.progress.pause IS 'Pause after each batch';
COMMENT ON COLUMN snowflake_migrate.progress.max_replay_lag IS
    'The backfill waits while a standby or a subscriber is further behind; NULL if there is no limit';
COMMENT ON COLUMN snowflake_migrate.progress.max_active_sessions IS
    'The pauses grow while more other sessions are active; NULL if there is no limit';
COMMENT ON COLUMN snowflake_migrate.progress.max_slot_wal IS
    'The backfill waits while a replication slot keeps more bytes of WAL; NULL if there is no limit';
COMMENT ON COLUMN snowflake_migrate.progress.max_growth IS
    'The backfill stops when the tables and their indexes have grown by so many bytes; NULL if there is no limit';
COMMENT ON COLUMN snowflake_migrate.progress.waiting_for IS
    'What the backfill waits for at the moment; NULL if it copies rows or does not run';
COMMENT ON COLUMN snowflake_migrate.progress.growth IS
    'Bytes by which the tables and their indexes have grown since the backfill first began, after its last batch';
COMMENT ON COLUMN snowflake_migrate.progress.dead_rows IS
    'Dead rows in the tables as the statistics have them; those of a running backfill are added when its CALL ends';
COMMENT ON COLUMN snowflake_migrate.progress.last_vacuum IS
    'Time of the last vacuum, or autovacuum, of the table with most dead rows; NULL if there was none';
COMMENT ON COLUMN snowflake_migrate.progress.vacuum_held_back_by IS
    'What has kept vacuum from removing dead rows for more than a minute; NULL if nothing does, or the role cannot see it';

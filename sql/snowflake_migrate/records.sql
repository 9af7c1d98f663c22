-- The records of migrations.
--
-- The tables are read and written by the functions of src/migrate/records.rs,
-- which check the ownership of the table that a row describes. A privilege to
-- write to them, as wholesale grants give it, has no effect: see the trigger.
--
-- The state of a column before its migration, for reverting it. DROP IDENTITY
-- drops the sequence, so its properties are recorded here. The rows reveal how
-- far sequences have advanced. So no role may read the table; origin() and
-- visible_origins() return what the caller may see.
CREATE TABLE snowflake_migrate_internal.origins (
    target regclass NOT NULL,
    column_name name NOT NULL,
    kind text NOT NULL CHECK (kind IN ('serial', 'identity always', 'identity by default', 'default', 'none')),
    data_type text NOT NULL,
    default_expression text,
    sequence_schema name,
    sequence_name name,
    sequence_options jsonb,
    sequence_last_value bigint,
    sequence_privileges jsonb,
    sequence_comment text,
    -- Partitions and child tables that had another default.
    child_defaults jsonb,
    -- first_id_ever: the boundary of the column. first_id: no ID issued
    -- since this migration is smaller.
    first_id_ever bigint NOT NULL,
    first_id bigint NOT NULL,
    remembered_at timestamp with time zone NOT NULL DEFAULT pg_catalog.now(),
    reverted_at timestamp with time zone,
    PRIMARY KEY (target, column_name)
) USING heap;
COMMENT ON TABLE snowflake_migrate_internal.origins
    IS 'Sources of the migrated columns'' values before the migration, for snowflake_migrate.revert(); written by the extension only';
COMMENT ON COLUMN snowflake_migrate_internal.origins.target IS 'Table';
COMMENT ON COLUMN snowflake_migrate_internal.origins.column_name IS 'Column';
COMMENT ON COLUMN snowflake_migrate_internal.origins.kind IS 'As in snowflake_migrate.columns; none for a column without a sequence';
COMMENT ON COLUMN snowflake_migrate_internal.origins.data_type IS 'Type before the column was widened';
COMMENT ON COLUMN snowflake_migrate_internal.origins.default_expression IS 'Default before the migration';
COMMENT ON COLUMN snowflake_migrate_internal.origins.sequence_schema IS 'Schema of the sequence';
COMMENT ON COLUMN snowflake_migrate_internal.origins.sequence_name IS 'Name of the sequence';
COMMENT ON COLUMN snowflake_migrate_internal.origins.sequence_options
    IS 'Type, start, increment, minimum, maximum, cache and cycle of the sequence; its next value if it was unused';
COMMENT ON COLUMN snowflake_migrate_internal.origins.sequence_last_value
    IS 'Last value of the sequence; NULL if the table''s owner does not own it';
COMMENT ON COLUMN snowflake_migrate_internal.origins.sequence_privileges IS 'Privileges on the sequence';
COMMENT ON COLUMN snowflake_migrate_internal.origins.sequence_comment IS 'Comment on the sequence';
COMMENT ON COLUMN snowflake_migrate_internal.origins.child_defaults
    IS 'Defaults of partitions and child tables that differed from the table''s';
COMMENT ON COLUMN snowflake_migrate_internal.origins.first_id_ever IS 'No snowflake ID of the column is smaller';
COMMENT ON COLUMN snowflake_migrate_internal.origins.first_id
    IS 'No snowflake ID since this migration is smaller, and all IDs before it are';
COMMENT ON COLUMN snowflake_migrate_internal.origins.remembered_at IS 'Time at which the migration began';
COMMENT ON COLUMN snowflake_migrate_internal.origins.reverted_at IS 'Time at which the migration was reverted';
-- The progress of copying rows, for monitoring and for resuming an interrupted
-- backfill. It does not prove that all rows are copied: the constraint that is
-- validated afterwards checks each row.
CREATE TABLE snowflake_migrate_internal.progress (
    target regclass NOT NULL,
    column_name name NOT NULL,
    relation regclass NOT NULL,
    -- The table's file. In a rewritten table, rows are in other places.
    filenode oid,
    blocks_done bigint NOT NULL DEFAULT 0,
    blocks_total bigint NOT NULL DEFAULT 0,
    batch_blocks bigint,
    -- Blocks with rows that were locked by other transactions.
    skipped int8multirange NOT NULL DEFAULT '{}',
    rows_done bigint NOT NULL DEFAULT 0,
    rows_total bigint NOT NULL DEFAULT 0,
    -- Of the current call, or of the last one.
    run_rows bigint NOT NULL DEFAULT 0,
    run_seconds double precision NOT NULL DEFAULT 0,
    updated_at timestamp with time zone NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    -- All keys of the migration; NULL if target and column_name are the only one.
    key_targets regclass[],
    key_column_names name[],
    -- Written by the backfill when it begins to wait, or to pause, and when it continues.
    waiting_for text,
    waiting_pid integer,
    -- With indexes and TOAST. bytes_before stays if the backfill begins again.
    bytes_before bigint,
    bytes_now bigint,
    PRIMARY KEY (target, column_name, relation)
) USING heap WITH (fillfactor = 50);
COMMENT ON TABLE snowflake_migrate_internal.progress
    IS 'Progress of online migrations in copying rows, as shown by snowflake_migrate.progress; written by the extension only';
COMMENT ON COLUMN snowflake_migrate_internal.progress.target IS 'Table whose key is being migrated; the first one of several';
COMMENT ON COLUMN snowflake_migrate_internal.progress.column_name IS 'Key column';
COMMENT ON COLUMN snowflake_migrate_internal.progress.relation IS 'Table whose rows are copied: target, or a table that references it';
COMMENT ON COLUMN snowflake_migrate_internal.progress.filenode IS 'File of the table when the copying began';
COMMENT ON COLUMN snowflake_migrate_internal.progress.blocks_done IS 'Blocks of the table that are copied';
COMMENT ON COLUMN snowflake_migrate_internal.progress.blocks_total
    IS 'Blocks of the table when the copying began; in later ones, the trigger fills the shadow columns';
COMMENT ON COLUMN snowflake_migrate_internal.progress.batch_blocks IS 'Blocks of the next batch';
COMMENT ON COLUMN snowflake_migrate_internal.progress.skipped
    IS 'Blocks with rows that were locked by other transactions, to be copied later';
COMMENT ON COLUMN snowflake_migrate_internal.progress.rows_done IS 'Rows in the copied blocks, estimated from rows_total';
COMMENT ON COLUMN snowflake_migrate_internal.progress.rows_total IS 'Estimated number of rows when the copying began';
COMMENT ON COLUMN snowflake_migrate_internal.progress.run_rows IS 'Part of rows_done that the current or the last call added';
COMMENT ON COLUMN snowflake_migrate_internal.progress.run_seconds IS 'Time that they took in seconds, with the pauses between batches';
COMMENT ON COLUMN snowflake_migrate_internal.progress.updated_at IS 'Time of the last update';
COMMENT ON COLUMN snowflake_migrate_internal.progress.key_targets IS 'Tables whose keys are migrated together';
COMMENT ON COLUMN snowflake_migrate_internal.progress.key_column_names IS 'Key columns of these tables';
COMMENT ON COLUMN snowflake_migrate_internal.progress.waiting_for IS 'Why the backfill does not copy rows at the moment';
COMMENT ON COLUMN snowflake_migrate_internal.progress.waiting_pid IS 'Process ID of the session that waits';
COMMENT ON COLUMN snowflake_migrate_internal.progress.bytes_before
    IS 'Size of the table with its indexes when the backfill first began';
COMMENT ON COLUMN snowflake_migrate_internal.progress.bytes_now IS 'Its size after the last batch';

-- How fast an online migration copies rows. It is a table of its own, because
-- another session than the backfill writes it. NULL: the default. Rows exist only
-- for migrations whose pace was set.
CREATE TABLE snowflake_migrate_internal.pace (
    target regclass NOT NULL,
    column_name name NOT NULL,
    batch_size integer CHECK (batch_size OPERATOR(pg_catalog.>=) 1),
    pause interval CHECK (pause OPERATOR(pg_catalog.>=) '0'::pg_catalog.interval),
    -- 0: no limit, in place of the default.
    max_replay_lag interval CHECK (max_replay_lag OPERATOR(pg_catalog.>=) '0'::pg_catalog.interval),
    max_active_sessions integer CHECK (max_active_sessions OPERATOR(pg_catalog.>=) 0),
    max_slot_wal bigint CHECK (max_slot_wal OPERATOR(pg_catalog.>=) 0::pg_catalog.int8),
    max_growth bigint CHECK (max_growth OPERATOR(pg_catalog.>) 0::pg_catalog.int8),
    is_paused boolean NOT NULL DEFAULT false,
    PRIMARY KEY (target, column_name)
) USING heap WITH (fillfactor = 50);
COMMENT ON TABLE snowflake_migrate_internal.pace
    IS 'Pace of online migrations in copying rows, as shown by snowflake_migrate.progress; written by snowflake_migrate.pace() and '
       'snowflake_migrate.backfill()';
COMMENT ON COLUMN snowflake_migrate_internal.pace.target IS 'Table whose key is being migrated; the first one of several';
COMMENT ON COLUMN snowflake_migrate_internal.pace.column_name IS 'Key column';
COMMENT ON COLUMN snowflake_migrate_internal.pace.batch_size IS 'Largest number of rows of a batch';
COMMENT ON COLUMN snowflake_migrate_internal.pace.pause IS 'Pause after each batch';
COMMENT ON COLUMN snowflake_migrate_internal.pace.max_replay_lag
    IS 'The backfill waits while a standby or a subscriber is further behind; 0 if there is no limit';
COMMENT ON COLUMN snowflake_migrate_internal.pace.max_active_sessions
    IS 'The pauses grow while more other sessions are active; NULL if there is no limit';
COMMENT ON COLUMN snowflake_migrate_internal.pace.max_slot_wal
    IS 'The backfill waits while a replication slot keeps more bytes of WAL; 0 if there is no limit';
COMMENT ON COLUMN snowflake_migrate_internal.pace.max_growth
    IS 'The backfill stops when the tables and their indexes have grown by so many bytes; NULL if there is no limit';
COMMENT ON COLUMN snowflake_migrate_internal.pace.is_paused IS 'Whether the backfill is paused';

-- The row of snowflake_migrate_internal.origins of a column, for the owner of its table;
-- otherwise NULL.
CREATE FUNCTION snowflake_migrate_internal.origin(target regclass, column_name name) RETURNS snowflake_migrate_internal.origins
    STRICT VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_origin_wrapper';

-- The rows that the caller may see: of its own tables; of all tables for the owner of the
-- database and for roles that may read all data. pg_dump calls it.
CREATE FUNCTION snowflake_migrate_internal.visible_origins() RETURNS SETOF snowflake_migrate_internal.origins
    STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_origins_wrapper';

-- Writes a row of snowflake_migrate_internal.origins, for the owner of its table.
CREATE FUNCTION snowflake_migrate_internal.keep_origin(origin snowflake_migrate_internal.origins) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_keep_origin_wrapper';

-- The position of the next batch.
CREATE FUNCTION snowflake_migrate_internal.progress(target regclass, column_name name, relation regclass)
    RETURNS snowflake_migrate_internal.progress
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_progress_wrapper';

-- Writes a row of snowflake_migrate_internal.progress, for the owner of its tables.
CREATE FUNCTION snowflake_migrate_internal.keep_progress(step snowflake_migrate_internal.progress) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_keep_progress_wrapper';

-- Deletes the progress of a backfill, and its pace.
CREATE FUNCTION snowflake_migrate_internal.end_backfill(target regclass, column_name name) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_end_backfill_wrapper';

-- The pace of a backfill, locked against other changes of it.
CREATE FUNCTION snowflake_migrate_internal.pace(target regclass, column_name name) RETURNS snowflake_migrate_internal.pace
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_pace_wrapper';

-- Writes a row of snowflake_migrate_internal.pace, for the owner of its table.
CREATE FUNCTION snowflake_migrate_internal.keep_pace(pace snowflake_migrate_internal.pace) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_keep_pace_wrapper';

-- What migrations have to remember.
--
-- Both tables are read and written by the functions of src/migration/records.rs,
-- which look at whose the table is that a row is about. A privilege to write to
-- them, as wholesale grants give it, has no effect: see the trigger.
--
-- What a column was before it was migrated, for the way back. DROP IDENTITY
-- drops the sequence, so its properties are here. It reveals how far sequences
-- are, so the owner of a table sees its row, through snowflake_internal.migration_origin(),
-- and of the other roles only those that dump the database.
CREATE TABLE snowflake_internal.origins (
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
    -- Partitions and children whose default was another one.
    child_defaults jsonb,
    -- No snowflake ID of the column is smaller, whoever made it and when; and
    -- none of this migration's is smaller than the other one.
    first_id_ever bigint NOT NULL,
    first_id bigint NOT NULL,
    remembered_at timestamp with time zone NOT NULL DEFAULT pg_catalog.now(),
    reverted_at timestamp with time zone,
    PRIMARY KEY (target, column_name)
) USING heap;
COMMENT ON TABLE snowflake_internal.origins IS 'What fed the columns that were migrated, for snowflake_migrate_revert(); written by the extension only';
COMMENT ON COLUMN snowflake_internal.origins.target IS 'The table';
COMMENT ON COLUMN snowflake_internal.origins.column_name IS 'The column';
COMMENT ON COLUMN snowflake_internal.origins.kind IS 'As in snowflake_serial_columns; none for a column that no sequence fed';
COMMENT ON COLUMN snowflake_internal.origins.data_type IS 'The type before it was widened';
COMMENT ON COLUMN snowflake_internal.origins.default_expression IS 'The default it had';
COMMENT ON COLUMN snowflake_internal.origins.sequence_schema IS 'The sequence''s schema';
COMMENT ON COLUMN snowflake_internal.origins.sequence_name IS 'The sequence''s name';
COMMENT ON COLUMN snowflake_internal.origins.sequence_options IS 'The sequence''s start, increment, ends, cache and cycle';
COMMENT ON COLUMN snowflake_internal.origins.sequence_last_value IS 'The last number that was taken from it; NULL for a sequence of another role than the table''s owner';
COMMENT ON COLUMN snowflake_internal.origins.sequence_privileges IS 'Who had which privileges on it';
COMMENT ON COLUMN snowflake_internal.origins.sequence_comment IS 'The comment on it';
COMMENT ON COLUMN snowflake_internal.origins.child_defaults IS 'The defaults of partitions and children that had another one';
COMMENT ON COLUMN snowflake_internal.origins.first_id_ever IS 'No snowflake ID of the column is smaller';
COMMENT ON COLUMN snowflake_internal.origins.first_id IS 'No snowflake ID since this migration is smaller, and every row before it is';
COMMENT ON COLUMN snowflake_internal.origins.remembered_at IS 'When the migration began';
COMMENT ON COLUMN snowflake_internal.origins.reverted_at IS 'When it was reverted';
-- A table that is gone would be dumped by its number, which could be another's.
SELECT pg_catalog.pg_extension_config_dump(
    'snowflake_internal.origins', 'WHERE EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = target)');
-- ALTER DEFAULT PRIVILEGES may have granted something.
REVOKE ALL ON snowflake_internal.origins FROM PUBLIC;

-- It is each server's own: a publication FOR ALL TABLES has it too, and what
-- arrives from there is discarded.
CREATE FUNCTION snowflake_internal.origins_stay()
RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN NULL;
END
$function$;
COMMENT ON FUNCTION snowflake_internal.origins_stay() IS
    'Keeps rows replicated from another server out of the tables of this one';
CREATE TRIGGER origins_stay BEFORE INSERT OR UPDATE OR DELETE ON snowflake_internal.origins
    FOR EACH ROW EXECUTE FUNCTION snowflake_internal.origins_stay();
ALTER TABLE snowflake_internal.origins ENABLE REPLICA TRIGGER origins_stay;

-- Only superusers change it by SQL, as a restored dump does. In the replica
-- role too, in which TRUNCATE fires no row's trigger.
CREATE TRIGGER origins_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_internal.origins
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_internal.migration_guard();
ALTER TABLE snowflake_internal.origins ENABLE ALWAYS TRIGGER origins_guard;

-- How far the copying of rows is: for whoever watches, and for a backfill that
-- was interrupted. That all rows are copied is not concluded from it: the
-- constraint that is validated afterwards looks at each of them.
CREATE TABLE snowflake_internal.progress (
    target regclass NOT NULL,
    column_name name NOT NULL,
    relation regclass NOT NULL,
    -- The table's file: one that was written anew has its rows elsewhere.
    filenode oid,
    blocks_done bigint NOT NULL DEFAULT 0,
    blocks_total bigint NOT NULL DEFAULT 0,
    batch_blocks bigint,
    -- Blocks with rows that other transactions had locked.
    skipped int8multirange NOT NULL DEFAULT '{}',
    rows_done bigint NOT NULL DEFAULT 0,
    rows_total bigint NOT NULL DEFAULT 0,
    -- Of the present run, or the last one.
    run_rows bigint NOT NULL DEFAULT 0,
    run_seconds double precision NOT NULL DEFAULT 0,
    updated_at timestamp with time zone NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    PRIMARY KEY (target, column_name, relation)
) USING heap WITH (fillfactor = 50);
COMMENT ON TABLE snowflake_internal.progress IS 'How far online migrations are with copying rows; written by the extension only. snowflake_migrations shows it';
COMMENT ON COLUMN snowflake_internal.progress.target IS 'The table whose key is migrated';
COMMENT ON COLUMN snowflake_internal.progress.column_name IS 'The key';
COMMENT ON COLUMN snowflake_internal.progress.relation IS 'The table whose rows are copied: that one, or one that references it';
COMMENT ON COLUMN snowflake_internal.progress.filenode IS 'The file it had when the copying began';
COMMENT ON COLUMN snowflake_internal.progress.blocks_done IS 'How many of its blocks are copied';
COMMENT ON COLUMN snowflake_internal.progress.blocks_total IS 'How many it had when the copying began; rows in later ones have their shadows from the trigger';
COMMENT ON COLUMN snowflake_internal.progress.batch_blocks IS 'How many the next batch takes';
COMMENT ON COLUMN snowflake_internal.progress.skipped IS 'Blocks with rows that other transactions had locked, to be looked at again';
COMMENT ON COLUMN snowflake_internal.progress.rows_done IS 'How many rows that is, as far as rows_total is right';
COMMENT ON COLUMN snowflake_internal.progress.rows_total IS 'How many rows it had, as the planner guessed';
COMMENT ON COLUMN snowflake_internal.progress.run_rows IS 'How many of rows_done are of the present call, or the last one';
COMMENT ON COLUMN snowflake_internal.progress.run_seconds IS 'How long those took, with the pauses between batches';
COMMENT ON COLUMN snowflake_internal.progress.updated_at IS 'When this was noted';
GRANT SELECT ON snowflake_internal.progress TO PUBLIC;

-- Each server has its own, as of snowflake_internal.origins.
CREATE TRIGGER progress_stay BEFORE INSERT OR UPDATE OR DELETE ON snowflake_internal.progress
    FOR EACH ROW EXECUTE FUNCTION snowflake_internal.origins_stay();
ALTER TABLE snowflake_internal.progress ENABLE REPLICA TRIGGER progress_stay;

CREATE TRIGGER progress_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_internal.progress
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_internal.migration_guard();
ALTER TABLE snowflake_internal.progress ENABLE ALWAYS TRIGGER progress_guard;

-- What migrations have to remember.
--
-- Both tables are read and written by the functions of src/migration/records.rs,
-- which look at whose the table is that a row is about. A privilege to write to
-- them, as wholesale grants give it, has no effect: see the trigger.
--
-- What a column was before it was migrated, for the way back. DROP IDENTITY
-- drops the sequence, so its properties are here. It reveals how far sequences
-- are, so the owner of a table sees its row, through snowflake_migration_origin(),
-- and of the other roles only those that dump the database.
CREATE TABLE snowflake_origins (
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
-- A table that is gone would be dumped by its number, which could be another's.
SELECT pg_catalog.pg_extension_config_dump(
    'snowflake_origins', 'WHERE EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = target)');
-- ALTER DEFAULT PRIVILEGES may have granted something.
REVOKE ALL ON snowflake_origins FROM PUBLIC;

-- It is each server's own: a publication FOR ALL TABLES has it too, and what
-- arrives from there is discarded.
CREATE FUNCTION snowflake_origins_stay()
RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN NULL;
END
$function$;
CREATE TRIGGER snowflake_origins_stay BEFORE INSERT OR UPDATE OR DELETE ON snowflake_origins
    FOR EACH ROW EXECUTE FUNCTION snowflake_origins_stay();
ALTER TABLE snowflake_origins ENABLE REPLICA TRIGGER snowflake_origins_stay;

-- Only superusers change it by SQL, as a restored dump does. In the replica
-- role too, in which TRUNCATE fires no row's trigger.
CREATE TRIGGER snowflake_origins_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_origins
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_migration_guard();
ALTER TABLE snowflake_origins ENABLE ALWAYS TRIGGER snowflake_origins_guard;

-- How far the copying of rows is: for whoever watches, and for a backfill that
-- was interrupted. That all rows are copied is not concluded from it: the
-- constraint that is validated afterwards looks at each of them.
CREATE TABLE snowflake_progress (
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
GRANT SELECT ON snowflake_progress TO PUBLIC;

-- Each server has its own, as of snowflake_origins.
CREATE TRIGGER snowflake_progress_stay BEFORE INSERT OR UPDATE OR DELETE ON snowflake_progress
    FOR EACH ROW EXECUTE FUNCTION snowflake_origins_stay();
ALTER TABLE snowflake_progress ENABLE REPLICA TRIGGER snowflake_progress_stay;

CREATE TRIGGER snowflake_progress_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_progress
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_migration_guard();
ALTER TABLE snowflake_progress ENABLE ALWAYS TRIGGER snowflake_progress_guard;

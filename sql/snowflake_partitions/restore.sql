-- Through this table the settings are restored by a role that is no superuser: see
-- sql/snowflake/restore.sql. Its columns are those of the settings, and the name of the table
-- instead of its OID.
CREATE TABLE snowflake_partitions_internal.restore (
    parent_schema name,
    parent_name name,
    step interval,
    time_zone text,
    ahead interval,
    keep interval,
    -- While the trigger is disabled, a row is an error: it would have no effect.
    CONSTRAINT restore_applies_rows_by_its_trigger CHECK (false)
) USING heap;
COMMENT ON TABLE snowflake_partitions_internal.restore IS
    'What pg_dump includes of this extension; always empty. Rows that are inserted by a restored dump are applied, not stored';
COMMENT ON COLUMN snowflake_partitions_internal.restore.parent_schema IS 'Schema of the table';
COMMENT ON COLUMN snowflake_partitions_internal.restore.parent_name IS 'Name of the table';
COMMENT ON COLUMN snowflake_partitions_internal.restore.step IS 'As in snowflake_partitions_internal.settings';
COMMENT ON COLUMN snowflake_partitions_internal.restore.time_zone IS 'As in snowflake_partitions_internal.settings';
COMMENT ON COLUMN snowflake_partitions_internal.restore.ahead IS 'As in snowflake_partitions_internal.settings';
COMMENT ON COLUMN snowflake_partitions_internal.restore.keep IS 'As in snowflake_partitions_internal.settings';

-- The trigger of snowflake_partitions_internal.restore: applies a row of a restored dump with
-- the privileges of the role that restores it. Existing settings stay. What cannot be applied
-- is left out with a warning, so that the dump is restored otherwise.
CREATE FUNCTION snowflake_partitions_internal.restore_row()
RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    parent regclass;
BEGIN
    -- A role that inserts into another table has not asked to restore anything.
    IF TG_RELID <> 'snowflake_partitions_internal.restore'::regclass THEN
        PERFORM snowflake_internal.refuse('55000', 'this function is the trigger of one table of the extension');
    END IF;
    parent := (SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
               WHERE n.nspname = NEW.parent_schema AND c.relname = NEW.parent_name);
    BEGIN
        IF parent IS NULL THEN
            PERFORM snowflake_internal.refuse('42P01', 'the table does not exist');
        END IF;
        INSERT INTO snowflake_partitions_internal.settings (parent, step, time_zone, ahead, keep)
        VALUES (parent, NEW.step, NEW.time_zone, NEW.ahead, NEW.keep)
        ON CONFLICT DO NOTHING;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'the partition settings of %.% were not restored', quote_ident(NEW.parent_schema), quote_ident(NEW.parent_name)
            USING DETAIL = SQLERRM, HINT = 'Run snowflake_partitions.configure() as the owner of the table.';
    END;
    RETURN NULL;
END
$function$;

CREATE TRIGGER restore_row BEFORE INSERT ON snowflake_partitions_internal.restore
    FOR EACH ROW EXECUTE FUNCTION snowflake_partitions_internal.restore_row();
ALTER TABLE snowflake_partitions_internal.restore ENABLE ALWAYS TRIGGER restore_row;

-- The columns are those above, in that order; a later version may only append some.
SELECT pg_catalog.pg_extension_config_dump('snowflake_partitions_internal.restore', $condition$WHERE false
UNION ALL
SELECT n.nspname, c.relname, s.step, s.time_zone, s.ahead, s.keep
FROM snowflake_partitions_internal.settings AS s
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) s.parent AND c.relpersistence OPERATOR(pg_catalog.<>) 't'
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
ORDER BY 1, 2$condition$);

-- Through this table a dump is restored by a role that is no superuser.
--
-- pg_dump reads the rows of a table that an extension has registered, with a
-- condition of the extension appended to its query. The condition here replaces
-- the rows: the table is always empty, and what is dumped in its name is the mark,
-- the layouts and the first IDs. A role that restores the dump inserts these rows. The
-- trigger applies each one with the rights of that role, as src/restore.rs
-- describes, and nothing is stored.
--
-- If the real tables were dumped, only superusers could restore them: setval() on
-- the mark could also lower it, and INSERT on first_ids could forge the records of
-- other owners' tables.
CREATE TABLE snowflake_internal.restore (
    -- mark, layout or first ID
    record text,
    mark bigint,
    layout text,
    accepted_at timestamp with time zone,
    -- The others are columns of snowflake_internal.first_ids. A name instead of a
    -- regclass: a table that is not restored is no error.
    target_schema name,
    target_name name,
    column_name name,
    first_id bigint,
    is_migrated boolean,
    last_old_id bigint,
    -- While the trigger is disabled, a row is an error: it would have no effect.
    CONSTRAINT restore_applies_rows_by_its_trigger CHECK (false)
) USING heap;
COMMENT ON TABLE snowflake_internal.restore IS
    'What pg_dump includes of this extension; always empty. Rows that are inserted by a restored dump are applied, not stored';
COMMENT ON COLUMN snowflake_internal.restore.record IS 'What the row is: mark, layout or first ID';
COMMENT ON COLUMN snowflake_internal.restore.mark IS 'last_value of snowflake_internal.mark';
COMMENT ON COLUMN snowflake_internal.restore.layout IS 'As in snowflake_internal.accepted_layout';
COMMENT ON COLUMN snowflake_internal.restore.accepted_at IS 'As in snowflake_internal.accepted_layout';
COMMENT ON COLUMN snowflake_internal.restore.target_schema IS 'Schema of the table; this and the following columns are those of snowflake_internal.first_ids';
COMMENT ON COLUMN snowflake_internal.restore.target_name IS 'Name of the table';
COMMENT ON COLUMN snowflake_internal.restore.column_name IS 'Column';
COMMENT ON COLUMN snowflake_internal.restore.first_id IS 'As in snowflake_internal.first_ids';
COMMENT ON COLUMN snowflake_internal.restore.is_migrated IS 'As in snowflake_internal.first_ids';
COMMENT ON COLUMN snowflake_internal.restore.last_old_id IS 'As in snowflake_internal.first_ids';

-- The trigger of snowflake_internal.restore: applies a row of a restored dump.
CREATE FUNCTION snowflake_internal.restore_row() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_restore_row_wrapper';

-- Also in the replica role: a superuser may restore in it.
CREATE TRIGGER restore_row BEFORE INSERT ON snowflake_internal.restore
    FOR EACH ROW EXECUTE FUNCTION snowflake_internal.restore_row();
ALTER TABLE snowflake_internal.restore ENABLE ALWAYS TRIGGER restore_row;

-- The columns are those above, in that order. `pg_dump --inserts` names none, so a
-- later version may only append columns. pg_dump reads with its snapshot,
-- except the mark, which is read later than that: it is above all rows of the dump.
-- The mark comes before the layouts, so that the first ID finds the layout of IDs
-- that exist. A table that was dropped is left out, as are temporary ones.
SELECT pg_catalog.pg_extension_config_dump('snowflake_internal.restore', $condition$WHERE false
UNION ALL
SELECT 'mark', m.last_value, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM snowflake_internal.mark AS m WHERE m.last_value OPERATOR(pg_catalog.>) 1
UNION ALL
SELECT 'layout', NULL, l.layout, l.accepted_at, NULL, NULL, NULL, NULL, NULL, NULL
FROM snowflake_internal.accepted_layout AS l
UNION ALL
SELECT 'first ID', NULL, NULL, NULL, n.nspname, c.relname, f.column_name, f.first_id, f.is_migrated, f.last_old_id
FROM snowflake_internal.first_ids AS f
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) f.target AND c.relpersistence OPERATOR(pg_catalog.<>) 't'
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
ORDER BY 1 DESC, 5, 6, 7$condition$);

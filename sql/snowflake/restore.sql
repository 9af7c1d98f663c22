-- Through this table a dump is restored by a role that is no superuser.
--
-- pg_dump reads the rows of a table that an extension has registered, with a
-- condition of the extension appended to its query. The condition here replaces
-- the rows: the table is always empty, and what is dumped in its name is the mark and
-- the layouts. A role that restores the dump inserts these rows. The trigger applies
-- each one with the rights of that role, as src/restore.rs describes, and nothing is
-- stored.
CREATE TABLE snowflake_internal.restore (
    -- mark or layout
    record text,
    mark bigint,
    layout text,
    accepted_at timestamp with time zone,
    -- While the trigger is disabled, a row is an error: it would have no effect.
    CONSTRAINT restore_applies_rows_by_its_trigger CHECK (false)
) USING heap;
COMMENT ON TABLE snowflake_internal.restore IS
    'What pg_dump includes of this extension; always empty. Rows that are inserted by a restored dump are applied, not stored';
COMMENT ON COLUMN snowflake_internal.restore.record IS 'What the row is: mark or layout';
COMMENT ON COLUMN snowflake_internal.restore.mark IS 'last_value of snowflake_internal.mark';
COMMENT ON COLUMN snowflake_internal.restore.layout IS 'As in snowflake_internal.accepted_layout';
COMMENT ON COLUMN snowflake_internal.restore.accepted_at IS 'As in snowflake_internal.accepted_layout';

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
-- that exist.
SELECT pg_catalog.pg_extension_config_dump('snowflake_internal.restore', $condition$WHERE false
UNION ALL
SELECT 'mark', m.last_value, NULL, NULL
FROM snowflake_internal.mark AS m WHERE m.last_value OPERATOR(pg_catalog.>) 1
UNION ALL
SELECT 'layout', NULL, l.layout, l.accepted_at
FROM snowflake_internal.accepted_layout AS l
ORDER BY 1 DESC$condition$);

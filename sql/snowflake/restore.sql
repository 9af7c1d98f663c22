-- Through this table a dump is restored by a role that is no superuser.
--
-- pg_dump reads the rows of a table that an extension has registered, with a
-- condition of the extension appended to its query. The condition here replaces
-- the rows: the table is always empty, and what is dumped in its name is the mark,
-- the layout and the origins. A role that restores the dump inserts these rows. The
-- trigger applies each one with the rights of that role, as src/restore.rs
-- describes, and nothing is stored.
--
-- If the real tables were dumped, only superusers could restore them: setval() on
-- the mark could also lower it, and INSERT on origins could forge the records of
-- other owners' tables.
CREATE TABLE snowflake_internal.restore (
    -- mark, layout or origin
    record text,
    mark bigint,
    layout text,
    accepted_at timestamp with time zone,
    -- The others are columns of snowflake_internal.origins. A name instead of a
    -- regclass: a table that is not restored is no error.
    target_schema name,
    target_name name,
    column_name name,
    kind text,
    data_type text,
    default_expression text,
    sequence_schema name,
    sequence_name name,
    sequence_options jsonb,
    sequence_last_value bigint,
    sequence_privileges jsonb,
    sequence_comment text,
    child_defaults jsonb,
    first_id_ever bigint,
    first_id bigint,
    remembered_at timestamp with time zone,
    reverted_at timestamp with time zone,
    -- While the trigger is disabled, a row is an error: it would have no effect.
    CONSTRAINT restore_applies_rows_by_its_trigger CHECK (false)
) USING heap;
COMMENT ON TABLE snowflake_internal.restore IS
    'What pg_dump includes of this extension; always empty. Rows that are inserted by a restored dump are applied, not stored';
COMMENT ON COLUMN snowflake_internal.restore.record IS 'What the row is: mark, layout or origin';
COMMENT ON COLUMN snowflake_internal.restore.mark IS 'last_value of snowflake_internal.mark';
COMMENT ON COLUMN snowflake_internal.restore.layout IS 'As in snowflake_internal.accepted_layout';
COMMENT ON COLUMN snowflake_internal.restore.accepted_at IS 'As in snowflake_internal.accepted_layout';
COMMENT ON COLUMN snowflake_internal.restore.target_schema IS 'Schema of the table; this and the following columns are those of snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.target_name IS 'Name of the table';
COMMENT ON COLUMN snowflake_internal.restore.column_name IS 'Column';
COMMENT ON COLUMN snowflake_internal.restore.kind IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.data_type IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.default_expression IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.sequence_schema IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.sequence_name IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.sequence_options IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.sequence_last_value IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.sequence_privileges IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.sequence_comment IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.child_defaults IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.first_id_ever IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.first_id IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.remembered_at IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.reverted_at IS 'As in snowflake_internal.origins';

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
SELECT 'mark', m.last_value, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM snowflake_internal.mark AS m WHERE m.last_value OPERATOR(pg_catalog.>) 1
UNION ALL
SELECT 'layout', NULL, l.layout, l.accepted_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM snowflake_internal.accepted_layout AS l
UNION ALL
SELECT 'origin', NULL, NULL, NULL, n.nspname, c.relname, o.column_name, o.kind, o.data_type, o.default_expression,
       o.sequence_schema, o.sequence_name, o.sequence_options, o.sequence_last_value, o.sequence_privileges,
       o.sequence_comment, o.child_defaults, o.first_id_ever, o.first_id, o.remembered_at, o.reverted_at
FROM snowflake_internal.origins AS o
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) o.target AND c.relpersistence OPERATOR(pg_catalog.<>) 't'
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
ORDER BY 1 DESC, 5, 6, 7$condition$);

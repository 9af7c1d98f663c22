-- The layout that this database's IDs were generated with. It is written by
-- src/generator/accepted_layout.rs, which describes it. The table has several
-- rows after a dump from a server with another layout was restored.
CREATE TABLE snowflake_internal.accepted_layout (
    layout text NOT NULL,
    accepted_at timestamp with time zone NOT NULL DEFAULT pg_catalog.now()
) USING heap;
COMMENT ON TABLE snowflake_internal.accepted_layout IS 'The layout that the IDs of this database were generated with; written by the extension only. See snowflake_accept_layout()';
COMMENT ON COLUMN snowflake_internal.accepted_layout.layout IS 'Layout in canonical form';
COMMENT ON COLUMN snowflake_internal.accepted_layout.accepted_at IS 'Time of the first ID with this layout, or of its acceptance';
-- For readers of a change stream, which otherwise warn of a DELETE.
ALTER TABLE snowflake_internal.accepted_layout REPLICA IDENTITY FULL;

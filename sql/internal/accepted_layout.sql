-- The layout that this database's IDs were made with; src/generator/accepted_layout.rs
-- writes it and has the whole story. Several rows: a dump was restored from a
-- server with another layout.
CREATE TABLE snowflake_internal.accepted_layout (
    layout text NOT NULL,
    accepted_at timestamp with time zone NOT NULL DEFAULT pg_catalog.now()
) USING heap;
COMMENT ON TABLE snowflake_internal.accepted_layout IS 'The layout that the IDs of this database were generated with; written by the extension only. See snowflake_accept_layout()';
COMMENT ON COLUMN snowflake_internal.accepted_layout.layout IS 'The layout, in canonical form';
COMMENT ON COLUMN snowflake_internal.accepted_layout.accepted_at IS 'Time of the first ID with it, or when it was accepted';
SELECT pg_catalog.pg_extension_config_dump('snowflake_internal.accepted_layout', '');
GRANT SELECT ON snowflake_internal.accepted_layout TO PUBLIC;

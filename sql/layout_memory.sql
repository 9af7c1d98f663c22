-- The layout that this database's IDs were made with; src/layout_memory.rs
-- writes it and has the whole story. Several rows: a dump was restored from a
-- server with another layout.
CREATE TABLE snowflake_accepted_layout (
    layout text NOT NULL,
    accepted_at timestamp with time zone NOT NULL DEFAULT pg_catalog.now()
) USING heap;
SELECT pg_catalog.pg_extension_config_dump('snowflake_accepted_layout', '');
GRANT SELECT ON snowflake_accepted_layout TO PUBLIC;

-- For administrators.
REVOKE EXECUTE ON FUNCTION snowflake_accept_layout() FROM PUBLIC;

-- The layouts that have a name, over the function of src/layouts.rs.

CREATE VIEW snowflake_layouts AS
    SELECT name, layout, expires_at, ids_per_second, nodes, backends
    FROM snowflake_internal.get_layouts();
COMMENT ON VIEW snowflake_layouts IS 'The layouts that have a name';
COMMENT ON COLUMN snowflake_layouts.name IS 'What may stand for the layout''s text';
COMMENT ON COLUMN snowflake_layouts.layout IS 'The layout in canonical form';
COMMENT ON COLUMN snowflake_layouts.expires_at IS 'When the timestamp bits are used up';
COMMENT ON COLUMN snowflake_layouts.ids_per_second IS 'How many IDs a second one node makes in the long run, all its backend slots together';
COMMENT ON COLUMN snowflake_layouts.nodes IS 'How many node numbers there are';
COMMENT ON COLUMN snowflake_layouts.backends IS 'How many backend slots a node has';

GRANT SELECT ON snowflake_layouts TO PUBLIC;

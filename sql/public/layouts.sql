-- What layouts hold: the presets, any layout, and layouts for a number of servers
-- (src/sql/layouts.rs).

CREATE VIEW snowflake_layouts AS
    SELECT name, layout, expires_at, ids_per_second, nodes, backends
    FROM snowflake_internal.get_layouts();
COMMENT ON VIEW snowflake_layouts IS 'Layouts that have a preset name';
COMMENT ON COLUMN snowflake_layouts.name IS 'Preset name, accepted in place of a layout''s text';
COMMENT ON COLUMN snowflake_layouts.layout IS 'The layout in canonical form';
COMMENT ON COLUMN snowflake_layouts.expires_at IS 'Time at which the layout runs out of timestamps';
COMMENT ON COLUMN snowflake_layouts.ids_per_second IS 'IDs per second that one node can issue in the long run, over all its slots';
COMMENT ON COLUMN snowflake_layouts.nodes IS 'Number of nodes that the layout allows';
COMMENT ON COLUMN snowflake_layouts.backends IS 'Number of slots of a node';

GRANT SELECT ON snowflake_layouts TO PUBLIC;

COMMENT ON FUNCTION snowflake_layout_capacity(layout text) IS
    'What a layout holds: node numbers, slots of a node, IDs per second of a node over all its slots, and when it runs out';
COMMENT ON FUNCTION snowflake_layouts_for(servers integer) IS
    'Layouts with a node number for each of so many servers, the recommended one first; count standbys and replacements, too';

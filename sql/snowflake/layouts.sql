-- What layouts hold: the presets, any layout, and layouts for a number of servers
-- (src/sql/layouts.rs).

-- Used by the view snowflake_layouts.
CREATE FUNCTION snowflake_internal.get_layouts() RETURNS TABLE (
    name text, layout text, expires_at timestamp with time zone,
    ids_per_second bigint, nodes bigint, backends bigint, about text
) IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_get_layouts_wrapper';

CREATE VIEW snowflake_layouts AS
    SELECT name, layout, expires_at, ids_per_second, nodes, backends, about
    FROM snowflake_internal.get_layouts();
COMMENT ON VIEW snowflake_layouts IS 'Layouts that have a preset name';
COMMENT ON COLUMN snowflake_layouts.name IS 'Preset name, accepted in place of a layout''s text';
COMMENT ON COLUMN snowflake_layouts.layout IS 'The layout in canonical form';
COMMENT ON COLUMN snowflake_layouts.expires_at IS 'Time at which the layout runs out of timestamps';
COMMENT ON COLUMN snowflake_layouts.ids_per_second IS 'IDs per second that one node can issue in the long run, over all its slots';
COMMENT ON COLUMN snowflake_layouts.nodes IS 'Number of nodes that the layout allows';
COMMENT ON COLUMN snowflake_layouts.backends IS 'Number of slots of a node';
COMMENT ON COLUMN snowflake_layouts.about IS 'System that uses the layout, and what its fields mean there';

GRANT SELECT ON snowflake_layouts TO PUBLIC;

CREATE FUNCTION snowflake_layout_capacity(name_or_layout text) RETURNS TABLE (
    name text, layout text, expires_at timestamp with time zone,
    ids_per_second bigint, nodes bigint, backends bigint
) IMMUTABLE STRICT PARALLEL SAFE ROWS 1 LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_layout_capacity_wrapper';
COMMENT ON FUNCTION snowflake_layout_capacity(name_or_layout text) IS
    'What a layout holds: node numbers, slots of a node, IDs per second of a node over all its slots, and when it runs out';

CREATE FUNCTION snowflake_layouts_for(servers integer) RETURNS TABLE (
    recommended boolean, name text, layout text, expires_at timestamp with time zone,
    ids_per_second bigint, nodes bigint, backends bigint
) STABLE STRICT PARALLEL SAFE ROWS 8 LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_layouts_for_wrapper';
COMMENT ON FUNCTION snowflake_layouts_for(servers integer) IS
    'Layouts with a node number for each of so many servers, the recommended one first; count standbys and replacements, too';

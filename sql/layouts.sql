-- The layouts that have a name, over the function of src/layouts.rs.

CREATE VIEW snowflake_layouts AS
    SELECT name, layout, expires_at, ids_per_second, nodes, backends
    FROM @extschema@.snowflake_get_layouts();

GRANT SELECT ON snowflake_layouts TO PUBLIC;

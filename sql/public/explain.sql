COMMENT ON FUNCTION snowflake_explain(id bigint) IS
    'Draws the bits of an ID, field by field, by this server''s layout';
COMMENT ON FUNCTION snowflake_explain(id bigint, layout text) IS
    'Draws the bits of an ID, field by field, by a layout or preset name';

CREATE FUNCTION snowflake_explain(id bigint) RETURNS text
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_explain_wrapper';
COMMENT ON FUNCTION snowflake_explain(id bigint) IS
    'Draws the bits of an ID, field by field, by this server''s layout';

CREATE FUNCTION snowflake_explain(id bigint, layout text) RETURNS text
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_explain_by_wrapper';
COMMENT ON FUNCTION snowflake_explain(id bigint, layout text) IS
    'Draws the bits of an ID, field by field, by a layout or preset name';

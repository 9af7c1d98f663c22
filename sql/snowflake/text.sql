CREATE FUNCTION snowflake_to_text(id bigint, encoding text DEFAULT 'base32') RETURNS text
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_to_text_wrapper';
COMMENT ON FUNCTION snowflake_to_text(id bigint, encoding text) IS
    'Encodes an ID as text of fixed width, in base32 (13 characters) or base62 (11). The text sorts like the ID';

CREATE FUNCTION snowflake_from_text(text text, encoding text DEFAULT 'base32') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_from_text_wrapper';
COMMENT ON FUNCTION snowflake_from_text(text text, encoding text) IS
    'Returns the ID that snowflake_to_text encoded';

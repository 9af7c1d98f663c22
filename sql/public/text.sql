COMMENT ON FUNCTION snowflake_to_text(id bigint, encoding text) IS
    'Encodes an ID as text of fixed width, in base32 (13 characters) or base62 (11). The text sorts like the ID';
COMMENT ON FUNCTION snowflake_from_text(text text, encoding text) IS
    'Returns the ID that snowflake_to_text encoded';

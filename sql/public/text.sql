COMMENT ON FUNCTION snowflake_to_text(id bigint, encoding text) IS
    'Encodes an ID as text of fixed width, base32 (13 characters) or base62 (11), which sorts as the ID does';
COMMENT ON FUNCTION snowflake_from_text(text text, encoding text) IS
    'Decodes a text made by snowflake_to_text';

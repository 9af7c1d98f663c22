-- What \dx+, \df+ and \ds+ show.
COMMENT ON FUNCTION snowflake_nextval() IS
    'Makes the next ID: for DEFAULT on a bigint primary key';
COMMENT ON FUNCTION snowflake_nextvals(count integer) IS
    'Makes that many IDs, ascending; reserves whole runs at a time';
COMMENT ON FUNCTION snowflake_currval() IS
    'The last ID that this session got';
COMMENT ON FUNCTION snowflake_decode(id bigint) IS
    'Reads when and where an ID was made, by this server''s layout';
COMMENT ON FUNCTION snowflake_decode(id bigint, layout text) IS
    'Reads when and where an ID was made, by a layout''s text or preset name';
COMMENT ON SEQUENCE snowflake_mark IS
    'Reserved time: no ID at or above last_value has been issued in this database. Moved by the extension; not for nextval()';

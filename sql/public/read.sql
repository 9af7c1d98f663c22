COMMENT ON FUNCTION snowflake_decode(id bigint) IS
    'Reads when and where an ID was made, by this server''s layout';
COMMENT ON FUNCTION snowflake_decode(id bigint, layout text) IS
    'Reads when and where an ID was made, by a layout''s text or preset name';
COMMENT ON FUNCTION snowflake_timestamp(id bigint) IS
    'When an ID was made, by this server''s layout';
COMMENT ON FUNCTION snowflake_timestamp(id bigint, layout text) IS
    'When an ID was made, by a layout''s text or preset name';
COMMENT ON FUNCTION snowflake_node_id(id bigint) IS
    'The number of the server that made an ID, by this server''s layout';
COMMENT ON FUNCTION snowflake_node_id(id bigint, layout text) IS
    'The number of the server that made an ID, by a layout''s text or preset name';
COMMENT ON FUNCTION snowflake_backend_id(id bigint) IS
    'The number of the slot that made an ID, by this server''s layout: for single IDs the PID modulo the number of slots, for those in bulk 0 or any other';
COMMENT ON FUNCTION snowflake_backend_id(id bigint, layout text) IS
    'The number of the slot that made an ID, by a layout''s text or preset name: for a server of this extension the PID modulo the number of slots, or for IDs in bulk 0 or any other';
COMMENT ON FUNCTION snowflake_sequence(id bigint) IS
    'The sequence number of an ID within its tick and slot, by this server''s layout';
COMMENT ON FUNCTION snowflake_sequence(id bigint, layout text) IS
    'The sequence number of an ID within its tick and slot, by a layout''s text or preset name';
COMMENT ON FUNCTION snowflake_compose(created_at timestamp with time zone, node_id integer, backend_id integer, sequence integer) IS
    'The ID with these fields, by this server''s layout: the inverse of snowflake_decode. Makes no new ID';
COMMENT ON FUNCTION snowflake_compose(created_at timestamp with time zone, node_id integer, backend_id integer, sequence integer, layout text) IS
    'The ID with these fields, by a layout''s text or preset name: the inverse of snowflake_decode. Makes no new ID';

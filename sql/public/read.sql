COMMENT ON FUNCTION snowflake_decode(id bigint) IS
    'Decodes an ID: when and where it was generated, by this server''s layout';
COMMENT ON FUNCTION snowflake_decode(id bigint, layout text) IS
    'Decodes an ID: when and where it was generated, by a layout or preset name';
COMMENT ON FUNCTION snowflake_timestamp(id bigint) IS
    'Returns the time at which an ID was generated, by this server''s layout';
COMMENT ON FUNCTION snowflake_timestamp(id bigint, layout text) IS
    'Returns the time at which an ID was generated, by a layout or preset name';
COMMENT ON FUNCTION snowflake_node_id(id bigint) IS
    'Returns the node number of the server that generated an ID, by this server''s layout';
COMMENT ON FUNCTION snowflake_node_id(id bigint, layout text) IS
    'Returns the node number of the server that generated an ID, by a layout or preset name';
COMMENT ON FUNCTION snowflake_backend_id(id bigint) IS
    'Returns the backend number of an ID, by this server''s layout: for single IDs the PID modulo the number of slots, for IDs in bulk 0 or any other';
COMMENT ON FUNCTION snowflake_backend_id(id bigint, layout text) IS
    'Returns the backend number of an ID, by a layout or preset name';
COMMENT ON FUNCTION snowflake_sequence(id bigint) IS
    'Returns the sequence number of an ID within its tick and slot, by this server''s layout';
COMMENT ON FUNCTION snowflake_sequence(id bigint, layout text) IS
    'Returns the sequence number of an ID within its tick and slot, by a layout or preset name';
COMMENT ON FUNCTION snowflake_compose(created_at timestamp with time zone, node_id integer, backend_id integer, sequence integer) IS
    'Returns the ID with these fields, by this server''s layout: the inverse of snowflake_decode. Does not issue an ID';
COMMENT ON FUNCTION snowflake_compose(created_at timestamp with time zone, node_id integer, backend_id integer, sequence integer, layout text) IS
    'Returns the ID with these fields, by a layout or preset name: the inverse of snowflake_decode. Does not issue an ID';

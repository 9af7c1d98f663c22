-- Planner support function of snowflake_decode() and snowflake_timestamp(): where the library is
-- not preloaded, it is loaded before a session's first query with them looks at its tables.
CREATE FUNCTION snowflake_internal.read_support(request internal) RETURNS internal
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_read_support_wrapper';

CREATE FUNCTION snowflake_decode(
    id bigint, OUT created_at timestamp with time zone, OUT node_id integer, OUT backend_id integer, OUT sequence integer
) STABLE STRICT PARALLEL SAFE SUPPORT snowflake_internal.read_support LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_decode_wrapper';
COMMENT ON FUNCTION snowflake_decode(id bigint) IS
    'Decodes an ID: when and where it was generated, by this server''s layout';

CREATE FUNCTION snowflake_decode(
    id bigint, layout text, OUT created_at timestamp with time zone, OUT node_id integer, OUT backend_id integer, OUT sequence integer
) IMMUTABLE STRICT PARALLEL SAFE SUPPORT snowflake_internal.read_support LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_decode_by_wrapper';
COMMENT ON FUNCTION snowflake_decode(id bigint, layout text) IS
    'Decodes an ID: when and where it was generated, by a layout or preset name';

CREATE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamp with time zone SUPPORT snowflake_internal.read_support
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_timestamp_wrapper';
COMMENT ON FUNCTION snowflake_timestamp(id bigint) IS
    'Returns the time at which an ID was generated, by this server''s layout';

CREATE FUNCTION snowflake_timestamp(id bigint, layout text) RETURNS timestamp with time zone SUPPORT snowflake_internal.read_support
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_timestamp_by_wrapper';
COMMENT ON FUNCTION snowflake_timestamp(id bigint, layout text) IS
    'Returns the time at which an ID was generated, by a layout or preset name';

CREATE FUNCTION snowflake_node_id(id bigint) RETURNS integer
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_node_id_wrapper';
COMMENT ON FUNCTION snowflake_node_id(id bigint) IS
    'Returns the node number of the server that generated an ID, by this server''s layout';

CREATE FUNCTION snowflake_node_id(id bigint, layout text) RETURNS integer
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_node_id_by_wrapper';
COMMENT ON FUNCTION snowflake_node_id(id bigint, layout text) IS
    'Returns the node number of the server that generated an ID, by a layout or preset name';

CREATE FUNCTION snowflake_backend_id(id bigint) RETURNS integer
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_backend_id_wrapper';
COMMENT ON FUNCTION snowflake_backend_id(id bigint) IS
    'Returns the backend number of an ID, by this server''s layout: for single IDs the PID modulo the number of slots, for IDs in bulk 0 or any other';

CREATE FUNCTION snowflake_backend_id(id bigint, layout text) RETURNS integer
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_backend_id_by_wrapper';
COMMENT ON FUNCTION snowflake_backend_id(id bigint, layout text) IS
    'Returns the backend number of an ID, by a layout or preset name';

CREATE FUNCTION snowflake_sequence(id bigint) RETURNS integer
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_sequence_wrapper';
COMMENT ON FUNCTION snowflake_sequence(id bigint) IS
    'Returns the sequence number of an ID within its tick and slot, by this server''s layout';

CREATE FUNCTION snowflake_sequence(id bigint, layout text) RETURNS integer
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_sequence_by_wrapper';
COMMENT ON FUNCTION snowflake_sequence(id bigint, layout text) IS
    'Returns the sequence number of an ID within its tick and slot, by a layout or preset name';

CREATE FUNCTION snowflake_compose(created_at timestamp with time zone, node_id integer, backend_id integer, sequence integer) RETURNS bigint
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_compose_wrapper';
COMMENT ON FUNCTION snowflake_compose(created_at timestamp with time zone, node_id integer, backend_id integer, sequence integer) IS
    'Returns the ID with these fields, by this server''s layout: the inverse of snowflake_decode. Does not issue an ID';

CREATE FUNCTION snowflake_compose(created_at timestamp with time zone, node_id integer, backend_id integer, sequence integer, layout text) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_compose_by_wrapper';
COMMENT ON FUNCTION snowflake_compose(created_at timestamp with time zone, node_id integer, backend_id integer, sequence integer, layout text) IS
    'Returns the ID with these fields, by a layout or preset name: the inverse of snowflake_decode. Does not issue an ID';

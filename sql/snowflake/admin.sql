-- Functions for administrators.

CREATE FUNCTION snowflake_accept_clock(expected timestamp with time zone) RETURNS void
    VOLATILE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_accept_clock_wrapper';
COMMENT ON FUNCTION snowflake_accept_clock(expected timestamp with time zone) IS
    'Accepts a clock that jumped ahead by more than snowflake.max_clock_step; expected must be within a minute of it';

CREATE FUNCTION snowflake_start_after(id bigint) RETURNS void
    VOLATILE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_start_after_wrapper';
COMMENT ON FUNCTION snowflake_start_after(id bigint) IS
    'Makes later IDs of this database greater than this one; never lowers them';

CREATE FUNCTION snowflake_accept_layout() RETURNS void
    VOLATILE STRICT PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_accept_layout_wrapper';
COMMENT ON FUNCTION snowflake_accept_layout() IS
    'Accepts a changed snowflake.layout for this database';

CREATE FUNCTION snowflake_accept_node_id(ignored_id bigint DEFAULT NULL) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_accept_node_id_wrapper';
COMMENT ON FUNCTION snowflake_accept_node_id(ignored_id bigint) IS
    'Accepts that no other server uses this server''s node number: IDs that a node conflict has stopped continue, and the data directory is not taken for a copy; ignored_id is an ID too far ahead of the clock that IDs do not continue after';

CREATE FUNCTION snowflake_stat_reset() RETURNS void
    VOLATILE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_stat_reset_wrapper';
COMMENT ON FUNCTION snowflake_stat_reset() IS
    'Resets the counters of snowflake_status and snowflake_stat_slots to 0';

REVOKE EXECUTE ON FUNCTION snowflake_stat_reset(), snowflake_accept_clock(timestamp with time zone), snowflake_start_after(bigint),
    snowflake_accept_layout(), snowflake_accept_node_id(bigint) FROM PUBLIC;

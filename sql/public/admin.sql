-- Functions for administrators.
COMMENT ON FUNCTION snowflake_accept_clock(expected timestamp with time zone) IS
    'Takes the clock as right though it has jumped ahead by more than snowflake.max_clock_step; expected must match it within a minute';
COMMENT ON FUNCTION snowflake_start_after(id bigint) IS
    'Later IDs of this database are greater than this one; never lowers';
COMMENT ON FUNCTION snowflake_accept_layout() IS
    'Accepts a change of snowflake.layout: this database''s IDs have the present layout from now on';
COMMENT ON FUNCTION snowflake_stat_reset() IS
    'Sets the counters of snowflake_status and snowflake_stat_slots to 0';

REVOKE EXECUTE ON FUNCTION snowflake_stat_reset() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_accept_clock(timestamp with time zone) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_start_after(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_accept_layout() FROM PUBLIC;

COMMENT ON FUNCTION snowflake_nextval() IS
    'Returns the next ID: for the DEFAULT of a bigint primary key';
COMMENT ON FUNCTION snowflake_id() IS
    'Returns the next ID, as snowflake_nextval() does: for frameworks that take a default with "nextval" in it for a sequence''s';
COMMENT ON FUNCTION snowflake_nextvals(count integer) IS
    'Returns that many new IDs in ascending order';
COMMENT ON FUNCTION snowflake_currval() IS
    'Returns the last ID that this session was issued. Behind a pool in transaction mode, use RETURNING instead';

-- The planner calls the support function, which may return a replacement for
-- the call; see src/copy.rs.
ALTER FUNCTION snowflake_nextval() SUPPORT snowflake_internal.nextval_support;
ALTER FUNCTION snowflake_id() SUPPORT snowflake_internal.nextval_support;

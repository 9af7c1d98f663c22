COMMENT ON FUNCTION snowflake_nextval() IS
    'Returns the next ID: for the DEFAULT of a bigint primary key';
COMMENT ON FUNCTION snowflake_nextvals(count integer) IS
    'Returns that many new IDs in ascending order';
COMMENT ON FUNCTION snowflake_currval() IS
    'Returns the last ID that this session was issued';

-- The planner calls the support function, which may return a replacement for
-- the call; see src/copy.rs.
ALTER FUNCTION snowflake_nextval() SUPPORT snowflake_internal.nextval_support;

COMMENT ON FUNCTION snowflake_nextval() IS
    'Makes the next ID: for DEFAULT on a bigint primary key';
COMMENT ON FUNCTION snowflake_nextvals(count integer) IS
    'Makes that many IDs, ascending; reserves whole runs at a time';
COMMENT ON FUNCTION snowflake_currval() IS
    'The last ID that this session got';

-- The planner asks the support function what may stand for the call; see
-- src/copy.rs.
ALTER FUNCTION snowflake_nextval() SUPPORT snowflake_internal.nextval_support;

-- The planner asks the support function what may stand for the call; see
-- src/copy.rs.
ALTER FUNCTION snowflake_nextval() SUPPORT snowflake_nextval_support;

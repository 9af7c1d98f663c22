-- name: `snowflake_nextval()`
-- id: snowflake_nextval()
-- conf: shared_preload_libraries = snowflake
-- conf: snowflake.node_id = :node
CREATE EXTENSION snowflake;

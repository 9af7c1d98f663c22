-- Planner support function of snowflake_nextval() and snowflake_id(), which may return a
-- replacement for the call; see src/copy.rs.
CREATE FUNCTION snowflake_internal.nextval_support(request internal) RETURNS internal
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_support_wrapper';

-- Called by COPY in place of snowflake_nextval() and snowflake_id(), so that it can
-- insert rows in batches.
CREATE FUNCTION snowflake_internal.copy_nextval() RETURNS bigint
    STRICT STABLE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_copy_nextval_wrapper';

CREATE FUNCTION snowflake_nextval() RETURNS bigint SUPPORT snowflake_internal.nextval_support
    VOLATILE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_wrapper';
COMMENT ON FUNCTION snowflake_nextval() IS
    'Returns the next ID: for the DEFAULT of a bigint primary key';

CREATE FUNCTION snowflake_id() RETURNS bigint SUPPORT snowflake_internal.nextval_support
    VOLATILE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_id_wrapper';
COMMENT ON FUNCTION snowflake_id() IS
    'Returns the next ID, as snowflake_nextval() does: for frameworks that take a default with "nextval" in it for a sequence''s';

CREATE FUNCTION snowflake_nextvals(count integer) RETURNS SETOF bigint
    VOLATILE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextvals_wrapper';
COMMENT ON FUNCTION snowflake_nextvals(count integer) IS
    'Returns that many new IDs in ascending order';

CREATE FUNCTION snowflake_currval() RETURNS bigint
    VOLATILE STRICT PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_currval_wrapper';
COMMENT ON FUNCTION snowflake_currval() IS
    'Returns the last ID that this session was issued. Behind a pool in transaction mode, use RETURNING instead';

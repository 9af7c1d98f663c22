CREATE FUNCTION snowflake_min_id(at timestamp with time zone) RETURNS bigint
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_min_id_wrapper';
COMMENT ON FUNCTION snowflake_min_id(at timestamp with time zone) IS
    'Returns the smallest ID at or after a time, by this server''s layout; 0 before the epoch';

CREATE FUNCTION snowflake_min_id(at timestamp with time zone, layout text) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_min_id_by_wrapper';
COMMENT ON FUNCTION snowflake_min_id(at timestamp with time zone, layout text) IS
    'Returns the smallest ID at or after a time, by a layout or preset name; 0 before the epoch';

CREATE FUNCTION snowflake_max_id(at timestamp with time zone) RETURNS bigint
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_max_id_wrapper';
COMMENT ON FUNCTION snowflake_max_id(at timestamp with time zone) IS
    'Returns the largest ID at or before a time, by this server''s layout; -1 before the epoch';

CREATE FUNCTION snowflake_max_id(at timestamp with time zone, layout text) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_max_id_by_wrapper';
COMMENT ON FUNCTION snowflake_max_id(at timestamp with time zone, layout text) IS
    'Returns the largest ID at or before a time, by a layout or preset name; -1 before the epoch';

CREATE FUNCTION snowflake_max_id_before(at timestamp with time zone) RETURNS bigint
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_max_id_before_wrapper';
COMMENT ON FUNCTION snowflake_max_id_before(at timestamp with time zone) IS
    'Returns the largest ID before a time, by this server''s layout; used by snowflake_between. Never fails';

CREATE FUNCTION snowflake_max_id_before(at timestamp with time zone, layout text) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_max_id_before_by_wrapper';
COMMENT ON FUNCTION snowflake_max_id_before(at timestamp with time zone, layout text) IS
    'Returns the largest ID before a time, by a layout or preset name; used by snowflake_between. Never fails';

-- A range of time as a range of IDs. The planner must be able to inline the
-- function, because only then can it use an index on `id`. So the function is
-- not STRICT and has no SET clause. Each argument is used once, so that
-- expensive arguments and subqueries do not prevent inlining. The body is
-- parsed at creation, so the caller's search path cannot change its meaning.
--
-- The lower bound uses >=, as partition bounds do. With `id > n - 1`, the
-- planner would not exclude the partition that ends at n.

CREATE FUNCTION snowflake_between(
    id bigint, since timestamp with time zone, until timestamp with time zone
) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN id OPERATOR(pg_catalog.>=) @extschema@.snowflake_min_id(since)
       AND id OPERATOR(pg_catalog.<=) @extschema@.snowflake_max_id_before(until);
COMMENT ON FUNCTION snowflake_between(id bigint, since timestamp with time zone, until timestamp with time zone) IS
    'Returns whether an ID was generated at or after since and before until, by this server''s layout; can use an index on id';

CREATE FUNCTION snowflake_between(
    id bigint, since timestamp with time zone, until timestamp with time zone, layout text
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN id OPERATOR(pg_catalog.>=) @extschema@.snowflake_min_id(since, layout)
       AND id OPERATOR(pg_catalog.<=) @extschema@.snowflake_max_id_before(until, layout);
COMMENT ON FUNCTION snowflake_between(id bigint, since timestamp with time zone, until timestamp with time zone, layout text) IS
    'Returns whether an ID was generated at or after since and before until, by a layout or preset name; can use an index on id';

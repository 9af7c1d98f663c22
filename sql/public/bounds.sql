COMMENT ON FUNCTION snowflake_min_id(at timestamp with time zone) IS
    'Returns the smallest ID at or after a time, by this server''s layout; 0 before the epoch';
COMMENT ON FUNCTION snowflake_min_id(at timestamp with time zone, layout text) IS
    'Returns the smallest ID at or after a time, by a layout or preset name; 0 before the epoch';
COMMENT ON FUNCTION snowflake_max_id(at timestamp with time zone) IS
    'Returns the largest ID at or before a time, by this server''s layout; -1 before the epoch';
COMMENT ON FUNCTION snowflake_max_id(at timestamp with time zone, layout text) IS
    'Returns the largest ID at or before a time, by a layout or preset name; -1 before the epoch';
COMMENT ON FUNCTION snowflake_max_id_before(at timestamp with time zone) IS
    'Returns the largest ID before a time, by this server''s layout; used by snowflake_between. Never fails';
COMMENT ON FUNCTION snowflake_max_id_before(at timestamp with time zone, layout text) IS
    'Returns the largest ID before a time, by a layout or preset name; used by snowflake_between. Never fails';

-- A range of time as a range of IDs. Written so that the planner can replace
-- the call by its body, which is what makes an index on `id` usable: neither
-- STRICT nor with a SET clause, and each time used once, so that an expensive
-- one or a subquery is no obstacle. The body is parsed here and now: no search
-- path of a caller can change what it means.
--
-- The lower end is >=, because partitions have such bounds: `id > n - 1` would
-- not keep the planner from the partition that ends at n.

CREATE FUNCTION snowflake_between(
    id bigint,
    since timestamp with time zone,
    until timestamp with time zone
) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN id OPERATOR(pg_catalog.>=) @extschema@.snowflake_min_id(since)
       AND id OPERATOR(pg_catalog.<=) @extschema@.snowflake_max_id_before(until);
COMMENT ON FUNCTION snowflake_between(id bigint, since timestamp with time zone, until timestamp with time zone) IS
    'Returns whether an ID was generated at or after since and before until, by this server''s layout; can use an index on id';

CREATE FUNCTION snowflake_between(
    id bigint,
    since timestamp with time zone,
    until timestamp with time zone,
    layout text
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN id OPERATOR(pg_catalog.>=) @extschema@.snowflake_min_id(since, layout)
       AND id OPERATOR(pg_catalog.<=) @extschema@.snowflake_max_id_before(until, layout);
COMMENT ON FUNCTION snowflake_between(id bigint, since timestamp with time zone, until timestamp with time zone, layout text) IS
    'Returns whether an ID was generated at or after since and before until, by a layout or preset name; can use an index on id';

-- Functions of the library under the names by which SQL of the extensions calls them. The
-- extension's schema may belong to any role, who can rename it and create another one of
-- the former name; this one belongs to a superuser.

-- snowflake_nextval() and snowflake_id().
CREATE FUNCTION snowflake_internal.generators() RETURNS oid[]
    STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_generators_wrapper';

CREATE FUNCTION snowflake_internal.min_id(at timestamp with time zone) RETURNS bigint
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_min_id_wrapper';

CREATE FUNCTION snowflake_internal.max_id(at timestamp with time zone) RETURNS bigint
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_max_id_wrapper';

CREATE FUNCTION snowflake_internal.time_of(id bigint) RETURNS timestamp with time zone
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_timestamp_wrapper';

CREATE FUNCTION snowflake_internal.node_id(id bigint) RETURNS integer
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_node_id_wrapper';

CREATE FUNCTION snowflake_internal.backend_id(id bigint) RETURNS integer
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_backend_id_wrapper';

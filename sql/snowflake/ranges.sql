-- What the planner writes into queries that compare the time of an ID with a date, a time
-- without a time zone or a number of seconds, or in another form (src/ranges). A time
-- that does not exist is infinite, where the casts and + raise an error.

-- In the time zone of the session.
CREATE FUNCTION snowflake_internal.saturated(at anyelement, microseconds bigint) RETURNS timestamp with time zone
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_saturated_wrapper';

CREATE FUNCTION snowflake_internal.saturated(at anyelement, microseconds bigint, zone text) RETURNS timestamp with time zone
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_saturated_in_zone_wrapper';

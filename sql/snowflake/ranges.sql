-- What the planner writes into queries that compare the time of an ID with a date or a
-- time without a time zone, or by the day (src/ranges). A time that does not exist is
-- infinite, where the casts and + raise an error. A day is 24 hours.

CREATE FUNCTION snowflake_internal.saturated(at timestamp with time zone, days integer) RETURNS timestamp with time zone
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_saturated_wrapper';

-- These two depend on the time zone of the session.

CREATE FUNCTION snowflake_internal.saturated(at timestamp without time zone, days integer) RETURNS timestamp with time zone
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_saturated_timestamp_wrapper';

CREATE FUNCTION snowflake_internal.saturated(at date, days integer) RETURNS timestamp with time zone
    STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_saturated_date_wrapper';

-- Raises an error without a CONTEXT of inner functions.
CREATE FUNCTION snowflake_internal.refuse(sqlstate text, message text, detail text DEFAULT NULL, hint text DEFAULT NULL) RETURNS void
    VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_refuse_wrapper';

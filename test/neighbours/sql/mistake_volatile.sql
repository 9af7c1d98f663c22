-- pgTAP: a function that is marked as another one.
ALTER FUNCTION snowflake_timestamp(bigint) VOLATILE;

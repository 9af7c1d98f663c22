-- What the contenders need in the database.
CREATE EXTENSION IF NOT EXISTS pgstattuple;
CREATE SEQUENCE plain;
CREATE SEQUENCE cached CACHE 1000;
-- A snowflake function as published in articles: 41 bits of milliseconds, 10 of the server's
-- number, 12 of a sequence. It does not prevent repeated IDs, so only one session uses it.
CREATE SEQUENCE plpgsql_sequence;
CREATE FUNCTION plpgsql_snowflake() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    epoch CONSTANT bigint := 1735689600000;
    server CONSTANT bigint := 1;
    milliseconds bigint;
BEGIN
    milliseconds := floor(extract(epoch FROM clock_timestamp()) * 1000) - epoch;
    RETURN (milliseconds << 22) | (server << 12) | (nextval('plpgsql_sequence') % 4096);
END $$;

-- name: PL/pgSQL: milliseconds, node, sequence modulo 4,096
-- id: plpgsql_id()
-- conf: peers.node = :node
-- What articles about sharding propose.
CREATE SEQUENCE numbers;
CREATE FUNCTION plpgsql_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    millis bigint := extract(epoch FROM clock_timestamp()) * 1000;
BEGIN
    RETURN (millis - 1735689600000) << 22 | current_setting('peers.node')::bigint << 12 | nextval('numbers') % 4096;
END
$$;

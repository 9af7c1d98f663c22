-- How it is going: views over the functions of src/monitor.rs.

CREATE VIEW snowflake_status AS
    SELECT version, preloaded, layout, node_id, last_id_at, reserved_until,
           pg_catalog.make_interval(secs => clock_behind) AS clock_behind,
           ids, waits, expires_at,
           @extschema@.snowflake_get_database_layout() AS database_layout
    FROM @extschema@.snowflake_get_status();

CREATE VIEW snowflake_stat_slots AS
    SELECT s.backend_id,
           ARRAY(SELECT a.pid
                 FROM pg_catalog.pg_stat_activity AS a
                 WHERE a.datid IS NOT NULL
                   AND (a.pid OPERATOR(pg_catalog.%) s.slots) OPERATOR(pg_catalog.=) s.backend_id
                 ORDER BY a.pid) AS pids,
           s.ids, s.last_id_at, s.borrowed_ticks, s.waits, s.wait_time, s.clock_steps
    FROM @extschema@.snowflake_get_stat_slots() AS s;

GRANT SELECT ON snowflake_status, snowflake_stat_slots TO PUBLIC;

-- For administrators.
REVOKE EXECUTE ON FUNCTION snowflake_stat_reset() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_accept_clock(timestamp with time zone) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_start_after(bigint) FROM PUBLIC;

-- Monitoring: views over the functions of src/sql/monitor.rs.

-- Used by the view snowflake_status. conflict_id is the highest ID of the rows of
-- another server with this one's node number.
CREATE FUNCTION snowflake_internal.get_status() RETURNS TABLE (
    version text, preloaded boolean, pending_restart boolean, layout text, node_id integer,
    server_last_id_at timestamp with time zone, database_reserved_until timestamp with time zone,
    clock_behind double precision, ids bigint, waits bigint, expires_at timestamp with time zone,
    database_layout text, node_id_source text, node_conflicts bigint, conflict_id bigint, stopped boolean, copied_from text,
    resolved_id bigint, resolved_age double precision, unknown_prepared bigint
) STRICT VOLATILE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_get_status_wrapper';

-- Used by the view snowflake_stat_slots.
CREATE FUNCTION snowflake_internal.get_stat_slots() RETURNS TABLE (
    backend_id integer, slots integer, ids bigint, last_id_at timestamp with time zone,
    borrowed_ticks bigint, waits bigint, wait_time double precision, clock_steps bigint, bound bigint
) STRICT VOLATILE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_get_stat_slots_wrapper';

CREATE VIEW snowflake_status AS
    SELECT version, preloaded, pending_restart, layout, node_id, server_last_id_at, database_reserved_until,
           pg_catalog.make_interval(secs => clock_behind) AS clock_behind,
           ids, waits, expires_at, database_layout, node_id_source, node_conflicts, stopped, copied_from,
           resolved_id, pg_catalog.make_interval(secs => resolved_age) AS resolved_age, unknown_prepared
    FROM snowflake_internal.get_status();
COMMENT ON VIEW snowflake_status IS 'How this server issues IDs: one row';
COMMENT ON COLUMN snowflake_status.version IS 'The version of the library';
COMMENT ON COLUMN snowflake_status.preloaded IS 'Whether the library is in shared_preload_libraries; if not, IDs are generated from PostgreSQL 17 on only';
COMMENT ON COLUMN snowflake_status.pending_restart IS 'Whether the configuration has another layout or node number than IDs are made of until the next restart; NULL before that is decided, by the first ID';
COMMENT ON COLUMN snowflake_status.layout IS 'The layout of this server''s IDs, in canonical form';
COMMENT ON COLUMN snowflake_status.node_id IS 'Node number of this server; NULL if not set';
COMMENT ON COLUMN snowflake_status.server_last_id_at IS 'Time of the last ID issued since the server started, in any database';
COMMENT ON COLUMN snowflake_status.database_reserved_until IS 'Time up to which IDs of this database are reserved in the write-ahead log; NULL before its first ID since the server started';
COMMENT ON COLUMN snowflake_status.clock_behind IS 'How far the clock is behind the highest time reached';
COMMENT ON COLUMN snowflake_status.ids IS 'IDs issued since the statistics were reset';
COMMENT ON COLUMN snowflake_status.waits IS 'Calls that waited for time to catch up';
COMMENT ON COLUMN snowflake_status.database_layout IS 'Layout that the IDs of this database were generated with; NULL if unknown. If it differs from layout, pass it when you decode old IDs, or accept the new one';
COMMENT ON COLUMN snowflake_status.node_id_source IS 'Where the node number comes from: setting, hostname, environment:NAME or address';
COMMENT ON COLUMN snowflake_status.node_conflicts IS 'Replicated rows with the node number of this server that it has not issued, since the statistics were reset; tables are watched by snowflake_watch()';
COMMENT ON COLUMN snowflake_status.stopped IS 'Whether a node conflict has ended the issuing of IDs on this server (snowflake.on_node_conflict)';
COMMENT ON COLUMN snowflake_status.copied_from IS 'The server whose data directory this one may be a copy of, with the same node number; NULL if nothing indicates a copy';
COMMENT ON COLUMN snowflake_status.resolved_id IS 'What snowflake_resolved_id() returns: below it, no row of this database is missing; NULL if unknown, or in a database of Citus';
COMMENT ON COLUMN snowflake_status.resolved_age IS 'For how long an open transaction has held back resolved_id; zero if none does';
COMMENT ON COLUMN snowflake_status.unknown_prepared IS 'Transactions of this database that were prepared before the server started; resolved_id is unknown until they have ended';
COMMENT ON COLUMN snowflake_status.expires_at IS 'Time at which the layout runs out of timestamps';

CREATE VIEW snowflake_stat_slots AS
    SELECT s.backend_id,
           ARRAY(SELECT a.pid
                 FROM pg_catalog.pg_stat_activity AS a
                 WHERE a.datid IS NOT NULL
                   AND (a.pid OPERATOR(pg_catalog.%) s.slots) OPERATOR(pg_catalog.=) s.backend_id
                 ORDER BY a.pid) AS pids,
           s.ids, s.last_id_at, s.borrowed_ticks, s.waits, s.wait_time, s.clock_steps
    FROM snowflake_internal.get_stat_slots() AS s;
COMMENT ON VIEW snowflake_stat_slots IS 'Statistics of each slot: one row for each backend number';
COMMENT ON COLUMN snowflake_stat_slots.backend_id IS 'The backend number';
COMMENT ON COLUMN snowflake_stat_slots.pids IS 'Processes whose own slot this is';
COMMENT ON COLUMN snowflake_stat_slots.ids IS 'IDs issued since the statistics were reset';
COMMENT ON COLUMN snowflake_stat_slots.last_id_at IS 'Time of the last ID issued since the server started';
COMMENT ON COLUMN snowflake_stat_slots.borrowed_ticks IS 'How many ticks the slot is ahead of the clock now';
COMMENT ON COLUMN snowflake_stat_slots.waits IS 'Calls that waited for time to catch up';
COMMENT ON COLUMN snowflake_stat_slots.wait_time IS 'Total time of these waits, milliseconds';
COMMENT ON COLUMN snowflake_stat_slots.clock_steps IS 'Clock steps that a process of this slot was the first to see';

GRANT SELECT ON snowflake_status, snowflake_stat_slots TO PUBLIC;

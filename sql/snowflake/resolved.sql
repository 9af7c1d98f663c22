-- Reading new rows by key: a view over the functions of src/sql/resolved.rs.

CREATE FUNCTION snowflake_resolved_id() RETURNS bigint
    STABLE STRICT PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_resolved_id_wrapper';
COMMENT ON FUNCTION snowflake_resolved_id() IS
    'The ID below which no row of this database is missing: each row whose ID was generated in the transaction that inserts it is visible to this statement, or never will be; NULL if unknown';

CREATE FUNCTION snowflake_advance_resolved_id() RETURNS bigint
    VOLATILE STRICT PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_advance_resolved_id_wrapper';
COMMENT ON FUNCTION snowflake_advance_resolved_id() IS
    'Returns snowflake_resolved_id() after reserving time without an ID, so that it follows the clock in a database that generates no IDs';

-- Used by the view snowflake_unresolved.
CREATE FUNCTION snowflake_internal.get_unresolved() RETURNS TABLE (
    pid integer, prepared_xid xid, first_id bigint, first_id_at timestamp with time zone
) STRICT VOLATILE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_get_unresolved_wrapper';

CREATE VIEW snowflake_unresolved AS
    SELECT u.pid, p.gid, u.first_id, u.first_id_at,
           pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) u.first_id_at AS age,
           coalesce(a.usename, p.owner) AS usename, a.application_name, a.state, a.query
    FROM snowflake_internal.get_unresolved() AS u
    LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid OPERATOR(pg_catalog.=) u.pid
    LEFT JOIN pg_catalog.pg_prepared_xacts AS p
        ON p.transaction OPERATOR(pg_catalog.=) u.prepared_xid
    ORDER BY u.first_id;
COMMENT ON VIEW snowflake_unresolved IS 'Open transactions of this database that have generated IDs: the first one holds back snowflake_resolved_id()';
COMMENT ON COLUMN snowflake_unresolved.pid IS 'Process of the transaction; NULL for a prepared one';
COMMENT ON COLUMN snowflake_unresolved.gid IS 'Name of the prepared transaction';
COMMENT ON COLUMN snowflake_unresolved.first_id IS 'First ID that the transaction has generated, or a lower one; NULL if it was prepared before the server started, or if you may not see the activity of its role';
COMMENT ON COLUMN snowflake_unresolved.first_id_at IS 'Time of that ID';
COMMENT ON COLUMN snowflake_unresolved.age IS 'How long ago that was';
COMMENT ON COLUMN snowflake_unresolved.usename IS 'Role of the transaction';
COMMENT ON COLUMN snowflake_unresolved.application_name IS 'Name of the application';
COMMENT ON COLUMN snowflake_unresolved.state IS 'State of the session, as in pg_stat_activity';
COMMENT ON COLUMN snowflake_unresolved.query IS 'Latest statement of the session, as in pg_stat_activity';

GRANT SELECT ON snowflake_unresolved TO PUBLIC;

-- Reading new rows of a database that Citus distributes over several nodes.

-- snowflake_advance_resolved_id() of this node, which is refused in a database of Citus.
CREATE FUNCTION snowflake_internal.node_resolved_id() RETURNS bigint
    VOLATILE STRICT PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_node_resolved_id_wrapper';

-- The transactions of this database that are prepared on this node.
CREATE FUNCTION snowflake_internal.prepared_here()
RETURNS text[] LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(array_agg(format('%s %s', p.transaction, p.gid)), '{}')
    FROM pg_prepared_xacts AS p WHERE p.database = current_database()
$function$;

-- A row is below the lowest resolved ID only if the transaction that drew its ID has ended on
-- the node that drew it. That transaction may still be prepared on another node: Citus commits
-- there when it is over here. So what is prepared after the resolved IDs were read has to end,
-- before rows are read up to them. What is prepared later has greater IDs.
CREATE FUNCTION snowflake_cluster_resolved_id(wait interval DEFAULT '1s') RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET intervalstyle = 'postgres'
AS $function$
DECLARE
    last_look CONSTANT timestamptz := clock_timestamp() + wait;
    has_other_nodes CONSTANT boolean := snowflake_internal.has_other_nodes();
    resolved bigint;
    pending text[];
    present text[];
BEGIN
    IF wait IS NULL OR wait < interval '0' THEN
        PERFORM snowflake_internal.refuse('22023', format('invalid wait: %s', coalesce(wait::text, 'NULL')),
            hint => 'Specify how long to wait for prepared transactions, for example ''1s''.');
    ELSIF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        PERFORM snowflake_internal.refuse('0A000', 'the resolved ID of several nodes requires READ COMMITTED',
            detail => 'The snapshot of this transaction is older than the answer would be.',
            hint => 'Call the function in a READ COMMITTED transaction, and read the rows in a later statement.');
    ELSIF current_setting('application_name') LIKE 'citus_internal gpid=%' THEN
        PERFORM snowflake_internal.refuse('0A000', 'the resolved ID of several nodes cannot be part of a query of a shard',
            hint => 'Call the function in a statement of its own, and pass its result to the query.');
    END IF;
    -- The lowest of all nodes; NULL if one is not known.
    resolved := CASE WHEN NOT has_other_nodes THEN snowflake_internal.node_resolved_id() ELSE (
        SELECT CASE WHEN bool_and(a.answer IS NOT NULL) THEN min(a.answer::bigint) END
        FROM snowflake_internal.ask_nodes('SELECT snowflake_internal.node_resolved_id()') AS a) END;
    IF resolved IS NULL THEN
        RETURN NULL;
    END IF;
    LOOP
        -- On all nodes; NULL if one is not reached.
        present := CASE WHEN NOT has_other_nodes THEN snowflake_internal.prepared_here() ELSE (
            SELECT CASE WHEN bool_and(a.answer IS NOT NULL)
                        THEN coalesce(array_agg(format('%s %s', a.node, p.name)) FILTER (WHERE p.name IS NOT NULL), '{}') END
            FROM snowflake_internal.ask_nodes('SELECT snowflake_internal.prepared_here()') AS a
            LEFT JOIN LATERAL unnest(a.answer::text[]) AS p (name) ON true) END;
        pending := CASE WHEN pending IS NULL THEN present
                        ELSE ARRAY(SELECT unnest(pending) INTERSECT SELECT unnest(present)) END;
        IF present IS NULL THEN
            RETURN NULL;
        ELSIF pending = '{}' THEN
            RETURN resolved;
        ELSIF clock_timestamp() >= last_look THEN
            RETURN NULL;
        END IF;
        PERFORM pg_sleep(0.01);
    END LOOP;
END
$function$;
COMMENT ON FUNCTION snowflake_cluster_resolved_id(wait interval) IS
    'Returns the ID below which no row is missing for later statements, on all nodes of Citus; NULL if a node is not reached or not known, or after the wait';

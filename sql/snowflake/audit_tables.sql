-- The audit of all tables, for a job that runs every night: it returns no rows
-- if nothing is wrong. A table that cannot be audited is a finding, too: a job that
-- skips it would report that all is well.
CREATE FUNCTION snowflake_internal.audit_tables(schema_name name, expected_nodes integer[], caller_path text)
RETURNS TABLE (table_name regclass, column_name name, finding text, ids bigint, example bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    audited record;
    remedy text;
    -- Without such a trigger, the database does without them, and no table is reported. The
    -- trigger of the table itself counts, because it may be the only one, and altered.
    is_any_watched CONSTANT boolean := EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgfoid = 'snowflake_internal.watch()'::regprocedure);
    distributed CONSTANT oid[] := snowflake_internal.distributed_tables();
    nodes CONSTANT jsonb := snowflake_internal.facts_of_nodes();
    -- One that does not answer is a finding, and would be waited for with each table.
    is_each_node_asked CONSTANT boolean := NOT coalesce(jsonb_path_exists(nodes, '$[*] ? (@.failure != null)'), false);
BEGIN
    IF schema_name IS NOT NULL AND NOT EXISTS (SELECT FROM pg_namespace AS n WHERE n.nspname = schema_name) THEN
        PERFORM snowflake_internal.refuse('3F000', format('schema "%s" does not exist', schema_name));
    END IF;
    -- INSERT ... SELECT draws on the nodes that read, also into a table of this node alone.
    -- NULL unless the numbers of all are known.
    expected_nodes := coalesce(expected_nodes, (
        SELECT CASE WHEN bool_and(n.node -> 'facts' ->> 'node_id' IS NOT NULL)
                    THEN array_agg(DISTINCT (n.node -> 'facts' ->> 'node_id')::integer) END
        FROM jsonb_array_elements(nodes) AS n (node)));
    FOR audited IN
        SELECT t.table_oid, c.name
        FROM snowflake_internal.tables_with_ids() AS t
        CROSS JOIN LATERAL unnest(t.column_names) AS c (name)
        WHERE schema_name IS NULL
           OR EXISTS (SELECT FROM pg_class AS r JOIN pg_namespace AS n ON n.oid = r.relnamespace
                      WHERE r.oid = t.table_oid AND n.nspname = schema_name)
    LOOP
        BEGIN
            RETURN QUERY SELECT audited.table_oid, audited.name, a.finding, a.ids, a.example
                         FROM snowflake_internal.audit(audited.table_oid, audited.name, expected_nodes, NULL, caller_path,
                                                       is_each_node_asked) AS a;
        EXCEPTION
            -- A cancelled job must end.
            WHEN query_canceled OR admin_shutdown OR crash_shutdown THEN
                RAISE;
            WHEN OTHERS THEN
                GET STACKED DIAGNOSTICS remedy = PG_EXCEPTION_HINT;
                table_name := audited.table_oid;
                column_name := audited.name;
                finding := format('not audited: %s', concat_ws('. ', SQLERRM, nullif(remedy, '')));
                ids := NULL;
                example := NULL;
                RETURN NEXT;
        END;
        IF is_any_watched AND audited.table_oid <> ALL (distributed)
           AND NOT snowflake_internal.is_watched(audited.table_oid, audited.name)
        THEN
            RETURN QUERY SELECT audited.table_oid, audited.name, 'not watched', NULL::bigint, NULL::bigint;
        END IF;
    END LOOP;
    RETURN QUERY SELECT NULL::regclass, NULL::name, 'rows of another server with this server''s node number', s.node_conflicts, s.conflict_id
                 FROM snowflake_internal.get_status() AS s WHERE s.node_conflicts > 0 OR s.stopped;
    RETURN QUERY SELECT NULL::regclass, NULL::name, 'the data directory may be a copy of another server''s', NULL::bigint, NULL::bigint
                 FROM snowflake_internal.get_status() AS s WHERE s.copied_from IS NOT NULL;
    RETURN QUERY SELECT NULL::regclass, NULL::name, f.finding, NULL::bigint, NULL::bigint FROM snowflake_internal.node_findings(nodes) AS f;
END
$function$;

-- Without a SET clause, as snowflake_audit.
CREATE FUNCTION snowflake_audit_tables(schema_name name DEFAULT NULL, expected_nodes integer[] DEFAULT NULL)
RETURNS TABLE (table_name regclass, column_name name, finding text, ids bigint, example bigint)
LANGUAGE plpgsql STABLE
AS $function$
BEGIN
    RETURN QUERY
        SELECT a.table_name, a.column_name, a.finding, a.ids, a.example
        FROM snowflake_internal.audit_tables(schema_name, expected_nodes, pg_catalog.current_setting('search_path'::pg_catalog.text)) AS a;
END
$function$;
COMMENT ON FUNCTION snowflake_audit_tables(schema_name name, expected_nodes integer[]) IS
    'Runs snowflake_audit on all columns that get snowflake IDs by default, of a schema or of the database, and adds what is known of this server''s node number, and tables that are not watched where others are; no rows if nothing is wrong';

-- What a caller may see of partitions: their bounds are in the catalog, which all roles can read.
-- Whether rows refer to one is looked up for roles with the privileges of the owner. A row without a
-- relation and a name: what is missing cannot be computed. maintain() reports why, and a view of
-- all tables does not fail because of one.
CREATE FUNCTION snowflake_partitions_internal.shown(at timestamp with time zone)
RETURNS TABLE (parent regclass, relation regclass, name name, since timestamp with time zone, until timestamp with time zone,
               due_at timestamp with time zone, is_due boolean, kept_because text, referenced_by regclass[])
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    target record;
BEGIN
    FOR target IN
        SELECT s.parent, pg_has_role(c.relowner, 'USAGE') AS is_owner FROM snowflake_partitions_internal.settings AS s
        JOIN pg_class AS c ON c.oid = s.parent AND c.relkind = 'p' AND NOT pg_is_other_temp_schema(c.relnamespace) ORDER BY s.parent
    LOOP
        BEGIN
            RETURN QUERY
            SELECT target.parent, a.relation, c.relname, a.since, a.until, a.due_at, a.is_due,
                   a.kept_because, coalesce(a.referenced_by, '{}')
            FROM snowflake_partitions_internal.assessed(target.parent, at, target.is_owner) AS a JOIN pg_class AS c ON c.oid = a.relation;
            RETURN QUERY
            SELECT target.parent, NULL::regclass, m.name, snowflake_internal.time_of(m.low), snowflake_internal.time_of(m.high),
                   NULL::timestamp with time zone, false, NULL, NULL::regclass[]
            FROM snowflake_partitions_internal.ahead(target.parent, at) AS m;
        EXCEPTION WHEN invalid_object_definition OR data_exception THEN
            parent := target.parent;
            is_due := false;
            RETURN NEXT;
        END;
    END LOOP;
END
$function$;

CREATE VIEW snowflake_partitions.partitions AS
    SELECT s.parent, s.relation, s.name, s.since, s.until, s.due_at, s.is_due, s.kept_because, s.referenced_by,
           pg_catalog.pg_total_relation_size(s.relation) AS bytes,
           (SELECT CASE WHEN c.reltuples OPERATOR(pg_catalog.>=) 0 THEN least(c.reltuples, '1e18'::pg_catalog.float4)::pg_catalog.int8 END
            FROM pg_catalog.pg_class AS c WHERE c.oid OPERATOR(pg_catalog.=) s.relation) AS estimated_rows
    FROM snowflake_partitions_internal.shown(pg_catalog.statement_timestamp()) AS s WHERE s.name IS NOT NULL;
COMMENT ON VIEW snowflake_partitions.partitions IS
    'The partitions of tables with settings, and those that snowflake_partitions.maintain would create';
COMMENT ON COLUMN snowflake_partitions.partitions.parent IS 'Partitioned table';
COMMENT ON COLUMN snowflake_partitions.partitions.relation IS 'Partition; NULL if it does not exist yet';
COMMENT ON COLUMN snowflake_partitions.partitions.name IS 'Its name';
COMMENT ON COLUMN snowflake_partitions.partitions.since IS 'Time of its first ID; NULL if it has no beginning';
COMMENT ON COLUMN snowflake_partitions.partitions.until IS 'Time at which it ends; NULL if it has no end';
COMMENT ON COLUMN snowflake_partitions.partitions.due_at IS 'Time from which it is dropped; NULL: never';
COMMENT ON COLUMN snowflake_partitions.partitions.is_due IS 'Whether that time has come';
COMMENT ON COLUMN snowflake_partitions.partitions.kept_because IS 'Why it is not dropped although it is due; NULL if nothing prevents that';
COMMENT ON COLUMN snowflake_partitions.partitions.referenced_by IS 'Tables whose rows refer to rows of a partition that is due';
COMMENT ON COLUMN snowflake_partitions.partitions.bytes IS 'Its size with indexes and TOAST';
COMMENT ON COLUMN snowflake_partitions.partitions.estimated_rows IS 'Number of rows, estimated by ANALYZE; NULL if unknown';

CREATE VIEW snowflake_partitions.status AS
    SELECT s.parent, s.started_at, s.ended_at, s.succeeded_at, s.error_code,
           p.missing, coalesce(p.due, 0) AS due, coalesce(p.kept, 0) AS kept, p.default_bytes
    FROM snowflake_partitions_internal.settings AS s
    JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) s.parent AND c.relkind OPERATOR(pg_catalog.=) 'p'
        AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
    LEFT JOIN (SELECT q.parent,
                 CASE WHEN pg_catalog.bool_and(q.name IS NOT NULL) THEN pg_catalog.count(*) FILTER (WHERE q.relation IS NULL) END AS missing,
                 pg_catalog.count(*) FILTER (WHERE q.is_due AND q.kept_because IS NULL) AS due,
                 pg_catalog.count(*) FILTER (WHERE q.kept_because IS NOT NULL) AS kept,
                 pg_catalog.sum(pg_catalog.pg_relation_size(q.relation)) FILTER (WHERE d.is_default)::pg_catalog.int8 AS default_bytes
          FROM snowflake_partitions_internal.shown(pg_catalog.statement_timestamp()) AS q
          LEFT JOIN LATERAL (SELECT e.partdefid OPERATOR(pg_catalog.=) q.relation AS is_default FROM pg_catalog.pg_partitioned_table AS e
                             WHERE e.partrelid OPERATOR(pg_catalog.=) q.parent) AS d ON true
          GROUP BY q.parent) AS p ON p.parent OPERATOR(pg_catalog.=) s.parent;
COMMENT ON VIEW snowflake_partitions.status IS
    'What is left to do for tables with settings, and how the last call of snowflake_partitions.maintain ended';
COMMENT ON COLUMN snowflake_partitions.status.parent IS 'Partitioned table';
COMMENT ON COLUMN snowflake_partitions.status.started_at IS 'Time at which the last call began with the table; NULL before the first';
COMMENT ON COLUMN snowflake_partitions.status.ended_at IS 'Time at which it ended; NULL if it was interrupted, or has not ended';
COMMENT ON COLUMN snowflake_partitions.status.succeeded_at IS 'Time at which a call last ended without an error; NULL before the first';
COMMENT ON COLUMN snowflake_partitions.status.error_code IS 'SQLSTATE of its first error; NULL if there was none';
COMMENT ON COLUMN snowflake_partitions.status.missing IS
    'Partitions that are to be created now; NULL if that cannot be computed: snowflake_partitions.maintain reports why';
COMMENT ON COLUMN snowflake_partitions.status.due IS 'Partitions that are to be dropped now';
COMMENT ON COLUMN snowflake_partitions.status.kept IS
    'Partitions that are kept although they are due, and those whose DETACH was interrupted';
COMMENT ON COLUMN snowflake_partitions.status.default_bytes IS 'Size of the DEFAULT partition; NULL if there is none';

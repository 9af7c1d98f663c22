-- The function has no SET clause, and passes the caller's search path on: planning
-- a query of a table may inline the functions of its indexes. All names are
-- qualified.
CREATE FUNCTION snowflake_migrate.plan(
    target regclass, column_name name DEFAULT NULL, also regclass[] DEFAULT NULL, also_columns name[] DEFAULT NULL,
    online boolean DEFAULT false, keep_sequence boolean DEFAULT false
) RETURNS TABLE (step integer, what text, lock text, rewrites boolean, statement text, in_transaction boolean, note text)
LANGUAGE plpgsql STABLE
AS $function$
DECLARE
    keys CONSTANT snowflake_migrate_internal.key[] := snowflake_migrate_internal.keys(target, column_name, also, also_columns);
BEGIN
    RETURN QUERY
        WITH steps AS MATERIALIZED (
            SELECT s AS step, s.number, s.kind
            FROM snowflake_migrate_internal.plan(
                keys, online, pg_catalog.current_setting('search_path'::pg_catalog.text), keep_sequence) AS s
        )
        SELECT s.number, CASE WHEN pg_catalog.length((s.step).what) OPERATOR(pg_catalog.>) 40
                              THEN pg_catalog.concat(pg_catalog."left"((s.step).what, 39), '…') ELSE (s.step).what END,
               (s.step).lock_level, (s.step).rewrites, snowflake_migrate_internal.statement_of(s.step), (s.step).in_transaction,
               (s.step).note
        FROM steps AS s
      UNION ALL
        -- It is no step: \gexec leaves out a NULL.
        SELECT NULL, sums.what, NULL, NULL, NULL, NULL, sums.note
        FROM (SELECT pg_catalog.count(*) AS steps,
                     pg_catalog.count(*) FILTER (WHERE s.kind OPERATOR(pg_catalog.=) 'validation') AS validations
              FROM steps AS s) AS planned
        CROSS JOIN LATERAL snowflake_migrate_internal.sums(keys, online, planned.validations) AS sums
        WHERE planned.steps OPERATOR(pg_catalog.>) 0;
END
$function$;
COMMENT ON FUNCTION snowflake_migrate.plan(target regclass, column_name name, also regclass[], also_columns name[],
    online boolean, keep_sequence boolean) IS
    E'Returns the remaining migration statements of a column in order, with the lock each takes and whether it rewrites the table; '
    'for \\gexec. With also, those of several tables together: each table is rewritten, or copied, once. '
    'The last row, without a statement, has the sums. With keep_sequence, the columns are only widened, and keep their sequences';

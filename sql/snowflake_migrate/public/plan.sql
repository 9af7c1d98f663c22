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
        WITH planned AS MATERIALIZED (
            SELECT ARRAY(SELECT s FROM snowflake_migrate_internal.plan(
                keys, online, pg_catalog.current_setting('search_path'::pg_catalog.text), keep_sequence) AS s) AS steps
        )
        SELECT (w.step).number, w.what, (w.step).lock_level, (w.step).rewrites, snowflake_migrate_internal.statement_of(w.step),
               (w.step).in_transaction, (w.step).note
        FROM planned AS p
        CROSS JOIN LATERAL snowflake_migrate_internal.shown_steps(p.steps) AS w
      UNION ALL
        -- They are no steps: \gexec leaves out a NULL.
        SELECT NULL, sums.what, NULL, NULL, NULL, NULL, sums.note
        FROM planned AS p
        CROSS JOIN LATERAL (
            SELECT * FROM snowflake_migrate_internal.sums(keys, online, p.steps)
          UNION ALL
            SELECT * FROM snowflake_migrate_internal.change_summary(p.steps, keep_sequence)) AS sums
        WHERE p.steps OPERATOR(pg_catalog.<>) ARRAY[]::snowflake_migrate_internal.step[];
END
$function$;
COMMENT ON FUNCTION snowflake_migrate.plan(target regclass, column_name name, also regclass[], also_columns name[],
    online boolean, keep_sequence boolean) IS
    E'Returns the remaining migration statements of a column in order, with the lock each takes and whether it rewrites the table; '
    'for \\gexec. With also, those of several tables together: each table is rewritten, or copied, once. '
    'The last two rows, without a statement, have the sums, and the longest lock and the point of no return. '
    'With keep_sequence, the columns are only widened, and keep their sequences';

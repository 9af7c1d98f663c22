CREATE FUNCTION snowflake_partitions.statements(parent regclass DEFAULT NULL) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_partitions_internal.statements(parent, clock_timestamp())
$function$;
COMMENT ON FUNCTION snowflake_partitions.statements(parent regclass) IS
    E'The statements that snowflake_partitions.maintain would run for a table, or for all; for \\gexec. Changes nothing';

-- The procedure commits, so it cannot have a SET clause. All names are qualified.
CREATE PROCEDURE snowflake_partitions.maintain(parent regclass DEFAULT NULL, attempts integer DEFAULT 10) LANGUAGE plpgsql
AS $procedure$
BEGIN
    IF pg_catalog.now() OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp() THEN
        PERFORM snowflake_internal.refuse('25001', 'snowflake_partitions.maintain cannot run inside a transaction block',
            detail => 'It commits after each partition.');
    END IF;
    CALL snowflake_partitions_internal.maintain(parent, pg_catalog.clock_timestamp(), attempts, 2);
END
$procedure$;
COMMENT ON PROCEDURE snowflake_partitions.maintain(parent regclass, attempts integer) IS
    'Creates the partitions that a table needs, or all tables with settings, and drops those that are due. For a nightly job';

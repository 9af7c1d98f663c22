-- What snowflake_audit does not look for: IDs that the former sequence has issued since
-- the migration, which are rows only if something other than the default used it for
-- them. Only the table's owner may know the value of the sequence.
CREATE FUNCTION snowflake_migrate_internal.audit(target regclass, column_name name, caller_path text)
RETURNS TABLE (migrated_table regclass, migrated_column name, finding text, ids bigint, example bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    key record;
    origin snowflake_migrate_internal.origins;
    sequence regclass;
    issued bigint;
    recorded bigint;
    issued_rows record;
BEGIN
    FOR key IN
        SELECT t.table_oid AS target, c.name
        FROM snowflake_internal.tables_with_ids(target, column_name) AS t
        CROSS JOIN LATERAL unnest(t.column_names) AS c (name)
        WHERE snowflake_internal.has_ids(t.table_oid, c.name)
    LOOP
        BEGIN
            origin := snowflake_migrate_internal.origin(key.target, key.name);
            sequence := snowflake_migrate_internal.sequence_by_name(origin.sequence_schema, origin.sequence_name);
            CONTINUE WHEN sequence IS NULL OR origin.reverted_at IS NOT NULL OR (origin.sequence_options ->> 'increment')::bigint < 0;
            recorded := coalesce(origin.sequence_last_value, (origin.sequence_options ->> 'next')::bigint - 1);
            SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END INTO issued
            FROM snowflake_migrate_internal.sequence_state(sequence, key.target) AS s;
            CONTINUE WHEN issued IS NULL OR recorded IS NULL OR issued <= recorded;
            SELECT a.answer[1]::bigint AS count, a.answer[2]::bigint AS top INTO issued_rows
            FROM snowflake_internal.read_audited(key.target, format(
                'SELECT count(*) AS count, max(d.id) AS top
                 FROM (SELECT audited.%1$I::bigint AS id FROM %2$s AS audited
                       WHERE audited.%1$I > %3$L::bigint AND audited.%1$I <= %4$L::bigint) AS d',
                key.name, snowflake_migrate_internal.name_of(key.target), recorded, least(issued, origin.first_id - 1)),
                caller_path) AS a (answer);
            IF issued_rows.count > 0 THEN
                RETURN QUERY SELECT key.target, key.name, 'IDs from the former sequence since the migration',
                                    issued_rows.count, issued_rows.top;
            END IF;
        EXCEPTION
            WHEN query_canceled OR admin_shutdown OR crash_shutdown THEN
                RAISE;
            WHEN OTHERS THEN
                -- Of all tables, the others are audited.
                IF target IS NOT NULL THEN
                    RAISE;
                END IF;
                RETURN QUERY SELECT key.target, key.name, format('not audited: %s', SQLERRM), NULL::bigint, NULL::bigint;
        END;
    END LOOP;
END
$function$;

-- Without a SET clause, as snowflake_audit.
CREATE FUNCTION snowflake_migrate.audit(target regclass DEFAULT NULL, column_name name DEFAULT NULL)
RETURNS TABLE (migrated_table regclass, migrated_column name, finding text, ids bigint, example bigint)
LANGUAGE plpgsql STABLE
AS $function$
BEGIN
    RETURN QUERY
        SELECT a.migrated_table, a.migrated_column, a.finding, a.ids, a.example
        FROM snowflake_migrate_internal.audit(target, column_name, pg_catalog.current_setting('search_path'::pg_catalog.text)) AS a;
END
$function$;
COMMENT ON FUNCTION snowflake_migrate.audit(target regclass, column_name name) IS
    'Finds IDs that former sequences have issued since their columns were migrated, of a table or of all that the caller owns; '
    'no rows if there are none. Of all tables, one that cannot be read is a finding';

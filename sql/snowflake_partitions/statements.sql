-- The statements of a call, in its order, for a dry run and for \gexec. psql runs each in a
-- transaction of its own, so a partition can be detached CONCURRENTLY where there is no DEFAULT
-- partition and no other one is being detached.
CREATE FUNCTION snowflake_partitions_internal.statements(parent regclass, at timestamp with time zone)
RETURNS SETOF text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    target regclass;
    range snowflake_partitions_internal.range;
    part record;
    rest regclass;
    name text;
    code text;
    message text;
    detail text;
    hint text;
BEGIN
    FOREACH target IN ARRAY snowflake_partitions_internal.targets(parent) LOOP
    BEGIN
        name := snowflake_partitions_internal.name_of(target);
        rest := (SELECT p.relation FROM snowflake_partitions_internal.existing(target) AS p WHERE p.is_default);
        FOR range IN SELECT a.* FROM snowflake_partitions_internal.ahead(target, at) AS a LOOP
            IF rest IS NOT NULL AND snowflake_partitions_internal.has_rows(target, rest, range) THEN
                PERFORM snowflake_partitions_internal.require_movable(target, rest, range);
                -- One text of several statements is one transaction.
                RETURN NEXT array_to_string(snowflake_partitions_internal.move_statements(target, rest, range), '; ');
            ELSE
                RETURN NEXT array_to_string(snowflake_partitions_internal.creation(target, range), '; ');
            END IF;
        END LOOP;
        FOR part IN
            SELECT snowflake_partitions_internal.name_of(a.relation) AS name, a.*
            FROM snowflake_partitions_internal.assessed(target, at) AS a ORDER BY a.is_detaching DESC, a.low NULLS FIRST
        LOOP
            IF part.is_detaching THEN
                RETURN NEXT format('ALTER TABLE %s DETACH PARTITION %s FINALIZE', name, part.name);
            ELSIF part.is_due AND part.kept_because IS NULL THEN
                PERFORM snowflake_partitions_internal.require_clock();
                RETURN NEXT format('ALTER TABLE %s DETACH PARTITION %s%s', name, part.name,
                                   CASE WHEN rest IS NULL THEN ' CONCURRENTLY' ELSE '' END);
                RETURN NEXT format('DROP TABLE %s', part.name);
            END IF;
        END LOOP;
    EXCEPTION WHEN OTHERS THEN
        -- Of all tables, the others have statements.
        IF parent IS NOT NULL THEN
            RAISE;
        END IF;
        GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
        PERFORM snowflake_partitions_internal.warn(target, code, message, detail, hint);
    END;
    END LOOP;
END
$function$;

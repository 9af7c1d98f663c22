-- The boundary between a column's old numbers and its IDs, as snowflake_id_boundary() says it;
-- where it is not known, the reason.
CREATE FUNCTION snowflake_partitions_internal.boundary(target regclass, column_name name, OUT boundary bigint, OUT problem text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    numbers text;
BEGIN
    IF snowflake_internal.has_other_layout() THEN
        problem := 'its IDs were generated with another layout, with other times';
        RETURN;
    END IF;
    SELECT b.told INTO boundary
    FROM unnest(snowflake_internal.set_boundary_of(target, column_name)) WITH ORDINALITY AS b (told, place) WHERE b.place = 1;
    IF boundary IS NOT NULL THEN
        RETURN;
    ELSIF target = ANY (snowflake_internal.distributed_tables()) THEN
        problem := 'rows of the table are on other servers, and no boundary is set';
        RETURN;
    END IF;
    BEGIN
        numbers := snowflake_internal.other_numbers(target, column_name);
    EXCEPTION WHEN insufficient_privilege THEN
        problem := 'it may have rows that are older than the snowflake IDs, and you may not read the table';
        RETURN;
    END;
    IF numbers IS NULL THEN
        boundary := 0;
    ELSE
        problem := format('it is not known which rows are older than the snowflake IDs (%s): see snowflake_set_id_boundary()', numbers);
    END IF;
END
$function$;

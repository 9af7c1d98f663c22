-- Time partitions of a table whose partition key is the ID.

CREATE FUNCTION snowflake_partition_ddl(
    parent regclass,
    since timestamp with time zone,
    until timestamp with time zone,
    step interval
) RETURNS SETOF text LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    parent_schema name;
    parent_name name;
    kind "char";
    key text;
    key_type oid;
    begins timestamp with time zone := since;
    ends timestamp with time zone;
    count integer := 0;
    label_format text;
    label_zone text := current_setting('TimeZone');
    label text;
    bounds text;
    existing text[];
BEGIN
    IF NOT isfinite(since) OR NOT isfinite(until) OR until < since THEN
        RAISE EXCEPTION 'invalid range of partitions: from % to %', since, until
            USING ERRCODE = 'invalid_parameter_value',
                  DETAIL = 'Both ends must be finite, and the second not before the first.',
                  HINT = 'Create other partitions by hand, with MINVALUE, MAXVALUE or DEFAULT.';
    END IF;

    SELECT n.nspname, c.relname, c.relkind INTO parent_schema, parent_name, kind
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = parent;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'relation with OID % does not exist', parent::oid
            USING ERRCODE = 'undefined_table';
    END IF;
    SELECT pg_get_partkeydef(p.partrelid), a.atttypid INTO key, key_type
    FROM pg_partitioned_table AS p
    LEFT JOIN pg_attribute AS a
        ON p.partstrat = 'r' AND p.partnatts = 1
       AND a.attrelid = p.partrelid AND a.attnum = p.partattrs[0] AND a.attnum > 0
    WHERE p.partrelid = parent;
    IF kind <> 'p' THEN
        RAISE EXCEPTION '"%" is not a partitioned table', parent_name
            USING ERRCODE = 'wrong_object_type',
                  HINT = 'Create it with PARTITION BY RANGE (id), where id is the column of the IDs.';
    ELSIF key_type IS DISTINCT FROM 'bigint'::regtype THEN
        RAISE EXCEPTION '"%" is not partitioned by ranges of a bigint column', parent_name
            USING ERRCODE = 'wrong_object_type',
                  DETAIL = format('Its partition key is %s.', key),
                  HINT = 'Create it with PARTITION BY RANGE (id), where id is the column of the IDs.';
    END IF;

    -- The name of a partition contains the time at which it begins, as precise as
    -- the step requires. Times within a day are in UTC, because local time repeats
    -- an hour when daylight saving time ends.
    IF date_trunc('day', step) <> step OR date_trunc('day', since) <> since THEN
        label_zone := 'UTC';
        label_format := CASE
            WHEN date_trunc('minute', step) = step AND date_trunc('minute', since) = since
            THEN 'YYYYMMDD_HH24MI"utc"' ELSE 'YYYYMMDD_HH24MISSUS"utc"' END;
    ELSIF date_trunc('month', step) <> step OR date_trunc('month', since) <> since THEN
        label_format := 'YYYYMMDD';
    ELSIF date_trunc('year', step) <> step OR date_trunc('year', since) <> since THEN
        label_format := 'YYYYMM';
    ELSE
        label_format := 'YYYY';
    END IF;

    existing := ARRAY(
        SELECT pg_get_expr(c.relpartbound, c.oid)
        FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = parent);
    WHILE begins < until LOOP
        count := count + 1;
        -- Not begins + step: after 28 February, later partitions would not return to the 31st.
        ends := since + count * step;
        IF ends <= begins THEN
            RAISE EXCEPTION 'an interval of % does not advance from %', step, begins
                USING ERRCODE = 'invalid_parameter_value',
                      HINT = 'Use a positive interval, for example ''1 day'' or ''1 month''.';
        END IF;
        bounds := format('FOR VALUES FROM (%L) TO (%L)',
                         @extschema@.snowflake_min_id(begins), @extschema@.snowflake_min_id(ends));
        -- Ranges before the epoch contain no IDs. Existing partitions are left
        -- out, so that a job can run repeatedly.
        IF @extschema@.snowflake_min_id(ends) > @extschema@.snowflake_min_id(begins)
           AND bounds <> ALL (existing)
        THEN
            label := '_p' || to_char(begins AT TIME ZONE label_zone, label_format);
            -- PostgreSQL would truncate the end, which distinguishes the partitions.
            WHILE octet_length(parent_name || label) > 63 LOOP
                parent_name := left(parent_name, -1);
            END LOOP;
            RETURN NEXT format('CREATE TABLE %I.%I PARTITION OF %s %s',
                               parent_schema, parent_name || label, parent, bounds);
        END IF;
        begins := ends;
    END LOOP;
END
$function$;
COMMENT ON FUNCTION snowflake_partition_ddl(parent regclass, since timestamp with time zone, until timestamp with time zone, step interval) IS
    'Returns CREATE TABLE statements for the partitions missing between since and until, one for each step; for \gexec';

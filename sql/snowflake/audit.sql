-- The audit of a column of IDs.
--
-- Rights: the audit reads the table with the owner's rights if the caller has
-- them, otherwise with the caller's. The reason is that the planner evaluates
-- functions that the owner wrote, which must not run with a superuser's rights.
-- The audit uses the snapshot of the calling statement.
--
-- Findings: each one has a number of rows and the largest value in them. For
-- duplicates, the number is that of the surplus rows. A row may be in several
-- findings. Values below the boundary, if it is given or set, are not snowflake
-- IDs: they are in that finding and among the duplicates only. If it is set, rows below it
-- are the old rows and are no finding, because every audit of a migrated table would
-- report them. Values that the column cannot have had before the migration still are one:
-- those above the last number that is set with it. If it is neither given nor set, numbers
-- below all IDs are a finding: what deletes rows by time would delete them. Fields are
-- decoded with this server's layout, also those of other servers' IDs. It is an error if
-- row security hides rows from the caller, because hidden rows cannot be checked.
--
-- Order of reading: rows of running sessions must not be reported. The scan sees
-- only IDs that have been issued, slots and marks only grow, and both are read
-- after the scan. Whether the running server has read the mark is determined
-- before the slots are read, because reading it raises the slots.
--
-- Cost: most tables need one scan, or two if no index proves uniqueness. A
-- further scan counts values that are too high, up to the highest value of the
-- first scan. That limit also works for foreign partitions, of which each scan
-- sees a later state.
--
-- "IDs of another layout": the database has recorded a layout that is not this
-- server's. All values that may be IDs are counted, because a value does not
-- show its layout.
--
-- "IDs from the future": later than any server with a correct clock can have
-- issued. After a start, IDs begin up to the lease ahead of the clock, and
-- borrowing adds to that. While this server's clock is slewed, its IDs are
-- further ahead, but always below the mark. A mark that is ahead by more than
-- max_clock_step is ignored: with such a mark the server issues no IDs.
--
-- "Cannot have issued": each slot knows the last ID of its backend number.
-- After a start every slot is raised to the mark and to the floor; before that,
-- the mark is the bound. A value set on the mark raises the slots only at the
-- next ID. Until then log_cnt shows it, because the extension leaves log_cnt
-- negative. Below the bound, the server that issued an ID cannot be determined.

CREATE FUNCTION snowflake_internal.audit(
    target regclass, column_name name, expected_nodes integer[], boundary bigint, caller_path text
) RETURNS TABLE (finding text, ids bigint, example bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    highest_possible CONSTANT bigint := 9223372036854775807;
    -- The kinds of values that the first scan distinguishes.
    is_id CONSTANT integer := 0;
    is_below CONSTANT integer := 1;
    is_negative CONSTANT integer := 2;
    is_outside CONSTANT integer := 3;
    is_of_other_node CONSTANT integer := 4;
    is_no_old_number CONSTANT integer := 5;
    is_older_than_ids CONSTANT integer := 6;
    audited_column name;
    column_number smallint;
    column_type oid;
    numbers text;
    start bigint;
    known bigint[];
    -- Numbers below it are no IDs, where no boundary says that.
    oldest bigint;
    last_of_layout CONSTANT bigint := snowflake_internal.max_id(timestamptz 'infinity');
    own_node integer;
    is_generating boolean;
    unknown_reason text;
    kinds integer[];
    backends integer[];
    counts bigint[];
    tops bigint[];
    highest bigint;
    is_mark_read boolean;
    mark record;
    ahead interval;
    max_step interval;
    allowed bigint;
    slot_bounds bigint[];
    slot_tops bigint[];
    lowest_bound bigint;
    future bigint;
    future_top bigint;
    not_own bigint;
    not_own_top bigint;
    duplicates bigint;
    duplicates_top bigint;
    id_layout text;
    server_layout text;
    answer text[];
BEGIN
    audited_column := snowflake_internal.ids_column(target, column_name);
    WITH RECURSIVE type (number, oid, base) AS (
        SELECT a.attnum, t.oid, t.typbasetype
        FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
        WHERE a.attrelid = target AND a.attname = audited_column
      UNION ALL
        SELECT d.number, t.oid, t.typbasetype FROM type AS d JOIN pg_type AS t ON t.oid = d.base
    )
    SELECT d.number, d.oid INTO column_number, column_type FROM type AS d WHERE d.base = 0;
    IF column_type NOT IN ('int8'::regtype, 'int4'::regtype, 'int2'::regtype) THEN
        PERFORM snowflake_internal.refuse('42804', format('column "%s" of %s cannot hold IDs', audited_column, target),
            detail => format('Its type is %s.', (SELECT format_type(a.atttypid, a.atttypmod) FROM pg_attribute AS a
                                                      WHERE a.attrelid = target AND a.attname = audited_column)),
            hint => 'Snowflake IDs are bigint; earlier IDs may be integer or smallint.');
    END IF;
    numbers := format('SELECT audited.%I::bigint AS id FROM %s AS audited WHERE audited.%I', audited_column, target, audited_column);

    -- The rows of a migrated column that are older than its snowflake IDs.
    known := CASE WHEN boundary IS NULL THEN snowflake_internal.set_boundary_of(target, audited_column) END;
    start := coalesce(boundary, known[1], -highest_possible - 1);
    oldest := CASE WHEN boundary IS NULL AND known IS NULL THEN snowflake_internal.oldest_id() ELSE 0 END;

    -- This server.
    SELECT s.node_id, s.preloaded AND s.node_id IS NOT NULL AND NOT pg_is_in_recovery(),
           CASE WHEN NOT s.preloaded THEN 'snowflake is not in shared_preload_libraries.'
                WHEN s.node_id IS NULL THEN 'snowflake.node_id is not set.'
                WHEN pg_is_in_recovery() THEN 'A standby issues no IDs. Run the audit on its primary server.' END
    INTO own_node, is_generating, unknown_reason
    FROM snowflake_internal.get_status() AS s;
    IF NOT is_generating THEN
        RAISE NOTICE 'IDs that this server cannot have issued are not searched for' USING DETAIL = unknown_reason;
        own_node := NULL;
    END IF;

    answer := snowflake_internal.read_audited(target, format(
        'SELECT array_agg(g.kind), array_agg(g.backend), array_agg(g.count), array_agg(g.top)
         FROM (SELECT n.kind, n.backend, count(*), max(n.id) AS top
               FROM (SELECT d.id,
                            CASE WHEN d.id < %2$L::bigint THEN CASE WHEN d.id > %6$L::bigint THEN 5 ELSE 1 END WHEN d.id < 0 THEN 2 WHEN d.id < %7$L::bigint THEN 6 WHEN d.id > %3$L::bigint THEN 3
                                 WHEN %5$L::integer[] IS NOT NULL AND snowflake_internal.node_id(d.id) <> ALL (%5$L::integer[]) THEN 4
                                 ELSE 0 END AS kind,
                            CASE WHEN d.id >= greatest(%2$L::bigint, %7$L::bigint) AND d.id <= %3$L::bigint
                                      AND snowflake_internal.node_id(d.id) = %4$L::integer
                                 THEN snowflake_internal.backend_id(d.id) END AS backend
                     FROM (%1$s IS NOT NULL) AS d) AS n
               GROUP BY n.kind, n.backend) AS g',
        numbers, start, last_of_layout, own_node, array_remove(expected_nodes, NULL), known[2], oldest), caller_path);
    kinds := answer[1]::integer[];
    backends := answer[2]::integer[];
    counts := answer[3]::bigint[];
    tops := answer[4]::bigint[];
    SELECT max(g.top) INTO highest FROM unnest(kinds, tops) AS g (kind, top) WHERE g.kind IN (is_id, is_of_other_node);
    -- With another layout, the decoded fields are not those of the IDs.
    SELECT s.database_layout, s.layout INTO id_layout, server_layout
    FROM snowflake_internal.get_status() AS s WHERE s.database_layout <> s.layout;
    IF FOUND THEN
        RAISE NOTICE 'IDs of this database were generated with another layout'
            USING DETAIL = format('They were generated with "%s"; they are read with "%s".', id_layout, server_layout),
                  HINT = 'If the change is intended, run SELECT snowflake_accept_layout() as a superuser.';
        RETURN QUERY SELECT 'IDs of another layout', sum(g.count)::bigint, max(g.top)
                     FROM unnest(kinds, counts, tops) AS g (kind, count, top)
                     WHERE g.kind NOT IN (is_below, is_no_old_number) HAVING sum(g.count) > 0;
    END IF;

    -- The highest ID that may exist by now.
    is_mark_read := coalesce((SELECT s.database_reserved_until IS NOT NULL FROM snowflake_internal.get_status() AS s), false);
    SELECT greatest(m.last_value - 1, 0) AS bound, m.log_cnt < 0 AND is_mark_read AS is_in_slots INTO mark
    FROM snowflake_internal.mark AS m;
    -- Settings are not defined if the library is not preloaded; their defaults are used then.
    SELECT make_interval(secs => (coalesce(max(s.setting) FILTER (WHERE s.name = 'snowflake.max_borrow'), '1000')::float8
                                  + coalesce(max(s.setting) FILTER (WHERE s.name = 'snowflake.lease'), '2000')::float8) / 1000),
           make_interval(secs => nullif(coalesce(max(s.setting) FILTER (WHERE s.name = 'snowflake.max_clock_step'), '86400000'), '-1')::float8 / 1000)
    INTO ahead, max_step
    FROM pg_settings AS s WHERE s.name LIKE 'snowflake.%';
    allowed := snowflake_internal.max_id(clock_timestamp() + ahead);
    IF max_step IS NULL
       OR mark.bound <= snowflake_internal.max_id(clock_timestamp() + max_step + ahead)
    THEN
        allowed := greatest(allowed, mark.bound);
    END IF;

    -- A slot without values above its bound gets the highest possible bound.
    IF is_generating THEN
        SELECT array_agg(CASE WHEN seen.top > b.bound THEN b.bound ELSE highest_possible END ORDER BY s.backend_id),
               array_agg(coalesce(seen.top, 0) ORDER BY s.backend_id),
               min(b.bound) FILTER (WHERE seen.top > b.bound)
        INTO slot_bounds, slot_tops, lowest_bound
        FROM snowflake_internal.get_stat_slots() AS s
        CROSS JOIN LATERAL (SELECT greatest(s.bound, CASE WHEN NOT mark.is_in_slots THEN mark.bound END, 0)) AS b (bound)
        LEFT JOIN (SELECT g.backend, max(g.top) FROM unnest(backends, tops) AS g (backend, top) GROUP BY g.backend)
               AS seen (backend, top) ON seen.backend = s.backend_id;
    END IF;

    IF highest > allowed OR lowest_bound IS NOT NULL THEN
        answer := snowflake_internal.read_audited(target, format(
            'SELECT count(*) FILTER (WHERE n.id > %7$L::bigint) AS count,
                    max(n.id) FILTER (WHERE n.id > %7$L::bigint) AS top,
                    count(*) FILTER (WHERE n.is_not_own) AS not_own,
                    max(n.id) FILTER (WHERE n.is_not_own) AS not_own_top
             FROM (SELECT d.id, snowflake_internal.node_id(d.id) = %6$L::integer
                                AND d.id > (%8$L::bigint[])[snowflake_internal.backend_id(d.id) + 1]
                                AND d.id <= (%9$L::bigint[])[snowflake_internal.backend_id(d.id) + 1] AS is_not_own
                   FROM (%1$s > %3$L::bigint AND audited.%2$I >= %4$L::bigint AND audited.%2$I <= %5$L::bigint) AS d) AS n',
            numbers, audited_column, least(allowed, lowest_bound), greatest(start, 0), highest, own_node, allowed,
            slot_bounds, slot_tops), caller_path);
        future := answer[1]::bigint;
        future_top := answer[2]::bigint;
        not_own := answer[3]::bigint;
        not_own_top := answer[4]::bigint;
    END IF;

    -- A unique index on this column alone proves that there are no duplicates.
    -- Some do not count: a deferrable one, because this transaction may have
    -- pending checks; an invalid one left by CREATE INDEX CONCURRENTLY; and that
    -- of a table with inheritance children, which have their own indexes. The
    -- unique index of a partitioned table covers its partitions, because it
    -- contains the partition key.
    IF NOT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indrelid
        JOIN pg_opclass AS o ON o.oid = i.indclass[0]
        JOIN pg_opfamily AS f ON f.oid = o.opcfamily AND f.opfname = 'integer_ops' AND f.opfnamespace = 'pg_catalog'::regnamespace
        WHERE i.indrelid = target AND i.indisunique AND i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate
          AND i.indnkeyatts = 1 AND i.indkey[0] = column_number AND i.indpred IS NULL
          AND (c.relkind = 'p' OR NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhparent = target)))
    THEN
        answer := snowflake_internal.read_audited(target, format(
            'SELECT sum(g.count - 1)::bigint AS count, max(g.id) AS top
             FROM (SELECT d.id, count(*) FROM (%s IS NOT NULL) AS d GROUP BY d.id HAVING count(*) > 1) AS g', numbers), caller_path);
        duplicates := answer[1]::bigint;
        duplicates_top := answer[2]::bigint;
        IF duplicates > 0 THEN
            RETURN QUERY SELECT 'duplicates', duplicates, duplicates_top;
        END IF;
    END IF;
    IF future > 0 THEN
        RETURN QUERY SELECT 'IDs from the future', future, future_top;
    END IF;
    RETURN QUERY
        SELECT name.text, sum(g.count)::bigint, max(g.top)
        FROM unnest(kinds, counts, tops) AS g (kind, count, top)
        JOIN (VALUES (is_negative, 'negative numbers'),
                     (is_outside, 'numbers outside of this server''s layout'),
                     (is_of_other_node, 'IDs of unexpected nodes'),
                     (CASE WHEN boundary IS NOT NULL THEN is_below END, 'numbers below the boundary'),
                     (is_no_old_number, 'numbers below the boundary'),
                     (is_older_than_ids, 'numbers below all IDs, and no boundary is set')) AS name (kind, text) ON name.kind = g.kind
        GROUP BY name.kind, name.text
        ORDER BY array_position(ARRAY[is_negative, is_older_than_ids, is_outside, is_of_other_node, is_below, is_no_old_number], name.kind);
    IF not_own > 0 THEN
        RETURN QUERY SELECT 'IDs with this server''s node number that it cannot have issued', not_own, not_own_top;
    END IF;
END
$function$;

-- The function has no SET clause, and passes the caller's search path on: see
-- snowflake_internal.read_audited. All names are qualified.
CREATE FUNCTION snowflake_audit(
    target regclass,
    column_name name DEFAULT NULL,
    expected_nodes integer[] DEFAULT NULL,
    boundary bigint DEFAULT NULL
) RETURNS TABLE (finding text, ids bigint, example bigint)
LANGUAGE plpgsql STABLE
AS $function$
BEGIN
    RETURN QUERY
        SELECT a.finding, a.ids, a.example
        FROM snowflake_internal.audit(target, column_name, expected_nodes, boundary, pg_catalog.current_setting('search_path'::pg_catalog.text)) AS a;
END
$function$;
COMMENT ON FUNCTION snowflake_audit(target regclass, column_name name, expected_nodes integer[], boundary bigint) IS
    'Checks the IDs in a column: one row for each kind of problem, with the number of IDs and the largest; no rows if there is none. Values below the boundary are old, and reported if it is given; the default is the one that is set, as snowflake_id_boundary returns it';

-- The audit of a column of IDs.
--
-- It reads by snowflake_internal.read_audited, and by the snapshot of the calling statement.
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

-- IDs of one kind that an audit has found. kind is the text of the finding; of 'IDs' and
-- 'old numbers' it is none. backend is that of IDs with this server's node number.
CREATE TYPE snowflake_internal.audited AS (kind text, backend integer, ids bigint, highest bigint);

-- The audited column, which is the only one with IDs if it is not named.
CREATE FUNCTION snowflake_internal.audited_column(target regclass, column_name name)
RETURNS name LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    audited_column CONSTANT name := snowflake_internal.ids_column(target, column_name);
BEGIN
    -- A domain has the output function of the type that it is based on.
    PERFORM snowflake_internal.refuse('42804', format('column "%s" of %s cannot hold IDs', audited_column, target),
        detail => format('Its type is %s.', format_type(a.atttypid, a.atttypmod)),
        hint => 'Snowflake IDs are bigint; earlier IDs may be integer or smallint.')
    FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
    WHERE a.attrelid = target AND a.attname = audited_column
      AND t.typoutput NOT IN ('int8out'::regproc, 'int4out'::regproc, 'int2out'::regproc);
    RETURN audited_column;
END
$function$;

-- Whether a unique index on this column alone proves that there are no duplicates. Some do
-- not count: a deferrable one, because this transaction may have pending checks; an invalid
-- one left by CREATE INDEX CONCURRENTLY; and that of a table with inheritance children,
-- which have their own indexes. The unique index of a partitioned table covers its
-- partitions, because it contains the partition key.
CREATE FUNCTION snowflake_internal.is_unique(target regclass, column_name name)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indrelid
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] AND a.attname = column_name
        JOIN pg_opclass AS o ON o.oid = i.indclass[0]
        JOIN pg_opfamily AS f ON f.oid = o.opcfamily AND f.opfname = 'integer_ops' AND f.opfnamespace = 'pg_catalog'::regnamespace
        WHERE i.indrelid = target AND i.indisunique AND i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate
          AND i.indnkeyatts = 1 AND i.indpred IS NULL
          AND (c.relkind = 'p' OR NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhparent = target)))
$function$;

-- The node number of this server, if it issues IDs. Otherwise a notice says why some are not
-- searched for.
CREATE FUNCTION snowflake_internal.audited_node()
RETURNS integer LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    own_node integer;
    unknown_reason text;
BEGIN
    SELECT s.node_id,
           CASE WHEN NOT s.preloaded AND current_setting('server_version_num')::integer < 170000 THEN 'snowflake is not in shared_preload_libraries.'
                WHEN s.node_id IS NULL THEN 'snowflake.node_id is not set.'
                WHEN pg_is_in_recovery() THEN 'A standby issues no IDs. Run the audit on its primary server.' END
    INTO own_node, unknown_reason
    FROM snowflake_internal.get_status() AS s;
    IF unknown_reason IS NOT NULL THEN
        RAISE NOTICE 'IDs that this server cannot have issued are not searched for' USING DETAIL = unknown_reason;
        RETURN NULL;
    END IF;
    RETURN own_node;
END
$function$;

-- The highest ID that any server can have issued by now, and what the mark says of this one.
CREATE FUNCTION snowflake_internal.highest_possible_id(OUT allowed bigint, OUT mark bigint, OUT is_mark_in_slots boolean)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- Asked before the mark and the slots are read.
    is_mark_read CONSTANT boolean := coalesce(
        (SELECT s.database_reserved_until IS NOT NULL FROM snowflake_internal.get_status() AS s), false);
    ahead interval;
    max_step interval;
BEGIN
    SELECT greatest(m.last_value - 1, 0), m.log_cnt < 0 AND is_mark_read INTO mark, is_mark_in_slots
    FROM snowflake_internal.mark AS m;
    -- Settings are not defined if the library is not preloaded; their defaults are used then.
    SELECT make_interval(secs => (coalesce(max(s.setting) FILTER (WHERE s.name = 'snowflake.max_borrow'), '1000')::float8
                                  + coalesce(max(s.setting) FILTER (WHERE s.name = 'snowflake.lease'), '2000')::float8) / 1000),
           make_interval(secs => nullif(coalesce(max(s.setting) FILTER (WHERE s.name = 'snowflake.max_clock_step'), '86400000'),
                                        '-1')::float8 / 1000)
    INTO ahead, max_step
    FROM pg_settings AS s WHERE s.name LIKE 'snowflake.%';
    allowed := snowflake_internal.max_id(clock_timestamp() + ahead);
    IF max_step IS NULL OR mark <= snowflake_internal.max_id(clock_timestamp() + max_step + ahead) THEN
        allowed := greatest(allowed, mark);
    END IF;
END
$function$;

-- The first scan: all values of the column, by kind. Those from `first` on may be IDs. No old
-- number is above `last_old`. Without a boundary, IDs begin at `oldest`.
CREATE FUNCTION snowflake_internal.values_by_kind(
    target regclass, numbers text, first bigint, last_old bigint, oldest bigint, is_boundary_given boolean, own_node integer,
    expected_nodes integer[], caller_path text
) RETURNS snowflake_internal.audited[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
    SELECT (snowflake_internal.read_audited(target, format(
        'SELECT array_agg(ROW(g.kind, g.backend, g.count, g.top)::snowflake_internal.audited)
         FROM (SELECT n.kind, n.backend, count(*), max(n.id) AS top
               FROM (SELECT d.id,
                            CASE WHEN d.id < %2$L::bigint AND (%8$L::boolean OR d.id > %6$L::bigint) THEN ''numbers below the boundary''
                                 WHEN d.id < %2$L::bigint THEN ''old numbers''
                                 WHEN d.id < 0 THEN ''negative numbers''
                                 WHEN d.id < %7$L::bigint THEN ''numbers below all IDs, and no boundary is set''
                                 WHEN d.id > %3$L::bigint THEN ''numbers outside of this server''''s layout''
                                 WHEN %5$L::integer[] IS NOT NULL AND snowflake_internal.node_id(d.id) <> ALL (%5$L::integer[])
                                 THEN ''IDs of unexpected nodes''
                                 ELSE ''IDs'' END AS kind,
                            CASE WHEN d.id >= greatest(%2$L::bigint, %7$L::bigint) AND d.id <= %3$L::bigint
                                      AND snowflake_internal.node_id(d.id) = %4$L::integer
                                 THEN snowflake_internal.backend_id(d.id) END AS backend
                     FROM (%1$s IS NOT NULL) AS d) AS n
               GROUP BY n.kind, n.backend) AS g',
        numbers, first, snowflake_internal.max_id(timestamptz 'infinity'), own_node, array_remove(expected_nodes, NULL), last_old,
        oldest, is_boundary_given), caller_path))[1]::snowflake_internal.audited[]
$function$;

-- The second scan: what is later than any server can have issued, and what this server
-- cannot have issued, because it is above the last ID of its backend number.
CREATE FUNCTION snowflake_internal.impossible_ids(
    target regclass, column_name name, numbers text, first bigint, own_node integer, seen snowflake_internal.audited[], caller_path text
) RETURNS snowflake_internal.audited[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    highest_number CONSTANT bigint := 9223372036854775807;
    highest CONSTANT bigint := (SELECT max(s.highest) FROM unnest(seen) AS s WHERE s.kind IN ('IDs', 'IDs of unexpected nodes'));
    possible record;
    bounds bigint[];
    tops bigint[];
    lowest_bound bigint;
BEGIN
    SELECT p.* INTO possible FROM snowflake_internal.highest_possible_id() AS p;
    IF own_node IS NOT NULL THEN
        -- A slot without values above its bound gets the highest number as its bound.
        SELECT array_agg(CASE WHEN own.top > b.bound THEN b.bound ELSE highest_number END ORDER BY s.backend_id),
               array_agg(coalesce(own.top, 0) ORDER BY s.backend_id),
               min(b.bound) FILTER (WHERE own.top > b.bound)
        INTO bounds, tops, lowest_bound
        FROM snowflake_internal.get_stat_slots() AS s
        CROSS JOIN LATERAL (SELECT greatest(s.bound, CASE WHEN NOT possible.is_mark_in_slots THEN possible.mark END, 0)) AS b (bound)
        LEFT JOIN (SELECT g.backend, max(g.highest) FROM unnest(seen) AS g GROUP BY g.backend) AS own (backend, top)
          ON own.backend = s.backend_id;
    END IF;
    IF NOT coalesce(highest > possible.allowed, false) AND lowest_bound IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN (snowflake_internal.read_audited(target, format(
        'SELECT array_agg(ROW(k.kind, NULL, k.ids, k.top)::snowflake_internal.audited)
         FROM (SELECT count(*) FILTER (WHERE n.id > %7$L::bigint) AS future,
                      max(n.id) FILTER (WHERE n.id > %7$L::bigint) AS future_top,
                      count(*) FILTER (WHERE n.is_not_own) AS not_own,
                      max(n.id) FILTER (WHERE n.is_not_own) AS not_own_top
               FROM (SELECT d.id, snowflake_internal.node_id(d.id) = %6$L::integer
                                  AND d.id > (%8$L::bigint[])[snowflake_internal.backend_id(d.id) + 1]
                                  AND d.id <= (%9$L::bigint[])[snowflake_internal.backend_id(d.id) + 1] AS is_not_own
                     FROM (%1$s > %3$L::bigint AND audited.%2$I >= %4$L::bigint AND audited.%2$I <= %5$L::bigint) AS d) AS n) AS c
         CROSS JOIN LATERAL (VALUES (''IDs from the future'', c.future, c.future_top),
                                    (''IDs with this server''''s node number that it cannot have issued'', c.not_own, c.not_own_top)
                            ) AS k (kind, ids, top)
         WHERE k.ids > 0',
        numbers, column_name, least(possible.allowed, lowest_bound), greatest(first, 0), highest, own_node, possible.allowed, bounds,
        tops), caller_path))[1]::snowflake_internal.audited[];
END
$function$;

CREATE FUNCTION snowflake_internal.audit(
    target regclass, column_name name, expected_nodes integer[], boundary bigint, caller_path text,
    is_each_node_asked boolean DEFAULT true
) RETURNS TABLE (finding text, ids bigint, example bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    audited_column CONSTANT name := snowflake_internal.audited_column(target, column_name);
    numbers CONSTANT text := format('SELECT audited.%1$I::bigint AS id FROM %2$s AS audited WHERE audited.%1$I', audited_column, target);
    -- The rows of a migrated column that are older than its snowflake IDs.
    known CONSTANT bigint[] := CASE WHEN boundary IS NULL THEN snowflake_internal.set_boundary_of(target, audited_column) END;
    first CONSTANT bigint := coalesce(boundary, known[1], -9223372036854775808);
    own_node CONSTANT integer := snowflake_internal.audited_node();
    seen snowflake_internal.audited[];
    all_found snowflake_internal.audited[];
    other record;
BEGIN
    seen := snowflake_internal.values_by_kind(target, numbers, first, known[2],
        CASE WHEN boundary IS NULL AND known IS NULL THEN snowflake_internal.oldest_id() ELSE 0 END,
        boundary IS NOT NULL, own_node, expected_nodes, caller_path);
    -- With another layout, the decoded fields are not those of the IDs.
    SELECT s.database_layout, s.layout INTO other FROM snowflake_internal.get_status() AS s WHERE s.database_layout <> s.layout;
    IF FOUND THEN
        RAISE NOTICE 'IDs of this database were generated with another layout'
            USING DETAIL = format('They were generated with "%s"; they are read with "%s".', other.database_layout, other.layout),
                  HINT = 'If the change is intended, run SELECT snowflake_accept_layout() as a superuser.';
        all_found := ARRAY(SELECT ('IDs of another layout', NULL, sum(s.ids)::bigint, max(s.highest))::snowflake_internal.audited
                       FROM unnest(seen) AS s
                       WHERE s.kind NOT IN ('old numbers', 'numbers below the boundary') HAVING sum(s.ids) > 0);
    END IF;
    all_found := all_found || seen || snowflake_internal.impossible_ids(target, audited_column, numbers, first, own_node, seen, caller_path);
    IF NOT snowflake_internal.is_unique(target, audited_column) THEN
        all_found := all_found || (snowflake_internal.read_audited(target, format(
            'SELECT array_agg(ROW(''duplicates'', NULL, t.ids, t.top)::snowflake_internal.audited)
             FROM (SELECT sum(g.count - 1)::bigint AS ids, max(g.id) AS top
                   FROM (SELECT d.id, count(*) FROM (%s IS NOT NULL) AS d GROUP BY d.id HAVING count(*) > 1) AS g) AS t
             WHERE t.ids > 0', numbers), caller_path))[1]::snowflake_internal.audited[];
    END IF;
    RETURN QUERY
        SELECT f.kind, sum(f.ids)::bigint, max(f.highest)
        FROM unnest(all_found) AS f
        JOIN unnest(ARRAY['IDs of another layout', 'duplicates', 'IDs from the future', 'negative numbers',
                          'numbers below all IDs, and no boundary is set', 'numbers outside of this server''s layout',
                          'IDs of unexpected nodes', 'numbers below the boundary',
                          'IDs with this server''s node number that it cannot have issued']) WITH ORDINALITY AS o (kind, place)
          ON o.kind = f.kind
        GROUP BY f.kind, o.place
        ORDER BY o.place;
    IF is_each_node_asked THEN
        RETURN QUERY
            SELECT n.finding, n.ids, n.example
            FROM snowflake_internal.not_issued_by_nodes(target, numbers, first, caller_path) AS n;
    END IF;
END
$function$;

-- The function has no SET clause, and passes the caller's search path on: see
-- snowflake_internal.read_audited. All names are qualified.
CREATE FUNCTION snowflake_audit(
    target regclass, column_name name DEFAULT NULL, expected_nodes integer[] DEFAULT NULL, boundary bigint DEFAULT NULL
) RETURNS TABLE (finding text, ids bigint, example bigint)
LANGUAGE plpgsql STABLE
AS $function$
BEGIN
    RETURN QUERY
        SELECT a.finding, a.ids, a.example
        FROM snowflake_internal.audit(
            target, column_name, expected_nodes, boundary, pg_catalog.current_setting('search_path'::pg_catalog.text)) AS a;
END
$function$;
COMMENT ON FUNCTION snowflake_audit(target regclass, column_name name, expected_nodes integer[], boundary bigint) IS
    'Checks the IDs in a column: one row for each kind of problem, with the number of IDs and the largest; no rows if there is none. Values below the boundary are old, and reported if it is given; the default is the one that is set, as snowflake_id_boundary returns it';

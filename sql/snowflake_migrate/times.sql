-- How long steps take: the bytes, rows and index entries that they read or write, at rates
-- that were measured, and the speed of this server as far as a backfill has shown it.

-- Microseconds, measured on an idle 2-core machine. An update, and a row in a rewrite, cost by
-- themselves, by their bytes, and by each entry of an index. read_kilobyte is that of a disk of 200 MB/s, logged_kilobyte that of WAL with its flush.
CREATE FUNCTION snowflake_migrate_internal.rates(
    OUT copied_row numeric, OUT copied_entry numeric, OUT copied_kilobyte numeric,
    OUT rewritten_row numeric, OUT built_entry numeric, OUT rewritten_kilobyte numeric,
    OUT scanned_row numeric, OUT cached_kilobyte numeric, OUT read_kilobyte numeric, OUT checked_reference numeric,
    OUT logged_kilobyte numeric
) LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (4.0, 2.4, 1.4, 0.2, 0.33, 2.7, 0.12, 0.3, 5.0, 0.4, 8.0);

-- How many times as long as of numbers the entries of an index take: texts that are compared
-- by the rules of a language cost more, when the index is updated and when it is built. Those of an
-- index of another kind than a B-tree are several for a row, or few for all, and follow from its size.
CREATE FUNCTION snowflake_migrate_internal.index_entries(index regclass, rows numeric, OUT updated numeric, OUT built numeric)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN m.amname <> 'btree' THEN size.bytes / 80 WHEN k.is_text THEN 4 * b.entries ELSE b.entries END,
           CASE WHEN m.amname <> 'btree' THEN size.bytes / 10 WHEN k.is_text THEN 8 * b.entries ELSE b.entries END
    FROM pg_index AS i
    JOIN pg_class AS c ON c.oid = i.indexrelid
    JOIN pg_am AS m ON m.oid = c.relam
    CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.main_bytes(i.indexrelid)::numeric) AS size (bytes)
    -- A partial index has few rows. Without statistics, it has all of them.
    CROSS JOIN LATERAL (SELECT CASE WHEN i.indpred IS NOT NULL AND c.reltuples >= 0 THEN c.reltuples::numeric ELSE rows END) AS b (entries)
    CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT FROM unnest(i.indcollation) AS u (oid)
            JOIN pg_collation AS l ON l.oid = u.oid
            WHERE coalesce(nullif(l.collcollate, ''), (SELECT d.datcollate FROM pg_database AS d WHERE d.datname = current_database()))
                  NOT IN ('C', 'POSIX'))) AS k (is_text)
    WHERE i.indexrelid = index
$function$;

-- The same of all indexes of a table.
CREATE FUNCTION snowflake_migrate_internal.table_entries(relation regclass, rows numeric, OUT updated numeric, OUT built numeric)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(sum(e.updated), 0), coalesce(sum(e.built), 0)
    FROM pg_index AS i
    CROSS JOIN LATERAL snowflake_migrate_internal.index_entries(i.indexrelid, rows) AS e
    WHERE i.indrelid = relation AND i.indislive
$function$;

CREATE FUNCTION snowflake_migrate_internal.scan_seconds(rows numeric, bytes numeric)
RETURNS numeric LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT (rows * r.scanned_row + bytes / 1024 * CASE WHEN bytes <= pg_size_bytes(current_setting('effective_cache_size'))
                                                       THEN r.cached_kilobyte ELSE r.read_kilobyte END) / 1e6
    FROM snowflake_migrate_internal.rates() AS r
$function$;

-- Whether a table is so small that a look at it takes no noticeable time. Then it is none to estimate,
-- because that takes longer for hundreds of tables.
CREATE FUNCTION snowflake_migrate_internal.is_small(relation regclass)
RETURNS boolean LANGUAGE sql STABLE
RETURN snowflake_migrate_internal.table_bytes($1) OPERATOR(pg_catalog.<) 1048576::pg_catalog.int8;

-- A validation of a table's rows.
CREATE FUNCTION snowflake_migrate_internal.scan_work(relation regclass)
RETURNS snowflake_migrate_internal.work LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT (s.rows, s.bytes, snowflake_migrate_internal.scan_seconds(s.rows, s.bytes))::snowflake_migrate_internal.work
    FROM (SELECT snowflake_migrate_internal.row_estimate(relation)::numeric, snowflake_migrate_internal.main_bytes(relation)::numeric
          WHERE NOT snowflake_migrate_internal.is_small(relation)) AS s (rows, bytes)
$function$;

-- A validation of a foreign key, which joins two tables.
CREATE FUNCTION snowflake_migrate_internal.reference_work(relation regclass, referenced regclass)
RETURNS snowflake_migrate_internal.work LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT (a.rows, coalesce(a.bytes, 0) + coalesce(b.bytes, 0),
            coalesce(a.seconds, 0) + coalesce(b.seconds, 0) + coalesce(a.rows, 0) * r.checked_reference / 1e6
           )::snowflake_migrate_internal.work
    FROM snowflake_migrate_internal.scan_work(relation) AS a
    CROSS JOIN snowflake_migrate_internal.scan_work(referenced) AS b
    CROSS JOIN snowflake_migrate_internal.rates() AS r
$function$;

-- A concurrent build of an index that is like another one: two scans, and a sort.
CREATE FUNCTION snowflake_migrate_internal.index_work(relation regclass, index regclass)
RETURNS snowflake_migrate_internal.work LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT (s.rows, snowflake_migrate_internal.main_bytes(index)::numeric,
            2 * s.seconds
            + (e.built * r.built_entry + snowflake_migrate_internal.main_bytes(index) / 1024.0 * r.logged_kilobyte) / 1e6)::snowflake_migrate_internal.work
    FROM snowflake_migrate_internal.scan_work(relation) AS s
    CROSS JOIN snowflake_migrate_internal.rates() AS r
    CROSS JOIN LATERAL snowflake_migrate_internal.index_entries(index, s.rows) AS e
    WHERE NOT snowflake_migrate_internal.is_small(relation)
$function$;

-- The WAL of rows that are copied, which have so many bytes of their table: a record of a row's lock, one of the new row, and
-- an entry in each index, of the size that others have, unless the row's page has room (HOT). In addition, each page is logged
-- in full once after a checkpoint.
CREATE FUNCTION snowflake_migrate_internal.copy_wal(relation regclass, rows numeric, bytes numeric)
RETURNS numeric LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT rows * (140 + 50 * (SELECT count(*) FROM pg_index AS i WHERE i.indrelid = relation))
           + 2 * bytes * (1 + coalesce(pg_indexes_size(relation)::numeric / nullif(pg_relation_size(relation), 0), 0))
$function$;

CREATE FUNCTION snowflake_migrate_internal.copy_seconds(relation regclass, rows numeric, bytes numeric)
RETURNS numeric LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT (rows * r.copied_row + e.updated * r.copied_entry + bytes / 1024 * r.copied_kilobyte
            + snowflake_migrate_internal.copy_wal(relation, rows, bytes) / 1024 * r.logged_kilobyte) / 1e6
    FROM snowflake_migrate_internal.rates() AS r
    CROSS JOIN snowflake_migrate_internal.table_entries(relation, rows) AS e
$function$;

-- A rewrite of the tables of columns with their children and indexes, and the checks of the foreign keys of these columns.
CREATE FUNCTION snowflake_migrate_internal.rewrite_work(columns snowflake_migrate_internal.key[])
RETURNS snowflake_migrate_internal.work LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH widened AS MATERIALIZED (
        SELECT a.attrelid, a.attnum FROM unnest(columns) AS c JOIN pg_attribute AS a ON a.attrelid = c.target AND a.attname = c.column_name
    ), rewritten AS (
        SELECT t.relation, snowflake_migrate_internal.row_estimate(t.relation)::numeric AS rows,
               snowflake_migrate_internal.table_bytes(t.relation)::numeric AS heap,
               snowflake_migrate_internal.total_bytes(t.relation)::numeric AS bytes
        FROM snowflake_internal.tree(ARRAY(SELECT w.attrelid::regclass FROM widened AS w)) AS t (relation)
        JOIN pg_class AS c ON c.oid = t.relation AND c.relkind = 'r'
        WHERE NOT snowflake_migrate_internal.is_small(t.relation)
    ), checked AS MATERIALIZED (
        SELECT k.conrelid, k.confrelid
        FROM pg_constraint AS k
        -- Small tables have no estimate.
        WHERE EXISTS (SELECT FROM rewritten) AND k.contype = 'f' AND k.conparentid = 0
          AND EXISTS (SELECT FROM widened AS w
                      WHERE w.attrelid = k.conrelid AND w.attnum = ANY (k.conkey)
                         OR w.attrelid = k.confrelid AND w.attnum = ANY (k.confkey))
    )
    SELECT (sum(w.rows), sum(w.bytes),
            sum(w.rows * r.rewritten_row + e.built * r.built_entry + w.heap / 1024 * r.rewritten_kilobyte
                + snowflake_migrate_internal.rewrite_wal(w.rows, w.bytes) / 1024 * r.logged_kilobyte) / 1e6
            + coalesce((SELECT sum(f.seconds)
                        FROM checked AS k
                        CROSS JOIN LATERAL snowflake_migrate_internal.reference_work(k.conrelid, k.confrelid) AS f
                        WHERE NOT (snowflake_migrate_internal.is_small(k.conrelid)
                                   AND snowflake_migrate_internal.is_small(k.confrelid))), 0)
           )::snowflake_migrate_internal.work
    FROM rewritten AS w
    CROSS JOIN snowflake_migrate_internal.rates() AS r
    CROSS JOIN LATERAL snowflake_migrate_internal.table_entries(w.relation, w.rows) AS e
$function$;

-- The WAL of a rewrite: the pages of the table and its indexes, and the head of a record for each row,
-- which counts where rows are narrow.
CREATE FUNCTION snowflake_migrate_internal.rewrite_wal(rows numeric, bytes numeric)
RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN bytes OPERATOR(pg_catalog.+) (36::pg_catalog.numeric OPERATOR(pg_catalog.*) rows);

-- How many times as long as by the rates the backfill of these keys took, as far as it has come,
-- with its pauses; NULL if that is not known yet. paused: whether it had any, which the other steps have not.
CREATE FUNCTION snowflake_migrate_internal.measured_factor(
    keys snowflake_migrate_internal.key[], OUT factor numeric, OUT paused boolean, OUT rows_per_second numeric
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT sum(p.run_seconds)::numeric / nullif(sum(snowflake_migrate_internal.copy_seconds(
               p.relation, p.run_rows, pg_relation_size(p.relation) * (p.run_rows::numeric / greatest(p.rows_total, 1)))), 0),
           EXISTS (SELECT FROM snowflake_migrate_internal.pace_settings((keys[1]).target, (keys[1]).column_name) AS s
                   WHERE s.pause > '0' OR s.max_replay_lag IS NOT NULL OR s.max_active_sessions IS NOT NULL),
           round(sum(p.run_rows) / nullif(sum(p.run_seconds), 0)::numeric)
    FROM snowflake_migrate_internal.progress AS p
    WHERE p.target = (keys[1]).target AND p.column_name = (keys[1]).column_name AND p.run_rows > 0
    -- Less has too much chance in it.
    HAVING sum(p.run_seconds) >= 2
$function$;

-- How many times as long as where the rates were measured a short computation takes now: other
-- work counts. The disks are not measured.
CREATE FUNCTION snowflake_migrate_internal.processor_factor()
RETURNS numeric LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    there CONSTANT numeric := 0.022;
    started_at timestamptz;
    measured numeric[];
BEGIN
    FOR attempt IN 1..3 LOOP
        started_at := clock_timestamp();
        PERFORM max(s.hash) FROM (SELECT md5(i::text) COLLATE "C" AS hash FROM generate_series(1, 20000) AS i ORDER BY 1 OFFSET 0) AS s;
        measured := measured || extract(epoch FROM clock_timestamp() - started_at);
    END LOOP;
    RETURN (SELECT greatest(percentile_disc(0.5) WITHIN GROUP (ORDER BY m), 0.001) / there FROM unnest(measured) AS m);
END
$function$;

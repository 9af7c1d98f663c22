-- The sums of a plan.

-- A time that is estimated, in words. It has no more precision than the estimate.
CREATE FUNCTION snowflake_migrate_internal.rough_time(seconds numeric)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN seconds < 60 THEN 'under 1 min'
                WHEN seconds < 5400 THEN format('about %s min', ceil(seconds / 60))
                WHEN seconds < 172800 THEN format('about %s h', ceil(seconds / 3600))
                ELSE format('about %s days', to_char(ceil(seconds / 86400), 'FM999,999')) END
$function$;

-- The sums of the statements that are left: the last row of a plan. The factors and
-- rates are those of the measurements in docs/migration.md.
CREATE FUNCTION snowflake_migrate_internal.sums(
    keys snowflake_migrate_internal.key[], online boolean, validations bigint, OUT what text, OUT note text
) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    -- Of a rewrite: bytes a second, additional space, WAL.
    rewrite_rate CONSTANT numeric := 40 * 1048576;
    rewrite_space CONSTANT numeric := 1.3;
    rewrite_wal CONSTANT numeric := 1.25;
    -- Of an online migration: rows a second.
    copy_rate CONSTANT numeric := 80000;
    tables bigint;
    bytes numeric;
    largest numeric;
    index_count bigint;
    foreign_keys bigint;
    rows numeric;
    space numeric;
    wal numeric;
BEGIN
    IF online THEN
        keys := snowflake_migrate_internal.unfinished(keys);
    END IF;
    IF online AND EXISTS (SELECT FROM snowflake_migrate_internal.linked_columns(keys) AS r WHERE r.is_narrow) THEN
        SELECT n.tables, n.rows, n.bytes, n.wal INTO tables, rows, space, wal
        FROM snowflake_migrate_internal.backfill_needs(keys) AS n;
        SELECT count(*), coalesce(space, 0) + coalesce(sum(pg_relation_size(i.index)), 0),
               coalesce(wal, 0) + coalesce(sum(pg_relation_size(i.index)), 0)
        INTO index_count, space, wal
        FROM snowflake_migrate_internal.shadow_indexes(keys) AS i WHERE NOT i.is_ready;
        what := CASE WHEN rows IS NULL THEN 'in all: the rows are copied, no estimate'
                     ELSE format('in all: %s more disk, %s', pg_size_pretty(space),
                                 snowflake_migrate_internal.rough_time(rows / copy_rate)) END;
        note := format('disk: up to %s more until the tables are vacuumed. WAL: about %s. Scans: %s, and two for each of %s. ',
                       pg_size_pretty(space), pg_size_pretty(wal), snowflake_migrate_internal.counted(validations, text 'validation'),
                       snowflake_migrate_internal.counted(index_count, text 'index build'))
                || CASE WHEN rows IS NULL THEN 'Time: that of the scans'
                        ELSE format('Time: %s at %s rows a second, with the indexes, '
                                    'measured with narrow rows on a 2-core machine; measure on a copy',
                                    snowflake_migrate_internal.counted(rows::bigint, text 'row'), to_char(copy_rate, 'FM999,999')) END;
        RETURN;
    END IF;
    SELECT count(*), sum(t.bytes), max(t.bytes), sum(t.indexes) INTO tables, bytes, largest, index_count
    FROM (SELECT pg_total_relation_size(f.relation) AS bytes, (SELECT count(*) FROM pg_index AS i WHERE i.indrelid = f.relation) AS indexes
          FROM (SELECT DISTINCT tree.relation
                FROM snowflake_migrate_internal.linked_columns(keys) AS r
                JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
                CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(r.relation, a.attname) AS tree
                WHERE r.is_narrow) AS f
          JOIN pg_class AS c ON c.oid = f.relation AND c.relkind = 'r') AS t;
    IF tables = 0 THEN
        what := 'in all: no table is rewritten';
        note := 'no additional disk space, and little WAL. The statements take milliseconds once they have their locks; '
                'ANALYZE, and the check of a key that no index leads with, read the table';
        RETURN;
    END IF;
    SELECT count(DISTINCT k.oid) INTO foreign_keys
    FROM snowflake_migrate_internal.linked_columns(keys) AS r
    JOIN pg_constraint AS k ON k.contype = 'f' AND k.conparentid = 0
        AND (k.conrelid = r.relation AND r.attribute = ANY (k.conkey) OR k.confrelid = r.relation AND r.attribute = ANY (k.confkey))
    WHERE r.is_narrow;
    what := format('in all: rewrites %s, %s', pg_size_pretty(bytes), snowflake_migrate_internal.rough_time(bytes / rewrite_rate));
    note := format('rewrites %s with %s. Disk: up to %s more in one transaction, %s if the statements run one by one. WAL: about %s. '
                   'Scans: one of each table, and the check of %s once for each of its columns. '
                   'Time: %s at %s/s, measured on a 2-core machine; measure on a copy',
                   snowflake_migrate_internal.counted(tables, text 'table'),
                   CASE index_count WHEN 1 THEN '1 index' ELSE to_char(index_count, 'FM999,999,999') || ' indexes' END,
                   pg_size_pretty(round(bytes * rewrite_space)), pg_size_pretty(round(largest * rewrite_space)),
                   pg_size_pretty(round(bytes * rewrite_wal)), snowflake_migrate_internal.counted(foreign_keys, text 'foreign key'),
                   pg_size_pretty(bytes), pg_size_pretty(rewrite_rate));
END
$function$;


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

-- The time of a plan, by the kind of its steps, and where that comes from.
CREATE FUNCTION snowflake_migrate_internal.time_note(keys snowflake_migrate_internal.key[], steps snowflake_migrate_internal.step[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('Time: %s, ', coalesce(string_agg(format('%s %s', k.name, snowflake_migrate_internal.short_time(k.seconds)), ', '
                                                    ORDER BY k.place) FILTER (WHERE k.seconds IS NOT NULL), 'little'))
           || coalesce((SELECT format('at the speed of the backfill until now, %s rows a second (snowflake_migrate.time_factor = %s)',
                                    to_char(m.rows_per_second, 'FM999,999,999'), round(m.factor, 2))
                        FROM snowflake_migrate_internal.measured_factor(keys) AS m WHERE m.factor IS NOT NULL),
                       'at the speed of the rehearsal (snowflake_migrate.time_factor = '
                       || snowflake_migrate_internal.rehearsed_factor() || ')',
                       'by rows, bytes and index entries, at rates measured on a 2-core machine '
                       'and the present speed of this server''s processor, not of its disks: '
                       || CASE WHEN bool_or(k.place = 2) THEN 'the plan corrects it after the first batches' ELSE 'measure on a copy' END)
    FROM (SELECT p.place, p.name, sum((s.work).seconds) AS seconds
          FROM unnest(steps) AS s
          JOIN (VALUES (1, 'rewrites', 'widen'), (1, 'rewrites', 'rewrite'), (2, 'rows', 'copy'), (3, 'validations', 'validation'),
                       (4, 'indexes', 'index')) AS p (place, name, kind) ON p.kind = s.kind
          GROUP BY p.place, p.name) AS k
$function$;

-- The sums of the statements that are left: the last row of a plan. The factors and
-- rates are those of the measurements in docs/migration.md.
CREATE FUNCTION snowflake_migrate_internal.sums(
    keys snowflake_migrate_internal.key[], online boolean, steps snowflake_migrate_internal.step[], OUT what text, OUT note text
) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    seconds CONSTANT numeric := (SELECT sum((s.work).seconds) FROM unnest(steps) AS s);
    validations CONSTANT bigint := (SELECT count(*) FROM unnest(steps) AS s WHERE s.kind = 'validation');
    -- Of a rewrite: additional space. Narrow rows grow by an eighth.
    rewrite_space CONSTANT numeric := 1.1;
    tables bigint;
    bytes numeric;
    largest numeric;
    index_count bigint;
    foreign_keys bigint;
    space numeric;
BEGIN
    IF online THEN
        keys := snowflake_migrate_internal.unfinished(keys);
    END IF;
    IF online AND EXISTS (SELECT FROM snowflake_migrate_internal.linked_columns(keys) AS r WHERE r.is_narrow) THEN
        SELECT count(*), coalesce((SELECT n.bytes FROM snowflake_migrate_internal.backfill_needs(keys) AS n), 0)
                         + coalesce(sum(snowflake_migrate_internal.main_bytes(i.index)), 0)
        INTO index_count, space
        FROM snowflake_migrate_internal.shadow_indexes(keys) AS i WHERE NOT i.is_ready;
        what := format('in all: %s more disk, %s', pg_size_pretty(space), snowflake_migrate_internal.rough_time(seconds));
        note := format('disk: up to %s more until the tables are vacuumed. WAL: about %s. Scans: %s, and two for each of %s. ',
                       pg_size_pretty(space), pg_size_pretty(snowflake_migrate_internal.wal_needs(keys, true)),
                       snowflake_migrate_internal.counted(validations, text 'validation'),
                       snowflake_migrate_internal.counted(index_count, text 'index build'))
                || snowflake_migrate_internal.time_note(keys, steps);
        RETURN;
    END IF;
    SELECT count(*), sum(t.bytes), max(t.bytes), sum(t.indexes) INTO tables, bytes, largest, index_count
    FROM (SELECT snowflake_migrate_internal.total_bytes(f.relation) AS bytes,
                 (SELECT count(*) FROM pg_index AS i WHERE i.indrelid = f.relation) AS indexes
          FROM (SELECT DISTINCT f.relation FROM snowflake_migrate_internal.linked_tree(keys) AS f WHERE f.is_narrow) AS f
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
    what := format('in all: rewrites %s, %s', pg_size_pretty(bytes), snowflake_migrate_internal.rough_time(coalesce(seconds, 0)));
    note := format('rewrites %s with %s. Disk: up to %s more in one transaction, %s if the statements run one by one. WAL: about %s. '
                   'Scans: one of each table, and the check of %s once for each of its columns. %s',
                   snowflake_migrate_internal.counted(tables, text 'table'),
                   CASE index_count WHEN 1 THEN '1 index' ELSE to_char(index_count, 'FM999,999,999') || ' indexes' END,
                   pg_size_pretty(round(bytes * rewrite_space)), pg_size_pretty(round(largest * rewrite_space)),
                   pg_size_pretty(round(snowflake_migrate_internal.wal_needs(keys, false))),
                   snowflake_migrate_internal.counted(foreign_keys, text 'foreign key'),
                   snowflake_migrate_internal.time_note(keys, steps));
END
$function$;

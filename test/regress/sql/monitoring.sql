-- The views, and what they show of a server that has generated IDs.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SELECT c.relname AS view, a.attname AS column, format_type(a.atttypid, a.atttypmod) AS type
FROM pg_attribute AS a
JOIN pg_class AS c ON c.oid = a.attrelid
WHERE c.oid IN ('snowflake_status'::regclass, 'snowflake_stat_slots'::regclass, 'snowflake_layouts'::regclass,
                'snowflake_migrate.columns'::regclass, 'snowflake_migrate.progress'::regclass, 'snowflake_unresolved'::regclass)
  AND a.attnum > 0
ORDER BY c.relname COLLATE "C", a.attnum;
SELECT snowflake_stat_reset();
-- Each ID is counted in the slot that it is of, also in a transaction that is rolled back.
BEGIN; CREATE TEMP TABLE drawn AS SELECT snowflake_nextval() AS id FROM generate_series(1, 20000) UNION ALL SELECT snowflake_nextvals(1000);
SELECT s.backend_id, s.ids, d.ids FROM snowflake_stat_slots AS s LEFT JOIN (SELECT snowflake_backend_id(id) AS backend_id, count(*) AS ids FROM drawn GROUP BY 1) AS d USING (backend_id)
WHERE s.ids <> coalesce(d.ids, 0);
ROLLBACK;
-- A session that counts on does not bring the old count back.
SELECT snowflake_stat_reset();
SELECT count(*) FROM snowflake_nextvals(1000);
SELECT ids, waits, preloaded, server_last_id_at BETWEEN now() - interval '5 min' AND now() + interval '5 s' AS is_now, server_last_id_at IS NOT NULL AS has_last_id,
       database_reserved_until > server_last_id_at AS reserves_ahead, clock_behind, node_id = current_setting('snowflake.node_id')::int AS node,
       layout, database_layout IS NOT DISTINCT FROM layout AS same_layout, expires_at
FROM snowflake_status;
SELECT count(*) AS slots, min(backend_id), max(backend_id), sum(ids) AS ids, sum(waits) AS waits, sum(wait_time) AS wait_time FROM snowflake_stat_slots;
SELECT sum(allocated_size) <= 65536 AS is_small FROM pg_shmem_allocations WHERE name LIKE 'snowflake%';
SELECT count(*) AS own_slot FROM snowflake_stat_slots WHERE pg_backend_pid() = ANY (pids);
SELECT name, layout, expires_at, ids_per_second, nodes, backends FROM snowflake_layouts ORDER BY name COLLATE "C";
SELECT * FROM snowflake_migrate.progress;

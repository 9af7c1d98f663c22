\pset format unaligned
-- Conditions on time are ranges on each shard.
EXPLAIN (COSTS off) SELECT count(*) FROM b1_timed WHERE created_at >= now() - interval '1 hour';
EXPLAIN (COSTS off) SELECT count(*) FROM b1_timed WHERE created_at::date = '2025-06-01';
EXPLAIN (COSTS off) SELECT count(*) FROM b1 WHERE snowflake_between(id, '2025-05-01Z', '2025-06-01Z', 'default');
EXPLAIN (COSTS off) SELECT count(*) FROM b1 WHERE snowflake_timestamp(id, 'default') >= '2025-05-01Z' AND snowflake_timestamp(id, 'default') < '2025-06-01Z';
EXPLAIN (COSTS off) SELECT * FROM b1_timed ORDER BY created_at DESC LIMIT 20;
EXPLAIN (COSTS off) SELECT * FROM b1 ORDER BY id DESC LIMIT 20;
EXPLAIN (COSTS off) SELECT min(created_at), max(created_at) FROM b1_timed;
EXPLAIN (COSTS off) SELECT d.node_id FROM b1, snowflake_decode(b1.id) AS d WHERE d.created_at < '2025-06-01Z';
-- Reading new rows, and deleting old ones.
EXPLAIN (COSTS off) SELECT id FROM b1 WHERE id > 0 AND id < 251829749817540608 ORDER BY id LIMIT 1000;
SELECT snowflake_set_id_boundary('b1', 'id', 0);
EXPLAIN (COSTS off) DELETE FROM b1 WHERE id >= snowflake_id_boundary('b1') AND id < snowflake_min_id('2025-06-01Z', 'default');

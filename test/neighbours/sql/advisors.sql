-- hypopg: a hypothetical index on the key gets the range, and gives the order.
\pset format unaligned
\pset footer off
CREATE TABLE unindexed (id bigint, note text);
INSERT INTO unindexed TABLE orders;
ANALYZE unindexed;
CREATE VIEW timed_unindexed AS SELECT u.*, snowflake_timestamp(u.id) AS created_at FROM unindexed AS u;
SELECT count(*) FROM hypopg_create_index('CREATE INDEX ON unindexed (id)');
EXPLAIN (COSTS off) SELECT note FROM timed_unindexed WHERE created_at >= timestamptz '2026-03-14 21:00+00' \g |sed 's/<[0-9]*>/<n>/'
EXPLAIN (COSTS off) SELECT note FROM timed_unindexed ORDER BY created_at DESC LIMIT 5 \g |sed 's/<[0-9]*>/<n>/'
SELECT count(*) FROM hypopg_reset();
-- One on the time stays one on the time.
SELECT count(*) FROM hypopg_create_index('CREATE INDEX ON unindexed (snowflake_timestamp(id, ''default''))');
EXPLAIN (COSTS off) SELECT note FROM unindexed ORDER BY snowflake_timestamp(id, 'default') DESC LIMIT 5 \g |sed 's/<[0-9]*>/<n>/'
SELECT count(*) FROM hypopg_reset();

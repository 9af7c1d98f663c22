-- Ranges of time on a key, and their bounds.
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SELECT snowflake_min_id('2026-11-20 08:00+00', 'default') AS min_id,
       snowflake_max_id('2026-11-20 08:00+00', 'default') AS max_id,
       snowflake_max_id_before('2026-11-20 08:00+00', 'default') AS max_id_before;
-- Before the epoch, and past the end.
SELECT snowflake_min_id('2000-01-01 00:00+00', 'default') AS min_id,
       snowflake_max_id('2000-01-01 00:00+00', 'default') AS max_id,
       snowflake_max_id_before('2000-01-01 00:00+00', 'default') AS max_id_before;
SELECT snowflake_min_id('-infinity', 'default') AS min_id,
       snowflake_max_id('infinity', 'default') AS max_id,
       snowflake_max_id_before('infinity', 'default') AS max_id_before;
SELECT snowflake_min_id('2200-01-01 00:00+00', 'default');
-- The planner sees a range on the key.
CREATE TABLE events (id bigint PRIMARY KEY, what text);
INSERT INTO events
SELECT snowflake_compose(timestamptz '2026-11-20 00:00+00' + n * interval '1 minute', 1, 0, 0, 'default'), 'minute ' || n
FROM generate_series(0, 24 * 60 - 1) AS n;
VACUUM ANALYZE events;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS off)
SELECT count(*) FROM events WHERE snowflake_between(id, '2026-11-20 08:00+00', '2026-11-20 09:00+00', 'default');
SELECT count(*) FROM events WHERE snowflake_between(id, '2026-11-20 08:00+00', '2026-11-20 09:00+00', 'default');
EXPLAIN (COSTS off)
SELECT count(*) FROM events WHERE snowflake_between(id, '2026-11-20 23:00+00', 'infinity', 'default');
SELECT count(*) FROM events WHERE snowflake_between(id, '2026-11-20 23:00+00', 'infinity', 'default');
SELECT count(*) FROM events WHERE snowflake_between(id, '-infinity', '2026-11-20 00:01+00', 'default');
-- By the server's own layout the bounds are computed once, when the query starts.
EXPLAIN (COSTS off)
SELECT what FROM events WHERE id < snowflake_min_id(now() - interval '90 days');
-- Bounds that are the wrong way round contain nothing.
SELECT count(*) FROM events WHERE snowflake_between(id, '2026-11-20 09:00+00', '2026-11-20 08:00+00', 'default');
-- A generated column cannot disagree with the ID.
CREATE TABLE payments (
    id bigint PRIMARY KEY,
    created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'default')) STORED
);
INSERT INTO payments VALUES (249431905924104192) RETURNING id, created_at;
DROP TABLE events, payments;

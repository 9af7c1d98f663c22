-- Partitions by time.
\pset format unaligned
\pset footer off
CREATE EXTENSION snowflake_partitions;
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), what text) PARTITION BY RANGE (id);
SELECT snowflake_partitions.ddl('events', '2026-11-20 00:00+00', '2026-11-23 00:00+00', '1 day');
SELECT snowflake_partitions.ddl('events', '2026-11-20 00:00+00', '2026-11-23 00:00+00', '1 day') \gexec
-- Those that exist are left out.
SELECT snowflake_partitions.ddl('events', '2026-11-20 00:00+00', '2026-11-24 00:00+00', '1 day');
SELECT c.relname, pg_get_expr(c.relpartbound, c.oid)
FROM pg_class AS c JOIN pg_inherits AS i ON i.inhrelid = c.oid
WHERE i.inhparent = 'events'::regclass ORDER BY c.relname;
INSERT INTO events VALUES (snowflake_compose('2026-11-21 12:00+00', 0, 0, 0), 'noon');
SELECT tableoid::regclass, snowflake_timestamp(id), what FROM events;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS off)
SELECT * FROM events WHERE snowflake_between(id, '2026-11-21 00:00+00', '2026-11-22 00:00+00', 'default');
-- Months are those of the calendar; a day has 25 hours where the clocks change.
CREATE TABLE months (id bigint) PARTITION BY RANGE (id);
SELECT snowflake_partitions.ddl('months', '2027-01-01 00:00+00', '2027-04-01 00:00+00', '1 month');
SET TimeZone = 'Europe/Berlin';
CREATE TABLE days (id bigint) PARTITION BY RANGE (id);
SELECT snowflake_partitions.ddl('days', '2026-10-24', '2026-10-27', '1 day') \gexec
SELECT c.relname, snowflake_timestamp(split_part(pg_get_expr(c.relpartbound, c.oid), '''', 2)::bigint) AS since
FROM pg_class AS c JOIN pg_inherits AS i ON i.inhrelid = c.oid
WHERE i.inhparent = 'days'::regclass ORDER BY c.relname;
-- In another time zone there would be a gap. In theirs, new partitions continue where these end.
SELECT snowflake_partitions.ddl('days', '2026-10-27 00:00+00', '2026-10-28 00:00+00', '1 day', 'UTC');
SELECT split_part(statement, ' ', 3) AS name
FROM snowflake_partitions.ddl('days', '2026-10-28', '2026-10-29', '1 day', 'Europe/Berlin') AS statement;
-- Rows of these days in the DEFAULT partition, and how they are moved.
SET TimeZone = 'UTC';
CREATE TABLE late (id bigint, what text) PARTITION BY RANGE (id);
CREATE TABLE late_default PARTITION OF late DEFAULT;
INSERT INTO late SELECT snowflake_compose('2026-11-21 12:00+00', 0, 0, i), 'noon' FROM generate_series(1, 3) AS i;
SELECT snowflake_partitions.ddl('late', '2026-11-21', '2026-11-23', '1 day');
BEGIN;
ALTER TABLE late DETACH PARTITION late_default;
SELECT snowflake_partitions.ddl('late', '2026-11-21', '2026-11-23', '1 day') \gexec
WITH moved AS (DELETE FROM late_default WHERE id >= snowflake_min_id('2026-11-21') AND id < snowflake_min_id('2026-11-23') RETURNING *)
INSERT INTO late SELECT * FROM moved;
ALTER TABLE late ATTACH PARTITION late_default DEFAULT;
COMMIT;
SELECT tableoid::regclass, count(*) FROM late GROUP BY 1;
DROP TABLE late;
SET TimeZone = 'Europe/Berlin';
-- What cannot be partitioned so.
CREATE TABLE plain (id bigint);
SELECT snowflake_partitions.ddl('plain', '2026-11-20', '2026-11-21', '1 day');
SELECT snowflake_partitions.ddl('days', '2026-11-20', '2026-11-21', '0 days');
SELECT snowflake_partitions.ddl('days', '2026-11-20', 'infinity', '1 day');
DROP TABLE events, months, days, plain;

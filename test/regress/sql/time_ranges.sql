-- Conditions on the time of an ID use the key's index, and so does ORDER BY.
\pset format unaligned
\pset tuples_only on
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE TABLE visits (id bigint PRIMARY KEY, what text);
INSERT INTO visits
SELECT snowflake_compose(timestamptz '2026-11-20 00:00+00' + n * interval '1 minute', 0, 0, 0), 'minute ' || n
FROM generate_series(0, 24 * 60 - 1) AS n;
VACUUM ANALYZE visits;
SET seq_page_cost = 1000;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
-- Versions name the results of sub-selects differently.
CREATE FUNCTION conditions_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $function$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
        IF line ~ 'Scan|Cond|Filter|Sort' THEN
            RETURN NEXT regexp_replace(ltrim(line, ' ->'), '\$\d+|\(InitPlan (?:expr_)?\d+\)\.col\d+', '(sub-select)', 'g');
        END IF;
    END LOOP;
END
$function$;
-- The five operators, on either side.
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) >= '2026-11-20 23:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) > '2026-11-20 23:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) < '2026-11-20 01:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) <= '2026-11-20 01:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) = '2026-11-20 12:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE '2026-11-20 23:00+00' <= snowflake_timestamp(id);
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) BETWEEN '2026-11-20 08:00+00' AND '2026-11-20 09:00+00';
SELECT count(*) FROM visits WHERE snowflake_timestamp(id) BETWEEN '2026-11-20 08:00+00' AND '2026-11-20 09:00+00';
SET snowflake.enable_time_ranges = off;
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) BETWEEN '2026-11-20 08:00+00' AND '2026-11-20 09:00+00';
SELECT count(*) FROM visits WHERE snowflake_timestamp(id) BETWEEN '2026-11-20 08:00+00' AND '2026-11-20 09:00+00';
RESET snowflake.enable_time_ranges;
-- By a layout that is named, with fewer bits, and one that is none.
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id, 'default') >= '2026-11-20 23:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id, 'js53') >= '2026-11-20 23:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id, 'nothing') >= '2026-11-20 23:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE (snowflake_decode(id)).created_at < '2026-11-20 01:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE (snowflake_decode(id)).node_id < 1;
-- Before the epoch, past the end, infinite.
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) >= '2000-01-01 00:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) >= '2200-01-01 00:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) < 'infinity';
-- What is not constant, but stays the same.
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) >= now() - interval '1 hour';
SELECT conditions_of($$SELECT * FROM visits WHERE snowflake_timestamp(id) >= (SELECT max(now()))$$);
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) >= clock_timestamp();
-- Dates and times without a time zone.
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) >= date '2026-11-20';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) < timestamp '2026-11-20 01:00';
-- By the day, and cut. The condition stays.
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id)::date = '2026-11-20';
SELECT count(*) FROM visits WHERE snowflake_timestamp(id)::date = '2026-11-20';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE date_trunc('hour', snowflake_timestamp(id)) = '2026-11-20 08:00+00';
SELECT count(*) FROM visits WHERE date_trunc('hour', snowflake_timestamp(id)) = '2026-11-20 08:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE date_trunc('fortnight', snowflake_timestamp(id)) = '2026-11-20 08:00+00';
-- As tools write it: seconds, another zone, bins, lists, OR.
EXPLAIN (COSTS off) SELECT * FROM visits WHERE extract(epoch FROM snowflake_timestamp(id)) >= 1795215600;
EXPLAIN (COSTS off) SELECT * FROM visits WHERE (snowflake_timestamp(id) AT TIME ZONE 'Europe/Berlin')::date = '2026-11-20';
SELECT count(*) FROM visits WHERE (snowflake_timestamp(id) AT TIME ZONE 'Europe/Berlin')::date = '2026-11-20';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE date_trunc('day', snowflake_timestamp(id) AT TIME ZONE 'Asia/Tokyo') AT TIME ZONE 'Asia/Tokyo' >= '2026-11-22 00:00+09';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) AT TIME ZONE 'Nowhere' >= '2026-11-20';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE date_bin('15 minutes', snowflake_timestamp(id), '2001-01-01 00:00+00') = '2026-11-20 08:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) IN ('2026-11-20 08:00+00', '2026-11-20 09:00+00');
SET enable_bitmapscan = on;
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) < '2026-11-20 00:10+00' OR snowflake_timestamp(id) >= '2026-11-20 23:50+00' AND what <> '';
SET enable_bitmapscan = off;
-- PostgreSQL 19 needs no function in FROM for it: decode_in_from.sql.
SELECT * FROM conditions_of($$SELECT * FROM visits, snowflake_decode(visits.id) AS d WHERE d.created_at >= '2026-11-20 23:00+00'$$) AS line
WHERE line !~ 'Function|created_at';
EXPLAIN (COSTS off) SELECT * FROM visits LEFT JOIN snowflake_decode(visits.id) AS d ON d.created_at >= '2026-11-20 23:00+00';
-- A parameter, in a plan for all its values.
PREPARE since (timestamptz) AS SELECT * FROM visits WHERE snowflake_timestamp(id) >= $1;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS off) EXECUTE since ('2026-11-20 23:00+00');
SET plan_cache_mode = force_custom_plan;
EXPLAIN (COSTS off) EXECUTE since ('2026-11-20 23:00+00');
RESET plan_cache_mode;
DEALLOCATE since;
-- Views.
CREATE VIEW dated AS SELECT id, snowflake_timestamp(id) AS created_at, what FROM visits;
CREATE VIEW dated_again AS SELECT created_at, what FROM dated;
CREATE VIEW recent WITH (security_barrier) AS SELECT * FROM dated WHERE created_at >= '2026-11-20 20:00+00';
EXPLAIN (COSTS off) SELECT * FROM dated_again WHERE created_at >= '2026-11-20 23:00+00';
EXPLAIN (COSTS off) SELECT * FROM recent;
EXPLAIN (COSTS off) SELECT * FROM recent WHERE created_at >= '2026-11-20 23:00+00';
EXPLAIN (COSTS off) UPDATE recent SET what = '' WHERE created_at >= '2026-11-20 23:00+00';
-- A policy.
CREATE ROLE visitor;
GRANT SELECT ON visits TO visitor;
ALTER TABLE visits ENABLE ROW LEVEL SECURITY;
CREATE POLICY evening ON visits USING (snowflake_timestamp(id) >= '2026-11-20 20:00+00');
SET ROLE visitor;
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id) < '2026-11-20 21:00+00';
SELECT count(*) FROM visits WHERE snowflake_timestamp(id) < '2026-11-20 21:00+00';
RESET ROLE;
ALTER TABLE visits DISABLE ROW LEVEL SECURITY;
DROP POLICY evening ON visits;
DROP OWNED BY visitor;
DROP ROLE visitor;
-- Joins: on the side that a condition restricts.
EXPLAIN (COSTS off) SELECT * FROM (VALUES (1)) AS one (n) JOIN visits ON snowflake_timestamp(id) >= '2026-11-20 23:00+00';
EXPLAIN (COSTS off) SELECT * FROM (VALUES (1), (2)) AS two (n) LEFT JOIN visits ON snowflake_timestamp(id) >= '2026-11-20 23:00+00';
EXPLAIN (COSTS off) SELECT * FROM visits LEFT JOIN (VALUES (1), (2)) AS two (n) ON snowflake_timestamp(id) >= '2026-11-20 23:00+00';
-- Statements that write.
EXPLAIN (COSTS off) UPDATE visits SET what = '' WHERE snowflake_timestamp(id) >= '2026-11-20 23:00+00';
EXPLAIN (COSTS off) DELETE FROM visits WHERE snowflake_timestamp(id) < '2026-11-20 01:00+00';
-- Partitions: 2026-11-20, 21 and 22. Those out of the range are left out while planning, also the
-- one that ends where it begins.
CREATE TABLE parted (id bigint PRIMARY KEY, what text) PARTITION BY RANGE (id);
CREATE TABLE parted_20 PARTITION OF parted FOR VALUES FROM (249322851532800000) TO (249685239398400000);
CREATE TABLE parted_21 PARTITION OF parted FOR VALUES FROM (249685239398400000) TO (250047627264000000);
CREATE TABLE parted_22 PARTITION OF parted FOR VALUES FROM (250047627264000000) TO (250410015129600000);
EXPLAIN (COSTS off) SELECT * FROM parted WHERE snowflake_timestamp(id) >= '2026-11-22 00:00+00';
EXPLAIN (COSTS off) SELECT * FROM parted WHERE snowflake_timestamp(id) >= '2026-11-21 00:00+00' AND snowflake_timestamp(id) < '2026-11-22 00:00+00';
EXPLAIN (COSTS off) SELECT * FROM parted ORDER BY snowflake_timestamp(id) DESC LIMIT 20;
-- ORDER BY.
EXPLAIN (COSTS off) SELECT * FROM dated ORDER BY created_at DESC NULLS FIRST LIMIT 2;
EXPLAIN (COSTS off) SELECT what FROM visits ORDER BY snowflake_timestamp(id) LIMIT 2;
SELECT what FROM visits ORDER BY snowflake_timestamp(id) LIMIT 2;
EXPLAIN (COSTS off) SELECT * FROM dated ORDER BY created_at DESC, id DESC LIMIT 2;
SELECT * FROM dated ORDER BY created_at DESC, id DESC LIMIT 2;
-- Not in another direction, by another key, and where rows with the same time belong together.
EXPLAIN (COSTS off) SELECT * FROM dated ORDER BY created_at DESC, id LIMIT 2;
EXPLAIN (COSTS off) SELECT * FROM dated ORDER BY created_at, what LIMIT 2;
EXPLAIN (COSTS off) SELECT DISTINCT created_at FROM dated ORDER BY created_at LIMIT 2;
EXPLAIN (COSTS off) SELECT created_at FROM dated ORDER BY created_at FETCH FIRST 2 ROWS WITH TIES;
SET snowflake.enable_time_ranges = off;
EXPLAIN (COSTS off) SELECT * FROM dated ORDER BY created_at DESC LIMIT 2;
RESET snowflake.enable_time_ranges;
-- The first and the last time, by a layout that is named.
SELECT conditions_of($$SELECT min(snowflake_timestamp(id, 'default')), max(snowflake_timestamp(id, 'default')) FROM visits$$);
SELECT min(snowflake_timestamp(id, 'default')), max(snowflake_timestamp(id, 'default')) FROM visits;
EXPLAIN (COSTS off) SELECT max(snowflake_timestamp(id)) FROM visits;
-- An index on the time keeps its use.
CREATE INDEX visits_time ON visits (snowflake_timestamp(id, 'default'));
EXPLAIN (COSTS off) SELECT * FROM visits WHERE snowflake_timestamp(id, 'default') >= '2026-11-20 23:00+00' ORDER BY snowflake_timestamp(id, 'default');
-- Numbers that are no IDs: a range does not reach them.
DROP INDEX visits_time;
INSERT INTO visits VALUES (-1, 'negative');
SELECT count(*) FROM visits WHERE snowflake_timestamp(id) < '2026-11-20 01:00+00';
SET snowflake.enable_time_ranges = off;
SELECT count(*) FROM visits WHERE snowflake_timestamp(id) < '2026-11-20 01:00+00';
RESET snowflake.enable_time_ranges;
DROP VIEW recent, dated_again, dated;
DROP TABLE visits, parted;
DROP FUNCTION conditions_of;
-- As many rows as without: outside an outer join, in zones whose clocks change by days while the session's do not, near zero.
CREATE FUNCTION counts(query text, OUT with_ranges bigint, OUT without bigint) LANGUAGE plpgsql AS $function$
BEGIN
    EXECUTE query INTO with_ranges;
    SET LOCAL snowflake.enable_time_ranges = off;
    EXECUTE query INTO without;
    SET LOCAL snowflake.enable_time_ranges = on;
END
$function$;
CREATE TABLE few (id bigint PRIMARY KEY); CREATE TABLE one (x int); INSERT INTO one VALUES (1);
INSERT INTO few VALUES (snowflake_min_id('2025-03-02 12:00+00')), (snowflake_min_id('2026-12-01 00:00+00'));
SELECT c.* FROM unnest(ARRAY[
    $$few AS t, one LEFT JOIN LATERAL (SELECT d.created_at FROM snowflake_decode(t.id) AS d WHERE d.created_at >= '2026-11-21 00:00+00') AS s ON true$$,
    $$few AS t, one LEFT JOIN (snowflake_decode(t.id) AS d JOIN one AS v ON d.created_at >= '2026-11-21 00:00+00') ON true$$,
    $$few AS t LEFT JOIN LATERAL (SELECT d.created_at FROM snowflake_decode(t.id) AS d WHERE d.created_at >= '2026-11-21 00:00+00') AS s ON true$$,
    $$few WHERE date_trunc('day', snowflake_timestamp(id), 'AAA-160BBB160,M3.2.0,M11.1.0') <= '2025-02-20 00:00+00'$$,
    $$few WHERE date_trunc('day', snowflake_timestamp(id) AT TIME ZONE 'AAA-160BBB160,M3.2.0,M11.1.0') AT TIME ZONE 'AAA-160BBB160,M3.2.0,M11.1.0' <= '2025-02-20 00:00+00'$$,
    $$few WHERE extract(epoch FROM snowflake_timestamp(id)) > 1e-400$$]) WITH ORDINALITY AS q (source, place)
CROSS JOIN LATERAL counts('SELECT count(*) FROM ' || q.source) AS c ORDER BY q.place;
CREATE TABLE sparse (id bigint); INSERT INTO sparse VALUES (NULL), (1), (2);
SELECT coalesce(id::text, 'NULL') AS shown FROM sparse ORDER BY snowflake_timestamp(id, (SELECT NULL::text)) NULLS FIRST, id;
DROP TABLE sparse;
-- No function is called that the user may not execute and has not written.
DELETE FROM few; CREATE ROLE regress_decoder; GRANT SELECT ON few TO regress_decoder;
REVOKE EXECUTE ON FUNCTION snowflake_timestamp(bigint, text) FROM PUBLIC;
SET ROLE regress_decoder;
SELECT count(*) FROM few WHERE (snowflake_decode(id, 'js53')).created_at >= '2026-01-01';
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_timestamp(bigint, text) TO PUBLIC;
DROP TABLE few, one; DROP FUNCTION counts; DROP ROLE regress_decoder;

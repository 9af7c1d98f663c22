-- Bounds of partitions: no gap, no overlap, each a step of the calendar of its time zone.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE TABLE t (id bigint) PARTITION BY RANGE (id);
CREATE TEMP TABLE bounds AS
SELECT z.zone, s.step::interval AS step, m.name, m.low, m.high, lead(m.low) OVER w AS next_low, row_number() OVER w AS number,
       snowflake_timestamp(m.low) AS since, snowflake_timestamp(m.high) AS until,
       first_value(snowflake_timestamp(m.low) AT TIME ZONE z.zone) OVER w AS local_first,
       snowflake_timestamp(m.high) AT TIME ZONE z.zone AS local_until,
       (snowflake_timestamp(m.high) - interval '1 microsecond') AT TIME ZONE z.zone AS local_last
FROM unnest(ARRAY['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'Asia/Beirut',
                  'America/Havana', 'Africa/Casablanca']) AS z (zone)
CROSS JOIN (VALUES ('1 hour', 40), ('6 hours', 60), ('1 day', 730), ('7 days', 730), ('1 month', 2000), ('3 months', 2000),
                   ('1 year', 4000)) AS s (step, days)
CROSS JOIN LATERAL snowflake_partitions_internal.missing(
    't', snowflake_partitions_internal.step_start('2026-03-01 12:00+00', s.step::interval, z.zone),
    timestamptz '2026-03-01 12:00+00' + s.days * interval '1 day', s.step::interval, z.zone) AS m
WINDOW w AS (PARTITION BY z.zone, s.step ORDER BY m.low);
-- A day, a month or a year begins with the first moment of its date, which is that many steps after the first
-- date: also where a day begins at 1 o'clock. An hour is an hour. Where clocks go back to midnight, as in Havana, the second
-- midnight begins a day, as PostgreSQL has it.
SELECT step, count(*) AS partitions, count(DISTINCT (zone, name)) AS names,
       count(*) FILTER (WHERE low >= high) AS empty,
       count(*) FILTER (WHERE high < next_low) AS gaps,
       count(*) FILTER (WHERE high > next_low) AS overlaps,
       count(*) FILTER (WHERE snowflake_timestamp(high - 1) >= until) AS early,
       count(*) FILTER (WHERE CASE WHEN step < interval '1 day' THEN until - since <> step
           ELSE local_until::date <> (local_first::date + number * step)::date OR local_last::date >= local_until::date END
           AND zone <> 'America/Havana') AS off_calendar
FROM bounds GROUP BY step ORDER BY step;
-- Days of 23 and 25 hours, and where the clocks change by half an hour.
SELECT zone, min(until - since) AS shortest, max(until - since) AS longest, count(*) FILTER (WHERE until - since <> interval '24 hours') AS others
FROM bounds WHERE step = interval '1 day' AND zone IN ('UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu')
GROUP BY zone ORDER BY zone;
-- No step begins after the time that it contains, also in an hour that is repeated at midnight.
SELECT count(*) AS times, count(*) FILTER (WHERE b.since > t.at) AS later
FROM generate_series(timestamptz '2026-10-31 00:00+00', '2026-11-03 00:00+00', '30 minutes') AS t (at)
CROSS JOIN unnest(ARRAY['1 hour', '1 day', '7 days', '1 month', '1 year']) AS s (step)
CROSS JOIN LATERAL snowflake_partitions_internal.step_start(t.at, s.step::interval, 'America/Havana') AS b (since);
-- Ends of months: each is counted from the first one.
SELECT name, since, until FROM snowflake_partitions_internal.missing('t', '2027-12-31 00:00+00', '2028-05-01 00:00+00', '1 month', 'UTC') AS m,
    snowflake_timestamp(m.low) AS since, snowflake_timestamp(m.high) AS until;
-- The same bounds in IDs of other layouts: the first ID of a moment, and none of an earlier one. The tick of some is longer than the
-- step of a calendar is precise, but all begin at a full second.
SELECT l.name AS layout, count(*) AS bounds,
       count(*) FILTER (WHERE snowflake_timestamp(i.low, l.name) <> b.since) AS other_times,
       count(*) FILTER (WHERE snowflake_timestamp(i.low - 1, l.name) >= b.since) AS early,
       count(*) FILTER (WHERE i.low >= i.high) AS empty
FROM bounds AS b
CROSS JOIN unnest(ARRAY['default', 'twitter', 'instagram', 'sonyflake', 'mastodon', 'ipv4', 'js53']) AS l (name)
CROSS JOIN LATERAL (SELECT snowflake_min_id(b.since, l.name) AS low, snowflake_min_id(b.until, l.name) AS high) AS i
WHERE b.step >= interval '1 day' AND b.until < '2033-01-01 00:00+00'
GROUP BY l.name ORDER BY l.name COLLATE "C";
-- A call a day creates what one call creates.
SELECT snowflake_partitions.configure('t', '1 day', 'America/New_York', ahead => '1 day');
SET client_min_messages = warning;
DO $$
BEGIN
    FOR night IN 0 .. 44 LOOP
        IF night % 7 <> 3 THEN
            CALL snowflake_partitions_internal.maintain('t', '2026-10-15 04:10+00'::timestamptz + night * interval '1 day', 1, 0);
        END IF;
    END LOOP;
END
$$;
RESET client_min_messages;
DELETE FROM bounds;
INSERT INTO bounds (name, low, high)
SELECT relation::name, low, high FROM snowflake_partitions_internal.existing('t');
SELECT count(*) AS nightly, min(snowflake_timestamp(low)) AS since, max(snowflake_timestamp(high)) AS until FROM bounds;
CREATE TABLE at_once (LIKE t) PARTITION BY RANGE (id);
SELECT count(*) AS at_once, count(*) FILTER (WHERE b.name = replace(m.name, 'at_once', 't')) AS same
FROM snowflake_partitions_internal.missing('at_once', '2026-10-15 04:00+00', '2026-11-29 05:00+00', '1 day', 'America/New_York') AS m
LEFT JOIN bounds AS b USING (low, high);
SELECT snowflake_partitions.forget('t');
DROP TABLE t, at_once, bounds;

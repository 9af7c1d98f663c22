-- Ninety nights at given times in the past, over both changes of the clocks: nights missed, rows in DEFAULT, and settings that change.
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SET client_min_messages = warning;
CREATE TABLE autumn (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE autumn_default PARTITION OF autumn DEFAULT;
CREATE TABLE spring (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE VIEW present AS SELECT 'autumn'::regclass AS parent, id FROM autumn UNION ALL SELECT 'spring', id FROM spring;
CREATE TABLE written (parent regclass, id bigint, PRIMARY KEY (parent, id));
CREATE TABLE nights (parent regclass, at timestamptz, is_called boolean, in_default bigint, rows_gone bigint, gone_early bigint, late bigint, gaps bigint);
CREATE PROCEDURE night(target regclass, at timestamptz, keep interval, is_called boolean) LANGUAGE plpgsql AS $$
DECLARE
    defaulted bigint;
BEGIN
    INSERT INTO written SELECT target, snowflake_compose(h, 1, 0, 0) FROM generate_series(at - interval '23 hours', at, '1 hour') AS h;
    EXECUTE format('INSERT INTO %s SELECT snowflake_compose(h, 1, 0, 0) FROM generate_series($1 - interval ''23 hours'', $1, ''1 hour'') AS h', target)
        USING at;
    SELECT count(*) INTO defaulted FROM autumn_default WHERE target = 'autumn'::regclass;
    IF is_called THEN
        CALL snowflake_partitions_internal.maintain(target, at, 1, 0);
    END IF;
    WITH gone AS (
        DELETE FROM written AS w
        WHERE w.parent = target AND NOT EXISTS (SELECT FROM present AS p WHERE p.parent = target AND p.id = w.id)
        RETURNING snowflake_timestamp(w.id) AS at
    ), parts AS (
        SELECT s.since, s.until, lead(s.since) OVER (ORDER BY s.since) AS next
        FROM snowflake_partitions_internal.shown(night.at) AS s
        WHERE s.parent = target AND s.relation IS NOT NULL AND s.since IS NOT NULL
    )
    INSERT INTO nights
    SELECT target, night.at, is_called, defaulted - (SELECT count(*) FROM autumn_default WHERE target = 'autumn'::regclass),
           (SELECT count(*) FROM gone), (SELECT count(*) FROM gone AS g WHERE (g.at > night.at - keep) IS NOT FALSE),
           (SELECT count(*) FROM parts AS p WHERE is_called AND p.until + keep <= night.at), (SELECT count(*) FROM parts AS p WHERE p.until <> p.next);
END
$$;
DO $$
DECLARE
    keep interval := '10 days';
BEGIN
    PERFORM snowflake_partitions.configure('autumn', '1 day', 'Europe/Berlin', '2 days', keep),
            snowflake_partitions.configure('spring', '1 day', 'America/New_York', '3 days', keep);
    CALL snowflake_partitions_internal.maintain('autumn', '2026-08-19 03:00+00', 1, 0);
    CALL snowflake_partitions_internal.maintain('spring', '2026-02-19 06:00+00', 1, 0);
    FOR n IN 0 .. 89 LOOP
        -- Shorter than a step, for ever, and shorter than before.
        IF n IN (30, 50, 70) THEN
            keep := CASE n WHEN 30 THEN interval '1 hour' WHEN 70 THEN interval '5 days' END;
            PERFORM snowflake_partitions.configure('autumn', '1 day', 'Europe/Berlin', '2 days', keep),
                    snowflake_partitions.configure('spring', '1 day', 'America/New_York', '3 days', keep);
        END IF;
        -- Without DEFAULT, a night without a partition would be an error.
        CALL night('autumn', '2026-08-20 03:00+00'::timestamptz + n * interval '1 day', keep, n % 13 NOT BETWEEN 4 AND 9);
        CALL night('spring', '2026-02-20 06:00+00'::timestamptz + n * interval '1 day', keep, n % 5 NOT IN (2, 3));
    END LOOP;
END
$$;
SELECT n.parent, count(*) AS nights, count(*) FILTER (WHERE NOT is_called) AS missed, sum(in_default) AS moved_out_of_default, sum(rows_gone) AS rows_dropped,
       sum(gone_early) AS rows_lost, sum(late) AS partitions_late, sum(gaps) AS gaps,
       (SELECT count(*) FROM present AS p WHERE p.parent = n.parent) AS rows_left
FROM nights AS n GROUP BY n.parent ORDER BY n.parent;
SELECT snowflake_partitions.forget(t) FROM unnest('{autumn,spring}'::regclass[]) AS t (t);
DROP TABLE autumn, spring, written, nights CASCADE;
DROP PROCEDURE night;
RESET client_min_messages;

-- Ranges of time on a key, and their bounds.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC'; SET DateStyle = 'ISO';
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
SET enable_seqscan = off; SET enable_bitmapscan = off;
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
-- Whatever the range is written as, the key's index has all of it: no filter is left. A ? is a parameter or a sub-select.
CREATE FUNCTION pg_temp.plan(query text) RETURNS text LANGUAGE plpgsql AS $function$
DECLARE
    line text;
    lines text[];
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
        IF line ~ 'Scan|Cond|Filter|Removed|Gather' THEN
            lines := lines || regexp_replace(ltrim(line, ' ->'), '\$\d+|\(InitPlan (?:expr_)?\d+\)\.col\d+', '?', 'g');
        END IF;
    END LOOP;
    RETURN array_to_string(lines, ' / ');
END
$function$;
CREATE VIEW recent AS SELECT * FROM events WHERE snowflake_between(id, now() - interval '1 hour', now());
CREATE TABLE windows AS SELECT timestamptz '2026-11-20 08:00+00' AS since, timestamptz '2026-11-20 09:00+00' AS until;
PREPARE by_server (timestamptz, timestamptz) AS SELECT count(*) FROM events WHERE snowflake_between(id, $1, $2);
PREPARE by_layout (timestamptz, timestamptz, text) AS SELECT count(*) FROM events WHERE snowflake_between(id, $1, $2, $3);
PREPARE by_bound (timestamptz) AS SELECT count(*) FROM events WHERE id >= snowflake_min_id($1);
\pset tuples_only on
SELECT pg_temp.plan('SELECT what FROM ' || query) FROM unnest(ARRAY[$$events WHERE snowflake_between(id, now() - interval '1 hour', now())$$,
    $$events WHERE snowflake_between(id, now() - interval '1 hour', now(), 'default')$$, $$events WHERE snowflake_between(id, '2026-11-20 08:00+00', '2026-11-20 09:00+00')$$,
    $$events WHERE id >= snowflake_min_id('2026-11-20 08:00+00', 'default')$$, $$events WHERE id >= snowflake_min_id('2026-11-20 08:00+00') AND id <= snowflake_max_id('2026-11-20 09:00+00')$$,
    $$recent$$, $$windows AS w JOIN events AS e ON snowflake_between(e.id, w.since, w.until)$$,
    $$events WHERE snowflake_between(id, (SELECT since FROM windows), (SELECT until FROM windows))$$]) AS query;
SELECT pg_temp.plan($$DELETE FROM events WHERE snowflake_between(id, '-infinity', now())$$);
SELECT set_config('plan_cache_mode', 'force_' || mode || '_plan', false), pg_temp.plan('EXECUTE ' || call) FROM unnest('{custom,generic}'::text[]) AS mode,
    unnest(ARRAY[$$by_server('2026-11-20 08:00+00', '2026-11-20 09:00+00')$$, $$by_layout('2026-11-20 08:00+00', '2026-11-20 09:00+00', 'default')$$, $$by_bound('2026-11-20 08:00+00')$$]) AS call;
EXECUTE by_server('2026-11-20 08:00+00', '2026-11-20 09:00+00');
EXECUTE by_layout('2026-11-20 08:00+00', '2026-11-20 09:00+00', 'default');
RESET plan_cache_mode;
-- Past a search path with traps.
CREATE SCHEMA trap;
CREATE FUNCTION trap.snowflake_max_id_before(timestamptz) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 0::bigint';
CREATE FUNCTION trap.never(bigint, bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR trap.<= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.never);
SET search_path = trap, pg_catalog, public;
SELECT count(*) FROM events WHERE snowflake_between(id, '2026-11-20 08:00+00', '2026-11-20 09:00+00');
RESET search_path;
-- Estimates are within half and twice the rows.
CREATE FUNCTION pg_temp.estimated(query text) RETURNS numeric LANGUAGE plpgsql AS $$ DECLARE plan json; BEGIN EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan; RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows'; END $$;
SELECT first, length, pg_temp.estimated(format($$SELECT * FROM events WHERE snowflake_between(id, timestamptz '2026-11-20 00:00+00' + %L, timestamptz '2026-11-20 00:00+00' + %L)$$, first, first + length))
       / (extract(epoch FROM length) / 60) BETWEEN 0.5 AND 2 AS is_near
FROM (VALUES (interval '0', interval '1 day'), ('3 hours', '10 minutes'), ('11 hours', '1 hour'), ('16 hours', '8 hours'), ('23 hours', '1 hour')) AS r (first, length);
-- Partitions out of the range are left out while planning, with a layout, or at run time.
CREATE TABLE parted (id bigint PRIMARY KEY, what text) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE parted_%s PARTITION OF parted FOR VALUES FROM (%s) TO (%s)', to_char(day, 'MMDD'), snowflake_min_id(day), snowflake_min_id(day + interval '1 day'))
FROM generate_series(timestamptz '2026-05-08+00', '2026-05-13+00', '1 day') AS day \gexec
SELECT pg_temp.plan(statement || ' WHERE ' || range) FROM unnest('{SELECT * FROM parted,DELETE FROM parted}'::text[]) AS statement, unnest(ARRAY[
    $$snowflake_between(id, '2026-05-10 06:00+00', '2026-05-11 18:00+00', 'default')$$, $$id >= snowflake_min_id('2026-05-10 06:00+00', 'default') AND id <= snowflake_max_id('2026-05-11 18:00+00', 'default')$$,
    $$snowflake_between(id, '2026-05-10+00', '2026-05-11+00', 'default')$$]) AS range;
SELECT pg_temp.plan('SELECT * FROM parted WHERE ' || range) FROM unnest(ARRAY[$$snowflake_between(id, '2026-05-10 06:00+00', '2026-05-11 18:00+00')$$,
    $$id >= snowflake_min_id('2026-05-10 06:00+00') AND id <= snowflake_max_id('2026-05-11 18:00+00')$$, $$snowflake_between(id, '2026-05-10+00', '2026-05-11+00')$$]) AS range;
PREPARE days (timestamptz, timestamptz, text) AS SELECT FROM parted WHERE snowflake_between(id, $1, $2, $3);
SELECT set_config('plan_cache_mode', 'force_' || mode || '_plan', false), pg_temp.plan($$EXECUTE days ('2026-05-10 06:00+00', '2026-05-11 18:00+00', 'default')$$) FROM unnest('{custom,generic}'::text[]) AS mode;
RESET plan_cache_mode;
DEALLOCATE ALL;
\pset tuples_only off
SET client_min_messages = warning; DROP SCHEMA trap CASCADE; DROP VIEW recent; DROP TABLE windows, parted;
-- A generated column cannot disagree with the ID.
CREATE TABLE payments (
    id bigint PRIMARY KEY,
    created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'default')) STORED
);
INSERT INTO payments VALUES (249431905924104192) RETURNING id, created_at;
DROP TABLE events, payments;

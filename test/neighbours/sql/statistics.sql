-- pg_stat_statements: a statement is the same with and without ranges.
\pset format unaligned
\pset footer off
SELECT pg_stat_statements_reset() IS NOT NULL AS reset;
SET snowflake.enable_time_ranges = on;
SELECT count(*) FROM timed WHERE created_at >= timestamptz '2026-03-14 00:00+00';
SET snowflake.enable_time_ranges = off;
SELECT count(*) FROM timed WHERE created_at >= timestamptz '2026-03-14 00:00+00';
RESET snowflake.enable_time_ranges;
SELECT count(DISTINCT queryid) AS statements, sum(calls) AS calls, sum(rows) AS rows FROM pg_stat_statements WHERE query LIKE '%FROM timed WHERE%';
-- Nor is there one that nobody wrote.
COPY orders (note) FROM stdin;
copied
copied
\.
INSERT INTO orders (note) VALUES ('inserted');
SELECT query, calls, rows FROM pg_stat_statements WHERE query ~ 'orders' AND query !~ 'pg_stat_statements' ORDER BY query COLLATE "C";
-- pg_qualstats: the condition on the key, from which an index is advised.
SELECT pg_qualstats_reset() IS NOT NULL AS reset;
SET pg_qualstats.sample_rate = 1;
SELECT count(*) FROM timed WHERE created_at >= timestamptz '2026-03-14 00:00+00' AND note <> 'n1';
SET pg_qualstats.sample_rate = 0;
SELECT a.attname, q.opno::regoper AS operator, q.eval_type, q.constvalue
FROM pg_qualstats() AS q JOIN pg_attribute AS a ON a.attrelid = q.lrelid AND a.attnum = q.lattnum
WHERE q.lrelid = 'orders'::regclass ORDER BY 1, 2;
-- pg_stat_kcache, pg_wait_sampling: they count.
SELECT count(DISTINCT queryid) AS statements FROM pg_stat_kcache() AS k JOIN pg_stat_statements AS s USING (queryid) WHERE s.query LIKE '%FROM timed WHERE%';
SELECT count(*) > 0 AS samples FROM pg_wait_sampling_profile;

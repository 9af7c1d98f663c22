-- IDs that their makers published; their sources are in
-- crates/snowflake-id/tests/data/vectors.tsv.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE TABLE published (id bigint, layout text, created_at timestamptz, node_id int, sequence int);
INSERT INTO published VALUES
    (175928847299117063, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2015-01-01T00:00:00Z', '2016-04-30T11:18:25.796Z', 32, 7),
    (199743874640379904, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2015-01-01T00:00:00Z', '2016-07-05T04:30:50.776Z', 0, 0),
    (1402390388030832792, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2015-01-01T00:00:00Z', '2025-08-05T20:38:43.660Z', 0, 152),
    (1407771600643686503, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2015-01-01T00:00:00Z', '2025-08-20T17:01:44.725Z', 0, 103),
    (105484726235607040, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2015-01-01T00:00:00Z', '2015-10-19T01:58:38.546Z', 11, 0),
    (756403198394237027, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2015-01-01T00:00:00Z', '2020-09-18T06:36:15.789Z', 32, 99),
    (1541815603606036480, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z', '2022-06-28T16:07:40.105Z', 378, 0),
    (548200551737860096, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z', '2014-12-25T19:36:11.265Z', 34, 0),
    (616333141884674048, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z', '2015-07-01T19:50:46.598Z', 354, 0),
    (1050118621198921728, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z', '2018-10-10T20:19:24.211Z', 347, 0),
    (1426981498778550272, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z', '2021-08-15T18:57:56.000Z', 0, 0),
    (1426860702823350272, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z', '2021-08-15T10:57:56.000Z', 0, 0),
    (3971046231244935168, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2020-01-01T00:00:00Z', '2050-01-01T00:00:00.000Z', 33, 0),
    (3971046231244804096, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2020-01-01T00:00:00Z', '2050-01-01T00:00:00.000Z', 1, 0),
    (3411968, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2020-01-01T00:00:00Z', '2020-01-01T00:00:00.000Z', 833, 0),
    (2384288897814875714, 'timestamp:40 node:13 sequence:10 tick:1ms epoch:2011-08-24T21:07:01.721Z', '2020-08-26T13:43:27.313Z', 2675, 578),
    (11637205501278089, 'timestamp:40 node:13 sequence:10 tick:1ms epoch:2011-01-01T00:00:00Z', '2011-01-17T01:21:03.000Z', 1341, 905),
    (180363646902239241, 'timestamp:29 node:21 sequence:13 tick:1s epoch:2016-09-19T16:00:00Z', '2017-01-19T04:15:46.000Z', 4, 9),
    (1278735254782615552, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z', '2020-07-02T17:00:17.149Z', 354, 0),
    (1278735254799392768, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z', '2020-07-02T17:00:17.153Z', 354, 0),
    (257530689124044800, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2016-09-25T11:28:08Z', '2018-09-06T03:03:08.976Z', 1, 0),
    (9223372036854775807, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:1970-01-01T00:00:00Z', '2039-09-07T15:47:35.551Z', 1023, 4095),
    (0, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000Z', 0, 0),
    (3125927076831231, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2020-07-31T16:00:00Z', '2020-08-09T07:01:19.092Z', 33, 4095),
    (17640439786371072, 'timestamp:28 node:24 sequence:11 tick:1s epoch:2021-09-16T08:14:08Z', '2021-09-22T06:50:52.000Z', 6186175, 0);
SELECT p.id, d.*
FROM published AS p CROSS JOIN LATERAL snowflake_decode(p.id, p.layout) AS d
ORDER BY p.id;
SELECT count(*) AS published,
       count(*) FILTER (WHERE snowflake_timestamp(id, layout) <> created_at) AS other_times,
       count(*) FILTER (WHERE snowflake_node_id(id, layout) <> node_id) AS other_nodes,
       count(*) FILTER (WHERE snowflake_sequence(id, layout) <> sequence) AS other_sequences,
       count(*) FILTER (WHERE snowflake_compose(created_at, node_id, 0, sequence, layout) <> id) AS composed_otherwise
FROM published;
-- By the name of a preset.
SELECT snowflake_timestamp(1541815603606036480, 'twitter'), snowflake_timestamp(175928847299117063, 'discord'),
       snowflake_timestamp(2384288897814875714, 'instagram');
SELECT snowflake_node_id(1541815603606036480, 'twitter'), snowflake_backend_id(1541815603606036480, 'twitter');
-- Every bit.
SELECT snowflake_explain(1541815603606036480, 'twitter');
SELECT snowflake_explain(249431905924104192, 'default');
SELECT snowflake_explain(17640439786371072, 'timestamp:28 node:24 sequence:11 tick:1s epoch:2021-09-16T08:14:08Z');
-- The server's own layout is the default one here.
SELECT snowflake_decode(249431905924104192) = snowflake_decode(249431905924104192, 'default') AS same;
-- With a layout an expression can be indexed; without, a restart can change it.
CREATE INDEX by_time ON published (snowflake_timestamp(id, 'default'));
-- PostgreSQL 19 shows its place, too.
\set VERBOSITY sqlstate
CREATE INDEX by_node ON published (snowflake_node_id(id));
\set VERBOSITY default
-- Settings of a session change how a time is printed, and nothing else.
CREATE FUNCTION pg_temp.digest() RETURNS text LANGUAGE sql AS $$
    SELECT md5(string_agg(concat_ws(' ', extract(epoch FROM snowflake_timestamp(id, layout)), snowflake_to_text(id), snowflake_to_text(id, 'base62'),
                                    snowflake_from_text(snowflake_to_text(id)), snowflake_min_id(created_at, layout), snowflake_max_id_before(created_at, layout),
                                    snowflake_compose(created_at, node_id, 0, sequence, layout)), ',' ORDER BY id))
           || (SELECT md5(string_agg(concat_ws(' ', l.name, l.layout, extract(epoch FROM l.expires_at)), ',')) FROM snowflake_layouts AS l) FROM published $$;
SELECT pg_temp.digest() AS digest \gset
SET TimeZone = 'Europe/Berlin'; SET DateStyle = 'German'; SET IntervalStyle = 'iso_8601'; SET extra_float_digits = -10; SET lc_numeric = 'C.UTF-8';
SELECT pg_temp.digest() = :'digest' AS same;
SELECT snowflake_explain(1541815603606036480, 'twitter');
SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; RESET IntervalStyle; RESET extra_float_digits; RESET lc_numeric;
-- Nothing for nothing, and what is no ID of a layout.
SELECT snowflake_timestamp(NULL) IS NULL AS is_null;
SELECT snowflake_timestamp(-1, 'default');
SELECT snowflake_timestamp(9223372036854775807, 'js53');
DROP TABLE published;

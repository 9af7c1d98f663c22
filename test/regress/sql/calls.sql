-- What functions answer at their ends, a line a call: the result, or SQLSTATE, message, detail and hint.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC'; SET DateStyle = 'ISO';
CREATE FUNCTION pg_temp.answer(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
    detail text;
    hint text;
BEGIN
    EXECUTE format('SELECT (snowflake_%s)::text', call) INTO result;
    RETURN coalesce(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(' | ', SQLSTATE, SQLERRM, nullif(detail, ''), nullif(left(hint, 60), ''));
END $$;
-- Calls are separated by semicolons.
CREATE FUNCTION pg_temp.answers(calls text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT format('%s: %s', call, pg_temp.answer(call)) FROM regexp_split_to_table(calls, '\s*;\s*') WITH ORDINALITY AS c (call, n) ORDER BY n $$;
\pset tuples_only on
-- An ID, NULL, and what is no ID of a layout, by each function: results and SQLSTATEs.
SELECT string_agg(split_part(pg_temp.answer(replace(call, 'ID', id)), ' |', 1), ' ' ORDER BY n)
FROM unnest('{1541815603606036480,"NULL",-1,9007199254740992}'::text[]) WITH ORDINALITY AS i (id, m),
    regexp_split_to_table($$decode(ID); decode(ID, 'js53'); timestamp(ID); timestamp(ID, 'js53'); node_id(ID); node_id(ID, 'js53'); backend_id(ID);
        backend_id(ID, 'js53'); sequence(ID); sequence(ID, 'js53'); to_text(ID); to_text(ID, 'base62'); explain(ID) IS NULL; explain(ID, 'js53') IS NULL;
        between(ID, '2025-01-01', '9999-01-01', 'js53'); between(ID, '2025-01-01', 'infinity')$$, '\s*;\s*') WITH ORDINALITY AS c (call, n)
GROUP BY id, m ORDER BY m;
-- No layout, and layouts that are none.
SELECT pg_temp.answers($$decode(1, NULL); decode(NULL, 'nonsense'); decode(1, ''); decode(1, 'Default'); decode(1, '%s%n'); decode(1, U&'\+01f600');
    decode(9223372036854775807, 'timestamp:60 sequence:3 tick:1s')$$);
SELECT left(pg_temp.answer($$decode(1, repeat('x', 1000000))$$), 40);
SELECT string_agg(left(pg_temp.answer(replace(call, 'LAYOUT', quote_literal(U&'d\00E9faut'))), 5), ' ')
FROM regexp_split_to_table($$decode(1, LAYOUT); timestamp(1, LAYOUT); node_id(1, LAYOUT); backend_id(1, LAYOUT); sequence(1, LAYOUT); explain(1, LAYOUT);
    compose('2026-01-01', 0, 0, 0, LAYOUT); min_id('2026-01-01', LAYOUT); max_id('2026-01-01', LAYOUT); max_id_before('2026-01-01', LAYOUT);
    between(1, now(), now(), LAYOUT)$$, '\s*;\s*') AS call;
-- Each field has its own value. The layout of a call is that of its row.
SELECT pg_temp.answers($$decode(4337668); decode(4198594, 'timestamp:41 sequence:12 backend:4 node:6'); decode(9223372036854775807); decode(65541, 'mastodon');
    decode(9007199254740991, 'js53'); decode(4198594, 'timestamp:41 sequence:12 backend:4 node:6 epoch:1969-07-20T20:17:40');
    decode(9223372036854775807, 'clickhouse'); explain(123456789012345, 'js53')$$);
SELECT name, snowflake_node_id(123456789012345, layout), snowflake_node_id(123456789012345, name), snowflake_node_id(123456789012345, 'twitter'),
       snowflake_max_id('infinity', name) = snowflake_max_id('infinity', layout) AND split_part(snowflake_explain(0, name), E'\nlayout ', 2) = layout AS same
FROM snowflake_layouts ORDER BY name COLLATE "C";
-- Layouts that are stored compressed, and out of line.
CREATE TEMP TABLE layouts (layout text);
INSERT INTO layouts SELECT 'timestamp:41' || repeat(' ', length) || 'node:6 backend:4 sequence:12' FROM unnest('{1,3000,1000000}'::int[]) AS length;
ALTER TABLE layouts ALTER layout SET STORAGE EXTERNAL; INSERT INTO layouts SELECT 'timestamp:41' || repeat(' ', 100000) || 'node:6 backend:4 sequence:12';
SELECT octet_length(layout), pg_column_size(layout) < octet_length(layout) AS compressed, snowflake_decode(id, layout) = snowflake_decode(id) AS decode,
       snowflake_explain(id, layout) = snowflake_explain(id) AS explain, snowflake_compose('2026-11-20 07:13:20.593+00', 1, 4, 0, layout) = id AS compose
FROM layouts, (VALUES (249431905924104192)) AS i (id);
-- Fields, times and IDs that do not fit.
SELECT pg_temp.answers($$compose(now(), -1, 0, 0); compose(now(), 2147483647, 0, 0); compose(now(), 0, -2147483648, 0); compose(now(), 1, 0, 0, 'mastodon');
    compose('2024-12-31 23:59:59.999999+00', 0, 0, 0); compose('infinity', 0, 0, 0, 'js53')$$);
SELECT pg_temp.answers($$min_id('2024-12-31 23:59:59+00'); min_id('2025-01-01 00:00+00'); min_id('2025-01-01 00:00:00.000001+00'); min_id('2094-09-07 15:47:35.551+00');
    min_id('2094-09-07 15:47:35.551001+00'); min_id('infinity'); min_id('2024-11-20 13:24:16+00', 'uid-generator'); max_id('-infinity');
    max_id('2025-01-01 00:00:00.000999+00'); max_id('2500-01-01'); max_id('infinity', 'js53'); max_id_before('-infinity'); max_id_before('2025-01-01 00:00+00');
    max_id_before('2025-01-01 00:00:00.000001+00'); max_id_before('2500-01-01', 'js53'); max_id_before('infinity', 'js53')$$);
SELECT id, since, until, snowflake_between(id, since::timestamptz, until::timestamptz), snowflake_between(id, since::timestamptz, until::timestamptz, 'default')
FROM (VALUES (132271570944000000, '2026-01-01', '2026-01-02'), (132633958809599999, '2026-01-01', '2026-01-02'), (132633958809600000, '2026-01-01', '2026-01-02'),
    (132271570943999999, '2026-01-01', '2026-01-02'), (9223372036854775807, '2094-09-07 15:47:35.551', '9999-01-01'), (0, '-infinity', 'infinity'),
    (0, '2025-01-01', '2025-01-01'), (-5, '2025-01-01', '2026-01-01'), (1, '-infinity', '-infinity'), (1, '-infinity', NULL), (NULL, '-infinity', 'infinity'))
    AS b (id, since, until);
SELECT pg_temp.answers($$between(0, 'infinity', 'infinity'); between(9223372036854775807, '2094-09-07 15:47:35.552+00', 'infinity')$$);
-- Texts.
SELECT pg_temp.answers($$from_text('06XHDF0910U00'); from_text('0IQOqa0An0U'); from_text('0IP86iEVn-A', 'base62'); from_text(E'000000000000\n');
    from_text('AzL8n0Y58m8', 'base62'); from_text('8000000000000'); from_text('0000000000000', 'Base32'); to_text(1, ''); to_text(1, NULL); from_text(NULL);
    from_text('1', NULL); from_text(U&'00\00E9')$$);
-- What a session draws, and what it knows of it.
SELECT pg_temp.answers($$nextvals(NULL); nextvals(-2147483648); accept_clock(clock_timestamp()); start_after(-1)$$);
SELECT left(pg_temp.answer(format('accept_clock(%L)', clock)), 51) FROM unnest('{2001-01-01,-infinity,infinity}'::text[]) AS clock;
CREATE TEMP TABLE drawn AS SELECT n, CASE n % 2 WHEN 0 THEN snowflake_id() ELSE snowflake_nextval() END AS id FROM generate_series(1, 10000) AS n;
SELECT max(id) = snowflake_currval() AS is_last FROM drawn;
INSERT INTO drawn SELECT 10000 + n, id FROM snowflake_nextvals(100000) WITH ORDINALITY AS i (id, n);
SELECT count(*), count(DISTINCT id), bool_and(id > before) AS ascending, bool_and(id < last_value) AS below_the_mark
FROM (SELECT id, lag(id, 1, 0::bigint) OVER (ORDER BY n) AS before FROM drawn) AS d, snowflake_internal.mark;
SELECT max(id) = snowflake_currval() AS is_last FROM (SELECT snowflake_nextvals(1000) AS id LIMIT 3) AS t;
SELECT d.node_id = current_setting('snowflake.node_id')::int AS own_node, d.backend_id IN (0, pg_backend_pid() % 16) AS own_slot,
       abs(extract(epoch FROM d.created_at - clock_timestamp())) < 60 AS is_now
FROM snowflake_decode(snowflake_nextval()) AS d;
SELECT count(*) AS read_otherwise FROM drawn, snowflake_decode(id) AS d
WHERE (d.created_at, d.node_id, d.backend_id, d.sequence) IS DISTINCT FROM (snowflake_timestamp(id), snowflake_node_id(id), snowflake_backend_id(id), snowflake_sequence(id))
   OR snowflake_decode(id, 'default') IS DISTINCT FROM d OR snowflake_compose(d.created_at, d.node_id, d.backend_id, d.sequence) <> id;
SELECT snowflake_nextval() + (300::bigint << 22) AS ahead \gset
SELECT snowflake_start_after(:ahead);
SELECT snowflake_start_after(1);
SELECT snowflake_nextval() > :ahead AS above;
\pset tuples_only off
-- Where expressions have to be immutable: with a layout.
CREATE TABLE stored (id bigint, at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'default')) STORED, code text GENERATED ALWAYS AS (snowflake_to_text(id)) STORED,
    CHECK (snowflake_between(id, '2026-01-01 00:00+00', '2027-01-01 00:00+00', 'default'))) PARTITION BY RANGE (snowflake_timestamp(id, 'default'));
CREATE TABLE stored_1 PARTITION OF stored FOR VALUES FROM ('2026-01-01 00:00+00') TO ('2026-07-01 00:00+00');
CREATE TABLE stored_2 PARTITION OF stored DEFAULT PARTITION BY LIST (snowflake_node_id(id, 'default')); CREATE TABLE stored_2_3 PARTITION OF stored_2 FOR VALUES IN (3);
CREATE INDEX by_node ON stored (snowflake_node_id(id, 'default'), ((snowflake_decode(id, 'default')).sequence)) WHERE snowflake_between(id, '2026-05-01 00:00+00', 'infinity', 'default');
SET search_path = pg_catalog;
INSERT INTO public.stored SELECT public.snowflake_compose('2026-05-01 00:00+00'::timestamptz + n * interval '3 months', 3, 0, n) FROM generate_series(0, 1) AS n;
RESET search_path;
SELECT tableoid::regclass, * FROM stored ORDER BY id;
SET enable_seqscan = off; SET enable_bitmapscan = off;
EXPLAIN (COSTS off) SELECT * FROM stored_1 WHERE snowflake_node_id(id, 'default') = 3 AND snowflake_between(id, '2026-05-01 00:00+00', 'infinity', 'default');
\set VERBOSITY sqlstate
INSERT INTO stored SELECT snowflake_compose('2027-01-01 00:00+00', 3, 0, 0); CREATE INDEX ON stored ((snowflake_decode(id)));
CREATE INDEX ON stored (id) WHERE snowflake_between(id, '2026-05-01', '2026-06-01'); CREATE INDEX ON stored (snowflake_explain(id, 'default'));
CREATE TABLE refused (id bigint, at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED);
CREATE TABLE refused (id bigint) PARTITION BY RANGE (snowflake_timestamp(id)); CREATE TABLE refused (id bigint GENERATED ALWAYS AS (snowflake_nextval()) STORED);
\set VERBOSITY default
DROP TABLE stored;
-- Databases of other encodings: what is no character of theirs is refused, and a ? in messages.
SELECT current_database() AS database \gset
CREATE DATABASE regress_latin1 TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C';
\c regress_latin1
CREATE EXTENSION snowflake;
-- Before this database's first ID nothing is known of it, and the first call may say where IDs start.
SELECT database_reserved_until, database_layout FROM snowflake_status;
SELECT snowflake_min_id(clock_timestamp() + interval '500 ms') AS start \gset
SELECT snowflake_start_after(:start);
SELECT snowflake_nextval() > :start AS above;
SELECT snowflake_from_text('00' || chr(233));
SELECT 1 FROM snowflake_decode(1, 'default' || chr(160));
SELECT snowflake_node_id(1541815603606036480, 'twitter'), snowflake_from_text(snowflake_to_text(1541815603606036480));
CREATE DATABASE regress_ascii TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C';
\c regress_ascii
CREATE EXTENSION snowflake;
SELECT snowflake_from_text(E'00\xff\xfe');
SELECT snowflake_to_text(1, E'base32\xe9');
SELECT snowflake_node_id(1541815603606036480, 'twitter'), snowflake_from_text(snowflake_to_text(1541815603606036480));
\c :"database"
DROP DATABASE regress_latin1; DROP DATABASE regress_ascii;

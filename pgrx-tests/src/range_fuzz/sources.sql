-- Tables, views and functions with IDs, from which the statements of range_fuzz read.
-- Each has the columns id, k (by which they are joined) and n (unique in a table).
CREATE FUNCTION made(layout text, i int) RETURNS bigint LANGUAGE sql AS $$
    SELECT snowflake_compose(CASE i % 5 WHEN 0 THEN timestamptz '2025-03-08 00:00+00' + i * interval '113 minutes'
                                        WHEN 1 THEN timestamptz '2025-10-25 00:00+00' + i * interval '87 minutes'
                                        WHEN 2 THEN timestamptz '2025-01-01 00:00+00' + i * interval '13 ms'
                                        WHEN 3 THEN timestamptz '2025-06-01 00:00+00' + i / 6 * interval '1 hour'
                                        ELSE timestamptz '2026-06-01 00:00+00' + i * interval '33 hours' END, 0, 0, i % 3, layout) $$;
CREATE TABLE seen (id bigint, k int, n int, layout text);
INSERT INTO seen SELECT made('default', i), i % 40, i, 'default' FROM generate_series(1, 120) AS i;
INSERT INTO seen VALUES (NULL, 1, 900, 'default'), (0, 2, 901, 'default'), (9223372036854775807, 3, 902, 'default');
CREATE INDEX ON seen (id);
CREATE TABLE half AS SELECT id, k + 3 AS k, n, layout FROM seen WHERE n % 2 = 0; CREATE INDEX ON half (id); CREATE INDEX ON half (k);
-- Numbers that are no IDs.
CREATE TABLE wrong AS TABLE seen; CREATE INDEX ON wrong (id);
INSERT INTO wrong VALUES (-1, 1, -1, 'default'), (-9223372036854775808, 2, -2, 'default');

CREATE TABLE parted (LIKE seen) PARTITION BY RANGE (id);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2025-03-14 00:00+00'));
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (snowflake_min_id('2025-03-14 00:00+00')) TO (snowflake_min_id('2025-11-01 00:00+00')) PARTITION BY RANGE (id);
CREATE TABLE parted_1a PARTITION OF parted_1 FOR VALUES FROM (snowflake_min_id('2025-03-14 00:00+00')) TO (snowflake_min_id('2025-06-01 12:00+00'));
CREATE TABLE parted_1b PARTITION OF parted_1 FOR VALUES FROM (snowflake_min_id('2025-06-01 12:00+00')) TO (snowflake_min_id('2025-11-01 00:00+00'));
CREATE TABLE parted_2 PARTITION OF parted DEFAULT;
CREATE TABLE hashed (LIKE seen) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE by_time (LIKE seen) PARTITION BY RANGE (snowflake_timestamp(id, 'default'));
CREATE TABLE by_time_0 PARTITION OF by_time FOR VALUES FROM (MINVALUE) TO ('2025-05-01'); CREATE TABLE by_time_1 PARTITION OF by_time DEFAULT;
-- A partition that is arranged by the time, though its parent is not.
CREATE TABLE mixed_parts (LIKE seen) PARTITION BY RANGE (id);
CREATE TABLE mixed_parts_0 PARTITION OF mixed_parts FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2025-05-01 00:00+00'));
CREATE TABLE mixed_parts_1 PARTITION OF mixed_parts DEFAULT; CREATE INDEX ON mixed_parts_1 (snowflake_timestamp(id, 'default'));
INSERT INTO parted TABLE seen; INSERT INTO hashed TABLE seen; INSERT INTO by_time TABLE seen; INSERT INTO mixed_parts TABLE seen;
CREATE TABLE checked (LIKE seen) PARTITION BY LIST (layout);
CREATE TABLE checked_0 PARTITION OF checked (CHECK (snowflake_timestamp(id, 'default') < '2025-05-01')) FOR VALUES IN ('default');
CREATE TABLE checked_1 PARTITION OF checked (CHECK (snowflake_timestamp(id, 'default') >= '2025-05-01')) DEFAULT;
INSERT INTO checked SELECT id, k, n, CASE WHEN snowflake_timestamp(id, 'default') < '2025-05-01' THEN 'default' END FROM seen;
CREATE TABLE sub_timed (LIKE seen) PARTITION BY LIST (layout);
CREATE TABLE sub_timed_0 PARTITION OF sub_timed DEFAULT PARTITION BY RANGE (snowflake_timestamp(id, 'default'));
CREATE TABLE sub_timed_0a PARTITION OF sub_timed_0 FOR VALUES FROM (MINVALUE) TO ('2025-05-01'); CREATE TABLE sub_timed_0b PARTITION OF sub_timed_0 DEFAULT;
INSERT INTO sub_timed TABLE seen;
CREATE TABLE parents (LIKE seen);
CREATE TABLE child_0 (CHECK (snowflake_timestamp(id, 'default') < '2025-05-01')) INHERITS (parents); CREATE INDEX ON child_0 (id);
CREATE TABLE child_1 (CHECK (snowflake_timestamp(id, 'default') >= '2025-05-01')) INHERITS (parents); CREATE INDEX ON child_1 (id);
INSERT INTO child_0 SELECT * FROM seen WHERE snowflake_timestamp(id, 'default') < '2025-05-01';
INSERT INTO child_1 SELECT * FROM seen WHERE snowflake_timestamp(id, 'default') >= '2025-05-01';
INSERT INTO parents SELECT * FROM seen WHERE n % 7 = 0;

CREATE TABLE part_index AS TABLE seen; CREATE INDEX ON part_index (k) WHERE snowflake_timestamp(id, 'default') >= '2025-03-15';
CREATE TABLE time_index AS TABLE seen; CREATE INDEX ON time_index (snowflake_timestamp(id, 'default')); CREATE INDEX ON time_index (id);
CREATE TABLE brin_index AS TABLE seen; CREATE INDEX ON brin_index USING brin (id);
CREATE TABLE hash_index AS TABLE seen; CREATE INDEX ON hash_index USING hash (id);
CREATE DOMAIN some_id AS bigint CHECK (value > -100); CREATE DOMAIN order_id AS some_id;
CREATE TABLE domained (id order_id, k int, n int, layout text); INSERT INTO domained TABLE seen; CREATE INDEX ON domained (id);
CREATE TABLE generated (LIKE seen, stored_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'default')) STORED);
INSERT INTO generated TABLE seen; CREATE INDEX ON generated (id); CREATE INDEX ON generated (stored_at);

CREATE TABLE js53 AS SELECT made('js53', i) AS id, i % 40 AS k, i AS n, 'js53' AS layout FROM generate_series(1, 110) AS i; CREATE INDEX ON js53 (id);
CREATE TABLE instagram AS SELECT made('instagram', i) AS id, i % 40 AS k, i AS n, 'instagram' AS layout FROM generate_series(1, 110) AS i; CREATE INDEX ON instagram (id);
CREATE TABLE game AS SELECT made('game', i) AS id, i % 40 AS k, i AS n, 'game' AS layout FROM generate_series(1, 110) AS i; CREATE INDEX ON game (id);
CREATE TABLE mixed AS TABLE half UNION ALL TABLE instagram UNION ALL TABLE js53; CREATE INDEX ON mixed (id);

CREATE TABLE secured AS TABLE seen; CREATE INDEX ON secured (id);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY; ALTER TABLE secured FORCE ROW LEVEL SECURITY;
CREATE POLICY permissive ON secured USING (snowflake_timestamp(id) >= '2025-03-09' AND n % 5 <> 1);
CREATE POLICY restrictive ON secured AS RESTRICTIVE USING (snowflake_timestamp(id)::date < '2026-08-01' OR n < 50);

CREATE VIEW dated AS SELECT id, k, n, layout, snowflake_timestamp(id) AS created_at FROM seen;
CREATE VIEW dated_again AS SELECT * FROM dated WHERE n <> 5;
CREATE VIEW barred WITH (security_barrier) AS SELECT * FROM dated WHERE created_at >= '2025-02-01' OR n % 3 = 0;
CREATE VIEW barred_again WITH (security_barrier) AS SELECT * FROM barred WHERE n <> 7;
CREATE VIEW decoded AS SELECT s.id, s.k, s.n, s.layout, d.created_at FROM seen AS s, snowflake_decode(s.id) AS d;
CREATE VIEW decoded_left AS SELECT s.id, s.k, s.n, s.layout, d.created_at FROM seen AS s LEFT JOIN snowflake_decode(s.id, 'default') AS d ON s.n % 3 = 0;
CREATE VIEW unioned AS SELECT id, k, n, layout, snowflake_timestamp(id, 'default') AS created_at FROM seen
    UNION ALL SELECT id, k, n, layout, snowflake_timestamp(id, 'instagram') FROM instagram;
CREATE VIEW unioned_again AS SELECT id, k, n, layout, created_at FROM dated WHERE created_at > '2025-03-10' UNION ALL SELECT id, k, n, layout, created_at FROM decoded;
CREATE VIEW by_column AS SELECT id, k, n, layout, snowflake_timestamp(id, layout) AS created_at FROM mixed;
CREATE VIEW grouped AS SELECT k, max(id) AS id, count(*)::int AS n, min(layout) AS layout, max(snowflake_timestamp(id)) AS created_at FROM seen GROUP BY k;
CREATE FUNCTION recent() RETURNS TABLE (id bigint, k int, n int, layout text, created_at timestamptz) LANGUAGE sql STABLE AS
    'SELECT id, k, n, layout, created_at FROM public.dated WHERE created_at > ''2025-03-12''';
CREATE FUNCTION since_in_tokyo(since timestamp) RETURNS SETOF bigint LANGUAGE sql STABLE SET timezone = 'Asia/Tokyo' AS
    'SELECT id FROM public.dated WHERE created_at > since';
CREATE ROLE reader;

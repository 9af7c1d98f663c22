-- A copy of a schema with the statistics of another server: the plan tells the sizes there.
\pset format unaligned
\pset footer off
SET client_min_messages = error;
BEGIN;
CREATE TABLE orders (id serial PRIMARY KEY, note text);
CREATE TABLE lines (id bigserial PRIMARY KEY, order_id integer REFERENCES orders);
SELECT row_estimate, pg_size_pretty(bytes_rewritten) FROM snowflake_migrate.survey(keep_sequence => true) WHERE table_name = 'orders'::regclass;
UPDATE pg_class SET relpages = 250000, reltuples = 30000000 WHERE oid = 'orders'::regclass;
UPDATE pg_class SET relpages = 80000, reltuples = 30000000 WHERE oid = 'orders_pkey'::regclass;
UPDATE pg_class SET relpages = 1000, reltuples = 2000 WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE oid = 'orders'::regclass);
UPDATE pg_class SET relpages = 5000, reltuples = 900000 WHERE oid = 'lines'::regclass;
SELECT row_estimate, pg_size_pretty(bytes_rewritten) FROM snowflake_migrate.survey(keep_sequence => true) WHERE table_name = 'orders'::regclass;
-- The speed of a rehearsal: three times, and a half, of the time by the rates.
CREATE FUNCTION pg_temp.times() RETURNS TABLE (step integer, what text, speed text) LANGUAGE sql AS $$
    SELECT p.step, p.what, (regexp_match(p.note, 'at the speed of the rehearsal.*'))[1]
    FROM snowflake_migrate.plan('orders', keep_sequence => true) AS p WHERE p.what ~ 'rows|in all' $$;
SET snowflake_migrate.time_factor = 3;
SELECT * FROM pg_temp.times();
SET snowflake_migrate.time_factor = 0.5;
SELECT * FROM pg_temp.times();
-- No factors: the speed of the processor, as without the setting.
SELECT v.value, set_config('snowflake_migrate.time_factor', v.value, true) IS NOT NULL AS is_set, t.speed
FROM (VALUES ('0'), ('-1'), ('two'), ('1e9'), ('')) AS v (value)
CROSS JOIN LATERAL (SELECT set_config('snowflake_migrate.time_factor', v.value, true)) AS s (value)
CROSS JOIN LATERAL (SELECT count(speed) AS speed FROM pg_temp.times() WHERE s.value IS NOT NULL) AS t;
-- A table that has its rows has its own size.
INSERT INTO orders (note) VALUES ('a');
SELECT row_estimate < 1000 AS few, bytes_rewritten < 1000000000 AS small
FROM snowflake_migrate.survey(keep_sequence => true) WHERE table_name = 'orders'::regclass;
ROLLBACK;

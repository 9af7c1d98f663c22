-- pgTAP finds the objects.
\pset format unaligned
\pset footer off
SELECT plan(4);
SELECT has_function('public', 'snowflake_nextval', '{}'::name[]);
SELECT volatility_is('public', 'snowflake_timestamp', ARRAY['bigint'], 'stable');
SELECT has_view('public', 'snowflake_status', 'a view');
SELECT col_default_is('public', 'orders', 'id', 'snowflake_nextval()', 'a default');

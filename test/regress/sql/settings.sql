-- The settings, who may change them, and values that are refused.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
-- A build for tests has snowflake.unprotected besides.
SELECT name, vartype, unit, context, min_val, max_val FROM pg_settings WHERE name LIKE 'snowflake.%' AND name <> 'snowflake.unprotected' ORDER BY name COLLATE "C";
SELECT name, boot_val FROM pg_settings WHERE name LIKE 'snowflake.%' AND name <> 'snowflake.unprotected' ORDER BY name COLLATE "C";
SELECT name AS undescribed FROM pg_settings WHERE name LIKE 'snowflake.%' AND (coalesce(short_desc, '') = '' OR coalesce(extra_desc, '') = '') AND name <> 'snowflake.unprotected';
-- Any session may say how long it waits and how it copies.
SET snowflake.max_wait = '10s';
SHOW snowflake.max_wait;
SET snowflake.copy_multi_insert = off;
SHOW snowflake.copy_multi_insert;
RESET ALL;
-- What decides an ID's bits is fixed at the start of the server; the rest is read again on reload.
SET snowflake.layout = 'twitter';
SET snowflake.node_id = 2;
SET snowflake.max_borrow = 0;
SET snowflake.max_clock_step = 0;
SET snowflake.lease = '1s';
\set VERBOSITY sqlstate
-- Versions print the range differently.
SET snowflake.max_wait = -1;
ALTER SYSTEM SET snowflake.lease = '2h';
\set VERBOSITY default
SET snowflake.max_wait = 'long';
SET snowflake.maxwait = 1;
ALTER SYSTEM SET snowflake.node_id = -2;
ALTER SYSTEM SET snowflake.layout = 'timestamp:41 node:6 backend:4';
ALTER SYSTEM SET snowflake.layout = 'timestamp:64 sequence:9';
ALTER SYSTEM SET snowflake.layout = 'twiter';

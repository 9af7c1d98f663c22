-- Errors with their SQLSTATE, detail and hint.
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SELECT snowflake_decode(-1, 'default');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_decode(9223372036854775807, 'js53');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_decode(1, 'no such layout');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_decode(1, 'timestamp:41 node:10 sequence:13 tick:1ms epoch:2015-01-01T00:00:00Z');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_decode(1, 'timestamp:41 node:10 sequence:12 tick:0ms epoch:2015-01-01T00:00:00Z');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_decode(1, 'timestamp:41 node:10 sequence:12 tick:1ms epoch:yesterday');
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM snowflake_nextvals(-1);
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_min_id('2200-01-01 00:00+00', 'default');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_from_text('06XH8');
\echo :LAST_ERROR_SQLSTATE
-- currval before the first ID of a session.
\c -
SELECT snowflake_currval();
\echo :LAST_ERROR_SQLSTATE
-- A superuser's function whose ID is too far ahead; its detail has the time.
\set VERBOSITY terse
SELECT snowflake_start_after(9223372036854775806);
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY sqlstate
SELECT snowflake_start_after(snowflake_min_id(now() + interval '25 hours'));
SELECT snowflake_start_after(-1);
\set VERBOSITY default
-- Tables and columns without a sequence.
CALL snowflake_migrate.run('no_such_table');
\echo :LAST_ERROR_SQLSTATE
CREATE TABLE plain (name text);
CALL snowflake_migrate.run('plain');
\echo :LAST_ERROR_SQLSTATE
CALL snowflake_migrate.revert('plain');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_migrate.plan('plain', 'no_such_column');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM snowflake_audit('plain');
\echo :LAST_ERROR_SQLSTATE
DROP TABLE plain;

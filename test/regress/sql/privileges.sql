-- What an ordinary role may do.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SET client_min_messages = warning;
CREATE ROLE regress_snowflake_owner;
CREATE ROLE regress_snowflake_user;
GRANT CREATE ON SCHEMA public TO regress_snowflake_user;
CREATE TABLE others (id serial PRIMARY KEY);
ALTER TABLE others OWNER TO regress_snowflake_owner;
SET ROLE regress_snowflake_user;
-- IDs, reading them, and the views.
SELECT snowflake_nextval() > 0 AS generated;
SELECT snowflake_node_id(snowflake_currval()) = current_setting('snowflake.node_id')::int AS own_node;
SELECT count(*) FROM snowflake_status;
SELECT count(*) > 0 AS has_slots FROM snowflake_stat_slots;
-- Its own table, and no other.
CREATE TABLE own (id serial PRIMARY KEY);
CALL snowflake_migrate.run('own');
INSERT INTO own DEFAULT VALUES RETURNING id > 1000 AS is_snowflake;
CALL snowflake_migrate.revert('own');
CALL snowflake_migrate.run('others');
CALL snowflake_migrate.revert('others');
-- What administrators do.
SELECT snowflake_stat_reset();
SELECT snowflake_start_after(1);
SELECT snowflake_accept_clock('2026-11-20 00:00+00');
SELECT snowflake_accept_layout();
SELECT snowflake_accept_node_id();
CALL snowflake_watch('others');
RESET ROLE;
-- Only the first may be granted.
GRANT EXECUTE ON FUNCTION snowflake_stat_reset(), snowflake_start_after(bigint) TO regress_snowflake_user;
SET ROLE regress_snowflake_user;
SELECT snowflake_stat_reset();
SELECT snowflake_start_after(1);
RESET ROLE;
-- Monitoring may read the mark; a superuser alone moves it.
SELECT role, string_agg(privilege, ' ' ORDER BY privilege) FROM unnest('{pg_monitor,regress_snowflake_user}'::text[]) AS r (role), unnest('{SELECT,USAGE,UPDATE}'::text[]) AS p (privilege)
WHERE has_sequence_privilege(role, 'snowflake_internal.mark', privilege) GROUP BY role ORDER BY role;
-- A superuser.
SELECT snowflake_start_after(1);
\set VERBOSITY terse
SELECT snowflake_accept_clock('2020-01-01 00:00+00');
\set VERBOSITY default
SELECT snowflake_accept_layout();
REVOKE EXECUTE ON FUNCTION snowflake_stat_reset(), snowflake_start_after(bigint) FROM regress_snowflake_user;
DROP TABLE own, others;
REVOKE CREATE ON SCHEMA public FROM regress_snowflake_user;
DROP ROLE regress_snowflake_user, regress_snowflake_owner;
-- A schema that looks like one of the extensions', and functions that PUBLIC may not execute, keep no role from its own tables.
CREATE ROLE regress_tenant; CREATE ROLE regress_owner; CREATE SCHEMA regress_owner AUTHORIZATION regress_owner;
BEGIN;
CREATE SCHEMA snowflake_partitions_internal AUTHORIZATION regress_tenant;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake_internal FROM PUBLIC;
SET ROLE regress_owner;
CREATE TABLE regress_owner.mine (i int); ALTER TABLE regress_owner.mine ADD COLUMN j int;
CREATE TRIGGER x BEFORE UPDATE ON regress_owner.mine FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
ROLLBACK;
DROP SCHEMA regress_owner; DROP ROLE regress_tenant, regress_owner;

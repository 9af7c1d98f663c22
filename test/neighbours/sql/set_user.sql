-- set_user: migrations in its sessions, where set_config() is blocked.
\pset format unaligned
\pset footer off
SET client_min_messages = error;
CREATE ROLE dba LOGIN;
GRANT EXECUTE ON FUNCTION set_user(text), set_user_u(text), reset_user() TO dba;
CREATE TABLE held (id serial PRIMARY KEY, note text);
INSERT INTO held (note) VALUES ('old');
\connect - dba
SET client_min_messages = error;
SELECT set_user_u('postgres');
SELECT set_config('lock_timeout', '1s', false);
CALL snowflake_migrate.run('held');
INSERT INTO held (note) VALUES ('new') RETURNING id > snowflake_id_boundary('held') AS is_new;
CALL snowflake_migrate.revert('held');
INSERT INTO held (note) VALUES ('old') RETURNING id;
SELECT statement FROM snowflake_migrate.plan('held', online => true) WHERE statement IS NOT NULL ORDER BY step
\set ECHO none
\gexec
\set ECHO all
INSERT INTO held (note) VALUES ('new') RETURNING id > snowflake_id_boundary('held') AS is_new;
CALL snowflake_watch('held');
SELECT * FROM snowflake_audit_tables('public') WHERE table_name = 'held'::regclass;
SELECT reset_user();
\connect - postgres

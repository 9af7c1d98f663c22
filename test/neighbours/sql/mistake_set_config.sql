-- set_user: a migration that calls set_config().
CREATE OR REPLACE FUNCTION snowflake_migrate_internal.limit_locks() RETURNS text LANGUAGE sql
BEGIN ATOMIC SELECT set_config('lock_timeout', '5s', true); END;

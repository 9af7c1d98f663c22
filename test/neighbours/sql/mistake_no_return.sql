-- plpgsql_check: a function that may end without RETURN.
CREATE OR REPLACE FUNCTION snowflake_migrate_internal.limit_locks() RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS 'BEGIN IF random() < 2 THEN RETURN ''5s''; END IF; END';

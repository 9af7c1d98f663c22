-- From the extension back to the schema snowflake_sql, as a superuser: docs/without-library.md.
\set ON_ERROR_STOP on
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL quote_all_identifiers = off;
-- No session of the application waits longer, or is ended by a deadlock. After 55P03 nothing is changed: ROLLBACK, and run it again.
SET LOCAL lock_timeout = '300ms';
-- It waits for the clock under the locks.
DO $$ BEGIN
    IF (SELECT public.snowflake_timestamp(last_value) - clock_timestamp() > interval '10 seconds' FROM snowflake_internal.mark) THEN
        RAISE EXCEPTION 'the clock is behind the IDs of the extension' USING ERRCODE = '55000', HINT = 'ROLLBACK, and wait until snowflake_status.clock_behind is 0.';
    END IF;
END $$;
CREATE TEMP TABLE moved_back ON COMMIT DROP AS
SELECT d.adrelid::regclass AS target, a.attname, c.relkind
FROM pg_depend AS p
JOIN pg_attrdef AS d ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
JOIN pg_class AS c ON c.oid = d.adrelid AND NOT pg_is_other_temp_schema(c.relnamespace)
WHERE p.refclassid = 'pg_proc'::regclass AND p.refobjid IN ('public.snowflake_nextval()'::regprocedure, 'public.snowflake_id()'::regprocedure)
  AND pg_get_expr(d.adbin, d.adrelid) IN ('public.snowflake_nextval()', 'public.snowflake_id()');
SELECT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', target) FROM moved_back WHERE relkind <> 'f' GROUP BY target ORDER BY target \gexec
SELECT pg_sleep(greatest(0, extract(epoch FROM public.snowflake_timestamp(last_value) - clock_timestamp())) + 0.01)
FROM snowflake_internal.mark;
SELECT setval('snowflake_sql.mark', greatest(last_value,
              (extract(epoch FROM clock_timestamp() - timestamptz '2025-01-01 00:00+00') * 1000)::bigint / 128 + 40))
FROM snowflake_sql.mark;
GRANT USAGE ON SEQUENCE snowflake_sql.ids, snowflake_sql.mark TO PUBLIC;
SELECT format('ALTER TABLE ONLY %s ALTER COLUMN %I SET DEFAULT snowflake_sql.snowflake_nextval()', target, attname) FROM moved_back \gexec
-- What is left, to be changed by hand: defaults of which the call is a part.
SELECT DISTINCT pg_describe_object(p.classid, p.objid, p.objsubid) AS what
FROM pg_depend AS p
WHERE p.refclassid = 'pg_proc'::regclass AND p.refobjid IN ('public.snowflake_nextval()'::regprocedure, 'public.snowflake_id()'::regprocedure)
  AND p.classid = 'pg_attrdef'::regclass;
COMMIT;

-- From the schema snowflake_sql to the extension, as a superuser: docs/without-library.md. It ends with what is left.
\set ON_ERROR_STOP on
BEGIN;
-- What other roles have created in other schemas is not found.
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL quote_all_identifiers = off;
-- No session of the application waits longer, or is ended by a deadlock. After 55P03 nothing is changed: ROLLBACK, and run it again.
SET LOCAL lock_timeout = '300ms';
-- Which columns, by their dependency on the generator. An expression of which the call is a part is left.
CREATE TEMP TABLE moved ON COMMIT DROP AS
SELECT d.adrelid::regclass AS target, a.attname, c.relkind
FROM pg_depend AS p
JOIN pg_attrdef AS d ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
JOIN pg_class AS c ON c.oid = d.adrelid AND NOT pg_is_other_temp_schema(c.relnamespace)
WHERE p.refclassid = 'pg_proc'::regclass AND p.refobjid = 'snowflake_sql.snowflake_nextval()'::regprocedure
  AND pg_get_expr(d.adbin, d.adrelid) = 'snowflake_sql.snowflake_nextval()';
SELECT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', target) FROM moved WHERE relkind <> 'f' GROUP BY target ORDER BY target \gexec
-- From here on only the schema's owner, superusers and roles with a grant of their own generate there.
REVOKE USAGE ON SEQUENCE snowflake_sql.ids, snowflake_sql.mark FROM PUBLIC;
SELECT public.snowflake_start_after(((last_value + 8) << 29) - 1) FROM snowflake_sql.mark;
SELECT format('ALTER TABLE ONLY %s ALTER COLUMN %I SET DEFAULT public.snowflake_nextval()', target, attname) FROM moved \gexec
-- Views, with the extension's functions and the options that they have, security_invoker among them.
SELECT format('CREATE OR REPLACE VIEW %s%s AS %s', v.oid::regclass,
              (SELECT ' WITH (' || string_agg(format('%I = %L', o.option_name, o.option_value), ', ') || ')' FROM pg_options_to_table(v.reloptions) AS o),
              replace(pg_get_viewdef(v.oid), 'snowflake_sql.snowflake_', 'public.snowflake_'))
FROM pg_class AS v JOIN pg_rewrite AS r ON r.ev_class = v.oid
WHERE v.relkind = 'v' AND (
    -- The extension has not all functions of the schema.
    SELECT bool_and(EXISTS (
        SELECT FROM pg_extension AS x JOIN pg_depend AS m ON m.refclassid = 'pg_extension'::regclass AND m.refobjid = x.oid AND m.deptype = 'e'
        JOIN pg_proc AS e ON m.classid = 'pg_proc'::regclass AND m.objid = e.oid
        WHERE x.extname = 'snowflake' AND e.proname = f.proname AND e.proargtypes = f.proargtypes))
    FROM pg_depend AS p JOIN pg_proc AS f ON p.refclassid = 'pg_proc'::regclass AND p.refobjid = f.oid
    WHERE p.classid = 'pg_rewrite'::regclass AND p.objid = r.oid AND f.pronamespace = 'snowflake_sql'::regnamespace) \gexec
-- What is left, to be changed by hand: other defaults, indexes, policies, generated columns, functions, views.
SELECT DISTINCT pg_describe_object(p.classid, p.objid, p.objsubid) AS what
FROM pg_depend AS p JOIN pg_proc AS f ON p.refclassid = 'pg_proc'::regclass AND p.refobjid = f.oid
WHERE f.pronamespace = 'snowflake_sql'::regnamespace AND p.deptype = 'n'
UNION ALL
SELECT 'function ' || f.oid::regprocedure FROM pg_proc AS f
WHERE f.prosrc LIKE '%snowflake_sql.%' AND f.pronamespace <> 'snowflake_sql'::regnamespace;
COMMIT;

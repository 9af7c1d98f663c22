-- What CREATE EXTENSION puts into its schema for people to use.
CREATE EXTENSION snowflake;
SELECT p.proname AS name, p.prokind AS kind, a.arguments
FROM pg_depend AS d
JOIN pg_extension AS e ON e.oid = d.refobjid
JOIN pg_proc AS p ON p.oid = d.objid AND p.pronamespace = e.extnamespace
CROSS JOIN LATERAL pg_get_function_identity_arguments(p.oid) AS a (arguments)
WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND e.extname = 'snowflake'
ORDER BY p.proname COLLATE "C", a.arguments COLLATE "C";
SELECT c.relname AS name, c.relkind AS kind
FROM pg_depend AS d
JOIN pg_extension AS e ON e.oid = d.refobjid
JOIN pg_class AS c ON c.oid = d.objid AND c.relnamespace = e.extnamespace
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND e.extname = 'snowflake'
ORDER BY c.relname COLLATE "C";
-- No routine runs with the rights of its owner, and every one has a comment.
SELECT count(*) FILTER (WHERE p.prosecdef) AS security_definer,
       count(*) FILTER (WHERE obj_description(p.oid, 'pg_proc') IS NULL) AS without_comment
FROM pg_depend AS d
JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'snowflake'
JOIN pg_proc AS p ON p.oid = d.objid
WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e';
-- Once a database.
CREATE EXTENSION snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake;

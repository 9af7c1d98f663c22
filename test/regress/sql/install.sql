-- What CREATE EXTENSION creates: for people to use, and for itself. No routine runs
-- with the privileges of its owner.
CREATE EXTENSION snowflake;
CREATE VIEW routines AS
SELECT e.extname AS extension, n.nspname LIKE '%\_internal' AS internal, p.proname AS name, p.prokind AS kind,
       CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END AS volatility,
       CASE p.proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' ELSE 'unsafe' END AS parallel,
       p.proisstrict AS strict, p.prosecdef AS definer, pg_get_function_identity_arguments(p.oid) AS arguments
FROM pg_depend AS d
JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname LIKE 'snowflake%'
JOIN pg_proc AS p ON p.oid = d.objid
JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
ORDER BY p.proname COLLATE "C", pg_get_function_identity_arguments(p.oid) COLLATE "C";
CREATE VIEW relations AS
SELECT e.extname AS extension, n.nspname AS schema, c.relname AS name, c.relkind AS kind
FROM pg_depend AS d
JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname LIKE 'snowflake%'
JOIN pg_class AS c ON c.oid = d.objid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C";
SELECT name, kind, volatility, parallel, strict, definer, arguments FROM routines WHERE NOT internal;
SELECT schema, name, kind FROM relations;
-- Its own: how many of each kind. Which ones there are says the source; who may run them, the tests of rights.
SELECT kind, volatility, parallel, strict, definer, count(*) FROM routines WHERE internal GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5;
-- The tool that migrates tables is an extension of its own.
CREATE EXTENSION snowflake_migrate;
SELECT name, kind, volatility, parallel, strict, definer, arguments FROM routines WHERE extension = 'snowflake_migrate' AND NOT internal;
SELECT schema, name, kind FROM relations WHERE extension = 'snowflake_migrate';
SELECT kind, volatility, parallel, strict, definer, count(*) FROM routines WHERE extension = 'snowflake_migrate' AND internal GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5;
-- What people meet has a description: objects and columns without one.
SELECT pg_describe_object(d.classid, d.objid, a.attnum) AS undescribed
FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname LIKE 'snowflake%' LEFT JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
CROSS JOIN LATERAL (SELECT 0 UNION ALL SELECT attnum FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid AND c.relkind <> 'S'
                    WHERE d.classid = 'pg_class'::regclass AND attrelid = d.objid AND attnum > 0) AS a (attnum)
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND d.classid <> 'pg_type'::regclass AND p.pronamespace::regnamespace::text IS DISTINCT FROM e.extname || '_internal'
  AND coalesce(CASE a.attnum WHEN 0 THEN obj_description(d.objid, d.classid::regclass::name) ELSE col_description(d.objid, a.attnum) END, '') = ''
ORDER BY 1;
DROP VIEW routines, relations;
-- Once a database.
CREATE EXTENSION snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake;

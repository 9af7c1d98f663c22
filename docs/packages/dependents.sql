-- What DROP EXTENSION snowflake CASCADE would drop, besides snowflake_migrate and snowflake_partitions: docs/packages.md.
WITH RECURSIVE extension_part (classid, objid) AS (
    SELECT d.classid, d.objid FROM pg_depend AS d JOIN pg_extension AS e ON d.refobjid = e.oid
    WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname IN ('snowflake', 'snowflake_migrate', 'snowflake_partitions')
  UNION
    SELECT d.classid, d.objid FROM extension_part AS p
    JOIN pg_depend AS d ON d.refclassid = p.classid AND d.refobjid = p.objid AND d.deptype IN ('a', 'i')
), dropped (classid, objid, objsubid) AS (
    SELECT d.classid, d.objid, d.objsubid FROM extension_part AS p
    JOIN pg_depend AS d ON d.refclassid = p.classid AND d.refobjid = p.objid
    WHERE (d.classid, d.objid) NOT IN (SELECT own.classid, own.objid FROM extension_part AS own)
  UNION
    SELECT n.classid, n.objid, n.objsubid FROM dropped AS o CROSS JOIN LATERAL (
        SELECT d.classid, d.objid, d.objsubid FROM pg_depend AS d
        WHERE d.refclassid = o.classid AND d.refobjid = o.objid AND o.objsubid IN (0, d.refobjsubid)
      UNION ALL  -- What it is a part of: of a rule its view, of an expression its generated column.
        SELECT d.refclassid, d.refobjid, d.refobjsubid FROM pg_depend AS d
        WHERE d.classid = o.classid AND d.objid = o.objid AND d.objsubid = o.objsubid AND d.deptype = 'i') AS n
)
SELECT pg_describe_object(o.classid, o.objid, o.objsubid) AS object FROM dropped AS o
WHERE NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = o.classid AND d.objid = o.objid
                  AND d.objsubid = o.objsubid AND d.deptype = 'i')
ORDER BY object;

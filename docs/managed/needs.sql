-- Prints statements for the copy (docs/managed.md): roles, tablespaces, a database with the same owner, and stubs for types and
-- functions of extensions that the copy lacks. Changes nothing.
SET search_path = '';
SELECT 'SET client_min_messages = warning; SET allow_in_place_tablespaces = on;';
SELECT format('CREATE ROLE %I;', rolname) FROM pg_catalog.pg_roles WHERE rolname !~ '^pg_';
SELECT format('CREATE TABLESPACE %I LOCATION '''';', spcname) FROM pg_catalog.pg_tablespace WHERE spcname !~ '^pg_';
SELECT format(E'CREATE DATABASE copy OWNER %I TEMPLATE template0 ENCODING %L LOCALE \'C\';\n\\c copy',
              pg_catalog.pg_get_userbyid(datdba), pg_catalog.pg_encoding_to_char(encoding))
FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database();
WITH member AS (
    SELECT DISTINCT u.refclassid AS class, u.refobjid AS object, x.extname
    FROM pg_catalog.pg_depend AS u
    JOIN pg_catalog.pg_depend AS d ON d.classid = u.refclassid AND d.objid = u.refobjid AND d.deptype = 'e'
    JOIN pg_catalog.pg_extension AS x ON x.oid = d.refobjid AND x.extname <> 'plpgsql'
    WHERE u.deptype IN ('n', 'a')
), stub AS (
    SELECT m.extname, 1 AS place, format('CREATE SCHEMA IF NOT EXISTS %I; CREATE DOMAIN %s AS text', n.nspname, t.oid::regtype) AS statement
    FROM member AS m JOIN pg_catalog.pg_type AS t ON m.class = 'pg_catalog.pg_type'::regclass AND t.oid = m.object
    JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace WHERE t.typtype IN ('b', 'd')
  UNION ALL
    SELECT m.extname, 2, format('CREATE SCHEMA IF NOT EXISTS %1$I; CREATE FUNCTION %1$I.%2$I(%3$s) RETURNS %4$s IMMUTABLE LANGUAGE %5$s',
        n.nspname, p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid), r.oid::regtype,
        CASE r.typname WHEN 'trigger' THEN 'plpgsql AS ''BEGIN RETURN new; END''' ELSE format('sql AS ''SELECT NULL::%s''', r.oid::regtype) END)
    FROM member AS m JOIN pg_catalog.pg_proc AS p ON m.class = 'pg_catalog.pg_proc'::regclass AND p.oid = m.object
    JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace JOIN pg_catalog.pg_type AS r ON r.oid = p.prorettype
    WHERE p.prokind = 'f' AND NOT p.proretset AND (r.typtype <> 'p' OR r.typname = 'trigger')
      AND NOT EXISTS (SELECT FROM unnest(p.proargtypes) AS a JOIN pg_catalog.pg_type AS t ON t.oid = a WHERE t.typtype = 'p')
)
SELECT format('SELECT %L WHERE NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = %L) \gexec', s.statement, s.extname)
FROM stub AS s ORDER BY s.place;

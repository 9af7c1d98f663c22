-- plpgsql_check: of all functions, only these rows. The statements that are executed are made
-- of quoted names; and where no RETURN is reached, refuse() has raised an error.
\pset format unaligned
\pset footer off
SET client_min_messages = error;
CREATE VIEW checked AS
SELECT c.level, p.oid::regprocedure AS function, c.lineno, c.message, c.detail
FROM pg_proc AS p
JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname LIKE 'snowflake%'
JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname = 'plpgsql'
CROSS JOIN LATERAL plpgsql_check_function_tb(p.oid, fatal_errors => false, security_warnings => true, extra_warnings => true, performance_warnings => false) AS c
WHERE p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype);
SELECT level, function, lineno, message, detail FROM checked ORDER BY function::text COLLATE "C", lineno, message;
-- In its passive mode, as developers' servers have it. It fails itself at each assignment to a
-- field of a composite variable (record "…" is not assigned to tuple structure), as
-- migrations have them.
CREATE TABLE passive (id bigserial PRIMARY KEY, n int);
CALL snowflake_migrate.run('passive');
LOAD 'plpgsql';
LOAD 'plpgsql_check';
SET plpgsql_check.mode = 'every_start';
SET plpgsql_check.fatal_errors = on;
SET client_min_messages = error;
CALL snowflake_watch('passive');
SELECT * FROM snowflake_audit('passive');
SELECT count(*) FROM snowflake_audit_tables() WHERE table_name = 'passive'::regclass;
SELECT count(*) FROM snowflake_migrate.survey('public') WHERE table_name = 'passive'::regclass;
CREATE TABLE parted (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
SELECT count(*) FROM snowflake_partitions.ddl('parted', now(), now(), '1 day');

-- The text of a script for another server. psql does not look into dollar quotes: what its
-- variables name is passed to procedures by a setting, or by their search_path.

-- A comment of several lines, without line breaks of names.
CREATE FUNCTION snowflake_migrate_internal.script_section(title text, explanation text)
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat_ws(E'\n', '', '-- ' || repeat('=', 90), snowflake_migrate_internal.comment_lines(title), '-- ' || repeat('=', 90),
                     snowflake_migrate_internal.comment_lines(explanation), '')
$function$;

-- A unit in its frame, which leaves it out if it was done before.
CREATE FUNCTION snowflake_migrate_internal.unit_in_frame(
    number integer, units integer, kind text, what text, explanation text, lines text
) RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat(
        snowflake_migrate_internal.script_section(format('Unit %s of %s: %s', number, units, what), explanation),
        format(E'SELECT EXISTS (SELECT FROM :"schema".widening_unit WHERE number = %1$s) AS done \\gset widening_\n'
               '\\if :widening_done\n\\echo unit %1$s of %2$s was done before\n\\else\n\\echo unit %1$s of %2$s (%3$s) begins\n',
               number, units, kind),
        lines, format(E'\\echo unit %1$s of %2$s is done\n\\endif\n', number, units))
$function$;

-- What psql's variables are by default.
CREATE FUNCTION snowflake_migrate_internal.script_variables(schema_name text, is_online boolean)
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT E'\\set ON_ERROR_STOP on\n\\set ON_ERROR_ROLLBACK off\n\\set AUTOCOMMIT on\n\\set QUIET on\n\\set VERBOSITY default\n'
           || E'\\pset pager off\n'
           || string_agg(format(E'\\if :{?%1$s}\n\\else\n\\set %1$s %2$s\n\\endif', v.name, v.value), E'\n' ORDER BY v.place)
    FROM (VALUES (1, 'schema', schema_name), (2, 'lock_timeout', '5s'), (3, 'check_only', 'off'), (4, 'check_rows', 'off'),
                 (5, 'role_override', 'off'), (6, 'revert', 'off'), (7, 'messages', 'notice')) AS v (place, name, value)
    WHERE v.place <= 5 OR is_online
$function$;

CREATE FUNCTION snowflake_migrate_internal.script_introduction(names text, owner name, schema_name text)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat_ws(E'\n', snowflake_migrate_internal.comment_lines(format(
        'Widens %s to bigint, with all columns that reference them. The sequences are kept.', names)),
        '--', snowflake_migrate_internal.comment_lines(format('To be run by role %s, with its own login:', quote_ident(owner))), format(
$text$--     psql -X -f this_file "host=... dbname=... user=..."        (no option -1, no transaction pooler)
--     psql -X -v check_only=on -f this_file ...                  compares and tries, changes nothing
--     psql -X -v check_only=on -v check_rows=on -f this_file ... and looks for rows that violate a foreign key: reads the tables
--
-- It needs a maintenance window: each unit rewrites tables under ACCESS EXCLUSIVE locks. Nothing can read them then.
-- Each unit is one transaction, and is marked as done in it. After an error, or if psql or the server was stopped,
-- run the same file again: it continues with the first unit that is not done.
-- To give up: DROP SCHEMA %1$s CASCADE. What is widened remains so.
-- To stop: Ctrl-C, or pg_cancel_backend() in another session. The present unit is rolled back.
-- To watch: pg_stat_progress_cluster does not show ALTER TABLE; the growth of the disk does:
--     SELECT pid, state, wait_event_type, now() - query_start, query FROM pg_stat_activity WHERE application_name = 'widening script';
-- To go back after a unit: nothing has to go back, a bigint holds all values of an integer. While all values still fit,
--     ALTER TABLE ... ALTER COLUMN ... TYPE integer does it, with views dropped and created as in the unit; it rewrites again.
-- Afterwards clients reconnect: sessions keep functions that they have compiled for the former types.
--
-- Variables (psql -v name=value):
--     schema        schema for the state of the script. One that exists has to belong to the role, and is kept at the end.
--     lock_timeout  time to wait for a lock (5s): sessions that come later wait behind the script's request.
--     table_path    search_path for expressions of indexes and checks, instead of the one the script was made with.
--     role_override on: the role need not be the one that has logged in. Only if all that its tables run is trusted.$text$, schema_name),
        snowflake_migrate_internal.script_variables(schema_name, false))
$function$;

-- Settings, and what has to be so before anything is created.
CREATE FUNCTION snowflake_migrate_internal.script_head(owner name, script_id text, path text[])
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format(
$text$SET standard_conforming_strings = on;
SET search_path = pg_catalog, pg_temp;
SET client_min_messages = notice;
SET application_name = 'widening script';
SET lock_timeout = :'lock_timeout';
SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SELECT pg_catalog.count(pg_catalog.set_config(s.name, '0', false)) AS timeouts FROM pg_catalog.pg_settings AS s
WHERE s.name = 'transaction_timeout' \gset widening_
SET check_function_bodies = off;
SET default_transaction_isolation = 'read committed';
SET default_transaction_read_only = off;
SET default_tablespace = '';
SET row_security = on;
SELECT pg_catalog.set_config('widening_script.schema', :'schema'::pg_catalog.name::pg_catalog.text, false) AS "schema",
       pg_catalog.set_config('widening_script.role_override', :'role_override', false) AS role_override,
       pg_catalog.transaction_timestamp() <> pg_catalog.statement_timestamp() AS in_transaction \gset widening_
\if :widening_in_transaction
DO $do$BEGIN RAISE EXCEPTION USING ERRCODE = '25001', MESSAGE = 'the script has to begin and end its transactions itself',
    HINT = 'psql -X -f, without -1 and without BEGIN.'; END$do$;
\endif
DO $do$
DECLARE
    owner CONSTANT pg_catalog.name := %1$s;
    other integer;
BEGIN
    IF pg_catalog.current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = 'the script requires PostgreSQL 15 or later';
    END IF;
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION USING ERRCODE = '25006', MESSAGE = 'this server is a standby', HINT = 'Run the script on the primary.';
    END IF;
    IF current_user <> owner
       OR (SELECT a.usesysid FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) AS a)
          <> (SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE r.rolname = owner)
          AND pg_catalog.current_setting('widening_script.role_override') <> 'on' THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = pg_catalog.format('the script has to be run by role "%%s"', owner),
            DETAIL = pg_catalog.format('The role is "%%s". Code in tables has the privileges of the role that has logged in, '
                                       'also after SET ROLE.', current_user),
            HINT = pg_catalog.format('Log in as that role. Only if its tables and functions are trusted: '
                                     'psql -v role_override=on -c "SET ROLE %%I" -f ...', owner);
    END IF;
    -- One session at a time. The backend of a psql that was killed may still run its last statement.
    IF NOT pg_catalog.pg_try_advisory_lock(%2$s, %3$s) THEN
        SELECT l.pid INTO other FROM pg_catalog.pg_locks AS l
        WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid::bigint = (%2$s)::bigint & 4294967295
          AND l.objid::bigint = (%3$s)::bigint & 4294967295
          AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database());
        RAISE EXCEPTION USING ERRCODE = '55006', MESSAGE = 'another session runs this script',
            DETAIL = pg_catalog.format('It is backend %%s. A backend continues its statement after its psql was killed.', other),
            HINT = pg_catalog.format('Wait for it, or SELECT pg_terminate_backend(%%s).', other);
    END IF;
END
$do$;
\if :{?table_path}
\else
-- Without schemas in which others may create objects.
SELECT pg_catalog.concat_ws(', ', 'pg_catalog', pg_catalog.string_agg(pg_catalog.quote_ident(n.nspname), ', ' ORDER BY p.place),
                            'pg_temp') AS table_path
FROM pg_catalog.unnest(%4$s::pg_catalog.text[]) WITH ORDINALITY AS p (name, place)
JOIN pg_catalog.pg_namespace AS n ON n.nspname = p.name
WHERE NOT EXISTS (SELECT FROM pg_catalog.aclexplode(n.nspacl) AS a JOIN pg_catalog.pg_roles AS me ON me.rolname = current_user
                  WHERE a.privilege_type = 'CREATE' AND a.grantee NOT IN (n.nspowner, me.oid)) \gset
\endif$text$,
        snowflake_migrate_internal.dollar_quoted(owner::text), ('x' || left(script_id, 8))::bit(32)::integer,
        ('x' || substr(script_id, 9, 8))::bit(32)::integer, snowflake_migrate_internal.dollar_quoted(path::text))
$function$;

CREATE FUNCTION snowflake_migrate_internal.script_setup(script_id text)
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format(
$text$SET client_min_messages = warning;
BEGIN;
DO $do$
DECLARE
    wanted CONSTANT pg_catalog.name := pg_catalog.current_setting('widening_script.schema');
    present record;
BEGIN
    SELECT n.oid, n.nspowner = me.oid AS is_own,
           EXISTS (SELECT FROM pg_catalog.aclexplode(n.nspacl) AS a WHERE a.privilege_type = 'CREATE' AND a.grantee <> me.oid)
           -- They may have been allowed to before.
           OR EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.relnamespace = n.oid AND c.relowner <> me.oid)
           OR EXISTS (SELECT FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = n.oid AND p.proowner <> me.oid)
           OR EXISTS (SELECT FROM pg_catalog.pg_type AS t WHERE t.typnamespace = n.oid AND t.typowner <> me.oid)
           OR EXISTS (SELECT FROM pg_catalog.pg_operator AS o WHERE o.oprnamespace = n.oid AND o.oprowner <> me.oid) AS is_open
    INTO present
    FROM pg_catalog.pg_namespace AS n JOIN pg_catalog.pg_roles AS me ON me.rolname = current_user WHERE n.nspname = wanted;
    IF present.oid IS NULL THEN
        IF NOT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') THEN
            RAISE EXCEPTION USING ERRCODE = '42501',
                MESSAGE = pg_catalog.format('role "%%s" may not create a schema in this database', current_user),
                HINT = pg_catalog.format('Let its owner run CREATE SCHEMA %%I AUTHORIZATION %%I, then psql -v schema=%%I.',
                                         wanted, current_user, wanted);
        END IF;
        EXECUTE pg_catalog.format('CREATE SCHEMA %%I', wanted);
    ELSIF NOT present.is_own OR present.is_open THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = pg_catalog.format('schema "%%s" is not for the script only', wanted),
            DETAIL = 'Other roles own it or objects in it, or may create some.', HINT = 'psql -v schema=... with another name.';
    -- They would be replaced, and dropped at the end.
    ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.relnamespace = present.oid AND c.relname = 'widening_state')
        AND (EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.relnamespace = present.oid AND pg_catalog.starts_with(c.relname, 'widening_'))
             OR EXISTS (SELECT FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = present.oid AND pg_catalog.starts_with(p.proname, 'widening_'))) THEN
        RAISE EXCEPTION USING ERRCODE = '42710', MESSAGE = pg_catalog.format('schema "%%s" has objects whose names begin with "widening_"', wanted),
            HINT = 'psql -v schema=... with another name.';
    END IF;
    PERFORM pg_catalog.set_config('widening_script.made_schema', (present.oid IS NULL)::text, false);
END
$do$;
CREATE TABLE IF NOT EXISTS :"schema".widening_state (id text PRIMARY KEY, made_schema boolean NOT NULL);
INSERT INTO :"schema".widening_state
SELECT '%1$s', pg_catalog.current_setting('widening_script.made_schema')::boolean
WHERE NOT EXISTS (SELECT FROM :"schema".widening_state);
CREATE TABLE IF NOT EXISTS :"schema".widening_unit (number integer PRIMARY KEY, done_at timestamp with time zone NOT NULL);
CREATE TABLE IF NOT EXISTS :"schema".widening_made_for (object text, fact text, value text, value_after text, PRIMARY KEY (object, fact));
SELECT id <> '%1$s' AS other_script FROM :"schema".widening_state \gset widening_
\if :widening_other_script
DO $do$BEGIN RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the schema has the state of another script',
    HINT = 'Run that one to its end, or name another schema: psql -v schema=...'; END$do$;
\endif$text$, script_id)
$function$;

-- What to do about a difference.
CREATE FUNCTION snowflake_migrate_internal.script_drift_hint()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN 'What is done remains done. Dump the schema again, and make the script anew.';

-- The procedures that compare. They are replaced at each start: the tables are what is kept.
CREATE FUNCTION snowflake_migrate_internal.script_procedures(hint text DEFAULT snowflake_migrate_internal.script_drift_hint())
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format(
$text$-- What is there.
CREATE OR REPLACE FUNCTION :"schema".widening_facts(relations text[]) RETURNS TABLE (object text, fact text, value text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off AS %1$s;

-- Stops if something is not as it was where the script was made. What units have done is no difference.
CREATE OR REPLACE PROCEDURE :"schema".widening_compare()
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    differences text;
    number bigint;
    is_done boolean;
BEGIN
    SELECT string_agg(d.line, E'\n') FILTER (WHERE d.place <= 20), count(*), bool_and(coalesce(d.is_result, false))
    INTO differences, number, is_done
    FROM (SELECT m.value_after = f.value AND m.value_after <> m.value AS is_result,
                 format('%%s, %%s: %%s, made for: %%s', object, fact, coalesce(f.value, 'missing'), coalesce(m.value, 'none')) AS line,
                 row_number() OVER (ORDER BY object, fact) AS place
          FROM widening_made_for AS m
          FULL JOIN (SELECT p.* FROM widening_facts(ARRAY(SELECT DISTINCT e.object FROM widening_made_for AS e)) AS p
                     WHERE p.value <> '') AS f
              USING (object, fact)
          WHERE m.value IS DISTINCT FROM f.value
            -- *: it is the script's own, in any state.
            AND (m.value_after IN (f.value, '*') AND EXISTS (SELECT FROM widening_unit)) IS NOT TRUE) AS d;
    IF number > 0 AND is_done THEN
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the columns and sequences have been widened already',
            DETAIL = differences, HINT = 'Nothing is left to do if the script was run to its end before.';
    ELSIF number > 0 THEN
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the database is not as it was where the script was made',
            DETAIL = differences || CASE WHEN number > 20 THEN format(E'\nand %%s more', number - 20) ELSE '' END,
            HINT = %2$s;
    END IF;
END
$procedure$;

-- Stops if a CHECK is another one: it could refuse larger numbers. Compared as this server prints both.
CREATE OR REPLACE PROCEDURE :"schema".widening_compare_check(relation text, name text, definition text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET check_function_bodies = off AS $procedure$
DECLARE
    present CONSTANT text := (SELECT pg_get_constraintdef(o.oid) FROM pg_constraint AS o
                              WHERE o.conrelid = relation::regclass AND o.conname = name AND o.contype = 'c');
    copy CONSTANT text := format('%%I.widening_copy', current_setting('widening_script.schema'));
    expected text;
    again text;
BEGIN
    BEGIN
        EXECUTE format('CREATE TABLE %%s (LIKE %%s)', copy, relation);
        EXECUTE format('ALTER TABLE %%s ADD CONSTRAINT a %%s, ADD CONSTRAINT b %%s', copy, definition, present);
        SELECT max(pg_get_constraintdef(o.oid)) FILTER (WHERE o.conname = 'a'),
               max(pg_get_constraintdef(o.oid)) FILTER (WHERE o.conname = 'b')
        INTO expected, again FROM pg_constraint AS o WHERE o.conrelid = copy::regclass;
        RAISE EXCEPTION USING ERRCODE = 'WS001';
    EXCEPTION WHEN SQLSTATE 'WS001' THEN
        NULL;
    END;
    -- PostgreSQL prints some expressions, as IN (...) on varchar, otherwise after it has read them once.
    IF expected IS DISTINCT FROM present AND expected IS DISTINCT FROM again THEN
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the database is not as it was where the script was made',
            DETAIL = format('%%s, constraint %%I: %%s, made for: %%s', relation, name, present, expected),
            HINT = %2$s;
    END IF;
END
$procedure$;

$text$,
        snowflake_migrate_internal.dollar_quoted(snowflake_migrate_internal.script_facts_query()), quote_literal(hint))
$function$;

-- What depends on tables, for the trial.
CREATE FUNCTION snowflake_migrate_internal.script_description_procedures()
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format(
$text$-- What depends on tables and is created again, as this server prints it.
CREATE OR REPLACE FUNCTION :"schema".widening_description(relations text[]) RETURNS TABLE (object text, properties jsonb)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off AS %1$s;

-- MAINTAIN on views, and that which they had before they were created again.
CREATE OR REPLACE FUNCTION :"schema".widening_maintain(relations text[]) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
    SELECT coalesce(jsonb_agg(s.statement), '[]')
    FROM widening_description(relations) AS d CROSS JOIN LATERAL jsonb_array_elements(d.properties -> 'maintain') AS s (statement)
$procedure$;
CREATE OR REPLACE PROCEDURE :"schema".widening_grant(former jsonb, relations text[])
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    missing text;
BEGIN
    FOR missing IN SELECT jsonb_array_elements_text(former) EXCEPT SELECT jsonb_array_elements_text(widening_maintain(relations)) LOOP
        EXECUTE missing;
    END LOOP;
END
$procedure$;

-- Makes what has another definition once more from the former one.
CREATE OR REPLACE PROCEDURE :"schema".widening_again(former jsonb, present jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET check_function_bodies = off AS $procedure$
DECLARE
    statement text;
BEGIN
    FOR statement IN SELECT f.value ->> 'again' FROM jsonb_each(former) AS f JOIN jsonb_each(present) AS n USING (key)
                     WHERE f.value -> 'definition' <> n.value -> 'definition' LOOP
        EXECUTE statement;
    END LOOP;
END
$procedure$;

$text$, snowflake_migrate_internal.dollar_quoted(snowflake_migrate_internal.script_description_query()))
$function$;

-- The procedure of the trial, and that which looks for rows.
CREATE FUNCTION snowflake_migrate_internal.script_trial_procedures(
    hint text DEFAULT snowflake_migrate_internal.script_drift_hint()
) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.script_description_procedures() || format(
$text$-- Drops and creates what depends on the tables of a unit, without a change of types, compares, and takes that back.
CREATE OR REPLACE PROCEDURE :"schema".widening_try(unit integer, relations text[])
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    former jsonb;
    maintain CONSTANT jsonb := widening_maintain(relations);
    present jsonb;
    again jsonb;
    differences text;
BEGIN
    SELECT jsonb_object_agg(object, properties) INTO former FROM widening_description(relations);
    BEGIN
        EXECUTE format('CALL widening_drop_%%s()', unit);
        EXECUTE format('CALL widening_create_%%s()', unit);
        CALL widening_grant(maintain, relations);
        SELECT jsonb_object_agg(object, properties) INTO present FROM widening_description(relations);
        CALL widening_again(former, present);
        SELECT jsonb_object_agg(object, properties -> 'definition') INTO again FROM widening_description(relations);
        RAISE EXCEPTION USING ERRCODE = 'WS001';
    EXCEPTION
        WHEN SQLSTATE 'WS001' THEN
            NULL;
        WHEN lock_not_available OR deadlock_detected THEN
            RAISE;
        WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS differences = PG_EXCEPTION_DETAIL;
            differences := concat_ws(': ', SQLERRM, nullif(differences, ''));
    END;
    IF differences IS NULL THEN
        SELECT string_agg(CASE WHEN f.value IS NULL OR n.value IS NULL
                               THEN format('%%s %%s', key, CASE WHEN n.value IS NULL THEN 'is new' ELSE 'is missing' END)
                               ELSE (SELECT string_agg(format('%%s of %%s: %%s, made for: %%s', p.property, key,
                                                              coalesce(f.value ->> p.property, 'none'),
                                                              coalesce(n.value ->> p.property, 'none')), E'\n' ORDER BY p.property)
                                     FROM jsonb_object_keys(f.value) AS p (property)
                                     WHERE p.property NOT IN ('maintain', 'again', 'again as')
                                       AND f.value -> p.property IS DISTINCT FROM n.value -> p.property
                                       AND (p.property <> 'definition'
                                            OR again -> coalesce(f.value ->> 'again as', key) IS DISTINCT FROM n.value -> p.property)) END,
                          E'\n' ORDER BY key)
        INTO differences
        FROM jsonb_each(former) AS f FULL JOIN jsonb_each(present) AS n USING (key)
        WHERE f.value IS DISTINCT FROM n.value;
    END IF;
    IF differences IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'views or other objects are not as they were where the script was made',
            DETAIL = left(differences, 4000),
            HINT = %1$s;
    END IF;
END
$procedure$;

-- Stops if rows violate a foreign key, which is checked again after the rewrite.
CREATE OR REPLACE PROCEDURE :"schema".widening_check_rows(foreign_key text, query text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $procedure$
DECLARE
    example text;
BEGIN
    EXECUTE format('SELECT v::text FROM (%%s LIMIT 1) AS v', query) INTO example;
    IF example IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '23503', MESSAGE = format('rows violate foreign key %%s', foreign_key),
            DETAIL = format('One of them: %%s.', left(example, 500)), HINT = query || ';';
    END IF;
END
$procedure$;$text$, quote_literal(hint))
$function$;

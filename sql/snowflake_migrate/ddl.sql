-- The statements of a plan as a script, for review. It is made of the commands that the
-- steps execute, and of those that widen() and swap() execute. So the script cannot
-- differ from what is executed.

-- A text as comment lines. A line break in a name must not end the comment.
CREATE FUNCTION snowflake_migrate_internal.comment_lines(content text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT rtrim(regexp_replace(regexp_replace(content, E'\\s+', ' ', 'g'), E'(.{1,110}|\\S+)(?:\\s|$)', E'-- \\1\n', 'g'), E'\n')
$function$;

-- The beginning of a part of the script, which is that of one role, as the commands of
-- a new session. SET ROLE would be no protection from the code of the role's tables:
-- that can set another role, up to that of the session. So the part is refused to any other
-- role that has logged in.
CREATE FUNCTION snowflake_migrate_internal.part_head(role oid, is_first boolean, caller_path text)
RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT l.line
    FROM (SELECT quote_ident(pg_get_userbyid(role)), pg_get_userbyid(role)) AS r (quoted, name),
    LATERAL (VALUES
        (1, ''),
        (2, format('-- To be run by role %s:', r.quoted)),
        (3, E'\\if :{?set_role}'),
        (4, format('SET ROLE %s;', r.quoted)),
        (5, E'\\else'),
        (6, CASE WHEN NOT is_first THEN format(E'\\connect - %s', r.quoted) END),
        (7, snowflake_migrate_internal.do_block(format(
            E'    IF current_user OPERATOR(pg_catalog.<>) %1$L::pg_catalog.name\n'
            '       OR (SELECT s.usesysid FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) AS s) OPERATOR(pg_catalog.<>)\n'
            '          (SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE r.rolname OPERATOR(pg_catalog.=) %1$L::pg_catalog.name) THEN\n'
            '        RAISE EXCEPTION USING ERRCODE = ''42501'', MESSAGE = %2$L,\n'
            '            DETAIL = ''Code in its tables has the privileges of the role that has logged in, also after SET ROLE.'',\n'
            '            HINT = ''Log in as that role. Only if it is trusted: psql -v set_role=on'';\n    END IF;\n',
            r.name, format('this part of the script has to be run by role "%s"', r.name))) || ';'),
        (8, E'\\endif'),
        (9, 'SET standard_conforming_strings = on;'),
        (10, format('SET search_path = %s;', caller_path))) AS l (place, line)
    WHERE l.line IS NOT NULL
    ORDER BY l.place
$function$;

-- The statements of all steps, each with the role that has to run it; of a step that changes
-- nothing one without content.
CREATE FUNCTION snowflake_migrate_internal.script_statements(steps snowflake_migrate_internal.step[], keep_sequence boolean) RETURNS TABLE (
    step integer, lock_level text, note text, is_one boolean, role oid, is_own_path boolean, content text,
    has_several_roles boolean, has_several boolean
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH step AS MATERIALIZED (
        SELECT p.number AS step, p.kind, p.lock_level, snowflake_migrate_internal.description_of(p) AS note, p.commands, p.keys,
               bool_and(p.in_transaction) OVER () AS is_one
        FROM unnest(steps) AS p
    ), superuser AS MATERIALIZED (
        -- Who may set the states of triggers of foreign keys.
        SELECT coalesce(min(r.oid) FILTER (WHERE r.rolname = current_user), min(r.oid)) AS oid FROM pg_roles AS r WHERE r.rolsuper
    ), statement AS MATERIALIZED (
        SELECT p.step, p.kind, p.lock_level, p.note, p.is_one,
               CASE WHEN s.content IS NOT NULL THEN coalesce(s.role, superuser.oid) END AS role, s.is_own_path, s.content, s.place
        FROM step AS p
        CROSS JOIN superuser
        LEFT JOIN LATERAL (
            SELECT s.role, s.is_own_path, s.content, row_number() OVER (ORDER BY c.place, s.place) AS place
            FROM generate_subscripts(p.commands, 1) AS c (place)
            CROSS JOIN LATERAL snowflake_migrate_internal.command_script(p.commands[c.place], p.keys, coalesce(keep_sequence, false))
                WITH ORDINALITY AS s (role, is_own_path, content, place)) AS s ON true
    )
    SELECT s.step, s.lock_level, s.note, s.is_one, s.role, s.is_own_path, s.content,
           min(s.role) OVER () <> max(s.role) OVER (), count(*) OVER (PARTITION BY s.step, s.role) > 1 AND s.kind <> 'copy'
    FROM statement AS s ORDER BY s.step, s.place
$function$;

-- The script, for psql: a part for each role that has to run one. Statements of a step that has
-- several are one transaction, unless the whole plan can be one. A part is one at most.
CREATE FUNCTION snowflake_migrate_internal.ddl(
    steps snowflake_migrate_internal.step[], title text, in_steps boolean, path text, keep_sequence boolean
) RETURNS SETOF text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
DECLARE
    caller_path CONSTANT text := coalesce(nullif(path, ''), '''''');
    own_settings CONSTANT text[] := ARRAY['datestyle', 'intervalstyle', 'check_function_bodies', 'default_tablespace'];
    own_values CONSTANT text[] := ARRAY['''ISO''', '''postgres''', 'off', ''''''];
    present_role oid;
    is_own_path boolean;
    step_number integer := 0;
    each_step boolean;
    in_block boolean := false;
    command record;
BEGIN
    FOR command IN SELECT s.* FROM snowflake_migrate_internal.script_statements(steps, keep_sequence) AS s LOOP
        IF step_number = 0 THEN
            each_step := in_steps OR NOT command.is_one OR command.has_several_roles;
            RETURN NEXT snowflake_migrate_internal.comment_lines(title);
            RETURN NEXT CASE WHEN each_step THEN '-- For review, and for a copy of the database: psql -f'
                             ELSE '-- For review, and for a copy of the database, in one transaction: psql -1 -f' END;
            RETURN NEXT '-- The plan also checks each step, and tries its locks for a short time only: migrate by the plan.';
            RETURN NEXT E'\\set ON_ERROR_STOP on';
        END IF;
        IF in_block AND (command.step <> step_number OR command.role <> present_role) THEN
            RETURN NEXT 'COMMIT;';
            in_block := false;
        END IF;
        IF command.role <> present_role OR present_role IS NULL AND command.role IS NOT NULL THEN
            RETURN QUERY SELECT h.line
                         FROM snowflake_migrate_internal.part_head(command.role, present_role IS NULL, caller_path) AS h (line);
            present_role := command.role;
            is_own_path := false;
        END IF;
        IF command.step <> step_number THEN
            step_number := command.step;
            RETURN NEXT '';
            RETURN NEXT snowflake_migrate_internal.comment_lines(
                format('Step %s (%s): %s', command.step, command.lock_level, command.note));
        END IF;
        IF command.content IS NULL THEN
            RETURN NEXT '-- It changes nothing in the database.';
            CONTINUE;
        END IF;
        IF each_step AND command.has_several AND NOT in_block THEN
            RETURN NEXT 'BEGIN;';
            in_block := true;
        END IF;
        IF command.is_own_path <> is_own_path THEN
            IF command.is_own_path THEN
                RETURN NEXT 'SET search_path = pg_catalog, pg_temp;';
                RETURN QUERY SELECT format('SET %s = %s;', o.setting, o.value) FROM unnest(own_settings, own_values) AS o (setting, value);
            ELSE
                RETURN NEXT format('SET search_path = %s;', caller_path);
                RETURN QUERY SELECT format('RESET %s;', o.setting) FROM unnest(own_settings) AS o (setting);
            END IF;
            is_own_path := command.is_own_path;
        END IF;
        RETURN NEXT command.content;
    END LOOP;
    IF in_block THEN
        RETURN NEXT 'COMMIT;';
    END IF;
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.ddl(keys snowflake_migrate_internal.key[], online boolean, path text, keep_sequence boolean)
RETURNS SETOF text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
BEGIN
    keys := CASE WHEN online THEN snowflake_migrate_internal.unfinished(keys) ELSE keys END;
    RETURN QUERY SELECT d.line FROM snowflake_migrate_internal.ddl(
        ARRAY(SELECT p FROM snowflake_migrate_internal.plan(keys, online, path, keep_sequence) AS p),
        format('The statements of the migration of %s.', snowflake_migrate_internal.key_names(keys)), coalesce(online, false),
        path, keep_sequence) AS d (line);
END
$function$;

-- The statements of a plan as a script, for review. They are read from the steps
-- themselves, and from the functions that make the statements of the steps that call
-- widen() and swap(). So the script cannot differ from what is executed.

-- A text as comment lines. A line break in a name must not end the comment.
CREATE FUNCTION snowflake_migrate_internal.comment_lines(content text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT rtrim(regexp_replace(regexp_replace(content, E'\\s+', ' ', 'g'), E'(.{1,110}|\\S+)(?:\\s|$)', E'-- \\1\n', 'g'), E'\n')
$function$;

-- The value of a string constant as format() writes it with %L.
CREATE FUNCTION snowflake_migrate_internal.literal_value(constant text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN trimmed.text LIKE 'E%'
                THEN replace(replace(substr(trimmed.text, 3, length(trimmed.text) - 3), '''''', ''''), E'\\\\', E'\\')
                ELSE replace(substr(trimmed.text, 2, length(trimmed.text) - 2), '''''', '''') END
    FROM (SELECT ltrim(constant)) AS trimmed (text)
$function$;

-- The owner of the relation that a statement names first, with its schema; NULL if
-- there is none.
CREATE FUNCTION snowflake_migrate_internal.altered_owner(statement text)
RETURNS oid LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.relowner
    FROM regexp_match(statement, E'(?:"(?:[^"]|"")+"|[[:alpha:]_][[:alnum:]_$]*)\\.(?:"(?:[^"]|"")+"|[[:alpha:]_][[:alnum:]_$]*)') AS m (name)
    JOIN pg_class AS c ON c.oid = to_regclass(m.name[1])
$function$;

-- The code of a DO statement; any other statement as it is.
CREATE FUNCTION snowflake_migrate_internal.block_of(statement text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN statement LIKE 'DO $do$%' THEN statement
                WHEN statement LIKE 'DO %' THEN snowflake_migrate_internal.literal_value(substr(statement, 4))
                ELSE statement END
$function$;

-- What a step that alters tables executes: the arguments of alter() and run(), the
-- locks, and the statements written out. Checks that change nothing are left out.
CREATE FUNCTION snowflake_migrate_internal.step_statements(statement text)
RETURNS TABLE (place bigint, kind text, argument text, content text) LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH part AS (
        -- Any other constant is consumed by the last alternative, whatever it contains.
        SELECT m.place, m.found
        FROM regexp_matches(snowflake_migrate_internal.block_of(statement),
            E'snowflake_migrate_internal\\.(alter)\\((E?''(?:[^'']|'''')*'')::pg_catalog\\.text\\)'
            '|snowflake_internal\\.(run)\\(E?''(?:[^'']|'''')*''::pg_catalog\\.regclass, (E?''(?:[^'']|'''')*'')::pg_catalog\\.text\\)'
            '|snowflake_migrate_internal\\.(lock)\\((E?''(?:[^'']|'''')*'')::pg_catalog\\.regclass\\[\\], ''([A-Z ]+)''::pg_catalog\\.text\\)'
            '|snowflake_migrate_internal\\.(restore_trigger_states)\\((E?''(?:[^'']|'''')*'')::pg_catalog\\.jsonb\\)'
            '|snowflake_migrate_internal\\.(check_switch|copy_trigger_states|recompile)\\('
            '|\\n    ((?:ALTER|LOCK) (?:"(?:[^"]|"")*"|[^";])*);'
            '|(E?''(?:[^'']|'''')*'')', 'g') WITH ORDINALITY AS m (found, place)
    )
    SELECT p.place,
           coalesce(p.found[1], p.found[3], p.found[5], p.found[8], p.found[10], 'alter'),
           p.found[7],
           coalesce(snowflake_migrate_internal.literal_value(coalesce(p.found[2], p.found[4], p.found[6], p.found[9])), p.found[11])
    FROM part AS p WHERE p.found[12] IS NULL
$function$;

-- Sets the states of the triggers of foreign keys, as restore_trigger_states(). The
-- names of these triggers contain OIDs, which differ in another database.
CREATE FUNCTION snowflake_migrate_internal.trigger_state_statements(states jsonb)
RETURNS TABLE (place bigint, statement text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT s.place, format('DO %L', format(
        E'BEGIN\n    EXECUTE (SELECT pg_catalog.format(''ALTER TABLE %%s %s TRIGGER %%I'', t.tgrelid::pg_catalog.regclass, t.tgname)\n'
        '             FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_constraint AS k ON k.oid = t.tgconstraint\n'
        '             WHERE k.conrelid = %L::pg_catalog.regclass AND k.conname = %L\n'
        '               AND t.tgrelid = %L::pg_catalog.regclass AND t.tgfoid = %L::pg_catalog.regprocedure);\nEND',
        CASE e ->> 'state' WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE' END,
        snowflake_migrate_internal.name_of((e ->> 'table')::oid::regclass), e ->> 'foreign_key',
        snowflake_migrate_internal.name_of((e ->> 'relation')::oid::regclass), ((e ->> 'function')::oid)::regprocedure))
    FROM jsonb_array_elements(states) WITH ORDINALITY AS s (e, place)
$function$;

-- The statements that swap() executes. The value of an identity column's sequence is
-- read when the script runs, and kept in variables of psql.
CREATE FUNCTION snowflake_migrate_internal.swap_script(keys snowflake_migrate_internal.key[], keep_sequence boolean)
RETURNS TABLE (role oid, is_own_path boolean, statement text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    narrow CONSTANT snowflake_migrate_internal.key[] := snowflake_migrate_internal.swap_columns(keys);
    identity_columns snowflake_migrate_internal.origins[] := ARRAY[]::snowflake_migrate_internal.origins[];
    origin snowflake_migrate_internal.origins;
    key record;
BEGIN
    is_own_path := true;
    FOR key IN
        SELECT k.target, k.column_name, t.relowner, q.seqcache, snowflake_migrate_internal.name_of(s.sequence) AS sequence, k.place
        FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
        JOIN pg_class AS t ON t.oid = k.target
        CROSS JOIN LATERAL snowflake_migrate_internal.source(k.target, k.column_name) AS s
        JOIN pg_sequence AS q ON q.seqrelid = s.sequence
        WHERE keep_sequence AND s.kind LIKE 'identity %'
    LOOP
        role := key.relowner;
        -- The lock that nextval() waits for; nothing changes.
        statement := format('ALTER SEQUENCE %s CACHE %s', key.sequence, key.seqcache);
        RETURN NEXT;
        statement := format(E'SELECT s.last_value AS value_%1$s, s.is_called AS is_called_%1$s FROM %2$s AS s \\gset', key.place, key.sequence);
        RETURN NEXT;
        origin := snowflake_migrate_internal.present_origin(key.target, key.column_name);
        identity_columns := identity_columns || origin;
    END LOOP;
    RETURN QUERY
        SELECT s.role, false, s.statement
        FROM snowflake_migrate_internal.dependent_statements(narrow) WITH ORDINALITY AS s (phase, role, statement, identity, place)
        WHERE s.phase = 1 ORDER BY s.place;
    RETURN QUERY
        SELECT coalesce(c.role, t.relowner), strpos(c.statement, ' SET DEFAULT ') > 0, c.statement
        FROM snowflake_migrate_internal.swap_commands(keys, keep_sequence) AS s
        CROSS JOIN LATERAL unnest(s.relations, s.statements, s.roles) WITH ORDINALITY AS c (relation, statement, role, place)
        JOIN pg_class AS t ON t.oid = c.relation
        ORDER BY c.place;
    -- The new constraint's name follows from that of the shadow column.
    RETURN QUERY
        SELECT t.relowner, true, format('DO %L', format(
            E'DECLARE\n    present CONSTANT pg_catalog.name := (\n'
            '        SELECT k.conname FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND k.conkey = ARRAY[a.attnum]\n'
            '        WHERE k.conrelid = %1$L::pg_catalog.regclass AND k.contype = ''n'' AND a.attname = %2$L);\nBEGIN\n'
            '    IF present <> %3$L THEN\n        EXECUTE pg_catalog.format(''ALTER TABLE %%s RENAME CONSTRAINT %%I TO %%I'', %1$L, present, %3$L);\n    END IF;\n%4$s%5$sEND',
            snowflake_migrate_internal.name_of(t.oid::regclass), e ->> 'column', e ->> 'name',
            CASE WHEN NOT (e ->> 'is_inherited')::boolean
                 THEN format(E'    ALTER TABLE %s ALTER CONSTRAINT %I NO INHERIT;\n', snowflake_migrate_internal.name_of(t.oid::regclass), e ->> 'name') END,
            CASE WHEN e ->> 'comment' IS NOT NULL
                 THEN format(E'    COMMENT ON CONSTRAINT %I ON %s IS %L;\n', e ->> 'name', snowflake_migrate_internal.name_of(t.oid::regclass), e ->> 'comment') END))
        FROM jsonb_array_elements(snowflake_migrate_internal.not_null_names(keys)) AS e
        JOIN pg_class AS t ON t.oid = (e ->> 'relation')::oid;
    FOREACH origin IN ARRAY identity_columns LOOP
        role := (SELECT t.relowner FROM pg_class AS t WHERE t.oid = origin.target);
        is_own_path := true;
        FOREACH statement IN ARRAY snowflake_migrate_internal.identity_statements(origin)
                                   || snowflake_migrate_internal.sequence_property_statements(
                                          snowflake_migrate_internal.identity_sequence_name(origin), origin, NULL) LOOP
            RETURN NEXT;
        END LOOP;
        statement := format('SELECT pg_catalog.setval(%L::pg_catalog.regclass, :value_%2$s, :''is_called_%2$s'')',
                            snowflake_migrate_internal.identity_sequence_name(origin),
                            (SELECT k.place FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
                             WHERE (k.target, k.column_name) = (origin.target, origin.column_name)));
        RETURN NEXT;
    END LOOP;
    RETURN QUERY
        SELECT t.relowner, false, s.statement
        FROM unnest(keys) AS k
        CROSS JOIN LATERAL snowflake_migrate_internal.boundary_statements(snowflake_migrate_internal.origin_to_record(k.target, k.column_name)) AS s
        JOIN pg_class AS t ON t.oid = s.relation
        WHERE NOT keep_sequence;
    RETURN QUERY
        SELECT s.role, true, s.statement
        FROM snowflake_migrate_internal.dependent_statements(narrow) WITH ORDINALITY AS s (phase, role, statement, identity, place)
        WHERE s.phase = 2 ORDER BY s.place;
END
$function$;

-- The statements that widen() executes.
CREATE FUNCTION snowflake_migrate_internal.widen_script(columns snowflake_migrate_internal.key[])
RETURNS TABLE (role oid, is_own_path boolean, statement text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH saved AS MATERIALIZED (
        SELECT s.* FROM snowflake_migrate_internal.dependent_statements(columns) WITH ORDINALITY AS s (phase, role, statement, identity, place)
    ), tree AS MATERIALIZED (
        SELECT ARRAY(SELECT DISTINCT f.relation FROM unnest(columns) AS given
                     CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(given.target, given.column_name) AS f
                     JOIN pg_class AS c ON c.oid = f.relation AND c.relkind IN ('r', 'p')) AS tables
    ), command (step, place, role, is_own_path, statement) AS (
        SELECT s.phase * 10, s.place, s.role, s.phase = 2, s.statement FROM saved AS s
      UNION ALL
        SELECT 11, w.place, c.relowner, false, w.statement
        FROM snowflake_migrate_internal.widening_statements(columns) WITH ORDINALITY AS w (relation, statement, place)
        JOIN pg_class AS c ON c.oid = w.relation
      UNION ALL
        SELECT 12, row_number() OVER (ORDER BY t.statement), c.relowner, false, t.statement
        FROM tree CROSS JOIN LATERAL snowflake_migrate_internal.statistics_targets(tree.tables) AS t
        JOIN pg_class AS c ON c.oid = t.relation
      UNION ALL
        SELECT 13, t.place, NULL, false, t.statement
        FROM tree CROSS JOIN LATERAL snowflake_migrate_internal.trigger_state_statements(snowflake_migrate_internal.trigger_states(tree.tables)) AS t
    )
    SELECT c.role, c.is_own_path, c.statement FROM command AS c ORDER BY c.step, c.place
$function$;

-- The statements of one step of a plan. Where the role is NULL, only a superuser may
-- execute one.
CREATE FUNCTION snowflake_migrate_internal.step_script(keys snowflake_migrate_internal.key[], statement text, keep_sequence boolean)
RETURNS TABLE (role oid, is_own_path boolean, content text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    block CONSTANT text := snowflake_migrate_internal.block_of(statement);
    first_owner CONSTANT oid := (SELECT c.relowner FROM pg_class AS c WHERE c.oid = (keys[1]).target);
    part record;
    copied record;
    key record;
BEGIN
    IF strpos(statement, 'snowflake_migrate_internal.swap(') > 0 THEN
        RETURN QUERY SELECT c.relowner, false, format('SELECT snowflake_migrate_internal.record_origin(%L::pg_catalog.regclass, %L::pg_catalog.name)',
                                                      snowflake_migrate_internal.name_of(k.target), k.column_name)
                     FROM unnest(keys) AS k JOIN pg_class AS c ON c.oid = k.target WHERE NOT keep_sequence;
        RETURN QUERY SELECT s.role, s.is_own_path, s.statement FROM snowflake_migrate_internal.swap_script(keys, keep_sequence) AS s;
        RETURN;
    ELSIF strpos(statement, 'SELECT snowflake_migrate_internal.widen(') = 1 THEN
        RETURN QUERY SELECT s.role, s.is_own_path, s.statement
                     FROM snowflake_migrate_internal.dependent_groups(keys) AS g
                     CROSS JOIN LATERAL snowflake_migrate_internal.widen_script(g.columns) AS s
                     WHERE strpos(step_script.statement, format('.widen(%s, ', snowflake_migrate_internal.key_arguments(g.columns))) > 0;
        RETURN;
    ELSIF strpos(statement, 'SELECT snowflake_migrate_internal.widen_sequence(') = 1 THEN
        RETURN QUERY SELECT c.relowner, true, snowflake_migrate_internal.sequence_widening(n.sequence)
                     FROM snowflake_migrate_internal.narrow_sequences(keys) AS n JOIN pg_class AS c ON c.oid = n.relation
                     WHERE strpos(statement, format('(%L::pg_catalog.regclass, %L::pg_catalog.name)',
                                                    snowflake_migrate_internal.name_of(n.relation), n.column_name)) > 0;
        RETURN;
    ELSIF strpos(statement, 'SELECT snowflake_migrate_internal.record_origin(') = 1 THEN
        RETURN QUERY SELECT snowflake_migrate_internal.altered_owner(substr(statement, strpos(statement, '('))), false, statement;
        RETURN;
    ELSIF strpos(statement, 'CALL ') = 1 THEN
        -- In batches of one transaction each; here in one statement for each table.
        FOR copied IN
            SELECT s.relation, c.relowner,
                   EXISTS (SELECT FROM snowflake_migrate_internal.update_triggers(s.relation) AS t WHERE t.enabled = 'O') AS has_triggers,
                   format('UPDATE ONLY %s SET %s WHERE %s', snowflake_migrate_internal.name_of(s.relation),
                          string_agg(format('%I = %I', s.shadow_name, s.narrow), ', ' ORDER BY s.attribute),
                          string_agg(format('%I IS DISTINCT FROM %I', s.shadow_name, s.narrow), ' OR ' ORDER BY s.attribute)) AS text
            FROM snowflake_migrate_internal.shadows(keys) AS s JOIN pg_class AS c ON c.oid = s.relation
            WHERE NOT s.is_filled
            GROUP BY s.relation, c.relowner
            ORDER BY s.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, s.relation::text
        LOOP
            is_own_path := false;
            role := copied.relowner;
            IF copied.has_triggers THEN
                content := 'SET session_replication_role = ''replica''';
                RETURN NEXT;
            END IF;
            content := copied.text;
            RETURN NEXT;
            IF copied.has_triggers THEN
                content := 'RESET session_replication_role';
                RETURN NEXT;
            END IF;
        END LOOP;
        RETURN;
    ELSIF statement !~ '^(DO|SELECT) ' THEN
        RETURN QUERY SELECT coalesce(snowflake_migrate_internal.altered_owner(statement), first_owner), false, statement;
        RETURN;
    END IF;
    FOR part IN SELECT p.* FROM snowflake_migrate_internal.step_statements(statement) AS p ORDER BY p.place LOOP
        is_own_path := false;
        IF part.kind = 'lock' THEN
            content := format('LOCK TABLE %s IN %s MODE', (SELECT string_agg('ONLY ' || l.name, ', ' ORDER BY l.name COLLATE "C")
                                                           FROM unnest(part.content::text[]) AS l (name)), part.argument);
            -- No part of the script can lock the tables of several owners.
            role := (SELECT CASE count(DISTINCT c.relowner) WHEN 1 THEN min(c.relowner::text)::oid END
                     FROM unnest(part.content::regclass[]) AS l (relation) JOIN pg_class AS c ON c.oid = l.relation);
            IF role IS NOT NULL THEN
                RETURN NEXT;
            END IF;
        ELSIF part.kind IN ('alter', 'run') THEN
            role := coalesce(snowflake_migrate_internal.altered_owner(part.content), first_owner);
            content := part.content;
            RETURN NEXT;
        ELSIF part.kind = 'check_switch' THEN
            FOR key IN
                SELECT k.target, k.column_name, c.relowner
                FROM unnest(keys) AS k JOIN pg_class AS c ON c.oid = k.target
                WHERE strpos(block, format('check_switch(%L::pg_catalog.regclass, %L::pg_catalog.name', snowflake_migrate_internal.name_of(k.target), k.column_name)) > 0
            LOOP
                role := key.relowner;
                content := format('SELECT snowflake_migrate_internal.record_origin(%L::pg_catalog.regclass, %L::pg_catalog.name)',
                                  snowflake_migrate_internal.name_of(key.target), key.column_name);
                RETURN NEXT;
                RETURN QUERY SELECT key.relowner, false, s.statement
                             FROM snowflake_migrate_internal.boundary_statements(snowflake_migrate_internal.origin_to_record(key.target, key.column_name)) AS s;
            END LOOP;
        ELSIF part.kind = 'restore_trigger_states' THEN
            RETURN QUERY SELECT NULL::oid, true, t.statement
                         FROM snowflake_migrate_internal.trigger_state_statements(part.content::jsonb) AS t ORDER BY t.place;
        ELSIF part.kind = 'copy_trigger_states' THEN
            RETURN QUERY SELECT NULL::oid, true, t.statement
                         FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS f
                         CROSS JOIN LATERAL snowflake_migrate_internal.trigger_state_statements((
                             SELECT jsonb_agg(e || jsonb_build_object('foreign_key', f.shadow_name) ORDER BY s.place)
                             FROM jsonb_array_elements(snowflake_migrate_internal.trigger_states(ARRAY[f.relation])) WITH ORDINALITY AS s (e, place)
                             WHERE e ->> 'foreign_key' = f.name AND (e ->> 'table')::oid = f.relation)) AS t
                         WHERE strpos(block, format('copy_trigger_states(%L::pg_catalog.regclass, %L::pg_catalog.name',
                                                        snowflake_migrate_internal.name_of(f.relation), f.name)) > 0
                         ORDER BY t.place;
        END IF;
    END LOOP;
END
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

-- The script, for psql: a part for each role that has to run one. Statements of a step that has
-- several are one transaction, unless the whole plan can be one. A part is one at most.
CREATE FUNCTION snowflake_migrate_internal.ddl(keys snowflake_migrate_internal.key[], online boolean, path text, keep_sequence boolean)
RETURNS SETOF text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
DECLARE
    caller_path CONSTANT text := coalesce(nullif(path, ''), '''''');
    own_settings CONSTANT text[] := ARRAY['search_path = pg_catalog, pg_temp', 'datestyle = ''ISO''', 'intervalstyle = ''postgres''',
                                          'check_function_bodies = off', 'default_tablespace = '''''];
    -- Who may set the states of triggers of foreign keys.
    superuser CONSTANT oid := (SELECT coalesce(min(r.oid) FILTER (WHERE r.rolname = current_user), min(r.oid)) FROM pg_roles AS r WHERE r.rolsuper);
    present_role oid;
    is_own_path boolean;
    step_number integer := 0;
    in_steps boolean;
    in_block boolean := false;
    command record;
BEGIN
    keys := CASE WHEN online THEN snowflake_migrate_internal.unfinished(keys) ELSE keys END;
    FOR command IN
        WITH step AS MATERIALIZED (
            SELECT p.step, p.statement, p.lock_level, p.note, bool_and(p.in_transaction) OVER () AS is_one
            FROM snowflake_migrate_internal.plan(keys, online, path, keep_sequence) AS p
            WHERE p.statement IS NOT NULL
        ), command AS MATERIALIZED (
            SELECT p.*, CASE WHEN s.content IS NOT NULL THEN coalesce(s.role, superuser) END AS role, s.is_own_path, s.content, s.place
            FROM step AS p
            LEFT JOIN LATERAL snowflake_migrate_internal.step_script(keys, p.statement, coalesce(keep_sequence, false))
                WITH ORDINALITY AS s (role, is_own_path, content, place) ON true
        )
        SELECT c.*, min(c.role) OVER () <> max(c.role) OVER () AS has_several_roles,
               count(*) OVER (PARTITION BY c.step, c.role) > 1 AND strpos(c.statement, 'CALL ') <> 1 AS has_several
        FROM command AS c ORDER BY c.step, c.place
    LOOP
        IF step_number = 0 THEN
            in_steps := coalesce(online, false) OR NOT command.is_one OR command.has_several_roles;
            RETURN NEXT snowflake_migrate_internal.comment_lines(format('The statements of the migration of %s.', snowflake_migrate_internal.key_names(keys)));
            RETURN NEXT CASE WHEN in_steps THEN '-- For review, and for a copy of the database: psql -f'
                             ELSE '-- For review, and for a copy of the database, in one transaction: psql -1 -f' END;
            RETURN NEXT '-- The plan also checks each step, and tries its locks for a short time only: migrate by the plan.';
            RETURN NEXT E'\\set ON_ERROR_STOP on';
        END IF;
        IF command.step <> step_number OR command.role <> present_role THEN
            IF in_block THEN
                RETURN NEXT 'COMMIT;';
                in_block := false;
            END IF;
        END IF;
        IF command.role <> present_role OR present_role IS NULL AND command.role IS NOT NULL THEN
            RETURN QUERY SELECT h.line FROM snowflake_migrate_internal.part_head(command.role, present_role IS NULL, caller_path) AS h (line);
            present_role := command.role;
            is_own_path := false;
        END IF;
        IF command.step <> step_number THEN
            step_number := command.step;
            RETURN NEXT '';
            RETURN NEXT snowflake_migrate_internal.comment_lines(format('Step %s (%s): %s', command.step, command.lock_level, command.note));
        END IF;
        IF command.content IS NULL THEN
            RETURN NEXT '-- It changes nothing in the database.';
            CONTINUE;
        END IF;
        IF in_steps AND command.has_several AND NOT in_block THEN
            RETURN NEXT 'BEGIN;';
            in_block := true;
        END IF;
        IF command.is_own_path <> is_own_path THEN
            IF command.is_own_path THEN
                RETURN QUERY SELECT format('SET %s;', o.setting) FROM unnest(own_settings) AS o (setting);
            ELSE
                RETURN NEXT format('SET search_path = %s;', caller_path);
                RETURN QUERY SELECT format('RESET %s;', split_part(o.setting, ' ', 1)) FROM unnest(own_settings[2:]) AS o (setting);
            END IF;
            is_own_path := command.is_own_path;
        END IF;
        -- A command of psql ends with its line.
        RETURN NEXT rtrim(command.content, E'; \n') || CASE WHEN command.content LIKE E'%\\\\gset' THEN '' ELSE ';' END;
    END LOOP;
    IF in_block THEN
        RETURN NEXT 'COMMIT;';
    END IF;
END
$function$;

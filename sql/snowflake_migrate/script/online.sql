-- The script that widens keys while their tables are in use, of its parts.

CREATE FUNCTION snowflake_migrate_internal.online_introduction(names text, owner name, schema_name text)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat_ws(E'\n', snowflake_migrate_internal.comment_lines(format(
        'Widens %s to bigint, with all columns that reference them, while the tables are in use. The sequences are kept.', names)),
        '--', snowflake_migrate_internal.comment_lines(format('To be run by role %s, with its own login:', quote_ident(owner))), format(
$text$--     psql -X -f this_file "host=... dbname=... user=..."        (no option -1, no transaction pooler)
--     psql -X -v check_only=on -f this_file ...                  compares and tries, changes nothing
--     psql -X -v revert=on -f this_file ...                      takes all back, until the swap
--
-- Each table gets a bigint column beside each narrow one, and a trigger that keeps it up to date. Rows are copied in batches, indexes
-- built concurrently, foreign keys added and validated. The swap replaces the columns: only the catalog changes.
-- Run the same file again after an error, or if psql, the connection or the server was stopped: it continues with the first unit
-- that is not done, and the copy with its next batch.
-- To stop: Ctrl-C, or pg_cancel_backend() in another session. Applications may work with any state between two units.
-- NEVER drop the schema of the script before its end: without the triggers, the tables refuse new rows. To give up: revert=on.
-- To watch, from another session:   SELECT * FROM %1$s.widening_progress;
-- To pause, and to continue:        UPDATE %1$s.widening_pace SET is_paused = true;
-- What applications notice: short waits for locks of at most a tenth of a second each; longer UPDATEs and INSERTs, by a trigger; new
-- columns of SELECT *; and after the swap, columns in another order, and errors of prepared statements until they reconnect.
--
-- Variables (psql -v name=value):
--     revert        on: goes back.
--     schema        schema for the state of the script. One that exists has to belong to the role, and is kept at the end.
--     lock_timeout  time to wait for locks that block no reader or writer (5s).
--     table_path    search_path for expressions of indexes and checks, instead of the one the script was made with.
--     messages      warning: without the progress of the copy (notice).
--     role_override on: the role need not be the one that has logged in. Only if all that its tables run is trusted.$text$, schema_name),
        snowflake_migrate_internal.script_variables(schema_name, true))
$function$;

-- The objects that the script adds, which are no difference; and the triggers that have a condition for some time.
CREATE FUNCTION snowflake_migrate_internal.online_own_facts(keys snowflake_migrate_internal.key[])
RETURNS TABLE (object text, fact text, value text, value_after text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH own (relation, fact) AS (
        SELECT s.relation, f.fact
        FROM snowflake_migrate_internal.shadows(keys) AS s
        CROSS JOIN LATERAL (VALUES (format('type of column %I', s.shadow_name)), (format('column %I', s.shadow_name)),
                                   (format('constraint %I', s.check_name)), (format('trigger %I', s.trigger_name))) AS f (fact)
      UNION ALL
        SELECT k.relation, format('constraint %I', k.shadow_name) FROM snowflake_migrate_internal.shadow_checks(keys) AS k
      UNION ALL
        SELECT i.relation, format('index %I', i.shadow_name) FROM snowflake_migrate_internal.shadow_indexes(keys) AS i
      UNION ALL
        SELECT x.relation, format('statistics %I', x.shadow_name) FROM snowflake_migrate_internal.shadow_statistics(keys) AS x
      UNION ALL
        SELECT f.relation, format('constraint %I', f.shadow_name) FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS f
      UNION ALL
        SELECT f.referenced, format('foreign key %I of %I.%I', f.shadow_name, n.nspname, c.relname)
        FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS f
        JOIN pg_class AS c ON c.oid = f.relation JOIN pg_namespace AS n ON n.oid = c.relnamespace
    )
    SELECT r.name, o.fact, NULL, '*'
    FROM (SELECT DISTINCT own.relation, own.fact FROM own) AS o
    JOIN snowflake_migrate_internal.script_relations(keys) AS r ON r.relation = o.relation
  UNION ALL
    SELECT r.name, format('trigger %I', t.tgname), v.values[1], v.values[2]
    FROM snowflake_migrate_internal.unguarded_triggers(ARRAY(
        SELECT g.relation FROM snowflake_migrate_internal.guarded_tables(keys) AS g)) AS u
    JOIN snowflake_migrate_internal.script_relations(keys) AS r ON r.relation = u.relation
    JOIN pg_trigger AS t ON t.oid = u.trigger_oid
    JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = p.pronamespace
    -- As script_object_facts() has it.
    CROSS JOIN LATERAL (SELECT array_agg(concat_ws(', ', t.tgtype, t.tgenabled, format('%I.%I', n.nspname, p.proname),
                                                   CASE WHEN t.tgdeferrable THEN 'deferrable' END,
                                                   CASE WHEN t.tgqual IS NOT NULL OR c.has THEN 'with a condition' END,
                                                   encode(t.tgargs, 'hex')) ORDER BY c.has) AS values
                        FROM (VALUES (false), (true)) AS c (has)) AS v
$function$;

-- What the swap creates again as it was where the script was made: compared as texts, which only one version prints alike.
CREATE FUNCTION snowflake_migrate_internal.online_texts(keys snowflake_migrate_internal.key[], compared text)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format(
$text$SELECT pg_catalog.current_setting('server_version_num')::integer / 10000 = %1$s AS same_version \gset widening_
\if :widening_same_version
CREATE TEMPORARY TABLE widening_made_texts (object text, part text, property text, value text) ON COMMIT DROP;
%2$sCALL :"schema".widening_compare_texts(%3$s);
\else
\echo another version than that of the copy: not compared are expressions of defaults and indexes, statistics,
\echo settings of columns, and comments
\endif
$text$, current_setting('server_version_num')::integer / 10000,
        (SELECT format(E'INSERT INTO pg_temp.widening_made_texts VALUES\n%s;\n',
                       string_agg(format('    (%L, %L, %L, %L)', t.object, t.part, t.property, t.value), E',\n' ORDER BY t.place))
         FROM snowflake_migrate_internal.script_texts(snowflake_migrate_internal.online_compared(keys))
             WITH ORDINALITY AS t (object, part, property, value, place)), compared)
$function$;

-- The procedures that are made of the plan's statements, and the trial, at the first start only.
CREATE FUNCTION snowflake_migrate_internal.online_checks(keys snowflake_migrate_internal.key[], swap_number integer)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH dependent AS MATERIALIZED (
        SELECT array_agg(snowflake_migrate_internal.terminated(s.statement) ORDER BY s.place) FILTER (WHERE s.phase = 1) AS drops,
               array_agg(snowflake_migrate_internal.terminated(s.statement) ORDER BY s.place) FILTER (WHERE s.phase = 2) AS creations
        FROM snowflake_migrate_internal.dependent_statements(snowflake_migrate_internal.swap_columns(keys), true)
            WITH ORDINALITY AS s (phase, role, statement, identity, place)
    ), compared (names, locked, views) AS MATERIALIZED (
        SELECT quote_literal(snowflake_migrate_internal.online_compared(keys)::text),
               quote_literal(snowflake_migrate_internal.online_locked(keys)::text),
               quote_literal(snowflake_migrate_internal.online_materialized_views(keys)::text)
    )
    SELECT concat(
        (SELECT format(E'INSERT INTO :"schema".widening_made_for VALUES\n%s\nON CONFLICT DO NOTHING;\n',
                       string_agg(format('    (%L, %L, %L, %L)', f.object, f.fact, f.value, f.value_after), E',\n'
                                  ORDER BY f.object COLLATE "C", f.fact COLLATE "C"))
         FROM snowflake_migrate_internal.online_own_facts(keys) AS f),
        snowflake_migrate_internal.script_comparison(keys),
        snowflake_migrate_internal.script_procedure('widening_drop_' || swap_number, coalesce(d.drops, ARRAY['SELECT;'])),
        snowflake_migrate_internal.online_change_procedure(keys, 'widening_change_' || swap_number),
        snowflake_migrate_internal.script_procedure('widening_create_' || swap_number, coalesce(d.creations, ARRAY['SELECT;'])),
        (SELECT string_agg(snowflake_migrate_internal.script_procedure(format('widening_%s_guards_%s', p.prefix, g.place),
                    ARRAY(SELECT s.content FROM snowflake_migrate_internal.guard_script(g.relation, p.prefix = 'set') AS s)), ''
                    ORDER BY g.place, p.prefix)
         FROM snowflake_migrate_internal.guarded_tables(keys) AS g CROSS JOIN (VALUES ('set'), ('take')) AS p (prefix)),
        E'SELECT NOT EXISTS (SELECT FROM :"schema".widening_unit) AS first \\gset widening_\n\\if :widening_first\n',
        CASE WHEN d.drops IS NOT NULL
             THEN format(E'CALL :"schema".widening_require_no_data(%s);\n'
                         'SAVEPOINT before_trial;\nCALL :"schema".widening_lock(%s, ''ACCESS EXCLUSIVE'');\n'
                         'CALL :"schema".widening_try(%s, %s);\nROLLBACK TO before_trial;\n', c.views, c.locked, swap_number, c.names) END,
        snowflake_migrate_internal.online_texts(keys, c.names),
        format(E'INSERT INTO :"schema".widening_described SELECT p.* FROM :"schema".widening_present(%s) AS p\n'
               'WHERE NOT EXISTS (SELECT FROM :"schema".widening_described);\n\\endif\n', c.names),
        snowflake_migrate_internal.script_row_checks(keys))
    FROM dependent AS d CROSS JOIN compared AS c
$function$;

-- The procedure that replaces the columns. Statements of the plan that may run code of the tables have their search_path.
CREATE FUNCTION snowflake_migrate_internal.online_change_procedure(keys snowflake_migrate_internal.key[], name text)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.script_procedure(name, ARRAY(
        SELECT t.text
        FROM (SELECT s.*, lag(s.is_own_path, 1, true) OVER (ORDER BY s.place) AS former
              FROM snowflake_migrate_internal.swap_change_script(keys, true, true)
                  WITH ORDINALITY AS s (role, is_own_path, statement, place)) AS s
        CROSS JOIN LATERAL (VALUES
            (1, CASE WHEN s.is_own_path IS DISTINCT FROM s.former
                     THEN format('SELECT pg_catalog.set_config(''search_path'', %s, true)',
                                 CASE WHEN s.is_own_path THEN '''pg_catalog, pg_temp'''
                                      ELSE 'pg_catalog.current_setting(''widening_script.table_path'')' END) END),
            (2, s.statement)) AS t (place, text)
        WHERE t.text IS NOT NULL ORDER BY s.place, t.place))
$function$;

-- The way back: a transaction for each foreign key and each table.
CREATE FUNCTION snowflake_migrate_internal.online_revert(
    keys snowflake_migrate_internal.key[], units snowflake_migrate_internal.online_unit[]
) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH back (place, name, locked, statements) AS (
        SELECT 1, f.shadow_name::text,
               ARRAY(SELECT DISTINCT snowflake_migrate_internal.name_of(r.relation)
                     FROM (VALUES (f.relation), (f.referenced)) AS r (relation)),
               format(E'ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I;\n', snowflake_migrate_internal.name_of(f.relation), f.shadow_name)
        FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS f
      UNION ALL
        SELECT 2, s.relation::text, ARRAY[n.name], concat(
            (SELECT format(E'SELECT EXISTS (SELECT FROM :"schema".widening_trigger WHERE relation = %1$L) AS guarded \\gset widening_\n'
                           '\\if :widening_guarded\nCALL :"schema".widening_unguard(%1$L, %2$s, false);\n'
                           'DELETE FROM :"schema".widening_trigger WHERE relation = %1$L;\n\\endif\n', n.name, g.place)
             FROM snowflake_migrate_internal.guarded_tables(keys) AS g WHERE g.relation = s.relation),
            string_agg(format(E'DROP TRIGGER IF EXISTS %I ON %s;\n', s.trigger_name, n.name), '' ORDER BY s.attribute),
            format(E'ALTER TABLE %s %s;\n', n.name,
                   string_agg(format('DROP COLUMN IF EXISTS %I', s.shadow_name), ', ' ORDER BY s.attribute)))
        FROM snowflake_migrate_internal.shadows(keys) AS s
        CROSS JOIN LATERAL snowflake_migrate_internal.name_of(s.relation) AS n (name)
        GROUP BY s.relation, n.name
    )
    SELECT concat(
        snowflake_migrate_internal.script_section('Going back: only with psql -v revert=on',
            'Short ACCESS EXCLUSIVE locks. Columns are dropped with their indexes and constraints. Rows keep their present width on the '
            'disk until they are written again.'),
        E'\\if :revert\n',
        (SELECT format(E'SELECT NOT EXISTS (SELECT FROM :"schema".widening_made_for) AND NOT EXISTS (\n'
                       '    SELECT FROM pg_catalog.pg_attribute AS a JOIN (VALUES %s) AS s (relation, name)\n'
                       '        ON a.attrelid = pg_catalog.to_regclass(s.relation) AND a.attname = s.name) AS nothing \\gset widening_\n',
                       string_agg(format('(%L, %L)', snowflake_migrate_internal.name_of(s.relation), s.shadow_name), ', '
                                  ORDER BY s.relation::text, s.attribute))
         FROM snowflake_migrate_internal.shadows(keys) AS s),
        E'\\if :widening_nothing\nROLLBACK;\n\\echo nothing to revert: the script has not begun here, or was run to its end\n'
        '\\quit\n\\endif\n',
        format(E'SELECT EXISTS (SELECT FROM :"schema".widening_unit WHERE number = %s) AS swapped \\gset widening_\n',
               (SELECT u.number FROM unnest(units) AS u WHERE u.kind = 'swap')),
        E'\\if :widening_swapped\nROLLBACK;\nDO $do$BEGIN RAISE EXCEPTION USING ERRCODE = ''55000'',\n'
        '    MESSAGE = ''the columns have been swapped'', \n'
        '    HINT = ''Nothing has to go back: a bigint holds all values of an integer. Run the script to its end.''; END$do$;\n\\endif\n'
        -- From now on, nothing but going back.
        'INSERT INTO :"schema".widening_unit VALUES (0, pg_catalog.clock_timestamp()) ON CONFLICT DO NOTHING;\nCOMMIT;\n'
        'SET client_min_messages = error;\n',
        (SELECT string_agg(concat(E'BEGIN;\n', format(E'CALL :"schema".widening_lock(%L, ''ACCESS EXCLUSIVE'');\n', b.locked),
                                  b.statements, E'COMMIT;\n'), '' ORDER BY b.place, b.name)
         FROM back AS b),
        E'SET client_min_messages = warning;\n', snowflake_migrate_internal.online_end(),
        E'\\echo reverted: the tables are as they were\n\\quit\n\\endif\n')
$function$;

-- Drops what the script has made for itself.
CREATE FUNCTION snowflake_migrate_internal.online_end()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $text$SELECT made_schema FROM :"schema".widening_state \gset widening_
BEGIN;
DO $do$
DECLARE
    own record;
BEGIN
    FOR own IN
        SELECT p.oid::pg_catalog.regprocedure AS name FROM pg_catalog.pg_proc AS p
        JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = pg_catalog.current_setting('widening_script.schema')::pg_catalog.name
          AND pg_catalog.starts_with(p.proname, 'widening_')
        ORDER BY p.oid DESC
    LOOP
        EXECUTE pg_catalog.format('DROP ROUTINE %s', own.name);
    END LOOP;
END
$do$;
DROP VIEW :"schema".widening_progress;
DROP TABLE :"schema".widening_pace, :"schema".widening_table, :"schema".widening_trigger, :"schema".widening_described,
    :"schema".widening_made_for, :"schema".widening_unit, :"schema".widening_state;
\if :widening_made_schema
DROP SCHEMA :"schema";
\endif
COMMIT;
$text$;

-- What is copied, and the functions of the triggers.
CREATE FUNCTION snowflake_migrate_internal.online_copied(keys snowflake_migrate_internal.key[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat(
        E'-- Without a search_path of their own, which would take longer than they do: they use no name of any schema.\n',
        (SELECT string_agg(format(E'CREATE OR REPLACE FUNCTION :"schema".%s() RETURNS trigger LANGUAGE plpgsql AS %s;\n', f.function_name,
                    snowflake_migrate_internal.dollar_quoted(format('BEGIN NEW.%I := NEW.%I; RETURN NEW; END', f.shadow_name, f.narrow))),
                    '' ORDER BY f.function_name)
         FROM snowflake_migrate_internal.shadow_functions(keys) AS f),
        (SELECT format(E'INSERT INTO :"schema".widening_table (place, relation, assignments, condition) VALUES\n%s\n'
                       'ON CONFLICT DO NOTHING;\n',
                       string_agg(format('    (%s, %L, %L, %L)', c.place, c.name, c.assignments, c.condition), E',\n' ORDER BY c.place))
         FROM (SELECT row_number() OVER (ORDER BY s.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, s.relation::text) AS place,
                      snowflake_migrate_internal.name_of(s.relation) AS name,
                      string_agg(format('%I = source.%I', s.shadow_name, s.narrow), ', ' ORDER BY s.attribute) AS assignments,
                      string_agg(format('source.%I IS DISTINCT FROM source.%I', s.shadow_name, s.narrow), ' OR '
                                 ORDER BY s.attribute) AS condition
               FROM snowflake_migrate_internal.shadows(keys) AS s GROUP BY s.relation) AS c))
$function$;

-- Once it goes back, it goes no way else.
CREATE FUNCTION snowflake_migrate_internal.online_reverting()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $text$SELECT EXISTS (SELECT FROM :"schema".widening_unit WHERE number = 0) AS reverting, :'revert' <> 'on' AS forward \gset widening_
\if :widening_reverting
\if :widening_forward
DO $do$BEGIN RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the script is going back', HINT = 'psql -v revert=on'; END$do$;
\endif
\endif
$text$;

-- Refuses what a script without the library, run by one role, cannot do.
CREATE FUNCTION snowflake_migrate_internal.require_online_script(
    keys snowflake_migrate_internal.key[], steps snowflake_migrate_internal.step[]
) RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT EXISTS (SELECT FROM unnest(steps) AS s WHERE s.kind = 'swap') AND steps <> '{}' THEN
        PERFORM snowflake_internal.refuse('55000', format('no column has to be widened for %s', snowflake_migrate_internal.key_names(keys)),
            detail => 'Only its sequence is narrow.', hint => 'SELECT snowflake_migrate.script(...) without online => true.');
    END IF;
    PERFORM snowflake_migrate_internal.require_script(keys, ARRAY(
        SELECT (p.number, p.kind, p.what, p.lock_level, p.relation, '{}', 2, s.role, s.content)::snowflake_migrate_internal.script_statement
        FROM unnest(steps) AS p
        CROSS JOIN LATERAL unnest(p.commands) WITH ORDINALITY AS c (kind, relation, sql, columns, relations, role, place)
        CROSS JOIN LATERAL snowflake_migrate_internal.command_script(
            p.commands[c.place], coalesce(p.keys, require_online_script.keys), true) AS s));
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.online_script(keys snowflake_migrate_internal.key[], caller_path text, schemas text[])
RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET snowflake_migrate_internal.for_script = 'on'
SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
DECLARE
    hint CONSTANT text := 'What is done remains done. Undo the change and run the script again; or run it with -v revert=on, dump the '
                          'schema again, and make the script anew.';
    names CONSTANT text := snowflake_migrate_internal.key_names(keys);
    owner CONSTANT name := (SELECT pg_get_userbyid(c.relowner) FROM pg_class AS c WHERE c.oid = (keys[1]).target);
    steps CONSTANT snowflake_migrate_internal.step[] :=
        ARRAY(SELECT p FROM snowflake_migrate_internal.plan(keys, true, caller_path, true) AS p);
    units snowflake_migrate_internal.online_unit[];
    compared CONSTANT text[] := snowflake_migrate_internal.online_compared(keys);
    comparison CONSTANT text := format(E'CALL :"schema".widening_compare();\nCALL :"schema".widening_compare_described(%L);\n', compared);
    checks text;
    body text;
    script_id text;
BEGIN
    PERFORM snowflake_migrate_internal.require_online_script(keys, steps);
    units := ARRAY(SELECT u FROM snowflake_migrate_internal.online_units(keys, steps) AS u);
    checks := snowflake_migrate_internal.online_checks(keys, (SELECT u.number FROM unnest(units) AS u WHERE u.kind = 'swap'));
    body := (SELECT string_agg(snowflake_migrate_internal.unit_in_frame(u.number, cardinality(units), u.kind, u.what, u.explanation,
                                   concat(CASE WHEN u.is_new_phase THEN comparison END, u.lines)), '' ORDER BY u.number)
             FROM unnest(units) AS u);
    script_id := md5(checks || body);
    RETURN concat(
        snowflake_migrate_internal.online_introduction(names, owner, 'snowflake_script_' || left(script_id, 8)), E'\n',
        snowflake_migrate_internal.script_section('Settings, the role, one session at a time', 'Nothing is changed.'),
        snowflake_migrate_internal.script_head(owner, script_id, schemas), E'\n',
        E'SET datestyle = ''ISO'';\nSET intervalstyle = ''postgres'';\n'
        'SELECT pg_catalog.set_config(''widening_script.table_path'', :''table_path'', false) AS table_path \\gset widening_\n',
        snowflake_migrate_internal.script_section('State and comparison',
            'One transaction: if something differs from where the script was made, or a trial fails, nothing is left of it. '
            'If tables have views, a trial at the first start locks them for a moment, and drops and creates these.'),
        snowflake_migrate_internal.script_setup(script_id), E'\n',
        snowflake_migrate_internal.online_reverting(), snowflake_migrate_internal.script_procedures(hint),
        snowflake_migrate_internal.script_trial_procedures(hint), E'\n\n-- The motor.\n',
        format(E'CREATE OR REPLACE FUNCTION :"schema".widening_texts(relations text[]) RETURNS TABLE (object text, part text, '
               'property text, value text)\nLANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp\n'
               'SET quote_all_identifiers = off SET jit = off AS %s;\n\n',
               snowflake_migrate_internal.dollar_quoted(snowflake_migrate_internal.script_texts_query())),
        snowflake_migrate_internal.script_motor_tables(), snowflake_migrate_internal.script_motor_locks(),
        snowflake_migrate_internal.script_motor_triggers(), snowflake_migrate_internal.script_motor_batch(),
        snowflake_migrate_internal.script_motor_wait(), snowflake_migrate_internal.script_motor_backfill(),
        snowflake_migrate_internal.script_motor_compare(hint), snowflake_migrate_internal.script_motor_swap(),
        snowflake_migrate_internal.script_motor_announce(), E'\n',
        snowflake_migrate_internal.online_copied(keys), snowflake_migrate_internal.online_revert(keys, units),
        checks, E'\\if :widening_first\nSET client_min_messages = :messages;\n',
        format(E'CALL :"schema".widening_announce(%L, %L);\nSET client_min_messages = warning;\n\\endif\n', compared,
               ARRAY(SELECT snowflake_migrate_internal.name_of(i.index)
                     FROM snowflake_migrate_internal.shadow_indexes(keys) AS i ORDER BY 1)),
        body, snowflake_migrate_internal.script_section('The end', 'Everything is widened. The state of the script is dropped.'),
        snowflake_migrate_internal.online_end(),
        E'\\echo done. Let clients reconnect: sessions keep functions that they have compiled for the former types.\n');
END
$function$;

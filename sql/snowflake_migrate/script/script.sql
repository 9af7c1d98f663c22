-- The script for another server, of its parts.

-- A procedure that executes statements of one phase, if there are any.
CREATE FUNCTION snowflake_migrate_internal.script_procedure(name text, statements text[])
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format(E'CREATE OR REPLACE PROCEDURE :"schema".%s()\n'
                  'LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET datestyle = ''ISO''\n'
                  'SET intervalstyle = ''postgres'' SET check_function_bodies = off SET default_tablespace = '''' AS %s;\n', name,
                  snowflake_migrate_internal.dollar_quoted(format(E'\nBEGIN\n%sEND\n', string_agg(
                      format(E'    EXECUTE %s;\n', snowflake_migrate_internal.dollar_quoted(rtrim(s.text, ';'))), '' ORDER BY s.place))))
    FROM unnest(statements) WITH ORDINALITY AS s (text, place)
    HAVING count(*) > 0
$function$;

-- A unit, as the renderer needs it.
CREATE TYPE snowflake_migrate_internal.script_unit AS (
    number integer, kind text, what text, lock_level text, changed regclass[], locks text, tables text,
    drops text[], changes text[], creations text[], fills text[]
);

CREATE FUNCTION snowflake_migrate_internal.script_units(
    keys snowflake_migrate_internal.key[], statements snowflake_migrate_internal.script_statement[]
) RETURNS SETOF snowflake_migrate_internal.script_unit LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH unit AS MATERIALIZED (
        SELECT DISTINCT s.unit, s.kind, s.what, s.lock_level, s.changed FROM unnest(statements) AS s
    ), statement AS MATERIALIZED (
        SELECT s.unit, array_agg(s.statement ORDER BY s.place) FILTER (WHERE s.phase = 1) AS drops,
               array_agg(s.statement ORDER BY s.place) FILTER (WHERE s.phase = 2) AS changes,
               array_agg(s.statement ORDER BY s.place) FILTER (WHERE s.phase = 3) AS creations,
               array_agg(s.statement ORDER BY s.place) FILTER (WHERE s.phase = 4) AS fills
        FROM unnest(statements) WITH ORDINALITY AS s (unit, kind, what, lock_level, relation, changed, phase, role, statement, place)
        GROUP BY s.unit
    ), tree AS MATERIALIZED (
        SELECT w.relation, w.declared_by, c.relowner, c.relkind, array_agg(w.attribute) AS attributes
        FROM snowflake_migrate_internal.linked_tree(keys) AS w
        JOIN pg_class AS c ON c.oid = w.relation
        WHERE w.is_narrow
        GROUP BY w.relation, w.declared_by, c.relowner, c.relkind
    ), locked AS MATERIALIZED (
        -- Those at the other end of foreign keys would be locked later.
        SELECT t.declared_by, t.relation, true AS is_own FROM tree AS t WHERE t.relkind IN ('r', 'p')
      UNION
        SELECT t.declared_by, c.oid::regclass, false
        FROM tree AS t
        CROSS JOIN LATERAL snowflake_migrate_internal.other_locked_tables(t.relation, t.attributes) AS o (name)
        JOIN pg_class AS c ON c.oid = o.name::regclass AND c.relowner = t.relowner
    ), names AS MATERIALIZED (
        SELECT u.unit, n.name, min(l.relation::oid) AS relation, bool_or(l.is_own) AS is_own
        FROM unit AS u JOIN locked AS l ON l.declared_by = ANY (u.changed)
        CROSS JOIN LATERAL snowflake_migrate_internal.name_of(l.relation) AS n (name)
        GROUP BY u.unit, n.name
    )
    SELECT u.unit, u.kind, u.what, u.lock_level, u.changed,
           (SELECT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;', string_agg('ONLY ' || n.name, ', ' ORDER BY n.relation))
            FROM names AS n WHERE n.unit = u.unit HAVING count(*) > 0),
           format('%L', ARRAY(SELECT n.name FROM names AS n WHERE n.unit = u.unit AND n.is_own ORDER BY n.name COLLATE "C")),
           s.drops, s.changes, s.creations, s.fills
    FROM unit AS u JOIN statement AS s ON s.unit = u.unit
    ORDER BY u.unit
$function$;

-- What the script was made for, and the comparison with it.
CREATE FUNCTION snowflake_migrate_internal.script_comparison(keys snowflake_migrate_internal.key[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat(
        (SELECT format(E'INSERT INTO :"schema".widening_made_for VALUES\n%s\nON CONFLICT DO NOTHING;\n',
                       string_agg(format('    (%L, %L, %L, %L)', f.object, f.fact, f.value, f.value_after), E',\n' ORDER BY f.place))
         FROM snowflake_migrate_internal.script_facts(keys, ARRAY(
                  SELECT r.name FROM snowflake_migrate_internal.script_relations(keys) AS r))
             WITH ORDINALITY AS f (object, fact, value, value_after, place)),
        E'CALL :"schema".widening_compare();\n',
        (SELECT string_agg(format(E'CALL :"schema".widening_compare_check(%L, %L, %L);\n', r.name, k.conname, pg_get_constraintdef(k.oid)),
                           '' ORDER BY r.name COLLATE "C", k.conname COLLATE "C")
         FROM snowflake_migrate_internal.script_relations(keys) AS r
         JOIN pg_constraint AS k ON k.conrelid = r.relation AND k.contype = 'c' AND k.coninhcount = 0))
$function$;

-- The search for rows that violate foreign keys, and the end of the transaction.
CREATE FUNCTION snowflake_migrate_internal.script_row_checks(keys snowflake_migrate_internal.key[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat(
        E'\\if :check_rows\n',
        (SELECT string_agg(format(E'CALL :"schema".widening_check_rows(%L, %L);\n',
                                  format('%I of %s', k.conname, snowflake_migrate_internal.name_of(k.conrelid::regclass)),
                                  snowflake_migrate_internal.orphans_query(k.oid)), '' ORDER BY k.conrelid, k.conname)
         FROM pg_constraint AS k
         WHERE k.contype = 'f' AND k.conparentid = 0 AND k.convalidated
           AND k.oid IN (SELECT f.oid FROM snowflake_migrate_internal.linked_tree(keys) AS w
                         JOIN pg_constraint AS f ON f.conrelid = w.relation AND w.attribute = ANY (f.conkey)
                                                 OR f.confrelid = w.relation AND w.attribute = ANY (f.confkey)
                         WHERE w.is_narrow)),
        E'\\endif\n\\if :check_only\nROLLBACK;\n\\echo nothing differs; nothing was changed\n\\quit\n\\endif\nCOMMIT;\n')
$function$;

-- The part that compares and tries, in the transaction that makes the schema: nothing is left
-- if it fails. A savepoint gives locks back.
CREATE FUNCTION snowflake_migrate_internal.script_checks(
    keys snowflake_migrate_internal.key[], units snowflake_migrate_internal.script_unit[]
) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat(
        snowflake_migrate_internal.script_comparison(keys),
        (SELECT string_agg(concat(
                    snowflake_migrate_internal.script_procedure(format('widening_drop_%s', u.number), u.drops),
                    snowflake_migrate_internal.script_procedure(format('widening_create_%s', u.number), u.creations),
                    format(E'SELECT EXISTS (SELECT FROM :"schema".widening_unit WHERE number = %s) AS done \\gset widening_\n'
                           '\\if :widening_done\n\\else\nSAVEPOINT before_trial;\n%s\nCALL :"schema".widening_try(%s, %s::text[]);\n'
                           'ROLLBACK TO before_trial;\n\\endif\n',
                           u.number, u.locks, u.number, u.tables)), '' ORDER BY u.number)
         FROM unnest(units) AS u WHERE u.drops IS NOT NULL),
        snowflake_migrate_internal.script_row_checks(keys))
$function$;

-- Reads which materialized views have data, into variables of psql; and fills those again.
CREATE FUNCTION snowflake_migrate_internal.script_fills(views text[], is_before boolean)
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT string_agg(format(
        CASE WHEN is_before
             THEN E'SELECT c.relispopulated AS has_data_%1$s FROM pg_catalog.pg_class AS c '
                  'WHERE c.oid = %3$L::pg_catalog.regclass \\gset widening_\n'
             ELSE E'\\if :widening_has_data_%1$s\nREFRESH MATERIALIZED VIEW %2$s;\nANALYZE %2$s;\n\\endif\n' END,
        v.place, v.name, v.name), '' ORDER BY v.place)
    FROM unnest(views) WITH ORDINALITY AS v (name, place)
$function$;

-- A unit: a transaction with its mark.
CREATE FUNCTION snowflake_migrate_internal.script_unit_text(unit snowflake_migrate_internal.script_unit, units integer)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.unit_in_frame(unit.number, units, unit.kind, unit.what,
        CASE WHEN unit.changed <> '{}'
             THEN 'ACCESS EXCLUSIVE locks until it is committed. Rewrites the tables and their indexes, which needs as much additional '
                  'disk space and WAL, and checks their foreign keys again.'
                  || CASE WHEN unit.drops IS NOT NULL
                          THEN ' What depends on the columns is dropped and created again: procedures widening_drop_'
                               || unit.number || ' and widening_create_' || unit.number || ' above.' ELSE '' END
             ELSE unit.lock_level || CASE unit.kind WHEN 'analyze' THEN ': a widened column has no statistics.'
                                                    ELSE ', without a rewrite.' END END,
        concat(E'BEGIN;\n', unit.locks || E'\n', snowflake_migrate_internal.script_fills(unit.fills, true),
        CASE WHEN unit.drops IS NOT NULL
             THEN format(E'-- Under the locks once more.\nCALL :"schema".widening_try(%1$s, %2$s::text[]);\n'
                         'SELECT :"schema".widening_maintain(%2$s::text[]) AS maintain \\gset widening_\n'
                         'CALL :"schema".widening_drop_%1$s();\n',
                         unit.number, unit.tables) END,
        E'SET LOCAL search_path = :table_path;\n',
        (SELECT string_agg(snowflake_migrate_internal.for_psql(c.text) || E'\n', '' ORDER BY c.place)
         FROM unnest(unit.changes) WITH ORDINALITY AS c (text, place)),
        CASE WHEN unit.creations IS NOT NULL
             THEN format(E'SET LOCAL search_path = pg_catalog, pg_temp;\nCALL :"schema".widening_create_%s();\n'
                         'CALL :"schema".widening_grant(:''widening_maintain'', %s::text[]);\n', unit.number, unit.tables) END,
        E'SET LOCAL search_path = :table_path;\n' || snowflake_migrate_internal.script_fills(unit.fills, false),
        format(E'INSERT INTO :"schema".widening_unit VALUES (%s, pg_catalog.clock_timestamp());\nCOMMIT;\n', unit.number)))
$function$;

-- Its end: drops what it has made.
CREATE FUNCTION snowflake_migrate_internal.script_end(units snowflake_migrate_internal.script_unit[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat(
        snowflake_migrate_internal.script_section('The end', 'Everything is widened. The state of the script is dropped.'),
        E'SELECT made_schema FROM :"schema".widening_state \\gset widening_\nBEGIN;\n',
        (SELECT string_agg(format(E'DROP PROCEDURE :"schema".widening_drop_%1$s();\n'
                                  'DROP PROCEDURE :"schema".widening_create_%1$s();\n', u.number),
                           '' ORDER BY u.number)
         FROM unnest(units) AS u WHERE u.drops IS NOT NULL),
        E'DROP PROCEDURE :"schema".widening_compare();\nDROP PROCEDURE :"schema".widening_compare_check(text, text, text);\n'
        'DROP PROCEDURE :"schema".widening_try(integer, text[]);\nDROP PROCEDURE :"schema".widening_grant(jsonb, text[]);\n'
        'DROP PROCEDURE :"schema".widening_again(jsonb, jsonb);\n'
        'DROP FUNCTION :"schema".widening_maintain(text[]);\n'
        'DROP PROCEDURE :"schema".widening_check_rows(text, text);\n'
        'DROP FUNCTION :"schema".widening_facts(text[]);\nDROP FUNCTION :"schema".widening_description(text[]);\n'
        'DROP TABLE :"schema".widening_made_for, :"schema".widening_unit, :"schema".widening_state;\n'
        '\\if :widening_made_schema\nDROP SCHEMA :"schema";\n\\endif\nCOMMIT;\n'
        '\\echo done. Let clients reconnect: sessions keep functions that they have compiled for the former types.\n')
$function$;

-- The script. Its name is that of its content, so that a changed one does not continue another.
CREATE FUNCTION snowflake_migrate_internal.script(keys snowflake_migrate_internal.key[], caller_path text, schemas text[])
RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
DECLARE
    statements CONSTANT snowflake_migrate_internal.script_statement[] :=
        ARRAY(SELECT s FROM snowflake_migrate_internal.script_statements(keys, caller_path) AS s);
    units snowflake_migrate_internal.script_unit[];
    names CONSTANT text := snowflake_migrate_internal.key_names(keys);
    owner CONSTANT name := (SELECT pg_get_userbyid(c.relowner) FROM pg_class AS c WHERE c.oid = (keys[1]).target);
    checks text;
    body text;
    script_id text;
BEGIN
    PERFORM snowflake_migrate_internal.require_script(keys, statements);
    units := ARRAY(SELECT u FROM snowflake_migrate_internal.script_units(keys, statements) AS u);
    checks := snowflake_migrate_internal.script_checks(keys, units);
    body := (SELECT string_agg(snowflake_migrate_internal.script_unit_text(u, cardinality(units)), '' ORDER BY (u).number)
             FROM unnest(units) AS u);
    script_id := md5(checks || body);
    RETURN concat(
        snowflake_migrate_internal.script_introduction(names, owner, 'snowflake_script_' || left(script_id, 8)), E'\n',
        snowflake_migrate_internal.script_section('Settings, the role, one session at a time', 'Nothing is changed.'),
        snowflake_migrate_internal.script_head(owner, script_id, schemas), E'\n',
        snowflake_migrate_internal.script_section('State and comparison',
            'One transaction: if something differs from where the script was made, or a trial fails, nothing is left of it. '
            'Tables with views are locked for the time of a trial, which drops and creates these.'),
        snowflake_migrate_internal.script_setup(script_id), E'\n',
        snowflake_migrate_internal.script_procedures(),
        snowflake_migrate_internal.script_trial_procedures(), E'\n', checks, body, snowflake_migrate_internal.script_end(units));
END
$function$;

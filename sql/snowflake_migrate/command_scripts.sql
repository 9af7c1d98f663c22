-- The statements of each command, for the script of ddl().

-- A statement as a line of the script.
CREATE FUNCTION snowflake_migrate_internal.terminated(statement text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT rtrim(statement, E'; \n') || ';'
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

-- Gives a NOT NULL constraint the name of the former one: the name of a new one follows from
-- that of the shadow column.
CREATE FUNCTION snowflake_migrate_internal.not_null_script(keys snowflake_migrate_internal.key[])
RETURNS TABLE (role oid, statement text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT t.relowner, format('DO %L;', format(
        E'DECLARE\n    present CONSTANT pg_catalog.name := (\n'
        '        SELECT k.conname FROM pg_catalog.pg_constraint AS k '
        'JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND k.conkey = ARRAY[a.attnum]\n'
        '        WHERE k.conrelid = %1$L::pg_catalog.regclass AND k.contype = ''n'' AND a.attname = %2$L);\nBEGIN\n'
        '    IF present <> %3$L THEN\n'
        '        EXECUTE pg_catalog.format(''ALTER TABLE %%s RENAME CONSTRAINT %%I TO %%I'', %1$L, present, %3$L);\n'
        '    END IF;\n%4$s%5$sEND',
        snowflake_migrate_internal.name_of(t.oid::regclass), e ->> 'column', e ->> 'name',
        CASE WHEN NOT (e ->> 'is_inherited')::boolean
             THEN format(E'    ALTER TABLE %s ALTER CONSTRAINT %I NO INHERIT;\n',
                         snowflake_migrate_internal.name_of(t.oid::regclass), e ->> 'name') END,
        CASE WHEN e ->> 'comment' IS NOT NULL
             THEN format(E'    COMMENT ON CONSTRAINT %I ON %s IS %L;\n',
                         e ->> 'name', snowflake_migrate_internal.name_of(t.oid::regclass), e ->> 'comment') END))
    FROM jsonb_array_elements(snowflake_migrate_internal.not_null_names(keys)) AS e
    JOIN pg_class AS t ON t.oid = (e ->> 'relation')::oid
$function$;

-- The statements that swap() executes, but for those of what depends on the columns. The value of
-- an identity column's sequence is read when the script runs, and kept in variables of psql, which
-- outlast \connect; or in settings, for a procedure.
CREATE FUNCTION snowflake_migrate_internal.swap_change_script(
    keys snowflake_migrate_internal.key[], keep_sequence boolean, in_procedure boolean
) RETURNS TABLE (role oid, is_own_path boolean, statement text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
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
        statement := format('ALTER SEQUENCE %s CACHE %s;', key.sequence, key.seqcache);
        RETURN NEXT;
        statement := format(CASE WHEN in_procedure
            THEN 'SELECT pg_catalog.set_config(''widening.value_%1$s'', s.last_value::pg_catalog.text, true), '
                 'pg_catalog.set_config(''widening.is_called_%1$s'', s.is_called::pg_catalog.text, true) FROM %2$s AS s;'
            ELSE E'SELECT s.last_value AS value_%1$s, s.is_called AS is_called_%1$s FROM %2$s AS s \\gset' END, key.place, key.sequence);
        RETURN NEXT;
        origin := snowflake_migrate_internal.present_origin(key.target, key.column_name);
        identity_columns := identity_columns || origin;
    END LOOP;
    RETURN QUERY
        SELECT coalesce(c.role, t.relowner), c.kind = 'default', snowflake_migrate_internal.terminated(c.sql)
        FROM snowflake_migrate_internal.swap_commands(keys, keep_sequence)
            WITH ORDINALITY AS c (kind, relation, sql, columns, relations, role, place)
        JOIN pg_class AS t ON t.oid = c.relation
        ORDER BY c.place;
    RETURN QUERY SELECT n.role, true, n.statement FROM snowflake_migrate_internal.not_null_script(keys) AS n;
    FOREACH origin IN ARRAY identity_columns LOOP
        role := (SELECT t.relowner FROM pg_class AS t WHERE t.oid = origin.target);
        is_own_path := true;
        RETURN QUERY
            SELECT swap_change_script.role, true, snowflake_migrate_internal.terminated(s.text)
            FROM unnest(snowflake_migrate_internal.identity_statements(origin)
                        || snowflake_migrate_internal.sequence_property_statements(
                               snowflake_migrate_internal.identity_sequence_name(origin), origin, NULL))
                WITH ORDINALITY AS s (text, place)
            ORDER BY s.place;
        statement := format('SELECT pg_catalog.setval(%1$L::pg_catalog.regclass, ' || CASE WHEN in_procedure
                            THEN 'pg_catalog.current_setting(''widening.value_%2$s'')::pg_catalog.int8, '
                                 'pg_catalog.current_setting(''widening.is_called_%2$s'')::pg_catalog.bool);'
                            ELSE ':value_%2$s, :''is_called_%2$s'');' END,
                            snowflake_migrate_internal.identity_sequence_name(origin),
                            (SELECT k.place FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
                             WHERE (k.target, k.column_name) = (origin.target, origin.column_name)));
        RETURN NEXT;
    END LOOP;
END
$function$;

-- All statements that swap() executes.
CREATE FUNCTION snowflake_migrate_internal.swap_script(keys snowflake_migrate_internal.key[], keep_sequence boolean)
RETURNS TABLE (role oid, is_own_path boolean, statement text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    narrow CONSTANT snowflake_migrate_internal.key[] := snowflake_migrate_internal.swap_columns(keys);
BEGIN
    RETURN QUERY
        SELECT s.role, false, snowflake_migrate_internal.terminated(s.statement)
        FROM snowflake_migrate_internal.dependent_statements(narrow) WITH ORDINALITY AS s (phase, role, statement, identity, place)
        WHERE s.phase = 1 ORDER BY s.place;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.swap_change_script(keys, keep_sequence, false) AS s;
    RETURN QUERY
        SELECT t.relowner, false, snowflake_migrate_internal.terminated(s.statement)
        FROM unnest(keys) AS k
        CROSS JOIN LATERAL snowflake_migrate_internal.boundary_statements(
            snowflake_migrate_internal.origin_to_record(k.target, k.column_name)) AS s
        JOIN pg_class AS t ON t.oid = s.relation
        WHERE NOT keep_sequence;
    RETURN QUERY
        SELECT s.role, true, snowflake_migrate_internal.terminated(s.statement)
        FROM snowflake_migrate_internal.dependent_statements(narrow) WITH ORDINALITY AS s (phase, role, statement, identity, place)
        WHERE s.phase = 2 ORDER BY s.place;
END
$function$;

-- The statements that widen() executes. phase: what is dropped (1), changed (2), created again (3) and filled (4).
CREATE FUNCTION snowflake_migrate_internal.widen_script(columns snowflake_migrate_internal.key[], portable boolean)
RETURNS TABLE (phase integer, role oid, is_own_path boolean, statement text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH tree AS MATERIALIZED (
        SELECT ARRAY(SELECT DISTINCT f.relation FROM unnest(columns) AS given
                     CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(given.target, given.column_name) AS f
                     JOIN pg_class AS c ON c.oid = f.relation AND c.relkind IN ('r', 'p')) AS tables
    ), command (phase, step, place, role, is_own_path, statement) AS (
        SELECT CASE s.phase WHEN 1 THEN 1 ELSE s.phase + 1 END, 0, s.place, s.role, s.phase = 2, s.statement
        FROM snowflake_migrate_internal.dependent_statements(columns, portable)
            WITH ORDINALITY AS s (phase, role, statement, identity, place)
      UNION ALL
        SELECT 2, 1, w.place, c.relowner, false, w.statement
        FROM snowflake_migrate_internal.widening_statements(columns) WITH ORDINALITY AS w (relation, statement, place)
        JOIN pg_class AS c ON c.oid = w.relation
      UNION ALL
        SELECT 2, 2, row_number() OVER (ORDER BY t.sql), c.relowner, false, t.sql
        FROM tree CROSS JOIN LATERAL snowflake_migrate_internal.statistics_targets(tree.tables) AS t
        JOIN pg_class AS c ON c.oid = t.relation
      UNION ALL
        SELECT 2, 3, t.place, NULL, false, t.statement
        FROM tree
        CROSS JOIN LATERAL snowflake_migrate_internal.trigger_state_statements(
            snowflake_migrate_internal.trigger_states(tree.tables)) AS t
    )
    SELECT c.phase, c.role, c.is_own_path, snowflake_migrate_internal.terminated(c.statement)
    FROM command AS c ORDER BY c.phase, c.step, c.place
$function$;

-- The statements that copy all rows: in batches of one transaction each in the plan, in one
-- statement for each table here.
CREATE FUNCTION snowflake_migrate_internal.copy_script(keys snowflake_migrate_internal.key[])
RETURNS TABLE (role oid, is_own_path boolean, content text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH copied AS MATERIALIZED (
        SELECT s.relation, c.relowner,
               CASE WHEN snowflake_migrate_internal.copies_as_replica(s.relation)
                    THEN ARRAY['SET session_replication_role = ''replica''', 'RESET session_replication_role']
                    ELSE ARRAY['SET snowflake_migrate_internal.copying = ''on''',
                               'RESET snowflake_migrate_internal.copying'] END AS settings,
               EXISTS (SELECT FROM snowflake_migrate_internal.update_triggers(ARRAY[s.relation]) AS t
                       WHERE t.enabled IN ('O', 'A')) AS has_triggers,
               format('UPDATE ONLY %s SET %s WHERE %s', snowflake_migrate_internal.name_of(s.relation),
                      string_agg(format('%I = %I', s.shadow_name, s.narrow), ', ' ORDER BY s.attribute),
                      string_agg(format('%I IS DISTINCT FROM %I', s.shadow_name, s.narrow), ' OR ' ORDER BY s.attribute)) AS text
        FROM snowflake_migrate_internal.shadows(keys) AS s JOIN pg_class AS c ON c.oid = s.relation
        WHERE NOT s.is_filled AND NOT s.is_partitioned
        GROUP BY s.relation, c.relowner
    )
    SELECT c.relowner, false, snowflake_migrate_internal.terminated(s.text)
    FROM copied AS c
    CROSS JOIN LATERAL (VALUES (1, c.settings[1], c.has_triggers), (2, c.text, true),
                               (3, c.settings[2], c.has_triggers)) AS s (place, text, is_needed)
    WHERE s.is_needed
    ORDER BY c.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, c.relation::text, s.place
$function$;

-- The statements that record the sequences of keys, and set their boundaries.
CREATE FUNCTION snowflake_migrate_internal.record_script(keys snowflake_migrate_internal.key[], with_boundary boolean)
RETURNS TABLE (role oid, is_own_path boolean, content text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.relowner, false, snowflake_migrate_internal.terminated(s.text)
    FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
    JOIN pg_class AS c ON c.oid = k.target
    CROSS JOIN LATERAL (
        SELECT 0 AS place, format('SELECT snowflake_migrate_internal.record_origin(%L::pg_catalog.regclass, %L::pg_catalog.name)',
                                  snowflake_migrate_internal.name_of(k.target), k.column_name) AS text
      UNION ALL
        SELECT b.place, b.statement
        FROM snowflake_migrate_internal.boundary_statements(snowflake_migrate_internal.origin_to_record(k.target, k.column_name))
            WITH ORDINALITY AS b (relation, statement, place)
        WHERE with_boundary) AS s
    ORDER BY k.place, s.place
$function$;

-- LOCK TABLE for the tables of a command, if they have one owner: no part of the script can
-- lock the tables of several.
CREATE FUNCTION snowflake_migrate_internal.lock_script(relations regclass[], mode text)
RETURNS TABLE (role oid, is_own_path boolean, content text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT min(c.relowner::text)::oid, false,
           format('LOCK TABLE %s IN %s MODE;', string_agg('ONLY ' || l.name, ', ' ORDER BY l.name COLLATE "C"), mode)
    FROM unnest(relations) AS r (relation)
    -- Statements that alter sequences lock them.
    JOIN pg_class AS c ON c.oid = r.relation AND c.relkind <> 'S'
    CROSS JOIN LATERAL snowflake_migrate_internal.name_of(r.relation) AS l (name)
    HAVING count(DISTINCT c.relowner) = 1
$function$;

-- The statements of a command. Those that change nothing are left out. Where the role is
-- NULL, only a superuser may execute one.
CREATE FUNCTION snowflake_migrate_internal.command_script(
    command snowflake_migrate_internal.command, keys snowflake_migrate_internal.key[], keep_sequence boolean
) RETURNS TABLE (role oid, is_own_path boolean, content text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    owner CONSTANT oid := (SELECT c.relowner FROM pg_class AS c WHERE c.oid = command.relation);
BEGIN
    CASE command.kind
        WHEN 'alter', 'shadow trigger', 'run', 'plain' THEN
            RETURN QUERY SELECT owner, false, snowflake_migrate_internal.terminated(command.sql);
        WHEN 'widen sequence' THEN RETURN QUERY SELECT owner, true, snowflake_migrate_internal.terminated(command.sql);
        WHEN 'lock', 'lock in time' THEN
            RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.lock_script(command.relations, command.sql) AS s;
        WHEN 'copy' THEN RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.copy_script(keys) AS s;
        WHEN 'record', 'switch' THEN
            RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.record_script(
                ARRAY[(command.relation, command.columns[1])::snowflake_migrate_internal.key], command.kind = 'switch') AS s;
        WHEN 'states', 'copy states' THEN
            RETURN QUERY SELECT NULL::oid, true, snowflake_migrate_internal.terminated(s.statement)
                         FROM snowflake_migrate_internal.trigger_state_statements(CASE command.kind
                             WHEN 'states' THEN command.sql::jsonb
                             ELSE snowflake_migrate_internal.copied_states(command.relation, command.columns[1], command.columns[2])
                         END) AS s ORDER BY s.place;
        WHEN 'widen' THEN
            RETURN QUERY SELECT s.role, s.is_own_path, s.statement FROM snowflake_migrate_internal.widen_script(keys, false) AS s;
        WHEN 'swap', 'swap, keep' THEN
            RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.record_script(keys, false) AS s WHERE NOT keep_sequence;
            RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.swap_script(keys, keep_sequence) AS s;
        WHEN 'renew' THEN
            RETURN QUERY SELECT coalesce(r.role, owner), false, snowflake_migrate_internal.terminated(r.sql)
                         FROM snowflake_migrate_internal.renewal_commands(
                                 ARRAY[(command.relation, command.columns[1])::snowflake_migrate_internal.key])
                             WITH ORDINALITY AS r (kind, relation, sql, columns, relations, role, place) ORDER BY r.place;
        WHEN 'guard', 'unguard' THEN
            RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.guard_script(command.relation, command.kind = 'guard') AS s;
        WHEN 'bound' THEN
            RETURN QUERY SELECT owner, true, snowflake_migrate_internal.terminated(snowflake_migrate_internal.partition_check_statement(
                             command.relation, (keys[1]).column_name, command.sql::jsonb));
        WHEN 'partition' THEN
            RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.partition_script(
                             command.relation, command.columns[1], command.sql::jsonb) AS s;
        WHEN 'call', 'recompile' THEN NULL;
    END CASE;
END
$function$;

-- The steps of a plan, as data, and what is shown of them: one statement each, for \gexec.
-- No text that is made here is read again: what run() executes and what ddl() shows is made
-- of the same commands.

-- What a step executes, as the owner of the relation, unless it has a role. The kinds, and what they have beside
-- their relation:
--
-- | kind           | executes                                                                    |
-- |----------------|-----------------------------------------------------------------------------|
-- | alter          | sql, with the rights of the table's owner                                   |
-- | shadow trigger | the same: it creates the trigger of shadow columns[2] of columns[1]           |
-- | default        | the same on pg_catalog's path, for which it was written                     |
-- | run            | sql, which is no ALTER TABLE, with the rights of the relation's owner       |
-- | plain          | sql, as it is                                                               |
-- | copy           | sql, as it is: batches of rows, one transaction each                        |
-- | lock           | locks relations in mode sql, in short attempts                              |
-- | lock in time   | the same, within lock_timeout                                               |
-- | call           | sql, a call that fails, or only changes the records of the tool             |
-- | record         | records the sequence of columns[1]                                          |
-- | switch         | checks that columns[1] may get its new default, and sets the boundary       |
-- | states         | sets states of triggers of foreign keys: sql is jsonb                       |
-- | copy states    | those of foreign key columns[1] for its counterpart, columns[2]             |
-- | guard          | gives the update triggers of the relation the condition of a copy           |
-- | unguard        | takes it from them                                                          |
-- | recompile      | has sessions compile functions again that use the columns of the step       |
-- | widen          | widens the columns of the step with what depends on them                    |
-- | widen sequence | widens the sequence of columns[1]                                           |
-- | renew          | makes the sequence of columns[1] anew, under the name of the former one     |
-- | swap           | replaces the columns of the step by their shadows                           |
-- | swap, keep     | the same, and keeps the sequences                                           |
-- | bound          | adds the check that precedes partitions: sql is jsonb                       |
-- | partition      | makes the relation the first partition of a new table: sql is jsonb         |
CREATE TYPE snowflake_migrate_internal.command AS (
    kind text, relation regclass, sql text, columns name[], relations regclass[], role oid
);

-- What takes a step's time. NULL is not known, or too little to count.
CREATE TYPE snowflake_migrate_internal.work AS (rows numeric, bytes numeric, seconds numeric);

-- A step of a plan: with the rights of the owner of its relation, or those of several owners if that is NULL. what is a
-- format for names, which a screen shortens to its width. Columns are only those of the commands that need them.
CREATE TYPE snowflake_migrate_internal.step AS (
    number integer, kind text, relation regclass, lock_level text, rewrites boolean, in_transaction boolean,
    what text, note text, commands snowflake_migrate_internal.command[], keys snowflake_migrate_internal.key[],
    names text[], work snowflake_migrate_internal.work
);

-- A command, without what few have. Without settings, this and the next two functions
-- become part of the queries that call them.
CREATE FUNCTION snowflake_migrate_internal.command(
    kind text, relation regclass, sql text DEFAULT NULL, columns name[] DEFAULT NULL,
    relations regclass[] DEFAULT NULL, role oid DEFAULT NULL
) RETURNS snowflake_migrate_internal.command LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (kind, relation, sql, columns, relations, role)::snowflake_migrate_internal.command;

-- A step, which plan() numbers.
CREATE FUNCTION snowflake_migrate_internal.step(
    kind text, relation regclass, lock_level text, what text, note text, commands snowflake_migrate_internal.command[],
    keys snowflake_migrate_internal.key[] DEFAULT NULL, rewrites boolean DEFAULT false, in_transaction boolean DEFAULT true,
    names text[] DEFAULT NULL, work snowflake_migrate_internal.work DEFAULT NULL
) RETURNS snowflake_migrate_internal.step LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (NULL, kind, relation, lock_level, rewrites, in_transaction, what, note, commands, keys, names, work)
    ::snowflake_migrate_internal.step;

-- The lock that most steps take first.
CREATE FUNCTION snowflake_migrate_internal.lock_command(relations regclass[], mode text DEFAULT 'ACCESS EXCLUSIVE')
RETURNS snowflake_migrate_internal.command LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN snowflake_migrate_internal.command('lock'::pg_catalog.text, relations[1], mode, relations => relations);

-- The names of relations, in their order.
CREATE FUNCTION snowflake_migrate_internal.names_of(relations regclass[])
RETURNS text[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN ARRAY(SELECT snowflake_migrate_internal.name_of(l.relation)
                 FROM unnest(relations) WITH ORDINALITY AS l (relation, place) ORDER BY l.place);
END
$function$;

-- A command as the call of a function. Its constants have types, so that no other
-- function of the same name is a better match.
CREATE FUNCTION snowflake_migrate_internal.call_of(command snowflake_migrate_internal.command, keys snowflake_migrate_internal.key[])
RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relation CONSTANT text := format('%L::pg_catalog.regclass', snowflake_migrate_internal.name_of(command.relation));
    first_column CONSTANT text := format('%L::pg_catalog.name', command.columns[1]);
BEGIN
    RETURN CASE command.kind
        -- By name an ALTER TABLE would run with the rights of the role that runs the plan,
        -- on the table that has the name by then.
        WHEN 'alter' THEN format('snowflake_migrate_internal.alter(%L::pg_catalog.text)', command.sql)
        WHEN 'shadow trigger' THEN format('snowflake_migrate_internal.alter(%L::pg_catalog.text)', command.sql)
        WHEN 'run' THEN format('snowflake_internal.run(%s, %L::pg_catalog.text)', relation, command.sql)
        WHEN 'lock' THEN format('snowflake_migrate_internal.lock(%L::pg_catalog.regclass[], %L::pg_catalog.text)',
                                snowflake_migrate_internal.names_of(command.relations), command.sql)
        WHEN 'lock in time' THEN format('snowflake_migrate_internal.lock_within_timeout(%L::pg_catalog.regclass[], %L::pg_catalog.text)',
                                        snowflake_migrate_internal.names_of(command.relations), command.sql)
        WHEN 'call' THEN command.sql
        WHEN 'record' THEN format('snowflake_migrate_internal.record_origin(%s, %s)', relation, first_column)
        WHEN 'switch' THEN format('snowflake_migrate_internal.check_switch(%s, %s, %s)', relation, first_column,
                                  snowflake_migrate_internal.path_argument())
        WHEN 'states' THEN format('snowflake_migrate_internal.restore_trigger_states(%L::pg_catalog.jsonb)', command.sql)
        WHEN 'copy states' THEN format('snowflake_migrate_internal.copy_trigger_states(%s, %s, %L::pg_catalog.name)',
                                       relation, first_column, command.columns[2])
        WHEN 'guard' THEN format('snowflake_migrate_internal.guard_update_triggers(%s)', relation)
        WHEN 'unguard' THEN format('snowflake_migrate_internal.unguard_update_triggers(%s)', relation)
        WHEN 'recompile' THEN format('snowflake_migrate_internal.recompile(%s)', snowflake_migrate_internal.key_arguments(keys))
        WHEN 'widen' THEN format('snowflake_migrate_internal.widen(%s, %s)', snowflake_migrate_internal.key_arguments(keys),
                                 snowflake_migrate_internal.path_argument())
        WHEN 'widen sequence' THEN format('snowflake_migrate_internal.widen_sequence(%s, %s)', relation, first_column)
        WHEN 'renew' THEN format('snowflake_migrate_internal.renew_sequence(%s, %s)', relation, first_column)
        WHEN 'swap' THEN format('snowflake_migrate_internal.swap(%s, %s)', snowflake_migrate_internal.key_arguments(keys),
                                snowflake_migrate_internal.path_argument())
        WHEN 'swap, keep' THEN format('snowflake_migrate_internal.swap(%s, %s, keep_sequence => true)',
                                      snowflake_migrate_internal.key_arguments(keys), snowflake_migrate_internal.path_argument())
        WHEN 'bound' THEN format('snowflake_migrate_internal.add_partition_check(%s, %L::pg_catalog.jsonb)', relation, command.sql)
        WHEN 'partition' THEN format('snowflake_migrate_internal.partition_table(%s, %L::pg_catalog.jsonb)', relation, command.sql) END;
END
$function$;

-- Lines of PL/pgSQL as a DO statement, which runs all of them or none.
CREATE FUNCTION snowflake_migrate_internal.do_block(body text, declaration text DEFAULT '')
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN strpos(block.text, '$do$') = 0 THEN format(E'DO $do$%s$do$', block.text)
                ELSE format('DO %L', block.text) END
    FROM (SELECT format(E'\n%sBEGIN\n%sEND\n', declaration, body)) AS block (text)
$function$;

-- The statement of a step. What it executes under a lock runs with the short lock_timeout
-- that lock() leaves; the rest of the transaction has the former one.
CREATE FUNCTION snowflake_migrate_internal.statement_of(step snowflake_migrate_internal.step)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN b.only_kind IN ('plain', 'copy') THEN b.sql
                WHEN b.only_kind IN ('alter', 'record', 'widen', 'widen sequence', 'recompile', 'bound', 'partition') THEN 'SELECT ' || b.call
                WHEN NOT b.has_lock THEN snowflake_migrate_internal.do_block(b.lines)
                ELSE snowflake_migrate_internal.do_block(
                    b.lines || E'    EXECUTE pg_catalog.format(''SET LOCAL lock_timeout = %L''::pg_catalog.text, former_timeout);\n',
                    E'DECLARE\n    former_timeout CONSTANT pg_catalog.text := '
                    'pg_catalog.current_setting(''lock_timeout''::pg_catalog.text);\n') END
    FROM (SELECT CASE count(*) WHEN 1 THEN min(c.kind) END AS only_kind, min(c.sql) AS sql, min(k.call) AS call,
                 bool_or(c.kind = 'lock') AS has_lock,
                 string_agg(CASE WHEN c.kind = 'plain' THEN format(E'    %s;\n', c.sql) ELSE format(E'    PERFORM %s;\n', k.call) END,
                            '' ORDER BY c.place) AS lines
          FROM unnest(step.commands) WITH ORDINALITY AS c (kind, relation, sql, columns, relations, role, place)
          CROSS JOIN LATERAL snowflake_migrate_internal.call_of(step.commands[c.place], step.keys) AS k (call)) AS b
$function$;

-- What a step does and what to know of it.
CREATE FUNCTION snowflake_migrate_internal.description_of(step snowflake_migrate_internal.step)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat_ws('; ', CASE WHEN step.names IS NULL THEN step.what ELSE format(step.what, VARIADIC step.names) END, step.note)
$function$;

-- Runs commands in order, each with the rights of the owner of the table that it alters, or
-- with those of a role. SET NOT NULL and the like look at the table's checks, whose
-- functions may need the caller's search path. On a longer path than its own, the calls of a
-- default could find better matches.
CREATE FUNCTION snowflake_migrate_internal.run_all(commands snowflake_migrate_internal.command[], search_path text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    command snowflake_migrate_internal.command;
BEGIN
    FOREACH command IN ARRAY coalesce(commands, ARRAY[]::snowflake_migrate_internal.command[]) LOOP
        IF command.role IS NULL THEN
            PERFORM snowflake_internal.run(command.relation, command.sql, CASE WHEN command.kind <> 'default' THEN search_path END);
        ELSE
            PERFORM snowflake_migrate_internal.run_as(command.role, command.sql, NULL);
        END IF;
    END LOOP;
END
$function$;

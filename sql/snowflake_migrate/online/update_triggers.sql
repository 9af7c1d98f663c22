-- Triggers that do not fire for the rows that are copied, where the owner of a table may
-- not set session_replication_role: for the time of the copy they get a condition, which
-- is false for the updates of the backfill only.
--
-- Nothing else is recorded. What a trigger was before follows from its present definition,
-- less the condition, so that a trigger that is changed or renamed meanwhile stays so.
-- The condition uses pg_catalog only: DROP EXTENSION ... CASCADE leaves the triggers.

-- The tables whose triggers a backfill by the caller keeps from firing by
-- session_replication_role. The owner's code runs with that setting. None for a script, whose
-- server may not know that setting's privilege.
CREATE FUNCTION snowflake_migrate_internal.copied_as_replica(relations regclass[])
RETURNS SETOF regclass LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.oid
    FROM pg_class AS c
    WHERE c.oid = ANY (relations) AND coalesce(current_setting('snowflake_migrate_internal.for_script', true), '') <> 'on'
      AND has_parameter_privilege('session_replication_role', 'SET')
      AND has_parameter_privilege(c.relowner, 'session_replication_role', 'SET')
$function$;

CREATE FUNCTION snowflake_migrate_internal.copies_as_replica(relation regclass)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (SELECT FROM snowflake_migrate_internal.copied_as_replica(ARRAY[relation]))
$function$;

-- Who counts as a member of the owner: from PostgreSQL 16 on, a membership may give neither
-- the owner's rights nor SET ROLE.
CREATE FUNCTION snowflake_migrate_internal.guard_privilege()
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'USAGE, SET' ELSE 'MEMBER' END
$function$;

-- The condition as a text that concat() makes of an owner's OID. Any role may set the
-- setting. So the session has to be that of a role that could disable the triggers, and so
-- has the role that updates: neither a function of the owner's that another session calls
-- nor one of another role's that the owner calls turns triggers off. By OID, because the
-- owner may be renamed.
CREATE FUNCTION snowflake_migrate_internal.guard_parts()
RETURNS text[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY[
        '(COALESCE(pg_catalog.current_setting(''snowflake_migrate_internal.copying''::pg_catalog.text, true), ''''::pg_catalog.text) '
        'OPERATOR(pg_catalog.<>) ''on''::pg_catalog.text OR NOT pg_catalog.pg_has_role(SESSION_USER, ''',
        format('''::pg_catalog.oid, %L::pg_catalog.text) OR NOT pg_catalog.pg_has_role(CURRENT_USER, ''', p.privilege),
        format('''::pg_catalog.oid, %L::pg_catalog.text))', p.privilege)]
    FROM snowflake_migrate_internal.guard_privilege() AS p (privilege)
$function$;

-- The condition as PostgreSQL shows it, as a pattern. In a restored database, or if the
-- table has another owner since, it has another number.
CREATE FUNCTION snowflake_migrate_internal.guard_pattern()
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN E'\\(\\(COALESCE\\(current_setting\\(''snowflake_migrate_internal\\.copying''::text, true\\), ''''::text\\) <> ''on''::text\\) '
       'OR \\(NOT pg_has_role\\(SESSION_USER, ''([0-9]+)''::oid, ''(USAGE, SET|MEMBER)''::text\\)\\) '
       'OR \\(NOT pg_has_role\\(CURRENT_USER, ''\\1''::oid, ''\\2''::text\\)\\)\\)';

-- A trigger that fires on each UPDATE, and its definition: without the condition of a migration, but with what
-- that has of it. Without head, if the definition is of an unknown form.
CREATE TYPE snowflake_migrate_internal.update_trigger AS (
    trigger_oid oid, relation regclass, name name, enabled text,
    -- CREATE [CONSTRAINT] TRIGGER name ... FOR EACH ..., and EXECUTE FUNCTION ...
    head text, condition text, tail text,
    guard_owner oid, guard_privilege text,
    -- By the condition for the present owner of the table.
    is_guarded boolean,
    -- A partition has it from its parent, and changes with that.
    is_inherited boolean
);

-- What pg_get_triggerdef() shows before and after the condition. PostgreSQL has no function
-- that shows the condition by itself.
CREATE FUNCTION snowflake_migrate_internal.trigger_frames(triggers oid[])
RETURNS TABLE (trigger_oid oid, head text, tail text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
    SELECT t.oid,
           concat(CASE WHEN t.tgconstraint <> 0 THEN 'CREATE CONSTRAINT TRIGGER ' ELSE 'CREATE TRIGGER ' END, quote_ident(t.tgname),
                  CASE WHEN t.tgtype & 2 <> 0 THEN ' BEFORE ' WHEN t.tgtype & 64 <> 0 THEN ' INSTEAD OF ' ELSE ' AFTER ' END,
                  concat_ws(' OR ', CASE WHEN t.tgtype & 4 <> 0 THEN 'INSERT' END, CASE WHEN t.tgtype & 8 <> 0 THEN 'DELETE' END,
                            CASE WHEN t.tgtype & 16 <> 0 THEN 'UPDATE' END, CASE WHEN t.tgtype & 32 <> 0 THEN 'TRUNCATE' END),
                  format(' ON %I.%I ', n.nspname, c.relname),
                  CASE WHEN t.tgconstraint <> 0
                       THEN concat('FROM ' || nullif(t.tgconstrrelid, 0)::regclass::text || ' ',
                                   CASE WHEN NOT t.tgdeferrable THEN 'NOT ' END, 'DEFERRABLE INITIALLY ',
                                   CASE WHEN t.tginitdeferred THEN 'DEFERRED ' ELSE 'IMMEDIATE ' END) END,
                  CASE WHEN num_nonnulls(t.tgoldtable, t.tgnewtable) > 0
                       THEN concat('REFERENCING ', 'OLD TABLE AS ' || quote_ident(t.tgoldtable) || ' ',
                                   'NEW TABLE AS ' || quote_ident(t.tgnewtable) || ' ') END,
                  CASE WHEN t.tgtype & 1 <> 0 THEN 'FOR EACH ROW ' ELSE 'FOR EACH STATEMENT ' END),
           concat('EXECUTE FUNCTION ', CASE WHEN p.pronamespace <> 'pg_catalog'::regnamespace THEN quote_ident(pn.nspname) || '.' END,
                  quote_ident(p.proname), '(', (
                      -- Each argument ends with a zero byte.
                      SELECT string_agg('''' || replace(convert_from(substring(t.tgargs FROM s.start + 1 FOR s.place - s.start),
                                                                     getdatabaseencoding()), '''', '''''') || '''', ', ' ORDER BY s.place)
                      FROM (SELECT b.place, coalesce(lag(b.place) OVER (ORDER BY b.place) + 1, 0) AS start
                            FROM generate_series(0, length(t.tgargs) - 1) AS b (place) WHERE get_byte(t.tgargs, b.place) = 0) AS s), ')')
    FROM pg_trigger AS t
    JOIN pg_class AS c ON c.oid = t.tgrelid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_proc AS p ON p.oid = t.tgfoid
    JOIN pg_namespace AS pn ON pn.oid = p.pronamespace
    WHERE t.oid = ANY (triggers)
$function$;

-- The triggers of tables that fire for the rows that are copied, and all that have the
-- condition of a migration.
CREATE FUNCTION snowflake_migrate_internal.update_trigger_definitions(relations regclass[])
RETURNS SETOF snowflake_migrate_internal.update_trigger LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
    WITH update_trigger AS MATERIALIZED (
        SELECT t.oid, t.tgrelid, c.relowner, t.tgname, t.tgenabled, t.tgconstraint, t.tgqual, t.tgparentid
        FROM pg_trigger AS t
        JOIN pg_class AS c ON c.oid = t.tgrelid
        -- As update_triggers(), in any state.
        WHERE t.tgrelid = ANY (relations) AND NOT t.tgisinternal AND t.tgtype & 16 <> 0 AND cardinality(t.tgattr::smallint[]) = 0
          AND t.tgfoid <> 'snowflake_migrate_internal.shadow()'::regprocedure
    ), shown AS MATERIALIZED (
        SELECT t.oid, t.tgrelid, t.relowner, t.tgname, t.tgparentid, t.tgenabled::text AS enabled, f.head, f.tail, d.definition,
               t.tgqual IS NOT NULL AS has_condition,
               starts_with(d.definition, f.head || CASE WHEN t.tgqual IS NULL THEN '' ELSE 'WHEN (' END)
               AND right(d.definition, length(f.tail) + 2) = CASE WHEN t.tgqual IS NULL THEN right(f.head, 2) ELSE ') ' END || f.tail
               AND (t.tgqual IS NOT NULL OR length(d.definition) = length(f.head) + length(f.tail)) AS is_known
        FROM update_trigger AS t
        JOIN snowflake_migrate_internal.trigger_frames(ARRAY(SELECT u.oid FROM update_trigger AS u)) AS f ON f.trigger_oid = t.oid
        CROSS JOIN LATERAL (SELECT pg_get_triggerdef(t.oid, false) OFFSET 0) AS d (definition)
    ), parts AS MATERIALIZED (
        SELECT s.*, CASE WHEN s.is_known AND s.has_condition
                         THEN substr(s.definition, length(s.head) + 7, length(s.definition) - length(s.head) - length(s.tail) - 8)
                    END AS condition
        FROM shown AS s
    )
    SELECT p.oid, p.tgrelid, p.tgname, p.enabled, CASE WHEN p.is_known THEN p.head END,
           CASE WHEN alone.parts IS NOT NULL THEN NULL
                -- (guard AND condition)
                WHEN joined.parts IS NOT NULL
                THEN substr(p.condition, 1 + length(joined.parts[1]), length(p.condition) - length(joined.parts[1]) - 1)
                ELSE p.condition END,
           p.tail, guard.owner::oid, guard.privilege, coalesce(guard.owner::oid = p.relowner AND guard.privilege = v.privilege, false),
           p.tgparentid <> 0
    FROM parts AS p
    CROSS JOIN snowflake_migrate_internal.guard_privilege() AS v (privilege)
    LEFT JOIN LATERAL regexp_match(p.condition, '^' || snowflake_migrate_internal.guard_pattern() || '$') AS alone (parts) ON true
    -- The pattern's groups are the second and the third here.
    LEFT JOIN LATERAL regexp_match(p.condition, E'^(\\(' || replace(replace(
        snowflake_migrate_internal.guard_pattern(), E'\\2', E'\\3'), E'\\1', E'\\2') || ' AND )') AS joined (parts) ON true
    CROSS JOIN LATERAL (
        SELECT coalesce(alone.parts[1], joined.parts[2]), coalesce(alone.parts[2], joined.parts[3])) AS guard (owner, privilege)
$function$;

CREATE FUNCTION snowflake_migrate_internal.unguarded_triggers(relations regclass[])
RETURNS SETOF snowflake_migrate_internal.update_trigger LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT u.*
    FROM snowflake_migrate_internal.update_trigger_definitions(relations) AS u
    WHERE u.enabled IN ('O', 'A') AND NOT u.is_guarded AND NOT u.is_inherited
$function$;

-- Those that have the condition of a migration, this one's or an older one's.
CREATE FUNCTION snowflake_migrate_internal.guarded_triggers(relations regclass[])
RETURNS SETOF snowflake_migrate_internal.update_trigger LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT u.* FROM snowflake_migrate_internal.update_trigger_definitions(relations) AS u
    WHERE u.guard_owner IS NOT NULL AND NOT u.is_inherited
$function$;

-- The statements that make a trigger anew: with the condition, or without. The first one is
-- the parts of a text, between which is the OID of the table's owner, which differs in
-- another database. Where a constraint trigger or its constraint was renamed, their names
-- differ.
CREATE FUNCTION snowflake_migrate_internal.trigger_statements(
    update_trigger snowflake_migrate_internal.update_trigger, is_to_be_guarded boolean
) RETURNS TABLE (place integer, parts text[]) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE present AS MATERIALIZED (
        SELECT t.oid, t.tgname AS name, t.tgconstraint, coalesce(k.conname, t.tgname) AS first_name, t.tgenabled AS state,
               snowflake_migrate_internal.name_of(t.tgrelid::regclass) AS table_name,
               -- Of the same length in both: the name, and what is before it.
               substr((update_trigger).head, 1 + length(CASE WHEN t.tgconstraint <> 0 THEN 'CREATE CONSTRAINT TRIGGER '
                                                              ELSE 'CREATE TRIGGER ' END
                                                         || quote_ident(t.tgname))) AS head
        FROM pg_trigger AS t
        LEFT JOIN pg_constraint AS k ON k.oid = t.tgconstraint
        WHERE t.oid = (update_trigger).trigger_oid
    ), of_partition AS (
        SELECT t.oid, t.tgrelid, t.tgname, t.tgenabled FROM pg_trigger AS t JOIN present AS p ON t.tgparentid = p.oid
      UNION ALL
        SELECT t.oid, t.tgrelid, t.tgname, t.tgenabled FROM of_partition AS p JOIN pg_trigger AS t ON t.tgparentid = p.oid
    ), own AS MATERIALIZED (
        SELECT snowflake_migrate_internal.portable((update_trigger).condition) AS condition,
               snowflake_migrate_internal.portable((update_trigger).tail) AS tail
    )
    SELECT 1, ARRAY[format('DROP TRIGGER %I ON %s', p.name, p.table_name)] FROM present AS p WHERE p.tgconstraint <> 0
  UNION ALL
    SELECT 2, CASE WHEN is_to_be_guarded
                   THEN ARRAY[b.text || 'WHEN (' || g.parts[1], g.parts[2],
                              g.parts[3] || coalesce(' AND (' || own.condition || ')', '') || ') ' || own.tail]
                   ELSE ARRAY[b.text || coalesce('WHEN (' || own.condition || ') ', '') || own.tail] END
    FROM present AS p
    CROSS JOIN own
    CROSS JOIN snowflake_migrate_internal.guard_parts() AS g (parts)
    CROSS JOIN LATERAL (
        SELECT format(CASE WHEN p.tgconstraint <> 0 THEN 'CREATE CONSTRAINT TRIGGER %I%s' ELSE 'CREATE OR REPLACE TRIGGER %I%s' END,
                      p.first_name, p.head)) AS b (text)
  UNION ALL
    SELECT 3, ARRAY[format('ALTER TRIGGER %I ON %s RENAME TO %I', p.first_name, p.table_name, p.name)]
    FROM present AS p WHERE p.first_name <> p.name
  UNION ALL
    SELECT p.place, ARRAY[format('ALTER TABLE %s %s TRIGGER %I', p.table_name,
                                 CASE p.state WHEN 'O' THEN 'ENABLE' WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA'
                                              ELSE 'ENABLE ALWAYS' END, p.name)]
    FROM (SELECT 4 AS place, w.table_name, w.state, w.name FROM present AS w WHERE w.state <> 'O'
        UNION ALL
          -- Those of partitions may have states of their own.
          SELECT 5, snowflake_migrate_internal.name_of(o.tgrelid::regclass), o.tgenabled, o.tgname
          FROM of_partition AS o CROSS JOIN present AS w WHERE o.tgenabled <> w.state) AS p
  UNION ALL
    SELECT 5, ARRAY[format('ALTER TRIGGER %I ON %s DEPENDS ON EXTENSION %I', p.name, p.table_name, e.extname)]
    FROM present AS p
    JOIN pg_depend AS d ON d.classid = 'pg_trigger'::regclass AND d.objid = p.oid AND d.deptype = 'x'
    JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
  UNION ALL
    SELECT c.place, ARRAY[format('COMMENT ON %s %I ON %s IS %s', c.kind, c.name, p.table_name,
                                 snowflake_migrate_internal.portable('''' || replace(c.text, '''', '''''') || ''''))]
    FROM present AS p
    CROSS JOIN LATERAL (VALUES (6, 'TRIGGER', p.name, obj_description(p.oid, 'pg_trigger')),
                               (7, 'CONSTRAINT', p.first_name, obj_description(p.tgconstraint, 'pg_constraint')))
        AS c (place, kind, name, text)
    WHERE p.tgconstraint <> 0 AND c.text IS NOT NULL
  UNION ALL
    SELECT 6, ARRAY[format('COMMENT ON TRIGGER %I ON %s IS %s', o.tgname, snowflake_migrate_internal.name_of(o.tgrelid::regclass),
                           snowflake_migrate_internal.portable('''' || replace(obj_description(o.oid, 'pg_trigger'), '''', '''''') || ''''))]
    FROM of_partition AS o CROSS JOIN present AS p WHERE p.tgconstraint <> 0 AND obj_description(o.oid, 'pg_trigger') IS NOT NULL
$function$;

-- What a trigger depends on: not PostgreSQL's own objects, which have no such rows.
CREATE FUNCTION snowflake_migrate_internal.trigger_dependencies(relation regclass, trigger_name name)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT string_agg(format('%s %s %s %s', d.refclassid, d.refobjid, d.refobjsubid, d.deptype), ', '
                      ORDER BY d.refclassid, d.refobjid, d.refobjsubid, d.deptype)
    FROM pg_trigger AS t
    JOIN pg_depend AS d ON (d.classid, d.objid) IN (('pg_trigger'::regclass, t.oid), ('pg_constraint'::regclass, nullif(t.tgconstraint, 0)))
    WHERE t.tgrelid = relation AND t.tgname = trigger_name AND d.refclassid NOT IN ('pg_constraint'::regclass, 'pg_trigger'::regclass)
$function$;

-- Makes a trigger anew, and fails if it is not the same then, but for the condition: PostgreSQL
-- might find another operator for what it shows of the trigger's own one.
CREATE FUNCTION snowflake_migrate_internal.renew_trigger(update_trigger snowflake_migrate_internal.update_trigger, is_to_be_guarded boolean)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relation CONSTANT regclass := update_trigger.relation;
    owner CONSTANT oid := (SELECT c.relowner FROM pg_class AS c WHERE c.oid = relation);
    dependencies CONSTANT text := snowflake_migrate_internal.trigger_dependencies(relation, update_trigger.name);
    -- All at once: they are made of what the first one changes.
    statements CONSTANT text[] := ARRAY(
        SELECT array_to_string(s.parts, owner::text)
        FROM snowflake_migrate_internal.trigger_statements(update_trigger, is_to_be_guarded) AS s ORDER BY s.place);
    present snowflake_migrate_internal.update_trigger;
BEGIN
    PERFORM snowflake_internal.run(relation, s) FROM unnest(statements) AS s;
    SELECT u.* INTO present
    FROM snowflake_migrate_internal.update_trigger_definitions(ARRAY[relation]) AS u WHERE u.name = update_trigger.name;
    IF present.is_guarded IS DISTINCT FROM is_to_be_guarded
       OR present.guard_owner IS NOT NULL AND NOT is_to_be_guarded
       OR present.enabled IS DISTINCT FROM update_trigger.enabled
       OR (present.head, present.tail) IS DISTINCT FROM (update_trigger.head, update_trigger.tail)
       OR (present.condition IS NULL) <> (update_trigger.condition IS NULL)
       OR snowflake_migrate_internal.trigger_dependencies(relation, update_trigger.name) IS DISTINCT FROM dependencies
    THEN
        PERFORM snowflake_internal.refuse('55000', format('trigger "%s" of %s would not be as it was', update_trigger.name, relation),
            hint => 'Nothing was changed by this statement. Drop the trigger, and create it again after the migration.');
    ELSIF present.condition IS DISTINCT FROM update_trigger.condition THEN
        RAISE NOTICE 'PostgreSQL now writes the condition of trigger % of % as a dump and its restore would: %',
            quote_ident(update_trigger.name), relation, present.condition;
    END IF;
END
$function$;

-- Gives the triggers of a table the condition. The caller has locked the table.
CREATE FUNCTION snowflake_migrate_internal.guard_update_triggers(relation regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_migrate_internal.require_owner(relation);
    PERFORM snowflake_migrate_internal.refuse_obstacles(
        ARRAY(SELECT o FROM snowflake_migrate_internal.guard_obstacles(ARRAY[relation], true) AS o),
        format('cannot guard the triggers of %s', relation), text 'Nothing was changed. Remove the obstacles, then run it again.');
    PERFORM snowflake_migrate_internal.renew_trigger(u, true)
    FROM snowflake_migrate_internal.unguarded_triggers(ARRAY[relation]) AS u ORDER BY u.name;
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.unguard_update_triggers(relation regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_migrate_internal.require_owner(relation);
    PERFORM snowflake_migrate_internal.renew_trigger(u, false)
    FROM snowflake_migrate_internal.guarded_triggers(ARRAY[relation]) AS u ORDER BY u.name;
END
$function$;

-- Triggers that the owners of tables cannot make anew: each by itself, or for an error those of
-- one owner in one sentence, which is an obstacle of each of their tables.
CREATE FUNCTION snowflake_migrate_internal.guard_obstacles(relations regclass[], is_for_error boolean DEFAULT false)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH found AS MATERIALIZED (
        SELECT u.relation, u.name, u.head, t.tgfoid, t.tgconstrrelid, c.relowner, p.pronamespace
        FROM snowflake_migrate_internal.unguarded_triggers(relations) AS u
        JOIN pg_trigger AS t ON t.oid = u.trigger_oid
        JOIN pg_class AS c ON c.oid = t.tgrelid
        JOIN pg_proc AS p ON p.oid = t.tgfoid
    ), refused AS MATERIALIZED (
        SELECT f.relation, f.name, f.relowner, r.missing, r.code,
               row_number() OVER (PARTITION BY f.relation, f.name, r.code ORDER BY r.missing) AS place
        FROM found AS f
        CROSS JOIN LATERAL (VALUES
            (NOT has_function_privilege(f.relowner, f.tgfoid, 'EXECUTE'),
             format('GRANT EXECUTE ON FUNCTION %s TO %I.', f.tgfoid::regprocedure, pg_get_userbyid(f.relowner)), '42501'),
            (NOT has_schema_privilege(f.relowner, f.pronamespace, 'USAGE'),
             format('GRANT USAGE ON SCHEMA %s TO %I.', f.pronamespace::regnamespace, pg_get_userbyid(f.relowner)), '42501'),
            (NOT has_table_privilege(f.relowner, f.relation, 'TRIGGER'),
             format('GRANT TRIGGER ON %s TO %I.', f.relation, pg_get_userbyid(f.relowner)), '42501'),
            (f.tgconstrrelid <> 0 AND NOT has_table_privilege(f.relowner, f.tgconstrrelid, 'TRIGGER'),
             format('GRANT TRIGGER ON %s TO %I.', f.tgconstrrelid::regclass, pg_get_userbyid(f.relowner)), '42501'),
            -- Its definition has an unknown form.
            (f.head IS NULL, NULL, '55000'))
            AS r (applies, missing, code)
        WHERE r.applies
    ), said AS MATERIALIZED (
        SELECT r.relowner, r.code, min(r.relation::text) AS first_relation, min(r.name::text) AS first_name,
               array_agg(DISTINCT r.relation) AS relations,
               array_agg(format('%I of %s', r.name, r.relation) ORDER BY r.relation::text, r.name)
                   FILTER (WHERE r.place = 1 OR NOT is_for_error) AS names,
               array_agg(DISTINCT r.missing) AS missing
        FROM refused AS r
        GROUP BY r.relowner, r.code, CASE WHEN NOT is_for_error THEN ROW(r.relation::oid, r.name::text, r.missing) END
    )
    SELECT u.relation, NULL::name,
           format(CASE WHEN w.is_one THEN 'trigger %s fires on each UPDATE, and its owner %I may not create it again'
                       ELSE 'triggers %s fire on each UPDATE, and their owner %I may not create them again' END,
                  snowflake_migrate_internal.some_names(s.names), pg_get_userbyid(s.relowner)),
           CASE WHEN w.is_one THEN 'So it would fire when rows are copied: ' ELSE 'So they would fire when rows are copied: ' END
           || CASE WHEN s.code = '42501'
                   THEN array_to_string(s.missing[:10], ' ')
                        || CASE WHEN cardinality(s.missing) > 10
                                THEN format(' And %s more: see snowflake_migrate.survey().', cardinality(s.missing) - 10) ELSE '' END
                   WHEN w.is_one THEN 'its definition has an unknown form. Restrict it to the columns it uses (UPDATE OF).'
                   ELSE 'their definitions have an unknown form. Restrict them to the columns they use (UPDATE OF).' END,
           s.code
    FROM said AS s
    CROSS JOIN LATERAL (SELECT cardinality(s.names) = 1) AS w (is_one)
    CROSS JOIN LATERAL unnest(s.relations) AS u (relation)
    ORDER BY s.first_relation, s.first_name, s.missing, u.relation::text
$function$;

-- Fails if a trigger of a table would fire when its rows are copied.
CREATE FUNCTION snowflake_migrate_internal.require_guarded(relation regclass)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    unguarded CONSTANT text := (
        SELECT string_agg(quote_ident(u.name), ', ' ORDER BY u.name)
        FROM snowflake_migrate_internal.update_trigger_definitions(ARRAY[relation]) AS u
        WHERE u.enabled IN ('O', 'A') AND NOT u.is_guarded);
    owner CONSTANT oid := (SELECT c.relowner FROM pg_class AS c WHERE c.oid = relation);
BEGIN
    IF unguarded IS NOT NULL THEN
        PERFORM snowflake_internal.refuse('55000', format('triggers of %s would fire when rows are copied: %s', relation, unguarded),
            detail => 'They fire on each UPDATE, and lack the condition that the plan gives such triggers. '
                      'They, or the owner of the table, have been changed since.',
            hint => 'Request the plan again: it has a step for them.');
    ELSIF NOT pg_has_role(session_user, owner, snowflake_migrate_internal.guard_privilege()) THEN
        PERFORM snowflake_internal.refuse('42501', format('triggers of %s would fire when rows are copied', relation),
            detail => format('The role that has logged in, "%s", is not a member of the table''s owner.', session_user),
            hint => 'Log in as a member of the owner.');
    END IF;
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.guard_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.step(text 'guard', s.relation, text 'ACCESS EXCLUSIVE',
        text 'guards the update triggers of %s',
        format('%s will not fire when rows are copied, and as ever for all others: a condition is added, and removed after the copy. '
               'Holds the lock for a moment, after short attempts to acquire it', s.names),
        ARRAY[snowflake_migrate_internal.lock_command(ARRAY[s.relation]), snowflake_migrate_internal.command(text 'guard', s.relation)],
        names => ARRAY[s.relation::text])
    FROM (SELECT t.relation, snowflake_migrate_internal.some_names(array_agg(quote_ident(t.name) ORDER BY t.name)) AS names
          FROM snowflake_migrate_internal.unguarded_triggers(ARRAY(
              SELECT DISTINCT m.relation FROM snowflake_migrate_internal.shadows(keys) AS m WHERE NOT m.is_filled)) AS t
          GROUP BY t.relation) AS s
    WHERE NOT snowflake_migrate_internal.copies_as_replica(s.relation)
    ORDER BY s.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, s.relation::text
$function$;

CREATE FUNCTION snowflake_migrate_internal.unguard_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.step(text 'unguard', s.relation, text 'ACCESS EXCLUSIVE',
        text 'restores the update triggers of %s',
        text 'as they were before the copy. Holds the lock for a moment, after short attempts to acquire it',
        ARRAY[snowflake_migrate_internal.lock_command(ARRAY[s.relation]), snowflake_migrate_internal.command(text 'unguard', s.relation)],
        names => ARRAY[s.relation::text])
    FROM (SELECT m.relation, bool_and(m.is_filled) AS is_filled FROM snowflake_migrate_internal.shadows(keys) AS m GROUP BY m.relation) AS s
    WHERE EXISTS (SELECT FROM snowflake_migrate_internal.guarded_triggers(ARRAY[s.relation]))
       OR NOT s.is_filled AND NOT snowflake_migrate_internal.copies_as_replica(s.relation)
          AND EXISTS (SELECT FROM snowflake_migrate_internal.unguarded_triggers(ARRAY[s.relation]))
    ORDER BY s.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, s.relation::text
$function$;

-- The statements of both for the script of ddl(). The owner has another OID in a copy.
CREATE FUNCTION snowflake_migrate_internal.guard_script(relation regclass, is_to_be_guarded boolean)
RETURNS TABLE (role oid, is_own_path boolean, content text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.relowner, true, CASE WHEN cardinality(s.parts) = 1 THEN s.parts[1] || ';'
        ELSE snowflake_migrate_internal.do_block(format(E'    EXECUTE pg_catalog.concat(%s);\n', (
            SELECT string_agg(quote_literal(p.part),
                              format(', %L::pg_catalog.regrole::pg_catalog.oid, ', c.relowner::regrole) ORDER BY p.place)
            FROM unnest(s.parts) WITH ORDINALITY AS p (part, place)))) || ';' END
    FROM snowflake_migrate_internal.update_trigger_definitions(ARRAY[relation]) AS u
    JOIN pg_class AS c ON c.oid = relation
    CROSS JOIN LATERAL snowflake_migrate_internal.trigger_statements(u, is_to_be_guarded) AS s
    WHERE NOT u.is_inherited AND CASE WHEN is_to_be_guarded THEN u.enabled IN ('O', 'A') AND NOT u.is_guarded
               ELSE u.guard_owner IS NOT NULL
                    OR u.enabled IN ('O', 'A') AND NOT snowflake_migrate_internal.copies_as_replica(relation) END
    ORDER BY u.name, s.place
$function$;

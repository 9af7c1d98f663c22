-- The remaining statements of a migration, and running them.

-- Fails unless everything is ready for switching the default, and sets the boundary. The plan's last
-- statement calls it first, because psql continues after an error.
CREATE FUNCTION snowflake_migrate_internal.check_switch(target regclass, column_name name, search_path text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    narrow text;
BEGIN
    IF snowflake_internal.has_ids(target, column_name) THEN
        PERFORM snowflake_internal.refuse('55000', format('column "%s" of %s already has snowflake IDs', column_name, target),
            hint => 'Request the plan again.');
    END IF;
    IF NOT snowflake_migrate_internal.is_recorded(target, column_name) THEN
        PERFORM snowflake_internal.refuse('55000', format('the sequence of column "%s" of %s is not recorded yet', column_name, target),
            hint => 'Run the statements of snowflake_migrate.plan() in order.');
    END IF;
    SELECT string_agg(format('%s.%I', r.relation, a.attname), ', ') INTO narrow
    FROM snowflake_migrate_internal.linked_columns(ARRAY[(target, column_name)::snowflake_migrate_internal.key]) AS r
    JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
    WHERE r.is_narrow;
    IF narrow IS NOT NULL THEN
        PERFORM snowflake_internal.refuse('55000', format('columns are still too narrow for snowflake IDs: %s', narrow),
            hint => 'Run the statements of snowflake_migrate.plan() in order.');
    END IF;
    PERFORM snowflake_migrate_internal.check_rows(target, column_name, search_path, true);
    -- The sequence has advanced since it was recorded.
    PERFORM snowflake_migrate_internal.record_origin(target, column_name);
    PERFORM snowflake_internal.run(s.relation, s.statement)
    FROM snowflake_migrate_internal.boundary_statements(snowflake_migrate_internal.origin(target, column_name)) AS s;
END
$function$;

-- The note of the statement that gives a column its new default.
CREATE FUNCTION snowflake_migrate_internal.default_note(target regclass, column_name name)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('new rows get snowflake IDs from %s on, which an integer or a JavaScript Number (2^53) cannot hold. Existing rows keep their IDs, which decode to the first moments after the epoch: %s',
                  snowflake_migrate_internal.first_id_at(now()),
                  snowflake_migrate_internal.retention_note(ARRAY[(target, default_note.column_name)::snowflake_migrate_internal.key]))
           -- Other columns continue to use the sequence.
           || coalesce((
               SELECT '. The sequence is still used by ' || string_agg(format('%s.%I', f.adrelid::regclass, a.attname), ', ')
               FROM pg_depend AS mine
               JOIN pg_attrdef AS own ON mine.classid = 'pg_attrdef'::regclass AND mine.objid = own.oid AND own.adrelid = target
               JOIN pg_attribute AS me ON me.attrelid = own.adrelid AND me.attnum = own.adnum
                                      AND me.attname = default_note.column_name
               JOIN pg_class AS s ON s.oid = mine.refobjid AND mine.refclassid = 'pg_class'::regclass AND s.relkind = 'S'
               JOIN pg_depend AS theirs ON theirs.refclassid = 'pg_class'::regclass AND theirs.refobjid = s.oid
                                       AND theirs.classid = 'pg_attrdef'::regclass AND theirs.objid <> own.oid
               JOIN pg_attrdef AS f ON f.oid = theirs.objid
               JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
               -- The defaults of partitions and child tables change with the table's.
               WHERE (f.adrelid, f.adnum) NOT IN (
                   SELECT tree.relation, tree.attribute
                   FROM snowflake_migrate_internal.table_tree(target, default_note.column_name) AS tree)), '')
           || coalesce((
               SELECT '. New IDs must satisfy the check constraints ' || string_agg(k.conname, ', ' ORDER BY k.conname)
               FROM pg_constraint AS k JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
               WHERE k.conrelid = target AND k.contype = 'c' AND a.attname = default_note.column_name), '')
$function$;

-- The narrow columns of the tables that have views or other such objects, in the
-- order in which they are widened; NULL if there are none.
CREATE FUNCTION snowflake_migrate_internal.dependent_columns(keys snowflake_migrate_internal.key[])
RETURNS snowflake_migrate_internal.key[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH narrow AS MATERIALIZED (
        SELECT r.relation, a.attname, a.attnum
        FROM snowflake_migrate_internal.linked_columns(keys) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        WHERE r.is_narrow
    ), used AS MATERIALIZED (
        SELECT DISTINCT d.relation
        FROM snowflake_migrate_internal.direct_dependents(ARRAY(SELECT (n.relation, n.attname)::snowflake_migrate_internal.key FROM narrow AS n)) AS d
    )
    SELECT array_agg((n.relation, n.attname)::snowflake_migrate_internal.key
                     ORDER BY n.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, n.relation::text, n.attnum)
    FROM narrow AS n WHERE n.relation IN (SELECT u.relation FROM used AS u)
$function$;

-- These columns in groups: the tables of one group have views or other such objects in
-- common, directly or through others. One statement widens a group, because what is used by
-- two tables is then created again only once. Tables that have only a foreign key in common
-- may be widened one after the other. With what a note says about the objects of each
-- group: finding them takes as long for one group as for all.
CREATE FUNCTION snowflake_migrate_internal.dependent_groups(keys snowflake_migrate_internal.key[])
RETURNS TABLE (columns snowflake_migrate_internal.key[], note text, locked_too text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    remaining snowflake_migrate_internal.key[] := snowflake_migrate_internal.dependent_columns(keys);
    ends text[];
    other_ends text[];
    reached text[];
    nodes text[];
    relations regclass[];
    names text[];
    are_views boolean[];
BEGIN
    IF remaining IS NULL THEN
        RETURN;
    END IF;
    -- A table, or what depends on it, and what depends on that.
    WITH RECURSIVE edge (above, class, object) AS (
        SELECT concat_ws(' ', 'pg_class'::regclass::oid, d.relation::oid), d.class, d.object
        FROM snowflake_migrate_internal.direct_dependents(remaining) AS d
      UNION
        SELECT concat_ws(' ', e.class, e.object), n.node_class, n.node
        FROM edge AS e
        JOIN pg_depend AS d ON d.refclassid = e.class AND d.refobjid = e.object
        CROSS JOIN LATERAL snowflake_migrate_internal.dependent_node(d.classid, d.objid) AS n
        WHERE (n.node_class, n.node) <> (e.class, e.object)
    )
    SELECT array_agg(e.above), array_agg(concat_ws(' ', e.class, e.object)) INTO ends, other_ends FROM edge AS e;
    SELECT array_agg(l.node ORDER BY l.place), array_agg(l.relation ORDER BY l.place), array_agg(l.name ORDER BY l.place), array_agg(l.is_view ORDER BY l.place)
    INTO nodes, relations, names, are_views
    FROM snowflake_migrate_internal.listed_dependents(remaining) WITH ORDINALITY AS l (node, relation, name, is_view, place);
    WHILE remaining IS NOT NULL LOOP
        WITH RECURSIVE edge AS MATERIALIZED (
            SELECT e.* FROM unnest(ends || other_ends, other_ends || ends) AS e (here, there)
        ), reach (node) AS (
            SELECT concat_ws(' ', 'pg_class'::regclass::oid, (remaining[1]).target::oid)
          UNION
            SELECT e.there FROM reach AS r JOIN edge AS e ON e.here = r.node
        )
        SELECT array_agg(r.node) INTO reached FROM reach AS r;
        SELECT array_agg(k.key ORDER BY k.place) FILTER (WHERE k.is_reached), array_agg(k.key ORDER BY k.place) FILTER (WHERE NOT k.is_reached)
        INTO columns, remaining
        FROM (SELECT (r.target, r.column_name)::snowflake_migrate_internal.key AS key, r.place,
                     concat_ws(' ', 'pg_class'::regclass::oid, r.target::oid) = ANY (reached) AS is_reached
              FROM unnest(remaining) WITH ORDINALITY AS r (target, column_name, place)) AS k;
        SELECT snowflake_migrate_internal.dependents_note(array_agg(l.name ORDER BY l.place) FILTER (WHERE l.name IS NOT NULL), count(*) FILTER (WHERE l.is_view)),
               snowflake_migrate_internal.some_names(array_agg(DISTINCT l.relation::text) FILTER (
                   WHERE l.relation NOT IN (SELECT c.target FROM unnest(dependent_groups.columns) AS c)))
        INTO note, locked_too
        FROM unnest(nodes, relations, names, are_views) WITH ORDINALITY AS l (node, relation, name, is_view, place)
        WHERE l.node = ANY (reached);
        RETURN NEXT;
    END LOOP;
END
$function$;

-- The plan. Each step has the table whose owner's rights it is run with; one that
-- the caller runs has none. The keys are those of keys().
CREATE FUNCTION snowflake_migrate_internal.steps(
    keys snowflake_migrate_internal.key[], online boolean, search_path text DEFAULT NULL, keep_sequence boolean DEFAULT false
) RETURNS TABLE (step integer, statement text, lock_level text, rewrites boolean, in_transaction boolean, note text, relation regclass)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    core_schema CONSTANT text := snowflake_migrate_internal.core_schema();
    caller_path CONSTANT text := snowflake_migrate_internal.path_argument();
    is_narrow CONSTANT boolean := EXISTS (
        SELECT FROM snowflake_migrate_internal.linked_columns(keys) AS r WHERE r.is_narrow);
    is_widening CONSTANT boolean := is_narrow OR EXISTS (
        SELECT FROM unnest(keys) AS key
        CROSS JOIN LATERAL snowflake_migrate_internal.origin(key.target, key.column_name) AS o
        WHERE NOT keep_sequence AND o.reverted_at IS NULL AND o.data_type IN ('smallint', 'integer'));
    narrow_sequences CONSTANT snowflake_migrate_internal.key[] := CASE WHEN keep_sequence THEN ARRAY(
        SELECT (s.relation, s.column_name)::snowflake_migrate_internal.key FROM snowflake_migrate_internal.narrow_sequences(keys) AS s ORDER BY s.relation::text) END;
    is_switched CONSTANT boolean := CASE WHEN keep_sequence THEN narrow_sequences = '{}' ELSE NOT EXISTS (
        SELECT FROM unnest(keys) AS key
        WHERE NOT snowflake_internal.has_ids(key.target, key.column_name)) END;
    obstacles text;
    code text;
    states jsonb;
    targets_again text;
    -- How many locks the rewrite of each table needs.
    lock_tables regclass[];
    lock_counts bigint[];
    key record;
    altered record;
    -- The columns of tables that have views or other such objects: of one step, and of all.
    widened snowflake_migrate_internal.key[];
    widened_note text;
    widened_too text;
    all_widened snowflake_migrate_internal.key[];
    findings jsonb;
BEGIN
    IF is_narrow OR NOT is_switched THEN
        SELECT string_agg(format('%s. %s', o.obstacle, o.remedy), E'\n'), min(o.sqlstate_code)
        INTO obstacles, code
        FROM (SELECT o.* FROM snowflake_migrate_internal.obstacles(keys, search_path, keep_sequence) AS o
            UNION ALL
              SELECT o.* FROM snowflake_migrate_internal.plan_kind_obstacles(keys, coalesce(online, false)) AS o
            UNION ALL
              SELECT o.*
              FROM snowflake_migrate_internal.lock_needs(keys) AS n
              CROSS JOIN LATERAL snowflake_migrate_internal.lock_obstacles(n.locks, format('rewriting %s', n.relation)) AS o
              WHERE online IS NOT TRUE
            UNION ALL
              SELECT o.* FROM snowflake_migrate_internal.index_function_obstacles(keys, online, search_path) AS o
              WHERE NOT EXISTS (SELECT FROM snowflake_migrate_internal.owner_obstacles(keys))) AS o;
        IF obstacles IS NOT NULL THEN
            PERFORM snowflake_internal.refuse(code, format('cannot migrate %s', snowflake_migrate_internal.key_names(keys)),
                detail => obstacles,
                hint => 'Nothing was changed. Remove the obstacles'
                        || coalesce(', or leave out ' || snowflake_migrate_internal.refused_keys(keys, coalesce(online, false), keep_sequence), '')
                        || ', then request the plan again.');
        END IF;
    END IF;
    findings := snowflake_migrate_internal.warn(keys, coalesce(online, false) AND is_narrow, keep_sequence, is_narrow OR NOT is_switched);
    step := 0;
    in_transaction := true;

    FOR key IN
        SELECT k.target, k.column_name
        FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
        WHERE NOT keep_sequence AND NOT snowflake_internal.has_ids(k.target, k.column_name)
          AND NOT snowflake_migrate_internal.is_recorded(k.target, k.column_name)
        ORDER BY k.place
    LOOP
        step := step + 1;
        relation := key.target;
        statement := format('SELECT snowflake_migrate_internal.record_origin(%L::pg_catalog.regclass, %L::pg_catalog.name)',
                            snowflake_migrate_internal.name_of(key.target), key.column_name);
        lock_level := 'SHARE UPDATE EXCLUSIVE';
        rewrites := false;
        note := format('records the sequence of %s.%I; for snowflake_migrate.revert()', key.target, key.column_name);
        RETURN NEXT;
    END LOOP;

    -- A default that was set by hand leaves the boundary unknown.
    FOR key IN
        SELECT k.target, k.column_name, snowflake_migrate_internal.name_of(k.target) AS quoted_name
        FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
        WHERE NOT keep_sequence AND snowflake_migrate_internal.lacks_boundary(k.target, k.column_name)
        ORDER BY k.place
    LOOP
        step := step + 1;
        relation := key.target;
        statement := snowflake_migrate_internal.do_block(
            format(E'    PERFORM snowflake_migrate_internal.lock(%L::pg_catalog.regclass[], ''ACCESS EXCLUSIVE''::pg_catalog.text);\n', ARRAY[key.quoted_name])
            || (SELECT string_agg(snowflake_migrate_internal.altering_line(s.statement), '')
                FROM snowflake_internal.boundary_statements(key.target, key.column_name, snowflake_internal.oldest_id(), NULL) AS s));
        lock_level := 'ACCESS EXCLUSIVE';
        rewrites := false;
        note := format('sets the boundary of %s.%I; its default was not set by a migration. Smaller numbers than %s are old: %s', key.target, key.column_name,
                       snowflake_internal.oldest_id(), snowflake_migrate_internal.retention_note(ARRAY[(key.target, key.column_name)::snowflake_migrate_internal.key]));
        RETURN NEXT;
    END LOOP;

    IF online AND is_narrow THEN
        rewrites := false;
        relation := (keys[1]).target;
        FOR statement, lock_level, in_transaction, note IN
            SELECT s.statement, s.lock_level, s.in_transaction, s.note
            FROM snowflake_migrate_internal.online_steps(keys, keep_sequence) AS s
        LOOP
            step := step + 1;
            note := note || snowflake_migrate_internal.online_finding_notes(findings, statement);
            RETURN NEXT;
        END LOOP;
        RETURN;
    END IF;

    SELECT array_agg(n.relation), array_agg(n.locks) INTO lock_tables, lock_counts
    FROM snowflake_migrate_internal.lock_needs(keys) AS n;
    FOR widened, widened_note, widened_too IN
        SELECT g.columns, g.note, g.locked_too FROM snowflake_migrate_internal.dependent_groups(keys) AS g
    LOOP
        all_widened := all_widened || widened;
        step := step + 1;
        -- Objects of several owners: each statement in it is run as one of them.
        relation := NULL;
        statement := format('SELECT snowflake_migrate_internal.widen(%s, %s)', snowflake_migrate_internal.key_arguments(widened), caller_path);
        lock_level := 'ACCESS EXCLUSIVE';
        rewrites := true;
        note := format('widens %s; with their views: %s; %s; rewrites the tables and their indexes (%s now; needs as much additional disk space while it runs, and as much WAL) and checks their foreign keys again',
                       (SELECT snowflake_migrate_internal.counted(count(*), text 'column') || ' of ' || snowflake_migrate_internal.counted(count(DISTINCT w.target), text 'table')
                        FROM unnest(widened) AS w),
                       (SELECT snowflake_migrate_internal.some_names(array_agg(format('%s.%I', w.relation, w.column_name) ORDER BY w.place))
                        FROM unnest(widened) WITH ORDINALITY AS w (relation, column_name, place)),
                       widened_note,
                       (SELECT pg_size_pretty(sum(pg_total_relation_size(t.relid))) FROM (
                            WITH RECURSIVE tree (relid) AS (
                                SELECT w.target::oid FROM unnest(widened) AS w UNION SELECT i.inhrelid FROM tree JOIN pg_inherits AS i ON i.inhparent = tree.relid)
                            SELECT tree.relid FROM tree) AS t))
                || coalesce('. Also locked: ' || widened_too, '')
                || coalesce('. Also locked for their foreign keys: ' || snowflake_migrate_internal.some_names((
                                 SELECT array_agg(DISTINCT o.name ORDER BY o.name)
                                 FROM (SELECT w.target, array_agg(a.attnum) AS attributes
                                       FROM unnest(widened) AS w
                                       JOIN pg_attribute AS a ON a.attrelid = w.target AND a.attname = w.column_name
                                       GROUP BY w.target) AS l
                                 CROSS JOIN LATERAL snowflake_migrate_internal.other_locked_tables(l.target, l.attributes) AS o (name)
                                 WHERE o.name::regclass NOT IN (SELECT w.target FROM unnest(widened) AS w))), '')
                || coalesce((SELECT '. Published by ' || string_agg(DISTINCT p.publications, ', ') || ': widen the columns at the subscribers first'
                             FROM (SELECT snowflake_migrate_internal.publications(w.target, w.column_name) AS publications
                                   FROM unnest(widened) AS w) AS p
                             HAVING count(p.publications) > 0), '')
                || CASE WHEN EXISTS (SELECT FROM pg_partitioned_table AS p WHERE p.partrelid IN (SELECT w.target FROM unnest(widened) AS w))
                        THEN '. Indexes and not-null constraints of partitions that belong to one of the table are rebuilt: '
                             'they get new names and the comment of the table''s, and lose a CLUSTER setting' ELSE '' END
                || coalesce((SELECT string_agg(snowflake_migrate_internal.finding_notes(findings, text 'type', w.target), '')
                             FROM (SELECT DISTINCT t.target FROM unnest(widened) AS t) AS w), '');
        RETURN NEXT;
    END LOOP;

    FOR altered IN
        SELECT r.relation, snowflake_migrate_internal.name_of(r.relation) AS quoted_name,
               snowflake_migrate_internal.some_names(ARRAY(
                   SELECT o.name FROM snowflake_migrate_internal.other_locked_tables(r.relation, array_agg(a.attnum)) AS o (name) ORDER BY o.name)) AS locked_too,
               snowflake_migrate_internal.publications(r.relation, min(a.attname::text)::name) AS publications,
               string_agg(format('ALTER COLUMN %I TYPE bigint', a.attname), ', ' ORDER BY a.attnum) AS actions,
               string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS names,
               pg_size_pretty((SELECT sum(pg_total_relation_size(t.relid)) FROM (
                   WITH RECURSIVE tree (relid) AS (
                       SELECT r.relation::oid UNION SELECT i.inhrelid FROM tree JOIN pg_inherits AS i ON i.inhparent = tree.relid)
                   SELECT tree.relid FROM tree) AS t)) AS size,
               EXISTS (SELECT FROM pg_partitioned_table AS p WHERE p.partrelid = r.relation) AS is_partitioned,
               ARRAY(SELECT f.relation FROM snowflake_migrate_internal.table_tree(r.relation, min(a.attname::text)::name) AS f) AS tree
        FROM snowflake_migrate_internal.linked_columns(keys) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        WHERE r.is_narrow AND r.relation NOT IN (SELECT w.target FROM unnest(all_widened) AS w)
        GROUP BY r.relation
        ORDER BY r.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, r.relation::text
    LOOP
        step := step + 1;
        relation := altered.relation;
        statement := snowflake_migrate_internal.altering(format('ALTER TABLE %s %s', altered.quoted_name, altered.actions));
        states := snowflake_migrate_internal.trigger_states(altered.tree);
        SELECT string_agg(format(E'    %s;\n', t.statement), '' ORDER BY t.statement) INTO targets_again
        FROM snowflake_migrate_internal.statistics_targets(altered.tree) AS t;
        IF states IS NOT NULL OR targets_again IS NOT NULL THEN
            -- In one statement, because the states are lost after it.
            statement := snowflake_migrate_internal.do_block(concat(
                format(E'    PERFORM %s;\n', statement), targets_again,
                CASE WHEN states IS NOT NULL
                     THEN format(E'    PERFORM snowflake_migrate_internal.restore_trigger_states(%L::pg_catalog.jsonb);\n', states) END));
        ELSE
            statement := 'SELECT ' || statement;
        END IF;
        lock_level := 'ACCESS EXCLUSIVE';
        rewrites := true;
        note := format('widens %s of %s; rewrites the table and its indexes (%s now; needs as much additional disk space while it runs, and as much WAL) and checks its foreign keys again',
                       altered.names, altered.relation, altered.size)
                || coalesce('. Also locked: ' || nullif(altered.locked_too, ''), '')
                || coalesce((SELECT format('. Needs about %s locks, and the server has room for about %s: if it fails (53200), set max_locks_per_transaction to at least %s and restart the server',
                                           n.locks, s.slots * s.per_transaction, ceil(n.locks::numeric / s.slots))
                             FROM unnest(lock_tables, lock_counts) AS n (relation, locks)
                             CROSS JOIN (SELECT snowflake_migrate_internal.lock_slots() AS slots,
                                                current_setting('max_locks_per_transaction')::bigint AS per_transaction) AS s
                             WHERE n.relation = altered.relation AND n.locks > s.slots * s.per_transaction), '')
                || CASE WHEN states IS NOT NULL THEN '. Foreign keys with disabled triggers are created again: their states are restored' ELSE '' END
                || coalesce('. Published by ' || altered.publications || ': widen the column at the subscribers first', '')
                || CASE WHEN altered.is_partitioned THEN '. Indexes and not-null constraints of partitions that belong to one of the table are rebuilt: '
                                                    'they get new names and the comment of the table''s, and lose a CLUSTER setting' ELSE '' END
                || snowflake_migrate_internal.finding_notes(findings, text 'type', altered.relation);
        RETURN NEXT;
    END LOOP;

    FOR key IN
        SELECT k.target, k.column_name, snowflake_migrate_internal.name_of(k.target) AS quoted_name, a.attidentity, row_number() OVER (ORDER BY k.place) AS place
        FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
        JOIN pg_attribute AS a ON a.attrelid = k.target AND a.attname = k.column_name
        WHERE NOT keep_sequence AND NOT snowflake_internal.has_ids(k.target, k.column_name)
        ORDER BY k.place
    LOOP
        step := step + 1;
        relation := key.target;
        statement := snowflake_migrate_internal.do_block(
            -- Before the lock, because it reads every row.
            CASE WHEN EXISTS (SELECT FROM snowflake_migrate_internal.id_indexes(key.target, key.column_name) AS i WHERE NOT i.is_indexed)
                 THEN format(E'    PERFORM snowflake_migrate_internal.check_rows(%L::pg_catalog.regclass, %L::pg_catalog.name, %s);\n',
                             key.quoted_name, key.column_name, caller_path) ELSE '' END
            || CASE WHEN online
                 THEN format(E'    PERFORM snowflake_migrate_internal.lock(%L::pg_catalog.regclass[], ''ACCESS EXCLUSIVE''::pg_catalog.text);\n', ARRAY[key.quoted_name])
                 ELSE format(E'    LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;\n', key.quoted_name) END
            || format(E'    PERFORM snowflake_migrate_internal.check_switch(%L::pg_catalog.regclass, %L::pg_catalog.name, %s);\n',
                      key.quoted_name, key.column_name, caller_path)
            || CASE WHEN key.attidentity <> ''
                    THEN snowflake_migrate_internal.altering_line(format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', key.quoted_name, key.column_name))
                    ELSE '' END
            || snowflake_migrate_internal.altering_line(
                   format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.snowflake_nextval()', key.quoted_name, key.column_name, core_schema))
            || CASE WHEN is_widening
                    THEN format(E'    PERFORM snowflake_migrate_internal.recompile(%s);\n',
                                snowflake_migrate_internal.key_arguments(ARRAY[(key.target, key.column_name)::snowflake_migrate_internal.key])) ELSE '' END);
        lock_level := 'ACCESS EXCLUSIVE';
        rewrites := false;
        note := format('gives %s.%I snowflake IDs; ', key.target, key.column_name) || snowflake_migrate_internal.default_note(key.target, key.column_name)
                -- Once in a plan.
                || CASE key.place WHEN 1 THEN '. lastval() and currval(), which PDO, DBD::Pg, Doctrine and EclipseLink call, do not return new IDs; Rails needs DEFAULT snowflake_id(); '
                                              'TypeORM, drizzle-kit and Doctrine restore the column if its declaration is not changed before' ELSE '' END
                || snowflake_migrate_internal.finding_notes(findings, text 'default', key.target);
        RETURN NEXT;
    END LOOP;

    FOR key IN
        SELECT s.target, s.column_name FROM unnest(narrow_sequences) AS s
    LOOP
        step := step + 1;
        relation := key.target;
        statement := format('SELECT snowflake_migrate_internal.widen_sequence(%L::pg_catalog.regclass, %L::pg_catalog.name)',
                            snowflake_migrate_internal.name_of(key.target), key.column_name);
        lock_level := 'SHARE ROW EXCLUSIVE';
        rewrites := false;
        note := format('widens the sequence of %s.%I; it continues above the end of an integer. Only the sequence is locked', key.target, key.column_name);
        RETURN NEXT;
    END LOOP;
    IF keep_sequence AND is_narrow THEN
        step := step + 1;
        relation := (keys[1]).target;
        statement := format('SELECT snowflake_migrate_internal.recompile(%s)', snowflake_migrate_internal.key_arguments(keys));
        lock_level := 'ACCESS SHARE';
        rewrites := false;
        note := 'refreshes functions; sessions compile those again that use the columns';
        RETURN NEXT;
    END IF;

    -- A rewritten column has no statistics until the table is analyzed. Which
    -- columns have been rewritten is not known, so columns without statistics are
    -- analyzed. ANALYZE includes partitions, and other child tables from
    -- PostgreSQL 18 on.
    FOR altered IN
        SELECT f.relation, snowflake_migrate_internal.name_of(f.relation) AS quoted_name,
               string_agg(DISTINCT quote_ident(r.attname), ', ') AS names,
               bool_or(snowflake_migrate_internal.has_derived_statistics(f.relation, r.attname)) AS is_whole
        FROM (SELECT r.relation, a.attname, bool_or(r.is_narrow) OVER (PARTITION BY r.relation) AS is_rewritten
              FROM snowflake_migrate_internal.linked_columns(keys) AS r
              JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute) AS r
        CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(r.relation, r.attname) AS f
        JOIN pg_class AS c ON c.oid = f.relation AND NOT c.relispartition AND c.relkind <> 'f'
        WHERE pg_has_role(c.relowner, 'USAGE')
          AND (r.is_rewritten
               OR is_widening AND snowflake_migrate_internal.lacks_statistics(f.relation, r.attname))
        GROUP BY f.relation
        ORDER BY f.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, f.relation::text
    LOOP
        step := step + 1;
        relation := altered.relation;
        statement := 'ANALYZE ' || altered.quoted_name || CASE WHEN altered.is_whole THEN '' ELSE format(' (%s)', altered.names) END;
        lock_level := 'SHARE UPDATE EXCLUSIVE';
        rewrites := false;
        note := format('analyzes %s; a rewritten column has no statistics', altered.relation)
                || CASE WHEN altered.is_whole THEN ', nor have its extended statistics and index expressions: these are only collected with those of the whole table'
                        ELSE '' END;
        RETURN NEXT;
    END LOOP;
END
$function$;

-- Limits the wait for a lock to a few seconds, unless the caller has set
-- lock_timeout. A session that waits for ACCESS EXCLUSIVE blocks all sessions
-- queued behind it. Returns the former value, which the caller restores at its
-- end: the rest of the transaction is not the extension's. After an error, the end
-- of the subtransaction or transaction restores it.
CREATE FUNCTION snowflake_migrate_internal.limit_locks()
RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    former CONSTANT text := current_setting('lock_timeout');
BEGIN
    IF former = '0' THEN
        SET LOCAL lock_timeout = '5s';
    END IF;
    RETURN former;
END
$function$;

-- The plan for the keys that a caller specifies, or for all keys of the unfinished
-- online migration that they belong to.
-- Compiling a query over the catalog takes longer than running it.
CREATE FUNCTION snowflake_migrate_internal.plan(
    keys snowflake_migrate_internal.key[], online boolean, search_path text DEFAULT NULL, keep_sequence boolean DEFAULT false
) RETURNS TABLE (step integer, statement text, lock_level text, rewrites boolean, in_transaction boolean, note text, relation regclass)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
BEGIN
    IF online THEN
        -- As MOST_KEYS in src/migrate/records.rs.
        IF cardinality(keys) > 1600 THEN
            PERFORM snowflake_internal.refuse('54000', 'cannot migrate more than 1600 keys together online',
                detail => format('%s keys are specified.', cardinality(keys)),
                hint => 'Migrate the tables in several sets.');
        END IF;
        keys := snowflake_migrate_internal.unfinished(keys);
    END IF;
    RETURN QUERY SELECT s.* FROM snowflake_migrate_internal.steps(keys, online, search_path, coalesce(keep_sequence, false)) AS s;
END
$function$;

-- A time that is estimated, in words. It has no more precision than the estimate.
CREATE FUNCTION snowflake_migrate_internal.rough_time(seconds numeric)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN seconds < 60 THEN 'under 1 min'
                WHEN seconds < 5400 THEN format('about %s min', ceil(seconds / 60))
                WHEN seconds < 172800 THEN format('about %s h', ceil(seconds / 3600))
                ELSE format('about %s days', to_char(ceil(seconds / 86400), 'FM999,999')) END
$function$;

-- The sums of the statements that are left: the last row of a plan. The factors and
-- rates are those of the measurements in docs/migration.md.
CREATE FUNCTION snowflake_migrate_internal.sums(
    keys snowflake_migrate_internal.key[], online boolean, statements text[], OUT what text, OUT note text
) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    -- Of a rewrite: bytes a second, additional space, WAL.
    rewrite_rate CONSTANT numeric := 40 * 1048576;
    rewrite_space CONSTANT numeric := 1.3;
    rewrite_wal CONSTANT numeric := 1.25;
    -- Of an online migration: rows a second.
    copy_rate CONSTANT numeric := 80000;
    tables bigint;
    bytes numeric;
    largest numeric;
    index_count bigint;
    foreign_keys bigint;
    rows numeric;
    space numeric;
    wal numeric;
    checks bigint;
BEGIN
    IF online THEN
        keys := snowflake_migrate_internal.unfinished(keys);
    END IF;
    IF online AND EXISTS (SELECT FROM snowflake_migrate_internal.linked_columns(keys) AS r WHERE r.is_narrow) THEN
        SELECT n.tables, n.rows, n.bytes, n.wal INTO tables, rows, space, wal
        FROM snowflake_migrate_internal.backfill_needs(keys) AS n;
        SELECT count(*), coalesce(space, 0) + coalesce(sum(pg_relation_size(i.index)), 0), coalesce(wal, 0) + coalesce(sum(pg_relation_size(i.index)), 0)
        INTO index_count, space, wal
        FROM snowflake_migrate_internal.shadow_indexes(keys) AS i WHERE NOT i.is_ready;
        SELECT count(*) INTO checks FROM unnest(statements) AS s (statement) WHERE strpos(s.statement, ' VALIDATE CONSTRAINT ') > 0;
        what := CASE WHEN rows IS NULL THEN 'in all: the rows are copied, no estimate'
                     ELSE format('in all: %s more disk, %s', pg_size_pretty(space), snowflake_migrate_internal.rough_time(rows / copy_rate)) END;
        note := format('disk: up to %s more until the tables are vacuumed. WAL: about %s. Scans: %s, and two for each of %s. ',
                       pg_size_pretty(space), pg_size_pretty(wal), snowflake_migrate_internal.counted(checks, text 'validation'),
                       snowflake_migrate_internal.counted(index_count, text 'index build'))
                || CASE WHEN rows IS NULL THEN 'Time: that of the scans'
                        ELSE format('Time: %s at %s rows a second, with the indexes, measured with narrow rows on a 2-core machine; measure on a copy',
                                    snowflake_migrate_internal.counted(rows::bigint, text 'row'), to_char(copy_rate, 'FM999,999')) END;
        RETURN;
    END IF;
    SELECT count(*), sum(t.bytes), max(t.bytes), sum(t.indexes) INTO tables, bytes, largest, index_count
    FROM (SELECT pg_total_relation_size(f.relation) AS bytes, (SELECT count(*) FROM pg_index AS i WHERE i.indrelid = f.relation) AS indexes
          FROM (SELECT DISTINCT tree.relation
                FROM snowflake_migrate_internal.linked_columns(keys) AS r
                JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
                CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(r.relation, a.attname) AS tree
                WHERE r.is_narrow) AS f
          JOIN pg_class AS c ON c.oid = f.relation AND c.relkind = 'r') AS t;
    IF tables = 0 THEN
        what := 'in all: no table is rewritten';
        note := 'no additional disk space, and little WAL. The statements take milliseconds once they have their locks; ANALYZE, and the check of a key '
                'that no index leads with, read the table';
        RETURN;
    END IF;
    SELECT count(DISTINCT k.oid) INTO foreign_keys
    FROM snowflake_migrate_internal.linked_columns(keys) AS r
    JOIN pg_constraint AS k ON k.contype = 'f' AND k.conparentid = 0
        AND (k.conrelid = r.relation AND r.attribute = ANY (k.conkey) OR k.confrelid = r.relation AND r.attribute = ANY (k.confkey))
    WHERE r.is_narrow;
    what := format('in all: rewrites %s, %s', pg_size_pretty(bytes), snowflake_migrate_internal.rough_time(bytes / rewrite_rate));
    note := format('rewrites %s with %s. Disk: up to %s more in one transaction, %s if the statements run one by one. WAL: about %s. '
                   'Scans: one of each table, and the check of %s once for each of its columns. '
                   'Time: %s at %s/s, measured on a 2-core machine; measure on a copy',
                   snowflake_migrate_internal.counted(tables, text 'table'),
                   CASE index_count WHEN 1 THEN '1 index' ELSE to_char(index_count, 'FM999,999,999') || ' indexes' END,
                   pg_size_pretty(round(bytes * rewrite_space)), pg_size_pretty(round(largest * rewrite_space)),
                   pg_size_pretty(round(bytes * rewrite_wal)), snowflake_migrate_internal.counted(foreign_keys, text 'foreign key'),
                   pg_size_pretty(bytes), pg_size_pretty(rewrite_rate));
END
$function$;

-- Keeps the names of the schemas that a migration's statements are written with, until
-- the end of the transaction: those of the tables, of their sequences, and the
-- extension's own. Otherwise who owns one of them could put another one in its place
-- before a statement is run. In order, so that two sessions do not wait for each other.
CREATE FUNCTION snowflake_migrate_internal.pin(keys snowflake_migrate_internal.key[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_migrate_internal.pin_schemas(ARRAY(
        SELECT DISTINCT c.relnamespace FROM pg_class AS c
        WHERE c.oid IN (
            SELECT f.relation
            FROM snowflake_migrate_internal.linked_columns(keys) AS r
            JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
            CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(r.relation, a.attname) AS f
          UNION
            SELECT s.sequence
            FROM unnest(keys) AS key
            CROSS JOIN LATERAL snowflake_migrate_internal.source(key.target, key.column_name) AS s)
      UNION
        SELECT p.pronamespace FROM pg_proc AS p WHERE p.oid = snowflake_migrate_internal.nextval_function()
        ORDER BY 1));
END
$function$;

-- Runs the plan in one transaction.
CREATE FUNCTION snowflake_migrate_internal.run_plan(keys snowflake_migrate_internal.key[], search_path text, keep_sequence boolean)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    former_timeout CONSTANT text := snowflake_migrate_internal.limit_locks();
    plan_step record;
    done integer := 0;
    states jsonb;
    recompiles boolean := false;
    is_widened boolean := false;
    -- Then only the boundary may be left to set.
    was_switched CONSTANT boolean := (SELECT bool_and(snowflake_internal.has_ids(k.target, k.column_name)) FROM unnest(keys) AS k);
    -- What the present step locks; NULL while the plan is made.
    locking regclass[];
    lock_mode text;
    detail text;
BEGIN
    PERFORM snowflake_migrate_internal.exclude_others(keys);
    PERFORM snowflake_migrate_internal.pin(keys);
    -- Not by the steps, which run as the tables' owners.
    SET LOCAL snowflake_migrate_internal.recompiles_later = 'on';
    BEGIN
        FOR plan_step IN SELECT * FROM snowflake_migrate_internal.plan(keys, false, search_path, keep_sequence) LOOP
            IF done = 0 THEN
                PERFORM snowflake_migrate_internal.require_locks(keys);
            END IF;
            recompiles := recompiles OR strpos(plan_step.statement, 'snowflake_migrate_internal.recompile(') > 0;
            RAISE NOTICE 'step %: %', plan_step.step, plan_step.note;
            lock_mode := plan_step.lock_level;
            locking := CASE WHEN plan_step.relation IS NOT NULL THEN ARRAY[plan_step.relation]
                            ELSE ARRAY(SELECT d.target FROM unnest(snowflake_migrate_internal.dependent_columns(keys)) AS d)
                                 || snowflake_migrate_internal.dependent_relations(snowflake_migrate_internal.dependent_columns(keys)) END;
            IF plan_step.relation IS NULL THEN
                -- All groups at once: a transaction keeps the locks of each to its end anyway.
                IF NOT is_widened THEN
                    PERFORM snowflake_migrate_internal.widen(snowflake_migrate_internal.dependent_columns(keys),
                                                             coalesce(search_path, current_setting('search_path')));
                    is_widened := true;
                END IF;
            ELSE
                IF plan_step.rewrites THEN
                    states := snowflake_migrate_internal.trigger_states(ARRAY(
                        WITH RECURSIVE tree (oid) AS (
                            SELECT plan_step.relation::oid
                          UNION
                            SELECT i.inhrelid FROM tree JOIN pg_inherits AS i ON i.inhparent = tree.oid
                        )
                        SELECT tree.oid::regclass FROM tree));
                END IF;
                PERFORM snowflake_internal.run(plan_step.relation, plan_step.statement, search_path);
                -- With the caller's own rights: the table's owner may not.
                PERFORM snowflake_migrate_internal.restore_trigger_states(states) WHERE plan_step.rewrites AND states IS NOT NULL;
            END IF;
            done := done + 1;
        END LOOP;
    EXCEPTION WHEN lock_not_available THEN
        GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
        IF detail <> '' THEN
            RAISE;
        END IF;
        -- The plan also reads the tables, to find their views' columns.
        PERFORM snowflake_migrate_internal.lock_timed_out(
            snowflake_migrate_internal.locked_with(coalesce(locking, ARRAY(
                SELECT k.target FROM unnest(keys) AS k UNION SELECT r.relation FROM snowflake_migrate_internal.linked_columns(keys) AS r))),
            coalesce(lock_mode, 'ACCESS SHARE'));
    END;
    SET LOCAL snowflake_migrate_internal.recompiles_later = '';
    IF recompiles THEN
        -- With the caller's own rights: functions may have other owners than the tables.
        PERFORM snowflake_migrate_internal.recompile(keys);
    END IF;
    EXECUTE format('SET LOCAL lock_timeout = %L', former_timeout);
    IF done > 0 AND keep_sequence THEN
        RAISE NOTICE '%', snowflake_migrate_internal.done_notice(keys, true);
    ELSIF done > 0 THEN
        IF NOT was_switched THEN
            RAISE NOTICE '%', snowflake_migrate_internal.done_notice(keys, false);
        END IF;
        RAISE NOTICE 'old rows keep their IDs: %', snowflake_migrate_internal.retention_note(keys);
    ELSIF cardinality(keys) = 1 THEN
        RAISE NOTICE 'nothing to do: % is already migrated', (keys[1]).target;
    ELSE
        RAISE NOTICE 'nothing to do: % are already migrated', (
            SELECT string_agg(k.target::text, ', ' ORDER BY k.place) FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place));
    END IF;
END
$function$;

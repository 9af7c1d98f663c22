-- The steps of a migration in one transaction, or in a window: columns are widened in place,
-- which rewrites their tables.

-- The narrow columns of the tables that have views or other such objects, in the
-- order in which they are widened; NULL if there are none.
CREATE FUNCTION snowflake_migrate_internal.dependent_columns(keys snowflake_migrate_internal.key[])
RETURNS snowflake_migrate_internal.key[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH narrow AS MATERIALIZED (
        SELECT r.relation, r.attname, r.attribute FROM snowflake_migrate_internal.linked_columns(keys) AS r WHERE r.is_narrow
    ), used AS MATERIALIZED (
        SELECT DISTINCT d.relation
        FROM snowflake_migrate_internal.direct_dependents(ARRAY(
            SELECT (n.relation, n.attname)::snowflake_migrate_internal.key FROM narrow AS n)) AS d
    )
    SELECT array_agg((n.relation, n.attname)::snowflake_migrate_internal.key
                     ORDER BY n.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, n.relation::text, n.attribute)
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
    SELECT array_agg(l.node ORDER BY l.place), array_agg(l.relation ORDER BY l.place), array_agg(l.name ORDER BY l.place),
           array_agg(l.is_view ORDER BY l.place)
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
        SELECT array_agg(k.key ORDER BY k.place) FILTER (WHERE k.is_reached),
               array_agg(k.key ORDER BY k.place) FILTER (WHERE NOT k.is_reached)
        INTO columns, remaining
        FROM (SELECT (r.target, r.column_name)::snowflake_migrate_internal.key AS key, r.place,
                     concat_ws(' ', 'pg_class'::regclass::oid, r.target::oid) = ANY (reached) AS is_reached
              FROM unnest(remaining) WITH ORDINALITY AS r (target, column_name, place)) AS k;
        SELECT snowflake_migrate_internal.dependents_note(array_agg(l.name ORDER BY l.place) FILTER (WHERE l.name IS NOT NULL),
                                                          count(*) FILTER (WHERE l.is_view)),
               snowflake_migrate_internal.some_names(array_agg(DISTINCT l.relation::text) FILTER (
                   WHERE l.relation NOT IN (SELECT c.target FROM unnest(dependent_groups.columns) AS c)))
        INTO note, locked_too
        FROM unnest(nodes, relations, names, are_views) WITH ORDINALITY AS l (node, relation, name, is_view, place)
        WHERE l.node = ANY (reached);
        RETURN NEXT;
    END LOOP;
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.partitions_note(tables regclass[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN EXISTS (SELECT FROM pg_partitioned_table AS p WHERE p.partrelid = ANY (tables))
                THEN '. Indexes and not-null constraints of partitions that belong to one of the table are rebuilt: '
                     'they get new names and the comment of the table''s, and lose a CLUSTER setting' ELSE '' END
$function$;

-- The note of a step that widens columns with their views.
CREATE FUNCTION snowflake_migrate_internal.widening_note(columns snowflake_migrate_internal.key[], dependents text, locked_too text)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH widened AS MATERIALIZED (
        SELECT c.target, c.column_name, c.place FROM unnest(columns) WITH ORDINALITY AS c (target, column_name, place)
    )
    SELECT format('with their views: %s; %s; rewrites the tables and their indexes (%s now; needs as much additional disk space '
                  'while it runs, and as much WAL) and checks their foreign keys again',
                  (SELECT snowflake_migrate_internal.some_names(array_agg(format('%s.%I', w.target, w.column_name) ORDER BY w.place))
                   FROM widened AS w),
                  dependents,
                  (SELECT pg_size_pretty(sum(snowflake_migrate_internal.total_bytes(t.oid)))
                   FROM snowflake_internal.tree(ARRAY(SELECT w.target FROM widened AS w)) AS t (oid)))
           || coalesce('. Also locked: ' || locked_too, '')
           || coalesce('. Also locked for their foreign keys: ' || snowflake_migrate_internal.some_names((
                  SELECT array_agg(DISTINCT o.name ORDER BY o.name)
                  FROM (SELECT w.target, array_agg(a.attnum) AS attributes
                        FROM widened AS w JOIN pg_attribute AS a ON a.attrelid = w.target AND a.attname = w.column_name
                        GROUP BY w.target) AS l
                  CROSS JOIN LATERAL snowflake_migrate_internal.other_locked_tables(l.target, l.attributes) AS o (name)
                  WHERE o.name::regclass NOT IN (SELECT w.target FROM widened AS w))), '')
           || coalesce('. Published by '
                       || (SELECT string_agg(DISTINCT snowflake_migrate_internal.publications(w.target, w.column_name), ', ')
                           FROM widened AS w)
                       || ': widen the columns at the subscribers first', '')
           || snowflake_migrate_internal.partitions_note(ARRAY(SELECT w.target FROM widened AS w))
$function$;

-- The steps that widen columns of tables with views or other such objects.
CREATE FUNCTION snowflake_migrate_internal.widening_steps(
    keys snowflake_migrate_internal.key[], findings snowflake_migrate_internal.finding[]
) RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    -- Objects of several owners: each statement in it is run as one of them.
    SELECT snowflake_migrate_internal.step(text 'widen', NULL, text 'ACCESS EXCLUSIVE',
        CASE cardinality(g.columns) WHEN 1 THEN 'widens %s with its views'
                                    ELSE 'widens ' || cardinality(g.columns) || ' columns with their views: %s' END,
        snowflake_migrate_internal.widening_note(g.columns, g.note, g.locked_too)
        || coalesce((SELECT string_agg(snowflake_migrate_internal.finding_notes(findings, text 'type', w.target), '')
                     FROM (SELECT DISTINCT t.target FROM unnest(g.columns) AS t) AS w), ''),
        ARRAY[snowflake_migrate_internal.command(text 'widen', NULL)], g.columns, rewrites => true,
        names => ARRAY[(SELECT string_agg(format('%s.%I', w.target, w.column_name), ', ' ORDER BY w.place)
                        FROM unnest(g.columns) WITH ORDINALITY AS w (target, column_name, place))],
        work => snowflake_migrate_internal.rewrite_work(g.columns))
    FROM snowflake_migrate_internal.dependent_groups(keys) AS g
$function$;

-- What a note says if the server has not room for the locks of a rewrite.
CREATE FUNCTION snowflake_migrate_internal.locks_note(locks bigint)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN locks > s.slots * s.per_transaction
                THEN format('. Needs about %s locks, and the server has room for about %s: if it fails (53200), '
                            'set max_locks_per_transaction to at least %s and restart the server',
                            locks, s.slots * s.per_transaction, ceil(locks::numeric / s.slots)) ELSE '' END
    FROM (SELECT snowflake_migrate_internal.lock_slots() AS slots,
                 current_setting('max_locks_per_transaction')::bigint AS per_transaction) AS s
$function$;

-- The steps that widen the columns of the other tables.
CREATE FUNCTION snowflake_migrate_internal.rewriting_steps(
    keys snowflake_migrate_internal.key[], findings snowflake_migrate_internal.finding[]
) RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH altered AS MATERIALIZED (
        SELECT r.relation, snowflake_migrate_internal.name_of(r.relation) AS quoted_name,
               array_agg(r.attribute) AS attributes, min(r.attname::text)::name AS first_name,
               string_agg(format('ALTER COLUMN %I TYPE bigint', r.attname), ', ' ORDER BY r.attribute) AS actions,
               string_agg(quote_ident(r.attname), ', ' ORDER BY r.attribute) AS names
        FROM snowflake_migrate_internal.linked_columns(keys) AS r
        WHERE r.is_narrow AND r.relation NOT IN (SELECT w.target FROM unnest(snowflake_migrate_internal.dependent_columns(keys)) AS w)
        GROUP BY r.relation
    ), known AS MATERIALIZED (
        SELECT d.*, tree.relations,
               CASE WHEN tree.relations && ARRAY(SELECT s.relation FROM snowflake_migrate_internal.tables_with_states() AS s (relation))
                    THEN snowflake_migrate_internal.trigger_states(tree.relations) END AS states, coalesce(n.locks, 0) AS locks
        FROM altered AS d
        LEFT JOIN snowflake_migrate_internal.lock_needs(keys) AS n ON n.relation = d.relation
        CROSS JOIN LATERAL (SELECT ARRAY(
            SELECT f.relation FROM snowflake_migrate_internal.table_tree(d.relation, d.first_name) AS f)) AS tree (relations)
    )
    SELECT snowflake_migrate_internal.step(text 'rewrite', d.relation, text 'ACCESS EXCLUSIVE',
        text 'widens %s of %s',
        format('rewrites the table and its indexes (%s now; needs as much additional disk space while it runs, and as much WAL) '
               'and checks its foreign keys again',
               (SELECT pg_size_pretty(sum(snowflake_migrate_internal.total_bytes(t.oid)))
                FROM snowflake_internal.tree(ARRAY[d.relation]) AS t (oid)))
        || coalesce('. Also locked: ' || nullif(snowflake_migrate_internal.some_names(ARRAY(
               SELECT o.name FROM snowflake_migrate_internal.other_locked_tables(d.relation, d.attributes) AS o (name)
               ORDER BY o.name)), ''), '')
        || snowflake_migrate_internal.locks_note(d.locks)
        || CASE WHEN d.states IS NOT NULL
                THEN '. Foreign keys with disabled triggers are created again: their states are restored' ELSE '' END
        || coalesce('. Published by ' || snowflake_migrate_internal.publications(d.relation, d.first_name)
                    || ': widen the column at the subscribers first', '')
        || snowflake_migrate_internal.partitions_note(ARRAY[d.relation])
        || snowflake_migrate_internal.finding_notes(findings, text 'type', d.relation),
        -- In one statement, because the states are lost after it.
        snowflake_migrate_internal.command(text 'alter', d.relation, format('ALTER TABLE %s %s', d.quoted_name, d.actions))
        || ARRAY(SELECT t FROM snowflake_migrate_internal.statistics_targets(d.relations) AS t ORDER BY t.sql)
        || CASE WHEN d.states IS NOT NULL THEN ARRAY[snowflake_migrate_internal.command(text 'states', d.relation, d.states::text)] END,
        rewrites => true, names => ARRAY[d.names, d.relation::text],
        work => snowflake_migrate_internal.rewrite_work(ARRAY(
            SELECT (d.relation, a.attname)::snowflake_migrate_internal.key
            FROM pg_attribute AS a WHERE a.attrelid = d.relation AND a.attnum = ANY (d.attributes))))
    FROM known AS d
    ORDER BY d.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, d.relation::text
$function$;

-- The note of the step that gives a column its new default.
CREATE FUNCTION snowflake_migrate_internal.default_note(target regclass, column_name name)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.new_ids_note(ARRAY[(target, default_note.column_name)::snowflake_migrate_internal.key])
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

CREATE FUNCTION snowflake_migrate_internal.switch_steps(
    keys snowflake_migrate_internal.key[], online boolean, is_widening boolean, findings snowflake_migrate_internal.finding[]
) RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH switched AS MATERIALIZED (
        SELECT k.target, k.column_name, snowflake_migrate_internal.name_of(k.target) AS quoted_name, a.attidentity,
               row_number() OVER (ORDER BY k.place) AS place, q.sequence, q.fate,
               CASE WHEN EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhparent = k.target) THEN ARRAY(
                   SELECT c.oid::regclass FROM snowflake_migrate_internal.table_tree(k.target, k.column_name) AS f
                   JOIN pg_class AS c ON c.oid = f.relation AND c.relkind IN ('r', 'p') AND c.oid <> k.target
                   ORDER BY c.oid) END AS children
        FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
        JOIN pg_attribute AS a ON a.attrelid = k.target AND a.attname = k.column_name
        LEFT JOIN snowflake_migrate_internal.sequences_at_switch(keys) AS q ON q.target = k.target AND q.column_name = k.column_name
        WHERE NOT snowflake_internal.has_ids(k.target, k.column_name)
    )
    SELECT snowflake_migrate_internal.step(text 'switch', s.target, text 'ACCESS EXCLUSIVE',
        text 'gives %s.%s snowflake IDs',
        snowflake_migrate_internal.default_note(s.target, s.column_name)
        || snowflake_migrate_internal.renewal_note(ARRAY[s.fate], ARRAY[s.sequence])
        -- Once in a plan.
        || CASE s.place WHEN 1
                THEN '. lastval() and currval(), which PDO, DBD::Pg, Doctrine and EclipseLink call, do not return new IDs; '
                     'Rails needs DEFAULT snowflake_id(); TypeORM, drizzle-kit and Doctrine restore the column '
                     'if its declaration is not changed before' ELSE '' END
        || snowflake_migrate_internal.finding_notes(findings, text 'default', s.target),
        -- Before the lock, because it reads every row.
        CASE WHEN EXISTS (SELECT FROM snowflake_migrate_internal.id_indexes(s.target, s.column_name) AS i WHERE NOT i.is_indexed)
             THEN ARRAY[snowflake_migrate_internal.command(text 'call', s.target,
                      format('snowflake_migrate_internal.check_rows(%L::pg_catalog.regclass, %L::pg_catalog.name, %s)',
                             s.quoted_name, s.column_name, snowflake_migrate_internal.path_argument()))] END
        || CASE WHEN online
                THEN snowflake_migrate_internal.lock_command(
                         array_remove(s.target || s.children || CASE WHEN s.fate <> 'kept' THEN s.sequence END, NULL))
                WHEN s.fate <> 'kept'
                THEN snowflake_migrate_internal.command(text 'lock in time', s.target, text 'ACCESS EXCLUSIVE',
                                                        relations => s.target || s.children || s.sequence)
                ELSE snowflake_migrate_internal.command(text 'plain', s.target,
                                                        format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', s.quoted_name)) END
        || snowflake_migrate_internal.command(text 'switch', s.target, columns => ARRAY[s.column_name])
        || CASE WHEN s.fate = 'renewed'
                THEN ARRAY[snowflake_migrate_internal.command(text 'renew', s.target, columns => ARRAY[s.column_name])] END
        || CASE WHEN s.attidentity <> ''
                THEN ARRAY[snowflake_migrate_internal.command(text 'alter', s.target,
                         format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', s.quoted_name, s.column_name))] END
        || snowflake_migrate_internal.command(text 'alter', s.target,
               format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.snowflake_nextval()',
                      s.quoted_name, s.column_name, snowflake_migrate_internal.core_schema()))
        || CASE WHEN is_widening THEN ARRAY[snowflake_migrate_internal.command(text 'recompile', s.target)] END,
        ARRAY[(s.target, s.column_name)::snowflake_migrate_internal.key],
        names => ARRAY[s.target::text, quote_ident(s.column_name)])
    FROM switched AS s
    ORDER BY s.place
$function$;

-- The steps that analyze tables. A rewritten column has no statistics until then. Which
-- columns have been rewritten is not known, so columns without statistics are analyzed.
-- ANALYZE includes partitions, and other child tables from PostgreSQL 18 on.
CREATE FUNCTION snowflake_migrate_internal.analyze_steps(keys snowflake_migrate_internal.key[], is_widening boolean)
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH altered AS (
        SELECT f.relation, string_agg(DISTINCT quote_ident(r.attname), ', ') AS names,
               bool_or(snowflake_migrate_internal.has_derived_statistics(f.relation, r.attname)) AS is_whole
        FROM (SELECT r.relation, r.attname, bool_or(r.is_narrow) OVER (PARTITION BY r.relation) AS is_rewritten
              FROM snowflake_migrate_internal.linked_columns(keys) AS r) AS r
        CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(r.relation, r.attname) AS f
        JOIN pg_class AS c ON c.oid = f.relation AND NOT c.relispartition AND c.relkind <> 'f'
        WHERE pg_has_role(c.relowner, 'USAGE')
          AND (r.is_rewritten
               OR is_widening AND snowflake_migrate_internal.lacks_statistics(f.relation, r.attname))
        GROUP BY f.relation
    )
    SELECT snowflake_migrate_internal.step(text 'analyze', d.relation, text 'SHARE UPDATE EXCLUSIVE',
        text 'analyzes %s',
        'a rewritten column has no statistics'
        || CASE WHEN d.is_whole
                THEN ', nor have its extended statistics and index expressions: '
                     'these are only collected with those of the whole table' ELSE '' END,
        ARRAY[snowflake_migrate_internal.command(text 'plain', d.relation,
            'ANALYZE ' || snowflake_migrate_internal.name_of(d.relation)
            || CASE WHEN d.is_whole THEN '' ELSE format(' (%s)', d.names) END)],
        names => ARRAY[d.relation::text])
    FROM altered AS d
    ORDER BY d.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, d.relation::text
$function$;

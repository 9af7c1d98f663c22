-- Views and other objects that PostgreSQL does not let follow a column to another
-- type. A migration drops them, changes the column, and creates them again.
--
-- The functions take columns as pairs of a table and a name, because an online
-- migration replaces a column by another one of the same name.
--
-- The estimates for recursive queries are far too high. They must not lead to the
-- compilation of queries (jit) that take milliseconds, some of them under a lock.
--
-- This file: finding these objects.

-- The node of a dependency in pg_depend: a view stands for its rule.
CREATE FUNCTION snowflake_migrate_internal.dependent_node(class oid, object oid, OUT node_class oid, OUT node oid)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT coalesce((SELECT 'pg_class'::regclass::oid FROM pg_rewrite AS w
                     WHERE w.oid = object AND w.rulename = '_RETURN' AND class = 'pg_rewrite'::regclass), class),
           coalesce((SELECT w.ev_class FROM pg_rewrite AS w
                     WHERE w.oid = object AND w.rulename = '_RETURN' AND class = 'pg_rewrite'::regclass), object)
$function$;

-- The objects that use the columns, or those of partitions and child tables.
CREATE FUNCTION snowflake_migrate_internal.direct_dependents(columns snowflake_migrate_internal.key[])
RETURNS TABLE (relation regclass, class oid, object oid) LANGUAGE sql STABLE ROWS 4
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT DISTINCT given.target, n.node_class, n.node
    FROM unnest(columns) AS given
    CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(given.target, given.column_name) AS f
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.relation AND d.refobjsubid = f.attribute
    CROSS JOIN LATERAL snowflake_migrate_internal.dependent_node(d.classid, d.objid) AS n
    WHERE d.classid IN ('pg_rewrite'::regclass, 'pg_policy'::regclass, 'pg_proc'::regclass)
       OR d.classid = 'pg_trigger'::regclass AND EXISTS (SELECT FROM pg_trigger AS t WHERE t.oid = d.objid AND NOT t.tgisinternal)
  UNION
    -- Of a table that is named without a column: what uses it, or its row type.
    SELECT given.target, n.node_class, n.node
    FROM unnest(columns) AS given
    JOIN pg_class AS c ON c.oid = given.target
    JOIN pg_type AS y ON y.oid = c.reltype
    JOIN pg_depend AS d ON (d.refclassid, d.refobjid) IN (('pg_class'::regclass, c.oid), ('pg_type'::regclass, c.reltype),
                                                          ('pg_type'::regclass, y.typarray))
    CROSS JOIN LATERAL snowflake_migrate_internal.dependent_node(d.classid, d.objid) AS n
    WHERE given.column_name IS NULL
      AND (d.classid IN ('pg_rewrite'::regclass, 'pg_policy'::regclass, 'pg_proc'::regclass)
           OR d.classid = 'pg_trigger'::regclass AND EXISTS (SELECT FROM pg_trigger AS t
                                                             WHERE t.oid = d.objid AND NOT t.tgisinternal AND t.tgparentid = 0)
           OR d.refclassid = 'pg_type'::regclass AND d.deptype = 'n')
$function$;

-- kind is NULL for objects that are part of others, such as a view's row type, and
-- 'other' for those that cannot be created again. relation is the table that is
-- locked.
CREATE TYPE snowflake_migrate_internal.dependent AS (
    place integer, kind text, class oid, object oid, relation regclass, owner oid, schema oid, identity text, is_extended boolean
);

-- The objects that depend on columns, and what depends on those, to any depth.
-- An object comes after those that it depends on: place is the length of the
-- longest path. In a circle, paths have no end; place is then NULL.
CREATE FUNCTION snowflake_migrate_internal.dependents(columns snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.dependent LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH RECURSIVE edge (above_class, above, class, object) AS (
        SELECT 0::oid, 0::oid, n.class, n.object FROM snowflake_migrate_internal.direct_dependents(columns) AS n
      UNION
        SELECT e.class, e.object, n.node_class, n.node
        FROM edge AS e
        JOIN pg_depend AS d ON d.refclassid = e.class AND d.refobjid = e.object
        CROSS JOIN LATERAL snowflake_migrate_internal.dependent_node(d.classid, d.objid) AS n
        WHERE (n.node_class, n.node) <> (e.class, e.object)
    ), node AS MATERIALIZED (
        SELECT DISTINCT e.class, e.object FROM edge AS e
    ), path (class, object, length) AS (
        SELECT e.class, e.object, 1 FROM edge AS e WHERE e.above = 0
      UNION
        SELECT e.class, e.object, p.length + 1
        FROM path AS p JOIN edge AS e ON e.above_class = p.class AND e.above = p.object
        -- Without a circle, no path is longer than the number of nodes.
        WHERE p.length <= 2 * (SELECT count(*) FROM node)
    ), placed AS (
        SELECT p.class, p.object, CASE WHEN max(p.length) <= (SELECT count(*) FROM node) THEN max(p.length) END AS place
        FROM path AS p GROUP BY p.class, p.object
    )
    SELECT p.place,
           CASE WHEN p.class = 'pg_class'::regclass
                THEN CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
                                    WHEN 'i' THEN CASE t.relkind WHEN 'm' THEN 'index' WHEN 't' THEN NULL ELSE 'other' END
                                    WHEN 't' THEN NULL ELSE 'other' END
                WHEN p.class = 'pg_rewrite'::regclass THEN 'rule'
                WHEN p.class = 'pg_policy'::regclass THEN 'policy'
                WHEN p.class = 'pg_trigger'::regclass
                THEN CASE WHEN g.tgisinternal THEN 'other' WHEN g.tgparentid <> 0 THEN 'trigger of a partition' ELSE 'trigger' END
                WHEN p.class = 'pg_proc'::regclass THEN CASE WHEN f.prokind = 'a' THEN 'other' ELSE 'function' END
                WHEN p.class = 'pg_attrdef'::regclass AND t.relkind = 'v' THEN 'default'
                WHEN p.class = 'pg_statistic_ext'::regclass AND t.relkind = 'm' THEN 'statistics'
                WHEN p.class = 'pg_type'::regclass
                     AND EXISTS (SELECT FROM pg_type AS y JOIN pg_type AS e ON e.oid IN (y.oid, y.typelem)
                                 JOIN pg_class AS v ON v.oid = e.typrelid
                                 WHERE y.oid = p.object AND y.typtype IN ('c', 'b') AND v.relkind IN ('v', 'm')) THEN NULL
                -- That of a constraint trigger.
                WHEN p.class = 'pg_constraint'::regclass
                     AND EXISTS (SELECT FROM pg_constraint AS k WHERE k.oid = p.object AND k.contype = 't') THEN NULL
                ELSE 'other' END,
           p.class, p.object, coalesce(t.oid, c.oid)::regclass,
           coalesce(x.stxowner, f.proowner, t.relowner, c.relowner),
           coalesce(x.stxnamespace, f.pronamespace, c.relnamespace, t.relnamespace),
           i.type || ' ' || i.identity,
           EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = p.class AND d.objid = p.object AND d.deptype = 'e')
    FROM placed AS p
    LEFT JOIN pg_class AS c ON p.class = 'pg_class'::regclass AND c.oid = p.object
    LEFT JOIN pg_index AS ix ON ix.indexrelid = c.oid
    LEFT JOIN pg_rewrite AS w ON p.class = 'pg_rewrite'::regclass AND w.oid = p.object
    LEFT JOIN pg_policy AS o ON p.class = 'pg_policy'::regclass AND o.oid = p.object
    LEFT JOIN pg_trigger AS g ON p.class = 'pg_trigger'::regclass AND g.oid = p.object
    LEFT JOIN pg_attrdef AS q ON p.class = 'pg_attrdef'::regclass AND q.oid = p.object
    LEFT JOIN pg_statistic_ext AS x ON p.class = 'pg_statistic_ext'::regclass AND x.oid = p.object
    LEFT JOIN pg_proc AS f ON p.class = 'pg_proc'::regclass AND f.oid = p.object
    LEFT JOIN pg_class AS t ON t.oid = coalesce(ix.indrelid, w.ev_class, o.polrelid, g.tgrelid, q.adrelid, x.stxrelid)
    CROSS JOIN LATERAL pg_identify_object(p.class, p.object, 0) AS i
$function$;

-- The relations that are locked with the tables. Sessions lock a view before the
-- relations below it, so the outermost views come first.
CREATE FUNCTION snowflake_migrate_internal.dependent_relations(columns snowflake_migrate_internal.key[])
RETURNS regclass[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT ARRAY(
        SELECT d.relation
        FROM snowflake_migrate_internal.dependents(columns) AS d
        JOIN pg_class AS c ON c.oid = d.relation AND c.relkind IN ('r', 'p', 'v', 'm')
        WHERE d.kind <> 'other'
        GROUP BY d.relation
        ORDER BY max(d.place) DESC NULLS FIRST, d.relation::oid)
$function$;

-- What a plan's note says about objects.
CREATE FUNCTION snowflake_migrate_internal.dependents_note(names text[], views bigint)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT format('drops and re-creates %s: %s%s', snowflake_migrate_internal.counted(cardinality(names), text 'object'),
                  snowflake_migrate_internal.some_names(names),
                  CASE WHEN views > 0 THEN format(' (%s under the lock)', snowflake_migrate_internal.counted(views, text 'view'))
                       ELSE '' END)
    WHERE cardinality(names) > 0
$function$;

-- The objects that it lists, in order, each with its node as a text.
CREATE FUNCTION snowflake_migrate_internal.listed_dependents(columns snowflake_migrate_internal.key[])
RETURNS TABLE (node text, relation regclass, name text, is_view boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT concat_ws(' ', d.class, d.object),
           CASE WHEN d.kind <> 'other' AND EXISTS (SELECT FROM pg_class AS c WHERE c.oid = d.relation AND c.relkind IN ('r', 'p', 'v', 'm'))
                THEN d.relation END,
           CASE WHEN d.kind NOT IN ('other', 'trigger of a partition', 'index', 'default', 'statistics') THEN
               d.identity || CASE WHEN d.kind = 'materialized view' THEN (SELECT CASE WHEN c.relispopulated
                   THEN format(' with its data (%s now)', pg_size_pretty(pg_total_relation_size(c.oid))) ELSE ' without data' END
                   FROM pg_class AS c WHERE c.oid = d.object) ELSE '' END END,
           d.kind IN ('view', 'materialized view')
    FROM snowflake_migrate_internal.dependents(columns) AS d
    ORDER BY d.kind <> 'materialized view', d.place, d.identity
$function$;

CREATE FUNCTION snowflake_migrate_internal.dependents_note(columns snowflake_migrate_internal.key[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT snowflake_migrate_internal.dependents_note(array_agg(l.name ORDER BY l.place), count(*) FILTER (WHERE l.is_view))
    FROM snowflake_migrate_internal.listed_dependents(columns) WITH ORDINALITY AS l (node, relation, name, is_view, place)
    WHERE l.name IS NOT NULL
$function$;

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
    SELECT coalesce((SELECT 'pg_class'::regclass::oid FROM pg_rewrite AS w WHERE w.oid = object AND w.rulename = '_RETURN' AND class = 'pg_rewrite'::regclass), class),
           coalesce((SELECT w.ev_class FROM pg_rewrite AS w WHERE w.oid = object AND w.rulename = '_RETURN' AND class = 'pg_rewrite'::regclass), object)
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
$function$;

-- The objects that depend on columns, and what depends on those, to any depth.
-- An object comes after those that it depends on: place is the length of the
-- longest path. In a circle, paths have no end; place is then NULL.
--
-- kind is NULL for objects that are part of others, such as a view's row type, and
-- 'other' for those that cannot be created again. relation is the table that is
-- locked.
CREATE FUNCTION snowflake_migrate_internal.dependents(columns snowflake_migrate_internal.key[])
RETURNS TABLE (
    place integer, kind text, class oid, object oid, relation regclass, owner oid, schema oid, identity text, is_extended boolean
) LANGUAGE sql STABLE ROWS 10
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
                WHEN p.class = 'pg_trigger'::regclass THEN CASE WHEN g.tgisinternal THEN 'other' WHEN g.tgparentid <> 0 THEN 'trigger of a partition' ELSE 'trigger' END
                WHEN p.class = 'pg_proc'::regclass THEN CASE WHEN f.prokind = 'a' THEN 'other' ELSE 'function' END
                WHEN p.class = 'pg_attrdef'::regclass AND t.relkind = 'v' THEN 'default'
                WHEN p.class = 'pg_statistic_ext'::regclass AND t.relkind = 'm' THEN 'statistics'
                WHEN p.class = 'pg_type'::regclass
                     AND EXISTS (SELECT FROM pg_type AS y JOIN pg_type AS e ON e.oid IN (y.oid, y.typelem) JOIN pg_class AS v ON v.oid = e.typrelid
                                 WHERE y.oid = p.object AND y.typtype IN ('c', 'b') AND v.relkind IN ('v', 'm')) THEN NULL
                -- That of a constraint trigger.
                WHEN p.class = 'pg_constraint'::regclass AND EXISTS (SELECT FROM pg_constraint AS k WHERE k.oid = p.object AND k.contype = 't') THEN NULL
                ELSE 'other' END,
           p.class, p.object, coalesce(t.oid, c.oid)::regclass,
           coalesce(x.stxowner, f.proowner, t.relowner, c.relowner), coalesce(x.stxnamespace, f.pronamespace, c.relnamespace, t.relnamespace),
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
    SELECT format('drops and re-creates %s: %s%s', snowflake_migrate_internal.counted(cardinality(names), text 'object'), snowflake_migrate_internal.some_names(names),
                  CASE WHEN views > 0 THEN format(' (%s under the lock)', snowflake_migrate_internal.counted(views, text 'view')) ELSE '' END)
    WHERE cardinality(names) > 0
$function$;

-- The objects that it lists, in order, each with its node as a text.
CREATE FUNCTION snowflake_migrate_internal.listed_dependents(columns snowflake_migrate_internal.key[])
RETURNS TABLE (node text, relation regclass, name text, is_view boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT concat_ws(' ', d.class, d.object),
           CASE WHEN d.kind <> 'other' AND EXISTS (SELECT FROM pg_class AS c WHERE c.oid = d.relation AND c.relkind IN ('r', 'p', 'v', 'm')) THEN d.relation END,
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

-- The columns of a view, as a query that can stand for it: see src/migrate/definition.rs.
CREATE FUNCTION snowflake_migrate_internal.result_columns(queries text, relations oid[]) RETURNS text
    STRICT STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_result_columns_wrapper';

-- The columns of a relation in the same form; some of them as bigint.
CREATE FUNCTION snowflake_migrate_internal.relation_columns(relation oid, wide name[] DEFAULT '{}')
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT 'SELECT ' || string_agg(format('NULL::%s AS %I', CASE WHEN a.attname = ANY (wide) THEN 'bigint' ELSE format_type(a.atttypid, a.atttypmod) END, a.attname),
                                   ', ' ORDER BY a.attnum)
    FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped
$function$;

-- Views and rules that PostgreSQL could not create again, and why: an expression in them has
-- no form for a bigint. Their definitions are analyzed, with queries in the places of relations
-- whose columns are wider then. What cannot be analyzed with the present types in that way
-- is left to the attempt.
CREATE FUNCTION snowflake_migrate_internal.lost_dependents(columns snowflake_migrate_internal.key[])
RETURNS TABLE (identity text, reason text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    relations oid[];
    stands text[];
    dependent record;
    definition text;
    result text;
    used integer[];
BEGIN
    SELECT array_agg(t.relation), array_agg(snowflake_migrate_internal.relation_columns(t.relation, t.names))
    INTO relations, stands
    FROM (SELECT f.relation::oid AS relation, array_agg(c.column_name) AS names
          FROM unnest(columns) AS c
          CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(c.target, c.column_name) AS f
          GROUP BY f.relation) AS t;
    FOR dependent IN
        SELECT d.identity, w.oid AS rule, w.ev_class AS relation, w.rulename = '_RETURN' AS is_view
        FROM snowflake_migrate_internal.dependents(columns) AS d
        JOIN pg_rewrite AS w ON CASE d.kind WHEN 'rule' THEN w.oid = d.object ELSE w.ev_class = d.object AND w.rulename = '_RETURN' END
        WHERE d.kind IN ('view', 'materialized view', 'rule')
        ORDER BY d.place
    LOOP
        definition := rtrim(CASE WHEN dependent.is_view THEN pg_get_viewdef(dependent.relation) ELSE pg_get_ruledef(dependent.rule) END, ';');
        used := ARRAY(
            SELECT DISTINCT r.place
            FROM pg_depend AS d
            CROSS JOIN LATERAL (SELECT array_position(relations, d.refobjid)) AS r (place)
            WHERE d.classid = 'pg_rewrite'::regclass AND d.objid = dependent.rule AND d.refclassid = 'pg_class'::regclass AND r.place IS NOT NULL);
        BEGIN
            result := snowflake_migrate_internal.result_columns(
                concat_ws(';', definition, (SELECT string_agg(stands[u.place], ';' ORDER BY u.n) FROM unnest(used) WITH ORDINALITY AS u (place, n))),
                ARRAY(SELECT relations[u.place] FROM unnest(used) WITH ORDINALITY AS u (place, n) ORDER BY u.n));
            IF dependent.is_view THEN
                stands := stands || result;
                relations := relations || dependent.relation;
            END IF;
        EXCEPTION
            WHEN undefined_function OR ambiguous_function OR datatype_mismatch THEN
                identity := dependent.identity;
                reason := SQLERRM;
                BEGIN
                    PERFORM snowflake_migrate_internal.result_columns(
                        concat_ws(';', definition, (SELECT string_agg(snowflake_migrate_internal.relation_columns(relations[u.place]), ';' ORDER BY u.n)
                                                    FROM unnest(used) WITH ORDINALITY AS u (place, n))),
                        ARRAY(SELECT relations[u.place] FROM unnest(used) WITH ORDINALITY AS u (place, n) ORDER BY u.n));
                    RETURN NEXT;
                EXCEPTION WHEN OTHERS THEN
                    NULL;
                END;
            WHEN OTHERS THEN
                NULL;
        END;
    END LOOP;
END
$function$;

-- The tables that each of them depends on.
CREATE FUNCTION snowflake_migrate_internal.dependent_tables(columns snowflake_migrate_internal.key[])
RETURNS TABLE (relation regclass, class oid, object oid) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH RECURSIVE reached (relation, class, object) AS (
        SELECT d.relation, d.class, d.object FROM snowflake_migrate_internal.direct_dependents(columns) AS d
      UNION
        SELECT r.relation, n.node_class, n.node
        FROM reached AS r
        JOIN pg_depend AS d ON d.refclassid = r.class AND d.refobjid = r.object
        CROSS JOIN LATERAL snowflake_migrate_internal.dependent_node(d.classid, d.objid) AS n
        WHERE (n.node_class, n.node) <> (r.class, r.object)
    )
    SELECT r.relation, r.class, r.object FROM reached AS r
$function$;

-- What prevents that they are dropped and created again.
CREATE FUNCTION snowflake_migrate_internal.dependent_obstacles(columns snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH dependent AS MATERIALIZED (
        SELECT d.*, pg_get_userbyid(d.owner) AS owner_name,
               -- From PostgreSQL 16 on, a member may lack the right to become a role.
               pg_has_role(d.owner, 'USAGE')
                   AND pg_has_role(d.owner, CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END) AS is_own
        FROM snowflake_migrate_internal.dependents(columns) AS d
        WHERE d.kind IS NOT NULL
    ), granted AS MATERIALIZED (
        SELECT DISTINCT d.class, d.object, d.identity, g.grantor
        FROM dependent AS d
        LEFT JOIN pg_class AS c ON d.class = 'pg_class'::regclass AND c.oid = d.object
        LEFT JOIN pg_proc AS f ON d.class = 'pg_proc'::regclass AND f.oid = d.object
        CROSS JOIN LATERAL (
            SELECT x.grantor FROM aclexplode(coalesce(c.relacl, f.proacl)) AS x
          UNION
            SELECT x.grantor FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(a.attacl) AS x WHERE a.attrelid = c.oid
        ) AS g
        WHERE d.kind <> 'other' AND g.grantor <> d.owner
    ), found (rank, class, object, obstacle, remedy, code) AS (
        SELECT 1, d.class, d.object, format('%s cannot be dropped and created again, but depends on the column or on a view of it', d.identity),
               'Drop it, and create it again after the column is widened.', '55000'
        FROM dependent AS d WHERE d.kind = 'other'
      UNION ALL
        SELECT 1, d.class, d.object, format('%s belongs to an extension', d.identity),
               'Drop the extension, and create it again after the column is widened.', '55000'
        FROM dependent AS d WHERE d.is_extended
      UNION ALL
        SELECT 2, d.class, d.object, format('%s depends on itself through other views or functions', d.identity),
               'Drop it, and create it again after the column is widened.', '55000'
        FROM dependent AS d WHERE d.place IS NULL AND d.kind <> 'other'
      UNION ALL
        SELECT 3, d.class, d.object, format('%s belongs to the temporary schema of another session', d.identity),
               'Wait until that session has ended.', '55000'
        FROM dependent AS d WHERE d.kind <> 'other' AND pg_is_other_temp_schema(d.schema)
      UNION ALL
        SELECT 3, d.class, d.object, format('%s is temporary and belongs to role %I', d.identity, d.owner_name),
               'Drop it, or run the migration as that role.', '55000'
        FROM dependent AS d
        WHERE d.kind IN ('view', 'function') AND d.schema = pg_my_temp_schema() AND d.owner_name <> current_user
      UNION ALL
        SELECT 4, d.class, d.object, format('index %s is not valid', d.object::regclass), 'Drop it, or REINDEX it.', '55000'
        FROM dependent AS d JOIN pg_index AS i ON i.indexrelid = d.object AND NOT i.indisvalid
        WHERE d.kind = 'index'
      UNION ALL
        SELECT DISTINCT 5, d.class, d.object, format('must be owner of %s', d.identity),
               format('It has to be dropped and created again: run it as a member of %I, or as a superuser.', d.owner_name), '42501'
        FROM dependent AS d WHERE d.kind <> 'other' AND NOT d.is_own
      UNION ALL
        SELECT DISTINCT 6, d.class, d.object, format('permission denied for schema %I', n.nspname),
               format('GRANT CREATE, USAGE ON SCHEMA %I TO %I, which owns %s and has to create it again.', n.nspname, d.owner_name, d.identity), '42501'
        FROM dependent AS d JOIN pg_namespace AS n ON n.oid = d.schema
        WHERE d.kind IN ('view', 'materialized view', 'function', 'statistics', 'index') AND d.is_own
          AND n.oid IS DISTINCT FROM pg_my_temp_schema()
          AND NOT (has_schema_privilege(d.owner, n.oid, 'CREATE') AND has_schema_privilege(d.owner, n.oid, 'USAGE'))
      UNION ALL
        SELECT DISTINCT 7, g.class, g.object, format('privileges on %s were granted by role %I', g.identity, pg_get_userbyid(g.grantor)),
               format('They have to be granted again: run it as a member of %I, or as a superuser, or have them revoked.', pg_get_userbyid(g.grantor)), '42501'
        FROM granted AS g
        WHERE NOT (pg_has_role(g.grantor, 'USAGE')
                   AND pg_has_role(g.grantor, CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END))
      UNION ALL
        SELECT 8, d.class, d.object, format('%s cannot be created again with the wider columns: %s', l.identity, l.reason),
               'Create the function or operator for bigint, or cast the column there, or drop the object and create it again afterwards.', '55000'
        FROM snowflake_migrate_internal.lost_dependents(columns) AS l
        JOIN dependent AS d ON d.identity = l.identity
    )
    SELECT t.relation, NULL::name, f.obstacle, f.remedy, f.code
    FROM found AS f
    JOIN snowflake_migrate_internal.dependent_tables(columns) AS t ON (t.class, t.object) = (f.class, f.object)
    ORDER BY f.rank, f.obstacle
$function$;

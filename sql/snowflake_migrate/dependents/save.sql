-- The description of objects, to compare the new ones with, and what is saved of them.

-- A definition without what follows from a column's type: casts between numbers, the
-- parentheses and spaces around them, and the aliases that PostgreSQL writes for
-- expressions and not for columns. (The names of a view's columns are compared apart.)
-- Without casts between text and varchar, too: PostgreSQL writes those of IN at the array,
-- reads them, and writes them at its elements.
CREATE FUNCTION snowflake_migrate_internal.without_types(definition text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT regexp_replace(
        regexp_replace(
            regexp_replace(definition, E'\\sAS ("([^"]|"")+"|\\w+)', '', 'g'),
            E'::((smallint|integer|bigint|numeric)(\\(\\d+(,\\d+)?\\))?|(text|character varying)(?!\\())(\\[\\])*', '', 'g'),
        E'[()\\s]', '', 'g')
$function$;

-- An access control list in a fixed order. It has the numbers of the roles too,
-- because roles can be renamed in the meantime.
CREATE FUNCTION snowflake_migrate_internal.describe_acl(acl aclitem[])
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT jsonb_agg(i.text ORDER BY i.text)
    FROM (SELECT format('%s of %s by %s', i.item, min(x.grantee), min(x.grantor)) AS text
          FROM unnest(acl) WITH ORDINALITY AS i (item, place) CROSS JOIN LATERAL aclexplode(ARRAY[i.item]) AS x
          GROUP BY i.place, i.item) AS i
$function$;

-- The definitions of the objects without numeric types.
CREATE FUNCTION snowflake_migrate_internal.dependent_definitions(dependents snowflake_migrate_internal.named_dependent[])
RETURNS TABLE (class oid, object oid, definition text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT d.class, d.object, snowflake_migrate_internal.without_types(CASE d.kind
        WHEN 'rule' THEN pg_get_ruledef(d.object)
        WHEN 'function' THEN pg_get_functiondef(d.object)
        WHEN 'index' THEN pg_get_indexdef(d.object)
        WHEN 'statistics' THEN pg_get_statisticsobjdef(d.object)
        WHEN 'default' THEN (SELECT pg_get_expr(f.adbin, f.adrelid) FROM pg_attrdef AS f WHERE f.oid = d.object)
        WHEN 'policy' THEN (
            SELECT concat_ws(' ', p.polpermissive, p.polcmd, p.polroles,
                             (SELECT string_agg(o.role::regrole::text, ',' ORDER BY o.place)
                              FROM unnest(p.polroles) WITH ORDINALITY AS o (role, place)),
                             pg_get_expr(p.polqual, p.polrelid), 'check', pg_get_expr(p.polwithcheck, p.polrelid))
            FROM pg_policy AS p WHERE p.oid = d.object)
        WHEN 'trigger' THEN pg_get_triggerdef(d.object)
        WHEN 'trigger of a partition' THEN pg_get_triggerdef(d.object)
        ELSE pg_get_viewdef(d.object) END)
    FROM unnest(dependents) AS d
$function$;

-- What each of the objects refers to, and the owners of the functions and operators that it uses.
CREATE FUNCTION snowflake_migrate_internal.dependent_references(dependents snowflake_migrate_internal.named_dependent[])
RETURNS TABLE (class oid, object oid, referenced jsonb, code_owners jsonb) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH reference AS MATERIALIZED (
        SELECT DISTINCT d.class, d.object, p.refclassid, p.refobjid
        FROM unnest(dependents) AS d
        CROSS JOIN LATERAL (
            SELECT p.refclassid, p.refobjid FROM pg_depend AS p WHERE p.classid = d.class AND p.objid = d.object
          UNION ALL
            SELECT p.refclassid, p.refobjid
            FROM pg_rewrite AS w JOIN pg_depend AS p ON p.classid = 'pg_rewrite'::regclass AND p.objid = w.oid
            WHERE d.class = 'pg_class'::regclass AND w.ev_class = d.object AND w.rulename = '_RETURN') AS p
        WHERE (p.refclassid, p.refobjid) <> (d.class, d.object)
    )
    SELECT d.class, d.object,
           (SELECT jsonb_agg(i.type || ' ' || i.identity ORDER BY i.type, i.identity)
            FROM reference AS r CROSS JOIN LATERAL pg_identify_object(r.refclassid, r.refobjid, 0) AS i
            WHERE (r.class, r.object) = (d.class, d.object) AND r.refclassid NOT IN ('pg_proc'::regclass, 'pg_operator'::regclass)),
           (SELECT coalesce(jsonb_agg(DISTINCT pg_get_userbyid(coalesce(f.proowner, o.oprowner))), '[]')
            FROM reference AS r
            LEFT JOIN pg_proc AS f ON r.refclassid = 'pg_proc'::regclass AND f.oid = r.refobjid
            LEFT JOIN pg_operator AS o ON r.refclassid = 'pg_operator'::regclass AND o.oid = r.refobjid
            WHERE (r.class, r.object) = (d.class, d.object) AND coalesce(f.oid, o.oid) IS NOT NULL)
    FROM unnest(dependents) AS d
$function$;

-- The columns of views and indexes, without numeric types.
CREATE FUNCTION snowflake_migrate_internal.dependent_attributes(dependents snowflake_migrate_internal.named_dependent[])
RETURNS TABLE (object oid, attributes jsonb) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT d.object, jsonb_agg(jsonb_build_array(
               a.attname,
               regexp_replace(format_type(a.atttypid, a.atttypmod), E'^(smallint|integer|bigint|numeric)(\\(.*\\))?', 'number'),
               a.attcollation::regcollation, coalesce(a.attstattarget, -1), a.attcompression,
               CASE WHEN a.attstorage <> t.typstorage THEN a.attstorage END,
               (SELECT jsonb_agg(o.text ORDER BY o.text) FROM unnest(a.attoptions) AS o (text) WHERE o.text NOT LIKE E'pg\\_%'),
               snowflake_migrate_internal.describe_acl(a.attacl)) ORDER BY a.attnum)
    FROM unnest(dependents) AS d
    JOIN pg_attribute AS a ON a.attrelid = d.object AND a.attnum > 0
    JOIN pg_type AS t ON t.oid = a.atttypid
    WHERE d.class = 'pg_class'::regclass
    GROUP BY d.object
$function$;

-- Everything that the catalog has about the objects, by their names, except for
-- numeric types. "code" contains the owners of functions and operators: see
-- dependent_difference().
CREATE FUNCTION snowflake_migrate_internal.describe_dependents(columns snowflake_migrate_internal.key[])
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC'
SET extra_float_digits = 3 SET quote_all_identifiers = off
AS $function$
    WITH given AS MATERIALIZED (
        SELECT ARRAY(SELECT d FROM snowflake_migrate_internal.named_dependents(columns) AS d) AS dependents
    ), definition AS MATERIALIZED (
        SELECT f.* FROM given AS g CROSS JOIN LATERAL snowflake_migrate_internal.dependent_definitions(g.dependents) AS f
    ), reference AS MATERIALIZED (
        SELECT r.* FROM given AS g CROSS JOIN LATERAL snowflake_migrate_internal.dependent_references(g.dependents) AS r
    ), attribute AS MATERIALIZED (
        SELECT a.* FROM given AS g CROSS JOIN LATERAL snowflake_migrate_internal.dependent_attributes(g.dependents) AS a
    )
    SELECT coalesce(jsonb_object_agg(d.identity, jsonb_build_object(
        'owner', pg_get_userbyid(d.owner),
        'definition', f.definition,
        'enabled', coalesce((SELECT t.tgenabled FROM pg_trigger AS t WHERE d.class = 'pg_trigger'::regclass AND t.oid = d.object),
                            (SELECT w.ev_enabled FROM pg_rewrite AS w WHERE d.class = 'pg_rewrite'::regclass AND w.oid = d.object)),
        'settings', (SELECT jsonb_build_array(c.relpersistence, c.reloptions, c.relreplident, c.relispopulated,
                                              c.relhasrules, c.relhastriggers, c.relrowsecurity,
                                              (SELECT m.amname FROM pg_am AS m WHERE m.oid = c.relam),
                                              (SELECT t.spcname FROM pg_tablespace AS t WHERE t.oid = c.reltablespace),
                                              (SELECT t.reloptions FROM pg_class AS t WHERE t.oid = c.reltoastrelid))
                     FROM pg_class AS c WHERE d.class = 'pg_class'::regclass AND c.oid = d.object),
        'index', (SELECT jsonb_build_array(i.indisclustered, i.indisvalid, i.indisunique)
                  FROM pg_index AS i WHERE d.kind = 'index' AND i.indexrelid = d.object),
        'target', (SELECT to_jsonb(x) -> 'stxstattarget' FROM pg_statistic_ext AS x WHERE d.kind = 'statistics' AND x.oid = d.object),
        'columns', a.attributes,
        'privileges', snowflake_migrate_internal.describe_acl(coalesce(
            (SELECT coalesce(c.relacl, acldefault('r', c.relowner)) FROM pg_class AS c
             WHERE d.kind IN ('view', 'materialized view') AND c.oid = d.object),
            (SELECT coalesce(f.proacl, acldefault('f', f.proowner)) FROM pg_proc AS f WHERE d.kind = 'function' AND f.oid = d.object))),
        'comments', (SELECT jsonb_agg(jsonb_build_array(e.objsubid, e.description) ORDER BY e.objsubid)
                     FROM pg_description AS e WHERE e.classoid = d.class AND e.objoid = d.object),
        'constraint comment', (SELECT e.description FROM pg_trigger AS t
                               JOIN pg_description AS e ON e.classoid = 'pg_constraint'::regclass AND e.objoid = t.tgconstraint
                               WHERE d.kind = 'trigger' AND t.oid = d.object),
        'labels', (SELECT jsonb_agg(jsonb_build_array(l.objsubid, l.provider, l.label) ORDER BY l.objsubid, l.provider)
                   FROM pg_seclabel AS l WHERE l.classoid = d.class AND l.objoid = d.object),
        'references', r.referenced,
        'code', r.code_owners)), '{}')
    FROM given AS g
    CROSS JOIN LATERAL unnest(g.dependents) AS d
    JOIN definition AS f ON (f.class, f.object) = (d.class, d.object)
    JOIN reference AS r ON (r.class, r.object) = (d.class, d.object)
    LEFT JOIN attribute AS a ON d.class = 'pg_class'::regclass AND a.object = d.object
$function$;

-- Keeps the names that definitions are written with, until the end of the transaction:
-- those of the schemas of the objects, and of all that they use. Otherwise who owns one
-- of these schemas could put another one in its place before an object is created
-- again. In order, so that two sessions do not wait for each other.
CREATE FUNCTION snowflake_migrate_internal.pin_dependents(columns snowflake_migrate_internal.key[])
RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH dependent AS MATERIALIZED (
        SELECT d.class, d.object, d.relation
        FROM snowflake_migrate_internal.dependents(columns) AS d
    ), object (class, object) AS (
        SELECT d.class, d.object FROM dependent AS d
      UNION
        SELECT 'pg_class'::regclass, c.target FROM unnest(columns) AS c
      UNION
        SELECT 'pg_class'::regclass, d.relation FROM dependent AS d
      UNION
        SELECT 'pg_rewrite'::regclass, w.oid FROM dependent AS d JOIN pg_rewrite AS w ON w.ev_class = d.relation
    ), used (class, object) AS (
        SELECT o.class, o.object FROM object AS o
      UNION
        SELECT u.refclassid, u.refobjid FROM object AS o JOIN pg_depend AS u ON u.classid = o.class AND u.objid = o.object
    )
    SELECT snowflake_migrate_internal.pin_schemas(ARRAY(
        SELECT n.oid FROM pg_namespace AS n
        WHERE n.oid IN (
            SELECT c.relnamespace FROM used AS u JOIN pg_class AS c ON u.class = 'pg_class'::regclass AND c.oid = u.object
          UNION
            SELECT p.pronamespace FROM used AS u JOIN pg_proc AS p ON u.class = 'pg_proc'::regclass AND p.oid = u.object
          UNION
            SELECT o.oprnamespace FROM used AS u JOIN pg_operator AS o ON u.class = 'pg_operator'::regclass AND o.oid = u.object
          UNION
            SELECT t.typnamespace FROM used AS u JOIN pg_type AS t ON u.class = 'pg_type'::regclass AND t.oid = u.object
          UNION
            SELECT l.collnamespace FROM used AS u JOIN pg_collation AS l ON u.class = 'pg_collation'::regclass AND l.oid = u.object)
        ORDER BY n.oid))
$function$;

-- The statements that drop the objects and create them again, and their description.
CREATE FUNCTION snowflake_migrate_internal.save_dependents(columns snowflake_migrate_internal.key[])
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT jsonb_build_object(
        'statements', (SELECT coalesce(jsonb_agg(to_jsonb(s)), '[]')
                       FROM snowflake_migrate_internal.dependent_statements(columns) AS s),
        'description', snowflake_migrate_internal.describe_dependents(columns))
$function$;

-- Changes when the catalog's rows of the objects do. The relations themselves are
-- part of fingerprint().
CREATE FUNCTION snowflake_migrate_internal.dependents_fingerprint(columns snowflake_migrate_internal.key[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT string_agg(concat_ws(' ', d.class, d.object, d.place, p.xmin, p.ctid, f.xmin, f.ctid, w.xmin, w.ctid, t.xmin, t.ctid,
                                (SELECT string_agg(concat(e.xmin, e.ctid), ' ' ORDER BY e.ctid)
                                 FROM pg_description AS e WHERE e.classoid = d.class AND e.objoid = d.object),
                                (SELECT string_agg(concat(l.xmin, l.ctid), ' ' ORDER BY l.ctid)
                                 FROM pg_seclabel AS l WHERE l.classoid = d.class AND l.objoid = d.object)),
                      ', ' ORDER BY d.class, d.object)
           || concat((SELECT string_agg(concat(a.xmin, a.ctid), ' ' ORDER BY a.ctid) FROM pg_default_acl AS a))
    FROM snowflake_migrate_internal.dependents(columns) AS d
    LEFT JOIN pg_policy AS p ON d.kind = 'policy' AND p.oid = d.object
    LEFT JOIN pg_proc AS f ON d.kind = 'function' AND f.oid = d.object
    LEFT JOIN pg_rewrite AS w ON d.kind = 'rule' AND w.oid = d.object
    LEFT JOIN pg_trigger AS t ON d.class = 'pg_trigger'::regclass AND t.oid = d.object
$function$;

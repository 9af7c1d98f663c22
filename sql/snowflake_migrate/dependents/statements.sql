-- The statements that create an object again as it is, each with the role that runs it.
--
-- Names in definitions are qualified, because the search path is that of the
-- functions. The settings that change how constants are written are fixed, too.

-- The GRANT statements that lead to an access control list. They are run by the
-- roles that granted the privileges. A role comes after the one that it has its
-- grant options from. Default privileges are revoked first. Portable ones are without
-- MAINTAIN, which only 17 and later have.
CREATE FUNCTION snowflake_migrate_internal.grants(
    object_type "char", target text, column_name name, owner oid, schema oid, acl aclitem[], portable boolean
) RETURNS TABLE (place bigint, role oid, statement text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH RECURSIVE by_default AS MATERIALIZED (
        SELECT x.grantee
        FROM pg_default_acl AS f CROSS JOIN LATERAL aclexplode(f.defaclacl) AS x
        WHERE column_name IS NULL AND f.defaclrole = owner AND f.defaclobjtype = object_type AND f.defaclnamespace IN (0, schema)
    ), item AS MATERIALIZED (
        SELECT i.place, x.grantor, x.grantee, x.privilege_type, x.is_grantable
        FROM unnest(CASE WHEN acl IS NOT NULL THEN acl
                         WHEN column_name IS NULL AND EXISTS (
                             SELECT FROM pg_default_acl AS f
                             WHERE f.defaclrole = owner AND f.defaclobjtype = object_type AND f.defaclnamespace IN (0, schema))
                         THEN acldefault(object_type, owner) END) WITH ORDINALITY AS i (item, place)
        CROSS JOIN LATERAL aclexplode(ARRAY[i.item]) AS x
        WHERE NOT (portable AND x.privilege_type = 'MAINTAIN')
    ), grantor (role, level) AS (
        SELECT owner, 0
      UNION
        SELECT i.grantee, g.level + 1 FROM grantor AS g JOIN item AS i ON i.grantor = g.role AND i.is_grantable WHERE g.level < 20
    ), level AS (
        SELECT g.role, min(g.level) AS level FROM grantor AS g GROUP BY g.role
    )
    SELECT 0, owner, format('REVOKE ALL ON %s FROM %s CASCADE', target,
                            (SELECT string_agg(DISTINCT CASE r.role WHEN 0 THEN 'PUBLIC'
                                                             ELSE quote_ident(pg_get_userbyid(r.role)) END, ', ')
                             FROM (SELECT owner UNION SELECT 0 UNION SELECT b.grantee FROM by_default AS b) AS r (role)))
    WHERE column_name IS NULL AND (acl IS NOT NULL OR EXISTS (SELECT FROM item))
  UNION ALL
    SELECT row_number() OVER (ORDER BY coalesce(l.level, 100), i.place, i.is_grantable), i.grantor,
           format('GRANT %s ON %s TO %s%s',
                  string_agg(i.privilege_type || coalesce(' (' || quote_ident(column_name) || ')', ''), ', '), target,
                  CASE i.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(i.grantee)) END,
                  CASE WHEN i.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
    FROM item AS i LEFT JOIN level AS l ON l.role = i.grantor
    GROUP BY i.place, i.grantor, i.grantee, i.is_grantable, l.level
$function$;

-- The objects, with the names that they have in statements.
CREATE TYPE snowflake_migrate_internal.named_dependent AS (
    place integer, kind text, class oid, object oid, owner oid, schema oid, identity text, quoted_name text, sql_name text
);

CREATE FUNCTION snowflake_migrate_internal.named_dependents(columns snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.named_dependent LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT d.place, d.kind, d.class, d.object, d.owner, d.schema, d.identity, n.quoted_name,
           CASE d.kind
               WHEN 'view' THEN 'VIEW ' || n.quoted_name
               WHEN 'materialized view' THEN 'MATERIALIZED VIEW ' || n.quoted_name
               WHEN 'index' THEN 'INDEX ' || snowflake_migrate_internal.name_of(d.object::regclass)
               WHEN 'rule' THEN (SELECT format('RULE %I ON %s', w.rulename, n.quoted_name) FROM pg_rewrite AS w WHERE w.oid = d.object)
               WHEN 'policy' THEN (SELECT format('POLICY %I ON %s', p.polname, n.quoted_name) FROM pg_policy AS p WHERE p.oid = d.object)
               WHEN 'function' THEN format('ROUTINE %s', d.object::regprocedure)
               WHEN 'statistics' THEN (SELECT format('STATISTICS %I.%I', s.nspname, x.stxname) FROM pg_statistic_ext AS x
                                       JOIN pg_namespace AS s ON s.oid = x.stxnamespace WHERE x.oid = d.object)
               WHEN 'default' THEN (SELECT format('VIEW %s ALTER COLUMN %I', n.quoted_name, a.attname) FROM pg_attrdef AS f
                                    JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum WHERE f.oid = d.object)
               ELSE (SELECT format('TRIGGER %I ON %s', t.tgname, n.quoted_name) FROM pg_trigger AS t WHERE t.oid = d.object)
           END
    FROM snowflake_migrate_internal.dependents(columns) AS d
    CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.name_of(d.relation)) AS n (quoted_name)
    WHERE d.kind <> 'other'
$function$;

-- The statements of the following functions are executed in the order of all columns but
-- role. part is 1 for the object itself, and more for its properties. dependent_statements()
-- sets how constants are written in them.
CREATE TYPE snowflake_migrate_internal.creation AS (place integer, identity text, part integer, rank bigint, statement text, role oid);

-- Views as they are created again. Materialized views are filled later.
CREATE FUNCTION snowflake_migrate_internal.view_creations(dependents snowflake_migrate_internal.named_dependent[])
RETURNS SETOF snowflake_migrate_internal.creation LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT d.place, d.identity, 1, 0,
           concat('CREATE ', d.sql_name,
                  ' (' || (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute AS a
                           WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) || ')',
                  CASE WHEN c.relkind = 'm' THEN (SELECT format(' USING %I', m.amname) FROM pg_am AS m WHERE m.oid = c.relam) END,
                  ' WITH (' || (SELECT string_agg(o.text, ', ') FROM (
                       SELECT format('%I = %L', v.option_name, v.option_value) AS text FROM pg_options_to_table(c.reloptions) AS v
                     UNION ALL
                       SELECT format('toast.%I = %L', v.option_name, v.option_value)
                       FROM pg_class AS t CROSS JOIN LATERAL pg_options_to_table(t.reloptions) AS v
                       WHERE t.oid = c.reltoastrelid) AS o) || ')',
                  CASE WHEN c.relkind = 'm'
                       THEN (SELECT format(' TABLESPACE %I', t.spcname) FROM pg_tablespace AS t WHERE t.oid = c.reltablespace) END,
                  E' AS\n', rtrim(pg_get_viewdef(c.oid), ';'), CASE WHEN c.relkind = 'm' THEN E'\nWITH NO DATA' END),
           d.owner
    FROM unnest(dependents) AS d
    JOIN pg_class AS c ON c.oid = d.object
    WHERE d.kind IN ('view', 'materialized view')
$function$;

-- The other objects as they are created again.
CREATE FUNCTION snowflake_migrate_internal.other_creations(dependents snowflake_migrate_internal.named_dependent[])
RETURNS SETOF snowflake_migrate_internal.creation LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT d.place, d.identity, 1, 0,
           CASE d.kind
               WHEN 'rule' THEN pg_get_ruledef(d.object)
               WHEN 'trigger' THEN pg_get_triggerdef(d.object)
               WHEN 'function' THEN pg_get_functiondef(d.object)
               WHEN 'index' THEN pg_get_indexdef(d.object)
               WHEN 'statistics' THEN pg_get_statisticsobjdef(d.object)
               WHEN 'default' THEN (SELECT format('ALTER %s SET DEFAULT %s', d.sql_name, pg_get_expr(f.adbin, f.adrelid))
                                    FROM pg_attrdef AS f WHERE f.oid = d.object)
               WHEN 'policy' THEN (
                   SELECT concat('CREATE ', d.sql_name, CASE WHEN p.polpermissive THEN ' AS PERMISSIVE' ELSE ' AS RESTRICTIVE' END,
                                 CASE p.polcmd WHEN 'r' THEN ' FOR SELECT' WHEN 'a' THEN ' FOR INSERT' WHEN 'w' THEN ' FOR UPDATE'
                                               WHEN 'd' THEN ' FOR DELETE' ELSE ' FOR ALL' END,
                                 ' TO ', (SELECT string_agg(CASE o.role WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(o.role)) END,
                                                            ', ' ORDER BY o.place)
                                          FROM unnest(p.polroles) WITH ORDINALITY AS o (role, place)),
                                 ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')',
                                 ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')')
                   FROM pg_policy AS p WHERE p.oid = d.object)
           END,
           d.owner
    FROM unnest(dependents) AS d
    WHERE d.kind IN ('rule', 'trigger', 'function', 'index', 'statistics', 'default', 'policy')
$function$;

-- Settings that CREATE does not set: of columns of materialized views, of rules and
-- triggers, of indexes, and of extended statistics.
CREATE FUNCTION snowflake_migrate_internal.setting_statements(dependents snowflake_migrate_internal.named_dependent[])
RETURNS SETOF snowflake_migrate_internal.creation LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT d.place, d.identity, 2, 0, format('ALTER %s ALTER COLUMN %I %s', d.sql_name, a.attname, s.action), d.owner
    FROM unnest(dependents) AS d
    JOIN pg_attribute AS a ON a.attrelid = d.object AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type AS t ON t.oid = a.atttypid
    CROSS JOIN LATERAL (
        SELECT format('SET STATISTICS %s', a.attstattarget) AS action WHERE a.attstattarget >= 0
      UNION ALL
        SELECT format('SET STORAGE %s', CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL'
                                                          WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END)
        WHERE a.attstorage <> t.typstorage
      UNION ALL
        SELECT format('SET COMPRESSION %s', CASE a.attcompression WHEN 'l' THEN 'lz4' ELSE 'pglz' END) WHERE a.attcompression <> ''
      UNION ALL
        SELECT format('SET (%s)', string_agg(format('%I = %L', v.option_name, v.option_value), ', '))
        FROM pg_options_to_table(a.attoptions) AS v WHERE v.option_name NOT LIKE E'pg\\_%'
        HAVING count(*) > 0) AS s
    WHERE d.kind = 'materialized view'
  UNION ALL
    -- On views, rules and triggers are always enabled.
    SELECT d.place, d.identity, 2, 0,
           format('ALTER TABLE ONLY %s %s %s %I', d.quoted_name,
                  CASE coalesce(t.tgenabled, w.ev_enabled) WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA'
                                                           WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE' END,
                  CASE d.kind WHEN 'rule' THEN 'RULE' ELSE 'TRIGGER' END, coalesce(t.tgname, w.rulename)),
           d.owner
    FROM unnest(dependents) AS d
    LEFT JOIN pg_trigger AS t ON d.kind IN ('trigger', 'trigger of a partition') AND t.oid = d.object
    LEFT JOIN pg_rewrite AS w ON d.kind = 'rule' AND w.oid = d.object
    WHERE coalesce(t.tgenabled, w.ev_enabled) <> 'O'
  UNION ALL
    SELECT d.place, d.identity, 2, s.rank, s.statement, d.owner
    FROM unnest(dependents) AS d
    JOIN pg_class AS c ON d.kind = 'index' AND c.oid = d.object
    JOIN pg_index AS i ON i.indexrelid = c.oid
    CROSS JOIN LATERAL (
        SELECT 0 AS rank, format('ALTER %s SET TABLESPACE %I', d.sql_name, t.spcname) AS statement
        FROM pg_tablespace AS t WHERE t.oid = c.reltablespace
      UNION ALL
        SELECT a.attnum, format('ALTER %s ALTER COLUMN %s SET STATISTICS %s', d.sql_name, a.attnum, a.attstattarget)
        FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attstattarget >= 0
      UNION ALL
        SELECT 2000, format('ALTER MATERIALIZED VIEW %s CLUSTER ON %I', d.quoted_name, c.relname) WHERE i.indisclustered) AS s
  UNION ALL
    SELECT d.place, d.identity, 2, 0, format('ALTER %s SET STATISTICS %s', d.sql_name, x.target), d.owner
    FROM unnest(dependents) AS d
    JOIN (SELECT x.oid, (to_jsonb(x) ->> 'stxstattarget')::integer AS target FROM pg_statistic_ext AS x) AS x
      ON d.kind = 'statistics' AND x.oid = d.object
    WHERE x.target >= 0
$function$;

-- The privileges on views, on their columns and on functions.
CREATE FUNCTION snowflake_migrate_internal.privilege_statements(
    dependents snowflake_migrate_internal.named_dependent[], portable boolean
) RETURNS SETOF snowflake_migrate_internal.creation LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT d.place, d.identity, a.part, a.first_rank + g.place, g.statement, g.role
    FROM unnest(dependents) AS d
    CROSS JOIN LATERAL (
        SELECT 3 AS part, 0 AS first_rank, "char" 'r' AS object_type, 'TABLE ' || d.quoted_name AS target,
               NULL::name AS column_name, c.relacl AS acl
        FROM pg_class AS c WHERE d.kind IN ('view', 'materialized view') AND c.oid = d.object
      UNION ALL
        SELECT 4, 1000 * a.attnum, 'r', 'TABLE ' || d.quoted_name, a.attname, a.attacl
        FROM pg_attribute AS a
        WHERE d.kind IN ('view', 'materialized view') AND a.attrelid = d.object AND a.attnum > 0 AND a.attacl IS NOT NULL
      UNION ALL
        SELECT 3, 0, 'f', d.sql_name, NULL, f.proacl FROM pg_proc AS f WHERE d.kind = 'function' AND f.oid = d.object) AS a
    CROSS JOIN LATERAL snowflake_migrate_internal.grants(
        a.object_type, a.target, a.column_name, d.owner, d.schema, a.acl, portable) AS g
$function$;

-- Comments, security labels and dependencies on extensions.
CREATE FUNCTION snowflake_migrate_internal.annotation_statements(dependents snowflake_migrate_internal.named_dependent[])
RETURNS SETOF snowflake_migrate_internal.creation LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT d.place, d.identity, 5, e.objsubid,
           CASE WHEN e.objsubid = 0 THEN format('COMMENT ON %s IS %L', d.sql_name, e.description)
                ELSE format('COMMENT ON COLUMN %s.%I IS %L', d.quoted_name, a.attname, e.description) END,
           d.owner
    FROM unnest(dependents) AS d
    JOIN pg_description AS e ON e.classoid = d.class AND e.objoid = d.object
    LEFT JOIN pg_attribute AS a ON a.attrelid = d.object AND a.attnum = e.objsubid AND e.objsubid > 0
    WHERE d.kind <> 'default'
  UNION ALL
    SELECT d.place, d.identity, 5, 0, format('COMMENT ON CONSTRAINT %I ON %s IS %L', k.conname, d.quoted_name, e.description), d.owner
    FROM unnest(dependents) AS d
    JOIN pg_trigger AS t ON d.kind = 'trigger' AND t.oid = d.object
    JOIN pg_constraint AS k ON k.oid = t.tgconstraint
    JOIN pg_description AS e ON e.classoid = 'pg_constraint'::regclass AND e.objoid = k.oid
  UNION ALL
    SELECT d.place, d.identity, 6, l.objsubid,
           format('SECURITY LABEL FOR %I ON %s IS %L', l.provider,
                  CASE WHEN l.objsubid = 0 THEN d.sql_name ELSE format('COLUMN %s.%I', d.quoted_name, a.attname) END, l.label),
           d.owner
    FROM unnest(dependents) AS d
    JOIN pg_seclabel AS l ON l.classoid = d.class AND l.objoid = d.object
    LEFT JOIN pg_attribute AS a ON a.attrelid = d.object AND a.attnum = l.objsubid AND l.objsubid > 0
  UNION ALL
    SELECT d.place, d.identity, 7, 0, format('ALTER %s DEPENDS ON EXTENSION %I', d.sql_name, x.extname), d.owner
    FROM unnest(dependents) AS d
    JOIN pg_depend AS p ON p.classid = d.class AND p.objid = d.object AND p.deptype = 'x' AND p.refclassid = 'pg_extension'::regclass
    JOIN pg_extension AS x ON x.oid = p.refobjid
    WHERE d.kind IN ('materialized view', 'index', 'trigger', 'function')
$function$;

-- The statements that drop the objects (phase 1), create them (2) and fill
-- materialized views (3), in order; portable ones for a server of any version.
CREATE FUNCTION snowflake_migrate_internal.dependent_statements(
    columns snowflake_migrate_internal.key[], portable boolean DEFAULT false
) RETURNS TABLE (phase integer, role oid, statement text, identity text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC'
SET extra_float_digits = 3 SET quote_all_identifiers = off
AS $function$
    WITH given AS MATERIALIZED (
        SELECT ARRAY(SELECT d FROM snowflake_migrate_internal.named_dependents(columns) AS d) AS dependents
    ), dependent AS MATERIALIZED (
        SELECT d.* FROM given AS g CROSS JOIN LATERAL unnest(g.dependents) AS d
    ), creation AS (
        SELECT c.* FROM given AS g CROSS JOIN LATERAL snowflake_migrate_internal.view_creations(g.dependents) AS c
      UNION ALL
        SELECT c.* FROM given AS g CROSS JOIN LATERAL snowflake_migrate_internal.other_creations(g.dependents) AS c
      UNION ALL
        SELECT c.* FROM given AS g CROSS JOIN LATERAL snowflake_migrate_internal.setting_statements(g.dependents) AS c
      UNION ALL
        SELECT c.* FROM given AS g CROSS JOIN LATERAL snowflake_migrate_internal.privilege_statements(g.dependents, portable) AS c
      UNION ALL
        SELECT c.* FROM given AS g CROSS JOIN LATERAL snowflake_migrate_internal.annotation_statements(g.dependents) AS c
    )
    (SELECT 1, d.owner,
            CASE d.kind WHEN 'default' THEN format('ALTER %s DROP DEFAULT', d.sql_name) ELSE 'DROP ' || d.sql_name END, d.identity
     FROM dependent AS d WHERE d.kind <> 'trigger of a partition' ORDER BY d.place DESC, d.identity DESC)
  UNION ALL
    (SELECT 2, c.role, c.statement, c.identity FROM creation AS c ORDER BY c.place, c.identity, c.part, c.rank, c.statement)
  UNION ALL
    -- Filled last, when all privileges have been granted.
    (SELECT 3, d.owner, s.statement, d.identity
     FROM dependent AS d
     JOIN pg_class AS c ON c.oid = d.object
     CROSS JOIN LATERAL (VALUES (1, 'REFRESH ' || d.sql_name), (2, 'ANALYZE ' || d.quoted_name)) AS s (part, statement)
     -- -1 means that it has never been analyzed.
     WHERE d.kind = 'materialized view' AND c.relispopulated AND (s.part = 1 OR c.reltuples >= 0)
     ORDER BY d.place, d.identity, s.part)
$function$;

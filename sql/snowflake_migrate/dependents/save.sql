-- The statements that create an object again as it is, each with the role that
-- runs it, and a description to compare the new object with.
--
-- Names in definitions are qualified, because the search path is that of the
-- functions. The settings that change how constants are written are fixed, too.

-- The GRANT statements that lead to an access control list. They are run by the
-- roles that granted the privileges. A role comes after the one that it has its
-- grant options from. Default privileges are revoked first.
CREATE FUNCTION snowflake_migrate_internal.grants(
    object_type "char", target text, column_name name, owner oid, schema oid, acl aclitem[]
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
                         WHEN column_name IS NULL
                              AND EXISTS (SELECT FROM pg_default_acl AS f
                                          WHERE f.defaclrole = owner AND f.defaclobjtype = object_type AND f.defaclnamespace IN (0, schema))
                         THEN acldefault(object_type, owner) END) WITH ORDINALITY AS i (item, place)
        CROSS JOIN LATERAL aclexplode(ARRAY[i.item]) AS x
    ), grantor (role, level) AS (
        SELECT owner, 0
      UNION
        SELECT i.grantee, g.level + 1 FROM grantor AS g JOIN item AS i ON i.grantor = g.role AND i.is_grantable WHERE g.level < 20
    ), level AS (
        SELECT g.role, min(g.level) AS level FROM grantor AS g GROUP BY g.role
    )
    SELECT 0, owner, format('REVOKE ALL ON %s FROM %s CASCADE', target,
                            (SELECT string_agg(DISTINCT CASE r.role WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r.role)) END, ', ')
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

-- The statements that drop the objects (phase 1), create them (2) and fill
-- materialized views (3), in order.
CREATE FUNCTION snowflake_migrate_internal.dependent_statements(columns snowflake_migrate_internal.key[])
RETURNS TABLE (phase integer, role oid, statement text, identity text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off
AS $function$
    WITH dependent AS MATERIALIZED (
        SELECT d.*, snowflake_migrate_internal.name_of(d.relation) AS quoted_name,
               CASE d.kind
                   WHEN 'view' THEN 'VIEW ' || snowflake_migrate_internal.name_of(d.relation)
                   WHEN 'materialized view' THEN 'MATERIALIZED VIEW ' || snowflake_migrate_internal.name_of(d.relation)
                   WHEN 'index' THEN 'INDEX ' || snowflake_migrate_internal.name_of(d.object::regclass)
                   WHEN 'rule' THEN (SELECT format('RULE %I ON ', w.rulename) FROM pg_rewrite AS w WHERE w.oid = d.object) || snowflake_migrate_internal.name_of(d.relation)
                   WHEN 'policy' THEN (SELECT format('POLICY %I ON ', p.polname) FROM pg_policy AS p WHERE p.oid = d.object) || snowflake_migrate_internal.name_of(d.relation)
                   WHEN 'function' THEN format('ROUTINE %s', d.object::regprocedure)
                   WHEN 'statistics' THEN (SELECT format('STATISTICS %I.%I', n.nspname, x.stxname) FROM pg_statistic_ext AS x
                                           JOIN pg_namespace AS n ON n.oid = x.stxnamespace WHERE x.oid = d.object)
                   WHEN 'default' THEN (SELECT format('VIEW %s ALTER COLUMN %I', snowflake_migrate_internal.name_of(d.relation), a.attname)
                                        FROM pg_attrdef AS f JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum WHERE f.oid = d.object)
                   ELSE (SELECT format('TRIGGER %I ON ', t.tgname) FROM pg_trigger AS t WHERE t.oid = d.object) || snowflake_migrate_internal.name_of(d.relation)
               END AS sql_name
        FROM snowflake_migrate_internal.dependents(columns) AS d
        WHERE d.kind <> 'other'
    ), relation AS MATERIALIZED (
        SELECT d.*, c.relkind, c.reloptions, c.relacl, c.reltablespace, c.relam, c.reltoastrelid, c.relispopulated, c.reltuples, pg_get_viewdef(c.oid) AS definition,
               (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
               (SELECT string_agg(o.text, ', ') FROM (
                    SELECT format('%I = %L', v.option_name, v.option_value) AS text FROM pg_options_to_table(c.reloptions) AS v
                  UNION ALL
                    SELECT format('toast.%I = %L', v.option_name, v.option_value) FROM pg_class AS t CROSS JOIN LATERAL pg_options_to_table(t.reloptions) AS v
                    WHERE t.oid = c.reltoastrelid) AS o) AS options
        FROM dependent AS d JOIN pg_class AS c ON c.oid = d.object
        WHERE d.kind IN ('view', 'materialized view')
    ), creation (object, place, identity, part, rank, role, statement) AS (
        SELECT r.object, r.place, r.identity, 1, 0::bigint, r.owner,
               concat('CREATE ', r.sql_name, ' (' || r.columns || ')',
                      CASE WHEN r.relkind = 'm' THEN (SELECT format(' USING %I', m.amname) FROM pg_am AS m WHERE m.oid = r.relam) END,
                      ' WITH (' || r.options || ')',
                      CASE WHEN r.relkind = 'm' THEN (SELECT format(' TABLESPACE %I', t.spcname) FROM pg_tablespace AS t WHERE t.oid = r.reltablespace) END,
                      E' AS\n', rtrim(r.definition, ';'), CASE WHEN r.relkind = 'm' THEN E'\nWITH NO DATA' END)
        FROM relation AS r
      UNION ALL
        SELECT r.object, r.place, r.identity, 2, 0, r.owner, format('ALTER %s ALTER COLUMN %I %s', r.sql_name, a.attname, s.action)
        FROM relation AS r
        JOIN pg_attribute AS a ON a.attrelid = r.object AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_type AS t ON t.oid = a.atttypid
        CROSS JOIN LATERAL (
            SELECT format('SET STATISTICS %s', a.attstattarget) AS action WHERE a.attstattarget >= 0
          UNION ALL
            SELECT format('SET STORAGE %s', CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END)
            WHERE a.attstorage <> t.typstorage
          UNION ALL
            SELECT format('SET COMPRESSION %s', CASE a.attcompression WHEN 'l' THEN 'lz4' ELSE 'pglz' END) WHERE a.attcompression <> ''
          UNION ALL
            SELECT format('SET (%s)', string_agg(format('%I = %L', v.option_name, v.option_value), ', '))
            FROM pg_options_to_table(a.attoptions) AS v WHERE v.option_name NOT LIKE E'pg\\_%'
            HAVING count(*) > 0) AS s
        WHERE r.relkind = 'm'
      UNION ALL
        SELECT r.object, r.place, r.identity, 3, g.place, g.role, g.statement
        FROM relation AS r
        CROSS JOIN LATERAL snowflake_migrate_internal.grants("char" 'r', 'TABLE ' || r.quoted_name, NULL, r.owner, r.schema, r.relacl) AS g
      UNION ALL
        SELECT r.object, r.place, r.identity, 4, 1000 * a.attnum + g.place, g.role, g.statement
        FROM relation AS r
        JOIN pg_attribute AS a ON a.attrelid = r.object AND a.attnum > 0 AND a.attacl IS NOT NULL
        CROSS JOIN LATERAL snowflake_migrate_internal.grants("char" 'r', 'TABLE ' || r.quoted_name, a.attname, r.owner, r.schema, a.attacl) AS g
      UNION ALL
        SELECT d.object, d.place, d.identity, 1, 0, d.owner,
               CASE d.kind
                   WHEN 'rule' THEN pg_get_ruledef(d.object)
                   WHEN 'trigger' THEN pg_get_triggerdef(d.object)
                   WHEN 'function' THEN pg_get_functiondef(d.object)
                   WHEN 'index' THEN pg_get_indexdef(d.object)
                   WHEN 'statistics' THEN pg_get_statisticsobjdef(d.object)
                   WHEN 'default' THEN (SELECT format('ALTER %s SET DEFAULT %s', d.sql_name, pg_get_expr(f.adbin, f.adrelid)) FROM pg_attrdef AS f WHERE f.oid = d.object)
                   WHEN 'policy' THEN (
                       SELECT concat('CREATE ', d.sql_name, CASE WHEN p.polpermissive THEN ' AS PERMISSIVE' ELSE ' AS RESTRICTIVE' END,
                                     CASE p.polcmd WHEN 'r' THEN ' FOR SELECT' WHEN 'a' THEN ' FOR INSERT' WHEN 'w' THEN ' FOR UPDATE' WHEN 'd' THEN ' FOR DELETE' ELSE ' FOR ALL' END,
                                     ' TO ', (SELECT string_agg(CASE o.role WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(o.role)) END, ', ' ORDER BY o.place)
                                              FROM unnest(p.polroles) WITH ORDINALITY AS o (role, place)),
                                     ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')')
                       FROM pg_policy AS p WHERE p.oid = d.object)
               END
        FROM dependent AS d WHERE d.kind IN ('rule', 'trigger', 'function', 'index', 'statistics', 'default', 'policy')
      UNION ALL
        -- On views, rules and triggers are always enabled.
        SELECT d.object, d.place, d.identity, 2, 0, d.owner,
               format('ALTER TABLE ONLY %s %s %s %I', d.quoted_name,
                      CASE coalesce(t.tgenabled, w.ev_enabled) WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE' END,
                      CASE d.kind WHEN 'rule' THEN 'RULE' ELSE 'TRIGGER' END, coalesce(t.tgname, w.rulename))
        FROM dependent AS d
        LEFT JOIN pg_trigger AS t ON d.kind IN ('trigger', 'trigger of a partition') AND t.oid = d.object
        LEFT JOIN pg_rewrite AS w ON d.kind = 'rule' AND w.oid = d.object
        WHERE coalesce(t.tgenabled, w.ev_enabled) <> 'O'
      UNION ALL
        SELECT d.object, d.place, d.identity, 2, s.place, d.owner, s.statement
        FROM dependent AS d
        JOIN pg_class AS c ON d.kind = 'index' AND c.oid = d.object
        JOIN pg_index AS i ON i.indexrelid = c.oid
        CROSS JOIN LATERAL (
            SELECT 0 AS place, format('ALTER %s SET TABLESPACE %I', d.sql_name, t.spcname) AS statement FROM pg_tablespace AS t WHERE t.oid = c.reltablespace
          UNION ALL
            SELECT a.attnum, format('ALTER %s ALTER COLUMN %s SET STATISTICS %s', d.sql_name, a.attnum, a.attstattarget)
            FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attstattarget >= 0
          UNION ALL
            SELECT 2000, format('ALTER MATERIALIZED VIEW %s CLUSTER ON %I', d.quoted_name, c.relname) WHERE i.indisclustered) AS s
      UNION ALL
        SELECT d.object, d.place, d.identity, 2, 0, d.owner, format('ALTER %s SET STATISTICS %s', d.sql_name, x.target)
        FROM dependent AS d
        JOIN (SELECT x.oid, (to_jsonb(x) ->> 'stxstattarget')::integer AS target FROM pg_statistic_ext AS x) AS x ON d.kind = 'statistics' AND x.oid = d.object
        WHERE x.target >= 0
      UNION ALL
        SELECT d.object, d.place, d.identity, 3, g.place, g.role, g.statement
        FROM dependent AS d
        JOIN pg_proc AS f ON d.kind = 'function' AND f.oid = d.object
        CROSS JOIN LATERAL snowflake_migrate_internal.grants("char" 'f', d.sql_name, NULL, d.owner, d.schema, f.proacl) AS g
      UNION ALL
        SELECT d.object, d.place, d.identity, 5, e.objsubid, d.owner,
               CASE WHEN e.objsubid = 0 THEN format('COMMENT ON %s IS %L', d.sql_name, e.description)
                    ELSE format('COMMENT ON COLUMN %s.%I IS %L', d.quoted_name, a.attname, e.description) END
        FROM dependent AS d
        JOIN pg_description AS e ON e.classoid = d.class AND e.objoid = d.object
        LEFT JOIN pg_attribute AS a ON a.attrelid = d.object AND a.attnum = e.objsubid AND e.objsubid > 0
        WHERE d.kind <> 'default'
      UNION ALL
        SELECT d.object, d.place, d.identity, 5, 0, d.owner, format('COMMENT ON CONSTRAINT %I ON %s IS %L', k.conname, d.quoted_name, e.description)
        FROM dependent AS d
        JOIN pg_trigger AS t ON d.kind = 'trigger' AND t.oid = d.object
        JOIN pg_constraint AS k ON k.oid = t.tgconstraint
        JOIN pg_description AS e ON e.classoid = 'pg_constraint'::regclass AND e.objoid = k.oid
      UNION ALL
        SELECT d.object, d.place, d.identity, 6, l.objsubid, d.owner,
               format('SECURITY LABEL FOR %I ON %s IS %L', l.provider,
                      CASE WHEN l.objsubid = 0 THEN d.sql_name ELSE format('COLUMN %s.%I', d.quoted_name, a.attname) END, l.label)
        FROM dependent AS d
        JOIN pg_seclabel AS l ON l.classoid = d.class AND l.objoid = d.object
        LEFT JOIN pg_attribute AS a ON a.attrelid = d.object AND a.attnum = l.objsubid AND l.objsubid > 0
      UNION ALL
        SELECT d.object, d.place, d.identity, 7, 0, d.owner, format('ALTER %s DEPENDS ON EXTENSION %I', d.sql_name, x.extname)
        FROM dependent AS d
        JOIN pg_depend AS p ON p.classid = d.class AND p.objid = d.object AND p.deptype = 'x' AND p.refclassid = 'pg_extension'::regclass
        JOIN pg_extension AS x ON x.oid = p.refobjid
        WHERE d.kind IN ('materialized view', 'index', 'trigger', 'function')
    )
    (SELECT 1, d.owner, CASE d.kind WHEN 'default' THEN format('ALTER %s DROP DEFAULT', d.sql_name) ELSE 'DROP ' || d.sql_name END, d.identity
     FROM dependent AS d WHERE d.kind <> 'trigger of a partition' ORDER BY d.place DESC, d.identity DESC)
  UNION ALL
    (SELECT 2, c.role, c.statement, c.identity FROM creation AS c ORDER BY c.place, c.identity, c.part, c.rank, c.statement)
  UNION ALL
    -- Filled last, when all privileges have been granted.
    (SELECT 3, r.owner, s.statement, r.identity
     FROM relation AS r
     CROSS JOIN LATERAL (VALUES (1, 'REFRESH ' || r.sql_name), (2, 'ANALYZE ' || r.quoted_name)) AS s (part, statement)
     -- -1 means that it has never been analyzed.
     WHERE r.relkind = 'm' AND r.relispopulated AND (s.part = 1 OR r.reltuples >= 0)
     ORDER BY r.place, r.identity, s.part)
$function$;

-- A definition without what follows from a column's type: casts between numbers, the
-- parentheses and spaces around them, and the aliases that PostgreSQL writes for
-- expressions and not for columns. (The names of a view's columns are compared apart.)
CREATE FUNCTION snowflake_migrate_internal.without_types(definition text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT regexp_replace(
        regexp_replace(
            regexp_replace(definition, E'\\sAS ("([^"]|"")+"|\\w+)', '', 'g'),
            E'::(smallint|integer|bigint|numeric)(\\(\\d+(,\\d+)?\\))?(\\[\\])*', '', 'g'),
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

-- Everything that the catalog has about the objects, by their names, except for
-- numeric types. "code" contains the owners of functions and operators: see
-- dependent_difference().
CREATE FUNCTION snowflake_migrate_internal.describe_dependents(columns snowflake_migrate_internal.key[])
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off
AS $function$
    WITH dependent AS MATERIALIZED (
        SELECT d.* FROM snowflake_migrate_internal.dependents(columns) AS d WHERE d.kind <> 'other'
    ), reference AS MATERIALIZED (
        SELECT DISTINCT d.class, d.object, p.refclassid, p.refobjid
        FROM dependent AS d
        CROSS JOIN LATERAL (
            SELECT p.refclassid, p.refobjid FROM pg_depend AS p WHERE p.classid = d.class AND p.objid = d.object
          UNION ALL
            SELECT p.refclassid, p.refobjid FROM pg_rewrite AS w JOIN pg_depend AS p ON p.classid = 'pg_rewrite'::regclass AND p.objid = w.oid
            WHERE d.class = 'pg_class'::regclass AND w.ev_class = d.object AND w.rulename = '_RETURN') AS p
        WHERE (p.refclassid, p.refobjid) <> (d.class, d.object)
    )
    SELECT coalesce(jsonb_object_agg(d.identity, jsonb_build_object(
        'owner', pg_get_userbyid(d.owner),
        'definition', snowflake_migrate_internal.without_types(CASE d.kind
            WHEN 'rule' THEN pg_get_ruledef(d.object)
            WHEN 'function' THEN pg_get_functiondef(d.object)
            WHEN 'index' THEN pg_get_indexdef(d.object)
            WHEN 'statistics' THEN pg_get_statisticsobjdef(d.object)
            WHEN 'default' THEN (SELECT pg_get_expr(f.adbin, f.adrelid) FROM pg_attrdef AS f WHERE f.oid = d.object)
            WHEN 'policy' THEN (SELECT concat_ws(' ', p.polpermissive, p.polcmd, p.polroles, (SELECT string_agg(o.role::regrole::text, ',' ORDER BY o.place) FROM unnest(p.polroles) WITH ORDINALITY AS o (role, place)),
                                                 pg_get_expr(p.polqual, p.polrelid), 'check', pg_get_expr(p.polwithcheck, p.polrelid))
                                FROM pg_policy AS p WHERE p.oid = d.object)
            WHEN 'trigger' THEN pg_get_triggerdef(d.object)
            WHEN 'trigger of a partition' THEN pg_get_triggerdef(d.object)
            ELSE pg_get_viewdef(d.object) END),
        'enabled', coalesce((SELECT t.tgenabled FROM pg_trigger AS t WHERE d.class = 'pg_trigger'::regclass AND t.oid = d.object),
                            (SELECT w.ev_enabled FROM pg_rewrite AS w WHERE d.class = 'pg_rewrite'::regclass AND w.oid = d.object)),
        'settings', (SELECT jsonb_build_array(c.relpersistence, c.reloptions, c.relreplident, c.relispopulated, c.relhasrules, c.relhastriggers, c.relrowsecurity,
                                              (SELECT m.amname FROM pg_am AS m WHERE m.oid = c.relam), (SELECT t.spcname FROM pg_tablespace AS t WHERE t.oid = c.reltablespace),
                                              (SELECT t.reloptions FROM pg_class AS t WHERE t.oid = c.reltoastrelid))
                     FROM pg_class AS c WHERE d.class = 'pg_class'::regclass AND c.oid = d.object),
        'index', (SELECT jsonb_build_array(i.indisclustered, i.indisvalid, i.indisunique) FROM pg_index AS i WHERE d.kind = 'index' AND i.indexrelid = d.object),
        'target', (SELECT to_jsonb(x) -> 'stxstattarget' FROM pg_statistic_ext AS x WHERE d.kind = 'statistics' AND x.oid = d.object),
        'columns', (SELECT jsonb_agg(jsonb_build_array(
                               a.attname, regexp_replace(format_type(a.atttypid, a.atttypmod), E'^(smallint|integer|bigint|numeric)(\\(.*\\))?', 'number'),
                               a.attcollation::regcollation, coalesce(a.attstattarget, -1), a.attcompression,
                               CASE WHEN a.attstorage <> t.typstorage THEN a.attstorage END,
                               (SELECT jsonb_agg(o.text ORDER BY o.text) FROM unnest(a.attoptions) AS o (text) WHERE o.text NOT LIKE E'pg\\_%'),
                               snowflake_migrate_internal.describe_acl(a.attacl)) ORDER BY a.attnum)
                    FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
                    WHERE d.class = 'pg_class'::regclass AND a.attrelid = d.object AND a.attnum > 0),
        'privileges', snowflake_migrate_internal.describe_acl(coalesce(
            (SELECT coalesce(c.relacl, acldefault('r', c.relowner)) FROM pg_class AS c WHERE d.kind IN ('view', 'materialized view') AND c.oid = d.object),
            (SELECT coalesce(f.proacl, acldefault('f', f.proowner)) FROM pg_proc AS f WHERE d.kind = 'function' AND f.oid = d.object))),
        'comments', (SELECT jsonb_agg(jsonb_build_array(e.objsubid, e.description) ORDER BY e.objsubid) FROM pg_description AS e WHERE e.classoid = d.class AND e.objoid = d.object),
        'constraint comment', (SELECT e.description FROM pg_trigger AS t JOIN pg_description AS e ON e.classoid = 'pg_constraint'::regclass AND e.objoid = t.tgconstraint
                               WHERE d.kind = 'trigger' AND t.oid = d.object),
        'labels', (SELECT jsonb_agg(jsonb_build_array(l.objsubid, l.provider, l.label) ORDER BY l.objsubid, l.provider) FROM pg_seclabel AS l WHERE l.classoid = d.class AND l.objoid = d.object),
        'references', (SELECT jsonb_agg(i.type || ' ' || i.identity ORDER BY i.type, i.identity)
                       FROM reference AS r CROSS JOIN LATERAL pg_identify_object(r.refclassid, r.refobjid, 0) AS i
                       WHERE (r.class, r.object) = (d.class, d.object)
                         AND r.refclassid NOT IN ('pg_proc'::regclass, 'pg_operator'::regclass)),
        'code', (SELECT coalesce(jsonb_agg(DISTINCT pg_get_userbyid(coalesce(f.proowner, o.oprowner))), '[]')
                 FROM reference AS r
                 LEFT JOIN pg_proc AS f ON r.refclassid = 'pg_proc'::regclass AND f.oid = r.refobjid
                 LEFT JOIN pg_operator AS o ON r.refclassid = 'pg_operator'::regclass AND o.oid = r.refobjid
                 WHERE (r.class, r.object) = (d.class, d.object) AND coalesce(f.oid, o.oid) IS NOT NULL)
        )), '{}')
    FROM dependent AS d
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
        WHERE n.oid IN (SELECT c.relnamespace FROM used AS u JOIN pg_class AS c ON u.class = 'pg_class'::regclass AND c.oid = u.object
                      UNION SELECT p.pronamespace FROM used AS u JOIN pg_proc AS p ON u.class = 'pg_proc'::regclass AND p.oid = u.object
                      UNION SELECT o.oprnamespace FROM used AS u JOIN pg_operator AS o ON u.class = 'pg_operator'::regclass AND o.oid = u.object
                      UNION SELECT t.typnamespace FROM used AS u JOIN pg_type AS t ON u.class = 'pg_type'::regclass AND t.oid = u.object
                      UNION SELECT l.collnamespace FROM used AS u JOIN pg_collation AS l ON u.class = 'pg_collation'::regclass AND l.oid = u.object)
        ORDER BY n.oid))
$function$;

-- The statements that drop the objects and create them again, and their description.
CREATE FUNCTION snowflake_migrate_internal.save_dependents(columns snowflake_migrate_internal.key[])
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT jsonb_build_object(
        'statements', (SELECT coalesce(jsonb_agg(jsonb_build_object('phase', s.phase, 'role', s.role, 'statement', s.statement, 'identity', s.identity)), '[]')
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
                                (SELECT string_agg(concat(e.xmin, e.ctid), ' ' ORDER BY e.ctid) FROM pg_description AS e WHERE e.classoid = d.class AND e.objoid = d.object),
                                (SELECT string_agg(concat(l.xmin, l.ctid), ' ' ORDER BY l.ctid) FROM pg_seclabel AS l WHERE l.classoid = d.class AND l.objoid = d.object)),
                      ', ' ORDER BY d.class, d.object)
           || concat((SELECT string_agg(concat(a.xmin, a.ctid), ' ' ORDER BY a.ctid) FROM pg_default_acl AS a))
    FROM snowflake_migrate_internal.dependents(columns) AS d
    LEFT JOIN pg_policy AS p ON d.kind = 'policy' AND p.oid = d.object
    LEFT JOIN pg_proc AS f ON d.kind = 'function' AND f.oid = d.object
    LEFT JOIN pg_rewrite AS w ON d.kind = 'rule' AND w.oid = d.object
    LEFT JOIN pg_trigger AS t ON d.class = 'pg_trigger'::regclass AND t.oid = d.object
$function$;

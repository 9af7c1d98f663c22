-- What a script for another server was made for, and how it is compared with what is there.
-- The other server may have another version: only facts that all versions print alike are
-- compared as texts. Definitions of views and the like are printed by the other server, before
-- and after a trial that creates them from the script.

-- A text in dollar quotes, with which no character in it has a meaning, neither to psql.
CREATE FUNCTION snowflake_migrate_internal.dollar_quoted(content text)
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat(t.tag, content, t.tag)
    FROM (SELECT format('$sql%s$', CASE WHEN n > 0 THEN n END) FROM generate_series(0, length(content)) AS n) AS t (tag)
    WHERE strpos(content || t.tag, t.tag) > length(content)
    LIMIT 1
$function$;

-- A statement that psql sends as it is: in an array slice of an expression, as a[1:messages], it would put a variable of its own.
CREATE FUNCTION snowflake_migrate_internal.for_psql(statement text)
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN statement ~ '(^|[^:]):[[:alpha:]_''"{]'
                THEN format(E'SELECT %s \\gexec', snowflake_migrate_internal.dollar_quoted(rtrim(statement, ';'))) ELSE statement END
$function$;

-- The query of the facts of relations $1, by name, in two parts. Indexes and constraints that follow those
-- of a parent are not listed: they get other names when they are built again. A type of
-- a column and the bounds of a sequence are facts of their own, because the script changes them.
CREATE FUNCTION snowflake_migrate_internal.script_relation_facts()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $query$
    WITH relation AS MATERIALIZED (
        SELECT g.name, pg_catalog.to_regclass(g.name) AS oid FROM pg_catalog.unnest($1) AS g (name)
    ), known AS MATERIALIZED (
        SELECT r.name, c.* FROM relation AS r JOIN pg_catalog.pg_class AS c ON c.oid = r.oid
    )
    SELECT r.name, 'existence', CASE WHEN r.oid IS NULL THEN 'missing' ELSE 'exists' END FROM relation AS r
  UNION ALL
    SELECT k.name, f.fact, f.value
    FROM known AS k
    CROSS JOIN LATERAL (VALUES
        ('kind', k.relkind::text), ('persistence', k.relpersistence::text), ('owner', pg_get_userbyid(k.relowner)),
        ('replica identity', nullif(k.relreplident, 'n')::text),
        ('row security', concat_ws(' ', k.relrowsecurity, k.relforcerowsecurity)),
        ('privileges', (SELECT string_agg(concat_ws(' ', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(a.grantee) END,
                                                    a.privilege_type, CASE WHEN a.is_grantable THEN 'with grant option' END), ', '
                                          ORDER BY pg_get_userbyid(a.grantee), a.privilege_type)
                        FROM aclexplode(coalesce(k.relacl, acldefault(CASE k.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char",
                                                                      k.relowner))) AS a
                        -- Its name is new in 17.
                        WHERE a.privilege_type <> 'MAINTAIN')),
        ('partitions and child tables', (SELECT string_agg(format('%I.%I', n.nspname, c.relname), ', ' ORDER BY n.nspname, c.relname)
                                         FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
                                         JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE i.inhparent = k.oid)),
        ('typed tables and row types in use', (SELECT string_agg(format('%I.%I', n.nspname, c.relname), ', ' ORDER BY n.nspname, c.relname)
                      FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid LEFT JOIN pg_type AS e ON e.oid = t.typelem
                      JOIN pg_class AS c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p', 'm', 'f', 'c')
                      JOIN pg_namespace AS n ON n.oid = c.relnamespace
                      WHERE k.relkind <> 'S' AND k.oid IN (t.typrelid, e.typrelid) AND NOT a.attisdropped))
    ) AS f (fact, value)
  UNION ALL
    SELECT k.name, f.fact, f.value
    FROM known AS k
    JOIN pg_attribute AS a ON a.attrelid = k.oid AND a.attnum > 0 AND NOT a.attisdropped AND k.relkind <> 'S'
    CROSS JOIN LATERAL (VALUES
        (format('type of column %I', a.attname), format_type(a.atttypid, a.atttypmod)),
        (format('column %I', a.attname), concat_ws(', ', CASE WHEN a.attnotnull THEN 'not null' END,
            CASE WHEN a.atthasdef AND a.attgenerated = '' THEN 'default' END,
            -- Since 17, partitions have that of their parent.
            'identity ' || CASE WHEN NOT k.relispartition THEN nullif(a.attidentity::text, '') END,
            'generated ' || nullif(a.attgenerated::text, ''),
            'collation ' || nullif((SELECT l.collname FROM pg_collation AS l WHERE l.oid = a.attcollation), 'default')))
    ) AS f (fact, value)
  UNION ALL
    SELECT k.name, f.fact, f.value
    FROM known AS k
    JOIN pg_sequence AS s ON s.seqrelid = k.oid
    CROSS JOIN LATERAL (VALUES
        ('data type', format_type(s.seqtypid, NULL)), ('maximum', s.seqmax::text), ('minimum', s.seqmin::text),
        ('increment', s.seqincrement::text), ('cycle', s.seqcycle::text), ('cache', s.seqcache::text), ('start', s.seqstart::text)
    ) AS f (fact, value)
$query$;

CREATE FUNCTION snowflake_migrate_internal.script_object_facts()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $query$
  UNION ALL
    -- Not those of NOT NULL, which only 18 and later have, nor those of triggers.
    SELECT k.name, format('constraint %I', o.conname),
           CASE o.contype WHEN 'c' THEN 'CHECK of ' || coalesce((
                                            SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attname) FROM pg_attribute AS a
                                            WHERE a.attrelid = o.conrelid AND a.attnum = ANY (o.conkey)), 'no column')
                          WHEN 'x' THEN 'EXCLUDE' ELSE pg_get_constraintdef(o.oid) END
           || CASE WHEN o.convalidated THEN '' ELSE ', not validated' END
    FROM known AS k JOIN pg_constraint AS o ON o.conrelid = k.oid
    WHERE o.contype IN ('c', 'p', 'u', 'f', 'x') AND o.conparentid = 0 AND o.coninhcount = 0
  UNION ALL
    -- A new one would leave its column narrow.
    SELECT k.name, format('foreign key %I of %I.%I', o.conname, n.nspname, c.relname), pg_get_constraintdef(o.oid)
    FROM known AS k JOIN pg_constraint AS o ON o.confrelid = k.oid AND o.contype = 'f' AND o.conparentid = 0
    JOIN pg_class AS c ON c.oid = o.conrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
  UNION ALL
    SELECT k.name, format('index %I', c.relname),
           concat_ws(', ', m.amname, CASE WHEN i.indisunique THEN 'unique' END, CASE WHEN NOT i.indisvalid THEN 'invalid' END,
                     CASE WHEN i.indisreplident THEN 'replica identity' END, CASE WHEN i.indisclustered THEN 'clustered' END,
                     CASE WHEN i.indpred IS NOT NULL THEN 'partial' END,
                     (SELECT string_agg(coalesce(quote_ident(a.attname), 'an expression'), ', ' ORDER BY x.place)
                      FROM unnest(i.indkey) WITH ORDINALITY AS x (attribute, place)
                      LEFT JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = x.attribute AND x.attribute > 0))
    FROM known AS k JOIN pg_index AS i ON i.indrelid = k.oid JOIN pg_class AS c ON c.oid = i.indexrelid AND NOT c.relispartition
    JOIN pg_am AS m ON m.oid = c.relam
  UNION ALL
    SELECT k.name, format('trigger %I', t.tgname),
           concat_ws(', ', t.tgtype, t.tgenabled, format('%I.%I', n.nspname, p.proname), CASE WHEN t.tgdeferrable THEN 'deferrable' END,
                     CASE WHEN t.tgqual IS NOT NULL THEN 'with a condition' END,
                     (SELECT string_agg(quote_ident(a.attname), ' ' ORDER BY a.attname)
                      FROM pg_attribute AS a WHERE a.attrelid = t.tgrelid AND a.attnum = ANY (t.tgattr)), encode(t.tgargs, 'hex'))
    FROM known AS k JOIN pg_trigger AS t ON t.tgrelid = k.oid AND NOT t.tgisinternal
    JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = p.pronamespace
  UNION ALL
    -- Those of referential integrity: a disabled one is enabled when its foreign key is built again.
    SELECT k.name, 'disabled triggers of foreign keys', string_agg(quote_ident(o.conname), ', ' ORDER BY o.conname)
    FROM known AS k JOIN pg_trigger AS t ON t.tgrelid = k.oid AND t.tgisinternal AND t.tgenabled <> 'O'
    JOIN pg_constraint AS o ON o.oid = t.tgconstraint GROUP BY k.name
  UNION ALL
    SELECT k.name, format('policy %I', p.polname), concat_ws(', ', p.polcmd, CASE WHEN NOT p.polpermissive THEN 'restrictive' END)
    FROM known AS k JOIN pg_policy AS p ON p.polrelid = k.oid
  UNION ALL
    -- What it names of a table cannot be replaced.
    SELECT k.name, format('publication %I', p.pubname),
           concat_ws(', ', CASE WHEN r.prqual IS NOT NULL THEN 'with a condition' END,
                     (SELECT string_agg(quote_ident(a.attname), ' ' ORDER BY a.attname)
                      FROM pg_attribute AS a WHERE a.attrelid = r.prrelid AND a.attnum = ANY (r.prattrs)))
    FROM known AS k JOIN pg_publication_rel AS r ON r.prrelid = k.oid AND (r.prqual IS NOT NULL OR r.prattrs IS NOT NULL)
    JOIN pg_publication AS p ON p.oid = r.prpubid
  UNION ALL
    SELECT DISTINCT k.name, format(CASE w.rulename WHEN '_RETURN' THEN 'view %1$I.%2$I' ELSE 'rule %3$I of %1$I.%2$I' END,
                                   n.nspname, c.relname, w.rulename), 'uses it'
    FROM known AS k
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = k.oid AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite AS w ON w.oid = d.objid JOIN pg_class AS c ON c.oid = w.ev_class JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE k.relkind <> 'S'
  UNION ALL
    SELECT DISTINCT k.name, format('function %I.%I', n.nspname, p.proname), 'uses it'
    FROM known AS k
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = k.oid AND d.refobjsubid > 0
                       AND d.classid = 'pg_proc'::regclass
    JOIN pg_proc AS p ON p.oid = d.objid JOIN pg_namespace AS n ON n.oid = p.pronamespace
$query$;

CREATE FUNCTION snowflake_migrate_internal.script_facts_query()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN snowflake_migrate_internal.script_relation_facts() || snowflake_migrate_internal.script_object_facts();

-- The facts here. A widened column has another type afterwards, and its sequence other bounds.
CREATE FUNCTION snowflake_migrate_internal.script_facts(keys snowflake_migrate_internal.key[], relations text[])
RETURNS TABLE (object text, fact text, value text, value_after text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off
AS $function$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT f.object, f.fact, f.value,
                CASE WHEN w.object IS NOT NULL OR f.fact = ''data type'' THEN ''bigint''
                     WHEN f.fact = ''maximum'' AND f.value IN (''32767'', ''2147483647'') THEN ''9223372036854775807''
                     WHEN f.fact = ''minimum'' AND f.value IN (''-32768'', ''-2147483648'') THEN ''-9223372036854775808''
                     ELSE f.value END
         FROM (%s) AS f (object, fact, value) LEFT JOIN unnest($2, $3) AS w (object, fact) USING (object, fact)
         WHERE f.value <> '''' ORDER BY f.object COLLATE "C", f.fact COLLATE "C"', snowflake_migrate_internal.script_facts_query())
        USING relations,
              ARRAY(SELECT snowflake_migrate_internal.name_of(w.relation)
                    FROM snowflake_migrate_internal.linked_tree(keys) AS w WHERE w.is_narrow),
              ARRAY(SELECT format('type of column %I', w.attname) FROM snowflake_migrate_internal.linked_tree(keys) AS w WHERE w.is_narrow);
END
$function$;

-- The query of all that depends on relations $1 and is created again, as this server prints it:
-- an object with its definition and properties. In two parts: the first finds them.
CREATE FUNCTION snowflake_migrate_internal.script_dependents_query()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $query$
    WITH RECURSIVE edge (class, object) AS (
        SELECT 'pg_class'::regclass::oid, to_regclass(g.name)::oid FROM unnest($1) AS g (name)
      UNION
        SELECT n.class, n.object
        FROM edge AS e
        JOIN pg_depend AS d ON d.refclassid = e.class AND d.refobjid = e.object
        LEFT JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid AND w.rulename = '_RETURN'
        CROSS JOIN LATERAL (SELECT CASE WHEN w.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass END,
                                   coalesce(w.ev_class, d.objid)) AS n (class, object)
        WHERE d.classid IN ('pg_rewrite'::regclass, 'pg_policy'::regclass, 'pg_proc'::regclass, 'pg_trigger'::regclass)
           OR d.classid IN ('pg_class'::regclass, 'pg_attrdef'::regclass, 'pg_statistic_ext'::regclass)
              AND EXISTS (SELECT FROM pg_class AS c WHERE c.oid = e.object AND c.relkind IN ('v', 'm'))
    )
$query$;

CREATE FUNCTION snowflake_migrate_internal.script_description_query()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN snowflake_migrate_internal.script_dependents_query() OPERATOR(pg_catalog.||) $query$    SELECT i.type || ' ' || i.identity, jsonb_build_object(
        'definition', CASE WHEN e.class = 'pg_rewrite'::regclass THEN pg_get_ruledef(e.object)
                           WHEN e.class = 'pg_trigger'::regclass THEN pg_get_triggerdef(e.object)
                           WHEN e.class = 'pg_proc'::regclass THEN pg_get_functiondef(e.object)
                           WHEN e.class = 'pg_statistic_ext'::regclass THEN pg_get_statisticsobjdef(e.object)
                           WHEN e.class = 'pg_attrdef'::regclass
                           THEN (SELECT pg_get_expr(f.adbin, f.adrelid) FROM pg_attrdef AS f WHERE f.oid = e.object)
                           WHEN e.class = 'pg_policy'::regclass
                           THEN (SELECT concat_ws(' ', p.polpermissive, p.polcmd, p.polroles, pg_get_expr(p.polqual, p.polrelid),
                                                  'check', pg_get_expr(p.polwithcheck, p.polrelid))
                                 FROM pg_policy AS p WHERE p.oid = e.object)
                           WHEN c.relkind = 'i' THEN pg_get_indexdef(e.object) ELSE pg_get_viewdef(e.object) END,
        -- Makes it from this definition, a view with another name: what PostgreSQL prints of that may
        -- differ once, as casts of IN (...) on varchar do.
        'again', CASE WHEN e.class = 'pg_rewrite'::regclass
                      THEN format('DROP RULE %I ON %s; %s', w.rulename, w.ev_class::regclass, pg_get_ruledef(e.object))
                      WHEN e.class = 'pg_trigger'::regclass
                      THEN format('DROP TRIGGER %I ON %s; %s', t.tgname, t.tgrelid::regclass, pg_get_triggerdef(e.object))
                      WHEN e.class = 'pg_proc'::regclass THEN pg_get_functiondef(e.object)
                      WHEN e.class = 'pg_statistic_ext'::regclass
                      THEN format('DROP STATISTICS %s; %s', i.identity, pg_get_statisticsobjdef(e.object))
                      WHEN e.class = 'pg_attrdef'::regclass
                      THEN (SELECT format('ALTER VIEW %s ALTER %I SET DEFAULT %s', f.adrelid::regclass, a.attname,
                                          pg_get_expr(f.adbin, f.adrelid))
                            FROM pg_attrdef AS f JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
                            WHERE f.oid = e.object)
                      WHEN e.class = 'pg_policy'::regclass
                      THEN (SELECT concat(format('ALTER POLICY %I ON %s', p.polname, p.polrelid::regclass),
                                          ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')',
                                          ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')')
                            FROM pg_policy AS p WHERE p.oid = e.object)
                      WHEN c.relkind = 'i' THEN format('DROP INDEX %s; %s', i.identity, pg_get_indexdef(e.object))
                      ELSE format('CREATE VIEW %I.widening_again_%s AS %s', current_setting('widening_script.schema'),
                                  e.object, pg_get_viewdef(e.object)) END,
        'again as', CASE WHEN c.relkind IN ('v', 'm')
                         THEN format('view %I.widening_again_%s', current_setting('widening_script.schema'), e.object) END,
        'owner', pg_get_userbyid(coalesce(c.relowner, f.proowner)), 'options', c.reloptions, 'method', c.relam,
        'tablespace', c.reltablespace,
        'privileges', (SELECT string_agg(format('%s %s by %s%s', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(a.grantee) END,
                                                a.privilege_type, pg_get_userbyid(a.grantor),
                                                CASE WHEN a.is_grantable THEN ' with grant option' END),
                                         ', ' ORDER BY a.grantee, a.privilege_type, a.grantor)
                       FROM aclexplode(coalesce(c.relacl, f.proacl,
                                                CASE WHEN c.relkind IN ('v', 'm') THEN acldefault('r', c.relowner)
                                                     WHEN f.oid IS NOT NULL THEN acldefault('f', f.proowner) END)) AS a),
        -- Only 17 and later have it. A script for servers of any version keeps what it finds.
        'maintain', (SELECT coalesce(jsonb_agg(format('GRANT MAINTAIN ON TABLE %s TO %s%s', i.identity,
                                                      CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
                                                      CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END)
                                               ORDER BY a.grantee, a.is_grantable), '[]')
                     FROM aclexplode(CASE WHEN c.relkind IN ('v', 'm') THEN coalesce(c.relacl, acldefault('r', c.relowner)) END) AS a
                     WHERE a.privilege_type = 'MAINTAIN'),
        'columns', (SELECT jsonb_agg(jsonb_build_array(a.attname, format_type(a.atttypid, a.atttypmod), to_jsonb(a) -> 'attstattarget',
                                     a.attcompression, a.attstorage, a.attacl::text,
                                     (SELECT jsonb_agg(o) FROM unnest(a.attoptions) AS o
                                      WHERE left(o, 3) <> 'pg_')) ORDER BY a.attnum)
                    FROM pg_attribute AS a WHERE c.oid IS NOT NULL AND a.attrelid = c.oid AND a.attnum > 0),
        'enabled', coalesce(t.tgenabled, w.ev_enabled),
        'comments', (SELECT jsonb_agg(jsonb_build_array(m.objsubid, m.description) ORDER BY m.objsubid)
                     FROM pg_description AS m WHERE m.classoid = e.class AND m.objoid = e.object))
    FROM (SELECT DISTINCT n.class, n.object FROM edge AS n) AS e
    CROSS JOIN LATERAL pg_identify_object(e.class, e.object, 0) AS i
    LEFT JOIN pg_class AS c ON e.class = 'pg_class'::regclass AND c.oid = e.object
    LEFT JOIN pg_proc AS f ON e.class = 'pg_proc'::regclass AND f.oid = e.object
    LEFT JOIN pg_trigger AS t ON e.class = 'pg_trigger'::regclass AND t.oid = e.object
    LEFT JOIN pg_rewrite AS w ON e.class = 'pg_rewrite'::regclass AND w.oid = e.object
    WHERE (c.oid IS NULL OR c.relkind IN ('v', 'm', 'i')) AND coalesce(f.prokind, 'f') <> 'a' AND coalesce(NOT t.tgisinternal, true)
$query$;

-- What the catalog of a database has of the extension, a line each: the same for
-- two databases whose extension behaves in the same way and is dumped in the
-- same way. OIDs and the numbers of columns after dropped ones are left out. Kinds of
-- objects that the extension does not have are compared by name only (member).
WITH extension AS (
    SELECT * FROM pg_extension WHERE extname IN ('snowflake', 'snowflake_migrate')
), member AS (
    SELECT d.classid, d.objid, pg_describe_object(d.classid, d.objid, 0) AS name
    FROM pg_depend AS d JOIN extension AS e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
    WHERE d.deptype = 'e'
), relation AS (
    SELECT c.*, c.oid::regclass::text AS name FROM member AS m JOIN pg_class AS c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
), attribute AS (
    SELECT a.*, r.name AS relation, r.relkind, row_number() OVER (PARTITION BY r.oid ORDER BY a.attnum) AS place
    FROM relation AS r JOIN pg_attribute AS a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
), routine AS (
    SELECT p.* FROM member AS m JOIN pg_proc AS p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
), type AS (
    SELECT t.* FROM member AS m JOIN pg_type AS t ON m.classid = 'pg_type'::regclass AND t.oid = m.objid
    UNION
    SELECT t.* FROM relation AS r JOIN pg_type AS t ON t.typrelid = r.oid
), line (what, description) AS (
    SELECT 'extension', format('%s: version %s, relocatable %s, schema %s, owner %s', extname, extversion, extrelocatable, extnamespace::regnamespace, extowner::regrole)
    FROM extension
    UNION ALL
    SELECT 'member', name FROM member
    UNION ALL
    -- Body, arguments, defaults, volatility, parallel, strict, leakproof, security, cost, rows, support function and SET clauses.
    SELECT 'function', concat_ws(E'\n', pg_get_functiondef(p.oid),
        format('cost %s rows %s support %s leakproof %s definer %s strict %s volatile %s parallel %s set %s kind %s language %s variadic %s transforms %s owner %s',
               p.procost, p.prorows, p.prosupport, p.proleakproof, p.prosecdef, p.proisstrict, p.provolatile, p.proparallel, p.proconfig,
               p.prokind, (SELECT lanname FROM pg_language WHERE oid = p.prolang), p.provariadic::regtype, p.protrftypes, p.proowner::regrole))
    FROM routine AS p
    UNION ALL
    SELECT 'privileges of function', format('%s: %s', p.oid::regprocedure, (
        SELECT string_agg(a::text, ', ' ORDER BY a::text) FROM unnest(coalesce(p.proacl, acldefault('f', p.proowner))) AS a))
    FROM routine AS p
    UNION ALL
    SELECT 'privileges of relation', format('%s, of %s: %s', r.name, r.relowner::regrole, (
        SELECT string_agg(a::text, ', ' ORDER BY a::text)
        FROM unnest(coalesce(r.relacl, acldefault(CASE r.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", r.relowner))) AS a))
    FROM relation AS r
    UNION ALL
    SELECT 'privileges of column', format('%s.%s: %s', a.relation, a.attname, (SELECT string_agg(x::text, ', ' ORDER BY x::text) FROM unnest(a.attacl) AS x))
    FROM attribute AS a WHERE a.attacl IS NOT NULL
    UNION ALL
    SELECT 'schema', format('%s, of %s: %s', n.nspname, n.nspowner::regrole, (
        SELECT string_agg(a::text, ', ' ORDER BY a::text) FROM unnest(coalesce(n.nspacl, acldefault('n', n.nspowner))) AS a))
    FROM member AS m JOIN pg_namespace AS n ON m.classid = 'pg_namespace'::regclass AND n.oid = m.objid
    UNION ALL
    SELECT 'privileges that pg_dump leaves out', format('%s: %s', pg_describe_object(i.classoid, i.objoid, i.objsubid), (
        SELECT string_agg(a::text, ', ' ORDER BY a::text) FROM unnest(i.initprivs) AS a))
    FROM pg_init_privs AS i JOIN member AS m ON (m.classid, m.objid) = (i.classoid, i.objoid)
    UNION ALL
    SELECT 'comment', format('%s: %s', pg_describe_object(c.classoid, c.objoid, c.objsubid), c.description)
    FROM pg_description AS c JOIN member AS m ON (m.classid, m.objid) = (c.classoid, c.objoid)
    UNION ALL
    SELECT 'comment on a part', format('%s: %s', pg_describe_object(c.classoid, c.objoid, c.objsubid), c.description)
    FROM pg_description AS c
    WHERE (c.classoid = 'pg_constraint'::regclass AND c.objoid IN (SELECT oid FROM pg_constraint WHERE conrelid IN (SELECT oid FROM relation)))
       OR (c.classoid = 'pg_trigger'::regclass AND c.objoid IN (SELECT oid FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM relation)))
       OR (c.classoid = 'pg_class'::regclass AND c.objoid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM relation)))
    UNION ALL
    SELECT 'comment on the extension', obj_description(oid, 'pg_extension') FROM extension
    UNION ALL
    SELECT 'view', format('%s: %s', r.name, pg_get_viewdef(r.oid)) FROM relation AS r WHERE r.relkind = 'v'
    UNION ALL
    SELECT 'relation', format('%s kind %s persistence %s options %s row security %s %s replica identity %s method %s tablespace %s', r.name, r.relkind,
        r.relpersistence, r.reloptions, r.relrowsecurity, r.relforcerowsecurity, r.relreplident, (SELECT amname FROM pg_am WHERE oid = r.relam), r.reltablespace)
    FROM relation AS r
    UNION ALL
    SELECT 'column', format('%s.%s, number %s: %s not null %s storage %s compression %s statistics %s options %s collation %s identity %s generated %s default %s',
        a.relation, a.attname, a.place, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage, a.attcompression,
        -- PostgreSQL 17 has NULL where earlier versions have -1.
        nullif(a.attstattarget, -1), (SELECT string_agg(o, ',') FROM unnest(a.attoptions) AS o WHERE o !~ '^pg_attver='), a.attcollation::regcollation,
        a.attidentity, a.attgenerated, pg_get_expr(f.adbin, f.adrelid))
    FROM attribute AS a LEFT JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
    UNION ALL
    SELECT 'constraint', format('%s %s: %s validated %s deferrable %s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid), c.convalidated, c.condeferrable)
    FROM pg_constraint AS c JOIN relation AS r ON r.oid = c.conrelid
    UNION ALL
    SELECT 'index', format('%s valid %s of %s options %s', pg_get_indexdef(i.indexrelid), i.indisvalid, x.relowner::regrole, x.reloptions)
    FROM pg_index AS i JOIN relation AS r ON r.oid = i.indrelid JOIN pg_class AS x ON x.oid = i.indexrelid
    UNION ALL
    SELECT 'trigger', format('%s enabled %s', pg_get_triggerdef(t.oid), t.tgenabled)
    FROM pg_trigger AS t JOIN relation AS r ON r.oid = t.tgrelid WHERE NOT t.tgisinternal
    UNION ALL
    SELECT 'rule', format('%s enabled %s', pg_get_ruledef(w.oid), w.ev_enabled) FROM pg_rewrite AS w JOIN relation AS r ON r.oid = w.ev_class
    UNION ALL
    SELECT 'sequence', format('%s as %s start %s increment %s maximum %s minimum %s cache %s cycle %s', r.name, s.seqtypid::regtype, s.seqstart, s.seqincrement,
        s.seqmax, s.seqmin, s.seqcache, s.seqcycle)
    FROM pg_sequence AS s JOIN relation AS r ON r.oid = s.seqrelid
    UNION ALL
    SELECT 'type', format('%s kind %s category %s default %s of %s: %s', t.oid::regtype, t.typtype, t.typcategory, t.typdefault, t.typowner::regrole,
        (SELECT string_agg(a::text, ', ' ORDER BY a::text) FROM unnest(coalesce(t.typacl, acldefault('T', t.typowner))) AS a))
    FROM type AS t
    UNION ALL
    SELECT 'column of a type', format('%s.%s, number %s: %s', t.oid::regtype, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod))
    FROM member AS m JOIN pg_type AS t ON m.classid = 'pg_type'::regclass AND t.oid = m.objid
    JOIN pg_attribute AS a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT 'rows that pg_dump takes along', format('%s WHERE %s', c.relation::regclass, c.condition)
    FROM extension AS e, LATERAL ROWS FROM (unnest(e.extconfig), unnest(e.extcondition)) AS c (relation, condition)
    UNION ALL
    SELECT DISTINCT 'dependency', format('%s on %s (%s)', m.name, pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid), d.deptype)
    FROM pg_depend AS d JOIN member AS m ON (m.classid, m.objid) = (d.classid, d.objid)
    WHERE pg_describe_object(d.refclassid, d.refobjid, 0) !~ 'toast'
)
SELECT replace(format('%s: %s', what, description), E'\n', E'\n    ') FROM line ORDER BY what COLLATE "C", description COLLATE "C"

-- Parts of a plan's statements and of their notes, and what they depend on.

-- A number of things, in words.
CREATE FUNCTION snowflake_migrate_internal.counted(number bigint, thing text)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('%s %s', ltrim(to_char(number, 'FM999,999,999,999,999,999')), thing || CASE number WHEN 1 THEN '' ELSE 's' END)
$function$;

-- The first ten of several names, and how many others there are.
CREATE FUNCTION snowflake_migrate_internal.some_names(names text[])
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT array_to_string(names[:10], ', ')
           || CASE WHEN cardinality(names) > 10 THEN format(', and %s more', to_char(cardinality(names) - 10, 'FM999,999')) ELSE '' END
$function$;

-- The options of a column that its owner has set; NULL if there are none. Minor
-- releases since November 2026 keep a version of the row type among them, pg_attver.
CREATE FUNCTION snowflake_migrate_internal.column_options(options text[])
RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT array_agg(o.option ORDER BY o.place)
    FROM unnest(options) WITH ORDINALITY AS o (option, place)
    WHERE NOT starts_with(o.option, 'pg_')
$function$;

-- Whether an object uses a function or an operator that has not the name and the
-- schema of one that another object uses. The search path of a session that creates
-- an index can lead to one, even if the statement names schemas: NULLIF, for example,
-- looks up an operator without naming it.
CREATE FUNCTION snowflake_migrate_internal.uses_other_code(catalog regclass, original oid, counterpart oid)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH used AS MATERIALIZED (
        SELECT d.objid, d.refclassid, coalesce(p.proname, o.oprname) AS name, coalesce(p.pronamespace, o.oprnamespace) AS schema
        FROM pg_depend AS d
        LEFT JOIN pg_proc AS p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
        LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
        WHERE d.classid = catalog AND d.objid IN (original, counterpart) AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
    )
    SELECT EXISTS (SELECT FROM used AS u
                   WHERE u.objid = counterpart
                     AND NOT EXISTS (SELECT FROM used AS e
                                     WHERE e.objid = original AND (e.refclassid, e.name, e.schema) = (u.refclassid, u.name, u.schema)))
$function$;

-- Whether a role has another one's rights, and may SET ROLE to it.
CREATE FUNCTION snowflake_migrate_internal.may_become(role oid, other oid)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT pg_has_role(role, other, 'USAGE')
       AND pg_has_role(role, other, CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END)
$function$;

-- The tables at the other end of the foreign keys that are rebuilt with a
-- column. They are locked in the same mode as the table itself.
CREATE FUNCTION snowflake_migrate_internal.other_locked_tables(target regclass, attributes smallint[])
RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT other.relation::text
    FROM (SELECT k.conrelid::regclass FROM pg_constraint AS k
          WHERE k.contype = 'f' AND k.conparentid = 0 AND k.confrelid = target AND k.confkey && attributes
        UNION
          SELECT k.confrelid::regclass FROM pg_constraint AS k
          WHERE k.contype = 'f' AND k.conparentid = 0 AND k.conrelid = target AND k.conkey && attributes) AS other (relation)
    WHERE other.relation <> target
$function$;

-- The publications that contain a table.
CREATE FUNCTION snowflake_migrate_internal.publications(target regclass, column_name name)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT string_agg(DISTINCT quote_ident(p.pubname), ', ')
    FROM snowflake_migrate_internal.table_tree(target, column_name) AS f
    JOIN pg_class AS c ON c.oid = f.relation
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_publication_tables AS p ON p.schemaname = n.nspname AND p.tablename = c.relname
$function$;

-- Whether a column should have statistics but has none. The table must have rows,
-- and the caller must be allowed to see the statistics.
CREATE FUNCTION snowflake_migrate_internal.lacks_statistics(target regclass, column_name name)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (
        SELECT FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = lacks_statistics.column_name
        WHERE c.oid = target AND a.attstattarget IS DISTINCT FROM 0
          AND has_column_privilege(c.oid, a.attnum, 'SELECT') AND NOT row_security_active(c.oid)
          AND NOT EXISTS (SELECT FROM pg_stats AS s
                          WHERE s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname)
          AND EXISTS (SELECT FROM snowflake_migrate_internal.table_tree(target, a.attname) AS f
                      JOIN pg_class AS m ON m.oid = f.relation
                      -- -1 means unknown, as after some rewrites; 0 was counted.
                      WHERE m.relkind = 'r' AND m.reltuples <> 0 AND pg_relation_size(m.oid) > 0))
$function$;

-- The statements that set the statistics targets of expressions of indexes and of
-- extended statistics again. PostgreSQL creates both again when it rewrites a
-- table, and forgets the targets. Indexes of partitions get other names then.
CREATE FUNCTION snowflake_migrate_internal.statistics_targets(tables regclass[])
RETURNS SETOF snowflake_migrate_internal.command LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.command(text 'plain', i.indrelid::regclass,
        format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS %s',
               snowflake_migrate_internal.name_of(i.indexrelid::regclass), a.attnum, a.attstattarget))
    FROM pg_index AS i
    JOIN pg_attribute AS a ON a.attrelid = i.indexrelid AND a.attstattarget >= 0
    WHERE i.indrelid = ANY (tables) AND NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid)
  UNION ALL
    SELECT snowflake_migrate_internal.command(text 'plain', x.stxrelid::regclass,
        format('ALTER STATISTICS %I.%I SET STATISTICS %s', n.nspname, x.stxname, x.stxstattarget))
    FROM pg_statistic_ext AS x JOIN pg_namespace AS n ON n.oid = x.stxnamespace
    WHERE x.stxrelid = ANY (tables) AND x.stxstattarget >= 0
$function$;

-- Whether extended statistics, or the expressions of an index, depend on a column of
-- a table or of its partitions. Their statistics are lost with the column's, and are
-- not collected by ANALYZE of single columns.
CREATE FUNCTION snowflake_migrate_internal.has_derived_statistics(target regclass, column_name name)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (
        SELECT FROM snowflake_migrate_internal.table_tree(target, column_name) AS f
        -- Without statistics of the column itself, PostgreSQL has no extended ones either,
        -- and ANALYZE warns of that.
        JOIN pg_attribute AS t ON t.attrelid = f.relation AND t.attnum = f.attribute AND t.attstattarget IS DISTINCT FROM 0
        JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.relation AND d.refobjsubid = f.attribute
        WHERE d.classid = 'pg_statistic_ext'::regclass
           OR d.classid = 'pg_class'::regclass
              AND EXISTS (SELECT FROM pg_index AS i WHERE i.indexrelid = d.objid AND i.indrelid = f.relation AND i.indexprs IS NOT NULL))
$function$;

-- A text with constants as PostgreSQL prints them while standard_conforming_strings is on,
-- for sessions with any value of that setting: those with a backslash become E'...'.
CREATE FUNCTION snowflake_migrate_internal.portable(content text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN strpos(content, E'\\') = 0 THEN content ELSE (
        SELECT string_agg(CASE WHEN left(p.part, 1) = '''' AND strpos(p.part, E'\\') > 0
                               THEN 'E' || replace(p.part, E'\\', E'\\\\') ELSE p.part END, '' ORDER BY m.place)
        FROM regexp_matches(content, '"(?:[^"]|"")*"|E?''(?:[^'']|'''')*''|[^"''E]+|E', 'g') WITH ORDINALITY AS m (groups, place)
        CROSS JOIN LATERAL (SELECT m.groups[1]) AS p (part)) END
$function$;

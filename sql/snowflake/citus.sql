-- Databases whose tables Citus distributes over several nodes. Nothing but its catalog in
-- pg_catalog is believed. Names of that catalog are put into the statements, because tools
-- that check functions look for the tables.

-- The tables that Citus keeps in shards, by kind: "distributed", "reference", "local". One of
-- the last kind has a single shard on the coordinator, and under its own name nothing: Citus
-- makes them of tables that a foreign key links with a reference table. A distribution column
-- that is NULL is not known, or there is none. Columns that not all versions of Citus have are NULL.
CREATE FUNCTION snowflake_internal.citus_tables()
RETURNS TABLE (relation oid, kind text, distribution_column smallint) LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 20
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NULL THEN
        RETURN;
    ELSIF NOT has_table_privilege('pg_catalog.pg_dist_partition', 'SELECT') THEN
        -- Without the list, a table of Citus would look as one without rows.
        PERFORM snowflake_internal.refuse('42501', 'permission denied for table pg_dist_partition',
            hint => 'Run GRANT SELECT ON pg_catalog.pg_dist_partition TO PUBLIC, as Citus does.');
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT p.logicalrelid::oid,
                CASE WHEN j.entry ->> ''partmethod'' IS DISTINCT FROM ''n'' THEN ''distributed''
                     WHEN j.entry ->> ''repmodel'' = ''t'' THEN ''reference''
                     WHEN j.entry ->> ''repmodel'' <> ''t'' AND j.entry ->> ''colocationid'' = ''0'' THEN ''local''
                     ELSE ''distributed'' END,
                substring(j.entry ->> ''partkey'' FROM '':varattno ([0-9]+)'')::smallint
         FROM pg_catalog.%I AS p CROSS JOIN LATERAL to_jsonb(p) AS j (entry)', 'pg_dist_partition');
END
$function$;

-- Those with rows on several nodes. The rest is as other tables for what does not read rows.
CREATE FUNCTION snowflake_internal.distributed_tables()
RETURNS oid[] LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY(SELECT t.relation FROM snowflake_internal.citus_tables() AS t WHERE t.kind <> 'local')
$function$;

-- Whether Citus keeps rows of a table, or of its children or partitions, in shards: then neither
-- the table's file nor its indexes show them.
CREATE FUNCTION snowflake_internal.is_in_shards(target regclass)
RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (SELECT FROM snowflake_internal.citus_tables() AS c JOIN snowflake_internal.tree(ARRAY[target]) AS t (oid) ON t.oid = c.relation)
$function$;

-- Fails if Citus would have to connect to its nodes as a role that may not: the owner of the
-- table, with whose privileges a statement runs if the caller has them. Its own message names
-- neither the reason nor a remedy.
CREATE FUNCTION snowflake_internal.require_login(target regclass)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    owner name;
BEGIN
    SELECT r.rolname INTO owner
    FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner
    WHERE c.oid = target AND NOT r.rolcanlogin AND pg_has_role(c.relowner, 'USAGE');
    IF FOUND AND snowflake_internal.is_in_shards(target) THEN
        PERFORM snowflake_internal.refuse('55000', format('Citus cannot connect to its nodes as role "%s", which owns %s', owner, target),
            detail => 'The statement runs with the privileges of the table''s owner, who may not log in.',
            hint => 'Use ALTER ROLE ... LOGIN, or read the table as a role that may log in and read it, '
                    'and that has not the privileges of its owner.');
    END IF;
END
$function$;

-- The nodes that have rows or issue IDs: no standbys, and this one also where it is not in the
-- metadata. A worker does not know a coordinator that is not: that one has no nodeid, and is
-- not reached. No rows without Citus.
CREATE FUNCTION snowflake_internal.citus_nodes()
RETURNS TABLE (nodeid integer, name text, is_active boolean, is_here boolean) LANGUAGE plpgsql STABLE ROWS 4
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    here integer := 0;
BEGIN
    IF to_regclass('pg_catalog.pg_dist_node') IS NULL THEN
        RETURN;
    END IF;
    IF to_regclass('pg_catalog.pg_dist_local_group') IS NOT NULL THEN
        EXECUTE format('SELECT max(g.groupid) FROM pg_catalog.%I AS g', 'pg_dist_local_group') INTO here;
    END IF;
    RETURN QUERY EXECUTE format(
        'WITH node AS (
            SELECT n.nodeid, n.groupid, format(''%%s:%%s'', n.nodename, n.nodeport) AS name,
                   coalesce((j.entry ->> ''isactive'')::boolean, true) AS is_active
            FROM pg_catalog.%I AS n CROSS JOIN LATERAL to_jsonb(n) AS j (entry)
            WHERE coalesce(j.entry ->> ''noderole'', ''primary'') = ''primary''
              AND coalesce((j.entry ->> ''nodeisclone'')::boolean, false) = false
              AND coalesce(j.entry ->> ''nodecluster'', ''default'') = coalesce(current_setting(''citus.cluster_name'', true), ''default''))
         SELECT n.nodeid, n.name, n.is_active, n.groupid = $1 FROM node AS n
       UNION ALL
         SELECT 0, ''this node'', true, true WHERE NOT EXISTS (SELECT FROM node AS n WHERE n.groupid = $1)
       UNION ALL
         SELECT NULL, ''coordinator'', false, false WHERE $1 <> 0 AND NOT EXISTS (SELECT FROM node AS n WHERE n.groupid = 0)',
        'pg_dist_node') USING coalesce(here, 0);
END
$function$;

-- Whether the database is on more than one node of Citus.
CREATE FUNCTION snowflake_internal.has_other_nodes()
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (SELECT FROM snowflake_internal.citus_nodes() AS n WHERE NOT n.is_here)
$function$;

-- What each node answers, in sessions of their own: one value of one row. A node that does
-- not answer has the reason, also one that Citus does not ask.
CREATE FUNCTION snowflake_internal.ask_nodes(query text)
RETURNS TABLE (node text, answer text, failure text) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT n.name, CASE WHEN r.success THEN nullif(r.result, '''') END,
                CASE WHEN r.success THEN NULL
                     WHEN n.nodeid IS NULL THEN ''not in pg_dist_node: run citus_set_coordinator_host() there''
                     WHEN NOT n.is_active THEN ''not active''
                     ELSE coalesce(nullif(r.result, ''''), ''no answer'') END
         FROM snowflake_internal.citus_nodes() AS n
         LEFT JOIN pg_catalog.%I($1) AS r ON r.nodeid = n.nodeid', 'run_command_on_all_nodes') USING query;
END
$function$;

-- What the check of the nodes compares. The privileges are those that other roles than the
-- owner have on the functions of the extension: Citus does not send a GRANT or REVOKE for them.
CREATE FUNCTION snowflake_internal.node_facts()
RETURNS jsonb LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT jsonb_build_object(
               'node_id', s.node_id, 'layout', s.layout, 'stopped', s.stopped, 'copied_from', s.copied_from,
               'preloaded', s.preloaded OR current_setting('server_version_num')::integer >= 170000,
               'version', format('%s, extension %s', s.version, e.extversion),
               'privileges', (
                   SELECT jsonb_object_agg(format('%s(%s)', f.proname, pg_get_function_identity_arguments(f.oid)), g.grantees)
                   FROM pg_depend AS d JOIN pg_proc AS f ON f.oid = d.objid
                   CROSS JOIN LATERAL (
                       SELECT coalesce(jsonb_agg(DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END), '[]')
                       FROM aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) AS a WHERE a.grantee <> f.proowner) AS g (grantees)
                   WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
                     AND d.deptype = 'e' AND f.pronamespace <> 'snowflake_internal'::regnamespace))
    FROM snowflake_internal.get_status() AS s
    JOIN pg_extension AS e ON e.extname = 'snowflake'
$function$;

-- The facts of all nodes: an object for each, with "failure" instead of "facts" if it is not
-- reached. NULL on a single node.
CREATE FUNCTION snowflake_internal.facts_of_nodes()
RETURNS jsonb LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT snowflake_internal.has_other_nodes() THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT jsonb_agg(jsonb_build_object('node', a.node, 'facts', a.answer::jsonb, 'failure', a.failure) ORDER BY a.node)
            FROM snowflake_internal.ask_nodes('SELECT snowflake_internal.node_facts()') AS a);
EXCEPTION WHEN query_canceled OR admin_shutdown OR crash_shutdown THEN
    RAISE;
WHEN OTHERS THEN
    RETURN jsonb_build_array(jsonb_build_object('node', NULL, 'failure', SQLERRM));
END
$function$;

-- What is wrong with the nodes of Citus. One that is not reached is a finding, because
-- nothing is known of it.
CREATE FUNCTION snowflake_internal.node_findings(nodes jsonb)
RETURNS TABLE (finding text) LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH node AS MATERIALIZED (
        SELECT n.node ->> 'node' AS name, n.node ->> 'failure' AS failure, nullif(n.node -> 'facts', 'null') AS facts
        FROM jsonb_array_elements(nodes) AS n (node)
    ), reached AS MATERIALIZED (
        SELECT n.name, n.facts, n.facts ->> 'node_id' AS number FROM node AS n WHERE n.facts IS NOT NULL
    ), other (place, what, value, names) AS (
        SELECT f.place, f.what, f.value, string_agg(r.name, ', ' ORDER BY r.name)
        FROM reached AS r
        CROSS JOIN LATERAL (VALUES (5, 'layouts', r.facts ->> 'layout'), (6, 'versions', r.facts ->> 'version')) AS f (place, what, value)
        GROUP BY f.place, f.what, f.value
    ), granted (function, grantees) AS (
        SELECT DISTINCT p.key, p.value FROM reached AS r CROSS JOIN LATERAL jsonb_each(r.facts -> 'privileges') AS p
    ), found (place, finding) AS (
        SELECT 1, format('node of Citus not checked: %s', concat_ws(': ', n.name, left(coalesce(n.failure, 'no answer'), 200)))
        FROM node AS n WHERE n.facts IS NULL
      UNION ALL
        SELECT w.place, format('node of Citus %s: %s', w.what, r.name)
        FROM reached AS r
        CROSS JOIN LATERAL (VALUES (2, 'without snowflake in shared_preload_libraries', NOT (r.facts ->> 'preloaded')::boolean),
                                   (3, 'without a node number', r.number IS NULL),
                                   (8, 'that a node conflict has stopped', (r.facts ->> 'stopped')::boolean),
                                   (9, 'whose data directory may be a copy of another server''s', r.facts ->> 'copied_from' IS NOT NULL)
                           ) AS w (place, what, is_found)
        WHERE w.is_found
      UNION ALL
        SELECT 4, format('nodes of Citus with the same node number %s: %s', r.number, string_agg(r.name, ', ' ORDER BY r.name))
        FROM reached AS r WHERE r.number IS NOT NULL GROUP BY r.number HAVING count(*) > 1
      UNION ALL
        SELECT o.place, format('nodes of Citus with different %s: %s', o.what,
                               string_agg(format('%s: %s', o.names, o.value), '; ' ORDER BY o.names))
        FROM other AS o GROUP BY o.place, o.what HAVING count(*) > 1
      UNION ALL
        SELECT 7, format('nodes of Citus with different privileges: %s',
                         string_agg(DISTINCT g.function, ', '))
        FROM (SELECT g.function FROM granted AS g GROUP BY g.function HAVING count(*) > 1 ORDER BY g.function LIMIT 10) AS g
        HAVING count(*) > 0
    )
    SELECT f.finding FROM found AS f ORDER BY f.place, f.finding
$function$;

-- A reference table has the same rows on each node, each of which would draw IDs of its own
-- for a column that is added with such a default. Citus sends ALTER TABLE to all copies, and
-- PostgreSQL rewrites the table, which has no rows under its own name.
CREATE FUNCTION snowflake_internal.guard_reference_table()
RETURNS event_trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    target CONSTANT regclass := pg_event_trigger_table_rewrite_oid();
    added name;
BEGIN
    -- Without Citus, it locks nothing of the catalog.
    IF to_regclass('pg_catalog.pg_dist_partition') IS NULL
       OR NOT EXISTS (SELECT FROM snowflake_internal.citus_tables() AS t WHERE t.relation = target AND t.kind = 'reference')
    THEN
        RETURN;
    END IF;
    -- Defaults of this transaction: the table is locked, so no later one has changed it.
    SELECT a.attname INTO added
    FROM pg_attribute AS a
    JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
    WHERE a.attrelid = target AND NOT a.attisdropped AND greatest(age(f.xmin), age(a.xmin)) <= age(pg_current_xact_id()::xid)
      AND snowflake_internal.has_ids(target, a.attname)
    ORDER BY a.attnum LIMIT 1;
    IF FOUND THEN
        PERFORM snowflake_internal.refuse('0A000', format('cannot add column "%s" with snowflake IDs to reference table %s', added, target),
            detail => 'Each node would generate IDs of its own for the rows that are there.',
            hint => 'Add the column without a default, set its values, for example by an UPDATE of each row with a number, '
                    'and then SET DEFAULT.');
    END IF;
END
$function$;

CREATE EVENT TRIGGER snowflake_guard_reference_table ON table_rewrite WHEN TAG IN ('ALTER TABLE')
    EXECUTE FUNCTION snowflake_internal.guard_reference_table();
COMMENT ON EVENT TRIGGER snowflake_guard_reference_table IS 'Keeps reference tables of Citus the same on all nodes';

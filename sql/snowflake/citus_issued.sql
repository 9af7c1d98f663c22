-- IDs that another node of Citus cannot have issued: only a server itself knows how far its
-- slots are. The node is asked after the rows were read, as an audit does on its own server.

-- The node number of this server, and the highest ID that it may have issued for each backend
-- number, as an object.
CREATE FUNCTION snowflake_internal.issued_bounds()
RETURNS jsonb LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    possible record;
BEGIN
    SELECT p.* INTO possible FROM snowflake_internal.highest_possible_id() AS p;
    RETURN (
        SELECT jsonb_build_object('node_id', (SELECT s.node_id FROM snowflake_internal.get_status() AS s),
                                  'bounds', jsonb_object_agg(s.backend_id, greatest(
                                      s.bound, CASE WHEN NOT possible.is_mark_in_slots THEN possible.mark END, 0)))
        FROM snowflake_internal.get_stat_slots() AS s);
END
$function$;

-- A finding for each other node. Those of this one are in the audit itself.
CREATE FUNCTION snowflake_internal.not_issued_by_nodes(target regclass, numbers text, first bigint, caller_path text)
RETURNS TABLE (finding text, ids bigint, example bigint) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    -- One with another layout would decode other fields.
    layout CONSTANT text := (SELECT s.layout FROM snowflake_internal.get_status() AS s);
    here CONSTANT text := (SELECT n.name FROM snowflake_internal.citus_nodes() AS n WHERE n.is_here);
    range CONSTANT text := format('%s BETWEEN %L::bigint AND %L::bigint', numbers, greatest(first, snowflake_internal.oldest_id()),
                                  snowflake_internal.max_id(timestamptz 'infinity'));
    tops jsonb;
    other record;
BEGIN
    IF layout IS NULL OR NOT snowflake_internal.has_other_nodes() THEN
        RETURN;
    END IF;
    tops := (snowflake_internal.read_audited(target, format(
        'SELECT jsonb_agg(jsonb_build_object(''node'', g.node, ''backend'', g.backend, ''top'', g.top))
         FROM (SELECT snowflake_internal.node_id(d.id) AS node, snowflake_internal.backend_id(d.id) AS backend,
                      max(d.id) AS top
               FROM (%s) AS d GROUP BY 1, 2) AS g', range), caller_path))[1]::jsonb;
    FOR other IN
        SELECT a.node AS name, a.failure, (a.answer::jsonb ->> 'node_id')::integer AS number,
               coalesce(a.answer::jsonb -> 'bounds', 'null') AS bounds,
               EXISTS (SELECT FROM jsonb_array_elements(tops) AS t (top)
                       WHERE (t.top ->> 'node')::integer = (a.answer::jsonb ->> 'node_id')::integer
                         AND (t.top ->> 'top')::bigint > (a.answer::jsonb -> 'bounds' ->> (t.top ->> 'backend'))::bigint) AS is_above
        FROM snowflake_internal.ask_nodes('SELECT snowflake_internal.issued_bounds()') AS a
        WHERE a.node IS DISTINCT FROM here
        ORDER BY a.node
    LOOP
        IF other.failure IS NOT NULL THEN
            RAISE NOTICE 'IDs that node % of Citus cannot have issued are not searched for', other.name
                USING DETAIL = left(other.failure, 200);
        ELSIF other.is_above THEN
            finding := format('IDs with the node number of %s that it cannot have issued', other.name);
            SELECT r.found[1]::bigint, r.found[2]::bigint INTO ids, example
            FROM snowflake_internal.read_audited(target, format(
                'SELECT count(*), max(d.id) FROM (%s) AS d
                 WHERE snowflake_internal.node_id(d.id) = %L::integer
                   AND d.id > (%L::jsonb ->> snowflake_internal.backend_id(d.id)::text)::bigint
                   AND d.id <= (%L::jsonb ->> snowflake_internal.backend_id(d.id)::text)::bigint',
                range, other.number, other.bounds,
                -- Without rows that have come since: shards do not have the snapshot of this statement.
                (SELECT jsonb_object_agg(t.top ->> 'backend', t.top -> 'top') FROM jsonb_array_elements(tops) AS t (top)
                 WHERE (t.top ->> 'node')::integer = other.number)), caller_path) AS r (found);
            RETURN NEXT;
        END IF;
    END LOOP;
END
$function$;

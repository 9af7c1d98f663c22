-- What the crate has read out of each ID (in the table decoded), beside what the server reads and what is published.
CREATE FUNCTION pg_temp.result(holds boolean, what text) RETURNS text LANGUAGE sql AS
    $$SELECT CASE WHEN holds THEN 'ok' ELSE 'failed' END || E'\t' || what$$;

SELECT pg_temp.result(same = 2000 AND slots > 1, format('%s of 2000 IDs of %s slots as snowflake_decode reads them', same, slots))
FROM (SELECT count(*) FILTER (WHERE (c.created_at, c.node, c.backend, c.sequence) = (d.created_at, d.node_id, d.backend_id, d.sequence)) AS same,
             count(DISTINCT d.backend_id) AS slots
      FROM orders AS o JOIN decoded AS c ON c.layout = 'default' AND c.id = o.id, snowflake_decode(o.id) AS d) AS counts;

SELECT pg_temp.result(same = 100 * presets, format('%s IDs of %s presets as snowflake_decode reads them', same, presets))
FROM (SELECT count(*) FILTER (WHERE (c.created_at, c.node, c.backend, c.sequence) = (d.created_at, d.node_id, d.backend_id, d.sequence)) AS same
      FROM decoded AS c JOIN snowflake_layouts AS l ON l.name = c.layout, snowflake_decode(c.id, c.layout) AS d
      WHERE NOT EXISTS (SELECT FROM orders AS o WHERE o.id = c.id)) AS counts,
     (SELECT count(*) AS presets FROM snowflake_layouts) AS p;

SELECT pg_temp.result(same = vectors AND vectors > 20, format('%s of %s published IDs', same, vectors))
FROM (SELECT count(*) AS vectors FROM vectors) AS v,
     (SELECT count(*) AS same FROM vectors JOIN decoded USING (id, layout, created_at, node, sequence)) AS counts;

-- Obstacles as data: each knows the columns that it is about.

-- What prevents a migration, and what removes it. relation may be a partition or a child
-- table; it is NULL if the whole server is meant, column_name if all narrow columns of
-- the table are.
CREATE TYPE snowflake_migrate_internal.obstacle AS (relation regclass, column_name name, obstacle text, remedy text, sqlstate_code text);

-- The obstacles of each key: those of the columns that hold its IDs.
CREATE FUNCTION snowflake_migrate_internal.obstacles_by_key(
    keys snowflake_migrate_internal.key[], obstacles snowflake_migrate_internal.obstacle[]
) RETURNS TABLE (target regclass, column_name name, obstacles snowflake_migrate_internal.obstacle[]) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH found AS MATERIALIZED (
        SELECT o.* FROM unnest(obstacles) WITH ORDINALITY AS o (relation, column_name, obstacle, remedy, sqlstate_code, place)
    ), linked AS MATERIALIZED (
        SELECT DISTINCT r.target, r.column_name, f.relation, r.attname, r.is_narrow
        FROM snowflake_migrate_internal.columns_of_each(keys) AS r
        CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(r.relation, r.attname) AS f
        WHERE EXISTS (SELECT FROM found)
    ), of_key AS (
        SELECT DISTINCT l.target, l.column_name, o.place
        FROM found AS o
        JOIN linked AS l ON l.relation = o.relation AND (l.attname = o.column_name OR o.column_name IS NULL AND l.is_narrow)
      UNION
        SELECT k.target, k.column_name, o.place FROM unnest(keys) AS k JOIN found AS o ON o.relation IS NULL
    ), listed AS (
        SELECT k.target, k.column_name, array_agg(obstacles[k.place] ORDER BY k.place) AS obstacles
        FROM of_key AS k GROUP BY k.target, k.column_name
    )
    SELECT k.target, k.column_name, coalesce(l.obstacles, '{}')
    FROM unnest(keys) AS k
    LEFT JOIN listed AS l ON (l.target, l.column_name) = (k.target, k.column_name)
$function$;

-- The keys that have none of these.
CREATE FUNCTION snowflake_migrate_internal.keys_without(
    keys snowflake_migrate_internal.key[], obstacles snowflake_migrate_internal.obstacle[]
) RETURNS snowflake_migrate_internal.key[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN obstacles = '{}' THEN keys ELSE ARRAY(
        SELECT k FROM unnest(keys) WITH ORDINALITY AS u (target, column_name, place)
        CROSS JOIN LATERAL (SELECT (u.target, u.column_name)::snowflake_migrate_internal.key) AS k (k)
        WHERE (u.target, u.column_name) IN (
            SELECT b.target, b.column_name FROM snowflake_migrate_internal.obstacles_by_key(keys, obstacles) AS b
            WHERE b.obstacles = '{}')
        ORDER BY u.place) END
$function$;

-- The lines that show obstacles, each once: an obstacle of several tables is there for each.
CREATE FUNCTION snowflake_migrate_internal.obstacle_lines(obstacles snowflake_migrate_internal.obstacle[])
RETURNS text[] LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY(
        SELECT format('%s. %s', o.obstacle, o.remedy)
        FROM unnest(obstacles) WITH ORDINALITY AS o (relation, column_name, obstacle, remedy, sqlstate_code, place)
        GROUP BY o.obstacle, o.remedy
        ORDER BY min(o.place))
$function$;

-- The same for an error: a remedy that several have is there once.
CREATE FUNCTION snowflake_migrate_internal.obstacle_detail(obstacles snowflake_migrate_internal.obstacle[])
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT string_agg(format('%s%s. %s', array_to_string(r.obstacles[:10], '; '),
                             CASE WHEN cardinality(r.obstacles) > 10
                                  THEN format('; and %s more', to_char(cardinality(r.obstacles) - 10, 'FM999,999')) ELSE '' END,
                             r.remedy), E'\n' ORDER BY r.place)
    FROM (SELECT array_agg(d.obstacle ORDER BY d.place) AS obstacles, d.remedy, min(d.place) AS place
          FROM (SELECT o.obstacle, o.remedy, min(o.place) AS place
                FROM unnest(obstacles) WITH ORDINALITY AS o (relation, column_name, obstacle, remedy, sqlstate_code, place)
                GROUP BY o.obstacle, o.remedy) AS d
          GROUP BY d.remedy) AS r
$function$;

CREATE FUNCTION snowflake_migrate_internal.refuse_obstacles(obstacles snowflake_migrate_internal.obstacle[], message text, hint text)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF obstacles <> '{}' THEN
        PERFORM snowflake_internal.refuse((SELECT min(o.sqlstate_code) FROM unnest(obstacles) AS o), message,
            detail => snowflake_migrate_internal.obstacle_detail(obstacles), hint => hint);
    END IF;
END
$function$;

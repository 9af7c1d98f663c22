-- Columns of tables of Citus. It refuses to change the type of a distribution column, of an
-- identity column and of one with a sequence, the default of a distribution column, an
-- identity, and triggers. What it can be brought to do are steps (citus.sql); the rest are obstacles.

-- How a key of a table of Citus is migrated; no rows for other tables.
--
-- | way           | for                                                                         |
-- |---------------|-----------------------------------------------------------------------------|
-- | default       | a bigint that is not the distribution column: Citus sends the statement on  |
-- | nodes         | a bigint distribution or identity column: its default is set on each node    |
-- | widen         | an integer with a sequence beside the distribution column                    |
-- | NULL          | the rest                                                                     |
CREATE FUNCTION snowflake_migrate_internal.citus_keys(keys snowflake_migrate_internal.key[])
RETURNS TABLE (target regclass, column_name name, kind text, way text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    in_shards CONSTANT oid[] := ARRAY(SELECT t.relation FROM snowflake_internal.citus_tables() AS t);
BEGIN
    IF in_shards = '{}' THEN
        RETURN;
    END IF;
    RETURN QUERY
        WITH kept AS MATERIALIZED (
            SELECT DISTINCT ON (k.place) k.place, k.target, k.column_name, t.kind,
                   t.kind = 'distributed' AND coalesce(t.distribution_column = f.attribute, true) AS is_distribution_column
            FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
            CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(k.target, k.column_name) AS f
            JOIN snowflake_internal.citus_tables() AS t ON t.relation = f.relation
            ORDER BY k.place, f.relation <> k.target, f.relation
        ), linked AS MATERIALIZED (
            SELECT r.target, r.column_name, count(*) AS columns, bool_or(r.is_narrow) AS is_narrow
            FROM snowflake_migrate_internal.columns_of_each(keys) AS r GROUP BY r.target, r.column_name
        ), own_sequence AS MATERIALIZED (
            -- A sequence of its own, which no other column uses.
            SELECT min(s.relation) AS relation, min(s.attribute) AS attribute
            FROM snowflake_migrate_internal.sequence_columns() AS s
            GROUP BY s.sequence HAVING count(*) = 1 AND bool_and(s.kind = 'serial')
        ), used AS MATERIALIZED (
            SELECT DISTINCT d.relation
            FROM snowflake_migrate_internal.direct_dependents(ARRAY(
                SELECT (k.target, k.column_name)::snowflake_migrate_internal.key FROM kept AS k)) AS d
        )
        SELECT k.target, k.column_name, k.kind,
               CASE WHEN NOT l.is_narrow AND (k.is_distribution_column OR a.attidentity <> '') THEN 'nodes'
                    WHEN NOT l.is_narrow THEN 'default'
                    WHEN k.kind = 'distributed' AND NOT k.is_distribution_column AND l.columns = 1 AND a.attidentity = ''
                         AND (k.target, a.attnum) IN (SELECT s.relation, s.attribute FROM own_sequence AS s)
                         AND k.target NOT IN (SELECT u.relation FROM used AS u)
                         AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE k.target IN (i.inhparent, i.inhrelid))
                    THEN 'widen' END
        FROM kept AS k
        JOIN pg_attribute AS a ON a.attrelid = k.target AND a.attname = k.column_name
        LEFT JOIN linked AS l ON (l.target, l.column_name) = (k.target, k.column_name);
END
$function$;

-- The keys of other tables, to which the obstacles and steps of the two kinds of plan belong.
CREATE FUNCTION snowflake_migrate_internal.keys_outside_citus(keys snowflake_migrate_internal.key[])
RETURNS snowflake_migrate_internal.key[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    inside CONSTANT snowflake_migrate_internal.key[] := ARRAY(
        SELECT (c.target, c.column_name)::snowflake_migrate_internal.key FROM snowflake_migrate_internal.citus_keys(keys) AS c);
BEGIN
    RETURN CASE WHEN inside = '{}' THEN keys ELSE ARRAY(
        SELECT k FROM unnest(keys) WITH ORDINALITY AS u (target, column_name, place)
        CROSS JOIN LATERAL (SELECT (u.target, u.column_name)::snowflake_migrate_internal.key) AS k (k)
        WHERE k <> ALL (inside) ORDER BY u.place) END;
END
$function$;

-- What makes a table an ordinary one for the time of its migration.
CREATE FUNCTION snowflake_migrate_internal.undistribute_remedy(relation regclass, kind text)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('Migrate it before it is distributed: SELECT undistribute_table(%L%s), and %s afterwards.',
                  relation,
                  CASE WHEN kind = 'local'
                            OR EXISTS (SELECT FROM pg_constraint AS k WHERE k.contype = 'f' AND relation IN (k.conrelid, k.confrelid))
                       THEN ', cascade_via_foreign_keys => true' ELSE '' END,
                  CASE kind WHEN 'reference' THEN 'create_reference_table()'
                            WHEN 'local' THEN 'create_reference_table() for the tables that it references'
                            ELSE 'create_distributed_table()' END)
$function$;

CREATE FUNCTION snowflake_migrate_internal.citus_obstacles(keys snowflake_migrate_internal.key[], keep_sequence boolean)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN QUERY
        WITH possible AS MATERIALIZED (
            SELECT c.target, c.column_name FROM snowflake_migrate_internal.citus_keys(keys) AS c
            WHERE c.way IS NOT NULL AND NOT keep_sequence
        ), touched AS MATERIALIZED (
            SELECT key.target AS relation, key.column_name FROM unnest(keys) AS key
          UNION
            SELECT r.relation, r.attname FROM snowflake_migrate_internal.columns_of_each(keys) AS r WHERE r.is_narrow
        ), in_shards AS MATERIALIZED (
            SELECT DISTINCT f.relation, c.column_name, t.kind, o.rolname, o.rolcanlogin,
                   (c.relation, c.column_name) IN (SELECT p.target, p.column_name FROM possible AS p) AS is_possible
            FROM touched AS c
            CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(c.relation, c.column_name) AS f
            JOIN snowflake_internal.citus_tables() AS t ON t.relation = f.relation
            JOIN pg_class AS r ON r.oid = f.relation
            JOIN pg_roles AS o ON o.oid = r.relowner
        )
        SELECT s.relation, s.column_name, format('%s is a %s table of Citus, which does not change such a column', s.relation, s.kind),
               snowflake_migrate_internal.undistribute_remedy(s.relation, s.kind), '55000'
        FROM in_shards AS s WHERE NOT s.is_possible
      UNION ALL
        SELECT s.relation, s.column_name, format('%s is a table of Citus, and this node is a worker', s.relation),
               'Migrate it on the coordinator.', '55000'
        FROM in_shards AS s
        WHERE s.is_possible AND NOT EXISTS (
            SELECT FROM snowflake_migrate_internal.is_coordinator() AS c (is_here) WHERE c.is_here)
      UNION ALL
        SELECT s.relation, s.column_name,
               format('Citus cannot connect to its nodes as role %I, which owns %s and may not log in', s.rolname, s.relation),
               format('ALTER ROLE %I LOGIN for the time of the migration.', s.rolname), '55000'
        FROM in_shards AS s WHERE s.is_possible AND NOT s.rolcanlogin;
END
$function$;

-- Roles that may insert rows, but may not execute snowflake_nextval(). A default is
-- evaluated with the rights of the role that inserts, also through a view.
--
-- Roles with the privileges of others are found by following memberships, once for
-- all roles, not by asking for each role: servers may have thousands.

-- Roles that may insert rows, but may not execute snowflake_nextval().
CREATE FUNCTION snowflake_migrate_internal.role_obstacles(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE executor (oid) AS (
        -- Roles that have the privilege, 0 for PUBLIC, and those that inherit it.
        SELECT a.grantee
        FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
        WHERE p.oid = snowflake_migrate_internal.nextval_function() AND a.privilege_type = 'EXECUTE'
      UNION
        SELECT m.member
        FROM executor AS e JOIN pg_auth_members AS m ON m.roleid = e.oid
        JOIN pg_roles AS r ON r.oid = m.member
        -- From PostgreSQL 16 on, each membership has its own option.
        WHERE coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, r.rolinherit)
    ), target_table AS MATERIALIZED (
        SELECT DISTINCT key.target, f.relation::oid AS oid
        FROM unnest(keys) AS key
        CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(key.target, key.column_name) AS f
        WHERE NOT EXISTS (SELECT FROM executor AS e WHERE e.oid = 0)
    ), entry (target, oid) AS (
        -- The tables, and views through which rows are inserted into them.
        SELECT t.target, t.oid FROM target_table AS t
      UNION
        SELECT e.target, w.ev_class
        FROM entry AS e
        JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = e.oid AND d.classid = 'pg_rewrite'::regclass
        JOIN pg_rewrite AS w ON w.oid = d.objid AND w.ev_class <> e.oid
        JOIN pg_class AS v ON v.oid = w.ev_class AND v.relkind = 'v'
        WHERE pg_relation_is_updatable(v.oid, true) & 8 <> 0
    ), inserter AS MATERIALIZED (
        SELECT DISTINCT e.target, a.grantee
        FROM entry AS e
        JOIN pg_class AS c ON c.oid = e.oid
        CROSS JOIN LATERAL (
            SELECT a.grantee, a.privilege_type FROM aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS a
          UNION ALL
            SELECT a.grantee, a.privilege_type
            FROM pg_attribute AS t CROSS JOIN LATERAL aclexplode(t.attacl) AS a
            WHERE t.attrelid = c.oid AND t.attnum > 0 AND NOT t.attisdropped) AS a
        WHERE a.privilege_type = 'INSERT'
    ), missing AS (
        SELECT i.target, i.grantee, CASE i.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END AS name
        FROM inserter AS i
        LEFT JOIN pg_roles AS r ON r.oid = i.grantee
        WHERE i.grantee NOT IN (SELECT e.oid FROM executor AS e)
          AND (i.grantee = 0 OR NOT r.rolsuper AND r.rolname !~ '^pg_')
    ), numbered AS (
        SELECT m.target, m.name, row_number() OVER (PARTITION BY m.target ORDER BY m.name) AS place,
               count(*) OVER (PARTITION BY m.target) AS total
        FROM missing AS m
    )
    -- Members of these roles have the privilege once the roles have it.
    SELECT n.target, k.column_name, format('roles that may insert into %s may not execute snowflake_nextval(): %s%s', n.target,
                  string_agg(n.name, ', ' ORDER BY n.place), CASE WHEN n.total > 20 THEN format(' and %s more', n.total - 20) ELSE '' END),
           format('GRANT EXECUTE ON FUNCTION %s() TO %s.', (
                      SELECT format('%I.%I', s.nspname, p.proname) FROM pg_proc AS p JOIN pg_namespace AS s ON s.oid = p.pronamespace
                      WHERE p.oid = snowflake_migrate_internal.nextval_function()),
                  CASE WHEN n.total > 20 THEN 'PUBLIC' ELSE string_agg(n.name, ', ' ORDER BY n.place) END), '42501'
    FROM numbered AS n
    JOIN (SELECT DISTINCT key.target, key.column_name FROM unnest(keys) AS key) AS k ON k.target = n.target
    WHERE n.place <= 20
    GROUP BY n.target, n.total, k.column_name
$function$;

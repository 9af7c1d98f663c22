-- What prevents a migration from dropping these objects and creating them again.

-- The columns of a view, as a query that can stand for it: see src/migrate/definition.rs.
CREATE FUNCTION snowflake_migrate_internal.result_columns(queries text, relations oid[]) RETURNS text
    STRICT STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_result_columns_wrapper';

-- The columns of a relation in the same form; some of them as bigint.
CREATE FUNCTION snowflake_migrate_internal.relation_columns(relation oid, wide name[] DEFAULT '{}')
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT 'SELECT ' || string_agg(format('NULL::%s AS %I', CASE WHEN a.attname = ANY (wide) THEN 'bigint'
                                                                 ELSE format_type(a.atttypid, a.atttypmod) END, a.attname),
                                   ', ' ORDER BY a.attnum)
    FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped
$function$;

-- Views and rules that PostgreSQL could not create again, and why: an expression in them has
-- no form for a bigint. Their definitions are analyzed, with queries in the places of relations
-- whose columns are wider then. What cannot be analyzed with the present types in that way
-- is left to the attempt.
CREATE FUNCTION snowflake_migrate_internal.lost_dependents(columns snowflake_migrate_internal.key[])
RETURNS TABLE (identity text, reason text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    relations oid[];
    stands text[];
    dependent record;
    definition text;
    result text;
    used integer[];
BEGIN
    SELECT array_agg(t.relation), array_agg(snowflake_migrate_internal.relation_columns(t.relation, t.names))
    INTO relations, stands
    FROM (SELECT f.relation::oid AS relation, array_agg(c.column_name) AS names
          FROM unnest(columns) AS c
          CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(c.target, c.column_name) AS f
          GROUP BY f.relation) AS t;
    FOR dependent IN
        SELECT d.identity, w.oid AS rule, w.ev_class AS relation, w.rulename = '_RETURN' AS is_view
        FROM snowflake_migrate_internal.dependents(columns) AS d
        JOIN pg_rewrite AS w ON CASE d.kind WHEN 'rule' THEN w.oid = d.object ELSE w.ev_class = d.object AND w.rulename = '_RETURN' END
        WHERE d.kind IN ('view', 'materialized view', 'rule')
        ORDER BY d.place
    LOOP
        definition := rtrim(CASE WHEN dependent.is_view THEN pg_get_viewdef(dependent.relation)
                                 ELSE pg_get_ruledef(dependent.rule) END, ';');
        used := ARRAY(
            SELECT DISTINCT r.place
            FROM pg_depend AS d
            CROSS JOIN LATERAL (SELECT array_position(relations, d.refobjid)) AS r (place)
            WHERE d.classid = 'pg_rewrite'::regclass AND d.objid = dependent.rule AND d.refclassid = 'pg_class'::regclass
              AND r.place IS NOT NULL);
        BEGIN
            result := snowflake_migrate_internal.result_columns(
                concat_ws(';', definition, (SELECT string_agg(stands[u.place], ';' ORDER BY u.n)
                                            FROM unnest(used) WITH ORDINALITY AS u (place, n))),
                ARRAY(SELECT relations[u.place] FROM unnest(used) WITH ORDINALITY AS u (place, n) ORDER BY u.n));
            IF dependent.is_view THEN
                stands := stands || result;
                relations := relations || dependent.relation;
            END IF;
        EXCEPTION
            WHEN undefined_function OR ambiguous_function OR datatype_mismatch THEN
                identity := dependent.identity;
                reason := SQLERRM;
                BEGIN
                    PERFORM snowflake_migrate_internal.result_columns(
                        concat_ws(';', definition, (
                            SELECT string_agg(snowflake_migrate_internal.relation_columns(relations[u.place]), ';' ORDER BY u.n)
                            FROM unnest(used) WITH ORDINALITY AS u (place, n))),
                        ARRAY(SELECT relations[u.place] FROM unnest(used) WITH ORDINALITY AS u (place, n) ORDER BY u.n));
                    RETURN NEXT;
                EXCEPTION WHEN OTHERS THEN
                    NULL;
                END;
            WHEN OTHERS THEN
                NULL;
        END;
    END LOOP;
END
$function$;

-- The tables that each of them depends on.
CREATE FUNCTION snowflake_migrate_internal.dependent_tables(columns snowflake_migrate_internal.key[])
RETURNS TABLE (relation regclass, class oid, object oid) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH RECURSIVE reached (relation, class, object) AS (
        SELECT d.relation, d.class, d.object FROM snowflake_migrate_internal.direct_dependents(columns) AS d
      UNION
        SELECT r.relation, n.node_class, n.node
        FROM reached AS r
        JOIN pg_depend AS d ON d.refclassid = r.class AND d.refobjid = r.object
        CROSS JOIN LATERAL snowflake_migrate_internal.dependent_node(d.classid, d.objid) AS n
        WHERE (n.node_class, n.node) <> (r.class, r.object)
    )
    SELECT r.relation, r.class, r.object FROM reached AS r
$function$;

-- The privileges that are missing to drop the objects and create them again: on the
-- objects, on their schemas, and those of the roles that granted privileges on them.
CREATE FUNCTION snowflake_migrate_internal.missing_privileges(dependents snowflake_migrate_internal.dependent[])
RETURNS TABLE (rank integer, class oid, object oid, obstacle text, remedy text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH membership AS MATERIALIZED (
        -- From PostgreSQL 16 on, a member may lack the right to become a role.
        SELECT CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END AS privilege
    ), dependent AS MATERIALIZED (
        SELECT d.*, pg_get_userbyid(d.owner) AS owner_name, pg_has_role(d.owner, 'USAGE') AND pg_has_role(d.owner, m.privilege) AS is_own
        FROM unnest(dependents) AS d CROSS JOIN membership AS m
        WHERE d.kind <> 'other'
    ), granted AS MATERIALIZED (
        SELECT DISTINCT d.class, d.object, d.identity, g.grantor
        FROM dependent AS d
        LEFT JOIN pg_class AS c ON d.class = 'pg_class'::regclass AND c.oid = d.object
        LEFT JOIN pg_proc AS f ON d.class = 'pg_proc'::regclass AND f.oid = d.object
        CROSS JOIN LATERAL (
            SELECT x.grantor FROM aclexplode(coalesce(c.relacl, f.proacl)) AS x
          UNION
            SELECT x.grantor FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(a.attacl) AS x WHERE a.attrelid = c.oid
        ) AS g
        WHERE g.grantor <> d.owner
    )
    SELECT 5, d.class, d.object, format('must be owner of %s', d.identity),
           format('It has to be dropped and created again: run it as a member of %I, or as a superuser.', d.owner_name)
    FROM dependent AS d WHERE NOT d.is_own
  UNION ALL
    SELECT 6, d.class, d.object, format('permission denied for schema %I', n.nspname),
           format('GRANT CREATE, USAGE ON SCHEMA %I TO %I, which owns %s and has to create it again.',
                  n.nspname, d.owner_name, d.identity)
    FROM dependent AS d JOIN pg_namespace AS n ON n.oid = d.schema
    WHERE d.kind IN ('view', 'materialized view', 'function', 'statistics', 'index') AND d.is_own
      AND n.oid IS DISTINCT FROM pg_my_temp_schema()
      AND NOT (has_schema_privilege(d.owner, n.oid, 'CREATE') AND has_schema_privilege(d.owner, n.oid, 'USAGE'))
  UNION ALL
    SELECT 7, g.class, g.object, format('privileges on %s were granted by role %I', g.identity, pg_get_userbyid(g.grantor)),
           format('They have to be granted again: run it as a member of %I, or as a superuser, or have them revoked.',
                  pg_get_userbyid(g.grantor))
    FROM granted AS g CROSS JOIN membership AS m
    WHERE NOT (pg_has_role(g.grantor, 'USAGE') AND pg_has_role(g.grantor, m.privilege))
$function$;

CREATE FUNCTION snowflake_migrate_internal.dependent_obstacles(columns snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH given AS MATERIALIZED (
        SELECT ARRAY(SELECT d FROM snowflake_migrate_internal.dependents(columns) AS d WHERE d.kind IS NOT NULL) AS dependents
    ), dependent AS MATERIALIZED (
        SELECT d.* FROM given AS g CROSS JOIN LATERAL unnest(g.dependents) AS d
    ), found (rank, class, object, obstacle, remedy, code) AS (
        SELECT o.rank, d.class, d.object, d.identity || o.obstacle, o.remedy, '55000'
        FROM dependent AS d
        CROSS JOIN LATERAL (VALUES
            (1, d.kind = 'other', ' cannot be dropped and created again, but depends on the column or on a view of it',
             'Drop it, and create it again after the column is widened.'),
            (1, d.is_extended, ' belongs to an extension', 'Drop the extension, and create it again after the column is widened.'),
            (2, d.place IS NULL AND d.kind <> 'other', ' depends on itself through other views or functions',
             'Drop it, and create it again after the column is widened.'),
            (3, d.kind <> 'other' AND pg_is_other_temp_schema(d.schema), ' belongs to the temporary schema of another session',
             'Wait until that session has ended.'),
            (3, d.kind IN ('view', 'function') AND d.schema = pg_my_temp_schema() AND pg_get_userbyid(d.owner) <> current_user,
             ' is temporary and belongs to role ' || quote_ident(pg_get_userbyid(d.owner)), 'Drop it, or run the migration as that role.')
        ) AS o (rank, applies, obstacle, remedy)
        WHERE o.applies
      UNION ALL
        SELECT 4, d.class, d.object, format('index %s is not valid', d.object::regclass), 'Drop it, or REINDEX it.', '55000'
        FROM dependent AS d JOIN pg_index AS i ON i.indexrelid = d.object AND NOT i.indisvalid
        WHERE d.kind = 'index'
      UNION ALL
        SELECT p.*, '42501' FROM given AS g CROSS JOIN LATERAL snowflake_migrate_internal.missing_privileges(g.dependents) AS p
      UNION ALL
        SELECT 8, d.class, d.object, format('%s cannot be created again with the wider columns: %s', l.identity, l.reason),
               'Create the function or operator for bigint, or cast the column there, '
               'or drop the object and create it again afterwards.', '55000'
        FROM snowflake_migrate_internal.lost_dependents(columns) AS l
        JOIN dependent AS d ON d.identity = l.identity
    )
    SELECT t.relation, NULL::name, f.obstacle, f.remedy, f.code
    FROM found AS f
    JOIN snowflake_migrate_internal.dependent_tables(columns) AS t ON (t.class, t.object) = (f.class, f.object)
    ORDER BY f.rank, f.obstacle
$function$;

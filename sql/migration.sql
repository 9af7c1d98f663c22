-- Replacing a sequence by snowflake_nextval(): what a column is, what stands
-- in the way, the plan, and the way back. DDL that the tables' owner may run.
--
-- The functions have a search path of their own, and quote every name, so
-- neither a name nor a caller's search path changes what they do.

-- What a column was before it was migrated, for the way back. DROP IDENTITY
-- drops the sequence, so its properties are here. Anybody may read it; it is
-- written by the two functions below only, which look at who asks.
CREATE TABLE snowflake_origins (
    target regclass NOT NULL,
    column_name name NOT NULL,
    kind text NOT NULL CHECK (kind IN ('serial', 'identity always', 'identity by default', 'default', 'none')),
    data_type text NOT NULL,
    default_expression text,
    sequence_schema name,
    sequence_name name,
    sequence_options jsonb,
    sequence_last_value bigint,
    sequence_privileges jsonb,
    sequence_comment text,
    -- No snowflake ID of the column is smaller, ever; and none of this
    -- migration's is smaller than the other one.
    first_id_ever bigint NOT NULL,
    first_id bigint NOT NULL,
    remembered_at timestamp with time zone NOT NULL DEFAULT pg_catalog.now(),
    reverted_at timestamp with time zone,
    PRIMARY KEY (target, column_name)
);
SELECT pg_catalog.pg_extension_config_dump('snowflake_origins', '');
GRANT SELECT ON snowflake_origins TO PUBLIC;

-- The column that is meant where none is named: the one that a sequence feeds,
-- or fed before; of several, the primary key.
CREATE FUNCTION snowflake_migration_column(target regclass, column_name name)
RETURNS name LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relation pg_class;
    candidates name[];
BEGIN
    SELECT c.* INTO relation FROM pg_class AS c WHERE c.oid = target;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'relation with OID % does not exist', coalesce(target::oid, 0)
            USING ERRCODE = 'undefined_table';
    ELSIF relation.relkind NOT IN ('r', 'p') THEN
        RAISE EXCEPTION '"%" is not a table', relation.relname USING ERRCODE = 'wrong_object_type';
    END IF;
    IF column_name IS NOT NULL THEN
        PERFORM FROM pg_attribute AS a
        WHERE a.attrelid = target AND a.attname = column_name AND a.attnum > 0 AND NOT a.attisdropped;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'column "%" of relation "%" does not exist', column_name, relation.relname
                USING ERRCODE = 'undefined_column';
        END IF;
        RETURN column_name;
    END IF;
    candidates := ARRAY(
        SELECT a.attname
        FROM pg_attribute AS a
        WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped
          AND (a.attidentity <> ''
               OR EXISTS (SELECT FROM pg_attrdef AS f
                          JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                                             AND d.refclassid = 'pg_class'::regclass
                          JOIN pg_class AS s ON s.oid = d.refobjid AND s.relkind = 'S'
                          WHERE f.adrelid = a.attrelid AND f.adnum = a.attnum)
               OR EXISTS (SELECT FROM @extschema@.snowflake_origins AS o
                          WHERE o.target = a.attrelid AND o.column_name = a.attname)));
    IF cardinality(candidates) > 1 THEN
        candidates := coalesce(
            nullif(ARRAY(SELECT a.attname FROM pg_index AS i JOIN pg_attribute AS a
                             ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                         WHERE i.indrelid = target AND i.indisprimary AND i.indnkeyatts = 1
                           AND a.attname = ANY (candidates)), '{}'),
            candidates);
    END IF;
    IF cardinality(candidates) = 1 THEN
        RETURN candidates[1];
    ELSIF cardinality(candidates) = 0 THEN
        RAISE EXCEPTION 'no column of "%" is fed by a sequence', relation.relname
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Name the column that is to have snowflake IDs.';
    END IF;
    RAISE EXCEPTION 'several columns of "%" are fed by a sequence', relation.relname
        USING ERRCODE = 'invalid_parameter_value',
              DETAIL = format('They are %s.', array_to_string(candidates, ', ')),
              HINT = 'Name the one that is to have snowflake IDs.';
END
$function$;

-- Whether a column's default is snowflake_nextval().
CREATE FUNCTION snowflake_migration_is_switched(target regclass, column_name name)
RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (
        SELECT FROM pg_attribute AS a
        JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
        JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                           AND d.refclassid = 'pg_proc'::regclass
                           AND d.refobjid = '@extschema@.snowflake_nextval()'::regprocedure
        WHERE a.attrelid = target AND a.attname = column_name AND a.attgenerated = '')
$function$;

-- The columns that hold the same IDs: the column itself and whatever
-- references it, on any number of levels. Only those that are declared there:
-- partitions and inheritance children follow their parents.
CREATE FUNCTION snowflake_migration_reach(target regclass, column_name name)
RETURNS TABLE (relation regclass, attribute smallint, type_oid oid) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE reach (relation, attribute) AS (
        SELECT a.attrelid, a.attnum FROM pg_attribute AS a
        WHERE a.attrelid = target AND a.attname = column_name
      UNION
        SELECT found.relation, found.attribute
        FROM reach
        CROSS JOIN LATERAL (
            -- Columns that reference this one.
            SELECT k.conrelid, key.referencing
            FROM pg_constraint AS k
            CROSS JOIN LATERAL ROWS FROM (unnest(k.conkey), unnest(k.confkey)) AS key (referencing, referenced)
            WHERE k.contype = 'f' AND k.confrelid = reach.relation AND key.referenced = reach.attribute
          UNION ALL
            -- The same column of children, whose own constraints count too.
            SELECT i.inhrelid, c.attnum
            FROM pg_inherits AS i
            JOIN pg_attribute AS p ON p.attrelid = i.inhparent AND p.attnum = reach.attribute
            JOIN pg_attribute AS c ON c.attrelid = i.inhrelid AND c.attname = p.attname
            WHERE i.inhparent = reach.relation
          UNION ALL
            -- And of the parents that declare it.
            SELECT i.inhparent, p.attnum
            FROM pg_inherits AS i
            JOIN pg_attribute AS c ON c.attrelid = i.inhrelid AND c.attnum = reach.attribute
            JOIN pg_attribute AS p ON p.attrelid = i.inhparent AND p.attname = c.attname AND p.attnum > 0
            WHERE i.inhrelid = reach.relation
        ) AS found (relation, attribute)
    )
    SELECT r.relation::regclass, r.attribute, a.atttypid
    FROM reach AS r
    JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
    WHERE a.attinhcount = 0
$function$;

-- What stands in the way, each with what to do about it.
CREATE FUNCTION snowflake_migration_obstacles(target regclass, column_name name)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    integers CONSTANT oid[] := ARRAY['int2'::regtype, 'int4'::regtype];
    it record;
BEGIN
    -- The server.
    FOR it IN SELECT s.preloaded, s.node_id, s.layout FROM @extschema@.snowflake_status AS s LOOP
        IF NOT it.preloaded THEN
            RETURN QUERY SELECT 'this server makes no IDs: snowflake is not in shared_preload_libraries',
                'Add it there and restart the server.', '55000';
        ELSIF it.node_id IS NULL THEN
            RETURN QUERY SELECT 'this server makes no IDs: snowflake.node_id is not set',
                'Set it in postgresql.conf and restart the server.', '55000';
        END IF;
    END LOOP;

    -- The table and its column.
    FOR it IN
        SELECT c.oid::regclass AS relation, c.relispartition, c.relpersistence, c.relforcerowsecurity,
               a.attname, a.attinhcount, a.attgenerated, t.typtype, a.atttypid, t.typbasetype,
               format_type(a.atttypid, a.atttypmod) AS type_name
        FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = column_name
        JOIN pg_type AS t ON t.oid = a.atttypid
        WHERE c.oid = target
    LOOP
        IF it.attinhcount > 0 THEN
            RETURN QUERY SELECT format('column %I of %s is inherited', it.attname, it.relation),
                'Migrate the table that it is inherited from: its partitions and children follow.', '55000';
        END IF;
        IF it.attgenerated <> '' THEN
            RETURN QUERY SELECT format('column %I of %s is generated from other columns', it.attname, it.relation),
                'It cannot have a default.', '55000';
        END IF;
        IF it.relforcerowsecurity THEN
            RETURN QUERY SELECT format('row-level security is forced on the owner of %s, who has to see every row', it.relation),
                format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY while it is migrated.', it.relation), '55000';
        END IF;
        IF it.typtype = 'd' AND it.typbasetype <> 'int8'::regtype THEN
            RETURN QUERY SELECT format('column %I of %s is of the domain %s, which cannot hold a bigint', it.attname, it.relation, it.type_name),
                'Give the column its base type first (ALTER COLUMN ... TYPE), and the domain''s checks as constraints of the table.', '55000';
        ELSIF it.typtype <> 'd' AND it.atttypid <> 'int8'::regtype AND it.atttypid <> ALL (integers) THEN
            RETURN QUERY SELECT format('column %I of %s is of type %s', it.attname, it.relation, it.type_name),
                'Snowflake IDs are bigint: only smallint, integer and bigint columns can be migrated.', '55000';
        END IF;
    END LOOP;

    -- Whose the tables are: ALTER TABLE is for owners.
    FOR it IN
        SELECT DISTINCT r.relation, c.relowner
        FROM @extschema@.snowflake_migration_reach(target, column_name) AS r JOIN pg_class AS c ON c.oid = r.relation
        WHERE (r.relation = target OR r.type_oid = ANY (integers)) AND NOT pg_has_role(c.relowner, 'USAGE')
    LOOP
        RETURN QUERY SELECT format('must be owner of table %s', it.relation),
            format('Run it as a member of %I, or as a superuser.', pg_get_userbyid(it.relowner)), '42501';
    END LOOP;

    -- What a column's type cannot be changed under.
    FOR it IN
        SELECT r.relation, r.attribute, a.attname, c.relkind, c.reloftype, t.typtype,
               format_type(a.atttypid, a.atttypmod) AS type_name
        FROM @extschema@.snowflake_migration_reach(target, column_name) AS r
        JOIN pg_class AS c ON c.oid = r.relation
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        JOIN pg_type AS t ON t.oid = r.type_oid
        WHERE (t.typtype = 'd' AND r.relation <> target AND t.typbasetype = ANY (integers)) OR r.type_oid = ANY (integers)
    LOOP
        IF it.typtype = 'd' THEN
            RETURN QUERY SELECT format('column %I of %s, which references it, is of the domain %s', it.attname, it.relation, it.type_name),
                'Give the column its base type first (ALTER COLUMN ... TYPE), and the domain''s checks as constraints of the table.', '55000';
            CONTINUE;
        END IF;
        IF it.reloftype <> 0 THEN
            RETURN QUERY SELECT format('%s is a typed table', it.relation),
                format('Make it an ordinary one first: ALTER TABLE %s NOT OF.', it.relation), '55000';
        END IF;
        RETURN QUERY
            WITH family AS (
                -- The table, and the children to which ALTER TABLE goes on.
                WITH RECURSIVE tree (oid) AS (
                    SELECT it.relation::oid
                  UNION
                    SELECT i.inhrelid FROM tree JOIN pg_inherits AS i ON i.inhparent = tree.oid
                )
                SELECT tree.oid, a.attnum FROM tree JOIN pg_attribute AS a ON a.attrelid = tree.oid AND a.attname = it.attname
            ), found AS (
                SELECT 1 AS rank, format('column %I of %s is part of its partition key', it.attname, f.oid::regclass) AS obstacle,
                       'The type of a partition key cannot be changed: copy the rows to a new table that is partitioned by a bigint.' AS remedy
                FROM family AS f JOIN pg_partitioned_table AS p ON p.partrelid = f.oid
                WHERE f.attnum = ANY (p.partattrs::smallint[])
                   OR EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = f.oid AND d.objsubid = 0
                                AND d.refclassid = 'pg_class'::regclass AND d.refobjid = f.oid AND d.refobjsubid = f.attnum
                                AND d.deptype = 'i')
              UNION ALL
                SELECT 2, format('%s is a foreign table', f.oid::regclass),
                       'Its rows are elsewhere: detach it, and change the column there and here.'
                FROM family AS f JOIN pg_class AS c ON c.oid = f.oid WHERE c.relkind = 'f'
              UNION ALL
                SELECT DISTINCT 3,
                       CASE WHEN v.relkind IN ('v', 'm') THEN format('%s %s uses column %I of %s',
                                CASE v.relkind WHEN 'v' THEN 'view' ELSE 'materialized view' END, v.oid::regclass, it.attname, f.oid::regclass)
                            ELSE format('rule %I of %s uses column %I of %s', w.rulename, v.oid::regclass, it.attname, f.oid::regclass) END,
                       'Drop it, and create it again after the column is widened: pg_dump --schema-only shows its definition and privileges.'
                FROM family AS f
                JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.oid AND d.refobjsubid = f.attnum
                                   AND d.classid = 'pg_rewrite'::regclass
                JOIN pg_rewrite AS w ON w.oid = d.objid JOIN pg_class AS v ON v.oid = w.ev_class
              UNION ALL
                SELECT DISTINCT 4, format('policy %I of %s uses column %I', p.polname, p.polrelid::regclass, it.attname),
                       'Drop it, and create it again after the column is widened.'
                FROM family AS f
                JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.oid AND d.refobjsubid = f.attnum
                                   AND d.classid = 'pg_policy'::regclass
                JOIN pg_policy AS p ON p.oid = d.objid
              UNION ALL
                SELECT DISTINCT 5, format('function %s has a SQL body that uses column %I of %s', d.objid::regprocedure, it.attname, f.oid::regclass),
                       'Drop it, or give it a body in a string, and create it again after the column is widened.'
                FROM family AS f
                JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.oid AND d.refobjsubid = f.attnum
                                   AND d.classid = 'pg_proc'::regclass
              UNION ALL
                SELECT DISTINCT 6, format('column %I of %s is generated from column %I', g.attname, g.attrelid::regclass, it.attname),
                       'Drop it, and add it again after the column is widened.'
                FROM family AS f
                JOIN pg_attribute AS g ON g.attrelid = f.oid AND g.attgenerated <> ''
                JOIN pg_attrdef AS e ON e.adrelid = g.attrelid AND e.adnum = g.attnum
                JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.oid AND d.refobjsubid = f.attnum
                                   AND (d.classid = 'pg_attrdef'::regclass AND d.objid = e.oid
                                        OR d.classid = 'pg_class'::regclass AND d.objid = f.oid AND d.objsubid = g.attnum)
              UNION ALL
                SELECT DISTINCT 7, format('trigger %I of %s names column %I', t.tgname, t.tgrelid::regclass, it.attname),
                       'Drop it, and create it again after the column is widened.'
                FROM family AS f
                JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.oid AND d.refobjsubid = f.attnum
                                   AND d.classid = 'pg_trigger'::regclass
                JOIN pg_trigger AS t ON t.oid = d.objid AND NOT t.tgisinternal
              UNION ALL
                SELECT DISTINCT 8, format('publication %I has a WHERE that uses column %I of %s', p.pubname, it.attname, f.oid::regclass),
                       'Take the WHERE out (ALTER PUBLICATION ... SET TABLE), and put it back after the column is widened.'
                FROM family AS f
                JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.oid AND d.refobjsubid = f.attnum
                                   AND d.classid = 'pg_publication_rel'::regclass
                JOIN pg_publication_rel AS pr ON pr.oid = d.objid AND pr.prqual IS NOT NULL
                JOIN pg_publication AS p ON p.oid = pr.prpubid
            )
            SELECT found.obstacle, found.remedy, '55000' FROM found ORDER BY rank, found.obstacle;
    END LOOP;
END
$function$;

-- Who asks: the caller of a SECURITY DEFINER function is not its current_user.
CREATE FUNCTION snowflake_migration_require_owner(target regclass)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    caller name := coalesce(nullif(current_setting('role'), 'none'), session_user);
    relation pg_class;
BEGIN
    SELECT c.* INTO relation FROM pg_class AS c WHERE c.oid = target;
    IF NOT FOUND OR NOT pg_has_role(caller, relation.relowner, 'USAGE') THEN
        RAISE EXCEPTION 'must be owner of table %', coalesce(relation.relname, target::oid::text)
            USING ERRCODE = 'insufficient_privilege';
    END IF;
END
$function$;

-- Keeps what the column has now. Nothing is kept anew where it is kept.
CREATE FUNCTION snowflake_migration_remember(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    meant CONSTANT name := @extschema@.snowflake_migration_column(target, column_name);
    first CONSTANT bigint := @extschema@.snowflake_min_id(now());
    first_ever bigint;
    fed record;
BEGIN
    PERFORM @extschema@.snowflake_migration_require_owner(target);
    IF @extschema@.snowflake_migration_is_switched(target, meant) THEN
        RETURN;
    END IF;
    DELETE FROM @extschema@.snowflake_origins AS o
    WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = o.target);
    DELETE FROM @extschema@.snowflake_origins AS o
    WHERE o.target = snowflake_migration_remember.target AND o.column_name = meant
    RETURNING o.first_id_ever INTO first_ever;

    SELECT coalesce(k.kind, 'none') AS kind, format_type(a.atttypid, a.atttypmod) AS data_type,
           pg_get_expr(f.adbin, f.adrelid) AS expression, k.sequence
    INTO fed
    FROM pg_attribute AS a
    LEFT JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
    LEFT JOIN pg_class AS c ON c.oid = a.attrelid
    LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN @extschema@.snowflake_serial_columns AS k
        ON k.schema_name = n.nspname AND k.table_name = c.relname AND k.column_name = a.attname
    WHERE a.attrelid = target AND a.attname = meant;

    INSERT INTO @extschema@.snowflake_origins
        (target, column_name, kind, data_type, default_expression, sequence_schema, sequence_name,
         sequence_options, sequence_last_value, sequence_privileges, sequence_comment,
         first_id_ever, first_id)
    SELECT target, meant, fed.kind, fed.data_type, fed.expression, n.nspname, c.relname,
           CASE WHEN s.seqrelid IS NOT NULL THEN
               jsonb_build_object('type', s.seqtypid::regtype::text, 'start', s.seqstart, 'increment', s.seqincrement,
                   'minimum', s.seqmin, 'maximum', s.seqmax, 'cache', s.seqcache, 'cycle', s.seqcycle) END,
           pg_sequence_last_value(s.seqrelid),
           (SELECT jsonb_agg(jsonb_build_object('grantee', CASE a.grantee WHEN 0 THEN NULL ELSE pg_get_userbyid(a.grantee) END,
                                                'privilege', a.privilege_type, 'grantable', a.is_grantable))
            FROM aclexplode(c.relacl) AS a WHERE a.grantee <> c.relowner),
           obj_description(c.oid, 'pg_class'),
           coalesce(first_ever, first), first
    FROM (SELECT) AS one_row
    LEFT JOIN pg_class AS c ON c.oid = fed.sequence
    LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_sequence AS s ON s.seqrelid = c.oid;
END
$function$;

-- Marks it as put back, once the column no longer has snowflake_nextval().
CREATE FUNCTION snowflake_migration_put_back(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM @extschema@.snowflake_migration_require_owner(target);
    IF @extschema@.snowflake_migration_is_switched(target, column_name) THEN
        RAISE EXCEPTION 'column "%" still has snowflake_nextval() as its default', column_name
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'snowflake_migrate_revert() puts back what it had.';
    END IF;
    UPDATE @extschema@.snowflake_origins AS o SET reverted_at = now()
    WHERE o.target = snowflake_migration_put_back.target AND o.column_name = snowflake_migration_put_back.column_name;
END
$function$;

-- Fails unless everything is ready for the default to be switched: what the
-- plan's last statement asks first, as psql goes on after an error.
CREATE FUNCTION snowflake_migration_check(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    origin @extschema@.snowflake_origins;
    narrow text;
    highest bigint;
BEGIN
    SELECT o.* INTO origin FROM @extschema@.snowflake_origins AS o
    WHERE o.target = snowflake_migration_check.target AND o.column_name = snowflake_migration_check.column_name
      AND o.reverted_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'what feeds column "%" of % is not remembered yet', column_name, target
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Run the statements of snowflake_migration_plan() in their order.';
    END IF;
    SELECT string_agg(format('%s.%I', r.relation, a.attname), ', ') INTO narrow
    FROM @extschema@.snowflake_migration_reach(target, column_name) AS r
    JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
    WHERE r.type_oid IN ('int2'::regtype, 'int4'::regtype);
    IF narrow IS NOT NULL THEN
        RAISE EXCEPTION 'columns are still too narrow for snowflake IDs: %', narrow
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Run the statements of snowflake_migration_plan() in their order.';
    END IF;
    EXECUTE format('SELECT max(%I) FROM %s', column_name, target) INTO highest;
    IF highest >= origin.first_id THEN
        RAISE EXCEPTION 'rows of % have IDs that are not below the first snowflake ID', target
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  DETAIL = format('The largest is %s; snowflake IDs would begin at %s.', highest, origin.first_id),
                  HINT = 'New IDs could meet existing ones: give those rows smaller IDs, or use a layout with an earlier epoch.';
    END IF;
END
$function$;

-- The statement as a text that does all of it or nothing.
CREATE FUNCTION snowflake_migration_block(body text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN strpos(body, '$do$') = 0 THEN format(E'DO $do$\nBEGIN\n%sEND\n$do$', body)
                ELSE format('DO %L', format(E'\nBEGIN\n%sEND\n', body)) END
$function$;

CREATE FUNCTION snowflake_migration_plan(
    target regclass, column_name name DEFAULT NULL, online boolean DEFAULT false
) RETURNS TABLE (step integer, statement text, lock_level text, rewrites boolean, in_transaction boolean, note text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    meant CONSTANT name := @extschema@.snowflake_migration_column(target, column_name);
    is_switched CONSTANT boolean := @extschema@.snowflake_migration_is_switched(target, meant);
    is_remembered CONSTANT boolean := EXISTS (
        SELECT FROM @extschema@.snowflake_origins AS o WHERE o.target = snowflake_migration_plan.target AND o.column_name = meant AND o.reverted_at IS NULL);
    -- Not in the format strings themselves: a schema's name may hold a %.
    here CONSTANT text := '@extschema@';
    obstacles text;
    code text;
    identity text;
    notes text;
    it record;
BEGIN
    IF online THEN
        RAISE EXCEPTION 'online migration is not supported yet'
            USING ERRCODE = 'feature_not_supported', HINT = 'Use the plan for a maintenance window: online => false.';
    END IF;
    IF NOT is_switched THEN
        SELECT string_agg(format('%s. %s', o.obstacle, o.remedy), E'\n'), min(o.sqlstate_code)
        INTO obstacles, code
        FROM @extschema@.snowflake_migration_obstacles(target, meant) AS o;
        IF obstacles IS NOT NULL THEN
            RAISE EXCEPTION 'cannot migrate column "%" of %', meant, target
                USING ERRCODE = code, DETAIL = obstacles,
                      HINT = 'Nothing was changed. Remove what stands in the way, then ask for the plan again.';
        END IF;
    END IF;
    step := 0;
    in_transaction := true;

    IF NOT is_switched AND NOT is_remembered THEN
        step := step + 1;
        statement := format('SELECT %s.snowflake_migration_remember(%L, %L)', here, target::text, meant);
        lock_level := 'ACCESS SHARE';
        rewrites := false;
        note := 'remembers what feeds the column, for snowflake_migrate_revert()';
        RETURN NEXT;
    END IF;

    FOR it IN
        SELECT r.relation, count(*) AS columns,
               string_agg(format('ALTER COLUMN %I TYPE bigint', a.attname), ', ' ORDER BY a.attnum) AS actions,
               string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS names,
               pg_size_pretty((SELECT sum(pg_total_relation_size(t.relid)) FROM (
                   WITH RECURSIVE tree (relid) AS (
                       SELECT r.relation::oid UNION SELECT i.inhrelid FROM tree JOIN pg_inherits AS i ON i.inhparent = tree.relid)
                   SELECT tree.relid FROM tree) AS t)) AS size
        FROM @extschema@.snowflake_migration_reach(target, meant) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        WHERE r.type_oid IN ('int2'::regtype, 'int4'::regtype)
        GROUP BY r.relation
        ORDER BY r.relation = target DESC, r.relation::text
    LOOP
        step := step + 1;
        statement := format('ALTER TABLE %s %s', it.relation, it.actions);
        lock_level := 'ACCESS EXCLUSIVE';
        rewrites := true;
        note := format('widens %s; rewrites the table and its indexes (%s now, needed once more while it runs, and in the WAL), and checks its foreign keys anew',
                       it.names, it.size);
        RETURN NEXT;
    END LOOP;

    IF NOT is_switched THEN
        SELECT a.attidentity INTO identity FROM pg_attribute AS a WHERE a.attrelid = target AND a.attname = meant;
        step := step + 1;
        statement := @extschema@.snowflake_migration_block(
            format(E'    LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;\n', target)
            || format(E'    PERFORM %s.snowflake_migration_check(%L, %L);\n', here, target::text, meant)
            || CASE WHEN identity <> '' THEN format(E'    ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY;\n', target, meant) ELSE '' END
            || format(E'    ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.snowflake_nextval();\n', target, meant, here));
        lock_level := 'ACCESS EXCLUSIVE';
        rewrites := false;
        -- Who else draws from the sequence goes on doing so.
        SELECT string_agg(format('%s.%I', f.adrelid::regclass, a.attname), ', ') INTO notes
        FROM pg_depend AS mine
        JOIN pg_attrdef AS own ON mine.classid = 'pg_attrdef'::regclass AND mine.objid = own.oid AND own.adrelid = target
        JOIN pg_attribute AS me ON me.attrelid = own.adrelid AND me.attnum = own.adnum AND me.attname = meant
        JOIN pg_class AS s ON s.oid = mine.refobjid AND mine.refclassid = 'pg_class'::regclass AND s.relkind = 'S'
        JOIN pg_depend AS theirs ON theirs.refclassid = 'pg_class'::regclass AND theirs.refobjid = s.oid
                                AND theirs.classid = 'pg_attrdef'::regclass AND theirs.objid <> own.oid
        JOIN pg_attrdef AS f ON f.oid = theirs.objid
        JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum;
        note := format('new rows get snowflake IDs, from %s on: more than an integer or a JavaScript Number (2^53) holds. Rows that are there keep theirs, which read as the first moments after the epoch',
                       @extschema@.snowflake_min_id(now()))
                || coalesce('. The sequence goes on feeding ' || notes, '');
        RETURN NEXT;
    END IF;

    -- A rewritten column has no statistics until the table is analyzed.
    FOR it IN
        SELECT r.relation, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS names
        FROM @extschema@.snowflake_migration_reach(target, meant) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        JOIN pg_class AS c ON c.oid = r.relation
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE pg_has_role(c.relowner, 'USAGE')
          AND (r.type_oid IN ('int2'::regtype, 'int4'::regtype)
               OR EXISTS (SELECT FROM @extschema@.snowflake_origins AS o
                          WHERE o.target = snowflake_migration_plan.target AND o.column_name = meant
                            AND o.reverted_at IS NULL AND o.data_type IN ('smallint', 'integer'))
                  AND c.reltuples > 0
                  AND NOT EXISTS (SELECT FROM pg_stats AS s WHERE s.schemaname = n.nspname AND s.tablename = c.relname
                                    AND s.attname = a.attname))
        GROUP BY r.relation
        ORDER BY r.relation = target DESC, r.relation::text
    LOOP
        step := step + 1;
        statement := format('ANALYZE %s (%s)', it.relation, it.names);
        lock_level := 'SHARE UPDATE EXCLUSIVE';
        rewrites := false;
        note := 'a rewritten column has no statistics';
        RETURN NEXT;
    END LOOP;
END
$function$;

-- Waits for a lock no longer than a few seconds, where the caller has not said
-- how long: whoever waits for ACCESS EXCLUSIVE makes everybody behind it wait.
CREATE FUNCTION snowflake_migration_limit_locks()
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF current_setting('lock_timeout') = '0' THEN
        PERFORM set_config('lock_timeout', '5s', true);
    END IF;
END
$function$;

CREATE PROCEDURE snowflake_migrate(target regclass, column_name name DEFAULT NULL)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $procedure$
DECLARE
    it record;
    done integer := 0;
BEGIN
    PERFORM @extschema@.snowflake_migration_limit_locks();
    FOR it IN SELECT * FROM @extschema@.snowflake_migration_plan(target, column_name) LOOP
        RAISE NOTICE 'step %: %', it.step, it.note;
        EXECUTE it.statement;
        done := done + 1;
    END LOOP;
    IF done = 0 THEN
        RAISE NOTICE 'nothing to do: % is migrated', target;
    END IF;
END
$procedure$;

CREATE PROCEDURE snowflake_migrate_revert(target regclass, column_name name DEFAULT NULL)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $procedure$
DECLARE
    meant CONSTANT name := @extschema@.snowflake_migration_column(target, column_name);
    origin @extschema@.snowflake_origins;
    options jsonb;
    sequence text;
    backward boolean;
    reached bigint;
    present bigint;
    it record;
BEGIN
    PERFORM @extschema@.snowflake_migration_limit_locks();
    SELECT o.* INTO origin FROM @extschema@.snowflake_origins AS o
    WHERE o.target = snowflake_migrate_revert.target AND o.column_name = meant AND o.reverted_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'nothing is known of what column "%" of % had before', meant, target
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Only what snowflake_migrate() or its plan has migrated can be reverted; give the column a default of its own.';
    END IF;
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', target);

    IF @extschema@.snowflake_migration_is_switched(target, meant) THEN
        options := origin.sequence_options;
        sequence := format('%I.%I', origin.sequence_schema, origin.sequence_name);
        IF origin.kind LIKE 'identity %' THEN
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', target, meant);
            EXECUTE format(
                'ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY '
                '(SEQUENCE NAME %s START WITH %s INCREMENT BY %s %s %s CACHE %s %s)',
                target, meant,
                CASE origin.kind WHEN 'identity always' THEN 'ALWAYS' ELSE 'BY DEFAULT' END,
                sequence, options ->> 'start', options ->> 'increment',
                -- The ends of an integer are no choice of anybody's.
                CASE WHEN options ->> 'minimum' IN ('-32768', '-2147483648') THEN 'NO MINVALUE'
                     ELSE 'MINVALUE ' || (options ->> 'minimum') END,
                CASE WHEN options ->> 'maximum' IN ('32767', '2147483647') THEN 'NO MAXVALUE'
                     ELSE 'MAXVALUE ' || (options ->> 'maximum') END,
                options ->> 'cache',
                CASE WHEN (options ->> 'cycle')::boolean THEN 'CYCLE' ELSE 'NO CYCLE' END);
            FOR it IN SELECT p ->> 'grantee' AS grantee, p ->> 'privilege' AS privilege, (p ->> 'grantable')::boolean AS grantable
                      FROM jsonb_array_elements(origin.sequence_privileges) AS p
            LOOP
                IF it.grantee IS NULL OR to_regrole(quote_ident(it.grantee)) IS NOT NULL THEN
                    EXECUTE format('GRANT %s ON SEQUENCE %s TO %s%s', it.privilege, sequence,
                        coalesce(quote_ident(it.grantee), 'PUBLIC'), CASE WHEN it.grantable THEN ' WITH GRANT OPTION' ELSE '' END);
                END IF;
            END LOOP;
            IF origin.sequence_comment IS NOT NULL THEN
                EXECUTE format('COMMENT ON SEQUENCE %s IS %L', sequence, origin.sequence_comment);
            END IF;
        ELSIF origin.default_expression IS NOT NULL THEN
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', target, meant, origin.default_expression);
        ELSE
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', target, meant);
        END IF;

        -- The sequence goes on after the old IDs: those below the first
        -- snowflake ID, also ones that were inserted since.
        IF origin.sequence_name IS NOT NULL THEN
            backward := (options ->> 'increment')::bigint < 0;
            EXECUTE format('SELECT %s(%I) FROM %s WHERE %I < $1', CASE WHEN backward THEN 'min' ELSE 'max' END, meant, target, meant)
                INTO reached USING origin.first_id_ever;
            present := CASE WHEN origin.kind LIKE 'identity %' THEN NULL ELSE pg_sequence_last_value(to_regclass(sequence)) END;
            reached := CASE WHEN backward THEN least(reached, origin.sequence_last_value)
                            ELSE greatest(reached, origin.sequence_last_value) END;
            IF reached IS NOT NULL
               AND reached BETWEEN (options ->> 'minimum')::bigint AND (options ->> 'maximum')::bigint
               AND (present IS NULL OR CASE WHEN backward THEN reached < present ELSE reached > present END)
            THEN
                PERFORM setval(to_regclass(sequence), reached);
            END IF;
        END IF;
    END IF;
    PERFORM @extschema@.snowflake_migration_put_back(target, meant);
END
$procedure$;

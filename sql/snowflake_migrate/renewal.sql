-- What sessions remember of a sequence: currval() and lastval() would return an old number
-- to each that has used it, and link new rows to an old one without an error. So the switch
-- gives the sequence another name, and creates a new one under its own, which continues
-- above. currval() then fails (55000) until its session has called nextval() again; so does
-- lastval(), once a step of its own has dropped the former sequence. The switch does not
-- drop it: nextval() waits for the switch, and would fail (XX000).

-- The privileges on an object, in an order in which they can be granted again, each
-- with the role that grants it: NULL is the object's owner, who also replaces a role
-- that the caller cannot act for, and all others in a script for another server: it is run as the owner.
CREATE FUNCTION snowflake_migrate_internal.grants(owner oid, namespace oid, acl aclitem[])
RETURNS TABLE (depth integer, role oid, grantee oid, privilege_type text, is_grantable boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE entry AS MATERIALIZED (
        SELECT g.* FROM aclexplode(acl) AS g
    ), chain (depth, grantor, grantee, privilege_type, is_grantable) AS (
        SELECT 0, e.grantor, e.grantee, e.privilege_type, e.is_grantable FROM entry AS e WHERE e.grantor = owner
      UNION ALL
        -- PostgreSQL refuses circular grants.
        SELECT c.depth + 1, e.grantor, e.grantee, e.privilege_type, e.is_grantable
        FROM chain AS c
        JOIN entry AS e ON e.grantor = c.grantee AND e.privilege_type = c.privilege_type AND c.is_grantable AND e.grantor <> owner
        WHERE c.depth < 100
    )
    SELECT coalesce((SELECT min(c.depth) FROM chain AS c
                     WHERE c.grantor = e.grantor AND c.grantee = e.grantee AND c.privilege_type = e.privilege_type),
                    -- The grant option of a column is one for the whole table.
                    1),
           CASE WHEN e.grantor <> owner AND coalesce(current_setting('snowflake_migrate_internal.for_script', true), '') <> 'on'
                     AND snowflake_migrate_internal.may_become(to_regrole(quote_ident(current_user)), e.grantor)
                     AND has_schema_privilege(e.grantor, namespace, 'USAGE') THEN e.grantor END,
           e.grantee, e.privilege_type, e.is_grantable
    FROM entry AS e
$function$;

-- The names that a former sequence can have, in its schema: one may be left of a table that
-- was dropped.
CREATE FUNCTION snowflake_migrate_internal.former_names(sequence_name name)
RETURNS SETOF name LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $function$
    -- Of 63 bytes; a character has four at most. Long names may begin alike.
    SELECT concat(CASE WHEN octet_length(sequence_name::text) <= 55 THEN sequence_name::text
                       ELSE concat(left(sequence_name::text, 9), '_', left(md5(sequence_name::text), 16)) END,
                  '_former', nullif(n, 0))::name
    FROM generate_series(0, 9) AS n
$function$;

-- Whether Citus has a sequence in its catalog, as those of its tables, also after
-- undistribute_table(): it refuses to alter it.
CREATE FUNCTION snowflake_migrate_internal.is_sequence_of_citus(sequence regclass)
RETURNS boolean LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- For roles that may not read it, too.
    is_listed boolean := true;
BEGIN
    IF to_regclass('pg_catalog.pg_dist_object') IS NULL THEN
        RETURN false;
    ELSIF has_table_privilege('pg_catalog.pg_dist_object', 'SELECT') THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM pg_catalog.%I AS o WHERE o.classid = ''pg_class''::regclass AND o.objid = $1)',
                       'pg_dist_object') INTO is_listed USING sequence::oid;
    END IF;
    RETURN is_listed;
END
$function$;

-- The sequences of keys, and what the switch to new IDs does with them: renewed, where only
-- the default of the key and of its partitions and child tables depends on the sequence, the
-- table's owner may create one there, and Citus lets it be altered; dropped, with an identity;
-- or kept.
CREATE FUNCTION snowflake_migrate_internal.sequences_at_switch(keys snowflake_migrate_internal.key[])
RETURNS TABLE (target regclass, column_name name, sequence regclass, fate text, quoted_name text, former_name text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH used AS MATERIALIZED (
        SELECT DISTINCT ON (k.place) k.target, k.column_name, k.place, s.sequence, s.kind
        FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
        JOIN pg_attribute AS a ON a.attrelid = k.target AND a.attname = k.column_name
        JOIN snowflake_migrate_internal.sequence_columns() AS s ON s.relation = a.attrelid AND s.attribute = a.attnum
        ORDER BY k.place, s.sequence
    )
    SELECT u.target, u.column_name, u.sequence::regclass,
           CASE WHEN u.kind LIKE 'identity %' THEN 'dropped'
                WHEN c.relowner = t.relowner AND c.relpersistence <> 't' AND former.name IS NOT NULL
                     AND has_schema_privilege(t.relowner, n.oid, 'CREATE')
                     AND NOT snowflake_migrate_internal.is_sequence_of_citus(c.oid::regclass)
                     AND NOT EXISTS (SELECT FROM pg_depend AS d
                                     WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
                     AND NOT EXISTS (
                         SELECT FROM pg_depend AS d
                         LEFT JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
                         LEFT JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
                         WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
                           AND (f.adrelid = u.target AND a.attname = u.column_name
                                OR (f.adrelid::regclass, f.adnum) IN (
                                    SELECT * FROM snowflake_migrate_internal.table_tree(u.target, u.column_name))) IS NOT TRUE)
                THEN 'renewed' ELSE 'kept' END,
           format('%I.%I', n.nspname, c.relname),
           CASE WHEN former.name IS NOT NULL THEN format('%I.%I', n.nspname, former.name) END
    FROM used AS u
    JOIN pg_class AS t ON t.oid = u.target
    JOIN pg_class AS c ON c.oid = u.sequence
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN LATERAL (
        SELECT f.name FROM snowflake_migrate_internal.former_names(c.relname) WITH ORDINALITY AS f (name, place)
        WHERE NOT EXISTS (SELECT FROM pg_class AS other WHERE other.relnamespace = n.oid AND other.relname = f.name)
        ORDER BY f.place
        LIMIT 1) AS former ON true
    ORDER BY u.place
$function$;

-- The commands that make the sequences anew, before the keys get their new defaults. The
-- margin is for numbers that sessions have fetched ahead, or are waiting for.
CREATE FUNCTION snowflake_migrate_internal.renewal_commands(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.command LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH renewed AS MATERIALIZED (
        SELECT r.target, r.column_name, r.quoted_name, r.former_name, (parse_ident(r.former_name))[2] AS bare_former_name,
               c.relowner, c.relnamespace, c.relacl, c.relpersistence, q.*,
               obj_description(c.oid, 'pg_class') AS comment,
               EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                         AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'a') AS is_owned,
               -- What ALTER DEFAULT PRIVILEGES will grant.
               ARRAY(SELECT DISTINCT a.grantee
                     FROM pg_default_acl AS f CROSS JOIN LATERAL aclexplode(f.defaclacl) AS a
                     WHERE f.defaclrole = c.relowner AND f.defaclobjtype = 'S' AND f.defaclnamespace IN (0, c.relnamespace)) AS grantees
        FROM snowflake_migrate_internal.sequences_at_switch(keys) AS r
        JOIN pg_class AS c ON c.oid = r.sequence
        JOIN pg_sequence AS q ON q.seqrelid = r.sequence
        WHERE r.fate = 'renewed'
    ), statement (sequence, place, depth, relation, text, role) AS (
        SELECT r.seqrelid, s.place, 0, r.target, s.text, NULL::oid
        FROM renewed AS r
        CROSS JOIN LATERAL (VALUES
            (1, CASE WHEN r.is_owned THEN format('ALTER SEQUENCE %s OWNED BY NONE', r.quoted_name) END),
            (2, format('ALTER SEQUENCE %s RENAME TO %I', r.quoted_name, r.bare_former_name)),
            (3, format('COMMENT ON SEQUENCE %s IS %L', r.former_name, snowflake_migrate_internal.former_comment())),
            (4, format('CREATE %sSEQUENCE %s AS %s START WITH %s INCREMENT BY %s MINVALUE %s MAXVALUE %s CACHE %s %s',
                       CASE r.relpersistence WHEN 'u' THEN 'UNLOGGED ' ELSE '' END, r.quoted_name, r.seqtypid::regtype, r.seqstart,
                       r.seqincrement, r.seqmin, r.seqmax, r.seqcache, CASE WHEN r.seqcycle THEN 'CYCLE' ELSE 'NO CYCLE' END)),
            -- An unused sequence is as new.
            (5, format('SELECT pg_catalog.setval(%L::pg_catalog.regclass, %s(%s, '
                       'former.last_value::pg_catalog.numeric OPERATOR(pg_catalog.+) %s)::pg_catalog.int8, false) '
                       'FROM %s AS former WHERE former.is_called',
                       r.quoted_name, CASE WHEN r.seqincrement > 0 THEN 'least' ELSE 'greatest' END,
                       CASE WHEN r.seqincrement > 0 THEN r.seqmax ELSE r.seqmin END,
                       1000 * r.seqincrement::numeric * r.seqcache, r.former_name)),
            (6, CASE WHEN r.is_owned THEN format('ALTER SEQUENCE %s OWNED BY %s.%I', r.quoted_name,
                                                 snowflake_migrate_internal.name_of(r.target), r.column_name) END),
            (9, CASE WHEN r.comment IS NOT NULL THEN format('COMMENT ON SEQUENCE %s IS %L', r.quoted_name, r.comment) END)
        ) AS s (place, text)
        WHERE s.text IS NOT NULL
      UNION ALL
        SELECT r.seqrelid, 7, 0, r.target,
               format('REVOKE ALL ON SEQUENCE %s FROM %s', r.quoted_name,
                      CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END), NULL
        FROM renewed AS r
        CROSS JOIN LATERAL (SELECT unnest(r.grantees) UNION SELECT r.relowner WHERE r.relacl IS NOT NULL) AS g (grantee)
      UNION ALL
        SELECT r.seqrelid, 8, g.depth, r.target,
               format('GRANT %s ON SEQUENCE %s TO %s%s', g.privilege_type, r.quoted_name,
                      CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END,
                      CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END), g.role
        FROM renewed AS r
        CROSS JOIN LATERAL snowflake_migrate_internal.grants(
            r.relowner, r.relnamespace, coalesce(r.relacl, acldefault('s', r.relowner))) AS g
        WHERE r.relacl IS NOT NULL OR r.grantees <> '{}'
      UNION ALL
        SELECT r.seqrelid, 10, 0, r.target, format('SECURITY LABEL FOR %I ON SEQUENCE %s IS %L', l.provider, r.quoted_name, l.label), NULL
        FROM renewed AS r JOIN pg_seclabel AS l ON l.classoid = 'pg_class'::regclass AND l.objoid = r.seqrelid
    )
    SELECT snowflake_migrate_internal.command(text 'run', s.relation, s.text, role => s.role)
    FROM statement AS s
    ORDER BY s.sequence, s.place, s.depth, s.text
$function$;

CREATE FUNCTION snowflake_migrate_internal.renewal_note(fates text[], sequences regclass[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat(
        CASE WHEN 'renewed' = ANY (fates)
             THEN '. A new sequence gets the name and continues above, so that currval() fails (55000) in sessions '
                  'that have used the former one, until they call nextval() again' END,
        (SELECT format('. In sessions that have used %s, currval() and lastval() return old numbers without an error: '
                       'something else depends on it, or its owner may not create sequences in its schema. Let clients reconnect',
                       snowflake_migrate_internal.some_names(array_agg(DISTINCT s.sequence::text)))
         FROM unnest(fates, sequences) AS s (fate, sequence) WHERE s.fate = 'kept' HAVING count(*) > 0))
$function$;

-- Makes the sequence of a key anew, unless something has come to depend on it.
CREATE FUNCTION snowflake_migrate_internal.renew_sequence(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    keys CONSTANT snowflake_migrate_internal.key[] := ARRAY[(target, column_name)::snowflake_migrate_internal.key];
BEGIN
    PERFORM snowflake_migrate_internal.run_all(ARRAY(SELECT r FROM snowflake_migrate_internal.renewal_commands(keys) AS r));
END
$function$;

-- By which a former sequence is known.
CREATE FUNCTION snowflake_migrate_internal.former_comment()
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'Former sequence of a migrated key, to be dropped by snowflake_migrate';

CREATE FUNCTION snowflake_migrate_internal.former_sequences(keys snowflake_migrate_internal.key[])
RETURNS TABLE (target regclass, column_name name, name text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT k.target, k.column_name, snowflake_migrate_internal.name_of(c.oid::regclass)
    FROM unnest(keys) AS k
    JOIN pg_class AS t ON t.oid = k.target
    CROSS JOIN LATERAL (
        SELECT o.sequence_schema, o.sequence_name FROM snowflake_migrate_internal.origin(k.target, k.column_name) AS o
      UNION
        SELECT n.nspname, q.relname
        FROM pg_attribute AS a
        JOIN snowflake_migrate_internal.sequence_columns() AS s ON s.relation = a.attrelid AND s.attribute = a.attnum
        JOIN pg_class AS q ON q.oid = s.sequence
        JOIN pg_namespace AS n ON n.oid = q.relnamespace
        WHERE a.attrelid = k.target AND a.attname = k.column_name) AS own (schema, name)
    JOIN pg_namespace AS n ON n.nspname = own.schema
    JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relowner = t.relowner AND c.relkind = 'S'
                      AND c.relname = ANY (ARRAY(SELECT snowflake_migrate_internal.former_names(own.name)))
    WHERE obj_description(c.oid, 'pg_class') = snowflake_migrate_internal.former_comment()
    ORDER BY k.target::text, c.relname
$function$;

-- The steps that drop the former sequences: those that the plan's switch leaves, and those
-- that an earlier one has left.
CREATE FUNCTION snowflake_migrate_internal.former_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.step(text 'former', f.target, text 'ACCESS EXCLUSIVE',
        text 'drops the former sequence %s',
        'lastval() then fails in sessions that have used it, as currval() does since the switch. Only that sequence is locked',
        -- The switch may be left for another night.
        ARRAY[snowflake_migrate_internal.command(text 'run', f.target, 'DROP SEQUENCE IF EXISTS ' || f.name)],
        names => ARRAY[f.name])
    FROM (SELECT s.target, s.column_name, s.former_name AS name
          FROM snowflake_migrate_internal.sequences_at_switch(keys) AS s WHERE s.fate = 'renewed'
        UNION ALL
          SELECT f.* FROM snowflake_migrate_internal.former_sequences(keys) AS f) AS f
    ORDER BY f.target::text
$function$;

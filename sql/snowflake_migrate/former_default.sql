-- Restoring a column's former default or identity, and its sequence, from the record of its migration.

-- The options of a sequence in the syntax of CREATE SEQUENCE. Bounds that equal
-- those of a small type were defaults, and a widened column allows wider ones.
CREATE FUNCTION snowflake_migrate_internal.sequence_options(options jsonb)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    -- Converted to numbers, because any other text would become part of the statement.
    SELECT format('START WITH %s INCREMENT BY %s %s %s CACHE %s %s', (options ->> 'start')::bigint, (options ->> 'increment')::bigint,
        -- An ascending sequence begins at 1 by default.
        CASE WHEN (options ->> 'increment')::bigint < 0
                  AND (options ->> 'type', options ->> 'minimum') IN (('smallint', '-32768'), ('integer', '-2147483648'))
             THEN 'NO MINVALUE' ELSE 'MINVALUE ' || (options ->> 'minimum')::bigint END,
        CASE WHEN (options ->> 'type', options ->> 'maximum') IN (('smallint', '32767'), ('integer', '2147483647'))
             THEN 'NO MAXVALUE' ELSE 'MAXVALUE ' || (options ->> 'maximum')::bigint END,
        (options ->> 'cache')::bigint, CASE WHEN (options ->> 'cycle')::boolean THEN 'CYCLE' ELSE 'NO CYCLE' END)
$function$;

-- The statements that give a new sequence the privileges and the comment of the old
-- one. They replace privileges that come from ALTER DEFAULT PRIVILEGES: those of the
-- new sequence, or, while there is none, those that it will have.
CREATE FUNCTION snowflake_migrate_internal.sequence_property_statements(
    quoted_name text, origin snowflake_migrate_internal.origins, sequence regclass
) RETURNS text[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    statements text[];
    acl_entry record;
BEGIN
    statements := ARRAY(
        SELECT DISTINCT format('REVOKE ALL ON SEQUENCE %s FROM %s', quoted_name,
                               CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
        FROM (SELECT c.relowner AS owner, c.relacl AS acl FROM pg_class AS c WHERE c.oid = sequence
            UNION ALL
              SELECT t.relowner, f.defaclacl FROM pg_class AS t
              JOIN pg_default_acl AS f ON f.defaclrole = t.relowner AND f.defaclobjtype = 'S' AND f.defaclnamespace IN (0, t.relnamespace)
              WHERE sequence IS NULL AND t.oid = origin.target) AS c
        CROSS JOIN LATERAL aclexplode(c.acl) AS a
        WHERE a.grantee <> c.owner);
    FOR acl_entry IN
        SELECT p ->> 'grantee' AS grantee, p ->> 'privilege' AS privilege, (p ->> 'grantable')::boolean AS grantable
        FROM jsonb_array_elements(origin.sequence_privileges) AS p
        -- A role may have been dropped, or may not exist on this server.
        WHERE p ->> 'grantee' IS NULL OR to_regrole(quote_ident(p ->> 'grantee')) IS NOT NULL
    LOOP
        IF acl_entry.privilege IS NULL OR acl_entry.privilege NOT IN ('SELECT', 'UPDATE', 'USAGE') THEN
            PERFORM snowflake_internal.refuse('22023', format('invalid privilege of a sequence: "%s"', acl_entry.privilege));
        END IF;
        statements := statements || format('GRANT %s ON SEQUENCE %s TO %s%s', acl_entry.privilege, quoted_name,
            coalesce(quote_ident(acl_entry.grantee), 'PUBLIC'), CASE WHEN acl_entry.grantable THEN ' WITH GRANT OPTION' ELSE '' END);
    END LOOP;
    IF origin.sequence_comment IS NOT NULL THEN
        statements := statements || format('COMMENT ON SEQUENCE %s IS %L', quoted_name, origin.sequence_comment);
    END IF;
    RETURN statements;
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.restore_sequence_properties(sequence regclass, origin snowflake_migrate_internal.origins)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_internal.run(origin.target, s)
    FROM unnest(snowflake_migrate_internal.sequence_property_statements(
        snowflake_migrate_internal.name_of(sequence), origin, sequence)) AS s;
END
$function$;

-- The name of the sequence of an identity column: in the schema that the table is in now.
CREATE FUNCTION snowflake_migrate_internal.identity_sequence_name(origin snowflake_migrate_internal.origins)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('%I.%I', n.nspname, origin.sequence_name)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = origin.target
$function$;

-- The statements that make the column an identity column again.
CREATE FUNCTION snowflake_migrate_internal.identity_statements(origin snowflake_migrate_internal.origins)
RETURNS text[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY[
        format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', snowflake_migrate_internal.name_of(origin.target), origin.column_name),
        format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %s %s)',
               snowflake_migrate_internal.name_of(origin.target), origin.column_name,
               CASE origin.kind WHEN 'identity always' THEN 'ALWAYS' ELSE 'BY DEFAULT' END,
               snowflake_migrate_internal.identity_sequence_name(origin),
               snowflake_migrate_internal.sequence_options(origin.sequence_options))]
$function$;

CREATE FUNCTION snowflake_migrate_internal.restore_identity(origin snowflake_migrate_internal.origins)
RETURNS regclass LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    sequence regclass;
BEGIN
    PERFORM snowflake_internal.run(origin.target, s) FROM unnest(snowflake_migrate_internal.identity_statements(origin)) AS s;
    sequence := snowflake_migrate_internal.owned_sequence(origin.target, origin.column_name);
    PERFORM snowflake_migrate_internal.restore_sequence_properties(sequence, origin);
    RETURN sequence;
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.sequence_by_name(sequence_schema name, sequence_name name)
RETURNS regclass LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.oid::regclass
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = sequence_schema AND c.relname = sequence_name AND c.relkind = 'S'
$function$;

-- Creates the sequence of a serial column again if it has been dropped.
CREATE FUNCTION snowflake_migrate_internal.restore_sequence(origin snowflake_migrate_internal.origins)
RETURNS regclass LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    quoted_name CONSTANT text := format('%I.%I', origin.sequence_schema, origin.sequence_name);
    type CONSTANT text := origin.sequence_options ->> 'type';
    sequence regclass;
BEGIN
    IF type IS NULL OR type NOT IN ('smallint', 'integer', 'bigint') THEN
        PERFORM snowflake_internal.refuse('22023', format('invalid type of a sequence: "%s"', type));
    END IF;
    PERFORM snowflake_internal.run(origin.target, format('CREATE SEQUENCE %s AS %s %s', quoted_name, type,
        snowflake_migrate_internal.sequence_options(origin.sequence_options)));
    IF origin.kind = 'serial' THEN
        PERFORM snowflake_internal.run(origin.target, format('ALTER SEQUENCE %s OWNED BY %s.%I', quoted_name,
            snowflake_migrate_internal.name_of(origin.target), origin.column_name));
    END IF;
    sequence := snowflake_migrate_internal.sequence_by_name(origin.sequence_schema, origin.sequence_name);
    PERFORM snowflake_migrate_internal.restore_sequence_properties(sequence, origin);
    RETURN sequence;
END
$function$;

-- Restores the default of the column. The sequence of a serial column may have
-- been renamed.
CREATE FUNCTION snowflake_migrate_internal.restore_default(origin snowflake_migrate_internal.origins, sequence regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
AS $function$
DECLARE
    quoted_name CONSTANT text := snowflake_migrate_internal.name_of(origin.target);
    original_nextval CONSTANT text := CASE WHEN origin.sequence_name IS NOT NULL
        THEN format('nextval(%L::regclass)', format('%I.%I', origin.sequence_schema, origin.sequence_name)) END;
BEGIN
    PERFORM snowflake_internal.run(origin.target, format('ALTER TABLE %s ALTER COLUMN %I %s', quoted_name, origin.column_name,
        CASE WHEN origin.default_expression IS NULL THEN 'DROP DEFAULT'
             WHEN origin.default_expression = original_nextval AND sequence IS NOT NULL
             THEN format('SET DEFAULT nextval(%L::regclass)', snowflake_migrate_internal.name_of(sequence))
             ELSE 'SET DEFAULT ' || origin.default_expression END));
END
$function$;

-- Restores the defaults of partitions and child tables that differed from their
-- parent's. They are set with the rights of the parent's owner, who recorded
-- them, not with those of a child's owner.
CREATE FUNCTION snowflake_migrate_internal.restore_children(origin snowflake_migrate_internal.origins)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    child record;
BEGIN
    FOR child IN
        SELECT f.relation, d ->> 'default' AS expression
        FROM jsonb_array_elements(origin.child_defaults) AS d
        JOIN snowflake_migrate_internal.table_tree(origin.target, origin.column_name) AS f ON true
        JOIN pg_class AS c ON c.oid = f.relation AND c.relname = d ->> 'name'
        JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = d ->> 'schema'
    LOOP
        PERFORM snowflake_internal.run(origin.target,
            format('ALTER TABLE ONLY %s ALTER COLUMN %I %s', snowflake_migrate_internal.name_of(child.relation),
                   origin.column_name, coalesce('SET DEFAULT ' || child.expression, 'DROP DEFAULT')));
    END LOOP;
END
$function$;

-- Gives the column its former default or identity, with its sequence, which is created again
-- if it does not exist any more.
CREATE FUNCTION snowflake_migrate_internal.restore_column(
    origin snowflake_migrate_internal.origins, OUT sequence regclass, OUT is_new boolean
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    is_new := false;
    IF origin.kind LIKE 'identity %' THEN
        sequence := snowflake_migrate_internal.restore_identity(origin);
        is_new := true;
        RETURN;
    END IF;
    IF origin.sequence_name IS NOT NULL THEN
        sequence := coalesce(snowflake_migrate_internal.sequence_by_name(origin.sequence_schema, origin.sequence_name),
                             snowflake_migrate_internal.owned_sequence(origin.target, origin.column_name));
        is_new := sequence IS NULL;
        IF is_new THEN
            sequence := snowflake_migrate_internal.restore_sequence(origin);
        ELSIF origin.kind = 'serial'
              AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence
                                AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'a')
        THEN
            PERFORM snowflake_internal.run(origin.target, format('ALTER SEQUENCE %s OWNED BY %s.%I',
                snowflake_migrate_internal.name_of(sequence), snowflake_migrate_internal.name_of(origin.target), origin.column_name));
        END IF;
    END IF;
    PERFORM snowflake_migrate_internal.restore_default(origin, sequence);
END
$function$;

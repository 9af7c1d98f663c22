-- Reverting a column to its sequence.
--
-- The recorded texts may have been written by the table's owner. So they are run
-- with the owner's rights, whichever role reverts: see src/migration/owner.rs.

-- The options of a sequence in the syntax of CREATE SEQUENCE. Bounds that equal
-- those of a small type were defaults, and a widened column allows wider ones.
CREATE FUNCTION snowflake_internal.migration_sequence_options(options jsonb)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    -- Converted to numbers, because any other text would become part of the statement.
    SELECT format('START WITH %s INCREMENT BY %s %s %s CACHE %s %s', (options ->> 'start')::bigint, (options ->> 'increment')::bigint,
        CASE WHEN (options ->> 'type', options ->> 'minimum') IN (('smallint', '-32768'), ('integer', '-2147483648'))
             THEN 'NO MINVALUE' ELSE 'MINVALUE ' || (options ->> 'minimum')::bigint END,
        CASE WHEN (options ->> 'type', options ->> 'maximum') IN (('smallint', '32767'), ('integer', '2147483647'))
             THEN 'NO MAXVALUE' ELSE 'MAXVALUE ' || (options ->> 'maximum')::bigint END,
        (options ->> 'cache')::bigint, CASE WHEN (options ->> 'cycle')::boolean THEN 'CYCLE' ELSE 'NO CYCLE' END)
$function$;
COMMENT ON FUNCTION snowflake_internal.migration_sequence_options(options jsonb) IS
    'Used by snowflake_migrate_revert: the options of a sequence in the syntax of CREATE SEQUENCE';

-- Gives a new sequence the privileges and the comment of the old one. They
-- replace privileges that come from ALTER DEFAULT PRIVILEGES.
CREATE FUNCTION snowflake_internal.migration_restore_sequence_properties(sequence regclass, origin snowflake_internal.origins)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    quoted_name CONSTANT text := snowflake_internal.migration_name(sequence);
    acl_entry record;
BEGIN
    FOR acl_entry IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS grantee
        FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
        WHERE c.oid = sequence AND a.grantee <> c.relowner
    LOOP
        PERFORM snowflake_internal.migration_run(origin.target, format('REVOKE ALL ON SEQUENCE %s FROM %s', quoted_name, acl_entry.grantee));
    END LOOP;
    FOR acl_entry IN
        SELECT p ->> 'grantee' AS grantee, p ->> 'privilege' AS privilege, (p ->> 'grantable')::boolean AS grantable
        FROM jsonb_array_elements(origin.sequence_privileges) AS p
        -- A role may have been dropped, or may not exist on this server.
        WHERE p ->> 'grantee' IS NULL OR to_regrole(quote_ident(p ->> 'grantee')) IS NOT NULL
    LOOP
        IF acl_entry.privilege IS NULL OR acl_entry.privilege NOT IN ('SELECT', 'UPDATE', 'USAGE') THEN
            RAISE EXCEPTION 'invalid privilege of a sequence: "%"', acl_entry.privilege USING ERRCODE = 'invalid_parameter_value';
        END IF;
        PERFORM snowflake_internal.migration_run(origin.target, format('GRANT %s ON SEQUENCE %s TO %s%s', acl_entry.privilege, quoted_name,
            coalesce(quote_ident(acl_entry.grantee), 'PUBLIC'), CASE WHEN acl_entry.grantable THEN ' WITH GRANT OPTION' ELSE '' END));
    END LOOP;
    IF origin.sequence_comment IS NOT NULL THEN
        PERFORM snowflake_internal.migration_run(origin.target, format('COMMENT ON SEQUENCE %s IS %L', quoted_name, origin.sequence_comment));
    END IF;
END
$function$;
COMMENT ON FUNCTION snowflake_internal.migration_restore_sequence_properties(sequence regclass, origin snowflake_internal.origins) IS
    'Used by snowflake_migrate_revert: gives a new sequence the privileges and the comment of the old one';

-- Makes the column an identity column again. Its sequence must be in the schema
-- that the table is in now.
CREATE FUNCTION snowflake_internal.migration_restore_identity(origin snowflake_internal.origins)
RETURNS regclass LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    quoted_name CONSTANT text := snowflake_internal.migration_name(origin.target);
    sequence regclass;
BEGIN
    PERFORM snowflake_internal.migration_run(origin.target, format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', quoted_name, origin.column_name));
    PERFORM snowflake_internal.migration_run(origin.target,
        format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %I.%I %s)',
            quoted_name, origin.column_name,
            CASE origin.kind WHEN 'identity always' THEN 'ALWAYS' ELSE 'BY DEFAULT' END,
            (SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = origin.target),
            origin.sequence_name, snowflake_internal.migration_sequence_options(origin.sequence_options)));
    sequence := snowflake_internal.migration_owned_sequence(origin.target, origin.column_name);
    PERFORM snowflake_internal.migration_restore_sequence_properties(sequence, origin);
    RETURN sequence;
END
$function$;
COMMENT ON FUNCTION snowflake_internal.migration_restore_identity(origin snowflake_internal.origins) IS
    'Used by snowflake_migrate_revert: makes the column an identity column again';

-- Finds a sequence by its recorded name.
CREATE FUNCTION snowflake_internal.migration_sequence_by_name(sequence_schema name, sequence_name name)
RETURNS regclass LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.oid::regclass
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = sequence_schema AND c.relname = sequence_name AND c.relkind = 'S'
$function$;
COMMENT ON FUNCTION snowflake_internal.migration_sequence_by_name(sequence_schema name, sequence_name name) IS
    'Used by snowflake_migrate_revert: a sequence by its name, if it exists';

-- Creates the sequence of a serial column again if it has been dropped.
CREATE FUNCTION snowflake_internal.migration_restore_sequence(origin snowflake_internal.origins)
RETURNS regclass LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    quoted_name CONSTANT text := format('%I.%I', origin.sequence_schema, origin.sequence_name);
    type CONSTANT text := origin.sequence_options ->> 'type';
    sequence regclass;
BEGIN
    IF type IS NULL OR type NOT IN ('smallint', 'integer', 'bigint') THEN
        RAISE EXCEPTION 'invalid type of a sequence: "%"', type USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM snowflake_internal.migration_run(origin.target, format('CREATE SEQUENCE %s AS %s %s', quoted_name, type,
        snowflake_internal.migration_sequence_options(origin.sequence_options)));
    IF origin.kind = 'serial' THEN
        PERFORM snowflake_internal.migration_run(origin.target, format('ALTER SEQUENCE %s OWNED BY %s.%I', quoted_name,
            snowflake_internal.migration_name(origin.target), origin.column_name));
    END IF;
    sequence := snowflake_internal.migration_sequence_by_name(origin.sequence_schema, origin.sequence_name);
    PERFORM snowflake_internal.migration_restore_sequence_properties(sequence, origin);
    RETURN sequence;
END
$function$;
COMMENT ON FUNCTION snowflake_internal.migration_restore_sequence(origin snowflake_internal.origins) IS
    'Used by snowflake_migrate_revert: creates the dropped sequence of a serial column again';

-- Restores the default of the column. The sequence of a serial column may have
-- been renamed.
CREATE FUNCTION snowflake_internal.migration_restore_default(origin snowflake_internal.origins, sequence regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    quoted_name CONSTANT text := snowflake_internal.migration_name(origin.target);
    original_nextval CONSTANT text := CASE WHEN origin.sequence_name IS NOT NULL
        THEN format('nextval(%L::regclass)', format('%I.%I', origin.sequence_schema, origin.sequence_name)) END;
BEGIN
    PERFORM snowflake_internal.migration_run(origin.target, format('ALTER TABLE %s ALTER COLUMN %I %s', quoted_name, origin.column_name,
        CASE WHEN origin.default_expression IS NULL THEN 'DROP DEFAULT'
             WHEN origin.default_expression = original_nextval AND sequence IS NOT NULL
             THEN format('SET DEFAULT nextval(%L::regclass)', snowflake_internal.migration_name(sequence))
             ELSE 'SET DEFAULT ' || origin.default_expression END));
END
$function$;
COMMENT ON FUNCTION snowflake_internal.migration_restore_default(origin snowflake_internal.origins, sequence regclass) IS
    'Used by snowflake_migrate_revert: restores the default';

-- Restores the defaults of partitions and child tables that differed from their
-- parent's. They are set with the rights of the parent's owner, who recorded
-- them, not with those of a child's owner.
CREATE FUNCTION snowflake_internal.migration_restore_children(origin snowflake_internal.origins)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    child record;
BEGIN
    FOR child IN
        SELECT f.relation, d ->> 'default' AS expression
        FROM jsonb_array_elements(origin.child_defaults) AS d
        JOIN snowflake_internal.migration_table_tree(origin.target, origin.column_name) AS f ON true
        JOIN pg_class AS c ON c.oid = f.relation AND c.relname = d ->> 'name'
        JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = d ->> 'schema'
    LOOP
        PERFORM snowflake_internal.migration_run(origin.target,
            format('ALTER TABLE ONLY %s ALTER COLUMN %I %s', snowflake_internal.migration_name(child.relation),
                   origin.column_name, coalesce('SET DEFAULT ' || child.expression, 'DROP DEFAULT')));
    END LOOP;
END
$function$;
COMMENT ON FUNCTION snowflake_internal.migration_restore_children(origin snowflake_internal.origins) IS
    'Used by snowflake_migrate_revert: restores the defaults of partitions and child tables';

-- The sequence resumes after the old IDs: those below the first snowflake ID,
-- including IDs inserted since. It keeps its increment, because one server may
-- issue odd numbers and another one even numbers. A sequence of another role is
-- only advanced, from its present value.
CREATE FUNCTION snowflake_internal.migration_resume_sequence(sequence regclass, is_new boolean, origin snowflake_internal.origins)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    options pg_sequence;
    is_own CONSTANT boolean := EXISTS (
        SELECT FROM pg_class AS c JOIN pg_class AS t ON t.relowner = c.relowner WHERE c.oid = sequence AND t.oid = origin.target);
    state record;
    current_value bigint;
    last_taken bigint;
    base bigint;
    last_old_id bigint;
    resume_value bigint;
    is_called boolean := true;
BEGIN
    SELECT s.* INTO options FROM pg_sequence AS s WHERE s.seqrelid = sequence;
    IF NOT EXISTS (SELECT FROM pg_attribute AS a
                   WHERE a.attrelid = origin.target AND a.attname = origin.column_name
                     AND snowflake_internal.migration_base_type(a.atttypid) IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype))
    THEN
        RAISE EXCEPTION 'the type of column "%" of % has changed', origin.column_name, origin.target
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    SELECT s.last_value, s.is_called INTO state FROM snowflake_internal.migration_sequence_state(sequence, origin.target) AS s;
    current_value := CASE WHEN state.is_called AND NOT is_new THEN state.last_value END;
    IF NOT is_own AND (state.last_value IS NULL OR current_value >= origin.first_id_ever) THEN
        RETURN;
    END IF;
    -- A script that sets sequences to max(id) may have set it to a snowflake ID.
    last_taken := coalesce(CASE WHEN current_value < origin.first_id_ever THEN current_value END, origin.sequence_last_value);
    base := coalesce(last_taken, (origin.sequence_options ->> 'next')::bigint,
                     CASE WHEN NOT is_own THEN state.last_value END, options.seqstart);
    last_old_id := (snowflake_internal.migration_run(origin.target,
        format('SELECT %1$s(%2$I) FROM %3$s WHERE %2$I < %4$L::bigint AND %2$I BETWEEN %5$L::bigint AND %6$L::bigint',
               CASE WHEN options.seqincrement > 0 THEN 'max' ELSE 'min' END,
               origin.column_name, snowflake_internal.migration_name(origin.target),
               origin.first_id_ever, options.seqmin, options.seqmax)))[1]::bigint;
    IF sign(last_old_id::numeric - base) = sign(options.seqincrement) OR last_old_id = base AND last_taken IS NULL THEN
        DECLARE
            aligned CONSTANT numeric := base + ceil((last_old_id::numeric - base) / options.seqincrement) * options.seqincrement;
        BEGIN
            resume_value := CASE WHEN aligned BETWEEN options.seqmin AND options.seqmax THEN aligned ELSE last_old_id END;
        END;
    ELSIF last_taken IS NOT NULL AND last_taken IS DISTINCT FROM current_value THEN
        resume_value := last_taken;
    ELSIF is_own AND last_taken IS NULL AND (current_value IS NOT NULL OR is_new AND base <> options.seqstart) THEN
        resume_value := base;
        is_called := false;
    END IF;
    IF resume_value IS NOT NULL THEN
        -- By OID, because another relation could have the name by then.
        PERFORM snowflake_internal.migration_run(origin.target,
            format('SELECT setval(%L::regclass, %L::bigint, %L::boolean)', sequence::oid, resume_value, is_called));
    END IF;
END
$function$;
COMMENT ON FUNCTION snowflake_internal.migration_resume_sequence(sequence regclass, is_new boolean, origin snowflake_internal.origins) IS
    'Used by snowflake_migrate_revert: makes the sequence resume after the old IDs';

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
    -- Partitions and children whose default was another one.
    child_defaults jsonb,
    -- No snowflake ID of the column is smaller, whoever made it and when; and
    -- none of this migration's is smaller than the other one.
    first_id_ever bigint NOT NULL,
    first_id bigint NOT NULL,
    remembered_at timestamp with time zone NOT NULL DEFAULT pg_catalog.now(),
    reverted_at timestamp with time zone,
    PRIMARY KEY (target, column_name)
);
-- A table that is gone would be dumped by its number, which could be another's.
SELECT pg_catalog.pg_extension_config_dump(
    'snowflake_origins', 'WHERE EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = target)');
GRANT SELECT ON snowflake_origins TO PUBLIC;

-- It is each server's own: a publication FOR ALL TABLES has it too, and what
-- arrives from there is discarded.
CREATE FUNCTION snowflake_origins_stay()
RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN NULL;
END
$function$;
CREATE TRIGGER snowflake_origins_stay BEFORE INSERT OR UPDATE OR DELETE ON snowflake_origins
    FOR EACH ROW EXECUTE FUNCTION snowflake_origins_stay();
ALTER TABLE snowflake_origins ENABLE REPLICA TRIGGER snowflake_origins_stay;

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

-- What feeds a column now.
CREATE FUNCTION snowflake_migration_source(target regclass, column_name name)
RETURNS TABLE (kind text, data_type text, expression text, sequence regclass) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(k.kind, 'none'), format_type(a.atttypid, a.atttypmod), pg_get_expr(f.adbin, f.adrelid), k.sequence
    FROM pg_attribute AS a
    JOIN pg_class AS c ON c.oid = a.attrelid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
    LEFT JOIN @extschema@.snowflake_serial_columns AS k
        ON k.schema_name = n.nspname AND k.table_name = c.relname AND k.column_name = a.attname
    WHERE a.attrelid = target AND a.attname = snowflake_migration_source.column_name
    LIMIT 1
$function$;

-- Whether that is what is kept.
CREATE FUNCTION snowflake_migration_is_remembered(target regclass, column_name name)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (
        SELECT FROM @extschema@.snowflake_origins AS o
        CROSS JOIN LATERAL @extschema@.snowflake_migration_source(o.target, o.column_name) AS s
        LEFT JOIN pg_class AS c ON c.oid = s.sequence
        LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE o.target = snowflake_migration_is_remembered.target
          AND o.column_name = snowflake_migration_is_remembered.column_name AND o.reverted_at IS NULL
          AND (o.kind, o.default_expression, o.sequence_schema, o.sequence_name)
              IS NOT DISTINCT FROM (s.kind, s.expression, n.nspname, c.relname))
$function$;

-- Keeps what the column has now. What is kept already is brought up to date:
-- the sequence has gone on meanwhile.
CREATE FUNCTION snowflake_migration_remember(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    meant CONSTANT name := @extschema@.snowflake_migration_column(target, column_name);
    first CONSTANT bigint := @extschema@.snowflake_migration_first_id();
    -- Nothing is older than this extension: rows that have come from other
    -- servers have snowflake IDs too. 0 where the layout begins later.
    oldest CONSTANT bigint := @extschema@.snowflake_min_id(timestamptz '2026-01-01 00:00:00+00');
    first_ever bigint;
    fed record;
    taken bigint;
    following bigint;
BEGIN
    PERFORM @extschema@.snowflake_migration_require_owner(target);
    -- One at a time; rows can be written meanwhile.
    EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', @extschema@.snowflake_migration_name(target));
    IF @extschema@.snowflake_migration_is_switched(target, meant) THEN
        RETURN;
    END IF;
    SELECT s.* INTO fed FROM @extschema@.snowflake_migration_source(target, meant) AS s;
    IF fed.sequence IS NOT NULL THEN
        -- One that was not used yet may have been told where to begin.
        EXECUTE format('SELECT CASE WHEN is_called THEN last_value END, CASE WHEN NOT is_called THEN last_value END FROM %s',
                       @extschema@.snowflake_migration_name(fed.sequence)) INTO taken, following;
    END IF;

    IF @extschema@.snowflake_migration_is_remembered(target, meant) THEN
        UPDATE @extschema@.snowflake_origins AS o
        SET first_id = first, sequence_last_value = taken,
            sequence_options = o.sequence_options || jsonb_build_object('next', following)
        WHERE o.target = snowflake_migration_remember.target AND o.column_name = meant;
        RETURN;
    END IF;
    DELETE FROM @extschema@.snowflake_origins AS o
    WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = o.target);
    DELETE FROM @extschema@.snowflake_origins AS o
    WHERE o.target = snowflake_migration_remember.target AND o.column_name = meant
    RETURNING o.first_id_ever INTO first_ever;

    INSERT INTO @extschema@.snowflake_origins
        (target, column_name, kind, data_type, default_expression, sequence_schema, sequence_name,
         sequence_options, sequence_last_value, sequence_privileges, sequence_comment, child_defaults,
         first_id_ever, first_id)
    SELECT target, meant, fed.kind, fed.data_type, fed.expression, n.nspname, c.relname,
           CASE WHEN s.seqrelid IS NOT NULL THEN
               jsonb_build_object('type', s.seqtypid::regtype::text, 'start', s.seqstart, 'increment', s.seqincrement,
                   'minimum', s.seqmin, 'maximum', s.seqmax, 'cache', s.seqcache, 'cycle', s.seqcycle, 'next', following) END,
           taken,
           (SELECT jsonb_agg(jsonb_build_object('grantee', CASE a.grantee WHEN 0 THEN NULL ELSE pg_get_userbyid(a.grantee) END,
                                                'privilege', a.privilege_type, 'grantable', a.is_grantable))
            FROM aclexplode(c.relacl) AS a WHERE a.grantee <> c.relowner),
           obj_description(c.oid, 'pg_class'),
           (SELECT jsonb_agg(jsonb_build_object('schema', fn.nspname, 'name', fc.relname, 'default', pg_get_expr(d.adbin, d.adrelid)))
            FROM @extschema@.snowflake_migration_family(target, meant) AS f
            JOIN pg_class AS fc ON fc.oid = f.relation
            JOIN pg_namespace AS fn ON fn.oid = fc.relnamespace
            LEFT JOIN pg_attrdef AS d ON d.adrelid = f.relation AND d.adnum = f.attribute
            WHERE f.relation <> target AND pg_get_expr(d.adbin, d.adrelid) IS DISTINCT FROM fed.expression),
           coalesce(first_ever, CASE WHEN oldest > coalesce(taken, 0) THEN least(oldest, first) ELSE first END), first
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

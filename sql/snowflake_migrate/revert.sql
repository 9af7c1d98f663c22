-- Reverting a column to its sequence.
--
-- The recorded texts may have been written by the table's owner. So they are run
-- with the owner's rights, whichever role reverts: see src/migrate/owner.rs.

-- The last of the old IDs that a sequence could have issued, as the tables without
-- an index that leads with the column had it before they were locked.
CREATE TYPE snowflake_migrate_internal.scanned_ids AS (
    first_id_ever bigint, is_ascending boolean, minimum bigint, maximum bigint, last_old_id bigint
);

-- The condition of the IDs that the sequence could have issued before the migration.
CREATE FUNCTION snowflake_migrate_internal.old_id_condition(column_name name, first_id_ever bigint, minimum bigint, maximum bigint)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('%1$I OPERATOR(pg_catalog.<) %2$L::pg_catalog.int8 AND %1$I OPERATOR(pg_catalog.>=) %3$L::pg_catalog.int8 '
                  'AND %1$I OPERATOR(pg_catalog.<=) %4$L::pg_catalog.int8', column_name, first_id_ever, minimum, maximum)
$function$;

-- Reads every row of a table that has no index for it, before it is locked. NULL
-- where that is not needed, or the migration cannot be reverted.
CREATE FUNCTION snowflake_migrate_internal.scan_old_ids(target regclass, column_name name, search_path text)
RETURNS snowflake_migrate_internal.scanned_ids LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    origin CONSTANT snowflake_migrate_internal.origins := snowflake_migrate_internal.origin(target, column_name);
    is_ascending boolean;
    minimum bigint;
    maximum bigint;
    options CONSTANT jsonb := origin.sequence_options;
BEGIN
    IF origin.target IS NULL OR origin.reverted_at IS NOT NULL OR NOT snowflake_internal.has_ids(target, column_name)
       OR NOT EXISTS (SELECT FROM snowflake_migrate_internal.id_indexes(target, column_name) AS i WHERE NOT i.is_indexed)
    THEN
        RETURN NULL;
    END IF;
    -- The present sequence, unless a new one is created. Its bounds are compared
    -- again under the lock.
    SELECT q.seqincrement > 0, q.seqmin, q.seqmax INTO is_ascending, minimum, maximum
    FROM pg_sequence AS q
    WHERE origin.kind NOT LIKE 'identity %'
      AND q.seqrelid = coalesce(snowflake_migrate_internal.sequence_by_name(origin.sequence_schema, origin.sequence_name),
                                snowflake_migrate_internal.owned_sequence(target, column_name));
    IF NOT FOUND AND options IS NULL THEN
        RETURN NULL;
    ELSIF NOT FOUND THEN
        is_ascending := (options ->> 'increment')::bigint > 0;
        -- Those of sequence_options().
        minimum := CASE WHEN origin.kind NOT LIKE 'identity %'
                             OR (options ->> 'type', options ->> 'minimum') NOT IN (('smallint', '-32768'), ('integer', '-2147483648'))
                        THEN (options ->> 'minimum')::bigint ELSE -9223372036854775808 END;
        maximum := CASE WHEN origin.kind NOT LIKE 'identity %'
                             OR (options ->> 'type', options ->> 'maximum') NOT IN (('smallint', '32767'), ('integer', '2147483647'))
                        THEN (options ->> 'maximum')::bigint ELSE 9223372036854775807 END;
    END IF;
    RETURN (origin.first_id_ever, is_ascending, minimum, maximum,
            snowflake_migrate_internal.extreme_id(target, column_name, CASE WHEN is_ascending THEN 'max' ELSE 'min' END,
                snowflake_migrate_internal.old_id_condition(column_name, origin.first_id_ever, minimum, maximum), false, search_path)
           )::snowflake_migrate_internal.scanned_ids;
END
$function$;

-- The last old ID, under the lock.
CREATE FUNCTION snowflake_migrate_internal.last_old_id(
    origin snowflake_migrate_internal.origins, is_ascending boolean, minimum bigint, maximum bigint,
    scanned snowflake_migrate_internal.scanned_ids, search_path text
) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- A sequence that was altered since has other bounds: the rows are read again.
    is_scanned CONSTANT boolean := coalesce((scanned.first_id_ever, scanned.is_ascending, scanned.minimum, scanned.maximum)
                                            = (origin.first_id_ever, is_ascending, minimum, maximum), false);
    last_old_id CONSTANT bigint := snowflake_migrate_internal.extreme_id(origin.target, origin.column_name,
        CASE WHEN is_ascending THEN 'max' ELSE 'min' END,
        snowflake_migrate_internal.old_id_condition(origin.column_name, origin.first_id_ever, minimum, maximum), is_scanned, search_path);
BEGIN
    IF NOT is_scanned THEN
        RETURN last_old_id;
    END IF;
    RETURN CASE WHEN is_ascending THEN greatest(last_old_id, scanned.last_old_id) ELSE least(last_old_id, scanned.last_old_id) END;
END
$function$;

-- The sequence resumes after the old IDs: those below the first snowflake ID,
-- including IDs inserted since. It keeps its increment, because one server may
-- issue odd numbers and another one even numbers. A sequence of another role is
-- only advanced, from its present value.
CREATE FUNCTION snowflake_migrate_internal.resume_sequence(
    sequence regclass, is_new boolean, origin snowflake_migrate_internal.origins, scanned snowflake_migrate_internal.scanned_ids,
    search_path text
) RETURNS void LANGUAGE plpgsql
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
                     AND snowflake_migrate_internal.base_type(a.atttypid) IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype))
    THEN
        PERFORM snowflake_internal.refuse('55000', format('the type of column "%s" of %s has changed', origin.column_name, origin.target));
    END IF;
    SELECT s.last_value, s.is_called INTO state FROM snowflake_migrate_internal.sequence_state(sequence, origin.target) AS s;
    current_value := CASE WHEN state.is_called AND NOT is_new THEN state.last_value END;
    IF NOT is_own AND (state.last_value IS NULL OR current_value >= origin.first_id_ever) THEN
        RETURN;
    END IF;
    -- A script that sets sequences to max(id) may have set it to a snowflake ID.
    last_taken := coalesce(CASE WHEN current_value < origin.first_id_ever THEN current_value END, origin.sequence_last_value);
    base := coalesce(last_taken, (origin.sequence_options ->> 'next')::bigint,
                     CASE WHEN NOT is_own THEN state.last_value END, options.seqstart);
    last_old_id := snowflake_migrate_internal.last_old_id(
        origin, options.seqincrement > 0, options.seqmin, options.seqmax, scanned, search_path);
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
        PERFORM snowflake_internal.run(origin.target,
            format('SELECT setval(%L::regclass, %L::bigint, %L::boolean)', sequence::oid, resume_value, is_called));
    END IF;
END
$function$;

-- Locks a table whose sequence has to resume after its IDs, with its child tables.
CREATE FUNCTION snowflake_migrate_internal.lock_to_revert(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_internal.lock_table(target, text 'ACCESS EXCLUSIVE');
    PERFORM snowflake_internal.lock_table(c.oid::regclass, text 'ACCESS EXCLUSIVE')
    FROM snowflake_migrate_internal.table_tree(target, column_name) AS f
    JOIN pg_class AS c ON c.oid = f.relation AND c.relkind IN ('r', 'p')
    WHERE f.relation <> target;
EXCEPTION WHEN lock_not_available THEN
    PERFORM snowflake_migrate_internal.lock_timed_out(
        ARRAY(SELECT f.relation FROM snowflake_migrate_internal.table_tree(target, column_name) AS f), text 'ACCESS EXCLUSIVE');
END
$function$;

-- Fails, because no migration of the column is recorded.
CREATE FUNCTION snowflake_migrate_internal.refuse_unrecorded(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF snowflake_internal.set_boundary_of(target, column_name) IS NOT NULL AND snowflake_internal.has_ids(target, column_name) THEN
        PERFORM snowflake_internal.refuse('55000',
            format('the former sequence of column "%s" of %s is not known any more', column_name, target),
            detail => 'The column was migrated, and then the extension snowflake_migrate was dropped, or the table was made anew, '
                      'for example by Citus. The records are lost with either.',
            hint => 'Set the default of the column yourself.');
    END IF;
    PERFORM snowflake_internal.refuse('55000', format('no migration of column "%s" of %s is recorded', column_name, target),
        hint => 'Only a migration by snowflake_migrate.run() or its plan can be reverted. '
                'If the column has been renamed since, rename it back first. Otherwise set its default yourself.');
END
$function$;

-- Keeps the names of the schemas that the statements are written with: what statements name
-- stays what it is.
CREATE FUNCTION snowflake_migrate_internal.pin_to_revert(origin snowflake_migrate_internal.origins)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    sequence_schema CONSTANT regnamespace := to_regnamespace(quote_ident(origin.sequence_schema));
BEGIN
    PERFORM snowflake_migrate_internal.pin_schemas(ARRAY[
        (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = origin.target), sequence_schema::oid,
        (SELECT p.pronamespace FROM pg_proc AS p WHERE p.oid = snowflake_migrate_internal.nextval_function())]);
    IF to_regnamespace(quote_ident(origin.sequence_schema)) IS DISTINCT FROM sequence_schema THEN
        PERFORM snowflake_internal.refuse('40001', format('schema "%s" was renamed at the same time', origin.sequence_schema),
            hint => 'Revert the column again.');
    END IF;
END
$function$;

-- Reverts a column. The public procedure has no SET clause, and calls this.
CREATE FUNCTION snowflake_migrate_internal.revert(target regclass, column_name name, search_path text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    key_column CONSTANT name := snowflake_migrate_internal.column_of_owned(target, column_name);
    origin snowflake_migrate_internal.origins;
    sequence regclass;
    is_new boolean;
    has_shadows boolean;
    -- The keys of an unfinished online migration, which is cancelled as a whole.
    keys snowflake_migrate_internal.key[];
    former_timeout text;
    scanned snowflake_migrate_internal.scanned_ids;
BEGIN
    PERFORM snowflake_migrate_internal.refuse_revert_of_citus(target, key_column);
    keys := snowflake_migrate_internal.unfinished(ARRAY[(target, key_column)::snowflake_migrate_internal.key]);
    PERFORM snowflake_migrate_internal.exclude_others(keys);
    has_shadows := snowflake_migrate_internal.drop_shadows(keys);
    PERFORM snowflake_migrate_internal.record_reverted(k.target, k.column_name)
    FROM unnest(keys) AS k
    WHERE has_shadows AND (k.target, k.column_name) <> (revert.target, key_column)
      AND NOT snowflake_internal.has_ids(k.target, k.column_name);
    scanned := snowflake_migrate_internal.scan_old_ids(target, key_column, search_path);
    former_timeout := snowflake_migrate_internal.limit_locks();
    PERFORM snowflake_migrate_internal.lock_to_revert(target, key_column);
    origin := snowflake_migrate_internal.origin(target, key_column);
    IF (origin.target IS NULL OR origin.reverted_at IS NOT NULL) AND has_shadows THEN
        EXECUTE format('SET LOCAL lock_timeout = %L', former_timeout);
        RAISE NOTICE 'the online migration of % is cancelled: nothing is left of it', snowflake_migrate_internal.key_names(keys);
        RETURN;
    ELSIF origin.target IS NULL OR origin.reverted_at IS NOT NULL THEN
        PERFORM snowflake_migrate_internal.refuse_unrecorded(target, key_column);
    END IF;
    PERFORM snowflake_migrate_internal.pin_to_revert(origin);
    IF has_shadows AND NOT snowflake_internal.has_ids(target, key_column) THEN
        NULL;  -- Cancelled before the swap: only the shadow columns existed.
    ELSIF NOT snowflake_internal.has_ids(target, key_column) THEN
        RAISE NOTICE 'the default of column "%" of % is neither snowflake_nextval() nor snowflake_id(): it is kept', key_column, target;
    ELSE
        SELECT r.sequence, r.is_new INTO sequence, is_new FROM snowflake_migrate_internal.restore_column(origin) AS r;
        PERFORM snowflake_migrate_internal.restore_children(origin);
        PERFORM snowflake_internal.run(f.target, 'DROP SEQUENCE ' || f.name)
        FROM snowflake_migrate_internal.former_sequences(ARRAY[(target, key_column)::snowflake_migrate_internal.key]) AS f;
        IF sequence IS NOT NULL THEN
            PERFORM snowflake_migrate_internal.resume_sequence(sequence, is_new, origin, scanned, search_path);
        END IF;
    END IF;
    PERFORM snowflake_migrate_internal.record_reverted(target, key_column);
    EXECUTE format('SET LOCAL lock_timeout = %L', former_timeout);
    IF has_shadows AND sequence IS NULL THEN
        RAISE NOTICE 'the online migration of % is cancelled: nothing is left of it', snowflake_migrate_internal.key_names(keys);
    ELSIF sequence IS NOT NULL THEN
        RAISE NOTICE 'column "%" of % has its sequence again, which continues%', key_column, target,
            coalesce((SELECT CASE WHEN s.is_called THEN ' after ' ELSE ' with ' END || s.last_value
                      FROM snowflake_migrate_internal.sequence_state(sequence, target) AS s WHERE s.last_value IS NOT NULL), '');
    END IF;
END
$function$;

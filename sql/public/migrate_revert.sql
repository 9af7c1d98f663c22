CREATE PROCEDURE snowflake_migrate_revert(target regclass, column_name name DEFAULT NULL)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $procedure$
DECLARE
    key_column name;
    origin snowflake_internal.origins;
    sequence regclass;
    is_new boolean := false;
    has_shadows boolean;
    -- The keys of an unfinished online migration, which is cancelled as a whole.
    targets regclass[];
    column_names name[];
    other record;
BEGIN
    -- Checked first: without ownership, migration_column() does not see the record of
    -- the migration, and would report a misleading error.
    IF EXISTS (SELECT FROM pg_class AS c WHERE c.oid = target AND c.relkind IN ('r', 'p')) THEN
        PERFORM snowflake_internal.migration_require_owner(target);
    END IF;
    key_column := snowflake_internal.migration_column(target, column_name);
    SELECT u.targets, u.column_names INTO targets, column_names
    FROM snowflake_internal.migration_unfinished(ARRAY[target], ARRAY[key_column]) AS u;
    has_shadows := snowflake_internal.migration_drop_shadows(targets, column_names);
    FOR other IN
        SELECT k.target, k.column_name FROM unnest(targets, column_names) AS k (target, column_name)
        WHERE has_shadows AND (k.target <> snowflake_migrate_revert.target OR k.column_name <> key_column)
          AND NOT snowflake_internal.migration_is_switched(k.target, k.column_name)
    LOOP
        PERFORM snowflake_internal.migration_record_reverted(other.target, other.column_name);
    END LOOP;
    PERFORM snowflake_internal.migration_limit_locks();
    PERFORM snowflake_internal.migration_lock_table(target, text 'ACCESS EXCLUSIVE');
    -- Child tables are locked too, because the sequence has to resume after their IDs.
    PERFORM snowflake_internal.migration_lock_table(c.oid::regclass, text 'ACCESS EXCLUSIVE')
    FROM snowflake_internal.migration_table_tree(target, key_column) AS f
    JOIN pg_class AS c ON c.oid = f.relation AND c.relkind IN ('r', 'p')
    WHERE f.relation <> target;
    origin := snowflake_internal.migration_origin(target, key_column);
    IF (origin.target IS NULL OR origin.reverted_at IS NOT NULL) AND has_shadows THEN
        RETURN;
    ELSIF origin.target IS NULL OR origin.reverted_at IS NOT NULL THEN
        RAISE EXCEPTION 'no migration of column "%" of % is recorded', key_column, target
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Only a migration by snowflake_migrate() or its plan can be reverted. If the column has been renamed since, rename it back first. Otherwise set its default yourself.';
    END IF;

    IF has_shadows AND NOT snowflake_internal.migration_is_switched(target, key_column) THEN
        NULL;  -- Cancelled before the swap: only the shadow columns existed.
    ELSIF NOT snowflake_internal.migration_is_switched(target, key_column) THEN
        RAISE NOTICE 'the default of column "%" of % is not snowflake_nextval(): it is kept', key_column, target;
    ELSE
        IF origin.kind LIKE 'identity %' THEN
            sequence := snowflake_internal.migration_restore_identity(origin);
            is_new := true;
        ELSE
            IF origin.sequence_name IS NOT NULL THEN
                sequence := coalesce(snowflake_internal.migration_sequence_by_name(origin.sequence_schema, origin.sequence_name),
                    snowflake_internal.migration_owned_sequence(target, key_column));
                is_new := sequence IS NULL;
                IF is_new THEN
                    sequence := snowflake_internal.migration_restore_sequence(origin);
                ELSIF origin.kind = 'serial'
                      AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence
                                        AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'a')
                THEN
                    PERFORM snowflake_internal.migration_run(target, format('ALTER SEQUENCE %s OWNED BY %s.%I',
                        snowflake_internal.migration_name(sequence), snowflake_internal.migration_name(target), key_column));
                END IF;
            END IF;
            PERFORM snowflake_internal.migration_restore_default(origin, sequence);
        END IF;
        PERFORM snowflake_internal.migration_restore_children(origin);
        IF sequence IS NOT NULL THEN
            PERFORM snowflake_internal.migration_resume_sequence(sequence, is_new, origin);
        END IF;
    END IF;
    PERFORM snowflake_internal.migration_record_reverted(target, key_column);
END
$procedure$;
COMMENT ON PROCEDURE snowflake_migrate_revert(target regclass, column_name name) IS
    'Restores the sequence of a migrated column, or cancels an unfinished online migration';

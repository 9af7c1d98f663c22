\echo Use "ALTER EXTENSION snowflake UPDATE TO '0.2.0'" to load this file. \quit

-- What scripts/upgrade-script writes is between its two lines; the rest is
-- written by hand. Run the script again when the SQL of 0.2.0 has changed: it
-- applies what is above the first line before it compares the versions.

-- Internal functions get other names, arguments and results, so an object that
-- uses one cannot be kept. Those of triggers (online migrations), of nextval and
-- of the monitoring views stay.
DO $do$
DECLARE
    former CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
    dependents text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    SELECT string_agg(DISTINCT format('%s depends on %s.',
                                      pg_describe_object(coalesce(view.classid, d.classid), coalesce(view.oid, d.objid), 0),
                                      pg_describe_object(d.refclassid, d.refobjid, 0)), E'\n')
    INTO dependents
    FROM pg_extension AS e
    JOIN pg_depend AS m ON m.refclassid = 'pg_extension'::regclass AND m.refobjid = e.oid AND m.deptype = 'e'
    JOIN pg_proc AS p ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid
    JOIN pg_depend AS d ON d.refclassid = m.classid AND d.refobjid = m.objid
    LEFT JOIN LATERAL (SELECT 'pg_class'::regclass::oid AS classid, r.ev_class AS oid FROM pg_rewrite AS r
                       WHERE d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid) AS view ON true
    WHERE e.extname = 'snowflake'
      AND p.proname ~ '^snowflake_migration_' AND p.proname <> 'snowflake_migration_plan'
      AND NOT EXISTS (
          SELECT FROM pg_depend AS own
          WHERE own.refclassid = m.refclassid AND own.refobjid = m.refobjid AND own.deptype = 'e'
            AND own.classid = coalesce(view.classid, d.classid) AND own.objid = coalesce(view.oid, d.objid));
    IF dependents IS NOT NULL THEN
        RAISE EXCEPTION 'cannot update extension snowflake because other objects depend on functions that change'
            USING ERRCODE = 'dependent_objects_still_exist', DETAIL = dependents,
                  HINT = 'Drop these objects, update the extension, and create them again, with the new names of the functions.';
    END IF;
    PERFORM set_config('search_path', former, true);
END
$do$;

-- As in sql/internal/schema.sql.
DO $do$
BEGIN
    IF EXISTS (
        SELECT FROM pg_catalog.pg_namespace AS n
        JOIN pg_catalog.pg_extension AS e ON e.extowner OPERATOR(pg_catalog.=) n.nspowner
        WHERE n.nspname OPERATOR(pg_catalog.=) 'snowflake_internal'::pg_catalog.name
          AND e.extname OPERATOR(pg_catalog.=) 'snowflake'::pg_catalog.name)
    THEN
        DROP SCHEMA snowflake_internal RESTRICT;
    END IF;
END
$do$;
CREATE SCHEMA snowflake_internal;
COMMENT ON SCHEMA snowflake_internal IS
    'Objects of the extension snowflake that are not meant to be used directly';
GRANT USAGE ON SCHEMA snowflake_internal TO PUBLIC;

-- What is not for people moves there and loses its prefix. The objects stay the
-- same, so triggers of online migrations that are not finished keep their
-- function, and sessions that run keep their mark.
DO $do$
DECLARE
    former CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
    it record;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR it IN
        SELECT p.oid::regprocedure AS function, p.proname, pg_get_function_identity_arguments(p.oid) AS arguments,
               coalesce(renamed.new_name, substr(p.proname, length('snowflake_') + 1)) AS new_name
        FROM pg_depend AS d
        JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND e.extname = 'snowflake'
        JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
        LEFT JOIN (VALUES
            ('snowflake_migration_is_remembered', 'migration_is_recorded'),
            ('snowflake_migration_remember', 'migration_record_origin'),
            ('snowflake_migration_put_back', 'migration_record_reverted'),
            ('snowflake_migration_dress_sequence', 'migration_restore_sequence_properties'),
            ('snowflake_migration_continue_sequence', 'migration_resume_sequence'),
            ('snowflake_migration_reach', 'migration_linked_columns'),
            ('snowflake_migration_family', 'migration_table_tree'),
            ('snowflake_migration_note', 'migration_record_progress'),
            ('snowflake_migration_block', 'migration_do_block'),
            ('snowflake_migration_way_obstacles', 'migration_plan_kind_obstacles'),
            ('snowflake_migration_begin', 'migration_record_backfill'),
            ('snowflake_migration_patience', 'migration_lock_time_limit'),
            ('snowflake_migration_locked_too', 'migration_other_locked_tables')
        ) AS renamed (old_name, new_name) ON renamed.old_name = p.proname
        WHERE d.deptype = 'e'
          AND p.proname ~ '^snowflake_(migration_.*|get_.*|copy_nextval|nextval_support|shadow|origins_stay)$'
          AND p.proname <> 'snowflake_migration_plan'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET SCHEMA snowflake_internal', it.function);
        EXECUTE format('ALTER FUNCTION snowflake_internal.%I(%s) RENAME TO %I',
                       it.proname, it.arguments, it.new_name);
    END LOOP;
    FOR it IN
        SELECT c.oid::regclass AS relation, c.relname, c.relkind, c.oid
        FROM pg_depend AS d
        JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND e.extname = 'snowflake'
        JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
        WHERE d.deptype = 'e' AND c.relname IN ('snowflake_mark', 'snowflake_origins', 'snowflake_progress')
    LOOP
        EXECUTE format('ALTER %s %s SET SCHEMA snowflake_internal',
                       CASE it.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, it.relation);
        EXECUTE format('ALTER %s snowflake_internal.%I RENAME TO %I',
                       CASE it.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
                       it.relname, substr(it.relname, length('snowflake_') + 1));
    END LOOP;
    -- With the constraint of a key its index is renamed.
    FOR it IN
        SELECT c.conrelid::regclass AS relation, c.conname
        FROM pg_constraint AS c
        WHERE c.conrelid IN ('snowflake_internal.origins'::regclass, 'snowflake_internal.progress'::regclass)
          AND c.conname ~ '^snowflake_(origins|progress)_'
    LOOP
        EXECUTE format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I',
                       it.relation, it.conname, substr(it.conname, length('snowflake_') + 1));
    END LOOP;
    PERFORM set_config('search_path', former, true);
END
$do$;
ALTER TRIGGER snowflake_origins_stay ON snowflake_internal.origins RENAME TO origins_stay;
ALTER TRIGGER snowflake_progress_stay ON snowflake_internal.progress RENAME TO progress_stay;

-- Its columns for now without what they are computed from, which is dropped
-- below. So the view stays, with what depends on it and its privileges.
CREATE OR REPLACE VIEW @extschema@.snowflake_migrations AS
    SELECT NULL::pg_catalog.regclass AS table_name, NULL::pg_catalog.name AS column_name, NULL::pg_catalog.text COLLATE pg_catalog."C" AS step,
           NULL::bigint AS rows_done, NULL::bigint AS rows_total, NULL::bigint AS rows_per_second, NULL::interval AS time_left;

-- As in sql/internal/accepted_layout.sql.
CREATE TABLE snowflake_internal.accepted_layout (
    layout text NOT NULL,
    accepted_at timestamp with time zone NOT NULL DEFAULT pg_catalog.now()
) USING heap;

-- As in sql/internal/migration/records.sql. An online migration that is not
-- finished has one key: NULL.
ALTER TABLE snowflake_internal.progress
    ADD COLUMN key_targets regclass[],
    ADD COLUMN key_column_names name[],
    ADD COLUMN waiting_for text,
    ADD COLUMN waiting_pid integer;
-- How fast an online migration copies rows. It is a table of its own, because
-- another session than the backfill writes it. NULL: the default. Rows exist only
-- for migrations whose pace was set.
CREATE TABLE snowflake_internal.pace (
    target regclass NOT NULL,
    column_name name NOT NULL,
    batch_size integer CHECK (batch_size OPERATOR(pg_catalog.>=) 1),
    pause interval CHECK (pause OPERATOR(pg_catalog.>=) '0'::pg_catalog.interval),
    max_replay_lag interval CHECK (max_replay_lag OPERATOR(pg_catalog.>) '0'::pg_catalog.interval),
    max_active_sessions integer CHECK (max_active_sessions OPERATOR(pg_catalog.>=) 0),
    is_paused boolean NOT NULL DEFAULT false,
    PRIMARY KEY (target, column_name)
) USING heap WITH (fillfactor = 50);

-- As in sql/internal/restore.sql.
CREATE TABLE snowflake_internal.restore (
    -- mark, layout or origin
    record text,
    mark bigint,
    layout text,
    accepted_at timestamp with time zone,
    -- The others are columns of snowflake_internal.origins. A name instead of a
    -- regclass: a table that is not restored is no error.
    target_schema name,
    target_name name,
    column_name name,
    kind text,
    data_type text,
    default_expression text,
    sequence_schema name,
    sequence_name name,
    sequence_options jsonb,
    sequence_last_value bigint,
    sequence_privileges jsonb,
    sequence_comment text,
    child_defaults jsonb,
    first_id_ever bigint,
    first_id bigint,
    remembered_at timestamp with time zone,
    reverted_at timestamp with time zone,
    -- While the trigger is disabled, a row is an error: it would have no effect.
    CONSTRAINT restore_applies_rows_by_its_trigger CHECK (false)
) USING heap;
-- As in sql/internal/migration/revert.sql.
CREATE TYPE snowflake_internal.scanned_ids AS (
    first_id_ever bigint, is_ascending boolean, minimum bigint, maximum bigint, last_old_id bigint
);

-- Written by scripts/upgrade-script: begin
DROP FUNCTION snowflake_internal.migration_resume_sequence(pg_catalog.regclass,boolean,snowflake_internal.origins);
DROP FUNCTION snowflake_internal.migration_limit_locks();
DROP FUNCTION snowflake_internal.migration_check(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_online_steps(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_swap(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_swap_under_lock(pg_catalog.regclass,pg_catalog.name,pg_catalog.regclass[],pg_catalog.text,pg_catalog.text[],pg_catalog.jsonb);
DROP FUNCTION snowflake_internal.migration_await_snapshots(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_old_snapshots(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_require_ready(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_not_null_names(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_swap_statements(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_swap_obstacles(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_swap_sequences(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_swap_relations(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_obstacles(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_row_obstacles(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_owner_obstacles(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_plan_kind_obstacles(pg_catalog.regclass,pg_catalog.name,boolean);
DROP FUNCTION snowflake_internal.migration_online_obstacles(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_backfill_steps(pg_catalog.regclass,pg_catalog.name);
DROP PROCEDURE @extschema@.snowflake_migrate_backfill(pg_catalog.regclass,pg_catalog.name,integer,interval,interval);
DROP FUNCTION snowflake_internal.migration_backfill_begin(pg_catalog.regclass,pg_catalog.name,integer,interval,interval);
DROP FUNCTION snowflake_internal.migration_backfill_batch(pg_catalog.regclass,pg_catalog.name,pg_catalog.regclass,integer);
DROP FUNCTION snowflake_internal.migration_online_step(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_record_backfill(pg_catalog.regclass,pg_catalog.name,pg_catalog.regclass);
DROP FUNCTION snowflake_internal.migration_index_steps(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_shadow_indexes(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_foreign_key_steps(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_shadow_foreign_keys(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_drop_shadows(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_shadow_steps(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_require_filled(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_shadows(pg_catalog.regclass,pg_catalog.name);
DROP FUNCTION snowflake_internal.migration_linked_columns(pg_catalog.regclass,pg_catalog.name);
CREATE VIEW snowflake_internal.sequence_columns AS
    SELECT source.relation, source.attribute, source.sequence, source.kind
    FROM (
        -- Identity columns own their sequence internally.
        SELECT a.attrelid AS relation, a.attnum AS attribute, d.objid AS sequence,
               CASE WHEN a.attidentity = 'a'::"char" THEN 'identity always' ELSE 'identity by default' END AS kind
        FROM pg_catalog.pg_attribute AS a
        JOIN pg_catalog.pg_depend AS d
          ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
         AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
         AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND d.deptype = 'i'::"char"
        JOIN pg_catalog.pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'::"char"
        WHERE a.attidentity <> ''::"char"
      UNION ALL
        -- A default depends on the sequence that it uses.
        SELECT f.adrelid, f.adnum, d.refobjid,
               CASE WHEN owned.objid IS NOT NULL THEN 'serial' ELSE 'default' END
        FROM pg_catalog.pg_attrdef AS f
        JOIN pg_catalog.pg_depend AS d
          ON d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid AND d.objid = f.oid
         AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
        JOIN pg_catalog.pg_class AS s ON s.oid = d.refobjid AND s.relkind = 'S'::"char"
        LEFT JOIN pg_catalog.pg_depend AS owned
          ON owned.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND owned.objid = s.oid
         AND owned.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
         AND owned.refobjid = f.adrelid AND owned.refobjsubid = f.adnum AND owned.deptype = 'a'::"char"
    ) AS source
    -- Partitions and child tables are left out, unless they use a sequence of
    -- their own.
    WHERE NOT EXISTS (
        SELECT FROM pg_catalog.pg_attribute AS a
        JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = a.attrelid
        JOIN pg_catalog.pg_attribute AS pa ON pa.attrelid = i.inhparent AND pa.attname = a.attname
        WHERE a.attrelid = source.relation AND a.attnum = source.attribute
          AND (EXISTS (
                   SELECT FROM pg_catalog.pg_attrdef AS f
                   JOIN pg_catalog.pg_depend AS d
                     ON d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid AND d.objid = f.oid
                    AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
                    AND d.refobjid = source.sequence
                   WHERE f.adrelid = pa.attrelid AND f.adnum = pa.attnum)
               OR pa.attidentity <> ''::"char" AND EXISTS (
                   SELECT FROM pg_catalog.pg_depend AS d
                   WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND d.objid = source.sequence
                     AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
                     AND d.refobjid = pa.attrelid AND d.refobjsubid = pa.attnum AND d.deptype = 'i'::"char"))
        OFFSET 0);
CREATE OR REPLACE VIEW snowflake_serial_columns AS
    SELECT n.nspname AS schema_name,
           c.relname AS table_name,
           a.attname AS column_name,
           pg_catalog.format_type(a.atttypid, a.atttypmod) AS data_type,
           source.kind,
           source.sequence::pg_catalog.regclass AS sequence,
           used.last_value,
           -- Sequences may be descending.
           pg_catalog.round(pg_catalog.abs(100.0 * used.last_value::pg_catalog.numeric)
               / CASE WHEN base.type_oid = 'pg_catalog.int2'::pg_catalog.regtype::pg_catalog.oid THEN 32767::pg_catalog.numeric
                      WHEN base.type_oid = 'pg_catalog.int4'::pg_catalog.regtype::pg_catalog.oid THEN 2147483647::pg_catalog.numeric
                      WHEN base.type_oid = 'pg_catalog.int8'::pg_catalog.regtype::pg_catalog.oid THEN 9223372036854775807::pg_catalog.numeric
                 END, 2) AS percent_used,
           ARRAY(SELECT pg_catalog.format('%s.%I', k.conrelid::pg_catalog.regclass, ra.attname)
                 FROM (SELECT DISTINCT d.objid AS foreign_key
                       FROM pg_catalog.pg_depend AS d
                       WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
                         AND d.refobjid = c.oid AND d.refobjsubid = a.attnum
                         AND d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid OFFSET 0) AS d
                 JOIN pg_catalog.pg_constraint AS k ON k.oid = d.foreign_key
                 CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(k.conkey), pg_catalog.unnest(k.confkey))
                     AS key (referencing, referenced)
                 JOIN pg_catalog.pg_attribute AS ra ON ra.attrelid = k.conrelid AND ra.attnum = key.referencing
                 WHERE k.contype = 'f'::"char" AND k.conparentid = 0::pg_catalog.oid
                   AND k.confrelid = c.oid AND key.referenced = a.attnum
                 ORDER BY 1) AS referenced_by
    FROM snowflake_internal.sequence_columns AS source
    JOIN pg_catalog.pg_class AS c ON c.oid = source.relation
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = source.attribute
    CROSS JOIN LATERAL (
        -- Reading a sequence requires a privilege. Without it, the view still shows the column.
        SELECT CASE WHEN pg_catalog.has_sequence_privilege(source.sequence, 'USAGE, SELECT')
                    THEN pg_catalog.pg_sequence_last_value(source.sequence) END AS last_value
    ) AS used
    CROSS JOIN LATERAL (
        -- Only a domain has another base type.
        SELECT CASE WHEN a.atttypid = 'pg_catalog.int2'::pg_catalog.regtype::pg_catalog.oid
                      OR a.atttypid = 'pg_catalog.int4'::pg_catalog.regtype::pg_catalog.oid
                      OR a.atttypid = 'pg_catalog.int8'::pg_catalog.regtype::pg_catalog.oid
                    THEN a.atttypid ELSE snowflake_internal.migration_base_type(a.atttypid) END AS type_oid
    ) AS base
    WHERE NOT pg_catalog.pg_is_other_temp_schema(n.oid)
      AND n.nspname <> 'pg_catalog'::pg_catalog.name AND n.nspname <> 'information_schema'::pg_catalog.name;
CREATE  FUNCTION "snowflake_accept_layout"(

) RETURNS void
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'snowflake_accept_layout_wrapper';
CREATE FUNCTION snowflake_internal.get_database_layout() RETURNS text
    STRICT VOLATILE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_get_database_layout_wrapper';
CREATE OR REPLACE VIEW snowflake_layouts AS
    SELECT name, layout, expires_at, ids_per_second, nodes, backends
    FROM snowflake_internal.get_layouts();
CREATE OR REPLACE VIEW snowflake_status AS
    SELECT version, preloaded, layout, node_id, last_id_at, reserved_until,
           pg_catalog.make_interval(secs => clock_behind) AS clock_behind,
           ids, waits, expires_at,
           snowflake_internal.get_database_layout() AS database_layout
    FROM snowflake_internal.get_status();
CREATE FUNCTION snowflake_internal.migration_calls(body text) RETURNS text
    STRICT IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_calls_wrapper';
CREATE FUNCTION snowflake_internal.migration_code(body text) RETURNS text
    STRICT IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_code_wrapper';
CREATE FUNCTION snowflake_internal.migration_guard() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_guard_wrapper';
CREATE FUNCTION snowflake_internal.migration_first_id_of(target regclass, column_name name) RETURNS bigint
    STRICT VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_first_id_of_wrapper';
CREATE OR REPLACE FUNCTION snowflake_internal.migration_end(target regclass, column_name name) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_end_wrapper';
CREATE FUNCTION snowflake_internal.migration_keep_origin(origin snowflake_internal.origins) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_keep_origin_wrapper';
CREATE FUNCTION snowflake_internal.migration_keep_pace(pace snowflake_internal.pace) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_keep_pace_wrapper';
CREATE FUNCTION snowflake_internal.migration_keep_progress(step snowflake_internal.progress) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_keep_progress_wrapper';
CREATE FUNCTION snowflake_internal.migration_lock_table(relation regclass, mode text) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_lock_table_wrapper';
CREATE FUNCTION snowflake_internal.migration_origin(target regclass, column_name name) RETURNS snowflake_internal.origins
    STRICT VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_origin_wrapper';
CREATE FUNCTION snowflake_internal.migration_pace(target regclass, column_name name) RETURNS snowflake_internal.pace
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_pace_wrapper';
CREATE OR REPLACE FUNCTION snowflake_internal.migration_progress(target regclass, column_name name, relation regclass) RETURNS snowflake_internal.progress
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_progress_wrapper';
CREATE FUNCTION snowflake_internal.migration_query(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_query_wrapper';
CREATE FUNCTION snowflake_internal.migration_query(relation regclass, query text, search_path text) RETURNS text[]
    STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_query_with_path_wrapper';
CREATE FUNCTION snowflake_internal.migration_read(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_read_wrapper';
CREATE FUNCTION snowflake_internal.migration_rename_columns(expression text, former name[], present name[]) RETURNS text
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_rename_columns_wrapper';
CREATE FUNCTION snowflake_internal.migration_run(relation regclass, statement text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_run_wrapper';
CREATE FUNCTION snowflake_internal.migration_run_as(role oid, statement text, path text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_run_as_wrapper';
CREATE FUNCTION snowflake_internal.migration_run(relation regclass, statement text, search_path text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_run_with_path_wrapper';
CREATE FUNCTION snowflake_internal.migration_sequence_state(
    sequence regclass, on_behalf_of regclass, OUT last_value bigint, OUT is_called boolean
) RETURNS SETOF record STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_sequence_state_wrapper';
CREATE FUNCTION snowflake_internal.migration_set_trigger_state(relation regclass, trigger_name name, state text) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_set_trigger_state_wrapper';
CREATE PROCEDURE snowflake_internal.migration_sleep(milliseconds integer)
    LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_sleep_wrapper';
CREATE OR REPLACE FUNCTION snowflake_partition_ddl(
    parent regclass,
    since timestamp with time zone,
    until timestamp with time zone,
    step interval
) RETURNS SETOF text LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    parent_schema name;
    parent_name name;
    kind "char";
    key text;
    key_type oid;
    begins timestamp with time zone := since;
    ends timestamp with time zone;
    count integer := 0;
    label_format text;
    label_zone text := current_setting('TimeZone');
    label text;
    bounds text;
    existing text[];
BEGIN
    IF NOT isfinite(since) OR NOT isfinite(until) OR until < since THEN
        RAISE EXCEPTION 'invalid range of partitions: from % to %', since, until
            USING ERRCODE = 'invalid_parameter_value',
                  DETAIL = 'Both ends must be finite, and the second not before the first.',
                  HINT = 'Create other partitions by hand, with MINVALUE, MAXVALUE or DEFAULT.';
    END IF;

    SELECT n.nspname, c.relname, c.relkind INTO parent_schema, parent_name, kind
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = parent;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'relation with OID % does not exist', parent::oid
            USING ERRCODE = 'undefined_table';
    END IF;
    SELECT pg_get_partkeydef(p.partrelid), a.atttypid INTO key, key_type
    FROM pg_partitioned_table AS p
    LEFT JOIN pg_attribute AS a
        ON p.partstrat = 'r' AND p.partnatts = 1
       AND a.attrelid = p.partrelid AND a.attnum = p.partattrs[0] AND a.attnum > 0
    WHERE p.partrelid = parent;
    IF kind <> 'p' THEN
        RAISE EXCEPTION '"%" is not a partitioned table', parent_name
            USING ERRCODE = 'wrong_object_type',
                  HINT = 'Create it with PARTITION BY RANGE (id), where id is the column of the IDs.';
    ELSIF key_type IS DISTINCT FROM 'bigint'::regtype THEN
        RAISE EXCEPTION '"%" is not partitioned by ranges of a bigint column', parent_name
            USING ERRCODE = 'wrong_object_type',
                  DETAIL = format('Its partition key is %s.', key),
                  HINT = 'Create it with PARTITION BY RANGE (id), where id is the column of the IDs.';
    END IF;

    -- The name of a partition contains the time at which it begins, as precise as
    -- the step requires. Times within a day are in UTC, because local time repeats
    -- an hour when daylight saving time ends.
    IF date_trunc('day', step) <> step OR date_trunc('day', since) <> since THEN
        label_zone := 'UTC';
        label_format := CASE
            WHEN date_trunc('minute', step) = step AND date_trunc('minute', since) = since
            THEN 'YYYYMMDD_HH24MI"utc"' ELSE 'YYYYMMDD_HH24MISSUS"utc"' END;
    ELSIF date_trunc('month', step) <> step OR date_trunc('month', since) <> since THEN
        label_format := 'YYYYMMDD';
    ELSIF date_trunc('year', step) <> step OR date_trunc('year', since) <> since THEN
        label_format := 'YYYYMM';
    ELSE
        label_format := 'YYYY';
    END IF;

    existing := ARRAY(
        SELECT pg_get_expr(c.relpartbound, c.oid)
        FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = parent);
    WHILE begins < until LOOP
        count := count + 1;
        -- Not begins + step: after 28 February, later partitions would not return to the 31st.
        ends := since + count * step;
        IF ends <= begins THEN
            RAISE EXCEPTION 'an interval of % does not advance from %', step, begins
                USING ERRCODE = 'invalid_parameter_value',
                      HINT = 'Use a positive interval, for example ''1 day'' or ''1 month''.';
        END IF;
        bounds := format('FOR VALUES FROM (%L) TO (%L)',
                         @extschema@.snowflake_min_id(begins), @extschema@.snowflake_min_id(ends));
        -- Ranges before the epoch contain no IDs. Existing partitions are left
        -- out, so that a job can run repeatedly.
        IF @extschema@.snowflake_min_id(ends) > @extschema@.snowflake_min_id(begins)
           AND bounds <> ALL (existing)
        THEN
            label := '_p' || to_char(begins AT TIME ZONE label_zone, label_format);
            -- PostgreSQL would truncate the end, which distinguishes the partitions.
            WHILE octet_length(parent_name || label) > 63 LOOP
                parent_name := left(parent_name, -1);
            END LOOP;
            RETURN NEXT format('CREATE TABLE %I.%I PARTITION OF %s %s',
                               parent_schema, parent_name || label, parent, bounds);
        END IF;
        begins := ends;
    END LOOP;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_column(target regclass, column_name name)
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
               OR (snowflake_internal.migration_origin(migration_column.target, a.attname)).target IS NOT NULL));
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
        RAISE EXCEPTION 'no column of "%" takes its values from a sequence', relation.relname
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Specify the column.';
    END IF;
    RAISE EXCEPTION 'several columns of "%" take their values from a sequence', relation.relname
        USING ERRCODE = 'invalid_parameter_value',
              DETAIL = format('They are %s.', array_to_string(candidates, ', ')),
              HINT = 'Specify the column.';
END
$function$;
CREATE FUNCTION snowflake_internal.migration_keys(INOUT targets regclass[], INOUT column_names name[])
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF coalesce(cardinality(targets), 0) = 0 THEN
        RAISE EXCEPTION 'no tables are specified' USING ERRCODE = 'invalid_parameter_value';
    ELSIF cardinality(column_names) <> cardinality(targets) THEN
        RAISE EXCEPTION 'there are % tables, but % columns', cardinality(targets), cardinality(column_names)
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = 'Specify one column for each table, NULL for the column that takes its values from a sequence.';
    END IF;
    SELECT array_agg(k.target ORDER BY k.target::oid, k.column_name), array_agg(k.column_name ORDER BY k.target::oid, k.column_name)
    INTO targets, column_names
    FROM (SELECT DISTINCT given.target, snowflake_internal.migration_column(given.target, given.column_name) AS column_name
          FROM unnest(targets, column_names) AS given (target, column_name)) AS k;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_key_names(targets regclass[], column_names name[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN cardinality(targets) = 1 THEN format('column "%s" of %s', column_names[1], targets[1])
                ELSE 'columns ' || string_agg(format('%s.%I', k.target, k.column_name), ', ' ORDER BY k.place) END
    FROM unnest(targets, column_names) WITH ORDINALITY AS k (target, column_name, place)
$function$;
CREATE FUNCTION snowflake_internal.migration_key_arguments(targets regclass[], column_names name[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('%L::pg_catalog.regclass[], %L::pg_catalog.name[]',
                  ARRAY(SELECT snowflake_internal.migration_name(t.target) FROM unnest(targets) WITH ORDINALITY AS t (target, place)
                        ORDER BY t.place),
                  column_names)
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_table_tree(target regclass, column_name name)
RETURNS TABLE (relation regclass, attribute smallint) LANGUAGE sql STABLE ROWS 4
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE tree (oid) AS (
        SELECT target::oid
      UNION
        SELECT i.inhrelid FROM tree JOIN pg_inherits AS i ON i.inhparent = tree.oid
    )
    SELECT tree.oid::regclass, a.attnum
    FROM tree JOIN pg_attribute AS a ON a.attrelid = tree.oid AND a.attname = column_name AND a.attnum > 0
$function$;
CREATE FUNCTION snowflake_internal.migration_linked_columns(targets regclass[], column_names name[])
RETURNS TABLE (relation regclass, attribute smallint, is_narrow boolean) LANGUAGE sql STABLE ROWS 4
SET search_path = pg_catalog, pg_temp
AS $function$
    -- Each reference is looked up by hashing, because no index finds the foreign
    -- keys that reference a table.
    WITH RECURSIVE edge (relation, attribute, other, other_attribute) AS MATERIALIZED (
        -- Columns that reference one of the relation's.
        SELECT k.confrelid, key.referenced, k.conrelid, key.referencing
        FROM pg_constraint AS k
        CROSS JOIN LATERAL ROWS FROM (unnest(k.conkey), unnest(k.confkey)) AS key (referencing, referenced)
        WHERE k.contype = 'f'
      UNION ALL
        -- The same columns of child tables, whose own constraints count too, and of
        -- the parents that declare them.
        SELECT pair.relation, NULL, pair.other, NULL
        FROM pg_inherits AS i
        CROSS JOIN LATERAL (VALUES (i.inhparent, i.inhrelid), (i.inhrelid, i.inhparent)) AS pair (relation, other)
    ), linked (relation, attribute, attname) AS (
        SELECT a.attrelid, a.attnum, a.attname
        FROM unnest(targets, column_names) AS key (target, column_name)
        JOIN pg_attribute AS a ON a.attrelid = key.target AND a.attname = key.column_name
      UNION
        SELECT a.attrelid, a.attnum, a.attname
        FROM linked
        JOIN edge ON edge.relation = linked.relation AND (edge.attribute = linked.attribute OR edge.attribute IS NULL)
        JOIN pg_attribute AS a ON a.attrelid = edge.other AND a.attnum > 0
                              AND (a.attnum = edge.other_attribute OR edge.attribute IS NULL AND a.attname = linked.attname)
    )
    SELECT r.relation::regclass, r.attribute,
           snowflake_internal.migration_base_type(a.atttypid) IN ('int2'::regtype, 'int4'::regtype)
    FROM linked AS r
    JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
    WHERE a.attinhcount = 0
$function$;
CREATE FUNCTION snowflake_internal.migration_code_name(name name, OUT code text, OUT pattern text)
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.code, regexp_replace(c.code, '([][\\.*+?(){}|^$])', '\\\1', 'g')
    FROM btrim(snowflake_internal.migration_code(quote_ident(name)), ' ') AS c (code)
$function$;
CREATE FUNCTION snowflake_internal.migration_findings(targets regclass[], column_names name[], online boolean)
RETURNS TABLE (relation regclass, column_name name, object text, finding text, remedy text, breaks_writes boolean, stage text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH linked AS MATERIALIZED (
        SELECT r.relation, c.relname, n.nspname, c.reltype, a.attname, a.attnum, r.is_narrow, code.code AS column_code, code.pattern AS column_pattern,
               EXISTS (SELECT FROM unnest(targets, column_names) AS key (target, attname)
                       WHERE key.target = r.relation AND key.attname = a.attname) AS is_key
        FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
        JOIN pg_class AS c ON c.oid = r.relation
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        CROSS JOIN LATERAL snowflake_internal.migration_code_name(a.attname) AS code
    ), linked_table AS MATERIALIZED (
        SELECT l.relation, l.reltype, bool_or(l.is_narrow) AS is_narrow, table_code.code AS table_code, schema_code.code AS schema_code
        FROM linked AS l
        CROSS JOIN LATERAL snowflake_internal.migration_code_name(l.relname) AS table_code
        CROSS JOIN LATERAL snowflake_internal.migration_code_name(l.nspname) AS schema_code
        GROUP BY l.relation, l.reltype, table_code.code, schema_code.code
    ), key_sequence AS MATERIALIZED (
        SELECT l.relation, l.attname, l.column_code, s.oid::regclass AS sequence, a.attidentity <> '' AS is_dropped,
               sequence_code.code AS sequence_code, schema_code.code AS schema_code
        FROM linked AS l
        JOIN pg_attribute AS a ON a.attrelid = l.relation AND a.attname = l.attname
        JOIN snowflake_internal.sequence_columns AS source ON source.relation = l.relation AND source.attribute = l.attnum
        JOIN pg_class AS s ON s.oid = source.sequence
        JOIN pg_namespace AS n ON n.oid = s.relnamespace
        CROSS JOIN LATERAL snowflake_internal.migration_code_name(s.relname) AS sequence_code
        CROSS JOIN LATERAL snowflake_internal.migration_code_name(n.nspname) AS schema_code
        WHERE l.is_key
    ), hooked AS MATERIALIZED (
        -- Partitions have copies of their parent's triggers.
        SELECT t.tgrelid, t.tgname, t.tgfoid, t.tgtype, t.tgargs, t.tgnewtable, t.tgoldtable, l.relation, l.attname
        FROM linked AS l
        CROSS JOIN LATERAL snowflake_internal.migration_table_tree(l.relation, l.attname) AS f
        JOIN pg_trigger AS t ON t.tgrelid = f.relation AND NOT t.tgisinternal AND t.tgparentid = 0 AND t.tgenabled <> 'D'
                            AND t.tgfoid <> 'snowflake_internal.shadow()'::regprocedure
    ), body AS MATERIALIZED (
        SELECT p.oid, p.prorettype, p.prosrc, snowflake_internal.migration_code(p.prosrc) AS code
        FROM pg_proc AS p
        JOIN pg_namespace AS n ON n.oid = p.pronamespace
        JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname IN ('plpgsql', 'sql')
        WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'snowflake_internal') AND n.nspname !~ '^pg_(toast|temp)'
          AND p.prosqlbody IS NULL
          AND (p.prosrc ~* '(?:nextval|currval|setval|lastval|insert)'
               OR p.oid IN (SELECT h.tgfoid FROM hooked AS h)
               OR p.prorettype IN (SELECT t.reltype FROM linked_table AS t WHERE online))
          AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    ), inserting AS MATERIALIZED (
        SELECT b.oid, regexp_replace(s.statement, ' exists \( select \* ', ' exists ( select ', 'g') AS statement
        FROM body AS b
        CROSS JOIN LATERAL string_to_table(b.code, ' ; ') AS part
        CROSS JOIN LATERAL (SELECT ' ' || part || ' ') AS s (statement)
        WHERE strpos(b.code, ' insert into ') > 0 AND strpos(s.statement, ' insert into ') > 0
    ), named AS MATERIALIZED (
        -- The tables that these statements read as a whole, or insert into without
        -- naming columns.
        SELECT DISTINCT i.oid, 'copy' AS use, m[1] AS schema_code, m[2] AS table_code
        FROM inserting AS i
        CROSS JOIN LATERAL regexp_matches(i.statement, ' (?:from|join|,) (?:only )?(?:("(?:[^"]|"")*"|[^ "]+) \. )?("(?:[^"]|"")*"|[^ "]+)(?= )', 'g') AS m
        WHERE online AND i.statement ~ ' insert into .*(?:select|,|\.) \* '
      UNION
        SELECT i.oid, 'unnamed', m[1], m[2]
        FROM inserting AS i
        CROSS JOIN LATERAL regexp_matches(i.statement, ' insert into (?:("(?:[^"]|"")*"|[^ "]+) \. )?("(?:[^"]|"")*"|[^ "]+) (?:as [^ ]+ )?(?:values|select|with|table) ', 'g') AS m
        WHERE online
    ), returning_rows AS MATERIALIZED (
        -- Few functions return rows of these tables, so only their bodies are read.
        SELECT b.oid, b.prorettype, b.code
        FROM body AS b
        WHERE b.prorettype IN (SELECT t.reltype FROM linked_table AS t WHERE online AND t.is_narrow)
    ), fired AS MATERIALIZED (
        SELECT h.tgfoid, h.tgtype, h.tgnewtable, h.tgoldtable, l.relation, l.attname, l.is_narrow, l.is_key,
               l.column_code, l.column_pattern, b.code, b.prosrc, p.prosrc = 'autoinc' AND p.probin LIKE '%autoinc%' AS is_autoinc,
               h.tgargs, format('function %s, called by trigger %I of %s,', p.oid::regprocedure, h.tgname, h.tgrelid::regclass) AS object,
               strpos(b.code, format(' new . %s ', l.column_code)) > 0 OR strpos(b.code, format(' old . %s ', l.column_code)) > 0 AS has_column
        FROM hooked AS h
        JOIN linked AS l ON l.relation = h.relation AND l.attname = h.attname
        JOIN pg_proc AS p ON p.oid = h.tgfoid
        LEFT JOIN body AS b ON b.oid = h.tgfoid
    ), row_copy AS (
        SELECT DISTINCT f.tgfoid, f.relation, f.object
        FROM fired AS f
        -- A comparison of rows copies nothing.
        CROSS JOIN LATERAL regexp_replace(f.code,
            '(?:old|new) \. \* (?:\) )?(?:is (?:not )?distinct from|=|< >|! =) (?:row )?(?:\( )?(?:old|new) \. \* ', '', 'g') AS bare (code)
        CROSS JOIN LATERAL snowflake_internal.migration_code_name(coalesce(f.tgnewtable, f.tgoldtable)) AS new_rows
        CROSS JOIN LATERAL snowflake_internal.migration_code_name(coalesce(f.tgoldtable, f.tgnewtable)) AS old_rows
        WHERE f.is_narrow AND online AND strpos(bare.code, ' insert into ') > 0
          AND (bare.code ~ ' insert into [^;]* (?:old|new) (?:\) )?\. \* '
               OR bare.code ~ ' insert into [^;]*\$1 (?:\) )?\. \* ' AND bare.code ~ ' using (?:old|new) '
               OR coalesce(f.tgnewtable, f.tgoldtable) IS NOT NULL
                  AND bare.code ~ format(' insert into [^;]*(?:select|,|\.) \* [^;]*(?:from|join|,) (?:%s|%s) ', new_rows.pattern, old_rows.pattern))
    ), call AS (
        SELECT DISTINCT f.relation, f.attname, f.column_code, f.tgfoid, f.object, field.parts[1]::name AS function_name, field.parts[2]::name AS schema_name,
               field.parts[3]::integer AS place, field.parts[4]::integer AS count
        FROM fired AS f
        CROSS JOIN LATERAL regexp_split_to_table(snowflake_internal.migration_calls(f.prosrc), E'\n') AS line
        CROSS JOIN LATERAL string_to_array(line, E'\t') AS field (parts)
        WHERE f.is_narrow AND f.has_column AND cardinality(field.parts) = 5 AND field.parts[3] ~ '^[0-9]{1,4}$' AND field.parts[4] ~ '^[0-9]{1,4}$'
          AND (field.parts[5] IN ('new . ' || f.column_code, 'old . ' || f.column_code)
               OR starts_with(field.parts[5], format('coalesce ( new . %s ,', f.column_code))
               OR starts_with(field.parts[5], format('coalesce ( old . %s ,', f.column_code)))
    ), narrow_call AS (
        SELECT c.relation, c.attname, c.object, c.function_name, min(p.oid::regprocedure::text) FILTER (WHERE type.is_narrow) AS signature,
               bool_and(n.nspname = 'pg_catalog') AS is_built_in
        FROM call AS c
        JOIN pg_proc AS p ON p.proname = c.function_name AND c.count BETWEEN p.pronargs - p.pronargdefaults AND p.pronargs
        JOIN pg_namespace AS n ON n.oid = p.pronamespace AND (c.schema_name = '' OR n.nspname = c.schema_name)
        JOIN pg_type AS t ON t.oid = p.proargtypes[c.place - 1]
        CROSS JOIN LATERAL (
            SELECT CASE WHEN t.typtype = 'd' THEN snowflake_internal.migration_base_type(t.oid) ELSE t.oid END
                   IN ('int2'::regtype, 'int4'::regtype) AS is_narrow) AS type
        GROUP BY c.relation, c.attname, c.object, c.function_name, c.place
        -- A bigint is implicitly converted to other types of numbers.
        HAVING bool_or(type.is_narrow) AND NOT bool_or(NOT type.is_narrow AND (t.typtype = 'p' OR t.typcategory = 'N'))
    ), narrow_variable AS (
        SELECT DISTINCT f.relation, f.attname, f.object, found.variable
        FROM fired AS f
        CROSS JOIN LATERAL (
            SELECT m[1] AS variable
            FROM regexp_matches(f.code, format(' ([^ ]+) (?:constant )?(?:int|integer|int4|smallint|int2) (?::=|=|default) (?:new|old) \. %s ', f.column_pattern), 'g') AS m
          UNION
            SELECT m[1]
            FROM regexp_matches(f.code, format(' ([^ ]+) (?::=|=) (?:new|old) \. %s ;', f.column_pattern), 'g') AS m
            WHERE f.code ~ format(' %s (?:constant )?(?:int|integer|int4|smallint|int2) ',
                                  regexp_replace(m[1], '([][\\.*+?(){}|^$])', '\\\1', 'g'))
        ) AS found
        WHERE f.is_narrow AND f.has_column
    ), key_setter AS (
        SELECT DISTINCT f.relation, f.attname, f.object, f.tgfoid,
               strpos(f.code, format(' new . %s is null ', f.column_code)) > 0
               OR strpos(f.code, format(' coalesce ( new . %s ', f.column_code)) > 0 AS is_conditional
        FROM fired AS f
        -- BEFORE INSERT, each row.
        WHERE f.is_key AND f.has_column AND f.tgtype & 7 = 7
          AND strpos(f.code, 'snowflake_nextval') = 0
          AND (f.code ~ format(' (?:;|begin|then|else|loop) new \. %1$s (?::=|=) (?!old \. %1$s )', f.column_pattern)
               OR f.code ~ format(' select [^;]* into (?:strict )?new \. %s ', f.column_pattern))
    ), word_call AS MATERIALIZED (
        SELECT b.oid, m[1] AS word, m[2] AS schema_code, m[3] AS sequence_code
        FROM body AS b
        CROSS JOIN LATERAL regexp_matches(b.code, ' (nextval|currval|setval) \( '' (?:("(?:[^"]|"")*"|[^ "]+) \. )?("(?:[^"]|"")*"|[^ "]+) ''(?= )', 'g') AS m
        WHERE strpos(b.code, 'val ( '' ') > 0
    ), serial_call AS MATERIALIZED (
        SELECT b.oid, m[1] AS word, m[2] AS schema_code, m[3] AS table_code, m[4] AS column_code
        FROM body AS b
        CROSS JOIN LATERAL regexp_matches(b.code,
            ' (nextval|currval|setval) \( (?:pg_catalog \. )?pg_get_serial_sequence \( '' (?:("(?:[^"]|"")*"|[^ "]+) \. )?("(?:[^"]|"")*"|[^ "]+) '' , '' ([^'']+) '' ', 'g') AS m
        WHERE strpos(b.code, ' pg_get_serial_sequence ( ') > 0
    ), last_call AS MATERIALIZED (
        SELECT i.oid, m[1] AS schema_code, m[2] AS table_code
        FROM body AS b
        JOIN inserting AS i ON i.oid = b.oid
        CROSS JOIN LATERAL regexp_matches(i.statement, ' insert into (?:("(?:[^"]|"")*"|[^ "]+) \. )?("(?:[^"]|"")*"|[^ "]+)(?= )', 'g') AS m
        WHERE strpos(b.code, ' lastval ( ) ') > 0
    ), sequence_call AS (
        SELECT DISTINCT s.relation, s.attname, s.sequence, s.is_dropped, c.oid, c.word
        FROM (SELECT w.oid, w.word, s.sequence
              FROM word_call AS w
              JOIN key_sequence AS s ON s.sequence_code = w.sequence_code AND coalesce(w.schema_code, s.schema_code) = s.schema_code
            UNION ALL
              SELECT w.oid, w.word, s.sequence
              FROM serial_call AS w
              JOIN linked_table AS t ON t.table_code = w.table_code AND coalesce(w.schema_code, t.schema_code) = t.schema_code
              JOIN key_sequence AS s ON s.relation = t.relation AND s.column_code = w.column_code
            UNION ALL
              SELECT w.oid, 'lastval', s.sequence
              FROM last_call AS w
              JOIN linked_table AS t ON t.table_code = w.table_code AND coalesce(w.schema_code, t.schema_code) = t.schema_code
              JOIN key_sequence AS s ON s.relation = t.relation) AS c
        JOIN key_sequence AS s ON s.sequence = c.sequence
        WHERE NOT EXISTS (SELECT FROM key_setter AS k WHERE k.tgfoid = c.oid AND k.relation = s.relation)
    )
    SELECT r.relation, NULL::name, r.object,
           'inserts whole rows of this table into another one, which lacks the column that the migration adds',
           'Before the migration, name the columns: INSERT INTO ... (a, b) VALUES (OLD.a, OLD.b).', true, 'shadow'
    FROM row_copy AS r
  UNION ALL
    SELECT DISTINCT t.relation, NULL::name, format('function %s', u.oid::regprocedure),
           CASE u.use WHEN 'copy' THEN format('copies rows of %s by SELECT * or RETURNING *, and the migration adds a column', t.relation)
                ELSE format('inserts into %s without naming its columns, of which the key becomes the last', t.relation) END,
           CASE u.use WHEN 'copy' THEN 'Before the migration, name the columns in both lists.'
                ELSE 'Before the migration, name the columns.' END,
           EXISTS (SELECT FROM hooked AS h WHERE h.tgfoid = u.oid), 'shadow'
    FROM named AS u
    JOIN linked_table AS t ON t.table_code = u.table_code AND coalesce(u.schema_code, t.schema_code) = t.schema_code
    WHERE t.is_narrow
  UNION ALL
    SELECT t.relation, NULL::name, format('function %s', b.oid::regprocedure),
           format('returns rows of %s and names their columns, and the migration adds a column', t.relation),
           'Use SELECT * there, or declare the columns: RETURNS TABLE (...).', false, 'shadow'
    FROM linked_table AS t
    JOIN returning_rows AS b ON b.prorettype = t.reltype
    WHERE b.code ~ ' select ' AND b.code !~ ' (?:select|,|\.) \* '
  UNION ALL
    SELECT c.relation, c.attname, c.object,
           format('passes column %I to %s, which has no form for a bigint', c.attname, c.signature),
           CASE WHEN c.is_built_in THEN format('Before the migration, pass another value, for example hashint8(NEW.%I).', c.attname)
                ELSE 'Before the migration, create that function with bigint (CREATE FUNCTION makes a second one), then drop the one with integer. A bigint parameter also takes integer columns.' END,
           true, 'type'
    FROM narrow_call AS c
  UNION ALL
    SELECT v.relation, v.attname, v.object, format('assigns column %I to the integer variable %s, which cannot hold snowflake IDs', v.attname, v.variable),
           format('Before the migration, declare it as bigint, or as %I%%TYPE.', v.attname), true, 'default'
    FROM narrow_variable AS v
  UNION ALL
    SELECT DISTINCT f.relation, f.attname, f.object, format('(autoinc) requires that column %I is an integer', f.attname),
           'Before the migration, drop the trigger: the default replaces it.', true, 'type'
    FROM fired AS f
    WHERE f.is_autoinc AND f.is_narrow
      -- The arguments, each with a zero byte at its end.
      AND encode(convert_to(f.attname::text, getdatabaseencoding()), 'escape') = ANY (string_to_array(encode(f.tgargs, 'escape'), E'\\000'))
  UNION ALL
    SELECT k.relation, k.attname, k.object,
           CASE WHEN k.is_conditional THEN format('sets column %I where it is NULL: only rows that are inserted with NULL keep old numbers', k.attname)
                ELSE format('sets column %I of each new row itself, so new rows do not get snowflake IDs', k.attname) END,
           'Drop the trigger, or remove that assignment from its function: the default sets the column.', NOT k.is_conditional, 'default'
    FROM key_setter AS k
  UNION ALL
    SELECT c.relation, c.attname, format('function %s', c.oid::regprocedure),
           format('calls %s(%s)%s', c.word, CASE WHEN c.word <> 'lastval' THEN quote_literal(c.sequence::text) END,
                  CASE WHEN c.is_dropped THEN ', and that sequence is dropped with the identity'
                       WHEN c.word = 'nextval' THEN ', which continues to return old numbers'
                       WHEN c.word = 'setval' THEN ', which has no effect on new IDs any more'
                       ELSE ', which does not return the new row''s ID any more' END),
           CASE c.word WHEN 'nextval' THEN 'Call snowflake_nextval() instead, or leave the column to its default.'
                       WHEN 'setval' THEN 'Remove the call after the migration.'
                       ELSE 'Use INSERT ... RETURNING, or snowflake_currval().' END,
           c.is_dropped AND EXISTS (SELECT FROM hooked AS h WHERE h.tgfoid = c.oid), 'default'
    FROM sequence_call AS c
  UNION ALL
    SELECT DISTINCT s.relation, s.attname, format('view %s', w.ev_class::regclass), format('uses sequence %s', s.sequence),
           'Its values are old numbers after the migration.', false, 'default'
    FROM key_sequence AS s
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.sequence AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite AS w ON w.oid = d.objid
$function$;
CREATE FUNCTION snowflake_internal.migration_warn(targets regclass[], column_names name[], online boolean)
RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    most_warnings CONSTANT integer := 50;
    findings jsonb := '[]';
    warnings integer := 0;
    found record;
BEGIN
    BEGIN
        FOR found IN
            SELECT f.* FROM snowflake_internal.migration_findings(targets, column_names, online) AS f
            ORDER BY f.breaks_writes DESC, f.relation::text, f.stage, f.object, f.finding
        LOOP
            findings := findings || jsonb_build_object(
                'relation', found.relation::oid, 'stage', found.stage,
                'note', format('. %s %s: %s', found.object, found.finding, rtrim(found.remedy, '.')));
            warnings := warnings + found.breaks_writes::integer;
            IF found.breaks_writes AND warnings <= most_warnings THEN
                RAISE WARNING '% %', found.object, found.finding
                    USING DETAIL = format(CASE found.stage
                              WHEN 'shadow' THEN 'Writes to %s will fail from the step on that adds a column to it.'
                              WHEN 'type' THEN 'Writes to %s will fail as soon as the column is a bigint.'
                              ELSE 'Writes to %s will fail, or continue to use old numbers, as soon as the column has its new default.' END,
                              found.relation),
                          HINT = found.remedy;
            END IF;
        END LOOP;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'could not search functions and triggers for code that the migration affects: %', SQLERRM;
    END;
    IF warnings > most_warnings THEN
        RAISE WARNING '% more functions and triggers will fail', warnings - most_warnings
            USING HINT = 'The notes of the plan and snowflake_migration_survey() contain all of them.';
    END IF;
    RETURN findings;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_finding_notes(findings jsonb, stage text, relation regclass)
RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(string_agg(f.finding ->> 'note', '' ORDER BY f.place), '')
    FROM jsonb_array_elements(findings) WITH ORDINALITY AS f (finding, place)
    WHERE f.finding ->> 'stage' = stage
      AND (relation IS NULL OR (f.finding ->> 'relation')::oid = relation)
$function$;
CREATE FUNCTION snowflake_internal.migration_online_finding_notes(findings jsonb, statement text)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN strpos(statement, 'snowflake_internal.migration_swap(') > 0
                THEN snowflake_internal.migration_finding_notes(findings, text 'type', NULL)
                     || snowflake_internal.migration_finding_notes(findings, text 'default', NULL)
                ELSE coalesce((
                    SELECT string_agg(snowflake_internal.migration_finding_notes(findings, text 'shadow', r.relation), '')
                    FROM (SELECT DISTINCT (f.finding ->> 'relation')::oid::regclass AS relation
                          FROM jsonb_array_elements(findings) AS f (finding)
                          WHERE f.finding ->> 'stage' = 'shadow') AS r
                    WHERE strpos(statement, format(E'    ALTER TABLE %s\n        ADD COLUMN ', snowflake_internal.migration_name(r.relation))) > 0), '') END
$function$;
CREATE FUNCTION snowflake_internal.migration_words(name name)
RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT regexp_split_to_array(btrim(lower(
        regexp_replace(regexp_replace(name::text, '([a-z0-9])([A-Z])', '\1_\2', 'g'), '([A-Z])([A-Z][a-z])', '\1_\2', 'g')), '_ .-'), '[_ .-]+')
$function$;
CREATE FUNCTION snowflake_internal.migration_singular(word text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN word = 'people' THEN 'person' WHEN word = 'children' THEN 'child'
                WHEN word = 'men' THEN 'man' WHEN word = 'women' THEN 'woman' WHEN word = 'series' THEN 'series'
                WHEN word ~ '[^aeiou]ies$' THEN regexp_replace(word, 'ies$', 'y')
                WHEN word ~ '(ss|sh|ch|x|z)es$' OR word ~ '(us|atus|ias)es$' THEN regexp_replace(word, 'es$', '')
                WHEN word ~ 'indices$' THEN regexp_replace(word, 'ices$', 'ex')
                WHEN word ~ '(ss|us|is)$' THEN word
                ELSE regexp_replace(word, 's$', '') END
$function$;
CREATE FUNCTION snowflake_migration_references(target regclass, column_name name DEFAULT NULL)
RETURNS TABLE (kind text, object text, referencing_column name, data_type text, reason text, statement text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH key AS MATERIALIZED (
        SELECT c.oid AS relation, a.attname, a.attnum, words.words,
               -- The last word as a singular.
               words.words[:cardinality(words.words) - 1]
               || snowflake_internal.migration_singular(words.words[cardinality(words.words)]) AS singular_words,
               snowflake_internal.migration_words(a.attname) AS key_words
        FROM snowflake_internal.migration_column(target, snowflake_migration_references.column_name) AS found (attname)
        JOIN pg_class AS c ON c.oid = target
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = found.attname
        CROSS JOIN LATERAL (SELECT snowflake_internal.migration_words(c.relname) AS words) AS words
    ), linked AS MATERIALIZED (
        SELECT r.relation, r.attribute FROM key CROSS JOIN LATERAL
            snowflake_internal.migration_linked_columns(ARRAY[key.relation::regclass], ARRAY[key.attname]) AS r
    ), form AS MATERIALIZED (
        -- What follows or precedes the table's name: id, or the key's own name.
        SELECT DISTINCT array_to_string(f.words || k.words, '_') AS behind, array_to_string(k.words || f.words, '_') AS ahead
        FROM key
        CROSS JOIN LATERAL (SELECT key.singular_words UNION SELECT key.words) AS f (words)
        CROSS JOIN LATERAL (SELECT ARRAY['id'] UNION SELECT key.key_words) AS k (words)
      UNION
        -- A key that has the table's name in it, as order_id of orders.
        SELECT array_to_string(key.key_words, '_'), NULL FROM key WHERE key.key_words <> ARRAY['id']
    ), candidate AS MATERIALIZED (
        SELECT c.oid AS relation, c.relname, c.relkind, n.nspname, a.attname, a.attnum, a.atttypid, t.typtype,
               format_type(a.atttypid, a.atttypmod) AS type_name,
               t.typelem <> 0 AND t.typlen = -1 AS is_array,
               array_to_string(snowflake_internal.migration_words(a.attname), '_') AS spelled
        FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attinhcount = 0
        JOIN pg_type AS t ON t.oid = a.atttypid
        LEFT JOIN pg_type AS base ON base.oid = t.typbasetype
        WHERE c.relkind IN ('r', 'p', 'f', 'c')
          AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'snowflake_internal') AND n.nspname !~ '^pg_(toast|temp)'
          AND (a.atttypid IN ('int2'::regtype, 'int4'::regtype, '_int2'::regtype, '_int4'::regtype)
               OR base.oid IN ('int2'::regtype, 'int4'::regtype, '_int2'::regtype, '_int4'::regtype))
          AND NOT EXISTS (SELECT FROM linked AS l WHERE l.relation = c.oid AND l.attribute = a.attnum)
          -- A foreign key to another table says what the column holds.
          AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.conkey = ARRAY[a.attnum])
          -- A column with a sequence is a key of its own.
          AND a.attidentity = ''
          AND NOT EXISTS (SELECT FROM snowflake_internal.sequence_columns AS s WHERE s.relation = c.oid AND s.attribute = a.attnum)
    ), found AS (
        SELECT m.*, CASE WHEN m.relkind = 'f' THEN 'foreign table' WHEN m.relkind = 'c' THEN 'composite type'
                         WHEN m.is_array THEN 'array' ELSE 'column' END AS kind,
               format('the name is that of a reference to %s', key.relation::regclass) AS reason
        FROM candidate AS m
        CROSS JOIN key
        WHERE EXISTS (
            SELECT FROM form AS f
            CROSS JOIN LATERAL (SELECT CASE WHEN m.is_array THEN regexp_replace(m.spelled, 's$', '') ELSE m.spelled END) AS name (spelled)
            WHERE name.spelled IN (f.behind, f.ahead)
               OR starts_with(reverse(name.spelled), reverse('_' || f.behind))
               OR replace(name.spelled, '_', '') IN (replace(f.behind, '_', ''), replace(f.ahead, '_', '')))
          AND m.relation <> key.relation
           OR m.relation = key.relation AND m.attnum <> key.attnum
              AND m.spelled ~ '^(parent|previous|prev|next|root|original|source|copied_from|replaces|replaced_by)(_id)?$'
      UNION ALL
        SELECT m.*, 'polymorphic',
               format('%I names the table that the ID is of, which may be %s', type.attname, key.relation::regclass)
        FROM candidate AS m
        CROSS JOIN key
        JOIN pg_attribute AS type ON type.attrelid = m.relation AND type.attnum > 0 AND NOT type.attisdropped
        JOIN pg_type AS t ON t.oid = type.atttypid AND (t.typcategory = 'S' OR t.typtype = 'e')
        WHERE NOT m.is_array AND m.spelled ~ '_id$'
          AND array_to_string(snowflake_internal.migration_words(type.attname), '_') = regexp_replace(m.spelled, '_id$', '_type')
      UNION ALL
        SELECT m.*, 'history',
               format('%s has the columns of %s', m.relation::regclass, key.relation::regclass)
        FROM candidate AS m
        CROSS JOIN key
        WHERE m.attname = key.attname AND m.relation <> key.relation AND m.relkind IN ('r', 'p', 'f') AND NOT m.is_array
          -- The name says so, or it has all columns of the table, with their types.
          AND (m.relname::text ~* '(^|_)(history|histories|hist|audit|audits|archive|archives|archived|log|logs|version|versions|deleted|old|backup|bak|copy)(_|$)'
               AND strpos(array_to_string(snowflake_internal.migration_words(m.relname), '_'),
                          array_to_string(key.singular_words, '_')) > 0
               OR (SELECT count(*) FROM pg_attribute AS own WHERE own.attrelid = key.relation AND own.attnum > 0 AND NOT own.attisdropped) >= 3
                  AND NOT EXISTS (
                      SELECT FROM pg_attribute AS own
                      WHERE own.attrelid = key.relation AND own.attnum > 0 AND NOT own.attisdropped
                        AND NOT EXISTS (SELECT FROM pg_attribute AS copy
                                        WHERE copy.attrelid = m.relation AND copy.attname = own.attname AND NOT copy.attisdropped
                                          AND (copy.atttypid = own.atttypid OR own.attnum = key.attnum))))
          AND NOT EXISTS (SELECT FROM snowflake_internal.migration_table_tree(key.relation::regclass, key.attname) AS f WHERE f.relation = m.relation)
    ), first_found AS (
        SELECT DISTINCT ON (f.relation, f.attnum) f.*
        FROM found AS f
        ORDER BY f.relation, f.attnum, f.kind = 'polymorphic'
    ), parameter AS (
        SELECT p.oid, p.proargnames[a.place] AS name, format_type(a.type, NULL) AS type_name, NULL::text AS trigger_reason
        FROM pg_proc AS p
        JOIN pg_namespace AS n ON n.oid = p.pronamespace
        CROSS JOIN LATERAL unnest(p.proargtypes) WITH ORDINALITY AS a (type, place)
        WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'snowflake_internal') AND n.nspname !~ '^pg_(toast|temp)'
          AND a.type IN ('int2'::regtype, 'int4'::regtype, '_int2'::regtype, '_int4'::regtype)
          -- With OUT parameters, the places differ.
          AND p.proargnames IS NOT NULL AND (p.proallargtypes IS NULL OR p.proargmodes[1:p.pronargs] = array_fill('i'::"char", ARRAY[p.pronargs::integer]))
          AND EXISTS (
              SELECT FROM form AS f
              CROSS JOIN LATERAL (
                  SELECT regexp_replace(array_to_string(snowflake_internal.migration_words(p.proargnames[a.place]::name), '_'),
                                        '^(p|in|i|arg|param|the|v)_', '')) AS name (spelled)
              WHERE CASE WHEN format_type(a.type, NULL) ~ '\[\]$' THEN regexp_replace(name.spelled, 's$', '') ELSE name.spelled END IN (f.behind, f.ahead))
          AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    )
    SELECT f.kind, f.relation::regclass::text, f.attname, f.type_name, f.reason,
           -- A domain has its own type, and a foreign table's rows are elsewhere.
           CASE WHEN f.typtype <> 'd' THEN
               format('ALTER %s %s ALTER %s %I TYPE bigint%s',
                      CASE f.relkind WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END,
                      snowflake_internal.migration_name(f.relation::regclass),
                      CASE f.relkind WHEN 'c' THEN 'ATTRIBUTE' ELSE 'COLUMN' END,
                      f.attname, CASE WHEN f.is_array THEN '[]' ELSE '' END) END
    FROM first_found AS f
  UNION ALL
    SELECT 'function', p.oid::regprocedure::text, p.name::name, p.type_name,
           format('a parameter has the name of a reference to %s: create the function with bigint, then drop this one', key.relation::regclass), NULL
    FROM parameter AS p CROSS JOIN key
  UNION ALL
    SELECT 'function', regexp_replace(f.object, '^function (.*),$', '\1'), f.column_name, NULL, f.finding || '. ' || f.remedy, NULL
    FROM key
    CROSS JOIN LATERAL snowflake_internal.migration_findings(ARRAY[key.relation::regclass], ARRAY[key.attname], false) AS f
    WHERE f.stage = 'type'
    ORDER BY 1, 2, 3
$function$;
CREATE FUNCTION snowflake_internal.migration_expressions(relation regclass, attributes smallint[])
RETURNS TABLE (description text, kind text, expression text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH dependent AS MATERIALIZED (
        SELECT DISTINCT d.classid, d.objid
        FROM pg_depend AS d
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = relation AND d.refobjsubid = ANY (attributes)
    ), indexed AS MATERIALIZED (
        SELECT i.*, format('index %s', i.indexrelid::regclass) AS description, 'index' AS kind
        FROM dependent AS d
        JOIN pg_index AS i ON d.classid = 'pg_class'::regclass AND i.indexrelid = d.objid AND i.indrelid = relation
        WHERE NOT i.indisexclusion AND NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid)
      UNION ALL
        -- The columns are those of the constraint, or of expressions in its index.
        SELECT i.*, format('exclusion constraint %I of %s', k.conname, relation), 'constraint'
        FROM (SELECT DISTINCT CASE WHEN d.classid = 'pg_class'::regclass THEN d.objid ELSE k.conindid END AS index
              FROM dependent AS d
              LEFT JOIN pg_constraint AS k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid AND k.contype = 'x'
              WHERE d.classid = 'pg_class'::regclass OR k.oid IS NOT NULL) AS d
        JOIN pg_index AS i ON i.indexrelid = d.index AND i.indisexclusion AND i.indrelid = relation
        JOIN pg_constraint AS k ON k.conindid = i.indexrelid AND k.contype = 'x'
        WHERE NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid)
    ), keys AS MATERIALIZED (
        SELECT i.indexrelid, i.description, i.kind, k.place, k.attribute, pg_get_indexdef(i.indexrelid, k.place::integer, false) AS expression
        FROM indexed AS i
        CROSS JOIN LATERAL unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (attribute, place)
        WHERE k.place <= i.indnkeyatts
    )
    SELECT format('check constraint %I of %s', k.conname, relation), 'constraint', pg_get_expr(k.conbin, k.conrelid)
    FROM dependent AS d
    JOIN pg_constraint AS k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid AND k.contype = 'c' AND k.coninhcount = 0
  UNION ALL
    SELECT k.description, k.kind, k.expression FROM keys AS k WHERE k.attribute = 0
  UNION ALL
    SELECT i.description, i.kind, pg_get_expr(i.indpred, i.indrelid) FROM indexed AS i WHERE i.indpred IS NOT NULL
  UNION ALL
    SELECT k.description, k.kind, format('%1$s OPERATOR(%2$I.%3$s) %1$s', k.expression, n.nspname, o.oprname)
    FROM keys AS k
    JOIN pg_constraint AS c ON c.conindid = k.indexrelid AND c.contype = 'x'
    JOIN pg_operator AS o ON o.oid = c.conexclop[k.place]
    JOIN pg_namespace AS n ON n.oid = o.oprnamespace
    WHERE k.attribute = 0 OR k.attribute = ANY (attributes)
  UNION ALL
    SELECT format('statistics object %I.%I', n.nspname, x.stxname), 'statistics object', e.expression
    FROM dependent AS d
    JOIN pg_statistic_ext AS x ON d.classid = 'pg_statistic_ext'::regclass AND x.oid = d.objid
    JOIN pg_namespace AS n ON n.oid = x.stxnamespace
    CROSS JOIN LATERAL unnest(pg_get_statisticsobjdef_expressions(x.oid)) AS e (expression)
$function$;
CREATE FUNCTION snowflake_internal.migration_try_expressions(relation regclass, attributes smallint[], expressions text[])
RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    query text;
BEGIN
    SELECT format('SELECT %s FROM (SELECT %s FROM ONLY %s OFFSET 0) AS %I WHERE false',
                  (SELECT string_agg(format('(%s)', e.expression), ', ') FROM unnest(expressions) AS e (expression)),
                  string_agg(CASE WHEN a.attnum = ANY (attributes) THEN format('%1$I::pg_catalog.int8 AS %1$I', a.attname)
                                  ELSE quote_ident(a.attname) END, ', '),
                  snowflake_internal.migration_name(relation),
                  (SELECT c.relname FROM pg_class AS c WHERE c.oid = relation))
    INTO query
    FROM pg_attribute AS a
    WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped;
    PERFORM snowflake_internal.migration_query(relation, query);
    RETURN NULL;
EXCEPTION
    -- An owner who may not read the table may alter it.
    WHEN insufficient_privilege THEN
        RETURN NULL;
    WHEN syntax_error_or_access_rule_violation THEN
        RETURN sqlerrm;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_rebuild_obstacles(targets regclass[], column_names name[])
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    altered record;
    expressions text[];
    found_expression record;
    message text;
    reported text[] := '{}';
BEGIN
    FOR altered IN
        SELECT f.relation, array_agg(DISTINCT f.attribute) AS attributes
        FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        CROSS JOIN LATERAL snowflake_internal.migration_table_tree(r.relation, a.attname) AS f
        WHERE r.is_narrow
        GROUP BY f.relation
        ORDER BY f.relation::text
    LOOP
        -- Whole rows have another type in the query than in the table.
        expressions := ARRAY(
            SELECT DISTINCT e.expression
            FROM snowflake_internal.migration_expressions(altered.relation, altered.attributes) AS e
            WHERE snowflake_internal.migration_rename_columns(e.expression, '{}'::name[], '{}'::name[]) IS NOT NULL);
        CONTINUE WHEN expressions = '{}';
        CONTINUE WHEN snowflake_internal.migration_try_expressions(altered.relation, altered.attributes, expressions) IS NULL;
        FOR found_expression IN
            SELECT e.description, e.kind, e.expression
            FROM snowflake_internal.migration_expressions(altered.relation, altered.attributes) AS e
            WHERE e.expression = ANY (expressions)
            ORDER BY e.description
        LOOP
            message := snowflake_internal.migration_try_expressions(altered.relation, altered.attributes, ARRAY[found_expression.expression]);
            obstacle := format('%s cannot use a bigint column: %s', found_expression.description, message);
            IF message IS NOT NULL AND obstacle <> ALL (reported) THEN
                reported := reported || obstacle;
                remedy := format('Create the function or operator with bigint parameters, which accept integers too. Then create the %s again, so that it uses that one.',
                                 found_expression.kind);
                sqlstate_code := '55000';
                RETURN NEXT;
            END IF;
        END LOOP;
    END LOOP;
    RETURN QUERY
        SELECT DISTINCT format('foreign key %I of %s depends on unique index %s, which includes column %I',
                               k.conname, k.conrelid::regclass, i.indexrelid::regclass, a.attname),
               format('In one transaction: drop the foreign key, replace the index (or its constraint) by one without INCLUDE (%I), and add the foreign key again.', a.attname),
               '55000'
        FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
        JOIN pg_attribute AS n ON n.attrelid = r.relation AND n.attnum = r.attribute
        CROSS JOIN LATERAL snowflake_internal.migration_table_tree(r.relation, n.attname) AS f
        JOIN pg_attribute AS a ON a.attrelid = f.relation AND a.attnum = f.attribute
        JOIN pg_index AS i ON i.indrelid = f.relation AND i.indnatts > i.indnkeyatts
        CROSS JOIN LATERAL unnest(i.indkey::smallint[]) WITH ORDINALITY AS key (attribute, place)
        JOIN pg_constraint AS k ON k.contype = 'f' AND k.conindid = i.indexrelid AND k.conparentid = 0
        WHERE r.is_narrow AND key.attribute = f.attribute AND key.place > i.indnkeyatts;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_lock_needs(targets regclass[], column_names name[])
RETURNS TABLE (relation regclass, locks bigint) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH part AS (
        SELECT r.relation, f.relation AS part, c.relkind, c.reltoastrelid, array_agg(f.attribute) AS attributes
        FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        CROSS JOIN LATERAL snowflake_internal.migration_table_tree(r.relation, a.attname) AS f
        JOIN pg_class AS c ON c.oid = f.relation
        WHERE r.is_narrow
        GROUP BY r.relation, f.relation, c.relkind, c.reltoastrelid
    )
    SELECT p.relation, sum(CASE WHEN p.relkind = 'p' THEN 1 WHEN current_setting('composite_type_mismatch', true) IS NULL THEN 5 ELSE 8 END + CASE WHEN p.reltoastrelid <> 0 THEN 4 ELSE 0 END
               + (SELECT count(*) + 2 * count(*) FILTER (WHERE i.indkey::smallint[] && p.attributes)
                  FROM pg_index AS i WHERE i.indrelid = p.part)
               + (SELECT 3 * count(*) FROM pg_constraint AS k
                  WHERE k.contype = 'f' AND (k.conrelid = p.part AND k.conkey && p.attributes
                                             OR k.confrelid = p.part AND k.confkey && p.attributes))
               -- Tables have such constraints since PostgreSQL 18.
               + (SELECT count(*) FROM pg_constraint AS k WHERE k.contype = 'n' AND k.conrelid = p.part AND k.conkey && p.attributes))::bigint
    FROM part AS p
    GROUP BY p.relation
$function$;
CREATE FUNCTION snowflake_internal.migration_lock_slots()
RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    -- From PostgreSQL 18 on, autovacuum_worker_slots; and 2 more processes.
    SELECT current_setting('max_connections')::bigint + current_setting('max_worker_processes')::bigint
           + current_setting('max_wal_senders')::bigint + current_setting('max_prepared_transactions')::bigint
           + coalesce(current_setting('autovacuum_worker_slots', true)::bigint + 1, current_setting('autovacuum_max_workers')::bigint) + 1
$function$;
CREATE FUNCTION snowflake_internal.migration_lock_obstacles(needed bigint, what text)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('%s needs about %s locks, but the server has room for about %s', what, needed, s.slots * s.per_transaction),
           format('Set max_locks_per_transaction to at least %s in postgresql.conf and restart the server, or detach partitions while the column is widened.',
                  ceil(needed::numeric / s.slots)), '55000'
    FROM (SELECT snowflake_internal.migration_lock_slots() AS slots,
                 current_setting('max_locks_per_transaction')::bigint AS per_transaction) AS s
    WHERE needed > 1.7 * s.slots * s.per_transaction + 520
$function$;
CREATE FUNCTION snowflake_internal.migration_require_locks(targets regclass[], column_names name[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    too_many record;
BEGIN
    SELECT o.* INTO too_many
    FROM (SELECT sum(n.locks)::bigint AS locks FROM snowflake_internal.migration_lock_needs(targets, column_names) AS n) AS n
    CROSS JOIN LATERAL snowflake_internal.migration_lock_obstacles(n.locks, text 'rewriting all tables in one transaction') AS o;
    IF FOUND THEN
        RAISE EXCEPTION 'cannot migrate %', snowflake_internal.migration_key_names(targets, column_names)
            USING ERRCODE = too_many.sqlstate_code, DETAIL = format('%s. %s', too_many.obstacle, too_many.remedy),
                  HINT = 'Nothing was changed. The statements of snowflake_migration_plan() can also be run one by one.';
    END IF;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_role_obstacles(targets regclass[], column_names name[])
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE executor (oid) AS (
        -- Roles that have the privilege, 0 for PUBLIC, and those that inherit it.
        SELECT a.grantee
        FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
        WHERE p.oid = '@extschema@.snowflake_nextval()'::regprocedure AND a.privilege_type = 'EXECUTE'
      UNION
        SELECT m.member
        FROM executor AS e JOIN pg_auth_members AS m ON m.roleid = e.oid
        JOIN pg_roles AS r ON r.oid = m.member
        -- From PostgreSQL 16 on, each membership has its own option.
        WHERE coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, r.rolinherit)
    ), target_table AS MATERIALIZED (
        SELECT DISTINCT key.target, f.relation::oid AS oid
        FROM unnest(targets, column_names) AS key (target, column_name)
        CROSS JOIN LATERAL snowflake_internal.migration_table_tree(key.target, key.column_name) AS f
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
    SELECT format('roles that may insert into %s may not execute snowflake_nextval(): %s%s', n.target,
                  string_agg(n.name, ', ' ORDER BY n.place), CASE WHEN n.total > 20 THEN format(' and %s more', n.total - 20) ELSE '' END),
           format('GRANT EXECUTE ON FUNCTION %s() TO %s.', (
                      SELECT format('%I.%I', s.nspname, p.proname) FROM pg_proc AS p JOIN pg_namespace AS s ON s.oid = p.pronamespace
                      WHERE p.oid = '@extschema@.snowflake_nextval()'::regprocedure),
                  CASE WHEN n.total > 20 THEN 'PUBLIC' ELSE string_agg(n.name, ', ' ORDER BY n.place) END), '42501'
    FROM numbered AS n
    WHERE n.place <= 20
    GROUP BY n.target, n.total
$function$;
CREATE FUNCTION snowflake_internal.migration_compiled_functions(relations regclass[])
RETURNS TABLE (function regprocedure, is_trigger boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH RECURSIVE tree (oid) AS (
        SELECT r.relation::oid FROM unnest(relations) AS r (relation)
      UNION
        SELECT i.inhrelid FROM tree AS t JOIN pg_inherits AS i ON i.inhparent = t.oid
    ), trigger_function AS MATERIALIZED (
        SELECT DISTINCT g.tgfoid AS oid FROM tree AS t JOIN pg_trigger AS g ON g.tgrelid = t.oid AND NOT g.tgisinternal
    ), compiled AS MATERIALIZED (
        SELECT p.oid, lower(p.prosrc) AS source
        FROM pg_proc AS p
        JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname = 'plpgsql'
        WHERE NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    )
    SELECT p.oid::regprocedure, t.oid IS NOT NULL
    FROM compiled AS p
    LEFT JOIN trigger_function AS t ON t.oid = p.oid
    -- Part of another name too: to alter too many functions has no effect.
    WHERE t.oid IS NOT NULL
       OR EXISTS (SELECT FROM pg_class AS c WHERE c.oid = ANY (relations) AND strpos(p.source, lower(c.relname)) > 0)
$function$;
CREATE FUNCTION snowflake_internal.migration_recompile(targets regclass[], column_names name[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- The caller has the rights of the owners of all tables that have changed.
    relations CONSTANT regclass[] := ARRAY(
        SELECT DISTINCT r.relation FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
        JOIN pg_class AS c ON c.oid = r.relation AND pg_has_role(c.relowner, 'USAGE'));
    compiled record;
    left_out text[] := '{}';
BEGIN
    FOR compiled IN
        SELECT f.function, f.is_trigger, p.proowner, p.procost, p.prokind, p.prosecdef
        FROM snowflake_internal.migration_compiled_functions(relations) AS f
        JOIN pg_proc AS p ON p.oid = f.function
        ORDER BY f.function::text
    LOOP
        IF pg_has_role(compiled.proowner, 'USAGE') AND pg_has_role(compiled.proowner, 'MEMBER') THEN
            BEGIN
                PERFORM snowflake_internal.migration_run_as(compiled.proowner,
                    CASE compiled.prokind
                        WHEN 'p' THEN format('ALTER PROCEDURE %s SECURITY %s', compiled.function,
                                             CASE WHEN compiled.prosecdef THEN 'DEFINER' ELSE 'INVOKER' END)
                        ELSE format('ALTER FUNCTION %s COST %s', compiled.function, compiled.procost) END, text '');
                CONTINUE;
            EXCEPTION WHEN OTHERS THEN
                NULL;  -- For example altered or dropped at the same time.
            END;
        END IF;
        -- Any role can create a function whose source contains a name.
        IF compiled.is_trigger THEN
            left_out := left_out || compiled.function::text;
        END IF;
    END LOOP;
    IF left_out <> '{}' THEN
        RAISE WARNING 'sessions that have fired these trigger functions have to reconnect: %', array_to_string(left_out, ', ')
            USING DETAIL = 'Sessions keep the types that columns had when they compiled a PL/pgSQL function.',
                  HINT = 'Altering a function as its owner, for example its COST, makes all sessions compile it again.';
    END IF;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_index_function_obstacles(targets regclass[], column_names name[], online boolean, search_path text)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    built record;
BEGIN
    IF current_setting('server_version_num')::integer < 170000 THEN
        RETURN;
    END IF;
    FOR built IN
        SELECT DISTINCT i.indexrelid, i.indexrelid::regclass AS index, f.relation,
               format('SELECT ROW(%s) FROM ONLY %s LIMIT 10',
                      concat_ws(', ', pg_get_expr(i.indexprs, i.indrelid), pg_get_expr(i.indpred, i.indrelid)),
                      snowflake_internal.migration_name(f.relation)) AS query
        FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        CROSS JOIN LATERAL snowflake_internal.migration_table_tree(r.relation, a.attname) AS f
        JOIN pg_index AS i ON i.indrelid = f.relation AND num_nonnulls(i.indexprs, i.indpred) > 0
        JOIN pg_class AS c ON c.oid = i.indexrelid AND c.relkind = 'i'
        WHERE r.is_narrow
          -- A rewrite builds all indexes, and the online way those that use the column.
          AND (online IS NOT TRUE
               OR EXISTS (SELECT FROM pg_depend AS u WHERE u.classid = 'pg_class'::regclass AND u.objid = i.indexrelid
                            AND u.refclassid = 'pg_class'::regclass AND u.refobjid = f.relation AND u.refobjsubid = f.attribute))
          -- Not where all functions are PostgreSQL's own.
          AND EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                        AND d.refclassid = 'pg_proc'::regclass)
        ORDER BY i.indexrelid
    LOOP
        BEGIN
            PERFORM snowflake_internal.migration_query(built.relation, built.query);
        EXCEPTION WHEN undefined_function OR undefined_table OR undefined_object OR undefined_column OR invalid_schema_name THEN
            RETURN QUERY SELECT
                format('index %s uses a function that finds others by search_path (%s), and PostgreSQL builds indexes with a search path of its own',
                       built.index, SQLERRM),
                coalesce((SELECT string_agg(format('ALTER FUNCTION %s SET search_path = %s', p.oid::regprocedure, migration_index_function_obstacles.search_path), '; ' ORDER BY p.oid)
                          FROM pg_depend AS d JOIN pg_proc AS p ON p.oid = d.refobjid
                          WHERE d.classid = 'pg_class'::regclass AND d.objid = built.indexrelid AND d.refclassid = 'pg_proc'::regclass
                            AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS s WHERE s LIKE 'search_path=%')),
                         'Set search_path for the function') || '.', '55000';
        END;
    END LOOP;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_row_type_users(relations regclass[])
RETURNS TABLE (kind text, rank integer, relation regclass, type oid, class oid, object oid, description text, expression text, remedy text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE row_type (relation, oid) AS (
        -- The types that contain rows of these tables: arrays, domains, ranges, composites.
        SELECT c.oid::regclass, c.reltype FROM pg_class AS c WHERE c.oid = ANY (relations) AND c.reltype <> 0
      UNION
        SELECT t.relation, CASE d.classid WHEN 'pg_type'::regclass THEN d.objid ELSE c.reltype END
        FROM row_type AS t
        JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid
        LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind = 'c'
        WHERE d.classid = 'pg_type'::regclass OR c.reltype IS NOT NULL
    ), reference AS MATERIALIZED (
        SELECT t.relation, t.oid AS type, d.classid, d.objid, d.objsubid, count(*) AS times
        FROM row_type AS t
        JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid AND d.deptype = 'n'
        GROUP BY t.relation, t.oid, d.classid, d.objid, d.objsubid
    ), used (rank, relation, type, class, object, description, expression, remedy) AS (
        SELECT 1, r.relation, r.type, r.classid, r.objid, pg_describe_object('pg_class'::regclass, w.ev_class, 0), w.ev_action::text || coalesce(w.ev_qual::text, ''),
               'Drop it, and create it again after the column is widened: pg_dump --schema-only shows its definition and privileges.'
        FROM reference AS r JOIN pg_rewrite AS w ON w.oid = r.objid AND w.rulename = '_RETURN'
        WHERE r.classid = 'pg_rewrite'::regclass
      UNION ALL
        SELECT 1, r.relation, r.type, r.classid, r.objid, pg_describe_object(r.classid, w.oid, 0), w.ev_action::text || coalesce(w.ev_qual::text, ''),
               'Drop it, and create it again after the column is widened.'
        FROM reference AS r JOIN pg_rewrite AS w ON w.oid = r.objid AND w.rulename <> '_RETURN'
        WHERE r.classid = 'pg_rewrite'::regclass
      UNION ALL
        SELECT 2, r.relation, r.type, r.classid, r.objid, pg_describe_object(r.classid, p.oid, 0), concat(p.polqual::text, p.polwithcheck::text),
               'Drop it, and create it again after the column is widened.'
        FROM reference AS r JOIN pg_policy AS p ON p.oid = r.objid WHERE r.classid = 'pg_policy'::regclass
      UNION ALL
        -- A function depends on a type once for its arguments and its result,
        -- which are allowed, and once more for each of its expressions.
        SELECT 3, r.relation, r.type, r.classid, r.objid, pg_describe_object(r.classid, p.oid, 0), concat(p.proargdefaults::text, p.prosqlbody::text),
               CASE WHEN p.prosqlbody IS NULL THEN 'Create it again without the default of its parameter until the column is widened.'
                    ELSE 'Drop it and create it again after the column is widened, or give it a body in a string and no such default of a parameter.' END
        FROM reference AS r JOIN pg_proc AS p ON p.oid = r.objid
        WHERE r.classid = 'pg_proc'::regclass
          AND r.times > CASE WHEN r.type = p.prorettype OR r.type = ANY (p.proargtypes::oid[]) OR r.type = ANY (p.proallargtypes) THEN 1 ELSE 0 END
      UNION ALL
        -- Partitions have copies of their parent's triggers, indexes and constraints.
        SELECT 4, r.relation, r.type, r.classid, r.objid, pg_describe_object(r.classid, t.oid, 0), t.tgqual::text,
               'Drop it, and create it again after the column is widened.'
        FROM reference AS r JOIN pg_trigger AS t ON t.oid = r.objid AND t.tgparentid = 0
        WHERE r.classid = 'pg_trigger'::regclass
      UNION ALL
        SELECT 5, r.relation, r.type, r.classid, r.objid,
               CASE WHEN k.contypid = 0 THEN pg_describe_object(r.classid, k.oid, 0)
                    ELSE format('constraint %I of domain %s', k.conname, k.contypid::regtype) END,
               k.conbin::text, 'Drop it, and add it again after the column is widened.'
        FROM reference AS r JOIN pg_constraint AS k ON k.oid = r.objid AND (k.conislocal OR k.contypid <> 0)
        WHERE r.classid = 'pg_constraint'::regclass
      UNION ALL
        SELECT 6, r.relation, r.type, r.classid, r.objid, pg_describe_object(r.classid, e.oid, 0), e.adbin::text,
               CASE WHEN a.attgenerated = ''
                    THEN format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT until the column is widened.', e.adrelid::regclass, a.attname)
                    ELSE 'Drop that column, and add it again after the column is widened.' END
        FROM reference AS r JOIN pg_attrdef AS e ON e.oid = r.objid
        JOIN pg_attribute AS a ON a.attrelid = e.adrelid AND a.attnum = e.adnum
        WHERE r.classid = 'pg_attrdef'::regclass
      UNION ALL
        SELECT 7, r.relation, r.type, r.classid, r.objid, pg_describe_object(r.classid, i.indexrelid, 0), concat(i.indexprs::text, i.indpred::text),
               CASE WHEN EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
                    THEN 'Drop its constraint, and add it again after the column is widened.'
                    ELSE 'Drop it, and create it again after the column is widened.' END
        FROM reference AS r JOIN pg_index AS i ON i.indexrelid = r.objid
        WHERE r.classid = 'pg_class'::regclass AND NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid)
      UNION ALL
        SELECT 8, r.relation, r.type, r.classid, r.objid, format('the partition key of %s', p.partrelid::regclass), p.partexprs::text,
               'The partition key cannot be changed: copy the rows to a new table without it.'
        FROM reference AS r JOIN pg_partitioned_table AS p ON p.partrelid = r.objid
        WHERE r.classid = 'pg_class'::regclass AND r.objsubid = 0
      UNION ALL
        SELECT 9, r.relation, r.type, r.classid, r.objid, pg_describe_object(r.classid, x.oid, 0), x.stxexprs::text,
               'Drop it, and create it again after the column is widened.'
        FROM reference AS r JOIN pg_statistic_ext AS x ON x.oid = r.objid WHERE r.classid = 'pg_statistic_ext'::regclass
      UNION ALL
        -- As a function, a domain may use the type as its base and in its default.
        SELECT 10, r.relation, r.type, r.classid, r.objid, format('the default of domain %s', y.oid::regtype), y.typdefaultbin::text,
               format('ALTER DOMAIN %s DROP DEFAULT until the column is widened.', y.oid::regtype)
        FROM reference AS r JOIN pg_type AS y ON y.oid = r.objid AND y.typtype = 'd' AND y.typdefaultbin IS NOT NULL
        WHERE r.classid = 'pg_type'::regclass AND r.times > CASE WHEN y.typbasetype = r.type THEN 1 ELSE 0 END
    )
    SELECT 'column', 0, r.relation, r.type, r.classid, r.objid, format('column %I of %s', a.attname, a.attrelid::regclass), NULL,
           'Give that column another type, or drop it, until the column is widened.'
    FROM reference AS r
    JOIN pg_class AS c ON c.oid = r.objid AND c.relkind IN ('r', 'p', 'm', 'f')
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = r.objsubid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE r.classid = 'pg_class'::regclass
  UNION ALL
    SELECT 'expression', u.* FROM used AS u
$function$;
CREATE FUNCTION snowflake_internal.migration_row_type_obstacles(
    relations regclass[], online boolean DEFAULT false, recreated regclass[] DEFAULT '{}'
) RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH server AS MATERIALIZED (
        SELECT current_setting('composite_type_mismatch', true) IS NOT NULL AS checks_expressions
    ), found AS (
        SELECT DISTINCT u.rank, format('%s uses the row type of %s', u.description, u.relation) AS obstacle, u.remedy
        FROM server CROSS JOIN snowflake_internal.migration_row_type_users(relations) AS u
        WHERE CASE WHEN u.kind = 'column'
                   -- Earlier minor releases do not look at foreign tables.
                   THEN server.checks_expressions OR online
                        OR NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = u.object AND c.relkind = 'f')
                   ELSE server.checks_expressions AND NOT online AND u.class <> ALL (recreated::oid[]) END
      UNION ALL
        -- ROW(...) and constants: their values are those of the columns in order.
        SELECT DISTINCT u.rank, format('%s contains a row of the type of %s', u.description, u.relation), u.remedy
        FROM snowflake_internal.migration_row_type_users(relations) AS u
        WHERE online AND u.kind = 'expression'
          AND u.expression ~ format(':row_typeid %1$s |:consttype %1$s [^{}]*:constisnull false', u.type)
    )
    SELECT f.obstacle, f.remedy, '55000' FROM found AS f ORDER BY f.rank, f.obstacle
$function$;
CREATE FUNCTION snowflake_internal.migration_short_wait()
RETURNS integer LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT greatest(1, least(100, min(CASE s.name WHEN 'deadlock_timeout' THEN s.setting::integer / 2
                                                  ELSE nullif(s.setting::integer, 0) END)))
    FROM pg_settings AS s WHERE s.name IN ('lock_timeout', 'deadlock_timeout')
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_lock_missed(relations regclass[], mode text, begun timestamptz, told timestamptz)
RETURNS timestamptz LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    time_limit CONSTANT interval := snowflake_internal.migration_lock_time_limit();
    wanted text;
    holders text;
BEGIN
    IF clock_timestamp() - told <= interval '5 seconds' AND clock_timestamp() - begun <= time_limit THEN
        RETURN told;
    END IF;
    SELECT string_agg(snowflake_internal.migration_name(r.relation), ', ' ORDER BY r.relation::oid) INTO wanted
    FROM (SELECT DISTINCT given.relation FROM unnest(relations) AS given (relation)) AS r;
    -- A prepared transaction has no process, but a lock on its transaction ID.
    SELECT concat_ws(' and ', 'processes ' || string_agg(DISTINCT l.pid::text, ', '),
                     'prepared transactions ' || string_agg(DISTINCT quote_literal(p.gid), ', '))
    INTO holders
    FROM pg_locks AS l
    LEFT JOIN pg_locks AS x ON l.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid' AND x.granted
                           AND x.virtualtransaction = l.virtualtransaction
    LEFT JOIN pg_prepared_xacts AS p ON p.transaction = x.transactionid
    WHERE l.locktype = 'relation' AND l.relation = ANY (relations) AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
      AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
      AND (migration_lock_missed.mode = 'ACCESS EXCLUSIVE' OR l.mode NOT IN ('AccessShareLock', 'RowShareLock'));
    holders := nullif(holders, '');
    IF clock_timestamp() - begun > time_limit THEN
        RAISE EXCEPTION 'could not lock % within %', wanted, time_limit
            USING ERRCODE = 'lock_not_available',
                  DETAIL = coalesce('Held by ' || holders || '.', 'Other transactions kept locking it.'),
                  HINT = 'See pg_stat_activity for what they are doing'
                         || CASE WHEN holders LIKE '%prepared transactions %'
                                 THEN '. COMMIT PREPARED or ROLLBACK PREPARED ends a prepared transaction' ELSE '' END
                         || '. Run it again when they have ended.';
    END IF;
    RAISE NOTICE 'waiting for a lock on %', wanted
        USING DETAIL = coalesce('Held by ' || holders || '.', 'No process holds it at this moment.');
    RETURN clock_timestamp();
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_lock(relations regclass[], mode text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- The longest time of one attempt for all tables together.
    longest_wait CONSTANT integer := snowflake_internal.migration_short_wait();
    wanted CONSTANT regclass[] := ARRAY(
        SELECT r.relation
        FROM (SELECT DISTINCT given.relation FROM unnest(relations) AS given (relation)) AS r
        ORDER BY r.relation::oid);
    started_at CONSTANT timestamptz := clock_timestamp();
    last_notice_at timestamptz := started_at;
    attempt_started_at timestamptz;
    pause double precision := 0.25;
    table_to_lock regclass;
BEGIN
    IF mode IS NULL OR mode NOT IN ('SHARE ROW EXCLUSIVE', 'ACCESS EXCLUSIVE') THEN
        RAISE EXCEPTION 'invalid lock mode: "%"', mode USING ERRCODE = 'invalid_parameter_value';
    ELSIF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        -- The checks under the lock have to see the present state.
        RAISE EXCEPTION 'a migration requires the isolation level READ COMMITTED'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  DETAIL = format('The isolation level of this transaction is %s.', upper(current_setting('transaction_isolation'))),
                  HINT = 'SET default_transaction_isolation = ''read committed''.';
    END IF;
    LOOP
        BEGIN
            attempt_started_at := clock_timestamp();
            FOREACH table_to_lock IN ARRAY wanted LOOP
                PERFORM set_config('lock_timeout', greatest(1,
                    longest_wait - round(1000 * extract(epoch FROM clock_timestamp() - attempt_started_at)))::integer::text, true);
                PERFORM snowflake_internal.migration_lock_table(table_to_lock, mode);
            END LOOP;
            PERFORM set_config('lock_timeout', longest_wait::text, true);
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            NULL;
        END;
        last_notice_at := snowflake_internal.migration_lock_missed(relations, mode, started_at, last_notice_at);
        PERFORM pg_sleep(pause * (0.5 + random()));
        pause := least(pause * 1.5, 2);
    END LOOP;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_require_owner(target regclass)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relation pg_class;
BEGIN
    SELECT c.* INTO relation FROM pg_class AS c WHERE c.oid = target;
    IF NOT FOUND OR NOT pg_has_role(current_user, relation.relowner, 'USAGE') THEN
        RAISE EXCEPTION 'must be owner of table %', coalesce(relation.relname, target::oid::text)
            USING ERRCODE = 'insufficient_privilege';
    END IF;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_source(target regclass, column_name name)
RETURNS TABLE (kind text, data_type text, expression text, sequence regclass) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(k.kind, 'none'), format_type(a.atttypid, a.atttypmod), pg_get_expr(f.adbin, f.adrelid), k.sequence::regclass
    FROM pg_attribute AS a
    LEFT JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
    LEFT JOIN LATERAL (
        SELECT s.kind, s.sequence FROM snowflake_internal.sequence_columns AS s
        WHERE s.relation = a.attrelid AND s.attribute = a.attnum
        ORDER BY s.sequence
        LIMIT 1
    ) AS k ON true
    WHERE a.attrelid = target AND a.attname = migration_source.column_name
$function$;
CREATE FUNCTION snowflake_internal.migration_owned_sequence(target regclass, column_name name)
RETURNS regclass LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT s.oid::regclass
    FROM pg_attribute AS a
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
                       AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    JOIN pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
    WHERE a.attrelid = target AND a.attname = migration_owned_sequence.column_name
    ORDER BY s.oid
    LIMIT 1
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_is_recorded(target regclass, column_name name)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (
        SELECT FROM snowflake_internal.migration_origin(target, column_name) AS o
        CROSS JOIN LATERAL snowflake_internal.migration_source(o.target, o.column_name) AS s
        LEFT JOIN pg_class AS c ON c.oid = s.sequence
        LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE o.target IS NOT NULL AND o.reverted_at IS NULL
          AND (o.kind, o.default_expression, o.sequence_schema, o.sequence_name)
              IS NOT DISTINCT FROM (s.kind, s.expression, n.nspname, c.relname))
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_record_origin(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    key_column CONSTANT name := snowflake_internal.migration_column(target, column_name);
    first CONSTANT bigint := snowflake_internal.migration_first_id();
    -- No ID is older than this extension. Rows replicated from other servers have
    -- snowflake IDs too. 0 if the layout's epoch is later.
    oldest CONSTANT bigint := @extschema@.snowflake_min_id(timestamptz '2026-01-01 00:00:00+00');
    origin snowflake_internal.origins;
    first_ever bigint;
    source record;
    -- Whether the table's owner owns the sequence.
    is_own boolean;
    last_taken bigint;
    recorded_value bigint;
    next_value bigint;
BEGIN
    PERFORM snowflake_internal.migration_require_owner(target);
    -- One session at a time; rows can still be written. Child tables are not
    -- locked, because only their defaults are read.
    PERFORM snowflake_internal.migration_lock_table(target, text 'SHARE UPDATE EXCLUSIVE');
    IF snowflake_internal.migration_is_switched(target, key_column) THEN
        RETURN;
    END IF;
    SELECT s.* INTO source FROM snowflake_internal.migration_source(target, key_column) AS s;
    is_own := EXISTS (SELECT FROM pg_class AS c JOIN pg_class AS t ON t.relowner = c.relowner
                      WHERE c.oid = source.sequence AND t.oid = target);
    IF source.sequence IS NOT NULL THEN
        -- An unused sequence may have been set to the first value that it is to return.
        SELECT CASE WHEN s.is_called THEN s.last_value END,
               CASE WHEN s.is_called AND is_own THEN s.last_value END,
               CASE WHEN NOT s.is_called AND is_own THEN s.last_value END
        INTO last_taken, recorded_value, next_value
        FROM snowflake_internal.migration_sequence_state(source.sequence, target) AS s;
    END IF;

    origin := snowflake_internal.migration_origin(target, key_column);
    IF snowflake_internal.migration_is_recorded(target, key_column) THEN
        origin.first_id := first;
        origin.sequence_last_value := recorded_value;
        origin.sequence_options := origin.sequence_options || jsonb_build_object('next', next_value);
        PERFORM snowflake_internal.migration_keep_origin(origin);
        RETURN;
    END IF;

    first_ever := origin.first_id_ever;
    SELECT target, key_column, source.kind, source.data_type, source.expression, n.nspname, c.relname,
           CASE WHEN s.seqrelid IS NOT NULL THEN
               jsonb_build_object('type', s.seqtypid::regtype::text, 'start', s.seqstart, 'increment', s.seqincrement,
                   'minimum', s.seqmin, 'maximum', s.seqmax, 'cache', s.seqcache, 'cycle', s.seqcycle, 'next', next_value) END,
           recorded_value,
           (SELECT jsonb_agg(jsonb_build_object('grantee', CASE a.grantee WHEN 0 THEN NULL ELSE pg_get_userbyid(a.grantee) END,
                                                'privilege', a.privilege_type, 'grantable', a.is_grantable))
            FROM aclexplode(c.relacl) AS a WHERE a.grantee <> c.relowner),
           obj_description(c.oid, 'pg_class'),
           (SELECT jsonb_agg(jsonb_build_object('schema', fn.nspname, 'name', fc.relname, 'default', pg_get_expr(d.adbin, d.adrelid)))
            FROM snowflake_internal.migration_table_tree(target, key_column) AS f
            JOIN pg_class AS fc ON fc.oid = f.relation
            JOIN pg_namespace AS fn ON fn.oid = fc.relnamespace
            LEFT JOIN pg_attrdef AS d ON d.adrelid = f.relation AND d.adnum = f.attribute
            WHERE f.relation <> target AND pg_get_expr(d.adbin, d.adrelid) IS DISTINCT FROM source.expression),
           coalesce(first_ever, CASE WHEN oldest > coalesce(last_taken, 0) THEN least(oldest, first) ELSE first END), first,
           now(), NULL::timestamptz
    INTO origin.target, origin.column_name, origin.kind, origin.data_type, origin.default_expression,
         origin.sequence_schema, origin.sequence_name, origin.sequence_options, origin.sequence_last_value,
         origin.sequence_privileges, origin.sequence_comment, origin.child_defaults,
         origin.first_id_ever, origin.first_id, origin.remembered_at, origin.reverted_at
    FROM (SELECT) AS one_row
    LEFT JOIN pg_class AS c ON c.oid = source.sequence
    LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_sequence AS s ON s.seqrelid = c.oid;
    PERFORM snowflake_internal.migration_keep_origin(origin);
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_record_reverted(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    origin snowflake_internal.origins;
BEGIN
    PERFORM snowflake_internal.migration_require_owner(target);
    IF snowflake_internal.migration_is_switched(target, column_name) THEN
        RAISE EXCEPTION 'column "%" still has snowflake_nextval() as its default', column_name
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Use snowflake_migrate_revert() to restore its sequence.';
    END IF;
    origin := snowflake_internal.migration_origin(target, column_name);
    IF origin.target IS NOT NULL THEN
        origin.reverted_at := now();
        PERFORM snowflake_internal.migration_keep_origin(origin);
    END IF;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_id_indexes(target regclass, column_name name)
RETURNS TABLE (relation regclass, is_indexed boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT f.relation,
           EXISTS (SELECT FROM pg_index AS i
                   JOIN pg_class AS x ON x.oid = i.indexrelid
                   JOIN pg_am AS m ON m.oid = x.relam AND m.amname = 'btree'
                   JOIN pg_opclass AS o ON o.oid = i.indclass[0] AND o.opcdefault
                   WHERE i.indrelid = f.relation AND i.indkey[0] = f.attribute AND i.indisvalid AND i.indpred IS NULL)
    FROM snowflake_internal.migration_table_tree(target, column_name) AS f
    JOIN pg_class AS c ON c.oid = f.relation AND c.relkind <> 'p'
$function$;
CREATE FUNCTION snowflake_internal.migration_extreme_id(
    target regclass, column_name name, aggregate text, condition text, indexed_only boolean, search_path text
) RETURNS bigint LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    indexed regclass[];
    is_complete boolean;
    relation regclass;
    found bigint;
    extreme bigint;
BEGIN
    IF aggregate IS NULL OR aggregate NOT IN ('max', 'min') THEN
        RAISE EXCEPTION 'invalid aggregate: "%"', aggregate USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF indexed_only THEN
        SELECT array_agg(i.relation) FILTER (WHERE i.is_indexed), bool_and(i.is_indexed) INTO indexed, is_complete
        FROM snowflake_internal.migration_id_indexes(target, column_name) AS i;
    END IF;
    IF coalesce(is_complete, true) THEN
        RETURN (snowflake_internal.migration_query(target, format('SELECT pg_catalog.%s(%I) FROM %s WHERE %s', aggregate, column_name,
            snowflake_internal.migration_name(target), condition), search_path))[1]::bigint;
    END IF;
    FOREACH relation IN ARRAY coalesce(indexed, '{}') LOOP
        found := (snowflake_internal.migration_query(relation, format('SELECT pg_catalog.%s(%I) FROM ONLY %s WHERE %s', aggregate, column_name,
            snowflake_internal.migration_name(relation), condition), search_path))[1]::bigint;
        extreme := CASE aggregate WHEN 'max' THEN greatest(extreme, found) ELSE least(extreme, found) END;
    END LOOP;
    RETURN extreme;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_row_obstacles(
    target regclass, column_name name, search_path text DEFAULT NULL, is_locked boolean DEFAULT false
) RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    first CONSTANT bigint := snowflake_internal.migration_first_id();
    highest bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute AS a
                   WHERE a.attrelid = target AND a.attname = migration_row_obstacles.column_name
                     AND snowflake_internal.migration_base_type(a.atttypid) = 'int8'::regtype)
    THEN
        RETURN;
    END IF;
    highest := snowflake_internal.migration_extreme_id(target, column_name, text 'max', text 'true', is_locked, search_path);
    IF highest >= first THEN
        RETURN QUERY SELECT
            format('%s has IDs that are not below the first snowflake ID: the largest is %s, snowflake IDs would begin at %s',
                   target, highest, first),
            'New IDs could equal existing ones. If these rows have just been replicated from another server, run it again. Otherwise give them smaller IDs, or use a layout with an earlier epoch.', '55000';
    ELSIF is_locked AND EXISTS (SELECT FROM snowflake_internal.migration_id_indexes(target, column_name) AS i WHERE NOT i.is_indexed) THEN
        RETURN QUERY
            SELECT format('sequence %s has reached %s, but snowflake IDs would begin at %s', s.sequence, q.last_value, first),
                   'Set it below the first snowflake ID (setval), and run it again.', '55000'
            FROM snowflake_internal.migration_source(target, column_name) AS s
            CROSS JOIN LATERAL snowflake_internal.migration_sequence_state(s.sequence, target) AS q
            WHERE s.sequence IS NOT NULL AND q.last_value >= first;
    END IF;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_check_rows(
    target regclass, column_name name, search_path text DEFAULT NULL, is_locked boolean DEFAULT false
) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    obstacles text;
BEGIN
    SELECT string_agg(format('%s. %s', o.obstacle, o.remedy), E'\n') INTO obstacles
    FROM snowflake_internal.migration_row_obstacles(target, column_name, search_path, is_locked) AS o;
    IF obstacles IS NOT NULL THEN
        RAISE EXCEPTION 'cannot migrate column "%" of %', column_name, target
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = obstacles,
                  HINT = 'Nothing was changed by this statement.';
    END IF;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_foreign_key_triggers(relations regclass[])
RETURNS TABLE (foreign_key oid, relation regclass, trigger_name name, function_oid oid, state text, is_copy boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE copy (root, oid) AS (
        SELECT k.oid, k.oid FROM pg_constraint AS k
        WHERE k.contype = 'f' AND k.conparentid = 0 AND (k.conrelid = ANY (relations) OR k.confrelid = ANY (relations))
      UNION ALL
        SELECT copy.root, k.oid FROM copy JOIN pg_constraint AS k ON k.conparentid = copy.oid AND k.contype = 'f'
    )
    SELECT copy.root, t.tgrelid::regclass, t.tgname, t.tgfoid, t.tgenabled::text, t.tgparentid <> 0
    FROM copy JOIN pg_trigger AS t ON t.tgconstraint = copy.oid AND t.tgisinternal
$function$;
CREATE FUNCTION snowflake_internal.migration_trigger_states(relations regclass[])
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT jsonb_agg(jsonb_build_object('table', k.conrelid, 'foreign_key', k.conname, 'relation', t.relation::oid,
                                        'function', t.function_oid, 'state', t.state)
                     -- On 15, setting that of a partitioned table sets those of its partitions.
                     ORDER BY t.is_copy, t.relation::oid, t.function_oid)
    FROM snowflake_internal.migration_foreign_key_triggers(relations) AS t
    JOIN pg_constraint AS k ON k.oid = t.foreign_key
    WHERE EXISTS (SELECT FROM snowflake_internal.migration_foreign_key_triggers(relations) AS changed
                  WHERE changed.foreign_key = t.foreign_key AND changed.state <> 'O')
$function$;
CREATE FUNCTION snowflake_internal.migration_restore_trigger_states(states jsonb)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    changed record;
BEGIN
    IF NOT (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user) THEN
        RETURN;
    END IF;
    FOR changed IN
        SELECT t.relation, t.trigger_name, e ->> 'state' AS state
        FROM jsonb_array_elements(states) WITH ORDINALITY AS s (e, place)
        JOIN pg_constraint AS k ON k.contype = 'f' AND k.conparentid = 0
                               AND k.conrelid = (e ->> 'table')::oid AND k.conname = e ->> 'foreign_key'
        CROSS JOIN LATERAL snowflake_internal.migration_foreign_key_triggers(ARRAY[k.conrelid::regclass]) AS t
        WHERE t.foreign_key = k.oid AND t.relation = (e ->> 'relation')::oid AND t.function_oid = (e ->> 'function')::oid
        ORDER BY s.place
    LOOP
        PERFORM snowflake_internal.migration_set_trigger_state(changed.relation, changed.trigger_name, changed.state);
    END LOOP;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_copy_trigger_states(relation regclass, foreign_key name, copied_to name)
RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_internal.migration_restore_trigger_states((
        SELECT jsonb_agg(e || jsonb_build_object('foreign_key', copied_to) ORDER BY s.place)
        FROM jsonb_array_elements(snowflake_internal.migration_trigger_states(ARRAY[relation])) WITH ORDINALITY AS s (e, place)
        WHERE e ->> 'foreign_key' = foreign_key AND (e ->> 'table')::oid = relation))
$function$;
CREATE FUNCTION snowflake_internal.migration_orphans_query(foreign_key oid)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('SELECT r.* FROM %s%s AS r WHERE (%s) AND NOT EXISTS (SELECT FROM %s%s AS k WHERE %s)',
                  CASE WHEN c.relkind = 'p' THEN '' ELSE 'ONLY ' END, snowflake_internal.migration_name(k.conrelid::regclass),
                  string_agg(format('r.%I IS NOT NULL', f.attname), CASE k.confmatchtype WHEN 'f' THEN ' OR ' ELSE ' AND ' END ORDER BY key.place),
                  CASE WHEN p.relkind = 'p' THEN '' ELSE 'ONLY ' END, snowflake_internal.migration_name(k.confrelid::regclass),
                  string_agg(format('k.%I OPERATOR(%I.%s) r.%I', pa.attname, n.nspname, o.oprname, f.attname), ' AND ' ORDER BY key.place))
    FROM pg_constraint AS k
    JOIN pg_class AS c ON c.oid = k.conrelid
    JOIN pg_class AS p ON p.oid = k.confrelid
    CROSS JOIN LATERAL ROWS FROM (unnest(k.conkey), unnest(k.confkey), unnest(k.conpfeqop))
        WITH ORDINALITY AS key (referencing, referenced, operator, place)
    JOIN pg_attribute AS f ON f.attrelid = k.conrelid AND f.attnum = key.referencing
    JOIN pg_attribute AS pa ON pa.attrelid = k.confrelid AND pa.attnum = key.referenced
    JOIN pg_operator AS o ON o.oid = key.operator
    JOIN pg_namespace AS n ON n.oid = o.oprnamespace
    WHERE k.oid = foreign_key
    GROUP BY k.oid, k.conrelid, k.confrelid, k.confmatchtype, c.relkind, p.relkind
$function$;
CREATE FUNCTION snowflake_internal.migration_foreign_key_obstacles(targets regclass[], column_names name[], search_path text DEFAULT NULL)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    is_superuser CONSTANT boolean := (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user);
    relations regclass[];
    checked record;
    query text;
BEGIN
    relations := ARRAY(
        SELECT DISTINCT f.relation
        FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        CROSS JOIN LATERAL snowflake_internal.migration_table_tree(r.relation, a.attname) AS f
        WHERE r.is_narrow);
    FOR checked IN
        -- Those that have a narrow column on either side.
        SELECT k.oid, k.conname, k.conrelid::regclass AS relation, k.confrelid::regclass AS referenced, k.convalidated,
               c.relowner, p.relowner AS referenced_owner
        FROM pg_constraint AS k
        JOIN pg_class AS c ON c.oid = k.conrelid
        JOIN pg_class AS p ON p.oid = k.confrelid
        WHERE k.oid IN (SELECT t.foreign_key FROM snowflake_internal.migration_foreign_key_triggers(relations) AS t WHERE t.state <> 'O')
          AND EXISTS (SELECT FROM pg_attribute AS a
                      WHERE (a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey) OR a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey))
                        AND a.attrelid = ANY (relations)
                        AND snowflake_internal.migration_base_type(a.atttypid) IN ('int2'::regtype, 'int4'::regtype))
        ORDER BY k.conrelid::regclass::text, k.conname
    LOOP
        IF NOT is_superuser THEN
            RETURN QUERY SELECT
                format('triggers of foreign key %I of %s are disabled, and would be enabled', checked.conname, checked.relation),
                format('Only a superuser can disable them again: run it as a superuser, or first enable them (ALTER TABLE %s ENABLE TRIGGER ALL, and %s).',
                       checked.relation, checked.referenced), '42501';
        END IF;
        -- PostgreSQL does not check the rows of a foreign key that is NOT VALID.
        CONTINUE WHEN NOT checked.convalidated;
        query := snowflake_internal.migration_orphans_query(checked.oid);
        -- Run by an owner who may read both tables.
        CONTINUE WHEN NOT (has_table_privilege(checked.relowner, checked.referenced, 'SELECT')
                           OR has_table_privilege(checked.referenced_owner, checked.relation, 'SELECT'));
        IF snowflake_internal.migration_query(
            CASE WHEN has_table_privilege(checked.relowner, checked.referenced, 'SELECT') THEN checked.relation ELSE checked.referenced END,
            format('SELECT 1 FROM (%s) AS orphan LIMIT 1', query), search_path) IS NOT NULL
        THEN
            RETURN QUERY SELECT
                format('rows of %s violate foreign key %I, whose triggers are disabled', checked.relation, checked.conname),
                format('Delete or correct them, or drop the foreign key and add it again NOT VALID afterwards. This shows them: %s.', query), '55000';
        END IF;
    END LOOP;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_path_argument()
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT 'pg_catalog.current_setting(''search_path''::pg_catalog.text)'
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_do_block(body text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN strpos(block.text, '$do$') = 0 THEN format(E'DO $do$%s$do$', block.text)
                ELSE format('DO %L', block.text) END
    FROM (SELECT CASE WHEN strpos(body, 'snowflake_internal.migration_lock(') = 0 THEN format(E'\nBEGIN\n%sEND\n', body)
                      ELSE format(E'\nDECLARE\n    former_timeout CONSTANT pg_catalog.text := pg_catalog.current_setting(''lock_timeout''::pg_catalog.text);\nBEGIN\n%s'
                                  '    PERFORM pg_catalog.set_config(''lock_timeout''::pg_catalog.text, former_timeout, true);\nEND\n', body) END) AS block (text)
$function$;
CREATE FUNCTION snowflake_internal.migration_column_options(options text[])
RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT array_agg(o.option ORDER BY o.place)
    FROM unnest(options) WITH ORDINALITY AS o (option, place)
    WHERE NOT starts_with(o.option, 'pg_')
$function$;
CREATE FUNCTION snowflake_internal.migration_uses_other_code(catalog regclass, original oid, counterpart oid)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH used AS MATERIALIZED (
        SELECT d.objid, d.refclassid, coalesce(p.proname, o.oprname) AS name, coalesce(p.pronamespace, o.oprnamespace) AS schema
        FROM pg_depend AS d
        LEFT JOIN pg_proc AS p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
        LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
        WHERE d.classid = catalog AND d.objid IN (original, counterpart) AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
    )
    SELECT EXISTS (SELECT FROM used AS u
                   WHERE u.objid = counterpart
                     AND NOT EXISTS (SELECT FROM used AS e
                                     WHERE e.objid = original AND (e.refclassid, e.name, e.schema) = (u.refclassid, u.name, u.schema)))
$function$;
CREATE FUNCTION snowflake_internal.migration_may_become(role oid, other oid)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT pg_has_role(role, other, 'USAGE')
       AND pg_has_role(role, other, CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END)
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_publications(target regclass, column_name name)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT string_agg(DISTINCT quote_ident(p.pubname), ', ')
    FROM snowflake_internal.migration_table_tree(target, column_name) AS f
    JOIN pg_class AS c ON c.oid = f.relation
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_publication_tables AS p ON p.schemaname = n.nspname AND p.tablename = c.relname
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_lacks_statistics(target regclass, column_name name)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (
        SELECT FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = migration_lacks_statistics.column_name
        WHERE c.oid = target AND a.attstattarget IS DISTINCT FROM 0
          AND has_column_privilege(c.oid, a.attnum, 'SELECT') AND NOT row_security_active(c.oid)
          AND NOT EXISTS (SELECT FROM pg_stats AS s
                          WHERE s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname)
          AND EXISTS (SELECT FROM snowflake_internal.migration_table_tree(target, a.attname) AS f
                      JOIN pg_class AS m ON m.oid = f.relation
                      -- -1 means unknown, as after some rewrites; 0 was counted.
                      WHERE m.relkind = 'r' AND m.reltuples <> 0 AND pg_relation_size(m.oid) > 0))
$function$;
CREATE FUNCTION snowflake_internal.migration_statistics_targets(tables regclass[])
RETURNS TABLE (relation regclass, statement text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT i.indrelid::regclass, format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS %s',
                                        snowflake_internal.migration_name(i.indexrelid::regclass), a.attnum, a.attstattarget)
    FROM pg_index AS i
    JOIN pg_attribute AS a ON a.attrelid = i.indexrelid AND a.attstattarget >= 0
    WHERE i.indrelid = ANY (tables) AND NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid)
  UNION ALL
    SELECT x.stxrelid::regclass, format('ALTER STATISTICS %I.%I SET STATISTICS %s', n.nspname, x.stxname, x.stxstattarget)
    FROM pg_statistic_ext AS x JOIN pg_namespace AS n ON n.oid = x.stxnamespace
    WHERE x.stxrelid = ANY (tables) AND x.stxstattarget >= 0
$function$;
CREATE FUNCTION snowflake_internal.migration_has_derived_statistics(target regclass, column_name name)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (
        SELECT FROM snowflake_internal.migration_table_tree(target, column_name) AS f
        -- Without statistics of the column itself, PostgreSQL has no extended ones either,
        -- and ANALYZE warns of that.
        JOIN pg_attribute AS t ON t.attrelid = f.relation AND t.attnum = f.attribute AND t.attstattarget IS DISTINCT FROM 0
        JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.relation AND d.refobjsubid = f.attribute
        WHERE d.classid = 'pg_statistic_ext'::regclass
           OR d.classid = 'pg_class'::regclass
              AND EXISTS (SELECT FROM pg_index AS i WHERE i.indexrelid = d.objid AND i.indrelid = f.relation AND i.indexprs IS NOT NULL))
$function$;
CREATE FUNCTION snowflake_internal.migration_run_all(
    relations regclass[], statements text[], roles oid[] DEFAULT NULL, search_path text DEFAULT NULL
)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    FOR i IN 1 .. coalesce(cardinality(statements), 0) LOOP
        IF roles[i] IS NULL THEN
            PERFORM snowflake_internal.migration_run(relations[i], statements[i],
                CASE WHEN strpos(statements[i], ' SET DEFAULT ') = 0 THEN search_path END);
        ELSE
            PERFORM snowflake_internal.migration_run_as(roles[i], statements[i], NULL);
        END IF;
    END LOOP;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_dependent_node(class oid, object oid, OUT node_class oid, OUT node oid)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT coalesce((SELECT 'pg_class'::regclass::oid FROM pg_rewrite AS w WHERE w.oid = object AND w.rulename = '_RETURN' AND class = 'pg_rewrite'::regclass), class),
           coalesce((SELECT w.ev_class FROM pg_rewrite AS w WHERE w.oid = object AND w.rulename = '_RETURN' AND class = 'pg_rewrite'::regclass), object)
$function$;
CREATE FUNCTION snowflake_internal.migration_direct_dependents(relations regclass[], column_names name[])
RETURNS TABLE (relation regclass, class oid, object oid) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT DISTINCT given.relation, n.node_class, n.node
    FROM unnest(relations, column_names) AS given (relation, column_name)
    CROSS JOIN LATERAL snowflake_internal.migration_table_tree(given.relation, given.column_name) AS f
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.relation AND d.refobjsubid = f.attribute
    CROSS JOIN LATERAL snowflake_internal.migration_dependent_node(d.classid, d.objid) AS n
    WHERE d.classid IN ('pg_rewrite'::regclass, 'pg_policy'::regclass, 'pg_proc'::regclass)
       OR d.classid = 'pg_trigger'::regclass AND EXISTS (SELECT FROM pg_trigger AS t WHERE t.oid = d.objid AND NOT t.tgisinternal)
$function$;
CREATE FUNCTION snowflake_internal.migration_dependents(relations regclass[], column_names name[])
RETURNS TABLE (
    place integer, kind text, class oid, object oid, relation regclass, owner oid, schema oid, identity text, is_extended boolean
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH RECURSIVE edge (above_class, above, class, object) AS (
        SELECT 0::oid, 0::oid, n.class, n.object FROM snowflake_internal.migration_direct_dependents(relations, column_names) AS n
      UNION
        SELECT e.class, e.object, n.node_class, n.node
        FROM edge AS e
        JOIN pg_depend AS d ON d.refclassid = e.class AND d.refobjid = e.object
        CROSS JOIN LATERAL snowflake_internal.migration_dependent_node(d.classid, d.objid) AS n
        WHERE (n.node_class, n.node) <> (e.class, e.object)
    ), node AS MATERIALIZED (
        SELECT DISTINCT e.class, e.object FROM edge AS e
    ), path (class, object, length) AS (
        SELECT e.class, e.object, 1 FROM edge AS e WHERE e.above = 0
      UNION
        SELECT e.class, e.object, p.length + 1
        FROM path AS p JOIN edge AS e ON e.above_class = p.class AND e.above = p.object
        -- Without a circle, no path is longer than the number of nodes.
        WHERE p.length <= 2 * (SELECT count(*) FROM node)
    ), placed AS (
        SELECT p.class, p.object, CASE WHEN max(p.length) <= (SELECT count(*) FROM node) THEN max(p.length) END AS place
        FROM path AS p GROUP BY p.class, p.object
    )
    SELECT p.place,
           CASE WHEN p.class = 'pg_class'::regclass
                THEN CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
                                    WHEN 'i' THEN CASE t.relkind WHEN 'm' THEN 'index' WHEN 't' THEN NULL ELSE 'other' END
                                    WHEN 't' THEN NULL ELSE 'other' END
                WHEN p.class = 'pg_rewrite'::regclass THEN 'rule'
                WHEN p.class = 'pg_policy'::regclass THEN 'policy'
                WHEN p.class = 'pg_trigger'::regclass THEN CASE WHEN g.tgisinternal THEN 'other' WHEN g.tgparentid <> 0 THEN 'trigger of a partition' ELSE 'trigger' END
                WHEN p.class = 'pg_proc'::regclass THEN CASE WHEN f.prokind = 'a' THEN 'other' ELSE 'function' END
                WHEN p.class = 'pg_attrdef'::regclass AND t.relkind = 'v' THEN 'default'
                WHEN p.class = 'pg_statistic_ext'::regclass AND t.relkind = 'm' THEN 'statistics'
                WHEN p.class = 'pg_type'::regclass
                     AND EXISTS (SELECT FROM pg_type AS y JOIN pg_type AS e ON e.oid IN (y.oid, y.typelem) JOIN pg_class AS v ON v.oid = e.typrelid
                                 WHERE y.oid = p.object AND y.typtype IN ('c', 'b') AND v.relkind IN ('v', 'm')) THEN NULL
                -- That of a constraint trigger.
                WHEN p.class = 'pg_constraint'::regclass AND EXISTS (SELECT FROM pg_constraint AS k WHERE k.oid = p.object AND k.contype = 't') THEN NULL
                ELSE 'other' END,
           p.class, p.object, coalesce(t.oid, c.oid)::regclass,
           coalesce(x.stxowner, f.proowner, t.relowner, c.relowner), coalesce(x.stxnamespace, f.pronamespace, c.relnamespace, t.relnamespace),
           i.type || ' ' || i.identity,
           EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = p.class AND d.objid = p.object AND d.deptype = 'e')
    FROM placed AS p
    LEFT JOIN pg_class AS c ON p.class = 'pg_class'::regclass AND c.oid = p.object
    LEFT JOIN pg_index AS ix ON ix.indexrelid = c.oid
    LEFT JOIN pg_rewrite AS w ON p.class = 'pg_rewrite'::regclass AND w.oid = p.object
    LEFT JOIN pg_policy AS o ON p.class = 'pg_policy'::regclass AND o.oid = p.object
    LEFT JOIN pg_trigger AS g ON p.class = 'pg_trigger'::regclass AND g.oid = p.object
    LEFT JOIN pg_attrdef AS q ON p.class = 'pg_attrdef'::regclass AND q.oid = p.object
    LEFT JOIN pg_statistic_ext AS x ON p.class = 'pg_statistic_ext'::regclass AND x.oid = p.object
    LEFT JOIN pg_proc AS f ON p.class = 'pg_proc'::regclass AND f.oid = p.object
    LEFT JOIN pg_class AS t ON t.oid = coalesce(ix.indrelid, w.ev_class, o.polrelid, g.tgrelid, q.adrelid, x.stxrelid)
    CROSS JOIN LATERAL pg_identify_object(p.class, p.object, 0) AS i
$function$;
CREATE FUNCTION snowflake_internal.migration_dependent_relations(relations regclass[], column_names name[])
RETURNS regclass[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT ARRAY(
        SELECT d.relation
        FROM snowflake_internal.migration_dependents(relations, column_names) AS d
        JOIN pg_class AS c ON c.oid = d.relation AND c.relkind IN ('r', 'p', 'v', 'm')
        WHERE d.kind <> 'other'
        GROUP BY d.relation
        ORDER BY max(d.place) DESC NULLS FIRST, d.relation::oid)
$function$;
CREATE FUNCTION snowflake_internal.migration_dependents_note(relations regclass[], column_names name[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT 'drops and re-creates ' || string_agg(
               d.identity || CASE WHEN d.kind = 'materialized view' THEN (SELECT CASE WHEN c.relispopulated
                   THEN format(' with its data (%s now)', pg_size_pretty(pg_total_relation_size(c.oid))) ELSE ' without data' END
                   FROM pg_class AS c WHERE c.oid = d.object) ELSE '' END, ', ' ORDER BY d.place, d.identity)
    FROM snowflake_internal.migration_dependents(relations, column_names) AS d
    WHERE d.kind NOT IN ('other', 'trigger of a partition', 'index', 'default', 'statistics')
$function$;
CREATE FUNCTION snowflake_internal.migration_dependent_obstacles(relations regclass[], column_names name[])
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH dependent AS MATERIALIZED (
        SELECT d.*, pg_get_userbyid(d.owner) AS owner_name,
               -- From PostgreSQL 16 on, a member may lack the right to become a role.
               pg_has_role(d.owner, 'USAGE')
                   AND pg_has_role(d.owner, CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END) AS is_own
        FROM snowflake_internal.migration_dependents(relations, column_names) AS d
        WHERE d.kind IS NOT NULL
    ), granted AS MATERIALIZED (
        SELECT DISTINCT d.identity, g.grantor
        FROM dependent AS d
        LEFT JOIN pg_class AS c ON d.class = 'pg_class'::regclass AND c.oid = d.object
        LEFT JOIN pg_proc AS f ON d.class = 'pg_proc'::regclass AND f.oid = d.object
        CROSS JOIN LATERAL (
            SELECT x.grantor FROM aclexplode(coalesce(c.relacl, f.proacl)) AS x
          UNION
            SELECT x.grantor FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(a.attacl) AS x WHERE a.attrelid = c.oid
        ) AS g
        WHERE d.kind <> 'other' AND g.grantor <> d.owner
    ), found (rank, obstacle, remedy, code) AS (
        SELECT 1, format('%s cannot be dropped and created again, but depends on the column or on a view of it', d.identity),
               'Drop it, and create it again after the column is widened.', '55000'
        FROM dependent AS d WHERE d.kind = 'other'
      UNION ALL
        SELECT 1, format('%s belongs to an extension', d.identity),
               'Drop the extension, and create it again after the column is widened.', '55000'
        FROM dependent AS d WHERE d.is_extended
      UNION ALL
        SELECT 2, format('%s depends on itself through other views or functions', d.identity),
               'Drop it, and create it again after the column is widened.', '55000'
        FROM dependent AS d WHERE d.place IS NULL AND d.kind <> 'other'
      UNION ALL
        SELECT 3, format('%s belongs to the temporary schema of another session', d.identity),
               'Wait until that session has ended.', '55000'
        FROM dependent AS d WHERE d.kind <> 'other' AND pg_is_other_temp_schema(d.schema)
      UNION ALL
        SELECT 3, format('%s is temporary and belongs to role %I', d.identity, d.owner_name),
               'Drop it, or run the migration as that role.', '55000'
        FROM dependent AS d
        WHERE d.kind IN ('view', 'function') AND d.schema = pg_my_temp_schema() AND d.owner_name <> current_user
      UNION ALL
        SELECT 4, format('index %s is not valid', d.object::regclass), 'Drop it, or REINDEX it.', '55000'
        FROM dependent AS d JOIN pg_index AS i ON i.indexrelid = d.object AND NOT i.indisvalid
        WHERE d.kind = 'index'
      UNION ALL
        SELECT DISTINCT 5, format('must be owner of %s', d.identity),
               format('It has to be dropped and created again: run it as a member of %I, or as a superuser.', d.owner_name), '42501'
        FROM dependent AS d WHERE d.kind <> 'other' AND NOT d.is_own
      UNION ALL
        SELECT DISTINCT 6, format('permission denied for schema %I', n.nspname),
               format('GRANT CREATE, USAGE ON SCHEMA %I TO %I, which owns %s and has to create it again.', n.nspname, d.owner_name, d.identity), '42501'
        FROM dependent AS d JOIN pg_namespace AS n ON n.oid = d.schema
        WHERE d.kind IN ('view', 'materialized view', 'function', 'statistics', 'index') AND d.is_own
          AND n.oid IS DISTINCT FROM pg_my_temp_schema()
          AND NOT (has_schema_privilege(d.owner, n.oid, 'CREATE') AND has_schema_privilege(d.owner, n.oid, 'USAGE'))
      UNION ALL
        SELECT DISTINCT 7, format('privileges on %s were granted by role %I', g.identity, pg_get_userbyid(g.grantor)),
               format('They have to be granted again: run it as a member of %I, or as a superuser, or have them revoked.', pg_get_userbyid(g.grantor)), '42501'
        FROM granted AS g
        WHERE NOT (pg_has_role(g.grantor, 'USAGE')
                   AND pg_has_role(g.grantor, CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END))
    )
    SELECT f.obstacle, f.remedy, f.code FROM found AS f ORDER BY f.rank, f.obstacle
$function$;
CREATE FUNCTION snowflake_internal.migration_grants(
    object_type "char", target text, column_name name, owner oid, schema oid, acl aclitem[]
) RETURNS TABLE (place bigint, role oid, statement text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH RECURSIVE by_default AS MATERIALIZED (
        SELECT x.grantee
        FROM pg_default_acl AS f CROSS JOIN LATERAL aclexplode(f.defaclacl) AS x
        WHERE column_name IS NULL AND f.defaclrole = owner AND f.defaclobjtype = object_type AND f.defaclnamespace IN (0, schema)
    ), item AS MATERIALIZED (
        SELECT i.place, x.grantor, x.grantee, x.privilege_type, x.is_grantable
        FROM unnest(CASE WHEN acl IS NOT NULL THEN acl
                         WHEN column_name IS NULL
                              AND EXISTS (SELECT FROM pg_default_acl AS f
                                          WHERE f.defaclrole = owner AND f.defaclobjtype = object_type AND f.defaclnamespace IN (0, schema))
                         THEN acldefault(object_type, owner) END) WITH ORDINALITY AS i (item, place)
        CROSS JOIN LATERAL aclexplode(ARRAY[i.item]) AS x
    ), grantor (role, level) AS (
        SELECT owner, 0
      UNION
        SELECT i.grantee, g.level + 1 FROM grantor AS g JOIN item AS i ON i.grantor = g.role AND i.is_grantable WHERE g.level < 20
    ), level AS (
        SELECT g.role, min(g.level) AS level FROM grantor AS g GROUP BY g.role
    )
    SELECT 0, owner, format('REVOKE ALL ON %s FROM %s CASCADE', target,
                            (SELECT string_agg(DISTINCT CASE r.role WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r.role)) END, ', ')
                             FROM (SELECT owner UNION SELECT 0 UNION SELECT b.grantee FROM by_default AS b) AS r (role)))
    WHERE column_name IS NULL AND (acl IS NOT NULL OR EXISTS (SELECT FROM item))
  UNION ALL
    SELECT row_number() OVER (ORDER BY coalesce(l.level, 100), i.place, i.is_grantable), i.grantor,
           format('GRANT %s ON %s TO %s%s',
                  string_agg(i.privilege_type || coalesce(' (' || quote_ident(column_name) || ')', ''), ', '), target,
                  CASE i.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(i.grantee)) END,
                  CASE WHEN i.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
    FROM item AS i LEFT JOIN level AS l ON l.role = i.grantor
    GROUP BY i.place, i.grantor, i.grantee, i.is_grantable, l.level
$function$;
CREATE FUNCTION snowflake_internal.migration_dependent_statements(relations regclass[], column_names name[])
RETURNS TABLE (phase integer, role oid, statement text, identity text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET extra_float_digits = 3
SET quote_all_identifiers = off
AS $function$
    WITH dependent AS MATERIALIZED (
        SELECT d.*, snowflake_internal.migration_name(d.relation) AS quoted_name,
               CASE d.kind
                   WHEN 'view' THEN 'VIEW ' || snowflake_internal.migration_name(d.relation)
                   WHEN 'materialized view' THEN 'MATERIALIZED VIEW ' || snowflake_internal.migration_name(d.relation)
                   WHEN 'index' THEN 'INDEX ' || snowflake_internal.migration_name(d.object::regclass)
                   WHEN 'rule' THEN (SELECT format('RULE %I ON ', w.rulename) FROM pg_rewrite AS w WHERE w.oid = d.object) || snowflake_internal.migration_name(d.relation)
                   WHEN 'policy' THEN (SELECT format('POLICY %I ON ', p.polname) FROM pg_policy AS p WHERE p.oid = d.object) || snowflake_internal.migration_name(d.relation)
                   WHEN 'function' THEN format('ROUTINE %s', d.object::regprocedure)
                   WHEN 'statistics' THEN (SELECT format('STATISTICS %I.%I', n.nspname, x.stxname) FROM pg_statistic_ext AS x
                                           JOIN pg_namespace AS n ON n.oid = x.stxnamespace WHERE x.oid = d.object)
                   WHEN 'default' THEN (SELECT format('VIEW %s ALTER COLUMN %I', snowflake_internal.migration_name(d.relation), a.attname)
                                        FROM pg_attrdef AS f JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum WHERE f.oid = d.object)
                   ELSE (SELECT format('TRIGGER %I ON ', t.tgname) FROM pg_trigger AS t WHERE t.oid = d.object) || snowflake_internal.migration_name(d.relation)
               END AS sql_name
        FROM snowflake_internal.migration_dependents(relations, column_names) AS d
        WHERE d.kind <> 'other'
    ), relation AS MATERIALIZED (
        SELECT d.*, c.relkind, c.reloptions, c.relacl, c.reltablespace, c.relam, c.reltoastrelid, c.relispopulated, c.reltuples, pg_get_viewdef(c.oid) AS definition,
               (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
               (SELECT string_agg(o.text, ', ') FROM (
                    SELECT format('%I = %L', v.option_name, v.option_value) AS text FROM pg_options_to_table(c.reloptions) AS v
                  UNION ALL
                    SELECT format('toast.%I = %L', v.option_name, v.option_value) FROM pg_class AS t CROSS JOIN LATERAL pg_options_to_table(t.reloptions) AS v
                    WHERE t.oid = c.reltoastrelid) AS o) AS options
        FROM dependent AS d JOIN pg_class AS c ON c.oid = d.object
        WHERE d.kind IN ('view', 'materialized view')
    ), creation (object, place, identity, part, rank, role, statement) AS (
        SELECT r.object, r.place, r.identity, 1, 0::bigint, r.owner,
               concat('CREATE ', r.sql_name, ' (' || r.columns || ')',
                      CASE WHEN r.relkind = 'm' THEN (SELECT format(' USING %I', m.amname) FROM pg_am AS m WHERE m.oid = r.relam) END,
                      ' WITH (' || r.options || ')',
                      CASE WHEN r.relkind = 'm' THEN (SELECT format(' TABLESPACE %I', t.spcname) FROM pg_tablespace AS t WHERE t.oid = r.reltablespace) END,
                      E' AS\n', rtrim(r.definition, ';'), CASE WHEN r.relkind = 'm' THEN E'\nWITH NO DATA' END)
        FROM relation AS r
      UNION ALL
        SELECT r.object, r.place, r.identity, 2, 0, r.owner, format('ALTER %s ALTER COLUMN %I %s', r.sql_name, a.attname, s.action)
        FROM relation AS r
        JOIN pg_attribute AS a ON a.attrelid = r.object AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_type AS t ON t.oid = a.atttypid
        CROSS JOIN LATERAL (
            SELECT format('SET STATISTICS %s', a.attstattarget) AS action WHERE a.attstattarget >= 0
          UNION ALL
            SELECT format('SET STORAGE %s', CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END)
            WHERE a.attstorage <> t.typstorage
          UNION ALL
            SELECT format('SET COMPRESSION %s', CASE a.attcompression WHEN 'l' THEN 'lz4' ELSE 'pglz' END) WHERE a.attcompression <> ''
          UNION ALL
            SELECT format('SET (%s)', string_agg(format('%I = %L', v.option_name, v.option_value), ', '))
            FROM pg_options_to_table(a.attoptions) AS v WHERE v.option_name NOT LIKE 'pg\_%'
            HAVING count(*) > 0) AS s
        WHERE r.relkind = 'm'
      UNION ALL
        SELECT r.object, r.place, r.identity, 3, g.place, g.role, g.statement
        FROM relation AS r
        CROSS JOIN LATERAL snowflake_internal.migration_grants("char" 'r', 'TABLE ' || r.quoted_name, NULL, r.owner, r.schema, r.relacl) AS g
      UNION ALL
        SELECT r.object, r.place, r.identity, 4, 1000 * a.attnum + g.place, g.role, g.statement
        FROM relation AS r
        JOIN pg_attribute AS a ON a.attrelid = r.object AND a.attnum > 0 AND a.attacl IS NOT NULL
        CROSS JOIN LATERAL snowflake_internal.migration_grants("char" 'r', 'TABLE ' || r.quoted_name, a.attname, r.owner, r.schema, a.attacl) AS g
      UNION ALL
        SELECT d.object, d.place, d.identity, 1, 0, d.owner,
               CASE d.kind
                   WHEN 'rule' THEN pg_get_ruledef(d.object)
                   WHEN 'trigger' THEN pg_get_triggerdef(d.object)
                   WHEN 'function' THEN pg_get_functiondef(d.object)
                   WHEN 'index' THEN pg_get_indexdef(d.object)
                   WHEN 'statistics' THEN pg_get_statisticsobjdef(d.object)
                   WHEN 'default' THEN (SELECT format('ALTER %s SET DEFAULT %s', d.sql_name, pg_get_expr(f.adbin, f.adrelid)) FROM pg_attrdef AS f WHERE f.oid = d.object)
                   WHEN 'policy' THEN (
                       SELECT concat('CREATE ', d.sql_name, CASE WHEN p.polpermissive THEN ' AS PERMISSIVE' ELSE ' AS RESTRICTIVE' END,
                                     CASE p.polcmd WHEN 'r' THEN ' FOR SELECT' WHEN 'a' THEN ' FOR INSERT' WHEN 'w' THEN ' FOR UPDATE' WHEN 'd' THEN ' FOR DELETE' ELSE ' FOR ALL' END,
                                     ' TO ', (SELECT string_agg(CASE o.role WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(o.role)) END, ', ' ORDER BY o.place)
                                              FROM unnest(p.polroles) WITH ORDINALITY AS o (role, place)),
                                     ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')')
                       FROM pg_policy AS p WHERE p.oid = d.object)
               END
        FROM dependent AS d WHERE d.kind IN ('rule', 'trigger', 'function', 'index', 'statistics', 'default', 'policy')
      UNION ALL
        -- On views, rules and triggers are always enabled.
        SELECT d.object, d.place, d.identity, 2, 0, d.owner,
               format('ALTER TABLE ONLY %s %s %s %I', d.quoted_name,
                      CASE coalesce(t.tgenabled, w.ev_enabled) WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE' END,
                      CASE d.kind WHEN 'rule' THEN 'RULE' ELSE 'TRIGGER' END, coalesce(t.tgname, w.rulename))
        FROM dependent AS d
        LEFT JOIN pg_trigger AS t ON d.kind IN ('trigger', 'trigger of a partition') AND t.oid = d.object
        LEFT JOIN pg_rewrite AS w ON d.kind = 'rule' AND w.oid = d.object
        WHERE coalesce(t.tgenabled, w.ev_enabled) <> 'O'
      UNION ALL
        SELECT d.object, d.place, d.identity, 2, s.place, d.owner, s.statement
        FROM dependent AS d
        JOIN pg_class AS c ON d.kind = 'index' AND c.oid = d.object
        JOIN pg_index AS i ON i.indexrelid = c.oid
        CROSS JOIN LATERAL (
            SELECT 0 AS place, format('ALTER %s SET TABLESPACE %I', d.sql_name, t.spcname) AS statement FROM pg_tablespace AS t WHERE t.oid = c.reltablespace
          UNION ALL
            SELECT a.attnum, format('ALTER %s ALTER COLUMN %s SET STATISTICS %s', d.sql_name, a.attnum, a.attstattarget)
            FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attstattarget >= 0
          UNION ALL
            SELECT 2000, format('ALTER MATERIALIZED VIEW %s CLUSTER ON %I', d.quoted_name, c.relname) WHERE i.indisclustered) AS s
      UNION ALL
        SELECT d.object, d.place, d.identity, 2, 0, d.owner, format('ALTER %s SET STATISTICS %s', d.sql_name, x.target)
        FROM dependent AS d
        JOIN (SELECT x.oid, (to_jsonb(x) ->> 'stxstattarget')::integer AS target FROM pg_statistic_ext AS x) AS x ON d.kind = 'statistics' AND x.oid = d.object
        WHERE x.target >= 0
      UNION ALL
        SELECT d.object, d.place, d.identity, 3, g.place, g.role, g.statement
        FROM dependent AS d
        JOIN pg_proc AS f ON d.kind = 'function' AND f.oid = d.object
        CROSS JOIN LATERAL snowflake_internal.migration_grants("char" 'f', d.sql_name, NULL, d.owner, d.schema, f.proacl) AS g
      UNION ALL
        SELECT d.object, d.place, d.identity, 5, e.objsubid, d.owner,
               CASE WHEN e.objsubid = 0 THEN format('COMMENT ON %s IS %L', d.sql_name, e.description)
                    ELSE format('COMMENT ON COLUMN %s.%I IS %L', d.quoted_name, a.attname, e.description) END
        FROM dependent AS d
        JOIN pg_description AS e ON e.classoid = d.class AND e.objoid = d.object
        LEFT JOIN pg_attribute AS a ON a.attrelid = d.object AND a.attnum = e.objsubid AND e.objsubid > 0
        WHERE d.kind <> 'default'
      UNION ALL
        SELECT d.object, d.place, d.identity, 5, 0, d.owner, format('COMMENT ON CONSTRAINT %I ON %s IS %L', k.conname, d.quoted_name, e.description)
        FROM dependent AS d
        JOIN pg_trigger AS t ON d.kind = 'trigger' AND t.oid = d.object
        JOIN pg_constraint AS k ON k.oid = t.tgconstraint
        JOIN pg_description AS e ON e.classoid = 'pg_constraint'::regclass AND e.objoid = k.oid
      UNION ALL
        SELECT d.object, d.place, d.identity, 6, l.objsubid, d.owner,
               format('SECURITY LABEL FOR %I ON %s IS %L', l.provider,
                      CASE WHEN l.objsubid = 0 THEN d.sql_name ELSE format('COLUMN %s.%I', d.quoted_name, a.attname) END, l.label)
        FROM dependent AS d
        JOIN pg_seclabel AS l ON l.classoid = d.class AND l.objoid = d.object
        LEFT JOIN pg_attribute AS a ON a.attrelid = d.object AND a.attnum = l.objsubid AND l.objsubid > 0
      UNION ALL
        SELECT d.object, d.place, d.identity, 7, 0, d.owner, format('ALTER %s DEPENDS ON EXTENSION %I', d.sql_name, x.extname)
        FROM dependent AS d
        JOIN pg_depend AS p ON p.classid = d.class AND p.objid = d.object AND p.deptype = 'x' AND p.refclassid = 'pg_extension'::regclass
        JOIN pg_extension AS x ON x.oid = p.refobjid
        WHERE d.kind IN ('materialized view', 'index', 'trigger', 'function')
    )
    (SELECT 1, d.owner, CASE d.kind WHEN 'default' THEN format('ALTER %s DROP DEFAULT', d.sql_name) ELSE 'DROP ' || d.sql_name END, d.identity
     FROM dependent AS d WHERE d.kind <> 'trigger of a partition' ORDER BY d.place DESC, d.identity DESC)
  UNION ALL
    (SELECT 2, c.role, c.statement, c.identity FROM creation AS c ORDER BY c.place, c.identity, c.part, c.rank, c.statement)
  UNION ALL
    -- Filled last, when all privileges have been granted.
    (SELECT 3, r.owner, s.statement, r.identity
     FROM relation AS r
     CROSS JOIN LATERAL (VALUES (1, 'REFRESH ' || r.sql_name), (2, 'ANALYZE ' || r.quoted_name)) AS s (part, statement)
     -- -1 means that it has never been analyzed.
     WHERE r.relkind = 'm' AND r.relispopulated AND (s.part = 1 OR r.reltuples >= 0)
     ORDER BY r.place, r.identity, s.part)
$function$;
CREATE FUNCTION snowflake_internal.migration_without_types(definition text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT regexp_replace(
        regexp_replace(definition, '::(smallint|integer|bigint|numeric)(\(\d+(,\d+)?\))?(\[\])*', '', 'g'), '[()\s]', '', 'g')
$function$;
CREATE FUNCTION snowflake_internal.migration_describe_acl(acl aclitem[])
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT jsonb_agg(i.text ORDER BY i.text)
    FROM (SELECT format('%s of %s by %s', i.item, min(x.grantee), min(x.grantor)) AS text
          FROM unnest(acl) WITH ORDINALITY AS i (item, place) CROSS JOIN LATERAL aclexplode(ARRAY[i.item]) AS x
          GROUP BY i.place, i.item) AS i
$function$;
CREATE FUNCTION snowflake_internal.migration_describe_dependents(relations regclass[], column_names name[])
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET extra_float_digits = 3
SET quote_all_identifiers = off
AS $function$
    WITH dependent AS MATERIALIZED (
        SELECT d.* FROM snowflake_internal.migration_dependents(relations, column_names) AS d WHERE d.kind <> 'other'
    ), reference AS MATERIALIZED (
        SELECT DISTINCT d.class, d.object, p.refclassid, p.refobjid
        FROM dependent AS d
        CROSS JOIN LATERAL (
            SELECT p.refclassid, p.refobjid FROM pg_depend AS p WHERE p.classid = d.class AND p.objid = d.object
          UNION ALL
            SELECT p.refclassid, p.refobjid FROM pg_rewrite AS w JOIN pg_depend AS p ON p.classid = 'pg_rewrite'::regclass AND p.objid = w.oid
            WHERE d.class = 'pg_class'::regclass AND w.ev_class = d.object AND w.rulename = '_RETURN') AS p
        WHERE (p.refclassid, p.refobjid) <> (d.class, d.object)
    )
    SELECT coalesce(jsonb_object_agg(d.identity, jsonb_build_object(
        'owner', pg_get_userbyid(d.owner),
        'definition', snowflake_internal.migration_without_types(CASE d.kind
            WHEN 'rule' THEN pg_get_ruledef(d.object)
            WHEN 'function' THEN pg_get_functiondef(d.object)
            WHEN 'index' THEN pg_get_indexdef(d.object)
            WHEN 'statistics' THEN pg_get_statisticsobjdef(d.object)
            WHEN 'default' THEN (SELECT pg_get_expr(f.adbin, f.adrelid) FROM pg_attrdef AS f WHERE f.oid = d.object)
            WHEN 'policy' THEN (SELECT concat_ws(' ', p.polpermissive, p.polcmd, p.polroles, (SELECT string_agg(o.role::regrole::text, ',' ORDER BY o.place) FROM unnest(p.polroles) WITH ORDINALITY AS o (role, place)),
                                                 pg_get_expr(p.polqual, p.polrelid), 'check', pg_get_expr(p.polwithcheck, p.polrelid))
                                FROM pg_policy AS p WHERE p.oid = d.object)
            WHEN 'trigger' THEN pg_get_triggerdef(d.object)
            WHEN 'trigger of a partition' THEN pg_get_triggerdef(d.object)
            ELSE pg_get_viewdef(d.object) END),
        'enabled', coalesce((SELECT t.tgenabled FROM pg_trigger AS t WHERE d.class = 'pg_trigger'::regclass AND t.oid = d.object),
                            (SELECT w.ev_enabled FROM pg_rewrite AS w WHERE d.class = 'pg_rewrite'::regclass AND w.oid = d.object)),
        'settings', (SELECT jsonb_build_array(c.relpersistence, c.reloptions, c.relreplident, c.relispopulated, c.relhasrules, c.relhastriggers, c.relrowsecurity,
                                              (SELECT m.amname FROM pg_am AS m WHERE m.oid = c.relam), (SELECT t.spcname FROM pg_tablespace AS t WHERE t.oid = c.reltablespace),
                                              (SELECT t.reloptions FROM pg_class AS t WHERE t.oid = c.reltoastrelid))
                     FROM pg_class AS c WHERE d.class = 'pg_class'::regclass AND c.oid = d.object),
        'index', (SELECT jsonb_build_array(i.indisclustered, i.indisvalid, i.indisunique) FROM pg_index AS i WHERE d.kind = 'index' AND i.indexrelid = d.object),
        'target', (SELECT to_jsonb(x) -> 'stxstattarget' FROM pg_statistic_ext AS x WHERE d.kind = 'statistics' AND x.oid = d.object),
        'columns', (SELECT jsonb_agg(jsonb_build_array(
                               a.attname, regexp_replace(format_type(a.atttypid, a.atttypmod), '^(smallint|integer|bigint|numeric)(\(.*\))?', 'number'),
                               a.attcollation::regcollation, coalesce(a.attstattarget, -1), a.attcompression,
                               CASE WHEN a.attstorage <> t.typstorage THEN a.attstorage END,
                               (SELECT jsonb_agg(o.text ORDER BY o.text) FROM unnest(a.attoptions) AS o (text) WHERE o.text NOT LIKE 'pg\_%'),
                               snowflake_internal.migration_describe_acl(a.attacl)) ORDER BY a.attnum)
                    FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
                    WHERE d.class = 'pg_class'::regclass AND a.attrelid = d.object AND a.attnum > 0),
        'privileges', snowflake_internal.migration_describe_acl(coalesce(
            (SELECT coalesce(c.relacl, acldefault('r', c.relowner)) FROM pg_class AS c WHERE d.kind IN ('view', 'materialized view') AND c.oid = d.object),
            (SELECT coalesce(f.proacl, acldefault('f', f.proowner)) FROM pg_proc AS f WHERE d.kind = 'function' AND f.oid = d.object))),
        'comments', (SELECT jsonb_agg(jsonb_build_array(e.objsubid, e.description) ORDER BY e.objsubid) FROM pg_description AS e WHERE e.classoid = d.class AND e.objoid = d.object),
        'constraint comment', (SELECT e.description FROM pg_trigger AS t JOIN pg_description AS e ON e.classoid = 'pg_constraint'::regclass AND e.objoid = t.tgconstraint
                               WHERE d.kind = 'trigger' AND t.oid = d.object),
        'labels', (SELECT jsonb_agg(jsonb_build_array(l.objsubid, l.provider, l.label) ORDER BY l.objsubid, l.provider) FROM pg_seclabel AS l WHERE l.classoid = d.class AND l.objoid = d.object),
        'references', (SELECT jsonb_agg(i.type || ' ' || i.identity ORDER BY i.type, i.identity)
                       FROM reference AS r CROSS JOIN LATERAL pg_identify_object(r.refclassid, r.refobjid, 0) AS i
                       WHERE (r.class, r.object) = (d.class, d.object)
                         AND r.refclassid NOT IN ('pg_proc'::regclass, 'pg_operator'::regclass)),
        'code', (SELECT coalesce(jsonb_agg(DISTINCT pg_get_userbyid(coalesce(f.proowner, o.oprowner))), '[]')
                 FROM reference AS r
                 LEFT JOIN pg_proc AS f ON r.refclassid = 'pg_proc'::regclass AND f.oid = r.refobjid
                 LEFT JOIN pg_operator AS o ON r.refclassid = 'pg_operator'::regclass AND o.oid = r.refobjid
                 WHERE (r.class, r.object) = (d.class, d.object) AND coalesce(f.oid, o.oid) IS NOT NULL)
        )), '{}')
    FROM dependent AS d
$function$;
CREATE FUNCTION snowflake_internal.migration_save_dependents(relations regclass[], column_names name[])
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT jsonb_build_object(
        'statements', (SELECT coalesce(jsonb_agg(jsonb_build_object('phase', s.phase, 'role', s.role, 'statement', s.statement, 'identity', s.identity)), '[]')
                       FROM snowflake_internal.migration_dependent_statements(relations, column_names) AS s),
        'description', snowflake_internal.migration_describe_dependents(relations, column_names))
$function$;
CREATE FUNCTION snowflake_internal.migration_dependents_fingerprint(relations regclass[], column_names name[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT string_agg(concat_ws(' ', d.class, d.object, d.place, p.xmin, p.ctid, f.xmin, f.ctid, w.xmin, w.ctid, t.xmin, t.ctid,
                                (SELECT string_agg(concat(e.xmin, e.ctid), ' ' ORDER BY e.ctid) FROM pg_description AS e WHERE e.classoid = d.class AND e.objoid = d.object),
                                (SELECT string_agg(concat(l.xmin, l.ctid), ' ' ORDER BY l.ctid) FROM pg_seclabel AS l WHERE l.classoid = d.class AND l.objoid = d.object)),
                      ', ' ORDER BY d.class, d.object)
           || concat((SELECT string_agg(concat(a.xmin, a.ctid), ' ' ORDER BY a.ctid) FROM pg_default_acl AS a))
    FROM snowflake_internal.migration_dependents(relations, column_names) AS d
    LEFT JOIN pg_policy AS p ON d.kind = 'policy' AND p.oid = d.object
    LEFT JOIN pg_proc AS f ON d.kind = 'function' AND f.oid = d.object
    LEFT JOIN pg_rewrite AS w ON d.kind = 'rule' AND w.oid = d.object
    LEFT JOIN pg_trigger AS t ON d.class = 'pg_trigger'::regclass AND t.oid = d.object
$function$;
CREATE FUNCTION snowflake_internal.migration_run_saved(saved jsonb, phase integer, path text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    entry record;
    message text;
    detail text;
BEGIN
    FOR entry IN
        SELECT (s.entry ->> 'role')::oid AS role, s.entry ->> 'statement' AS statement, s.entry ->> 'identity' AS identity
        FROM jsonb_array_elements(saved -> 'statements') WITH ORDINALITY AS s (entry, place)
        WHERE (s.entry ->> 'phase')::integer = migration_run_saved.phase
        ORDER BY s.place
    LOOP
        BEGIN
            PERFORM snowflake_internal.migration_run_as(entry.role, entry.statement, path);
        EXCEPTION
            WHEN lock_not_available OR deadlock_detected OR serialization_failure THEN
                RAISE;
            WHEN OTHERS THEN
                GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
                RAISE EXCEPTION '% cannot be %', entry.identity,
                    CASE migration_run_saved.phase WHEN 1 THEN 'dropped' WHEN 2 THEN 'created again with the wider columns'
                                                   ELSE 'filled again' END
                    USING ERRCODE = 'object_not_in_prerequisite_state',
                          DETAIL = format('%s (SQLSTATE %s)%s', message, SQLSTATE, coalesce(E'\n' || nullif(detail, ''), '')),
                          HINT = 'Nothing was changed by this statement. Change the object so that it accepts bigint, or drop it and create it again afterwards.';
        END;
    END LOOP;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_drop_dependents(saved jsonb)
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_internal.migration_run_saved(saved, 1, NULL)
$function$;
CREATE FUNCTION snowflake_internal.migration_create_dependents(saved jsonb)
RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET check_function_bodies = off
SET default_tablespace = ''
AS $function$
    SELECT snowflake_internal.migration_run_saved(saved, 2, NULL)
$function$;
CREATE FUNCTION snowflake_internal.migration_dependent_difference(before jsonb, after jsonb)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN f.before IS NULL THEN format('%s did not depend on the columns before.', f.identity)
                WHEN f.after IS NULL THEN format('%s does not exist any more, or does not depend on the columns.', f.identity)
                WHEN p.property = 'code' THEN format('%s would call functions or operators of %s.', f.identity,
                    (SELECT string_agg(quote_ident(o.owner), ', ') FROM jsonb_array_elements_text(p.after -> 0) AS o (owner) WHERE NOT p.before -> 0 ? o.owner))
                ELSE format('%s: %s was %s, but would be %s.', f.identity, p.property, p.before -> 0, p.after -> 0) END
    FROM (SELECT coalesce(b.key, a.key) AS identity, b.value AS before, a.value AS after
          FROM jsonb_each(migration_dependent_difference.before) AS b
          FULL JOIN jsonb_each(migration_dependent_difference.after) AS a ON a.key = b.key) AS f
    LEFT JOIN LATERAL (
        -- In arrays, because format() writes a null of JSON differently from NULL.
        SELECT k.property, jsonb_build_array(f.before -> k.property) AS before, jsonb_build_array(f.after -> k.property) AS after
        FROM jsonb_object_keys(f.before) AS k (property)
        WHERE CASE WHEN k.property = 'code' THEN EXISTS (
                       SELECT FROM jsonb_array_elements_text(f.after -> k.property) AS o (owner)
                       WHERE NOT f.before -> k.property ? o.owner AND o.owner <> f.before ->> 'owner'
                         AND NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = o.owner AND r.rolsuper))
                   ELSE f.before -> k.property IS DISTINCT FROM f.after -> k.property END) AS p ON true
    WHERE f.before IS NULL OR f.after IS NULL OR p.property IS NOT NULL
    ORDER BY f.identity, p.property
    LIMIT 1
$function$;
CREATE FUNCTION snowflake_internal.migration_compare_dependents(saved jsonb, relations regclass[], column_names name[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    difference CONSTANT text := snowflake_internal.migration_dependent_difference(
        saved -> 'description', snowflake_internal.migration_describe_dependents(relations, column_names));
BEGIN
    IF difference IS NOT NULL THEN
        RAISE EXCEPTION 'objects that depend on the columns would not be as they were'
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = difference,
                  HINT = 'Nothing was changed by this statement. Drop the object, and create it again afterwards.';
    END IF;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_widen(relations regclass[], column_names name[], path text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    dependents regclass[];
    tables regclass[];
    relation regclass;
    saved jsonb;
    obstacles text;
    code text;
    altered record;
    states jsonb;
    analyzed regclass[];
    targets_again text[];
BEGIN
    IF cardinality(relations) IS DISTINCT FROM cardinality(column_names) OR array_position(relations, NULL) IS NOT NULL
       OR array_position(column_names, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'tables and columns must be arrays of the same length without NULL'
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        -- The catalog is read again under the locks.
        RAISE EXCEPTION 'a migration requires the isolation level READ COMMITTED'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  DETAIL = format('The isolation level of this transaction is %s.', upper(current_setting('transaction_isolation'))),
                  HINT = 'SET default_transaction_isolation = ''read committed''.';
    END IF;
    FOREACH relation IN ARRAY relations LOOP
        PERFORM snowflake_internal.migration_require_owner(relation);
    END LOOP;
    -- Locked as sessions that use the views do: those first, then the tables.
    dependents := snowflake_internal.migration_dependent_relations(relations, column_names);
    tables := ARRAY(SELECT DISTINCT f.relation
                    FROM unnest(relations, column_names) AS given (relation, column_name)
                    CROSS JOIN LATERAL snowflake_internal.migration_table_tree(given.relation, given.column_name) AS f
                    JOIN pg_class AS c ON c.oid = f.relation AND c.relkind IN ('r', 'p')
                    ORDER BY f.relation);
    FOR attempt IN 1 .. 2 LOOP
        SELECT string_agg(format('%s. %s', o.obstacle, o.remedy), E'\n'), min(o.sqlstate_code) INTO obstacles, code
        FROM snowflake_internal.migration_dependent_obstacles(relations, column_names) AS o;
        IF obstacles IS NOT NULL THEN
            RAISE EXCEPTION 'cannot create again what depends on columns of %', array_to_string(relations, ', ')
                USING ERRCODE = code, DETAIL = obstacles,
                      HINT = 'Nothing was changed by this statement. Remove the obstacles, then run it again.';
        END IF;
        EXIT WHEN attempt = 2;
        FOREACH relation IN ARRAY dependents || tables LOOP
            PERFORM snowflake_internal.migration_lock_table(relation, text 'ACCESS EXCLUSIVE');
        END LOOP;
    END LOOP;
    IF NOT snowflake_internal.migration_dependent_relations(relations, column_names) <@ (dependents || tables) THEN
        RAISE EXCEPTION 'the views of % have changed in the meantime', array_to_string(relations, ', ')
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Nothing was changed by this statement. Run it again.';
    END IF;
    states := snowflake_internal.migration_trigger_states(tables);
    SELECT array_agg(t.relation ORDER BY t.statement), array_agg(t.statement ORDER BY t.statement) INTO analyzed, targets_again
    FROM snowflake_internal.migration_statistics_targets(tables) AS t;
    saved := snowflake_internal.migration_save_dependents(relations, column_names);
    PERFORM snowflake_internal.migration_drop_dependents(saved);
    FOR altered IN
        SELECT c.relowner, format('ALTER TABLE %s %s', snowflake_internal.migration_name(given.relation),
                                  string_agg(format('ALTER COLUMN %I TYPE bigint', a.attname), ', ' ORDER BY a.attnum)) AS statement
        FROM unnest(relations, column_names) AS given (relation, column_name)
        JOIN pg_class AS c ON c.oid = given.relation
        JOIN pg_attribute AS a ON a.attrelid = given.relation AND a.attname = given.column_name AND a.atttypid <> 'int8'::regtype
        GROUP BY c.relowner, given.relation
        ORDER BY given.relation
    LOOP
        PERFORM snowflake_internal.migration_run_as(altered.relowner, altered.statement, path);
    END LOOP;
    PERFORM snowflake_internal.migration_run_all(analyzed, targets_again);
    PERFORM snowflake_internal.migration_restore_trigger_states(states) WHERE states IS NOT NULL;
    PERFORM snowflake_internal.migration_create_dependents(saved);
    PERFORM snowflake_internal.migration_run_saved(saved, 3, path);
    PERFORM snowflake_internal.migration_compare_dependents(saved, relations, column_names);
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_server_obstacles()
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT 'this server does not issue IDs: snowflake is not in shared_preload_libraries',
           'Add it to shared_preload_libraries and restart the server.', '55000'
    FROM @extschema@.snowflake_status AS s WHERE NOT s.preloaded
  UNION ALL
    SELECT 'this server does not issue IDs: snowflake.node_id is not set',
           'Set it in postgresql.conf and restart the server.', '55000'
    FROM @extschema@.snowflake_status AS s WHERE s.preloaded AND s.node_id IS NULL
  UNION ALL
    SELECT 'permission denied for function snowflake_nextval',
           format('GRANT EXECUTE ON FUNCTION %s to the roles that insert rows.', p.oid::regprocedure), '42501'
    FROM pg_proc AS p
    WHERE p.oid = '@extschema@.snowflake_nextval()'::regprocedure AND NOT has_function_privilege(p.oid, 'EXECUTE')
$function$;
CREATE FUNCTION snowflake_internal.migration_owner_obstacles(targets regclass[], column_names name[])
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH root (relation, attname) AS (
        SELECT key.target, key.column_name FROM unnest(targets, column_names) AS key (target, column_name)
      UNION
        SELECT r.relation, a.attname
        FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        WHERE r.is_narrow
    ), altered AS MATERIALIZED (
        SELECT DISTINCT c.oid::regclass AS relation, c.relowner, c.relnamespace
        FROM root
        CROSS JOIN LATERAL snowflake_internal.migration_table_tree(root.relation, root.attname) AS f
        JOIN pg_class AS c ON c.oid = f.relation
    )
    SELECT format('must be owner of table %s', a.relation),
           format('Run it as a member of %I, or as a superuser.', pg_get_userbyid(a.relowner)), '42501'
    FROM altered AS a WHERE NOT pg_has_role(a.relowner, 'USAGE')
  UNION ALL
    SELECT DISTINCT format('permission denied for schema %I', n.nspname),
           format('GRANT USAGE ON SCHEMA %I to the owner of the tables in it.', n.nspname), '42501'
    FROM altered AS a JOIN pg_namespace AS n ON n.oid = a.relnamespace
    WHERE NOT (has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(a.relowner, n.oid, 'USAGE'))
  UNION ALL
    -- The new default is set with the owner's rights.
    SELECT format('permission denied for schema %I, which contains the extension', n.nspname),
           format('GRANT USAGE ON SCHEMA %I TO %I.', n.nspname, pg_get_userbyid(a.relowner)), '42501'
    FROM altered AS a JOIN pg_namespace AS n ON n.oid = '@extschema@'::regnamespace
    WHERE a.relation = ANY (targets) AND NOT has_schema_privilege(a.relowner, n.oid, 'USAGE')
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_column_obstacles(target regclass, column_name name)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH target_column AS MATERIALIZED (
        SELECT c.oid::regclass AS relation, c.relforcerowsecurity, a.attname, a.attnum, a.attinhcount, a.attgenerated,
               a.atttypid, snowflake_internal.migration_base_type(a.atttypid) AS base_type,
               format_type(a.atttypid, a.atttypmod) AS type_name
        FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = column_name
        WHERE c.oid = target
    )
    SELECT format('column %I of %s is inherited', m.attname, m.relation),
           'Migrate the table it is inherited from; its partitions and child tables follow.', '55000'
    FROM target_column AS m WHERE m.attinhcount > 0
  UNION ALL
    SELECT format('column %I of %s is generated from other columns', m.attname, m.relation),
           'A generated column cannot have a default.', '55000'
    FROM target_column AS m WHERE m.attgenerated <> ''
  UNION ALL
    SELECT format('row-level security is forced on the owner of %s, but the migration has to see every row', m.relation),
           format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY while it is migrated.', m.relation), '55000'
    FROM target_column AS m WHERE m.relforcerowsecurity
  UNION ALL
    SELECT format('column %I of %s is of type %s', m.attname, m.relation, m.type_name),
           'Snowflake IDs are bigint: only smallint, integer and bigint columns can be migrated.', '55000'
    FROM target_column AS m WHERE m.base_type NOT IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
  UNION ALL
    SELECT format('column %I of %s is an identity column with its own sequence', a.attname, f.relation),
           format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY; it will get the default of its parent.', f.relation, a.attname), '55000'
    FROM snowflake_internal.migration_table_tree(target, column_name) AS f
    JOIN pg_attribute AS a ON a.attrelid = f.relation AND a.attnum = f.attribute AND a.attidentity <> ''
    WHERE f.relation <> target
      AND EXISTS (SELECT FROM pg_depend AS d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = f.relation
                    AND d.refobjsubid = f.attribute AND d.classid = 'pg_class'::regclass AND d.deptype = 'i')
  UNION ALL
    SELECT format('%s depends on sequence %s', pg_describe_object(d.classid, d.objid, d.objsubid), s.oid::regclass),
           'Give it a sequence of its own, because DROP IDENTITY drops this one.', '55000'
    FROM target_column AS m
    JOIN pg_depend AS own ON own.refclassid = 'pg_class'::regclass AND own.refobjid = m.relation AND own.refobjsubid = m.attnum
                         AND own.classid = 'pg_class'::regclass AND own.deptype = 'i'
    JOIN pg_class AS s ON s.oid = own.objid AND s.relkind = 'S'
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.oid AND d.deptype = 'n'
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_type_obstacles(target regclass, column_name name)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH tree AS MATERIALIZED (
        SELECT f.relation, f.attribute, c.relkind, c.reloftype, a.atttypid, a.attinhcount,
               format_type(a.atttypid, a.atttypmod) AS type_name
        FROM snowflake_internal.migration_table_tree(target, column_name) AS f
        JOIN pg_class AS c ON c.oid = f.relation
        JOIN pg_attribute AS a ON a.attrelid = f.relation AND a.attnum = f.attribute
    ), dependent AS MATERIALIZED (
        SELECT f.relation, d.classid, d.objid, d.objsubid
        FROM tree AS f
        JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.relation AND d.refobjsubid = f.attribute
    ), found (rank, obstacle, remedy) AS (
        SELECT 1, format('column %I of %s is of the domain %s, which cannot hold a bigint', column_name, f.relation, f.type_name),
               'First give the column its base type (ALTER COLUMN ... TYPE), and add the domain''s checks as table constraints.'
        FROM tree AS f JOIN pg_type AS t ON t.oid = f.atttypid WHERE t.typtype = 'd'
      UNION ALL
        SELECT 2, format('%s is a typed table', f.relation),
               format('Make it an ordinary table first: ALTER TABLE %s NOT OF.', f.relation)
        FROM tree AS f WHERE f.reloftype <> 0
      UNION ALL
        SELECT 3, format('column %I of %s is part of its partition key', column_name, f.relation),
               'The type of a partition key cannot be changed: copy the rows to a new table that is partitioned by a bigint.'
        FROM tree AS f JOIN pg_partitioned_table AS p ON p.partrelid = f.relation
        -- The table as a whole depends on the columns of its key, also on those in expressions.
        WHERE EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = f.relation AND d.objsubid = f.attribute
                        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = f.relation AND d.refobjsubid = 0 AND d.deptype = 'i')
      UNION ALL
        SELECT 4, format('%s is a foreign table', f.relation),
               'Its rows are on another server. Detach the table, and change the column on both servers.'
        FROM tree AS f WHERE f.relkind = 'f'
      UNION ALL
        SELECT 5, format('column %I of %s is inherited from several tables', column_name, f.relation),
               format('The types of its parents can only change together: ALTER TABLE %s NO INHERIT for all but one, and INHERIT again afterwards.', f.relation)
        FROM tree AS f
        -- Most have one parent, which is in the tree.
        WHERE f.relation <> target AND f.attinhcount > 1
          AND f.attinhcount > (SELECT count(*) FROM pg_inherits AS i JOIN tree AS p ON p.relation = i.inhparent
                               WHERE i.inhrelid = f.relation)
      UNION ALL
        SELECT DISTINCT 9, format('column %I of %s is generated from column %I', g.attname, g.attrelid::regclass, column_name),
               'Drop it, and add it again after the column is widened.'
        FROM dependent AS d
        JOIN pg_attribute AS g ON g.attrelid = d.relation AND g.attgenerated <> ''
        JOIN pg_attrdef AS e ON e.adrelid = g.attrelid AND e.adnum = g.attnum
        WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = e.oid
           OR d.classid = 'pg_class'::regclass AND d.objid = g.attrelid AND d.objsubid = g.attnum
      UNION ALL
        SELECT DISTINCT 11, format('publication %I has %s that uses column %I of %s', p.pubname,
                   CASE WHEN r.prqual IS NULL THEN 'a column list' WHEN r.prattrs IS NULL THEN 'a WHERE clause' ELSE 'a WHERE clause or a column list' END,
                   column_name, d.relation),
               'Remove it (ALTER PUBLICATION ... SET TABLE), and add it again after the column is widened.'
        FROM dependent AS d
        JOIN pg_publication_rel AS r ON d.classid = 'pg_publication_rel'::regclass AND r.oid = d.objid
        JOIN pg_publication AS p ON p.oid = r.prpubid
      UNION ALL
        SELECT DISTINCT 12, format('index %s uses operator class %I, which does not support bigint', i.indexrelid::regclass, o.opcname),
               'Drop it, and create it with an operator class for bigint after the column is widened.'
        FROM tree AS f
        JOIN pg_index AS i ON i.indrelid = f.relation
        CROSS JOIN LATERAL unnest(i.indkey::smallint[], i.indclass::oid[]) AS k (attribute, opclass)
        JOIN pg_opclass AS o ON o.oid = k.opclass AND NOT o.opcdefault AND o.opcintype IN ('int2'::regtype, 'int4'::regtype)
        WHERE k.attribute = f.attribute
          AND NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid)
      UNION ALL
        -- PostgreSQL restores the replica identity of an index that it rebuilds,
        -- but not of one that belongs to a partitioned table's index.
        SELECT DISTINCT 13, format('the replica identity of partition %s is index %s with column %I, which loses that role when it is rebuilt',
                                   f.relation, i.indexrelid::regclass, column_name),
               format('ALTER TABLE %s REPLICA IDENTITY FULL, and USING INDEX after the column is widened.', f.relation)
        FROM tree AS f
        JOIN pg_index AS i ON i.indrelid = f.relation AND i.indisreplident
        JOIN pg_inherits AS h ON h.inhrelid = i.indexrelid
        WHERE f.attribute = ANY (i.indkey::smallint[])
      UNION ALL
        -- Tables have such constraints since PostgreSQL 18. When it rebuilds them,
        -- it does not find those that have another name.
        SELECT 14, format('not-null constraint %I of %s has another name in the parent %s', k.conname, f.relation, i.inhparent::regclass),
               format('Detach the table from its parent (NO INHERIT, or DETACH), ALTER TABLE %s RENAME CONSTRAINT %I TO %I, and attach it again.',
                      f.relation, k.conname, above.conname)
        FROM tree AS f
        JOIN pg_inherits AS i ON i.inhrelid = f.relation
        JOIN tree AS parent ON parent.relation = i.inhparent
        JOIN pg_constraint AS k ON k.conrelid = f.relation AND k.contype = 'n' AND k.conkey = ARRAY[f.attribute] AND k.conislocal AND k.coninhcount > 0
        JOIN pg_constraint AS above ON above.conrelid = parent.relation AND above.contype = 'n' AND above.conkey = ARRAY[parent.attribute]
        WHERE k.conname <> above.conname
    )
    SELECT f.obstacle, f.remedy, '55000' FROM found AS f ORDER BY f.rank, f.obstacle
$function$;
CREATE FUNCTION snowflake_internal.migration_obstacles(
    targets regclass[], column_names name[], search_path text DEFAULT NULL
) RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN QUERY SELECT o.* FROM snowflake_internal.migration_server_obstacles() AS o;
    RETURN QUERY SELECT o.* FROM snowflake_internal.migration_owner_obstacles(targets, column_names) AS o;
    -- The other checks require the owner's privileges, because they read rows.
    IF FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT o.* FROM snowflake_internal.migration_role_obstacles(targets, column_names) AS o;
    RETURN QUERY SELECT o.* FROM snowflake_internal.migration_foreign_key_obstacles(targets, column_names, search_path) AS o;
    RETURN QUERY
        SELECT o.*
        FROM unnest(targets, column_names) AS key (target, column_name)
        CROSS JOIN LATERAL snowflake_internal.migration_column_obstacles(key.target, key.column_name) AS o;
    IF NOT FOUND THEN
        RETURN QUERY
            SELECT o.*
            FROM unnest(targets, column_names) AS key (target, column_name)
            CROSS JOIN LATERAL snowflake_internal.migration_row_obstacles(key.target, key.column_name, search_path) AS o;
    END IF;
    RETURN QUERY
        SELECT o.*
        FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        CROSS JOIN LATERAL snowflake_internal.migration_type_obstacles(r.relation, a.attname) AS o
        WHERE r.is_narrow;
    RETURN QUERY
        SELECT o.*
        FROM (SELECT array_agg(r.relation) AS relations, array_agg(a.attname) AS column_names
              FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
              JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
              WHERE r.is_narrow) AS narrow
        CROSS JOIN LATERAL snowflake_internal.migration_dependent_obstacles(narrow.relations, narrow.column_names) AS o;
    RETURN QUERY SELECT o.* FROM snowflake_internal.migration_rebuild_obstacles(targets, column_names) AS o;
END
$function$;
CREATE FUNCTION snowflake_internal.restore_row() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_restore_row_wrapper';
CREATE FUNCTION snowflake_internal.migration_shadows(targets regclass[], column_names name[])
RETURNS TABLE (
    relation regclass, attribute smallint, narrow name, is_required boolean,
    shadow_name name, trigger_name name, check_name name,
    shadow smallint, trigger_oid oid, check_oid oid, is_kept boolean, is_filled boolean
) LANGUAGE sql STABLE ROWS 4
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT r.relation, r.attribute, a.attname, a.attnotnull, n.shadow_name, n.trigger_name, n.check_name,
           s.attnum, t.oid, k.oid, coalesce(s.attnum IS NOT NULL AND t.tgenabled = 'A' AND k.oid IS NOT NULL, false),
           coalesce(k.convalidated, false)
    FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
    JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
    CROSS JOIN LATERAL (
        SELECT snowflake_internal.migration_shadow_name(text 'column', a.attname) AS shadow_name,
               ('~~' || snowflake_internal.migration_shadow_name(text 'column', a.attname))::name AS trigger_name,
               snowflake_internal.migration_shadow_name(text 'check', a.attname) AS check_name
    ) AS n
    LEFT JOIN pg_attribute AS s ON s.attrelid = r.relation AND s.attname = n.shadow_name AND s.atttypid = 'int8'::regtype
    LEFT JOIN pg_trigger AS t ON t.tgrelid = r.relation AND t.tgname = n.trigger_name
                             AND t.tgfoid = 'snowflake_internal.shadow()'::regprocedure
    LEFT JOIN pg_constraint AS k ON k.conrelid = r.relation AND k.conname = n.check_name AND k.contype = 'c'
                                AND ARRAY[a.attnum, s.attnum] <@ k.conkey
    WHERE r.is_narrow
$function$;
CREATE FUNCTION snowflake_internal.migration_require_filled(targets regclass[], column_names name[])
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    missing text;
BEGIN
    SELECT string_agg(format('%s.%I', s.relation, s.narrow), ', ' ORDER BY s.relation::text, s.attribute) INTO missing
    FROM snowflake_internal.migration_shadows(targets, column_names) AS s
    WHERE NOT s.is_kept OR NOT s.is_filled;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'not all rows are known to have shadow values of: %', missing
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Run the statements of snowflake_migration_plan() with online => true in order.';
    END IF;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_shadow_checks(targets regclass[], column_names name[])
RETURNS TABLE (
    check_constraint oid, name name, relation regclass, shadow_name name, shadow oid, is_to_be_valid boolean, is_ready boolean, definition text
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.* FROM snowflake_internal.migration_shadows(targets, column_names) AS s
    ), renamed AS MATERIALIZED (
        SELECT s.relation, array_agg(s.narrow) AS former, array_agg(s.shadow_name) AS present, array_agg(s.attribute) AS attributes,
               array_agg(s.check_oid) FILTER (WHERE s.check_oid IS NOT NULL) AS own_checks
        FROM shadow AS s GROUP BY s.relation
    ), narrow_check AS MATERIALIZED (
        SELECT k.*, r.former, r.present, e.expression,
               -- The expression is part of it, so that no counterpart survives another one of the same name.
               snowflake_internal.migration_shadow_name('check ' || e.expression, k.conname) AS shadow_name,
               -- From PostgreSQL 18 on, a constraint may be NOT ENFORCED.
               coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true) AS is_enforced
        FROM renamed AS r
        JOIN pg_constraint AS k ON k.conrelid = r.relation AND k.contype = 'c'
        CROSS JOIN LATERAL (SELECT pg_get_expr(k.conbin, k.conrelid) AS expression) AS e
        WHERE (k.conkey && r.attributes OR k.conbin::text ~ ':varattno 0 ') AND k.oid <> ALL (coalesce(r.own_checks, '{}'))
    )
    SELECT m.oid, m.conname, m.conrelid::regclass, m.shadow_name, n.oid, m.convalidated,
           coalesce((n.convalidated OR NOT m.convalidated)
                    AND NOT snowflake_internal.migration_uses_other_code('pg_constraint', m.oid, n.oid), false),
           format('ADD CONSTRAINT %I CHECK (', m.shadow_name)
           || snowflake_internal.migration_rename_columns(m.expression, m.former, m.present) || ')'
           || CASE WHEN m.connoinherit THEN ' NO INHERIT' ELSE '' END
           || CASE WHEN m.is_enforced THEN ' NOT VALID' ELSE ' NOT ENFORCED' END
    FROM narrow_check AS m
    LEFT JOIN pg_constraint AS n ON n.contype = 'c' AND n.conrelid = m.conrelid AND n.conname = m.shadow_name
$function$;
CREATE FUNCTION snowflake_internal.migration_shadow_steps(targets regclass[], column_names name[])
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_internal.migration_do_block(
               format(E'    PERFORM snowflake_internal.migration_lock(%L::pg_catalog.regclass[], ''ACCESS EXCLUSIVE''::pg_catalog.text);\n',
                      ARRAY[quoted_name.relation])
               || format(E'    ALTER TABLE %s\n        %s;\n', quoted_name.relation,
                         string_agg(concat_ws(E',\n        ',
                             format('ADD COLUMN %I bigint', s.shadow_name),
                             format(CASE WHEN s.is_required
                                         THEN 'ADD CONSTRAINT %1$I CHECK (%2$I IS NOT NULL AND %2$I OPERATOR(pg_catalog.=) %3$I) NOT VALID'
                                         ELSE 'ADD CONSTRAINT %1$I CHECK (%2$I IS NOT DISTINCT FROM %3$I) NOT VALID' END,
                                    s.check_name, s.shadow_name, s.narrow)), E',\n        ' ORDER BY s.attribute)
                         || coalesce((SELECT string_agg(E',\n        ' || k.definition, '' ORDER BY k.name)
                                      FROM snowflake_internal.migration_shadow_checks(targets, column_names) AS k
                                      WHERE k.relation = s.relation AND k.shadow IS NULL), ''))
               || string_agg(
                      CASE WHEN a.attstattarget >= 0
                           THEN format(E'    ALTER TABLE %s ALTER COLUMN %I SET STATISTICS %s;\n', quoted_name.relation, s.shadow_name, a.attstattarget) ELSE '' END
                      || CASE WHEN options.list IS NOT NULL
                              THEN format(E'    ALTER TABLE %s ALTER COLUMN %I SET (%s);\n', quoted_name.relation, s.shadow_name,
                                          array_to_string(options.list, ', ')) ELSE '' END
                      || format(E'    CREATE TRIGGER %I BEFORE INSERT OR UPDATE ON %s\n        FOR EACH ROW EXECUTE FUNCTION snowflake_internal.shadow(%L, %L);\n',
                                s.trigger_name, quoted_name.relation, s.narrow, s.shadow_name)
                      || format(E'    ALTER TABLE %s ENABLE ALWAYS TRIGGER %I;\n', quoted_name.relation, s.trigger_name), '' ORDER BY s.attribute)
               || format(E'    PERFORM snowflake_internal.migration_record_backfill(%s, %L::pg_catalog.regclass);\n',
                         (SELECT snowflake_internal.migration_key_arguments(targets, column_names)), quoted_name.relation)),
           'ACCESS EXCLUSIVE', true,
           format('adds a bigint column beside %s, and the trigger that keeps it up to date, also for replicated rows; holds the lock for a moment, after short attempts to acquire it',
                  string_agg(quote_ident(s.narrow), ', ' ORDER BY s.attribute))
           || coalesce('. Published by ' || pubs.names || format(': first at the subscribers, ALTER TABLE %s %s', quoted_name.relation,
                              string_agg(format('ADD COLUMN %I bigint', s.shadow_name), ', ' ORDER BY s.attribute)), '')
    FROM snowflake_internal.migration_shadows(targets, column_names) AS s
    JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attribute
    CROSS JOIN LATERAL (SELECT snowflake_internal.migration_column_options(a.attoptions) AS list) AS options
    CROSS JOIN LATERAL (SELECT snowflake_internal.migration_name(s.relation) AS relation) AS quoted_name
    CROSS JOIN LATERAL (SELECT snowflake_internal.migration_publications(s.relation, s.narrow) AS names) AS pubs
    WHERE s.shadow IS NULL
    GROUP BY s.relation, quoted_name.relation, pubs.names
    ORDER BY s.relation = ANY (targets) DESC, s.relation::text
$function$;
CREATE FUNCTION snowflake_internal.migration_drop_shadows(targets regclass[], column_names name[])
RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    former_timeout CONSTANT text := current_setting('lock_timeout');
    relations regclass[];
    altered regclass[];
    statements text[];
BEGIN
    relations := ARRAY(
        SELECT DISTINCT e.relation
        FROM snowflake_internal.migration_shadows(targets, column_names) AS s
        CROSS JOIN LATERAL (
            SELECT s.relation
          UNION
            SELECT other.relation FROM pg_constraint AS k
            CROSS JOIN LATERAL (VALUES (k.conrelid::regclass), (k.confrelid::regclass)) AS other (relation)
            WHERE k.contype = 'f' AND (k.conrelid = s.relation AND s.shadow = ANY (k.conkey)
                                       OR k.confrelid = s.relation AND s.shadow = ANY (k.confkey))) AS e
        WHERE s.shadow IS NOT NULL AND num_nonnulls(s.trigger_oid, s.check_oid) > 0);
    IF relations = '{}' THEN
        RETURN false;
    END IF;
    PERFORM snowflake_internal.migration_lock(relations, text 'ACCESS EXCLUSIVE');
    -- Dropping a column drops its indexes and constraints, but not foreign keys that reference it.
    WITH shadow AS MATERIALIZED (
        SELECT s.*, snowflake_internal.migration_name(s.relation) AS quoted_name
        FROM snowflake_internal.migration_shadows(targets, column_names) AS s
        WHERE s.shadow IS NOT NULL AND num_nonnulls(s.trigger_oid, s.check_oid) > 0
    ), statement (place, relation, text) AS (
        SELECT DISTINCT 1, k.conrelid::regclass,
               format('ALTER TABLE %s DROP CONSTRAINT %I', snowflake_internal.migration_name(k.conrelid::regclass), k.conname)
        FROM shadow AS s JOIN pg_constraint AS k ON k.contype = 'f' AND k.confrelid = s.relation AND s.shadow = ANY (k.confkey)
      UNION ALL
        SELECT 2, s.relation, format('DROP TRIGGER %I ON %s', s.trigger_name, s.quoted_name) FROM shadow AS s WHERE s.trigger_oid IS NOT NULL
      UNION ALL
        SELECT 3, s.relation, format('ALTER TABLE %s DROP COLUMN %I', s.quoted_name, s.shadow_name) FROM shadow AS s
    )
    SELECT array_agg(s.relation ORDER BY s.place, s.text), array_agg(s.text ORDER BY s.place, s.text)
    INTO altered, statements
    FROM statement AS s;
    PERFORM snowflake_internal.migration_run_all(altered, statements);
    PERFORM snowflake_internal.migration_end(targets[1], column_names[1]);
    PERFORM set_config('lock_timeout', former_timeout, true);
    RETURN true;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_check_steps(targets regclass[], column_names name[])
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH found AS MATERIALIZED (
        SELECT k.*, snowflake_internal.migration_name(k.relation) AS quoted_name,
               EXISTS (SELECT FROM snowflake_internal.migration_shadows(targets, column_names) AS s
                       WHERE s.relation = k.relation AND s.shadow IS NULL) AS is_to_come
        FROM snowflake_internal.migration_shadow_checks(targets, column_names) AS k
        WHERE NOT k.is_ready
    ), step (relation, place, statement, lock_level, note) AS (
        SELECT f.relation, 1,
               snowflake_internal.migration_do_block(
                   format(E'    PERFORM snowflake_internal.migration_lock(%L::pg_catalog.regclass[], ''ACCESS EXCLUSIVE''::pg_catalog.text);\n', ARRAY[f.quoted_name])
                   || format(E'    ALTER TABLE %s\n        %s;\n', f.quoted_name, string_agg(f.definition, E',\n        ' ORDER BY f.name))),
               'ACCESS EXCLUSIVE',
               format('adds the counterparts of the check constraints %s; holds the lock for a moment, after short attempts to acquire it',
                      string_agg(quote_ident(f.name), ', ' ORDER BY f.name))
        FROM found AS f WHERE f.shadow IS NULL AND NOT f.is_to_come
        GROUP BY f.relation, f.quoted_name
      UNION ALL
        SELECT f.relation, 2,
               format('ALTER TABLE %s %s', f.quoted_name, string_agg(format('VALIDATE CONSTRAINT %I', f.shadow_name), ', ' ORDER BY f.name)),
               'SHARE UPDATE EXCLUSIVE', 'checks the existing rows'
        FROM found AS f WHERE f.is_to_be_valid
        GROUP BY f.relation, f.quoted_name
    )
    SELECT s.statement, s.lock_level, true, s.note
    FROM step AS s
    ORDER BY s.relation = ANY (targets) DESC, s.relation::text, s.place
$function$;
CREATE FUNCTION snowflake_internal.migration_shadow_foreign_keys(targets regclass[], column_names name[])
RETURNS TABLE (
    foreign_key oid, name name, relation regclass, referenced regclass, shadow_name name, shadow oid,
    is_to_be_valid boolean, is_ready boolean, definition text
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.relation, s.attribute, s.shadow_name, s.shadow
        FROM snowflake_internal.migration_shadows(targets, column_names) AS s
    ), narrow_key AS MATERIALIZED (
        SELECT k.*, snowflake_internal.migration_shadow_name(text 'foreign key', k.conname) AS shadow_name,
               -- From PostgreSQL 18 on, a foreign key may be NOT ENFORCED.
               coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true) AS is_enforced
        FROM pg_constraint AS k
        WHERE k.contype = 'f' AND k.conparentid = 0
          AND EXISTS (SELECT FROM shadow AS s
                      WHERE s.relation = k.conrelid AND s.attribute = ANY (k.conkey)
                         OR s.relation = k.confrelid AND s.attribute = ANY (k.confkey))
    )
    SELECT m.oid, m.conname, m.conrelid::regclass, m.confrelid::regclass, m.shadow_name, n.oid, m.convalidated,
           coalesce((n.convalidated OR NOT m.convalidated) AND n.confrelid = m.confrelid
                    AND n.conkey = referencing.attributes AND n.confkey = referenced.attributes, false),
           format('ALTER TABLE %s ADD CONSTRAINT %I FOREIGN KEY (%s) REFERENCES %s (%s)',
                  snowflake_internal.migration_name(m.conrelid::regclass), m.shadow_name, referencing.names,
                  snowflake_internal.migration_name(m.confrelid::regclass), referenced.names)
           || CASE m.confmatchtype WHEN 'f' THEN ' MATCH FULL' ELSE '' END
           || CASE m.confupdtype WHEN 'r' THEN ' ON UPDATE RESTRICT' WHEN 'c' THEN ' ON UPDATE CASCADE'
                                 WHEN 'n' THEN ' ON UPDATE SET NULL' WHEN 'd' THEN ' ON UPDATE SET DEFAULT' ELSE '' END
           || CASE m.confdeltype WHEN 'r' THEN ' ON DELETE RESTRICT' WHEN 'c' THEN ' ON DELETE CASCADE'
                                 WHEN 'n' THEN ' ON DELETE SET NULL' WHEN 'd' THEN ' ON DELETE SET DEFAULT' ELSE '' END
           || coalesce(' (' || emptied.names || ')', '')
           || CASE WHEN m.condeferrable THEN ' DEFERRABLE' ELSE '' END || CASE WHEN m.condeferred THEN ' INITIALLY DEFERRED' ELSE '' END
           || CASE WHEN m.is_enforced THEN ' NOT VALID' ELSE ' NOT ENFORCED' END
    FROM narrow_key AS m
    CROSS JOIN LATERAL (
        SELECT string_agg(quote_ident(coalesce(s.shadow_name, a.attname)), ', ' ORDER BY k.place) AS names,
               array_agg(coalesce(s.shadow, k.attribute) ORDER BY k.place) AS attributes
        FROM unnest(m.conkey) WITH ORDINALITY AS k (attribute, place)
        JOIN pg_attribute AS a ON a.attrelid = m.conrelid AND a.attnum = k.attribute
        LEFT JOIN shadow AS s ON s.relation = m.conrelid AND s.attribute = k.attribute) AS referencing
    CROSS JOIN LATERAL (
        SELECT string_agg(quote_ident(coalesce(s.shadow_name, a.attname)), ', ' ORDER BY k.place) AS names,
               array_agg(coalesce(s.shadow, k.attribute) ORDER BY k.place) AS attributes
        FROM unnest(m.confkey) WITH ORDINALITY AS k (attribute, place)
        JOIN pg_attribute AS a ON a.attrelid = m.confrelid AND a.attnum = k.attribute
        LEFT JOIN shadow AS s ON s.relation = m.confrelid AND s.attribute = k.attribute) AS referenced
    CROSS JOIN LATERAL (
        SELECT string_agg(quote_ident(coalesce(s.shadow_name, a.attname)), ', ' ORDER BY k.place) AS names
        FROM unnest(m.confdelsetcols) WITH ORDINALITY AS k (attribute, place)
        JOIN pg_attribute AS a ON a.attrelid = m.conrelid AND a.attnum = k.attribute
        LEFT JOIN shadow AS s ON s.relation = m.conrelid AND s.attribute = k.attribute) AS emptied
    LEFT JOIN pg_constraint AS n ON n.contype = 'f' AND n.conrelid = m.conrelid AND n.conname = m.shadow_name
$function$;
CREATE FUNCTION snowflake_internal.migration_foreign_key_steps(targets regclass[], column_names name[])
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT step.statement, step.lock_level, true, step.note
    FROM snowflake_internal.migration_shadow_foreign_keys(targets, column_names) AS f
    CROSS JOIN LATERAL (
        SELECT 1 AS place,
               snowflake_internal.migration_do_block(
                   format(E'    PERFORM snowflake_internal.migration_lock(%L::pg_catalog.regclass[], ''SHARE ROW EXCLUSIVE''::pg_catalog.text);\n',
                          ARRAY(SELECT snowflake_internal.migration_name(f.relation) UNION SELECT snowflake_internal.migration_name(f.referenced)))
                   || format(E'    PERFORM snowflake_internal.migration_require_filled(%s);\n',
                             (SELECT snowflake_internal.migration_key_arguments(targets, column_names)))
                   || format(E'    %s;\n', f.definition)
                   -- Its triggers would check rows that the other one does not.
                   || CASE WHEN EXISTS (SELECT FROM snowflake_internal.migration_foreign_key_triggers(ARRAY[f.relation]) AS t
                                        WHERE t.foreign_key = f.foreign_key AND t.state <> 'O')
                           THEN format(E'    PERFORM snowflake_internal.migration_copy_trigger_states(%L::pg_catalog.regclass, %L::pg_catalog.name, %L::pg_catalog.name);\n',
                                       snowflake_internal.migration_name(f.relation), f.name, f.shadow_name) ELSE '' END) AS statement,
               'SHARE ROW EXCLUSIVE' AS lock_level,
               format('adds the counterpart of foreign key %I, which is checked for rows written from now on; holds the lock for a moment, after short attempts to acquire it', f.name) AS note
        WHERE f.shadow IS NULL
      UNION ALL
        SELECT 2, format('ALTER TABLE %s VALIDATE CONSTRAINT %I', snowflake_internal.migration_name(f.relation), f.shadow_name),
               'SHARE UPDATE EXCLUSIVE', format('checks the existing rows; %s is locked in ROW SHARE mode', f.referenced)
        WHERE f.is_to_be_valid
    ) AS step
    WHERE NOT f.is_ready
    ORDER BY f.relation::text, f.name, step.place
$function$;
CREATE FUNCTION snowflake_internal.migration_shadow_indexes(targets regclass[], column_names name[])
RETURNS TABLE (
    index regclass, relation regclass, shadow_name name, shadow regclass, is_ready boolean, definition text
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.relation, s.attribute, s.narrow, s.shadow_name, s.shadow
        FROM snowflake_internal.migration_shadows(targets, column_names) AS s
    ), renamed AS MATERIALIZED (
        SELECT s.relation, array_agg(s.narrow) AS former, array_agg(s.shadow_name) AS present, array_agg(s.attribute) AS attributes
        FROM shadow AS s GROUP BY s.relation
    ), narrow_index AS MATERIALIZED (
        SELECT i.*, c.relname, c.relnamespace, c.relam, c.reltablespace, c.reloptions, r.former, r.present,
               -- Expressions are part of it, so that no counterpart survives another index of the same name.
               snowflake_internal.migration_shadow_name(
                   concat_ws(' ', 'index', pg_get_expr(i.indexprs, i.indrelid), pg_get_expr(i.indpred, i.indrelid)), c.relname) AS shadow_name
        FROM renamed AS r
        JOIN pg_index AS i ON i.indrelid = r.relation
        JOIN pg_class AS c ON c.oid = i.indexrelid
        -- Invalid indexes, left by CREATE INDEX CONCURRENTLY, are not used and not copied.
        -- An index cannot become an exclusion constraint.
        WHERE i.indisvalid AND i.indislive AND NOT i.indisexclusion
          AND (r.attributes && i.indkey::smallint[]
               OR i.indexprs::text ~ ':varattno 0 ' OR i.indpred::text ~ ':varattno 0 '
               OR (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)
                  AND EXISTS (SELECT FROM pg_depend AS d
                              WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                                AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid AND d.refobjsubid = ANY (r.attributes)))
    ), part AS (
        SELECT m.indexrelid, k.place, coalesce(s.shadow, k.attribute) AS attribute,
               CASE WHEN s.attribute IS NOT NULL THEN quote_ident(s.shadow_name)
                    WHEN k.attribute = 0
                    THEN snowflake_internal.migration_rename_columns(pg_get_indexdef(m.indexrelid, k.place::integer, false), m.former, m.present)
                    ELSE pg_get_indexdef(m.indexrelid, k.place::integer, true) END
               || CASE WHEN k.place > m.indnkeyatts THEN '' ELSE
                   coalesce((SELECT format(' COLLATE %I.%I', n.nspname, l.collname)
                             FROM pg_collation AS l JOIN pg_namespace AS n ON n.oid = l.collnamespace
                             WHERE l.oid = o.collation_oid AND l.oid IS DISTINCT FROM t.attcollation), '')
                   -- A shadow column gets bigint's default operator class of the access method.
                   || CASE WHEN s.attribute IS NOT NULL THEN '' ELSE
                       coalesce((SELECT format(' %I.%I', n.nspname, c.opcname)
                                 FROM pg_opclass AS c JOIN pg_namespace AS n ON n.oid = c.opcnamespace
                                 WHERE c.oid = o.opclass AND (NOT c.opcdefault OR a.attoptions IS NOT NULL)), '')
                       || coalesce(' (' || (SELECT string_agg(format('%I = %L', v.option_name, v.option_value), ', ')
                                            FROM pg_options_to_table(a.attoptions) AS v) || ')', '') END
                   || CASE WHEN pg_indexam_has_property(m.relam, 'can_order')
                       THEN CASE WHEN o.option & 1 <> 0 THEN ' DESC' ELSE '' END
                            || CASE WHEN o.option & 3 = 2 THEN ' NULLS FIRST' WHEN o.option & 3 = 1 THEN ' NULLS LAST' ELSE '' END
                       ELSE '' END END AS text
        FROM narrow_index AS m
        CROSS JOIN LATERAL unnest(m.indkey::smallint[]) WITH ORDINALITY AS k (attribute, place)
        LEFT JOIN LATERAL ROWS FROM (unnest(m.indclass::oid[]), unnest(m.indcollation::oid[]), unnest(m.indoption::smallint[]))
            WITH ORDINALITY AS o (opclass, collation_oid, option, place) ON o.place = k.place
        LEFT JOIN pg_attribute AS a ON a.attrelid = m.indexrelid AND a.attnum = k.place
        LEFT JOIN pg_attribute AS t ON t.attrelid = m.indrelid AND t.attnum = k.attribute
        LEFT JOIN shadow AS s ON s.relation = m.indrelid AND s.attribute = k.attribute
    ), definition AS MATERIALIZED (
        SELECT p.indexrelid, bool_and(p.text IS NOT NULL) AS is_mapped, array_agg(p.attribute ORDER BY p.place) AS attributes,
               string_agg(p.text, ', ' ORDER BY p.place) FILTER (WHERE p.place <= i.indnkeyatts) AS keys,
               string_agg(p.text, ', ' ORDER BY p.place) FILTER (WHERE p.place > i.indnkeyatts) AS included
        FROM part AS p JOIN pg_index AS i ON i.indexrelid = p.indexrelid
        GROUP BY p.indexrelid
    ), mapped AS (
        SELECT m.*, p.keys, p.included, p.attributes, w.predicate,
               p.is_mapped AND (m.indpred IS NULL OR w.predicate IS NOT NULL) AS is_mapped
        FROM narrow_index AS m
        CROSS JOIN LATERAL (
            SELECT snowflake_internal.migration_rename_columns(pg_get_expr(m.indpred, m.indrelid), m.former, m.present) AS predicate) AS w
        JOIN definition AS p ON p.indexrelid = m.indexrelid
    )
    SELECT m.indexrelid::regclass, m.indrelid::regclass, m.shadow_name, j.indexrelid::regclass,
           coalesce(j.indisvalid AND j.indisready AND j.indislive AND j.indisunique = m.indisunique
                    -- The index of a DEFERRABLE constraint is not immediate: see src/migration/deferrable.rs.
                    AND j.indimmediate = m.indimmediate
                    AND (j.indexprs IS NULL) = (m.indexprs IS NULL) AND (j.indpred IS NULL) = (m.indpred IS NULL)
                    AND NOT snowflake_internal.migration_uses_other_code('pg_class', m.indexrelid, j.indexrelid)
                    AND j.indnkeyatts = m.indnkeyatts AND ARRAY(SELECT unnest(j.indkey::smallint[])) = m.attributes, false),
           CASE WHEN m.is_mapped THEN concat('CREATE ', CASE WHEN m.indisunique THEN 'UNIQUE ' END, 'INDEX CONCURRENTLY ', quote_ident(m.shadow_name),
                  ' ON ', snowflake_internal.migration_name(m.indrelid::regclass),
                  ' USING ', (SELECT quote_ident(am.amname) FROM pg_am AS am WHERE am.oid = m.relam),
                  ' (', m.keys, ')', ' INCLUDE (' || m.included || ')',
                  CASE WHEN m.indnullsnotdistinct THEN ' NULLS NOT DISTINCT' END,
                  ' WITH (' || (SELECT string_agg(format('%I = %L', v.option_name, v.option_value), ', ')
                                FROM pg_options_to_table(m.reloptions) AS v) || ')',
                  ' TABLESPACE ' || (SELECT quote_ident(t.spcname) FROM pg_tablespace AS t WHERE t.oid = m.reltablespace),
                  ' WHERE ' || m.predicate) END
    FROM mapped AS m
    LEFT JOIN (pg_index AS j JOIN pg_class AS jc ON jc.oid = j.indexrelid)
        ON j.indrelid = m.indrelid AND jc.relname = m.shadow_name AND jc.relnamespace = m.relnamespace
$function$;
CREATE FUNCTION snowflake_internal.migration_index_steps(targets regclass[], column_names name[])
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT step.statement, 'SHARE UPDATE EXCLUSIVE', false, step.note
    FROM snowflake_internal.migration_shadow_indexes(targets, column_names) AS i
    CROSS JOIN LATERAL (
        SELECT 1 AS place, format('DROP INDEX CONCURRENTLY %s', snowflake_internal.migration_name(i.shadow)) AS statement,
               'removes the invalid index of an interrupted build' AS note
        WHERE i.shadow IS NOT NULL
      UNION ALL
        SELECT 2, i.definition,
               format('builds the counterpart of index %s; needs as much disk space as that index (%s now), and as much WAL', i.index, pg_size_pretty(pg_relation_size(i.index)))
    ) AS step
    WHERE NOT i.is_ready
    ORDER BY i.relation = ANY (targets) DESC, i.relation::text, i.index::text, step.place
$function$;
CREATE FUNCTION snowflake_internal.migration_record_backfill(targets regclass[], column_names name[], relation regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- Waits for a session that copies the same table.
    step snowflake_internal.progress := snowflake_internal.migration_progress(targets[1], column_names[1], relation);
    file CONSTANT oid := pg_relation_filenode(relation);
    is_unfinished CONSTANT boolean := step.filenode = file AND (step.blocks_done < step.blocks_total OR step.skipped <> '{}');
BEGIN
    IF is_unfinished IS NOT TRUE THEN
        step.target := targets[1];
        step.column_name := column_names[1];
        step.key_targets := targets;
        step.key_column_names := column_names;
        step.relation := relation;
        step.filenode := file;
        step.blocks_done := 0;
        step.blocks_total := ceil(pg_relation_size(relation, 'main')::numeric / current_setting('block_size')::bigint);
        step.skipped := '{}';
        step.rows_done := 0;
        -- A former estimate is kept, because the first pass has enlarged the table.
        step.rows_total := coalesce(step.rows_total, snowflake_internal.migration_row_estimate(relation));
    END IF;
    step.batch_blocks := NULL;
    step.run_rows := 0;
    step.run_seconds := 0;
    step.updated_at := clock_timestamp();
    PERFORM snowflake_internal.migration_keep_progress(step);
END
$function$;
CREATE FUNCTION snowflake_internal.migration_unfinished(INOUT targets regclass[], INOUT column_names name[])
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    found record;
    common bigint;
BEGIN
    FOR found IN
        SELECT DISTINCT p.key_targets, p.key_column_names
        FROM snowflake_internal.progress AS p
        WHERE p.key_targets && targets
          -- Not what a table that was dropped has left.
          AND NOT EXISTS (SELECT FROM unnest(p.key_targets) AS t (target)
                          WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = t.target))
    LOOP
        SELECT count(*) INTO common
        FROM unnest(targets, column_names) AS mine (target, column_name)
        JOIN unnest(found.key_targets, found.key_column_names) AS theirs (target, column_name)
          ON theirs.target = mine.target AND theirs.column_name = mine.column_name;
        CONTINUE WHEN common = 0
            -- What is left of a migration whose columns were dropped by hand.
            OR NOT EXISTS (SELECT FROM snowflake_internal.migration_shadows(found.key_targets, found.key_column_names) AS s
                           WHERE s.trigger_oid IS NOT NULL);
        IF common < cardinality(targets) THEN
            RAISE EXCEPTION 'cannot migrate %', snowflake_internal.migration_key_names(targets, column_names)
                USING ERRCODE = 'object_not_in_prerequisite_state',
                      DETAIL = format('An online migration of %s has begun.',
                                      snowflake_internal.migration_key_names(found.key_targets, found.key_column_names)),
                      HINT = 'Finish that migration first, or cancel it with snowflake_migrate_revert().';
        END IF;
        targets := found.key_targets;
        column_names := found.key_column_names;
        RETURN;
    END LOOP;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_record_progress(step snowflake_internal.progress)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    step.updated_at := clock_timestamp();
    PERFORM snowflake_internal.migration_keep_progress(step);
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_row_estimate(relation regclass)
RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN c.reltuples >= 0 AND c.relpages > 0
                THEN round(c.reltuples / c.relpages * size.blocks)
                -- Not analyzed yet: estimated from the width of a row, as the planner does.
                ELSE round(size.blocks * ((size.block - 24) / (28 + size.width)::double precision)) END::bigint
    FROM pg_class AS c
    CROSS JOIN LATERAL (
        SELECT pg_relation_size(c.oid, 'main')::numeric / b.block AS blocks, b.block,
               (SELECT sum(CASE WHEN a.attlen > 0 THEN a.attlen ELSE 32 END) FROM pg_attribute AS a
                WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS width
        FROM (SELECT current_setting('block_size')::bigint AS block) AS b
    ) AS size
    WHERE c.oid = relation
$function$;
CREATE FUNCTION snowflake_internal.migration_online_step(targets regclass[], column_names name[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE
        WHEN EXISTS (SELECT FROM snowflake_internal.migration_shadows(targets, column_names) AS s
                     WHERE s.shadow IS NULL) THEN 'adding shadow columns'
        WHEN EXISTS (SELECT FROM snowflake_internal.migration_shadows(targets, column_names) AS s
                     WHERE NOT s.is_filled)
            THEN CASE WHEN EXISTS (SELECT FROM snowflake_internal.progress AS p
                                   WHERE p.target = targets[1]
                                     AND p.column_name = column_names[1]
                                     AND (p.blocks_done < p.blocks_total OR p.skipped <> '{}'))
                      THEN 'backfill' ELSE 'validating rows' END
        WHEN EXISTS (SELECT FROM snowflake_internal.migration_shadow_checks(targets, column_names) AS k
                     WHERE NOT k.is_ready) THEN 'validating rows'
        WHEN EXISTS (SELECT FROM snowflake_internal.migration_shadow_indexes(targets, column_names) AS i
                     WHERE NOT i.is_ready) THEN 'building indexes'
        WHEN EXISTS (SELECT FROM snowflake_internal.migration_shadow_foreign_keys(targets, column_names) AS f
                     WHERE NOT f.is_ready) THEN 'adding foreign keys'
        ELSE 'ready to swap' END
$function$;
CREATE FUNCTION snowflake_internal.migration_pace_settings(
    target regclass, column_name name,
    OUT batch_size integer, OUT pause interval, OUT max_replay_lag interval, OUT max_active_sessions integer, OUT is_paused boolean
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT greatest(coalesce(p.batch_size, 10000), 1), greatest(coalesce(p.pause, interval '0'), interval '0'),
           p.max_replay_lag, p.max_active_sessions, coalesce(p.is_paused, false)
    FROM (VALUES (true)) AS always (is_one)
    LEFT JOIN snowflake_internal.pace AS p
        ON p.target = migration_pace_settings.target AND p.column_name = migration_pace_settings.column_name
$function$;
CREATE FUNCTION snowflake_internal.migration_active_sessions()
RETURNS bigint LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT count(*)
    FROM pg_stat_activity AS a
    WHERE a.datname = current_database() AND a.backend_type = 'client backend' AND a.state = 'active' AND a.pid <> pg_backend_pid()
$function$;
CREATE FUNCTION snowflake_internal.migration_require_statistics(max_replay_lag interval, max_active_sessions integer)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF pg_has_role('pg_read_all_stats', 'USAGE') THEN
        RETURN;
    ELSIF max_replay_lag IS NOT NULL THEN
        RAISE EXCEPTION 'permission denied to read the replay lag of standbys'
            USING ERRCODE = 'insufficient_privilege',
                  HINT = format('GRANT pg_monitor TO %I, or leave max_replay_lag out.', current_user);
    ELSIF max_active_sessions IS NOT NULL THEN
        RAISE EXCEPTION 'permission denied to read the state of other sessions'
            USING ERRCODE = 'insufficient_privilege',
                  HINT = format('GRANT pg_monitor TO %I, or leave max_active_sessions out.', current_user);
    END IF;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_set_pace(
    targets regclass[], column_names name[],
    batch_size integer, pause interval, max_replay_lag interval, max_active_sessions integer, is_paused boolean
) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    pace snowflake_internal.pace;
BEGIN
    IF batch_size < 1 THEN
        RAISE EXCEPTION 'batch_size must be at least 1, but is %', batch_size USING ERRCODE = 'invalid_parameter_value';
    ELSIF pause < interval '0' THEN
        RAISE EXCEPTION 'pause must not be negative, but is %', pause USING ERRCODE = 'invalid_parameter_value';
    ELSIF max_replay_lag < interval '0' THEN
        RAISE EXCEPTION 'max_replay_lag must not be negative, but is %', max_replay_lag
            USING ERRCODE = 'invalid_parameter_value', HINT = '0 removes the limit.';
    ELSIF max_active_sessions < -1 THEN
        RAISE EXCEPTION 'max_active_sessions must be at least -1, but is %', max_active_sessions
            USING ERRCODE = 'invalid_parameter_value', HINT = '-1 removes the limit.';
    ELSIF num_nonnulls(batch_size, pause, max_replay_lag, max_active_sessions, is_paused) = 0 THEN
        RETURN;
    END IF;
    PERFORM snowflake_internal.migration_require_statistics(nullif(max_replay_lag, interval '0'), nullif(max_active_sessions, -1));
    -- Waits for a session that changes the same pace.
    pace := snowflake_internal.migration_pace(targets[1], column_names[1]);
    pace.target := targets[1];
    pace.column_name := column_names[1];
    pace.batch_size := coalesce(migration_set_pace.batch_size, pace.batch_size);
    pace.pause := coalesce(migration_set_pace.pause, pace.pause);
    pace.max_replay_lag := nullif(coalesce(migration_set_pace.max_replay_lag, pace.max_replay_lag), interval '0');
    pace.max_active_sessions := nullif(coalesce(migration_set_pace.max_active_sessions, pace.max_active_sessions), -1);
    pace.is_paused := coalesce(migration_set_pace.is_paused, pace.is_paused, false);
    PERFORM snowflake_internal.migration_keep_pace(pace);
END
$function$;
CREATE FUNCTION snowflake_internal.migration_backfill_wait(
    targets regclass[], column_names name[], relation regclass, batch_ended_at timestamptz, is_locked boolean,
    INOUT mark pg_lsn, INOUT marked_at timestamptz, INOUT slow_seconds double precision, INOUT slowed_at timestamptz,
    OUT batch_size integer, OUT milliseconds integer, OUT cause text, OUT report text
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    look_again_after CONSTANT double precision := 0.2;
    retry_after CONSTANT double precision := 0.5;
    shortest_slow CONSTANT double precision := 0.1;
    longest_slow CONSTANT double precision := 10;
    paused CONSTANT text := 'snowflake_migrate_pace(is_paused => false)';
    settings record;
    pause double precision;
    elapsed CONSTANT double precision := extract(epoch FROM clock_timestamp() - batch_ended_at);
    seconds double precision := look_again_after;
    active bigint;
    lagging text;
    pid integer;
    is_changed boolean := false;
    is_ended boolean;
    step snowflake_internal.progress;
BEGIN
    SELECT s.* INTO settings FROM snowflake_internal.migration_pace_settings(targets[1], column_names[1]) AS s;
    batch_size := settings.batch_size;
    pause := extract(epoch FROM settings.pause);
    IF settings.is_paused THEN
        cause := paused;
        report := format('paused: CALL snowflake_migrate_pace(%L, is_paused => false) resumes it', targets[1]);
    ELSIF num_nonnulls(settings.max_replay_lag, settings.max_active_sessions) > 0 AND NOT pg_has_role('pg_read_all_stats', 'USAGE') THEN
        -- Another role has set the limit. Copying without it could do harm.
        cause := format('GRANT pg_monitor TO %I', current_user);
        report := format('waiting: a limit is set, but %I lacks the privileges of pg_monitor to observe it', current_user);
    ELSIF settings.max_replay_lag IS NOT NULL THEN
        SELECT l.mark, l.marked_at, l.lagging INTO mark, marked_at, lagging
        FROM snowflake_internal.migration_replay_lag(settings.max_replay_lag, mark, marked_at) AS l;
        IF lagging IS NOT NULL THEN
            cause := format('%s: more than %s behind', lagging, settings.max_replay_lag);
            report := 'waiting for ' || cause;
        END IF;
    END IF;
    IF settings.max_active_sessions IS NULL THEN
        slow_seconds := 0;
    ELSIF cause IS NULL AND batch_ended_at IS NOT NULL THEN
        active := snowflake_internal.migration_active_sessions();
        IF slowed_at IS DISTINCT FROM batch_ended_at THEN
            slowed_at := batch_ended_at;
            slow_seconds := CASE WHEN active > settings.max_active_sessions
                THEN least(greatest(longest_slow, pause), 2 * greatest(slow_seconds, pause, shortest_slow / 2))
                ELSE slow_seconds / 2 END;
            slow_seconds := CASE WHEN slow_seconds >= shortest_slow THEN slow_seconds ELSE 0 END;
        END IF;
        IF active > settings.max_active_sessions AND elapsed < slow_seconds THEN
            seconds := slow_seconds - elapsed;
            cause := format('other sessions: more than %s are active', settings.max_active_sessions);
            report := format('slowing down to a pause of %s s: %s other sessions are active, more than %s',
                             round(slow_seconds::numeric, 1), active, settings.max_active_sessions);
        END IF;
    END IF;
    IF cause IS NULL THEN
        seconds := greatest(pause, CASE WHEN is_locked THEN retry_after ELSE 0 END) - elapsed;
        cause := CASE WHEN is_locked AND seconds > 0 THEN 'rows that other transactions have locked' END;
    END IF;
    milliseconds := CASE WHEN seconds > 0 THEN ceil(1000 * least(seconds, look_again_after)) END;

    pid := CASE WHEN cause IS NOT NULL THEN pg_backend_pid() END;
    SELECT p.* INTO step FROM snowflake_internal.progress AS p
    WHERE p.target = targets[1] AND p.column_name = column_names[1] AND p.relation = migration_backfill_wait.relation;
    is_ended := step.target IS NULL;
    IF NOT is_ended AND (step.waiting_for, step.waiting_pid) IS DISTINCT FROM (cause, pid) THEN
        step := snowflake_internal.migration_progress(targets[1], column_names[1], relation);
        is_ended := step.target IS NULL;
        IF step.waiting_for = paused THEN
            -- The rate of rows does not count the time in which it was paused.
            step.updated_at := clock_timestamp();
        END IF;
        step.waiting_for := cause;
        step.waiting_pid := pid;
        is_changed := true;
    END IF;
    IF is_ended THEN
        RAISE EXCEPTION 'the migration of % was ended by another session', snowflake_internal.migration_key_names(targets, column_names)
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF is_changed THEN
        PERFORM snowflake_internal.migration_keep_progress(step);
    END IF;
END
$function$;
CREATE OR REPLACE VIEW snowflake_migrations AS
    SELECT c.oid::pg_catalog.regclass AS table_name,
           key.column_name,
           snowflake_internal.migration_online_step(p.targets, p.column_names) AS step,
           p.rows_done, p.rows_total,
           pg_catalog.round(p.run_rows / CASE WHEN p.run_seconds <> 0::pg_catalog.float8 THEN p.run_seconds END)::bigint AS rows_per_second,
           pg_catalog.make_interval(secs => pg_catalog.round(
               (p.rows_total - p.rows_done)::pg_catalog.float8 * p.run_seconds
               / CASE WHEN p.run_rows <> 0::pg_catalog.float8 THEN p.run_rows END)) AS time_left,
           pace.is_paused, pace.batch_size, pace.pause, pace.max_replay_lag, pace.max_active_sessions, p.waiting_for
    FROM (SELECT coalesce(s.key_targets, ARRAY[s.target]) AS targets, coalesce(s.key_column_names, ARRAY[s.column_name]) AS column_names,
                 pg_catalog.sum(s.rows_done)::bigint AS rows_done, pg_catalog.sum(s.rows_total)::bigint AS rows_total,
                 pg_catalog.sum(s.run_rows)::double precision AS run_rows, pg_catalog.sum(s.run_seconds) AS run_seconds,
                 -- Not what a session that was ended has left.
                 pg_catalog.max(s.waiting_for) FILTER (WHERE s.waiting_for IS NOT NULL AND EXISTS (
                     SELECT FROM pg_catalog.pg_stat_activity AS a WHERE a.pid = s.waiting_pid)) AS waiting_for
          FROM snowflake_internal.progress AS s
          GROUP BY 1, 2) AS p
    CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(p.targets), pg_catalog.unnest(p.column_names)) AS key (target, column_name)
    JOIN pg_catalog.pg_class AS c ON c.oid = key.target::pg_catalog.oid
    CROSS JOIN LATERAL snowflake_internal.migration_pace_settings(p.targets[1], p.column_names[1]) AS pace
    WHERE EXISTS (SELECT FROM snowflake_internal.migration_shadows(p.targets, p.column_names) AS s
                  WHERE s.trigger_oid IS NOT NULL);
CREATE OR REPLACE FUNCTION snowflake_internal.migration_update_triggers(relation regclass)
RETURNS TABLE (trigger_name name, enabled text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT t.tgname, t.tgenabled::text
    FROM pg_trigger AS t
    WHERE t.tgrelid = relation AND NOT t.tgisinternal AND t.tgenabled <> 'D'
      AND t.tgfoid <> 'snowflake_internal.shadow()'::regprocedure
      -- UPDATE of any column.
      AND t.tgtype & 16 <> 0 AND cardinality(t.tgattr::smallint[]) = 0
$function$;
CREATE FUNCTION snowflake_internal.migration_backfill_batch(
    targets regclass[], column_names name[], relation regclass, batch_size integer, search_path text DEFAULT NULL,
    OUT is_done boolean, OUT is_waiting boolean, OUT report text
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- Batches are smaller if rows are large or disks are slow.
    target_seconds CONSTANT double precision := 0.5;
    most_blocks CONSTANT bigint := 8192;
    quoted_name CONSTANT text := snowflake_internal.migration_name(relation);
    found text[];
    started_at CONSTANT timestamptz := clock_timestamp();
    step snowflake_internal.progress;
    assignments text;
    is_missing text;
    in_blocks text;
    is_retry boolean;
    first bigint;
    last bigint;
    seen bigint;  -- Rows processed, by estimate: rows that move are not counted twice.
    missing bigint;
    written bigint := 0;
    locked_blocks int8multirange;
    elapsed double precision;
    former_role text;
    former_timeout text;
    has_deferrable boolean;
    rate double precision;
BEGIN
    is_waiting := false;
    step := snowflake_internal.migration_progress(targets[1], column_names[1], relation);
    SELECT string_agg(format('%I = source.%I', s.shadow_name, s.narrow), ', '),
           '(' || string_agg(format('source.%I IS DISTINCT FROM source.%I', s.shadow_name, s.narrow), ' OR ') || ')'
    INTO assignments, is_missing
    FROM snowflake_internal.migration_shadows(targets, column_names) AS s
    WHERE s.relation = migration_backfill_batch.relation AND s.is_kept;
    IF step.target IS NULL OR assignments IS NULL THEN
        RAISE EXCEPTION 'the migration of % was ended by another session', snowflake_internal.migration_key_names(targets, column_names)
            USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF step.filenode IS DISTINCT FROM pg_relation_filenode(relation) THEN
        -- Rewritten by VACUUM FULL or a similar command.
        PERFORM snowflake_internal.migration_record_backfill(targets, column_names, relation);
        is_done := false;
        report := format('%s was rewritten: its rows are checked again', relation);
        RETURN;
    END IF;

    is_retry := step.blocks_done >= step.blocks_total;
    is_done := is_retry AND step.skipped = '{}';
    IF is_done THEN
        RETURN;
    ELSIF is_retry THEN
        -- A random range, so that rows that stay locked do not delay the other ranges.
        SELECT lower(r), upper(r) INTO first, last FROM unnest(step.skipped) AS r ORDER BY random() LIMIT 1;
    ELSE
        first := step.blocks_done;
        -- The size of the first batch follows from the estimated number of rows.
        last := least(first + coalesce(step.batch_blocks, greatest(1, batch_size * step.blocks_total / greatest(step.rows_total, 1))),
                      step.blocks_total);
    END IF;

    -- The statements run by the caller's search path, because planning them may
    -- already inline functions of the table's indexes, and triggers run with them.
    -- The types of both columns have an operator = in pg_catalog, which is first.
    LOOP
        in_blocks := format('source.ctid OPERATOR(pg_catalog.>=) %L::pg_catalog.tid AND source.ctid OPERATOR(pg_catalog.<) %L::pg_catalog.tid',
                            format('(%s,0)', first), format('(%s,0)', last));
        found := snowflake_internal.migration_run(relation, format(
            'SELECT pg_catalog.count(*) FROM ONLY %s AS source WHERE %s AND %s',
            quoted_name, in_blocks, is_missing), search_path);
        missing := found[1]::bigint;
        EXIT WHEN missing <= batch_size OR last - first <= 1;
        last := first + greatest(1, (last - first) * batch_size / missing);
    END LOOP;

    IF missing > 0 THEN
        IF EXISTS (SELECT FROM snowflake_internal.migration_update_triggers(relation) AS t WHERE t.enabled = 'O') THEN
            former_role := current_setting('session_replication_role');
            PERFORM set_config('session_replication_role', 'replica', true);
        END IF;
        -- The check of a DEFERRABLE constraint waits for other transactions, at the end
        -- of the statement here. They may wait for the rows written above.
        has_deferrable := EXISTS (SELECT FROM pg_constraint AS k
                                  WHERE k.conrelid = relation AND k.contype IN ('p', 'u', 'x') AND k.condeferrable);
        IF has_deferrable THEN
            SET CONSTRAINTS ALL IMMEDIATE;
            former_timeout := current_setting('lock_timeout');
            PERFORM set_config('lock_timeout', snowflake_internal.migration_short_wait()::text, true);
        END IF;
        BEGIN
            found := snowflake_internal.migration_run(relation, format(
                'WITH written AS (
                     UPDATE ONLY %2$s AS source SET %3$s
                     WHERE source.ctid OPERATOR(pg_catalog.=) ANY (ARRAY(
                         SELECT source.ctid FROM ONLY %2$s AS source WHERE %4$s AND %1$s
                         LIMIT %5$L::pg_catalog.int8 FOR NO KEY UPDATE SKIP LOCKED))
                     RETURNING 1)
                 SELECT pg_catalog.count(*) FROM written',
                is_missing, quoted_name, assignments, in_blocks,
                -- Of different size each time, until one succeeds.
                CASE WHEN has_deferrable AND is_retry THEN ceil(batch_size * random() ^ 3) ELSE batch_size END), search_path);
            written := found[1]::bigint;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF NOT has_deferrable THEN
                RAISE;
            END IF;
            -- All rows are tried again.
            written := 0;
        END;
        IF has_deferrable THEN
            PERFORM set_config('lock_timeout', former_timeout, true);
        END IF;
        IF former_role IS NOT NULL THEN
            PERFORM set_config('session_replication_role', former_role, true);
        END IF;
        found := snowflake_internal.migration_run(relation, format(
            'SELECT pg_catalog.count(*), pg_catalog.range_agg(pg_catalog.int8range(m.block, m.block OPERATOR(pg_catalog.+) 1))
             FROM (SELECT (source.ctid::pg_catalog.text::pg_catalog.point)[0]::pg_catalog.int8 AS block
                   FROM ONLY %s AS source WHERE %s AND %s) AS m',
            quoted_name, in_blocks, is_missing), search_path);
        missing := found[1]::bigint;
        locked_blocks := found[2]::int8multirange;
    END IF;

    elapsed := extract(epoch FROM clock_timestamp() - started_at);
    IF missing > 0 AND written >= batch_size THEN
        NULL;  -- One block with more rows than a batch: the next batch continues.
    ELSIF is_retry THEN
        step.skipped := step.skipped - int8range(first, last)::int8multirange + coalesce(locked_blocks, '{}');
        is_waiting := written = 0 AND missing > 0;
    ELSE
        step.blocks_done := last;
        step.skipped := step.skipped + coalesce(locked_blocks, '{}');
        seen := round(step.rows_total * (last::double precision / step.blocks_total)) - step.rows_done;
        step.rows_done := step.rows_done + seen;
        step.run_rows := step.run_rows + seen;
        step.batch_blocks := least(most_blocks, greatest(1, (last - first)
            * least(2, batch_size / greatest(written, 1)::double precision, target_seconds / greatest(elapsed, 0.001))));
    END IF;
    -- The time since the last record, including the pauses.
    step.run_seconds := step.run_seconds + extract(epoch FROM clock_timestamp() - (
        SELECT max(p.updated_at) FROM snowflake_internal.progress AS p
        WHERE p.target = targets[1]
          AND p.column_name = column_names[1]));
    PERFORM snowflake_internal.migration_record_progress(step);

    SELECT m.rows_per_second INTO rate FROM (
        SELECT sum(p.run_rows) / nullif(sum(p.run_seconds), 0) AS rows_per_second
        FROM snowflake_internal.progress AS p
        WHERE p.target = targets[1]
          AND p.column_name = column_names[1]) AS m;
    report := CASE WHEN is_waiting
        THEN format('%s: rows are locked by other transactions, and will be tried again', step.relation)
        ELSE (SELECT format('%s: %s of %s rows, %s rows/s, %s left', step.relation, sum(p.rows_done), sum(p.rows_total), round(rate),
                            coalesce(make_interval(secs => round((sum(p.rows_total) - sum(p.rows_done)) / nullif(rate, 0)))::text, 'unknown time'))
              FROM snowflake_internal.progress AS p
              WHERE p.target = targets[1]
                AND p.column_name = column_names[1]) END;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_backfill_begin(
    targets regclass[], column_names name[], batch_size integer, pause interval, max_replay_lag interval, max_active_sessions integer
) RETURNS regclass[] LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relations regclass[];
    missing text;
    obstacles text;
    code text;
    relation regclass;
BEGIN
    PERFORM snowflake_internal.migration_require_owner(key.target) FROM unnest(targets) AS key (target);
    SELECT array_agg(DISTINCT s.relation) FILTER (WHERE s.is_kept),
           string_agg(format('%s.%I', s.relation, s.narrow), ', ') FILTER (WHERE NOT s.is_kept)
    INTO relations, missing
    FROM snowflake_internal.migration_shadows(targets, column_names) AS s;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'columns have no shadow column yet: %', missing
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Run the statements of snowflake_migration_plan() with online => true in order.';
    END IF;
    SELECT string_agg(format('%s. %s', o.obstacle, o.remedy), E'\n'), min(o.sqlstate_code) INTO obstacles, code
    FROM unnest(relations) AS r (relation)
    CROSS JOIN LATERAL snowflake_internal.migration_update_obstacles(r.relation) AS o;
    IF obstacles IS NOT NULL THEN
        RAISE EXCEPTION 'cannot copy %', snowflake_internal.migration_key_names(targets, column_names)
            USING ERRCODE = code, DETAIL = obstacles, HINT = 'Nothing was changed. Remove the obstacles, then run it again.';
    END IF;
    PERFORM snowflake_internal.migration_set_pace(targets, column_names, batch_size, pause, max_replay_lag, max_active_sessions, NULL);
    -- Another role may have set the limits.
    PERFORM snowflake_internal.migration_require_statistics(s.max_replay_lag, s.max_active_sessions)
    FROM snowflake_internal.migration_pace_settings(targets[1], column_names[1]) AS s;
    relations := ARRAY(SELECT r.relation FROM unnest(relations) AS r (relation) ORDER BY r.relation = ANY (targets) DESC, r.relation::text);
    FOREACH relation IN ARRAY relations LOOP
        PERFORM snowflake_internal.migration_record_backfill(targets, column_names, relation);
    END LOOP;
    RETURN relations;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_backfill_steps(targets regclass[], column_names name[])
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    extension_schema CONSTANT text := '@extschema@';
    tables text;
    bytes numeric;
    wal numeric;
    rows numeric;
BEGIN
    -- WAL of an updated row: a record of its lock, one of the new row, and an entry
    -- in each index unless the row's page has room (HOT). In addition, each page
    -- is logged in full once after a checkpoint.
    SELECT string_agg(t.relation::text, ', ' ORDER BY t.relation::text), sum(t.rows), sum(t.bytes),
           sum(t.rows * (140 + 72 * t.indexes) + t.heap + t.bytes)
    INTO tables, rows, bytes, wal
    FROM (SELECT DISTINCT s.relation, snowflake_internal.migration_row_estimate(s.relation) AS rows,
                 pg_relation_size(s.relation) AS heap, pg_relation_size(s.relation) + pg_indexes_size(s.relation) AS bytes,
                 (SELECT count(*) FROM pg_index AS i WHERE i.indrelid = s.relation) AS indexes
          FROM snowflake_internal.migration_shadows(targets, column_names) AS s WHERE NOT s.is_filled) AS t;
    IF tables IS NULL THEN
        RETURN;
    END IF;
    -- Not needed if all tables are copied. The validation that follows would show
    -- any missing rows.
    IF EXISTS (SELECT FROM snowflake_internal.migration_shadows(targets, column_names) AS s
               LEFT JOIN snowflake_internal.progress AS p
                   ON p.target = targets[1]
                  AND p.column_name = column_names[1] AND p.relation = s.relation
               WHERE NOT s.is_filled
                 AND (s.is_kept AND p.blocks_done >= p.blocks_total AND p.skipped = '{}' AND p.filenode = pg_relation_filenode(s.relation)) IS NOT TRUE)
    THEN
        statement := CASE WHEN cardinality(targets) = 1
            THEN format('CALL %s.snowflake_migrate_backfill(%L::pg_catalog.regclass, %L::pg_catalog.name)',
                        extension_schema, snowflake_internal.migration_name(targets[1]), column_names[1])
            ELSE format('CALL %s.snowflake_migrate_backfill_tables(%s)',
                        extension_schema, snowflake_internal.migration_key_arguments(targets, column_names)) END;
        lock_level := 'ROW EXCLUSIVE';
        in_transaction := false;
        note := format('copies the columns of about %s rows of %s in batches, one transaction each. Each row is written again: up to %s more disk space until it is vacuumed, and about %s of WAL',
                       rows, tables, pg_size_pretty(bytes), pg_size_pretty(wal));
        RETURN NEXT;
    END IF;
    FOR statement, note IN
        SELECT format('ALTER TABLE %s VALIDATE CONSTRAINT %I', snowflake_internal.migration_name(s.relation), s.check_name),
               format('checks that each row has its shadow of %I, which later steps rely on. If it fails (23514), CALL snowflake_migrate_backfill() again', s.narrow)
        FROM snowflake_internal.migration_shadows(targets, column_names) AS s
        WHERE NOT s.is_filled
        ORDER BY s.relation = ANY (targets) DESC, s.relation::text, s.attribute
    LOOP
        lock_level := 'SHARE UPDATE EXCLUSIVE';
        in_transaction := true;
        RETURN NEXT;
    END LOOP;
END
$function$;
CREATE PROCEDURE snowflake_migrate_backfill_tables(
    targets regclass[], column_names name[] DEFAULT NULL, batch_size integer DEFAULT NULL,
    pause interval DEFAULT NULL, max_replay_lag interval DEFAULT NULL, max_active_sessions integer DEFAULT NULL
) LANGUAGE plpgsql
AS $procedure$
DECLARE
    key_targets pg_catalog.regclass[];
    key_columns pg_catalog.name[];
    relations pg_catalog.regclass[];
    wait pg_catalog.record;
    batch pg_catalog.record;
    watermark pg_catalog.pg_lsn;
    watermark_at timestamp with time zone;
    batch_ended_at timestamp with time zone;
    is_locked boolean;
    slow_seconds double precision;
    slowed_at timestamp with time zone;
    last_notice_at timestamp with time zone;
    last_cause pg_catalog.text;
BEGIN
    IF pg_catalog.now() OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp() THEN
        RAISE EXCEPTION 'snowflake_migrate_backfill cannot run inside a transaction block'
            USING ERRCODE = 'active_sql_transaction',
                  DETAIL = 'It commits after each batch.';
    END IF;
    -- Set explicitly, because the server's default may differ: each batch has to
    -- see the rows written before it.
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT u.targets, u.column_names INTO key_targets, key_columns
    FROM snowflake_internal.migration_keys(targets, column_names) AS k
    CROSS JOIN LATERAL snowflake_internal.migration_unfinished(k.targets, k.column_names) AS u;
    relations := snowflake_internal.migration_backfill_begin(key_targets, key_columns, batch_size, pause, max_replay_lag, max_active_sessions);
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    FOR i IN 1 .. pg_catalog.cardinality(relations) LOOP
        LOOP
            -- How long to wait, or what to copy: another session may have changed it.
            SELECT w.* INTO wait
            FROM snowflake_internal.migration_backfill_wait(key_targets, key_columns, relations[i], batch_ended_at, is_locked,
                                                            watermark, watermark_at, slow_seconds, slowed_at) AS w;
            watermark := wait.mark;
            watermark_at := wait.marked_at;
            slow_seconds := wait.slow_seconds;
            slowed_at := wait.slowed_at;
            IF wait.milliseconds IS NOT NULL THEN
                IF wait.report IS NOT NULL
                   AND (last_notice_at IS NULL OR last_cause OPERATOR(pg_catalog.<>) wait.cause OR pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) last_notice_at
                                                  OPERATOR(pg_catalog.>) interval '10 seconds') THEN
                    last_notice_at := pg_catalog.clock_timestamp();
                    last_cause := wait.cause;
                    RAISE NOTICE '%', wait.report;
                END IF;
                -- A snapshot held while waiting would keep dead rows from being removed.
                -- So it commits first.
                CALL snowflake_internal.migration_sleep(wait.milliseconds);
                SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
                CONTINUE;
            END IF;
            SELECT b.is_done, b.is_waiting, b.report INTO batch
            FROM snowflake_internal.migration_backfill_batch(
                key_targets, key_columns, relations[i], wait.batch_size, pg_catalog.current_setting('search_path'::pg_catalog.text)) AS b;
            COMMIT;
            SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
            is_locked := batch.is_waiting;
            -- The first batch of the next table waits for no pause.
            batch_ended_at := CASE WHEN NOT batch.is_done THEN pg_catalog.clock_timestamp() END;
            EXIT WHEN batch.is_done;
            IF NOT is_locked THEN
                RAISE NOTICE '%', batch.report;
            ELSIF last_notice_at IS NULL OR pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) last_notice_at
                                            OPERATOR(pg_catalog.>) interval '10 seconds' THEN
                last_notice_at := pg_catalog.clock_timestamp();
                last_cause := 'locks';
                RAISE NOTICE '%', batch.report;
            END IF;
        END LOOP;
    END LOOP;
END
$procedure$;
CREATE PROCEDURE snowflake_migrate_backfill(
    target regclass, column_name name DEFAULT NULL, batch_size integer DEFAULT NULL,
    pause interval DEFAULT NULL, max_replay_lag interval DEFAULT NULL, max_active_sessions integer DEFAULT NULL
) LANGUAGE plpgsql
AS $procedure$
BEGIN
    CALL @extschema@.snowflake_migrate_backfill_tables(ARRAY[target], ARRAY[column_name], batch_size, pause, max_replay_lag,
                                                     max_active_sessions);
END
$procedure$;
CREATE PROCEDURE snowflake_migrate_pace(
    target regclass, column_name name DEFAULT NULL, batch_size integer DEFAULT NULL, pause interval DEFAULT NULL,
    max_replay_lag interval DEFAULT NULL, max_active_sessions integer DEFAULT NULL, is_paused boolean DEFAULT NULL
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $procedure$
DECLARE
    key_column name;
    targets regclass[];
    column_names name[];
BEGIN
    -- Checked first: without ownership, migration_column() does not see the record of
    -- the migration, and would report a misleading error.
    IF EXISTS (SELECT FROM pg_class AS c WHERE c.oid = target AND c.relkind IN ('r', 'p')) THEN
        PERFORM snowflake_internal.migration_require_owner(target);
    END IF;
    key_column := snowflake_internal.migration_column(target, column_name);
    SELECT u.targets, u.column_names INTO targets, column_names
    FROM snowflake_internal.migration_unfinished(ARRAY[target], ARRAY[key_column]) AS u;
    IF NOT EXISTS (SELECT FROM snowflake_internal.migration_shadows(targets, column_names) AS s WHERE s.trigger_oid IS NOT NULL)
       OR NOT EXISTS (SELECT FROM snowflake_internal.progress AS p WHERE p.target = targets[1] AND p.column_name = column_names[1])
    THEN
        RAISE EXCEPTION 'column "%" of % is not being migrated online', key_column, target
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'The view snowflake_migrations lists the unfinished online migrations.';
    END IF;
    PERFORM snowflake_internal.migration_require_owner(key.target) FROM unnest(targets) AS key (target);
    PERFORM snowflake_internal.migration_set_pace(targets, column_names, batch_size, pause, max_replay_lag, max_active_sessions, is_paused);
END
$procedure$;
CREATE FUNCTION snowflake_internal.migration_shadow_statistics(targets regclass[], column_names name[])
RETURNS TABLE (
    statistics oid, name name, schema name, relation regclass, owner oid, shadow_name name, shadow oid, definition text, target integer
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.* FROM snowflake_internal.migration_shadows(targets, column_names) AS s
    ), renamed AS MATERIALIZED (
        SELECT s.relation, array_agg(s.narrow) AS former, array_agg(s.shadow_name) AS present, array_agg(s.attribute) AS attributes
        FROM shadow AS s GROUP BY s.relation
    ), narrow_statistics AS MATERIALIZED (
        SELECT x.*, n.nspname, r.former, r.present,
               coalesce(pg_get_statisticsobjdef_expressions(x.oid), '{}') AS expressions
        FROM renamed AS r
        JOIN pg_statistic_ext AS x ON x.stxrelid = r.relation
        JOIN pg_namespace AS n ON n.oid = x.stxnamespace
        WHERE x.stxexprs::text ~ ':varattno 0 '
           OR EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_statistic_ext'::regclass AND d.objid = x.oid
                        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = r.relation AND d.refobjsubid = ANY (r.attributes))
    ), named AS MATERIALIZED (
        -- The definition is part of the name, so that no counterpart survives another one of the same name.
        SELECT m.*, snowflake_internal.migration_shadow_name(
                   concat_ws(' ', 'statistics', m.stxkeys::text, m.stxkind::text, array_to_string(m.expressions, ' ')), m.stxname) AS shadow_name
        FROM narrow_statistics AS m
    )
    SELECT m.oid, m.stxname, m.nspname, m.stxrelid::regclass, m.stxowner, m.shadow_name, x.oid,
           format('CREATE STATISTICS %I.%I', m.nspname, m.shadow_name)
           || CASE WHEN cardinality(m.stxkeys::smallint[]) + cardinality(m.expressions) < 2 THEN ''
                   ELSE (SELECT format(' (%s)', string_agg(k.name, ', ' ORDER BY k.name))
                         FROM (VALUES ('d', 'ndistinct'), ('f', 'dependencies'), ('m', 'mcv')) AS k (kind, name)
                         WHERE k.kind::"char" = ANY (m.stxkind)) END
           || ' ON ' || part.texts || ' FROM ' || snowflake_internal.migration_name(m.stxrelid::regclass),
           coalesce(m.stxstattarget, -1)
    FROM named AS m
    CROSS JOIN LATERAL (
        -- NULL if an expression cannot be mapped.
        SELECT CASE WHEN bool_and(p.text IS NOT NULL) THEN string_agg(p.text, ', ' ORDER BY p.kind, p.place) END AS texts
        FROM (SELECT 1 AS kind, k.place, quote_ident(coalesce(s.shadow_name, a.attname)) AS text
              FROM unnest(m.stxkeys::smallint[]) WITH ORDINALITY AS k (attribute, place)
              JOIN pg_attribute AS a ON a.attrelid = m.stxrelid AND a.attnum = k.attribute
              LEFT JOIN shadow AS s ON s.relation = m.stxrelid AND s.attribute = k.attribute
            UNION ALL
              SELECT 2, e.place, '(' || snowflake_internal.migration_rename_columns(e.expression, m.former, m.present) || ')'
              FROM unnest(m.expressions) WITH ORDINALITY AS e (expression, place)) AS p
    ) AS part
    LEFT JOIN pg_statistic_ext AS x ON x.stxrelid = m.stxrelid AND x.stxname = m.shadow_name AND x.stxnamespace = m.stxnamespace
$function$;
CREATE FUNCTION snowflake_internal.migration_statistics_steps(targets regclass[], column_names name[])
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_internal.migration_do_block(string_agg(
               format(E'    PERFORM snowflake_internal.migration_run(%L::pg_catalog.regclass, %L::pg_catalog.text);\n',
                      snowflake_internal.migration_name(x.relation), command.text), '' ORDER BY command.place)),
           'SHARE UPDATE EXCLUSIVE', true, format('creates the counterpart of statistics object %I.%I', x.schema, x.name)
    FROM snowflake_internal.migration_shadow_statistics(targets, column_names) AS x
    CROSS JOIN LATERAL (
        SELECT 1 AS place, x.definition AS text
      UNION ALL
        SELECT 2, format('ALTER STATISTICS %I.%I SET STATISTICS %s', x.schema, x.shadow_name, x.target) WHERE x.target <> -1) AS command
    WHERE x.shadow IS NULL
    GROUP BY x.relation, x.schema, x.name
    ORDER BY x.relation = ANY (targets) DESC, x.relation::text, x.schema, x.name
$function$;
CREATE FUNCTION snowflake_internal.migration_analyzed_whole(targets regclass[], column_names name[])
RETURNS TABLE (relation regclass, is_lacking boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT e.relation,
           bool_or(e.is_lacking) AND c.reltuples <> 0 AND pg_relation_size(c.oid) > 0
           AND pg_has_role(c.relowner, 'USAGE') AND NOT row_security_active(c.oid)
    FROM (SELECT x.relation,
                 -- None are collected for a target of 0, of the object or of a column.
                 x.target <> 0
                 AND NOT EXISTS (SELECT FROM pg_statistic_ext AS o JOIN pg_attribute AS a
                                     ON a.attrelid = o.stxrelid AND a.attnum = ANY (o.stxkeys::smallint[]) AND a.attstattarget = 0
                                 WHERE o.oid = x.statistics)
                 AND NOT EXISTS (SELECT FROM pg_stats_ext AS t
                                 WHERE t.statistics_schemaname = x.schema AND t.statistics_name = x.shadow_name) AS is_lacking
          FROM snowflake_internal.migration_shadow_statistics(targets, column_names) AS x
        UNION ALL
          SELECT i.relation,
                 NOT EXISTS (SELECT FROM pg_class AS s
                             JOIN pg_namespace AS n ON n.oid = s.relnamespace
                             JOIN pg_stats AS t ON t.schemaname = n.nspname AND t.tablename = s.relname
                             WHERE s.oid = i.shadow)
          FROM snowflake_internal.migration_shadow_indexes(targets, column_names) AS i
          JOIN pg_index AS x ON x.indexrelid = i.index AND x.indexprs IS NOT NULL) AS e
    JOIN pg_class AS c ON c.oid = e.relation
    GROUP BY e.relation, c.oid, c.reltuples, c.relowner
$function$;
CREATE FUNCTION snowflake_internal.migration_leftover_steps(targets regclass[], column_names name[])
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH dependent AS MATERIALIZED (
        SELECT DISTINCT s.relation, d.classid, d.objid
        FROM snowflake_internal.migration_shadows(targets, column_names) AS s
        JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.relation AND d.refobjsubid = s.shadow
        WHERE s.is_kept
    ), step (place, relation, statement, lock_level, in_transaction, note) AS (
        SELECT 1, k.conrelid::regclass,
               snowflake_internal.migration_do_block(
                   format(E'    PERFORM snowflake_internal.migration_lock(%L::pg_catalog.regclass[], ''ACCESS EXCLUSIVE''::pg_catalog.text);\n',
                          ARRAY(SELECT snowflake_internal.migration_name(c.oid::regclass) FROM pg_class AS c WHERE c.oid IN (k.conrelid, k.confrelid) ORDER BY c.oid))
                   || format(E'    ALTER TABLE %s DROP CONSTRAINT %I;\n', snowflake_internal.migration_name(k.conrelid::regclass), k.conname)),
               'ACCESS EXCLUSIVE', true, 'removes the counterpart of a constraint that has been dropped or replaced'
        FROM (SELECT DISTINCT d.objid FROM dependent AS d WHERE d.classid = 'pg_constraint'::regclass) AS d
        JOIN pg_constraint AS k ON k.oid = d.objid AND k.contype IN ('c', 'f') AND k.conparentid = 0 AND k.conname LIKE 'snowflake\_%'
        WHERE NOT EXISTS (SELECT FROM snowflake_internal.migration_shadows(targets, column_names) AS s WHERE s.check_oid = k.oid)
          AND NOT EXISTS (SELECT FROM snowflake_internal.migration_shadow_checks(targets, column_names) AS s WHERE s.shadow = k.oid)
          AND NOT EXISTS (SELECT FROM snowflake_internal.migration_shadow_foreign_keys(targets, column_names) AS s WHERE s.shadow = k.oid)
      UNION ALL
        SELECT 2, d.relation, format('DROP INDEX CONCURRENTLY %s', snowflake_internal.migration_name(c.oid::regclass)), 'SHARE UPDATE EXCLUSIVE', false,
               'removes the counterpart of an index that has been dropped or replaced'
        FROM dependent AS d
        JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind = 'i' AND c.relname LIKE 'snowflake\_%'
        WHERE NOT EXISTS (SELECT FROM snowflake_internal.migration_shadow_indexes(targets, column_names) AS i WHERE i.shadow = c.oid)
      UNION ALL
        SELECT 3, d.relation, format('DROP STATISTICS %I.%I', n.nspname, x.stxname), 'SHARE UPDATE EXCLUSIVE', true,
               'removes the counterpart of a statistics object that has been dropped or replaced'
        FROM dependent AS d
        JOIN pg_statistic_ext AS x ON d.classid = 'pg_statistic_ext'::regclass AND x.oid = d.objid AND x.stxname LIKE 'snowflake\_%'
        JOIN pg_namespace AS n ON n.oid = x.stxnamespace
        WHERE NOT EXISTS (SELECT FROM snowflake_internal.migration_shadow_statistics(targets, column_names) AS s WHERE s.shadow = x.oid)
    )
    SELECT s.statement, s.lock_level, s.in_transaction, s.note
    FROM step AS s
    ORDER BY s.relation = ANY (targets) DESC, s.relation::text, s.place, s.statement
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_update_obstacles(relation regclass)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('trigger %I of %s fires on each UPDATE, and would fire when rows are copied', t.trigger_name, relation),
           format('Restrict it to the columns it uses (UPDATE OF), or GRANT SET ON PARAMETER session_replication_role TO %I, so that it does not fire.', current_user),
           '42501'
    FROM snowflake_internal.migration_update_triggers(relation) AS t
    WHERE t.enabled = 'O' AND NOT has_parameter_privilege('session_replication_role', 'SET')
  UNION ALL
    SELECT format('trigger %I of %s fires on each UPDATE, also of replicated rows, and would fire when rows are copied', t.trigger_name, relation),
           format('ALTER TABLE %s ENABLE TRIGGER %I while it is migrated, or restrict it to the columns it uses (UPDATE OF).', relation, t.trigger_name),
           '55000'
    FROM snowflake_internal.migration_update_triggers(relation) AS t
    WHERE t.enabled = 'A'
       OR t.enabled = 'R' AND EXISTS (SELECT FROM snowflake_internal.migration_update_triggers(relation) AS u WHERE u.enabled = 'O')
  UNION ALL
    SELECT format('rule %I of %s rewrites UPDATE', w.rulename, relation), 'Drop it, and create it again afterwards.', '55000'
    FROM pg_rewrite AS w WHERE w.ev_class = relation AND w.ev_type = '2' AND w.ev_enabled <> 'D'
$function$;
CREATE FUNCTION snowflake_internal.migration_online_obstacles(targets regclass[], column_names name[])
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH narrow_column AS MATERIALIZED (
        SELECT s.*, c.relkind, c.relispartition, c.relpersistence, c.relforcerowsecurity, c.relreplident, c.relnamespace, c.relname,
               c.relowner, a.attidentity
        FROM snowflake_internal.migration_shadows(targets, column_names) AS s
        JOIN pg_class AS c ON c.oid = s.relation
        JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attribute
    ), indexed AS MATERIALIZED (
        SELECT DISTINCT m.relation, m.narrow, m.attribute, i.indexrelid, i.indkey, i.indpred
        FROM narrow_column AS m
        JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                           AND d.refobjid = m.relation AND d.refobjsubid = m.attribute
        JOIN pg_index AS i ON i.indexrelid = d.objid AND i.indrelid = m.relation AND i.indisvalid
      UNION
        -- Indexes of constraints depend on the constraint.
        SELECT m.relation, m.narrow, m.attribute, i.indexrelid, i.indkey, i.indpred
        FROM narrow_column AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND m.attribute = ANY (k.conkey) AND k.contype IN ('p', 'u', 'x')
        JOIN pg_index AS i ON i.indexrelid = k.conindid
    ), found (rank, obstacle, remedy, code) AS (
        SELECT DISTINCT 1, format('%s is %s', m.relation, CASE WHEN m.relkind = 'p' THEN 'a partitioned table' ELSE 'a partition' END),
               'PostgreSQL can neither build indexes of partitioned tables concurrently nor turn an existing index into their primary key: use the plan for a maintenance window (online => false).', '55000'
        FROM narrow_column AS m WHERE m.relkind = 'p' OR m.relispartition
      UNION ALL
        SELECT DISTINCT 1, format('partitioned table %s references the key', f.relation),
               'A foreign key of a partitioned table cannot be added NOT VALID: use the plan for a maintenance window (online => false).', '55000'
        FROM snowflake_internal.migration_shadow_foreign_keys(targets, column_names) AS f
        JOIN pg_class AS c ON c.oid = f.relation AND c.relkind = 'p'
        WHERE NOT EXISTS (SELECT FROM narrow_column AS m WHERE m.relation = f.relation)
      UNION ALL
        SELECT DISTINCT 2, format('%s has inheritance children or parents', m.relation),
               'Their columns can only be replaced together: use the plan for a maintenance window (online => false).', '55000'
        FROM narrow_column AS m
        WHERE m.relkind <> 'p' AND NOT m.relispartition
          AND EXISTS (SELECT FROM pg_inherits AS i WHERE m.relation IN (i.inhparent, i.inhrelid))
      UNION ALL
        SELECT DISTINCT 3, format('%s is a temporary table', m.relation),
               'No other session uses it: use the plan for a maintenance window (online => false).', '55000'
        FROM narrow_column AS m WHERE m.relpersistence = 't'
      UNION ALL
        SELECT 4, format('column %I of %s is an identity column that references another one', m.narrow, m.relation),
               'The identity sequence cannot be moved to another column: ALTER COLUMN ... DROP IDENTITY, or use the plan for a maintenance window (online => false).', '55000'
        FROM narrow_column AS m WHERE m.attidentity <> '' AND NOT EXISTS (SELECT FROM unnest(targets, column_names) AS key (target, column_name)
                          WHERE key.target = m.relation AND key.column_name = m.narrow)
      UNION ALL
        SELECT 5, format('row-level security is forced on the owner of %s, but the migration has to see every row', m.relation),
               format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY while it is migrated.', m.relation), '55000'
        FROM narrow_column AS m WHERE m.relforcerowsecurity AND m.relation <> ALL (targets)
      UNION ALL
        SELECT 6, format('index %s uses whole rows of %s', i.index, i.relation),
               'They change with the columns: use the plan for a maintenance window (online => false).', '55000'
        FROM snowflake_internal.migration_shadow_indexes(targets, column_names) AS i
        WHERE i.definition IS NULL
      UNION ALL
        SELECT 6, format('check constraint %I of %s uses whole rows', k.name, k.relation),
               'They change with the columns: use the plan for a maintenance window (online => false).', '55000'
        FROM snowflake_internal.migration_shadow_checks(targets, column_names) AS k
        WHERE k.definition IS NULL
      UNION ALL
        SELECT 6, format('statistics object %I.%I uses whole rows of %s', x.schema, x.name, x.relation),
               'They change with the columns: use the plan for a maintenance window (online => false).', '55000'
        FROM snowflake_internal.migration_shadow_statistics(targets, column_names) AS x
        WHERE x.definition IS NULL
      UNION ALL
        -- The index would be immediate: see src/migration/deferrable.rs.
        SELECT DISTINCT 6, format('constraint %I of %s is DEFERRABLE, and this server was built with assertions', k.conname, m.relation),
               'Use the plan for a maintenance window (online => false).', '55000'
        FROM narrow_column AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND m.attribute = ANY (k.conkey) AND k.contype IN ('p', 'u') AND k.condeferrable
        WHERE current_setting('debug_assertions') = 'on'
      UNION ALL
        SELECT DISTINCT 6, format('the access method of index %s does not support bigint', i.indexrelid::regclass),
               'Drop it.', '55000'
        FROM indexed AS i
        JOIN pg_index AS x ON x.indexrelid = i.indexrelid
        JOIN pg_class AS c ON c.oid = i.indexrelid
        CROSS JOIN LATERAL unnest(x.indkey::smallint[]) WITH ORDINALITY AS k (attribute, place)
        WHERE k.attribute = i.attribute AND k.place <= x.indnkeyatts
          AND NOT EXISTS (SELECT FROM pg_opclass AS o
                          WHERE o.opcmethod = c.relam AND o.opcintype = 'int8'::regtype AND o.opcdefault)
      UNION ALL
        -- An exclusion constraint's expressions are in its index only.
        SELECT DISTINCT 7, format('exclusion constraint %I of %s uses column %I', k.conname, m.relation, m.narrow),
               'An existing index cannot become such a constraint: use the plan for a maintenance window (online => false).', '55000'
        FROM narrow_column AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND k.contype = 'x'
        WHERE m.attribute = ANY (k.conkey)
           OR EXISTS (SELECT FROM pg_depend AS d
                      WHERE d.classid = 'pg_constraint'::regclass AND d.objid = k.oid
                        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = m.relation AND d.refobjsubid = m.attribute
                         OR d.classid = 'pg_class'::regclass AND d.objid = k.conindid
                        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = m.relation AND d.refobjsubid = m.attribute)
      UNION ALL
        SELECT DISTINCT 7, format('constraint %I of %s is WITHOUT OVERLAPS or has a PERIOD', k.conname, k.conrelid::regclass),
               'An existing index cannot become such a constraint: use the plan for a maintenance window (online => false).', '55000'
        FROM narrow_column AS m
        -- Only of these constraints, because a conversion of every one takes long.
        JOIN pg_constraint AS k
          ON CASE WHEN k.contype IN ('p', 'u', 'f')
                       AND (k.conrelid = m.relation AND m.attribute = ANY (k.conkey) OR k.confrelid = m.relation AND m.attribute = ANY (k.confkey))
                  THEN (to_jsonb(k) ->> 'conperiod')::boolean END
      UNION ALL
        SELECT DISTINCT 7, format('foreign key %I of %s sets a default', f.name, f.relation),
               'If there are two such foreign keys, only the first one to fire works: use the plan for a maintenance window (online => false).', '55000'
        FROM snowflake_internal.migration_shadow_foreign_keys(targets, column_names) AS f
        JOIN pg_constraint AS k ON k.oid = f.foreign_key AND 'd' IN (k.confdeltype, k.confupdtype)
      UNION ALL
        SELECT 8, format('not-null constraint %I of %s is not valid', k.conname, m.relation),
               format('ALTER TABLE %s VALIDATE CONSTRAINT %I.', m.relation, k.conname), '55000'
        FROM narrow_column AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND k.contype = 'n' AND k.conkey = ARRAY[m.attribute] AND NOT k.convalidated
      UNION ALL
        SELECT 9, format('statistics object %I.%I of %s belongs to another role, %I', x.schema, x.name, x.relation, pg_get_userbyid(x.owner)),
               format('The owner of the table creates it again and gives it to that role, but is no member of it: ALTER STATISTICS %I.%I OWNER TO %I.',
                      x.schema, x.name, pg_get_userbyid(c.relowner)), '55000'
        FROM snowflake_internal.migration_shadow_statistics(targets, column_names) AS x
        JOIN pg_class AS c ON c.oid = x.relation
        WHERE x.owner <> c.relowner AND NOT snowflake_internal.migration_may_become(c.relowner, x.owner)
      UNION ALL
        SELECT DISTINCT 10, format('trigger %I of %s fires after the one that keeps the new column up to date', t.tgname, m.relation),
               'Triggers fire in the order of their names: rename it.', '55000'
        FROM narrow_column AS m
        JOIN pg_trigger AS t ON t.tgrelid = m.relation AND NOT t.tgisinternal AND t.tgname > m.trigger_name
                            AND t.tgfoid <> 'snowflake_internal.shadow()'::regprocedure
        -- BEFORE, each row, INSERT or UPDATE.
        WHERE t.tgtype & 3 = 3 AND t.tgtype & (4 | 16) <> 0
      UNION ALL
        SELECT DISTINCT 11, format('%s is published, and its replica identity is FULL', m.relation),
               'Subscribers could not find rows while the column exists only on their side: give the table another replica identity while it is migrated.', '55000'
        FROM narrow_column AS m
        WHERE m.relreplident = 'f' AND snowflake_internal.migration_publications(m.relation, m.narrow) IS NOT NULL
      UNION ALL
        SELECT DISTINCT 12, format('%s is the target of a subscription, and has neither a primary key nor an index as its replica identity', m.relation),
               'Subscriptions find its rows by all columns, and the publisher does not have the new one: give the table a primary key.', '55000'
        FROM narrow_column AS m
        WHERE EXISTS (SELECT FROM pg_subscription_rel AS r WHERE r.srrelid = m.relation)
          AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = m.relation AND (i.indisprimary OR i.indisreplident))
      UNION ALL
        SELECT DISTINCT 13, format('another column of %s is being migrated', m.relation),
               'Finish that migration first, or cancel it with snowflake_migrate_revert().', '55000'
        FROM narrow_column AS m
        JOIN pg_trigger AS t ON t.tgrelid = m.relation AND t.tgfoid = 'snowflake_internal.shadow()'::regprocedure
        WHERE NOT EXISTS (SELECT FROM narrow_column AS own WHERE own.relation = t.tgrelid AND own.trigger_name = t.tgname)
      UNION ALL
        -- Only migrations use such names. Objects may have been left behind or changed by hand.
        SELECT 14, format('the trigger that copies column %3$I of %2$s to column %1$I has been changed', m.shadow_name, m.relation, m.narrow),
               CASE WHEN num_nonnulls(m.shadow, m.trigger_oid, m.check_oid) = 3
                    -- The constraint has rejected wrong values in the meantime.
                    THEN format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I.', m.relation, m.trigger_name)
                    ELSE 'Cancel the migration with snowflake_migrate_revert(), drop the remaining objects of these names, and start again.' END, '55000'
        FROM narrow_column AS m
        WHERE NOT m.is_kept
          AND (EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = m.relation AND a.attname = m.shadow_name)
               OR EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = m.relation AND t.tgname = m.trigger_name)
               OR EXISTS (SELECT FROM pg_constraint AS k WHERE k.conrelid = m.relation AND k.conname = m.check_name))
      UNION ALL
        SELECT 14, format('the NOT NULL property of column %I of %s has changed since its migration began', m.narrow, m.relation),
               'Cancel the migration with snowflake_migrate_revert(), and start again.', '55000'
        FROM narrow_column AS m
        WHERE m.check_oid IS NOT NULL AND (pg_get_constraintdef(m.check_oid) ~ 'IS NOT NULL') <> m.is_required
      UNION ALL
        SELECT 15, format('%s has a name that the migration needs', c.oid::regclass), 'Rename or drop it.', '55000'
        FROM snowflake_internal.migration_shadow_indexes(targets, column_names) AS i
        JOIN pg_class AS c ON c.relname = i.shadow_name
                          AND c.relnamespace = (SELECT o.relnamespace FROM pg_class AS o WHERE o.oid = i.index)
        LEFT JOIN pg_index AS own ON own.indexrelid = c.oid AND own.indrelid = i.relation
        WHERE own.indexrelid IS NULL OR own.indisvalid AND NOT i.is_ready
      UNION ALL
        SELECT 15, format('constraint %I of %s has a name that the migration needs', k.conname, f.relation), 'Rename or drop it.', '55000'
        FROM snowflake_internal.migration_shadow_foreign_keys(targets, column_names) AS f
        JOIN pg_constraint AS k ON k.conrelid = f.relation AND k.conname = f.shadow_name
        WHERE NOT f.is_ready AND (k.contype <> 'f' OR k.convalidated)
      UNION ALL
        SELECT 15, format('constraint %I of %s has a name that the migration needs', k.conname, f.relation), 'Rename or drop it.', '55000'
        FROM snowflake_internal.migration_shadow_checks(targets, column_names) AS f
        JOIN pg_constraint AS k ON k.conrelid = f.relation AND k.conname = f.shadow_name
        WHERE k.contype <> 'c' OR NOT f.is_ready AND (k.convalidated OR NOT f.is_to_be_valid)
      UNION ALL
        SELECT DISTINCT 16, format('permission denied for table %s, which column %I of %s references', f.referenced, m.narrow, m.relation),
               format('GRANT REFERENCES, UPDATE ON %s TO %I.', f.referenced, current_user), '42501'
        FROM narrow_column AS m
        JOIN snowflake_internal.migration_shadow_foreign_keys(targets, column_names) AS f ON f.relation = m.relation
        WHERE NOT (has_table_privilege(f.referenced, 'REFERENCES') AND has_table_privilege(f.referenced, 'UPDATE, DELETE, TRUNCATE'))
      UNION ALL
        SELECT DISTINCT 16, format('must be owner of table %s', f.relation),
               format('Its foreign key %I has to be created again: run it as a member of %I, or as a superuser.', f.name, pg_get_userbyid(c.relowner)), '42501'
        FROM snowflake_internal.migration_shadow_foreign_keys(targets, column_names) AS f
        JOIN pg_class AS c ON c.oid = f.relation AND NOT pg_has_role(c.relowner, 'USAGE')
        WHERE NOT EXISTS (SELECT FROM narrow_column AS m WHERE m.relation = f.relation)
      UNION ALL
        -- Building and renaming an index requires CREATE; a rewrite does not.
        SELECT DISTINCT 17, format('permission denied for schema %I', n.nspname),
               format('GRANT CREATE ON SCHEMA %I TO %I.', n.nspname, r.rolname), '42501'
        FROM narrow_column AS m
        JOIN pg_namespace AS n ON n.oid = m.relnamespace
        -- The role that runs the plan builds it, and the table's owner renames it.
        JOIN pg_roles AS r ON (r.rolname = current_user OR r.oid = m.relowner) AND NOT has_schema_privilege(r.oid, n.oid, 'CREATE')
      UNION ALL
        SELECT DISTINCT 17, format('permission denied for schema %I, which contains statistics object %I', x.schema, x.name),
               format('GRANT USAGE, CREATE ON SCHEMA %I TO %I.', x.schema, r.rolname), '42501'
        FROM snowflake_internal.migration_shadow_statistics(targets, column_names) AS x
        JOIN pg_class AS c ON c.oid = x.relation
        JOIN pg_namespace AS n ON n.nspname = x.schema
        JOIN pg_roles AS r ON r.oid IN (c.relowner, x.owner)
        WHERE NOT has_schema_privilege(r.oid, n.oid, 'CREATE') OR NOT has_schema_privilege(c.relowner, n.oid, 'USAGE')
    )
    SELECT f.obstacle, f.remedy, f.code FROM found AS f
  UNION ALL
    SELECT o.obstacle, o.remedy, o.sqlstate_code
    FROM (SELECT DISTINCT m.relation FROM narrow_column AS m) AS r
    CROSS JOIN LATERAL snowflake_internal.migration_update_obstacles(r.relation) AS o
  UNION ALL
    -- One without data is created again in a moment.
    SELECT format('%s has data, and would have to be filled again while its tables are locked', d.identity),
           format('REFRESH MATERIALIZED VIEW %s WITH NO DATA until the swap is done, then REFRESH it, or use the plan for a maintenance window (online => false).',
                  snowflake_internal.migration_name(d.relation)), '55000'
    FROM (SELECT array_agg(m.relation) AS relations, array_agg(m.narrow) AS names FROM narrow_column AS m) AS n
    CROSS JOIN LATERAL snowflake_internal.migration_dependents(n.relations, n.names) AS d
    JOIN pg_class AS c ON c.oid = d.object AND c.relispopulated
    WHERE d.kind = 'materialized view'
$function$;
CREATE FUNCTION snowflake_internal.migration_plan_kind_obstacles(targets regclass[], column_names name[], online boolean)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF online THEN
        RETURN QUERY SELECT o.* FROM snowflake_internal.migration_online_obstacles(targets, column_names) AS o;
    ELSE
        RETURN QUERY
            SELECT format('column %I of %s is being migrated online', s.narrow, s.relation),
                   'Request the rest of that plan (online => true), or cancel it with snowflake_migrate_revert().', '55000'
            FROM snowflake_internal.migration_shadows(targets, column_names) AS s
            WHERE s.trigger_oid IS NOT NULL;
    END IF;
    RETURN QUERY
        SELECT o.*
        FROM snowflake_internal.migration_row_type_obstacles(ARRAY(
            SELECT DISTINCT f.relation
            FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
            JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
            CROSS JOIN LATERAL snowflake_internal.migration_table_tree(r.relation, a.attname) AS f
            WHERE r.is_narrow), online) AS o;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_swap_columns(targets regclass[], column_names name[])
RETURNS TABLE (relations regclass[], names name[]) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT array_agg(s.relation), array_agg(s.narrow) FROM snowflake_internal.migration_shadows(targets, column_names) AS s
$function$;
CREATE FUNCTION snowflake_internal.migration_swap_relations(targets regclass[], column_names name[])
RETURNS regclass[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY(
        SELECT unnest(targets)
      UNION
        SELECT s.relation FROM snowflake_internal.migration_shadows(targets, column_names) AS s
      UNION
        SELECT other.relation
        FROM snowflake_internal.migration_shadow_foreign_keys(targets, column_names) AS f
        CROSS JOIN LATERAL (VALUES (f.relation), (f.referenced)) AS other (relation)
      UNION
        SELECT unnest(snowflake_internal.migration_dependent_relations(n.relations, n.names))
        FROM snowflake_internal.migration_swap_columns(targets, column_names) AS n)
$function$;
CREATE FUNCTION snowflake_internal.migration_swap_sequences(targets regclass[], column_names name[])
RETURNS regclass[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY(
        SELECT d.objid::regclass
        FROM snowflake_internal.migration_shadows(targets, column_names) AS s
        JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                           AND d.refobjid = s.relation AND d.refobjsubid = s.attribute AND d.deptype IN ('a', 'i')
        JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S')
$function$;
CREATE FUNCTION snowflake_internal.migration_swap_obstacles(targets regclass[], column_names name[], search_path text DEFAULT NULL)
RETURNS TABLE (obstacle text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('column %I of %s has no shadow column that is kept up to date', s.narrow, s.relation)
    FROM snowflake_internal.migration_shadows(targets, column_names) AS s
    WHERE NOT s.is_kept
  UNION ALL
    SELECT format('not all rows of %s are known to have the shadow value of column %I', s.relation, s.narrow)
    FROM snowflake_internal.migration_shadows(targets, column_names) AS s
    WHERE s.is_kept AND NOT s.is_filled
  UNION ALL
    SELECT format(CASE WHEN i.shadow IS NULL THEN 'index %s has no counterpart on the shadow columns'
                       ELSE 'the counterpart of index %s is not valid' END, i.index)
    FROM snowflake_internal.migration_shadow_indexes(targets, column_names) AS i
    WHERE NOT i.is_ready
  UNION ALL
    SELECT format(CASE WHEN f.shadow IS NULL THEN 'foreign key %I of %s has no counterpart on the shadow columns'
                       ELSE 'the counterpart of foreign key %I of %s is not validated' END, f.name, f.relation)
    FROM snowflake_internal.migration_shadow_foreign_keys(targets, column_names) AS f
    WHERE NOT f.is_ready
  UNION ALL
    SELECT format(CASE WHEN k.shadow IS NULL THEN 'check constraint %I of %s has no counterpart on the shadow columns'
                       ELSE 'the counterpart of check constraint %I of %s is not validated' END, k.name, k.relation)
    FROM snowflake_internal.migration_shadow_checks(targets, column_names) AS k
    WHERE NOT k.is_ready
  UNION ALL
    SELECT format('statistics object %I.%I has no counterpart on the shadow columns', x.schema, x.name)
    FROM snowflake_internal.migration_shadow_statistics(targets, column_names) AS x
    WHERE x.shadow IS NULL
  UNION ALL
    SELECT format('%s: %s', o.obstacle, o.remedy) FROM snowflake_internal.migration_obstacles(targets, column_names, search_path) AS o
  UNION ALL
    SELECT format('%s: %s', o.obstacle, o.remedy) FROM snowflake_internal.migration_plan_kind_obstacles(targets, column_names, true) AS o
$function$;
CREATE FUNCTION snowflake_internal.migration_column_grants(relation regclass, attribute smallint)
RETURNS TABLE (depth integer, role oid, grantee oid, privilege_type text, is_grantable boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE entry AS MATERIALIZED (
        SELECT g.*, c.relowner, c.relnamespace
        FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = attribute
        CROSS JOIN LATERAL aclexplode(a.attacl) AS g
        WHERE c.oid = relation
    ), chain (depth, grantor, grantee, privilege_type, is_grantable) AS (
        SELECT 0, e.grantor, e.grantee, e.privilege_type, e.is_grantable FROM entry AS e WHERE e.grantor = e.relowner
      UNION ALL
        -- PostgreSQL refuses circular grants.
        SELECT c.depth + 1, e.grantor, e.grantee, e.privilege_type, e.is_grantable
        FROM chain AS c
        JOIN entry AS e ON e.grantor = c.grantee AND e.privilege_type = c.privilege_type AND c.is_grantable AND e.grantor <> e.relowner
        WHERE c.depth < 100
    )
    SELECT coalesce((SELECT min(c.depth) FROM chain AS c
                     WHERE c.grantor = e.grantor AND c.grantee = e.grantee AND c.privilege_type = e.privilege_type),
                    -- The grant option is one for the whole table.
                    1),
           CASE WHEN e.grantor <> e.relowner AND snowflake_internal.migration_may_become(to_regrole(quote_ident(current_user)), e.grantor)
                     AND has_schema_privilege(e.grantor, e.relnamespace, 'USAGE') THEN e.grantor END,
           e.grantee, e.privilege_type, e.is_grantable
    FROM entry AS e
$function$;
CREATE FUNCTION snowflake_internal.migration_swap_commands(
    targets regclass[], column_names name[], OUT relations regclass[], OUT statements text[], OUT roles oid[]
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.*, snowflake_internal.migration_name(s.relation) AS quoted_name,
               EXISTS (SELECT FROM unnest(targets, column_names) AS key (target, column_name)
                      WHERE key.target = s.relation AND key.column_name = s.narrow) AS is_target
        FROM snowflake_internal.migration_shadows(targets, column_names) AS s
    ), indexed AS MATERIALIZED (
        SELECT x.index, x.shadow, x.shadow_name, x.relation, snowflake_internal.migration_name(x.relation) AS quoted_name,
               c.relname AS name, n.nspname AS schema, k.oid AS constraint_oid, k.contype, k.condeferrable, k.condeferred,
               i.indisreplident, i.indisclustered
        FROM snowflake_internal.migration_shadow_indexes(targets, column_names) AS x
        JOIN pg_index AS i ON i.indexrelid = x.index
        JOIN pg_class AS c ON c.oid = x.index
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        LEFT JOIN pg_constraint AS k ON k.conindid = x.index AND k.conrelid = x.relation AND k.contype IN ('p', 'u')
    ), referencing AS MATERIALIZED (
        SELECT f.*, snowflake_internal.migration_name(f.relation) AS quoted_name
        FROM snowflake_internal.migration_shadow_foreign_keys(targets, column_names) AS f
    ), checked AS MATERIALIZED (
        SELECT k.*, snowflake_internal.migration_name(k.relation) AS quoted_name
        FROM snowflake_internal.migration_shadow_checks(targets, column_names) AS k
    ), measured AS MATERIALIZED (
        SELECT x.*, c.relowner
        FROM snowflake_internal.migration_shadow_statistics(targets, column_names) AS x
        JOIN pg_class AS c ON c.oid = x.relation
    ), owned AS MATERIALIZED (
        -- Sequences that the columns own would be dropped with the columns.
        SELECT s.relation, s.quoted_name, s.narrow, snowflake_internal.migration_name(d.objid::regclass) AS sequence
        FROM shadow AS s
        JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                           AND d.refobjid = s.relation AND d.refobjsubid = s.attribute AND d.deptype = 'a'
        JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S'
    ), statement (place, relation, text) AS (
        SELECT 1, f.relation, format('ALTER TABLE %s DROP CONSTRAINT %I', f.quoted_name, f.name) FROM referencing AS f
      UNION ALL
        SELECT 2, o.relation, format('ALTER SEQUENCE %s OWNED BY NONE', o.sequence) FROM owned AS o
      UNION ALL
        SELECT 3, s.relation, format('DROP TRIGGER %I ON %s', s.trigger_name, s.quoted_name) FROM shadow AS s
      UNION ALL
        -- The validated constraint makes a scan unnecessary.
        SELECT 4, s.relation, format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', s.quoted_name, s.shadow_name) FROM shadow AS s WHERE s.is_required
      UNION ALL
        SELECT 5, s.relation, format('ALTER TABLE %s DROP CONSTRAINT %I', s.quoted_name, s.check_name) FROM shadow AS s
      UNION ALL
        SELECT 5, k.relation, format('ALTER TABLE %s DROP CONSTRAINT %I', k.quoted_name, k.name) FROM checked AS k
      UNION ALL
        -- This drops its indexes, constraints and statistics objects too.
        SELECT 6, s.relation, format('ALTER TABLE %s DROP COLUMN %I', s.quoted_name, s.narrow) FROM shadow AS s
      UNION ALL
        SELECT 7, s.relation, format('ALTER TABLE %s RENAME COLUMN %I TO %I', s.quoted_name, s.shadow_name, s.narrow) FROM shadow AS s
      UNION ALL
        SELECT 8, i.relation, format('ALTER INDEX %I.%I RENAME TO %I', i.schema, i.shadow_name, i.name) FROM indexed AS i
      UNION ALL
        -- An index's columns have their own names, which do not follow the table's.
        SELECT 9, i.relation, format('ALTER TABLE %I.%I RENAME COLUMN %I TO %I', i.schema, i.name, b.attname, a.attname)
        FROM indexed AS i
        JOIN pg_attribute AS a ON a.attrelid = i.index AND a.attnum > 0
        JOIN pg_attribute AS b ON b.attrelid = i.shadow AND b.attnum = a.attnum AND b.attname <> a.attname
      UNION ALL
        SELECT 10, i.relation, format('ALTER TABLE %s ADD CONSTRAINT %I %s USING INDEX %I%s%s', i.quoted_name, i.name,
                         CASE i.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END, i.name,
                         CASE WHEN i.condeferrable THEN ' DEFERRABLE' ELSE '' END, CASE WHEN i.condeferred THEN ' INITIALLY DEFERRED' ELSE '' END)
        FROM indexed AS i WHERE i.constraint_oid IS NOT NULL
      UNION ALL
        SELECT 11, f.relation, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', f.quoted_name, f.shadow_name, f.name) FROM referencing AS f
      UNION ALL
        SELECT 11, k.relation, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', k.quoted_name, k.shadow_name, k.name) FROM checked AS k
      UNION ALL
        SELECT 11, x.relation, format('ALTER STATISTICS %I.%I RENAME TO %I', x.schema, x.shadow_name, x.name) FROM measured AS x
      UNION ALL
        -- The column's statistics settings, if they were changed in the meantime.
        SELECT c.place, s.relation, format('ALTER TABLE %s ALTER COLUMN %I %s', s.quoted_name, s.narrow, c.action)
        FROM shadow AS s
        JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attribute
        JOIN pg_attribute AS b ON b.attrelid = s.relation AND b.attnum = s.shadow
        CROSS JOIN LATERAL (
            SELECT snowflake_internal.migration_column_options(a.attoptions) AS narrow,
                   snowflake_internal.migration_column_options(b.attoptions) AS shadow) AS options
        CROSS JOIN LATERAL (
            SELECT 12 AS place, format('SET STATISTICS %s', coalesce(a.attstattarget, -1)) AS action
            WHERE a.attstattarget IS DISTINCT FROM b.attstattarget
          UNION ALL
            SELECT 12, format('RESET (%s)', (SELECT string_agg(quote_ident(o.option_name), ', ') FROM pg_options_to_table(options.shadow) AS o))
            WHERE options.shadow IS NOT NULL AND options.narrow IS DISTINCT FROM options.shadow
          UNION ALL
            SELECT 13, format('SET (%s)', array_to_string(options.narrow, ', '))
            WHERE options.narrow IS NOT NULL AND options.narrow IS DISTINCT FROM options.shadow
        ) AS c
      UNION ALL
        SELECT 12, s.relation, format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', s.quoted_name, s.narrow, pg_get_expr(d.adbin, d.adrelid))
        FROM shadow AS s JOIN pg_attrdef AS d ON d.adrelid = s.relation AND d.adnum = s.attribute
        WHERE NOT s.is_target
      UNION ALL
        SELECT 12, key.target, format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.snowflake_nextval()',
                          snowflake_internal.migration_name(key.target), key.column_name, '@extschema@')
        FROM unnest(targets, column_names) AS key (target, column_name)
      UNION ALL
        SELECT 13, o.relation, format('ALTER SEQUENCE %s OWNED BY %s.%I', o.sequence, o.quoted_name, o.narrow) FROM owned AS o
      UNION ALL
        SELECT 14, i.relation, format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', i.quoted_name, i.name) FROM indexed AS i
        -- By default, the primary key is the replica identity.
        WHERE i.indisreplident
      UNION ALL
        SELECT 14, i.relation, format('ALTER TABLE %s CLUSTER ON %I', i.quoted_name, i.name) FROM indexed AS i WHERE i.indisclustered
      UNION ALL
        SELECT 14, i.relation, format('ALTER INDEX %I.%I ALTER COLUMN %s SET STATISTICS %s', i.schema, i.name, a.attnum, a.attstattarget)
        FROM indexed AS i JOIN pg_attribute AS a ON a.attrelid = i.index AND a.attnum > 0 AND a.attstattarget >= 0
      UNION ALL
        SELECT 14, x.relation, format('ALTER STATISTICS %I.%I SET STATISTICS %s', x.schema, x.name, x.target)
        FROM measured AS x JOIN pg_statistic_ext AS o ON o.oid = x.shadow AND coalesce(o.stxstattarget, -1) <> x.target
      UNION ALL
        SELECT 16, s.relation, format('COMMENT ON COLUMN %s.%I IS %L', s.quoted_name, s.narrow, col_description(s.relation, s.attribute))
        FROM shadow AS s WHERE col_description(s.relation, s.attribute) IS NOT NULL
      UNION ALL
        SELECT 16, i.relation, format('COMMENT ON INDEX %I.%I IS %L', i.schema, i.name, obj_description(i.index, 'pg_class'))
        FROM indexed AS i WHERE obj_description(i.index, 'pg_class') IS NOT NULL
      UNION ALL
        SELECT 16, i.relation, format('COMMENT ON CONSTRAINT %I ON %s IS %L', i.name, i.quoted_name, obj_description(i.constraint_oid, 'pg_constraint'))
        FROM indexed AS i WHERE obj_description(i.constraint_oid, 'pg_constraint') IS NOT NULL
      UNION ALL
        SELECT 16, f.relation, format('COMMENT ON CONSTRAINT %I ON %s IS %L', f.name, f.quoted_name, obj_description(f.foreign_key, 'pg_constraint'))
        FROM referencing AS f WHERE obj_description(f.foreign_key, 'pg_constraint') IS NOT NULL
      UNION ALL
        SELECT 16, k.relation, format('COMMENT ON CONSTRAINT %I ON %s IS %L', k.name, k.quoted_name, obj_description(k.check_constraint, 'pg_constraint'))
        FROM checked AS k WHERE obj_description(k.check_constraint, 'pg_constraint') IS NOT NULL
      UNION ALL
        SELECT 16, x.relation, format('COMMENT ON STATISTICS %I.%I IS %L', x.schema, x.name, obj_description(x.statistics, 'pg_statistic_ext'))
        FROM measured AS x WHERE obj_description(x.statistics, 'pg_statistic_ext') IS NOT NULL
      UNION ALL
        SELECT 17, x.relation, format('ALTER STATISTICS %I.%I OWNER TO %I', x.schema, x.name, pg_get_userbyid(x.owner))
        FROM measured AS x WHERE x.owner <> x.relowner
      UNION ALL
        SELECT 16, s.relation, format('SECURITY LABEL FOR %I ON COLUMN %s.%I IS %L', l.provider, s.quoted_name, s.narrow, l.label)
        FROM shadow AS s JOIN pg_seclabel AS l ON l.classoid = 'pg_class'::regclass AND l.objoid = s.relation AND l.objsubid = s.attribute
    ), ordered (place, depth, relation, text, role) AS (
        SELECT s.place, 0, s.relation, s.text, NULL::oid FROM statement AS s
      UNION ALL
        SELECT 15, g.depth, s.relation,
               format('GRANT %s (%I) ON %s TO %s%s', g.privilege_type, s.narrow, s.quoted_name,
                      CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END,
                      CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END),
               g.role
        FROM shadow AS s
        CROSS JOIN LATERAL snowflake_internal.migration_column_grants(s.relation, s.attribute) AS g
    )
    SELECT array_agg(s.relation ORDER BY s.place, s.depth, s.text), array_agg(s.text ORDER BY s.place, s.depth, s.text),
           array_agg(s.role ORDER BY s.place, s.depth, s.text)
    FROM ordered AS s
$function$;
CREATE FUNCTION snowflake_internal.migration_not_null_names(targets regclass[], column_names name[])
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(jsonb_agg(jsonb_build_object('relation', s.relation::oid, 'column', s.narrow, 'name', k.conname,
                                                 'comment', obj_description(k.oid, 'pg_constraint'),
                                                 'is_inherited', NOT k.connoinherit)), '[]')
    FROM snowflake_internal.migration_shadows(targets, column_names) AS s
    JOIN pg_constraint AS k ON k.conrelid = s.relation AND k.contype = 'n' AND k.conkey = ARRAY[s.attribute]
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_fingerprint(relations regclass[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat(string_agg(format('%s %s %s', r.tableoid::oid, r.ctid, r.xmin), ', ' ORDER BY r.tableoid, r.ctid),
                  -- And the records of migrations, as far as the caller may see them.
                  (SELECT string_agg(o::text, ', ' ORDER BY a.attrelid, a.attnum)
                   FROM pg_attribute AS a
                   CROSS JOIN LATERAL snowflake_internal.migration_origin(a.attrelid::regclass, a.attname) AS o
                   WHERE a.attrelid = ANY (relations) AND a.attnum > 0 AND NOT a.attisdropped AND o.target IS NOT NULL))
    FROM (SELECT c.tableoid, c.ctid, c.xmin FROM pg_class AS c
          WHERE c.oid = ANY (relations) OR c.oid IN (SELECT i.indexrelid FROM pg_index AS i WHERE i.indrelid = ANY (relations))
        UNION ALL SELECT a.tableoid, a.ctid, a.xmin FROM pg_attribute AS a WHERE a.attrelid = ANY (relations)
        UNION ALL SELECT d.tableoid, d.ctid, d.xmin FROM pg_attrdef AS d WHERE d.adrelid = ANY (relations)
        UNION ALL SELECT i.tableoid, i.ctid, i.xmin FROM pg_index AS i WHERE i.indrelid = ANY (relations)
        UNION ALL SELECT k.tableoid, k.ctid, k.xmin FROM pg_constraint AS k WHERE k.conrelid = ANY (relations)
        UNION ALL SELECT t.tableoid, t.ctid, t.xmin FROM pg_trigger AS t WHERE t.tgrelid = ANY (relations)
        UNION ALL SELECT w.tableoid, w.ctid, w.xmin FROM pg_rewrite AS w WHERE w.ev_class = ANY (relations)
        UNION ALL SELECT h.tableoid, h.ctid, h.xmin FROM pg_inherits AS h WHERE h.inhparent = ANY (relations)
        -- Views, policies, publications, foreign keys of other tables, ...
        UNION ALL SELECT d.tableoid, d.ctid, d.xmin FROM pg_depend AS d
                  WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY (relations)
        UNION ALL SELECT e.tableoid, e.ctid, e.xmin FROM pg_description AS e
                  WHERE e.classoid = 'pg_class'::regclass AND e.objoid = ANY (relations)) AS r
$function$;
CREATE FUNCTION snowflake_internal.migration_require_ready(targets regclass[], column_names name[], search_path text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    missing text;
BEGIN
    IF NOT EXISTS (SELECT FROM snowflake_internal.migration_shadows(targets, column_names)) THEN
        missing := 'No column is too narrow.';
    ELSIF EXISTS (SELECT FROM unnest(targets, column_names) AS key (target, column_name)
                  WHERE NOT snowflake_internal.migration_is_switched(key.target, key.column_name)
                    AND NOT snowflake_internal.migration_is_recorded(key.target, key.column_name)) THEN
        missing := 'The sequence of the column is not recorded yet.';
    ELSE
        SELECT string_agg(o.obstacle, E'\n') INTO missing
        FROM snowflake_internal.migration_swap_obstacles(targets, column_names, search_path) AS o;
    END IF;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION '% not ready to be swapped', snowflake_internal.migration_key_names(targets, column_names)
                || CASE WHEN cardinality(targets) = 1 THEN ' is' ELSE ' are' END
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = missing,
                  HINT = 'Nothing was changed by this statement. Request the plan again, and run its statements in order.';
    END IF;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_old_snapshots(targets regclass[], column_names name[])
RETURNS TABLE (holder text, virtual_transaction text) LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH proof AS MATERIALIZED (
        SELECT min(age(k.xmin)) AS age
        FROM snowflake_internal.migration_shadows(targets, column_names) AS s
        JOIN pg_constraint AS k ON k.oid = s.check_oid
        WHERE age(k.xmin) >= 0
    )
    SELECT format('process %s', a.pid), l.virtualxid
    FROM proof
    JOIN pg_stat_activity AS a ON age(a.backend_xmin) >= proof.age
    LEFT JOIN pg_locks AS l ON l.locktype = 'virtualxid' AND l.pid = a.pid AND l.granted AND l.virtualxid = l.virtualtransaction
    WHERE a.pid <> pg_backend_pid()
      -- Not autovacuum, which returns rows to no session.
      AND a.usesysid IS NOT NULL AND (a.datname = current_database() OR a.datname IS NULL)
  UNION ALL
    SELECT format('replication slot %s', r.slot_name), NULL
    FROM proof JOIN pg_replication_slots AS r ON age(r.xmin) >= proof.age
$function$;
CREATE FUNCTION snowflake_internal.migration_await_snapshots(targets regclass[], column_names name[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    time_limit CONSTANT interval := snowflake_internal.migration_lock_time_limit();
    started_at CONSTANT timestamptz := clock_timestamp();
    last_notice_at timestamptz := started_at;
    -- Only the present transactions matter. Later ones have new snapshots, even
    -- if an old transaction still running makes them look older.
    initial_holders CONSTANT text[] := ARRAY(SELECT o.virtual_transaction FROM snowflake_internal.migration_old_snapshots(targets, column_names) AS o);
    holders text;
BEGIN
    LOOP
        PERFORM pg_stat_clear_snapshot();
        SELECT string_agg(o.holder, ', ') INTO holders
        FROM snowflake_internal.migration_old_snapshots(targets, column_names) AS o
        WHERE o.virtual_transaction IS NULL OR o.virtual_transaction = ANY (initial_holders);
        IF holders IS NULL THEN
            RETURN;
        ELSIF clock_timestamp() - started_at > time_limit THEN
            RAISE EXCEPTION 'transactions that started before all rows of % were copied have not ended within %',
                snowflake_internal.migration_key_names(targets, column_names), time_limit
                USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = format('They belong to: %s.', holders),
                      HINT = 'They would read rows without a key. Nothing was changed by this statement. Run it again when they have ended.';
        ELSIF clock_timestamp() - last_notice_at > interval '5 seconds' THEN
            last_notice_at := clock_timestamp();
            RAISE NOTICE 'waiting for transactions that started before all rows were copied'
                USING DETAIL = format('They belong to: %s.', holders);
        END IF;
        PERFORM pg_sleep(0.2);
    END LOOP;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_swap_locked(
    targets regclass[], column_names name[], relations regclass[], before text, altered regclass[], statements text[], roles oid[], not_nulls jsonb,
    dependents jsonb, dependents_before text, search_path text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    missing text;
    not_null record;
    narrow regclass[];
    narrow_names name[];
BEGIN
    PERFORM snowflake_internal.migration_lock(relations, text 'ACCESS EXCLUSIVE');
    SELECT n.relations, n.names INTO narrow, narrow_names FROM snowflake_internal.migration_swap_columns(targets, column_names) AS n;
    IF snowflake_internal.migration_fingerprint(relations) IS DISTINCT FROM before
       OR snowflake_internal.migration_dependents_fingerprint(narrow, narrow_names) IS DISTINCT FROM dependents_before THEN
        IF NOT snowflake_internal.migration_swap_relations(targets, column_names) <@ relations THEN
            RAISE EXCEPTION '% not ready to be swapped', snowflake_internal.migration_key_names(targets, column_names)
                || CASE WHEN cardinality(targets) = 1 THEN ' is' ELSE ' are' END
                USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'A foreign key or a view was added in the meantime.',
                      HINT = 'Nothing was changed by this statement. Request the plan again, and run its statements in order.';
        END IF;
        PERFORM snowflake_internal.migration_require_ready(targets, column_names, search_path);
        SELECT s.relations, s.statements, s.roles INTO altered, statements, roles
        FROM snowflake_internal.migration_swap_commands(targets, column_names) AS s;
        not_nulls := snowflake_internal.migration_not_null_names(targets, column_names);
        dependents := snowflake_internal.migration_save_dependents(narrow, narrow_names);
    END IF;
    -- The sequence has advanced since it was recorded.
    PERFORM snowflake_internal.migration_record_origin(key.target, key.column_name)
    FROM unnest(targets, column_names) AS key (target, column_name);
    PERFORM snowflake_internal.migration_drop_dependents(dependents);
    PERFORM snowflake_internal.migration_run_all(altered, statements, roles, search_path);
    FOR not_null IN
        SELECT e ->> 'name' AS former, e ->> 'comment' AS comment, (e ->> 'is_inherited')::boolean AS is_inherited, k.conname AS present,
               k.conrelid::regclass AS relation, snowflake_internal.migration_name(k.conrelid::regclass) AS quoted_name
        FROM jsonb_array_elements(not_nulls) AS e
        JOIN pg_attribute AS a ON a.attrelid = (e ->> 'relation')::oid AND a.attname = e ->> 'column'
        JOIN pg_constraint AS k ON k.conrelid = a.attrelid AND k.contype = 'n' AND k.conkey = ARRAY[a.attnum]
    LOOP
        IF not_null.present <> not_null.former THEN
            PERFORM snowflake_internal.migration_run(not_null.relation, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', not_null.quoted_name, not_null.present, not_null.former));
        END IF;
        IF NOT not_null.is_inherited THEN
            PERFORM snowflake_internal.migration_run(not_null.relation, format('ALTER TABLE %s ALTER CONSTRAINT %I NO INHERIT', not_null.quoted_name, not_null.former));
        END IF;
        IF not_null.comment IS NOT NULL THEN
            PERFORM snowflake_internal.migration_run(not_null.relation, format('COMMENT ON CONSTRAINT %I ON %s IS %L', not_null.former, not_null.quoted_name, not_null.comment));
        END IF;
    END LOOP;
    -- After the constraints, which views with GROUP BY may use.
    PERFORM snowflake_internal.migration_create_dependents(dependents);
    PERFORM snowflake_internal.migration_compare_dependents(dependents, narrow, narrow_names);
    -- Only needed for a layout whose first IDs fit into an integer.
    IF snowflake_internal.migration_first_id() <= 2147483647 THEN
        SELECT string_agg(format('%s. %s', o.obstacle, o.remedy), E'\n') INTO missing
        FROM unnest(targets, column_names) AS key (target, column_name)
        CROSS JOIN LATERAL snowflake_internal.migration_row_obstacles(key.target, key.column_name, search_path) AS o;
        IF missing IS NOT NULL THEN
            RAISE EXCEPTION 'cannot migrate %', snowflake_internal.migration_key_names(targets, column_names)
                USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = missing,
                      HINT = 'Nothing was changed by this statement.';
        END IF;
    END IF;
    PERFORM snowflake_internal.migration_end(targets[1], column_names[1]);
END
$function$;
CREATE FUNCTION snowflake_internal.migration_swap(targets regclass[], column_names name[], search_path text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    relations CONSTANT regclass[] := snowflake_internal.migration_swap_relations(targets, column_names);
    sequences CONSTANT regclass[] := snowflake_internal.migration_swap_sequences(targets, column_names);
    former_timeout CONSTANT text := current_setting('lock_timeout');
    before CONSTANT text := snowflake_internal.migration_fingerprint(relations);
    altered regclass[];
    statements text[];
    roles oid[];
    not_nulls jsonb;
    dependents jsonb;
    dependents_before text;
    started_at timestamptz;
    last_notice_at timestamptz;
    pause double precision := 0.25;
BEGIN
    PERFORM snowflake_internal.migration_require_owner(key.target) FROM unnest(targets) AS key (target);
    PERFORM snowflake_internal.migration_require_ready(targets, column_names, search_path);
    PERFORM snowflake_internal.migration_await_snapshots(targets, column_names);
    SELECT s.relations, s.statements, s.roles INTO altered, statements, roles
    FROM snowflake_internal.migration_swap_commands(targets, column_names) AS s;
    not_nulls := snowflake_internal.migration_not_null_names(targets, column_names);
    SELECT snowflake_internal.migration_dependents_fingerprint(n.relations, n.names) INTO dependents_before
    FROM snowflake_internal.migration_swap_columns(targets, column_names) AS n;
    SELECT snowflake_internal.migration_save_dependents(n.relations, n.names) INTO dependents
    FROM snowflake_internal.migration_swap_columns(targets, column_names) AS n;
    started_at := clock_timestamp();
    last_notice_at := started_at;
    LOOP
        BEGIN
            PERFORM snowflake_internal.migration_swap_locked(targets, column_names, relations, before, altered, statements, roles, not_nulls,
                                                              dependents, dependents_before, search_path);
            PERFORM snowflake_internal.migration_recompile(targets, column_names);
            PERFORM set_config('lock_timeout', former_timeout, true);
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            -- A transaction that called nextval() holds a lock on the sequence until
            -- it ends, and may write to the table before that. So the locks on the
            -- tables are released. A sequence cannot be locked in advance: only
            -- statements that alter it lock it, not LOCK TABLE.
            last_notice_at := snowflake_internal.migration_lock_missed(relations || sequences, text 'ACCESS EXCLUSIVE', started_at, last_notice_at);
        END;
        PERFORM pg_sleep(pause * (0.5 + random()));
        pause := least(pause * 1.5, 2);
    END LOOP;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_online_steps(targets regclass[], column_names name[])
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN QUERY SELECT s.* FROM snowflake_internal.migration_shadow_steps(targets, column_names) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_internal.migration_backfill_steps(targets, column_names) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_internal.migration_leftover_steps(targets, column_names) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_internal.migration_check_steps(targets, column_names) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_internal.migration_statistics_steps(targets, column_names) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_internal.migration_index_steps(targets, column_names) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_internal.migration_foreign_key_steps(targets, column_names) AS s;
    -- Wide columns without statistics are included, because the check after a
    -- migration includes them.
    RETURN QUERY
        -- The statistics of statistics objects and of expressions in indexes take an
        -- ANALYZE of the whole table.
        SELECT concat('ANALYZE ', snowflake_internal.migration_name(c.relation),
                      CASE WHEN w.relation IS NULL THEN format(' (%s)', string_agg(quote_ident(c.name), ', ' ORDER BY c.attribute)) END),
               'SHARE UPDATE EXCLUSIVE', true, 'collects statistics for the planner'
        FROM (SELECT s.relation, s.attribute, s.shadow_name AS name
              FROM snowflake_internal.migration_shadows(targets, column_names) AS s
              WHERE NOT s.is_kept OR NOT s.is_filled OR snowflake_internal.migration_lacks_statistics(s.relation, s.shadow_name)
            UNION ALL
              SELECT r.relation, r.attribute, a.attname
              FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
              JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
              JOIN pg_class AS o ON o.oid = r.relation AND pg_has_role(o.relowner, 'USAGE')
              WHERE NOT r.is_narrow AND snowflake_internal.migration_lacks_statistics(r.relation, a.attname)
            UNION ALL
              SELECT w.relation, NULL, NULL
              FROM snowflake_internal.migration_analyzed_whole(targets, column_names) AS w WHERE w.is_lacking) AS c
        LEFT JOIN snowflake_internal.migration_analyzed_whole(targets, column_names) AS w ON w.relation = c.relation
        GROUP BY c.relation, w.relation
        ORDER BY c.relation = ANY (targets) DESC, c.relation::text;
    RETURN QUERY
        SELECT snowflake_internal.migration_do_block(
                   format(E'    PERFORM snowflake_internal.migration_swap(%s, %s);\n',
                          snowflake_internal.migration_key_arguments(targets, column_names), snowflake_internal.migration_path_argument())),
               'ACCESS EXCLUSIVE', true,
               format('checks everything again under the lock, then replaces %s by their shadows: only the catalog changes. They become the last columns of their tables. New rows get snowflake IDs from %s on, which an integer or a JavaScript Number (2^53) cannot hold. Existing rows keep their IDs, which decode to the first moments after the epoch',
                      (SELECT string_agg(format('%s.%I', s.relation, s.narrow), ', ' ORDER BY s.relation = ANY (targets) DESC, s.relation::text, s.attribute)
                       FROM snowflake_internal.migration_shadows(targets, column_names) AS s),
                      snowflake_internal.migration_first_id())
               || coalesce((SELECT format('. It %s in the same transaction', snowflake_internal.migration_dependents_note(n.relations, n.names))
                            FROM snowflake_internal.migration_swap_columns(targets, column_names) AS n), '');
END
$function$;
CREATE FUNCTION snowflake_internal.migration_check(target regclass, column_name name, search_path text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    narrow text;
BEGIN
    IF snowflake_internal.migration_is_switched(target, column_name) THEN
        RAISE EXCEPTION 'column "%" of % already has snowflake IDs', column_name, target
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Request the plan again.';
    END IF;
    IF NOT snowflake_internal.migration_is_recorded(target, column_name) THEN
        RAISE EXCEPTION 'the sequence of column "%" of % is not recorded yet', column_name, target
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Run the statements of snowflake_migration_plan() in order.';
    END IF;
    SELECT string_agg(format('%s.%I', r.relation, a.attname), ', ') INTO narrow
    FROM snowflake_internal.migration_linked_columns(ARRAY[target], ARRAY[column_name]) AS r
    JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
    WHERE r.is_narrow;
    IF narrow IS NOT NULL THEN
        RAISE EXCEPTION 'columns are still too narrow for snowflake IDs: %', narrow
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Run the statements of snowflake_migration_plan() in order.';
    END IF;
    PERFORM snowflake_internal.migration_check_rows(target, column_name, search_path, true);
    -- The sequence has advanced since it was recorded.
    PERFORM snowflake_internal.migration_record_origin(target, column_name);
END
$function$;
CREATE FUNCTION snowflake_internal.migration_default_note(target regclass, column_name name)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('new rows get snowflake IDs from %s on, which an integer or a JavaScript Number (2^53) cannot hold. Existing rows keep their IDs, which decode to the first moments after the epoch',
                  snowflake_internal.migration_first_id())
           -- Other columns continue to use the sequence.
           || coalesce((
               SELECT '. The sequence is still used by ' || string_agg(format('%s.%I', f.adrelid::regclass, a.attname), ', ')
               FROM pg_depend AS mine
               JOIN pg_attrdef AS own ON mine.classid = 'pg_attrdef'::regclass AND mine.objid = own.oid AND own.adrelid = target
               JOIN pg_attribute AS me ON me.attrelid = own.adrelid AND me.attnum = own.adnum
                                      AND me.attname = migration_default_note.column_name
               JOIN pg_class AS s ON s.oid = mine.refobjid AND mine.refclassid = 'pg_class'::regclass AND s.relkind = 'S'
               JOIN pg_depend AS theirs ON theirs.refclassid = 'pg_class'::regclass AND theirs.refobjid = s.oid
                                       AND theirs.classid = 'pg_attrdef'::regclass AND theirs.objid <> own.oid
               JOIN pg_attrdef AS f ON f.oid = theirs.objid
               JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
               -- The defaults of partitions and child tables change with the table's.
               WHERE (f.adrelid, f.adnum) NOT IN (
                   SELECT tree.relation, tree.attribute
                   FROM snowflake_internal.migration_table_tree(target, migration_default_note.column_name) AS tree)), '')
           || coalesce((
               SELECT '. New IDs must satisfy the check constraints ' || string_agg(k.conname, ', ' ORDER BY k.conname)
               FROM pg_constraint AS k JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
               WHERE k.conrelid = target AND k.contype = 'c' AND a.attname = migration_default_note.column_name), '')
$function$;
CREATE FUNCTION snowflake_internal.migration_dependent_columns(
    targets regclass[], column_names name[], OUT relations regclass[], OUT names name[]
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH narrow AS MATERIALIZED (
        SELECT r.relation, a.attname, a.attnum
        FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        WHERE r.is_narrow
    ), used AS MATERIALIZED (
        SELECT DISTINCT d.relation
        FROM (SELECT array_agg(n.relation) AS relations, array_agg(n.attname) AS names FROM narrow AS n) AS given
        CROSS JOIN LATERAL snowflake_internal.migration_direct_dependents(given.relations, given.names) AS d
    )
    SELECT array_agg(n.relation ORDER BY n.relation = ANY (targets) DESC, n.relation::text, n.attnum),
           array_agg(n.attname ORDER BY n.relation = ANY (targets) DESC, n.relation::text, n.attnum)
    FROM narrow AS n WHERE n.relation IN (SELECT u.relation FROM used AS u)
$function$;
CREATE FUNCTION snowflake_internal.migration_steps(
    targets regclass[], column_names name[], online boolean, search_path text DEFAULT NULL
) RETURNS TABLE (step integer, statement text, lock_level text, rewrites boolean, in_transaction boolean, note text, relation regclass)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- Passed as an argument of format(), because a schema name may contain %.
    extension_schema CONSTANT text := '@extschema@';
    caller_path CONSTANT text := snowflake_internal.migration_path_argument();
    is_narrow CONSTANT boolean := EXISTS (
        SELECT FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r WHERE r.is_narrow);
    is_widening CONSTANT boolean := is_narrow OR EXISTS (
        SELECT FROM unnest(targets, column_names) AS key (target, column_name)
        CROSS JOIN LATERAL snowflake_internal.migration_origin(key.target, key.column_name) AS o
        WHERE o.reverted_at IS NULL AND o.data_type IN ('smallint', 'integer'));
    is_switched CONSTANT boolean := NOT EXISTS (
        SELECT FROM unnest(targets, column_names) AS key (target, column_name)
        WHERE NOT snowflake_internal.migration_is_switched(key.target, key.column_name));
    obstacles text;
    code text;
    states jsonb;
    targets_again text;
    -- How many locks the rewrite of each table needs.
    lock_tables regclass[];
    lock_counts bigint[];
    key record;
    altered record;
    -- The columns of tables that have views or other such objects.
    widened regclass[];
    widened_columns name[];
    findings jsonb;
BEGIN
    IF is_narrow OR NOT is_switched THEN
        SELECT string_agg(format('%s. %s', o.obstacle, o.remedy), E'\n'), min(o.sqlstate_code)
        INTO obstacles, code
        FROM (SELECT o.* FROM snowflake_internal.migration_obstacles(targets, column_names, search_path) AS o
            UNION ALL
              SELECT o.* FROM snowflake_internal.migration_plan_kind_obstacles(targets, column_names, coalesce(online, false)) AS o
            UNION ALL
              SELECT o.*
              FROM snowflake_internal.migration_lock_needs(targets, column_names) AS n
              CROSS JOIN LATERAL snowflake_internal.migration_lock_obstacles(n.locks, format('rewriting %s', n.relation)) AS o
              WHERE online IS NOT TRUE
            UNION ALL
              SELECT o.* FROM snowflake_internal.migration_index_function_obstacles(targets, column_names, online, search_path) AS o
              WHERE NOT EXISTS (SELECT FROM snowflake_internal.migration_owner_obstacles(targets, column_names))) AS o;
        IF obstacles IS NOT NULL THEN
            RAISE EXCEPTION 'cannot migrate %', snowflake_internal.migration_key_names(targets, column_names)
                USING ERRCODE = code, DETAIL = obstacles,
                      HINT = 'Nothing was changed. Remove the obstacles, then request the plan again.';
        END IF;
    END IF;
    findings := snowflake_internal.migration_warn(targets, column_names, coalesce(online, false) AND is_narrow);
    step := 0;
    in_transaction := true;

    FOR key IN
        SELECT k.target, k.column_name
        FROM unnest(targets, column_names) WITH ORDINALITY AS k (target, column_name, place)
        WHERE NOT snowflake_internal.migration_is_switched(k.target, k.column_name)
          AND NOT snowflake_internal.migration_is_recorded(k.target, k.column_name)
        ORDER BY k.place
    LOOP
        step := step + 1;
        relation := key.target;
        statement := format('SELECT snowflake_internal.migration_record_origin(%L::pg_catalog.regclass, %L::pg_catalog.name)',
                            snowflake_internal.migration_name(key.target), key.column_name);
        lock_level := 'SHARE UPDATE EXCLUSIVE';
        rewrites := false;
        note := 'records the sequence of the column, for snowflake_migrate_revert()';
        RETURN NEXT;
    END LOOP;

    IF online AND is_narrow THEN
        rewrites := false;
        relation := targets[1];
        FOR statement, lock_level, in_transaction, note IN
            SELECT s.statement, s.lock_level, s.in_transaction, s.note
            FROM snowflake_internal.migration_online_steps(targets, column_names) AS s
        LOOP
            step := step + 1;
            note := note || snowflake_internal.migration_online_finding_notes(findings, statement);
            RETURN NEXT;
        END LOOP;
        RETURN;
    END IF;

    SELECT array_agg(n.relation), array_agg(n.locks) INTO lock_tables, lock_counts
    FROM snowflake_internal.migration_lock_needs(targets, column_names) AS n;
    SELECT w.relations, w.names INTO widened, widened_columns
    FROM snowflake_internal.migration_dependent_columns(targets, column_names) AS w;
    IF widened IS NOT NULL THEN
        step := step + 1;
        -- Objects of several owners: each statement in it is run as one of them.
        relation := NULL;
        statement := format('SELECT snowflake_internal.migration_widen(%L::pg_catalog.regclass[], %L::pg_catalog.name[], %s)',
                            ARRAY(SELECT snowflake_internal.migration_name(w.relation) FROM unnest(widened) WITH ORDINALITY AS w (relation, place) ORDER BY w.place),
                            widened_columns, caller_path);
        lock_level := 'ACCESS EXCLUSIVE';
        rewrites := true;
        note := format('widens %s; %s; rewrites the tables and their indexes (%s now; needs as much additional disk space while it runs, and as much WAL) and checks their foreign keys again',
                       (SELECT string_agg(format('%s.%I', w.relation, w.column_name), ', ' ORDER BY w.place)
                        FROM unnest(widened, widened_columns) WITH ORDINALITY AS w (relation, column_name, place)),
                       snowflake_internal.migration_dependents_note(widened, widened_columns),
                       (SELECT pg_size_pretty(sum(pg_total_relation_size(t.relid))) FROM (
                            WITH RECURSIVE tree (relid) AS (
                                SELECT unnest(widened)::oid UNION SELECT i.inhrelid FROM tree JOIN pg_inherits AS i ON i.inhparent = tree.relid)
                            SELECT tree.relid FROM tree) AS t))
                || coalesce((SELECT '. Also locked: ' || string_agg(DISTINCT l.relation::text, ', ')
                             FROM (SELECT unnest(snowflake_internal.migration_dependent_relations(widened, widened_columns)) AS relation) AS l
                             WHERE l.relation <> ALL (widened)), '')
                || coalesce((SELECT '. Also locked for their foreign keys: ' || string_agg(DISTINCT l.locked_too, ', ')
                             FROM (SELECT snowflake_internal.migration_other_locked_tables(w.relation, array_agg(a.attnum)) AS locked_too
                                   FROM unnest(widened, widened_columns) AS w (relation, column_name)
                                   JOIN pg_attribute AS a ON a.attrelid = w.relation AND a.attname = w.column_name
                                   GROUP BY w.relation) AS l), '')
                || coalesce((SELECT '. Published by ' || string_agg(DISTINCT p.publications, ', ') || ': widen the columns at the subscribers first'
                             FROM (SELECT snowflake_internal.migration_publications(w.relation, w.column_name) AS publications
                                   FROM unnest(widened, widened_columns) AS w (relation, column_name)) AS p
                             HAVING count(p.publications) > 0), '')
                || CASE WHEN EXISTS (SELECT FROM pg_partitioned_table AS p WHERE p.partrelid = ANY (widened))
                        THEN '. Indexes and not-null constraints of partitions that belong to one of the table are rebuilt: '
                             'they get new names and the comment of the table''s, and lose a CLUSTER setting' ELSE '' END
                || coalesce((SELECT string_agg(snowflake_internal.migration_finding_notes(findings, text 'type', w.relation), '')
                             FROM (SELECT DISTINCT t.relation FROM unnest(widened) AS t (relation)) AS w), '');
        RETURN NEXT;
    END IF;

    FOR altered IN
        SELECT r.relation, snowflake_internal.migration_name(r.relation) AS quoted_name,
               snowflake_internal.migration_other_locked_tables(r.relation, array_agg(a.attnum)) AS locked_too,
               snowflake_internal.migration_publications(r.relation, min(a.attname::text)::name) AS publications,
               string_agg(format('ALTER COLUMN %I TYPE bigint', a.attname), ', ' ORDER BY a.attnum) AS actions,
               string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS names,
               pg_size_pretty((SELECT sum(pg_total_relation_size(t.relid)) FROM (
                   WITH RECURSIVE tree (relid) AS (
                       SELECT r.relation::oid UNION SELECT i.inhrelid FROM tree JOIN pg_inherits AS i ON i.inhparent = tree.relid)
                   SELECT tree.relid FROM tree) AS t)) AS size,
               EXISTS (SELECT FROM pg_partitioned_table AS p WHERE p.partrelid = r.relation) AS is_partitioned,
               ARRAY(SELECT f.relation FROM snowflake_internal.migration_table_tree(r.relation, min(a.attname::text)::name) AS f) AS tree
        FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        WHERE r.is_narrow AND r.relation <> ALL (coalesce(widened, '{}'))
        GROUP BY r.relation
        ORDER BY r.relation = ANY (targets) DESC, r.relation::text
    LOOP
        step := step + 1;
        relation := altered.relation;
        statement := format('ALTER TABLE %s %s', altered.quoted_name, altered.actions);
        states := snowflake_internal.migration_trigger_states(altered.tree);
        SELECT string_agg(format(E'    %s;\n', t.statement), '' ORDER BY t.statement) INTO targets_again
        FROM snowflake_internal.migration_statistics_targets(altered.tree) AS t;
        IF states IS NOT NULL OR targets_again IS NOT NULL THEN
            -- In one statement, because the states are lost after it.
            statement := snowflake_internal.migration_do_block(concat(
                format(E'    %s;\n', statement), targets_again,
                CASE WHEN states IS NOT NULL
                     THEN format(E'    PERFORM snowflake_internal.migration_restore_trigger_states(%L::pg_catalog.jsonb);\n', states) END));
        END IF;
        lock_level := 'ACCESS EXCLUSIVE';
        rewrites := true;
        note := format('widens %s; rewrites the table and its indexes (%s now; needs as much additional disk space while it runs, and as much WAL) and checks its foreign keys again',
                       altered.names, altered.size)
                || coalesce('. Also locked: ' || altered.locked_too, '')
                || coalesce((SELECT format('. Needs about %s locks, and the server has room for about %s: if it fails (53200), set max_locks_per_transaction to at least %s and restart the server',
                                           n.locks, s.slots * s.per_transaction, ceil(n.locks::numeric / s.slots))
                             FROM unnest(lock_tables, lock_counts) AS n (relation, locks)
                             CROSS JOIN (SELECT snowflake_internal.migration_lock_slots() AS slots,
                                                current_setting('max_locks_per_transaction')::bigint AS per_transaction) AS s
                             WHERE n.relation = altered.relation AND n.locks > s.slots * s.per_transaction), '')
                || CASE WHEN states IS NOT NULL THEN '. Foreign keys with disabled triggers are created again: their states are restored' ELSE '' END
                || coalesce('. Published by ' || altered.publications || ': widen the column at the subscribers first', '')
                || CASE WHEN altered.is_partitioned THEN '. Indexes and not-null constraints of partitions that belong to one of the table are rebuilt: '
                                                    'they get new names and the comment of the table''s, and lose a CLUSTER setting' ELSE '' END
                || snowflake_internal.migration_finding_notes(findings, text 'type', altered.relation);
        RETURN NEXT;
    END LOOP;

    FOR key IN
        SELECT k.target, k.column_name, snowflake_internal.migration_name(k.target) AS quoted_name, a.attidentity
        FROM unnest(targets, column_names) WITH ORDINALITY AS k (target, column_name, place)
        JOIN pg_attribute AS a ON a.attrelid = k.target AND a.attname = k.column_name
        WHERE NOT snowflake_internal.migration_is_switched(k.target, k.column_name)
        ORDER BY k.place
    LOOP
        step := step + 1;
        relation := key.target;
        statement := snowflake_internal.migration_do_block(
            -- Before the lock, because it reads every row.
            CASE WHEN EXISTS (SELECT FROM snowflake_internal.migration_id_indexes(key.target, key.column_name) AS i WHERE NOT i.is_indexed)
                 THEN format(E'    PERFORM snowflake_internal.migration_check_rows(%L::pg_catalog.regclass, %L::pg_catalog.name, %s);\n',
                             key.quoted_name, key.column_name, caller_path) ELSE '' END
            || CASE WHEN online
                 THEN format(E'    PERFORM snowflake_internal.migration_lock(%L::pg_catalog.regclass[], ''ACCESS EXCLUSIVE''::pg_catalog.text);\n', ARRAY[key.quoted_name])
                 ELSE format(E'    LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;\n', key.quoted_name) END
            || format(E'    PERFORM snowflake_internal.migration_check(%L::pg_catalog.regclass, %L::pg_catalog.name, %s);\n',
                      key.quoted_name, key.column_name, caller_path)
            || CASE WHEN key.attidentity <> '' THEN format(E'    ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY;\n', key.quoted_name, key.column_name) ELSE '' END
            || format(E'    ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.snowflake_nextval();\n', key.quoted_name, key.column_name, extension_schema)
            || CASE WHEN is_widening
                    THEN format(E'    PERFORM snowflake_internal.migration_recompile(%s);\n',
                                snowflake_internal.migration_key_arguments(ARRAY[key.target], ARRAY[key.column_name])) ELSE '' END);
        lock_level := 'ACCESS EXCLUSIVE';
        rewrites := false;
        note := snowflake_internal.migration_default_note(key.target, key.column_name)
                || snowflake_internal.migration_finding_notes(findings, text 'default', key.target);
        RETURN NEXT;
    END LOOP;

    -- A rewritten column has no statistics until the table is analyzed. Which
    -- columns have been rewritten is not known, so columns without statistics are
    -- analyzed. ANALYZE includes partitions, and other child tables from
    -- PostgreSQL 18 on.
    FOR altered IN
        SELECT f.relation, snowflake_internal.migration_name(f.relation) AS quoted_name,
               string_agg(DISTINCT quote_ident(r.attname), ', ') AS names,
               bool_or(snowflake_internal.migration_has_derived_statistics(f.relation, r.attname)) AS is_whole
        FROM (SELECT r.relation, a.attname, bool_or(r.is_narrow) OVER (PARTITION BY r.relation) AS is_rewritten
              FROM snowflake_internal.migration_linked_columns(targets, column_names) AS r
              JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute) AS r
        CROSS JOIN LATERAL snowflake_internal.migration_table_tree(r.relation, r.attname) AS f
        JOIN pg_class AS c ON c.oid = f.relation AND NOT c.relispartition AND c.relkind <> 'f'
        WHERE pg_has_role(c.relowner, 'USAGE')
          AND (r.is_rewritten
               OR is_widening AND snowflake_internal.migration_lacks_statistics(f.relation, r.attname))
        GROUP BY f.relation
        ORDER BY f.relation = ANY (targets) DESC, f.relation::text
    LOOP
        step := step + 1;
        relation := altered.relation;
        statement := 'ANALYZE ' || altered.quoted_name || CASE WHEN altered.is_whole THEN '' ELSE format(' (%s)', altered.names) END;
        lock_level := 'SHARE UPDATE EXCLUSIVE';
        rewrites := false;
        note := 'a rewritten column has no statistics'
                || CASE WHEN altered.is_whole THEN ', nor have its extended statistics and index expressions: these are only collected with those of the whole table'
                        ELSE '' END;
        RETURN NEXT;
    END LOOP;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_limit_locks()
RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    former CONSTANT text := current_setting('lock_timeout');
BEGIN
    IF former = '0' THEN
        PERFORM set_config('lock_timeout', '5s', true);
    END IF;
    RETURN former;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_plan(
    targets regclass[], column_names name[], online boolean, search_path text DEFAULT NULL
) RETURNS TABLE (step integer, statement text, lock_level text, rewrites boolean, in_transaction boolean, note text, relation regclass)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
BEGIN
    SELECT k.targets, k.column_names INTO targets, column_names
    FROM snowflake_internal.migration_keys(targets, column_names) AS k;
    IF online THEN
        SELECT u.targets, u.column_names INTO targets, column_names
        FROM snowflake_internal.migration_unfinished(targets, column_names) AS u;
    END IF;
    RETURN QUERY SELECT s.* FROM snowflake_internal.migration_steps(targets, column_names, online, search_path) AS s;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_migrate(targets regclass[], column_names name[], search_path text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    former_timeout CONSTANT text := snowflake_internal.migration_limit_locks();
    plan_step record;
    done integer := 0;
    states jsonb;
BEGIN
    FOR plan_step IN SELECT * FROM snowflake_internal.migration_plan(targets, column_names, false, search_path) LOOP
        IF done = 0 THEN
            PERFORM snowflake_internal.migration_require_locks(k.targets, k.column_names)
            FROM snowflake_internal.migration_keys(targets, column_names) AS k;
        END IF;
        RAISE NOTICE 'step %: %', plan_step.step, plan_step.note;
        IF plan_step.relation IS NULL THEN
            PERFORM snowflake_internal.migration_widen(w.relations, w.names, coalesce(search_path, current_setting('search_path')))
            FROM snowflake_internal.migration_keys(targets, column_names) AS k
            CROSS JOIN LATERAL snowflake_internal.migration_dependent_columns(k.targets, k.column_names) AS w;
        ELSE
            IF plan_step.rewrites THEN
                states := snowflake_internal.migration_trigger_states(ARRAY(
                    WITH RECURSIVE tree (oid) AS (
                        SELECT plan_step.relation::oid
                      UNION
                        SELECT i.inhrelid FROM tree JOIN pg_inherits AS i ON i.inhparent = tree.oid
                    )
                    SELECT tree.oid::regclass FROM tree));
            END IF;
            PERFORM snowflake_internal.migration_run(plan_step.relation, plan_step.statement, search_path);
            -- With the caller's own rights: the table's owner may not.
            PERFORM snowflake_internal.migration_restore_trigger_states(states) WHERE plan_step.rewrites AND states IS NOT NULL;
        END IF;
        done := done + 1;
    END LOOP;
    PERFORM set_config('lock_timeout', former_timeout, true);
    IF done = 0 AND cardinality(targets) = 1 THEN
        RAISE NOTICE 'nothing to do: % is already migrated', targets[1];
    ELSIF done = 0 THEN
        RAISE NOTICE 'nothing to do: % are already migrated', array_to_string(targets, ', ');
    END IF;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_survey_obstacles(targets regclass[], column_names name[], online boolean)
RETURNS TABLE (target regclass, column_name name, obstacles text[])
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    half CONSTANT integer := cardinality(targets) / 2;
    found text[];
BEGIN
    IF coalesce(cardinality(targets), 0) = 0 THEN
        RETURN;
    END IF;
    BEGIN
        IF online IS NULL THEN
            found := ARRAY(SELECT format('%s. %s', o.obstacle, o.remedy)
                           FROM snowflake_internal.migration_obstacles(targets, column_names) AS o);
        ELSE
            found := ARRAY(SELECT format('%s. %s', o.obstacle, o.remedy)
                           FROM snowflake_internal.migration_plan_kind_obstacles(targets, column_names, online) AS o);
        END IF;
    EXCEPTION WHEN OTHERS THEN
        found := ARRAY[SQLERRM];
    END;
    IF cardinality(targets) = 1 OR cardinality(found) = 0 THEN
        RETURN QUERY SELECT k.target, k.column_name, found FROM unnest(targets, column_names) AS k (target, column_name);
    ELSE
        RETURN QUERY SELECT o.* FROM snowflake_internal.migration_survey_obstacles(targets[:half], column_names[:half], online) AS o;
        RETURN QUERY SELECT o.* FROM snowflake_internal.migration_survey_obstacles(targets[half + 1:], column_names[half + 1:], online) AS o;
    END IF;
END
$function$;
CREATE FUNCTION snowflake_migration_survey(schema_name name DEFAULT NULL)
RETURNS TABLE (
    table_name regclass, column_name name, data_type text, percent_used numeric, row_estimate bigint,
    tables_rewritten bigint, bytes_rewritten bigint, window_way text, online_way text,
    window_obstacles text[], online_obstacles text[], findings text[]
) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    keys_targets regclass[];
    keys_columns name[];
    found_relations regclass[];
    found_columns name[];
    found_texts text[];
    finding_error text;
    key record;
    is_narrow boolean;
    checked jsonb;
    place text;
    linked_relations regclass[];
    linked_columns name[];
BEGIN
    SELECT array_agg(k.relation ORDER BY k.relation::oid, k.attname), array_agg(k.attname ORDER BY k.relation::oid, k.attname)
    INTO keys_targets, keys_columns
    FROM (SELECT DISTINCT c.oid::regclass AS relation, s.column_name AS attname
          FROM @extschema@.snowflake_serial_columns AS s
          JOIN pg_namespace AS n ON n.nspname = s.schema_name
          JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = s.table_name
          WHERE c.relkind IN ('r', 'p')
            AND (snowflake_migration_survey.schema_name IS NULL OR n.nspname = snowflake_migration_survey.schema_name)) AS k;
    IF keys_targets IS NULL THEN
        RETURN;
    END IF;
    BEGIN
        SELECT array_agg(f.relation), array_agg(f.column_name), array_agg(format('%s %s. %s', f.object, f.finding, f.remedy))
        INTO found_relations, found_columns, found_texts
        FROM snowflake_internal.migration_findings(keys_targets, keys_columns, true) AS f;
    EXCEPTION WHEN OTHERS THEN
        finding_error := SQLERRM;
    END;

    SELECT coalesce(jsonb_object_agg(c.kind || ' ' || c.target::oid || ' ' || c.column_name, c.obstacles), '{}') INTO checked
    FROM (SELECT 'common' AS kind, o.*
          FROM snowflake_internal.migration_survey_obstacles(keys_targets, keys_columns, NULL) AS o
        UNION ALL
          SELECT 'window', o.*
          FROM snowflake_internal.migration_survey_obstacles(keys_targets, keys_columns, false) AS o
        UNION ALL
          SELECT 'online', o.*
          FROM snowflake_internal.migration_survey_obstacles(keys_targets, keys_columns, true) AS o) AS c
    WHERE c.obstacles <> '{}';

    FOR key IN
        SELECT DISTINCT ON (n.nspname, s.table_name, s.column_name)
               c.oid::regclass AS relation, s.column_name AS attname, s.data_type, s.percent_used
        FROM @extschema@.snowflake_serial_columns AS s
        JOIN pg_namespace AS n ON n.nspname = s.schema_name
        JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = s.table_name
        WHERE c.oid = ANY (keys_targets::oid[])
        ORDER BY n.nspname, s.table_name, s.column_name, s.percent_used DESC NULLS LAST
    LOOP
        table_name := key.relation;
        column_name := key.attname;
        data_type := key.data_type;
        percent_used := key.percent_used;
        row_estimate := NULL;
        tables_rewritten := NULL;
        bytes_rewritten := NULL;
        window_obstacles := '{}';
        online_obstacles := '{}';
        findings := '{}';
        BEGIN
            SELECT coalesce(bool_or(r.is_narrow), false), array_agg(r.relation), array_agg(a.attname)
            INTO is_narrow, linked_relations, linked_columns
            FROM snowflake_internal.migration_linked_columns(ARRAY[key.relation], ARRAY[key.attname]) AS r
            JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute;
            SELECT sum(snowflake_internal.migration_row_estimate(f.relation)) INTO row_estimate
            FROM snowflake_internal.migration_table_tree(key.relation, key.attname) AS f
            JOIN pg_class AS c ON c.oid = f.relation AND c.relkind = 'r';
            -- A table with several of the columns is rewritten once.
            SELECT count(*), coalesce(sum(pg_total_relation_size(t.relation)), 0) INTO tables_rewritten, bytes_rewritten
            FROM (SELECT DISTINCT f.relation
                  FROM snowflake_internal.migration_linked_columns(ARRAY[key.relation], ARRAY[key.attname]) AS r
                  JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
                  CROSS JOIN LATERAL snowflake_internal.migration_table_tree(r.relation, a.attname) AS f
                  JOIN pg_class AS c ON c.oid = f.relation AND c.relkind = 'r'
                  WHERE r.is_narrow) AS t;
            place := format(' %s %s', key.relation::oid, key.attname);
            window_obstacles := ARRAY(SELECT o FROM jsonb_array_elements_text(checked -> ('common' || place)) AS o)
                                || ARRAY(SELECT o FROM jsonb_array_elements_text(checked -> ('window' || place)) AS o);
            window_way := CASE WHEN cardinality(window_obstacles) > 0 THEN 'not possible'
                               WHEN is_narrow THEN 'rewrite' ELSE 'catalog only' END;
            IF is_narrow THEN
                online_obstacles := ARRAY(SELECT o FROM jsonb_array_elements_text(checked -> ('common' || place)) AS o)
                                    || ARRAY(SELECT o FROM jsonb_array_elements_text(checked -> ('online' || place)) AS o);
                online_way := CASE WHEN cardinality(online_obstacles) > 0 THEN 'not possible' ELSE 'possible' END;
            ELSE
                online_way := 'not needed';
            END IF;
            findings := ARRAY(
                SELECT f.text
                FROM unnest(found_relations, found_columns, found_texts) WITH ORDINALITY AS f (relation, attname, text, place)
                WHERE EXISTS (SELECT FROM unnest(linked_relations, linked_columns) AS l (relation, attname)
                              WHERE l.relation = f.relation AND (f.attname IS NULL OR l.attname = f.attname))
                ORDER BY f.place) || array_remove(ARRAY[finding_error], NULL);
        EXCEPTION WHEN OTHERS THEN
            window_way := 'not possible';
            online_way := 'not possible';
            window_obstacles := ARRAY[SQLERRM];
            online_obstacles := ARRAY[SQLERRM];
        END;
        RETURN NEXT;
    END LOOP;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_plan(
    target regclass, column_name name DEFAULT NULL, online boolean DEFAULT false
) RETURNS TABLE (step integer, statement text, lock_level text, rewrites boolean, in_transaction boolean, note text)
LANGUAGE plpgsql STABLE
AS $function$
BEGIN
    RETURN QUERY
        SELECT s.step, s.statement, s.lock_level, s.rewrites, s.in_transaction, s.note
        FROM snowflake_internal.migration_plan(ARRAY[target], ARRAY[column_name], online,
            pg_catalog.current_setting('search_path'::pg_catalog.text)) AS s;
END
$function$;
CREATE FUNCTION snowflake_migration_plan_tables(
    targets regclass[], column_names name[] DEFAULT NULL, online boolean DEFAULT false
) RETURNS TABLE (step integer, statement text, lock_level text, rewrites boolean, in_transaction boolean, note text)
LANGUAGE plpgsql STABLE
AS $function$
BEGIN
    RETURN QUERY
        SELECT s.step, s.statement, s.lock_level, s.rewrites, s.in_transaction, s.note
        FROM snowflake_internal.migration_plan(targets, column_names, online,
            pg_catalog.current_setting('search_path'::pg_catalog.text)) AS s;
END
$function$;
CREATE OR REPLACE PROCEDURE snowflake_migrate(target regclass, column_name name DEFAULT NULL)
LANGUAGE plpgsql
AS $procedure$
BEGIN
    PERFORM snowflake_internal.migration_migrate(ARRAY[target], ARRAY[column_name],
        pg_catalog.current_setting('search_path'::pg_catalog.text));
END
$procedure$;
CREATE PROCEDURE snowflake_migrate_tables(targets regclass[], column_names name[] DEFAULT NULL)
LANGUAGE plpgsql
AS $procedure$
BEGIN
    PERFORM snowflake_internal.migration_migrate(targets, column_names,
        pg_catalog.current_setting('search_path'::pg_catalog.text));
END
$procedure$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_sequence_options(options jsonb)
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_restore_sequence_properties(sequence regclass, origin snowflake_internal.origins)
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_restore_identity(origin snowflake_internal.origins)
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
CREATE FUNCTION snowflake_internal.migration_sequence_by_name(sequence_schema name, sequence_name name)
RETURNS regclass LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.oid::regclass
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = sequence_schema AND c.relname = sequence_name AND c.relkind = 'S'
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_restore_sequence(origin snowflake_internal.origins)
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_restore_default(origin snowflake_internal.origins, sequence regclass)
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_restore_children(origin snowflake_internal.origins)
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
CREATE FUNCTION snowflake_internal.migration_old_id_condition(column_name name, first_id_ever bigint, minimum bigint, maximum bigint)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('%1$I OPERATOR(pg_catalog.<) %2$L::pg_catalog.int8 AND %1$I OPERATOR(pg_catalog.>=) %3$L::pg_catalog.int8 '
                  'AND %1$I OPERATOR(pg_catalog.<=) %4$L::pg_catalog.int8', column_name, first_id_ever, minimum, maximum)
$function$;
CREATE FUNCTION snowflake_internal.migration_scan_old_ids(target regclass, column_name name, search_path text)
RETURNS snowflake_internal.scanned_ids LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    origin CONSTANT snowflake_internal.origins := snowflake_internal.migration_origin(target, column_name);
    scanned snowflake_internal.scanned_ids;
    options jsonb := origin.sequence_options;
BEGIN
    IF origin.target IS NULL OR origin.reverted_at IS NOT NULL OR NOT snowflake_internal.migration_is_switched(target, column_name)
       OR NOT EXISTS (SELECT FROM snowflake_internal.migration_id_indexes(target, column_name) AS i WHERE NOT i.is_indexed)
    THEN
        RETURN NULL;
    END IF;
    -- The present sequence, unless a new one is created. Its bounds are compared
    -- again under the lock.
    SELECT q.seqincrement > 0, q.seqmin, q.seqmax INTO scanned.is_ascending, scanned.minimum, scanned.maximum
    FROM pg_sequence AS q
    WHERE origin.kind NOT LIKE 'identity %'
      AND q.seqrelid = coalesce(snowflake_internal.migration_sequence_by_name(origin.sequence_schema, origin.sequence_name),
                                snowflake_internal.migration_owned_sequence(target, column_name));
    IF NOT FOUND AND options IS NULL THEN
        RETURN NULL;
    ELSIF NOT FOUND THEN
        scanned.is_ascending := (options ->> 'increment')::bigint > 0;
        -- Those of migration_sequence_options().
        scanned.minimum := CASE WHEN origin.kind NOT LIKE 'identity %' OR (options ->> 'type', options ->> 'minimum') NOT IN (('smallint', '-32768'), ('integer', '-2147483648'))
                                THEN (options ->> 'minimum')::bigint ELSE -9223372036854775808 END;
        scanned.maximum := CASE WHEN origin.kind NOT LIKE 'identity %' OR (options ->> 'type', options ->> 'maximum') NOT IN (('smallint', '32767'), ('integer', '2147483647'))
                                THEN (options ->> 'maximum')::bigint ELSE 9223372036854775807 END;
    END IF;
    scanned.first_id_ever := origin.first_id_ever;
    scanned.last_old_id := snowflake_internal.migration_extreme_id(target, column_name,
        CASE WHEN scanned.is_ascending THEN 'max' ELSE 'min' END,
        snowflake_internal.migration_old_id_condition(column_name, origin.first_id_ever, scanned.minimum, scanned.maximum), false, search_path);
    RETURN scanned;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_last_old_id(
    origin snowflake_internal.origins, is_ascending boolean, minimum bigint, maximum bigint,
    scanned snowflake_internal.scanned_ids, search_path text
) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- A sequence that was altered since has other bounds: the rows are read again.
    is_scanned CONSTANT boolean := coalesce((scanned.first_id_ever, scanned.is_ascending, scanned.minimum, scanned.maximum)
                                            = (origin.first_id_ever, is_ascending, minimum, maximum), false);
    last_old_id CONSTANT bigint := snowflake_internal.migration_extreme_id(origin.target, origin.column_name,
        CASE WHEN is_ascending THEN 'max' ELSE 'min' END,
        snowflake_internal.migration_old_id_condition(origin.column_name, origin.first_id_ever, minimum, maximum), is_scanned, search_path);
BEGIN
    IF NOT is_scanned THEN
        RETURN last_old_id;
    END IF;
    RETURN CASE WHEN is_ascending THEN greatest(last_old_id, scanned.last_old_id) ELSE least(last_old_id, scanned.last_old_id) END;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_resume_sequence(
    sequence regclass, is_new boolean, origin snowflake_internal.origins, scanned snowflake_internal.scanned_ids, search_path text
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
    last_old_id := snowflake_internal.migration_last_old_id(
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
        PERFORM snowflake_internal.migration_run(origin.target,
            format('SELECT setval(%L::regclass, %L::bigint, %L::boolean)', sequence::oid, resume_value, is_called));
    END IF;
END
$function$;
CREATE FUNCTION snowflake_internal.migration_revert(target regclass, column_name name, search_path text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
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
    former_timeout text;
    scanned snowflake_internal.scanned_ids;
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
        WHERE has_shadows AND (k.target <> migration_revert.target OR k.column_name <> key_column)
          AND NOT snowflake_internal.migration_is_switched(k.target, k.column_name)
    LOOP
        PERFORM snowflake_internal.migration_record_reverted(other.target, other.column_name);
    END LOOP;
    scanned := snowflake_internal.migration_scan_old_ids(target, key_column, search_path);
    former_timeout := snowflake_internal.migration_limit_locks();
    PERFORM snowflake_internal.migration_lock_table(target, text 'ACCESS EXCLUSIVE');
    -- Child tables are locked too, because the sequence has to resume after their IDs.
    PERFORM snowflake_internal.migration_lock_table(c.oid::regclass, text 'ACCESS EXCLUSIVE')
    FROM snowflake_internal.migration_table_tree(target, key_column) AS f
    JOIN pg_class AS c ON c.oid = f.relation AND c.relkind IN ('r', 'p')
    WHERE f.relation <> target;
    origin := snowflake_internal.migration_origin(target, key_column);
    IF (origin.target IS NULL OR origin.reverted_at IS NOT NULL) AND has_shadows THEN
        PERFORM set_config('lock_timeout', former_timeout, true);
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
            PERFORM snowflake_internal.migration_resume_sequence(sequence, is_new, origin, scanned, search_path);
        END IF;
    END IF;
    PERFORM snowflake_internal.migration_record_reverted(target, key_column);
    PERFORM set_config('lock_timeout', former_timeout, true);
END
$function$;
CREATE OR REPLACE PROCEDURE snowflake_migrate_revert(target regclass, column_name name DEFAULT NULL)
LANGUAGE plpgsql
AS $procedure$
BEGIN
    PERFORM snowflake_internal.migration_revert(target, column_name, pg_catalog.current_setting('search_path'::pg_catalog.text));
END
$procedure$;
CREATE OR REPLACE FUNCTION snowflake_audit(
    target regclass,
    column_name name DEFAULT NULL,
    expected_nodes integer[] DEFAULT NULL,
    first_id bigint DEFAULT NULL
) RETURNS TABLE (finding text, ids bigint, example bigint)
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    -- Passed as an argument of format(), because a schema name may contain %.
    extension_schema CONSTANT text := '@extschema@';
    highest_possible CONSTANT bigint := 9223372036854775807;
    -- The kinds of values that the first scan distinguishes.
    is_id CONSTANT integer := 0;
    is_before_first CONSTANT integer := 1;
    is_negative CONSTANT integer := 2;
    is_outside CONSTANT integer := 3;
    is_of_other_node CONSTANT integer := 4;
    audited_column name := column_name;
    snowflake_columns name[];
    column_number smallint;
    column_type oid;
    numbers text;
    start bigint;
    last_of_layout CONSTANT bigint := @extschema@.snowflake_max_id(timestamptz 'infinity');
    own_node integer;
    is_generating boolean;
    unknown_reason text;
    kinds integer[];
    backends integer[];
    counts bigint[];
    tops bigint[];
    highest bigint;
    is_mark_read boolean;
    mark record;
    ahead interval;
    max_step interval;
    allowed bigint;
    slot_bounds bigint[];
    slot_tops bigint[];
    lowest_bound bigint;
    future bigint;
    future_top bigint;
    not_own bigint;
    not_own_top bigint;
    duplicates bigint;
    duplicates_top bigint;
    id_layout text;
    server_layout text;
    answer text[];
    origin snowflake_internal.origins;
    former_sequence regclass;
    former_value bigint;
    former bigint;
    former_top bigint;
BEGIN
    -- The column whose default is snowflake_nextval(), otherwise the one that
    -- takes or took its values from a sequence.
    IF audited_column IS NULL THEN
        snowflake_columns := ARRAY(
            SELECT a.attname FROM pg_attribute AS a
            WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped AND a.atthasdef
              AND snowflake_internal.migration_is_switched(target, a.attname));
        IF cardinality(snowflake_columns) > 1 THEN
            snowflake_columns := coalesce(
                nullif(ARRAY(SELECT a.attname FROM pg_index AS i JOIN pg_attribute AS a
                                 ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                             WHERE i.indrelid = target AND i.indisprimary AND i.indnkeyatts = 1
                               AND a.attname = ANY (snowflake_columns)), '{}'),
                snowflake_columns);
        END IF;
        IF cardinality(snowflake_columns) > 1 THEN
            RAISE EXCEPTION 'several columns of "%" have snowflake IDs', (SELECT c.relname FROM pg_class AS c WHERE c.oid = target)
                USING ERRCODE = 'invalid_parameter_value',
                      DETAIL = format('They are %s.', array_to_string(snowflake_columns, ', ')),
                      HINT = 'Specify the column to audit.';
        END IF;
        audited_column := snowflake_columns[1];
    END IF;
    audited_column := snowflake_internal.migration_column(target, audited_column);
    WITH RECURSIVE type (number, oid, base) AS (
        SELECT a.attnum, t.oid, t.typbasetype
        FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
        WHERE a.attrelid = target AND a.attname = audited_column
      UNION ALL
        SELECT d.number, t.oid, t.typbasetype FROM type AS d JOIN pg_type AS t ON t.oid = d.base
    )
    SELECT d.number, d.oid INTO column_number, column_type FROM type AS d WHERE d.base = 0;
    IF column_type NOT IN ('int8'::regtype, 'int4'::regtype, 'int2'::regtype) THEN
        RAISE EXCEPTION 'column "%" of % cannot hold IDs', audited_column, target
            USING ERRCODE = 'datatype_mismatch',
                  DETAIL = format('Its type is %s.', (SELECT format_type(a.atttypid, a.atttypmod) FROM pg_attribute AS a
                                                      WHERE a.attrelid = target AND a.attname = audited_column)),
                  HINT = 'Snowflake IDs are bigint; earlier IDs may be integer or smallint.';
    END IF;
    numbers := format('SELECT audited.%I::bigint AS id FROM %s AS audited WHERE audited.%I', audited_column, target, audited_column);

    -- The rows of a migrated column that are older than its snowflake IDs.
    start := coalesce(first_id, snowflake_internal.migration_first_id_of(target, audited_column), -highest_possible - 1);

    -- This server.
    SELECT s.node_id, s.preloaded AND s.node_id IS NOT NULL AND NOT pg_is_in_recovery(),
           CASE WHEN NOT s.preloaded THEN 'snowflake is not in shared_preload_libraries.'
                WHEN s.node_id IS NULL THEN 'snowflake.node_id is not set.'
                WHEN pg_is_in_recovery() THEN 'A standby issues no IDs. Run the audit on its primary server.' END
    INTO own_node, is_generating, unknown_reason
    FROM @extschema@.snowflake_status AS s;
    IF NOT is_generating THEN
        RAISE NOTICE 'IDs that this server cannot have issued are not searched for' USING DETAIL = unknown_reason;
        own_node := NULL;
    END IF;

    answer := snowflake_internal.migration_read(target, format(
        'SELECT array_agg(g.kind), array_agg(g.backend), array_agg(g.count), array_agg(g.top)
         FROM (SELECT n.kind, n.backend, count(*), max(n.id) AS top
               FROM (SELECT d.id,
                            CASE WHEN d.id < %3$L::bigint THEN 1 WHEN d.id < 0 THEN 2 WHEN d.id > %4$L::bigint THEN 3
                                 WHEN %6$L::integer[] IS NOT NULL AND %1$s.snowflake_node_id(d.id) <> ALL (%6$L::integer[]) THEN 4
                                 ELSE 0 END AS kind,
                            CASE WHEN d.id >= greatest(%3$L::bigint, 0) AND d.id <= %4$L::bigint
                                      AND %1$s.snowflake_node_id(d.id) = %5$L::integer
                                 THEN %1$s.snowflake_backend_id(d.id) END AS backend
                     FROM (%2$s IS NOT NULL) AS d) AS n
               GROUP BY n.kind, n.backend) AS g',
        extension_schema, numbers, start, last_of_layout, own_node, array_remove(expected_nodes, NULL)));
    kinds := answer[1];
    backends := answer[2];
    counts := answer[3];
    tops := answer[4];
    SELECT max(g.top) INTO highest FROM unnest(kinds, tops) AS g (kind, top) WHERE g.kind IN (is_id, is_of_other_node);
    -- With another layout, the decoded fields are not those of the IDs.
    SELECT s.database_layout, s.layout INTO id_layout, server_layout
    FROM @extschema@.snowflake_status AS s WHERE s.database_layout <> s.layout;
    IF FOUND THEN
        RAISE NOTICE 'IDs of this database were generated with another layout'
            USING DETAIL = format('They were generated with "%s"; they are read with "%s".', id_layout, server_layout),
                  HINT = 'If the change is intended, run SELECT snowflake_accept_layout() as a superuser.';
        RETURN QUERY SELECT 'IDs of another layout', sum(g.count)::bigint, max(g.top)
                     FROM unnest(kinds, counts, tops) AS g (kind, count, top)
                     WHERE g.kind <> is_before_first HAVING sum(g.count) > 0;
    END IF;

    -- The highest ID that may exist by now.
    is_mark_read := coalesce((SELECT s.reserved_until IS NOT NULL FROM @extschema@.snowflake_status AS s), false);
    SELECT greatest(m.last_value - 1, 0) AS bound, m.log_cnt < 0 AND is_mark_read AS is_in_slots INTO mark
    FROM snowflake_internal.mark AS m;
    -- Settings are not defined if the library is not preloaded; their defaults are used then.
    SELECT make_interval(secs => (coalesce(max(s.setting) FILTER (WHERE s.name = 'snowflake.max_borrow'), '1000')::float8
                                  + coalesce(max(s.setting) FILTER (WHERE s.name = 'snowflake.lease'), '2000')::float8) / 1000),
           make_interval(secs => nullif(coalesce(max(s.setting) FILTER (WHERE s.name = 'snowflake.max_clock_step'), '86400000'), '-1')::float8 / 1000)
    INTO ahead, max_step
    FROM pg_settings AS s WHERE s.name LIKE 'snowflake.%';
    allowed := @extschema@.snowflake_max_id(clock_timestamp() + ahead);
    IF max_step IS NULL
       OR mark.bound <= @extschema@.snowflake_max_id(clock_timestamp() + max_step + ahead)
    THEN
        allowed := greatest(allowed, mark.bound);
    END IF;

    -- A slot without values above its bound gets the highest possible bound.
    IF is_generating THEN
        SELECT array_agg(CASE WHEN seen.top > b.bound THEN b.bound ELSE highest_possible END ORDER BY s.backend_id),
               array_agg(coalesce(seen.top, 0) ORDER BY s.backend_id),
               min(b.bound) FILTER (WHERE seen.top > b.bound)
        INTO slot_bounds, slot_tops, lowest_bound
        FROM snowflake_internal.get_stat_slots() AS s
        CROSS JOIN LATERAL (SELECT greatest(s.bound, CASE WHEN NOT mark.is_in_slots THEN mark.bound END, 0)) AS b (bound)
        LEFT JOIN (SELECT g.backend, max(g.top) FROM unnest(backends, tops) AS g (backend, top) GROUP BY g.backend)
               AS seen (backend, top) ON seen.backend = s.backend_id;
    END IF;

    IF highest > allowed OR lowest_bound IS NOT NULL THEN
        answer := snowflake_internal.migration_read(target, format(
            'SELECT count(*) FILTER (WHERE n.id > %8$L::bigint) AS count,
                    max(n.id) FILTER (WHERE n.id > %8$L::bigint) AS top,
                    count(*) FILTER (WHERE n.is_not_own) AS not_own,
                    max(n.id) FILTER (WHERE n.is_not_own) AS not_own_top
             FROM (SELECT d.id, %1$s.snowflake_node_id(d.id) = %7$L::integer
                                AND d.id > (%9$L::bigint[])[%1$s.snowflake_backend_id(d.id) + 1]
                                AND d.id <= (%10$L::bigint[])[%1$s.snowflake_backend_id(d.id) + 1] AS is_not_own
                   FROM (%2$s > %4$L::bigint AND audited.%3$I >= %5$L::bigint AND audited.%3$I <= %6$L::bigint) AS d) AS n',
            extension_schema, numbers, audited_column, least(allowed, lowest_bound), greatest(start, 0), highest, own_node, allowed,
            slot_bounds, slot_tops));
        future := answer[1];
        future_top := answer[2];
        not_own := answer[3];
        not_own_top := answer[4];
    END IF;

    -- A unique index on this column alone proves that there are no duplicates.
    -- Some do not count: a deferrable one, because this transaction may have
    -- pending checks; an invalid one left by CREATE INDEX CONCURRENTLY; and that
    -- of a table with inheritance children, which have their own indexes. The
    -- unique index of a partitioned table covers its partitions, because it
    -- contains the partition key.
    IF NOT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indrelid
        JOIN pg_opclass AS o ON o.oid = i.indclass[0]
        JOIN pg_opfamily AS f ON f.oid = o.opcfamily AND f.opfname = 'integer_ops' AND f.opfnamespace = 'pg_catalog'::regnamespace
        WHERE i.indrelid = target AND i.indisunique AND i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate
          AND i.indnkeyatts = 1 AND i.indkey[0] = column_number AND i.indpred IS NULL
          AND (c.relkind = 'p' OR NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhparent = target)))
    THEN
        answer := snowflake_internal.migration_read(target, format(
            'SELECT sum(g.count - 1)::bigint AS count, max(g.id) AS top
             FROM (SELECT d.id, count(*) FROM (%s IS NOT NULL) AS d GROUP BY d.id HAVING count(*) > 1) AS g', numbers));
        duplicates := answer[1];
        duplicates_top := answer[2];
        IF duplicates > 0 THEN
            RETURN QUERY SELECT 'duplicates', duplicates, duplicates_top;
        END IF;
    END IF;
    IF future > 0 THEN
        RETURN QUERY SELECT 'IDs from the future', future, future_top;
    END IF;
    RETURN QUERY
        SELECT name.text, sum(g.count)::bigint, max(g.top)
        FROM unnest(kinds, counts, tops) AS g (kind, count, top)
        JOIN (VALUES (is_negative, 'negative numbers'),
                     (is_outside, 'numbers outside of this server''s layout'),
                     (is_of_other_node, 'IDs of unexpected nodes'),
                     (is_before_first, 'IDs below first_id')) AS name (kind, text) ON name.kind = g.kind
        GROUP BY name.kind, name.text
        ORDER BY array_position(ARRAY[is_negative, is_outside, is_of_other_node, is_before_first], name.kind);
    -- The former sequence, whose value the table's owner may know. Its values since
    -- the migration are rows only if something other than the default used it for them.
    IF snowflake_internal.migration_is_switched(target, audited_column) THEN
        origin := snowflake_internal.migration_origin(target, audited_column);
        former_sequence := snowflake_internal.migration_sequence_by_name(origin.sequence_schema, origin.sequence_name);
    END IF;
    IF former_sequence IS NOT NULL AND origin.reverted_at IS NULL AND (origin.sequence_options ->> 'increment')::bigint > 0 THEN
        origin.sequence_last_value := coalesce(origin.sequence_last_value, (origin.sequence_options ->> 'next')::bigint - 1);
        SELECT CASE WHEN s.is_called THEN s.last_value END INTO former_value
        FROM snowflake_internal.migration_sequence_state(former_sequence, target) AS s;
        IF former_value > origin.sequence_last_value THEN
            answer := snowflake_internal.migration_read(target, format(
                'SELECT count(*) AS count, max(d.id) AS top FROM (%s > %L::bigint AND audited.%I <= %L::bigint) AS d',
                numbers, origin.sequence_last_value, audited_column, least(former_value, origin.first_id - 1)));
            former := answer[1];
            former_top := answer[2];
        END IF;
    END IF;
    IF former > 0 THEN
        RETURN QUERY SELECT 'IDs from the former sequence since the migration', former, former_top;
    END IF;
    IF not_own > 0 THEN
        RETURN QUERY SELECT 'IDs with this server''s node number that it cannot have issued', not_own, not_own_top;
    END IF;
END
$function$;
GRANT SELECT ON snowflake_internal.sequence_columns TO PUBLIC;
REVOKE EXECUTE ON FUNCTION @extschema@.snowflake_accept_layout() FROM PUBLIC;
COMMENT ON TABLE snowflake_internal.accepted_layout IS 'The layout that the IDs of this database were generated with; written by the extension only. See snowflake_accept_layout()';
COMMENT ON COLUMN snowflake_internal.accepted_layout.layout IS 'Layout in canonical form';
COMMENT ON COLUMN snowflake_internal.accepted_layout.accepted_at IS 'Time of the first ID with this layout, or of its acceptance';
COMMENT ON SEQUENCE snowflake_internal.mark IS
    'The mark: no ID at or above last_value has been issued in this database. Maintained by the extension; not for nextval() or setval()';
COMMENT ON FUNCTION snowflake_internal.migration_base_type(type_oid oid) IS
    'Used by snowflake_serial_columns: the base type of a domain';
COMMENT ON VIEW snowflake_internal.sequence_columns IS
    'Used by snowflake_serial_columns and snowflake_internal.migration_source: columns and the sequences they use';
COMMENT ON VIEW snowflake_serial_columns IS 'Columns that take their values from a sequence';
COMMENT ON COLUMN snowflake_serial_columns.schema_name IS 'Schema of the table';
COMMENT ON COLUMN snowflake_serial_columns.table_name IS 'Table name. Partitions and child tables that use their parent''s sequence are not listed separately';
COMMENT ON COLUMN snowflake_serial_columns.column_name IS 'Column name';
COMMENT ON COLUMN snowflake_serial_columns.data_type IS 'Type of the column';
COMMENT ON COLUMN snowflake_serial_columns.sequence IS 'Sequence that the column uses';
COMMENT ON COLUMN snowflake_serial_columns.last_value IS 'Last value of the sequence; NULL before the first one, or if the user may not read the sequence';
COMMENT ON COLUMN snowflake_serial_columns.percent_used IS 'Percentage of the type''s range that last_value has reached';
COMMENT ON COLUMN snowflake_serial_columns.referenced_by IS 'Columns that reference the column';
COMMENT ON FUNCTION snowflake_internal.copy_nextval() IS
    'Called by COPY in place of snowflake_nextval(), so that it can insert rows in batches';
COMMENT ON FUNCTION snowflake_explain(id bigint, layout text) IS
    'Draws the bits of an ID, field by field, by a layout or preset name';
COMMENT ON FUNCTION snowflake_internal.get_database_layout() IS
    'Used by the view snowflake_status: the layout that this database''s IDs were made with';
COMMENT ON FUNCTION snowflake_internal.get_layouts() IS
    'Used by the view snowflake_layouts';
COMMENT ON VIEW snowflake_layouts IS 'Layouts that have a preset name';
COMMENT ON COLUMN snowflake_layouts.name IS 'Preset name, accepted in place of a layout''s text';
COMMENT ON COLUMN snowflake_layouts.expires_at IS 'Time at which the layout runs out of timestamps';
COMMENT ON COLUMN snowflake_layouts.ids_per_second IS 'IDs per second that one node can issue in the long run, over all its slots';
COMMENT ON COLUMN snowflake_layouts.nodes IS 'Number of nodes that the layout allows';
COMMENT ON COLUMN snowflake_layouts.backends IS 'Number of slots of a node';
COMMENT ON FUNCTION snowflake_internal.get_stat_slots() IS
    'Used by the view snowflake_stat_slots';
COMMENT ON FUNCTION snowflake_internal.get_status() IS
    'Used by the view snowflake_status';
COMMENT ON VIEW snowflake_status IS 'How this server issues IDs: one row';
COMMENT ON COLUMN snowflake_status.preloaded IS 'Whether the library is in shared_preload_libraries; if not, IDs can only be decoded';
COMMENT ON COLUMN snowflake_status.node_id IS 'Node number of this server; NULL if not set';
COMMENT ON COLUMN snowflake_status.last_id_at IS 'Time of the last ID issued since the server started, in any database';
COMMENT ON COLUMN snowflake_status.reserved_until IS 'Time up to which IDs of this database are reserved in the write-ahead log; NULL before its first ID since the server started';
COMMENT ON COLUMN snowflake_status.ids IS 'IDs issued since the statistics were reset';
COMMENT ON COLUMN snowflake_status.database_layout IS 'Layout that the IDs of this database were generated with; NULL if unknown. If it differs from layout, pass it when you decode old IDs, or accept the new one';
COMMENT ON COLUMN snowflake_status.expires_at IS 'Time at which the layout runs out; NULL if it is past the range of timestamptz';
COMMENT ON VIEW snowflake_stat_slots IS 'Statistics of each slot: one row for each backend number';
COMMENT ON COLUMN snowflake_stat_slots.pids IS 'Processes whose own slot this is';
COMMENT ON COLUMN snowflake_stat_slots.ids IS 'IDs issued since the statistics were reset';
COMMENT ON COLUMN snowflake_stat_slots.last_id_at IS 'Time of the last ID issued since the server started';
COMMENT ON COLUMN snowflake_stat_slots.wait_time IS 'Total time of these waits, milliseconds';
COMMENT ON COLUMN snowflake_stat_slots.clock_steps IS 'Clock steps that a process of this slot was the first to see';
COMMENT ON FUNCTION snowflake_internal.migration_calls(body text) IS
    'Used by snowflake_internal.migration_findings: calls in a trigger function with columns of its row, a line for each argument';
COMMENT ON FUNCTION snowflake_internal.migration_code(body text) IS
    'Used by snowflake_internal.migration_findings: a function''s body as tokens, separated by spaces';
COMMENT ON FUNCTION snowflake_internal.migration_guard() IS
    'The trigger that lets only superusers change the extension''s tables by SQL';
COMMENT ON TABLE snowflake_internal.origins IS 'Sources of the migrated columns'' values before the migration, for snowflake_migrate_revert(); written by the extension only';
COMMENT ON COLUMN snowflake_internal.origins.target IS 'Table';
COMMENT ON COLUMN snowflake_internal.origins.column_name IS 'Column';
COMMENT ON COLUMN snowflake_internal.origins.kind IS 'As in snowflake_serial_columns; none for a column without a sequence';
COMMENT ON COLUMN snowflake_internal.origins.data_type IS 'Type before the column was widened';
COMMENT ON COLUMN snowflake_internal.origins.default_expression IS 'Default before the migration';
COMMENT ON COLUMN snowflake_internal.origins.sequence_schema IS 'Schema of the sequence';
COMMENT ON COLUMN snowflake_internal.origins.sequence_name IS 'Name of the sequence';
COMMENT ON COLUMN snowflake_internal.origins.sequence_options IS 'Type, start, increment, minimum, maximum, cache and cycle of the sequence; its next value if it was unused';
COMMENT ON COLUMN snowflake_internal.origins.sequence_last_value IS 'Last value of the sequence; NULL if the table''s owner does not own it';
COMMENT ON COLUMN snowflake_internal.origins.sequence_privileges IS 'Privileges on the sequence';
COMMENT ON COLUMN snowflake_internal.origins.sequence_comment IS 'Comment on the sequence';
COMMENT ON COLUMN snowflake_internal.origins.child_defaults IS 'Defaults of partitions and child tables that differed from the table''s';
COMMENT ON COLUMN snowflake_internal.origins.first_id IS 'No snowflake ID since this migration is smaller, and all IDs before it are';
COMMENT ON COLUMN snowflake_internal.origins.remembered_at IS 'Time at which the migration began';
COMMENT ON COLUMN snowflake_internal.origins.reverted_at IS 'Time at which the migration was reverted';
COMMENT ON FUNCTION snowflake_internal.origins_stay() IS
    'Keeps rows replicated from another server out of the tables of this one';
COMMENT ON TABLE snowflake_internal.progress IS 'Progress of online migrations in copying rows, as shown by snowflake_migrations; written by the extension only';
COMMENT ON COLUMN snowflake_internal.progress.target IS 'Table whose key is being migrated; the first one of several';
COMMENT ON COLUMN snowflake_internal.progress.column_name IS 'Key column';
COMMENT ON COLUMN snowflake_internal.progress.relation IS 'Table whose rows are copied: target, or a table that references it';
COMMENT ON COLUMN snowflake_internal.progress.filenode IS 'File of the table when the copying began';
COMMENT ON COLUMN snowflake_internal.progress.blocks_done IS 'Blocks of the table that are copied';
COMMENT ON COLUMN snowflake_internal.progress.blocks_total IS 'Blocks of the table when the copying began; in later ones, the trigger fills the shadow columns';
COMMENT ON COLUMN snowflake_internal.progress.batch_blocks IS 'Blocks of the next batch';
COMMENT ON COLUMN snowflake_internal.progress.skipped IS 'Blocks with rows that were locked by other transactions, to be copied later';
COMMENT ON COLUMN snowflake_internal.progress.rows_done IS 'Rows in the copied blocks, estimated from rows_total';
COMMENT ON COLUMN snowflake_internal.progress.rows_total IS 'Estimated number of rows when the copying began';
COMMENT ON COLUMN snowflake_internal.progress.run_rows IS 'Part of rows_done that the current or the last call added';
COMMENT ON COLUMN snowflake_internal.progress.run_seconds IS 'Time that they took in seconds, with the pauses between batches';
COMMENT ON COLUMN snowflake_internal.progress.updated_at IS 'Time of the last update';
COMMENT ON COLUMN snowflake_internal.progress.key_targets IS 'Tables whose keys are migrated together';
COMMENT ON COLUMN snowflake_internal.progress.key_column_names IS 'Key columns of these tables';
COMMENT ON COLUMN snowflake_internal.progress.waiting_for IS 'Why the backfill does not copy rows at the moment';
COMMENT ON COLUMN snowflake_internal.progress.waiting_pid IS 'Process ID of the session that waits';
COMMENT ON TABLE snowflake_internal.pace IS 'Pace of online migrations in copying rows, as shown by snowflake_migrations; written by snowflake_migrate_pace() and snowflake_migrate_backfill()';
COMMENT ON COLUMN snowflake_internal.pace.target IS 'Table whose key is being migrated; the first one of several';
COMMENT ON COLUMN snowflake_internal.pace.column_name IS 'Key column';
COMMENT ON COLUMN snowflake_internal.pace.batch_size IS 'Largest number of rows of a batch';
COMMENT ON COLUMN snowflake_internal.pace.pause IS 'Pause after each batch';
COMMENT ON COLUMN snowflake_internal.pace.max_replay_lag IS 'The backfill waits while a standby or a subscriber is further behind; NULL if there is no limit';
COMMENT ON COLUMN snowflake_internal.pace.max_active_sessions IS 'The pauses grow while more other sessions are active; NULL if there is no limit';
COMMENT ON COLUMN snowflake_internal.pace.is_paused IS 'Whether the backfill is paused';
COMMENT ON FUNCTION snowflake_internal.migration_first_id_of(target regclass, column_name name) IS
    'Used by snowflake_audit: origins.first_id_ever of a migrated column, for roles that may read the column; otherwise NULL';
COMMENT ON FUNCTION snowflake_internal.migration_end(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: deletes the progress of a backfill, and its pace';
COMMENT ON FUNCTION snowflake_internal.migration_keep_origin(origin snowflake_internal.origins) IS
    'Used by snowflake_internal.migration_record_origin: writes a row of snowflake_internal.origins, for the owner of its table';
COMMENT ON FUNCTION snowflake_internal.migration_keep_pace(pace snowflake_internal.pace) IS
    'Used by snowflake_migrate_pace: writes a row of snowflake_internal.pace, for the owner of its table';
COMMENT ON FUNCTION snowflake_internal.migration_keep_progress(step snowflake_internal.progress) IS
    'Used by snowflake_migrate_backfill: writes a row of snowflake_internal.progress, for the owner of its tables';
COMMENT ON FUNCTION snowflake_internal.migration_lock_table(relation regclass, mode text) IS
    'Used by snowflake_internal.migration_lock: locks a table, without its children, by its OID';
COMMENT ON FUNCTION snowflake_internal.migration_origin(target regclass, column_name name) IS
    'The row of snowflake_internal.origins of a column, for the owner of its table; otherwise NULL';
COMMENT ON FUNCTION snowflake_internal.migration_pace(target regclass, column_name name) IS
    'Used by snowflake_migrate_pace: the pace of a backfill, locked against other changes of it';
COMMENT ON FUNCTION snowflake_internal.migration_progress(target regclass, column_name name, relation regclass) IS
    'Used by snowflake_migrate_backfill: the position of the next batch';
COMMENT ON FUNCTION snowflake_internal.migration_query(relation regclass, query text) IS
    'Used by snowflake_migration_plan: runs one query with the rights of a table''s owner, which the caller must have; the first row as an array';
COMMENT ON FUNCTION snowflake_internal.migration_query(relation regclass, query text, search_path text) IS
    'Used by snowflake_migration_plan: runs one query with the rights of a table''s owner, whose code finds names by the caller''s search path';
COMMENT ON FUNCTION snowflake_internal.migration_read(relation regclass, query text) IS
    'Runs one query with the rights of a table''s owner where the caller has them, else with the caller''s own; the first row as an array';
COMMENT ON FUNCTION snowflake_internal.migration_rename_columns(expression text, former name[], present name[]) IS
    'Used by snowflake_migration_plan: an expression of the catalog with other names of columns, for any search path; NULL if it refers to whole rows or is no expression';
COMMENT ON FUNCTION snowflake_internal.migration_run(relation regclass, statement text) IS
    'Used by snowflake_migrate: runs one statement with the rights of a table''s owner, which the caller must have; the first row as an array';
COMMENT ON FUNCTION snowflake_internal.migration_run_as(role oid, statement text, path text) IS
    'Used by snowflake_internal.migration_widen: runs one statement with the rights of a role, which the caller must have; the first row as an array';
COMMENT ON FUNCTION snowflake_internal.migration_run(relation regclass, statement text, search_path text) IS
    'Used by snowflake_migrate: runs one statement with the rights of a table''s owner, whose code finds names by the caller''s search path';
COMMENT ON FUNCTION snowflake_internal.migration_sequence_state(sequence regclass, on_behalf_of regclass) IS
    'Used by snowflake_internal.migration_record_origin: the state of a sequence; NULL if the owner of the table may not read it';
COMMENT ON FUNCTION snowflake_internal.migration_set_trigger_state(relation regclass, trigger_name name, state text) IS
    'Used by snowflake_internal.migration_restore_trigger_states: enables or disables a trigger, for superusers';
COMMENT ON PROCEDURE snowflake_internal.migration_sleep(milliseconds integer) IS
    'Used by snowflake_migrate_backfill: commits, and waits without a snapshot';
COMMENT ON FUNCTION snowflake_partition_ddl(parent regclass, since timestamp with time zone, until timestamp with time zone, step interval) IS
    'Returns CREATE TABLE statements for the partitions missing between since and until, one for each step; for \gexec';
COMMENT ON FUNCTION snowflake_min_id(at timestamp with time zone) IS
    'Returns the smallest ID at or after a time, by this server''s layout; 0 before the epoch';
COMMENT ON FUNCTION snowflake_min_id(at timestamp with time zone, layout text) IS
    'Returns the smallest ID at or after a time, by a layout or preset name; 0 before the epoch';
COMMENT ON FUNCTION snowflake_max_id(at timestamp with time zone) IS
    'Returns the largest ID at or before a time, by this server''s layout; -1 before the epoch';
COMMENT ON FUNCTION snowflake_max_id(at timestamp with time zone, layout text) IS
    'Returns the largest ID at or before a time, by a layout or preset name; -1 before the epoch';
COMMENT ON FUNCTION snowflake_max_id_before(at timestamp with time zone) IS
    'Returns the largest ID before a time, by this server''s layout; used by snowflake_between. Never fails';
COMMENT ON FUNCTION snowflake_max_id_before(at timestamp with time zone, layout text) IS
    'Returns the largest ID before a time, by a layout or preset name; used by snowflake_between. Never fails';
COMMENT ON FUNCTION snowflake_between(id bigint, since timestamp with time zone, until timestamp with time zone) IS
    'Returns whether an ID was generated at or after since and before until, by this server''s layout; can use an index on id';
COMMENT ON FUNCTION snowflake_between(id bigint, since timestamp with time zone, until timestamp with time zone, layout text) IS
    'Returns whether an ID was generated at or after since and before until, by a layout or preset name; can use an index on id';
COMMENT ON FUNCTION snowflake_internal.migration_column(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the column to migrate';
COMMENT ON FUNCTION snowflake_internal.migration_keys(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the columns to migrate, each once and in a fixed order';
COMMENT ON FUNCTION snowflake_internal.migration_key_names(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the columns in a message';
COMMENT ON FUNCTION snowflake_internal.migration_is_switched(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: whether the column''s default is snowflake_nextval()';
COMMENT ON FUNCTION snowflake_internal.migration_first_id() IS
    'Used by snowflake_migration_plan: the smallest ID that can be issued from now on';
COMMENT ON FUNCTION snowflake_internal.migration_name(target regclass) IS
    'Used by snowflake_migration_plan: a table''s name for statements that run under any search path';
COMMENT ON FUNCTION snowflake_internal.migration_key_arguments(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the columns as arguments of a function in a statement';
COMMENT ON FUNCTION snowflake_internal.migration_table_tree(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: a table, its partitions and its child tables';
COMMENT ON FUNCTION snowflake_internal.migration_linked_columns(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the columns that hold the same IDs, on any number of levels';
COMMENT ON FUNCTION snowflake_internal.migration_code_name(name name) IS
    'Used by snowflake_internal.migration_findings: a name as it is in a function''s body';
COMMENT ON FUNCTION snowflake_internal.migration_findings(targets regclass[], column_names name[], online boolean) IS
    'Used by snowflake_migration_plan and snowflake_migration_survey: functions, triggers and views that a migration affects';
COMMENT ON FUNCTION snowflake_internal.migration_warn(targets regclass[], column_names name[], online boolean) IS
    'Used by snowflake_migration_plan: warns of functions and triggers that the migration breaks, and returns all findings';
COMMENT ON FUNCTION snowflake_internal.migration_finding_notes(findings jsonb, stage text, relation regclass) IS
    'Used by snowflake_migration_plan: the findings in the note of a step';
COMMENT ON FUNCTION snowflake_internal.migration_online_finding_notes(findings jsonb, statement text) IS
    'Used by snowflake_migration_plan: the findings in the note of a step of an online plan';
COMMENT ON FUNCTION snowflake_internal.migration_words(name name) IS
    'Used by snowflake_migration_references: the words of a name';
COMMENT ON FUNCTION snowflake_internal.migration_singular(word text) IS
    'Used by snowflake_migration_references: the singular of an English word';
COMMENT ON FUNCTION snowflake_migration_references(target regclass, column_name name) IS
    'Returns the columns and parameters that seem to hold the IDs of a column without a foreign key, with statements that widen them';
COMMENT ON FUNCTION snowflake_internal.migration_expressions(relation regclass, attributes smallint[]) IS
    'Used by snowflake_migration_plan: the expressions of constraints, indexes and statistics that use columns of a table';
COMMENT ON FUNCTION snowflake_internal.migration_try_expressions(relation regclass, attributes smallint[], expressions text[]) IS
    'Used by snowflake_migration_plan: why expressions do not accept bigint columns';
COMMENT ON FUNCTION snowflake_internal.migration_rebuild_obstacles(targets regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_obstacles: constraints and indexes that cannot be rebuilt with a bigint column';
COMMENT ON FUNCTION snowflake_internal.migration_lock_needs(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: how many locks the statements that rewrite tables take';
COMMENT ON FUNCTION snowflake_internal.migration_lock_slots() IS
    'Used by snowflake_migration_plan: for how many transactions the lock table has room';
COMMENT ON FUNCTION snowflake_internal.migration_lock_obstacles(needed bigint, what text) IS
    'Used by snowflake_migration_plan: more locks than the server has room for';
COMMENT ON FUNCTION snowflake_internal.migration_require_locks(targets regclass[], column_names name[]) IS
    'Used by snowflake_migrate: fails if the locks of all statements do not fit';
COMMENT ON FUNCTION snowflake_internal.migration_role_obstacles(targets regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_obstacles: roles that may insert rows, but may not execute snowflake_nextval()';
COMMENT ON FUNCTION snowflake_internal.migration_compiled_functions(relations regclass[]) IS
    'Used by snowflake_internal.migration_recompile: functions that sessions may have compiled with the former types of columns';
COMMENT ON FUNCTION snowflake_internal.migration_recompile(targets regclass[], column_names name[]) IS
    'A step of snowflake_migration_plan: makes sessions compile PL/pgSQL functions again, because columns have other types';
COMMENT ON FUNCTION snowflake_internal.migration_index_function_obstacles(targets regclass[], column_names name[], online boolean, search_path text) IS
    'Used by snowflake_migration_plan: indexes that PostgreSQL 17 and later cannot build again';
COMMENT ON FUNCTION snowflake_internal.migration_row_type_users(relations regclass[]) IS
    'Used by snowflake_internal.migration_row_type_obstacles: what uses the row type of tables';
COMMENT ON FUNCTION snowflake_internal.migration_row_type_obstacles(relations regclass[], online boolean, recreated regclass[]) IS
    'Used by snowflake_internal.migration_plan_kind_obstacles: objects that use the row type of a table whose columns are migrated';
COMMENT ON FUNCTION snowflake_internal.migration_lock_time_limit() IS
    'Used by snowflake_internal.migration_lock: how long a step of an online migration waits for locks';
COMMENT ON FUNCTION snowflake_internal.migration_short_wait() IS
    'Used by snowflake_internal.migration_lock: the longest wait for a lock, in milliseconds';
COMMENT ON FUNCTION snowflake_internal.migration_lock_missed(relations regclass[], mode text, begun timestamptz, told timestamptz) IS
    'Used by snowflake_internal.migration_lock: reports who holds the lock, and fails after a time limit';
COMMENT ON FUNCTION snowflake_internal.migration_lock(relations regclass[], mode text) IS
    'Used by snowflake_migration_plan: locks tables in short attempts, so that other sessions are not blocked for long';
COMMENT ON FUNCTION snowflake_internal.migration_require_owner(target regclass) IS
    'Used by snowflake_migration_plan: fails unless the caller owns the table';
COMMENT ON FUNCTION snowflake_internal.migration_source(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the present source of a column''s values';
COMMENT ON FUNCTION snowflake_internal.migration_owned_sequence(target regclass, column_name name) IS
    'Used by snowflake_migrate_revert: the sequence of an identity or serial column';
COMMENT ON FUNCTION snowflake_internal.migration_is_recorded(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: whether the recorded source of a column is its present one';
COMMENT ON FUNCTION snowflake_internal.migration_record_origin(target regclass, column_name name) IS
    'A step of snowflake_migration_plan: records the sequence of the column, for snowflake_migrate_revert';
COMMENT ON FUNCTION snowflake_internal.migration_record_reverted(target regclass, column_name name) IS
    'Used by snowflake_migrate_revert: records that the migration was reverted';
COMMENT ON FUNCTION snowflake_internal.migration_id_indexes(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the tables whose highest ID is read from an index, and those that have to be scanned';
COMMENT ON FUNCTION snowflake_internal.migration_extreme_id(target regclass, column_name name, aggregate text, condition text, indexed_only boolean, search_path text) IS
    'Used by snowflake_migration_plan: the highest or the lowest ID of a table that satisfies a condition';
COMMENT ON FUNCTION snowflake_internal.migration_row_obstacles(target regclass, column_name name, search_path text, is_locked boolean) IS
    'Used by snowflake_internal.migration_obstacles: IDs that are not below the first snowflake ID';
COMMENT ON FUNCTION snowflake_internal.migration_check_rows(target regclass, column_name name, search_path text, is_locked boolean) IS
    'A step of snowflake_migration_plan: fails unless all IDs are below the first snowflake ID; called before the lock where that takes a scan';
COMMENT ON FUNCTION snowflake_internal.migration_foreign_key_triggers(relations regclass[]) IS
    'Used by snowflake_migration_plan: the triggers of the foreign keys of some tables';
COMMENT ON FUNCTION snowflake_internal.migration_trigger_states(relations regclass[]) IS
    'Used by snowflake_migration_plan: the states of the triggers of foreign keys that have disabled ones';
COMMENT ON FUNCTION snowflake_internal.migration_restore_trigger_states(states jsonb) IS
    'A part of a step of snowflake_migration_plan: restores the states of the triggers of foreign keys that were created again; for superusers';
COMMENT ON FUNCTION snowflake_internal.migration_copy_trigger_states(relation regclass, foreign_key name, copied_to name) IS
    'A part of a step of snowflake_migration_plan: gives a new foreign key the trigger states of the one that it replaces; for superusers';
COMMENT ON FUNCTION snowflake_internal.migration_orphans_query(foreign_key oid) IS
    'Used by snowflake_migration_plan: the query that shows the rows that violate a foreign key';
COMMENT ON FUNCTION snowflake_internal.migration_foreign_key_obstacles(targets regclass[], column_names name[], search_path text) IS
    'Used by snowflake_internal.migration_obstacles: foreign keys whose triggers are disabled';
COMMENT ON FUNCTION snowflake_internal.migration_path_argument() IS
    'Used by snowflake_migration_plan: the argument by which a statement passes its search path on';
COMMENT ON FUNCTION snowflake_internal.migration_do_block(body text) IS
    'Used by snowflake_migration_plan: several statements as one';
COMMENT ON FUNCTION snowflake_internal.migration_column_options(options text[]) IS
    'Used by snowflake_migration_plan: the options of a column that its owner has set';
COMMENT ON FUNCTION snowflake_internal.migration_uses_other_code(catalog regclass, original oid, counterpart oid) IS
    'Used by snowflake_migration_plan: whether an object uses functions or operators that another object does not';
COMMENT ON FUNCTION snowflake_internal.migration_may_become(role oid, other oid) IS
    'Used by snowflake_internal.migration_swap: whether a role can act for another one';
COMMENT ON FUNCTION snowflake_internal.migration_other_locked_tables(target regclass, attributes smallint[]) IS
    'Used by snowflake_migration_plan: the tables that are locked with a table whose columns are widened';
COMMENT ON FUNCTION snowflake_internal.migration_publications(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the publications that a table is in';
COMMENT ON FUNCTION snowflake_internal.migration_lacks_statistics(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: whether a column has to be analyzed';
COMMENT ON FUNCTION snowflake_internal.migration_statistics_targets(tables regclass[]) IS
    'Used by snowflake_migration_plan: the statistics targets that are lost when a table is rewritten';
COMMENT ON FUNCTION snowflake_internal.migration_has_derived_statistics(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: whether extended statistics or expressions of indexes depend on a column';
COMMENT ON FUNCTION snowflake_internal.migration_run_all(relations regclass[], statements text[], roles oid[], search_path text) IS
    'Used by snowflake_internal.migration_swap: runs statements, each with the rights of the owner of its table, or with those of a role';
COMMENT ON FUNCTION snowflake_internal.migration_dependent_node(class oid, object oid) IS
    'Used by snowflake_internal.migration_dependents: the object that a row of pg_depend is about';
COMMENT ON FUNCTION snowflake_internal.migration_direct_dependents(relations regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_dependents: the objects that use columns';
COMMENT ON FUNCTION snowflake_internal.migration_dependents(relations regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the views and other objects that have to be dropped before columns change their type';
COMMENT ON FUNCTION snowflake_internal.migration_dependent_relations(relations regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_widen: the relations that are locked with the tables';
COMMENT ON FUNCTION snowflake_internal.migration_dependents_note(relations regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the list of what is dropped and re-created, if anything is';
COMMENT ON FUNCTION snowflake_internal.migration_dependent_obstacles(relations regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: objects that cannot be dropped and created again';
COMMENT ON FUNCTION snowflake_internal.migration_grants(object_type "char", target text, column_name name, owner oid, schema oid, acl aclitem[]) IS
    'Used by snowflake_internal.migration_dependent_statements: the statements that grant an object''s privileges, with the roles that run them';
COMMENT ON FUNCTION snowflake_internal.migration_dependent_statements(relations regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_save_dependents: the statements that drop the objects and create them again, with the roles that run them';
COMMENT ON FUNCTION snowflake_internal.migration_without_types(definition text) IS
    'Used by snowflake_internal.migration_describe_dependents: a definition without casts between numbers';
COMMENT ON FUNCTION snowflake_internal.migration_describe_acl(acl aclitem[]) IS
    'Used by snowflake_internal.migration_describe_dependents: an access control list';
COMMENT ON FUNCTION snowflake_internal.migration_describe_dependents(relations regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_save_dependents: what the catalog has about the objects, without numeric types';
COMMENT ON FUNCTION snowflake_internal.migration_save_dependents(relations regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_widen: the statements that drop the objects and create them again, and their description';
COMMENT ON FUNCTION snowflake_internal.migration_dependents_fingerprint(relations regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_swap: changes when the catalog''s rows of the objects do';
COMMENT ON FUNCTION snowflake_internal.migration_run_saved(saved jsonb, phase integer, path text) IS
    'Used by snowflake_internal.migration_drop_dependents: runs saved statements with the rights of their roles';
COMMENT ON FUNCTION snowflake_internal.migration_drop_dependents(saved jsonb) IS
    'Used by snowflake_internal.migration_widen: drops the objects';
COMMENT ON FUNCTION snowflake_internal.migration_create_dependents(saved jsonb) IS
    'Used by snowflake_internal.migration_widen: creates the objects again';
COMMENT ON FUNCTION snowflake_internal.migration_dependent_difference(before jsonb, after jsonb) IS
    'Used by snowflake_internal.migration_compare_dependents: the first difference between two descriptions';
COMMENT ON FUNCTION snowflake_internal.migration_compare_dependents(saved jsonb, relations regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_widen: fails unless the objects are as they were';
COMMENT ON FUNCTION snowflake_internal.migration_widen(relations regclass[], column_names name[], path text) IS
    'A step of snowflake_migration_plan: widens columns, and drops and re-creates the views and other objects that depend on them';
COMMENT ON FUNCTION snowflake_internal.migration_server_obstacles() IS
    'Used by snowflake_internal.migration_obstacles: a server that does not issue IDs';
COMMENT ON FUNCTION snowflake_internal.migration_owner_obstacles(targets regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_obstacles: table ownership';
COMMENT ON FUNCTION snowflake_internal.migration_column_obstacles(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_obstacles: properties of the column itself';
COMMENT ON FUNCTION snowflake_internal.migration_type_obstacles(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_obstacles: objects that prevent changing the type of a column';
COMMENT ON FUNCTION snowflake_internal.migration_obstacles(targets regclass[], column_names name[], search_path text) IS
    'Used by snowflake_migration_plan: obstacles, and how to remove them';
COMMENT ON FUNCTION snowflake_internal.nextval_support(request internal) IS
    'Planner support function of snowflake_nextval()';
COMMENT ON FUNCTION snowflake_nextval() IS
    'Returns the next ID: for the DEFAULT of a bigint primary key';
COMMENT ON FUNCTION snowflake_nextvals(count integer) IS
    'Returns that many new IDs in ascending order';
COMMENT ON FUNCTION snowflake_currval() IS
    'Returns the last ID that this session was issued';
COMMENT ON FUNCTION snowflake_internal.restore_row() IS
    'The trigger of snowflake_internal.restore: applies a row of a restored dump';
COMMENT ON TABLE snowflake_internal.restore IS
    'What pg_dump includes of this extension; always empty. Rows that are inserted by a restored dump are applied, not stored';
COMMENT ON COLUMN snowflake_internal.restore.record IS 'What the row is: mark, layout or origin';
COMMENT ON COLUMN snowflake_internal.restore.mark IS 'last_value of snowflake_internal.mark';
COMMENT ON COLUMN snowflake_internal.restore.layout IS 'As in snowflake_internal.accepted_layout';
COMMENT ON COLUMN snowflake_internal.restore.accepted_at IS 'As in snowflake_internal.accepted_layout';
COMMENT ON COLUMN snowflake_internal.restore.target_schema IS 'Schema of the table; this and the following columns are those of snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.target_name IS 'Name of the table';
COMMENT ON COLUMN snowflake_internal.restore.column_name IS 'Column';
COMMENT ON COLUMN snowflake_internal.restore.kind IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.data_type IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.default_expression IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.sequence_schema IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.sequence_name IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.sequence_options IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.sequence_last_value IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.sequence_privileges IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.sequence_comment IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.child_defaults IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.first_id_ever IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.first_id IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.remembered_at IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_internal.restore.reverted_at IS 'As in snowflake_internal.origins';
COMMENT ON FUNCTION snowflake_internal.shadow() IS
    'The trigger that keeps a shadow column equal to the narrow column it will replace';
COMMENT ON FUNCTION snowflake_internal.migration_shadow_name(kind text, original name) IS
    'Used by snowflake_migration_plan: the name of an object added beside a column, an index or a constraint';
COMMENT ON FUNCTION snowflake_internal.migration_shadows(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the narrow columns that hold the same IDs, and their shadows as far as they exist';
COMMENT ON FUNCTION snowflake_internal.migration_require_filled(targets regclass[], column_names name[]) IS
    'A step of snowflake_migration_plan: fails unless all rows have their shadow values';
COMMENT ON FUNCTION snowflake_internal.migration_shadow_checks(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the CHECK constraints on narrow columns, and those on their shadows';
COMMENT ON FUNCTION snowflake_internal.migration_shadow_steps(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the statements that add shadow columns';
COMMENT ON FUNCTION snowflake_internal.migration_drop_shadows(targets regclass[], column_names name[]) IS
    'Used by snowflake_migrate_revert: drops shadow columns';
COMMENT ON FUNCTION snowflake_internal.migration_check_steps(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the statements that add and validate the CHECK constraints of shadow columns';
COMMENT ON FUNCTION snowflake_internal.migration_shadow_foreign_keys(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the foreign keys of the narrow columns, and those of their shadows';
COMMENT ON FUNCTION snowflake_internal.migration_foreign_key_steps(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the statements that add the foreign keys of shadow columns';
COMMENT ON FUNCTION snowflake_internal.migration_shadow_indexes(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the indexes of the narrow columns, and those of their shadows';
COMMENT ON FUNCTION snowflake_internal.migration_index_steps(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the statements that build the indexes of shadow columns';
COMMENT ON FUNCTION snowflake_internal.migration_record_backfill(targets regclass[], column_names name[], relation regclass) IS
    'A step of snowflake_migration_plan: records that the rows of a table are to be copied';
COMMENT ON FUNCTION snowflake_internal.migration_unfinished(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: all columns of the unfinished online migration that includes these';
COMMENT ON FUNCTION snowflake_internal.migration_record_progress(step snowflake_internal.progress) IS
    'Used by snowflake_migrate_backfill: records the progress of a batch';
COMMENT ON FUNCTION snowflake_internal.migration_row_estimate(relation regclass) IS
    'Used by snowflake_migrations: the planner''s estimate of the number of rows';
COMMENT ON FUNCTION snowflake_internal.migration_online_step(targets regclass[], column_names name[]) IS
    'Used by snowflake_migrations: the next step';
COMMENT ON FUNCTION snowflake_internal.migration_pace_settings(target regclass, column_name name) IS
    'Used by snowflake_migrate_backfill: batch size, pause and limits';
COMMENT ON FUNCTION snowflake_internal.migration_active_sessions() IS
    'Used by snowflake_migrate_backfill: the number of other sessions that run a statement';
COMMENT ON FUNCTION snowflake_internal.migration_require_statistics(max_replay_lag interval, max_active_sessions integer) IS
    'Used by snowflake_migrate_backfill: fails unless the current role may see what the limits need';
COMMENT ON FUNCTION snowflake_internal.migration_set_pace(targets regclass[], column_names name[], batch_size integer, pause interval, max_replay_lag interval, max_active_sessions integer, is_paused boolean) IS
    'Used by snowflake_migrate_pace and snowflake_migrate_backfill: checks and records batch size, pause and limits';
COMMENT ON FUNCTION snowflake_internal.migration_backfill_wait(targets regclass[], column_names name[], relation regclass, batch_ended_at timestamp with time zone, is_locked boolean, mark pg_lsn, marked_at timestamp with time zone, slow_seconds double precision, slowed_at timestamp with time zone) IS
    'Used by snowflake_migrate_backfill: how long it waits before the next batch, and for what';
COMMENT ON VIEW snowflake_migrations IS 'Unfinished online migrations. Tables that are migrated together have the same figures';
COMMENT ON COLUMN snowflake_migrations.table_name IS 'Table whose key is being migrated';
COMMENT ON COLUMN snowflake_migrations.column_name IS 'Key column';
COMMENT ON COLUMN snowflake_migrations.step IS 'Current or next step: adding shadow columns, backfill, validating rows, building indexes, adding foreign keys, ready to swap';
COMMENT ON COLUMN snowflake_migrations.rows_done IS 'Rows that the backfill has processed, in all tables';
COMMENT ON COLUMN snowflake_migrations.rows_total IS 'Estimated number of rows when the backfill began';
COMMENT ON COLUMN snowflake_migrations.rows_per_second IS 'Rows per second of the current or the last call of the backfill';
COMMENT ON COLUMN snowflake_migrations.time_left IS 'Estimated time for the remaining rows at that rate; NULL if the rate is unknown';
COMMENT ON COLUMN snowflake_migrations.is_paused IS 'Whether snowflake_migrate_pace() has paused the backfill';
COMMENT ON COLUMN snowflake_migrations.batch_size IS 'Largest number of rows that the backfill copies in one transaction';
COMMENT ON COLUMN snowflake_migrations.pause IS 'Pause after each batch';
COMMENT ON COLUMN snowflake_migrations.max_replay_lag IS 'The backfill waits while a standby or a subscriber is further behind; NULL if there is no limit';
COMMENT ON COLUMN snowflake_migrations.max_active_sessions IS 'The pauses grow while more other sessions are active; NULL if there is no limit';
COMMENT ON COLUMN snowflake_migrations.waiting_for IS 'What the backfill waits for at the moment; NULL if it copies rows or does not run';
COMMENT ON FUNCTION snowflake_internal.migration_update_triggers(relation regclass) IS
    'Used by snowflake_migrate_backfill: the triggers that copying rows would fire';
COMMENT ON FUNCTION snowflake_internal.migration_backfill_batch(targets regclass[], column_names name[], relation regclass, batch_size integer, search_path text) IS
    'Used by snowflake_migrate_backfill: copies one range of blocks';
COMMENT ON FUNCTION snowflake_internal.migration_replay_lag(max_replay_lag interval, mark pg_lsn, marked_at timestamp with time zone) IS
    'Used by snowflake_migrate_backfill: the standbys and subscribers that are behind';
COMMENT ON FUNCTION snowflake_internal.migration_backfill_begin(targets regclass[], column_names name[], batch_size integer, pause interval, max_replay_lag interval, max_active_sessions integer) IS
    'Used by snowflake_migrate_backfill: checks its arguments, starts it, and returns the tables to copy';
COMMENT ON FUNCTION snowflake_internal.migration_backfill_steps(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the statements that copy rows, and check them afterwards';
COMMENT ON PROCEDURE snowflake_migrate_backfill_tables(targets regclass[], column_names name[], batch_size integer, pause interval, max_replay_lag interval, max_active_sessions integer) IS
    'A step of snowflake_migration_plan_tables with online => true: copies the narrow columns of several tables to their shadow columns in batches; resumes after an interruption';
COMMENT ON PROCEDURE snowflake_migrate_backfill(target regclass, column_name name, batch_size integer, pause interval, max_replay_lag interval, max_active_sessions integer) IS
    'A step of snowflake_migration_plan with online => true: copies the narrow columns to their shadow columns in batches, committing each; resumes after an interruption';
COMMENT ON PROCEDURE snowflake_migrate_pace(target regclass, column_name name, batch_size integer, pause interval, max_replay_lag interval, max_active_sessions integer, is_paused boolean) IS
    'Changes how fast snowflake_migrate_backfill() copies rows, or pauses or resumes it, also while it runs in another session; NULL leaves a setting as it is, max_replay_lag 0 and max_active_sessions -1 remove the limit';
COMMENT ON FUNCTION snowflake_internal.migration_shadow_statistics(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the statistics objects of narrow columns, and those of their shadows';
COMMENT ON FUNCTION snowflake_internal.migration_statistics_steps(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the statements that create the statistics objects of shadow columns';
COMMENT ON FUNCTION snowflake_internal.migration_analyzed_whole(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the tables that have to be analyzed as a whole before the swap, and whether they still have to';
COMMENT ON FUNCTION snowflake_internal.migration_leftover_steps(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the statements that remove counterparts of objects that no longer exist';
COMMENT ON FUNCTION snowflake_internal.migration_update_obstacles(relation regclass) IS
    'Used by snowflake_internal.migration_online_obstacles: triggers and rules that an UPDATE of every row would fire';
COMMENT ON FUNCTION snowflake_internal.migration_online_obstacles(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: obstacles to an online migration, and how to remove them';
COMMENT ON FUNCTION snowflake_internal.migration_plan_kind_obstacles(targets regclass[], column_names name[], online boolean) IS
    'Used by snowflake_migration_plan: obstacles to one of the two kinds of plan';
COMMENT ON FUNCTION snowflake_internal.migration_swap_columns(targets regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_swap: the columns that are replaced';
COMMENT ON FUNCTION snowflake_internal.migration_swap_relations(targets regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_swap: the tables that are locked';
COMMENT ON FUNCTION snowflake_internal.migration_swap_sequences(targets regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_swap: the sequences that are altered';
COMMENT ON FUNCTION snowflake_internal.migration_swap_obstacles(targets regclass[], column_names name[], search_path text) IS
    'Used by snowflake_internal.migration_swap: obstacles to the swap';
COMMENT ON FUNCTION snowflake_internal.migration_column_grants(relation regclass, attribute smallint) IS
    'Used by snowflake_internal.migration_swap: the privileges on a column, in order, and who grants them';
COMMENT ON FUNCTION snowflake_internal.migration_swap_commands(targets regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_swap: the DDL that it runs, and the table that each statement alters';
COMMENT ON FUNCTION snowflake_internal.migration_not_null_names(targets regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_swap: the not-null constraints that tables have since PostgreSQL 18';
COMMENT ON FUNCTION snowflake_internal.migration_fingerprint(relations regclass[]) IS
    'Used by snowflake_internal.migration_swap: changes when the catalog''s rows on these tables do';
COMMENT ON FUNCTION snowflake_internal.migration_require_ready(targets regclass[], column_names name[], search_path text) IS
    'Used by snowflake_internal.migration_swap: fails unless everything is ready';
COMMENT ON FUNCTION snowflake_internal.migration_old_snapshots(targets regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_swap: transactions whose snapshots are older than the proof that all rows are copied';
COMMENT ON FUNCTION snowflake_internal.migration_await_snapshots(targets regclass[], column_names name[]) IS
    'Used by snowflake_internal.migration_swap: waits until no session has such a snapshot';
COMMENT ON FUNCTION snowflake_internal.migration_swap_locked(targets regclass[], column_names name[], relations regclass[], before text, altered regclass[], statements text[], roles oid[], not_nulls jsonb, dependents jsonb, dependents_before text, search_path text) IS
    'Used by snowflake_internal.migration_swap: one try';
COMMENT ON FUNCTION snowflake_internal.migration_swap(targets regclass[], column_names name[], search_path text) IS
    'A step of snowflake_migration_plan with online => true: replaces the narrow columns by their shadow columns';
COMMENT ON FUNCTION snowflake_internal.migration_online_steps(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the statements that widen columns while their tables are in use';
COMMENT ON FUNCTION snowflake_internal.migration_check(target regclass, column_name name, search_path text) IS
    'A step of snowflake_migration_plan: fails unless the default can be switched';
COMMENT ON FUNCTION snowflake_internal.migration_default_note(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the note of the statement that sets the default';
COMMENT ON FUNCTION snowflake_internal.migration_dependent_columns(targets regclass[], column_names name[]) IS
    'Used by snowflake_migration_plan: the columns that are widened together with what depends on them';
COMMENT ON FUNCTION snowflake_internal.migration_steps(targets regclass[], column_names name[], online boolean, search_path text) IS
    'Used by snowflake_migration_plan: its steps, each with the table whose owner runs it in snowflake_migrate';
COMMENT ON FUNCTION snowflake_internal.migration_limit_locks() IS
    'Used by snowflake_migrate: limits the wait for locks to a few seconds, unless lock_timeout is set';
COMMENT ON FUNCTION snowflake_internal.migration_plan(targets regclass[], column_names name[], online boolean, search_path text) IS
    'Used by snowflake_migration_plan: the steps for the tables that the caller specifies';
COMMENT ON FUNCTION snowflake_internal.migration_migrate(targets regclass[], column_names name[], search_path text) IS
    'Used by snowflake_migrate: runs the statements of the plan in order';
COMMENT ON FUNCTION snowflake_internal.migration_survey_obstacles(targets regclass[], column_names name[], online boolean) IS
    'Used by snowflake_migration_survey: the obstacles of each column; online is NULL for those of both kinds of plan';
COMMENT ON FUNCTION snowflake_migration_survey(schema_name name) IS
    'Returns for each column with a sequence how it can be migrated, what prevents that, what it costs, and what it affects; of one schema or of all';
COMMENT ON FUNCTION snowflake_migration_plan(target regclass, column_name name, online boolean) IS
    'Returns the remaining migration statements of a column in order, with the lock each takes and whether it rewrites the table; for \gexec';
COMMENT ON FUNCTION snowflake_migration_plan_tables(targets regclass[], column_names name[], online boolean) IS
    'Returns the remaining migration statements of several tables together: each table is rewritten, or copied, once';
COMMENT ON PROCEDURE snowflake_migrate(target regclass, column_name name) IS
    'Migrates a column to snowflake IDs in one transaction: runs the statements of snowflake_migration_plan';
COMMENT ON PROCEDURE snowflake_migrate_tables(targets regclass[], column_names name[]) IS
    'Migrates several tables to snowflake IDs in one transaction: runs the statements of snowflake_migration_plan_tables';
COMMENT ON FUNCTION snowflake_internal.migration_sequence_options(options jsonb) IS
    'Used by snowflake_migrate_revert: the options of a sequence in the syntax of CREATE SEQUENCE';
COMMENT ON FUNCTION snowflake_internal.migration_restore_sequence_properties(sequence regclass, origin snowflake_internal.origins) IS
    'Used by snowflake_migrate_revert: gives a new sequence the privileges and the comment of the old one';
COMMENT ON FUNCTION snowflake_internal.migration_restore_identity(origin snowflake_internal.origins) IS
    'Used by snowflake_migrate_revert: makes the column an identity column again';
COMMENT ON FUNCTION snowflake_internal.migration_sequence_by_name(sequence_schema name, sequence_name name) IS
    'Used by snowflake_migrate_revert: a sequence by its name, if it exists';
COMMENT ON FUNCTION snowflake_internal.migration_restore_sequence(origin snowflake_internal.origins) IS
    'Used by snowflake_migrate_revert: creates the dropped sequence of a serial column again';
COMMENT ON FUNCTION snowflake_internal.migration_restore_default(origin snowflake_internal.origins, sequence regclass) IS
    'Used by snowflake_migrate_revert: restores the default';
COMMENT ON FUNCTION snowflake_internal.migration_restore_children(origin snowflake_internal.origins) IS
    'Used by snowflake_migrate_revert: restores the defaults of partitions and child tables';
COMMENT ON TYPE snowflake_internal.scanned_ids IS
    'Used by snowflake_migrate_revert: the last old ID, as it was read before the lock';
COMMENT ON FUNCTION snowflake_internal.migration_old_id_condition(column_name name, first_id_ever bigint, minimum bigint, maximum bigint) IS
    'Used by snowflake_migrate_revert: the condition of the IDs that the sequence could have issued before the migration';
COMMENT ON FUNCTION snowflake_internal.migration_scan_old_ids(target regclass, column_name name, search_path text) IS
    'Used by snowflake_migrate_revert: reads the last old ID before the table is locked, if that takes a scan';
COMMENT ON FUNCTION snowflake_internal.migration_last_old_id(origin snowflake_internal.origins, is_ascending boolean, minimum bigint, maximum bigint, scanned snowflake_internal.scanned_ids, search_path text) IS
    'Used by snowflake_migrate_revert: the last of the old IDs that the sequence could have issued';
COMMENT ON FUNCTION snowflake_internal.migration_resume_sequence(sequence regclass, is_new boolean, origin snowflake_internal.origins, scanned snowflake_internal.scanned_ids, search_path text) IS
    'Used by snowflake_migrate_revert: makes the sequence resume after the old IDs';
COMMENT ON FUNCTION snowflake_internal.migration_revert(target regclass, column_name name, search_path text) IS
    'Used by snowflake_migrate_revert: restores the sequence of a migrated column';
COMMENT ON PROCEDURE snowflake_migrate_revert(target regclass, column_name name) IS
    'Restores the sequence of a migrated column, or cancels an unfinished online migration';
COMMENT ON FUNCTION snowflake_audit(target regclass, column_name name, expected_nodes integer[], first_id bigint) IS
    'Checks the IDs in a column: one row for each kind of problem, with the number of IDs and the largest; no rows if there is none. Values below first_id are old; the default is the first snowflake ID of a migrated column, as recorded';
COMMENT ON FUNCTION snowflake_accept_clock(expected timestamp with time zone) IS
    'Accepts a clock that jumped ahead by more than snowflake.max_clock_step; expected must be within a minute of it';
COMMENT ON FUNCTION snowflake_start_after(id bigint) IS
    'Makes later IDs of this database greater than this one; never lowers them';
COMMENT ON FUNCTION snowflake_accept_layout() IS
    'Accepts a changed snowflake.layout for this database';
COMMENT ON FUNCTION snowflake_stat_reset() IS
    'Resets the counters of snowflake_status and snowflake_stat_slots to 0';
COMMENT ON FUNCTION snowflake_decode(id bigint) IS
    'Decodes an ID: when and where it was generated, by this server''s layout';
COMMENT ON FUNCTION snowflake_decode(id bigint, layout text) IS
    'Decodes an ID: when and where it was generated, by a layout or preset name';
COMMENT ON FUNCTION snowflake_timestamp(id bigint) IS
    'Returns the time at which an ID was generated, by this server''s layout';
COMMENT ON FUNCTION snowflake_timestamp(id bigint, layout text) IS
    'Returns the time at which an ID was generated, by a layout or preset name';
COMMENT ON FUNCTION snowflake_node_id(id bigint) IS
    'Returns the node number of the server that generated an ID, by this server''s layout';
COMMENT ON FUNCTION snowflake_node_id(id bigint, layout text) IS
    'Returns the node number of the server that generated an ID, by a layout or preset name';
COMMENT ON FUNCTION snowflake_backend_id(id bigint) IS
    'Returns the backend number of an ID, by this server''s layout: for single IDs the PID modulo the number of slots, for IDs in bulk 0 or any other';
COMMENT ON FUNCTION snowflake_backend_id(id bigint, layout text) IS
    'Returns the backend number of an ID, by a layout or preset name';
COMMENT ON FUNCTION snowflake_sequence(id bigint) IS
    'Returns the sequence number of an ID within its tick and slot, by this server''s layout';
COMMENT ON FUNCTION snowflake_sequence(id bigint, layout text) IS
    'Returns the sequence number of an ID within its tick and slot, by a layout or preset name';
COMMENT ON FUNCTION snowflake_compose(created_at timestamp with time zone, node_id integer, backend_id integer, sequence integer) IS
    'Returns the ID with these fields, by this server''s layout: the inverse of snowflake_decode. Does not issue an ID';
COMMENT ON FUNCTION snowflake_compose(created_at timestamp with time zone, node_id integer, backend_id integer, sequence integer, layout text) IS
    'Returns the ID with these fields, by a layout or preset name: the inverse of snowflake_decode. Does not issue an ID';
COMMENT ON FUNCTION snowflake_to_text(id bigint, encoding text) IS
    'Encodes an ID as text of fixed width, in base32 (13 characters) or base62 (11). The text sorts like the ID';
COMMENT ON FUNCTION snowflake_from_text(text text, encoding text) IS
    'Returns the ID that snowflake_to_text encoded';
-- Written by scripts/upgrade-script: end

-- In 0.1.0 privileges that were granted on all tables of the schema let roles
-- write to the extension's tables, and add triggers that ran as whoever wrote.
DO $do$
DECLARE
    former CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
    grantees text;
    it record;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR it IN
        SELECT c.oid::regclass AS relation, t.tgname
        FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
        WHERE t.tgrelid IN ('snowflake_internal.origins'::regclass, 'snowflake_internal.progress'::regclass)
          AND NOT t.tgisinternal AND t.tgname NOT IN ('origins_stay', 'progress_stay')
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', it.tgname, it.relation);
        RAISE WARNING 'trigger "%" of % was dropped', it.tgname, it.relation
            USING DETAIL = 'It is none of the extension''s. In 0.1.0 it ran with the rights of the role that migrated a table.';
    END LOOP;

    SELECT string_agg(DISTINCT CASE p.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(p.grantee)) END, ', ') INTO grantees
    FROM pg_class AS c
    CROSS JOIN LATERAL (
        SELECT * FROM aclexplode(c.relacl)
        UNION ALL SELECT x.* FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(a.attacl) AS x WHERE a.attrelid = c.oid
    ) AS p
    WHERE c.oid IN ('snowflake_internal.origins'::regclass, 'snowflake_internal.progress'::regclass, 'snowflake_internal.mark'::regclass)
      AND p.grantee <> c.relowner AND p.privilege_type <> 'SELECT';
    IF grantees IS NOT NULL THEN
        RAISE WARNING 'roles could write to the extension''s tables or to its mark: %', grantees
            USING DETAIL = 'Their privileges are revoked.',
                  HINT = 'Look at what is in snowflake_internal.origins before you revert a migration.';
    END IF;
    SELECT string_agg(DISTINCT quote_ident(pg_get_userbyid(p.grantee)), ', ') INTO grantees
    FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS p
    WHERE c.oid = 'snowflake_internal.origins'::regclass AND p.grantee NOT IN (c.relowner, 0) AND p.privilege_type = 'SELECT';
    IF grantees IS NOT NULL THEN
        RAISE WARNING 'roles can no longer read snowflake_internal.origins: %', grantees
            USING DETAIL = 'It has the last values of sequences of all migrated tables.',
                  HINT = 'If they need it, grant SELECT to them again.';
    END IF;

    -- As in sql/internal/privileges.sql, where default privileges have added some.
    -- Of the mark and the progress those that write. What is revoked from a
    -- relation makes all its other privileges the extension's own for pg_dump. So
    -- none but PUBLIC keeps one on a relation of which something is revoked.
    FOR it IN
        SELECT c.relkind, c.oid::regclass AS relation, p.grantee = 0 AND c.relname IN ('mark', 'progress') AND bool_or(p.privilege_type = 'SELECT') AS is_reader,
               CASE p.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(p.grantee)) END AS grantee
        FROM pg_class AS c
        CROSS JOIN LATERAL (
            SELECT * FROM aclexplode(c.relacl)
            UNION ALL SELECT x.* FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(a.attacl) AS x WHERE a.attrelid = c.oid
        ) AS p
        WHERE c.relnamespace = 'snowflake_internal'::regnamespace AND c.relkind IN ('r', 'S') AND p.grantee <> c.relowner
        GROUP BY c.relkind, c.oid, c.relname, p.grantee
        HAVING c.relname NOT IN ('mark', 'progress') OR (
            SELECT coalesce(bool_or(w.privilege_type <> 'SELECT'), false)
            FROM pg_class AS r
            CROSS JOIN LATERAL (
                SELECT * FROM aclexplode(r.relacl)
                UNION ALL SELECT x.* FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(a.attacl) AS x WHERE a.attrelid = r.oid
            ) AS w
            WHERE r.oid = c.oid AND w.grantee <> r.relowner)
    LOOP
        EXECUTE format('REVOKE ALL ON %s %s FROM %s CASCADE', CASE it.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
                       it.relation, it.grantee);
        IF it.is_reader THEN
            EXECUTE format('GRANT SELECT ON %s %s TO PUBLIC', CASE it.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, it.relation);
        END IF;
    END LOOP;
    FOR it IN
        SELECT DISTINCT CASE p.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(p.grantee)) END AS grantee
        FROM pg_namespace AS n
        CROSS JOIN LATERAL aclexplode(n.nspacl) AS p
        WHERE n.nspname = 'snowflake_internal' AND p.privilege_type = 'CREATE' AND p.grantee <> n.nspowner
    LOOP
        EXECUTE format('REVOKE CREATE ON SCHEMA snowflake_internal FROM %s', it.grantee);
    END LOOP;

    -- What sequences of other roles had counted.
    UPDATE snowflake_internal.origins AS o
    SET sequence_last_value = NULL, sequence_options = o.sequence_options - 'next'
    FROM pg_class AS t, pg_class AS s
    WHERE t.oid = o.target AND s.oid = to_regclass(format('%I.%I', o.sequence_schema, o.sequence_name)) AND s.relowner <> t.relowner;
    PERFORM set_config('search_path', former, true);
END
$do$;

CREATE TRIGGER origins_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_internal.origins
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_internal.migration_guard();
ALTER TABLE snowflake_internal.origins ENABLE ALWAYS TRIGGER origins_guard;
CREATE TRIGGER progress_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_internal.progress
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_internal.migration_guard();
ALTER TABLE snowflake_internal.progress ENABLE ALWAYS TRIGGER progress_guard;

-- As the tables of migrations: written by SQL only by superusers, and each
-- server's own.
CREATE TRIGGER accepted_layout_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_internal.accepted_layout
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_internal.migration_guard();
ALTER TABLE snowflake_internal.accepted_layout ENABLE ALWAYS TRIGGER accepted_layout_guard;
CREATE TRIGGER accepted_layout_stay BEFORE INSERT OR UPDATE OR DELETE ON snowflake_internal.accepted_layout
    FOR EACH ROW EXECUTE FUNCTION snowflake_internal.origins_stay();
ALTER TABLE snowflake_internal.accepted_layout ENABLE REPLICA TRIGGER accepted_layout_stay;

-- As in sql/internal/migration/records.sql.
CREATE TRIGGER pace_stay BEFORE INSERT OR UPDATE OR DELETE ON snowflake_internal.pace
    FOR EACH ROW EXECUTE FUNCTION snowflake_internal.origins_stay();
ALTER TABLE snowflake_internal.pace ENABLE REPLICA TRIGGER pace_stay;

CREATE TRIGGER pace_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_internal.pace
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_internal.migration_guard();
ALTER TABLE snowflake_internal.pace ENABLE ALWAYS TRIGGER pace_guard;

-- As in the control file: PostgreSQL gives an extension that file's comment when
-- it is created only. Not where somebody has set another one.
DO $do$
BEGIN
    IF pg_catalog.obj_description((SELECT e.oid FROM pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'snowflake'::pg_catalog.name), 'pg_extension')
       OPERATOR(pg_catalog.=) '64-bit, time-ordered, decodable primary keys that never come twice'
    THEN
        COMMENT ON EXTENSION snowflake IS '64-bit, time-ordered, decodable primary keys that do not repeat';
    END IF;
END
$do$;

-- As in sql/internal/restore.sql, which is all that is dumped from now on. pg_dump
-- would still set the mark and write origins, which only a superuser may do. No
-- function takes a relation from this list; ALTER EXTENSION ... DROP, which does,
-- would forget the initial privileges, too.
UPDATE pg_catalog.pg_extension SET extconfig = NULL, extcondition = NULL
WHERE extname OPERATOR(pg_catalog.=) 'snowflake'::pg_catalog.name;
-- Also in the replica role: a superuser may restore in it.
CREATE TRIGGER restore_row BEFORE INSERT ON snowflake_internal.restore
    FOR EACH ROW EXECUTE FUNCTION snowflake_internal.restore_row();
ALTER TABLE snowflake_internal.restore ENABLE ALWAYS TRIGGER restore_row;

-- The columns are those above, in that order. `pg_dump --inserts` names none, so a
-- later version may only append columns. pg_dump reads with its snapshot,
-- except the mark, which is read later than that: it is above all rows of the dump.
-- The mark comes before the layouts, so that the first ID finds the layout of IDs
-- that exist. A table that was dropped is left out, as are temporary ones.
SELECT pg_catalog.pg_extension_config_dump('snowflake_internal.restore', $condition$WHERE false
UNION ALL
SELECT 'mark', m.last_value, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM snowflake_internal.mark AS m WHERE m.last_value OPERATOR(pg_catalog.>) 1
UNION ALL
SELECT 'layout', NULL, l.layout, l.accepted_at, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM snowflake_internal.accepted_layout AS l
UNION ALL
SELECT 'origin', NULL, NULL, NULL, n.nspname, c.relname, o.column_name, o.kind, o.data_type, o.default_expression,
       o.sequence_schema, o.sequence_name, o.sequence_options, o.sequence_last_value, o.sequence_privileges,
       o.sequence_comment, o.child_defaults, o.first_id_ever, o.first_id, o.remembered_at, o.reverted_at
FROM snowflake_internal.origins AS o
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) o.target AND c.relpersistence OPERATOR(pg_catalog.<>) 't'
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
ORDER BY 1 DESC, 5, 6, 7$condition$);

-- Only what is new: a GRANT makes all privileges of an object the extension's
-- own for pg_dump, those that somebody has added too.
GRANT SELECT ON snowflake_internal.accepted_layout, snowflake_internal.pace TO PUBLIC;
-- It has the last values of sequences of tables that were migrated. The owner of
-- a database has to be able to dump it.
GRANT SELECT ON snowflake_internal.origins TO pg_database_owner;
GRANT SELECT, INSERT ON snowflake_internal.restore TO PUBLIC;

\echo Use "ALTER EXTENSION snowflake UPDATE TO '0.2.0'" to load this file. \quit

-- What scripts/upgrade-script writes is between its two lines; the rest is
-- written by hand. Run the script again when the SQL of 0.2.0 has changed: it
-- applies what is above the first line before it compares the versions.

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

-- As in sql/internal/accepted_layout.sql.
CREATE TABLE snowflake_internal.accepted_layout (
    layout text NOT NULL,
    accepted_at timestamp with time zone NOT NULL DEFAULT pg_catalog.now()
) USING heap;
SELECT pg_catalog.pg_extension_config_dump('snowflake_internal.accepted_layout', '');

-- Written by scripts/upgrade-script: begin
DROP FUNCTION snowflake_internal.migration_swap_under_lock(pg_catalog.regclass,pg_catalog.name,pg_catalog.regclass[],pg_catalog.text,pg_catalog.text[],pg_catalog.jsonb);
DROP FUNCTION snowflake_internal.migration_swap_statements(pg_catalog.regclass,pg_catalog.name);
CREATE OR REPLACE VIEW snowflake_serial_columns AS
    WITH sequence_column AS (
        -- Identity columns own their sequence internally.
        SELECT a.attrelid, a.attnum, d.objid AS sequence,
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
    )
    SELECT n.nspname AS schema_name,
           c.relname AS table_name,
           a.attname AS column_name,
           pg_catalog.format_type(a.atttypid, a.atttypmod) AS data_type,
           sequence_column.kind,
           sequence_column.sequence::pg_catalog.regclass AS sequence,
           used.last_value,
           -- Sequences may be descending.
           pg_catalog.round(pg_catalog.abs(100.0 * used.last_value::pg_catalog.numeric)
               / CASE WHEN base.type_oid = 'pg_catalog.int2'::pg_catalog.regtype::pg_catalog.oid THEN 32767::pg_catalog.numeric
                      WHEN base.type_oid = 'pg_catalog.int4'::pg_catalog.regtype::pg_catalog.oid THEN 2147483647::pg_catalog.numeric
                      WHEN base.type_oid = 'pg_catalog.int8'::pg_catalog.regtype::pg_catalog.oid THEN 9223372036854775807::pg_catalog.numeric
                 END, 2) AS percent_used,
           ARRAY(SELECT pg_catalog.format('%s.%I', k.conrelid::pg_catalog.regclass, ra.attname)
                 FROM pg_catalog.pg_constraint AS k
                 CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(k.conkey), pg_catalog.unnest(k.confkey))
                     AS key (referencing, referenced)
                 JOIN pg_catalog.pg_attribute AS ra ON ra.attrelid = k.conrelid AND ra.attnum = key.referencing
                 WHERE k.contype = 'f'::"char" AND k.conparentid = 0::pg_catalog.oid
                   AND k.confrelid = c.oid AND key.referenced = a.attnum
                 ORDER BY 1) AS referenced_by
    FROM sequence_column
    JOIN pg_catalog.pg_class AS c ON c.oid = sequence_column.attrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = sequence_column.attnum
    CROSS JOIN LATERAL (
        -- Reading a sequence requires a privilege. Without it, the view still shows the column.
        SELECT CASE WHEN pg_catalog.has_sequence_privilege(sequence_column.sequence, 'USAGE, SELECT')
                    THEN pg_catalog.pg_sequence_last_value(sequence_column.sequence) END AS last_value
    ) AS used
    CROSS JOIN LATERAL (SELECT snowflake_internal.migration_base_type(a.atttypid) AS type_oid) AS base
    -- Partitions and child tables are left out, unless they use a sequence of
    -- their own.
    WHERE NOT EXISTS (
            SELECT FROM pg_catalog.pg_inherits AS i
            JOIN sequence_column AS above ON above.attrelid = i.inhparent AND above.sequence = sequence_column.sequence
            JOIN pg_catalog.pg_attribute AS pa ON pa.attrelid = above.attrelid AND pa.attnum = above.attnum
            WHERE i.inhrelid = c.oid AND pa.attname = a.attname)
      AND NOT pg_catalog.pg_is_other_temp_schema(n.oid)
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
CREATE FUNCTION snowflake_internal.migration_guard() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_guard_wrapper';
CREATE OR REPLACE FUNCTION snowflake_internal.migration_end(target regclass, column_name name) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_end_wrapper';
CREATE FUNCTION snowflake_internal.migration_keep_origin(origin snowflake_internal.origins) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_keep_origin_wrapper';
CREATE FUNCTION snowflake_internal.migration_keep_progress(step snowflake_internal.progress) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_keep_progress_wrapper';
CREATE FUNCTION snowflake_internal.migration_lock_table(relation regclass, mode text) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_lock_table_wrapper';
CREATE FUNCTION snowflake_internal.migration_origin(target regclass, column_name name) RETURNS snowflake_internal.origins
    STRICT VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_origin_wrapper';
CREATE OR REPLACE FUNCTION snowflake_internal.migration_progress(target regclass, column_name name, relation regclass) RETURNS snowflake_internal.progress
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_progress_wrapper';
CREATE FUNCTION snowflake_internal.migration_query(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_query_wrapper';
CREATE FUNCTION snowflake_internal.migration_read(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_read_wrapper';
CREATE FUNCTION snowflake_internal.migration_run(relation regclass, statement text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_run_wrapper';
CREATE FUNCTION snowflake_internal.migration_sequence_state(
    sequence regclass, on_behalf_of regclass, OUT last_value bigint, OUT is_called boolean
) RETURNS SETOF record STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_sequence_state_wrapper';
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_linked_columns(target regclass, column_name name)
RETURNS TABLE (relation regclass, attribute smallint, is_narrow boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE linked (relation, attribute) AS (
        SELECT a.attrelid, a.attnum FROM pg_attribute AS a
        WHERE a.attrelid = target AND a.attname = column_name
      UNION
        SELECT found.relation, found.attribute
        FROM linked
        CROSS JOIN LATERAL (
            -- Columns that reference this one.
            SELECT k.conrelid, key.referencing
            FROM pg_constraint AS k
            CROSS JOIN LATERAL ROWS FROM (unnest(k.conkey), unnest(k.confkey)) AS key (referencing, referenced)
            WHERE k.contype = 'f' AND k.confrelid = linked.relation AND key.referenced = linked.attribute
          UNION ALL
            -- The same column of child tables, whose own constraints count too.
            SELECT i.inhrelid, c.attnum
            FROM pg_inherits AS i
            JOIN pg_attribute AS p ON p.attrelid = i.inhparent AND p.attnum = linked.attribute
            JOIN pg_attribute AS c ON c.attrelid = i.inhrelid AND c.attname = p.attname
            WHERE i.inhparent = linked.relation
          UNION ALL
            -- The same column of the parents that declare it.
            SELECT i.inhparent, p.attnum
            FROM pg_inherits AS i
            JOIN pg_attribute AS c ON c.attrelid = i.inhrelid AND c.attnum = linked.attribute
            JOIN pg_attribute AS p ON p.attrelid = i.inhparent AND p.attname = c.attname AND p.attnum > 0
            WHERE i.inhrelid = linked.relation
        ) AS found (relation, attribute)
    )
    SELECT r.relation::regclass, r.attribute,
           snowflake_internal.migration_base_type(a.atttypid) IN ('int2'::regtype, 'int4'::regtype)
    FROM linked AS r
    JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
    WHERE a.attinhcount = 0
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
    SELECT string_agg(DISTINCT l.pid::text, ', ') INTO holders
    FROM pg_locks AS l
    WHERE l.locktype = 'relation' AND l.relation = ANY (relations) AND l.granted AND l.pid <> pg_backend_pid()
      AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
      AND (migration_lock_missed.mode = 'ACCESS EXCLUSIVE' OR l.mode NOT IN ('AccessShareLock', 'RowShareLock'));
    IF clock_timestamp() - begun > time_limit THEN
        RAISE EXCEPTION 'could not lock % within %', wanted, time_limit
            USING ERRCODE = 'lock_not_available',
                  DETAIL = coalesce('Held by processes ' || holders || '.', 'Other transactions kept locking it.'),
                  HINT = 'See pg_stat_activity for what they are doing. Run it again when they have ended.';
    END IF;
    RAISE NOTICE 'waiting for a lock on %', wanted
        USING DETAIL = coalesce('Held by processes ' || holders || '.', 'No process holds it at this moment.');
    RETURN clock_timestamp();
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_lock(relations regclass[], mode text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- The longest time of one attempt for all tables together, in milliseconds.
    -- It is shorter than deadlock_timeout, because resolving a deadlock could
    -- cancel another session's transaction.
    longest_wait CONSTANT integer := (
        SELECT greatest(1, least(100, min(CASE s.name WHEN 'deadlock_timeout' THEN s.setting::integer / 2
                                                      ELSE nullif(s.setting::integer, 0) END)))
        FROM pg_settings AS s WHERE s.name IN ('lock_timeout', 'deadlock_timeout'));
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
    SELECT coalesce(k.kind, 'none'), format_type(a.atttypid, a.atttypmod), pg_get_expr(f.adbin, f.adrelid), k.sequence
    FROM pg_attribute AS a
    JOIN pg_class AS c ON c.oid = a.attrelid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
    LEFT JOIN @extschema@.snowflake_serial_columns AS k
        ON k.schema_name = n.nspname AND k.table_name = c.relname AND k.column_name = a.attname
    WHERE a.attrelid = target AND a.attname = migration_source.column_name
    LIMIT 1
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_owner_obstacles(target regclass, column_name name)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH root (relation, attname) AS (
        SELECT target, column_name
      UNION
        SELECT r.relation, a.attname
        FROM snowflake_internal.migration_linked_columns(target, column_name) AS r
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
    WHERE a.relation = target AND NOT has_schema_privilege(a.relowner, n.oid, 'USAGE')
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_row_obstacles(target regclass, column_name name)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    first CONSTANT bigint := snowflake_internal.migration_first_id();
    highest bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute AS a
                   WHERE a.attrelid = target AND a.attname = column_name
                     AND snowflake_internal.migration_base_type(a.atttypid) = 'int8'::regtype)
    THEN
        RETURN;
    END IF;
    highest := (snowflake_internal.migration_query(
        target, format('SELECT max(%I) FROM %s', column_name, snowflake_internal.migration_name(target))))[1]::bigint;
    IF highest >= first THEN
        RETURN QUERY SELECT
            format('%s has IDs that are not below the first snowflake ID: the largest is %s, snowflake IDs would begin at %s',
                   target, highest, first),
            'New IDs could equal existing ones. If these rows have just been replicated from another server, run it again. Otherwise give them smaller IDs, or use a layout with an earlier epoch.', '55000';
    END IF;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_type_obstacles(target regclass, column_name name)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE tree AS MATERIALIZED (
        SELECT f.relation, f.attribute, c.relkind, c.reloftype, c.reltype, a.atttypid, a.attinhcount,
               format_type(a.atttypid, a.atttypmod) AS type_name
        FROM snowflake_internal.migration_table_tree(target, column_name) AS f
        JOIN pg_class AS c ON c.oid = f.relation
        JOIN pg_attribute AS a ON a.attrelid = f.relation AND a.attnum = f.attribute
    ), dependent AS MATERIALIZED (
        SELECT f.relation, d.classid, d.objid, d.objsubid
        FROM tree AS f
        JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = f.relation AND d.refobjsubid = f.attribute
    ), row_type (relation, oid) AS (
        -- The types that contain rows of these tables: arrays, domains, composites.
        SELECT f.relation, f.reltype FROM tree AS f
      UNION
        SELECT t.relation, CASE d.classid WHEN 'pg_type'::regclass THEN d.objid ELSE c.reltype END
        FROM row_type AS t
        JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid
        LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind = 'c'
        WHERE d.classid = 'pg_type'::regclass OR c.reltype IS NOT NULL
    ), viewer (oid, below) AS (
        -- Views that use the column, and views over those.
        SELECT w.ev_class, 0::oid
        FROM dependent AS d JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
      UNION
        SELECT w.ev_class, v.oid
        FROM viewer AS v
        JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = v.oid AND d.classid = 'pg_rewrite'::regclass
        JOIN pg_rewrite AS w ON w.oid = d.objid AND w.ev_class <> v.oid
        JOIN pg_class AS c ON c.oid = v.oid AND c.relkind IN ('v', 'm')
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
        WHERE f.relation <> target
          AND f.attinhcount > (SELECT count(*) FROM pg_inherits AS i JOIN tree AS p ON p.relation = i.inhparent
                               WHERE i.inhrelid = f.relation)
      UNION ALL
        SELECT DISTINCT 6,
               CASE v.relkind
                   WHEN 'v' THEN format('view %s uses column %I of %s', v.oid::regclass, column_name, d.relation)
                   WHEN 'm' THEN format('materialized view %s uses column %I of %s', v.oid::regclass, column_name, d.relation)
                   ELSE format('rule %I of %s uses column %I of %s', w.rulename, v.oid::regclass, column_name, d.relation) END,
               'Drop it, and create it again after the column is widened: pg_dump --schema-only shows its definition and privileges.'
        FROM dependent AS d JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
        JOIN pg_class AS v ON v.oid = w.ev_class
      UNION ALL
        SELECT DISTINCT 6, format('%s uses %s', pg_describe_object('pg_class'::regclass, v.oid, 0), v.below::regclass),
               'Drop it first, and create it again last.'
        FROM viewer AS v WHERE v.below <> 0
      UNION ALL
        SELECT DISTINCT 7, format('policy %I of %s uses column %I', p.polname, p.polrelid::regclass, column_name),
               'Drop it, and create it again after the column is widened.'
        FROM dependent AS d JOIN pg_policy AS p ON d.classid = 'pg_policy'::regclass AND p.oid = d.objid
      UNION ALL
        SELECT DISTINCT 8, format('function %s has a SQL body that uses column %I of %s', d.objid::regprocedure, column_name, d.relation),
               'Drop it and create it again after the column is widened, or give it a body in a string.'
        FROM dependent AS d WHERE d.classid = 'pg_proc'::regclass
      UNION ALL
        SELECT DISTINCT 9, format('column %I of %s is generated from column %I', g.attname, g.attrelid::regclass, column_name),
               'Drop it, and add it again after the column is widened.'
        FROM dependent AS d
        JOIN pg_attribute AS g ON g.attrelid = d.relation AND g.attgenerated <> ''
        JOIN pg_attrdef AS e ON e.adrelid = g.attrelid AND e.adnum = g.attnum
        WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = e.oid
           OR d.classid = 'pg_class'::regclass AND d.objid = g.attrelid AND d.objsubid = g.attnum
      UNION ALL
        SELECT DISTINCT 10, format('trigger %I of %s uses column %I', t.tgname, t.tgrelid::regclass, column_name),
               'Drop it, and create it again after the column is widened.'
        FROM dependent AS d JOIN pg_trigger AS t ON d.classid = 'pg_trigger'::regclass AND t.oid = d.objid
        -- Partitions have copies of their parent's triggers.
        WHERE NOT t.tgisinternal AND t.tgparentid = 0
      UNION ALL
        SELECT DISTINCT 11, format('publication %I has %s that uses column %I of %s', p.pubname,
                   CASE WHEN r.prqual IS NULL THEN 'a column list' WHEN r.prattrs IS NULL THEN 'a WHERE clause' ELSE 'a WHERE clause or a column list' END,
                   column_name, d.relation),
               'Remove it (ALTER PUBLICATION ... SET TABLE), and add it again after the column is widened.'
        FROM dependent AS d
        JOIN pg_publication_rel AS r ON d.classid = 'pg_publication_rel'::regclass AND r.oid = d.objid
        JOIN pg_publication AS p ON p.oid = r.prpubid
      UNION ALL
        SELECT DISTINCT 12, format('column %I of %s uses the row type of %s', u.attname, u.attrelid::regclass, t.relation),
               'Give that column another type, or drop it, until the column is widened.'
        FROM row_type AS t
        JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid AND d.classid = 'pg_class'::regclass
        JOIN pg_class AS c ON c.oid = d.objid AND c.relkind IN ('r', 'p', 'm', 'f')
        JOIN pg_attribute AS u ON u.attrelid = d.objid AND u.attnum = d.objsubid AND NOT u.attisdropped
      UNION ALL
        SELECT DISTINCT 13, format('index %s uses operator class %I, which does not support bigint', i.indexrelid::regclass, o.opcname),
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
        SELECT DISTINCT 14, format('the replica identity of partition %s is index %s with column %I, which loses that role when it is rebuilt',
                                   f.relation, i.indexrelid::regclass, column_name),
               format('ALTER TABLE %s REPLICA IDENTITY FULL, and USING INDEX after the column is widened.', f.relation)
        FROM tree AS f
        JOIN pg_index AS i ON i.indrelid = f.relation AND i.indisreplident
        JOIN pg_inherits AS h ON h.inhrelid = i.indexrelid
        WHERE f.attribute = ANY (i.indkey::smallint[])
      UNION ALL
        -- Tables have such constraints since PostgreSQL 18. When it rebuilds them,
        -- it does not find those that have another name.
        SELECT 15, format('not-null constraint %I of %s has another name in the parent %s', k.conname, f.relation, i.inhparent::regclass),
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_obstacles(target regclass, column_name name)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN QUERY SELECT o.* FROM snowflake_internal.migration_server_obstacles() AS o;
    RETURN QUERY SELECT o.* FROM snowflake_internal.migration_owner_obstacles(target, column_name) AS o;
    -- The other checks require the owner's privileges, because they read rows.
    IF FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT o.* FROM snowflake_internal.migration_column_obstacles(target, column_name) AS o;
    IF NOT FOUND THEN
        RETURN QUERY SELECT o.* FROM snowflake_internal.migration_row_obstacles(target, column_name) AS o;
    END IF;
    RETURN QUERY
        SELECT o.*
        FROM snowflake_internal.migration_linked_columns(target, column_name) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        CROSS JOIN LATERAL snowflake_internal.migration_type_obstacles(r.relation, a.attname) AS o
        WHERE r.is_narrow;
END
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
CREATE FUNCTION snowflake_internal.migration_run_all(relations regclass[], statements text[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    FOR i IN 1 .. coalesce(cardinality(statements), 0) LOOP
        PERFORM snowflake_internal.migration_run(relations[i], statements[i]);
    END LOOP;
END
$function$;
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
    start CONSTANT bigint := coalesce(first_id, -highest_possible - 1);
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
    IF not_own > 0 THEN
        RETURN QUERY SELECT 'IDs with this server''s node number that it cannot have issued', not_own, not_own_top;
    END IF;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_shadows(target regclass, column_name name)
RETURNS TABLE (
    relation regclass, attribute smallint, narrow name, is_required boolean,
    shadow_name name, trigger_name name, check_name name,
    shadow smallint, trigger_oid oid, check_oid oid, is_kept boolean, is_filled boolean
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT r.relation, r.attribute, a.attname, a.attnotnull, n.shadow_name, n.trigger_name, n.check_name,
           s.attnum, t.oid, k.oid, coalesce(s.attnum IS NOT NULL AND t.tgenabled = 'A' AND k.oid IS NOT NULL, false),
           coalesce(k.convalidated, false)
    FROM snowflake_internal.migration_linked_columns(target, column_name) AS r
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_require_filled(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    missing text;
BEGIN
    SELECT string_agg(format('%s.%I', s.relation, s.narrow), ', ' ORDER BY s.relation::text, s.attribute) INTO missing
    FROM snowflake_internal.migration_shadows(target, column_name) AS s
    WHERE NOT s.is_kept OR NOT s.is_filled;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'not all rows are known to have shadow values of: %', missing
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Run the statements of snowflake_migration_plan() with online => true in order.';
    END IF;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_shadow_steps(target regclass, column_name name)
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_internal.migration_do_block(
               format(E'    PERFORM snowflake_internal.migration_lock(%L::pg_catalog.regclass[], text ''ACCESS EXCLUSIVE'');\n',
                      ARRAY[quoted_name.relation])
               || format(E'    ALTER TABLE %s\n        %s;\n', quoted_name.relation,
                         string_agg(concat_ws(E',\n        ',
                             format('ADD COLUMN %I bigint', s.shadow_name),
                             format(CASE WHEN s.is_required
                                         THEN 'ADD CONSTRAINT %1$I CHECK (%2$I IS NOT NULL AND %2$I OPERATOR(pg_catalog.=) %3$I) NOT VALID'
                                         ELSE 'ADD CONSTRAINT %1$I CHECK (%2$I IS NOT DISTINCT FROM %3$I) NOT VALID' END,
                                    s.check_name, s.shadow_name, s.narrow)), E',\n        ' ORDER BY s.attribute))
               || string_agg(
                      CASE WHEN a.attstattarget >= 0
                           THEN format(E'    ALTER TABLE %s ALTER COLUMN %I SET STATISTICS %s;\n', quoted_name.relation, s.shadow_name, a.attstattarget) ELSE '' END
                      || CASE WHEN a.attoptions IS NOT NULL
                              THEN format(E'    ALTER TABLE %s ALTER COLUMN %I SET (%s);\n', quoted_name.relation, s.shadow_name,
                                          array_to_string(a.attoptions, ', ')) ELSE '' END
                      || format(E'    CREATE TRIGGER %I BEFORE INSERT OR UPDATE ON %s\n        FOR EACH ROW EXECUTE FUNCTION snowflake_internal.shadow(%L, %L);\n',
                                s.trigger_name, quoted_name.relation, s.narrow, s.shadow_name)
                      || format(E'    ALTER TABLE %s ENABLE ALWAYS TRIGGER %I;\n', quoted_name.relation, s.trigger_name), '' ORDER BY s.attribute)
               || format(E'    PERFORM snowflake_internal.migration_record_backfill(%L::pg_catalog.regclass, %L::pg_catalog.name, %L::pg_catalog.regclass);\n',
                         snowflake_internal.migration_name(target), column_name, quoted_name.relation)),
           'ACCESS EXCLUSIVE', true,
           format('adds a bigint column beside %s, and the trigger that keeps it up to date, also for replicated rows; holds the lock for a moment, after short attempts to acquire it',
                  string_agg(quote_ident(s.narrow), ', ' ORDER BY s.attribute))
           || coalesce('. Published by ' || pubs.names || format(': first at the subscribers, ALTER TABLE %s %s', quoted_name.relation,
                              string_agg(format('ADD COLUMN %I bigint', s.shadow_name), ', ' ORDER BY s.attribute)), '')
    FROM snowflake_internal.migration_shadows(target, column_name) AS s
    JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attribute
    CROSS JOIN LATERAL (SELECT snowflake_internal.migration_name(s.relation) AS relation) AS quoted_name
    CROSS JOIN LATERAL (SELECT snowflake_internal.migration_publications(s.relation, s.narrow) AS names) AS pubs
    WHERE s.shadow IS NULL
    GROUP BY s.relation, quoted_name.relation, pubs.names
    ORDER BY s.relation = target DESC, s.relation::text
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_drop_shadows(target regclass, column_name name)
RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relations regclass[];
    altered regclass[];
    statements text[];
BEGIN
    relations := ARRAY(
        SELECT DISTINCT e.relation
        FROM snowflake_internal.migration_shadows(target, column_name) AS s
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
        FROM snowflake_internal.migration_shadows(target, column_name) AS s
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
    PERFORM snowflake_internal.migration_end(target, column_name);
    RETURN true;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_shadow_indexes(target regclass, column_name name)
RETURNS TABLE (
    index regclass, relation regclass, shadow_name name, shadow regclass, is_ready boolean, definition text
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.relation, s.attribute, s.shadow_name, s.shadow
        FROM snowflake_internal.migration_shadows(target, column_name) AS s
    ), narrow_index AS MATERIALIZED (
        SELECT i.*, c.relname, c.relnamespace, c.relam, c.reltablespace, c.reloptions,
               snowflake_internal.migration_shadow_name(text 'index', c.relname) AS shadow_name
        FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        -- Invalid indexes, left by CREATE INDEX CONCURRENTLY, are not used and not copied.
        WHERE i.indisvalid AND i.indislive
          AND EXISTS (SELECT FROM shadow AS s WHERE s.relation = i.indrelid AND s.attribute = ANY (i.indkey::smallint[]))
    ), part AS (
        SELECT m.indexrelid, k.place, coalesce(s.shadow, k.attribute) AS attribute,
               CASE WHEN s.attribute IS NOT NULL THEN quote_ident(s.shadow_name)
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
    ), mapped AS (
        SELECT m.*, p.keys, p.included, p.attributes
        FROM narrow_index AS m
        JOIN (SELECT p.indexrelid, array_agg(p.attribute ORDER BY p.place) AS attributes,
                     string_agg(p.text, ', ' ORDER BY p.place) FILTER (WHERE p.place <= i.indnkeyatts) AS keys,
                     string_agg(p.text, ', ' ORDER BY p.place) FILTER (WHERE p.place > i.indnkeyatts) AS included
              FROM part AS p JOIN pg_index AS i ON i.indexrelid = p.indexrelid
              GROUP BY p.indexrelid) AS p ON p.indexrelid = m.indexrelid
    )
    SELECT m.indexrelid::regclass, m.indrelid::regclass, m.shadow_name, j.indexrelid::regclass,
           coalesce(j.indisvalid AND j.indisready AND j.indislive AND j.indisunique = m.indisunique
                    AND j.indnkeyatts = m.indnkeyatts AND ARRAY(SELECT unnest(j.indkey::smallint[])) = m.attributes, false),
           concat('CREATE ', CASE WHEN m.indisunique THEN 'UNIQUE ' END, 'INDEX CONCURRENTLY ', quote_ident(m.shadow_name),
                  ' ON ', snowflake_internal.migration_name(m.indrelid::regclass),
                  ' USING ', (SELECT quote_ident(am.amname) FROM pg_am AS am WHERE am.oid = m.relam),
                  ' (', m.keys, ')', ' INCLUDE (' || m.included || ')',
                  CASE WHEN m.indnullsnotdistinct THEN ' NULLS NOT DISTINCT' END,
                  ' WITH (' || (SELECT string_agg(format('%I = %L', v.option_name, v.option_value), ', ')
                                FROM pg_options_to_table(m.reloptions) AS v) || ')',
                  ' TABLESPACE ' || (SELECT quote_ident(t.spcname) FROM pg_tablespace AS t WHERE t.oid = m.reltablespace),
                  ' WHERE ' || pg_get_expr(m.indpred, m.indrelid))
    FROM mapped AS m
    LEFT JOIN (pg_index AS j JOIN pg_class AS jc ON jc.oid = j.indexrelid)
        ON j.indrelid = m.indrelid AND jc.relname = m.shadow_name AND jc.relnamespace = m.relnamespace
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_index_steps(target regclass, column_name name)
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT step.statement, 'SHARE UPDATE EXCLUSIVE', false, step.note
    FROM snowflake_internal.migration_shadow_indexes(target, column_name) AS i
    CROSS JOIN LATERAL (
        SELECT 1 AS place, format('DROP INDEX CONCURRENTLY %s', snowflake_internal.migration_name(i.shadow)) AS statement,
               'removes the invalid index of an interrupted build' AS note
        WHERE i.shadow IS NOT NULL
      UNION ALL
        SELECT 2, i.definition,
               format('builds the counterpart of index %s; needs as much disk space as that index (%s now), and as much WAL', i.index, pg_size_pretty(pg_relation_size(i.index)))
    ) AS step
    WHERE NOT i.is_ready
    ORDER BY i.relation = target DESC, i.relation::text, i.index::text, step.place
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_shadow_foreign_keys(target regclass, column_name name)
RETURNS TABLE (
    foreign_key oid, name name, relation regclass, referenced regclass, shadow_name name, shadow oid,
    is_to_be_valid boolean, is_ready boolean, definition text
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.relation, s.attribute, s.shadow_name, s.shadow
        FROM snowflake_internal.migration_shadows(target, column_name) AS s
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_foreign_key_steps(target regclass, column_name name)
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT step.statement, step.lock_level, true, step.note
    FROM snowflake_internal.migration_shadow_foreign_keys(target, column_name) AS f
    CROSS JOIN LATERAL (
        SELECT 1 AS place,
               snowflake_internal.migration_do_block(
                   format(E'    PERFORM snowflake_internal.migration_lock(%L::pg_catalog.regclass[], text ''SHARE ROW EXCLUSIVE'');\n',
                          ARRAY(SELECT snowflake_internal.migration_name(f.relation) UNION SELECT snowflake_internal.migration_name(f.referenced)))
                   || format(E'    PERFORM snowflake_internal.migration_require_filled(%L::pg_catalog.regclass, %L::pg_catalog.name);\n',
                             snowflake_internal.migration_name(target), column_name)
                   || format(E'    %s;\n', f.definition)) AS statement,
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_record_backfill(target regclass, column_name name, relation regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- Waits for a session that copies the same table.
    step snowflake_internal.progress := snowflake_internal.migration_progress(target, column_name, relation);
    file CONSTANT oid := pg_relation_filenode(relation);
    is_unfinished CONSTANT boolean := step.filenode = file AND (step.blocks_done < step.blocks_total OR step.skipped <> '{}');
BEGIN
    IF is_unfinished IS NOT TRUE THEN
        step.target := target;
        step.column_name := column_name;
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_online_step(target regclass, column_name name)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE
        WHEN EXISTS (SELECT FROM snowflake_internal.migration_shadows(target, column_name) AS s
                     WHERE s.shadow IS NULL) THEN 'adding shadow columns'
        WHEN EXISTS (SELECT FROM snowflake_internal.migration_shadows(target, column_name) AS s
                     WHERE NOT s.is_filled)
            THEN CASE WHEN EXISTS (SELECT FROM snowflake_internal.progress AS p
                                   WHERE p.target = migration_online_step.target
                                     AND p.column_name = migration_online_step.column_name
                                     AND (p.blocks_done < p.blocks_total OR p.skipped <> '{}'))
                      THEN 'backfill' ELSE 'validating rows' END
        WHEN EXISTS (SELECT FROM snowflake_internal.migration_shadow_indexes(target, column_name) AS i
                     WHERE NOT i.is_ready) THEN 'building indexes'
        WHEN EXISTS (SELECT FROM snowflake_internal.migration_shadow_foreign_keys(target, column_name) AS f
                     WHERE NOT f.is_ready) THEN 'adding foreign keys'
        ELSE 'ready to swap' END
$function$;
CREATE OR REPLACE VIEW snowflake_migrations AS
    SELECT c.oid::pg_catalog.regclass AS table_name,
           p.column_name,
           snowflake_internal.migration_online_step(c.oid::pg_catalog.regclass, p.column_name) AS step,
           p.rows_done, p.rows_total,
           pg_catalog.round(p.run_rows / CASE WHEN p.run_seconds <> 0::pg_catalog.float8 THEN p.run_seconds END)::bigint AS rows_per_second,
           pg_catalog.make_interval(secs => pg_catalog.round(
               (p.rows_total - p.rows_done)::pg_catalog.float8 * p.run_seconds
               / CASE WHEN p.run_rows <> 0::pg_catalog.float8 THEN p.run_rows END)) AS time_left
    FROM (SELECT s.target, s.column_name, pg_catalog.sum(s.rows_done)::bigint AS rows_done, pg_catalog.sum(s.rows_total)::bigint AS rows_total,
                 pg_catalog.sum(s.run_rows)::double precision AS run_rows, pg_catalog.sum(s.run_seconds) AS run_seconds
          FROM snowflake_internal.progress AS s
          GROUP BY s.target, s.column_name) AS p
    JOIN pg_catalog.pg_class AS c ON c.oid = p.target::pg_catalog.oid
    WHERE EXISTS (SELECT FROM snowflake_internal.migration_shadows(c.oid::pg_catalog.regclass, p.column_name) AS s
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_backfill_batch(
    target regclass, column_name name, relation regclass, batch_size integer,
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
    is_retry boolean;
    first bigint;
    last bigint;
    seen bigint;  -- Rows processed, by estimate: rows that move are not counted twice.
    missing bigint;
    written bigint := 0;
    locked_blocks int8multirange;
    elapsed double precision;
    former_role text;
    rate double precision;
BEGIN
    is_waiting := false;
    step := snowflake_internal.migration_progress(target, column_name, relation);
    SELECT string_agg(format('%I = source.%I', s.shadow_name, s.narrow), ', '),
           '(' || string_agg(format('source.%I IS DISTINCT FROM source.%I', s.shadow_name, s.narrow), ' OR ') || ')'
    INTO assignments, is_missing
    FROM snowflake_internal.migration_shadows(target, column_name) AS s
    WHERE s.relation = migration_backfill_batch.relation AND s.is_kept;
    IF step.target IS NULL OR assignments IS NULL THEN
        RAISE EXCEPTION 'the migration of column "%" of % was ended by another session', column_name, target
            USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF step.filenode IS DISTINCT FROM pg_relation_filenode(relation) THEN
        -- Rewritten by VACUUM FULL or a similar command.
        PERFORM snowflake_internal.migration_record_backfill(target, column_name, relation);
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

    LOOP
        found := snowflake_internal.migration_run(relation, format(
            'SELECT count(*) FROM ONLY %s AS source WHERE source.ctid >= %L::tid AND source.ctid < %L::tid AND %s',
            quoted_name, format('(%s,0)', first), format('(%s,0)', last), is_missing));
        missing := found[1]::bigint;
        EXIT WHEN missing <= batch_size OR last - first <= 1;
        last := first + greatest(1, (last - first) * batch_size / missing);
    END LOOP;

    IF missing > 0 THEN
        IF EXISTS (SELECT FROM snowflake_internal.migration_update_triggers(relation) AS t WHERE t.enabled = 'O') THEN
            former_role := current_setting('session_replication_role');
            PERFORM set_config('session_replication_role', 'replica', true);
        END IF;
        found := snowflake_internal.migration_run(relation, format(
            'WITH written AS (
                 UPDATE ONLY %2$s AS source SET %3$s
                 WHERE source.ctid = ANY (ARRAY(
                     SELECT source.ctid FROM ONLY %2$s AS source WHERE source.ctid >= %4$L::tid AND source.ctid < %5$L::tid AND %1$s
                     LIMIT %6$L::bigint FOR NO KEY UPDATE SKIP LOCKED))
                 RETURNING 1)
             SELECT count(*) FROM written',
            is_missing, quoted_name, assignments, format('(%s,0)', first), format('(%s,0)', last), batch_size));
        written := found[1]::bigint;
        IF former_role IS NOT NULL THEN
            PERFORM set_config('session_replication_role', former_role, true);
        END IF;
        found := snowflake_internal.migration_run(relation, format(
            'SELECT count(*), range_agg(int8range(m.block, m.block + 1))
             FROM (SELECT (source.ctid::text::point)[0]::bigint AS block
                   FROM ONLY %s AS source WHERE source.ctid >= %L::tid AND source.ctid < %L::tid AND %s) AS m',
            quoted_name, format('(%s,0)', first), format('(%s,0)', last), is_missing));
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
        WHERE p.target = migration_backfill_batch.target
          AND p.column_name = migration_backfill_batch.column_name));
    PERFORM snowflake_internal.migration_record_progress(step);

    SELECT m.rows_per_second INTO rate FROM (
        SELECT sum(p.run_rows) / nullif(sum(p.run_seconds), 0) AS rows_per_second
        FROM snowflake_internal.progress AS p
        WHERE p.target = migration_backfill_batch.target
          AND p.column_name = migration_backfill_batch.column_name) AS m;
    report := CASE WHEN is_waiting
        THEN format('%s: rows are locked by other transactions, and will be tried again', step.relation)
        ELSE (SELECT format('%s: %s of %s rows, %s rows/s, %s left', step.relation, sum(p.rows_done), sum(p.rows_total), round(rate),
                            coalesce(make_interval(secs => round((sum(p.rows_total) - sum(p.rows_done)) / nullif(rate, 0)))::text, 'unknown time'))
              FROM snowflake_internal.progress AS p
              WHERE p.target = migration_backfill_batch.target
                AND p.column_name = migration_backfill_batch.column_name) END;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_backfill_begin(
    target regclass, column_name name, batch_size integer, pause interval, max_replay_lag interval
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
    PERFORM snowflake_internal.migration_require_owner(target);
    IF batch_size IS NULL OR batch_size < 1 THEN
        RAISE EXCEPTION 'batch_size must be at least 1, but is %', coalesce(batch_size::text, 'NULL') USING ERRCODE = 'invalid_parameter_value';
    ELSIF pause IS NULL OR pause < interval '0' THEN
        RAISE EXCEPTION 'pause must not be negative, but is %', coalesce(pause::text, 'NULL') USING ERRCODE = 'invalid_parameter_value';
    ELSIF max_replay_lag <= interval '0' THEN
        RAISE EXCEPTION 'max_replay_lag must be longer than 0, but is %', max_replay_lag USING ERRCODE = 'invalid_parameter_value';
    ELSIF max_replay_lag IS NOT NULL AND NOT pg_has_role('pg_read_all_stats', 'USAGE') THEN
        RAISE EXCEPTION 'permission denied to read the replay lag of standbys'
            USING ERRCODE = 'insufficient_privilege',
                  HINT = format('GRANT pg_monitor TO %I, or leave max_replay_lag out.', current_user);
    END IF;
    SELECT array_agg(DISTINCT s.relation) FILTER (WHERE s.is_kept),
           string_agg(format('%s.%I', s.relation, s.narrow), ', ') FILTER (WHERE NOT s.is_kept)
    INTO relations, missing
    FROM snowflake_internal.migration_shadows(target, column_name) AS s;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'columns have no shadow column yet: %', missing
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Run the statements of snowflake_migration_plan() with online => true in order.';
    END IF;
    SELECT string_agg(format('%s. %s', o.obstacle, o.remedy), E'\n'), min(o.sqlstate_code) INTO obstacles, code
    FROM unnest(relations) AS r (relation)
    CROSS JOIN LATERAL snowflake_internal.migration_update_obstacles(r.relation) AS o;
    IF obstacles IS NOT NULL THEN
        RAISE EXCEPTION 'cannot copy column "%" of %', column_name, target
            USING ERRCODE = code, DETAIL = obstacles, HINT = 'Nothing was changed. Remove the obstacles, then run it again.';
    END IF;
    relations := ARRAY(SELECT r.relation FROM unnest(relations) AS r (relation) ORDER BY r.relation = target DESC, r.relation::text);
    FOREACH relation IN ARRAY relations LOOP
        PERFORM snowflake_internal.migration_record_backfill(target, column_name, relation);
    END LOOP;
    RETURN relations;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_backfill_steps(target regclass, column_name name)
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
          FROM snowflake_internal.migration_shadows(target, column_name) AS s WHERE NOT s.is_filled) AS t;
    IF tables IS NULL THEN
        RETURN;
    END IF;
    -- Not needed if all tables are copied. The validation that follows would show
    -- any missing rows.
    IF EXISTS (SELECT FROM snowflake_internal.migration_shadows(target, column_name) AS s
               LEFT JOIN snowflake_internal.progress AS p
                   ON p.target = migration_backfill_steps.target
                  AND p.column_name = migration_backfill_steps.column_name AND p.relation = s.relation
               WHERE NOT s.is_filled
                 AND (s.is_kept AND p.blocks_done >= p.blocks_total AND p.skipped = '{}' AND p.filenode = pg_relation_filenode(s.relation)) IS NOT TRUE)
    THEN
        statement := format('CALL %s.snowflake_migrate_backfill(%L::pg_catalog.regclass, %L::pg_catalog.name)',
                            extension_schema, snowflake_internal.migration_name(target), column_name);
        lock_level := 'ROW EXCLUSIVE';
        in_transaction := false;
        note := format('copies the columns of about %s rows of %s in batches, one transaction each. Each row is written again: up to %s more disk space until it is vacuumed, and about %s of WAL',
                       rows, tables, pg_size_pretty(bytes), pg_size_pretty(wal));
        RETURN NEXT;
    END IF;
    FOR statement, note IN
        SELECT format('ALTER TABLE %s VALIDATE CONSTRAINT %I', snowflake_internal.migration_name(s.relation), s.check_name),
               format('checks that each row has its shadow of %I, which later steps rely on. If it fails (23514), CALL snowflake_migrate_backfill() again', s.narrow)
        FROM snowflake_internal.migration_shadows(target, column_name) AS s
        WHERE NOT s.is_filled
        ORDER BY s.relation = target DESC, s.relation::text, s.attribute
    LOOP
        lock_level := 'SHARE UPDATE EXCLUSIVE';
        in_transaction := true;
        RETURN NEXT;
    END LOOP;
END
$function$;
CREATE OR REPLACE PROCEDURE snowflake_migrate_backfill(
    target regclass, column_name name DEFAULT NULL, batch_size integer DEFAULT 10000,
    pause interval DEFAULT '0', max_replay_lag interval DEFAULT NULL
) LANGUAGE plpgsql
AS $procedure$
DECLARE
    key_column pg_catalog.name;
    relations pg_catalog.regclass[];
    watermark pg_catalog.pg_lsn;
    watermark_at timestamp with time zone;
    last_notice_at timestamp with time zone;
    lagging pg_catalog.text;
    is_done boolean;
    is_waiting boolean;
    report pg_catalog.text;
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
    key_column := snowflake_internal.migration_column(target, column_name);
    relations := snowflake_internal.migration_backfill_begin(target, key_column, batch_size, pause, max_replay_lag);
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    FOR i IN 1 .. pg_catalog.cardinality(relations) LOOP
        LOOP
            WHILE max_replay_lag IS NOT NULL LOOP
                SELECT l.mark, l.marked_at, l.lagging INTO watermark, watermark_at, lagging
                FROM snowflake_internal.migration_replay_lag(max_replay_lag, watermark, watermark_at) AS l;
                EXIT WHEN lagging IS NULL;
                IF last_notice_at IS NULL OR pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) last_notice_at
                                      OPERATOR(pg_catalog.>) interval '10 seconds' THEN
                    last_notice_at := pg_catalog.clock_timestamp();
                    RAISE NOTICE 'waiting for %: more than % behind', lagging, max_replay_lag;
                END IF;
                PERFORM pg_catalog.pg_sleep(0.2);
                COMMIT;
                SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
            END LOOP;
            SELECT b.is_done, b.is_waiting, b.report INTO is_done, is_waiting, report
            FROM snowflake_internal.migration_backfill_batch(target, key_column, relations[i], batch_size) AS b;
            COMMIT;
            SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
            EXIT WHEN is_done;
            IF NOT is_waiting THEN
                RAISE NOTICE '%', report;
                PERFORM pg_catalog.pg_sleep_for(pause);
            ELSE
                IF last_notice_at IS NULL OR pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) last_notice_at
                                      OPERATOR(pg_catalog.>) interval '10 seconds' THEN
                    last_notice_at := pg_catalog.clock_timestamp();
                    RAISE NOTICE '%', report;
                END IF;
                PERFORM pg_catalog.pg_sleep(0.5);
            END IF;
            -- A snapshot held while waiting would keep dead rows from being removed.
            COMMIT;
            SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        END LOOP;
    END LOOP;
END
$procedure$;
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_online_obstacles(target regclass, column_name name)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH narrow_column AS MATERIALIZED (
        SELECT s.*, c.relkind, c.relispartition, c.relpersistence, c.relforcerowsecurity, c.relreplident, c.relnamespace, c.relname,
               c.relowner, a.attidentity
        FROM snowflake_internal.migration_shadows(target, column_name) AS s
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
        FROM snowflake_internal.migration_shadow_foreign_keys(target, column_name) AS f
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
        FROM narrow_column AS m WHERE m.attidentity <> '' AND (m.relation <> target OR m.narrow <> column_name)
      UNION ALL
        SELECT 5, format('row-level security is forced on the owner of %s, but the migration has to see every row', m.relation),
               format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY while it is migrated.', m.relation), '55000'
        FROM narrow_column AS m WHERE m.relforcerowsecurity AND m.relation <> target
      UNION ALL
        SELECT 6, format('index %s uses column %I of %s in an expression or in its WHERE clause', i.indexrelid::regclass, i.narrow, i.relation),
               'Drop it, and create it again (CONCURRENTLY) afterwards.', '55000'
        FROM indexed AS i
        WHERE i.attribute <> ALL (i.indkey::smallint[]) OR i.indpred::text ~ format(' :varattno %s ', i.attribute)
           OR EXISTS (SELECT FROM pg_index AS e WHERE e.indexrelid = i.indexrelid AND e.indexprs::text ~ format(' :varattno %s ', i.attribute))
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
        SELECT DISTINCT 7, format('%s constraint %I of %s uses column %I', CASE k.contype WHEN 'x' THEN 'exclusion' ELSE 'check' END,
                                  k.conname, m.relation, m.narrow),
               CASE k.contype WHEN 'x' THEN 'An existing index cannot become such a constraint: drop it, or use the plan for a maintenance window (online => false).'
                    ELSE 'Drop it, and add it again afterwards (NOT VALID, then VALIDATE CONSTRAINT).' END, '55000'
        FROM narrow_column AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND k.contype IN ('c', 'x') AND m.attribute = ANY (k.conkey)
        WHERE NOT EXISTS (SELECT FROM narrow_column AS own WHERE own.check_oid = k.oid)
      UNION ALL
        SELECT DISTINCT 7, format('constraint %I of %s is WITHOUT OVERLAPS or has a PERIOD', k.conname, k.conrelid::regclass),
               'An existing index cannot become such a constraint: drop it, or use the plan for a maintenance window (online => false).', '55000'
        FROM narrow_column AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND m.attribute = ANY (k.conkey) OR k.confrelid = m.relation AND m.attribute = ANY (k.confkey)
        WHERE k.contype IN ('p', 'u', 'f') AND (to_jsonb(k) ->> 'conperiod')::boolean
      UNION ALL
        SELECT DISTINCT 7, format('foreign key %I of %s sets a default', f.name, f.relation),
               'If there are two such foreign keys, only the first one to fire works: use the plan for a maintenance window (online => false).', '55000'
        FROM snowflake_internal.migration_shadow_foreign_keys(target, column_name) AS f
        JOIN pg_constraint AS k ON k.oid = f.foreign_key AND 'd' IN (k.confdeltype, k.confupdtype)
      UNION ALL
        SELECT 8, format('not-null constraint %I of %s is not valid', k.conname, m.relation),
               format('ALTER TABLE %s VALIDATE CONSTRAINT %I.', m.relation, k.conname), '55000'
        FROM narrow_column AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND k.contype = 'n' AND k.conkey = ARRAY[m.attribute] AND NOT k.convalidated
      UNION ALL
        SELECT 9, format('statistics object %s uses column %I of %s', format('%I.%I', n.nspname, x.stxname), m.narrow, m.relation),
               'Drop it, and create it again afterwards.', '55000'
        FROM narrow_column AS m
        JOIN pg_depend AS d ON d.classid = 'pg_statistic_ext'::regclass AND d.refclassid = 'pg_class'::regclass
                           AND d.refobjid = m.relation AND d.refobjsubid = m.attribute
        JOIN pg_statistic_ext AS x ON x.oid = d.objid
        JOIN pg_namespace AS n ON n.oid = x.stxnamespace
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
        FROM snowflake_internal.migration_shadow_indexes(target, column_name) AS i
        JOIN pg_class AS c ON c.relname = i.shadow_name
                          AND c.relnamespace = (SELECT o.relnamespace FROM pg_class AS o WHERE o.oid = i.index)
        LEFT JOIN pg_index AS own ON own.indexrelid = c.oid AND own.indrelid = i.relation
        WHERE own.indexrelid IS NULL OR own.indisvalid AND NOT i.is_ready
      UNION ALL
        SELECT 15, format('constraint %I of %s has a name that the migration needs', k.conname, f.relation), 'Rename or drop it.', '55000'
        FROM snowflake_internal.migration_shadow_foreign_keys(target, column_name) AS f
        JOIN pg_constraint AS k ON k.conrelid = f.relation AND k.conname = f.shadow_name
        WHERE NOT f.is_ready AND (k.contype <> 'f' OR k.convalidated)
      UNION ALL
        SELECT DISTINCT 16, format('permission denied for table %s, which column %I of %s references', f.referenced, m.narrow, m.relation),
               format('GRANT REFERENCES, UPDATE ON %s TO %I.', f.referenced, current_user), '42501'
        FROM narrow_column AS m
        JOIN snowflake_internal.migration_shadow_foreign_keys(target, column_name) AS f ON f.relation = m.relation
        WHERE NOT (has_table_privilege(f.referenced, 'REFERENCES') AND has_table_privilege(f.referenced, 'UPDATE, DELETE, TRUNCATE'))
      UNION ALL
        SELECT DISTINCT 16, format('must be owner of table %s', f.relation),
               format('Its foreign key %I has to be created again: run it as a member of %I, or as a superuser.', f.name, pg_get_userbyid(c.relowner)), '42501'
        FROM snowflake_internal.migration_shadow_foreign_keys(target, column_name) AS f
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
    )
    SELECT f.obstacle, f.remedy, f.code FROM found AS f
  UNION ALL
    SELECT o.obstacle, o.remedy, o.sqlstate_code
    FROM (SELECT DISTINCT m.relation FROM narrow_column AS m) AS r
    CROSS JOIN LATERAL snowflake_internal.migration_update_obstacles(r.relation) AS o
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_plan_kind_obstacles(target regclass, column_name name, online boolean)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF online THEN
        RETURN QUERY SELECT o.* FROM snowflake_internal.migration_online_obstacles(target, column_name) AS o;
    ELSE
        RETURN QUERY
            SELECT format('column %I of %s is being migrated online', s.narrow, s.relation),
                   'Request the rest of that plan (online => true), or cancel it with snowflake_migrate_revert().', '55000'
            FROM snowflake_internal.migration_shadows(target, column_name) AS s
            WHERE s.trigger_oid IS NOT NULL;
    END IF;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_swap_relations(target regclass, column_name name)
RETURNS regclass[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY(
        SELECT target
      UNION
        SELECT s.relation FROM snowflake_internal.migration_shadows(target, column_name) AS s
      UNION
        SELECT other.relation
        FROM snowflake_internal.migration_shadow_foreign_keys(target, column_name) AS f
        CROSS JOIN LATERAL (VALUES (f.relation), (f.referenced)) AS other (relation))
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_swap_sequences(target regclass, column_name name)
RETURNS regclass[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY(
        SELECT d.objid::regclass
        FROM snowflake_internal.migration_shadows(target, column_name) AS s
        JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                           AND d.refobjid = s.relation AND d.refobjsubid = s.attribute AND d.deptype IN ('a', 'i')
        JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S')
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_swap_obstacles(target regclass, column_name name)
RETURNS TABLE (obstacle text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('column %I of %s has no shadow column that is kept up to date', s.narrow, s.relation)
    FROM snowflake_internal.migration_shadows(target, column_name) AS s
    WHERE NOT s.is_kept
  UNION ALL
    SELECT format('not all rows of %s are known to have the shadow value of column %I', s.relation, s.narrow)
    FROM snowflake_internal.migration_shadows(target, column_name) AS s
    WHERE s.is_kept AND NOT s.is_filled
  UNION ALL
    SELECT format(CASE WHEN i.shadow IS NULL THEN 'index %s has no counterpart on the shadow columns'
                       ELSE 'the counterpart of index %s is not valid' END, i.index)
    FROM snowflake_internal.migration_shadow_indexes(target, column_name) AS i
    WHERE NOT i.is_ready
  UNION ALL
    SELECT format(CASE WHEN f.shadow IS NULL THEN 'foreign key %I of %s has no counterpart on the shadow columns'
                       ELSE 'the counterpart of foreign key %I of %s is not validated' END, f.name, f.relation)
    FROM snowflake_internal.migration_shadow_foreign_keys(target, column_name) AS f
    WHERE NOT f.is_ready
  UNION ALL
    SELECT format('%s: %s', o.obstacle, o.remedy) FROM snowflake_internal.migration_obstacles(target, column_name) AS o
  UNION ALL
    SELECT format('%s: %s', o.obstacle, o.remedy) FROM snowflake_internal.migration_online_obstacles(target, column_name) AS o
$function$;
CREATE FUNCTION snowflake_internal.migration_swap_commands(
    target regclass, column_name name, OUT relations regclass[], OUT statements text[]
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.*, snowflake_internal.migration_name(s.relation) AS quoted_name,
               s.relation = target AND s.narrow = migration_swap_commands.column_name AS is_target
        FROM snowflake_internal.migration_shadows(target, column_name) AS s
    ), indexed AS MATERIALIZED (
        SELECT x.index, x.shadow, x.shadow_name, x.relation, snowflake_internal.migration_name(x.relation) AS quoted_name,
               c.relname AS name, n.nspname AS schema, k.oid AS constraint_oid, k.contype, k.condeferrable, k.condeferred,
               i.indisreplident, i.indisclustered
        FROM snowflake_internal.migration_shadow_indexes(target, column_name) AS x
        JOIN pg_index AS i ON i.indexrelid = x.index
        JOIN pg_class AS c ON c.oid = x.index
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        LEFT JOIN pg_constraint AS k ON k.conindid = x.index AND k.conrelid = x.relation AND k.contype IN ('p', 'u')
    ), referencing AS MATERIALIZED (
        SELECT f.*, snowflake_internal.migration_name(f.relation) AS quoted_name
        FROM snowflake_internal.migration_shadow_foreign_keys(target, column_name) AS f
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
        -- This drops its indexes and constraints too.
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
        -- The column's statistics settings, if they were changed in the meantime.
        SELECT c.place, s.relation, format('ALTER TABLE %s ALTER COLUMN %I %s', s.quoted_name, s.narrow, c.action)
        FROM shadow AS s
        JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attribute
        JOIN pg_attribute AS b ON b.attrelid = s.relation AND b.attnum = s.shadow
        CROSS JOIN LATERAL (
            SELECT 12 AS place, format('SET STATISTICS %s', coalesce(a.attstattarget, -1)) AS action
            WHERE a.attstattarget IS DISTINCT FROM b.attstattarget
          UNION ALL
            SELECT 12, format('RESET (%s)', (SELECT string_agg(quote_ident(o.option_name), ', ') FROM pg_options_to_table(b.attoptions) AS o))
            WHERE b.attoptions IS NOT NULL AND a.attoptions IS DISTINCT FROM b.attoptions
          UNION ALL
            SELECT 13, format('SET (%s)', array_to_string(a.attoptions, ', '))
            WHERE a.attoptions IS NOT NULL AND a.attoptions IS DISTINCT FROM b.attoptions
        ) AS c
      UNION ALL
        SELECT 12, s.relation, format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', s.quoted_name, s.narrow, pg_get_expr(d.adbin, d.adrelid))
        FROM shadow AS s JOIN pg_attrdef AS d ON d.adrelid = s.relation AND d.adnum = s.attribute
        WHERE NOT s.is_target
      UNION ALL
        SELECT 12, target, format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.snowflake_nextval()',
                          snowflake_internal.migration_name(target), migration_swap_commands.column_name, '@extschema@')
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
        SELECT 15, s.relation, format('GRANT %s (%I) ON %s TO %s%s', g.privilege_type, s.narrow, s.quoted_name,
                          CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END,
                          CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
        FROM shadow AS s
        JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attribute
        CROSS JOIN LATERAL aclexplode(a.attacl) AS g
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
        SELECT 16, s.relation, format('SECURITY LABEL FOR %I ON COLUMN %s.%I IS %L', l.provider, s.quoted_name, s.narrow, l.label)
        FROM shadow AS s JOIN pg_seclabel AS l ON l.classoid = 'pg_class'::regclass AND l.objoid = s.relation AND l.objsubid = s.attribute
    )
    SELECT array_agg(s.relation ORDER BY s.place, s.text), array_agg(s.text ORDER BY s.place, s.text) FROM statement AS s
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_not_null_names(target regclass, column_name name)
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(jsonb_agg(jsonb_build_object('relation', s.relation::oid, 'column', s.narrow, 'name', k.conname,
                                                 'comment', obj_description(k.oid, 'pg_constraint'),
                                                 'is_inherited', NOT k.connoinherit)), '[]')
    FROM snowflake_internal.migration_shadows(target, column_name) AS s
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_require_ready(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    missing text;
BEGIN
    IF NOT EXISTS (SELECT FROM snowflake_internal.migration_shadows(target, column_name)) THEN
        missing := 'No column is too narrow.';
    ELSIF NOT snowflake_internal.migration_is_switched(target, column_name)
          AND NOT snowflake_internal.migration_is_recorded(target, column_name) THEN
        missing := 'The sequence of the column is not recorded yet.';
    ELSE
        SELECT string_agg(o.obstacle, E'\n') INTO missing
        FROM snowflake_internal.migration_swap_obstacles(target, column_name) AS o;
    END IF;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'column "%" of % is not ready to be swapped', column_name, target
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = missing,
                  HINT = 'Nothing was changed by this statement. Request the plan again, and run its statements in order.';
    END IF;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_old_snapshots(target regclass, column_name name)
RETURNS TABLE (holder text, virtual_transaction text) LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH proof AS MATERIALIZED (
        SELECT min(age(k.xmin)) AS age
        FROM snowflake_internal.migration_shadows(target, column_name) AS s
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_await_snapshots(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    time_limit CONSTANT interval := snowflake_internal.migration_lock_time_limit();
    started_at CONSTANT timestamptz := clock_timestamp();
    last_notice_at timestamptz := started_at;
    -- Only the present transactions matter. Later ones have new snapshots, even
    -- if an old transaction still running makes them look older.
    initial_holders CONSTANT text[] := ARRAY(SELECT o.virtual_transaction FROM snowflake_internal.migration_old_snapshots(target, column_name) AS o);
    holders text;
BEGIN
    LOOP
        PERFORM pg_stat_clear_snapshot();
        SELECT string_agg(o.holder, ', ') INTO holders
        FROM snowflake_internal.migration_old_snapshots(target, column_name) AS o
        WHERE o.virtual_transaction IS NULL OR o.virtual_transaction = ANY (initial_holders);
        IF holders IS NULL THEN
            RETURN;
        ELSIF clock_timestamp() - started_at > time_limit THEN
            RAISE EXCEPTION 'transactions that started before all rows of column "%" of % were copied have not ended within %', column_name, target, time_limit
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
    target regclass, column_name name, relations regclass[], before text, altered regclass[], statements text[], not_nulls jsonb)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    missing text;
    not_null record;
BEGIN
    PERFORM snowflake_internal.migration_lock(relations, text 'ACCESS EXCLUSIVE');
    IF snowflake_internal.migration_fingerprint(relations) IS DISTINCT FROM before THEN
        IF NOT snowflake_internal.migration_swap_relations(target, column_name) <@ relations THEN
            RAISE EXCEPTION 'column "%" of % is not ready to be swapped', column_name, target
                USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'A foreign key was added in the meantime.',
                      HINT = 'Nothing was changed by this statement. Request the plan again, and run its statements in order.';
        END IF;
        PERFORM snowflake_internal.migration_require_ready(target, column_name);
        SELECT s.relations, s.statements INTO altered, statements
        FROM snowflake_internal.migration_swap_commands(target, column_name) AS s;
        not_nulls := snowflake_internal.migration_not_null_names(target, column_name);
    END IF;
    -- The sequence has advanced since it was recorded.
    PERFORM snowflake_internal.migration_record_origin(target, column_name);
    PERFORM snowflake_internal.migration_run_all(altered, statements);
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
    -- Only needed for a layout whose first IDs fit into an integer.
    IF snowflake_internal.migration_first_id() <= 2147483647 THEN
        SELECT string_agg(format('%s. %s', o.obstacle, o.remedy), E'\n') INTO missing
        FROM snowflake_internal.migration_row_obstacles(target, column_name) AS o;
        IF missing IS NOT NULL THEN
            RAISE EXCEPTION 'cannot migrate column "%" of %', column_name, target
                USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = missing,
                      HINT = 'Nothing was changed by this statement.';
        END IF;
    END IF;
    PERFORM snowflake_internal.migration_end(target, column_name);
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_swap(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relations CONSTANT regclass[] := snowflake_internal.migration_swap_relations(target, column_name);
    sequences CONSTANT regclass[] := snowflake_internal.migration_swap_sequences(target, column_name);
    before CONSTANT text := snowflake_internal.migration_fingerprint(relations);
    altered regclass[];
    statements text[];
    not_nulls jsonb;
    started_at timestamptz;
    last_notice_at timestamptz;
    pause double precision := 0.25;
BEGIN
    PERFORM snowflake_internal.migration_require_owner(target);
    PERFORM snowflake_internal.migration_require_ready(target, column_name);
    PERFORM snowflake_internal.migration_await_snapshots(target, column_name);
    SELECT s.relations, s.statements INTO altered, statements
    FROM snowflake_internal.migration_swap_commands(target, column_name) AS s;
    not_nulls := snowflake_internal.migration_not_null_names(target, column_name);
    started_at := clock_timestamp();
    last_notice_at := started_at;
    LOOP
        BEGIN
            PERFORM snowflake_internal.migration_swap_locked(target, column_name, relations, before, altered, statements, not_nulls);
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_online_steps(target regclass, column_name name)
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN QUERY SELECT s.* FROM snowflake_internal.migration_shadow_steps(target, column_name) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_internal.migration_backfill_steps(target, column_name) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_internal.migration_index_steps(target, column_name) AS s;
    RETURN QUERY SELECT s.* FROM snowflake_internal.migration_foreign_key_steps(target, column_name) AS s;
    -- Wide columns without statistics are included, because the check after a
    -- migration includes them.
    RETURN QUERY
        SELECT format('ANALYZE %s (%s)', snowflake_internal.migration_name(c.relation), string_agg(quote_ident(c.name), ', ' ORDER BY c.attribute)),
               'SHARE UPDATE EXCLUSIVE', true, 'collects statistics for the planner'
        FROM (SELECT s.relation, s.attribute, s.shadow_name AS name
              FROM snowflake_internal.migration_shadows(target, column_name) AS s
              WHERE NOT s.is_kept OR NOT s.is_filled OR snowflake_internal.migration_lacks_statistics(s.relation, s.shadow_name)
            UNION ALL
              SELECT r.relation, r.attribute, a.attname
              FROM snowflake_internal.migration_linked_columns(target, column_name) AS r
              JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
              JOIN pg_class AS o ON o.oid = r.relation AND pg_has_role(o.relowner, 'USAGE')
              WHERE NOT r.is_narrow AND snowflake_internal.migration_lacks_statistics(r.relation, a.attname)) AS c
        GROUP BY c.relation
        ORDER BY c.relation = target DESC, c.relation::text;
    RETURN QUERY
        SELECT snowflake_internal.migration_do_block(
                   format(E'    PERFORM snowflake_internal.migration_swap(%L::pg_catalog.regclass, %L::pg_catalog.name);\n',
                          snowflake_internal.migration_name(target), column_name)),
               'ACCESS EXCLUSIVE', true,
               format('checks everything again under the lock, then replaces %s by their shadows: only the catalog changes. They become the last columns of their tables. New rows get snowflake IDs from %s on, which an integer or a JavaScript Number (2^53) cannot hold. Existing rows keep their IDs, which decode to the first moments after the epoch',
                      (SELECT string_agg(format('%s.%I', s.relation, s.narrow), ', ' ORDER BY s.relation = target DESC, s.relation::text, s.attribute)
                       FROM snowflake_internal.migration_shadows(target, column_name) AS s),
                      snowflake_internal.migration_first_id());
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_check(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    narrow text;
    obstacles text;
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
    FROM snowflake_internal.migration_linked_columns(target, column_name) AS r
    JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
    WHERE r.is_narrow;
    IF narrow IS NOT NULL THEN
        RAISE EXCEPTION 'columns are still too narrow for snowflake IDs: %', narrow
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Run the statements of snowflake_migration_plan() in order.';
    END IF;
    SELECT string_agg(format('%s. %s', o.obstacle, o.remedy), E'\n') INTO obstacles
    FROM snowflake_internal.migration_row_obstacles(target, column_name) AS o;
    IF obstacles IS NOT NULL THEN
        RAISE EXCEPTION 'cannot migrate column "%" of %', column_name, target
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = obstacles,
                  HINT = 'Nothing was changed by this statement.';
    END IF;
    -- The sequence has advanced since it was recorded.
    PERFORM snowflake_internal.migration_record_origin(target, column_name);
END
$function$;
CREATE FUNCTION snowflake_internal.migration_steps(target regclass, column_name name, online boolean)
RETURNS TABLE (step integer, statement text, lock_level text, rewrites boolean, in_transaction boolean, note text, relation regclass)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    key_column CONSTANT name := snowflake_internal.migration_column(target, column_name);
    is_switched CONSTANT boolean := snowflake_internal.migration_is_switched(target, key_column);
    quoted_name CONSTANT text := snowflake_internal.migration_name(target);
    -- Typed, so that no other function of the same name is a better match.
    arguments CONSTANT text := format('%L::pg_catalog.regclass, %L::pg_catalog.name', quoted_name, key_column);
    -- Passed as an argument of format(), because a schema name may contain %.
    extension_schema CONSTANT text := '@extschema@';
    is_narrow CONSTANT boolean := EXISTS (
        SELECT FROM snowflake_internal.migration_linked_columns(target, key_column) AS r WHERE r.is_narrow);
    is_widening CONSTANT boolean := is_narrow OR EXISTS (
        SELECT FROM snowflake_internal.migration_origin(target, key_column) AS o
        WHERE o.reverted_at IS NULL AND o.data_type IN ('smallint', 'integer'));
    obstacles text;
    code text;
    identity text;
    notes text;
    altered record;
BEGIN
    IF is_narrow OR NOT is_switched THEN
        SELECT string_agg(format('%s. %s', o.obstacle, o.remedy), E'\n'), min(o.sqlstate_code)
        INTO obstacles, code
        FROM (SELECT o.* FROM snowflake_internal.migration_obstacles(target, key_column) AS o
            UNION ALL
              SELECT o.* FROM snowflake_internal.migration_plan_kind_obstacles(target, key_column, coalesce(online, false)) AS o) AS o;
        IF obstacles IS NOT NULL THEN
            RAISE EXCEPTION 'cannot migrate column "%" of %', key_column, target
                USING ERRCODE = code, DETAIL = obstacles,
                      HINT = 'Nothing was changed. Remove the obstacles, then request the plan again.';
        END IF;
    END IF;
    step := 0;
    in_transaction := true;
    relation := target;

    IF NOT is_switched AND NOT snowflake_internal.migration_is_recorded(target, key_column) THEN
        step := step + 1;
        statement := format('SELECT snowflake_internal.migration_record_origin(%s)', arguments);
        lock_level := 'SHARE UPDATE EXCLUSIVE';
        rewrites := false;
        note := 'records the sequence of the column, for snowflake_migrate_revert()';
        RETURN NEXT;
    END IF;

    IF online AND is_narrow THEN
        rewrites := false;
        FOR statement, lock_level, in_transaction, note IN
            SELECT s.statement, s.lock_level, s.in_transaction, s.note
            FROM snowflake_internal.migration_online_steps(target, key_column) AS s
        LOOP
            step := step + 1;
            RETURN NEXT;
        END LOOP;
        RETURN;
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
               EXISTS (SELECT FROM pg_partitioned_table AS p WHERE p.partrelid = r.relation) AS is_partitioned
        FROM snowflake_internal.migration_linked_columns(target, key_column) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        WHERE r.is_narrow
        GROUP BY r.relation
        ORDER BY r.relation = target DESC, r.relation::text
    LOOP
        step := step + 1;
        relation := altered.relation;
        statement := format('ALTER TABLE %s %s', altered.quoted_name, altered.actions);
        lock_level := 'ACCESS EXCLUSIVE';
        rewrites := true;
        note := format('widens %s; rewrites the table and its indexes (%s now; needs as much additional disk space while it runs, and as much WAL) and checks its foreign keys again',
                       altered.names, altered.size)
                || coalesce('. Also locked: ' || altered.locked_too, '')
                || coalesce('. Published by ' || altered.publications || ': widen the column at the subscribers first', '')
                || CASE WHEN altered.is_partitioned THEN '. Indexes and not-null constraints of partitions that belong to one of the table are rebuilt: '
                                                    'they get new names and the comment of the table''s, and lose a CLUSTER setting' ELSE '' END;
        RETURN NEXT;
    END LOOP;

    IF NOT is_switched THEN
        SELECT a.attidentity INTO identity FROM pg_attribute AS a WHERE a.attrelid = target AND a.attname = key_column;
        step := step + 1;
        relation := target;
        statement := snowflake_internal.migration_do_block(
            CASE WHEN online
                 THEN format(E'    PERFORM snowflake_internal.migration_lock(%L::pg_catalog.regclass[], text ''ACCESS EXCLUSIVE'');\n', ARRAY[quoted_name])
                 ELSE format(E'    LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;\n', quoted_name) END
            || format(E'    PERFORM snowflake_internal.migration_check(%s);\n', arguments)
            || CASE WHEN identity <> '' THEN format(E'    ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY;\n', quoted_name, key_column) ELSE '' END
            || format(E'    ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.snowflake_nextval();\n', quoted_name, key_column, extension_schema));
        lock_level := 'ACCESS EXCLUSIVE';
        rewrites := false;
        -- Other columns continue to use the sequence.
        SELECT string_agg(format('%s.%I', f.adrelid::regclass, a.attname), ', ') INTO notes
        FROM pg_depend AS mine
        JOIN pg_attrdef AS own ON mine.classid = 'pg_attrdef'::regclass AND mine.objid = own.oid AND own.adrelid = target
        JOIN pg_attribute AS me ON me.attrelid = own.adrelid AND me.attnum = own.adnum AND me.attname = key_column
        JOIN pg_class AS s ON s.oid = mine.refobjid AND mine.refclassid = 'pg_class'::regclass AND s.relkind = 'S'
        JOIN pg_depend AS theirs ON theirs.refclassid = 'pg_class'::regclass AND theirs.refobjid = s.oid
                                AND theirs.classid = 'pg_attrdef'::regclass AND theirs.objid <> own.oid
        JOIN pg_attrdef AS f ON f.oid = theirs.objid
        JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum;
        note := format('new rows get snowflake IDs from %s on, which an integer or a JavaScript Number (2^53) cannot hold. Existing rows keep their IDs, which decode to the first moments after the epoch',
                       snowflake_internal.migration_first_id())
                || coalesce('. The sequence is still used by ' || notes, '');
        SELECT string_agg(k.conname, ', ' ORDER BY k.conname) INTO notes
        FROM pg_constraint AS k JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
        WHERE k.conrelid = target AND k.contype = 'c' AND a.attname = key_column;
        note := note || coalesce('. New IDs must satisfy the check constraints ' || notes, '');
        RETURN NEXT;
    END IF;

    -- A rewritten column has no statistics until the table is analyzed. Which
    -- columns have been rewritten is not known, so columns without statistics are
    -- analyzed. ANALYZE includes partitions, and other child tables from
    -- PostgreSQL 18 on.
    FOR altered IN
        SELECT f.relation, snowflake_internal.migration_name(f.relation) AS quoted_name,
               string_agg(DISTINCT quote_ident(r.attname), ', ') AS names
        FROM (SELECT r.relation, a.attname, bool_or(r.is_narrow) OVER (PARTITION BY r.relation) AS is_rewritten
              FROM snowflake_internal.migration_linked_columns(target, key_column) AS r
              JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute) AS r
        CROSS JOIN LATERAL snowflake_internal.migration_table_tree(r.relation, r.attname) AS f
        JOIN pg_class AS c ON c.oid = f.relation AND NOT c.relispartition AND c.relkind <> 'f'
        WHERE pg_has_role(c.relowner, 'USAGE')
          AND (r.is_rewritten
               OR is_widening AND snowflake_internal.migration_lacks_statistics(f.relation, r.attname))
        GROUP BY f.relation
        ORDER BY f.relation = target DESC, f.relation::text
    LOOP
        step := step + 1;
        relation := altered.relation;
        statement := format('ANALYZE %s (%s)', altered.quoted_name, altered.names);
        lock_level := 'SHARE UPDATE EXCLUSIVE';
        rewrites := false;
        note := 'a rewritten column has no statistics';
        RETURN NEXT;
    END LOOP;
END
$function$;
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_resume_sequence(sequence regclass, is_new boolean, origin snowflake_internal.origins)
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
CREATE OR REPLACE PROCEDURE snowflake_migrate_revert(target regclass, column_name name DEFAULT NULL)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $procedure$
DECLARE
    key_column name;
    origin snowflake_internal.origins;
    sequence regclass;
    is_new boolean := false;
    has_shadows boolean;
BEGIN
    -- Checked first: without ownership, migration_column() does not see the record of
    -- the migration, and would report a misleading error.
    IF EXISTS (SELECT FROM pg_class AS c WHERE c.oid = target AND c.relkind IN ('r', 'p')) THEN
        PERFORM snowflake_internal.migration_require_owner(target);
    END IF;
    key_column := snowflake_internal.migration_column(target, column_name);
    has_shadows := snowflake_internal.migration_drop_shadows(target, key_column);
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
CREATE OR REPLACE PROCEDURE snowflake_migrate(target regclass, column_name name DEFAULT NULL)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $procedure$
DECLARE
    plan_step record;
    done integer := 0;
BEGIN
    PERFORM snowflake_internal.migration_limit_locks();
    FOR plan_step IN SELECT * FROM snowflake_internal.migration_steps(target, column_name, false) LOOP
        RAISE NOTICE 'step %: %', plan_step.step, plan_step.note;
        PERFORM snowflake_internal.migration_run(plan_step.relation, plan_step.statement);
        done := done + 1;
    END LOOP;
    IF done = 0 THEN
        RAISE NOTICE 'nothing to do: % is already migrated', target;
    END IF;
END
$procedure$;
CREATE OR REPLACE FUNCTION snowflake_migration_plan(
    target regclass, column_name name DEFAULT NULL, online boolean DEFAULT false
) RETURNS TABLE (step integer, statement text, lock_level text, rewrites boolean, in_transaction boolean, note text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN QUERY
        SELECT s.step, s.statement, s.lock_level, s.rewrites, s.in_transaction, s.note
        FROM snowflake_internal.migration_steps(target, column_name, online) AS s;
END
$function$;
REVOKE EXECUTE ON FUNCTION @extschema@.snowflake_accept_layout() FROM PUBLIC;
COMMENT ON SEQUENCE snowflake_internal.mark IS
    'The mark: no ID at or above last_value has been issued in this database. Maintained by the extension; not for nextval() or setval()';
COMMENT ON TABLE snowflake_internal.accepted_layout IS 'The layout that the IDs of this database were generated with; written by the extension only. See snowflake_accept_layout()';
COMMENT ON COLUMN snowflake_internal.accepted_layout.layout IS 'Layout in canonical form';
COMMENT ON COLUMN snowflake_internal.accepted_layout.accepted_at IS 'Time of the first ID with this layout, or of its acceptance';
COMMENT ON FUNCTION snowflake_internal.migration_base_type(type_oid oid) IS
    'Used by snowflake_serial_columns: the base type of a domain';
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
COMMENT ON COLUMN snowflake_internal.progress.target IS 'Table whose key is being migrated';
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
COMMENT ON FUNCTION snowflake_internal.migration_end(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: deletes the progress of a backfill';
COMMENT ON FUNCTION snowflake_internal.migration_keep_origin(origin snowflake_internal.origins) IS
    'Used by snowflake_internal.migration_record_origin: writes a row of snowflake_internal.origins, for the owner of its table';
COMMENT ON FUNCTION snowflake_internal.migration_keep_progress(step snowflake_internal.progress) IS
    'Used by snowflake_migrate_backfill: writes a row of snowflake_internal.progress, for the owner of its tables';
COMMENT ON FUNCTION snowflake_internal.migration_lock_table(relation regclass, mode text) IS
    'Used by snowflake_internal.migration_lock: locks a table, without its children, by its OID';
COMMENT ON FUNCTION snowflake_internal.migration_origin(target regclass, column_name name) IS
    'The row of snowflake_internal.origins of a column, for the owner of its table; otherwise NULL';
COMMENT ON FUNCTION snowflake_internal.migration_progress(target regclass, column_name name, relation regclass) IS
    'Used by snowflake_migrate_backfill: the position of the next batch';
COMMENT ON FUNCTION snowflake_internal.migration_query(relation regclass, query text) IS
    'Used by snowflake_migration_plan: runs one query with the rights of a table''s owner, which the caller must have; the first row as an array';
COMMENT ON FUNCTION snowflake_internal.migration_read(relation regclass, query text) IS
    'Runs one query with the rights of a table''s owner where the caller has them, else with the caller''s own; the first row as an array';
COMMENT ON FUNCTION snowflake_internal.migration_run(relation regclass, statement text) IS
    'Used by snowflake_migrate: runs one statement with the rights of a table''s owner, which the caller must have; the first row as an array';
COMMENT ON FUNCTION snowflake_internal.migration_sequence_state(sequence regclass, on_behalf_of regclass) IS
    'Used by snowflake_internal.migration_record_origin: the state of a sequence; NULL if the owner of the table may not read it';
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
COMMENT ON FUNCTION snowflake_internal.migration_is_switched(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: whether the column''s default is snowflake_nextval()';
COMMENT ON FUNCTION snowflake_internal.migration_first_id() IS
    'Used by snowflake_migration_plan: the smallest ID that can be issued from now on';
COMMENT ON FUNCTION snowflake_internal.migration_name(target regclass) IS
    'Used by snowflake_migration_plan: a table''s name for statements that run under any search path';
COMMENT ON FUNCTION snowflake_internal.migration_table_tree(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: a table, its partitions and its child tables';
COMMENT ON FUNCTION snowflake_internal.migration_linked_columns(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the columns that hold the same IDs, on any number of levels';
COMMENT ON FUNCTION snowflake_internal.migration_lock_time_limit() IS
    'Used by snowflake_internal.migration_lock: how long a step of an online migration waits for locks';
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
COMMENT ON FUNCTION snowflake_internal.migration_server_obstacles() IS
    'Used by snowflake_internal.migration_obstacles: a server that does not issue IDs';
COMMENT ON FUNCTION snowflake_internal.migration_owner_obstacles(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_obstacles: table ownership';
COMMENT ON FUNCTION snowflake_internal.migration_column_obstacles(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_obstacles: properties of the column itself';
COMMENT ON FUNCTION snowflake_internal.migration_row_obstacles(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_obstacles: IDs that are not below the first snowflake ID';
COMMENT ON FUNCTION snowflake_internal.migration_type_obstacles(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_obstacles: objects that prevent changing the type of a column';
COMMENT ON FUNCTION snowflake_internal.migration_obstacles(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: obstacles, and how to remove them';
COMMENT ON FUNCTION snowflake_internal.migration_do_block(body text) IS
    'Used by snowflake_migration_plan: several statements as one';
COMMENT ON FUNCTION snowflake_internal.migration_other_locked_tables(target regclass, attributes smallint[]) IS
    'Used by snowflake_migration_plan: the tables that are locked with a table whose columns are widened';
COMMENT ON FUNCTION snowflake_internal.migration_publications(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the publications that a table is in';
COMMENT ON FUNCTION snowflake_internal.migration_lacks_statistics(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: whether a column has to be analyzed';
COMMENT ON FUNCTION snowflake_internal.migration_run_all(relations regclass[], statements text[]) IS
    'Used by snowflake_internal.migration_swap: runs statements, each with the rights of the owner of its table';
COMMENT ON FUNCTION snowflake_internal.nextval_support(request internal) IS
    'Planner support function of snowflake_nextval()';
COMMENT ON FUNCTION snowflake_nextval() IS
    'Returns the next ID: for the DEFAULT of a bigint primary key';
COMMENT ON FUNCTION snowflake_nextvals(count integer) IS
    'Returns that many new IDs in ascending order';
COMMENT ON FUNCTION snowflake_currval() IS
    'Returns the last ID that this session was issued';
COMMENT ON FUNCTION snowflake_audit(target regclass, column_name name, expected_nodes integer[], first_id bigint) IS
    'Checks the IDs in a column: one row for each kind of problem, with the number of IDs and the largest; no rows if there is none';
COMMENT ON FUNCTION snowflake_internal.shadow() IS
    'The trigger that keeps a shadow column equal to the narrow column it will replace';
COMMENT ON FUNCTION snowflake_internal.migration_shadow_name(kind text, original name) IS
    'Used by snowflake_migration_plan: the name of an object added beside a column, an index or a constraint';
COMMENT ON FUNCTION snowflake_internal.migration_shadows(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the narrow columns that hold the same IDs, and their shadows as far as they exist';
COMMENT ON FUNCTION snowflake_internal.migration_shadow_steps(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the statements that add shadow columns';
COMMENT ON FUNCTION snowflake_internal.migration_drop_shadows(target regclass, column_name name) IS
    'Used by snowflake_migrate_revert: drops shadow columns';
COMMENT ON FUNCTION snowflake_internal.migration_shadow_indexes(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the indexes of the narrow columns, and those of their shadows';
COMMENT ON FUNCTION snowflake_internal.migration_index_steps(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the statements that build the indexes of shadow columns';
COMMENT ON FUNCTION snowflake_internal.migration_shadow_foreign_keys(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the foreign keys of the narrow columns, and those of their shadows';
COMMENT ON FUNCTION snowflake_internal.migration_foreign_key_steps(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the statements that add the foreign keys of shadow columns';
COMMENT ON FUNCTION snowflake_internal.migration_record_backfill(target regclass, column_name name, relation regclass) IS
    'A step of snowflake_migration_plan: records that the rows of a table are to be copied';
COMMENT ON FUNCTION snowflake_internal.migration_record_progress(step snowflake_internal.progress) IS
    'Used by snowflake_migrate_backfill: records the progress of a batch';
COMMENT ON FUNCTION snowflake_internal.migration_row_estimate(relation regclass) IS
    'Used by snowflake_migrations: the planner''s estimate of the number of rows';
COMMENT ON FUNCTION snowflake_internal.migration_online_step(target regclass, column_name name) IS
    'Used by snowflake_migrations: the next step';
COMMENT ON VIEW snowflake_migrations IS 'Unfinished online migrations';
COMMENT ON COLUMN snowflake_migrations.table_name IS 'Table whose key is being migrated';
COMMENT ON COLUMN snowflake_migrations.column_name IS 'Key column';
COMMENT ON COLUMN snowflake_migrations.step IS 'Current or next step: adding shadow columns, backfill, validating rows, building indexes, adding foreign keys, ready to swap';
COMMENT ON COLUMN snowflake_migrations.rows_done IS 'Rows that the backfill has processed, in all tables';
COMMENT ON COLUMN snowflake_migrations.rows_total IS 'Estimated number of rows when the backfill began';
COMMENT ON COLUMN snowflake_migrations.rows_per_second IS 'Rows per second of the current or the last call of the backfill';
COMMENT ON COLUMN snowflake_migrations.time_left IS 'Estimated time for the remaining rows at that rate; NULL if the rate is unknown';
COMMENT ON FUNCTION snowflake_internal.migration_update_triggers(relation regclass) IS
    'Used by snowflake_migrate_backfill: the triggers that copying rows would fire';
COMMENT ON FUNCTION snowflake_internal.migration_backfill_batch(target regclass, column_name name, relation regclass, batch_size integer) IS
    'Used by snowflake_migrate_backfill: copies one range of blocks';
COMMENT ON FUNCTION snowflake_internal.migration_replay_lag(max_replay_lag interval, mark pg_lsn, marked_at timestamp with time zone) IS
    'Used by snowflake_migrate_backfill: the standbys and subscribers that are behind';
COMMENT ON FUNCTION snowflake_internal.migration_backfill_begin(target regclass, column_name name, batch_size integer, pause interval, max_replay_lag interval) IS
    'Used by snowflake_migrate_backfill: checks its arguments, starts it, and returns the tables to copy';
COMMENT ON FUNCTION snowflake_internal.migration_backfill_steps(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the statements that copy rows, and check them afterwards';
COMMENT ON PROCEDURE snowflake_migrate_backfill(target regclass, column_name name, batch_size integer, pause interval, max_replay_lag interval) IS
    'A step of snowflake_migration_plan with online => true: copies the narrow columns to their shadow columns in batches, committing each; resumes after an interruption';
COMMENT ON FUNCTION snowflake_internal.migration_update_obstacles(relation regclass) IS
    'Used by snowflake_internal.migration_online_obstacles: triggers and rules that an UPDATE of every row would fire';
COMMENT ON FUNCTION snowflake_internal.migration_online_obstacles(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: obstacles to an online migration, and how to remove them';
COMMENT ON FUNCTION snowflake_internal.migration_plan_kind_obstacles(target regclass, column_name name, online boolean) IS
    'Used by snowflake_migration_plan: obstacles to one of the two kinds of plan';
COMMENT ON FUNCTION snowflake_internal.migration_swap_relations(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_swap: the tables that are locked';
COMMENT ON FUNCTION snowflake_internal.migration_swap_sequences(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_swap: the sequences that are altered';
COMMENT ON FUNCTION snowflake_internal.migration_swap_obstacles(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_swap: obstacles to the swap';
COMMENT ON FUNCTION snowflake_internal.migration_swap_commands(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_swap: the DDL that it runs, and the table that each statement alters';
COMMENT ON FUNCTION snowflake_internal.migration_not_null_names(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_swap: the not-null constraints that tables have since PostgreSQL 18';
COMMENT ON FUNCTION snowflake_internal.migration_fingerprint(relations regclass[]) IS
    'Used by snowflake_internal.migration_swap: changes when the catalog''s rows on these tables do';
COMMENT ON FUNCTION snowflake_internal.migration_require_ready(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_swap: fails unless everything is ready';
COMMENT ON FUNCTION snowflake_internal.migration_old_snapshots(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_swap: transactions whose snapshots are older than the proof that all rows are copied';
COMMENT ON FUNCTION snowflake_internal.migration_await_snapshots(target regclass, column_name name) IS
    'Used by snowflake_internal.migration_swap: waits until no session has such a snapshot';
COMMENT ON FUNCTION snowflake_internal.migration_swap_locked(target regclass, column_name name, relations regclass[], before text, altered regclass[], statements text[], not_nulls jsonb) IS
    'Used by snowflake_internal.migration_swap: one try';
COMMENT ON FUNCTION snowflake_internal.migration_swap(target regclass, column_name name) IS
    'A step of snowflake_migration_plan with online => true: replaces the narrow columns by their shadow columns';
COMMENT ON FUNCTION snowflake_internal.migration_online_steps(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: the statements that widen columns while their tables are in use';
COMMENT ON FUNCTION snowflake_internal.migration_steps(target regclass, column_name name, online boolean) IS
    'Used by snowflake_migration_plan: its steps, each with the table whose owner runs it in snowflake_migrate';
COMMENT ON FUNCTION snowflake_internal.migration_limit_locks() IS
    'Used by snowflake_migrate: limits the wait for locks to a few seconds, unless lock_timeout is set';
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
COMMENT ON FUNCTION snowflake_internal.migration_resume_sequence(sequence regclass, is_new boolean, origin snowflake_internal.origins) IS
    'Used by snowflake_migrate_revert: makes the sequence resume after the old IDs';
COMMENT ON PROCEDURE snowflake_migrate_revert(target regclass, column_name name) IS
    'Restores the sequence of a migrated column, or cancels an unfinished online migration';
COMMENT ON PROCEDURE snowflake_migrate(target regclass, column_name name) IS
    'Migrates a column to snowflake IDs in one transaction: runs the statements of snowflake_migration_plan';
COMMENT ON FUNCTION snowflake_migration_plan(target regclass, column_name name, online boolean) IS
    'Returns the remaining migration statements of a column in order, with the lock each takes and whether it rewrites the table; for \gexec';
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
    FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS p
    WHERE c.oid IN ('snowflake_internal.origins'::regclass, 'snowflake_internal.progress'::regclass, 'snowflake_internal.mark'::regclass)
      AND p.grantee <> c.relowner AND p.privilege_type <> 'SELECT';
    IF grantees IS NOT NULL THEN
        RAISE WARNING 'roles could write to the extension''s tables or to its mark: %', grantees
            USING DETAIL = 'Their privileges are revoked.',
                  HINT = 'Look at what is in snowflake_internal.origins before you revert a migration.';
    END IF;

    FOR it IN
        SELECT c.relkind, c.oid::regclass AS relation, p.privilege_type, CASE p.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(p.grantee)) END AS grantee
        FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS p
        WHERE c.oid IN ('snowflake_internal.origins'::regclass, 'snowflake_internal.progress'::regclass, 'snowflake_internal.mark'::regclass,
                        'snowflake_internal.accepted_layout'::regclass)
          AND p.grantee <> c.relowner AND p.privilege_type <> 'SELECT'
    LOOP
        EXECUTE format('REVOKE %s ON %s %s FROM %s', it.privilege_type, CASE it.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
                       it.relation, it.grantee);
    END LOOP;

    -- What sequences of other roles had counted.
    UPDATE snowflake_internal.origins AS o
    SET sequence_last_value = NULL, sequence_options = o.sequence_options - 'next'
    FROM pg_class AS t, pg_class AS s
    WHERE t.oid = o.target AND s.oid = to_regclass(format('%I.%I', o.sequence_schema, o.sequence_name)) AND s.relowner <> t.relowner;
    PERFORM set_config('search_path', former, true);
END
$do$;

REVOKE SELECT ON snowflake_internal.origins FROM PUBLIC;
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

-- Only what is new: a GRANT makes all privileges of an object the extension's
-- own for pg_dump, those that somebody has added too.
GRANT SELECT ON snowflake_internal.accepted_layout TO PUBLIC;
-- It has the last values of sequences of tables that were migrated. The owner of
-- a database has to be able to dump it.
GRANT SELECT ON snowflake_internal.origins TO pg_database_owner;

\echo Use "ALTER EXTENSION snowflake UPDATE TO '0.2.0'" to load this file. \quit

-- What scripts/upgrade-script writes is between its two lines; the rest is
-- written by hand. Run the script again when the SQL of 0.2.0 has changed.

-- As in sql/layout_memory.sql.
CREATE TABLE snowflake_accepted_layout (
    layout text NOT NULL,
    accepted_at timestamp with time zone NOT NULL DEFAULT pg_catalog.now()
) USING heap;
SELECT pg_catalog.pg_extension_config_dump('snowflake_accepted_layout', '');

-- Written by scripts/upgrade-script: begin
DROP FUNCTION @extschema@.snowflake_migration_swap_under_lock(pg_catalog.regclass,pg_catalog.name,pg_catalog.regclass[],pg_catalog.text,pg_catalog.text[],pg_catalog.jsonb);
DROP FUNCTION @extschema@.snowflake_migration_swap_statements(pg_catalog.regclass,pg_catalog.name);
CREATE OR REPLACE VIEW snowflake_serial_columns AS
    WITH fed AS (
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
        -- Defaults depend on the sequences that they name.
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
           fed.kind,
           fed.sequence::pg_catalog.regclass AS sequence,
           used.last_value,
           -- Some sequences go down.
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
    FROM fed
    JOIN pg_catalog.pg_class AS c ON c.oid = fed.attrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = fed.attnum
    CROSS JOIN LATERAL (
        -- Reading a sequence takes a privilege; without it, the view still shows the column.
        SELECT CASE WHEN pg_catalog.has_sequence_privilege(fed.sequence, 'USAGE, SELECT')
                    THEN pg_catalog.pg_sequence_last_value(fed.sequence) END AS last_value
    ) AS used
    CROSS JOIN LATERAL (SELECT @extschema@.snowflake_migration_base_type(a.atttypid) AS type_oid) AS base
    -- Partitions and inheritance children are their parent's matter, unless a
    -- sequence of their own feeds them.
    WHERE NOT EXISTS (
            SELECT FROM pg_catalog.pg_inherits AS i
            JOIN fed AS above ON above.attrelid = i.inhparent AND above.sequence = fed.sequence
            JOIN pg_catalog.pg_attribute AS pa ON pa.attrelid = above.attrelid AND pa.attnum = above.attnum
            WHERE i.inhrelid = c.oid AND pa.attname = a.attname)
      AND NOT pg_catalog.pg_is_other_temp_schema(n.oid)
      AND n.nspname <> 'pg_catalog'::pg_catalog.name AND n.nspname <> 'information_schema'::pg_catalog.name;
CREATE  FUNCTION "snowflake_accept_layout"(

) RETURNS void
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'snowflake_accept_layout_wrapper';
CREATE  FUNCTION "snowflake_get_database_layout"(

) RETURNS TEXT /* Option < String > */
STRICT VOLATILE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'snowflake_get_database_layout_wrapper';
CREATE FUNCTION snowflake_migration_guard() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_guard_wrapper';
CREATE OR REPLACE FUNCTION snowflake_migration_end(target regclass, column_name name) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_end_wrapper';
CREATE FUNCTION snowflake_migration_keep_origin(origin snowflake_origins) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_keep_origin_wrapper';
CREATE FUNCTION snowflake_migration_keep_progress(step snowflake_progress) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_keep_progress_wrapper';
CREATE FUNCTION snowflake_migration_lock_table(relation regclass, mode text) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_lock_table_wrapper';
CREATE FUNCTION snowflake_migration_origin(target regclass, column_name name) RETURNS snowflake_origins
    STRICT VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_origin_wrapper';
CREATE OR REPLACE FUNCTION snowflake_migration_progress(target regclass, column_name name, relation regclass) RETURNS snowflake_progress
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_progress_wrapper';
CREATE FUNCTION snowflake_migration_query(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_query_wrapper';
CREATE FUNCTION snowflake_migration_read(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_read_wrapper';
CREATE FUNCTION snowflake_migration_run(relation regclass, statement text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_run_wrapper';
CREATE FUNCTION snowflake_migration_sequence_state(
    sequence regclass, on_behalf_of regclass, OUT last_value bigint, OUT is_called boolean
) RETURNS SETOF record STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_sequence_state_wrapper';
CREATE OR REPLACE FUNCTION snowflake_migration_column(target regclass, column_name name)
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
               OR (@extschema@.snowflake_migration_origin(snowflake_migration_column.target, a.attname)).target IS NOT NULL));
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
CREATE OR REPLACE FUNCTION snowflake_migration_require_owner(target regclass)
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
CREATE FUNCTION snowflake_migration_owned_sequence(target regclass, column_name name)
RETURNS regclass LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT s.oid::regclass
    FROM pg_attribute AS a
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
                       AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    JOIN pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
    WHERE a.attrelid = target AND a.attname = snowflake_migration_owned_sequence.column_name
    ORDER BY s.oid
    LIMIT 1
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_is_remembered(target regclass, column_name name)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (
        SELECT FROM @extschema@.snowflake_migration_origin(target, column_name) AS o
        CROSS JOIN LATERAL @extschema@.snowflake_migration_source(o.target, o.column_name) AS s
        LEFT JOIN pg_class AS c ON c.oid = s.sequence
        LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE o.target IS NOT NULL AND o.reverted_at IS NULL
          AND (o.kind, o.default_expression, o.sequence_schema, o.sequence_name)
              IS NOT DISTINCT FROM (s.kind, s.expression, n.nspname, c.relname))
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_remember(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    meant CONSTANT name := @extschema@.snowflake_migration_column(target, column_name);
    first CONSTANT bigint := @extschema@.snowflake_migration_first_id();
    -- Nothing is older than this extension: rows that have come from other
    -- servers have snowflake IDs too. 0 where the layout begins later.
    oldest CONSTANT bigint := @extschema@.snowflake_min_id(timestamptz '2026-01-01 00:00:00+00');
    origin @extschema@.snowflake_origins;
    first_ever bigint;
    fed record;
    -- Whether the sequence is the table's owner's.
    is_own boolean;
    taken bigint;
    kept bigint;
    following bigint;
BEGIN
    PERFORM @extschema@.snowflake_migration_require_owner(target);
    -- One at a time; rows can be written in the meantime. Children are not
    -- locked: only their defaults are read.
    PERFORM @extschema@.snowflake_migration_lock_table(target, text 'SHARE UPDATE EXCLUSIVE');
    IF @extschema@.snowflake_migration_is_switched(target, meant) THEN
        RETURN;
    END IF;
    SELECT s.* INTO fed FROM @extschema@.snowflake_migration_source(target, meant) AS s;
    is_own := EXISTS (SELECT FROM pg_class AS c JOIN pg_class AS t ON t.relowner = c.relowner
                      WHERE c.oid = fed.sequence AND t.oid = target);
    IF fed.sequence IS NOT NULL THEN
        -- One that was not used yet may have been given a number to begin with.
        SELECT CASE WHEN s.is_called THEN s.last_value END,
               CASE WHEN s.is_called AND is_own THEN s.last_value END,
               CASE WHEN NOT s.is_called AND is_own THEN s.last_value END
        INTO taken, kept, following
        FROM @extschema@.snowflake_migration_sequence_state(fed.sequence, target) AS s;
    END IF;

    origin := @extschema@.snowflake_migration_origin(target, meant);
    IF @extschema@.snowflake_migration_is_remembered(target, meant) THEN
        origin.first_id := first;
        origin.sequence_last_value := kept;
        origin.sequence_options := origin.sequence_options || jsonb_build_object('next', following);
        PERFORM @extschema@.snowflake_migration_keep_origin(origin);
        RETURN;
    END IF;

    first_ever := origin.first_id_ever;
    SELECT target, meant, fed.kind, fed.data_type, fed.expression, n.nspname, c.relname,
           CASE WHEN s.seqrelid IS NOT NULL THEN
               jsonb_build_object('type', s.seqtypid::regtype::text, 'start', s.seqstart, 'increment', s.seqincrement,
                   'minimum', s.seqmin, 'maximum', s.seqmax, 'cache', s.seqcache, 'cycle', s.seqcycle, 'next', following) END,
           kept,
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
           coalesce(first_ever, CASE WHEN oldest > coalesce(taken, 0) THEN least(oldest, first) ELSE first END), first,
           now(), NULL::timestamptz
    INTO origin.target, origin.column_name, origin.kind, origin.data_type, origin.default_expression,
         origin.sequence_schema, origin.sequence_name, origin.sequence_options, origin.sequence_last_value,
         origin.sequence_privileges, origin.sequence_comment, origin.child_defaults,
         origin.first_id_ever, origin.first_id, origin.remembered_at, origin.reverted_at
    FROM (SELECT) AS one_row
    LEFT JOIN pg_class AS c ON c.oid = fed.sequence
    LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_sequence AS s ON s.seqrelid = c.oid;
    PERFORM @extschema@.snowflake_migration_keep_origin(origin);
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_put_back(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    origin @extschema@.snowflake_origins;
BEGIN
    PERFORM @extschema@.snowflake_migration_require_owner(target);
    IF @extschema@.snowflake_migration_is_switched(target, column_name) THEN
        RAISE EXCEPTION 'column "%" still has snowflake_nextval() as its default', column_name
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'snowflake_migrate_revert() puts back what it had.';
    END IF;
    origin := @extschema@.snowflake_migration_origin(target, column_name);
    IF origin.target IS NOT NULL THEN
        origin.reverted_at := now();
        PERFORM @extschema@.snowflake_migration_keep_origin(origin);
    END IF;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_lock(relations regclass[], mode text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- How long others are made to wait at a time, milliseconds, for all the
    -- tables together. Before a deadlock would be looked for: it would be found
    -- at the cost of somebody else's transaction.
    longest_wait CONSTANT integer := (
        SELECT greatest(1, least(100, min(CASE s.name WHEN 'deadlock_timeout' THEN s.setting::integer / 2
                                                      ELSE nullif(s.setting::integer, 0) END)))
        FROM pg_settings AS s WHERE s.name IN ('lock_timeout', 'deadlock_timeout'));
    wanted CONSTANT regclass[] := ARRAY(
        SELECT r.relation
        FROM (SELECT DISTINCT given.relation FROM unnest(relations) AS given (relation)) AS r
        ORDER BY r.relation::oid);
    begun CONSTANT timestamptz := clock_timestamp();
    told timestamptz := begun;
    tried timestamptz;
    pause double precision := 0.25;
    one regclass;
BEGIN
    IF mode IS NULL OR mode NOT IN ('SHARE ROW EXCLUSIVE', 'ACCESS EXCLUSIVE') THEN
        RAISE EXCEPTION 'invalid lock mode: "%"', mode USING ERRCODE = 'invalid_parameter_value';
    ELSIF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        -- What is looked at under the lock has to be what is there then.
        RAISE EXCEPTION 'a migration needs the isolation level READ COMMITTED'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  DETAIL = format('This transaction''s is %s.', upper(current_setting('transaction_isolation'))),
                  HINT = 'SET default_transaction_isolation = ''read committed''.';
    END IF;
    LOOP
        BEGIN
            tried := clock_timestamp();
            FOREACH one IN ARRAY wanted LOOP
                PERFORM set_config('lock_timeout', greatest(1,
                    longest_wait - round(1000 * extract(epoch FROM clock_timestamp() - tried)))::integer::text, true);
                PERFORM @extschema@.snowflake_migration_lock_table(one, mode);
            END LOOP;
            PERFORM set_config('lock_timeout', longest_wait::text, true);
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            NULL;
        END;
        told := @extschema@.snowflake_migration_lock_missed(relations, mode, begun, told);
        PERFORM pg_sleep(pause * (0.5 + random()));
        pause := least(pause * 1.5, 2);
    END LOOP;
END
$function$;
CREATE FUNCTION snowflake_migration_run_all(relations regclass[], statements text[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    FOR i IN 1 .. coalesce(cardinality(statements), 0) LOOP
        PERFORM @extschema@.snowflake_migration_run(relations[i], statements[i]);
    END LOOP;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_drop_shadows(target regclass, column_name name)
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
        FROM @extschema@.snowflake_migration_shadows(target, column_name) AS s
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
    PERFORM @extschema@.snowflake_migration_lock(relations, text 'ACCESS EXCLUSIVE');
    -- A column's indexes and constraints go with it; what references it does not.
    WITH shadow AS MATERIALIZED (
        SELECT s.*, @extschema@.snowflake_migration_name(s.relation) AS named
        FROM @extschema@.snowflake_migration_shadows(target, column_name) AS s
        WHERE s.shadow IS NOT NULL AND num_nonnulls(s.trigger_oid, s.check_oid) > 0
    ), statement (place, relation, text) AS (
        SELECT DISTINCT 1, k.conrelid::regclass,
               format('ALTER TABLE %s DROP CONSTRAINT %I', @extschema@.snowflake_migration_name(k.conrelid::regclass), k.conname)
        FROM shadow AS s JOIN pg_constraint AS k ON k.contype = 'f' AND k.confrelid = s.relation AND s.shadow = ANY (k.confkey)
      UNION ALL
        SELECT 2, s.relation, format('DROP TRIGGER %I ON %s', s.trigger_name, s.named) FROM shadow AS s WHERE s.trigger_oid IS NOT NULL
      UNION ALL
        SELECT 3, s.relation, format('ALTER TABLE %s DROP COLUMN %I', s.named, s.shadow_name) FROM shadow AS s
    )
    SELECT array_agg(s.relation ORDER BY s.place, s.text), array_agg(s.text ORDER BY s.place, s.text)
    INTO altered, statements
    FROM statement AS s;
    PERFORM @extschema@.snowflake_migration_run_all(altered, statements);
    PERFORM @extschema@.snowflake_migration_end(target, column_name);
    RETURN true;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_shadow_foreign_keys(target regclass, column_name name)
RETURNS TABLE (
    foreign_key oid, name name, relation regclass, referenced regclass, shadow_name name, shadow oid,
    is_to_be_valid boolean, is_ready boolean, definition text
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.relation, s.attribute, s.shadow_name, s.shadow
        FROM @extschema@.snowflake_migration_shadows(target, column_name) AS s
    ), meant AS MATERIALIZED (
        SELECT k.*, @extschema@.snowflake_migration_shadow_name(text 'foreign key', k.conname) AS shadow_name,
               -- PostgreSQL 18 has some that are not enforced.
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
                  @extschema@.snowflake_migration_name(m.conrelid::regclass), m.shadow_name, referencing.names,
                  @extschema@.snowflake_migration_name(m.confrelid::regclass), referenced.names)
           || CASE m.confmatchtype WHEN 'f' THEN ' MATCH FULL' ELSE '' END
           || CASE m.confupdtype WHEN 'r' THEN ' ON UPDATE RESTRICT' WHEN 'c' THEN ' ON UPDATE CASCADE'
                                 WHEN 'n' THEN ' ON UPDATE SET NULL' WHEN 'd' THEN ' ON UPDATE SET DEFAULT' ELSE '' END
           || CASE m.confdeltype WHEN 'r' THEN ' ON DELETE RESTRICT' WHEN 'c' THEN ' ON DELETE CASCADE'
                                 WHEN 'n' THEN ' ON DELETE SET NULL' WHEN 'd' THEN ' ON DELETE SET DEFAULT' ELSE '' END
           || coalesce(' (' || emptied.names || ')', '')
           || CASE WHEN m.condeferrable THEN ' DEFERRABLE' ELSE '' END || CASE WHEN m.condeferred THEN ' INITIALLY DEFERRED' ELSE '' END
           || CASE WHEN m.is_enforced THEN ' NOT VALID' ELSE ' NOT ENFORCED' END
    FROM meant AS m
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
CREATE OR REPLACE FUNCTION snowflake_migration_shadow_indexes(target regclass, column_name name)
RETURNS TABLE (
    index regclass, relation regclass, shadow_name name, shadow regclass, is_ready boolean, definition text
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.relation, s.attribute, s.shadow_name, s.shadow
        FROM @extschema@.snowflake_migration_shadows(target, column_name) AS s
    ), meant AS MATERIALIZED (
        SELECT i.*, c.relname, c.relnamespace, c.relam, c.reltablespace, c.reloptions,
               @extschema@.snowflake_migration_shadow_name(text 'index', c.relname) AS shadow_name
        FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        -- What CREATE INDEX CONCURRENTLY has left behind is of no use to anybody.
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
                   -- That of a shadow is the one that bigint has for this method.
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
        FROM meant AS m
        CROSS JOIN LATERAL unnest(m.indkey::smallint[]) WITH ORDINALITY AS k (attribute, place)
        LEFT JOIN LATERAL ROWS FROM (unnest(m.indclass::oid[]), unnest(m.indcollation::oid[]), unnest(m.indoption::smallint[]))
            WITH ORDINALITY AS o (opclass, collation_oid, option, place) ON o.place = k.place
        LEFT JOIN pg_attribute AS a ON a.attrelid = m.indexrelid AND a.attnum = k.place
        LEFT JOIN pg_attribute AS t ON t.attrelid = m.indrelid AND t.attnum = k.attribute
        LEFT JOIN shadow AS s ON s.relation = m.indrelid AND s.attribute = k.attribute
    ), mapped AS (
        SELECT m.*, p.keys, p.included, p.attributes
        FROM meant AS m
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
                  ' ON ', @extschema@.snowflake_migration_name(m.indrelid::regclass),
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
CREATE OR REPLACE FUNCTION snowflake_migration_begin(target regclass, column_name name, relation regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- Waits for a session that copies the same table.
    step @extschema@.snowflake_progress := @extschema@.snowflake_migration_progress(target, column_name, relation);
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
        -- The table has grown by what the first time has written.
        step.rows_total := coalesce(step.rows_total, @extschema@.snowflake_migration_row_estimate(relation));
    END IF;
    step.batch_blocks := NULL;
    step.run_rows := 0;
    step.run_seconds := 0;
    step.updated_at := clock_timestamp();
    PERFORM @extschema@.snowflake_migration_keep_progress(step);
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_note(step snowflake_progress)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    step.updated_at := clock_timestamp();
    PERFORM @extschema@.snowflake_migration_keep_progress(step);
END
$function$;
CREATE OR REPLACE VIEW snowflake_migrations AS
    SELECT c.oid::pg_catalog.regclass AS table_name,
           p.column_name,
           @extschema@.snowflake_migration_online_step(c.oid::pg_catalog.regclass, p.column_name) AS step,
           p.rows_done, p.rows_total,
           pg_catalog.round(p.run_rows / CASE WHEN p.run_seconds <> 0::pg_catalog.float8 THEN p.run_seconds END)::bigint AS rows_per_second,
           pg_catalog.make_interval(secs => pg_catalog.round(
               (p.rows_total - p.rows_done)::pg_catalog.float8 * p.run_seconds
               / CASE WHEN p.run_rows <> 0::pg_catalog.float8 THEN p.run_rows END)) AS time_left
    FROM (SELECT s.target, s.column_name, pg_catalog.sum(s.rows_done)::bigint AS rows_done, pg_catalog.sum(s.rows_total)::bigint AS rows_total,
                 pg_catalog.sum(s.run_rows)::double precision AS run_rows, pg_catalog.sum(s.run_seconds) AS run_seconds
          FROM @extschema@.snowflake_progress AS s
          GROUP BY s.target, s.column_name) AS p
    JOIN pg_catalog.pg_class AS c ON c.oid = p.target::pg_catalog.oid
    WHERE EXISTS (SELECT FROM @extschema@.snowflake_migration_shadows(c.oid::pg_catalog.regclass, p.column_name) AS s
                  WHERE s.trigger_oid IS NOT NULL);
CREATE OR REPLACE FUNCTION snowflake_migration_backfill_batch(
    target regclass, column_name name, relation regclass, batch_size integer,
    OUT is_done boolean, OUT is_waiting boolean, OUT report text
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    -- Batches of large rows, or on slow disks, are made smaller.
    longest CONSTANT double precision := 0.5;
    most_blocks CONSTANT bigint := 8192;
    named CONSTANT text := @extschema@.snowflake_migration_name(relation);
    found text[];
    begun CONSTANT timestamptz := clock_timestamp();
    step @extschema@.snowflake_progress;
    assignments text;
    is_missing text;
    is_retry boolean;
    first bigint;
    last bigint;
    seen bigint;  -- Rows, as far as their number is known: rows that move are not counted twice.
    missing bigint;
    written bigint := 0;
    left_out int8multirange;
    elapsed double precision;
    role text;
    rate double precision;
BEGIN
    is_waiting := false;
    step := @extschema@.snowflake_migration_progress(target, column_name, relation);
    SELECT string_agg(format('%I = it.%I', s.shadow_name, s.narrow), ', '),
           '(' || string_agg(format('it.%I IS DISTINCT FROM it.%I', s.shadow_name, s.narrow), ' OR ') || ')'
    INTO assignments, is_missing
    FROM @extschema@.snowflake_migration_shadows(target, column_name) AS s
    WHERE s.relation = snowflake_migration_backfill_batch.relation AND s.is_kept;
    IF step.target IS NULL OR assignments IS NULL THEN
        RAISE EXCEPTION 'the migration of column "%" of % was ended meanwhile', column_name, target
            USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF step.filenode IS DISTINCT FROM pg_relation_filenode(relation) THEN
        -- Written anew by VACUUM FULL or the like.
        PERFORM @extschema@.snowflake_migration_begin(target, column_name, relation);
        is_done := false;
        report := format('%s was written anew: its rows are looked at again', relation);
        RETURN;
    END IF;

    is_retry := step.blocks_done >= step.blocks_total;
    is_done := is_retry AND step.skipped = '{}';
    IF is_done THEN
        RETURN;
    ELSIF is_retry THEN
        -- Any of them: one that stays locked is not to keep the others waiting.
        SELECT lower(r), upper(r) INTO first, last FROM unnest(step.skipped) AS r ORDER BY random() LIMIT 1;
    ELSE
        first := step.blocks_done;
        -- The first batch of a run is as large as the rows are said to be.
        last := least(first + coalesce(step.batch_blocks, greatest(1, batch_size * step.blocks_total / greatest(step.rows_total, 1))),
                      step.blocks_total);
    END IF;

    LOOP
        found := @extschema@.snowflake_migration_run(relation, format(
            'SELECT count(*) FROM ONLY %s AS it WHERE it.ctid >= %L::tid AND it.ctid < %L::tid AND %s',
            named, format('(%s,0)', first), format('(%s,0)', last), is_missing));
        missing := found[1]::bigint;
        EXIT WHEN missing <= batch_size OR last - first <= 1;
        last := first + greatest(1, (last - first) * batch_size / missing);
    END LOOP;

    IF missing > 0 THEN
        IF EXISTS (SELECT FROM @extschema@.snowflake_migration_update_triggers(relation) AS t WHERE t.enabled = 'O') THEN
            role := current_setting('session_replication_role');
            PERFORM set_config('session_replication_role', 'replica', true);
        END IF;
        found := @extschema@.snowflake_migration_run(relation, format(
            'WITH written AS (
                 UPDATE ONLY %2$s AS it SET %3$s
                 WHERE it.ctid = ANY (ARRAY(
                     SELECT it.ctid FROM ONLY %2$s AS it WHERE it.ctid >= %4$L::tid AND it.ctid < %5$L::tid AND %1$s
                     LIMIT %6$L::bigint FOR NO KEY UPDATE SKIP LOCKED))
                 RETURNING 1)
             SELECT count(*) FROM written',
            is_missing, named, assignments, format('(%s,0)', first), format('(%s,0)', last), batch_size));
        written := found[1]::bigint;
        IF role IS NOT NULL THEN
            PERFORM set_config('session_replication_role', role, true);
        END IF;
        found := @extschema@.snowflake_migration_run(relation, format(
            'SELECT count(*), range_agg(int8range(m.block, m.block + 1))
             FROM (SELECT (it.ctid::text::point)[0]::bigint AS block
                   FROM ONLY %s AS it WHERE it.ctid >= %L::tid AND it.ctid < %L::tid AND %s) AS m',
            named, format('(%s,0)', first), format('(%s,0)', last), is_missing));
        missing := found[1]::bigint;
        left_out := found[2]::int8multirange;
    END IF;

    elapsed := extract(epoch FROM clock_timestamp() - begun);
    IF missing > 0 AND written >= batch_size THEN
        NULL;  -- One block with more rows than a batch: the rest is next.
    ELSIF is_retry THEN
        step.skipped := step.skipped - int8range(first, last)::int8multirange + coalesce(left_out, '{}');
        is_waiting := written = 0 AND missing > 0;
    ELSE
        step.blocks_done := last;
        step.skipped := step.skipped + coalesce(left_out, '{}');
        seen := round(step.rows_total * (last::double precision / step.blocks_total)) - step.rows_done;
        step.rows_done := step.rows_done + seen;
        step.run_rows := step.run_rows + seen;
        step.batch_blocks := least(most_blocks, greatest(1, (last - first)
            * least(2, batch_size / greatest(written, 1)::double precision, longest / greatest(elapsed, 0.001))));
    END IF;
    -- With the pauses, since what was noted last.
    step.run_seconds := step.run_seconds + extract(epoch FROM clock_timestamp() - (
        SELECT max(p.updated_at) FROM @extschema@.snowflake_progress AS p
        WHERE p.target = snowflake_migration_backfill_batch.target
          AND p.column_name = snowflake_migration_backfill_batch.column_name));
    PERFORM @extschema@.snowflake_migration_note(step);

    SELECT m.rows_per_second INTO rate FROM (
        SELECT sum(p.run_rows) / nullif(sum(p.run_seconds), 0) AS rows_per_second
        FROM @extschema@.snowflake_progress AS p
        WHERE p.target = snowflake_migration_backfill_batch.target
          AND p.column_name = snowflake_migration_backfill_batch.column_name) AS m;
    report := CASE WHEN is_waiting
        THEN format('%s: rows are locked by other transactions; they are tried again', step.relation)
        ELSE (SELECT format('%s: %s of %s rows, %s rows/s, %s left', step.relation, sum(p.rows_done), sum(p.rows_total), round(rate),
                            coalesce(make_interval(secs => round((sum(p.rows_total) - sum(p.rows_done)) / nullif(rate, 0)))::text, 'unknown time'))
              FROM @extschema@.snowflake_progress AS p
              WHERE p.target = snowflake_migration_backfill_batch.target
                AND p.column_name = snowflake_migration_backfill_batch.column_name) END;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_online_obstacles(target regclass, column_name name)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH meant AS MATERIALIZED (
        SELECT s.*, c.relkind, c.relispartition, c.relpersistence, c.relforcerowsecurity, c.relreplident, c.relnamespace, c.relname,
               c.relowner, a.attidentity
        FROM @extschema@.snowflake_migration_shadows(target, column_name) AS s
        JOIN pg_class AS c ON c.oid = s.relation
        JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attribute
    ), indexed AS MATERIALIZED (
        SELECT DISTINCT m.relation, m.narrow, m.attribute, i.indexrelid, i.indkey, i.indpred
        FROM meant AS m
        JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                           AND d.refobjid = m.relation AND d.refobjsubid = m.attribute
        JOIN pg_index AS i ON i.indexrelid = d.objid AND i.indrelid = m.relation AND i.indisvalid
      UNION
        -- Those of constraints depend on the constraint.
        SELECT m.relation, m.narrow, m.attribute, i.indexrelid, i.indkey, i.indpred
        FROM meant AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND m.attribute = ANY (k.conkey) AND k.contype IN ('p', 'u', 'x')
        JOIN pg_index AS i ON i.indexrelid = k.conindid
    ), found (rank, obstacle, remedy, code) AS (
        SELECT DISTINCT 1, format('%s is %s', m.relation, CASE WHEN m.relkind = 'p' THEN 'a partitioned table' ELSE 'a partition' END),
               'PostgreSQL can neither build indexes of partitioned tables concurrently nor make an index that is there their primary key: use the plan for a maintenance window (online => false).', '55000'
        FROM meant AS m WHERE m.relkind = 'p' OR m.relispartition
      UNION ALL
        SELECT DISTINCT 1, format('partitioned table %s references the key', f.relation),
               'A foreign key of a partitioned table cannot be added NOT VALID: use the plan for a maintenance window (online => false).', '55000'
        FROM @extschema@.snowflake_migration_shadow_foreign_keys(target, column_name) AS f
        JOIN pg_class AS c ON c.oid = f.relation AND c.relkind = 'p'
        WHERE NOT EXISTS (SELECT FROM meant AS m WHERE m.relation = f.relation)
      UNION ALL
        SELECT DISTINCT 2, format('%s has inheritance children or parents', m.relation),
               'Their columns can only be replaced together: use the plan for a maintenance window (online => false).', '55000'
        FROM meant AS m
        WHERE m.relkind <> 'p' AND NOT m.relispartition
          AND EXISTS (SELECT FROM pg_inherits AS i WHERE m.relation IN (i.inhparent, i.inhrelid))
      UNION ALL
        SELECT DISTINCT 3, format('%s is a temporary table', m.relation),
               'Nobody else uses it: use the plan for a maintenance window (online => false).', '55000'
        FROM meant AS m WHERE m.relpersistence = 't'
      UNION ALL
        SELECT 4, format('column %I of %s is an identity column that references another one', m.narrow, m.relation),
               'Its sequence cannot be handed on to another column: ALTER COLUMN ... DROP IDENTITY, or use the plan for a maintenance window (online => false).', '55000'
        FROM meant AS m WHERE m.attidentity <> '' AND (m.relation <> target OR m.narrow <> column_name)
      UNION ALL
        SELECT 5, format('row-level security is forced on the owner of %s, who has to see every row', m.relation),
               format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY while it is migrated.', m.relation), '55000'
        FROM meant AS m WHERE m.relforcerowsecurity AND m.relation <> target
      UNION ALL
        SELECT 6, format('index %s has column %I of %s in an expression or in its WHERE', i.indexrelid::regclass, i.narrow, i.relation),
               'Drop it, and create it again (CONCURRENTLY) afterwards.', '55000'
        FROM indexed AS i
        WHERE i.attribute <> ALL (i.indkey::smallint[]) OR i.indpred::text ~ format(' :varattno %s ', i.attribute)
           OR EXISTS (SELECT FROM pg_index AS e WHERE e.indexrelid = i.indexrelid AND e.indexprs::text ~ format(' :varattno %s ', i.attribute))
      UNION ALL
        SELECT DISTINCT 6, format('index %s has a method that knows no bigint', i.indexrelid::regclass),
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
               CASE k.contype WHEN 'x' THEN 'An index that is there cannot become one: drop it, or use the plan for a maintenance window (online => false).'
                    ELSE 'Drop it, and add it again afterwards (NOT VALID, then VALIDATE CONSTRAINT).' END, '55000'
        FROM meant AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND k.contype IN ('c', 'x') AND m.attribute = ANY (k.conkey)
        WHERE NOT EXISTS (SELECT FROM meant AS own WHERE own.check_oid = k.oid)
      UNION ALL
        SELECT DISTINCT 7, format('constraint %I of %s is WITHOUT OVERLAPS or has a PERIOD', k.conname, k.conrelid::regclass),
               'An index that is there cannot become one: drop it, or use the plan for a maintenance window (online => false).', '55000'
        FROM meant AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND m.attribute = ANY (k.conkey) OR k.confrelid = m.relation AND m.attribute = ANY (k.confkey)
        WHERE k.contype IN ('p', 'u', 'f') AND (to_jsonb(k) ->> 'conperiod')::boolean
      UNION ALL
        SELECT DISTINCT 7, format('foreign key %I of %s sets a default', f.name, f.relation),
               'Of two such foreign keys only the one that fires first finds what it expects: use the plan for a maintenance window (online => false).', '55000'
        FROM @extschema@.snowflake_migration_shadow_foreign_keys(target, column_name) AS f
        JOIN pg_constraint AS k ON k.oid = f.foreign_key AND 'd' IN (k.confdeltype, k.confupdtype)
      UNION ALL
        SELECT 8, format('not-null constraint %I of %s is not valid', k.conname, m.relation),
               format('ALTER TABLE %s VALIDATE CONSTRAINT %I.', m.relation, k.conname), '55000'
        FROM meant AS m
        JOIN pg_constraint AS k ON k.conrelid = m.relation AND k.contype = 'n' AND k.conkey = ARRAY[m.attribute] AND NOT k.convalidated
      UNION ALL
        SELECT 9, format('statistics object %s uses column %I of %s', format('%I.%I', n.nspname, x.stxname), m.narrow, m.relation),
               'Drop it, and create it again afterwards.', '55000'
        FROM meant AS m
        JOIN pg_depend AS d ON d.classid = 'pg_statistic_ext'::regclass AND d.refclassid = 'pg_class'::regclass
                           AND d.refobjid = m.relation AND d.refobjsubid = m.attribute
        JOIN pg_statistic_ext AS x ON x.oid = d.objid
        JOIN pg_namespace AS n ON n.oid = x.stxnamespace
      UNION ALL
        SELECT DISTINCT 10, format('trigger %I of %s fires after the one that keeps the new column in step', t.tgname, m.relation),
               'Triggers fire in the order of their names: rename it.', '55000'
        FROM meant AS m
        JOIN pg_trigger AS t ON t.tgrelid = m.relation AND NOT t.tgisinternal AND t.tgname > m.trigger_name
                            AND t.tgfoid <> '@extschema@.snowflake_shadow()'::regprocedure
        -- BEFORE, each row, INSERT or UPDATE.
        WHERE t.tgtype & 3 = 3 AND t.tgtype & (4 | 16) <> 0
      UNION ALL
        SELECT DISTINCT 11, format('%s is published, and its replica identity is FULL', m.relation),
               'Subscribers could not find rows once a column is gone here and still there: give it another replica identity while it is migrated.', '55000'
        FROM meant AS m
        WHERE m.relreplident = 'f' AND @extschema@.snowflake_migration_publications(m.relation, m.narrow) IS NOT NULL
      UNION ALL
        SELECT DISTINCT 12, format('%s is subscribed to, and has neither a primary key nor an index as its replica identity', m.relation),
               'Rows to change are found by all columns, and the publisher does not have the new one: give it a primary key.', '55000'
        FROM meant AS m
        WHERE EXISTS (SELECT FROM pg_subscription_rel AS r WHERE r.srrelid = m.relation)
          AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = m.relation AND (i.indisprimary OR i.indisreplident))
      UNION ALL
        SELECT DISTINCT 13, format('another column of %s is being migrated', m.relation),
               'Finish that first, or take it back with snowflake_migrate_revert().', '55000'
        FROM meant AS m
        JOIN pg_trigger AS t ON t.tgrelid = m.relation AND t.tgfoid = '@extschema@.snowflake_shadow()'::regprocedure
        WHERE NOT EXISTS (SELECT FROM meant AS own WHERE own.relation = t.tgrelid AND own.trigger_name = t.tgname)
      UNION ALL
        -- Names of this kind are nobody else's, unless something was left or undone by hand.
        SELECT 14, format('what keeps column %I of %s in step with column %I is not as it was made', m.shadow_name, m.relation, m.narrow),
               CASE WHEN num_nonnulls(m.shadow, m.trigger_oid, m.check_oid) = 3
                    -- The constraint has seen to it that nothing went wrong meanwhile.
                    THEN format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I.', m.relation, m.trigger_name)
                    ELSE 'Take the migration back with snowflake_migrate_revert(), drop what is left of these names, and begin again.' END, '55000'
        FROM meant AS m
        WHERE NOT m.is_kept
          AND (EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = m.relation AND a.attname = m.shadow_name)
               OR EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = m.relation AND t.tgname = m.trigger_name)
               OR EXISTS (SELECT FROM pg_constraint AS k WHERE k.conrelid = m.relation AND k.conname = m.check_name))
      UNION ALL
        SELECT 14, format('column %I of %s was NOT NULL or not when its migration began, and is the other now', m.narrow, m.relation),
               'Take the migration back with snowflake_migrate_revert(), and begin again.', '55000'
        FROM meant AS m
        WHERE m.check_oid IS NOT NULL AND (pg_get_constraintdef(m.check_oid) ~ 'IS NOT NULL') <> m.is_required
      UNION ALL
        SELECT 15, format('%s has a name that is needed', c.oid::regclass), 'Rename or drop it.', '55000'
        FROM @extschema@.snowflake_migration_shadow_indexes(target, column_name) AS i
        JOIN pg_class AS c ON c.relname = i.shadow_name
                          AND c.relnamespace = (SELECT o.relnamespace FROM pg_class AS o WHERE o.oid = i.index)
        LEFT JOIN pg_index AS own ON own.indexrelid = c.oid AND own.indrelid = i.relation
        WHERE own.indexrelid IS NULL OR own.indisvalid AND NOT i.is_ready
      UNION ALL
        SELECT 15, format('constraint %I of %s has a name that is needed', k.conname, f.relation), 'Rename or drop it.', '55000'
        FROM @extschema@.snowflake_migration_shadow_foreign_keys(target, column_name) AS f
        JOIN pg_constraint AS k ON k.conrelid = f.relation AND k.conname = f.shadow_name
        WHERE NOT f.is_ready AND (k.contype <> 'f' OR k.convalidated)
      UNION ALL
        SELECT DISTINCT 16, format('permission denied for table %s, which column %I of %s references', f.referenced, m.narrow, m.relation),
               format('GRANT REFERENCES, UPDATE ON %s TO %I.', f.referenced, current_user), '42501'
        FROM meant AS m
        JOIN @extschema@.snowflake_migration_shadow_foreign_keys(target, column_name) AS f ON f.relation = m.relation
        WHERE NOT (has_table_privilege(f.referenced, 'REFERENCES') AND has_table_privilege(f.referenced, 'UPDATE, DELETE, TRUNCATE'))
      UNION ALL
        SELECT DISTINCT 16, format('must be owner of table %s', f.relation),
               format('Its foreign key %I is made anew: run it as a member of %I, or as a superuser.', f.name, pg_get_userbyid(c.relowner)), '42501'
        FROM @extschema@.snowflake_migration_shadow_foreign_keys(target, column_name) AS f
        JOIN pg_class AS c ON c.oid = f.relation AND NOT pg_has_role(c.relowner, 'USAGE')
        WHERE NOT EXISTS (SELECT FROM meant AS m WHERE m.relation = f.relation)
      UNION ALL
        -- For building an index and renaming it; a rewrite does without.
        SELECT DISTINCT 17, format('permission denied for schema %I', n.nspname),
               format('GRANT CREATE ON SCHEMA %I TO %I.', n.nspname, r.rolname), '42501'
        FROM meant AS m
        JOIN pg_namespace AS n ON n.oid = m.relnamespace
        -- Whoever runs the plan builds it, and the table's owner renames it.
        JOIN pg_roles AS r ON (r.rolname = current_user OR r.oid = m.relowner) AND NOT has_schema_privilege(r.oid, n.oid, 'CREATE')
    )
    SELECT f.obstacle, f.remedy, f.code FROM found AS f
  UNION ALL
    SELECT o.obstacle, o.remedy, o.sqlstate_code
    FROM (SELECT DISTINCT m.relation FROM meant AS m) AS r
    CROSS JOIN LATERAL @extschema@.snowflake_migration_update_obstacles(r.relation) AS o
$function$;
CREATE OR REPLACE VIEW snowflake_status AS
    SELECT version, preloaded, layout, node_id, last_id_at, reserved_until,
           pg_catalog.make_interval(secs => clock_behind) AS clock_behind,
           ids, waits, expires_at,
           @extschema@.snowflake_get_database_layout() AS database_layout
    FROM @extschema@.snowflake_get_status();
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
    -- Not in the format strings themselves: a schema's name may hold a %.
    here CONSTANT text := '@extschema@';
    highest_possible CONSTANT bigint := 9223372036854775807;
    -- What a number of the first scan is.
    is_id CONSTANT integer := 0;
    is_before_first CONSTANT integer := 1;
    is_negative CONSTANT integer := 2;
    is_outside CONSTANT integer := 3;
    is_of_other_node CONSTANT integer := 4;
    meant name := column_name;
    defaults name[];
    meant_number smallint;
    meant_type oid;
    numbers text;
    start CONSTANT bigint := coalesce(first_id, -highest_possible - 1);
    last_of_layout CONSTANT bigint := @extschema@.snowflake_max_id(timestamptz 'infinity');
    own_node integer;
    is_generating boolean;
    not_known text;
    kinds integer[];
    backends integer[];
    counts bigint[];
    tops bigint[];
    highest bigint;
    is_read boolean;
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
    doubled bigint;
    doubled_top bigint;
    made_with text;
    read_with text;
    answer text[];
BEGIN
    -- The column: the one that snowflake_nextval() feeds, else the one that a
    -- sequence feeds or fed.
    IF meant IS NULL THEN
        defaults := ARRAY(
            SELECT a.attname FROM pg_attribute AS a
            WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped AND a.atthasdef
              AND @extschema@.snowflake_migration_is_switched(target, a.attname));
        IF cardinality(defaults) > 1 THEN
            defaults := coalesce(
                nullif(ARRAY(SELECT a.attname FROM pg_index AS i JOIN pg_attribute AS a
                                 ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                             WHERE i.indrelid = target AND i.indisprimary AND i.indnkeyatts = 1
                               AND a.attname = ANY (defaults)), '{}'),
                defaults);
        END IF;
        IF cardinality(defaults) > 1 THEN
            RAISE EXCEPTION 'several columns of "%" have snowflake IDs', (SELECT c.relname FROM pg_class AS c WHERE c.oid = target)
                USING ERRCODE = 'invalid_parameter_value',
                      DETAIL = format('They are %s.', array_to_string(defaults, ', ')),
                      HINT = 'Name the one to look at.';
        END IF;
        meant := defaults[1];
    END IF;
    meant := @extschema@.snowflake_migration_column(target, meant);
    WITH RECURSIVE type (number, oid, base) AS (
        SELECT a.attnum, t.oid, t.typbasetype
        FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
        WHERE a.attrelid = target AND a.attname = meant
      UNION ALL
        SELECT d.number, t.oid, t.typbasetype FROM type AS d JOIN pg_type AS t ON t.oid = d.base
    )
    SELECT d.number, d.oid INTO meant_number, meant_type FROM type AS d WHERE d.base = 0;
    IF meant_type NOT IN ('int8'::regtype, 'int4'::regtype, 'int2'::regtype) THEN
        RAISE EXCEPTION 'column "%" of % holds no IDs', meant, target
            USING ERRCODE = 'datatype_mismatch',
                  DETAIL = format('Its type is %s.', (SELECT format_type(a.atttypid, a.atttypmod) FROM pg_attribute AS a
                                                      WHERE a.attrelid = target AND a.attname = meant)),
                  HINT = 'Snowflake IDs are bigint; old ones may be integer or smallint.';
    END IF;
    numbers := format('SELECT it.%I::bigint AS id FROM %s AS it WHERE it.%I', meant, target, meant);

    -- This server.
    SELECT s.node_id, s.preloaded AND s.node_id IS NOT NULL AND NOT pg_is_in_recovery(),
           CASE WHEN NOT s.preloaded THEN 'snowflake is not in shared_preload_libraries.'
                WHEN s.node_id IS NULL THEN 'snowflake.node_id is not set.'
                WHEN pg_is_in_recovery() THEN 'A standby makes no IDs; the server that it follows can tell.' END
    INTO own_node, is_generating, not_known
    FROM @extschema@.snowflake_status AS s;
    IF NOT is_generating THEN
        RAISE NOTICE 'IDs that this server cannot have made are not looked for' USING DETAIL = not_known;
        own_node := NULL;
    END IF;

    answer := @extschema@.snowflake_migration_read(target, format(
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
        here, numbers, start, last_of_layout, own_node, array_remove(expected_nodes, NULL)));
    kinds := answer[1];
    backends := answer[2];
    counts := answer[3];
    tops := answer[4];
    SELECT max(g.top) INTO highest FROM unnest(kinds, tops) AS g (kind, top) WHERE g.kind IN (is_id, is_of_other_node);
    -- Then the fields that were read are not those that the IDs were made with.
    SELECT s.database_layout, s.layout INTO made_with, read_with
    FROM @extschema@.snowflake_status AS s WHERE s.database_layout <> s.layout;
    IF FOUND THEN
        RAISE NOTICE 'IDs of this database were made with another layout'
            USING DETAIL = format('They were made with "%s"; they are read with "%s".', made_with, read_with),
                  HINT = 'After a change that is wanted, a superuser can run SELECT snowflake_accept_layout().';
        RETURN QUERY SELECT 'IDs of another layout', sum(g.count)::bigint, max(g.top)
                     FROM unnest(kinds, counts, tops) AS g (kind, count, top)
                     WHERE g.kind <> is_before_first HAVING sum(g.count) > 0;
    END IF;

    -- How high IDs may be by now.
    is_read := coalesce((SELECT s.reserved_until IS NOT NULL FROM @extschema@.snowflake_status AS s), false);
    SELECT greatest(m.last_value - 1, 0) AS bound, m.log_cnt < 0 AND is_read AS is_in_slots INTO mark
    FROM @extschema@.snowflake_mark AS m;
    -- Not defined where the library is not preloaded: then what they are by default.
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

    -- A slot where nothing is too high has the highest bound there is.
    IF is_generating THEN
        SELECT array_agg(CASE WHEN seen.top > b.bound THEN b.bound ELSE highest_possible END ORDER BY s.backend_id),
               array_agg(coalesce(seen.top, 0) ORDER BY s.backend_id),
               min(b.bound) FILTER (WHERE seen.top > b.bound)
        INTO slot_bounds, slot_tops, lowest_bound
        FROM @extschema@.snowflake_get_stat_slots() AS s
        CROSS JOIN LATERAL (SELECT greatest(s.bound, CASE WHEN NOT mark.is_in_slots THEN mark.bound END, 0)) AS b (bound)
        LEFT JOIN (SELECT g.backend, max(g.top) FROM unnest(backends, tops) AS g (backend, top) GROUP BY g.backend)
               AS seen (backend, top) ON seen.backend = s.backend_id;
    END IF;

    IF highest > allowed OR lowest_bound IS NOT NULL THEN
        answer := @extschema@.snowflake_migration_read(target, format(
            'SELECT count(*) FILTER (WHERE n.id > %8$L::bigint) AS count,
                    max(n.id) FILTER (WHERE n.id > %8$L::bigint) AS top,
                    count(*) FILTER (WHERE n.is_not_own) AS not_own,
                    max(n.id) FILTER (WHERE n.is_not_own) AS not_own_top
             FROM (SELECT d.id, %1$s.snowflake_node_id(d.id) = %7$L::integer
                                AND d.id > (%9$L::bigint[])[%1$s.snowflake_backend_id(d.id) + 1]
                                AND d.id <= (%10$L::bigint[])[%1$s.snowflake_backend_id(d.id) + 1] AS is_not_own
                   FROM (%2$s > %4$L::bigint AND it.%3$I >= %5$L::bigint AND it.%3$I <= %6$L::bigint) AS d) AS n',
            here, numbers, meant, least(allowed, lowest_bound), greatest(start, 0), highest, own_node, allowed,
            slot_bounds, slot_tops));
        future := answer[1];
        future_top := answer[2];
        not_own := answer[3];
        not_own_top := answer[4];
    END IF;

    -- Nothing comes twice where a unique index on this column alone says so: not
    -- one that is checked at the end of the transaction (this one may not be over),
    -- nor one that CREATE INDEX CONCURRENTLY left behind, nor one of a table with
    -- inheritance children, which have indexes of their own. The unique index
    -- of a partitioned table covers its partitions: it holds the partition key.
    IF NOT EXISTS (
        SELECT FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indrelid
        JOIN pg_opclass AS o ON o.oid = i.indclass[0]
        JOIN pg_opfamily AS f ON f.oid = o.opcfamily AND f.opfname = 'integer_ops' AND f.opfnamespace = 'pg_catalog'::regnamespace
        WHERE i.indrelid = target AND i.indisunique AND i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate
          AND i.indnkeyatts = 1 AND i.indkey[0] = meant_number AND i.indpred IS NULL
          AND (c.relkind = 'p' OR NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhparent = target)))
    THEN
        answer := @extschema@.snowflake_migration_read(target, format(
            'SELECT sum(g.count - 1)::bigint AS count, max(g.id) AS top
             FROM (SELECT d.id, count(*) FROM (%s IS NOT NULL) AS d GROUP BY d.id HAVING count(*) > 1) AS g', numbers));
        doubled := answer[1];
        doubled_top := answer[2];
        IF doubled > 0 THEN
            RETURN QUERY SELECT 'duplicates', doubled, doubled_top;
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
                     (is_of_other_node, 'IDs of nodes not expected'),
                     (is_before_first, 'IDs below first_id')) AS name (kind, text) ON name.kind = g.kind
        GROUP BY name.kind, name.text
        ORDER BY array_position(ARRAY[is_negative, is_outside, is_of_other_node, is_before_first], name.kind);
    IF not_own > 0 THEN
        RETURN QUERY SELECT 'IDs with this server''s number that it cannot have made', not_own, not_own_top;
    END IF;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_owner_obstacles(target regclass, column_name name)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH root (relation, attname) AS (
        SELECT target, column_name
      UNION
        SELECT r.relation, a.attname
        FROM @extschema@.snowflake_migration_reach(target, column_name) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        WHERE r.is_narrow
    ), altered AS MATERIALIZED (
        SELECT DISTINCT c.oid::regclass AS relation, c.relowner, c.relnamespace
        FROM root
        CROSS JOIN LATERAL @extschema@.snowflake_migration_family(root.relation, root.attname) AS f
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
    -- The owner gives the column its new default.
    SELECT format('permission denied for schema %I, where the extension is', n.nspname),
           format('GRANT USAGE ON SCHEMA %I TO %I.', n.nspname, pg_get_userbyid(a.relowner)), '42501'
    FROM altered AS a JOIN pg_namespace AS n ON n.oid = '@extschema@'::regnamespace
    WHERE a.relation = target AND NOT has_schema_privilege(a.relowner, n.oid, 'USAGE')
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_row_obstacles(target regclass, column_name name)
RETURNS TABLE (obstacle text, remedy text, sqlstate_code text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    first CONSTANT bigint := @extschema@.snowflake_migration_first_id();
    highest bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute AS a
                   WHERE a.attrelid = target AND a.attname = column_name
                     AND @extschema@.snowflake_migration_base_type(a.atttypid) = 'int8'::regtype)
    THEN
        RETURN;
    END IF;
    highest := (@extschema@.snowflake_migration_query(
        target, format('SELECT max(%I) FROM %s', column_name, @extschema@.snowflake_migration_name(target))))[1]::bigint;
    IF highest >= first THEN
        RETURN QUERY SELECT
            format('rows of %s have IDs that are not below the first snowflake ID: the largest is %s, snowflake IDs would begin at %s',
                   target, highest, first),
            'New IDs could meet existing ones. If those have just come from another server, run it again; else give those rows smaller IDs, or use a layout with an earlier epoch.', '55000';
    END IF;
END
$function$;
CREATE FUNCTION snowflake_migration_swap_commands(
    target regclass, column_name name, OUT relations regclass[], OUT statements text[]
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.*, @extschema@.snowflake_migration_name(s.relation) AS named,
               s.relation = target AND s.narrow = snowflake_migration_swap_commands.column_name AS is_target
        FROM @extschema@.snowflake_migration_shadows(target, column_name) AS s
    ), indexed AS MATERIALIZED (
        SELECT x.index, x.shadow, x.shadow_name, x.relation, @extschema@.snowflake_migration_name(x.relation) AS named,
               c.relname AS name, n.nspname AS schema, k.oid AS constraint_oid, k.contype, k.condeferrable, k.condeferred,
               i.indisreplident, i.indisclustered
        FROM @extschema@.snowflake_migration_shadow_indexes(target, column_name) AS x
        JOIN pg_index AS i ON i.indexrelid = x.index
        JOIN pg_class AS c ON c.oid = x.index
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        LEFT JOIN pg_constraint AS k ON k.conindid = x.index AND k.conrelid = x.relation AND k.contype IN ('p', 'u')
    ), referencing AS MATERIALIZED (
        SELECT f.*, @extschema@.snowflake_migration_name(f.relation) AS named
        FROM @extschema@.snowflake_migration_shadow_foreign_keys(target, column_name) AS f
    ), owned AS MATERIALIZED (
        -- Sequences that go with the columns would go for good.
        SELECT s.relation, s.named, s.narrow, @extschema@.snowflake_migration_name(d.objid::regclass) AS sequence
        FROM shadow AS s
        JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                           AND d.refobjid = s.relation AND d.refobjsubid = s.attribute AND d.deptype = 'a'
        JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S'
    ), statement (place, relation, text) AS (
        SELECT 1, f.relation, format('ALTER TABLE %s DROP CONSTRAINT %I', f.named, f.name) FROM referencing AS f
      UNION ALL
        SELECT 2, o.relation, format('ALTER SEQUENCE %s OWNED BY NONE', o.sequence) FROM owned AS o
      UNION ALL
        SELECT 3, s.relation, format('DROP TRIGGER %I ON %s', s.trigger_name, s.named) FROM shadow AS s
      UNION ALL
        -- The constraint that was validated spares the scan.
        SELECT 4, s.relation, format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', s.named, s.shadow_name) FROM shadow AS s WHERE s.is_required
      UNION ALL
        SELECT 5, s.relation, format('ALTER TABLE %s DROP CONSTRAINT %I', s.named, s.check_name) FROM shadow AS s
      UNION ALL
        -- Its indexes and constraints go with it.
        SELECT 6, s.relation, format('ALTER TABLE %s DROP COLUMN %I', s.named, s.narrow) FROM shadow AS s
      UNION ALL
        SELECT 7, s.relation, format('ALTER TABLE %s RENAME COLUMN %I TO %I', s.named, s.shadow_name, s.narrow) FROM shadow AS s
      UNION ALL
        SELECT 8, i.relation, format('ALTER INDEX %I.%I RENAME TO %I', i.schema, i.shadow_name, i.name) FROM indexed AS i
      UNION ALL
        -- Its columns have names of their own, which do not follow the table's.
        SELECT 9, i.relation, format('ALTER TABLE %I.%I RENAME COLUMN %I TO %I', i.schema, i.name, b.attname, a.attname)
        FROM indexed AS i
        JOIN pg_attribute AS a ON a.attrelid = i.index AND a.attnum > 0
        JOIN pg_attribute AS b ON b.attrelid = i.shadow AND b.attnum = a.attnum AND b.attname <> a.attname
      UNION ALL
        SELECT 10, i.relation, format('ALTER TABLE %s ADD CONSTRAINT %I %s USING INDEX %I%s%s', i.named, i.name,
                         CASE i.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END, i.name,
                         CASE WHEN i.condeferrable THEN ' DEFERRABLE' ELSE '' END, CASE WHEN i.condeferred THEN ' INITIALLY DEFERRED' ELSE '' END)
        FROM indexed AS i WHERE i.constraint_oid IS NOT NULL
      UNION ALL
        SELECT 11, f.relation, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', f.named, f.shadow_name, f.name) FROM referencing AS f
      UNION ALL
        -- What ANALYZE does with the column, where that was changed meanwhile.
        SELECT c.place, s.relation, format('ALTER TABLE %s ALTER COLUMN %I %s', s.named, s.narrow, c.action)
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
        SELECT 12, s.relation, format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', s.named, s.narrow, pg_get_expr(d.adbin, d.adrelid))
        FROM shadow AS s JOIN pg_attrdef AS d ON d.adrelid = s.relation AND d.adnum = s.attribute
        WHERE NOT s.is_target
      UNION ALL
        SELECT 12, target, format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.snowflake_nextval()',
                          @extschema@.snowflake_migration_name(target), snowflake_migration_swap_commands.column_name, '@extschema@')
      UNION ALL
        SELECT 13, o.relation, format('ALTER SEQUENCE %s OWNED BY %s.%I', o.sequence, o.named, o.narrow) FROM owned AS o
      UNION ALL
        SELECT 14, i.relation, format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', i.named, i.name) FROM indexed AS i
        -- A primary key is that by default.
        WHERE i.indisreplident
      UNION ALL
        SELECT 14, i.relation, format('ALTER TABLE %s CLUSTER ON %I', i.named, i.name) FROM indexed AS i WHERE i.indisclustered
      UNION ALL
        SELECT 14, i.relation, format('ALTER INDEX %I.%I ALTER COLUMN %s SET STATISTICS %s', i.schema, i.name, a.attnum, a.attstattarget)
        FROM indexed AS i JOIN pg_attribute AS a ON a.attrelid = i.index AND a.attnum > 0 AND a.attstattarget >= 0
      UNION ALL
        SELECT 15, s.relation, format('GRANT %s (%I) ON %s TO %s%s', g.privilege_type, s.narrow, s.named,
                          CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END,
                          CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
        FROM shadow AS s
        JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attribute
        CROSS JOIN LATERAL aclexplode(a.attacl) AS g
      UNION ALL
        SELECT 16, s.relation, format('COMMENT ON COLUMN %s.%I IS %L', s.named, s.narrow, col_description(s.relation, s.attribute))
        FROM shadow AS s WHERE col_description(s.relation, s.attribute) IS NOT NULL
      UNION ALL
        SELECT 16, i.relation, format('COMMENT ON INDEX %I.%I IS %L', i.schema, i.name, obj_description(i.index, 'pg_class'))
        FROM indexed AS i WHERE obj_description(i.index, 'pg_class') IS NOT NULL
      UNION ALL
        SELECT 16, i.relation, format('COMMENT ON CONSTRAINT %I ON %s IS %L', i.name, i.named, obj_description(i.constraint_oid, 'pg_constraint'))
        FROM indexed AS i WHERE obj_description(i.constraint_oid, 'pg_constraint') IS NOT NULL
      UNION ALL
        SELECT 16, f.relation, format('COMMENT ON CONSTRAINT %I ON %s IS %L', f.name, f.named, obj_description(f.foreign_key, 'pg_constraint'))
        FROM referencing AS f WHERE obj_description(f.foreign_key, 'pg_constraint') IS NOT NULL
      UNION ALL
        SELECT 16, s.relation, format('SECURITY LABEL FOR %I ON COLUMN %s.%I IS %L', l.provider, s.named, s.narrow, l.label)
        FROM shadow AS s JOIN pg_seclabel AS l ON l.classoid = 'pg_class'::regclass AND l.objoid = s.relation AND l.objsubid = s.attribute
    )
    SELECT array_agg(s.relation ORDER BY s.place, s.text), array_agg(s.text ORDER BY s.place, s.text) FROM statement AS s
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_fingerprint(relations regclass[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat(string_agg(format('%s %s %s', r.tableoid::oid, r.ctid, r.xmin), ', ' ORDER BY r.tableoid, r.ctid),
                  -- And what is remembered, of which the caller sees what is his.
                  (SELECT string_agg(o::text, ', ' ORDER BY a.attrelid, a.attnum)
                   FROM pg_attribute AS a
                   CROSS JOIN LATERAL @extschema@.snowflake_migration_origin(a.attrelid::regclass, a.attname) AS o
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
CREATE FUNCTION snowflake_migration_swap_locked(
    target regclass, column_name name, relations regclass[], before text, altered regclass[], statements text[], not_nulls jsonb)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    missing text;
    it record;
BEGIN
    PERFORM @extschema@.snowflake_migration_lock(relations, text 'ACCESS EXCLUSIVE');
    IF @extschema@.snowflake_migration_fingerprint(relations) IS DISTINCT FROM before THEN
        IF NOT @extschema@.snowflake_migration_swap_relations(target, column_name) <@ relations THEN
            RAISE EXCEPTION 'column "%" of % is not ready to be swapped', column_name, target
                USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = 'A foreign key has come since.',
                      HINT = 'Nothing was changed by this statement. Ask for the plan again, and run its statements in their order.';
        END IF;
        PERFORM @extschema@.snowflake_migration_require_ready(target, column_name);
        SELECT s.relations, s.statements INTO altered, statements
        FROM @extschema@.snowflake_migration_swap_commands(target, column_name) AS s;
        not_nulls := @extschema@.snowflake_migration_not_null_names(target, column_name);
    END IF;
    -- The sequence has gone on since it was remembered.
    PERFORM @extschema@.snowflake_migration_remember(target, column_name);
    PERFORM @extschema@.snowflake_migration_run_all(altered, statements);
    FOR it IN
        SELECT e ->> 'name' AS former, e ->> 'comment' AS comment, (e ->> 'is_inherited')::boolean AS is_inherited, k.conname AS present,
               k.conrelid::regclass AS relation, @extschema@.snowflake_migration_name(k.conrelid::regclass) AS named
        FROM jsonb_array_elements(not_nulls) AS e
        JOIN pg_attribute AS a ON a.attrelid = (e ->> 'relation')::oid AND a.attname = e ->> 'column'
        JOIN pg_constraint AS k ON k.conrelid = a.attrelid AND k.contype = 'n' AND k.conkey = ARRAY[a.attnum]
    LOOP
        IF it.present <> it.former THEN
            PERFORM @extschema@.snowflake_migration_run(it.relation, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', it.named, it.present, it.former));
        END IF;
        IF NOT it.is_inherited THEN
            PERFORM @extschema@.snowflake_migration_run(it.relation, format('ALTER TABLE %s ALTER CONSTRAINT %I NO INHERIT', it.named, it.former));
        END IF;
        IF it.comment IS NOT NULL THEN
            PERFORM @extschema@.snowflake_migration_run(it.relation, format('COMMENT ON CONSTRAINT %I ON %s IS %L', it.former, it.named, it.comment));
        END IF;
    END LOOP;
    -- Of a layout whose first IDs an integer holds. Others need no look.
    IF @extschema@.snowflake_migration_first_id() <= 2147483647 THEN
        SELECT string_agg(format('%s. %s', o.obstacle, o.remedy), E'\n') INTO missing
        FROM @extschema@.snowflake_migration_row_obstacles(target, column_name) AS o;
        IF missing IS NOT NULL THEN
            RAISE EXCEPTION 'cannot migrate column "%" of %', column_name, target
                USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = missing,
                      HINT = 'Nothing was changed by this statement.';
        END IF;
    END IF;
    PERFORM @extschema@.snowflake_migration_end(target, column_name);
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_swap(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relations CONSTANT regclass[] := @extschema@.snowflake_migration_swap_relations(target, column_name);
    sequences CONSTANT regclass[] := @extschema@.snowflake_migration_swap_sequences(target, column_name);
    before CONSTANT text := @extschema@.snowflake_migration_fingerprint(relations);
    altered regclass[];
    statements text[];
    not_nulls jsonb;
    begun timestamptz;
    told timestamptz;
    pause double precision := 0.25;
BEGIN
    PERFORM @extschema@.snowflake_migration_require_owner(target);
    PERFORM @extschema@.snowflake_migration_require_ready(target, column_name);
    PERFORM @extschema@.snowflake_migration_await_snapshots(target, column_name);
    SELECT s.relations, s.statements INTO altered, statements
    FROM @extschema@.snowflake_migration_swap_commands(target, column_name) AS s;
    not_nulls := @extschema@.snowflake_migration_not_null_names(target, column_name);
    begun := clock_timestamp();
    told := begun;
    LOOP
        BEGIN
            PERFORM @extschema@.snowflake_migration_swap_locked(target, column_name, relations, before, altered, statements, not_nulls);
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            -- Whoever called nextval() has a lock on the sequence until the end of
            -- the transaction, and may want to write to the table before that:
            -- so the locks on the tables are let go of. Only what alters a sequence
            -- can lock it, LOCK TABLE can't.
            told := @extschema@.snowflake_migration_lock_missed(relations || sequences, text 'ACCESS EXCLUSIVE', begun, told);
        END;
        PERFORM pg_sleep(pause * (0.5 + random()));
        pause := least(pause * 1.5, 2);
    END LOOP;
END
$function$;
CREATE FUNCTION snowflake_migration_steps(target regclass, column_name name, online boolean)
RETURNS TABLE (step integer, statement text, lock_level text, rewrites boolean, in_transaction boolean, note text, relation regclass)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    meant CONSTANT name := @extschema@.snowflake_migration_column(target, column_name);
    is_switched CONSTANT boolean := @extschema@.snowflake_migration_is_switched(target, meant);
    named CONSTANT text := @extschema@.snowflake_migration_name(target);
    -- With their types: no other function of the name is nearer to that.
    arguments CONSTANT text := format('%L::pg_catalog.regclass, %L::pg_catalog.name', named, meant);
    -- Not in the format strings themselves: a schema's name may hold a %.
    here CONSTANT text := '@extschema@';
    is_narrow CONSTANT boolean := EXISTS (
        SELECT FROM @extschema@.snowflake_migration_reach(target, meant) AS r WHERE r.is_narrow);
    is_widening CONSTANT boolean := is_narrow OR EXISTS (
        SELECT FROM @extschema@.snowflake_migration_origin(target, meant) AS o
        WHERE o.reverted_at IS NULL AND o.data_type IN ('smallint', 'integer'));
    obstacles text;
    code text;
    identity text;
    notes text;
    it record;
BEGIN
    IF is_narrow OR NOT is_switched THEN
        SELECT string_agg(format('%s. %s', o.obstacle, o.remedy), E'\n'), min(o.sqlstate_code)
        INTO obstacles, code
        FROM (SELECT o.* FROM @extschema@.snowflake_migration_obstacles(target, meant) AS o
            UNION ALL
              SELECT o.* FROM @extschema@.snowflake_migration_way_obstacles(target, meant, coalesce(online, false)) AS o) AS o;
        IF obstacles IS NOT NULL THEN
            RAISE EXCEPTION 'cannot migrate column "%" of %', meant, target
                USING ERRCODE = code, DETAIL = obstacles,
                      HINT = 'Nothing was changed. Remove what stands in the way, then ask for the plan again.';
        END IF;
    END IF;
    step := 0;
    in_transaction := true;
    relation := target;

    IF NOT is_switched AND NOT @extschema@.snowflake_migration_is_remembered(target, meant) THEN
        step := step + 1;
        statement := format('SELECT %s.snowflake_migration_remember(%s)', here, arguments);
        lock_level := 'SHARE UPDATE EXCLUSIVE';
        rewrites := false;
        note := 'remembers what feeds the column, for snowflake_migrate_revert()';
        RETURN NEXT;
    END IF;

    IF online AND is_narrow THEN
        rewrites := false;
        FOR statement, lock_level, in_transaction, note IN
            SELECT s.statement, s.lock_level, s.in_transaction, s.note
            FROM @extschema@.snowflake_migration_online_steps(target, meant) AS s
        LOOP
            step := step + 1;
            RETURN NEXT;
        END LOOP;
        RETURN;
    END IF;

    FOR it IN
        SELECT r.relation, @extschema@.snowflake_migration_name(r.relation) AS named,
               @extschema@.snowflake_migration_locked_too(r.relation, array_agg(a.attnum)) AS locked_too,
               @extschema@.snowflake_migration_publications(r.relation, min(a.attname::text)::name) AS publications,
               string_agg(format('ALTER COLUMN %I TYPE bigint', a.attname), ', ' ORDER BY a.attnum) AS actions,
               string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS names,
               pg_size_pretty((SELECT sum(pg_total_relation_size(t.relid)) FROM (
                   WITH RECURSIVE tree (relid) AS (
                       SELECT r.relation::oid UNION SELECT i.inhrelid FROM tree JOIN pg_inherits AS i ON i.inhparent = tree.relid)
                   SELECT tree.relid FROM tree) AS t)) AS size,
               EXISTS (SELECT FROM pg_partitioned_table AS p WHERE p.partrelid = r.relation) AS is_partitioned
        FROM @extschema@.snowflake_migration_reach(target, meant) AS r
        JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
        WHERE r.is_narrow
        GROUP BY r.relation
        ORDER BY r.relation = target DESC, r.relation::text
    LOOP
        step := step + 1;
        relation := it.relation;
        statement := format('ALTER TABLE %s %s', it.named, it.actions);
        lock_level := 'ACCESS EXCLUSIVE';
        rewrites := true;
        note := format('widens %s; rewrites the table and its indexes (%s now, needed once more while it runs, and in the WAL), and checks its foreign keys anew',
                       it.names, it.size)
                || coalesce('. Also locked: ' || it.locked_too, '')
                || coalesce('. Published by ' || it.publications || ': widen the column at the subscribers first', '')
                || CASE WHEN it.is_partitioned THEN '. Indexes and not-null constraints of partitions that belong to one of the table are made anew as if the table''s were '
                                                    'created now: with the names that they get then, its comment, and no mark of CLUSTER' ELSE '' END;
        RETURN NEXT;
    END LOOP;

    IF NOT is_switched THEN
        SELECT a.attidentity INTO identity FROM pg_attribute AS a WHERE a.attrelid = target AND a.attname = meant;
        step := step + 1;
        relation := target;
        statement := @extschema@.snowflake_migration_block(
            CASE WHEN online
                 THEN format(E'    PERFORM %s.snowflake_migration_lock(%L::pg_catalog.regclass[], text ''ACCESS EXCLUSIVE'');\n', here, ARRAY[named])
                 ELSE format(E'    LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;\n', named) END
            || format(E'    PERFORM %s.snowflake_migration_check(%s);\n', here, arguments)
            || CASE WHEN identity <> '' THEN format(E'    ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY;\n', named, meant) ELSE '' END
            || format(E'    ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s.snowflake_nextval();\n', named, meant, here));
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
                       @extschema@.snowflake_migration_first_id())
                || coalesce('. The sequence goes on feeding ' || notes, '');
        SELECT string_agg(k.conname, ', ' ORDER BY k.conname) INTO notes
        FROM pg_constraint AS k JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
        WHERE k.conrelid = target AND k.contype = 'c' AND a.attname = meant;
        note := note || coalesce('. They have to pass the check constraints ' || notes, '');
        RETURN NEXT;
    END IF;

    -- A rewritten column has no statistics until the table is analyzed. Which
    -- ones were rewritten already is not known: those are meant that have none.
    -- ANALYZE goes on to partitions, and to other children in PostgreSQL 18.
    FOR it IN
        SELECT f.relation, @extschema@.snowflake_migration_name(f.relation) AS named,
               string_agg(DISTINCT quote_ident(r.attname), ', ') AS names
        FROM (SELECT r.relation, a.attname, bool_or(r.is_narrow) OVER (PARTITION BY r.relation) AS is_rewritten
              FROM @extschema@.snowflake_migration_reach(target, meant) AS r
              JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute) AS r
        CROSS JOIN LATERAL @extschema@.snowflake_migration_family(r.relation, r.attname) AS f
        JOIN pg_class AS c ON c.oid = f.relation AND NOT c.relispartition AND c.relkind <> 'f'
        WHERE pg_has_role(c.relowner, 'USAGE')
          AND (r.is_rewritten
               OR is_widening AND @extschema@.snowflake_migration_lacks_statistics(f.relation, r.attname))
        GROUP BY f.relation
        ORDER BY f.relation = target DESC, f.relation::text
    LOOP
        step := step + 1;
        relation := it.relation;
        statement := format('ANALYZE %s (%s)', it.named, it.names);
        lock_level := 'SHARE UPDATE EXCLUSIVE';
        rewrites := false;
        note := 'a rewritten column has no statistics';
        RETURN NEXT;
    END LOOP;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_plan(
    target regclass, column_name name DEFAULT NULL, online boolean DEFAULT false
) RETURNS TABLE (step integer, statement text, lock_level text, rewrites boolean, in_transaction boolean, note text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN QUERY
        SELECT s.step, s.statement, s.lock_level, s.rewrites, s.in_transaction, s.note
        FROM @extschema@.snowflake_migration_steps(target, column_name, online) AS s;
END
$function$;
CREATE OR REPLACE PROCEDURE snowflake_migrate(target regclass, column_name name DEFAULT NULL)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $procedure$
DECLARE
    it record;
    done integer := 0;
BEGIN
    PERFORM @extschema@.snowflake_migration_limit_locks();
    FOR it IN SELECT * FROM @extschema@.snowflake_migration_steps(target, column_name, false) LOOP
        RAISE NOTICE 'step %: %', it.step, it.note;
        PERFORM @extschema@.snowflake_migration_run(it.relation, it.statement);
        done := done + 1;
    END LOOP;
    IF done = 0 THEN
        RAISE NOTICE 'nothing to do: % is migrated', target;
    END IF;
END
$procedure$;
CREATE OR REPLACE FUNCTION snowflake_migration_sequence_options(options jsonb)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    -- As numbers: whatever else it was would be a part of the statement.
    SELECT format('START WITH %s INCREMENT BY %s %s %s CACHE %s %s', (options ->> 'start')::bigint, (options ->> 'increment')::bigint,
        CASE WHEN (options ->> 'type', options ->> 'minimum') IN (('smallint', '-32768'), ('integer', '-2147483648'))
             THEN 'NO MINVALUE' ELSE 'MINVALUE ' || (options ->> 'minimum')::bigint END,
        CASE WHEN (options ->> 'type', options ->> 'maximum') IN (('smallint', '32767'), ('integer', '2147483647'))
             THEN 'NO MAXVALUE' ELSE 'MAXVALUE ' || (options ->> 'maximum')::bigint END,
        (options ->> 'cache')::bigint, CASE WHEN (options ->> 'cycle')::boolean THEN 'CYCLE' ELSE 'NO CYCLE' END)
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_dress_sequence(sequence regclass, origin snowflake_origins)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    named CONSTANT text := @extschema@.snowflake_migration_name(sequence);
    it record;
BEGIN
    FOR it IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS grantee
        FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
        WHERE c.oid = sequence AND a.grantee <> c.relowner
    LOOP
        PERFORM @extschema@.snowflake_migration_run(origin.target, format('REVOKE ALL ON SEQUENCE %s FROM %s', named, it.grantee));
    END LOOP;
    FOR it IN
        SELECT p ->> 'grantee' AS grantee, p ->> 'privilege' AS privilege, (p ->> 'grantable')::boolean AS grantable
        FROM jsonb_array_elements(origin.sequence_privileges) AS p
        -- A role may be gone, or not have come along to another server.
        WHERE p ->> 'grantee' IS NULL OR to_regrole(quote_ident(p ->> 'grantee')) IS NOT NULL
    LOOP
        IF it.privilege IS NULL OR it.privilege NOT IN ('SELECT', 'UPDATE', 'USAGE') THEN
            RAISE EXCEPTION 'invalid privilege of a sequence: "%"', it.privilege USING ERRCODE = 'invalid_parameter_value';
        END IF;
        PERFORM @extschema@.snowflake_migration_run(origin.target, format('GRANT %s ON SEQUENCE %s TO %s%s', it.privilege, named,
            coalesce(quote_ident(it.grantee), 'PUBLIC'), CASE WHEN it.grantable THEN ' WITH GRANT OPTION' ELSE '' END));
    END LOOP;
    IF origin.sequence_comment IS NOT NULL THEN
        PERFORM @extschema@.snowflake_migration_run(origin.target, format('COMMENT ON SEQUENCE %s IS %L', named, origin.sequence_comment));
    END IF;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_restore_identity(origin snowflake_origins)
RETURNS regclass LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    named CONSTANT text := @extschema@.snowflake_migration_name(origin.target);
    sequence regclass;
BEGIN
    PERFORM @extschema@.snowflake_migration_run(origin.target, format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', named, origin.column_name));
    PERFORM @extschema@.snowflake_migration_run(origin.target,
        format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %I.%I %s)',
            named, origin.column_name,
            CASE origin.kind WHEN 'identity always' THEN 'ALWAYS' ELSE 'BY DEFAULT' END,
            (SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = origin.target),
            origin.sequence_name, @extschema@.snowflake_migration_sequence_options(origin.sequence_options)));
    sequence := @extschema@.snowflake_migration_owned_sequence(origin.target, origin.column_name);
    PERFORM @extschema@.snowflake_migration_dress_sequence(sequence, origin);
    RETURN sequence;
END
$function$;
CREATE FUNCTION snowflake_migration_named_sequence(sequence_schema name, sequence_name name)
RETURNS regclass LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.oid::regclass
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = sequence_schema AND c.relname = sequence_name AND c.relkind = 'S'
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_restore_sequence(origin snowflake_origins)
RETURNS regclass LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    named CONSTANT text := format('%I.%I', origin.sequence_schema, origin.sequence_name);
    type CONSTANT text := origin.sequence_options ->> 'type';
    sequence regclass;
BEGIN
    IF type IS NULL OR type NOT IN ('smallint', 'integer', 'bigint') THEN
        RAISE EXCEPTION 'invalid type of a sequence: "%"', type USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM @extschema@.snowflake_migration_run(origin.target, format('CREATE SEQUENCE %s AS %s %s', named, type,
        @extschema@.snowflake_migration_sequence_options(origin.sequence_options)));
    IF origin.kind = 'serial' THEN
        PERFORM @extschema@.snowflake_migration_run(origin.target, format('ALTER SEQUENCE %s OWNED BY %s.%I', named,
            @extschema@.snowflake_migration_name(origin.target), origin.column_name));
    END IF;
    sequence := @extschema@.snowflake_migration_named_sequence(origin.sequence_schema, origin.sequence_name);
    PERFORM @extschema@.snowflake_migration_dress_sequence(sequence, origin);
    RETURN sequence;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_restore_default(origin snowflake_origins, sequence regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    named CONSTANT text := @extschema@.snowflake_migration_name(origin.target);
    plain CONSTANT text := CASE WHEN origin.sequence_name IS NOT NULL
        THEN format('nextval(%L::regclass)', format('%I.%I', origin.sequence_schema, origin.sequence_name)) END;
BEGIN
    PERFORM @extschema@.snowflake_migration_run(origin.target, format('ALTER TABLE %s ALTER COLUMN %I %s', named, origin.column_name,
        CASE WHEN origin.default_expression IS NULL THEN 'DROP DEFAULT'
             WHEN origin.default_expression = plain AND sequence IS NOT NULL
             THEN format('SET DEFAULT nextval(%L::regclass)', @extschema@.snowflake_migration_name(sequence))
             ELSE 'SET DEFAULT ' || origin.default_expression END));
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_restore_children(origin snowflake_origins)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    it record;
BEGIN
    FOR it IN
        SELECT f.relation, d ->> 'default' AS expression
        FROM jsonb_array_elements(origin.child_defaults) AS d
        JOIN @extschema@.snowflake_migration_family(origin.target, origin.column_name) AS f ON true
        JOIN pg_class AS c ON c.oid = f.relation AND c.relname = d ->> 'name'
        JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = d ->> 'schema'
    LOOP
        PERFORM @extschema@.snowflake_migration_run(origin.target,
            format('ALTER TABLE ONLY %s ALTER COLUMN %I %s', @extschema@.snowflake_migration_name(it.relation),
                   origin.column_name, coalesce('SET DEFAULT ' || it.expression, 'DROP DEFAULT')));
    END LOOP;
END
$function$;
CREATE OR REPLACE FUNCTION snowflake_migration_continue_sequence(sequence regclass, is_new boolean, origin snowflake_origins)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    options pg_sequence;
    is_own CONSTANT boolean := EXISTS (
        SELECT FROM pg_class AS c JOIN pg_class AS t ON t.relowner = c.relowner WHERE c.oid = sequence AND t.oid = origin.target);
    state record;
    present bigint;
    taken bigint;
    base bigint;
    reached bigint;
    landing bigint;
    is_called boolean := true;
BEGIN
    SELECT s.* INTO options FROM pg_sequence AS s WHERE s.seqrelid = sequence;
    IF NOT EXISTS (SELECT FROM pg_attribute AS a
                   WHERE a.attrelid = origin.target AND a.attname = origin.column_name
                     AND @extschema@.snowflake_migration_base_type(a.atttypid) IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype))
    THEN
        RAISE EXCEPTION 'column "%" of % is of another type now', origin.column_name, origin.target
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    SELECT s.last_value, s.is_called INTO state FROM @extschema@.snowflake_migration_sequence_state(sequence, origin.target) AS s;
    present := CASE WHEN state.is_called AND NOT is_new THEN state.last_value END;
    IF NOT is_own AND (state.last_value IS NULL OR present >= origin.first_id_ever) THEN
        RETURN;
    END IF;
    -- Scripts that set sequences to max(id) may have set it to a snowflake ID.
    taken := coalesce(CASE WHEN present < origin.first_id_ever THEN present END, origin.sequence_last_value);
    base := coalesce(taken, (origin.sequence_options ->> 'next')::bigint,
                     CASE WHEN NOT is_own THEN state.last_value END, options.seqstart);
    reached := (@extschema@.snowflake_migration_run(origin.target,
        format('SELECT %1$s(%2$I) FROM %3$s WHERE %2$I < %4$L::bigint AND %2$I BETWEEN %5$L::bigint AND %6$L::bigint',
               CASE WHEN options.seqincrement > 0 THEN 'max' ELSE 'min' END,
               origin.column_name, @extschema@.snowflake_migration_name(origin.target),
               origin.first_id_ever, options.seqmin, options.seqmax)))[1]::bigint;
    IF sign(reached::numeric - base) = sign(options.seqincrement) OR reached = base AND taken IS NULL THEN
        DECLARE
            stepped CONSTANT numeric := base + ceil((reached::numeric - base) / options.seqincrement) * options.seqincrement;
        BEGIN
            landing := CASE WHEN stepped BETWEEN options.seqmin AND options.seqmax THEN stepped ELSE reached END;
        END;
    ELSIF taken IS NOT NULL AND taken IS DISTINCT FROM present THEN
        landing := taken;
    ELSIF is_own AND taken IS NULL AND (present IS NOT NULL OR is_new AND base <> options.seqstart) THEN
        landing := base;
        is_called := false;
    END IF;
    IF landing IS NOT NULL THEN
        -- By its number: a name could be another relation's by then.
        PERFORM @extschema@.snowflake_migration_run(origin.target,
            format('SELECT setval(%L::regclass, %L::bigint, %L::boolean)', sequence::oid, landing, is_called));
    END IF;
END
$function$;
CREATE OR REPLACE PROCEDURE snowflake_migrate_revert(target regclass, column_name name DEFAULT NULL)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $procedure$
DECLARE
    meant name;
    origin @extschema@.snowflake_origins;
    sequence regclass;
    is_new boolean := false;
    has_shadows boolean;
BEGIN
    -- First: of others' tables not even the column that was migrated is found.
    IF EXISTS (SELECT FROM pg_class AS c WHERE c.oid = target AND c.relkind IN ('r', 'p')) THEN
        PERFORM @extschema@.snowflake_migration_require_owner(target);
    END IF;
    meant := @extschema@.snowflake_migration_column(target, column_name);
    has_shadows := @extschema@.snowflake_migration_drop_shadows(target, meant);
    PERFORM @extschema@.snowflake_migration_limit_locks();
    PERFORM @extschema@.snowflake_migration_lock_table(target, text 'ACCESS EXCLUSIVE');
    -- Its children too: the sequence has to follow the IDs in them.
    PERFORM @extschema@.snowflake_migration_lock_table(c.oid::regclass, text 'ACCESS EXCLUSIVE')
    FROM @extschema@.snowflake_migration_family(target, meant) AS f
    JOIN pg_class AS c ON c.oid = f.relation AND c.relkind IN ('r', 'p')
    WHERE f.relation <> target;
    origin := @extschema@.snowflake_migration_origin(target, meant);
    IF (origin.target IS NULL OR origin.reverted_at IS NOT NULL) AND has_shadows THEN
        RETURN;
    ELSIF origin.target IS NULL OR origin.reverted_at IS NOT NULL THEN
        RAISE EXCEPTION 'nothing is known of what column "%" of % had before', meant, target
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Only what snowflake_migrate() or its plan has migrated can be reverted. If the column was renamed since, rename it back first; else give it a default of its own.';
    END IF;

    IF has_shadows AND NOT @extschema@.snowflake_migration_is_switched(target, meant) THEN
        NULL;  -- Taken back before the swap: nothing else was changed.
    ELSIF NOT @extschema@.snowflake_migration_is_switched(target, meant) THEN
        RAISE NOTICE 'column "%" of % does not have snowflake_nextval() as its default: it keeps what it has', meant, target;
    ELSE
        IF origin.kind LIKE 'identity %' THEN
            sequence := @extschema@.snowflake_migration_restore_identity(origin);
            is_new := true;
        ELSE
            IF origin.sequence_name IS NOT NULL THEN
                sequence := coalesce(@extschema@.snowflake_migration_named_sequence(origin.sequence_schema, origin.sequence_name),
                    @extschema@.snowflake_migration_owned_sequence(target, meant));
                is_new := sequence IS NULL;
                IF is_new THEN
                    sequence := @extschema@.snowflake_migration_restore_sequence(origin);
                ELSIF origin.kind = 'serial'
                      AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence
                                        AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'a')
                THEN
                    PERFORM @extschema@.snowflake_migration_run(target, format('ALTER SEQUENCE %s OWNED BY %s.%I',
                        @extschema@.snowflake_migration_name(sequence), @extschema@.snowflake_migration_name(target), meant));
                END IF;
            END IF;
            PERFORM @extschema@.snowflake_migration_restore_default(origin, sequence);
        END IF;
        PERFORM @extschema@.snowflake_migration_restore_children(origin);
        IF sequence IS NOT NULL THEN
            PERFORM @extschema@.snowflake_migration_continue_sequence(sequence, is_new, origin);
        END IF;
    END IF;
    PERFORM @extschema@.snowflake_migration_put_back(target, meant);
END
$procedure$;
REVOKE EXECUTE ON FUNCTION @extschema@.snowflake_accept_layout() FROM PUBLIC;
COMMENT ON FUNCTION snowflake_accept_layout() IS
    'Accepts a change of snowflake.layout: this database''s IDs have the present layout from now on';
COMMENT ON FUNCTION snowflake_get_database_layout() IS
    'Behind the view snowflake_status: the layout that this database''s IDs were made with';
COMMENT ON TABLE snowflake_accepted_layout IS 'The layout that this database''s IDs were made with; written by the extension only. snowflake_accept_layout() accepts another one';
COMMENT ON COLUMN snowflake_accepted_layout.layout IS 'The layout, in canonical form';
COMMENT ON COLUMN snowflake_accepted_layout.accepted_at IS 'When the first ID was made with it, or when it was accepted';
COMMENT ON COLUMN snowflake_status.database_layout IS 'The layout that this database''s IDs were made with; NULL while none is known. Other than layout: name it when you read old IDs, or accept the new one';
COMMENT ON FUNCTION snowflake_backend_id(id bigint) IS
    'The number of the slot that made an ID, by this server''s layout: for single IDs the PID modulo the number of slots, for those in bulk 0 or any other';
COMMENT ON FUNCTION snowflake_backend_id(id bigint, layout text) IS
    'The number of the slot that made an ID, by a layout''s text or preset name: for a server of this extension the PID modulo the number of slots, or for IDs in bulk 0 or any other';
COMMENT ON COLUMN snowflake_origins.sequence_last_value IS 'The last number that was taken from it; NULL for a sequence of another role than the table''s owner';
COMMENT ON FUNCTION snowflake_migration_steps(target regclass, column_name name, online boolean) IS
    'Behind snowflake_migration_plan: its steps, each with the table whose owner runs it in snowflake_migrate';
COMMENT ON FUNCTION snowflake_migration_run(relation regclass, statement text) IS
    'Behind snowflake_migrate: runs one statement with the rights of a table''s owner, which the caller must have; the first row as an array';
COMMENT ON FUNCTION snowflake_migration_query(relation regclass, query text) IS
    'Behind snowflake_migration_plan: runs one query with the rights of a table''s owner, which the caller must have; the first row as an array';
COMMENT ON FUNCTION snowflake_migration_read(relation regclass, query text) IS
    'Runs one query with the rights of a table''s owner where the caller has them, else with the caller''s own; the first row as an array';
COMMENT ON FUNCTION snowflake_migration_run_all(relations regclass[], statements text[]) IS
    'Behind snowflake_migration_swap: runs statements, each with the rights of the owner of its table';
COMMENT ON FUNCTION snowflake_migration_lock_table(relation regclass, mode text) IS
    'Behind snowflake_migration_lock: locks a table, without its children, by its OID';
COMMENT ON FUNCTION snowflake_migration_sequence_state(sequence regclass, on_behalf_of regclass) IS
    'Behind snowflake_migration_remember: how far a sequence is; NULL where the owner of the table may not read it';
COMMENT ON FUNCTION snowflake_migration_owned_sequence(target regclass, column_name name) IS
    'Behind snowflake_migrate_revert: the sequence of an identity or serial column';
COMMENT ON FUNCTION snowflake_migration_named_sequence(sequence_schema name, sequence_name name) IS
    'Behind snowflake_migrate_revert: a sequence by its name, if it exists';
COMMENT ON FUNCTION snowflake_migration_origin(target regclass, column_name name) IS
    'What snowflake_origins has of a column, for the owner of its table; else NULL';
COMMENT ON FUNCTION snowflake_migration_keep_origin(origin snowflake_origins) IS
    'Behind snowflake_migration_remember: writes a row of snowflake_origins, for the owner of its table';
COMMENT ON FUNCTION snowflake_migration_keep_progress(step snowflake_progress) IS
    'Behind snowflake_migrate_backfill: writes a row of snowflake_progress, for the owner of its tables';
COMMENT ON FUNCTION snowflake_migration_guard() IS
    'The trigger that lets only superusers change snowflake_origins and snowflake_progress by SQL';
COMMENT ON FUNCTION snowflake_migration_swap_commands(target regclass, column_name name) IS
    'Behind snowflake_migration_swap: the DDL that it runs, and the table that each statement alters';
COMMENT ON FUNCTION snowflake_migration_swap_locked(target regclass, column_name name, relations regclass[], before text, altered regclass[], statements text[], not_nulls jsonb) IS
    'Behind snowflake_migration_swap: one try';
-- Written by scripts/upgrade-script: end

-- In 0.1.0 privileges that were granted on all tables of the schema let roles
-- write to the extension's tables, and add triggers that ran as whoever wrote.
DO $do$
DECLARE
    former CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
    here CONSTANT pg_catalog.text := '@extschema@';
    grantees text;
    it record;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR it IN
        SELECT c.relname, t.tgname
        FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
        WHERE t.tgrelid IN ('@extschema@.snowflake_origins'::regclass, '@extschema@.snowflake_progress'::regclass)
          AND NOT t.tgisinternal AND t.tgname NOT IN ('snowflake_origins_stay', 'snowflake_progress_stay')
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s.%I', it.tgname, here, it.relname);
        RAISE WARNING 'trigger "%" of "%" was dropped', it.tgname, it.relname
            USING DETAIL = 'It is none of the extension''s. In 0.1.0 it ran with the rights of the role that migrated a table.';
    END LOOP;

    SELECT string_agg(DISTINCT CASE p.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(p.grantee)) END, ', ') INTO grantees
    FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS p
    WHERE c.oid IN ('@extschema@.snowflake_origins'::regclass, '@extschema@.snowflake_progress'::regclass, '@extschema@.snowflake_mark'::regclass)
      AND p.grantee <> c.relowner AND p.privilege_type <> 'SELECT';
    IF grantees IS NOT NULL THEN
        RAISE WARNING 'roles could write to the extension''s tables or to its mark: %', grantees
            USING DETAIL = 'Their privileges are revoked.',
                  HINT = 'Look at what is in snowflake_origins before you revert a migration.';
    END IF;

    FOR it IN
        SELECT c.relkind, c.relname, p.privilege_type, CASE p.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(p.grantee)) END AS grantee
        FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS p
        WHERE c.oid IN ('@extschema@.snowflake_origins'::regclass, '@extschema@.snowflake_progress'::regclass, '@extschema@.snowflake_mark'::regclass,
                        '@extschema@.snowflake_accepted_layout'::regclass)
          AND p.grantee <> c.relowner AND p.privilege_type <> 'SELECT'
    LOOP
        EXECUTE format('REVOKE %s ON %s %s.%I FROM %s', it.privilege_type, CASE it.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
                       here, it.relname, it.grantee);
    END LOOP;

    -- What sequences of other roles had counted.
    UPDATE @extschema@.snowflake_origins AS o
    SET sequence_last_value = NULL, sequence_options = o.sequence_options - 'next'
    FROM pg_class AS t, pg_class AS s
    WHERE t.oid = o.target AND s.oid = to_regclass(format('%I.%I', o.sequence_schema, o.sequence_name)) AND s.relowner <> t.relowner;
    PERFORM set_config('search_path', former, true);
END
$do$;

REVOKE SELECT ON snowflake_origins FROM PUBLIC;
CREATE TRIGGER snowflake_origins_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_origins
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_migration_guard();
ALTER TABLE snowflake_origins ENABLE ALWAYS TRIGGER snowflake_origins_guard;
CREATE TRIGGER snowflake_progress_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_progress
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_migration_guard();
ALTER TABLE snowflake_progress ENABLE ALWAYS TRIGGER snowflake_progress_guard;

-- As the tables of migrations: written by SQL only by superusers, and each
-- server's own.
CREATE TRIGGER snowflake_accepted_layout_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON @extschema@.snowflake_accepted_layout
    FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.snowflake_migration_guard();
ALTER TABLE @extschema@.snowflake_accepted_layout ENABLE ALWAYS TRIGGER snowflake_accepted_layout_guard;
CREATE TRIGGER snowflake_accepted_layout_stay BEFORE INSERT OR UPDATE OR DELETE ON @extschema@.snowflake_accepted_layout
    FOR EACH ROW EXECUTE FUNCTION @extschema@.snowflake_origins_stay();
ALTER TABLE @extschema@.snowflake_accepted_layout ENABLE REPLICA TRIGGER snowflake_accepted_layout_stay;

-- Only what is new: a GRANT makes all privileges of an object the extension's
-- own for pg_dump, those that somebody has added too.
GRANT SELECT ON @extschema@.snowflake_accepted_layout TO PUBLIC;
-- It has the last values of sequences of tables that were migrated. The owner of
-- a database has to be able to dump it.
GRANT SELECT ON @extschema@.snowflake_origins TO pg_database_owner;

\echo Use "ALTER EXTENSION snowflake UPDATE TO '0.3.0'" to load this file. \quit

-- Written by scripts/upgrade-script: begin
CREATE  FUNCTION "snowflake_accept_node_id"(

) RETURNS void
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'snowflake_accept_node_id_wrapper';
CREATE FUNCTION snowflake_internal.get_node_status() RETURNS TABLE (
    node_id_source text, node_conflicts bigint, conflict_id bigint, stopped boolean, is_copy boolean, copied_from text
) STRICT VOLATILE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_get_node_status_wrapper';
CREATE FUNCTION snowflake_internal.get_resolved() RETURNS TABLE (
    resolved_id bigint, resolved_age double precision, unknown_prepared bigint
) STRICT VOLATILE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_get_resolved_wrapper';
CREATE OR REPLACE VIEW snowflake_status AS
    SELECT version, preloaded, layout, node_id, last_id_at, reserved_until,
           pg_catalog.make_interval(secs => clock_behind) AS clock_behind,
           ids, waits, expires_at,
           snowflake_internal.get_database_layout() AS database_layout,
           node_id_source, node_conflicts, stopped, copied_from,
           resolved_id, pg_catalog.make_interval(secs => resolved_age) AS resolved_age, unknown_prepared
    FROM snowflake_internal.get_status(), snowflake_internal.get_node_status(), snowflake_internal.get_resolved();
CREATE FUNCTION snowflake_internal.get_unresolved() RETURNS TABLE (
    pid integer, prepared_xid xid, first_id bigint, first_id_at timestamp with time zone
) STRICT VOLATILE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_get_unresolved_wrapper';
CREATE FUNCTION snowflake_internal.has_this_node(id bigint) RETURNS boolean
    STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_has_this_node_wrapper';
CREATE  FUNCTION "snowflake_id"(

) RETURNS bigint /* i64 */
STRICT VOLATILE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'snowflake_id_wrapper';
CREATE FUNCTION snowflake_layout_capacity(layout text) RETURNS TABLE (
    name text, canonical text, expires_at timestamp with time zone,
    ids_per_second bigint, nodes bigint, backends bigint
) IMMUTABLE STRICT PARALLEL SAFE ROWS 1 LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_layout_capacity_wrapper';
CREATE FUNCTION snowflake_layouts_for(servers integer) RETURNS TABLE (
    recommended boolean, name text, layout text, expires_at timestamp with time zone,
    ids_per_second bigint, nodes bigint, backends bigint
) STABLE STRICT PARALLEL SAFE ROWS 8 LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_layouts_for_wrapper';
CREATE OR REPLACE FUNCTION snowflake_internal.migration_is_switched(target regclass, column_name name)
RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (
        SELECT FROM pg_attribute AS a
        JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
        JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                           AND d.refclassid = 'pg_proc'::regclass
                           AND d.refobjid IN ('@extschema@.snowflake_nextval()'::regprocedure, '@extschema@.snowflake_id()'::regprocedure)
        WHERE a.attrelid = target AND a.attname = column_name AND a.attgenerated = '')
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
        RAISE EXCEPTION 'column "%" still has a default that generates snowflake IDs', column_name
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_findings(targets regclass[], column_names name[], online boolean)
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
          AND f.code !~ ' snowflake_(?:nextval|id) '
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
                       ELSE 'Use INSERT ... RETURNING.' END,
           c.is_dropped AND EXISTS (SELECT FROM hooked AS h WHERE h.tgfoid = c.oid), 'default'
    FROM sequence_call AS c
  UNION ALL
    SELECT DISTINCT s.relation, s.attname, format('view %s', w.ev_class::regclass), format('uses sequence %s', s.sequence),
           'Its values are old numbers after the migration.', false, 'default'
    FROM key_sequence AS s
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.sequence AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite AS w ON w.oid = d.objid
$function$;
CREATE FUNCTION snowflake_internal.tables_with_ids(target regclass DEFAULT NULL, column_name name DEFAULT NULL)
RETURNS TABLE (table_oid regclass, column_names name[])
LANGUAGE sql STABLE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.oid::regclass, n.column_names
    FROM pg_class AS c
    CROSS JOIN LATERAL (
        SELECT coalesce(
            array_agg(a.attname ORDER BY a.attnum) FILTER (WHERE a.attname = tables_with_ids.column_name),
            array_agg(a.attname ORDER BY a.attnum)
                FILTER (WHERE tables_with_ids.column_name IS NULL AND a.atthasdef
                          AND snowflake_internal.migration_is_switched(c.oid, a.attname)),
            array_agg(a.attname ORDER BY a.attnum)
                FILTER (WHERE tables_with_ids.column_name IS NULL AND tables_with_ids.target IS NOT NULL
                          AND EXISTS (SELECT FROM pg_index AS i
                                      WHERE i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1
                                        AND i.indkey[0] = a.attnum)))
        FROM pg_attribute AS a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid = 'bigint'::regtype) AS n (column_names)
    WHERE c.relkind IN ('r', 'p')
      AND CASE WHEN tables_with_ids.target IS NULL THEN
                   NOT c.relispartition AND c.relpersistence <> 't'
                   -- Few tables have such a default, and most have none.
                   AND EXISTS (SELECT FROM pg_depend AS d JOIN pg_attrdef AS f ON f.oid = d.objid
                               WHERE d.classid = 'pg_attrdef'::regclass AND f.adrelid = c.oid
                                 AND d.refclassid = 'pg_proc'::regclass)
               ELSE c.oid = tables_with_ids.target END
      AND n.column_names IS NOT NULL
    ORDER BY c.oid::regclass::text
$function$;
CREATE  FUNCTION "snowflake_resolved_id"(

) RETURNS bigint /* Option < i64 > */
STRICT STABLE PARALLEL RESTRICTED
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'snowflake_resolved_id_wrapper';
CREATE VIEW snowflake_unresolved AS
    SELECT u.pid, p.gid, u.first_id, u.first_id_at,
           pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) u.first_id_at AS age,
           coalesce(a.usename, p.owner) AS usename, a.application_name, a.state, a.query
    FROM snowflake_internal.get_unresolved() AS u
    LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid OPERATOR(pg_catalog.=) u.pid
    LEFT JOIN pg_catalog.pg_prepared_xacts AS p
        ON p.transaction OPERATOR(pg_catalog.=) u.prepared_xid
    ORDER BY u.first_id;
CREATE OR REPLACE FUNCTION snowflake_internal.migration_default_note(target regclass, column_name name)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('new rows get snowflake IDs from %s on, which an integer or a JavaScript Number (2^53) cannot hold. Existing rows keep their IDs, which decode to the first moments after the epoch. '
                  'lastval() and currval(), which PDO, DBD::Pg, Doctrine and EclipseLink call, do not return new IDs; Rails needs DEFAULT snowflake_id(); '
                  'TypeORM, drizzle-kit and Doctrine restore the column if its declaration is not changed before: see docs/clients.md',
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
CREATE OR REPLACE FUNCTION snowflake_internal.migration_revert(target regclass, column_name name, search_path text)
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
        RAISE NOTICE 'the default of column "%" of % is neither snowflake_nextval() nor snowflake_id(): it is kept', key_column, target;
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
    -- The column whose default generates IDs, otherwise the one that
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
CREATE FUNCTION snowflake_audit_tables(expected_nodes integer[] DEFAULT NULL, schema_name name DEFAULT NULL)
RETURNS TABLE (table_name regclass, column_name name, finding text, ids bigint, example bigint)
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    audited record;
BEGIN
    IF schema_name IS NOT NULL AND NOT EXISTS (SELECT FROM pg_namespace AS n WHERE n.nspname = schema_name) THEN
        RAISE EXCEPTION 'schema "%" does not exist', schema_name USING ERRCODE = 'invalid_schema_name';
    END IF;
    FOR audited IN
        SELECT t.table_oid, c.name
        FROM snowflake_internal.tables_with_ids() AS t
        CROSS JOIN LATERAL unnest(t.column_names) AS c (name)
        WHERE schema_name IS NULL
           OR EXISTS (SELECT FROM pg_class AS r JOIN pg_namespace AS n ON n.oid = r.relnamespace
                      WHERE r.oid = t.table_oid AND n.nspname = schema_name)
    LOOP
        BEGIN
            RETURN QUERY SELECT audited.table_oid, audited.name, a.finding, a.ids, a.example
                         FROM @extschema@.snowflake_audit(audited.table_oid, audited.name, expected_nodes) AS a;
        EXCEPTION
            -- A cancelled job must end.
            WHEN query_canceled OR admin_shutdown OR crash_shutdown THEN
                RAISE;
            WHEN OTHERS THEN
                table_name := audited.table_oid;
                column_name := audited.name;
                finding := format('not audited: %s', SQLERRM);
                ids := NULL;
                example := NULL;
                RETURN NEXT;
        END;
    END LOOP;
    RETURN QUERY SELECT NULL::regclass, NULL::name, 'rows of another server with this server''s node number', s.node_conflicts, s.conflict_id
                 FROM snowflake_internal.get_node_status() AS s WHERE s.node_conflicts > 0 OR s.stopped;
    RETURN QUERY SELECT NULL::regclass, NULL::name, 'the data directory may be a copy of another server''s', NULL::bigint, NULL::bigint
                 FROM snowflake_internal.get_node_status() AS s WHERE s.is_copy;
END
$function$;
CREATE FUNCTION snowflake_internal.watch() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_watch_wrapper';
CREATE PROCEDURE snowflake_watch(target regclass DEFAULT NULL, column_name name DEFAULT NULL)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $procedure$
DECLARE
    watched record;
BEGIN
    IF target IS NULL AND column_name IS NOT NULL THEN
        RAISE EXCEPTION 'column_name needs a target'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass the table as the first argument.';
    END IF;
    FOR watched IN
        SELECT t.table_oid, t.column_names FROM snowflake_internal.tables_with_ids(target, column_name) AS t
    LOOP
        IF EXISTS (SELECT FROM pg_trigger AS t
                   WHERE t.tgrelid = watched.table_oid AND t.tgname = 'snowflake_watch'
                     AND t.tgfoid <> 'snowflake_internal.watch()'::regprocedure)
        THEN
            RAISE EXCEPTION 'trigger "snowflake_watch" of % is not of the extension', watched.table_oid
                USING ERRCODE = 'duplicate_object', HINT = 'Rename the trigger.';
        END IF;
        -- With the privileges of the table's owner, which the caller must have.
        PERFORM snowflake_internal.migration_run(watched.table_oid, format(
            'CREATE OR REPLACE TRIGGER snowflake_watch AFTER INSERT ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION snowflake_internal.watch()',
            watched.table_oid,
            (SELECT string_agg(format('snowflake_internal.has_this_node(NEW.%I)', c.name), ' OR ' ORDER BY c.position)
             FROM unnest(watched.column_names) WITH ORDINALITY AS c (name, position))));
        PERFORM snowflake_internal.migration_run(watched.table_oid,
                                                 format('ALTER TABLE %s ENABLE REPLICA TRIGGER snowflake_watch', watched.table_oid));
    END LOOP;
    IF NOT FOUND THEN
        IF target IS NULL THEN
            RAISE NOTICE 'no table has a column whose default is a snowflake ID';
        ELSE
            RAISE EXCEPTION 'no column of % is known to have snowflake IDs', target
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass a column of type bigint as the second argument.';
        END IF;
    END IF;
END
$procedure$;
REVOKE EXECUTE ON FUNCTION @extschema@.snowflake_accept_node_id() FROM PUBLIC;
GRANT SELECT ON @extschema@.snowflake_unresolved TO PUBLIC;
COMMENT ON FUNCTION snowflake_internal.copy_nextval() IS
    'Called by COPY in place of snowflake_nextval() and snowflake_id(), so that it can insert rows in batches';
COMMENT ON FUNCTION snowflake_internal.get_node_status() IS
    'Used by the view snowflake_status: what is known of this server''s node number';
COMMENT ON FUNCTION snowflake_internal.get_resolved() IS
    'Used by the view snowflake_status: up to where rows can be read by key';
COMMENT ON COLUMN snowflake_status.node_id_source IS 'Where the node number comes from: setting, hostname, environment:NAME or address';
COMMENT ON COLUMN snowflake_status.node_conflicts IS 'Replicated rows with the node number of this server that it has not issued, since the statistics were reset; tables are watched by snowflake_watch()';
COMMENT ON COLUMN snowflake_status.stopped IS 'Whether a node conflict has ended the issuing of IDs on this server (snowflake.on_node_conflict)';
COMMENT ON COLUMN snowflake_status.copied_from IS 'The server whose data directory this one may be a copy of, with the same node number; NULL if nothing indicates a copy';
COMMENT ON COLUMN snowflake_status.resolved_id IS 'What snowflake_resolved_id() returns: below it, no row of this database is missing; NULL if unknown';
COMMENT ON COLUMN snowflake_status.resolved_age IS 'For how long an open transaction has held back resolved_id; zero if none does';
COMMENT ON COLUMN snowflake_status.unknown_prepared IS 'Transactions of this database that were prepared before the server started; resolved_id is unknown until they have ended';
COMMENT ON FUNCTION snowflake_internal.get_unresolved() IS
    'Used by the view snowflake_unresolved';
COMMENT ON FUNCTION snowflake_internal.has_this_node(id bigint) IS
    'Used by the triggers of snowflake_watch: whether an ID has the node number of this server';
COMMENT ON FUNCTION snowflake_layout_capacity(layout text) IS
    'What a layout holds: node numbers, slots of a node, IDs per second of a node over all its slots, and when it runs out';
COMMENT ON FUNCTION snowflake_layouts_for(servers integer) IS
    'Layouts with a node number for each of so many servers, the recommended one first; count standbys and replacements, too';
COMMENT ON FUNCTION snowflake_internal.migration_is_switched(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: whether the column''s default is snowflake_nextval() or snowflake_id()';
COMMENT ON FUNCTION snowflake_internal.tables_with_ids(target regclass, column_name name) IS
    'Used by snowflake_watch and snowflake_audit_tables: tables and their columns with snowflake IDs';
COMMENT ON FUNCTION snowflake_internal.nextval_support(request internal) IS
    'Planner support function of snowflake_nextval() and snowflake_id()';
COMMENT ON FUNCTION snowflake_id() IS
    'Returns the next ID, as snowflake_nextval() does: for frameworks that take a default with "nextval" in it for a sequence''s';
COMMENT ON FUNCTION snowflake_currval() IS
    'Returns the last ID that this session was issued. Behind a pool in transaction mode, use RETURNING instead';
COMMENT ON FUNCTION snowflake_resolved_id() IS
    'The ID below which no row of this database is missing: each row whose ID was generated in the transaction that inserts it is visible to this statement, or never will be; NULL if unknown';
COMMENT ON VIEW snowflake_unresolved IS 'Open transactions of this database that have generated IDs: the first one holds back snowflake_resolved_id()';
COMMENT ON COLUMN snowflake_unresolved.pid IS 'Process of the transaction; NULL for a prepared one';
COMMENT ON COLUMN snowflake_unresolved.gid IS 'Name of the prepared transaction';
COMMENT ON COLUMN snowflake_unresolved.first_id IS 'First ID that the transaction has generated, or a lower one; NULL if it was prepared before the server started, or if you may not see the activity of its role';
COMMENT ON COLUMN snowflake_unresolved.first_id_at IS 'Time of that ID';
COMMENT ON COLUMN snowflake_unresolved.age IS 'How long ago that was';
COMMENT ON COLUMN snowflake_unresolved.usename IS 'Role of the transaction';
COMMENT ON COLUMN snowflake_unresolved.application_name IS 'Name of the application';
COMMENT ON COLUMN snowflake_unresolved.state IS 'State of the session, as in pg_stat_activity';
COMMENT ON COLUMN snowflake_unresolved.query IS 'Latest statement of the session, as in pg_stat_activity';
COMMENT ON FUNCTION snowflake_audit_tables(expected_nodes integer[], schema_name name) IS
    'Runs snowflake_audit on all columns that get snowflake IDs by default, of a schema or of the database, and adds what is known of this server''s node number; no rows if nothing is wrong';
COMMENT ON FUNCTION snowflake_accept_node_id() IS
    'Accepts that no other server uses this server''s node number: IDs that a node conflict has stopped continue, and the data directory is not taken for a copy';
COMMENT ON FUNCTION snowflake_internal.watch() IS
    'The trigger of snowflake_watch: checks a replicated row that has the node number of this server';
COMMENT ON PROCEDURE snowflake_watch(target regclass, column_name name) IS
    'Creates a trigger that notices replicated rows whose IDs another server issued with this server''s node number; without arguments for all tables that get snowflake IDs by default';
-- Written by scripts/upgrade-script: end

-- The COPY path, which upgrade-script does not write.
ALTER FUNCTION snowflake_id() SUPPORT snowflake_internal.nextval_support;

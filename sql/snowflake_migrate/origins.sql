-- The source of a column's values, and recording it for reverting.

CREATE FUNCTION snowflake_migrate_internal.require_owner(target regclass)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relation pg_class;
BEGIN
    SELECT c.* INTO relation FROM pg_class AS c WHERE c.oid = target;
    IF NOT FOUND OR NOT pg_has_role(current_user, relation.relowner, 'USAGE') THEN
        PERFORM snowflake_internal.refuse('42501', format('must be owner of table %s', coalesce(relation.relname, target::oid::text)));
    END IF;
END
$function$;

-- As column_of(), which does not see the record of a migration without ownership, and would
-- report a misleading error.
CREATE FUNCTION snowflake_migrate_internal.column_of_owned(target regclass, column_name name)
RETURNS name LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_migrate_internal.require_owner(c.oid) FROM pg_class AS c WHERE c.oid = target AND c.relkind IN ('r', 'p');
    RETURN snowflake_migrate_internal.column_of(target, column_name);
END
$function$;

-- The present source of a column's values. The switch calls this while it holds the
-- table's lock, so it reads nothing about other tables.
CREATE FUNCTION snowflake_migrate_internal.source(target regclass, column_name name)
RETURNS TABLE (kind text, data_type text, expression text, sequence regclass) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
    SELECT coalesce(k.kind, 'none'), format_type(a.atttypid, a.atttypmod),
           snowflake_migrate_internal.portable(pg_get_expr(f.adbin, f.adrelid)), k.sequence::regclass
    FROM pg_attribute AS a
    LEFT JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
    LEFT JOIN LATERAL (
        SELECT s.kind, s.sequence FROM snowflake_migrate_internal.sequence_columns() AS s
        WHERE s.relation = a.attrelid AND s.attribute = a.attnum
        ORDER BY s.sequence
        LIMIT 1
    ) AS k ON true
    WHERE a.attrelid = target AND a.attname = source.column_name
$function$;

-- The sequence of an identity column, or the one that a column owns.
CREATE FUNCTION snowflake_migrate_internal.owned_sequence(target regclass, column_name name)
RETURNS regclass LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT s.oid::regclass
    FROM pg_attribute AS a
    JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
                       AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    JOIN pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
    WHERE a.attrelid = target AND a.attname = owned_sequence.column_name
    ORDER BY s.oid
    LIMIT 1
$function$;

-- Whether the recorded source of a column is its present one.
CREATE FUNCTION snowflake_migrate_internal.is_recorded(target regclass, column_name name)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT EXISTS (
        SELECT FROM snowflake_migrate_internal.origin(target, column_name) AS o
        CROSS JOIN LATERAL snowflake_migrate_internal.source(o.target, o.column_name) AS s
        LEFT JOIN pg_class AS c ON c.oid = s.sequence
        LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE o.target IS NOT NULL AND o.reverted_at IS NULL
          AND (o.kind, o.default_expression, o.sequence_schema, o.sequence_name)
              IS NOT DISTINCT FROM (s.kind, s.expression, n.nspname, c.relname))
$function$;

-- The statements that set the boundary of a column, in its table, where it stays without
-- the tool. A number is older than the migration if the column's former type held it, or
-- if the sequence had reached it; all roles can read the boundary, so that is rounded up to
-- a power of two. Where Citus is, workers may have drawn from their own part of the
-- sequence's range, which begins at their group times 2^48.
CREATE FUNCTION snowflake_migrate_internal.boundary_statements(origin snowflake_migrate_internal.origins)
RETURNS TABLE (relation regclass, statement text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT s.relation, s.statement
    FROM (SELECT CASE WHEN (origin.sequence_options ->> 'increment')::bigint < 0 THEN NULL
                      WHEN origin.data_type IN ('smallint', 'integer') THEN 2147483647
                      WHEN to_regclass('pg_catalog.pg_dist_node') IS NOT NULL THEN NULL
                      ELSE (SELECT min((1::bigint << n) - 1) FROM generate_series(31, 62) AS n
                            WHERE (1::bigint << n) - 1 >= origin.sequence_last_value) END) AS l (last_before)
    CROSS JOIN LATERAL (SELECT coalesce(least(l.last_before, origin.first_id_ever - 1), origin.first_id_ever - 1)) AS b (last_before)
    CROSS JOIN LATERAL snowflake_internal.boundary_statements(origin.target, origin.column_name, origin.first_id_ever, b.last_before) AS s
    WHERE snowflake_internal.set_boundary_of(origin.target, origin.column_name) IS DISTINCT FROM ARRAY[origin.first_id_ever, b.last_before]
$function$;

-- Whether a default was set by hand, in a table with older numbers, whose boundary is unknown.
CREATE FUNCTION snowflake_migrate_internal.lacks_boundary(target regclass, column_name name)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN snowflake_internal.has_ids(target, column_name) AND has_column_privilege(target::oid, column_name::text, 'SELECT')
                     AND snowflake_internal.set_boundary_of(target, column_name) IS NULL
           THEN snowflake_internal.is_in_shards(target) OR snowflake_internal.other_numbers(target, column_name) = 'below' ELSE false END
$function$;

-- The present source of a column, as it is recorded. The value of another role's
-- sequence is left out, because that sequence keeps it.
CREATE FUNCTION snowflake_migrate_internal.present_origin(target regclass, column_name name)
RETURNS snowflake_migrate_internal.origins LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
DECLARE
    origin snowflake_migrate_internal.origins;
    source record;
    -- An unused sequence may have been set to the first value that it is to return.
    next_value bigint;
BEGIN
    SELECT s.* INTO source FROM snowflake_migrate_internal.source(target, column_name) AS s;
    IF EXISTS (SELECT FROM pg_class AS c JOIN pg_class AS t ON t.relowner = c.relowner
               WHERE c.oid = source.sequence AND t.oid = target) THEN
        SELECT CASE WHEN s.is_called THEN s.last_value END, CASE WHEN NOT s.is_called THEN s.last_value END
        INTO origin.sequence_last_value, next_value
        FROM snowflake_migrate_internal.sequence_state(source.sequence, target) AS s;
    END IF;
    SELECT target, column_name, source.kind, source.data_type, source.expression, n.nspname, c.relname,
           CASE WHEN s.seqrelid IS NOT NULL THEN
               jsonb_build_object('type', s.seqtypid::regtype::text, 'start', s.seqstart, 'increment', s.seqincrement,
                   'minimum', s.seqmin, 'maximum', s.seqmax, 'cache', s.seqcache, 'cycle', s.seqcycle, 'next', next_value) END,
           (SELECT jsonb_agg(jsonb_build_object('grantee', CASE a.grantee WHEN 0 THEN NULL ELSE pg_get_userbyid(a.grantee) END,
                                                'privilege', a.privilege_type, 'grantable', a.is_grantable))
            FROM aclexplode(c.relacl) AS a WHERE a.grantee <> c.relowner),
           obj_description(c.oid, 'pg_class'),
           (SELECT jsonb_agg(jsonb_build_object('schema', fn.nspname, 'name', fc.relname, 'default', e.expression))
            FROM snowflake_migrate_internal.table_tree(target, column_name) AS f
            JOIN pg_class AS fc ON fc.oid = f.relation
            JOIN pg_namespace AS fn ON fn.oid = fc.relnamespace
            LEFT JOIN pg_attrdef AS d ON d.adrelid = f.relation AND d.adnum = f.attribute
            CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.portable(pg_get_expr(d.adbin, d.adrelid)) AS expression) AS e
            WHERE f.relation <> target AND e.expression IS DISTINCT FROM source.expression),
           now()
    INTO origin.target, origin.column_name, origin.kind, origin.data_type, origin.default_expression,
         origin.sequence_schema, origin.sequence_name, origin.sequence_options,
         origin.sequence_privileges, origin.sequence_comment, origin.child_defaults, origin.remembered_at
    FROM (SELECT) AS one_row
    LEFT JOIN pg_class AS c ON c.oid = source.sequence
    LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_sequence AS s ON s.seqrelid = c.oid;
    RETURN origin;
END
$function$;

-- The present source of a column as it is to be recorded. An existing record is brought
-- up to date, because the sequence has advanced since.
CREATE FUNCTION snowflake_migrate_internal.origin_to_record(target regclass, column_name name)
RETURNS snowflake_migrate_internal.origins LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    first CONSTANT bigint := snowflake_migrate_internal.first_id_at(now());
    -- Rows replicated from other servers have snowflake IDs, too.
    oldest CONSTANT bigint := snowflake_internal.oldest_id();
    origin snowflake_migrate_internal.origins := snowflake_migrate_internal.present_origin(target, column_name);
    last_taken bigint;
BEGIN
    IF snowflake_migrate_internal.is_recorded(target, column_name) THEN
        RETURN jsonb_populate_record(o, jsonb_build_object(
                   'first_id', first, 'sequence_last_value', origin.sequence_last_value,
                   'sequence_options', o.sequence_options || jsonb_build_object('next', origin.sequence_options -> 'next')))
               FROM snowflake_migrate_internal.origin(target, column_name) AS o;
    END IF;
    SELECT CASE WHEN q.is_called THEN q.last_value END INTO last_taken
    FROM snowflake_migrate_internal.source(target, column_name) AS s
    CROSS JOIN LATERAL snowflake_migrate_internal.sequence_state(s.sequence, target) AS q;
    origin.first_id_ever := coalesce((snowflake_internal.set_boundary_of(target, column_name))[1],
                                     (snowflake_migrate_internal.origin(target, column_name)).first_id_ever,
                                     CASE WHEN oldest > coalesce(last_taken, 0) THEN least(oldest, first) ELSE first END);
    origin.first_id := first;
    RETURN origin;
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.record_origin(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    key_column CONSTANT name := snowflake_migrate_internal.column_of(target, column_name);
BEGIN
    PERFORM snowflake_migrate_internal.require_owner(target);
    -- One session at a time; rows can still be written. Child tables are not
    -- locked, because only their defaults are read.
    PERFORM snowflake_internal.lock_table(target, text 'SHARE UPDATE EXCLUSIVE');
    IF NOT snowflake_internal.has_ids(target, key_column) THEN
        PERFORM snowflake_migrate_internal.keep_origin(snowflake_migrate_internal.origin_to_record(target, key_column));
    END IF;
END
$function$;

-- Records the revert, once the column's default no longer generates IDs. The caller has
-- locked the tables as ALTER TABLE does, if they have the boundary.
CREATE FUNCTION snowflake_migrate_internal.record_reverted(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    origin snowflake_migrate_internal.origins;
BEGIN
    PERFORM snowflake_migrate_internal.require_owner(target);
    IF snowflake_internal.has_ids(target, column_name) THEN
        PERFORM snowflake_internal.refuse('55000', format('column "%s" still has a default that generates snowflake IDs', column_name),
            hint => 'Use snowflake_migrate.revert() to restore its sequence.');
    END IF;
    origin := snowflake_migrate_internal.origin(target, column_name);
    IF origin.target IS NOT NULL THEN
        origin.reverted_at := now();
        PERFORM snowflake_migrate_internal.keep_origin(origin);
        PERFORM snowflake_internal.run(s.relation, s.statement)
        FROM snowflake_internal.boundary_statements(target, column_name, NULL, NULL) AS s;
    END IF;
END
$function$;

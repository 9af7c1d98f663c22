-- Replacing a sequence by snowflake_nextval(): the properties of a column, the
-- obstacles, the plan, and reverting it. All DDL is such that a table's owner
-- may run it.
--
-- The functions set their own search path, quote every name and give every
-- literal a type. So names, the caller's search path and functions planted beside
-- the extension's do not change what the functions do.
--
-- This file: determining the column, its present state, and the columns that
-- hold the same IDs.

-- The default for column_name: the column that takes or took its values from a
-- sequence; of several, the primary key.
CREATE FUNCTION snowflake_internal.migration_column(target regclass, column_name name)
RETURNS name LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relation pg_class;
    candidates name[];
BEGIN
    SELECT c.* INTO relation FROM pg_class AS c WHERE c.oid = target;
    IF NOT FOUND THEN
        PERFORM snowflake_internal.refuse('42P01', format('relation with OID %s does not exist', coalesce(target::oid, 0)));
    ELSIF relation.relkind NOT IN ('r', 'p') THEN
        PERFORM snowflake_internal.refuse('42809', format('"%s" is not a table', relation.relname));
    END IF;
    IF column_name IS NOT NULL THEN
        PERFORM FROM pg_attribute AS a
        WHERE a.attrelid = target AND a.attname = column_name AND a.attnum > 0 AND NOT a.attisdropped;
        IF NOT FOUND THEN
            PERFORM snowflake_internal.refuse('42703', format('column "%s" of relation "%s" does not exist', column_name, relation.relname));
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
        PERFORM snowflake_internal.refuse('55000', format('no column of "%s" takes its values from a sequence', relation.relname),
            hint => 'Specify the column.');
    END IF;
    PERFORM snowflake_internal.refuse('22023', format('several columns of "%s" take their values from a sequence', relation.relname),
        detail => format('They are %s.', array_to_string(candidates, ', ')),
        hint => 'Specify the column.');
END
$function$;

-- The keys of a plan, as two arrays of the same length: each key once, in a fixed
-- order. The first key is the one by which a migration's progress is recorded.
CREATE FUNCTION snowflake_internal.migration_keys(INOUT targets regclass[], INOUT column_names name[])
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF coalesce(cardinality(targets), 0) = 0 THEN
        PERFORM snowflake_internal.refuse('22023', 'no tables are specified');
    ELSIF cardinality(column_names) <> cardinality(targets) THEN
        PERFORM snowflake_internal.refuse('22023', format('there are %s tables, but %s columns', cardinality(targets), cardinality(column_names)),
            hint => 'Specify one column for each table, NULL for the column that takes its values from a sequence.');
    END IF;
    SELECT array_agg(k.target ORDER BY k.target::oid, k.column_name), array_agg(k.column_name ORDER BY k.target::oid, k.column_name)
    INTO targets, column_names
    FROM (SELECT DISTINCT given.target, snowflake_internal.migration_column(given.target, given.column_name) AS column_name
          FROM unnest(targets, column_names) AS given (target, column_name)) AS k;
END
$function$;

-- The keys in a message.
CREATE FUNCTION snowflake_internal.migration_key_names(targets regclass[], column_names name[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN cardinality(targets) = 1 THEN format('column "%s" of %s', column_names[1], targets[1])
                ELSE 'columns ' || string_agg(format('%s.%I', k.target, k.column_name), ', ' ORDER BY k.place) END
    FROM unnest(targets, column_names) WITH ORDINALITY AS k (target, column_name, place)
$function$;

-- The calls to use in what deletes or drops rows by time after the migration.
CREATE FUNCTION snowflake_internal.migration_retention_note(targets regclass[], column_names name[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT 'statements that delete rows by time must also require '
           || string_agg(format('%I >= snowflake_first_id(%L, %L)', k.column_name, k.target, k.column_name), ', ' ORDER BY k.place)
              FILTER (WHERE k.place <= 10)
           || CASE WHEN count(*) > 10 THEN format(', and for %s more columns the same', count(*) - 10) ELSE '' END
    FROM unnest(targets, column_names) WITH ORDINALITY AS k (target, column_name, place)
$function$;

-- Whether a column's default is snowflake_nextval() or snowflake_id().
CREATE FUNCTION snowflake_internal.has_ids(target regclass, column_name name)
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

-- The smallest ID that can be issued from now on: the first ID of the tick in
-- which this transaction began. (snowflake_min_id(now()) is of the next tick.)
CREATE FUNCTION snowflake_internal.first_id_from_now()
RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT @extschema@.snowflake_min_id(
        @extschema@.snowflake_timestamp(greatest(@extschema@.snowflake_max_id(now()), 0)))
$function$;

-- The keys as arguments of a function in a statement. They have types, so that no
-- other function of the same name is a better match.
CREATE FUNCTION snowflake_internal.migration_key_arguments(targets regclass[], column_names name[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('%L::pg_catalog.regclass[], %L::pg_catalog.name[]',
                  ARRAY(SELECT snowflake_internal.migration_name(t.target) FROM unnest(targets) WITH ORDINALITY AS t (target, place)
                        ORDER BY t.place),
                  column_names)
$function$;

-- A table, its partitions and its child tables: those that its ALTER TABLE changes.
--
-- This and the next function have ROWS, because they return few. For 1,000 rows, its
-- default, the planner would read whole catalogs instead of using their indexes.
CREATE FUNCTION snowflake_internal.migration_table_tree(target regclass, column_name name)
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

-- The columns that hold the same IDs: the keys and the columns that reference
-- them, on any number of levels. Only columns that a table declares
-- itself are returned: those of partitions and child tables follow their parents.
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

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

-- The column of a table whose values come or came from a sequence, if none is named; of several,
-- the primary key; without one, the column that has IDs.
CREATE FUNCTION snowflake_migrate_internal.column_of(target regclass, column_name name)
RETURNS name LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    candidates name[];
    key_columns name[];
BEGIN
    PERFORM snowflake_internal.require_column(target, column_name);
    IF column_name IS NOT NULL THEN
        RETURN column_name;
    END IF;
    SELECT coalesce(
        array_agg(a.attname ORDER BY a.attnum) FILTER (
            WHERE a.attidentity <> ''
               OR EXISTS (SELECT FROM pg_attrdef AS f
                          JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                                             AND d.refclassid = 'pg_class'::regclass
                          JOIN pg_class AS s ON s.oid = d.refobjid AND s.relkind = 'S'
                          WHERE f.adrelid = a.attrelid AND f.adnum = a.attnum)
               OR snowflake_internal.set_boundary_of(target, a.attname) IS NOT NULL),
        array_agg(a.attname ORDER BY a.attnum) FILTER (WHERE a.atthasdef AND snowflake_internal.has_ids(target, a.attname)), '{}')
    INTO candidates
    FROM pg_attribute AS a WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped;
    key_columns := ARRAY(SELECT a.attname FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                         WHERE i.indrelid = target AND i.indisprimary AND i.indnkeyatts = 1 AND a.attname = ANY (candidates));
    IF cardinality(candidates) > 1 AND key_columns <> '{}' THEN
        candidates := key_columns;
    END IF;
    IF cardinality(candidates) = 0 THEN
        PERFORM snowflake_internal.refuse('55000', format('no column of "%s" takes its values from a sequence', (SELECT c.relname FROM pg_class AS c WHERE c.oid = target)),
            hint => 'Specify the column.');
    ELSIF cardinality(candidates) > 1 THEN
        PERFORM snowflake_internal.refuse('22023', format('several columns of "%s" take their values from a sequence', (SELECT c.relname FROM pg_class AS c WHERE c.oid = target)),
            detail => format('They are %s.', array_to_string(candidates, ', ')),
            hint => 'Specify the column.');
    END IF;
    RETURN candidates[1];
END
$function$;

-- The keys of a plan: each key once, in a fixed order. The first key is the one by
-- which a migration's progress is recorded.
CREATE FUNCTION snowflake_migrate_internal.keys(target regclass, column_name name, also regclass[], also_columns name[])
RETURNS snowflake_migrate_internal.key[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF cardinality(also_columns) <> coalesce(cardinality(also), 0) THEN
        PERFORM snowflake_internal.refuse('22023', format('also has %s tables, but also_columns has %s columns',
                                                          coalesce(cardinality(also), 0), cardinality(also_columns)),
            hint => 'Specify one column for each table, NULL for the column that takes its values from a sequence.');
    END IF;
    RETURN ARRAY(
        SELECT DISTINCT (given.target, snowflake_migrate_internal.column_of(given.target, given.column_name))::snowflake_migrate_internal.key
        FROM (SELECT keys.target, keys.column_name
            UNION ALL
              SELECT a.target, a.column_name FROM unnest(also, also_columns) AS a (target, column_name)) AS given
        -- By OID and name.
        ORDER BY 1);
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.key_names(keys snowflake_migrate_internal.key[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN cardinality(keys) = 1 THEN format('column "%s" of %s', (keys[1]).column_name, (keys[1]).target)
                ELSE 'columns ' || snowflake_migrate_internal.some_names(
                         array_agg(format('%s.%I', k.target, k.column_name) ORDER BY k.place)) END
    FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
$function$;

-- The calls to use in what deletes or drops rows by time after the migration.
CREATE FUNCTION snowflake_migrate_internal.retention_note(keys snowflake_migrate_internal.key[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT 'statements that delete rows by time must also require '
           || string_agg(format('%I >= snowflake_id_boundary(%L, %L)', k.column_name, k.target, k.column_name), ', ' ORDER BY k.place)
              FILTER (WHERE k.place <= 10)
           || CASE WHEN count(*) > 10 THEN format(', and for %s more columns the same', count(*) - 10) ELSE '' END
    FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
$function$;

-- The first ID of the tick that contains a time; 0 before the layout's epoch.
CREATE FUNCTION snowflake_migrate_internal.first_id_at(at timestamp with time zone) RETURNS bigint
    STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_first_id_at_wrapper';

-- What a note says of new rows and old ones.
CREATE FUNCTION snowflake_migrate_internal.new_ids_note(keys snowflake_migrate_internal.key[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('new rows get snowflake IDs from %s on, which an integer or a JavaScript Number (2^53) cannot hold. '
                  'Existing rows keep their IDs, which decode to the first moments after the epoch: %s',
                  snowflake_migrate_internal.first_id_at(now()), snowflake_migrate_internal.retention_note(keys))
$function$;

CREATE FUNCTION snowflake_migrate_internal.nextval_function()
RETURNS regprocedure LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT (snowflake_internal.generators())[1]::regprocedure
$function$;

-- The schema of the extension snowflake, quoted, as it is called now.
CREATE FUNCTION snowflake_migrate_internal.core_schema()
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT p.pronamespace::regnamespace::text FROM pg_proc AS p WHERE p.oid = snowflake_migrate_internal.nextval_function()
$function$;

-- The functions of extensions. A member that is no superuser's was added by the extension's
-- owner, and is code of a user.
CREATE FUNCTION snowflake_migrate_internal.functions_of_extensions()
RETURNS SETOF oid LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT p.oid
    FROM pg_depend AS d
    JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
    JOIN pg_roles AS r ON r.oid = p.proowner AND r.rolsuper
    WHERE d.deptype = 'e'
$function$;

-- The keys as an argument of a function in a statement. It has a type, so that no
-- other function of the same name is a better match.
CREATE FUNCTION snowflake_migrate_internal.key_arguments(keys snowflake_migrate_internal.key[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('%L::snowflake_migrate_internal.key[]',
                  array_agg(ROW(snowflake_migrate_internal.name_of(k.target), k.column_name) ORDER BY k.place))
    FROM unnest(keys) WITH ORDINALITY AS k (target, column_name, place)
$function$;

-- The search path of the session that runs a statement, as an argument for a
-- function that sets its own.
CREATE FUNCTION snowflake_migrate_internal.path_argument()
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'pg_catalog.current_setting(''search_path''::pg_catalog.text)';

-- Whether this session is now, until the end of its transaction, the only one that
-- migrates or reverts the key of a table. Does not wait.
CREATE FUNCTION snowflake_migrate_internal.try_exclude_others(target regclass) RETURNS boolean
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_try_exclude_others_wrapper';

-- The same for several keys, or an error. Two sessions that execute one step would else
-- wait for each other: the first checks lock the tables weakly, the changes strongly.
CREATE FUNCTION snowflake_migrate_internal.exclude_others(keys snowflake_migrate_internal.key[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    locked regclass;
BEGIN
    FOR locked IN SELECT DISTINCT k.target FROM unnest(keys) AS k ORDER BY k.target LOOP
        IF NOT snowflake_migrate_internal.try_exclude_others(locked) THEN
            PERFORM snowflake_internal.refuse('55P03', format('another session executes a step of the migration of %s', locked),
                detail => (SELECT format('It is process %s.', string_agg(l.pid::text, ', ')) FROM pg_locks AS l
                           WHERE l.locktype = 'object' AND l.classid = 'pg_class'::regclass AND l.objid = locked::oid AND l.objsubid = 2
                             AND l.granted AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())),
                hint => 'Nothing was changed. When it has ended, request the plan again.');
        END IF;
    END LOOP;
END
$function$;

-- Waits. An error if the client is gone: a step should not continue without its operator.
CREATE FUNCTION snowflake_migrate_internal.wait(milliseconds integer) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_wait_wrapper';

-- A table, its partitions and its child tables: those that its ALTER TABLE changes.
--
-- This and the next function have ROWS, because they return few. For 1,000 rows, its
-- default, the planner would read whole catalogs instead of using their indexes.
CREATE FUNCTION snowflake_migrate_internal.table_tree(target regclass, column_name name)
RETURNS TABLE (relation regclass, attribute smallint) LANGUAGE plpgsql STABLE ROWS 4
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN QUERY
        WITH RECURSIVE tree (oid) AS (
            SELECT target::oid
          UNION
            SELECT i.inhrelid FROM tree JOIN pg_inherits AS i ON i.inhparent = tree.oid
        )
        -- LIMIT keeps the planner, which expects many tables, from reading all of pg_attribute.
        SELECT tree.oid::regclass, column_of.attnum
        FROM tree
        CROSS JOIN LATERAL (SELECT a.attnum FROM pg_attribute AS a
                            WHERE a.attrelid = tree.oid AND a.attname = column_name AND a.attnum > 0 LIMIT 1) AS column_of;
END
$function$;

-- For each key the columns that hold the same IDs: the key and the columns that
-- reference it, on any number of levels. Only columns that a table declares
-- itself are returned: those of partitions and child tables follow their parents.
CREATE FUNCTION snowflake_migrate_internal.columns_of_each(keys snowflake_migrate_internal.key[])
RETURNS TABLE (target regclass, column_name name, relation regclass, attribute smallint, attname name, is_narrow boolean)
LANGUAGE sql STABLE ROWS 4
SET search_path = pg_catalog, pg_temp
AS $function$
    -- Each reference is looked up by hashing, because no index finds the foreign
    -- keys that reference a table.
    WITH RECURSIVE edge (relation, attributes, other, other_attributes) AS MATERIALIZED (
        -- Columns that reference one of the relation's, of which a foreign key has each once.
        SELECT k.confrelid, k.confkey, k.conrelid, k.conkey FROM pg_constraint AS k WHERE k.contype = 'f'
      UNION ALL
        -- The same columns of child tables, whose own constraints count too, and of
        -- the parents that declare them.
        SELECT pair.relation, NULL, pair.other, NULL
        FROM pg_inherits AS i
        CROSS JOIN LATERAL (VALUES (i.inhparent, i.inhrelid), (i.inhrelid, i.inhparent)) AS pair (relation, other)
    ), linked (target, column_name, relation, attribute, attname) AS (
        SELECT key.target, key.column_name, a.attrelid, a.attnum, a.attname
        FROM unnest(keys) AS key
        JOIN pg_attribute AS a ON a.attrelid = key.target AND a.attname = key.column_name
      UNION
        SELECT linked.target, linked.column_name, a.attrelid, a.attnum, a.attname
        FROM linked
        JOIN edge ON edge.relation = linked.relation AND (edge.attributes @> ARRAY[linked.attribute] OR edge.attributes IS NULL)
        JOIN pg_attribute AS a ON a.attrelid = edge.other AND a.attnum > 0
                              AND (a.attnum = edge.other_attributes[array_position(edge.attributes, linked.attribute)]
                                   OR edge.attributes IS NULL AND a.attname = linked.attname)
    )
    SELECT r.target, r.column_name, r.relation::regclass, r.attribute, r.attname,
           CASE a.atttypid WHEN 'int4'::regtype THEN true WHEN 'int8'::regtype THEN false
                ELSE snowflake_migrate_internal.base_type(a.atttypid) IN ('int2'::regtype, 'int4'::regtype) END
    FROM linked AS r
    JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
    WHERE a.attinhcount = 0
$function$;

-- Those of all keys together.
CREATE FUNCTION snowflake_migrate_internal.linked_columns(keys snowflake_migrate_internal.key[])
RETURNS TABLE (relation regclass, attribute smallint, attname name, is_narrow boolean) LANGUAGE sql STABLE ROWS 4
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT DISTINCT r.relation, r.attribute, r.attname, r.is_narrow FROM snowflake_migrate_internal.columns_of_each(keys) AS r
$function$;

-- The same columns of these tables, their partitions and their child tables, with the table that declares them.
CREATE FUNCTION snowflake_migrate_internal.linked_tree(keys snowflake_migrate_internal.key[])
RETURNS TABLE (relation regclass, attribute smallint, attname name, declared_by regclass, is_narrow boolean) LANGUAGE sql STABLE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT f.relation, f.attribute, r.attname, r.relation, r.is_narrow
    FROM snowflake_migrate_internal.linked_columns(keys) AS r
    CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(r.relation, r.attname) AS f
$function$;

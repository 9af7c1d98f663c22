-- Tables with their partitions and child tables.
CREATE FUNCTION snowflake_internal.tree(relations regclass[])
RETURNS SETOF oid LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN QUERY
        WITH RECURSIVE tree (oid) AS (
            SELECT r.relation::oid FROM unnest(relations) AS r (relation)
          UNION
            SELECT i.inhrelid FROM tree JOIN pg_inherits AS i ON i.inhparent = tree.oid
        )
        SELECT tree.oid FROM tree;
END
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
                           AND d.refobjid = ANY (snowflake_internal.generators())
        WHERE a.attrelid = target AND a.attname = column_name AND a.attgenerated = '')
$function$;

-- The tables with snowflake IDs, and the columns that have them. A partition is
-- left out, because its parent stands for it.
--
-- Named columns are taken as they are. Otherwise those whose default generates
-- IDs; of a table that is named, else the bigint column of a primary key with one
-- column, as in tables that only receive rows.
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
                          AND snowflake_internal.has_ids(c.oid, a.attname)),
            array_agg(a.attname ORDER BY a.attnum)
                FILTER (WHERE tables_with_ids.column_name IS NULL AND tables_with_ids.target IS NOT NULL
                          AND EXISTS (SELECT FROM pg_index AS i
                                      WHERE i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1
                                        AND i.indkey[0] = a.attnum)))
        -- Of a domain, too.
        FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid AND t.typoutput = 'int8out'::regproc
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS n (column_names)
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

-- Fails if there is no such table, or if a column is named that it does not have.
CREATE FUNCTION snowflake_internal.require_column(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relation pg_class;
BEGIN
    SELECT c.* INTO relation FROM pg_class AS c WHERE c.oid = target;
    IF NOT FOUND THEN
        PERFORM snowflake_internal.refuse('42P01', format('relation with OID %s does not exist', coalesce(target::oid, 0)));
    ELSIF relation.relkind NOT IN ('r', 'p') THEN
        PERFORM snowflake_internal.refuse('42809', format('"%s" is not a table', relation.relname));
    ELSIF column_name IS NOT NULL
          AND NOT EXISTS (SELECT FROM pg_attribute AS a
                          WHERE a.attrelid = target AND a.attname = column_name AND a.attnum > 0 AND NOT a.attisdropped)
    THEN
        PERFORM snowflake_internal.refuse('42703', format('column "%s" of relation "%s" does not exist', column_name, relation.relname));
    END IF;
END
$function$;

-- The column of a table that has IDs, if none is named: the one whose default generates them,
-- or that has a boundary, as in tables that only receive rows; of several, or without one,
-- the primary key.
CREATE FUNCTION snowflake_internal.ids_column(target regclass, column_name name)
RETURNS name LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    candidates name[];
    key_column name;
BEGIN
    PERFORM snowflake_internal.require_column(target, column_name);
    IF column_name IS NOT NULL THEN
        RETURN column_name;
    END IF;
    SELECT array_agg(a.attname ORDER BY a.attnum) INTO candidates
    FROM pg_attribute AS a
    WHERE a.attrelid = target AND a.attnum > 0 AND a.atthasdef AND snowflake_internal.has_ids(target, a.attname);
    IF candidates IS NULL THEN
        -- Once for the tree, not for each column: what deletes rows by time asks in each plan.
        SELECT array_agg(DISTINCT b.column_name) INTO candidates
        FROM snowflake_internal.boundary_checks(target) AS b JOIN pg_attribute AS a ON a.attrelid = target AND a.attname = b.column_name;
    END IF;
    IF cardinality(candidates) = 1 THEN
        RETURN candidates[1];
    END IF;
    SELECT a.attname INTO key_column
    FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] JOIN pg_type AS t ON t.oid = a.atttypid
    WHERE i.indrelid = target AND i.indisprimary AND i.indnkeyatts = 1
      -- Of a domain, too.
      AND (a.attname = ANY (candidates) OR candidates IS NULL AND t.typoutput IN ('int8out'::regproc, 'int4out'::regproc, 'int2out'::regproc));
    IF key_column IS NULL THEN
        PERFORM snowflake_internal.refuse(CASE WHEN candidates IS NULL THEN '55000' ELSE '22023' END,
            format(CASE WHEN candidates IS NULL THEN 'no column of "%s" is known to have snowflake IDs'
                        ELSE 'several columns of "%s" have snowflake IDs' END, (SELECT c.relname FROM pg_class AS c WHERE c.oid = target)),
            detail => 'They are ' || array_to_string(candidates, ', ') || '.',
            hint => 'Specify the column.');
    END IF;
    RETURN key_column;
END
$function$;

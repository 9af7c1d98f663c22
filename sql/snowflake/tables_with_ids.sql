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

-- The columns of a table that take or took their values from a sequence.
CREATE FUNCTION snowflake_internal.sequenced_columns(target regclass)
RETURNS name[] LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN ARRAY(
        SELECT a.attname
        FROM pg_attribute AS a
        WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped
          AND (a.attidentity <> ''
               OR EXISTS (SELECT FROM pg_attrdef AS f
                          JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                                             AND d.refclassid = 'pg_class'::regclass
                          JOIN pg_class AS s ON s.oid = d.refobjid AND s.relkind = 'S'
                          WHERE f.adrelid = a.attrelid AND f.adnum = a.attnum)
               OR snowflake_internal.set_boundary_of(target, a.attname) IS NOT NULL));
END
$function$;

-- The default for column_name: the column that takes or took its values from a
-- sequence; of several, the primary key. Otherwise the one that has IDs.
CREATE FUNCTION snowflake_internal.column_of(target regclass, column_name name)
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
    candidates := snowflake_internal.sequenced_columns(target);
    IF cardinality(candidates) = 0 THEN
        candidates := ARRAY(SELECT a.attname FROM pg_attribute AS a
                            WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped AND a.atthasdef
                              AND snowflake_internal.has_ids(target, a.attname));
    ELSIF cardinality(candidates) > 1 THEN
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

-- The column of a table that has IDs, if none is named: the one whose default
-- generates them, otherwise the one that takes or took its values from a sequence.
-- In a table without either, as those that only receive rows, it is the bigint
-- column of a primary key with one column.
CREATE FUNCTION snowflake_internal.ids_column(target regclass, column_name name)
RETURNS name LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    candidates name[];
    key_column name;
BEGIN
    IF column_name IS NOT NULL THEN
        RETURN snowflake_internal.column_of(target, column_name);
    END IF;
    candidates := ARRAY(
        SELECT a.attname FROM pg_attribute AS a
        WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped AND a.atthasdef
          AND snowflake_internal.has_ids(target, a.attname));
    SELECT a.attname INTO key_column
    FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = target AND i.indisprimary AND i.indnkeyatts = 1
      AND (a.attname = ANY (candidates) OR cardinality(candidates) = 0 AND a.atttypid = 'bigint'::regtype);
    IF cardinality(candidates) > 1 AND key_column IS NULL THEN
        PERFORM snowflake_internal.refuse('22023', format('several columns of "%s" have snowflake IDs', (SELECT c.relname FROM pg_class AS c WHERE c.oid = target)),
            detail => format('They are %s.', array_to_string(candidates, ', ')),
            hint => 'Specify the column.');
    ELSIF cardinality(candidates) > 1 THEN
        RETURN key_column;
    ELSIF cardinality(candidates) = 1 THEN
        RETURN snowflake_internal.column_of(target, candidates[1]);
    ELSIF key_column IS NOT NULL AND snowflake_internal.sequenced_columns(target) <@ ARRAY[key_column] THEN
        RETURN snowflake_internal.column_of(target, key_column);
    END IF;
    RETURN snowflake_internal.column_of(target, NULL);
END
$function$;

-- The highest and lowest IDs of a table.
--
-- Where an index leads with the column, they are read from it at any time. Without
-- one, every row has to be read, which takes seconds for a large table. That
-- happens before the table is locked in a mode that stops other sessions. What may
-- come in between are rows with numbers from the sequence, and rows with explicit
-- numbers. The sequence is checked under the lock. An explicit number is as one
-- that is inserted a moment after the migration, or after it is reverted. Neither
-- snowflake_nextval() nor a sequence ever sees those: a unique index refuses the
-- second row of the same ID (23505), and snowflake_audit() shows IDs that this
-- server cannot have generated.

-- The tables of a tree that have rows of their own, and whether the highest ID of
-- each can be read from an index.
CREATE FUNCTION snowflake_migrate_internal.id_indexes(target regclass, column_name name)
RETURNS TABLE (relation regclass, is_indexed boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT f.relation,
           EXISTS (SELECT FROM pg_index AS i
                   JOIN pg_class AS x ON x.oid = i.indexrelid
                   JOIN pg_am AS m ON m.oid = x.relam AND m.amname = 'btree'
                   JOIN pg_opclass AS o ON o.oid = i.indclass[0] AND o.opcdefault
                   WHERE i.indrelid = f.relation AND i.indkey[0] = f.attribute AND i.indisvalid AND i.indpred IS NULL)
    FROM snowflake_migrate_internal.table_tree(target, column_name) AS f
    JOIN pg_class AS c ON c.oid = f.relation AND c.relkind <> 'p'
$function$;

-- The highest or the lowest ID (`aggregate`: max or min) that satisfies a
-- condition. With indexed_only, tables without an index that leads with the column
-- are left out, because they are scanned before the lock. The query runs where the
-- planner may inline functions of the table's indexes, so it needs the caller's
-- search path, and qualifies what it uses.
CREATE FUNCTION snowflake_migrate_internal.extreme_id(
    target regclass, column_name name, aggregate text, condition text, indexed_only boolean, search_path text
) RETURNS bigint LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    indexed regclass[];
    is_complete boolean := true;
    relation regclass;
    found bigint;
    extreme bigint;
BEGIN
    IF aggregate IS NULL OR aggregate NOT IN ('max', 'min') THEN
        PERFORM snowflake_internal.refuse('22023', format('invalid aggregate: "%s"', aggregate));
    END IF;
    IF indexed_only THEN
        SELECT array_agg(i.relation) FILTER (WHERE i.is_indexed), coalesce(bool_and(i.is_indexed), true) INTO indexed, is_complete
        FROM snowflake_migrate_internal.id_indexes(target, column_name) AS i;
    END IF;
    FOREACH relation IN ARRAY CASE WHEN is_complete THEN ARRAY[target] ELSE coalesce(indexed, '{}') END LOOP
        SELECT r.row[1]::bigint INTO found
        FROM snowflake_migrate_internal.query(relation,
            format('SELECT pg_catalog.%s(%I) FROM %s%s WHERE %s', aggregate, column_name, CASE WHEN is_complete THEN '' ELSE 'ONLY ' END,
                   snowflake_migrate_internal.name_of(relation), condition), search_path) AS r (row);
        extreme := CASE aggregate WHEN 'max' THEN greatest(extreme, found) ELSE least(extreme, found) END;
    END LOOP;
    RETURN extreme;
END
$function$;

-- Obstacles in the rows: old IDs have to be below the new ones. Those of a column
-- that is too narrow for snowflake IDs always are. Under the lock (is_locked) no
-- table is scanned. A table without an index that leads with the column has been
-- scanned before; rows written since have numbers of the sequence.
CREATE FUNCTION snowflake_migrate_internal.row_obstacles(
    target regclass, column_name name, search_path text DEFAULT NULL, is_locked boolean DEFAULT false
) RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    first CONSTANT bigint := snowflake_migrate_internal.first_id_at(now());
    highest bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute AS a
                   WHERE a.attrelid = target AND a.attname = row_obstacles.column_name
                     AND snowflake_migrate_internal.base_type(a.atttypid) = 'int8'::regtype)
    THEN
        RETURN;
    END IF;
    highest := snowflake_migrate_internal.extreme_id(target, column_name, text 'max', text 'true', is_locked, search_path);
    IF highest >= first THEN
        RETURN QUERY SELECT target, column_name,
            format('%s has IDs that are not below the first snowflake ID: the largest is %s, snowflake IDs would begin at %s',
                   target, highest, first),
            'New IDs could equal existing ones. If these rows have just been replicated from another server, run it again. '
            'Otherwise give them smaller IDs, or use a layout with an earlier epoch.', '55000';
    ELSIF is_locked AND EXISTS (SELECT FROM snowflake_migrate_internal.id_indexes(target, column_name) AS i WHERE NOT i.is_indexed) THEN
        RETURN QUERY
            SELECT target, column_name,
                   format('sequence %s has reached %s, but snowflake IDs would begin at %s', s.sequence, q.last_value, first),
                   'Set it below the first snowflake ID (setval), and run it again.', '55000'
            FROM snowflake_migrate_internal.source(target, column_name) AS s
            CROSS JOIN LATERAL snowflake_migrate_internal.sequence_state(s.sequence, target) AS q
            WHERE s.sequence IS NOT NULL AND q.last_value >= first;
    END IF;
END
$function$;

-- Fails if rows have IDs that are not below the first snowflake ID.
CREATE FUNCTION snowflake_migrate_internal.check_rows(
    target regclass, column_name name, search_path text DEFAULT NULL, is_locked boolean DEFAULT false
) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_migrate_internal.refuse_obstacles(
        ARRAY(SELECT o FROM snowflake_migrate_internal.row_obstacles(target, column_name, search_path, is_locked) AS o),
        format('cannot migrate column "%s" of %s', column_name, target), text 'Nothing was changed by this statement.');
END
$function$;

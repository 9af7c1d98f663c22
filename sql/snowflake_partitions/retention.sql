-- What is due, and why a due partition is kept.

-- The ranges of IDs to which rows of other tables refer, with the foreign key's table. Where
-- the caller may not read that table, `relation` is known and `is_known` is false: PostgreSQL
-- itself refuses to detach a partition with such rows.
CREATE FUNCTION snowflake_partitions_internal.referenced(parent regclass, key_name name, lows bigint[], highs bigint[])
RETURNS TABLE (low bigint, relation regclass, is_known boolean) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    foreign_key record;
    found_lows bigint[];
BEGIN
    IF cardinality(lows) = 0 THEN
        RETURN;
    END IF;
    FOR foreign_key IN
        SELECT r.relation, r.column_name FROM snowflake_partitions_internal.references_to(ARRAY[parent]) AS r
        WHERE r.key_name = referenced.key_name
    LOOP
        BEGIN
            SELECT array_agg(f.value::bigint) INTO found_lows
            FROM unnest(snowflake_internal.read(foreign_key.relation, format(
                'SELECT pg_catalog.array_to_string(ARRAY(SELECT r.low FROM ROWS FROM (pg_catalog.unnest(%L::pg_catalog.int8[]), '
                'pg_catalog.unnest(%L::pg_catalog.int8[])) AS r (low, high) WHERE EXISTS (SELECT FROM %s AS t '
                'WHERE t.%I OPERATOR(pg_catalog.>=) r.low AND t.%4$I OPERATOR(pg_catalog.<) r.high)), '','')',
                lows, highs, snowflake_partitions_internal.name_of(foreign_key.relation), foreign_key.column_name))) AS a (list),
                 string_to_table(a.list, ',') AS f (value)
            WHERE f.value <> '';
            RETURN QUERY SELECT f.value, foreign_key.relation, true FROM unnest(found_lows) AS f (value);
        EXCEPTION WHEN insufficient_privilege THEN
            RETURN QUERY SELECT l.value, foreign_key.relation, false FROM unnest(lows) AS l (value);
        END;
    END LOOP;
END
$function$;

-- Why a partition that is due cannot be dropped, as the catalog says of it and its own partitions; NULL if nothing there
-- prevents it. DROP without CASCADE fails if others depend on them, and checks the owner of none below.
CREATE FUNCTION snowflake_partitions_internal.catalog_reason(parent regclass, relation regclass)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN c.oid = catalog_reason.relation THEN r.reason ELSE format('of %s, %s', c.oid::regclass, r.reason) END
    FROM snowflake_internal.tree(ARRAY[catalog_reason.relation]) AS t (oid)
    JOIN pg_class AS c ON c.oid = t.oid
    JOIN pg_class AS o ON o.oid = parent
    LEFT JOIN LATERAL (SELECT r.* FROM snowflake_partitions_internal.references_to(ARRAY[c.oid::regclass]) AS r
                       WHERE r.relation NOT IN (SELECT w.oid FROM snowflake_internal.tree(ARRAY[catalog_reason.relation]) AS w (oid))
                       ORDER BY r.relation LIMIT 1) AS x ON true
    LEFT JOIN LATERAL (
        SELECT w.ev_class::regclass AS relation
        FROM pg_depend AS d JOIN pg_rewrite AS w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid AND d.deptype = 'n' AND w.ev_class <> d.refobjid
        ORDER BY w.ev_class LIMIT 1) AS v ON true
    CROSS JOIN LATERAL (SELECT CASE
        WHEN c.relkind NOT IN ('r', 'p') AND c.oid = catalog_reason.relation THEN 'it is not a table of this database'
        WHEN c.relowner <> o.relowner THEN format('it belongs to another role, %s', quote_ident(pg_get_userbyid(c.relowner)))
        WHEN x.relation IS NOT NULL THEN
            format('foreign key %s of %s refers to the partition itself', quote_ident(x.constraint_name), x.relation)
        WHEN v.relation IS NOT NULL THEN format('%s depends on it', v.relation) END) AS r (reason)
    WHERE r.reason IS NOT NULL
    ORDER BY c.oid <> catalog_reason.relation, c.oid LIMIT 1
$function$;

-- Fails where the clock has jumped ahead by more than snowflake.max_clock_step since the server
-- started, or is behind: by such a clock nothing is dropped. The generator judges it, so an ID is
-- drawn.
CREATE FUNCTION snowflake_partitions_internal.require_clock() RETURNS bigint
    STRICT VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_wrapper';

-- The partitions of a table at a time, with what retention says of each. Without settings
-- none is due. `reads` is false where PostgreSQL looks for referencing rows itself.
CREATE FUNCTION snowflake_partitions_internal.assessed(parent regclass, at timestamp with time zone, reads boolean DEFAULT true)
RETURNS SETOF snowflake_partitions_internal.assessed LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    settings record;
    known record;
    key_name CONSTANT name := (snowflake_partitions_internal.key_of(parent)).column_name;
    part snowflake_partitions_internal.assessed;
    parts snowflake_partitions_internal.assessed[] := '{}';
BEGIN
    SELECT s.keep, s.time_zone INTO settings FROM snowflake_partitions_internal.settings AS s WHERE s.parent = assessed.parent;
    FOR part IN
        SELECT p.relation, p.low, p.high, p.is_default, p.is_detaching,
               CASE WHEN p.low >= 0 THEN snowflake_internal.time_of(p.low) END,
               CASE WHEN p.high >= 0 THEN snowflake_internal.time_of(p.high) END,
               NULL, false, NULL, NULL
        FROM snowflake_partitions_internal.existing(parent) AS p ORDER BY p.is_default, p.low NULLS FIRST
    LOOP
        part.due_at := greatest(
            part.until, snowflake_partitions_internal.partition_boundary(part.until, settings.keep, 1, settings.time_zone));
        IF part.until IS NULL OR settings.keep IS NULL THEN
            part.due_at := NULL;
        END IF;
        part.is_due := coalesce(part.due_at <= at, false);
        IF part.is_due AND known IS NULL THEN
            known := snowflake_partitions_internal.boundary(parent, key_name);
        END IF;
        IF part.is_detaching THEN
            part.kept_because := 'its DETACH CONCURRENTLY was interrupted, and FINALIZE is left';
        ELSIF part.is_due THEN
            part.kept_because := CASE
                WHEN known.problem IS NOT NULL THEN known.problem
                -- MINVALUE, as of a table that became the first partition: all its numbers may be IDs.
                WHEN coalesce(part.low, 0) < known.boundary THEN 'it may have rows that are older than the snowflake IDs'
                ELSE snowflake_partitions_internal.catalog_reason(parent, part.relation) END;
        END IF;
        parts := parts || part;
    END LOOP;
    IF NOT reads OR NOT EXISTS (SELECT FROM unnest(parts) AS p WHERE p.is_due AND p.kept_because IS NULL) THEN
        RETURN QUERY SELECT * FROM unnest(parts);
        RETURN;
    END IF;
    RETURN QUERY
    SELECT p.relation, p.low, p.high, p.is_default, p.is_detaching, p.since, p.until, p.due_at, p.is_due,
           coalesce(p.kept_because, CASE WHEN r.relations IS NOT NULL THEN
               format(CASE WHEN r.is_known THEN 'rows of %s refer to it'
                           ELSE 'rows of %s may refer to it, and you may not read that table' END,
                      array_to_string(r.relations, ', ')) END), r.relations
    FROM unnest(parts) WITH ORDINALITY AS p
    LEFT JOIN (
        SELECT f.low, array_agg(DISTINCT f.relation) AS relations, bool_or(f.is_known) AS is_known
        FROM (SELECT array_agg(coalesce(d.low, -9223372036854775808)) AS lows, array_agg(d.high) AS highs FROM unnest(parts) AS d
              WHERE d.is_due AND d.kept_because IS NULL) AS d
        CROSS JOIN LATERAL snowflake_partitions_internal.referenced(parent, key_name, d.lows, d.highs) AS f
        GROUP BY f.low) AS r ON r.low = coalesce(p.low, -9223372036854775808) AND p.is_due AND p.kept_because IS NULL
    ORDER BY p.ordinality;
END
$function$;

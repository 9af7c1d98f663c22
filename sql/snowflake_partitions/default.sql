-- Rows of a new partition that are in the DEFAULT partition. PostgreSQL creates no partition
-- while they are there.

-- Why rows cannot be moved by a DELETE and an INSERT: something would see these.
CREATE FUNCTION snowflake_partitions_internal.move_obstacle(parent regclass, rest regclass)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(
        (SELECT format('Foreign key %s of %s refers to the table.', quote_ident(k.conname), k.conrelid::regclass)
         FROM pg_constraint AS k WHERE k.contype = 'f' AND k.conparentid = 0
           AND k.confrelid = ANY (rest || snowflake_partitions_internal.with_ancestors(parent))
         ORDER BY k.conname LIMIT 1),
        (SELECT format('Trigger %s of %s would fire.', quote_ident(t.tgname), t.tgrelid::regclass)
         FROM pg_trigger AS t
         WHERE t.tgrelid IN (parent, rest) AND NOT t.tgisinternal
           AND (t.tgenabled IN ('A', CASE current_setting('session_replication_role') WHEN 'replica' THEN 'R' ELSE 'O' END)
                -- The partition gets its copy anew.
                OR EXISTS (SELECT FROM pg_trigger AS o WHERE o.tgrelid = rest AND o.tgparentid = t.oid AND o.tgenabled <> t.tgenabled))
         ORDER BY t.tgname LIMIT 1),
        (SELECT format('Rule %s of %s would apply.', quote_ident(r.rulename), r.ev_class::regclass)
         FROM pg_rewrite AS r WHERE r.ev_class IN (parent, rest) ORDER BY r.rulename LIMIT 1),
        (SELECT format('Publication %s has the table.', quote_ident(p.pubname))
         FROM pg_publication AS p
         WHERE p.puballtables
            OR EXISTS (SELECT FROM pg_publication_rel AS r WHERE r.prpubid = p.oid AND r.prrelid = ANY (rest || snowflake_partitions_internal.with_ancestors(parent)))
            OR EXISTS (SELECT FROM pg_publication_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.pnnspid
                       WHERE n.pnpubid = p.oid AND c.oid = ANY (rest || snowflake_partitions_internal.with_ancestors(parent)))
         ORDER BY p.pubname LIMIT 1),
        (SELECT format('%s is no plain table of the same owner.', rest)
         FROM pg_class AS c, pg_class AS o WHERE c.oid = rest AND o.oid = parent AND (c.relkind <> 'r' OR c.relowner <> o.relowner)),
        (SELECT format('Row security of %s also applies to its owner.', c.oid::regclass)
         FROM pg_class AS c WHERE c.oid IN (parent, rest) AND c.relrowsecurity AND c.relforcerowsecurity LIMIT 1))
$function$;

-- The statements that create a partition and move its rows out of the DEFAULT partition. In
-- one transaction no reader misses a row: the first locks the table. The columns can be in
-- another order in the two.
CREATE FUNCTION snowflake_partitions_internal.move_statements(parent regclass, rest regclass, range snowflake_partitions_internal.range)
RETURNS text[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY[
        format('ALTER TABLE %s DETACH PARTITION %s', n.parent, n.rest)]
        || snowflake_partitions_internal.creation(parent, range) || ARRAY[
        format('WITH moved AS (DELETE FROM %1$s AS d WHERE d.%2$I OPERATOR(pg_catalog.>=) %3$s AND d.%2$I OPERATOR(pg_catalog.<) %4$s '
               'RETURNING %5$s) INSERT INTO %6$s (%5$s) OVERRIDING SYSTEM VALUE SELECT * FROM moved',
               n.rest, k.column_name, range.low, range.high, n.columns, n.parent),
        format('ALTER TABLE %s ATTACH PARTITION %s DEFAULT', n.parent, n.rest)]
    FROM snowflake_partitions_internal.key_of(parent) AS k
    CROSS JOIN LATERAL (
        SELECT snowflake_partitions_internal.name_of(parent) AS parent, snowflake_partitions_internal.name_of(rest) AS rest,
               (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute AS a
                WHERE a.attrelid = parent AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '') AS columns) AS n
$function$;

-- Whether the DEFAULT partition has rows of a new partition.
CREATE FUNCTION snowflake_partitions_internal.has_rows(parent regclass, rest regclass, range snowflake_partitions_internal.range)
RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
    SELECT f.value::boolean
    FROM snowflake_partitions_internal.key_of(parent) AS k,
         unnest(snowflake_internal.read(rest, format(
             'SELECT EXISTS (SELECT FROM %1$s AS t WHERE t.%2$I OPERATOR(pg_catalog.>=) %3$s '
             'AND t.%2$I OPERATOR(pg_catalog.<) %4$s)::pg_catalog.text',
             snowflake_partitions_internal.name_of(rest), k.column_name, range.low, range.high))) AS f (value)
$function$;

-- Fails if rows of a new partition cannot be moved.
CREATE FUNCTION snowflake_partitions_internal.require_movable(parent regclass, rest regclass, range snowflake_partitions_internal.range)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    obstacle CONSTANT text := snowflake_partitions_internal.move_obstacle(parent, rest);
BEGIN
    IF obstacle IS NOT NULL THEN
        PERFORM snowflake_internal.refuse('55000', format('rows of new partitions cannot be moved out of the DEFAULT partition %s', rest),
            detail => obstacle,
            hint => format('Remove it first, and restore it afterwards. In between, run in one transaction: %s.',
                           array_to_string(snowflake_partitions_internal.move_statements(parent, rest, range), '; ')));
    END IF;
END
$function$;

-- Fails if the DEFAULT partition has rows of new partitions, with whose rows PostgreSQL
-- creates none. PostgreSQL refuses a role that may not read it.
CREATE FUNCTION snowflake_partitions_internal.refuse_default_rows(parent regclass, first_id bigint, end_id bigint)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    rest record;
    condition text;
    held text[];
BEGIN
    SELECT c.oid::regclass AS relation, format('%I.%I', n.nspname, c.relname) AS name,
           -- The columns can be in another order in the two.
           (SELECT string_agg(quote_ident(l.attname), ', ' ORDER BY l.attnum) FROM pg_attribute AS l
            WHERE l.attrelid = o.oid AND l.attnum > 0 AND NOT l.attisdropped AND l.attgenerated = '') AS columns,
           snowflake_partitions_internal.move_obstacle(o.oid::regclass, c.oid::regclass) AS obstacle,
           format('%I.%I', m.nspname, o.relname) AS parent, a.attname
    INTO rest
    FROM pg_partitioned_table AS p
    JOIN pg_class AS o ON o.oid = p.partrelid
    JOIN pg_namespace AS m ON m.oid = o.relnamespace
    JOIN pg_class AS c ON c.oid = p.partdefid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_attribute AS a ON a.attrelid = o.oid AND a.attnum = p.partattrs[0]
    WHERE p.partrelid = refuse_default_rows.parent;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    condition := format('%1$I >= %2$s AND %1$I < %3$s', rest.attname, first_id, end_id);
    BEGIN
        held := snowflake_internal.read(rest.relation, format(
            'SELECT pg_catalog.count(*), pg_catalog.min(%1$I), pg_catalog.max(%1$I) FROM %2$s WHERE %3$s',
                                                              rest.attname, rest.name, condition));
    EXCEPTION WHEN insufficient_privilege THEN
        RETURN;
    END;
    IF held[1] <> '0' THEN
        PERFORM snowflake_internal.refuse('23514', format('the DEFAULT partition %s already has rows of these partitions', rest.name),
            detail => concat_ws(' ', format('It has %s, with IDs from %s to %s.', CASE held[1] WHEN '1' THEN '1 row' ELSE held[1] || ' rows' END,
                             snowflake_internal.time_of(held[2]::bigint), snowflake_internal.time_of(held[3]::bigint)), rest.obstacle),
            hint => format('In one transaction: ALTER TABLE %1$s DETACH PARTITION %2$s; the statements of this function; '
                           'WITH moved AS (DELETE FROM %2$s WHERE %3$s RETURNING %4$s) INSERT INTO %1$s (%4$s) OVERRIDING SYSTEM VALUE SELECT * FROM moved; '
                           'ALTER TABLE %1$s ATTACH PARTITION %2$s DEFAULT.', rest.parent, rest.name, condition, rest.columns));
    END IF;
END
$function$;

-- What the catalog has of a partitioned table.

-- A table's name for statements that run under any search path.
CREATE FUNCTION snowflake_partitions_internal.name_of(target regclass) RETURNS text
    STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_name_of_wrapper';

-- The key of a table that is partitioned by ranges of one bigint column. Fails for others.
CREATE FUNCTION snowflake_partitions_internal.key_of(parent regclass)
RETURNS snowflake_partitions_internal.key LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relation record;
    key record;
BEGIN
    SELECT n.nspname, c.relname, c.relkind, c.relowner INTO relation
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = parent;
    IF NOT FOUND THEN
        PERFORM snowflake_internal.refuse('42P01', format('relation with OID %s does not exist', parent::oid));
    END IF;
    SELECT a.attname, a.atttypid INTO key
    FROM pg_partitioned_table AS p
    LEFT JOIN pg_attribute AS a
        ON p.partstrat = 'r' AND p.partnatts = 1
       AND a.attrelid = p.partrelid AND a.attnum = p.partattrs[0] AND a.attnum > 0
    WHERE p.partrelid = parent;
    IF relation.relkind <> 'p' THEN
        PERFORM snowflake_internal.refuse('42809', format('"%s" is not a partitioned table', relation.relname),
            hint => 'Create it with PARTITION BY RANGE (id), where id is the column of the IDs.');
    ELSIF key.atttypid IS DISTINCT FROM 'bigint'::regtype THEN
        PERFORM snowflake_internal.refuse('42809', format('"%s" is not partitioned by ranges of a bigint column', relation.relname),
            detail => format('Its partition key is %s.', pg_get_partkeydef(parent)),
            hint => 'Create it with PARTITION BY RANGE (id), where id is the column of the IDs.');
    END IF;
    RETURN ROW(relation.nspname, relation.relname, key.attname, relation.relowner)::snowflake_partitions_internal.key;
END
$function$;

-- The partitions. Their bounds are FOR VALUES FROM ('1') TO ('2'), with MINVALUE or MAXVALUE
-- instead of a number, or DEFAULT.
CREATE FUNCTION snowflake_partitions_internal.existing(parent regclass)
RETURNS TABLE (relation regclass, low bigint, high bigint, is_default boolean, is_detaching boolean)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT w.oid::regclass, substring(w.bound FROM 'FROM [(]''(-?[0-9]+)''[)]')::bigint,
           substring(w.bound FROM 'TO [(]''(-?[0-9]+)''[)]')::bigint, w.bound = 'DEFAULT', w.inhdetachpending
    FROM (SELECT c.oid, pg_get_expr(c.relpartbound, c.oid) AS bound, i.inhdetachpending
          FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
          WHERE i.inhparent = parent AND c.relpartbound IS NOT NULL) AS w
$function$;

-- The IDs that partitions are for, except DEFAULT. No ID is negative.
CREATE FUNCTION snowflake_partitions_internal.existing_ids(parent regclass)
RETURNS int8multirange LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT coalesce(range_agg(int8range(coalesce(p.low, -9223372036854775808), coalesce(p.high, 9223372036854775807))), '{}')
    FROM snowflake_partitions_internal.existing(parent) AS p
    WHERE NOT p.is_default AND coalesce(p.high, 1) > 0
$function$;

-- A table, and what it is a partition of: rows that refer to these, or publications of them, concern its rows.
CREATE FUNCTION snowflake_partitions_internal.with_ancestors(parent regclass)
RETURNS regclass[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT parent || ARRAY(SELECT a.relid FROM pg_partition_ancestors(parent) AS a (relid) WHERE a.relid <> parent)
$function$;

-- The foreign keys to tables: those to a partitioned table have children for each partition.
CREATE FUNCTION snowflake_partitions_internal.references_to(targets regclass[])
RETURNS TABLE (constraint_name name, relation regclass, column_name name, key_name name)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT k.conname, k.conrelid::regclass, f.attname, p.attname
    FROM pg_constraint AS k
    CROSS JOIN LATERAL unnest(k.conkey, k.confkey) AS u (fk, pk)
    JOIN pg_attribute AS f ON f.attrelid = k.conrelid AND f.attnum = u.fk
    JOIN pg_attribute AS p ON p.attrelid = k.confrelid AND p.attnum = u.pk
    WHERE k.contype = 'f' AND k.confrelid = ANY (targets) AND k.conparentid = 0
$function$;

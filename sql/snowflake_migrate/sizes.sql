-- Sizes of relations. In a copy of a schema with the statistics of another server, files are
-- empty, and the sizes are those that the other server had when it was analyzed: so a plan
-- tells what it takes there. Dumps have no sizes of TOAST tables.

-- The bytes of a table or an index itself. In the copy, an index has the pages of an empty one.
CREATE FUNCTION snowflake_migrate_internal.main_bytes(relation regclass)
RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN c.relpages > 0
                     AND pg_relation_size(coalesce((SELECT i.indrelid FROM pg_index AS i WHERE i.indexrelid = c.oid), c.oid)) = 0
                THEN greatest(c.relpages * current_setting('block_size')::bigint, f.bytes) ELSE f.bytes END
    FROM pg_class AS c CROSS JOIN pg_relation_size(c.oid) AS f (bytes) WHERE c.oid = relation
$function$;

-- Those of a table, with its TOAST table; and with its indexes, too.
CREATE FUNCTION snowflake_migrate_internal.table_bytes(relation regclass)
RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN t.relpages <= 0 OR pg_relation_size(relation) > 0 THEN pg_table_size(relation)
                ELSE greatest(pg_table_size(relation),
                              snowflake_migrate_internal.main_bytes(relation)
                              + coalesce((SELECT snowflake_migrate_internal.main_bytes(nullif(c.reltoastrelid, 0))
                                          FROM pg_class AS c WHERE c.oid = relation), 0)) END
    FROM pg_class AS t WHERE t.oid = relation
$function$;

CREATE FUNCTION snowflake_migrate_internal.total_bytes(relation regclass)
RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN t.relpages <= 0 OR pg_relation_size(relation) > 0 THEN pg_total_relation_size(relation)
                ELSE greatest(pg_total_relation_size(relation),
                              snowflake_migrate_internal.table_bytes(relation)
                              + (SELECT coalesce(sum(snowflake_migrate_internal.main_bytes(i.indexrelid)), 0)::bigint
                                 FROM pg_index AS i WHERE i.indrelid = relation)) END
    FROM pg_class AS t WHERE t.oid = relation
$function$;

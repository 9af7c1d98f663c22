-- The partitions that a table needs from now on, and up to now where calls were missed. They
-- continue at the end of the existing ones.
CREATE FUNCTION snowflake_partitions_internal.ahead(parent regclass, at timestamp with time zone)
RETURNS SETOF snowflake_partitions_internal.range LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT m.*
    FROM snowflake_partitions_internal.settings AS s
    CROSS JOIN LATERAL snowflake_partitions_internal.zone_of(s.step, s.time_zone) AS z (name)
    -- A step that begins in this moment is needed, too.
    CROSS JOIN LATERAL snowflake_partitions_internal.missing(
        parent, snowflake_partitions_internal.step_start(at, s.step, z.name),
        greatest(snowflake_partitions_internal.partition_boundary(at, s.ahead, 1, z.name), at + interval '1 microsecond'),
        s.step, z.name) AS m
    WHERE s.parent = ahead.parent
    LIMIT 2001
$function$;

-- The statement that takes from a new partition what default privileges have given to roles that do not have it on
-- the table, or only for some rows; NULL if there is nothing. Else they could read around the table. A partition
-- has no row security of its own.
CREATE FUNCTION snowflake_partitions_internal.revocation(parent regclass, range snowflake_partitions_internal.range)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('REVOKE ALL ON TABLE %I.%I FROM %s', k.schema_name, range.name,
                  string_agg(DISTINCT CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END, ', '))
    FROM snowflake_partitions_internal.key_of(parent) AS k
    JOIN pg_class AS c ON c.oid = parent
    JOIN pg_default_acl AS f ON f.defaclrole = c.relowner AND f.defaclobjtype = 'r' AND f.defaclnamespace IN (0, c.relnamespace)
    CROSS JOIN LATERAL aclexplode(f.defaclacl) AS x
    LEFT JOIN pg_roles AS r ON r.oid = x.grantee
    WHERE x.grantee <> c.relowner AND (x.grantee = 0 OR r.oid IS NOT NULL)
      AND (NOT CASE x.grantee WHEN 0 THEN has_table_privilege('public', parent, x.privilege_type)
                              ELSE has_table_privilege(x.grantee, parent, x.privilege_type) END
           OR c.relrowsecurity AND NOT coalesce(r.rolsuper OR r.rolbypassrls, false))
    GROUP BY k.schema_name
$function$;

-- The statements that create a partition. Where the table is published by all its columns, or by an index
-- that is not the primary key, so is the partition: else its rows could not be changed.
CREATE FUNCTION snowflake_partitions_internal.creation(parent regclass, range snowflake_partitions_internal.range)
RETURNS text[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT array_remove(ARRAY[
        format('CREATE TABLE %I.%I PARTITION OF %s FOR VALUES FROM (%L) TO (%L)',
               k.schema_name, range.name, snowflake_partitions_internal.name_of(parent), range.low, range.high),
        CASE WHEN c.relreplident = 'f' OR c.relreplident = 'i'
                  AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = parent AND i.indisprimary)
             THEN format('ALTER TABLE %I.%I REPLICA IDENTITY FULL', k.schema_name, range.name) END,
        snowflake_partitions_internal.revocation(parent, range)], NULL)
    FROM snowflake_partitions_internal.key_of(parent) AS k JOIN pg_class AS c ON c.oid = parent
$function$;

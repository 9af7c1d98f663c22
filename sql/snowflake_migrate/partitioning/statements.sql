-- The statements that make a table the first partition of a new one of its name, and those that
-- undo it. All are made before the table is locked, from the catalog as it is, with the names that
-- tables have when the statement runs.
--
-- place is the order:
--
--   1        drops what depends on the table (dependents), and foreign keys and publications of it
--   2 to 3   give the table and its indexes other names
--   4 to 7   create the table that is partitioned, with its constraints and indexes
--   8 to 9   attach the former table as its first partition
--  10 to 15  what belonged to the former table belongs to the new one
--  16        creates the dependents again, and the foreign keys of other tables
CREATE TYPE snowflake_migrate_internal.partition_statement AS (place integer, rank bigint, role oid, statement text);

-- A name of 63 bytes at most: the end, which tells it from others, stays.
CREATE FUNCTION snowflake_migrate_internal.name_with_end(stem text, ending text)
RETURNS name LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    WHILE octet_length(stem || ending) > 63 AND stem <> '' LOOP
        stem := left(stem, -1);
    END LOOP;
    RETURN stem || ending;
END
$function$;

-- The name of the first partition, the first one that is free.
CREATE FUNCTION snowflake_migrate_internal.first_partition_name(target regclass)
RETURNS name LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT n.name
    FROM pg_class AS c
    CROSS JOIN generate_series(0, 1000) AS g (number)
    CROSS JOIN LATERAL snowflake_migrate_internal.name_with_end(c.relname::text, '_p' || g.number) AS n (name)
    WHERE c.oid = target
      AND NOT EXISTS (SELECT FROM pg_class AS o WHERE o.relnamespace = c.relnamespace AND o.relname = n.name)
      AND NOT EXISTS (SELECT FROM pg_type AS t WHERE t.typnamespace = c.relnamespace AND t.typname = n.name)
    ORDER BY g.number LIMIT 1
$function$;

-- The indexes of the table, with the names that those of the partition get: its own name in place
-- of the table's, as PostgreSQL names the indexes of new partitions.
CREATE FUNCTION snowflake_migrate_internal.partition_indexes(target regclass, partition_name name)
RETURNS TABLE (index regclass, schema name, name name, partition_index name, constraint_oid oid, definition text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT i.indexrelid::regclass, n.nspname, x.relname,
           CASE WHEN EXISTS (SELECT FROM pg_class AS o WHERE o.relnamespace = n.oid AND o.relname = w.name)
                  OR count(*) OVER (PARTITION BY w.name) > 1
                THEN snowflake_migrate_internal.name_with_end(partition_name::text, '_' || x.oid) ELSE w.name END,
           k.oid, CASE WHEN k.oid IS NULL THEN pg_get_indexdef(i.indexrelid) ELSE pg_get_constraintdef(k.oid) END
    FROM pg_index AS i
    JOIN pg_class AS t ON t.oid = i.indrelid
    JOIN pg_class AS x ON x.oid = i.indexrelid
    JOIN pg_namespace AS n ON n.oid = x.relnamespace
    LEFT JOIN pg_constraint AS k ON k.conindid = x.oid AND k.conrelid = target AND k.contype IN ('p', 'u', 'x')
    CROSS JOIN LATERAL (
        SELECT snowflake_migrate_internal.name_with_end(partition_name::text, CASE
            WHEN starts_with(x.relname, t.relname) THEN substr(x.relname, length(t.relname) + 1)
            WHEN octet_length(x.relname) < 40 THEN '_' || x.relname ELSE '_' || x.oid END)) AS w (name)
    WHERE i.indrelid = target
$function$;

-- What belongs to a table itself and goes over to another one that takes its name: privileges,
-- row security, comments, statistics, publications, sequences, and states of its triggers. The sequences get the
-- owner `heir`, at a place of their own.
CREATE FUNCTION snowflake_migrate_internal.carried_statements(source regclass, heir text, sequence_place integer)
RETURNS SETOF snowflake_migrate_internal.partition_statement LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH own AS MATERIALIZED (
        SELECT c.*, snowflake_migrate_internal.name_of(source) AS quoted_name FROM pg_class AS c WHERE c.oid = source
    ), shown AS MATERIALIZED (
        SELECT a.* FROM pg_attribute AS a WHERE a.attrelid = source AND a.attnum > 0 AND NOT a.attisdropped
    )
    SELECT 10, g.place, g.role, g.statement
    FROM own AS c
    CROSS JOIN LATERAL snowflake_migrate_internal.grants("char" 'r', 'TABLE ' || c.quoted_name, NULL, c.relowner, c.relnamespace,
        c.relacl, false) AS g
  UNION ALL
    SELECT 10, 1000 * a.attnum + g.place, g.role, g.statement
    FROM own AS c CROSS JOIN shown AS a
    CROSS JOIN LATERAL snowflake_migrate_internal.grants("char" 'r', 'TABLE ' || c.quoted_name, a.attname, c.relowner, c.relnamespace,
        a.attacl, false) AS g
    WHERE a.attacl IS NOT NULL
  UNION ALL
    SELECT 11, 0, c.relowner, format('ALTER TABLE ONLY %s %s', c.quoted_name, r.action)
    FROM own AS c
    CROSS JOIN LATERAL (VALUES (c.relrowsecurity, 'ENABLE ROW LEVEL SECURITY'), (c.relforcerowsecurity,
        'FORCE ROW LEVEL SECURITY')) AS r (applies, action)
    WHERE r.applies
  UNION ALL
    SELECT 12, e.objsubid, c.relowner,
           CASE e.objsubid WHEN 0 THEN format('COMMENT ON TABLE %s IS %L', c.quoted_name, e.description)
                           ELSE format('COMMENT ON COLUMN %s.%I IS %L', c.quoted_name, a.attname, e.description) END
    FROM own AS c
    JOIN pg_description AS e ON e.classoid = 'pg_class'::regclass AND e.objoid = source
    LEFT JOIN shown AS a ON a.attnum = e.objsubid
  UNION ALL
    SELECT 1, x.oid, x.stxowner, format('DROP STATISTICS %I.%I', n.nspname, x.stxname)
    FROM pg_statistic_ext AS x JOIN pg_namespace AS n ON n.oid = x.stxnamespace WHERE x.stxrelid = source
  UNION ALL
    SELECT 13, 10 * x.oid::bigint + s.rank, s.role, s.statement
    FROM own AS c
    JOIN pg_statistic_ext AS x ON x.stxrelid = c.oid
    JOIN pg_namespace AS n ON n.oid = x.stxnamespace
    CROSS JOIN LATERAL (VALUES
        (1, x.stxowner, pg_get_statisticsobjdef(x.oid)),
        (2, x.stxowner, CASE WHEN (to_jsonb(x) ->> 'stxstattarget')::integer >= 0
                             THEN format('ALTER STATISTICS %I.%I SET STATISTICS %s', n.nspname, x.stxname,
                                 to_jsonb(x) ->> 'stxstattarget') END),
        (3, x.stxowner, (SELECT format('COMMENT ON STATISTICS %I.%I IS %L', n.nspname, x.stxname, e.description)
                         FROM pg_description AS e WHERE e.classoid = 'pg_statistic_ext'::regclass
                             AND e.objoid = x.oid))) AS s (rank, role, statement)
    WHERE s.statement IS NOT NULL
  UNION ALL
    SELECT s.place, p.oid, p.pubowner, format(s.form, p.pubname, c.quoted_name,
           ' (' || (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM shown AS a
                    WHERE a.attnum = ANY (r.prattrs::smallint[])) || ')',
           ' WHERE (' || pg_get_expr(r.prqual, r.prrelid) || ')')
    FROM own AS c
    JOIN pg_publication_rel AS r ON r.prrelid = c.oid
    JOIN pg_publication AS p ON p.oid = r.prpubid
    CROSS JOIN (VALUES (1, 'ALTER PUBLICATION %1$I DROP TABLE ONLY %2$s'), (14,
        'ALTER PUBLICATION %1$I ADD TABLE ONLY %2$s%3$s%4$s')) AS s (place, form)
  UNION ALL
    -- Otherwise they would be dropped with the table that loses the name.
    SELECT sequence_place, q.oid, q.relowner,
           format('ALTER SEQUENCE %s OWNED BY %s.%I', snowflake_migrate_internal.name_of(q.oid::regclass), heir, a.attname)
    FROM own AS c
    JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
        AND d.deptype = 'a'
    JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S'
    JOIN shown AS a ON a.attnum = d.refobjsubid
  UNION ALL
    -- With those of the partitions, whose triggers are copies.
    SELECT 17, t.oid, c.relowner, format('ALTER TABLE %s %s TRIGGER %I', c.quoted_name,
           CASE t.tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, t.tgname)
    FROM own AS c JOIN pg_trigger AS t ON t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'O'
$function$;

-- Foreign keys of other tables: dropped, and added again towards the table that has the name then.
CREATE FUNCTION snowflake_migrate_internal.incoming_key_statements(source regclass)
RETURNS SETOF snowflake_migrate_internal.partition_statement LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT s.place, k.oid::bigint, c.relowner, s.statement
    FROM snowflake_migrate_internal.incoming_keys(source) AS k
    JOIN pg_class AS c ON c.oid = k.conrelid
    CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.name_of(k.conrelid::regclass)) AS n (name)
    CROSS JOIN LATERAL (VALUES
        (1, format('ALTER TABLE %s DROP CONSTRAINT %I', n.name, k.conname)),
        (18, format('ALTER TABLE %s ADD CONSTRAINT %I %s%s', n.name, k.conname, pg_get_constraintdef(k.oid),
                    CASE WHEN k.convalidated THEN ' NOT VALID' ELSE '' END)),
        (19, (SELECT format('COMMENT ON CONSTRAINT %I ON %s IS %L', k.conname, n.name, e.description)
              FROM pg_description AS e WHERE e.classoid = 'pg_constraint'::regclass AND e.objoid = k.oid))) AS s (place, statement)
    WHERE s.statement IS NOT NULL
$function$;

-- The new table, before it has its first partition: columns, constraints and indexes.
CREATE FUNCTION snowflake_migrate_internal.parent_statements(target regclass, column_name name, partition_name name)
RETURNS SETOF snowflake_migrate_internal.partition_statement LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH own AS MATERIALIZED (
        SELECT c.*, n.nspname, format('%I.%I', n.nspname, c.relname) AS quoted_name, format('%I.%I', n.nspname, partition_name) AS partition
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = target
    ), kept AS MATERIALIZED (
        SELECT k.*, obj_description(k.oid, 'pg_constraint') AS comment FROM pg_constraint AS k
        WHERE k.conrelid = target
          -- Not what a foreign key has for each partition that it references.
          AND (k.contype IN ('p', 'u', 'x') OR k.contype = 'f' AND k.conparentid = 0 OR k.contype = 'c' AND NOT k.connoinherit)
    ), indexes AS MATERIALIZED (
        SELECT i.*, obj_description(i.index, 'pg_class') AS comment
        FROM snowflake_migrate_internal.partition_indexes(target, partition_name) AS i
    )
    SELECT 2, i.index::oid::bigint, c.relowner, format('ALTER INDEX %I.%I RENAME TO %I', i.schema, i.name, i.partition_index)
    FROM own AS c CROSS JOIN indexes AS i
  UNION ALL
    SELECT 3, 0, c.relowner, format('ALTER TABLE %s RENAME TO %I', c.quoted_name, partition_name) FROM own AS c
  UNION ALL
    SELECT 4, 0, c.relowner, format(
               'CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING STORAGE INCLUDING COMPRESSION) '
               'PARTITION BY RANGE (%I)%s', c.quoted_name, c.partition, column_name,
               (SELECT format(' TABLESPACE %I', t.spcname) FROM pg_tablespace AS t WHERE t.oid = c.reltablespace))
    FROM own AS c
  UNION ALL
    SELECT 5, k.oid::bigint, c.relowner, format('ALTER TABLE %s ADD CONSTRAINT %I %s', c.quoted_name, k.conname,
        pg_get_constraintdef(k.oid))
    FROM own AS c CROSS JOIN kept AS k WHERE k.contype <> 'f'
  UNION ALL
    SELECT 6, i.index::oid::bigint, c.relowner, i.definition FROM own AS c CROSS JOIN indexes AS i WHERE i.constraint_oid IS NULL
  UNION ALL
    SELECT 7, k.oid::bigint, c.relowner, format('ALTER TABLE %s ADD CONSTRAINT %I %s', c.quoted_name, k.conname,
        pg_get_constraintdef(k.oid))
    FROM own AS c CROSS JOIN kept AS k WHERE k.contype = 'f'
  UNION ALL
    SELECT 7, a.attnum, c.relowner, format('ALTER TABLE ONLY %s ALTER COLUMN %I %s', c.quoted_name, a.attname, s.action)
    FROM own AS c
    JOIN pg_attribute AS a ON a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped
    CROSS JOIN LATERAL (VALUES
        (CASE WHEN a.attstattarget >= 0 THEN format('SET STATISTICS %s', a.attstattarget) END),
        ('SET (' || array_to_string(snowflake_migrate_internal.column_options(a.attoptions), ', ') || ')')) AS s (action)
    WHERE s.action IS NOT NULL
  UNION ALL
    SELECT 12, 10000 + k.oid::bigint, c.relowner, format('COMMENT ON CONSTRAINT %I ON %s IS %L', k.conname, c.quoted_name, k.comment)
    FROM own AS c CROSS JOIN kept AS k WHERE k.comment IS NOT NULL
  UNION ALL
    SELECT 12, 10000 + i.index::oid::bigint, c.relowner, format('COMMENT ON INDEX %I.%I IS %L', i.schema, i.name, i.comment)
    FROM own AS c CROSS JOIN indexes AS i WHERE i.comment IS NOT NULL
  UNION ALL
    SELECT 13, 0, c.relowner, format('ALTER TABLE ONLY %s REPLICA IDENTITY %s', c.quoted_name,
               CASE c.relreplident WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING'
                    ELSE (SELECT format('USING INDEX %I', x.relname) FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
                          WHERE i.indrelid = target AND i.indisreplident) END)
    FROM own AS c WHERE c.relreplident <> 'd'
$function$;

-- What both ways have in common. Partitions lose their copies of triggers.
CREATE FUNCTION snowflake_migrate_internal.common_partition_statements(target regclass, heir text, sequence_place integer)
RETURNS SETOF snowflake_migrate_internal.partition_statement LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT s.* FROM snowflake_migrate_internal.carried_statements(target, heir, sequence_place) AS s
  UNION ALL
    SELECT s.* FROM snowflake_migrate_internal.incoming_key_statements(target) AS s
  UNION ALL
    SELECT CASE d.phase WHEN 1 THEN 0 ELSE 16 END, d.place, d.role, d.statement
    FROM snowflake_migrate_internal.dependent_statements(snowflake_migrate_internal.whole(target))
        WITH ORDINALITY AS d (phase, role, statement, identity, place)
    WHERE d.phase < 3
      AND d.identity NOT IN (SELECT t.identity FROM snowflake_migrate_internal.dependents(snowflake_migrate_internal.whole(target)) AS t
                             WHERE t.kind = 'trigger of a partition')
$function$;

-- The statements by which a table becomes the first partition.
CREATE FUNCTION snowflake_migrate_internal.partition_statements(target regclass, column_name name, bound bigint)
RETURNS SETOF snowflake_migrate_internal.partition_statement LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC'
SET extra_float_digits = 3 SET quote_all_identifiers = off
AS $function$
    WITH own AS MATERIALIZED (
        SELECT c.*, n.nspname, f.name AS partition_name, format('%I.%I', n.nspname, c.relname) AS quoted_name,
               format('%I.%I', n.nspname, f.name) AS partition
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        CROSS JOIN LATERAL snowflake_migrate_internal.first_partition_name(target) AS f (name)
        WHERE c.oid = target
    ), statement AS (
        SELECT s.* FROM own AS c CROSS JOIN LATERAL snowflake_migrate_internal.parent_statements(target, column_name, c.partition_name) AS s
      UNION ALL
        SELECT s.* FROM own AS c CROSS JOIN LATERAL snowflake_migrate_internal.common_partition_statements(target, c.quoted_name, 15) AS s
      UNION ALL
        SELECT 8, 0, c.relowner, format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (MINVALUE) TO (%L)', c.quoted_name,
            c.partition, bound)
        FROM own AS c
      UNION ALL
        SELECT 9, 0, c.relowner, format('ALTER TABLE ONLY %s DROP CONSTRAINT %I', c.partition, coalesce(k.name,
            'snowflake_partition_bound'))
        FROM own AS c LEFT JOIN LATERAL snowflake_migrate_internal.partition_check(target) AS k ON true
      UNION ALL
        -- As a partition that is created: who has privileges has them by the table.
        SELECT 9, 1, c.relowner, format('REVOKE ALL ON TABLE %s FROM %s CASCADE', c.partition, string_agg(DISTINCT
                   CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END, ', '))
        FROM own AS c
        CROSS JOIN LATERAL (
            SELECT x.grantee FROM aclexplode(c.relacl) AS x WHERE x.grantee <> c.relowner
          UNION
            SELECT x.grantee FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(a.attacl) AS x
            WHERE a.attrelid = target AND NOT a.attisdropped AND x.grantee <> c.relowner) AS g
        GROUP BY c.relowner, c.partition
      UNION ALL
        SELECT 9, 2, c.relowner, format('ALTER TABLE ONLY %s DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY', c.partition)
        FROM own AS c WHERE c.relrowsecurity OR c.relforcerowsecurity
    )
    SELECT s.* FROM statement AS s ORDER BY s.place, s.rank, s.statement
$function$;

-- The statements that undo it: the partition becomes a table of that name, and the partitioned one is dropped.
CREATE FUNCTION snowflake_migrate_internal.unpartition_statements(target regclass, first regclass)
RETURNS SETOF snowflake_migrate_internal.partition_statement LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC'
SET extra_float_digits = 3 SET quote_all_identifiers = off
AS $function$
    WITH own AS MATERIALIZED (
        SELECT c.*, snowflake_migrate_internal.name_of(target) AS quoted_name, snowflake_migrate_internal.name_of(first) AS partition
        FROM pg_class AS c WHERE c.oid = target
    ), statement AS (
        SELECT s.* FROM own AS c CROSS JOIN LATERAL snowflake_migrate_internal.common_partition_statements(target, c.partition, 3) AS s
      UNION ALL
        SELECT 2, 0, c.relowner, format('ALTER TABLE %s DETACH PARTITION %s', c.quoted_name, c.partition) FROM own AS c
      UNION ALL
        SELECT 4, 0, c.relowner, format('DROP TABLE %s', c.quoted_name) FROM own AS c
      UNION ALL
        SELECT 5, 0, c.relowner, format('ALTER TABLE %s RENAME TO %I', c.partition, c.relname) FROM own AS c
      UNION ALL
        SELECT 6, x.oid::bigint, c.relowner, format('ALTER INDEX %s RENAME TO %I', snowflake_migrate_internal.name_of(x.oid::regclass),
            p.relname)
        FROM own AS c
        JOIN pg_index AS i ON i.indrelid = first
        JOIN pg_class AS x ON x.oid = i.indexrelid
        JOIN pg_inherits AS h ON h.inhrelid = x.oid
        JOIN pg_class AS p ON p.oid = h.inhparent
        WHERE p.relname <> x.relname
    )
    SELECT s.* FROM statement AS s ORDER BY s.place, s.rank, s.statement
$function$;

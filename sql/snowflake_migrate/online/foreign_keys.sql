-- The foreign keys on shadow columns: one for each foreign key that has a narrow
-- column on either side.

-- A foreign key of narrow columns, and its counterpart.
CREATE TYPE snowflake_migrate_internal.shadow_foreign_key AS (
    foreign_key oid, name name, relation regclass, referenced regclass, shadow_name name, shadow oid,
    is_to_be_valid boolean, is_ready boolean, definition text,
    -- Of a partitioned table, at this level of its tree; and whether a partition has it from its parent.
    is_partitioned boolean, level integer, is_inherited boolean
);

-- The foreign keys of the narrow columns, and those of their shadows.
CREATE FUNCTION snowflake_migrate_internal.shadow_foreign_keys(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.shadow_foreign_key LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.relation, s.attribute, s.shadow_name, s.shadow
        FROM snowflake_migrate_internal.shadows(keys) AS s
    ), narrow_key AS MATERIALIZED (
        SELECT k.*, snowflake_migrate_internal.shadow_name(text 'foreign key', k.conname) AS shadow_name,
               r.relkind = 'p' AS is_partitioned, p.oid AS parent, p.conrelid AS parent_relation,
               snowflake_migrate_internal.shadow_name(text 'foreign key', p.conname) AS parent_shadow_name,
               -- From PostgreSQL 18 on, a foreign key may be NOT ENFORCED.
               coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true) AS is_enforced
        FROM pg_constraint AS k
        JOIN pg_class AS r ON r.oid = k.conrelid
        LEFT JOIN pg_constraint AS p ON p.oid = k.conparentid
        -- Those of partitions, too, but not what a foreign key has for each partition that it references.
        WHERE k.contype = 'f' AND p.conrelid IS DISTINCT FROM k.conrelid
          AND EXISTS (SELECT FROM shadow AS s
                      WHERE s.relation = k.conrelid AND s.attribute = ANY (k.conkey)
                         OR s.relation = k.confrelid AND s.attribute = ANY (k.confkey))
    )
    SELECT m.oid, m.conname, m.conrelid::regclass, m.confrelid::regclass, coalesce(n.conname, m.shadow_name), n.oid, m.convalidated,
           coalesce((n.convalidated OR NOT m.convalidated) AND n.confrelid = m.confrelid
                    AND n.conkey = referencing.attributes AND n.confkey = referenced.attributes, false),
           format('ALTER TABLE %s ADD CONSTRAINT %I FOREIGN KEY (%s) REFERENCES %s (%s)',
                  snowflake_migrate_internal.name_of(m.conrelid::regclass), m.shadow_name, referencing.names,
                  snowflake_migrate_internal.name_of(m.confrelid::regclass), referenced.names)
           || CASE m.confmatchtype WHEN 'f' THEN ' MATCH FULL' ELSE '' END
           || CASE m.confupdtype WHEN 'r' THEN ' ON UPDATE RESTRICT' WHEN 'c' THEN ' ON UPDATE CASCADE'
                                 WHEN 'n' THEN ' ON UPDATE SET NULL' WHEN 'd' THEN ' ON UPDATE SET DEFAULT' ELSE '' END
           || CASE m.confdeltype WHEN 'r' THEN ' ON DELETE RESTRICT' WHEN 'c' THEN ' ON DELETE CASCADE'
                                 WHEN 'n' THEN ' ON DELETE SET NULL' WHEN 'd' THEN ' ON DELETE SET DEFAULT' ELSE '' END
           || coalesce(' (' || emptied.names || ')', '')
           || CASE WHEN m.condeferrable THEN ' DEFERRABLE' ELSE '' END || CASE WHEN m.condeferred THEN ' INITIALLY DEFERRED' ELSE '' END
           || CASE WHEN NOT m.is_enforced THEN ' NOT ENFORCED'
                   -- Those of the partitions are valid by then, and become its own.
                   WHEN m.is_partitioned AND m.convalidated THEN ''
                   ELSE ' NOT VALID' END,
           m.is_partitioned, (SELECT count(*) FROM pg_partition_ancestors(m.conrelid))::integer, m.parent IS NOT NULL
    FROM narrow_key AS m
    CROSS JOIN LATERAL (
        SELECT string_agg(quote_ident(coalesce(s.shadow_name, a.attname)), ', ' ORDER BY k.place) AS names,
               array_agg(coalesce(s.shadow, k.attribute) ORDER BY k.place) AS attributes
        FROM unnest(m.conkey) WITH ORDINALITY AS k (attribute, place)
        JOIN pg_attribute AS a ON a.attrelid = m.conrelid AND a.attnum = k.attribute
        LEFT JOIN shadow AS s ON s.relation = m.conrelid AND s.attribute = k.attribute) AS referencing
    CROSS JOIN LATERAL (
        SELECT string_agg(quote_ident(coalesce(s.shadow_name, a.attname)), ', ' ORDER BY k.place) AS names,
               array_agg(coalesce(s.shadow, k.attribute) ORDER BY k.place) AS attributes
        FROM unnest(m.confkey) WITH ORDINALITY AS k (attribute, place)
        JOIN pg_attribute AS a ON a.attrelid = m.confrelid AND a.attnum = k.attribute
        LEFT JOIN shadow AS s ON s.relation = m.confrelid AND s.attribute = k.attribute) AS referenced
    CROSS JOIN LATERAL (
        SELECT string_agg(quote_ident(coalesce(s.shadow_name, a.attname)), ', ' ORDER BY k.place) AS names
        FROM unnest(m.confdelsetcols) WITH ORDINALITY AS k (attribute, place)
        JOIN pg_attribute AS a ON a.attrelid = m.conrelid AND a.attnum = k.attribute
        LEFT JOIN shadow AS s ON s.relation = m.conrelid AND s.attribute = k.attribute) AS emptied
    -- By its name; or that of a partition made since, by that of its parent.
    LEFT JOIN pg_constraint AS n ON n.contype = 'f' AND n.conrelid = m.conrelid
        AND CASE n.conparentid WHEN 0 THEN n.conname = m.shadow_name
                 ELSE EXISTS (SELECT FROM pg_constraint AS c WHERE c.oid = n.conparentid AND c.conrelid = m.parent_relation
                                                               AND c.conname = m.parent_shadow_name) END
$function$;

-- Fails unless the counterpart of a foreign key references the same table: the name in
-- the statement that added it may have belonged to another one by then.
CREATE FUNCTION snowflake_migrate_internal.require_same_reference(relation regclass, foreign_key name, counterpart name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_constraint AS k JOIN pg_constraint AS c ON c.conrelid = k.conrelid AND c.contype = 'f' AND c.confrelid = k.confrelid
        WHERE k.conrelid = relation AND k.contype = 'f' AND k.conname = foreign_key AND c.conname = counterpart)
    THEN
        PERFORM snowflake_internal.refuse('40001',
            format('the name of the table that foreign key "%s" of %s references belongs to another table now', foreign_key, relation),
            detail => 'The table, or its schema, was renamed at the same time.',
            hint => 'Request the plan again.');
    END IF;
END
$function$;

-- The steps that add the foreign keys. An added foreign key is checked for new rows
-- immediately, so the referenced rows must already have shadow values.
CREATE FUNCTION snowflake_migrate_internal.foreign_key_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT planned.step
    FROM snowflake_migrate_internal.shadow_foreign_keys(keys) AS f
    CROSS JOIN LATERAL (
        SELECT 1 AS place, snowflake_migrate_internal.step(text 'foreign key', f.relation, text 'SHARE ROW EXCLUSIVE',
            text 'adds foreign key %s of %s',
            format(CASE WHEN f.is_partitioned THEN 'the counterpart of %I, of those of the partitions. '
                        ELSE 'the counterpart of %I, which is checked for rows written from now on. ' END
                   || 'Holds the lock for a moment, after short attempts to acquire it', f.name),
            ARRAY[snowflake_migrate_internal.lock_command(ARRAY(SELECT f.relation UNION SELECT f.referenced), text 'SHARE ROW EXCLUSIVE'),
                  snowflake_migrate_internal.command(text 'call', f.relation,
                      format('snowflake_migrate_internal.require_filled(%s)', (SELECT snowflake_migrate_internal.key_arguments(keys)))),
                  snowflake_migrate_internal.command(text 'alter', f.relation, f.definition),
                  snowflake_migrate_internal.command(text 'call', f.relation,
                      format('snowflake_migrate_internal.require_same_reference('
                             '%L::pg_catalog.regclass, %L::pg_catalog.name, %L::pg_catalog.name)',
                             snowflake_migrate_internal.name_of(f.relation), f.name, f.shadow_name))]
            -- Its triggers would check rows that the other one does not.
            || CASE WHEN NOT f.is_partitioned AND f.relation = ANY (ARRAY(
                         SELECT s.relation FROM snowflake_migrate_internal.tables_with_states() AS s (relation)))
                     AND EXISTS (SELECT FROM snowflake_migrate_internal.foreign_key_triggers(ARRAY[f.relation]) AS t
                                 WHERE t.foreign_key = f.foreign_key AND t.state <> 'O')
                    THEN ARRAY[snowflake_migrate_internal.command(
                             text 'copy states', f.relation, columns => ARRAY[f.name, f.shadow_name])] END,
            names => ARRAY[quote_ident(f.name), f.relation::text]) AS step
        WHERE f.shadow IS NULL
      UNION ALL
        SELECT 2, snowflake_migrate_internal.step(text 'validation', f.relation, text 'SHARE UPDATE EXCLUSIVE',
            text 'validates foreign key %s of %s',
            format('reads the existing rows. %s is locked in ROW SHARE mode', f.referenced),
            ARRAY[snowflake_migrate_internal.command(text 'alter', f.relation,
                format('ALTER TABLE %s VALIDATE CONSTRAINT %I', snowflake_migrate_internal.name_of(f.relation), f.shadow_name))],
            names => ARRAY[quote_ident(f.name), f.relation::text],
            work => snowflake_migrate_internal.reference_work(f.relation, f.referenced))
        WHERE f.is_to_be_valid AND NOT f.is_partitioned
    ) AS planned
    WHERE NOT f.is_ready
    ORDER BY f.is_partitioned, CASE WHEN f.is_partitioned THEN -f.level END, f.relation::text, f.name, planned.place
$function$;

-- Foreign keys whose triggers are not enabled as usual, as after ALTER TABLE ...
-- DISABLE TRIGGER ALL. Changing the type of a column creates its foreign keys again:
-- their triggers are enabled, and all rows are checked. So the triggers' states are
-- restored, which only a superuser may do, and rows that the check would reject are
-- reported before.

-- Enables or disables a trigger, for superusers.
CREATE FUNCTION snowflake_migrate_internal.set_trigger_state(relation regclass, trigger_name name, state text) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_set_trigger_state_wrapper';

-- The foreign keys of some columns: the constraint that a table declares, and its
-- copies on partitions. Only a foreign key's own tables have its triggers.
CREATE FUNCTION snowflake_migrate_internal.foreign_key_triggers(relations regclass[])
RETURNS TABLE (foreign_key oid, relation regclass, trigger_name name, function_oid oid, state text, is_copy boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE copy (root, oid) AS (
        SELECT k.oid, k.oid FROM pg_constraint AS k
        WHERE k.contype = 'f' AND k.conparentid = 0 AND (k.conrelid = ANY (relations) OR k.confrelid = ANY (relations))
      UNION ALL
        SELECT copy.root, k.oid FROM copy JOIN pg_constraint AS k ON k.conparentid = copy.oid AND k.contype = 'f'
    )
    SELECT copy.root, t.tgrelid::regclass, t.tgname, t.tgfoid, t.tgenabled::text, t.tgparentid <> 0
    FROM copy JOIN pg_trigger AS t ON t.tgconstraint = copy.oid AND t.tgisinternal
$function$;

-- The tables of the foreign keys with a trigger in another state than the usual one: few in most
-- databases, and faster to find together than for each table.
CREATE FUNCTION snowflake_migrate_internal.tables_with_states()
RETURNS SETOF regclass LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH RECURSIVE changed (conrelid, confrelid, conparentid) AS (
        SELECT k.conrelid, k.confrelid, k.conparentid
        FROM pg_trigger AS t JOIN pg_constraint AS k ON k.oid = t.tgconstraint AND k.contype = 'f'
        WHERE t.tgisinternal AND t.tgenabled <> 'O'
      UNION
        SELECT k.conrelid, k.confrelid, k.conparentid
        FROM changed AS c JOIN pg_constraint AS k ON k.oid = c.conparentid AND k.contype = 'f'
    )
    SELECT DISTINCT side.relation::regclass
    FROM changed AS c CROSS JOIN LATERAL (VALUES (c.conrelid), (c.confrelid)) AS side (relation)
    WHERE c.conparentid = 0
$function$;

-- The states of such triggers that are not the usual one, by numbers that stay the
-- same when the foreign key is created again; NULL if there are none.
CREATE FUNCTION snowflake_migrate_internal.trigger_states(relations regclass[])
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT jsonb_agg(jsonb_build_object('table', k.conrelid, 'foreign_key', k.conname, 'relation', t.relation::oid,
                                        'function', t.function_oid, 'state', t.state)
                     -- On 15, setting that of a partitioned table sets those of its partitions.
                     ORDER BY t.is_copy, t.relation::oid, t.function_oid)
    FROM snowflake_migrate_internal.foreign_key_triggers(relations) AS t
    JOIN pg_constraint AS k ON k.oid = t.foreign_key
    WHERE EXISTS (SELECT FROM snowflake_migrate_internal.foreign_key_triggers(relations) AS changed
                  WHERE changed.foreign_key = t.foreign_key AND changed.state <> 'O')
$function$;

-- Restores them. Only a superuser may. snowflake_migrate runs the plan's statements
-- with the rights of the tables' owner, and calls this with those of its caller
-- after each; without them, it does nothing. The plan has an obstacle for callers
-- who may not.
CREATE FUNCTION snowflake_migrate_internal.restore_trigger_states(states jsonb)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    changed record;
BEGIN
    IF NOT (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user) THEN
        RETURN;
    END IF;
    FOR changed IN
        SELECT t.relation, t.trigger_name, e ->> 'state' AS state
        FROM jsonb_array_elements(states) WITH ORDINALITY AS s (e, place)
        JOIN pg_constraint AS k ON k.contype = 'f' AND k.conparentid = 0
                               AND k.conrelid = (e ->> 'table')::oid AND k.conname = e ->> 'foreign_key'
        CROSS JOIN LATERAL snowflake_migrate_internal.foreign_key_triggers(ARRAY[k.conrelid::regclass]) AS t
        WHERE t.foreign_key = k.oid AND t.relation = (e ->> 'relation')::oid AND t.function_oid = (e ->> 'function')::oid
        ORDER BY s.place
    LOOP
        PERFORM snowflake_migrate_internal.set_trigger_state(changed.relation, changed.trigger_name, changed.state);
    END LOOP;
END
$function$;

-- The states of the triggers of a foreign key, for another one between the same tables.
CREATE FUNCTION snowflake_migrate_internal.copied_states(relation regclass, foreign_key name, copied_to name)
RETURNS jsonb LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT jsonb_agg(e || jsonb_build_object('foreign_key', copied_to) ORDER BY s.place)
    FROM jsonb_array_elements(snowflake_migrate_internal.trigger_states(ARRAY[relation])) WITH ORDINALITY AS s (e, place)
    WHERE e ->> 'foreign_key' = foreign_key AND (e ->> 'table')::oid = relation
$function$;

CREATE FUNCTION snowflake_migrate_internal.copy_trigger_states(relation regclass, foreign_key name, copied_to name)
RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.restore_trigger_states(snowflake_migrate_internal.copied_states(relation, foreign_key, copied_to))
$function$;

-- The query that shows the rows that a foreign key would reject.
CREATE FUNCTION snowflake_migrate_internal.orphans_query(foreign_key oid)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format('SELECT r.* FROM %s%s AS r WHERE (%s) AND NOT EXISTS (SELECT FROM %s%s AS k WHERE %s)',
                  CASE WHEN c.relkind = 'p' THEN '' ELSE 'ONLY ' END, snowflake_migrate_internal.name_of(k.conrelid::regclass),
                  string_agg(format('r.%I IS NOT NULL', f.attname), CASE k.confmatchtype WHEN 'f' THEN ' OR ' ELSE ' AND ' END
                             ORDER BY key.place),
                  CASE WHEN p.relkind = 'p' THEN '' ELSE 'ONLY ' END, snowflake_migrate_internal.name_of(k.confrelid::regclass),
                  string_agg(format('k.%I OPERATOR(%I.%s) r.%I', pa.attname, n.nspname, o.oprname, f.attname), ' AND ' ORDER BY key.place))
    FROM pg_constraint AS k
    JOIN pg_class AS c ON c.oid = k.conrelid
    JOIN pg_class AS p ON p.oid = k.confrelid
    CROSS JOIN LATERAL ROWS FROM (unnest(k.conkey), unnest(k.confkey), unnest(k.conpfeqop))
        WITH ORDINALITY AS key (referencing, referenced, operator, place)
    JOIN pg_attribute AS f ON f.attrelid = k.conrelid AND f.attnum = key.referencing
    JOIN pg_attribute AS pa ON pa.attrelid = k.confrelid AND pa.attnum = key.referenced
    JOIN pg_operator AS o ON o.oid = key.operator
    JOIN pg_namespace AS n ON n.oid = o.oprnamespace
    WHERE k.oid = foreign_key
    GROUP BY k.oid, k.conrelid, k.confrelid, k.confmatchtype, c.relkind, p.relkind
$function$;

-- Foreign keys whose triggers are disabled.
CREATE FUNCTION snowflake_migrate_internal.foreign_key_obstacles(keys snowflake_migrate_internal.key[], search_path text DEFAULT NULL)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    is_superuser CONSTANT boolean := (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user);
    relations CONSTANT regclass[] := ARRAY(
        SELECT DISTINCT f.relation FROM snowflake_migrate_internal.linked_tree(keys) AS f WHERE f.is_narrow);
    checked record;
    query text;
    is_by_owner boolean;
BEGIN
    FOR checked IN
        -- Those that have a narrow column on either side.
        SELECT k.oid, k.conname, k.conrelid::regclass AS relation, k.confrelid::regclass AS referenced, k.convalidated,
               c.relowner, p.relowner AS referenced_owner
        FROM pg_constraint AS k
        JOIN pg_class AS c ON c.oid = k.conrelid
        JOIN pg_class AS p ON p.oid = k.confrelid
        WHERE k.oid IN (SELECT t.foreign_key FROM snowflake_migrate_internal.foreign_key_triggers(relations) AS t WHERE t.state <> 'O')
          AND EXISTS (SELECT FROM pg_attribute AS a
                      WHERE (a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
                             OR a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey))
                        AND a.attrelid = ANY (relations)
                        AND snowflake_migrate_internal.base_type(a.atttypid) IN ('int2'::regtype, 'int4'::regtype))
        ORDER BY k.conrelid::regclass::text, k.conname
    LOOP
        IF NOT is_superuser THEN
            RETURN QUERY SELECT side.relation, NULL::name,
                format('triggers of foreign key %I of %s are disabled, and would be enabled', checked.conname, checked.relation),
                format('Only a superuser can disable them again: run it as a superuser, or first enable them '
                       '(ALTER TABLE %s ENABLE TRIGGER ALL, and %s).',
                       checked.relation, checked.referenced), '42501'
                FROM unnest(ARRAY[checked.relation, checked.referenced]) AS side (relation) WHERE side.relation = ANY (relations);
        END IF;
        -- PostgreSQL does not check the rows of a foreign key that is NOT VALID.
        CONTINUE WHEN NOT checked.convalidated;
        query := snowflake_migrate_internal.orphans_query(checked.oid);
        -- Run by an owner who may read both tables.
        is_by_owner := has_table_privilege(checked.relowner, checked.referenced, 'SELECT');
        CONTINUE WHEN NOT is_by_owner AND NOT has_table_privilege(checked.referenced_owner, checked.relation, 'SELECT');
        IF snowflake_migrate_internal.query(
            CASE WHEN is_by_owner THEN checked.relation ELSE checked.referenced END,
            format('SELECT 1 FROM (%s) AS orphan LIMIT 1', query), search_path,
            CASE WHEN is_by_owner THEN checked.referenced ELSE checked.relation END) IS NOT NULL
        THEN
            RETURN QUERY SELECT side.relation, NULL::name,
                format('rows of %s violate foreign key %I, whose triggers are disabled', checked.relation, checked.conname),
                format('Delete or correct them, or drop the foreign key and add it again NOT VALID afterwards. '
                       'This shows them: %s.', query), '55000'
                FROM unnest(ARRAY[checked.relation, checked.referenced]) AS side (relation) WHERE side.relation = ANY (relations);
        END IF;
    END LOOP;
END
$function$;

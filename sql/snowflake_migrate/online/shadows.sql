-- The shadow columns, and the triggers that keep them up to date.

-- The trigger that keeps a shadow column equal to the narrow column it will replace.
CREATE FUNCTION snowflake_migrate_internal.shadow() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_shadow_wrapper';

-- The name of an object added beside another one. It is the same in each plan and
-- in a restored database. Names are truncated at 63 bytes, so the distinguishing
-- part comes first.
CREATE FUNCTION snowflake_migrate_internal.shadow_name(kind text, original name)
RETURNS name LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ('snowflake_' || left(encode(sha256(replace(kind || ' ' || original, E'\\', E'\\\\')::bytea), 'hex'), 8)
            || '_' || original)::name
$function$;

-- A narrow column, and the names and existing objects of its shadow.
CREATE TYPE snowflake_migrate_internal.shadow_column AS (
    relation regclass, attribute smallint, narrow name, is_required boolean,
    shadow_name name, trigger_name name, check_name name,
    shadow smallint, trigger_oid oid, check_oid oid, is_kept boolean, is_filled boolean,
    -- The table itself, or the partitioned one whose ALTER TABLE changes this partition.
    declared_by regclass, is_partitioned boolean
);

-- The narrow columns that hold the same IDs, and the existing objects of their
-- shadows: the column, the trigger that fills it, and the constraint whose
-- validation proves that all rows have the value. The trigger's name sorts last,
-- because triggers fire in the order of their names. With only_of, those of one table.
-- A partition has all three from its parent, but its rows, indexes and constraints are its own.
CREATE FUNCTION snowflake_migrate_internal.shadows(keys snowflake_migrate_internal.key[], only_of regclass DEFAULT NULL)
RETURNS SETOF snowflake_migrate_internal.shadow_column LANGUAGE sql STABLE ROWS 4
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT o.relation, o.attribute, a.attname, a.attnotnull, n.shadow_name, n.trigger_name, n.check_name,
           s.attnum, t.oid, k.oid, coalesce(s.attnum IS NOT NULL AND t.tgenabled = 'A' AND k.oid IS NOT NULL, false),
           coalesce(k.convalidated, false), r.relation, o.relkind = 'p'
    FROM snowflake_migrate_internal.linked_columns(keys) AS r
    JOIN pg_class AS d ON d.oid = r.relation
    CROSS JOIN LATERAL (
        SELECT r.relation, r.attribute, d.relkind
      UNION ALL
        SELECT f.relation, f.attribute, c.relkind
        FROM snowflake_migrate_internal.table_tree(r.relation, r.attname) AS f JOIN pg_class AS c ON c.oid = f.relation
        WHERE d.relkind = 'p' AND f.relation <> r.relation AND only_of IS NULL
      UNION ALL
        SELECT only_of, a.attnum, c.relkind
        FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = r.attname AND a.attnum > 0
        WHERE c.oid = only_of AND c.relispartition AND r.relation <> only_of AND d.relkind = 'p'
          AND r.relation IN (SELECT p.relid FROM pg_partition_ancestors(only_of) AS p)
    ) AS o
    JOIN pg_attribute AS a ON a.attrelid = o.relation AND a.attnum = o.attribute
    CROSS JOIN LATERAL (
        SELECT made.shadow_name, ('~~' || made.shadow_name)::name AS trigger_name,
               snowflake_migrate_internal.shadow_name(text 'check', a.attname) AS check_name
        FROM (SELECT snowflake_migrate_internal.shadow_name(text 'column', a.attname) AS shadow_name OFFSET 0) AS made
        -- OFFSET, because they would be made again wherever they are compared.
        OFFSET 0) AS n
    LEFT JOIN pg_attribute AS s ON s.attrelid = o.relation AND s.attname = n.shadow_name AND s.atttypid = 'int8'::regtype
    LEFT JOIN pg_trigger AS t ON t.tgrelid = o.relation AND t.tgname = n.trigger_name
                             AND t.tgfoid = 'snowflake_migrate_internal.shadow()'::regprocedure
    LEFT JOIN pg_constraint AS k ON k.conrelid = o.relation AND k.conname = n.check_name AND k.contype = 'c'
                                AND ARRAY[a.attnum, s.attnum] <@ k.conkey
    WHERE r.is_narrow AND (only_of IS NULL OR o.relation = only_of)
$function$;

-- Fails unless all rows have their shadow values. Without them, foreign keys would
-- reject valid rows.
CREATE FUNCTION snowflake_migrate_internal.require_filled(keys snowflake_migrate_internal.key[])
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    missing text;
BEGIN
    SELECT string_agg(format('%s.%I', s.relation, s.narrow), ', ' ORDER BY s.relation::text, s.attribute) INTO missing
    FROM snowflake_migrate_internal.shadows(keys) AS s
    WHERE NOT s.is_kept OR NOT s.is_filled;
    IF missing IS NOT NULL THEN
        PERFORM snowflake_internal.refuse('55000', format('not all rows are known to have shadow values of: %s', missing),
            hint => 'Run the statements of snowflake_migrate.plan() with online => true in order.');
    END IF;
END
$function$;

-- A CHECK constraint of narrow columns, and its counterpart.
CREATE TYPE snowflake_migrate_internal.shadow_check AS (
    check_constraint oid, name name, relation regclass, shadow_name name, shadow oid, is_to_be_valid boolean, is_ready boolean,
    definition text
);

-- The CHECK constraints on shadow columns: one for each CHECK constraint that uses a
-- narrow column. The definition is NULL if the expression cannot be mapped to the
-- shadows, because it uses whole rows.
CREATE FUNCTION snowflake_migrate_internal.shadow_checks(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.shadow_check LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET timezone = 'UTC' SET extra_float_digits = 3
SET quote_all_identifiers = off SET standard_conforming_strings = on
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.* FROM snowflake_migrate_internal.shadows(keys) AS s
    ), renamed AS MATERIALIZED (
        SELECT s.relation, array_agg(s.narrow) AS former, array_agg(s.shadow_name) AS present, array_agg(s.attribute) AS attributes,
               array_agg(s.check_oid) FILTER (WHERE s.check_oid IS NOT NULL) AS own_checks
        FROM shadow AS s GROUP BY s.relation
    ), narrow_check AS MATERIALIZED (
        SELECT k.*, r.former, r.present, e.expression,
               -- The expression is part of it, so that no counterpart survives another one of the same name.
               snowflake_migrate_internal.shadow_name('check ' || e.expression, k.conname) AS shadow_name,
               -- From PostgreSQL 18 on, a constraint may be NOT ENFORCED.
               coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true) AS is_enforced
        FROM renamed AS r
        -- Not what a partition has from its parent.
        JOIN pg_constraint AS k ON k.conrelid = r.relation AND k.contype = 'c' AND k.coninhcount = 0
        CROSS JOIN LATERAL (SELECT pg_get_expr(k.conbin, k.conrelid) AS expression) AS e
        WHERE (k.conkey && r.attributes OR k.conbin::text ~ ':varattno 0 ') AND k.oid <> ALL (coalesce(r.own_checks, '{}'))
    )
    SELECT m.oid, m.conname, m.conrelid::regclass, m.shadow_name, n.oid, m.convalidated,
           coalesce((n.convalidated OR NOT m.convalidated)
                    AND NOT snowflake_migrate_internal.uses_other_code('pg_constraint', m.oid, n.oid), false),
           format('ADD CONSTRAINT %I CHECK (', m.shadow_name)
           || snowflake_migrate_internal.portable(snowflake_migrate_internal.rename_columns(m.expression, m.former, m.present)) || ')'
           || CASE WHEN m.connoinherit THEN ' NO INHERIT' ELSE '' END
           || CASE WHEN m.is_enforced THEN ' NOT VALID' ELSE ' NOT ENFORCED' END
    FROM narrow_check AS m
    LEFT JOIN pg_constraint AS n ON n.contype = 'c' AND n.conrelid = m.conrelid AND n.conname = m.shadow_name
$function$;

-- The steps that add shadows: one for each table, so that it is locked only once.
CREATE FUNCTION snowflake_migrate_internal.shadow_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH shadow AS MATERIALIZED (
        SELECT s.*, snowflake_migrate_internal.name_of(s.relation) AS quoted_name, a.attstattarget,
               snowflake_migrate_internal.column_options(a.attoptions) AS options
        FROM snowflake_migrate_internal.shadows(keys) AS s
        JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attribute
        WHERE s.shadow IS NULL
    ), command (place, attribute, relation, declared_by, statement, trigger_columns) AS (
        SELECT 1, NULL::smallint, s.relation, s.relation, format(E'ALTER TABLE %s\n        %s', s.quoted_name,
            string_agg(concat_ws(E',\n        ',
                format('ADD COLUMN %I bigint', s.shadow_name),
                format(CASE WHEN s.is_required
                            THEN 'ADD CONSTRAINT %1$I CHECK (%2$I IS NOT NULL AND %2$I OPERATOR(pg_catalog.=) %3$I) NOT VALID'
                            ELSE 'ADD CONSTRAINT %1$I CHECK (%2$I IS NOT DISTINCT FROM %3$I) NOT VALID' END,
                       s.check_name, s.shadow_name, s.narrow)), E',\n        ' ORDER BY s.attribute)
            || coalesce((SELECT string_agg(E',\n        ' || k.definition, '' ORDER BY k.name)
                         FROM snowflake_migrate_internal.shadow_checks(keys) AS k
                         WHERE k.relation = s.relation AND k.shadow IS NULL), '')), NULL::name[]
        FROM shadow AS s
        WHERE s.relation = s.declared_by
        GROUP BY s.relation, s.quoted_name
      UNION ALL
        SELECT 1, NULL, s.relation, s.declared_by, (
            SELECT format('ALTER TABLE %s ', s.quoted_name) || string_agg(k.definition, ', ' ORDER BY k.name)
            FROM snowflake_migrate_internal.shadow_checks(keys) AS k WHERE k.relation = s.relation AND k.shadow IS NULL), NULL
        FROM (SELECT DISTINCT p.relation, p.declared_by, p.quoted_name FROM shadow AS p WHERE p.relation <> p.declared_by) AS s
      UNION ALL
        SELECT c.place, s.attribute, s.relation, s.declared_by, c.statement, CASE c.place WHEN 4 THEN ARRAY[s.narrow, s.shadow_name, s.trigger_name] END
        FROM shadow AS s
        CROSS JOIN LATERAL (VALUES
            (2, CASE WHEN s.attstattarget >= 0
                     THEN format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS %s', s.quoted_name, s.shadow_name, s.attstattarget) END),
            (3, CASE WHEN s.options IS NOT NULL
                     THEN format('ALTER TABLE %s ALTER COLUMN %I SET (%s)', s.quoted_name, s.shadow_name,
                                 array_to_string(s.options, ', ')) END),
            (4, format(E'CREATE TRIGGER %I BEFORE INSERT OR UPDATE ON %s\n        '
                       'FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.shadow(%L, %L)',
                       s.trigger_name, s.quoted_name, s.narrow, s.shadow_name)),
            (5, format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', s.quoted_name, s.trigger_name))) AS c (place, statement)
        WHERE s.relation = s.declared_by OR c.place < 4
    ), altering (relation, commands) AS (
        SELECT c.declared_by, array_agg(snowflake_migrate_internal.command(
                                            CASE WHEN c.trigger_columns IS NULL THEN text 'alter' ELSE 'shadow trigger' END,
                                            c.relation, c.statement, c.trigger_columns)
                                        ORDER BY c.relation <> c.declared_by, c.relation::text, c.attribute NULLS FIRST, c.place)
        FROM command AS c WHERE c.statement IS NOT NULL GROUP BY c.declared_by
    )
    SELECT snowflake_migrate_internal.step(text 'shadow', s.relation, text 'ACCESS EXCLUSIVE',
        text 'adds shadow columns to %s',
        format('a bigint column beside %s, and the trigger that keeps it up to date, also for replicated rows. '
               'Holds the lock for a moment, after short attempts to acquire it',
               string_agg(quote_ident(s.narrow), ', ' ORDER BY s.attribute))
        || coalesce('. Published by ' || snowflake_migrate_internal.publications(s.relation, min(s.narrow::text)::name)
                    || format(': first at the subscribers, ALTER TABLE %s %s', s.quoted_name,
                              string_agg(format('ADD COLUMN %I bigint', s.shadow_name), ', ' ORDER BY s.attribute)), ''),
        snowflake_migrate_internal.lock_command(ARRAY[s.relation]) || c.commands
        || snowflake_migrate_internal.command(text 'call', s.relation,
               format('snowflake_migrate_internal.record_backfill(%s, %L::pg_catalog.regclass)',
                      (SELECT snowflake_migrate_internal.key_arguments(keys)), s.quoted_name)),
        names => ARRAY[s.relation::text])
    FROM shadow AS s
    JOIN altering AS c ON c.relation = s.relation
    GROUP BY s.relation, s.quoted_name, c.commands
    ORDER BY s.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, s.relation::text
$function$;

-- Drops the shadow columns, and all objects that belong to them.
CREATE FUNCTION snowflake_migrate_internal.drop_shadows(keys snowflake_migrate_internal.key[])
RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    former_timeout CONSTANT text := current_setting('lock_timeout');
    relations regclass[];
    guarded CONSTANT regclass[] := ARRAY(
        SELECT DISTINCT u.relation
        FROM snowflake_migrate_internal.guarded_triggers(ARRAY(
            SELECT s.relation FROM snowflake_migrate_internal.shadows(keys) AS s)) AS u);
    commands snowflake_migrate_internal.command[];
BEGIN
    relations := ARRAY(
        SELECT DISTINCT e.relation
        FROM snowflake_migrate_internal.shadows(keys) AS s
        CROSS JOIN LATERAL (
            SELECT s.relation
          UNION
            SELECT other.relation FROM pg_constraint AS k
            CROSS JOIN LATERAL (VALUES (k.conrelid::regclass), (k.confrelid::regclass)) AS other (relation)
            WHERE k.contype = 'f' AND (k.conrelid = s.relation AND s.shadow = ANY (k.conkey)
                                       OR k.confrelid = s.relation AND s.shadow = ANY (k.confkey))) AS e
        WHERE s.shadow IS NOT NULL AND num_nonnulls(s.trigger_oid, s.check_oid) > 0);
    IF relations || guarded = '{}' THEN
        RETURN false;
    END IF;
    PERFORM snowflake_migrate_internal.lock(relations || guarded, text 'ACCESS EXCLUSIVE');
    PERFORM snowflake_migrate_internal.unguard_update_triggers(g.relation) FROM unnest(guarded) AS g (relation);
    -- Dropping a column drops its indexes and constraints, but not foreign keys that reference it.
    WITH shadow AS MATERIALIZED (
        SELECT s.*, snowflake_migrate_internal.name_of(s.relation) AS quoted_name
        FROM snowflake_migrate_internal.shadows(keys) AS s
        WHERE s.shadow IS NOT NULL AND num_nonnulls(s.trigger_oid, s.check_oid) > 0
    ), statement (place, relation, text) AS (
        SELECT DISTINCT 1, k.conrelid::regclass,
               format('ALTER TABLE %s DROP CONSTRAINT %I', snowflake_migrate_internal.name_of(k.conrelid::regclass), k.conname)
        FROM shadow AS s
        JOIN pg_constraint AS k ON k.contype = 'f' AND k.conparentid = 0 AND k.confrelid = s.relation AND s.shadow = ANY (k.confkey)
      UNION ALL
        SELECT 2, s.relation, format('DROP TRIGGER %I ON %s', s.trigger_name, s.quoted_name) FROM shadow AS s
        WHERE s.trigger_oid IS NOT NULL AND s.relation = s.declared_by
      UNION ALL
        SELECT 3, s.relation, format('ALTER TABLE %s DROP COLUMN %I', s.quoted_name, s.shadow_name) FROM shadow AS s
        WHERE s.relation = s.declared_by
    )
    SELECT array_agg(snowflake_migrate_internal.command(text 'plain', s.relation, s.text) ORDER BY s.place, s.text) INTO commands
    FROM statement AS s;
    PERFORM snowflake_migrate_internal.run_all(commands);
    PERFORM snowflake_migrate_internal.end_backfill((keys[1]).target, (keys[1]).column_name);
    EXECUTE format('SET LOCAL lock_timeout = %L', former_timeout);
    RETURN true;
END
$function$;

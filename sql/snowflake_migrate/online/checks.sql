-- The steps that add and validate the CHECK constraints of shadow columns. Most of them
-- are added with the columns: see shadows.sql.
CREATE FUNCTION snowflake_migrate_internal.check_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH found AS MATERIALIZED (
        SELECT k.*, snowflake_migrate_internal.name_of(k.relation) AS quoted_name,
               EXISTS (SELECT FROM snowflake_migrate_internal.shadows(keys) AS s
                       WHERE s.relation = k.relation AND s.shadow IS NULL) AS is_to_come
        FROM snowflake_migrate_internal.shadow_checks(keys) AS k
        WHERE NOT k.is_ready
    ), planned (relation, place, step) AS (
        SELECT f.relation, 1, snowflake_migrate_internal.step(text 'check', f.relation, text 'ACCESS EXCLUSIVE',
            text 'adds check constraints to %s',
            format('the counterparts of %s. Holds the lock for a moment, after short attempts to acquire it',
                   string_agg(quote_ident(f.name), ', ' ORDER BY f.name)),
            ARRAY[snowflake_migrate_internal.lock_command(ARRAY[f.relation]),
                  snowflake_migrate_internal.command(text 'alter', f.relation,
                      format(E'ALTER TABLE %s\n        %s', f.quoted_name, string_agg(f.definition, E',\n        ' ORDER BY f.name)))],
            names => ARRAY[f.relation::text])
        FROM found AS f WHERE f.shadow IS NULL AND NOT f.is_to_come
        GROUP BY f.relation, f.quoted_name
      UNION ALL
        SELECT f.relation, 2, snowflake_migrate_internal.step(text 'validation', f.relation, text 'SHARE UPDATE EXCLUSIVE',
            text 'validates checks of %s', text 'reads the existing rows',
            ARRAY[snowflake_migrate_internal.command(text 'alter', f.relation,
                format('ALTER TABLE %s %s', f.quoted_name,
                       string_agg(format('VALIDATE CONSTRAINT %I', f.shadow_name), ', ' ORDER BY f.name)))],
            names => ARRAY[f.relation::text], work => snowflake_migrate_internal.scan_work(f.relation))
        FROM found AS f WHERE f.is_to_be_valid
        GROUP BY f.relation, f.quoted_name
    )
    SELECT p.step
    FROM planned AS p
    ORDER BY p.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, p.relation::text, p.place
$function$;

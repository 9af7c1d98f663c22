-- The statements that add and validate the CHECK constraints of shadow columns. Most
-- of them are added with the columns: see shadows.sql.

-- The statements that add and validate the CHECK constraints of shadow columns.
CREATE FUNCTION snowflake_migrate_internal.check_steps(keys snowflake_migrate_internal.key[])
RETURNS TABLE (statement text, lock_level text, in_transaction boolean, note text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH found AS MATERIALIZED (
        SELECT k.*, snowflake_migrate_internal.name_of(k.relation) AS quoted_name,
               EXISTS (SELECT FROM snowflake_migrate_internal.shadows(keys) AS s
                       WHERE s.relation = k.relation AND s.shadow IS NULL) AS is_to_come
        FROM snowflake_migrate_internal.shadow_checks(keys) AS k
        WHERE NOT k.is_ready
    ), step (relation, place, statement, lock_level, note) AS (
        SELECT f.relation, 1,
               snowflake_migrate_internal.do_block(
                   format(E'    PERFORM snowflake_migrate_internal.lock(%L::pg_catalog.regclass[], ''ACCESS EXCLUSIVE''::pg_catalog.text);\n', ARRAY[f.quoted_name])
                   || snowflake_migrate_internal.altering_line(
                          format(E'ALTER TABLE %s\n        %s', f.quoted_name, string_agg(f.definition, E',\n        ' ORDER BY f.name)))),
               'ACCESS EXCLUSIVE',
               format('adds check constraints to %s; the counterparts of %s. Holds the lock for a moment, after short attempts to acquire it',
                      f.relation, string_agg(quote_ident(f.name), ', ' ORDER BY f.name))
        FROM found AS f WHERE f.shadow IS NULL AND NOT f.is_to_come
        GROUP BY f.relation, f.quoted_name
      UNION ALL
        SELECT f.relation, 2,
               'SELECT ' || snowflake_migrate_internal.altering(
                   format('ALTER TABLE %s %s', f.quoted_name, string_agg(format('VALIDATE CONSTRAINT %I', f.shadow_name), ', ' ORDER BY f.name))),
               'SHARE UPDATE EXCLUSIVE', format('validates checks of %s; reads the existing rows', f.relation)
        FROM found AS f WHERE f.is_to_be_valid
        GROUP BY f.relation, f.quoted_name
    )
    SELECT s.statement, s.lock_level, true, s.note
    FROM step AS s
    ORDER BY s.relation IN (SELECT k.target FROM unnest(keys) AS k) DESC, s.relation::text, s.place
$function$;

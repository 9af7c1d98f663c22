-- What PostgreSQL has to rebuild with a column of another type, and cannot.

-- An expression of the catalog with other names of columns, for any search path;
-- NULL if it refers to whole rows or is no expression.
CREATE FUNCTION snowflake_migrate_internal.rename_columns(expression text, former name[], present name[]) RETURNS text
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_rename_columns_wrapper';

-- The expressions that use these columns, as the catalog has them; those of policies with sub-selects are not tried. Those that
-- partitions and child tables have from their parents are the parents'.
CREATE FUNCTION snowflake_migrate_internal.expressions(relation regclass, attributes smallint[])
RETURNS TABLE (description text, kind text, expression text, is_condition boolean) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN QUERY
        WITH dependent AS MATERIALIZED (
            SELECT DISTINCT d.classid, d.objid
            FROM pg_depend AS d
            WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = relation AND d.refobjsubid = ANY (attributes)
        ), indexed AS MATERIALIZED (
            SELECT i.*, format('index %s', i.indexrelid::regclass) AS description, 'index' AS kind
            FROM dependent AS d
            JOIN pg_index AS i ON d.classid = 'pg_class'::regclass AND i.indexrelid = d.objid AND i.indrelid = relation
            WHERE NOT i.indisexclusion AND NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid)
          UNION ALL
            -- The columns are those of the constraint, or of expressions in its index.
            SELECT i.*, format('exclusion constraint %I of %s', k.conname, relation), 'constraint'
            FROM (SELECT DISTINCT CASE WHEN d.classid = 'pg_class'::regclass THEN d.objid ELSE k.conindid END AS index
                  FROM dependent AS d
                  LEFT JOIN pg_constraint AS k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid AND k.contype = 'x'
                  WHERE d.classid = 'pg_class'::regclass OR k.oid IS NOT NULL) AS d
            JOIN pg_index AS i ON i.indexrelid = d.index AND i.indisexclusion AND i.indrelid = relation
            -- By its table, because no index of pg_constraint has the index.
            JOIN pg_constraint AS k ON k.conrelid = relation AND k.conindid = i.indexrelid AND k.contype = 'x'
            WHERE NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid)
        ), keys AS MATERIALIZED (
            SELECT i.indexrelid, i.description, i.kind, k.place, k.attribute,
                   pg_get_indexdef(i.indexrelid, k.place::integer, false) AS expression
            FROM indexed AS i
            CROSS JOIN LATERAL unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (attribute, place)
            WHERE k.place <= i.indnkeyatts
        )
        SELECT format('check constraint %I of %s', k.conname, relation), 'constraint', pg_get_expr(k.conbin, k.conrelid), true
        FROM dependent AS d
        JOIN pg_constraint AS k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid AND k.contype = 'c' AND k.coninhcount = 0
      UNION ALL
        SELECT k.description, k.kind, k.expression, false FROM keys AS k WHERE k.attribute = 0
      UNION ALL
        SELECT i.description, i.kind, pg_get_expr(i.indpred, i.indrelid), false FROM indexed AS i WHERE i.indpred IS NOT NULL
      UNION ALL
        SELECT k.description, k.kind, format('%1$s OPERATOR(%2$I.%3$s) %1$s', k.expression, n.nspname, o.oprname), false
        FROM keys AS k
        JOIN pg_constraint AS c ON c.conrelid = relation AND c.conindid = k.indexrelid AND c.contype = 'x'
        JOIN pg_operator AS o ON o.oid = c.conexclop[k.place]
        JOIN pg_namespace AS n ON n.oid = o.oprnamespace
        WHERE k.attribute = 0 OR k.attribute = ANY (attributes)
      UNION ALL
        SELECT format('policy %I of %s', p.polname, relation), 'policy', e.expression, false
        FROM dependent AS d
        JOIN pg_policy AS p ON d.classid = 'pg_policy'::regclass AND p.oid = d.objid AND p.polrelid = relation
        CROSS JOIN LATERAL (VALUES (pg_get_expr(p.polqual, p.polrelid)), (pg_get_expr(p.polwithcheck, p.polrelid))) AS e (expression)
        WHERE e.expression IS NOT NULL
      UNION ALL
        SELECT format('statistics object %I.%I', n.nspname, x.stxname), 'statistics object', e.expression, false
        FROM dependent AS d
        JOIN pg_statistic_ext AS x ON d.classid = 'pg_statistic_ext'::regclass AND x.oid = d.objid
        JOIN pg_namespace AS n ON n.oid = x.stxnamespace
        CROSS JOIN LATERAL unnest(pg_get_statisticsobjdef_expressions(x.oid)) AS e (expression);
END
$function$;

-- Why expressions do not accept bigint columns; NULL if they do, and empty if that is not known. The parser decides
-- it. No row is read, and the query is not flattened, so that no function is called
-- with constants in place of columns.
CREATE FUNCTION snowflake_migrate_internal.try_expressions(relation regclass, attributes smallint[], expressions text[])
RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    query text;
BEGIN
    SELECT format('SELECT %s FROM (SELECT %s FROM ONLY %s OFFSET 0) AS %I WHERE false',
                  (SELECT string_agg(format('(%s)', e.expression), ', ') FROM unnest(expressions) AS e (expression)),
                  string_agg(CASE WHEN a.attnum = ANY (attributes) THEN format('%1$I::pg_catalog.int8 AS %1$I', a.attname)
                                  ELSE quote_ident(a.attname) END, ', '),
                  snowflake_migrate_internal.name_of(relation),
                  (SELECT c.relname FROM pg_class AS c WHERE c.oid = relation))
    INTO query
    FROM pg_attribute AS a
    WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped;
    PERFORM snowflake_migrate_internal.query(relation, query);
    RETURN NULL;
EXCEPTION
    -- An owner who may not read the table may alter it. A policy may call what its owner may not. Others may still fail.
    WHEN insufficient_privilege THEN
        RETURN '';
    WHEN syntax_error_or_access_rule_violation THEN
        RETURN sqlerrm;
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.rebuild_obstacles(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    altered record;
    found_expression record;
    message text;
BEGIN
    -- In one query, because each call of a function in SQL from another one plans it.
    FOR altered IN
        SELECT t.relation, t.attributes, array_agg(DISTINCT e.expression) AS expressions
        FROM (SELECT f.relation, array_agg(DISTINCT f.attribute) AS attributes
              FROM snowflake_migrate_internal.linked_tree(keys) AS f
              WHERE f.is_narrow
              GROUP BY f.relation) AS t
        CROSS JOIN LATERAL snowflake_migrate_internal.expressions(t.relation, t.attributes) AS e
        -- Whole rows have another type in the query than in the table.
        WHERE snowflake_migrate_internal.rename_columns(e.expression, '{}'::name[], '{}'::name[]) IS NOT NULL
        GROUP BY t.relation, t.attributes
        ORDER BY t.relation::text
    LOOP
        CONTINUE WHEN snowflake_migrate_internal.try_expressions(altered.relation, altered.attributes, altered.expressions) IS NULL;
        FOR found_expression IN
            SELECT e.description, e.kind, e.expression
            FROM snowflake_migrate_internal.expressions(altered.relation, altered.attributes) AS e
            WHERE e.expression = ANY (altered.expressions)
            ORDER BY e.description
        LOOP
            message := snowflake_migrate_internal.try_expressions(altered.relation, altered.attributes, ARRAY[found_expression.expression]);
            RETURN QUERY SELECT altered.relation, NULL::name,
                format('%s cannot use a bigint column: %s', found_expression.description, message),
                format('Create the function or operator with bigint parameters, which accept integers too. '
                       'Then create the %s again, so that it uses that one.',
                       found_expression.kind), '55000'
                WHERE message <> '';
        END LOOP;
    END LOOP;
    RETURN QUERY
        SELECT DISTINCT f.relation, f.attname,
               format('foreign key %I of %s depends on unique index %s, which includes column %I',
                      k.conname, k.conrelid::regclass, i.indexrelid::regclass, f.attname),
               format('In one transaction: drop the foreign key, replace the index (or its constraint) by one without INCLUDE (%I), '
                      'and add the foreign key again.', f.attname),
               '55000'
        FROM snowflake_migrate_internal.linked_tree(keys) AS f
        JOIN pg_index AS i ON i.indrelid = f.relation AND i.indnatts > i.indnkeyatts
        CROSS JOIN LATERAL unnest(i.indkey::smallint[]) WITH ORDINALITY AS key (attribute, place)
        JOIN pg_constraint AS k ON k.contype = 'f' AND k.conindid = i.indexrelid AND k.conparentid = 0
        WHERE f.is_narrow AND key.attribute = f.attribute AND key.place > i.indnkeyatts;
END
$function$;

-- What the swap of an online script creates again from the statements that it carries, as a server prints it. A window keeps it.

-- The query, of relations $1 by name.
CREATE FUNCTION snowflake_migrate_internal.script_texts_query()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $query$
    WITH known AS MATERIALIZED (
        SELECT g.name, c.oid FROM unnest($1) AS g (name) JOIN pg_class AS c ON c.oid = to_regclass(g.name)
    )
    SELECT t.* FROM (
        SELECT k.name, format('index %I', c.relname), p.property, p.value
        FROM known AS k JOIN pg_index AS i ON i.indrelid = k.oid JOIN pg_class AS c ON c.oid = i.indexrelid
        CROSS JOIN LATERAL (VALUES
            ('definition', pg_get_indexdef(i.indexrelid)), ('comment', obj_description(i.indexrelid, 'pg_class')),
            ('statistics', (SELECT string_agg(format('%s %s', a.attnum, a.attstattarget), ', ' ORDER BY a.attnum)
                            FROM pg_attribute AS a WHERE a.attrelid = i.indexrelid AND a.attstattarget >= 0))) AS p (property, value)
        WHERE i.indisvalid
      UNION ALL
        SELECT k.name, format('constraint %I', o.conname), p.property, p.value
        FROM known AS k JOIN pg_constraint AS o ON o.conrelid = k.oid AND o.contype IN ('c', 'p', 'u', 'f', 'x')
        CROSS JOIN LATERAL (VALUES ('definition', CASE o.contype WHEN 'f' THEN pg_get_constraintdef(o.oid) END),
                                   ('comment', obj_description(o.oid, 'pg_constraint'))) AS p (property, value)
      UNION ALL
        SELECT k.name, format('column %I', a.attname), p.property, p.value
        FROM known AS k JOIN pg_attribute AS a ON a.attrelid = k.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef AS d ON d.adrelid = k.oid AND d.adnum = a.attnum
        CROSS JOIN LATERAL (VALUES
            ('default', pg_get_expr(d.adbin, d.adrelid)), ('comment', col_description(k.oid, a.attnum)),
            ('statistics', CASE WHEN a.attstattarget >= 0 THEN a.attstattarget::text END), -- Minor releases since November 2026 keep a version of the row type among them.
            ('options', (SELECT string_agg(o, ', ' ORDER BY o) FROM unnest(a.attoptions) AS o WHERE left(o, 3) <> 'pg_')),
            ('privileges', (SELECT string_agg(i.item::text, ' ' ORDER BY i.item::text) FROM unnest(a.attacl) AS i (item))))
            AS p (property, value)
      UNION ALL
        SELECT k.name, format('statistics %I', x.stxname), p.property, p.value
        FROM known AS k JOIN pg_statistic_ext AS x ON x.stxrelid = k.oid
        CROSS JOIN LATERAL (VALUES ('definition', pg_get_statisticsobjdef(x.oid)), ('owner', pg_get_userbyid(x.stxowner)),
                                   ('comment', obj_description(x.oid, 'pg_statistic_ext'))) AS p (property, value)
    ) AS t (object, part, property, value)
    WHERE t.value IS NOT NULL
$query$;

CREATE FUNCTION snowflake_migrate_internal.script_texts(relations text[])
RETURNS TABLE (object text, part text, property text, value text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off
AS $function$
BEGIN
    RETURN QUERY EXECUTE snowflake_migrate_internal.script_texts_query() || ' ORDER BY 1, 2, 3' USING relations;
END
$function$;

-- Columns that hold the IDs of a table without a foreign key, found by their names
-- and by the shape of their tables. A foreign key is found without this.

-- The words of a name: of order_id, orderId and "OrderID".
CREATE FUNCTION snowflake_migrate_internal.words(name name)
RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT regexp_split_to_array(btrim(lower(
        regexp_replace(regexp_replace(name::text, '([a-z0-9])([A-Z])', '\1_\2', 'g'), '([A-Z])([A-Z][a-z])', '\1_\2', 'g')), '_ .-'), '[_ .-]+')
$function$;

-- What the singular of a plural may be. There is no dictionary: each ending that a
-- plural can have gives a candidate, and most are no words at all. The usual form is
-- the first one.
CREATE FUNCTION snowflake_migrate_internal.singulars(word text)
RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT ARRAY(
        SELECT regexp_replace(word, e.ending, e.singular)
        FROM (VALUES (1, '^people$', 'person'), (1, '^children$', 'child'), (1, '(^|wo)men$', '\1man'), (1, '^(series|species|news)$', '\1'),
                     (2, '([^aeiou])ies$', '\1y'), (2, '(ss|sh|ch|x|zz|us|ias)es$', '\1'),
                     (3, '([^sui])s$', '\1'), (4, '(ss|us|is)$', '\1'),
                     (5, '([sz]s|zz|[oszx]|ch)es$', '\1'), (5, 'zzes$', 'z'), (5, 'ves$', 'f'), (5, 'ves$', 'fe'), (5, 'ses$', 'sis'), (5, 'xes$', 'xis'),
                     (5, 'ices$', 'ix'), (5, 'ices$', 'ex'), (5, 'a$', 'um'), (5, 'a$', 'on'), (5, 'ae$', 'a'), (5, 'i$', 'us'), (5, 'is$', 'i'), (5, 'eaux$', 'eau'))
             AS e (place, ending, singular)
        WHERE word ~ e.ending AND (word !~ '^(people|children|(wo)?men|series|species|news)$' OR e.place = 1)
        ORDER BY e.place, e.singular)
$function$;

CREATE FUNCTION snowflake_migrate.unlinked(target regclass, column_name name DEFAULT NULL)
RETURNS TABLE (kind text, object text, referencing_column name, data_type text, reason text, statement text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH key AS MATERIALIZED (
        SELECT c.oid AS relation, a.attname, a.attnum, words.words,
               snowflake_migrate_internal.words(a.attname) AS key_words
        FROM snowflake_internal.column_of(target, unlinked.column_name) AS found (attname)
        JOIN pg_class AS c ON c.oid = target
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = found.attname
        CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.words(c.relname) AS words) AS words
    ), form_of_name AS MATERIALIZED (
        SELECT key.words FROM key
      UNION
        -- The last word as a singular. Where the usual form is another table's, it is that table's.
        SELECT key.words[:cardinality(key.words) - 1] || s.word
        FROM key
        CROSS JOIN LATERAL unnest(snowflake_migrate_internal.singulars(key.words[cardinality(key.words)])) WITH ORDINALITY AS s (word, place)
        WHERE s.place = 1
           OR NOT EXISTS (
               SELECT FROM pg_class AS c
               WHERE c.relkind IN ('r', 'p', 'f') AND c.oid <> key.relation
                 AND lower(c.relname) IN (array_to_string(key.words[:cardinality(key.words) - 1] || s.word, '_'),
                                          array_to_string(key.words[:cardinality(key.words) - 1] || (s.word || 's'), '_')))
    ), linked AS MATERIALIZED (
        SELECT r.relation, r.attribute FROM key CROSS JOIN LATERAL
            snowflake_migrate_internal.linked_columns(ARRAY[(key.relation, key.attname)::snowflake_migrate_internal.key]) AS r
    ), form AS MATERIALIZED (
        -- What follows or precedes the table's name: id, or the key's own name.
        SELECT DISTINCT array_to_string(f.words || k.words, '_') AS behind, array_to_string(k.words || f.words, '_') AS ahead
        FROM key
        CROSS JOIN form_of_name AS f
        CROSS JOIN LATERAL (SELECT ARRAY['id'] UNION SELECT key.key_words) AS k (words)
      UNION
        -- A key that has the table's name in it, as order_id of orders.
        SELECT array_to_string(key.key_words, '_'), NULL FROM key WHERE key.key_words <> ARRAY['id']
    ), linked_name AS MATERIALIZED (
        -- The names of the columns with a foreign key, unless other columns of that name
        -- reference other tables.
        SELECT DISTINCT a.attname
        FROM linked AS l
        JOIN pg_attribute AS a ON a.attrelid = l.relation AND a.attnum = l.attribute
        CROSS JOIN key
        WHERE a.attname <> key.attname
          AND array_to_string(snowflake_migrate_internal.words(a.attname), '_') !~ '^(id|parent|previous|prev|next|root|original|source|copied_from|replaces|replaced_by)(_id)?$'
          AND NOT EXISTS (
              SELECT FROM pg_constraint AS k
              JOIN pg_attribute AS o ON o.attrelid = k.conrelid AND k.conkey = ARRAY[o.attnum] AND o.attname = a.attname
              WHERE k.contype = 'f' AND NOT EXISTS (SELECT FROM linked AS m WHERE m.relation = o.attrelid AND m.attribute = o.attnum))
    ), candidate AS MATERIALIZED (
        SELECT c.oid AS relation, c.relname, c.relkind, n.nspname, a.attname, a.attnum, a.atttypid, t.typtype,
               format_type(a.atttypid, a.atttypmod) AS type_name,
               t.typelem <> 0 AND t.typlen = -1 AS is_array,
               array_to_string(snowflake_migrate_internal.words(a.attname), '_') AS spelled
        FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attinhcount = 0
        JOIN pg_type AS t ON t.oid = a.atttypid
        LEFT JOIN pg_type AS base ON base.oid = t.typbasetype
        WHERE c.relkind IN ('r', 'p', 'f', 'c')
          AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'snowflake_internal', 'snowflake_migrate_internal') AND n.nspname !~ '^pg_(toast|temp)'
          AND (a.atttypid IN ('int2'::regtype, 'int4'::regtype, '_int2'::regtype, '_int4'::regtype)
               OR base.oid IN ('int2'::regtype, 'int4'::regtype, '_int2'::regtype, '_int4'::regtype))
          AND NOT EXISTS (SELECT FROM linked AS l WHERE l.relation = c.oid AND l.attribute = a.attnum)
          -- A foreign key to another table says what the column holds.
          AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.conkey = ARRAY[a.attnum])
          -- A column with a sequence is a key of its own.
          AND a.attidentity = ''
          AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.sequence_columns AS s WHERE s.relation = c.oid AND s.attribute = a.attnum)
    ), found AS (
        SELECT m.*, CASE WHEN m.relkind = 'f' THEN 'foreign table' WHEN m.relkind = 'c' THEN 'composite type'
                         WHEN m.is_array THEN 'array' ELSE 'column' END AS kind,
               format('the name is that of a reference to %s', key.relation::regclass) AS reason
        FROM candidate AS m
        CROSS JOIN key
        WHERE EXISTS (
            SELECT FROM form AS f
            CROSS JOIN LATERAL (SELECT CASE WHEN m.is_array THEN regexp_replace(m.spelled, 's$', '') ELSE m.spelled END) AS name (spelled)
            WHERE name.spelled IN (f.behind, f.ahead)
               OR starts_with(reverse(name.spelled), reverse('_' || f.behind))
               OR replace(name.spelled, '_', '') IN (replace(f.behind, '_', ''), replace(f.ahead, '_', '')))
          AND m.relation <> key.relation
           OR m.relation = key.relation AND m.attnum <> key.attnum
              AND m.spelled ~ '^(parent|previous|prev|next|root|original|source|copied_from|replaces|replaced_by)(_id)?$'
      UNION ALL
        SELECT m.*, CASE m.relkind WHEN 'f' THEN 'foreign table' WHEN 'c' THEN 'composite type' ELSE 'column' END,
               format('columns of this name reference %s elsewhere', key.relation::regclass)
        FROM candidate AS m
        JOIN linked_name AS l ON l.attname = m.attname
        CROSS JOIN key
        WHERE NOT m.is_array
      UNION ALL
        SELECT m.*, 'polymorphic',
               format('%I names the table that the ID is of, which may be %s', type.attname, key.relation::regclass)
        FROM candidate AS m
        CROSS JOIN key
        JOIN pg_attribute AS type ON type.attrelid = m.relation AND type.attnum > 0 AND NOT type.attisdropped
        JOIN pg_type AS t ON t.oid = type.atttypid AND (t.typcategory = 'S' OR t.typtype = 'e')
        WHERE NOT m.is_array AND m.spelled ~ '_id$'
          AND array_to_string(snowflake_migrate_internal.words(type.attname), '_') = regexp_replace(m.spelled, '_id$', '_type')
      UNION ALL
        SELECT m.*, 'history',
               format('%s has the columns of %s', m.relation::regclass, key.relation::regclass)
        FROM candidate AS m
        CROSS JOIN key
        WHERE m.attname = key.attname AND m.relation <> key.relation AND m.relkind IN ('r', 'p', 'f') AND NOT m.is_array
          -- The name says so, or it has all columns of the table, with their types.
          AND (m.relname::text ~* '(^|_)(history|histories|hist|audit|audits|archive|archives|archived|log|logs|version|versions|deleted|old|backup|bak|copy)(_|$)'
               AND EXISTS (SELECT FROM form_of_name AS f
                           WHERE strpos(array_to_string(snowflake_migrate_internal.words(m.relname), '_'), array_to_string(f.words, '_')) > 0)
               OR (SELECT count(*) FROM pg_attribute AS own WHERE own.attrelid = key.relation AND own.attnum > 0 AND NOT own.attisdropped) >= 3
                  AND NOT EXISTS (
                      SELECT FROM pg_attribute AS own
                      WHERE own.attrelid = key.relation AND own.attnum > 0 AND NOT own.attisdropped
                        AND NOT EXISTS (SELECT FROM pg_attribute AS copy
                                        WHERE copy.attrelid = m.relation AND copy.attname = own.attname AND NOT copy.attisdropped
                                          AND (copy.atttypid = own.atttypid OR own.attnum = key.attnum))))
          AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.table_tree(key.relation::regclass, key.attname) AS f WHERE f.relation = m.relation)
    ), first_found AS (
        SELECT DISTINCT ON (f.relation, f.attnum) f.*
        FROM found AS f
        ORDER BY f.relation, f.attnum, f.kind = 'polymorphic', f.reason DESC
    ), parameter AS (
        SELECT p.oid, p.proargnames[a.place] AS name, format_type(a.type, NULL) AS type_name, NULL::text AS trigger_reason
        FROM pg_proc AS p
        JOIN pg_namespace AS n ON n.oid = p.pronamespace
        CROSS JOIN LATERAL unnest(p.proargtypes) WITH ORDINALITY AS a (type, place)
        WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'snowflake_internal', 'snowflake_migrate_internal') AND n.nspname !~ '^pg_(toast|temp)'
          AND a.type IN ('int2'::regtype, 'int4'::regtype, '_int2'::regtype, '_int4'::regtype)
          -- With OUT parameters, the places differ.
          AND p.proargnames IS NOT NULL AND (p.proallargtypes IS NULL OR p.proargmodes[1:p.pronargs] = array_fill('i'::"char", ARRAY[p.pronargs::integer]))
          AND EXISTS (
              SELECT FROM form AS f
              CROSS JOIN LATERAL (
                  SELECT regexp_replace(array_to_string(snowflake_migrate_internal.words(p.proargnames[a.place]::name), '_'),
                                        '^(p|in|i|arg|param|the|v)_', '')) AS name (spelled)
              WHERE CASE WHEN format_type(a.type, NULL) ~ '\[\]$' THEN regexp_replace(name.spelled, 's$', '') ELSE name.spelled END IN (f.behind, f.ahead))
          AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    )
    SELECT f.kind, f.relation::regclass::text, f.attname, f.type_name, f.reason,
           -- A domain has its own type, and a foreign table's rows are elsewhere.
           CASE WHEN f.typtype <> 'd' THEN
               format('ALTER %s %s ALTER %s %I TYPE bigint%s',
                      CASE f.relkind WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END,
                      snowflake_migrate_internal.name_of(f.relation::regclass),
                      CASE f.relkind WHEN 'c' THEN 'ATTRIBUTE' ELSE 'COLUMN' END,
                      f.attname, CASE WHEN f.is_array THEN '[]' ELSE '' END) END
    FROM first_found AS f
  UNION ALL
    SELECT 'function', p.oid::regprocedure::text, p.name::name, p.type_name,
           format('a parameter has the name of a reference to %s: create the function with bigint, then drop this one', key.relation::regclass), NULL
    FROM parameter AS p CROSS JOIN key
  UNION ALL
    SELECT 'function', regexp_replace(f.object, '^function (.*),$', '\1'), f.column_name, NULL, f.finding || '. ' || f.remedy, NULL
    FROM key
    CROSS JOIN LATERAL snowflake_migrate_internal.findings(ARRAY[(key.relation, key.attname)::snowflake_migrate_internal.key], false) AS f
    WHERE f.stage = 'type'
    ORDER BY 1, 2, 3
$function$;
COMMENT ON FUNCTION snowflake_migrate.unlinked(target regclass, column_name name) IS
    'Returns the columns and parameters that seem to hold the IDs of a column without a foreign key, with statements that widen them';

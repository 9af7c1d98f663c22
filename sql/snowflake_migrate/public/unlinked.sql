-- Columns that hold the IDs of a table without a foreign key, found by their names
-- and by the shape of their tables. A foreign key is found without this.

-- The words of a name: of order_id, orderId and "OrderID".
CREATE FUNCTION snowflake_migrate_internal.words(name name)
RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT regexp_split_to_array(btrim(lower(
        regexp_replace(regexp_replace(name::text, '([a-z0-9])([A-Z])', E'\\1_\\2', 'g'), '([A-Z])([A-Z][a-z])', E'\\1_\\2', 'g')),
        '_ .-'), '[_ .-]+')
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
        FROM (VALUES (1, '^people$', 'person'), (1, '^children$', 'child'), (1, '(^|wo)men$', E'\\1man'),
                     (1, '^(series|species|news)$', E'\\1'),
                     (2, '([^aeiou])ies$', E'\\1y'), (2, '(ss|sh|ch|x|zz|us|ias)es$', E'\\1'),
                     (3, '([^sui])s$', E'\\1'), (4, '(ss|us|is)$', E'\\1'),
                     (5, '([sz]s|zz|[oszx]|ch)es$', E'\\1'), (5, 'zzes$', 'z'), (5, 'ves$', 'f'), (5, 'ves$', 'fe'),
                     (5, 'ses$', 'sis'), (5, 'xes$', 'xis'), (5, 'ices$', 'ix'), (5, 'ices$', 'ex'), (5, 'a$', 'um'), (5, 'a$', 'on'),
                     (5, 'ae$', 'a'), (5, 'i$', 'us'), (5, 'is$', 'i'), (5, 'eaux$', 'eau'))
             AS e (place, ending, singular)
        WHERE word ~ e.ending AND (word !~ '^(people|children|(wo)?men|series|species|news)$' OR e.place = 1)
        ORDER BY e.place, e.singular)
$function$;

-- The names of one row of a table, as words: the table's own, and with its last word as a
-- singular. Where the usual form of a less usual singular is another table's, it is that
-- table's.
CREATE FUNCTION snowflake_migrate_internal.names_of_row(target regclass)
RETURNS TABLE (words text[]) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH name AS (
        SELECT words.words, words.words[:cardinality(words.words) - 1] AS first_words, words.words[cardinality(words.words)] AS last_word
        FROM pg_class AS c
        CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.words(c.relname) AS words) AS words
        WHERE c.oid = target
    )
    SELECT name.words FROM name
  UNION
    SELECT name.first_words || s.word
    FROM name
    CROSS JOIN LATERAL unnest(snowflake_migrate_internal.singulars(name.last_word)) WITH ORDINALITY AS s (word, place)
    WHERE s.place = 1
       OR NOT EXISTS (
           SELECT FROM pg_class AS c
           WHERE c.relkind IN ('r', 'p', 'f') AND c.oid <> target
             AND lower(c.relname) IN (array_to_string(name.first_words || s.word, '_'),
                                      array_to_string(name.first_words || (s.word || 's'), '_')))
$function$;

-- What follows or precedes the name of a table in that of a reference to it: id, or the
-- key's own name.
CREATE FUNCTION snowflake_migrate_internal.reference_names(target regclass, column_name name)
RETURNS TABLE (behind text, ahead text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH key AS (SELECT snowflake_migrate_internal.words(reference_names.column_name) AS words)
    SELECT DISTINCT array_to_string(f.words || k.words, '_'), array_to_string(k.words || f.words, '_')
    FROM key
    CROSS JOIN LATERAL snowflake_migrate_internal.names_of_row(target) AS f
    CROSS JOIN LATERAL (SELECT ARRAY['id'] UNION SELECT key.words) AS k (words)
  UNION
    -- A key that has the table's name in it, as order_id of orders.
    SELECT array_to_string(key.words, '_'), NULL FROM key WHERE key.words <> ARRAY['id']
$function$;

-- A column that may hold IDs: of a narrow type, and neither a foreign key nor a sequence says
-- what it holds. spelled has the words of its name.
CREATE TYPE snowflake_migrate_internal.candidate AS (
    relation oid, relname name, relkind "char", attname name, attnum smallint, type_name text, typtype "char", is_array boolean,
    spelled text
);
COMMENT ON TYPE snowflake_migrate_internal.candidate IS 'A column that may hold the IDs of a key without a foreign key';

-- They are read once for all keys.
CREATE FUNCTION snowflake_migrate_internal.candidates(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.candidate LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH linked AS MATERIALIZED (
        SELECT r.relation, r.attribute FROM snowflake_migrate_internal.linked_columns(keys) AS r
    ), sequenced AS MATERIALIZED (
        SELECT s.relation, s.attribute FROM snowflake_migrate_internal.sequence_columns() AS s
    )
    SELECT c.oid, c.relname, c.relkind, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod), t.typtype,
           t.typelem <> 0 AND t.typlen = -1, array_to_string(snowflake_migrate_internal.words(a.attname), '_')
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attinhcount = 0
    JOIN pg_type AS t ON t.oid = a.atttypid
    LEFT JOIN pg_type AS base ON base.oid = t.typbasetype
    WHERE c.relkind IN ('r', 'p', 'f', 'c')
      AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'snowflake_internal', 'snowflake_migrate_internal')
      AND n.nspname !~ '^pg_(toast|temp)'
      AND (a.atttypid IN ('int2'::regtype, 'int4'::regtype, '_int2'::regtype, '_int4'::regtype)
           OR base.oid IN ('int2'::regtype, 'int4'::regtype, '_int2'::regtype, '_int4'::regtype))
      AND NOT EXISTS (SELECT FROM linked AS l WHERE l.relation = c.oid AND l.attribute = a.attnum)
      -- A foreign key to another table says what the column holds.
      AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.conkey = ARRAY[a.attnum])
      -- A column with a sequence is a key of its own.
      AND a.attidentity = ''
      AND NOT EXISTS (SELECT FROM sequenced AS s WHERE s.relation = c.oid AND s.attribute = a.attnum)
$function$;

-- Those whose names are references to the table of a key. The whole name, its end, and the
-- name without separators are texts to compare by hashing.
CREATE FUNCTION snowflake_migrate_internal.named_references(
    keys snowflake_migrate_internal.key[], candidates snowflake_migrate_internal.candidate[]
) RETURNS TABLE (target regclass, target_column name, relation oid, attnum smallint) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH form AS MATERIALIZED (
        SELECT DISTINCT k.target, k.column_name, t.text
        FROM unnest(keys) AS k
        CROSS JOIN LATERAL snowflake_migrate_internal.reference_names(k.target, k.column_name) AS f
        CROSS JOIN LATERAL (VALUES ('=' || f.behind), ('=' || f.ahead), ('_' || f.behind),
                                   ('~' || replace(f.behind, '_', '')), ('~' || replace(f.ahead, '_', ''))) AS t (text)
        WHERE t.text IS NOT NULL
    ), spelling AS MATERIALIZED (
        SELECT m.relation, m.attnum, t.text
        FROM unnest(candidates) AS m
        CROSS JOIN LATERAL (SELECT CASE WHEN m.is_array THEN regexp_replace(m.spelled, 's$', '') ELSE m.spelled END) AS name (spelled)
        CROSS JOIN LATERAL (
            SELECT '=' || name.spelled
          UNION ALL
            SELECT '~' || replace(name.spelled, '_', '')
          UNION ALL
            SELECT '_' || array_to_string(part.words[i:], '_')
            FROM (SELECT string_to_array(name.spelled, '_')) AS part (words)
            CROSS JOIN LATERAL generate_series(2, cardinality(part.words)) AS i
        ) AS t (text)
    )
    SELECT f.target, f.column_name, s.relation, s.attnum
    FROM spelling AS s JOIN form AS f ON f.text = s.text AND f.target <> s.relation
  UNION
    SELECT k.target, k.column_name, m.relation, m.attnum
    FROM unnest(candidates) AS m JOIN unnest(keys) AS k ON k.target = m.relation AND k.column_name <> m.attname
    WHERE m.spelled ~ '^(parent|previous|prev|next|root|original|source|copied_from|replaces|replaced_by)(_id)?$'
$function$;

-- The names of columns with a foreign key to a key, unless other columns of that name
-- reference other tables.
CREATE FUNCTION snowflake_migrate_internal.linked_names(keys snowflake_migrate_internal.key[])
RETURNS TABLE (target regclass, target_column name, attname name) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT DISTINCT key.target, key.column_name, a.attname
    FROM unnest(keys) AS key
    JOIN pg_attribute AS own ON own.attrelid = key.target AND own.attname = key.column_name
    JOIN pg_constraint AS l ON l.contype = 'f' AND l.confrelid = key.target AND l.confkey = ARRAY[own.attnum]
    JOIN pg_attribute AS a ON a.attrelid = l.conrelid AND a.attnum = l.conkey[1]
    WHERE a.attname <> key.column_name
      AND array_to_string(snowflake_migrate_internal.words(a.attname), '_')
          !~ '^(id|parent|previous|prev|next|root|original|source|copied_from|replaces|replaced_by)(_id)?$'
      AND NOT EXISTS (
          SELECT FROM pg_constraint AS k
          JOIN pg_attribute AS o ON o.attrelid = k.conrelid AND k.conkey = ARRAY[o.attnum] AND o.attname = a.attname
          WHERE k.contype = 'f' AND (k.confrelid, k.confkey) <> (key.target, ARRAY[own.attnum]))
$function$;

-- Those in tables that have the rows of a key's table, too. The name of the table says so, or
-- it has all columns of the key's table, with their types.
CREATE FUNCTION snowflake_migrate_internal.history_columns(
    keys snowflake_migrate_internal.key[], candidates snowflake_migrate_internal.candidate[]
) RETURNS TABLE (target regclass, target_column name, relation oid, attnum smallint) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH key AS MATERIALIZED (
        SELECT k.target, k.column_name,
               ARRAY(SELECT array_to_string(f.words, '_') FROM snowflake_migrate_internal.names_of_row(k.target) AS f) AS names
        FROM unnest(keys) AS k
    )
    SELECT key.target, key.column_name, m.relation, m.attnum
    FROM unnest(candidates) AS m
    JOIN key ON m.attname = key.column_name AND m.relation <> key.target
    WHERE m.relkind IN ('r', 'p', 'f') AND NOT m.is_array
      AND (m.relname::text ~* ('(^|_)(history|histories|hist|audit|audits|archive|archives|archived|log|logs|version|versions|'
                               'deleted|old|backup|bak|copy)(_|$)')
           AND EXISTS (SELECT FROM unnest(key.names) AS f (name)
                       WHERE strpos(array_to_string(snowflake_migrate_internal.words(m.relname), '_'), f.name) > 0)
           OR (SELECT count(*) FROM pg_attribute AS own WHERE own.attrelid = key.target AND own.attnum > 0 AND NOT own.attisdropped) >= 3
              AND NOT EXISTS (
                  SELECT FROM pg_attribute AS own
                  WHERE own.attrelid = key.target AND own.attnum > 0 AND NOT own.attisdropped
                    AND NOT EXISTS (SELECT FROM pg_attribute AS copy
                                    WHERE copy.attrelid = m.relation AND copy.attname = own.attname AND NOT copy.attisdropped
                                      AND (copy.atttypid = own.atttypid OR own.attname = key.column_name))))
      AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.table_tree(key.target, key.column_name) AS f WHERE f.relation = m.relation)
$function$;

-- The columns that seem to hold the IDs of these keys without a foreign key.
CREATE FUNCTION snowflake_migrate_internal.unlinked_columns(keys snowflake_migrate_internal.key[])
RETURNS TABLE (
    target regclass, target_column name, kind text, relation oid, relkind "char", attname name, type_name text, typtype "char",
    is_array boolean, reason text
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH given AS MATERIALIZED (
        SELECT ARRAY(SELECT c FROM snowflake_migrate_internal.candidates(keys) AS c) AS candidates
    ), candidate AS MATERIALIZED (
        SELECT c.* FROM given CROSS JOIN LATERAL unnest(given.candidates) AS c
    ), paired AS MATERIALIZED (
        SELECT m.relation, m.attnum, min(type.attname::text)::name AS type_name
        FROM candidate AS m
        JOIN pg_attribute AS type ON type.attrelid = m.relation AND type.attnum > 0 AND NOT type.attisdropped
        JOIN pg_type AS t ON t.oid = type.atttypid AND (t.typcategory = 'S' OR t.typtype = 'e')
        WHERE NOT m.is_array AND m.spelled ~ '_id$'
          AND array_to_string(snowflake_migrate_internal.words(type.attname), '_') = regexp_replace(m.spelled, '_id$', '_type')
        GROUP BY m.relation, m.attnum
    ), found (target, target_column, relation, attnum, kind, reason) AS (
        SELECT n.target, n.target_column, n.relation, n.attnum, NULL, format('the name is that of a reference to %s', n.target)
        FROM given CROSS JOIN LATERAL snowflake_migrate_internal.named_references(keys, given.candidates) AS n
      UNION ALL
        SELECT l.target, l.target_column, m.relation, m.attnum, NULL, format('columns of this name reference %s elsewhere', l.target)
        FROM snowflake_migrate_internal.linked_names(keys) AS l
        JOIN candidate AS m ON m.attname = l.attname AND NOT m.is_array AND m.relation <> l.target
      UNION ALL
        SELECT k.target, k.column_name, p.relation, p.attnum, 'polymorphic',
               format('%I names the table that the ID is of, which may be %s', p.type_name, k.target)
        FROM paired AS p CROSS JOIN unnest(keys) AS k
      UNION ALL
        SELECT h.target, h.target_column, h.relation, h.attnum, 'history',
               format('%s has the columns of %s', h.relation::regclass, h.target)
        FROM given CROSS JOIN LATERAL snowflake_migrate_internal.history_columns(keys, given.candidates) AS h
    )
    SELECT DISTINCT ON (f.target, f.target_column, m.relation, m.attnum)
           f.target, f.target_column,
           coalesce(f.kind, CASE WHEN m.relkind = 'f' THEN 'foreign table' WHEN m.relkind = 'c' THEN 'composite type'
                                 WHEN m.is_array THEN 'array' ELSE 'column' END),
           m.relation, m.relkind, m.attname, m.type_name, m.typtype, m.is_array, f.reason
    FROM found AS f
    JOIN candidate AS m ON m.relation = f.relation AND m.attnum = f.attnum
    ORDER BY f.target, f.target_column, m.relation, m.attnum, coalesce(f.kind = 'polymorphic', false), f.reason DESC
$function$;

CREATE FUNCTION snowflake_migrate.unlinked(target regclass, column_name name DEFAULT NULL)
RETURNS TABLE (kind text, object text, referencing_column name, data_type text, reason text, statement text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH key AS MATERIALIZED (
        SELECT c.oid AS relation, a.attname
        FROM snowflake_internal.column_of(target, unlinked.column_name) AS found (attname)
        JOIN pg_class AS c ON c.oid = target
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = found.attname
    ), form AS MATERIALIZED (
        SELECT f.behind, f.ahead
        FROM key CROSS JOIN LATERAL snowflake_migrate_internal.reference_names(key.relation::regclass, key.attname) AS f
    ), parameter AS (
        SELECT p.oid, p.proargnames[a.place] AS name, format_type(a.type, NULL) AS type_name
        FROM pg_proc AS p
        JOIN pg_namespace AS n ON n.oid = p.pronamespace
        CROSS JOIN LATERAL unnest(p.proargtypes) WITH ORDINALITY AS a (type, place)
        WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'snowflake_internal', 'snowflake_migrate_internal')
          AND n.nspname !~ '^pg_(toast|temp)'
          AND a.type IN ('int2'::regtype, 'int4'::regtype, '_int2'::regtype, '_int4'::regtype)
          -- With OUT parameters, the places differ.
          AND p.proargnames IS NOT NULL
          AND (p.proallargtypes IS NULL OR p.proargmodes[1:p.pronargs] = array_fill('i'::"char", ARRAY[p.pronargs::integer]))
          AND EXISTS (
              SELECT FROM form AS f
              CROSS JOIN LATERAL (
                  SELECT regexp_replace(array_to_string(snowflake_migrate_internal.words(p.proargnames[a.place]::name), '_'),
                                        '^(p|in|i|arg|param|the|v)_', '')) AS name (spelled)
              WHERE CASE WHEN format_type(a.type, NULL) ~ E'\\[\\]$' THEN regexp_replace(name.spelled, 's$', '') ELSE name.spelled END
                    IN (f.behind, f.ahead))
          AND p.oid NOT IN (SELECT e.oid FROM snowflake_migrate_internal.functions_of_extensions() AS e (oid))
    )
    SELECT f.kind, f.relation::regclass::text, f.attname, f.type_name, f.reason,
           -- A domain has its own type, and a foreign table's rows are elsewhere.
           CASE WHEN f.typtype <> 'd' THEN
               format('ALTER %s %s ALTER %s %I TYPE bigint%s',
                      CASE f.relkind WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END,
                      snowflake_migrate_internal.name_of(f.relation::regclass),
                      CASE f.relkind WHEN 'c' THEN 'ATTRIBUTE' ELSE 'COLUMN' END,
                      f.attname, CASE WHEN f.is_array THEN '[]' ELSE '' END) END
    FROM key
    CROSS JOIN LATERAL snowflake_migrate_internal.unlinked_columns(ARRAY[(key.relation, key.attname)::snowflake_migrate_internal.key]) AS f
  UNION ALL
    SELECT 'function', p.oid::regprocedure::text, p.name::name, p.type_name,
           format('a parameter has the name of a reference to %s: create the function with bigint, then drop this one',
                  key.relation::regclass), NULL
    FROM parameter AS p CROSS JOIN key
  UNION ALL
    SELECT 'function', regexp_replace(f.object, '^function (.*),$', E'\\1'), f.column_name, NULL, f.finding || '. ' || f.remedy, NULL
    FROM key
    CROSS JOIN LATERAL snowflake_migrate_internal.findings(ARRAY[(key.relation, key.attname)::snowflake_migrate_internal.key], false) AS f
    WHERE f.stage = 'type'
    ORDER BY 1, 2, 3
$function$;
COMMENT ON FUNCTION snowflake_migrate.unlinked(target regclass, column_name name) IS
    'Returns the columns and parameters that seem to hold the IDs of a column without a foreign key, with statements that widen them';

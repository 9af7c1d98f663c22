-- Columns that hold the IDs of a table without a foreign key, found by their names
-- and by the shape of their tables; on request also by their values (unlinked_values.sql). A
-- foreign key is found without this.

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
           coalesce(base.typelem, t.typelem) <> 0 AND t.typlen = -1, array_to_string(snowflake_migrate_internal.words(a.attname), '_')
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attinhcount = 0
    JOIN pg_type AS t ON t.oid = a.atttypid
    LEFT JOIN pg_type AS base ON base.oid = t.typbasetype
    WHERE c.relkind IN ('r', 'p', 'f', 'c')
      AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'snowflake_internal', 'snowflake_migrate_internal',
                            'snowflake_partitions_internal')
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
-- name without separators are texts to compare by hashing. In a name of one word, as
-- priorjobid, the end may be that of a longer table's name, as portid is of reportid.
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
                                   ('~' || replace(f.behind, '_', '')), ('~' || replace(f.ahead, '_', '')),
                                   ('$' || CASE WHEN length(f.behind) >= 5 THEN replace(f.behind, '_', '') END)) AS t (text)
        WHERE t.text IS NOT NULL
    ), stem AS MATERIALIZED (
        SELECT lower(replace(c.relname, '_', '')) AS text FROM pg_class AS c WHERE c.relkind IN ('r', 'p', 'f')
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
          UNION ALL
            SELECT '$' || substr(name.spelled, i)
            FROM generate_series(2, length(name.spelled) - 4) AS i
            WHERE name.spelled ~ 'id$' AND strpos(name.spelled, '_') = 0
              AND NOT EXISTS (SELECT FROM stem WHERE stem.text = regexp_replace(name.spelled, 'id$', ''))
              AND NOT EXISTS (SELECT FROM stem WHERE stem.text = regexp_replace(name.spelled, 'id$', 's'))
        ) AS t (text)
    )
    SELECT f.target, f.column_name, s.relation, s.attnum
    FROM spelling AS s JOIN form AS f ON f.text = s.text AND (f.target <> s.relation OR left(s.text, 1) IN ('_', '$'))
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

-- What the column beside an ID may name: the labels of an enum, the texts in a check constraint of
-- this column alone, or else the values in statistics that the caller may read, or in rows
-- (by_value). NULL if unknown.
CREATE FUNCTION snowflake_migrate_internal.kinds_in(relation oid, attnum smallint, by_value boolean)
RETURNS text[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT coalesce(
        (SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum AS e
         WHERE e.enumtypid = snowflake_migrate_internal.base_type(a.atttypid)),
        (SELECT array_agg(replace(m.text[1], '''''', '''') ORDER BY m.place)
         FROM pg_constraint AS k
         CROSS JOIN LATERAL regexp_matches(pg_get_constraintdef(k.oid), '''((?:[^'']|'''')+)''', 'g') WITH ORDINALITY AS m (text, place)
         WHERE (k.conrelid = a.attrelid AND k.conkey = ARRAY[a.attnum] OR k.contypid = a.atttypid) AND k.contype = 'c'),
        (SELECT array_agg(DISTINCT v.kind)
         FROM pg_namespace AS n
         JOIN pg_stats AS s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
         CROSS JOIN LATERAL unnest(s.most_common_vals::text::text[] || s.histogram_bounds::text::text[]) AS v (kind)
         WHERE n.oid = c.relnamespace),
        CASE WHEN by_value AND c.relkind IN ('r', 'p') THEN snowflake_migrate_internal.kinds_of_rows(c.oid::regclass, a.attnum) END)
    FROM pg_attribute AS a
    JOIN pg_class AS c ON c.oid = a.attrelid
    WHERE a.attrelid = relation AND a.attnum = kinds_in.attnum
$function$;

-- Pairs of an ID and what names its table, as subject_id and subject_type. A pair is one of these
-- keys if a kind is the name of its table (RT::Ticket is one of tickets). A pair of which no kind
-- is known to be one of them is of the first key alone, unless all kinds are other tables.
CREATE FUNCTION snowflake_migrate_internal.pairs(
    keys snowflake_migrate_internal.key[], candidates snowflake_migrate_internal.candidate[], by_value boolean
) RETURNS TABLE (target regclass, target_column name, relation oid, attnum smallint, is_known boolean, reason text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH pair AS MATERIALIZED (
        SELECT DISTINCT ON (m.relation, m.attnum)
               m.relation, m.attnum, type.attname AS kind_column,
               snowflake_migrate_internal.kinds_in(m.relation, type.attnum, by_value) AS kinds
        FROM unnest(candidates) AS m
        JOIN pg_attribute AS type ON type.attrelid = m.relation AND type.attnum > 0 AND NOT type.attisdropped
        JOIN pg_type AS t ON t.oid = type.atttypid AND (t.typcategory = 'S' OR t.typtype = 'e')
        WHERE NOT m.is_array AND m.spelled ~ '.id$'
          AND replace(array_to_string(snowflake_migrate_internal.words(type.attname), '_'), '_', '')
              IN (SELECT regexp_replace(replace(m.spelled, '_', ''), 'id$', e.ending)
                  FROM (VALUES ('type'), ('kind'), ('class'), ('table'), ('model')) AS e (ending))
        ORDER BY m.relation, m.attnum, type.attname
    ), label AS MATERIALIZED (
        SELECT p.relation, p.attnum, l.kind,
               lower(replace(regexp_replace(l.kind, '^.*[^A-Za-z0-9_](?=.)', ''), '_', '')) AS text
        FROM pair AS p CROSS JOIN LATERAL unnest(p.kinds) AS l (kind)
    ), stem AS MATERIALIZED (
        SELECT DISTINCT e.text
        FROM pg_class AS c
        CROSS JOIN LATERAL (SELECT lower(replace(c.relname, '_', '')) AS text) AS name
        CROSS JOIN LATERAL (VALUES (name.text), (regexp_replace(name.text, 's$', '')), (regexp_replace(name.text, 'es$', '')),
                                   (regexp_replace(name.text, 'ies$', 'y'))) AS e (text)
        WHERE c.relkind IN ('r', 'p', 'f') AND EXISTS (SELECT FROM pair)
    ), of_key AS MATERIALIZED (
        SELECT l.relation, l.attnum, k.target, k.column_name, string_agg(quote_literal(l.kind), ', ' ORDER BY l.kind) AS kinds
        FROM unnest(keys) AS k
        CROSS JOIN LATERAL snowflake_migrate_internal.names_of_row(k.target) AS f
        JOIN label AS l ON l.text = array_to_string(f.words, '')
        WHERE EXISTS (SELECT FROM pair)
        GROUP BY l.relation, l.attnum, k.target, k.column_name
    )
    SELECT o.target, o.column_name, p.relation, p.attnum, true, format('it is an ID of %s where %I is %s', o.target, p.kind_column, o.kinds)
    FROM pair AS p JOIN of_key AS o ON o.relation = p.relation AND o.attnum = p.attnum
  UNION ALL
    SELECT (keys[1]).target, (keys[1]).column_name, p.relation, p.attnum, false,
           format('%I names the table that the ID is of: %s', p.kind_column,
                  coalesce(
                      (SELECT snowflake_migrate_internal.some_names(array_agg(quote_literal(v.kind))) FROM unnest(p.kinds) AS v (kind)),
                           'any, as far as is known'))
    FROM pair AS p
    WHERE NOT EXISTS (SELECT FROM of_key AS o WHERE o.relation = p.relation AND o.attnum = p.attnum)
      AND (p.kinds IS NULL OR EXISTS (SELECT FROM label AS l WHERE l.relation = p.relation AND l.attnum = p.attnum
                                        AND l.text NOT IN (SELECT stem.text FROM stem)))
$function$;

-- The columns that seem to hold the IDs of these keys without a foreign key.
CREATE FUNCTION snowflake_migrate_internal.unlinked_columns(keys snowflake_migrate_internal.key[], by_value boolean DEFAULT false)
RETURNS TABLE (
    target regclass, target_column name, kind text, relation oid, relkind "char", attname name, type_name text, typtype "char",
    is_array boolean, reason text, attnum smallint, name_says text
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH given AS MATERIALIZED (
        SELECT ARRAY(SELECT c FROM snowflake_migrate_internal.candidates(keys) AS c) AS candidates
    ), candidate AS MATERIALIZED (
        SELECT c.* FROM given CROSS JOIN LATERAL unnest(given.candidates) AS c
    ), found (target, target_column, relation, attnum, kind, reason, name_says) AS (
        SELECT n.target, n.target_column, n.relation, n.attnum, NULL, format('the name is that of a reference to %s', n.target), 'strong'
        FROM given CROSS JOIN LATERAL snowflake_migrate_internal.named_references(keys, given.candidates) AS n
      UNION ALL
        SELECT l.target, l.target_column, m.relation, m.attnum, NULL, format('columns of this name reference %s elsewhere', l.target),
               'weak'
        FROM snowflake_migrate_internal.linked_names(keys) AS l
        JOIN candidate AS m ON m.attname = l.attname AND NOT m.is_array AND m.relation <> l.target
      UNION ALL
        SELECT p.target, p.target_column, p.relation, p.attnum, 'polymorphic', p.reason, CASE WHEN p.is_known THEN 'strong' END
        FROM given CROSS JOIN LATERAL snowflake_migrate_internal.pairs(keys, given.candidates, by_value) AS p
      UNION ALL
        SELECT h.target, h.target_column, h.relation, h.attnum, 'history',
               format('%s has the columns of %s', h.relation::regclass, h.target), 'strong'
        FROM given CROSS JOIN LATERAL snowflake_migrate_internal.history_columns(keys, given.candidates) AS h
    )
    SELECT DISTINCT ON (f.target, f.target_column, m.relation, m.attnum)
           f.target, f.target_column,
           coalesce(f.kind, CASE WHEN m.relkind = 'f' THEN 'foreign table' WHEN m.relkind = 'c' THEN 'composite type'
                                 WHEN m.is_array THEN 'array' ELSE 'column' END),
           m.relation, m.relkind, m.attname, m.type_name, m.typtype, m.is_array, f.reason, m.attnum, f.name_says
    FROM found AS f
    JOIN candidate AS m ON m.relation = f.relation AND m.attnum = f.attnum
    ORDER BY f.target, f.target_column, m.relation, m.attnum, coalesce(f.kind = 'polymorphic', false), f.reason DESC
$function$;

-- A sentence about a database in which no foreign key says what columns hold; NULL if there is one, or
-- if there are few columns to look at.
CREATE FUNCTION snowflake_migrate_internal.no_foreign_keys(keys snowflake_migrate_internal.key[])
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT format('No foreign key of this database says which columns hold IDs. %s integer columns of %s tables are neither keys nor '
                  'references.', to_char(count(*), 'FM999,999'), to_char(count(DISTINCT c.relation), 'FM999,999'))
    FROM snowflake_migrate_internal.candidates(keys) AS c
    WHERE c.relkind IN ('r', 'p', 'f')
      AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.contype = 'f')
    HAVING count(DISTINCT c.relation) >= 5
$function$;

CREATE FUNCTION snowflake_migrate_internal.warn_without_foreign_keys(keys snowflake_migrate_internal.key[])
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    sentence CONSTANT text := snowflake_migrate_internal.no_foreign_keys(keys);
BEGIN
    IF sentence IS NOT NULL THEN
        RAISE WARNING 'this database has no foreign keys'
            USING DETAIL = sentence,
                  HINT = format('Compare their values with the IDs: SELECT * FROM snowflake_migrate.unlinked(%L, by_value => true).',
                                (keys[1]).target);
    END IF;
END
$function$;

-- All columns that are neither keys nor references, with what names and values say of them. The
-- name of a table itself, as queue, is a name for a reference if values do not contradict. A name
-- of a reference to another key, or values that are surely its IDs, are reasons against this one.
CREATE FUNCTION snowflake_migrate_internal.ranked_columns(key snowflake_migrate_internal.key)
RETURNS TABLE (
    kind text, relation oid, relkind "char", attname name, type_name text, typtype "char", is_array boolean,
    certainty text, reason text
) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
DECLARE
    others CONSTANT snowflake_migrate_internal.key[] := ARRAY(
        SELECT s FROM unnest(snowflake_migrate_internal.survey_keys(NULL)) AS s
        WHERE (s.target, s.column_name) <> ((key).target, (key).column_name));
    columns CONSTANT snowflake_migrate_internal.candidate[] := ARRAY(
        SELECT c FROM snowflake_migrate_internal.candidates(ARRAY[key]) AS c
        ORDER BY c.relation, c.attnum);
    numbers CONSTANT snowflake_migrate_internal.numbers[] := ARRAY(
        SELECT n FROM snowflake_migrate_internal.numbers_of(
            ARRAY(SELECT c.relation FROM unnest(columns) AS c), ARRAY(SELECT c.attnum FROM unnest(columns) AS c),
            ARRAY(SELECT c.is_array FROM unnest(columns) AS c)) AS n);
    matches CONSTANT snowflake_migrate_internal.match[] := ARRAY(
        SELECT m FROM snowflake_migrate_internal.matches((key).target, (key).column_name, numbers) AS m);
    -- Of a key without gaps, each number in its range is an ID.
    contested CONSTANT snowflake_migrate_internal.numbers[] := ARRAY(
        SELECT n FROM unnest(numbers) AS n
        JOIN unnest(matches) AS m ON m.relation = n.relation AND m.attnum = n.attnum
        CROSS JOIN LATERAL snowflake_migrate_internal.certainty(NULL, NULL, m) AS v
        WHERE v.certainty = 'likely'
        LIMIT 50);
BEGIN
    RETURN QUERY
        WITH named AS MATERIALIZED (
            SELECT u.* FROM snowflake_migrate_internal.unlinked_columns(ARRAY[key], true) AS u
        ), bare AS MATERIALIZED (
            SELECT array_to_string(f.words, '_') AS text FROM snowflake_migrate_internal.names_of_row((key).target) AS f
        ), elsewhere AS MATERIALIZED (
            SELECT n.relation, n.attnum, format('the name is that of a reference to %s', min(n.target::text)) AS reason
            FROM snowflake_migrate_internal.named_references(others, columns) AS n
            GROUP BY n.relation, n.attnum
          UNION ALL
            SELECT p.relation, p.attnum, min(p.reason)
            FROM snowflake_migrate_internal.pairs(others, columns, true) AS p WHERE p.is_known
            GROUP BY p.relation, p.attnum
          UNION ALL
            SELECT r.relation, r.attnum, format('the numbers are IDs of %s', r.target)
            FROM snowflake_migrate_internal.rivals(others, contested) AS r
        ), against AS MATERIALIZED (
            SELECT e.relation, e.attnum, min(e.reason) AS reason FROM elsewhere AS e GROUP BY e.relation, e.attnum
        ), judged AS (
            SELECT coalesce(u.kind, CASE WHEN c.relkind = 'f' THEN 'foreign table' WHEN c.is_array THEN 'array' ELSE 'column' END) AS kind,
                   c.relation, c.relkind, c.attname, c.type_name, c.typtype, c.is_array,
                   CASE WHEN u.kind = 'polymorphic' THEN CASE u.name_says WHEN 'strong' THEN 'surely' END
                        WHEN says.name IS NULL AND e.reason IS NOT NULL THEN 'not'
                        ELSE v.certainty END AS certainty,
                   coalesce(u.reason, CASE WHEN says.name = 'weak' THEN 'it has the name of the table' END, e.reason) AS reason,
                   CASE WHEN u.kind IS DISTINCT FROM 'polymorphic' THEN v.reason END AS values_reason,
                   says.name IS NULL AND m.examined > 0 AS is_by_value
            FROM unnest(columns) AS c
            LEFT JOIN named AS u ON u.relation = c.relation AND u.attnum = c.attnum
            LEFT JOIN unnest(matches) AS m ON m.relation = c.relation AND m.attnum = c.attnum
            LEFT JOIN against AS e ON e.relation = c.relation AND e.attnum = c.attnum
            CROSS JOIN LATERAL (
                SELECT coalesce(u.name_says, CASE WHEN c.spelled IN (SELECT bare.text FROM bare) THEN 'weak' END)) AS says (name)
            CROSS JOIN LATERAL snowflake_migrate_internal.certainty(says.name, u.kind, m) AS v
            WHERE c.relkind <> 'c' OR u.kind IS NOT NULL
        ), alike AS (
            -- A column of the same name, as creator, is likely the same, where its own values do not decide.
            SELECT DISTINCT j.attname FROM judged AS j WHERE j.is_by_value AND j.certainty IN ('surely', 'likely')
        )
        SELECT j.kind, j.relation, j.relkind, j.attname, j.type_name, j.typtype, j.is_array,
               coalesce(j.certainty, CASE WHEN a.attname IS NOT NULL THEN 'likely' END),
               concat_ws('; ', j.reason, CASE WHEN j.certainty IS NULL AND a.attname IS NOT NULL
                                              THEN 'the values of other columns of this name are IDs' END, j.values_reason)
        FROM judged AS j
        LEFT JOIN alike AS a ON a.attname = j.attname AND j.is_by_value;
END
$function$;

CREATE FUNCTION snowflake_migrate.unlinked(target regclass, column_name name DEFAULT NULL, by_value boolean DEFAULT false)
RETURNS TABLE (kind text, object text, referencing_column name, data_type text, certainty text, reason text, statement text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    WITH key AS MATERIALIZED (
        SELECT c.oid AS relation, a.attname
        FROM snowflake_migrate_internal.column_of(target, unlinked.column_name) AS found (attname)
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
        WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'snowflake_internal', 'snowflake_migrate_internal',
                            'snowflake_partitions_internal')
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
    ), found AS (
        SELECT f.kind, f.relation, f.relkind, f.attname, f.type_name, f.typtype, f.is_array,
               CASE f.name_says WHEN 'strong' THEN 'likely' WHEN 'weak' THEN 'likely' END AS certainty, f.reason
        FROM key
        CROSS JOIN LATERAL snowflake_migrate_internal.unlinked_columns(
            ARRAY[(key.relation, key.attname)::snowflake_migrate_internal.key]) AS f
        WHERE by_value IS NOT TRUE
      UNION ALL
        SELECT r.*
        FROM key
        CROSS JOIN LATERAL snowflake_migrate_internal.ranked_columns((key.relation, key.attname)::snowflake_migrate_internal.key) AS r
        WHERE by_value
    )
    SELECT u.*
    FROM (
        SELECT f.kind, f.relation::regclass::text, f.attname, f.type_name, f.certainty, f.reason,
               -- A domain has its own type, and a foreign table's rows are elsewhere.
               CASE WHEN f.typtype <> 'd' THEN
                   format('ALTER %s %s ALTER %s %I TYPE bigint%s',
                          CASE f.relkind WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END,
                          snowflake_migrate_internal.name_of(f.relation::regclass),
                          CASE f.relkind WHEN 'c' THEN 'ATTRIBUTE' ELSE 'COLUMN' END,
                          f.attname, CASE WHEN f.is_array THEN '[]' ELSE '' END) END
        FROM found AS f
      UNION ALL
        SELECT 'JSON key', j.relation::regclass::text, j.attname, j.type_name, j.certainty, j.reason, NULL
        FROM key
        CROSS JOIN LATERAL snowflake_migrate_internal.json_references((key.relation, key.attname)::snowflake_migrate_internal.key) AS j
        WHERE by_value
      UNION ALL
        SELECT 'function', p.oid::regprocedure::text, p.name::name, p.type_name, 'likely',
               format('a parameter has the name of a reference to %s: create the function with bigint, then drop this one',
                      key.relation::regclass), NULL
        FROM parameter AS p CROSS JOIN key
      UNION ALL
        SELECT 'function', snowflake_migrate_internal.function_of_trigger(f.function, f.trigger), f.column_name, NULL, 'likely',
               f.finding || '. ' || f.remedy, NULL
        FROM key
        CROSS JOIN LATERAL snowflake_migrate_internal.findings(
            ARRAY[(key.relation, key.attname)::snowflake_migrate_internal.key], false) AS f
        -- Without a column, it is about rows.
        WHERE f.stage = 'type' AND f.column_name IS NOT NULL AND f.function IS NOT NULL
    ) AS u (kind, object, referencing_column, data_type, certainty, reason, statement)
    ORDER BY array_position(ARRAY['surely', 'likely', NULL, 'not'], u.certainty), u.kind, u.object, u.referencing_column
$function$;
COMMENT ON FUNCTION snowflake_migrate.unlinked(target regclass, column_name name, by_value boolean) IS
    'Returns the columns and parameters that seem to hold the IDs of a column without a foreign key, with statements that widen them';

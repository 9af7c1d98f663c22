-- Widening the sequences of columns that keep them.

-- The statement that lets a sequence go on where a type of its column ended; NULL if it
-- goes on as it is. Bounds of its own stay.
CREATE FUNCTION snowflake_migrate_internal.sequence_widening(sequence regclass)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat('ALTER SEQUENCE ', snowflake_migrate_internal.name_of(sequence), ' AS bigint',
                  CASE WHEN is_limited THEN CASE WHEN s.seqincrement > 0 THEN ' NO MAXVALUE' ELSE ' NO MINVALUE' END END)
    FROM pg_sequence AS s
    CROSS JOIN LATERAL (SELECT CASE WHEN s.seqincrement > 0 THEN s.seqmax IN (32767, 2147483647)
                                    ELSE s.seqmin IN (-32768, -2147483648) END) AS e (is_limited)
    WHERE s.seqrelid = sequence AND (s.seqtypid <> 'int8'::regtype OR is_limited)
$function$;

-- The columns that hold the same IDs and have such a sequence. That of an identity
-- column is widened with the column, if that is narrow.
CREATE FUNCTION snowflake_migrate_internal.narrow_sequences(keys snowflake_migrate_internal.key[])
RETURNS TABLE (relation regclass, column_name name, sequence regclass, is_owned boolean) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT r.relation, r.attname, s.sequence, pg_has_role(t.relowner, c.relowner, 'USAGE')
    FROM snowflake_migrate_internal.linked_columns(keys) AS r
    JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.attribute
    JOIN pg_class AS t ON t.oid = r.relation
    CROSS JOIN LATERAL snowflake_migrate_internal.source(r.relation, r.attname) AS s
    JOIN pg_class AS c ON c.oid = s.sequence
    WHERE snowflake_migrate_internal.sequence_widening(s.sequence) IS NOT NULL AND (a.attidentity = '' OR NOT r.is_narrow)
$function$;

CREATE FUNCTION snowflake_migrate_internal.widen_sequence(target regclass, column_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    sequence regclass;
BEGIN
    SELECT s.sequence INTO sequence FROM snowflake_migrate_internal.source(target, column_name) AS s;
    PERFORM snowflake_migrate_internal.pin_schemas(ARRAY[(SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = sequence)]);
    PERFORM snowflake_internal.run(target, snowflake_migrate_internal.sequence_widening(sequence))
    WHERE snowflake_migrate_internal.sequence_widening(sequence) IS NOT NULL;
END
$function$;

-- Sequences that end before a bigint does, by a bound of their own. It stays: several servers
-- may share the numbers by it. And defaults that make integers of their numbers.
CREATE FUNCTION snowflake_migrate_internal.bounded_sequence_findings(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.finding LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT k.target, k.column_name, format('sequence %s', s.sequence),
           format('has a bound of its own, which a wider column does not change: it ends at %s', b.bound),
           format('If other servers do not use the numbers behind it: ALTER SEQUENCE %s NO %s.',
                  snowflake_migrate_internal.name_of(s.sequence), b.name),
           false, 'held', NULL, false, NULL::oid, NULL::oid
    FROM unnest(keys) AS k
    CROSS JOIN LATERAL snowflake_migrate_internal.source(k.target, k.column_name) AS s
    JOIN pg_sequence AS q ON q.seqrelid = s.sequence AND NOT q.seqcycle
    CROSS JOIN LATERAL (SELECT CASE WHEN q.seqincrement > 0 THEN q.seqmax ELSE q.seqmin END AS bound,
                               CASE WHEN q.seqincrement > 0 THEN 'MAXVALUE' ELSE 'MINVALUE' END AS name) AS b
    WHERE b.bound NOT IN (32767, 2147483647, 9223372036854775807, -32768, -2147483648, -9223372036854775808)
  UNION ALL
    SELECT k.target, k.column_name, format('the default of %s.%I', k.target, k.column_name),
           'casts its numbers to integers, and fails with one above 2147483647',
           format('After the migration: ALTER TABLE %s ALTER COLUMN %I SET DEFAULT nextval(%L).', snowflake_migrate_internal.name_of(k.target),
                  k.column_name, s.sequence),
           false, 'held', NULL, false, NULL::oid, NULL::oid
    FROM unnest(keys) AS k
    CROSS JOIN LATERAL snowflake_migrate_internal.source(k.target, k.column_name) AS s
    JOIN pg_attribute AS a ON a.attrelid = k.target AND a.attname = k.column_name
    JOIN pg_attrdef AS e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
    WHERE pg_get_expr(e.adbin, e.adrelid) ~ E'^\\(?nextval\\(''(?:[^'']|'''')+''::regclass\\)\\)?::(?:integer|smallint)$'
$function$;

CREATE FUNCTION snowflake_migrate_internal.sequence_obstacles(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT DISTINCT n.relation, n.column_name,
           format('sequence %s, which ends as an integer, does not belong to the owner of %s', n.sequence, n.relation),
           format('Let its owner widen it: %s.', snowflake_migrate_internal.sequence_widening(n.sequence)), '42501'
    FROM snowflake_migrate_internal.narrow_sequences(keys) AS n
    WHERE NOT n.is_owned
$function$;

-- Identity columns whose column is replaced: what their sequences are, which are dropped
-- with the column. No session takes a value in between.
CREATE FUNCTION snowflake_migrate_internal.lock_identities(keys snowflake_migrate_internal.key[])
RETURNS snowflake_migrate_internal.origins[] LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    key record;
    origin snowflake_migrate_internal.origins;
    identities snowflake_migrate_internal.origins[] := ARRAY[]::snowflake_migrate_internal.origins[];
BEGIN
    FOR key IN
        SELECT k.target, k.column_name, q.seqcache, snowflake_migrate_internal.name_of(s.sequence) AS sequence
        FROM unnest(keys) AS k
        CROSS JOIN LATERAL snowflake_migrate_internal.source(k.target, k.column_name) AS s
        JOIN pg_sequence AS q ON q.seqrelid = s.sequence
        WHERE s.kind LIKE 'identity %'
    LOOP
        -- The lock that nextval() waits for; nothing changes.
        PERFORM snowflake_internal.run(key.target, format('ALTER SEQUENCE %s CACHE %s', key.sequence, key.seqcache));
        origin := snowflake_migrate_internal.present_origin(key.target, key.column_name);
        identities := identities || origin;
    END LOOP;
    RETURN identities;
END
$function$;

-- Makes the new column an identity column that goes on where the former one was.
CREATE FUNCTION snowflake_migrate_internal.continue_identity(origin snowflake_migrate_internal.origins)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    sequence CONSTANT regclass := snowflake_migrate_internal.restore_identity(origin);
BEGIN
    PERFORM snowflake_internal.run(origin.target, format('SELECT setval(%L::regclass, %L::bigint, %L::boolean)', sequence::oid,
        coalesce(origin.sequence_last_value, (origin.sequence_options ->> 'next')::bigint), origin.sequence_last_value IS NOT NULL));
END
$function$;

CREATE FUNCTION snowflake_migrate_internal.sequence_steps(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.step LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT snowflake_migrate_internal.step(text 'sequence', s.relation, text 'SHARE ROW EXCLUSIVE',
        text 'widens the sequence of %s.%s',
        text 'it continues above the end of an integer. Only the sequence is locked',
        ARRAY[snowflake_migrate_internal.command(text 'widen sequence', s.relation,
                  snowflake_migrate_internal.sequence_widening(s.sequence), ARRAY[s.column_name])],
        names => ARRAY[s.relation::text, quote_ident(s.column_name)])
    FROM snowflake_migrate_internal.narrow_sequences(keys) AS s
    ORDER BY s.relation::text
$function$;

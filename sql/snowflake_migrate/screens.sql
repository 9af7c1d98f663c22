-- What a screen of 80 columns shows of a plan.

-- A name in at most so many characters. Names of a schema often begin and end alike, so the
-- middle is left out.
CREATE FUNCTION snowflake_migrate_internal.shortened(name text, most integer)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN length(name) <= most THEN name
                ELSE concat(left(name, most / 2), '…', right(name, greatest(most - 1 - most / 2, 0))) END
$function$;

-- A time that is estimated, in few characters.
CREATE FUNCTION snowflake_migrate_internal.short_time(seconds numeric)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN seconds < 1 THEN 'under 1 s'
                WHEN seconds < 90 THEN format('~%s s', ceil(seconds))
                WHEN seconds < 5400 THEN format('~%s min', ceil(seconds / 60))
                WHEN seconds < 172800 THEN format('~%s h', ceil(seconds / 3600))
                ELSE format('~%s days', to_char(ceil(seconds / 86400), 'FM999,999')) END
$function$;

-- The size of a step that takes a second or more. The copying of rows names them before.
CREATE FUNCTION snowflake_migrate_internal.work_words(work snowflake_migrate_internal.work, has_rows boolean DEFAULT true)
RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN CASE WHEN work.seconds >= 1 THEN ': ' || concat_ws(', ',
        CASE WHEN has_rows THEN CASE WHEN work.rows < 1000000 THEN to_char(work.rows, 'FM999,999') || ' rows'
                                     WHEN work.rows < 10000000 THEN to_char(work.rows / 1000000, 'FM9.0') || ' M rows'
                                     ELSE to_char(work.rows / 1000000, 'FM999,999,999') || ' M rows' END END,
        pg_size_pretty(work.bytes), snowflake_migrate_internal.short_time(work.seconds)) ELSE '' END;
END
$function$;

-- What a step does, in at most so many characters: its names are shortened as far as that takes.
CREATE FUNCTION snowflake_migrate_internal.what_of(step snowflake_migrate_internal.step, width integer)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN length(s.whole) + length(s.size) <= width THEN s.whole
                WHEN step.names IS NULL THEN snowflake_migrate_internal.shortened(step.what, width - length(s.size))
                ELSE format(step.what, VARIADIC ARRAY(
                         SELECT snowflake_migrate_internal.shortened(n.name, coalesce((
                             SELECT max(l.length)
                             FROM generate_series(1, width) AS l (length)
                             WHERE (SELECT sum(least(length(o.name), l.length)) FROM unnest(step.names) AS o (name))
                                   <= width - length(s.size) - length(format(step.what, VARIADIC s.blanks))), 1))
                         FROM unnest(step.names) WITH ORDINALITY AS n (name, place) ORDER BY n.place)) END || s.size
    -- OFFSET, because they would be evaluated for each length that is tried.
    FROM (SELECT snowflake_migrate_internal.work_words(step.work, step.kind <> 'copy') AS size,
                 CASE WHEN step.names IS NULL THEN step.what ELSE format(step.what, VARIADIC step.names) END AS whole,
                 array_fill(text '', ARRAY[coalesce(cardinality(step.names), 0)]) AS blanks
          OFFSET 0) AS s
$function$;

-- What each step does, so that psql shows it beside the step's number in 80 columns, and no
-- two look the same.
CREATE FUNCTION snowflake_migrate_internal.shown_steps(steps snowflake_migrate_internal.step[])
RETURNS TABLE (step snowflake_migrate_internal.step, what text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT s.step, CASE WHEN count(*) OVER (PARTITION BY s.what) = 1 THEN s.what
                        ELSE concat(snowflake_migrate_internal.what_of(s.step, 71 - length(s.tag)), s.tag) END
    -- Not by position: that reads an array of texts from its beginning, for each step.
    FROM (SELECT u AS step, snowflake_migrate_internal.what_of(u, 71) AS what, format(' (step %s)', u.number) AS tag
          FROM unnest(steps) AS u) AS s
    ORDER BY (s.step).number
$function$;

-- What a plan asks of those who decide on it: of its length, its longest lock, and its end.
CREATE FUNCTION snowflake_migrate_internal.change_summary(
    steps snowflake_migrate_internal.step[], keep_sequence boolean, OUT what text, OUT note text
) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH step AS MATERIALIZED (
        SELECT s.number, s.kind, s.lock_level, s.rewrites, (s.work).seconds AS seconds
        FROM unnest(steps) AS s
    ), sums AS (
        SELECT count(*) AS statements,
               coalesce(max(s.seconds) FILTER (WHERE s.lock_level = 'ACCESS EXCLUSIVE'), 0) AS longest,
               sum(s.seconds) FILTER (WHERE s.rewrites) AS rewriting,
               min(s.number) FILTER (WHERE s.kind IN ('widen', 'rewrite', 'swap', 'switch', 'sequence')) AS last_return,
               bool_or(s.kind = 'swap') AS is_online
        FROM step AS s
    )
    SELECT format('change: %s, longest lock %s', snowflake_migrate_internal.counted(s.statements, text 'statement'),
                  snowflake_migrate_internal.short_time(s.longest))
           || coalesce(', no return from step ' || s.last_return, ''),
           format('%s. Longest ACCESS EXCLUSIVE lock: %s%s',
                  snowflake_migrate_internal.counted(s.statements, text 'statement'),
                  snowflake_migrate_internal.short_time(s.longest),
                  CASE WHEN s.is_online THEN format(', after attempts of %s ms each', snowflake_migrate_internal.short_wait())
                       WHEN s.rewriting IS NOT NULL
                       THEN format(', %s in one transaction', snowflake_migrate_internal.short_time(s.rewriting)) ELSE '' END)
           || CASE WHEN s.last_return IS NULL THEN '. No statement has to be undone'
                   ELSE format('. Point of no return: step %s; %s', s.last_return,
                               CASE WHEN s.is_online THEN 'before it, snowflake_migrate.revert() removes all that the plan has made. '
                                    ELSE 'in one transaction, its COMMIT. ' END)
                        || CASE WHEN keep_sequence THEN 'Columns stay wide after it'
                                ELSE 'After it, snowflake_migrate.revert() restores the sequences, and new rows keep their IDs' END END
    FROM sums AS s
$function$;

-- What run() says when it begins with steps of one kind: the first one, and how many follow.
CREATE FUNCTION snowflake_migrate_internal.phase_notice(steps snowflake_migrate_internal.step[], first integer)
RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT format(CASE count(*) WHEN 1 THEN 'step %1$s: %3$s%4$s' ELSE 'steps %1$s to %2$s: %3$s, and %5$s more%4$s' END,
                  min(s.number), max(s.number), (array_agg(t.what ORDER BY s.number))[1],
                  snowflake_migrate_internal.work_words(
                      (sum((s.work).rows), sum((s.work).bytes), sum((s.work).seconds))::snowflake_migrate_internal.work),
                  count(*) - 1)
    FROM unnest(steps) AS s
    CROSS JOIN LATERAL (
        SELECT CASE WHEN s.names IS NULL THEN s.what ELSE format(s.what, VARIADIC s.names) END) AS t (what)
    WHERE s.number >= first AND s.kind = steps[first].kind
      AND NOT EXISTS (SELECT FROM unnest(steps) AS o
                      WHERE o.number > first AND o.number < s.number AND o.kind <> s.kind)
$function$;

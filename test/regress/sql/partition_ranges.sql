-- Ranges of snowflake_partitions.ddl(): names, bounds, changes of the clocks, partitions that exist, what is refused.
SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; CREATE TABLE t (id bigint) PARTITION BY RANGE (id);
-- The names of partitions and whether their ranges ascend without gaps; or the error.
CREATE FUNCTION pg_temp.ranges(arguments text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    names text[];
    gapless boolean;
    detail text;
    hint text;
BEGIN
    EXECUTE format($query$SELECT array_agg(part[1] ORDER BY n), bool_and(part[2]::bigint < part[3]::bigint AND part[2] = coalesce(before, part[2]))
        FROM (SELECT n, part, lag(part[3]) OVER (ORDER BY n) AS before
              FROM snowflake_partitions.ddl(%s) WITH ORDINALITY AS d (statement, n),
                   regexp_match(statement, 'TABLE (?:\w+|"Other Schema")\.(.+) PARTITION OF .* FROM \(''(\d+)''\) TO \(''(\d+)''\)$') AS part) AS parts$query$, arguments)
    INTO names, gapless;
    IF cardinality(names) > 5 THEN
        names := ARRAY[cardinality(names)::text, 'from', names[1], 'to', names[cardinality(names)]];
    END IF;
    RETURN concat_ws(' ', array_to_string(names, ' '), CASE WHEN NOT gapless THEN 'NOT ADJACENT' END);
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    -- The server's own zone may have another name for UTC.
    RETURN concat_ws(' | ', SQLSTATE, SQLERRM, nullif(detail, ''), nullif(regexp_replace(hint, '''(Etc/UTC|Etc/GMT|GMT)''', '''UTC'''), ''));
END $$;
-- The same where partitions exist, made by other arguments.
CREATE FUNCTION pg_temp.ranges_after(existing text, arguments text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    statement text;
    result text;
BEGIN
    FOR statement IN EXECUTE format('SELECT snowflake_partitions.ddl(%s)', existing) LOOP
        EXECUTE statement;
    END LOOP;
    result := pg_temp.ranges(arguments);
    RAISE SQLSTATE 'RB000';
EXCEPTION WHEN SQLSTATE 'RB000' THEN
    RETURN result;
END $$;
\pset format unaligned
\pset tuples_only on
SELECT format('%s: %s', range, pg_temp.ranges('''t'', ' || range)) FROM unnest(ARRAY[$$'2026-01-31', '2026-06-01', '1 month'$$, $$'2028-02-29', '2031-01-01', '1 year'$$,
    $$'2026-01-01', '2026-01-01', '1 day'$$, $$'2026-01-01 00:30', '2026-01-01 01:00', '15 minutes'$$, $$'2026-01-01 00:00:00.25', '2026-01-01 00:00:00.75', '250 ms'$$,
    $$'2026-01-01', '2027-01-01', '3 months'$$, $$'2026-01-01', '2026-01-01 00:00:01', '1 day'$$, $$'2024-11-01', '2025-02-01', '1 month'$$,
    $$'2020-01-01', '2025-01-01', '1 year'$$, $$'2024-07-01', '2025-07-01', '1 year'$$, $$'2025-06-30', '2094-01-01', '1 year'$$, $$NULL, '2026-02-01', '1 day'$$,
    $$'2026-01-01', NULL, '1 day'$$, $$'2026-01-01', '2026-02-01', NULL$$, $$'2026-02-01', '2026-01-01', '1 day'$$, $$'-infinity', '2026-01-01', '1 day'$$,
    $$'infinity', 'infinity', '1 day'$$, $$'2026-01-01', '2026-02-01', '-1 day'$$, $$'2026-01-01', '2026-02-01', '1 month -31 days'$$,
    $$'2026-01-01', '2026-02-01', '1 day -24 hours'$$, $$'2094-01-01', '2095-01-01', '1 month'$$, $$'9999-01-01', '9999-02-01', '1 day'$$,
    $$'2026-01-01', '2026-02-01', '1 day', 'Mars/Olympus'$$]) AS range;
-- A zone that is passed counts as that of the session, and each step ascends without gaps in it: such steps, of six.
CREATE FUNCTION pg_temp.in_zone(zone text, arguments text, OUT ranges text, OUT statements text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('TimeZone', zone, true);
    ranges := pg_temp.ranges(arguments);
    EXECUTE format('SELECT string_agg(d, '';'') FROM snowflake_partitions.ddl(%s) AS d', arguments) INTO statements;
END $$;
SELECT zone, count(*) FILTER (WHERE own.statements = other.statements), count(*) FILTER (WHERE own.ranges ~ '^\d\d+ from t_p\S+ to t_p\S+$')
FROM unnest('{UTC,Europe/Berlin,Australia/Lord_Howe,Asia/Beirut,America/Havana,Africa/Casablanca,Asia/Kathmandu}'::text[]) AS zone,
    (VALUES ('2026-01-31', '2028-01-01', '1 month'), ('2026-03-01', '2026-05-01', '1 day'), ('2026-01-29 13:30', '2028-01-01', '1 month 1 day 2 hours'),
        ('2026-10-25 02:30', '2026-10-28', '1 hour'), ('2026-03-28', '2026-03-31', '30 minutes'), ('2026-03-02', '2026-12-01', '1 week')) AS s (since, until, step),
    format('''t'', ''%1$s %2$s'', ''%3$s %2$s'', %4$L', since, zone, until, step) AS arguments,
    pg_temp.in_zone(zone, arguments) AS own, pg_temp.in_zone('Pacific/Auckland', format('%s, %L', arguments, zone)) AS other
GROUP BY zone ORDER BY zone COLLATE "C";
-- Rows land where their time says: rows each quarter of an hour, those in another partition, partitions with rows.
CREATE FUNCTION pg_temp.astray(since text, until text, step text, zone text, name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    statement text;
    result text;
BEGIN
    PERFORM set_config('TimeZone', zone, true);
    FOR statement IN SELECT snowflake_partitions.ddl('t', since::timestamptz, until::timestamptz, step::interval) LOOP
        EXECUTE statement;
    END LOOP;
    INSERT INTO t SELECT snowflake_compose(at, (n % 2 * 63)::int, (n % 2 * 15)::int, (n % 2 * 4095)::int)
    FROM generate_series(since::timestamptz, until::timestamptz - interval '1 second', '15 minutes') WITH ORDINALITY AS g (at, n)
    UNION ALL SELECT snowflake_compose(until::timestamptz - interval '1 microsecond', 63, 15, 4095);
    EXECUTE format('SELECT concat_ws('' '', count(*), count(*) FILTER (WHERE tableoid::regclass::text <> ''t_p'' || %s), count(DISTINCT tableoid), min(tableoid::regclass::text)) FROM t', name)
    INTO result;
    BEGIN
        INSERT INTO t SELECT snowflake_compose(until::timestamptz, 0, 0, 0);
        result := result || ', also after the end';
    EXCEPTION WHEN check_violation THEN
    END;
    RAISE SQLSTATE 'RB000';
EXCEPTION WHEN SQLSTATE 'RB000' THEN
    RETURN result;
END $$;
SELECT zone, step, pg_temp.astray(since, until, step, zone, replace(name, 'AT', 'snowflake_timestamp(id)'))
FROM (VALUES ('Europe/Berlin', '2026-03-25', '2026-04-02', '1 day', $$to_char(AT, 'YYYYMMDD')$$), ('Europe/Berlin', '2026-10-20', '2026-10-30', '1 day', $$to_char(AT, 'YYYYMMDD')$$),
    ('Australia/Lord_Howe', '2026-10-01', '2026-10-08', '1 day', $$to_char(AT, 'YYYYMMDD')$$), ('Asia/Beirut', '2026-03-26', '2026-04-02', '1 day', $$to_char(AT, 'YYYYMMDD')$$),
    ('Europe/Berlin', '2026-01-01', '2027-01-01', '1 month', $$to_char(AT, 'YYYYMM')$$),
    ('Europe/Berlin', '2026-10-24 12:00', '2026-10-26 00:00', '1 hour', $$to_char(timezone('UTC', AT), 'YYYYMMDD_HH24"00utc"')$$),
    ('Europe/Berlin', '2026-03-28 12:00', '2026-03-30 00:00', '1 hour', $$to_char(timezone('UTC', AT), 'YYYYMMDD_HH24"00utc"')$$),
    ('Europe/Berlin', '2025-01-02', '2028-01-02', '1 year', $$to_char(AT - interval '1 day', 'YYYY"0102"')$$),
    ('America/New_York', '2026-01-01', '2029-01-01', '12 months', $$to_char(AT, 'YYYY')$$),
    ('Europe/Berlin', '2026-10-12', '2026-11-09', '1 week', $$to_char(date_trunc('week', AT), 'YYYYMMDD')$$)) AS r (zone, since, until, step, name);
-- Beside partitions that exist: what continues them, and what would leave a gap or overlap them.
SET TimeZone = 'Europe/Berlin';
SELECT pg_temp.ranges_after('''t'', ' || existing, '''t'', ' || range)
FROM (VALUES ($$'2026-11-20 UTC', '2026-11-24 UTC', '1 day', 'UTC'$$, $$'2026-11-22 06:52:02.14 UTC', '2026-11-26 UTC', '1 day', 'UTC'$$),
    ($$'2026-11-20 UTC', '2026-11-24 UTC', '1 day', 'UTC'$$, $$'2026-11-26 UTC', '2026-11-27 UTC', '1 day', 'UTC'$$),
    ($$'2026-10-01 UTC', '2026-12-01 UTC', '1 month', 'UTC'$$, $$'2026-11-29 UTC', '2026-12-02 UTC', '1 day', 'UTC'$$),
    ($$'2026-11-01 UTC', '2026-11-15 UTC', '1 week', 'UTC'$$, $$'2026-11-18 UTC', '2026-11-23 UTC', '1 week', 'UTC'$$),
    ($$'2025-07-01 UTC', '2027-07-01 UTC', '1 year', 'UTC'$$, $$'2027-01-01 UTC', '2028-01-01 UTC', '1 year', 'UTC'$$),
    ($$'2026-11-20 06:00 UTC', '2026-11-21 06:00 UTC', '1 day', 'UTC'$$, $$'2026-11-22 06:00 UTC', '2026-11-23 06:00 UTC', '1 day', 'UTC'$$),
    ($$'2026-11-20 UTC', '2026-11-21 UTC', '1 hour', 'UTC'$$, $$'2026-11-20 UTC', '2026-11-22 UTC', '1 day', 'UTC'$$),
    ($$'2026-10-24', '2026-10-25', '1 day'$$, $$'2026-10-26', '2026-10-27', '1 day', 'Europe/Berlin'$$),
    ($$'2026-11-20', '2026-11-24', '1 day'$$, $$'2026-11-24 UTC', '2026-11-26 UTC', '1 day', 'UTC'$$),
    ($$'2026-11-20', '2026-11-24', '1 day'$$, $$'2026-11-23 UTC', '2026-11-26 UTC', '1 day', 'UTC'$$),
    ($$'2026-11-25 UTC', '2026-11-26 UTC', '1 day', 'UTC'$$, $$'2026-11-23', '2026-11-25', '1 day'$$),
    ($$'2026-11-25 UTC', '2026-11-26 UTC', '1 day', 'UTC'$$, $$'2026-11-23 06:00 UTC', '2026-11-26 UTC', '1 day', 'UTC'$$),
    ($$'2026-11-20 00:07 UTC', '2026-11-20 01:07 UTC', '1 hour', 'UTC'$$, $$'2026-11-20 01:00 UTC', '2026-11-20 03:00 UTC', '1 hour', 'UTC'$$)) AS r (existing, range);
-- The same of each pair of zones: how many continue without a gap, are refused for a gap, for an overlap, and anything else.
CREATE FUNCTION pg_temp.pairs(step_before interval, step text, OUT continued int, OUT gaps int, OUT overlapping int, OUT others text[]) LANGUAGE plpgsql AS $$
DECLARE
    pair record;
    result text;
BEGIN
    continued := 0; gaps := 0; overlapping := 0;
    FOR pair IN SELECT * FROM unnest('{UTC,Europe/Berlin,America/New_York}'::text[]) AS old,
        unnest('{UTC,Europe/Berlin,Asia/Kathmandu}'::text[]) AS new, unnest('{2026-09-20,2026-10-01,2026-10-04 06:52}'::text[]) AS since LOOP
        PERFORM set_config('TimeZone', pair.new, true);
        result := pg_temp.ranges_after(format('''t'', ''2026-09-01 %s'', ''2026-10-01 %1$s'', %L, %1$L', pair.old, step_before), format('''t'', %L, ''2026-10-27'', %L', pair.since, step));
        continued := continued + (result ~ '^(\d+ from )?t_p' AND result !~ 'NOT ADJACENT')::int;
        gaps := gaps + (result ~ 'Z would leave a gap of .* \| .* \| ')::int;
        overlapping := overlapping + (result ~ ' would overlap partition "t_p.* \| .* \| ')::int;
        IF result !~ '^(\d+ from )?t_p|^42P17' OR result ~ 'NOT ADJACENT' OR pair.old = pair.new AND step <> '1 week' AND result ~ '^42P17' THEN
            others := others || result;
        END IF;
    END LOOP;
END $$;
SELECT pg_temp.pairs('1 day', '1 day'), pg_temp.pairs('1 day', '1 week');
SET TimeZone = 'UTC';
-- Only what is missing, by an ordinary owner.
CREATE ROLE regress_owner; CREATE SCHEMA own AUTHORIZATION regress_owner; SET ROLE regress_owner; CREATE TABLE own.days (id bigint) PARTITION BY RANGE (id);
DO $$ DECLARE d text; BEGIN FOR d IN SELECT snowflake_partitions.ddl('own.days', '2026-05-01', '2026-05-08', '1 day') LOOP EXECUTE d; END LOOP; END $$;
DROP TABLE own.days_p20260503; ALTER TABLE own.days DETACH PARTITION own.days_p20260505; DROP TABLE own.days_p20260505; ALTER TABLE own.days_p20260506 RENAME TO renamed;
RESET ROLE;
SELECT pg_temp.ranges($$'own.days', '2026-05-01', '2026-05-10', '1 day'$$);
-- Partitions by hand: a remedy that helps, and catch-all partitions.
CREATE TABLE rest PARTITION OF t DEFAULT; CREATE TABLE negative PARTITION OF t FOR VALUES FROM (MINVALUE) TO (0);
CREATE TABLE old PARTITION OF t FOR VALUES FROM (0) TO (1000001);
SELECT pg_temp.ranges($$'t', '2026-11-20', '2026-11-22', '1 day'$$);
CREATE TABLE middle PARTITION OF t FOR VALUES FROM ('1000001') TO ('249322851532800000');
CREATE TABLE future PARTITION OF t FOR VALUES FROM (251134790860800000) TO (MAXVALUE);
SELECT pg_temp.ranges('''t'', ' || range) FROM unnest(ARRAY[$$'2026-11-20', '2026-11-22', '1 day'$$, $$'2026-11-20', '2026-11-26 06:00', '1 week'$$,
    $$'2026-11-25', '2026-11-28', '1 day'$$]) AS range;
DROP TABLE t;
-- Tables of any name, and past a search path with traps.
CREATE SCHEMA "Other Schema"; CREATE TABLE "Other Schema"."Mixed ""Case"" 'name'" ("The ID" bigint) PARTITION BY RANGE ("The ID");
CREATE TABLE lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll (id bigint) PARTITION BY RANGE (id);
CREATE TEMP TABLE passing (id bigint) PARTITION BY RANGE (id); CREATE TABLE "select" (note text, gone int, id bigint) PARTITION BY RANGE (id);
ALTER TABLE "select" DROP COLUMN gone;
SELECT pg_temp.ranges(format('%L, %s', name, range)) FROM unnest(ARRAY['"Other Schema"."Mixed ""Case"" ''name''"', repeat('l', 63), 'passing', '"select"']) AS name,
    unnest(ARRAY[$$'2026-05-01', '2026-05-03', '1 day'$$, $$'2026-06-02', '2026-06-02 00:00:02', '1 second'$$]) AS range;
SELECT snowflake_partitions.ddl('"Other Schema"."Mixed ""Case"" ''name''"', '2026-05-01', '2026-05-02', '1 day') \gexec
DO $$ BEGIN EXECUTE snowflake_partitions.ddl('passing', '2026-05-01', '2026-05-02', '1 day'); END $$;
CREATE SCHEMA trap;
SELECT format('CREATE FUNCTION trap.%s LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION $s$sprung$s$; END''', f) FROM unnest('{snowflake_min_id(timestamptz) RETURNS bigint,"format(text, VARIADIC text[]) RETURNS text",
    "to_char(timestamp, text) RETURNS text",octet_length(text) RETURNS int,isfinite(timestamptz) RETURNS boolean,"plus(timestamptz, interval) RETURNS timestamptz","joined(text, text) RETURNS text",
    "less(timestamptz, timestamptz) RETURNS boolean"}'::text[]) AS f \gexec
CREATE OPERATOR trap.+ (LEFTARG = timestamptz, RIGHTARG = interval, FUNCTION = trap.plus); CREATE OPERATOR trap.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.joined);
CREATE OPERATOR trap.< (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = trap.less); CREATE TABLE trap.pg_class (oid oid, relname name, relkind "char");
CREATE TABLE trap.pg_inherits (inhrelid oid, inhparent oid); CREATE DOMAIN trap.text AS pg_catalog.text CHECK (false); SET search_path = trap, pg_catalog, public;
\set VERBOSITY terse
SELECT isfinite(pg_catalog.now());
SELECT d::pg_catalog.text FROM snowflake_partitions.ddl('"select"', '2026-05-01', '2026-05-03', '1 day') AS d;
RESET search_path;
-- What cannot be partitioned so.
CREATE TABLE plain (id bigint); CREATE VIEW seen AS SELECT * FROM plain; CREATE TABLE of_int (id int) PARTITION BY RANGE (id);
CREATE TABLE of_time (at timestamptz) PARTITION BY RANGE (at); CREATE TABLE listed (id bigint) PARTITION BY LIST (id);
CREATE TABLE of_two (id bigint, n bigint) PARTITION BY RANGE (id, n); CREATE TABLE computed (id bigint) PARTITION BY RANGE ((id + 1));
SELECT pg_temp.ranges(format('%L, ''2026-01-01'', ''2026-02-01'', ''1 day''', name)) FROM unnest('{seen,pg_class,passing_p20260501,of_int,of_time,listed,of_two,computed,nowhere,1,0}'::text[]) AS name;
DROP SCHEMA trap CASCADE; DROP OWNED BY regress_owner; DROP ROLE regress_owner; DROP SCHEMA "Other Schema" CASCADE; DROP VIEW seen;
DROP TABLE plain, of_int, of_time, listed, of_two, computed, passing, "select", lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll;
-- A name of which a character has two bytes in the encoding of its database.
SELECT current_database() AS database \gset
CREATE DATABASE regress_japanese TEMPLATE template0 ENCODING 'EUC_JP' LC_COLLATE 'C' LC_CTYPE 'C';
\c regress_japanese
SET client_min_messages = warning; CREATE EXTENSION snowflake_partitions CASCADE;
DO $$ BEGIN EXECUTE format('CREATE TABLE %I (id bigint) PARTITION BY RANGE (id)', repeat(convert_from('\xc3edcab8', 'EUC_JP'), 15)); END $$;
DO $$ DECLARE d text; BEGIN FOR d IN SELECT snowflake_partitions.ddl(oid, '2026-05-01', '2026-05-08', '1 day') FROM pg_class WHERE relkind = 'p' LOOP EXECUTE d; END LOOP; END $$;
SELECT count(*) FROM pg_inherits;
\c :"database"
DROP DATABASE regress_japanese;

-- The IDs of the extension snowflake in SQL alone, for servers where no library may be
-- loaded. PostgreSQL 13 and newer, any role with CREATE on the database:
--
--     psql -X -v node=3 -f without_library.sql                  schema snowflake_sql
--     psql -X -v node=3 -v schema=ids -f without_library.sql    another schema
--
-- docs/without-library.md has the promises, their proof, the privileges and the way to the
-- extension. Names and results are the extension's. Functions that SQL must inline have
-- no SET clause, and neither has the generator, which is called for each row; all names
-- and operators in them are qualified.
\set ON_ERROR_STOP on
\set QUIET on
\if :{?schema}
\else
\set schema snowflake_sql
\endif
\if :{?node}
\else
\set node ''
\endif
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SELECT set_config('snowflake_sql.schema', :'schema', true) AS schema, set_config('snowflake_sql.node', :'node', true) AS node \gset set_
DO $do$
DECLARE
    schema CONSTANT text := current_setting('snowflake_sql.schema');
BEGIN
    IF current_setting('server_version_num')::integer < 130000 THEN
        RAISE EXCEPTION 'PostgreSQL 13 or newer is required' USING ERRCODE = '0A000';
    ELSIF current_setting('snowflake_sql.node') !~ '^([0-9]|[1-5][0-9]|6[0-3])$' THEN
        RAISE EXCEPTION 'a node number from 0 to 63 is required' USING ERRCODE = '22023',
            HINT = 'Use psql -v node=N, with another number in each database and on each server.';
    ELSIF schema = '' OR octet_length(schema) > 63 OR strpos(schema, '$') > 0 THEN    -- Bodies of functions are between $$.
        RAISE EXCEPTION 'the name of the schema must have 1 to 63 bytes, and no $' USING ERRCODE = '42602';
    ELSIF to_regnamespace(quote_ident(schema)) IS NOT NULL THEN
        RAISE EXCEPTION 'schema "%" already exists', schema USING ERRCODE = '42P06',
            HINT = 'Nothing in an existing schema is used or replaced.';
    END IF;
END
$do$;
CREATE SCHEMA :"schema";

-- The numbers, and the mark: the unit of 128 ms, counted from the epoch, that the clock has
-- reached. Both are only drawn from; nothing here calls setval(), so USAGE is sufficient.
CREATE SEQUENCE :"schema".ids AS bigint MINVALUE 1 START 1 INCREMENT 1 CACHE 1 NO CYCLE;
SELECT format('CREATE SEQUENCE %I.mark AS bigint MINVALUE 1 START %s INCREMENT 1 CACHE 1 NO CYCLE', :'schema',
              floor((date_part('epoch', clock_timestamp()) - 1735689600) * 1000)::bigint >> 7) \gexec
SELECT nextval(format('%I.ids', :'schema')) AS id, nextval(format('%I.mark', :'schema')) AS mark \gset first_
SET LOCAL check_function_bodies = off;

SELECT format($create$
-- Raises an error, in place of a bigint. It has no defaults, which an overload could precede.
CREATE FUNCTION %1$I.refuse(sqlstate text, message text, detail text, hint text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF hint = '' THEN RAISE EXCEPTION '%%', message USING ERRCODE = sqlstate, DETAIL = detail; END IF;
    RAISE EXCEPTION '%%', message USING ERRCODE = sqlstate, DETAIL = detail, HINT = hint;
END $$;

-- The generator. A number n and a moment t make an ID: t, the node number, n modulo 65,536.
-- 1. No number is drawn while the clock is more than 40 units behind the mark. That many
--    leave room for the 32 that a crash of the server adds.
-- 2. No ID is issued before the mark is at most 7 units behind its time: 1 of 8 calls
--    raises it to its own unit, so that sessions do not all raise it at once.
-- 3. If more than 4,095 others were drawn when t was read and the mark raised, this session
--    was paused: it draws again. So a congruent number, 65,536 draws away, is drawn at
--    least 61,440 draws after that.
CREATE FUNCTION %1$I.snowflake_nextval() RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
DECLARE
    n pg_catalog.int8;
    t pg_catalog.int8;
    d pg_catalog.int8;
    m pg_catalog.int8;
BEGIN
    FOR attempt IN 1..1000 LOOP
        t := pg_catalog.floor((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.-) 1735689600)
                              OPERATOR(pg_catalog.*) 1000);
        m := pg_catalog.pg_sequence_last_value(%2$L::pg_catalog.regclass);
        IF ((m OPERATOR(pg_catalog.-) (t OPERATOR(pg_catalog.>>) 7)) OPERATOR(pg_catalog.<=) 40) IS NOT TRUE THEN    -- Also if m is NULL.
            PERFORM %1$I.refuse_clock(t, m);
        END IF;
        n := pg_catalog.nextval(%3$L::pg_catalog.regclass);
        t := pg_catalog.floor((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.-) 1735689600)
                              OPERATOR(pg_catalog.*) 1000);
        m := pg_catalog.pg_sequence_last_value(%2$L::pg_catalog.regclass);
        WHILE m OPERATOR(pg_catalog.<) ((t OPERATOR(pg_catalog.>>) 7) OPERATOR(pg_catalog.-) (n OPERATOR(pg_catalog.&) 7)) LOOP
            m := pg_catalog.nextval(%2$L::pg_catalog.regclass);
        END LOOP;
        -- Last, after the clock and the mark. Not BETWEEN, whose operators have no schema.
        d := pg_catalog.pg_sequence_last_value(%3$L::pg_catalog.regclass) OPERATOR(pg_catalog.-) n;
        IF (m OPERATOR(pg_catalog.-) (t OPERATOR(pg_catalog.>>) 7)) OPERATOR(pg_catalog.<=) 40
           AND d OPERATOR(pg_catalog.>=) 0 AND d OPERATOR(pg_catalog.<=) 4095
           AND (t OPERATOR(pg_catalog.>>) 41) OPERATOR(pg_catalog.=) 0
        THEN
            RETURN (t OPERATOR(pg_catalog.<<) 22)
                   OPERATOR(pg_catalog.|) (%1$I.snowflake_own_node() OPERATOR(pg_catalog.<<) 16)
                   OPERATOR(pg_catalog.|) (n OPERATOR(pg_catalog.&) 65535);
        END IF;
    END LOOP;
    PERFORM %1$I.refuse('55000', 'no ID could be issued in 1,000 attempts',
        'Each time, 4,096 numbers were drawn in between, a sequence or the clock was set, or the layout has no ID of the time.', '');
END $$;

CREATE FUNCTION %1$I.refuse_clock(t bigint, m bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO' AS $$
BEGIN
    IF m IS NULL THEN
        RETURN %1$I.refuse('55000', 'the mark was reset', 'The sequence "mark" has no last value, or the role has no USAGE on it.', '');
    END IF;
    RETURN %1$I.refuse('58000', 'the clock is behind IDs that may already have been issued',
        format('The clock shows %%s; IDs may have been issued up to %%s.', to_timestamp((t + 1735689600000) / 1000.0),
               to_timestamp(((m << 7) + 1735689600000) / 1000.0)),
        'Correct the clock, or wait until it has caught up.');
END $$;

-- The fields of a layout, which is a preset or a text as of snowflake.layout.
CREATE FUNCTION %1$I.fields(layout text, OUT bits int, OUT time_at int, OUT time_bits int, OUT node_at int, OUT node_bits int,
    OUT backend_at int, OUT backend_bits int, OUT sequence_at int, OUT sequence_bits int, OUT tick numeric, OUT epoch numeric)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO' AS $$
DECLARE
    text CONSTANT text := coalesce((SELECT p.fields || ' epoch:' || p.since FROM (VALUES
        ('default', 'timestamp:41 node:6 backend:4 sequence:12 tick:1ms', '2025-01-01T00:00:00Z'),
        ('twitter', 'timestamp:41 node:5 backend:5 sequence:12 tick:1ms', '2010-11-04T01:42:54.657Z'),
        ('discord', 'timestamp:41 node:5 backend:5 sequence:12 tick:1ms', '2015-01-01T00:00:00Z'),
        ('instagram', 'timestamp:40 node:13 sequence:10 tick:1ms', '2011-08-24T21:07:01.721Z'),
        ('sonyflake', 'timestamp:39 sequence:8 node:16 tick:10ms', '2014-09-01T00:00:00Z'),
        ('uid-generator', 'timestamp:28 node:22 sequence:13 tick:1s', '2016-05-19T16:00:00Z'),
        ('tsid', 'timestamp:41 node:10 sequence:12 tick:1ms', '2020-01-01T00:00:00Z'),
        ('mastodon', 'timestamp:47 sequence:16 tick:1ms', '1970-01-01T00:00:00Z'),
        ('clickhouse', 'timestamp:41 node:10 sequence:12 tick:1ms', '1970-01-01T00:00:00Z'),
        ('pgedge', 'timestamp:41 node:10 sequence:12 tick:1ms', '2023-01-01T00:00:00Z'),
        ('ipv4', 'timestamp:28 node:24 sequence:11 tick:1s', '2025-01-01T00:00:00Z'),
        ('game', 'timestamp:31 node:20 sequence:12 tick:1s', '2025-01-01T00:00:00Z'),
        ('js53', 'timestamp:38 node:5 sequence:10 tick:10ms', '2025-01-01T00:00:00Z')) AS p (name, fields, since)
        WHERE p.name = layout), layout) COLLATE "C";
    word text;
    name text;
    names text[] := '{}';
    value text;
    at timestamptz := '2025-01-01 00:00+00';
BEGIN
    bits := 0; node_bits := 0; backend_bits := 0; node_at := 0; backend_at := 0; tick := 1000;
    -- From the lowest field up.
    FOR word IN SELECT w.word FROM unnest(string_to_array(text, ' ')) WITH ORDINALITY AS w (word, n)
                WHERE w.word <> '' ORDER BY w.n DESC LOOP
        name := split_part(word, ':', 1);
        value := substr(word, strpos(word, ':') + 1);
        EXIT WHEN name = ANY (names);
        names := name || names;
        IF name IN ('timestamp', 'node', 'backend', 'sequence') AND value ~ '^[1-9][0-9]?$' THEN
            CASE name WHEN 'timestamp' THEN time_at := bits; time_bits := value;
                WHEN 'node' THEN node_at := bits; node_bits := value;
                WHEN 'backend' THEN backend_at := bits; backend_bits := value;
                ELSE sequence_at := bits; sequence_bits := value; END CASE;
            bits := bits + value::int;
        ELSIF name = 'tick' AND value ~ '^[1-9][0-9]{0,6}(us|ms|s)$' THEN
            tick := substring(value FROM '^[0-9]+')::numeric
                    * CASE substring(value FROM '[a-z]+') WHEN 'us' THEN 1 WHEN 'ms' THEN 1000 ELSE 1000000 END;
        ELSIF name = 'epoch' AND value ~ '^[0-9]{4}-[0-9][0-9]-[0-9][0-9](T[0-9:.]+(Z|[-+][0-9:]+)?)?$' THEN
            at := value;
        ELSE EXIT; END IF;
        word := NULL;
    END LOOP;
    epoch := round(extract(epoch FROM at)::numeric * 1000000);
    IF word IS NOT NULL OR time_bits IS NULL OR sequence_bits IS NULL OR bits > 63 OR time_at + time_bits < bits
       OR greatest(node_bits, sequence_bits) > 31 OR backend_bits > 12 OR tick > 1000000
    THEN
        PERFORM %1$I.refuse('22023', format('invalid snowflake layout: "%%s"', left(layout, 200)),
            'Use a preset, or for example "timestamp:41 node:6 backend:4 sequence:12 tick:1ms epoch:2025-01-01T00:00:00Z".', '');
    END IF;
END $$;

-- Reading. Days and seconds are exact.
CREATE FUNCTION %1$I.snowflake_decode(
    id bigint, layout text, OUT created_at timestamptz, OUT node_id int, OUT backend_id int, OUT sequence int)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' AS $$
DECLARE
    f record := %1$I.fields(layout);
    us numeric;
BEGIN
    IF id < 0 THEN
        PERFORM %1$I.refuse('22003', format('%%s is not a snowflake ID', id), 'Snowflake IDs are never negative.', '');
    ELSIF f.bits < 63 AND id >> f.bits <> 0 THEN
        PERFORM %1$I.refuse('22003', format('%%s is out of range for the layout', id),
                            format('IDs of this layout have %%s bits.', f.bits), '');
    END IF;
    us := f.epoch + (id >> f.time_at) * f.tick;
    created_at := timestamptz '1970-01-01 00:00+00' + make_interval(days => div(us, 86400000000)::int)
                  + make_interval(secs => (us - 86400000000 * div(us, 86400000000))::float8 / 1000000);
    node_id := (id >> f.node_at) & ((1::bigint << f.node_bits) - 1);
    backend_id := (id >> f.backend_at) & ((1::bigint << f.backend_bits) - 1);
    sequence := (id >> f.sequence_at) & ((1::bigint << f.sequence_bits) - 1);
END $$;
CREATE FUNCTION %1$I.snowflake_timestamp(id bigint, layout text) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT (%1$I.snowflake_decode(id, layout)).created_at $$;
CREATE FUNCTION %1$I.snowflake_node_id(id bigint, layout text) RETURNS int LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT (%1$I.snowflake_decode(id, layout)).node_id $$;

-- The same for the default layout, inlined.
CREATE FUNCTION %1$I.checked(id bigint) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT CASE WHEN id OPERATOR(pg_catalog.<) 0
                      THEN %1$I.refuse('22003', id::pg_catalog.text OPERATOR(pg_catalog.||) ' is not a snowflake ID',
                                       'Snowflake IDs are never negative.', '')
                      ELSE id END $$;
CREATE FUNCTION %1$I.snowflake_timestamp(id bigint) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT pg_catalog.to_timestamp(((%1$I.checked(id) OPERATOR(pg_catalog.>>) 22) OPERATOR(pg_catalog.+) 1735689600000)
                                         OPERATOR(pg_catalog./) 1000::pg_catalog.float8) $$;
CREATE FUNCTION %1$I.snowflake_node_id(id bigint) RETURNS int LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT ((%1$I.checked(id) OPERATOR(pg_catalog.>>) 16) OPERATOR(pg_catalog.&) 63)::pg_catalog.int4 $$;
CREATE FUNCTION %1$I.snowflake_backend_id(id bigint) RETURNS int LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT ((%1$I.checked(id) OPERATOR(pg_catalog.>>) 12) OPERATOR(pg_catalog.&) 15)::pg_catalog.int4 $$;
CREATE FUNCTION %1$I.snowflake_sequence(id bigint) RETURNS int LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT (%1$I.checked(id) OPERATOR(pg_catalog.&) 4095)::pg_catalog.int4 $$;
CREATE FUNCTION %1$I.snowflake_decode(id bigint, OUT created_at timestamptz, OUT node_id int, OUT backend_id int, OUT sequence int)
LANGUAGE sql STABLE STRICT PARALLEL SAFE
    AS $$ SELECT %1$I.snowflake_timestamp(id), %1$I.snowflake_node_id(id), %1$I.snowflake_backend_id(id), %1$I.snowflake_sequence(id) $$;

-- Bounds: the first tick that is not before a time, or the last that is not after it.
CREATE FUNCTION %1$I.bound(at timestamptz, layout text, is_up boolean, OUT tick numeric, OUT highest bigint, OUT time_at int)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO' AS $$
DECLARE
    f record := %1$I.fields(layout);
BEGIN
    highest := (1::numeric * power(2::numeric, f.time_bits) - 1)::bigint;
    time_at := f.time_at;
    IF NOT isfinite(at) THEN
        tick := CASE WHEN at > 'epoch' THEN highest::numeric + 1 ELSE -1 END;
        RETURN;
    END IF;
    tick := (round(extract(epoch FROM at)::numeric * 1000000) - f.epoch) / f.tick;
    tick := CASE WHEN is_up THEN ceil(tick) ELSE floor(tick) END;
END $$;
CREATE FUNCTION %1$I.snowflake_min_id(at timestamptz, layout text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO' AS $$
DECLARE
    b record := %1$I.bound(at, layout, true);
BEGIN
    IF b.tick > b.highest THEN
        PERFORM %1$I.refuse('22003', format('%%s is out of range for the layout', at),
                            format('The last ID of the layout "%%s" is earlier.', layout), '');
    END IF;
    RETURN greatest(b.tick, 0)::bigint << b.time_at;
END $$;
CREATE FUNCTION %1$I.snowflake_max_id(at timestamptz, layout text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    b record := %1$I.bound(at, layout, false);
BEGIN
    RETURN CASE WHEN b.tick < 0 THEN -1 ELSE (least(b.tick, b.highest)::bigint << b.time_at) | ((1::bigint << b.time_at) - 1) END;
END $$;
CREATE FUNCTION %1$I.snowflake_max_id_before(at timestamptz, layout text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    b record := %1$I.bound(at, layout, true);
BEGIN
    RETURN CASE WHEN at = 'infinity' THEN 9223372036854775807 WHEN b.tick <= 0 THEN -1
                ELSE (least(b.tick - 1, b.highest)::bigint << b.time_at) | ((1::bigint << b.time_at) - 1) END;
END $$;
CREATE FUNCTION %1$I.snowflake_min_id(at timestamptz) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT %1$I.snowflake_min_id(at, 'default'::pg_catalog.text) $$;
CREATE FUNCTION %1$I.snowflake_max_id(at timestamptz) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT %1$I.snowflake_max_id(at, 'default'::pg_catalog.text) $$;
CREATE FUNCTION %1$I.snowflake_max_id_before(at timestamptz) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT %1$I.snowflake_max_id_before(at, 'default'::pg_catalog.text) $$;
CREATE FUNCTION %1$I.snowflake_between(id bigint, since timestamptz, until timestamptz) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT id OPERATOR(pg_catalog.>=) %1$I.snowflake_min_id(since, 'default'::pg_catalog.text)
             AND id OPERATOR(pg_catalog.<=) %1$I.snowflake_max_id_before(until, 'default'::pg_catalog.text) $$;
CREATE FUNCTION %1$I.snowflake_between(id bigint, since timestamptz, until timestamptz, layout text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT id OPERATOR(pg_catalog.>=) %1$I.snowflake_min_id(since, layout)
             AND id OPERATOR(pg_catalog.<=) %1$I.snowflake_max_id_before(until, layout) $$;

-- Text. The digits of an encoding, and how many an ID has.
CREATE FUNCTION %1$I.digits(encoding text, OUT digits text, OUT base bigint, OUT width int) LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF encoding = 'base32' THEN
        digits := '0123456789ABCDEFGHJKMNPQRSTVWXYZ'; base := 32; width := 13;
    ELSIF encoding = 'base62' THEN
        digits := '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'; base := 62; width := 11;
    ELSE
        PERFORM %1$I.refuse('22023', format('unrecognized encoding: "%%s"', left(encoding, 200)), 'Encodings are base32 and base62.', '');
    END IF;
END $$;
CREATE FUNCTION %1$I.snowflake_to_text(id bigint, encoding text DEFAULT 'base32') RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    d record := %1$I.digits(encoding);
    rest bigint := %1$I.checked(id);
    result text := '';
BEGIN
    FOR place IN 1..d.width LOOP
        result := substr(d.digits, mod(rest, d.base)::int + 1, 1) || result;
        rest := rest / d.base;
    END LOOP;
    RETURN result;
END $$;
CREATE FUNCTION %1$I.snowflake_from_text(text text, encoding text DEFAULT 'base32') RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    d record := %1$I.digits(encoding);
    digits CONSTANT text := CASE encoding WHEN 'base32'
        THEN translate(text, 'abcdefghjkmnpqrstvwxyzOoIiLl', 'ABCDEFGHJKMNPQRSTVWXYZ001111') ELSE text END COLLATE "C";
    number numeric := 0;
BEGIN
    IF digits <> translate(digits, translate(digits, d.digits COLLATE "C", ''), '') THEN
        PERFORM %1$I.refuse('22P02', format('invalid input syntax for snowflake ID: "%%s"', left(text, 200)),
            format('A character is not a %%s digit.', encoding), '');
    ELSIF length(digits) <> d.width THEN
        PERFORM %1$I.refuse('22P02', format('invalid input syntax for snowflake ID: "%%s"', left(text, 200)),
            format('It has %%s characters; a %%s ID has %%s.', length(digits), encoding, d.width), '');
    END IF;
    FOR place IN 1..d.width LOOP
        number := number * d.base + strpos(d.digits COLLATE "C", substr(digits, place, 1)) - 1;
    END LOOP;
    IF number > 9223372036854775807 THEN
        PERFORM %1$I.refuse('22003', format('"%%s" is out of range for a snowflake ID', text),
            format('The largest ID is "%%s".', %1$I.snowflake_to_text(9223372036854775807, encoding)), '');
    END IF;
    RETURN number;
END $$;

-- What is wrong with the installation.
CREATE FUNCTION %1$I.snowflake_audit_installation() RETURNS TABLE (finding text, object text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    WITH used AS (
        SELECT c.oid::regclass::text AS name, c.*, s.*, n.nspowner
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace LEFT JOIN pg_sequence AS s ON s.seqrelid = c.oid
        WHERE n.nspname = %4$L AND c.relname IN ('ids', 'mark'))
    SELECT f.finding, u.name
    FROM used AS u CROSS JOIN LATERAL (VALUES
        ('CACHE above 1', u.seqcache <> 1), ('CYCLE', u.seqcycle), ('another increment', u.seqincrement <> 1),
        ('other limits', u.seqmin <> 1 OR u.seqmax <> 9223372036854775807),
        ('not a logged sequence', u.relkind <> 'S' OR u.relpersistence <> 'p'),
        ('was reset', CASE WHEN u.relkind = 'S' THEN pg_sequence_last_value(u.oid) IS NULL END),
        ('was restarted or restored', NOT pg_relation_filenode(u.oid) = ANY ((SELECT i.files FROM %1$I.installation() AS i)::oid[])),
        ('has another owner than the schema', u.relowner <> u.nspowner)) AS f (finding, is_found)
    WHERE f.is_found
  UNION ALL
    SELECT 'may be set by ' || CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(a.grantee) END, u.name
    FROM used AS u CROSS JOIN LATERAL aclexplode(u.relacl) AS a WHERE a.privilege_type = 'UPDATE' AND a.grantee <> u.relowner
  UNION ALL
    SELECT 'objects may be created by ' || CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(a.grantee) END, quote_ident(%4$L)
    FROM pg_namespace AS n CROSS JOIN LATERAL aclexplode(n.nspacl) AS a
    WHERE n.nspname = %4$L AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner
  UNION ALL
    SELECT CASE WHEN p.prosecdef THEN 'is SECURITY DEFINER' ELSE 'has another owner than the schema' END, p.oid::regprocedure::text
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname = %4$L AND (p.prosecdef OR p.proowner <> n.nspowner)
  UNION ALL
    SELECT 'was installed in another database', current_database()::text
    FROM pg_database AS d WHERE d.datname = current_database() AND d.oid <> (SELECT i.database FROM %1$I.installation() AS i)
  UNION ALL
    SELECT 'a sequence is missing', quote_ident(%4$L) WHERE (SELECT count(*) FROM used) <> 2
  UNION ALL
    SELECT 'no node number from 0 to 63', quote_ident(%4$L) WHERE (%1$I.snowflake_own_node() BETWEEN 0 AND 63) IS NOT TRUE
$$;

-- Records where the sequences are, and the node number: at installation, and by their
-- owner after a restore or in a copy.
CREATE FUNCTION %1$I.snowflake_adopt(node_id integer) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $adopt$
DECLARE
    found record;
BEGIN
    IF (node_id BETWEEN 0 AND 63) IS NOT TRUE THEN
        PERFORM %1$I.refuse('22023', 'a node number from 0 to 63 is required', 'Each database on each server needs another one.', '');
    END IF;
    EXECUTE format($$CREATE OR REPLACE FUNCTION %%I.snowflake_own_node() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
        AS 'SELECT %%s::pg_catalog.int8'$$, %4$L, node_id);
    EXECUTE format($$CREATE OR REPLACE FUNCTION %%I.installation(OUT database oid, OUT files oid[]) LANGUAGE sql STABLE PARALLEL SAFE
        AS 'SELECT %%s::pg_catalog.oid, ''{%%s,%%s}''::pg_catalog.oid[]'$$, %4$L,
        (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()), pg_relation_filenode(%2$L), pg_relation_filenode(%3$L));
    FOR found IN SELECT * FROM %1$I.snowflake_audit_installation() LOOP
        PERFORM %1$I.refuse('55000', format('%%s: %%s', found.object, found.finding), 'snowflake_audit_installation() shows all.', '');
    END LOOP;
    RAISE NOTICE 'IDs of this database have the node number %%', node_id
        USING HINT = 'Whether another database or server uses this number cannot be seen from here.';
END $adopt$;

-- No ID of this installation is smaller.
CREATE FUNCTION %1$I.snowflake_first_id() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT %5$s::pg_catalog.int8';
$create$, :'schema', format('%I.mark', :'schema'), format('%I.ids', :'schema'), :'schema', (:first_mark::bigint - 40) << 29) \gexec

-- Default privileges may have granted more.
SELECT format('REVOKE ALL ON SEQUENCE %s FROM %s', c.oid::regclass, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
WHERE c.relnamespace = quote_ident(:'schema')::regnamespace AND c.relkind = 'S' AND a.grantee <> c.relowner GROUP BY 1 \gexec
GRANT USAGE ON SEQUENCE :"schema".ids, :"schema".mark TO PUBLIC;
COMMENT ON SCHEMA :"schema" IS 'Snowflake IDs in SQL alone; see docs/without-library.md of the extension snowflake';
COMMENT ON SEQUENCE :"schema".ids IS 'Numbers of IDs. setval() on it can repeat an ID';
COMMENT ON SEQUENCE :"schema".mark IS
    'The unit of 128 ms that the clock has reached. setval() on it can repeat IDs, or refuse them';
COMMENT ON FUNCTION :"schema".snowflake_nextval() IS 'Returns the next ID: for the DEFAULT of a bigint primary key';
COMMENT ON FUNCTION :"schema".snowflake_audit_installation() IS
    'What is wrong with the sequences, the privileges and the node number; no rows if nothing is';
COMMENT ON FUNCTION :"schema".snowflake_adopt(integer) IS
    'Sets the node number and records the sequences: for the owner, after a restore or in a copy';
SELECT format('SELECT %I.snowflake_adopt(%s)', :'schema', :'set_node') \gexec
-- Default privileges may have granted less. No function runs with other privileges than the caller's.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA :"schema" TO PUBLIC;
COMMIT;

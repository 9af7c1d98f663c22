-- What snowflake_audit finds, with the number of IDs and an example, which is a row's note here.
SET TimeZone = 'UTC'; CREATE TABLE t (id bigint DEFAULT snowflake_nextval(), note text); INSERT INTO t (note) SELECT 'own ' || n FROM generate_series(1, 1000) AS n;
INSERT INTO t VALUES (NULL), (NULL);
CREATE FUNCTION pg_temp.audit(arguments text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE format('SELECT coalesce(string_agg(format(''%%s: %%s, %%s'', finding, ids, coalesce((SELECT min(note) FROM t WHERE id = example), example::text)), ''; ''), ''nothing'')
        FROM snowflake_audit(%s)', arguments) INTO result;
    RETURN result;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
-- After a change, which is rolled back. A table's n-th ID is own[n].
CREATE FUNCTION pg_temp.after(change text, arguments text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE regexp_replace(change, 'own\[(\d+)\]', '(SELECT id FROM t WHERE note = ''own \1'' LIMIT 1)', 'g');
    result := pg_temp.audit(regexp_replace(arguments, 'own\[(\d+)\]', '(SELECT id FROM t WHERE note = ''own \1'' LIMIT 1)', 'g'));
    RAISE SQLSTATE 'RB000';
EXCEPTION WHEN SQLSTATE 'RB000' THEN
    RETURN result;
END $$;
\pset format unaligned
\pset tuples_only on
SELECT format('%s: %s', arguments, pg_temp.after('INSERT INTO t ' || change, arguments)) FROM (VALUES
    ($$SELECT 0 WHERE false$$, $$'t'$$),
    ($$VALUES (own[11], 'b'), (own[11], 'a'), (own[501], 'a')$$, $$'t'$$),
    ($$VALUES (-7), (-1), (-9223372036854775808)$$, $$'t'$$),
    ($$SELECT snowflake_compose(clock_timestamp() + ahead, 2, 0, n), 'in ' || ahead || n FROM unnest('{1 hour,2500 ms}'::interval[]) AS ahead, generate_series(0, 1) AS n$$, $$'t', expected_nodes => '{1,2,NULL}'$$),
    ($$VALUES (snowflake_compose('2026-01-01', 2, 0, 0), 'of 2'), (snowflake_compose('2026-01-02', 3, 0, 0), 'of 3')$$, $$'t'$$),
    ($$VALUES (snowflake_compose('2026-01-01', 2, 0, 0), 'of 2'), (snowflake_compose('2026-01-02', 3, 0, 0), 'of 3')$$, $$'t', expected_nodes => '{3,1}'$$),
    ($$VALUES (snowflake_compose('2026-01-01', 2, 0, 0), 'of 2'), (snowflake_compose('2026-01-02', 3, 0, 0), 'of 3')$$, $$'t', expected_nodes => '{}'$$),
    ($$SELECT n FROM generate_series(-5, 99) AS n$$, $$'t', expected_nodes => '{1}'$$),
    ($$SELECT n FROM generate_series(-5, 99) AS n$$, $$'t', expected_nodes => '{1}', boundary => own[1]$$),
    ($$SELECT n FROM generate_series(-5, 99) AS n UNION ALL VALUES (50), (50)$$, $$'t', NULL, '{1}', own[2]$$),
    ($$VALUES (snowflake_compose(clock_timestamp() + interval '1 hour', 1, 0, 0), 'later')$$, $$'t'$$),
    ($$VALUES (-3, 'w'), (snowflake_compose('2026-01-02', 3, 0, 0), 'of 3'), (snowflake_compose(clock_timestamp() + interval '1 hour', 2, 0, 0), 'later'), (1, 'x'), (1, 'x'), (own[5], 'a')$$,
        $$'t', expected_nodes => '{1}', boundary => -10$$)) AS c (change, arguments);
-- IDs a tick above the last one of each slot that has issued any: as many are found, all of them.
SELECT pg_temp.after($$INSERT INTO t SELECT bound + (1 << 22), 'above a slot' FROM snowflake_internal.get_stat_slots() WHERE bound IS NOT NULL$$, $$'t'$$)
    = format('IDs with this server''s node number that it cannot have issued: %s, above a slot', count(bound)) AS all_found FROM snowflake_internal.get_stat_slots();
-- Up to a mark that was set, an ID may be this server's.
SELECT snowflake_compose(clock_timestamp() + interval '200 ms', 1, 3, 0) AS ahead \gset
SELECT pg_temp.after(format('INSERT INTO t VALUES (%s, ''set'')', :ahead), $$'t'$$);
SELECT snowflake_start_after(:ahead);
SELECT pg_temp.after(format('INSERT INTO t VALUES (%s, ''set'')', :ahead), $$'t'$$);
-- Across partitions and children, each with a unique index of its own.
CREATE TABLE parts (region text NOT NULL, id bigint DEFAULT snowflake_nextval(), PRIMARY KEY (region, id)) PARTITION BY LIST (region);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a'); CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN ('b'); CREATE UNIQUE INDEX ON parts_a (id);
CREATE UNIQUE INDEX ON parts_b (id); INSERT INTO parts (region) SELECT 'a' FROM generate_series(1, 300); INSERT INTO parts SELECT 'b', id FROM parts ORDER BY id LIMIT 25;
CREATE TABLE parent (id bigint PRIMARY KEY DEFAULT snowflake_nextval()); CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
INSERT INTO parent SELECT FROM generate_series(1, 100); INSERT INTO child TABLE parent LIMIT 7;
SELECT name, finding, ids FROM unnest('{parts,parts_b,parent,child}'::text[]) AS name, snowflake_audit(name, 'id');
-- Scans of a table: one, where an index proves that no ID is repeated.
CREATE TABLE keyed (id bigint PRIMARY KEY DEFAULT snowflake_nextval()); CREATE TABLE bare (id bigint DEFAULT snowflake_nextval());
CREATE TABLE partial (id bigint DEFAULT snowflake_nextval(), is_live boolean); CREATE UNIQUE INDEX ON partial (id) WHERE is_live;
CREATE TABLE twofold (id bigint DEFAULT snowflake_nextval(), n int, UNIQUE (id, n)); CREATE TABLE covering (id bigint DEFAULT snowflake_nextval(), n int);
CREATE UNIQUE INDEX ON covering (id) INCLUDE (n); CREATE TABLE late (id bigint DEFAULT snowflake_nextval() UNIQUE DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE broken (id bigint DEFAULT snowflake_nextval()); CREATE TABLE by_id (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
CREATE TABLE by_id_1 PARTITION OF by_id DEFAULT; CREATE TABLE only_parent (id bigint DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
CREATE TABLE only_parent_1 PARTITION OF only_parent DEFAULT; CREATE UNIQUE INDEX ON ONLY only_parent (id);
INSERT INTO broken VALUES (132271570944000000), (132271570944000000);
\set VERBOSITY sqlstate
CREATE UNIQUE INDEX CONCURRENTLY ON broken (id);
\set VERBOSITY default
INSERT INTO only_parent VALUES (132271570944000000), (132271570944000000);
CREATE FUNCTION pg_temp.scans(name text, OUT scans bigint, OUT findings text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %I (id) SELECT snowflake_nextval() FROM generate_series(1, 50)', name);
    scans := (SELECT sum(seq_scan + coalesce(idx_scan, 0)) FROM pg_stat_xact_user_tables WHERE relname ~ ('^' || name));
    findings := pg_temp.audit(quote_literal(name));
    scans := (SELECT sum(seq_scan + coalesce(idx_scan, 0)) FROM pg_stat_xact_user_tables WHERE relname ~ ('^' || name)) - scans;
END $$;
SELECT name, s.* FROM unnest('{keyed,bare,partial,twofold,covering,late,broken,by_id,only_parent}'::text[]) AS name, pg_temp.scans(name) AS s;
SELECT split_part(pg_temp.after('INSERT INTO late SELECT min(id) FROM late', $$'late'$$), ',', 1);
-- Any name, types that are no bigint, and the column where none is named.
CREATE SCHEMA "Other Schema"; CREATE TABLE "Other Schema"."Mixed ""Case"" 'name' %s" (gone int, "The ""ID"" %I" bigint DEFAULT snowflake_nextval());
ALTER TABLE "Other Schema"."Mixed ""Case"" 'name' %s" DROP COLUMN gone; INSERT INTO "Other Schema"."Mixed ""Case"" 'name' %s" VALUES (DEFAULT), (-5);
CREATE TABLE "t; DROP TABLE bare --" ("id; DROP TABLE bare --" bigint DEFAULT snowflake_nextval()); INSERT INTO "t; DROP TABLE bare --" VALUES (DEFAULT), (-1);
CREATE TEMP TABLE passing (id bigint DEFAULT snowflake_nextval()); INSERT INTO passing VALUES (-1); CREATE DOMAIN number AS bigint;
CREATE DOMAIN positive AS number CHECK (VALUE <> 0); CREATE TABLE of_domain (id positive DEFAULT snowflake_nextval()); INSERT INTO of_domain VALUES (-1), (DEFAULT);
CREATE TABLE numbered (id positive PRIMARY KEY); INSERT INTO numbered VALUES (-1);
CREATE TABLE old (id serial, parent smallint); INSERT INTO old (parent) SELECT -1 FROM generate_series(1, 9);
CREATE TABLE two (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), other bigint DEFAULT snowflake_nextval()); INSERT INTO two VALUES (-1, DEFAULT);
CREATE TABLE fed (n serial, id bigint DEFAULT snowflake_nextval()); INSERT INTO fed VALUES (1, -1); CREATE VIEW seen AS TABLE t; CREATE SEQUENCE numbers;
CREATE TABLE mixed (id uuid, at timestamptz, price numeric, a bigint DEFAULT snowflake_nextval(), b bigint DEFAULT snowflake_nextval()); CREATE TABLE plain (id bigint);
SELECT format('%s: %s', arguments, pg_temp.audit(arguments)) FROM unnest(ARRAY[$$'"Other Schema"."Mixed ""Case"" ''name'' %s"'$$, $$'"Other Schema"."Mixed ""Case"" ''name'' %s"', 'The "ID" %I'$$,
    $$'"t; DROP TABLE bare --"'$$, $$'passing'$$, $$'of_domain'$$, $$'numbered'$$, $$'old', 'parent'$$, $$'two'$$, $$'two', 'other'$$, $$'fed'$$, $$'old'$$, $$'old', 'id'$$, $$'old', 'id', boundary => 1000$$,
    $$'seen'$$, $$'numbers'$$, $$'seen', 'id'$$, $$0, 'id'$$, $$NULL, 'id'$$, $$'t', 'nothing'$$, $$'t', 'ctid'$$, $$'t', 'note'$$, $$'mixed', 'id'$$, $$'mixed', 'price'$$, $$'mixed'$$, $$'plain'$$]) AS arguments;
-- A search path with traps.
CREATE SCHEMA trap;
SELECT format('CREATE FUNCTION trap.%s LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION $s$sprung$s$; END''', f)
FROM unnest('{snowflake_node_id(bigint) RETURNS int,clock_timestamp() RETURNS timestamptz,"more(bigint, bigint) RETURNS boolean"}'::text[]) AS f \gexec
CREATE OPERATOR trap.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.more); CREATE TABLE trap.mark (last_value bigint, log_cnt bigint);
SET search_path = trap, pg_catalog, public;
SELECT 2::bigint > 1::bigint;
SELECT * FROM public.snowflake_audit('t');
RESET search_path;
-- Roles: those that may read the column, if no policy hides rows of it.
CREATE ROLE regress_reader; CREATE ROLE regress_seer BYPASSRLS; INSERT INTO t (id, note) VALUES (-1, 'negative'); GRANT SELECT (id, note) ON t TO regress_reader;
GRANT SELECT ON t TO regress_seer; ALTER TABLE t ADD secret text; SET ROLE regress_reader;
SELECT pg_temp.audit($$'t'$$), pg_temp.audit($$'keyed'$$);
RESET ROLE; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY hiding ON t USING (id > 0); SET ROLE regress_reader;
SELECT pg_temp.audit($$'t'$$);
SET ROLE regress_seer;
SELECT pg_temp.audit($$'t'$$);
RESET ROLE;
-- The boundary of a migrated column is the default one; rows from the former sequence.
SET client_min_messages = error; CREATE TABLE orders (id serial PRIMARY KEY, n int); INSERT INTO orders (n) SELECT n FROM generate_series(1, 1000) AS n;
INSERT INTO orders VALUES (5000); GRANT SELECT ON orders TO regress_reader;
CALL snowflake_migrate.run('orders');
INSERT INTO orders (n) SELECT 1 FROM generate_series(1, 100);
SELECT pg_temp.audit($$'orders'$$), pg_temp.after($$INSERT INTO orders VALUES (snowflake_compose('2025-06-01', 5, 0, 0))$$, $$'orders'$$) ~ 'below the boundary: 1,' AS below,
    pg_temp.after('INSERT INTO orders VALUES (snowflake_compose(now(), 5, 0, 0))', $$'orders', expected_nodes => '{1}'$$) ~ 'unexpected nodes: 1,' AS unexpected;
SELECT finding, ids FROM snowflake_audit('orders', boundary => 11);
SELECT nextval('orders_id_seq');
SELECT count(*) FROM snowflake_migrate.audit('orders');
INSERT INTO orders SELECT nextval('orders_id_seq') FROM generate_series(1, 7);
SELECT * FROM snowflake_migrate.audit('orders');
SET ROLE regress_reader;
SELECT count(*), snowflake_id_boundary('orders') > 0 FROM snowflake_migrate.audit('orders');
RESET ROLE;
-- Of all tables, one that cannot be read is a finding.
ALTER TABLE orders OWNER TO regress_reader; ALTER TABLE orders ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT migrated_table, finding FROM snowflake_migrate.audit();
ALTER TABLE orders OWNER TO CURRENT_USER; ALTER TABLE orders DISABLE ROW LEVEL SECURITY;
CALL snowflake_migrate.revert('orders');
INSERT INTO orders (n) VALUES (2);
SELECT count(*) FROM snowflake_migrate.audit('orders');
DROP SCHEMA trap, "Other Schema" CASCADE; DROP VIEW seen;
DROP TABLE t, parts, parent, child, keyed, bare, partial, twofold, covering, late, broken, by_id, only_parent, "t; DROP TABLE bare --", of_domain, numbered, old, two, fed, mixed, plain, orders;
DROP DOMAIN positive, number; DROP SEQUENCE numbers; DROP ROLE regress_reader, regress_seer;

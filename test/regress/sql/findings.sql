-- Code that a migration breaks, or that continues to use the old sequence: what is found, and what is not.
SET check_function_bodies = off;
SET client_min_messages = error;
\set ECHO none
CREATE TABLE codes (schema text, setup text);
INSERT INTO codes VALUES
    ('a01', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN INSERT INTO orders_history SELECT 'u', OLD.*; RETURN NULL; END $f$; CREATE TRIGGER "a trigger" AFTER UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('a02', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN Insert /* a comment; */ Into orders_history VALUES ('i', New . *); RETURN NULL; END $f$; CREATE TRIGGER "a trigger" AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('a03', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN EXECUTE 'INSERT INTO a03.orders_history SELECT ''d'', $1.*' USING OLD; RETURN NULL; END $f$; CREATE TRIGGER "a trigger" AFTER DELETE ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('a04', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN INSERT INTO orders_history SELECT 'd', * FROM gone; RETURN NULL; END $f$; CREATE TRIGGER "a trigger" AFTER DELETE ON orders REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION f();$code$),
    ('a05', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN INSERT INTO copies SELECT OLD.*; RETURN NULL; END $f$; CREATE TRIGGER "a trigger" AFTER DELETE ON items FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('a06', $code$CREATE FUNCTION archive() RETURNS void LANGUAGE sql AS 'INSERT INTO a06.orders_history SELECT ''a'', * FROM a06.orders'$code$),
    ('a07', $code$CREATE FUNCTION archive() RETURNS void LANGUAGE sql AS 'WITH gone AS (DELETE FROM orders RETURNING *) INSERT INTO orders_history SELECT ''a'', * FROM gone'$code$),
    ('a08', $code$CREATE FUNCTION few() RETURNS SETOF orders LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT id, n, note FROM orders; END'$code$),
    ('a09', $code$CREATE FUNCTION add() RETURNS void LANGUAGE sql AS 'INSERT INTO orders VALUES (DEFAULT, 1)'$code$),
    ('b01', $code$CREATE FUNCTION inc(x int) RETURNS void LANGUAGE sql AS 'SELECT';CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM inc(NEW.id); RETURN NULL; END $f$; CREATE TRIGGER "a trigger" AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('b02', $code$CREATE FUNCTION inc(t text, x int DEFAULT 0, y int DEFAULT 0) RETURNS void LANGUAGE sql AS 'SELECT';CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM b02.inc(lower('A'), COALESCE(NEW.order_id, 0)); RETURN NULL; END $f$; CREATE TRIGGER "a trigger" AFTER INSERT ON items FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('b03', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM pg_advisory_xact_lock(1, NEW.id); RETURN NEW; END $f$; CREATE TRIGGER "a trigger" BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('b04', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ DECLARE v int; BEGIN v := NEW.id; RETURN NULL; END $f$; CREATE TRIGGER "a trigger" AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('c01', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN NEW.id := nextval('orders_id_seq'); RETURN NEW; END $f$; CREATE TRIGGER "a trigger" BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('c02', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN SELECT nextval('c02.orders_id_seq') INTO NEW.id; RETURN NEW; END $f$; CREATE TRIGGER "a trigger" BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('c03', $code$CREATE FUNCTION add() RETURNS int LANGUAGE plpgsql AS 'DECLARE i int := NextVal(''c03."orders_id_seq"''::regclass); BEGIN INSERT INTO orders (id) VALUES (i); RETURN i; END'; CREATE FUNCTION last() RETURNS bigint LANGUAGE sql AS 'SELECT currval(pg_get_serial_sequence(''c03.orders'', ''id''))'; CREATE FUNCTION lost() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN INSERT INTO orders (n) VALUES (1); RETURN lastval(); END'; CREATE VIEW next AS SELECT nextval('orders_id_seq')$code$),
    ('d01', $code$CREATE FUNCTION activity() RETURNS TABLE (n integer, of integer) LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT count(*)::integer, order_id FROM items GROUP BY order_id; END'; CREATE FUNCTION ids() RETURNS SETOF integer LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT o.id FROM d01.orders o; END'$code$),
    ('d02', $code$CREATE FUNCTION add() RETURNS void LANGUAGE plpgsql AS 'DECLARE v integer; BEGIN INSERT INTO orders (n) VALUES (1) RETURNING id INTO v; END'$code$),
    ('d03', $code$CREATE FUNCTION add() RETURNS integer LANGUAGE sql AS 'INSERT INTO orders (n) VALUES (1) RETURNING id'$code$),
    ('d04', $code$CREATE FUNCTION last(OUT o integer) LANGUAGE plpgsql AS 'BEGIN SELECT max(id) INTO STRICT o FROM orders; END'; CREATE FUNCTION first() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT id FROM orders ORDER BY id LIMIT 1); END'$code$),
    ('d05', $code$CREATE FUNCTION newest() RETURNS integer BEGIN ATOMIC SELECT max(id) FROM orders; END; CREATE FUNCTION next_order() RETURNS integer RETURN (SELECT nextval('orders_id_seq')::integer)$code$),
    ('h01', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN IF NEW.* IS DISTINCT FROM OLD.* OR (OLD.*) <> (NEW.*) THEN INSERT INTO orders_history (op, id) VALUES ('u', OLD.id); END IF; RETURN NULL; END $f$; CREATE TRIGGER "a trigger" AFTER UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('h02', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN IF NEW.id IS NULL THEN NEW.id := nextval('orders_id_seq'); END IF; RETURN NEW; END $f$; CREATE TRIGGER "a trigger" BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('h03', $code$CREATE FUNCTION inc(x int) RETURNS void LANGUAGE sql AS 'SELECT'; CREATE FUNCTION inc(x numeric) RETURNS void LANGUAGE sql AS 'SELECT';CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM inc(NEW.id), inc(NEW.n), abs(NEW.id), to_char(NEW.id, '9'), pg_advisory_xact_lock(NEW.id); RETURN NULL; END $f$; CREATE TRIGGER "a trigger" AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('h04', $code$CREATE FUNCTION inc(x int) RETURNS void LANGUAGE sql AS 'SELECT';CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN -- PERFORM inc(NEW.id); INSERT INTO orders_history SELECT NEW.*;
 /* NEW.id := nextval('x') /* ; */ */ PERFORM inc(NEW.n); RAISE NOTICE 'id %', NEW.id; RETURN NULL; END $f$; CREATE TRIGGER "a trigger" AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('h05', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN IF TG_OP = 'UPDATE' THEN NEW.id := OLD.id; END IF; NEW.note := lower(NEW.note); RETURN NEW; END $f$; CREATE TRIGGER "a trigger" BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('h06', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN NEW.id := snowflake_nextval(); RETURN NEW; END $f$; CREATE TRIGGER "a trigger" BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('h07', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN INSERT INTO orders_history SELECT NEW.*; RETURN NULL; END $f$; CREATE TRIGGER "a trigger" AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f();ALTER TABLE orders DISABLE TRIGGER "a trigger"$code$),
    ('h08', $code$CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ DECLARE v bigint; w int; r orders; BEGIN v := NEW.id; w := NEW.n; r := NEW; INSERT INTO orders_history (note) VALUES (to_jsonb(NEW)::text); PERFORM count(*) FROM orders; RETURN NULL; END $f$; CREATE TRIGGER "a trigger" AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f();$code$),
    ('h09', $code$CREATE FUNCTION g() RETURNS SETOF orders LANGUAGE sql AS 'SELECT o.* FROM orders AS o'; CREATE FUNCTION k() RETURNS bigint LANGUAGE sql AS 'SELECT nextval(''h10.orders_id_seq'')'; CREATE FUNCTION m() RETURNS void LANGUAGE sql AS 'INSERT INTO orders_history (id) SELECT o.id FROM orders AS o WHERE EXISTS (SELECT * FROM items)'$code$),
    ('h11', $code$CREATE FUNCTION a() RETURNS TABLE (n integer, of bigint) LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT count(*)::integer, order_id::bigint FROM items GROUP BY 2; END'; CREATE FUNCTION b() RETURNS TABLE (n integer, of integer) LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT count(*)::integer, order_id::integer FROM items GROUP BY 2; END'; CREATE FUNCTION c() RETURNS void LANGUAGE plpgsql AS 'DECLARE v bigint; n integer; BEGIN INSERT INTO orders (n) VALUES (1) RETURNING id INTO v; SELECT count(*), max(id) INTO n, v FROM orders; END'; CREATE FUNCTION d() RETURNS integer LANGUAGE sql AS 'SELECT h.n FROM orders AS o JOIN orders_history AS h ON h.id = o.id'; CREATE FUNCTION e() RETURNS void LANGUAGE plpgsql AS 'DECLARE v orders.id%TYPE; BEGIN SELECT id INTO v FROM orders; END'; CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT count(id)::integer FROM orders'$code$),
    ('h10', $code$SELECT$code$);
\set ECHO all
\pset format unaligned
\pset tuples_only on
-- Code that is affected: a warning or a note, of an online plan alone, or of a window's, too.
\set ECHO none
SELECT format('CREATE SCHEMA %1$s; SET search_path = %1$s, public; CREATE TABLE orders (id serial PRIMARY KEY, n int, note text);
    CREATE TABLE items (id bigserial PRIMARY KEY, order_id int REFERENCES orders, n int); CREATE TABLE orders_history (op text, id bigint, n int, note text);
    CREATE TABLE copies (id bigint, order_id bigint, n int); ', schema) || setup FROM codes WHERE schema ~ '^[abcd]' \gexec
\set ECHO all
RESET search_path;
SELECT * FROM (SELECT DISTINCT n.nspname, CASE WHEN f.breaks_writes THEN 'warning' ELSE 'note' END, CASE WHEN w.finding IS NULL THEN 'online' ELSE 'both' END, concat_ws(' ', f.object, f.finding), f.remedy
FROM pg_namespace AS n, LATERAL (SELECT ARRAY[(format('%s.orders', n.nspname)::regclass, 'id')::snowflake_migrate_internal.key] AS keys) AS k,
    LATERAL snowflake_migrate_internal.findings(k.keys, true) AS f
    LEFT JOIN LATERAL (SELECT * FROM snowflake_migrate_internal.findings(k.keys, false)) AS w ON (w.object, w.finding) = (f.object, f.finding)
WHERE n.nspname ~ '^[abcdh]\d\d$' AND f.object ~ (n.nspname || '\.') ) AS f (schema, kind, plans, finding, remedy) ORDER BY schema, finding COLLATE "C", kind;
-- A plan warns, and what is warned of happens.
SET client_min_messages = warning;
SELECT count(*) > 0 FROM snowflake_migrate.plan('b01.orders');
SET client_min_messages = error;
CALL snowflake_migrate.run('b01.orders');
CALL snowflake_migrate.run('c01.orders');
\c -
SET search_path = b01, public;
\set VERBOSITY terse
INSERT INTO orders (n) VALUES (1);
INSERT INTO c01.orders (n) VALUES (1) RETURNING id;
RESET search_path;
-- Code that is not affected.
SET check_function_bodies = off;
SET client_min_messages = error;
\set ECHO none
SELECT format('DROP SCHEMA %I CASCADE', schema) FROM codes WHERE schema ~ '^[abcd]' \gexec
SELECT format('CREATE SCHEMA %1$s; SET search_path = %1$s, public; CREATE TABLE orders (id serial PRIMARY KEY, n int, note text);
    CREATE TABLE items (id bigserial PRIMARY KEY, order_id int REFERENCES orders, n int); CREATE TABLE orders_history (op text, id bigint, n int, note text);
    CREATE TABLE copies (id bigint, order_id bigint, n int); ', schema) || setup FROM codes WHERE schema ~ '^h' \gexec
\set ECHO all
RESET search_path;
SELECT * FROM (SELECT DISTINCT n.nspname, CASE WHEN f.breaks_writes THEN 'warning' ELSE 'note' END, CASE WHEN w.finding IS NULL THEN 'online' ELSE 'both' END, concat_ws(' ', f.object, f.finding), f.remedy
FROM pg_namespace AS n, LATERAL (SELECT ARRAY[(format('%s.orders', n.nspname)::regclass, 'id')::snowflake_migrate_internal.key] AS keys) AS k,
    LATERAL snowflake_migrate_internal.findings(k.keys, true) AS f
    LEFT JOIN LATERAL (SELECT * FROM snowflake_migrate_internal.findings(k.keys, false)) AS w ON (w.object, w.finding) = (f.object, f.finding)
WHERE n.nspname ~ '^h\d\d$' AND f.object ~ (n.nspname || '\.') ) AS f (schema, kind, plans, finding, remedy) ORDER BY schema, finding COLLATE "C", kind;
-- Names of any kind.
CREATE FUNCTION pg_temp.stages(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE format('CREATE SCHEMA s; CREATE TABLE s.%1$I (%1$I serial PRIMARY KEY, n int); CREATE TABLE s.h (%1$I int, n int); CREATE FUNCTION s.%1$I(x int) RETURNS void LANGUAGE sql AS %2$L;
        CREATE FUNCTION s.trg() RETURNS trigger LANGUAGE plpgsql AS %3$L; CREATE FUNCTION s.copy() RETURNS void LANGUAGE plpgsql AS %4$L;
        CREATE TRIGGER %1$I BEFORE INSERT ON s.%1$I FOR EACH ROW EXECUTE FUNCTION s.trg()', name, 'SELECT', format('BEGIN PERFORM s.%1$I(NEW.%1$I); RETURN NEW; END', name),
        format('BEGIN INSERT INTO s.h SELECT * FROM s.%I; END', name));
    SET LOCAL client_min_messages = error;
    result := (SELECT string_agg(DISTINCT f.stage, ' ' ORDER BY f.stage) FROM pg_class AS c, snowflake_migrate_internal.findings(ARRAY[(c.oid, c.relname)::snowflake_migrate_internal.key], true) AS f
        WHERE c.relnamespace = 's'::regnamespace AND c.relname = name);
    PERFORM count(*) FROM pg_class AS c, snowflake_migrate.plan(c.oid::regclass, online => true), snowflake_migrate.unlinked(c.oid::regclass) WHERE c.relnamespace = 's'::regnamespace AND c.relname = name;
    DROP SCHEMA s CASCADE;
    RETURN result;
END $$;
SELECT name, pg_temp.stages(name) FROM unnest(ARRAY['a"b', '100%', 'a.b*c+[d]', '(x|y)', 'back\slash', 'sp ace', '$do$', U&'Stra\00DFe', 'select']) AS name;
SET client_min_messages = error;
\set ECHO none
SELECT format('DROP SCHEMA %I CASCADE', schema) FROM codes WHERE schema ~ '^h' \gexec
\set ECHO all
DROP TABLE codes;

//! Privileges, policies, publications, row types and functions.

use super::{ENTRY, Entry, Outcome};

/// The entries.
#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "grants with their grantors, on columns too, and comments",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text, secret text); INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 50);
            GRANT SELECT (id, note), UPDATE (note) ON orders TO reader WITH GRANT OPTION; GRANT USAGE ON SCHEMA shop TO reader, auditor; SET ROLE reader; GRANT SELECT (id) ON shop.orders TO auditor; RESET ROLE; SET ROLE keeper;
            GRANT REFERENCES (id) ON orders TO PUBLIC; GRANT SELECT, USAGE ON SEQUENCE orders_id_seq TO reader WITH GRANT OPTION;
            COMMENT ON TABLE orders IS 'a table'; COMMENT ON COLUMN orders.id IS 'it''s the key'; COMMENT ON CONSTRAINT orders_pkey ON orders IS 'a constraint'; COMMENT ON INDEX orders_pkey IS 'an index'; COMMENT ON SEQUENCE orders_id_seq IS 'numbers'",
        application: "
            INSERT INTO orders (note) VALUES ('x');
            SELECT expect(has_column_privilege('auditor', 'shop.orders', 'id', 'SELECT') AND NOT has_column_privilege('auditor', 'shop.orders', 'secret', 'SELECT'), 'the privileges are the same')",
        by_superuser: true,
        ..ENTRY
    },
    Entry {
        name: "row-level security whose policies do not use the key",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, tenant text NOT NULL, note text); INSERT INTO orders (tenant) SELECT CASE n % 2 WHEN 0 THEN 'app' ELSE 'other' END FROM generate_series(1, 100) AS n;
            CREATE POLICY own ON orders USING (tenant = current_user) WITH CHECK (tenant = current_user); CREATE POLICY readers ON orders AS PERMISSIVE FOR SELECT TO auditor USING (true); ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
            COMMENT ON POLICY own ON orders IS 'tenants'",
        application: "
            INSERT INTO orders (tenant) VALUES ('app'); SELECT expect((SELECT count(*) FROM orders WHERE tenant <> 'app') = 0, 'no other tenant is seen');
            DO $$ BEGIN
                INSERT INTO orders (tenant) VALUES ('other');
                PERFORM expect(false, 'no row of another tenant is inserted');
            EXCEPTION WHEN insufficient_privilege THEN NULL; END $$",
        ..ENTRY
    },
    Entry {
        name: "a policy that uses the key",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text); CREATE TABLE visible (order_id int REFERENCES orders); INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 100); INSERT INTO visible SELECT id FROM orders WHERE id % 2 = 0;
            ALTER TABLE orders ENABLE ROW LEVEL SECURITY; CREATE POLICY insertable ON orders FOR INSERT WITH CHECK (true); CREATE POLICY seen ON orders FOR SELECT USING (EXISTS (SELECT FROM visible AS v WHERE v.order_id = orders.id))",
        application: "INSERT INTO orders (note) VALUES ('x'); SELECT expect((SELECT count(*) FROM orders) = (SELECT count(*) FROM visible), 'only visible orders are seen')",
        widened: &[("shop.orders", "id"), ("shop.visible", "order_id")],
        ..ENTRY
    },
    Entry {
        name: "row-level security that is forced on the owner",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, tenant text NOT NULL); INSERT INTO orders (tenant) SELECT 'app' FROM generate_series(1, 100);
            CREATE POLICY own ON orders USING (tenant = current_user); ALTER TABLE orders ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        application: "INSERT INTO orders (tenant) VALUES ('app')",
        window: Outcome::Avoided { sqlstate: "55000", obstacle: "row-level security is forced on the owner", reason: "rows that its owner does not see could hold larger IDs" },
        online: Outcome::Avoided { sqlstate: "55000", obstacle: "row-level security is forced on the owner", reason: "rows that its owner does not see could not be copied" },
        ..ENTRY
    },
    Entry {
        name: "publications: of the table, of its schema, with a row filter on other columns",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, kind text, note text); INSERT INTO orders (kind) SELECT 'k' FROM generate_series(1, 50); ALTER TABLE orders REPLICA IDENTITY FULL;
            CREATE TABLE items (id bigserial PRIMARY KEY, order_id int REFERENCES orders); INSERT INTO items (order_id) SELECT id FROM orders;
            RESET ROLE; ALTER TABLE shop.orders REPLICA IDENTITY DEFAULT; CREATE PUBLICATION of_kind FOR TABLE shop.orders WHERE (note IS NULL) WITH (publish = 'insert'); CREATE PUBLICATION of_schema FOR TABLES IN SCHEMA shop",
        application: "WITH new AS (INSERT INTO orders (kind) VALUES ('x') RETURNING id) SELECT FROM new; INSERT INTO items (order_id) SELECT max(id) FROM orders",
        widened: &[("shop.orders", "id"), ("shop.items", "order_id")],
        ..ENTRY
    },
    Entry {
        name: "a publication whose row filter or column list has the key",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, kind text); INSERT INTO orders (kind) SELECT 'k' FROM generate_series(1, 50);
            RESET ROLE; CREATE PUBLICATION filtered FOR TABLE shop.orders (id, kind) WHERE (id > 10); SET ROLE keeper",
        application: "INSERT INTO orders (kind) VALUES ('x')",
        window: Outcome::Refused { sqlstate: "55000", obstacle: "publication filtered has", postgres: ("ALTER TABLE orders ALTER COLUMN id TYPE bigint", "0A000") },
        online: Outcome::Refused { sqlstate: "55000", obstacle: "publication filtered has", postgres: ("ALTER TABLE orders DROP COLUMN id", "2BP01") },
        ..ENTRY
    },
    Entry {
        name: "functions that return or take rows",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text); INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 50);
            CREATE FUNCTION recent_orders(how_many int) RETURNS SETOF orders LANGUAGE sql STABLE AS 'SELECT o.* FROM shop.orders AS o ORDER BY o.id DESC LIMIT how_many';
            CREATE FUNCTION title(o orders) RETURNS text LANGUAGE sql STABLE AS $$ SELECT o.note || ' ' || o.id $$;
            CREATE FUNCTION one_order(wanted bigint) RETURNS orders LANGUAGE plpgsql STABLE AS $$ DECLARE found shop.orders; BEGIN SELECT * INTO found FROM shop.orders WHERE id = wanted; RETURN found; END $$",
        application: "
            INSERT INTO orders (note) VALUES ('x'); SELECT expect((SELECT title(r) FROM recent_orders(1) AS r) = 'x ' || (SELECT max(id) FROM orders), 'rows are returned');
            SELECT expect((one_order(1)).note = 'n', 'a row is found')",
        ..ENTRY
    },
    Entry {
        name: "a function RETURNS SETOF its table, with a list of columns",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text, n int); INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 50);
            CREATE FUNCTION first_orders() RETURNS SETOF orders LANGUAGE sql STABLE AS 'SELECT id, note, n FROM shop.orders ORDER BY id LIMIT 3'",
        application: "INSERT INTO orders (note) VALUES ('x'); SELECT expect((SELECT max(note) FROM first_orders()) = 'n', 'rows are returned')",
        online: Outcome::Warned { warning: "first_orders", cure: "CREATE OR REPLACE FUNCTION first_orders() RETURNS SETOF orders LANGUAGE sql STABLE AS 'SELECT o.* FROM shop.orders AS o ORDER BY id LIMIT 3'" },
        ..ENTRY
    },
    Entry {
        name: "a column of the table's row type",
        setup: "CREATE TABLE orders (id serial PRIMARY KEY, note text); INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 50); CREATE TABLE snapshots (at timestamptz, was orders); INSERT INTO snapshots SELECT now(), o FROM orders AS o",
        application: "INSERT INTO orders (note) VALUES ('x'); INSERT INTO snapshots SELECT now(), o FROM orders AS o WHERE id = 1",
        window: Outcome::Refused { sqlstate: "55000", obstacle: "column was of shop.snapshots uses the row type", postgres: ("ALTER TABLE orders ALTER COLUMN id TYPE bigint", "0A000") },
        online: Outcome::Avoided { sqlstate: "55000", obstacle: "column was of shop.snapshots uses the row type", reason: "the stored rows would keep the old column, and lose the new one's name" },
        ..ENTRY
    },
    Entry {
        name: "a table of a type",
        setup: "CREATE TYPE order_row AS (id int, note text); CREATE SEQUENCE numbers; CREATE TABLE orders OF order_row (PRIMARY KEY (id), id DEFAULT nextval('numbers')); INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 50)",
        application: "INSERT INTO orders (note) VALUES ('x')",
        window: Outcome::Refused { sqlstate: "55000", obstacle: "is a typed table", postgres: ("ALTER TABLE orders ALTER COLUMN id TYPE bigint", "42809") },
        online: Outcome::Refused { sqlstate: "55000", obstacle: "is a typed table", postgres: ("ALTER TABLE orders ADD COLUMN new bigint", "42809") },
        ..ENTRY
    },
    Entry {
        name: "a function with a SQL body that does not use the key",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text); INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 50);
            CREATE FUNCTION notes() RETURNS bigint BEGIN ATOMIC SELECT count(note) FROM orders; END; CREATE FUNCTION by_string() RETURNS bigint LANGUAGE sql AS 'SELECT max(id)::bigint FROM shop.orders'",
        application: "INSERT INTO orders (note) VALUES ('x'); SELECT expect(notes() = (SELECT count(*) FROM orders) AND by_string() = (SELECT max(id) FROM orders), 'the functions work')",
        ..ENTRY
    },
    Entry {
        name: "a function with a SQL body that uses the key",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text); INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 50);
            CREATE FUNCTION newest() RETURNS bigint BEGIN ATOMIC SELECT max(id) FROM orders; END",
        application: "INSERT INTO orders (note) VALUES ('x'); SELECT expect(newest() = (SELECT max(id) FROM orders), 'the function works')",
        ..ENTRY
    },
    Entry {
        name: "an application that prepares its statements",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text); INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 50);
            CREATE FUNCTION add_order(note text) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE new_id bigint; BEGIN INSERT INTO shop.orders (note) VALUES (add_order.note) RETURNING id INTO new_id; RETURN new_id; END $$",
        // The session is the same throughout: plans are kept from before.
        application: "SELECT expect((SELECT count(*) FROM (SELECT add_order('x') FROM generate_series(1, 7)) AS a) = 7, 'orders are added by a cached plan')",
        ..ENTRY
    },
];

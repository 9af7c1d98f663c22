//! Views and rules over a key.

use super::{ENTRY, Entry, Outcome};

/// The entries.
#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "views three deep, with grants, options and comments",
        is_pushed: true,
        setup: "
            CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL);
            CREATE TABLE orders (id serial PRIMARY KEY, customer_id int REFERENCES customers, status text NOT NULL DEFAULT 'new', total numeric(10,2));
            INSERT INTO customers (name) SELECT 'customer ' || n FROM generate_series(1, 20) AS n;
            INSERT INTO orders (customer_id, total) SELECT 1 + n % 20, n FROM generate_series(1, 200) AS n;
            CREATE VIEW open_orders WITH (security_barrier = true) AS SELECT o.id, o.customer_id, o.total FROM orders AS o WHERE o.status = 'new';
            CREATE VIEW open_orders_named AS SELECT o.id AS order_id, o.total, c.name FROM open_orders AS o JOIN customers AS c ON c.id = o.customer_id;
            CREATE VIEW largest_open_orders AS SELECT DISTINCT ON (name) name, order_id, total FROM open_orders_named ORDER BY name, total DESC;
            COMMENT ON VIEW open_orders IS 'not yet shipped'; COMMENT ON COLUMN open_orders.id IS 'the order';
            GRANT SELECT ON open_orders TO reader WITH GRANT OPTION;
            SET ROLE reader; GRANT SELECT ON open_orders TO auditor; RESET ROLE; SET ROLE keeper;
            GRANT SELECT (order_id, name) ON open_orders_named TO reader; GRANT SELECT ON largest_open_orders TO PUBLIC",
        application: "
            INSERT INTO orders (customer_id, total) VALUES (1, 5);
            SELECT expect((SELECT count(*) FROM open_orders_named) = (SELECT count(*) FROM orders WHERE status = 'new'), 'the view shows all orders');
            SELECT expect((SELECT max(order_id) FROM open_orders_named) = (SELECT max(id) FROM orders WHERE status = 'new'), 'and the new one');
            UPDATE open_orders SET total = total + 1 WHERE id = (SELECT max(id) FROM orders);
            SELECT expect((SELECT count(*) FROM largest_open_orders) = 20, 'one for each customer')",
        // Only reader, its members and superusers can restore what reader granted.
        by_superuser: true,
        ..ENTRY
    },
    Entry {
        name: "a materialized view with indexes, and a view on it",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, customer text NOT NULL, total int);
            INSERT INTO orders (customer, total) SELECT 'c' || n % 10, n FROM generate_series(1, 300) AS n;
            CREATE MATERIALIZED VIEW last_orders AS SELECT customer, max(id) AS order_id, count(*) AS orders FROM orders GROUP BY customer;
            CREATE UNIQUE INDEX last_orders_customer ON last_orders (customer); CREATE INDEX ON last_orders (order_id) WHERE orders > 3;
            CREATE VIEW regulars AS SELECT customer, order_id FROM last_orders WHERE orders > 2;
            COMMENT ON MATERIALIZED VIEW last_orders IS 'refreshed each night'; COMMENT ON INDEX last_orders_customer IS 'for CONCURRENTLY'; GRANT SELECT ON last_orders TO reader",
        application: "
            INSERT INTO orders (customer, total) VALUES ('c1', 7);
            SELECT expect((SELECT count(*) FROM regulars) = 10, 'the regulars are shown');
            SELECT expect((SELECT bool_and(o.id IS NOT NULL) FROM last_orders AS l LEFT JOIN orders AS o ON o.id = l.order_id), 'each row is of an order')",
        // Its data would be computed under the lock of the swap.
        online: Outcome::Refused { sqlstate: "55000", obstacle: "materialized view", postgres: ("ALTER TABLE orders DROP COLUMN id", "2BP01") },
        ..ENTRY
    },
    Entry {
        name: "rules: a log of inserts, and deletes that only mark",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text, deleted boolean NOT NULL DEFAULT false);
            CREATE TABLE orders_log (order_id bigint, what text, at timestamptz DEFAULT now());
            INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 100);
            CREATE RULE marking AS ON DELETE TO orders DO INSTEAD UPDATE orders SET deleted = true WHERE orders.id = old.id;
            CREATE RULE logging AS ON UPDATE TO orders_log DO INSTEAD NOTHING;
            COMMENT ON RULE marking ON orders IS 'nothing is lost'",
        application: "
            WITH new AS (INSERT INTO orders (note) VALUES ('x') RETURNING id) INSERT INTO orders_log (order_id, what) SELECT id, 'new' FROM new;
            DELETE FROM orders WHERE id = (SELECT max(id) FROM orders);
            SELECT expect((SELECT deleted FROM orders ORDER BY id DESC LIMIT 1), 'the order is marked')",
        ..ENTRY
    },
    Entry {
        name: "a rule that rewrites UPDATE",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text);
            CREATE TABLE orders_log (order_id bigint, note text);
            INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 100);
            CREATE RULE logging AS ON UPDATE TO orders DO ALSO INSERT INTO orders_log VALUES (new.id, new.note)",
        application: "
            INSERT INTO orders (note) VALUES ('x'); UPDATE orders SET note = 'y' WHERE id = 1;
            SELECT expect((SELECT count(*) FROM orders_log WHERE order_id = 1) > 0, 'the update is logged')",
        online: Outcome::Avoided { sqlstate: "55000", obstacle: "rule logging of shop.orders rewrites UPDATE",
            reason: "the rows are copied by UPDATE, which the rule would rewrite" },
        ..ENTRY
    },
    Entry {
        name: "a view with INSTEAD OF triggers",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, customer text);
            CREATE TABLE notes (order_id int PRIMARY KEY REFERENCES orders ON DELETE CASCADE, note text);
            INSERT INTO orders (customer) SELECT 'c' FROM generate_series(1, 100); INSERT INTO notes SELECT id, 'n' FROM orders WHERE id % 3 = 0;
            CREATE VIEW noted_orders AS SELECT o.id, o.customer, n.note FROM orders AS o LEFT JOIN notes AS n ON n.order_id = o.id;
            CREATE FUNCTION write_noted_order() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF TG_OP = 'INSERT' THEN
                    INSERT INTO shop.orders (customer) VALUES (NEW.customer) RETURNING id INTO NEW.id;
                    INSERT INTO shop.notes (order_id, note) VALUES (NEW.id, NEW.note);
                ELSE
                    UPDATE shop.notes SET note = NEW.note WHERE order_id = OLD.id;
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER writing INSTEAD OF INSERT OR UPDATE ON noted_orders FOR EACH ROW EXECUTE FUNCTION write_noted_order();
            COMMENT ON TRIGGER writing ON noted_orders IS 'makes it writable'; ALTER VIEW noted_orders ALTER COLUMN note SET DEFAULT 'none'",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO noted_orders (customer) VALUES ('x') RETURNING id INTO new_id;
                UPDATE noted_orders SET note = 'changed' WHERE id = new_id;
                PERFORM expect((SELECT note FROM notes WHERE order_id = new_id) = 'changed', 'the note is changed through the view');
            END $$",
        widened: &[("shop.orders", "id"), ("shop.notes", "order_id")],
        ..ENTRY
    },
    Entry {
        name: "updatable views with CHECK OPTION, as the table's replacement",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, tenant text NOT NULL, note text);
            INSERT INTO orders (tenant, note) SELECT 'a', 'n' FROM generate_series(1, 100);
            CREATE VIEW orders_of_a WITH (security_invoker = true) AS SELECT id, tenant, note FROM orders WHERE tenant = 'a' WITH LOCAL CHECK OPTION;
            CREATE VIEW recent_of_a AS SELECT * FROM orders_of_a WHERE id > 50 WITH CASCADED CHECK OPTION;
            ALTER VIEW recent_of_a ALTER COLUMN tenant SET DEFAULT 'a'",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO recent_of_a (note) VALUES ('x') RETURNING id INTO new_id;
                PERFORM expect(EXISTS (SELECT FROM orders_of_a WHERE id = new_id), 'the order is in the view below');
                BEGIN
                    INSERT INTO orders_of_a (tenant) VALUES ('b');
                    PERFORM expect(false, 'the check option refuses it');
                EXCEPTION WHEN with_check_option_violation THEN NULL; END;
            END $$",
        ..ENTRY
    },
    Entry {
        name: "views that group by the key, join it to itself, or return whole rows",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, parent_id int REFERENCES orders, note text);
            INSERT INTO orders (parent_id, note) SELECT nullif(n / 3, 0), 'n' FROM generate_series(1, 100) AS n;
            -- Depends on the primary key, because note is not grouped.
            CREATE VIEW children AS SELECT o.id, o.note, count(c.id) AS children FROM orders AS o LEFT JOIN orders AS c ON c.parent_id = o.id GROUP BY o.id;
            CREATE RECURSIVE VIEW ancestors (id, ancestor_id, depth) AS
                SELECT id, id, 0 FROM orders UNION ALL SELECT a.id, o.parent_id, a.depth + 1 FROM ancestors AS a JOIN orders AS o ON o.id = a.ancestor_id WHERE o.parent_id IS NOT NULL;
            CREATE VIEW as_rows AS SELECT o AS one_order, o.id FROM orders AS o",
        application: "
            INSERT INTO orders (parent_id, note) VALUES (1, 'x');
            SELECT expect((SELECT children FROM children WHERE id = 1) >= 3, 'the children are counted');
            SELECT expect((SELECT max(depth) FROM ancestors) > 2, 'the ancestors are found');
            SELECT expect((SELECT count((one_order).note) FROM as_rows) = (SELECT count(*) FROM orders), 'the rows are shown')",
        widened: &[("shop.orders", "id"), ("shop.orders", "parent_id")],
        ..ENTRY
    },
    Entry {
        name: "a view without grants where default privileges would grant",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text); INSERT INTO orders (note) VALUES ('a'), ('b');
            CREATE VIEW private_orders AS SELECT id, note FROM orders;
            ALTER DEFAULT PRIVILEGES IN SCHEMA shop GRANT ALL ON TABLES TO PUBLIC;
            ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
        application: "
            INSERT INTO orders (note) VALUES ('x');
            SELECT expect(NOT has_table_privilege('auditor', 'shop.private_orders', 'SELECT'), 'no privilege was gained')",
        ..ENTRY
    },
    Entry {
        name: "views of another owner in another schema",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text, secret text); INSERT INTO orders (note, secret) SELECT 'n', 's' FROM generate_series(1, 100);
            GRANT USAGE ON SCHEMA shop TO reporter; GRANT SELECT (id, note) ON orders TO reporter;
            RESET ROLE; CREATE SCHEMA reports AUTHORIZATION reporter; SET ROLE reporter;
            CREATE VIEW reports.orders AS SELECT id, note FROM shop.orders; CREATE VIEW reports.large AS SELECT id FROM reports.orders WHERE id > 10;
            GRANT USAGE ON SCHEMA reports TO app; GRANT SELECT ON reports.orders, reports.large TO app; RESET ROLE",
        application: "
            INSERT INTO orders (note) VALUES ('x');
            SELECT expect((SELECT max(id) FROM reports.large) = (SELECT max(id) FROM orders), 'the report shows the new order')",
        by_superuser: true,
        ..ENTRY
    },
    Entry {
        name: "a column default and a CHECK elsewhere that call a function over a view",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text); INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 10);
            CREATE VIEW order_ids AS SELECT id FROM orders;
            CREATE FUNCTION newest_order() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT max(id) FROM shop.order_ids';
            CREATE TABLE visits (at timestamptz DEFAULT now(), newest bigint DEFAULT newest_order() CHECK (newest <= newest_order()))",
        application: "INSERT INTO orders (note) VALUES ('x'); INSERT INTO visits DEFAULT VALUES; SELECT expect((SELECT max(newest) FROM visits) = (SELECT max(id) FROM orders), 'the visit has the newest order')",
        ..ENTRY
    },
];

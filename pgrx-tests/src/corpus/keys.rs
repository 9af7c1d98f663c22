//! Foreign keys.

use super::{ENTRY, Entry, Outcome};

/// The entries.
#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "tenant keys: PRIMARY KEY (tenant_id, id), composite foreign keys",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (tenant_id int, id serial, note text, PRIMARY KEY (tenant_id, id));
            CREATE TABLE items (tenant_id int, id bigserial, order_id int NOT NULL, PRIMARY KEY (tenant_id, id), FOREIGN KEY (tenant_id, order_id) REFERENCES orders ON DELETE CASCADE);
            CREATE TABLE notes (tenant_id int, order_id int, note text, FOREIGN KEY (tenant_id, order_id) REFERENCES orders MATCH FULL ON UPDATE CASCADE);
            INSERT INTO orders (tenant_id, note) SELECT n % 9, 'n' FROM generate_series(1, 300) AS n; INSERT INTO items (tenant_id, order_id) SELECT tenant_id, id FROM orders;
            INSERT INTO notes SELECT tenant_id, id, 'n' FROM orders WHERE id % 3 = 0",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO orders (tenant_id) VALUES (3) RETURNING id INTO new_id;
                INSERT INTO items (tenant_id, order_id) VALUES (3, new_id); INSERT INTO notes (tenant_id, order_id, note) VALUES (3, new_id, 'x'), (NULL, NULL, 'free');
                BEGIN
                    INSERT INTO items (tenant_id, order_id) VALUES (4, new_id);
                    PERFORM expect(false, 'an item has the tenant of its order');
                EXCEPTION WHEN foreign_key_violation THEN NULL; END;
            END $$",
        widened: &[("shop.orders", "id"), ("shop.items", "order_id"), ("shop.notes", "order_id")],
        ..ENTRY
    },
    Entry {
        name: "a tree: a self-reference with ON DELETE CASCADE and a path",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, parent_id int REFERENCES orders ON DELETE CASCADE, root_id int REFERENCES orders DEFERRABLE INITIALLY DEFERRED, path text);
            CREATE INDEX ON orders (parent_id, id); INSERT INTO orders (parent_id, root_id, path) SELECT nullif(n / 4, 0), 1, 'p' FROM generate_series(1, 200) AS n",
        application: "
            DO $$ DECLARE top bigint; BEGIN
                INSERT INTO orders (path) VALUES ('t') RETURNING id INTO top; INSERT INTO orders (parent_id, root_id) VALUES (top, top), (top, top);
                INSERT INTO orders (parent_id, root_id) VALUES (1, 1);
                DELETE FROM orders WHERE id = top;
                PERFORM expect(NOT EXISTS (SELECT FROM orders WHERE parent_id = top), 'the children are deleted too');
            END $$",
        widened: &[("shop.orders", "id"), ("shop.orders", "parent_id"), ("shop.orders", "root_id")],
        ..ENTRY
    },
    Entry {
        name: "a cycle of deferrable foreign keys",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, first_item_id int);
            CREATE TABLE items (id serial PRIMARY KEY, order_id int NOT NULL REFERENCES orders DEFERRABLE INITIALLY DEFERRED);
            INSERT INTO orders SELECT FROM generate_series(1, 100); INSERT INTO items (order_id) SELECT id FROM orders; UPDATE orders SET first_item_id = id;
            ALTER TABLE orders ADD CONSTRAINT first_item FOREIGN KEY (first_item_id) REFERENCES items DEFERRABLE INITIALLY DEFERRED; COMMENT ON CONSTRAINT first_item ON orders IS 'closes the cycle'",
        application: "
            DO $$ DECLARE new_id bigint; item bigint := nextval('items_id_seq'); BEGIN
                INSERT INTO orders (first_item_id) VALUES (item) RETURNING id INTO new_id; INSERT INTO items (id, order_id) VALUES (item, new_id);
                SET CONSTRAINTS ALL IMMEDIATE;
            END $$",
        widened: &[("shop.orders", "id"), ("shop.items", "order_id")],
        ..ENTRY
    },
    Entry {
        name: "polymorphic references, without a foreign key",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY); CREATE TABLE carts (id serial PRIMARY KEY);
            CREATE TABLE notes (id bigserial PRIMARY KEY, subject_type text NOT NULL, subject_id bigint NOT NULL, note text); CREATE INDEX ON notes (subject_type, subject_id);
            INSERT INTO orders SELECT FROM generate_series(1, 100); INSERT INTO carts SELECT FROM generate_series(1, 100); INSERT INTO notes (subject_type, subject_id) SELECT 'Order', id FROM orders UNION ALL SELECT 'Cart', id FROM carts",
        application: "
            WITH new AS (INSERT INTO orders DEFAULT VALUES RETURNING id) INSERT INTO notes (subject_type, subject_id) SELECT 'Order', id FROM new;
            SELECT expect((SELECT count(*) FROM notes AS n WHERE n.subject_type = 'Order' AND NOT EXISTS (SELECT FROM orders AS o WHERE o.id = n.subject_id)) = 0, 'each note has its order')",
        ..ENTRY
    },
    Entry {
        name: "foreign keys that are NOT VALID, with rows that violate them",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY); INSERT INTO orders SELECT FROM generate_series(1, 100);
            CREATE TABLE items (order_id int, n int); INSERT INTO items SELECT CASE WHEN n > 100 THEN 1000000 ELSE 0 END + n, n FROM generate_series(1, 120) AS n;
            ALTER TABLE items ADD CONSTRAINT unchecked FOREIGN KEY (order_id) REFERENCES orders ON DELETE SET NULL NOT VALID",
        application: "
            WITH new AS (INSERT INTO orders DEFAULT VALUES RETURNING id) INSERT INTO items (order_id) SELECT id - id + 1 FROM new;
            SELECT expect((SELECT count(*) FROM items WHERE order_id BETWEEN 1000101 AND 1000120) = 20, 'the rows without an order are kept');
            DO $$ BEGIN
                INSERT INTO items (order_id) VALUES (-1);
                PERFORM expect(false, 'a new item needs an order');
            EXCEPTION WHEN foreign_key_violation THEN NULL; END $$",
        widened: &[("shop.orders", "id"), ("shop.items", "order_id")],
        ..ENTRY
    },
    Entry {
        name: "disabled foreign keys, whose rows satisfy them",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY); INSERT INTO orders SELECT FROM generate_series(1, 100);
            CREATE TABLE items (order_id int REFERENCES orders, n int); INSERT INTO items SELECT n, n FROM generate_series(1, 100) AS n;
            RESET ROLE; ALTER TABLE shop.items DISABLE TRIGGER ALL; SET ROLE keeper",
        application: "
            INSERT INTO orders DEFAULT VALUES; INSERT INTO items (order_id, n) VALUES (-1, 1); DELETE FROM items WHERE order_id = -1",
        widened: &[("shop.orders", "id"), ("shop.items", "order_id")],
        // Only a superuser may disable the triggers of a foreign key.
        by_superuser: true,
        ..ENTRY
    },
    Entry {
        name: "disabled foreign keys, with rows that violate them",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY); INSERT INTO orders SELECT FROM generate_series(1, 100);
            CREATE TABLE items (order_id int REFERENCES orders, n int);
            RESET ROLE; ALTER TABLE shop.items DISABLE TRIGGER ALL; SET ROLE keeper; INSERT INTO items SELECT n, n FROM generate_series(1, 120) AS n",
        application: "INSERT INTO orders DEFAULT VALUES; INSERT INTO items (order_id, n) VALUES (-1, 1)",
        widened: &[("shop.orders", "id"), ("shop.items", "order_id")],
        window: Outcome::Refused { sqlstate: "55000", obstacle: "items_order_id_fkey", postgres: ("ALTER TABLE orders ALTER COLUMN id TYPE bigint", "23503") },
        online: Outcome::Refused { sqlstate: "55000", obstacle: "items_order_id_fkey",
            postgres: ("ALTER TABLE items ADD CONSTRAINT new FOREIGN KEY (order_id) REFERENCES orders NOT VALID; ALTER TABLE items VALIDATE CONSTRAINT new", "23503") },
        by_superuser: true,
        ..ENTRY
    },
    Entry {
        name: "60 referencing tables",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text); INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 100);
            DO $$ BEGIN FOR i IN 1 .. 60 LOOP
                EXECUTE format('CREATE TABLE r%s (id bigserial PRIMARY KEY, order_id int %s REFERENCES orders %s)', i, CASE i % 3 WHEN 0 THEN 'NOT NULL' ELSE '' END,
                               CASE i % 4 WHEN 0 THEN 'ON DELETE CASCADE' WHEN 1 THEN 'ON DELETE SET NULL' WHEN 2 THEN 'ON UPDATE CASCADE' ELSE 'DEFERRABLE' END);
                EXECUTE format('CREATE INDEX ON r%s (order_id)', i); EXECUTE format('INSERT INTO r%s (order_id) SELECT id FROM orders WHERE id %% 3 = 0', i);
            END LOOP; END $$",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO orders (note) VALUES ('x') RETURNING id INTO new_id;
                FOR i IN 1 .. 60 LOOP EXECUTE format('INSERT INTO r%s (order_id) VALUES ($1)', i) USING new_id; END LOOP;
            END $$",
        widened: &[("shop.orders", "id"), ("shop.r*", "order_id")],
        ..ENTRY
    },
    Entry {
        name: "one-to-one tables that share the key, three levels deep",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, kind text NOT NULL DEFAULT 'web', UNIQUE (id, kind));
            CREATE TABLE web_orders (id int PRIMARY KEY, kind text NOT NULL DEFAULT 'web' CHECK (kind = 'web'), FOREIGN KEY (id, kind) REFERENCES orders (id, kind) ON DELETE CASCADE);
            CREATE TABLE gift_orders (id int PRIMARY KEY REFERENCES web_orders ON DELETE CASCADE, message text); CREATE TABLE cards (order_id int UNIQUE REFERENCES gift_orders ON DELETE SET NULL, printed boolean);
            INSERT INTO orders SELECT FROM generate_series(1, 100); INSERT INTO web_orders SELECT id FROM orders WHERE id % 2 = 0; INSERT INTO gift_orders SELECT id, 'm' FROM web_orders WHERE id % 4 = 0; INSERT INTO cards SELECT id FROM gift_orders",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO orders DEFAULT VALUES RETURNING id INTO new_id; INSERT INTO web_orders (id) VALUES (new_id); INSERT INTO gift_orders (id, message) VALUES (new_id, 'm'); INSERT INTO cards (order_id, printed) VALUES (new_id, true);
                INSERT INTO orders DEFAULT VALUES RETURNING id INTO new_id; INSERT INTO web_orders (id) VALUES (new_id); INSERT INTO gift_orders (id, message) VALUES (new_id, 'm'); INSERT INTO cards (order_id, printed) VALUES (new_id, false);
                DELETE FROM orders WHERE id = new_id;
                PERFORM expect(NOT EXISTS (SELECT FROM gift_orders WHERE id = new_id), 'all levels are deleted');
            END $$",
        widened: &[("shop.orders", "id"), ("shop.web_orders", "id"), ("shop.gift_orders", "id"), ("shop.cards", "order_id")],
        ..ENTRY
    },
    Entry {
        name: "a join table of two references to the same key",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY); INSERT INTO orders SELECT FROM generate_series(1, 100);
            CREATE TABLE merged (from_id int NOT NULL REFERENCES orders, into_id int NOT NULL REFERENCES orders ON DELETE RESTRICT, PRIMARY KEY (from_id, into_id), CHECK (from_id <> into_id));
            CREATE INDEX ON merged (into_id, from_id); INSERT INTO merged SELECT id, id + 1 FROM orders WHERE id < 50",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO orders DEFAULT VALUES RETURNING id INTO new_id; INSERT INTO merged (from_id, into_id) VALUES (new_id, 1), (1, new_id);
                BEGIN
                    INSERT INTO merged (from_id, into_id) VALUES (new_id, 1);
                    PERFORM expect(false, 'orders are merged once');
                EXCEPTION WHEN unique_violation THEN NULL; END;
                INSERT INTO merged (from_id, into_id) VALUES (new_id, 1) ON CONFLICT DO NOTHING; INSERT INTO merged (from_id, into_id) VALUES (new_id, 1) ON CONFLICT ON CONSTRAINT merged_pkey DO NOTHING;
            END $$",
        widened: &[("shop.orders", "id"), ("shop.merged", "from_id"), ("shop.merged", "into_id")],
        ..ENTRY
    },
    Entry {
        name: "a reference with a default, ON DELETE SET DEFAULT",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY); INSERT INTO orders SELECT FROM generate_series(1, 100);
            CREATE TABLE items (order_id int NOT NULL DEFAULT 1 REFERENCES orders ON DELETE SET DEFAULT, n int); INSERT INTO items SELECT id, 1 FROM orders",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO orders DEFAULT VALUES RETURNING id INTO new_id; INSERT INTO items (order_id, n) VALUES (new_id, 2), (DEFAULT, 3);
                INSERT INTO orders DEFAULT VALUES RETURNING id INTO new_id; INSERT INTO items (order_id, n) VALUES (new_id, 4); DELETE FROM orders WHERE id = new_id;
                PERFORM expect(EXISTS (SELECT FROM items WHERE n = 4 AND order_id = 1), 'the default was set');
            END $$",
        widened: &[("shop.orders", "id"), ("shop.items", "order_id")],
        online: Outcome::Avoided { sqlstate: "55000", obstacle: "sets a default", reason: "with a foreign key on both columns, the default of the first one violates the constraint between them" },
        ..ENTRY
    },
    Entry {
        name: "tables of several owners in several schemas",
        setup: "
            RESET ROLE; CREATE SCHEMA billing AUTHORIZATION reporter; GRANT USAGE ON SCHEMA billing TO keeper, app; SET ROLE keeper;
            CREATE TABLE orders (id serial PRIMARY KEY, note text); INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 100);
            GRANT USAGE ON SCHEMA shop TO reporter; GRANT SELECT, REFERENCES ON orders TO reporter; RESET ROLE; SET ROLE reporter;
            CREATE TABLE billing.invoices (id bigserial PRIMARY KEY, order_id int NOT NULL REFERENCES shop.orders); INSERT INTO billing.invoices (order_id) SELECT id FROM shop.orders;
            GRANT SELECT, INSERT ON billing.invoices TO app; GRANT USAGE ON SEQUENCE billing.invoices_id_seq TO app; RESET ROLE",
        application: "WITH new AS (INSERT INTO orders (note) VALUES ('x') RETURNING id) INSERT INTO billing.invoices (order_id) SELECT id - id + 1 FROM new",
        widened: &[("shop.orders", "id"), ("billing.invoices", "order_id")],
        by_superuser: true,
        ..ENTRY
    },
];

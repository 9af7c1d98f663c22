//! Indexes and constraints that use a key.

use super::{ENTRY, Entry, Outcome};

/// The entries.
#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "partial unique indexes for rows that are not deleted",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, code text NOT NULL, deleted_at timestamptz);
            CREATE TABLE items (order_id int REFERENCES orders, place int NOT NULL, deleted_at timestamptz);
            CREATE UNIQUE INDEX live_code ON orders (code) WHERE deleted_at IS NULL;
            CREATE UNIQUE INDEX live_place ON items (order_id, place) WHERE deleted_at IS NULL; COMMENT ON INDEX live_place IS 'soft deletes';
            INSERT INTO orders (code, deleted_at) SELECT 'c' || n / 2, CASE WHEN n % 2 = 0 THEN now() END FROM generate_series(1, 200) AS n;
            INSERT INTO items SELECT id, n, CASE WHEN n < 3 THEN now() END FROM orders, generate_series(1, 3) AS n",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                UPDATE orders SET deleted_at = now() WHERE code = 'x' AND deleted_at IS NULL;
                INSERT INTO orders (code) VALUES ('x') RETURNING id INTO new_id;
                INSERT INTO items (order_id, place) VALUES (new_id, 1), (new_id, 2);
                BEGIN
                    INSERT INTO items (order_id, place) VALUES (new_id, 2);
                    PERFORM expect(false, 'a place is unique among live items');
                EXCEPTION WHEN unique_violation THEN NULL; END;
                INSERT INTO items (order_id, place) VALUES (new_id, 2) ON CONFLICT (order_id, place) WHERE deleted_at IS NULL DO UPDATE SET deleted_at = now();
                INSERT INTO items (order_id, place) VALUES (new_id, 2);
            END $$",
        widened: &[("shop.orders", "id"), ("shop.items", "order_id")],
        ..ENTRY
    },
    Entry {
        name: "partial indexes whose predicate is on the reference",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY);
            CREATE TABLE members (order_id int REFERENCES orders, group_id int, user_id int NOT NULL);
            CREATE UNIQUE INDEX members_order ON members (order_id, user_id) WHERE order_id IS NOT NULL;
            CREATE UNIQUE INDEX members_group ON members (group_id, user_id) WHERE order_id IS NULL AND group_id IS NOT NULL;
            CREATE INDEX recent ON orders (id DESC) WHERE id > 100;
            INSERT INTO orders SELECT FROM generate_series(1, 200); INSERT INTO members SELECT CASE WHEN n % 2 = 0 THEN n END, CASE WHEN n % 2 = 1 THEN n END, n FROM generate_series(1, 200) AS n",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO orders DEFAULT VALUES RETURNING id INTO new_id; INSERT INTO members (order_id, user_id) VALUES (new_id, 1);
                INSERT INTO members (order_id, user_id) VALUES (new_id, 1) ON CONFLICT (order_id, user_id) WHERE order_id IS NOT NULL DO NOTHING;
                PERFORM expect((SELECT count(*) FROM members WHERE order_id = new_id) = 1, 'one membership');
                BEGIN
                    INSERT INTO members (order_id, user_id) VALUES (new_id, 1);
                    PERFORM expect(false, 'a membership is unique');
                EXCEPTION WHEN unique_violation THEN NULL; END;
            END $$",
        widened: &[("shop.orders", "id"), ("shop.members", "order_id")],
        ..ENTRY
    },
    Entry {
        name: "CHECKs on keys: positive, and exactly one of several references",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, CONSTRAINT positive CHECK (id > 0));
            CREATE TABLE carts (id bigserial PRIMARY KEY);
            CREATE TABLE lines (order_id int REFERENCES orders, cart_id bigint REFERENCES carts, CONSTRAINT one_parent CHECK (num_nonnulls(order_id, cart_id) = 1),
                CONSTRAINT later CHECK (order_id < 1000000 OR cart_id IS NULL) NOT VALID);
            COMMENT ON CONSTRAINT one_parent ON lines IS 'an exclusive arc';
            INSERT INTO orders SELECT FROM generate_series(1, 100); INSERT INTO carts SELECT FROM generate_series(1, 10); INSERT INTO lines (order_id) SELECT id FROM orders; INSERT INTO lines (cart_id) SELECT id FROM carts",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO orders DEFAULT VALUES RETURNING id INTO new_id; INSERT INTO lines (order_id) VALUES (new_id);
                BEGIN
                    INSERT INTO lines (order_id, cart_id) VALUES (new_id, 1);
                    PERFORM expect(false, 'a line has one parent');
                EXCEPTION WHEN check_violation THEN NULL; END;
                BEGIN
                    INSERT INTO orders (id) VALUES (-new_id);
                    PERFORM expect(false, 'a key is positive');
                EXCEPTION WHEN check_violation THEN NULL; END;
            END $$",
        widened: &[("shop.orders", "id"), ("shop.lines", "order_id")],
        ..ENTRY
    },
    Entry {
        name: "expression indexes",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text); CREATE INDEX shard ON orders ((id % 16), lower(note)); CREATE INDEX as_text ON orders ((id::text) text_pattern_ops);
            CREATE UNIQUE INDEX slug ON orders ((note || '-' || id)); ALTER INDEX shard ALTER COLUMN 1 SET STATISTICS 500; INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 300)",
        application: "
            INSERT INTO orders (note) VALUES ('x');
            SELECT expect((SELECT count(*) FROM orders WHERE id % 16 = 3 AND lower(note) = 'n') = 19, 'the rows of a shard are found');
            SELECT expect((SELECT count(*) FROM orders WHERE id::text LIKE '25_') = 10, 'the prefix is found')",
        ..ENTRY
    },
    Entry {
        name: "an expression that PostgreSQL has for integer only",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, size int NOT NULL DEFAULT 1); INSERT INTO orders SELECT FROM generate_series(1, 100);
            ALTER TABLE orders ADD CONSTRAINT in_range CHECK (int4range(0, 2147483647) @> id)",
        application: "INSERT INTO orders DEFAULT VALUES",
        window: Outcome::Refused { sqlstate: "55000", obstacle: "in_range", postgres: ("ALTER TABLE orders ALTER COLUMN id TYPE bigint", "42883") },
        online: Outcome::Refused { sqlstate: "55000", obstacle: "in_range", postgres: ("ALTER TABLE orders ADD COLUMN new bigint, ADD CHECK (int4range(0, 2147483647) @> new)", "42883") },
        ..ENTRY
    },
    Entry {
        name: "positions in a list: DEFERRABLE UNIQUE",
        is_pushed: true,
        table: "lists",
        setup: "
            CREATE TABLE lists (id serial PRIMARY KEY);
            CREATE TABLE items (id bigserial PRIMARY KEY, list_id int NOT NULL REFERENCES lists ON DELETE CASCADE, position int NOT NULL, CONSTRAINT places UNIQUE (list_id, position) DEFERRABLE);
            CREATE TABLE pages (list_id int NOT NULL REFERENCES lists, number int NOT NULL, CONSTRAINT numbers UNIQUE (list_id, number) DEFERRABLE INITIALLY DEFERRED);
            INSERT INTO lists SELECT FROM generate_series(1, 20); INSERT INTO items (list_id, position) SELECT l, p FROM generate_series(1, 20) AS l, generate_series(1, 10) AS p;
            INSERT INTO pages SELECT l, p FROM generate_series(1, 20) AS l, generate_series(1, 5) AS p",
        application: "
            WITH new AS (INSERT INTO lists DEFAULT VALUES RETURNING id) SELECT FROM new; INSERT INTO items (list_id, position) SELECT 4, max(position) + 1 FROM items WHERE list_id = 4;
            UPDATE items SET position = 11 - position WHERE list_id = 1;
            DO $$ BEGIN
                UPDATE pages SET number = number + 1 WHERE list_id = 2; UPDATE pages SET number = 1 WHERE list_id = 2 AND number = 6;
                SET CONSTRAINTS ALL IMMEDIATE;
                BEGIN
                    UPDATE items SET position = 1 WHERE list_id = 3;
                    PERFORM expect(false, 'a position is unique');
                EXCEPTION WHEN unique_violation THEN NULL; END;
            END $$",
        widened: &[("shop.lists", "id"), ("shop.items", "list_id"), ("shop.pages", "list_id")],
        online: Outcome::Refused { sqlstate: "55000", obstacle: "constraint places of shop.items is DEFERRABLE", postgres: ("CREATE UNIQUE INDEX CONCURRENTLY new ON items (list_id, position) DEFERRABLE", "42601") },
        ..ENTRY
    },
    Entry {
        name: "an exclusion constraint on a reference",
        table: "rooms",
        setup: "
            CREATE TABLE rooms (id serial PRIMARY KEY);
            CREATE TABLE bookings (room_id int REFERENCES rooms, during tsrange, CONSTRAINT one_at_a_time EXCLUDE USING gist (int8range(room_id, room_id, '[]') WITH &&, during WITH &&));
            INSERT INTO rooms SELECT FROM generate_series(1, 10); INSERT INTO bookings SELECT id, tsrange('2026-01-01', '2026-01-02') FROM rooms",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO rooms DEFAULT VALUES RETURNING id INTO new_id; INSERT INTO bookings (room_id, during) VALUES (new_id, '[2026-01-01,2026-01-03)');
                BEGIN
                    INSERT INTO bookings (room_id, during) VALUES (new_id, '[2026-01-02,2026-01-04)');
                    PERFORM expect(false, 'a room is booked once');
                EXCEPTION WHEN exclusion_violation THEN NULL; END;
            END $$",
        widened: &[("shop.rooms", "id"), ("shop.bookings", "room_id")],
        online: Outcome::Refused { sqlstate: "55000", obstacle: "one_at_a_time",
            postgres: ("CREATE INDEX built ON bookings USING gist (int8range(room_id, room_id, '[]'), during); ALTER TABLE bookings ADD CONSTRAINT built EXCLUDE USING INDEX built", "42601") },
        ..ENTRY
    },
    Entry {
        name: "extended statistics, and statistics of expressions",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, code int); INSERT INTO orders (code) SELECT n / 10 FROM generate_series(1, 1000) AS n;
            CREATE STATISTICS of_both (dependencies, ndistinct, mcv) ON id, code FROM orders; CREATE STATISTICS of_expression ON (id / 10) FROM orders;
            ALTER STATISTICS of_both SET STATISTICS 200; COMMENT ON STATISTICS of_both IS 'kept'; ANALYZE orders",
        application: "INSERT INTO orders (code) VALUES (1); SELECT expect((SELECT count(*) FROM orders WHERE id / 10 = code AND id < 500) > 0, 'rows are found')",
        ..ENTRY
    },
    Entry {
        name: "a foreign key on UNIQUE ... INCLUDE (id)",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, code int NOT NULL, CONSTRAINT by_code UNIQUE (code) INCLUDE (id)); INSERT INTO orders (code) SELECT n FROM generate_series(1, 100) AS n;
            CREATE TABLE items (code int REFERENCES orders (code), n int); INSERT INTO items SELECT n FROM generate_series(1, 100) AS n",
        application: "
            WITH new AS (INSERT INTO orders (code) SELECT max(code) + 1 FROM orders RETURNING code) INSERT INTO items (code) SELECT max(code) FROM orders",
        window: Outcome::Refused { sqlstate: "55000", obstacle: "by_code", postgres: ("ALTER TABLE orders ALTER COLUMN id TYPE bigint", "2BP01") },
        online: Outcome::Refused { sqlstate: "55000", obstacle: "by_code", postgres: ("ALTER TABLE orders DROP COLUMN id", "2BP01") },
        ..ENTRY
    },
    Entry {
        name: "indexes of all methods and options",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, a int, b text, c point, d int[]);
            CREATE INDEX of_hash ON orders USING hash (id); CREATE INDEX of_brin ON orders USING brin (id) WITH (pages_per_range = 4); CREATE INDEX of_multi ON orders USING brin (id int4_minmax_ops, a);
            CREATE INDEX of_gin ON orders USING gin (d); CREATE INDEX of_gist ON orders USING gist (c);
            CREATE UNIQUE INDEX of_two ON orders (a DESC NULLS LAST, id) INCLUDE (b) WITH (fillfactor = 60); CREATE UNIQUE INDEX of_nulls ON orders (id, a) NULLS NOT DISTINCT;
            CREATE INDEX of_text ON orders (b COLLATE \"C\", id); DROP INDEX of_multi;
            INSERT INTO orders (a, b, c, d) SELECT n, 'b', point(n, n), ARRAY[n] FROM generate_series(1, 500) AS n",
        application: "INSERT INTO orders (a, b) VALUES (1, 'x'); SELECT expect((SELECT count(*) FROM orders WHERE id BETWEEN 5 AND 14) = 10, 'the rows are found')",
        ..ENTRY
    },
    Entry {
        name: "an operator class of integer",
        setup: "CREATE TABLE orders (id serial PRIMARY KEY, a int); CREATE INDEX of_integers ON orders USING brin (id int4_minmax_multi_ops); INSERT INTO orders (a) SELECT 1 FROM generate_series(1, 100)",
        application: "INSERT INTO orders (a) VALUES (1)",
        window: Outcome::Refused { sqlstate: "55000", obstacle: "operator class int4_minmax_multi_ops", postgres: ("ALTER TABLE orders ALTER COLUMN id TYPE bigint", "42804") },
        online: Outcome::Refused { sqlstate: "55000", obstacle: "operator class int4_minmax_multi_ops", postgres: ("ALTER TABLE orders ADD COLUMN new bigint; CREATE INDEX ON orders USING brin (new int4_minmax_multi_ops)", "42804") },
        ..ENTRY
    },
    Entry {
        name: "a replica identity and a clustering index of the key",
        setup: "
            CREATE TABLE orders (id serial, tenant int NOT NULL, note text); ALTER TABLE orders ALTER COLUMN id SET NOT NULL; CREATE UNIQUE INDEX orders_identity ON orders (tenant, id);
            CREATE INDEX orders_by_tenant ON orders (tenant, id DESC); ALTER TABLE orders CLUSTER ON orders_by_tenant; ALTER TABLE orders REPLICA IDENTITY USING INDEX orders_identity;
            INSERT INTO orders (tenant, note) SELECT n % 7, 'n' FROM generate_series(1, 200) AS n",
        application: "INSERT INTO orders (tenant) VALUES (1); UPDATE orders SET note = 'y' WHERE tenant = 1 AND id = (SELECT max(id) FROM orders WHERE tenant = 1)",
        ..ENTRY
    },
    Entry {
        name: "an index and a CHECK whose function finds others by search_path",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text);
            CREATE FUNCTION digit(n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT n % 10';
            CREATE FUNCTION bucket(n bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN digit(n); END';
            CREATE FUNCTION is_sane(n bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN digit(n) >= 0; END';
            CREATE INDEX by_bucket ON orders (bucket(id)); ALTER TABLE orders ADD CONSTRAINT sane CHECK (is_sane(id)); INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 200)",
        application: "INSERT INTO orders (note) VALUES ('x'); SELECT expect((SELECT count(*) FROM orders WHERE bucket(id) = 3 AND note = 'n') = 20, 'a bucket is found')",
        // Rows are restored without a search path.
        can_be_restored: false,
        left_out: Some(("current_setting('server_version_num')::int >= 170000", "indexes are built with a search path of their own")),
        ..ENTRY
    },
];

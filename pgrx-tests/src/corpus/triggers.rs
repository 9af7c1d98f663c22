//! Triggers that use a key, or rows.

use super::{ENTRY, Entry, Outcome};

/// The entries.
#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "a history trigger that names its columns, and statement triggers with transition tables",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text, total int NOT NULL DEFAULT 0);
            CREATE TABLE orders_history (at timestamptz, order_id bigint, note text);
            CREATE TABLE totals (day date PRIMARY KEY, rows bigint NOT NULL);
            CREATE FUNCTION keep_history() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN INSERT INTO shop.orders_history SELECT now(), OLD.id, OLD.note; RETURN NULL; END $$;
            CREATE FUNCTION count_rows() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                INSERT INTO shop.totals SELECT current_date, count(*) FROM added ON CONFLICT (day) DO UPDATE SET rows = shop.totals.rows + excluded.rows;
                RETURN NULL;
            END $$;
            CREATE TRIGGER keeping AFTER UPDATE OR DELETE ON orders FOR EACH ROW EXECUTE FUNCTION keep_history();
            CREATE TRIGGER counting AFTER INSERT ON orders REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_rows();
            INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 100)",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO orders (note) VALUES ('x') RETURNING id INTO new_id; INSERT INTO orders (note) VALUES ('x'), ('y'); UPDATE orders SET note = 'z' WHERE id = new_id;
                PERFORM expect((SELECT note FROM orders_history WHERE order_id = new_id) = 'x', 'the update is in the history');
            END $$;
            SELECT expect((SELECT sum(rows) FROM totals) = (SELECT count(*) FROM orders), 'the rows are counted')",
        ..ENTRY
    },
    Entry {
        name: "a history trigger that copies whole rows (OLD.*)",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text, total int);
            CREATE TABLE orders_history (audit_id bigserial PRIMARY KEY, audit_time timestamptz, audit_action text, id bigint, note text, total int);
            CREATE FUNCTION audit_orders() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                INSERT INTO shop.orders_history SELECT nextval('shop.orders_history_audit_id_seq'), now(), substr(TG_OP, 1, 1), OLD.*;
                RETURN NULL;
            END $$;
            CREATE TRIGGER audit_orders AFTER UPDATE OR DELETE ON orders FOR EACH ROW EXECUTE FUNCTION audit_orders();
            INSERT INTO orders (note, total) SELECT 'n', n FROM generate_series(1, 100) AS n",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO orders (note, total) VALUES ('x', 1) RETURNING id INTO new_id; UPDATE orders SET total = 2 WHERE id = new_id;
                PERFORM expect((SELECT h.total FROM orders_history AS h WHERE h.id = new_id) = 1, 'the old row is in the history');
            END $$",
        online: Outcome::Warned { warning: "audit_orders",
            cure: "CREATE OR REPLACE FUNCTION audit_orders() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                INSERT INTO shop.orders_history (audit_time, audit_action, id, note, total) SELECT now(), substr(TG_OP, 1, 1), OLD.id, OLD.note, OLD.total;
                RETURN NULL;
            END $$" },
        ..ENTRY
    },
    Entry {
        name: "an archive that INSERT ... SELECT * fills",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text, old boolean NOT NULL DEFAULT false);
            CREATE TABLE orders_archive (LIKE orders); ALTER TABLE orders_archive ALTER COLUMN id TYPE bigint;
            CREATE FUNCTION archive_orders() RETURNS void LANGUAGE plpgsql AS $$
            BEGIN WITH moved AS (DELETE FROM shop.orders WHERE old RETURNING *) INSERT INTO shop.orders_archive SELECT * FROM moved; END $$;
            INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 100)",
        application: "
            INSERT INTO orders (note, old) VALUES ('x', true), ('y', false); SELECT archive_orders();
            SELECT expect(NOT EXISTS (SELECT FROM orders WHERE old) AND EXISTS (SELECT FROM orders_archive WHERE note = 'x'), 'old orders are moved')",
        online: Outcome::Warned { warning: "archive_orders",
            cure: "CREATE OR REPLACE FUNCTION archive_orders() RETURNS void LANGUAGE plpgsql AS $$
            BEGIN WITH moved AS (DELETE FROM shop.orders WHERE old RETURNING id, note, old) INSERT INTO shop.orders_archive (id, note, old) SELECT m.id, m.note, m.old FROM moved AS m; END $$" },
        ..ENTRY
    },
    Entry {
        name: "counters kept by a trigger's function with integer parameters",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, items_count int NOT NULL DEFAULT 0);
            CREATE TABLE items (id bigserial PRIMARY KEY, order_id int NOT NULL REFERENCES orders ON DELETE CASCADE);
            CREATE FUNCTION add_to_count(order_id integer, difference integer) RETURNS void LANGUAGE plpgsql AS $$
            BEGIN UPDATE shop.orders SET items_count = items_count + difference WHERE id = order_id; END $$;
            CREATE FUNCTION count_items() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM shop.add_to_count(NEW.order_id, 1); RETURN NULL; END $$;
            CREATE TRIGGER count_items AFTER INSERT ON items FOR EACH ROW EXECUTE FUNCTION count_items();
            INSERT INTO orders SELECT FROM generate_series(1, 100); INSERT INTO items (order_id) SELECT 1 + n % 100 FROM generate_series(1, 300) AS n",
        application: "
            WITH new AS (INSERT INTO orders DEFAULT VALUES RETURNING id) INSERT INTO items (order_id) SELECT id FROM new UNION ALL SELECT 1;
            SELECT expect((SELECT items_count FROM orders WHERE id = 1) = (SELECT count(*) FROM items WHERE order_id = 1), 'the items are counted')",
        widened: &[("shop.orders", "id"), ("shop.items", "order_id")],
        window: Outcome::Warned { warning: "add_to_count", cure: WIDE_COUNTER },
        online: Outcome::Warned { warning: "add_to_count", cure: WIDE_COUNTER },
        ..ENTRY
    },
    Entry {
        name: "counters kept by a trigger's function with bigint parameters",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, items_count int NOT NULL DEFAULT 0);
            CREATE TABLE items (id bigserial PRIMARY KEY, order_id int NOT NULL REFERENCES orders ON DELETE CASCADE);
            CREATE FUNCTION add_to_count(order_id bigint, difference integer) RETURNS void LANGUAGE plpgsql AS $$
            BEGIN UPDATE shop.orders SET items_count = items_count + difference WHERE id = order_id; END $$;
            CREATE FUNCTION count_items() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE item shop.items%ROWTYPE; parent shop.orders.id%TYPE;
            BEGIN
                IF TG_OP = 'INSERT' THEN item := NEW; ELSE item := OLD; END IF;
                parent := item.order_id;
                PERFORM shop.add_to_count(parent, CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END);
                RETURN NULL;
            END $$;
            CREATE TRIGGER count_items AFTER INSERT OR DELETE ON items FOR EACH ROW EXECUTE FUNCTION count_items();
            INSERT INTO orders SELECT FROM generate_series(1, 100); INSERT INTO items (order_id) SELECT 1 + n % 100 FROM generate_series(1, 300) AS n",
        application: "
            WITH new AS (INSERT INTO orders DEFAULT VALUES RETURNING id) INSERT INTO items (order_id) SELECT id FROM new UNION ALL SELECT 1 UNION ALL SELECT 1;
            DELETE FROM items WHERE id = (SELECT max(id) FROM items WHERE order_id = 1);
            SELECT expect((SELECT items_count FROM orders WHERE id = 1) = (SELECT count(*) FROM items WHERE order_id = 1), 'the items are counted')",
        widened: &[("shop.orders", "id"), ("shop.items", "order_id")],
        ..ENTRY
    },
    Entry {
        name: "a trigger that always sets the key from the sequence",
        setup: "
            CREATE SEQUENCE order_numbers; CREATE TABLE orders (id int PRIMARY KEY DEFAULT nextval('order_numbers'), note text);
            CREATE FUNCTION number_order() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := nextval('shop.order_numbers'); RETURN NEW; END $$;
            CREATE TRIGGER numbering BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION number_order();
            INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 100)",
        application: "INSERT INTO orders (note) VALUES ('x')",
        window: Outcome::Warned { warning: "number_order", cure: "DROP TRIGGER numbering ON orders" },
        online: Outcome::Warned { warning: "number_order", cure: "DROP TRIGGER numbering ON orders" },
        ..ENTRY
    },
    Entry {
        name: "updated_at, kept by a trigger, must not change",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text, updated_at timestamptz NOT NULL DEFAULT '2020-01-01', lock_version int NOT NULL DEFAULT 0);
            INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 500);
            CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.updated_at := clock_timestamp(); NEW.lock_version := OLD.lock_version + 1; RETURN NEW; END $$;
            CREATE TRIGGER touching BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION touch()",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO orders (note) VALUES ('x') RETURNING id INTO new_id; UPDATE orders SET note = 'y' WHERE id = new_id;
                PERFORM expect((SELECT lock_version FROM orders WHERE id = new_id) = 1, 'the version is counted');
            END $$;
            SELECT expect((SELECT updated_at FROM orders WHERE id = 1) = '2020-01-01', 'other rows are not touched')",
        ..ENTRY
    },
    Entry {
        name: "disabled triggers, and triggers of replicas",
        is_pushed: true,
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, status text DEFAULT 'new', note text);
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'this trigger is disabled'; END $$;
            CREATE FUNCTION accept() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := 'always'; RETURN NEW; END $$;
            CREATE TRIGGER disabled BEFORE INSERT OR UPDATE OR DELETE ON orders FOR EACH ROW EXECUTE FUNCTION refuse();
            ALTER TABLE orders DISABLE TRIGGER disabled;
            CREATE TRIGGER on_replicas BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION refuse();
            ALTER TABLE orders ENABLE REPLICA TRIGGER on_replicas;
            CREATE TRIGGER always BEFORE INSERT OR UPDATE OF status ON orders FOR EACH ROW EXECUTE FUNCTION accept();
            ALTER TABLE orders ENABLE ALWAYS TRIGGER always;
            INSERT INTO orders (status) SELECT 'new' FROM generate_series(1, 100)",
        application: "
            INSERT INTO orders (status) VALUES ('x'); UPDATE orders SET status = 'y', note = NULL WHERE id = 1;
            SELECT expect((SELECT count(*) FROM orders WHERE note IS DISTINCT FROM 'always') = 0, 'the trigger that is enabled always has fired')",
        ..ENTRY
    },
    Entry {
        name: "a trigger that fires on each UPDATE, ENABLE ALWAYS",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, changes int NOT NULL DEFAULT 0); INSERT INTO orders SELECT FROM generate_series(1, 100);
            CREATE FUNCTION count_changes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.changes := OLD.changes + 1; RETURN NEW; END $$;
            CREATE TRIGGER counting BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION count_changes();
            ALTER TABLE orders ENABLE ALWAYS TRIGGER counting",
        application: "INSERT INTO orders DEFAULT VALUES; UPDATE orders SET id = id WHERE id = 2; SELECT expect((SELECT changes FROM orders WHERE id = 1) = 0, 'no other row is changed')",
        online: Outcome::Avoided { sqlstate: "55000", obstacle: "trigger counting of shop.orders fires on each UPDATE",
            reason: "the rows are copied by UPDATE, and no setting keeps such a trigger from firing" },
        ..ENTRY
    },
    Entry {
        name: "triggers of the column itself: UPDATE OF, WHEN",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, note text); CREATE TABLE items (order_id int REFERENCES orders ON UPDATE CASCADE, note text);
            INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 100); INSERT INTO items SELECT id, 'i' FROM orders;
            CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'keys do not change' USING ERRCODE = '23001'; END $$;
            CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := NEW.note || '!'; RETURN NEW; END $$;
            CREATE TRIGGER no_change BEFORE UPDATE OF id ON orders FOR EACH ROW WHEN (old.id IS DISTINCT FROM new.id) EXECUTE FUNCTION refuse_change();
            CREATE TRIGGER noting BEFORE INSERT ON items FOR EACH ROW WHEN (new.order_id > 50) EXECUTE FUNCTION noted(); COMMENT ON TRIGGER noting ON items IS 'kept'",
        application: "
            DO $$ DECLARE new_id bigint; BEGIN
                INSERT INTO orders (note) VALUES ('x') RETURNING id INTO new_id; INSERT INTO items (order_id, note) VALUES (new_id, 'x');
                PERFORM expect((SELECT note FROM items WHERE order_id = new_id) = 'x!', 'the trigger with a condition has fired');
                BEGIN
                    UPDATE orders SET id = -1 WHERE id = new_id;
                    PERFORM expect(false, 'the key cannot be changed');
                EXCEPTION WHEN restrict_violation THEN NULL; END;
            END $$",
        widened: &[("shop.orders", "id"), ("shop.items", "order_id")],
        ..ENTRY
    },
    Entry {
        name: "deferred constraint triggers, notifications and rows as JSON",
        setup: "
            CREATE TABLE orders (id serial PRIMARY KEY, total int NOT NULL); CREATE TABLE items (order_id int REFERENCES orders, amount int);
            CREATE TABLE events (id bigserial, payload jsonb);
            INSERT INTO orders (total) SELECT 5 FROM generate_series(1, 50); INSERT INTO items SELECT id, 5 FROM orders;
            CREATE FUNCTION check_total() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF (SELECT o.total <> coalesce((SELECT sum(amount) FROM shop.items AS i WHERE i.order_id = o.id), 0) FROM shop.orders AS o WHERE o.id = NEW.id) THEN
                    RAISE EXCEPTION 'the total of order % is wrong', NEW.id;
                END IF;
                RETURN NULL;
            END $$;
            CREATE CONSTRAINT TRIGGER total AFTER INSERT OR UPDATE OF total ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_total();
            CREATE FUNCTION publish() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO shop.events (payload) VALUES (to_jsonb(NEW)); PERFORM pg_notify('orders', NEW.id::text); RETURN NULL;
            END $$;
            CREATE TRIGGER publishing AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION publish()",
        application: "
            WITH new AS (INSERT INTO orders (total) VALUES (7) RETURNING id) INSERT INTO items (order_id, amount) SELECT id, n FROM new, (VALUES (3), (4)) AS v (n);
            SELECT expect((SELECT (payload ->> 'total')::int FROM events ORDER BY id DESC LIMIT 1) = 7, 'the event has the row')",
        widened: &[("shop.orders", "id"), ("shop.items", "order_id")],
        ..ENTRY
    },
];

const WIDE_COUNTER: &str = "
    DROP FUNCTION add_to_count(integer, integer);
    CREATE FUNCTION add_to_count(order_id bigint, difference integer) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN UPDATE shop.orders SET items_count = items_count + difference WHERE id = order_id; END $$";

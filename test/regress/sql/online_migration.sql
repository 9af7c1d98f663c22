-- A plan that keeps the table in use, run step by step.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
-- Notices name IDs, sizes and speeds.
SET client_min_messages = warning;
-- Its own functions that a plan calls are not for people, and names that it
-- derives from OIDs differ: neither is shown.
CREATE FUNCTION pg_temp.shown(statement text) RETURNS text LANGUAGE sql AS $$
    SELECT regexp_replace(regexp_replace(statement, 'snowflake_migrate_internal\.', '', 'g'),
                          'snowflake_[0-9a-f]{8}_', 'snowflake_*_', 'g')
$$;
CREATE TABLE customers (id serial PRIMARY KEY, name text);
CREATE TABLE visits (customer_id int NOT NULL REFERENCES customers, day date);
INSERT INTO customers (name) SELECT 'customer ' || n FROM generate_series(1, 100) AS n;
INSERT INTO visits SELECT n, '2026-11-20' FROM generate_series(1, 100) AS n;
VACUUM ANALYZE customers, visits;
SELECT step, pg_temp.shown(statement) AS statement, lock, rewrites, in_transaction
FROM snowflake_migrate.plan('customers', online => true);
SELECT * FROM snowflake_migrate.progress;
-- All statements that these steps execute, without the comments, which name IDs and sizes, without
-- settings, and without those for the not-null constraints that PostgreSQL 18 has.
SELECT pg_temp.shown(statement) AS statement
FROM snowflake_migrate.ddl('customers', online => true) WHERE statement !~ '^(--.*)?$| ROLE|^(DO|SET|RESET) ';
-- What \gexec echoes are those statements.
\set ECHO none
\o /dev/null
SELECT statement FROM snowflake_migrate.plan('customers', online => true) \gexec
\o
\set ECHO all
SELECT count(*) AS left_to_do FROM snowflake_migrate.plan('customers', online => true);
SELECT attrelid::regclass AS table_name, attname, format_type(atttypid, atttypmod) AS type
FROM pg_attribute
WHERE attrelid IN ('customers'::regclass, 'visits'::regclass) AND attnum > 0 AND NOT attisdropped
ORDER BY attrelid::regclass::text COLLATE "C", attname COLLATE "C";
SELECT conrelid::regclass AS table_name, conname, pg_get_constraintdef(oid), convalidated
FROM pg_constraint
WHERE conrelid IN ('customers'::regclass, 'visits'::regclass) AND contype IN ('p', 'f')
ORDER BY conname COLLATE "C";
INSERT INTO customers (name) VALUES ('after') RETURNING id > snowflake_id_boundary('customers') AND snowflake_id_boundary('customers') > 1000 AS is_snowflake;
-- A column that was widened is the last one of its table now.
INSERT INTO visits (customer_id, day) SELECT id, date '2026-11-21' FROM customers WHERE name = 'after';
SELECT count(*) FROM visits JOIN customers ON id = customer_id;
CALL snowflake_migrate.revert('customers');
INSERT INTO customers (name) VALUES ('reverted') RETURNING id;
DROP TABLE visits, customers;
-- The limits of a backfill before it is called. Sizes are as a person writes them.
CREATE TABLE bills (id serial PRIMARY KEY, note text);
INSERT INTO bills (note) SELECT 'bill ' || n FROM generate_series(1, 100) AS n;
VACUUM ANALYZE bills;
SELECT step, substring(note FROM 'Its pace.*') AS pace FROM snowflake_migrate.plan('bills', online => true) WHERE statement LIKE 'CALL %';
\set ECHO none
\o /dev/null
SELECT statement FROM snowflake_migrate.plan('bills', online => true) WHERE step <= 2 \gexec
\o
\set ECHO all
SELECT batch_size, pause, max_replay_lag, max_active_sessions, max_slot_wal, max_growth FROM snowflake_migrate.progress;
CALL snowflake_migrate.pace('bills', max_replay_lag => '0', max_slot_wal => '1 GB', max_growth => '2 GB');
SELECT batch_size, pause, max_replay_lag, max_active_sessions, max_slot_wal, max_growth FROM snowflake_migrate.progress;
CALL snowflake_migrate.pace('bills', max_growth => '-1 GB');
CALL snowflake_migrate.pace('bills', max_growth => 'much');
CALL snowflake_migrate.pace('bills', max_slot_wal => '0', max_growth => '0');
SELECT max_slot_wal, max_growth FROM snowflake_migrate.progress;
-- No rate before the first batch; nor of figures that the owner has made up, for whom the view does not fail.
SELECT rows_per_second, time_left FROM snowflake_migrate.progress;
BEGIN;
SELECT snowflake_migrate_internal.keep_progress(jsonb_populate_record(p, '{"run_rows": 1000000000000, "run_seconds": 1e-300}'))
FROM snowflake_migrate_internal.progress AS p WHERE target = 'bills'::regclass;
SELECT rows_per_second, time_left FROM snowflake_migrate.progress;
SELECT snowflake_migrate_internal.keep_progress(jsonb_populate_record(p, '{"rows_done": 1000000000000000, "rows_total": 0, "run_rows": 1, "run_seconds": 1000000000}'))
FROM snowflake_migrate_internal.progress AS p WHERE target = 'bills'::regclass;
SELECT rows_per_second, time_left FROM snowflake_migrate.progress;
ROLLBACK;
CALL snowflake_migrate.backfill('bills');
SELECT rows_done, growth >= 0 AS has_growth, vacuum_held_back_by IS NULL AS is_free, waiting_for FROM snowflake_migrate.progress;
CALL snowflake_migrate.revert('bills');
DROP TABLE bills;
-- A migration that has begun can be cancelled.
CREATE TABLE tickets (id serial PRIMARY KEY, note text);
INSERT INTO tickets (note) VALUES ('first');
\set ECHO none
\o /dev/null
SELECT statement FROM snowflake_migrate.plan('tickets', online => true) WHERE step <= 2 \gexec
\o
\set ECHO all
INSERT INTO tickets (note) VALUES ('while it is under way');
SELECT table_name, column_name, step, rows_done FROM snowflake_migrate.progress;
CALL snowflake_migrate.revert('tickets');
SELECT table_name, column_name, step, rows_done FROM snowflake_migrate.progress;
INSERT INTO tickets (note) VALUES ('second') RETURNING id;
DROP TABLE tickets;
-- A trigger on each UPDATE does not fire when rows are copied, also if the owner may not set
-- session_replication_role, and is the same afterwards.
CREATE ROLE regress_keeper;
CREATE SCHEMA guarded AUTHORIZATION regress_keeper;
SET ROLE regress_keeper;
CREATE TABLE guarded.orders (id serial PRIMARY KEY, changes int NOT NULL DEFAULT 0);
CREATE FUNCTION guarded.counted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.changes := OLD.changes + 1; RETURN NEW; END';
CREATE TRIGGER counting BEFORE UPDATE ON guarded.orders FOR EACH ROW WHEN (OLD.changes < 5) EXECUTE FUNCTION guarded.counted();
ALTER TABLE guarded.orders ENABLE ALWAYS TRIGGER counting;
INSERT INTO guarded.orders SELECT FROM generate_series(1, 100);
SELECT what FROM snowflake_migrate.plan('guarded.orders', online => true) WHERE what ~ 'trigger';
\set ECHO none
\o /dev/null
SELECT statement FROM snowflake_migrate.plan('guarded.orders', online => true) \gexec
\o
\set ECHO all
SELECT changes, count(*) FROM guarded.orders GROUP BY changes;
UPDATE guarded.orders SET id = id WHERE id = 7 RETURNING changes;
SELECT pg_get_triggerdef(oid), tgenabled FROM pg_trigger WHERE tgrelid = 'guarded.orders'::regclass AND NOT tgisinternal;
RESET ROLE;
DROP SCHEMA guarded CASCADE;
DROP ROLE regress_keeper;
-- Triggers of which the same is to be said are in one sentence, of a refusal and of a warning.
CREATE ROLE regress_keeper;
CREATE SCHEMA guarded AUTHORIZATION regress_keeper;
CREATE FUNCTION guarded.own_number() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.id := 5; RETURN NEW; END';
REVOKE EXECUTE ON FUNCTION guarded.own_number() FROM PUBLIC;
CREATE TABLE guarded.orders (id serial PRIMARY KEY);
CREATE TABLE guarded.items (id serial PRIMARY KEY);
CREATE TRIGGER first BEFORE INSERT OR UPDATE ON guarded.orders FOR EACH ROW EXECUTE FUNCTION guarded.own_number();
CREATE TRIGGER second BEFORE UPDATE ON guarded.orders FOR EACH ROW EXECUTE FUNCTION guarded.own_number();
CREATE TRIGGER first BEFORE INSERT OR UPDATE ON guarded.items FOR EACH ROW EXECUTE FUNCTION guarded.own_number();
ALTER TABLE guarded.orders OWNER TO regress_keeper;
ALTER TABLE guarded.items OWNER TO regress_keeper;
SET ROLE regress_keeper;
SELECT what FROM snowflake_migrate.plan('guarded.orders', also => '{guarded.items}', online => true);
RESET ROLE;
SELECT what FROM snowflake_migrate.plan('guarded.orders', also => '{guarded.items}') WHERE step = 1;
DROP SCHEMA guarded CASCADE;
DROP ROLE regress_keeper;
-- A partition could get the counterpart of another index or foreign key of its parent; and an index that is not attached everywhere
-- would be lost. What a partition has of its parent is altered by the parent's owner.
CREATE ROLE regress_keeper;
CREATE TABLE goods (id serial PRIMARY KEY);
CREATE TABLE stock (id serial, k int NOT NULL, goods_id int CONSTRAINT of_all REFERENCES goods) PARTITION BY RANGE (k);
CREATE TABLE stock_1 PARTITION OF stock FOR VALUES FROM (0) TO (100);
ALTER TABLE stock ADD PRIMARY KEY (id, k); ALTER TABLE stock_1 ADD UNIQUE (id, k), ADD CONSTRAINT of_one FOREIGN KEY (goods_id) REFERENCES goods;
CREATE INDEX up ON stock (k, id); CREATE INDEX down ON stock (k, id DESC); CREATE INDEX other ON stock_1 (id);
CREATE INDEX unattached ON ONLY stock (id);
SELECT what FROM snowflake_migrate.plan('stock', also => '{goods}', online => true, keep_sequence => true);
-- The same after the casts that a bigint does not need; and what is not the same.
DROP INDEX up, down, unattached; ALTER TABLE stock_1 DROP CONSTRAINT stock_1_id_k_key, DROP CONSTRAINT of_one;
CREATE INDEX up ON stock (k) WHERE id > 5; CREATE INDEX down ON stock_1 (k) WHERE id::bigint > 5; CREATE INDEX cast_only ON goods ((id::bigint));
SELECT what FROM snowflake_migrate.plan('stock', also => '{goods}', online => true, keep_sequence => true);
DROP INDEX up, down, cast_only; CREATE UNIQUE INDEX up ON stock (id, k) NULLS NOT DISTINCT; CREATE INDEX unattached ON ONLY stock (k);
ALTER TABLE stock_1 ADD CONSTRAINT of_one FOREIGN KEY (goods_id) REFERENCES goods ON DELETE CASCADE;
SELECT count(*) > 10 AS has_steps FROM snowflake_migrate.plan('stock', also => '{goods}', online => true, keep_sequence => true);
ALTER TABLE stock OWNER TO regress_keeper; ALTER TABLE stock_1 OWNER TO CURRENT_USER;
SELECT what FROM snowflake_migrate.plan('stock', keep_sequence => true);
DROP TABLE stock, goods;
DROP ROLE regress_keeper;
-- Figures that an owner has made up keep no role from the view.
CREATE TEMP TABLE made_up (id int);
SELECT snowflake_migrate_internal.keep_progress(jsonb_populate_record(NULL::snowflake_migrate_internal.progress, jsonb '{
    "target": "made_up", "column_name": "id", "relation": "made_up", "blocks_done": 0, "blocks_total": 0, "skipped": "{}", "rows_done": 0,
    "rows_total": 0, "run_rows": 0, "run_seconds": 0, "updated_at": "2026-01-01", "bytes_before": -1}' || f))
FROM unnest(ARRAY['{"bytes_now": 9223372036854775807}', '{"run_seconds": "Infinity"}']::jsonb[]) AS f;
SELECT count(*) FROM snowflake_migrate.progress;
SELECT snowflake_migrate_internal.end_backfill('made_up', 'id');
DROP TABLE made_up;
-- Who waits for many tables names ten of them.
\set VERBOSITY terse
SELECT snowflake_migrate_internal.lock_missed('{pg_type,pg_attribute,pg_proc,pg_class,pg_cast,pg_enum,pg_rewrite,pg_operator,pg_trigger,pg_am,pg_index,pg_opclass}',
    'ACCESS EXCLUSIVE', now() - interval '11 minutes', now());

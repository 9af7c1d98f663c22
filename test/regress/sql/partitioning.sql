-- A table that exists becomes partitioned by its key's time, without a rewrite.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SET client_min_messages = warning;
CREATE TABLE users (id bigint PRIMARY KEY);
CREATE TABLE events (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval(), user_id bigint NOT NULL REFERENCES users, n serial,
    kind text COLLATE "C" NOT NULL DEFAULT 'a' CONSTRAINT not_empty CHECK (kind <> ''), unused int,
    double bigint GENERATED ALWAYS AS (user_id * 2) STORED, UNIQUE (user_id, id));
ALTER TABLE events DROP COLUMN unused, ALTER kind SET STATISTICS 300, REPLICA IDENTITY FULL, ENABLE ROW LEVEL SECURITY;
CREATE INDEX by_kind ON events (lower(kind) DESC) INCLUDE (n) WHERE kind <> 'x';
CREATE STATISTICS kinds ON kind, user_id FROM events;
COMMENT ON TABLE events IS 'what happens'; COMMENT ON COLUMN events.kind IS 'its kind'; COMMENT ON CONSTRAINT not_empty ON events IS 'a check';
COMMENT ON INDEX by_kind IS 'an index'; COMMENT ON STATISTICS kinds IS 'statistics';
CREATE ROLE partitions_reader; CREATE ROLE partitions_writer;
GRANT SELECT ON events TO partitions_reader WITH GRANT OPTION; GRANT INSERT (kind, user_id) ON events TO partitions_writer;
CREATE POLICY of_one ON events FOR SELECT TO partitions_reader USING (user_id = 1);
CREATE TABLE seen (kind text, by text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen VALUES (NEW.kind, TG_NAME || ' ' || TG_TABLE_NAME); RETURN NULL; END $$;
CREATE TRIGGER see AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER see_not AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION see();
ALTER TABLE events DISABLE TRIGGER see_not;
CREATE VIEW recent AS SELECT id, kind FROM events WHERE kind <> 'x'; CREATE VIEW counted AS SELECT count(*) FROM events;
GRANT SELECT ON recent TO partitions_reader; COMMENT ON VIEW recent IS 'a view';
CREATE FUNCTION of_kind(text) RETURNS SETOF events LANGUAGE sql STABLE AS 'SELECT * FROM events WHERE kind = $1';
CREATE TABLE notes (event_id bigint REFERENCES events ON DELETE CASCADE);
CREATE TABLE marks (event_id bigint REFERENCES events DEFERRABLE INITIALLY DEFERRED);
INSERT INTO users SELECT generate_series(1, 10);
INSERT INTO events (user_id, kind) SELECT 1 + n % 10, 'b' FROM generate_series(1, 100) AS n;
INSERT INTO notes SELECT id FROM events; INSERT INTO marks SELECT id FROM events;
TRUNCATE seen;
ANALYZE;
SELECT target, column_name, estimated_rows, obstacles FROM snowflake_migrate.partition_survey() WHERE target = 'events'::regclass;
SELECT step_number, what, lock, in_transaction FROM snowflake_migrate.partition_plan('events', '1 day', 'Europe/Berlin');
-- What the step does, without what is of the moment.
SELECT regexp_replace(statement, '[0-9]{12,}', '*', 'g') FROM snowflake_migrate.partition_ddl('events', '1 day', 'UTC') AS d (statement)
WHERE statement ~ '^(ALTER TABLE public.events |ALTER TABLE ONLY public.events_p0|CREATE TABLE|ALTER INDEX|ALTER SEQUENCE|REVOKE ALL ON TABLE public.events_p0)';
-- The first step: rows beyond the bound are refused from now on, and others are not.
SELECT statement FROM snowflake_migrate.partition_plan('events', '1 day', 'Europe/Berlin') ORDER BY step_number LIMIT 1 \gset
\pset tuples_only on
:statement ;
\pset tuples_only off
\set VERBOSITY terse
INSERT INTO events (id, user_id) VALUES (snowflake_min_id(now() + interval '10 days'), 1);
\set VERBOSITY default
INSERT INTO events (user_id, kind) VALUES (1, 'c');
SELECT min(step_number) AS first, count(*) FROM snowflake_migrate.partition_plan('events', '1 day', 'Europe/Berlin');
-- It is cancelled.
CALL snowflake_migrate.partition_revert('events');
SELECT conname FROM pg_constraint WHERE conrelid = 'events'::regclass AND contype = 'c';
CALL snowflake_migrate.partition_revert('events');
-- A check whose time is over refuses nothing, whatever its bound. The swap does not trust it, and a plan adds a new one.
ALTER TABLE events ADD CONSTRAINT late CHECK (id < snowflake_migrate_internal.partition_bound('5', '5')) NO INHERIT NOT VALID;
INSERT INTO events (user_id, kind) VALUES (1, 'd');
\set VERBOSITY terse
SELECT snowflake_migrate_internal.partition_table('events', '{"step": "1 day", "time_zone": "UTC", "ahead": "2 days", "lead": "1 day"}');
SELECT count(*) FROM snowflake_migrate.partition_plan('events', '1 day', 'Europe/Berlin');
-- And one that is ahead, while a row is beyond it.
ALTER TABLE events DROP CONSTRAINT late, ADD CONSTRAINT wrong CHECK (id < snowflake_migrate_internal.partition_bound('5', '9000000000000')) NO INHERIT NOT VALID;
\set VERBOSITY terse
SELECT snowflake_migrate_internal.partition_table('events', '{"step": "1 day", "time_zone": "UTC", "ahead": "2 days", "lead": "1 day"}');
\set VERBOSITY default
ALTER TABLE events DROP CONSTRAINT wrong;
-- All steps.
CALL snowflake_migrate.partition('events', '1 day', 'Europe/Berlin', ahead => '3 days');
SELECT * FROM snowflake_migrate.partition_plan('events', '1 day', 'Europe/Berlin');
CALL snowflake_migrate.partition('events', '1 day', 'Europe/Berlin');
SELECT c.relname, c.relkind, c.relispartition, pg_get_expr(c.relpartbound, c.oid) LIKE 'FOR VALUES FROM (MINVALUE)%' AS is_first, c.relrowsecurity, c.relreplident
FROM pg_class AS c WHERE c.oid IN ('events'::regclass, 'events_p0'::regclass) ORDER BY c.relname;
-- Whatever the planner knows.
SELECT snowflake_migrate_internal.partition_relations('events') AS relations \gset
SET enable_hashagg = off;
SELECT snowflake_migrate_internal.partition_relations('events') = :'relations' AS same_order;
RESET enable_hashagg;
SELECT count(*) BETWEEN 1 AND 4 AS are_ahead FROM pg_inherits WHERE inhparent = 'events'::regclass AND inhrelid <> 'events_p0'::regclass;
SELECT step, time_zone, ahead, keep FROM snowflake_partitions.settings WHERE parent = 'events'::regclass;
\set VERBOSITY terse
CALL snowflake_partitions.maintain('events');
\set VERBOSITY default
SELECT conname, contype, convalidated, conislocal FROM pg_constraint WHERE conrelid = 'events'::regclass AND contype <> 'n' ORDER BY conname;
SELECT i.indexrelid::regclass AS index, h.inhrelid::regclass AS of_the_partition, obj_description(i.indexrelid) FROM pg_index AS i
JOIN pg_inherits AS h ON h.inhparent = i.indexrelid JOIN pg_index AS p ON p.indexrelid = h.inhrelid AND p.indrelid = 'events_p0'::regclass
WHERE i.indrelid = 'events'::regclass ORDER BY 1;
SELECT conrelid::regclass, conname, convalidated, condeferred, confdeltype FROM pg_constraint
WHERE contype = 'f' AND confrelid = 'events'::regclass AND conparentid = 0 ORDER BY 1;
SELECT relname, relacl FROM (SELECT relname, string_agg(DISTINCT x.grantee::regrole || ' ' || x.privilege_type, ', ') AS relacl FROM pg_class AS c
    CROSS JOIN LATERAL aclexplode(c.relacl) AS x WHERE c.relname IN ('events', 'events_p0') AND x.grantee <> c.relowner GROUP BY relname) AS a ORDER BY 1;
SELECT attname, attacl IS NOT NULL AS is_granted, nullif(attstattarget, -1) AS target, col_description(attrelid, attnum) FROM pg_attribute
WHERE attrelid = 'events'::regclass AND attname IN ('kind', 'user_id') ORDER BY 1;
SELECT tgrelid::regclass, tgname, tgenabled, tgparentid <> 0 AS is_copy FROM pg_trigger
WHERE tgrelid IN ('events'::regclass, 'events_p0'::regclass) AND NOT tgisinternal ORDER BY 1, 2;
SELECT pg_get_serial_sequence('events', 'n'), obj_description('events'::regclass), (SELECT count(*) FROM pg_policy WHERE polrelid = 'events'::regclass) AS policies,
       (SELECT count(*) FROM pg_statistic_ext WHERE stxrelid = 'events'::regclass) AS statistics, obj_description('recent'::regclass);
-- It works as before; a row trigger sees the partition.
INSERT INTO events (user_id, kind) VALUES (2, 'e'); TABLE seen;
SELECT * FROM counted; SELECT count(*) FROM recent; SELECT count(*) FROM of_kind('b');
INSERT INTO events (id, user_id, kind) SELECT id, 1, 'again' FROM events WHERE kind = 'e' ON CONFLICT ON CONSTRAINT events_pkey DO UPDATE SET kind = 'f' RETURNING kind;
DELETE FROM marks; DELETE FROM events WHERE kind = 'b' AND user_id = 1; SELECT count(*) FROM notes;
SET ROLE partitions_reader; SELECT count(*) FROM events; SELECT count(*) FROM events_p0; RESET ROLE;
-- Back, as long as only the first partition has rows.
INSERT INTO events (id, user_id) VALUES (snowflake_min_id(now() + interval '60 hours'), 1);
\set VERBOSITY sqlstate
CALL snowflake_migrate.partition_revert('events');
\set VERBOSITY default
DELETE FROM events WHERE id > snowflake_min_id(now() + interval '50 hours');
CALL snowflake_migrate.partition_revert('events');
SELECT relname, relkind FROM pg_class WHERE relname LIKE 'events%' ORDER BY 1;
SELECT conrelid::regclass, conname, convalidated FROM pg_constraint WHERE contype = 'f' AND confrelid = 'events'::regclass ORDER BY 1;
SELECT count(*) FROM events; SELECT count(*) AS settings FROM snowflake_partitions_internal.settings;
-- What PostgreSQL refuses for partitioned tables is an obstacle before anything changes.
CREATE TABLE refused (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval(), email text UNIQUE, parent bigint REFERENCES refused, n int GENERATED ALWAYS AS IDENTITY,
    size int CONSTRAINT small CHECK (size < 5) NO INHERIT, CONSTRAINT big CHECK (size > 1), during tstzrange, EXCLUDE USING gist (during WITH &&));
CREATE TABLE by_email (email text REFERENCES refused (email));
CREATE TABLE not_checked (id bigint); ALTER TABLE not_checked ADD FOREIGN KEY (id) REFERENCES refused NOT VALID;
CREATE TABLE holds (a refused, b refused[]);
CREATE TABLE child () INHERITS (refused);
CREATE MATERIALIZED VIEW kept AS SELECT count(*) FROM refused;
CREATE TRIGGER see AFTER INSERT ON users REFERENCING NEW TABLE AS new_rows FOR EACH ROW EXECUTE FUNCTION see();
SELECT o.obstacle, o.remedy FROM snowflake_migrate_internal.partition_obstacles('refused', 'id') AS o;
SELECT o.obstacle, o.remedy FROM snowflake_migrate_internal.partition_obstacles('users', 'id') AS o;
\set VERBOSITY terse
CALL snowflake_migrate.partition('refused', '1 day', 'UTC');
SELECT * FROM snowflake_migrate.partition_plan('events', '1 day 1 hour', 'UTC');
SELECT * FROM snowflake_migrate.partition_plan('events', '1 day', 'Mars/Base');
SELECT * FROM snowflake_migrate.partition_plan('events', '1 day', 'UTC', lead => '0');
SELECT * FROM snowflake_migrate.partition_plan(NULL, '1 day', 'UTC');
SELECT * FROM snowflake_migrate.partition_plan('recent', '1 day', 'UTC');
BEGIN; SELECT 1; CALL snowflake_migrate.partition('events', '1 day', 'UTC'); ROLLBACK;
SET ROLE partitions_reader; SELECT * FROM snowflake_migrate.partition_plan('events', '1 day', 'UTC'); CALL snowflake_migrate.partition_revert('events'); RESET ROLE;
\set VERBOSITY default
-- A key of a sequence gets its IDs by the same plan.
CREATE TABLE numbered (id bigserial PRIMARY KEY, what text); INSERT INTO numbered (what) SELECT 'old' FROM generate_series(1, 10);
SELECT step_number, what FROM snowflake_migrate.partition_plan('numbered', '1 day', 'UTC');
-- Default privileges give nobody what the table does not: nor past its row security.
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO partitions_reader, partitions_writer; GRANT SELECT ON numbered TO partitions_reader;
CREATE VIEW partition_readers AS SELECT has_table_privilege('partitions_reader', inhrelid, 'SELECT') AS reader,
    has_table_privilege('partitions_writer', inhrelid, 'SELECT') AS writer, count(*) > 0 AS some
FROM pg_inherits WHERE inhparent = 'numbered'::regclass GROUP BY 1, 2 ORDER BY 1, 2;
CALL snowflake_migrate.partition('numbered', '1 day', 'UTC');
TABLE partition_readers;
SELECT snowflake_partitions.configure('numbered', '1 day', 'UTC', ahead => '9 days'); CALL snowflake_partitions.maintain('numbered');
TABLE partition_readers;
ALTER TABLE numbered ENABLE ROW LEVEL SECURITY;
SELECT snowflake_partitions.configure('numbered', '1 day', 'UTC', ahead => '11 days');
SELECT regexp_replace(s, '[0-9]{8,}', '*', 'g') FROM snowflake_partitions.statements('numbered') AS s LIMIT 1; CALL snowflake_partitions.maintain('numbered');
SELECT has_table_privilege('partitions_reader', max(inhrelid), 'SELECT') FROM pg_inherits WHERE inhparent = 'numbered'::regclass;
ALTER TABLE numbered DISABLE ROW LEVEL SECURITY; DROP VIEW partition_readers;
ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM partitions_reader, partitions_writer;
INSERT INTO numbered (what) VALUES ('new');
SELECT count(*) FILTER (WHERE id < snowflake_id_boundary('numbered')) AS old, count(*) FILTER (WHERE id >= snowflake_id_boundary('numbered')) AS new FROM numbered;
BEGIN; DROP EXTENSION snowflake_partitions CASCADE; SELECT snowflake_migrate_internal.unpartition_table('numbered'); ROLLBACK;
-- A table that references it, there and back; and a key of a domain.
CREATE TABLE referring (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), numbered_id bigint REFERENCES numbered);
INSERT INTO referring (numbered_id) SELECT id FROM numbered;
CALL snowflake_migrate.partition('referring', '1 day', 'UTC');
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'referring'::regclass AND contype = 'f' AND conparentid = 0;
CALL snowflake_migrate.partition_revert('referring');
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'referring'::regclass AND contype = 'f' AND conparentid = 0;
SELECT count(*) FROM referring AS r JOIN numbered AS n ON n.id = r.numbered_id; DROP TABLE referring;
CREATE DOMAIN wide AS bigint; CREATE TABLE of_domain (id wide PRIMARY KEY DEFAULT snowflake_nextval());
SELECT obstacles FROM snowflake_migrate.partition_survey() WHERE target = 'of_domain'::regclass; DROP TABLE of_domain; DROP DOMAIN wide;
-- An owner without CREATE on the schema could not create partitions. Who maintains no table is warned.
CREATE TABLE of_writer (id bigint PRIMARY KEY DEFAULT snowflake_nextval()); ALTER TABLE of_writer OWNER TO partitions_writer;
SELECT obstacles FROM snowflake_migrate.partition_survey() WHERE target = 'of_writer'::regclass; DROP TABLE of_writer;
SET ROLE partitions_writer; CALL snowflake_partitions.maintain(); RESET ROLE;
CALL snowflake_migrate.partition_revert('numbered'); SELECT count(*) FROM numbered;
DROP TABLE numbered, refused, by_email, not_checked, holds, child, users, events, seen, notes, marks CASCADE; DROP FUNCTION see; DROP ROLE partitions_reader, partitions_writer;

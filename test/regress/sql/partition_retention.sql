-- Partitions that are kept up by one call a night, at given times.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE TABLE parents (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), what text) PARTITION BY RANGE (id);
CREATE TABLE children (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), parent bigint REFERENCES parents) PARTITION BY RANGE (id);
CALL snowflake_partitions.maintain('parents');
SELECT snowflake_partitions.configure('parents', '1 day', 'UTC', ahead => '2 days', keep => '2 days');
SELECT snowflake_partitions.configure('children', '1 day', 'UTC', ahead => '2 days', keep => '2 days');
TABLE snowflake_partitions.settings;
-- Before PostgreSQL looks for referencing rows by a join: where an index has them, it is to be used.
BEGIN;
SELECT snowflake_partitions_internal.prefer_indexes('parents');
SHOW enable_hashjoin;
CREATE INDEX ON children (parent);
SELECT snowflake_partitions_internal.prefer_indexes('parents');
SHOW enable_hashjoin;
ROLLBACK;
SELECT snowflake_partitions_internal.statements('parents', '2026-11-01 01:00+00');
-- The table that refers to the other one is the first.
CALL snowflake_partitions_internal.maintain(NULL, '2026-11-01 01:00+00', 1, 0);
-- Again: nothing is to do.
CALL snowflake_partitions_internal.maintain(NULL, '2026-11-01 01:00+00', 1, 0);
INSERT INTO parents SELECT snowflake_compose(t, 0, 0, 0) FROM generate_series(timestamptz '2026-11-01 12:00+00', '2026-11-02 12:00+00', '1 day') AS t;
INSERT INTO children VALUES (snowflake_compose('2026-11-03 12:00+00', 0, 0, 0), snowflake_compose('2026-11-01 12:00+00', 0, 0, 0));
-- Three nights were missed. A row refers to the first of November.
SELECT snowflake_partitions_internal.statements(NULL, '2026-11-05 01:00+00');
CALL snowflake_partitions_internal.maintain(NULL, '2026-11-05 01:00+00', 1, 0);
SELECT name, since, until, due_at, kept_because, referenced_by FROM snowflake_partitions_internal.shown('2026-11-05 01:00+00')
WHERE parent = 'parents'::regclass;
-- With that row, its reason is gone. In another isolation level than the default, too.
SET default_transaction_isolation = 'repeatable read';
CALL snowflake_partitions_internal.maintain(NULL, '2026-11-06 01:00+00', 1, 0);
RESET default_transaction_isolation;
SELECT parent, min(since), max(until), count(*) FROM snowflake_partitions_internal.shown('2026-11-06 01:00+00') GROUP BY parent ORDER BY parent;
SELECT snowflake_partitions.forget('children');
DROP TABLE children, parents;
CALL snowflake_partitions_internal.maintain(NULL, '2026-11-06 01:00+00', 1, 0);
TABLE snowflake_partitions.settings;
-- Rows that are older than the snowflake IDs are kept, with their partition.
CREATE TABLE migrated (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE migrated_old PARTITION OF migrated FOR VALUES FROM (0) TO (%s)', snowflake_min_id('2026-11-01 00:00+00')) \gexec
INSERT INTO migrated SELECT generate_series(1, 10);
SELECT snowflake_partitions.configure('migrated', '1 day', 'UTC', '2 days', '1 day');
CALL snowflake_partitions_internal.maintain('migrated', '2026-11-06 01:00+00', 1, 0);
SELECT snowflake_set_id_boundary('migrated', NULL, snowflake_min_id('2026-10-01 00:00+00'));
CALL snowflake_partitions_internal.maintain('migrated', '2026-11-06 01:00+00', 1, 0);
SELECT count(*) FROM migrated;
DROP TABLE migrated;
-- Views, other foreign keys and other owners are reasons, too.
CREATE TABLE used (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT snowflake_partitions.configure('used', '1 day', 'UTC', '0 days', '0 days');
CALL snowflake_partitions_internal.maintain('used', '2026-11-01 01:00+00', 1, 0);
CALL snowflake_partitions_internal.maintain('used', '2026-11-01 23:59+00', 1, 0);
CREATE VIEW of_one AS SELECT * FROM used_p20261101;
CALL snowflake_partitions_internal.maintain('used', '2026-11-02 00:00+00', 1, 0);
DROP VIEW of_one;
CREATE TABLE refers (id bigint REFERENCES used_p20261101);
CALL snowflake_partitions_internal.maintain('used', '2026-11-02 00:00+00', 1, 0);
DROP TABLE refers;
CALL snowflake_partitions_internal.maintain('used', '2026-11-02 00:00+00', 1, 0);
DROP TABLE used;
-- A row refers to a partition without a beginning.
CREATE TABLE used (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE used_first PARTITION OF used FOR VALUES FROM (MINVALUE) TO (%s)', snowflake_min_id('2026-11-01 00:00+00')) \gexec
CREATE TABLE refers (id bigint REFERENCES used);
INSERT INTO used VALUES (snowflake_compose('2026-10-01 12:00+00', 0, 0, 0));
INSERT INTO refers TABLE used;
SELECT snowflake_partitions.configure('used', '1 day', 'UTC', '0 days', '1 day');
CALL snowflake_partitions_internal.maintain('used', '2026-11-03 01:00+00', 1, 0);
DELETE FROM refers;
CALL snowflake_partitions_internal.maintain('used', '2026-11-03 01:00+00', 1, 0);
DROP TABLE refers, used;
-- Rows in the DEFAULT partition.
CREATE TABLE late (id bigint PRIMARY KEY, what text) PARTITION BY RANGE (id);
CREATE TABLE late_default (what text, id bigint NOT NULL);
ALTER TABLE late ATTACH PARTITION late_default DEFAULT;
INSERT INTO late SELECT snowflake_compose('2026-11-01 12:00+00', 0, 0, i), 'noon' FROM generate_series(1, 3) AS i;
INSERT INTO late VALUES (snowflake_compose('2026-10-01 12:00+00', 0, 0, 0), 'earlier');
SELECT snowflake_partitions.configure('late', '1 day', 'UTC', '0 days');
CREATE TRIGGER seen BEFORE DELETE ON late FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
CALL snowflake_partitions_internal.maintain('late', '2026-11-01 13:00+00', 1, 0);
SELECT error_code FROM snowflake_partitions.status;
DROP TRIGGER seen ON late;
CALL snowflake_partitions_internal.maintain('late', '2026-11-01 13:00+00', 1, 0);
SELECT tableoid::regclass, what, count(*) FROM late GROUP BY 1, 2 ORDER BY 1;
DROP TABLE late;
SELECT parent FROM snowflake_partitions.status;
-- Days of 23 and 25 hours, months; hours are those of UTC.
CREATE TABLE berlin (id bigint) PARTITION BY RANGE (id);
SELECT snowflake_partitions.configure('berlin', '1 day', 'Europe/Berlin', '2 days');
CALL snowflake_partitions_internal.maintain('berlin', '2026-03-28 12:00+00', 1, 0);
SELECT name, until - since AS span FROM snowflake_partitions_internal.shown('2026-03-28 12:00+00');
ALTER TABLE berlin REPLICA IDENTITY FULL;
SELECT snowflake_partitions_internal.statements('berlin', '2026-03-29 12:00+00');
SELECT snowflake_partitions_internal.step_start('2026-10-25 12:00+00', s::interval, 'Europe/Berlin') AS "start", s AS step
FROM unnest(ARRAY['1 day', '7 days', '1 month', '3 months', '1 year']) AS s;
SELECT snowflake_partitions_internal.zone_of('1 day', 'Europe/Berlin'), snowflake_partitions_internal.zone_of('6 hours', 'Europe/Berlin');
-- A day that begins at one o'clock: the next begins at midnight.
CREATE TABLE beirut (id bigint) PARTITION BY RANGE (id);
SELECT snowflake_partitions.configure('beirut', '1 day', 'Asia/Beirut', '1 day');
CALL snowflake_partitions_internal.maintain('beirut', '2026-03-29 10:00+03', 1, 0);
CALL snowflake_partitions_internal.maintain('beirut', '2026-03-31 10:00+03', 1, 0);
SELECT name, since AT TIME ZONE 'Asia/Beirut' AS since FROM snowflake_partitions_internal.shown('2026-03-31 10:00+03') WHERE parent = 'beirut'::regclass;
-- A time zone that is gone is an error of its table.
ALTER TABLE snowflake_partitions_internal.settings DISABLE TRIGGER check_settings;
UPDATE snowflake_partitions_internal.settings SET time_zone = 'Nowhere/Near' WHERE parent = 'beirut'::regclass;
ALTER TABLE snowflake_partitions_internal.settings ENABLE ALWAYS TRIGGER check_settings;
CALL snowflake_partitions_internal.maintain(NULL, '2026-03-28 12:00+00', 1, 0);
SELECT parent, error_code FROM snowflake_partitions.status ORDER BY parent::text;
DROP TABLE beirut;
-- What is below a partition keeps it; what does not fire, and columns in another order, do not prevent a move.
CREATE TABLE deep (id bigint PRIMARY KEY, a bigint, b bigint) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE deep_1 PARTITION OF deep FOR VALUES FROM (%s) TO (%s) PARTITION BY RANGE (id)', snowflake_min_id('2026-03-01 00:00+00'), snowflake_min_id('2026-03-02 00:00+00')) \gexec
CREATE TABLE leaf PARTITION OF deep_1 DEFAULT; CREATE VIEW of_leaf AS SELECT id FROM leaf;
CREATE TABLE rest (b bigint, a bigint, id bigint NOT NULL); ALTER TABLE deep ATTACH PARTITION rest DEFAULT;
INSERT INTO deep VALUES (snowflake_compose('2026-03-02 12:00+00', 0, 0, 0), 1, 2);
CREATE TRIGGER seen AFTER INSERT ON deep FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
SELECT snowflake_partitions.ddl('deep', '2026-03-02', '2026-03-03', '1 day', 'UTC');
ALTER TABLE deep DISABLE TRIGGER seen;
SELECT snowflake_partitions.configure('deep', '1 day', 'UTC', '0 days', '0 days');
CALL snowflake_partitions_internal.maintain('deep', '2026-03-02 13:00+00', 1, 0);
SELECT tableoid::regclass, a, b FROM deep;
DROP TABLE deep CASCADE;
-- Settings.
SELECT snowflake_partitions.configure('berlin', '0 days', 'UTC');
SELECT snowflake_partitions.configure('berlin', '1 day 1 hour', 'UTC');
SELECT snowflake_partitions.configure('berlin', '1 day', 'Nowhere/Near');
SELECT snowflake_partitions.configure('berlin', '1 day', 'UTC', keep => '-1 days');
SELECT snowflake_partitions.configure('berlin', '1 day', 'UTC', keep => '1000000 years');
SELECT snowflake_partitions.configure('berlin', '1 hour', 'UTC', '1 year');
SELECT snowflake_partitions.configure('berlin', NULL, 'UTC');
SELECT snowflake_partitions.configure('pg_class', '1 day', 'UTC');
BEGIN;
CALL snowflake_partitions.maintain();
ROLLBACK;
-- What is missing is not known: written by hand, the settings are of no calendar, or past its end. Other tables are shown.
UPDATE snowflake_partitions_internal.settings SET keep = '1000000 years';
CREATE TABLE daily (id bigint) PARTITION BY RANGE (id);
CREATE TABLE daily_first PARTITION OF daily FOR VALUES FROM (0) TO (12345);
SELECT snowflake_partitions.configure('daily', '1 day', 'UTC', '1 day');
SELECT parent, missing, due, kept FROM snowflake_partitions.status ORDER BY parent::text;
SELECT parent, name FROM snowflake_partitions.partitions ORDER BY name LIMIT 1;
CREATE TEMP TABLE passing (id bigint) PARTITION BY RANGE (id);
SELECT snowflake_partitions.configure('passing', '1 day', 'UTC', '1 day');
SELECT parent, missing FROM snowflake_partitions.status WHERE parent = 'passing'::regclass;
-- One table's error leaves the statements for the others.
UPDATE snowflake_partitions_internal.settings SET keep = NULL;
SELECT snowflake_partitions_internal.statements(NULL, '2026-03-29 12:00+00');
SELECT snowflake_partitions_internal.statements('daily', '2026-03-29 12:00+00');
DROP TABLE daily, passing;
-- Only the owner of a table writes its settings.
CREATE ROLE regress_other;
SET ROLE regress_other;
SELECT snowflake_partitions.configure('berlin', '1 day', 'UTC', keep => '0 days');
UPDATE snowflake_partitions_internal.settings SET keep = '0 days';
DELETE FROM snowflake_partitions_internal.settings;
CALL snowflake_partitions.maintain('berlin');
CALL snowflake_partitions.maintain();
RESET ROLE;
DROP ROLE regress_other;
DROP TABLE berlin;
DROP EXTENSION snowflake_partitions;

-- Several servers: layouts for them, watched tables, the audit of all tables.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SELECT * FROM snowflake_layouts_for(3) WHERE recommended;
SELECT * FROM snowflake_layouts_for(50) WHERE recommended;
SELECT * FROM snowflake_layouts_for(5000);
SELECT count(*) FROM snowflake_layouts_for(16777216);
SELECT snowflake_layouts_for(0);
SELECT snowflake_layouts_for(-1);
SELECT snowflake_layouts_for(16777217);
SELECT snowflake_layouts_for(NULL);
SELECT * FROM snowflake_layout_capacity('default');
SELECT * FROM snowflake_layout_capacity('timestamp:41 node:8 backend:2 sequence:12');
SELECT snowflake_layout_capacity('timestamp:41 node:30');
SELECT node_id_source, node_conflicts, stopped, copied_from FROM snowflake_status;
CREATE SCHEMA regress_snowflake;
SET search_path = regress_snowflake, public;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
CREATE TABLE collected (id bigint PRIMARY KEY, note text);
CREATE TABLE notes (note text);
CALL snowflake_watch('orders');
CALL snowflake_watch('collected');
CALL snowflake_watch('notes');
CALL snowflake_watch('orders', 'note');
\echo :LAST_ERROR_SQLSTATE
CALL snowflake_watch(column_name => 'id');
\echo :LAST_ERROR_SQLSTATE
SELECT tgrelid::regclass AS watched, tgenabled, pg_get_triggerdef(oid)
FROM pg_trigger WHERE tgname = 'snowflake_watch' AND tgrelid IN ('orders'::regclass, 'collected'::regclass) ORDER BY 1;
SELECT snowflake_internal.has_this_node(snowflake_nextval()) AS own, snowflake_internal.has_this_node(-1) AS negative;
SELECT snowflake_internal.watch();
INSERT INTO orders DEFAULT VALUES;
SELECT * FROM snowflake_audit_tables(schema_name => 'regress_snowflake');
INSERT INTO orders VALUES (-5);
SELECT * FROM snowflake_audit_tables(schema_name => 'regress_snowflake');
SELECT * FROM snowflake_audit_tables(schema_name => 'none');
-- Where a table is watched, one that is not, or no longer, is a finding. Citus: see citus.
DELETE FROM orders WHERE id < 0;
CREATE TABLE later (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), "Other" bigint UNIQUE DEFAULT snowflake_id());
CREATE TABLE parted (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
SELECT table_name, column_name, finding FROM snowflake_audit_tables(schema_name => 'regress_snowflake');
CALL snowflake_watch();
SELECT table_name, column_name, finding FROM snowflake_audit_tables(schema_name => 'regress_snowflake');
SET quote_all_identifiers = on;
SELECT table_name, column_name, finding FROM snowflake_audit_tables(schema_name => 'regress_snowflake');
RESET quote_all_identifiers;
CREATE OR REPLACE TRIGGER snowflake_watch AFTER INSERT ON orders FOR EACH ROW WHEN (false) EXECUTE FUNCTION snowflake_internal.watch();
ALTER TABLE orders ENABLE REPLICA TRIGGER snowflake_watch;
CREATE OR REPLACE TRIGGER snowflake_watch AFTER INSERT ON later FOR EACH ROW WHEN (snowflake_internal.has_this_node(NEW.id)) EXECUTE FUNCTION snowflake_internal.watch();
ALTER TABLE later ENABLE REPLICA TRIGGER snowflake_watch;
ALTER TABLE parted_1 DISABLE TRIGGER snowflake_watch;
SELECT table_name, column_name, finding FROM snowflake_audit_tables(schema_name => 'regress_snowflake');
CREATE OR REPLACE TRIGGER snowflake_watch AFTER INSERT ON later FOR EACH ROW WHEN (snowflake_internal.has_this_node(NEW.id) AND NEW.id < 0 OR snowflake_internal.has_this_node(NEW."Other")) EXECUTE FUNCTION snowflake_internal.watch();
ALTER TABLE later ENABLE REPLICA TRIGGER snowflake_watch;
SELECT table_name, column_name, finding FROM snowflake_audit_tables(schema_name => 'regress_snowflake');
CALL snowflake_watch();
SELECT table_name, column_name, finding FROM snowflake_audit_tables(schema_name => 'regress_snowflake');
ALTER TABLE orders ENABLE TRIGGER snowflake_watch;
ALTER TABLE later DISABLE TRIGGER snowflake_watch;
ALTER TABLE parted ENABLE ALWAYS TRIGGER snowflake_watch;
SELECT table_name, column_name, finding FROM snowflake_audit_tables(schema_name => 'regress_snowflake');
-- Columns of a domain; a trigger of that name keeps no other table from being watched.
CREATE DOMAIN key AS bigint;
CREATE TABLE by_domain (id key PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE alike (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TRIGGER snowflake_watch BEFORE UPDATE ON alike FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
CALL snowflake_watch('alike');
CALL snowflake_watch();
SELECT table_name, column_name, finding FROM snowflake_audit_tables(schema_name => 'regress_snowflake');
DROP TABLE alike;
-- No table is watched.
DROP TRIGGER snowflake_watch ON by_domain;
DROP TRIGGER snowflake_watch ON orders;
DROP TRIGGER snowflake_watch ON later;
DROP TRIGGER snowflake_watch ON parted;
DROP TRIGGER snowflake_watch ON collected;
SELECT table_name, column_name, finding FROM snowflake_audit_tables(schema_name => 'regress_snowflake');
RESET search_path;
DROP SCHEMA regress_snowflake CASCADE;

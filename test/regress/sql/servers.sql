-- Several servers: layouts for them, watched tables, the audit of all tables.
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
\set SHOW_CONTEXT never
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
CALL snowflake_watch(column_name => 'id');
SELECT tgrelid::regclass AS watched, tgenabled, pg_get_triggerdef(oid)
FROM pg_trigger WHERE tgname = 'snowflake_watch' AND tgrelid IN ('orders'::regclass, 'collected'::regclass) ORDER BY 1;
SELECT snowflake_internal.has_this_node(snowflake_nextval()) AS own, snowflake_internal.has_this_node(-1) AS negative;
SELECT snowflake_internal.watch();
INSERT INTO orders DEFAULT VALUES;
SELECT * FROM snowflake_audit_tables(schema_name => 'regress_snowflake');
INSERT INTO orders VALUES (-5);
SELECT * FROM snowflake_audit_tables(schema_name => 'regress_snowflake');
SELECT * FROM snowflake_audit_tables(schema_name => 'none');
RESET search_path;
DROP SCHEMA regress_snowflake CASCADE;

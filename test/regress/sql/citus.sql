-- Databases of Citus, by made-up tables and functions of its catalog. One transaction makes
-- them, so that no other test sees them.
\pset format unaligned
\pset footer off
\set ON_ERROR_ROLLBACK on
SET TimeZone = 'UTC';
CREATE SCHEMA regress_snowflake;
SET search_path = regress_snowflake, public;
BEGIN;
CREATE TABLE spread (id bigserial PRIMARY KEY, note text);
CREATE TABLE tenants (tenant integer, id serial, PRIMARY KEY (tenant, id));
CREATE TABLE tagged (tenant integer, id bigserial, PRIMARY KEY (tenant, id));
CREATE TABLE everywhere (id bigserial PRIMARY KEY);
CREATE TABLE listed (id serial PRIMARY KEY);
CREATE TABLE listed_wide (id bigserial PRIMARY KEY);
CREATE TABLE identified (tenant integer, id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
CREATE TABLE plain (id bigserial PRIMARY KEY);
CREATE TABLE parted (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
-- A table of the name in another schema says nothing.
CREATE TABLE pg_dist_partition (logicalrelid regclass, partmethod "char");
INSERT INTO pg_dist_partition VALUES ('plain', 'h');
SELECT * FROM snowflake_internal.citus_tables();
SELECT * FROM snowflake_internal.citus_nodes();
SELECT snowflake_internal.has_other_nodes(), snowflake_internal.facts_of_nodes();
SELECT snowflake_cluster_resolved_id() > 0 AS of_this_server;
SELECT snowflake_cluster_resolved_id('-1s');
SELECT snowflake_cluster_resolved_id(NULL);
SET LOCAL allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass, partmethod "char", partkey text, colocationid integer, repmodel "char");
INSERT INTO pg_catalog.pg_dist_partition VALUES
    ('spread', 'h', '{VAR :varno 1 :varattno 1 :vartype 20}', 1, 's'), ('tenants', 'h', '{VAR :varno 1 :varattno 1 :vartype 23}', 2, 's'),
    ('tagged', 'h', '{VAR :varno 1 :varattno 1 :vartype 23}', 2, 's'),
    ('everywhere', 'n', NULL, 3, 't'), ('listed', 'n', NULL, 0, 's'), ('listed_wide', 'n', NULL, 0, 's'),
    ('identified', 'h', '{VAR :varno 1 :varattno 1 :vartype 23}', 2, 's'), ('parted_1', 'h', '{VAR :varno 1 :varattno 1 :vartype 20}', 1, 's');
CREATE TABLE pg_catalog.pg_dist_node (nodeid integer, groupid integer, nodename text, nodeport integer, isactive boolean, noderole text, nodecluster text);
CREATE TABLE pg_catalog.pg_dist_local_group (groupid integer);
INSERT INTO pg_catalog.pg_dist_local_group VALUES (0);
-- What a node answers: the change to this server's own facts, or a failure; NULL: the command
-- is run here.
CREATE TABLE answers (nodeid integer, command text, success boolean, result text);
CREATE FUNCTION pg_catalog.run_command_on_all_nodes(command text, OUT nodeid integer, OUT success boolean, OUT result text) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    answer regress_snowflake.answers;
    asked integer;
BEGIN
    FOR asked IN SELECT n.nodeid FROM pg_catalog.pg_dist_node AS n WHERE n.isactive AND n.noderole = 'primary' LOOP
        nodeid := asked;
        success := true;
        answer := NULL;
        SELECT a.* INTO answer FROM regress_snowflake.answers AS a WHERE a.nodeid = asked AND starts_with(run_command_on_all_nodes.command, 'SELECT snowflake_internal.' || a.command) LIMIT 1;
        IF NOT answer.success THEN
            success := false;
            result := answer.result;
        ELSE
            EXECUTE command INTO result;
            result := CASE answer.command WHEN 'node_facts' THEN (result::jsonb || answer.result::jsonb)::text
                                          WHEN 'prepared_here' THEN answer.result WHEN 'issued_bounds' THEN answer.result WHEN 'node_resolved_id' THEN answer.result ELSE coalesce(result, '') END;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;
SELECT relation::regclass, kind, distribution_column FROM snowflake_internal.citus_tables() ORDER BY 1;
-- A sequence of a table that was one of Citus is not renewed: Citus does not let it be altered.
SELECT sequence, fate FROM snowflake_migrate_internal.sequences_at_switch(ARRAY[('plain', 'id')::snowflake_migrate_internal.key]);
CREATE TABLE pg_catalog.pg_dist_object (classid oid, objid oid, objsubid integer);
INSERT INTO pg_catalog.pg_dist_object VALUES ('pg_class'::regclass, 'plain_id_seq'::regclass, 0);
SELECT sequence, fate FROM snowflake_migrate_internal.sequences_at_switch(ARRAY[('plain', 'id')::snowflake_migrate_internal.key]);

-- The resolved ID of one node is refused, and not shown.
SELECT snowflake_resolved_id();
SELECT snowflake_advance_resolved_id();
SELECT resolved_id, resolved_age FROM snowflake_status;

-- One node, with or without its row.
SELECT * FROM snowflake_internal.citus_nodes();
SELECT snowflake_internal.has_other_nodes();
INSERT INTO pg_catalog.pg_dist_node VALUES (1, 0, 'c', 5432, true, 'primary', 'default');
SELECT * FROM snowflake_internal.citus_nodes();
SELECT finding FROM snowflake_audit_tables('regress_snowflake');
SELECT snowflake_cluster_resolved_id() > 0 AS of_this_server;

-- The boundary: the name that a table of Citus has is that of an empty table.
SELECT snowflake_id_boundary('spread');
SELECT snowflake_id_boundary('everywhere');
SELECT snowflake_id_boundary('listed_wide');
SELECT snowflake_id_boundary('parted');
SELECT snowflake_id_boundary('plain');
SELECT snowflake_set_id_boundary('spread', 'id', 132271570944000000);
SELECT snowflake_set_id_boundary('spread', 'id', 132271570944000001);
SELECT snowflake_set_id_boundary('parted', 'id', 0);
SELECT snowflake_id_boundary('spread'), snowflake_id_boundary('parted');
SELECT conrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'snowflake_id_boundary' AND conrelid IN ('spread'::regclass, 'parted_1'::regclass) ORDER BY 1;
-- Citus takes no other action beside ADD CONSTRAINT.
SELECT * FROM snowflake_internal.boundary_statements('spread', 'id', 132271570944000002, NULL);
SELECT * FROM snowflake_internal.boundary_statements('spread', 'id', NULL, NULL);

-- Several nodes.
INSERT INTO pg_catalog.pg_dist_node VALUES (2, 1, 'w1', 5432, true, 'primary', 'default'), (3, 2, 'w2', 5432, true, 'primary', 'default'),
    (4, 2, 'w2', 5433, true, 'secondary', 'default'), (5, 9, 'x', 5432, true, 'primary', 'another');
DELETE FROM pg_catalog.pg_dist_node WHERE nodeid = 5;
INSERT INTO answers VALUES (2, 'node_facts', true, '{"node_id": 40}'), (3, 'node_facts', true, '{"node_id": 41}');
SELECT finding FROM snowflake_audit_tables('regress_snowflake');
-- The numbers of the nodes are those that are expected.
INSERT INTO parted VALUES ((41::bigint << 16) + (snowflake_nextval() & ~(63::bigint << 16)));
INSERT INTO parted VALUES ((42::bigint << 16) + (snowflake_nextval() & ~(63::bigint << 16)));
SELECT table_name, finding, ids FROM snowflake_audit_tables('regress_snowflake');
SELECT table_name, finding, ids FROM snowflake_audit_tables('regress_snowflake', '{41,42}');
-- Each node is asked what it cannot have issued.
INSERT INTO answers SELECT 3, 'issued_bounds', true, jsonb_build_object('node_id', 41, 'bounds', jsonb_object_agg(b, 1)) FROM generate_series(0, 15) AS b;
SELECT table_name, finding, ids FROM snowflake_audit_tables('regress_snowflake');
UPDATE answers SET result = '{"node_id": null, "bounds": null}' WHERE command = 'issued_bounds';
SELECT finding FROM snowflake_audit('parted');
UPDATE answers SET success = false, result = 'connection refused' WHERE command = 'issued_bounds';
SELECT finding FROM snowflake_audit('parted');
DELETE FROM answers WHERE command = 'issued_bounds';
DELETE FROM parted;
UPDATE answers SET result = '{"node_id": 40, "layout": "another", "version": "0.9"}' WHERE nodeid = 2;
UPDATE answers SET result = '{"node_id": 40, "preloaded": false, "stopped": true, "copied_from": "x", "privileges": {"snowflake_nextval()": ["app"]}}' WHERE nodeid = 3;
SELECT regexp_replace(finding, 'w2:5432: timestamp.*', '…') AS finding FROM snowflake_audit_tables('regress_snowflake') WHERE finding !~ 'versions|layouts';
SELECT count(*) FROM snowflake_audit_tables('regress_snowflake') WHERE finding ~ 'different (versions|layouts): c:5432, w2:5432: .*; w1:5432: (0.9|another)$';
UPDATE answers SET result = '{"node_id": null}' WHERE nodeid = 3;
UPDATE answers SET success = false, result = 'connection refused' WHERE nodeid = 2;
SELECT finding FROM snowflake_audit_tables('regress_snowflake');
UPDATE pg_catalog.pg_dist_node SET isactive = false WHERE nodeid = 2;
SELECT finding FROM snowflake_audit_tables('regress_snowflake');
-- On a worker of a coordinator that is not in the metadata.
UPDATE pg_catalog.pg_dist_local_group SET groupid = 2;
DELETE FROM pg_catalog.pg_dist_node WHERE nodeid IN (1, 2);
SELECT finding FROM snowflake_audit_tables('regress_snowflake');
SELECT snowflake_cluster_resolved_id();
UPDATE pg_catalog.pg_dist_local_group SET groupid = 0;
INSERT INTO pg_catalog.pg_dist_node VALUES (1, 0, 'c', 5432, true, 'primary', 'default'), (2, 1, 'w1', 5432, true, 'primary', 'default');
DELETE FROM answers;

-- The resolved ID: the lowest one, if all are known and nothing is prepared.
SELECT snowflake_cluster_resolved_id() > 0 AS resolved;
INSERT INTO answers VALUES (2, 'node_resolved_id', true, '17');
SELECT snowflake_cluster_resolved_id();
UPDATE answers SET result = '' WHERE nodeid = 2;
SELECT snowflake_cluster_resolved_id();
UPDATE answers SET success = false, result = 'connection refused' WHERE nodeid = 2;
SELECT snowflake_cluster_resolved_id();
UPDATE answers SET command = 'prepared_here', success = true, result = '{"5 citus_0_1,2"}' WHERE nodeid = 2;
SELECT snowflake_cluster_resolved_id('0');
SELECT snowflake_cluster_resolved_id('50ms');
-- Others that come later are not waited for.
UPDATE answers SET result = format('{%s}', random());
CREATE OR REPLACE FUNCTION snowflake_internal.prepared_here() RETURNS text[] LANGUAGE sql AS 'SELECT ARRAY[clock_timestamp()::text]';
DELETE FROM answers;
SELECT snowflake_cluster_resolved_id() > 0 AS resolved;
SET LOCAL application_name = 'citus_internal gpid=10000000017';
SELECT snowflake_cluster_resolved_id();
RESET application_name;

-- A column that each node would fill on its own.
ALTER TABLE everywhere ADD COLUMN other bigint DEFAULT snowflake_nextval();
ALTER TABLE everywhere ADD COLUMN other bigint, ADD COLUMN another bigint DEFAULT snowflake_id();
ALTER TABLE everywhere ADD COLUMN other bigint;
ALTER TABLE everywhere ALTER COLUMN other SET DEFAULT snowflake_nextval();
ALTER TABLE plain ADD COLUMN other bigint DEFAULT snowflake_nextval();
ALTER TABLE tagged ADD COLUMN other bigint DEFAULT snowflake_nextval();

-- An owner who may not log in.
CREATE ROLE regress_owner;
GRANT USAGE, CREATE ON SCHEMA regress_snowflake TO regress_owner;
ALTER TABLE parted OWNER TO regress_owner;
ALTER TABLE parted_1 OWNER TO regress_owner;
SELECT * FROM snowflake_audit('parted');
SELECT snowflake_set_id_boundary('parted', 'id', 1);
SELECT table_name, column_name, finding FROM snowflake_audit_tables('regress_snowflake') WHERE table_name = 'parted'::regclass;
ALTER ROLE regress_owner LOGIN;
SELECT * FROM snowflake_audit('parted');
-- Without the catalog, a table of Citus would look empty.
SET ROLE regress_owner;
SELECT snowflake_id_boundary('parted_1');
SELECT relation::regclass FROM snowflake_internal.citus_tables() LIMIT 1;
RESET ROLE;
GRANT SELECT ON pg_catalog.pg_dist_object, pg_catalog.pg_dist_partition, pg_catalog.pg_dist_node, pg_catalog.pg_dist_local_group, answers TO PUBLIC;
SAVEPOINT migration;

-- Migrations: what Citus takes is a step, the rest an obstacle with its remedy.
CREATE FUNCTION pg_catalog.run_command_on_workers(command text, OUT nodename text, OUT nodeport integer, OUT success boolean, OUT result text) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    FOR nodename, nodeport IN SELECT n.nodename, n.nodeport FROM pg_catalog.pg_dist_node AS n WHERE n.isactive AND n.groupid <> 0 AND n.noderole = 'primary' ORDER BY 1 LOOP
        result := (SELECT a.result FROM regress_snowflake.answers AS a WHERE NOT a.success AND format('w%s', a.nodeid - 1) = nodename);
        success := result IS NULL;
        RAISE WARNING '% asked: %', nodename, command;
        RETURN NEXT;
    END LOOP;
END $$;
ALTER TABLE spread DROP CONSTRAINT snowflake_id_boundary;
SELECT target.relation, c.way FROM unnest('{spread,tenants,tagged,everywhere,listed,listed_wide,identified,plain}'::regclass[]) AS target (relation)
LEFT JOIN snowflake_migrate_internal.citus_keys(ARRAY[(target.relation, 'id')::snowflake_migrate_internal.key]) AS c ON true;
SELECT table_name, column_name, cardinality(window_obstacles) AS window, cardinality(online_obstacles) AS online FROM snowflake_migrate.survey('regress_snowflake') ORDER BY 1, 2;
SELECT what, lock, rewrites, statement FROM snowflake_migrate.plan('spread') WHERE step IS NOT NULL;
SELECT what, lock, rewrites, statement FROM snowflake_migrate.plan('tenants', online => true) WHERE step IS NOT NULL;
SELECT what, statement FROM snowflake_migrate.plan('listed_wide') WHERE step IS NOT NULL;
SELECT count(*) FROM snowflake_migrate.plan('listed');
SELECT what, statement FROM snowflake_migrate.plan('identified', 'id') WHERE step IS NOT NULL;
SELECT count(*) FROM snowflake_migrate.plan('tagged', keep_sequence => true);
SET LOCAL client_min_messages = warning;
INSERT INTO answers VALUES (3, 'set', false, 'ERROR:  lock timeout');
CALL snowflake_migrate.run('spread');
DELETE FROM answers;
UPDATE pg_catalog.pg_dist_node SET isactive = false WHERE nodeid = 3;
CALL snowflake_migrate.run('spread');
UPDATE pg_catalog.pg_dist_node SET isactive = true;
CALL snowflake_migrate.run('spread');
CALL snowflake_migrate.run('spread');
CALL snowflake_migrate.run('tenants', 'id');
CALL snowflake_migrate.run('identified', 'id');
CALL snowflake_migrate.run('tagged', 'id', also => '{everywhere,listed_wide,plain}', also_columns => '{id,id,id}');
SELECT a.attrelid::regclass, format_type(a.atttypid, -1), pg_get_expr(d.adbin, d.adrelid), snowflake_id_boundary(a.attrelid, 'id')
FROM pg_attribute AS a JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attname = 'id' AND a.attrelid IN ('spread'::regclass, 'tenants'::regclass, 'tagged'::regclass, 'everywhere'::regclass, 'listed_wide'::regclass, 'identified'::regclass) ORDER BY 1;
CALL snowflake_migrate.revert('spread');
CALL snowflake_migrate.revert('tagged', 'id');
-- A default that was set by hand: the boundary is left to set.
ALTER TABLE spread DROP CONSTRAINT snowflake_id_boundary;
SELECT what FROM snowflake_migrate.plan('spread') WHERE step IS NOT NULL;
-- An ordinary owner, and names that have to be quoted.
CREATE TABLE "Wide ""'" (" ""' id" bigserial PRIMARY KEY);
INSERT INTO pg_catalog.pg_dist_partition VALUES ('"Wide ""''"', 'h', '{VAR :varno 1 :varattno 1 :vartype 20}', 1, 's');
ALTER TABLE "Wide ""'" OWNER TO regress_owner;
SET LOCAL ROLE regress_owner;
CREATE FUNCTION regress_snowflake.snowflake_nextval() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CALL snowflake_migrate.run('"Wide ""''"');
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = '"Wide ""''"'::regclass;
SELECT snowflake_id_boundary('"Wide ""''"'), snowflake_cluster_resolved_id() > 0 AS resolved;
SELECT finding FROM snowflake_audit_tables('regress_snowflake') WHERE finding !~ 'not audited';
CALL snowflake_watch('"Wide ""''"');
CALL snowflake_migrate.revert('"Wide ""''"');
SELECT snowflake_migrate_internal.set_default_here('tagged', 'id');
SELECT snowflake_migrate_internal.set_default_on_nodes('tagged', 'id');
RESET ROLE;
SET LOCAL client_min_messages = notice;
CALL snowflake_watch();
-- On a worker, and with an owner who may not log in.
ROLLBACK TO migration;
UPDATE pg_catalog.pg_dist_local_group SET groupid = 1;
SELECT count(*) FROM snowflake_migrate.plan('spread');
UPDATE pg_catalog.pg_dist_local_group SET groupid = 0;
ALTER ROLE regress_owner NOLOGIN;
ALTER TABLE spread OWNER TO regress_owner;
SELECT count(*) FROM snowflake_migrate.plan('spread');
-- Numbers that workers drew begin at their group times 2^48.
SET LOCAL client_min_messages = error;
CALL snowflake_migrate.run('plain');
INSERT INTO plain VALUES (2 * (1::bigint << 48) + 20);
SELECT * FROM snowflake_audit('plain', 'id');
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake_cluster_resolved_id();
ROLLBACK;
DROP SCHEMA regress_snowflake CASCADE;

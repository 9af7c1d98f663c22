-- Privileges on the extension's tables and on the mark. Only the extension's
-- own code writes them; other roles can only read them. Privileges granted
-- wholesale do not change that. Those that result from ALTER DEFAULT PRIVILEGES are
-- revoked here. Later ones (GRANT ... ON ALL TABLES, pg_write_all_data) remain, and
-- have no effect:
--
-- - INSERT, UPDATE, DELETE, TRUNCATE: a trigger rejects writes to the tables, except by
--   superusers. The privileges to lock and to vacuum a table are those of any table.
-- - TRIGGER: if the library is preloaded, it rejects triggers of roles that are not
--   superusers (src/migration/guard.rs).
-- - REFERENCES: the extension's own writes check no foreign key.
-- - UPDATE, USAGE on the mark: a value set on it raises the slots to at most one lease
--   ahead of the clock (src/generator/mark.rs).
DO $do$
DECLARE
    former_search_path CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
    acl_entry record;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR acl_entry IN
        SELECT c.relkind, c.oid::regclass AS relation, CASE p.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(p.grantee)) END AS grantee
        FROM pg_depend AS d
        JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND e.extname = 'snowflake'
        JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND c.relkind IN ('r', 'S')
        CROSS JOIN LATERAL aclexplode(c.relacl) AS p
        WHERE d.deptype = 'e' AND p.grantee <> c.relowner
        GROUP BY c.relkind, c.oid, p.grantee
    LOOP
        EXECUTE format('REVOKE ALL ON %s %s FROM %s', CASE acl_entry.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
                       acl_entry.relation, acl_entry.grantee);
    END LOOP;
    FOR acl_entry IN
        SELECT DISTINCT CASE p.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(p.grantee)) END AS grantee
        FROM pg_namespace AS n
        CROSS JOIN LATERAL aclexplode(n.nspacl) AS p
        WHERE n.nspname = 'snowflake_internal' AND p.privilege_type = 'CREATE' AND p.grantee <> n.nspowner
    LOOP
        EXECUTE format('REVOKE CREATE ON SCHEMA snowflake_internal FROM %s', acl_entry.grantee);
    END LOOP;
    PERFORM set_config('search_path', former_search_path, true);
END
$do$;

-- As for the tables of migrations: only superusers write it by SQL, and rows
-- are not replicated to other servers.
CREATE TRIGGER accepted_layout_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_internal.accepted_layout
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_internal.guard();
ALTER TABLE snowflake_internal.accepted_layout ENABLE ALWAYS TRIGGER accepted_layout_guard;
CREATE TRIGGER accepted_layout_kept AFTER TRUNCATE ON snowflake_internal.accepted_layout
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_internal.guard();
ALTER TABLE snowflake_internal.accepted_layout ENABLE ALWAYS TRIGGER accepted_layout_kept;
CREATE TRIGGER accepted_layout_stay BEFORE INSERT OR UPDATE OR DELETE ON snowflake_internal.accepted_layout
    FOR EACH ROW EXECUTE FUNCTION snowflake_internal.stay();
ALTER TABLE snowflake_internal.accepted_layout ENABLE REPLICA TRIGGER accepted_layout_stay;

GRANT SELECT ON snowflake_internal.mark, snowflake_internal.progress, snowflake_internal.pace,
    snowflake_internal.accepted_layout TO PUBLIC;
-- The table contains the last values of sequences of migrated tables, so PUBLIC
-- cannot read it. The owner of a database must be able to dump it.
GRANT SELECT ON snowflake_internal.origins TO pg_database_owner;
-- Dumps read this table, and insert into it. Its trigger checks who restores. A
-- privilege of the role that creates the extension would remain in
-- pg_init_privs if that role is dropped (before PostgreSQL 17).
GRANT SELECT, INSERT ON snowflake_internal.restore TO PUBLIC;

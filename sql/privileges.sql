-- Who may do what with the extension's tables and the mark: the extension's own
-- code writes them, everybody else reads. However privileges are given away
-- wholesale, that stays so:
--
-- - before the extension is created (ALTER DEFAULT PRIVILEGES): what came with
--   the creation is revoked here;
-- - afterwards (GRANT ... ON ALL TABLES): revoked at once where the library is
--   preloaded (src/utility.rs);
-- - by pg_write_all_data, or where the library is not preloaded: a trigger
--   refuses to write to the tables (a superuser may: dumps are restored), and
--   what is set on the mark is believed no further than a lease (src/mark.rs).
DO $do$
DECLARE
    former CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
    here CONSTANT pg_catalog.text := '@extschema@';
    it record;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR it IN
        SELECT c.relkind, c.relname, CASE p.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(p.grantee)) END AS grantee
        FROM pg_depend AS d
        JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND e.extname = 'snowflake'
        JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND c.relkind IN ('r', 'S')
        CROSS JOIN LATERAL aclexplode(c.relacl) AS p
        WHERE d.deptype = 'e' AND p.grantee <> c.relowner
        GROUP BY c.relkind, c.relname, p.grantee
    LOOP
        EXECUTE format('REVOKE ALL ON %s %s.%I FROM %s', CASE it.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
                       here, it.relname, it.grantee);
    END LOOP;
    PERFORM set_config('search_path', former, true);
END
$do$;

-- As the tables of migrations: written by SQL only by superusers, and each
-- server's own.
CREATE TRIGGER snowflake_accepted_layout_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON @extschema@.snowflake_accepted_layout
    FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.snowflake_migration_guard();
ALTER TABLE @extschema@.snowflake_accepted_layout ENABLE ALWAYS TRIGGER snowflake_accepted_layout_guard;
CREATE TRIGGER snowflake_accepted_layout_stay BEFORE INSERT OR UPDATE OR DELETE ON @extschema@.snowflake_accepted_layout
    FOR EACH ROW EXECUTE FUNCTION @extschema@.snowflake_origins_stay();
ALTER TABLE @extschema@.snowflake_accepted_layout ENABLE REPLICA TRIGGER snowflake_accepted_layout_stay;

GRANT SELECT ON @extschema@.snowflake_mark, @extschema@.snowflake_progress, @extschema@.snowflake_accepted_layout TO PUBLIC;
-- It has the last values of sequences of tables that were migrated. The owner of
-- a database has to be able to dump it.
GRANT SELECT ON @extschema@.snowflake_origins TO pg_database_owner;

-- What there is to do where IDs cannot be made yet.
DO $do$
BEGIN
    IF NOT (SELECT s.preloaded FROM @extschema@.snowflake_get_status() AS s) THEN
        RAISE WARNING 'the extension snowflake can read IDs, but not make them yet'
            USING DETAIL = 'Its library is not in shared_preload_libraries.',
                  HINT = 'Add these lines to postgresql.conf and restart the server: shared_preload_libraries = ''snowflake'' (after a comma where other libraries are listed), and snowflake.node_id = 0 (another number on each server).';
    ELSIF (SELECT s.node_id IS NULL FROM @extschema@.snowflake_get_status() AS s) THEN
        RAISE WARNING 'the extension snowflake can read IDs, but not make them yet'
            USING DETAIL = 'snowflake.node_id is not set.',
                  HINT = 'Add snowflake.node_id = 0 (another number on each server) to postgresql.conf and restart the server.';
    END IF;
END
$do$;

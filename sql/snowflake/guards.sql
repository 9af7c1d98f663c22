-- The triggers of the extension's tables, which only its own code writes.

-- Lets only superusers change a table by SQL, and keeps its rows where replication
-- truncates them (src/records/guard.rs).
CREATE FUNCTION snowflake_internal.guard() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_guard_wrapper';

-- Keeps the rows of other servers out: a publication FOR ALL TABLES includes these
-- tables, and their rows are valid on one server only.
CREATE FUNCTION snowflake_internal.stay()
RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    RETURN NULL;
END
$function$;

-- Creates these triggers for one of the extension's tables. TRUNCATE fires no row
-- trigger; a replicated one keeps the rows. The first two also fire in the replica
-- role, in which a superuser may restore a dump.
CREATE FUNCTION snowflake_internal.protect(relation regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    EXECUTE format(
        'CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %1$s FOR EACH STATEMENT EXECUTE FUNCTION snowflake_internal.guard();
         CREATE TRIGGER kept AFTER TRUNCATE ON %1$s FOR EACH STATEMENT EXECUTE FUNCTION snowflake_internal.guard();
         CREATE TRIGGER stay BEFORE INSERT OR UPDATE OR DELETE ON %1$s FOR EACH ROW EXECUTE FUNCTION snowflake_internal.stay();
         ALTER TABLE %1$s ENABLE ALWAYS TRIGGER guard, ENABLE ALWAYS TRIGGER kept, ENABLE REPLICA TRIGGER stay', relation);
END
$function$;

-- Watches what statements do to the triggers of the extensions' tables. An event trigger does
-- so in each session, also in one that has not loaded the library.
--
-- The privilege TRIGGER would let a role replace these triggers, or have its code run by a
-- superuser who restores a dump. So only superusers create triggers here. The name in a
-- statement may mean another table when it runs, so what it has done is looked at.
--
-- ALTER TABLE ... DISABLE TRIGGER ALL leaves the triggers of the tables "restore" enabled:
-- pg_restore --data-only --disable-triggers has it for each table.
CREATE FUNCTION snowflake_internal.watch_ddl()
RETURNS event_trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    restore_table regclass;
BEGIN
    IF TG_TAG = 'CREATE TRIGGER' THEN
        -- A role that may not execute refuse() creates triggers on its own tables.
        IF EXISTS (
            SELECT FROM pg_event_trigger_ddl_commands() AS c
            JOIN pg_trigger AS t ON c.classid = 'pg_trigger'::regclass AND c.objid = t.oid
            JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = t.tgrelid AND d.deptype = 'e'
            JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
            WHERE e.extname IN ('snowflake', 'snowflake_migrate', 'snowflake_partitions') AND NOT c.in_extension
              AND NOT (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user))
        THEN
            PERFORM snowflake_internal.refuse('42501', 'permission denied for tables of the extension',
                detail => 'A trigger would run with the privileges of each role that changes the table, or replace the one that guards it. '
                          'The privilege TRIGGER has no effect.',
                hint => 'Only a superuser can create triggers on these tables.');
        END IF;
        RETURN;
    END IF;
    -- Reads no catalog for another table: what that locks, each ALTER TABLE would have locked. Where a role may not look
    -- a name up, the schema is another one, or the role has not altered a table in it.
    FOR restore_table IN
        SELECT c.objid FROM pg_event_trigger_ddl_commands() AS c
        WHERE c.classid = 'pg_class'::regclass AND NOT c.in_extension
          AND c.objid IN (
              CASE WHEN has_schema_privilege(to_regnamespace('snowflake_internal')::oid, 'USAGE')
                   THEN to_regclass('snowflake_internal.restore') END,
              CASE WHEN has_schema_privilege(to_regnamespace('snowflake_migrate_internal')::oid, 'USAGE')
                   THEN to_regclass('snowflake_migrate_internal.restore') END,
              CASE WHEN has_schema_privilege(to_regnamespace('snowflake_partitions_internal')::oid, 'USAGE')
                   THEN to_regclass('snowflake_partitions_internal.restore') END)
    LOOP
        IF EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = restore_table AND t.tgname = 'restore_row' AND t.tgenabled <> 'A') THEN
            EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER restore_row', restore_table);
        END IF;
    END LOOP;
END
$function$;

CREATE EVENT TRIGGER snowflake_watch_ddl ON ddl_command_end WHEN TAG IN ('CREATE TRIGGER', 'ALTER TABLE')
    EXECUTE FUNCTION snowflake_internal.watch_ddl();
COMMENT ON EVENT TRIGGER snowflake_watch_ddl IS 'Keeps the triggers of the tables of the extensions snowflake, snowflake_migrate and snowflake_partitions';
-- Also in the replica role, in which a superuser may restore a dump.
ALTER EVENT TRIGGER snowflake_watch_ddl ENABLE ALWAYS;

-- Revokes what ALTER DEFAULT PRIVILEGES has granted on the tables and sequences of an
-- extension, and the privilege to create objects in its internal schema. Called by the
-- scripts, before their own grants. Later ones remain; docs/design.md, "Privileges granted
-- wholesale", says with what effect.
CREATE FUNCTION snowflake_internal.revoke_default_privileges(extension_name name, schema_name name)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT format('REVOKE ALL ON %s %s FROM %s', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::regclass,
                               CASE p.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(p.grantee)) END)
        FROM pg_depend AS d
        JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND e.extname = extension_name
        JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND c.relkind IN ('r', 'S')
        CROSS JOIN LATERAL aclexplode(c.relacl) AS p
        WHERE d.deptype = 'e' AND p.grantee <> c.relowner
      UNION
        SELECT format('REVOKE CREATE ON SCHEMA %I FROM %s', n.nspname,
                      CASE p.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(p.grantee)) END)
        FROM pg_namespace AS n
        CROSS JOIN LATERAL aclexplode(n.nspacl) AS p
        WHERE n.nspname = schema_name AND p.privilege_type = 'CREATE' AND p.grantee <> n.nspowner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$function$;

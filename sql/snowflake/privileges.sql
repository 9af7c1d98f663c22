-- Privileges on the extension's tables and on the mark. Only the extension's own code
-- writes them; other roles can only read them, as those that dump the database must: with a
-- mark that is too low, IDs repeat after a crash. A dump raises it through the table restore.
SELECT snowflake_internal.revoke_default_privileges('snowflake'::pg_catalog.name, 'snowflake_internal'::pg_catalog.name);

SELECT snowflake_internal.protect('snowflake_internal.accepted_layout'::pg_catalog.regclass);

GRANT SELECT ON snowflake_internal.mark, snowflake_internal.accepted_layout TO PUBLIC;
-- Dumps read this table, and insert into it. Its trigger checks who restores. A
-- privilege of the role that creates the extension would remain in
-- pg_init_privs if that role is dropped (before PostgreSQL 17).
GRANT SELECT, INSERT ON snowflake_internal.restore TO PUBLIC;

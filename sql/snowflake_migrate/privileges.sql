-- Privileges on the tool's tables, as in sql/snowflake/privileges.sql.
SELECT snowflake_internal.revoke_default_privileges('snowflake_migrate'::pg_catalog.name, 'snowflake_migrate'::pg_catalog.name);
SELECT snowflake_internal.revoke_default_privileges('snowflake_migrate'::pg_catalog.name, 'snowflake_migrate_internal'::pg_catalog.name);

SELECT snowflake_internal.protect('snowflake_migrate_internal.origins'::pg_catalog.regclass);
SELECT snowflake_internal.protect('snowflake_migrate_internal.progress'::pg_catalog.regclass);
SELECT snowflake_internal.protect('snowflake_migrate_internal.pace'::pg_catalog.regclass);

GRANT SELECT ON snowflake_migrate_internal.progress, snowflake_migrate_internal.pace,
    snowflake_migrate.columns, snowflake_migrate.progress TO PUBLIC;
-- The table contains the last values of sequences of migrated tables, so PUBLIC
-- cannot read it. The owner of a database must be able to dump it.
GRANT SELECT ON snowflake_migrate_internal.origins TO pg_database_owner;
GRANT SELECT, INSERT ON snowflake_migrate_internal.restore TO PUBLIC;

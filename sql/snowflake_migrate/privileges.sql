-- Privileges on the tool's tables, as in sql/snowflake/privileges.sql.
SELECT snowflake_internal.revoke_default_privileges('snowflake_migrate'::pg_catalog.name, 'snowflake_migrate'::pg_catalog.name);
SELECT snowflake_internal.revoke_default_privileges('snowflake_migrate'::pg_catalog.name, 'snowflake_migrate_internal'::pg_catalog.name);

SELECT snowflake_internal.protect('snowflake_migrate_internal.origins'::pg_catalog.regclass);
SELECT snowflake_internal.protect('snowflake_migrate_internal.progress'::pg_catalog.regclass);
SELECT snowflake_internal.protect('snowflake_migrate_internal.pace'::pg_catalog.regclass);

GRANT SELECT ON snowflake_migrate_internal.progress, snowflake_migrate_internal.pace,
    snowflake_migrate.columns, snowflake_migrate.progress TO PUBLIC;
GRANT SELECT, INSERT ON snowflake_migrate_internal.restore TO PUBLIC;

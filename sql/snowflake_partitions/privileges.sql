-- Privileges on the extension's tables. The triggers of the settings check who writes them.
SELECT snowflake_internal.revoke_default_privileges('snowflake_partitions'::pg_catalog.name, s.name::pg_catalog.name)
FROM (VALUES ('snowflake_partitions'), ('snowflake_partitions_internal')) AS s (name);

GRANT SELECT, INSERT, UPDATE, DELETE ON snowflake_partitions_internal.settings TO PUBLIC;
GRANT SELECT, INSERT ON snowflake_partitions_internal.restore TO PUBLIC;
GRANT SELECT ON snowflake_partitions.settings, snowflake_partitions.partitions, snowflake_partitions.status TO PUBLIC;

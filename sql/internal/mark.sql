-- The mark: no ID at or above its last_value has been issued in this database.
-- The extension moves it ahead; src/mark.rs has the whole story.
CREATE SEQUENCE snowflake_internal.mark AS bigint NO CYCLE;
COMMENT ON SEQUENCE snowflake_internal.mark IS
    'The mark: no ID at or above last_value has been issued in this database. Maintained by the extension; not for nextval() or setval()';

-- Whoever may dump the database must be able to read it. Only a superuser may
-- set it: a mark that is too low lets IDs come again after a crash.
REVOKE ALL ON SEQUENCE snowflake_internal.mark FROM PUBLIC;
GRANT SELECT ON SEQUENCE snowflake_internal.mark TO PUBLIC;

-- A restored database goes on above the IDs of the dump.
SELECT pg_catalog.pg_extension_config_dump('snowflake_internal.mark', '');

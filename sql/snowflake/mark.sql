-- The mark: no ID at or above its last_value has been issued in this database.
-- The extension advances it, as crates/snowflake-id/src/protocol/mark.rs describes.
CREATE SEQUENCE snowflake_internal.mark AS bigint NO CYCLE;
COMMENT ON SEQUENCE snowflake_internal.mark IS
    'The mark: no ID at or above last_value has been issued in this database. Maintained by the extension; not for nextval() or setval()';

-- Any role that dumps the database must be able to read the mark. Only a
-- superuser may set it: with a mark that is too low, IDs repeat after a crash. So a
-- dump does not set it; it raises it through snowflake_internal.restore.
REVOKE ALL ON SEQUENCE snowflake_internal.mark FROM PUBLIC;
GRANT SELECT ON SEQUENCE snowflake_internal.mark TO PUBLIC;

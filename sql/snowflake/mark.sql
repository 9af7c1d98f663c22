-- The mark: no ID at or above its last_value has been issued in this database.
-- The extension advances it, as crates/snowflake-id/src/protocol/mark.rs describes.
CREATE SEQUENCE snowflake_internal.mark AS bigint NO CYCLE;
COMMENT ON SEQUENCE snowflake_internal.mark IS
    'The mark: no ID at or above last_value has been issued in this database. Maintained by the extension; not for nextval() or setval()';

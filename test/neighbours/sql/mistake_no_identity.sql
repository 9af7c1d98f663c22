-- wal2json: a table of the extension's own without a replica identity.
ALTER TABLE snowflake_internal.accepted_layout REPLICA IDENTITY NOTHING;

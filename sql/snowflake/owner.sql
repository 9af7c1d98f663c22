-- Running statements as the owner of a table, on what was locked by its OID. All code
-- of these functions is in src/owner.rs: none of them resolves a name that a user
-- could choose.

-- Locks a table, without its children, by its OID.
CREATE FUNCTION snowflake_internal.lock_table(relation regclass, mode text) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_lock_table_wrapper';

-- Runs one statement with the rights of a table's owner, which the caller must have;
-- the first row as an array. The owner's code finds names by the search path, if one is
-- given.
CREATE FUNCTION snowflake_internal.run(relation regclass, statement text, search_path text DEFAULT NULL) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_run_wrapper';

-- Runs one query with the rights of a table's owner where the caller has them, else
-- with the caller's own; the first row as an array.
CREATE FUNCTION snowflake_internal.read(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_read_wrapper';

-- Running statements as the owner of a table, on what was locked by its OID. All code
-- of these functions is in src/migration/: none of them resolves a name that a user
-- could choose.

-- Locks a table, without its children, by its OID.
CREATE FUNCTION snowflake_internal.migration_lock_table(relation regclass, mode text) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_lock_table_wrapper';

-- A table's name for statements that run under any search path.
CREATE FUNCTION snowflake_internal.migration_name(target regclass) RETURNS text
    STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_name_wrapper';

-- Keeps the names of schemas until the end of the transaction.
CREATE FUNCTION snowflake_internal.migration_pin_schemas(schemas oid[]) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_pin_schemas_wrapper';

-- Runs one statement with the rights of a table's owner, which the caller must have;
-- the first row as an array.
CREATE FUNCTION snowflake_internal.migration_run(relation regclass, statement text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_run_wrapper';

-- Runs one statement with the rights of a table's owner, whose code finds names by
-- the caller's search path.
CREATE FUNCTION snowflake_internal.migration_run(relation regclass, statement text, search_path text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_run_with_path_wrapper';

-- Runs one query with the rights of a table's owner, which the caller must have; the
-- first row as an array.
CREATE FUNCTION snowflake_internal.migration_query(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_query_wrapper';

-- Runs one query with the rights of a table's owner, whose code finds names by the
-- caller's search path.
CREATE FUNCTION snowflake_internal.migration_query(relation regclass, query text, search_path text) RETURNS text[]
    STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_query_with_path_wrapper';

-- Runs one query with the rights of a table's owner where the caller has them, else
-- with the caller's own; the first row as an array.
CREATE FUNCTION snowflake_internal.migration_read(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_read_wrapper';

-- A step of snowflake_migration_plan: alters a table with the rights of its owner,
-- which the caller must have.
CREATE FUNCTION snowflake_internal.migration_alter(statement text) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_alter_wrapper';

-- Runs one statement with the rights of a role, which the caller must have; the
-- first row as an array.
CREATE FUNCTION snowflake_internal.migration_run_as(role oid, statement text, path text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migration_run_as_wrapper';

-- Running the statements of migrations with the privileges of owners: see
-- sql/snowflake/owner.sql.

-- A table's name for statements that run under any search path.
CREATE FUNCTION snowflake_migrate_internal.name_of(target regclass) RETURNS text
    STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_name_of_wrapper';

-- Keeps the names of schemas until the end of the transaction.
CREATE FUNCTION snowflake_migrate_internal.pin_schemas(schemas oid[]) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_pin_schemas_wrapper';

-- Runs one query with the rights of a table's owner, which the caller must have; the
-- first row as an array. The owner's code finds names by the search path, if one is
-- given. The query names no table of another role but `other`.
CREATE FUNCTION snowflake_migrate_internal.query(
    relation regclass, query text, search_path text DEFAULT NULL, other regclass DEFAULT NULL
) RETURNS text[] STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_query_wrapper';

-- The same within two seconds; the SQLSTATE of its failure is then 40003.
CREATE FUNCTION snowflake_migrate_internal.try(relation regclass, query text, search_path text) RETURNS text[]
    STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_try_wrapper';

-- A step of snowflake_migrate.plan: alters a table with the rights of its owner,
-- which the caller must have.
CREATE FUNCTION snowflake_migrate_internal.alter(statement text) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_alter_wrapper';

-- Runs one statement with the rights of a role, which the caller must have; the
-- first row as an array.
CREATE FUNCTION snowflake_migrate_internal.run_as(role oid, statement text, path text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_run_as_wrapper';

-- The state of a sequence; NULL if the owner of the table may not read it.
CREATE FUNCTION snowflake_migrate_internal.sequence_state(
    sequence regclass, on_behalf_of regclass, OUT last_value bigint, OUT is_called boolean
) RETURNS SETOF record STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_sequence_state_wrapper';

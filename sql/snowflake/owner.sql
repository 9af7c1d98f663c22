-- Running statements as the owner of a table, on what was locked by its OID. All code
-- of these functions is in src/owner.rs: none of them resolves a name that a user
-- could choose.

-- Locks a table, without its children, by its OID. Its name, with that of its schema, does not
-- change until the end of the transaction: statements are written after that.
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
    STABLE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_read_wrapper';

-- The same for an audit, which does not use the indexes on expressions, but PostgreSQL
-- prepares their expressions when it plans a query, and inlines the functions in them. Such
-- a function may find others by the search path only. PostgreSQL keeps what it has
-- prepared, so a query that names nothing but the table is planned with the owner's
-- path, if the caller is the owner. Another caller's path may have a schema of a third
-- role, whose function would run with the owner's rights; nor does a superuser's.
CREATE FUNCTION snowflake_internal.read_audited(relation regclass, query text, caller_path text) RETURNS text[]
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET row_security = off
AS $function$
DECLARE
    code text;
    message text;
BEGIN
    PERFORM snowflake_internal.require_login(relation);
    BEGIN
        RETURN snowflake_internal.read(relation, query);
    EXCEPTION WHEN undefined_function OR ambiguous_function OR undefined_object OR undefined_table OR invalid_schema_name THEN
        GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
    END;
    IF EXISTS (SELECT FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner
               WHERE c.oid = relation AND NOT r.rolsuper AND r.rolname = current_user)
    THEN
        BEGIN
            PERFORM snowflake_internal.run(relation, format('SELECT FROM %s LIMIT 0', relation), caller_path);
            RETURN snowflake_internal.read(relation, query);
        EXCEPTION WHEN undefined_function OR ambiguous_function OR undefined_object OR undefined_table OR invalid_schema_name THEN
            GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
        END;
    END IF;
    PERFORM snowflake_internal.refuse(code, format('cannot read %s: %s', relation, message),
        hint => 'If a function of one of its indexes finds others by the search path, use ALTER FUNCTION ... SET search_path for it.');
END
$function$;

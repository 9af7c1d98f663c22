-- Bodies of functions as text, for the searches of findings. Tokens are between single
-- spaces, without comments; a name of the catalog is brought into the same form.

-- A function's body as tokens, separated by spaces; NULL for a body of more than 1
-- MB.
CREATE FUNCTION snowflake_migrate_internal.code(body text) RETURNS text
    STRICT IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_code_wrapper';

-- Calls in a trigger function with columns of its row, a line for each argument;
-- NULL for a body of more than 1 MB.
CREATE FUNCTION snowflake_migrate_internal.calls(body text) RETURNS text
    STRICT IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_calls_wrapper';

-- A name as it is in a body, between spaces, and for a regular expression.
CREATE FUNCTION snowflake_migrate_internal.code_name(name name, OUT code text, OUT pattern text)
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.code, regexp_replace(c.code, E'([][\\\\.*+?(){}|^$])', E'\\\\\\1', 'g')
    FROM btrim(snowflake_migrate_internal.code(quote_ident(name)), ' ') AS c (code)
$function$;

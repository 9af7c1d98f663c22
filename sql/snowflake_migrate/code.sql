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

CREATE FUNCTION snowflake_migrate_internal.escaped_code(code text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN regexp_replace(code, E'([][\\\\.*+?(){}|^$])', E'\\\\\\1', 'g');

-- A name as it is in a body, between spaces, and for a regular expression.
CREATE FUNCTION snowflake_migrate_internal.code_name(name name, OUT code text, OUT pattern text)
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT c.code, snowflake_migrate_internal.escaped_code(c.code)
    FROM btrim(snowflake_migrate_internal.code(quote_ident(name)), ' ') AS c (code)
$function$;

-- What the searches need of the columns that hold the IDs of the keys, and of their tables.
CREATE TYPE snowflake_migrate_internal.code_column AS (
    relation regclass, row_type oid, attname name, attnum smallint, is_narrow boolean, is_key boolean,
    column_code text, column_pattern text, table_code text, schema_code text
);

CREATE FUNCTION snowflake_migrate_internal.code_columns(keys snowflake_migrate_internal.key[])
RETURNS SETOF snowflake_migrate_internal.code_column LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT r.relation, c.reltype, r.attname, r.attribute, r.is_narrow, (r.relation, r.attname) IN (SELECT * FROM unnest(keys)),
           column_name.code, column_name.pattern, table_name.code, schema_name.code
    FROM snowflake_migrate_internal.linked_columns(keys) AS r
    JOIN pg_class AS c ON c.oid = r.relation
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL snowflake_migrate_internal.code_name(r.attname) AS column_name
    CROSS JOIN LATERAL snowflake_migrate_internal.code_name(c.relname) AS table_name
    CROSS JOIN LATERAL snowflake_migrate_internal.code_name(n.nspname) AS schema_name
$function$;

-- The triggers of these columns' tables, once for each of the columns.
CREATE TYPE snowflake_migrate_internal.code_trigger AS (function oid, trigger oid, relation regclass, attname name);

CREATE FUNCTION snowflake_migrate_internal.code_triggers(columns snowflake_migrate_internal.code_column[])
RETURNS SETOF snowflake_migrate_internal.code_trigger LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    -- Partitions have copies of their parent's triggers.
    SELECT t.tgfoid, t.oid, c.relation, c.attname
    FROM unnest(columns) AS c
    CROSS JOIN LATERAL snowflake_migrate_internal.table_tree(c.relation, c.attname) AS f
    JOIN pg_trigger AS t ON t.tgrelid = f.relation AND NOT t.tgisinternal AND t.tgparentid = 0 AND t.tgenabled <> 'D'
                        AND t.tgfoid <> 'snowflake_migrate_internal.shadow()'::regprocedure
$function$;

-- The text of a body that was parsed when the function was created, without its frame.
CREATE FUNCTION snowflake_migrate_internal.parsed_body(function oid) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT regexp_replace(pg_get_function_sqlbody(function), E'^\\s*(?:BEGIN ATOMIC|RETURN \\(?)\\s*|\\s*END\\s*$', '', 'g')
$function$;

-- The bodies that are searched: those that contain a word that is searched for, those of
-- triggers, and those of functions that return rows of the tables. code is NULL for a body
-- that is too large.
CREATE TYPE snowflake_migrate_internal.code_body AS (function oid, row_type oid, code text);

CREATE FUNCTION snowflake_migrate_internal.code_bodies(
    columns snowflake_migrate_internal.code_column[], triggers snowflake_migrate_internal.code_trigger[], online boolean
) RETURNS SETOF snowflake_migrate_internal.code_body LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $function$
    SELECT p.oid, p.prorettype, snowflake_migrate_internal.code(b.body)
    FROM pg_proc AS p
    CROSS JOIN LATERAL (
        SELECT CASE WHEN p.prosqlbody IS NULL THEN p.prosrc ELSE snowflake_migrate_internal.parsed_body(p.oid) END) AS b (body)
    JOIN pg_namespace AS n ON n.oid = p.pronamespace
    JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname IN ('plpgsql', 'sql')
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'snowflake_internal', 'snowflake_migrate_internal')
      AND n.nspname !~ '^pg_(toast|temp)'
      -- code() returns NULL for such a body.
      AND CASE WHEN octet_length(b.body) > 1048576 THEN true
               ELSE b.body ~* '(?:nextval|currval|setval|lastval|insert)'
                    OR p.oid IN (SELECT t.function FROM unnest(triggers) AS t)
                    OR p.prorettype IN (SELECT c.row_type FROM unnest(columns) AS c WHERE online) END
      AND p.oid NOT IN (SELECT e.oid FROM snowflake_migrate_internal.functions_of_extensions() AS e (oid))
$function$;

-- The boundary between the old numbers of a column and its snowflake IDs. Old numbers
-- decode to the first moments after the epoch, so what deletes rows by time needs it.
-- src/boundary.rs describes where it is kept: in a CHECK of the table that refuses nothing.

-- No ID of this server's layout is smaller.
CREATE FUNCTION snowflake_internal.oldest_id() RETURNS bigint
    STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_oldest_id_wrapper';

-- Whether IDs of this database are recorded with another layout than this server's.
CREATE FUNCTION snowflake_internal.has_other_layout() RETURNS boolean
    STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_has_other_layout_wrapper';

-- The boundary that a CHECK tells of a column, by its number, and the last number before it;
-- NULL for any other expression.
CREATE FUNCTION snowflake_internal.boundary_in(conbin pg_node_tree, attnum smallint) RETURNS bigint[]
    STRICT IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_boundary_in_wrapper';

-- The CHECKs of a table, its children and its partitions that tell the boundary of a column.
CREATE FUNCTION snowflake_internal.boundary_checks(target regclass)
RETURNS TABLE (relation oid, conname name, column_name name, told bigint[]) LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT k.conrelid, k.conname, a.attname, b.told
    FROM snowflake_internal.tree(ARRAY[target]) AS t (oid)
    JOIN pg_constraint AS k ON k.conrelid = t.oid AND k.contype = 'c' AND cardinality(k.conkey) = 1
    JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = k.conkey[1]
    CROSS JOIN LATERAL snowflake_internal.boundary_in(k.conbin, a.attnum) AS b (told)
    WHERE b.told IS NOT NULL
$function$;

-- The boundary that is set for a column, and the last number before it: the highest of the
-- tree. NULL if none is set.
CREATE FUNCTION snowflake_internal.set_boundary_of(target regclass, column_name name)
RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT b.told FROM snowflake_internal.boundary_checks(target) AS b
    WHERE b.column_name = set_boundary_of.column_name ORDER BY b.told DESC LIMIT 1
$function$;

-- Why a column may hold numbers that are no IDs of this server's layout; NULL if it holds
-- none. For roles that may read it.
CREATE FUNCTION snowflake_internal.other_numbers(target regclass, column_name name) RETURNS text
    STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_other_numbers_wrapper';

-- The statements that set a boundary, or take it away if it is NULL: one for each table of the
-- tree that has rows. NO INHERIT, because a table can only become a child or a partition of
-- one whose other checks it has. NOT VALID, because nothing has to be read. Citus takes no
-- other action beside ADD CONSTRAINT: there, the former check has a statement of its own.
CREATE FUNCTION snowflake_internal.boundary_statements(target regclass, column_name name, boundary bigint, last_before bigint)
RETURNS TABLE (relation regclass, statement text) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH leaf AS MATERIALIZED (
        SELECT c.oid, format('ALTER TABLE ONLY %I.%I ', n.nspname, c.relname) AS alteration,
               c.oid = ANY ((SELECT ARRAY(SELECT s.relation FROM snowflake_internal.citus_tables() AS s))::oid[]) AS is_alone,
               ARRAY(SELECT b.conname FROM snowflake_internal.boundary_checks(target) AS b
                     WHERE b.relation = c.oid AND b.column_name = boundary_statements.column_name ORDER BY b.conname) AS checks
        FROM snowflake_internal.tree(ARRAY[target]) AS t (oid)
        JOIN pg_class AS c ON c.oid = t.oid AND c.relkind = 'r' AND NOT pg_is_other_temp_schema(c.relnamespace)
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
    ), action AS MATERIALIZED (
        SELECT l.oid, l.alteration, l.is_alone,
               (SELECT string_agg(format('DROP CONSTRAINT %I', k.name), ', ') FROM unnest(l.checks) AS k (name)) AS removal,
               CASE WHEN boundary IS NOT NULL THEN
            format('ADD CONSTRAINT %I CHECK (%I OPERATOR(pg_catalog.>=) %L::pg_catalog.int8 OR %2$I OPERATOR(pg_catalog.<=) %4$L::pg_catalog.int8 OR true) NO INHERIT NOT VALID',
                   -- Two columns of a table can have IDs.
                   (SELECT f.name FROM (VALUES (1, 'snowflake_id_boundary'), (2, format('snowflake_id_boundary_%s', column_name)::name)) AS f (place, name)
                    WHERE NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conrelid = l.oid AND k.conname = f.name AND k.conname <> ALL (l.checks))
                    ORDER BY f.place LIMIT 1),
                   column_name, boundary, coalesce(last_before, boundary - 1)) END AS addition
        FROM leaf AS l
        WHERE boundary IS NOT NULL OR l.checks <> '{}'
    )
    SELECT a.oid::regclass, a.alteration || s.actions
    FROM action AS a
    CROSS JOIN LATERAL (VALUES (1, CASE WHEN a.is_alone THEN a.removal ELSE concat_ws(', ', a.removal, a.addition) END),
                               (2, CASE WHEN a.is_alone THEN a.addition END)) AS s (place, actions)
    WHERE s.actions IS NOT NULL
    ORDER BY a.oid, s.place
$function$;

-- The boundary of the whole tree of parents and children: a query of a table also reads its
-- children. What is not known is an error: 0 would be an answer with which old rows are
-- deleted.
--
-- COST: a scan of an index evaluates the function once, a sequential scan once for
-- each row. With the default cost, the planner would not take that into account.
CREATE FUNCTION snowflake_id_boundary(target regclass, column_name name DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1000
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    ids_column CONSTANT name := snowflake_internal.ids_column(target, column_name);
    is_other_layout CONSTANT boolean := snowflake_internal.has_other_layout();
    known bigint[];
    relation pg_class;
    reason text;
    oldest bigint;
BEGIN
    SELECT c.* INTO relation FROM pg_class AS c WHERE c.oid = target;
    IF NOT pg_has_role(relation.relowner, 'USAGE')
       AND NOT has_column_privilege(target::oid, ids_column::text, 'SELECT')
    THEN
        PERFORM snowflake_internal.refuse('42501', format('permission denied for table %s', relation.relname),
            detail => format('The boundary of column "%s" is shown to roles that may read the column.', ids_column),
            hint => format('Grant SELECT on the table or on column "%s".', ids_column));
    END IF;
    known := snowflake_internal.set_boundary_of(target, ids_column);
    IF known IS NOT NULL AND NOT is_other_layout THEN
        RETURN known[1];
    END IF;
    reason := CASE WHEN is_other_layout THEN 'layout'
                   WHEN to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL AND snowflake_internal.is_in_shards(target) THEN 'shards'
                   ELSE snowflake_internal.other_numbers(target, ids_column) END;
    IF reason IS NULL THEN
        RETURN 0;
    END IF;
    oldest := snowflake_internal.oldest_id();
    PERFORM snowflake_internal.refuse('55000', format('it is not known which rows of table "%s" are older than its snowflake IDs', relation.relname),
        detail => CASE reason WHEN 'layout' THEN 'IDs of this database were generated with another layout, with other times.' ELSE 'No boundary is set. ' || CASE reason
            WHEN 'below' THEN format('Column "%s" has numbers below %s, which are no snowflake IDs of this server''s layout.', ids_column, oldest)
            WHEN 'above' THEN format('Column "%s" has numbers above all snowflake IDs of this moment, such as IDs of another layout.', ids_column)
            WHEN 'no index' THEN format('No B-tree index on column "%s" shows whether it has other numbers than snowflake IDs.', ids_column)
            WHEN 'dead rows' THEN format('At an end of the index on column "%s" are too many deleted rows.', ids_column)
            WHEN 'shards' THEN 'Citus keeps its rows in shards, whose indexes are not looked at.'
            ELSE 'Rows of the table are on other servers.' END END,
        hint => CASE reason
            WHEN 'layout' THEN 'Pass the layout to the functions that read IDs. If the change is intended, run SELECT snowflake_accept_layout() as a superuser.'
            WHEN 'dead rows' THEN 'Try again after a VACUUM of the table.'
            WHEN 'above' THEN 'Do not delete its rows by time, or name the layout of its IDs in what does.'
            ELSE concat(CASE reason WHEN 'shards' THEN 'On the coordinator: ' END,
                        format('If all smaller numbers are older, run SELECT snowflake_set_id_boundary(%L, %L, %s). If all numbers are IDs, set 0.', target, ids_column, oldest)) END);
END
$function$;
COMMENT ON FUNCTION snowflake_id_boundary(target regclass, column_name name) IS
    'Returns the boundary of a column: all smaller numbers are older than its snowflake IDs, which are not smaller; 0 if all numbers are IDs. Fails if that is not known';

-- Sets the boundary where no migration has set it: the default was set by hand, or the rows
-- came from a server where it was.
CREATE FUNCTION snowflake_set_id_boundary(target regclass, column_name name, boundary bigint)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    ids_column name;
    known bigint[];
BEGIN
    PERFORM snowflake_internal.refuse('42501', format('must be owner of table %s', c.relname))
    FROM pg_class AS c WHERE c.oid = target AND c.relkind IN ('r', 'p') AND NOT pg_has_role(c.relowner, 'USAGE');
    ids_column := snowflake_internal.ids_column(target, column_name);
    IF boundary IS NULL OR boundary < 0 THEN
        PERFORM snowflake_internal.refuse('22023', format('invalid boundary: %s', coalesce(boundary::text, 'NULL')),
            hint => 'Specify a number that no snowflake ID of the column is below, and all older numbers are; 0 if there are none.');
    END IF;
    known := snowflake_internal.set_boundary_of(target, ids_column);
    IF coalesce(boundary > known[1], true) THEN
        -- What another session sets in the meantime is seen once its tables are locked, by a later snapshot.
        IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
            PERFORM snowflake_internal.refuse('55000', 'a boundary is set in the isolation level READ COMMITTED',
                detail => format('The isolation level of this transaction is %s.', upper(current_setting('transaction_isolation'))),
                hint => 'BEGIN ISOLATION LEVEL READ COMMITTED.');
        ELSIF pg_is_in_recovery() THEN
            PERFORM snowflake_internal.refuse('25006', 'cannot set a boundary during recovery');
        END IF;
        PERFORM snowflake_internal.require_login(target);
        PERFORM snowflake_internal.lock_table(c.oid::regclass, 'ACCESS EXCLUSIVE')
        FROM snowflake_internal.tree(ARRAY[target]) AS t (oid)
        JOIN pg_class AS c ON c.oid = t.oid AND c.relkind = 'r' AND NOT pg_is_other_temp_schema(c.relnamespace) ORDER BY c.oid;
        known := snowflake_internal.set_boundary_of(target, ids_column);
    END IF;
    IF boundary < known[1] THEN
        PERFORM snowflake_internal.refuse('22023', format('the boundary of column "%s" of %s cannot be lowered', ids_column, target),
            detail => format('It is %s; %s is below it. Rows in between would be taken for new ones.', known[1], boundary),
            hint => 'If it is wrong, drop the constraint of the table that has it first.');
    ELSIF boundary = known[1] THEN
        RETURN;
    END IF;
    PERFORM snowflake_internal.run(s.relation, s.statement)
    FROM snowflake_internal.boundary_statements(target, ids_column, boundary, NULL) AS s;
END
$function$;
COMMENT ON FUNCTION snowflake_set_id_boundary(target regclass, column_name name, boundary bigint) IS
    'Sets the boundary that snowflake_id_boundary returns, where no migration on this server has set it, in a CHECK constraint of the table; NULL as column_name is the column that has the IDs. Takes ACCESS EXCLUSIVE for a moment';

-- The first snowflake IDs of migrated columns.

-- The boundary of each migrated column. It outlives the tool that migrated it. The rows
-- reveal how far sequences had advanced. So the owner of a table sees only its row,
-- through snowflake_internal.first_id_record(). Of the other roles, only those that
-- dump the database see the rows. Written by src/records/first_ids.rs.
CREATE TABLE snowflake_internal.first_ids (
    target regclass NOT NULL,
    column_name name NOT NULL,
    first_id bigint NOT NULL,
    is_migrated boolean NOT NULL,
    last_old_id bigint,
    PRIMARY KEY (target, column_name)
) USING heap;
COMMENT ON TABLE snowflake_internal.first_ids IS 'First snowflake IDs of migrated columns, for snowflake_first_id(); written by the extension only';
COMMENT ON COLUMN snowflake_internal.first_ids.target IS 'Table';
COMMENT ON COLUMN snowflake_internal.first_ids.column_name IS 'Column';
COMMENT ON COLUMN snowflake_internal.first_ids.first_id IS 'No snowflake ID of the column is smaller, whichever server issued it';
COMMENT ON COLUMN snowflake_internal.first_ids.is_migrated IS 'Whether the column was migrated on this server, and the migration was not reverted';
COMMENT ON COLUMN snowflake_internal.first_ids.last_old_id IS 'No number of the time before the migration is larger; NULL if that is not known';

-- The row of a column, for the owner of its table; otherwise NULL.
CREATE FUNCTION snowflake_internal.first_id_record(target regclass, column_name name) RETURNS snowflake_internal.first_ids
    STRICT VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_first_id_record_wrapper';

-- Writes a row of snowflake_internal.first_ids, for the owner of its table.
CREATE FUNCTION snowflake_internal.keep_first_id(first_id snowflake_internal.first_ids) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_keep_first_id_wrapper';

-- The recorded boundary of a migrated column, the highest of the table, its parents
-- and its children, for roles that may read the column; otherwise NULL.
CREATE FUNCTION snowflake_internal.first_id_of(target regclass, column_name name) RETURNS bigint
    STRICT VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_first_id_of_wrapper';

-- The boundary between the old rows of a migrated column and its snowflake IDs. Old
-- numbers decode to the first moments after the epoch, so what deletes rows by time
-- needs it.
--
-- It is that of the whole tree of parents and children: the migration of a table also
-- applies to its partitions, and a query of a table also reads its children. The
-- caller's privileges are checked for the table that is named.
--
-- COST: a scan of an index evaluates the function once, a sequential scan once for
-- each row. With the default cost, the planner would not take that into account.
CREATE FUNCTION snowflake_first_id(target regclass, column_name name DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1000
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    ids_column CONSTANT name := snowflake_internal.ids_column(target, column_name);
    relation pg_class;
BEGIN
    SELECT c.* INTO relation FROM pg_class AS c WHERE c.oid = target;
    -- 0 would be a wrong answer, with which old rows are deleted.
    IF NOT pg_has_role(relation.relowner, 'USAGE')
       AND NOT has_column_privilege(target::oid, ids_column::text, 'SELECT')
    THEN
        PERFORM snowflake_internal.refuse('42501', format('permission denied for table %s', relation.relname),
            detail => format('The first snowflake ID of column "%s" is shown to roles that may read the column.', ids_column),
            hint => format('Grant SELECT on the table or on column "%s".', ids_column));
    END IF;
    RETURN coalesce(snowflake_internal.first_id_of(target, ids_column), 0);
END
$function$;
COMMENT ON FUNCTION snowflake_first_id(target regclass, column_name name) IS
    'Returns the first snowflake ID of a migrated column: all smaller numbers are of rows that are older than the migration; 0 if the column was not migrated';

-- Records the boundary where the column was not migrated, but receives the rows of a
-- server where it was: records do not replicate.
--
-- The record of a migration that is not reverted is not changed, because reverting
-- takes all smaller numbers for old ones.
CREATE FUNCTION snowflake_record_first_id(target regclass, column_name name, first_id bigint)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    ids_column name;
    known snowflake_internal.first_ids;
BEGIN
    -- Checked first: without ownership, ids_column() does not see the record.
    IF EXISTS (SELECT FROM pg_class AS c WHERE c.oid = target AND c.relkind IN ('r', 'p') AND NOT pg_has_role(c.relowner, 'USAGE')) THEN
        PERFORM snowflake_internal.refuse('42501', format('must be owner of table %s', (SELECT c.relname FROM pg_class AS c WHERE c.oid = target)));
    END IF;
    ids_column := snowflake_internal.ids_column(target, column_name);
    IF first_id IS NULL OR first_id < 0 THEN
        PERFORM snowflake_internal.refuse('22023', format('invalid first ID: %s', coalesce(first_id::text, 'NULL')),
            hint => 'Specify what snowflake_first_id() returns on the server where the column was migrated.');
    END IF;
    -- One session at a time.
    PERFORM snowflake_internal.lock_table(target, text 'SHARE UPDATE EXCLUSIVE');
    known := snowflake_internal.first_id_record(target, ids_column);
    IF first_id < known.first_id THEN
        PERFORM snowflake_internal.refuse('22023', format('the first ID of column "%s" of %s cannot be lowered', ids_column, target),
            detail => format('The recorded one is %s; %s is below it.', known.first_id, first_id));
    ELSIF first_id = known.first_id THEN
        RETURN;
    ELSIF known.is_migrated THEN
        PERFORM snowflake_internal.refuse('55000', format('column "%s" of %s was migrated on this server', ids_column, target),
            detail => format('The migration recorded its first ID, %s.', known.first_id));
    END IF;
    known.target := target;
    known.column_name := ids_column;
    known.first_id := first_id;
    known.is_migrated := false;
    PERFORM snowflake_internal.keep_first_id(known);
END
$function$;
COMMENT ON FUNCTION snowflake_record_first_id(target regclass, column_name name, first_id bigint) IS
    'Records the first snowflake ID of a column that was migrated on another server, for snowflake_first_id; NULL as column_name is the column that has the IDs';

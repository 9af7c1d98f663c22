-- Through this table the records of migrations are restored by a role that is no
-- superuser: see sql/snowflake/restore.sql. Its columns are those of
-- snowflake_migrate_internal.origins, and the name of the table instead of its OID.
CREATE TABLE snowflake_migrate_internal.restore (
    target_schema name,
    target_name name,
    column_name name,
    kind text,
    data_type text,
    default_expression text,
    sequence_schema name,
    sequence_name name,
    sequence_options jsonb,
    sequence_last_value bigint,
    sequence_privileges jsonb,
    sequence_comment text,
    child_defaults jsonb,
    first_id_ever bigint,
    first_id bigint,
    remembered_at timestamp with time zone,
    reverted_at timestamp with time zone,
    -- While the trigger is disabled, a row is an error: it would have no effect.
    CONSTRAINT restore_applies_rows_by_its_trigger CHECK (false)
) USING heap;
COMMENT ON TABLE snowflake_migrate_internal.restore IS
    'What pg_dump includes of this extension; always empty. Rows that are inserted by a restored dump are applied, not stored';
COMMENT ON COLUMN snowflake_migrate_internal.restore.target_schema IS 'Schema of the table';
COMMENT ON COLUMN snowflake_migrate_internal.restore.target_name IS 'Name of the table';
DO $do$
DECLARE
    column_name pg_catalog.name;
BEGIN
    FOR column_name IN
        SELECT a.attname FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid OPERATOR(pg_catalog.=) 'snowflake_migrate_internal.restore'::pg_catalog.regclass::pg_catalog.oid
          AND a.attnum OPERATOR(pg_catalog.>) 2::pg_catalog.int2
    LOOP
        EXECUTE pg_catalog.format('COMMENT ON COLUMN snowflake_migrate_internal.restore.%I IS %L',
                                  column_name, 'As in snowflake_migrate_internal.origins');
    END LOOP;
END
$do$;

-- The trigger of snowflake_migrate_internal.restore: applies a row of a restored dump.
CREATE FUNCTION snowflake_migrate_internal.restore_row() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_migrate_restore_row_wrapper';

CREATE TRIGGER restore_row BEFORE INSERT ON snowflake_migrate_internal.restore
    FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.restore_row();
ALTER TABLE snowflake_migrate_internal.restore ENABLE ALWAYS TRIGGER restore_row;

-- The columns are those above, in that order; a later version may only append some.
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.restore', $condition$WHERE false
UNION ALL
SELECT n.nspname, c.relname, o.column_name, o.kind, o.data_type, o.default_expression,
       o.sequence_schema, o.sequence_name, o.sequence_options, o.sequence_last_value, o.sequence_privileges,
       o.sequence_comment, o.child_defaults, o.first_id_ever, o.first_id, o.remembered_at, o.reverted_at
FROM snowflake_migrate_internal.visible_origins() AS o
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) o.target AND c.relpersistence OPERATOR(pg_catalog.<>) 't'
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
ORDER BY 1, 2, 3$condition$);

-- A partition that does not exist yet.
CREATE TYPE snowflake_partitions_internal.range AS (name name, low bigint, high bigint);

-- The table's name and its key, the only column that it is partitioned by.
CREATE TYPE snowflake_partitions_internal.key AS (schema_name name, table_name name, column_name name, owner oid);

-- A partition, and what retention says of it. low is NULL for MINVALUE, high for MAXVALUE.
CREATE TYPE snowflake_partitions_internal.assessed AS (
    relation regclass, low bigint, high bigint, is_default boolean, is_detaching boolean,
    since timestamp with time zone, until timestamp with time zone, due_at timestamp with time zone, is_due boolean,
    kept_because text, referenced_by regclass[]
);

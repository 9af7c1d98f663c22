//! The SQL files, and what each needs to have been created before it.

pgrx::extension_sql_file!("../sql/mark.sql", name = "mark");
pgrx::extension_sql_file!(
    "../sql/copy.sql",
    name = "copy",
    requires = [
        sql::generate::snowflake_nextval,
        copy::snowflake_nextval_support
    ]
);
pgrx::extension_sql_file!(
    "../sql/layout_memory.sql",
    name = "layout_memory",
    requires = [sql::admin::snowflake_accept_layout]
);
pgrx::extension_sql_file!(
    "../sql/monitor.sql",
    name = "monitor",
    requires = [
        "layout_memory",
        sql::monitor::snowflake_get_database_layout,
        sql::monitor::snowflake_get_status,
        sql::monitor::snowflake_get_stat_slots,
        sql::admin::snowflake_stat_reset
    ]
);
pgrx::extension_sql_file!(
    "../sql/layouts.sql",
    name = "layouts",
    requires = [sql::layouts::snowflake_get_layouts]
);
pgrx::extension_sql_file!(
    "../sql/bounds.sql",
    name = "bounds",
    requires = [
        sql::bounds::snowflake_min_id,
        sql::bounds::snowflake_min_id_by,
        sql::bounds::snowflake_max_id_before,
        sql::bounds::snowflake_max_id_before_by
    ]
);
pgrx::extension_sql_file!(
    "../sql/partitions.sql",
    name = "partitions",
    requires = [sql::bounds::snowflake_min_id]
);
pgrx::extension_sql_file!(
    "../sql/migration/records.sql",
    name = "migration_records",
    requires = [migration::guard::snowflake_migration_guard]
);
pgrx::extension_sql_file!(
    "../sql/migration/serial_columns.sql",
    name = "migration_serial_columns"
);
pgrx::extension_sql_file!(
    "../sql/migration/columns.sql",
    name = "migration_columns",
    requires = [
        "migration_serial_columns",
        sql::generate::snowflake_nextval,
        migration::records::snowflake_migration_origin,
        migration::lock::snowflake_migration_lock_table,
        migration::owner::snowflake_migration_run,
        migration::owner::snowflake_migration_query,
        migration::owner::snowflake_migration_read,
        migration::sequence::snowflake_migration_sequence_state
    ]
);
pgrx::extension_sql_file!(
    "../sql/migration/obstacles.sql",
    name = "migration_obstacles",
    requires = ["migration_columns", "monitor"]
);
pgrx::extension_sql_file!(
    "../sql/migration/origins.sql",
    name = "migration_origins",
    requires = [
        "migration_columns",
        sql::bounds::snowflake_min_id,
        migration::records::snowflake_migration_keep_origin
    ]
);
pgrx::extension_sql_file!(
    "../sql/migration/statements.sql",
    name = "migration_statements",
    requires = ["migration_columns"]
);
pgrx::extension_sql_file!(
    "../sql/migration/online/locks.sql",
    name = "migration_locks",
    requires = ["migration_columns"]
);
pgrx::extension_sql_file!(
    "../sql/migration/online/shadows.sql",
    name = "migration_shadows",
    requires = [
        "migration_statements",
        "migration_locks",
        shadow::snowflake_shadow
    ]
);
pgrx::extension_sql_file!(
    "../sql/migration/online/indexes.sql",
    name = "migration_shadow_indexes",
    requires = ["migration_shadows"]
);
pgrx::extension_sql_file!(
    "../sql/migration/online/foreign_keys.sql",
    name = "migration_shadow_foreign_keys",
    requires = ["migration_shadows"]
);
pgrx::extension_sql_file!(
    "../sql/migration/online/progress.sql",
    name = "migration_progress",
    requires = [
        "migration_origins",
        "migration_shadow_indexes",
        "migration_shadow_foreign_keys",
        migration::records::snowflake_migration_progress,
        migration::records::snowflake_migration_keep_progress,
        migration::records::snowflake_migration_end
    ]
);
pgrx::extension_sql_file!(
    "../sql/migration/online/backfill.sql",
    name = "migration_backfill",
    requires = ["migration_progress"]
);
pgrx::extension_sql_file!(
    "../sql/migration/online/obstacles.sql",
    name = "migration_online_obstacles",
    requires = [
        "migration_backfill",
        "migration_shadow_indexes",
        "migration_shadow_foreign_keys"
    ]
);
pgrx::extension_sql_file!(
    "../sql/migration/online/swap.sql",
    name = "migration_swap",
    requires = [
        "migration_online_obstacles",
        "migration_obstacles",
        "migration_origins"
    ]
);
pgrx::extension_sql_file!(
    "../sql/migration/plan.sql",
    name = "migration_plan",
    requires = ["migration_swap"]
);
pgrx::extension_sql_file!(
    "../sql/migration/revert.sql",
    name = "migration_revert",
    requires = ["migration_plan"]
);
pgrx::extension_sql_file!(
    "../sql/audit.sql",
    name = "audit",
    requires = [
        "mark",
        "migration_columns",
        "monitor",
        sql::bounds::snowflake_max_id,
        read::snowflake_node_id,
        read::snowflake_backend_id
    ]
);
pgrx::extension_sql_file!(
    "../sql/privileges.sql",
    name = "privileges",
    requires = [
        "mark",
        "layout_memory",
        "migration_origins",
        "migration_progress",
        sql::monitor::snowflake_get_status
    ]
);
pgrx::extension_sql_file!("../sql/comments.sql", name = "comments", finalize);

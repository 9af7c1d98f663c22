//! The SQL files, and what each needs to have been created before it.
//!
//! `sql/public` has what people call and read, in the schema that the extension
//! is created in; `sql/internal` has the rest, in the schema `snowflake_internal`.
//! A function in Rust whose SQL is generated has its comment in the file of its
//! subject; one that brings its own SQL has it there.

use pgrx::extension_sql_file;

extension_sql_file!("../sql/internal/schema.sql", name = "schema", bootstrap);
extension_sql_file!("../sql/internal/mark.sql", name = "mark");
extension_sql_file!(
    "../sql/internal/accepted_layout.sql",
    name = "accepted_layout"
);

extension_sql_file!(
    "../sql/public/generate.sql",
    name = "generate",
    requires = [
        sql::generate::snowflake_nextval,
        sql::generate::snowflake_id,
        sql::generate::snowflake_nextvals,
        sql::generate::snowflake_currval,
        copy::snowflake_copy_nextval,
        copy::snowflake_nextval_support
    ]
);
extension_sql_file!(
    "../sql/public/read.sql",
    name = "read",
    requires = [
        sql::read::snowflake_decode,
        sql::read::snowflake_decode_by,
        sql::read::snowflake_timestamp,
        sql::read::snowflake_timestamp_by,
        sql::read::snowflake_node_id,
        sql::read::snowflake_node_id_by,
        sql::read::snowflake_backend_id,
        sql::read::snowflake_backend_id_by,
        sql::read::snowflake_sequence,
        sql::read::snowflake_sequence_by,
        sql::read::snowflake_compose,
        sql::read::snowflake_compose_by
    ]
);
extension_sql_file!(
    "../sql/public/explain.sql",
    name = "explain",
    requires = [
        sql::explain::snowflake_explain,
        sql::explain::snowflake_explain_by
    ]
);
extension_sql_file!(
    "../sql/public/text.sql",
    name = "text",
    requires = [sql::text::snowflake_to_text, sql::text::snowflake_from_text]
);
extension_sql_file!(
    "../sql/public/bounds.sql",
    name = "bounds",
    requires = [
        sql::bounds::snowflake_min_id,
        sql::bounds::snowflake_min_id_by,
        sql::bounds::snowflake_max_id,
        sql::bounds::snowflake_max_id_by,
        sql::bounds::snowflake_max_id_before,
        sql::bounds::snowflake_max_id_before_by
    ]
);
extension_sql_file!(
    "../sql/internal/partition_boundary.sql",
    name = "partition_boundary"
);
extension_sql_file!(
    "../sql/public/partitions.sql",
    name = "partitions",
    requires = [
        "partition_boundary",
        sql::bounds::snowflake_min_id,
        sql::read::snowflake_timestamp
    ]
);
extension_sql_file!(
    "../sql/public/layouts.sql",
    name = "layouts",
    requires = [
        sql::layouts::snowflake_get_layouts,
        sql::layouts::snowflake_layout_capacity,
        sql::layouts::snowflake_layouts_for
    ]
);
extension_sql_file!(
    "../sql/public/admin.sql",
    name = "admin",
    requires = [
        sql::admin::snowflake_start_after,
        sql::admin::snowflake_accept_clock,
        sql::admin::snowflake_accept_layout,
        sql::admin::snowflake_accept_node_id,
        sql::admin::snowflake_stat_reset
    ]
);
extension_sql_file!(
    "../sql/public/resolved.sql",
    name = "resolved",
    requires = [
        sql::resolved::snowflake_resolved_id,
        sql::resolved::snowflake_advance_resolved_id,
        sql::resolved::snowflake_get_unresolved
    ]
);
extension_sql_file!(
    "../sql/public/monitor.sql",
    name = "monitor",
    requires = [
        "accepted_layout",
        sql::monitor::snowflake_get_database_layout,
        sql::monitor::snowflake_get_node_status,
        sql::resolved::snowflake_get_resolved,
        sql::monitor::snowflake_get_status,
        sql::monitor::snowflake_get_stat_slots
    ]
);

extension_sql_file!(
    "../sql/internal/migration/records.sql",
    name = "migration_records",
    requires = [migration::guard::snowflake_migration_guard]
);
extension_sql_file!(
    "../sql/internal/migration/types.sql",
    name = "migration_types"
);
extension_sql_file!(
    "../sql/public/serial_columns.sql",
    name = "serial_columns",
    requires = ["migration_types"]
);
extension_sql_file!(
    "../sql/internal/migration/columns.sql",
    name = "migration_columns",
    requires = [
        "serial_columns",
        sql::generate::snowflake_nextval,
        sql::generate::snowflake_id,
        migration::records::snowflake_migration_origin,
        migration::lock::snowflake_migration_lock_table,
        migration::lock::snowflake_migration_pin_schemas,
        migration::lock::snowflake_migration_name,
        migration::owner::snowflake_migration_run,
        migration::owner::snowflake_migration_alter,
        migration::owner::snowflake_migration_run_as,
        migration::owner::snowflake_migration_run_with_path,
        migration::owner::snowflake_migration_query,
        migration::owner::snowflake_migration_query_with_path,
        migration::owner::snowflake_migration_read,
        migration::sequence::snowflake_migration_sequence_state
    ]
);
extension_sql_file!(
    "../sql/internal/migration/dependents/find.sql",
    name = "migration_dependents",
    requires = ["migration_columns"]
);
extension_sql_file!(
    "../sql/internal/migration/dependents/save.sql",
    name = "migration_save_dependents",
    requires = ["migration_dependents"]
);
extension_sql_file!(
    "../sql/internal/migration/dependents/restore.sql",
    name = "migration_restore_dependents",
    requires = [
        "migration_save_dependents",
        "migration_origins",
        migration::owner::snowflake_migration_run_as
    ]
);
extension_sql_file!(
    "../sql/internal/migration/obstacles/rebuilding.sql",
    name = "migration_rebuilding",
    requires = [
        "migration_columns",
        migration::expression::snowflake_migration_rename_columns
    ]
);
extension_sql_file!(
    "../sql/internal/migration/scan.sql",
    name = "migration_scan",
    requires = ["migration_origins"]
);
extension_sql_file!(
    "../sql/internal/migration/obstacles/roles.sql",
    name = "migration_roles",
    requires = ["migration_columns"]
);
extension_sql_file!(
    "../sql/internal/migration/foreign_key_triggers.sql",
    name = "migration_foreign_key_triggers",
    requires = [
        "migration_columns",
        migration::trigger::snowflake_migration_set_trigger_state
    ]
);
extension_sql_file!(
    "../sql/internal/migration/obstacles/all.sql",
    name = "migration_obstacles",
    requires = [
        "migration_dependents",
        "migration_rebuilding",
        "migration_scan",
        "migration_roles",
        "migration_foreign_key_triggers",
        "monitor"
    ]
);
extension_sql_file!(
    "../sql/internal/migration/obstacles/row_types.sql",
    name = "migration_row_types",
    requires = ["migration_columns"]
);
extension_sql_file!(
    "../sql/internal/migration/origins.sql",
    name = "migration_origins",
    requires = [
        "migration_columns",
        sql::bounds::snowflake_min_id,
        migration::records::snowflake_migration_keep_origin
    ]
);
extension_sql_file!(
    "../sql/internal/migration/statements.sql",
    name = "migration_statements",
    requires = ["migration_columns"]
);
extension_sql_file!(
    "../sql/internal/migration/functions.sql",
    name = "migration_functions",
    requires = [
        "migration_columns",
        migration::owner::snowflake_migration_run_as
    ]
);
extension_sql_file!(
    "../sql/internal/migration/online/locks.sql",
    name = "migration_locks",
    requires = ["migration_columns"]
);
extension_sql_file!(
    "../sql/internal/migration/online/shadows.sql",
    name = "migration_shadows",
    requires = [
        "migration_statements",
        "migration_locks",
        migration::expression::snowflake_migration_rename_columns,
        shadow::snowflake_shadow
    ]
);
extension_sql_file!(
    "../sql/internal/migration/online/indexes.sql",
    name = "migration_shadow_indexes",
    requires = ["migration_shadows"]
);
extension_sql_file!(
    "../sql/internal/migration/online/foreign_keys.sql",
    name = "migration_shadow_foreign_keys",
    requires = ["migration_shadows", "migration_foreign_key_triggers"]
);
extension_sql_file!(
    "../sql/internal/migration/online/checks.sql",
    name = "migration_shadow_checks",
    requires = ["migration_shadows"]
);
extension_sql_file!(
    "../sql/internal/migration/online/statistics.sql",
    name = "migration_shadow_statistics",
    requires = ["migration_shadow_indexes", "migration_shadow_foreign_keys"]
);
extension_sql_file!(
    "../sql/internal/migration/online/progress.sql",
    name = "migration_progress",
    requires = [
        "migration_origins",
        "migration_shadow_checks",
        "migration_shadow_indexes",
        "migration_shadow_foreign_keys",
        migration::records::snowflake_migration_progress,
        migration::records::snowflake_migration_keep_progress,
        migration::records::snowflake_migration_end
    ]
);
extension_sql_file!(
    "../sql/internal/migration/online/pace.sql",
    name = "migration_pace",
    requires = [
        "migration_progress",
        migration::records::snowflake_migration_pace,
        migration::records::snowflake_migration_keep_pace,
        migration::sleep::snowflake_migration_sleep
    ]
);
extension_sql_file!(
    "../sql/public/migrations.sql",
    name = "migrations",
    requires = ["migration_pace"]
);
extension_sql_file!(
    "../sql/internal/migration/online/backfill.sql",
    name = "migration_backfill",
    requires = ["migrations"]
);
extension_sql_file!(
    "../sql/internal/migration/online/obstacles.sql",
    name = "migration_online_obstacles",
    requires = [
        "migration_backfill",
        "migration_shadow_checks",
        "migration_shadow_statistics",
        "migration_row_types",
        "migration_shadow_indexes",
        "migration_shadow_foreign_keys"
    ]
);
extension_sql_file!(
    "../sql/internal/migration/online/swap.sql",
    name = "migration_swap",
    requires = [
        "migration_online_obstacles",
        "migration_obstacles",
        "migration_restore_dependents",
        "migration_functions",
        "migration_origins"
    ]
);
extension_sql_file!(
    "../sql/internal/migration/obstacles/lock_table.sql",
    name = "migration_lock_table",
    requires = ["migration_columns"]
);
extension_sql_file!(
    "../sql/internal/migration/obstacles/index_functions.sql",
    name = "migration_index_functions",
    requires = ["migration_columns"]
);
extension_sql_file!(
    "../sql/internal/migration/findings.sql",
    name = "migration_findings",
    requires = [
        "migration_columns",
        migration::code::snowflake_migration_code,
        migration::code::snowflake_migration_calls
    ]
);
extension_sql_file!(
    "../sql/internal/migration/plan.sql",
    name = "migration_steps",
    requires = [
        "migration_swap",
        "migration_lock_table",
        "migration_index_functions",
        "migration_findings"
    ]
);
extension_sql_file!(
    "../sql/internal/migration/revert.sql",
    name = "migration_revert",
    requires = ["migration_steps"]
);
extension_sql_file!(
    "../sql/public/migration_plan.sql",
    name = "migration_plan",
    requires = ["migration_steps"]
);
extension_sql_file!(
    "../sql/public/migrate.sql",
    name = "migrate",
    requires = ["migration_steps"]
);
extension_sql_file!(
    "../sql/public/migration_references.sql",
    name = "migration_references",
    requires = ["migration_findings"]
);
extension_sql_file!(
    "../sql/public/migration_survey.sql",
    name = "migration_survey",
    requires = ["migration_steps"]
);
extension_sql_file!(
    "../sql/public/migrate_backfill.sql",
    name = "migrate_backfill",
    requires = ["migration_backfill"]
);
extension_sql_file!(
    "../sql/public/migrate_pace.sql",
    name = "migrate_pace",
    requires = ["migrate_backfill"]
);
extension_sql_file!(
    "../sql/public/migrate_revert.sql",
    name = "migrate_revert",
    requires = ["migration_revert"]
);
extension_sql_file!(
    "../sql/internal/tables_with_ids.sql",
    name = "tables_with_ids",
    requires = ["migration_columns"]
);
extension_sql_file!(
    "../sql/public/first_id.sql",
    name = "first_id",
    requires = [
        "tables_with_ids",
        "migration_origins",
        migration::records::snowflake_migration_first_id_of,
        migration::records::snowflake_migration_keep_origin
    ]
);
extension_sql_file!(
    "../sql/public/watch.sql",
    name = "watch",
    requires = [
        "migration_statements",
        "tables_with_ids",
        sql::watch::snowflake_has_this_node,
        sql::watch::snowflake_watch
    ]
);
extension_sql_file!(
    "../sql/public/audit.sql",
    name = "audit",
    requires = [
        "mark",
        "migration_columns",
        "migration_revert",
        "monitor",
        "tables_with_ids",
        migration::records::snowflake_migration_first_id_of,
        migration::sequence::snowflake_migration_sequence_state,
        sql::bounds::snowflake_max_id,
        sql::read::snowflake_node_id,
        sql::read::snowflake_backend_id
    ]
);
extension_sql_file!(
    "../sql/public/audit_tables.sql",
    name = "audit_tables",
    requires = ["audit", "tables_with_ids"]
);

extension_sql_file!(
    "../sql/internal/restore.sql",
    name = "restore",
    requires = [
        "mark",
        "accepted_layout",
        "migration_records",
        restore::snowflake_restore_row
    ]
);
extension_sql_file!(
    "../sql/internal/privileges.sql",
    name = "privileges",
    requires = [
        "mark",
        "accepted_layout",
        "restore",
        "migration_origins",
        "migration_progress"
    ]
);
extension_sql_file!(
    "../sql/public/preload_warning.sql",
    name = "preload_warning",
    finalize
);

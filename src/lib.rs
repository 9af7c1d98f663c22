//! `snowflake`: 64-bit, time-ordered, decodable primary keys that never come
//! twice.
//!
//! A thin SQL surface over the crate `snowflake-id`, which has the algorithm.
//! SQL modules ask [`backend`] for IDs; it brings together the settings, the
//! shared slots, the clocks, the mark in the write-ahead log, and the wait.

use pgrx::pg_guard;
use pgrx::pg_sys;

mod backend;
mod bounds;
mod call;
mod clock;
mod copy;
mod counter;
mod datum;
mod encoding;
mod error;
mod explain;
mod floor;
mod generate;
mod inspect;
mod layout_memory;
mod layouts;
mod log;
mod mark;
mod migration;
mod monitor;
mod settings;
mod shadow;
mod shared;
mod stats;
mod text;
#[cfg(feature = "unprotected")]
mod unprotected;
mod utility;
mod wait;

#[cfg(test)]
pub mod pg_test;
#[cfg(any(test, feature = "pg_test"))]
mod tests;

pgrx::pg_module_magic!(name, version);

pgrx::extension_sql_file!("../sql/mark.sql", name = "mark");
pgrx::extension_sql_file!(
    "../sql/copy.sql",
    name = "copy",
    requires = [generate::snowflake_nextval, copy::snowflake_nextval_support]
);
pgrx::extension_sql_file!(
    "../sql/layout_memory.sql",
    name = "layout_memory",
    requires = [generate::snowflake_accept_layout]
);
pgrx::extension_sql_file!(
    "../sql/monitor.sql",
    name = "monitor",
    requires = [
        "layout_memory",
        monitor::snowflake_get_database_layout,
        monitor::snowflake_get_status,
        monitor::snowflake_get_stat_slots,
        monitor::snowflake_stat_reset
    ]
);
pgrx::extension_sql_file!(
    "../sql/layouts.sql",
    name = "layouts",
    requires = [layouts::snowflake_get_layouts]
);
pgrx::extension_sql_file!(
    "../sql/bounds.sql",
    name = "bounds",
    requires = [
        bounds::snowflake_min_id,
        bounds::snowflake_min_id_by,
        bounds::snowflake_max_id_before,
        bounds::snowflake_max_id_before_by
    ]
);
pgrx::extension_sql_file!(
    "../sql/partitions.sql",
    name = "partitions",
    requires = [bounds::snowflake_min_id]
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
        generate::snowflake_nextval,
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
        bounds::snowflake_min_id,
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
        bounds::snowflake_max_id,
        inspect::snowflake_node_id,
        inspect::snowflake_backend_id
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
        monitor::snowflake_get_status
    ]
);
pgrx::extension_sql_file!("../sql/comments.sql", name = "comments", finalize);

/// Called when the library is loaded. Settings and shared memory come into
/// being only while `shared_preload_libraries` is loaded; in a process that
/// loads the library later, decoding works and generating says what to do.
#[allow(non_snake_case)]
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    error::forgo_backtraces();
    // SAFETY: a flag that Postgres sets before it loads libraries.
    #[allow(unsafe_code)]
    let preloading = unsafe { pg_sys::process_shared_preload_libraries_in_progress };
    if preloading {
        clock::init();
        settings::init();
        shared::init();
        copy::init();
        utility::init();
    }
}

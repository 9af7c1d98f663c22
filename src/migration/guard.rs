//! The trigger that protects the tables of records.
//!
//! Privileges on all tables (`GRANT … ON ALL TABLES`, default privileges,
//! `pg_write_all_data`) include these tables. A superuser who reverts a migration
//! runs statements that are built from them, so a privilege is not enough. Only
//! superusers may write to them by SQL. The extension's own writes ([`super::records`]) fire no trigger.

use pgrx::prelude::*;

use crate::encoding::readable;
use crate::error::Error;
use crate::pg::{self, Call, TriggerResult};

#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_guard() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_guard() IS
    'The trigger that lets only superusers change the extension''s tables by SQL';
"#)]
fn snowflake_migration_guard(call: Call<'_>) -> TriggerResult {
    let Some(trigger) = call.trigger() else {
        Error::GuardIsATrigger.report();
    };
    if !pg::is_superuser() {
        let table = readable(trigger.table_name().to_bytes()).into_owned();
        Error::RecordsGuarded(table).report();
    }
    TriggerResult::no_row()
}

//! Restoring the records of migrations: see [`crate::restore`].

use pgrx::prelude::*;

use super::records::ORIGINS;
use crate::catalog::MIGRATE;
use crate::pg::{Call, TriggerResult};
use crate::restore::{restore_record, restore_row};

#[pg_extern(sql = false)]
fn snowflake_migrate_restore_row(call: Call<'_>) -> TriggerResult {
    restore_row(call, &MIGRATE, |row| restore_record(&ORIGINS, row))
}

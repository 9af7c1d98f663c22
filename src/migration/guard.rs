//! The trigger that keeps the tables of records to the extension.
//!
//! Privileges granted wholesale (`GRANT … ON ALL TABLES`, default privileges,
//! `pg_write_all_data`) include these tables. What a superuser runs on the way
//! back is made from them, so a privilege is not enough: only superusers write
//! to them by SQL, as a restored dump does. The extension's own writes
//! ([`super::records`]) pass no trigger.

use std::ffi::CStr;

use pgrx::pg_sys;
use pgrx::prelude::*;
use pgrx::trigger_support::called_as_trigger;

use super::Answer;
use crate::encoding::readable;
use crate::error::Error;

#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_guard() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_guard() IS
    'The trigger that lets only superusers change the extension''s tables by SQL';
"#)]
fn snowflake_migration_guard(fcinfo: pg_sys::FunctionCallInfo) -> Answer {
    // SAFETY: Postgres calls with a valid call frame; its context is what
    // `called_as_trigger` says, and the relation is open as long as the call.
    unsafe {
        if !called_as_trigger(fcinfo) {
            Error::GuardIsATrigger.report();
        }
        if !pg_sys::superuser() {
            let data = &*(*fcinfo).context.cast::<pg_sys::TriggerData>();
            let name = (*(*data.tg_relation).rd_rel).relname.data.as_ptr();
            Error::RecordsGuarded(readable(CStr::from_ptr(name).to_bytes()).into_owned()).report();
        }
    }
    // A statement's trigger returns no row, which is not an SQL null.
    Answer(Some(pg_sys::Datum::null()))
}

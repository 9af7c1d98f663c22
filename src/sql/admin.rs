//! SQL: functions for administrators.

use std::sync::atomic::Ordering::Relaxed;

use pgrx::prelude::*;
use snowflake_id::WallTime;

use crate::error::Error;
use crate::generator::{self, accepted_layout, node_conflict, stats};
use crate::pg;
use crate::shared;
use crate::sql::values;

#[pg_extern(sql = false)]
fn snowflake_start_after(id: i64) {
    superusers_only("snowflake_start_after");
    generator::start_after(id).unwrap_or_else(|error| error.report());
}

#[pg_extern(sql = false)]
fn snowflake_accept_clock(expected: TimestampWithTimeZone) {
    superusers_only("snowflake_accept_clock");
    let expected = WallTime::from_unix_micros(values::unix_micros(expected));
    generator::accept_clock(expected).unwrap_or_else(|error| error.report());
}

/// Accepts the layout of this server as that of the database's IDs.
#[pg_extern(sql = false)]
fn snowflake_accept_layout() {
    superusers_only("snowflake_accept_layout");
    accepted_layout::accept().unwrap_or_else(|error| error.report());
}

/// Accepts that this server is the only one with its node number.
#[pg_extern(sql = false)]
fn snowflake_accept_node_id(ignored_id: default!(Option<i64>, "NULL")) {
    superusers_only("snowflake_accept_node_id");
    node_conflict::accept(ignored_id).unwrap_or_else(|error| error.report());
}

#[pg_extern(sql = false)]
fn snowflake_stat_reset() {
    stats::flush();
    if let Some(shared) = shared::get() {
        shared.conflicts().count.store(0, Relaxed);
    }
    for counters in shared::get().iter().flat_map(|shared| shared.counters()) {
        for counter in [
            &counters.ids,
            &counters.waits,
            &counters.wait_micros,
            &counters.clock_steps,
        ] {
            counter.store(0, Relaxed);
        }
    }
}

/// Raises an error unless the current user is a superuser. The uniqueness of IDs
/// depends on these functions, so a grant is not enough.
fn superusers_only(function: &'static str) {
    if !pg::session::is_superuser() {
        Error::NotSuperuser(function).report();
    }
}

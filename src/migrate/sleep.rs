//! The pauses of a backfill, and of what waits for locks.

use std::time::Instant;

use pgrx::prelude::*;

use crate::error::Error;
use crate::pg::{self, Call};

// PL/pgSQL takes a snapshot before each of its statements, CALL included, and
// holds it until the transaction ends. So the procedure ends the transaction.
#[pg_extern(sql = false)]
fn snowflake_migrate_sleep(milliseconds: Option<i32>, call: Call<'_>) {
    if call.may_commit() {
        pg::transaction::commit();
    }
    sleep(milliseconds.unwrap_or_default());
}

// Without a client there is no operator who would end a step that waits.
#[pg_extern(sql = false)]
fn snowflake_migrate_wait(milliseconds: i32) {
    if !pg::session::has_client() {
        Error::ClientGone.report();
    }
    sleep(milliseconds);
}

fn sleep(milliseconds: i32) {
    let wanted = u128::try_from(milliseconds).unwrap_or_default();
    let since = Instant::now();
    // A wait ends early when the process is woken for another reason.
    while let Some(left @ 1..) = wanted.checked_sub(since.elapsed().as_millis()) {
        pg::wait::sleep(i64::try_from(left).unwrap_or(i64::MAX));
    }
}

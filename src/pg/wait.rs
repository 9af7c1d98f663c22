//! Waiting, and work that has a time limit.

use std::ffi::c_int;
use std::panic::{RefUnwindSafe, UnwindSafe};

use pgrx::prelude::*;
use pgrx::{check_for_interrupts, pg_sys};

/// Waits for `ms` milliseconds, or less if the process's latch is set. Raises
/// the error of a cancel, and ends the process if the postmaster has died.
pub fn sleep(ms: i64) {
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: `MyLatch` is this process's own latch, set up before any SQL runs.
    unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, events as i32, ms.max(1), wait_event());
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    check_for_interrupts!();
}

/// The timer of `statement_timeout`, with the same number in every version.
const STATEMENT_TIMEOUT: c_int = 3;

unsafe extern "C-unwind" {
    // Not in pgrx's bindings. They raise no error.
    fn get_timeout_active(timer: c_int) -> bool;
    fn get_timeout_finish_time(timer: c_int) -> pg_sys::TimestampTz;
    fn enable_timeout_at(timer: c_int, end: pg_sys::TimestampTz);
    fn disable_timeout(timer: c_int, keep_indicator: bool);
}

/// Runs `work`, which the timer of `statement_timeout` ends after `ms` milliseconds, then
/// `too_long`, which has to raise an error: what was begun is not undone here. A
/// `statement_timeout` that ends earlier, and a cancel, are errors as always.
pub fn within<T>(
    ms: i32,
    work: impl FnOnce() -> T + UnwindSafe + RefUnwindSafe,
    too_long: fn() -> !,
) -> T {
    // SAFETY: every process that runs SQL has registered this timer; it is set again as it was.
    unsafe {
        let end = pg_sys::GetCurrentTimestamp() + i64::from(ms) * 1000;
        let former = get_timeout_active(STATEMENT_TIMEOUT)
            .then(|| get_timeout_finish_time(STATEMENT_TIMEOUT));
        if former.is_some_and(|former| former <= end) {
            return work();
        }
        enable_timeout_at(STATEMENT_TIMEOUT, end);
        PgTryBuilder::new(work)
            .catch_when(PgSqlErrorCode::ERRCODE_QUERY_CANCELED, move |error| {
                if pg_sys::GetCurrentTimestamp() < end {
                    error.rethrow()
                }
                too_long()
            })
            .finally(move || match former {
                Some(former) => enable_timeout_at(STATEMENT_TIMEOUT, former),
                None => disable_timeout(STATEMENT_TIMEOUT, false),
            })
            .execute()
    }
}

/// What `pg_stat_activity.wait_event` shows: an event of its own from
/// PostgreSQL 17 on, `Extension` before.
#[cfg(any(feature = "pg15", feature = "pg16"))]
fn wait_event() -> u32 {
    pg_sys::PG_WAIT_EXTENSION
}

/// What `pg_stat_activity.wait_event` shows: an event of its own from
/// PostgreSQL 17 on, `Extension` before.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
fn wait_event() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static EVENT: AtomicU32 = AtomicU32::new(0);
    let known = EVENT.load(Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: a static name; the number is the same in every process.
    let event = unsafe { pg_sys::WaitEventExtensionNew(c"SnowflakeWaitForTime".as_ptr()) };
    EVENT.store(event, Relaxed);
    event
}

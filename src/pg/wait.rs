//! Waiting.

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

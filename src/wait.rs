//! The interruptible, bounded wait.
//!
//! Called without any lock held: a wait ends at once on a cancel,
//! `statement_timeout`, termination or the postmaster's death.
#![allow(unsafe_code)] // latch waits are Postgres' API

use pgrx::{check_for_interrupts, pg_sys};

/// Waits for `ms` milliseconds, or less when the latch is set for some other
/// reason: callers look again at what they wait for.
pub fn sleep(ms: i64) {
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: `MyLatch` is this process's own latch, set up before any SQL
    // runs, and no lock or pin is held here that an error would leave behind.
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
    static EVENT: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    // SAFETY: a static name; the number is the same in every process.
    *EVENT
        .get_or_init(|| unsafe { pg_sys::WaitEventExtensionNew(c"SnowflakeWaitForTime".as_ptr()) })
}

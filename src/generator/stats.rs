//! Counting: in the process, added to shared memory now and then.
//!
//! An ID costs one addition in the process's own memory. What was counted goes
//! to the slot's [`Counters`] at the end of each transaction, whenever time is
//! reserved (about once a second), and when the process ends.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

use parking_lot::Mutex;
use snowflake_id::SnowflakeId;

use crate::pg;
use crate::shared::Counters;

/// Those of the session's slot; `None` before the first ID.
static COUNTERS: Mutex<Option<&'static Counters>> = Mutex::new(None);

fn counters() -> Option<&'static Counters> {
    *COUNTERS.lock()
}

fn count_in(counters: &'static Counters) {
    *COUNTERS.lock() = Some(counters);
}

/// IDs that this process has issued and not yet added up.
static IDS: AtomicU64 = AtomicU64::new(0);

/// The last ID that this session got; negative before the first.
static LAST: AtomicI64 = AtomicI64::new(-1);

/// Begins to add up to this slot's counters; once a process.
pub fn init(counters: &'static Counters) {
    // Not a `Once`, which an error of Postgres in between would poison: a
    // callback that is registered a second time finds nothing to add.
    static DONE: AtomicBool = AtomicBool::new(false);
    count_in(counters);
    if DONE.load(Relaxed) {
        return;
    }
    pg::on_transaction_end(|_| flush());
    pg::before_exit(flush);
    DONE.store(true, Relaxed);
}

/// From now on the session's IDs are of another slot, which has these counters.
pub fn go_on(counters: &'static Counters) {
    flush();
    count_in(counters);
}

/// Counts an ID, which is now the last one that this session got.
#[inline]
pub fn issued(id: SnowflakeId) {
    // One thread: a load and a store do what a locked addition would.
    IDS.store(IDS.load(Relaxed) + 1, Relaxed);
    LAST.store(id.get(), Relaxed);
}

/// The last ID that this session got.
pub fn last() -> Option<SnowflakeId> {
    SnowflakeId::new(LAST.load(Relaxed))
}

/// Forgets the last ID, as DISCARD does.
pub fn forget() {
    flush();
    LAST.store(-1, Relaxed);
}

/// Counts a wait.
pub fn waited(micros: u64) {
    if let Some(counters) = counters() {
        counters.waits.fetch_add(1, Relaxed);
        counters.wait_micros.fetch_add(micros, Relaxed);
    }
}

/// Counts a step of the clock.
pub fn clock_stepped() {
    if let Some(counters) = counters() {
        counters.clock_steps.fetch_add(1, Relaxed);
    }
}

/// Adds up what this process has counted.
pub fn flush() {
    let ids = IDS.load(Relaxed);
    if ids == 0 {
        return;
    }
    if let Some(counters) = counters() {
        IDS.store(0, Relaxed);
        counters.ids.fetch_add(ids, Relaxed);
        counters.last_id.fetch_max(LAST.load(Relaxed), Relaxed);
    }
}

//! Counting: in the process, added to shared memory from time to time.
//!
//! An ID costs one addition in the process's own memory. The count is added to
//! the slot's [`Counters`] at the end of each transaction, whenever time is
//! reserved (about once a second), and when the process ends.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::Mutex;

use crate::generator::last_id;
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

/// IDs that this process has issued and not yet added to the slot's counters.
static IDS: AtomicU64 = AtomicU64::new(0);

/// Starts to count for the slot with these counters; once a process. `at_end` is
/// called at the end of each transaction, and has to [`flush`].
pub fn init(counters: &'static Counters) {
    // Set last: an error of Postgres in between must not prevent a second try, and
    // a callback that is registered a second time finds nothing to add.
    static DONE: AtomicBool = AtomicBool::new(false);
    count_in(counters);
    if DONE.load(Relaxed) {
        return;
    }
    pg::callbacks::on_transaction_end(|_| flush());
    pg::callbacks::before_exit(flush);
    DONE.store(true, Relaxed);
}

/// From now on the session's IDs are of the slot with these counters. All that were counted are
/// added already.
pub fn move_to(counters: &'static Counters) {
    count_in(counters);
}

/// Counts an ID. It is also the [last ID](last_id()) when the count is flushed.
#[inline]
pub fn count_id() {
    // One thread: a load and a store do what a locked addition would.
    IDS.store(IDS.load(Relaxed) + 1, Relaxed);
}

/// Counts a wait.
pub fn count_wait(micros: u64) {
    if let Some(counters) = counters() {
        counters.waits.fetch_add(1, Relaxed);
        counters.wait_micros.fetch_add(micros, Relaxed);
    }
}

/// Counts a clock step.
pub fn count_clock_step() {
    if let Some(counters) = counters() {
        counters.clock_steps.fetch_add(1, Relaxed);
    }
}

/// Adds what this process has counted to the slot's counters.
pub fn flush() {
    let ids = IDS.load(Relaxed);
    if ids == 0 {
        return;
    }
    if let Some(counters) = counters() {
        IDS.store(0, Relaxed);
        counters.ids.fetch_add(ids, Relaxed);
        if let Some(id) = last_id::get() {
            counters.last_id.fetch_max(id.get(), Relaxed);
        }
    }
}

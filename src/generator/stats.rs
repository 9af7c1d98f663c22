//! Counting: in the process, added to shared memory from time to time.
//!
//! An ID costs one addition in the process's own memory. The count is added to
//! the slot's [`Counters`] at the end of each transaction, whenever time is
//! reserved (about once a second), and when the process ends.
#![allow(unsafe_code)] // shared memory and Postgres' callbacks

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};

use pgrx::{pg_guard, pg_sys};

use crate::generator::last_id;
use crate::shared::Counters;

/// Those of the slot in which the session is; null before the first ID.
static COUNTERS: AtomicPtr<Counters> = AtomicPtr::new(ptr::null_mut());

fn counters() -> Option<&'static Counters> {
    // SAFETY: null or counters in shared memory, which are never unmapped.
    unsafe { COUNTERS.load(Relaxed).as_ref() }
}

fn count_in(counters: &'static Counters) {
    COUNTERS.store(ptr::from_ref(counters).cast_mut(), Relaxed);
}

/// IDs that this process has issued and not yet added to the slot's counters.
static IDS: AtomicU64 = AtomicU64::new(0);

/// Starts to count for the slot with these counters; once a process.
pub fn init(counters: &'static Counters) {
    // Set last: an error of Postgres in between must not prevent a second try, and
    // a callback that is registered a second time finds nothing to add.
    static DONE: AtomicBool = AtomicBool::new(false);
    count_in(counters);
    if DONE.load(Relaxed) {
        return;
    }
    // SAFETY: the callbacks only add to atomics in shared memory, which is still
    // mapped when they run.
    unsafe {
        pg_sys::RegisterXactCallback(Some(at_transaction_end), ptr::null_mut());
        pg_sys::before_shmem_exit(Some(at_exit), pg_sys::Datum::from(0));
    }
    DONE.store(true, Relaxed);
}

/// From now on the session's IDs are of another slot, which has these counters.
pub fn move_to(counters: &'static Counters) {
    flush();
    count_in(counters);
}

/// Counts an ID. It is also the [last ID](last_id) when the count is flushed.
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

#[pg_guard]
unsafe extern "C-unwind" fn at_transaction_end(
    _event: pg_sys::XactEvent::Type,
    _argument: *mut c_void,
) {
    flush();
}

#[pg_guard]
unsafe extern "C-unwind" fn at_exit(_code: i32, _argument: pg_sys::Datum) {
    flush();
}

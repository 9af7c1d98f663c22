//! The wall clock between two looks at it.
//!
//! To read the clock is the largest part of making an ID, three to four times
//! as much as the rest. What is asked of it is only whether the tick has ended.
//! That the processor's time stamp counter can tell for a quarter of the price:
//! as long as fewer cycles went by since the last look than the rest of that
//! tick takes, it has not. So a session that makes many IDs looks at the clock
//! in the last eighth of each tick, and once at its beginning.
//!
//! Only where the kernel keeps its own time by that counter (its clock source is
//! `tsc`): it has found it constant and the same on all processors then, and
//! says so no longer when it has not. How many cycles a microsecond has is
//! measured again and again, against the clock itself; where two measurements
//! in a row differ, each ID looks at the clock. So an ID is never older than the
//! clock was when it was made, but for a clock that is set ahead: what is left
//! of the tick, less than its length, passes before it is noticed.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};

use crate::clock;

/// A process has one thread: plain loads and stores.
struct State {
    /// The counter and the clock, microseconds, at the last look.
    counter: AtomicU64,
    wall: AtomicI64,
    /// For how many cycles after it that is enough.
    enough: AtomicU64,
    /// The same two where the measurement of `rate` begins.
    from_counter: AtomicU64,
    from_wall: AtomicI64,
    /// Cycles a microsecond by the last measurement; 0 where there is none.
    rate: AtomicU64,
}

static STATE: State = State {
    counter: AtomicU64::new(0),
    wall: AtomicI64::new(0),
    enough: AtomicU64::new(0),
    from_counter: AtomicU64::new(0),
    from_wall: AtomicI64::new(0),
    rate: AtomicU64::new(0),
};

/// Whether the kernel keeps time by the counter; asked in the postmaster.
static TRUSTED: OnceLock<bool> = OnceLock::new();

/// Finds out whether the counter can be used; called once, in the postmaster.
pub fn init() {
    TRUSTED.get_or_init(|| {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        cfg!(target_arch = "x86_64")
            && std::fs::read_to_string(source).is_ok_and(|source| source.trim() == "tsc")
    });
}

/// A time of the tick in which the wall clock is, microseconds since 1970.
/// `left` is asked how many of them are left of a time's tick.
#[inline]
pub fn wall_in_tick(left: impl FnOnce(i64) -> u64) -> i64 {
    let counter = now();
    // One that was set back, or is another processor's, is far ahead here.
    if counter.wrapping_sub(STATE.counter.load(Relaxed)) < STATE.enough.load(Relaxed) {
        return STATE.wall.load(Relaxed);
    }
    let wall = clock::wall();
    look(counter, wall, left(wall));
    wall
}

/// The clock was looked at: `counter` is from before, so that what passed since
/// then is overestimated.
#[inline]
fn look(counter: u64, wall: i64, left: u64) {
    /// Of what is left of the tick, in sixteenths.
    const SURE: u64 = 14;
    measure(counter, wall);
    STATE.counter.store(counter, Relaxed);
    STATE.wall.store(wall, Relaxed);
    // A microsecond less: the clock's are cut off.
    let left = left.saturating_sub(1);
    let cycles = left.saturating_mul(STATE.rate.load(Relaxed));
    STATE.enough.store(cycles / 16 * SURE, Relaxed);
}

/// How many cycles a microsecond has, over at least a millisecond and at most a
/// second of the clock. It has to come out twice.
#[inline]
fn measure(counter: u64, wall: i64) {
    const SHORTEST: i64 = 1_000;
    let passed = wall.wrapping_sub(STATE.from_wall.load(Relaxed));
    if (0..SHORTEST).contains(&passed) {
        return;
    }
    measured(counter, wall, passed);
}

#[cold]
fn measured(counter: u64, wall: i64, passed: i64) {
    /// Cycles a microsecond by the last measurement, whether or not it came out
    /// twice.
    static LAST: AtomicU64 = AtomicU64::new(0);
    const LONGEST: i64 = 1_000_000;
    let cycles = counter.wrapping_sub(STATE.from_counter.load(Relaxed));
    STATE.from_counter.store(counter, Relaxed);
    STATE.from_wall.store(wall, Relaxed);
    let rate = match u64::try_from(passed) {
        Ok(micros) if passed <= LONGEST && trusted() => cycles / micros,
        _ => 0,
    };
    let last = LAST.swap(rate, Relaxed);
    let agree = rate.abs_diff(last) <= last / 64;
    STATE
        .rate
        .store(if agree { rate.min(last) } else { 0 }, Relaxed);
}

fn trusted() -> bool {
    TRUSTED.get().copied().unwrap_or(false)
}

/// The time stamp counter, which any process may read.
#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
fn now() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; no memory is touched.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn now() -> u64 {
    0
}

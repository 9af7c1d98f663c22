//! The wall clock between two readings.
//!
//! Reading the clock is the largest part of generating an ID: it takes three to
//! four times as long as the rest. An ID only needs to know whether the tick has
//! ended. The processor's time stamp counter shows that in a quarter of the time:
//! the tick has not ended as long as fewer cycles have passed since the last
//! reading than the rest of that tick takes. So a session that generates many IDs
//! reads the clock at the beginning of each tick and in its last eighth.
//!
//! The counter is used only where the kernel keeps its own time by it (the clock
//! source is `tsc`), because the kernel has then found it constant and the same on
//! all processors. The number of cycles a microsecond is measured repeatedly
//! against the clock; when two measurements in a row differ, each ID reads the
//! clock. So no ID is older than the clock was when it was generated, with one
//! exception: a clock step forward is noticed at the end of the tick.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

use snowflake_id::WallTime;

use crate::clock;

/// A process has one thread: plain loads and stores.
struct State {
    /// The counter, and the clock in microseconds, at the last reading.
    counter: AtomicU64,
    wall: AtomicI64,
    /// The number of cycles after it in which no reading is needed.
    enough: AtomicU64,
    /// The same two at the beginning of the measurement of `rate`.
    from_counter: AtomicU64,
    from_wall: AtomicI64,
    /// Cycles a microsecond by the last measurement; 0 if there is none.
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

/// A time within the current tick. `left` returns how many microseconds a given
/// time's tick has left.
#[inline]
pub fn wall_in_tick(left: impl FnOnce(WallTime) -> u64) -> WallTime {
    let counter = cycles();
    // A counter that was set back gives a very large difference.
    if counter.wrapping_sub(STATE.counter.load(Relaxed)) < STATE.enough.load(Relaxed) {
        return WallTime::from_unix_micros(STATE.wall.load(Relaxed));
    }
    let wall = clock::wall();
    keep(counter, wall.unix_micros(), left(wall));
    wall
}

/// Keeps a reading of the clock. `counter` was read before it, so that the time
/// that has passed since is overestimated.
#[inline]
fn keep(counter: u64, wall: i64, left: u64) {
    /// The part of the rest of the tick that needs no reading.
    const CERTAIN_SIXTEENTHS: u64 = 14;
    measure(counter, wall);
    STATE.counter.store(counter, Relaxed);
    STATE.wall.store(wall, Relaxed);
    // One less, because the clock's microseconds are rounded down.
    let left = left.saturating_sub(1);
    let cycles = left.saturating_mul(STATE.rate.load(Relaxed));
    STATE
        .enough
        .store(cycles / 16 * CERTAIN_SIXTEENTHS, Relaxed);
}

/// Measures the number of cycles a microsecond, over at least a millisecond and at
/// most a second. Two measurements in a row have to agree.
#[inline]
fn measure(counter: u64, wall: i64) {
    const MIN_MEASUREMENT_MICROS: i64 = 1_000;
    let passed = wall.wrapping_sub(STATE.from_wall.load(Relaxed));
    if (0..MIN_MEASUREMENT_MICROS).contains(&passed) {
        return;
    }
    measured(counter, wall, passed);
}

#[cold]
fn measured(counter: u64, wall: i64, passed: i64) {
    /// Cycles a microsecond by the last measurement, whether or not it agreed with
    /// the one before.
    static LAST_RATE: AtomicU64 = AtomicU64::new(0);
    const MAX_MEASUREMENT_MICROS: i64 = 1_000_000;
    let cycles = counter.wrapping_sub(STATE.from_counter.load(Relaxed));
    STATE.from_counter.store(counter, Relaxed);
    STATE.from_wall.store(wall, Relaxed);
    let rate = match u64::try_from(passed) {
        Ok(micros) if passed <= MAX_MEASUREMENT_MICROS && trusted(wall) => cycles / micros,
        _ => 0,
    };
    let last = LAST_RATE.swap(rate, Relaxed);
    let agree = rate.abs_diff(last) <= last / 64;
    STATE
        .rate
        .store(if agree { rate.min(last) } else { 0 }, Relaxed);
}

/// Whether the kernel keeps time by the counter. It is looked up once a second,
/// because the kernel changes its clock source when it finds the counter wrong.
fn trusted(wall: i64) -> bool {
    const SOURCE_PATH: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    const RECHECK_SOURCE_MICROS: i64 = 1_000_000;
    static TRUSTED: AtomicBool = AtomicBool::new(false);
    static LOOKED_UP: AtomicI64 = AtomicI64::new(i64::MIN);
    if !(0..RECHECK_SOURCE_MICROS).contains(&wall.wrapping_sub(LOOKED_UP.load(Relaxed))) {
        // A test moves the clock without the counter.
        let trusted = cfg!(all(target_arch = "x86_64", not(feature = "testing")))
            && std::fs::read_to_string(SOURCE_PATH).is_ok_and(|source| source.trim() == "tsc");
        TRUSTED.store(trusted, Relaxed);
        LOOKED_UP.store(wall, Relaxed);
    }
    TRUSTED.load(Relaxed)
}

/// The time stamp counter, which any process may read.
#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; no memory is touched.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn cycles() -> u64 {
    0
}

//! The two clocks: wall time, which can be set, and time since boot, which
//! cannot.
#![allow(unsafe_code)] // clock_gettime

use std::sync::OnceLock;

use libc::{CLOCK_BOOTTIME, CLOCK_REALTIME, clock_gettime, clockid_t, timespec};
use snowflake_id::Time;

/// Microseconds since 1970-01-01T00:00:00Z as the wall clock has them;
/// negative before.
#[inline]
pub fn wall() -> i64 {
    // Read through the vDSO, on the way to every ID: `GetCurrentTimestamp` of
    // Postgres would come with pgrx's guard around it.
    read(CLOCK_REALTIME)
}

/// Microseconds since the machine's boot, time spent suspended included
/// (`CLOCK_BOOTTIME`): never steps, so it measures how fast time really goes.
/// 0 where the system has no such clock, which makes slewed time stand still.
pub fn boot() -> i64 {
    read(CLOCK_BOOTTIME)
}

/// Both clocks at one instant.
#[derive(Clone, Copy)]
pub struct Instant {
    /// [`wall`]
    pub wall: i64,
    /// [`boot`]
    pub boot: i64,
}

/// Reads both clocks. A process that lost its processor in between would take
/// the pause for a step of the clock, so it tries again.
pub fn both() -> Instant {
    const CLOSE: i64 = 1_000;
    let mut before = boot();
    for _ in 0..8 {
        let wall = wall();
        let after = boot();
        if after - before <= CLOSE {
            return Instant { wall, boot: before };
        }
        before = after;
    }
    Instant {
        wall: wall(),
        boot: before,
    }
}

static AT_START: OnceLock<i64> = OnceLock::new();

/// Keeps [`at_start`]; called once, in the postmaster.
pub fn init() {
    AT_START.get_or_init(|| {
        let at = both();
        at.wall - at.boot
    });
}

/// `wall - boot` when the postmaster started. In process memory that every
/// backend inherits, so that a backend's crash, after which shared memory is
/// made anew, does not lose it.
pub fn at_start() -> i64 {
    AT_START.get().copied().unwrap_or(0)
}

#[inline]
fn read(clock: clockid_t) -> i64 {
    let mut at = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // The two words are read one by one, as the vDSO has just written them. The
    // safe wrappers there are copy the structure as a whole, which has to wait
    // for both writes to leave the processor's store buffer: a tenth of an ID.
    // SAFETY: a valid place for the answer; what it says is not used if it fails.
    if unsafe { clock_gettime(clock, &mut at) } != 0 {
        return 0;
    }
    // Below 10^9, so unsigned 32-bit arithmetic does.
    let micros = at.tv_nsec as u32 / 1_000;
    at.tv_sec * 1_000_000 + i64::from(micros)
}

/// What the wall clock says as the algorithm takes it.
pub fn time(unix_micros: i64) -> Time {
    Time::from_unix_micros(unix_micros.into())
}

/// The other way: microseconds since 1970, at most what 64 bits hold.
pub fn micros(time: Time) -> i64 {
    i64::try_from(time.unix_micros()).unwrap_or(i64::MAX)
}

//! The two clocks: wall time, which can be set, and time since boot, which cannot.
//! In builds for tests, a test moves them.
#![allow(unsafe_code)] // clock_gettime

#[cfg(feature = "testing")]
mod moved;

use std::sync::OnceLock;

use libc::{CLOCK_BOOTTIME, CLOCK_REALTIME, clock_gettime, clockid_t, timespec};
use snowflake_id::protocol::Clocks;
use snowflake_id::{BootTime, ClockOffset, Time, WallTime};

use crate::pg;

/// What the wall clock shows.
#[inline]
pub fn wall() -> WallTime {
    // Read through the vDSO, on the way to every ID: `GetCurrentTimestamp` of
    // Postgres would come with pgrx's guard around it.
    WallTime::from_unix_micros(read_clock(CLOCK_REALTIME))
}

/// The time since the machine's boot, time spent suspended included
/// (`CLOCK_BOOTTIME`). It never steps, so it measures how fast time really
/// passes. 0 if the system has no such clock, which makes slewed time stand still.
pub fn boot() -> BootTime {
    BootTime::from_micros(read_clock(CLOCK_BOOTTIME))
}

/// Reads both clocks. A process that lost its processor in between would take
/// the pause for a clock step, so it tries again.
pub fn read() -> Clocks {
    /// The longest time between the two readings of the boot clock.
    const MAX_READING_MICROS: i64 = 1_000;
    let mut before = boot();
    for _ in 0..8 {
        let wall = wall();
        let after = boot();
        if after.micros_since(before) <= MAX_READING_MICROS {
            return Clocks { wall, boot: before };
        }
        before = after;
    }
    Clocks {
        wall: wall(),
        boot: before,
    }
}

static OFFSET_AT_START: OnceLock<ClockOffset> = OnceLock::new();

/// Keeps [`offset_at_start`] in the postmaster. Builds for tests also map the clocks that a
/// test moves.
pub fn init() {
    #[cfg(feature = "testing")]
    moved::init();
    if pg::server::is_preloading() {
        let _ = OFFSET_AT_START.set(read().offset());
    }
}

/// The offset of the clocks when the postmaster started. If the library is preloaded, it is in
/// process memory, which every backend inherits. So it survives a backend's crash, after
/// which shared memory is initialized again. Otherwise [`ClockOffset::at_first_use`].
pub fn offset_at_start() -> ClockOffset {
    if let Some(&offset) = OFFSET_AT_START.get() {
        return offset;
    }
    let now = read().offset();
    let Some(clocks) = pg::server::clocks_at_start() else {
        return now;
    };
    let at_start = clocks.offset();
    #[cfg(feature = "testing")]
    let at_start = moved::at_start(now).unwrap_or(at_start);
    now.at_first_use(at_start)
}

#[inline]
fn read_clock(clock: clockid_t) -> i64 {
    let mut at = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // The two words are read one by one, as the vDSO has just written them. The
    // safe wrappers of other crates copy the structure as a whole, which has to
    // wait for both writes to leave the processor's store buffer: a tenth of an ID.
    // SAFETY: a valid place for the answer, which is not used if the call fails.
    if unsafe { clock_gettime(clock, &mut at) } != 0 {
        return 0;
    }
    // Below 10^9, so unsigned 32-bit arithmetic is enough.
    let micros = at.tv_nsec as u32 / 1_000;
    let reading = at.tv_sec * 1_000_000 + i64::from(micros);
    #[cfg(feature = "testing")]
    let reading = moved::instead_of(reading, clock);
    reading
}

/// What a wall clock shows as a time, which prints as ISO 8601.
pub fn time(wall: WallTime) -> Time {
    wall.into()
}

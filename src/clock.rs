//! The two clocks: wall time, which can be set, and time since boot, which
//! cannot.

use nix::time::{ClockId, clock_gettime};
use snowflake_id::Time;

/// Microseconds since 1970-01-01T00:00:00Z as the wall clock has them;
/// negative before.
#[inline]
pub fn wall() -> i64 {
    // Read through the vDSO, on the way to every ID: `GetCurrentTimestamp` of
    // Postgres would come with pgrx's guard around it, and the standard
    // library's `SystemTime` with checked arithmetic, a tenth of a call.
    read(ClockId::CLOCK_REALTIME)
}

/// Microseconds since the machine's boot, time spent suspended included
/// (`CLOCK_BOOTTIME`): never steps, so it measures how fast time really goes.
/// 0 where the system has no such clock, which makes slewed time stand still.
pub fn boot() -> i64 {
    read(ClockId::CLOCK_BOOTTIME)
}

#[inline]
fn read(clock: ClockId) -> i64 {
    clock_gettime(clock).map_or(0, |at| at.tv_sec() * 1_000_000 + at.tv_nsec() / 1_000)
}

/// What the wall clock says as the algorithm takes it.
pub fn time(unix_micros: i64) -> Time {
    Time::from_unix_micros(unix_micros.into())
}

/// The other way: microseconds since 1970, at most what 64 bits hold.
pub fn micros(time: Time) -> i64 {
    i64::try_from(time.unix_micros()).unwrap_or(i64::MAX)
}

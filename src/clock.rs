//! The two clocks: wall time, which can be set, and time since boot, which
//! cannot.

use std::time::{SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

/// Microseconds since 1970-01-01T00:00:00Z as the wall clock has them;
/// negative before. Saturates far outside of what any layout holds.
#[inline]
pub fn wall() -> i64 {
    // The standard library reads the vDSO directly. `GetCurrentTimestamp` of
    // Postgres would come with pgrx's guard around it, on the way to every ID.
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => (since.as_secs() as i64)
            .saturating_mul(1_000_000)
            .saturating_add(i64::from(since.subsec_micros())),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    }
}

/// Microseconds since the machine's boot, time spent suspended included
/// (`CLOCK_BOOTTIME`): never steps, so it measures how fast time really goes.
/// 0 where the system has no such clock, which makes slewed time stand still.
pub fn boot() -> i64 {
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map(|at| at.tv_sec() * 1_000_000 + at.tv_nsec() / 1_000)
        .unwrap_or(0)
}

//! Where the benchmarks' time comes from.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970: one reading of the system's clock.
#[inline(always)]
pub fn unix_micros() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("it is later than 1970")
        .as_micros() as u64
}

/// Milliseconds since 1970.
#[inline(always)]
pub fn unix_millis() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("it is later than 1970")
        .as_millis() as u64
}

/// No clock: ticks that begin anew after every 1,024 IDs, so that none uses up its 4,096. For one thread.
pub fn steps() -> impl Fn() -> u64 + Send + Sync {
    // Atomic because `snowflake_me` wants a clock that threads can share; a load and a store, nothing that locks.
    let calls = AtomicU64::new(0);
    move || {
        let call = calls.load(Relaxed) + 1;
        calls.store(call, Relaxed);
        1 + (call >> 10)
    }
}

/// Microseconds since `epoch`, which is in microseconds since 1970.
pub fn micros_since(epoch: u64) -> impl Fn() -> u64 + Send + Sync + Copy {
    move || unix_micros() - epoch
}

//! The last ID that this session got: what `snowflake_currval()` returns.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

use snowflake_id::SnowflakeId;

/// Negative before the first ID.
static LAST_ID: AtomicI64 = AtomicI64::new(-1);

/// The last ID, if the session has one.
pub fn get() -> Option<SnowflakeId> {
    SnowflakeId::new(LAST_ID.load(Relaxed))
}

/// Keeps an ID as the last one.
#[inline]
pub fn set(id: SnowflakeId) {
    LAST_ID.store(id.get(), Relaxed);
}

/// Forgets the last ID, as DISCARD does.
pub fn forget() {
    LAST_ID.store(-1, Relaxed);
}

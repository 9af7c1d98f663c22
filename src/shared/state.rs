//! What shared memory consists of besides the marks: plain atomics. All bytes zero is a
//! valid value of each of these types.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use snowflake_id::{Layout, SnowflakeId, WallTime};

use crate::settings;

/// What was last written to the server's log about conditions that last a while.
#[derive(Default)]
pub struct Episodes {
    /// Whether time runs at half speed according to the log.
    pub slewing: AtomicBool,
    /// When a wait was last logged, microseconds since boot.
    pub waiting: AtomicI64,
    /// When a conflict was last logged, microseconds since boot.
    pub conflict: AtomicI64,
    /// When a transaction was last logged that holds back the resolved ID, microseconds
    /// since boot.
    pub unresolved: AtomicI64,
}

/// What is known of other servers with this server's node number
/// ([`crate::generator::node_conflict`]).
#[derive(Default)]
pub struct Conflicts {
    /// Rows that came from another server and have this server's node number.
    pub count: AtomicU64,
    /// The highest of their IDs that were at most a lease ahead of the clock; 0 for none.
    pub highest: AtomicI64,
    /// The highest of the others, which may have been written by hand; 0 for none.
    pub far_ahead: AtomicI64,
    /// Whether no IDs are issued because of them; changed under the lock.
    pub(super) stopped: AtomicBool,
    /// Whether the data directory may be a copy; changed under the lock.
    pub(super) copied: AtomicBool,
}

impl Conflicts {
    /// Keeps the ID of a row from another server.
    pub fn keep(&self, layout: &Layout, id: SnowflakeId, wall: WallTime) {
        let time = WallTime::from(layout.time_of(layout.tick_of(id)));
        let highest = if time > wall.plus_micros(settings::of_protocol().lease_micros()) {
            &self.far_ahead
        } else {
            &self.highest
        };
        highest.fetch_max(id.get(), Ordering::AcqRel);
    }
}

/// What happened in one slot since the statistics were reset.
///
/// A process counts for itself, and adds its counts here from time to time
/// ([`crate::generator::stats`]): counting in shared memory would double the cost of
/// an ID.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Counters {
    /// IDs issued.
    pub ids: AtomicU64,
    /// The last ID issued; 0 before the first. Not reset.
    pub last_id: AtomicI64,
    /// Waits for time to catch up.
    pub waits: AtomicU64,
    /// How long they took, microseconds.
    pub wait_micros: AtomicU64,
    /// Clock steps that a process with this slot was the first to find.
    pub clock_steps: AtomicU64,
}

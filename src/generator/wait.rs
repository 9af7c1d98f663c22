//! The interruptible, bounded wait.
//!
//! Called without any lock held: a wait ends at once on a cancel,
//! `statement_timeout`, termination or the postmaster's death.

use snowflake_id::BootTime;

use crate::clock;
use crate::error::Error;
use crate::generator::stats;
use crate::pg;
use crate::settings;

/// How often a long wait looks at the clocks again, milliseconds.
const LONGEST_SLEEP_MS: i64 = 100;

/// How long a call waits for the lock on the mark if `snowflake.max_wait` is less,
/// milliseconds.
const SHORTEST_LOCK_WAIT_MS: i64 = 100;

/// How long another process may take to move the mark if `snowflake.max_wait` is
/// less, milliseconds. It waits for the disk or for a processor, which that
/// setting does not limit.
const SHORTEST_MOVER_WAIT_MS: i64 = 1_000;

/// How long one call may still wait.
pub struct WaitBudget {
    since: BootTime,
    max_wait_ms: i32,
    has_waited: bool,
}

impl WaitBudget {
    /// `snowflake.max_wait` from now on.
    pub fn new() -> Self {
        WaitBudget {
            since: clock::boot(),
            max_wait_ms: settings::max_wait_ms(),
            has_waited: false,
        }
    }

    /// Waits a while for something that takes `needed` microseconds.
    ///
    /// # Errors
    /// What `error` returns for the milliseconds needed and allowed, at once, if the
    /// wait is bound to take too long.
    pub fn wait(
        &mut self,
        needed: i64,
        error: impl FnOnce(i64, i32) -> Error,
    ) -> Result<(), Error> {
        let needed_ms = needed.max(0).saturating_add(999) / 1_000;
        let waited = self.waited();
        let limit = i64::from(self.max_wait_ms) * 1_000;
        if waited.saturating_add(needed) > limit {
            return Err(error(needed_ms, self.max_wait_ms));
        }
        self.has_waited = true;
        // Not in one piece: what is waited for may come earlier.
        pg::wait::sleep(needed_ms.min(LONGEST_SLEEP_MS));
        Ok(())
    }

    /// How long this call may still wait for the lock on the mark, milliseconds;
    /// at least 1.
    pub fn left_ms(&self) -> i64 {
        i64::from(self.max_wait_ms)
            .max(SHORTEST_LOCK_WAIT_MS)
            .saturating_sub(self.waited_ms())
            .max(1)
    }

    /// Waits a moment for another process that moves the mark.
    ///
    /// # Errors
    /// [`Error::MarkLocked`] if that takes too long.
    pub fn wait_for_mover(&self) -> Result<(), Error> {
        if self.waited_ms() >= i64::from(self.max_wait_ms).max(SHORTEST_MOVER_WAIT_MS) {
            return Err(self.mark_locked());
        }
        pg::wait::sleep(1);
        Ok(())
    }

    /// The error of a call that has waited for the mark for as long as it may.
    pub fn mark_locked(&self) -> Error {
        Error::MarkLocked {
            waited_ms: self.waited_ms(),
        }
    }

    /// Since when this call may wait, microseconds.
    fn waited(&self) -> i64 {
        clock::boot().micros_since(self.since)
    }

    fn waited_ms(&self) -> i64 {
        self.waited() / 1_000
    }
}

impl Drop for WaitBudget {
    fn drop(&mut self) {
        if self.has_waited {
            stats::count_wait(u64::try_from(self.waited()).unwrap_or(0));
        }
    }
}

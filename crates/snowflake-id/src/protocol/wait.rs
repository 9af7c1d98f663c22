//! The bounded wait of a call.

use super::{
    Clocks, DrawingProcess, ErrorOf, NoReading, NotReserved, Reading, identity_of, layout_of,
};
use crate::{BootTime, Tick, WallTime};

/// How often a long wait looks at the clocks again, milliseconds.
const LONGEST_SLEEP_MS: i64 = 100;

/// How long a call waits for the lock on the mark if it may wait less, milliseconds.
const SHORTEST_LOCK_WAIT_MS: i64 = 100;

/// How long another process may take to move the mark if a call may wait less, milliseconds. It
/// waits for the disk or for a processor, which the setting does not limit.
const SHORTEST_MOVER_WAIT_MS: i64 = 1_000;

/// How long one call may wait.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// When it began.
    pub since: BootTime,
    /// How long from then on, milliseconds.
    pub max_wait_ms: i64,
}

/// All that may be borrowed is used up.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// The time.
    pub reading: Reading,
    /// How long it takes until the slots may be used again, microseconds.
    pub needed: u64,
    /// The tick that is used then.
    pub next: Tick,
}

/// Why a call fails that waits no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The mark is locked.
    MarkLocked {
        /// How long it was waited for.
        waited_ms: i64,
    },
    /// The mark was set ahead.
    MarkSetAhead {
        /// To this time.
        set_to: WallTime,
    },
    /// The clock is too far behind.
    ClockBehind {
        /// This time, which has been reached.
        reached: WallTime,
    },
    /// The clock has jumped ahead.
    ClockAhead {
        /// What it would show otherwise.
        expected: WallTime,
    },
    /// The layout's time has not begun.
    BeforeEpoch,
    /// The layout's time has ended.
    PastEnd,
    /// All IDs are used up for longer than the call may wait.
    WaitTooLong {
        /// Of when the next one is.
        next: WallTime,
        /// How long that takes.
        needed_ms: i64,
        /// How long the call may wait.
        max_wait_ms: i64,
    },
}

/// How long the call has taken so far, microseconds.
async fn waited<P: DrawingProcess>(process: &P) -> i64 {
    let boot = process.clocks().await.boot;
    boot.micros_since(process.budget().since)
}

/// How long the call may still wait for the lock on the mark, milliseconds; at least 1.
pub(super) async fn left_ms<P: DrawingProcess>(process: &P) -> i64 {
    let most = process.budget().max_wait_ms.max(SHORTEST_LOCK_WAIT_MS);
    most.saturating_sub(waited(process).await / 1_000).max(1)
}

/// Waits a while for something that takes `needed` microseconds; not in one piece, because it may
/// come earlier. Fails at once if the wait is bound to take too long.
async fn wait<P: DrawingProcess>(
    process: &P,
    needed: i64,
    slots: Option<Wait>,
    refused: Refused,
    clocks: Clocks,
) -> Result<(), ErrorOf<P>> {
    let limit = process.budget().max_wait_ms.saturating_mul(1_000);
    if waited(process).await.saturating_add(needed) > limit {
        return Err(process.refused(refused, clocks));
    }
    process.waits(slots);
    process.sleep(millis(needed).min(LONGEST_SLEEP_MS)).await
}

/// Milliseconds, rounded up.
fn millis(micros: i64) -> i64 {
    micros.max(0).saturating_add(999) / 1_000
}

/// Waits for the clock to come within the largest clock step of this time.
async fn for_clock<P: DrawingProcess>(
    process: &P,
    reached: WallTime,
    clocks: Clocks,
) -> Result<(), ErrorOf<P>> {
    let needed = reached
        .micros_since(clocks.wall)
        .saturating_sub(process.settings().max_clock_step.unwrap_or(0));
    let refused = Refused::ClockBehind { reached };
    wait(process, needed, None, refused, clocks).await
}

/// Waits for the reason why nothing was reserved. A mark that was set is not waited for if the clock
/// has jumped ahead: that is the reason then.
pub(super) async fn for_mark<P: DrawingProcess>(
    process: &P,
    reason: NotReserved<ErrorOf<P>>,
    clocks: Clocks,
) -> Result<(), ErrorOf<P>> {
    let (layout, settings) = (identity_of(process).layout(), process.settings());
    let time_of = |tick| WallTime::from(layout.time_of(tick));
    match reason {
        NotReserved::Raised => {
            process.give_way().await;
            Ok(())
        }
        NotReserved::Busy => {
            let waited_ms = waited(process).await / 1_000;
            if waited_ms >= process.budget().max_wait_ms.max(SHORTEST_MOVER_WAIT_MS) {
                return Err(process.refused(Refused::MarkLocked { waited_ms }, clocks));
            }
            process.sleep(1).await
        }
        NotReserved::Locked => {
            let waited_ms = waited(process).await / 1_000;
            Err(process.refused(Refused::MarkLocked { waited_ms }, clocks))
        }
        NotReserved::SetAhead(bound) => {
            let slewed_clock = process.shared().slewed_clock;
            let expected = slewed_clock.trusted(clocks.wall, clocks.boot, settings.limits(layout));
            if expected < clocks.wall {
                return Err(process.refused(Refused::ClockAhead { expected }, clocks));
            }
            let set_to = time_of(bound);
            let needed = set_to
                .minus_micros(settings.lease_micros())
                .micros_since(clocks.wall);
            let refused = Refused::MarkSetAhead { set_to };
            wait(process, needed, None, refused, clocks).await
        }
        NotReserved::TooFarAhead(bound) => for_clock(process, time_of(bound), clocks).await,
        NotReserved::PastEnd => Err(process.refused(Refused::PastEnd, clocks)),
        NotReserved::Failed(error) => Err(error),
    }
}

/// Waits for the clock, or returns the error of one that cannot be used.
pub(super) async fn for_reading<P: DrawingProcess>(
    process: &P,
    reason: NoReading,
    clocks: Clocks,
) -> Result<(), ErrorOf<P>> {
    let refused = match reason {
        NoReading::Behind { reached } => return for_clock(process, reached, clocks).await,
        NoReading::Ahead { expected } => Refused::ClockAhead { expected },
        NoReading::BeforeEpoch => Refused::BeforeEpoch,
        NoReading::PastEnd => Refused::PastEnd,
    };
    Err(process.refused(refused, clocks))
}

/// Waits for the slots.
pub(super) async fn for_slots<P: DrawingProcess>(
    process: &P,
    slots: Wait,
) -> Result<(), ErrorOf<P>> {
    let needed = i64::try_from(slots.needed).unwrap_or(i64::MAX);
    let refused = Refused::WaitTooLong {
        next: layout_of(process).time_of(slots.next).into(),
        needed_ms: millis(needed),
        max_wait_ms: process.budget().max_wait_ms,
    };
    wait(process, needed, Some(slots), refused, slots.reading.clocks).await
}

//! What time it is for generating IDs.

use super::session::Session;
use super::{Clocks, DrawingProcess, ServerSettings, layout_of};
use crate::{Now, SlewedClock, Tick, TimeError, WallTime};

/// What time it is.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// By the clocks.
    pub clocks: Clocks,
    /// By the wall clock, or slewed if that is behind.
    pub time: WallTime,
    /// The tick for generating IDs.
    pub now: Tick,
    /// How many microseconds of the boot clock one microsecond of the time for IDs takes: 1, or 2
    /// while the wall clock is behind.
    pub slowdown: u64,
}

/// Why no ID can be generated at this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReading {
    /// The wall clock is too far behind this time, which has been reached.
    Behind {
        /// That time.
        reached: WallTime,
    },
    /// The wall clock has jumped ahead.
    Ahead {
        /// What it would show had it not jumped.
        expected: WallTime,
    },
    /// The layout's time has not begun.
    BeforeEpoch,
    /// The layout's time has ended.
    PastEnd,
}

/// A clock step below this is not accepted, nor logged, microseconds.
pub const LEAST_STEP: i64 = 250_000;

/// Accepts a clock step that was not refused. It is measured again with fresh clocks: a process that
/// lost its processor since it read them would accept a step that others have accepted, the wrong way
/// round. Another step since then has not been judged.
async fn accept_step<P: DrawingProcess>(process: &P, judged: i64) {
    let slewed_clock = process.shared().slewed_clock;
    let before = slewed_clock.offset();
    let at = process.clocks().await;
    let step = at.offset().step_since(before);
    if step.abs() >= LEAST_STEP
        && (step - judged).abs() < LEAST_STEP
        && slewed_clock.accept_step(before, at.offset())
    {
        process.stepped(step, at);
    }
}

/// Why a clock that has jumped ahead is not trusted all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAccepted {
    /// The clock is not near the time that was expected.
    NotAsExpected,
    /// The clock is too far behind this time, which has been reached.
    Behind {
        /// That time.
        reached: WallTime,
    },
}

/// Trusts what the wall clock shows, however far it has jumped ahead, if it is within a minute of
/// what is expected.
///
/// # Errors
/// [`NotAccepted`]
pub fn accept_clock(
    slewed_clock: &SlewedClock,
    settings: ServerSettings,
    clocks: Clocks,
    expected: WallTime,
) -> Result<(), NotAccepted> {
    const MAX_CLOCK_DIFFERENCE_MICROS: u64 = 60_000_000;
    if clocks.wall.micros_since(expected).unsigned_abs() > MAX_CLOCK_DIFFERENCE_MICROS {
        return Err(NotAccepted::NotAsExpected);
    }
    let reached = slewed_clock.reached();
    let behind = reached.micros_since(clocks.wall);
    if settings.max_clock_step.is_some_and(|max| behind > max) {
        return Err(NotAccepted::Behind { reached });
    }
    slewed_clock.trust(clocks.offset());
    Ok(())
}

impl Reading {
    /// The time when the clocks show this. A clock step that is not refused is accepted: a later one
    /// is measured against the clock as it is now.
    ///
    /// # Errors
    /// [`NoReading`]
    pub async fn take<P: DrawingProcess>(process: &P, clocks: Clocks) -> Result<Self, NoReading> {
        let slewed_clock = process.shared().slewed_clock;
        let layout = layout_of(process);
        // Other processes may not know the time that this one has used before the clock stepped
        // back.
        slewed_clock.observe(process.session().memory().highest_wall(), clocks.boot);
        let limits = process.settings().limits(layout);
        let (time, slowdown) = match slewed_clock.now(clocks.wall, clocks.boot, limits) {
            Now::Wall(time) => (time, 1),
            Now::Slewed(time) => (time, SlewedClock::SLOWDOWN),
            Now::Behind { reached } => return Err(NoReading::Behind { reached }),
            Now::Ahead { expected } => return Err(NoReading::Ahead { expected }),
        };
        let step = slewed_clock.clock_step(clocks.wall, clocks.boot);
        if step.abs() >= LEAST_STEP {
            accept_step(process, step).await;
        }
        match layout.tick_at(time.into()) {
            Ok(now) => Ok(Reading {
                clocks,
                time,
                now,
                slowdown,
            }),
            Err(TimeError::BeforeEpoch { .. }) => Err(NoReading::BeforeEpoch),
            Err(TimeError::AfterEnd { .. }) => Err(NoReading::PastEnd),
        }
    }
}

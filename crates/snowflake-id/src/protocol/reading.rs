//! What time it is for generating IDs.

use super::{Clocks, Process, layout_of};
use crate::{Limits, Now, SlewedClock, Tick, TimeError, WallTime};

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

impl Reading {
    /// The time when the clocks show this.
    ///
    /// # Errors
    /// [`NoReading`]
    pub fn take<P: Process + ?Sized>(process: &P, clocks: Clocks) -> Result<Self, NoReading> {
        let slewed_clock = process.shared().slewed_clock;
        let layout = layout_of(process);
        let settings = process.settings();
        // Other processes may not know the time that this one has used before the clock stepped
        // back.
        slewed_clock.observe(process.highest_wall(), clocks.boot);
        let limits = Limits {
            max_step: settings.max_clock_step,
            unseen: settings.lease_micros(),
            earliest: layout.epoch().into(),
        };
        let (time, slowdown) = match slewed_clock.now(clocks.wall, clocks.boot, limits) {
            Now::Wall(time) => (time, 1),
            Now::Slewed(time) => (time, SlewedClock::SLOWDOWN),
            Now::Behind { reached } => return Err(NoReading::Behind { reached }),
            Now::Ahead { expected } => return Err(NoReading::Ahead { expected }),
        };
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

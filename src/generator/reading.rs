//! What time it is for generating IDs.

use snowflake_id::{Limits, Now, SlewedClock, Tick, TimeError};

use crate::clock::{self, Clocks};
use crate::error::Error;
use crate::generator::log;
use crate::generator::session::{FAST_PATH, Session};
use crate::settings;

/// What time it is.
#[derive(Clone, Copy)]
pub struct Reading {
    /// By the clocks.
    pub clocks: Clocks,
    /// For generating IDs.
    pub now: Tick,
    /// How many microseconds of the boot clock one microsecond of the time for IDs
    /// takes: 1, or 2 while the wall clock is behind.
    pub slowdown: u64,
}

impl Reading {
    /// The time when the clocks show this; `None` if the wall clock is too far
    /// behind.
    ///
    /// # Errors
    /// [`Error::ClockAhead`], [`Error::BeforeEpoch`], [`Error::PastEnd`].
    pub fn take(session: &Session, clocks: Clocks) -> Result<Option<Self>, Error> {
        let slewed_clock = session.shared.slewed_clock();
        let layout = session.layout();
        #[cfg(feature = "testing")]
        if crate::unprotected::is("clock") {
            let now = session.tick_at(clocks.wall).unwrap_or_default();
            return Ok(Some(Reading {
                clocks,
                now,
                slowdown: 1,
            }));
        }
        // Other processes may not know the time that this one has used before the
        // clock stepped back.
        slewed_clock.observe(FAST_PATH.highest_wall(), clocks.boot);
        let limits = Limits {
            max_step: settings::max_clock_step_micros(),
            unseen: i64::try_from(settings::lease_micros()).unwrap_or(i64::MAX),
            earliest: session.epoch,
        };
        let (time, slowdown) = match slewed_clock.now(clocks.wall, clocks.boot, limits) {
            Now::Wall(time) => (time, 1),
            Now::Slewed(time) => (time, SlewedClock::SLOWDOWN),
            Now::Behind { .. } => return Ok(None),
            Now::Ahead { expected } => {
                return Err(Error::ClockAhead {
                    wall: clocks.wall,
                    expected,
                });
            }
        };
        log::clock(session.shared, clocks, time);
        let now = layout.tick_at(time.into()).map_err(|error| match error {
            TimeError::BeforeEpoch { .. } => Error::BeforeEpoch {
                wall: clock::time(clocks.wall),
                epoch: layout.epoch(),
            },
            TimeError::AfterEnd { .. } => Error::PastEnd {
                end: layout.expires_at(),
            },
        })?;
        Ok(Some(Reading {
            clocks,
            now,
            slowdown,
        }))
    }
}

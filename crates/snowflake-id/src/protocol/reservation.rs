//! What a session knows of its database's mark, and how it reserves more.

use std::sync::atomic::Ordering::Relaxed;

use super::mark::{self, NotReserved, Request};
use super::{Clocks, ErrorOf, Process, Reading, layout_of};
use crate::{Allowance, Tick};

/// The longest flush of the log that reservations allow for, microseconds.
const LONGEST_FLUSH: u64 = 5_000_000;

/// What a session knows of its database's mark. All numbers are ticks.
#[derive(Clone, Copy, Debug)]
pub struct Reservation {
    max_borrow: u64,
    lease: u64,
    /// The first tick that is not reserved; 0 if none is.
    bound: Tick,
    /// The tick from which on more should be reserved.
    extend_from: Tick,
}

impl Reservation {
    /// With what another process may have reserved. If no process has read the mark since the
    /// server's start, nothing is reserved, and the first ID reads it.
    pub async fn new<P: Process>(process: &P) -> Self {
        let settings = process.settings();
        process
            .shared()
            .most_borrow
            .fetch_max(settings.max_borrow, Relaxed);
        let tick = u64::from(layout_of(process).tick_micros());
        let mut reservation = Reservation {
            max_borrow: settings.max_borrow / tick,
            lease: settings.lease.div_ceil(tick).max(2),
            bound: Tick::default(),
            extend_from: Tick::default(),
        };
        if let Some(bound) = mark::confirmed_bound(process).await {
            reservation.set_bound(process, bound, 1);
        }
        reservation
    }

    /// As four words, for [`Reservation::from_words`].
    pub(super) fn words(&self) -> [u64; 4] {
        let (bound, extend_from) = (self.bound.get(), self.extend_from.get());
        [self.max_borrow, self.lease, bound, extend_from]
    }

    /// The reservation that these words stand for.
    pub(super) fn from_words([max_borrow, lease, bound, extend_from]: [u64; 4]) -> Self {
        Reservation {
            max_borrow,
            lease,
            bound: Tick::new(bound),
            extend_from: Tick::new(extend_from),
        }
    }

    /// Whether the mark has been read since the server's start.
    pub fn is_known(&self) -> bool {
        self.bound != Tick::default()
    }

    /// How many ticks a slot may borrow.
    pub fn max_borrow(&self) -> u64 {
        self.max_borrow
    }

    /// The tick from which on more should be reserved; 0 if nothing is reserved.
    pub fn extend_from(&self) -> Tick {
        self.extend_from
    }

    /// What a slot may use when the clock shows this tick.
    pub fn allowance(&self, now: Tick) -> Allowance {
        Allowance {
            now,
            max_borrow: self.max_borrow,
            reserved: self.bound,
        }
    }

    /// Finds what is reserved.
    ///
    /// # Errors
    /// As [`mark::read`].
    pub async fn read_mark<P: Process>(
        &mut self,
        process: &P,
        clocks: Clocks,
        wait_ms: i64,
    ) -> Result<(), NotReserved<ErrorOf<P>>> {
        let known = mark::confirmed_bound(process).await;
        let bound = match known.filter(|&bound| bound > self.bound) {
            Some(bound) => bound,
            None => mark::read(process, &self.request(process, clocks, 1, wait_ms)).await?,
        };
        self.set_bound(process, bound, 1);
        Ok(())
    }

    /// Reserves time beyond `wanted`, or finds that another process has. `tries` is how often the
    /// call has done so in vain: time passes while it is done, and what was reserved had passed each
    /// time. Then twice as much is reserved as before.
    ///
    /// # Errors
    /// As [`mark::advance`].
    pub async fn extend<P: Process>(
        &mut self,
        process: &P,
        reading: Reading,
        wanted: Tick,
        wait_ms: i64,
        tries: u32,
    ) -> Result<(), NotReserved<ErrorOf<P>>> {
        let Reading {
            clocks,
            now,
            slowdown,
            ..
        } = reading;
        let known = mark::confirmed_bound(process).await;
        let bound = match known.filter(|&bound| bound > self.bound && bound > wanted) {
            Some(bound) => bound,
            None => {
                let mut request = self.request(process, clocks, slowdown, wait_ms);
                request.ticks_ahead = doubled(process, request.ticks_ahead, tries);
                mark::advance(process, &request, now, wanted).await?
            }
        };
        self.set_bound(process, bound, slowdown);
        Ok(())
    }

    /// Reserves more while some is left, after an ID of tick `used`. The first process does it, the
    /// others continue.
    ///
    /// # Errors
    /// The errors that end a call.
    pub async fn extend_early<P: Process>(
        &mut self,
        process: &P,
        reading: Reading,
        used: Tick,
    ) -> Result<(), NotReserved<ErrorOf<P>>> {
        if used < self.extend_from {
            return Ok(());
        }
        // Some is left, so there is no wait.
        match self.extend(process, reading, used, 0, 0).await {
            Ok(()) => {}
            // Try again a little later, not for every ID.
            Err(NotReserved::Busy | NotReserved::Locked) => {
                let pause = (self.ticks_ahead(process, reading.slowdown) / 8).max(1);
                let later = Tick::new(used.get().saturating_add(pause));
                self.extend_from = later.min(self.bound);
            }
            Err(error @ (NotReserved::Failed(_) | NotReserved::PastEnd)) => return Err(error),
            // The mark was set; the next ID handles that.
            Err(_) => self.set_bound(process, Tick::default(), 1),
        }
        Ok(())
    }

    /// A request to read or move the mark.
    pub fn request<P: Process>(
        &self,
        process: &P,
        clocks: Clocks,
        slowdown: u64,
        wait_ms: i64,
    ) -> Request {
        let (settings, layout) = (process.settings(), layout_of(process));
        let slewed_clock = process.shared().slewed_clock;
        Request {
            ticks_ahead: self.ticks_ahead(process, slowdown),
            highest_set: mark::highest_set(slewed_clock, settings, layout, clocks),
            highest_accepted: mark::highest_accepted(settings, layout, clocks.wall),
            wait_ms,
        }
    }

    fn set_bound<P: Process>(&mut self, process: &P, bound: Tick, slowdown: u64) {
        let half = self.ticks_ahead(process, slowdown) / 2;
        self.bound = bound;
        self.extend_from = Tick::new(bound.get().saturating_sub(half));
    }

    /// How many ticks to reserve ahead: fewer while the clock is behind. After a crash IDs start above
    /// what was reserved. With the whole lease each time, crashes in quick succession would move them
    /// ever further ahead.
    ///
    /// At least twice as many as a flush of the log takes: otherwise the whole reservation has passed
    /// when it is durable, and no session gets an ID.
    fn ticks_ahead<P: Process>(&self, process: &P, slowdown: u64) -> u64 {
        let tick = u64::from(layout_of(process).tick_micros());
        let flush = process.shared().last_flush.load(Relaxed).min(LONGEST_FLUSH);
        let flushing = 2 * flush / tick;
        if slowdown == 1 {
            self.lease.max(flushing)
        } else {
            (self.lease / 8).max(2).max(flushing)
        }
    }
}

/// So many ticks, doubled as often, up to what is allowed for the slowest flush.
fn doubled<P: Process>(process: &P, ticks: u64, times: u32) -> u64 {
    let tick = u64::from(layout_of(process).tick_micros());
    let most = ticks.max(2 * LONGEST_FLUSH / tick);
    ticks.saturating_mul(1 << times.min(32)).min(most)
}

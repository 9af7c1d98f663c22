//! The fast path: an ID of this session's slot.
//!
//! [`next`] finds the tick and calls its slot, which does one compare-and-swap. It
//! takes no lock and calls no function of Postgres. What it needs never changes
//! ([`Session`](super::session::Session)) or is a word of its own
//! ([`SessionMemory`](snowflake_id::protocol::SessionMemory)). The slot is given the middle of the
//! reservation as its end. So the one comparison that it makes anyway also finds
//! the moment to reserve more.
//!
//! A session that generates IDs in bulk moves to the shared slot
//! ([`snowflake_id::SlotWalk`]), and returns to its own after a while without a
//! call. The fast path compares the tick of the session's last ID to see whether it
//! may stay in its slot; the slow path decides where it moves.
//!
//! A call costs 150 instructions more than a constant function; `nextval()` takes
//! 2,490 more, counted by callgrind on PostgreSQL 15. A fifth is pgrx's wrapper,
//! which every function has: it catches panics. The rest is the tick, the position,
//! one compare-and-swap, composing the ID, and counting it. Reading the clock takes
//! longer than all of that. It can't be left out, because no ID may be older than
//! `now()`, but it is read only when the tick may have ended ([`super::counter`]).
//! `make bench` measures the times.
//!
//! All other cases are the slow path's ([`next_slow`]).

use std::num::NonZeroU32;

use snowflake_id::protocol::{self, now};
use snowflake_id::{Identity, Run, SnowflakeId};

use crate::error::Error;
use crate::generator::next_slow::next_slow;
use crate::generator::{last_id, session, stats};

/// The next ID of this session.
///
/// # Errors
/// Any reason why no ID can be issued; see [`Error`].
#[inline]
pub fn next() -> Result<SnowflakeId, Error> {
    let id = match next_fast() {
        Some(id) => id,
        None => next_slow(NonZeroU32::MIN)?.id(0),
    };
    issued(id);
    Ok(id)
}

/// An ID, if nothing else has to be done.
#[inline]
fn next_fast() -> Option<SnowflakeId> {
    let session = session::get()?;
    let (slot, run) = now(protocol::next_fast(session))?;
    Some(session.identity.id(slot, run.tick, run.first))
}

/// Counts an ID, and keeps it as the session's last one.
#[inline]
pub fn issued(id: SnowflakeId) {
    stats::count_id();
    last_id::set(id);
}

/// Forgets the session's last ID, as DISCARD does.
pub fn forget_last_id() {
    stats::flush();
    last_id::forget();
}

/// Up to `count` IDs of one tick, issued by one update of the slot. The caller
/// calls [`issued`] for each ID that it returns.
///
/// # Errors
/// Any reason why no ID can be issued; see [`Error`].
pub fn next_batch(count: NonZeroU32) -> Result<Batch, Error> {
    next_slow(count)
}

/// IDs of one tick, ascending.
#[derive(Clone, Copy)]
pub struct Batch {
    pub(super) identity: &'static Identity,
    pub(super) slot: u32,
    pub(super) run: Run,
}

impl Batch {
    /// How many there are; at least one.
    pub fn count(&self) -> u32 {
        self.run.count
    }

    /// The ID number `index`, counted from 0.
    pub fn id(&self, index: u32) -> SnowflakeId {
        debug_assert!(index < self.run.count);
        self.identity
            .id(self.slot, self.run.tick, self.run.first + index)
    }
}

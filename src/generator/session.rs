//! What this process has resolved, for the way to an ID.
//!
//! What never changes is in [`Session`]; what changes is a word of its own in
//! [`FastPath`].

use std::num::NonZeroU32;
use std::sync::OnceLock;

use snowflake_id::protocol::FastPath;
use snowflake_id::{Allowance, Answer, Identity, Layout, Position, Slot, SlotWalk, Tick, WallTime};

use crate::error::Error;
use crate::generator::stats;
use crate::pg;
use crate::settings;
use crate::shared::{self, Shared};

/// What stays the same as long as the process lives.
pub struct Session {
    pub shared: Shared,
    pub identity: Identity,
    slots: &'static [Slot],
    walk: SlotWalk<'static>,
    /// The layout's, as plain numbers.
    pub sequence_bits: u32,
    pub epoch: WallTime,
    pub tick_micros: u32,
}

/// Not an `AtomicPtr`: to read that needs `unsafe`, and the fast path would load the
/// fields only after the pointer. Those of a static are at fixed addresses.
static SESSION: OnceLock<Session> = OnceLock::new();

/// What changes, for the way to an ID.
pub static FAST_PATH: FastPath = FastPath::new();

/// The session, if it was resolved.
#[inline]
pub fn get() -> Option<&'static Session> {
    SESSION.get()
}

/// Resolves the session.
///
/// # Errors
/// [`Error::InRecovery`], [`Error::LeaderWithoutLibrary`], and as [`shared::get_or_make`].
pub fn resolve() -> Result<&'static Session, Error> {
    if let Some(session) = get() {
        return Ok(session);
    }
    // Recovery ends once. After that a process need not check again.
    if pg::server::is_in_recovery() {
        return Err(Error::InRecovery);
    }
    let shared = shared::get_or_make()?;
    // What it publishes, its leader has to clear.
    if !shared::leader_is_watched() {
        return Err(Error::LeaderWithoutLibrary);
    }
    let identity = *settings::identity().ok_or(Error::NodeNotSet)?;
    let layout = identity.layout();
    let home = own_slot(layout.max_backend());
    let slots = shared.slots();
    let session = Session {
        shared,
        identity,
        slots,
        walk: SlotWalk::new(identity.layout(), slots, home),
        sequence_bits: layout.sequence_bits(),
        epoch: layout.epoch().into(),
        tick_micros: layout.tick_micros(),
    };
    stats::init(&shared.counters()[home as usize]);
    FAST_PATH.set_position(session.start());
    Ok(SESSION.get_or_init(|| session))
}

/// The session's own slot: the process's number modulo the number of slots.
fn own_slot(max_backend: u32) -> u32 {
    pg::session::process_id() & max_backend
}

impl Session {
    pub fn layout(&self) -> &Layout {
        self.identity.layout()
    }

    /// The position before the first ID.
    fn start(&self) -> Position {
        #[cfg(feature = "testing")]
        if crate::unprotected::has_own_slot() {
            return Position::pinned(self.walk.home());
        }
        self.walk.start()
    }

    /// The slot of this backend number.
    #[inline]
    pub fn slot(&self, number: u32, _wall: WallTime) -> &'static Slot {
        #[cfg(feature = "testing")]
        if let Some(slot) = crate::unprotected::slot(_wall.unix_micros()) {
            return slot;
        }
        &self.slots[number as usize]
    }

    /// Sequence numbers of the slot in which the session is, or to which it moves,
    /// and the number of that slot.
    pub fn next_run(
        &self,
        allowance: Allowance,
        count: NonZeroU32,
        _wall: WallTime,
    ) -> (u32, Answer) {
        let before = FAST_PATH.position();
        #[cfg(feature = "testing")]
        if let Some(slot) = crate::unprotected::slot(_wall.unix_micros()) {
            let answer = slot.next_run(
                self.sequence_bits,
                allowance,
                count,
                snowflake_id::Borrow::Yes,
            );
            return (before.slot(), answer);
        }
        let (position, answer) = self.walk.next_run(before, allowance, count);
        let slot = position.slot();
        if slot != before.slot() {
            // Before another ID is counted: the count so far belongs to that slot.
            stats::move_to(&self.shared.counters()[slot as usize]);
        }
        FAST_PATH.set_position(position);
        (slot, answer)
    }

    /// How many microseconds are left of this time's tick.
    #[inline]
    pub fn left_of_tick(&self, wall: WallTime) -> u64 {
        let tick = i64::from(self.tick_micros);
        (tick - self.since_epoch(wall).rem_euclid(tick)).unsigned_abs()
    }

    /// The clock's tick; `None` outside of the layout's time.
    #[inline]
    pub fn tick_at(&self, wall: WallTime) -> Option<Tick> {
        let elapsed = u64::try_from(self.since_epoch(wall)).ok()?;
        self.layout().tick_after(elapsed)
    }

    /// Microseconds. Wraps: that takes one instruction, and a wall clock is never
    /// 292,000 years away from an epoch.
    #[inline]
    fn since_epoch(&self, wall: WallTime) -> i64 {
        wall.unix_micros().wrapping_sub(self.epoch.unix_micros())
    }
}

//! What this process has resolved, for the way to an ID.
//!
//! What never changes is in [`Session`]; what changes is a word of its own in
//! [`SessionMemory`].

use std::sync::OnceLock;

use snowflake_id::protocol::{self, SessionMemory};
use snowflake_id::resolved::{OpenTransaction, Promise};
use snowflake_id::{Identity, Layout, Position, Slot, SlotWalk, WallTime};

use crate::error::Error;
use crate::generator::{counter, open_transaction, stats};
use crate::pg;
use crate::settings;
use crate::shared::{self, Shared};

/// What stays the same as long as the process lives.
pub struct Session {
    pub shared: Shared,
    pub identity: Identity,
    slots: &'static [Slot],
    home: u32,
    /// The layout's, as plain numbers.
    epoch: WallTime,
    tick_micros: u32,
}

/// Not an `AtomicPtr`: to read that needs `unsafe`, and the fast path would load the
/// fields only after the pointer. Those of a static are at fixed addresses.
static SESSION: OnceLock<Session> = OnceLock::new();

/// What changes, for the way to an ID.
pub static MEMORY: SessionMemory = SessionMemory::new();

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
    shared.end_recovery();
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
        home,
        epoch: layout.epoch().into(),
        tick_micros: layout.tick_micros(),
    };
    stats::init(&shared.counters()[home as usize]);
    MEMORY.set_position(session.start());
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
            return Position::pinned(self.home);
        }
        SlotWalk::new(self.layout(), self.slots, self.home).start()
    }

    /// How many microseconds are left of this time's tick.
    #[inline]
    pub fn left_of_tick(&self, wall: WallTime) -> u64 {
        let tick = i64::from(self.tick_micros);
        (tick - self.since_epoch(wall).rem_euclid(tick)).unsigned_abs()
    }

    /// Microseconds. Wraps: that takes one instruction, and a wall clock is never
    /// 292,000 years away from an epoch.
    #[inline]
    fn since_epoch(&self, wall: WallTime) -> i64 {
        wall.unix_micros().wrapping_sub(self.epoch.unix_micros())
    }
}

impl protocol::Session for Session {
    #[inline]
    fn identity(&self) -> &Identity {
        &self.identity
    }

    #[inline]
    fn memory(&self) -> &SessionMemory {
        &MEMORY
    }

    #[inline]
    fn slots(&self) -> &[Slot] {
        #[cfg(feature = "testing")]
        if let Some(slots) = crate::unprotected::slots(self.slots.len()) {
            return slots;
        }
        self.slots
    }

    #[inline]
    fn home(&self) -> u32 {
        self.home
    }

    #[inline]
    fn database(&self) -> u32 {
        pg::session::database().to_u32()
    }

    #[inline]
    fn promise(&self) -> &Promise {
        self.shared.promise()
    }

    #[inline]
    fn open_transaction(&self) -> Option<&OpenTransaction> {
        open_transaction::of_leader()
    }

    #[inline]
    fn is_parallel(&self) -> bool {
        pg::transaction::is_in_parallel_mode()
    }

    #[inline]
    fn settings_changed(&self) -> bool {
        settings::changed()
    }

    #[inline]
    async fn wall(&self) -> WallTime {
        counter::wall_in_tick(|wall| self.left_of_tick(wall))
    }
}

//! A session on its way to an ID: what it keeps between two calls, and what its transaction has
//! published.

use std::hint::cold_path;
use std::num::NonZeroU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};

use super::Reservation;
use crate::resolved::{OpenTransaction, Opening, Promise};
use crate::{
    Allowance, Answer, Borrow, Identity, Position, Run, Slot, SnowflakeId, Tick, WallTime,
};

/// A session, as far as its process has to do nothing else for an ID.
#[allow(async_fn_in_trait)] // A process has one thread.
pub trait Session {
    /// The layout and the node number of its IDs.
    fn identity(&self) -> &Identity;
    /// What it keeps.
    fn memory(&self) -> &SessionMemory;
    /// The slots, one for each backend number.
    fn slots(&self) -> &[Slot];
    /// The number of its own slot.
    fn home(&self) -> u32;
    /// The number of its database.
    fn database(&self) -> u32;
    /// What readers were promised.
    fn promise(&self) -> &Promise;
    /// Where its transaction publishes that it draws; `None` if there is no place for it.
    fn open_transaction(&self) -> Option<&OpenTransaction>;
    /// Whether other processes may draw for the same transaction.
    fn is_parallel(&self) -> bool;
    /// Whether a setting has changed that IDs depend on.
    fn settings_changed(&self) -> bool;
    /// A time within the present tick.
    async fn wall(&self) -> WallTime;
    /// Called when a slot has issued these, in the same step.
    #[inline]
    fn issued(&self, _slot: u32, _run: Run) {}
    /// Between two changes of shared memory that are not one step.
    async fn step(&self) {}
}

/// An ID of the session's slot, if nothing else has to be done: the number of the slot, and what it
/// issued. All other cases are [`draw`](super::draw::draw)'s.
///
/// A session that generates in bulk moves to the shared slot ([`SlotWalk`](crate::SlotWalk)), and
/// returns to its own after a while without a call. The tick of its last ID shows here whether it may
/// stay in its slot.
#[inline]
pub async fn next_fast<S: Session>(session: &S) -> Option<(u32, Run)> {
    if session.settings_changed() {
        return None;
    }
    let wall = session.wall().await;
    let layout = session.identity().layout();
    // Wraps: that takes one instruction, and a wall clock is never 292,000 years away from an epoch.
    let epoch = WallTime::from(layout.epoch()).unix_micros();
    let elapsed = u64::try_from(wall.unix_micros().wrapping_sub(epoch)).ok()?;
    let memory = session.memory();
    let allowance = memory.allowance(layout.tick_after(elapsed)?);
    if memory.has_drawn() {
        session.step().await;
        return draw(session, wall, allowance);
    }
    cold_path();
    if !memory.position().may_stay(allowance.now) {
        return None;
    }
    let (opened, least) = begin(session, allowance.now).await;
    // Too far ahead if the clock has been set back since a reader was answered: the slow path finds
    // out by how much.
    let (slot, run) = draw(session, wall, allowance.from(least)?)?;
    opened.drew(memory, session.identity().id(slot, run.tick, run.first));
    Some((slot, run))
}

// Not `async`: the poll of an inner function that is called twice is not inlined.
#[inline(always)]
fn draw<S: Session>(session: &S, wall: WallTime, allowance: Allowance) -> Option<(u32, Run)> {
    let memory = session.memory();
    let position = memory.position();
    if !position.may_stay(allowance.now) {
        return None;
    }
    let slot = position.slot();
    let bits = session.identity().layout().sequence_bits();
    match session.slots()[slot as usize].next_run(bits, allowance, NonZeroU32::MIN, Borrow::No) {
        Answer::Issued(run) => {
            session.issued(slot, run);
            memory.set_position(position.after(run));
            memory.observe(wall);
            Some((slot, run))
        }
        Answer::Wait { .. } | Answer::Reserve { .. } | Answer::Closed => None,
    }
}

/// A transaction that is about to draw its first ID.
#[must_use]
pub(super) struct Opened<'a>(Option<(&'a OpenTransaction, Opening)>);

/// Called before the first ID of a transaction is drawn, when the clock shows the tick `now`. Returns
/// the tick at or after which the ID has to be. Called again if drawing failed.
#[inline]
pub(super) async fn begin<S: Session>(session: &S, now: Tick) -> (Opened<'_>, Tick) {
    let layout = session.identity().layout();
    let Some(open) = session.open_transaction() else {
        return (Opened(None), now);
    };
    session.step().await;
    let opening = open.begin(
        session.promise(),
        session.database(),
        layout.first_id_of(now.min(layout.last_tick())),
        session.is_parallel(),
    );
    session.step().await;
    let opened = Opened(Some((open, opening)));
    (opened, now.max(layout.tick_of(opening.least)))
}

impl Opened<'_> {
    /// Called with the first ID that was drawn.
    #[inline]
    pub(super) fn drew(self, memory: &SessionMemory, id: SnowflakeId) {
        if let Some((open, opening)) = self.0 {
            open.drew(opening, id);
        }
        memory.has_drawn.store(true, Relaxed);
    }
}

/// What changes in a session, for the way to an ID.
///
/// A process has one thread, so these are plain loads and stores. They are atomics to be shared
/// statics without a lock, whose two locked instructions would take as long as the slot's swap.
#[derive(Debug)]
pub struct SessionMemory {
    /// The session's [`Position`]: its slot, the tick of its last ID.
    position: [AtomicU64; 2],
    /// The tick from which on the slow path has to be taken: the reservation is half used up, or (0)
    /// something has to be resolved first.
    slow_from: AtomicU64,
    /// How many ticks a slot may borrow.
    max_borrow: AtomicU64,
    /// The highest time that the wall clock has shown when an ID was generated.
    highest_wall: AtomicI64,
    /// Whether the present transaction has drawn an ID.
    has_drawn: AtomicBool,
    /// The reservation that was kept, if it was.
    is_kept: AtomicBool,
    kept: [AtomicU64; 4],
    /// The number of the mark that is in use; 0 before one is.
    mark: AtomicU32,
    /// Whether that may be another one since: the extension may have been dropped and created again.
    mark_changed: AtomicBool,
}

impl SessionMemory {
    /// Of a session without IDs.
    pub const fn new() -> Self {
        SessionMemory {
            position: [const { AtomicU64::new(0) }; 2],
            slow_from: AtomicU64::new(0),
            max_borrow: AtomicU64::new(0),
            highest_wall: AtomicI64::new(i64::MIN),
            has_drawn: AtomicBool::new(false),
            is_kept: AtomicBool::new(false),
            kept: [const { AtomicU64::new(0) }; 4],
            mark: AtomicU32::new(0),
            mark_changed: AtomicBool::new(false),
        }
    }

    /// Where the session is.
    #[inline]
    pub fn position(&self) -> Position {
        let [tick, rest] = &self.position;
        Position::from_words([tick.load(Relaxed), rest.load(Relaxed)])
    }

    /// Keeps where the session is.
    #[inline]
    pub fn set_position(&self, position: Position) {
        let [tick, rest] = position.words();
        self.position[0].store(tick, Relaxed);
        self.position[1].store(rest, Relaxed);
    }

    /// What a slot may use without the slow path. It is given the middle of the reservation as its
    /// end. So the one comparison that it makes anyway also finds the moment to reserve more.
    #[inline]
    pub fn allowance(&self, now: Tick) -> Allowance {
        Allowance {
            now,
            max_borrow: self.max_borrow.load(Relaxed),
            reserved: Tick::new(self.slow_from.load(Relaxed)),
        }
    }

    /// What was kept, and the number of its mark; `None` if the mark or a setting has changed since.
    pub(super) fn kept(&self, settings_changed: bool) -> Option<(u32, Reservation)> {
        let mark_changed = self.mark_changed.swap(false, Relaxed);
        if !self.is_kept.load(Relaxed) || mark_changed || settings_changed {
            // Not to be kept if an error follows.
            self.forget();
            return None;
        }
        let words = [0, 1, 2, 3].map(|number| self.kept[number].load(Relaxed));
        Some((self.mark.load(Relaxed), Reservation::from_words(words)))
    }

    /// From now on this mark is in use, and [`SessionMemory::mark_changed`] counts.
    pub(super) fn watch(&self, mark: u32) {
        self.mark.store(mark, Relaxed);
    }

    /// Keeps what is reserved. Until more has to be reserved, the next IDs need no slow path.
    pub(super) fn keep(&self, reservation: Reservation) {
        for (place, word) in self.kept.iter().zip(reservation.words()) {
            place.store(word, Relaxed);
        }
        self.is_kept.store(true, Relaxed);
        self.max_borrow.store(reservation.max_borrow(), Relaxed);
        self.slow_from
            .store(reservation.extend_from().get(), Relaxed);
        // The mark may have changed in the meantime.
        if self.mark_changed.load(Relaxed) {
            self.close();
        }
    }

    /// Forgets what is reserved: the next ID looks it up.
    pub fn forget(&self) {
        self.is_kept.store(false, Relaxed);
        self.close();
    }

    /// The mark of this number may be another one now; 0 stands for every mark.
    pub fn mark_changed(&self, mark: u32) {
        if mark == 0 || mark == self.mark.load(Relaxed) {
            self.mark_changed.store(true, Relaxed);
            self.close();
        }
    }

    /// The next ID takes the slow path.
    fn close(&self) {
        self.slow_from.store(0, Relaxed);
    }

    /// Keeps the time with which an ID was generated.
    #[inline]
    pub(super) fn observe(&self, wall: WallTime) {
        if wall.unix_micros() > self.highest_wall.load(Relaxed) {
            self.highest_wall.store(wall.unix_micros(), Relaxed);
        }
    }

    /// The highest time with which this process has generated an ID.
    pub(super) fn highest_wall(&self) -> WallTime {
        WallTime::from_unix_micros(self.highest_wall.load(Relaxed))
    }

    /// Whether the present transaction has drawn an ID.
    #[inline]
    pub fn has_drawn(&self) -> bool {
        self.has_drawn.load(Relaxed)
    }

    /// Called when the transaction has ended for all others. `own` is where it has published, unless
    /// that is another process's: a parallel worker's end is not the transaction's.
    pub fn transaction_ended(&self, own: Option<&OpenTransaction>) {
        self.has_drawn.store(false, Relaxed);
        if let Some(own) = own {
            own.end();
        }
    }
}

impl Default for SessionMemory {
    fn default() -> Self {
        Self::new()
    }
}

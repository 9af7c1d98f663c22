//! The per-backend generator: what this process has resolved, asked for an ID.
//!
//! The way to an ID ([`next`]) finds the tick and asks its slot with one
//! compare-and-swap; it takes no lock and calls nothing in Postgres. What it
//! needs never changes ([`Fixed`]) or is a word of its own ([`Hot`]). The slot
//! is told that time ends where the reservation is half used up, so the one
//! comparison that it makes anyway also finds the moment to reserve more.
//!
//! A session that generates IDs in bulk moves to the slot that all such sessions
//! share ([`snowflake_id::Session`]), and returns to its own after a while without
//! a call. The fast path compares the tick of the session's last ID to see whether
//! it may stay in its slot; the slow path decides where it moves.
//!
//! What a call costs: 150 instructions more than a constant function's, where
//! `nextval()` takes 2,490 more, counted by callgrind on PostgreSQL 15. A
//! fifth is pgrx's wrapper, which every function has: it catches panics. The
//! rest is the tick, the place, one compare-and-swap, composing the ID, and
//! counting it. Reading the clock takes longer than all of that. It can't be left
//! out, because no ID may be older than `now()`, but it is read only where the
//! tick may have ended ([`counter`]). `make bench` measures the times.
//!
//! Whatever the slot doesn't answer with an ID goes to [`take`]. That keeps
//! what it resolved behind a mutex, which it never holds while it looks things
//! up, reserves or waits: an error of Postgres may come out of any of these.
#![allow(unsafe_code)] // the process's number and the invalidation callback

use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};

use parking_lot::Mutex;
use pgrx::{check_for_interrupts, pg_guard, pg_sys};
use snowflake_id::{
    Answer, Horizon, Layout, Limits, Now, Origin, Place, Run, Session, Slot, SnowflakeId, Tick,
    TimeError,
};

use crate::clock;
use crate::clock::Instant;
use crate::error::Error;
use crate::generator::floor::Server;
use crate::generator::mark::{self, Reserved};
use crate::generator::wait::Patience;
use crate::generator::{accepted_layout, counter, log, stats};
use crate::settings;
use crate::shared::{self, MarkKey, Shared};

/// What stays the same as long as the process lives.
struct Fixed {
    shared: Shared,
    server: Server,
    slots: &'static [Slot],
    session: Session<'static>,
    origin: Origin,
    /// The layout again, as plain numbers.
    sequence_bits: u32,
    epoch: i64,
    tick_micros: u32,
}

static FIXED: OnceLock<Fixed> = OnceLock::new();

/// What changes, for the way to an ID. A process has one thread, so these are
/// plain loads and stores; they are atomics to be shared statics without a
/// lock, whose two locked instructions would cost as much as the slot's swap.
struct Hot {
    /// The session's [`Place`]: its slot, the tick of its last ID.
    place: [AtomicU64; 2],
    /// The tick from which on [`take`] has to be asked: the reservation is half
    /// used up, or (0) something has to be resolved first.
    refill: AtomicU64,
    /// How many ticks a slot may run ahead.
    max_borrow: AtomicU64,
    /// The highest time that the wall clock has shown when an ID was made.
    seen: AtomicI64,
}

static HOT: Hot = Hot {
    place: [AtomicU64::new(0), AtomicU64::new(0)],
    refill: AtomicU64::new(0),
    max_borrow: AtomicU64::new(0),
    seen: AtomicI64::new(i64::MIN),
};

impl Hot {
    #[inline]
    fn place(&self) -> Place {
        Place::from_words([self.place[0].load(Relaxed), self.place[1].load(Relaxed)])
    }

    #[inline]
    fn keep(&self, place: Place) {
        let [tick, rest] = place.words();
        self.place[0].store(tick, Relaxed);
        self.place[1].store(rest, Relaxed);
    }
}

/// What [`take`] has resolved and reserved. Unlike the standard library's,
/// this mutex does not poison when an error of Postgres passes through.
static GENERATOR: Mutex<Option<Lease>> = Mutex::new(None);

#[derive(Clone, Copy)]
struct Lease {
    /// The mark's sequence.
    sequence: pg_sys::Oid,
    /// How many ticks a slot may run ahead.
    max_borrow: u64,
    /// How many ticks to reserve ahead.
    length: u64,
    /// The first tick that is not reserved; 0 where nothing is.
    reserved: Tick,
    /// The tick from which on more should be reserved.
    refill: Tick,
}

/// The OID of the mark's sequence that is in use, for [`relation_changed`].
static MARK: AtomicU32 = AtomicU32::new(0);

/// Set when the relation cache forgets the mark: the extension may have been
/// dropped and created again.
static MARK_CHANGED: AtomicBool = AtomicBool::new(false);

/// The next ID of this session. `function` names the SQL function that was
/// called; it is asked only where the mark has to be found.
///
/// # Errors
/// Whatever keeps IDs from being issued; see [`Error`].
#[inline]
pub fn next(function: impl FnOnce() -> pg_sys::Oid) -> Result<SnowflakeId, Error> {
    let id = match next_at_once() {
        Some(id) => id,
        None => take(function(), NonZeroU32::MIN)?.id(0),
    };
    stats::issued(id);
    Ok(id)
}

/// An ID where nothing else is to be done.
#[inline]
fn next_at_once() -> Option<SnowflakeId> {
    let fixed = FIXED.get()?;
    if settings::changed() {
        return None;
    }
    let wall = counter::wall_in_tick(|wall| fixed.left_of_tick(wall));
    let horizon = Horizon {
        now: fixed.tick_at(wall)?,
        max_borrow: HOT.max_borrow.load(Relaxed),
        reserved: Tick::new(HOT.refill.load(Relaxed)),
    };
    let place = HOT.place();
    if !place.stays(horizon.now) {
        return None;
    }
    match fixed
        .slot(place.slot(), wall)
        .next_within(fixed.sequence_bits, horizon)
    {
        Answer::Issued(run) => {
            HOT.keep(place.after(run));
            saw(wall);
            Some(fixed.origin.id_at(place.slot(), run.tick, run.first))
        }
        Answer::Wait { .. } | Answer::Reserve { .. } => None,
    }
}

impl Fixed {
    /// The slot of this backend number.
    #[inline]
    fn slot(&self, number: u32, _wall: i64) -> &'static Slot {
        #[cfg(feature = "unprotected")]
        if let Some(slot) = crate::unprotected::slot(_wall) {
            return slot;
        }
        &self.slots[number as usize]
    }

    /// IDs of the slot in which the session is, or to which it goes.
    fn next_run(&self, horizon: Horizon, count: NonZeroU32, _wall: i64) -> (u32, Answer) {
        let before = HOT.place();
        #[cfg(feature = "unprotected")]
        if let Some(slot) = crate::unprotected::slot(_wall) {
            let answer = slot.next_run(self.sequence_bits, horizon, count);
            return (before.slot(), answer);
        }
        let (place, answer) = self.session.next_run(before, horizon, count);
        let slot = place.slot();
        if slot != before.slot() {
            // Before another ID is counted: what was counted is the slot's.
            stats::go_on(&self.shared.counters()[slot as usize]);
        }
        HOT.keep(place);
        (slot, answer)
    }

    /// How many microseconds are left of this time's tick.
    #[inline]
    fn left_of_tick(&self, wall: i64) -> u64 {
        let tick = i64::from(self.tick_micros);
        (tick - wall.wrapping_sub(self.epoch).rem_euclid(tick)).unsigned_abs()
    }

    /// Where this session begins.
    fn begin(&self) -> Place {
        #[cfg(feature = "unprotected")]
        if crate::unprotected::has_own_slot() {
            return Place::fixed(self.session.home());
        }
        self.session.begin()
    }

    /// The clock's tick; `None` outside of the layout's time.
    #[inline]
    fn tick_at(&self, wall: i64) -> Option<Tick> {
        let elapsed = u64::try_from(wall.wrapping_sub(self.epoch)).ok()?;
        self.origin.layout().tick_after(elapsed)
    }
}

#[inline]
fn saw(wall: i64) {
    if wall > HOT.seen.load(Relaxed) {
        HOT.seen.store(wall, Relaxed);
    }
}

/// Up to `count` IDs of one tick, reserved with one shared update; the caller
/// calls [`stats::issued`] for each that it hands out.
///
/// # Errors
/// Whatever keeps IDs from being issued; see [`Error`].
pub fn next_batch(function: pg_sys::Oid, count: NonZeroU32) -> Result<Batch, Error> {
    take(function, count)
}

/// IDs of one tick, ascending.
#[derive(Clone, Copy)]
pub struct Batch {
    origin: &'static Origin,
    slot: u32,
    run: Run,
}

impl Batch {
    /// How many there are; at least one.
    pub fn count(&self) -> u32 {
        self.run.count
    }

    /// The ID number `index`, counted from 0.
    pub fn id(&self, index: u32) -> SnowflakeId {
        debug_assert!(index < self.run.count);
        self.origin
            .id_at(self.slot, self.run.tick, self.run.first + index)
    }
}

/// What time it is.
#[derive(Clone, Copy)]
struct Moment {
    /// By the clocks.
    at: Instant,
    /// For making IDs.
    now: Tick,
    /// How many microseconds of the boot clock one of its microseconds takes:
    /// 1, or 2 while the wall clock is behind.
    speed: u64,
}

/// The slow path: resolves what is not yet resolved, reserves time, rides out
/// a step of the clock, waits.
#[cold]
#[inline(never)]
fn take(function: pg_sys::Oid, count: NonZeroU32) -> Result<Batch, Error> {
    stats::flush();
    let fixed = fixed()?;
    let layout = fixed.origin.layout();
    let mut patience = Patience::new();
    loop {
        let Some((mut lease, at)) = attached(fixed, function, &mut patience)? else {
            continue;
        };
        accepted_layout::check(fixed.shared, *layout, function, lease.sequence)?;
        let moment = match fixed.moment(at)? {
            Some(moment) => moment,
            None => {
                let reached = fixed.shared.pace().reached();
                patience.wait_for_clock(at.wall, reached, settings::max_clock_step_micros())?;
                continue;
            }
        };
        let horizon = Horizon {
            now: moment.now,
            max_borrow: lease.max_borrow,
            reserved: lease.reserved,
        };
        let (slot, answer) = fixed.next_run(horizon, count, at.wall);
        match answer {
            Answer::Issued(run) => {
                saw(at.wall);
                if run.tick >= lease.refill {
                    refill(fixed, &mut lease, moment, run.tick)?;
                }
                lease.keep();
                return Ok(Batch {
                    origin: &fixed.origin,
                    slot,
                    run,
                });
            }
            Answer::Reserve { tick } => {
                let wait_ms = patience.left_ms();
                let reserved = reserve(fixed, &lease, moment, Some(tick), wait_ms)?;
                fixed.settle(reserved, &mut lease, moment, &mut patience)?;
                lease.keep();
            }
            Answer::Wait { until } => {
                let needed = (until.get() - moment.now.get())
                    .saturating_mul(u64::from(fixed.tick_micros))
                    .saturating_mul(moment.speed);
                let next = Tick::new(until.get().saturating_add(lease.max_borrow));
                log::waiting(fixed.shared, at, needed);
                patience.wait(
                    i64::try_from(needed).unwrap_or(i64::MAX),
                    |needed_ms, max_wait_ms| Error::WaitTooLong {
                        wall: at.wall,
                        next: clock::micros(layout.time_of(next)),
                        needed_ms,
                        max_wait_ms,
                    },
                )?;
            }
        }
    }
}

/// What is reserved, with this database's mark read by this server run, and
/// the instant; `None` to try again after a wait.
fn attached(
    fixed: &Fixed,
    function: pg_sys::Oid,
    patience: &mut Patience,
) -> Result<Option<(Lease, Instant)>, Error> {
    let mut lease = lease(fixed, function)?;
    let at = clock::both();
    if lease.reserved == Tick::default() {
        let moment = Moment {
            at,
            now: Tick::default(),
            speed: 1,
        };
        let reserved = reserve(fixed, &lease, moment, None, patience.left_ms())?;
        if !fixed.settle(reserved, &mut lease, moment, patience)? {
            return Ok(None);
        }
    }
    Ok(Some((lease, at)))
}

impl Fixed {
    /// What time it is for making IDs; `None` where the clock is too far behind.
    fn moment(&self, at: Instant) -> Result<Option<Moment>, Error> {
        let pace = self.shared.pace();
        let layout = self.origin.layout();
        #[cfg(feature = "unprotected")]
        if crate::unprotected::is("clock") {
            let now = self.tick_at(at.wall).unwrap_or_default();
            return Ok(Some(Moment { at, now, speed: 1 }));
        }
        // What other processes may not know: the time that this one saw before
        // the clock stepped back.
        pace.note(HOT.seen.load(Relaxed), at.boot);
        let limits = Limits {
            max_step: settings::max_clock_step_micros(),
            unseen: i64::try_from(settings::lease_micros()).unwrap_or(i64::MAX),
            earliest: self.epoch,
        };
        let (time, speed) = match pace.now(at.wall, at.boot, limits) {
            Now::Wall(time) => (time, 1),
            Now::Slewed(time) => (time, 2),
            Now::Behind { .. } => return Ok(None),
            Now::Ahead { expected } => {
                return Err(Error::ClockAhead {
                    wall: at.wall,
                    expected,
                });
            }
        };
        log::clock(self.shared, at, time);
        let now = layout
            .tick_at(clock::time(time))
            .map_err(|error| match error {
                TimeError::BeforeEpoch { .. } => Error::BeforeEpoch {
                    wall: clock::time(at.wall),
                    epoch: layout.epoch(),
                },
                TimeError::AfterEnd { .. } => Error::PastEnd {
                    end: layout.expires_at(),
                },
            })?;
        Ok(Some(Moment { at, now, speed }))
    }

    /// Takes over what was reserved, or waits a while for what is in the way of
    /// it; `true` where something was reserved.
    fn settle(
        &self,
        reserved: Reserved,
        lease: &mut Lease,
        moment: Moment,
        patience: &mut Patience,
    ) -> Result<bool, Error> {
        match reserved {
            Reserved::Until(bound) => {
                lease.set_reserved(bound, moment.speed);
                return Ok(true);
            }
            Reserved::Raised => {
                check_for_interrupts!();
            }
            Reserved::Busy => patience.wait_for_mover()?,
            Reserved::Locked => return Err(patience.mark_locked()),
            Reserved::SetAhead(bound) => {
                let wall = moment.at.wall;
                let set_to = clock::micros(self.origin.layout().time_of(bound));
                let lease = i64::try_from(settings::lease_micros()).unwrap_or(i64::MAX);
                let needed = set_to.saturating_sub(lease).saturating_sub(wall);
                patience.wait(needed, |_, _| Error::MarkSetAhead { wall, set_to })?;
            }
            Reserved::TooFarAhead(bound) => self.wait_for(bound, moment.at, patience)?,
        }
        Ok(false)
    }

    /// Waits for the clock to come near to a mark that is far ahead of it.
    fn wait_for(&self, bound: Tick, at: Instant, patience: &mut Patience) -> Result<(), Error> {
        let reached = clock::micros(self.origin.layout().time_of(bound));
        patience.wait_for_clock(at.wall, reached, settings::max_clock_step_micros())
    }

    /// The highest tick that slots may be raised to because somebody has set the
    /// mark: a lease ahead of the clock, or what has been reached anyway. From
    /// what has been reached no lease is counted: each `setval` would add one.
    fn highest_set(&self, wall: i64) -> Tick {
        let lease = i64::try_from(settings::lease_micros()).unwrap_or(i64::MAX);
        let highest = wall.saturating_add(lease).max(self.shared.pace().reached());
        self.origin
            .layout()
            .tick_at(clock::time(highest))
            .unwrap_or_default()
    }

    /// The highest tick that slots may be raised to.
    fn highest_accepted(&self, wall: i64) -> Tick {
        let layout = self.origin.layout();
        let Some(max_step) = settings::max_clock_step_micros() else {
            return layout.last_tick();
        };
        match layout.tick_at(clock::time(wall.saturating_add(max_step))) {
            Ok(tick) => tick,
            Err(TimeError::BeforeEpoch { .. }) => Tick::default(),
            Err(TimeError::AfterEnd { .. }) => layout.last_tick(),
        }
    }
}

/// Reserves more while there is some left: whoever comes first does it, the
/// others go on.
fn refill(fixed: &Fixed, lease: &mut Lease, moment: Moment, wanted: Tick) -> Result<(), Error> {
    // Some is left, so nothing is waited for.
    match reserve(fixed, lease, moment, Some(wanted), 0)? {
        Reserved::Until(bound) => lease.set_reserved(bound, moment.speed),
        // Ask again a little later, not for every ID.
        Reserved::Busy | Reserved::Locked => {
            let later = wanted
                .get()
                .saturating_add((lease.length_at(moment.speed) / 8).max(1));
            lease.refill = Tick::new(later).min(lease.reserved);
        }
        // Somebody has set the mark; the next ID sorts it out.
        Reserved::TooFarAhead(_) | Reserved::SetAhead(_) | Reserved::Raised => {
            lease.set_reserved(Tick::default(), 1);
        }
    }
    Ok(())
}

/// Reserves time beyond `wanted`, or finds that another process has.
fn reserve(
    fixed: &Fixed,
    lease: &Lease,
    moment: Moment,
    wanted: Option<Tick>,
    wait_ms: i64,
) -> Result<Reserved, Error> {
    let known = fixed.shared.bound_of(MarkKey::here(lease.sequence));
    let enough = |bound: Tick| bound > lease.reserved && wanted.is_none_or(|tick| bound > tick);
    if let Some(bound) = known.filter(|&bound| enough(bound)) {
        return Ok(Reserved::Until(bound));
    }
    mark::reserve(
        fixed.shared,
        &request(fixed, lease, moment, wanted, wait_ms),
    )
}

fn request(
    fixed: &Fixed,
    lease: &Lease,
    moment: Moment,
    wanted: Option<Tick>,
    wait_ms: i64,
) -> mark::Request {
    let Moment { at, now, speed } = moment;
    mark::Request {
        sequence: lease.sequence,
        server: fixed.server,
        lease: lease.length_at(speed),
        now,
        boot: at.boot,
        wanted,
        highest_accepted: fixed.highest_accepted(at.wall).max(now),
        highest_set: fixed.highest_set(at.wall),
        wait_ms,
    }
}

/// Sees to it that later IDs of this database are greater than `id`.
///
/// # Errors
/// [`Error::StartTooFarAhead`] where that is more than `max_clock_step` ahead of
/// the clock; else as [`next`].
pub fn start_after(function: pg_sys::Oid, id: i64) -> Result<(), Error> {
    let fixed = fixed()?;
    let layout: &Layout = fixed.origin.layout();
    let parts = SnowflakeId::new(id).ok_or(Error::NegativeId(id))?;
    layout
        .decode(parts)
        .map_err(|error| Error::IdOutsideLayout {
            id,
            bits: error.total_bits,
        })?;
    // The next tick: within the same one, slots of smaller numbers would still
    // make smaller IDs.
    let tick = Tick::new(layout.tick_of(parts).get() + 1);
    let mut patience = Patience::new();
    loop {
        // What is reserved is not asked for: that would wait for a mark that
        // somebody has set, which this accepts.
        let lease = lease(fixed, function)?;
        let at = clock::both();
        if tick > fixed.highest_accepted(at.wall) || tick > layout.last_tick() {
            return Err(Error::StartTooFarAhead {
                id,
                wall: at.wall,
                start: layout.time_of(tick),
            });
        }
        let moment = Moment {
            at,
            now: tick,
            speed: 1,
        };
        let request = request(fixed, &lease, moment, None, patience.left_ms());
        match mark::start_at(fixed.shared, &request, tick)? {
            Reserved::Until(_) => {
                // This process looks at the mark again, too.
                *GENERATOR.lock() = None;
                HOT.refill.store(0, Relaxed);
                return Ok(());
            }
            Reserved::TooFarAhead(bound) => fixed.wait_for(bound, at, &mut patience)?,
            Reserved::Locked => return Err(patience.mark_locked()),
            Reserved::Busy | Reserved::Raised | Reserved::SetAhead(_) => {
                patience.wait_for_mover()?;
            }
        }
    }
}

/// Takes what the wall clock says as right, however far it has jumped ahead.
/// `expected` is what the caller takes it to say, microseconds since 1970.
///
/// # Errors
/// [`Error::ClockNotAsExpected`] where the clock says something else by more
/// than a minute; [`Error::ClockBehind`] where it is IDs that are out that stand
/// in the way, which no acceptance can change.
pub fn accept_clock(expected: i64) -> Result<(), Error> {
    const CLOSE: i64 = 60_000_000;
    let shared = shared::get().ok_or(Error::NotPreloaded)?;
    let at = clock::both();
    if (i128::from(at.wall) - i128::from(expected)).unsigned_abs() > CLOSE as u128 {
        return Err(Error::ClockNotAsExpected {
            wall: at.wall,
            expected,
        });
    }
    let reached = shared.pace().reached();
    let behind = reached.saturating_sub(at.wall);
    if settings::max_clock_step_micros().is_some_and(|max| behind > max) {
        return Err(Error::ClockBehind {
            wall: at.wall,
            reached,
        });
    }
    shared.pace().begin(at.wall - at.boot);
    Ok(())
}

impl Lease {
    fn set_reserved(&mut self, reserved: Tick, speed: u64) {
        let half = self.length_at(speed) / 2;
        self.reserved = reserved;
        self.refill = Tick::new(reserved.get().saturating_sub(half));
    }

    /// How many ticks to reserve ahead. Less while the clock is behind: after a
    /// crash IDs begin above what was reserved, and with the whole lease each
    /// time, crashes in quick succession would take them ever further ahead.
    fn length_at(&self, speed: u64) -> u64 {
        if speed == 1 {
            self.length
        } else {
            (self.length / 8).max(2)
        }
    }

    /// Keeps it for the next call and for the way to an ID.
    fn keep(self) {
        *GENERATOR.lock() = Some(self);
        HOT.max_borrow.store(self.max_borrow, Relaxed);
        HOT.refill.store(self.refill.get(), Relaxed);
        // The relation cache may have forgotten the mark in the meantime.
        if MARK_CHANGED.load(Relaxed) {
            HOT.refill.store(0, Relaxed);
        }
    }
}

/// What this process has resolved for good.
fn fixed() -> Result<&'static Fixed, Error> {
    if let Some(fixed) = FIXED.get() {
        return Ok(fixed);
    }
    let identity = settings::fixed().ok_or(Error::NotPreloaded)?;
    let shared = shared::get().ok_or(Error::NotPreloaded)?;
    let node = identity.node.ok_or(Error::NodeNotSet)?;
    // Recovery ends once, so a process that has seen its end need not ask again.
    // SAFETY: reads shared memory only.
    if unsafe { pg_sys::RecoveryInProgress() } {
        return Err(Error::InRecovery);
    }
    let layout = identity.layout;
    let backend = my_backend_number(layout.max_backend());
    let slots = shared.slots();
    let fixed = Fixed {
        shared,
        server: Server { layout, node },
        slots,
        session: Session::new(&layout, slots, backend),
        origin: Origin::new(layout, node, backend).map_err(Error::FieldOutOfRange)?,
        sequence_bits: layout.sequence_bits(),
        epoch: clock::micros(layout.epoch()),
        tick_micros: layout.tick_micros(),
    };
    watch_the_relation_cache();
    stats::init(&shared.counters()[backend as usize]);
    HOT.keep(fixed.begin());
    Ok(FIXED.get_or_init(|| fixed))
}

/// What is reserved, or where something changed, what has to be.
fn lease(fixed: &Fixed, function: pg_sys::Oid) -> Result<Lease, Error> {
    let mark_changed = MARK_CHANGED.swap(false, Relaxed);
    let settings_changed = settings::take_changed();
    let kept = *GENERATOR.lock();
    if let Some(lease) = kept.filter(|_| !mark_changed && !settings_changed) {
        return Ok(lease);
    }
    // Not to be kept if what follows fails.
    *GENERATOR.lock() = None;
    HOT.refill.store(0, Relaxed);

    let sequence = mark::locate(function)?;
    MARK.store(sequence.to_u32(), Relaxed);
    let tick_micros = u64::from(fixed.tick_micros);
    let mut lease = Lease {
        sequence,
        max_borrow: settings::max_borrow_micros() / tick_micros,
        length: settings::lease_micros().div_ceil(tick_micros).max(2),
        reserved: Tick::default(),
        refill: Tick::default(),
    };
    // Where this server run has not read the mark yet nothing is reserved, and
    // the first ID reads it.
    if let Some(bound) = fixed.shared.bound_of(MarkKey::here(sequence)) {
        lease.set_reserved(bound, 1);
    }
    Ok(lease)
}

/// The backend number: the process's number modulo the numbers there are.
fn my_backend_number(max_backend: u32) -> u32 {
    // SAFETY: set once when the process started.
    let pid = unsafe { pg_sys::MyProcPid };
    pid as u32 & max_backend
}

fn watch_the_relation_cache() {
    // Not a `Once`, which an error of Postgres in between would poison.
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.load(Relaxed) {
        return;
    }
    // SAFETY: registered once; the callback stores to atomics.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(relation_changed), pg_sys::Datum::from(0)) }
    DONE.store(true, Relaxed);
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_changed(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    // 0 stands for every relation.
    if relation == pg_sys::InvalidOid || relation.to_u32() == MARK.load(Relaxed) {
        MARK_CHANGED.store(true, Relaxed);
        HOT.refill.store(0, Relaxed);
    }
}

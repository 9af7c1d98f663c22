//! The per-backend generator: what this process has resolved, asked for an ID.
//!
//! The way to an ID ([`next`]) reads the clock once and asks its slot with one
//! compare-and-swap; it takes no lock and calls nothing in Postgres. What it
//! needs never changes ([`Fixed`]) or is a word of its own ([`Hot`]). The slot
//! is told that time ends where the reservation is half used up, so the one
//! comparison that it makes anyway also finds the moment to reserve more.
//!
//! Whatever the slot doesn't answer with an ID goes to [`take`]. That keeps
//! what it resolved behind a mutex, which it never holds while it looks things
//! up, reserves or waits: an error of Postgres may come out of any of these.
#![allow(unsafe_code)] // the process's number and the invalidation callback

use std::num::NonZeroU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};
use std::sync::{Once, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;
use pgrx::{pg_guard, pg_sys};
use snowflake_id::{Answer, Horizon, Now, Origin, Run, Slot, SnowflakeId, Tick, TimeError};

use crate::error::Error;
use crate::mark::{self, Reserved};
use crate::shared::{self, MarkKey, Shared};
use crate::{clock, settings, wait};

/// What stays the same as long as the process lives.
struct Fixed {
    shared: Shared,
    slot: &'static Slot,
    origin: Origin,
    /// The layout again, as plain numbers.
    sequence_bits: u32,
    epoch: i64,
    tick_micros: u32,
    last_tick: u64,
}

static FIXED: OnceLock<Fixed> = OnceLock::new();

/// What changes, for the way to an ID. A process has one thread, so these are
/// plain loads and stores; they are atomics to be shared statics without a
/// lock, whose two locked instructions would cost as much as the slot's swap.
struct Hot {
    /// The tick from which on [`take`] has to be asked: the reservation is half
    /// used up, or (0) something has to be resolved first.
    refill: AtomicU64,
    /// How many ticks a burst may run ahead.
    max_borrow: AtomicU64,
    /// The highest time that the wall clock has shown when an ID was made.
    seen: AtomicI64,
    /// The last ID that this session got; negative before the first.
    last: AtomicI64,
}

static HOT: Hot = Hot {
    refill: AtomicU64::new(0),
    max_borrow: AtomicU64::new(0),
    seen: AtomicI64::new(i64::MIN),
    last: AtomicI64::new(-1),
};

/// What [`take`] has resolved and reserved. Unlike the standard library's,
/// this mutex does not poison when an error of Postgres passes through.
static GENERATOR: Mutex<Option<Lease>> = Mutex::new(None);

#[derive(Clone, Copy)]
struct Lease {
    /// The mark's sequence.
    sequence: pg_sys::Oid,
    /// How many ticks a burst may run ahead.
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
    remember(id);
    Ok(id)
}

/// An ID where nothing else is to be done.
#[inline]
fn next_at_once() -> Option<SnowflakeId> {
    let fixed = FIXED.get()?;
    if settings::changed() {
        return None;
    }
    let wall = clock::wall();
    let horizon = Horizon {
        now: fixed.tick_at(wall)?,
        max_borrow: HOT.max_borrow.load(Relaxed),
        reserved: Tick::new(HOT.refill.load(Relaxed)),
    };
    match fixed.slot.next(fixed.sequence_bits, horizon) {
        Answer::Issued(run) => {
            saw(wall);
            Some(fixed.origin.id(run.tick, run.first))
        }
        Answer::Wait { .. } | Answer::Reserve { .. } => None,
    }
}

impl Fixed {
    /// The clock's tick; `None` outside of the layout's time.
    #[inline]
    fn tick_at(&self, wall: i64) -> Option<Tick> {
        let elapsed = u64::try_from(wall.wrapping_sub(self.epoch)).ok()?;
        // A division by a constant is a multiplication, and nearly every
        // layout has the tick of a millisecond.
        let tick = match self.tick_micros {
            1_000 => elapsed / 1_000,
            micros => elapsed / u64::from(micros),
        };
        (tick <= self.last_tick).then_some(Tick::new(tick))
    }
}

#[inline]
fn saw(wall: i64) {
    if wall > HOT.seen.load(Relaxed) {
        HOT.seen.store(wall, Relaxed);
    }
}

/// Up to `count` IDs of one tick, reserved with one shared update; the caller
/// calls [`remember`] for each that it hands out.
///
/// # Errors
/// Whatever keeps IDs from being issued; see [`Error`].
pub fn next_batch(function: pg_sys::Oid, count: NonZeroU32) -> Result<Batch, Error> {
    take(function, count)
}

/// Takes note of the last ID that this session got.
#[inline]
pub fn remember(id: SnowflakeId) {
    HOT.last.store(id.get(), Relaxed);
}

/// The last ID that this session got.
pub fn last() -> Option<SnowflakeId> {
    SnowflakeId::new(HOT.last.load(Relaxed))
}

/// IDs of one tick, ascending.
#[derive(Clone, Copy)]
pub struct Batch {
    origin: &'static Origin,
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
        self.origin.id(self.run.tick, self.run.first + index)
    }
}

/// One instant by all clocks.
#[derive(Clone, Copy)]
struct Moment {
    /// What time it is for making IDs.
    now: Tick,
    /// The wall clock, microseconds since 1970.
    wall: i64,
    /// The clock that cannot step, microseconds.
    boot: i64,
}

/// The slow path: resolves what is not yet resolved, reserves time, rides out
/// a step of the clock, waits.
#[cold]
#[inline(never)]
fn take(function: pg_sys::Oid, count: NonZeroU32) -> Result<Batch, Error> {
    let fixed = fixed()?;
    let pace = fixed.shared.pace();
    let layout = fixed.origin.layout();
    let mut patience = Patience::new();
    loop {
        let mut lease = lease(fixed, function)?;
        let wall = clock::wall();
        let boot = clock::boot();
        let max_step = settings::max_clock_step_micros();
        // What other processes may not know: the time that this one saw before
        // the clock stepped back.
        pace.note(HOT.seen.load(Relaxed), boot);
        let (time, speed) = match pace.now(wall, boot, max_step) {
            Now::Wall(time) => (time, 1),
            Now::Slewed(time) => (time, 2),
            Now::Behind { reached } => {
                patience.wait_for_clock(wall, reached, max_step)?;
                continue;
            }
        };
        let now = layout
            .tick_at(clock::time(time))
            .map_err(|error| match error {
                TimeError::BeforeEpoch { .. } => Error::BeforeEpoch {
                    wall: clock::time(wall),
                    epoch: layout.epoch(),
                },
                TimeError::AfterEnd { .. } => Error::PastEnd {
                    end: layout.expires_at(),
                },
            })?;
        let horizon = Horizon {
            now,
            max_borrow: lease.max_borrow,
            reserved: lease.reserved,
        };
        match fixed.slot.next_run(fixed.sequence_bits, horizon, count) {
            Answer::Issued(run) => {
                saw(wall);
                if run.tick >= lease.refill {
                    refill(fixed, &mut lease, Moment { now, wall, boot }, run.tick)?;
                }
                lease.keep();
                return Ok(Batch {
                    origin: &fixed.origin,
                    run,
                });
            }
            Answer::Reserve { tick } => {
                match reserve(fixed, &lease, Moment { now, wall, boot }, tick)? {
                    Reserved::Until(bound) => lease.set_reserved(bound),
                    Reserved::Raised => {}
                    Reserved::Busy => wait::sleep(1),
                    Reserved::TooFarAhead(bound) => {
                        let reached = clock::micros(layout.time_of(bound));
                        patience.wait_for_clock(wall, reached, max_step)?;
                    }
                }
                lease.keep();
            }
            Answer::Wait { until } => {
                let needed = clock::micros(layout.time_of(until)).saturating_sub(time) * speed;
                let next = Tick::new(until.get().saturating_add(lease.max_borrow));
                patience.wait(needed, |needed_ms, max_wait_ms| Error::WaitTooLong {
                    wall,
                    next: clock::micros(layout.time_of(next)),
                    needed_ms,
                    max_wait_ms,
                })?;
            }
        }
    }
}

/// Reserves more while there is some left: whoever comes first does it, the
/// others go on.
fn refill(fixed: &Fixed, lease: &mut Lease, at: Moment, wanted: Tick) -> Result<(), Error> {
    match reserve(fixed, lease, at, wanted)? {
        Reserved::Until(bound) => lease.set_reserved(bound),
        // Ask again a little later, not for every ID.
        Reserved::Busy => {
            let later = wanted.get().saturating_add((lease.length / 8).max(1));
            lease.refill = Tick::new(later).min(lease.reserved);
        }
        // Somebody has set the mark; the next ID sorts it out.
        Reserved::TooFarAhead(_) | Reserved::Raised => lease.set_reserved(Tick::default()),
    }
    Ok(())
}

/// Reserves time beyond `wanted`, or finds that another process has.
fn reserve(fixed: &Fixed, lease: &Lease, at: Moment, wanted: Tick) -> Result<Reserved, Error> {
    let known = fixed.shared.bound_of(MarkKey::here(lease.sequence));
    if let Some(bound) = known.filter(|&bound| bound > lease.reserved && bound > wanted) {
        return Ok(Reserved::Until(bound));
    }
    let layout = *fixed.origin.layout();
    let accepted = settings::max_clock_step_micros()
        .map(|max| layout.tick_at(clock::time(at.wall.saturating_add(max))));
    let highest_accepted = match accepted {
        Some(Ok(tick)) => tick.max(at.now),
        Some(Err(TimeError::BeforeEpoch { .. })) => at.now,
        Some(Err(TimeError::AfterEnd { .. })) | None => layout.last_tick(),
    };
    let request = mark::Request {
        sequence: lease.sequence,
        layout,
        lease: lease.length,
        now: at.now,
        boot: at.boot,
        wanted,
        highest_accepted,
    };
    mark::reserve(fixed.shared, &request)
}

impl Lease {
    fn set_reserved(&mut self, reserved: Tick) {
        self.reserved = reserved;
        self.refill = Tick::new(reserved.get().saturating_sub(self.length / 2));
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
    let fixed = Fixed {
        shared,
        slot: slot(shared, backend),
        origin: Origin::new(layout, node, backend).map_err(Error::FieldOutOfRange)?,
        sequence_bits: layout.sequence_bits(),
        epoch: clock::micros(layout.epoch()),
        tick_micros: layout.tick_micros(),
        last_tick: layout.last_tick().get(),
    };
    watch_the_relation_cache();
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
        lease.set_reserved(bound);
    }
    Ok(lease)
}

/// The backend number: the process's number modulo the numbers there are.
fn my_backend_number(max_backend: u32) -> u32 {
    // SAFETY: set once when the process started.
    let pid = unsafe { pg_sys::MyProcPid };
    pid as u32 & max_backend
}

#[cfg(not(feature = "unprotected"))]
fn slot(shared: Shared, backend: u32) -> &'static Slot {
    &shared.slots()[backend as usize]
}

/// Where a test says so, as other generators have it: in this process alone.
#[cfg(feature = "unprotected")]
fn slot(shared: Shared, backend: u32) -> &'static Slot {
    static MINE: Slot = Slot::new();
    if settings::unprotected("slot") {
        &MINE
    } else {
        &shared.slots()[backend as usize]
    }
}

fn watch_the_relation_cache() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: registered once; the callback stores to atomics.
        unsafe {
            pg_sys::CacheRegisterRelcacheCallback(Some(relation_changed), pg_sys::Datum::from(0))
        }
    });
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_changed(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    // 0 stands for every relation.
    if relation == pg_sys::InvalidOid || relation.to_u32() == MARK.load(Relaxed) {
        MARK_CHANGED.store(true, Relaxed);
        HOT.refill.store(0, Relaxed);
    }
}

/// How often a long wait looks at the clocks again, milliseconds.
const LONGEST_SLEEP_MS: i64 = 100;

/// How long one call may still wait.
struct Patience {
    since: Instant,
    max_wait_ms: i32,
}

impl Patience {
    fn new() -> Self {
        Patience {
            since: Instant::now(),
            max_wait_ms: settings::max_wait_ms(),
        }
    }

    /// Waits a while for something that takes `needed` microseconds, or fails
    /// at once where that is bound to take too long.
    fn wait(&mut self, needed: i64, error: impl FnOnce(i64, i32) -> Error) -> Result<(), Error> {
        let needed_ms = needed.max(0).saturating_add(999) / 1_000;
        let waited = i64::try_from(self.since.elapsed().as_micros()).unwrap_or(i64::MAX);
        let limit = i64::from(self.max_wait_ms) * 1_000;
        if waited.saturating_add(needed) > limit {
            return Err(error(needed_ms, self.max_wait_ms));
        }
        // Not in one piece: what is waited for may come earlier.
        wait::sleep(needed_ms.min(LONGEST_SLEEP_MS));
        Ok(())
    }

    /// Waits for a wall clock that is behind by more than may be ridden out.
    fn wait_for_clock(
        &mut self,
        wall: i64,
        reached: i64,
        max_step: Option<i64>,
    ) -> Result<(), Error> {
        let needed = reached
            .saturating_sub(wall)
            .saturating_sub(max_step.unwrap_or(0));
        self.wait(needed, |_, _| Error::ClockBehind { wall, reached })
    }
}

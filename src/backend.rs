//! The per-backend generator: what this process has resolved, asked for an ID.
//!
//! The way to an ID takes the process's mutex, reads the clock once, and asks
//! its slot with one compare-and-swap; it calls nothing in Postgres. The slot
//! is told that time ends where the reservation is half used up, so the one
//! check that the slot makes anyway also finds the moment to reserve more.
//! Whatever the slot doesn't answer with an ID goes to [`take`], which holds
//! no lock while it looks things up, reserves, or waits.
#![allow(unsafe_code)] // the process's number and the invalidation callback

use std::num::NonZeroU32;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use pgrx::{pg_guard, pg_sys};
use snowflake_id::{Answer, Horizon, Now, Origin, Run, Slot, SnowflakeId, Tick, Time, TimeError};

use crate::error::Error;
use crate::mark::{self, Reserved};
use crate::shared::{self, MarkKey, Shared};
use crate::{clock, settings, wait};

/// This process's generator. One thread only ever locks it; the mutex is what
/// makes that visible to the compiler, and unlike the standard library's it
/// does not poison when a Postgres error passes through.
static GENERATOR: Mutex<Generator> = Mutex::new(Generator {
    ready: None,
    last: None,
});

/// The OID of the mark's sequence that is in use, for [`relation_changed`].
static MARK: AtomicU32 = AtomicU32::new(0);

/// Set when the relation cache forgets the mark: the extension may have been
/// dropped and created again.
static MARK_CHANGED: AtomicBool = AtomicBool::new(false);

struct Generator {
    ready: Option<Ready>,
    /// The last ID that this session got.
    last: Option<SnowflakeId>,
}

/// What one call after the other needs.
#[derive(Clone, Copy)]
struct Ready {
    shared: Shared,
    slot: &'static Slot,
    origin: Origin,
    sequence: pg_sys::Oid,
    /// Layout, flattened for the hot path.
    sequence_bits: u32,
    epoch: i64,
    tick_micros: i64,
    last_tick: u64,
    max_borrow: u64,
    lease: u64,
    /// The first tick that is not reserved.
    reserved: Tick,
    /// The tick from which on more should be reserved.
    refill: Tick,
    /// The highest time the wall clock has shown this process.
    seen: i64,
}

impl Ready {
    /// The clock's tick; `None` outside of the layout's time.
    #[inline]
    fn tick_at(&self, wall: i64) -> Option<Tick> {
        let elapsed = u64::try_from(wall.wrapping_sub(self.epoch)).ok()?;
        // A division by a constant is a multiplication; nearly every layout
        // has the tick of a millisecond.
        let tick = match self.tick_micros {
            1_000 => elapsed / 1_000,
            micros => elapsed / micros as u64,
        };
        (tick <= self.last_tick).then_some(Tick::new(tick))
    }

    fn set_reserved(&mut self, reserved: Tick) {
        self.reserved = reserved;
        self.refill = Tick::new(reserved.get().saturating_sub(self.lease / 2));
    }
}

impl Generator {
    /// The hot path: an ID where nothing else is to be done.
    #[inline]
    fn next(&mut self) -> Option<SnowflakeId> {
        let ready = self.ready.as_mut()?;
        if settings::changed() || MARK_CHANGED.load(Ordering::Relaxed) {
            return None;
        }
        let wall = clock::wall();
        let horizon = Horizon {
            now: ready.tick_at(wall)?,
            max_borrow: ready.max_borrow,
            reserved: ready.refill,
        };
        match ready.slot.next(ready.sequence_bits, horizon) {
            Answer::Issued(run) => {
                ready.seen = ready.seen.max(wall);
                let id = ready.origin.id(run.tick, run.first);
                self.last = Some(id);
                Some(id)
            }
            Answer::Wait { .. } | Answer::Reserve { .. } => None,
        }
    }
}

/// The next ID of this session. `function` names the SQL function that was
/// called; it is asked only where the mark has to be found.
///
/// # Errors
/// Whatever keeps IDs from being issued; see [`Error`].
#[inline]
pub fn next(function: impl FnOnce() -> pg_sys::Oid) -> Result<SnowflakeId, Error> {
    let quick = GENERATOR.lock().next();
    match quick {
        Some(id) => Ok(id),
        None => {
            let batch = take(function(), NonZeroU32::MIN)?;
            let id = batch.id(0);
            remember(id);
            Ok(id)
        }
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
pub fn remember(id: SnowflakeId) {
    GENERATOR.lock().last = Some(id);
}

/// The last ID that this session got.
pub fn last() -> Option<SnowflakeId> {
    GENERATOR.lock().last
}

/// IDs of one tick, ascending.
#[derive(Clone, Copy)]
pub struct Batch {
    origin: Origin,
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

/// The slow path: resolves what is not yet resolved, reserves time, rides out
/// a step of the clock, waits.
#[cold]
#[inline(never)]
fn take(function: pg_sys::Oid, count: NonZeroU32) -> Result<Batch, Error> {
    let mut patience = Patience::new();
    loop {
        let mut ready = ready(function)?;
        let wall = clock::wall();
        let boot = clock::boot();
        let pace = ready.shared.pace();
        let layout = *ready.origin.layout();
        // What other processes don't know yet: the time this one saw before
        // the clock stepped back.
        pace.note(ready.seen, boot);
        ready.seen = ready.seen.max(wall);
        let max_step = settings::max_clock_step_micros();
        let (time, speed) = match pace.now(wall, boot, max_step) {
            Now::Wall(time) => (time, 1),
            Now::Slewed(time) => (time, 2),
            Now::Behind { reached } => {
                patience.wait_for_clock(wall, reached, max_step)?;
                continue;
            }
        };
        let now = layout.tick_at(at(time)).map_err(|error| match error {
            TimeError::BeforeEpoch { .. } => Error::BeforeEpoch {
                wall: at(wall),
                epoch: layout.epoch(),
            },
            TimeError::AfterEnd { .. } => Error::PastEnd {
                end: layout.expires_at(),
            },
        })?;
        let horizon = Horizon {
            now,
            max_borrow: ready.max_borrow,
            reserved: ready.reserved,
        };
        match ready.slot.next_run(ready.sequence_bits, horizon, count) {
            Answer::Issued(run) => {
                if run.tick >= ready.refill {
                    refill(&mut ready, now, run.tick, wall, max_step)?;
                }
                GENERATOR.lock().ready = Some(ready);
                return Ok(Batch {
                    origin: ready.origin,
                    run,
                });
            }
            Answer::Reserve { tick } => {
                match reserve(&ready, now, tick, wall, max_step)? {
                    Reserved::Until(bound) => ready.set_reserved(bound),
                    // The slots now begin at the mark, so that is the time
                    // that has been reached.
                    Reserved::Raised(bound) => pace.note(micros(layout.time_of(bound)), boot),
                    Reserved::Busy => wait::sleep(1),
                    Reserved::TooFarAhead(bound) => {
                        patience.wait_for_clock(wall, micros(layout.time_of(bound)), max_step)?;
                    }
                }
                GENERATOR.lock().ready = Some(ready);
            }
            Answer::Wait { until } => {
                let needed = micros(layout.time_of(until)).saturating_sub(time) * speed;
                let next = until.get().saturating_add(ready.max_borrow);
                patience.wait(needed, |needed_ms, max_wait_ms| Error::WaitTooLong {
                    wall,
                    next: micros(layout.time_of(Tick::new(next))),
                    needed_ms,
                    max_wait_ms,
                })?;
            }
        }
    }
}

/// Reserves more while there is some left: whoever comes first does it, the
/// others go on.
fn refill(
    ready: &mut Ready,
    now: Tick,
    wanted: Tick,
    wall: i64,
    max_step: Option<i64>,
) -> Result<(), Error> {
    match reserve(ready, now, wanted, wall, max_step)? {
        Reserved::Until(bound) => ready.set_reserved(bound),
        // Ask again a little later, not for every ID.
        Reserved::Busy => {
            let later = wanted.get().saturating_add((ready.lease / 8).max(1));
            ready.refill = Tick::new(later).min(ready.reserved);
        }
        // Somebody has set the mark; the next ID sorts it out.
        Reserved::TooFarAhead(_) | Reserved::Raised(_) => ready.set_reserved(Tick::default()),
    }
    Ok(())
}

/// Reserves time beyond `wanted`, or finds that another process has.
fn reserve(
    ready: &Ready,
    now: Tick,
    wanted: Tick,
    wall: i64,
    max_step: Option<i64>,
) -> Result<Reserved, Error> {
    let known = ready.shared.bound_of(MarkKey::here(ready.sequence));
    if let Some(bound) = known.filter(|&bound| bound > ready.reserved && bound > wanted) {
        return Ok(Reserved::Until(bound));
    }
    let layout = *ready.origin.layout();
    let highest_accepted = match max_step.map(|max| layout.tick_at(at(wall.saturating_add(max)))) {
        Some(Ok(tick)) => tick.max(now),
        Some(Err(TimeError::BeforeEpoch { .. })) => now,
        Some(Err(TimeError::AfterEnd { .. })) | None => layout.last_tick(),
    };
    let request = mark::Request {
        sequence: ready.sequence,
        layout,
        lease: ready.lease,
        now,
        wanted,
        highest_accepted,
    };
    mark::reserve(ready.shared, &request)
}

/// What this process has resolved, resolved anew where something changed.
fn ready(function: pg_sys::Oid) -> Result<Ready, Error> {
    let mark_changed = MARK_CHANGED.swap(false, Ordering::Relaxed);
    let settings_changed = settings::take_changed();
    let kept = GENERATOR.lock().ready;
    match kept {
        Some(ready) if !mark_changed && !settings_changed => Ok(ready),
        _ => {
            // Not to be kept if what follows fails.
            GENERATOR.lock().ready = None;
            resolve(function, kept.map_or(i64::MIN, |ready| ready.seen))
        }
    }
}

fn resolve(function: pg_sys::Oid, seen: i64) -> Result<Ready, Error> {
    let identity = settings::fixed().ok_or(Error::NotPreloaded)?;
    let shared = shared::get().ok_or(Error::NotPreloaded)?;
    let node = identity.node.ok_or(Error::NodeNotSet)?;
    // SAFETY: reads shared memory only. Recovery ends once, so a process that
    // has seen its end need not ask again.
    if unsafe { pg_sys::RecoveryInProgress() } {
        return Err(Error::InRecovery);
    }
    watch_the_relation_cache();
    let sequence = mark::locate(function)?;
    MARK.store(sequence.to_u32(), Ordering::Relaxed);

    let layout = identity.layout;
    let backend = my_backend_number(layout.max_backend());
    let origin = Origin::new(layout, node, backend).map_err(Error::FieldOutOfRange)?;
    let ticks = |micros: i64| (micros as u64).div_ceil(u64::from(layout.tick_micros()));
    let mut ready = Ready {
        shared,
        slot: slot(shared, backend),
        origin,
        sequence,
        sequence_bits: layout.sequence_bits(),
        epoch: micros(layout.epoch()),
        tick_micros: i64::from(layout.tick_micros()),
        last_tick: layout.last_tick().get(),
        max_borrow: settings::max_borrow_micros() as u64 / u64::from(layout.tick_micros()),
        lease: ticks(settings::lease_micros()).max(2),
        reserved: Tick::default(),
        refill: Tick::default(),
        seen,
    };
    // Where this server run has not read the mark yet nothing is reserved, and
    // the first ID reads it.
    if let Some(bound) = shared.bound_of(MarkKey::here(sequence)) {
        ready.set_reserved(bound);
    }
    Ok(ready)
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

/// As other generators have it, where a test says so: in this process alone.
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
        // SAFETY: registered once; the callback stores to an atomic.
        unsafe {
            pg_sys::CacheRegisterRelcacheCallback(Some(relation_changed), pg_sys::Datum::from(0))
        }
    });
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_changed(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    // 0 stands for every relation.
    if relation == pg_sys::InvalidOid || relation.to_u32() == MARK.load(Ordering::Relaxed) {
        MARK_CHANGED.store(true, Ordering::Relaxed);
    }
}

fn at(unix_micros: i64) -> Time {
    Time::from_unix_micros(unix_micros.into())
}

/// Microseconds since 1970, at most what 64 bits hold.
fn micros(time: Time) -> i64 {
    i64::try_from(time.unix_micros()).unwrap_or(i64::MAX)
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

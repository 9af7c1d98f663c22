//! The mark: a bound in the write-ahead log, below which a database's IDs stay.
//!
//! A server reserves time by moving the mark ahead before it issues IDs up to there. The record is
//! flushed before any ID below the new bound is issued: a row with an ID is always later in the log
//! than the mark above it. So the mark is carried by all that carries the rows: crash recovery, a
//! standby, a base backup.
//!
//! The server that wrote the page last has left its start number:
//!
//! | start number | who wrote the page | what it means |
//! |---|---|---|
//! | this server's | this server since its start | nothing that the slots don't know: they issued all IDs below it |
//! | another negative number | the server before its start, or the server that this one is a copy of | IDs below it may have been issued; every slot is raised to it |
//! | 0 or more | a restored dump, or a role that set it | the same, within a lease: the slots belong to all databases |
//!
//! A mark that was set further ahead than a lease raises no slot: IDs of its own database wait until
//! a superuser confirms it ([`start_at`]). A mark that was set to less than what is reserved is
//! moved up again with the next reservation; until then the floor has the bound.

use std::sync::atomic::Ordering::Relaxed;

use super::{
    Clocks, DrawingProcess, ErrorOf, LogPosition, NotOpened, Process, ServerSettings, Storage,
    floor, identity_of, layout_of, wait,
};
use crate::{Layout, SlewedClock, SnowflakeId, Tick, TimeError, WallTime};

/// What is written on the mark's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MarkPage {
    /// No ID at or above it has been issued in this database.
    pub bound_id: SnowflakeId,
    /// Who wrote it.
    pub start_number: i64,
}

impl MarkPage {
    /// Of a database without IDs.
    pub const NEW: Self = Self {
        bound_id: SnowflakeId::ZERO,
        start_number: 0,
    };

    /// Whether it was set by hand or restored: start numbers are negative.
    pub fn is_set(&self) -> bool {
        self.start_number >= 0 && self.bound_id > SnowflakeId::ZERO
    }
}

/// Within which limits to read or move the mark.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// How many ticks to reserve ahead.
    pub ticks_ahead: u64,
    /// The highest tick that slots may be raised to by a mark that was set; at least the time that
    /// has been reached.
    pub highest_set: Tick,
    /// The highest tick that slots may be raised to. A mark above it means that the clock is too far
    /// behind.
    pub highest_accepted: Tick,
    /// How long to wait for the lock on the sequence, milliseconds; 0 not to wait.
    pub wait_ms: i64,
}

/// Why nothing was reserved.
pub enum NotReserved<E> {
    /// Another process is moving the mark, or, in a call that does not wait, has locked it.
    Busy,
    /// The sequence was locked for as long as the call may wait.
    Locked,
    /// The mark was set: IDs up to this tick may have been issued, which is further than a mark that
    /// was set may raise slots. Nothing was changed.
    SetAhead(Tick),
    /// IDs up to this tick may have been issued, which is further than any mark may raise slots.
    /// Nothing was changed.
    TooFarAhead(Tick),
    /// The mark was set. Every slot was raised to it, which has changed the time that IDs are
    /// generated with.
    Raised,
    /// The layout has no tick left to reserve.
    PastEnd,
    /// An error of the call.
    Failed(E),
}

/// Reads the mark; returns the first tick that is not reserved. If this process is the first to read
/// it since the server's start, raises every slot to it.
///
/// # Errors
/// [`NotReserved`]
pub async fn read<P: Process>(
    process: &P,
    request: &Request,
) -> Result<Tick, NotReserved<ErrorOf<P>>> {
    let mut mark = Mark::lock(process, request).await?;
    let Known { bound, page_is_low } = mark.known(request.highest_accepted).await?;
    if !page_is_low {
        return Ok(bound);
    }
    let target = mark.ticks_ahead_of(bound);
    mark.move_to(target.max(bound)).await
}

/// Moves the mark so that `wanted` and some time after it are below it; returns the first tick that
/// is not reserved. `now` is the clock's tick. Reads the mark first, as [`read`].
///
/// # Errors
/// As [`read`], and [`NotReserved::PastEnd`].
pub async fn advance<P: Process>(
    process: &P,
    request: &Request,
    now: Tick,
    wanted: Tick,
) -> Result<Tick, NotReserved<ErrorOf<P>>> {
    let mut mark = Mark::lock(process, request).await?;
    let known = mark.known(request.highest_accepted.max(now)).await?;
    let Known { bound, page_is_low } = known;
    // Another process may have moved it in the meantime.
    if !page_is_low && bound.get() > wanted.get().saturating_add(request.ticks_ahead / 2) {
        return Ok(bound);
    }
    let target = mark.ticks_ahead_of(now.max(wanted));
    if target > bound || page_is_low {
        return mark.move_to(target.max(bound)).await;
    }
    if wanted < bound {
        return Ok(bound);
    }
    Err(NotReserved::PastEnd)
}

/// Makes sure that this database's later IDs have at least this tick, and accepts a mark that was
/// set. Returns the first tick that is not reserved.
///
/// # Errors
/// As [`read`].
pub async fn start_at<P: Process>(
    process: &P,
    request: &Request,
    tick: Tick,
) -> Result<Tick, NotReserved<ErrorOf<P>>> {
    let mut mark = Mark::lock(process, request).await?;
    let layout = layout_of(process);
    let mut start = tick;
    let before = process.bound_of(&mark.entry);
    let mut reserved = before.unwrap_or_default();
    if mark.written.start_number == process.shared().start_number {
        reserved = layout.tick_of(mark.written.bound_id);
    } else {
        start = start.max(layout.tick_above(mark.written.bound_id));
        if before.is_none() {
            let floor = at_start(process).await?;
            start = start.max(layout.tick_above(floor));
        }
    }
    if start > request.highest_accepted {
        return Err(NotReserved::TooFarAhead(start));
    }
    let target = Tick::new(start.get().saturating_add(request.ticks_ahead))
        .min(layout.last_tick())
        .max(start)
        .max(reserved);
    raise_slots(process, start).await;
    mark.move_to(target).await
}

/// Raises the mark to this bound, as `setval` would, if it is lower: the database of a dump had
/// reserved time up to there. Uses no shared memory, since dumps are also restored on servers that
/// have not loaded the library yet.
///
/// The record is flushed: the transaction need not have an ID, with which its commit would do that.
///
/// # Errors
/// [`NotOpened`]
pub async fn raise_to<S: Storage>(
    storage: &S,
    bound_id: SnowflakeId,
    wait_ms: i64,
) -> Result<(), NotOpened<S::Error>> {
    let mark = storage.open_mark(wait_ms).await?;
    let mut page = storage.lock_page(&mark).await;
    if bound_id <= storage.read_page(&page).bound_id {
        // Another session has written that, and may not have flushed it yet.
        let record = storage.record_of(&page);
        drop(page);
        flush_record(storage, record).await;
        return Ok(());
    }
    let set_by_hand = MarkPage {
        bound_id,
        start_number: 0,
    };
    let record = storage.write_page(&mark, &mut page, set_by_hand).await;
    drop(page);
    storage.flush(record).await;
    Ok(())
}

/// The bound in the mark's entry. An entry outlives its sequence, and a database may get the OIDs of
/// one that was dropped: where it may be of another incarnation, a process looks whether the page has
/// that bound. `None` if it has not: then the process has to read the mark.
pub async fn confirmed_bound<P: Process>(process: &P) -> Option<Tick> {
    if process.is_confirmed().await {
        return process.bound().await;
    }
    let bound = process.bound().await?;
    let storage = process.storage();
    let mark = storage.open_mark(0).await.ok()?;
    let page = storage.lock_page(&mark).await;
    let written = storage.read_page(&page);
    // The page is written before its bound is announced.
    if written.start_number != process.shared().start_number
        || layout_of(process).tick_of(written.bound_id) < bound
    {
        return None;
    }
    // The bound may be that of another incarnation, and what was written above it here not durable yet.
    let confirmed = storage.record_of(&page);
    drop(page);
    flush_record(storage, confirmed).await;
    process.confirm().await;
    Some(bound)
}

/// Flushes a page's last record. A page without one is on disk.
async fn flush_record<S: Storage>(storage: &S, record: LogPosition) {
    if record != LogPosition::default() {
        storage.flush(record).await;
    }
}

/// The bound that is written on the mark's page; `None` if it cannot be read without waiting. Its
/// record is flushed, so that it is there after a crash: the process that has written the page
/// unlocks it before it flushes.
///
/// # Errors
/// Those of [`Storage::open_mark`].
pub async fn bound_on_page<S: Storage>(storage: &S) -> Result<Option<SnowflakeId>, S::Error> {
    let mark = match storage.open_mark(0).await {
        Ok(mark) => mark,
        Err(NotOpened::Locked) => return Ok(None),
        Err(NotOpened::Failed(error)) => return Err(error),
    };
    let page = storage.lock_page(&mark).await;
    let bound_id = storage.read_page(&page).bound_id;
    let record = storage.record_of(&page);
    drop(page);
    // What a standby has replayed is in its log already.
    if !storage.is_in_recovery().await {
        flush_record(storage, record).await;
    }
    Ok(Some(bound_id))
}

/// After [`raise_to`]: raises the slots as well, if the bound is one that a mark may be set to. Otherwise
/// all processes of the database read the mark again: the rows of the dump have IDs that are still to
/// come here. That holds for what is reserved here, too: with each dump of the same server, restored again
/// and again, the IDs of all databases would move ahead by a reservation.
///
/// # Errors
/// Those of the process, if another one keeps the mark locked.
pub async fn raise_slots_to_restored<P: DrawingProcess>(
    process: &P,
    bound_id: SnowflakeId,
    clocks: Clocks,
) -> Result<(), ErrorOf<P>> {
    let layout = layout_of(process);
    let bound = layout.tick_above(bound_id);
    let slewed_clock = process.shared().slewed_clock;
    let highest = highest_set(slewed_clock, process.settings(), layout, clocks);
    let request = Request {
        ticks_ahead: 0,
        highest_set: highest,
        highest_accepted: layout.last_tick(),
        wait_ms: wait::left_ms(process).await,
    };
    // A process that moves the mark at this moment would announce its bound afterwards.
    let mut mark = loop {
        match Mark::lock(process, &request).await {
            Ok(mark) => break mark,
            Err(reason) => wait::for_mark(process, reason, clocks).await?,
        }
    };
    let is_reserved = mark.written.start_number == process.shared().start_number;
    if bound <= highest {
        raise_slots(process, bound).await;
    } else {
        if is_reserved {
            mark.set_by_hand(bound_id).await;
        }
        process.forget(&mark.entry).await;
    }
    Ok(())
}

/// The highest tick that slots may be raised to by a mark that was set: a lease ahead of the clock,
/// or what has been reached anyway. No lease is added to what has been reached: each `setval` would
/// add another. Of a clock that has jumped ahead, what it would show otherwise counts: a role that
/// sets the mark has no better clock.
pub fn highest_set(
    slewed_clock: &SlewedClock,
    settings: ServerSettings,
    layout: &Layout,
    clocks: Clocks,
) -> Tick {
    let highest = slewed_clock
        .trusted(clocks.wall, clocks.boot, settings.limits(layout))
        .plus_micros(settings.lease_micros())
        .max(slewed_clock.reached());
    layout.tick_at(highest.into()).unwrap_or_default()
}

/// The highest tick that slots may be raised to.
pub fn highest_accepted(settings: ServerSettings, layout: &Layout, wall: WallTime) -> Tick {
    let Some(max_step) = settings.max_clock_step else {
        return layout.last_tick();
    };
    match layout.tick_at(wall.plus_micros(max_step).into()) {
        Ok(tick) => tick,
        Err(TimeError::BeforeEpoch { .. }) => Tick::default(),
        Err(TimeError::AfterEnd { .. }) => layout.last_tick(),
    }
}

/// Raises every slot to a time that has been reached by now.
async fn raise_slots<P: Process>(process: &P, bound: Tick) {
    if bound == Tick::default() {
        // Nothing has been issued yet; the epoch may lie in the future.
        return;
    }
    let layout = layout_of(process);
    let shared = process.shared();
    // Read now: a process may have waited for the lock since it read the clocks, and half of that
    // time would be added to the time reached.
    let boot = process.clocks().await.boot;
    // The time first: a process that finds a raised slot finds the reason.
    shared
        .slewed_clock
        .observe(layout.time_of(bound).into(), boot);
    for slot in shared.slots {
        process.step().await;
        slot.raise_to(layout.sequence_bits(), bound);
    }
}

/// The floor from before the start.
async fn at_start<P: Process>(process: &P) -> Result<SnowflakeId, NotReserved<ErrorOf<P>>> {
    floor::at_start(
        process.storage(),
        process.shared().floor,
        identity_of(process),
    )
    .await
    .map_err(NotReserved::Failed)
}

/// A mark that this process alone reads and moves. The fields are dropped in this order, the reverse
/// of that in which they are locked.
struct Mark<'a, P: Process> {
    page: Option<<P::Storage as Storage>::Page>,
    entry: P::Entry,
    mark: <P::Storage as Storage>::Mark,
    written: MarkPage,
    process: &'a P,
    request: &'a Request,
}

/// What is known of a mark after it was read.
struct Known {
    /// The first tick that is not reserved.
    bound: Tick,
    /// Whether the page has a lower bound than the one that sessions use.
    page_is_low: bool,
}

impl<'a, P: Process> Mark<'a, P> {
    async fn lock(process: &'a P, request: &'a Request) -> Result<Self, NotReserved<ErrorOf<P>>> {
        let mark = match process.storage().open_mark(request.wait_ms).await {
            Ok(mark) => mark,
            Err(NotOpened::Locked) if request.wait_ms > 0 => return Err(NotReserved::Locked),
            Err(NotOpened::Locked) => return Err(NotReserved::Busy),
            Err(NotOpened::Failed(error)) => return Err(NotReserved::Failed(error)),
        };
        let entry = process.try_lock_entry().await.ok_or(NotReserved::Busy)?;
        let page = process.storage().lock_page(&mark).await;
        Ok(Mark {
            written: process.storage().read_page(&page),
            page: Some(page),
            entry,
            mark,
            process,
            request,
        })
    }

    /// What the page and the entry have. If this process is the first to read the page since the
    /// server's start, or since the mark was set, it raises every slot, to `highest_accepted` at
    /// most.
    async fn known(&self, highest_accepted: Tick) -> Result<Known, NotReserved<ErrorOf<P>>> {
        let (process, written) = (self.process, self.written);
        let layout = layout_of(process);
        let on_page = layout.tick_above(written.bound_id);
        if written.start_number == process.shared().start_number {
            // Written since the start, so it is right whatever the entry has: that may have been
            // replaced, or be of a dropped database with this OID.
            let bound = layout.tick_of(written.bound_id);
            process.set_bound(&self.entry, bound).await;
            return Ok(Known {
                bound,
                page_is_low: false,
            });
        }
        let before = process.bound_of(&self.entry);
        if let Some(bound) = before.filter(|&bound| on_page <= bound) {
            return Ok(Known {
                bound,
                page_is_low: true,
            });
        }
        let mut bound = on_page;
        if before.is_none() {
            let floor = at_start(process).await?;
            bound = bound.max(layout.tick_above(floor));
        }
        if bound > highest_accepted {
            return Err(NotReserved::TooFarAhead(bound));
        }
        if written.is_set() && on_page > self.request.highest_set {
            return Err(NotReserved::SetAhead(on_page));
        }
        // What was set may be in no durable record yet, and readers are answered up to there. Once for
        // a database, and mostly nothing is left to flush; the page stays locked, because it may be
        // moved next.
        if let Some(page) = &self.page {
            let record = process.storage().record_of(page);
            flush_record(process.storage(), record).await;
        }
        raise_slots(process, bound).await;
        // Not the floor's: a reader is answered up to there, and with another node number the server
        // would not know it any more.
        process.set_bound(&self.entry, on_page).await;
        if before.is_some() {
            return Err(NotReserved::Raised);
        }
        Ok(Known {
            bound: on_page,
            page_is_low: false,
        })
    }

    /// As many ticks as are to be reserved ahead of this tick, and of all slots.
    fn ticks_ahead_of(&self, tick: Tick) -> Tick {
        let layout = layout_of(self.process);
        let slots = self.process.shared().slots.iter();
        let highest = slots
            .map(|slot| slot.last(layout.sequence_bits()).0)
            .fold(tick, Tick::max);
        Tick::new(highest.get().saturating_add(self.request.ticks_ahead))
            // A bound above the layout's last tick need not fit into a bigint, so that tick is
            // never issued.
            .min(layout.last_tick())
    }

    /// What this server has reserved, or this bound if it is higher, counts like a mark that was set.
    async fn set_by_hand(&mut self, bound_id: SnowflakeId) {
        let Some(mut page) = self.page.take() else {
            unreachable!("a mark is written once");
        };
        let set = MarkPage {
            bound_id: self.written.bound_id.max(bound_id),
            start_number: 0,
        };
        let storage = self.process.storage();
        let record = storage.write_page(&self.mark, &mut page, set).await;
        drop(page);
        storage.flush(record).await;
    }

    /// Moves the mark and, once that is durable, announces it to other processes.
    async fn move_to(&mut self, target: Tick) -> Result<Tick, NotReserved<ErrorOf<P>>> {
        let process = self.process;
        let (storage, shared) = (process.storage(), process.shared());
        let bound_id = layout_of(process).first_id_of(target);
        // First what can fail.
        let floor = floor::raise(storage, shared.floor, identity_of(process), bound_id)
            .await
            .map_err(NotReserved::Failed)?;
        let written = MarkPage {
            bound_id,
            start_number: shared.start_number,
        };
        let Some(mut page) = self.page.take() else {
            unreachable!("a mark is moved once");
        };
        let record = storage.write_page(&self.mark, &mut page, written).await;
        // Other processes may read the page while this one waits for the disk.
        drop(page);
        // The mark has no record (0) if `wal_level` is `minimal` and this transaction has created
        // it: then all is flushed. The floor's record may be another process's, which is in the log
        // by now.
        let began = process.clocks().await.boot;
        storage
            .flush(if record == LogPosition::default() {
                record
            } else {
                record.max(floor.unwrap_or_default())
            })
            .await;
        let took = process.clocks().await.boot.micros_since(began);
        // A flush that finds nothing to do does not show how long the next one takes.
        let before = shared.last_flush.load(Relaxed);
        let slowest = took.unsigned_abs().max(before - before / 8);
        shared.last_flush.store(slowest, Relaxed);
        process.set_bound(&self.entry, target).await;
        Ok(target)
    }
}

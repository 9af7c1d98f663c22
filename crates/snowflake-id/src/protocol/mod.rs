//! The protocol by which a server issues each ID once, across sessions, databases, clock steps,
//! crashes and promotions: what is read, written, flushed and awaited, and in which order.
//!
//! - [`draw`]: the way to an ID when something has to be read, reserved or awaited first.
//! - [`mark`]: a bound in the write-ahead log for each database; no ID at or above it was issued.
//! - [`floor`]: the highest of these bounds, for the server.
//! - [`Reservation`]: what a session knows of its database's mark.
//! - [`resolved`]: what a reader may be answered, with the promise of [`crate::resolved`].
//! - [`Reading`]: what time it is for generating IDs.
//! - [`FastPath`]: what a session needs for an ID when nothing else has to be done.
//!
//! It does no I/O, takes no lock, reads no clock and waits for nothing. All of that it asks of a
//! [`Process`]. The questions are `async`, so that the compiler makes a state machine of each of
//! these functions: it can be stopped at every question, and other processes continue meanwhile, or
//! the server ends. The simulator (`crates/snowflake-sim`) does that. In a server's process an
//! answer is always there ([`now`]).
//!
//! Each question is one step: what other processes do comes before or after it.

pub mod draw;
mod fast_path;
pub mod floor;
pub mod mark;
mod reading;
mod reservation;
pub mod resolved;

use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll, Waker};

pub use fast_path::FastPath;
pub use floor::FloorCache;
pub use mark::{MarkPage, NotReserved};
pub use reading::{LEAST_STEP, NoReading, Reading};
pub use reservation::Reservation;

use crate::{
    Allowance, Answer, BootTime, Bounds, ClockOffset, Identity, Layout, Limits, Run, SlewedClock,
    Slot, Tick, WallTime,
};

/// What both clocks show at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The wall clock.
    pub wall: WallTime,
    /// The time since the machine's boot.
    pub boot: BootTime,
}

impl Clocks {
    /// By how much the wall clock is ahead of the other.
    pub fn offset(self) -> ClockOffset {
        ClockOffset::between(self.wall, self.boot)
    }
}

/// A position in the write-ahead log. 0 for what is in no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LogPosition(pub u64);

/// The memory that the processes of a server share. It is lost when the server ends, and begins
/// with zeros, but for the start number and the clock that is trusted.
#[derive(Clone, Copy)]
pub struct SharedMemory<'a> {
    /// One for each backend number.
    pub slots: &'a [Slot],
    /// The time that was reached.
    pub slewed_clock: &'a SlewedClock,
    /// What is known of the floor.
    pub floor: &'a FloorCache,
    /// How long the slowest of the last flushes of a mark took, microseconds.
    pub last_flush: &'a AtomicU64,
    /// The largest [`ServerSettings::max_borrow`] since the start.
    pub most_borrow: &'a AtomicU64,
    /// A negative number that no other start has had, of this server or of one that it is a copy
    /// of.
    pub start_number: i64,
}

/// What a server's settings say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// How much time is reserved at once, microseconds.
    pub lease: u64,
    /// By how much IDs may be ahead of the time, microseconds.
    pub max_borrow: u64,
    /// The largest clock step that is accepted, microseconds; `None` for no limit.
    pub max_clock_step: Option<i64>,
}

impl ServerSettings {
    /// How far the wall clock may be off.
    pub fn limits(&self, layout: &Layout) -> Limits {
        Limits {
            max_step: self.max_clock_step,
            unseen: self.lease_micros(),
            earliest: layout.epoch().into(),
        }
    }

    /// The lease as a difference between times.
    pub fn lease_micros(&self) -> i64 {
        i64::try_from(self.lease).unwrap_or(i64::MAX)
    }
}

/// Why the mark's sequence could not be opened.
pub enum NotOpened<E> {
    /// Another session has locked it for as long as the call may wait.
    Locked,
    /// An error of the call.
    Failed(E),
}

/// What outlives a server's memory: the pages of the mark and of the floor, and the log.
///
/// What is locked is unlocked when the value is dropped. The order is: the mark, its entry, its page,
/// the floor.
#[allow(async_fn_in_trait)] // A process has one thread.
pub trait Storage {
    /// Why a call fails.
    type Error;
    /// The mark's sequence, locked as `nextval()` locks it.
    type Mark;
    /// The mark's page, locked for this process alone.
    type Page;
    /// The floor's page, locked for this process alone.
    type Floor;

    /// Opens and locks the mark's sequence; waits for that many milliseconds at most.
    ///
    /// # Errors
    /// [`NotOpened`]
    async fn open_mark(&self, wait_ms: i64) -> Result<Self::Mark, NotOpened<Self::Error>>;
    /// Locks the mark's page.
    async fn lock_page(&self, mark: &Self::Mark) -> Self::Page;
    /// What is written on it.
    fn read_page(&self, page: &Self::Page) -> MarkPage;
    /// Where the last record about it ends.
    fn record_of(&self, page: &Self::Page) -> LogPosition;
    /// Writes it, and the record in the log; returns where that ends.
    async fn write_page(
        &self,
        mark: &Self::Mark,
        page: &mut Self::Page,
        to: MarkPage,
    ) -> LogPosition;

    /// Locks the floor.
    async fn lock_floor(&self) -> Self::Floor;
    /// What is written on its page; none if there is no page.
    ///
    /// # Errors
    /// If the page is damaged.
    async fn read_floor(&self, floor: &Self::Floor) -> Result<Bounds, Self::Error>;
    /// Writes it, and the record in the log; returns where that ends.
    ///
    /// # Errors
    /// If it cannot be written; then nothing has changed.
    async fn write_floor(
        &self,
        floor: &mut Self::Floor,
        to: &Bounds,
    ) -> Result<LogPosition, Self::Error>;

    /// Makes the log durable up to there; all of it for 0.
    async fn flush(&self, position: LogPosition);
    /// Whether the server follows another one.
    async fn is_in_recovery(&self) -> bool;
}

/// A process of a server that issues IDs of one database.
#[allow(async_fn_in_trait)] // A process has one thread.
pub trait Process {
    /// Where the mark and the floor are.
    type Storage: Storage;
    /// The mark's entry in shared memory, locked: this process alone moves the mark.
    type Entry;

    /// Where the mark and the floor are.
    fn storage(&self) -> &Self::Storage;
    /// The layout and the node number of its IDs.
    fn identity(&self) -> &Identity;
    /// What all processes share.
    fn shared(&self) -> SharedMemory<'_>;
    /// The settings.
    fn settings(&self) -> ServerSettings;
    /// The highest time that the wall clock has shown to this process when an ID was generated.
    fn highest_wall(&self) -> WallTime;
    /// What the clocks show.
    async fn clocks(&self) -> Clocks;

    /// The bound in the mark's entry: the first tick that is not reserved. `None` before a process
    /// has read the mark since the start.
    async fn bound(&self) -> Option<Tick>;
    /// Whether the entry is of this incarnation of the mark, and not of a sequence or a database that
    /// had the same number and was dropped: a process of this one has announced the bound or has
    /// called [`Process::confirm`].
    async fn is_confirmed(&self) -> bool;
    /// The page has the bound in the entry ([`mark::confirmed_bound`]).
    async fn confirm(&self);
    /// Locks the mark's entry; `None` while another process has locked it.
    async fn try_lock_entry(&self) -> Option<Self::Entry>;
    /// The bound of an entry that is locked.
    fn bound_of(&self, entry: &Self::Entry) -> Option<Tick>;
    /// Announces a bound that is durable to all processes.
    async fn set_bound(&self, entry: &Self::Entry, bound: Tick);

    /// All processes of the database have to read the mark again.
    async fn forget(&self, entry: &Self::Entry);

    /// Between two changes of shared memory that are not one step.
    async fn step(&self) {}
}

/// Why a call of this process fails.
pub type ErrorOf<P> = <<P as Process>::Storage as Storage>::Error;

/// All that may be borrowed is used up.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// The time.
    pub reading: Reading,
    /// How long it takes until the slots may be used again, microseconds.
    pub needed: u64,
    /// The tick that is used then.
    pub next: Tick,
}

/// What [`draw`](draw::draw) asks besides.
#[allow(async_fn_in_trait)]
pub trait DrawingProcess: Process {
    /// What a transaction has published.
    type Opened;

    /// Whether no IDs are issued.
    ///
    /// # Errors
    /// If so.
    fn check_stopped(&self) -> Result<(), ErrorOf<Self>>;
    /// What this process knows of its database's mark.
    ///
    /// # Errors
    /// If the mark cannot be found.
    async fn reservation(&self) -> Result<Reservation, ErrorOf<Self>>;
    /// Keeps it for the next call.
    fn keep(&self, reservation: Reservation);
    /// Checks that the database's IDs have this layout.
    ///
    /// # Errors
    /// Those that end the call.
    async fn check_layout(&self) -> Result<(), ErrorOf<Self>>;
    /// What time it is.
    ///
    /// # Errors
    /// [`NoReading`]
    async fn reading(&self, clocks: Clocks) -> Result<Reading, NoReading>
    where
        Self: Sized,
    {
        Reading::take(self, clocks).await
    }
    /// Called when a clock step of so many microseconds was accepted.
    fn stepped(&self, step: i64, at: Clocks);
    /// Publishes that the transaction draws, unless it has drawn before. Returns the first tick that
    /// it may draw, with what [`drew`](Self::drew) takes.
    async fn begin_to_draw(&self, now: Tick) -> Option<(Self::Opened, Tick)>;
    /// Publishes the first ID that was drawn.
    fn drew(&self, opened: Self::Opened, slot: u32, run: Run);
    /// Draws from the slots.
    async fn next_run(
        &self,
        allowance: Allowance,
        count: NonZeroU32,
        wall: WallTime,
    ) -> (u32, Answer);
    /// Keeps the time with which an ID was generated.
    fn observe(&self, wall: WallTime);
    /// How long the call may still wait for a lock, milliseconds.
    fn left_ms(&self) -> i64;
    /// Waits for the reason why nothing was reserved.
    ///
    /// # Errors
    /// If there is no use in waiting, or if it takes too long.
    async fn wait_for(
        &self,
        reason: NotReserved<ErrorOf<Self>>,
        clocks: Clocks,
    ) -> Result<(), ErrorOf<Self>>;
    /// Waits for the clock, or returns the error of one that cannot be used.
    ///
    /// # Errors
    /// If there is no use in waiting, or if it takes too long.
    async fn wait_for_reading(
        &self,
        reason: NoReading,
        clocks: Clocks,
    ) -> Result<(), ErrorOf<Self>>;
    /// Waits for the slots.
    ///
    /// # Errors
    /// If that takes too long.
    async fn wait_for_slots(&self, wait: Wait) -> Result<(), ErrorOf<Self>>;
    /// Called before the loop begins anew without a wait: the call may be cancelled there.
    async fn give_way(&self);
}

/// The layout of a process's IDs.
pub(crate) fn layout_of<P: Process>(process: &P) -> &Layout {
    process.identity().layout()
}

/// Runs a function of the protocol in a process whose answers are always there.
///
/// # Panics
/// If one is not.
pub fn now<F: Future>(function: F) -> F::Output {
    match pin!(function).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("an answer that is not there"),
    }
}

//! The protocol by which a server issues each ID once, across sessions, databases, clock steps,
//! crashes and promotions: what is read, written, flushed and awaited, and in which order.
//!
//! - [`draw`]: the way to an ID when something has to be read, reserved or awaited first.
//! - [`mark`]: a bound in the write-ahead log for each database; no ID at or above it was issued.
//! - [`floor`]: the highest of these bounds, for the server.
//! - [`Reservation`]: what a session knows of its database's mark.
//! - [`resolved`]: what a reader is answered, with the promise of [`crate::resolved`];
//!   [`transactions`]: those that are open, and those that are prepared.
//! - [`Reading`]: what time it is for generating IDs.
//! - [`Session`]: what an ID needs when nothing else has to be done, and [`SessionMemory`], what a
//!   session keeps between two calls.
//!
//! It does no I/O, takes no lock, reads no clock and waits for nothing. All of that it asks of a
//! [`Process`], which only carries it out.
//!
//! # Why `async`, without an executor
//!
//! The compiler makes a state machine of an `async` function: it can be stopped at every question, and
//! other processes continue meanwhile, or the server ends. The simulator (`crates/snowflake-sim`) does
//! that. In a server's process an answer is always there ([`now`]), and what is left of the state
//! machine is nothing: [`next_fast`] is inlined like any other function.
//!
//! **A question is `async` where another process may come in between**, before it is answered. Each is
//! one step: what others do comes before or after it. So [`Storage::open_mark`] is one, and so is
//! [`Storage::lock_page`], but [`Storage::read_page`] is none: the page is locked, and what others do
//! meanwhile does not change it. The same holds for a locked entry ([`Process::bound_of`]), and for what
//! is the process's own ([`Process::settings`], [`Session::memory`]). Atomics that others change are
//! read directly, and between two of them there is a [`step`](Session::step).
//!
//! # How to debug
//!
//! - `make simulate` prints its seeds, and of a history that fails the shortest story.
//! - `scripts/simulate --seed 17 --story` tells one history to its end. The same seed is the same history
//!   as long as nothing asks another question; a `world.tell` more changes nothing.
//! - `scripts/simulate --without flush` shows what a history looks like in which a protection is missing,
//!   and `crates/snowflake-sim/src/checks.rs` which check finds it.
//! - A debugger shows these functions as `draw::{async_fn#0}`, with the fields of the state machine:
//!   what is alive at the question at which it was stopped. `cargo test -p snowflake-sim` has symbols.
//! - Of a real server, the test build writes what the protocol asks into a file, `SNOWFLAKE_TEST_TRACE`
//!   (`src/trace.rs`); `snowflake_sim::traced` says which line must not have been.
//! - [`now`] panics with the name of the function if an answer is not there: then a process's answer
//!   waits for something, and it must not.

pub mod draw;
pub mod floor;
pub mod mark;
mod reading;
mod reservation;
pub mod resolved;
mod session;
pub mod transactions;
mod wait;

use std::any::type_name;
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll, Waker};

pub use floor::FloorCache;
pub use mark::{MarkPage, NotReserved};
pub use reading::{LEAST_STEP, NoReading, NotAccepted, Reading, accept_clock};
pub use reservation::Reservation;
pub use session::{Session, SessionMemory, next_fast};
pub use wait::{Budget, Refused, Wait};

use crate::{
    BootTime, Bounds, ClockOffset, Identity, Layout, Limits, SlewedClock, Slot, Tick, WallTime,
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
    /// What an ID needs of the process where nothing else has to be done.
    type Session: Session;

    /// Where the mark and the floor are.
    fn storage(&self) -> &Self::Storage;
    /// What an ID needs of it where nothing else has to be done.
    fn session(&self) -> &Self::Session;
    /// What all processes share.
    fn shared(&self) -> SharedMemory<'_>;
    /// The settings.
    fn settings(&self) -> ServerSettings;
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

    /// Before a slot is raised: others come in between.
    async fn step(&self) {}
}

/// Why a call of this process fails.
pub type ErrorOf<P> = <<P as Process>::Storage as Storage>::Error;

/// What [`draw`](draw::draw) asks besides.
#[allow(async_fn_in_trait)]
pub trait DrawingProcess: Process {
    /// Whether no IDs are issued.
    ///
    /// # Errors
    /// If so.
    fn check_stopped(&self) -> Result<(), ErrorOf<Self>>;
    /// Whether a setting has changed that IDs depend on, since the last call of this.
    fn take_settings_changed(&self) -> bool;
    /// Finds the database's mark; returns its number.
    ///
    /// # Errors
    /// If it cannot be found.
    async fn find_mark(&self) -> Result<u32, ErrorOf<Self>>;
    /// The mark of this call.
    fn use_mark(&self, mark: u32);
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
    /// How long the call may wait.
    fn budget(&self) -> Budget;
    /// Called before it waits for more than another process; with what is used up, if it is slots.
    fn waits(&self, slots: Option<Wait>);
    /// Sleeps for so many milliseconds.
    ///
    /// # Errors
    /// If the wait is cancelled.
    async fn sleep(&self, millis: i64) -> Result<(), ErrorOf<Self>>;
    /// The error of a call that waits no longer, when the clocks show this.
    fn refused(&self, why: Refused, at: Clocks) -> ErrorOf<Self>;
    /// Called before the loop begins anew without a wait: the call may be cancelled there.
    async fn give_way(&self);
}

/// The layout of a process's IDs.
pub(crate) fn layout_of<P: Process>(process: &P) -> &Layout {
    identity_of(process).layout()
}

/// The layout and the node number of a process's IDs.
pub(crate) fn identity_of<P: Process>(process: &P) -> &Identity {
    process.session().identity()
}

/// Runs a function of the protocol in a process whose answers are always there.
///
/// # Panics
/// If one is not: an `async` function of the process waits for something.
#[inline]
#[track_caller]
pub fn now<F: Future>(function: F) -> F::Output {
    match pin!(function).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unanswered(type_name::<F>()),
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn unanswered(function: &str) -> ! {
    panic!("a question of {function} is not answered");
}

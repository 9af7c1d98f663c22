//! Shared memory: slots, the slewed clock, counters, and what is known of the marks.
//!
//! A preloaded library makes it at the server's start ([`preloaded`]), with each array as a
//! structure of its own in `pg_shmem_allocations`. Otherwise, from PostgreSQL 17 on, the first
//! call that issues an ID makes it, as one segment ([`first_use`]).
//!
//! ```text
//! snowflake               Header, once: start number, slewed clock, floor, what was logged
//!                         when, conflicts, the promise and the samples of those that read
//!                         new rows
//! snowflake marks         Entry × 256: up to where time is reserved by which database's mark
//! snowflake slots         Slot × 2^backend: the last ID of each backend number
//! snowflake counters      Counters × 2^backend: what happened in each slot
//! snowflake transactions  Transaction × n: from which ID on each open transaction has drawn
//! ```
//!
//! There is a transaction for each backend, and after these as many as can be prepared or
//! on the way there.
//!
//! Slots, slewed clock, counters and the transactions of backends are atomics and need no
//! lock. [`locks`] has the locks of the others. A change of any of these types, or of what
//! they mean, is a new `first_use::FORM`: processes of two versions can meet there.
//!
//! A crash loses all of it. That is safe: the marks are in the write-ahead log
//! ([`snowflake_id::protocol::mark`]), and the first ID of a database after a start raises
//! every slot to its mark.
#![allow(unsafe_code)] // shared memory

#[cfg(feature = "dsm_registry")]
mod first_use;
#[cfg(not(feature = "dsm_registry"))]
#[path = "never.rs"]
mod first_use;
mod locks;
mod marks;
mod preloaded;
mod state;

use std::ffi::CStr;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering};

use pgrx::pg_sys;
use snowflake_id::protocol::transactions::{Transaction, Transactions};
use snowflake_id::protocol::{FloorCache, SharedMemory};
use snowflake_id::resolved::{Promise, Samples};
use snowflake_id::{Identity, Layout, SlewedClock, Slot};

use crate::clock;
use crate::error::Error;
use crate::pg;
use crate::server_file;

use marks::{ENTRIES, Entry};

pub use first_use::{init as init_in_session, leader_is_watched};
pub use locks::LwLock;
pub use marks::{Locked, MarkKey};
pub use preloaded::init as init_preloaded;
pub use state::{Conflicts, Counters, Episodes};

/// The name of the header and of the tranche of locks.
const NAME: &CStr = c"snowflake";

/// PostgreSQL aligns each array of shared memory to this many bytes, and rounds its size up
/// to a multiple of them.
const CACHE_LINE: usize = pg_sys::PG_CACHE_LINE_SIZE as usize;

/// The number of [`Samples`]. Databases share them by their OIDs.
const SAMPLES: usize = 4;

/// What there is once. All bytes zero is a valid header.
#[repr(C, align(64))]
struct Header {
    /// The start number: random and negative.
    start_number: AtomicI64,
    slewed_clock: SlewedClock,
    floor: FloorCache,
    /// How long the last flush of a mark took, microseconds.
    last_flush: AtomicU64,
    /// The largest `max_borrow` since the start, microseconds.
    most_borrow: AtomicU64,
    episodes: Episodes,
    conflicts: Conflicts,
    promise: Promise,
    /// Changed under their lock.
    samples: [Samples; SAMPLES],
    /// Whether no transaction is prepared whose IDs are not known.
    prepared_are_known: AtomicBool,
    /// A transaction ID above those of all transactions that may have drawn before this memory
    /// was made, with its epoch; 0 if that is not known, [`MADE_IN_RECOVERY`] if it is decided later.
    first_xid: AtomicU64,
}

/// A standby has made the memory. No transaction ID is so high.
const MADE_IN_RECOVERY: u64 = u64::MAX;

/// Where the arrays are.
struct Arrays {
    /// [`locks::LOCKS`] of them, in the order of [`locks::Lock`].
    locks: *mut pg_sys::LWLockPadded,
    header: &'static Header,
    entries: &'static [Entry],
    slots: &'static [Slot],
    counters: &'static [Counters],
    transactions: &'static [Transaction],
}

// SAFETY: references to what is `Sync`, and LWLocks, which several processes use through
// pointers.
unsafe impl Sync for Arrays {}

/// Where this process has the arrays; null if it has not. If the library is preloaded, the
/// postmaster stores it, and every process inherits it.
static ARRAYS: AtomicPtr<Arrays> = AtomicPtr::new(ptr::null_mut());

/// How long the arrays are whose length depends on the server's configuration.
struct Lengths {
    /// The number of slots, and of their counters.
    slots: usize,
    /// The number of transactions that can be open.
    transactions: usize,
}

/// All of them are fixed before shared memory is requested, but for the layout.
fn lengths(layout: Option<&Layout>) -> Lengths {
    let prepared = match pg::transaction::max_prepared() {
        0 => 0,
        // Each backend can be about to prepare one.
        most => most + pg::process::max_backends(),
    };
    Lengths {
        slots: layout.map_or(0, |layout| layout.max_backend() as usize + 1),
        transactions: pg::process::max_backends() + prepared,
    }
}

/// The size of an array, bytes.
fn size_of_array<T>(length: usize) -> usize {
    // SAFETY: multiplies, and raises an error if the product is too large.
    unsafe { pg_sys::mul_size(size_of::<T>(), length) }
}

impl Lengths {
    /// The memory for all arrays but the locks, bytes.
    fn size(&self) -> usize {
        [
            size_of_array::<Header>(1),
            size_of_array::<Entry>(ENTRIES),
            size_of_array::<Slot>(self.slots),
            size_of_array::<Counters>(self.slots),
            size_of_array::<Transaction>(self.transactions),
        ]
        .into_iter()
        .map(|size| size.next_multiple_of(CACHE_LINE))
        .sum()
    }

    /// The arrays, and these locks, in memory that `take` returns for a name and a number of
    /// bytes.
    ///
    /// # Safety
    /// For a name, every process of the server gets the same memory, of that size, which was
    /// zero when it was new and stays as long as the process.
    unsafe fn arrays(
        &self,
        locks: *mut pg_sys::LWLockPadded,
        mut take: impl FnMut(&'static CStr, usize) -> *mut u8,
    ) -> &'static Arrays {
        // SAFETY: this function has the contract of `array`. The types consist of atomics for
        // which zero is valid, and an [`Entry`] also has an LWLock, which is initialized before
        // it is used.
        let arrays = unsafe {
            Arrays {
                locks,
                header: &array::<Header>(NAME, 1, &mut take)[0],
                entries: array(c"snowflake marks", ENTRIES, &mut take),
                slots: array(c"snowflake slots", self.slots, &mut take),
                counters: array(c"snowflake counters", self.slots, &mut take),
                transactions: array(c"snowflake transactions", self.transactions, &mut take),
            }
        };
        // Never freed: after a crash of a backend the postmaster creates shared memory anew,
        // maybe at another address, and leaves these few bytes behind.
        Box::leak(Box::new(arrays))
    }
}

/// The array of this name.
///
/// # Safety
/// As [`Lengths::arrays`]. The name always has the same type and length.
///
/// All bytes zero is a valid `T`. It has no destructor and no pointer into the memory of a
/// process. All that changes in it is atomic, or guarded by a lock that works between
/// processes.
unsafe fn array<T: Sync + 'static>(
    name: &'static CStr,
    length: usize,
    take: &mut impl FnMut(&'static CStr, usize) -> *mut u8,
) -> &'static [T] {
    let start = take(name, size_of_array::<T>(length)).cast::<T>();
    // Postgres raises an error if there is no memory. It aligns to a cache line, which its
    // manual does not promise.
    assert!(
        !start.is_null() && start.is_aligned(),
        "shared memory is not aligned to {} bytes",
        align_of::<T>()
    );
    // SAFETY: per this function's contract. The memory stays as long as the processes that use
    // it: the end of shared memory ends every process but the postmaster, which then creates it
    // anew. Only shared references to it are created.
    unsafe { slice::from_raw_parts(start, length) }
}

impl Arrays {
    /// This process uses them from now on.
    fn keep(&'static self) -> Shared {
        ARRAYS.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
        Shared(self)
    }

    /// Fills new arrays.
    ///
    /// # Safety
    /// No other process uses them yet; the locks are initialized.
    unsafe fn fill(&'static self, identity: Option<&Identity>) {
        let mut random = [0_u8; 8];
        // Without randomness, the time of the start still differs from start to
        // start.
        // SAFETY: writes as many bytes as there are.
        if !unsafe { pg_sys::pg_strong_random(random.as_mut_ptr().cast(), random.len()) } {
            random = clock::wall().unix_micros().to_ne_bytes();
        }
        let start_number = i64::from_ne_bytes(random) | i64::MIN;
        self.header
            .start_number
            .store(start_number, Ordering::Release);
        #[cfg(feature = "testing")]
        crate::trace::line(format_args!("start {start_number}"));
        self.header.slewed_clock.trust(clock::offset_at_start());
        let shared = Shared(self);
        // SAFETY: per this function's contract.
        unsafe { marks::initialize(self.entries, shared.tranche_id()) };

        if let Some(identity) = identity {
            let found = server_file::at_start(identity);
            shared
                .conflicts()
                .copied
                .store(found.is_copy, Ordering::Release);
            if let Some(id) = found.conflict {
                shared
                    .conflicts()
                    .keep(identity.layout(), id, clock::wall());
                shared.stop();
            }
        }
    }
}

/// Shared memory, as every process sees it after the start.
#[derive(Clone, Copy)]
pub struct Shared(&'static Arrays);

/// Shared memory, if this process has it; also at the end of a transaction.
#[inline]
pub fn known() -> Option<Shared> {
    // SAFETY: null, or what `keep` has stored. It is never freed, and the arrays live as
    // long as the process (a crash of the server ends every process that maps them).
    unsafe { ARRAYS.load(Ordering::Acquire).as_ref() }.map(Shared)
}

/// Whether the library is preloaded.
pub fn is_preloaded() -> bool {
    preloaded::is_preloaded()
}

/// Shared memory, if it was made. May raise an error of Postgres.
#[inline]
pub fn get() -> Option<Shared> {
    known().or_else(first_use::find)
}

/// Shared memory, made if it was not: an ID is to be issued. May raise an error of Postgres,
/// or of the configuration.
///
/// # Errors
/// [`Error::NotPreloaded`], [`Error::NodeNotSet`]; from 17 on `Error::OtherLibrary` and
/// `Error::ConfigurationUnreadable`, too
#[inline]
pub fn get_or_make() -> Result<Shared, Error> {
    match known() {
        Some(shared) => Ok(shared),
        None => first_use::make(),
    }
}

impl Shared {
    /// The highest time reached, and the wall clock that is trusted.
    pub fn slewed_clock(self) -> &'static SlewedClock {
        &self.0.header.slewed_clock
    }

    /// A slot for each backend number.
    pub fn slots(self) -> &'static [Slot] {
        self.0.slots
    }

    /// What happened in each slot.
    pub fn counters(self) -> &'static [Counters] {
        self.0.counters
    }

    /// What was written to the server's log.
    pub fn episodes(self) -> &'static Episodes {
        &self.0.header.episodes
    }

    /// What the protocol shares among processes.
    pub fn memory(self) -> SharedMemory<'static> {
        SharedMemory {
            slots: self.slots(),
            slewed_clock: self.slewed_clock(),
            floor: &self.0.header.floor,
            last_flush: &self.0.header.last_flush,
            most_borrow: &self.0.header.most_borrow,
            start_number: self.0.header.start_number.load(Ordering::Relaxed),
        }
    }

    /// What is known of other servers with this server's node number.
    pub fn conflicts(self) -> &'static Conflicts {
        &self.0.header.conflicts
    }

    /// The ID below which no transaction begins to draw.
    pub fn promise(self) -> &'static Promise {
        &self.0.header.promise
    }

    /// The open transactions: those of backends by their numbers.
    pub fn transactions(self) -> Transactions<'static> {
        let (backends, prepared) = self.0.transactions.split_at(pg::process::max_backends());
        Transactions {
            promise: self.promise(),
            backends,
            prepared,
            prepared_are_known: &self.0.header.prepared_are_known,
        }
    }

    /// Recovery is over: what is prepared from now on, by a session that draws, is known.
    pub fn end_recovery(self) {
        let first = &self.0.header.first_xid;
        if first.load(Ordering::Relaxed) == MADE_IN_RECOVERY {
            let next = pg::transaction::next_full_id();
            // Another process may have been the first.
            let _ = first.compare_exchange(
                MADE_IN_RECOVERY,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    /// Whether a transaction that is prepared may have drawn an ID before this memory was made.
    /// If the library was preloaded, that is so for all that are not known.
    pub fn may_precede(self, xid: u32) -> bool {
        match self.0.header.first_xid.load(Ordering::Relaxed) {
            0 | MADE_IN_RECOVERY => true,
            first => pg::transaction::precedes(xid, first as u32),
        }
    }

    /// Whether no IDs are issued because another server has this node number.
    pub fn is_stopped(self) -> bool {
        self.conflicts().stopped.load(Ordering::Acquire)
    }

    /// Whether the data directory may be a copy.
    pub fn is_copy(self) -> bool {
        self.conflicts().copied.load(Ordering::Acquire)
    }

    /// Closes every slot. Once this returns, no process issues an ID.
    pub fn stop(self) {
        // First, so that a process that finds its slot closed knows the reason.
        self.conflicts().stopped.store(true, Ordering::Release);
        self.slots().iter().for_each(Slot::close);
    }

    /// Opens every slot. The caller has the lock of conflicts.
    pub fn resume(self) {
        self.conflicts().copied.store(false, Ordering::Release);
        self.conflicts().stopped.store(false, Ordering::Release);
        self.slots().iter().for_each(Slot::open);
    }
}

//! Shared memory: slots, the slewed clock, counters, and what is known of the marks.
//!
//! Each array is a structure of its own in `pg_shmem_allocations`:
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
//! lock. [`locks`] has the locks of the others.
//!
//! A crash loses all of it. That is safe: the marks are in the write-ahead log
//! ([`snowflake_id::protocol::mark`]), and the first ID of a database after a start raises
//! every slot to its mark.
#![allow(unsafe_code)] // shared memory

mod locks;
mod marks;
mod state;

use std::ffi::CStr;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering};

use parking_lot::Mutex;
use pgrx::{pg_guard, pg_sys};
use snowflake_id::protocol::{FloorCache, SharedMemory};
use snowflake_id::resolved::{Promise, Samples};
use snowflake_id::{SlewedClock, Slot};

use crate::clock;
use crate::pg;
use crate::server_file;
use crate::settings;

use marks::{ENTRIES, Entry};

pub use locks::LwLock;
pub use marks::{Locked, MarkKey};
pub use state::{Conflicts, Counters, Episodes, Transaction};

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
}

/// Where the arrays are.
struct Arrays {
    header: &'static Header,
    entries: &'static [Entry],
    slots: &'static [Slot],
    counters: &'static [Counters],
    transactions: &'static [Transaction],
}

/// The arrays of this server; null if the library is not preloaded. The postmaster stores
/// it, and every process inherits it.
static ARRAYS: AtomicPtr<Arrays> = AtomicPtr::new(ptr::null_mut());

/// The hooks that other libraries have set before; ours call them.
struct PreviousHooks {
    request: pg_sys::shmem_request_hook_type,
    startup: pg_sys::shmem_startup_hook_type,
}

static PREVIOUS: Mutex<PreviousHooks> = Mutex::new(PreviousHooks {
    request: None,
    startup: None,
});

/// Requests the memory; only while `shared_preload_libraries` is loaded.
pub fn init() {
    // SAFETY: the postmaster is single-threaded and runs this once; the hooks
    // are called later, by Postgres, with the previous ones kept in the chain.
    unsafe {
        *PREVIOUS.lock() = PreviousHooks {
            request: pg_sys::shmem_request_hook,
            startup: pg_sys::shmem_startup_hook,
        };
        pg_sys::shmem_request_hook = Some(request);
        pg_sys::shmem_startup_hook = Some(startup);
    }
    marks::init();
}

/// How long the arrays are whose length depends on the server's configuration.
struct Lengths {
    /// The number of slots, and of their counters.
    slots: usize,
    /// The number of transactions that can be open.
    transactions: usize,
}

/// All of them are fixed before shared memory is requested.
fn lengths() -> Lengths {
    let prepared = match pg::transaction::max_prepared() {
        0 => 0,
        // Each backend can be about to prepare one.
        most => most + pg::process::max_backends(),
    };
    Lengths {
        slots: settings::layout().map_or(0, |layout| layout.max_backend() as usize + 1),
        transactions: pg::process::max_backends() + prepared,
    }
}

/// The size of an array, bytes.
fn size_of_array<T>(length: usize) -> usize {
    // SAFETY: multiplies, and raises an error if the product is too large.
    unsafe { pg_sys::mul_size(size_of::<T>(), length) }
}

/// The memory to request for all arrays, bytes.
fn size() -> usize {
    let Lengths {
        slots,
        transactions,
    } = lengths();
    [
        size_of_array::<Header>(1),
        size_of_array::<Entry>(ENTRIES),
        size_of_array::<Slot>(slots),
        size_of_array::<Counters>(slots),
        size_of_array::<Transaction>(transactions),
    ]
    .into_iter()
    .map(|size| size.next_multiple_of(CACHE_LINE))
    .sum()
}

#[pg_guard]
unsafe extern "C-unwind" fn request() {
    // Not held while the hook runs.
    let previous = PREVIOUS.lock().request;
    // SAFETY: this is the hook in which both requests are allowed.
    unsafe {
        if let Some(previous) = previous {
            previous();
        }
        pg_sys::RequestAddinShmemSpace(size());
        locks::request();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn startup() {
    let previous = PREVIOUS.lock().startup;
    // SAFETY: runs in the postmaster when shared memory has been created, before
    // any backend exists; `AddinShmemInitLock` (number 21 in every supported
    // version) guards the arrays' creation, as Postgres' manual asks.
    unsafe {
        if let Some(previous) = previous {
            previous();
        }
        let init_lock = &raw mut (*pg_sys::MainLWLockArray.add(21)).lock;
        pg_sys::LWLockAcquire(init_lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        create();
        pg_sys::LWLockRelease(init_lock);
    }
}

/// Creates the arrays, initializes them, and stores where they are.
///
/// # Safety
/// In `shmem_startup_hook`, with `AddinShmemInitLock` held.
unsafe fn create() {
    let Lengths {
        slots,
        transactions,
    } = lengths();
    // SAFETY: this function has the contract of `array`. The types consist of atomics for
    // which zero is valid, and an [`Entry`] also has an LWLock, which is initialized before
    // it is used.
    let (arrays, found) = unsafe {
        let (header, found) = array::<Header>(NAME, 1);
        let arrays = Arrays {
            header: &header[0],
            entries: array(c"snowflake marks", ENTRIES).0,
            slots: array(c"snowflake slots", slots).0,
            counters: array(c"snowflake counters", slots).0,
            transactions: array(c"snowflake transactions", transactions).0,
        };
        (arrays, found)
    };
    // Never freed. After a crash of a backend the postmaster creates shared memory anew,
    // maybe at another address, and leaves these few bytes behind.
    let arrays: &'static Arrays = Box::leak(Box::new(arrays));
    if !found {
        // SAFETY: the tranche was requested together with the memory.
        unsafe { initialize(Shared(arrays)) };
    }
    ARRAYS.store(ptr::from_ref(arrays).cast_mut(), Ordering::Release);
}

/// The array of this name in shared memory, and whether it existed before. A new one is
/// zeroed.
///
/// # Safety
/// In `shmem_startup_hook`, with `AddinShmemInitLock` held. The name always has the same
/// type and length.
///
/// All bytes zero is a valid `T`. It has no destructor and no pointer into the memory of a
/// process. All that changes in it is atomic, or guarded by a lock that works between
/// processes.
unsafe fn array<T: Sync + 'static>(name: &CStr, length: usize) -> (&'static [T], bool) {
    let mut found = false;
    // SAFETY: per this function's contract. The memory has the array's size, and stays as
    // long as the processes that use it: the end of shared memory ends every process but
    // the postmaster, which then creates it anew. Only shared references to it are created.
    unsafe {
        let start = pg_sys::ShmemInitStruct(name.as_ptr(), size_of_array::<T>(length), &mut found)
            .cast::<T>();
        // Postgres raises an error if there is no memory. It aligns to a cache line, which its
        // manual does not promise.
        assert!(
            !start.is_null() && start.is_aligned(),
            "shared memory is not aligned to {} bytes",
            align_of::<T>()
        );
        if !found {
            start.write_bytes(0, length);
        }
        (slice::from_raw_parts(start, length), found)
    }
}

/// # Safety
/// In the postmaster, after the locks were requested, with new arrays.
unsafe fn initialize(shared: Shared) {
    let mut random = [0_u8; 8];
    // Without randomness, the time of the start still differs from start to
    // start.
    // SAFETY: writes as many bytes as there are.
    if !unsafe { pg_sys::pg_strong_random(random.as_mut_ptr().cast(), random.len()) } {
        random = clock::wall().unix_micros().to_ne_bytes();
    }
    let header = shared.0.header;
    header
        .start_number
        .store(i64::from_ne_bytes(random) | i64::MIN, Ordering::Release);
    #[cfg(feature = "testing")]
    crate::trace::line(format_args!(
        "start {}",
        i64::from_ne_bytes(random) | i64::MIN
    ));
    header.slewed_clock.trust(clock::offset_at_start());
    // SAFETY: no other process uses the entries yet; the tranche was requested.
    unsafe { marks::initialize(shared.0.entries, locks::tranche_id()) };

    if let Some(identity) = settings::identity() {
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

/// Shared memory, as every process sees it after the start.
#[derive(Clone, Copy)]
pub struct Shared(&'static Arrays);

/// Shared memory; `None` if the library is not preloaded.
#[inline]
pub fn get() -> Option<Shared> {
    // SAFETY: null, or what `create` has stored. It is never freed, and the arrays live as
    // long as the process (a crash of the server ends every process that maps them).
    unsafe { ARRAYS.load(Ordering::Acquire).as_ref() }.map(Shared)
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

    /// The open transactions of backends, by their numbers.
    pub fn backends(self) -> &'static [Transaction] {
        &self.0.transactions[..pg::process::max_backends()]
    }

    /// The prepared transactions that have drawn since the start, in no order. Those whose
    /// transaction has ended are free.
    pub fn prepared(self) -> &'static [Transaction] {
        &self.0.transactions[pg::process::max_backends()..]
    }

    /// Whether no transaction is prepared whose IDs are not known; a restart forgets them.
    pub fn prepared_are_known(self) -> &'static AtomicBool {
        &self.0.header.prepared_are_known
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

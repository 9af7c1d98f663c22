//! The shared-memory block: slots, pace, counters, and what is known of the marks.
//! Where the parts lie in it is computed by the crate `snowflake-shmem`.
//!
//! ```text
//! Header                run number, pace, floor, what was logged when
//! Entry × 256           which database's mark is reserved up to where
//! Slot × 2^backend      the last ID of each backend number
//! Counters × 2^backend  what happened in each slot
//! ```
//!
//! Locking. Slots, pace and counters are atomics and need none. An entry's key
//! changes under the table lock held exclusively *and* the entry's own lock;
//! its bound changes under its own lock. So a key and its bound are read
//! together under the table lock in shared mode, and an entry whose lock is
//! held stays what it is. The order is table, then entry, and entry locks are
//! only ever tried, never waited for; the floor's lock comes last: nothing can
//! deadlock. All are LWLocks,
//! which Postgres releases when an error ends the transaction that holds them.
//!
//! An entry is forgotten when its sequence or its database is dropped: the
//! next one may have the same OIDs.
//!
//! In a crash all of it is lost, and that is all right: the marks are in the
//! write-ahead log ([`crate::generator::mark`]), and the first ID of a database after a
//! start raises every slot to its mark. The entries are only a cache of what
//! the pages say: one that had to make room is read again from its page, which
//! tells by the run number that no slot needs raising.
#![allow(unsafe_code)] // shared memory

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, Ordering};

use pgrx::{pg_guard, pg_sys};
use snowflake_id::{Pace, Slot, SnowflakeId, Tick};

use crate::clock;
use crate::settings;

const NAME: &CStr = c"snowflake";

/// The table's lock and the floor's.
const LOCKS: i32 = 2;

/// Databases whose marks are known at a time; more take turns.
const ENTRIES: usize = 256;

#[repr(C, align(64))]
struct Header {
    /// A random number for this life of the shared memory; negative.
    run: AtomicI64,
    pace: Pace,
    floor: Floor,
    episodes: Episodes,
}

/// What is known of the page that [`crate::generator::floor`] keeps; changed under its
/// lock.
#[derive(Default)]
pub struct Floor {
    /// What it said at the start, plus 1; 0 while it was not read.
    at_start: AtomicI64,
    /// What this run has written.
    written: AtomicI64,
}

impl Floor {
    /// What the page said at the start; `None` while it was not read.
    pub fn at_start(&self) -> Option<SnowflakeId> {
        SnowflakeId::new(self.at_start.load(Ordering::Acquire) - 1)
    }

    /// Keeps what the page said at the start.
    pub fn started_at(&self, bound: SnowflakeId) {
        // The greatest bigint is no bound that a mark ever has.
        self.at_start
            .store(bound.get().saturating_add(1), Ordering::Release);
    }

    /// What this run has written to the page.
    pub fn written(&self) -> SnowflakeId {
        SnowflakeId::new(self.written.load(Ordering::Acquire)).unwrap_or(SnowflakeId::ZERO)
    }

    /// Keeps what was written to the page.
    pub fn set_written(&self, bound: SnowflakeId) {
        self.written.store(bound.get(), Ordering::Release);
    }
}

/// When the server's log was last told of something that goes on for a while.
#[derive(Default)]
pub struct Episodes {
    /// Whether time goes on at half speed and the log says so.
    pub slewing: AtomicBool,
    /// When a wait was last logged, microseconds since boot.
    pub waiting: AtomicI64,
}

/// What happened in one slot since the statistics were reset.
///
/// A process counts for itself and adds up here now and then
/// ([`crate::generator::stats`]): counting in shared memory would double the cost of an ID.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Counters {
    /// IDs issued.
    pub ids: AtomicU64,
    /// The last ID issued; 0 before the first. Not reset.
    pub last_id: AtomicI64,
    /// Waits for time to catch up.
    pub waits: AtomicU64,
    /// How long they took, microseconds.
    pub wait_micros: AtomicU64,
    /// Steps of the clock that a process with this slot saw first.
    pub clock_steps: AtomicU64,
}

/// What is known of one database's mark.
#[repr(C, align(64))]
pub struct Entry {
    lock: UnsafeCell<pg_sys::LWLock>,
    /// Database OID and sequence OID; 0 for an entry never used.
    key: AtomicU64,
    /// The first tick that is not reserved; 0 while the page was not read.
    bound: AtomicU64,
    /// Whether the server's log says that the database's IDs were made with
    /// another layout.
    layout_logged: AtomicBool,
}

// SAFETY: atomics, and an LWLock, which is made to be used by several
// processes through pointers.
unsafe impl Sync for Entry {}

/// Names a mark: the database and the sequence's OID. A dropped and recreated
/// extension has a new sequence and with it a new key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MarkKey(u64);

impl MarkKey {
    /// The key of this sequence in the database of this process.
    pub fn here(sequence: pg_sys::Oid) -> Self {
        // SAFETY: set once when the process connected to its database.
        let database = unsafe { pg_sys::MyDatabaseId };
        MarkKey(u64::from(database.to_u32()) << 32 | u64::from(sequence.to_u32()))
    }

    fn is_of(self, database: pg_sys::Oid) -> bool {
        self.0 >> 32 == u64::from(database.to_u32())
    }
}

type Block = snowflake_shmem::Block<Header, Entry, Slot, Counters, ENTRIES>;

/// Where the memory begins; null where the library is not preloaded.
static START: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

static mut PREVIOUS_REQUEST: pg_sys::shmem_request_hook_type = None;
static mut PREVIOUS_STARTUP: pg_sys::shmem_startup_hook_type = None;
static PREVIOUS_ACCESS: OnceLock<pg_sys::object_access_hook_type> = OnceLock::new();

/// Asks for the memory; while `shared_preload_libraries` is loaded only.
pub fn init() {
    // SAFETY: the postmaster is single-threaded and runs this once; the hooks
    // are called later, by Postgres, with the previous ones kept in the chain.
    unsafe {
        PREVIOUS_REQUEST = pg_sys::shmem_request_hook;
        pg_sys::shmem_request_hook = Some(request);
        PREVIOUS_STARTUP = pg_sys::shmem_startup_hook;
        pg_sys::shmem_startup_hook = Some(startup);
        PREVIOUS_ACCESS.get_or_init(|| pg_sys::object_access_hook);
        pg_sys::object_access_hook = Some(object_access);
    }
}

fn slot_count() -> usize {
    settings::fixed().map_or(0, |identity| identity.layout.max_backend() as usize + 1)
}

#[pg_guard]
unsafe extern "C-unwind" fn request() {
    // SAFETY: this is the hook in which both requests are allowed.
    unsafe {
        if let Some(previous) = PREVIOUS_REQUEST {
            previous();
        }
        pg_sys::RequestAddinShmemSpace(Block::size(slot_count()));
        pg_sys::RequestNamedLWLockTranche(NAME.as_ptr(), LOCKS);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn startup() {
    // SAFETY: runs in the postmaster when shared memory has been made, before
    // any backend exists; `AddinShmemInitLock` (number 21 in every supported
    // version) guards the structure's creation, as Postgres' manual asks.
    // The memory is as large as the block asks for; zeroes are valid for all that
    // is in it but an [`Entry`]'s lock, which is initialized before it is used.
    unsafe {
        if let Some(previous) = PREVIOUS_STARTUP {
            previous();
        }
        let init_lock = &raw mut (*pg_sys::MainLWLockArray.add(21)).lock;
        pg_sys::LWLockAcquire(init_lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let mut found = false;
        let start = pg_sys::ShmemInitStruct(NAME.as_ptr(), Block::size(slot_count()), &mut found);
        // Postgres raises an error where there is no memory.
        if let Some(start) = NonNull::new(start.cast::<u8>()) {
            if !found {
                initialize(Block::create(start, slot_count()));
            }
            START.store(start.as_ptr(), Ordering::Release);
        }
        pg_sys::LWLockRelease(init_lock);
    }
}

/// # Safety
/// In the postmaster, after the locks were requested.
unsafe fn initialize(block: Block) {
    // SAFETY: per this function's contract; the tranche was requested.
    unsafe {
        let mut random = [0_u8; 8];
        // Where there is no randomness, the start's time still tells one life
        // of the memory from the next.
        if !pg_sys::pg_strong_random(random.as_mut_ptr().cast(), random.len()) {
            random = clock::wall().to_ne_bytes();
        }
        let tranche = i32::from((*pg_sys::GetNamedLWLockTranche(NAME.as_ptr())).lock.tranche);
        let header = block.header();
        header
            .run
            .store(i64::from_ne_bytes(random) | i64::MIN, Ordering::Release);
        header.pace.begin(clock::at_start());
        for entry in block.entries() {
            pg_sys::LWLockInitialize(entry.lock.get(), tranche);
        }
    }
}

/// A dropped object takes what is known of it along. Should the drop be rolled
/// back, the page is read again.
#[pg_guard]
unsafe extern "C-unwind" fn object_access(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    part: c_int,
    argument: *mut c_void,
) {
    if access == pg_sys::ObjectAccessType::OAT_DROP && part == 0 {
        let shared = get();
        if class == pg_sys::DatabaseRelationId {
            shared.inspect(|shared| shared.forget(|key| key.is_of(object)));
        } else if class == pg_sys::RelationRelationId {
            let dropped = MarkKey::here(object);
            shared.inspect(|shared| shared.forget(|key| key == dropped));
        }
    }
    if let Some(previous) = PREVIOUS_ACCESS.get().copied().flatten() {
        // SAFETY: with what this hook was given.
        unsafe { previous(access, class, object, part, argument) };
    }
}

/// The block, as every process sees it after the start.
#[derive(Clone, Copy)]
pub struct Shared(Block);

/// The block; `None` where the library is not preloaded.
pub fn get() -> Option<Shared> {
    let start = NonNull::new(START.load(Ordering::Acquire))?;
    // SAFETY: the block that `startup` has made there, with as many slots: the
    // setting cannot change. It lives as long as the process (a crash of the
    // server ends every process that maps it).
    Some(Shared(unsafe { Block::attach(start, slot_count()) }))
}

impl Shared {
    /// A number for this life of the shared memory: random, negative.
    pub fn run(self) -> i64 {
        self.0.header().run.load(Ordering::Relaxed)
    }

    /// The highest time reached.
    pub fn pace(self) -> &'static Pace {
        &self.0.header().pace
    }

    /// A slot for each backend number.
    pub fn slots(self) -> &'static [Slot] {
        self.0.slots()
    }

    /// What happened in each slot.
    pub fn counters(self) -> &'static [Counters] {
        self.0.counters()
    }

    /// What the server's log was told.
    pub fn episodes(self) -> &'static Episodes {
        &self.0.header().episodes
    }

    fn entries(self) -> &'static [Entry] {
        self.0.entries()
    }

    fn table_lock(self) -> *mut pg_sys::LWLock {
        // SAFETY: the tranche was requested with two locks; this is the first.
        unsafe { &raw mut (*pg_sys::GetNamedLWLockTranche(NAME.as_ptr())).lock }
    }

    /// What is known of the floor's page.
    pub fn floor(self) -> &'static Floor {
        &self.0.header().floor
    }

    /// Keeps other processes from the floor's page until dropped.
    pub fn lock_floor(self) -> LwLock {
        // SAFETY: the tranche was requested with two locks; this is the second.
        let lock = unsafe { &raw mut (*pg_sys::GetNamedLWLockTranche(NAME.as_ptr()).add(1)).lock };
        LwLock::acquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE)
    }

    /// The first tick that is not reserved, as far as this server run knows:
    /// `None` until somebody has read the mark.
    pub fn bound_of(self, mark: MarkKey) -> Option<Tick> {
        let _table = LwLock::acquire(self.table_lock(), pg_sys::LWLockMode::LW_SHARED);
        let entry = self.entries().iter().find(|entry| entry.has(mark))?;
        match entry.bound.load(Ordering::Acquire) {
            0 => None,
            bound => Some(Tick::new(bound)),
        }
    }

    /// The mark's entry with its lock held, so that this process alone reads
    /// and moves the mark; `None` while somebody else does.
    pub fn try_lock(self, mark: MarkKey) -> Option<Locked> {
        let _table = LwLock::acquire(self.table_lock(), pg_sys::LWLockMode::LW_EXCLUSIVE);
        if let Some(entry) = self.entries().iter().find(|entry| entry.has(mark)) {
            return entry.try_lock();
        }
        // A new one, in the place of the one that was moved the longest ago;
        // an entry never used has the bound 0 and comes first.
        let mut by_age: Vec<&Entry> = self.entries().iter().collect();
        by_age.sort_by_key(|entry| entry.bound.load(Ordering::Relaxed));
        let locked = by_age.into_iter().find_map(Entry::try_lock)?;
        locked.entry.clear();
        locked.entry.key.store(mark.0, Ordering::Release);
        Some(locked)
    }

    /// Forgets what is known of some marks. Who drops them has locked them, so
    /// none of them is being moved.
    fn forget(self, is_meant: impl Fn(MarkKey) -> bool) {
        let _table = LwLock::acquire(self.table_lock(), pg_sys::LWLockMode::LW_EXCLUSIVE);
        for entry in self.entries() {
            if is_meant(MarkKey(entry.key.load(Ordering::Acquire))) {
                // Only the bound, so that no lock of the entry is needed: who
                // finds none reads the page.
                entry.bound.store(0, Ordering::Release);
            }
        }
    }

    /// Whether this is the first time that the server's log is to say that a
    /// database's IDs were made with another layout.
    pub fn begin_layout_episode(self, mark: MarkKey) -> bool {
        let _table = LwLock::acquire(self.table_lock(), pg_sys::LWLockMode::LW_SHARED);
        self.entries()
            .iter()
            .find(|entry| entry.has(mark))
            .is_none_or(|entry| !entry.layout_logged.swap(true, Ordering::AcqRel))
    }
}

impl Entry {
    fn clear(&self) {
        self.bound.store(0, Ordering::Release);
        self.layout_logged.store(false, Ordering::Release);
    }

    fn has(&self, mark: MarkKey) -> bool {
        self.key.load(Ordering::Acquire) == mark.0
    }

    fn try_lock(&'static self) -> Option<Locked> {
        let lock = LwLock::try_acquire(self.lock.get())?;
        Some(Locked {
            entry: self,
            _lock: lock,
        })
    }
}

/// An entry whose lock this process holds.
pub struct Locked {
    entry: &'static Entry,
    _lock: LwLock,
}

impl Locked {
    /// The first tick that is not reserved; `None` while the page was not read.
    pub fn bound(&self) -> Option<Tick> {
        match self.entry.bound.load(Ordering::Relaxed) {
            0 => None,
            bound => Some(Tick::new(bound)),
        }
    }

    /// Announces that the mark's page holds (and the log has) this bound.
    pub fn set_bound(&self, bound: Tick) {
        // 0 stands for a page that was not read. A mark that was never moved
        // reserves nothing, and tick 0 was over when the layout was new.
        self.entry
            .bound
            .store(bound.get().max(1), Ordering::Release);
    }
}

/// A held LWLock.
pub struct LwLock(*mut pg_sys::LWLock);

impl LwLock {
    fn acquire(lock: *mut pg_sys::LWLock, mode: pg_sys::LWLockMode::Type) -> Self {
        // SAFETY: an initialised lock in shared memory.
        unsafe { pg_sys::LWLockAcquire(lock, mode) };
        LwLock(lock)
    }

    fn try_acquire(lock: *mut pg_sys::LWLock) -> Option<Self> {
        // SAFETY: an initialised lock in shared memory.
        unsafe { pg_sys::LWLockConditionalAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE) }
            .then(|| LwLock(lock))
    }
}

impl Drop for LwLock {
    fn drop(&mut self) {
        // While a Postgres error passes through, the lock is left to the
        // abort, which releases every LWLock: the error has already reset the
        // count of held-off interrupts that a release would lower.
        if !std::thread::panicking() {
            // SAFETY: acquired by this process and not yet released.
            unsafe { pg_sys::LWLockRelease(self.0) };
        }
    }
}

//! The shared-memory block: slots, the slewed clock, counters, and what is known of
//! the marks. The crate `snowflake-shmem` computes where the parts lie in it.
//!
//! ```text
//! Header                start number, slewed clock, floor, what was logged when, conflicts,
//!                       the promise and the samples of those that read new rows
//! Entry × 256           up to where time is reserved by which database's mark
//! Slot × 2^backend      the last ID of each backend number
//! Counters × 2^backend  what happened in each slot
//! Transaction × n       from which ID on each open transaction has drawn
//! ```
//!
//! There is a transaction for each backend, and after these as many as can be prepared or
//! on the way there.
//!
//! Locking. Slots, slewed clock, counters and the transactions of backends are atomics and
//! need none. An entry's key
//! changes under the table lock held exclusively *and* the entry's own lock;
//! its bound changes under its own lock. So a key and its bound are read
//! together under the table lock in shared mode, and an entry whose lock is
//! held stays what it is. The order is table, then entry, and entry locks are
//! only ever tried, never waited for; the floor's lock comes last, and no other lock is
//! taken with those of conflicts, samples and prepared transactions. So no deadlock
//! is possible. All are LWLocks, which Postgres releases when an error ends the
//! transaction that holds them.
//!
//! An entry is forgotten when its sequence or its database is dropped: the
//! next one may have the same OIDs.
//!
//! A crash loses all of it. That is safe: the marks are in the write-ahead log
//! ([`crate::generator::mark`]), and the first ID of a database after a start raises
//! every slot to its mark. The entries are only a cache of the marks' pages. An
//! entry that was replaced is read again from its page, whose start number shows
//! that no slot needs raising.
#![allow(unsafe_code)] // shared memory

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use pgrx::{pg_guard, pg_sys};
use snowflake_id::resolved::{OpenTransaction, Promise, Samples};
use snowflake_id::{Layout, SlewedClock, Slot, SnowflakeId, Tick, WallTime};
use snowflake_shmem::Lengths;

use crate::clock;
use crate::pg;
use crate::server_file;
use crate::settings;

const NAME: &CStr = c"snowflake";

/// The tranche's locks, by their numbers.
#[derive(Clone, Copy)]
enum Lock {
    Table,
    Floor,
    Conflicts,
    Samples,
    Prepared,
}

const LOCKS: i32 = 5;

/// The number of [`Samples`]. Databases share them by their OIDs.
const SAMPLES: usize = 4;

/// The number of databases whose marks are known at a time. More take turns.
const ENTRIES: usize = 256;

#[repr(C, align(64))]
struct Header {
    /// The start number: random and negative.
    start_number: AtomicI64,
    slewed_clock: SlewedClock,
    floor: Floor,
    episodes: Episodes,
    conflicts: Conflicts,
    promise: Promise,
    /// Changed under their lock.
    samples: [Samples; SAMPLES],
    /// Whether no transaction is prepared whose IDs are not known.
    prepared_are_known: AtomicBool,
}

/// What is known of the floor's page ([`crate::generator::floor`]); changed under
/// its lock.
#[derive(Default)]
pub struct Floor {
    /// The bound on the page at the start, plus 1; 0 before it is read.
    at_start: AtomicI64,
    /// The bound that was written since the start.
    written: AtomicI64,
}

impl Floor {
    /// The bound on the page at the start; `None` before it is read.
    pub fn at_start(&self) -> Option<SnowflakeId> {
        SnowflakeId::new(self.at_start.load(Ordering::Acquire) - 1)
    }

    /// Keeps the bound on the page at the start.
    pub fn set_at_start(&self, bound_id: SnowflakeId) {
        // No mark has the greatest bigint as its bound.
        self.at_start
            .store(bound_id.get().saturating_add(1), Ordering::Release);
    }

    /// The bound that was written to the page since the start.
    pub fn written(&self) -> SnowflakeId {
        SnowflakeId::new(self.written.load(Ordering::Acquire)).unwrap_or(SnowflakeId::ZERO)
    }

    /// Keeps the bound that was written to the page.
    pub fn set_written(&self, bound_id: SnowflakeId) {
        self.written.store(bound_id.get(), Ordering::Release);
    }
}

/// What was last written to the server's log about conditions that last a while.
#[derive(Default)]
pub struct Episodes {
    /// Whether time runs at half speed according to the log.
    pub slewing: AtomicBool,
    /// When a wait was last logged, microseconds since boot.
    pub waiting: AtomicI64,
    /// When a conflict was last logged, microseconds since boot.
    pub conflict: AtomicI64,
    /// When a transaction was last logged that holds back the resolved ID, microseconds
    /// since boot.
    pub unresolved: AtomicI64,
}

/// What is known of other servers with this server's node number
/// ([`crate::generator::node_conflict`]).
#[derive(Default)]
pub struct Conflicts {
    /// Rows that came from another server and have this server's node number.
    pub count: AtomicU64,
    /// The highest of their IDs that were at most a lease ahead of the clock; 0 for none.
    pub highest: AtomicI64,
    /// The highest of the others, which may have been written by hand; 0 for none.
    pub far_ahead: AtomicI64,
    /// Whether no IDs are issued because of them; changed under the lock.
    stopped: AtomicBool,
    /// Whether the data directory may be a copy; changed under the lock.
    copied: AtomicBool,
}

impl Conflicts {
    /// Keeps the ID of a row from another server.
    pub fn keep(&self, layout: &Layout, id: SnowflakeId, wall: WallTime) {
        let lease = i64::try_from(settings::lease_micros()).unwrap_or(i64::MAX);
        let time = WallTime::from(layout.time_of(layout.tick_of(id)));
        let highest = if time > wall.plus_micros(lease) {
            &self.far_ahead
        } else {
            &self.highest
        };
        highest.fetch_max(id.get(), Ordering::AcqRel);
    }
}

/// What happened in one slot since the statistics were reset.
///
/// A process counts for itself, and adds its counts here from time to time
/// ([`crate::generator::stats`]): counting in shared memory would double the cost of
/// an ID.
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
    /// Clock steps that a process with this slot was the first to find.
    pub clock_steps: AtomicU64,
}

/// An open transaction: a backend's, or a prepared one.
///
/// A cache line of its own, since backends write theirs in each transaction with IDs.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Transaction {
    /// From which ID on it has drawn.
    pub open: OpenTransaction,
    /// The transaction ID of a prepared one; 0 for none. Written last.
    pub xid: AtomicU32,
}

/// What is known of one database's mark.
#[repr(C, align(64))]
pub struct Entry {
    lock: UnsafeCell<pg_sys::LWLock>,
    /// Database OID and sequence OID; 0 for an entry never used.
    key: AtomicU64,
    /// The first tick that is not reserved; 0 before the page is read.
    bound_tick: AtomicU64,
    /// Whether the server's log reports that the database's IDs were generated with
    /// another layout.
    layout_logged: AtomicBool,
}

// SAFETY: atomics, and an LWLock, which several processes use through pointers.
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

type Block = snowflake_shmem::Block<Header, Entry, Slot, Counters, Transaction, ENTRIES>;

/// The beginning of the memory; null if the library is not preloaded.
static START: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// The hooks that other libraries have set before; ours call them.
struct PreviousHooks {
    request: pg_sys::shmem_request_hook_type,
    startup: pg_sys::shmem_startup_hook_type,
    access: pg_sys::object_access_hook_type,
}

static PREVIOUS: Mutex<PreviousHooks> = Mutex::new(PreviousHooks {
    request: None,
    startup: None,
    access: None,
});

/// Requests the memory; only while `shared_preload_libraries` is loaded.
pub fn init() {
    // SAFETY: the postmaster is single-threaded and runs this once; the hooks
    // are called later, by Postgres, with the previous ones kept in the chain.
    unsafe {
        *PREVIOUS.lock() = PreviousHooks {
            request: pg_sys::shmem_request_hook,
            startup: pg_sys::shmem_startup_hook,
            access: pg_sys::object_access_hook,
        };
        pg_sys::shmem_request_hook = Some(request);
        pg_sys::shmem_startup_hook = Some(startup);
        pg_sys::object_access_hook = Some(object_access);
    }
}

/// All of them are fixed before shared memory is requested.
fn lengths() -> Lengths {
    let prepared = match pg::max_prepared_transactions() {
        0 => 0,
        // Each backend can be about to prepare one.
        most => most + pg::max_backends(),
    };
    Lengths {
        slots: settings::layout().map_or(0, |layout| layout.max_backend() as usize + 1),
        transactions: pg::max_backends() + prepared,
    }
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
        pg_sys::RequestAddinShmemSpace(Block::size(lengths()));
        pg_sys::RequestNamedLWLockTranche(NAME.as_ptr(), LOCKS);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn startup() {
    let previous = PREVIOUS.lock().startup;
    // SAFETY: runs in the postmaster when shared memory has been created, before
    // any backend exists; `AddinShmemInitLock` (number 21 in every supported
    // version) guards the structure's creation, as Postgres' manual asks.
    // The memory has the block's size. Zeroes are valid for all of it except an
    // [`Entry`]'s lock, which is initialized before it is used.
    unsafe {
        if let Some(previous) = previous {
            previous();
        }
        let init_lock = &raw mut (*pg_sys::MainLWLockArray.add(21)).lock;
        pg_sys::LWLockAcquire(init_lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let mut found = false;
        let start = pg_sys::ShmemInitStruct(NAME.as_ptr(), Block::size(lengths()), &mut found);
        // Postgres raises an error if there is no memory.
        if let Some(start) = NonNull::new(start.cast::<u8>()) {
            if !found {
                initialize(Block::create(start, lengths()));
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
        // Without randomness, the time of the start still differs from start to
        // start.
        if !pg_sys::pg_strong_random(random.as_mut_ptr().cast(), random.len()) {
            random = clock::wall().unix_micros().to_ne_bytes();
        }
        let tranche = i32::from((*pg_sys::GetNamedLWLockTranche(NAME.as_ptr())).lock.tranche);
        let header = block.header();
        header
            .start_number
            .store(i64::from_ne_bytes(random) | i64::MIN, Ordering::Release);
        header.slewed_clock.trust(clock::offset_at_start());
        for entry in block.entries() {
            pg_sys::LWLockInitialize(entry.lock.get(), tranche);
        }
    }
    if let Some(identity) = settings::identity() {
        let found = server_file::at_start(identity);
        let shared = Shared(block);
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

/// Forgets what is known of a dropped object. If the drop is rolled back, the page
/// is read again.
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
    // Not held while the hook runs.
    let previous = PREVIOUS.lock().access;
    if let Some(previous) = previous {
        // SAFETY: with the arguments of this hook.
        unsafe { previous(access, class, object, part, argument) };
    }
}

/// The block, as every process sees it after the start.
#[derive(Clone, Copy)]
pub struct Shared(Block);

/// The block; `None` if the library is not preloaded.
pub fn get() -> Option<Shared> {
    let start = NonNull::new(START.load(Ordering::Acquire))?;
    // SAFETY: the block that `startup` has created there, with the same lengths: the
    // settings cannot change. It lives as long as the process (a crash of the
    // server ends every process that maps it).
    Some(Shared(unsafe { Block::attach(start, lengths()) }))
}

impl Shared {
    /// The start number: a random, negative number for this server start.
    pub fn start_number(self) -> i64 {
        self.0.header().start_number.load(Ordering::Relaxed)
    }

    /// The highest time reached, and the wall clock that is trusted.
    pub fn slewed_clock(self) -> &'static SlewedClock {
        &self.0.header().slewed_clock
    }

    /// A slot for each backend number.
    pub fn slots(self) -> &'static [Slot] {
        self.0.slots()
    }

    /// What happened in each slot.
    pub fn counters(self) -> &'static [Counters] {
        self.0.counters()
    }

    /// What was written to the server's log.
    pub fn episodes(self) -> &'static Episodes {
        &self.0.header().episodes
    }

    fn entries(self) -> &'static [Entry] {
        self.0.entries()
    }

    fn lock(self, lock: Lock, mode: pg_sys::LWLockMode::Type) -> LwLock {
        // SAFETY: the tranche was requested with as many locks.
        let lock = unsafe {
            &raw mut (*pg_sys::GetNamedLWLockTranche(NAME.as_ptr()).add(lock as usize)).lock
        };
        LwLock::acquire(lock, mode)
    }

    /// What is known of the floor's page.
    pub fn floor(self) -> &'static Floor {
        &self.0.header().floor
    }

    /// Keeps other processes from the floor's page until dropped.
    pub fn lock_floor(self) -> LwLock {
        self.lock(Lock::Floor, pg_sys::LWLockMode::LW_EXCLUSIVE)
    }

    /// What is known of other servers with this server's node number.
    pub fn conflicts(self) -> &'static Conflicts {
        &self.0.header().conflicts
    }

    /// Keeps other processes from changing [`Conflicts`] until dropped.
    pub fn lock_conflicts(self) -> LwLock {
        self.lock(Lock::Conflicts, pg_sys::LWLockMode::LW_EXCLUSIVE)
    }

    /// The ID below which no transaction begins to draw.
    pub fn promise(self) -> &'static Promise {
        &self.0.header().promise
    }

    /// What other readers of this database were answered, and a lock on it until dropped.
    pub fn lock_samples(self, database: pg_sys::Oid) -> (&'static Samples, LwLock) {
        let lock = self.lock(Lock::Samples, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let number = database.to_u32() as usize % SAMPLES;
        (&self.0.header().samples[number], lock)
    }

    /// The open transactions of backends, by their numbers.
    pub fn backends(self) -> &'static [Transaction] {
        &self.0.transactions()[..pg::max_backends()]
    }

    /// The prepared transactions that have drawn since the start, in no order. Those whose
    /// transaction has ended are free.
    pub fn prepared(self) -> &'static [Transaction] {
        &self.0.transactions()[pg::max_backends()..]
    }

    /// Keeps other processes from changing [`Shared::prepared`] until dropped.
    pub fn lock_prepared(self) -> LwLock {
        self.lock(Lock::Prepared, pg_sys::LWLockMode::LW_EXCLUSIVE)
    }

    /// Whether no transaction is prepared whose IDs are not known; a restart forgets them.
    pub fn prepared_are_known(self) -> &'static AtomicBool {
        &self.0.header().prepared_are_known
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

    /// The first tick that is not reserved; `None` before a process has read the
    /// mark.
    pub fn bound_of(self, mark: MarkKey) -> Option<Tick> {
        let _table = self.lock(Lock::Table, pg_sys::LWLockMode::LW_SHARED);
        let entry = self.entries().iter().find(|entry| entry.has(mark))?;
        match entry.bound_tick.load(Ordering::Acquire) {
            0 => None,
            bound => Some(Tick::new(bound)),
        }
    }

    /// The mark's entry with its lock held, so that this process alone reads
    /// and moves the mark; `None` while another process does.
    pub fn try_lock(self, mark: MarkKey) -> Option<Locked> {
        let _table = self.lock(Lock::Table, pg_sys::LWLockMode::LW_EXCLUSIVE);
        if let Some(entry) = self.entries().iter().find(|entry| entry.has(mark)) {
            return entry.try_lock();
        }
        // A new entry, in the place of the one that was moved the longest ago. An
        // entry never used has the bound 0 and comes first.
        let mut by_age: Vec<&Entry> = self.entries().iter().collect();
        by_age.sort_by_key(|entry| entry.bound_tick.load(Ordering::Relaxed));
        let locked = by_age.into_iter().find_map(Entry::try_lock)?;
        locked.entry.clear();
        locked.entry.key.store(mark.0, Ordering::Release);
        Some(locked)
    }

    /// Forgets what is known of some marks. The process that drops them has locked
    /// them, so none of them is being moved.
    fn forget(self, is_meant: impl Fn(MarkKey) -> bool) {
        let _table = self.lock(Lock::Table, pg_sys::LWLockMode::LW_EXCLUSIVE);
        for entry in self.entries() {
            if is_meant(MarkKey(entry.key.load(Ordering::Acquire))) {
                // Only the bound, so that no lock of the entry is needed: without a
                // bound, a process reads the page.
                entry.bound_tick.store(0, Ordering::Release);
            }
        }
    }

    /// Whether the server's log does not report yet that the database's IDs were
    /// generated with another layout.
    pub fn start_layout_episode(self, mark: MarkKey) -> bool {
        let _table = self.lock(Lock::Table, pg_sys::LWLockMode::LW_SHARED);
        self.entries()
            .iter()
            .find(|entry| entry.has(mark))
            .is_none_or(|entry| !entry.layout_logged.swap(true, Ordering::AcqRel))
    }
}

impl Entry {
    fn clear(&self) {
        self.bound_tick.store(0, Ordering::Release);
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
    /// The first tick that is not reserved; `None` before the page is read.
    pub fn bound_tick(&self) -> Option<Tick> {
        match self.entry.bound_tick.load(Ordering::Relaxed) {
            0 => None,
            bound => Some(Tick::new(bound)),
        }
    }

    /// Announces that the mark's page, and the log, has this bound.
    pub fn set_bound_tick(&self, bound: Tick) {
        // 0 stands for a page that was not read. A mark that was never moved
        // reserves nothing, and tick 0 was over when the layout was new.
        self.entry
            .bound_tick
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
        // While a Postgres error passes through, the lock is left to the abort,
        // which releases every LWLock. The error has already reset the count of
        // held-off interrupts, which a release would lower.
        if !std::thread::panicking() {
            // SAFETY: acquired by this process and not yet released.
            unsafe { pg_sys::LWLockRelease(self.0) };
        }
    }
}

//! The table of marks: a cache of the marks' pages ([`snowflake_id::protocol::mark`]).
//!
//! An entry that was replaced is read again from its page, whose start number shows
//! that no slot needs raising.
//!
//! An entry outlives its sequence and its database, and the next one may have the same
//! OIDs. So it has the incarnation that it is of ([`snowflake_id::protocol::mark`]).

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pgrx::pg_sys;
use snowflake_id::Tick;

use super::Shared;
use super::locks::{Lock, LwLock};

/// The number of databases whose marks are known at a time. More take turns.
pub(super) const ENTRIES: usize = 256;

/// What is known of one database's mark. All bytes zero is a valid entry, except its lock.
#[repr(C, align(64))]
pub(super) struct Entry {
    lock: UnsafeCell<pg_sys::LWLock>,
    /// Database OID and sequence OID; 0 for an entry never used.
    key: AtomicU64,
    /// The first tick that is not reserved; 0 before the page is read.
    bound_tick: AtomicU64,
    /// Which incarnation of the mark it is of; 0 if that is not known.
    incarnation: AtomicU64,
    /// Whether the server's log reports that the database's IDs were generated with
    /// another layout.
    layout_logged: AtomicBool,
}

// SAFETY: atomics, and an LWLock, which several processes use through pointers.
unsafe impl Sync for Entry {}

impl Entry {
    fn clear(&self) {
        self.bound_tick.store(0, Ordering::Release);
        self.incarnation.store(0, Ordering::Release);
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

/// Initializes the entries' locks.
///
/// # Safety
/// No other process uses the entries yet. The tranche was requested.
pub(super) unsafe fn initialize(entries: &[Entry], tranche_id: c_int) {
    for entry in entries {
        // SAFETY: per this function's contract.
        unsafe { pg_sys::LWLockInitialize(entry.lock.get(), tranche_id) };
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

    /// The next process reads the page.
    pub fn forget(&self) {
        self.entry.bound_tick.store(0, Ordering::Release);
    }

    /// Announces that the mark's page, and the log, has this bound, in this incarnation.
    pub fn set_bound_tick(&self, bound: Tick, incarnation: u64) {
        // 0 stands for a page that was not read. A mark that was never moved
        // reserves nothing, and tick 0 was over when the layout was new.
        self.entry
            .bound_tick
            .store(bound.get().max(1), Ordering::Release);
        // Last: a process that finds its own incarnation finds this bound, or a later one.
        self.entry.incarnation.store(incarnation, Ordering::Release);
    }
}

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
}

impl Shared {
    fn entry_of(self, mark: MarkKey) -> Option<&'static Entry> {
        self.0.entries.iter().find(|entry| entry.has(mark))
    }

    /// The first tick that is not reserved; `None` before a process has read the
    /// mark.
    pub fn bound_of(self, mark: MarkKey) -> Option<Tick> {
        let _table = self.lock(Lock::Table, pg_sys::LWLockMode::LW_SHARED);
        match self.entry_of(mark)?.bound_tick.load(Ordering::Acquire) {
            0 => None,
            bound => Some(Tick::new(bound)),
        }
    }

    /// The mark's entry with its lock held, so that this process alone reads
    /// and moves the mark; `None` while another process does.
    pub fn try_lock(self, mark: MarkKey) -> Option<Locked> {
        let _table = self.lock(Lock::Table, pg_sys::LWLockMode::LW_EXCLUSIVE);
        if let Some(entry) = self.entry_of(mark) {
            return entry.try_lock();
        }
        let locked = self.try_lock_oldest()?;
        locked.entry.clear();
        locked.entry.key.store(mark.0, Ordering::Release);
        Some(locked)
    }

    /// Of the entries that are not locked, the one that was moved the longest ago. The
    /// caller holds the table lock exclusively.
    fn try_lock_oldest(self) -> Option<Locked> {
        // The next older one in each round, instead of a sorted list: the first one is rarely
        // locked, and no memory is allocated while the table is.
        let mut tried: Option<(u64, usize)> = None;
        loop {
            // An entry never used has the bound 0 and comes first.
            let next = self
                .0
                .entries
                .iter()
                .enumerate()
                .map(|(number, entry)| (entry.bound_tick.load(Ordering::Relaxed), number))
                .filter(|&entry| Some(entry) > tried)
                .min()?;
            if let Some(locked) = self.0.entries[next.1].try_lock() {
                return Some(locked);
            }
            tried = Some(next);
        }
    }

    /// Whether what is known of the mark is of this incarnation.
    pub fn is_incarnation(self, mark: MarkKey, incarnation: u64) -> bool {
        let _table = self.lock(Lock::Table, pg_sys::LWLockMode::LW_SHARED);
        self.entry_of(mark)
            .is_some_and(|entry| entry.incarnation.load(Ordering::Acquire) == incarnation)
    }

    /// What is known of the mark was found to be of this incarnation.
    pub fn confirm_incarnation(self, mark: MarkKey, incarnation: u64) {
        let _table = self.lock(Lock::Table, pg_sys::LWLockMode::LW_SHARED);
        if let Some(entry) = self.entry_of(mark) {
            entry.incarnation.store(incarnation, Ordering::Release);
        }
    }

    /// Whether the server's log does not report yet that the database's IDs were
    /// generated with another layout.
    pub fn start_layout_episode(self, mark: MarkKey) -> bool {
        let _table = self.lock(Lock::Table, pg_sys::LWLockMode::LW_SHARED);
        self.entry_of(mark)
            .is_none_or(|entry| !entry.layout_logged.swap(true, Ordering::AcqRel))
    }
}

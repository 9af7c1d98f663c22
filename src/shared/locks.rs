//! The LWLocks of shared memory, which Postgres releases when an error ends the
//! transaction that holds them.
//!
//! An entry's key changes under the table lock held exclusively *and* the entry's own
//! lock; its bound changes under its own lock. So a key and its bound are read
//! together under the table lock in shared mode, and an entry whose lock is
//! held stays what it is. The order is table, then entry, and entry locks are
//! only ever tried, never waited for; the floor's lock comes last, and no other lock is
//! taken with those of conflicts, samples and prepared transactions. So no deadlock
//! is possible.

use std::ffi::c_int;

use pgrx::pg_sys;
use snowflake_id::resolved::Samples;

use super::{NAME, SAMPLES, Shared};

/// The tranche's locks, by their numbers. An [entry](super::marks::Entry) has its own lock.
#[derive(Clone, Copy)]
pub(super) enum Lock {
    Table,
    Floor,
    Conflicts,
    Samples,
    Prepared,
}

pub(super) const LOCKS: c_int = 5;

/// Requests the tranche.
///
/// # Safety
/// In `shmem_request_hook`.
pub(super) unsafe fn request() {
    // SAFETY: per this function's contract.
    unsafe { pg_sys::RequestNamedLWLockTranche(NAME.as_ptr(), LOCKS) };
}

/// The first of the locks that were requested.
///
/// # Safety
/// In `shmem_startup_hook`, after [`request`].
pub(super) unsafe fn requested() -> *mut pg_sys::LWLockPadded {
    // SAFETY: per this function's contract.
    unsafe { pg_sys::GetNamedLWLockTranche(NAME.as_ptr()) }
}

impl Shared {
    pub(super) fn lock(self, lock: Lock, mode: pg_sys::LWLockMode::Type) -> LwLock {
        // SAFETY: there are as many locks.
        let lock = unsafe { &raw mut (*self.0.locks.add(lock as usize)).lock };
        LwLock::acquire(lock, mode)
    }

    /// The number of the tranche, which gives a lock its name in `pg_stat_activity`.
    pub(super) fn tranche_id(self) -> c_int {
        // SAFETY: the lock is initialized, and the number never changes.
        c_int::from(unsafe { (*self.0.locks).lock.tranche })
    }

    /// Keeps other processes from the floor's page until dropped.
    pub fn lock_floor(self) -> LwLock {
        self.lock(Lock::Floor, pg_sys::LWLockMode::LW_EXCLUSIVE)
    }

    /// Keeps other processes from changing [`Shared::conflicts`] until dropped.
    pub fn lock_conflicts(self) -> LwLock {
        self.lock(Lock::Conflicts, pg_sys::LWLockMode::LW_EXCLUSIVE)
    }

    /// What other readers of this database were answered, and a lock on it until dropped.
    pub fn lock_samples(self, database: pg_sys::Oid) -> (&'static Samples, LwLock) {
        let lock = self.lock(Lock::Samples, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let number = database.to_u32() as usize % SAMPLES;
        (&self.0.header.samples[number], lock)
    }

    /// Keeps other processes from changing the prepared ones of [`Shared::transactions`] until dropped.
    pub fn lock_prepared(self) -> LwLock {
        self.lock(Lock::Prepared, pg_sys::LWLockMode::LW_EXCLUSIVE)
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

    #[cfg(feature = "dsm_registry")]
    pub(super) fn exclusive(lock: *mut pg_sys::LWLockPadded) -> Self {
        // SAFETY: an initialised lock in shared memory.
        let lock = unsafe { &raw mut (*lock).lock };
        Self::acquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE)
    }

    pub(super) fn try_acquire(lock: *mut pg_sys::LWLock) -> Option<Self> {
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

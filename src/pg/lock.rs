//! Locks on relations and on other objects.

use std::ffi::c_int;

use pgrx::pg_sys;
use pgrx::prelude::*;

/// Locks a relation, which need not exist, until the end of the transaction.
pub fn relation(relation: pg_sys::Oid, mode: u32) {
    // SAFETY: takes a lock, or raises an error.
    unsafe { pg_sys::LockRelationOid(relation, mode as pg_sys::LOCKMODE) };
}

/// Locks a relation, which need not exist; `false` if it could not be locked in that
/// time. Does not wait if it is 0.
pub(super) fn relation_within(relation: pg_sys::Oid, mode: pg_sys::LOCKMODE, wait_ms: i64) -> bool {
    // SAFETY: takes a lock.
    if unsafe { pg_sys::ConditionalLockRelationOid(relation, mode) } {
        return true;
    }
    if wait_ms <= 0 {
        return false;
    }
    // In the queue, as in `nextval()`, so that later sessions do not go first.
    // `lock_timeout` bounds this wait.
    // SAFETY: a plain integer of this process, restored in every case.
    unsafe {
        let before = pg_sys::LockTimeout;
        let wait = c_int::try_from(wait_ms).unwrap_or(c_int::MAX);
        pg_sys::LockTimeout = if before > 0 { before.min(wait) } else { wait };
        PgTryBuilder::new(|| {
            pg_sys::LockRelationOid(relation, mode);
            true
        })
        .catch_when(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, |_| false)
        .finally(|| pg_sys::LockTimeout = before)
        .execute()
    }
}

/// Locks the number of an object of a catalog (`class`) until the end of the
/// transaction: another lock than that on a relation of this number. The locks on
/// its parts are independent of each other.
pub fn object(class: pg_sys::Oid, object: pg_sys::Oid, part: u16, mode: u32) {
    // SAFETY: takes a lock, or raises an error.
    unsafe { pg_sys::LockDatabaseObject(class, object, part, mode as pg_sys::LOCKMODE) };
}

/// Locks the number of an object against the same lock of other sessions, until the end
/// of the transaction. Does not wait: `false` if another session has it.
pub fn try_object(class: pg_sys::Oid, object: pg_sys::Oid, part: u16) -> bool {
    // SAFETY: the tag is what SET_LOCKTAG_OBJECT in PostgreSQL's headers makes of these.
    unsafe {
        let tag = pg_sys::LOCKTAG {
            locktag_field1: pg_sys::MyDatabaseId.to_u32(),
            locktag_field2: class.to_u32(),
            locktag_field3: object.to_u32(),
            locktag_field4: part,
            locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
            locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
        };
        let mode = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
        pg_sys::LockAcquire(&raw const tag, mode, false, true)
            != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL
    }
}

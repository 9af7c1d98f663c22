//! The write-ahead log.

use pgrx::pg_sys;

/// Makes the records up to this position durable. Returns at once if they are.
pub fn flush(record: pg_sys::XLogRecPtr) {
    // SAFETY: Postgres checks the position.
    unsafe { pg_sys::XLogFlush(record) };
}

/// Where the next record will begin.
pub fn insert_position() -> pg_sys::XLogRecPtr {
    // SAFETY: reads shared memory under a lock.
    unsafe { pg_sys::GetXLogInsertRecPtr() }
}

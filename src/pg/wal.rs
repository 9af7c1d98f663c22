//! The write-ahead log.

use pgrx::pg_sys;

/// Makes the records up to this position durable. Returns at once if they are.
pub fn flush(record: pg_sys::XLogRecPtr) {
    // SAFETY: Postgres checks the position.
    unsafe { pg_sys::XLogFlush(record) };
}

/// Where the last record ends.
pub fn end() -> pg_sys::XLogRecPtr {
    /// The header of a page, and of the first page of a file (`SizeOfXLogShortPHD`,
    /// `SizeOfXLogLongPHD`, access/xlog_internal.h).
    const HEADER: u64 = 24;
    const FIRST_HEADER: u64 = 40;
    // SAFETY: reads shared memory under a lock; the size of files is set at the start.
    let (next, file) = unsafe { (pg_sys::GetXLogInsertRecPtr(), pg_sys::wal_segment_size) };
    // Where the next one begins is behind the header of a page that is not there yet.
    let (in_page, in_file) = (
        next % u64::from(pg_sys::XLOG_BLCKSZ),
        next % u64::from(file.unsigned_abs()),
    );
    if in_page == HEADER || in_file == FIRST_HEADER {
        next - in_page
    } else {
        next
    }
}

//! Transactions: this process's, those of other processes, prepared ones, and which of
//! them a snapshot takes for ended.
//!
//! A block without a comment calls one function of Postgres that pgrx guards, which
//! reads or changes the state of this process's transaction, or raises an error.
#![allow(clippy::undocumented_unsafe_blocks)] // the contract above

use std::ffi::{CStr, c_int};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use pgrx::pg_sys;
use snowflake_id::resolved::Moment;

use super::process::is_parallel_worker;

unsafe extern "C-unwind" {
    // pgrx has no binding for it. A plain number, set at the start.
    static max_prepared_xacts: c_int;
}

/// Whether a transaction is running.
pub fn is_in_transaction() -> bool {
    unsafe { pg_sys::IsTransactionState() }
}

/// How deep the current transaction is nested: 0 outside of one.
pub fn nest_level() -> c_int {
    unsafe { pg_sys::GetCurrentTransactionNestLevel() }
}

/// When the transaction started.
pub fn start_time() -> pg_sys::TimestampTz {
    unsafe { pg_sys::GetCurrentTransactionStartTimestamp() }
}

/// Whether it may write rows: it is not read-only, nor parallel, nor on a standby.
pub fn may_write() -> bool {
    unsafe { !pg_sys::XactReadOnly && !pg_sys::IsInParallelMode() && !pg_sys::RecoveryInProgress() }
}

/// Raises the error of a read-only transaction, a parallel operation and a standby for a
/// command of this name.
pub fn require_writable(command: &CStr) {
    unsafe {
        pg_sys::PreventCommandIfReadOnly(command.as_ptr());
        pg_sys::PreventCommandIfParallelMode(command.as_ptr());
        pg_sys::PreventCommandDuringRecovery(command.as_ptr());
    }
}

/// The next transaction ID, with its epoch.
pub fn next_full_id() -> u64 {
    unsafe { pg_sys::ReadNextFullTransactionId() }.value
}

/// Whether the first of two transaction IDs is the older one: in a circle.
pub fn precedes(xid: u32, other: u32) -> bool {
    (xid.wrapping_sub(other) as i32) < 0
}

/// Makes what the transaction has written visible to its next command.
pub fn make_writes_visible() {
    unsafe { pg_sys::CommandCounterIncrement() };
}

/// Commits, and begins a transaction that has no snapshot yet. The caller is a
/// procedure whose call may commit.
pub fn commit() {
    // SAFETY: connected and finished once. It does what COMMIT in a procedure
    // does, and raises its errors.
    unsafe {
        pg_sys::SPI_connect_ext(pg_sys::SPI_OPT_NONATOMIC as i32);
        pg_sys::SPI_commit();
        pg_sys::SPI_finish();
    }
}

/// The number of transactions that can be prepared at a time.
pub fn max_prepared() -> usize {
    // SAFETY: a setting that only the server's start changes.
    usize::try_from(unsafe { max_prepared_xacts }).unwrap_or(0)
}

/// Whether this transaction may have parallel workers now.
pub fn is_in_parallel_mode() -> bool {
    unsafe { pg_sys::IsInParallelMode() }
}

/// The ID of this transaction, which gets one if it has none.
pub fn id() -> u32 {
    // SAFETY: called within a transaction, not in a parallel worker.
    plain(unsafe { pg_sys::GetTopTransactionId() })
}

fn plain(xid: pg_sys::TransactionId) -> u32 {
    xid.into_inner()
}

/// Whether the transaction with this ID has not ended for all others. An ID that is ahead of
/// the next one is that of a transaction that ended 2^31 IDs ago; PostgreSQL takes it for one that runs.
pub fn is_running(xid: u32) -> bool {
    // SAFETY: any number may be asked for.
    precedes(xid, next_full_id() as u32)
        && unsafe { pg_sys::TransactionIdIsInProgress(pg_sys::TransactionId::from_inner(xid)) }
}

/// The IDs of transactions that may be prepared, and their databases. Some of them may
/// have ended.
pub fn prepared() -> impl Iterator<Item = (u32, pg_sys::Oid)> {
    (0..max_prepared()).filter_map(|number| {
        // SAFETY: within the array of their places. The fields are plain numbers. Those
        // of a transaction that was prepared before the start stay until it ends.
        unsafe {
            let place = pg_sys::PreparedXactProcs.add(number);
            let xid = plain((&raw const (*place).xid).read_volatile());
            let database = (&raw const (*place).databaseId).read_volatile();
            (xid != 0).then_some((xid, database))
        }
    })
}

/// Which transactions the statement that runs takes for ended. `None` without an
/// ordinary snapshot, and in a parallel worker, where it is not known whether the snapshot
/// lists the leader's transaction.
pub fn moment_of_statement() -> Option<Moment> {
    // SAFETY: the snapshot is read at once, while it is active.
    unsafe {
        if is_parallel_worker() || !pg_sys::ActiveSnapshotSet() {
            return None;
        }
        let snapshot = &*pg_sys::GetActiveSnapshot();
        (snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC
            && !snapshot.takenDuringRecovery)
            .then(|| moment(snapshot))
    }
}

/// Which transactions have ended by now. Not in a parallel worker, nor in recovery.
pub fn moment_now() -> Moment {
    static SNAPSHOT: AtomicPtr<pg_sys::SnapshotData> = AtomicPtr::new(ptr::null_mut());
    // SAFETY: all zero bytes are an ordinary snapshot without its arrays, which Postgres
    // allocates for the life of the process. The transaction has an active snapshot, so
    // taking another one changes nothing that the transaction depends on.
    unsafe {
        let mut snapshot = SNAPSHOT.load(Relaxed);
        if snapshot.is_null() {
            let size = size_of::<pg_sys::SnapshotData>();
            snapshot = pg_sys::MemoryContextAllocZero(pg_sys::TopMemoryContext, size).cast();
            (*snapshot).snapshot_type = pg_sys::SnapshotType::SNAPSHOT_MVCC;
            SNAPSHOT.store(snapshot, Relaxed);
        }
        moment(&*pg_sys::GetSnapshotData(snapshot))
    }
}

/// A snapshot does not list the transaction of the process that takes it, and all others
/// do. So it is counted if it began before the snapshot was taken: if it is below `xmax`.
///
/// A transaction that is being prepared is listed twice for a while, which can last: it
/// waits for standbys.
fn moment(snapshot: &pg_sys::SnapshotData) -> Moment {
    let (xmax, own) = (plain(snapshot.xmax), own_transaction_id());
    let is_own_below = own != 0 && own.wrapping_sub(xmax).cast_signed() < 0;
    let listed = if max_prepared() == 0 || snapshot.xcnt < 2 {
        snapshot.xcnt
    } else {
        // SAFETY: the snapshot's own array, of that length.
        let xids = unsafe { std::slice::from_raw_parts(snapshot.xip, snapshot.xcnt as usize) };
        let mut xids: Vec<u32> = xids.iter().copied().map(plain).collect();
        xids.sort_unstable();
        xids.dedup();
        xids.len() as u32
    };
    Moment {
        xmax: with_epoch(xmax),
        running: listed + u32::from(is_own_below),
    }
}

/// The ID of this process's transaction; 0 if it has none.
fn own_transaction_id() -> u32 {
    // SAFETY: this process's own place.
    plain(unsafe { (*pg_sys::MyProc).xid })
}

/// A transaction ID of 64 bits: the one not above the next that will be assigned.
fn with_epoch(xid: u32) -> u64 {
    // SAFETY: reads shared memory under a lock.
    let next = unsafe { pg_sys::ReadNextFullTransactionId() }.value;
    let behind = (next as u32).wrapping_sub(xid);
    next.saturating_sub(u64::from(behind))
}

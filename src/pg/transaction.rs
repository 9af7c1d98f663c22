//! Transactions: this process's, those of other processes, prepared ones, and which of
//! them a snapshot takes for ended.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use pgrx::pg_sys;
use snowflake_id::resolved::Moment;

unsafe extern "C-unwind" {
    // pgrx has no binding for it. A plain number, set at the start.
    static max_prepared_xacts: c_int;
}

/// The number of processes that can have a transaction at a time, from the request for
/// shared memory on.
pub fn max_backends() -> usize {
    // SAFETY: set before shared memory is requested, and never changed.
    usize::try_from(unsafe { pg_sys::MaxBackends }).unwrap_or(0)
}

/// The number of transactions that can be prepared at a time.
pub fn max_prepared_transactions() -> usize {
    // SAFETY: a setting that only the server's start changes.
    usize::try_from(unsafe { max_prepared_xacts }).unwrap_or(0)
}

/// The number of a process's place among those of all backends.
fn number_of(process: *mut pg_sys::PGPROC) -> Option<usize> {
    if process.is_null() {
        return None;
    }
    // SAFETY: the places of all processes are one array.
    let number = unsafe { process.offset_from((*pg_sys::ProcGlobal).allProcs) };
    usize::try_from(number)
        .ok()
        .filter(|&number| number < max_backends())
}

/// The number of this process among all backends; `None` in a process that has no
/// transactions.
pub fn backend_number() -> Option<usize> {
    // SAFETY: set once, before the process's first transaction.
    number_of(unsafe { pg_sys::MyProc })
}

/// The number of the backend whose transaction this process takes part in: for a parallel
/// worker its leader's.
pub fn leader_number() -> Option<usize> {
    if !is_parallel_worker() {
        return backend_number();
    }
    // SAFETY: a parallel worker joins its leader's lock group before it does anything
    // else.
    number_of(unsafe { (*pg_sys::MyProc).lockGroupLeader })
}

/// Whether this process works for another one's transaction.
pub fn is_parallel_worker() -> bool {
    // SAFETY: set once, when the process starts.
    unsafe { pg_sys::ParallelWorkerNumber >= 0 }
}

/// Whether this transaction may have parallel workers now.
pub fn is_in_parallel_mode() -> bool {
    // SAFETY: reads the state of the transaction.
    unsafe { pg_sys::IsInParallelMode() }
}

/// The process and the user of a backend; `None` if it has ended.
pub fn backend(number: usize) -> Option<(i32, pg_sys::Oid)> {
    if number >= max_backends() {
        return None;
    }
    // SAFETY: within the array. The fields are plain numbers that other processes may
    // change meanwhile.
    unsafe {
        let process = (*pg_sys::ProcGlobal).allProcs.add(number);
        let pid = (&raw const (*process).pid).read_volatile();
        let user = (&raw const (*process).roleId).read_volatile();
        (pid != 0).then_some((pid, user))
    }
}

/// The database of this process.
pub fn database() -> pg_sys::Oid {
    // SAFETY: set once, when the process connects to its database.
    unsafe { pg_sys::MyDatabaseId }
}

/// The ID of this transaction, which gets one if it has none.
pub fn transaction_id() -> u32 {
    // SAFETY: called within a transaction, not in a parallel worker.
    plain(unsafe { pg_sys::GetTopTransactionId() })
}

fn plain(xid: pg_sys::TransactionId) -> u32 {
    xid.into_inner()
}

/// Whether the transaction with this ID has not ended for all others.
pub fn is_running(xid: u32) -> bool {
    // SAFETY: any number may be asked for.
    unsafe { pg_sys::TransactionIdIsInProgress(pg_sys::TransactionId::from_inner(xid)) }
}

/// The IDs of transactions that may be prepared, and their databases. Some of them may
/// have ended.
pub fn prepared_transactions() -> impl Iterator<Item = (u32, pg_sys::Oid)> {
    (0..max_prepared_transactions()).filter_map(|number| {
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
    let listed = if max_prepared_transactions() == 0 || snapshot.xcnt < 2 {
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

//! Open transactions, as those that read new rows look at them.
//!
//! A transaction that is prepared gets a place of its own, which it leaves when it has ended. A restart
//! forgets all of them, and those that are still prepared then are not known.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

use crate::SnowflakeId;
use crate::resolved::{OpenTransaction, Promise};

/// An open transaction: a backend's, or a prepared one.
///
/// A cache line of its own, since backends write theirs in each transaction with IDs.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Transaction {
    /// From which ID on it has drawn.
    pub open: OpenTransaction,
    /// The number of a prepared one; 0 for none. Written last.
    xid: AtomicU32,
}

/// Those of a server, in memory that its processes share.
#[derive(Clone, Copy, Debug)]
pub struct Transactions<'a> {
    /// What readers were promised.
    pub promise: &'a Promise,
    /// Those of backends.
    pub backends: &'a [Transaction],
    /// Those that were prepared since the memory was made and have drawn, in no order. Those that have
    /// ended are free.
    pub prepared: &'a [Transaction],
    /// Whether none is prepared whose IDs are not known; a restart forgets them.
    pub prepared_are_known: &'a AtomicBool,
}

/// What is known of transactions besides.
#[allow(async_fn_in_trait)] // A process has one thread.
pub trait Numbers {
    /// Whether the transaction of this number has not ended for all others.
    fn is_running(&self, xid: u32) -> bool;
    /// All that may be prepared, and their databases; some of them may have ended.
    fn prepared(&self) -> impl Iterator<Item = (u32, u32)>;
    /// Whether a prepared transaction may have drawn an ID before the memory was made.
    fn may_precede(&self, xid: u32) -> bool;
    /// Between two steps that others may come between.
    async fn step(&self) {}
}

impl<'a> Transactions<'a> {
    /// A transaction is being prepared: gives the bound of its backend's word, `own`, a place among the
    /// prepared ones. The word is cleared later, when it is prepared. A transaction without IDs is known
    /// too: that it has none. The caller has the lock of these places; `last` is where the last free
    /// one was found.
    pub async fn hand_on(
        self,
        numbers: &impl Numbers,
        own: &OpenTransaction,
        database: u32,
        xid: u32,
        last: &AtomicUsize,
    ) {
        let count = self.prepared.len();
        let start = last.load(Relaxed);
        let free = (0..count)
            .map(|offset| (start + offset) % count)
            .find(|&number| {
                let xid = self.prepared[number].xid.load(Relaxed);
                xid == 0 || !numbers.is_running(xid)
            });
        // There are as many as can be prepared or on the way there.
        let Some(number) = free else { return };
        last.store(number + 1, Relaxed);
        let place = &self.prepared[number];
        // A reader that has seen the former number finds that it has changed.
        place.xid.store(0, Release);
        numbers.step().await;
        place.open.end();
        if let Some(bound) = own.first_id(database) {
            numbers.step().await;
            place.open.take(database, bound);
        }
        numbers.step().await;
        place.xid.store(xid, Release);
    }

    /// The prepared transactions of a database that have drawn an ID below `limit` and have not ended:
    /// the number, and the first ID, of each.
    pub fn prepared(
        self,
        numbers: &impl Numbers,
        database: u32,
        limit: SnowflakeId,
    ) -> impl Iterator<Item = (u32, SnowflakeId)> {
        self.prepared.iter().filter_map(move |place| {
            let xid = place.xid.load(Acquire);
            let first = place.open.first_id(database)?;
            // A place that was given to another transaction meanwhile had been left by the former one.
            // The new one has a word among the backends', which were looked at before, or draws above
            // the promise.
            (xid != 0 && first < limit && place.xid.load(Acquire) == xid && numbers.is_running(xid))
                .then_some((xid, first))
        })
    }

    /// The transactions that were prepared before the start, or before the memory was made, and their
    /// databases. A later one that is not known has drawn nothing: its session had not loaded the
    /// library.
    pub fn unknown(self, numbers: &impl Numbers) -> impl Iterator<Item = (u32, u32)> {
        numbers.prepared().filter(move |&(xid, _)| {
            let is_known = || {
                let mut places = self.prepared.iter();
                places.any(|place| place.xid.load(Acquire) == xid)
            };
            // It may have ended, and its place may have been given away, since it was found.
            numbers.may_precede(xid) && !is_known() && numbers.is_running(xid) && !is_known()
        })
    }

    /// Whether there is such a one in this database.
    pub(super) fn has_unknown(self, numbers: &impl Numbers, database: u32) -> bool {
        // Once there is none, there is none until the next start.
        let all_known = self.prepared_are_known;
        if all_known.load(Acquire) {
            return false;
        }
        let mut is_any = false;
        let mut is_here = false;
        for (_, of) in self.unknown(numbers) {
            is_any = true;
            is_here |= of == database;
        }
        if !is_any {
            all_known.store(true, Release);
        }
        is_here
    }
}

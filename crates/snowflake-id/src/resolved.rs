//! Which IDs are resolved: below the resolved ID no transaction will add a row.
//!
//! An ID is drawn before its transaction commits, so a transaction with a lower ID may commit later
//! than one with a higher ID. A reader of "all rows above the last ID that I have seen" loses the
//! later one. The maker of the IDs knows which transactions have drawn and are open. So it knows
//! below which ID nothing is missing.
//!
//! - [`OpenTransaction`]: one word for each backend, a lower bound of the IDs that its open
//!   transaction has drawn.
//! - [`Promise`]: no transaction that begins to draw from now on draws below it.
//! - [`resolve`]: the reader makes a promise and then looks at every word. The least of them is the
//!   answer.
//! - [`Samples`]: earlier answers, for a reader whose snapshot is older than its question.
//!
//! # Why it holds
//!
//! A transaction publishes its bound *before* it reads the promise for the last time; a reader
//! makes its promise *before* it looks at the words; and each has a sequentially consistent fence
//! between the two. So at least one of them sees the other: the reader sees the word, and answers
//! no more than that, or the transaction sees the promise, and draws nothing below it. The word is
//! cleared after the transaction has ended for all others. So a reader that finds it cleared sees
//! the transaction's rows in every snapshot that it takes later.
//!
//! The words say nothing about snapshots that were taken *before* the reader looked. [`Moment`]
//! orders snapshots, and an answer counts for those that are not older than the one taken right
//! after it ([`Samples`]).
//!
//! The loom model (`tests/loom_resolved.rs`) explores every interleaving of transactions and
//! readers with these types, and finds a loss as soon as one of the protections is taken away.

mod samples;

pub use samples::{Moment, Samples};

#[cfg(not(loom))]
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};

#[cfg(loom)]
use loom::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};

use crate::id::SnowflakeId;

/// The ID below which no transaction draws that begins to draw from now on. It only grows.
///
/// All bytes zero is a valid promise, of nothing.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Promise {
    id: AtomicU64,
}

impl Promise {
    /// The greatest ID that was promised.
    pub fn id(&self) -> SnowflakeId {
        SnowflakeId::from_bits(self.id.load(Acquire))
    }

    /// Promises that no transaction that has not begun yet draws below `id`. Then the reader looks at
    /// every word ([`resolve`]).
    pub(crate) fn make(&self, id: SnowflakeId) {
        self.id.fetch_max(id.bits(), AcqRel);
        removable::fence(removable::READER_FENCE, SeqCst);
    }
}

/// A lower bound of the IDs that one open transaction has drawn, in memory that all processes
/// share.
///
/// Its owner writes it, and the parallel workers of its owner. All bytes zero is a valid one, of a
/// transaction that has drawn nothing. It should have a cache line of its own: its owner writes it
/// in each transaction with IDs.
#[derive(Debug, Default)]
#[repr(C)]
pub struct OpenTransaction {
    /// The bound; 0 for none.
    first: AtomicU64,
    database: AtomicU32,
}

/// What a transaction has to know to draw its first ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Opening {
    /// The transaction's IDs are at or above this one.
    pub least: SnowflakeId,
    /// Whether the word had no bound before, and no other process writes it.
    is_alone: bool,
}

impl OpenTransaction {
    /// Called before a transaction draws its first ID. It has to draw at or above
    /// [`Opening::least`].
    ///
    /// `present` is an ID that is at most the one to be drawn: the first one of the clock's tick,
    /// or of a later one. `is_parallel` tells that other processes may draw for the same
    /// transaction at the same time; they call this too, for the same word.
    #[inline]
    pub fn begin(
        &self,
        promise: &Promise,
        database: u32,
        present: SnowflakeId,
        is_parallel: bool,
    ) -> Opening {
        // Published by the word.
        self.database.store(database, Relaxed);
        // Not 0, which stands for none.
        let bound = present.max(promise.id()).bits().max(1);
        let mut before = self.first.load(Relaxed);
        loop {
            let lowest = if before == 0 {
                bound
            } else {
                before.min(bound)
            };
            match self
                .first
                .compare_exchange_weak(before, lowest, AcqRel, Relaxed)
            {
                Ok(_) => break,
                Err(current) => before = current,
            }
        }
        removable::fence(removable::WRITER_FENCE, SeqCst);
        Opening {
            least: present.max(promise.id()),
            is_alone: before == 0 && !is_parallel,
        }
    }

    /// Called with the first ID that was drawn. It becomes the bound, unless other processes may
    /// have drawn too.
    #[inline]
    pub fn drew(&self, opening: Opening, id: SnowflakeId) {
        if opening.is_alone {
            self.first.store(id.bits().max(1), Release);
        }
    }

    /// Takes the bound of a transaction that is being prepared. The word that it leaves comes
    /// before this one in the order in which [`resolve`] looks at them, and is cleared later.
    pub fn take(&self, database: u32, bound: SnowflakeId) {
        self.database.store(database, Relaxed);
        self.first.store(bound.bits().max(1), Release);
    }

    /// Called when the transaction has ended for all others: its rows are visible to every snapshot
    /// that is taken from now on, or never will be.
    #[inline]
    pub fn end(&self) {
        if self.first.load(Relaxed) != 0 {
            self.first.store(0, Release);
        }
    }

    /// The bound; `None` if there is none, or if the transaction is one of another database.
    #[inline]
    pub fn first_id(&self, database: u32) -> Option<SnowflakeId> {
        let bits = self.first.load(Acquire);
        (bits != 0 && self.database.load(Relaxed) == database).then(|| SnowflakeId::from_bits(bits))
    }
}

/// The least ID that a transaction of this database has drawn or may yet draw: below it, all have
/// ended.
///
/// `present` is the first ID of the present tick, or less. A higher one would make those that draw
/// wait for it.
///
/// The transactions have to be in the order in which they may hand on their bounds: a bound goes to
/// a later one before it leaves an earlier one.
pub fn resolve<'a>(
    promise: &Promise,
    transactions: impl IntoIterator<Item = &'a OpenTransaction>,
    database: u32,
    present: SnowflakeId,
) -> SnowflakeId {
    promise.make(present);
    transactions
        .into_iter()
        .filter_map(|transaction| transaction.first_id(database))
        .fold(present, SnowflakeId::min)
}

/// What the loom model takes away, to see that it finds it.
#[cfg(loom)]
#[doc(hidden)]
pub mod removable {
    use std::sync::atomic::{AtomicU8, Ordering};

    /// The fence of [`OpenTransaction::begin`](super::OpenTransaction::begin).
    pub const WRITER_FENCE: u8 = 1;
    /// The fence of [`resolve`](super::resolve).
    pub const READER_FENCE: u8 = 2;

    /// The one that is taken away; 0 for none.
    pub static REMOVED: AtomicU8 = AtomicU8::new(0);

    pub(super) fn fence(which: u8, order: super::Ordering) {
        if REMOVED.load(Ordering::Relaxed) != which {
            super::fence(order);
        }
    }
}

#[cfg(loom)]
use loom::sync::atomic::Ordering;

/// Nothing can be taken away.
#[cfg(not(loom))]
mod removable {
    pub(super) const WRITER_FENCE: () = ();
    pub(super) const READER_FENCE: () = ();

    #[inline(always)]
    pub(super) fn fence((): (), order: std::sync::atomic::Ordering) {
        super::fence(order);
    }
}

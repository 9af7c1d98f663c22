//! SQL: generating IDs.

use std::num::NonZeroU32;

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::catalog;
use crate::error::Error;
use crate::generator::{self, Batch};

#[pg_extern(sql = false)]
fn snowflake_nextval() -> i64 {
    next()
}

/// The same function. Some frameworks take every default whose text contains
/// "nextval" for a sequence's.
#[pg_extern(sql = false)]
fn snowflake_id() -> i64 {
    next()
}

#[inline]
fn next() -> i64 {
    match generator::next() {
        Ok(id) => id.get(),
        Err(error) => error.report(),
    }
}

#[pg_extern(sql = false)]
fn snowflake_nextvals(count: i32) -> SetOfIterator<'static, i64> {
    let Ok(count) = u32::try_from(count) else {
        Error::NegativeCount(count).report()
    };
    SetOfIterator::new(Batches {
        left: count,
        run: FIRST_RUN,
        batch: None,
    })
}

/// The length of the first run. A call with a LIMIT of 1 uses up as many numbers of a
/// tick, and all sessions share them.
const FIRST_RUN: u32 = 16;

/// The IDs of one `snowflake_nextvals`. They are fetched when they are needed, a run at
/// a time, so a LIMIT ends it early. A run is twice as long as the one before, up to the
/// rest of a tick.
///
/// The session may get other IDs in between: from another call in the same
/// select list, or while a cursor is open. A session's IDs only increase. So if
/// other IDs are above a run, the rest of the run is not issued. Then runs are
/// short, so that little is lost.
struct Batches {
    /// How many are still to be returned.
    left: u32,
    /// How many to reserve at a time.
    run: u32,
    /// The current run, and how many of its IDs were issued.
    batch: Option<(Batch, u32)>,
}

impl Batches {
    /// Gets a run.
    fn reserve(&mut self) -> Option<Batch> {
        self.run = match self.batch {
            None => FIRST_RUN,
            Some((batch, index)) if index < batch.count() => 1,
            Some(_) => self.run.saturating_mul(2),
        };
        let count = NonZeroU32::new(self.left.min(self.run))?;
        let batch = generator::next_batch(count).unwrap_or_else(|error| error.report());
        Some(batch)
    }
}

impl Iterator for Batches {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let (batch, index) = match self.batch {
            Some((batch, index))
                if index < batch.count()
                    && generator::last_id().is_none_or(|last| last < batch.id(index)) =>
            {
                (batch, index)
            }
            _ => (self.reserve()?, 0),
        };
        self.left -= 1;
        self.batch = Some((batch, index + 1));
        let id = batch.id(index);
        generator::issued(id);
        Some(id.get())
    }
}

#[pg_extern(sql = false)]
fn snowflake_currval() -> i64 {
    match generator::last_id() {
        Some(id) => id.get(),
        None => Error::NothingIssued.report(),
    }
}

/// The functions that are the default of a column of IDs.
#[pg_extern(sql = false)]
fn snowflake_generators() -> Vec<pg_sys::Oid> {
    [
        (c"snowflake_nextval", c"snowflake_nextval_wrapper"),
        (c"snowflake_id", c"snowflake_id_wrapper"),
    ]
    .into_iter()
    .filter_map(catalog::function)
    .collect()
}

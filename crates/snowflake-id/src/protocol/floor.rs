//! The floor: the highest mark of all databases of a server.
//!
//! The slots belong to the server, the marks to its databases. After a start, the first ID of one
//! database cannot find out from its own mark what another database issued ahead of the clock before
//! the start, and the two would repeat each other's IDs. So the highest of all marks is kept in one
//! place for the server too, and the first ID after a start raises every slot to it.
//!
//! The record is written before the mark's, and both are flushed before any ID below the new bound
//! is issued. If it cannot be written, nothing has changed yet.

use std::sync::atomic::{AtomicI64, Ordering};

use super::{LogPosition, Storage};
use crate::{Bound, Identity, SnowflakeId};

/// What is known of the floor's page, in memory that all processes share; changed under its lock.
/// All bytes zero is a valid one.
#[derive(Debug, Default)]
pub struct FloorCache {
    /// The bound on the page at the start, plus 1; 0 before it is read.
    at_start: AtomicI64,
    /// The bound that was written since the start.
    written: AtomicI64,
}

impl FloorCache {
    fn at_start(&self) -> Option<SnowflakeId> {
        SnowflakeId::new(self.at_start.load(Ordering::Acquire) - 1)
    }

    fn set_at_start(&self, bound_id: SnowflakeId) {
        // No mark has the greatest bigint as its bound.
        self.at_start
            .store(bound_id.get().saturating_add(1), Ordering::Release);
    }

    /// The bound that was written to the page since the start.
    pub fn written(&self) -> SnowflakeId {
        SnowflakeId::new(self.written.load(Ordering::Acquire)).unwrap_or(SnowflakeId::ZERO)
    }

    fn set_written(&self, bound_id: SnowflakeId) {
        self.written.store(bound_id.get(), Ordering::Release);
    }
}

/// The floor when the server started, or was promoted; 0 if there was none.
///
/// # Errors
/// Those of [`Storage::read_floor`].
pub async fn at_start<S: Storage>(
    storage: &S,
    cache: &FloorCache,
    identity: &Identity,
) -> Result<SnowflakeId, S::Error> {
    let lock = storage.lock_floor().await;
    // The server that a standby follows may raise it.
    let may_keep = !storage.is_in_recovery().await;
    if let Some(known) = cache.at_start().filter(|_| may_keep) {
        return Ok(known);
    }
    let bound_id = storage.read_floor(&lock).await?.highest_for(identity);
    if may_keep {
        cache.set_at_start(bound_id);
    }
    Ok(bound_id)
}

/// Logs that the floor is at least `bound_id`. Returns where the record to be flushed ends; `None`
/// if another process has logged that; its record may not have been flushed yet either.
///
/// # Errors
/// Those of [`Storage::read_floor`] and [`Storage::write_floor`]; then nothing has changed.
pub async fn raise<S: Storage>(
    storage: &S,
    cache: &FloorCache,
    identity: &Identity,
    bound_id: SnowflakeId,
) -> Result<Option<LogPosition>, S::Error> {
    // Read first: the bound from before the start is lost when the page is written.
    at_start(storage, cache, identity).await?;
    if cache.written() >= bound_id {
        return Ok(None);
    }
    let mut lock = storage.lock_floor().await;
    // A process of another database may have raised it in the meantime.
    if cache.written() >= bound_id {
        return Ok(None);
    }
    let mut bounds = storage.read_floor(&lock).await?;
    bounds.raise(Bound {
        layout: *identity.layout(),
        node: identity.node(),
        bound_id,
    });
    let record = storage.write_floor(&mut lock, &bounds).await?;
    cache.set_written(bound_id);
    Ok(Some(record))
}

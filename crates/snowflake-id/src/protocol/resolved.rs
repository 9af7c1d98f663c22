//! Up to where new rows can be read: what a reader is answered.

use super::transactions::{Numbers, Transactions};
use super::{Clocks, ErrorOf, Process, Session, layout_of, mark};
use crate::resolved::{Moment, Samples};
use crate::{SnowflakeId, Tick};

/// What [`ask`] asks besides.
#[allow(async_fn_in_trait)] // A process has one thread.
pub trait ReadingProcess: Process {
    /// What is known of transactions besides.
    type Numbers: Numbers;

    /// The open transactions.
    fn transactions(&self) -> Transactions<'_>;
    /// What is known of them besides.
    fn numbers(&self) -> &Self::Numbers;
    /// Which transactions have ended by now.
    async fn moment(&self) -> Moment;
    /// Locks the earlier answers.
    fn samples<R>(&self, look: impl FnOnce(&Samples) -> R) -> R;
    /// Called with an answer of this moment.
    fn answered(&self, _clocks: Clocks, _id: SnowflakeId) {}
}

/// The greatest ID below which every row of the database is visible to a snapshot of that moment, or
/// never will be. `None` if nothing can be said.
///
/// # Errors
/// Those of [`present`].
pub async fn ask<P: ReadingProcess>(
    process: &P,
    snapshot: Moment,
) -> Result<Option<SnowflakeId>, ErrorOf<P>> {
    let (transactions, numbers) = (process.transactions(), process.numbers());
    let database = process.session().database();
    if transactions.has_unknown(numbers, database) {
        return Ok(None);
    }
    let clocks = process.clocks().await;
    let Some((present, bound)) = present(process, clocks).await? else {
        return Ok(None);
    };
    numbers.step().await;
    transactions.promise.make(present);
    let mut id = present;
    // A transaction hands on its bound to a place among the prepared ones before it leaves its own.
    for backend in transactions.backends {
        numbers.step().await;
        id = id.min(backend.open.first_id(database).unwrap_or(id));
    }
    numbers.step().await;
    let prepared = transactions.prepared(numbers, database, present);
    id = prepared.map(|(_, first)| first).fold(id, SnowflakeId::min);
    // After the look, so that it has all that had ended by then.
    let moment = process.moment().await;
    process.answered(clocks, id);
    Ok(process.samples(|samples| {
        samples.add(database, moment, id, clocks.boot);
        // Earlier answers may be of a dropped database that had this number.
        let answer = samples.find(database, snapshot);
        answer.map(|answer| answer.min(bound))
    }))
}

/// What a reader may promise: the first ID of the present tick, or of the first tick that is not
/// reserved if that is earlier; and the first ID of the latter. `None` if another session has locked
/// the mark.
///
/// A higher one than the first would make those that draw wait for the clock. IDs never start below
/// the mark's bound, also after a crash with a clock that was set back: so no ID below an answer is
/// drawn after a restart. Nothing is lost by it, because no row has an ID above the bound.
///
/// # Errors
/// Those of [`mark::bound_on_page`].
pub async fn present<P: Process>(
    process: &P,
    clocks: Clocks,
) -> Result<Option<(SnowflakeId, SnowflakeId)>, ErrorOf<P>> {
    let layout = layout_of(process);
    let slewed_clock = process.shared().slewed_clock;
    // Of a clock that has jumped ahead, what it would show otherwise: those that draw have to draw
    // above the promise, and would follow that clock.
    let limits = process.settings().limits(layout);
    let wall = slewed_clock.trusted(clocks.wall, clocks.boot, limits);
    let time = slewed_clock.time(wall, clocks.boot);
    let now = if time < layout.epoch().into() {
        Tick::default()
    } else {
        layout.tick_at(time.into()).unwrap_or(layout.last_tick())
    };
    let bound = match mark::confirmed_bound(process).await {
        Some(bound) => bound,
        // Nothing was drawn here since the start, and the first ID will be above this.
        None => match mark::bound_on_page(process.storage()).await? {
            Some(bound_id) => layout.tick_above(bound_id),
            None => return Ok(None),
        },
    };
    let present = layout.first_id_of(now.min(bound));
    Ok(Some((present, layout.first_id_of(bound))))
}

//! What a reader may be answered at most.

use super::{Clocks, ErrorOf, Process, layout_of, mark};
use crate::{SnowflakeId, Tick};

/// What a reader may promise: the first ID of the present tick, or of the first tick that is not
/// reserved if that is earlier. `None` if another session has locked the mark.
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
) -> Result<Option<SnowflakeId>, ErrorOf<P>> {
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
    Ok(Some(layout.first_id_of(now.min(bound))))
}

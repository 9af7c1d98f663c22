//! What superusers set right: where IDs start, and the clock.

use snowflake_id::protocol::mark::raise_slots_to_restored;
use snowflake_id::protocol::{self, Clocks, NotAccepted, now};
use snowflake_id::{SnowflakeId, Tick, WallTime};

use crate::clock;
use crate::error::Error;
use crate::generator::process::Backend;
use crate::generator::{session, storage};
use crate::pg::relation;
use crate::settings;
use crate::shared;

/// Makes sure that later IDs of this database are greater than `id`.
///
/// # Errors
/// [`Error::StartTooFarAhead`] if that is more than `max_clock_step` ahead of the
/// clock; else as [`next`](crate::generator::next()).
pub fn start_after(id: i64) -> Result<(), Error> {
    let session = session::resolve()?;
    let layout = session.layout();
    let parts = SnowflakeId::new(id).ok_or(Error::NegativeId(id))?;
    layout
        .decode(parts)
        .map_err(|error| Error::IdOutsideLayout {
            id,
            bits: error.total_bits,
        })?;
    // The next tick: within the same one, slots of smaller numbers would still
    // issue smaller IDs.
    let tick = Tick::new(layout.tick_of(parts).get() + 1);
    let too_far = |clocks: Clocks| Error::StartTooFarAhead {
        id,
        wall: clocks.wall,
        start: layout.time_of(tick),
    };
    let process = Backend::new(session);
    now(protocol::draw::start_at(&process, tick, too_far))?;
    // This process reads the mark again, too.
    session::MEMORY.forget();
    Ok(())
}

/// Makes sure that later IDs of this database are not below a restored mark, as far
/// as a mark that was set may do that.
///
/// Usually no ID has been issued in the database, and the first one reads the mark.
/// If time is reserved already, a mark below it changes nothing on the page. Then
/// only the slots have to be raised, within the same limit. Without that, a server
/// with the same node number would issue IDs below those of the restored rows.
///
/// # Errors
/// [`Error::NegativeId`], and as [`storage::raise_mark_to`].
pub fn restore_mark(bound: i64) -> Result<(), Error> {
    let bound_id = SnowflakeId::new(bound).ok_or(Error::NegativeId(bound))?;
    storage::raise_mark_to(storage::locate_mark()?, bound_id)?;
    #[cfg(feature = "testing")]
    if crate::unprotected::is("mark") {
        return Ok(());
    }
    // A server that cannot issue IDs has no slots to raise.
    let Ok(session) = session::resolve() else {
        return Ok(());
    };
    let process = Backend::of_database(session)?;
    // What each process keeps is forgotten when this transaction commits, as its rows become visible.
    relation::forget(storage::locate_mark()?);
    now(raise_slots_to_restored(&process, bound_id, clock::read()))
}

/// Trusts what the wall clock shows, however far it has jumped ahead. `expected` is
/// what the caller expects it to show.
///
/// # Errors
/// [`Error::ClockNotAsExpected`] if the clock differs from that by more than a
/// minute; [`Error::ClockBehind`] if the clock is behind issued IDs, which cannot
/// be accepted.
pub fn accept_clock(expected: WallTime) -> Result<(), Error> {
    let shared = shared::get_or_make()?;
    let clocks = clock::read();
    let wall = clocks.wall;
    protocol::accept_clock(
        shared.slewed_clock(),
        settings::of_protocol(),
        clocks,
        expected,
    )
    .map_err(|reason| match reason {
        NotAccepted::NotAsExpected => Error::ClockNotAsExpected { wall, expected },
        NotAccepted::Behind { reached } => Error::ClockBehind { wall, reached },
    })
}

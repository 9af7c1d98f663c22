//! What superusers set right: where IDs start, and the clock.

use snowflake_id::{SnowflakeId, Tick, WallTime};

use pgrx::pg_sys;

use crate::clock::Clocks;
use crate::error::Error;
use crate::generator::reserve::{self, Reservation};
use crate::generator::wait::WaitBudget;
use crate::generator::{mark, session};
use crate::settings;
use crate::shared;

/// Makes sure that later IDs of this database are greater than `id`.
///
/// # Errors
/// [`Error::StartTooFarAhead`] if that is more than `max_clock_step` ahead of the
/// clock; else as [`next`](crate::generator::next()).
pub fn start_after(function: pg_sys::Oid, id: i64) -> Result<(), Error> {
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
    let mut budget = WaitBudget::new();
    loop {
        // The mark is not read first: that would wait for a mark that was set,
        // which this accepts.
        let reservation = Reservation::current(session, function)?;
        let clocks = Clocks::read();
        let highest = reserve::highest_accepted(session, clocks.wall);
        if tick > highest.min(layout.last_tick()) {
            return Err(Error::StartTooFarAhead {
                id,
                wall: clocks.wall,
                start: layout.time_of(tick),
            });
        }
        let request = reservation.request(session, clocks, 1, budget.left_ms());
        match mark::start_at(session.shared, &request, tick) {
            Ok(_) => {
                // This process reads the mark again, too.
                reserve::forget();
                return Ok(());
            }
            Err(reason) => reserve::wait_for(reason, session, clocks, &mut budget)?,
        }
    }
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
/// [`Error::NegativeId`], and as [`mark::raise_to`].
pub fn restore_mark(function: pg_sys::Oid, bound: i64) -> Result<(), Error> {
    let bound_id = SnowflakeId::new(bound).ok_or(Error::NegativeId(bound))?;
    mark::raise_to(mark::locate(function)?, bound_id)?;
    #[cfg(feature = "testing")]
    if crate::unprotected::is("mark") {
        return Ok(());
    }
    // A server that cannot issue IDs has no slots to raise.
    let Ok(session) = session::resolve() else {
        return Ok(());
    };
    let clocks = Clocks::read();
    let bound = session.layout().tick_above(bound_id);
    if bound <= reserve::highest_set(session.shared, session.layout(), clocks.wall) {
        mark::raise_slots(session.shared, session.layout(), bound, clocks.boot);
    }
    Ok(())
}

/// Trusts what the wall clock shows, however far it has jumped ahead. `expected` is
/// what the caller expects it to show.
///
/// # Errors
/// [`Error::ClockNotAsExpected`] if the clock differs from that by more than a
/// minute; [`Error::ClockBehind`] if the clock is behind issued IDs, which cannot
/// be accepted.
pub fn accept_clock(expected: WallTime) -> Result<(), Error> {
    const MAX_CLOCK_DIFFERENCE_MICROS: u64 = 60_000_000;
    let shared = shared::get().ok_or(Error::NotPreloaded)?;
    let clocks = Clocks::read();
    if clocks.wall.micros_since(expected).unsigned_abs() > MAX_CLOCK_DIFFERENCE_MICROS {
        return Err(Error::ClockNotAsExpected {
            wall: clocks.wall,
            expected,
        });
    }
    let reached = shared.slewed_clock().reached();
    let behind = reached.micros_since(clocks.wall);
    if settings::max_clock_step_micros().is_some_and(|max| behind > max) {
        return Err(Error::ClockBehind {
            wall: clocks.wall,
            reached,
        });
    }
    shared.slewed_clock().trust(clocks.offset());
    Ok(())
}

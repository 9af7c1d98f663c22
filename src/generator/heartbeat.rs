//! Reserves time without an ID, for `snowflake_advance_resolved_id()`.
//!
//! A database that generates no IDs has a resolved ID that stays at its mark. Moving the
//! mark as an ID of this moment would lets it follow the clock.

use pgrx::pg_sys;

use crate::clock::Clocks;
use crate::error::Error;
use crate::generator::accepted_layout;
use crate::generator::mark::NotReserved;
use crate::generator::reading::Reading;
use crate::generator::reserve::Reservation;
use crate::generator::session::Session;

/// How often it begins again because the mark was set in the meantime.
const MAX_ATTEMPTS: usize = 3;

/// Reserves time if an ID of this moment would: when less than half a lease is left. It
/// makes the checks of a first ID and waits for nothing. Where an ID would be refused, or
/// would have to wait, nothing changes and that is no error.
///
/// # Errors
/// As [`mark::locate`](crate::generator::mark::locate) and [`accepted_layout::check`].
pub fn reserve_present(session: &Session, function: pg_sys::Oid) -> Result<(), Error> {
    for _ in 0..MAX_ATTEMPTS {
        if session.shared.is_stopped() {
            break;
        }
        let mut reservation = Reservation::current(session, function)?;
        let clocks = Clocks::read();
        if !reservation.is_known() {
            match reservation.read_mark(session, clocks, 0) {
                Ok(()) => {}
                Err(NotReserved::Raised) => continue,
                Err(_) => break,
            }
        }
        accepted_layout::check(
            session.shared,
            *session.layout(),
            function,
            reservation.mark(),
        )?;
        let Ok(Some(reading)) = Reading::take(session, clocks) else {
            break;
        };
        if reservation
            .extend_early(session, reading, reading.now)
            .is_err()
        {
            break;
        }
        reservation.keep();
        // Otherwise the mark was set in the meantime, or another process moves it for
        // the first time.
        if reservation.is_known() {
            break;
        }
    }
    Ok(())
}

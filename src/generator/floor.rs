//! The floor: the bound below which this server's IDs stay, in any database.
//!
//! Slots belong to the server, marks to its databases, and the first ID of a
//! database after a start can read only its own mark. It would not know what
//! another database issued ahead of the clock before the start, and the two would
//! repeat each other's IDs. So the highest of all marks is kept in one place for
//! the server too, and the first ID after a start raises every slot to it.
//!
//! That place is a page of its own, the only one of the file [`NUMBER`] in the
//! directory `global`, where the shared catalogs are. It is read and written
//! through shared buffers, and each change is logged as the image of the page,
//! which PostgreSQL's own recovery restores. So the floor is carried by all that
//! carries the marks: crash recovery, a standby and its promotion, a base backup,
//! point-in-time recovery, `pg_rewind`. None of them needs this library for it.
//!
//! No catalog knows the file. PostgreSQL never removes files it does not know,
//! and never takes the number of a file that exists. A server restored by
//! `pg_upgrade` or from a dump has none: there the marks of the databases are
//! the only record.
//!
//! The page holds a line for each layout and node number that the server has had.
//! A server that returns to an earlier number finds its bound again, and the
//! bounds of other numbers do not apply to it.
//!
//! The record is written before the mark's ([`crate::generator::mark`]), and both are
//! flushed before any ID below the new bound is issued. If it cannot be written,
//! nothing has changed yet.

use pgrx::pg_sys;
use snowflake_id::{Bound, Bounds, Identity, SnowflakeId};

use crate::error::Error;
use crate::pg;
use crate::pg::page::{GlobalFile, Page};
use crate::shared::Shared;

/// The number of the file: "snow" in ASCII. Files of relations have the numbers
/// of OIDs, which a server counts up from 16384.
pub const NUMBER: u32 = u32::from_be_bytes(*b"snow");

const FILE: GlobalFile = GlobalFile::numbered(NUMBER);

/// The floor when the server started, or was promoted; 0 if there was none.
///
/// # Errors
/// [`Error::FloorDamaged`].
pub fn at_start(shared: Shared, identity: &Identity) -> Result<SnowflakeId, Error> {
    if pg::server::is_in_recovery() {
        // The server that this one follows may raise it.
        return read(identity);
    }
    let _lock = shared.lock_floor();
    let floor = shared.floor();
    if let Some(known) = floor.at_start() {
        return Ok(known);
    }
    let bound_id = read(identity)?;
    floor.set_at_start(bound_id);
    Ok(bound_id)
}

/// Logs that the floor is at least `bound_id`. Returns where the record to be
/// flushed ends; `None` if another process has logged that; its record may not have
/// been flushed yet either.
///
/// # Errors
/// As [`at_start`]; then nothing has changed.
pub fn raise(
    shared: Shared,
    identity: &Identity,
    bound_id: SnowflakeId,
) -> Result<Option<pg_sys::XLogRecPtr>, Error> {
    // Read first: the bound from before the start is lost when the page is written.
    at_start(shared, identity)?;
    let floor = shared.floor();
    if floor.written() >= bound_id {
        return Ok(None);
    }
    let _lock = shared.lock_floor();
    // A process of another database may have raised it in the meantime.
    if floor.written() >= bound_id {
        return Ok(None);
    }
    if !FILE.has_page() {
        FILE.create();
    }
    let mut page = FILE.lock_page();
    let mut bounds = bounds_on(&page)?;
    bounds.raise(Bound {
        layout: *identity.layout(),
        node: identity.node(),
        bound_id,
    });
    let record = page.replace_contents(bounds.to_string().as_bytes());
    floor.set_written(bound_id);
    Ok(Some(record))
}

/// The greatest bound that applies to this server.
fn read(identity: &Identity) -> Result<SnowflakeId, Error> {
    #[cfg(feature = "testing")]
    if crate::unprotected::is("mark") {
        return Ok(SnowflakeId::ZERO);
    }
    if FILE.has_page() {
        Ok(bounds_on(&FILE.lock_page())?.highest_for(identity))
    } else {
        Ok(SnowflakeId::ZERO)
    }
}

/// # Errors
/// [`Error::FloorDamaged`].
fn bounds_on(page: &Page) -> Result<Bounds, Error> {
    if page.is_new() {
        // A server ended right after it created the file.
        return Ok(Bounds::default());
    }
    page.contents()
        .and_then(|text| std::str::from_utf8(text).ok())
        .and_then(|text| text.parse().ok())
        .ok_or(Error::FloorDamaged)
}

//! A second server with this server's node number.
//!
//! Where logical replication brings rows from other servers, a trigger passes those
//! with this server's node number to [`arrived`]. The core crate tells whether
//! this server has certainly not issued the ID ([`snowflake_id::node_conflict`]). Then
//! the conflict is counted and logged. With `snowflake.on_node_conflict = stop`, all
//! slots are closed, which ends the issuing in every process at once. A file keeps
//! that across restarts ([`crate::server_file`]), until a superuser calls
//! [`accept`], or the number is changed.
//!
//! Only IDs from after the start are judged: what was issued before it is not in the
//! slots. So rows of an initial copy, of a dump, or of the time before a failover
//! are not taken for a conflict.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use snowflake_id::node_conflict;
use snowflake_id::protocol::mark::highest_set;
use snowflake_id::{Identity, SnowflakeId, Tick};

use crate::clock;
use crate::error::Error;
use crate::generator::{admin, log, storage};
use crate::pg;
use crate::server_file;
use crate::settings::{self, OnNodeConflict};
use crate::shared::{self, Shared};

/// Whether the ID has this server's node number.
#[inline]
pub fn has_this_node(id: i64) -> bool {
    settings::identity()
        .or_else(decide)
        .zip(SnowflakeId::new(id))
        .is_some_and(|(identity, id)| node_conflict::has_node(identity, id))
}

/// This server's layout and node number, decided now, once tried: the library may not be
/// preloaded.
#[cold]
fn decide() -> Option<&'static Identity> {
    static TRIED: AtomicBool = AtomicBool::new(false);
    if !TRIED.swap(true, Relaxed) {
        let _ = shared::get_or_make();
    }
    settings::identity()
}

/// A row with this ID came from another server into this table.
pub fn arrived(id: i64, table: &str) {
    let Some((shared, identity)) = shared::get().zip(settings::identity()) else {
        return;
    };
    let Some((id, first_judged)) = SnowflakeId::new(id).zip(first_judged(shared, identity)) else {
        return;
    };
    if !node_conflict::is_conflict(identity, shared.slots(), first_judged, id) {
        return;
    }
    let conflicts = shared.conflicts();
    let count = conflicts.count.fetch_add(1, Relaxed) + 1;
    conflicts.keep(identity.layout(), id, clock::wall());
    log::node_conflict(shared, identity, id, table, count);
    if settings::on_node_conflict() == OnNodeConflict::Stop {
        stop(shared, identity, id);
    }
}

/// The first ID that is judged: of a tick after the start, and above the floor.
/// `None` if the floor cannot be read, which the next ID reports.
fn first_judged(shared: Shared, identity: &Identity) -> Option<SnowflakeId> {
    let floor = storage::floor_at_start(shared, identity).ok()?;
    let layout = identity.layout();
    // The epoch of a new layout may be after the start.
    let start = layout
        .tick_at(clock::time(pg::server::started_at()))
        .unwrap_or_default();
    let after = Tick::new(start.get() + 1).min(layout.last_tick());
    Some(floor.max(layout.first_id_of(after)))
}

/// Ends the issuing of IDs on this server.
fn stop(shared: Shared, identity: &Identity, id: SnowflakeId) {
    if shared.is_stopped() {
        return;
    }
    let _lock = shared.lock_conflicts();
    if shared.is_stopped() {
        return;
    }
    // First: an error must not end the stop halfway.
    shared.stop();
    server_file::keep_conflict(identity, id);
    log::stopped(identity, id);
}

/// Accepts that this server is the only one with its node number: its IDs
/// continue, above those of the conflict, and its directory is no copy.
///
/// Any role that may write to a published table on another server can write an ID with
/// this node number and any time. So an ID is followed as far as a mark that was set is:
/// by a lease, or to what has been reached anyway. `ignored_id` is an ID beyond that
/// which is not followed.
///
/// # Errors
/// [`Error::ConflictAhead`], [`Error::NotTheConflict`], [`Error::ServerFileIo`], and those of
/// [`shared::get_or_make`] and [`admin::start_after`].
pub fn accept(ignored_id: Option<i64>) -> Result<(), Error> {
    let shared = shared::get_or_make()?;
    let identity = settings::identity().ok_or(Error::NodeNotSet)?;
    let conflicts = shared.conflicts();
    let highest = conflicts.highest.load(Acquire);
    let far_ahead = conflicts.far_ahead.load(Acquire);
    let known = [highest, far_ahead];
    if let Some(ignored) = ignored_id {
        let is_reported = ignored > 0 && known.iter().max() == Some(&ignored);
        // One that was far ahead when it arrived can be near by now.
        let is_ahead = ignored == far_ahead || too_far_ahead(shared, identity, ignored).is_some();
        if !is_reported || !is_ahead {
            return Err(Error::NotTheConflict(ignored));
        }
    }
    let followed = known.into_iter().filter(|&id| Some(id) != ignored_id).max();
    if let Some(id) = followed.filter(|&id| id > 0)
        && !pg::server::is_in_recovery()
    {
        if let Some(error) = too_far_ahead(shared, identity, id) {
            return Err(error);
        }
        admin::start_after(id)?;
    }
    let _lock = shared.lock_conflicts();
    server_file::accept(identity).map_err(|error| Error::ServerFileIo {
        name: server_file::name(),
        error,
    })?;
    // A higher one that has arrived in the meantime stays.
    let _ = conflicts
        .highest
        .compare_exchange(highest, 0, AcqRel, Relaxed);
    let _ = conflicts
        .far_ahead
        .compare_exchange(far_ahead, 0, AcqRel, Relaxed);
    shared.resume();
    Ok(())
}

/// Why IDs cannot continue after this one; `None` if they can.
fn too_far_ahead(shared: Shared, identity: &Identity, id: i64) -> Option<Error> {
    let id = SnowflakeId::new(id)?;
    let layout = identity.layout();
    let clocks = clock::read();
    let wall = clocks.wall;
    let tick = layout.tick_of(id);
    let highest = highest_set(
        shared.slewed_clock(),
        settings::of_protocol(),
        layout,
        clocks,
    );
    (tick > highest).then(|| Error::ConflictAhead {
        id,
        wall,
        at: layout.time_of(tick),
    })
}

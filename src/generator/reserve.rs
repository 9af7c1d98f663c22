//! What this process keeps of its database's reservation between calls.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};

use parking_lot::Mutex;
use pgrx::pg_sys;
use snowflake_id::protocol::Reservation;

use crate::error::Error;
use crate::generator::session::FAST_PATH;
use crate::generator::storage::locate_mark;
use crate::pg;
use crate::settings;

/// The mark's sequence, and what is reserved. Unlike the standard library's, this mutex is
/// not poisoned when an error of Postgres passes through. It is never held while the mark
/// is located, read or moved.
static KEPT: Mutex<Option<(pg_sys::Oid, Reservation)>> = Mutex::new(None);

/// The OID of the mark's sequence that is in use, for [`relation_changed`].
static MARK: AtomicU32 = AtomicU32::new(0);

/// Set when the relation cache forgets the mark: the extension may have been
/// dropped and created again.
static MARK_CHANGED: AtomicBool = AtomicBool::new(false);

/// What was kept; `None` if the mark or a setting has changed since.
pub fn kept() -> Option<(pg_sys::Oid, Reservation)> {
    let mark_changed = MARK_CHANGED.swap(false, Relaxed);
    let settings_changed = settings::take_changed();
    let kept = *KEPT.lock();
    if kept.is_none() || mark_changed || settings_changed {
        // Not to be kept if an error follows.
        forget();
        return None;
    }
    kept
}

/// Finds the mark, and notices when it changes.
///
/// # Errors
/// As [`locate_mark`].
pub fn find_mark() -> Result<pg_sys::Oid, Error> {
    watch_relation_cache();
    let mark = locate_mark()?;
    MARK.store(mark.to_u32(), Relaxed);
    Ok(mark)
}

/// Keeps it for the next call and for the fast path.
pub fn keep(mark: pg_sys::Oid, reservation: Reservation) {
    *KEPT.lock() = Some((mark, reservation));
    FAST_PATH.open(reservation);
    // The relation cache may have forgotten the mark in the meantime.
    if MARK_CHANGED.load(Relaxed) {
        FAST_PATH.close();
    }
}

/// Forgets what is reserved: the next ID looks it up.
pub fn forget() {
    *KEPT.lock() = None;
    FAST_PATH.close();
}

fn watch_relation_cache() {
    // Set last: an error of Postgres in between must not prevent a second try.
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.load(Relaxed) {
        return;
    }
    pg::callbacks::on_relation_change(relation_changed);
    DONE.store(true, Relaxed);
}

fn relation_changed(relation: pg_sys::Oid) {
    // 0 stands for every relation.
    if relation == pg_sys::InvalidOid || relation.to_u32() == MARK.load(Relaxed) {
        MARK_CHANGED.store(true, Relaxed);
        FAST_PATH.close();
    }
}

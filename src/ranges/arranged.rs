//! Which tables are arranged by the time of an ID: by an index, a partition key or a CHECK
//! with a call of a function that reads it. There the condition has to stay beside its
//! range, or the planner would no longer find what that is for.
//!
//! The arrangement of a table's children is known only later in planning. Opening all of
//! them would cost more than planning does, so `pg_depend` is asked, once until any
//! relation changes: the answer is nearly always that there are none.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use pgrx::pg_sys::Oid;

use crate::pg;
use crate::pg::plan_tree::BaseRelation;

/// The functions that were asked for, and the tables.
static KNOWN: Mutex<Option<([Oid; 4], Vec<Oid>)>> = Mutex::new(None);

/// Whether a table, or a child or partition of it on any level, is arranged by the time.
pub fn is_arranged(relation: BaseRelation<'_>, readers: [Oid; 4]) -> bool {
    #[cfg(feature = "testing")]
    if crate::unprotected::is("range_children") {
        return relation.is_arranged_by(&readers);
    }
    // Functions that were inlined are seen only here.
    relation.is_arranged_by(&readers)
        || tables(readers).into_iter().any(|table| {
            table == relation.table()
                || relation.has_children()
                    && pg::inheritance::inherits_from(table, relation.table())
        })
}

fn tables(readers: [Oid; 4]) -> Vec<Oid> {
    watch_changes();
    if let Some((of, tables)) = &*KNOWN.lock()
        && *of == readers
    {
        return tables.clone();
    }
    // Reading may take in changes, which are before the answer.
    CHANGED.store(false, Relaxed);
    let tables = pg::dependents::tables_arranged_by(&readers);
    if !CHANGED.load(Relaxed) {
        *KNOWN.lock() = Some((readers, tables.clone()));
    }
    tables
}

/// Set when a relation changes.
static CHANGED: AtomicBool = AtomicBool::new(false);

fn watch_changes() {
    // Set last: an error of Postgres in between must not prevent a second try.
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.load(Relaxed) {
        pg::callbacks::on_relation_change(|_| {
            CHANGED.store(true, Relaxed);
            *KNOWN.lock() = None;
        });
        DONE.store(true, Relaxed);
    }
}

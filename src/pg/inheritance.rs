//! Inheritance and partitions. Any role can make chains and diamonds of tables, so each
//! table is looked at once.

use pgrx::{check_for_interrupts, pg_sys};

use super::catalog::each_row;

/// `pg_inherits` and its indexes by the child, which is the first column, and by the
/// parent, which is the second one. Not in pgrx's bindings, but fixed.
const PG_INHERITS: u32 = 2611;
const CHILD_INDEX: u32 = 2680;
const PARENT_INDEX: u32 = 2187;

/// Whether a table inherits from another one, or is a partition of it, on any level.
pub fn inherits_from(relation: pg_sys::Oid, ancestor: pg_sys::Oid) -> bool {
    closure(relation, CHILD_INDEX, |[_child, parent]| parent)[1..].contains(&ancestor)
}

/// A table, and all that inherit from it or are its partitions, on any level.
pub fn with_descendants(relation: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    closure(relation, PARENT_INDEX, |[child, _parent]| child)
}

/// A table, and what `next` leads to from it.
fn closure(
    relation: pg_sys::Oid,
    index: u32,
    next: fn([pg_sys::Oid; 2]) -> pg_sys::Oid,
) -> Vec<pg_sys::Oid> {
    let column = if index == CHILD_INDEX { 1 } else { 2 };
    let mut found = vec![relation];
    let mut position = 0;
    // SAFETY: the catalog is open while it is read; its rows have no variable part.
    unsafe {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        let catalog = pg_sys::table_open(pg_sys::Oid::from(PG_INHERITS), lock);
        while let Some(of) = found.get(position).copied() {
            check_for_interrupts!();
            each_row(catalog, index, &[(column, of)], |row| {
                let other = next(*pg_sys::GETSTRUCT(row).cast::<[pg_sys::Oid; 2]>());
                if !found.contains(&other) {
                    found.push(other);
                }
            });
            position += 1;
        }
        pg_sys::table_close(catalog, lock);
    }
    found
}

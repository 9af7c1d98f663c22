//! The shadow indexes of DEFERRABLE constraints.
//!
//! The index of a DEFERRABLE constraint accepts a duplicate, and the constraint's
//! trigger checks it again at the end of the statement or of the transaction. A
//! plain unique index refuses it at once. The index over the shadow column belongs
//! to no constraint until the swap, so it would fail statements that exchange
//! values. PostgreSQL itself can build an index that accepts duplicates, but the
//! grammar has no word for it outside of constraints.
//!
//! Uniqueness rests on the narrow column's constraint, and on the CHECK that the
//! shadow equals it.

use std::ffi::CString;

use crate::pg::{self, NewIndex};

/// Whether an index that is about to be built is the counterpart of the index of a
/// DEFERRABLE constraint of the same table, by its name. Its name has to be that of
/// `snowflake_internal.migration_shadow_name`, which may not exist in this database.
///
/// Only the table's owner can create an index, and one that accepts duplicates
/// deceives no other session: PostgreSQL then concludes nothing from its uniqueness.
/// A server with assertions would stop at such an index.
pub fn is_counterpart_of_deferrable(index: NewIndex<'_>) -> bool {
    if !index.name.to_bytes().starts_with(b"snowflake_") {
        return false;
    }
    let query = [
        &b"SELECT 1 FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conindid WHERE k.conrelid = "[..],
        u32::from(index.table).to_string().as_bytes(),
        b"::oid AND k.contype IN ('p', 'u') AND k.condeferrable AND ",
        pg::literal(index.name).to_bytes(),
        b"::name = ('snowflake_' || left(encode(sha256(replace('index ' || c.relname, E'\\\\', E'\\\\\\\\')::bytea), 'hex'), 8) || '_' || c.relname)::name \
          AND current_setting('debug_assertions') = 'off'",
    ]
    .concat();
    // No part has a zero byte.
    let Ok(query) = CString::new(query) else {
        return false;
    };
    // For the search path, which is pg_catalog then.
    pg::with_rights_of(pg::current_user(), None, &pg::SearchPath::system(), || {
        pg::first_row(&query, false)
    })
    .is_ok_and(|row| row.is_some())
}

//! The state of a sequence, by its OID. A name that SQL reads from may belong to a
//! view by then.

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error::{Error, or_report};
use crate::owner::{class_of, require_owner};
use crate::pg::sequence::Sequence;
use crate::pg::{self, Mode, Relation};

/// The last value and whether it was issued; NULLs if the owner of the table
/// `on_behalf_of` may not read the sequence.
#[pg_extern(sql = false)]
fn snowflake_migrate_sequence_state(
    sequence: pg_sys::Oid,
    on_behalf_of: pg_sys::Oid,
) -> TableIterator<
    'static,
    (
        name!(last_value, Option<i64>),
        name!(is_called, Option<bool>),
    ),
> {
    let state = or_report(state(sequence, on_behalf_of));
    TableIterator::once(match state {
        Some((last_value, is_called)) => (Some(last_value), Some(is_called)),
        None => (None, None),
    })
}

fn state(sequence: pg_sys::Oid, table: pg_sys::Oid) -> Result<Option<(i64, bool)>, Error> {
    const PRIVILEGES: u32 = pg_sys::ACL_SELECT | pg_sys::ACL_USAGE;
    let owner = require_owner(class_of(table)?)?.owner;
    let may_read = || pg::privileges::has_privilege_on(sequence, owner, PRIVILEGES);
    if class_of(sequence)?.kind != pg_sys::RELKIND_SEQUENCE || !may_read() {
        return Ok(None);
    }
    let relation = Relation::open(sequence, Mode::Read).ok_or(Error::NoRelation(sequence))?;
    // It may have been given to another owner before it was locked.
    Ok(Sequence::from_relation(relation)
        .filter(|_| may_read())
        .map(|sequence| sequence.state()))
}

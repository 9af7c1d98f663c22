//! The state of a sequence, by its OID. A name that SQL reads from may belong to a
//! view by then.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::{class_of, require_owner};
use crate::error::{Error, or_report};
use crate::pg::{self, Mode, Relation, Sequence};

/// The last value and whether it was issued; NULLs if the owner of the table
/// `on_behalf_of` may not read the sequence.
#[pg_extern(
    volatile,
    parallel_unsafe,
    sql = r#"
CREATE FUNCTION snowflake_internal.migration_sequence_state(
    sequence regclass, on_behalf_of regclass, OUT last_value bigint, OUT is_called boolean
) RETURNS SETOF record STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_sequence_state(sequence regclass, on_behalf_of regclass) IS
    'Used by snowflake_internal.migration_record_origin: the state of a sequence; NULL if the owner of the table may not read it';
"#
)]
fn snowflake_migration_sequence_state(
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
    let may_read = || pg::has_privilege_on(sequence, owner, PRIVILEGES);
    if class_of(sequence)?.kind != pg_sys::RELKIND_SEQUENCE || !may_read() {
        return Ok(None);
    }
    let relation = Relation::open(sequence, Mode::Read).ok_or(Error::NoRelation(sequence))?;
    // It may have been given to another owner before it was locked.
    Ok(Sequence::from_relation(relation)
        .filter(|_| may_read())
        .map(|sequence| sequence.state()))
}

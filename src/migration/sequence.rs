//! Where a sequence is, by its OID: the name of one that is read by SQL may be
//! a view's by then.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::{Class, or_report};
use crate::error::Error;
use crate::generator::mark::sequence_data;

const LOCK_MODE: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// The last value and whether it was given out; NULLs where the owner of the
/// table `on_behalf_of` may not read the sequence.
#[pg_extern(
    volatile,
    parallel_unsafe,
    sql = r#"
CREATE FUNCTION snowflake_internal.migration_sequence_state(
    sequence regclass, on_behalf_of regclass, OUT last_value bigint, OUT is_called boolean
) RETURNS SETOF record STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_sequence_state(sequence regclass, on_behalf_of regclass) IS
    'Used by snowflake_internal.migration_remember: the state of a sequence; NULL if the owner of the table may not read it';
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
    let owner = Class::of(table)?.require_owner()?.owner;
    let may_read = || {
        // SAFETY: looks privileges up.
        let result = unsafe {
            pg_sys::pg_class_aclcheck(
                sequence,
                owner,
                (pg_sys::ACL_SELECT | pg_sys::ACL_USAGE) as pg_sys::AclMode,
            )
        };
        result == pg_sys::AclResult::ACLCHECK_OK
    };
    if Class::of(sequence)?.kind != pg_sys::RELKIND_SEQUENCE || !may_read() {
        return Ok(None);
    }
    // SAFETY: answers null where the sequence is gone. It is closed again
    // unless an error ends the transaction.
    unsafe {
        let relation = pg_sys::try_relation_open(sequence, LOCK_MODE);
        if relation.is_null() {
            return Err(Error::NoRelation(sequence));
        }
        let class = &*(*relation).rd_rel;
        let is_elsewhere = class.relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP
            && !(*relation).rd_islocaltemp;
        let found =
            if class.relkind as u8 == pg_sys::RELKIND_SEQUENCE && !is_elsewhere && may_read() {
                Some(read(relation))
            } else {
                None
            };
        pg_sys::relation_close(relation, LOCK_MODE);
        Ok(found)
    }
}

/// # Safety
/// The relation is an open sequence of this session or of all.
unsafe fn read(relation: pg_sys::Relation) -> (i64, bool) {
    // SAFETY: a sequence has one block with one tuple, at line pointer 1; its
    // page is pinned and locked while it is read.
    unsafe {
        let buffer = pg_sys::ReadBuffer(relation, 0);
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
        let data = &*sequence_data(pg_sys::BufferGetPage(buffer));
        let state = (data.last_value, data.is_called != 0);
        pg_sys::UnlockReleaseBuffer(buffer);
        state
    }
}

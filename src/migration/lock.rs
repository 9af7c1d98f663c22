//! Locks on tables by their OID, and their names. `LOCK TABLE` takes a name, which may
//! belong to another relation by the time it is looked up.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::{class_of, name_of};
use crate::encoding::shown;
use crate::error::{Error, or_report};
use crate::pg::{self, Text, TextResult};

/// The modes that a migration uses.
const MODES: [(&[u8], u32); 3] = [
    (b"SHARE UPDATE EXCLUSIVE", pg_sys::ShareUpdateExclusiveLock),
    (b"SHARE ROW EXCLUSIVE", pg_sys::ShareRowExclusiveLock),
    (b"ACCESS EXCLUSIVE", pg_sys::AccessExclusiveLock),
];

#[pg_extern(sql = false)]
fn snowflake_migration_lock_table(relation: Option<pg_sys::Oid>, mode: Option<Text<'_>>) {
    let relation = relation.unwrap_or(pg_sys::InvalidOid);
    or_report(lock(relation, mode.map_or(&[][..], Text::bytes)));
}

// What the catalog says now, not the snapshot: in REPEATABLE READ, an older name may
// belong to another relation.
#[pg_extern(sql = false)]
fn snowflake_migration_name(target: pg_sys::Oid) -> Option<TextResult> {
    pg::catalog::qualified_name(target).map(|name| TextResult::new(name.to_bytes()))
}

// Any role may call it: it delays a change of the schema's name until the end of the
// transaction, as a lock on a table in it delays DROP SCHEMA.
#[pg_extern(sql = false)]
fn snowflake_migration_pin_schemas(schemas: Array<'_, pg_sys::Oid>) {
    for schema in schemas.iter().flatten() {
        pg::meaning::pin_schema(schema);
    }
}

fn lock(relation: pg_sys::Oid, mode: &[u8]) -> Result<(), Error> {
    let Some((_, mode)) = MODES.iter().find(|(name, _)| *name == mode) else {
        return Err(Error::InvalidLockMode(shown(mode)));
    };
    require_lockable(relation)?;
    // Until the end of the transaction, as LOCK TABLE does.
    pg::lock::relation(relation, *mode);
    // The table may have been dropped, or given to another owner, in the meantime.
    require_lockable(relation)
}

fn require_lockable(relation: pg_sys::Oid) -> Result<(), Error> {
    let class = class_of(relation)?;
    // LOCK TABLE locks no materialized views, so their privileges do not suffice.
    let is_lockable = [
        pg_sys::RELKIND_RELATION,
        pg_sys::RELKIND_PARTITIONED_TABLE,
        pg_sys::RELKIND_VIEW,
    ]
    .contains(&class.kind);
    if !is_lockable && class.kind != pg_sys::RELKIND_MATVIEW {
        return Err(Error::NotATable(name_of(&class)));
    }
    let user = pg::session::current_user();
    if pg::privileges::has_privileges_of(user, class.owner)
        || is_lockable && pg::privileges::has_privilege_on(relation, user, SUFFICIENT)
    {
        Ok(())
    } else {
        Err(Error::LockDenied(name_of(&class)))
    }
}

/// The privileges of which LOCK TABLE asks for one with these modes.
#[cfg(not(any(feature = "pg17", feature = "pg18")))]
const SUFFICIENT: u32 = pg_sys::ACL_UPDATE | pg_sys::ACL_DELETE | pg_sys::ACL_TRUNCATE;

/// The privileges of which LOCK TABLE asks for one with these modes.
#[cfg(any(feature = "pg17", feature = "pg18"))]
const SUFFICIENT: u32 =
    pg_sys::ACL_UPDATE | pg_sys::ACL_DELETE | pg_sys::ACL_TRUNCATE | pg_sys::ACL_MAINTAIN;

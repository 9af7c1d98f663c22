//! Locks on tables by their OID. `LOCK TABLE` takes a name, which may be
//! another relation's by the time it is looked up.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::{Answer, Arguments, Class, or_report};
use crate::encoding::readable;
use crate::error::Error;

/// The modes that a migration uses.
const MODES: [(&[u8], u32); 3] = [
    (b"SHARE UPDATE EXCLUSIVE", pg_sys::ShareUpdateExclusiveLock),
    (b"SHARE ROW EXCLUSIVE", pg_sys::ShareRowExclusiveLock),
    (b"ACCESS EXCLUSIVE", pg_sys::AccessExclusiveLock),
];

#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_lock_table(relation regclass, mode text) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_lock_table(relation regclass, mode text) IS
    'Used by snowflake_internal.migration_lock: locks a table, without its children, by its OID';
"#)]
fn snowflake_migration_lock_table(fcinfo: pg_sys::FunctionCallInfo) -> Answer {
    // SAFETY: the frame of this call, whose arguments are as its SQL says.
    let (relation, mode) = unsafe {
        let arguments = Arguments::of(fcinfo);
        (arguments.relation(0), arguments.text(1).unwrap_or_default())
    };
    or_report(lock(relation, mode));
    Answer(Some(pg_sys::Datum::null()))
}

fn lock(relation: pg_sys::Oid, mode: &[u8]) -> Result<(), Error> {
    let Some((_, mode)) = MODES.iter().find(|(name, _)| *name == mode) else {
        return Err(Error::InvalidLockMode(readable(mode).into_owned()));
    };
    require_lockable(relation)?;
    // SAFETY: held until the end of the transaction, as LOCK TABLE does.
    unsafe { pg_sys::LockRelationOid(relation, *mode as pg_sys::LOCKMODE) };
    // While this waited the table may have been dropped or given away.
    require_lockable(relation)
}

fn require_lockable(relation: pg_sys::Oid) -> Result<(), Error> {
    let class = Class::of(relation)?;
    if ![pg_sys::RELKIND_RELATION, pg_sys::RELKIND_PARTITIONED_TABLE].contains(&class.kind) {
        return Err(Error::NotATable(class.name));
    }
    // SAFETY: looks memberships and privileges up.
    let may = unsafe {
        let user = pg_sys::GetUserId();
        pg_sys::has_privs_of_role(user, class.owner)
            || pg_sys::pg_class_aclcheck(relation, user, sufficient())
                == pg_sys::AclResult::ACLCHECK_OK
    };
    if may {
        Ok(())
    } else {
        Err(Error::LockDenied(class.name))
    }
}

/// The privileges each of which LOCK TABLE asks for with these modes.
fn sufficient() -> pg_sys::AclMode {
    let privileges = pg_sys::ACL_UPDATE | pg_sys::ACL_DELETE | pg_sys::ACL_TRUNCATE;
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    let privileges = privileges | pg_sys::ACL_MAINTAIN;
    privileges as pg_sys::AclMode
}

//! The statements of migrations, with the privileges of owners, and what they name.

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::encoding::readable;
use crate::error::{Error, or_report};
use crate::owner::{class_of, hold_owned, require_one, require_owner, run, run_as, run_in};
use crate::pg::privileges::SearchPath;
use crate::pg::statement::TextArray;
use crate::pg::{self, Text, TextResult};

// What the catalog says now, not the snapshot: in REPEATABLE READ, an older name may
// belong to another relation.
#[pg_extern(sql = false)]
fn snowflake_migrate_name_of(target: pg_sys::Oid) -> Option<TextResult> {
    pg::catalog::qualified_name(target).map(|name| TextResult::new(name.to_bytes()))
}

// Any role may call it: it delays a change of the schema's name until the end of the
// transaction, as a lock on a table in it delays DROP SCHEMA.
#[pg_extern(sql = false)]
fn snowflake_migrate_pin_schemas(schemas: Array<'_, pg_sys::Oid>) {
    for schema in schemas.iter().flatten() {
        pg::meaning::pin_schema(schema);
    }
}

// In the caller's snapshot, for functions that are STABLE.
#[pg_extern(sql = false)]
fn snowflake_migrate_query(
    relation: Option<pg_sys::Oid>,
    query: Option<Text<'_>>,
    search_path: Option<Text<'_>>,
    other: Option<pg_sys::Oid>,
) -> Option<TextArray> {
    run(relation, query, search_path, true, other)
}

/// How long a trial may take, in milliseconds: a plan has many.
const TRIAL_MS: i32 = 2000;

// With a time limit.
#[pg_extern(sql = false)]
fn snowflake_migrate_try(
    relation: Option<pg_sys::Oid>,
    query: Option<Text<'_>>,
    search_path: Option<Text<'_>>,
) -> Option<TextArray> {
    pg::wait::within(
        TRIAL_MS,
        || run(relation, query, search_path, true, None),
        || Error::TrialTooLong.report(),
    )
}

// A statement of a plan, by name: with the privileges of the owner of the table that has
// the name when it runs. The code of that table may find others by the session's path.
#[pg_extern(sql = false)]
fn snowflake_migrate_alter(statement: Option<Text<'_>>) {
    or_report(alter(statement));
}

/// # Errors
/// [`Error::NotAnAlteration`] and [`Error::SearchPathTooLong`], and as [`run_as`].
fn alter(statement: Option<Text<'_>>) -> Result<(), Error> {
    let text = statement.ok_or(Error::NullStatement)?.to_c_str();
    require_one(text)?;
    let table = pg::meaning::altered_table(text).ok_or(Error::NotAnAlteration)?;
    let class = hold_owned(table)?;
    pg::meaning::pin_schema(class.schema);
    // A setting that is in force is a list of names, but can be of any length.
    let path = SearchPath::of_session().ok_or(Error::SearchPathTooLong)?;
    run_in(class.owner, text, &path, false, Some((table, None))).map(|_| ())
}

// With a role's privileges, for objects that are not relations, and for privileges
// that a role other than the owner has granted. The caller must be able to SET
// ROLE: what a role may do is more than what its members inherit. The search
// path begins with pg_catalog; `path` follows it.
#[pg_extern(sql = false)]
fn snowflake_migrate_run_as(
    role: Option<pg_sys::Oid>,
    statement: Option<Text<'_>>,
    path: Option<Text<'_>>,
) -> Option<TextArray> {
    let role = role.unwrap_or(pg_sys::InvalidOid);
    // An empty path adds nothing to pg_catalog.
    let path = path.filter(|path| !path.bytes().is_empty());
    or_report(require_role(role).and_then(|()| run_as(role, statement, path, false, None)))
}

/// # Errors
/// [`Error::RoleDenied`] unless the current user can become the role, and has
/// its privileges.
fn require_role(role: pg_sys::Oid) -> Result<(), Error> {
    let caller = pg::session::current_user();
    if pg::privileges::has_privileges_of(caller, role) && pg::privileges::may_become(caller, role) {
        Ok(())
    } else {
        Err(Error::RoleDenied(
            readable(pg::catalog::role_name(role).to_bytes()).into_owned(),
        ))
    }
}

/// Distinguishes the lock of a step from those of the records' writers.
const STEP: u16 = 2;

// By its OID as an object, on which no other statement takes a lock. Whoever is not the
// owner excludes no one, and is refused later.
#[pg_extern(sql = false)]
fn snowflake_migrate_try_exclude_others(target: pg_sys::Oid) -> bool {
    class_of(target).and_then(require_owner).is_err()
        || pg::lock::try_object(pg_sys::RelationRelationId, target, STEP)
}

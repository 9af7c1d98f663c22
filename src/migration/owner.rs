//! Statements with the rights of a table's owner.
//!
//! Names in a statement are looked up when it runs, and the owner's code
//! (defaults, checks, triggers, functions of indexes) runs with it. So each
//! statement runs as REINDEX and REFRESH run such code: as the owner, in a
//! security-restricted operation. SET ROLE cannot leave it, and after it each
//! setting has its former value. A superuser who migrates another role's table
//! lends it no rights. A member of the owner's role gains none, because an index
//! on an expression of the member's choice would run as the owner too.
//!
//! The search path is pg_catalog, unless a caller passes its own. That code may
//! find other functions by the path it was written for, also where a statement is
//! only planned: PostgreSQL inlines the functions of indexes and checks then. So
//! the schemas of the caller's path follow, after pg_catalog, whose names they
//! cannot replace, and before those of temporary objects. A schema of that path
//! may have a better match for a call's argument types than pg_catalog has, so
//! statements for such a path qualify each function and operator.
//!
//! A text must be one statement, so that a value inside it cannot start another
//! one.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::{class_of, hold_owned, require_owner};
use crate::encoding::readable;
use crate::error::{Error, or_report};
use crate::pg::{self, Text, TextArray};

#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_run(relation regclass, statement text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_run(relation regclass, statement text) IS
    'Used by snowflake_migrate: runs one statement with the rights of a table''s owner, which the caller must have; the first row as an array';
"#)]
fn snowflake_migration_run(
    relation: Option<pg_sys::Oid>,
    statement: Option<Text<'_>>,
) -> Option<TextArray> {
    run(relation, statement, None, false)
}

// NULL as a path: as without one.
#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_run(relation regclass, statement text, search_path text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_run(relation regclass, statement text, search_path text) IS
    'Used by snowflake_migrate: runs one statement with the rights of a table''s owner, whose code finds names by the caller''s search path';
"#)]
fn snowflake_migration_run_with_path(
    relation: Option<pg_sys::Oid>,
    statement: Option<Text<'_>>,
    search_path: Option<Text<'_>>,
) -> Option<TextArray> {
    run(relation, statement, search_path, false)
}

// In the caller's snapshot, for functions that are STABLE.
#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_query(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_query(relation regclass, query text) IS
    'Used by snowflake_migration_plan: runs one query with the rights of a table''s owner, which the caller must have; the first row as an array';
"#)]
fn snowflake_migration_query(
    relation: Option<pg_sys::Oid>,
    query: Option<Text<'_>>,
) -> Option<TextArray> {
    run(relation, query, None, true)
}

#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_query(relation regclass, query text, search_path text) RETURNS text[]
    STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_query(relation regclass, query text, search_path text) IS
    'Used by snowflake_migration_plan: runs one query with the rights of a table''s owner, whose code finds names by the caller''s search path';
"#)]
fn snowflake_migration_query_with_path(
    relation: Option<pg_sys::Oid>,
    query: Option<Text<'_>>,
    search_path: Option<Text<'_>>,
) -> Option<TextArray> {
    run(relation, query, search_path, true)
}

// The same for every role that may read a table. The query runs with the owner's
// rights if the caller has them, otherwise with the caller's own.
#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_read(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_read(relation regclass, query text) IS
    'Runs one query with the rights of a table''s owner where the caller has them, else with the caller''s own; the first row as an array';
"#)]
fn snowflake_migration_read(
    relation: Option<pg_sys::Oid>,
    query: Option<Text<'_>>,
) -> Option<TextArray> {
    or_report(
        class_of(relation.unwrap_or(pg_sys::InvalidOid)).and_then(|class| {
            let caller = pg::current_user();
            let user = require_owner(class).map_or(caller, |class| class.owner);
            run_as(user, query, None, true)
        }),
    )
}

// With a role's rights, for objects that are not relations, and for privileges
// that a role other than the owner has granted. The caller must be able to SET
// ROLE: what a role may do is more than what its members inherit. The search
// path begins with pg_catalog; `path` follows it.
#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_run_as(role oid, statement text, path text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_run_as(role oid, statement text, path text) IS
    'Used by snowflake_internal.migration_widen: runs one statement with the rights of a role, which the caller must have; the first row as an array';
"#)]
fn snowflake_migration_run_as(
    role: Option<pg_sys::Oid>,
    statement: Option<Text<'_>>,
    path: Option<Text<'_>>,
) -> Option<TextArray> {
    let role = role.unwrap_or(pg_sys::InvalidOid);
    // An empty path adds nothing to pg_catalog.
    let path = path.filter(|path| !path.bytes().is_empty());
    or_report(require_role(role).and_then(|()| run_as(role, statement, path, false)))
}

/// # Errors
/// [`Error::RoleDenied`] unless the current user can become the role, and has
/// its rights.
fn require_role(role: pg_sys::Oid) -> Result<(), Error> {
    let caller = pg::current_user();
    if pg::has_rights_of(caller, role) && pg::may_become(caller, role) {
        Ok(())
    } else {
        Err(Error::RoleDenied(
            readable(pg::role_name(role).to_bytes()).into_owned(),
        ))
    }
}

fn run(
    relation: Option<pg_sys::Oid>,
    statement: Option<Text<'_>>,
    search_path: Option<Text<'_>>,
    read_only: bool,
) -> Option<TextArray> {
    or_report(
        hold_owned(relation.unwrap_or(pg_sys::InvalidOid))
            .and_then(|class| run_as(class.owner, statement, search_path, read_only)),
    )
}

/// Runs a statement with a role's rights, and returns the columns of its first
/// row.
///
/// # Errors
/// [`Error::NullStatement`], [`Error::NotOneStatement`] and
/// [`Error::InvalidSearchPath`], and [`Error::StatementRefused`] for a statement
/// that does not run in functions.
fn run_as(
    role: pg_sys::Oid,
    statement: Option<Text<'_>>,
    search_path: Option<Text<'_>>,
    read_only: bool,
) -> Result<Option<TextArray>, Error> {
    // A text has no zero byte.
    let statement = statement
        .and_then(|text| CString::new(text.bytes()).ok())
        .ok_or(Error::NullStatement)?;
    require_one(&statement)?;
    let search_path = match search_path {
        None => pg::SearchPath::system(),
        Some(path) => pg::SearchPath::of_caller(path)
            .ok_or_else(|| Error::InvalidSearchPath(readable(path.bytes()).into_owned()))?,
    };
    pg::with_rights_of(role, &search_path, || pg::first_row(&statement, read_only))
        .map_err(Error::StatementRefused)
}

/// # Errors
/// [`Error::NotOneStatement`]. A text that is not SQL raises a syntax error.
fn require_one(text: &CStr) -> Result<(), Error> {
    match pg::count_statements(text) {
        1 => Ok(()),
        count => Err(Error::NotOneStatement(count)),
    }
}

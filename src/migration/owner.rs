//! Statements with the privileges of a table's owner.
//!
//! Names in a statement are looked up when it runs, and the owner's code
//! (defaults, checks, triggers, functions of indexes) runs with it. So each
//! statement runs as REINDEX and REFRESH run such code: as the owner, in a
//! security-restricted operation. SET ROLE cannot leave it, and after it each
//! setting has its former value. A superuser who migrates another role's table
//! lends it no privileges. A member of the owner's role gains none, because an index
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
//! one. It names its table, and must not mean another one by the time it runs: see
//! [`pg::meaning::Meaning`].

use std::ffi::CStr;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::{class_of, hold_owned, require_owner};
use crate::encoding::{readable, shown};
use crate::error::{Error, or_report};
use crate::pg::meaning::Meaning;
use crate::pg::privileges::SearchPath;
use crate::pg::statement::TextArray;
use crate::pg::{self, Text};

#[pg_extern(sql = false)]
fn snowflake_migration_run(
    relation: Option<pg_sys::Oid>,
    statement: Option<Text<'_>>,
) -> Option<TextArray> {
    run(relation, statement, None, false)
}

// NULL as a path: as without one.
#[pg_extern(sql = false)]
fn snowflake_migration_run_with_path(
    relation: Option<pg_sys::Oid>,
    statement: Option<Text<'_>>,
    search_path: Option<Text<'_>>,
) -> Option<TextArray> {
    run(relation, statement, search_path, false)
}

// In the caller's snapshot, for functions that are STABLE.
#[pg_extern(sql = false)]
fn snowflake_migration_query(
    relation: Option<pg_sys::Oid>,
    query: Option<Text<'_>>,
) -> Option<TextArray> {
    run(relation, query, None, true)
}

#[pg_extern(sql = false)]
fn snowflake_migration_query_with_path(
    relation: Option<pg_sys::Oid>,
    query: Option<Text<'_>>,
    search_path: Option<Text<'_>>,
) -> Option<TextArray> {
    run(relation, query, search_path, true)
}

// The same for every role that may read a table. The query runs with the owner's
// privileges if the caller has them, otherwise with the caller's own.
#[pg_extern(sql = false)]
fn snowflake_migration_read(
    relation: Option<pg_sys::Oid>,
    query: Option<Text<'_>>,
) -> Option<TextArray> {
    or_report(
        class_of(relation.unwrap_or(pg_sys::InvalidOid)).and_then(|class| {
            let caller = pg::session::current_user();
            let user = require_owner(class).map_or(caller, |class| class.owner);
            run_as(user, query, None, true, relation)
        }),
    )
}

// A statement of a plan, by name: with the privileges of the owner of the table that has
// the name when it runs. The code of that table may find others by the session's path.
#[pg_extern(sql = false)]
fn snowflake_migration_alter(statement: Option<Text<'_>>) {
    or_report(alter(statement));
}

/// # Errors
/// [`Error::NotAnAlteration`], and as [`run_as`].
fn alter(statement: Option<Text<'_>>) -> Result<(), Error> {
    let text = statement.ok_or(Error::NullStatement)?.to_c_str();
    require_one(text)?;
    let table = pg::meaning::altered_table(text).ok_or(Error::NotAnAlteration)?;
    let class = hold_owned(table)?;
    pg::meaning::pin_schema(class.schema);
    // A setting that is in force is a list of names.
    let path = SearchPath::of_session().unwrap_or_else(SearchPath::system);
    run_in(class.owner, text, &path, false, Some(table)).map(|_| ())
}

// With a role's privileges, for objects that are not relations, and for privileges
// that a role other than the owner has granted. The caller must be able to SET
// ROLE: what a role may do is more than what its members inherit. The search
// path begins with pg_catalog; `path` follows it.
#[pg_extern(sql = false)]
fn snowflake_migration_run_as(
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

fn run(
    relation: Option<pg_sys::Oid>,
    statement: Option<Text<'_>>,
    search_path: Option<Text<'_>>,
    read_only: bool,
) -> Option<TextArray> {
    or_report(
        hold_owned(relation.unwrap_or(pg_sys::InvalidOid)).and_then(|class| {
            if !read_only {
                pg::meaning::pin_schema(class.schema);
            }
            run_as(class.owner, statement, search_path, read_only, relation)
        }),
    )
}

/// Runs a statement with a role's privileges, and returns the columns of its first
/// row. It may name this table, and what has to do with it.
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
    table: Option<pg_sys::Oid>,
) -> Result<Option<TextArray>, Error> {
    let statement = statement.ok_or(Error::NullStatement)?.to_c_str();
    require_one(statement)?;
    let search_path = match search_path {
        None => SearchPath::system(),
        Some(path) => SearchPath::of_caller(path)
            .ok_or_else(|| Error::InvalidSearchPath(shown(path.bytes())))?,
    };
    run_in(role, statement, &search_path, read_only, table)
}

/// The same with a search path.
///
/// # Errors
/// [`Error::StatementRefused`].
fn run_in(
    role: pg_sys::Oid,
    statement: &CStr,
    search_path: &SearchPath,
    read_only: bool,
    table: Option<pg_sys::Oid>,
) -> Result<Option<TextArray>, Error> {
    let run = || pg::statement::first_row(statement, read_only);
    pg::privileges::with_privileges_of(role, table, search_path, || match table {
        Some(table) => Meaning {
            table,
            owner: role,
            refuse,
        }
        .checked(statement, run),
        None => run(),
    })
    .map_err(Error::StatementRefused)
}

fn refuse(name: &CStr) -> ! {
    Error::NameMoved(readable(name.to_bytes()).into_owned()).report()
}

/// # Errors
/// [`Error::NotOneStatement`]. A text that is not SQL raises a syntax error.
fn require_one(text: &CStr) -> Result<(), Error> {
    match pg::statement::count_statements(text) {
        1 => Ok(()),
        count => Err(Error::NotOneStatement(count)),
    }
}

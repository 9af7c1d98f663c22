//! Statements with the privileges of a table's owner, and locks on what they are
//! about.
//!
//! No routine of the extensions is SECURITY DEFINER. These functions check the
//! caller's privileges on a relation by its OID, not by a name, before it is locked and
//! again afterwards.
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

use crate::encoding::{readable, shown};
use crate::error::{Error, or_report};
use crate::pg::catalog::Class;
use crate::pg::meaning::Meaning;
use crate::pg::privileges::SearchPath;
use crate::pg::statement::TextArray;
use crate::pg::{self, Mode, Relation, Text};

/// The modes that a migration uses.
const MODES: [(&[u8], u32); 3] = [
    (b"SHARE UPDATE EXCLUSIVE", pg_sys::ShareUpdateExclusiveLock),
    (b"SHARE ROW EXCLUSIVE", pg_sys::ShareRowExclusiveLock),
    (b"ACCESS EXCLUSIVE", pg_sys::AccessExclusiveLock),
];

// LOCK TABLE takes a name, which may belong to another relation by the time it is
// looked up.
#[pg_extern(sql = false)]
fn snowflake_lock_table(relation: Option<pg_sys::Oid>, mode: Option<Text<'_>>) {
    let relation = relation.unwrap_or(pg_sys::InvalidOid);
    or_report(lock(relation, mode.map_or(&[][..], Text::bytes)));
}

// NULL as a path: pg_catalog alone.
#[pg_extern(sql = false)]
fn snowflake_run(
    relation: Option<pg_sys::Oid>,
    statement: Option<Text<'_>>,
    search_path: Option<Text<'_>>,
) -> Option<TextArray> {
    run(relation, statement, search_path, false, None)
}

// For every role that may read a table. The query runs with the owner's privileges if
// the caller has them, otherwise with the caller's own.
#[pg_extern(sql = false)]
fn snowflake_read(relation: Option<pg_sys::Oid>, query: Option<Text<'_>>) -> Option<TextArray> {
    or_report(
        class_of(relation.unwrap_or(pg_sys::InvalidOid)).and_then(|class| {
            let caller = pg::session::current_user();
            let user = require_owner(class).map_or(caller, |class| class.owner);
            run_as(user, query, None, true, relation.map(|table| (table, None)))
        }),
    )
}

/// What the catalog has of a relation now, without a lock on it.
///
/// # Errors
/// [`Error::NoRelation`].
pub fn class_of(relation: pg_sys::Oid) -> Result<Class, Error> {
    Class::of(relation).ok_or(Error::NoRelation(relation))
}

/// A relation's name for a message.
pub fn name_of(class: &Class) -> String {
    readable(class.name.to_bytes()).into_owned()
}

/// What the catalog has of a relation, for its owner only.
///
/// # Errors
/// [`Error::NotOwner`] unless the current user has the owner's privileges.
pub fn require_owner(class: Class) -> Result<Class, Error> {
    if pg::privileges::has_privileges_of(pg::session::current_user(), class.owner) {
        Ok(class)
    } else {
        Err(Error::NotOwner(name_of(&class)))
    }
}

/// Locks a relation of the current user's against being dropped, until the end
/// of the transaction, and leaves it closed: a statement that alters a table
/// fails if its session has the table open.
///
/// # Errors
/// [`Error::NoRelation`] and [`Error::NotOwner`].
pub fn hold_owned(relation: pg_sys::Oid) -> Result<Class, Error> {
    require_owner(class_of(relation)?)?;
    let opened = Relation::open(relation, Mode::Hold).ok_or(Error::NoRelation(relation))?;
    require_owner(opened.class())
}

/// The table that a statement is about, and one of another role that it reads.
type Tables = (pg_sys::Oid, Option<pg_sys::Oid>);

/// Runs a statement, or a query in the snapshot of the caller, with the privileges of a
/// table's owner, which the caller must have.
pub fn run(
    relation: Option<pg_sys::Oid>,
    statement: Option<Text<'_>>,
    search_path: Option<Text<'_>>,
    read_only: bool,
    other: Option<pg_sys::Oid>,
) -> Option<TextArray> {
    or_report(
        hold_owned(relation.unwrap_or(pg_sys::InvalidOid)).and_then(|class| {
            if !read_only {
                pg::meaning::pin_schema(class.schema);
            }
            let tables = relation.map(|table| (table, other));
            run_as(class.owner, statement, search_path, read_only, tables)
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
pub fn run_as(
    role: pg_sys::Oid,
    statement: Option<Text<'_>>,
    search_path: Option<Text<'_>>,
    read_only: bool,
    tables: Option<Tables>,
) -> Result<Option<TextArray>, Error> {
    let statement = statement.ok_or(Error::NullStatement)?.to_c_str();
    require_one(statement)?;
    let search_path = match search_path {
        None => SearchPath::system(),
        Some(path) => SearchPath::of_caller(path)
            .ok_or_else(|| Error::InvalidSearchPath(shown(path.bytes())))?,
    };
    run_in(role, statement, &search_path, read_only, tables)
}

/// The same with a search path.
///
/// # Errors
/// [`Error::StatementRefused`].
pub fn run_in(
    role: pg_sys::Oid,
    statement: &CStr,
    search_path: &SearchPath,
    read_only: bool,
    tables: Option<Tables>,
) -> Result<Option<TextArray>, Error> {
    let run = || pg::statement::first_row(statement, read_only);
    let table = tables.map(|(table, _)| table);
    pg::privileges::with_privileges_of(role, table, search_path, || match tables {
        Some((table, other)) => Meaning {
            table,
            owner: role,
            other,
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
pub fn require_one(text: &CStr) -> Result<(), Error> {
    match pg::statement::count_statements(text) {
        1 => Ok(()),
        count => Err(Error::NotOneStatement(count)),
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
    let class = require_lockable(relation)?;
    // The lock keeps the table's name in its schema, and statements are written with both.
    pg::meaning::pin_schema(class.schema);
    Ok(())
}

fn require_lockable(relation: pg_sys::Oid) -> Result<Class, Error> {
    let class = class_of(relation)?;
    // LOCK TABLE locks no materialized views, so their privileges do not suffice.
    let is_lockable = [
        pg_sys::RELKIND_RELATION,
        pg_sys::RELKIND_PARTITIONED_TABLE,
        pg_sys::RELKIND_VIEW,
    ]
    .contains(&class.kind);
    // Nor sequences; only statements that alter one do.
    let is_owners = [pg_sys::RELKIND_MATVIEW, pg_sys::RELKIND_SEQUENCE].contains(&class.kind);
    if !is_lockable && !is_owners {
        return Err(Error::NotATable(name_of(&class)));
    }
    let user = pg::session::current_user();
    if pg::privileges::has_privileges_of(user, class.owner)
        || is_lockable && pg::privileges::has_privilege_on(relation, user, SUFFICIENT)
    {
        Ok(class)
    } else {
        Err(Error::LockDenied(name_of(&class)))
    }
}

/// The privileges of which LOCK TABLE asks for one with these modes.
#[cfg(any(feature = "pg15", feature = "pg16"))]
const SUFFICIENT: u32 = pg_sys::ACL_UPDATE | pg_sys::ACL_DELETE | pg_sys::ACL_TRUNCATE;

/// The privileges of which LOCK TABLE asks for one with these modes.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
const SUFFICIENT: u32 =
    pg_sys::ACL_UPDATE | pg_sys::ACL_DELETE | pg_sys::ACL_TRUNCATE | pg_sys::ACL_MAINTAIN;

//! Statements with the rights of a table's owner.
//!
//! Names in a statement are looked up when it runs, and what a table's owner
//! wrote (defaults, checks, triggers, functions of indexes) runs with it. So
//! each runs as REINDEX and REFRESH run what the owner wrote: as the owner, in a
//! security-restricted operation, which cannot be left by SET ROLE and after
//! which each setting is what it was. A superuser who migrates somebody's table
//! lends nothing; who is a member of the owner's role gains nothing, since an
//! index on an expression of his choice would run as the owner too.
//!
//! The search path is pg_catalog. A statement is one statement: what is spliced
//! into a text cannot begin another one.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::{class_of, hold_owned, or_report, require_owner};
use crate::error::Error;
use crate::pg::{self, Text, TextArray};

#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_migration_run(relation regclass, statement text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
"#)]
fn snowflake_migration_run(
    relation: Option<pg_sys::Oid>,
    statement: Option<Text<'_>>,
) -> Option<TextArray> {
    run(relation, statement, false)
}

// In the caller's snapshot, for functions that are STABLE.
#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_migration_query(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
"#)]
fn snowflake_migration_query(
    relation: Option<pg_sys::Oid>,
    query: Option<Text<'_>>,
) -> Option<TextArray> {
    run(relation, query, true)
}

// The same for whoever may read a table: the owner's rights are taken where the
// caller has them; else the query runs with the caller's own.
#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_migration_read(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
"#)]
fn snowflake_migration_read(
    relation: Option<pg_sys::Oid>,
    query: Option<Text<'_>>,
) -> Option<TextArray> {
    or_report(
        class_of(relation.unwrap_or(pg_sys::InvalidOid)).and_then(|class| {
            let caller = pg::current_user();
            let user = require_owner(class).map_or(caller, |class| class.owner);
            run_as(user, query, true)
        }),
    )
}

fn run(
    relation: Option<pg_sys::Oid>,
    statement: Option<Text<'_>>,
    read_only: bool,
) -> Option<TextArray> {
    or_report(
        hold_owned(relation.unwrap_or(pg_sys::InvalidOid))
            .and_then(|class| run_as(class.owner, statement, read_only)),
    )
}

/// Runs a statement with a role's rights, and returns the columns of its first
/// row.
///
/// # Errors
/// [`Error::NullStatement`] and [`Error::NotOneStatement`], and
/// [`Error::StatementRefused`] for a statement that does not run in functions.
fn run_as(
    role: pg_sys::Oid,
    statement: Option<Text<'_>>,
    read_only: bool,
) -> Result<Option<TextArray>, Error> {
    // A text has no zero byte.
    let statement = statement
        .and_then(|text| CString::new(text.bytes()).ok())
        .ok_or(Error::NullStatement)?;
    require_one(&statement)?;
    pg::with_rights_of(role, || pg::first_row(&statement, read_only))
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

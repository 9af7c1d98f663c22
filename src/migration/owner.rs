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

use std::ffi::{CStr, CString, c_char};

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::{Answer, Arguments, Class, hold_owned, or_report};
use crate::error::Error;

#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_run(relation regclass, statement text) RETURNS text[]
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_run(relation regclass, statement text) IS
    'Used by snowflake_migrate: runs one statement with the rights of a table''s owner, which the caller must have; the first row as an array';
"#)]
fn snowflake_migration_run(fcinfo: pg_sys::FunctionCallInfo) -> Answer {
    run(fcinfo, false)
}

// In the caller's snapshot, for functions that are STABLE.
#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_query(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_query(relation regclass, query text) IS
    'Used by snowflake_migration_plan: runs one query with the rights of a table''s owner, which the caller must have; the first row as an array';
"#)]
fn snowflake_migration_query(fcinfo: pg_sys::FunctionCallInfo) -> Answer {
    run(fcinfo, true)
}

// The same for whoever may read a table: the owner's rights are taken where the
// caller has them; else the query runs with the caller's own.
#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_read(relation regclass, query text) RETURNS text[]
    STABLE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_read(relation regclass, query text) IS
    'Runs one query with the rights of a table''s owner where the caller has them, else with the caller''s own; the first row as an array';
"#)]
fn snowflake_migration_read(fcinfo: pg_sys::FunctionCallInfo) -> Answer {
    let (relation, text) = arguments(fcinfo);
    or_report(Class::of(relation).and_then(|class| {
        // SAFETY: reads the current user.
        let caller = unsafe { pg_sys::GetUserId() };
        let user = class.require_owner().map_or(caller, |class| class.owner);
        run_as(user, text, true)
    }))
}

fn run(fcinfo: pg_sys::FunctionCallInfo, read_only: bool) -> Answer {
    let (relation, text) = arguments(fcinfo);
    or_report(hold_owned(relation).and_then(|class| run_as(class.owner, text, read_only)))
}

fn arguments<'a>(fcinfo: pg_sys::FunctionCallInfo) -> (pg_sys::Oid, Option<&'a [u8]>) {
    // SAFETY: the frame of this call, whose arguments are as its SQL says.
    unsafe {
        let arguments = Arguments::of(fcinfo);
        (arguments.relation(0), arguments.text(1))
    }
}

fn run_as(owner: pg_sys::Oid, text: Option<&[u8]>, read_only: bool) -> Result<Answer, Error> {
    // A text has no zero byte.
    let statement = text
        .and_then(|text| CString::new(text).ok())
        .ok_or(Error::NullStatement)?;
    require_one(&statement)?;
    // SAFETY: an error on the way ends the transaction or the subtransaction,
    // and that puts the user and the settings back and closes SPI.
    unsafe {
        let settings = pg_sys::NewGUCNestLevel();
        set_search_path();
        let (mut user, mut context) = (pg_sys::InvalidOid, 0);
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        if user != owner {
            let restricted = context | pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
            pg_sys::SetUserIdAndSecContext(owner, restricted);
        }
        let row = execute(&statement, read_only)?;
        pg_sys::AtEOXact_GUC(false, settings);
        pg_sys::SetUserIdAndSecContext(user, context);
        Ok(Answer(row))
    }
}

/// # Errors
/// [`Error::NotOneStatement`], and what Postgres says of a text that is none.
fn require_one(text: &CStr) -> Result<(), Error> {
    // SAFETY: a text with a zero byte at its end; answers a list, or null for
    // an empty one.
    let count = unsafe {
        let statements = pg_sys::pg_parse_query(text.as_ptr());
        statements.as_ref().map_or(0, |list| list.length)
    };
    if count == 1 {
        Ok(())
    } else {
        Err(Error::NotOneStatement(count))
    }
}

/// Until the settings' nest level is left.
unsafe fn set_search_path() {
    // SAFETY: a setting that everybody may change, with a value that is valid.
    unsafe {
        pg_sys::set_config_option(
            c"search_path".as_ptr(),
            c"pg_catalog, pg_temp".as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}

/// Runs it, and returns the columns of its first row as an array of texts in
/// the caller's memory.
///
/// # Errors
/// [`Error::StatementRefused`] for what does not run inside functions.
unsafe fn execute(statement: &CStr, read_only: bool) -> Result<Option<pg_sys::Datum>, Error> {
    // SAFETY: connected and finished once; the rows are read in between, and
    // copied into the memory of before.
    unsafe {
        let memory = pg_sys::CurrentMemoryContext;
        pg_sys::SPI_connect();
        let code = pg_sys::SPI_execute(statement.as_ptr(), read_only, 0);
        if code < 0 {
            let name = CStr::from_ptr(pg_sys::SPI_result_code_string(code));
            return Err(Error::StatementRefused(name.to_string_lossy().into_owned()));
        }
        let inner = pg_sys::MemoryContextSwitchTo(memory);
        let row = first_row();
        pg_sys::MemoryContextSwitchTo(inner);
        pg_sys::SPI_finish();
        Ok(row)
    }
}

/// # Safety
/// SPI has run a statement.
unsafe fn first_row() -> Option<pg_sys::Datum> {
    // SAFETY: a table of tuples has as many as SPI says, and their descriptor.
    unsafe {
        let rows = pg_sys::SPI_tuptable.as_ref()?;
        if pg_sys::SPI_processed == 0 {
            return None;
        }
        let (row, columns) = (*rows.vals, rows.tupdesc);
        let count = (*columns).natts;
        let (mut values, mut nulls): (Vec<pg_sys::Datum>, Vec<bool>) = (1..=count)
            .map(|number| {
                let text: *mut c_char = pg_sys::SPI_getvalue(row, columns, number);
                if text.is_null() {
                    (pg_sys::Datum::null(), true)
                } else {
                    (pg_sys::Datum::from(pg_sys::cstring_to_text(text)), false)
                }
            })
            .unzip();
        let (mut dimension, mut lower) = (count, 1);
        let array = pg_sys::construct_md_array(
            values.as_mut_ptr(),
            nulls.as_mut_ptr(),
            1,
            &mut dimension,
            &mut lower,
            pg_sys::TEXTOID,
            -1,
            false,
            pg_sys::TYPALIGN_INT as c_char,
        );
        Some(pg_sys::Datum::from(array))
    }
}

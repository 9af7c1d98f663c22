//! Statements that are run by SPI, one at a time.

use std::ffi::{CStr, c_char};

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};

/// How many statements a text has. Raises a syntax error for a text that is
/// not SQL.
pub fn count_statements(text: &CStr) -> i32 {
    // SAFETY: a text with a zero byte at its end; returns a list, or null for
    // an empty one.
    unsafe {
        let statements = pg_sys::pg_parse_query(text.as_ptr());
        statements.as_ref().map_or(0, |list| list.length)
    }
}

/// An array of texts as a result.
pub struct TextArray(pg_sys::Datum);

// SAFETY: a `text[]`, in the caller's memory.
unsafe impl BoxRet for TextArray {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        // SAFETY: as above.
        unsafe { fcinfo.return_raw_datum(self.0) }
    }
}

super::sql_type!(result TextArray, "text[]");

/// Runs a statement, and returns the columns of its first row, if any, as texts
/// in the caller's memory.
///
/// # Errors
/// SPI's name for the reason, if the statement does not run inside functions.
pub fn first_row(statement: &CStr, read_only: bool) -> Result<Option<TextArray>, String> {
    // SAFETY: connected and finished once; the rows are read in between, and
    // copied into the memory of before. An error leaves it to the end of the
    // transaction.
    unsafe {
        let memory = pg_sys::CurrentMemoryContext;
        pg_sys::SPI_connect();
        let code = pg_sys::SPI_execute(statement.as_ptr(), read_only, 0);
        let result = if code < 0 {
            let name = CStr::from_ptr(pg_sys::SPI_result_code_string(code));
            Err(name.to_string_lossy().into_owned())
        } else {
            let inner = pg_sys::MemoryContextSwitchTo(memory);
            let row = result_row();
            pg_sys::MemoryContextSwitchTo(inner);
            Ok(row)
        };
        pg_sys::SPI_finish();
        result
    }
}

/// # Safety
/// SPI has run a statement.
unsafe fn result_row() -> Option<TextArray> {
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
        Some(TextArray(pg_sys::Datum::from(array)))
    }
}

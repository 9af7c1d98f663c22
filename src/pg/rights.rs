//! Statements with the rights of another role.

use std::ffi::{CStr, CString, c_char};

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{PgList, pg_sys};

use super::text::Text;

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

/// A search path in which pg_catalog is first and the schema of temporary objects
/// is last.
pub struct SearchPath(CString);

/// Longer paths are refused: any role can pass any text.
const LONGEST_PATH_BYTES: usize = 1 << 20;

impl SearchPath {
    /// The system schemas.
    pub fn system() -> Self {
        SearchPath(c"pg_catalog, pg_temp".to_owned())
    }

    /// The schemas of a role's path between the system schemas, wherever that path
    /// has those; `$user` is the schema of the current user, which the path may be
    /// used without. `None` for a text that is not a list of names, or too long.
    pub fn of_caller(path: Text<'_>) -> Option<Self> {
        if path.bytes().len() > LONGEST_PATH_BYTES {
            return None;
        }
        Self::of_list(path.to_c_str())
    }

    /// The same of the session's path.
    pub fn of_session() -> Option<Self> {
        // SAFETY: the setting's value, which ends with a zero byte. It stays while it
        // is copied.
        Self::of_list(unsafe { CStr::from_ptr(pg_sys::namespace_search_path) })
    }

    fn of_list(path: &CStr) -> Option<Self> {
        let mut schemas = b"pg_catalog".to_vec();
        // SAFETY: the list is parsed in a copy of the text, which its names point
        // into; a name is quoted, and copied at once. The role exists.
        unsafe {
            let raw = pg_sys::pstrdup(path.as_ptr());
            let mut list = std::ptr::null_mut();
            if !pg_sys::SplitIdentifierString(raw, b',' as c_char, &mut list) {
                return None;
            }
            let names = PgList::<c_char>::from_pg(list);
            for name in names.iter_ptr() {
                let name: *const c_char = match CStr::from_ptr(name).to_bytes() {
                    b"pg_catalog" | b"pg_temp" => continue,
                    b"$user" => pg_sys::GetUserNameFromId(pg_sys::GetUserId(), false),
                    _ => name,
                };
                schemas.extend_from_slice(b", ");
                schemas
                    .extend_from_slice(CStr::from_ptr(pg_sys::quote_identifier(name)).to_bytes());
            }
        }
        schemas.extend_from_slice(b", pg_temp");
        CString::new(schemas).ok().map(SearchPath)
    }
}

/// Calls `f` with the rights of a role, in a security-restricted operation unless the
/// table is a temporary one of the role's own session, and with a search path. Afterwards the user and all settings are what they were.
/// After an error the end of the transaction, or of the subtransaction, restores
/// them.
pub fn with_rights_of<T>(
    role: pg_sys::Oid,
    table: Option<pg_sys::Oid>,
    search_path: &SearchPath,
    f: impl FnOnce() -> T,
) -> T {
    // SAFETY: the user and the settings are restored, as above.
    unsafe {
        let settings = pg_sys::NewGUCNestLevel();
        set_search_path(search_path);
        let (mut user, mut context) = (pg_sys::InvalidOid, 0);
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        // PostgreSQL rewrites no temporary table in such an operation. No other session
        // can put something in the place of one.
        let is_own_temporary = user == role
            && table.is_some_and(|table| {
                pg_sys::get_rel_persistence(table) as u8 == pg_sys::RELPERSISTENCE_TEMP
            });
        if !is_own_temporary {
            let restricted = context | pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
            pg_sys::SetUserIdAndSecContext(role, restricted);
        }
        let result = f();
        pg_sys::AtEOXact_GUC(false, settings);
        pg_sys::SetUserIdAndSecContext(user, context);
        result
    }
}

/// Until the settings' nest level is left.
fn set_search_path(search_path: &SearchPath) {
    // SAFETY: a setting that every role may change, with a value that is valid.
    unsafe {
        pg_sys::set_config_option(
            c"search_path".as_ptr(),
            search_path.0.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
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

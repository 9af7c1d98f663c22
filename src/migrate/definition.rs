//! Whether a view can be created again when columns that it uses are wider.

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::{self, Text, TextResult};

/// Longer definitions are not looked at: any role can pass any text.
const LONGEST_TEXT_BYTES: usize = 1 << 20;

/// The columns of a view, as a query: `queries` begins with its definition; the others
/// stand for `relations`. Raises the error that CREATE VIEW would raise. Any role may call
/// it: it names no relation to which something is done.
#[pg_extern(sql = false)]
fn snowflake_migrate_result_columns(
    queries: Text<'_>,
    relations: Array<'_, pg_sys::Oid>,
) -> Option<TextResult> {
    if queries.bytes().len() > LONGEST_TEXT_BYTES {
        return None;
    }
    let relations: Vec<_> = relations.iter().flatten().collect();
    let columns = pg::analyze::result_columns(queries.to_c_str(), &relations)?;
    Some(TextResult::new(columns.to_bytes()))
}

//! `snowflake_decode` of a column in FROM becomes a row of the functions that read one field each.
//!
//! A function in FROM writes its row to a tuplestore, which takes longer than reading the ID
//! four times. Afterwards the row is as if it had been written so, and fields that the query does
//! not use are not read: of a number that is no ID, and of which nothing is used, the error
//! is not raised.

use pgrx::pg_sys::{INT4OID, TIMESTAMPTZOID};

use super::functions::Functions;
use crate::pg;
use crate::pg::inline::InlineInFrom;
use crate::pg::planner::Replacement;

/// A query in the place of the call; `None` where it stays.
///
/// It stays where its ID is more than a column, which might be computed four times; beside outer
/// joins, because of which conditions on its columns would not become ranges; and where roles may
/// execute one of the functions and another not.
pub fn row(request: InlineInFrom<'_>) -> Option<Replacement> {
    let call = request.call()?;
    let (id, layout) = (call.arguments.get(0)?, call.arguments.get(1));
    let functions = Functions::of_database()?;
    let fits = functions.is_decode(call.function)
        && id.bare().is_a_column()
        && layout.is_none_or(|it| it.constant_text().is_some())
        && !request.is_beside_outer_joins();
    let fields = functions.fields(layout);
    let all_may = || fields.iter().all(|it| pg::privileges::all_may_execute(*it));
    if !fits || !all_may() {
        return None;
    }
    let [created_at, integers @ ..] = fields;
    let mut columns = vec![(created_at, TIMESTAMPTZOID)];
    columns.extend(integers.map(|it| (it, INT4OID)));
    request.row_of(&columns)
}

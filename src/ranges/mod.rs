//! Time is the key: conditions on the time of an ID become ranges of the key, and an
//! ORDER BY that time becomes one by the key.
//!
//! | condition | becomes |
//! |---|---|
//! | `snowflake_timestamp(id) >= t` | `id > snowflake_max_id_before(t)` |
//! | `snowflake_timestamp(id) > t`  | `id > snowflake_max_id(t)` |
//! | `snowflake_timestamp(id) < t`  | `id >= 0 AND id <= snowflake_max_id_before(t)` |
//! | `snowflake_timestamp(id) <= t` | `id >= 0 AND id <= snowflake_max_id(t)` |
//! | `snowflake_timestamp(id) = t`  | `id > snowflake_max_id_before(t) AND id <= snowflake_max_id(t)` |
//!
//! So the planner uses an index on `id`, leaves out partitions, and estimates the rows.
//! The functions fail for no time and are STRICT, so the ranges are true for the same IDs
//! as the comparisons are. [`filter`] has the other forms and the exceptions, [`sort`] the
//! ORDER BY.
//!
//! Numbers that are no IDs of the layout are where this can be seen: reading one raises an
//! error, and a range does not read it. A range never contains such a number, so a query
//! can lose that error and can't gain a row.
//!
//! It is done while a query is planned ([`crate::pg::plan_tree`]), not by a support
//! function: that would have to be PostgreSQL's own, of the operators of `timestamptz`.

mod arranged;
mod filter;
mod functions;
#[cfg(feature = "pg19")]
mod inline;
mod reading;
mod saturated;
mod sort;

use pgrx::prelude::*;

use crate::pg::plan_tree::{BaseRelation, watch_relations};
use crate::pg::planner::{Replacement, SupportRequest};
use crate::settings;
use functions::Functions;

/// Starts to look at queries: a support function of the readers has loaded the library before
/// the relations of the first one are opened ([`snowflake_read_support`]).
pub fn init() {
    watch_relations(plan);
}

/// That it is called has loaded the library. It tells the planner what is in `inline.rs`, from 19 on.
#[pg_extern(sql = false)]
fn snowflake_read_support(request: SupportRequest<'_>) -> Replacement {
    #[cfg(feature = "pg19")]
    if let Some(row) = request.inline_in_from().and_then(inline::row) {
        return row;
    }
    let _ = request;
    Replacement::none()
}

/// Called for each table of each query, also in databases that know nothing of IDs.
fn plan(relation: BaseRelation<'_>) {
    if !settings::enable_time_ranges() {
        return;
    }
    let Some(functions) = Functions::of_database() else {
        return;
    };
    #[cfg(feature = "testing")]
    if crate::unprotected::disturbs_neighbours(relation) {
        return;
    }
    filter::apply(relation, &functions);
    sort::apply(relation, &functions);
}

//! ORDER BY the time of an ID.
//!
//! The timestamp is the highest field of every layout, so IDs in their order are also in
//! the order of their times. IDs of one time may come in any order, so ORDER BY `id` gives
//! one of the orders that were asked for. It holds for the result as a whole, so other
//! tables in the query do not matter. The time of NULL is NULL.
//!
//! `min` and `max` of a time by a named layout are served too: PostgreSQL plans them as a
//! query with an ORDER BY and LIMIT 1. It does not try that for functions that are STABLE.

use super::arranged::is_arranged;
use super::functions::Functions;
use crate::pg::plan_tree::{BaseRelation, Comparison};

/// Sorts the result by the key, if it is sorted by its time, or by its time and then by
/// the key itself.
pub fn apply(relation: BaseRelation<'_>, functions: &Functions) {
    let Some(keys) = relation.sort_keys() else {
        return;
    };
    let (first, second) = match keys.as_slice() {
        [first] => (first, None),
        [first, second] => (first, Some(second)),
        _ => return,
    };
    let Some(time) = functions.time_of(first.expr, relation) else {
        return;
    };
    // Rows of different layouts do not compare by their numbers.
    if time.is_joined || time.layout.is_some_and(|layout| !layout.is_fixed()) {
        return;
    }
    let Some(direction @ (Comparison::Less | Comparison::Greater)) =
        Comparison::of_times(first.operator)
    else {
        return;
    };
    // A NULL is one in both keys. But if the layout is, only the second one has others.
    let is_by_id = second.is_none_or(|second| {
        second.expr.is_same(time.id)
            && (time.layout.is_none() || second.nulls_first == first.nulls_first)
            && Comparison::of_integers(second.operator) == Some(direction)
    });
    // An index on the time itself gives the order as it was written.
    if is_by_id && !is_arranged(relation, functions.readers()) {
        relation.sort_by(time.id, direction == Comparison::Greater);
    }
}

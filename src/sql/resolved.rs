//! SQL: reading new rows by key. The views are in `sql/snowflake/resolved.sql`.

use std::ffi::CStr;

use pgrx::prelude::*;

use crate::error::Error;
use crate::pg;
use crate::resolved::{self, Holder};
use crate::settings;
use crate::shared;
use crate::sql::values::timestamptz;

/// The catalog of Citus, in which only superusers create relations.
const CITUS_NODES: &CStr = c"pg_dist_node";

/// Whether this is a database of Citus, where the answer of one node is none: a row whose ID was
/// drawn here may be committed on another node after the transaction has ended here, and a
/// statement may read it there by another snapshot.
pub(super) fn is_with_citus() -> bool {
    let catalog = pg_sys::Oid::from(pg_sys::PG_CATALOG_NAMESPACE);
    pg::catalog::relation_in(catalog, CITUS_NODES).is_some()
}

fn refuse_with_citus(function: &'static str) {
    if is_with_citus() {
        Error::ResolvedWithCitus(function).report();
    }
}

#[pg_extern(sql = false)]
fn snowflake_resolved_id() -> Option<i64> {
    refuse_with_citus("snowflake_resolved_id");
    match resolved::resolved_id() {
        Ok(id) => id.map(i64::from),
        Err(error) => error.report(),
    }
}

/// The same after the mark was moved, as the first ID of this moment would move it.
#[pg_extern(sql = false)]
fn snowflake_advance_resolved_id() -> Option<i64> {
    refuse_with_citus("snowflake_advance_resolved_id");
    advance()
}

/// The same for `snowflake_cluster_resolved_id()`, which asks each node.
#[pg_extern(sql = false)]
fn snowflake_node_resolved_id() -> Option<i64> {
    advance()
}

fn advance() -> Option<i64> {
    match resolved::advance() {
        Ok(id) => id.map(i64::from),
        Err(error) => error.report(),
    }
}

/// When another role's transaction began is for those that may see it in
/// `pg_stat_activity`, too.
#[allow(clippy::type_complexity)] // the columns of a view
#[pg_extern(sql = false)]
fn snowflake_get_unresolved() -> TableIterator<
    'static,
    (
        name!(pid, Option<i32>),
        name!(prepared_xid, Option<pg_sys::TransactionId>),
        name!(first_id, Option<i64>),
        name!(first_id_at, Option<TimestampWithTimeZone>),
    ),
> {
    let open = shared::get().map(resolved::unresolved).unwrap_or_default();
    let rows = open.into_iter().map(|(holder, first)| {
        let (pid, xid, is_visible) = match holder {
            Holder::Backend { pid, user } => {
                (Some(pid), None, pg::privileges::may_see_activity_of(user))
            }
            Holder::Prepared { xid } => (None, Some(xid.into()), true),
        };
        let first = first.filter(|_| is_visible);
        let at = first
            .zip(settings::layout())
            .map(|(id, layout)| timestamptz(layout.time_of(layout.tick_of(id))));
        (pid, xid, first.map(i64::from), at)
    });
    TableIterator::new(rows.collect::<Vec<_>>())
}

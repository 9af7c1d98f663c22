//! SQL: reading new rows by key. The views are in `sql/snowflake/resolved.sql`.

use pgrx::prelude::*;

use crate::pg;
use crate::resolved::{self, Holder};
use crate::settings;
use crate::shared;
use crate::sql::values::timestamptz;

#[pg_extern(sql = false)]
fn snowflake_resolved_id() -> Option<i64> {
    match resolved::resolved_id() {
        Ok(id) => id.map(i64::from),
        Err(error) => error.report(),
    }
}

/// The same after the mark was moved, as the first ID of this moment would move it.
#[pg_extern(sql = false)]
fn snowflake_advance_resolved_id() -> Option<i64> {
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

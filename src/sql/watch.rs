//! SQL: noticing a second server with this server's node number. The procedure that
//! creates the triggers is in `sql/snowflake/watch.sql`.

use pgrx::prelude::*;

use crate::encoding::readable;
use crate::error::Error;
use crate::generator::node_conflict;
use crate::pg::{self, Call, TriggerResult};

/// The condition of the trigger. It is evaluated for each row that replication
/// brings, before the trigger is queued: almost no row has this server's number.
#[pg_extern(sql = false)]
fn snowflake_has_this_node(id: i64) -> bool {
    node_conflict::has_this_node(id)
}

/// The trigger. It acts only where rows come from other servers, and roles cannot
/// feign that: `session_replication_role` needs a privilege, which the role that writes
/// the row must have. Its session may have been set by another one, which runs code of
/// that role.
#[pg_extern(sql = false)]
fn snowflake_watch(call: Call<'_>) -> TriggerResult {
    let Some((trigger, row)) = call
        .trigger()
        .and_then(|trigger| Some((trigger, trigger.inserted_row()?)))
    else {
        Error::WatchIsATrigger.report();
    };
    if is_replicated() {
        let table = readable(trigger.table_name().to_bytes());
        for column in trigger.columns_of_condition() {
            if let Some(id) = row.bigint(column) {
                node_conflict::arrived(id, &table);
            }
        }
    }
    TriggerResult::no_row()
}

/// Whether the row comes from another server: by a worker of logical replication, or
/// by a role that may say so.
fn is_replicated() -> bool {
    pg::session::is_replica_session()
        && (pg::session::is_logical_worker()
            || pg::privileges::may_set_replication_role(pg::session::current_user()))
}

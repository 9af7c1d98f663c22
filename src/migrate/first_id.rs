//! Where the IDs of a time begin.

use pgrx::prelude::*;
use snowflake_id::SnowflakeId;

use crate::sql::read::by_this_server;
use crate::sql::values::TimestampBound;

/// The first ID of the tick that contains a time, not of the next tick as
/// `snowflake_min_id`; 0 before the layout's epoch.
#[pg_extern(sql = false)]
fn snowflake_migrate_first_id_at(time: TimestampWithTimeZone) -> i64 {
    by_this_server(|layout| {
        let last = match time.into() {
            TimestampBound::NegativeInfinity => None,
            TimestampBound::Finite(time) => layout.max_id(time),
            TimestampBound::Infinity => Some(layout.last_id()),
        };
        let first = last.map(|id| layout.first_id_of(layout.tick_of(id)));
        Ok(first.map_or(0, SnowflakeId::get))
    })
}

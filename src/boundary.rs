//! The boundary of a column of IDs: numbers below it are older than the column's snowflake
//! IDs, and have no time. What deletes rows by time must leave them.
//!
//! A CHECK of the table tells it ([`crate::pg::checks`]). It refuses nothing, and is there
//! wherever the table goes: in dumps of a part, in copies (`LIKE`), in tables that Citus
//! rebuilds, on its workers. Only the table's owner can add it, who can lose nothing by
//! it but rows of that table.
//!
//! Where no CHECK tells it, the ends of the index show whether the column can hold other
//! numbers. "Not told" is not taken for "none".

use pgrx::pg_sys;
use pgrx::prelude::*;
use snowflake_id::{Layout, SnowflakeId, Time};

use crate::clock;
use crate::error::{Error, or_report};
use crate::generator::accepted_layout;
use crate::owner::{class_of, name_of};
use crate::pg::checks::NodeTree;
use crate::pg::index_ends::{Outside, outside};
use crate::pg::{self, Mode, Name, Relation};
use crate::sql::read::by_this_server;

const MICROS_PER_DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// 2026-01-01T00:00:00Z. No ID is older than this extension.
const EXTENSION: Time = Time::from_unix_micros(1_767_225_600_000_000);

/// No ID of a layout is smaller. Also where the epoch is later than the extension, numbers
/// of a sequence are below it: those of a day are more than any has.
fn oldest(layout: &Layout) -> SnowflakeId {
    let day = Time::from_unix_micros(layout.epoch().unix_micros().saturating_add(MICROS_PER_DAY));
    let last = layout.max_id(EXTENSION.max(day));
    last.map_or(SnowflakeId::ZERO, |id| {
        layout.first_id_of(layout.tick_of(id))
    })
}

/// No ID of this moment is greater, on a server whose clock is a day ahead.
fn newest(layout: &Layout) -> SnowflakeId {
    let wall = clock::wall().unix_micros().saturating_add(MICROS_PER_DAY);
    layout
        .max_id(Time::from_unix_micros(wall))
        .unwrap_or(SnowflakeId::ZERO)
}

#[pg_extern(sql = false)]
fn snowflake_oldest_id() -> i64 {
    by_this_server(|layout| Ok(oldest(layout).get()))
}

/// Whether IDs of this database are recorded with another layout than this server's. Then
/// numbers show nothing.
#[pg_extern(sql = false)]
fn snowflake_has_other_layout() -> bool {
    accepted_layout::is_other()
}

/// The boundary that a CHECK of this form tells of a column, by its number, and the last
/// number of the time before. NULL for any other expression.
#[pg_extern(sql = false)]
fn snowflake_boundary_in(check: NodeTree<'_>, column: i16) -> Option<Vec<i64>> {
    let (boundary, last_before) = check.told_of(column)?;
    Some(vec![boundary, last_before])
}

/// Why a column may hold numbers that are no IDs of this server's layout; NULL if it
/// holds none. For roles that may read it.
#[pg_extern(sql = false)]
fn snowflake_other_numbers(target: pg_sys::Oid, column_name: Name<'_>) -> Option<&'static str> {
    or_report(require_reader(target, column_name));
    let (low, high) = by_this_server(|layout| Ok((oldest(layout).get(), newest(layout).get())));
    pg::inheritance::with_descendants(target)
        .into_iter()
        .filter_map(|table| Relation::open(table, Mode::Read))
        // As in a query of the table.
        .filter(|relation| !relation.is_temporary_elsewhere())
        .find_map(|relation| match relation.class().kind {
            pg_sys::RELKIND_PARTITIONED_TABLE => None,
            pg_sys::RELKIND_RELATION => {
                let column = relation.columns().find(column_name.as_c_str())?;
                match outside(&relation, column, low, high) {
                    Outside::None => None,
                    Outside::Below => Some("below"),
                    Outside::Above => Some("above"),
                    Outside::NoIndex => Some("no index"),
                    Outside::DeadRows => Some("dead rows"),
                }
            }
            _ => Some("elsewhere"),
        })
}

/// # Errors
/// [`Error::NoRelation`], and [`Error::LockDenied`] unless the current user may read the
/// column.
fn require_reader(target: pg_sys::Oid, column_name: Name<'_>) -> Result<(), Error> {
    let class = class_of(target)?;
    let user = pg::session::current_user();
    let may_read = pg::privileges::has_privileges_of(user, class.owner)
        || pg::catalog::column_number(target, column_name.as_c_str())
            .is_some_and(|number| pg::privileges::may_read_column(target, number, user));
    if may_read {
        Ok(())
    } else {
        Err(Error::LockDenied(name_of(&class)))
    }
}

//! SQL: monitoring. The views over these functions are in `sql/snowflake/monitor.sql`.

use std::sync::atomic::Ordering::Relaxed;

use pgrx::prelude::*;
use snowflake_id::{Layout, Slot, SnowflakeId, Tick};

use crate::clock;
use crate::generator::{accepted_layout, stats, storage};
use crate::pg;
use crate::resolved;
use crate::server_file;
use crate::settings;
use crate::shared::{self, Counters, MarkKey, Shared};
use crate::sql::resolved::is_with_citus;
use crate::sql::values::timestamptz;

fn last_id_at(layout: &Layout, counters: &Counters) -> Option<TimestampWithTimeZone> {
    let id = SnowflakeId::new(counters.last_id.load(Relaxed)).filter(|id| id.get() > 0)?;
    Some(timestamptz(layout.time_of(layout.tick_of(id))))
}

/// This server and this database. The directory that this server's may be a copy of is
/// for those who may see where the directory is.
#[allow(clippy::type_complexity)] // the columns of a view
#[pg_extern(sql = false)]
fn snowflake_get_status() -> TableIterator<
    'static,
    (
        name!(version, &'static str),
        name!(preloaded, bool),
        name!(pending_restart, Option<bool>),
        name!(layout, Option<String>),
        name!(node_id, Option<i32>),
        name!(server_last_id_at, Option<TimestampWithTimeZone>),
        name!(database_reserved_until, Option<TimestampWithTimeZone>),
        name!(clock_behind, Option<f64>),
        name!(ids, Option<i64>),
        name!(waits, Option<i64>),
        name!(expires_at, Option<TimestampWithTimeZone>),
        name!(database_layout, Option<String>),
        name!(node_id_source, Option<String>),
        name!(node_conflicts, Option<i64>),
        name!(conflict_id, Option<i64>),
        name!(stopped, Option<bool>),
        name!(copied_from, Option<String>),
        name!(resolved_id, Option<i64>),
        name!(resolved_age, Option<f64>),
        name!(unknown_prepared, Option<i64>),
    ),
> {
    stats::flush();
    let layout = settings::layout_for_reading().ok();
    let shared = shared::get();
    let node = settings::node_id();
    // Nothing has happened before the memory is made.
    let nothing = cfg!(feature = "dsm_registry").then_some(0);
    let sum = |of: fn(&Counters) -> u64| {
        shared
            .map(|shared| shared.counters().iter().map(of).sum::<u64>() as i64)
            .or(nothing)
    };
    let copied_from = shared.filter(|shared| shared.is_copy()).map(|_| {
        if pg::privileges::may_see_settings() {
            server_file::copied_from().unwrap_or_default()
        } else {
            "<insufficient privilege>".into()
        }
    });
    let resolved = resolved::status();
    let row = (
        env!("CARGO_PKG_VERSION"),
        shared::is_preloaded(),
        settings::is_pending(),
        layout.map(|layout| layout.to_string()),
        node.map(|node| node as i32),
        shared.zip(layout).and_then(|(shared, layout)| {
            let last = |counters: &&Counters| counters.last_id.load(Relaxed);
            last_id_at(&layout, shared.counters().iter().max_by_key(last)?)
        }),
        shared.zip(layout).and_then(|(shared, layout)| {
            let sequence = storage::locate_mark().ok()?;
            let bound = shared.bound_of(MarkKey::here(sequence))?;
            Some(timestamptz(layout.time_of(bound)))
        }),
        shared.map(|shared| {
            let reached = shared.slewed_clock().reached();
            reached.micros_since(clock::wall()).max(0) as f64 / 1e6
        }),
        sum(|counters| counters.ids.load(Relaxed)),
        sum(|counters| counters.waits.load(Relaxed)),
        layout.map(|layout| timestamptz(layout.expires_at())),
        accepted_layout::of_database(),
        settings::node_source().map(ToString::to_string),
        shared
            .map(|shared| shared.conflicts().count.load(Relaxed) as i64)
            .or(nothing),
        shared
            .map(|shared| {
                let conflicts = shared.conflicts();
                let far_ahead = conflicts.far_ahead.load(Relaxed);
                conflicts.highest.load(Relaxed).max(far_ahead)
            })
            .filter(|&id| id > 0),
        shared.map(Shared::is_stopped),
        copied_from,
        resolved.id.filter(|_| !is_with_citus()).map(i64::from),
        resolved.age.map(|micros| micros as f64 / 1e6),
        resolved.unknown_prepared,
    );
    TableIterator::once(row)
}

#[allow(clippy::type_complexity)] // the columns of a view
#[pg_extern(sql = false)]
fn snowflake_get_stat_slots() -> TableIterator<
    'static,
    (
        name!(backend_id, i32),
        name!(slots, i32),
        name!(ids, i64),
        name!(last_id_at, Option<TimestampWithTimeZone>),
        name!(borrowed_ticks, i64),
        name!(waits, i64),
        name!(wait_time, f64),
        name!(clock_steps, i64),
        name!(bound, Option<i64>),
    ),
> {
    stats::flush();
    let rows = match shared::get().zip(settings::layout()) {
        Some((shared, layout)) => slots(shared, layout),
        None => Vec::new(),
    };
    TableIterator::new(rows)
}

#[allow(clippy::type_complexity)] // the columns of a view
fn slots(
    shared: Shared,
    layout: &Layout,
) -> Vec<(
    i32,
    i32,
    i64,
    Option<TimestampWithTimeZone>,
    i64,
    i64,
    f64,
    i64,
    Option<i64>,
)> {
    let before = bound_at_start(shared);
    let now = layout
        .tick_at(clock::time(clock::wall()))
        .map_or(0, Tick::get);
    (0..)
        .zip(shared.slots().iter().zip(shared.counters()))
        .map(|(backend_id, (slot, counters))| {
            let (last, _) = slot.last(layout.sequence_bits());
            (
                backend_id as i32,
                shared.slots().len() as i32,
                counters.ids.load(Relaxed) as i64,
                last_id_at(layout, counters),
                last.get().saturating_sub(now) as i64,
                counters.waits.load(Relaxed) as i64,
                counters.wait_micros.load(Relaxed) as f64 / 1e3,
                counters.clock_steps.load(Relaxed) as i64,
                bound_of_slot(slot, backend_id).or(before),
            )
        })
        .collect()
}

/// The ID of the slot's word: no greater one of this backend number has been
/// made here since the start. `None` where the slot was neither used nor raised,
/// and where this server has no node number.
fn bound_of_slot(slot: &Slot, backend_id: u32) -> Option<i64> {
    let identity = settings::identity()?;
    let layout = identity.layout();
    let (tick, sequence) = slot.last(layout.sequence_bits());
    if (tick.get(), sequence) == (0, 0) {
        return None;
    }
    let tick = tick.min(layout.last_tick());
    Some(identity.id(backend_id, tick, sequence).get())
}

/// The greatest ID that the floor leaves to the time before the start, to which
/// the first ID raises every slot. A damaged file is reported with that ID.
fn bound_at_start(shared: Shared) -> Option<i64> {
    let floor = storage::floor_at_start(shared, settings::identity()?).ok()?;
    (floor > SnowflakeId::ZERO).then(|| floor.get() - 1)
}

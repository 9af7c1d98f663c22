//! SQL: what layouts hold. The view over the presets is in
//! `sql/snowflake/layouts.sql`.

use pgrx::prelude::*;
use snowflake_id::{Layout, presets};

use crate::clock;
use crate::error::{Error, or_report};
use crate::pg::{Call, Text};
use crate::sql::values::{layout_named, timestamptz};

/// How long a layout lasts, the IDs per second of a server, servers, backends.
type Capacity = (TimestampWithTimeZone, i64, i64, i64);

fn capacity(layout: &Layout) -> Capacity {
    let backends = i64::from(layout.max_backend()) + 1;
    (
        timestamptz(layout.expires_at()),
        layout.ids_per_second() as i64 * backends,
        i64::from(layout.max_node()) + 1,
        backends,
    )
}

/// The name of a preset; `None` for any other layout.
fn preset_name(layout: &Layout) -> Option<&'static str> {
    let preset = presets().iter().find(|preset| preset.layout() == *layout)?;
    Some(preset.name)
}

#[allow(clippy::type_complexity)] // the columns of a view
#[pg_extern(sql = false)]
fn snowflake_get_layouts() -> TableIterator<
    'static,
    (
        name!(name, &'static str),
        name!(layout, &'static str),
        name!(expires_at, TimestampWithTimeZone),
        name!(ids_per_second, i64),
        name!(nodes, i64),
        name!(backends, i64),
        name!(about, &'static str),
    ),
> {
    TableIterator::new(presets().iter().map(|preset| {
        let (expires_at, ids_per_second, nodes, backends) = capacity(&preset.layout());
        (
            preset.name,
            preset.text,
            expires_at,
            ids_per_second,
            nodes,
            backends,
            preset.about,
        )
    }))
}

#[allow(clippy::type_complexity)] // the columns of a table
#[pg_extern(sql = false)]
fn snowflake_layout_capacity(
    name_or_layout: Text<'_>,
    call: Call<'_>,
) -> TableIterator<
    'static,
    (
        name!(name, Option<&'static str>),
        name!(layout, String),
        name!(expires_at, TimestampWithTimeZone),
        name!(ids_per_second, i64),
        name!(nodes, i64),
        name!(backends, i64),
    ),
> {
    let layout = layout_named(name_or_layout, call);
    let (expires_at, ids_per_second, nodes, backends) = capacity(&layout);
    TableIterator::once((
        preset_name(&layout),
        layout.to_string(),
        expires_at,
        ids_per_second,
        nodes,
        backends,
    ))
}

#[allow(clippy::type_complexity)] // the columns of a table
#[pg_extern(sql = false)]
fn snowflake_layouts_for(
    servers: i32,
) -> TableIterator<
    'static,
    (
        name!(recommended, bool),
        name!(name, Option<&'static str>),
        name!(layout, String),
        name!(expires_at, TimestampWithTimeZone),
        name!(ids_per_second, i64),
        name!(nodes, i64),
        name!(backends, i64),
    ),
> {
    let layouts = or_report(layouts_for(servers));
    TableIterator::new(layouts.into_iter().enumerate().map(|(index, layout)| {
        let (expires_at, ids_per_second, nodes, backends) = capacity(&layout);
        (
            index == 0,
            preset_name(&layout),
            layout.to_string(),
            expires_at,
            ids_per_second,
            nodes,
            backends,
        )
    }))
}

/// The recommended layout, then the presets that have a node number for each
/// server and have not expired.
fn layouts_for(servers: i32) -> Result<Vec<Layout>, Error> {
    let refused = Error::ServersOutOfRange(servers);
    let Some(count) = u32::try_from(servers).ok().filter(|&count| count > 0) else {
        return Err(refused);
    };
    let recommended = Layout::for_servers(count).ok_or(refused)?;
    let others = presets()
        .iter()
        .map(|preset| preset.layout())
        .filter(|layout| *layout != recommended && layout.max_node() >= count - 1)
        .filter(|layout| layout.expires_at() > clock::time(clock::wall()));
    Ok([recommended].into_iter().chain(others).collect())
}

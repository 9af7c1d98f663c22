//! Layouts for a fleet: how far node numbers and IDs a second reach.

use anyhow::{Context, Result};
use snowflake_id::Layout;

use super::results::whole;
use crate::report::{Block, Table, per_second};

/// Numbers of servers.
const FLEETS: [u32; 8] = [3, 10, 50, 64, 500, 1_000, 5_000, 100_000];

/// What a layout has for one server.
struct OfAServer {
    slots: u64,
    ids_per_second: u64,
}

impl OfAServer {
    fn of(layout: &Layout) -> Self {
        let slots = u64::from(layout.max_backend()) + 1;
        let a_tick = slots * (u64::from(layout.max_sequence()) + 1);
        Self {
            slots,
            ids_per_second: a_tick * 1_000_000 / u64::from(layout.tick_micros()),
        }
    }
}

/// The text and the table.
pub fn blocks() -> Result<[Block; 2]> {
    let mut table = Table::new(&[
        "servers",
        "layout",
        "tick",
        "node numbers",
        "backend slots of a server",
        "IDs a second, one slot",
        "one server",
        "all servers",
        "until",
    ]);
    for servers in FLEETS {
        let layout = Layout::for_servers(servers).context("there is a layout for them")?;
        let one = OfAServer::of(&layout);
        let text = layout.to_string();
        let (fields, rest) = text.split_once(" tick:").context("a layout has a tick")?;
        let (tick, _) = rest.split_once(' ').context("a layout has an epoch")?;
        let name = if layout == Layout::DEFAULT {
            "`default`".to_owned()
        } else {
            format!("`{fields} tick:{tick}`")
        };
        table.row(&[
            whole(servers.into()),
            name,
            tick.to_owned(),
            whole(u64::from(layout.max_node()) + 1),
            one.slots.to_string(),
            per_second(layout.ids_per_second() as f64),
            per_second(one.ids_per_second as f64),
            per_second(one.ids_per_second as f64 * f64::from(servers)),
            layout.expires_at().to_string()[..10].to_owned(),
        ]);
    }
    Ok([Block::Text(TEXT.to_owned()), Block::Table(table)])
}

const TEXT: &str = "### Layouts for a fleet\n\n\
    The program computes this table. The layouts are those of `Layout::for_servers` in the crate `pg-snowflake-id`: the default layout \
    as far as its node numbers reach, and then a power of 2 of node numbers. A quarter of the bits that remain are the backend number, \
    as in the default layout. With more than 16,384 servers the tick is longer, so that a server keeps at least 4 slots with 64 IDs a \
    tick each. A server that replaces another needs a node number of its own, unless it continues that one's data directory: count \
    those servers too.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_all_slots_of_its_node_number() {
        let one = OfAServer::of(&Layout::DEFAULT);
        assert_eq!((one.slots, one.ids_per_second), (16, 65_536_000));
        let layout = Layout::for_servers(100_000).unwrap();
        let one = OfAServer::of(&layout);
        // 4 slots with 64 IDs each in 10 ms.
        assert_eq!((one.slots, one.ids_per_second), (4, 25_600));
    }
}

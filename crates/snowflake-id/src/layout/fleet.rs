//! Which layout a number of servers needs.

use super::tick::TickLength;
use super::{Field, Layout, MAX_TOTAL_BITS, parse};

/// Lengths of a tick in microseconds, each with the timestamp bits that last 68 years or longer.
/// The 41 bits of milliseconds last 69 years. A longer tick needs fewer bits, and leaves more for
/// the other fields.
const TICK_MICROS_AND_TIMESTAMP_BITS: [(u32, u32); 4] =
    [(1_000, 41), (10_000, 38), (100_000, 35), (1_000_000, 31)];

/// The backend number gets one of so many bits below the node number, rounded down, as in the
/// default layout. The sequence gets most of them, because sessions that need many IDs take them
/// from one slot.
const BITS_PER_BACKEND_BIT: u32 = 4;

/// The fewest bits below the node number: 4 slots with 64 IDs a tick each. With fewer, a longer
/// tick is better: it generates as many IDs a second, and issues more of them at once.
const MIN_SERVER_BITS: u32 = 8;

impl Layout {
    /// A layout with a node number for each of so many servers: the [default](Self::DEFAULT) for up
    /// to 64, and then one with as many node numbers as the next power of 2.
    ///
    /// It lasts until 2093 or longer, has the default epoch and 63 bits. Its tick is 1 ms for up to
    /// 16,384 servers, 10 ms for up to 131,072, 100 ms for up to 1,048,576, and 1 s for up to
    /// 16,777,216. `None` for more: IDs of 63 bits have no sensible layout for them.
    ///
    /// Replacements of servers need numbers too: count them in.
    ///
    /// ```
    /// use snowflake_id::Layout;
    ///
    /// let layout = Layout::for_servers(500).ok_or("too many servers")?;
    /// assert_eq!(
    ///     layout.to_string(),
    ///     "timestamp:41 node:9 backend:3 sequence:10 tick:1ms epoch:2025-01-01T00:00:00Z"
    /// );
    /// # Ok::<(), &str>(())
    /// ```
    pub const fn for_servers(servers: u32) -> Option<Self> {
        let default = Self::DEFAULT;
        if servers <= default.max_node() + 1 {
            return Some(default);
        }
        let node = (servers - 1).ilog2() + 1;
        let mut longer = 0;
        while longer < TICK_MICROS_AND_TIMESTAMP_BITS.len() {
            let (tick_micros, timestamp) = TICK_MICROS_AND_TIMESTAMP_BITS[longer];
            let below_timestamp = MAX_TOTAL_BITS - timestamp;
            if node + MIN_SERVER_BITS <= below_timestamp {
                return Some(Self::of_a_fleet(tick_micros, timestamp, node));
            }
            longer += 1;
        }
        None
    }

    const fn of_a_fleet(tick_micros: u32, timestamp: u32, node: u32) -> Self {
        let rest = MAX_TOTAL_BITS - timestamp - node;
        let backend = rest / BITS_PER_BACKEND_BIT;
        let sequence = rest - backend;
        Self {
            timestamp: Field::new(timestamp as u8, (node + rest) as u8),
            node: Field::new(node as u8, rest as u8),
            backend: Field::new(backend as u8, sequence as u8),
            sequence: Field::new(sequence as u8, 0),
            tick: TickLength::from_micros(tick_micros),
            epoch: parse::DEFAULT_EPOCH,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn fields(servers: u32) -> String {
        let text = Layout::for_servers(servers)
            .unwrap_or_else(|| panic!("no layout for {servers} servers"))
            .to_string();
        text.replace(" epoch:2025-01-01T00:00:00Z", "")
    }

    #[test]
    fn the_default_serves_as_many_as_it_has_numbers_for() {
        for servers in [0, 1, 3, 50, 64] {
            assert_eq!(Layout::for_servers(servers), Some(Layout::DEFAULT));
        }
        assert_ne!(Layout::for_servers(65), Some(Layout::DEFAULT));
    }

    #[test]
    fn more_servers_take_bits_of_the_other_fields_and_then_of_the_time() {
        for (servers, expected) in [
            (65, "timestamp:41 node:7 backend:3 sequence:12 tick:1ms"),
            (128, "timestamp:41 node:7 backend:3 sequence:12 tick:1ms"),
            (129, "timestamp:41 node:8 backend:3 sequence:11 tick:1ms"),
            (500, "timestamp:41 node:9 backend:3 sequence:10 tick:1ms"),
            (1_000, "timestamp:41 node:10 backend:3 sequence:9 tick:1ms"),
            (5_000, "timestamp:41 node:13 backend:2 sequence:7 tick:1ms"),
            (16_384, "timestamp:41 node:14 backend:2 sequence:6 tick:1ms"),
            (
                16_385,
                "timestamp:38 node:15 backend:2 sequence:8 tick:10ms",
            ),
            (
                100_000,
                "timestamp:38 node:17 backend:2 sequence:6 tick:10ms",
            ),
            (
                1 << 20,
                "timestamp:35 node:20 backend:2 sequence:6 tick:100ms",
            ),
            (1 << 24, "timestamp:31 node:24 backend:2 sequence:6 tick:1s"),
        ] {
            assert_eq!(fields(servers), expected, "{servers} servers");
        }
    }

    #[test]
    fn there_is_no_layout_for_more_servers_than_fit() {
        assert!(Layout::for_servers(1 << 24).is_some());
        for servers in [(1 << 24) + 1, 1 << 31, u32::MAX] {
            assert_eq!(Layout::for_servers(servers), None);
        }
    }

    #[test]
    fn every_tick_lasts_68_years_with_the_fewest_bits() {
        const YEAR: u64 = 31_556_952_000_000;
        for (tick_micros, bits) in TICK_MICROS_AND_TIMESTAMP_BITS {
            let micros = u64::from(tick_micros) << bits;
            assert!((68 * YEAR..2 * 68 * YEAR).contains(&micros), "{bits} bits");
        }
    }
}

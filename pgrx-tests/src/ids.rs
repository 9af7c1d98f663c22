//! IDs as a client receives them: fetching, decoding, counting duplicates.

use std::fmt;
use std::io::Read;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use postgres::Client;
use roaring::RoaringTreemap;

/// 2025-01-01T00:00:00Z in seconds since 1970.
const EPOCH_2025: i64 = 1_735_689_600;

/// The fields of a layout, written down by hand.
#[derive(Debug, Clone)]
pub struct Fields {
    /// The layout's text, for `snowflake.layout`.
    pub layout: &'static str,
    /// Names and bits, from the most significant down, without `timestamp`.
    pub bits: &'static [(&'static str, u32)],
    /// The tick in microseconds.
    pub tick_us: i64,
    /// The epoch in seconds since 1970.
    pub epoch: i64,
}

/// The default layout.
pub const DEFAULT: Fields = Fields {
    layout: "default",
    bits: &[("node", 6), ("backend", 4), ("sequence", 12)],
    tick_us: 1_000,
    epoch: EPOCH_2025,
};

/// A layout whose sessions all share one slot.
pub const ONE_SLOT: Fields = Fields {
    layout: "timestamp:41 node:6 sequence:12",
    bits: &[("node", 6), ("sequence", 12)],
    tick_us: 1_000,
    epoch: EPOCH_2025,
};

/// A layout that uses up its sequence numbers quickly: 16 for each millisecond
/// and slot. A session stays in its slot, because a greater backend number does
/// not make a greater ID.
pub const SHORT_SEQUENCE: Fields = Fields {
    layout: "timestamp:41 node:6 sequence:4 backend:4",
    bits: &[("node", 6), ("sequence", 4), ("backend", 4)],
    tick_us: 1_000,
    epoch: EPOCH_2025,
};

/// The same with slots between which a session moves.
pub const SHORT_SLOTS: Fields = Fields {
    layout: "timestamp:41 node:6 backend:4 sequence:4",
    bits: &[("node", 6), ("backend", 4), ("sequence", 4)],
    tick_us: 1_000,
    epoch: EPOCH_2025,
};

/// A layout that gets far ahead of the clock quickly: four slots with 1,600 IDs
/// a second each.
pub const SLOW_TICK: Fields = Fields {
    layout: "timestamp:39 node:6 backend:2 sequence:4 tick:10ms",
    bits: &[("node", 6), ("backend", 2), ("sequence", 4)],
    tick_us: 10_000,
    epoch: EPOCH_2025,
};

/// A layout of 64 IDs a second, in four slots. Any machine generates them faster
/// than time passes, so IDs that sessions request in bulk leave no gaps: a thousand
/// of them fill 16 seconds. A server that forgot them, and whose clock is set back to
/// the first of them, is bound to repeat some.
pub const SLOW_SLOTS: Fields = Fields {
    layout: "timestamp:32 node:6 backend:2 sequence:4 tick:1s",
    bits: &[("node", 6), ("backend", 2), ("sequence", 4)],
    tick_us: 1_000_000,
    epoch: EPOCH_2025,
};

/// The same in one slot, which all sessions share.
pub const ONE_SLOW_SLOT: Fields = Fields {
    layout: "timestamp:32 node:6 sequence:6 tick:1s",
    bits: &[("node", 6), ("sequence", 6)],
    tick_us: 1_000_000,
    epoch: EPOCH_2025,
};

impl Fields {
    /// The value of one field, or 0 if the layout does not have it.
    pub fn field(&self, id: i64, name: &str) -> i64 {
        let mut shift = 0;
        for &(field, bits) in self.bits.iter().rev() {
            if field == name {
                return (id >> shift) & ((1 << bits) - 1);
            }
            shift += bits;
        }
        0
    }

    /// How many values a field has: 1 if the layout does not have it.
    pub fn values(&self, name: &str) -> i64 {
        self.bits
            .iter()
            .find(|(field, _)| *field == name)
            .map_or(1, |&(_, bits)| 1 << bits)
    }

    /// The ID's tick since the layout's epoch.
    pub fn tick(&self, id: i64) -> i64 {
        id >> self.bits.iter().map(|(_, bits)| bits).sum::<u32>()
    }

    /// The ID's time in microseconds since 1970.
    pub fn time_us(&self, id: i64) -> i64 {
        self.epoch * 1_000_000 + self.tick(id) * self.tick_us
    }

    /// How far the ID's time is ahead of this process's clock, in milliseconds.
    pub fn lead_ms(&self, id: i64) -> i64 {
        (self.time_us(id) - now_us()) / 1_000
    }
}

/// The clock, in microseconds since 1970.
pub fn now_us() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX)
}

/// Runs a query of one bigint column and adds the values to `ids` as they
/// arrive. If the server dies during the query, what the client had received by
/// then is kept. Binary COPY transfers four million IDs in a second or two, even
/// in a test built without optimization.
pub fn fetch_into(client: &mut Client, query: &str, ids: &mut Vec<i64>) -> Result<()> {
    let mut stream = client
        .copy_out(&format!("COPY ({query}) TO STDOUT (FORMAT binary)"))
        .with_context(|| format!("running: {query}"))?;
    // Signature, flags, length of the header's extension.
    let mut header = [0; 19];
    stream.read_exact(&mut header)?;
    ensure!(
        header.starts_with(b"PGCOPY\n\xff\r\n\0") && header[11..] == [0; 8],
        "not binary COPY"
    );
    // The number of columns (-1 at the end), then the length and bytes of each.
    let mut columns = [0; 2];
    let mut value = [0; 12];
    loop {
        stream.read_exact(&mut columns)?;
        match i16::from_be_bytes(columns) {
            1 => {
                stream.read_exact(&mut value)?;
                ensure!(value[..4] == [0, 0, 0, 8], "the row is not one bigint");
                let mut id = [0; 8];
                id.copy_from_slice(&value[4..]);
                ids.push(i64::from_be_bytes(id));
            }
            -1 => return Ok(()),
            other => bail!("{other} columns where one was expected"),
        }
    }
}

/// The same as a new list.
pub fn fetch(client: &mut Client, query: &str) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    fetch_into(client, query, &mut ids)?;
    Ok(ids)
}

/// `count` IDs, by one call each.
pub fn nextval(client: &mut Client, count: usize) -> Result<Vec<i64>> {
    fetch(
        client,
        &format!("SELECT snowflake_nextval() FROM generate_series(1, {count})"),
    )
}

/// One ID.
pub fn one(client: &mut Client) -> Result<i64> {
    Ok(client.query_one("SELECT snowflake_nextval()", &[])?.get(0))
}

/// The number of the process that serves this client.
pub fn backend_pid(client: &mut Client) -> Result<i32> {
    Ok(client.query_one("SELECT pg_backend_pid()", &[])?.get(0))
}

/// Fails on the first ID that is not greater than the one before it.
pub fn assert_increasing(ids: &[i64], whose: &str) {
    for pair in ids.windows(2) {
        assert!(
            pair[0] < pair[1],
            "{whose}: {} came before {}",
            pair[0],
            pair[1]
        );
    }
}

/// How many pairs of these processes share a slot.
pub fn pairs_sharing_a_slot(pids: &[i32], fields: &Fields) -> u64 {
    let slots = fields.values("backend");
    let mut live = vec![0_u64; usize::try_from(slots).unwrap_or(1)];
    let mut pairs = 0;
    for &pid in pids {
        let slot = usize::try_from(i64::from(pid) % slots).unwrap_or(0);
        pairs += live[slot];
        live[slot] += 1;
    }
    pairs
}

/// IDs that were received, as compressed bitmaps: two bytes for each ID of a tick with
/// few of them, a bit for each that there may be in one with many. A list of all would
/// fill the memory within an hour.
#[derive(Debug, Default)]
pub struct IdSet {
    ids: RoaringTreemap,
    repeated: usize,
    example: Option<i64>,
}

impl IdSet {
    /// Adds IDs, and counts those that it has already.
    pub fn add(&mut self, ids: &[i64]) {
        for &id in ids {
            if !self.ids.insert(id.cast_unsigned()) {
                self.repeated += 1;
                self.example = Some(id);
            }
        }
    }

    /// What was counted so far.
    pub fn tally(&self) -> Tally {
        Tally {
            ids: self.ids.len() as usize + self.repeated,
            duplicates: self.repeated,
            example: self.example,
        }
    }
}

/// What a test of uniqueness counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// IDs that were checked.
    pub ids: usize,
    /// How many of them repeat another.
    pub duplicates: usize,
    /// One that is repeated.
    pub example: Option<i64>,
}

impl Tally {
    /// Counts the IDs that were received.
    pub fn of(ids: Vec<i64>) -> Self {
        let mut received = IdSet::default();
        received.add(&ids);
        received.tally()
    }

    /// Fails if an ID is repeated.
    pub fn assert_unique(&self) {
        assert_eq!(self.duplicates, 0, "an ID is repeated: {self}");
    }

    /// Fails if no ID is repeated. A test that finds no duplicate without the
    /// protection would never find one.
    pub fn assert_found_duplicates(&self) {
        assert!(
            self.duplicates > 0,
            "without its protection this test must find duplicates: {self}"
        );
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} IDs checked, {} duplicates",
            grouped(self.ids),
            grouped(self.duplicates)
        )?;
        if let Some(example) = self.example {
            write!(formatter, " (for example {example})")?;
        }
        Ok(())
    }
}

/// A number with separators of thousands: 4,000,000.
pub fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

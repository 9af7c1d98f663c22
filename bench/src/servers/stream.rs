//! What a collector receives: transactions of many servers, in the order in which
//! they arrive. Each server has slots as a real one, and a clock that is wrong.

use std::num::NonZeroU32;

use anyhow::{Context, Result, bail, ensure};
use snowflake_id::{Allowance, Answer, Identity, Layout, Position, Slot, SlotWalk, Time};

use super::random::Random;
use crate::format::per_second;

/// Rows of a transaction: from 1 up to this number.
const MOST_ROWS: u64 = 100;

/// How long a server takes for a row.
const ROW_MICROS: u64 = 20;

/// The longest time from a commit until the transaction arrives. It is another one
/// for each transaction, but the transactions of a server arrive in the order in
/// which they were committed.
const LONGEST_DELAY_MICROS: u64 = 5_000;

/// Sessions of each server.
const SESSIONS: usize = 8;

/// When the first transaction can begin: 2026-01-01T00:00:00Z.
const BEGIN: i64 = 1_767_225_600_000_000;

/// How far sessions may run ahead of the clock: the extension's default, a second.
const MAX_BORROW_MICROS: u64 = 1_000_000;

/// The servers that feed the collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fleet {
    pub servers: u32,
    /// IDs a second of all servers together.
    pub rate: u32,
    /// The offsets of the clocks are spread evenly over this time before and after
    /// the true time.
    pub skew_millis: u32,
}

impl std::fmt::Display for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rate = per_second(f64::from(self.rate));
        write!(f, "{}, {rate} IDs a second", self.describe())
    }
}

/// A transaction as the collector applies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    pub server: u32,
    /// Microseconds of true time.
    pub arrives: u64,
    /// The IDs, in the order in which the server generated them.
    pub ids: Vec<i64>,
}

/// A transaction while its server runs it.
struct Begun {
    session: usize,
    commits: u64,
    ids: Vec<i64>,
}

impl Fleet {
    pub fn describe(&self) -> String {
        match (self.servers, self.skew_millis) {
            (1, _) => "1 server".to_owned(),
            (servers, skew) => format!("{servers} servers, clocks within ±{skew} ms"),
        }
    }

    /// The layout of these servers.
    pub fn layout(&self) -> Result<Layout> {
        Layout::for_servers(self.servers).context("there is no layout for so many servers")
    }

    /// That many rows, in the order in which they arrive. They are the same each time.
    pub fn arrivals(&self, rows: usize) -> Result<Vec<Transaction>> {
        let layout = self.layout()?;
        // A tenth more, because some servers generate fewer than their share.
        let until = (rows as f64 / f64::from(self.rate) * 1.1e6) as u64 + 100_000;
        let mut all = Vec::new();
        let mut random = Random::new(u64::from(self.servers));
        for (node, offset) in (0..).zip(self.offsets(&mut random)) {
            let identity = Identity::new(layout, node)?;
            let mut random = Random::new(1 + u64::from(node));
            all.extend(self.of_a_server(identity, offset, until, &mut random)?);
        }
        // It is stable: transactions of a server that arrive together keep their order.
        all.sort_by_key(|transaction| transaction.arrives);
        cut(&mut all, rows)?;
        Ok(all)
    }

    /// The offset of each server's clock in microseconds.
    fn offsets(&self, random: &mut Random) -> Vec<i64> {
        let (servers, skew) = (i64::from(self.servers), i64::from(self.skew_millis) * 1_000);
        let mut offsets: Vec<i64> = (0..servers)
            .map(|number| skew * (2 * number + 1 - servers) / servers)
            .collect();
        // Otherwise a greater node number would belong to a later clock.
        random.shuffle(&mut offsets);
        offsets
    }

    /// The transactions of a server that begin before `until`.
    fn of_a_server(
        &self,
        identity: Identity,
        offset: i64,
        until: u64,
        random: &mut Random,
    ) -> Result<Vec<Transaction>> {
        let rows_of_one = (1 + MOST_ROWS) as f64 / 2.0;
        let between = rows_of_one * f64::from(self.servers) / f64::from(self.rate) * 1e6;
        let mut begun = Vec::new();
        // The time of each row, and the transaction that it belongs to.
        let mut rows = Vec::new();
        let mut free = [0; SESSIONS];
        let mut time = 0.0;
        loop {
            time += random.exponential(between);
            if time as u64 >= until {
                break;
            }
            let session = (0..SESSIONS)
                .min_by_key(|&session| free[session])
                .context("a server has sessions")?;
            let begins = free[session].max(time as u64);
            let count = 1 + random.below(MOST_ROWS);
            rows.extend((0..count).map(|row| (begins + row * ROW_MICROS, begun.len())));
            free[session] = begins + count * ROW_MICROS;
            begun.push(Begun {
                session,
                commits: free[session],
                ids: Vec::with_capacity(count as usize),
            });
        }
        rows.sort_unstable();
        issue(identity, offset, &rows, &mut begun)?;
        begun.sort_by_key(|transaction| transaction.commits);
        let mut last = 0;
        let arrive = begun.into_iter().map(|Begun { commits, ids, .. }| {
            last = last.max(commits + random.below(LONGEST_DELAY_MICROS + 1));
            Transaction {
                server: identity.node(),
                arrives: last,
                ids,
            }
        });
        Ok(arrive.collect())
    }
}

/// Gives each row an ID, in the order of time, as the server's sessions do.
fn issue(
    identity: Identity,
    offset: i64,
    rows: &[(u64, usize)],
    begun: &mut [Begun],
) -> Result<()> {
    let layout = *identity.layout();
    let slots: Vec<Slot> = (0..=layout.max_backend()).map(|_| Slot::new()).collect();
    let mut sessions: Vec<(SlotWalk, Position)> = (0..SESSIONS)
        .map(|session| SlotWalk::new(&layout, &slots, (session % slots.len()) as u32))
        .map(|walk| (walk, walk.start()))
        .collect();
    let max_borrow = MAX_BORROW_MICROS / u64::from(layout.tick_micros());
    for &(time, which) in rows {
        let begun = &mut begun[which];
        let clock = Time::from_unix_micros(BEGIN + time as i64 + offset);
        let allowance = Allowance {
            now: layout.tick_at(clock)?,
            max_borrow,
            reserved: layout.end_tick(),
        };
        let (walk, position) = &mut sessions[begun.session];
        let (after, answer) = walk.next_run(*position, allowance, NonZeroU32::MIN);
        let Answer::Issued(run) = answer else {
            bail!("{layout} has too few IDs for this rate: {answer:?}");
        };
        *position = after;
        let ids = identity.ids(after.slot(), run);
        begun.ids.extend(ids.map(|id| id.get()));
    }
    Ok(())
}

/// Leaves only the first rows.
fn cut(transactions: &mut Vec<Transaction>, rows: usize) -> Result<()> {
    let mut left = rows;
    for transaction in &mut *transactions {
        transaction.ids.truncate(left);
        left -= transaction.ids.len();
    }
    ensure!(left == 0, "{left} of {rows} rows are missing");
    transactions.retain(|transaction| !transaction.ids.is_empty());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const FLEET: Fleet = Fleet {
        servers: 100,
        rate: 50_000,
        skew_millis: 10,
    };

    #[test]
    fn every_server_takes_part_and_no_id_repeats() {
        let all = FLEET.arrivals(100_000).unwrap();
        let ids: BTreeSet<i64> = all.iter().flat_map(|one| one.ids.clone()).collect();
        let servers: BTreeSet<u32> = all.iter().map(|one| one.server).collect();
        println!("{} IDs of {} servers", ids.len(), servers.len());
        assert_eq!((ids.len(), servers.len()), (100_000, 100));
        assert_eq!(all, FLEET.arrivals(100_000).unwrap());
    }

    #[test]
    fn an_id_has_the_time_of_its_servers_clock() {
        let layout = FLEET.layout().unwrap();
        let mut offsets = BTreeMap::new();
        for one in FLEET.arrivals(100_000).unwrap() {
            // Older than the arrival by the delays, and by the offset.
            let id = snowflake_id::SnowflakeId::new(one.ids[0]).unwrap();
            let parts = layout.decode(id).unwrap();
            assert_eq!(parts.node, one.server);
            let age = BEGIN + one.arrives as i64 - parts.time.unix_micros();
            let least = offsets.entry(one.server).or_insert(age);
            *least = age.min(*least);
        }
        let (low, high) = (
            offsets.values().min().unwrap(),
            offsets.values().max().unwrap(),
        );
        // From 10 ms ahead to 10 ms behind, and a little longer for the way.
        assert!((-10_000..-6_000).contains(low), "{low}");
        assert!((9_000..15_000).contains(high), "{high}");
    }
}

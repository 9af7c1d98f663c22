//! The cost of sharing a slot, which is one cache line, among sessions in bulk.

use std::time::Duration;

use anyhow::Result;
use postgres::Client;
use snowflake_tests::Cluster;

use crate::measure::{Samples, in_turn};
use crate::peers::{Key, Peer, insert};
use crate::pgbench::{Until, pgbench};
use crate::report::{Block, Section, Table, per_second, ratio, spread, three};
use crate::run::Run;
use crate::sections::clients::AROUND;

/// Few, many, and more than a server should have.
const CLIENTS: [usize; 3] = [2, 16, 64];

/// With this layout each session stays in its own slot, because a greater backend
/// number does not make a greater ID.
const APART: &str = "timestamp:41 node:6 sequence:12 backend:4";

const CALLS: u32 = 10_000;
const BATCH: u64 = 100;

/// What the sessions do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Only calls: the worst case.
    Calls,
    /// Rows of a table with a primary key: the usual case.
    Rows,
}

/// How the IDs are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    Together,
    Apart,
    Sequence,
}

const MAKERS: [Maker; 3] = [Maker::Together, Maker::Apart, Maker::Sequence];

impl Maker {
    fn describe(self) -> &'static str {
        match self {
            Self::Together => "snowflake_nextval()",
            Self::Apart => "the same, own slots",
            Self::Sequence => "nextval(), cache 1",
        }
    }

    fn peer(self) -> Peer {
        match self {
            Self::Together | Self::Apart => Peer::Snowflake,
            Self::Sequence => Peer::Sequence,
        }
    }
}

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    let scale = run.scale();
    let one = scale.call_seconds as f64 + AROUND;
    Duration::from_secs_f64(one * (2 * CLIENTS.len() * MAKERS.len() * scale.peer_rounds) as f64)
}

/// The section.
pub fn section(run: &Run) -> Result<Section> {
    let apart = run.with_layout(APART)?;
    let mut here = run.connect()?;
    let mut there = apart.connect()?;
    let mut blocks = vec![Block::Text(format!(
        "Sessions that generate in bulk share slot 0 until its 4,096 IDs of a millisecond are used up, then continue in their own. They are \
         compared with another server, on which the layout `{APART}` keeps each session in its own slot, and with a plain sequence. The first \
         table is about loops of {} calls, the second about rows in batches of {BATCH} into a table with a primary key and `synchronous_commit = off`.",
        three(CALLS.into())
    ))];
    for work in [Work::Calls, Work::Rows] {
        let rates = in_turn(
            &CLIENTS,
            &MAKERS,
            0,
            |_| run.scale().peer_rounds,
            |clients, maker, turn| {
                run.progress().step(format_args!(
                    "{work:?}, {clients} clients, {}, {turn}",
                    maker.describe()
                ));
                let (cluster, client) = match maker {
                    Maker::Apart => (&apart, &mut there),
                    Maker::Together | Maker::Sequence => (run.cluster(), &mut here),
                };
                rate(run, cluster, client, work, maker.peer(), clients)
            },
        )?;
        blocks.push(Block::Table(table(work, &rates)));
    }
    Ok(Section {
        title: "Many sessions in one slot",
        blocks,
        ..Section::default()
    })
}

/// IDs a second.
fn rate(
    run: &Run,
    cluster: &Cluster,
    client: &mut Client,
    work: Work,
    peer: Peer,
    clients: usize,
) -> Result<f64> {
    let (script, ids) = match work {
        Work::Calls => (
            format!(
                "SELECT count({}) FROM generate_series(1, {CALLS})",
                peer.call()
            ),
            f64::from(CALLS),
        ),
        Work::Rows => {
            peer.new_table(client, Key::Primary)?;
            (insert(BATCH), BATCH as f64)
        }
    };
    run.settle(client)?;
    let until = Until::Seconds(run.scale().call_seconds);
    let outcome = pgbench(
        cluster,
        &script,
        clients,
        until,
        &[("synchronous_commit", "off")],
    )?;
    Ok(outcome.rate * ids)
}

fn table(work: Work, rates: &[Vec<Samples>]) -> Table {
    let what = match work {
        Work::Calls => "clients, calls a second",
        Work::Rows => "clients, rows a second",
    };
    let mut head = vec![what.to_owned()];
    head.extend(MAKERS.iter().map(|maker| maker.describe().to_owned()));
    head.push("shared, ratio to own slots".to_owned());
    head.push("shared, ratio to `nextval()`".to_owned());
    let mut table = Table::of(head);
    for (clients, row) in CLIENTS.iter().zip(rates) {
        let [together, apart, sequence] = [&row[0], &row[1], &row[2]];
        let mut cells = vec![clients.to_string()];
        cells.extend(row.iter().map(|samples| spread(samples, per_second)));
        cells.push(spread(&together.ratio_to(apart), ratio));
        cells.push(spread(&together.ratio_to(sequence), ratio));
        table.row(&cells);
    }
    table
}

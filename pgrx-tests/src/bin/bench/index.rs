//! The primary key's index after many writers at once.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::Cluster;

use crate::measure::{Samples, in_turn};
use crate::peers::{Key, Peer, TABLE};
use crate::pgbench::{Outcome, Repeats, Until, pgbench};
use crate::plot::{Bar, Bars, Chart};
use crate::report::{
    Block, Figure, Goal, Limit, Section, Table, Verdict, per_second, ratio_cell, spread, three,
};
use crate::run::Run;

const WRITERS: u64 = 16;

/// Rows of one transaction. How IDs of sessions that work at the same time come
/// into the index depends on it.
const BATCHES: [u64; 2] = [100, 1];

/// All sessions in one slot: IDs in the order in which they are made.
const ONE_SLOT: &str = "timestamp:41 node:10 sequence:12";
const ONE_SLOT_NAME: &str = "snowflake_nextval(), one slot";

fn contenders(run: &Run) -> Vec<Peer> {
    run.peers_of(&[
        Peer::Snowflake,
        Peer::Sequence,
        Peer::CachedSequence,
        Peer::RandomUuid,
        Peer::UuidV7,
        Peer::PlPgSql,
    ])
}

/// Indexes come out nearly alike each time; the others take part once.
fn rounds_of(run: &Run, peer: Peer) -> usize {
    match peer {
        Peer::Snowflake | Peer::Sequence => run.scale().rounds,
        _ => 1,
    }
}

/// How many transactions of each writer.
fn transactions(run: &Run, batch: u64) -> u64 {
    let rows = match batch {
        1 => run.scale().index_single_rows,
        _ => run.scale().index_rows,
    };
    rows / (batch * WRITERS)
}

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    let scale = run.scale();
    let turns: usize = contenders(run)
        .iter()
        .map(|&peer| rounds_of(run, peer))
        .sum();
    let one = 1.0 + scale.index_rows as f64 * 3.5e-6 + scale.index_single_rows as f64 * 25e-6;
    Duration::from_secs_f64(turns as f64 * one)
}

/// What an index is like beside its size.
#[derive(Default, Clone)]
struct Shape {
    density: Samples,
    fragmentation: Samples,
    rate: Samples,
}

impl Shape {
    /// Adds the index as it is; returns its size in bytes.
    fn look(&mut self, client: &mut Client, rows: u64) -> Result<f64> {
        let row = client.query_one(
            &format!(
                "SELECT index_size, avg_leaf_density, leaf_fragmentation, (SELECT count(*) FROM {TABLE})
                 FROM pgstatindex('{TABLE}_pkey')"
            ),
            &[],
        )?;
        let counted: i64 = row.get(3);
        ensure!(
            u64::try_from(counted)? == rows,
            "{counted} rows were inserted, not {rows}"
        );
        self.density.push(row.get(1));
        self.fragmentation.push(row.get(2));
        Ok(row.get::<_, i64>(0) as f64)
    }
}

/// The writers at once.
fn write(cluster: &Cluster, insert: &str, transactions: u64) -> Result<Outcome> {
    pgbench(
        cluster,
        insert,
        usize::try_from(WRITERS)?,
        Until::Transactions(transactions),
        &[("synchronous_commit", "off")],
    )
}

/// The same with ours in a layout whose sessions share a slot.
fn in_one_slot(run: &Run, insert: &str, transactions: u64, batch: u64) -> Result<(Samples, Shape)> {
    let cluster = run.with_layout(ONE_SLOT)?;
    let mut client = cluster.connect()?;
    client.batch_execute("CREATE EXTENSION pgstattuple")?;
    let mut shape = Shape::default();
    let mut sizes = Samples::default();
    for round in 1..=run.scale().peer_rounds {
        run.progress()
            .step(format_args!("{ONE_SLOT_NAME}, round {round}"));
        Peer::Snowflake.new_table(&mut client, Key::Primary)?;
        let outcome = write(&cluster, insert, transactions)?;
        shape.rate.push(outcome.rate * batch as f64);
        sizes.push(shape.look(&mut client, transactions * batch * WRITERS)?);
    }
    Ok((sizes, shape))
}

/// The section.
pub fn section(run: &Run) -> Result<Section> {
    let mut client = run.connect()?;
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS pgstattuple")?;
    let mut section = Section {
        title: "The index after 16 writers",
        blocks: vec![Block::Text(format!(
            "{WRITERS} `pgbench` clients at once insert into a table with a primary key, with `synchronous_commit = off`. Then \
             `pgstatindex` of contrib's `pgstattuple`: fragmentation is the share of leaf pages whose next one in order comes \
             before them in the file."
        ))],
        verdicts: Vec::new(),
    };
    for batch in BATCHES {
        let (blocks, verdict) = filled(run, &mut client, batch)?;
        section.blocks.extend(blocks);
        section.verdicts.push(verdict);
    }
    Ok(section)
}

/// An index filled with so many rows a transaction.
fn filled(run: &Run, client: &mut Client, batch: u64) -> Result<(Vec<Block>, Verdict)> {
    let contenders = contenders(run);
    let transactions = transactions(run, batch);
    let rows = transactions * batch * WRITERS;
    let (insert, file, about) = match batch {
        1 => (
            format!("INSERT INTO {TABLE} (v) VALUES (1)"),
            "index-single-rows",
            "Size of the primary key's index after writers of single rows, for each contender",
        ),
        _ => (
            format!("INSERT INTO {TABLE} (v) SELECT generate_series(1, {batch})"),
            "index-batches",
            "Size of the primary key's index after writers of batches, for each contender",
        ),
    };
    let repeats = Repeats::default();
    let mut shapes = vec![Shape::default(); contenders.len()];
    let sizes = in_turn(
        &[()],
        &contenders,
        0,
        |peer| rounds_of(run, peer),
        |(), peer, turn| {
            run.progress().step(format_args!(
                "{batch} rows a transaction, {}, {turn}",
                peer.name()
            ));
            peer.new_table(client, Key::Primary)?;
            run.settle(client)?;
            let outcome = write(run.cluster(), &insert, transactions);
            let Some(outcome) = repeats.sieve(peer, outcome)? else {
                return Ok(f64::NAN);
            };
            let column = contenders.iter().position(|&other| other == peer);
            let shape = &mut shapes[column.context("a contender")?];
            shape.rate.push(outcome.rate * batch as f64);
            shape.look(client, rows)
        },
    )?
    .remove(0);

    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let percent = |value: f64| format!("{value:.1} %");
    let mut table = Table::new(&[
        "",
        "index, MiB",
        "to `bigserial`",
        "leaf density",
        "fragmentation",
        "rows a second",
        "rounds",
    ]);
    let mut bars = Vec::new();
    for ((peer, size), shape) in contenders.iter().zip(&sizes).zip(&shapes) {
        table.row(&[
            peer.name().to_owned(),
            spread(&size.map(mib), three),
            ratio_cell(size, &sizes[1]),
            spread(&shape.density, percent),
            spread(&shape.fragmentation, percent),
            spread(&shape.rate, per_second),
            size.len().to_string(),
        ]);
        if size.len() > 0 {
            bars.push(Bar::new(peer.name(), peer.colour(), &size.map(mib)));
        }
    }
    if batch > 1 {
        let (size, shape) = in_one_slot(run, &insert, transactions, batch)?;
        table.row(&[
            ONE_SLOT_NAME.to_owned(),
            spread(&size.map(mib), three),
            ratio_cell(&size, &sizes[1]),
            spread(&shape.density, percent),
            spread(&shape.fragmentation, percent),
            spread(&shape.rate, per_second),
            size.len().to_string(),
        ]);
    }
    let rows = per_second(rows as f64);
    let a_transaction = match batch {
        1 => "a row a transaction".to_owned(),
        _ => format!("{batch} rows a transaction"),
    };
    let mut blocks = vec![
        Block::Text(format!("**{rows} rows, {a_transaction}** (`{insert}`)")),
        Block::Table(table),
        Block::Figure(Figure {
            file,
            about,
            chart: Chart::Bars(Bars {
                title: format!("Index of {rows} rows of {WRITERS} writers, {a_transaction}"),
                unit: "MiB; the line is the range of the rounds",
                one_scale: true,
                groups: vec![(String::new(), bars)],
            }),
        }),
    ];
    blocks.extend(repeats.describe().map(Block::Text));
    if batch > 1 {
        blocks.push(Block::Text(format!(
            "\"One slot\" is the same extension in another server with the layout `{ONE_SLOT}`, which has no backend numbers: for \
             many sessions that insert batches at once it keeps the index dense, and gives a server the numbers of one slot, \
             4,096 a millisecond, instead of 16."
        )));
    }
    let goal = Goal {
        what: format!(
            "index after {WRITERS} concurrent writers, {a_transaction}, of `bigserial`'s size"
        ),
        limit: Limit::AtMost(1.02),
        why: format!(
            "leaf pages are filled to {} with ours and to {} with `bigserial`. Within a millisecond IDs are ordered by their backend \
             numbers, not as they are made; a session's batch then goes in before another's, which splits pages that are not the \
             index's last",
            percent(shapes[0].density.median()),
            percent(shapes[1].density.median())
        ),
    };
    Ok((blocks, goal.judge(&sizes[0].ratio_to(&sizes[1]))))
}

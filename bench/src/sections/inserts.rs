//! Transactions that insert one row each, and `INSERT … SELECT`.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::measure::{Samples, in_turn};
use crate::peers::{Key, Peer, TABLE, insert};
use crate::pgbench::{Repeats, Until, pgbench};
use crate::plot::{Bar, Bars, Chart};
use crate::processors::{Pinned, connection_time, processor_time};
use crate::report::{
    Block, Figure, Goal, Limit, Section, Table, Verdict, ratio, ratio_cell, spread, three,
};
use crate::run::Run;
use crate::sections::clients::{AROUND, chart, table, worst};
use crate::sections::wal::Way;

/// How high our rate must be, relative to `bigserial`.
const TOLERANCE: f64 = 0.98;

/// How much processor time ours may take, relative to `bigserial`.
const PROCESSOR: f64 = 1.02;

/// With a flush for each commit, and without, so that the cost of the column's
/// default is visible.
const COMMITS: [(&str, &str, &str); 2] = [
    (
        "off",
        "inserts-not-waiting",
        "Single-row INSERTs a second by clients, synchronous_commit off",
    ),
    (
        "on",
        "inserts-waiting",
        "Single-row INSERTs a second by clients, synchronous_commit on",
    ),
];

fn contenders(run: &Run, commit: &str) -> Vec<Peer> {
    let all = [
        Peer::Snowflake,
        Peer::Sequence,
        Peer::CachedSequence,
        Peer::RandomUuid,
        Peer::UuidV7,
        Peer::PlPgSql,
    ];
    // If each commit waits for the disk, all others have the same rate.
    run.peers_of(if commit == "on" { &all[..2] } else { &all })
}

/// How long the single rows take.
pub fn expected(run: &Run) -> Duration {
    let scale = run.scale();
    let turns: usize = COMMITS
        .iter()
        .flat_map(|&(commit, ..)| contenders(run, commit))
        .map(|peer| run.rounds_or(peer, run.scale().insert_rounds))
        .sum();
    let one = scale.insert_seconds as f64 + AROUND + 0.2;
    Duration::from_secs_f64(one * (scale.clients.len() * turns) as f64)
}

/// Ours relative to `bigserial`, for one number of clients and one
/// `synchronous_commit`.
struct Place {
    what: String,
    rate: Samples,
    /// The processor time of a row.
    processor: Samples,
}

/// The section on single rows.
pub fn single_rows(run: &Run) -> Result<Section> {
    let scale = run.scale();
    let pinned = Pinned::apart(run.cluster())?;
    let a_connection = connection_time(run.cluster())?;
    let mut blocks = vec![Block::Text(format!(
        "`pgbench` runs `INSERT INTO {TABLE} (v) VALUES (1)` as a prepared statement, into a new table with a primary key, for {} s each, \
         with {} rounds for ours and `bigserial`. With `synchronous_commit = off` the disk does not hide the cost of the column's default; \
         `on` is the server's default. {} Processor time is what Linux counts for the server's processes of clients, in user and kernel \
         mode, without that of a connection ({} ms). It does not depend on other programs on the machine.",
        scale.insert_seconds,
        scale.insert_rounds,
        pinned.describe(),
        three(a_connection * 1e3)
    ))];
    let mut places = Vec::new();
    let repeats = Repeats::default();
    for (commit, file, about) in COMMITS {
        let contenders = contenders(run, commit);
        let measured = measure(run, commit, &contenders, a_connection, &repeats)?;
        blocks.extend([
            Block::Text(format!("**`synchronous_commit = {commit}`**")),
            Block::Table(table(scale.clients, &contenders, &measured.rates)),
            Block::Figure(Figure {
                file,
                about,
                chart: chart(
                    &format!("Single-row INSERTs, synchronous_commit = {commit}"),
                    "transactions a second",
                    scale.clients,
                    &contenders,
                    &measured.rates,
                ),
            }),
            Block::Table(measured.processor_table(scale.clients)),
        ]);
        places.extend(measured.places(scale.clients, commit));
    }
    drop(pinned);
    blocks.extend(repeats.describe().map(Block::Text));
    Ok(Section {
        title: "Single-row INSERTs by clients",
        blocks,
        verdicts: verdicts(&places),
        ..Section::default()
    })
}

/// What was measured with one `synchronous_commit`, by number of clients.
struct Measured {
    /// Rows a second of each contender.
    rates: Vec<Vec<Samples>>,
    /// Processor seconds a row of ours and `bigserial`.
    processor: Vec<[Samples; 2]>,
}

fn measure(
    run: &Run,
    commit: &str,
    contenders: &[Peer],
    a_connection: f64,
    repeats: &Repeats,
) -> Result<Measured> {
    let scale = run.scale();
    let mut client = run.connect()?;
    let mut processor = vec![[Samples::default(), Samples::default()]; scale.clients.len()];
    let rates = in_turn(
        scale.clients,
        contenders,
        0,
        |peer| run.rounds_or(peer, scale.insert_rounds),
        |clients, peer, turn| {
            run.progress().step(format_args!(
                "single rows, synchronous_commit {commit}, {clients} clients, {}, {turn}",
                peer.name()
            ));
            peer.new_table(&mut client, Key::Primary)?;
            run.settle(&mut client)?;
            let before = processor_time(run.cluster())?;
            let (outcome, wal) = run.wal.during(&mut client, || {
                let outcome = pgbench(
                    run.cluster(),
                    &insert(1),
                    clients,
                    Until::Seconds(scale.insert_seconds),
                    &[("synchronous_commit", commit)],
                );
                repeats.sieve(peer, outcome)
            })?;
            let Some(outcome) = outcome else {
                return Ok(f64::NAN);
            };
            let connections = (clients + 1) as f64 * a_connection;
            let used = processor_time(run.cluster())? - before - connections;
            let rows = outcome.transactions as f64;
            run.wal.record(Way::SingleRows, peer, wal as f64 / rows);
            let place = scale.clients.iter().position(|&other| other == clients);
            let column = contenders[..2].iter().position(|&other| other == peer);
            if let (Some(place), Some(column)) = (place, column) {
                processor[place][column].push(used / rows);
            }
            Ok(outcome.rate)
        },
    )?;
    Ok(Measured { rates, processor })
}

impl Measured {
    fn processor_table(&self, clients: &[usize]) -> Table {
        let mut table = Table::new(&[
            "clients",
            "processor time a row, µs",
            "`bigserial`'s",
            "ratio",
        ]);
        let micros = |samples: &Samples| spread(&samples.map(|seconds| seconds * 1e6), three);
        for (clients, [ours, theirs]) in clients.iter().zip(&self.processor) {
            table.row(&[
                clients.to_string(),
                micros(ours),
                micros(theirs),
                spread(&ours.ratio_to(theirs), ratio),
            ]);
        }
        table
    }

    fn places(&self, clients: &[usize], commit: &str) -> Vec<Place> {
        let rows = clients.iter().zip(&self.rates).zip(&self.processor);
        rows.map(|((clients, rates), [ours, theirs])| Place {
            what: format!("{clients} clients, synchronous_commit {commit}"),
            rate: rates[0].ratio_to(&rates[1]),
            processor: ours.ratio_to(theirs),
        })
        .collect()
    }
}

/// Over all rounds together, and for the combination with the lowest rate.
fn verdicts(places: &[Place]) -> Vec<Verdict> {
    let count = places.len();
    let (mut rates, mut processor) = (Samples::default(), Samples::default());
    for place in places {
        rates.extend(&place.rate);
        processor.extend(&place.processor);
    }
    let lowest = worst(
        places
            .iter()
            .map(|place| (place.what.clone(), place.rate.clone())),
    );
    let mut verdicts = vec![
        Goal {
            what: format!("single-row INSERTs a second, relative to `bigserial`; all rounds of {count} combinations"),
            limit: Limit::AtLeast(TOLERANCE),
            why: format!(
                "the server's processes take {} of `bigserial`'s processor time a row",
                ratio(processor.median())
            ),
        }
        .judge(&rates),
        Goal {
            what: format!("processor time of a single-row INSERT, relative to `bigserial`; all rounds of {count} combinations"),
            limit: Limit::AtMost(PROCESSOR),
            why: "an ID takes less processor time, so the difference has another cause".to_owned(),
        }
        .judge(&processor),
    ];
    verdicts.extend(lowest.map(|(what, rate)| {
        let below = places
            .iter()
            .filter(|place| place.rate.median() < TOLERANCE)
            .count();
        let there = places.iter().find(|place| place.what == what);
        let processor = there.map_or_else(String::new, |place| ratio(place.processor.median()));
        Goal {
            what: format!(
                "single-row INSERTs a second, relative to `bigserial`; the lowest of {count} combinations ({what})"
            ),
            limit: Limit::AtLeast(TOLERANCE),
            why: format!(
                "{below} of {count} are below it. In this combination the server's processes take {processor} of `bigserial`'s \
                 processor time a row, so the difference is when they and the clients run"
            ),
        }
        .judge(&rate)
    }));
    verdicts
}

/// How long `INSERT … SELECT` takes.
pub fn expected_select(run: &Run) -> Duration {
    let turns: usize = run
        .peers()
        .iter()
        .map(|&peer| run.rounds_of(peer) + 1)
        .sum();
    Duration::from_secs_f64(turns as f64 * (0.3 + f64::from(run.scale().rows) * 2e-6))
}

/// The section on `INSERT … SELECT`.
pub fn from_select(run: &Run) -> Result<Section> {
    let scale = run.scale();
    let contenders = run.peers();
    let mut client = run.connect()?;
    let insert = format!(
        "INSERT INTO {TABLE} (v) SELECT n FROM generate_series(1, {}) AS n",
        scale.rows
    );
    let times = in_turn(
        &[()],
        contenders,
        1,
        |peer| run.rounds_of(peer),
        |(), peer, turn| {
            run.progress().step(format_args!("{}, {turn}", peer.name()));
            peer.new_table(&mut client, Key::Primary)?;
            run.settle(&mut client)?;
            let mut session = run.connect()?;
            let (took, wal) = run.wal.during(&mut client, || {
                let begun = Instant::now();
                let rows = session.execute(&insert, &[])?;
                ensure!(rows == u64::from(scale.rows), "{rows} rows were inserted");
                Ok(begun.elapsed().as_secs_f64())
            })?;
            if turn.counts() {
                let bytes = wal as f64 / f64::from(scale.rows);
                run.wal.record(Way::Select, peer, bytes);
            }
            Ok(took)
        },
    )?
    .remove(0);
    let mut table = Table::new(&["", "ms", "ratio to `bigserial`", "rounds"]);
    let mut bars = Vec::new();
    for (peer, samples) in contenders.iter().zip(&times) {
        let milliseconds = samples.map(|seconds| seconds * 1e3);
        table.row(&[
            peer.name().to_owned(),
            spread(&milliseconds, three),
            ratio_cell(samples, &times[1]),
            samples.len().to_string(),
        ]);
        if peer.is_drawn() {
            bars.push(Bar::new(peer.name(), peer.colour(), &milliseconds));
        }
    }
    Ok(Section {
        title: "INSERT … SELECT",
        blocks: vec![
            Block::Text(format!(
                "One session runs `{insert}`, into a new table with a primary key."
            )),
            Block::Table(table),
            Block::Figure(Figure {
                file: "insert-select",
                about: "Milliseconds of INSERT … SELECT, for each contender",
                chart: Chart::Bars(Bars {
                    title: format!(
                        "INSERT … SELECT of {} rows",
                        crate::report::per_second(scale.rows.into())
                    ),
                    unit: "milliseconds, with a primary key; the line is the range of the rounds",
                    one_scale: true,
                    groups: vec![(String::new(), bars)],
                }),
            }),
        ],
        ..Section::default()
    })
}

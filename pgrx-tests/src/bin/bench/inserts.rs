//! Transactions that insert one row each, and `INSERT … SELECT`.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::clients::{AROUND, chart, scatter, table, worst};
use crate::measure::in_turn;
use crate::peers::{Key, Peer, TABLE};
use crate::pgbench::{Repeats, Until, pgbench};
use crate::plot::{Bar, Bars, Chart};
use crate::report::{Block, Figure, Goal, Limit, Section, Table, ratio_cell, spread, three};
use crate::run::Run;
use crate::wal::Way;

/// How far below `bigserial`'s rate ours may be.
const TOLERANCE: f64 = 0.98;

/// One with a flush for each commit, and one in which what the default costs shows.
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
    // Where each commit waits for the disk, all others come out the same.
    run.peers_of(if commit == "on" { &all[..2] } else { &all })
}

/// How long the single rows take.
pub fn expected(run: &Run) -> Duration {
    let scale = run.scale();
    let turns: usize = COMMITS
        .iter()
        .flat_map(|&(commit, ..)| contenders(run, commit))
        .map(|peer| run.rounds_of(peer))
        .sum();
    let one = scale.insert_seconds as f64 + AROUND + 0.1;
    Duration::from_secs_f64(one * (scale.clients.len() * turns) as f64)
}

/// The section on single rows.
pub fn single_rows(run: &Run) -> Result<Section> {
    let scale = run.scale();
    let mut client = run.connect()?;
    let mut blocks = vec![Block::Text(format!(
        "`INSERT INTO {TABLE} (v) VALUES (1)` into a new table with a primary key, `pgbench` with prepared statements, {} s \
         each. With `synchronous_commit = off`, so that what the default costs is not hidden behind the disk, and with `on`, \
         as it is by default.",
        scale.insert_seconds
    ))];
    let mut ratios = Vec::new();
    let repeats = Repeats::default();
    for (commit, file, about) in COMMITS {
        let contenders = contenders(run, commit);
        let rates = in_turn(
            scale.clients,
            &contenders,
            0,
            |peer| run.rounds_of(peer),
            |clients, peer, turn| {
                run.progress().step(format_args!(
                    "single rows, synchronous_commit {commit}, {clients} clients, {}, {turn}",
                    peer.name()
                ));
                peer.new_table(&mut client, Key::Primary)?;
                run.settle(&mut client)?;
                let (outcome, wal) = run.wal.during(&mut client, || {
                    let outcome = pgbench(
                        run.cluster(),
                        &format!("INSERT INTO {TABLE} (v) VALUES (1)"),
                        clients,
                        Until::Seconds(scale.insert_seconds),
                        &[("synchronous_commit", commit)],
                    );
                    repeats.sieve(peer, outcome)
                })?;
                let Some(outcome) = outcome else {
                    return Ok(f64::NAN);
                };
                run.wal.record(
                    Way::SingleRows,
                    peer,
                    wal as f64 / outcome.transactions as f64,
                );
                Ok(outcome.rate)
            },
        )?;
        let title = format!("`synchronous_commit = {commit}`");
        blocks.push(Block::Text(format!("**{title}**")));
        blocks.push(Block::Table(table(scale.clients, &contenders, &rates)));
        blocks.push(Block::Figure(Figure {
            file,
            about,
            chart: chart(
                &format!("Single-row INSERTs, synchronous_commit = {commit}"),
                "transactions a second",
                scale.clients,
                &contenders,
                &rates,
            ),
        }));
        for (clients, row) in scale.clients.iter().zip(&rates) {
            ratios.push((
                format!("{clients} clients, synchronous_commit {commit}"),
                row[0].ratio_to(&row[1]),
                scatter(&row[1]),
            ));
        }
    }
    blocks.extend(repeats.describe().map(Block::Text));
    let places = ratios.len();
    let worst = worst(
        ratios
            .iter()
            .map(|(what, ratio, _)| (what.clone(), ratio.clone())),
    );
    let verdicts = worst.map(|(what, ratio)| {
        let below = ratios.iter().filter(|(_, ratio, _)| ratio.median() < TOLERANCE).count();
        let scatter = ratios.iter().find(|(other, ..)| *other == what).map_or("", |found| &found.2);
        Goal {
            what: format!("single-row INSERTs a second, of `bigserial`'s; the lowest of {places} ({what})"),
            limit: Limit::AtLeast(TOLERANCE),
            why: format!(
                "{below} of {places} are below it; between the fastest and the slowest round of `bigserial` alone lie {scatter} of its rate there"
            ),
        }
        .judge(&ratio)
    });
    Ok(Section {
        title: "Single-row INSERTs by clients",
        blocks,
        verdicts: verdicts.into_iter().collect(),
    })
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
    let mut table = Table::new(&["", "ms", "to `bigserial`", "rounds"]);
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
                "`{insert}` into a new table with a primary key, in one session."
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
        verdicts: Vec::new(),
    })
}

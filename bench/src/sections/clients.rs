//! Calls a second, by the number of clients.

use std::time::Duration;

use anyhow::Result;

use crate::measure::{Samples, in_turn};
use crate::peers::Peer;
use crate::pgbench::{Until, pgbench};
use crate::plot::{Chart, Line, Lines};
use crate::report::{
    Block, Figure, Goal, Limit, Section, Table, per_second, ratio_cell, spread, three,
};
use crate::run::Run;

/// The seconds that a run of pgbench takes in addition to its duration.
pub const AROUND: f64 = 0.25;

/// The number of clients that the goals are about.
const JUDGED: usize = 8;

/// Calls in a statement of the first kind.
const LOOP: u32 = 10_000;

/// How many calls a statement makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statement {
    Loop,
    Single,
}

impl Statement {
    fn script(self, peer: Peer) -> String {
        let call = peer.call();
        match self {
            Self::Loop => format!("SELECT count({call}) FROM generate_series(1, {LOOP})"),
            Self::Single => format!("SELECT {call}"),
        }
    }

    fn calls(self) -> f64 {
        match self {
            Self::Loop => f64::from(LOOP),
            Self::Single => 1.0,
        }
    }
}

fn contenders(run: &Run) -> Vec<Peer> {
    run.peers_of(&[
        Peer::Snowflake,
        Peer::Sequence,
        Peer::CachedSequence,
        Peer::RandomUuid,
        Peer::UuidV7,
    ])
}

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    let scale = run.scale();
    let turns: usize = contenders(run)
        .iter()
        .map(|&peer| run.rounds_of(peer))
        .sum();
    let one = scale.call_seconds as f64 + AROUND;
    Duration::from_secs_f64(one * (2 * scale.clients.len() * turns) as f64)
}

/// The section.
pub fn section(run: &Run) -> Result<Section> {
    let scale = run.scale();
    let contenders = contenders(run);
    let mut client = run.connect()?;
    let mut blocks = vec![Block::Text(format!(
        "`pgbench` runs prepared statements for {} s each, on the server's processors. The first table is about loops of {} calls \
         a statement (`SELECT count(…) FROM generate_series(1, {LOOP})`), the second about one call a statement (`SELECT …`). Each \
         statement is a transaction with the default `synchronous_commit`, so every 32nd `nextval()` waits for a flush. Before each \
         measurement the clock catches up with the IDs: in the long run a slot issues 4,096 IDs a millisecond, and one client in a \
         loop generates more ([below](#without-a-pause)).",
        scale.call_seconds,
        three(LOOP.into())
    ))];
    let mut verdicts = Vec::new();
    for (statement, title, file, about) in [
        (
            Statement::Loop,
            "Calls a second, 10,000 calls a statement",
            "calls-in-loops",
            "Calls a second by clients, 10,000 calls a statement",
        ),
        (
            Statement::Single,
            "Calls a second, one call a statement",
            "single-calls",
            "Calls a second by clients, one call a statement",
        ),
    ] {
        let rates = in_turn(
            scale.clients,
            &contenders,
            0,
            |peer| run.rounds_of(peer),
            |clients, peer, turn| {
                run.progress().step(format_args!(
                    "{} calls a statement, {clients} clients, {}, {turn}",
                    statement.calls(),
                    peer.name()
                ));
                run.settle(&mut client)?;
                let script = statement.script(peer);
                let until = Until::Seconds(scale.call_seconds);
                let outcome = pgbench(run.cluster(), &script, clients, until, &[])?;
                Ok(outcome.rate * statement.calls())
            },
        )?;
        blocks.push(Block::Text(format!("**{title}**")));
        blocks.push(Block::Table(table(scale.clients, &contenders, &rates)));
        blocks.push(Block::Figure(Figure {
            file,
            about,
            chart: chart(title, "calls a second", scale.clients, &contenders, &rates),
        }));
        if let Some(row) = scale.clients.iter().position(|&clients| clients == JUDGED) {
            verdicts.push(verdict(statement, &rates[row]));
        }
    }
    Ok(Section {
        title: "Calls by clients",
        blocks,
        verdicts,
        ..Section::default()
    })
}

fn verdict(statement: Statement, rates: &[Samples]) -> crate::report::Verdict {
    let (what, limit, why) = match statement {
        Statement::Loop => (
            format!("calls a second of {JUDGED} clients in loops, relative to `nextval()`"),
            2.5,
            "the clients wait for the processors, not for IDs: the series and the count take the same time with both",
        ),
        Statement::Single => (
            format!("calls a second of {JUDGED} clients one by one, relative to `nextval()`"),
            1.3,
            "a statement takes many times the time of a call, so the only possible gain is the flush of every 32nd `nextval()`, which is fast on this disk",
        ),
    };
    Goal {
        what,
        limit: Limit::AtLeast(limit),
        why: why.to_owned(),
    }
    .judge(&rates[0].ratio_to(&rates[1]))
}

/// A row for each number of clients, with rates and the ratio of the first
/// contender, which is ours, to the second, a plain sequence.
pub fn table(clients: &[usize], contenders: &[Peer], rates: &[Vec<Samples>]) -> Table {
    let mut head = vec!["clients".to_owned()];
    head.extend(contenders.iter().map(|peer| peer.name().to_owned()));
    head.push(format!(
        "ratio of {} to {}",
        contenders[0].name(),
        contenders[1].name()
    ));
    let mut table = Table::of(head);
    for (clients, row) in clients.iter().zip(rates) {
        let mut cells = vec![clients.to_string()];
        cells.extend(row.iter().map(|samples| spread(samples, per_second)));
        cells.push(ratio_cell(&row[0], &row[1]));
        table.row(&cells);
    }
    table
}

/// Rates by the number of clients.
pub fn chart(
    title: &str,
    unit: &'static str,
    clients: &[usize],
    contenders: &[Peer],
    rates: &[Vec<Samples>],
) -> Chart {
    let lines = contenders.iter().enumerate().map(|(column, peer)| Line {
        name: peer.name().to_owned(),
        colour: peer.colour(),
        points: clients
            .iter()
            .zip(rates)
            .map(|(&clients, row)| (clients as f64, row[column].clone()))
            .collect(),
    });
    Chart::Lines(Lines {
        title: title.to_owned(),
        x: "clients",
        y: unit,
        doubling: true,
        lines: lines.collect(),
    })
}

/// The lowest of several ratios, and where it was measured.
pub fn worst<'a>(
    ratios: impl Iterator<Item = (String, Samples)> + 'a,
) -> Option<(String, Samples)> {
    ratios.min_by(|a, b| a.1.median().total_cmp(&b.1.median()))
}

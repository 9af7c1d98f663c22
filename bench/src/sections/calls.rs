//! One call, in a statement with very many, and the cost of advancing the mark.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use postgres::Client;

use crate::measure::{Samples, in_turn};
use crate::peers::Peer;
use crate::plot::{Bar, Bars, Chart};
use crate::report::{
    Block, Figure, Goal, Highlight, Limit, Section, Table, Verdict, per_second, ratio, ratio_cell,
    spread, three,
};
use crate::run::Run;

/// The default, and one that does not end during a measurement.
const LEASES: [&str; 2] = ["2s", "1h"];

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    let scale = run.scale();
    let turns = (scale.call_rounds + scale.rounds + 2) as f64;
    // The slowest contenders take a few microseconds a call.
    Duration::from_secs_f64(turns * (f64::from(scale.calls) * 5e-6 + 0.2))
}

/// Runs `SELECT count(call)` over a series. Returns the seconds for each call.
fn count(client: &mut Client, call: &str, calls: u32) -> Result<f64> {
    let query = format!("SELECT count({call}) FROM generate_series(1, {calls})");
    let begun = Instant::now();
    let counted: i64 = client.query_one(&query, &[])?.get(0);
    let took = begun.elapsed().as_secs_f64();
    ensure!(counted == i64::from(calls), "{query} counted {counted}");
    Ok(took / f64::from(calls))
}

/// The contenders, and what each measured: seconds a call.
struct Measured {
    contenders: Vec<Peer>,
    samples: Vec<Samples>,
}

impl Measured {
    /// The samples of one contender; empty if this server does not have it.
    fn of(&self, wanted: Peer) -> Samples {
        let found = self.contenders.iter().position(|&peer| peer == wanted);
        found.map_or_else(Samples::default, |place| self.samples[place].clone())
    }

    /// Bars of the contenders that fulfil a condition.
    fn bars(&self, is_wanted: fn(Peer) -> bool) -> Vec<Bar> {
        let pairs = self.contenders.iter().zip(&self.samples);
        pairs
            .filter(|(peer, _)| is_wanted(**peer))
            .map(|(peer, samples)| Bar::new(peer.name(), peer.colour(), &nanoseconds(samples)))
            .collect()
    }
}

fn nanoseconds(samples: &Samples) -> Samples {
    samples.map(|seconds| seconds * 1e9)
}

/// The section.
pub fn one_call(run: &Run) -> Result<Section> {
    let scale = run.scale();
    let mut client = run.connect()?;
    let measured = measure(run, &mut client)?;
    let [constant, sequence] = [Peer::Constant, Peer::Sequence].map(|peer| measured.of(peer));
    let mut table = Table::new(&[
        "",
        "ns a call, including the query",
        "ratio to a constant function",
        "ratio to `nextval()`",
    ]);
    for (peer, samples) in measured.contenders.iter().zip(&measured.samples) {
        table.row(&[
            peer.name().to_owned(),
            spread(&nanoseconds(samples), three),
            ratio_cell(samples, &constant),
            ratio_cell(samples, &sequence),
        ]);
    }
    let lease = leases(run, &mut client)?;
    Ok(Section {
        title: "One call",
        blocks: vec![
            Block::Text(format!(
                "`SELECT count(…) FROM generate_series(1, {})` in one session, {} rounds after a warm-up round (with a tenth of the \
                 calls for `uuid-ossp`). The constant function shows the cost of the query itself and of any function call.",
                scale.calls, scale.call_rounds
            )),
            Block::Table(table),
            Block::Figure(Figure {
                file: "one-call",
                about: "Nanoseconds a call, for each contender",
                chart: Chart::Bars(Bars {
                    title: "One call in SQL".to_owned(),
                    unit: "nanoseconds a call, including the query; the line is the range of the rounds",
                    one_scale: true,
                    groups: vec![(String::new(), measured.bars(Peer::is_drawn))],
                }),
            }),
            Block::Text(format!(
                "About once a second a call advances the mark in the write-ahead log and flushes it. With `snowflake.lease = \
                 '{}'`, the default, the statement takes {} of its time with `'{}'`, with which no call advances the mark.",
                LEASES[0],
                spread(&lease[0].ratio_to(&lease[1]), ratio),
                LEASES[1]
            )),
        ],
        verdicts: verdicts(&measured, &mut client)?,
        highlight: Some(highlight(&measured, scale.calls)),
        ..Section::default()
    })
}

/// The same statement with each contender.
fn measure(run: &Run, client: &mut Client) -> Result<Measured> {
    let scale = run.scale();
    let mut contenders = vec![Peer::Constant];
    contenders.extend(run.peers());
    let samples = in_turn(
        &[()],
        &contenders,
        1,
        |_| scale.call_rounds,
        |(), peer, turn| {
            run.progress().step(format_args!("{}, {turn}", peer.name()));
            run.settle(client)?;
            let calls = match peer {
                // It would take longer than all others together.
                Peer::OsspUuid => scale.calls / 10,
                _ => scale.calls,
            };
            count(client, peer.call(), calls)
        },
    )?
    .remove(0);
    Ok(Measured {
        contenders,
        samples,
    })
}

fn highlight(measured: &Measured, calls: u32) -> Highlight {
    let constant = nanoseconds(&measured.of(Peer::Constant)).median();
    let beyond = |peer| three(nanoseconds(&measured.of(peer)).median() - constant);
    Highlight {
        question: "What does an ID cost?",
        answer: format!(
            "An ID takes {} ns more than a call of a constant function. `nextval()` takes {} ns more. Both were measured in a query that \
             generates {} IDs. With the constant function the query takes {} ns a row, which each bar includes.",
            beyond(Peer::Snowflake),
            beyond(Peer::Sequence),
            per_second(calls.into()),
            three(constant)
        ),
        figure: Figure {
            file: "one-call",
            about: "Nanoseconds a call, for each contender",
            chart: Chart::Bars(Bars {
                title: "One call".to_owned(),
                unit: "nanoseconds, including the query; shorter is better",
                one_scale: true,
                groups: vec![(String::new(), measured.bars(Peer::is_usual))],
            }),
        },
    }
}

fn verdicts(measured: &Measured, client: &mut Client) -> Result<Vec<Verdict>> {
    let [constant, snowflake, sequence, random] = [
        Peer::Constant,
        Peer::Snowflake,
        Peer::Sequence,
        Peer::RandomUuid,
    ]
    .map(|peer| measured.of(peer));
    let ssl: Option<String> = client
        .query_one(
            "SELECT nullif(current_setting('ssl_library', true), '')",
            &[],
        )?
        .get(0);
    let openssl = if ssl.as_deref() == Some("OpenSSL") {
        ""
    } else {
        " (this server was built without OpenSSL)"
    };
    Ok(vec![
        Goal {
            what: "one call: time relative to `nextval()`".to_owned(),
            limit: Limit::AtMost(0.5),
            why: format!(
                "a constant function takes {} of `nextval()`'s time in this query",
                ratio(constant.ratio_to(&sequence).median())
            ),
        }
        .judge(&snowflake.ratio_to(&sequence)),
        Goal {
            what: format!("one call: time relative to `gen_random_uuid()`{openssl}"),
            limit: Limit::AtMost(0.12),
            why: format!(
                "a constant function takes {} of `gen_random_uuid()`'s time in this query",
                ratio(constant.ratio_to(&random).median())
            ),
        }
        .judge(&snowflake.ratio_to(&random)),
        Goal {
            what: "one call: time relative to a constant function".to_owned(),
            limit: Limit::AtMost(1.4),
            why: format!(
                "an ID takes {} ns more than any call here (for the clock, one load and one swap)",
                three(nanoseconds(&snowflake).median() - nanoseconds(&constant).median())
            ),
        }
        .judge(&snowflake.ratio_to(&constant)),
    ])
}

/// The same statement with each of [`LEASES`].
fn leases(run: &Run, client: &mut Client) -> Result<Vec<Samples>> {
    let scale = run.scale();
    let mut other = run.connect()?;
    let measured = in_turn(
        &[()],
        &LEASES,
        1,
        |_| scale.rounds,
        |(), lease, turn| {
            run.progress().step(format_args!("lease {lease}, {turn}"));
            set_lease(run, client, &mut other, lease)?;
            run.settle(client)?;
            count(client, Peer::Snowflake.call(), scale.calls)
        },
    )?
    .remove(0);
    set_lease(run, client, &mut other, LEASES[0])?;
    Ok(measured)
}

fn set_lease(run: &Run, client: &mut Client, other: &mut Client, lease: &str) -> Result<()> {
    other.batch_execute(&format!("ALTER SYSTEM SET snowflake.lease = '{lease}'"))?;
    run.cluster().reload()?;
    let shown: String = client.query_one("SHOW snowflake.lease", &[])?.get(0);
    ensure!(shown == lease, "the lease is {shown}, not {lease}");
    // The first ID with the new lease makes a new reservation.
    client.query_one("SELECT snowflake_nextval()", &[])?;
    Ok(())
}

//! One call in a statement that makes very many, and what moving the mark adds.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use postgres::Client;

use crate::measure::{Samples, in_turn};
use crate::peers::Peer;
use crate::plot::{Bar, Bars, Chart};
use crate::report::{
    Block, Figure, Goal, Highlight, Limit, Section, Table, per_second, ratio, ratio_cell, spread,
    three,
};
use crate::run::Run;

/// One that never runs out while it is measured, beside the default.
const LEASES: [&str; 2] = ["2s", "1h"];

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    let scale = run.scale();
    let turns = (scale.call_rounds + scale.rounds + 2) as f64;
    // About a microsecond each for those that take longest.
    Duration::from_secs_f64(turns * (f64::from(scale.calls) * 5e-6 + 0.2))
}

/// Runs `SELECT count(call)` over a series; the seconds that took for each call.
fn count(client: &mut Client, call: &str, calls: u32) -> Result<f64> {
    let query = format!("SELECT count({call}) FROM generate_series(1, {calls})");
    let begun = Instant::now();
    let counted: i64 = client.query_one(&query, &[])?.get(0);
    let took = begun.elapsed().as_secs_f64();
    ensure!(counted == i64::from(calls), "{query} counted {counted}");
    Ok(took / f64::from(calls))
}

/// The section.
pub fn one_call(run: &Run) -> Result<Section> {
    let scale = run.scale();
    let mut client = run.connect()?;
    let mut contenders = vec![Peer::Constant];
    contenders.extend(run.peers());
    let measured = in_turn(
        &[()],
        &contenders,
        1,
        |_| scale.call_rounds,
        |(), peer, turn| {
            run.progress().step(format_args!("{}, {turn}", peer.name()));
            run.settle(&mut client)?;
            let calls = match peer {
                // It would take longer than all others together.
                Peer::OsspUuid => scale.calls / 10,
                _ => scale.calls,
            };
            count(&mut client, peer.call(), calls)
        },
    )?
    .remove(0);
    let of = |wanted: Peer| {
        let found = contenders.iter().position(|&peer| peer == wanted);
        found.map(|place| &measured[place])
    };
    let empty = Samples::default();
    let [constant, snowflake, sequence, random] = [
        Peer::Constant,
        Peer::Snowflake,
        Peer::Sequence,
        Peer::RandomUuid,
    ]
    .map(|peer| of(peer).unwrap_or(&empty));

    let nanoseconds = |seconds: f64| seconds * 1e9;
    let mut table = Table::new(&[
        "",
        "ns a call, the query's part included",
        "to a constant function",
        "to `nextval()`",
    ]);
    let mut bars = Vec::new();
    for (&peer, samples) in contenders.iter().zip(&measured) {
        let time = samples.map(nanoseconds);
        table.row(&[
            peer.name().to_owned(),
            spread(&time, three),
            ratio_cell(samples, constant),
            ratio_cell(samples, sequence),
        ]);
        if peer.is_drawn() {
            bars.push(Bar::new(peer.name(), peer.colour(), &time));
        }
    }

    let usual = contenders
        .iter()
        .zip(&measured)
        .filter(|(peer, _)| peer.is_usual())
        .map(|(peer, samples)| Bar::new(peer.name(), peer.colour(), &samples.map(nanoseconds)))
        .collect();
    let beyond = |of: &Samples| three(nanoseconds(of.median() - constant.median()));
    let highlight = Highlight {
        question: "What does an ID cost?",
        answer: format!(
            "An ID takes {} ns more than a call of a constant function; `nextval()` takes {} ns more. Measured in a query that generates \
             {} IDs, which takes {} ns a row with the constant function. Each bar includes that.",
            beyond(snowflake),
            beyond(sequence),
            per_second(scale.calls.into()),
            three(nanoseconds(constant.median()))
        ),
        figure: Figure {
            file: "one-call",
            about: "Nanoseconds a call, for each contender",
            chart: Chart::Bars(Bars {
                title: "One call".to_owned(),
                unit: "nanoseconds, the query's part included; shorter is better",
                one_scale: true,
                groups: vec![(String::new(), usual)],
            }),
        },
    };

    let lease = leases(run, &mut client)?;
    let [moving, still] = [&lease[0], &lease[1]];
    let moving_costs = moving.ratio_to(still);

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
    Ok(Section {
        title: "One call",
        blocks: vec![
            Block::Text(format!(
                "`SELECT count(…) FROM generate_series(1, {})` in one session, {} rounds after one to warm up (a tenth of the \
                 calls for `uuid-ossp`). The constant function shows what the query itself and any call of a function cost.",
                scale.calls, scale.call_rounds
            )),
            Block::Table(table),
            Block::Figure(Figure {
                file: "one-call",
                about: "Nanoseconds a call, for each contender",
                chart: Chart::Bars(Bars {
                    title: "One call in SQL".to_owned(),
                    unit: "nanoseconds a call, with the query's part; the line is the range of the rounds",
                    one_scale: true,
                    groups: vec![(String::new(), bars)],
                }),
            }),
            Block::Text(format!(
                "About once a second a call moves the mark in the write-ahead log and flushes it. With `snowflake.lease = \
                 '{}'`, the default, the same statement takes {} of its time with `'{}'`, under which the mark is not \
                 moved meanwhile.",
                LEASES[0],
                spread(&moving_costs, ratio),
                LEASES[1]
            )),
        ],
        verdicts: vec![
            Goal {
                what: "one call, of `nextval()`'s time".to_owned(),
                limit: Limit::AtMost(0.5),
                why: format!(
                    "a constant function takes {} of `nextval()`'s time in this query",
                    ratio(constant.ratio_to(sequence).median())
                ),
            }
            .judge(&snowflake.ratio_to(sequence)),
            Goal {
                what: format!("one call, of `gen_random_uuid()`'s time{openssl}"),
                limit: Limit::AtMost(0.12),
                why: format!(
                    "a constant function takes {} of `gen_random_uuid()`'s time in this query",
                    ratio(constant.ratio_to(random).median())
                ),
            }
            .judge(&snowflake.ratio_to(random)),
            Goal {
                what: "one call, of a constant function's time".to_owned(),
                limit: Limit::AtMost(1.4),
                why: format!(
                    "what an ID takes beyond any call (the clock, one load, one swap) is {} ns here",
                    three(nanoseconds(snowflake.median() - constant.median()))
                ),
            }
            .judge(&snowflake.ratio_to(constant)),
        ],
        highlight: Some(highlight),
    })
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
    // The first ID with the new lease reserves anew.
    client.query_one("SELECT snowflake_nextval()", &[])?;
    Ok(())
}

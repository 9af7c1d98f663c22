//! How long single calls take, in particular the slowest.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::measure::{Samples, in_turn};
use crate::peers::Peer;
use crate::plot::{Bar, Bars, Chart};
use crate::report::{Block, Figure, Section, Table, spread, three};
use crate::run::Run;

/// About the time of a call with its round trip, in seconds.
const ROUND_TRIP: f64 = 40e-6;

fn contenders(run: &Run) -> Vec<Peer> {
    let mut contenders = vec![Peer::Constant];
    contenders.extend(run.peers());
    contenders
}

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    let scale = run.scale();
    let turns = (contenders(run).len() * scale.rounds) as f64;
    Duration::from_secs_f64(turns * scale.timed_calls as f64 * ROUND_TRIP)
}

/// The section.
pub fn section(run: &Run) -> Result<Section> {
    let scale = run.scale();
    let contenders = contenders(run);
    let mut client = run.connect()?;
    // By contender: the median, the 99th percentile and the longest, in microseconds.
    let others = RefCell::new(vec![[const { Vec::new() }; 3]; contenders.len()]);
    let slowest = in_turn(
        &[()],
        &contenders,
        0,
        |_| scale.rounds,
        |(), peer, turn| {
            run.progress().step(format_args!("{}, {turn}", peer.name()));
            run.settle(&mut client)?;
            let statement = client.prepare(&format!("SELECT {}", peer.call()))?;
            let mut calls = Vec::with_capacity(scale.timed_calls);
            for _ in 0..scale.timed_calls {
                let begun = Instant::now();
                client.query_one(&statement, &[])?;
                calls.push(begun.elapsed().as_secs_f64() * 1e6);
            }
            calls.sort_by(f64::total_cmp);
            let at = |share: f64| calls[((calls.len() - 1) as f64 * share) as usize];
            let column = contenders.iter().position(|&other| other == peer);
            let mut others = others.borrow_mut();
            let of_peer = &mut others[column.unwrap_or_default()];
            for (kept, share) in of_peer.iter_mut().zip([0.5, 0.99, 1.0]) {
                kept.push(at(share));
            }
            Ok(at(0.999))
        },
    )?
    .remove(0);

    let mut table = Table::new(&["", "median, µs", "99 %", "99.9 %", "maximum"]);
    let mut bars = Vec::new();
    for ((peer, slowest), others) in contenders.iter().zip(&slowest).zip(others.borrow().iter()) {
        let [median, most, longest] = others
            .each_ref()
            .map(|values| values.iter().copied().collect::<Samples>());
        table.row(&[
            peer.name().to_owned(),
            spread(&median, three),
            spread(&most, three),
            spread(slowest, three),
            spread(&longest, three),
        ]);
        bars.push(Bar::new(peer.name(), peer.colour(), slowest));
    }
    Ok(Section {
        title: "The slowest calls",
        blocks: vec![
            Block::Text(format!(
                "The client times each of {} calls of a prepared statement in one session, including the round trip. The columns are \
                 the median, the 99th and 99.9th percentile and the maximum of a round's calls. Every 32nd `nextval()` waits for its \
                 transaction's flush, which is 3 % of the calls. A call of `snowflake_nextval()` waits about once a second.",
                three(scale.timed_calls as f64)
            )),
            Block::Table(table),
            Block::Figure(Figure {
                file: "slowest-calls",
                about: "The 99.9th percentile of a single call's time, for each contender",
                chart: Chart::Bars(Bars {
                    title: "99.9 % of single calls take at most".to_owned(),
                    unit: "microseconds, including the round trip; the line is the range of the rounds",
                    one_scale: true,
                    groups: vec![(String::new(), bars)],
                }),
            }),
        ],
        ..Section::default()
    })
}

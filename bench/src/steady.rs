//! One session that asks without a pause, second by second: whether what slots
//! make in the long run is what holds it up.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use postgres::Client;

use crate::copy;
use crate::measure::Samples;
use crate::peers::{Key, Peer, TABLE};
use crate::plot::{Chart, Line, Lines};
use crate::report::{Block, Figure, Section, Table, per_second, three};
use crate::run::Run;

/// Calls of one statement.
const CALLS: u32 = 10_000;

/// After so many COPYs the table is emptied.
const COPIES: usize = 5;

/// The end of the run that is looked at by itself, seconds.
const END: usize = 10;

/// Of the time, from which on waiting is what limits a session.
const BINDS: f64 = 0.01;

const CONTENDERS: [Peer; 2] = [Peer::Snowflake, Peer::Sequence];

/// What one session asks for without a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Calls,
    Copy,
}

/// What a session was like in one second.
#[derive(Debug, Clone, Copy, Default)]
struct Second {
    ids: f64,
    seconds: f64,
    /// How far the slots are ahead of the clock at its end.
    ahead: f64,
    waited: f64,
    longest: f64,
}

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    let scale = run.scale();
    Duration::from_secs(2 * (scale.steady_seconds + scale.steady_peer_seconds) + 4)
}

/// The section.
pub fn section(run: &Run) -> Result<Section> {
    let scale = run.scale();
    let mut blocks = vec![Block::Text(format!(
        "One session for {} s ({} s with `bigserial`, whose rate does not depend on time): statements of {} calls, then \
         COPY of {} narrow rows into a table without an index, emptied after every {COPIES}. One slot has 4,096 IDs a \
         millisecond, {} a second; a session that generates more continues in the slots above. The counters of the slots \
         (`snowflake_stat_slots`) are read once a second.",
        scale.steady_seconds,
        scale.steady_peer_seconds,
        three(CALLS.into()),
        per_second(scale.rows.into()),
        per_second(4_096_000.0),
    ))];
    for (work, title, file, about) in [
        (
            Work::Calls,
            "Calls",
            "steady-calls",
            "Calls a second of one session without a pause, second by second",
        ),
        (
            Work::Copy,
            "COPY",
            "steady-copy",
            "Rows a second of one session that copies without a pause, second by second",
        ),
    ] {
        let mut table = Table::new(&[
            "",
            "a second: all",
            "the first second",
            &format!("the last {END} s"),
            "ahead at the end, ms",
            &format!("time spent waiting, the last {END} s"),
            "the longest statement, ms",
        ]);
        let mut lines = Vec::new();
        let mut text = String::new();
        for peer in CONTENDERS {
            let length = match peer {
                Peer::Snowflake => scale.steady_seconds,
                _ => scale.steady_peer_seconds,
            };
            let seconds = measure(run, peer, work, length)?;
            let end = &seconds[seconds.len().saturating_sub(END)..];
            let waiting = share_waited(end);
            let is_ours = peer == Peer::Snowflake;
            let of_ours = |text: String| if is_ours { text } else { "–".to_owned() };
            let longest = seconds
                .iter()
                .map(|second| second.longest)
                .fold(0.0, f64::max);
            table.row(&[
                peer.name().to_owned(),
                per_second(rate(&seconds)),
                per_second(rate(&seconds[..1])),
                per_second(rate(end)),
                of_ours(three(end.last().map_or(0.0, |second| second.ahead))),
                of_ours(format!("{:.1} %", waiting * 100.0)),
                three(longest * 1e3),
            ]);
            if is_ours {
                text = verdict(work, waiting, end);
            }
            let points = seconds.iter().enumerate().map(|(number, second)| {
                let rate: Samples = [second.ids / second.seconds].into_iter().collect();
                ((number + 1) as f64, rate)
            });
            lines.push(Line {
                name: peer.name().to_owned(),
                colour: peer.colour(),
                points: points.collect(),
            });
        }
        blocks.push(Block::Text(format!("**{title}**")));
        blocks.push(Block::Table(table));
        blocks.push(Block::Text(text));
        blocks.push(Block::Figure(Figure {
            file,
            about,
            chart: Chart::Lines(Lines {
                title: about.to_owned(),
                x: "seconds",
                y: match work {
                    Work::Calls => "calls a second",
                    Work::Copy => "rows a second",
                },
                doubling: false,
                lines,
            }),
        }));
    }
    Ok(Section {
        title: "Without a pause",
        blocks,
        ..Section::default()
    })
}

fn rate(seconds: &[Second]) -> f64 {
    let ids: f64 = seconds.iter().map(|second| second.ids).sum();
    ids / seconds.iter().map(|second| second.seconds).sum::<f64>()
}

fn share_waited(seconds: &[Second]) -> f64 {
    let waited: f64 = seconds.iter().map(|second| second.waited).sum();
    waited / seconds.iter().map(|second| second.seconds).sum::<f64>()
}

/// Whether the slots' rate is the limit.
fn verdict(work: Work, waiting: f64, end: &[Second]) -> String {
    let what = match work {
        Work::Calls => "A session that does nothing but make IDs",
        Work::Copy => "A session that copies narrow rows without a pause",
    };
    let ids: f64 = end.iter().map(|second| second.ids).sum();
    let waited: f64 = end.iter().map(|second| second.waited).sum();
    if waiting > BINDS {
        format!(
            "The slots' rate binds: {what} spends {:.1} % of its time waiting for time to catch up at the end, {} ns for \
             each ID on average.",
            waiting * 100.0,
            three(waited * 1e9 / ids)
        )
        .replacen("binds: A", "binds: a", 1)
    } else {
        format!(
            "The slots' rate does not bind. {what} spends {:.1} % of its time waiting at the end.",
            waiting * 100.0
        )
    }
}

/// One session's seconds.
fn measure(run: &Run, peer: Peer, work: Work, length: u64) -> Result<Vec<Second>> {
    let rows = run.scale().rows;
    let file = copy::file_of_rows(run, rows)?;
    let mut other = run.connect()?;
    peer.new_table(&mut other, Key::None)?;
    run.settle(&mut other)?;
    let mut client = run.connect()?;
    let statement = client.prepare(&match work {
        Work::Calls => format!(
            "SELECT count({}) FROM generate_series(1, {CALLS})",
            peer.call()
        ),
        Work::Copy => copy::statement(&file),
    })?;
    let begun = Instant::now();
    let mut seconds: Vec<Second> = Vec::new();
    let mut waited_before = slots(&mut client)?.1;
    let mut statements = 0;
    while begun.elapsed() < Duration::from_secs(length) {
        run.progress().step(format_args!(
            "{}, {work:?}, second {} of {length}",
            peer.name(),
            begun.elapsed().as_secs() + 1
        ));
        let mut second = Second::default();
        let since = Instant::now();
        // At least one statement, whole ones, and about a second of them.
        while second.seconds < 1.0 {
            let at = Instant::now();
            second.ids += match work {
                Work::Calls => client.query_one(&statement, &[])?.get::<_, i64>(0) as f64,
                Work::Copy => {
                    let copied = client.execute(&statement, &[])?;
                    ensure!(copied == u64::from(rows), "{copied} rows were copied");
                    copied as f64
                }
            };
            second.longest = second.longest.max(at.elapsed().as_secs_f64());
            statements += 1;
            if work == Work::Copy && statements % COPIES == 0 {
                client.batch_execute(&format!("TRUNCATE {TABLE}"))?;
            }
            second.seconds = since.elapsed().as_secs_f64();
        }
        let (ahead, waited) = slots(&mut client)?;
        second.ahead = ahead;
        second.waited = waited - waited_before;
        waited_before = waited;
        seconds.push(second);
    }
    ensure!(!seconds.is_empty(), "nothing was measured");
    Ok(seconds)
}

/// How far the slots are ahead of the clock, in milliseconds (ticks of the
/// default layout), and the seconds that calls have waited so far. This session
/// is the only one that makes IDs, in whichever slot.
fn slots(client: &mut Client) -> Result<(f64, f64)> {
    let row = client.query_one(
        "SELECT max(borrowed_ticks)::float8, sum(wait_time) FROM snowflake_stat_slots",
        &[],
    )?;
    Ok((row.get(0), row.get::<_, f64>(1) / 1e3))
}

//! One session that generates IDs without a pause, second by second: whether the
//! rate of the slots limits it.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use postgres::Client;

use crate::measure::Samples;
use crate::peers::{Key, Peer, TABLE};
use crate::plot::{Chart, Line, Lines};
use crate::report::{Block, Figure, Section, Table, per_second, three};
use crate::run::Run;
use crate::sections::copy;

/// Calls of one statement.
const CALLS: u32 = 10_000;

/// The table is emptied after that many COPYs.
const COPIES: usize = 5;

/// The seconds at the end that are shown separately.
const END: usize = 10;

/// The share of time from which waiting is considered to limit a session.
const BINDS: f64 = 0.01;

const CONTENDERS: [Peer; 2] = [Peer::Snowflake, Peer::Sequence];

/// What a session does without a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Calls,
    Copy,
}

/// What was measured of a session in one second.
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
        "One session runs for {} s (for {} s with `bigserial`, whose rate does not depend on time). It runs statements of {} calls, \
         then COPY of {} narrow rows into a table without an index, which is emptied after every {COPIES}. One slot has 4,096 IDs a \
         millisecond, {} a second. A session that generates more continues in the slots above. The counters of the slots \
         (`snowflake_stat_slots`) are read once a second.",
        scale.steady_seconds,
        scale.steady_peer_seconds,
        three(CALLS.into()),
        per_second(scale.rows.into()),
        per_second(4_096_000.0),
    ))];
    for work in [Work::Calls, Work::Copy] {
        blocks.extend(blocks_of(run, work)?);
    }
    Ok(Section {
        title: "Without a pause",
        blocks,
        ..Section::default()
    })
}

/// The table, the verdict and the plot of one kind of work.
fn blocks_of(run: &Run, work: Work) -> Result<[Block; 4]> {
    let scale = run.scale();
    let (title, y, file, about) = match work {
        Work::Calls => (
            "Calls",
            "calls a second",
            "steady-calls",
            "Calls a second of one session without a pause, second by second",
        ),
        Work::Copy => (
            "COPY",
            "rows a second",
            "steady-copy",
            "Rows a second of one session that copies without a pause, second by second",
        ),
    };
    let mut table = Table::new(&[
        "",
        "a second: overall",
        "first second",
        &format!("last {END} s"),
        "ahead at the end, ms",
        &format!("time spent waiting, last {END} s"),
        "longest statement, ms",
    ]);
    let mut lines = Vec::new();
    let mut text = String::new();
    for peer in CONTENDERS {
        let is_ours = peer == Peer::Snowflake;
        let length = if is_ours {
            scale.steady_seconds
        } else {
            scale.steady_peer_seconds
        };
        let seconds = measure(run, peer, work, length)?;
        table.row(&row(peer, &seconds));
        if is_ours {
            text = verdict(work, last(&seconds));
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
    Ok([
        Block::Text(format!("**{title}**")),
        Block::Table(table),
        Block::Text(text),
        Block::Figure(Figure {
            file,
            about,
            chart: Chart::Lines(Lines {
                title: about.to_owned(),
                x: "seconds",
                y,
                doubling: false,
                lines,
            }),
        }),
    ])
}

/// The last seconds of a session.
fn last(seconds: &[Second]) -> &[Second] {
    &seconds[seconds.len().saturating_sub(END)..]
}

fn row(peer: Peer, seconds: &[Second]) -> [String; 7] {
    let end = last(seconds);
    let of_ours = |text: String| match peer {
        Peer::Snowflake => text,
        _ => "–".to_owned(),
    };
    let longest = seconds.iter().map(|second| second.longest);
    [
        peer.name().to_owned(),
        per_second(rate(seconds)),
        per_second(rate(&seconds[..1])),
        per_second(rate(end)),
        of_ours(three(end.last().map_or(0.0, |second| second.ahead))),
        of_ours(format!("{:.1} %", share_waited(end) * 100.0)),
        three(longest.fold(0.0, f64::max) * 1e3),
    ]
}

fn rate(seconds: &[Second]) -> f64 {
    let ids: f64 = seconds.iter().map(|second| second.ids).sum();
    ids / seconds.iter().map(|second| second.seconds).sum::<f64>()
}

fn share_waited(seconds: &[Second]) -> f64 {
    let waited: f64 = seconds.iter().map(|second| second.waited).sum();
    waited / seconds.iter().map(|second| second.seconds).sum::<f64>()
}

/// Whether the rate of the slots is the limit at the end.
fn verdict(work: Work, end: &[Second]) -> String {
    let session = match work {
        Work::Calls => "session that only generates IDs",
        Work::Copy => "session that copies narrow rows without a pause",
    };
    let share = share_waited(end);
    let percent = share * 100.0;
    if share > BINDS {
        let ids: f64 = end.iter().map(|second| second.ids).sum();
        let waited: f64 = end.iter().map(|second| second.waited).sum();
        format!(
            "The rate of the slots is the limit: at the end a {session} spends {percent:.1} % of its time waiting for the clock to \
             catch up, {} ns for each ID on average.",
            three(waited * 1e9 / ids)
        )
    } else {
        format!(
            "The rate of the slots is not the limit. At the end a {session} spends {percent:.1} % of its time waiting."
        )
    }
}

/// The seconds of one session.
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
        // Whole statements, for about a second, and at least one.
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

/// How far the slots are ahead of the clock, in milliseconds (ticks of the default
/// layout), and the seconds that calls have waited so far. No other session
/// generates IDs.
fn slots(client: &mut Client) -> Result<(f64, f64)> {
    let row = client.query_one(
        "SELECT max(borrowed_ticks)::float8, sum(wait_time) FROM snowflake_stat_slots",
        &[],
    )?;
    Ok((row.get(0), row.get::<_, f64>(1) / 1e3))
}

//! COPY, with and without an index.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use postgres::Client;

use crate::measure::{Samples, in_turn};
use crate::peers::{Key, Peer, TABLE};
use crate::plot::{Bar, Bars, Chart};
use crate::report::{
    Block, Figure, Goal, Highlight, Limit, Section, Table, Verdict, per_second, ratio, ratio_cell,
    spread, three,
};
use crate::run::Run;
use crate::sections::wal::Way;

const KEYS: [Key; 2] = [Key::None, Key::Primary];

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    let turns: usize = run
        .peers()
        .iter()
        .map(|&peer| run.rounds_or(peer, run.scale().copy_rounds) + 1)
        .sum();
    Duration::from_secs_f64((2 * turns) as f64 * (0.3 + f64::from(run.scale().rows) * 1.6e-6))
}

/// A file of rows with one integer each, which the server can read.
pub fn file_of_rows(run: &Run, rows: u32) -> Result<PathBuf> {
    let directory = run
        .cluster()
        .data()
        .parent()
        .context("the data directory's")?;
    let file = directory.join(format!("{rows}.rows"));
    if !file.exists() {
        let mut text = String::new();
        for row in 1..=rows {
            writeln!(text, "{row}")?;
        }
        fs::write(&file, text).context("writing the rows to copy")?;
    }
    Ok(file)
}

/// The statement that copies them.
pub fn statement(file: &std::path::Path) -> String {
    format!("COPY {TABLE} (v) FROM '{}'", file.display())
}

/// The seconds of a COPY, which must have copied all rows.
pub fn timed(client: &mut Client, copy: &str, rows: u32) -> Result<f64> {
    let begun = Instant::now();
    let copied = client.execute(copy, &[])?;
    let took = begun.elapsed().as_secs_f64();
    ensure!(copied == u64::from(rows), "{copied} rows were copied");
    Ok(took)
}

/// Seconds of the COPY, by key and contender.
fn measure(run: &Run) -> Result<Vec<Vec<Samples>>> {
    let scale = run.scale();
    let copy = statement(&file_of_rows(run, scale.rows)?);
    let mut client = run.connect()?;
    in_turn(
        &KEYS,
        run.peers(),
        1,
        |peer| run.rounds_or(peer, run.scale().copy_rounds),
        |key, peer, turn| {
            run.progress()
                .step(format_args!("{}, {}, {turn}", key.describe(), peer.name()));
            peer.new_table(&mut client, key)?;
            run.settle(&mut client)?;
            let mut session = run.connect()?;
            let (took, wal) = run
                .wal
                .during(&mut client, || timed(&mut session, &copy, scale.rows))?;
            if turn.counts() {
                let bytes = wal as f64 / f64::from(scale.rows);
                run.wal.record(Way::Copy(key == Key::Primary), peer, bytes);
            }
            Ok(took)
        },
    )
}

fn milliseconds(samples: &Samples) -> Samples {
    samples.map(|seconds| seconds * 1e3)
}

/// Bars of the contenders that fulfil a condition.
fn bars(contenders: &[Peer], times: &[Samples], is_wanted: fn(Peer) -> bool) -> Vec<Bar> {
    let pairs = contenders.iter().zip(times);
    pairs
        .filter(|(peer, _)| is_wanted(**peer))
        .map(|(peer, samples)| Bar::new(peer.name(), peer.colour(), &milliseconds(samples)))
        .collect()
}

/// The section.
pub fn section(run: &Run) -> Result<Section> {
    let contenders = run.peers();
    let times = measure(run)?;
    let mut table = Table::new(&[
        "",
        "no index: ms",
        "ratio to `bigserial`",
        "primary key: ms",
        "ratio to `bigserial`",
        "rounds",
    ]);
    for (column, peer) in contenders.iter().enumerate() {
        let [without, with] = [&times[0][column], &times[1][column]];
        table.row(&[
            peer.name().to_owned(),
            spread(&milliseconds(without), three),
            ratio_cell(without, &times[0][1]),
            spread(&milliseconds(with), three),
            ratio_cell(with, &times[1][1]),
            with.len().to_string(),
        ]);
    }
    let groups = KEYS.iter().zip(&times).map(|(key, row)| {
        let bars = bars(contenders, row, Peer::is_drawn);
        (key.describe().to_owned(), bars)
    });
    let rows = per_second(run.scale().rows.into());
    Ok(Section {
        title: "COPY",
        blocks: vec![
            Block::Text(format!(
                "One session runs `COPY {TABLE} (v) FROM` a file of {rows} rows of one integer, into a new table of two columns. \
                 COPY inserts in batches with `nextval()` and `snowflake_nextval()`, and row by row with other volatile defaults."
            )),
            Block::Table(table),
            Block::Figure(Figure {
                file: "copy",
                about: "Milliseconds of a COPY with and without a primary key, for each contender",
                chart: Chart::Bars(Bars {
                    title: format!("COPY of {rows} narrow rows"),
                    unit: "milliseconds; the line is the range of the rounds",
                    one_scale: true,
                    groups: groups.collect(),
                }),
            }),
        ],
        verdicts: verdicts(&times),
        highlight: Some(highlight(&rows, contenders, &times)),
        ..Section::default()
    })
}

fn highlight(rows: &str, contenders: &[Peer], times: &[Vec<Samples>]) -> Highlight {
    Highlight {
        question: "How long does it take to load rows?",
        answer: format!(
            "COPY of {rows} narrow rows takes {} of `bigserial`'s time into a table with a primary key, and {} without the key. COPY \
             inserts in batches with these two defaults, and row by row with other volatile defaults such as `uuidv7()`.",
            ratio(times[1][0].ratio_to(&times[1][1]).median()),
            ratio(times[0][0].ratio_to(&times[0][1]).median())
        ),
        figure: Figure {
            file: "copy",
            about: "Milliseconds of a COPY with a primary key, for each contender",
            chart: Chart::Bars(Bars {
                title: format!("COPY of {rows} rows with a primary key"),
                unit: "milliseconds; shorter is better",
                one_scale: true,
                groups: vec![(String::new(), bars(contenders, &times[1], Peer::is_usual))],
            }),
        },
    }
}

fn verdicts(times: &[Vec<Samples>]) -> Vec<Verdict> {
    // The numbers of a cached sequence are almost free, so the rest of its time is
    // the same for all.
    let with_cache = |row: &[Samples]| ratio(row[2].ratio_to(&row[1]).median());
    let goals = KEYS.iter().zip(times).zip([0.60, 0.85]);
    goals
        .map(|((key, row), limit)| {
            Goal {
                what: format!("COPY {}: time relative to `bigserial`", key.describe()),
                limit: Limit::AtMost(limit),
                why: format!(
                    "a sequence with `CACHE 1000`, whose numbers cost almost nothing, takes {} of that time",
                    with_cache(row)
                ),
            }
            .judge(&row[0].ratio_to(&row[1]))
        })
        .collect()
}

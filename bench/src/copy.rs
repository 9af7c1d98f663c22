//! COPY, with and without an index.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use postgres::Client;

use crate::measure::{Samples, in_turn};
use crate::peers::{Key, TABLE};
use crate::plot::{Bar, Bars, Chart};
use crate::report::{
    Block, Figure, Goal, Highlight, Limit, Section, Table, per_second, ratio, ratio_cell, spread,
    three,
};
use crate::run::Run;
use crate::wal::Way;

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

/// A file of narrow rows, one integer each, which the server can read.
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

/// The seconds that a COPY took, which must have taken all rows.
pub fn timed(client: &mut Client, copy: &str, rows: u32) -> Result<f64> {
    let begun = Instant::now();
    let copied = client.execute(copy, &[])?;
    let took = begun.elapsed().as_secs_f64();
    ensure!(copied == u64::from(rows), "{copied} rows were copied");
    Ok(took)
}

/// The section.
pub fn section(run: &Run) -> Result<Section> {
    let scale = run.scale();
    let contenders = run.peers();
    let copy = statement(&file_of_rows(run, scale.rows)?);
    let mut client = run.connect()?;
    let times = in_turn(
        &KEYS,
        contenders,
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
    )?;

    let mut table = Table::new(&[
        "",
        "no index: ms",
        "to `bigserial`",
        "primary key: ms",
        "to `bigserial`",
        "rounds",
    ]);
    let milliseconds = |samples: &Samples| samples.map(|seconds| seconds * 1e3);
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
        let bars = contenders
            .iter()
            .zip(row)
            .filter(|(peer, _)| peer.is_drawn());
        let bars = bars
            .map(|(peer, samples)| Bar::new(peer.name(), peer.colour(), &milliseconds(samples)));
        (key.describe().to_owned(), bars.collect())
    });
    let rows = per_second(scale.rows.into());
    let chart = Chart::Bars(Bars {
        title: format!("COPY of {rows} narrow rows"),
        unit: "milliseconds; the line is the range of the rounds",
        one_scale: true,
        groups: groups.collect(),
    });

    let usual = contenders
        .iter()
        .zip(&times[1])
        .filter(|(peer, _)| peer.is_usual())
        .map(|(peer, samples)| Bar::new(peer.name(), peer.colour(), &milliseconds(samples)))
        .collect();
    let highlight = Highlight {
        question: "How long does it take to load rows?",
        answer: format!(
            "COPY of {rows} narrow rows takes {} of `bigserial`'s time into a table with a primary key, and {} without the key. COPY \
             inserts in batches with these two defaults, and row by row with other volatile ones such as `uuidv7()`.",
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
                groups: vec![(String::new(), usual)],
            }),
        },
    };

    // What is the same for both, an ID in a batch being nearly free.
    let saved = |row: &[Samples]| ratio(row[2].ratio_to(&row[1]).median());
    Ok(Section {
        title: "COPY",
        blocks: vec![
            Block::Text(format!(
                "`COPY {TABLE} (v) FROM` a file of {rows} rows of one integer into a new table of two columns, in one session. \
                 COPY inserts in batches with `nextval()` and `snowflake_nextval()`, and row by row with other volatile defaults."
            )),
            Block::Table(table),
            Block::Figure(Figure {
                file: "copy",
                about: "Milliseconds of a COPY with and without a primary key, for each contender",
                chart,
            }),
        ],
        verdicts: KEYS
            .iter()
            .zip(&times)
            .zip([0.60, 0.85])
            .map(|((key, row), limit)| {
                Goal {
                    what: format!("COPY {}, of `bigserial`'s time", key.describe()),
                    limit: Limit::AtMost(limit),
                    why: format!(
                        "a sequence with `CACHE 1000`, whose numbers cost next to nothing, takes {} of that time",
                        saved(row)
                    ),
                }
                .judge(&row[0].ratio_to(&row[1]))
            })
            .collect(),
        highlight: Some(highlight),
    })
}

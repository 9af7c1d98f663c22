//! The algorithm crate compared with other crates, as criterion measured them in
//! this run. The header of `bench/benches/one_id` describes the comparison.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::measure::Samples;
use crate::peers::Peer;
use crate::plot::{Bar, Bars, Chart};
use crate::report::{Block, Figure, Goal, Limit, Section, Table, ratio_cell, spread, three};

/// Our function in each group.
const OURS: &str = "snowflake-id";

/// A function that takes this many times the time of the fastest in its group is
/// not drawn, because the others' bars would be too short to compare.
const TOO_LONG: f64 = 10.0;

/// Colour of the other crates.
const OTHERS: Peer = Peer::PlPgSql;

/// The groups and their meanings, in the order of the document.
const GROUPS: &[(&str, &str)] = &[
    ("given_time", "the time is given: the generator alone"),
    ("clock_1us", "the system's clock, ticks of 1 µs"),
    (
        "clock_1us_2_threads",
        "the same, 2 threads that share a generator",
    ),
    (
        "clock_1us_4_threads",
        "the same, 4 threads that share a generator",
    ),
    (
        "coarse_clock_1ms",
        "the cheapest clock of a peer, ticks of 1 ms",
    ),
    (
        "own_clock_1ms",
        "each crate's own reading of the clock, ticks of 1 ms",
    ),
    (
        "own_clock_1ms_2_threads",
        "the same, 2 threads that share a generator",
    ),
    ("own_slots", "threads with a slot each, as sessions have"),
    ("clock_alone", "the clock alone, for comparison"),
];

/// The prefix of a round's baseline, which its number follows:
/// `cargo bench -- --save-baseline round-1`.
const ROUND: &str = "round-";

/// The nanoseconds an ID of each function in each group: criterion's median in
/// each round.
type Groups = BTreeMap<String, BTreeMap<String, Samples>>;

/// The section, from criterion's directory (`target/criterion`).
pub fn section(directory: &Path) -> Result<Section> {
    let groups = read(directory)?;
    let place = |name: &str| {
        let known = GROUPS.iter().position(|(known, _)| *known == name);
        known.unwrap_or(GROUPS.len())
    };
    let mut names: Vec<&String> = groups.keys().collect();
    names.sort_by_key(|name| place(name));

    let mut blocks = vec![Block::Text(
        "Nanoseconds an ID in the crate `snowflake-id`, without Postgres, compared with crates that also keep IDs unique across \
         threads. The figures are criterion's medians, in rounds in which every function took its turn. With several threads, the \
         elapsed time is divided by the IDs of all threads. [bench/benches/one_id](../../bench/benches/one_id) describes the \
         comparison, the clocks, and the crates that were left out."
            .to_owned(),
    )];
    let mut charts = Vec::new();
    let mut ratios = Vec::new();
    for name in names {
        let functions = &groups[name];
        let about = GROUPS
            .iter()
            .find(|(known, _)| known == name)
            .map_or(name.as_str(), |known| known.1);
        let ours = functions.get(OURS);
        let mut sorted: Vec<(&String, &Samples)> = functions.iter().collect();
        sorted.sort_by(|a, b| a.1.median().total_cmp(&b.1.median()));
        let mut table = Table::new(&["", "ns an ID", "ratio to ours"]);
        let mut bars = Vec::new();
        for &(function, samples) in &sorted {
            let to_ours = ours.map_or_else(String::new, |ours| ratio_cell(samples, ours));
            table.row(&[format!("`{function}`"), spread(samples, three), to_ours]);
            let colour = if function.starts_with(OURS) {
                Peer::Snowflake
            } else {
                OTHERS
            };
            if samples.median() <= sorted[0].1.median() * TOO_LONG {
                bars.push(Bar::new(function, colour.colour(), samples));
            }
        }
        blocks.push(Block::Text(format!("**{about}** (`{name}`)")));
        blocks.push(Block::Table(table));
        let fastest = sorted
            .iter()
            .find(|(function, _)| !function.starts_with(OURS));
        if let (Some(ours), Some((peer, theirs))) = (ours, fastest) {
            let quotients = ours.ratio_to(theirs);
            ratios.push((format!("`{name}`, beside `{peer}`"), quotients));
            charts.push((about.to_owned(), bars));
        }
    }
    blocks.push(Block::Figure(Figure {
        file: "algorithm",
        about: "Nanoseconds an ID in the algorithm crate, beside other crates",
        chart: Chart::Bars(Bars {
            title: "One ID in the algorithm crate".to_owned(),
            unit: "nanoseconds an ID, a scale for each group; the line is the range of all rounds",
            one_scale: false,
            groups: charts,
        }),
    }));

    let above = ratios
        .iter()
        .filter(|(_, ratio)| ratio.median() > 1.0)
        .count();
    let worst = ratios
        .iter()
        .max_by(|a, b| a.1.median().total_cmp(&b.1.median()));
    let (what, worst) = worst.context("criterion measured no group with ours and another crate")?;
    let verdict = Goal {
        what: format!(
            "the algorithm crate: time of an ID relative to the fastest peer; the highest of {} groups ({what})",
            ratios.len()
        ),
        limit: Limit::AtMost(1.0),
        why: format!(
            "{above} of {} groups are above it. Unlike the peers, ours checks the reservation, the limit of borrowing and backward \
             clock steps, and its layout is a setting that the compiler does not know",
            ratios.len()
        ),
    }
    .judge(worst);
    Ok(Section {
        title: "The algorithm crate",
        blocks,
        verdicts: vec![verdict],
        ..Section::default()
    })
}

/// Every `estimates.json` of a round below the directory, as the
/// `benchmark.json` beside it calls it.
fn read(directory: &Path) -> Result<Groups> {
    let mut groups = Groups::new();
    for group in subdirectories(directory)? {
        for function in subdirectories(&group)? {
            // The tenth round is sorted before the second. That does not change a
            // median, and it is the same for all functions.
            for round in subdirectories(&function)? {
                let is_round = round
                    .file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with(ROUND));
                if !is_round {
                    continue;
                }
                let parse = |name: &str| -> Result<Value> {
                    let file = round.join(name);
                    let text = fs::read_to_string(&file)
                        .with_context(|| format!("reading {}", file.display()))?;
                    Ok(serde_json::from_str(&text)?)
                };
                let benchmark = parse("benchmark.json")?;
                let text = |field: &str| benchmark[field].as_str().unwrap_or_default().to_owned();
                let name = match benchmark["value_str"].as_str() {
                    Some(value) => format!("{}/{value}", text("function_id")),
                    None => text("function_id"),
                };
                let median = parse("estimates.json")?["median"]["point_estimate"]
                    .as_f64()
                    .with_context(|| format!("no median in {}", round.display()))?;
                groups
                    .entry(text("group_id"))
                    .or_default()
                    .entry(name)
                    .or_default()
                    .push(median);
            }
        }
    }
    ensure!(
        !groups.is_empty(),
        "no measurements of criterion in {}",
        directory.display()
    );
    Ok(groups)
}

fn subdirectories(directory: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

//! The algorithm crate compared with other crates, as criterion measured them in
//! this run. The header of `bench/benches/one_id` describes the comparison.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::contenders::{PLPGSQL, SNOWFLAKE};
use crate::format::{ratio_cell, spread, three};
use crate::measure::Samples;
use crate::plot::{Bar, Bars, Chart};
use crate::report::{Block, Figure, Table};

/// Our function in each group.
const OURS: &str = "snowflake-id";

/// A function that takes this many times the time of the fastest in its group is
/// not drawn, because the others' bars would be too short to compare.
const TOO_LONG: f64 = 10.0;

/// The groups, in the order of the document.
const GROUPS: &[&str] = &[
    "given_time",
    "clock_1us",
    "clock_1us_2_threads",
    "clock_1us_4_threads",
    "coarse_clock_1ms",
    "own_clock_1ms",
    "own_clock_1ms_2_threads",
    "own_slots",
    "clock_alone",
];

/// The prefix of a round's baseline, which its number follows:
/// `cargo bench -- --save-baseline round-1`.
const ROUND: &str = "round-";

/// The nanoseconds an ID of each function in each group: criterion's median in
/// each round.
type Groups = BTreeMap<String, BTreeMap<String, Samples>>;

/// The tables and the plot, from criterion's directory (`target/criterion`).
pub fn blocks(directory: &Path) -> Result<Vec<Block>> {
    let groups = read(directory)?;
    let mut blocks = vec![Block::Text(
        "Nanoseconds an ID in the crate `snowflake-id`, without PostgreSQL, beside crates that also keep IDs unique across threads. \
         [bench/benches/one_id](../../bench/benches/one_id) describes the groups."
            .to_owned(),
    )];
    let mut charts = Vec::new();
    for name in GROUPS {
        let Some(functions) = groups.get(*name) else {
            continue;
        };
        let ours = functions.get(OURS);
        let mut sorted: Vec<(&String, &Samples)> = functions.iter().collect();
        sorted.sort_by(|a, b| a.1.median().total_cmp(&b.1.median()));
        let mut table = Table::new(&["", "ns an ID", "ratio to ours"]);
        let mut bars = Vec::new();
        for &(function, samples) in &sorted {
            let to_ours = ours.map_or_else(String::new, |ours| ratio_cell(samples, ours));
            table.row(&[format!("`{function}`"), spread(samples, three), to_ours]);
            let colour = if function.starts_with(OURS) {
                SNOWFLAKE.colour
            } else {
                PLPGSQL.colour
            };
            if samples.median() <= sorted[0].1.median() * TOO_LONG {
                bars.push(Bar::new(function, colour, samples));
            }
        }
        blocks.push(Block::Text(format!("**`{name}`**")));
        blocks.push(Block::Table(table));
        if ours.is_some() {
            charts.push(((*name).to_owned(), bars));
        }
    }
    blocks.push(Block::Figure(Figure {
        file: "algorithm",
        about: "Nanoseconds an ID in the algorithm crate, beside other crates",
        chart: Chart::Bars(Bars {
            title: "One ID in the algorithm crate".to_owned(),
            unit: "ns an ID, a scale for each group".to_owned(),
            one_scale: false,
            groups: charts,
        }),
    }));
    Ok(blocks)
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

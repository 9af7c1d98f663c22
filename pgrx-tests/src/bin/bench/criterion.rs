//! The algorithm crate beside other crates: what criterion measured in this run
//! (`crates/snowflake-id/benches`, whose header says what is compared and why).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::measure::Samples;
use crate::peers::Peer;
use crate::plot::{Bar, Bars, Chart};
use crate::report::{Block, Figure, Goal, Limit, Section, Table, ratio, spread, three};

/// Our function in each group.
const OURS: &str = "snowflake-id";

/// What takes so many times as long as the fastest of its group is not drawn:
/// the others' bars would be too short to compare.
const TOO_LONG: f64 = 10.0;

/// Colour of the other crates.
const OTHERS: Peer = Peer::PlPgSql;

/// What a group's name stands for, in the order of the document.
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
        "the cheapest clock a peer brings, ticks of 1 ms",
    ),
    (
        "own_clock_1ms",
        "each crate's own reading of the clock, ticks of 1 ms",
    ),
    (
        "own_clock_1ms_2_threads",
        "the same, 2 threads that share a generator",
    ),
    ("own_slots", "threads with a slot each, as backends have"),
    ("clock_alone", "the clock alone, for reading the others"),
];

/// Groups, and in each what a function took: nanoseconds an ID, as the lower end
/// of the median's confidence interval, the median, and the upper end.
type Groups = BTreeMap<String, BTreeMap<String, Samples>>;

/// The section, of criterion's directory (`target/criterion`).
pub fn section(directory: &Path) -> Result<Section> {
    let groups = read(directory)?;
    let place = |name: &str| {
        let known = GROUPS.iter().position(|(known, _)| *known == name);
        known.unwrap_or(GROUPS.len())
    };
    let mut names: Vec<&String> = groups.keys().collect();
    names.sort_by_key(|name| place(name));

    let mut blocks = vec![Block::Text(
        "Nanoseconds an ID in the crate `snowflake-id`, without Postgres, beside the crates that keep IDs unique across threads; \
         criterion's median and its 95 % confidence interval. With several threads it is the wall clock's time divided by the \
         IDs of all. What is compared, with which clock, and which crates were left out and why: \
         [crates/snowflake-id/benches](../crates/snowflake-id/benches)."
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
        let mut table = Table::new(&["", "ns an ID", "to ours"]);
        let mut bars = Vec::new();
        for &(function, samples) in &sorted {
            let to_ours =
                ours.map_or_else(String::new, |ours| ratio(samples.median() / ours.median()));
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
            let quotient = interval(ours, theirs);
            ratios.push((format!("`{name}`, beside `{peer}`"), quotient));
            charts.push((about.to_owned(), bars));
        }
    }
    blocks.push(Block::Figure(Figure {
        file: "algorithm",
        about: "Nanoseconds an ID in the algorithm crate, beside other crates",
        chart: Chart::Bars(Bars {
            title: "One ID in the algorithm crate".to_owned(),
            unit: "nanoseconds an ID, a scale for each group; the line is the median's confidence interval",
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
            "the algorithm crate: an ID, of the fastest peer's time; the most of {} groups ({what})",
            ratios.len()
        ),
        limit: Limit::AtMost(1.0),
        why: format!(
            "{above} of {} groups are above it; ours looks at the bound of what is reserved, the limit of what is borrowed and a \
             clock that steps back, which no peer does, and the layout is a setting that the compiler does not know",
            ratios.len()
        ),
    }
    .judge_estimate(worst);
    Ok(Section {
        title: "The algorithm crate",
        blocks,
        verdicts: vec![verdict],
    })
}

/// How far the quotient of two medians may be off, by their intervals.
fn interval(this: &Samples, other: &Samples) -> Samples {
    let ends = [
        this.low() / other.high(),
        this.median() / other.median(),
        this.high() / other.low(),
    ];
    ends.into_iter().collect()
}

/// Every `benchmark.json` below the directory with the `estimates.json` beside it.
fn read(directory: &Path) -> Result<Groups> {
    let mut groups = Groups::new();
    for group in subdirectories(directory)? {
        for function in subdirectories(&group)? {
            let newest = function.join("new");
            if !newest.join("benchmark.json").exists() {
                continue;
            }
            let parse = |name: &str| -> Result<Value> {
                let file = newest.join(name);
                let text = fs::read_to_string(&file)
                    .with_context(|| format!("reading {}", file.display()))?;
                Ok(serde_json::from_str(&text)?)
            };
            let benchmark = parse("benchmark.json")?;
            let estimates = parse("estimates.json")?;
            let text = |field: &str| benchmark[field].as_str().unwrap_or_default().to_owned();
            let name = match benchmark["value_str"].as_str() {
                Some(value) => format!("{}/{value}", text("function_id")),
                None => text("function_id"),
            };
            let interval = &estimates["median"]["confidence_interval"];
            let ends = [
                &interval["lower_bound"],
                &estimates["median"]["point_estimate"],
                &interval["upper_bound"],
            ];
            let ends: Option<Samples> = ends.into_iter().map(Value::as_f64).collect();
            let ends = ends.with_context(|| format!("no median in {}", newest.display()))?;
            groups
                .entry(text("group_id"))
                .or_default()
                .insert(name, ends);
        }
    }
    ensure!(
        !groups.is_empty(),
        "criterion has left nothing in {}",
        directory.display()
    );
    Ok(groups)
}

fn subdirectories(directory: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("looking into {}", directory.display()))?;
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

//! Every time zone: conditions that read a time in it return the same rows with ranges, on
//! IDs around the clock changes of that zone. Changes since 1840 are found, so that also
//! those are among them by which a place went to the other side of the date line.

use std::fmt;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Outcome, POSIX_ZONES, column, outcome, shown};
use crate::ids::grouped;

/// Reaches from before the first time zone to after the last rule that is written out.
const LAYOUT: &str = "timestamp:44 sequence:19 tick:1ms epoch:1840-01-01T00:00:00Z";

/// What is read in the zone `{z}`, by the time `{t}` and a time `{b}` near the change.
const FORMS: [&str; 12] = [
    "{t}::date {o} {b}::date",
    "{t} {o} {b}::date",
    "{t} {o} {b}::timestamp",
    "{t}::timestamp {o} {b}::timestamp",
    "{t}::date::timestamptz {o} {b}::date::timestamptz",
    "date_trunc('{u}', {t}) {o} date_trunc('{u}', {b})",
    "date_trunc('{u}', {t}::timestamp)::date {o} date_trunc('{u}', {b})::date",
    "date_trunc('{u}', {t}, '{z}') {o} date_trunc('{u}', {b}, '{z}')",
    "{t} AT TIME ZONE '{z}' {o} {b} AT TIME ZONE '{z}'",
    "({t} AT TIME ZONE '{z}')::date {o} ({b} AT TIME ZONE '{z}')::date",
    "date_trunc('{u}', {t} AT TIME ZONE '{z}') {o} date_trunc('{u}', {b} AT TIME ZONE '{z}')",
    "date_trunc('{u}', {t} AT TIME ZONE '{z}') AT TIME ZONE '{z}' {o} date_trunc('{u}', {b} AT TIME ZONE '{z}') AT TIME ZONE '{z}'",
];

/// What is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The seed of all choices.
    pub seed: u64,
    /// How many clock changes of each zone, at random.
    pub changes: usize,
    /// They are looked for in so many years, at random since 1840.
    pub years: i32,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    seed: u64,
    zones: usize,
    changes: usize,
    conditions: usize,
    rows: usize,
    /// What must not be.
    pub differences: Vec<String>,
}

/// The names of all zones but those that stand for others.
pub(super) fn all(client: &mut Client) -> Result<Vec<String>> {
    let query = "SELECT name FROM pg_timezone_names WHERE name !~ '^(posix|right)/' ORDER BY name";
    column(client, query)
}

/// Compares in each zone. The database must have the extension.
pub fn run(client: &mut Client, options: &Options) -> Result<Report> {
    let mut random = StdRng::seed_from_u64(options.seed);
    let mut report = Report {
        seed: options.seed,
        ..Report::default()
    };
    client.batch_execute(
        "CREATE TEMP TABLE around (id bigint); CREATE INDEX ON around (id); SET enable_seqscan = off; SET jit = off",
    )?;
    let mut zones = all(client)?;
    zones.extend(POSIX_ZONES.map(str::to_owned));
    for zone in &zones {
        report.zones += 1;
        for change in changes(client, &mut random, zone, options)? {
            report.changes += 1;
            insert_around(client, &change, zone)?;
            compare(client, &mut random, &change, zone, &mut report)?;
        }
    }
    Ok(report)
}

/// Some clock changes of a zone; a time at random if it has none in these years.
fn changes(
    client: &mut Client,
    random: &mut StdRng,
    zone: &str,
    options: &Options,
) -> Result<Vec<String>> {
    let from = random.random_range(1840..=2040 - options.years);
    let until = from + options.years;
    client.batch_execute("SET TimeZone = 'UTC'")?;
    let found = column(
        client,
        &format!(
            "SELECT moment FROM (SELECT moment, (moment AT TIME ZONE '{zone}') - lag(moment AT TIME ZONE '{zone}') OVER (ORDER BY moment) AS step \
             FROM generate_series(timestamptz '{from}-01-01', timestamptz '{until}-01-01', interval '1 day') AS moment) AS moments \
             WHERE step <> interval '1 day'"
        ),
    )
    .with_context(|| format!("clock changes of {zone}"))?;
    if found.is_empty() {
        let month = random.random_range(1..=12);
        return Ok(vec![format!("{from}-{month:02}-01 00:00:00+00")]);
    }
    let mut chosen = Vec::new();
    for _ in 0..options.changes.min(found.len()) {
        let change = &found[random.random_range(0..found.len())];
        if !chosen.contains(change) {
            chosen.push(change.clone());
        }
    }
    Ok(chosen)
}

/// How far from a change times are looked at, in steps, and a step in minutes: a zone by
/// a rule can jump by 13 days.
fn reach(zone: &str) -> (i32, i32) {
    if POSIX_ZONES.contains(&zone) {
        (160, 180)
    } else {
        (200, 15)
    }
}

/// IDs at each step before and after the change, and of the millisecond before.
fn insert_around(client: &mut Client, change: &str, zone: &str) -> Result<()> {
    let (steps, minutes) = reach(zone);
    client.batch_execute(&format!(
        "TRUNCATE around;
         INSERT INTO around SELECT snowflake_min_id(timestamptz '{change}' + n * interval '{minutes} minutes' - less, '{LAYOUT}')
         FROM generate_series(-{steps}, {steps}) AS n, (VALUES (interval '0'), (interval '1 millisecond')) AS v (less)"
    ))?;
    Ok(())
}

/// A query of each form, all in one statement.
fn compare(
    client: &mut Client,
    random: &mut StdRng,
    change: &str,
    zone: &str,
    report: &mut Report,
) -> Result<()> {
    let (steps, minutes) = reach(zone);
    let queries: Vec<String> = FORMS
        .iter()
        .enumerate()
        .map(|(number, form)| {
            let operator = ["<", "<=", "=", ">=", ">"][random.random_range(0..5)];
            let unit = ["hour", "day", "week", "month", "year"][random.random_range(0..5)];
            let away = random.random_range(-steps..=steps) * minutes;
            let condition = form
                .replace("{t}", &format!("snowflake_timestamp(id, '{LAYOUT}')"))
                .replace(
                    "{b}",
                    &format!("(timestamptz '{change}' + interval '{away} minutes')"),
                )
                .replace("{o}", operator)
                .replace("{u}", unit)
                .replace("{z}", zone);
            format!("SELECT {number}, id FROM around WHERE {condition}")
        })
        .collect();
    let statement = queries.join(" UNION ALL ");
    let of_state = |client: &mut Client, state: &str| -> Result<Outcome> {
        let set = format!("SET TimeZone = '{zone}'; SET snowflake.enable_time_ranges = {state}");
        let mut outcome = outcome(client, &format!("{set}; {statement}"))?;
        if let Ok(rows) = &mut outcome {
            rows.sort_unstable();
        }
        Ok(outcome)
    };
    let without = of_state(client, "off")?;
    let with = of_state(client, "on")?;
    report.conditions += FORMS.len();
    report.rows += without.as_ref().map_or(0, Vec::len);
    if without != with {
        let texts: Vec<_> = queries.iter().map(|it| format!("    {it}\n")).collect();
        report.differences.push(format!(
            "{zone}, {change}:\n{}  without ranges: {}\n  with ranges: {}",
            texts.concat(),
            shown(&without, &with),
            shown(&with, &without)
        ));
    }
    if let Err(error) = without {
        anyhow::bail!("{zone}, {change}: {error:?}: {statement}");
    }
    Ok(())
}

impl Report {
    /// Fails if a zone differs, or if the conditions have no rows.
    pub fn verdict(&self) -> Result<()> {
        ensure!(
            self.differences.is_empty(),
            "{} differ",
            self.differences.len()
        );
        ensure!(
            self.rows > self.conditions,
            "the conditions have hardly any rows"
        );
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in self.differences.iter().take(super::SHOWN) {
            writeln!(
                formatter,
                "ranges in zones: seed {}, {difference}",
                self.seed
            )?;
        }
        write!(
            formatter,
            "ranges in zones: {} zones, {} clock changes, {} conditions with {} rows, seed {}: {} changes with other rows",
            self.zones,
            grouped(self.changes as u64),
            grouped(self.conditions as u64),
            grouped(self.rows as u64),
            self.seed,
            self.differences.len()
        )
    }
}

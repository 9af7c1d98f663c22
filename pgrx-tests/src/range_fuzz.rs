//! Statements at random on the time of IDs, each planned without and with ranges
//! (`snowflake.enable_time_ranges`): their rows and their errors must be the same.
//!
//! Both runs of a statement are in one transaction, which is rolled back, so that `now()`
//! is the same. Each statement has a time zone, a role and settings of the planner of its
//! own. One with parameters is prepared, and executed in three time zones after it was
//! planned. The seed decides everything but the time of day.
//!
//! - [`run`]: the statements
//! - [`zones`]: every time zone around its clock changes

mod condition;
mod statement;
pub mod zones;

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use anyhow::{Context, Result, ensure};
use postgres::{Client, SimpleQueryMessage};

use crate::ids::grouped;
use crate::query::Ask;
use crate::server::Server;
use crate::server_error::ServerError;
use statement::{Generator, Statement};

const SOURCES: &str = include_str!("range_fuzz/sources.sql");

/// Zones with an odd offset, date or rule.
#[rustfmt::skip]
const ODD_ZONES: [&str; 13] = [
    "America/St_Johns", "Pacific/Apia", "Pacific/Kwajalein", "Africa/Casablanca", "America/Sao_Paulo",
    "Asia/Manila", "Antarctica/Troll", "Australia/Lord_Howe", "Europe/Dublin", "America/Godthab",
    "Asia/Gaza", "Asia/Kolkata", "Europe/Berlin",
];

/// Zones by a rule: PostgreSQL takes offsets of up to a week.
const POSIX_ZONES: [&str; 5] = [
    "AAA-160BBB160,M3.2.0,M11.1.0",
    "AAA160BBB-160,M3.2.0,M11.1.0",
    "AAA0BBB-23,J80,J90",
    "XYZ-14",
    "CCC167",
];

/// `statement_timeout` of a statement, and the SQLSTATE when it is over.
const TIMEOUT: &str = "20s";
const TIMED_OUT: &str = "57014";

/// Of a number that is no ID. A range does not read it: the documented exception.
const NO_ID: &str = "22003";

/// How many differences are printed.
const SHOWN: usize = 5;

/// What is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The seed of all choices.
    pub seed: u64,
    /// How many statements.
    pub statements: usize,
    /// Ends at the first difference: for a planted mistake.
    pub until_difference: bool,
}

/// The rows of a statement and how many it changed, or its error.
pub(crate) type Outcome = std::result::Result<Vec<String>, Refusal>;

/// An error, as far as it must be the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    sqlstate: String,
    message: String,
}

/// A statement whose outcome is another one with ranges.
#[derive(Debug)]
pub struct Difference {
    /// Its number, from 1.
    pub number: usize,
    kind: &'static str,
    script: String,
    without: Outcome,
    with: Outcome,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    seed: u64,
    statements: usize,
    by_kind: BTreeMap<&'static str, usize>,
    prepared: usize,
    with_rows: usize,
    /// Of those that were explained, those whose plans differ.
    planned_otherwise: usize,
    explained: usize,
    timed_out: usize,
    /// Errors 22003 of a number that is no ID that only one of the runs has: the documented
    /// exceptions.
    errors_lost: usize,
    errors_gained: usize,
    /// Tables that are scanned although a time IS NULL and is compared, or has two values in a
    /// join: that this is never true is seen by the conditions alone, whose place ranges took.
    contradictions_lost: usize,
    /// Errors of both, by SQLSTATE, and the first statement.
    errors: BTreeMap<String, (usize, String)>,
    /// What must not be.
    pub differences: Vec<Difference>,
}

/// Runs statements in the database `postgres`, which must have the extension alone.
pub fn run(server: &Server, options: &Options) -> Result<Report> {
    let mut client = server.connect()?;
    let client = &mut client;
    let has_foreign = create_sources(server, client)?;
    let is_15 = client.number("SHOW server_version_num")? < 160_000;
    client.batch_execute(&format!(
        "SET jit = off; SET statement_timeout = '{TIMEOUT}'"
    ))?;
    let zones = zones::all(client)?;
    let mut generator = Generator::new(options.seed, has_foreign);
    let mut report = Report {
        seed: options.seed,
        ..Report::default()
    };
    while report.statements < options.statements
        && (!options.until_difference || report.differences.is_empty())
    {
        report.statements += 1;
        let settings = settings(&mut generator, &zones, is_15);
        let statement = generator.statement();
        let executed = executed(&mut generator, &statement, &zones);
        compare(client, &settings, &statement, &executed, &mut report)?;
    }
    Ok(report)
}

/// Returns whether there is a foreign table, which needs `postgres_fdw`.
fn create_sources(server: &Server, client: &mut Client) -> Result<bool> {
    client.batch_execute(SOURCES)?;
    let available = "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'";
    let has_foreign = client.number(available)? > 0;
    if has_foreign {
        client.batch_execute(&format!(
            "CREATE EXTENSION postgres_fdw;
             CREATE SERVER itself FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{}', port '{}', dbname 'postgres');
             CREATE USER MAPPING FOR PUBLIC SERVER itself OPTIONS (user 'postgres', password_required 'false');
             CREATE FOREIGN TABLE far (id bigint, k int, n int, layout text) SERVER itself OPTIONS (table_name 'seen')",
            server.sockets().display(),
            server.port()
        ))?;
    }
    client.batch_execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO reader; ANALYZE")?;
    Ok(has_foreign)
}

/// A zone; over a long run, each of them.
fn zone<'a>(generator: &mut Generator, zones: &'a [String]) -> &'a str {
    match generator.below(8) {
        0..2 => generator.pick(&ODD_ZONES),
        2 => generator.pick(&POSIX_ZONES),
        _ => &zones[generator.below(zones.len())],
    }
}

/// The settings of the transaction.
fn settings(generator: &mut Generator, zones: &[String], is_15: bool) -> String {
    let mut settings = format!("SET LOCAL TimeZone = '{}';", zone(generator, zones));
    for (name, values) in [
        ("join_collapse_limit", ["1", "8"]),
        ("from_collapse_limit", ["1", "8"]),
        ("enable_seqscan", ["on", "off"]),
        ("enable_hashjoin", ["on", "off"]),
        ("enable_partitionwise_join", ["on", "off"]),
        ("constraint_exclusion", ["on", "partition"]),
    ] {
        settings += &format!(" SET LOCAL {name} = {};", generator.pick(&values));
    }
    if generator.chance(15) {
        let forced = if is_15 {
            "force_parallel_mode"
        } else {
            "debug_parallel_query"
        };
        settings += &format!(
            " SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0; \
             SET LOCAL min_parallel_index_scan_size = 0; SET LOCAL {forced} = on;"
        );
    }
    if generator.chance(25) {
        settings += " SET LOCAL ROLE reader;";
    }
    settings
}

/// What is sent: the statement, or that it is prepared and executed in three zones.
fn executed(generator: &mut Generator, statement: &Statement, zones: &[String]) -> String {
    if statement.parameters.is_empty() {
        return statement.sql.clone();
    }
    let mode = generator.pick(&["force_generic_plan", "force_generic_plan", "auto"]);
    let types: Vec<_> = statement.parameters.iter().map(|it| it.of_type).collect();
    let values: Vec<_> = statement
        .parameters
        .iter()
        .map(|it| match &it.value {
            Some(value) => format!("'{value}'"),
            None => "NULL".to_owned(),
        })
        .collect();
    let mut executed = format!(
        "SET LOCAL plan_cache_mode = {mode}; PREPARE p ({}) AS {}",
        types.join(", "),
        statement.sql
    );
    for _ in 0..3 {
        executed += &format!("; SET LOCAL TimeZone = '{}'", zone(generator, zones));
        if generator.chance(20) {
            let role = generator.pick(&["reader", "postgres"]);
            executed += &format!("; SET LOCAL ROLE {role}");
        }
        executed += &format!("; EXECUTE p ({})", values.join(", "));
    }
    executed
}

/// Runs a statement without and with ranges, and counts.
fn compare(
    client: &mut Client,
    settings: &str,
    statement: &Statement,
    executed: &str,
    report: &mut Report,
) -> Result<()> {
    let script = format!("BEGIN; {settings}\n{executed};");
    let of_state = |client: &mut Client, state: &str, what: &str| {
        outcome(
            client,
            &format!("SET LOCAL snowflake.enable_time_ranges = {state}; {what}"),
        )
        .with_context(|| format!("with ranges {state}: {script}"))
    };
    client.batch_execute(&format!("BEGIN; {settings} SAVEPOINT s"))?;
    let mut without = of_state(client, "off", executed)?;
    client.batch_execute("ROLLBACK TO s; DEALLOCATE ALL")?;
    let mut with = of_state(client, "on", executed)?;
    let mut scans_more = None;
    if statement.parameters.is_empty() && with.is_ok() {
        let explain = format!("EXPLAIN (COSTS off) {}", statement.sql);
        let plans = [
            of_state(client, "off", &explain)?,
            of_state(client, "on", &explain)?,
        ];
        report.explained += 1;
        report.planned_otherwise += usize::from(plans[0] != plans[1]);
        let [before, after] = plans.each_ref().map(scanned);
        scans_more = (!after.is_subset(&before)).then_some(plans);
    }
    client.batch_execute("ROLLBACK; DEALLOCATE ALL")?;
    if !statement.is_ordered {
        for rows in [&mut without, &mut with].into_iter().flatten() {
            rows.sort_unstable();
        }
    }
    report.prepared += usize::from(!statement.parameters.is_empty());
    *report.by_kind.entry(statement.kind).or_default() += 1;
    let is = |outcome: &Outcome, sqlstate: &str| matches!(outcome, Err(error) if error.sqlstate == sqlstate);
    if is(&without, TIMED_OUT) || is(&with, TIMED_OUT) {
        report.timed_out += 1;
        return Ok(());
    }
    // Which numbers are read, and which first, depends on the plan.
    if without != with && statement.sql.contains("wrong ") {
        if is(&without, NO_ID) && (with.is_ok() || is(&with, NO_ID)) {
            report.errors_lost += 1;
            return Ok(());
        }
        if is(&with, NO_ID) && without.is_ok() {
            report.errors_gained += 1;
            return Ok(());
        }
    }
    if let Some(plans) = &scans_more
        && (statement.sql.contains("IS NULL") || joins_nothing(plans))
    {
        report.contradictions_lost += 1;
    } else if let Some([without, with]) = scans_more {
        report.differences.push(Difference {
            number: report.statements,
            kind: KINDS_OF_DIFFERENCES[4],
            script,
            without,
            with,
        });
        return Ok(());
    }
    if without == with {
        match with {
            Ok(rows) => report.with_rows += usize::from(!rows.is_empty()),
            Err(error) => {
                let first = || (0, format!("{}: {script}", error.message));
                report
                    .errors
                    .entry(error.sqlstate.clone())
                    .or_insert_with(first)
                    .0 += 1;
            }
        }
        return Ok(());
    }
    report.differences.push(Difference {
        number: report.statements,
        kind: difference(&without, &with),
        script,
        without,
        with,
    });
    Ok(())
}

const KINDS_OF_DIFFERENCES: [&str; 5] = [
    "with other rows",
    "with an error only with ranges",
    "with an error only without ranges",
    "with another error",
    "with ranges that take away a table's exclusion",
];

/// The tables that a plan scans. One that is excluded without ranges has to be with them,
/// unless its ranges of IDs have nothing in common.
fn scanned(plan: &Outcome) -> HashSet<&str> {
    let lines: Vec<&str> = plan.iter().flatten().map(String::as_str).collect();
    let scans = [
        "Seq Scan",
        "Index Scan",
        "Index Only Scan",
        "Heap Scan",
        "Foreign Scan",
    ];
    let mut scanned = HashSet::new();
    for (place, line) in lines.iter().enumerate() {
        if line.contains("Bitmap Index Scan") || !scans.iter().any(|scan| line.contains(scan)) {
            continue;
        }
        let mut conditions = lines[place + 1..]
            .iter()
            .take_while(|condition| !condition.contains("->"));
        let table = line
            .split_once(" on ")
            .and_then(|(_, rest)| rest.split_whitespace().next());
        if !conditions.any(|condition| is_contradictory(condition)) {
            scanned.extend(table);
        }
    }
    scanned
}

/// Whether ranges of IDs have nothing in common, because a time is to have two values. The
/// planner sees that of the times, and the index of the IDs: it reads no page for it.
fn is_contradictory(condition: &str) -> bool {
    condition.contains("Cond: ") && has_two_values(condition)
}

/// Whether a join is left out because a time is to have two values, and with ranges its tables
/// are read.
fn joins_nothing([without, with]: &[Outcome; 2]) -> bool {
    let has = |plan: &Outcome, what: fn(&str) -> bool| plan.iter().flatten().any(|line| what(line));
    has(without, |line| line.contains("One-Time Filter: false")) && has(with, has_two_values)
}

fn has_two_values(condition: &str) -> bool {
    let bounds = |operators: [&str; 2]| -> Vec<i64> {
        operators
            .iter()
            .flat_map(|operator| condition.split(operator).skip(1))
            .filter_map(|rest| rest.split('\'').next()?.parse().ok())
            .collect()
    };
    let low = bounds(["id >= '", "id > '"]).into_iter().max();
    let high = bounds(["id <= '", "id < '"]).into_iter().min();
    low.zip(high).is_some_and(|(low, high)| low > high)
}

fn difference(without: &Outcome, with: &Outcome) -> &'static str {
    let kind = match (without, with) {
        (Ok(_), Ok(_)) => 0,
        (Ok(_), Err(_)) => 1,
        (Err(_), Ok(_)) => 2,
        (Err(_), Err(_)) => 3,
    };
    KINDS_OF_DIFFERENCES[kind]
}

/// Runs statements. Each row has the number of its statement in front, and a statement
/// ends with the number of rows that it returned or changed, if any.
pub(crate) fn outcome(client: &mut Client, sql: &str) -> Result<Outcome> {
    let messages = match client.simple_query(sql) {
        Ok(messages) => messages,
        Err(error) => {
            let ServerError {
                sqlstate, message, ..
            } = ServerError::from_error(error)?;
            return Ok(Err(Refusal { sqlstate, message }));
        }
    };
    let (mut rows, mut part) = (Vec::new(), 0);
    for message in messages {
        match message {
            SimpleQueryMessage::Row(row) => {
                let values: Vec<_> = (0..row.len())
                    .map(|it| row.get(it).unwrap_or("NULL"))
                    .collect();
                rows.push(format!("{part}: {}", values.join(" | ")));
            }
            SimpleQueryMessage::CommandComplete(count) => {
                if count > 0 {
                    rows.push(format!("{part}: {count} in all"));
                }
                part += 1;
            }
            _ => {}
        }
    }
    Ok(Ok(rows))
}

/// What one outcome has and the other has not; ten lines at most.
pub(crate) fn shown(outcome: &Outcome, other: &Outcome) -> String {
    let rows = match outcome {
        Err(error) => return format!("error {}: {}", error.sqlstate, error.message),
        Ok(rows) => rows,
    };
    let of_other: HashSet<&String> = other.iter().flatten().collect();
    let only: Vec<_> = rows.iter().filter(|row| !of_other.contains(row)).collect();
    let mut text = format!("{} lines, {} of them only here", rows.len(), only.len());
    for row in only.iter().take(10) {
        text += &format!("\n    {row}");
    }
    if only.len() > 10 {
        text += &format!("\n    and {} more", only.len() - 10);
    }
    text
}

impl Report {
    /// Fails if a statement differs, or if the statements prove little.
    pub fn verdict(&self) -> Result<()> {
        ensure!(
            self.differences.is_empty(),
            "{} statements differ",
            self.differences.len()
        );
        // A mistake of the generator is no error of a user; 42501 is a policy's.
        for (sqlstate, (count, first)) in &self.errors {
            ensure!(
                !sqlstate.starts_with("42") || sqlstate == "42501",
                "{count} statements are not valid, {sqlstate}: {first}"
            );
        }
        ensure!(
            self.with_rows > self.statements / 4 && self.planned_otherwise > self.explained / 4,
            "too few statements have rows, or ranges"
        );
        ensure!(
            self.timed_out <= self.statements / 50,
            "{} statements timed out",
            self.timed_out
        );
        ensure!(
            self.errors_gained <= 1 + self.statements / 1_000,
            "{} statements read numbers that they did not read without ranges",
            self.errors_gained
        );
        ensure!(
            self.contradictions_lost <= 1 + self.statements / 1_000,
            "{} statements scan a table where a time IS NULL and is compared, or has two values",
            self.contradictions_lost
        );
        Ok(())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            kind,
            script,
            without,
            with,
        } = self;
        write!(
            formatter,
            "statement {number}, {kind}: {script}\n  without ranges: {}\n  with ranges: {}",
            shown(without, with),
            shown(with, without)
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in self.differences.iter().take(SHOWN) {
            writeln!(formatter, "range fuzz: seed {}, {difference}", self.seed)?;
        }
        let kinds: Vec<_> = self
            .by_kind
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        writeln!(formatter, "range fuzz: {}", kinds.join(", "))?;
        write!(
            formatter,
            "range fuzz: {} statements, seed {}: {} return rows, {} prepared; of {} plans, {} have ranges;",
            grouped(self.statements as u64),
            self.seed,
            grouped(self.with_rows as u64),
            grouped(self.prepared as u64),
            self.explained,
            self.planned_otherwise
        )?;
        for kind in KINDS_OF_DIFFERENCES {
            let count = self.differences.iter().filter(|it| it.kind == kind).count();
            write!(formatter, " {count} {kind},")?;
        }
        let errors: Vec<_> = self
            .errors
            .iter()
            .map(|(sqlstate, (count, _))| format!("{count} {sqlstate}"))
            .collect();
        write!(
            formatter,
            " {} without and {} with the error {NO_ID} of a number that is no ID, and {} that scan a table where a time IS NULL and is compared, or has two values (allowed); errors of both: {}; {} timed out",
            self.errors_lost,
            self.errors_gained,
            self.contradictions_lost,
            errors.join(", "),
            self.timed_out
        )
    }
}

/// The first column of a query's rows.
fn column(client: &mut Client, sql: &str) -> Result<Vec<String>> {
    let messages = client
        .simple_query(sql)
        .with_context(|| format!("running: {sql}"))?;
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    Ok(rows.collect())
}

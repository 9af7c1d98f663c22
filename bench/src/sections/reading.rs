//! Reading IDs: their fields, and ranges of time.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use postgres::Client;

use crate::measure::{Samples, in_turn};
use crate::peers::Peer;
use crate::plot::{Bar, Bars, Chart};
use crate::report::{
    Block, Figure, Goal, Highlight, Limit, Section, Table, per_second, ratio_cell, spread, three,
};
use crate::run::Run;

/// The days over which the rows are spread. A range is one of them.
const DAYS: u32 = 30;

/// A call for each row of a table of IDs.
#[derive(Debug, Clone, Copy)]
struct Call {
    name: &'static str,
    expression: &'static str,
    /// What follows the table in FROM.
    from: &'static str,
}

/// A call among the columns of a SELECT.
const fn call(name: &'static str, expression: &'static str) -> Call {
    Call {
        name,
        expression,
        from: "",
    }
}

const CONSTANT: usize = 0;
const ABS: usize = 1;
const TIMESTAMP: usize = 4;

const CALLS: &[Call] = &[
    call("a constant function", "pg_backend_pid()"),
    call("core: `int8abs(id)`", "int8abs(id)"),
    call("`snowflake_node_id(id)`", "snowflake_node_id(id)"),
    call(
        "`snowflake_node_id(id, 'default')`",
        "snowflake_node_id(id, 'default')",
    ),
    call("`snowflake_timestamp(id)`", "snowflake_timestamp(id)"),
    call(
        "`snowflake_timestamp(id, 'default')`",
        "snowflake_timestamp(id, 'default')",
    ),
    call(
        "core: `ROW(now(), 1, 2, 3)`, a row of the same types",
        "ROW(now(), 1, 2, 3)",
    ),
    call("`snowflake_decode(id)`", "snowflake_decode(id)"),
    call(
        "`snowflake_decode(id, 'default')`",
        "snowflake_decode(id, 'default')",
    ),
    call("core: `id::text`", "id::text"),
    call("`snowflake_to_text(id)`", "snowflake_to_text(id)"),
    call("core: `length('06Y5SSPG01000')`", "length(t)"),
    call(
        "`snowflake_from_text('06Y5SSPG01000')`",
        "snowflake_from_text(t)",
    ),
    Call {
        name: "core: `FROM …, int8abs(id)`",
        expression: "f",
        from: ", int8abs(id) AS f",
    },
    Call {
        name: "`FROM …, snowflake_decode(id)`",
        expression: "f.node_id",
        from: ", snowflake_decode(id) AS f",
    },
];

/// The two ways to select the rows of a day.
#[derive(Debug, Clone, Copy)]
struct Range {
    name: &'static str,
    table: &'static str,
    condition: &'static str,
}

const RANGES: [Range; 2] = [
    Range {
        name: "`snowflake_between(id, …)` on the primary key",
        table: "by_id",
        condition: "snowflake_between(id, day.since, day.until)",
    },
    Range {
        name: "`bigserial`, and `created_at timestamptz` with an index of its own",
        table: "by_column",
        condition: "created_at >= day.since AND created_at < day.until",
    },
];

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    let scale = run.scale();
    let turns = (scale.read_rounds + 1) as f64;
    Duration::from_secs_f64(f64::from(scale.read_rows) * (turns * 1.6e-6 + 10e-6))
}

/// The section.
pub fn section(run: &Run) -> Result<Section> {
    let rows = run.scale().read_rows;
    let mut client = run.connect()?;
    run.progress().step("filling tables");
    tables(&mut client, rows)?;
    let calls = measure_calls(run, &mut client)?;
    let ranges = measure_ranges(run, &mut client)?;
    client.batch_execute("DROP TABLE by_id, by_column")?;
    let day = rows / DAYS;
    Ok(Section {
        title: "Reading",
        blocks: vec![
            Block::Text(format!(
                "One session runs `SELECT count(…)` over a table of {} rows in memory. Comparable functions of core show the cost of \
                 reading the column, of building a row, and of a function in FROM.",
                per_second(rows.into())
            )),
            Block::Table(calls_table(&calls, rows)),
            Block::Text(format!(
                "`SELECT count(v)` of the rows of one day of {DAYS} ({day} rows), in two tables with the same rows:"
            )),
            Block::Table(ranges.table()),
            Block::Figure(ranges.figure(rows)),
        ],
        verdicts: vec![
            Goal {
                what: format!(
                    "{}: time relative to a constant function",
                    CALLS[TIMESTAMP].name
                ),
                limit: Limit::AtMost(1.5),
                why: format!(
                    "core's `int8abs(id)` takes {} of it, because both read the column",
                    ratio_cell(&calls[ABS], &calls[CONSTANT])
                ),
            }
            .judge(&calls[TIMESTAMP].ratio_to(&calls[CONSTANT])),
        ],
        highlight: Some(Highlight {
            question: "What do time-ordered keys save?",
            answer: format!(
                "The key is an index on time, so no `created_at` column with an index is needed for that. The primary key finds the \
                 {day} rows of one day of {DAYS} in {} ms. `bigserial` with an index on `created_at` takes {} ms, and {} % more space.",
                three(ranges.times[0].median() * 1e3),
                three(ranges.times[1].median() * 1e3),
                three((ranges.sizes[1] / ranges.sizes[0] - 1.0) * 100.0)
            ),
            figure: ranges.figure(rows),
        }),
        ..Section::default()
    })
}

/// Seconds of each of [`CALLS`] over all rows.
fn measure_calls(run: &Run, client: &mut Client) -> Result<Vec<Samples>> {
    let scale = run.scale();
    let mut times = in_turn(
        &[()],
        CALLS,
        1,
        |_| scale.read_rounds,
        |(), call, turn| {
            run.progress().step(format_args!("{}, {turn}", call.name));
            let query = format!("SELECT count({}) FROM by_id{}", call.expression, call.from);
            let begun = Instant::now();
            let counted: i64 = client.query_one(&query, &[])?.get(0);
            let took = begun.elapsed().as_secs_f64();
            ensure!(
                counted == i64::from(scale.read_rows),
                "{query} counted {counted}"
            );
            Ok(took)
        },
    )?;
    Ok(times.remove(0))
}

fn calls_table(calls: &[Samples], rows: u32) -> Table {
    let mut table = Table::new(&[
        "",
        "ns a row, including the query",
        "ratio to a constant function",
    ]);
    for (call, samples) in CALLS.iter().zip(calls) {
        let nanoseconds = samples.map(|seconds| seconds * 1e9 / f64::from(rows));
        table.row(&[
            call.name.to_owned(),
            spread(&nanoseconds, three),
            ratio_cell(samples, &calls[CONSTANT]),
        ]);
    }
    table
}

/// What [`RANGES`] measured.
struct Ranges {
    /// Seconds.
    times: Vec<Samples>,
    /// Tables with their indexes, in MiB.
    sizes: Vec<f64>,
}

fn measure_ranges(run: &Run, client: &mut Client) -> Result<Ranges> {
    let found = Cell::new(None);
    let times = in_turn(
        &[()],
        &RANGES,
        1,
        |_| run.scale().read_rounds,
        |(), range, turn| {
            run.progress()
                .step(format_args!("a range of time, {}, {turn}", range.table));
            let (rows, took) = rows_of_a_day(client, range)?;
            // Both must find the same rows. Otherwise the ranges differ.
            let before = found.replace(Some(rows)).unwrap_or(rows);
            ensure!(
                rows == before,
                "{rows} rows of {} in that day, not {before}",
                range.table
            );
            Ok(took)
        },
    )?
    .remove(0);
    let mut sizes = Vec::new();
    for range in RANGES {
        let query = format!("SELECT pg_total_relation_size('{}')", range.table);
        let bytes: i64 = client.query_one(&query, &[])?.get(0);
        sizes.push(bytes as f64 / f64::from(1 << 20));
    }
    Ok(Ranges { times, sizes })
}

impl Ranges {
    fn table(&self) -> Table {
        let mut table = Table::new(&[
            "",
            "ms for a day's rows",
            "ratio to ours",
            "table and indexes, MiB",
        ]);
        for ((range, samples), &size) in RANGES.iter().zip(&self.times).zip(&self.sizes) {
            table.row(&[
                range.name.to_owned(),
                spread(&samples.map(|seconds| seconds * 1e3), three),
                ratio_cell(samples, &self.times[0]),
                three(size),
            ]);
        }
        table
    }

    fn figure(&self, rows: u32) -> Figure {
        let contenders = [
            ("one index on the ID", Peer::Snowflake),
            ("and one on created_at", Peer::Sequence),
        ];
        let bars = contenders
            .iter()
            .zip(&self.sizes)
            .map(|((name, peer), &size)| {
                let size = [size].into_iter().collect();
                Bar::new(name, peer.colour(), &size)
            });
        Figure {
            file: "size-with-time",
            about: "Size of a table whose rows are to be found by time, with its indexes",
            chart: Chart::Bars(Bars {
                title: format!(
                    "Size of {} rows that are found by time",
                    per_second(rows.into())
                ),
                unit: "MiB, indexes included",
                one_scale: true,
                groups: vec![(String::new(), bars.collect())],
            }),
        }
    }
}

/// Creates two tables with the same rows, spread evenly over the days before
/// today.
fn tables(client: &mut Client, rows: u32) -> Result<()> {
    client.batch_execute(&format!(
        "CREATE TABLE by_id (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int, t text);
         CREATE TABLE by_column (id bigserial PRIMARY KEY, v int, t text, created_at timestamptz NOT NULL);
         INSERT INTO by_id
             SELECT snowflake_compose(at, 1, (n % 16)::int, 0), n, '06Y5SSPG01000'
             FROM generate_series(1, {rows}) AS n,
                  LATERAL (SELECT date_trunc('day', now()) - interval '{DAYS} days' * (1 - (n - 0.5) / {rows}::float8)) AS s (at);
         INSERT INTO by_column (v, t, created_at)
             SELECT v, t, snowflake_timestamp(id) FROM by_id ORDER BY id;
         CREATE INDEX ON by_column (created_at)"
    ))?;
    client.batch_execute("VACUUM ANALYZE by_id")?;
    client.batch_execute("VACUUM ANALYZE by_column")?;
    Ok(())
}

/// The rows of a day in the middle, and the seconds of counting them.
fn rows_of_a_day(client: &mut Client, range: Range) -> Result<(i64, f64)> {
    let Range {
        table, condition, ..
    } = range;
    // As values, like the parameters of an application's prepared statement.
    let days = format!("date_trunc('day', now()) - interval '{} days'", DAYS / 2);
    let condition = condition
        .replace("day.since", &format!("({days})"))
        .replace("day.until", &format!("({days} + interval '1 day')"));
    let query = format!("SELECT count(v) FROM {table} WHERE {condition}");
    let begun = Instant::now();
    let rows = client.query_one(&query, &[])?.get(0);
    Ok((rows, begun.elapsed().as_secs_f64()))
}

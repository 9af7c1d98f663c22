//! Reading IDs: what they are made of, and ranges of time.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use postgres::Client;

use crate::measure::in_turn;
use crate::peers::Peer;
use crate::plot::{Bar, Bars, Chart};
use crate::report::{
    Block, Figure, Goal, Highlight, Limit, Section, Table, per_second, ratio_cell, spread, three,
};
use crate::run::Run;

/// Over how many days the rows are spread; a range is one of them.
const DAYS: u32 = 30;

/// Something that is asked of each row of a table of IDs.
#[derive(Debug, Clone, Copy)]
struct Call {
    name: &'static str,
    expression: &'static str,
    /// Beside the table.
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

/// The two ways to ask for the rows of a day.
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
    let scale = run.scale();
    let mut client = run.connect()?;
    run.progress().step("filling tables");
    tables(&mut client, scale.read_rows)?;

    let calls = in_turn(
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
    )?
    .remove(0);
    let mut accessors = Table::new(&[
        "",
        "ns a row, the query's part included",
        "to a constant function",
    ]);
    for (call, samples) in CALLS.iter().zip(&calls) {
        let nanoseconds = samples.map(|seconds| seconds * 1e9 / f64::from(scale.read_rows));
        accessors.row(&[
            call.name.to_owned(),
            spread(&nanoseconds, three),
            ratio_cell(samples, &calls[CONSTANT]),
        ]);
    }

    let day = format!("{}", scale.read_rows / DAYS);
    let found = Cell::new(None);
    let ranges = in_turn(
        &[()],
        &RANGES,
        1,
        |_| scale.read_rounds,
        |(), range, turn| {
            run.progress()
                .step(format_args!("a range of time, {}, {turn}", range.table));
            let (rows, took) = rows_of_a_day(&mut client, range)?;
            // Both must find the same rows, or they answer different questions.
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
    let mut table = Table::new(&[
        "",
        "ms for a day's rows",
        "to ours",
        "table and indexes, MiB",
    ]);
    let mut bars = Vec::new();
    let mut sizes = Vec::new();
    let colours = [Peer::Snowflake, Peer::Sequence].map(Peer::colour);
    for ((range, samples), colour) in RANGES.iter().zip(&ranges).zip(colours) {
        let size: i64 = client
            .query_one(
                &format!("SELECT pg_total_relation_size('{}')", range.table),
                &[],
            )?
            .get(0);
        let milliseconds = samples.map(|seconds| seconds * 1e3);
        table.row(&[
            range.name.to_owned(),
            spread(&milliseconds, three),
            ratio_cell(samples, &ranges[0]),
            three(size as f64 / f64::from(1 << 20)),
        ]);
        sizes.push(size as f64 / f64::from(1 << 20));
        let size = [size as f64 / f64::from(1 << 20)].into_iter().collect();
        let name = ["one index on the ID", "and one on created_at"][bars.len()];
        bars.push(Bar::new(name, colour, &size));
    }
    client.batch_execute("DROP TABLE by_id, by_column")?;
    let chart = |bars| {
        Chart::Bars(Bars {
            title: format!(
                "Size of {} rows that are found by time",
                per_second(scale.read_rows.into())
            ),
            unit: "MiB, indexes included",
            one_scale: true,
            groups: vec![(String::new(), bars)],
        })
    };
    let highlight = Highlight {
        question: "What do I get?",
        answer: format!(
            "The key is an index on time, so a `created_at` column and its index are not needed for that. The primary key finds the \
             {day} rows of one day of {DAYS} in {} ms. `bigserial` with an index on `created_at` takes {} ms, and {} % more space.",
            three(ranges[0].median() * 1e3),
            three(ranges[1].median() * 1e3),
            three((sizes[1] / sizes[0] - 1.0) * 100.0)
        ),
        figure: Figure {
            file: "size-with-time",
            about: "Size of a table whose rows are to be found by time, with its indexes",
            chart: chart(bars.clone()),
        },
    };
    let timestamp = Goal {
        what: format!("{}, of a constant function's time", CALLS[TIMESTAMP].name),
        limit: Limit::AtMost(1.5),
        why: format!(
            "core's `int8abs(id)` takes {} of it, because both read the column",
            ratio_cell(&calls[ABS], &calls[CONSTANT])
        ),
    }
    .judge(&calls[TIMESTAMP].ratio_to(&calls[CONSTANT]));
    Ok(Section {
        title: "Reading",
        blocks: vec![
            Block::Text(format!(
                "`SELECT count(…)` over a table of {} rows in memory, in one session. Core's functions of the same kind show \
                 the cost of reading the column, of building a row, and of a function in FROM.",
                per_second(scale.read_rows.into())
            )),
            Block::Table(accessors),
            Block::Text(format!(
                "The rows of one day of {DAYS} ({day} rows), `SELECT count(v)`, in two tables of the same rows:"
            )),
            Block::Table(table),
            Block::Figure(Figure {
                file: "size-with-time",
                about: "Size of a table whose rows are to be found by time, with its indexes",
                chart: chart(bars),
            }),
        ],
        verdicts: vec![timestamp],
        highlight: Some(highlight),
    })
}

/// The same rows twice, spread evenly over the days before today.
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

/// The rows of a day in the middle, and the seconds it took to count them.
fn rows_of_a_day(client: &mut Client, range: Range) -> Result<(i64, f64)> {
    let Range {
        table, condition, ..
    } = range;
    // Values, as a prepared statement of an application has them.
    let days = format!("date_trunc('day', now()) - interval '{} days'", DAYS / 2);
    let condition = condition
        .replace("day.since", &format!("({days})"))
        .replace("day.until", &format!("({days} + interval '1 day')"));
    let query = format!("SELECT count(v) FROM {table} WHERE {condition}");
    let begun = Instant::now();
    let rows = client.query_one(&query, &[])?.get(0);
    Ok((rows, begun.elapsed().as_secs_f64()))
}

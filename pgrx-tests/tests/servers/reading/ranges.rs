//! A range of time is a range of the primary key: plans, estimates and pruning
//! over `snowflake_between` and the bounds under it, and parallel plans over
//! every function that reads an ID. That the bounds are the right ones is a
//! property of the crate (`crates/snowflake-id/tests/reading.rs`).

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::ids::grouped;
use snowflake_tests::query::text;
use snowflake_tests::tier;

/// The rows of the table that ranges are read from.
fn rows() -> i64 {
    tier::size(100_000, 1_000_000)
}

/// The plan of a statement, without costs.
fn plan(client: &mut Client, statement: &str) -> Result<String> {
    explained(client, &format!("EXPLAIN (COSTS off) {statement}"))
}

fn explained(client: &mut Client, explain: &str) -> Result<String> {
    let rows = client
        .query(explain, &[])
        .with_context(|| format!("running: {explain}"))?;
    let lines: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
    Ok(lines.join("\n"))
}

fn value(client: &mut Client, query: &str) -> Result<String> {
    text(client, query)?.with_context(|| format!("NULL came from: {query}"))
}

fn number(client: &mut Client, query: &str) -> Result<i64> {
    Ok(value(client, query)?.parse()?)
}

/// Fails unless the plan reads the table by a range of its primary key and
/// nothing else: every condition in the Index Cond, none left to a filter.
fn assert_index_range(plan: &str, conditions: &[&str]) {
    assert!(
        plan.contains("Index Only Scan using events_pkey on events")
            || plan.contains("Index Scan using events_pkey on events"),
        "no index scan:\n{plan}"
    );
    let found: Vec<&str> = plan
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Index Cond: "))
        .collect();
    assert_eq!(found.len(), 1, "one Index Cond:\n{plan}");
    for condition in conditions {
        assert!(found[0].contains(condition), "no {condition}:\n{plan}");
    }
    assert!(!plan.contains("Filter"), "a filter is left:\n{plan}");
}

/// IDs at equal distances in the 24 hours before now, from 16 backend slots.
fn make_events(client: &mut Client) -> Result<()> {
    let rows = rows();
    client.batch_execute(&format!(
        "SET jit = off;
         CREATE TABLE events (id bigint, note text);
         INSERT INTO events
             SELECT snowflake_compose(now() - interval '24 hours' + n * interval '24 hours' / {rows}, 1,
                                      (n % 16)::int, (n % 4096)::int), 'n'
             FROM generate_series(0, {rows} - 1) AS n;
         ALTER TABLE events ADD PRIMARY KEY (id)"
    ))?;
    // Not in a transaction, which the statements above were.
    client.batch_execute("VACUUM (ANALYZE, FREEZE) events")?;
    assert_eq!(number(client, "SELECT count(*) FROM events")?, rows);
    Ok(())
}

#[test]
fn a_range_of_time_is_read_by_the_primary_key() -> Result<()> {
    let cluster = Cluster::builder()
        .conf("snowflake.node_id", 1)
        .conf("autovacuum", "off")
        .start_with_extension()?;
    let client = &mut cluster.connect()?;
    make_events(client)?;
    // `now()` stays the same within the transaction, so plan, answer and truth
    // are about the same hour.
    client.batch_execute("BEGIN")?;
    let hour = LastHour::of(client)?;
    plain_queries(client, &hour)?;
    prepared_statements(client, &hour)?;
    queries_around_the_range(client, &hour)?;
    client.batch_execute("ROLLBACK")?;
    row_estimates(client)?;
    parallel_plans(client)
}

/// The hour before `now()`, as two expressions.
const HOUR: &str = "now() - interval '1 hour', now()";

/// The same as texts, and how many rows it has.
struct LastHour {
    since: String,
    until: String,
    rows: i64,
}

impl LastHour {
    fn of(client: &mut Client) -> Result<Self> {
        let rows = number(
            client,
            "SELECT count(*) FROM events WHERE snowflake_timestamp(id) >= now() - interval '1 hour'
                                           AND snowflake_timestamp(id) < now()",
        )?;
        // The last row is of the time of the INSERT, a few seconds ago, or on a slow
        // machine minutes.
        let most = self::rows() / 24 + 1;
        assert!((most / 2..=most).contains(&rows), "{rows} rows");
        Ok(Self {
            since: value(client, "SELECT now() - interval '1 hour'")?,
            until: value(client, "SELECT now()")?,
            rows,
        })
    }

    fn constants(&self) -> String {
        format!("'{}', '{}'", self.since, self.until)
    }
}

fn plain_queries(client: &mut Client, hour: &LastHour) -> Result<()> {
    let LastHour { since, until, rows } = hour;
    let constants = hour.constants();
    let before = "(id <= snowflake_max_id_before";
    let ranges = [
        (format!("snowflake_between(id, {HOUR})"), before),
        (
            format!("snowflake_between(id, {HOUR}, 'default')"),
            "(id <= snowflake_max_id_before(now(), 'default'::text))",
        ),
        (format!("snowflake_between(id, {constants})"), before),
        (
            format!("snowflake_between(id, {constants}, 'default')"),
            "(id <= '",
        ),
        (
            "id >= snowflake_min_id(now() - interval '1 hour')".to_owned(),
            "(id >= snowflake_min_id((now() - '01:00:00'::interval)))",
        ),
        (
            format!("id >= snowflake_min_id('{since}', 'default')"),
            "(id >= '",
        ),
        (
            format!("id >= snowflake_min_id('{since}') AND id <= snowflake_max_id('{until}')"),
            "(id <= snowflake_max_id(",
        ),
    ];
    for (range, condition) in &ranges {
        let query = format!("SELECT count(*) FROM events WHERE {range}");
        let counting = plan(client, &query)?;
        assert_index_range(&counting, &["(id >=", condition]);
        assert!(counting.contains("Index Only Scan"), "{counting}");
        assert_eq!(number(client, &query)?, *rows, "{range}");
        let reading = plan(client, &format!("SELECT note FROM events WHERE {range}"))?;
        assert_index_range(&reading, &["(id >=", condition]);
    }
    println!(
        "ranges: the last hour, written in {} ways: Index (Only) Scan, Index Cond on id, no filter; \
         {rows} of {} rows each",
        ranges.len(),
        self::rows()
    );
    Ok(())
}

fn prepared_statements(client: &mut Client, hour: &LastHour) -> Result<()> {
    let LastHour { since, until, rows } = hour;
    let constants = hour.constants();
    let mut plans = 0;
    for (mode, by_server, by_layout) in [
        (
            "force_custom_plan",
            "(id <= snowflake_max_id_before('",
            "(id <= '",
        ),
        (
            "force_generic_plan",
            "(id <= snowflake_max_id_before($2))",
            "(id <= snowflake_max_id_before($2, $3))",
        ),
    ] {
        client.batch_execute(&format!(
            "SET LOCAL plan_cache_mode = {mode};
             PREPARE by_server(timestamptz, timestamptz) AS
                 SELECT count(*) FROM events WHERE snowflake_between(id, $1, $2);
             PREPARE by_layout(timestamptz, timestamptz, text) AS
                 SELECT count(*) FROM events WHERE snowflake_between(id, $1, $2, $3);
             PREPARE by_bound(timestamptz) AS
                 SELECT count(*) FROM events WHERE id >= snowflake_min_id($1)"
        ))?;
        for (call, condition) in [
            (format!("by_server({constants})"), by_server),
            (format!("by_server({HOUR})"), by_server),
            (format!("by_layout({constants}, 'default')"), by_layout),
            (format!("by_bound('{since}')"), "(id >= snowflake_min_id("),
        ] {
            let plan = plan(client, &format!("EXECUTE {call}"))?;
            assert_index_range(&plan, &[condition]);
            assert_eq!(number(client, &format!("EXECUTE {call}"))?, *rows, "{call}");
            plans += 1;
        }
        client.batch_execute("DEALLOCATE ALL; SET LOCAL plan_cache_mode = auto")?;
    }
    // As a driver does it: by the extended protocol, whichever plan it takes.
    // The parameters are texts, so that this test needs no library for times.
    let statement = client.prepare(
        "SELECT count(*) FROM events
         WHERE snowflake_between(id, $1::text::timestamptz, $2::text::timestamptz)",
    )?;
    for _ in 0..12 {
        let count: i64 = client.query_one(&statement, &[since, until])?.get(0);
        assert_eq!(count, *rows);
    }
    println!("ranges: {plans} plans of prepared statements, custom and generic: Index Cond on id");
    Ok(())
}

/// Through a view, a join and subqueries, and past a search path with a trap.
fn queries_around_the_range(client: &mut Client, hour: &LastHour) -> Result<()> {
    let LastHour { since, until, rows } = hour;
    client.batch_execute(&format!(
        "CREATE VIEW recent AS SELECT * FROM events WHERE snowflake_between(id, {HOUR});
         CREATE TABLE windows AS SELECT '{since}'::timestamptz AS since, '{until}'::timestamptz AS until;
         CREATE SCHEMA trap;
         CREATE FUNCTION trap.snowflake_max_id_before(timestamptz) RETURNS bigint
             IMMUTABLE LANGUAGE sql AS 'SELECT 0::bigint';
         CREATE FUNCTION trap.never(bigint, bigint) RETURNS boolean
             IMMUTABLE LANGUAGE sql AS 'SELECT false';
         CREATE OPERATOR trap.<= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.never);
         CREATE OPERATOR trap.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.never)"
    ))?;
    for (path, from) in [
        ("public", "recent"),
        (
            "public",
            "windows AS w JOIN events AS e ON snowflake_between(e.id, w.since, w.until)",
        ),
        (
            "public",
            "events WHERE snowflake_between(id, (SELECT since FROM windows), (SELECT until FROM windows))",
        ),
        (
            "trap, pg_catalog, public",
            &format!("events WHERE public.snowflake_between(id, {HOUR})"),
        ),
    ] {
        let query = format!("SELECT count(*) FROM {from}");
        client.batch_execute(&format!("SET LOCAL search_path = {path}"))?;
        let plan = plan(client, &query)?;
        assert!(
            plan.contains("events_pkey") && plan.contains("max_id_before"),
            "{from}:\n{plan}"
        );
        assert!(!plan.contains("Filter") && !plan.contains("trap"), "{plan}");
        assert_eq!(number(client, &query)?, *rows, "{from}");
    }
    client.batch_execute("SET LOCAL search_path = public")?;
    let deleting = plan(
        client,
        "DELETE FROM events WHERE snowflake_between(id, '-infinity', now())",
    )?;
    assert!(deleting.contains("snowflake_max_id_before"), "{deleting}");
    println!("ranges: the same through a view, a join, subqueries, past a search path with a trap");
    Ok(())
}

/// What the planner expects of the scan.
fn expected_rows(plan: &str) -> Result<i64> {
    let (_, rest) = plan.split_once("rows=").context("no estimate")?;
    let digits = rest.split(' ').next().unwrap_or_default();
    Ok(digits.parse()?)
}

fn row_estimates(client: &mut Client) -> Result<()> {
    let first = "(SELECT snowflake_timestamp(min(id)) FROM events)";
    let mut checked = 0;
    let mut worst: f64 = 1.0;
    for (from, length) in [
        ("0 hours", "1 minute"),
        ("0 hours", "24 hours 1 second"),
        ("3 hours", "10 minutes"),
        ("7 hours 13 minutes", "1 minute"),
        ("11 hours", "1 hour"),
        ("16 hours", "8 hours"),
        ("18 hours", "6 hours"),
        ("23 hours", "1 hour"),
        ("23 hours 59 minutes", "1 minute"),
    ] {
        let since = value(client, &format!("SELECT {first} + interval '{from}'"))?;
        let until = value(
            client,
            &format!("SELECT '{since}'::timestamptz + interval '{length}'"),
        )?;
        let truth = number(
            client,
            &format!(
                "SELECT count(*) FROM events WHERE snowflake_timestamp(id) >= '{since}'
                                               AND snowflake_timestamp(id) < '{until}'"
            ),
        )?;
        assert!(truth > rows() * 6 / 10_000, "{truth} rows in {length}");
        for range in [
            format!("snowflake_between(id, '{since}', '{until}')"),
            format!("snowflake_between(id, '{since}', '{until}', 'default')"),
            format!(
                "id >= snowflake_min_id('{since}', 'default')
                 AND id <= snowflake_max_id('{until}', 'default')"
            ),
        ] {
            let plan = explained(
                client,
                &format!("EXPLAIN SELECT * FROM events WHERE {range}"),
            )?;
            let ratio = expected_rows(&plan)? as f64 / truth as f64;
            worst = worst.max(ratio).max(1.0 / ratio);
            checked += 1;
            assert!(
                (0.5..=2.0).contains(&ratio),
                "{truth} rows are there:\n{plan}"
            );
        }
    }
    println!(
        "ranges: {checked} row estimates of ranges from a minute to a day: off by a factor of \
         {worst:.3} at most"
    );
    Ok(())
}

fn parallel_plans(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
         SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0;
         -- The largest time is read from the index otherwise.
         SET snowflake.enable_time_ranges = off",
    )?;
    let time = "timestamptz '2026-06-01 00:00+00' + (id % 1000) * interval '1 ms'";
    let hours = "now() - interval '9 hours', now() - interval '1 hour'";
    let mut aggregates = Vec::new();
    for layout in ["", ", 'default'"] {
        aggregates.extend([
            format!("max(snowflake_timestamp(id{layout}))"),
            format!("sum(snowflake_node_id(id{layout}))"),
            format!("sum(snowflake_backend_id(id{layout}))"),
            format!("sum(snowflake_sequence(id{layout}))"),
            format!("sum((snowflake_decode(id{layout})).sequence)"),
            format!("sum(snowflake_compose({time}, 1, (id % 16)::int, (id % 4096)::int{layout}))"),
            format!("sum(snowflake_min_id({time}{layout}))"),
            format!("sum(snowflake_max_id({time}{layout}))"),
            format!("count(*) FILTER (WHERE snowflake_between(id, {hours}{layout}))"),
            format!("sum(length(snowflake_explain(id{layout})))"),
        ]);
    }
    for encoding in ["", ", 'base62'"] {
        aggregates.extend([
            format!("max(snowflake_to_text(id{encoding}) COLLATE \"C\")"),
            format!("sum(snowflake_from_text(snowflake_to_text(id{encoding}){encoding}))"),
        ]);
    }
    client.batch_execute("BEGIN")?;
    for aggregate in &aggregates {
        let plan = plan(client, &format!("SELECT {aggregate} FROM events"))?;
        assert!(
            plan.contains("Gather\n") && plan.contains("Partial Aggregate"),
            "{aggregate}:\n{plan}"
        );
    }
    // One scan for all of them, over a part of the rows for the time it takes.
    let query = format!(
        "SELECT concat_ws(' ', count(*), {}) FROM events WHERE (id >> 12) % 16 < 3",
        aggregates.join(", ")
    );
    let plan = explained(
        client,
        &format!("EXPLAIN (ANALYZE, COSTS off, TIMING off) {query}"),
    )?;
    ensure!(plan.contains("Workers Launched: 2"), "{plan}");
    let together = value(client, &query)?;
    client.batch_execute("SET LOCAL max_parallel_workers_per_gather = 0")?;
    let alone = value(client, &query)?;
    assert_eq!(together, alone);
    client.batch_execute("COMMIT")?;
    println!(
        "ranges: {} aggregates over the functions on {} rows: Gather with Partial Aggregate; two \
         workers and none give the same on {} rows",
        aggregates.len(),
        grouped(rows()),
        alone.split(' ').next().unwrap_or_default(),
    );
    Ok(())
}

/// The partitions that a plan reads, in its order.
fn partitions_read(plan: &str) -> Vec<String> {
    plan.lines()
        .filter(|line| line.contains(" on parted_p") && !line.contains("(never executed)"))
        .filter(|line| line.contains("Scan"))
        .filter_map(|line| {
            let (_, rest) = line.split_once(" on parted_p")?;
            Some(rest.split(' ').next()?.to_owned())
        })
        .collect()
}

/// The partitions of three days, of thirty that there are.
const DAYS: [&str; 3] = ["20260510", "20260511", "20260512"];
const WITHIN: &str = "'2026-05-10 06:00', '2026-05-12 18:00'";

#[test]
fn partitions_are_pruned() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let client = &mut cluster.connect()?;
    client.batch_execute(
        "CREATE TABLE parted (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id);
         DO $$
         DECLARE statement text;
         BEGIN
             FOR statement IN SELECT snowflake_partitions.ddl('parted', '2026-05-01', '2026-05-31', '1 day')
             LOOP
                 EXECUTE statement;
             END LOOP;
         END $$;
         INSERT INTO parted SELECT snowflake_compose(at, 1, 2, 3), 'n'
         FROM generate_series(timestamptz '2026-05-01', '2026-05-30 23:59', '1 minute') AS at;
         CREATE TABLE windows (since timestamptz, until timestamptz);
         INSERT INTO windows VALUES ('2026-05-03 10:00', '2026-05-03 11:00'),
                                    ('2026-05-20 23:00', '2026-05-21 01:00')",
    )?;
    // The partitions have indexes and few rows: any kind of scan will do.
    client.batch_execute("ANALYZE parted; SET jit = off")?;
    let all = plan(client, "SELECT * FROM parted")?;
    assert_eq!(partitions_read(&all).len(), 30, "{all}");
    pruned_by_a_layout(client)?;
    pruned_at_run_time(client)?;
    pruned_with_parameters(client)?;
    pruned_to_the_day(client)
}

/// With a layout the bounds are constants: pruned while it is planned.
fn pruned_by_a_layout(client: &mut Client) -> Result<()> {
    for range in [
        &format!("snowflake_between(id, {WITHIN}, 'default')"),
        "id >= snowflake_min_id('2026-05-10 06:00', 'default')
         AND id <= snowflake_max_id('2026-05-12 18:00', 'default')",
    ] {
        for statement in [
            "SELECT * FROM parted",
            "DELETE FROM parted",
            "UPDATE parted SET note = 'm'",
        ] {
            let plan = plan(client, &format!("{statement} WHERE {range}"))?;
            assert_eq!(partitions_read(&plan), DAYS, "{plan}");
            assert!(!plan.contains("Subplans Removed"), "{plan}");
        }
    }
    println!("ranges: 6 statements with a layout: 3 of 30 partitions in the plan");
    Ok(())
}

/// Without a layout the bounds are known when the query runs.
fn pruned_at_run_time(client: &mut Client) -> Result<()> {
    for range in [
        &format!("snowflake_between(id, {WITHIN})"),
        "id >= snowflake_min_id('2026-05-10 06:00') AND id <= snowflake_max_id('2026-05-12 18:00')",
        "snowflake_between(id, timestamptz '2026-05-11 12:00' - interval '30 hours',
                           timestamptz '2026-05-11 12:00' + interval '30 hours')",
    ] {
        let plan = plan(client, &format!("SELECT * FROM parted WHERE {range}"))?;
        assert_eq!(partitions_read(&plan), DAYS, "{plan}");
        assert!(plan.contains("Subplans Removed: 27"), "{plan}");
    }
    // From row to row of another table.
    let joined = explained(
        client,
        "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off)
         SELECT * FROM windows AS w,
             LATERAL (SELECT count(*) FROM parted AS p WHERE snowflake_between(p.id, w.since, w.until)) AS c",
    )?;
    assert_eq!(partitions_read(&joined).len(), 3, "{joined}");
    println!("ranges: 4 queries without a layout: the other partitions removed at run time");
    Ok(())
}

fn pruned_with_parameters(client: &mut Client) -> Result<()> {
    for (types, parameters, call) in [
        ("timestamptz, timestamptz", "$1, $2", WITHIN.to_owned()),
        (
            "timestamptz, timestamptz, text",
            "$1, $2, $3",
            format!("{WITHIN}, 'default'"),
        ),
    ] {
        for mode in ["force_generic_plan", "force_custom_plan"] {
            client.batch_execute(&format!(
                "SET plan_cache_mode = {mode};
                 PREPARE days({types}) AS
                     SELECT count(*) FROM parted WHERE snowflake_between(id, {parameters})"
            ))?;
            let plan = plan(client, &format!("EXECUTE days({call})"))?;
            assert_eq!(partitions_read(&plan), DAYS, "{mode}:\n{plan}");
            let at_plan_time = mode == "force_custom_plan" && parameters.contains("$3");
            assert_eq!(
                plan.contains("Subplans Removed: 27"),
                !at_plan_time,
                "{plan}"
            );
            assert_eq!(number(client, &format!("EXECUTE days({call})"))?, 60 * 60);
            client.batch_execute("DEALLOCATE days; RESET plan_cache_mode")?;
        }
    }
    println!(
        "ranges: 4 prepared statements: pruned at run time, or with a layout in a custom plan"
    );
    Ok(())
}

/// A whole day has a partition: the day before is not read as well.
fn pruned_to_the_day(client: &mut Client) -> Result<()> {
    for range in [
        "snowflake_between(id, '2026-05-10', '2026-05-11')",
        "snowflake_between(id, '2026-05-10', '2026-05-11', 'default')",
        "id >= snowflake_min_id('2026-05-10', 'default')
         AND id < snowflake_min_id('2026-05-11', 'default')",
    ] {
        let plan = plan(client, &format!("SELECT * FROM parted WHERE {range}"))?;
        assert_eq!(partitions_read(&plan), ["20260510"], "{plan}");
    }
    println!("ranges: a whole day reads its own partition only");
    Ok(())
}

//! A range of time is a range of the primary key: plans, estimates and
//! pruning over `snowflake_between` and the bounds under it, the bounds
//! themselves against arithmetic written down a second time, and parallel
//! plans over every function that reads an ID.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use snowflake_tests::Cluster;
use snowflake_tests::ids::grouped;
use snowflake_tests::outcome::{refusal, text};

/// The rows of the table that ranges are read from.
const ROWS: i64 = 1_000_000;

fn plan(client: &mut Client, statement: &str) -> Result<String> {
    let rows = client
        .query(statement, &[])
        .with_context(|| format!("running: {statement}"))?;
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

/// A million IDs, one every 86.4 ms of the 24 hours before now, from 16
/// backend slots.
fn make_events(client: &mut Client) -> Result<()> {
    client.batch_execute(&format!(
        "SET jit = off;
         CREATE TABLE events (id bigint, note text);
         INSERT INTO events
             SELECT snowflake_compose(now() - interval '24 hours' + n * interval '86.4 ms', 1,
                                      (n % 16)::int, (n % 4096)::int), 'n'
             FROM generate_series(0, {ROWS} - 1) AS n;
         ALTER TABLE events ADD PRIMARY KEY (id)"
    ))?;
    // Not in a transaction, which the statements above were.
    client.batch_execute("VACUUM (ANALYZE, FREEZE) events")?;
    assert_eq!(number(client, "SELECT count(*) FROM events")?, ROWS);
    Ok(())
}

#[test]
fn a_million_rows() -> Result<()> {
    let cluster = Cluster::builder()
        .conf("snowflake.node_id", 1)
        .conf("autovacuum", "off")
        .start_with_extension()?;
    let mut client = cluster.connect()?;
    make_events(&mut client)?;
    ranges_use_the_primary_key(&mut client)?;
    row_estimates(&mut client)?;
    parallel_plans(&mut client)
}

fn ranges_use_the_primary_key(client: &mut Client) -> Result<()> {
    // `now()` stays the same within the transaction, so plan, answer and truth
    // are about the same hour.
    client.batch_execute("BEGIN")?;
    let hour = "now() - interval '1 hour', now()";
    let since = value(client, "SELECT now() - interval '1 hour'")?;
    let until = value(client, "SELECT now()")?;
    let constants = format!("'{since}', '{until}'");
    let truth = number(
        client,
        "SELECT count(*) FROM events WHERE snowflake_timestamp(id) >= now() - interval '1 hour'
                                       AND snowflake_timestamp(id) < now()",
    )?;
    // The data ended when it was made, a few seconds ago.
    assert!((40_000..=41_667).contains(&truth), "{truth} rows");
    let before = "(id <= snowflake_max_id_before";
    let constant = "(id <= '";
    let ranges = [
        (format!("snowflake_between(id, {hour})"), before),
        (
            format!("snowflake_between(id, {hour}, 'default')"),
            "(id <= snowflake_max_id_before(now(), 'default'::text))",
        ),
        (format!("snowflake_between(id, {constants})"), before),
        (
            format!("snowflake_between(id, {constants}, 'default')"),
            constant,
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
    let mut plans = 0;
    for (range, condition) in &ranges {
        let query = format!("SELECT count(*) FROM events WHERE {range}");
        let plan = plan(client, &format!("EXPLAIN (COSTS off) {query}"))?;
        assert_index_range(&plan, &["(id >=", condition]);
        assert!(plan.contains("Index Only Scan"), "{plan}");
        assert_eq!(number(client, &query)?, truth, "{range}");
        let query = format!("SELECT note FROM events WHERE {range}");
        let plan = self::plan(client, &format!("EXPLAIN (COSTS off) {query}"))?;
        assert_index_range(&plan, &["(id >=", condition]);
        plans += 2;
    }
    println!(
        "ranges: {plans} plans of {} ways to write the last hour: Index (Only) Scan, Index Cond on \
         id, no filter; {truth} of {ROWS} rows each",
        ranges.len()
    );

    let mut plans = 0;
    for (mode, condition) in [
        ("force_custom_plan", "(id <= snowflake_max_id_before('"),
        ("force_generic_plan", "(id <= snowflake_max_id_before($2))"),
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
        let with_layout = match mode {
            "force_custom_plan" => "(id <= '",
            _ => "(id <= snowflake_max_id_before($2, $3))",
        };
        for (call, condition) in [
            (format!("by_server({constants})"), condition),
            (format!("by_server({hour})"), condition),
            (format!("by_layout({constants}, 'default')"), with_layout),
            (format!("by_bound('{since}')"), "(id >= snowflake_min_id("),
        ] {
            let plan = plan(client, &format!("EXPLAIN (COSTS off) EXECUTE {call}"))?;
            assert_index_range(&plan, &[condition]);
            assert_eq!(number(client, &format!("EXECUTE {call}"))?, truth, "{call}");
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
        let count: i64 = client.query_one(&statement, &[&since, &until])?.get(0);
        assert_eq!(count, truth);
    }
    drop(statement);
    println!("ranges: {plans} plans of prepared statements, custom and generic: Index Cond on id");

    client.batch_execute(&format!(
        "CREATE VIEW recent AS
             SELECT * FROM events WHERE snowflake_between(id, now() - interval '1 hour', now());
         CREATE TABLE windows AS SELECT '{since}'::timestamptz AS since, '{until}'::timestamptz AS until;
         CREATE SCHEMA trap;
         CREATE FUNCTION trap.snowflake_max_id_before(timestamptz) RETURNS bigint
             IMMUTABLE LANGUAGE sql AS 'SELECT 0::bigint';
         CREATE FUNCTION trap.never(bigint, bigint) RETURNS boolean
             IMMUTABLE LANGUAGE sql AS 'SELECT false';
         CREATE OPERATOR trap.<= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.never);
         CREATE OPERATOR trap.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.never)"
    ))?;
    let trapped = format!("SELECT count(*) FROM events WHERE public.snowflake_between(id, {hour})");
    for (what, path, query) in [
        ("a view", "public", "SELECT count(*) FROM recent".to_owned()),
        (
            "a join",
            "public",
            "SELECT count(e.id) FROM windows AS w
             JOIN events AS e ON snowflake_between(e.id, w.since, w.until)"
                .to_owned(),
        ),
        (
            "subqueries",
            "public",
            "SELECT count(*) FROM events WHERE snowflake_between(
                 id, (SELECT since FROM windows), (SELECT until FROM windows))"
                .to_owned(),
        ),
        (
            "a search path with a trap",
            "trap, pg_catalog, public",
            trapped,
        ),
    ] {
        client.batch_execute(&format!("SET LOCAL search_path = {path}"))?;
        let plan = plan(client, &format!("EXPLAIN (COSTS off) {query}"))?;
        assert!(
            plan.contains("events_pkey") && plan.contains("max_id_before"),
            "{what}:\n{plan}"
        );
        assert!(!plan.contains("Filter") && !plan.contains("trap"), "{plan}");
        assert_eq!(number(client, &query)?, truth, "{what}");
        client.batch_execute("SET LOCAL search_path = public")?;
    }
    let deleting = plan(
        client,
        "EXPLAIN (COSTS off) DELETE FROM events WHERE snowflake_between(id, '-infinity', now())",
    )?;
    assert!(deleting.contains("snowflake_max_id_before"), "{deleting}");
    client.batch_execute("ROLLBACK")?;
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
        assert!(truth > 600, "{truth} rows in {length}");
        for range in [
            format!("snowflake_between(id, '{since}', '{until}')"),
            format!("snowflake_between(id, '{since}', '{until}', 'default')"),
            format!(
                "id >= snowflake_min_id('{since}', 'default')
                 AND id <= snowflake_max_id('{until}', 'default')"
            ),
        ] {
            let plan = plan(
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
         SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0",
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
        let plan = plan(
            client,
            &format!("EXPLAIN (COSTS off) SELECT {aggregate} FROM events"),
        )?;
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
    let plan = plan(
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
        grouped(ROWS as u64),
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

#[test]
fn partitions_are_pruned() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE parted (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id);
         DO $$
         DECLARE statement text;
         BEGIN
             FOR statement IN SELECT snowflake_partition_ddl('parted', '2026-05-01', '2026-05-31', '1 day')
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
    // The partitions have indexes and few rows; which scan is not the matter.
    client.batch_execute("ANALYZE parted; SET jit = off")?;
    let all = plan(client, "EXPLAIN (COSTS off) SELECT * FROM parted")?;
    assert_eq!(partitions_read(&all).len(), 30, "{all}");

    let within = "'2026-05-10 06:00', '2026-05-12 18:00'";
    let days = ["20260510", "20260511", "20260512"];
    let mut plans = 0;
    // With a layout the bounds are constants: pruned while it is planned.
    for range in [
        format!("snowflake_between(id, {within}, 'default')"),
        "id >= snowflake_min_id('2026-05-10 06:00', 'default')
         AND id <= snowflake_max_id('2026-05-12 18:00', 'default')"
            .to_owned(),
    ] {
        for statement in ["SELECT * FROM", "DELETE FROM", "UPDATE"] {
            let set = if statement == "UPDATE" {
                "SET note = 'm'"
            } else {
                ""
            };
            let plan = plan(
                client,
                &format!("EXPLAIN (COSTS off) {statement} parted {set} WHERE {range}"),
            )?;
            assert_eq!(partitions_read(&plan), days, "{plan}");
            assert!(!plan.contains("Subplans Removed"), "{plan}");
            plans += 1;
        }
    }
    println!("ranges: {plans} statements with a layout: 3 of 30 partitions in the plan");

    // Without, the bounds are known when it runs.
    let mut plans = 0;
    for range in [
        format!("snowflake_between(id, {within})"),
        "id >= snowflake_min_id('2026-05-10 06:00') AND id <= snowflake_max_id('2026-05-12 18:00')"
            .to_owned(),
        "snowflake_between(id, timestamptz '2026-05-11 12:00' - interval '30 hours',
                           timestamptz '2026-05-11 12:00' + interval '30 hours')"
            .to_owned(),
    ] {
        let plan = plan(
            client,
            &format!("EXPLAIN (COSTS off) SELECT * FROM parted WHERE {range}"),
        )?;
        assert_eq!(partitions_read(&plan), days, "{plan}");
        assert!(plan.contains("Subplans Removed: 27"), "{plan}");
        plans += 1;
    }
    for (types, parameters, call) in [
        ("timestamptz, timestamptz", "$1, $2", within.to_owned()),
        (
            "timestamptz, timestamptz, text",
            "$1, $2, $3",
            format!("{within}, 'default'"),
        ),
    ] {
        for mode in ["force_generic_plan", "force_custom_plan"] {
            client.batch_execute(&format!(
                "SET plan_cache_mode = {mode};
                 PREPARE days({types}) AS
                     SELECT count(*) FROM parted WHERE snowflake_between(id, {parameters})"
            ))?;
            let plan = plan(client, &format!("EXPLAIN (COSTS off) EXECUTE days({call})"))?;
            assert_eq!(partitions_read(&plan), days, "{mode}:\n{plan}");
            let at_plan_time = mode == "force_custom_plan" && parameters.contains("$3");
            assert_eq!(
                !plan.contains("Subplans Removed: 27"),
                at_plan_time,
                "{plan}"
            );
            assert_eq!(number(client, &format!("EXECUTE days({call})"))?, 60 * 60);
            client.batch_execute("DEALLOCATE days; RESET plan_cache_mode")?;
            plans += 1;
        }
    }
    // From row to row of another table.
    let joined = plan(
        client,
        "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off)
         SELECT * FROM windows AS w,
             LATERAL (SELECT count(*) FROM parted AS p WHERE snowflake_between(p.id, w.since, w.until)) AS c",
    )?;
    let read: Vec<_> = joined
        .lines()
        .filter(|line| line.contains(" on parted_p") && line.contains("Scan"))
        .filter(|line| !line.contains("never executed"))
        .collect();
    assert_eq!(read.len(), 3, "{joined}");
    plans += 1;
    println!(
        "ranges: {plans} statements without, with parameters, with a join: 27 of 30 removed at run \
         time, or in a custom plan with a layout before"
    );

    // Whole days with a partition each, which is what is asked for the most:
    // not the day before as well.
    for layout in ["", ", 'default'"] {
        let plan = plan(
            client,
            &format!(
                "EXPLAIN (COSTS off) SELECT * FROM parted
                 WHERE snowflake_between(id, '2026-05-10', '2026-05-11'{layout})"
            ),
        )?;
        let read = partitions_read(&plan);
        println!("ranges: a whole day reads the partitions {read:?}");
        assert_eq!(read, ["20260510"], "{plan}");
    }
    let edges = "id >= snowflake_min_id('2026-05-10', 'default')
                 AND id < snowflake_min_id('2026-05-11', 'default')";
    let plan = plan(
        client,
        &format!("EXPLAIN (COSTS off) SELECT * FROM parted WHERE {edges}"),
    )?;
    assert_eq!(partitions_read(&plan), ["20260510"], "{plan}");
    Ok(())
}

/// What postgres counts its times from, 2000-01-01T00:00:00Z, is 0 here, and
/// these two are the first microsecond that a timestamptz holds and the first
/// that it doesn't: 4714-11-24 BC and 294277-01-01.
const FIRST: i64 = -211_813_488_000_000_000;
const END: i64 = 9_223_371_331_200_000_000;

/// A layout and what its IDs mean, by arithmetic that shares nothing with the
/// extension's.
struct Model {
    /// Bits by name from the most significant down, the timestamp first.
    fields: Vec<(&'static str, u32)>,
    /// Microseconds.
    tick: i64,
    /// Microseconds since 2000.
    epoch: i64,
}

impl Model {
    fn random(random: &mut StdRng) -> Self {
        let mut fields = vec![("sequence", random.random_range(1..=20))];
        if random.random_bool(0.8) {
            fields.push(("node", random.random_range(1..=18)));
        }
        if random.random_bool(0.6) {
            fields.push(("backend", random.random_range(1..=12)));
        }
        fields.shuffle(random);
        let below: u32 = fields.iter().map(|(_, bits)| bits).sum();
        let timestamp = match random.random_range(0..10) {
            0 => random.random_range(1..=63 - below),
            1..4 => 63 - below,
            _ => random.random_range(28.min(63 - below)..=63 - below),
        };
        fields.insert(0, ("timestamp", timestamp));
        let tick = match random.random_range(0..4) {
            0 => *[1, 10, 1_000, 10_000, 1_000_000]
                .choose(random)
                .unwrap_or(&1),
            1 => random.random_range(1..=1_000) * 1_000,
            2 => random.random_range(1..=1_000_000),
            _ => 1_000,
        };
        // Years 1000 to 2100, more often than not since 1970.
        let epoch = match random.random_range(0..3) {
            0 => random.random_range(-31_556_952_000_000_000..3_000_000_000_000_000),
            1 => random.random_range(-946_684_800_i64..1_000_000_000) * 1_000_000,
            _ => random.random_range(-946_684_800_000_i64..1_000_000_000_000) * 1_000,
        };
        Self {
            fields,
            tick,
            epoch,
        }
    }

    fn shift(&self) -> u32 {
        self.fields[1..].iter().map(|(_, bits)| bits).sum()
    }

    fn last_tick(&self) -> i64 {
        i64::MAX >> (63 - self.fields[0].1)
    }

    fn last_id(&self) -> i64 {
        i64::MAX >> (63 - self.fields[0].1 - self.shift())
    }

    /// May lie past what an i64 of microseconds holds.
    fn time(&self, id: i64) -> i128 {
        i128::from(self.epoch) + i128::from(id >> self.shift()) * i128::from(self.tick)
    }

    fn field(&self, id: i64, name: &str) -> i32 {
        let mut shift = 0;
        for &(field, bits) in self.fields.iter().rev() {
            if field == name {
                return ((id >> shift) & ((1 << bits) - 1)) as i32;
            }
            shift += bits;
        }
        0
    }

    fn max(&self, name: &str) -> i32 {
        self.field(i64::MAX, name)
    }

    fn min_id(&self, at: i64) -> Option<i64> {
        let since_epoch = i128::from(at) - i128::from(self.epoch);
        let tick = (since_epoch.max(0) + i128::from(self.tick) - 1) / i128::from(self.tick);
        let tick = i64::try_from(tick)
            .ok()
            .filter(|&it| it <= self.last_tick())?;
        Some(tick << self.shift())
    }

    fn max_id(&self, at: i64) -> i64 {
        if at < self.epoch {
            return -1;
        }
        let tick = (i128::from(at) - i128::from(self.epoch)) / i128::from(self.tick);
        let tick = i64::try_from(tick)
            .unwrap_or(i64::MAX)
            .min(self.last_tick());
        (tick << self.shift()) | ((1 << self.shift()) - 1)
    }

    /// An ID at random, now and then the first, the last or one of the first
    /// ticks.
    fn random_id(&self, random: &mut StdRng) -> i64 {
        match random.random_range(0..20) {
            0 => 0,
            1 => self.last_id(),
            2 => self.last_id() & !((1 << self.shift()) - 1),
            3 => random.random_range(0..=self.last_id().min(4 << self.shift())),
            // Within the next centuries, whatever the layout could hold.
            4..12 => {
                let ticks = (10_000_000_000_000_000 / self.tick).min(self.last_tick());
                let low = random.random_range(0..1_i64 << self.shift());
                (random.random_range(0..=ticks) << self.shift()) | low
            }
            _ => random.random_range(0..=self.last_id()),
        }
    }

    /// An instant at random: near an ID's time, near the layout's ends, or
    /// anywhere.
    fn random_instant(&self, id: i64, random: &mut StdRng) -> i64 {
        let near = |time: i128, by: i64| -> i64 {
            i64::try_from(time)
                .unwrap_or(i64::MAX)
                .saturating_add(by)
                .clamp(FIRST, END - 1)
        };
        match random.random_range(0..12) {
            0 => near(self.time(id), 0),
            1 => near(self.time(id), 1),
            2 => near(self.time(id), -1),
            3 => near(
                self.time(id),
                *[self.tick, -self.tick].choose(random).unwrap_or(&0),
            ),
            4 => near(self.time(id), random.random_range(-self.tick..=self.tick)),
            5 => near(
                self.time(id),
                random.random_range(-1_000_000_000_000..=1_000_000_000_000),
            ),
            6 => near(self.time(self.random_id(random)), 0),
            7 => near(i128::from(self.epoch), random.random_range(-2..=2)),
            8 => near(self.time(self.last_id()), random.random_range(-2..=2)),
            9 => near(self.time(self.last_id()), self.tick),
            10 => *[FIRST, END - 1].choose(random).unwrap_or(&FIRST),
            _ => random.random_range(FIRST..END),
        }
    }
}

/// `at` makes a timestamptz of microseconds since 2000: `extract(epoch ...)`,
/// the other way, is not exact after the year 294247. The others are functions
/// that say with a NULL that they were answered with 22003, and fail with any
/// other error.
const HELPERS: &str = "
CREATE FUNCTION at(micros bigint) RETURNS timestamptz LANGUAGE sql RETURN
    timestamptz '2000-01-01 00:00+00' + make_interval(days => (micros / 86400000000)::int)
        + make_interval(secs => (micros % 86400000000) / 1000000.0);
CREATE FUNCTION time_or_null(id bigint, layout text) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    RETURN snowflake_timestamp(id, layout);
EXCEPTION WHEN numeric_value_out_of_range THEN
    RETURN NULL;
END $$;
CREATE FUNCTION min_id_or_null(at timestamptz, layout text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN snowflake_min_id(at, layout);
EXCEPTION WHEN numeric_value_out_of_range THEN
    RETURN NULL;
END $$;
CREATE FUNCTION between_or_null(id bigint, since timestamptz, until timestamptz, layout text)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN snowflake_between(id, since, until, layout);
EXCEPTION WHEN numeric_value_out_of_range THEN
    RETURN NULL;
END $$;
CREATE FUNCTION compose_or_null(at timestamptz, node int, backend int, sequence int, layout text)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN snowflake_compose(at, node, backend, sequence, layout);
EXCEPTION WHEN numeric_value_out_of_range THEN
    RETURN NULL;
END $$;
";

/// Layouts at random, in the table `layouts`: number and text. Postgres writes
/// their epochs, so that the extension reads a text that it did not write.
fn make_layouts(client: &mut Client, count: usize, random: &mut StdRng) -> Result<Vec<Model>> {
    let models: Vec<Model> = (0..count).map(|_| Model::random(random)).collect();
    client.batch_execute("CREATE TABLE layouts (number int PRIMARY KEY, layout text)")?;
    let epochs: Vec<i64> = models.iter().map(|model| model.epoch).collect();
    let parts: Vec<String> = models
        .iter()
        .map(|model| {
            let fields: Vec<String> = model
                .fields
                .iter()
                .map(|(name, bits)| format!("{name}:{bits}"))
                .collect();
            format!("{} tick:{}us", fields.join(" "), model.tick)
        })
        .collect();
    client.execute(
        "INSERT INTO layouts
             SELECT number - 1, parts || ' epoch:'
                 || to_char(at(epoch) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')
             FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS it(parts, epoch, number)",
        &[&parts, &epochs],
    )?;
    Ok(models)
}

/// Cases for which a condition holds that never may.
fn assert_never(client: &mut Client, table: &str, what: &str, condition: &str) -> Result<()> {
    let row = client.query_one(
        &format!(
            "SELECT count(*), min(c::text) FROM {table} AS c WHERE ({condition}) IS DISTINCT FROM false"
        ),
        &[],
    )?;
    let (count, example): (i64, Option<String>) = (row.get(0), row.get(1));
    assert_eq!(count, 0, "{what}: wrong, for example {example:?}");
    Ok(())
}

#[test]
fn bounds_are_exact() -> Result<()> {
    const LAYOUTS: usize = 500;
    const CASES: usize = 200;
    let seed: u64 = rand::random();
    let mut random = StdRng::seed_from_u64(seed);
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(HELPERS)?;
    let models = make_layouts(client, LAYOUTS, &mut random)?;

    let (mut numbers, mut ids) = (Vec::new(), Vec::new());
    let (mut since, mut until) = (Vec::new(), Vec::new());
    let (mut times, mut min_ids, mut max_ids, mut between) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut nodes, mut backends, mut sequences) = (Vec::new(), Vec::new(), Vec::new());
    for (number, model) in models.iter().enumerate() {
        for _ in 0..CASES {
            let id = model.random_id(&mut random);
            let (a, b) = (
                model.random_instant(id, &mut random),
                model.random_instant(id, &mut random),
            );
            let time = model.time(id);
            numbers.push(number as i32);
            ids.push(id);
            since.push(a);
            until.push(b);
            times.push(
                i64::try_from(time)
                    .ok()
                    .filter(|it| (FIRST..END).contains(it)),
            );
            min_ids.push(model.min_id(a));
            max_ids.push(model.max_id(a));
            between.push(i128::from(a) <= time && time < i128::from(b));
            nodes.push(model.field(id, "node"));
            backends.push(model.field(id, "backend"));
            sequences.push(model.field(id, "sequence"));
        }
    }
    let none = |list: &[Option<i64>]| list.iter().filter(|it| it.is_none()).count();
    let (past_postgres, past_end) = (none(&times), none(&min_ids));
    let inside = between.iter().filter(|&&it| it).count();
    client.execute(
        "CREATE TABLE cases AS
         SELECT layout, id, at(since) AS since, at(until) AS until, time, min_id, max_id, inside,
                node, backend, sequence, tick, NULL::bigint AS min_id_is, NULL::timestamptz AS created_at
         FROM layouts, (SELECT 1 AS tick) AS t, (SELECT 1) AS u,
              LATERAL (SELECT NULL::bigint AS id, 0::bigint AS since, 0::bigint AS until,
                              NULL::bigint AS time, NULL::bigint AS min_id, NULL::bigint AS max_id,
                              false AS inside, 0 AS node, 0 AS backend, 0 AS sequence) AS v
         WHERE false",
        &[],
    )?;
    client.execute(
        "INSERT INTO cases
         SELECT layout, id, at(since), at(until), time, c.min_id, c.max_id, inside, node, backend,
                sequence, substring(layout FROM 'tick:(\\d+)us')::int,
                min_id_or_null(at(since), layout), time_or_null(id, layout)
         FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                     $6::bigint[], $7::bigint[], $8::bool[], $9::int[], $10::int[], $11::int[])
              AS c(number, id, since, until, time, min_id, max_id, inside, node, backend, sequence)
         JOIN layouts USING (number)",
        &[
            &numbers, &ids, &since, &until, &times, &min_ids, &max_ids, &between, &nodes,
            &backends, &sequences,
        ],
    )?;
    let cases = number(client, "SELECT count(*) FROM cases")?;
    assert_eq!(cases, (LAYOUTS * CASES) as i64);
    let conditions = [
        // The instants arrived as they were meant.
        ("an ID's time", "created_at IS DISTINCT FROM at(time)"),
        ("snowflake_min_id", "min_id_is IS DISTINCT FROM min_id"),
        (
            "snowflake_max_id",
            "snowflake_max_id(since, layout) IS DISTINCT FROM max_id",
        ),
        (
            "snowflake_between",
            "between_or_null(id, since, until, layout)
             IS DISTINCT FROM CASE WHEN min_id IS NOT NULL THEN inside END",
        ),
        // The contract's own words. An ID without a time that Postgres could
        // show is later than all it can.
        (
            "id >= min_id(t) exactly when its time is at or after t",
            "(min_id_is IS NOT NULL AND id >= min_id_is) <> (created_at IS NULL OR created_at >= since)",
        ),
        (
            "id <= max_id(t) exactly when its time is at or before t",
            "(id <= snowflake_max_id(since, layout)) <> (created_at IS NOT NULL AND created_at <= since)",
        ),
        (
            "between exactly when since <= time < until",
            "coalesce(between_or_null(id, since, until, layout)
             <> (created_at IS NOT NULL AND created_at >= since AND created_at < until), false)",
        ),
        ("snowflake_node_id", "snowflake_node_id(id, layout) <> node"),
        (
            "snowflake_backend_id",
            "snowflake_backend_id(id, layout) <> backend",
        ),
        (
            "snowflake_sequence",
            "snowflake_sequence(id, layout) <> sequence",
        ),
        (
            "snowflake_decode",
            "CASE WHEN created_at IS NULL THEN false
             ELSE snowflake_decode(id, layout) <> (created_at, node, backend, sequence) END",
        ),
        (
            "snowflake_compose as the inverse",
            "CASE WHEN created_at IS NULL THEN false
             ELSE snowflake_compose(created_at, node, backend, sequence, layout) <> id END",
        ),
        (
            "snowflake_compose of a time within the tick",
            "CASE WHEN created_at IS NULL OR created_at > '294270-01-01' THEN false
             ELSE snowflake_compose(created_at + (tick - 1) * interval '1 microsecond',
                                    node, backend, sequence, layout) <> id END",
        ),
    ];
    for (what, condition) in conditions {
        assert_never(client, "cases", &format!("{what} (seed {seed})"), condition)?;
    }
    println!(
        "ranges: {} IDs and instants in {LAYOUTS} layouts, {} conditions each: {} in their range, \
         {} instants past the layout's end (22003), {} IDs past what Postgres can show",
        grouped(cases as u64),
        conditions.len(),
        grouped(inside as u64),
        grouped(past_end as u64),
        grouped(past_postgres as u64),
    );
    assert!(inside > 10_000 && past_end > 1_000 && past_postgres > 1_000);
    what_compose_refuses(client, &models)?;
    the_ends(client, &models)
}

fn what_compose_refuses(client: &mut Client, models: &[Model]) -> Result<()> {
    let (mut numbers, mut times) = (Vec::new(), Vec::new());
    let mut values: [Vec<i32>; 3] = Default::default();
    let mut add = |number: usize, time: i64, parts: [i32; 3]| {
        numbers.push(number as i32);
        times.push(time);
        for (list, part) in values.iter_mut().zip(parts) {
            list.push(part);
        }
    };
    for (number, model) in models.iter().enumerate() {
        let max = ["node", "backend", "sequence"].map(|name| model.max(name));
        for field in 0..3 {
            for wrong in [-1, i32::MIN, max[field] + 1, i32::MAX] {
                let mut parts = max;
                parts[field] = wrong;
                add(number, model.epoch, parts);
            }
        }
        add(number, model.epoch - 1, max);
        let end = model.time(model.last_id()) + i128::from(model.tick);
        if let Some(end) = i64::try_from(end).ok().filter(|&end| end < END) {
            add(number, end, max);
        }
    }
    let refused = client.query_one(
        "SELECT count(*), count(compose_or_null(at(time), node, backend, sequence, layout))
         FROM unnest($1::int[], $2::bigint[], $3::int[], $4::int[], $5::int[])
              AS c(number, time, node, backend, sequence)
         JOIN layouts USING (number)",
        &[&numbers, &times, &values[0], &values[1], &values[2]],
    )?;
    let (asked, composed): (i64, i64) = (refused.get(0), refused.get(1));
    assert_eq!((asked as usize, composed), (numbers.len(), 0));
    // The last values of each field and the first time, which do fit.
    let fits: i64 = client
        .query_one(
            "SELECT count(*) FROM layouts AS l, snowflake_get_layouts() AS p
             WHERE snowflake_compose((snowflake_decode(0, l.layout)).created_at, 0, 0, 0, l.layout) = 0
               AND snowflake_compose((snowflake_decode(0, p.name)).created_at, 0, 0, 0, p.name) = 0",
            &[],
        )?
        .get(0);
    assert_eq!(fits as usize, models.len() * 13);
    for (call, message, detail) in [
        (
            "snowflake_compose('2026-01-01', 64, 0, 0, 'default')",
            "node 64 is out of range for the layout",
            "The range is 0 to 63.",
        ),
        (
            "snowflake_compose('2026-01-01', 0, -1, 0, 'default')",
            "backend -1 is out of range for the layout",
            "The range is 0 to 15.",
        ),
        (
            "snowflake_compose('2026-01-01', 1, 0, 0, 'mastodon')",
            "node 1 is out of range for the layout",
            "The range is 0 to 0.",
        ),
        (
            "snowflake_compose('2024-12-31 23:59:59.999999+00', 0, 0, 0)",
            "2024-12-31T23:59:59.999999Z is out of range for the layout",
            "The layout \"timestamp:41 node:6 backend:4 sequence:12 tick:1ms \
             epoch:2025-01-01T00:00:00Z\" has IDs from 2025-01-01T00:00:00Z to \
             2094-09-07T15:47:35.551Z.",
        ),
        (
            "snowflake_compose('infinity', 0, 0, 0)",
            "infinity is out of range for the layout",
            "The layout \"timestamp:41 node:6 backend:4 sequence:12 tick:1ms \
             epoch:2025-01-01T00:00:00Z\" has IDs from 2025-01-01T00:00:00Z to \
             2094-09-07T15:47:35.551Z.",
        ),
    ] {
        let refusal = refusal(client, &format!("SELECT {call}"))?;
        assert_eq!(refusal.sqlstate, "22003", "{call}");
        assert_eq!(
            (refusal.message.as_str(), refusal.detail.as_str()),
            (message, detail)
        );
    }
    println!(
        "ranges: {} values and times that don't fit their field: snowflake_compose gave 22003 for each",
        grouped(asked as u64)
    );
    Ok(())
}

/// Before the epoch, past the end and at the infinities, by the contract's table.
fn the_ends(client: &mut Client, models: &[Model]) -> Result<()> {
    let (epochs, lasts): (Vec<i64>, Vec<i64>) = models
        .iter()
        .map(|model| (model.epoch, model.last_id()))
        .unzip();
    let numbers: Vec<i32> = (0..models.len() as i32).collect();
    client.execute(
        "CREATE TABLE ends (layout text, epoch timestamptz, last_id bigint)",
        &[],
    )?;
    client.execute(
        "INSERT INTO ends SELECT layout, at(epoch), last_id
         FROM unnest($1::int[], $2::bigint[], $3::bigint[]) AS c(number, epoch, last_id)
         JOIN layouts USING (number)",
        &[&numbers, &epochs, &lasts],
    )?;
    let before = "epoch - interval '1 microsecond'";
    let conditions = [
        (
            "min_id before the epoch",
            format!("snowflake_min_id({before}, layout) <> 0"),
        ),
        (
            "max_id before the epoch",
            format!("snowflake_max_id({before}, layout) <> -1"),
        ),
        (
            "min_id at the epoch",
            "snowflake_min_id(epoch, layout) <> 0".to_owned(),
        ),
        (
            "max_id at the epoch",
            "snowflake_max_id(epoch, layout) < 0".to_owned(),
        ),
        (
            "min_id of -infinity",
            "snowflake_min_id('-infinity', layout) <> 0".to_owned(),
        ),
        (
            "max_id of -infinity",
            "snowflake_max_id('-infinity', layout) <> -1".to_owned(),
        ),
        (
            "max_id of infinity",
            "snowflake_max_id('infinity', layout) <> last_id".to_owned(),
        ),
        (
            "min_id of infinity",
            "min_id_or_null('infinity', layout) IS NOT NULL".to_owned(),
        ),
        // Open ends let every bigint in, and an ID's own fields are not asked.
        (
            "infinite ends are open",
            "NOT (SELECT bool_and(snowflake_between(id, '-infinity', 'infinity', layout))
                  FROM unnest(ARRAY[0, 1, last_id, 9223372036854775807]) AS id)"
                .to_owned(),
        ),
        (
            "from the epoch on",
            "NOT (snowflake_between(0, epoch, 'infinity', layout)
                  AND snowflake_between(last_id, epoch, 'infinity', layout)
                  AND snowflake_between(last_id, '-infinity', 'infinity', layout))"
                .to_owned(),
        ),
        (
            "an empty range",
            "snowflake_between(0, epoch, epoch, layout)
             OR snowflake_between(0, '-infinity', '-infinity', layout)
             OR snowflake_between(0, '-infinity', epoch, layout)"
                .to_owned(),
        ),
        // As snowflake_min_id says of its lower end.
        (
            "a range past the end",
            "between_or_null(0, 'infinity', 'infinity', layout) IS NOT NULL
             OR between_or_null(last_id, 'infinity', 'infinity', layout) IS NOT NULL
             OR between_or_null(last_id, 'infinity', epoch, layout) IS NOT NULL"
                .to_owned(),
        ),
    ];
    for (what, condition) in &conditions {
        assert_never(client, "ends", what, condition)?;
    }
    let mut by_hand = 0;
    for (expression, expected) in [
        // 2094-09-07T15:47:35.551Z is the beginning of the last tick.
        (
            "snowflake_min_id('2094-09-07 15:47:35.551+00')",
            "9223372036850581504",
        ),
        (
            "snowflake_max_id('2094-09-07 15:47:35.550999+00')",
            "9223372036850581503",
        ),
        ("snowflake_max_id('9999-01-01')", "9223372036854775807"),
        ("snowflake_max_id('infinity', 'js53')", "9007199254740991"),
        (
            "snowflake_min_id('2025-01-01 00:00:00.000001+00')",
            "4194304",
        ),
        (
            "snowflake_max_id('2025-01-01 00:00:00.000999+00')",
            "4194303",
        ),
        (
            "snowflake_min_id('1969-07-20 20:17:40+00', 'timestamp:41 sequence:10 epoch:1969-07-20T20:17:39Z')",
            "1024000",
        ),
        ("snowflake_between(NULL, '-infinity', 'infinity')", "NULL"),
        ("snowflake_between(0, NULL, '2026-01-01')", "NULL"),
        (
            "snowflake_between(9223372036854775807, '2094-09-07 15:47:35.551+00', '9999-01-01')",
            "t",
        ),
        ("snowflake_between(-5, '2025-01-01', '2026-01-01')", "f"),
        (
            "snowflake_between(9007199254740992, '2025-01-01', '9999-01-01', 'js53')",
            "f",
        ),
    ] {
        let found = text(client, &format!("SELECT {expression}"))?;
        assert_eq!(found.as_deref().unwrap_or("NULL"), expected, "{expression}");
        by_hand += 1;
    }
    for call in [
        "snowflake_between(9223372036854775807, '2094-09-07 15:47:35.552+00', '9999-01-01')",
        "snowflake_between(9223372036854775807, '2094-09-07 15:47:35.552+00', 'infinity')",
        "snowflake_min_id('infinity')",
        "snowflake_min_id('2094-09-07 15:47:35.551001+00')",
        "snowflake_min_id('9999-01-01', 'default')",
        "snowflake_min_id('294276-12-31 23:59:59.999999+00', 'uid-generator')",
    ] {
        let refusal = refusal(client, &format!("SELECT {call}"))?;
        assert_eq!(refusal.sqlstate, "22003", "{call}");
        assert!(
            refusal.message.ends_with(" is out of range for the layout"),
            "{refusal}"
        );
        assert!(refusal.detail.contains(" has IDs from "), "{refusal}");
        by_hand += 1;
    }
    println!(
        "ranges: {} rules for before the epoch, past the end and the infinities, in {} layouts; \
         {by_hand} by hand",
        conditions.len(),
        models.len()
    );
    Ok(())
}

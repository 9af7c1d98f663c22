//! `snowflake_partitions.ddl`: its output runs as it is, psql's `\gexec` runs
//! it, and rows land where their time says, across changes of the clocks,
//! whatever the table is called and whichever role owns it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use postgres::Client;
use snowflake_tests::clock::Offset;
use snowflake_tests::migration::{self};
use snowflake_tests::query::{number, value};
use snowflake_tests::server_error::expect_error;
use snowflake_tests::{Cluster, Server};

use crate::support::{column, refused, run};

/// A table that is partitioned as the function expects.
const TABLE: &str = "CREATE TABLE t (id bigint) PARTITION BY RANGE (id)";

fn statements(client: &mut Client, arguments: &str) -> Result<Vec<String>> {
    column(
        client,
        &format!("SELECT snowflake_partitions.ddl({arguments})"),
    )
}

/// A script through psql, which must not meet an error. Returns what psql wrote.
fn psql(server: &Server, user: &str, script: &str) -> Result<String> {
    let written = migration::psql(server, user, "postgres", script, true)?;
    ensure!(
        written.success && written.errors.is_empty(),
        "psql failed:\n{script}\n{}",
        written.errors
    );
    Ok(written.output)
}

/// The partitions of a table in the order of their bounds: name and bounds.
fn partitions(client: &mut Client, parent: &str) -> Result<Vec<(String, i64, i64)>> {
    let rows = client.query(
        "SELECT c.relname::text, b.bounds[1]::bigint, b.bounds[2]::bigint
         FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid,
              LATERAL regexp_match(pg_get_expr(c.relpartbound, c.oid),
                                   '^FOR VALUES FROM \\(''(\\d+)''\\) TO \\(''(\\d+)''\\)$') AS b(bounds)
         WHERE i.inhparent = $1::text::regclass
         ORDER BY 2",
        &[&parent],
    )?;
    Ok(rows
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect())
}

/// Fails where there is a gap, an overlap or an empty partition.
fn assert_gapless(partitions: &[(String, i64, i64)]) {
    for (name, from, to) in partitions {
        assert!(from < to, "{name} is empty");
    }
    for pair in partitions.windows(2) {
        assert_eq!(pair[0].2, pair[1].1, "{} and {}", pair[0].0, pair[1].0);
    }
}

/// Ranges in which the clocks change.
struct Range {
    table: &'static str,
    zone: &'static str,
    since: &'static str,
    until: &'static str,
    step: &'static str,
    /// An expression for the end of a partition's name, from a row's ID.
    name: &'static str,
    partitions: usize,
}

const LOCAL: &str = "to_char(snowflake_timestamp(id), 'YYYYMMDD')";
const UTC: &str = "to_char(snowflake_timestamp(id) AT TIME ZONE 'UTC', 'YYYYMMDD_HH24\"00utc\"')";

/// In the European zone days have 23 hours in March and 25 in October. On Lord
/// Howe the clocks change by half an hour, and in Beirut at midnight, so that a
/// day begins at 1 o'clock. Hours are in UTC.
#[rustfmt::skip]
const RANGES: &[Range] = &[
    Range { table: "march", zone: "Europe/Berlin", since: "2026-03-25", until: "2026-04-02", step: "1 day", name: LOCAL, partitions: 8 },
    Range { table: "october", zone: "Europe/Berlin", since: "2026-10-20", until: "2026-10-30", step: "1 day", name: LOCAL, partitions: 10 },
    Range { table: "howe", zone: "Australia/Lord_Howe", since: "2026-10-01", until: "2026-10-08", step: "1 day", name: LOCAL, partitions: 7 },
    Range { table: "beirut", zone: "Asia/Beirut", since: "2026-03-26", until: "2026-04-02", step: "1 day", name: LOCAL, partitions: 7 },
    Range { table: "months", zone: "Europe/Berlin", since: "2026-01-01", until: "2027-01-01", step: "1 month",
            name: "to_char(snowflake_timestamp(id), 'YYYYMM')", partitions: 12 },
    Range { table: "hours", zone: "Europe/Berlin", since: "2026-10-24 12:00", until: "2026-10-26 00:00", step: "1 hour", name: UTC, partitions: 37 },
    Range { table: "hours_in_march", zone: "Europe/Berlin", since: "2026-03-28 12:00", until: "2026-03-30 00:00", step: "1 hour", name: UTC, partitions: 35 },
    Range { table: "years", zone: "Europe/Berlin", since: "2025-01-02", until: "2028-01-02", step: "1 year",
            name: "to_char(snowflake_timestamp(id) - interval '1 day', 'YYYY\"0102\"')", partitions: 3 },
    Range { table: "calendar_years", zone: "America/New_York", since: "2026-01-01", until: "2029-01-01", step: "12 months",
            name: "to_char(snowflake_timestamp(id), 'YYYY')", partitions: 3 },
    Range { table: "weeks", zone: "Europe/Berlin", since: "2026-10-12", until: "2026-11-09", step: "1 week",
            name: "to_char(date_trunc('week', snowflake_timestamp(id)), 'YYYYMMDD')", partitions: 4 },
];

impl Range {
    /// Creates the table and its partitions by psql's `\gexec`.
    fn partition(&self, cluster: &Cluster, client: &mut Client) -> Result<()> {
        let Self {
            table,
            zone,
            since,
            until,
            step,
            ..
        } = self;
        let ddl = format!(
            "SET TimeZone = '{zone}';
             SELECT snowflake_partitions.ddl('{table}', '{since}', '{until}', '{step}') \\gexec\n"
        );
        let script = format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id);\n{ddl}"
        );
        let written = psql(cluster, "postgres", &script)?;
        // The table itself, and each of its partitions.
        assert_eq!(
            written.matches("CREATE TABLE").count(),
            self.partitions + 1,
            "{written}"
        );
        let partitions = partitions(client, table)?;
        let names: BTreeSet<&String> = partitions.iter().map(|(name, ..)| name).collect();
        assert_eq!(
            (partitions.len(), names.len()),
            (self.partitions, self.partitions),
            "{table}"
        );
        assert_gapless(&partitions);
        // A second time there is nothing to do.
        let written = psql(cluster, "postgres", &ddl)?;
        assert_eq!(written.matches("CREATE TABLE").count(), 0, "{written}");
        Ok(())
    }

    /// Inserts an ID for every quarter of an hour, the first and the last of
    /// its millisecond by turns, and the last microsecond of the range.
    fn fill(&self, client: &mut Client) -> Result<u64> {
        let Self {
            table,
            zone,
            since,
            until,
            name,
            ..
        } = self;
        client.batch_execute(&format!("SET TimeZone = '{zone}'"))?;
        let inserted = client.execute(
            &format!(
                "INSERT INTO {table}
                 SELECT snowflake_compose(at, (n % 2 * 63)::int, (n % 2 * 15)::int, (n % 2 * 4095)::int)
                 FROM generate_series(timestamptz '{since}', timestamptz '{until}', '15 minutes')
                      WITH ORDINALITY AS g(at, n)
                 WHERE at < '{until}'
                 UNION ALL
                 SELECT snowflake_compose(timestamptz '{until}' - interval '1 microsecond', 63, 15, 4095)"
            ),
            &[],
        )?;
        let astray = number(
            client,
            &format!(
                "SELECT count(*) FROM {table} WHERE tableoid::regclass::text <> '{table}_p' || {name}"
            ),
        )?;
        assert_eq!(astray, 0, "{table}: rows in a partition of another time");
        let used = number(
            client,
            &format!("SELECT count(DISTINCT tableoid) FROM {table}"),
        )?;
        assert_eq!(
            used as usize, self.partitions,
            "{table}: partitions with rows"
        );
        // No partition takes a row from before or after the range.
        for at in [
            format!("timestamptz '{since}' - interval '1 microsecond'"),
            format!("timestamptz '{until}'"),
        ] {
            if *table != "years" || !at.contains("2025") {
                let insert = format!("INSERT INTO {table} SELECT snowflake_compose({at}, 0, 0, 0)");
                refused(client, &insert, "23514")?;
            }
        }
        Ok(inserted)
    }
}

#[test]
fn rows_land_where_their_time_says_across_clock_changes() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    let mut rows = 0;
    for range in RANGES {
        range.partition(&cluster, &mut client)?;
        rows += range.fill(&mut client)?;
    }
    client.batch_execute("RESET TimeZone")?;
    println!(
        "partitions: {} made by psql's \\gexec in {} tables across clock changes, nothing left \
         to do the second time; {rows} rows where their time says",
        RANGES.iter().map(|range| range.partitions).sum::<usize>(),
        RANGES.len()
    );
    // The two hours that a wall clock would call the same.
    let partitions = partitions(&mut client, "hours")?;
    let names: Vec<&str> = partitions.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names[0], "hours_p20261024_1000utc");
    assert!(
        names.contains(&"hours_p20261025_0000utc") && names.contains(&"hours_p20261025_0100utc")
    );
    Ok(())
}

/// Names of the partitions that statements would make.
fn names(statements: &[String]) -> Vec<&str> {
    statements
        .iter()
        .filter_map(|it| {
            it.strip_prefix("CREATE TABLE ")?
                .split(" PARTITION OF ")
                .next()
        })
        .collect()
}

/// Ranges, and the names of the partitions that they need.
#[rustfmt::skip]
const NAMES: &[(&str, &[&str])] = &[
    ("'2026-01-31', '2026-06-01', '1 month'", &["t_p20260131", "t_p20260228", "t_p20260331", "t_p20260430", "t_p20260531"]),
    ("'2028-02-29', '2031-01-01', '1 year'", &["t_p20280229", "t_p20290228", "t_p20300228"]),
    ("'2026-01-01', '2026-01-01', '1 day'", &[]),
    ("'2026-01-01 00:30', '2026-01-01 01:00', '15 minutes'", &["t_p20260101_0030utc", "t_p20260101_0045utc"]),
    ("'2026-01-01 00:00:00.25', '2026-01-01 00:00:00.75', '250 ms'", &["t_p20260101_000000250000utc", "t_p20260101_000000500000utc"]),
    ("'2026-01-01', '2027-01-01', '3 months'", &["t_p202601", "t_p202604", "t_p202607", "t_p202610"]),
    // The last step may reach past the end of the requested range.
    ("'2026-01-01', '2026-01-01 00:00:01', '1 day'", &["t_p20260101"]),
    // No time is before the epoch.
    ("'2024-11-01', '2025-02-01', '1 month'", &["t_p202501"]),
    ("'2020-01-01', '2025-01-01', '1 year'", &[]),
    ("'2024-07-01', '2025-07-01', '1 year'", &["t_p202407"]),
];

#[test]
fn statements_name_each_partition_by_its_time() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLE)?;
    assert_eq!(
        statements(client, "'t', '2026-11-20', '2026-11-22', '1 day'")?,
        [
            "CREATE TABLE public.t_p20261120 PARTITION OF public.t \
             FOR VALUES FROM ('249322851532800000') TO ('249685239398400000')",
            "CREATE TABLE public.t_p20261121 PARTITION OF public.t \
             FOR VALUES FROM ('249685239398400000') TO ('250047627264000000')",
        ]
    );
    for (range, expected) in NAMES {
        let statements = statements(client, &format!("'t', {range}"))?;
        let expected: Vec<String> = expected.iter().map(|it| format!("public.{it}")).collect();
        assert_eq!(names(&statements), expected, "{range}");
        client.batch_execute("BEGIN")?;
        run(client, &statements)?;
        let made = partitions(client, "t")?;
        assert_eq!(made.len(), expected.len());
        assert_gapless(&made);
        client.batch_execute("ROLLBACK")?;
    }
    let bounds = statements(client, "'t', '2024-07-01', '2025-07-01', '1 year'")?;
    assert!(bounds[0].contains("FROM ('0') TO ('"), "{}", bounds[0]);
    println!("partitions: 11 ranges written as they should be: month ends, quarters, the epoch");
    Ok(())
}

/// As for a job that runs every day.
#[test]
fn only_missing_partitions_are_written() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLE)?;
    let days = statements(client, "'t', '2026-05-01', '2026-05-08', '1 day'")?;
    run(client, days)?;
    client.batch_execute(
        "DROP TABLE t_p20260503; ALTER TABLE t DETACH PARTITION t_p20260505;
         ALTER TABLE t_p20260506 RENAME TO renamed; DROP TABLE t_p20260505",
    )?;
    let missing = statements(client, "'t', '2026-05-01', '2026-05-10', '1 day'")?;
    assert_eq!(
        names(&missing),
        ["t_p20260503", "t_p20260505", "t_p20260508", "t_p20260509"]
            .map(|it| format!("public.{it}"))
    );
    run(client, missing)?;
    assert_gapless(&partitions(client, "t")?);
    assert!(statements(client, "'t', '2026-05-01', '2026-05-10', '1 day'")?.is_empty());
    println!("partitions: only the 4 that were missing of 9");
    Ok(())
}

/// Long ranges, and steps of each kind.
const STEPS: &[(&str, &str, &str)] = &[
    ("2026-01-31", "2030-01-01", "1 month"),
    ("2026-01-29 13:30", "2030-01-01", "1 month 1 day"),
    ("2026-01-01", "2027-01-01", "1 day"),
    ("2026-01-01", "2027-01-01", "23 hours"),
    ("2026-03-01", "2026-04-01", "1 hour"),
    ("2026-10-20", "2026-11-10", "30 minutes"),
    ("2025-06-30", "2094-01-01", "1 year"),
];

#[test]
fn steps_of_each_kind_ascend_without_gaps_in_every_time_zone() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    client.batch_execute(TABLE)?;
    let mut written = 0;
    for zone in [
        "UTC",
        "Europe/Berlin",
        "America/Sao_Paulo",
        "Asia/Kathmandu",
        "Africa/Casablanca",
    ] {
        client.batch_execute(&format!("SET TimeZone = '{zone}'"))?;
        for (since, until, step) in STEPS {
            let row = client.query_one(
                &format!(
                    "WITH s AS (
                         SELECT b.bounds[1] AS name, b.bounds[2]::bigint AS low, b.bounds[3]::bigint AS high,
                                lag(b.bounds[3]::bigint) OVER (ORDER BY n) AS before
                         FROM snowflake_partitions.ddl('t', '{since}', '{until}', '{step}')
                              WITH ORDINALITY AS d(statement, n),
                              LATERAL regexp_match(statement, 'TABLE (\\S+) .* FROM \\(''(\\d+)''\\) TO \\(''(\\d+)''\\)$') AS b(bounds)
                     )
                     SELECT count(*), count(DISTINCT name), count(*) FILTER (WHERE low >= high),
                            count(*) FILTER (WHERE before <> low),
                            min(low) = snowflake_min_id('{since}'), max(high) >= snowflake_min_id('{until}')
                     FROM s"
                ),
                &[],
            )?;
            let (all, distinct): (i64, i64) = (row.get(0), row.get(1));
            let (empty, apart): (i64, i64) = (row.get(2), row.get(3));
            let (begins, ends): (bool, bool) = (row.get(4), row.get(5));
            assert!(
                all > 40 && distinct == all,
                "{zone} {step}: {distinct} names of {all}"
            );
            assert_eq!((empty, apart), (0, 0), "{zone} {step}");
            assert!(begins && ends, "{zone} {step}");
            written += all;
        }
    }
    println!(
        "partitions: {written} statements of 7 steps in 5 time zones: distinct names, ascending, no gap"
    );
    Ok(())
}

/// What a zone's calendar makes does not depend on where its name is given.
#[test]
fn a_time_zone_that_is_passed_counts_as_that_of_the_session() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLE)?;
    let mut compared = 0;
    for zone in [
        "UTC",
        "Europe/Berlin",
        "Australia/Lord_Howe",
        "Asia/Beirut",
        "America/Havana",
        "Africa/Casablanca",
        "Asia/Kathmandu",
    ] {
        for (since, until, step) in [
            ("2026-01-31", "2028-01-01", "1 month"),
            ("2026-03-01", "2026-12-01", "1 day"),
            ("2026-01-29 13:30", "2028-01-01", "1 month 1 day 2 hours"),
            // Begins in an hour that is repeated in Berlin.
            ("2026-10-25 02:30", "2026-10-28", "1 hour"),
            ("2026-03-28", "2026-03-31", "30 minutes"),
            ("2026-03-02", "2026-12-01", "1 week"),
        ] {
            let range = format!("'t', '{since} {zone}', '{until} {zone}', '{step}'");
            client.batch_execute(&format!("SET TimeZone = '{zone}'"))?;
            let expected = statements(client, &range)?;
            client.batch_execute("SET TimeZone = 'Pacific/Auckland'")?;
            let found = statements(client, &format!("{range}, '{zone}'"))?;
            assert!(found.len() > 20, "{zone} {step}");
            assert_eq!(found, expected, "{zone} {step}");
            compared += found.len();
        }
    }
    for step in ["1 day", "1 hour"] {
        let range = format!("'2026-01-01', '2026-02-01', '{step}', 'Mars/Olympus'");
        let unknown = refused(client, &call("'t'", &range), "22023")?;
        assert_eq!(unknown.message, "time zone \"Mars/Olympus\" not recognized");
    }
    println!("partitions: {compared} statements by a time zone that is passed as by the session's");
    Ok(())
}

/// Inserts a row for every hour, and the first and the last ID of each
/// partition. Each must find a partition.
fn fill_up(client: &mut Client) -> Result<u64> {
    let partitions = partitions(client, "t")?;
    assert_gapless(&partitions);
    let (Some((_, first, _)), Some((.., end))) = (partitions.first(), partitions.last()) else {
        return Ok(0);
    };
    let edges: Vec<String> = partitions
        .iter()
        .map(|(_, from, to)| format!("({from}), ({})", to - 1))
        .collect();
    Ok(client.execute(
        &format!(
            "INSERT INTO t SELECT snowflake_compose(at, 1, 2, 3)
             FROM generate_series(snowflake_timestamp({first}) + interval '1 second',
                                  snowflake_timestamp({end}) - interval '1 second', '1 hour') AS at
             UNION ALL VALUES {}",
            edges.join(", ")
        ),
        &[],
    )?)
}

const ZONES: [&str; 5] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Asia/Beirut",
];

/// Beginnings of later calls: among the existing partitions, at their end and
/// after it.
const BEGINNINGS: [&str; 5] = [
    "2026-09-20 00:00",
    "2026-10-01 00:00",
    "2026-10-04 00:00",
    "2026-09-28 06:52:02.14",
    "2026-10-03 06:52:02.14",
];

/// How calls ended that found partitions of other calls.
#[derive(Default)]
struct Outcomes {
    continued: usize,
    gaps: usize,
    overlaps: usize,
    rows: u64,
}

impl Outcomes {
    /// Partitions until November beside those that end in October.
    fn add(
        &mut self,
        client: &mut Client,
        zones: [&str; 2],
        since: &str,
        step: &str,
    ) -> Result<()> {
        let range = format!("'t', '{since}', '2026-11-05', '{step}'");
        let case = format!("{range} in {}, after {}", zones[1], zones[0]);
        client.batch_execute(&format!(
            "SAVEPOINT before; SET LOCAL TimeZone = '{}'; SAVEPOINT asked",
            zones[1]
        ))?;
        if let Ok(new) = statements(client, &range) {
            assert!(!new.is_empty(), "{case}");
            run(client, new)?;
            self.continued += 1;
            self.rows += fill_up(client)?;
        } else {
            client.batch_execute("ROLLBACK TO asked")?;
            let call = format!("SELECT snowflake_partitions.ddl({range})");
            let error = refused(client, &call, "42P17")?;
            assert!(error.message.contains("Z would "), "{case}: {error}");
            assert!(!error.hint.is_empty(), "{case}: {error}");
            assert!(zones[0] != zones[1] || step == "1 week", "{case}: {error}");
            if error.message.contains(" leave a gap of ") {
                self.gaps += 1;
            } else {
                let overlap = error.message.contains(" overlap partition \"t_p");
                assert!(overlap, "{case}: {error}");
                self.overlaps += 1;
            }
        }
        client.batch_execute("ROLLBACK TO before")?;
        Ok(())
    }
}

/// Partitions of one zone and step, then of another zone or step, over two
/// clock changes.
#[test]
fn partitions_of_two_time_zones_leave_no_gap_without_an_error() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLE)?;
    let mut outcomes = Outcomes::default();
    for before in ZONES {
        for (existing, steps) in [
            ("1 day", &["1 day", "1 week"][..]),
            ("1 month", &["1 day"][..]),
        ] {
            client.batch_execute(&format!("BEGIN; SET LOCAL TimeZone = '{before}'"))?;
            let old = statements(
                client,
                &format!("'t', '2026-03-01', '2026-10-01', '{existing}'"),
            )?;
            run(client, old)?;
            for after in ZONES {
                for step in steps {
                    for since in BEGINNINGS {
                        outcomes.add(client, [before, after], since, step)?;
                    }
                }
            }
            client.batch_execute("ROLLBACK")?;
        }
    }
    let Outcomes {
        continued,
        gaps,
        overlaps,
        rows,
    } = outcomes;
    println!(
        "partitions: of two time zones or steps: {continued} continued, {gaps} refused for a gap, \
         {overlaps} for an overlap; all of {rows} rows over two clock changes have a partition"
    );
    assert!(continued > 40 && gaps > 20 && overlaps > 20);
    Ok(())
}

/// What exists, arguments, and the names of the partitions that follow.
#[rustfmt::skip]
const CONTINUED: &[(&str, &str, &[&str])] = &[
    // A beginning that is no midnight.
    ("'2026-11-20 UTC', '2026-11-24 UTC', '1 day', 'UTC'",
     "'2026-11-22 06:52:02.14 UTC', '2026-11-26 UTC', '1 day', 'UTC'", &["t_p20261124", "t_p20261125"]),
    // Nights without the job.
    ("'2026-11-20 UTC', '2026-11-24 UTC', '1 day', 'UTC'",
     "'2026-11-26 UTC', '2026-11-27 UTC', '1 day', 'UTC'", &["t_p20261124", "t_p20261125", "t_p20261126"]),
    // From months to days.
    ("'2026-10-01 UTC', '2026-12-01 UTC', '1 month', 'UTC'",
     "'2026-11-29 UTC', '2026-12-02 UTC', '1 day', 'UTC'", &["t_p20261201"]),
    // Weeks from Sunday on, years from July on.
    ("'2026-11-01 UTC', '2026-11-15 UTC', '1 week', 'UTC'",
     "'2026-11-18 UTC', '2026-11-23 UTC', '1 week', 'UTC'", &["t_p20261115", "t_p20261122"]),
    ("'2025-07-01 UTC', '2027-07-01 UTC', '1 year', 'UTC'",
     "'2027-01-01 UTC', '2028-01-01 UTC', '1 year', 'UTC'", &["t_p202707"]),
    // Days from 6 o'clock on, as many as are missing.
    ("'2026-11-20 06:00 UTC', '2026-11-21 06:00 UTC', '1 day', 'UTC'",
     "'2026-11-22 06:00 UTC', '2026-11-23 06:00 UTC', '1 day', 'UTC'", &["t_p20261121_0600utc", "t_p20261122_0600utc"]),
    // Hours of a day.
    ("'2026-11-20 UTC', '2026-11-21 UTC', '1 hour', 'UTC'",
     "'2026-11-20 UTC', '2026-11-22 UTC', '1 day', 'UTC'", &["t_p20261121"]),
    // Past a clock change.
    ("'2026-10-24 Europe/Berlin', '2026-10-25 Europe/Berlin', '1 day', 'Europe/Berlin'",
     "'2026-10-26 Europe/Berlin', '2026-10-27 Europe/Berlin', '1 day', 'Europe/Berlin'", &["t_p20261025", "t_p20261026"]),
];

/// The same for what is refused: message, detail, hint.
#[rustfmt::skip]
const REFUSED: &[(&str, &str, [&str; 3])] = &[
    ("'2026-11-20 Europe/Berlin', '2026-11-24 Europe/Berlin', '1 day'",
     "'2026-11-24 UTC', '2026-11-26 UTC', '1 day', 'UTC'",
     ["partitions of \"t\" from 2026-11-24T00:00:00Z would leave a gap of 01:00:00 after partition \"t_p20261123\"",
      "Partition \"t_p20261123\" contains the IDs from 2026-11-22T23:00:00Z to 2026-11-23T23:00:00Z. Its end is not a multiple of 1 day in time zone UTC.",
      "Pass time_zone => 'Europe/Berlin', in which the existing partitions begin at midnight."]),
    ("'2026-11-20 Europe/Berlin', '2026-11-24 Europe/Berlin', '1 day'",
     "'2026-11-23 UTC', '2026-11-26 UTC', '1 day', 'UTC'",
     ["partition of \"t\" from 2026-11-23T00:00:00Z to 2026-11-24T00:00:00Z would overlap partition \"t_p20261123\"",
      "Partition \"t_p20261123\" contains the IDs from 2026-11-22T23:00:00Z to 2026-11-23T23:00:00Z. Its end is not a multiple of 1 day in time zone UTC.",
      "Pass time_zone => 'Europe/Berlin', in which the existing partitions begin at midnight."]),
    ("'2026-11-25 UTC', '2026-11-26 UTC', '1 day', 'UTC'",
     "'2026-11-23 Europe/Berlin', '2026-11-25 Europe/Berlin', '1 day'",
     ["partitions of \"t\" to 2026-11-24T23:00:00Z would leave a gap of 01:00:00 before partition \"t_p20261125\"",
      "Partition \"t_p20261125\" contains the IDs from 2026-11-25T00:00:00Z to 2026-11-26T00:00:00Z.", ""]),
    ("'2026-11-25 UTC', '2026-11-26 UTC', '1 day', 'UTC'",
     "'2026-11-23 06:00 UTC', '2026-11-26 UTC', '1 day', 'UTC'",
     ["partition of \"t\" from 2026-11-24T06:00:00Z to 2026-11-25T06:00:00Z would overlap partition \"t_p20261125\"",
      "Partition \"t_p20261125\" contains the IDs from 2026-11-25T00:00:00Z to 2026-11-26T00:00:00Z.",
      "Choose since and step so that partitions begin and end at the bounds of the existing ones."]),
    // An hour that is none, and its remedy.
    ("'2026-11-20 00:07 UTC', '2026-11-20 01:07 UTC', '1 hour', 'UTC'",
     "'2026-11-20 01:00 UTC', '2026-11-20 03:00 UTC', '1 hour', 'UTC'",
     ["partition of \"t\" from 2026-11-20T01:00:00Z to 2026-11-20T02:00:00Z would overlap partition \"t_p20261120_0007utc\"",
      "Partition \"t_p20261120_0007utc\" contains the IDs from 2026-11-20T00:07:00Z to 2026-11-20T01:07:00Z. Its end is not a multiple of 01:00:00 in time zone UTC.",
      "Pass since => '2026-11-20T01:07:00Z', the end of partition \"t_p20261120_0007utc\"."]),
];

#[test]
fn partitions_continue_where_the_existing_ones_end_or_the_error_says_why_not() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLE)?;
    client.batch_execute("SET TimeZone = 'Europe/Berlin'")?;
    let mut rows = 0;
    for (existing, range, expected) in CONTINUED {
        client.batch_execute("BEGIN")?;
        let old = statements(client, &format!("'t', {existing}"))?;
        run(client, old)?;
        let new = statements(client, &format!("'t', {range}"))?;
        let expected: Vec<String> = expected.iter().map(|it| format!("public.{it}")).collect();
        assert_eq!(names(&new), expected, "{existing}, then {range}");
        run(client, new)?;
        assert!(
            statements(client, &format!("'t', {range}"))?.is_empty(),
            "{range}"
        );
        rows += fill_up(client)?;
        client.batch_execute("ROLLBACK")?;
    }
    for (existing, range, [message, detail, hint]) in REFUSED {
        let old = statements(client, &format!("'t', {existing}"))?;
        run(client, &old)?;
        let error = refused(client, &call("'t'", range), "42P17")?;
        assert_eq!(
            (error.message.as_str(), error.detail.as_str()),
            (*message, *detail)
        );
        assert!(hint.is_empty() || error.hint == *hint, "{error}");
        assert!(!error.hint.is_empty(), "{error}");
        run(
            client,
            names(&old).iter().map(|it| format!("DROP TABLE {it}")),
        )?;
    }
    println!(
        "partitions: {} ranges continue, {rows} rows; {} errors name the gap or the overlap",
        CONTINUED.len(),
        REFUSED.len()
    );
    Ok(())
}

/// Rows that are older than a migration have small IDs; catch-all partitions
/// have no end.
#[test]
fn partitions_by_hand_are_continued_or_named() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLE)?;
    client.batch_execute(
        "SET TimeZone = 'UTC';
         CREATE TABLE rest PARTITION OF t DEFAULT;
         CREATE TABLE negative PARTITION OF t FOR VALUES FROM (MINVALUE) TO (0);
         CREATE TABLE old PARTITION OF t FOR VALUES FROM (0) TO (1000001)",
    )?;
    let days = "'2026-11-20', '2026-11-22', '1 day'";
    let gap = refused(client, &call("'t'", days), "42P17")?;
    assert!(
        gap.message
            .starts_with("partitions of \"t\" from 2026-11-20T00:00:00Z would leave a gap of ")
            && gap.message.ends_with("after partition \"old\""),
        "{gap}"
    );
    assert!(
        gap.detail
            .ends_with(" Its end, 1000001, is not the first ID of a time."),
        "{gap}"
    );
    let bounds = gap
        .hint
        .strip_prefix("First create a partition ")
        .and_then(|it| it.strip_suffix('.'));
    let Some(bounds) = bounds else {
        panic!("{gap}")
    };
    client.batch_execute(&format!("CREATE TABLE middle PARTITION OF t {bounds}"))?;
    let made = statements(client, &format!("'t', {days}"))?;
    assert_eq!(names(&made), ["public.t_p20261120", "public.t_p20261121"]);
    run(client, made)?;

    client.batch_execute(
        "DO $$ BEGIN
             EXECUTE format('CREATE TABLE future PARTITION OF t FOR VALUES FROM (%L) TO (MAXVALUE)',
                            snowflake_min_id('2026-11-25'));
         END $$",
    )?;
    let made = statements(client, "'t', '2026-11-20', '2026-11-23', '1 day'")?;
    assert_eq!(names(&made), ["public.t_p20261122"]);
    run(client, made)?;
    let overlap = refused(
        client,
        &call("'t'", "'2026-11-20', '2026-11-26 06:00', '1 week'"),
        "42P17",
    )?;
    assert!(overlap.message.contains("would overlap"), "{overlap}");
    let covered = statements(client, "'t', '2026-11-25', '2026-11-28', '1 day'")?;
    assert!(covered.is_empty(), "{covered:?}");
    Ok(())
}

#[test]
fn partitions_of_tables_with_any_name() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    let long = "l".repeat(63);
    let umlauts = format!("\"{}\"", "ä".repeat(31));
    client.batch_execute(&format!(
        "CREATE SCHEMA \"Other Schema\";
         CREATE TABLE \"Other Schema\".\"Mixed \"\"Case\"\" 'name'\" (\"The ID\" bigint) PARTITION BY RANGE (\"The ID\");
         CREATE TABLE {long} (id bigint) PARTITION BY RANGE (id);
         CREATE TABLE {umlauts} (id bigint) PARTITION BY RANGE (id);
         CREATE TEMP TABLE passing (id bigint) PARTITION BY RANGE (id);
         CREATE TABLE \"select\" (note text, gone int, id bigint) PARTITION BY RANGE (id);
         ALTER TABLE \"select\" DROP COLUMN gone"
    ))?;
    let mut made = 0;
    let mixed = "\"Other Schema\".\"Mixed \"\"Case\"\" 'name'\"";
    for table in [mixed, &long, &umlauts, "passing", "\"select\""] {
        let quoted = table.replace('\'', "''");
        for (range, number) in [
            ("'2026-05-01', '2026-06-01', '1 day'", 31),
            ("'2026-06-01', '2026-06-02', '1 hour'", 24),
            ("'2026-06-02', '2026-06-02 00:00:10', '1 second'", 10),
        ] {
            let statements = statements(client, &format!("'{quoted}', {range}"))?;
            assert_eq!(statements.len(), number, "{table}");
            run(client, &statements)?;
            made += number;
        }
        let partitions = partitions(client, table)?;
        assert_eq!(partitions.len(), 65, "{table}");
        assert_gapless(&partitions);
        for (name, ..) in &partitions {
            assert!(name.len() <= 63 && name.contains("_p2026"), "{name}");
        }
        let elsewhere = client.query_one(
            "SELECT count(*) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
             JOIN pg_class AS p ON p.oid = i.inhparent
             WHERE i.inhparent = $1::text::regclass
               AND (c.relnamespace <> p.relnamespace OR c.relpersistence <> p.relpersistence)",
            &[&table],
        )?;
        assert_eq!(elsewhere.get::<_, i64>(0), 0, "{table}");
    }
    println!("partitions: {made} of tables with long, quoted, non-ASCII and temporary names");
    Ok(())
}

/// A character is two bytes of another encoding there.
#[test]
fn partitions_of_a_name_in_another_encoding() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    cluster.connect()?.batch_execute(
        "CREATE DATABASE japanese TEMPLATE template0 ENCODING 'EUC_JP' LC_COLLATE 'C' LC_CTYPE 'C'",
    )?;
    let mut japanese = cluster.connect_to("japanese")?;
    let table = "注文".repeat(15);
    japanese.batch_execute(&format!(
        "CREATE EXTENSION snowflake_partitions CASCADE; CREATE TABLE {table} (id bigint) PARTITION BY RANGE (id)"
    ))?;
    let days = statements(
        &mut japanese,
        &format!("'{table}', '2026-05-01', '2026-05-08', '1 day'"),
    )?;
    run(&mut japanese, days)?;
    assert_eq!(partitions(&mut japanese, &table)?.len(), 7);
    Ok(())
}

#[test]
fn an_ordinary_owner_partitions_a_table() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE ROLE owner LOGIN; CREATE SCHEMA shop AUTHORIZATION owner;
         REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    )?;
    let written = psql(
        &cluster,
        "owner",
        "CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id);
         SELECT snowflake_partitions.ddl('shop.orders', '2026-05-01', '2026-05-08', '1 day') \\gexec
         INSERT INTO shop.orders SELECT snowflake_compose(at, 1, 0, 0), 'n'
         FROM generate_series(timestamptz '2026-05-01', '2026-05-07 23:00', '1 hour') AS at;
         SELECT 'rows: ' || count(*) FROM shop.orders;\n",
    )?;
    assert_eq!(written.matches("CREATE TABLE").count(), 8, "{written}");
    assert!(written.contains("rows: 168"), "{written}");
    let owned = number(
        &mut client,
        "SELECT count(*) FROM pg_class WHERE relowner = 'owner'::regrole AND relname ~ '^orders_p2026050\\d$'",
    )?;
    assert_eq!(owned, 7);
    println!("partitions: 7 by an ordinary owner, 168 rows");
    Ok(())
}

/// Objects that note it when they are used instead of those of `pg_catalog`.
const TRAPS: &str = "
    CREATE TABLE public.sprung (by text);
    CREATE SCHEMA trap;
    CREATE FUNCTION trap.spring(what text) RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO public.sprung VALUES (what); RETURN what; END $$;
    CREATE FUNCTION trap.snowflake_min_id(timestamptz) RETURNS bigint LANGUAGE sql AS
        'SELECT trap.spring(''min_id''); SELECT 7::bigint';
    CREATE FUNCTION trap.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql AS
        'SELECT trap.spring(''format'')';
    CREATE FUNCTION trap.format(text, text, text) RETURNS text LANGUAGE sql AS
        'SELECT trap.spring(''format'')';
    CREATE FUNCTION trap.to_char(timestamp, text) RETURNS text LANGUAGE sql AS
        'SELECT trap.spring(''to_char'')';
    CREATE FUNCTION trap.octet_length(text) RETURNS int LANGUAGE sql AS
        'SELECT length(trap.spring(''octet_length''))';
    CREATE FUNCTION trap.isfinite(timestamptz) RETURNS boolean LANGUAGE sql AS
        'SELECT trap.spring(''isfinite'') IS NULL';
    CREATE FUNCTION trap.current_setting(text) RETURNS text LANGUAGE sql AS
        'SELECT trap.spring(''current_setting'')';
    CREATE FUNCTION trap.plus(timestamptz, interval) RETURNS timestamptz LANGUAGE sql AS
        'SELECT trap.spring(''+''); SELECT now()';
    CREATE OPERATOR trap.+ (LEFTARG = timestamptz, RIGHTARG = interval, FUNCTION = trap.plus);
    CREATE FUNCTION trap.joined(text, text) RETURNS text LANGUAGE sql AS
        'SELECT trap.spring(''||'')';
    CREATE OPERATOR trap.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.joined);
    CREATE FUNCTION trap.less(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS
        'SELECT trap.spring(''<'') IS NULL';
    CREATE OPERATOR trap.< (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = trap.less);
    CREATE TABLE trap.pg_class (oid oid, relname name, relkind \"char\");
    CREATE TABLE trap.pg_inherits (inhrelid oid, inhparent oid);
    CREATE DOMAIN trap.text AS pg_catalog.text CHECK (false);
    CREATE TEMP TABLE pg_namespace (oid oid, nspname name)";

const WEEK: &str = "'public.t', '2026-05-01', '2026-05-08', '1 day'";

#[test]
fn a_search_path_with_traps_changes_nothing() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLE)?;
    client.batch_execute(TRAPS)?;
    let expected = statements(client, WEEK)?;
    assert_eq!(expected.len(), 7);
    client.batch_execute("SET search_path = trap, pg_catalog, public")?;
    // The traps work: the same names do spring them by the path.
    client.batch_execute("BEGIN")?;
    value(
        client,
        "SELECT isfinite(timestamptz '2026-01-01')::pg_catalog.text",
    )?;
    let sprung = "SELECT count(*) FROM public.sprung";
    assert_eq!(number(client, sprung)?, 1);
    client.batch_execute("ROLLBACK")?;
    let found: Vec<String> = column(
        client,
        &format!("SELECT d::pg_catalog.text FROM snowflake_partitions.ddl({WEEK}) AS d"),
    )?;
    assert_eq!(found, expected);
    run(client, &found)?;
    client.batch_execute("RESET search_path")?;
    assert_eq!(number(client, sprung)?, 0);
    let others = number(
        client,
        "SELECT count(*) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'public.t'::regclass AND c.relnamespace = 'public'::regnamespace",
    )?;
    assert_eq!(others, 7);

    // The extension in a schema of its own, out of the search path.
    client.batch_execute("CREATE DATABASE apart")?;
    let mut apart = cluster.connect_to("apart")?;
    apart
        .batch_execute("CREATE SCHEMA \"Ids Of\"; CREATE EXTENSION snowflake SCHEMA \"Ids Of\"; CREATE EXTENSION snowflake_partitions")?;
    apart.batch_execute(TABLE)?;
    let found: Vec<String> = column(
        &mut apart,
        &format!("SELECT snowflake_partitions.ddl({WEEK})"),
    )?;
    assert_eq!(found, expected);
    println!(
        "partitions: the same 7 past a search path with a trap, and with the extension in a schema apart"
    );
    Ok(())
}

/// A range for the function's arguments.
const JANUARY: &str = "'2026-01-01', '2026-02-01', '1 day'";

fn call(table: &str, range: &str) -> String {
    format!("SELECT snowflake_partitions.ddl({table}, {range})")
}

#[test]
fn tables_without_ranges_of_bigints_are_refused() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE good (id bigint) PARTITION BY RANGE (id);
         CREATE TABLE plain (id bigint);
         CREATE VIEW seen AS SELECT * FROM plain;
         CREATE TABLE of_int (id int) PARTITION BY RANGE (id);
         CREATE TABLE of_numeric (id numeric) PARTITION BY RANGE (id);
         CREATE TABLE of_time (at timestamptz) PARTITION BY RANGE (at);
         CREATE TABLE listed (id bigint) PARTITION BY LIST (id);
         CREATE TABLE hashed (id bigint) PARTITION BY HASH (id);
         CREATE TABLE of_two (id bigint, n bigint) PARTITION BY RANGE (id, n);
         CREATE TABLE computed (id bigint) PARTITION BY RANGE ((id + 1));
         CREATE TABLE leaf PARTITION OF good FOR VALUES FROM (0) TO (1);
         CREATE TABLE gone (id bigint)",
    )?;
    let gone = value(client, "SELECT 'gone'::regclass::oid")?;
    client.batch_execute("DROP TABLE gone")?;
    for table in ["plain", "seen", "leaf", "pg_class"] {
        let refused = refused(client, &call(&format!("'{table}'"), JANUARY), "42809")?;
        assert_eq!(
            refused.message,
            format!("\"{table}\" is not a partitioned table")
        );
        assert!(
            refused.hint.contains("PARTITION BY RANGE (id)"),
            "{refused}"
        );
    }
    for (table, key) in [
        ("of_int", "RANGE (id)"),
        ("of_numeric", "RANGE (id)"),
        ("of_time", "RANGE (at)"),
        ("listed", "LIST (id)"),
        ("hashed", "HASH (id)"),
        ("of_two", "RANGE (id, n)"),
        ("computed", "RANGE (((id + 1)))"),
    ] {
        let refused = refused(client, &call(&format!("'{table}'"), JANUARY), "42809")?;
        assert_eq!(
            refused.message,
            format!("\"{table}\" is not partitioned by ranges of a bigint column")
        );
        assert_eq!(refused.detail, format!("Its partition key is {key}."));
    }
    for table in [gone.as_str(), "nowhere", "0"] {
        refused(client, &call(&format!("'{table}'"), JANUARY), "42P01")?;
    }
    Ok(())
}

#[test]
fn ranges_and_steps_without_sense_are_refused() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLE)?;
    for (range, sqlstate) in [
        ("'2026-02-01', '2026-01-01', '1 day'", "22023"),
        ("'-infinity', '2026-01-01', '1 day'", "22023"),
        ("'2026-01-01', 'infinity', '1 day'", "22023"),
        ("'infinity', 'infinity', '1 day'", "22023"),
        ("'2026-01-01', '2026-02-01', '0'", "22023"),
        ("'2026-01-01', '2026-02-01', '-1 day'", "22023"),
        ("'2026-01-01', '2026-02-01', '1 month -31 days'", "22023"),
        ("'2026-01-01', '2026-02-01', '1 day -24 hours'", "22023"),
        ("'2094-01-01', '2095-01-01', '1 month'", "22003"),
        ("'2094-09-07', '2094-09-08', '1 day'", "22003"),
        ("'9999-01-01', '9999-02-01', '1 day'", "22003"),
    ] {
        let refused = refused(client, &call("'t'", range), sqlstate)?;
        assert!(
            !refused.detail.is_empty() || !refused.hint.is_empty(),
            "{refused}"
        );
    }
    for (table, range) in [
        ("NULL", JANUARY),
        ("'t'", "NULL, '2026-02-01', '1 day'"),
        ("'t'", "'2026-01-01', NULL, '1 day'"),
        ("'t'", "'2026-01-01', '2026-02-01', NULL"),
    ] {
        assert!(
            statements(client, &format!("{table}, {range}"))?.is_empty(),
            "{table}, {range}"
        );
    }
    Ok(())
}

/// A clock that has jumped ahead drops no partition. A golden file has the machine's clock.
#[test]
fn a_clock_that_has_jumped_ahead_drops_nothing() -> Result<()> {
    let cluster = Cluster::builder()
        .conf("snowflake.node_id", 1)
        .faketime()
        .start_with_extension()?;
    let client = &mut cluster.connect()?;
    client.batch_execute(
        "CREATE EXTENSION snowflake_partitions;
         CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
         SELECT snowflake_partitions.configure('events', '1 day', 'UTC', ahead => '3 days', keep => '30 days')",
    )?;
    client.batch_execute("CALL snowflake_partitions.maintain('events')")?;
    client.batch_execute("INSERT INTO events SELECT FROM generate_series(1, 1000)")?;
    let count = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass";
    let before = number(client, count)?;
    cluster
        .clock()
        .step(Offset::forward(Duration::from_secs(400 * 86_400)))?;
    let client = &mut cluster.connect()?;
    let refused = refused(
        client,
        "CALL snowflake_partitions.maintain('events')",
        "55000",
    )?;
    assert!(refused.detail.contains("58000"), "{refused}");
    expect_error(client, "SELECT snowflake_partitions.statements('events')")?;
    assert_eq!(number(client, "SELECT count(*) FROM events")?, 1_000);
    assert!(number(client, count)? >= before);
    // The clock is right again, and then a year is really over.
    cluster.clock().set_offset(Offset::NONE)?;
    let client = &mut cluster.connect()?;
    client.batch_execute("CALL snowflake_partitions.maintain('events')")?;
    assert_eq!(number(client, "SELECT count(*) FROM events")?, 1_000);
    println!("partitions: a clock 400 days ahead: refused, 1,000 rows kept");
    Ok(())
}

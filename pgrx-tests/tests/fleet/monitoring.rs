//! What an exporter for Prometheus reads from a server, and the alerts on it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use snowflake_tests::os_user::OsUser;
use snowflake_tests::program::{self, Program, free_ports, http};
use snowflake_tests::scratch::Scratch;

use crate::support::*;

const TIMEOUT: Duration = Duration::from_secs(60);

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../monitoring")
        .join(name)
}

/// The metrics that queries.yaml defines: a name for each column that is no label.
fn defined() -> Result<BTreeSet<String>> {
    let mut metrics = BTreeSet::new();
    let (mut namespace, mut column) = (String::new(), String::new());
    for line in std::fs::read_to_string(file("queries.yaml"))?.lines() {
        if let Some(name) = line
            .strip_suffix(':')
            .filter(|name| !name.starts_with([' ', '#']))
        {
            namespace = name.to_owned();
        } else if let Some(name) = line
            .strip_prefix("    - ")
            .and_then(|name| name.strip_suffix(':'))
        {
            column = name.to_owned();
        } else if let Some(usage) = line.trim().strip_prefix("usage: ")
            && usage != "\"LABEL\""
        {
            metrics.insert(format!("{namespace}_{column}"));
        }
    }
    ensure!(metrics.len() > 15, "{metrics:?}");
    Ok(metrics)
}

/// The names of metrics in a file.
fn used(name: &str) -> Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(file(name))?;
    Ok(text
        .split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .filter(|word| {
            [
                "snowflake_status_",
                "snowflake_stat_slots_",
                "snowflake_serial_columns_",
                "snowflake_unreadable_",
                "snowflake_partitions_",
            ]
            .iter()
            .any(|it| word.starts_with(it))
        })
        .map(str::to_owned)
        .collect())
}

/// The samples that the exporter has, by metric.
fn samples(port: u16) -> Result<BTreeMap<String, Vec<String>>> {
    let mut samples: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in http("GET", port, "/metrics", "")?
        .lines()
        .filter(|line| line.starts_with("snowflake_"))
    {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        samples
            .entry(name.to_owned())
            .or_default()
            .push(line.to_owned());
    }
    Ok(samples)
}

/// The sum of a metric's samples.
fn sum(samples: &[String]) -> Result<f64> {
    samples
        .iter()
        .map(|sample| {
            let value = sample.rsplit(' ').next().unwrap_or_default();
            value.parse::<f64>().with_context(|| sample.clone())
        })
        .sum()
}

/// A view, a column of its query, and what that column is by other SQL.
#[rustfmt::skip]
const EXPECTED: [(&str, &str, &str); 28] = [
    ("snowflake_status", "preloaded", "1"),
    ("snowflake_status", "node_id", "7"),
    ("snowflake_status", "in_recovery", "0"),
    ("snowflake_status", "ids", "ids"),
    ("snowflake_status", "waits", "waits"),
    ("snowflake_status", "node_conflicts", "node_conflicts"),
    ("snowflake_status", "stopped", "0"),
    ("snowflake_status", "copied", "0"),
    ("snowflake_status", "layout_changed", "0"),
    ("snowflake_status", "clock_behind_seconds", "extract(epoch FROM clock_behind)"),
    ("snowflake_status", "database_reserved_ahead_seconds",
        "extract(epoch FROM database_reserved_until) - extract(epoch FROM clock_timestamp())"),
    ("snowflake_status", "server_last_id_age_seconds", "extract(epoch FROM clock_timestamp()) - extract(epoch FROM server_last_id_at)"),
    ("snowflake_status", "expires_in_seconds", "extract(epoch FROM expires_at) - extract(epoch FROM clock_timestamp())"),
    ("snowflake_status", "resolved_age_seconds", "extract(epoch FROM resolved_age)"),
    ("snowflake_status", "unknown_prepared", "unknown_prepared"),
    ("snowflake_status", "lease_seconds", "extract(epoch FROM current_setting('snowflake.lease')::interval)"),
    ("snowflake_status", "max_borrow_seconds", "extract(epoch FROM current_setting('snowflake.max_borrow')::interval)"),
    ("snowflake_stat_slots", "ids", "sum(ids)"),
    ("snowflake_stat_slots", "waits", "sum(waits)"),
    ("snowflake_stat_slots", "wait_seconds", "sum(wait_time) / 1000"),
    ("snowflake_stat_slots", "borrowed_ticks", "sum(borrowed_ticks)"),
    ("snowflake_stat_slots", "clock_steps", "sum(clock_steps)"),
    ("snowflake_serial_columns", "percent_used",
        "(SELECT round(100.0 * last_value / 2147483647, 2) FROM pg_sequences WHERE sequencename = 'orders_id_seq')"),
    ("snowflake_unreadable", "sequences", "(SELECT count(*) FROM pg_sequences WHERE schemaname = 'shop')"),
    ("snowflake_partitions", "ahead_seconds", "(SELECT extract(epoch FROM snowflake_timestamp(max(split_part(pg_get_expr(c.relpartbound, c.oid), '''', 4)::bigint)))
                 - extract(epoch FROM clock_timestamp())
          FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'events'::regclass)"),
    ("snowflake_maintenance", "kept", "(SELECT kept FROM snowflake_partitions_internal.settings)"),
    ("snowflake_maintenance", "age_seconds",
        "(SELECT extract(epoch FROM clock_timestamp() - succeeded_at) FROM snowflake_partitions.status)"),
    ("snowflake_nodes", "findings", "0"),
];

/// What the metrics are now, by that SQL. Of several rows, the sum.
fn expected(client: &mut Client) -> Result<BTreeMap<String, f64>> {
    EXPECTED
        .iter()
        .map(|(view, column, expression)| {
            // No views: the tool that has one is not needed here, and the others are of the catalog.
            let from = match *view {
                "snowflake_serial_columns"
                | "snowflake_unreadable"
                | "snowflake_partitions"
                | "snowflake_maintenance"
                | "snowflake_nodes" => String::new(),
                _ => format!("FROM {view}"),
            };
            let query = format!("SELECT ({expression})::float8 {from}");
            Ok((format!("{view}_{column}"), client.value(&query)?.parse()?))
        })
        .collect()
}

/// Creates a partition for each day.
fn partitions(table: &str, since: &str, until: &str) -> String {
    format!(
        "CREATE EXTENSION IF NOT EXISTS snowflake_partitions;
         DO $$ DECLARE s text; BEGIN
             FOR s IN SELECT snowflake_partitions.ddl('{table}', date_trunc('day', {since}, 'UTC'), {until}, '1 day', 'UTC') LOOP EXECUTE s; END LOOP;
         END $$"
    )
}

/// The value of the sample with this metric and label, if there is one.
fn sample(
    samples: &BTreeMap<String, Vec<String>>,
    metric: &str,
    label: &str,
) -> Result<Option<f64>> {
    let found: Vec<_> = samples
        .get(metric)
        .into_iter()
        .flatten()
        .filter(|sample| sample.contains(label))
        .cloned()
        .collect();
    ensure!(found.len() < 2, "{found:?}");
    if found.is_empty() {
        Ok(None)
    } else {
        sum(&found).map(Some)
    }
}

fn start_exporter(
    cluster: &Cluster,
    directory: &Path,
    os_user: &OsUser,
    port: u16,
) -> Result<Program> {
    let queries = directory.join("queries.yaml");
    std::fs::copy(file("queries.yaml"), &queries)?;
    os_user.own(&queries)?;
    let source = format!(
        "user=monitor host={} port={} dbname=postgres sslmode=disable",
        cluster.sockets().display(),
        cluster.port()
    );
    let arguments = [
        format!("--extend.query-path={}", queries.display()),
        format!("--web.listen-address=127.0.0.1:{port}"),
        "--disable-settings-metrics".to_owned(),
    ];
    let program = program::from_variable("SNOWFLAKE_EXPORTER")?;
    let mut exporter = Program::start(
        os_user,
        directory,
        &program,
        &arguments,
        [("DATA_SOURCE_NAME", source)],
    )?;
    wait::until("the exporter", TIMEOUT, || {
        exporter.require_running()?;
        Ok(samples(port).is_ok_and(|samples| !samples.is_empty()))
    })?;
    Ok(exporter)
}

#[test]
fn an_exporter_has_every_metric_that_alerts_and_dashboard_use() -> Result<()> {
    let cluster = Cluster::node(7).start_with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE ROLE monitor LOGIN; CREATE TABLE orders (id serial PRIMARY KEY);
         SELECT setval('orders_id_seq', 2000000000); GRANT SELECT ON SEQUENCE orders_id_seq TO monitor;
         CREATE SCHEMA shop; CREATE TABLE shop.elsewhere (id serial PRIMARY KEY, other int GENERATED ALWAYS AS IDENTITY);
         CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id)",
    )?;
    client.batch_execute(&partitions("events", "now()", "now() + interval '7 days'"))?;
    // One that is due and kept.
    let today = client.value("SELECT snowflake_min_id(date_trunc('day', now(), 'UTC'))")?;
    client.batch_execute(&format!(
        "CREATE TABLE events_old PARTITION OF events FOR VALUES FROM (0) TO ({today}); CREATE VIEW of_one AS TABLE events_old;
         SELECT snowflake_partitions.configure('events', '1 day', 'UTC', keep => '0 days')",
    ))?;
    client.batch_execute("CALL snowflake_partitions.maintain('events')")?;
    client.answers(
        "SELECT kept FROM snowflake_partitions_internal.settings",
        "1",
    )?;
    ids::nextval(&mut client, 5_000)?;
    let os_user = OsUser::for_servers()?;
    let scratch = Scratch::new(&os_user)?;
    let directory = scratch.subdirectory("exporter", &os_user)?;
    let [port] = free_ports()?;
    let exporter = start_exporter(&cluster, &directory, &os_user, port)?;
    let before = expected(&mut client)?;
    let exported = samples(port)?;
    let names: BTreeSet<String> = exported.keys().cloned().collect();
    let defined = defined()?;
    let missing: Vec<_> = defined.difference(&names).collect();
    ensure!(
        missing.is_empty(),
        "not exported: {missing:?}\n{}",
        exporter.log()
    );
    for user in ["alerts.yml", "alerts.test.yml", "dashboard.json"] {
        let used = used(user)?;
        let unknown: Vec<_> = used.difference(&defined).collect();
        ensure!(
            unknown.is_empty() && used.len() > 8,
            "{user} uses {unknown:?}"
        );
    }
    let after = expected(&mut client)?;
    let compared: BTreeSet<String> = after.keys().cloned().collect();
    assert_eq!(
        compared, defined,
        "the metrics whose values are compared with those of SQL"
    );
    for (metric, after) in &after {
        let got = sum(&exported[metric])?;
        let (low, high) = (after.min(before[metric]), after.max(before[metric]));
        // The exporter has read between the two; it rounds.
        ensure!(
            (low - 0.001..=high + 0.001).contains(&got),
            "{metric}: {got}, but {low} to {high} by SQL"
        );
    }
    // SnowflakeNoMetrics uses this one, which is the exporter's own.
    let all = http("GET", port, "/metrics", "")?;
    ensure!(
        all.lines()
            .any(|line| line == "pg_exporter_last_scrape_error 0"),
        "{all}"
    );
    let slots = exported["snowflake_stat_slots_ids"].len();
    assert_eq!(slots, 16);
    let failed = exporter
        .log()
        .lines()
        .filter(|line| line.contains("level=error"))
        .count();
    assert_eq!(failed, 0, "{}", exporter.log());
    Ok(())
}

/// A key with one number left has no metric if its sequence may not be read.
#[test]
fn sequences_that_an_exporter_may_not_read_are_counted() -> Result<()> {
    let cluster = Cluster::node(7).start_with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE ROLE monitor LOGIN; CREATE ROLE app; GRANT CREATE ON SCHEMA public TO app;
         CREATE TABLE granted (id serial PRIMARY KEY); GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO monitor;
         CREATE TABLE later (id serial PRIMARY KEY);
         CREATE SCHEMA shop; CREATE TABLE shop.elsewhere (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
         CREATE SEQUENCE shop.of_no_column;
         SELECT setval(name, 2147483646) FROM unnest('{granted_id_seq,later_id_seq,shop.elsewhere_id_seq}'::regclass[]) AS name",
    )?;
    let os_user = OsUser::for_servers()?;
    let scratch = Scratch::new(&os_user)?;
    let directory = scratch.subdirectory("exporter", &os_user)?;
    let [port] = free_ports()?;
    let exporter = start_exporter(&cluster, &directory, &os_user, port)?;
    let seen = || -> Result<(Option<f64>, usize)> {
        let samples = samples(port)?;
        let unreadable = sample(
            &samples,
            "snowflake_unreadable_sequences",
            "datname=\"postgres\"",
        )?;
        let full = samples.get("snowflake_serial_columns_percent_used");
        Ok((unreadable, full.map_or(0, Vec::len)))
    };
    // What is done, then the sequences that are not read, and the columns that are.
    for (statements, unreadable, columns) in [
        ("", 2.0, 1),
        ("GRANT pg_monitor TO monitor", 2.0, 1),
        (
            "ALTER DEFAULT PRIVILEGES FOR ROLE app GRANT SELECT ON SEQUENCES TO monitor;
             SET ROLE app; CREATE TABLE newer (id serial PRIMARY KEY); RESET ROLE; SELECT setval('newer_id_seq', 2147483646)",
            2.0,
            2,
        ),
        ("GRANT USAGE ON SEQUENCE later_id_seq TO monitor", 1.0, 3),
        ("GRANT pg_read_all_data TO monitor", 0.0, 4),
        ("CREATE TABLE newest (id serial PRIMARY KEY); SELECT setval('newest_id_seq', 2147483646)", 0.0, 5),
    ] {
        client.batch_execute(statements)?;
        assert_eq!(seen()?, (Some(unreadable), columns), "{statements}");
    }
    ensure!(
        !exporter.log().contains("level=error"),
        "{}",
        exporter.log()
    );
    Ok(())
}

/// For how long new rows have a partition, of tables of many kinds.
#[test]
fn an_exporter_shows_how_long_new_rows_have_partitions() -> Result<()> {
    const KEY: &str = "(id bigint DEFAULT snowflake_nextval()) PARTITION BY RANGE (id)";
    const DAY: f64 = 86_400.0;
    let cluster = Cluster::node(7).start_with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(&format!(
        "CREATE ROLE monitor LOGIN; CREATE SCHEMA \"Odd\";
         CREATE TABLE week {KEY}; CREATE TABLE gap {KEY}; CREATE TABLE ended {KEY}; CREATE TABLE none {KEY}; CREATE TABLE later {KEY};
         CREATE TABLE open_end {KEY}; CREATE TABLE with_default {KEY}; CREATE TABLE \"Odd\".detached {KEY};
         CREATE TABLE collected (id bigint) PARTITION BY RANGE (id); CREATE TABLE by_number (id bigint) PARTITION BY RANGE (id);
         CREATE TABLE by_list (region text, id bigint DEFAULT snowflake_nextval()) PARTITION BY LIST (region);
         CREATE TABLE by_list_1 PARTITION OF by_list FOR VALUES IN ('a') PARTITION BY RANGE (id);
         CREATE TABLE by_range {KEY};
         CREATE TABLE by_range_1 PARTITION OF by_range FOR VALUES FROM (0) TO (1000000) PARTITION BY RANGE (id)"
    ))?;
    // Days that begin before now and after it.
    for (table, since, until) in [
        (
            "week",
            "now() - interval '2 days'",
            "now() + interval '7 days'",
        ),
        ("gap", "now()", "now() + interval '2 days'"),
        (
            "gap",
            "now() + interval '5 days'",
            "now() + interval '9 days'",
        ),
        (
            "ended",
            "now() - interval '5 days'",
            "now() - interval '2 days'",
        ),
        (
            "later",
            "now() + interval '2 days'",
            "now() + interval '5 days'",
        ),
        ("with_default", "now()", "now() + interval '2 days'"),
        ("\"Odd\".detached", "now()", "now() + interval '4 days'"),
        ("collected", "now()", "now() + interval '3 days'"),
        ("by_number", "now()", "now() + interval '3 days'"),
        ("by_list_1", "now()", "now() + interval '6 days'"),
    ] {
        // Not as steps that continue existing partitions: a gap is meant here.
        if table == "gap" && since != "now()" {
            let id = |client: &mut Client, time: &str| {
                client.value(&format!("SELECT snowflake_min_id({time})"))
            };
            let (low, high) = (id(&mut client, since)?, id(&mut client, until)?);
            client.batch_execute(&format!(
                "CREATE TABLE gap_after PARTITION OF gap FOR VALUES FROM ({low}) TO ({high})"
            ))?;
        } else {
            client.batch_execute(&partitions(table, since, until))?;
        }
    }
    client.batch_execute(
        "CREATE TABLE open_end_1 PARTITION OF open_end FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
         CREATE TABLE default_1 PARTITION OF with_default DEFAULT;
         ALTER TABLE collected ADD PRIMARY KEY (id); CALL snowflake_watch('collected')",
    )?;
    let last = client.value(
        "SELECT max(c.oid::regclass::text) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
         WHERE i.inhparent = '\"Odd\".detached'::regclass",
    )?;
    client.batch_execute(&format!(
        "ALTER TABLE \"Odd\".detached DETACH PARTITION {last}"
    ))?;
    let os_user = OsUser::for_servers()?;
    let scratch = Scratch::new(&os_user)?;
    let directory = scratch.subdirectory("exporter", &os_user)?;
    let [port] = free_ports()?;
    let exporter = start_exporter(&cluster, &directory, &os_user, port)?;
    let samples = samples(port)?;
    let metric = "snowflake_partitions_ahead_seconds";
    // A partition ends up to a day after the time that is asked for.
    for (table, days) in [
        ("week", Some(7.0)),
        ("gap", Some(2.0)),
        ("collected", Some(3.0)),
        ("by_list_1", Some(6.0)),
        ("by_number", None),
        ("by_range_1", None),
    ] {
        let found = sample(&samples, metric, &format!("table_name=\"{table}\""))?;
        match days {
            Some(days) => ensure!(
                found
                    .is_some_and(|seconds| (days * DAY - 300.0..(days + 1.0) * DAY + 300.0)
                        .contains(&seconds)),
                "{table}: {found:?}, but {days} days"
            ),
            None => assert_eq!(found, None, "{table}"),
        }
    }
    let detached = sample(&samples, metric, "schema_name=\"Odd\"")?;
    ensure!(
        detached.is_some_and(|seconds| (2.9 * DAY..4.1 * DAY).contains(&seconds)),
        "{detached:?}"
    );
    for (table, expected) in [
        ("ended", 0.0),
        ("none", 0.0),
        ("later", 0.0),
        ("by_range", 0.0),
        ("open_end", f64::INFINITY),
        ("with_default", f64::INFINITY),
    ] {
        let found = sample(&samples, metric, &format!("table_name=\"{table}\""))?;
        assert_eq!(found, Some(expected), "{table}");
    }
    assert_eq!(samples[metric].len(), 11, "{:?}", samples[metric]);
    ensure!(
        !exporter.log().contains("level=error"),
        "{}",
        exporter.log()
    );
    Ok(())
}

#[test]
fn each_alert_fires_when_it_should() -> Result<()> {
    let promtool = program::from_variable("SNOWFLAKE_PROMTOOL")?;
    for arguments in [
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts.test.yml"],
    ] {
        let output = Command::new(&promtool)
            .args(arguments)
            .current_dir(file("alerts.yml").parent().context("no directory")?)
            .output()?;
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success() && said.contains("SUCCESS"),
            "{arguments:?}: {said}"
        );
    }
    // Every alert is among the tests.
    let text = |name: &str| std::fs::read_to_string(file(name));
    let (rules, tests) = (text("alerts.yml")?, text("alerts.test.yml")?);
    let alerts: Vec<_> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    for alert in &alerts {
        ensure!(
            tests.contains(&format!("- name: {alert}\n")),
            "{alert} is not tested"
        );
    }
    Ok(())
}

//! What an exporter for Prometheus reads from a server, and the alerts on it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use snowflake_tests::os_user::OsUser;
use snowflake_tests::program::{self, Program, free_ports, http};
use snowflake_tests::query::value;
use snowflake_tests::scratch::Scratch;
use snowflake_tests::{Cluster, ids, wait};

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
    let cluster = Cluster::builder()
        .conf("snowflake.node_id", 7)
        .start_with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE ROLE monitor LOGIN; CREATE TABLE orders (id serial PRIMARY KEY);
         SELECT setval('orders_id_seq', 2000000000); GRANT SELECT ON SEQUENCE orders_id_seq TO monitor",
    )?;
    ids::nextval(&mut client, 5_000)?;
    let os_user = OsUser::for_servers()?;
    let scratch = Scratch::new(&os_user)?;
    let directory = scratch.subdirectory("exporter", &os_user)?;
    let [port] = free_ports()?;
    let exporter = start_exporter(&cluster, &directory, &os_user, port)?;
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
        println!("{user}: {} metrics, all exported", used.len());
    }
    // Their values are those of SQL.
    for (metric, query) in [
        ("snowflake_status_ids", "SELECT ids FROM snowflake_status"),
        (
            "snowflake_status_node_id",
            "SELECT node_id FROM snowflake_status",
        ),
        (
            "snowflake_status_node_conflicts",
            "SELECT node_conflicts FROM snowflake_status",
        ),
        ("snowflake_status_preloaded", "SELECT 1"),
        ("snowflake_status_stopped", "SELECT 0"),
        ("snowflake_status_copied", "SELECT 0"),
        ("snowflake_status_lease_seconds", "SELECT 2"),
        ("snowflake_status_max_borrow_seconds", "SELECT 1"),
        (
            "snowflake_serial_columns_percent_used",
            "SELECT percent_used FROM snowflake_serial_columns",
        ),
    ] {
        let sample = exported[metric].first().context("no sample")?;
        let got: f64 = sample.rsplit(' ').next().unwrap_or_default().parse()?;
        let wanted: f64 = value(&mut client, query)?.parse()?;
        ensure!((got - wanted).abs() < 0.01, "{sample}: {wanted}");
    }
    let slots = exported["snowflake_stat_slots_ids"].len();
    assert_eq!(slots, 16);
    let failed = exporter
        .log()
        .lines()
        .filter(|line| line.contains("level=error"))
        .count();
    assert_eq!(failed, 0, "{}", exporter.log());
    println!(
        "{} metrics of {} exported, by a role that may read a sequence and nothing else",
        names.len(),
        defined.len()
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
    println!(
        "{} alerts fire when they should, and not before",
        alerts.len()
    );
    Ok(())
}

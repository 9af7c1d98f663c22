//! A script beside the clients of an application, and the extension's plan beside the same.
//!
//! The figures of a full run: `TIER=full make test ONLY=migration::script_load`.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use regex::Regex;
use snowflake_tests::scratch::Scratch;

use crate::support::*;

const PGBENCH: &str = "
\\set old random(1, :orders)
\\set table random(1, 6)
BEGIN;
INSERT INTO orders (note) VALUES ('pgbench') RETURNING id AS order_id \\gset
INSERT INTO lines:table (order_id) VALUES (:order_id);
UPDATE lines:table SET n = n + 1 WHERE order_id = :old;
UPDATE orders SET note = note WHERE id = :old;
SELECT count(*) FROM lines:table WHERE order_id = :order_id;
COMMIT;
";

/// A key with `orders` rows, and six tables with a fifth of that which reference it.
fn shop(orders: u32) -> String {
    let mut shop = format!(
        "CREATE TABLE orders (id serial PRIMARY KEY, note text);
         INSERT INTO orders (note) SELECT repeat('n', 60) FROM generate_series(1, {orders});"
    );
    for table in 1..=6 {
        shop += &format!(
            "CREATE TABLE lines{table} (id bigserial PRIMARY KEY, order_id int NOT NULL, n int DEFAULT 0);
             INSERT INTO lines{table} (order_id) SELECT i * 5 FROM generate_series(1, {orders} / 5) AS i;
             ALTER TABLE lines{table} ADD FOREIGN KEY (order_id) REFERENCES orders;
             CREATE INDEX ON lines{table} (order_id);"
        );
    }
    shop
}

/// What four clients of `pgbench` saw.
#[derive(Debug, Default)]
struct Seen {
    transactions: usize,
    longest: Duration,
}

/// Four clients of `pgbench`, again and again until they are stopped. Its exit code is not 0 if a
/// statement fails.
fn clients(cluster: &Cluster, database: &str, orders: u32, stop: &AtomicBool) -> Result<Seen> {
    let scratch = Scratch::new(cluster.os_user())?;
    let logs = scratch.subdirectory("logs", cluster.os_user())?;
    let script = scratch.path().join("script");
    fs::write(&script, PGBENCH)?;
    while !stop.load(Ordering::SeqCst) {
        let output = cluster
            .client_command("pgbench", database)
            .env("PGUSER", "keeper")
            .args(["-n", "-c", "4", "-j", "1", "-T", "2", "-l", "--log-prefix"])
            .arg(logs.join("log"))
            .args(["-D", &format!("orders={orders}"), "-f"])
            .arg(&script)
            .output()?;
        ensure!(
            output.status.success(),
            "a statement of an application failed: {output:?}"
        );
    }
    let mut seen = Seen::default();
    for entry in fs::read_dir(logs)? {
        for line in fs::read_to_string(entry?.path())?.lines() {
            let micros = line.split(' ').nth(2).context("no time in pgbench's log")?;
            seen.longest = seen.longest.max(Duration::from_micros(micros.parse()?));
            seen.transactions += 1;
        }
    }
    Ok(seen)
}

/// Runs a migration beside them. Returns how long its backfill took, too.
fn beside_clients(
    cluster: &Cluster,
    database: &str,
    orders: u32,
    migrate: impl FnOnce() -> Result<()>,
) -> Result<(Seen, Duration)> {
    let (stop, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let clients = scope.spawn(|| clients(cluster, database, orders, &stop));
        let backfill = scope.spawn(|| -> Result<Duration> {
            let mut observer = cluster.connect()?;
            let mut took = Duration::ZERO;
            let runs = "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'active' AND query ~ '^CALL .*backfill'";
            while !ended.load(Ordering::SeqCst) {
                let begun = Instant::now();
                thread::sleep(Duration::from_millis(20));
                if observer.number(runs)? > 0 {
                    took += begun.elapsed();
                }
            }
            Ok(took)
        });
        let migrated = migrate();
        ended.store(true, Ordering::SeqCst);
        // Clients that hold what was prepared before go on with it.
        thread::sleep(Duration::from_secs(3));
        stop.store(true, Ordering::SeqCst);
        let seen = clients.join().expect("the thread of the clients")?;
        migrated?;
        Ok((seen, backfill.join().expect("the thread that looks")?))
    })
}

/// What the head of a script announces, in bytes: disk of tables, of indexes, and WAL.
fn announced(notices: &str) -> Result<[i64; 3]> {
    let pattern = Regex::new(
        r"up to (\d+) (\w+) more disk until they are vacuumed, (\d+) (\w+) for new indexes, about (\d+) (\w+) of WAL",
    )?;
    let found = pattern
        .captures(notices)
        .with_context(|| format!("nothing is announced: {notices}"))?;
    let bytes = |place: usize| -> Result<i64> {
        let unit = match &found[place + 1] {
            "bytes" => 1,
            "kB" => 1 << 10,
            "MB" => 1 << 20,
            _ => 1 << 30,
        };
        Ok(found[place].parse::<i64>()? * unit)
    };
    Ok([bytes(1)?, bytes(3)?, bytes(5)?])
}

/// Several sessions beside a migration.
#[test]
fn statements_of_an_application_do_not_fail_and_the_announced_is_taken() -> Result<()> {
    let orders = tier::size(20_000, 1_000_000);
    let cluster = Cluster::builder()
        .conf("full_page_writes", "on")
        .conf("max_wal_size", "8GB")
        // After a checkpoint, pages are logged whole again.
        .conf("checkpoint_timeout", "1h")
        .time_limit(Duration::from_secs(1_800))
        .start_with_migrate()?;
    cluster.run("CREATE ROLE keeper LOGIN")?;
    let mut admin = cluster.connect()?;
    admin.batch_execute("SET statement_timeout = 0")?;
    admin.batch_execute("CREATE DATABASE target OWNER keeper TEMPLATE template0")?;
    let mut target = cluster.connect_as("keeper", "target")?;
    target.batch_execute(&format!("SET statement_timeout = 0; {}", shop(orders)))?;
    drop(target);
    cluster
        .connect_to("target")?
        .batch_execute("VACUUM ANALYZE")?;
    for database in ["planned", "quiet"] {
        admin.batch_execute(&format!(
            "CREATE DATABASE {database} OWNER keeper TEMPLATE target"
        ))?;
    }
    admin.batch_execute("CHECKPOINT")?;
    cluster
        .connect_to("planned")?
        .batch_execute("CREATE EXTENSION snowflake_migrate CASCADE")?;
    let mut planned = cluster.connect_as("keeper", "planned")?;
    planned.batch_execute("SET statement_timeout = 0")?;
    let script = planned.value("SELECT snowflake_migrate.script('orders', online => true)")?;

    let (by_plan, plan_took) = beside_clients(&cluster, "planned", orders, || {
        let arguments = "'orders', keep_sequence => true";
        for _ in 0..1_000 {
            let Some(step) = online::plan(&mut planned, arguments)?.into_iter().next() else {
                return Ok(());
            };
            // A lock that is not available in its time is asked for again.
            if let Err(error) = planned.batch_execute(&step.statement) {
                let error = ServerError::from_error(error)?;
                ensure!(error.sqlstate == "55P03", "{}: {error}", step.statement);
            }
        }
        bail!("the plan does not end")
    })?;
    let (by_script, script_took) = beside_clients(&cluster, "target", orders, || {
        let done = psql(&cluster, "keeper", "target", &script, true)?;
        ensure!(done.success, "{done:?}");
        Ok(())
    })?;
    for database in ["planned", "target"] {
        let client = &mut cluster.connect_to(database)?;
        client.answers(
            "SELECT count(*) > 0 FROM pg_attribute WHERE attrelid = 'lines6'::regclass AND attname = 'order_id' AND atttypid = 'int8'::regtype",
            "t",
        )?;
        client.answers(
            &format!("SELECT count(DISTINCT id) FROM orders WHERE id <= {orders}"),
            orders,
        )?;
    }
    println!(
        "script beside pgbench: {} + 6 x {} rows; statements that failed 0 of {} + {} transactions; longest transaction {} ms by the plan, {} ms by the script; backfill {:.1} s and {:.1} s: {:.2} of its pace",
        grouped(orders),
        grouped(orders / 5),
        by_plan.transactions,
        by_script.transactions,
        by_plan.longest.as_millis(),
        by_script.longest.as_millis(),
        plan_took.as_secs_f64(),
        script_took.as_secs_f64(),
        plan_took.as_secs_f64() / script_took.as_secs_f64(),
    );

    let mut client = cluster.connect_to("quiet")?;
    let sizes = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = 'r' AND relname ~ '^(orders|lines)'";
    let position = "SELECT pg_current_wal_lsn() - '0/0'";
    let before = [client.number(sizes)?, client.number(position)?];
    let done = psql(&cluster, "keeper", "quiet", &script, true)?;
    ensure!(done.success, "{done:?}");
    let taken = [
        client.number(sizes)? - before[0],
        client.number(position)? - before[1],
    ];
    let [tables, indexes, wal] = announced(&done.errors)?;
    let ratio = |taken: i64, said: i64| {
        f64::from(i32::try_from(taken >> 10).unwrap_or(i32::MAX))
            / f64::from(i32::try_from(said >> 10).unwrap_or(1))
    };
    println!(
        "script alone: disk {:.2} and WAL {:.2} of what its head announced ({} and {} MB)",
        ratio(taken[0], tables + indexes),
        ratio(taken[1], wal),
        (tables + indexes) >> 20,
        wal >> 20,
    );
    ensure!(
        ratio(taken[0], tables + indexes) <= 1.1 && ratio(taken[1], wal) <= 1.3,
        "more than was announced"
    );
    Ok(())
}

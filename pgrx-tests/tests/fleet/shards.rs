//! A table partitioned over servers by postgres_fdw, and databases that are merged
//! from dumps.

use std::process::Command;

use crate::support::*;

const SESSIONS: usize = 4;
const ROUNDS: usize = 50;

fn server(node: i32) -> Result<Cluster> {
    Cluster::node(node).start_with_extension()
}

fn shard(one: &Server, two: &Server) -> Result<()> {
    two.run(
        "CREATE TABLE orders_b (tenant text, id bigint DEFAULT snowflake_nextval(), note text, PRIMARY KEY (tenant, id))",
    )?;
    one.run(&format!(
        "CREATE EXTENSION postgres_fdw;
         CREATE SERVER two FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{}', port '{}', dbname 'postgres', extensions 'snowflake');
         CREATE USER MAPPING FOR CURRENT_USER SERVER two OPTIONS (user 'postgres');
         CREATE TABLE orders (tenant text, id bigint DEFAULT snowflake_nextval(), note text) PARTITION BY LIST (tenant);
         CREATE TABLE orders_a PARTITION OF orders FOR VALUES IN ('a');
         ALTER TABLE orders_a ADD PRIMARY KEY (tenant, id);
         CREATE FOREIGN TABLE orders_b PARTITION OF orders FOR VALUES IN ('b') SERVER two",
        two.sockets().display(),
        two.port()
    ))?;
    Ok(())
}

/// IDs of rows that a session inserts by this statement.
fn insert(server: &Server, statement: &str) -> Result<Vec<i64>> {
    let mut client = server.connect()?;
    let mut ids = Vec::new();
    for _ in 0..ROUNDS {
        ids::fetch_into(&mut client, statement, &mut ids)?;
    }
    Ok(ids)
}

#[test]
fn a_partitioned_table_over_two_servers_has_distinct_ids() -> Result<()> {
    let (one, two) = (server(1)?, server(2)?);
    shard(&one, &two)?;
    let rows = "FROM generate_series(1, 10) RETURNING id";
    // Through the parent to either shard, and on the shards.
    let ways = [
        (
            &one,
            "through the parent to the local shard",
            format!("INSERT INTO orders (tenant) SELECT 'a' {rows}"),
            1,
        ),
        (
            &one,
            "through the parent to the other server",
            format!("INSERT INTO orders (tenant) SELECT 'b' {rows}"),
            1,
        ),
        (
            &one,
            "on the local shard",
            format!("INSERT INTO orders_a (tenant) SELECT 'a' {rows}"),
            1,
        ),
        (
            &two,
            "on the other server",
            format!("INSERT INTO orders_b (tenant) SELECT 'b' {rows}"),
            2,
        ),
    ];
    let lists = thread::scope(|scope| {
        let threads: Vec<_> = ways
            .iter()
            .flat_map(|(server, _, statement, _)| (0..SESSIONS).map(move |_| (server, statement)))
            .map(|(server, statement)| scope.spawn(move || insert(server, statement)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a session"))
            .collect::<Result<Vec<_>>>()
    })?;
    let mut client = one.connect()?;
    for ((_, way, _, node), lists) in ways.iter().zip(lists.chunks(SESSIONS)) {
        for id in lists.concat() {
            let found: i32 = client
                .query_one("SELECT snowflake_node_id($1)", &[&id])?
                .get(0);
            assert_eq!(found, *node, "{way}: {id}");
        }
        println!(
            "{way}: {} IDs, all with node number {node}",
            grouped(lists.concat().len() as u64)
        );
    }
    let all = lists.concat();
    client.answers("SELECT count(*) FROM orders", all.len() as i64)?;
    client.answers("SELECT count(DISTINCT id) FROM orders", all.len() as i64)?;
    // A range of time finds all of them, and not one of another time.
    for (range, expected) in [
        (
            "snowflake_between(id, now() - interval '1 hour', now() + interval '1 hour')",
            all.len(),
        ),
        (
            "id >= (SELECT snowflake_min_id(now() - interval '1 hour'))",
            all.len(),
        ),
        (
            "id < (SELECT snowflake_min_id(now() - interval '1 hour'))",
            0,
        ),
    ] {
        client.answers(
            &format!("SELECT count(*) FROM orders WHERE {range}"),
            expected as i64,
        )?;
    }
    // The bound is sent to the other server (docs/clients.md).
    let plan = client.query(
        "EXPLAIN (VERBOSE, COSTS off) SELECT count(*) FROM orders WHERE id >= (SELECT snowflake_min_id(now() - interval '1 hour'))",
        &[],
    )?;
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    ensure!(
        plan.iter()
            .any(|line| line.contains("Remote SQL") && line.contains("id >= $1")),
        "{}",
        plan.join("\n")
    );
    let tally = Tally::of(all);
    println!("{tally}");
    tally.assert_unique();
    Ok(())
}

const TABLES: &str = "CREATE TABLE customers (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
    CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer bigint NOT NULL REFERENCES customers, note text)";

/// What `pg_dump` writes for a table's rows, and the mark.
fn dump(server: &Server) -> Result<String> {
    let output = server
        .client_command("pg_dump", "postgres")
        .args([
            "--data-only",
            "--table=customers",
            "--table=orders",
            "--table=snowflake_internal.restore",
        ])
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

fn restore(server: &Server, dump: &str) -> Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), dump)?;
    let mut command: Command = server.client_command("psql", "postgres");
    let output = command
        .args([
            "--no-psqlrc",
            "--quiet",
            "--set=ON_ERROR_STOP=1",
            "--single-transaction",
            "--file=-",
        ])
        .stdin(std::fs::File::open(file.path())?)
        .output()
        .context("running psql")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

#[test]
fn two_dumps_are_merged_without_a_duplicate() -> Result<()> {
    let (one, two, both) = (server(1)?, server(2)?, server(3)?);
    for server in [&one, &two] {
        server.run(&format!(
            "{TABLES};
             INSERT INTO customers (name) SELECT 'customer ' || n FROM generate_series(1, 2000) AS n;
             INSERT INTO orders (customer, note) SELECT c.id, 'order ' || n FROM customers AS c, generate_series(1, 10) AS n"
        ))?;
    }
    let mut client = both.connect()?;
    client.batch_execute(&format!("{TABLES}; CALL snowflake_watch()"))?;
    for server in [&one, &two] {
        restore(&both, &dump(server)?)?;
    }
    for (table, rows) in [("customers", 4_000), ("orders", 40_000)] {
        client.answers(&format!("SELECT count(*) FROM {table}"), rows)?;
    }
    let orphans = "SELECT count(*) FROM orders AS o LEFT JOIN customers AS c ON c.id = o.customer WHERE c.id IS NULL";
    client.answers(orphans, 0)?;
    let mut ids = ids::fetch(
        &mut client,
        "SELECT id FROM customers UNION ALL SELECT id FROM orders",
    )?;
    ids.extend(ids::nextval(&mut client, 10_000)?);
    let tally = Tally::of(ids);
    println!("two servers merged: {tally}");
    tally.assert_unique();
    let of_nodes = "SELECT string_agg(n || ': ' || c, ', ' ORDER BY n) FROM (SELECT snowflake_node_id(id) AS n, count(*) AS c FROM orders GROUP BY 1) AS g";
    client.answers(of_nodes, "1: 20000, 2: 20000")?;
    let findings = "SELECT count(*) FROM snowflake_audit_tables(expected_nodes => '{1,2,3}')";
    client.answers(findings, 0)?;
    Ok(())
}

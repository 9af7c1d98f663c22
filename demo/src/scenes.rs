//! What the demo shows, in order.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use postgres::Client;
use snowflake_tests::clock::{Clock, Kind, Offset};
use snowflake_tests::ids::grouped;
use snowflake_tests::{Server, Stop};

use crate::pgbench::{CLIENTS, INSERT, pgbench, rate};
use crate::print::{heading, pairs, table};

pub const DATABASE: &str = "demo";

/// How long the clients insert, in seconds.
const SECONDS: &str = "5";

/// How far the clock is set back before the restart, if libfaketime is installed.
const STEP: Duration = Duration::from_secs(10);

/// Shows everything on a server that has just been started. `password` is the
/// superuser's on TCP.
pub fn play(server: &mut Server, password: &str) -> Result<()> {
    let mut client = create_table(server)?;
    insert(server, &mut client)?;
    show_rows(&mut client)?;
    crash(server, client)?;
    invite(server, password);
    Ok(())
}

fn create_table(server: &Server) -> Result<Client> {
    server
        .connect()?
        .batch_execute(&format!("CREATE DATABASE {DATABASE}"))?;
    let mut client = server.connect_to(DATABASE)?;
    heading("A server and a table");
    println!(
        "PostgreSQL {}, port {}",
        server.installation().version,
        server.port()
    );
    println!();
    for statement in [
        "CREATE EXTENSION snowflake;",
        "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);",
    ] {
        client.batch_execute(statement)?;
        println!("    {statement}");
    }
    Ok(client)
}

fn insert(server: &Server, client: &mut Client) -> Result<()> {
    heading(&format!(
        "{CLIENTS} clients insert at the same time, for {SECONDS} seconds"
    ));
    println!("    {INSERT}\n");
    let rate = rate(server, SECONDS)?;
    let mut lines = counts(client)?;
    lines.push(("inserts a second", rate));
    pairs(&lines);

    let million = "SELECT count(snowflake_nextval()) FROM generate_series(1, 1000000)";
    let begun = Instant::now();
    client.query_one(million, &[])?;
    println!(
        "\nEach insert is a transaction, and each commit is flushed to the disk. A\n\
         million IDs in one SELECT take {} ms. This library was compiled quickly, without\n\
         link-time optimization; `make` compiles a faster one.",
        begun.elapsed().as_millis()
    );
    Ok(())
}

fn show_rows(client: &mut Client) -> Result<()> {
    heading("A few of the rows");
    let query = "SELECT id, created_at, node_id, backend_id, sequence
                 FROM orders, snowflake_decode(id) ORDER BY random() LIMIT 6";
    table(
        client,
        &format!("SELECT * FROM ({query}) AS few ORDER BY id"),
    )
}

fn crash(server: &mut Server, mut client: Client) -> Result<()> {
    heading("kill -9 of the whole server, in the middle of the next inserts");
    let clock = Clock::new(
        Kind::Faketime,
        &server.data().with_file_name(""),
        server.os_user(),
    )
    .ok();
    let mut clients = pgbench(server, "30")?
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("starting pgbench")?;
    std::thread::sleep(Duration::from_millis(1_500));
    let last_seen: i64 = client.query_one("SELECT max(id) FROM orders", &[])?.get(0);
    let killed = server.kill9_all()?;
    // pgbench fails because its server is gone. That is expected here.
    clients.wait()?;
    let clock_step = match &clock {
        Some(clock) => {
            clock.set_offset(Offset::back(STEP))?;
            clock.drive(server);
            format!("clock set {} s back; ", STEP.as_secs())
        }
        None => String::new(),
    };
    let begun = Instant::now();
    server.start()?;
    println!(
        "{killed} processes killed; {clock_step}restarted, with crash recovery, in {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    let mut client = server.connect_to(DATABASE)?;
    show_rows_after_crash(&mut client, last_seen)?;
    if clock.is_some() {
        correct_clock(server, client)?;
    }
    Ok(())
}

fn show_rows_after_crash(client: &mut Client, last_seen: i64) -> Result<()> {
    let row = client.query_one(
        "WITH fresh AS (INSERT INTO orders (note)
                        SELECT 'after the crash' FROM generate_series(1, 1000) RETURNING id)
         SELECT count(*), min(id) FROM fresh",
        &[],
    )?;
    let (rows, first): (i64, i64) = (row.get(0), row.get(1));
    println!();
    pairs(&[
        ("the last ID before the crash", last_seen.to_string()),
        ("the first ID after it", first.to_string()),
        ("rows inserted after it", grouped(u64::try_from(rows)?)),
    ]);
    println!();
    pairs(&counts(client)?);
    Ok(())
}

/// Restarts the server with the machine's time.
fn correct_clock(server: &mut Server, mut client: Client) -> Result<()> {
    let behind: String = client
        .query_one(
            "SELECT round(extract(epoch FROM clock_behind), 1)::text FROM snowflake_status",
            &[],
        )?
        .get(0);
    drop(client);
    println!(
        "\nThe clock is {behind} s behind the IDs. Their time continues from the last ID, at\n\
         half speed, until the clock has caught up. Now the server is restarted with\n\
         the right time."
    );
    server.stop(Stop::Fast)?;
    server.clear_environment();
    server.start()
}

fn invite(server: &Server, password: &str) {
    heading("Try it yourself");
    println!(
        "    {} postgresql://postgres:{password}@127.0.0.1:{}/{DATABASE}\n",
        server.installation().client_program("psql").display(),
        server.port()
    );
    println!("The server keeps running until `make demo-stop`.");
}

/// Rows, distinct IDs and duplicates.
fn counts(client: &mut Client) -> Result<Vec<(&'static str, String)>> {
    let row = client.query_one("SELECT count(*), count(DISTINCT id) FROM orders", &[])?;
    let (rows, distinct): (i64, i64) = (row.get(0), row.get(1));
    Ok(vec![
        ("rows", grouped(u64::try_from(rows)?)),
        ("distinct IDs", grouped(u64::try_from(distinct)?)),
        ("duplicates", grouped(u64::try_from(rows - distinct)?)),
    ])
}

//! The main job, shown to a person: `demo start` sets up a throwaway server,
//! lets 8 clients insert at once, kills the server in the middle of it, sets its
//! clock back, and leaves it running to play with; `demo stop` ends and removes it.
//!
//! The server lives in `$SNOWFLAKE_CACHE/demo`, outlives this program, and is
//! the only one it ever ends: the process in that directory's own
//! `postmaster.pid`, if it does work there.

use std::fs::{self, DirBuilder};
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use postgres::Client;
use rand::RngExt;
use rand::distr::Alphanumeric;
use snowflake_tests::account::Account;
use snowflake_tests::clock::{Clock, Offset};
use snowflake_tests::ids::grouped;
use snowflake_tests::server::tail;
use snowflake_tests::{Installation, Server, Stop};

const CLIENTS: &str = "8";
const SECONDS: &str = "5";
const DATABASE: &str = "demo";
const INSERT: &str = "INSERT INTO orders (note) VALUES ('by pgbench');";

/// How far the clock is set back before the restart, where libfaketime is there.
const STEP: Duration = Duration::from_secs(10);

/// The longest path of a Unix socket that the kernel takes.
const LONGEST_SOCKET_PATH: usize = 107;

/// Shows the snowflake extension on a throwaway server.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// The pg_config of a PostgreSQL tree with the extension.
    #[arg(long, env = "PG_CONFIG")]
    pg_config: PathBuf,

    /// Where the demo keeps its server, in a directory `demo`.
    #[arg(long, env = "SNOWFLAKE_CACHE")]
    cache: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Sets the server up, shows it, and leaves it running.
    Start,
    /// Stops the server and removes it.
    Stop,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let installation = Installation::from_pg_config(&arguments.pg_config)?;
    fs::create_dir_all(&arguments.cache)
        .with_context(|| format!("making {}", arguments.cache.display()))?;
    let directory = arguments.cache.canonicalize()?.join("demo");
    match arguments.command {
        Command::Start => start(installation, &directory),
        Command::Stop => {
            if remove(installation, &directory)? {
                println!("The demo's server has been stopped and removed.");
            } else {
                println!("There is no demo to stop.");
            }
            Ok(())
        }
    }
}

/// The server in the demo's directory, running or not.
fn server(installation: Installation, directory: &Path, port: u16) -> Result<Server> {
    Ok(Server::new(
        installation,
        Account::for_servers()?,
        directory.join("data"),
        directory.join("s"),
        directory.join("log"),
        port,
    ))
}

/// Ends and removes what an earlier run left; says whether there was anything.
fn remove(installation: Installation, directory: &Path) -> Result<bool> {
    if !directory.exists() {
        return Ok(false);
    }
    let mut old = server(installation, directory, 0)?;
    if old.is_running() {
        old.stop(Stop::Fast)?;
    }
    fs::remove_dir_all(directory).with_context(|| format!("removing {}", directory.display()))?;
    Ok(true)
}

fn start(installation: Installation, directory: &Path) -> Result<()> {
    if remove(installation.clone(), directory)? {
        println!("An earlier demo has been stopped and removed.");
    }
    let account = Account::for_servers()?;
    // Nobody else gets at the socket, which asks for no password.
    DirBuilder::new()
        .mode(0o700)
        .create(directory)
        .with_context(|| format!("making {}", directory.display()))?;
    account.own(directory)?;
    // Free now; should something else take it meanwhile, the server says so.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut server = server(installation, directory, port)?;
    let shown = show(&mut server);
    if shown.is_err() {
        if let Ok(log) = server.log() {
            eprintln!("The end of the server's log:\n{}", tail(&log, 20));
        }
        if server.is_running() {
            server.stop(Stop::Fast)?;
        }
    }
    shown
}

fn show(server: &mut Server) -> Result<()> {
    let password = set_up(server)?;
    let mut client = server.connect()?;
    client.batch_execute(&format!("ALTER ROLE postgres PASSWORD '{password}'"))?;
    client.batch_execute(&format!("CREATE DATABASE {DATABASE}"))?;
    let mut client = server.connect_to(DATABASE)?;
    heading("A server and a table");
    println!(
        "PostgreSQL {}, port {}",
        server.installation().version,
        server.port()
    );
    let sql = [
        "CREATE EXTENSION snowflake;",
        "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);",
    ];
    println!();
    for statement in sql {
        client.batch_execute(statement)?;
        println!("    {statement}");
    }

    heading(&format!(
        "{CLIENTS} clients insert at once, for {SECONDS} seconds"
    ));
    println!("    {INSERT}\n");
    let rate = insert_with_pgbench(server)?;
    report(&mut client, &[("inserts a second", rate)])?;

    let million = "SELECT count(snowflake_nextval()) FROM generate_series(1, 1000000)";
    let begun = Instant::now();
    client.query_one(million, &[])?;
    println!(
        "\nEach insert is a transaction of its own, flushed to the disk. A million IDs\n\
         in one SELECT take {} ms.",
        begun.elapsed().as_millis()
    );

    heading("A few of the rows");
    let query = "SELECT id, created_at, node_id, backend_id, sequence
                 FROM orders, snowflake_decode(id) ORDER BY random() LIMIT 6";
    table(
        &mut client,
        &format!("SELECT * FROM ({query}) AS few ORDER BY id"),
    )?;

    heading("kill -9 of the whole server, in the middle of the next inserts");
    let directory = server.data().with_file_name("");
    let clock = Clock::new(&directory, server.account()).ok();
    let mut pgbench = pgbench(server, "30")?
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("starting pgbench")?;
    std::thread::sleep(Duration::from_millis(1_500));
    let last_seen: i64 = client.query_one("SELECT max(id) FROM orders", &[])?.get(0);
    let killed = server.kill9_all()?;
    // Its clients have lost their server: that it fails is the point.
    pgbench.wait()?;
    let clock_said = match &clock {
        Some(clock) => {
            clock.set_offset(Offset::back(STEP))?;
            clock.drive(server);
            format!("its clock set {} s back; ", STEP.as_secs())
        }
        None => String::new(),
    };
    let begun = Instant::now();
    server.start()?;
    println!(
        "{killed} processes killed; {clock_said}restarted, with crash recovery, in {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    let mut client = server.connect_to(DATABASE)?;
    let row = client.query_one(
        "WITH fresh AS (INSERT INTO orders (note)
                        SELECT 'after the crash' FROM generate_series(1, 1000) RETURNING id)
         SELECT count(*), min(id) FROM fresh",
        &[],
    )?;
    let (rows, first): (i64, i64) = (row.get(0), row.get(1));
    println!();
    pairs(&[
        ("the last ID seen before it", last_seen.to_string()),
        ("the first one after it", first.to_string()),
        ("rows inserted after it", grouped(u64::try_from(rows)?)),
    ]);
    println!();
    report(&mut client, &[])?;
    if clock.is_some() {
        let behind: String = client
            .query_one(
                "SELECT round(extract(epoch FROM clock_behind), 1)::text FROM snowflake_status",
                &[],
            )?
            .get(0);
        println!(
            "\nThe clock is {behind} s behind the IDs; they go on above the last one, at half speed,\n\
             until it has caught up. Now the server is restarted with the right time."
        );
        drop(client);
        server.stop(Stop::Fast)?;
        server.clear_environment();
        server.start()?;
    }

    heading("Play on");
    let psql = server.installation().client_program("psql");
    println!(
        "    {} postgresql://postgres:{password}@127.0.0.1:{}/{DATABASE}\n",
        psql.display(),
        server.port()
    );
    println!("The server keeps running until `make demo-stop`.");
    Ok(())
}

/// `initdb` and the configuration. Returns the superuser's password on TCP.
fn set_up(server: &mut Server) -> Result<String> {
    server
        .account()
        .own(&make_directory(server.sockets())?)
        .context("the socket's directory")?;
    let socket = server.sockets().join(format!(".s.PGSQL.{}", server.port()));
    ensure!(
        socket.as_os_str().len() <= LONGEST_SOCKET_PATH,
        "{} is too long for a Unix socket: choose a shorter SNOWFLAKE_CACHE",
        socket.display()
    );
    server.initdb(&[])?;
    server.set_conf("listen_addresses", "127.0.0.1")?;
    server.set_conf("shared_preload_libraries", "snowflake")?;
    server.set_conf("snowflake.node_id", 1)?;
    server.set_conf("max_connections", 40)?;
    // TCP is open to every account of this machine.
    fs::write(
        server.data().join("pg_hba.conf"),
        "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n",
    )?;
    server.start()?;
    Ok(rand::rng()
        .sample_iter(Alphanumeric)
        .take(16)
        .map(char::from)
        .collect())
}

fn make_directory(path: &Path) -> Result<PathBuf> {
    DirBuilder::new()
        .mode(0o700)
        .create(path)
        .with_context(|| format!("making {}", path.display()))?;
    Ok(path.to_owned())
}

fn pgbench(server: &Server, seconds: &str) -> Result<std::process::Command> {
    let script = server.data().with_file_name("insert.sql");
    fs::write(&script, format!("{INSERT}\n"))
        .with_context(|| format!("writing {}", script.display()))?;
    let mut command = server.client_command("pgbench", DATABASE);
    command
        .args(["--client", CLIENTS, "--jobs", "2", "--time", seconds])
        .args(["--no-vacuum", "--protocol", "prepared", "--file"])
        .arg(script);
    Ok(command)
}

/// Returns the rate that pgbench measured.
fn insert_with_pgbench(server: &Server) -> Result<String> {
    let output = pgbench(server, SECONDS)?
        .output()
        .context("running pgbench")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!(
            "pgbench failed:\n{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let rate = text
        .lines()
        .find_map(|line| line.strip_prefix("tps = "))
        .and_then(|rest| rest.split(['.', ' ']).next())
        .and_then(|digits| digits.parse::<u64>().ok())
        .with_context(|| format!("no rate in what pgbench printed:\n{text}"))?;
    Ok(grouped(rate))
}

/// Rows, distinct IDs, duplicates, and what else there is to say.
fn report(client: &mut Client, more: &[(&str, String)]) -> Result<()> {
    let row = client.query_one("SELECT count(*), count(DISTINCT id) FROM orders", &[])?;
    let (rows, distinct): (i64, i64) = (row.get(0), row.get(1));
    let mut lines = vec![
        ("rows", grouped(u64::try_from(rows)?)),
        ("distinct IDs", grouped(u64::try_from(distinct)?)),
        ("duplicates", grouped(u64::try_from(rows - distinct)?)),
    ];
    lines.extend(more.iter().cloned());
    pairs(&lines);
    Ok(())
}

fn heading(text: &str) {
    println!("\n{text}\n{}\n", "-".repeat(text.len()));
}

/// Lines of a name and a value, the values below each other at the right.
fn pairs(lines: &[(&str, String)]) {
    let name = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let value = lines
        .iter()
        .map(|(_, value)| value.len())
        .max()
        .unwrap_or(0);
    for (text, number) in lines {
        println!("    {text:name$}  {number:>value$}");
    }
}

/// The rows of a query, as psql would draw them.
fn table(client: &mut Client, sql: &str) -> Result<()> {
    use postgres::SimpleQueryMessage::{Row, RowDescription};
    let mut lines: Vec<Vec<String>> = Vec::new();
    for message in client.simple_query(sql)? {
        match message {
            RowDescription(columns) => {
                lines.push(
                    columns
                        .iter()
                        .map(|column| column.name().to_owned())
                        .collect(),
                );
            }
            Row(row) => lines.push(
                (0..row.len())
                    .map(|column| row.get(column).unwrap_or_default().to_owned())
                    .collect(),
            ),
            _ => {}
        }
    }
    let columns = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            lines
                .iter()
                .map(|line| line[column].len())
                .max()
                .unwrap_or(0)
        })
        .collect();
    for (number, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| {
                if number == 0 {
                    format!(" {cell:^width$} ")
                } else {
                    format!(" {cell:>width$} ")
                }
            })
            .collect();
        println!("    {}", cells.join("|").trim_end());
        if number == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
            println!("    {}", rule.join("+"));
        }
    }
    Ok(())
}

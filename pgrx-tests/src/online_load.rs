//! An online migration beside writers: what they notice, and whether anything
//! is lost.
//!
//! Two keys are migrated, one after the other: that of `orders`, an identity
//! column that `order_lines` references, and that of `pgbench_accounts`.
//! Meanwhile four clients of the real `pgbench` write orders and its own
//! TPC-B-like transactions, and some sessions here do the same as an
//! application would, and keep each ID that they were given. Before the first
//! lock and before the swap of each key, a transaction that has written to the
//! tables sits idle.
//!
//! `pgbench` gives a client up at an error (`--max-tries` is for serialization
//! failures and deadlocks only), so each of its clients is a process that is
//! started again, as an application connects again; the sessions here prepare
//! the statement again and repeat the transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, anyhow, bail, ensure};
use postgres::types::{ToSql, Type};
use postgres::{Client, Config, NoTls, Row, SimpleQueryMessage, Statement};

use crate::cluster::{Cluster, ClusterBuilder};
use crate::ids::grouped;
use crate::online;
use crate::outcome::Refusal;
use crate::query::number;
use crate::scratch::Scratch;
use crate::server::Server;

/// Clients of `pgbench`.
const PGBENCH_CLIENTS: usize = 4;

/// Sessions that keep the IDs they are given.
const SESSIONS: usize = 3;

/// How long one run of `pgbench` lasts, seconds; the next one follows at once.
const SLICE: u64 = 10;

/// How long until a statement whose lock did not come is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// What takes less is no stall.
const NOTICED: Duration = Duration::from_millis(10);

/// Whose a stall was.
const STATEMENT: &str = "a statement of a session";

/// Who owns the tables and migrates them: no superuser.
const OWNER: &str = "shop";

/// What is migrated.
const TARGETS: [(&str, &str); 2] = [
    ("orders", "'orders'"),
    ("pgbench_accounts", "'pgbench_accounts', 'aid'"),
];

/// One order with a line, and one more order that was there before; what
/// came back is kept in the same transaction.
const ORDER_SCRIPT: &str = "\
\\set quantity random(1, 9)
\\set old random(1, :orders)
BEGIN;
INSERT INTO orders (customer, note) VALUES (:client_id, 'pgbench') RETURNING id AS order_id \\gset
INSERT INTO order_lines (order_id, quantity) VALUES (:order_id, :quantity) RETURNING id AS line_id \\gset
INSERT INTO received (order_id, line_id) VALUES (:order_id, :line_id);
SELECT note FROM orders WHERE id = :order_id;
UPDATE orders SET total = total + 1 WHERE id = :old;
COMMIT;
";

/// How much there is to migrate, and how it is disturbed.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// `pgbench`'s scale: 100,000 accounts each.
    pub scale: u32,
    /// Orders, each with a line.
    pub orders: u32,
    /// How long the idle transactions sit.
    pub idle: Duration,
    /// How long the writers work alone, before and after.
    pub alone: Duration,
    /// Whether the server flushes to the disk, as one in production does.
    pub durable: bool,
    /// What is done instead, to see that it is noticed.
    pub sabotage: Option<Sabotage>,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The plan for a maintenance window is run beside the writers.
    Window,
    /// A line that a client was told of is deleted in the end.
    Theft,
}

/// How clients send their statements: `pgbench -M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Each statement as a text.
    Simple,
    /// Statements that were prepared, over and over.
    Prepared,
}

impl Protocol {
    /// As `pgbench` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Prepared => "prepared",
        }
    }
}

/// A statement or transaction that took long.
#[derive(Debug, Clone)]
pub struct Stall {
    /// How long.
    pub took: Duration,
    /// Whose it was.
    pub whose: &'static str,
    /// When it ended.
    pub ended: SystemTime,
}

impl Stall {
    const NONE: Self = Self {
        took: Duration::ZERO,
        whose: "nobody",
        ended: SystemTime::UNIX_EPOCH,
    };

    fn or_longer(self, other: Self) -> Self {
        if other.took > self.took { other } else { self }
    }
}

/// One step that was run.
#[derive(Debug, Clone)]
pub struct Done {
    /// The table whose key is migrated.
    pub table: &'static str,
    /// The statement's beginning.
    pub title: String,
    /// How often a lock did not come in time before.
    pub retries: usize,
    /// How long it took, retries and pauses included.
    pub took: Duration,
    began: SystemTime,
    ended: SystemTime,
}

/// What a run showed.
#[derive(Debug, Clone)]
pub struct Report {
    /// How statements were sent.
    pub protocol: Protocol,
    /// How much there was to migrate.
    pub size: Size,
    /// Rows of the migrated and the referencing tables in the end.
    pub rows: i64,
    /// What was run.
    pub steps: Vec<Done>,
    /// Transactions of `pgbench` with an order, and TPC-B-like ones.
    pub transactions: [i64; 2],
    /// Statements of the sessions here.
    pub statements: u64,
    /// Clients of `pgbench` that were given up and started again.
    pub aborts: usize,
    /// What the server's log says: errors by application and SQLSTATE.
    pub errors: BTreeMap<(String, String), usize>,
    /// The longest statement or transaction of a writer while they were alone.
    pub longest_alone: Stall,
    /// The same while the tables were migrated.
    pub longest: Stall,
    /// The longest statement of a session here.
    pub longest_statement: Duration,
    /// How many statements and transactions took more than a quarter of a
    /// second meanwhile.
    pub long: usize,
    /// During which steps that was.
    pub longest_during: String,
    /// IDs that clients were given in transactions that they committed.
    pub ids: i64,
    /// How many of those are snowflake IDs.
    pub snowflake_ids: i64,
    /// Those that are not there, and rows, lines and updates that are missing.
    pub lost: i64,
}

impl Report {
    /// Errors of writers with this SQLSTATE; of all, where none is given.
    pub fn errors_of_writers(&self, sqlstate: Option<&str>) -> usize {
        self.errors
            .iter()
            .filter(|((application, _), _)| application != "migration")
            .filter(|((_, code), _)| sqlstate.is_none_or(|wanted| wanted == code))
            .map(|(_, count)| count)
            .sum()
    }

    /// Fails where something was lost, or a writer was given another error
    /// than 0A000 for a statement that it had prepared.
    pub fn verdict(&self) -> Result<()> {
        ensure!(self.lost == 0, "{} rows or IDs were lost", self.lost);
        let allowed = match self.protocol {
            Protocol::Simple => 0,
            Protocol::Prepared => self.errors_of_writers(Some("0A000")),
        };
        ensure!(
            self.errors_of_writers(None) == allowed,
            "writers were given errors: {:?}",
            self.errors
        );
        ensure!(
            self.snowflake_ids > 0 && self.snowflake_ids < self.ids,
            "no IDs before or none after: nothing was shown"
        );
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.protocol.name();
        for step in &self.steps {
            writeln!(
                formatter,
                "online load ({name}): {:>8.2} s {}{}: {}",
                step.took.as_secs_f64(),
                step.table,
                match step.retries {
                    0 => String::new(),
                    retries => format!(", {retries} times without its lock"),
                },
                step.title
            )?;
        }
        writeln!(
            formatter,
            "online load ({name}): {} rows migrated in {:.1} s beside {PGBENCH_CLIENTS} clients of pgbench -M {name} \
             ({} transactions with an order, {} TPC-B-like) and {SESSIONS} sessions ({} statements)",
            grouped(self.rows.unsigned_abs()),
            self.steps
                .iter()
                .map(|step| step.took)
                .sum::<Duration>()
                .as_secs_f64(),
            grouped(self.transactions[0].unsigned_abs()),
            grouped(self.transactions[1].unsigned_abs()),
            grouped(self.statements),
        )?;
        if self.errors.is_empty() {
            writeln!(formatter, "online load ({name}): no errors")?;
        }
        for ((application, sqlstate), count) in &self.errors {
            let why = match sqlstate.as_str() {
                "0A000" => {
                    ": cached plan must not change result type; once for each connection that had \
                     prepared a statement that returns the ID"
                }
                "55P03" => ": no lock in time; the statement is run again",
                _ => "",
            };
            writeln!(
                formatter,
                "online load ({name}): {count} errors {sqlstate} of {application}{why}"
            )?;
        }
        writeln!(
            formatter,
            "online load ({name}): {} clients of pgbench given up at an error and started again",
            self.aborts
        )?;
        writeln!(
            formatter,
            "online load ({name}): longest stall {} ms ({}, {}); longest statement {} ms; {} took more than 250 ms; \
             longest without a migration {} ms ({})",
            self.longest.took.as_millis(),
            self.longest.whose,
            self.longest_during,
            self.longest_statement.as_millis(),
            self.long,
            self.longest_alone.took.as_millis(),
            self.longest_alone.whose,
        )?;
        write!(
            formatter,
            "online load ({name}): {} IDs checked that clients were given, {} of them snowflake IDs; lost: {}",
            grouped(self.ids.unsigned_abs()),
            grouped(self.snowflake_ids.unsigned_abs()),
            self.lost
        )
    }
}

/// Runs it on a server of its own.
///
/// # Errors
/// What keeps it from being run to the end. Errors of writers and rows that
/// are lost are in the report.
pub fn run(
    builder: ClusterBuilder,
    size: Size,
    protocol: Protocol,
    mut progress: impl FnMut(&str),
) -> Result<Report> {
    let switch = if size.durable { "on" } else { "off" };
    let cluster = builder
        .conf("snowflake.node_id", 1)
        .conf("log_line_prefix", "%m [%p] %e %a ")
        .conf("max_wal_size", "8GB")
        .conf("fsync", switch)
        .conf("full_page_writes", switch)
        .start()?;
    let begun = Instant::now();
    set_up(&cluster, size)?;
    progress(&format!("tables made in {} s", begun.elapsed().as_secs()));

    let scratch = Scratch::new(cluster.account())?;
    let script = scratch.path().join("orders.sql");
    fs::write(&script, ORDER_SCRIPT)?;
    let logs = scratch.subdirectory("logs", cluster.account())?;
    let (script, logs) = (script.as_path(), logs.as_path());
    let stop = AtomicBool::new(false);
    let writers = Writers {
        cluster: &cluster,
        size,
        protocol,
        stop: &stop,
    };
    let (migrated, aborts, sessions) = thread::scope(|scope| -> Result<_> {
        let pgbench: Vec<_> = (0..PGBENCH_CLIENTS)
            .map(|client| scope.spawn(move || writers.pgbench(client, script, logs)))
            .collect();
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|number| scope.spawn(move || writers.session(number)))
            .collect();
        thread::sleep(size.alone);
        let migrated = migrate(&cluster, size, &mut progress);
        if migrated.is_ok() {
            thread::sleep(size.alone);
        }
        stop.store(true, Ordering::SeqCst);
        let migrated = migrated?;
        let mut aborts = 0;
        for client in pgbench {
            aborts += client.join().map_err(|_| anyhow!("a thread panicked"))??;
        }
        let mut received = Vec::new();
        for session in sessions {
            received.push(
                session
                    .join()
                    .map_err(|_| anyhow!("a session panicked"))??,
            );
        }
        Ok((migrated, aborts, received))
    })?;

    let mut transactions = [0, 0];
    let mut stalls = Vec::new();
    read_logs(logs, &mut transactions, &mut stalls)?;
    stalls.extend(sessions.iter().flat_map(|it| it.stalls.iter().cloned()));
    let (during, alone): (Vec<Stall>, Vec<Stall>) = stalls
        .into_iter()
        .partition(|it| it.ended > migrated.began && it.ended - it.took < migrated.ended);
    let statements_during = during.iter().filter(|it| it.whose == STATEMENT);
    let longest_statement = statements_during.map(|it| it.took).max();
    let long = during
        .iter()
        .filter(|it| it.took > Duration::from_millis(250))
        .count();
    let longest = |stalls: Vec<Stall>| stalls.into_iter().fold(Stall::NONE, Stall::or_longer);
    let (longest_alone, longest) = (longest(alone), longest(during));
    if size.sabotage == Some(Sabotage::Theft) {
        cluster.connect_to(OWNER)?.batch_execute(
            "DELETE FROM order_lines WHERE id = (SELECT max(line_id) FROM received)",
        )?;
    }
    let checked = check(&cluster, size, transactions, &sessions, migrated.idle)?;
    Ok(Report {
        protocol,
        size,
        rows: checked.rows,
        longest_during: steps_during(&migrated.steps, &longest),
        steps: migrated.steps,
        transactions,
        statements: sessions.iter().map(|it| it.statements).sum(),
        aborts,
        errors: errors(&cluster.log()?),
        longest_alone,
        longest,
        longest_statement: longest_statement.unwrap_or_default(),
        long,
        ids: checked.ids,
        snowflake_ids: checked.snowflake_ids,
        lost: checked.lost,
    })
}

fn set_up(cluster: &Cluster, size: Size) -> Result<()> {
    let mut superuser = cluster.connect()?;
    superuser.batch_execute(&format!("CREATE ROLE {OWNER} LOGIN"))?;
    superuser.batch_execute(&format!("CREATE DATABASE {OWNER} OWNER {OWNER}"))?;
    cluster
        .connect_to(OWNER)?
        .batch_execute("CREATE EXTENSION snowflake")?;
    let made = pgbench(cluster)
        .args(["-i", "-q", "-s", &size.scale.to_string()])
        .output()
        .context("running pgbench -i")?;
    ensure!(
        made.status.success(),
        "pgbench -i failed: {}",
        String::from_utf8_lossy(&made.stderr)
    );
    let mut client = config(cluster, "migration").connect(NoTls)?;
    client.batch_execute(&format!(
        "SET statement_timeout = 0;
         CREATE TABLE orders (id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, customer integer NOT NULL,
                              total bigint NOT NULL DEFAULT 0, note text NOT NULL);
         CREATE TABLE order_lines (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                                   order_id integer NOT NULL REFERENCES orders, quantity integer NOT NULL);
         CREATE TABLE received (order_id bigint NOT NULL, line_id bigint NOT NULL);
         INSERT INTO orders (customer, note) SELECT n % 1000, 'there before' FROM generate_series(1, {0}) AS n;
         INSERT INTO order_lines (order_id, quantity) SELECT id, 1 FROM orders;
         CREATE INDEX ON order_lines (order_id)",
        size.orders
    ))?;
    client.batch_execute("VACUUM ANALYZE orders, order_lines")?;
    Ok(())
}

/// `pgbench` as the tables' owner.
fn pgbench(server: &Server) -> std::process::Command {
    let mut command = server.client_command("pgbench", OWNER);
    command.env("PGUSER", OWNER);
    command
}

fn config(server: &Server, application: &str) -> Config {
    let mut config = server.config(OWNER, OWNER);
    config.application_name(application);
    config
}

struct Migrated {
    steps: Vec<Done>,
    /// Transactions that sat idle: a row of each table is of each.
    idle: i64,
    began: SystemTime,
    ended: SystemTime,
}

/// Both keys, as the guide says: a statement whose lock does not come in time
/// is run again a little later.
fn migrate(cluster: &Cluster, size: Size, progress: &mut impl FnMut(&str)) -> Result<Migrated> {
    let mut client = config(cluster, "migration").connect(NoTls)?;
    client.batch_execute("SET statement_timeout = 0")?;
    let began = SystemTime::now();
    let mut steps = Vec::new();
    let mut idle = Vec::new();
    let mut done = BTreeSet::new();
    for (table, arguments) in TARGETS {
        let mut is_first = true;
        let is_online = size.sabotage != Some(Sabotage::Window);
        while let Some(step) = online::plan_for(&mut client, arguments, is_online)?
            .into_iter()
            .next()
        {
            ensure!(
                done.insert(step.statement.clone()),
                "{table}: planned again although it was done: {}",
                step.statement
            );
            let is_exclusive = step.lock_level == "ACCESS EXCLUSIVE";
            if is_exclusive && (is_first || step.is_swap()) {
                is_first = false;
                idle.push(sit_idle(cluster, size, idle.len())?);
            }
            let began = SystemTime::now();
            let mut retries = 0;
            while let Err(error) = client.batch_execute(&step.statement) {
                let refusal = Refusal::from_error(error)?;
                ensure!(
                    refusal.sqlstate == "55P03",
                    "{table}: {}: {refusal}",
                    step.statement
                );
                ensure!(
                    began.elapsed()? < size.idle + Duration::from_secs(120),
                    "{table}: the lock never came: {}",
                    step.statement
                );
                retries += 1;
                thread::sleep(PAUSE);
            }
            let ended = SystemTime::now();
            let took = ended.duration_since(began)?;
            progress(&format!(
                "{table}: {:.1} s: {}",
                took.as_secs_f64(),
                step.title()
            ));
            steps.push(Done {
                table,
                title: step.title(),
                retries,
                took,
                began,
                ended,
            });
        }
    }
    let ended = SystemTime::now();
    let sat = i64::try_from(idle.len())?;
    for thread in idle {
        thread
            .join()
            .map_err(|_| anyhow!("an idle transaction panicked"))??;
    }
    Ok(Migrated {
        steps,
        idle: sat,
        began,
        ended,
    })
}

/// A transaction that has written to every table and sits idle; returns when
/// it does.
fn sit_idle(cluster: &Cluster, size: Size, number: usize) -> Result<JoinHandle<Result<()>>> {
    let config = config(cluster, "idle");
    let (ready, is_ready) = mpsc::channel();
    // Beyond what pgbench touches: no client of it waits for this row.
    let account = u64::from(size.scale) * 100_000 + 1 + u64::try_from(number)?;
    let thread = thread::spawn(move || -> Result<()> {
        let mut client = config.connect(NoTls)?;
        let mut transaction = client.transaction()?;
        transaction.batch_execute(&format!(
            "WITH new AS (INSERT INTO orders (customer, note) VALUES (0, 'idle') RETURNING id)
             INSERT INTO order_lines (order_id, quantity) SELECT id, 1 FROM new;
             INSERT INTO pgbench_accounts (aid, bid, abalance) VALUES ({account}, 1, 0)"
        ))?;
        let _ = ready.send(());
        thread::sleep(size.idle);
        transaction.commit()?;
        Ok(())
    });
    // A thread that failed has closed the channel: what it met comes with it.
    let _ = is_ready.recv();
    Ok(thread)
}

#[derive(Clone, Copy)]
struct Writers<'a> {
    cluster: &'a Cluster,
    size: Size,
    protocol: Protocol,
    stop: &'a AtomicBool,
}

/// What one session here was given.
#[derive(Debug, Default)]
struct Received {
    statements: u64,
    /// Of any length that matters.
    stalls: Vec<Stall>,
    /// Orders and their lines that are there.
    kept: Vec<(i64, i64)>,
    /// The same that were deleted since.
    deleted: Vec<(i64, i64)>,
    /// Old orders that were updated.
    updates: i64,
}

/// What a session runs. Every parameter is a bigint, so that a statement that
/// was prepared before the swap takes snowflake IDs after it.
const STATEMENTS: [&str; 7] = [
    "INSERT INTO orders (customer, note) VALUES (($1::bigint)::integer, 'session') RETURNING id",
    "INSERT INTO order_lines (order_id, quantity) VALUES ($1::bigint, 1) RETURNING id",
    "SELECT id FROM orders WHERE id = $1::bigint",
    "UPDATE orders SET total = total + 1 WHERE id = $1::bigint",
    "UPDATE order_lines SET order_id = $1::bigint WHERE id = $2::bigint",
    "DELETE FROM order_lines WHERE id = $1::bigint",
    "DELETE FROM orders WHERE id = $1::bigint",
];
const NEW_ORDER: usize = 0;
const NEW_LINE: usize = 1;
const SEE: usize = 2;
const UPDATE: usize = 3;
const MOVE_LINE: usize = 4;
const DELETE_LINE: usize = 5;
const DELETE_ORDER: usize = 6;

impl Writers<'_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// One client of `pgbench`, run after run. Returns how often it was given
    /// up.
    fn pgbench(&self, client: usize, script: &Path, logs: &Path) -> Result<usize> {
        let mut aborts = 0;
        let mut run = 0;
        while !self.stopped() {
            run += 1;
            let mut file = script.as_os_str().to_owned();
            file.push("@7");
            let seconds = SLICE.min(self.size.alone.as_secs().max(1)).to_string();
            let output = pgbench(self.cluster)
                .args(["-n", "-c", "1", "-j", "1", "-T", &seconds])
                .args(["-M", self.protocol.name()])
                .arg("-D")
                .arg(format!("orders={}", self.size.orders))
                .arg("-f")
                .arg(file)
                .args(["-b", "tpcb-like@3", "-l", "--log-prefix"])
                .arg(logs.join(format!("{client}-{run}")))
                .output()
                .context("running pgbench")?;
            let errors = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() {
                ensure!(
                    errors.contains("aborted in command"),
                    "pgbench failed: {errors}"
                );
                aborts += 1;
            }
        }
        Ok(aborts)
    }

    /// One session until it is told to stop.
    fn session(&self, number: usize) -> Result<Received> {
        let mut client = config(self.cluster, "session").connect(NoTls)?;
        let mut asking = Asking {
            client: &mut client,
            protocol: self.protocol,
            prepared: Vec::new(),
            received: Received::default(),
        };
        let mut turn = i64::try_from(number)?;
        while !self.stopped() {
            turn += 7_919;
            asking.turn(turn, self.size)?;
        }
        Ok(asking.received)
    }
}

struct Asking<'a> {
    client: &'a mut Client,
    protocol: Protocol,
    prepared: Vec<Statement>,
    received: Received,
}

impl Asking<'_> {
    /// One transaction, repeated where a statement's plan has become stale.
    fn turn(&mut self, turn: i64, size: Size) -> Result<()> {
        loop {
            if self.protocol == Protocol::Prepared && self.prepared.is_empty() {
                for statement in STATEMENTS {
                    let prepared = self.client.prepare(statement)?;
                    self.prepared.push(prepared);
                }
            }
            let Err(error) = self.transaction(turn, size) else {
                return Ok(());
            };
            let sqlstate = error
                .downcast_ref::<postgres::Error>()
                .and_then(|it| it.code().map(|code| code.code().to_owned()));
            if sqlstate.as_deref() != Some("0A000") || self.protocol == Protocol::Simple {
                return Err(error.context("a session here"));
            }
            self.client.batch_execute("ROLLBACK")?;
            self.prepared.clear();
        }
    }

    fn transaction(&mut self, turn: i64, size: Size) -> Result<()> {
        self.timed(|it| Ok(it.client.batch_execute("BEGIN")?))?;
        let order = self.id(NEW_ORDER, &[turn % 1000])?;
        let line = self.id(NEW_LINE, &[order])?;
        ensure!(
            self.id(SEE, &[order])? == order,
            "another order than was asked for"
        );
        // A line goes to another order and comes back; a whole order goes.
        let mut gone = None;
        if turn % 3 == 0
            && let Some(&(other, _)) = self.received.kept.last()
        {
            self.change(MOVE_LINE, &[other, line])?;
            self.change(MOVE_LINE, &[order, line])?;
        }
        if turn % 5 == 0 && self.received.kept.len() > 3 {
            let position = usize::try_from(turn)? % self.received.kept.len();
            let (order, line) = self.received.kept[position];
            self.change(DELETE_LINE, &[line])?;
            self.change(DELETE_ORDER, &[order])?;
            gone = Some(position);
        }
        self.change(UPDATE, &[1 + turn % i64::from(size.orders)])?;
        self.timed(|it| Ok(it.client.batch_execute("COMMIT")?))?;
        if let Some(position) = gone {
            let pair = self.received.kept.swap_remove(position);
            self.received.deleted.push(pair);
        }
        self.received.kept.push((order, line));
        self.received.updates += 1;
        Ok(())
    }

    fn timed<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let outcome = work(self);
        let took = begun.elapsed();
        self.received.statements += 1;
        if took >= NOTICED {
            self.received.stalls.push(Stall {
                took,
                whose: STATEMENT,
                ended: SystemTime::now(),
            });
        }
        outcome
    }

    /// A statement that returns an ID.
    fn id(&mut self, which: usize, values: &[i64]) -> Result<i64> {
        let (ids, _) = self.ask(which, values)?;
        ensure!(
            ids.len() == 1,
            "{} IDs: {}",
            ids.len(),
            literal(which, values)
        );
        Ok(ids[0])
    }

    /// A statement that changes a row.
    fn change(&mut self, which: usize, values: &[i64]) -> Result<()> {
        let (_, rows) = self.ask(which, values)?;
        ensure!(rows == 1, "{rows} rows changed: {}", literal(which, values));
        Ok(())
    }

    /// The IDs that came back, and how many rows were changed.
    fn ask(&mut self, which: usize, values: &[i64]) -> Result<(Vec<i64>, u64)> {
        self.timed(|it| match it.protocol {
            Protocol::Simple => {
                let (mut ids, mut rows) = (Vec::new(), 0);
                for message in it.client.simple_query(&literal(which, values))? {
                    match message {
                        SimpleQueryMessage::Row(row) => {
                            ids.extend(row.get(0).map(str::parse::<i64>))
                        }
                        SimpleQueryMessage::CommandComplete(count) => rows = count,
                        _ => {}
                    }
                }
                Ok((ids.into_iter().collect::<Result<_, _>>()?, rows))
            }
            Protocol::Prepared => {
                let values: Vec<&(dyn ToSql + Sync)> = values
                    .iter()
                    .map(|value| value as &(dyn ToSql + Sync))
                    .collect();
                let statement = &it.prepared[which];
                if statement.columns().is_empty() {
                    return Ok((Vec::new(), it.client.execute(statement, &values)?));
                }
                let rows = it.client.query(statement, &values)?;
                Ok((rows.iter().map(id_of).collect::<Result<_>>()?, 0))
            }
        })
    }
}

/// A statement with its values in it.
fn literal(which: usize, values: &[i64]) -> String {
    let mut statement = STATEMENTS[which].to_owned();
    for (number, value) in values.iter().enumerate() {
        statement = statement.replace(&format!("${}", number + 1), &value.to_string());
    }
    statement
}

/// An ID in the first column, of either type.
fn id_of(row: &Row) -> Result<i64> {
    Ok(match *row.columns()[0].type_() {
        Type::INT4 => i64::from(row.try_get::<_, i32>(0)?),
        _ => row.try_get(0)?,
    })
}

/// What `pgbench` logged of each transaction: counts by script, and those that
/// took long.
fn read_logs(logs: &Path, transactions: &mut [i64; 2], stalls: &mut Vec<Stall>) -> Result<()> {
    for entry in fs::read_dir(logs)? {
        let path = entry?.path();
        for line in fs::read_to_string(&path)?.lines() {
            // Client, number, microseconds, script, and when it ended. One that
            // failed has no time; the server's log has the error.
            if line.split(' ').nth(2) == Some("failed") {
                continue;
            }
            let fields: Vec<u64> = line
                .split(' ')
                .map(str::parse)
                .collect::<Result<_, _>>()
                .with_context(|| format!("{}: {line}", path.display()))?;
            let [_, _, micros, script, seconds, rest] = fields[..] else {
                bail!("{}: {line}", path.display());
            };
            transactions[usize::try_from(script)?] += 1;
            let took = Duration::from_micros(micros);
            if took >= NOTICED {
                stalls.push(Stall {
                    took,
                    whose: "a transaction of pgbench",
                    ended: SystemTime::UNIX_EPOCH
                        + Duration::from_secs(seconds)
                        + Duration::from_micros(rest),
                });
            }
        }
    }
    Ok(())
}

/// The steps that a stall fell into.
fn steps_during(steps: &[Done], stall: &Stall) -> String {
    let began = stall.ended - stall.took;
    let during: Vec<String> = steps
        .iter()
        .filter(|step| step.began < stall.ended && step.ended > began)
        .map(|step| format!("{}: {}", step.table, step.title))
        .collect();
    match during.is_empty() {
        true => "between steps".to_owned(),
        false => format!("during {}", during.join(" and ")),
    }
}

/// Errors by application and SQLSTATE, from lines such as
/// `2026-01-01 00:00:00.000 UTC [123] 0A000 pgbench ERROR:  …`.
fn errors(log: &str) -> BTreeMap<(String, String), usize> {
    let mut errors = BTreeMap::new();
    for line in log.lines() {
        let words: Vec<&str> = line.splitn(8, ' ').collect();
        if let [_, _, _, _, sqlstate, application, level, _] = words[..]
            && ["ERROR:", "FATAL:", "PANIC:"].contains(&level)
        {
            *errors
                .entry((application.to_owned(), sqlstate.to_owned()))
                .or_default() += 1;
        }
    }
    errors
}

struct Checked {
    rows: i64,
    ids: i64,
    snowflake_ids: i64,
    lost: i64,
}

/// Whether everything is there that should be, and nothing else.
fn check(
    cluster: &Cluster,
    size: Size,
    transactions: [i64; 2],
    sessions: &[Received],
    idle: i64,
) -> Result<Checked> {
    let mut client = config(cluster, "check").connect(NoTls)?;
    client.batch_execute("SET statement_timeout = 0")?;
    let client = &mut client;
    for (_, arguments) in TARGETS {
        ensure!(
            online::plan(client, arguments)?.is_empty(),
            "{arguments} is not migrated"
        );
    }
    let types = number(
        client,
        "SELECT count(*) FROM pg_attribute
         WHERE (attrelid, attname) IN (('orders'::regclass, 'id'), ('order_lines'::regclass, 'order_id'),
                                       ('pgbench_accounts'::regclass, 'aid')) AND atttypid = 'int8'::regtype",
    )?;
    ensure!(types == 3, "{types} of 3 columns are bigint");

    let pairs = |which: fn(&Received) -> &Vec<(i64, i64)>| -> Vec<(i64, i64)> {
        sessions
            .iter()
            .flat_map(|it| which(it).iter().copied())
            .collect()
    };
    let (kept, deleted) = (pairs(|it| &it.kept), pairs(|it| &it.deleted));
    let updates: i64 = sessions.iter().map(|it| it.updates).sum();
    client.batch_execute(
        "CREATE TEMP TABLE given (order_id bigint, line_id bigint, there boolean)",
    )?;
    for (pairs, there) in [(&kept, true), (&deleted, false)] {
        let (orders, lines): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
        client.execute(
            "INSERT INTO given SELECT *, $3 FROM unnest($1::bigint[], $2::bigint[])",
            &[&orders, &lines, &there],
        )?;
    }
    let kept_by_sessions = i64::try_from(kept.len())?;
    let before = i64::from(size.orders);
    let accounts = i64::from(size.scale) * 100_000;
    let mut lost = 0;
    for (query, expected) in [
        ("SELECT count(*) FROM received", transactions[0]),
        // Every ID that a client was given, with its row and its line.
        (
            "SELECT count(*) FROM received AS r JOIN orders AS o ON o.id = r.order_id AND o.note = 'pgbench'
             JOIN order_lines AS l ON l.id = r.line_id AND l.order_id = r.order_id",
            transactions[0],
        ),
        (
            "SELECT count(*) FROM given AS g JOIN orders AS o ON o.id = g.order_id AND o.note = 'session'
             JOIN order_lines AS l ON l.id = g.line_id AND l.order_id = g.order_id WHERE g.there",
            kept_by_sessions,
        ),
        (
            "SELECT count(*) FROM given AS g WHERE NOT g.there
               AND (EXISTS (SELECT FROM orders AS o WHERE o.id = g.order_id)
                    OR EXISTS (SELECT FROM order_lines AS l WHERE l.id = g.line_id))",
            0,
        ),
        // Every row, and none besides.
        (
            "SELECT count(*) FROM orders",
            before + transactions[0] + kept_by_sessions + idle,
        ),
        (
            "SELECT count(*) FROM order_lines AS l JOIN orders AS o ON o.id = l.order_id",
            before + transactions[0] + kept_by_sessions + idle,
        ),
        ("SELECT count(DISTINCT id) FROM orders WHERE note = 'there before'", before),
        ("SELECT count(DISTINCT aid) FROM pgbench_accounts", accounts + idle),
        // Every update.
        (
            "SELECT sum(total)::bigint FROM orders WHERE note = 'there before'",
            transactions[0] + updates,
        ),
        ("SELECT count(*) FROM pgbench_history", transactions[1]),
        (
            "SELECT (SELECT sum(abalance) FROM pgbench_accounts) - coalesce((SELECT sum(delta) FROM pgbench_history), 0)",
            0,
        ),
    ] {
        let found = number(client, query)?;
        if found != expected {
            eprintln!("online load: {found}, not {expected}: {query}");
        }
        lost += (found - expected).abs();
    }
    let distinct: BTreeSet<i64> = kept.iter().chain(&deleted).map(|it| it.0).collect();
    ensure!(
        distinct.len() == kept.len() + deleted.len(),
        "a client was given an ID twice"
    );
    // The first snowflake ID is far above what the old sequence has reached.
    let new = format!(
        "SELECT count(*) FROM received WHERE order_id > {}",
        i32::MAX
    );
    let new_of_sessions = distinct
        .iter()
        .filter(|id| **id > i64::from(i32::MAX))
        .count();
    Ok(Checked {
        rows: number(
            client,
            "SELECT (SELECT count(*) FROM orders) + (SELECT count(*) FROM order_lines) + (SELECT count(*) FROM pgbench_accounts)",
        )?,
        ids: transactions[0] + i64::try_from(distinct.len())?,
        snowflake_ids: number(client, &new)? + i64::try_from(new_of_sessions)?,
        lost,
    })
}

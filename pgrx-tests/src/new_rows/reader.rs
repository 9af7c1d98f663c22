//! A session that reads new rows.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use postgres::{Client, Config, SimpleQueryMessage, Statement};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Spec;
use super::shared::Shared;
use crate::ids::now_us;

/// The most rows that a read returns.
const LIMIT: usize = 1_000;

/// The same for a read that scans the whole table.
pub(super) const LIMIT_OF_SCAN: usize = 200_000;

/// How often a function reads.
const ROUNDS: usize = 5;

/// What ends a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// `snowflake_resolved_id()`.
    Resolved,
    /// Nothing: the read without protection.
    None,
    /// The first ID of five milliseconds ago: a bound that is not safe.
    Clock,
}

impl Bound {
    /// The value as an expression; `None` if there is none.
    fn expression(self) -> Option<&'static str> {
        match self {
            Self::Resolved => Some("snowflake_resolved_id()"),
            Self::None => None,
            Self::Clock => Some("snowflake_min_id(statement_timestamp() - interval '5 ms')"),
        }
    }

    /// The condition, after another one.
    fn condition(self) -> String {
        self.expression()
            .map_or_else(String::new, |value| format!(" AND id < {value}"))
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Resolved => "resolved",
            Self::None => "unbounded",
            Self::Clock => "clock",
        }
    }

    /// Functions that read in a loop. The statements of the first one each have a
    /// snapshot of their own; those of the second one have the caller's.
    pub(super) fn functions(self) -> String {
        ["VOLATILE", "STABLE"]
            .map(|volatility| {
                format!(
                    "CREATE FUNCTION read_{volatility}_{}(last bigint) RETURNS SETOF bigint LANGUAGE plpgsql {volatility}
                     AS $$
                     DECLARE found_id bigint; found_rows int;
                     BEGIN
                         FOR i IN 1..{ROUNDS} LOOP
                             found_rows := 0;
                             FOR found_id IN SELECT id FROM events WHERE id > last{} ORDER BY id LIMIT {LIMIT} LOOP
                                 last := found_id;
                                 found_rows := found_rows + 1;
                                 RETURN NEXT found_id;
                             END LOOP;
                             EXIT WHEN found_rows = 0;
                         END LOOP;
                     END $$;",
                    self.suffix(),
                    self.condition()
                )
            })
            .concat()
    }
}

/// How a reader reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Simple protocol, READ COMMITTED.
    Simple,
    /// A prepared statement with a generic plan.
    Prepared,
    /// Several reads in a REPEATABLE READ transaction.
    RepeatableRead,
    /// A cursor.
    Cursor,
    /// A PL/pgSQL function that reads in a loop.
    Function,
    /// The same as a function that is declared STABLE.
    StableFunction,
    /// The bound first, then the rows below it.
    TwoSteps,
    /// The bound as a subquery.
    Subquery,
    /// A sequential scan.
    SequentialScan,
    /// REPEATABLE READ with the snapshot of another session.
    ImportedSnapshot,
    /// In the transaction that saves where the reader is.
    SavedPosition,
    /// Through `PgBouncer`, in transaction mode.
    Pooler,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 12] = [
        Self::Simple,
        Self::Prepared,
        Self::RepeatableRead,
        Self::Cursor,
        Self::Function,
        Self::StableFunction,
        Self::TwoSteps,
        Self::Subquery,
        Self::SequentialScan,
        Self::ImportedSnapshot,
        Self::SavedPosition,
        Self::Pooler,
    ];

    /// Those of the readers without a bound.
    pub const CONTROLS: [Self; 5] = [
        Self::Simple,
        Self::Prepared,
        Self::RepeatableRead,
        Self::Cursor,
        Self::Function,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple protocol",
            Self::Prepared => "extended protocol, generic plan",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Cursor => "cursor",
            Self::Function => "PL/pgSQL",
            Self::StableFunction => "PL/pgSQL, STABLE",
            Self::TwoSteps => "bound first, then the rows",
            Self::Subquery => "bound in a subquery",
            Self::SequentialScan => "sequential scan",
            Self::ImportedSnapshot => "imported snapshot",
            Self::SavedPosition => "position saved with the rows",
            Self::Pooler => "PgBouncer",
        }
    }

    /// What a connection needs first.
    fn settings(self) -> &'static str {
        match self {
            Self::Prepared => "SET plan_cache_mode = force_generic_plan",
            Self::SequentialScan => {
                "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off"
            }
            _ => "",
        }
    }
}

impl Spec {
    /// The name of the reader in reports.
    pub(super) fn name(self) -> String {
        match self.bound {
            Bound::None => format!("{}, no bound", self.way.name()),
            _ => self.way.name().to_owned(),
        }
    }
}

/// What a reader saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// IDs, in the order in which they arrived.
    pub(super) ids: Vec<i64>,
    /// For each read with rows, the last ID, and when it had arrived, in
    /// microseconds since 1970.
    pub(super) reads: Vec<(i64, i64)>,
    /// Reads that reached the last row that could be read, while the writers worked.
    pub(super) at_the_end: u64,
    /// The longest time without a new row.
    pub(super) longest_pause: Duration,
}

/// A connection of a reader.
struct Connection {
    client: Client,
    /// The session whose snapshot it reads.
    exporter: Option<Client>,
    prepared: Option<Statement>,
}

/// A session that reads new rows.
pub(super) struct Reader<'a> {
    shared: &'a Shared,
    number: usize,
    spec: Spec,
    config: Config,
    random: StdRng,
    last: i64,
    /// Whether the last read returned all rows that it could.
    is_at_the_end: bool,
    seen: Seen,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        number: usize,
        spec: Spec,
        config: Config,
        seed: u64,
    ) -> Self {
        Self {
            shared,
            number,
            spec,
            config,
            random: StdRng::seed_from_u64(seed.wrapping_add(2_000 + number as u64)),
            last: 0,
            is_at_the_end: false,
            seen: Seen::default(),
        }
    }

    /// Reads until the last row has been read after the end of the writers.
    pub(super) fn run(mut self) -> Result<Seen> {
        let mut new_row = Instant::now();
        while let Some(mut connection) = self.connect()? {
            while !connection.client.is_closed() {
                if self.shared.is_abandoned() {
                    return Ok(self.seen);
                }
                let before = self.seen.ids.len();
                // Whether this read began after the end of the writers.
                let is_drained = self.shared.is_drained(self.last);
                let outcome = self.read(&mut connection);
                let rows = self.seen.ids.len() - before;
                if rows > 0 {
                    self.seen.longest_pause = self.seen.longest_pause.max(new_row.elapsed());
                    new_row = Instant::now();
                    self.seen.reads.push((self.last, now_us()));
                    self.shared.count_seen(self.number, rows as u64, self.last);
                }
                match outcome {
                    Err(error) => {
                        self.count_error(&mut connection, &error);
                        // Both sessions begin again.
                        if connection.exporter.is_some() {
                            break;
                        }
                    }
                    Ok(()) if rows == 0 && is_drained => return Ok(self.seen),
                    Ok(()) if self.is_at_the_end => {
                        let counts = rows > 0 && !self.shared.writers_are_stopped();
                        self.seen.at_the_end += u64::from(counts);
                        let millis = self.random.random_range(1..=10);
                        sleep(Duration::from_millis(millis));
                    }
                    Ok(()) => {}
                }
            }
        }
        Ok(self.seen)
    }

    fn count_error(&self, connection: &mut Connection, error: &anyhow::Error) {
        // The snapshot of a session that a fault has ended cannot be imported.
        let exporter = connection.exporter.as_mut();
        if exporter.is_some_and(|it| it.batch_execute("ROLLBACK").is_err()) {
            self.shared.count_ended_by_fault();
            return;
        }
        let during = format!("reader: {}", self.spec.name());
        let client = &mut connection.client;
        self.shared.count_error(client, &during, error);
    }

    /// `None` if the reader is to end.
    fn connect(&self) -> Result<Option<Connection>> {
        let is_stopped = || self.shared.is_abandoned();
        loop {
            let Some(mut client) = self.shared.connect(&self.config, is_stopped)? else {
                return Ok(None);
            };
            let exporter = match self.spec.way {
                Way::ImportedSnapshot => self.shared.connect(&self.config, is_stopped)?,
                _ => None,
            };
            if client.batch_execute(self.spec.way.settings()).is_ok() {
                return Ok(Some(Connection {
                    client,
                    exporter,
                    prepared: None,
                }));
            }
        }
    }

    fn take(&mut self, id: i64) {
        self.seen.ids.push(id);
        self.last = id;
    }

    /// The recipe, with the bound that the reader has.
    fn recipe(&self, last: &str, limit: usize) -> String {
        format!(
            "SELECT * FROM events WHERE id > {last}{} ORDER BY id LIMIT {limit}",
            self.spec.bound.condition()
        )
    }

    /// One read, or some in one transaction.
    fn read(&mut self, connection: &mut Connection) -> Result<()> {
        let last = self.last.to_string();
        let client = &mut connection.client;
        match self.spec.way {
            Way::Simple | Way::Pooler => {
                let sql = self.recipe(&last, LIMIT);
                self.simple(client, &sql, LIMIT)
            }
            Way::Prepared => {
                let statement = match &connection.prepared {
                    Some(statement) => statement.clone(),
                    None => client.prepare(&self.recipe("$1", LIMIT))?,
                };
                connection.prepared = Some(statement.clone());
                let rows = client.query(&statement, &[&self.last])?;
                self.take_rows(&rows, LIMIT);
                Ok(())
            }
            Way::RepeatableRead => {
                client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
                self.several_reads(client)
            }
            Way::Cursor => self.cursor(client),
            Way::Function => self.function(client, "volatile"),
            Way::StableFunction => self.function(client, "stable"),
            Way::TwoSteps => self.two_steps(client),
            Way::Subquery => {
                let bound = self.spec.bound.expression().context("needs a bound")?;
                let sql = format!(
                    "SELECT id FROM events WHERE id > {last} AND id < (SELECT {bound}) ORDER BY id LIMIT {LIMIT}"
                );
                self.simple(client, &sql, LIMIT)
            }
            Way::SequentialScan => {
                let sql = self.recipe(&last, LIMIT_OF_SCAN);
                self.simple(client, &sql, LIMIT_OF_SCAN)
            }
            Way::SavedPosition => self.saved_position(client),
            Way::ImportedSnapshot => {
                let exporter = connection.exporter.as_mut().context("no second session")?;
                self.imported_snapshot(client, exporter)
            }
        }
    }

    /// The rows of a read that returns `limit` of them at most.
    fn take_rows(&mut self, rows: &[postgres::Row], limit: usize) {
        for row in rows {
            self.take(row.get(0));
        }
        self.is_at_the_end = rows.len() < limit;
    }

    /// A read by the simple protocol, which returns `limit` rows at most.
    fn simple(&mut self, client: &mut Client, sql: &str, limit: usize) -> Result<()> {
        let before = self.seen.ids.len();
        for message in client.simple_query(sql)? {
            if let SimpleQueryMessage::Row(row) = message {
                self.take(row.get(0).context("NULL")?.parse()?);
            }
        }
        self.is_at_the_end = self.seen.ids.len() - before < limit;
        Ok(())
    }

    /// Some reads with pauses, and the end of their transaction.
    fn several_reads(&mut self, client: &mut Client) -> Result<()> {
        for _ in 0..3 {
            let sql = self.recipe("$1", LIMIT);
            let rows = client.query(&sql, &[&self.last])?;
            self.take_rows(&rows, LIMIT);
            self.pause();
        }
        client.batch_execute("COMMIT")?;
        Ok(())
    }

    fn pause(&mut self) {
        sleep(Duration::from_micros(self.random.random_range(0..5_000)));
    }

    fn cursor(&mut self, client: &mut Client) -> Result<()> {
        client.batch_execute(&format!(
            "BEGIN; DECLARE new_rows CURSOR FOR SELECT * FROM events WHERE id > {}{} ORDER BY id",
            self.last,
            self.spec.bound.condition()
        ))?;
        if self.random.random_bool(0.3) {
            self.pause();
        }
        for _ in 0..20 {
            self.simple(client, "FETCH 100 FROM new_rows", 100)?;
            if self.is_at_the_end {
                break;
            }
            if self.random.random_bool(0.1) {
                self.pause();
            }
        }
        client.batch_execute("CLOSE new_rows; COMMIT")?;
        Ok(())
    }

    fn function(&mut self, client: &mut Client, volatility: &str) -> Result<()> {
        let suffix = self.spec.bound.suffix();
        let sql = format!("SELECT read_{volatility}_{suffix}($1)");
        let rows = client.query(&sql, &[&self.last])?;
        self.take_rows(&rows, ROUNDS * LIMIT);
        Ok(())
    }

    fn two_steps(&mut self, client: &mut Client) -> Result<()> {
        let bound = self.spec.bound.expression().context("needs a bound")?;
        let row = client.query_one(&format!("SELECT {bound}"), &[])?;
        let Some(bound) = row.get::<_, Option<i64>>(0) else {
            self.is_at_the_end = true;
            return Ok(());
        };
        let sql =
            format!("SELECT id FROM events WHERE id > $1 AND id < $2 ORDER BY id LIMIT {LIMIT}");
        let rows = client.query(&sql, &[&self.last, &bound])?;
        self.take_rows(&rows, LIMIT);
        Ok(())
    }

    /// The transaction has an ID of its own before it reads.
    fn saved_position(&mut self, client: &mut Client) -> Result<()> {
        let level = ["READ COMMITTED", "REPEATABLE READ"][self.random.random_range(0..2)];
        client.batch_execute(&format!(
            "BEGIN ISOLATION LEVEL {level}; UPDATE positions SET last = {} WHERE reader = {}",
            self.last, self.number
        ))?;
        self.several_reads(client)
    }

    fn imported_snapshot(&mut self, client: &mut Client, exporter: &mut Client) -> Result<()> {
        exporter.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
        let snapshot: String = exporter
            .query_one("SELECT pg_export_snapshot()", &[])?
            .get(0);
        self.pause();
        client.batch_execute(&format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '{snapshot}'"
        ))?;
        self.several_reads(client)?;
        exporter.batch_execute("COMMIT")?;
        Ok(())
    }
}

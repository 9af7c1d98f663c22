//! The transactions of the writers: the ways in which a transaction holds an ID
//! before its row is visible.

use std::fmt::Write as _;
use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};
use postgres::Client;
use rand::RngExt;
use rand::rngs::StdRng;

/// What a transaction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One INSERT of one row, in a transaction of its own.
    SingleRow,
    /// One INSERT of many rows.
    Batch,
    /// INSERT of a run of IDs, from `snowflake_nextvals`.
    Run,
    /// COPY.
    Copy,
    /// Savepoints, of which some are rolled back. Some rows have an ID that was
    /// drawn after a savepoint to which the transaction has rolled back.
    Savepoints,
    /// INSERT and ROLLBACK.
    RolledBack,
    /// PREPARE TRANSACTION. Some session ends it later.
    Prepared,
    /// A block of PL/pgSQL that catches errors.
    Exceptions,
    /// Parallel workers draw the IDs.
    ParallelWorkers,
    /// Draws, is idle, and then inserts rows with these IDs.
    IdleBetween,
    /// Draws, and inserts nothing.
    DrawOnly,
    /// Two statements, with a pause in the server between them.
    TwoStatements,
    /// A deferred trigger inserts the rows at the commit.
    DeferredTrigger,
    /// Several transactions: a block of PL/pgSQL that commits, and COMMIT AND CHAIN.
    Chain,
}

/// What a transaction has done.
#[derive(Debug)]
pub(super) enum Ended {
    /// It was committed, with so many rows.
    Committed(u64),
    /// It was rolled back on purpose.
    RolledBack,
    /// It is prepared, with so many rows.
    Prepared(u64),
}

impl Kind {
    /// Each kind as often as it is chosen.
    const CHOICES: [(Self, u32); 14] = [
        (Self::SingleRow, 24),
        (Self::Batch, 12),
        (Self::Run, 6),
        (Self::Copy, 6),
        (Self::Savepoints, 10),
        (Self::RolledBack, 6),
        (Self::Prepared, 6),
        (Self::Exceptions, 6),
        (Self::ParallelWorkers, 4),
        (Self::IdleBetween, 8),
        (Self::DrawOnly, 4),
        (Self::TwoStatements, 6),
        (Self::DeferredTrigger, 4),
        (Self::Chain, 6),
    ];

    /// One of them, at random.
    pub(super) fn choose(random: &mut StdRng) -> Self {
        let sum = Self::CHOICES.iter().map(|(_, weight)| weight).sum();
        let mut number = random.random_range(0..sum);
        for (kind, weight) in Self::CHOICES {
            if number < weight {
                return kind;
            }
            number -= weight;
        }
        Self::SingleRow
    }

    /// Its number, which its rows have in the column `n`.
    fn number(self) -> usize {
        Self::CHOICES
            .iter()
            .position(|(kind, _)| *kind == self)
            .unwrap_or_default()
    }

    /// The kind with that number.
    pub(super) fn of_number(number: i64) -> Option<Self> {
        let (kind, _) = Self::CHOICES.get(usize::try_from(number).ok()?)?;
        Some(*kind)
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::SingleRow => "single row",
            Self::Batch => "batch of rows",
            Self::Run => "run of IDs",
            Self::Copy => "COPY",
            Self::Savepoints => "savepoints rolled back",
            Self::RolledBack => "rolled back",
            Self::Prepared => "PREPARE TRANSACTION",
            Self::Exceptions => "PL/pgSQL exceptions",
            Self::ParallelWorkers => "drawn by parallel workers",
            Self::IdleBetween => "drawn, idle, inserted",
            Self::DrawOnly => "drawn, not inserted",
            Self::TwoStatements => "two statements",
            Self::DeferredTrigger => "deferred trigger",
            Self::Chain => "transactions in a chain",
        }
    }
}

/// One transaction of a writer.
pub(super) struct Transaction<'a> {
    pub(super) client: &'a mut Client,
    pub(super) random: &'a mut StdRng,
    pub(super) writer: usize,
    pub(super) kind: Kind,
    /// The longest time that it may be idle.
    pub(super) most_idle: Duration,
}

impl Transaction<'_> {
    /// Runs it. `gid` names it if it is to be prepared.
    pub(super) fn run(&mut self, gid: &str) -> Result<Ended> {
        let rows = match self.kind {
            Kind::SingleRow => self.single_row()?,
            Kind::Batch => {
                let rows = self.random.random_range(2..=500);
                self.insert(rows)?
            }
            Kind::Run => self.run_of_ids()?,
            Kind::Copy => self.copy()?,
            Kind::Savepoints => self.savepoints()?,
            Kind::RolledBack => return self.rolled_back(),
            Kind::Prepared => return self.prepared(gid),
            Kind::Exceptions => self.exceptions()?,
            Kind::ParallelWorkers => self.parallel_workers()?,
            Kind::IdleBetween => self.idle_between()?,
            Kind::DrawOnly => return self.draw_only(),
            Kind::TwoStatements => self.two_statements()?,
            Kind::DeferredTrigger => self.deferred_trigger()?,
            Kind::Chain => self.chain()?,
        };
        Ok(Ended::Committed(rows))
    }

    fn execute(&mut self, sql: &str) -> Result<()> {
        Ok(self.client.batch_execute(sql)?)
    }

    /// One INSERT of that many rows.
    fn insert(&mut self, rows: u64) -> Result<u64> {
        let (writer, n) = (self.writer, self.kind.number());
        self.execute(&format!(
            "INSERT INTO events (writer, n) SELECT {writer}, {n} FROM generate_series(1, {rows})"
        ))?;
        Ok(rows)
    }

    /// One INSERT of rows that have these IDs already.
    fn insert_drawn(&mut self, ids: &[i64]) -> Result<u64> {
        let mut sql = "INSERT INTO events (id, writer, n) VALUES ".to_owned();
        for (position, id) in ids.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            let _ = write!(
                sql,
                "{comma} ({id}, {}, {})",
                self.writer,
                self.kind.number()
            );
        }
        self.execute(&sql)?;
        Ok(ids.len() as u64)
    }

    /// Draws IDs for the client, by one call each.
    fn draw(&mut self, count: u64) -> Result<Vec<i64>> {
        let sql = format!("SELECT snowflake_nextval() FROM generate_series(1, {count})");
        let rows = self.client.query(&sql, &[])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// A length of up to `most` milliseconds, short ones more often.
    fn length(&mut self, most: u64) -> Duration {
        let most = Duration::from_millis(most).min(self.most_idle);
        let share: f64 = self.random.random();
        most.mul_f64(share.powi(3))
    }

    /// The transaction is idle for up to `most` milliseconds.
    fn idle(&mut self, most: u64) {
        sleep(self.length(most));
    }

    fn begin(&mut self) -> Result<()> {
        let level = match self.random.random_range(0..4) {
            0 => "REPEATABLE READ",
            _ => "READ COMMITTED",
        };
        self.execute(&format!("BEGIN ISOLATION LEVEL {level}"))
    }

    fn single_row(&mut self) -> Result<u64> {
        let (writer, n) = (i32::try_from(self.writer)?, self.kind.number() as i64);
        self.client.query_one(
            "INSERT INTO events (writer, n) VALUES ($1, $2) RETURNING id",
            &[&writer, &n],
        )?;
        Ok(1)
    }

    fn run_of_ids(&mut self) -> Result<u64> {
        let (writer, n) = (self.writer, self.kind.number());
        let rows = self.random.random_range(1..=500);
        self.execute(&format!(
            "INSERT INTO events (id, writer, n) SELECT id, {writer}, {n} FROM snowflake_nextvals({rows}) AS id"
        ))?;
        Ok(rows)
    }

    fn copy(&mut self) -> Result<u64> {
        let rows = self.random.random_range(1_000..=4_000);
        let line = format!("{}\t{}\n", self.writer, self.kind.number());
        let mut to_server = self.client.copy_in("COPY events (writer, n) FROM STDIN")?;
        for _ in 0..rows {
            to_server.write_all(line.as_bytes())?;
        }
        let rows = to_server.finish()?;
        // In the extended protocol, the commit is after the message with the number
        // of rows. The next answer is after the commit.
        self.execute("")?;
        Ok(rows)
    }

    fn savepoints(&mut self) -> Result<u64> {
        self.begin()?;
        let mut rows = 0;
        if self.random.random_bool(0.5) {
            rows += self.insert(1)?;
        }
        self.execute("SAVEPOINT outer_one")?;
        let drawn = self.draw(2)?;
        self.insert(20)?;
        self.execute("SAVEPOINT inner_one")?;
        self.insert(5)?;
        let release = self.random.random_bool(0.5);
        self.execute(match release {
            true => "RELEASE inner_one",
            false => "ROLLBACK TO inner_one",
        })?;
        self.execute("ROLLBACK TO outer_one")?;
        self.idle(20);
        rows += self.insert_drawn(&drawn)?;
        if self.random.random_bool(0.5) {
            self.execute("RELEASE outer_one")?;
            rows += self.insert(10)?;
        }
        self.idle(10);
        self.execute("COMMIT")?;
        Ok(rows)
    }

    fn rolled_back(&mut self) -> Result<Ended> {
        self.begin()?;
        let rows = self.random.random_range(1..=200);
        self.insert(rows)?;
        self.idle(20);
        self.execute("ROLLBACK")?;
        Ok(Ended::RolledBack)
    }

    fn prepared(&mut self, gid: &str) -> Result<Ended> {
        self.begin()?;
        let drawn = self.draw(2)?;
        let most = self.random.random_range(1..=50);
        let rows = self.insert(most)? + self.insert_drawn(&drawn)?;
        self.execute(&format!("PREPARE TRANSACTION '{gid}'"))?;
        Ok(Ended::Prepared(rows))
    }

    /// Each third row fails, because its ID is there already.
    fn exceptions(&mut self) -> Result<u64> {
        let (writer, n) = (self.writer, self.kind.number());
        let rows = self.random.random_range(1..=30) * 3;
        self.execute(&format!(
            "DO $$
             DECLARE earlier bigint;
             BEGIN
                 FOR i IN 1..{rows} LOOP
                     BEGIN
                         INSERT INTO events (id, writer, n)
                         VALUES (CASE WHEN i % 3 = 0 THEN earlier ELSE snowflake_nextval() END, {writer}, {n})
                         RETURNING id INTO earlier;
                     EXCEPTION WHEN unique_violation THEN
                         PERFORM snowflake_nextval();
                     END;
                 END LOOP;
             END $$"
        ))?;
        Ok(rows / 3 * 2)
    }

    fn parallel_workers(&mut self) -> Result<u64> {
        self.begin()?;
        self.execute(PARALLEL)?;
        let most = self.random.random_range(50..=500_i64);
        let drawn = self.client.query(DRAW_IN_PARALLEL, &[&most])?;
        let drawn: Vec<i64> = drawn.iter().map(|row| row.get(0)).collect();
        self.idle(20);
        let rows = self.insert_drawn(&drawn)?;
        self.execute("COMMIT")?;
        Ok(rows)
    }

    fn idle_between(&mut self) -> Result<u64> {
        self.begin()?;
        let count = self.random.random_range(1..=5);
        let drawn = self.draw(count)?;
        self.idle(500);
        let rows = self.insert_drawn(&drawn)?;
        self.execute("COMMIT")?;
        Ok(rows)
    }

    fn draw_only(&mut self) -> Result<Ended> {
        if self.random.random_bool(0.5) {
            self.draw(1)?;
            return Ok(Ended::Committed(0));
        }
        self.begin()?;
        self.draw(3)?;
        self.idle(50);
        if self.random.random_bool(0.5) {
            self.execute("COMMIT")?;
            return Ok(Ended::Committed(0));
        }
        self.execute("ROLLBACK")?;
        Ok(Ended::RolledBack)
    }

    fn two_statements(&mut self) -> Result<u64> {
        self.begin()?;
        let first = self.random.random_range(1..=20);
        let pause = self.length(50).as_secs_f64();
        let rows = self.insert(first)?;
        self.execute(&format!("SELECT pg_sleep({pause})"))?;
        let rows = rows + self.insert(first)?;
        self.execute("COMMIT")?;
        Ok(rows)
    }

    fn deferred_trigger(&mut self) -> Result<u64> {
        let (writer, n) = (self.writer, self.kind.number());
        let rows = self.random.random_range(1..=20);
        self.begin()?;
        self.execute(&format!(
            "INSERT INTO deferred SELECT {writer}, {n} FROM generate_series(1, {rows})"
        ))?;
        self.idle(5);
        self.execute("COMMIT")?;
        Ok(rows)
    }

    /// If a fault ends it, some of its transactions may have been committed.
    fn chain(&mut self) -> Result<u64> {
        let (writer, n) = (self.writer, self.kind.number());
        let transactions = self.random.random_range(2..=6);
        if self.random.random_bool(0.5) {
            self.execute(&format!(
                "DO $$
                 BEGIN
                     FOR i IN 1..{transactions} LOOP
                         INSERT INTO events (writer, n) VALUES ({writer}, {n});
                         COMMIT;
                     END LOOP;
                 END $$"
            ))?;
            return Ok(transactions);
        }
        self.begin()?;
        for _ in 1..transactions {
            self.insert(1)?;
            self.idle(10);
            self.execute("COMMIT AND CHAIN")?;
        }
        self.insert(1)?;
        self.execute("COMMIT")?;
        Ok(transactions)
    }
}

/// Makes the next statements of a transaction parallel, also on a small table.
const PARALLEL: &str = "SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0;
    SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL max_parallel_workers_per_gather = 2;
    SET LOCAL parallel_leader_participation = off";

const DRAW_IN_PARALLEL: &str = "SELECT snowflake_nextval() FROM many WHERE n <= $1::bigint";

/// Fails if [`DRAW_IN_PARALLEL`] does not draw in parallel workers.
pub(super) fn require_parallel_draws(client: &mut Client) -> Result<()> {
    let mut transaction = client.transaction()?;
    transaction.batch_execute(PARALLEL)?;
    let sql = DRAW_IN_PARALLEL.replace("$1", "1000");
    let rows = transaction.query(&format!("EXPLAIN (ANALYZE, VERBOSE) {sql}"), &[])?;
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    // In parentheses: the value comes from the node below, which a worker runs.
    ensure!(
        plan.starts_with("Gather ")
            && plan.contains("Output: (snowflake_nextval())")
            && plan.contains("Workers Launched: 2"),
        "no parallel worker draws an ID:\n{plan}"
    );
    transaction.rollback()?;
    Ok(())
}

//! The writers that are sessions of this program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use anyhow::{Result, ensure};
use postgres::types::{ToSql, Type};
use postgres::{Client, NoTls, Row, SimpleQueryMessage, Statement};

use super::report::Stall;
use super::{Committed, NOTICED, Protocol, Size, config};
use crate::cluster::Cluster;

/// What a stall of a session is called.
pub(super) const STATEMENT: &str = "a statement of a session";

/// What one session received.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) statements: u64,
    /// Statements that took long.
    pub(super) stalls: Vec<Stall>,
    /// Orders that exist, with their lines.
    pub(super) kept: Vec<(i64, i64)>,
    /// Orders that were deleted, with their lines.
    pub(super) deleted: Vec<(i64, i64)>,
    /// How often an old order was updated.
    pub(super) updates: i64,
}

/// The statements of a session. Every parameter is a bigint, so that a statement
/// that was prepared before the swap accepts snowflake IDs after it.
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

/// Runs one session until it is stopped.
pub(super) fn session(
    cluster: &Cluster,
    size: Size,
    protocol: Protocol,
    number: usize,
    committed: &Committed,
    stop: &AtomicBool,
) -> Result<Received> {
    let mut client = config(cluster, "session").connect(NoTls)?;
    let mut session = Session {
        client: &mut client,
        protocol,
        prepared: Vec::new(),
        received: Received::default(),
    };
    let mut turn = i64::try_from(number)?;
    while !stop.load(Ordering::SeqCst) {
        turn += 7_919;
        session.turn(turn, size)?;
        committed.add_one();
    }
    Ok(session.received)
}

struct Session<'a> {
    client: &'a mut Client,
    protocol: Protocol,
    prepared: Vec<Statement>,
    received: Received,
}

impl Session<'_> {
    /// Runs one transaction, and repeats it if a statement's plan is outdated.
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
                return Err(error.context("a session"));
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
            "the query returned another order"
        );
        // A line moves to another order and back. A whole order is deleted.
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
        let (ids, _) = self.run(which, values)?;
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
        let (_, rows) = self.run(which, values)?;
        ensure!(rows == 1, "{rows} rows changed: {}", literal(which, values));
        Ok(())
    }

    /// Runs a statement. Returns the IDs that it returned, and how many rows it
    /// changed.
    fn run(&mut self, which: usize, values: &[i64]) -> Result<(Vec<i64>, u64)> {
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

/// A statement with its values as literals.
fn literal(which: usize, values: &[i64]) -> String {
    let mut statement = STATEMENTS[which].to_owned();
    for (number, value) in values.iter().enumerate() {
        statement = statement.replace(&format!("${}", number + 1), &value.to_string());
    }
    statement
}

/// The ID in the first column, whose type is integer or bigint.
fn id_of(row: &Row) -> Result<i64> {
    Ok(match *row.columns()[0].type_() {
        Type::INT4 => i64::from(row.try_get::<_, i32>(0)?),
        _ => row.try_get(0)?,
    })
}

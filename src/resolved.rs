//! Up to where rows can be read by key without losing one: `snowflake_resolved_id()`.
//!
//! The core crate has the algorithm ([`snowflake_id::resolved`]) and decides what is answered
//! ([`snowflake_id::protocol::resolved`]); this process carries it out.
//!
//! A statement gets one answer, however often it asks: otherwise a scan could leave out
//! one row and return a later one. Statements of a transaction between which no
//! transaction has ended share it.
//!
//! After a restart the IDs of transactions that were prepared before it are not known.
//! While there is one in this database, the answer is unknown.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use pgrx::pg_sys;
use snowflake_id::SnowflakeId;
use snowflake_id::protocol::resolved::ReadingProcess;
use snowflake_id::protocol::transactions::{Numbers, Transactions};
use snowflake_id::protocol::{self, Clocks, now};
use snowflake_id::resolved::{Moment, Samples};

use crate::clock;
use crate::error::Error;
use crate::generator::process::Backend;
use crate::generator::session::{self, Session};
use crate::generator::{log, reserve_present};
use crate::pg;
use crate::settings;
use crate::shared::{self, Shared};

/// The answers of the current transaction and the moments for which they hold, the one
/// that was asked for last at the end. A statement can contain many others with newer
/// snapshots.
static ANSWERS: Mutex<Vec<(Moment, Option<SnowflakeId>)>> = Mutex::new(Vec::new());

/// How many are kept.
const MOST_ANSWERS: usize = 256;

/// The ID below which every row of this database is visible to the statement that runs,
/// or never will be. `None` if nothing can be said.
///
/// # Errors
/// [`Error::ResolvedInRecovery`], and those of [`session::resolve`] and [`Backend::of_database`].
pub fn resolved_id() -> Result<Option<SnowflakeId>, Error> {
    let session = resolve_session()?;
    let Some(moment) = pg::transaction::moment_of_statement() else {
        return Ok(None);
    };
    if let Some(answer) = known_answer(moment) {
        return Ok(answer);
    }
    let answer = ask(session, moment)?;
    forget_at_end();
    let mut answers = ANSWERS.lock();
    if answers.len() == MOST_ANSWERS {
        answers.remove(0);
    }
    answers.push((moment, answer));
    Ok(answer)
}

/// The same after time was reserved as an ID of this moment would reserve it, so that the
/// answer does not stay at the mark of a database that generates no IDs. It is a new
/// answer, also where the statement already has one, and leaves that one as it is.
///
/// # Errors
/// As [`resolved_id`] and [`reserve_present`].
pub fn advance() -> Result<Option<SnowflakeId>, Error> {
    let session = resolve_session()?;
    let Some(moment) = pg::transaction::moment_of_statement() else {
        return Ok(None);
    };
    reserve_present(session)?;
    ask(session, moment)
}

fn resolve_session() -> Result<&'static Session, Error> {
    session::resolve().map_err(|error| match error {
        Error::InRecovery => Error::ResolvedInRecovery,
        other => other,
    })
}

/// What a statement with a snapshot of this moment was answered.
fn known_answer(moment: Moment) -> Option<Option<SnowflakeId>> {
    let mut answers = ANSWERS.lock();
    let index = answers.iter().rposition(|it| it.0 == moment)?;
    answers[index..].rotate_left(1);
    answers.last().map(|it| it.1)
}

fn forget_at_end() {
    // Set last: an error of Postgres in between must not prevent a second try.
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.load(Relaxed) {
        pg::callbacks::on_transaction_end(|_| ANSWERS.lock().clear());
        DONE.store(true, Relaxed);
    }
}

/// The greatest answer that holds for a snapshot of this moment.
fn ask(session: &Session, statement: Moment) -> Result<Option<SnowflakeId>, Error> {
    now(protocol::resolved::ask(
        &Backend::of_database(session)?,
        statement,
    ))
}

impl Numbers for Shared {
    fn is_running(&self, xid: u32) -> bool {
        pg::transaction::is_running(xid)
    }

    fn prepared(&self) -> impl Iterator<Item = (u32, u32)> {
        pg::transaction::prepared().map(|(xid, database)| (xid, database.to_u32()))
    }

    fn may_precede(&self, xid: u32) -> bool {
        Shared::may_precede(*self, xid)
    }
}

impl ReadingProcess for Backend<'_> {
    type Numbers = Shared;

    fn transactions(&self) -> Transactions<'_> {
        self.session.shared.transactions()
    }

    fn numbers(&self) -> &Shared {
        &self.session.shared
    }

    async fn moment(&self) -> Moment {
        pg::transaction::moment_now()
    }

    fn samples<R>(&self, look: impl FnOnce(&Samples) -> R) -> R {
        let (samples, _lock) = self.session.shared.lock_samples(pg::session::database());
        look(samples)
    }

    fn answered(&self, clocks: Clocks, id: SnowflakeId) {
        log_holder(self, clocks, id);
    }
}

/// Who holds back the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The process, and its user.
    Backend { pid: i32, user: pg_sys::Oid },
    /// The ID of the prepared transaction.
    Prepared { xid: u32 },
}

/// The open transactions of this database that have drawn IDs, with a lower bound of
/// these. It is not known for transactions that were prepared before the start.
pub fn unresolved(shared: Shared) -> Vec<(Holder, Option<SnowflakeId>)> {
    let database = pg::session::database().to_u32();
    let transactions = shared.transactions();
    let mut all = Vec::new();
    for (number, backend) in transactions.backends.iter().enumerate() {
        let first = backend.open.first_id(database);
        if let Some((first, (pid, user))) = first.zip(pg::process::backend(number)) {
            all.push((Holder::Backend { pid, user }, Some(first)));
        }
    }
    let prepared = transactions.prepared(&shared, database, SnowflakeId::MAX);
    all.extend(prepared.map(|(xid, first)| (Holder::Prepared { xid }, Some(first))));
    let unknown = transactions
        .unknown(&shared)
        .filter(|&(_, of)| of == database);
    all.extend(unknown.map(|(xid, _)| (Holder::Prepared { xid }, None)));
    all
}

/// Logs who has held back the answer for long.
fn log_holder(process: &Backend<'_>, clocks: Clocks, id: SnowflakeId) {
    let Some(longest) = settings::log_unresolved_micros() else {
        return;
    };
    let layout = process.session.layout();
    let age = clocks
        .wall
        .micros_since(layout.time_of(layout.tick_of(id)).into());
    if age < longest {
        return;
    }
    // Read again: the answer is old also if nothing was drawn for long.
    let holder = unresolved(process.session.shared)
        .into_iter()
        .find(|&(_, first)| first == Some(id));
    if let Some((holder, _)) = holder {
        let holder = match holder {
            Holder::Backend { pid, .. } => format!("process {pid}"),
            Holder::Prepared { xid } => format!("prepared transaction {xid}"),
        };
        log::unresolved(process.session.shared, layout, &holder, id, age);
    }
}

/// How this database's resolved ID is, for monitoring.
#[derive(Clone, Copy, Debug, Default)]
pub struct Status {
    /// The resolved ID; `None` if nothing can be said, or on a standby.
    pub id: Option<SnowflakeId>,
    /// How long ago the first ID was generated of those transactions that hold it back,
    /// microseconds; 0 if none does.
    pub age: Option<i64>,
    /// The number of transactions of this database that were prepared before the start.
    pub unknown_prepared: Option<i64>,
}

/// [`Status`].
pub fn status() -> Status {
    // Looking decides nothing: before the first ID there is no answer.
    if shared::get().is_none() {
        return Status::default();
    }
    // Not an error: the view has other columns.
    let (Ok(id), Ok(session)) = (resolved_id(), session::resolve()) else {
        return Status::default();
    };
    let layout = session.layout();
    let open = unresolved(session.shared);
    let age = |first| {
        clock::read()
            .wall
            .micros_since(layout.time_of(layout.tick_of(first)).into())
    };
    let oldest = open.iter().filter_map(|&(_, first)| first).min();
    Status {
        id,
        age: id.map(|_| oldest.map_or(0, |first| age(first).max(0))),
        unknown_prepared: Some(open.iter().filter(|(_, first)| first.is_none()).count() as i64),
    }
}

//! Up to where rows can be read by key without losing one: `snowflake_resolved_id()`.
//!
//! The core crate has the algorithm ([`snowflake_id::resolved`]), and
//! [`crate::generator::open_transaction`] the side of those that draw. This is the side of
//! those that ask.
//!
//! What it is at most is the protocol's decision ([`snowflake_id::protocol::resolved`]).
//!
//! A statement gets one answer, however often it asks: otherwise a scan could leave out
//! one row and return a later one. Statements of a transaction between which no
//! transaction has ended share it.
//!
//! After a restart the IDs of transactions that were prepared before it are not known.
//! While there is one in this database, the answer is unknown.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use parking_lot::Mutex;
use pgrx::pg_sys;
use snowflake_id::SnowflakeId;
use snowflake_id::protocol::resolved::present;
use snowflake_id::protocol::{Clocks, now};
use snowflake_id::resolved::{Moment, OpenTransaction, resolve};

use crate::clock;
use crate::error::Error;
use crate::generator::process::Backend;
use crate::generator::session::{self, Session};
use crate::generator::{log, reserve_present};
use crate::pg;
use crate::settings;
use crate::shared::{self, Shared, Transaction};

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

/// Reads which transactions are open, and finds the greatest answer that holds for a snapshot of this
/// moment.
fn ask(session: &Session, statement: Moment) -> Result<Option<SnowflakeId>, Error> {
    let shared = session.shared;
    let database = pg::session::database();
    if has_unknown_prepared(shared) {
        return Ok(None);
    }
    let clocks = clock::read();
    let process = Backend::of_database(session)?;
    let Some(present) = now(present(&process, clocks))? else {
        return Ok(None);
    };
    let transactions = shared.backends().iter().map(|backend| &backend.open);
    let id = resolve(
        shared.promise(),
        transactions.chain(prepared(shared, present)),
        database.to_u32(),
        present,
    );
    // After the look, so that it has all that had ended by then.
    let moment = pg::transaction::moment_now();
    log_holder(session, clocks, id);
    let (samples, _lock) = shared.lock_samples(database);
    samples.add(database.to_u32(), moment, id, clocks.boot);
    Ok(samples.find(database.to_u32(), statement))
}

/// The prepared transactions that have drawn an ID below `id` and have not ended.
fn prepared(shared: Shared, id: SnowflakeId) -> impl Iterator<Item = &'static OpenTransaction> {
    let database = pg::session::database().to_u32();
    shared.prepared().iter().filter_map(move |place| {
        let xid = place.xid.load(Acquire);
        let first = place.open.first_id(database)?;
        // A place that was given to another transaction meanwhile had been left by the
        // former one. The new one has a word among the backends', which were looked at
        // before, or draws above the promise.
        (xid != 0
            && first < id
            && place.xid.load(Acquire) == xid
            && pg::transaction::is_running(xid))
        .then_some(&place.open)
    })
}

/// The transactions that were prepared before the start, or before shared memory was made. A
/// later one that is not known has drawn nothing: its session had not loaded the library.
fn unknown_prepared(shared: Shared) -> impl Iterator<Item = (u32, pg_sys::Oid)> {
    pg::transaction::prepared().filter(move |&(xid, _)| {
        let is_known = || {
            shared
                .prepared()
                .iter()
                .any(|place| place.xid.load(Acquire) == xid)
        };
        // It may have ended, and its place may have been given away, since it was found.
        shared.may_precede(xid) && !is_known() && pg::transaction::is_running(xid) && !is_known()
    })
}

fn has_unknown_prepared(shared: Shared) -> bool {
    // Once there is none, there is none until the next start.
    let all_known = shared.prepared_are_known();
    if all_known.load(Acquire) {
        return false;
    }
    let mut is_any = false;
    let mut is_here = false;
    for (_, database) in unknown_prepared(shared) {
        is_any = true;
        is_here |= database == pg::session::database();
    }
    if !is_any {
        all_known.store(true, Release);
    }
    is_here
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
    let database = pg::session::database();
    let first_of = |transaction: &Transaction| transaction.open.first_id(database.to_u32());
    let mut all = Vec::new();
    for (number, backend) in shared.backends().iter().enumerate() {
        if let Some((first, (pid, user))) = first_of(backend).zip(pg::process::backend(number)) {
            all.push((Holder::Backend { pid, user }, Some(first)));
        }
    }
    for place in shared.prepared() {
        let xid = place.xid.load(Acquire);
        if let Some(first) =
            first_of(place).filter(|_| xid != 0 && pg::transaction::is_running(xid))
        {
            all.push((Holder::Prepared { xid }, Some(first)));
        }
    }
    for (xid, of) in unknown_prepared(shared) {
        if of == database {
            all.push((Holder::Prepared { xid }, None));
        }
    }
    all
}

/// Logs who has held back the answer for long.
fn log_holder(session: &Session, clocks: Clocks, id: SnowflakeId) {
    let Some(longest) = settings::log_unresolved_micros() else {
        return;
    };
    let layout = session.layout();
    let age = clocks
        .wall
        .micros_since(layout.time_of(layout.tick_of(id)).into());
    if age < longest {
        return;
    }
    // Read again: the answer is old also if nothing was drawn for long.
    let holder = unresolved(session.shared)
        .into_iter()
        .find(|&(_, first)| first == Some(id));
    if let Some((holder, _)) = holder {
        let holder = match holder {
            Holder::Backend { pid, .. } => format!("process {pid}"),
            Holder::Prepared { xid } => format!("prepared transaction {xid}"),
        };
        log::unresolved(session.shared, layout, &holder, id, age);
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

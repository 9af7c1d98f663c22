//! What sessions do.

use std::num::NonZeroU32;
use std::rc::Rc;

use snowflake_id::protocol::mark::{raise_slots_to_restored, raise_to};
use snowflake_id::protocol::resolved;
use snowflake_id::protocol::{LogPosition, Process, Storage, accept_clock, draw, floor};
use snowflake_id::resolved::Moment;
use snowflake_id::{Run, SnowflakeId, WallTime};

use crate::checks::{self, Began};
use crate::lineage::Ranges;
use crate::protection::Protection;
use crate::server::{DATABASES, Record};
use crate::session::{CallError, Session};
use crate::transactions::{MOST_PREPARED, Rows};

/// What the sessions of a history are like.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// The greatest number of IDs that a call draws at once.
    pub most_ids: u32,
    /// How long a session rests between two transactions at most, microseconds.
    pub rest: u32,
}

/// A session with one transaction after another.
pub async fn transactions(session: Session, habits: Habits) {
    let choices = &session.world.choices;
    let mut last = i64::MIN;
    loop {
        session.memory.idle[session.number].set(true);
        let rest = choices.below(habits.rest);
        if session.sleep_micros(i64::from(rest)).await.is_ok() {
            transaction(&session, habits, &mut last).await;
        }
    }
}

/// One transaction. `last` is the session's last ID.
pub async fn transaction(session: &Session, habits: Habits, last: &mut i64) {
    let choices = &session.world.choices;
    session.memory.idle[session.number].set(false);
    if choices.one_in(8) {
        finish_prepared(session).await;
    }
    session.begin_transaction();
    let mut failed = false;
    for _ in 0..=choices.below(3) {
        let most = 1 << choices.below(habits.most_ids.ilog2() + 1);
        let count = NonZeroU32::new(choices.below(most) + 1).unwrap_or(NonZeroU32::MIN);
        let began = Began::of(session);
        match session.next(count).await {
            Ok((slot, run)) => {
                issued(session, slot, run, began, last);
                if choices.one_in(8) {
                    let _ = session
                        .sleep_micros(i64::from(choices.below(habits.rest)))
                        .await;
                }
            }
            Err(error) => {
                failed_with(session, error, habits);
                failed = true;
                break;
            }
        }
    }
    if session.world.lacks(Protection::UntilVisible) {
        session.end_transaction();
        session.pause().await;
    }
    if !failed && choices.one_in(12) && session.server.prepared.borrow().len() < MOST_PREPARED {
        session.prepare().await;
        session.pause().await;
        session.end_transaction();
        return;
    }
    let xid = session.xid.get();
    let has_rows = |rows: &Rows| !rows.ids.is_empty();
    let has_rows = session
        .memory
        .transactions
        .borrow()
        .rows(xid)
        .is_some_and(has_rows);
    if !failed && !choices.one_in(6) && has_rows {
        let end = session.server.log.borrow().len() as u64;
        session.flush(LogPosition(end)).await;
    }
    session.pause().await;
    // All others see that it has ended.
    session.memory.transactions.borrow_mut().end(xid);
    session.pause().await;
    session.end_transaction();
}

/// Commits what another session has prepared in this database.
async fn finish_prepared(session: &Session) {
    let xid = {
        let mut prepared = session.server.prepared.borrow_mut();
        let mut here = prepared
            .iter_mut()
            .filter(|it| it.rows.database == session.database && !it.is_ending);
        here.next().map(|it| {
            it.is_ending = true;
            it.xid
        })
    };
    if let Some(xid) = xid {
        session.pause().await;
        session.memory.transactions.borrow_mut().end(xid);
        session.pause().await;
        session
            .server
            .prepared
            .borrow_mut()
            .retain(|it| it.xid != xid);
    }
}

/// IDs were issued: their rows are in the log.
fn issued(session: &Session, slot: u32, run: Run, began: Began, last: &mut i64) {
    let world = &session.world;
    world.ids.set(world.ids.get() + u64::from(run.count));
    let ids = session.ranges(slot, run);
    let (first, end) = (ids[0].0, ids[ids.len() - 1].1);
    world.tell(|| {
        format!(
            "{} draws {first} to {end}, {} IDs",
            session.name(),
            run.count
        )
    });
    for (first, end) in ids {
        let rows = Record::Rows(session.database, first, end);
        session.server.write(rows);
    }
    let transactions = &session.memory.transactions;
    transactions
        .borrow_mut()
        .add(session.xid.get(), [first, end]);
    checks::drawn(session, run.tick, [first, end], began, last);
}

fn failed_with(session: &Session, error: CallError, habits: Habits) {
    let world = &session.world;
    world.tell(|| format!("{} fails: {error:?}", session.name()));
    checks::refused(session, error, habits.most_ids <= 64);
}

/// A reader of one database.
pub async fn reader(session: Session, rest: u32) {
    loop {
        session.memory.idle[session.number].set(true);
        let rest = session.world.choices.below(rest);
        if session.sleep_micros(i64::from(rest)).await.is_ok() {
            session.memory.idle[session.number].set(false);
            read(&session).await;
        }
    }
}

/// What a reader with a snapshot of this moment is answered; `None` if nothing can be said.
pub async fn ask(session: &Session, snapshot: Moment) -> Option<i64> {
    let answer = resolved::ask(session, snapshot).await.ok()??;
    Some(session.saw(answer.get()))
}

/// A reader asks up to where it can read, and looks whether rows below that are still to come.
pub async fn read(session: &Session) {
    session.begin_call();
    let transactions = &session.memory.transactions;
    let snapshot = transactions.borrow_mut().snapshot();
    session.saw(&snapshot);
    if session.world.choices.one_in(3) {
        // A statement asks later than its snapshot was taken.
        let _ = session
            .sleep_micros(i64::from(session.world.choices.below(20_000)))
            .await;
    }
    let moment = if session.world.lacks(Protection::AnswerForSnapshot) {
        Moment {
            xmax: u64::MAX,
            running: 0,
        }
    } else {
        snapshot.moment
    };
    let answer = ask(session, moment).await;
    let least = answer.unwrap_or(0);
    let lost = transactions
        .borrow_mut()
        .lost(snapshot, session.database, least);
    let Some(answer) = answer else {
        return;
    };
    session.world.answers.set(session.world.answers.get() + 1);
    session.world.tell(|| {
        let (name, database) = (session.server.name, session.database);
        format!("{name}: a reader of database {database} is answered {answer}")
    });
    checks::answered(session, answer, lost);
}

/// Reserves time without an ID.
pub async fn heartbeats(session: Session, rest: u32) {
    loop {
        session.memory.idle[session.number].set(true);
        let rest = session.world.choices.below(rest);
        let _ = session.sleep_micros(i64::from(rest)).await;
        session.memory.idle[session.number].set(false);
        session.begin_call();
        let _ = draw::reserve_present(&session).await;
    }
}

/// Reads the floor, as the view of statistics does, also on a standby.
pub async fn look_at_floor(session: Session) {
    let shared = session.shared();
    let _ = floor::at_start(&session, shared.floor, session.identity()).await;
}

/// A superuser starts the IDs of a database above the first ID of that time.
pub async fn start_at(session: Session, time: WallTime) {
    session.begin_call();
    let layout = session.identity().layout();
    let Ok(tick) = layout.tick_at(time.into()) else {
        return;
    };
    // It accepts a mark that was set, however far ahead.
    let bound = dumped_mark(&session, session.database);
    let bound = SnowflakeId::new(bound).map_or(time, |bound| {
        WallTime::from(layout.time_of(layout.tick_of(bound)))
    });
    let ahead = time.max(bound).unix_micros() - session.world.now() + lease_of(&session);
    // Before it is done: others may draw as soon as slots are raised.
    raise_lead(&session, ahead);
    let result = draw::start_at(&session, tick, |_| CallError::TooFar).await;
    if result.is_ok() {
        starts_at(&session, layout.first_id_of(tick));
    }
    session.world.tell(|| {
        format!(
            "{}: a superuser starts after {time:?}: {result:?}",
            session.server.name
        )
    });
}

/// Restores a dump into a database: its mark, and its rows, which others see when all is there. Rows
/// with IDs that are there already cannot be restored; those were issued before.
pub async fn restore(session: Session, rows: Ranges, bound: i64) {
    session.begin_call();
    let bound = SnowflakeId::new(bound).unwrap_or(SnowflakeId::ZERO);
    if !session.world.lacks(Protection::DumpedMark) {
        // As a mark that was set: up to a lease ahead.
        let wall = session.server.wall(&session.world).unix_micros();
        raise_lead(
            &session,
            wall - session.world.now() + 2 * lease_of(&session),
        );
        if raise_to(&session, bound, i64::MAX).await.is_err() {
            return;
        }
        if !session.world.lacks(Protection::RestoredSlots) {
            let clocks = Process::clocks(&session).await;
            if raise_slots_to_restored(&session, bound, clocks)
                .await
                .is_err()
            {
                return;
            }
        }
    }
    session.world.tell(|| {
        let (name, database) = (session.server.name, session.database);
        format!("{name}: a dump with the mark {bound} is restored into database {database}")
    });
    session.pause().await;
    session.tell_others();
    {
        let mut lineage = session.server.lineage.borrow_mut();
        lineage.of_database[session.database].add_all(&rows);
        lineage.restores[session.database] += 1;
    }
    let layout = session.identity().layout();
    starts_at(&session, layout.first_id_of(layout.tick_above(bound)));
}

/// No ID of a later call is below this one, unless someone has set the mark back meanwhile.
fn starts_at(session: &Session, id: SnowflakeId) {
    if session.server.is_set_back[session.database].get() {
        return;
    }
    let mut lineage = session.server.lineage.borrow_mut();
    let least = &mut lineage.least[session.database];
    *least = id.get().max(*least);
}

fn lease_of(session: &Session) -> i64 {
    session.server.config.get().settings.lease_micros()
}

/// By how much IDs may be ahead from now on.
fn raise_lead(session: &Session, lead: i64) {
    let mut lineage = session.server.lineage.borrow_mut();
    lineage.lead = lineage.lead.max(lead);
}

/// Gets an ID, as an administrator would who reads the hints of the errors: when all faults have ended,
/// each database must issue IDs again.
pub async fn recover(session: Session, databases: Rc<std::cell::Cell<usize>>) {
    session.begin_transaction();
    for _ in 0..20 {
        let began = Began::of(&session);
        let mut last = i64::MIN;
        match session.next(NonZeroU32::MIN).await {
            Ok((slot, run)) => {
                issued(&session, slot, run, began, &mut last);
                databases.set(databases.get() + 1);
                session
                    .memory
                    .transactions
                    .borrow_mut()
                    .end(session.xid.get());
                session.end_transaction();
                while session
                    .server
                    .prepared
                    .borrow()
                    .iter()
                    .any(|it| it.rows.database == session.database)
                {
                    finish_prepared(&session).await;
                }
                checks::held_back_by_none(&session);
                return;
            }
            Err(CallError::Behind(until)) => {
                let wall = session.server.wall(&session.world);
                let needed = until.micros_since(wall).max(0);
                session
                    .world
                    .sleep_until(session.world.now() + needed + 1_000_000)
                    .await;
            }
            Err(CallError::Ahead) => {
                // snowflake_accept_clock()
                let clocks = Process::clocks(&session).await;
                let clock = session.memory.slewed_clock();
                if accept_clock(clock, session.settings(), clocks, clocks.wall).is_err() {
                    continue;
                }
                session
                    .server
                    .trusted
                    .set(clocks.wall.unix_micros() - session.world.now());
            }
            Err(_) => {
                session
                    .world
                    .sleep_until(session.world.now() + 2_000_000)
                    .await;
            }
        }
    }
}

/// The mark that a dump has: the bound on its page.
pub fn dumped_mark(session: &Session, database: usize) -> i64 {
    let pages = session.server.pages.borrow();
    pages.marks[database].0.bound_id.get()
}

/// All databases.
pub fn databases() -> std::ops::Range<usize> {
    0..DATABASES
}

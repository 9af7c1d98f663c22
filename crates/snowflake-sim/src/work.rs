//! What sessions do.

use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use snowflake_id::protocol::mark::{raise_slots_to_restored, raise_to};
use snowflake_id::protocol::resolved::present;
use snowflake_id::protocol::{LogPosition, Process, Storage, draw, floor};
use snowflake_id::resolved::{Promise, resolve};
use snowflake_id::{Run, SnowflakeId, WallTime};

use crate::lineage::Ranges;
use crate::protection::Protection;
use crate::server::{DATABASES, Record};
use crate::session::{CallError, Session};

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
        if session.sleep(i64::from(rest)).await.is_ok() {
            transaction(&session, habits, &mut last).await;
        }
    }
}

/// One transaction. `last` is the session's last ID.
pub async fn transaction(session: &Session, habits: Habits, last: &mut i64) {
    let choices = &session.world.choices;
    session.memory.idle[session.number].set(false);
    session.memory.rows.borrow_mut()[session.number].0 = session.database;
    let mut failed = false;
    for _ in 0..=choices.below(3) {
        let most = 1 << choices.below(habits.most_ids.ilog2() + 1);
        let count = NonZeroU32::new(choices.below(most) + 1).unwrap_or(NonZeroU32::MIN);
        let began = Wall::of(session);
        match session.next(count).await {
            Ok((slot, run)) => {
                issued(session, slot, run, began, last);
                if choices.one_in(8) {
                    let _ = session.sleep(i64::from(choices.below(habits.rest))).await;
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
    if !failed && !choices.one_in(6) && !session.memory.rows.borrow()[session.number].1.is_empty() {
        let end = session.server.log.borrow().len() as u64;
        session.flush(LogPosition(end)).await;
    }
    session.pause().await;
    // All others see that it has ended.
    session.memory.rows.borrow_mut()[session.number].1.clear();
    session.pause().await;
    session.end_transaction();
}

/// What the wall clock shows, and how often it was set.
struct Wall {
    time: WallTime,
    changes: u32,
}

impl Wall {
    fn of(session: &Session) -> Self {
        Wall {
            time: session.server.wall(&session.world),
            changes: session.server.clock_changes.get(),
        }
    }
}

/// What must hold for IDs that were issued.
fn issued(session: &Session, slot: u32, run: Run, began: Wall, last: &mut i64) {
    let Session {
        world,
        server,
        database,
        ..
    } = session;
    let identity = session.identity();
    let layout = identity.layout();
    let first = identity.id(slot, run.tick, run.first).get();
    let end = identity.id(slot, run.tick, run.first + run.count - 1).get();
    world.ids.set(world.ids.get() + u64::from(run.count));
    let name = || {
        format!(
            "{}: session {} of database {database}",
            server.name, session.number
        )
    };
    world.tell(|| format!("{} draws {first} to {end}, {} IDs", name(), run.count));

    for (first, end) in session.ranges(slot, run) {
        server.write(Record::Rows(*database, first, end));
    }
    let mut lineage = server.lineage.borrow_mut();
    let mut rows = session.memory.rows.borrow_mut();
    rows[session.number].1.extend([first, end]);
    if layout.backend_is_above_sequence() || layout.max_backend() == 0 {
        if first <= *last {
            world.violate(format!("{} draws ID {first} after ID {last}", name()));
        }
        *last = end;
    }
    if end >= server.durable_bound(*database) {
        world.violate(format!(
            "{} draws ID {end}, at or above the durable mark",
            name()
        ));
    }
    if first < lineage.answered[*database] {
        world.violate(format!(
            "{} draws ID {first}; a reader was answered {}",
            name(),
            lineage.answered[*database]
        ));
    }
    server.follow_clock(world, &mut lineage);
    let settings = server.config.get().settings;
    let tick = i64::from(layout.tick_micros());
    let time = WallTime::from(layout.time_of(run.tick));
    // Unless the clock was set since the call began.
    let age = began.time.unix_micros() - time.unix_micros();
    if age >= tick && began.changes == server.clock_changes.get() {
        world.violate(format!("{} draws an ID that is {} us old", name(), age));
    }
    // Marks are a lease ahead, and each restart adds one. Ten seconds for clocks that change during a
    // call: what is looked for is a clock, or a mark, that was followed without reason.
    let most = world.now()
        + 10_000_000
        + 4 * settings.lease as i64
        + lineage.lead.max(server.trusted.get())
        + tick
        + settings.max_borrow as i64;
    // All clocks are corrected at the end, so what was ahead then has no reason any more.
    if !world.is_ending.get() && time.unix_micros() > most + settings.lease as i64 {
        world.violate(format!(
            "{} draws an ID {} ms ahead; {} ms would be right, {settings:?}, {:?}, lead {}",
            name(),
            (time.unix_micros() - world.now()) / 1_000,
            (most + settings.lease as i64 - world.now()) / 1_000,
            server.machine.get(),
            lineage.lead
        ));
    }
}

fn failed_with(session: &Session, error: CallError, habits: Habits) {
    let Session { world, server, .. } = session;
    world.tell(|| {
        format!(
            "{}: session {} fails: {error:?}",
            server.name, session.number
        )
    });
    let max_wait = server.config.get().max_wait_ms;
    // So few IDs use up no slot. A machine that stood still has used up the time for waiting.
    let is_roomy = habits.most_ids <= 64 && server.layout().sequence_bits() >= 12;
    // Where more could be borrowed before, slots are ahead by that.
    let most_borrow = session.shared().most_borrow.load(Relaxed);
    let is_lowered = most_borrow > server.config.get().settings.max_borrow;
    if error == CallError::WaitTooLong && is_roomy && !is_lowered && session.waited_ms() < max_wait
    {
        world.violate(format!(
            "{}: session {} waits for IDs, though none are used up",
            server.name, session.number
        ));
    }
}

/// A reader of one database.
pub async fn reader(session: Session, rest: u32) {
    loop {
        session.memory.idle[session.number].set(true);
        let rest = session.world.choices.below(rest);
        if session.sleep(i64::from(rest)).await.is_ok() {
            session.memory.idle[session.number].set(false);
            read(&session).await;
        }
    }
}

/// What a reader is answered; `None` if another session has locked the mark.
pub async fn ask(session: &Session) -> Option<i64> {
    session.begin_call();
    let clocks = Process::clocks(session).await;
    let mut most = present(session, clocks).await.ok()??;
    if session.world.lacks(Protection::AnswerBelowMark) {
        let layout = session.identity().layout();
        most = layout
            .tick_at(clocks.wall.plus_micros(1_000_000).into())
            .map_or(most, |tick| layout.first_id_of(tick));
    }
    session.pause().await;
    let nothing = Promise::default();
    let promise = if session.world.lacks(Protection::Promise) {
        &nothing
    } else {
        &session.memory.promise
    };
    let answer = resolve(
        promise,
        session.memory.open.iter(),
        session.database as u32,
        most,
    )
    .get();
    Some(session.saw(answer))
}

/// A reader asks up to where it can read, and looks whether rows below that are still to come.
pub async fn read(session: &Session) {
    let Some(answer) = ask(session).await else {
        return;
    };
    session.world.answers.set(session.world.answers.get() + 1);
    session.world.tell(|| {
        let (name, database) = (session.server.name, session.database);
        format!("{name}: a reader of database {database} is answered {answer}")
    });
    let mut lineage = session.server.lineage.borrow_mut();
    let answered = &mut lineage.answered[session.database];
    if !session.server.is_set_back[session.database].get() {
        *answered = answer.max(*answered);
    }
    for (number, (database, rows)) in session.memory.rows.borrow().iter().enumerate() {
        if let Some(row) = rows
            .iter()
            .find(|&&row| *database == session.database && row < answer)
        {
            session.world.violate(format!(
                "{}: a reader was answered {answer}, and session {number} has not ended yet with row {row}",
                session.server.name
            ));
        }
    }
}

/// Reserves time without an ID.
pub async fn heartbeats(session: Session, rest: u32) {
    loop {
        session.memory.idle[session.number].set(true);
        let rest = session.world.choices.below(rest);
        let _ = session.sleep(i64::from(rest)).await;
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
    let mut lineage = session.server.lineage.borrow_mut();
    lineage.of_database[session.database].add_all(&rows);
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
    for _ in 0..20 {
        let began = Wall::of(&session);
        let mut last = i64::MIN;
        match session.next(NonZeroU32::MIN).await {
            Ok((slot, run)) => {
                issued(&session, slot, run, began, &mut last);
                databases.set(databases.get() + 1);
                session.memory.rows.borrow_mut()[session.number].1.clear();
                session.end_transaction();
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
                session.memory.slewed_clock().trust(clocks.offset());
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

//! What must hold. Nothing else of the simulator decides whether a history is right.
//!
//! Which check finds that a protection is missing, in how many histories from seed 1 on:
//!
//! | check | protections |
//! |---|---|
//! | [`distinct`]: no ID is repeated | `floor` 291, `floor-logged` 31036, `floor-of-standby` 99751, `slot` 2 |
//! | [`drawn`]: below the durable mark | `entry-lock` 1, `flush` 1, `floor-written` 13, `floor-error` 13 |
//! | [`drawn`]: not below what a reader was answered | `mark-logged` 23, `start-number` 13, `start-number-of-copies` 38, `confirmed-entry` 2138, `promise` 2, `answer-below-mark` 91, `answer-durable` 7276 |
//! | [`drawn`]: not below a restored mark, or a start | `mark` 56, `dumped-mark` 9, `restored-slots` 9 |
//! | [`drawn`]: not ahead without reason | `set-limit` 17, `clock-ahead` 6614 |
//! | [`recovered`]: IDs are issued when all faults have ended | `slewed-clock` 1 |
//! | [`answered`]: a snapshot sees all below it | `published` 3, `until-visible` 2, `handed-on` 3, `prepared-known` 20, `answer-for-snapshot` 2 |
//!
//! `scripts/breaks` shows the same of lines of the protocol, [`gives_up`] and [`refused`] among them.

use std::sync::atomic::Ordering::Relaxed;

use snowflake_id::protocol::resolved::ReadingProcess;
use snowflake_id::protocol::{Clocks, Process, Refused, Session as _};
use snowflake_id::{Run, SnowflakeId, Tick, WallTime};

use crate::server::Server;
use crate::session::{CallError, Session};
use crate::world::World;

/// What the wall clock showed when a call began, and how often it was set by then.
pub struct Began {
    time: WallTime,
    changes: u32,
}

impl Began {
    /// A call begins.
    pub fn of(session: &Session) -> Self {
        Began {
            time: session.server.wall(&session.world),
            changes: session.server.clock_changes.get(),
        }
    }
}

/// A slot has issued these. None was issued before, nor was any in a dump that was restored before the
/// call began: what is restored during a call meets its row in a unique index, whichever comes first.
pub fn distinct(session: &Session, slot: u32, run: Run) {
    let mut lineage = session.server.lineage.borrow_mut();
    let is_restored = lineage.restores[session.database] != session.restores.get();
    for (first, last) in session.ranges(slot, run) {
        let twice = lineage.of_database[session.database].add(first, last);
        let twice = twice.filter(|_| !is_restored);
        if let Some(id) = twice.or(lineage.of_server.add(first, last)) {
            session.world.violate(format!(
                "{} draws ID {id}, which was issued before",
                session.name()
            ));
        }
    }
}

/// What must hold for the IDs of a call besides. `last` is the session's last one.
pub fn drawn(session: &Session, tick: Tick, [first, end]: [i64; 2], began: Began, last: &mut i64) {
    let (world, server, database) = (&session.world, &session.server, session.database);
    let layout = session.identity().layout();
    let mut lineage = server.lineage.borrow_mut();
    if layout.backend_is_above_sequence() || layout.max_backend() == 0 {
        if first <= *last {
            world.violate(format!(
                "{} draws ID {first} after ID {last}",
                session.name()
            ));
        }
        *last = end;
    }
    if end >= server.durable_bound(database) {
        world.violate(format!(
            "{} draws ID {end}, at or above the durable mark",
            session.name()
        ));
    }
    if first < lineage.answered[database] {
        world.violate(format!(
            "{} draws ID {first}; a reader was answered {}",
            session.name(),
            lineage.answered[database]
        ));
    }
    // Unless the mark was set back meanwhile.
    let least = session.least.get().min(lineage.least[database]);
    if first < least {
        world.violate(format!(
            "{} draws ID {first}; the database's IDs start at {least}",
            session.name()
        ));
    }
    server.follow_clock(world, &mut lineage);
    let settings = server.config.get().settings;
    let tick_micros = i64::from(layout.tick_micros());
    let time = WallTime::from(layout.time_of(tick));
    // Unless the clock was set since the call began.
    let age = began.time.unix_micros() - time.unix_micros();
    if age >= tick_micros && began.changes == server.clock_changes.get() {
        world.violate(format!(
            "{} draws an ID that is {} us old",
            session.name(),
            age
        ));
    }
    let reached = session.memory.slewed_clock();
    let reached = reached.time(server.wall(world), server.boot(world));
    // What readers were promised is reached, too.
    let promised = WallTime::from(layout.time_of(layout.tick_of(session.memory.promise.id())));
    let borrowed = time.micros_since(reached.max(promised)) - settings.max_borrow as i64;
    let is_of_clock = began.changes == server.clock_changes.get();
    if borrowed > 0 && is_of_clock && session.has_settings() {
        world.violate(format!(
            "{} draws an ID that is {borrowed} us further ahead than may be borrowed",
            session.name()
        ));
    }
    // Marks are a lease ahead, and each restart adds one. Ten seconds for clocks that change during a
    // call: what is looked for is a clock, or a mark, that was followed without reason.
    let most = world.now()
        + 10_000_000
        + 4 * settings.lease as i64
        + lineage.lead.max(server.trusted.get())
        + tick_micros
        + settings.max_borrow as i64;
    // All clocks are corrected at the end, so what was ahead then has no reason any more.
    if !world.is_ending.get() && time.unix_micros() > most + settings.lease as i64 {
        world.violate(format!(
            "{} draws an ID {} ms ahead; {} ms would be right, {settings:?}, {:?}, lead {}",
            session.name(),
            (time.unix_micros() - world.now()) / 1_000,
            (most + settings.lease as i64 - world.now()) / 1_000,
            server.machine.get(),
            lineage.lead
        ));
    }
}

/// A call fails. One that draws `few` IDs uses up no slot.
pub fn refused(session: &Session, error: CallError, few: bool) {
    let max_wait = session.server.config.get().max_wait_ms;
    // So few IDs use up no slot. A machine that stood still has used up the time for waiting.
    let is_roomy = few && session.server.layout().sequence_bits() >= 12;
    // Where more could be borrowed before, or others have settings that this session has not yet, slots
    // are ahead by that.
    let most_borrow = session.shared().most_borrow.load(Relaxed);
    let is_lowered =
        most_borrow > session.server.config.get().settings.max_borrow || !session.has_settings();
    if error == CallError::WaitTooLong && is_roomy && !is_lowered && session.waited_ms() < max_wait
    {
        session.world.violate(format!(
            "{}: session {} waits for IDs, though none are used up",
            session.server.name, session.number
        ));
    }
}

/// A call gives up a wait, for this reason, when the clocks show this.
pub fn gives_up(session: &Session, why: Refused, at: Clocks) {
    let config = session.server.config.get();
    let settings = config.settings;
    let needed = match why {
        Refused::MarkSetAhead { set_to } => set_to.micros_since(at.wall) - settings.lease_micros(),
        Refused::ClockBehind { reached } => {
            reached.micros_since(at.wall) - settings.max_clock_step.unwrap_or(0)
        }
        _ => return,
    };
    // It has waited for less when it was decided.
    let until = session.waited_ms() + needed.max(0) / 1_000 + 1;
    if until < config.max_wait_ms && session.has_settings() {
        session.world.violate(format!(
            "{} gives up a wait of {} ms, though it may wait that long",
            session.name(),
            needed / 1_000
        ));
    }
}

/// A session is about to sleep. A machine may have stood still, or been slow, since it
/// looked how long it may.
pub fn sleeps(session: &Session) {
    let most = session.server.config.get().max_wait_ms.max(1_000) + 60_000;
    if session.waited_ms() > most {
        let what = format!("{} waits for longer than it may", session.name());
        session.world.violate(what);
    }
}

/// A reader is answered this. `lost` is a row below it that its snapshot does not see.
pub fn answered(session: &Session, answer: i64, lost: Option<(u32, i64)>) {
    let (server, database) = (&session.server, session.database);
    // No ID below it is drawn from now on.
    if !server.is_set_back[database].get() {
        let answered = &mut server.lineage.borrow_mut().answered[database];
        *answered = answer.max(*answered);
    }
    if let Some((xid, row)) = lost {
        session.world.violate(format!(
            "{}: a reader was answered {answer}, and its snapshot does not see transaction {xid} with row {row}",
            server.name
        ));
    }
}

/// No transaction of this database is open, so none holds its readers back.
pub fn held_back_by_none(session: &Session) {
    let (all, database) = (session.transactions(), session.database());
    let words = all.backends.iter();
    let open = words.filter_map(|it| it.open.first_id(database));
    let prepared = all.prepared(session, database, SnowflakeId::MAX);
    if let Some(first) = open.chain(prepared.map(|(_, first)| first)).next() {
        session.world.violate(format!(
            "{}: ID {first} holds back readers, and no transaction is open",
            session.server.name
        ));
    }
}

/// A clock that was accepted is used.
pub fn accepted(world: &World, server: &Server, is_used: bool) {
    if !is_used {
        world.violate(format!(
            "{}: a clock is accepted, and not used",
            server.name
        ));
    }
}

/// All faults have ended, and a session of this database has tried to get an ID.
pub fn recovered(world: &World, server: &Server, database: usize, has_id: bool) {
    if !has_id {
        world.violate(format!(
            "{}: database {database} issues no IDs after all faults have ended",
            server.name
        ));
    }
}

/// Every session gets an answer in the end.
pub fn ends(world: &World, turns: u32) -> bool {
    const MOST_TURNS: u32 = 50_000;
    if turns > MOST_TURNS {
        world.violate("the history does not come to an end");
    }
    turns <= MOST_TURNS
}

//! Histories that a real server plays, too: one step after another, while time stands still. What
//! each step ends with follows from the protocol alone, so both end with the same: the same IDs, the
//! same answers to readers, the same errors.
//!
//! Between two steps nothing runs, so these histories have no interleavings: [`crate::history`] has
//! them. What they show is that a server's pages, log, shared memory, settings and processes are what
//! the simulator takes them for.
//!
//! What a step ends with is judged, too ([`crate::checks`]). So where both have the same defect, and do
//! not differ, the server's answers are found wrong all the same.

use std::num::NonZeroU32;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use snowflake_id::protocol::{
    Clocks, MarkPage, NotAccepted, Process, ServerSettings, accept_clock, draw,
};
use snowflake_id::{ClockOffset, Identity, Layout, Run, SnowflakeId};

use crate::checks::{self, Began};
use crate::choices::Choices;
use crate::protection::Protection;
use crate::server::{Config, DATABASES, Machine, Record, Server};
use crate::session::{CallError, Session};
use crate::work;
use crate::world::World;

/// How many sessions draw in each database, at most.
pub const SESSIONS: usize = 2;

/// The layouts of these histories: many IDs a tick, few, and one slot.
pub const LAYOUTS: [&str; 3] = [
    "timestamp:41 node:6 backend:4 sequence:12",
    "timestamp:41 node:6 backend:2 sequence:2",
    "timestamp:41 node:6 sequence:6",
];

/// Which session: its database, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// The database.
    pub database: usize,
    /// The number, below [`SESSIONS`].
    pub number: usize,
}

/// What happens. Times are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A session draws so many IDs in one transaction, by a call for each.
    Draw(Who, u32),
    /// The same by one call for all.
    DrawRun(Who, u32),
    /// A session asks up to where rows can be read.
    Ask(Who),
    /// The same, after it has reserved time as an ID would.
    AskAndReserve(Who),
    /// A session is replaced by a new one.
    Reconnect(Who),
    /// Time passes.
    Pass(i64),
    /// The wall clock is set: ahead of true time by so much.
    SetClock(i64),
    /// A database's mark is set to the first ID of a time, ahead of the wall clock by so much.
    SetMark(usize, i64),
    /// Other settings.
    Settings(ServerSettings),
    /// A session's process is killed: shared memory is made anew.
    KillBackend(Who),
    /// All processes are killed, and the server starts again.
    Kill,
    /// The server is stopped and started.
    Restart,
    /// The same, with another node number.
    OtherNode(u32),
    /// A superuser accepts the clock as it is.
    AcceptClock(Who),
    /// The server is killed, and a standby that has all of its log takes over.
    Promote,
}

/// What a step ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing that a client sees.
    Done,
    /// IDs, in the order in which they came.
    Ids(Vec<i64>),
    /// What a reader was answered.
    Answer(Option<i64>),
    /// An error.
    Failed(CallError),
}

/// A server at the beginning of a history.
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    /// Its layout.
    pub layout: &'static str,
    /// Its node number.
    pub node: u32,
    /// Its settings. No call waits.
    pub settings: ServerSettings,
    /// True time, which its wall clock shows, microseconds since 1970.
    pub now: i64,
    /// The time since the machine's boot.
    pub boot: i64,
    /// Whether the library is not preloaded.
    pub at_first_use: bool,
}

/// A server that plays a history.
pub struct Play {
    world: Rc<World>,
    server: Rc<Server>,
    sessions: [[Option<Rc<Session>>; SESSIONS]; DATABASES],
    /// The offset of the clocks when the postmaster started.
    started: ClockOffset,
}

/// Settings of a history.
fn settings(choices: &Choices) -> ServerSettings {
    ServerSettings {
        lease: choices.of(&[2_000_000, 100_000, 10_000_000]),
        max_borrow: choices.of(&[10_000, 0, 1_000_000]),
        max_clock_step: choices.of(&[Some(10_000_000), Some(1_000_000), None]),
    }
}

/// The beginning of the history of this seed, at that time.
pub fn beginning(seed: u64, now: i64, boot: i64, at_first_use: bool) -> Beginning {
    let choices = Choices::of_seed(seed);
    Beginning {
        layout: choices.of(&LAYOUTS),
        node: choices.below(3),
        settings: settings(&choices),
        now,
        boot,
        at_first_use,
    }
}

/// So many steps of the history of this seed. With `promotes`, a standby may take over.
pub fn steps(seed: u64, count: usize, promotes: bool) -> Vec<Step> {
    let choices = Choices::of_seed(!seed);
    (0..count).map(|_| step(&choices, promotes)).collect()
}

fn step(choices: &Choices, promotes: bool) -> Step {
    let who = Who {
        database: choices.below(DATABASES as u32) as usize,
        number: choices.below(SESSIONS as u32) as usize,
    };
    // Every order of magnitude is equally likely.
    let micros =
        || i64::from(choices.below(1_000) + 1) * choices.of(&[1, 1_000, 10_000, 1_000_000]);
    match choices.below(42) {
        0..8 => Step::Draw(who, 1 << choices.below(8)),
        8..14 => Step::DrawRun(who, (1 << choices.below(10)) + choices.below(8)),
        14..19 => Step::Ask(who),
        19..21 => Step::AskAndReserve(who),
        21 => Step::Reconnect(who),
        22..28 => Step::Pass(micros()),
        28..30 => Step::SetClock(micros()),
        30..32 => Step::SetClock(-micros()),
        32 => Step::SetClock(0),
        33 => Step::SetMark(who.database, choices.of(&[1, -1]) * micros()),
        34 => Step::Settings(settings(choices)),
        35 => Step::KillBackend(who),
        36 => Step::Kill,
        37 => Step::Restart,
        38 => Step::OtherNode(choices.below(3)),
        39..41 => Step::AcceptClock(who),
        _ if promotes => Step::Promote,
        _ => Step::Kill,
    }
}

impl Play {
    /// At the beginning, without a protection if one is taken away.
    ///
    /// # Panics
    /// If the layout does not have the node number.
    pub fn new(beginning: &Beginning, removed: Option<Protection>) -> Self {
        let world = World::new(Choices::given(Vec::new()), removed, false);
        world.set_step_micros(0);
        world.pass(beginning.now - world.now());
        let layout: Layout = beginning.layout.parse().unwrap_or(Layout::DEFAULT);
        let config = Config {
            identity: identity(layout, beginning.node),
            settings: beginning.settings,
            max_wait_ms: 0,
            at_first_use: beginning.at_first_use,
        };
        let server = Server::new('a', config, &world);
        // No time passes during a flush.
        server.flush_micros.set(0);
        server.set_machine(Machine {
            ahead: 0,
            frozen: None,
            booted: beginning.now - beginning.boot,
        });
        let mut play = Play {
            started: ClockOffset::from_micros(0),
            world,
            server: Rc::new(server),
            sessions: Default::default(),
        };
        play.start(false);
        play
    }

    /// True time, microseconds since 1970.
    pub fn now(&self) -> i64 {
        self.world.now()
    }

    /// What the wall clock shows, microseconds since 1970.
    pub fn wall(&self) -> i64 {
        self.server.wall(&self.world).unix_micros()
    }

    /// What must not have been.
    pub fn violation(&self) -> Option<String> {
        self.world.violation()
    }

    /// The bound that a step sets a mark to.
    pub fn bound(&self, ahead: i64) -> Option<i64> {
        let layout = self.server.layout();
        let time = self.server.wall(&self.world).plus_micros(ahead);
        let tick = layout.tick_at(time.into()).ok()?;
        Some(layout.first_id_of(tick).get())
    }

    /// The next step. `process` is the number of the process that serves the session; it counts where
    /// the session is a new one.
    pub fn step(&mut self, step: Step, process: u32) -> Outcome {
        let outcome = match step {
            Step::Draw(who, count) => self.ids(who, process, |session| {
                wait(&session.world, calls(session, count))
            }),
            Step::DrawRun(who, count) => self.ids(who, process, |session| {
                wait(&session.world, run(session, count))
            }),
            Step::Ask(who) => {
                let session = self.session(who, process);
                self.ask(&session)
            }
            Step::AskAndReserve(who) => {
                let session = self.session(who, process);
                session.begin_call();
                match wait(&self.world, draw::reserve_present(&*session)) {
                    Ok(()) => self.ask(&session),
                    Err(error) => Outcome::Failed(error),
                }
            }
            Step::Reconnect(who) => {
                self.sessions[who.database][who.number] = None;
                Outcome::Done
            }
            Step::Pass(micros) => {
                self.world.pass(micros);
                Outcome::Done
            }
            Step::SetClock(ahead) => {
                let mut machine = self.server.machine.get();
                machine.ahead = ahead;
                self.server.set_machine(machine);
                Outcome::Done
            }
            Step::SetMark(database, ahead) => {
                self.set_mark(database, ahead);
                Outcome::Done
            }
            Step::Settings(settings) => {
                let mut config = self.server.config.get();
                config.settings = settings;
                self.server.config.set(config);
                if let Some(memory) = &*self.server.memory.borrow() {
                    memory.settings_number.set(memory.settings_number.get() + 1);
                }
                Outcome::Done
            }
            Step::AcceptClock(who) => {
                let session = self.session(who, process);
                session.begin_call();
                let clocks = wait(&self.world, Process::clocks(&*session));
                accepted(&session, clocks)
            }
            Step::KillBackend(_) => {
                self.end();
                self.start(true);
                Outcome::Done
            }
            Step::Kill | Step::Restart => {
                self.end();
                self.start(false);
                Outcome::Done
            }
            Step::OtherNode(node) => {
                self.end();
                let mut config = self.server.config.get();
                config.identity = identity(*config.identity.layout(), node);
                self.server.config.set(config);
                self.start(false);
                Outcome::Done
            }
            Step::Promote => {
                self.promote();
                Outcome::Done
            }
        };
        // Each statement is committed, and each step waits for the one before.
        self.server.flush_all();
        outcome
    }

    fn ids(
        &mut self,
        who: Who,
        process: u32,
        draw: impl FnOnce(&Session) -> Result<Vec<i64>, CallError>,
    ) -> Outcome {
        let session = self.session(who, process);
        let drawn = draw(&session);
        session.end_transaction();
        match drawn {
            Ok(ids) => Outcome::Ids(ids),
            Err(error) => Outcome::Failed(error),
        }
    }

    fn ask(&mut self, session: &Session) -> Outcome {
        // A transaction ends before each question.
        let mut transactions = session.memory.transactions.borrow_mut();
        let xid = transactions.begin(session.database);
        transactions.end(xid);
        let moment = transactions.moment();
        drop(transactions);
        session.begin_call();
        let answer = wait(&self.world, work::ask(session, moment));
        if let Some(answer) = answer {
            checks::answered(session, answer, None);
        }
        Outcome::Answer(answer)
    }

    fn session(&mut self, who: Who, process: u32) -> Rc<Session> {
        let place = &mut self.sessions[who.database][who.number];
        if let Some(session) = place {
            return Rc::clone(session);
        }
        let memory = match &*self.server.memory.borrow() {
            Some(memory) => Rc::clone(memory),
            None => unreachable!("it was started"),
        };
        let number = who.database * SESSIONS + who.number;
        let session = Session::new(&self.world, &self.server, &memory, who.database, number);
        let session = Rc::new(session.of_process(process));
        *place = Some(Rc::clone(&session));
        session
    }

    fn set_mark(&mut self, database: usize, ahead: i64) {
        let Some(bound_id) = self.bound(ahead).and_then(SnowflakeId::new) else {
            return;
        };
        let page = MarkPage {
            bound_id,
            start_number: 0,
        };
        let end = self.server.write(Record::Mark(database, page));
        self.server.pages.borrow_mut().marks[database] = (page, end);
        // Who sets a mark takes its promise from readers.
        self.server.is_set_back[database].set(true);
        self.server.lineage.borrow_mut().answered[database] = 0;
    }

    fn end(&mut self) {
        self.sessions = Default::default();
        let all = self.server.log.borrow().len();
        self.server.end(all);
    }

    /// Starts it. After the crash of a backend, the postmaster is the same.
    fn start(&mut self, after_a_backend: bool) {
        let before = self.offset();
        self.server.start(&self.world, false, DATABASES as u32);
        // How far ahead IDs may be without reason is for histories in which time passes.
        self.server.lineage.borrow_mut().lead = i64::MAX / 4;
        if after_a_backend {
            if let Some(memory) = &*self.server.memory.borrow() {
                memory.slewed_clock().trust(self.started);
                if self.server.config.get().at_first_use {
                    memory.leave_unused(self.started);
                }
            }
        } else {
            self.started = before;
        }
    }

    fn offset(&self) -> ClockOffset {
        let (wall, boot) = (self.server.wall(&self.world), self.server.boot(&self.world));
        ClockOffset::between(wall, boot)
    }

    fn promote(&mut self) {
        self.server.flush_all();
        let standby = Server::new('b', self.server.config.get(), &self.world);
        standby.flush_micros.set(0);
        standby.set_machine(self.server.machine.get());
        *standby.log.borrow_mut() = self.server.log.borrow().clone();
        *standby.lineage.borrow_mut() = self
            .server
            .lineage
            .replace(crate::lineage::Lineage::new(DATABASES));
        self.end();
        self.server = Rc::new(standby);
        self.started = self.offset();
        self.server.start(&self.world, true, DATABASES as u32);
        if let Some(memory) = &*self.server.memory.borrow() {
            memory.in_recovery.set(false);
        }
    }
}

fn identity(layout: Layout, node: u32) -> Identity {
    Identity::new(layout, node)
        .unwrap_or_else(|_| unreachable!("every layout has the number {node}"))
}

async fn calls(session: &Session, count: u32) -> Result<Vec<i64>, CallError> {
    let (mut ids, mut last) = (Vec::new(), i64::MIN);
    for _ in 0..count {
        let began = Began::of(session);
        let (slot, run) = session.next(NonZeroU32::MIN).await?;
        drawn(session, slot, run, began, &mut last, &mut ids);
    }
    Ok(ids)
}

/// As `src/sql/generate.rs`: runs of 16, and of twice as many each time.
async fn run(session: &Session, count: u32) -> Result<Vec<i64>, CallError> {
    let (mut ids, mut last) = (Vec::new(), i64::MIN);
    let mut most = 16;
    while let Some(wanted) = NonZeroU32::new((count - ids.len() as u32).min(most)) {
        session.begin_call();
        let began = Began::of(session);
        let (slot, run) = draw::draw(session, wanted).await?;
        drawn(session, slot, run, began, &mut last, &mut ids);
        most = most.saturating_mul(2);
    }
    Ok(ids)
}

fn drawn(session: &Session, slot: u32, run: Run, began: Began, last: &mut i64, ids: &mut Vec<i64>) {
    let ranges = session.ranges(slot, run);
    let ends = [ranges[0].0, ranges[ranges.len() - 1].1];
    checks::drawn(session, run.tick, ends, began, last);
    ids.extend(session.identity().ids(slot, run).map(|id| id.get()));
}

/// A superuser accepts what the wall clock shows.
fn accepted(session: &Session, clocks: Clocks) -> Outcome {
    let clock = session.memory.slewed_clock();
    match accept_clock(clock, session.settings(), clocks, clocks.wall) {
        Ok(()) => {
            let limits = session.settings().limits(session.identity().layout());
            // Nothing is observed by the call.
            let trusted = clock.trusted(clocks.wall, clocks.boot, limits);
            checks::accepted(&session.world, &session.server, trusted == clocks.wall);
            Outcome::Done
        }
        Err(NotAccepted::Behind { reached }) => Outcome::Failed(CallError::Behind(reached)),
        Err(NotAccepted::NotAsExpected) => unreachable!("it is what the clock shows"),
    }
}

/// Runs what nothing else runs beside.
fn wait<F: Future>(world: &World, function: F) -> F::Output {
    let mut function = pin!(function);
    loop {
        world.begin_turn(u32::MAX);
        if let Poll::Ready(output) = function
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return output;
        }
        // No call waits; a wait for another session would never end.
        assert!(world.end_turn() <= world.now(), "a step waits");
    }
}

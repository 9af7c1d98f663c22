//! Small instances, of which all histories can be explored: a few sessions with a few IDs each, on one
//! server, which may crash.
//!
//! A history is the list of its [`Action`]s. The state at its end is found by running it from the
//! beginning, because sessions are state machines that the compiler has made, which cannot be copied.
//! Two histories lead to the same state if the server is in the same state, and if each session has
//! seen the same of it ([`Session::seen`]).

use std::fmt::{self, Debug, Formatter};
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use snowflake_id::protocol::ServerSettings;
use snowflake_id::{Identity, Layout};

use crate::choices::Choices;
use crate::protection::Protection;
use crate::server::{Config, READERS, Server};
use crate::session::Session;
use crate::work::{self, Habits};
use crate::world::{World, print};

/// What one session does, from the server's start on.
#[derive(Clone, Copy, Debug)]
pub enum Job {
    /// Transactions with one ID each.
    Draw {
        /// In this database.
        database: usize,
        /// How many.
        transactions: u32,
    },
    /// Questions up to where all is there.
    Read {
        /// In this database.
        database: usize,
        /// How many.
        questions: u32,
    },
}

/// An instance.
#[derive(Clone, Debug, Default)]
pub struct Instance {
    /// Its sessions.
    pub jobs: Vec<Job>,
    /// How often the server crashes.
    pub crashes: u32,
    /// How many ticks the wall clock is behind after a crash: with 0, it shows the time at which IDs
    /// were issued before.
    pub ticks_back: i64,
    /// How often a tick passes while a session could continue.
    pub ticks: u32,
    /// What was taken away.
    pub removed: Option<Protection>,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A session takes one step.
    Step(u8),
    /// A tick passes.
    Tick,
    /// The server crashes and starts again a second later, with another wall clock.
    Crash {
        /// Whether the log has lost what was not flushed.
        loses: bool,
    },
}

/// A state, with a history that leads to it.
#[derive(Clone)]
pub struct State {
    /// The history.
    pub history: Vec<Action>,
    /// What may happen next.
    pub next: Vec<Action>,
    /// What must not have been.
    pub violation: Option<String>,
    print: u64,
}

impl State {
    /// Whether all sessions have done their work.
    pub fn is_done(&self) -> bool {
        !self.next.iter().any(|it| matches!(it, Action::Step(_)))
    }
}

impl Debug for State {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}", self.print)
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.print == other.print
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.print.hash(state);
    }
}

/// One ID at a time.
const HABITS: Habits = Habits {
    most_ids: 1,
    rest: 1,
};

const LAYOUT: &str = "timestamp:41 node:10 sequence:12";
const TICK_MICROS: i64 = 1_000;
const RESTART_MICROS: i64 = 1_000_000;

type Future = Pin<Box<dyn std::future::Future<Output = ()>>>;

struct Task {
    future: Future,
    session: Rc<Session>,
    wakes_at: i64,
}

struct Run<'a> {
    instance: &'a Instance,
    world: Rc<World>,
    server: Rc<Server>,
    tasks: Vec<Option<Task>>,
    crashes: u32,
    ticks: u32,
}

impl Instance {
    /// The state at the beginning.
    pub fn beginning(&self) -> State {
        self.state_after(Vec::new())
    }

    /// The state after one more action.
    pub fn after(&self, state: &State, action: Action) -> State {
        let mut history = state.history.clone();
        history.push(action);
        self.state_after(history)
    }

    /// What happens in a history.
    pub fn story(&self, history: &[Action]) -> Vec<String> {
        let run = self.run(history, true);
        run.world.story()
    }

    fn state_after(&self, history: Vec<Action>) -> State {
        let run = self.run(&history, false);
        State {
            next: run.next(),
            violation: run.world.violation(),
            print: run.print(),
            history,
        }
    }

    fn run(&self, history: &[Action], told: bool) -> Run<'_> {
        let world = World::new(Choices::given(Vec::new()), self.removed, told);
        world.is_explored.set(true);
        world.set_step_micros(0);
        let layout: Layout = LAYOUT.parse().unwrap_or(Layout::DEFAULT);
        let config = Config {
            identity: Identity::new(layout, 1).unwrap_or_else(|_| unreachable!("a small number")),
            settings: ServerSettings {
                lease: 2_000_000,
                max_borrow: 10_000,
                max_clock_step: None,
            },
            max_wait_ms: 60_000,
            at_first_use: false,
        };
        let server = Server::new('a', config, &world);
        server.flush_micros.set(0);
        let mut run = Run {
            instance: self,
            world,
            server: Rc::new(server),
            tasks: Vec::new(),
            crashes: 0,
            ticks: 0,
        };
        run.start();
        for &action in history {
            run.act(action);
        }
        run
    }
}

impl Run<'_> {
    fn start(&mut self) {
        self.server.start(&self.world, false, 2);
        let memory = match &*self.server.memory.borrow() {
            Some(memory) => Rc::clone(memory),
            None => unreachable!("it was started"),
        };
        self.tasks = (0..)
            .zip(&self.instance.jobs)
            .map(|(place, &job)| {
                let (database, number) = match job {
                    Job::Draw { database, .. } => (database, place),
                    Job::Read { database, .. } => (database, READERS + database),
                };
                let session = Session::new(&self.world, &self.server, &memory, database, number);
                let session = Rc::new(session);
                Some(Task {
                    future: begin(job, Rc::clone(&session)),
                    session,
                    wakes_at: 0,
                })
            })
            .collect();
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Step(number) => self.step(usize::from(number)),
            Action::Tick => {
                self.ticks += 1;
                self.world.tell(|| "a tick passes".to_owned());
                self.world.pass(TICK_MICROS);
            }
            Action::Crash { loses } => {
                self.crashes += 1;
                self.tasks.clear();
                let log = self.server.log.borrow();
                let kept = if loses { log.flushed } else { log.len() };
                drop(log);
                self.world
                    .tell(|| format!("the server crashes, and {kept} records stay"));
                self.server.end(kept);
                self.world.pass(RESTART_MICROS);
                let mut machine = self.server.machine.get();
                machine.ahead -= RESTART_MICROS + self.instance.ticks_back * TICK_MICROS;
                self.server.set_machine(machine);
                self.start();
            }
        }
        // If all wait, time passes.
        let now = self.world.now();
        let waiting = self.tasks.iter().flatten();
        if let Some(soonest) = waiting.map(|task| task.wakes_at).min()
            && soonest > now
        {
            self.world.pass(soonest - now);
        }
    }

    fn step(&mut self, number: usize) {
        let Some(task) = &mut self.tasks[number] else {
            return;
        };
        self.world.begin_turn(0);
        let mut context = Context::from_waker(Waker::noop());
        let polled = task.future.as_mut().poll(&mut context);
        task.wakes_at = self.world.end_turn();
        if polled == Poll::Ready(()) {
            self.tasks[number] = None;
        }
    }

    fn next(&self) -> Vec<Action> {
        if self.world.violation().is_some() {
            return Vec::new();
        }
        let now = self.world.now();
        let ready = |task: &Option<Task>| task.as_ref().is_some_and(|task| task.wakes_at <= now);
        let mut next: Vec<Action> = (0..)
            .zip(&self.tasks)
            .filter(|(_, task)| ready(task))
            .map(|(number, _)| Action::Step(number))
            .collect();
        if self.tasks.iter().any(Option::is_some) && self.ticks < self.instance.ticks {
            next.push(Action::Tick);
        }
        if self.crashes < self.instance.crashes {
            next.extend([false, true].map(|loses| Action::Crash { loses }));
        }
        next
    }

    /// Where two prints are the same, the same follows.
    fn print(&self) -> u64 {
        let log = self.server.log.borrow();
        let flushed = log.changes_before(snowflake_id::protocol::LogPosition(log.flushed as u64));
        let pages = self.server.pages.borrow();
        let marks = pages
            .marks
            .map(|(page, position)| (page, log.changes_before(position)));
        let lineage = self.server.lineage.borrow();
        let tasks: Vec<_> = self
            .tasks
            .iter()
            .map(|task| task.as_ref().map(|it| (it.wakes_at, it.session.seen())))
            .collect();
        print(&(
            (self.world.now(), self.crashes, self.ticks, tasks),
            (self.server.machine.get(), &*self.server.memory.borrow()),
            (marks, &pages.floor, flushed, log.changes()),
            (&lineage.of_server, &lineage.of_database, &lineage.answered),
            self.world.violation(),
        ))
    }
}

fn begin(job: Job, session: Rc<Session>) -> Future {
    match job {
        Job::Draw { transactions, .. } => Box::pin(async move {
            let mut last = i64::MIN;
            for _ in 0..transactions {
                work::transaction(&session, HABITS, &mut last).await;
            }
        }),
        Job::Read { questions, .. } => Box::pin(async move {
            for _ in 0..questions {
                work::read(&session).await;
            }
        }),
    }
}

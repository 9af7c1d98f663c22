//! The servers of a history, and the sessions on them: turns, starts, ends, copies.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use snowflake_id::protocol::{LogPosition, ServerSettings};
use snowflake_id::{Identity, Layout};

use crate::checks;
use crate::lineage::Ranges;
use crate::protection::Protection;
use crate::server::{ADMIN, Config, DATABASES, DRAWING, HEARTBEAT, READERS, Record, Server};
use crate::session::Session;
use crate::work::{self, Habits};
use crate::world::World;

/// The layouts of histories. Their ticks are at the same place of an ID, so a server may change from
/// one to another.
pub const LAYOUTS: [&str; 6] = [
    "timestamp:41 node:4 backend:2 sequence:16",
    "timestamp:41 node:6 backend:4 sequence:12",
    "timestamp:41 node:10 backend:4 sequence:8",
    "timestamp:41 node:18 backend:2 sequence:2",
    "timestamp:41 node:10 sequence:12",
    "timestamp:41 node:4 sequence:16 backend:2",
];

type Future = Pin<Box<dyn std::future::Future<Output = ()>>>;

struct Task {
    future: Future,
    server: usize,
    database: usize,
    /// Its place among the server's sessions.
    number: usize,
    wakes_at: i64,
}

/// The servers of a history that is going on.
pub(crate) struct Fleet {
    pub(crate) world: Rc<World>,
    pub(crate) servers: Vec<Rc<Server>>,
    tasks: Vec<Task>,
    habits: Habits,
    copies: u8,
    turns: u32,
}

impl Fleet {
    pub(crate) fn new(world: &Rc<World>) -> Self {
        let choices = &world.choices;
        world.set_step_micros(choices.of(&[1, 10, 100, 1_000]));
        let layout: Layout = choices.of(&LAYOUTS).parse().unwrap_or(Layout::DEFAULT);
        let mut fleet = Fleet {
            world: Rc::clone(world),
            servers: Vec::new(),
            tasks: Vec::new(),
            habits: Habits {
                most_ids: choices.of(&[1, 64, 4_096, 4_096]),
                rest: choices.of(&[2_000, 50_000, 1_000_000]),
            },
            copies: 0,
            turns: 0,
        };
        for number in 0..=choices.below(2) {
            let config = Config {
                identity: Identity::new(layout, number + 1)
                    .unwrap_or_else(|_| unreachable!("a small number")),
                settings: fleet.settings(),
                max_wait_ms: i64::from(choices.of(&[1_000, 0, 10_000])),
                at_first_use: choices.below(2) == 0,
            };
            let name = fleet.next_name();
            let server = Server::new(name, config, world);
            fleet.servers.push(Rc::new(server));
            fleet.start(number as usize, false);
        }
        fleet
    }

    fn next_name(&mut self) -> char {
        self.copies += 1;
        char::from(b'a' + (self.copies - 1) % 26)
    }

    pub(crate) fn settings(&self) -> ServerSettings {
        let choices = &self.world.choices;
        ServerSettings {
            lease: choices.of(&[2_000_000, 100_000, 10_000_000]),
            max_borrow: choices.of(&[10_000, 0, 1_000_000]),
            max_clock_step: choices.of(&[Some(10_000_000), Some(1_000_000), None]),
        }
    }

    /// One session has its turn; standbys receive something.
    pub(crate) fn turn(&mut self, most_steps: u32) {
        for number in 0..self.servers.len() {
            if let Some(primary) = self.servers[number].follows.get()
                && primary < self.servers.len()
            {
                let most = self.world.choices.below(4);
                self.catch_up(number, most);
            }
        }
        self.turn_among(most_steps, |_| true);
    }

    pub(crate) fn turn_of(&mut self, server: usize, most_steps: u32) {
        self.turn_among(most_steps, |task| task.server == server);
    }

    fn turn_among(&mut self, most_steps: u32, may: impl Fn(&Task) -> bool) {
        let world = Rc::clone(&self.world);
        self.turns += 1;
        if !checks::ends(&world, self.turns) {
            self.tasks.clear();
            return;
        }
        let ready_at = |task: &Task| {
            task.wakes_at
                .max(self.servers[task.server].stopped_until.get())
        };
        let now = world.now();
        let mut ready = Vec::with_capacity(self.tasks.len());
        let mut soonest = i64::MAX;
        for (index, task) in self.tasks.iter().enumerate().filter(|(_, task)| may(task)) {
            let at = ready_at(task);
            soonest = soonest.min(at);
            if at <= now {
                ready.push(index);
            }
        }
        if ready.is_empty() {
            world.pass(if soonest == i64::MAX {
                1_000
            } else {
                soonest - now
            });
            return;
        }
        let index = ready[world.choices.below(ready.len() as u32) as usize];
        world.begin_turn(world.choices.below(most_steps));
        let task = &mut self.tasks[index];
        let (server, finished) = (task.server, {
            let poll = task
                .future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            matches!(poll, Poll::Ready(()))
        });
        task.wakes_at = world.end_turn();
        if finished {
            let task = self.tasks.swap_remove(index);
            let is_alone = |other: &Task| (other.server, other.database) != (server, task.database);
            let is_primary = self.servers[server].follows.get().is_none();
            if task.number == ADMIN
                && is_primary
                && self.tasks.iter().all(is_alone)
                && !world.is_ending.get()
            {
                // A dump was restored.
                self.connect(server, task.database);
            }
        }
        if self.servers[server].has_panicked.get() {
            world.tell(|| format!("{}: PANIC, the disk is full", self.servers[server].name));
            self.servers[server].disk_is_full.set(false);
            let kept = self.servers[server].log.borrow().flushed;
            self.crash(server, kept);
        }
    }

    /// The server ends, and so many records stay; then it starts again.
    pub(crate) fn crash(&mut self, number: usize, kept: usize) {
        let is_standby = self.servers[number].follows.get().is_some();
        if self.servers[number].memory.borrow().is_none() {
            return;
        }
        self.end(number, kept);
        self.start(number, is_standby);
    }

    /// The server ends, and so many records stay.
    pub(crate) fn end(&mut self, number: usize, kept: usize) {
        self.disconnect_all(number);
        let server = &self.servers[number];
        let all = server.log.borrow().len();
        if kept < all {
            // A standby that has more than that follows no server any more.
            for other in &self.servers {
                if other.follows.get() == Some(number) && other.log.borrow().len() > kept {
                    other.follows.set(Some(usize::MAX));
                }
            }
        }
        if self.world.lacks(Protection::Flush) {
            let flushed = server.log.borrow().flushed.min(kept);
            server.end(flushed);
        } else {
            server.end(kept);
        }
    }

    /// Starts a server, after recovery or as a standby.
    pub(crate) fn start(&mut self, number: usize, in_recovery: bool) {
        let server = Rc::clone(&self.servers[number]);
        // Few entries, so that databases take turns.
        let entries = self.world.choices.of(&[2, 1]);
        server.start(&self.world, in_recovery, entries);
        {
            let lease = server.config.get().settings.lease_micros();
            let mut lineage = server.lineage.borrow_mut();
            // A mark is further ahead than a lease if the disk was slow.
            let slow = 10_000_000;
            lineage.lead = lineage.lead.max(server.trusted.get()) + 2 * lease + slow;
        }
        if !in_recovery {
            self.connect_all(number);
        }
    }

    /// Clients connect to all databases.
    pub(crate) fn connect_all(&mut self, number: usize) {
        for database in work::databases() {
            self.connect(number, database);
        }
    }

    /// Clients connect.
    pub(crate) fn connect(&mut self, number: usize, database: usize) {
        let (habits, rest) = (self.habits, self.habits.rest);
        for session in (0..DRAWING).filter(|session| session % DATABASES == database) {
            self.spawn(number, database, session, |session| {
                Box::pin(work::transactions(session, habits))
            });
        }
        self.spawn(number, database, READERS + database, |session| {
            Box::pin(work::reader(session, rest))
        });
        if database == 0 {
            self.spawn(number, database, HEARTBEAT, |session| {
                Box::pin(work::heartbeats(session, rest * 4))
            });
        }
    }

    fn spawn(
        &mut self,
        server: usize,
        database: usize,
        number: usize,
        work: impl FnOnce(Session) -> Future,
    ) {
        let memory = match &*self.servers[server].memory.borrow() {
            Some(memory) => Rc::clone(memory),
            None => return,
        };
        let session = Session::new(
            &self.world,
            &self.servers[server],
            &memory,
            database,
            number,
        );
        self.tasks.push(Task {
            future: work(session),
            server,
            database,
            number,
            wakes_at: 0,
        });
    }

    /// An administrator does something in one of the databases, one at a time.
    pub(crate) fn spawn_admin(
        &mut self,
        server: usize,
        work: impl FnOnce(Session) -> Future,
    ) -> bool {
        let database = self.world.choices.below(DATABASES as u32) as usize;
        self.spawn_admin_of(server, database, work)
    }

    pub(crate) fn spawn_admin_of(
        &mut self,
        server: usize,
        database: usize,
        work: impl FnOnce(Session) -> Future,
    ) -> bool {
        if self.has_admin(server) || self.servers[server].memory.borrow().is_none() {
            return false;
        }
        self.spawn(server, database, ADMIN, work);
        true
    }

    /// Whether an administrator does something.
    pub(crate) fn has_admin(&self, server: usize) -> bool {
        let mut tasks = self.tasks.iter();
        tasks.any(|task| task.server == server && task.number == ADMIN)
    }

    /// The rows and the mark of a dump are restored into a database.
    pub(crate) fn restored(
        &mut self,
        server: usize,
        database: usize,
        rows: Ranges,
        bound: i64,
    ) -> bool {
        self.spawn_admin_of(server, database, |session| {
            Box::pin(work::restore(session, rows, bound))
        })
    }

    /// Whether no session of a database is busy.
    pub(crate) fn is_idle(&self, server: usize, database: usize) -> bool {
        self.tasks
            .iter()
            .filter(|task| task.server == server && task.database == database)
            .all(|task| self.is_between(task))
    }

    fn is_between(&self, task: &Task) -> bool {
        let memory = self.servers[task.server].memory.borrow();
        task.number != ADMIN
            && memory
                .as_ref()
                .is_some_and(|memory| memory.idle[task.number].get())
    }

    /// The sessions of a database disconnect.
    pub(crate) fn disconnect(&mut self, server: usize, database: usize) {
        self.tasks
            .retain(|task| task.server != server || task.database != database);
    }

    /// Those that are not busy disconnect.
    pub(crate) fn leave(&mut self, server: usize, database: usize) {
        let tasks = std::mem::take(&mut self.tasks);
        let (_, others): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|task| {
            task.server == server && task.database == database && self.is_between(task)
        });
        self.tasks = others;
    }

    /// Whether a session of a server is connected.
    pub(crate) fn has_sessions(&self, server: usize) -> bool {
        self.tasks.iter().any(|task| task.server == server)
    }

    /// All sessions of a server disconnect.
    pub(crate) fn disconnect_all(&mut self, server: usize) {
        self.tasks.retain(|task| task.server != server);
    }

    /// A base backup of a server: a standby, or a server of its own that is not started yet.
    pub(crate) fn copy(&mut self, number: usize, as_standby: bool) -> usize {
        let source = Rc::clone(&self.servers[number]);
        source.flush_all();
        let name = self.next_name();
        let copy = Server::new(name, source.config.get(), &self.world);
        self.copy_log(&source, &copy);
        *copy.lineage.borrow_mut() = copy.lineage_of_log();
        copy.follows.set(as_standby.then_some(number));
        if let Some(memory) = &*source.memory.borrow() {
            copy.copied_start_number
                .set(Some(memory.shared().start_number));
        }
        self.servers.push(Rc::new(copy));
        let copy = self.servers.len() - 1;
        if as_standby {
            self.start(copy, true);
        }
        copy
    }

    /// A standby receives at most so many records, of those that are durable at its primary.
    pub(crate) fn catch_up(&mut self, number: usize, most: u32) {
        let server = &self.servers[number];
        let Some(primary) = server
            .follows
            .get()
            .and_then(|primary| self.servers.get(primary))
        else {
            return;
        };
        let source = primary.log.borrow();
        let mut log = server.log.borrow_mut();
        let mut pages = server.pages.borrow_mut();
        let have = log.len();
        let until = source.flushed.min(have.saturating_add(most as usize));
        for record in source.records().get(have..until).unwrap_or(&[]) {
            log.push(record.clone());
            if !(matches!(record, Record::Floor(_)) && self.world.lacks(Protection::FloorLogged)) {
                pages.apply(record, LogPosition(log.len() as u64));
            }
        }
        log.flushed = log.len();
    }
}

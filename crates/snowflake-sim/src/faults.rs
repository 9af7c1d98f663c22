//! What happens to servers.

use std::rc::Rc;

use snowflake_id::protocol::{Clocks, MarkPage, accept_clock};
use snowflake_id::{Identity, Layout, Now};

use crate::checks;
use crate::fault::Fault;
use crate::fleet::{Fleet, LAYOUTS};
use crate::protection::Protection;
use crate::server::{Config, DATABASES, Log, Record, Server};
use crate::transactions::Prepared;

const SECOND: i64 = 1_000_000;

impl Fleet {
    /// Something happens to a server. Nothing, if it cannot happen to it now.
    pub fn strike(&mut self, number: usize, fault: Fault) {
        let done = match fault {
            Fault::KillBackend | Fault::PowerLoss | Fault::Restart | Fault::PointInTime => {
                self.ends(number, fault)
            }
            Fault::SetBackLittle
            | Fault::SetBackFar
            | Fault::SetAheadLittle
            | Fault::SetAheadFar
            | Fault::FreezeClock
            | Fault::CorrectClock
            | Fault::Suspend
            | Fault::AcceptClock => self.clocks(number, fault),
            Fault::NewStandby
            | Fault::PromoteAsynchronous
            | Fault::PromoteSynchronous
            | Fault::Rewind
            | Fault::BaseBackup => self.copies(number, fault),
            Fault::OtherLayout | Fault::OtherNode | Fault::OtherSettings => {
                self.configuration(number, fault)
            }
            Fault::SetvalNear
            | Fault::SetvalFar
            | Fault::SetvalBack
            | Fault::StartAfter
            | Fault::LockMark => self.marks(number, fault),
            Fault::RestoreDump | Fault::MoveByDump | Fault::DropDatabase => {
                self.dumps(number, fault)
            }
            Fault::FloorFails | Fault::FullDisk | Fault::SlowDisk | Fault::SlowProcessor => {
                self.disks(number, fault)
            }
            Fault::Cancel | Fault::LookAtFloor => self.calls(number, fault),
        };
        if done {
            self.world.count(fault);
            let name = self.servers[number].name;
            self.world.tell(|| format!("** {name}: {fault:?}"));
        }
    }

    /// A server ends, and starts again.
    fn ends(&mut self, number: usize, fault: Fault) -> bool {
        let world = Rc::clone(&self.world);
        let server = Rc::clone(&self.servers[number]);
        let choices = &world.choices;
        let is_standby = server.follows.get().is_some();
        let is_running = server.memory.borrow().is_some();
        match fault {
            Fault::KillBackend | Fault::PowerLoss => {
                let (flushed, all) = {
                    let log = server.log.borrow();
                    (log.flushed, log.len())
                };
                // The operating system may have written more than was flushed.
                let kept = match fault {
                    Fault::PowerLoss => flushed,
                    _ => flushed + choices.below((all - flushed) as u32 + 1) as usize,
                };
                if fault == Fault::PowerLoss {
                    let mut machine = server.machine.get();
                    machine.booted = world.now();
                    server.set_machine(machine);
                }
                self.crash(number, kept);
                true
            }
            Fault::Restart => {
                server.flush_all();
                let all = server.log.borrow().len();
                self.crash(number, all);
                true
            }
            Fault::PointInTime => {
                if is_standby || !is_running {
                    return false;
                }
                // Back to an earlier position: what came later is lost, and may come again.
                let all = server.log.borrow().len();
                let kept = all - choices.below((all / 4) as u32 + 1) as usize;
                self.end(number, kept.max(DATABASES));
                let lineage = server.lineage_of_log();
                *server.lineage.borrow_mut() = lineage;
                self.start(number, false);
                true
            }
            _ => false,
        }
    }

    /// Its clocks.
    fn clocks(&mut self, number: usize, fault: Fault) -> bool {
        let world = Rc::clone(&self.world);
        let server = Rc::clone(&self.servers[number]);
        let choices = &world.choices;
        let is_standby = server.follows.get().is_some();
        match fault {
            Fault::SetBackLittle => self.set_clock(
                number,
                -SECOND / 1_000 * i64::from(choices.below(9_000) + 1),
            ),
            Fault::SetBackFar => {
                self.set_clock(number, -SECOND * i64::from(choices.below(100_000) + 1))
            }
            Fault::SetAheadLittle => {
                self.set_clock(number, SECOND / 1_000 * i64::from(choices.below(9_000) + 1))
            }
            Fault::SetAheadFar => {
                self.set_clock(number, SECOND * i64::from(choices.below(100_000) + 1))
            }
            Fault::FreezeClock => {
                let mut machine = server.machine.get();
                machine.frozen = Some(world.now() + machine.ahead);
                server.set_machine(machine);
                true
            }
            Fault::CorrectClock => {
                let ahead = server.machine.get().ahead;
                self.set_clock(number, -ahead)
            }
            Fault::Suspend => {
                let length = SECOND * i64::from(choices.below(30) + 1);
                server.stopped_until.set(world.now() + length);
                true
            }
            Fault::AcceptClock => {
                let memory = server.memory.borrow();
                let Some(memory) = memory.as_ref().filter(|_| !is_standby) else {
                    return false;
                };
                server.use_memory(&world, memory);
                let (wall, boot) = (server.wall(&world), server.boot(&world));
                let (clock, settings) = (memory.slewed_clock(), server.config.get().settings);
                if accept_clock(clock, settings, Clocks { wall, boot }, wall).is_err() {
                    return false;
                }
                let now = clock.now(wall, boot, settings.limits(&server.layout()));
                let is_used = matches!(now, Now::Wall(_) | Now::Slewed(_));
                checks::accepted(&world, &server, is_used);
                server
                    .trusted
                    .set(server.trusted.get().max(wall.unix_micros() - world.now()));
                let mut lineage = server.lineage.borrow_mut();
                lineage.lead = lineage.lead.max(wall.unix_micros() - world.now());
                true
            }
            _ => false,
        }
    }

    /// Standbys and backups.
    fn copies(&mut self, number: usize, fault: Fault) -> bool {
        let world = Rc::clone(&self.world);
        let server = Rc::clone(&self.servers[number]);
        let choices = &world.choices;
        let is_standby = server.follows.get().is_some();
        let is_running = server.memory.borrow().is_some();
        match fault {
            Fault::NewStandby => {
                let free = self.servers.len() < 4;
                if free && !is_standby && is_running {
                    let copy = self.copy(number, true);
                    // It may be monitored.
                    if choices.one_in(2) {
                        self.strike(copy, Fault::LookAtFloor);
                    }
                }
                free && !is_standby && is_running
            }
            Fault::PromoteAsynchronous | Fault::PromoteSynchronous => match server.follows.get() {
                Some(primary) => {
                    self.promote(number, primary, fault == Fault::PromoteSynchronous);
                    true
                }
                None => false,
            },
            Fault::Rewind => self.rewind(number),
            Fault::BaseBackup => {
                // A copy that has a number of its own.
                let may = self.servers.len() < 4 && is_running;
                if may {
                    let copy = self.copy(number, false);
                    self.give_number(copy);
                    self.start(copy, false);
                }
                may
            }
            _ => false,
        }
    }

    /// Its configuration.
    fn configuration(&mut self, number: usize, fault: Fault) -> bool {
        let server = Rc::clone(&self.servers[number]);
        let is_standby = server.follows.get().is_some();
        match fault {
            Fault::OtherLayout | Fault::OtherNode => {
                if is_standby {
                    return false;
                }
                server.flush_all();
                let all = server.log.borrow().len();
                self.end(number, all);
                let mut config = server.config.get();
                config.identity = self.other_identity(number, config, fault);
                server.config.set(config);
                self.start(number, false);
                true
            }
            Fault::OtherSettings => {
                let mut config = server.config.get();
                config.settings = self.settings();
                server.config.set(config);
                if let Some(memory) = &*server.memory.borrow() {
                    memory.settings_number.set(memory.settings_number.get() + 1);
                }
                let lease = config.settings.lease_micros();
                let mut lineage = server.lineage.borrow_mut();
                // A session may have read a clock that the new settings accept.
                lineage.lead = lineage.lead.max(server.most_ahead.get()) + 10 * SECOND + lease;
                true
            }
            _ => false,
        }
    }

    /// What people do to marks.
    fn marks(&mut self, number: usize, fault: Fault) -> bool {
        let world = Rc::clone(&self.world);
        let server = Rc::clone(&self.servers[number]);
        let choices = &world.choices;
        let is_standby = server.follows.get().is_some();
        let is_running = server.memory.borrow().is_some();
        match fault {
            Fault::SetvalNear | Fault::SetvalFar | Fault::SetvalBack => {
                if is_standby || !is_running {
                    return false;
                }
                let database = choices.below(DATABASES as u32) as usize;
                let lease = server.config.get().settings.lease_micros();
                let wall = server.wall(&world);
                let ahead = match fault {
                    Fault::SetvalNear => i64::from(choices.below(lease as u32)),
                    Fault::SetvalFar => SECOND * i64::from(choices.below(1_000_000) + 60),
                    _ => -SECOND * i64::from(choices.below(1_000_000) + 1),
                };
                let layout = server.layout();
                let Ok(tick) = layout.tick_at(wall.plus_micros(ahead).into()) else {
                    return false;
                };
                let page = MarkPage {
                    bound_id: layout.first_id_of(tick),
                    start_number: 0,
                };
                // A restored mark that no process has read yet is the only one that knows of the
                // restored rows.
                let (before, _) = server.pages.borrow().marks[database];
                if before.is_set() && page.bound_id < before.bound_id {
                    return false;
                }
                {
                    let mut lineage = server.lineage.borrow_mut();
                    // Believed up to a lease ahead of the clock, or up to what was reached.
                    let believed = wall.unix_micros() - world.now() + 2 * lease;
                    lineage.lead = lineage.lead.max(believed) + lease;
                    // A superuser who starts the IDs anew accepts it, however far ahead.
                    if self.has_admin(number) {
                        let time = layout.time_of(tick).unix_micros();
                        lineage.lead = lineage.lead.max(time - world.now() + 2 * lease);
                    }
                }
                if let Some(memory) = &*server.memory.borrow()
                    && memory.page_is_locked[database].get()
                {
                    return false;
                }
                self.set_mark(number, database, page);
                if world.lacks(Protection::SetLimit) {
                    // Believed as the server's own.
                    self.set_mark(
                        number,
                        database,
                        MarkPage {
                            start_number: -7,
                            ..page
                        },
                    );
                }
                true
            }
            Fault::StartAfter => {
                if is_standby {
                    return false;
                }
                let ahead = i64::from(choices.below(20_000_000)) - SECOND;
                let time = server.wall(&world).plus_micros(ahead);
                self.spawn_admin(number, |session| {
                    Box::pin(crate::work::start_at(session, time))
                })
            }
            Fault::LockMark => {
                let length = i64::from(choices.below(3_000_000));
                server.marks_are_locked_until.set(world.now() + length);
                true
            }
            _ => false,
        }
    }

    /// Dumps, and dropped databases.
    fn dumps(&mut self, number: usize, fault: Fault) -> bool {
        let world = Rc::clone(&self.world);
        let choices = &world.choices;
        match fault {
            Fault::RestoreDump => {
                let from = choices.below(self.servers.len() as u32) as usize;
                self.restore_dump(number, from)
            }
            Fault::MoveByDump => self.move_by_dump(number),
            Fault::DropDatabase => self.drop_database(number).is_some(),
            _ => false,
        }
    }

    /// Its disk, and the processor of all.
    fn disks(&mut self, number: usize, fault: Fault) -> bool {
        let world = Rc::clone(&self.world);
        let server = Rc::clone(&self.servers[number]);
        let choices = &world.choices;
        match fault {
            Fault::FloorFails => {
                server.floor_fails.set(!server.floor_fails.get());
                true
            }
            Fault::FullDisk => {
                server.disk_is_full.set(!server.disk_is_full.get());
                true
            }
            Fault::SlowDisk => {
                server.flush_micros.set(i64::from(choices.below(200_000)));
                true
            }
            // A call may take longer than what it reserves.
            Fault::SlowProcessor => {
                world.set_step_micros(choices.of(&[1, 1_000, 3_000]));
                true
            }
            _ => false,
        }
    }

    /// Its calls.
    fn calls(&mut self, number: usize, fault: Fault) -> bool {
        let world = Rc::clone(&self.world);
        let server = Rc::clone(&self.servers[number]);
        match fault {
            Fault::Cancel => {
                server.cancelled_at.set(world.now());
                true
            }
            Fault::LookAtFloor => self.spawn_admin(number, |session| {
                Box::pin(crate::work::look_at_floor(session))
            }),
            _ => false,
        }
    }

    fn set_clock(&self, number: usize, step: i64) -> bool {
        let server = &self.servers[number];
        let mut machine = server.machine.get();
        if let Some(frozen) = machine.frozen.take() {
            machine.ahead = frozen - self.world.now();
        }
        machine.ahead += step;
        let mut lineage = server.lineage.borrow_mut();
        server.follow_clock(&self.world, &mut lineage);
        server.set_machine(machine);
        server.follow_clock(&self.world, &mut lineage);
        true
    }

    /// The bound of a mark is set by hand, which needs no flush.
    fn set_mark(&self, number: usize, database: usize, page: MarkPage) {
        let server = &self.servers[number];
        self.world.tell(|| {
            format!(
                "{}: mark {database} is set to {}",
                server.name, page.bound_id
            )
        });
        let end = server.write(Record::Mark(database, page));
        let (before, _) =
            std::mem::replace(&mut server.pages.borrow_mut().marks[database], (page, end));
        // Who sets a mark back takes its promise from readers: with another node number the floor
        // does not apply. IDs are distinct all the same.
        if page.bound_id < before.bound_id {
            server.is_set_back[database].set(true);
            let mut lineage = server.lineage.borrow_mut();
            lineage.answered[database] = 0;
            lineage.least[database] = 0;
        }
    }

    /// The database is dropped and created again, if none of its sessions is busy.
    fn drop_database(&mut self, number: usize) -> Option<usize> {
        let server = Rc::clone(&self.servers[number]);
        if server.follows.get().is_some() {
            return None;
        }
        let database = self.world.choices.below(DATABASES as u32) as usize;
        let memory = Rc::clone(server.memory.borrow().as_ref()?);
        let is_prepared = |it: &Prepared| it.rows.database == database;
        if !self.is_idle(number, database) || server.prepared.borrow().iter().any(is_prepared) {
            return None;
        }
        self.disconnect(number, database);
        memory.drops.set(memory.drops.get() + 1);
        let incarnation = &server.incarnations[database];
        incarnation.set(incarnation.get() + 1);
        let end = server.write(Record::Mark(database, MarkPage::NEW));
        server.flush_all();
        server.pages.borrow_mut().marks[database] = (MarkPage::NEW, end);
        {
            let mut lineage = server.lineage.borrow_mut();
            lineage.of_database[database] = crate::lineage::Ranges::default();
            lineage.answered[database] = 0;
            lineage.least[database] = 0;
        }
        self.connect(number, database);
        Some(database)
    }

    /// The dump of a database is restored into a new one of another server, or of the same, or into
    /// one that has issued IDs already.
    fn restore_dump(&mut self, number: usize, from: usize) -> bool {
        let choices = &self.world.choices;
        let from_database = choices.below(DATABASES as u32) as usize;
        let is_new = choices.below(3) == 0;
        let server = Rc::clone(&self.servers[number]);
        let source = Rc::clone(&self.servers[from]);
        if server.follows.get().is_some() || source.layout() != server.layout() {
            return false;
        }
        // Who sets a mark back takes its promise from dumps, too.
        if source.is_set_back[from_database].get() {
            return false;
        }
        // Read later than the rows.
        let bound = source.pages.borrow().marks[from_database].0.bound_id;
        let rows = source.lineage.borrow().of_database[from_database].clone();
        let database = if is_new {
            match self.drop_database(number) {
                Some(database) => database,
                None => return false,
            }
        } else {
            choices.below(DATABASES as u32) as usize
        };
        if is_new {
            // Clients connect when all is there.
            self.disconnect(number, database);
        }
        self.restored(number, database, rows, bound.get())
    }

    /// A server takes the place of another one: its node number, and its databases by dumps.
    fn move_by_dump(&mut self, number: usize) -> bool {
        let server = Rc::clone(&self.servers[number]);
        let from = self.world.choices.below(self.servers.len() as u32) as usize;
        let source = Rc::clone(&self.servers[from]);
        let is_primary =
            |server: &Server| server.follows.get().is_none() && server.memory.borrow().is_some();
        if from == number || !is_primary(&server) || !is_primary(&source) {
            return false;
        }
        source.flush_all();
        let all = source.log.borrow().len();
        self.end(from, all);
        server.flush_all();
        let all = server.log.borrow().len();
        self.end(number, all);
        let mut config = server.config.get();
        config.identity = source.config.get().identity;
        server.config.set(config);
        self.start(number, false);
        // Its databases may be in use by then.
        for _ in 0..self.world.choices.below(40) {
            self.turn(100);
        }
        self.restore_dump(number, from)
    }

    /// A standby becomes a primary. Its own may be gone already.
    fn promote(&mut self, number: usize, primary: usize, is_synchronous: bool) {
        let server = Rc::clone(&self.servers[number]);
        if let Some(old) = self.servers.get(primary).map(Rc::clone) {
            if is_synchronous {
                old.flush_all();
                self.catch_up(number, u32::MAX);
            }
            let kept = old.log.borrow().flushed;
            self.end(primary, kept);
        }
        let lineage = server.lineage_of_log();
        *server.lineage.borrow_mut() = lineage;
        server.follows.set(None);
        for other in &self.servers {
            if other.follows.get() == Some(primary) {
                // It follows no server any more, and is never promoted.
                other.follows.set(Some(usize::MAX));
            }
        }
        if let Some(memory) = &*server.memory.borrow() {
            memory.in_recovery.set(false);
        }
        self.connect_all(number);
    }

    /// A server that has ended follows another one, from where their logs differ.
    fn rewind(&mut self, number: usize) -> bool {
        let server = Rc::clone(&self.servers[number]);
        let Some(primary) = (0..self.servers.len()).find(|&other| {
            other != number
                && self.servers[other].follows.get().is_none()
                && self.servers[other].memory.borrow().is_some()
        }) else {
            return false;
        };
        if server.memory.borrow().is_some() {
            return false;
        }
        let source = Rc::clone(&self.servers[primary]);
        self.copy_log(&source, &server);
        server.config.set(source.config.get());
        server.follows.set(Some(primary));
        self.start(number, true);
        true
    }

    fn other_identity(&self, number: usize, config: Config, fault: Fault) -> Identity {
        let choices = &self.world.choices;
        let present = config.identity;
        let others = |node: u32| {
            self.servers.iter().enumerate().any(|(other, server)| {
                other != number && server.config.get().identity.node() == node
            })
        };
        if fault == Fault::OtherLayout {
            let layout: Layout = choices.of(&LAYOUTS).parse().unwrap_or(Layout::DEFAULT);
            return Identity::new(layout, present.node()).unwrap_or(present);
        }
        let node = choices.below(present.layout().max_node() + 1);
        // Two servers of one number are not simulated.
        if others(node) {
            return present;
        }
        Identity::new(*present.layout(), node).unwrap_or(present)
    }

    /// A copy gets a number that no other server has.
    fn give_number(&self, number: usize) {
        let server = &self.servers[number];
        let mut config = server.config.get();
        let used: Vec<u32> = self
            .servers
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != number)
            .map(|(_, server)| server.config.get().identity.node())
            .collect();
        if let Some(identity) = (0..=config.identity.layout().max_node())
            .filter(|node| !used.contains(node))
            .find_map(|node| Identity::new(*config.identity.layout(), node).ok())
        {
            config.identity = identity;
            server.config.set(config);
        }
    }

    /// The log of one server becomes that of another.
    pub fn copy_log(&self, source: &Server, copy: &Server) {
        let mut log = source.log.borrow().clone();
        let durable = log.flushed;
        log.truncate(durable);
        if self.world.lacks(Protection::FloorLogged) {
            let mut others = Log::default();
            for record in log.records() {
                others.push(match record {
                    Record::Floor(_) => Record::Floor(snowflake_id::Bounds::default()),
                    other => other.clone(),
                });
            }
            others.truncate(durable);
            log = others;
        }
        *copy.log.borrow_mut() = log;
        // Those that are prepared are rolled back there.
        copy.prepared.borrow_mut().clear();
    }
}

//! A data directory, and what runs on it.
//!
//! The log is the only thing that outlives a server: pages are what its records say, as PostgreSQL's
//! recovery makes them. A crash keeps what was flushed, and as much of the rest as the operating system
//! had written.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use snowflake_id::protocol::{FloorCache, LogPosition, MarkPage, ServerSettings, SharedMemory};
use snowflake_id::resolved::{OpenTransaction, Promise};
use snowflake_id::{
    BootTime, Bounds, ClockOffset, Identity, Layout, SlewedClock, Slot, Tick, WallTime,
};

use crate::lineage::Lineage;
use crate::protection::Protection;
use crate::world::World;

/// How many databases a server has.
pub const DATABASES: usize = 2;

/// How many sessions may draw, or read, on a server at a time.
pub const SESSIONS: usize = 8;

/// A record of the log.
#[derive(Clone, Debug)]
pub enum Record {
    /// The page of a database's mark; `None` for a database that is dropped.
    Mark(usize, Option<MarkPage>),
    /// The floor's page.
    Floor(Bounds),
    /// Rows with IDs from the first to the last number.
    Rows(usize, i64, i64),
}

/// What the pages say.
#[derive(Clone, Debug)]
pub struct Pages {
    /// The mark of each database, and where its last record ends.
    pub marks: [Option<(MarkPage, LogPosition)>; DATABASES],
    /// The floor.
    pub floor: Bounds,
}

/// The write-ahead log.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// All of it.
    pub records: Vec<Record>,
    /// How many records are durable.
    pub flushed: usize,
}

impl Log {
    /// What the pages are after so many records.
    fn replay(&self, records: usize) -> Pages {
        let mut pages = Pages {
            marks: Default::default(),
            floor: Bounds::default(),
        };
        for (number, record) in self.records[..records].iter().enumerate() {
            match record {
                Record::Mark(database, page) => {
                    pages.marks[*database] =
                        page.map(|page| (page, LogPosition(number as u64 + 1)));
                }
                Record::Floor(bounds) => pages.floor = bounds.clone(),
                Record::Rows(..) => {}
            }
        }
        pages
    }
}

/// The configuration of a server.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The layout and the node number; they change with a restart.
    pub identity: Identity,
    /// The settings of the protocol.
    pub settings: ServerSettings,
    /// How long a call may wait, milliseconds.
    pub max_wait_ms: i64,
}

/// The clocks of a server's machine, against true time.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// By how much the wall clock is ahead, microseconds.
    pub ahead: i64,
    /// What the wall clock shows, if it stands still.
    pub frozen: Option<i64>,
    /// When the machine was started.
    pub booted: i64,
}

/// A mark's entry in shared memory.
pub struct Entry {
    database: Cell<Option<usize>>,
    is_locked: Cell<bool>,
    bound: Cell<u64>,
}

/// What is lost when a server ends.
pub struct Memory {
    /// Distinguishes starts.
    pub number: u32,
    slots: Vec<Slot>,
    slewed_clock: SlewedClock,
    floor: FloorCache,
    start_number: i64,
    entries: Vec<Entry>,
    /// Whether the page of each mark is locked.
    pub page_is_locked: [Cell<bool>; DATABASES],
    /// Whether the floor's page is locked.
    pub floor_is_locked: Cell<bool>,
    /// What readers were promised.
    pub promise: Promise,
    /// What open transactions have published, by session.
    pub open: Vec<OpenTransaction>,
    /// The database, and the rows, of each session's open transaction.
    pub rows: RefCell<Vec<(usize, Vec<i64>)>>,
    /// Whether the server follows another one.
    pub in_recovery: Cell<bool>,
    /// Sessions between two transactions.
    pub idle: Vec<Cell<bool>>,
    /// Changes with each change of the settings.
    pub settings_number: Cell<u32>,
    /// Changes when a database is dropped.
    pub drops: Cell<u32>,
}

impl Memory {
    /// What the protocol shares.
    pub fn shared(&self) -> SharedMemory<'_> {
        SharedMemory {
            slots: &self.slots,
            slewed_clock: &self.slewed_clock,
            floor: &self.floor,
            start_number: self.start_number,
        }
    }

    /// The slots.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The time that was reached.
    pub fn slewed_clock(&self) -> &SlewedClock {
        &self.slewed_clock
    }

    /// The first tick of a database that is not reserved.
    pub fn bound(&self, database: usize) -> Option<Tick> {
        let entry = self
            .entries
            .iter()
            .find(|it| it.database.get() == Some(database))?;
        entry.bound()
    }

    /// Locks a database's entry, or gives it the one that was moved the longest ago.
    pub fn try_lock(self: &Rc<Self>, world: &World, database: usize) -> Option<Locked> {
        let lock = |number: usize| {
            let entry = &self.entries[number];
            if entry.is_locked.get() && !world.lacks(Protection::EntryLock) {
                return None;
            }
            entry.is_locked.set(true);
            Some(Locked {
                memory: Rc::clone(self),
                number,
            })
        };
        let known = self
            .entries
            .iter()
            .position(|it| it.database.get() == Some(database));
        if let Some(number) = known {
            return lock(number);
        }
        let free = (0..self.entries.len()).filter(|&number| !self.entries[number].is_locked.get());
        let number = free.min_by_key(|&number| self.entries[number].bound.get())?;
        let locked = lock(number)?;
        self.entries[number].bound.set(0);
        self.entries[number].database.set(Some(database));
        Some(locked)
    }

    /// Forgets what is known of a database.
    pub fn forget(&self, database: usize) {
        for entry in &self.entries {
            if entry.database.get() == Some(database) {
                entry.bound.set(0);
            }
        }
    }
}

impl Entry {
    fn bound(&self) -> Option<Tick> {
        Some(self.bound.get())
            .filter(|&bound| bound > 0)
            .map(Tick::new)
    }
}

/// A locked entry.
pub struct Locked {
    memory: Rc<Memory>,
    number: usize,
}

impl Locked {
    /// The first tick that is not reserved.
    pub fn bound(&self) -> Option<Tick> {
        self.memory.entries[self.number].bound()
    }

    /// Announces a bound.
    pub fn set_bound(&self, bound: Tick) {
        self.memory.entries[self.number]
            .bound
            .set(bound.get().max(1));
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.memory.entries[self.number].is_locked.set(false);
    }
}

/// A server.
pub struct Server {
    /// Its name in the story.
    pub name: char,
    /// Its configuration.
    pub config: Cell<Config>,
    /// Its clocks.
    pub machine: Cell<Machine>,
    /// The write-ahead log.
    pub log: RefCell<Log>,
    /// The pages in memory.
    pub pages: RefCell<Pages>,
    /// What runs on it.
    pub memory: RefCell<Option<Rc<Memory>>>,
    /// The server that it follows.
    pub follows: Cell<Option<usize>>,
    /// What it has issued.
    pub lineage: RefCell<Lineage>,
    /// Whether the disk is full.
    pub disk_is_full: Cell<bool>,
    /// How long a flush takes, microseconds.
    pub flush_micros: Cell<i64>,
    /// Until when other sessions have locked the marks.
    pub marks_are_locked_until: Cell<i64>,
    /// Until when the machine stands still.
    pub stopped_until: Cell<i64>,
    /// A session has found that the disk is full where the server cannot continue.
    pub has_panicked: Cell<bool>,
    /// Waits end with an error until then.
    pub cancelled_at: Cell<i64>,
    /// By how much the wall clock is ahead as far as it is trusted.
    pub trusted: Cell<i64>,
    /// How many slots sessions choose from.
    pub homes: Cell<u32>,
}

impl Server {
    /// A new data directory.
    pub fn new(name: char, config: Config, world: &World) -> Self {
        Server {
            name,
            config: Cell::new(config),
            machine: Cell::new(Machine {
                ahead: 0,
                frozen: None,
                booted: world.now() - 1_000_000,
            }),
            log: RefCell::new(Log {
                records: (0..DATABASES)
                    .map(|database| Record::Mark(database, Some(MarkPage::NEW)))
                    .collect(),
                flushed: DATABASES,
            }),
            pages: RefCell::new(Log::default().replay(0)),
            memory: RefCell::new(None),
            follows: Cell::new(None),
            lineage: RefCell::new(Lineage::new(DATABASES)),
            disk_is_full: Cell::new(false),
            flush_micros: Cell::new(1_000),
            marks_are_locked_until: Cell::new(0),
            stopped_until: Cell::new(0),
            has_panicked: Cell::new(false),
            cancelled_at: Cell::new(0),
            trusted: Cell::new(0),
            homes: Cell::new(1),
        }
    }

    /// The layout of its IDs.
    pub fn layout(&self) -> Layout {
        *self.config.get().identity.layout()
    }

    /// What the wall clock shows.
    pub fn wall(&self, world: &World) -> WallTime {
        let machine = self.machine.get();
        WallTime::from_unix_micros(machine.frozen.unwrap_or(world.now() + machine.ahead))
    }

    /// The time since the machine's boot.
    pub fn boot(&self, world: &World) -> BootTime {
        BootTime::from_micros(world.now() - self.machine.get().booted)
    }

    /// Adds a record; returns where it ends.
    pub fn write(&self, record: Record) -> LogPosition {
        let mut log = self.log.borrow_mut();
        log.records.push(record);
        LogPosition(log.records.len() as u64)
    }

    /// All of the log is durable.
    pub fn flush_all(&self) {
        let mut log = self.log.borrow_mut();
        log.flushed = log.records.len();
    }

    /// The bound that a database's IDs would have after a crash: of its mark, or of the floor, since a
    /// mark can be set to less than what is reserved.
    pub fn durable_bound(&self, database: usize) -> i64 {
        let log = self.log.borrow();
        let durable = log.records[..log.flushed].iter().rev();
        let mark = durable.clone().find_map(|record| match record {
            Record::Mark(of, page) if *of == database => {
                Some(page.map_or(0, |it| it.bound_id.get()))
            }
            _ => None,
        });
        let floor = durable.into_iter().find_map(|record| match record {
            Record::Floor(bounds) => Some(bounds.highest_for(&self.config.get().identity).get()),
            _ => None,
        });
        mark.max(floor).unwrap_or(0)
    }

    /// The server ends, and its memory is lost. So many records stay.
    pub fn end(&self, records: usize) {
        *self.memory.borrow_mut() = None;
        let mut log = self.log.borrow_mut();
        log.records.truncate(records);
        log.flushed = records;
        self.has_panicked.set(false);
    }

    /// What is in the log is all that has been issued: as of a standby, or of a backup.
    pub fn lineage_of_log(&self, lead: i64) -> Lineage {
        let mut lineage = Lineage::new(DATABASES);
        lineage.lead = lead;
        for record in &self.log.borrow().records {
            if let Record::Rows(database, first, last) = record {
                // Those of a dropped database do not count for the next one.
                let _ = lineage.of_database[*database].add(*first, *last);
                let _ = lineage.of_server.add(*first, *last);
            }
        }
        lineage
    }

    /// Starts it: after recovery, or as a standby.
    pub fn start(&self, world: &World, in_recovery: bool, entries: u32) {
        let log = self.log.borrow();
        *self.pages.borrow_mut() = log.replay(log.records.len());
        let number = world.choices.below(1 << 20) + 1;
        let config = self.config.get();
        let start_number = if world.lacks(Protection::StartNumber) {
            -1
        } else {
            // Random in a server; here each start has another one.
            -(world.now() << 8 | i64::from(self.name as u32 & 0xff))
        };
        let slewed_clock = SlewedClock::new();
        let (wall, boot) = (self.wall(world), self.boot(world));
        slewed_clock.trust(ClockOffset::between(wall, boot));
        self.trusted.set(wall.unix_micros() - world.now());
        let slots = 0..=config.identity.layout().max_backend();
        *self.memory.borrow_mut() = Some(Rc::new(Memory {
            number,
            slots: slots.map(|_| Slot::new()).collect(),
            slewed_clock,
            floor: FloorCache::default(),
            start_number,
            entries: (0..entries)
                .map(|_| Entry {
                    database: Cell::new(None),
                    is_locked: Cell::new(false),
                    bound: Cell::new(0),
                })
                .collect(),
            page_is_locked: Default::default(),
            floor_is_locked: Cell::new(false),
            promise: Promise::default(),
            open: (0..SESSIONS).map(|_| OpenTransaction::default()).collect(),
            rows: RefCell::new(vec![(0, Vec::new()); SESSIONS]),
            in_recovery: Cell::new(in_recovery),
            idle: (0..SESSIONS).map(|_| Cell::new(true)).collect(),
            settings_number: Cell::new(0),
            drops: Cell::new(0),
        }));
    }
}

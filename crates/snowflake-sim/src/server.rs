//! A data directory, and what runs on it.
//!
//! The log is the only thing that outlives a server: pages are what its records say, as PostgreSQL's
//! recovery makes them. A crash keeps what was flushed, and as much of the rest as the operating system
//! had written.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use snowflake_id::protocol::transactions::Transaction;
use snowflake_id::protocol::{FloorCache, LogPosition, MarkPage, ServerSettings, SharedMemory};
use snowflake_id::resolved::{Promise, Samples};
use snowflake_id::{
    BootTime, Bounds, ClockOffset, Identity, Layout, SlewedClock, Slot, SnowflakeId, Tick, WallTime,
};

use crate::lineage::Lineage;
use crate::protection::Protection;
use crate::transactions::{MOST_PREPARED, Prepared, Transactions};
use crate::world::World;

/// How many databases a server has.
pub const DATABASES: usize = 2;

/// How many sessions may draw, or read, on a server at a time.
pub const SESSIONS: usize = 8;

/// The sessions of a server that draw, one after another of each database.
pub const DRAWING: usize = 4;
/// The first of those that read, one of each database.
pub const READERS: usize = DRAWING;
/// The one that reserves time.
pub const HEARTBEAT: usize = READERS + DATABASES;
/// The one of administrators.
pub const ADMIN: usize = HEARTBEAT + 1;

/// A record of the log.
#[derive(Clone, Debug)]
pub enum Record {
    /// The page of a database's mark; a new one for a database that is dropped and created again.
    Mark(usize, MarkPage),
    /// The floor's page.
    Floor(Bounds),
    /// Rows with IDs from the first to the last number.
    Rows(usize, i64, i64),
    /// A transaction is prepared.
    Prepared,
}

/// What the pages say.
#[derive(Clone, Debug)]
pub struct Pages {
    /// The mark of each database, and where its last record ends.
    pub marks: [(MarkPage, LogPosition); DATABASES],
    /// The floor.
    pub floor: Bounds,
}

/// The write-ahead log.
#[derive(Clone, Debug, Default)]
pub struct Log {
    records: Vec<Record>,
    /// The places of those that change a page.
    changes: Vec<usize>,
    /// How many records are durable.
    pub flushed: usize,
}

impl Log {
    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// All of them.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Adds one.
    pub fn push(&mut self, record: Record) {
        if matches!(record, Record::Mark(..) | Record::Floor(_)) {
            self.changes.push(self.records.len());
        }
        self.records.push(record);
    }

    /// Those that change a page.
    pub fn changes(&self) -> Vec<&Record> {
        self.changes.iter().map(|&it| &self.records[it]).collect()
    }

    /// How many of those that change a page end at or before this position.
    pub fn changes_before(&self, position: LogPosition) -> usize {
        self.changes
            .partition_point(|&place| (place as u64) < position.0)
    }

    /// So many stay, and are durable.
    pub fn truncate(&mut self, records: usize) {
        self.records.truncate(records);
        self.changes.retain(|&place| place < records);
        self.flushed = self.records.len();
    }

    /// Those that change a page and are durable, the last one first.
    fn durable_changes(&self) -> impl Iterator<Item = &Record> + Clone {
        self.changes
            .iter()
            .rev()
            .filter(|&&place| place < self.flushed)
            .map(|&place| &self.records[place])
    }

    /// What the pages are after all of them.
    fn replay(&self) -> Pages {
        let mut pages = Pages {
            marks: [(MarkPage::NEW, LogPosition(0)); DATABASES],
            floor: Bounds::default(),
        };
        for &place in &self.changes {
            pages.apply(&self.records[place], LogPosition(place as u64 + 1));
        }
        pages
    }
}

impl Pages {
    /// As a record says that ends there.
    pub fn apply(&mut self, record: &Record, end: LogPosition) {
        match record {
            Record::Mark(database, page) => self.marks[*database] = (*page, end),
            Record::Floor(bounds) => self.floor = bounds.clone(),
            Record::Rows(..) | Record::Prepared => {}
        }
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
    /// Whether the library is not preloaded: the first call makes the memory.
    pub at_first_use: bool,
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
#[derive(Debug)]
pub struct Entry {
    database: Cell<Option<usize>>,
    is_locked: Cell<bool>,
    bound: Cell<u64>,
    incarnation: Cell<Option<u32>>,
}

/// What is lost when a server ends.
#[derive(Debug)]
pub struct Memory {
    /// Distinguishes starts.
    pub number: u32,
    slots: Vec<Slot>,
    slewed_clock: SlewedClock,
    /// The offset of the clocks at the start, until a memory that is made at first use is made.
    unused_since: Cell<Option<ClockOffset>>,
    floor: FloorCache,
    last_flush: AtomicU64,
    most_borrow: AtomicU64,
    start_number: i64,
    entries: Vec<Entry>,
    /// Whether the page of each mark is locked.
    pub page_is_locked: [Cell<bool>; DATABASES],
    /// Whether the floor's page is locked.
    pub floor_is_locked: Cell<bool>,
    /// What readers were promised.
    pub promise: Promise,
    /// What open transactions have published, by session.
    pub backends: Vec<Transaction>,
    /// What prepared ones have.
    pub prepared: Vec<Transaction>,
    /// Whether those places are locked.
    pub prepared_is_locked: Cell<bool>,
    /// Where the last free one was found.
    pub last_prepared: AtomicUsize,
    /// Whether none is prepared that has no place.
    pub prepared_are_known: AtomicBool,
    /// Earlier answers.
    pub samples: Samples,
    /// Which run, and which have ended.
    pub transactions: RefCell<Transactions>,
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
            last_flush: &self.last_flush,
            most_borrow: &self.most_borrow,
            start_number: self.start_number,
        }
    }

    /// Nothing has been called since the start, where the clocks had this offset.
    pub fn leave_unused(&self, at_start: ClockOffset) {
        self.unused_since.set(Some(at_start));
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
        self.entry_of(database)?.bound()
    }

    fn entry_of(&self, database: usize) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|it| it.database.get() == Some(database))
    }

    /// Which incarnation of a database its entry is of.
    pub fn incarnation(&self, database: usize) -> Option<u32> {
        self.entry_of(database)?.incarnation.get()
    }

    /// Its entry was found to be of this one.
    pub fn confirm(&self, database: usize, incarnation: u32) {
        if let Some(entry) = self.entry_of(database) {
            entry.incarnation.set(Some(incarnation));
        }
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
        self.entries[number].incarnation.set(None);
        self.entries[number].database.set(Some(database));
        Some(locked)
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

    /// The next session reads the page.
    pub fn forget(&self) {
        self.memory.entries[self.number].bound.set(0);
    }

    /// Announces a bound.
    pub fn set_bound(&self, bound: Tick, incarnation: u32) {
        let entry = &self.memory.entries[self.number];
        entry.bound.set(bound.get().max(1));
        entry.incarnation.set(Some(incarnation));
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
    /// By how much the wall clock has been ahead at most, microseconds.
    pub most_ahead: Cell<i64>,
    /// How often the clocks were set.
    pub clock_changes: Cell<u32>,
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
    /// How many databases had each number before the present one.
    pub incarnations: [Cell<u32>; DATABASES],
    /// Whether the mark of each database was set to less than it was, and not moved since.
    pub is_set_back: [Cell<bool>; DATABASES],
    /// Transactions that are prepared.
    pub prepared: RefCell<Vec<Prepared>>,
    /// Above the numbers of all transactions before the start.
    pub next_xid: Cell<u32>,
    /// Whether the disk is full.
    pub disk_is_full: Cell<bool>,
    /// Whether the floor's page cannot be written.
    pub floor_fails: Cell<bool>,
    /// The start number of the server that this one is a copy of.
    pub copied_start_number: Cell<Option<i64>>,
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
}

impl Server {
    /// A new data directory.
    pub fn new(name: char, config: Config, world: &World) -> Self {
        let mut log = Log::default();
        for database in 0..DATABASES {
            log.push(Record::Mark(database, MarkPage::NEW));
        }
        log.truncate(DATABASES);
        Server {
            name,
            config: Cell::new(config),
            machine: Cell::new(Machine {
                // Clocks of machines differ.
                ahead: world.choices.of(&[0, 0, 5_000_000, -60_000_000]),
                frozen: None,
                booted: world.now() - 1_000_000,
            }),
            most_ahead: Cell::new(0),
            clock_changes: Cell::new(0),
            log: RefCell::new(log),
            pages: RefCell::new(Log::default().replay()),
            memory: RefCell::new(None),
            follows: Cell::new(None),
            lineage: RefCell::new(Lineage::new(DATABASES)),
            incarnations: Default::default(),
            is_set_back: Default::default(),
            prepared: RefCell::default(),
            next_xid: Cell::new(3),
            disk_is_full: Cell::new(false),
            floor_fails: Cell::new(false),
            copied_start_number: Cell::new(None),
            flush_micros: Cell::new(1_000),
            marks_are_locked_until: Cell::new(0),
            stopped_until: Cell::new(0),
            has_panicked: Cell::new(false),
            cancelled_at: Cell::new(0),
            trusted: Cell::new(0),
        }
    }

    /// The layout of its IDs.
    pub fn layout(&self) -> Layout {
        *self.config.get().identity.layout()
    }

    /// Sets the clocks.
    pub fn set_machine(&self, machine: Machine) {
        self.machine.set(machine);
        self.most_ahead
            .set(self.most_ahead.get().max(machine.ahead));
        self.clock_changes.set(self.clock_changes.get() + 1);
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

    /// A call: the first one makes the memory, if the start has not.
    pub fn use_memory(&self, world: &World, memory: &Memory) {
        let Some(at_start) = memory.unused_since.take() else {
            return;
        };
        let wall = self.wall(world);
        let now = ClockOffset::between(wall, self.boot(world));
        let trusted = now.at_first_use(at_start);
        memory.slewed_clock.trust(trusted);
        if trusted == now {
            self.trusted.set(wall.unix_micros() - world.now());
        }
    }

    /// The wall clock is followed where a server may: up to a limit, unless the clock must have been
    /// wrong before. The check of the times of IDs has this from the promise, not from the protocol.
    pub fn follow_clock(&self, world: &World, lineage: &mut Lineage) {
        let settings = self.config.get().settings;
        let limit = settings
            .max_clock_step
            .map(|max| max.max(settings.lease_micros()));
        let ahead = self.wall(world).unix_micros() - world.now();
        let trusted = self.trusted.get();
        let was_wrong = |limit: i64| self.reached() - limit > world.now() + trusted;
        if limit.is_none_or(|limit| ahead - trusted <= limit || was_wrong(limit)) {
            self.trusted.set(trusted.max(ahead));
            lineage.lead = lineage.lead.max(ahead);
        }
    }

    /// The highest time that was reached, or will be when the marks are read.
    fn reached(&self) -> i64 {
        let layout = self.layout();
        let pages = self.pages.borrow();
        let marks = pages.marks.iter().map(|(page, _)| page.bound_id);
        let floor = pages.floor.highest_for(&self.config.get().identity);
        let highest = marks.chain([floor]).max().unwrap_or(SnowflakeId::ZERO);
        let reserved = layout.time_of(layout.tick_of(highest)).unix_micros();
        let memory = self.memory.borrow();
        let reached = memory
            .as_ref()
            .map_or(0, |memory| memory.slewed_clock().reached().unix_micros());
        reserved.max(reached)
    }

    /// Adds a record; returns where it ends.
    pub fn write(&self, record: Record) -> LogPosition {
        let mut log = self.log.borrow_mut();
        log.push(record);
        LogPosition(log.len() as u64)
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
        let durable = log.durable_changes();
        let mark = durable.clone().find_map(|record| match record {
            Record::Mark(of, page) if *of == database => Some(page.bound_id.get()),
            _ => None,
        });
        let mut durable = durable;
        let floor = durable.find_map(|record| match record {
            Record::Floor(bounds) => Some(bounds.highest_for(&self.config.get().identity).get()),
            _ => None,
        });
        mark.max(floor).unwrap_or(0)
    }

    /// The server ends, and its memory is lost. So many records stay.
    pub fn end(&self, records: usize) {
        if let Some(memory) = self.memory.take() {
            self.next_xid.set(memory.transactions.borrow().next());
        }
        let mut prepared = self.prepared.borrow_mut();
        prepared.retain(|it| it.end <= records);
        prepared.iter_mut().for_each(|it| it.is_ending = false);
        let mut log = self.log.borrow_mut();
        log.truncate(records);
        self.has_panicked.set(false);
    }

    /// What is in the log is all that has been issued: as of a standby, or of a backup. By how much its
    /// times may be ahead is not followed any more: all that the other server has trusted counts.
    pub fn lineage_of_log(&self) -> Lineage {
        let mut lineage = Lineage::new(DATABASES);
        lineage.lead = i64::MAX / 4;
        for record in self.log.borrow().records() {
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
        *self.pages.borrow_mut() = log.replay();
        // A mark that was set may be there again, after a crash.
        for (database, (page, _)) in self.pages.borrow().marks.iter().enumerate() {
            if page.is_set() {
                self.is_set_back[database].set(true);
                self.lineage.borrow_mut().answered[database] = 0;
            }
        }
        let number = world.choices.below(1 << 20) + 1;
        let config = self.config.get();
        let start_number = match self.copied_start_number.get() {
            _ if world.lacks(Protection::StartNumber) => -1,
            Some(copied) if world.lacks(Protection::StartNumberOfCopies) => copied,
            // Random in a server; here each start has another one.
            _ => -(world.now() << 8 | world.next_start()),
        };
        let slewed_clock = SlewedClock::new();
        let (wall, boot) = (self.wall(world), self.boot(world));
        let offset = ClockOffset::between(wall, boot);
        slewed_clock.trust(offset);
        self.trusted.set(wall.unix_micros() - world.now());
        let slots = 0..=config.identity.layout().max_backend();
        *self.memory.borrow_mut() = Some(Rc::new(Memory {
            number,
            slots: slots.map(|_| Slot::new()).collect(),
            slewed_clock,
            unused_since: Cell::new(config.at_first_use.then_some(offset)),
            floor: FloorCache::default(),
            last_flush: AtomicU64::new(0),
            most_borrow: AtomicU64::new(0),
            start_number,
            entries: (0..entries)
                .map(|_| Entry {
                    database: Cell::new(None),
                    is_locked: Cell::new(false),
                    bound: Cell::new(0),
                    incarnation: Cell::new(None),
                })
                .collect(),
            page_is_locked: Default::default(),
            floor_is_locked: Cell::new(false),
            promise: Promise::default(),
            backends: (0..SESSIONS).map(|_| Transaction::default()).collect(),
            // As many as can be prepared or on the way there.
            prepared: (0..SESSIONS + MOST_PREPARED)
                .map(|_| Transaction::default())
                .collect(),
            prepared_is_locked: Cell::new(false),
            last_prepared: AtomicUsize::new(0),
            prepared_are_known: AtomicBool::new(false),
            samples: Samples::new(),
            transactions: RefCell::new(Transactions::new(
                self.next_xid.get(),
                &self.prepared.borrow(),
            )),
            in_recovery: Cell::new(in_recovery),
            idle: (0..SESSIONS).map(|_| Cell::new(true)).collect(),
            settings_number: Cell::new(0),
            drops: Cell::new(0),
        }));
    }
}

//! A session's view of its server: what the protocol asks for.

use std::cell::Cell;
use std::fmt::Debug;
use std::num::NonZeroU32;
use std::rc::Rc;

use snowflake_id::protocol::Session as _;
use snowflake_id::protocol::resolved::ReadingProcess;
use snowflake_id::protocol::transactions::Numbers;
use snowflake_id::protocol::{
    self, Budget, Clocks, DrawingProcess, LogPosition, MarkPage, NoReading, NotOpened, Process,
    Reading, Refused, ServerSettings, SessionMemory, SharedMemory, Storage, Wait, draw,
};
use snowflake_id::resolved::{Moment, OpenTransaction, Promise, Samples};
use snowflake_id::{BootTime, Bounds, Identity, Run, Slot, SlotWalk, Tick, WallTime};

use crate::checks;
use crate::protection::Protection;
use crate::server::{DATABASES, Locked, Memory, READERS, Record, Server};
use crate::transactions::Prepared;
use crate::world::{World, print};

/// Why a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The wait was cancelled.
    Cancelled,
    /// The disk is full.
    DiskFull,
    /// Another session has locked the mark.
    Locked,
    /// IDs are ahead of the clock by all that may be borrowed.
    WaitTooLong,
    /// The clock is behind, or the mark was set ahead, up to this time.
    Behind(WallTime),
    /// The clock has jumped ahead.
    Ahead,
    /// Outside of the layout's time.
    OutsideLayout,
    /// The start would be too far ahead.
    TooFar,
}

/// A session, or a call that draws nothing.
pub struct Session {
    /// Everything.
    pub world: Rc<World>,
    /// Its server.
    pub server: Rc<Server>,
    /// What runs on that.
    pub memory: Rc<Memory>,
    /// Its database.
    pub database: usize,
    /// Its place among the server's sessions.
    pub number: usize,
    /// The number of its process.
    process: u32,
    identity: Identity,
    kept: SessionMemory,
    /// A slot of its own, where slots are not shared.
    own_slots: Vec<Slot>,
    /// Where its transactions publish if no reader sees it.
    unpublished: OpenTransaction,
    /// What it knows of, where it does not know what readers were promised.
    no_promise: Promise,
    /// Up to which change of the settings, and of the catalog, it knows.
    knows: Cell<(u32, u32)>,
    settings_changed: Cell<bool>,
    /// Whether others learn, when its transaction has ended, that the mark has changed.
    forgets: Cell<bool>,
    /// The number of its transaction.
    pub xid: Cell<u32>,
    /// Of its database: how many had its number before.
    incarnation: u32,
    /// Whether it only reads.
    is_reader: bool,
    /// When the call began.
    since: Cell<BootTime>,
    /// Below which no ID of the call is.
    pub least: Cell<i64>,
    /// How often a dump had been restored into its database when the call began.
    pub restores: Cell<u32>,
    /// A print of what it has seen of the server, if all histories are explored: its state follows
    /// from that.
    seen: Cell<u64>,
}

impl Session {
    /// A session that has just connected.
    pub fn new(
        world: &Rc<World>,
        server: &Rc<Server>,
        memory: &Rc<Memory>,
        database: usize,
        number: usize,
    ) -> Self {
        let identity = server.config.get().identity;
        let session = Session {
            world: Rc::clone(world),
            server: Rc::clone(server),
            memory: Rc::clone(memory),
            database,
            number,
            process: number as u32,
            identity,
            kept: SessionMemory::new(),
            own_slots: (0..=identity.layout().max_backend())
                .map(|_| Slot::new())
                .collect(),
            unpublished: OpenTransaction::default(),
            no_promise: Promise::default(),
            knows: Cell::new((0, 0)),
            settings_changed: Cell::new(true),
            forgets: Cell::new(false),
            xid: Cell::new(0),
            incarnation: server.incarnations[database].get(),
            is_reader: (READERS..READERS + DATABASES).contains(&number),
            since: Cell::new(BootTime::from_micros(0)),
            least: Cell::new(0),
            restores: Cell::new(0),
            seen: Cell::new(0),
        };
        session.begin();
        session
    }

    /// The layout and the node number of its IDs.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    fn begin(&self) {
        let walk = SlotWalk::new(self.identity.layout(), self.slots(), self.home());
        self.kept.set_position(walk.start());
    }

    /// The same in a process of this number.
    pub fn of_process(mut self, process: u32) -> Self {
        self.process = process;
        self.begin();
        self
    }

    /// A point between two steps.
    pub async fn pause(&self) {
        self.saw(());
        self.world.step().await;
    }

    /// The same before what no other session changes. Where all histories are explored, what comes
    /// before is one step with it: others, crashes and ticks in between would change nothing.
    async fn pause_alone(&self) {
        if !self.world.is_explored.get() {
            self.pause().await;
        }
    }

    /// Keeps an answer; `()` before each point at which others continue.
    pub fn saw<T: Debug>(&self, answer: T) -> T {
        if self.world.is_explored.get() {
            self.seen.set(print(&(self.seen.get(), &answer)));
        }
        answer
    }

    /// A print of all that it has seen.
    pub fn seen(&self) -> u64 {
        self.seen.get()
    }

    /// A call begins.
    pub fn begin_call(&self) {
        self.server.use_memory(&self.world, &self.memory);
        self.since.set(self.server.boot(&self.world));
        let lineage = self.server.lineage.borrow();
        self.least.set(lineage.least[self.database]);
        self.restores.set(lineage.restores[self.database]);
        drop(lineage);
        // The settings are read again between two calls.
        let settings = self.memory.settings_number.get();
        let (known, drops) = self.knows.get();
        if settings != known {
            self.settings_changed.set(true);
            self.knows.set((settings, drops));
        }
        self.learn();
    }

    /// The transaction has ended: others learn what it has changed of the catalog.
    pub fn tell_others(&self) {
        if self.forgets.take() {
            self.memory.drops.set(self.memory.drops.get() + 1);
        }
    }

    /// Whether the settings are those with which the call began.
    pub fn has_settings(&self) -> bool {
        self.knows.get().0 == self.memory.settings_number.get()
    }

    /// What is to be known of changes of the catalog: at the beginning of a statement, and when a
    /// lock was taken.
    fn learn(&self) {
        let (settings, known) = self.knows.get();
        let drops = self.memory.drops.get();
        if drops != known {
            self.kept.mark_changed(0);
            self.knows.set((settings, drops));
        }
    }

    /// Up to `count` IDs of one tick: by the fast path if it is one and nothing else has to be done.
    ///
    /// # Errors
    /// [`CallError`]
    pub async fn next(&self, count: NonZeroU32) -> Result<(u32, Run), CallError> {
        self.begin_call();
        let fast = match count.get() {
            1 => protocol::next_fast(self).await,
            _ => None,
        };
        match fast {
            Some(drawn) => Ok(drawn),
            None => draw::draw(self, count).await,
        }
    }

    /// The numbers of a run, as ranges.
    pub fn ranges(&self, slot: u32, run: Run) -> Vec<(i64, i64)> {
        let id = |sequence| self.identity.id(slot, run.tick, sequence).get();
        let (first, last) = (id(run.first), id(run.first + run.count - 1));
        if last - first == i64::from(run.count) - 1 {
            return vec![(first, last)];
        }
        // The sequence is not the lowest field.
        let all = self.identity.ids(slot, run);
        all.map(|id| (id.get(), id.get())).collect()
    }

    /// Its name in the story.
    pub fn name(&self) -> String {
        let (server, number) = (self.server.name, self.number);
        format!("{server}: session {number} of database {}", self.database)
    }

    /// A transaction begins.
    pub fn begin_transaction(&self) {
        let mut transactions = self.memory.transactions.borrow_mut();
        self.xid.set(transactions.begin(self.database));
    }

    /// The transaction is being prepared, and is then no more the session's.
    pub async fn prepare(&self) {
        let memory = Rc::clone(&self.memory);
        while memory.prepared_is_locked.get() {
            self.world.sleep_until(self.world.now() + 100).await;
        }
        if !self.world.lacks(Protection::HandedOn) {
            memory.prepared_is_locked.set(true);
            let own = &memory.backends[self.number].open;
            let database = protocol::Session::database(self);
            let all = self.transactions();
            all.hand_on(self, own, database, self.xid.get(), &memory.last_prepared)
                .await;
            memory.prepared_is_locked.set(false);
        }
        let end = self.server.write(Record::Prepared);
        self.flush(end).await;
        let rows = memory.transactions.borrow().rows(self.xid.get()).cloned();
        let (xid, end) = (self.xid.get(), end.0 as usize);
        let prepared = rows.map(|rows| Prepared {
            xid,
            rows,
            end,
            is_ending: false,
        });
        self.server.prepared.borrow_mut().extend(prepared);
        self.world.tell(|| {
            let name = self.server.name;
            format!("{name}: session {} has prepared {xid}", self.number)
        });
    }

    /// The transaction has ended for all others.
    pub fn end_transaction(&self) {
        let own = protocol::Session::open_transaction(self);
        self.kept.transaction_ended(own);
    }

    /// How long the call has taken, milliseconds.
    pub fn waited_ms(&self) -> i64 {
        self.server.boot(&self.world).micros_since(self.since.get()) / 1_000
    }

    /// Sleeps, for so many microseconds.
    ///
    /// # Errors
    /// [`CallError::Cancelled`]
    pub async fn sleep_micros(&self, micros: i64) -> Result<(), CallError> {
        let since = self.world.now();
        self.saw(());
        self.world.sleep_until(since + micros.max(1)).await;
        self.saw(self.world.now());
        if self.server.cancelled_at.get() >= since {
            return Err(CallError::Cancelled);
        }
        Ok(())
    }

    /// Ends with the server.
    async fn end_with_server(&self) -> ! {
        loop {
            self.world.sleep_until(i64::MAX).await;
        }
    }
}

/// The lock of a mark's page, or of the floor's.
pub struct PageLock {
    memory: Rc<Memory>,
    database: Option<usize>,
}

impl PageLock {
    fn flag(memory: &Memory, database: Option<usize>) -> &Cell<bool> {
        database.map_or(&memory.floor_is_locked, |database| {
            &memory.page_is_locked[database]
        })
    }

    async fn take(session: &Session, database: Option<usize>) -> Self {
        let memory = Rc::clone(&session.memory);
        session.pause().await;
        while Self::flag(&memory, database).get() {
            let soon = session.world.now() + 100;
            session.saw(());
            session.world.sleep_until(soon).await;
        }
        Self::flag(&memory, database).set(true);
        PageLock { memory, database }
    }
}

impl Drop for PageLock {
    fn drop(&mut self) {
        Self::flag(&self.memory, self.database).set(false);
    }
}

impl Storage for Session {
    type Error = CallError;
    type Mark = ();
    type Page = PageLock;
    type Floor = PageLock;

    async fn open_mark(&self, wait_ms: i64) -> Result<(), NotOpened<CallError>> {
        self.pause_alone().await;
        let since = self.world.now();
        while self.server.marks_are_locked_until.get() > self.world.now() {
            if (self.world.now() - since) / 1_000 >= wait_ms {
                return Err(NotOpened::Locked);
            }
            self.sleep_micros(1_000).await.map_err(NotOpened::Failed)?;
        }
        self.learn();
        Ok(())
    }

    async fn lock_page(&self, _mark: &()) -> PageLock {
        PageLock::take(self, Some(self.database)).await
    }

    fn read_page(&self, _page: &PageLock) -> MarkPage {
        if self.world.lacks(Protection::Mark) {
            return MarkPage::NEW;
        }
        self.saw(self.server.pages.borrow().marks[self.database].0)
    }

    fn record_of(&self, _page: &PageLock) -> LogPosition {
        let position = self.server.pages.borrow().marks[self.database].1;
        self.saw(self.server.log.borrow().changes_before(position));
        position
    }

    async fn write_page(&self, _mark: &(), _page: &mut PageLock, to: MarkPage) -> LogPosition {
        self.pause().await;
        let position = if self.world.lacks(Protection::MarkLogged) {
            LogPosition(self.server.log.borrow().len() as u64)
        } else {
            self.server.write(Record::Mark(self.database, to))
        };
        self.server.pages.borrow_mut().marks[self.database] = (to, position);
        self.server.is_set_back[self.database].set(false);
        self.world.tell(|| {
            let name = self.server.name;
            format!(
                "{name}: session {} moves mark {} to {}",
                self.number, self.database, to.bound_id
            )
        });
        self.pause().await;
        self.saw(self.server.log.borrow().changes_before(position));
        position
    }

    async fn lock_floor(&self) -> PageLock {
        let lock = PageLock::take(self, None).await;
        self.saw(self.memory.shared().floor);
        lock
    }

    async fn read_floor(&self, _floor: &PageLock) -> Result<Bounds, CallError> {
        self.pause().await;
        if self.world.lacks(Protection::Floor) {
            return Ok(Bounds::default());
        }
        Ok(self.saw(self.server.pages.borrow().floor.clone()))
    }

    async fn write_floor(
        &self,
        _floor: &mut PageLock,
        to: &Bounds,
    ) -> Result<LogPosition, CallError> {
        self.pause().await;
        let end = || LogPosition(self.server.log.borrow().len() as u64);
        if self.world.lacks(Protection::FloorWritten) {
            return Ok(end());
        }
        if self.server.disk_is_full.get() || self.server.floor_fails.get() {
            return if self.world.lacks(Protection::FloorError) {
                Ok(end())
            } else {
                Err(CallError::DiskFull)
            };
        }
        let position = self.server.write(Record::Floor(to.clone()));
        self.server.pages.borrow_mut().floor = to.clone();
        self.pause().await;
        self.saw(self.server.log.borrow().changes_before(position));
        Ok(position)
    }

    async fn flush(&self, position: LogPosition) {
        self.pause().await;
        if self.world.lacks(Protection::Flush) {
            return;
        }
        if self.world.lacks(Protection::AnswerDurable) && self.is_reader {
            return;
        }
        if self.server.disk_is_full.get() {
            // As PostgreSQL does where it cannot write the log.
            self.server.has_panicked.set(true);
            self.end_with_server().await
        }
        let end = match position {
            LogPosition(0) => self.server.log.borrow().len(),
            LogPosition(end) => end as usize,
        };
        if self.server.log.borrow().flushed >= end {
            return;
        }
        let done = self.world.now() + self.server.flush_micros.get();
        self.world.sleep_until(done).await;
        let mut log = self.server.log.borrow_mut();
        log.flushed = log.flushed.max(end.min(log.len()));
        self.world.tell(|| {
            let name = self.server.name;
            format!(
                "{name}: session {} has flushed {} records",
                self.number, log.flushed
            )
        });
    }

    async fn is_in_recovery(&self) -> bool {
        self.memory.in_recovery.get() && !self.world.lacks(Protection::FloorOfStandby)
    }
}

impl Process for Session {
    type Storage = Self;
    type Entry = Locked;
    type Session = Self;

    fn storage(&self) -> &Self {
        self
    }

    fn session(&self) -> &Self {
        self
    }

    fn shared(&self) -> SharedMemory<'_> {
        // All that may be read there until the next question.
        let shared = self.memory.shared();
        self.saw((shared.slewed_clock, shared.last_flush));
        SharedMemory {
            slots: self.slots(),
            ..shared
        }
    }

    fn settings(&self) -> ServerSettings {
        let mut settings = self.server.config.get().settings;
        if self.world.lacks(Protection::ClockAhead) {
            settings.max_clock_step = None;
        }
        settings
    }

    async fn clocks(&self) -> Clocks {
        self.pause_alone().await;
        self.saw(Clocks {
            wall: self.server.wall(&self.world),
            boot: self.server.boot(&self.world),
        })
    }

    async fn bound(&self) -> Option<Tick> {
        self.pause().await;
        if self.is_reader && self.world.lacks(Protection::AnswerBelowMark) {
            return Some(Tick::new(u64::MAX));
        }
        self.saw(self.memory.bound(self.database))
    }

    async fn is_confirmed(&self) -> bool {
        self.pause().await;
        if self.is_reader && self.world.lacks(Protection::AnswerBelowMark) {
            return true;
        }
        let is_of_this = self.memory.incarnation(self.database) == Some(self.incarnation);
        self.saw(is_of_this || self.world.lacks(Protection::ConfirmedEntry))
    }

    async fn confirm(&self) {
        self.pause().await;
        self.memory.confirm(self.database, self.incarnation);
    }

    async fn try_lock_entry(&self) -> Option<Locked> {
        self.pause().await;
        let entry = self.memory.try_lock(&self.world, self.database);
        self.saw(entry.is_some());
        entry
    }

    fn bound_of(&self, entry: &Locked) -> Option<Tick> {
        self.saw(entry.bound())
    }

    async fn set_bound(&self, entry: &Locked, bound: Tick) {
        self.pause().await;
        entry.set_bound(bound, self.incarnation);
    }

    async fn forget(&self, entry: &Locked) {
        entry.forget();
        self.forgets.set(true);
    }

    async fn step(&self) {
        self.pause().await;
    }
}

impl protocol::Session for Session {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn memory(&self) -> &SessionMemory {
        &self.kept
    }

    fn slots(&self) -> &[Slot] {
        let slots = if self.world.lacks(Protection::Slot) {
            &self.own_slots
        } else {
            self.memory.slots()
        };
        self.saw(slots)
    }

    fn home(&self) -> u32 {
        self.process & self.identity.layout().max_backend()
    }

    fn database(&self) -> u32 {
        self.database as u32 + 1
    }

    fn promise(&self) -> &Promise {
        self.saw(if self.world.lacks(Protection::Promise) {
            &self.no_promise
        } else {
            &self.memory.promise
        })
    }

    fn open_transaction(&self) -> Option<&OpenTransaction> {
        Some(if self.world.lacks(Protection::Published) {
            &self.unpublished
        } else {
            &self.memory.backends[self.number].open
        })
    }

    fn is_parallel(&self) -> bool {
        false
    }

    fn settings_changed(&self) -> bool {
        self.settings_changed.get()
    }

    async fn wall(&self) -> WallTime {
        self.clocks().await.wall
    }

    fn issued(&self, slot: u32, run: Run) {
        checks::distinct(self, slot, run);
    }

    async fn step(&self) {
        self.pause().await;
    }
}

impl DrawingProcess for Session {
    async fn reading(&self, clocks: Clocks) -> Result<Reading, NoReading> {
        if self.world.lacks(Protection::SlewedClock) {
            let now = self.identity.layout().tick_at(clocks.wall.into());
            return Ok(Reading {
                clocks,
                time: clocks.wall,
                now: now.map_err(|_| NoReading::BeforeEpoch)?,
                slowdown: 1,
            });
        }
        Reading::take(self, clocks).await
    }

    fn stepped(&self, step: i64, _at: Clocks) {
        // Where the clock must have been wrong before.
        let mut lineage = self.server.lineage.borrow_mut();
        self.server.follow_clock(&self.world, &mut lineage);
        self.world.tell(|| {
            format!(
                "{}: a clock step of {step} us is accepted",
                self.server.name
            )
        });
    }

    fn check_stopped(&self) -> Result<(), CallError> {
        Ok(())
    }

    fn take_settings_changed(&self) -> bool {
        self.settings_changed.take()
    }

    async fn find_mark(&self) -> Result<u32, CallError> {
        Ok(self.database as u32 + 1)
    }

    fn use_mark(&self, _mark: u32) {}

    async fn check_layout(&self) -> Result<(), CallError> {
        Ok(())
    }

    fn budget(&self) -> Budget {
        Budget {
            since: self.since.get(),
            max_wait_ms: self.server.config.get().max_wait_ms,
        }
    }

    fn waits(&self, slots: Option<Wait>) {
        self.world.tell(|| {
            let name = self.server.name;
            format!("{name}: session {} waits: {slots:?}", self.number)
        });
    }

    async fn sleep(&self, millis: i64) -> Result<(), CallError> {
        checks::sleeps(self);
        self.sleep_micros(millis * 1_000).await
    }

    fn refused(&self, why: Refused, at: Clocks) -> CallError {
        checks::gives_up(self, why, at);
        match why {
            Refused::MarkLocked { .. } => CallError::Locked,
            Refused::MarkSetAhead { set_to: until } | Refused::ClockBehind { reached: until } => {
                CallError::Behind(until)
            }
            Refused::ClockAhead { .. } => CallError::Ahead,
            Refused::BeforeEpoch | Refused::PastEnd => CallError::OutsideLayout,
            Refused::WaitTooLong { .. } => CallError::WaitTooLong,
        }
    }

    async fn give_way(&self) {
        self.saw(());
        self.world.give_way().await;
    }
}

impl ReadingProcess for Session {
    type Numbers = Self;

    fn transactions(&self) -> protocol::transactions::Transactions<'_> {
        self.saw((&self.memory.backends, &self.memory.prepared));
        protocol::transactions::Transactions {
            promise: protocol::Session::promise(self),
            backends: &self.memory.backends,
            prepared: &self.memory.prepared,
            prepared_are_known: &self.memory.prepared_are_known,
        }
    }

    fn numbers(&self) -> &Self {
        self
    }

    async fn moment(&self) -> Moment {
        self.pause_alone().await;
        self.saw(self.memory.transactions.borrow().moment())
    }

    fn samples<R>(&self, look: impl FnOnce(&Samples) -> R) -> R {
        look(&self.memory.samples)
    }
}

impl Numbers for Session {
    fn is_running(&self, xid: u32) -> bool {
        self.memory.transactions.borrow().is_running(xid)
    }

    fn prepared(&self) -> impl Iterator<Item = (u32, u32)> {
        let all = self.server.prepared.borrow();
        let numbers = all.iter().map(|it| (it.xid, it.rows.database as u32 + 1));
        let is_known = self.world.lacks(Protection::PreparedKnown);
        let numbers: Vec<_> = numbers.filter(|_| !is_known).collect();
        numbers.into_iter()
    }

    fn may_precede(&self, xid: u32) -> bool {
        xid < self.server.next_xid.get()
    }

    async fn step(&self) {
        self.pause_alone().await;
    }
}

//! A session's view of its server: what the protocol asks for.

use std::cell::Cell;
use std::fmt::Debug;
use std::num::NonZeroU32;
use std::rc::Rc;

use snowflake_id::protocol::{
    Clocks, DrawingProcess, FastPath, LogPosition, MarkPage, NoReading, NotOpened, NotReserved,
    Process, Reading, Reservation, ServerSettings, SharedMemory, Storage, Wait, draw,
};
use snowflake_id::resolved::{OpenTransaction, Opening, Promise};
use snowflake_id::{
    Allowance, Answer, Borrow, Bounds, Identity, Position, Run, Slot, SlotWalk, Tick, WallTime,
};

use crate::history::READERS;
use crate::protection::Protection;
use crate::server::{DATABASES, Locked, Memory, Record, Server};
use crate::world::{World, print};

/// How often a long wait looks at the clocks again, milliseconds; of the extension.
const LONGEST_SLEEP_MS: i64 = 100;
const SHORTEST_LOCK_WAIT_MS: i64 = 100;
const SHORTEST_MOVER_WAIT_MS: i64 = 1_000;

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
    fast_path: FastPath,
    /// A slot of its own, where slots are not shared.
    own_slots: Vec<Slot>,
    /// What it knows of the mark, and what that depends on.
    kept: Cell<Option<(Reservation, (u32, u32))>>,
    /// What the reservation depended on when it was found.
    asked: Cell<(u32, u32)>,
    has_drawn: Cell<bool>,
    /// Of its database: how many had its number before.
    incarnation: u32,
    /// Whether it only reads.
    is_reader: bool,
    /// When the call began.
    since: Cell<i64>,
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
            fast_path: FastPath::new(),
            own_slots: (0..=identity.layout().max_backend())
                .map(|_| Slot::new())
                .collect(),
            kept: Cell::new(None),
            asked: Cell::new((0, 0)),
            has_drawn: Cell::new(false),
            incarnation: server.incarnations[database].get(),
            is_reader: (READERS..READERS + DATABASES).contains(&number),
            since: Cell::new(0),
            seen: Cell::new(0),
        };
        let start = session.walk().start();
        session.fast_path.set_position(start);
        session
    }

    /// The same in a process of this number.
    pub fn of_process(mut self, process: u32) -> Self {
        self.process = process;
        self.fast_path.set_position(self.walk().start());
        self
    }

    fn walk(&self) -> SlotWalk<'_> {
        let layout = self.identity.layout();
        let home = self.process & layout.max_backend();
        SlotWalk::new(layout, self.slots(), home)
    }

    fn slots(&self) -> &[Slot] {
        if self.world.lacks(Protection::Slot) {
            &self.own_slots
        } else {
            self.memory.slots()
        }
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
        self.since.set(self.world.now());
    }

    /// Up to `count` IDs of one tick: by the fast path if it is one and nothing else has to be done.
    ///
    /// # Errors
    /// [`CallError`]
    pub async fn next(&self, count: NonZeroU32) -> Result<(u32, Run), CallError> {
        self.begin_call();
        if count.get() == 1
            && let Some(drawn) = self.next_fast().await
        {
            return Ok(drawn);
        }
        draw::draw(self, count).await
    }

    /// As `src/generator/next.rs`.
    async fn next_fast(&self) -> Option<(u32, Run)> {
        if self.kept.get()?.1 != self.depends_on() {
            return None;
        }
        let wall = self.clocks().await.wall;
        let now = self.tick_of(wall)?;
        let allowance = self.fast_path.allowance(now);
        if self.has_drawn.get() {
            return self.draw(wall, allowance).await;
        }
        if !self.fast_path.position().may_stay(allowance.now) {
            return None;
        }
        let (opened, least) = self.begin_to_draw(allowance.now).await?;
        let (slot, run) = self.draw(wall, allowance.from(least)?).await?;
        self.drew(opened, slot, run);
        Some((slot, run))
    }

    async fn draw(&self, wall: WallTime, allowance: Allowance) -> Option<(u32, Run)> {
        self.pause().await;
        let position: Position = self.fast_path.position();
        if !position.may_stay(allowance.now) {
            return None;
        }
        let slot = &self.slots()[position.slot() as usize];
        let bits = self.identity.layout().sequence_bits();
        match self.saw(slot.next_run(bits, allowance, NonZeroU32::MIN, Borrow::No)) {
            Answer::Issued(run) => {
                self.fast_path.set_position(position.after(run));
                self.fast_path.observe(wall);
                self.register(position.slot(), run);
                Some((position.slot(), run))
            }
            _ => None,
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

    /// A slot has issued these. None was issued before.
    fn register(&self, slot: u32, run: Run) {
        let mut lineage = self.server.lineage.borrow_mut();
        for (first, last) in self.ranges(slot, run) {
            let twice = lineage.of_database[self.database].add(first, last);
            if let Some(id) = twice.or(lineage.of_server.add(first, last)) {
                self.world.violate(format!(
                    "{}: session {} of database {} draws ID {id}, which was issued before",
                    self.server.name, self.number, self.database
                ));
            }
        }
    }

    fn tick_of(&self, wall: WallTime) -> Option<Tick> {
        self.identity.layout().tick_at(wall.into()).ok()
    }

    fn depends_on(&self) -> (u32, u32) {
        (self.memory.settings_number.get(), self.memory.drops.get())
    }

    /// The transaction has ended for all others.
    pub fn end_transaction(&self) {
        self.has_drawn.set(false);
        self.memory.open[self.number].end();
    }

    /// Forgets what is reserved.
    pub fn forget(&self) {
        self.kept.set(None);
        self.fast_path.close();
    }

    /// How long the call has taken, milliseconds.
    pub fn waited_ms(&self) -> i64 {
        (self.world.now() - self.since.get()) / 1_000
    }

    fn max_wait_ms(&self) -> i64 {
        self.server.config.get().max_wait_ms
    }

    async fn wait(&self, needed: i64, error: CallError) -> Result<(), CallError> {
        let needed_ms = needed.max(0).saturating_add(999) / 1_000;
        let waited = self.world.now() - self.since.get();
        if waited.saturating_add(needed) > self.max_wait_ms() * 1_000 {
            return Err(error);
        }
        self.sleep(needed_ms.min(LONGEST_SLEEP_MS) * 1_000).await
    }

    /// Sleeps, for so many microseconds.
    ///
    /// # Errors
    /// [`CallError::Cancelled`]
    pub async fn sleep(&self, micros: i64) -> Result<(), CallError> {
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
            self.sleep(1_000).await.map_err(NotOpened::Failed)?;
        }
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

    fn storage(&self) -> &Self {
        self
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn shared(&self) -> SharedMemory<'_> {
        let slots = self.slots();
        if self.world.is_explored.get() {
            // All that may be read there until the next question.
            let bits = self.identity.layout().sequence_bits();
            let ticks: Vec<Tick> = slots.iter().map(|slot| slot.last(bits).0).collect();
            let shared = self.memory.shared();
            self.saw((ticks, shared.slewed_clock, shared.last_flush));
        }
        SharedMemory {
            slots,
            ..self.memory.shared()
        }
    }

    fn settings(&self) -> ServerSettings {
        let mut settings = self.server.config.get().settings;
        if self.world.lacks(Protection::ClockAhead) {
            settings.max_clock_step = None;
        }
        settings
    }

    fn highest_wall(&self) -> WallTime {
        self.fast_path.highest_wall()
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
        self.saw(self.memory.bound(self.database))
    }

    async fn is_confirmed(&self) -> bool {
        self.pause().await;
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
        self.memory.drops.set(self.memory.drops.get() + 1);
    }

    async fn step(&self) {
        self.pause().await;
    }
}

impl DrawingProcess for Session {
    type Opened = Opening;

    async fn reading(&self, clocks: Clocks) -> Result<Reading, NoReading> {
        if self.world.lacks(Protection::SlewedClock) {
            return Ok(Reading {
                clocks,
                time: clocks.wall,
                now: self.tick_of(clocks.wall).ok_or(NoReading::BeforeEpoch)?,
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

    async fn reservation(&self) -> Result<Reservation, CallError> {
        if let Some((kept, depends_on)) = self.kept.get()
            && depends_on == self.depends_on()
        {
            return Ok(kept);
        }
        self.forget();
        // A change of the settings during the call counts for the next one.
        self.asked.set(self.depends_on());
        Ok(Reservation::new(self).await)
    }

    fn keep(&self, reservation: Reservation) {
        self.kept.set(Some((reservation, self.asked.get())));
        self.fast_path.open(reservation);
    }

    async fn check_layout(&self) -> Result<(), CallError> {
        Ok(())
    }

    async fn begin_to_draw(&self, now: Tick) -> Option<(Opening, Tick)> {
        if self.has_drawn.get() {
            return None;
        }
        self.pause().await;
        let layout = self.identity.layout();
        let present = layout.first_id_of(now.min(layout.last_tick()));
        let (unpublished, nothing) = (OpenTransaction::default(), Promise::default());
        let open = if self.world.lacks(Protection::Published) {
            &unpublished
        } else {
            &self.memory.open[self.number]
        };
        let promise = if self.world.lacks(Protection::Promise) {
            &nothing
        } else {
            &self.memory.promise
        };
        let opening = open.begin(promise, self.database as u32, present, false);
        self.pause().await;
        let opening = self.saw(opening);
        Some((opening, now.max(layout.tick_of(opening.least))))
    }

    fn drew(&self, opening: Opening, slot: u32, run: Run) {
        if !self.world.lacks(Protection::Published) {
            let id = self.identity.id(slot, run.tick, run.first);
            self.memory.open[self.number].drew(opening, id);
        }
        self.has_drawn.set(true);
    }

    async fn next_run(
        &self,
        allowance: Allowance,
        count: NonZeroU32,
        _wall: WallTime,
    ) -> (u32, Answer) {
        self.pause().await;
        let position = self.fast_path.position();
        let (position, answer) = self.walk().next_run(position, allowance, count);
        self.fast_path.set_position(position);
        self.saw((position, answer));
        if let Answer::Issued(run) = answer {
            self.register(position.slot(), run);
        }
        (position.slot(), answer)
    }

    fn observe(&self, wall: WallTime) {
        self.fast_path.observe(wall);
    }

    fn left_ms(&self) -> i64 {
        (self.max_wait_ms().max(SHORTEST_LOCK_WAIT_MS) - self.waited_ms()).max(1)
    }

    async fn wait_for(
        &self,
        reason: NotReserved<CallError>,
        clocks: Clocks,
    ) -> Result<(), CallError> {
        let wall = clocks.wall;
        let time_of = |tick| WallTime::from(self.identity.layout().time_of(tick));
        match reason {
            NotReserved::Raised => {
                self.give_way().await;
                Ok(())
            }
            NotReserved::Busy => {
                if self.waited_ms() >= self.max_wait_ms().max(SHORTEST_MOVER_WAIT_MS) {
                    return Err(CallError::Locked);
                }
                self.sleep(1_000).await
            }
            NotReserved::Locked => Err(CallError::Locked),
            NotReserved::SetAhead(bound) => {
                let set_to = time_of(bound);
                let needed = set_to
                    .minus_micros(self.settings().lease_micros())
                    .micros_since(wall);
                self.wait(needed, CallError::Behind(set_to)).await
            }
            NotReserved::TooFarAhead(bound) => {
                let reached = time_of(bound);
                self.wait(
                    self.needed_of_clock(wall, reached),
                    CallError::Behind(reached),
                )
                .await
            }
            NotReserved::PastEnd => Err(CallError::OutsideLayout),
            NotReserved::Failed(error) => Err(error),
        }
    }

    async fn wait_for_reading(&self, reason: NoReading, clocks: Clocks) -> Result<(), CallError> {
        match reason {
            NoReading::Behind { reached } => {
                let needed = self.needed_of_clock(clocks.wall, reached);
                self.wait(needed, CallError::Behind(reached)).await
            }
            NoReading::Ahead { .. } => Err(CallError::Ahead),
            NoReading::BeforeEpoch | NoReading::PastEnd => Err(CallError::OutsideLayout),
        }
    }

    async fn wait_for_slots(&self, wait: Wait) -> Result<(), CallError> {
        let needed = i64::try_from(wait.needed).unwrap_or(i64::MAX);
        self.world.tell(|| {
            format!(
                "{}: session {} waits: {wait:?}",
                self.server.name, self.number
            )
        });
        self.wait(needed, CallError::WaitTooLong).await
    }

    async fn give_way(&self) {
        self.saw(());
        self.world.give_way().await;
    }
}

impl Session {
    fn needed_of_clock(&self, wall: WallTime, reached: WallTime) -> i64 {
        reached
            .micros_since(wall)
            .saturating_sub(self.settings().max_clock_step.unwrap_or(0))
    }
}

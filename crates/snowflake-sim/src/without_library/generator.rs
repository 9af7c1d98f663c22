//! The steps, and the server that they run on.

use std::collections::HashMap;

use super::{Form, Without};

/// A sequence, as a page and the log have it.
#[derive(Clone, Copy)]
pub struct Sequence {
    /// The last value; none after a reset.
    pub last: Option<i64>,
    logged: i64,
    /// The increment.
    pub increment: i64,
    /// Where it begins again.
    pub most: i64,
}

/// What is in the log.
enum Record {
    Ids(Sequence),
    Mark(Sequence),
    Row,
}

/// The next step of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum Step {
    /// The clock is read.
    Clock,
    /// The mark is read; the call is refused if the clock is behind.
    Mark,
    /// A number is drawn.
    Draw,
    /// The clock is read again.
    ClockAgain,
    /// The mark is read again.
    MarkAgain,
    /// It is raised, by one.
    Raise,
    /// The numbers that others have drawn are counted.
    Late,
    /// The ID is returned.
    Return,
    /// Its row is committed.
    Commit,
}

/// A session's call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its next step.
    pub at: Step,
    began: u64,
    n: i64,
    t: i64,
    m: Option<i64>,
    drawn: usize,
    checked: u64,
    is_late: bool,
    id: i64,
}

/// A number that was drawn, or skipped.
struct Draw {
    number: i64,
    event: u64,
    clock: Option<i64>,
    began: u64,
    /// When its call had raised the mark, and the log's length.
    raised: Option<(u64, usize)>,
    was_clock_set: bool,
}

struct Issued {
    began: u64,
    drawn: u64,
    checked: u64,
    row: Option<usize>,
}

/// A server, and what happened on it.
pub struct World {
    form: Form,
    without: Option<Without>,
    /// What the clock shows, in ticks.
    pub clock: i64,
    /// The most that it has shown.
    pub highest: i64,
    /// Whether rows that are not in a standby or a backup count, too.
    pub counts_lost: bool,
    /// The numbers.
    pub ids: Sequence,
    /// The mark.
    pub mark: Sequence,
    /// Since when the mark may be below IDs.
    pub bare_since: Option<u64>,
    log: Vec<Record>,
    flushed: usize,
    kept: usize,
    draws: Vec<Draw>,
    issued: HashMap<i64, Issued>,
    events: u64,
    set_back: u64,
    /// Each session's call.
    pub calls: Vec<Call>,
    /// Calls that ended with an error.
    pub refused: u64,
    /// IDs.
    pub count: u64,
    /// Equal ones.
    pub repeats: u64,
    /// An equal one that the promise excludes.
    pub violation: Option<String>,
}

const IDLE: Call = Call {
    at: Step::Clock,
    began: 0,
    n: 0,
    t: 0,
    m: None,
    drawn: 0,
    checked: 0,
    is_late: false,
    id: 0,
};

impl Sequence {
    fn of(last: i64) -> Self {
        let most = i64::MAX;
        Sequence {
            last: Some(last),
            logged: last,
            increment: 1,
            most,
        }
    }

    /// Draws a number, and returns whether it has to be logged, too.
    fn draw(&mut self, ahead: i64) -> (i64, bool) {
        let next = self.last.map_or(1, |last| last + self.increment);
        let (is_over, next) = (next > self.most, if next > self.most { 1 } else { next });
        let is_logged = is_over || self.last.is_none() || next > self.logged;
        if is_logged {
            self.logged = (next + ahead * self.increment).min(self.most);
        }
        self.last = Some(next);
        (next, is_logged)
    }

    fn recovered(self) -> Self {
        Sequence {
            last: self.last.map(|_| self.logged),
            ..self
        }
    }
}

impl World {
    /// Just installed, at this time.
    #[must_use]
    pub fn new(form: Form, without: Option<Without>, clock: i64, sessions: usize) -> Self {
        let (ids, mark) = (Sequence::of(1), Sequence::of(clock / form.unit));
        World {
            form,
            without,
            clock,
            highest: clock,
            counts_lost: false,
            ids,
            mark,
            bare_since: None,
            log: vec![Record::Ids(ids), Record::Mark(mark)],
            flushed: 2,
            kept: 2,
            draws: Vec::new(),
            issued: HashMap::new(),
            events: 0,
            set_back: 0,
            calls: vec![IDLE; sessions],
            refused: 0,
            count: 0,
            repeats: 0,
            violation: None,
        }
    }

    fn lacks(&self, protection: Without) -> bool {
        self.without == Some(protection)
    }

    /// The next step of a session.
    pub fn step(&mut self, session: usize) {
        self.events += 1;
        let mut call = self.calls[session];
        let unit = |t: i64| t.div_euclid(self.form.unit);
        let is_behind = |call: &Call| call.m.is_none_or(|m| m - unit(call.t) > self.form.behind);
        let has_mark = !self.lacks(Without::Mark);
        let mark_first = !self.lacks(Without::MarkFirst);
        match call.at {
            Step::Clock => {
                call = Call {
                    began: self.events,
                    t: self.clock,
                    at: Step::Mark,
                    ..IDLE
                };
            }
            Step::Mark => {
                call.m = self.mark.last;
                call.at = Step::Draw;
                if has_mark && !self.lacks(Without::ClockBefore) && is_behind(&call) {
                    self.refused += 1;
                    call.at = Step::Clock;
                }
            }
            Step::Draw => {
                let (number, is_logged) = self.ids.draw(self.form.ahead);
                if is_logged {
                    self.log.push(Record::Ids(self.ids));
                }
                (call.n, call.drawn) = (number, self.draws.len());
                self.draws.push(Draw {
                    number,
                    event: self.events,
                    clock: Some(self.clock),
                    began: call.began,
                    raised: None,
                    was_clock_set: false,
                });
                call.at = if self.lacks(Without::ClockAfter) {
                    Step::MarkAgain
                } else {
                    Step::ClockAgain
                };
            }
            Step::ClockAgain => {
                call.t = self.clock;
                call.at = if has_mark && mark_first {
                    Step::MarkAgain
                } else {
                    Step::Late
                };
            }
            Step::MarkAgain => {
                call.m = self.mark.last;
                call.at = Step::Raise;
            }
            Step::Raise => {
                if call
                    .m
                    .is_some_and(|m| m < unit(call.t) - call.n % self.form.lag)
                {
                    let (mark, is_logged) = self.mark.draw(self.form.ahead);
                    if is_logged {
                        self.log.push(Record::Mark(self.mark));
                    }
                    call.m = Some(mark);
                } else {
                    self.draws[call.drawn].raised = Some((self.events, self.log.len()));
                    call.at = if mark_first { Step::Late } else { Step::Return };
                }
            }
            Step::Late => {
                let others = self.ids.last.map_or(-1, |last| last - call.n);
                call.is_late =
                    !(0..=self.form.late).contains(&others) && !self.lacks(Without::PauseCheck);
                call.checked = self.events;
                if !has_mark {
                    self.draws[call.drawn].raised = Some((self.events, self.log.len()));
                }
                call.at = if mark_first || !has_mark {
                    Step::Return
                } else {
                    Step::MarkAgain
                };
            }
            Step::Return => {
                if call.is_late || has_mark && is_behind(&call) {
                    call.at = Step::Clock;
                } else {
                    call.at = Step::Commit;
                    call.id = call.t * self.form.remainders + call.n % self.form.remainders;
                    self.issue(&call);
                }
            }
            Step::Commit => {
                self.log.push(Record::Row);
                self.flushed = self.log.len();
                if let Some(issued) = self.issued.get_mut(&call.id) {
                    issued.row = Some(self.flushed);
                }
                call.at = Step::Clock;
            }
        }
        self.calls[session] = call;
    }

    fn issue(&mut self, call: &Call) {
        self.count += 1;
        if self.bare_since.is_some_and(|since| call.began > since) {
            (self.bare_since, self.kept) = (None, self.log.len());
        }
        let new = Issued {
            began: call.began,
            drawn: self.draws[call.drawn].event,
            checked: call.checked,
            row: None,
        };
        let Some(old) = self.issued.insert(call.id, new) else {
            return;
        };
        self.repeats += 1;
        let new = &self.issued[&call.id];
        let (first, second) = if old.drawn < new.drawn {
            (&old, new)
        } else {
            (new, &old)
        };
        let is_back = self.set_back >= first.began;
        let distance = if is_back {
            self.form.distance() - i64::from(self.lacks(Without::Distance))
        } else {
            1
        };
        let is_between = |draw: &&Draw| first.checked < draw.event && draw.event < second.drawn;
        let counts = |draw: &&Draw| {
            draw.clock
                .is_none_or(|clock| (clock - call.t).abs() < distance)
                || is_back
                    && (draw.was_clock_set
                        || draw.began < first.checked
                        || draw.raised.is_none_or(|(event, _)| event > second.drawn))
        };
        let counted = self.draws.iter().filter(is_between).filter(counts).count() as i64;
        if counted < self.form.bound() + i64::from(self.lacks(Without::Bound)) {
            self.violation = Some(format!(
                "ID {} twice, with {counted} numbers between them",
                call.id
            ));
        }
    }

    /// A session's steps, until this one is next.
    pub fn run_to(&mut self, session: usize, step: Step) {
        while self.calls[session].at != step {
            self.step(session);
        }
    }

    /// Whole calls of a session, each with its commit; fewer if one is refused.
    pub fn call(&mut self, session: usize, calls: i64) {
        let refused = self.refused;
        let mut left = calls;
        while left > 0 && self.refused == refused {
            left -= i64::from(self.calls[session].at == Step::Commit);
            self.step(session);
        }
    }

    /// Time passes.
    pub fn pass(&mut self, ticks: i64) {
        self.clock += ticks;
        self.highest = self.highest.max(self.clock);
    }

    /// The clock is set.
    pub fn set_clock(&mut self, clock: i64) {
        self.events += 1;
        if clock < self.clock {
            self.set_back = self.events;
        }
        for call in self.calls.iter().filter(|call| call.at > Step::Draw) {
            self.draws[call.drawn].was_clock_set = true;
        }
        // What is not drawn yet belongs to a call of two times, too: it counts as one that began before.
        for call in self.calls.iter_mut().filter(|call| call.at <= Step::Draw) {
            call.began = 0;
        }
        self.clock = clock;
        self.highest = self.highest.max(clock);
    }

    /// A session ends, and another comes.
    pub fn end(&mut self, session: usize) {
        self.calls[session] = IDLE;
    }

    /// A clean restart.
    pub fn restart(&mut self) {
        self.calls.fill(IDLE);
    }

    /// The log's length, and how much of it is durable; what must stay of it.
    #[must_use]
    pub fn log(&self) -> (usize, usize, usize) {
        (self.log.len(), self.flushed, self.kept)
    }

    /// What is left is this much of the log: after a crash, on a standby, of a backup. Rows that are
    /// not in it do not count.
    pub fn cut(&mut self, length: usize) {
        self.restart();
        self.events += 1;
        self.log.truncate(length);
        self.flushed = length;
        let counts_lost = self.counts_lost;
        self.issued
            .retain(|_, issued| counts_lost || issued.row.is_some_and(|row| row <= length));
        for record in &self.log {
            match record {
                Record::Ids(ids) => self.ids = ids.recovered(),
                Record::Mark(mark) => self.mark = mark.recovered(),
                Record::Row => {}
            }
        }
        for draw in &mut self.draws {
            draw.raised = draw.raised.filter(|&(_, log)| log <= length);
        }
        let last = self.ids.last.unwrap_or_default();
        self.draws
            .retain(|draw| draw.number <= last - self.form.ahead);
        self.draws
            .extend((last - self.form.ahead + 1..=last).map(|number| Draw {
                number,
                event: self.events,
                clock: None,
                began: 0,
                raised: None,
                was_clock_set: true,
            }));
    }

    /// `setval` of the mark, or its reset. IDs may then be above it until the next call has raised it.
    pub fn set_mark(&mut self, mark: Option<i64>) {
        self.events += 1;
        if mark < self.mark.last {
            self.bare_since = Some(self.events);
        }
        if mark.is_some_and(|mark| mark >= self.highest.div_euclid(self.form.unit)) {
            self.bare_since = None;
        }
        self.mark = Sequence {
            last: mark,
            logged: mark.unwrap_or(0),
            ..self.mark
        };
        self.log.push(Record::Mark(self.mark));
        (self.flushed, self.kept) = (self.log.len(), self.log.len());
    }
}

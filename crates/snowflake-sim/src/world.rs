//! True time, and the points at which sessions take turns.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};
use std::future::poll_fn;
use std::hash::{DefaultHasher, Hasher};
use std::rc::Rc;
use std::task::Poll;

use crate::choices::Choices;
use crate::fault::Fault;
use crate::protection::Protection;

/// What a history is made of.
pub struct World {
    /// The choices.
    pub choices: Choices,
    /// True time, microseconds.
    now: Cell<i64>,
    /// How long a step takes, microseconds.
    step_micros: Cell<i64>,
    /// How many steps the session whose turn it is may still take.
    steps_left: Cell<u32>,
    /// How often a server has started.
    starts: Cell<i64>,
    /// Until when the session whose turn it is sleeps.
    sleeps_until: Cell<Option<i64>>,
    /// What was taken away.
    removed: Option<Protection>,
    /// Whether all faults have ended.
    pub is_ending: Cell<bool>,
    /// Whether sessions keep what they have seen, because all histories are explored.
    pub is_explored: Cell<bool>,
    violation: RefCell<Option<String>>,
    story: Option<RefCell<Vec<String>>>,
    /// How often each kind of fault happened.
    pub faults: RefCell<BTreeMap<Fault, u64>>,
    /// How many IDs were issued.
    pub ids: Cell<u64>,
    /// How many answers readers got.
    pub answers: Cell<u64>,
}

/// When histories begin: 2026-06-01, microseconds since 1970.
const BEGINNING: i64 = 1_780_272_000_000_000;

impl World {
    /// At the beginning. With `told`, what happens is written down.
    pub fn new(choices: Choices, removed: Option<Protection>, told: bool) -> Rc<Self> {
        Rc::new(World {
            choices,
            now: Cell::new(BEGINNING),
            step_micros: Cell::new(1),
            steps_left: Cell::new(0),
            starts: Cell::new(0),
            sleeps_until: Cell::new(None),
            removed,
            is_ending: Cell::new(false),
            is_explored: Cell::new(false),
            violation: RefCell::default(),
            story: told.then(RefCell::default),
            faults: RefCell::default(),
            ids: Cell::new(0),
            answers: Cell::new(0),
        })
    }

    /// True time, microseconds since 1970.
    pub fn now(&self) -> i64 {
        self.now.get()
    }

    /// Time passes.
    pub fn pass(&self, micros: i64) {
        self.now.set(self.now.get() + micros);
    }

    /// Distinguishes starts at the same time: a number below 256.
    pub fn next_start(&self) -> i64 {
        self.starts.replace(self.starts.get() + 1) & 0xff
    }

    /// How long a step takes from now on.
    pub fn set_step_micros(&self, micros: i64) {
        self.step_micros.set(micros);
    }

    /// A session has its turn, for so many steps.
    pub fn begin_turn(&self, steps: u32) {
        self.steps_left.set(steps);
        self.sleeps_until.set(None);
    }

    /// Until when the session sleeps that has just given its turn away.
    pub fn end_turn(&self) -> i64 {
        self.sleeps_until.take().unwrap_or(0)
    }

    /// Whether this was taken away.
    pub fn lacks(&self, protection: Protection) -> bool {
        self.removed == Some(protection)
    }

    /// A point between two steps.
    pub async fn step(&self) {
        self.pass(self.step_micros.get());
        match self.steps_left.get() {
            0 => self.give_way().await,
            left => self.steps_left.set(left - 1),
        }
    }

    /// Lets others continue.
    pub async fn give_way(&self) {
        let mut gave_way = false;
        poll_fn(|_| {
            if std::mem::replace(&mut gave_way, true) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Sleeps until that time.
    pub async fn sleep_until(&self, until: i64) {
        poll_fn(|_| {
            if self.now() >= until {
                return Poll::Ready(());
            }
            self.sleeps_until.set(Some(until));
            Poll::Pending
        })
        .await;
    }

    /// Writes down what happens.
    pub fn tell(&self, what: impl FnOnce() -> String) {
        if let Some(story) = &self.story {
            let at = self.now() - BEGINNING;
            let line = format!("{:>4}.{:06} s  {}", at / 1_000_000, at % 1_000_000, what());
            story.borrow_mut().push(line);
        }
    }

    /// What happened.
    pub fn story(&self) -> Vec<String> {
        self.story
            .as_ref()
            .map_or_else(Vec::new, |story| story.borrow().clone())
    }

    /// Something that must not be. The first is kept.
    pub fn violate(&self, what: impl Display) {
        let mut violation = self.violation.borrow_mut();
        if violation.is_none() {
            self.tell(|| format!("!! {what}"));
            *violation = Some(what.to_string());
        }
    }

    /// What must not have been.
    pub fn violation(&self) -> Option<String> {
        self.violation.borrow().clone()
    }

    /// Counts a fault.
    pub fn count(&self, fault: Fault) {
        *self.faults.borrow_mut().entry(fault).or_default() += 1;
    }

    /// Gives its choices back.
    pub fn into_choices(self: Rc<Self>) -> Option<Vec<u32>> {
        Rc::into_inner(self).map(|world| world.choices.made())
    }
}

/// A number that differs for values that are printed differently.
pub fn print(value: &impl Debug) -> u64 {
    struct Printer(DefaultHasher);
    impl fmt::Write for Printer {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut printer = Printer(DefaultHasher::new());
    let _ = fmt::Write::write_fmt(&mut printer, format_args!("{value:?}"));
    printer.0.finish()
}

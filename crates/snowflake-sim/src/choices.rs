//! The choices of a history.

use std::cell::{Cell, RefCell};

/// The choices of a history: random ones, or those of a history that is replayed.
///
/// 0 is the choice with which the least happens: a history is made shorter by setting choices to 0.
pub struct Choices {
    random: RefCell<Option<fastrand::Rng>>,
    given: Vec<u32>,
    made: RefCell<Vec<u32>>,
    next: Cell<usize>,
}

impl Choices {
    /// Random ones.
    pub fn of_seed(seed: u64) -> Self {
        Choices {
            random: RefCell::new(Some(fastrand::Rng::with_seed(seed))),
            given: Vec::new(),
            made: RefCell::default(),
            next: Cell::new(0),
        }
    }

    /// These, and 0 after the last of them.
    pub fn given(given: Vec<u32>) -> Self {
        Choices {
            random: RefCell::new(None),
            given,
            made: RefCell::default(),
            next: Cell::new(0),
        }
    }

    /// One of `0..count`.
    pub fn below(&self, count: u32) -> u32 {
        let next = self.next.replace(self.next.get() + 1);
        let chosen = match (self.given.get(next), self.random.borrow_mut().as_mut()) {
            (Some(given), _) => given % count,
            (None, Some(random)) => random.u32(..count),
            (None, None) => 0,
        };
        self.made.borrow_mut().push(chosen);
        chosen
    }

    /// One in so many times; never where nothing happens.
    pub fn one_in(&self, count: u32) -> bool {
        self.below(count) == count - 1
    }

    /// One of these; the first where nothing happens.
    pub fn of<T: Copy>(&self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }

    /// Those that were made.
    pub fn made(self) -> Vec<u32> {
        self.made.into_inner()
    }
}

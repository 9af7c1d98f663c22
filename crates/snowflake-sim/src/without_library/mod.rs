//! The generator of `sql/without_library.sql`, step by step: its sessions stop between any two steps,
//! its clock is set, its server ends, is replaced by a standby or restored. docs/without-library.md has
//! the steps and the promise.
//!
//! ```text
//! generator   the steps, the two sequences and their log; what a repeated ID needs
//! history     histories from seeds, with small numbers, so that a few calls pass a bound
//! trials      histories with the file's numbers, each on both sides of its bound
//! report      what `scripts/simulate` prints: `--sql` alone, `--sql-without NAME`
//! ```

pub mod generator;
pub mod history;
pub mod report;
pub mod trials;

/// What can be taken away, to see that it is missed. The last two make the promise one better than it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Without {
    /// The clock is compared with the mark before a number is drawn.
    ClockBefore,
    /// The clock is read after the number is drawn.
    ClockAfter,
    /// The mark.
    Mark,
    /// Numbers that others have overtaken are not used.
    PauseCheck,
    /// The mark is raised before that check.
    MarkFirst,
    /// The sequence has the increment 1, and no cycle.
    SequenceOptions,
    /// As many numbers as the promise says are enough.
    Bound,
    /// The promise's distance of the clock is possible.
    Distance,
}

/// The numbers of a generator.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// How many remainders an ID can have.
    pub remainders: i64,
    /// How many others may be drawn while a session is stopped.
    pub late: i64,
    /// How many units the clock may be behind the mark.
    pub behind: i64,
    /// Numbers below it are how many units the mark may be behind an ID.
    pub lag: i64,
    /// Ticks of a unit.
    pub unit: i64,
    /// How many numbers a sequence logs ahead.
    pub ahead: i64,
}

impl Form {
    /// That of the file.
    pub const FILE: Form = Form {
        remainders: 65_536,
        late: 4_095,
        behind: 40,
        lag: 8,
        unit: 128,
        ahead: 32,
    };

    /// How many numbers between two equal IDs are drawn after the first was made.
    #[must_use]
    pub const fn bound(&self) -> i64 {
        self.remainders - self.late - 1
    }

    /// The clock is nearer than that to the IDs' time while they are drawn, in ticks.
    #[must_use]
    pub const fn distance(&self) -> i64 {
        (self.behind + self.lag) * self.unit
    }
}

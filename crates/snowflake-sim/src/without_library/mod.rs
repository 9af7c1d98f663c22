//! The generator of `sql/without_library.sql`, step by step: its sessions stop between any two steps,
//! its clock is set, its server ends, is replaced by a standby or restored. docs/without-library.md has
//! the promise.
//!
//! ```text
//! generator   the steps, the two sequences and their log; what a repeated ID needs
//! history     histories from seeds, with small numbers, so that a few calls pass a bound
//! trials      histories with the file's numbers, each on both sides of its bound
//! report      what `scripts/simulate` prints: `--sql` alone, `--sql-without NAME`
//! ```
//!
//! # How an ID is made
//!
//! A number `n` of the sequence `ids` and a reading `t` of the clock, in milliseconds since 2025, make the ID: `t`, the node number, and
//! `n` modulo 65,536. `mark` is a sequence whose last value is a time in units of 128 ms. It is only drawn from, so it only rises.
//!
//! ```text
//! repeat up to 1,000 times:
//! 1   t := clock;  m := last value of mark
//! 2   if m - t/128 > 40: error 58000                        the clock is behind: no number is drawn
//! 3   n := draw from ids
//! 4   t := clock
//! 5   m := last value of mark
//! 6   while m < t/128 - (n mod 8):  m := draw from mark     one draw raises it by one
//! 7   if m - t/128 > 40: start again                        the clock was set back, or a pause
//! 8   d := last value of ids - n                            after steps 4 and 6
//! 9   unless 0 <= d <= 4095: start again                    others drew while this session was paused, or setval
//! 10  return t, node number, n mod 65536
//! ```
//!
//! - **Equal IDs need congruent numbers**, 65,536 draws apart. Step 8 looks at the sequence *after* the clock was read and the mark
//!   was raised, and at most 4,095 numbers were drawn by then. So the other number is drawn, and its clock is read, at least 61,440 draws
//!   later, however long a session is stopped between any two steps. No time is compared for this. The order matters: with step 8 before
//!   step 5, a session that is stopped after it returns an ID of a time to which the mark was not raised.
//! - **Then the clock has moved on**, unless it was set back, or 61,440 numbers are drawn within the same millisecond, which no
//!   sequence can. **If it was set back by S**, the second reading can be equal only if 61,440 numbers are drawn within S and a millisecond.
//! - **The mark limits S.** It is at most 7 units behind the first ID when that is returned, and no number is drawn while the clock is
//!   more than 40 units behind it: numbers that follow are drawn less than 48 units, 6.144 seconds, before the ID's time. They are also
//!   drawn less than that after it, because the second ID would be refused otherwise. After one step the clock passes through these 48
//!   units once, too short for 61,440 numbers below 10,000 a second; after several, they are on both sides.
//! - 40 units are room for the 32 values that PostgreSQL skips after a crash, and for 8 sessions that raise the mark at the same
//!   moment. More of them only delay IDs: the error 58000 ends by itself.

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

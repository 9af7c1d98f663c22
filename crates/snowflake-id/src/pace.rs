//! The time that IDs are made with when the wall clock cannot be believed.
//!
//! IDs of a restarted server begin above a bound that may lie a little ahead
//! of the clock, and a clock that steps back stays behind the IDs that are out
//! for as long as the step was. [`Pace`] holds the highest time known to have
//! been reached. While the wall clock is below it, time goes on from there at
//! half the speed of a clock that cannot step, the way `adjtime` slews a
//! clock, until the wall clock has caught up. So no rate of IDs runs dry
//! during a long step, and no ID's time is further off than the step.
//!
//! A clock that jumps ahead would take the IDs with it, for ever: what it
//! shows is believed up to a limit only, held against the clock that cannot
//! step.
//!
//! Like everything in this crate it reads no clock: `wall` and `boot` are
//! arguments, in microseconds (since 1970, and since any fixed instant).

use std::sync::atomic::{AtomicI64, Ordering};

/// The highest time reached and the clock that is believed, shared by all who
/// make IDs.
///
/// All-zero bytes are a valid value; [`Pace::begin`] gives it a clock to
/// believe. The first two words only grow, each by an atomic maximum, so they
/// need no lock; the third is whatever was believed last:
///
/// | word      | holds                                                     |
/// |-----------|-----------------------------------------------------------|
/// | `reached` | the highest time reached                                  |
/// | `slew`    | the highest `2 * time - boot` of any time that was noted: |
/// |           | slewed time is `(slew + boot) / 2`, which passes through  |
/// |           | every noted point or above it, at half speed              |
/// | `offset`  | `wall - boot` when the wall clock was last believed       |
#[derive(Debug, Default)]
#[repr(C)]
pub struct Pace {
    reached: AtomicI64,
    slew: AtomicI64,
    offset: AtomicI64,
}

/// What time it is for making IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Now {
    /// The wall clock is not behind: its time.
    Wall(i64),
    /// The wall clock is behind; time goes on at half speed.
    Slewed(i64),
    /// The wall clock is behind `reached` by more than may be ridden out.
    Behind {
        /// The highest time known to have been reached.
        reached: i64,
    },
    /// The wall clock has jumped ahead by more than is believed.
    Ahead {
        /// What it would say had it not jumped.
        expected: i64,
    },
}

/// How far the wall clock may be off, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest step, backward or forward; `None` for no limit.
    pub max_step: Option<i64>,
    /// A step forward up to this is believed even where `max_step` is less:
    /// as far as time is reserved, nobody holds the clock against another.
    pub unseen: i64,
    /// No time before this can be right: a clock that was there before it
    /// jumped ahead was wrong then, not now.
    pub earliest: i64,
}

impl Pace {
    /// A pace that has seen nothing.
    pub const fn new() -> Self {
        Pace {
            reached: AtomicI64::new(0),
            slew: AtomicI64::new(0),
            offset: AtomicI64::new(0),
        }
    }

    /// Believes the wall clock, whatever it says: at the start, and when
    /// somebody who can tell says so. `offset` is `wall - boot`. Answers what it
    /// was before.
    pub fn begin(&self, offset: i64) -> i64 {
        self.offset.swap(offset, Ordering::AcqRel)
    }

    /// Takes note that `time` had been reached by the instant `boot`.
    pub fn note(&self, time: i64, boot: i64) {
        self.reached.fetch_max(time, Ordering::AcqRel);
        self.slew.fetch_max(
            time.saturating_mul(2).saturating_sub(boot),
            Ordering::AcqRel,
        );
    }

    /// The highest time known to have been reached.
    pub fn reached(&self) -> i64 {
        self.reached.load(Ordering::Acquire)
    }

    /// `wall - boot` when the wall clock was last believed.
    pub fn offset(&self) -> i64 {
        self.offset.load(Ordering::Acquire)
    }

    /// By how much the wall clock has stepped (forward, or, negative, back)
    /// since it was last believed.
    pub fn step(&self, wall: i64, boot: i64) -> i64 {
        wall.saturating_sub(boot).saturating_sub(self.offset())
    }

    /// Believes a step of the wall clock, which [`Pace::now`] did not refuse.
    /// `true` for the one of several callers that saw it first.
    ///
    /// `before` is an [`offset`](Pace::offset) that was read before the clocks
    /// were: then a caller who is late, with clocks read before the step, finds
    /// that the offset has changed, and does not take it back.
    pub fn believe(&self, before: i64, wall: i64, boot: i64) -> bool {
        let offset = wall.saturating_sub(boot);
        self.offset
            .compare_exchange(before, offset, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The time at the instant when the clocks say `wall` and `boot`, which it
    /// notes where it is not refused.
    pub fn now(&self, wall: i64, boot: i64, limits: Limits) -> Now {
        let reached = self.reached();
        let Limits {
            max_step,
            unseen,
            earliest,
        } = limits;
        if wall >= reached {
            if let Some(max) = max_step {
                let limit = max.max(unseen);
                let step = self.step(wall, boot);
                let expected = wall.saturating_sub(step);
                // Where the time before the jump cannot have been right, or the
                // time after it had been reached before, it is no jump.
                if step > limit
                    && wall.saturating_sub(reached) > max
                    && expected >= earliest.max(reached.saturating_sub(limit))
                {
                    return Now::Ahead { expected };
                }
            }
            self.note(wall, boot);
            return Now::Wall(wall);
        }
        if max_step.is_some_and(|max| reached.saturating_sub(wall) > max) {
            return Now::Behind { reached };
        }
        let slew = self.slew.load(Ordering::Acquire);
        let slewed = (slew.saturating_add(boot) / 2).max(reached);
        self.reached.fetch_max(slewed, Ordering::AcqRel);
        Now::Slewed(slewed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    fn limits(max_step: Option<i64>) -> Limits {
        Limits {
            max_step,
            unseen: 2 * S,
            earliest: 0,
        }
    }

    #[test]
    fn follows_a_wall_clock_that_goes_forward() {
        let pace = Pace::new();
        pace.begin(900 * S);
        for t in [1_000 * S, 1_001 * S, 1_001 * S, 5_000 * S] {
            assert_eq!(pace.now(t, t - 900 * S, limits(Some(0))), Now::Wall(t));
        }
    }

    #[test]
    fn half_speed_after_a_step_back_until_the_wall_clock_has_caught_up() {
        let pace = Pace::new();
        let (start, boot, step) = (1_000_000 * S, 500 * S, 60 * S);
        pace.note(start, boot);
        let mut last = start;
        let mut caught_up = None;
        for passed in (0..=130).map(|s| s * S) {
            let wall = start - step + passed;
            let now = match pace.now(wall, boot + passed, limits(None)) {
                Now::Slewed(now) => {
                    assert_eq!(caught_up, None, "no relapse");
                    assert_eq!(now, start + passed / 2);
                    now
                }
                Now::Wall(now) => {
                    caught_up.get_or_insert(passed);
                    now
                }
                Now::Behind { .. } | Now::Ahead { .. } => panic!("no limit was given"),
            };
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
        // Half a second early or late: it was asked once a second.
        let caught_up = caught_up.expect("within the loop");
        assert!((119 * S..=121 * S).contains(&caught_up), "{caught_up}");
    }

    #[test]
    fn refuses_a_larger_step_and_says_what_was_reached() {
        let pace = Pace::new();
        pace.note(1_000 * S, 10 * S);
        let behind = Now::Behind { reached: 1_000 * S };
        assert_eq!(pace.now(899 * S, 10 * S, limits(Some(100 * S))), behind);
        assert_eq!(pace.now(899 * S, 60 * S, limits(Some(100 * S))), behind);
        assert_eq!(
            pace.now(900 * S, 60 * S, limits(Some(100 * S))),
            Now::Slewed(1_025 * S)
        );
    }

    #[test]
    fn five_steps_back_in_a_row_never_lower_the_time() {
        let pace = Pace::new();
        pace.begin(1_000_000 * S);
        let (mut wall, mut boot) = (1_000_000 * S, 0);
        let mut last = 0;
        for _ in 0..5 {
            for _ in 0..10 {
                match pace.now(wall, boot, limits(Some(86_400 * S))) {
                    Now::Wall(now) | Now::Slewed(now) => {
                        assert!(now >= last);
                        last = now;
                    }
                    Now::Behind { .. } | Now::Ahead { .. } => panic!("within the limit"),
                }
                wall += S;
                boot += S;
            }
            wall -= 3_600 * S;
        }
    }

    /// A pace that began when the wall clock said 1,000,000 s, 500 s after the
    /// machine's start, and has made IDs since.
    fn begun() -> Pace {
        let pace = Pace::new();
        pace.begin(999_500 * S);
        pace.note(1_000_000 * S, 500 * S);
        pace
    }

    #[test]
    fn believes_small_jumps_ahead_and_refuses_larger_ones() {
        let pace = begun();
        let day = limits(Some(86_400 * S));
        let (wall, boot) = (1_000_010 * S, 510 * S);
        let jumped = wall + 2 * 86_400 * S;
        let ahead = Now::Ahead { expected: wall };
        assert_eq!(pace.now(jumped, boot, day), ahead);
        assert_eq!(
            pace.now(jumped + S, boot + S, day),
            Now::Ahead { expected: wall + S }
        );
        assert_eq!(pace.reached(), 1_000_000 * S, "nothing of it is noted");
        assert_eq!(pace.now(wall, boot, day), Now::Wall(wall), "back to normal");
        let jumped = wall + 86_400 * S;
        assert_eq!(pace.now(jumped, boot, day), Now::Wall(jumped));
        assert_eq!(pace.step(jumped, boot), 86_400 * S);
        let before = pace.offset();
        assert!(pace.believe(before, jumped, boot));
        assert!(
            !pace.believe(before, jumped, boot),
            "one caller sees it first"
        );
        assert!(
            !pace.believe(before, wall, boot),
            "one who is late changes nothing"
        );
        assert_eq!(pace.step(jumped, boot), 0);
    }

    #[test]
    fn a_jump_to_a_time_that_had_been_reached_is_none() {
        let pace = begun();
        let day = limits(Some(86_400 * S));
        let later = 1_000_000 * S + 3_650 * 86_400 * S;
        pace.note(later, 510 * S);
        assert_eq!(pace.now(later + S, 510 * S, day), Now::Wall(later + S));
    }

    #[test]
    fn a_clock_that_was_wrong_at_the_start_may_be_set_right() {
        // 1970 at the start, as a machine without a battery has it.
        let pace = Pace::new();
        pace.begin(0);
        let day = Limits {
            earliest: 900_000 * S,
            ..limits(Some(86_400 * S))
        };
        let right = 1_000_000 * S;
        assert_eq!(pace.now(right, 60 * S, day), Now::Wall(right));
        // Or: behind what IDs had reached.
        let pace = Pace::new();
        pace.begin(0);
        pace.note(900_000 * S, 10 * S);
        let day = limits(Some(86_400 * S));
        assert_eq!(pace.now(right, 60 * S, day), Now::Wall(right));
    }

    #[test]
    fn a_jump_within_the_reservation_is_not_looked_at() {
        let pace = begun();
        let wall = 1_000_002 * S;
        assert_eq!(pace.now(wall, 500 * S, limits(Some(0))), Now::Wall(wall));
        let wall = 1_000_010 * S;
        let ahead = Now::Ahead {
            expected: 1_000_000 * S,
        };
        assert_eq!(pace.now(wall, 500 * S, limits(Some(0))), ahead);
        assert_eq!(pace.now(wall, 500 * S, limits(None)), Now::Wall(wall));
    }
}

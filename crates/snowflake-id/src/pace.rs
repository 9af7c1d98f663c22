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
//! Like everything in this crate it reads no clock: `wall` and `boot` are
//! arguments, in microseconds (since 1970, and since any fixed instant).

use std::sync::atomic::{AtomicI64, Ordering};

/// The highest time reached, shared by all who make IDs.
///
/// All-zero bytes are a valid value that has seen nothing since 1970; both
/// words only grow, each by an atomic maximum, so they need no lock:
///
/// | word      | holds                                                     |
/// |-----------|-----------------------------------------------------------|
/// | `reached` | the highest time reached                                  |
/// | `slew`    | the highest `2 * time - boot` of any time that was noted: |
/// |           | slewed time is `(slew + boot) / 2`, which passes through  |
/// |           | every noted point or above it, at half speed              |
#[derive(Debug, Default)]
#[repr(C)]
pub struct Pace {
    reached: AtomicI64,
    slew: AtomicI64,
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
}

impl Pace {
    /// A pace that has seen nothing.
    pub const fn new() -> Self {
        Pace {
            reached: AtomicI64::new(0),
            slew: AtomicI64::new(0),
        }
    }

    /// Takes note that `time` had been reached by the instant `boot`.
    pub fn note(&self, time: i64, boot: i64) {
        self.reached.fetch_max(time, Ordering::AcqRel);
        self.slew.fetch_max(
            time.saturating_mul(2).saturating_sub(boot),
            Ordering::AcqRel,
        );
    }

    /// The time at the instant when the clocks say `wall` and `boot`, which it
    /// notes unless it is [`Now::Behind`]. `max_step` is how far the wall clock
    /// may be behind; `None` for no limit.
    pub fn now(&self, wall: i64, boot: i64, max_step: Option<i64>) -> Now {
        let reached = self.reached.load(Ordering::Acquire);
        if wall >= reached {
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

    #[test]
    fn follows_a_wall_clock_that_goes_forward() {
        let pace = Pace::new();
        for t in [1_000 * S, 1_001 * S, 1_001 * S, 5_000 * S] {
            assert_eq!(pace.now(t, t - 900 * S, Some(0)), Now::Wall(t));
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
            let now = match pace.now(wall, boot + passed, None) {
                Now::Slewed(now) => {
                    assert_eq!(caught_up, None, "no relapse");
                    assert_eq!(now, start + passed / 2);
                    now
                }
                Now::Wall(now) => {
                    caught_up.get_or_insert(passed);
                    now
                }
                Now::Behind { .. } => panic!("no limit was given"),
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
        assert_eq!(pace.now(899 * S, 10 * S, Some(100 * S)), behind);
        assert_eq!(pace.now(899 * S, 60 * S, Some(100 * S)), behind);
        assert_eq!(
            pace.now(900 * S, 60 * S, Some(100 * S)),
            Now::Slewed(1_025 * S)
        );
    }

    #[test]
    fn five_steps_back_in_a_row_never_lower_the_time() {
        let pace = Pace::new();
        let (mut wall, mut boot) = (1_000_000 * S, 0);
        let mut last = 0;
        for _ in 0..5 {
            for _ in 0..10 {
                match pace.now(wall, boot, Some(86_400 * S)) {
                    Now::Wall(now) | Now::Slewed(now) => {
                        assert!(now >= last);
                        last = now;
                    }
                    Now::Behind { .. } => panic!("within the limit"),
                }
                wall += S;
                boot += S;
            }
            wall -= 3_600 * S;
        }
    }
}

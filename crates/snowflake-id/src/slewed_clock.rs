//! The time that IDs are generated with when the wall clock cannot be trusted.
//!
//! After a restart, IDs begin above a bound that may lie a little ahead of the clock. After a clock
//! step back, the clock stays behind the issued IDs for as long as the step was. [`SlewedClock`]
//! holds the highest time known to have been reached. While the wall clock is below it, time
//! continues from there half as fast as a clock that cannot step, as `adjtime` slews a clock, until
//! the wall clock has caught up. So no rate of IDs runs dry during a long step, and no ID's time is
//! off by more than the step.
//!
//! A clock that jumps ahead would take the IDs with it, for good: it is trusted up to a limit only,
//! measured against the clock that cannot step.
//!
//! Like everything in this crate it reads no clock: both clocks are arguments.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::time::{BootTime, ClockOffset, WallTime};

/// The highest time reached and the offset of the wall clock that is trusted, shared by all
/// processes that generate IDs.
///
/// All-zero bytes are a valid value; [`SlewedClock::trust`] gives it a clock to trust. The first
/// two words only grow, each by an atomic maximum, so they need no lock; the third is whatever was
/// trusted last:
///
/// | word      | holds                                                                 |
/// |-----------|-----------------------------------------------------------------------|
/// | `reached` | the highest time reached                                              |
/// | `slew`    | the highest `2 * time - boot` of any time that was observed: slewed   |
/// |           | time is `(slew + boot) / 2`, which passes through every observed      |
/// |           | point or above it, at half speed                                      |
/// | `offset`  | `wall - boot` when the wall clock was last trusted                    |
#[derive(Debug, Default)]
#[repr(C)]
pub struct SlewedClock {
    reached: AtomicI64,
    slew: AtomicI64,
    offset: AtomicI64,
}

/// What time it is for generating IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Now {
    /// The wall clock is not behind: its time.
    Wall(WallTime),
    /// The wall clock is behind; time continues at half speed.
    Slewed(WallTime),
    /// The wall clock is behind `reached` by more than is allowed.
    Behind {
        /// The highest time known to have been reached.
        reached: WallTime,
    },
    /// The wall clock has jumped ahead by more than is trusted.
    Ahead {
        /// What it would show had it not jumped.
        expected: WallTime,
    },
}

/// How far the wall clock may be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest clock step, backward or forward, in microseconds; `None` for no limit.
    pub max_step: Option<i64>,
    /// A clock step forward up to this many microseconds is trusted even if `max_step` is less: up
    /// to there time is reserved, and no process compares the clocks.
    pub unseen: i64,
    /// No time before this can be right: a clock that showed such a time before it jumped ahead was
    /// wrong then, not now.
    pub earliest: WallTime,
}

impl SlewedClock {
    /// How many times slower than the clock that cannot step slewed time is.
    pub const SLOWDOWN: u64 = 2;

    /// A clock that has observed nothing.
    pub const fn new() -> Self {
        SlewedClock {
            reached: AtomicI64::new(0),
            slew: AtomicI64::new(0),
            offset: AtomicI64::new(0),
        }
    }

    /// Trusts the wall clock, whatever it shows: at the start, and when an administrator accepts
    /// it. Returns the offset that was trusted before.
    pub fn trust(&self, offset: ClockOffset) -> ClockOffset {
        ClockOffset::from_micros(self.offset.swap(offset.micros(), Ordering::AcqRel))
    }

    /// Observes that `time` had been reached when the clock that cannot step showed `boot`.
    pub fn observe(&self, time: WallTime, boot: BootTime) {
        let (time, boot) = (time.unix_micros(), boot.micros());
        self.reached.fetch_max(time, Ordering::AcqRel);
        self.slew.fetch_max(
            time.saturating_mul(Self::SLOWDOWN as i64)
                .saturating_sub(boot),
            Ordering::AcqRel,
        );
    }

    /// The highest time known to have been reached.
    pub fn reached(&self) -> WallTime {
        WallTime::from_unix_micros(self.reached.load(Ordering::Acquire))
    }

    /// The offset of the wall clock when it was last trusted.
    pub fn offset(&self) -> ClockOffset {
        ClockOffset::from_micros(self.offset.load(Ordering::Acquire))
    }

    /// By how many microseconds the wall clock has stepped since it was last trusted: forward, or,
    /// negative, back.
    pub fn clock_step(&self, wall: WallTime, boot: BootTime) -> i64 {
        ClockOffset::between(wall, boot).step_since(self.offset())
    }

    /// Accepts a clock step that [`SlewedClock::now`] did not refuse. `true` for the first of
    /// several callers.
    ///
    /// `before` is an [`offset`](SlewedClock::offset) that was read before the clocks were. So a
    /// late caller, with clocks that were read before the step, finds that the offset has changed,
    /// and does not revert it.
    pub fn accept_step(&self, before: ClockOffset, after: ClockOffset) -> bool {
        self.offset
            .compare_exchange(
                before.micros(),
                after.micros(),
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .is_ok()
    }

    /// The time when the clocks show `wall` and `boot`. It is observed if it is not refused.
    pub fn now(&self, wall: WallTime, boot: BootTime, limits: Limits) -> Now {
        let reached = self.reached();
        let Limits {
            max_step,
            unseen,
            earliest,
        } = limits;
        if wall >= reached {
            if let Some(max) = max_step {
                let limit = max.max(unseen);
                let step = self.clock_step(wall, boot);
                let expected = wall.minus_micros(step);
                // It is no jump if the time before it cannot have been right, or if the time after
                // it had been reached before.
                if step > limit
                    && wall.micros_since(reached) > max
                    && expected >= earliest.max(reached.minus_micros(limit))
                {
                    return Now::Ahead { expected };
                }
            }
            self.observe(wall, boot);
            return Now::Wall(wall);
        }
        if max_step.is_some_and(|max| reached.micros_since(wall) > max) {
            return Now::Behind { reached };
        }
        let slewed = self.slewed(reached, boot);
        self.reached
            .fetch_max(slewed.unix_micros(), Ordering::AcqRel);
        Now::Slewed(slewed)
    }

    /// What the wall clock shows or, if it has jumped ahead by more than is trusted, would show
    /// otherwise. That the time after the jump had been reached before does not count.
    pub fn trusted(&self, wall: WallTime, boot: BootTime, limits: Limits) -> WallTime {
        let step = self.clock_step(wall, boot);
        let expected = wall.minus_micros(step);
        match limits.max_step {
            Some(max) if step > max.max(limits.unseen) && expected >= limits.earliest => expected,
            _ => wall,
        }
    }

    /// The time when the clocks show `wall` and `boot`, without limits. It is not observed.
    pub fn time(&self, wall: WallTime, boot: BootTime) -> WallTime {
        let reached = self.reached();
        if wall >= reached {
            wall
        } else {
            self.slewed(reached, boot)
        }
    }

    fn slewed(&self, reached: WallTime, boot: BootTime) -> WallTime {
        let slew = self.slew.load(Ordering::Acquire);
        let slewed = slew.saturating_add(boot.micros()) / Self::SLOWDOWN as i64;
        WallTime::from_unix_micros(slewed).max(reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;
    const DAY: i64 = 86_400;

    /// Seconds since 1970.
    fn wall(seconds: i64) -> WallTime {
        WallTime::from_unix_micros(seconds * S)
    }

    /// Seconds since the machine's start.
    fn boot(seconds: i64) -> BootTime {
        BootTime::from_micros(seconds * S)
    }

    fn offset(seconds: i64) -> ClockOffset {
        ClockOffset::from_micros(seconds * S)
    }

    fn limits(max_step_seconds: Option<i64>) -> Limits {
        Limits {
            max_step: max_step_seconds.map(|seconds| seconds * S),
            unseen: 2 * S,
            earliest: wall(0),
        }
    }

    #[test]
    fn time_follows_a_wall_clock_that_does_not_step() {
        let clock = SlewedClock::new();
        clock.trust(offset(900));
        for t in [1_000, 1_001, 1_001, 5_000] {
            let now = clock.now(wall(t), boot(t - 900), limits(Some(0)));
            assert_eq!(now, Now::Wall(wall(t)));
        }
    }

    #[test]
    fn time_runs_at_half_speed_after_a_step_back_until_the_wall_clock_has_caught_up() {
        let clock = SlewedClock::new();
        let (start, step) = (1_000_000, 60);
        clock.observe(wall(start), boot(500));
        let mut last = wall(start);
        let mut caught_up = None;
        for passed in 0..=130 {
            let shown = wall(start - step + passed);
            let now = match clock.now(shown, boot(500 + passed), limits(None)) {
                Now::Slewed(now) => {
                    assert_eq!(caught_up, None, "no relapse");
                    assert_eq!(now, wall(start).plus_micros(passed * S / 2));
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
        // Half a second early or late: the loop looks once a second.
        let caught_up = caught_up.expect("within the loop");
        assert!((119..=121).contains(&caught_up), "{caught_up}");
    }

    #[test]
    fn a_larger_step_back_is_refused_with_the_time_reached() {
        let clock = SlewedClock::new();
        clock.observe(wall(1_000), boot(10));
        let reached = wall(1_000);
        for now in [10, 60] {
            let now = clock.now(wall(899), boot(now), limits(Some(100)));
            assert_eq!(now, Now::Behind { reached });
        }
        let now = clock.now(wall(900), boot(60), limits(Some(100)));
        assert_eq!(now, Now::Slewed(wall(1_025)));
    }

    #[test]
    fn five_steps_back_in_a_row_never_lower_the_time() {
        let clock = SlewedClock::new();
        clock.trust(offset(1_000_000));
        let (mut shown, mut passed) = (1_000_000, 0);
        let mut last = wall(0);
        for _ in 0..5 {
            for _ in 0..10 {
                match clock.now(wall(shown), boot(passed), limits(Some(DAY))) {
                    Now::Wall(now) | Now::Slewed(now) => {
                        assert!(now >= last);
                        last = now;
                    }
                    Now::Behind { .. } | Now::Ahead { .. } => panic!("within the limit"),
                }
                shown += 1;
                passed += 1;
            }
            shown -= 3_600;
        }
    }

    /// A clock that was trusted when it showed 1,000,000 s, 500 s after the machine's start, and
    /// has been used since.
    fn trusted() -> SlewedClock {
        let clock = SlewedClock::new();
        clock.trust(offset(999_500));
        clock.observe(wall(1_000_000), boot(500));
        clock
    }

    #[test]
    fn small_jumps_ahead_are_trusted_and_larger_ones_refused() {
        let clock = trusted();
        let day = limits(Some(DAY));
        let (right, at) = (wall(1_000_010), boot(510));
        let jumped = wall(1_000_010 + 2 * DAY);
        let ahead = Now::Ahead { expected: right };
        assert_eq!(clock.now(jumped, at, day), ahead);
        assert_eq!(
            clock.now(jumped.plus_micros(S), boot(511), day),
            Now::Ahead {
                expected: right.plus_micros(S)
            }
        );
        assert_eq!(
            clock.reached(),
            wall(1_000_000),
            "nothing of it is observed"
        );
        assert_eq!(
            clock.now(right, at, day),
            Now::Wall(right),
            "back to normal"
        );

        let jumped = wall(1_000_010 + DAY);
        assert_eq!(clock.now(jumped, at, day), Now::Wall(jumped));
        assert_eq!(clock.clock_step(jumped, at), DAY * S);
        let before = clock.offset();
        let after = ClockOffset::between(jumped, at);
        assert!(clock.accept_step(before, after));
        assert!(
            !clock.accept_step(before, after),
            "only the first caller accepts it"
        );
        assert!(
            !clock.accept_step(before, ClockOffset::between(right, at)),
            "a late caller changes nothing"
        );
        assert_eq!(clock.clock_step(jumped, at), 0);
    }

    #[test]
    fn a_jump_to_a_time_that_had_been_reached_is_no_jump() {
        let clock = trusted();
        let later = 1_000_000 + 3_650 * DAY;
        clock.observe(wall(later), boot(510));
        let now = clock.now(wall(later + 1), boot(510), limits(Some(DAY)));
        assert_eq!(now, Now::Wall(wall(later + 1)));
    }

    #[test]
    fn a_clock_that_was_wrong_at_the_start_may_be_set_right() {
        // 1970 at the start, as on a machine without a battery.
        let clock = SlewedClock::new();
        clock.trust(offset(0));
        let day = Limits {
            earliest: wall(900_000),
            ..limits(Some(DAY))
        };
        let right = wall(1_000_000);
        assert_eq!(clock.now(right, boot(60), day), Now::Wall(right));
        // Or behind what IDs had reached.
        let clock = SlewedClock::new();
        clock.trust(offset(0));
        clock.observe(wall(900_000), boot(10));
        let day = limits(Some(DAY));
        assert_eq!(clock.now(right, boot(60), day), Now::Wall(right));
    }

    #[test]
    fn a_jump_within_the_reservation_is_trusted() {
        let clock = trusted();
        let (none, at) = (limits(Some(0)), boot(500));
        let shown = wall(1_000_002);
        assert_eq!(clock.now(shown, at, none), Now::Wall(shown));
        let shown = wall(1_000_010);
        let expected = wall(1_000_000);
        assert_eq!(clock.now(shown, at, none), Now::Ahead { expected });
        assert_eq!(clock.now(shown, at, limits(None)), Now::Wall(shown));
    }
}

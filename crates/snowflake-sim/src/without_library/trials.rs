//! The table of docs/without-library.md: what happens, with one number or tick less than a repeat needs,
//! and with it.

use super::generator::{Step, World};
use super::{Form, Without};

/// A trial, and what each of its sides counted.
pub struct Trial {
    /// What happens.
    pub what: &'static str,
    /// IDs and repeats within the bound.
    pub holds: (u64, u64),
    /// With one more.
    pub sharp: (u64, u64),
}

const FORM: Form = Form::FILE;
/// In the middle of a unit's ticks; the number 8 is next, which leaves the mark no unit behind.
const START: i64 = 60_000_000_064;
const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;
/// A session that is stopped, and the others.
const ONE: usize = 0;
const OTHERS: usize = 1;

/// What is expected of the other side.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    /// The promise is used up.
    Allowed,
    /// Something is done that it leaves out.
    LeftOut,
    /// A protection is taken away.
    Without(Without),
}

fn trial(what: &'static str, side: Side, play: impl Fn(&mut World, i64)) -> Trial {
    let [holds, sharp] = [0, 1].map(|more| {
        let without = match side {
            Side::Without(removed) if more == 1 => Some(removed),
            _ => None,
        };
        let mut world = World::new(FORM, without, START - 1, 2);
        world.call(OTHERS, 6);
        world.pass(1);
        play(&mut world, more);
        let is_excluded = more == 1 && side != Side::Allowed;
        assert_eq!(
            world.violation.is_some(),
            is_excluded,
            "{what}: {:?}",
            world.violation
        );
        (world.count, world.repeats)
    });
    Trial { what, holds, sharp }
}

/// Numbers at one time of the clock, then one at another.
fn calls(world: &mut World, at: i64, numbers: i64, then: i64) {
    world.set_clock(at);
    world.call(OTHERS, numbers);
    world.set_clock(then);
    world.call(OTHERS, 1);
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Trial> {
    /// Between two numbers with different remainders.
    const ALL: i64 = FORM.remainders - 2;
    vec![
        trial(
            "a pause with 4,095 numbers; then 61,439 or 61,440 in the same millisecond",
            Side::Allowed,
            |world, more| {
                world.run_to(ONE, Step::ClockAgain);
                world.call(OTHERS, FORM.late);
                world.run_to(ONE, Step::Commit);
                world.call(OTHERS, FORM.bound() + more);
            },
        ),
        trial(
            "a pause with 65,535 numbers, between any two steps; without steps 8 and 9",
            Side::Without(Without::PauseCheck),
            |world, _| {
                for step in [
                    Step::Mark,
                    Step::Draw,
                    Step::ClockAgain,
                    Step::MarkAgain,
                    Step::Raise,
                    Step::Late,
                    Step::Return,
                ] {
                    world.run_to(ONE, step);
                    world.call(OTHERS, FORM.remainders - 1);
                    world.pass(1);
                    world.run_to(ONE, Step::Commit);
                    world.call(OTHERS, 1);
                    world.pass(1);
                    world.call(ONE, 1);
                }
            },
        ),
        trial(
            "a pause after step 7, the clock an hour back for 65,534 numbers; with steps 8 and 9 before step 5",
            Side::Without(Without::MarkFirst),
            |world, more| {
                world.set_clock(START + HOUR);
                world.run_to(
                    ONE,
                    if more == 1 {
                        Step::MarkAgain
                    } else {
                        Step::Late
                    },
                );
                world.set_clock(START);
                world.call(OTHERS, ALL + 1);
                world.set_clock(START + HOUR);
                world.call(OTHERS, 1);
                world.run_to(ONE, Step::Commit);
            },
        ),
        trial(
            "the clock set back by 5 s for 65,534 or 65,535 numbers",
            Side::Allowed,
            |world, more| {
                world.call(OTHERS, 1);
                calls(world, START - 5 * SECOND, ALL + more, START);
            },
        ),
        trial(
            "by 6.144 s (refused: 58000), or 6.143 s, for 65,535 numbers",
            Side::Allowed,
            |world, more| {
                world.call(OTHERS, 7);
                let last = START + 63 + (FORM.lag - 1) * FORM.unit;
                world.set_clock(last);
                world.call(OTHERS, 1);
                calls(world, last - FORM.distance() + more, ALL + 1, last);
            },
        ),
        trial(
            "by 5 s, and again by 5 s 10 s later: half of the numbers before the ID's time, half after it",
            Side::Allowed,
            |world, more| {
                world.call(OTHERS, 1);
                world.set_clock(START - 5 * SECOND);
                world.call(OTHERS, ALL / 2);
                world.pass(10 * SECOND);
                world.call(OTHERS, ALL / 2 + more);
                world.set_clock(START);
                world.call(OTHERS, 1);
            },
        ),
        trial(
            "100 crashes, each of which skips 32 numbers, and the clock 5 s back",
            Side::Allowed,
            |world, more| {
                world.call(OTHERS, 1);
                let before = world.ids.last.unwrap_or_default();
                world.set_clock(START - 5 * SECOND);
                for _ in 0..100 {
                    world.call(OTHERS, 1);
                    world.cut(world.log().0);
                }
                let passed = world.ids.last.unwrap_or_default() - before;
                calls(world, world.clock, ALL - passed + more, START);
            },
        ),
        trial(
            "a promotion or a restore without the last 100 rows, the clock 5 s behind",
            Side::Allowed,
            |world, more| {
                world.call(OTHERS, 1);
                let (before, (length, ..)) = (world.ids.last.unwrap_or_default(), world.log());
                world.call(OTHERS, 100);
                world.cut(length);
                let skipped = world.ids.last.unwrap_or_default() - before;
                calls(world, START - 5 * SECOND, ALL - skipped + more, START);
            },
        ),
        trial(
            "the same, the clock at the lost rows; these rows count, too",
            Side::LeftOut,
            |world, more| {
                world.counts_lost = more == 1;
                let (length, ..) = world.log();
                world.call(OTHERS, 60);
                world.cut(length);
                world.call(OTHERS, 60);
            },
        ),
        trial(
            "`setval` of `ids` to a lower number, a millisecond later or in the same",
            Side::LeftOut,
            |world, more| {
                world.call(OTHERS, 1);
                world.ids.last = world.ids.last.map(|last| last - 1);
                world.pass(1 - more);
                world.call(OTHERS, 1);
            },
        ),
        trial(
            "`setval` of `mark` to 2 hours ago; then a call, or first the clock an hour back",
            Side::LeftOut,
            |world, more| {
                world.call(OTHERS, 1);
                world.set_mark(Some((START - 2 * HOUR) / FORM.unit));
                world.call(OTHERS, 1 - more);
                calls(world, START - HOUR, ALL + more, START);
            },
        ),
        trial(
            "`mark` is reset (refused: 55000), and set to the clock: the right one, or an hour behind",
            Side::LeftOut,
            |world, more| {
                world.call(OTHERS, 1);
                world.set_mark(None);
                world.call(OTHERS, 1);
                world.set_mark(Some((START - more * HOUR) / FORM.unit + FORM.behind));
                calls(world, START - HOUR, ALL + 1, START);
            },
        ),
        trial(
            "`INCREMENT 2` (the audit says so), 32,768 or 32,769 numbers in a millisecond",
            Side::LeftOut,
            |world, more| {
                world.pass(1);
                world.ids.increment = 2;
                world.call(OTHERS, FORM.remainders / 2 + more);
            },
        ),
        trial(
            "`CYCLE MAXVALUE 1000` (the audit says so), 1,000 or 1,001 numbers in a millisecond",
            Side::LeftOut,
            |world, more| {
                world.pass(1);
                world.ids.most = 1_000;
                world.call(OTHERS, 1_000 + more);
            },
        ),
    ]
}

//! One history: its sessions and faults are chosen by a seed.

use super::generator::{Step, World};
use super::{Form, Without};
use crate::choices::Choices;

/// Small numbers: a dozen calls pass the bound.
pub const SMALL: Form = Form {
    remainders: 16,
    late: 3,
    behind: 5,
    lag: 2,
    unit: 4,
    ahead: 2,
};

/// How many steps and faults a history has.
const STEPS: u32 = 1_000;

/// What came of it.
pub struct Outcome {
    /// IDs.
    pub ids: u64,
    /// Equal ones, which the promise allows.
    pub repeats: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// How many faults of each kind.
    pub faults: [u64; FAULTS.len()],
    /// An equal ID that the promise excludes.
    pub violation: Option<String>,
    /// What happened, if asked for.
    pub story: Vec<String>,
}

/// The kinds of faults.
pub const FAULTS: [&str; 11] = [
    "a session stops",
    "a session is ended",
    "the clock is set back",
    "the clock is set ahead",
    "the clock is set to a time that was read",
    "a clean restart",
    "a crash",
    "a promotion, or a restored backup",
    "the mark is set",
    "the mark is reset",
    "the clock is ahead for some steps of a session, which then stops",
];

/// Runs the history of a seed.
#[must_use]
pub fn run(seed: u64, without: Option<Without>, tells: bool) -> Outcome {
    let choices = Choices::of_seed(seed);
    let sessions = 2 + choices.below(3);
    let mut world = World::new(SMALL, without, 400, sessions as usize);
    if without == Some(Without::SequenceOptions) {
        (world.ids.increment, world.ids.most) = choices.of(&[(2, i64::MAX), (4, i64::MAX), (1, 7)]);
    }
    let mut outcome = Outcome {
        ids: 0,
        repeats: 0,
        refused: 0,
        faults: [0; FAULTS.len()],
        violation: None,
        story: Vec::new(),
    };
    let rarity = choices.of(&[20, 20, 20, 100]);
    let mut stopped = vec![false; sessions as usize];
    let mut times = vec![400];
    let reach = SMALL.distance() as u32 + 8;
    for _ in 0..STEPS {
        let session = choices.below(sessions) as usize;
        if !choices.one_in(rarity) {
            if stopped[session] {
                stopped[session] = !choices.one_in(15);
                continue;
            }
            let at = world.calls[session].at;
            world.step(session);
            if tells {
                outcome.story.push(format!(
                    "{:>5} session {session}: {at:?} {:?}",
                    world.clock, world.calls[session]
                ));
            }
            if at == Step::ClockAgain {
                times.push(world.clock);
            }
            if choices.one_in(12) {
                world.pass(1 + i64::from(choices.below(3)));
            }
            if world.violation.is_some() {
                break;
            }
            continue;
        }
        let fault = choices.below(FAULTS.len() as u32) as usize;
        let clock = match fault {
            2 => world.clock - i64::from(1 + choices.below(reach)),
            3 => world.clock + i64::from(1 + choices.below(reach)),
            4 => times[times.len() - 1 - choices.below(times.len().min(40) as u32) as usize],
            _ => world.clock,
        };
        // What the promise leaves out: the clock is behind while the mark may be below IDs.
        let is_left_out = match fault {
            2..=4 | 10 => world.bare_since.is_some() && clock <= world.highest,
            8..=9 => world.clock < world.highest,
            _ => false,
        };
        if is_left_out {
            continue;
        }
        match fault {
            0 => stopped[session] = true,
            1 => world.end(session),
            2..=4 => world.set_clock(clock),
            5 => world.restart(),
            6 | 7 => {
                let (length, flushed, kept) = world.log();
                let least = if world.bare_since.is_some() {
                    length
                } else if fault == 6 {
                    flushed
                } else {
                    kept
                };
                world.cut(length - choices.below((length - least.max(kept)) as u32 + 1) as usize);
            }
            8 => world.set_mark(Some(
                world.clock / SMALL.unit + i64::from(choices.below(12)) - 5,
            )),
            9 => world.set_mark(None),
            _ => {
                world.set_clock(clock + i64::from(1 + choices.below(reach)));
                (0..choices.below(9)).for_each(|_| world.step(session));
                times.push(world.clock);
                world.set_clock(clock);
                stopped[session] = true;
            }
        }
        outcome.faults[fault] += 1;
        if tells {
            outcome
                .story
                .push(format!("{:>5} {} ({session})", world.clock, FAULTS[fault]));
        }
    }
    (outcome.ids, outcome.repeats, outcome.refused) = (world.count, world.repeats, world.refused);
    outcome.violation = world.violation;
    outcome
}

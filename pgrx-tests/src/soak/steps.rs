//! Random steps of the clock.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use crate::clock::Offset;

/// How far the clock may be off.
const FURTHEST: Duration = Duration::from_secs(10 * 3_600);

/// An offset further back. Half of the steps are a few seconds at most, so that
/// the clock shows times again at which IDs were generated.
pub(super) fn step_back(now: Offset, random: &mut StdRng) -> Offset {
    let by = if random.random_bool(0.5) {
        random.random_range(1_000..5_000_000)
    } else {
        log_uniform(random)
    };
    let furthest = Offset::back(FURTHEST).micros();
    offset((now.micros() - by).max(furthest))
}

/// An offset further forward; half of the time the machine's own time.
pub(super) fn step_forward(now: Offset, random: &mut StdRng) -> Offset {
    if now < Offset::NONE && random.random_bool(0.5) {
        return Offset::NONE;
    }
    let furthest = Offset::forward(FURTHEST).micros();
    offset((now.micros() + log_uniform(random)).min(furthest))
}

/// A length from a millisecond to five hours, in microseconds. Every order of
/// magnitude is equally likely.
fn log_uniform(random: &mut StdRng) -> i64 {
    let exponent: f64 = random.random_range(3.0..10.25);
    10_f64.powf(exponent) as i64
}

fn offset(micros: i64) -> Offset {
    let length = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 {
        Offset::back(length)
    } else {
        Offset::forward(length)
    }
}

//! The shortest history that still fails.

use std::time::{Duration, Instant};

use crate::choices::Choices;
use crate::history::{Outcome, run};
use crate::protection::Protection;

/// For how long it is tried.
const LONGEST: Duration = Duration::from_secs(20);

/// Leaves choices out, and sets others to 0, as long as the history fails in the same way. Returns the
/// last that does.
pub fn shrink(choices: Vec<u32>, removed: Option<Protection>) -> Vec<u32> {
    let until = Instant::now() + LONGEST;
    let kind = |outcome: &Outcome| outcome.violation.as_deref().map(kind_of);
    let wanted = kind(&run(Choices::given(choices.clone()), removed, false));
    if wanted.is_none() {
        return choices;
    }
    let fails =
        |choices: &[u32]| kind(&run(Choices::given(choices.to_vec()), removed, false)) == wanted;
    let mut shortest = choices;
    loop {
        let before = cost(&shortest);
        let mut length = shortest.len().next_power_of_two() / 2;
        while length > 0 {
            let mut start = 0;
            while start < shortest.len() && Instant::now() < until {
                let end = (start + length).min(shortest.len());
                let mut without = shortest.clone();
                without.drain(start..end);
                let mut zeroed = shortest.clone();
                zeroed[start..end].fill(0);
                if fails(&without) {
                    shortest = without;
                } else if zeroed != shortest && fails(&zeroed) {
                    shortest = zeroed;
                    start = end;
                } else {
                    start = end;
                }
            }
            length /= 2;
        }
        while shortest.last() == Some(&0) {
            shortest.pop();
        }
        if cost(&shortest) >= before || Instant::now() >= until {
            return shortest;
        }
    }
}

fn cost(choices: &[u32]) -> (usize, usize) {
    (
        choices.len(),
        choices.iter().filter(|&&choice| choice != 0).count(),
    )
}

/// A violation without its numbers.
fn kind_of(violation: &str) -> String {
    violation
        .chars()
        .filter(|letter| letter.is_alphabetic())
        .collect()
}

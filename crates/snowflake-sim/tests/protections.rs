//! Each protection that is taken away is missed: some history among the first seeds has a violation.
//! The seed of it is printed. A history that fails is replayed and shrunk to one that fails in
//! the same way.
//!
//! No cheaper test sees it: a protection of the protocol is missed only where others come in between.

use clap::ValueEnum;
use snowflake_sim::choices::Choices;
use snowflake_sim::history::run;
use snowflake_sim::protection::Protection;
use snowflake_sim::shrink::shrink;

/// The most seeds that a protection takes.
const MOST_SEEDS: u64 = 200_000;

/// The seed to begin with: for the rarest, shortly before one that was found.
fn first_seed(removed: Protection) -> u64 {
    match removed {
        Protection::FloorLogged => 31_000,
        Protection::FloorOfStandby => 99_700,
        _ => 1,
    }
}

fn first_failure(removed: Protection) -> Option<(u64, Vec<u32>, String)> {
    let first = first_seed(removed);
    (first..first + MOST_SEEDS).find_map(|seed| {
        let outcome = run(Choices::of_seed(seed), Some(removed), false);
        Some((seed, outcome.choices, outcome.violation?))
    })
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimization")]
fn each_protection_that_is_taken_away_is_missed() {
    let all = Protection::value_variants();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(&removed) =
                    all.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    match first_failure(removed) {
                        Some((seed, _, violation)) => {
                            println!("without {removed:?}: seed {seed}; {violation}");
                        }
                        None => panic!("{removed:?} is not missed in {MOST_SEEDS} histories"),
                    }
                }
            });
        }
    });
}

#[test]
fn a_history_is_replayed_and_shrunk() {
    // Not one that is missed in every history: what fails without any choice is not shrunk.
    let removed = Protection::AnswerBelowMark;
    let (seed, choices, violation) = first_failure(removed).expect("a violation");
    let replayed = run(Choices::given(choices.clone()), Some(removed), true);
    let again = run(Choices::of_seed(seed), Some(removed), true);
    assert_eq!(replayed.violation.as_ref(), Some(&violation));
    assert_eq!(replayed.story, again.story);
    let shortest = shrink(choices.clone(), Some(removed));
    assert!(!shortest.is_empty() && shortest.len() < choices.len());
    let outcome = run(Choices::given(shortest.clone()), Some(removed), false);
    assert!(outcome.violation.is_some());
    println!(
        "seed {seed}: {} choices, shrunk to {}",
        choices.len(),
        shortest.len()
    );
}

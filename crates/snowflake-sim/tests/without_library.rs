//! The generator of `sql/without_library.sql` repeats no ID that its promise excludes, and each
//! protection that is taken away is missed; so is a promise that is one number or one tick better.
//!
//! No cheaper test sees it: its steps are apart only where others come in between.

use clap::ValueEnum;
use snowflake_sim::without_library::Without;
use snowflake_sim::without_library::{history::run, trials};

/// How many histories find it, at most.
const MOST_SEEDS: u64 = 1_000_000;

#[test]
fn no_history_repeats_an_id_that_the_promise_excludes() {
    let (mut ids, mut repeats) = (0, 0);
    let histories = if cfg!(debug_assertions) {
        2_000
    } else {
        50_000
    };
    for seed in 1..=histories {
        let outcome = run(seed, None, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        (ids, repeats) = (ids + outcome.ids, repeats + outcome.repeats);
    }
    println!("{histories} histories, {ids} IDs; {repeats} repeats beyond the bound, none within");
    assert!(repeats > 0, "no history passes the bound");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimization")]
fn each_protection_that_is_taken_away_is_missed() {
    for &without in Without::value_variants() {
        let found = (1..=MOST_SEEDS)
            .find_map(|seed| Some((seed, run(seed, Some(without), false).violation?)));
        let (seed, violation) = found.unwrap_or_else(|| panic!("{without:?} is not missed"));
        println!("without {without:?}: {seed} histories; {violation}");
    }
}
/// Each bound of docs/without-library.md, from both sides.
#[test]
fn each_bound_holds_and_is_sharp() {
    for trial in trials::all() {
        println!("| {} | {:?} | {:?} |", trial.what, trial.holds, trial.sharp);
        assert_eq!(trial.holds.1, 0, "{}", trial.what);
        assert!(trial.sharp.1 > 0, "{}", trial.what);
    }
}

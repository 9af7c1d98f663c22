//! What `scripts/simulate` prints of this part.

use std::time::{Duration, Instant};

use super::history::{FAULTS, run};
use super::{Without, trials};

/// Runs the trials, and histories from a seed on for so many minutes. Returns whether they end as they should.
#[must_use]
pub fn report(first: u64, minutes: f64, without: Option<Without>, tells: bool) -> bool {
    if tells {
        let outcome = run(first, without, true);
        println!("{}", outcome.story.join("\n"));
        return outcome.violation.is_none();
    }
    let number = |(ids, repeats): (u64, u64)| format!("{repeats} of {ids}");
    println!("| repeats in SQL alone | within the bound | beyond |\n|---|---:|---:|");
    for trial in trials::all() {
        println!(
            "| {} | {} | {} |",
            trial.what,
            number(trial.holds),
            number(trial.sharp)
        );
    }
    let until = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let (mut histories, mut ids, mut repeats, mut refused, mut faults) =
        (0, 0, 0, 0, [0; FAULTS.len()]);
    let mut found = None;
    while found.is_none() && Instant::now() < until {
        let outcome = run(first + histories, without, false);
        found = outcome
            .violation
            .map(|violation| (first + histories, violation));
        (histories, ids) = (histories + 1, ids + outcome.ids);
        (repeats, refused) = (repeats + outcome.repeats, refused + outcome.refused);
        faults
            .iter_mut()
            .zip(outcome.faults)
            .for_each(|(sum, count)| *sum += count);
    }
    println!(
        "seeds from {first}: {histories} histories in SQL alone, {ids} IDs, {refused} calls refused, {repeats} repeats beyond the bound"
    );
    for (count, fault) in faults.iter().zip(FAULTS) {
        println!("{count:>12}  {fault}");
    }
    match &found {
        Some((seed, violation)) => println!("violation with seed {seed}: {violation}"),
        None => println!("violations in SQL alone: 0"),
    }
    found.is_some() == without.is_some()
}

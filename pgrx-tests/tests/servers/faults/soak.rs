//! A short soak (`make soak` runs it for longer): a random mix of clock steps, crashes
//! and restarts, and no ID is repeated. The seed is printed; `make soak SEED=…` takes
//! it.

use std::time::Duration;

use anyhow::Result;
use snowflake_tests::soak::{self, Fault};
use snowflake_tests::{Cluster, tier};

#[test]
fn no_id_repeats_under_random_faults() -> Result<()> {
    let options = soak::Options {
        length: Duration::from_secs(tier::size(10, 60)),
        seed: rand::random(),
        longest_pause: Duration::from_millis(500),
        sqlsmith: None,
    };
    let report = soak::run(Cluster::builder(), options, |_| ())?;
    println!("{report}");
    report.verdict()
}

/// One fault of each kind that the protection is for, after which the sessions work at
/// the same time again: random faults may miss it.
#[test]
fn random_faults_are_able_to_fail() -> Result<()> {
    for (protection, fault) in [
        ("clock", Fault::ClockBack),
        ("mark", Fault::KillAllClockBack),
        ("mark", Fault::KillBackendClockBack),
    ] {
        let builder = Cluster::builder().without_protection(protection);
        let tally = soak::revisit(builder, fault)?;
        println!(
            "soak: {}, WITHOUT protection: {protection}: {tally}",
            fault.name()
        );
        tally.assert_found_duplicates();
    }
    Ok(())
}

//! A minute of the soak (`make soak` runs it for longer): a random mix of
//! clock steps, crashes and restarts, and no ID is repeated. The seed is printed;
//! `make soak SEED=…` takes it.

use std::time::Duration;

use anyhow::Result;
use snowflake_tests::{Cluster, soak};

#[test]
fn no_id_repeats_in_a_minute_of_random_faults() -> Result<()> {
    let minute = Duration::from_secs(60);
    let report = soak::run(Cluster::builder(), minute, rand::random(), |_| ())?;
    println!("{report}");
    assert!(report.faults() >= 10, "too few faults to be a test");
    report.verdict()
}

#[test]
fn random_faults_are_able_to_fail() -> Result<()> {
    // Always the same faults: whether there are any that must show duplicates
    // is not left to chance.
    const SEED: u64 = 1;
    for protection in ["clock", "mark"] {
        let builder = Cluster::builder().without_protection(protection)?;
        let seconds = Duration::from_secs(20);
        let report = soak::run(builder, seconds, SEED, |_| ())?;
        println!("{report}, WITHOUT protection: {protection}");
        report.tally.assert_found_duplicates();
    }
    Ok(())
}

//! A short soak (`make soak` runs it for longer): a random mix of clock steps, crashes
//! and restarts, and no ID is repeated. The seed is printed; `make soak SEED=…` takes
//! it.

use snowflake_tests::soak::{self, Fault};

use crate::support::*;

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

/// A trace of a server without a protection is not accepted.
#[test]
fn traces_are_able_to_fail() -> Result<()> {
    for protection in ["mark", "flush"] {
        let options = soak::Options {
            length: Duration::from_secs(30),
            seed: 1,
            longest_pause: Duration::from_millis(500),
            sqlsmith: None,
        };
        let builder = Cluster::builder().without_protection(protection);
        let error = soak::run(builder, options, |_| ()).err();
        let error = error.map(|error| format!("{error:#}"));
        println!("soak: WITHOUT protection: {protection}: {error:?}");
        assert!(error.is_some_and(|it| it.contains("is not accepted")));
    }
    Ok(())
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

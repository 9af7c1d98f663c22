//! Statements at random return the same rows and errors with and without the planner's
//! ranges, and so do conditions in every time zone around its clock changes. A difference
//! is printed with its seed; `RANGE_FUZZ_SEED=…` takes it again.

use snowflake_tests::range_fuzz::{self, zones};

use crate::support::*;

/// Each statement has a limit of its own.
const TIME_LIMIT: Duration = Duration::from_secs(1_200);

/// Within so many statements a planted mistake must be found.
const STATEMENTS_TO_FIND: usize = 4_000;

fn builder() -> ClusterBuilder {
    Cluster::node(1).time_limit(TIME_LIMIT)
}

fn seed() -> Result<u64> {
    match std::env::var("RANGE_FUZZ_SEED") {
        Ok(seed) => seed.parse().context("RANGE_FUZZ_SEED is no number"),
        Err(_) => Ok(rand::random()),
    }
}

#[test]
fn random_statements_return_the_same_with_ranges() -> Result<()> {
    let cluster = builder().start_with_extension()?;
    let options = range_fuzz::Options {
        seed: seed()?,
        statements: tier::size(400, 6_000),
        until_difference: false,
    };
    let report = range_fuzz::run(&cluster, &options)?;
    println!("{report}");
    report.verdict()
}

#[test]
fn clock_changes_of_every_zone_return_the_same_with_ranges() -> Result<()> {
    let cluster = builder().start_with_extension()?;
    let options = zones::Options {
        seed: seed()?,
        changes: tier::size(1, 6),
        years: tier::size(12, 200),
    };
    let report = zones::run(&mut cluster.connect()?, &options)?;
    println!("{report}");
    report.verdict()
}

/// Each of these mistakes, planted into the test build, is found.
#[test]
fn random_statements_are_able_to_fail() -> Result<()> {
    for mistake in [
        "range_side",
        "range_nulling",
        "range_zone",
        "range_children",
    ] {
        // PostgreSQL 15 does not know which outer joins make a column NULL.
        if mistake == "range_nulling" && Installation::under_test()?.major < 16 {
            continue;
        }
        let cluster = builder()
            .without_protection(mistake)
            .start_with_extension()?;
        let options = range_fuzz::Options {
            seed: seed()?,
            statements: STATEMENTS_TO_FIND,
            until_difference: true,
        };
        let report = range_fuzz::run(&cluster, &options)?;
        let found = report
            .differences
            .first()
            .with_context(|| format!("{mistake} was not found: {report}"))?;
        println!(
            "range fuzz WITHOUT protection: {mistake}: seed {}, found after {} statements:\n{found}",
            options.seed, found.number
        );
    }
    Ok(())
}

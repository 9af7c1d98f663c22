//! Online migrations beside writers, smaller than `make online-load` does it:
//! real `pgbench`, sessions that keep their IDs, transactions that sit idle.

use std::time::Duration;

use anyhow::Result;
use snowflake_tests::Cluster;
use snowflake_tests::online_load::{self, Protocol, Sabotage, Size};

const SMALL: Size = Size {
    scale: 1,
    orders: 20_000,
    idle: Duration::from_secs(8),
    alone: Duration::from_secs(1),
    durable: false,
    sabotage: None,
};

fn beside_writers(protocol: Protocol) -> Result<()> {
    let report = online_load::run(Cluster::builder(), SMALL, protocol, |_| ())?;
    println!("{report}");
    report.verdict()?;
    // Writers that had to wait for a transaction that sits idle would have
    // waited for as long as that.
    assert!(
        report.longest.took < SMALL.idle * 3 / 4,
        "{:?}",
        report.longest
    );
    Ok(())
}

#[test]
fn no_row_is_lost_beside_simple_statements() -> Result<()> {
    beside_writers(Protocol::Simple)
}

#[test]
fn no_row_is_lost_beside_prepared_statements() -> Result<()> {
    beside_writers(Protocol::Prepared)
}

#[test]
fn a_load_without_protection_is_able_to_fail() -> Result<()> {
    const SMALLER: Size = Size {
        orders: 2_000,
        idle: Duration::from_secs(2),
        ..SMALL
    };
    // Writers wait behind a statement that waits for a transaction.
    let size = Size {
        sabotage: Some(Sabotage::MaintenancePlan),
        ..SMALLER
    };
    match online_load::run(Cluster::builder(), size, Protocol::Simple, |_| ()) {
        Ok(report) => {
            println!("{report}, by the plan for a maintenance window");
            assert!(
                report.verdict().is_err() || report.longest.took >= SMALLER.idle / 2,
                "{report}"
            );
        }
        // Or are given a deadlock.
        Err(error) => {
            let error = format!("{error:#}");
            println!("online load: by the plan for a maintenance window: {error}");
            assert!(error.contains("deadlock detected"), "{error}");
        }
    }
    // And what is gone is missed.
    let size = Size {
        sabotage: Some(Sabotage::LostRow),
        ..SMALLER
    };
    let report = online_load::run(Cluster::builder(), size, Protocol::Simple, |_| ())?;
    println!("{report}, with a line that was deleted");
    assert!(report.lost > 0 && report.verdict().is_err(), "{report}");
    Ok(())
}

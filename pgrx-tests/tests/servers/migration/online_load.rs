//! Online migrations beside writers, smaller than `make online-load` does it:
//! real `pgbench`, sessions that keep their IDs, transactions that sit idle.

use snowflake_tests::online_load::{self, Protocol, Sabotage, Size};

use crate::support::*;

fn size() -> Size {
    Size {
        scale: 1,
        orders: tier::size(5_000, 20_000),
        idle: Duration::from_secs(tier::size(1, 8)),
        alone: Duration::from_secs(1),
        keep_sequence: false,
        durable: false,
        sabotage: None,
    }
}

/// An idle transaction ends only when the sessions have written while a step waits
/// for it. If they waited for it too, the run would fail. `make online-load` judges
/// how long they wait, on a machine that does nothing else.
fn beside_writers(protocol: Protocol) -> Result<()> {
    let report = online_load::run(Cluster::builder(), size(), protocol, |_| ())?;
    println!("{report}");
    report.verdict()
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
    let smaller = Size {
        orders: 2_000,
        idle: Duration::from_secs(2),
        ..size()
    };
    // Writers wait behind a statement that waits for a transaction.
    let size = Size {
        sabotage: Some(Sabotage::MaintenancePlan),
        ..smaller
    };
    match online_load::run(Cluster::builder(), size, Protocol::Simple, |_| ()) {
        Ok(report) => {
            println!("{report}, by the plan for a maintenance window");
            assert!(
                report.verdict().is_err() || report.longest.took >= smaller.idle / 2,
                "{report}"
            );
        }
        // Or are given a deadlock.
        Err(error) => {
            let error = format!("{error:#}");
            assert!(error.contains("deadlock detected"), "{error}");
        }
    }
    // And what is gone is missed.
    let size = Size {
        sabotage: Some(Sabotage::LostRow),
        ..smaller
    };
    let report = online_load::run(Cluster::builder(), size, Protocol::Simple, |_| ())?;
    println!("{report}, with a line that was deleted");
    assert!(report.lost > 0 && report.verdict().is_err(), "{report}");
    Ok(())
}

//! Readers of new rows beside writers and faults, for less time than `make
//! new-rows` does it. The seed is printed; `OPTIONS='--seed …'` takes it.

use std::time::Duration;

use anyhow::Result;
use snowflake_tests::new_rows::{self, Bound, Size};
use snowflake_tests::{Cluster, time_limit};

fn size() -> Size {
    Size {
        writers: 16,
        rows: 100_000,
        length: Duration::from_secs(20),
        pause: Some(Duration::from_millis(500)),
        synchronous_commit: true,
        bound: Bound::Resolved,
        pgbouncer: new_rows::pgbouncer(),
        seed: rand::random(),
    }
}

#[test]
fn readers_below_the_resolved_id_lose_no_row() -> Result<()> {
    let limit = 2 * time_limit::DEFAULT;
    let report = new_rows::run(Cluster::builder(), &size(), limit, |_| ())?;
    println!("{report}");
    assert!(report.faults() > 0, "there was no fault");
    report.verdict()
}

#[test]
fn readers_below_another_bound_lose_rows() -> Result<()> {
    let size = Size {
        rows: 20_000,
        length: Duration::from_secs(3),
        pause: None,
        bound: Bound::Clock,
        ..size()
    };
    let report = new_rows::run(Cluster::builder(), &size, time_limit::DEFAULT, |_| ())?;
    println!("{report}, with a bound that is not safe");
    let mut readers = report.readers.iter().filter(|reader| !reader.is_control);
    assert!(
        readers.all(|reader| !reader.found.lost.is_empty()),
        "each reader must lose rows by this bound"
    );
    assert!(report.verdict().is_err());
    Ok(())
}

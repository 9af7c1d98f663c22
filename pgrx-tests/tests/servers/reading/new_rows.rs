//! Readers of new rows beside writers and faults, for less time than `make
//! new-rows` does it. The seed is printed; `OPTIONS='--seed …'` takes it.

use std::time::Duration;

use anyhow::Result;
use snowflake_tests::new_rows::{self, Bound, Size};
use snowflake_tests::{Cluster, query, time_limit};

use crate::support::wait_until;

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

/// A transaction that waits for a standby in PREPARE TRANSACTION is twice among the
/// running ones of a snapshot.
#[test]
fn a_transaction_that_is_being_prepared_hides_no_other() -> Result<()> {
    let cluster = Cluster::builder()
        .conf("snowflake.node_id", 1)
        .conf("max_prepared_transactions", 2)
        .start_with_extension()?;
    let mut observer = cluster.connect()?;
    observer
        .batch_execute("CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval())")?;
    cluster.set_conf("synchronous_standby_names", "none_that_exists")?;
    cluster.reload()?;
    observer.batch_execute("SET synchronous_commit = local")?;
    const OPEN: &str =
        "BEGIN; SET LOCAL synchronous_commit = local; INSERT INTO events DEFAULT VALUES";
    let mut earlier = cluster.connect()?;
    earlier.batch_execute(OPEN)?;
    let mut preparing = cluster.connect()?;
    preparing.batch_execute("BEGIN; INSERT INTO events DEFAULT VALUES")?;
    // So that both are below `xmax` of what follows.
    observer.batch_execute("INSERT INTO events DEFAULT VALUES")?;
    let mut reader = cluster.connect()?;
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")?;
    earlier.batch_execute("COMMIT")?;

    let cancel = preparing.cancel_token();
    std::thread::scope(|scope| {
        let prepare = scope.spawn(|| preparing.batch_execute("PREPARE TRANSACTION 'waits'"));
        wait_until(
            &mut observer,
            "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
        )?;
        let now = query::text(&mut observer, "SELECT snowflake_resolved_id()")?;
        const LOST: &str = "SELECT count(*) FROM events WHERE id < $1";
        let bound = query::text(&mut reader, "SELECT snowflake_resolved_id()")?;
        println!("resolved: {now:?} now, {bound:?} for the earlier snapshot");
        let bound: i64 = bound.map_or(Ok(0), |bound| bound.parse())?;
        let rows = |client: &mut postgres::Client| -> Result<i64> {
            Ok(client.query_one(LOST, &[&bound])?.get(0))
        };
        let (seen, there) = (rows(&mut reader)?, rows(&mut observer)?);
        cancel.cancel_query(postgres::NoTls)?;
        prepare.join().expect("a thread panicked")?;
        assert_eq!(
            seen, there,
            "rows below the answer for a snapshot, and those in the table"
        );
        Ok(())
    })
}

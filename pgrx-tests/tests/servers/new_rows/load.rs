//! Readers of new rows beside writers and faults, for less time than `make
//! new-rows` does it. The seed is printed; `OPTIONS='--seed …'` takes it.

use snowflake_tests::new_rows::{self, Bound, Size};
use snowflake_tests::time_limit;

use crate::support::*;

fn size() -> Size {
    Size {
        writers: 16,
        rows: tier::size(20_000, 100_000),
        length: Duration::from_secs(tier::size(8, 20)),
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
        // An open transaction makes it certain, however short the run is.
        rows: 0,
        length: Duration::ZERO,
        pause: None,
        bound: Bound::Clock,
        ..size()
    };
    let report = new_rows::run(Cluster::builder(), &size, time_limit::DEFAULT, |_| ())?;
    println!("{report}, with a bound that is not safe");
    for reader in &report.readers {
        assert!(
            !reader.found.lost.is_empty(),
            "this reader must lose rows: {}",
            reader.name
        );
    }
    assert!(report.verdict().is_err());
    Ok(())
}

/// While it waits for a standby, a transaction that is being prepared is twice among
/// those that a snapshot lists as running. So the number of these is the same as
/// before the end of another transaction.
#[test]
fn an_earlier_snapshot_gets_no_answer_of_a_later_one() -> Result<()> {
    const INSERT: &str = "INSERT INTO events DEFAULT VALUES";
    let cluster = Cluster::node(1)
        .conf("max_prepared_transactions", 2)
        .start_with_extension()?;
    let mut observer = cluster.connect()?;
    observer
        .batch_execute("CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval())")?;
    cluster.set_conf("synchronous_standby_names", "none_that_exists")?;
    cluster.reload()?;
    let mut ending = cluster.connect()?;
    let mut preparing = cluster.connect()?;
    let mut reader = cluster.connect()?;
    for client in [&mut observer, &mut ending] {
        client.batch_execute("SET synchronous_commit = local")?;
    }
    for client in [&mut ending, &mut preparing] {
        client.batch_execute(&format!("BEGIN; {INSERT}"))?;
    }
    // The other two are older than a transaction that has ended. A snapshot lists them.
    observer.batch_execute(INSERT)?;
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")?;
    ending.batch_execute("COMMIT")?;

    let cancel = preparing.cancel_token();
    let prepare = thread::spawn(move || preparing.batch_execute("PREPARE TRANSACTION 'waits'"));
    observer
        .wait_until("SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")?;
    observer.text("SELECT snowflake_resolved_id()")?;
    let bound = reader.text("SELECT snowflake_resolved_id()")?;
    let below = format!(
        "SELECT count(*) FROM events WHERE id < {}",
        bound.as_deref().unwrap_or("0")
    );
    let seen = reader.number(&below)?;
    let there = observer.number(&below)?;
    cancel.cancel_query(NoTls)?;
    prepare.join().expect("the thread panicked")?;
    assert_eq!(seen, there, "rows below the answer for an earlier snapshot");
    Ok(())
}

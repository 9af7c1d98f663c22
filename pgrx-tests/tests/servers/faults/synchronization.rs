//! A subscriber's mark, which `REFRESH SEQUENCES` sets to the publisher's (PostgreSQL 19).
//!
//! It writes the sequence as `setval` does, but by a worker of replication, whose statements
//! no hook sees; the simulator has the value that changes, but not who changes it. The sessions
//! of the subscriber generate IDs meanwhile, so it happens between reading the mark and
//! writing it, too.

use std::sync::atomic::{AtomicBool, Ordering};

use snowflake_tests::ids::ONE_SLOW_SLOT;

use super::mark::{crash_and_repeat, dense};
use crate::support::*;

/// A publisher of all its sequences, whose clock and layout differ from the subscriber's.
struct Publisher {
    what: &'static str,
    clock: Offset,
    layout: &'static str,
    /// Whose mark means a time far ahead here: how IDs are had again, `$1` is the mark before.
    remedy: Option<&'static str>,
    /// How often the sequences are synchronized beside the sessions.
    rounds: usize,
}

const PUBLISHERS: [Publisher; 3] = [
    Publisher {
        what: "behind",
        clock: Offset::back(Duration::from_secs(3_600)),
        layout: ONE_SLOW_SLOT.layout,
        remedy: None,
        rounds: 10,
    },
    Publisher {
        what: "ahead",
        clock: Offset::forward(Duration::from_secs(3_600)),
        layout: ONE_SLOW_SLOT.layout,
        remedy: Some("SELECT snowflake_start_after(last_value - 1) FROM snowflake_internal.mark"),
        rounds: 10,
    },
    Publisher {
        what: "of another layout",
        clock: Offset::NONE,
        layout: DEFAULT.layout,
        remedy: Some("SELECT setval('snowflake_internal.mark', $1)"),
        rounds: 0,
    },
];

#[test]
fn no_id_repeats_beside_a_synchronized_mark() -> Result<()> {
    for publisher in &PUBLISHERS {
        let what = publisher.what;
        let tally = Tally::of(beside(publisher, true)?);
        println!(
            "synchronization with a publisher {what}, {} times, then kill -9 and the clock back: {tally}",
            publisher.rounds + 1
        );
        tally.assert_unique();
        if tier::is_full() {
            let tally = Tally::of(beside(publisher, false)?);
            println!("synchronization with a publisher {what}, WITHOUT the mark: {tally}");
            tally.assert_found_duplicates();
        }
    }
    Ok(())
}

/// The IDs of a server whose mark is synchronized, and which then crashes.
fn beside(publisher: &Publisher, obeys_mark: bool) -> Result<Vec<i64>> {
    let source = Cluster::node(1)
        .conf("snowflake.layout", publisher.layout)
        .conf("wal_level", "logical")
        .movable_clock()
        .start()?;
    source.clock().set_offset(publisher.clock)?;
    let mut at_source = source.connect()?;
    at_source.batch_execute(
        "CREATE EXTENSION snowflake; CREATE PUBLICATION numbers FOR ALL SEQUENCES",
    )?;
    ids::one(&mut at_source)?;

    let mut subscriber = Cluster::node(1)
        .conf("wal_retrieve_retry_interval", "100ms")
        .movable_clock();
    if !obeys_mark {
        subscriber = subscriber.without_protection("mark");
    }
    let mut cluster = dense(subscriber, &ONE_SLOW_SLOT).start_with_extension()?;
    let mut client = cluster.connect()?;
    let mut received = ids::nextval(&mut client, 500)?;
    let mark = "SELECT last_value FROM snowflake_internal.mark";
    let before = client.number(mark)?;
    client.batch_execute(&format!(
        "CREATE SUBSCRIPTION theirs CONNECTION 'host={} port={} user=postgres dbname=postgres' PUBLICATION numbers",
        source.sockets().display(),
        source.port()
    ))?;
    wait_until_synchronized(&mut client)?;
    ensure!(
        client.number(mark)? == at_source.number(mark)?,
        "the mark was not synchronized"
    );

    if let Some(remedy) = publisher.remedy.filter(|_| obeys_mark) {
        // The mark is looked at when it is moved. Then it is as with setval: refused, until a
        // superuser says what is right.
        while let Ok(ids) = ids::nextval(&mut client, 100) {
            received.extend(ids);
        }
        let refused = client.expect_error("SELECT snowflake_nextval()")?;
        ensure!(refused.sqlstate == "58000", "{refused}");
        client.batch_execute(&remedy.replace("$1", &before.to_string()))?;
    }
    let done = AtomicBool::new(false);
    let taken = std::thread::scope(|scope| {
        let sessions = scope.spawn(|| {
            in_sessions(&cluster, "postgres", 4, |session| {
                let mut taken = Vec::new();
                while !done.load(Ordering::SeqCst) {
                    taken.extend(ids::nextval(session, 200)?);
                }
                assert_increasing(&taken, "a session beside the synchronization");
                Ok(taken)
            })
        });
        let over = SetOnDrop(&done);
        for _ in 0..publisher.rounds {
            client.batch_execute("ALTER SUBSCRIPTION theirs REFRESH SEQUENCES")?;
            wait_until_synchronized(&mut client)?;
        }
        drop(over);
        sessions.join().expect("the sessions")
    })?;
    println!("{} IDs beside the synchronization", grouped(taken.len()));
    received.extend(taken);
    crash_and_repeat(&mut cluster, &mut received, &ONE_SLOW_SLOT)?;
    Ok(received)
}

fn wait_until_synchronized(client: &mut Client) -> Result<()> {
    wait::until("the sequences", Duration::from_secs(60), || {
        let open = "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'";
        Ok(client.number(open)? == 0)
    })
}

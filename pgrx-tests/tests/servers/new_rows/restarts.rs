//! What a restart forgets, and that no answer from before it is broken.

use std::time::Duration;

use anyhow::{Context, Result};
use snowflake_tests::clock::Offset;
use snowflake_tests::ids::{self, DEFAULT};
use snowflake_tests::query::{number, value};
use snowflake_tests::{Stop, wait};

use super::{builder, insert, new_rows, resolved_id, server, wait_for_rows};

const STATUS: &str =
    "SELECT format('%s %s %s', resolved_id IS NULL, resolved_age IS NULL, unknown_prepared)
    FROM snowflake_status";

#[test]
fn the_answer_is_unknown_while_a_transaction_is_prepared_since_before_the_start() -> Result<()> {
    for stop in [Stop::Fast, Stop::Immediate] {
        let mut server = server(builder())?;
        let mut client = server.connect()?;
        insert(&mut client, "first")?;
        for gid in ["one", "other"] {
            client.batch_execute(&format!(
                "BEGIN; INSERT INTO events (note) VALUES ('{gid}'); PREPARE TRANSACTION '{gid}'"
            ))?;
        }
        assert_eq!(value(&mut client, STATUS)?, "f f 0");
        drop(client);
        server.stop(stop)?;
        server.start()?;
        let mut client = server.connect()?;
        assert_eq!(resolved_id(&mut client)?, None);
        assert_eq!(value(&mut client, STATUS)?, "t t 2");
        let names = "SELECT string_agg(gid, ' ' ORDER BY gid) FROM snowflake_unresolved WHERE first_id IS NULL";
        assert_eq!(value(&mut client, names)?, "one other");
        // Those of this start are known.
        client.batch_execute(
            "BEGIN; INSERT INTO events (note) VALUES ('known'); PREPARE TRANSACTION 'known'",
        )?;
        assert_eq!(value(&mut client, STATUS)?, "t t 2");
        client.batch_execute("COMMIT PREPARED 'one'")?;
        assert_eq!(resolved_id(&mut client)?, None);
        assert_eq!(new_rows(&mut client, 0)?, [] as [&str; 0]);
        // Other databases are not concerned.
        let mut other = server.connect_to_new_database("other")?;
        assert!(resolved_id(&mut other)?.is_some());
        client.batch_execute("ROLLBACK PREPARED 'other'")?;
        assert_eq!(value(&mut client, STATUS)?, "f f 0");
        wait_for_rows(&mut client, &["first", "one"])?;
        client.batch_execute("COMMIT PREPARED 'known'")?;
        wait_for_rows(&mut client, &["first", "one", "known"])?;
        println!("{stop:?}: unknown until both had ended");
    }
    Ok(())
}

/// The answer is at most what is reserved in the write-ahead log. Otherwise the clock,
/// set back during a crash, would lead to IDs below it.
#[test]
fn no_id_is_below_an_answer_from_before_a_crash_with_the_clock_set_back() -> Result<()> {
    let mut server = server(builder().movable_clock())?;
    let mut client = server.connect()?;
    insert(&mut client, "first")?;
    // Time passes, and no session generates an ID.
    server
        .clock()
        .step(Offset::forward(Duration::from_secs(3_600)))?;
    let mut answer = None;
    wait::until("the row can be read", Duration::from_secs(60), || {
        answer = resolved_id(&mut client)?;
        Ok(new_rows(&mut client, 0)? == ["first"])
    })?;
    let answer = answer.context("an answer")?;
    server.kill9_all()?;
    server
        .clock()
        .step(Offset::back(Duration::from_secs(3_600)))?;
    server.start()?;
    let mut client = server.connect()?;
    // Before the first ID: from the mark's page.
    assert_eq!(
        new_rows(&mut client, 0)?.len() + 1,
        2,
        "the row before the crash"
    );
    let after = resolved_id(&mut client)?;
    let id = insert(&mut client, "second")?;
    assert!(id >= answer, "{id} is below {answer}");
    assert!(
        after.is_none_or(|after| id >= after),
        "{id} is below {after:?}"
    );
    wait_for_rows(&mut client, &["first", "second"])?;
    println!("answers {answer} and {after:?}, then the ID {id}");
    Ok(())
}

/// Readers do not carry the IDs ahead: neither with a clock that jumps, nor with a mark
/// that somebody has set.
#[test]
fn readers_do_not_move_the_time_of_ids() -> Result<()> {
    let mut server = server(builder().movable_clock())?;
    let mut client = server.connect()?;
    let lease = 2_000_000;
    let now = |server: &snowflake_tests::Cluster| server.clock().now_us();
    ids::one(&mut client)?;
    for _ in 0..20 {
        server
            .clock()
            .step(Offset::forward(Duration::from_secs(600)))?;
        resolved_id(&mut client)?;
        server
            .clock()
            .step(Offset::back(Duration::from_secs(600)))?;
    }
    let ahead = DEFAULT.time_us(ids::one(&mut client)?) - now(&server);
    assert!(ahead <= 2 * lease, "{ahead} us ahead");
    // As any role may do that may set sequences.
    drop(client);
    server.stop(Stop::Fast)?;
    server.start()?;
    let mut client = server.connect()?;
    let mut other = server.connect_to_new_database("other")?;
    value(
        &mut client,
        "SELECT setval('snowflake_internal.mark', snowflake_min_id(now() + interval '1 year'))",
    )?;
    for _ in 0..20 {
        resolved_id(&mut client)?;
    }
    let set = DEFAULT.time_us(ids::one(&mut other)?) - now(&server);
    assert!(set <= 2 * lease, "{set} us ahead");
    println!("{ahead} and {set} us ahead of the clock");
    Ok(())
}

#[test]
fn a_crash_of_a_backend_leaves_nothing_behind() -> Result<()> {
    let server = server(builder())?;
    let mut client = server.connect()?;
    insert(&mut client, "first")?;
    client.batch_execute("BEGIN; INSERT INTO events (note) VALUES ('lost')")?;
    server.kill9_backend(ids::backend_pid(&mut client)?)?;
    let mut client = server.connect()?;
    assert_eq!(
        number(&mut client, "SELECT count(*) FROM snowflake_unresolved")?,
        0
    );
    insert(&mut client, "second")?;
    wait_for_rows(&mut client, &["first", "second"])?;
    Ok(())
}

/// An answer from the mark's page is not given before the page's record is in the log on
/// disk: after a crash the mark would be below the answer. A `setval` in an open
/// transaction leaves its record unflushed, as a process does that was about to flush it.
#[test]
fn an_answer_from_the_marks_page_is_flushed() -> Result<()> {
    // Nothing else flushes within ten seconds.
    let mut server = server(
        builder()
            .conf("wal_writer_delay", "10s")
            .conf("wal_writer_flush_after", "1GB")
            .conf("autovacuum", "off"),
    )?;
    server.restart()?;
    let (mut setter, mut client) = (server.connect()?, server.connect()?);
    value(&mut client, "SELECT pg_current_wal_flush_lsn()")?;
    setter.batch_execute("BEGIN")?;
    value(
        &mut setter,
        "SELECT setval('snowflake_internal.mark', 12345)",
    )?;
    let written = value(&mut setter, "SELECT pg_current_wal_insert_lsn()")?;
    resolved_id(&mut client)?.context("an answer")?;
    assert_eq!(
        value(
            &mut client,
            &format!("SELECT pg_current_wal_flush_lsn() >= '{written}'")
        )?,
        "t"
    );
    setter.batch_execute("ROLLBACK")?;
    Ok(())
}

//! What a restart forgets, and that no answer from before it is broken.

use super::{builder, insert, new_rows, resolved_id, server, wait_for_rows};
use crate::support::*;

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
        client.answers(STATUS, "f f 0")?;
        drop(client);
        server.stop(stop)?;
        server.start()?;
        let mut client = server.connect()?;
        assert_eq!(resolved_id(&mut client)?, None);
        client.answers(STATUS, "t t 2")?;
        let names = "SELECT string_agg(gid, ' ' ORDER BY gid) FROM snowflake_unresolved WHERE first_id IS NULL";
        client.answers(names, "one other")?;
        // Those of this start are known.
        client.batch_execute(
            "BEGIN; INSERT INTO events (note) VALUES ('known'); PREPARE TRANSACTION 'known'",
        )?;
        client.answers(STATUS, "t t 2")?;
        client.batch_execute("COMMIT PREPARED 'one'")?;
        assert_eq!(resolved_id(&mut client)?, None);
        assert_eq!(new_rows(&mut client, 0)?, [] as [&str; 0]);
        // Other databases are not concerned.
        let mut other = server.connect_to_new_database("other")?;
        assert!(resolved_id(&mut other)?.is_some());
        client.batch_execute("ROLLBACK PREPARED 'other'")?;
        client.answers(STATUS, "f f 0")?;
        wait_for_rows(&mut client, &["first", "one"])?;
        client.batch_execute("COMMIT PREPARED 'known'")?;
        wait_for_rows(&mut client, &["first", "one", "known"])?;
        println!("{stop:?}: unknown until both had ended");
    }
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
    client.value("SELECT pg_current_wal_flush_lsn()")?;
    setter.batch_execute("BEGIN")?;
    setter.value("SELECT setval('snowflake_internal.mark', 12345)")?;
    let written = setter.value("SELECT pg_current_wal_insert_lsn()")?;
    resolved_id(&mut client)?.context("an answer")?;
    client.answers(
        &format!("SELECT pg_current_wal_flush_lsn() >= '{written}'"),
        "t",
    )?;
    setter.batch_execute("ROLLBACK")?;
    Ok(())
}

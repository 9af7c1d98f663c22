//! Which transactions hold back what is read, and until when.

use super::{builder, insert, new_rows, resolved_id, server, wait_for_next_tick, wait_for_rows};
use crate::support::*;

const UNRESOLVED: &str = "SELECT count(*) FROM snowflake_unresolved";

/// Ways in which a transaction ends, and whether its row stays.
type End = (&'static str, fn(Client, &mut Client) -> Result<()>, bool);

const ENDS: &[End] = &[
    (
        "committed",
        |mut writer, _| Ok(writer.batch_execute("COMMIT")?),
        true,
    ),
    (
        "rolled back",
        |mut writer, _| Ok(writer.batch_execute("ROLLBACK")?),
        false,
    ),
    (
        "ended by an error",
        |mut writer, _| {
            assert!(writer.batch_execute("SELECT 1/0").is_err());
            Ok(writer.batch_execute("ROLLBACK")?)
        },
        false,
    ),
    (
        "disconnected",
        |writer, _| {
            drop(writer);
            Ok(())
        },
        false,
    ),
    (
        "terminated",
        |mut writer, other| {
            let pid = writer.number("SELECT pg_backend_pid()")?;
            other.value(&format!("SELECT pg_terminate_backend({pid}, 30000)"))?;
            Ok(())
        },
        false,
    ),
    (
        "prepared and committed by another session",
        |mut writer, other| {
            writer.batch_execute("PREPARE TRANSACTION 'it'")?;
            assert_still_held(other, Some("it"))?;
            drop(writer);
            assert_still_held(other, Some("it"))?;
            Ok(other.batch_execute("COMMIT PREPARED 'it'")?)
        },
        true,
    ),
    (
        "prepared and rolled back",
        |mut writer, other| {
            writer.batch_execute("PREPARE TRANSACTION 'it'")?;
            assert_still_held(other, Some("it"))?;
            Ok(writer.batch_execute("ROLLBACK PREPARED 'it'")?)
        },
        false,
    ),
    (
        "not prepared, because of an error",
        |mut writer, other| {
            // Temporary objects cannot be prepared.
            writer.batch_execute("CREATE TEMP TABLE t (a int)")?;
            assert!(writer.batch_execute("PREPARE TRANSACTION 'it'").is_err());
            other.answers("SELECT count(*) FROM pg_prepared_xacts", 0)?;
            Ok(())
        },
        false,
    ),
];

/// The row of the open transaction, and those after it, are not read.
fn assert_still_held(reader: &mut Client, gid: Option<&str>) -> Result<()> {
    wait_for_next_tick(reader)?;
    assert_eq!(new_rows(reader, 0)?, ["first"]);
    let holder = reader.text("SELECT gid FROM snowflake_unresolved")?;
    assert_eq!(holder.as_deref(), gid);
    Ok(())
}

#[test]
fn an_open_transaction_with_ids_holds_back_all_later_rows() -> Result<()> {
    let server = server(builder())?;
    for &(what, end, stays) in ENDS {
        server.run("TRUNCATE events")?;
        let (mut reader, mut other) = (server.connect()?, server.connect()?);
        insert(&mut other, "first")?;
        wait_for_rows(&mut reader, &["first"])?;
        let mut writer = server.connect()?;
        writer.batch_execute("BEGIN")?;
        let held = insert(&mut writer, "open")?;
        // In a later tick: within one, the order is that of the slots.
        wait_for_next_tick(&mut other)?;
        insert(&mut other, "later")?;
        assert_still_held(&mut reader, None)?;
        let resolved = resolved_id(&mut reader)?;
        assert!(
            resolved.is_some_and(|id| id <= held),
            "{resolved:?}, {held}"
        );
        end(writer, &mut other)?;
        let expected: &[&str] = if stays {
            &["first", "open", "later"]
        } else {
            &["first", "later"]
        };
        wait_for_rows(&mut reader, expected)?;
        reader.answers(UNRESOLVED, 0).context(what)?;
    }
    Ok(())
}

#[test]
fn what_has_nothing_to_do_with_ids_of_this_database_holds_back_nothing() -> Result<()> {
    let server = server(builder())?;
    let mut reader = server.connect()?;
    // A transaction with an ID of its own, and a snapshot.
    let mut unrelated = server.connect()?;
    unrelated.batch_execute("CREATE TABLE other (a int)")?;
    unrelated
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO other VALUES (1)")?;
    // A prepared one without IDs.
    server.run("BEGIN; INSERT INTO other VALUES (1); PREPARE TRANSACTION 'unrelated'")?;
    // Snowflake IDs in another database, also prepared.
    let mut elsewhere = server.connect_to_new_database("elsewhere")?;
    elsewhere
        .batch_execute("BEGIN; SELECT snowflake_nextval(); PREPARE TRANSACTION 'elsewhere'")?;
    elsewhere.batch_execute("BEGIN; SELECT snowflake_nextval()")?;
    insert(&mut server.connect()?, "new")?;
    wait_for_rows(&mut reader, &["new"])?;
    reader.answers(UNRESOLVED, 0)?;
    elsewhere.answers(UNRESOLVED, 2)?;
    Ok(())
}

#[test]
fn what_parallel_workers_draw_holds_back_until_their_leader_has_ended() -> Result<()> {
    let server = server(builder())?;
    let mut leader = server.connect()?;
    leader.batch_execute(
        "CREATE TABLE many AS SELECT generate_series(1, 20000) AS n; ANALYZE many;
         SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
         SET parallel_leader_participation = off",
    )?;
    let plan = "EXPLAIN (ANALYZE, TIMING off, SUMMARY off, COSTS off) SELECT snowflake_nextval() FROM many";
    let plan: Vec<String> = leader.column(plan)?;
    let launched = plan
        .iter()
        .find_map(|line| line.trim().strip_prefix("Workers Launched: "));
    assert!(launched.is_some_and(|n| n != "0"), "{plan:?}");
    leader.batch_execute(
        "BEGIN; CREATE TEMP TABLE drawn ON COMMIT DROP AS SELECT snowflake_nextval() AS id FROM many",
    )?;
    let mut reader = server.connect()?;
    reader.answers(
        "SELECT pid FROM snowflake_unresolved",
        leader.number("SELECT pg_backend_pid()")?,
    )?;
    insert(&mut server.connect()?, "later")?;
    wait_for_next_tick(&mut reader)?;
    let least = leader.number("SELECT min(id) FROM drawn")?;
    assert!(resolved_id(&mut reader)?.is_some_and(|id| id <= least));
    assert_eq!(new_rows(&mut reader, 0)?, [] as [&str; 0]);
    // An ID of the leader, above those of its workers, does not let them go.
    leader.batch_execute("INSERT INTO events (note) VALUES ('of the leader')")?;
    wait_for_next_tick(&mut reader)?;
    assert!(resolved_id(&mut reader)?.is_some_and(|id| id <= least));
    leader.batch_execute("INSERT INTO events SELECT id, 'of a worker' FROM drawn; COMMIT")?;
    wait::until("all are read", Duration::from_secs(60), || {
        Ok(new_rows(&mut reader, 0)?.len() == 20_002)
    })?;
    reader.answers(UNRESOLVED, 0)?;
    Ok(())
}

#[test]
fn a_transaction_that_holds_back_for_long_is_logged_with_what_to_do() -> Result<()> {
    let server = server(builder().conf("snowflake.log_unresolved_min_duration", "200ms"))?;
    let (mut reader, mut writer) = (server.connect()?, server.connect()?);
    writer.batch_execute("BEGIN")?;
    let id = insert(&mut writer, "open")?;
    let pid = writer.number("SELECT pg_backend_pid()")?;
    let mut log = String::new();
    wait::until("it is logged", Duration::from_secs(60), || {
        resolved_id(&mut reader)?;
        log = server.log_since_start()?;
        Ok(log.contains("has held back"))
    })?;
    assert!(log.contains(&format!(
        "WARNING:  snowflake: process {pid} has held back snowflake_resolved_id() for "
    )));
    assert!(log.contains(&format!("has generated ID {id} at ")), "{log}");
    assert!(log.contains("HINT:  See snowflake_unresolved."));
    // Once a minute.
    for _ in 0..100 {
        resolved_id(&mut reader)?;
    }
    assert_eq!(
        server.log_since_start()?.matches("has held back").count(),
        1
    );
    assert!(reader.value("SELECT resolved_age > '0.2 s' FROM snowflake_status")? == "t");
    writer.batch_execute("COMMIT")?;
    assert!(reader.value("SELECT resolved_age = '0' FROM snowflake_status")? == "t");
    Ok(())
}

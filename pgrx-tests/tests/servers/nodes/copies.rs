//! A data directory that was copied with its node number.

use std::process::Command;

use crate::support::*;

const COPIED: &str = "may be a copy of one with the same node number";
const COPIED_FROM: &str = "SELECT copied_from FROM snowflake_status";

fn copied_from(server: &Server) -> Result<Option<String>> {
    server.connect()?.text(COPIED_FROM)
}

fn original() -> Result<Cluster> {
    Cluster::builder()
        .can_be_copied()
        .conf("snowflake.node_id", 1)
        .start_with_extension()
}

/// Asserts that neither the log nor the status takes the server for a copy.
fn assert_no_copy(server: &Server, what: &str) -> Result<()> {
    assert_eq!(copied_from(server)?, None, "{what}");
    ensure!(
        !server.log_since_start()?.contains(COPIED),
        "{what}: {}",
        server.log_since_start()?
    );
    Ok(())
}

/// Asserts that the log and the status take it for one, and that it issues IDs.
fn assert_copy(server: &Server, of: &Server, what: &str) -> Result<()> {
    let from = copied_from(server)?.unwrap_or_default();
    let path = of.data().canonicalize()?;
    ensure!(from.contains(&path.display().to_string()), "{what}: {from}");
    let log = server.log_since_start()?;
    ensure!(
        log.contains(COPIED) && log.contains("HINT:  If the other server still runs"),
        "{what}: {log}"
    );
    server.connect()?.value("SELECT snowflake_nextval()")?;
    Ok(())
}

#[test]
fn a_copy_that_is_started_as_a_server_of_its_own_says_so() -> Result<()> {
    let primary = original()?;
    assert_no_copy(&primary, "a new server")?;
    let mut copy = Cluster::builder().prepare_copy_of(&primary)?;
    copy.start()?;
    assert_copy(&copy, &primary, "a base backup, started")?;
    // Until somebody has decided, also after a restart and a crash.
    copy.restart()?;
    assert_copy(&copy, &primary, "restarted")?;
    let mut client = copy.connect()?;
    copy.kill9_backend(ids::backend_pid(&mut client)?)?;
    assert_copy(&copy, &primary, "after a crash")?;

    let mut client = copy.connect()?;
    client.batch_execute("CREATE ROLE ordinary; GRANT EXECUTE ON FUNCTION snowflake_accept_node_id TO ordinary; SET ROLE ordinary")?;
    client.answers(COPIED_FROM, "<insufficient privilege>")?;
    assert_eq!(
        client
            .expect_error("SELECT snowflake_accept_node_id()")?
            .sqlstate,
        "42501"
    );
    client.batch_execute("RESET ROLE; SELECT snowflake_accept_node_id()")?;
    assert_eq!(copied_from(&copy)?, None);
    copy.restart()?;
    assert_no_copy(&copy, "accepted, and restarted")?;
    Ok(())
}

#[test]
fn a_copy_with_a_number_of_its_own_is_no_news() -> Result<()> {
    let primary = original()?;
    let mut copy = Cluster::node(2).prepare_copy_of(&primary)?;
    copy.start()?;
    assert_no_copy(&copy, "a base backup with another number")
}

#[test]
fn standbys_and_failovers_are_no_copies() -> Result<()> {
    let mut primary = original()?;
    let mut standby = Cluster::builder().prepare_standby_of(&primary)?;
    standby.start()?;
    assert_no_copy(&standby, "a standby with the primary server's number")?;
    standby.catch_up_with(&primary)?;
    primary.stop(Stop::Immediate)?;
    standby.promote()?;
    assert_no_copy(&standby, "promoted")?;
    standby.restart()?;
    assert_no_copy(&standby, "promoted and restarted")?;
    // Back as a standby, then as the primary server.
    primary.start()?;
    primary.stop(Stop::Fast)?;
    primary.rewind_to(&standby)?;
    primary.follow(&standby)?;
    primary.start()?;
    assert_no_copy(&primary, "rewound")?;
    primary.catch_up_with(&standby)?;
    standby.stop(Stop::Fast)?;
    primary.promote()?;
    primary.restart()?;
    assert_no_copy(&primary, "promoted again and restarted")
}

/// Copies a directory that no server uses, with its times.
fn copy_files(from: &Server, to: &Server) -> Result<()> {
    std::fs::remove_dir_all(to.data())?;
    let done = Command::new("cp")
        .arg("-a")
        .arg(from.data())
        .arg(to.data())
        .status()?;
    ensure!(done.success(), "cp: {done}");
    Ok(())
}

#[test]
fn a_moved_directory_is_no_copy_and_a_copied_one_is() -> Result<()> {
    let mut server = original()?;
    server.stop(Stop::Fast)?;
    let other = Cluster::node(1).prepare()?;
    std::fs::remove_dir_all(other.data())?;
    std::fs::rename(server.data(), other.data())?;
    let mut moved = other;
    moved.start()?;
    assert_no_copy(&moved, "a directory under another path")?;
    moved.stop(Stop::Fast)?;

    let mut copied = Cluster::node(1).prepare()?;
    copy_files(&moved, &copied)?;
    copied.start()?;
    assert_copy(&copied, &moved, "files copied by cp")?;
    copied.stop(Stop::Fast)?;
    moved.start()?;
    assert_no_copy(&moved, "the original")
}

#[test]
fn a_damaged_or_unwritable_file_stops_nothing() -> Result<()> {
    let mut server = original()?;
    let file = server.data().join("snowflake.server");
    let contents = std::fs::read_to_string(&file)?;
    ensure!(
        contents.starts_with("snowflake server 1\nnode 1\n"),
        "{contents}"
    );
    for damaged in [
        "",
        "\0\0\0",
        "snowflake server 2\n",
        "snowflake server 1\nnode x\n",
        "snowflake server 1\nconflict -1\n",
    ] {
        server.stop(Stop::Fast)?;
        std::fs::write(&file, damaged)?;
        server.start()?;
        assert_no_copy(&server, "a damaged file")?;
        server.connect()?.value("SELECT snowflake_nextval()")?;
        assert_eq!(std::fs::read_to_string(&file)?, contents);
    }
    // A directory in its place can be neither read nor replaced.
    server.stop(Stop::Fast)?;
    std::fs::remove_file(&file)?;
    std::fs::create_dir(&file)?;
    server.start()?;
    ensure!(
        server
            .log_since_start()?
            .contains("snowflake: could not read file \"snowflake.server\"")
    );
    server.connect()?.value("SELECT snowflake_nextval()")?;
    server
        .connect()?
        .refused("SELECT snowflake_accept_node_id()", "58030")?;
    Ok(())
}

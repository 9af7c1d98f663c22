//! What fills a disk while rows are copied: a replication slot, and files that grow.

use std::fs;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use super::{LIMIT, run_before};
use crate::support::*;

const DONE: &str = "SELECT coalesce(sum(rows_done), 0)::bigint FROM snowflake_migrate.progress";

/// A table whose online migration has come to the backfill.
fn prepare(client: &mut Client, rows: i64, tablespace: &str) -> Result<()> {
    client.batch_execute(&format!(
        "CREATE TABLE t (id serial PRIMARY KEY USING INDEX TABLESPACE {tablespace}, note text) TABLESPACE {tablespace};
         INSERT INTO t (note) SELECT repeat('n', 200) FROM generate_series(1, {rows}) AS n; ANALYZE t"
    ))?;
    run_before(client, "'t'", Step::is_backfill)?;
    Ok(())
}

/// Runs a backfill beside what `meanwhile` does.
fn beside(
    cluster: &Cluster,
    arguments: &str,
    meanwhile: impl FnOnce(&mut Client) -> Result<()>,
) -> Result<Result<(), postgres::Error>> {
    let (mut running, mut client) = (cluster.connect()?, cluster.connect()?);
    let call = format!("CALL snowflake_migrate.backfill('t', {arguments})");
    thread::scope(|scope| {
        let backfill = scope.spawn(move || running.batch_execute(&call));
        meanwhile(&mut client)?;
        wait::until("the end of the backfill", LIMIT, || {
            Ok(backfill.is_finished())
        })?;
        Ok(backfill.join().expect("the session's thread"))
    })
}

/// Needs a second session: the one of the backfill waits.
#[test]
fn the_backfill_waits_while_a_slot_keeps_more_than_its_limit() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    prepare(&mut client, 50_000, "pg_default")?;
    client.batch_execute("SELECT pg_create_physical_replication_slot('standing', true)")?;
    let mut stood_at = 0;
    beside(
        &cluster,
        "batch_size => 1000, max_slot_wal => '4 MB'",
        |client| {
            client.wait_until(
                "SELECT count(*) = 1 FROM snowflake_migrate.progress
             WHERE waiting_for = 'replication slots: standing keep more than 4096 kB of WAL'",
            )?;
            stood_at = client.number(DONE)?;
            thread::sleep(Duration::from_millis(500));
            ensure!(
                client.number(DONE)? == stood_at,
                "it did not wait for the slot"
            );
            client.batch_execute("SELECT pg_drop_replication_slot('standing')")?;
            Ok(())
        },
    )??;
    ensure!(stood_at < 50_000, "all was done at {stood_at}");
    online::migrate(&mut client, "'t'")?;
    Ok(())
}

/// Needs a second session, as above. It is at most one batch beyond the limit.
#[test]
fn the_backfill_stops_at_a_growth_and_resumes() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    prepare(&mut client, 50_000, "pg_default")?;
    let before = client.number("SELECT pg_total_relation_size('t')")?;
    let mut grown = 0;
    beside(
        &cluster,
        "batch_size => 1000, max_growth => '4 MB'",
        |client| {
            client.wait_until(
                "SELECT count(*) = 1 FROM snowflake_migrate.progress WHERE waiting_for = 'max_growth: the tables have grown by 4096 kB'",
            )?;
            grown = client.number("SELECT pg_total_relation_size('t')")? - before;
            // The application writes, and the limit is raised.
            client.batch_execute(
            "INSERT INTO t (note) VALUES ('new'); CALL snowflake_migrate.pace('t', max_growth => '1 GB')",
        )?;
            Ok(())
        },
    )??;
    ensure!((4 << 20..8 << 20).contains(&grown), "grown by {grown}");
    online::migrate(&mut client, "'t'")?;
    Ok(())
}

/// Mounts a small file system, in the tests' own mount namespace: the server that is
/// started from it has it too.
fn mount_small(directory: &Path) -> Result<()> {
    let nothing = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS).context("making a mount namespace")?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(nothing, "/", nothing, private, nothing).context("making mounts private")?;
    let (tmpfs, size) = (Some("tmpfs"), Some("size=24m,mode=700"));
    mount(tmpfs, directory, tmpfs, MsFlags::empty(), size).context("mounting a file system")
}

fn enlarge(directory: &Path) -> Result<()> {
    let (nothing, size) = (None::<&str>, Some("size=200m"));
    mount(nothing, directory, nothing, MsFlags::MS_REMOUNT, size).map_err(Into::into)
}

/// A server with a tablespace `small` on a file system of its own.
fn with_small_disk(work: fn(&Cluster, &Path) -> Result<()>) -> Result<()> {
    let small = move || {
        let name = format!("snowflake-small-{:?}", thread::current().id());
        let directory = std::env::temp_dir().join(name.replace(['(', ')'], "-"));
        fs::create_dir_all(&directory)?;
        mount_small(&directory)?;
        let cluster = Cluster::with_migrate()?;
        cluster.os_user().own(&directory)?;
        cluster.run(&format!(
            "CREATE TABLESPACE small LOCATION '{}'",
            directory.display()
        ))?;
        work(&cluster, &directory)?;
        drop(cluster);
        umount2(&directory, MntFlags::MNT_DETACH)?;
        Ok(fs::remove_dir(&directory)?)
    };
    // A thread of its own: it is the thread that gets a mount namespace.
    thread::scope(|scope| scope.spawn(small).join()).expect("the thread with the full disk")
}

/// Only a file system of its own becomes full.
#[test]
fn a_full_disk_loses_nothing_and_the_plan_resumes() -> Result<()> {
    with_small_disk(|cluster, directory| {
        let mut client = cluster.connect()?;
        prepare(&mut client, 50_000, "small")?;
        let error = client
            .batch_execute("CALL snowflake_migrate.backfill('t', batch_size => 1000)")
            .expect_err("the disk is full");
        let error = ServerError::from_error(error)?;
        assert_eq!(error.sqlstate, "53100", "{error}");
        ensure!(error.hint.contains("it resumes where it was"), "{error}");
        let done = client.number(DONE)?;
        ensure!(done > 0 && done < 50_000, "{done} rows");
        enlarge(directory)?;
        online::migrate(&mut client, "'t'")?;
        client.answers("SELECT count(*) FROM t", "50000")
    })
}

/// As above, and psql ends at the error.
#[test]
fn a_script_resumes_after_a_full_disk() -> Result<()> {
    const TABLE: &str = "CREATE TABLE t (id serial PRIMARY KEY USING INDEX TABLESPACE small, note text) TABLESPACE small";
    with_small_disk(|cluster, directory| {
        cluster.run("CREATE ROLE keeper LOGIN; GRANT CREATE ON TABLESPACE small TO keeper")?;
        let of_keeper = "GRANT ALL ON SCHEMA public TO keeper; SET ROLE keeper";
        let mut planned = cluster.connect_to_new_database("planned")?;
        planned.run([of_keeper, TABLE])?;
        let script = planned.value("SELECT snowflake_migrate.script('t', online => true)")?;
        online::migrate(&mut planned, "'t', keep_sequence => true")?;
        planned.run([
            "RESET ROLE",
            "DROP EXTENSION snowflake_migrate",
            "DROP EXTENSION snowflake",
        ])?;
        let expected = schema(cluster, "planned")?;
        cluster.connect()?.run([
            "CREATE DATABASE target TEMPLATE template0",
            "GRANT CREATE ON DATABASE target TO keeper",
        ])?;
        let mut client = cluster.connect_to("target")?;
        let rows = "INSERT INTO t (note) SELECT repeat('n', 200) FROM generate_series(1, 50000)";
        client.run([of_keeper, TABLE, rows, "ANALYZE t"])?;
        let stopped = psql(cluster, "keeper", "target", &script, true)?;
        ensure!(
            !stopped.success && stopped.errors.contains("No space left on device"),
            "{stopped:?}"
        );
        let name = client
            .value("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'snowflake_script%'")?;
        let done = client.number(&format!("SELECT rows_copied FROM {name}.widening_progress"))?;
        ensure!(done > 0 && done < 50_000, "{done} rows");
        enlarge(directory)?;
        let again = psql(cluster, "keeper", "target", &script, true)?;
        ensure!(again.success, "{again:?}");
        assert_same_schema(&expected, &schema(cluster, "target")?, "after a full disk");
        client.answers(
            "SELECT concat_ws(' ', count(*), sum(id)) FROM t",
            "50000 1250025000",
        )
    })
}

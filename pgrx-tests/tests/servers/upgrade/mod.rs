//! The update of the extension to a next version, which is made up for these tests
//! (`snowflake_tests::next_version`). The role `app` owns the databases and the extension
//! in them, and is no superuser.

mod broken_off;
mod dump;
mod fingerprint;
mod in_use;
mod standby;
mod under_way;

use std::thread::JoinHandle;

use snowflake_tests::next_version::{NextVersion, PAUSE_UPDATES};
use snowflake_tests::workload::{self, Mode, Workload};

use crate::migration::run_before;
use crate::support::*;

const CREATE: &str = "CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate";
const UPDATE: &str = "ALTER EXTENSION snowflake UPDATE; ALTER EXTENSION snowflake_migrate UPDATE";
const VERSION: &str = "SELECT extversion FROM pg_extension WHERE extname = 'snowflake'";

/// The statements that create a version of the extensions. `schema` is a clause of the
/// first one.
fn create_version(schema: &str, version: &str) -> String {
    format!(
        "CREATE EXTENSION snowflake{schema} VERSION '{version}'; CREATE EXTENSION snowflake_migrate VERSION '{version}'"
    )
}

/// The roles that reverted migrations, in the column that the next version appends.
const REVERTED_BY: &str = "SELECT string_agg(DISTINCT coalesce(reverted_by, 'unknown'), ', ')
    FROM snowflake_migrate_internal.visible_origins() WHERE reverted_at IS NOT NULL";

/// A server with both versions, and the role `app`.
fn server(next: &NextVersion) -> Result<Cluster> {
    start(Cluster::builder(), next)
}

/// The same with further settings.
fn start(builder: ClusterBuilder, next: &NextVersion) -> Result<Cluster> {
    let cluster = builder
        .installation(next.installation.clone())
        .conf("snowflake.node_id", 1)
        .start()?;
    cluster.run("CREATE ROLE app LOGIN")?;
    Ok(cluster)
}

/// Creates a database of `app`, and the extension by this statement of `app`.
fn create_database(cluster: &Cluster, database: &str, create: &str) -> Result<Client> {
    cluster.run(&format!("CREATE DATABASE {database} OWNER app"))?;
    let mut app = cluster.connect_as("app", database)?;
    app.batch_execute(create)?;
    Ok(app)
}

/// Creates the database `old` of today's version, in which `t` and `i` are migrated, and
/// `o` is half migrated online.
fn create_in_use(cluster: &Cluster, next: &NextVersion) -> Result<Client> {
    let create = create_version("", &next.today);
    let mut app = create_database(cluster, "old", &create)?;
    app.batch_execute(
        "CREATE SCHEMA own;
         CREATE TABLE own.t (id serial PRIMARY KEY, n int); INSERT INTO own.t (n) SELECT 1 FROM generate_series(1, 10);
         CREATE TABLE own.i (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int); INSERT INTO own.i (n) SELECT 1 FROM generate_series(1, 10);
         CREATE TABLE own.o (id serial PRIMARY KEY, n int); INSERT INTO own.o (n) SELECT 1 FROM generate_series(1, 1000);
         CREATE TABLE own.r (o_id int REFERENCES own.o); INSERT INTO own.r SELECT id FROM own.o;
         CREATE VIEW own.layouts AS SELECT * FROM snowflake_layouts;
         CALL snowflake_migrate.run('own.t'); CALL snowflake_migrate.run('own.i');
         INSERT INTO own.t (n) VALUES (1); INSERT INTO own.i (n) VALUES (1)",
    )?;
    let (steps, backfill) = run_before(&mut app, "'own.o'", online::Step::is_backfill)?;
    app.run([&steps[backfill].statement])?;
    Ok(app)
}

/// Finishes and reverts these migrations in the next version. Returns a snowflake ID.
fn finish(app: &mut Client) -> Result<i64> {
    let steps = online::migrate(app, "'own.o'")?;
    let id = app.number("INSERT INTO own.o (n) VALUES (1) RETURNING id")?;
    ensure!(steps > 0 && id > 1 << 40, "{steps} steps, ID {id}");
    for table in ["own.t", "own.i"] {
        app.run([format!("CALL snowflake_migrate.revert('{table}')")])?;
        let insert = format!("INSERT INTO {table} (n) VALUES (1) RETURNING id");
        let next = app.number(&insert)?;
        // A crash leaves out up to 32 values of a sequence.
        ensure!((11..=43).contains(&next), "{table}: {next}");
    }
    app.run(["SELECT * FROM own.layouts"])?;
    Ok(id)
}

/// Sessions in `old` that insert and request IDs without a pause.
fn start_workload(cluster: &Cluster) -> Result<Workload> {
    cluster.connect_to("old")?.batch_execute(workload::ROWS)?;
    let modes = [Mode::Calls(200), Mode::Commit(50), Mode::RollBack(50)];
    Workload::start(cluster, &["old"], &modes, &ids::DEFAULT)
}

/// Waits for further IDs of the sessions.
fn continue_workload(workload: &Workload) -> Result<()> {
    workload.begin_window();
    workload.wait_for(5_000)?;
    Ok(())
}

/// An update of `old` by `app` that waits in the middle of its script.
struct PausedUpdate {
    /// The process that runs it.
    pid: i32,
    /// Has the lock that it waits for.
    holder: Client,
    running: JoinHandle<Result<(), postgres::Error>>,
}

impl PausedUpdate {
    /// Begins the update. Returns when it waits.
    fn begin(cluster: &Cluster) -> Result<Self> {
        let mut holder = cluster.connect_to("old")?;
        holder.batch_execute(PAUSE_UPDATES)?;
        let mut app = cluster.connect_as("app", "old")?;
        let pid = ids::backend_pid(&mut app)?;
        let running = thread::spawn(move || app.batch_execute(UPDATE));
        let mut observer = cluster.connect()?;
        let waits = format!(
            "SELECT count(*) > 0 FROM pg_locks WHERE pid = {pid} AND locktype = 'advisory' AND NOT granted"
        );
        while observer.value(&waits)? != "t" {
            // The server's statement_timeout limits this.
            if running.is_finished() {
                running.join().expect("the updating thread")?;
                bail!("the update has not waited");
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(Self {
            pid,
            holder,
            running,
        })
    }

    /// Lets it continue, and waits for its end.
    fn finish(mut self) -> Result<()> {
        self.holder.run(["SELECT pg_advisory_unlock_all()"])?;
        Ok(self.running.join().expect("the updating thread")?)
    }
}

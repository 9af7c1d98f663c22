//! The upgrade from the earliest version, by way of those in between: a database that was updated has the
//! objects of a fresh one; the library of the new version works with the catalog
//! of the earlier one until then; IDs, origins and migrations that were begun
//! survive it, on standbys too.
//!
//! The earlier version's install script is in the tree under test only: see
//! scripts/test. Servers that first run the earlier version's library are
//! started from the tree that `SNOWFLAKE_FORMER_PG_CONFIG` names, if it is set.

mod dependents;
mod dump;
mod fingerprint;
mod from_0_2_0;
mod old_catalog;
mod standby;
mod under_way;

use anyhow::{Result, ensure};
use postgres::Client;
use snowflake_tests::online;
use snowflake_tests::{Cluster, Installation, Stop};

use crate::migration::run_before;
use crate::support::run;

const EARLIER: &str = "0.1.0";
const UPDATE: &str = "ALTER EXTENSION snowflake UPDATE";

/// The mark in a database of the earlier version.
const EARLIER_MARK: &str = "snowflake_mark";

/// Whether the extension of a database is of the new version.
const IS_UPDATED: &str =
    "SELECT extversion <> '0.1.0' FROM pg_extension WHERE extname = 'snowflake'";

/// A database without the extension, and its superuser.
fn create_database(cluster: &Cluster, database: &str) -> Result<Client> {
    cluster
        .connect()?
        .batch_execute(&format!("CREATE DATABASE {database}"))?;
    cluster.connect_to(database)
}

/// The comment of the earlier version's control file. The one in the tree under
/// test is the new version's.
const EARLIER_COMMENT: &str = "64-bit, time-ordered, decodable primary keys that never come twice";

/// Creates the extension in the earlier version.
fn create_extension(client: &mut Client) -> Result<()> {
    let script = Installation::under_test()?
        .extensions
        .join(format!("snowflake--{EARLIER}.sql"));
    ensure!(
        script.exists(),
        "the install script of {EARLIER} is not in the tree under test: {} (`make test` puts it there, from sql/)",
        script.display()
    );
    client.batch_execute(&format!(
        "CREATE EXTENSION snowflake VERSION '{EARLIER}'; COMMENT ON EXTENSION snowflake IS '{EARLIER_COMMENT}'"
    ))?;
    Ok(())
}

/// A database with the earlier version.
fn create_earlier(cluster: &Cluster, database: &str) -> Result<Client> {
    let mut client = create_database(cluster, database)?;
    create_extension(&mut client)?;
    Ok(client)
}

/// Creates tables as `app`, of which `t` and `i` are migrated, and `o` is half
/// migrated online.
fn use_earlier(app: &mut Client) -> Result<()> {
    app.batch_execute(
        "CREATE TABLE own.t (id serial PRIMARY KEY, n int); INSERT INTO own.t (n) SELECT 1 FROM generate_series(1, 10);
         CREATE TABLE own.i (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int); INSERT INTO own.i (n) SELECT 1 FROM generate_series(1, 10);
         CREATE TABLE own.o (id serial PRIMARY KEY, n int); INSERT INTO own.o (n) SELECT 1 FROM generate_series(1, 1000);
         CREATE TABLE own.r (o_id int REFERENCES own.o); INSERT INTO own.r SELECT id FROM own.o;
         CREATE VIEW own.decoded AS SELECT * FROM snowflake_decode(1000000000000000000);
         CALL snowflake_migrate('own.t'); CALL snowflake_migrate('own.i');
         INSERT INTO own.t (n) VALUES (1); INSERT INTO own.i (n) VALUES (1)",
    )?;
    let (steps, backfill) = run_before(app, "'own.o'", online::Step::is_backfill)?;
    run(app, [&steps[backfill].statement])
}

/// What `app` may do in a database whose mark has this name.
fn granted(mark: &str) -> String {
    format!(
        "GRANT EXECUTE ON FUNCTION snowflake_nextval() TO app; GRANT SELECT ON {mark} TO app;
         CREATE SCHEMA own AUTHORIZATION app"
    )
}

/// A server that runs the former version's library, if there is one to test with.
fn earlier_server() -> Result<Cluster> {
    Cluster::builder()
        .conf("snowflake.node_id", 1)
        .installation(Installation::former()?)
        .start()
}

/// Restarts it with the library under test.
fn replace_library(cluster: &mut Cluster) -> Result<()> {
    cluster.stop(Stop::Fast)?;
    cluster.set_installation(Installation::under_test()?);
    cluster.start()
}

/// A server with a database `old` of the earlier version in use, with the new
/// library, and a session of `app` in it.
fn earlier_in_use() -> Result<(Cluster, Client, Client)> {
    let mut cluster = earlier_server()?;
    cluster.connect()?.batch_execute("CREATE ROLE app LOGIN")?;
    let mut old = create_earlier(&cluster, "old")?;
    old.batch_execute(&granted(EARLIER_MARK))?;
    use_earlier(&mut cluster.connect_as("app", "old")?)?;
    drop(old);
    replace_library(&mut cluster)?;
    let (old, app) = (
        cluster.connect_to("old")?,
        cluster.connect_as("app", "old")?,
    );
    Ok((cluster, old, app))
}

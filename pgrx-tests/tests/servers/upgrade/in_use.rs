//! An update beside sessions at work, and in databases with other settings.

use snowflake_tests::next_version::next_version;

use super::fingerprint::{assert_same, difference, fingerprint};
use super::{
    CREATE, PausedUpdate, REVERTED_BY, UPDATE, VERSION, continue_workload, create_database,
    create_in_use, create_version, finish, server, start_workload,
};
use crate::support::*;

/// What an administrator has granted and revoked.
const GRANTED: &str = "GRANT EXECUTE ON FUNCTION snowflake_nextval() TO reader; GRANT SELECT ON snowflake_internal.mark TO reader;
    REVOKE SELECT ON snowflake_layouts FROM PUBLIC; GRANT SELECT ON snowflake_layouts TO app, reader;
    REVOKE EXECUTE ON FUNCTION snowflake_migrate_internal.record_reverted(regclass, name) FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION snowflake_migrate_internal.record_reverted(regclass, name) TO app WITH GRANT OPTION";

#[test]
fn an_update_in_use_gives_the_objects_of_a_fresh_install() -> Result<()> {
    let next = next_version()?;
    let cluster = server(&next)?;
    cluster.connect()?.run(["CREATE ROLE reader LOGIN"])?;
    let mut app = create_in_use(&cluster, &next)?;
    create_database(&cluster, "fresh", CREATE)?;
    let [mut old, mut fresh] = [cluster.connect_to("old")?, cluster.connect_to("fresh")?];
    old.batch_execute(GRANTED)?;
    fresh.batch_execute(GRANTED)?;
    let changes = difference(&fingerprint(&mut fresh)?, &fingerprint(&mut old)?);
    ensure!(changes.len() >= 15, "{changes:#?}");
    cluster
        .connect_as("reader", "old")?
        .refused(UPDATE, "42501")?;

    let workload = start_workload(&cluster)?;
    let mut received = ids::nextval(&mut app, 20_000)?;
    let update = PausedUpdate::begin(&cluster)?;
    // Inserts do not wait for the update.
    continue_workload(&workload)?;
    let insert = "INSERT INTO own.t (n) SELECT 2 FROM generate_series(1, 5000) RETURNING id";
    received.extend(ids::fetch(&mut app, insert)?);
    let into_unfinished = "INSERT INTO own.o (n) SELECT 2 FROM generate_series(1, 500)";
    app.run([into_unfinished])?;
    update.finish()?;
    continue_workload(&workload)?;
    received.extend(workload.end()?.ids.concat());

    old.answers(VERSION, &next.next)?;
    assert_same(&cluster, ("fresh", "old"), "in use")?;
    received.extend(ids::nextval(&mut app, 20_000)?);
    received.push(finish(&mut app)?);
    app.answers(REVERTED_BY, "app")?;
    let age = "SELECT snowflake_age(snowflake_nextval()) < '1 hour'";
    app.refused(age, "42501")?;
    old.answers(age, "t")?;
    let tally = Tally::of(received);
    println!(
        "upgrade: {} descriptions updated in use: {tally}",
        changes.len()
    );
    tally.assert_unique();
    Ok(())
}

/// By a superuser, and by an owner who is none.
#[test]
fn an_update_gives_the_objects_of_a_fresh_install_in_any_setting() -> Result<()> {
    let next = next_version()?;
    let cluster = server(&next)?;
    for (name, before, schema) in [
        ("plain", "", ""),
        (
            "another_schema",
            "CREATE SCHEMA \"An App\" AUTHORIZATION app",
            " SCHEMA \"An App\"",
        ),
        (
            "restrictive",
            "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC; ALTER DEFAULT PRIVILEGES REVOKE USAGE ON TYPES FROM PUBLIC",
            "",
        ),
        (
            "generous",
            "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO app; ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO app;
             ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO app; ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO app",
            "",
        ),
    ] {
        for user in ["postgres", "app"] {
            let [old, fresh] = ["old", "fresh"].map(|which| format!("{name}_{user}_{which}"));
            for (database, version) in [(&old, &next.today), (&fresh, &next.next)] {
                let create = format!("CREATE DATABASE {database} OWNER app");
                cluster.connect()?.run([create])?;
                cluster.connect_to(database)?.run([before])?;
                let create = create_version(schema, version);
                cluster.connect_as(user, database)?.run([create])?;
            }
            cluster.connect_as(user, &old)?.run([UPDATE])?;
            assert_same(&cluster, (&fresh, &old), &format!("{name}, by {user}"))?;
        }
    }
    Ok(())
}

//! The update from 0.2.0 alone. That from 0.1.0 passes through it.

use anyhow::{Result, ensure};
use snowflake_tests::Cluster;
use snowflake_tests::ids::{self, Tally};
use snowflake_tests::online;
use snowflake_tests::query::number;

use super::fingerprint::{assert_same, compare_from};
use super::{UPDATE, create_database, granted, use_earlier};
use crate::support::refused;

const VERSION: &str = "0.2.0";

#[test]
fn a_database_of_0_2_0_has_the_objects_of_a_fresh_one_in_any_setting() -> Result<()> {
    let cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    cluster
        .connect()?
        .batch_execute("CREATE ROLE app LOGIN; CREATE ROLE tenant LOGIN")?;
    let create = "CREATE EXTENSION snowflake";
    for (name, before, create) in [
        ("plain", "", create),
        (
            "another_schema",
            "CREATE SCHEMA \"An App\"",
            "CREATE EXTENSION snowflake SCHEMA \"An App\"",
        ),
        (
            "no_default_privileges",
            "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
            create,
        ),
        (
            "default_privileges",
            "ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO app; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO app",
            create,
        ),
        (
            "trusted",
            "DO $$BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO tenant; GRANT CREATE ON SCHEMA public TO tenant', current_database()); END$$; SET ROLE tenant",
            create,
        ),
    ] {
        compare_from(VERSION, &cluster, name, before, create, "", UPDATE)?;
    }
    Ok(())
}

#[test]
fn a_database_of_0_2_0_in_use_is_updated() -> Result<()> {
    let cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    cluster.connect()?.batch_execute("CREATE ROLE app LOGIN")?;
    for database in ["old", "fresh"] {
        let mut admin = create_database(&cluster, database)?;
        admin.batch_execute(&if database == "old" {
            format!("CREATE EXTENSION snowflake VERSION '{VERSION}'")
        } else {
            "CREATE EXTENSION snowflake".to_owned()
        })?;
        admin.batch_execute(&granted("snowflake_internal.mark"))?;
    }
    let mut old = cluster.connect_to("old")?;
    let mut app = cluster.connect_as("app", "old")?;
    let app = &mut app;
    use_earlier(app)?;
    let mut issued = ids::nextval(app, 20_000)?;
    let missing = refused(app, "SELECT snowflake_id()", "42883")?;
    ensure!(missing.message.contains("snowflake_id"), "{missing}");

    old.batch_execute(UPDATE)?;
    assert_same(&cluster, ("fresh", "old"), "from 0.2.0, in use")?;
    // In the session that has used the catalog of 0.2.0.
    app.batch_execute("ALTER TABLE own.t ALTER COLUMN id SET DEFAULT snowflake_id()")?;
    issued.extend(ids::fetch(
        app,
        "SELECT snowflake_id() FROM generate_series(1, 20000)",
    )?);
    issued.extend(ids::nextval(app, 20_000)?);
    let tally = Tally::of(issued);
    println!("upgrade: before and after the update from {VERSION}: {tally}");
    assert_eq!(tally.ids, 60_000);
    tally.assert_unique();
    ensure!(online::migrate(app, "'own.o'")? > 0);
    for table in ["own.t", "own.i"] {
        app.batch_execute(&format!("CALL snowflake_migrate_revert('{table}')"))?;
        let insert = format!("INSERT INTO {table} (n) VALUES (1) RETURNING id");
        assert_eq!(number(app, &insert)?, 11, "{table}");
    }
    Ok(())
}

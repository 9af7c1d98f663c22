//! A dump of an updated database restores.

use anyhow::{Result, ensure};
use snowflake_tests::Cluster;
use snowflake_tests::ids::{self, Tally};
use snowflake_tests::online;
use snowflake_tests::query::{number, value};

use super::fingerprint::assert_same;
use super::{UPDATE, earlier_in_use};

#[test]
fn a_dump_of_an_updated_database_restores() -> Result<()> {
    let (cluster, mut old, mut app) = earlier_in_use()?;
    old.batch_execute(UPDATE)?;
    app.batch_execute("CREATE TABLE own.d (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int); INSERT INTO own.d (n) SELECT 1 FROM generate_series(1, 5000)")?;
    let received = ids::fetch(&mut app, "SELECT id FROM own.d")?;
    let mark = number(&mut old, "SELECT last_value FROM snowflake_internal.mark")?;
    for (format, program, options) in [
        ("plain", "psql", &["--set=ON_ERROR_STOP=1"][..]),
        ("custom", "pg_restore", &["--exit-on-error"][..]),
        (
            "custom",
            "pg_restore",
            &["--exit-on-error", "--single-transaction"][..],
        ),
    ] {
        let dump = cluster.dump("old", &["--format", format])?;
        let target = Cluster::builder().conf("snowflake.node_id", 1).start()?;
        let mut admin = target.connect()?;
        admin.batch_execute("CREATE ROLE app LOGIN")?;
        admin.batch_execute("CREATE DATABASE restored")?;
        let output = target.restore(&dump, program, "postgres", "restored", options)?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.success() && !errors.contains("ERROR"),
            "{program} {options:?}: {errors}"
        );
        let mut restored = target.connect_as("app", "restored")?;
        let restored_mark = number(
            &mut restored,
            "SELECT last_value FROM snowflake_internal.mark",
        )?;
        ensure!(restored_mark >= mark, "{restored_mark} {mark}");
        let after = ids::nextval(&mut restored, 5_000)?;
        ensure!(
            after[0] >= mark,
            "{} is below the restored mark {mark}",
            after[0]
        );
        // Each copy is a server of its own with the same number.
        let tally = Tally::of([received.as_slice(), &after].concat());
        println!("upgrade: {program} {options:?} of an updated database: {tally}");
        tally.assert_unique();
        restored.batch_execute(
            "CALL snowflake_migrate_revert('own.t'); CALL snowflake_migrate_revert('own.i')",
        )?;
        for table in ["own.t", "own.i"] {
            assert_eq!(
                number(
                    &mut restored,
                    &format!("INSERT INTO {table} (n) VALUES (1) RETURNING id")
                )?,
                11
            );
        }
        // The triggers and the copied columns of an unfinished migration are in it.
        let steps = online::migrate(&mut restored, "'own.o'")?;
        let id = number(
            &mut restored,
            "INSERT INTO own.o (n) VALUES (1) RETURNING id",
        )?;
        ensure!(steps > 0 && id >= mark, "{steps} {id}");
        target.connect_to_new_database("fresh")?.batch_execute("GRANT SELECT ON snowflake_internal.mark TO app; GRANT EXECUTE ON FUNCTION snowflake_nextval() TO app")?;
        let version = value(
            &mut restored,
            "SELECT extversion FROM pg_extension WHERE extname = 'snowflake'",
        )?;
        ensure!(version != "0.1.0", "{version}");
        assert_same(&target, ("fresh", "restored"), "restored from a dump")?;
    }
    Ok(())
}

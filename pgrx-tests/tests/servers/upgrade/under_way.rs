//! Online migrations that were begun before an update.

use snowflake_tests::next_version::next_version;

use super::{PausedUpdate, REVERTED_BY, create_in_use, server};
use crate::support::*;

/// A table that references itself, and one that references it.
fn create_table(app: &mut Client, name: &str) -> Result<()> {
    app.batch_execute(&format!(
        "CREATE TABLE own.{name} (id serial PRIMARY KEY, parent int REFERENCES own.{name}, n int);
         INSERT INTO own.{name} (parent, n) SELECT nullif(n - 1, 0), n FROM generate_series(1, 400) AS n;
         CREATE TABLE own.{name}_child (n int, p_id int REFERENCES own.{name} ON DELETE CASCADE);
         INSERT INTO own.{name}_child SELECT n, id FROM own.{name}"
    ))?;
    Ok(())
}

/// Inserts rows, whose IDs are snowflake IDs once the table is migrated.
fn insert(app: &mut Client, name: &str) -> Result<Vec<i64>> {
    let rows = "SELECT 401 FROM generate_series(1, 100)";
    ids::fetch(
        app,
        &format!("INSERT INTO own.{name} (n) {rows} RETURNING id::bigint"),
    )
}

/// A plan is left after each of its statements, and continued after the update by the
/// same session: finished and then reverted, or reverted at once.
#[test]
fn a_migration_begun_before_the_update_is_finished_after_it() -> Result<()> {
    let next = next_version()?;
    let cluster = server(&next)?;
    let mut app = create_in_use(&cluster, &next)?;
    create_table(&mut app, "measured")?;
    let steps = online::plan(&mut app, "'own.measured'")?.len();
    ensure!(steps >= 4, "{steps}");
    let mut begun = Vec::new();
    for done in 1..=steps {
        for is_finished in [true, false] {
            let name = format!("left_{done}_{is_finished}");
            create_table(&mut app, &name)?;
            let plan = online::plan(&mut app, &format!("'own.{name}'"))?;
            app.run(online::statements(&plan).into_iter().take(done))?;
            begun.push((name, is_finished));
        }
    }
    let update = PausedUpdate::begin(&cluster)?;
    for (name, _) in &begun {
        insert(&mut app, name)?;
    }
    update.finish()?;

    let mut received = ids::nextval(&mut app, 1_000)?;
    for (name, is_finished) in &begun {
        let table = format!("'own.{name}'");
        if *is_finished {
            for step in online::plan(&mut app, &table)? {
                app.run([&step.statement])?;
            }
            assert_eq!(online::plan(&mut app, &table)?, [], "{name}");
            let broken = format!(
                "SELECT (SELECT count(*) FROM own.{name} WHERE n <= 400 AND (id <> n OR parent IS DISTINCT FROM nullif(n - 1, 0)))
                      + (SELECT count(*) FROM own.{name}_child AS c LEFT JOIN own.{name} AS p ON p.id = c.p_id WHERE p.id IS NULL OR c.n <> p.n)"
            );
            app.answers(&broken, 0)?;
            received.extend(insert(&mut app, name)?);
        }
        let highest = format!("SELECT max(id) FROM own.{name} WHERE id < 1 << 30");
        let highest = app.number(&highest)?;
        let revert = format!("CALL snowflake_migrate.revert({table})");
        app.run([revert]).with_context(|| name.clone())?;
        let id = insert(&mut app, name)?[0];
        ensure!(
            (highest + 1..highest + 10).contains(&id),
            "{name}: {id} comes after {highest}"
        );
    }
    app.answers(REVERTED_BY, "app")?;
    let tally = Tally::of(received);
    println!(
        "upgrade: {} online migrations finished or reverted after the update: {tally}",
        begun.len()
    );
    tally.assert_unique();
    Ok(())
}

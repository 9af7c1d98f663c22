//! Dumps of a database of today's version and of an updated one, restored where the
//! next version is installed, by the owner of the database, who is no superuser.

use snowflake_tests::next_version::next_version;

use super::fingerprint::assert_same;
use super::{CREATE, REVERTED_BY, UPDATE, VERSION, create_database, create_in_use, finish, server};
use crate::support::*;

/// Options of `pg_dump`, and the program that restores the dump, with its options.
const FORMS: &[(&[&str], &str, &[&str])] = &[
    (&["--format=custom"], "pg_restore", &["--exit-on-error"]),
    // The rows of the records without the names of columns.
    (&["--inserts"], "psql", &["--set=ON_ERROR_STOP=1"]),
];

const MARK: &str = "SELECT last_value FROM snowflake_internal.mark";

fn dump_and_restore(is_updated: bool) -> Result<()> {
    let next = next_version()?;
    let source = server(&next)?;
    let mut app = create_in_use(&source, &next)?;
    if is_updated {
        app.batch_execute(UPDATE)?;
    }
    app.run([
        "CREATE TABLE own.d (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int)",
        "INSERT INTO own.d (n) SELECT 1 FROM generate_series(1, 20000)",
        "CREATE TABLE own.b (id serial PRIMARY KEY, n int)",
        "INSERT INTO own.b (n) VALUES (1)",
        "CALL snowflake_migrate.run('own.b')",
        "CALL snowflake_migrate.revert('own.b')",
    ])?;
    let received = ids::fetch(&mut app, "SELECT id FROM own.d")?;
    let mark = app.number(MARK)?;
    let target = server(&next)?;
    create_database(&target, "fresh", CREATE)?;
    for (form, (dump_options, program, options)) in FORMS.iter().enumerate() {
        let dump = source.dump("old", &[&["--username=app"][..], *dump_options].concat())?;
        let database = format!("restored_{form}");
        let create = format!("CREATE DATABASE {database} OWNER app");
        target.connect()?.run([create])?;
        let output = target.restore(&dump, program, "app", &database, options)?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.success() && !errors.contains("WARNING"),
            "{errors}"
        );
        let mut restored = target.connect_as("app", &database)?;
        restored.answers(VERSION, &next.next)?;
        // The appended column is restored with the others, and is NULL in a record of
        // today's version.
        let by = if is_updated { "app" } else { "unknown" };
        restored.answers(REVERTED_BY, by)?;
        let restored_mark = restored.number(MARK)?;
        let mut after = ids::nextval(&mut restored, 20_000)?;
        ensure!(
            restored_mark >= mark && after[0] >= mark,
            "{mark}, then {restored_mark}, first ID {}",
            after[0]
        );
        after.push(finish(&mut restored)?);
        let when = format!("dump {dump_options:?}, is_updated: {is_updated}");
        assert_same(&target, ("fresh", &database), &when)?;
        // Each copy is a server of its own with the same number.
        let tally = Tally::of([received.as_slice(), &after].concat());
        println!("upgrade: {when}: {tally}");
        tally.assert_unique();
    }
    Ok(())
}

#[test]
fn a_dump_of_before_restores_into_the_next_version() -> Result<()> {
    dump_and_restore(false)
}

#[test]
fn a_dump_of_an_updated_database_restores() -> Result<()> {
    dump_and_restore(true)
}

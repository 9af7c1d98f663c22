//! The trigger that keeps a shadow column in step.

use anyhow::Result;

use super::{outcome, run, session, texts};

/// A table with narrow columns, their shadows and the triggers between them.
fn create_table() {
    run(
        "CREATE TABLE kept (a integer, b smallint, wide_a bigint, wide_b bigint, note text);
         CREATE TRIGGER keep_a BEFORE INSERT OR UPDATE ON kept
             FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.shadow('a', 'wide_a');
         CREATE TRIGGER keep_b BEFORE INSERT OR UPDATE ON kept
             FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.shadow('b', 'wide_b')",
    );
}

#[test]
fn shadows_follow_every_insert_and_update() -> Result<()> {
    session()?;
    create_table();
    let row = "concat_ws(' ', note, coalesce(wide_a::text, '-'), coalesce(wide_b::text, '-'))";
    for (statement, expected) in [
        (
            "INSERT INTO kept (a, b, note) VALUES (2147483647, -32768, 'x'), (-2147483648, NULL, 'y')",
            ["x 2147483647 -32768", "y -2147483648 -"],
        ),
        (
            "UPDATE kept SET b = 7, wide_a = 3",
            ["x 2147483647 7", "y -2147483648 7"],
        ),
        ("UPDATE kept SET a = NULL, b = 0", ["x - 0", "y - 0"]),
        ("UPDATE kept SET wide_b = NULL", ["x - 0", "y - 0"]),
    ] {
        run(statement);
        let rows = texts(&format!("SELECT {row} FROM kept ORDER BY 1"));
        assert_eq!(rows, expected, "{statement}");
    }
    Ok(())
}

#[test]
fn an_always_trigger_keeps_its_shadow_on_a_replica() -> Result<()> {
    session()?;
    create_table();
    run("ALTER TABLE kept ENABLE ALWAYS TRIGGER keep_a;
         SET LOCAL session_replication_role = replica;
         INSERT INTO kept (a, b) VALUES (1, 2)");
    assert_eq!(
        texts("SELECT concat_ws(' ', wide_a, coalesce(wide_b::text, '-')) FROM kept"),
        ["1 -"]
    );
    Ok(())
}

#[test]
fn a_trigger_that_is_defined_otherwise_is_refused() -> Result<()> {
    session()?;
    run("CREATE TABLE refused (a integer, t text, wide bigint)");
    for (trigger, state, message) in [
        (
            "AFTER INSERT ON refused FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.shadow('a', 'wide')",
            "39P01",
            "trigger \"it\" must fire before INSERT or UPDATE for each row",
        ),
        (
            "BEFORE INSERT ON refused FOR EACH STATEMENT EXECUTE FUNCTION snowflake_migrate_internal.shadow('a', 'wide')",
            "39P01",
            "trigger \"it\" must fire before INSERT or UPDATE for each row",
        ),
        (
            "BEFORE INSERT ON refused FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.shadow('a')",
            "22023",
            "trigger \"it\" must name two columns",
        ),
        (
            "BEFORE INSERT ON refused FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.shadow('b', 'wide')",
            "42703",
            "column \"b\" of relation \"refused\" does not exist",
        ),
        (
            "BEFORE INSERT ON refused FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.shadow('ctid', 'wide')",
            "42703",
            "column \"ctid\" of relation \"refused\" does not exist",
        ),
        (
            "BEFORE INSERT ON refused FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.shadow('t', 'wide')",
            "42804",
            "column \"t\" has the wrong type for a migration",
        ),
        (
            "BEFORE INSERT ON refused FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.shadow('a', 't')",
            "42804",
            "column \"t\" has the wrong type for a migration",
        ),
    ] {
        run(&format!("CREATE TRIGGER it {trigger}"));
        let [got, text, ..] = outcome("INSERT INTO refused (a) VALUES (1)");
        assert_eq!([got.as_str(), text.as_str()], [state, message], "{trigger}");
        run("DROP TRIGGER it ON refused");
    }
    Ok(())
}

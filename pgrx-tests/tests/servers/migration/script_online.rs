//! Scripts that widen keys while the tables are in use, for servers without the extension:
//! stopped and started again, taken back, and in databases that change in between.

use snowflake_tests::migration::migrate_by_psql;

use crate::support::*;

/// What the script is made for. A trigger that fires for a row that is copied leaves a row.
const SHOP: &str = "
    CREATE TABLE orders (id serial PRIMARY KEY, note text, CHECK (id > 0));
    CREATE TABLE lines (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id int NOT NULL REFERENCES orders, n int);
    CREATE INDEX ON lines (order_id, n);
    CREATE VIEW sold AS SELECT o.id, l.n FROM orders AS o JOIN lines AS l ON l.order_id = o.id;
    COMMENT ON VIEW sold IS 'of an order'; GRANT SELECT ON sold TO PUBLIC;
    CREATE TABLE fired (id int);
    CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO public.fired VALUES (old.id); RETURN new; END';
    CREATE TRIGGER firing BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION fire();
    CREATE TRIGGER changed AFTER UPDATE OF id ON orders FOR EACH ROW WHEN (old.id <> new.id) EXECUTE FUNCTION fire();
    INSERT INTO orders (note) SELECT 'a' FROM generate_series(1, 2000);
    INSERT INTO lines (order_id, n) SELECT 1 + i % 2000, i FROM generate_series(1, 3000) AS i;";

/// The script, and the schema that the plan of the extension leaves.
pub(super) fn made(cluster: &Cluster) -> Result<(String, String)> {
    cluster.run("CREATE ROLE keeper LOGIN; CREATE ROLE reader")?;
    let mut client = cluster.connect_to_new_database("planned")?;
    client.batch_execute("GRANT ALL ON SCHEMA public TO keeper; SET ROLE keeper")?;
    client.batch_execute(SHOP)?;
    let script = client
        .value("SELECT snowflake_migrate.script('orders', also => '{lines}', online => true)")?;
    client.batch_execute("RESET ROLE; SET client_min_messages = warning")?;
    migrate_by_psql_quietly(cluster)?;
    client.batch_execute("DROP EXTENSION snowflake_migrate; DROP EXTENSION snowflake")?;
    Ok((script, schema(cluster, "planned")?))
}

fn migrate_by_psql_quietly(cluster: &Cluster) -> Result<()> {
    cluster.run("ALTER DATABASE planned SET client_min_messages = error")?;
    migrate_by_psql(
        cluster,
        "keeper",
        "planned",
        "'orders', also => '{lines}', online => true, keep_sequence => true",
    )?;
    cluster.run("ALTER DATABASE planned RESET client_min_messages")?;
    Ok(())
}

/// A database without the extension, in which the owner may create schemas.
pub(super) fn target(cluster: &Cluster) -> Result<()> {
    let mut client = cluster.connect()?;
    client.batch_execute("DROP DATABASE IF EXISTS target WITH (FORCE)")?;
    client.batch_execute("CREATE DATABASE target TEMPLATE template0")?;
    let mut client = cluster.connect_to("target")?;
    client.batch_execute(
        "GRANT CREATE ON DATABASE target TO keeper; GRANT ALL ON SCHEMA public TO keeper; SET ROLE keeper",
    )?;
    client.batch_execute(SHOP).map_err(Into::into)
}

/// Runs a script as the owner; again while the backend of a former one still ends.
pub(super) fn start(
    cluster: &Cluster,
    script: &str,
) -> Result<snowflake_tests::migration::PsqlOutput> {
    let mut done = psql(cluster, "keeper", "target", script, true)?;
    for _ in 0..50 {
        if !done.errors.contains("another session runs this script") {
            break;
        }
        thread::sleep(std::time::Duration::from_millis(100));
        done = psql(cluster, "keeper", "target", script, true)?;
    }
    Ok(done)
}

/// The parts of a script that end before each of its units.
pub(super) fn parts(script: &str) -> Vec<String> {
    let lines: Vec<&str> = script.lines().collect();
    lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with("-- Unit "))
        // The line above is that of the section.
        .map(|(place, _)| lines[..place - 1].join("\n") + "\n")
        .collect()
}

/// A script is stopped by the end of its session, which no single session shows.
#[test]
fn an_online_script_continues_after_each_unit_or_goes_back() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let (script, expected) = made(&cluster)?;
    let parts = parts(&script);
    ensure!(parts.len() > 12, "{} units", parts.len());
    target(&cluster)?;
    let before = schema(&cluster, "target")?;
    for (place, part) in parts.iter().enumerate().step_by(tier::size(5, 1)) {
        for goes_back in [false, true] {
            target(&cluster)?;
            let first = psql(&cluster, "keeper", "target", part, true)?;
            ensure!(first.success, "the units before {place}: {first:?}");
            let head = if goes_back { "\\set revert on\n" } else { "" };
            let again = start(&cluster, &(head.to_owned() + &script))?;
            ensure!(again.success, "after unit {place}: {again:?}");
            assert_same_schema(
                if goes_back { &before } else { &expected },
                &schema(&cluster, "target")?,
                &format!("after unit {place}, back: {goes_back}"),
            );
            let mut client = cluster.connect_to("target")?;
            client.answers(
                "SELECT concat_ws(' ', (SELECT sum(id) FROM orders), (SELECT sum(order_id) FROM lines), (SELECT count(*) FROM fired))",
                "2001000 2502500 0",
            )?;
        }
    }
    Ok(())
}

/// What changes between two units, how it is undone, and what is said of it.
#[rustfmt::skip]
const CHANGES: &[(&str, &str, &str)] = &[
    ("CREATE VIEW later AS SELECT order_id FROM lines", "DROP VIEW later", "view public.later"),
    ("CREATE OR REPLACE VIEW sold AS SELECT o.id, l.n FROM orders AS o JOIN lines AS l ON l.order_id = o.id AND l.n > 0", "CREATE OR REPLACE VIEW sold AS SELECT o.id, l.n FROM orders AS o JOIN lines AS l ON l.order_id = o.id", "view public.sold has changed"),
    ("ALTER TABLE lines ADD later int", "ALTER TABLE lines DROP later", "column later"),
    ("CREATE TABLE later () INHERITS (lines)", "DROP TABLE later", "public.later"),
    ("CREATE TABLE later (order_id int REFERENCES orders)", "DROP TABLE later", "public.later"),
    ("CREATE TRIGGER later BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION fire()", "DROP TRIGGER later ON orders", "trigger later"),
    ("COMMENT ON COLUMN lines.order_id IS 'later'", "COMMENT ON COLUMN lines.order_id IS NULL", "comment"),
    ("GRANT SELECT (id) ON orders TO reader", "REVOKE ALL (id) ON orders FROM reader", "privileges"),
];

/// What others change while a script is stopped.
#[test]
fn an_online_script_stops_where_something_has_changed_between_two_units() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let (script, expected) = made(&cluster)?;
    let parts = parts(&script);
    for &(change, undone, named) in CHANGES {
        target(&cluster)?;
        // Rows are copied.
        let first = psql(&cluster, "keeper", "target", &parts[parts.len() / 2], true)?;
        ensure!(first.success, "{first:?}");
        let mut client = cluster.connect_to("target")?;
        client.batch_execute(&format!("SET ROLE keeper; {change}"))?;
        let stopped = start(&cluster, &script)?;
        ensure!(
            !stopped.success && stopped.errors.contains(named),
            "{change}: {stopped:?}"
        );
        client.batch_execute(undone)?;
        let again = start(&cluster, &script)?;
        ensure!(again.success, "{undone}: {again:?}");
        assert_same_schema(&expected, &schema(&cluster, "target")?, undone);
    }
    Ok(())
}

/// Two sessions, and writers beside them.
#[test]
fn a_second_start_is_refused_and_rows_are_written_while_the_copy_is_paused() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let (script, expected) = made(&cluster)?;
    let parts = parts(&script);
    target(&cluster)?;
    let mut client = cluster.connect_to("target")?;
    // The tables exist after the head of the script.
    let head = psql(&cluster, "keeper", "target", &parts[0], true)?;
    ensure!(head.success, "{head:?}");
    let own = client
        .value("SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'snowflake_script%'")?;
    client.batch_execute(&format!("UPDATE {own}.widening_pace SET is_paused = true"))?;
    thread::scope(|scope| -> Result<()> {
        let first = scope.spawn(|| start(&cluster, &script));
        client.wait_until(&format!(
            "SELECT coalesce(bool_or(waiting_for LIKE '%is_paused'), false) FROM {own}.widening_progress"
        ))?;
        for arguments in ["", "\\set revert on\n"] {
            let second = psql(
                &cluster,
                "keeper",
                "target",
                &(arguments.to_owned() + &script),
                true,
            )?;
            ensure!(
                second.errors.contains("another session runs this script"),
                "{second:?}"
            );
        }
        client.batch_execute(
            "INSERT INTO orders (note) VALUES ('b'); INSERT INTO lines (order_id, n) SELECT id, 0 FROM orders WHERE note = 'b';
             UPDATE lines SET order_id = 1 WHERE n = 7; DELETE FROM lines WHERE n = 8",
        )?;
        client.batch_execute(&format!("UPDATE {own}.widening_pace SET is_paused = false"))?;
        let first = first.join().map_err(|_| anyhow::anyhow!("a panic"))??;
        ensure!(first.success, "{first:?}");
        Ok(())
    })?;
    assert_same_schema(&expected, &schema(&cluster, "target")?, "with writers");
    client.answers(
        "SELECT concat_ws(' ', (SELECT sum(id) FROM orders), (SELECT sum(order_id) FROM lines), (SELECT count(*) FROM fired))", // + 2001; + 2001, 8 becomes 1, and 9 is deleted.
        format!("{} {} 0", 2_001_000 + 2001, 2_502_500 + 2001 - 7 - 9),
    )?;
    Ok(())
}

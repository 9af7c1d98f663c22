//! Triggers that fire on each UPDATE, of an owner who may not set
//! `session_replication_role`: they do not fire when rows are copied, and as ever for
//! all others. They are the same afterwards.
//!
//! No cheaper tier sees this: the copy commits, several roles have to log in, and the
//! definitions are compared by `pg_dump`.

use super::run_before;
use crate::support::*;

/// Triggers of each kind, with a function that notes its calls.
const TABLES: &str = "CREATE SCHEMA w; GRANT USAGE ON SCHEMA w TO helper;
     CREATE TABLE w.calls (trigger_name text);
     CREATE FUNCTION w.called() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = w, pg_temp AS $$
         BEGIN INSERT INTO calls VALUES (tg_name); RETURN new; END $$;
     CREATE TABLE w.orders (id serial PRIMARY KEY, status text, n int NOT NULL DEFAULT 0);
     CREATE TABLE w.lines (order_id int REFERENCES w.orders, n int NOT NULL DEFAULT 0);
     CREATE TRIGGER always BEFORE UPDATE ON w.orders FOR EACH ROW EXECUTE FUNCTION w.called();
     CREATE TRIGGER by_condition AFTER INSERT OR UPDATE ON w.orders FOR EACH ROW
         WHEN (new.status IS DISTINCT FROM 'quiet') EXECUTE FUNCTION w.called('a\\b', 'it''s');
     CREATE TRIGGER by_row BEFORE UPDATE ON w.orders FOR EACH ROW EXECUTE FUNCTION w.called();
     CREATE TRIGGER by_statement AFTER UPDATE ON w.orders FOR EACH STATEMENT EXECUTE FUNCTION w.called();
     CREATE TRIGGER by_table AFTER UPDATE ON w.orders REFERENCING OLD TABLE AS former NEW TABLE AS \"New ones\"
         FOR EACH STATEMENT EXECUTE FUNCTION w.called();
     CREATE TRIGGER disabled BEFORE UPDATE ON w.orders FOR EACH ROW EXECUTE FUNCTION w.called();
     CREATE CONSTRAINT TRIGGER in_the_end AFTER UPDATE ON w.orders DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW WHEN (old.n <> new.n) EXECUTE FUNCTION w.called();
     CREATE TRIGGER of_status BEFORE UPDATE OF status ON w.orders FOR EACH ROW EXECUTE FUNCTION w.called();
     CREATE TRIGGER \"on lines\" AFTER UPDATE ON w.lines FOR EACH ROW EXECUTE FUNCTION w.called();
     ALTER TABLE w.orders ENABLE ALWAYS TRIGGER always; ALTER TABLE w.orders DISABLE TRIGGER disabled;
     COMMENT ON TRIGGER by_row ON w.orders IS 'on each row'; COMMENT ON TRIGGER in_the_end ON w.orders IS 'it''s deferred';
     COMMENT ON CONSTRAINT in_the_end ON w.orders IS 'a constraint';
     INSERT INTO w.orders (status) SELECT 'new' FROM generate_series(1, 300); INSERT INTO w.lines SELECT id FROM w.orders;
     CREATE FUNCTION w.change() RETURNS void LANGUAGE sql SECURITY DEFINER AS
         'UPDATE w.orders SET status = status, n = n + 1 WHERE id = 7; UPDATE w.lines SET n = n + 1 WHERE order_id = 7';
     GRANT SELECT, UPDATE ON w.orders, w.lines TO helper;
     DELETE FROM w.calls";

/// The same change with the rights of a role that is not the owner.
const HELPERS_FUNCTION: &str = "CREATE FUNCTION helper.change() RETURNS void LANGUAGE sql SECURITY DEFINER AS
         'UPDATE w.orders SET status = status, n = n + 1 WHERE id = 7; UPDATE w.lines SET n = n + 1 WHERE order_id = 7'";

/// What the application does, by the role that logs in. Any role may set what keeps the
/// triggers from firing for the copy.
#[rustfmt::skip]
const CHANGES: &[(&str, &str)] = &[
    ("keeper", "SELECT w.change()"),
    ("helper", "SET snowflake_migrate_internal.copying = 'on';
         UPDATE w.orders SET status = status, n = n + 1 WHERE id = 7; UPDATE w.lines SET n = n + 1 WHERE order_id = 7"),
    ("helper", "SET snowflake_migrate_internal.copying = 'on'; SELECT w.change()"),
    ("keeper", "SET snowflake_migrate_internal.copying = 'on'; SELECT helper.change()"),
];

/// The triggers that each change fires once.
const FIRED: &[&str] = &[
    "always 1",
    "by_condition 1",
    "by_row 1",
    "by_statement 1",
    "by_table 1",
    "in_the_end 1",
    "of_status 1",
    "on lines 1",
];

const DEFINITIONS: &str = "
    SELECT concat_ws(' | ', pg_get_triggerdef(t.oid), t.tgenabled, obj_description(t.oid, 'pg_trigger'),
                     obj_description(t.tgconstraint, 'pg_constraint'))
    FROM pg_trigger AS t
    WHERE NOT t.tgisinternal AND t.tgrelid IN ('w.orders'::regclass, 'w.lines'::regclass)
    ORDER BY 1";

/// The tables' owner, who is no superuser, and another role.
fn owner(cluster: &Cluster) -> Result<Client> {
    cluster.run(
        "CREATE ROLE keeper LOGIN; GRANT CREATE ON SCHEMA public TO keeper; GRANT CREATE ON DATABASE postgres TO keeper;
         CREATE ROLE helper LOGIN; CREATE SCHEMA helper AUTHORIZATION helper; GRANT USAGE ON SCHEMA helper TO keeper",
    )?;
    let mut client = cluster.connect_as("keeper", "postgres")?;
    client.batch_execute("SET client_min_messages = error")?;
    Ok(client)
}

/// The calls since the last time, with their numbers.
fn calls(client: &mut Client) -> Result<Vec<String>> {
    let found = client.column(
        "SELECT concat_ws(' ', c.trigger_name, count(*)) FROM w.calls AS c GROUP BY c.trigger_name ORDER BY 1",
    )?;
    client.batch_execute("DELETE FROM w.calls")?;
    Ok(found)
}

/// Each change fires each trigger.
fn check_changes(cluster: &Cluster, client: &mut Client, when: &str) -> Result<()> {
    for (role, change) in CHANGES {
        cluster
            .connect_as(role, "postgres")?
            .batch_execute(change)
            .with_context(|| format!("{when}: {change}"))?;
        assert_eq!(calls(client)?, FIRED, "{when}: {role}: {change}");
    }
    Ok(())
}

#[test]
fn the_copy_fires_no_trigger_and_others_fire_all() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = owner(&cluster)?;
    let client = &mut client;
    for (done, arguments) in ["'w.orders'", "'w.orders', keep_sequence => true"]
        .iter()
        .enumerate()
    {
        client.batch_execute(TABLES)?;
        if done == 0 {
            cluster
                .connect_as("helper", "postgres")?
                .batch_execute(HELPERS_FUNCTION)?;
        }
        let before: Vec<String> = client.column(DEFINITIONS)?;
        let steps = online::plan(client, arguments)?;
        let guards = steps
            .iter()
            .filter(|step| step.what.starts_with("guards the update triggers"))
            .count();
        assert_eq!(guards, 2, "{steps:?}");
        check_changes(&cluster, client, "before")?;
        for step in &steps {
            client.run([&step.statement])?;
            assert_eq!(calls(client)?, [""; 0], "{}", step.statement);
            check_changes(&cluster, client, &step.statement)?;
        }
        assert!(online::plan(client, arguments)?.is_empty());
        let after: Vec<String> = client.column(DEFINITIONS)?;
        assert_eq!(before, after);
        let changes = i64::try_from(CHANGES.len() * (steps.len() + 1))?;
        client.answers("SELECT n FROM w.orders WHERE id = 7", changes)?;
        client.batch_execute("DROP SCHEMA w CASCADE")?;
    }
    Ok(())
}

#[test]
fn a_trigger_that_is_newer_than_the_guards_stops_the_copy() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = owner(&cluster)?;
    let client = &mut client;
    client.batch_execute(TABLES)?;
    let (steps, backfill) = run_before(client, "'w.orders'", Step::is_backfill)?;
    client.batch_execute(
        "CREATE TRIGGER late BEFORE UPDATE ON w.lines FOR EACH ROW EXECUTE FUNCTION w.called()",
    )?;
    let answer = client.refused(&steps[backfill].statement, "55000")?;
    assert!(
        answer
            .message
            .contains("triggers of w.lines would fire when rows are copied: late"),
        "{answer}"
    );
    let left = online::plan(client, "'w.orders'")?;
    let first = left.first().context("no step")?;
    assert!(
        first
            .what
            .starts_with("guards the update triggers of w.lines"),
        "{left:?}"
    );
    online::migrate(client, "'w.orders'")?;
    assert_eq!(calls(client)?, [""; 0]);
    client.batch_execute("UPDATE w.lines SET n = n + 1 WHERE order_id = 7")?;
    assert_eq!(calls(client)?, ["late 1", "on lines 1"]);
    Ok(())
}

#[test]
fn reverting_leaves_the_triggers_as_they_were() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = owner(&cluster)?;
    let client = &mut client;
    client.batch_execute(TABLES)?;
    let before: Vec<String> = client.column(DEFINITIONS)?;
    let dump = schema(&cluster, "postgres")?;
    let steps = online::plan(client, "'w.orders'")?;
    let swap = steps.iter().position(Step::is_swap).context("no swap")?;
    for last in 0..swap {
        let when = &steps[last].statement;
        client.run(online::statements(&steps[..=last]))?;
        client
            .batch_execute("CALL snowflake_migrate.revert('w.orders')")
            .with_context(|| format!("after {when}"))?;
        let after: Vec<String> = client.column(DEFINITIONS)?;
        assert_eq!(before, after, "{when}");
        assert_same_schema(&dump, &schema(&cluster, "postgres")?, when);
        assert_eq!(calls(client)?, [""; 0], "{when}");
        let left = online::plan(client, "'w.orders'")?;
        assert_eq!(
            online::statements(&left),
            online::statements(&steps),
            "{when}"
        );
    }
    Ok(())
}

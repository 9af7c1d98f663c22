//! Through the table that dumps are restored with, no role gains a right: every
//! role may insert rows into it, and each row is checked.

use super::planted::{PLANT, PLANT_TYPES};
use super::server;
use crate::support::*;

/// As `snowflake.lease` is by default, milliseconds.
const LEASE_MS: i64 = 2_000;

const MARK: &str =
    "INSERT INTO snowflake_internal.restore (record, mark) VALUES ('mark', 9000000000000000000)";

const LAYOUT: &str = "INSERT INTO snowflake_internal.restore (record, layout, accepted_at)
    VALUES ('layout', 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2020-01-01T00:00:00Z', now())";

/// A record that would make a revert run a text as the owner of the table.
const ORIGIN: &str = "INSERT INTO snowflake_migrate_internal.restore (target_schema, target_name, column_name, kind, data_type,
        default_expression, first_id_ever, first_id, remembered_at)
    VALUES ('stranger', 'new', 'id', 'default', 'integer', 'arms.strike()', 1, 1, now())";

/// Ways to write what the role may not write.
fn ways() -> Vec<String> {
    let mut ways: Vec<String> = [MARK, LAYOUT, ORIGIN].map(str::to_owned).to_vec();
    for end in ["ON CONFLICT DO NOTHING", "RETURNING *"] {
        ways.push(format!("{MARK} {end}"));
    }
    ways.extend(
        [
            "WITH written AS (INSERT INTO snowflake_internal.restore (record, mark) VALUES ('mark', 9000000000000000000) RETURNING *) SELECT * FROM written",
            "INSERT INTO snowflake_internal.restore (record, mark) SELECT 'mark', 9000000000000000000 FROM generate_series(1, 3)",
            "MERGE INTO snowflake_internal.restore AS r USING (SELECT 1) AS s ON false WHEN NOT MATCHED THEN INSERT (record, mark) VALUES ('mark', 9000000000000000000)",
            "CREATE VIEW arms.through AS SELECT * FROM snowflake_internal.restore; INSERT INTO arms.through (record, mark) VALUES ('mark', 9000000000000000000)",
            "SET LOCAL session_replication_role = replica; INSERT INTO snowflake_internal.restore (record, mark) VALUES ('mark', 9000000000000000000)",
            "ALTER TABLE snowflake_internal.restore DISABLE TRIGGER ALL",
            "ALTER TABLE snowflake_internal.restore DROP CONSTRAINT restore_applies_rows_by_its_trigger",
            "CREATE TRIGGER a_strike BEFORE INSERT ON snowflake_internal.restore FOR EACH ROW EXECUTE FUNCTION arms.pull()",
            "CREATE RULE a_strike AS ON INSERT TO snowflake_internal.restore DO ALSO SELECT arms.strike()",
            "CREATE POLICY a_strike ON snowflake_internal.restore USING (arms.strike() > 0)",
            "CREATE TABLE arms.child () INHERITS (snowflake_internal.restore)",
            "UPDATE snowflake_internal.restore SET mark = 1",
            "DELETE FROM snowflake_internal.restore",
            "TRUNCATE snowflake_internal.restore",
            "LOCK TABLE snowflake_internal.restore IN SHARE MODE",
            "ALTER TABLE snowflake_migrate_internal.restore DISABLE TRIGGER ALL",
            "CREATE TRIGGER a_strike BEFORE INSERT ON snowflake_migrate_internal.restore FOR EACH ROW EXECUTE FUNCTION arms.pull()",
            "CREATE RULE a_strike AS ON INSERT TO snowflake_migrate_internal.restore DO ALSO SELECT arms.strike()",
            "UPDATE snowflake_migrate_internal.restore SET kind = 'default'",
        ]
        .map(str::to_owned),
    );
    ways
}

/// What an attack could change.
const STATE: &str = "SELECT (SELECT (last_value > 8000000000000000000)::text FROM snowflake_internal.mark)
    || (SELECT string_agg(o::text, ';' ORDER BY o::text) FROM snowflake_migrate_internal.origins AS o)
    || (SELECT string_agg(l.layout, ';' ORDER BY l.layout) FROM snowflake_internal.accepted_layout AS l)
    || (SELECT count(*) FROM snowflake_internal.restore)
    || (SELECT string_agg(concat(tgname, tgenabled), ';' ORDER BY tgrelid) FROM pg_trigger
        WHERE tgrelid IN ('snowflake_internal.restore'::regclass, 'snowflake_migrate_internal.restore'::regclass))
    || (SELECT string_agg(concat(relhasrules, relhassubclass, relrowsecurity), ';' ORDER BY oid) FROM pg_class
        WHERE oid IN ('snowflake_internal.restore'::regclass, 'snowflake_migrate_internal.restore'::regclass))";

/// A table of another role, migrated, and one that is not.
const TABLES: &str =
    "CREATE TABLE stranger.t (id serial PRIMARY KEY); INSERT INTO stranger.t DEFAULT VALUES;
    CALL snowflake_migrate.run('stranger.t'); CREATE TABLE stranger.new (id serial PRIMARY KEY)";

#[test]
fn rows_of_other_roles_restore_nothing() -> Result<()> {
    let cluster = server()?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut admin = Session::connect(&cluster, "postgres", "postgres")?;
    admin.run("CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate")?;
    admin.run(ATTACK_FUNCTIONS)?;
    admin.run(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON snowflake_internal.restore, snowflake_migrate_internal.restore TO mallory",
    )?;
    Session::connect(&cluster, "stranger", "postgres")?.run(TABLES)?;
    let mut mallory = Session::connect(&cluster, "mallory", "postgres")?;
    let state = admin.run(STATE)?;
    for way in ways() {
        mallory.attempt("ROLLBACK")?;
        let (_, answer) = mallory.attempt(&format!("BEGIN; {way}; COMMIT"))?;
        mallory.attempt("ROLLBACK")?;
        attacks.check(&way)?;
        let now = admin.run(STATE)?;
        attacks.record(now != state, format!("{way}: changed {now}"));
        // What is allowed has nothing to write.
        ensure!(
            answer.contains("42501")
                || answer.contains("restore_row")
                || way.starts_with("UPDATE")
                || way.starts_with("DELETE")
                || way.starts_with("LOCK"),
            "{way}: {answer}"
        );
    }
    // A superuser writes to a table of the attacker, whose trigger has the function.
    mallory.run(
        "CREATE TABLE arms.bait (LIKE snowflake_internal.restore INCLUDING DEFAULTS);
         ALTER TABLE arms.bait ALTER record SET DEFAULT 'mark', ALTER mark SET DEFAULT 9000000000000000000;
         CREATE TRIGGER hook BEFORE INSERT ON arms.bait FOR EACH ROW EXECUTE FUNCTION snowflake_internal.restore_row()",
    )?;
    let (_, answer) = admin.attempt("INSERT INTO arms.bait (accepted_at) VALUES (now())")?;
    ensure!(answer.contains("39P01"), "{answer}");
    attacks.record(admin.run(STATE)? != state, "the trigger on another table");
    // What a role may lock stops neither IDs nor dumps nor restoring them.
    mallory.run("BEGIN; LOCK TABLE snowflake_internal.restore IN ROW EXCLUSIVE MODE")?;
    admin.run("SET lock_timeout = '1s'")?;
    admin.run("INSERT INTO snowflake_internal.restore (record, mark) VALUES ('mark', 1)")?;
    admin.run("SELECT snowflake_nextval()")?;
    cluster.dump("postgres", &["--lock-wait-timeout=1s"])?;
    attacks.record(false, "locks");
    attacks.end("rows of a dump by a role that owns neither the database nor the extension");
    Ok(())
}

/// The owner of a database, and the owner of the extension in another's database.
#[test]
fn owners_restore_into_their_own_tables_only() -> Result<()> {
    let cluster = server()?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut admin = cluster.connect()?;
    admin.run([
        "CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate",
        "CREATE DATABASE of_mallory OWNER mallory",
        "CREATE DATABASE of_stranger OWNER stranger",
    ])?;
    for (database, creator) in [("of_mallory", "postgres"), ("of_stranger", "mallory")] {
        let mut here = Session::connect(&cluster, "postgres", database)?;
        here.run(ATTACK_FUNCTIONS)?;
        here.run(
            "GRANT CREATE ON DATABASE of_mallory TO mallory; GRANT CREATE ON DATABASE of_stranger TO mallory",
        )?;
        Session::connect(&cluster, creator, database)?
            .run("CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate")?;
        Session::connect(&cluster, "stranger", database)?.run(TABLES)?;
        let mut mallory = Session::connect(&cluster, "mallory", database)?;
        // A record of another owner's table.
        let origins = "SELECT string_agg(o::text, ';' ORDER BY o::text) FROM snowflake_migrate_internal.origins AS o";
        let before = here.run(origins)?;
        for row in [
            ORIGIN.to_owned(),
            ORIGIN.replace("'new'", "'t'"),
            ORIGIN.replace("'new'", "'nothing'"),
            ORIGIN.replace(
                "'stranger', 'new'",
                "'snowflake_migrate_internal', 'origins'",
            ),
            ORIGIN.replace("'stranger', 'new'", "'pg_catalog', 'pg_class'"),
        ] {
            let (done, answer) = mallory.attempt(&row)?;
            ensure!(
                done && answer.contains("was not restored"),
                "{row}: {answer}"
            );
            attacks.record(here.run(origins)? != before, &row);
        }
        attacks.check("a record of another owner's table")?;
        // Rows that no dump has.
        for (row, sqlstate) in [
            ("(record) VALUES ('mark')", "23502"),
            ("(record, mark) VALUES ('mark', -1)", "22003"),
            ("(record) VALUES ('layout')", "23502"),
            (
                "(record, layout, accepted_at) VALUES ('layout', E'x\\nFATAL: forged', now())",
                "22023",
            ),
            ("(record) VALUES ('origin')", "22023"),
            ("(record) VALUES ('other')", "22023"),
            ("(mark) VALUES (1)", "23502"),
        ] {
            let (_, answer) =
                mallory.attempt(&format!("INSERT INTO snowflake_internal.restore {row}"))?;
            ensure!(answer.contains(sqlstate), "{row}: {answer}");
        }
        let (_, answer) = mallory.attempt(
            "CREATE TABLE arms.t (id int); INSERT INTO snowflake_migrate_internal.restore (target_schema, target_name, column_name, kind, data_type, first_id_ever, first_id, remembered_at)
             VALUES ('arms', 't', 'id', 'forged', 'integer', 1, 1, now())",
        )?;
        ensure!(answer.contains("23514"), "{answer}");
        // A lower mark has no effect.
        let mark = "SELECT last_value FROM snowflake_internal.mark";
        let used = ids::nextval(&mut mallory.client, 1_000)?;
        let high = here.client.number(mark)?;
        mallory.run("INSERT INTO snowflake_internal.restore (record, mark) VALUES ('mark', 5)")?;
        attacks.record(here.client.number(mark)? < high, "a lower mark");
        let after = ids::nextval(&mut mallory.client, 1_000)?;
        attacks.record(after[0] <= used[999], "IDs after a lower mark");
        // A mark far ahead stops this database only.
        mallory.run(MARK)?;
        let own = mallory
            .client
            .expect_error("SELECT snowflake_nextval() FROM generate_series(1, 100000000)")?;
        ensure!(own.sqlstate == "58000" || own.sqlstate == "57014", "{own}");
        let mut fresh = cluster.connect_as("mallory", database)?;
        fresh.batch_execute("SET snowflake.max_wait = 0")?;
        fresh.refused(
            "SELECT snowflake_nextval() FROM generate_series(1, 100000000)",
            "58000",
        )?;
        let lead = DEFAULT.lead_ms(ids::one(&mut admin)?);
        attacks.record(
            lead > LEASE_MS + 1_500,
            format!("another database is {lead} ms ahead"),
        );
    }
    attacks.end("rows of a dump by owners of databases and extensions");
    Ok(())
}

/// Marks within the lease, again and again: other databases stay within it.
#[test]
fn restored_marks_move_other_databases_by_a_lease_at_most() -> Result<()> {
    let cluster = server()?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut admin = cluster.connect()?;
    admin.run([
        "CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate",
        "CREATE DATABASE of_mallory OWNER mallory",
    ])?;
    let mut mallory = cluster.connect_as("mallory", "of_mallory")?;
    mallory.batch_execute("CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate")?;
    let mut highest = 0;
    for _ in 0..200 {
        mallory.batch_execute(
            "INSERT INTO snowflake_internal.restore (record, mark)
             SELECT 'mark', greatest(snowflake_max_id(clock_timestamp() + '1900 ms'), last_value + 1) FROM snowflake_internal.mark",
        )?;
        let _ = mallory.batch_execute("SET snowflake.max_wait = 0; SELECT snowflake_nextval()");
        highest = highest.max(DEFAULT.lead_ms(ids::one(&mut admin)?));
    }
    attacks.record(highest > LEASE_MS + 1_500, format!("{highest} ms"));
    attacks.end("marks that move other databases");
    Ok(())
}

/// A superuser dumps a database whose owner has planted operators, types and
/// functions before the extension was created, and restores it.
#[test]
fn dumps_by_a_superuser_run_nothing_of_the_owner() -> Result<()> {
    let cluster = server()?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut admin = cluster.connect()?;
    admin.batch_execute("CREATE DATABASE planted OWNER mallory")?;
    let mut admin = cluster.connect_to("planted")?;
    admin.batch_execute(ATTACK_FUNCTIONS)?;
    let mut owner = cluster.connect_as("mallory", "planted")?;
    owner.batch_execute("SET search_path = pg_catalog")?;
    owner.batch_execute(PLANT_TYPES)?;
    owner.batch_execute(PLANT)?;
    owner.batch_execute(
        "RESET search_path; CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate; CREATE TABLE arms.mine (id serial PRIMARY KEY);
         INSERT INTO arms.mine DEFAULT VALUES; CALL snowflake_migrate.run('arms.mine'); INSERT INTO arms.mine DEFAULT VALUES",
    )?;
    for options in [
        &["--data-only", "-Fp"][..],
        &["--data-only", "-Fp", "--inserts"],
    ] {
        let whole = cluster.dump("planted", options)?;
        attacks.check(format!("pg_dump {options:?}"))?;
        let output = cluster.restore(
            &whole,
            "psql",
            "postgres",
            "planted",
            &["--set=ON_ERROR_STOP=0"],
        )?;
        attacks.check(format!("restoring pg_dump {options:?}"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(said.contains("is recorded already"), "{said}");
    }
    let kept = admin.value("SELECT count(*) FROM snowflake_migrate_internal.origins")?;
    attacks.record(kept != "1", "records");
    attacks.end("dumps of a database with planted objects");
    Ok(())
}

/// Rows that logical replication brings are those of another server.
#[test]
fn dumps_are_not_restored_by_logical_replication() -> Result<()> {
    let (publisher, subscriber) = crate::support::publisher_and_subscriber()?;
    let (mut from, mut to) = (publisher.connect()?, subscriber.connect()?);
    for client in [&mut from, &mut to] {
        client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)")?;
    }
    // A publisher that stores rows: by hand, without the trigger and the constraint.
    from.batch_execute(
        "ALTER TABLE snowflake_internal.restore DISABLE TRIGGER restore_row;
         ALTER TABLE snowflake_internal.restore DROP CONSTRAINT restore_applies_rows_by_its_trigger;
         CREATE PUBLICATION everything FOR ALL TABLES",
    )?;
    crate::support::subscribe(&mut to, &publisher, "everything")?;
    from.batch_execute(&format!("{MARK}; INSERT INTO t VALUES (1)"))?;
    to.wait_until("SELECT EXISTS (SELECT FROM t)")?;
    let mark = to.number("SELECT last_value FROM snowflake_internal.mark")?;
    ensure!(mark < 1 << 62, "the mark is {mark}");
    ids::one(&mut to).context("IDs of the subscriber")?;
    to.batch_execute("ALTER SUBSCRIPTION of_everything DISABLE; ALTER SUBSCRIPTION of_everything SET (slot_name = NONE); DROP SUBSCRIPTION of_everything")?;
    Ok(())
}

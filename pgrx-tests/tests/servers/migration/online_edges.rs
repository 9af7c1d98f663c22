//! What an online migration keeps besides columns and foreign keys: partial indexes,
//! expressions, CHECK constraints, extended statistics and the grantors of privileges.
//! And what prevents a migration: DEFERRABLE constraints, expressions that accept
//! integers only.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use postgres::error::SqlState;
use snowflake_tests::migration::plan;

use super::{LIMIT, owner, run_before};
use crate::support::*;

/// A plain unique index over the shadow column would fail statements that the
/// constraint allows, and PostgreSQL has no other one without a constraint.
#[test]
fn deferrable_keys_are_migrated_in_a_window() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = owner(&cluster)?;
    client.batch_execute(
        "CREATE TABLE lists (id serial PRIMARY KEY);
         CREATE TABLE items (list_id int NOT NULL REFERENCES lists, position int,
             CONSTRAINT items_key UNIQUE (list_id, position) DEFERRABLE INITIALLY DEFERRED);
         INSERT INTO lists SELECT FROM generate_series(1, 200);
         INSERT INTO items SELECT l, p FROM generate_series(1, 200) AS l, generate_series(1, 10) AS p",
    )?;
    let plan = "SELECT snowflake_migrate.plan('lists', online => true)";
    let answer = client.refused(plan, "55000")?;
    let said = "constraint items_key of public.items is DEFERRABLE";
    assert!(answer.detail.contains(said), "{answer}");
    let exchange = "UPDATE items SET position = 11 - position";
    for statement in [
        "CALL snowflake_migrate.run('lists')",
        exchange,
        "CALL snowflake_migrate.revert('lists')",
        exchange,
    ] {
        client.batch_execute(statement)?;
    }
    client.refused("INSERT INTO items VALUES (8, 1)", "23505")?;
    Ok(())
}

/// Objects with expressions, in a schema. None of their texts depends on the type
/// of the column.
const EXPRESSIONS: &str = "CREATE TABLE {s}.projects (id serial PRIMARY KEY, name text);
     CREATE TABLE {s}.hooks (\"Project id\" int REFERENCES {s}.projects, group_id int, id serial, kind text DEFAULT 'Project id', n int,
         CONSTRAINT one_of CHECK (num_nonnulls(\"Project id\", group_id) = 1),
         CONSTRAINT positive CHECK (\"Project id\" > 0) NO INHERIT);
     ALTER TABLE {s}.hooks ADD CONSTRAINT small CHECK (\"Project id\" <= 5000 OR kind <> 'Project id') NOT VALID;
     COMMENT ON CONSTRAINT one_of ON {s}.hooks IS 'one of the two';
     CREATE UNIQUE INDEX of_project ON {s}.hooks (\"Project id\", kind) WHERE \"Project id\" IS NOT NULL;
     CREATE UNIQUE INDEX of_group ON {s}.hooks (group_id, kind) WHERE \"Project id\" IS NULL AND kind <> '\"Project id\"';
     CREATE INDEX as_text ON {s}.hooks USING hash ((\"Project id\"::text || kind)) WITH (fillfactor = 77) WHERE n > 3;
     CREATE INDEX in_order ON {s}.hooks (abs(\"Project id\") DESC NULLS LAST, lower(kind) COLLATE \"C\", n) INCLUDE (group_id);
     ALTER INDEX {s}.in_order ALTER COLUMN 1 SET STATISTICS 321;
     COMMENT ON INDEX {s}.in_order IS 'an index';
     ALTER TABLE {s}.hooks CLUSTER ON in_order;
     CREATE STATISTICS {s}.both_of (mcv, dependencies) ON \"Project id\", n FROM {s}.hooks;
     CREATE STATISTICS {s}.of_text ON (\"Project id\"::text), (n % 3) FROM {s}.hooks;
     CREATE STATISTICS {s}.alone ON (abs(\"Project id\")) FROM {s}.hooks;
     ALTER STATISTICS {s}.of_text SET STATISTICS 55; COMMENT ON STATISTICS {s}.both_of IS 'of both';
     INSERT INTO {s}.projects (name) SELECT 'p' || n FROM generate_series(1, 300) AS n;
     INSERT INTO {s}.hooks (\"Project id\", group_id, kind, n)
         SELECT CASE WHEN n % 3 > 0 THEN n END, CASE WHEN n % 3 = 0 THEN n END, 'k' || n, n % 10 FROM generate_series(1, 300) AS n;
     ANALYZE {s}.projects, {s}.hooks";

const STATISTICS: &str = "SELECT (SELECT string_agg(statistics_name, ' ' ORDER BY statistics_name) FROM pg_stats_ext WHERE schemaname = 'online')
     || ', ' || (SELECT count(*) FROM pg_stats WHERE schemaname = 'online' AND tablename IN ('as_text', 'in_order'))";

#[test]
fn expressions_checks_and_statistics_are_kept_online_as_in_a_window() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = owner(&cluster)?;
    let client = &mut client;
    for schema in ["window", "online"] {
        let schema = format!("\"{schema}\"");
        client.batch_execute(&format!(
            "CREATE SCHEMA {schema}; {}",
            EXPRESSIONS.replace("{s}", &schema)
        ))?;
    }
    let original = schema(&cluster, "postgres")?;
    let statistics = client.value(STATISTICS)?;
    let steps = online::plan(client, "'online.projects'")?;
    // Each step can be reverted, and leaves the rest of the plan.
    for (done, step) in steps.iter().enumerate() {
        let when = &step.statement;
        client.batch_execute(when).with_context(|| when.clone())?;
        let left = online::plan(client, "'online.projects'")?;
        assert_eq!(
            online::statements(&left),
            online::statements(&steps[done + 1..]),
            "{when}"
        );
        for (violation, sqlstate) in [
            (
                "INSERT INTO online.hooks (\"Project id\", group_id) VALUES (1, 1)",
                "23514",
            ),
            (
                "INSERT INTO online.hooks (\"Project id\") VALUES (0)",
                "23514",
            ),
            (
                "INSERT INTO online.hooks (\"Project id\", kind) VALUES (1, 'k1')",
                "23505",
            ),
            (
                "INSERT INTO online.hooks (group_id, kind) VALUES (3, 'k3')",
                "23505",
            ),
        ] {
            client
                .refused(violation, sqlstate)
                .with_context(|| when.clone())?;
        }
        if steps.get(done + 1).is_some_and(Step::is_swap) {
            client.batch_execute("CALL snowflake_migrate.revert('online.projects')")?;
            assert_same_schema(&original, &schema(&cluster, "postgres")?, "reverted");
            client.run(online::statements(&steps[..=done]))?;
        }
    }
    client.answers(STATISTICS, statistics)?;
    // PostgreSQL loses these targets when it rebuilds an index or a statistics object.
    client.batch_execute(
        "CALL snowflake_migrate.run('\"window\".projects'); CALL snowflake_migrate.run('\"window\".projects');
         ALTER INDEX \"window\".in_order ALTER COLUMN 1 SET STATISTICS 321; ALTER STATISTICS \"window\".of_text SET STATISTICS 55",
    )?;
    // The order of the columns is another one.
    let dump = online::unordered(&schema(&cluster, "postgres")?)
        .replace("ON n, \"Project id\"", "ON \"Project id\", n");
    let of = |name: &str, other: &str| {
        let mut lines: Vec<String> = dump
            .lines()
            .filter(|line| line.contains(name) && !line.contains(other))
            .map(|line| line.replace(name, "s"))
            .collect();
        lines.sort();
        lines.join("\n")
    };
    assert_same_schema(
        &of("\"window\"", "online"),
        &of("online", "\"window\""),
        "online",
    );
    // NOT VALID, NO INHERIT and the state of the indexes.
    let state = |schema: &str| {
        format!(
            "SELECT (SELECT string_agg(conname || convalidated || connoinherit, ' ' ORDER BY conname) FROM pg_constraint
                     WHERE conrelid = '{schema}.hooks'::regclass AND contype = 'c')
                 || (SELECT string_agg(c.relname || i.indisvalid || i.indisclustered || coalesce(obj_description(c.oid, 'pg_class'), '') || a.attnum || a.attname || coalesce(a.attstattarget, -1), ' ' ORDER BY c.relname, a.attnum)
                     FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_attribute AS a ON a.attrelid = c.oid
                     WHERE i.indrelid = '{schema}.hooks'::regclass)"
        )
    };
    let of_window = client.value(&state("\"window\""))?;
    client.answers(&state("online"), of_window)?;
    Ok(())
}

/// What is changed between the preparation and the swap, and what a query then
/// shows of it after the migration.
#[rustfmt::skip]
const CHANGES: &[(&str, &str, &str)] = &[
    ("DROP INDEX few; CREATE UNIQUE INDEX few ON t (n) WHERE id > 9", "SELECT pg_get_indexdef('few'::regclass)",
        "CREATE UNIQUE INDEX few ON public.t USING btree (n) WHERE (id > 9)"),
    ("ALTER TABLE t DROP CONSTRAINT positive; ALTER TABLE t ADD CONSTRAINT positive CHECK (id > -1)", "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'positive'", "CHECK ((id > '-1'::integer))"),
    ("DROP STATISTICS st; CREATE STATISTICS st ON id, n, m FROM t", "SELECT pg_get_statisticsobjdef(oid) FROM pg_statistic_ext", "CREATE STATISTICS public.st ON n, m, id FROM t"),
    ("DROP INDEX few; ALTER TABLE t DROP CONSTRAINT positive; DROP STATISTICS st; ALTER TABLE r DROP CONSTRAINT again",
        "SELECT count(*) FROM pg_constraint WHERE conrelid IN ('t'::regclass, 'r'::regclass) AND contype IN ('c', 'f') AND conname <> 'snowflake_id_boundary'", "1"),
];

#[test]
fn counterparts_follow_objects_that_are_replaced_or_dropped() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = owner(&cluster)?;
    let client = &mut client;
    for (change, query, expected) in CHANGES {
        client.batch_execute(
            "CREATE TABLE t (n int, m int, id serial PRIMARY KEY, CONSTRAINT positive CHECK (id > 0));
             CREATE TABLE r (t_id int REFERENCES t, CONSTRAINT again FOREIGN KEY (t_id) REFERENCES t);
             CREATE UNIQUE INDEX few ON t (n) WHERE id > 7; CREATE STATISTICS st ON id, n FROM t; INSERT INTO t (n) SELECT n FROM generate_series(1, 20) AS n",
        )?;
        let (steps, swap) = run_before(client, "'t'", Step::is_swap)?;
        client.batch_execute(change)?;
        // What was dropped is not missed.
        if !change.contains("again") {
            client
                .refused(&steps[swap].statement, "55000")
                .context(*change)?;
        }
        online::migrate(client, "'t'").context(*change)?;
        client.answers(query, *expected)?;
        let left = "SELECT (SELECT count(*) FROM pg_class WHERE relname LIKE 'snowflake\\_________\\_%' AND relkind = 'i')
                  + (SELECT count(*) FROM pg_constraint WHERE conname LIKE 'snowflake\\_%' AND conname <> 'snowflake_id_boundary' AND conrelid IN ('t'::regclass, 'r'::regclass))
                  + (SELECT count(*) FROM pg_statistic_ext WHERE stxname LIKE 'snowflake\\_%')";
        client.answers(left, 0)?;
        client.batch_execute("DROP TABLE t, r")?;
    }
    Ok(())
}

/// Runs the steps of the plan, each beside rounds of the writers, and at least three
/// between one and the next.
fn migrate_beside_rounds(client: &mut Client, done: &AtomicI64, allowed: &AtomicI64) -> Result<()> {
    let steps = online::plan(client, "'projects'")?;
    ensure!(steps.len() <= 20, "{} steps", steps.len());
    for step in &steps {
        // There are 5,000, for at most 20 steps.
        allowed.fetch_add(200, Ordering::SeqCst);
        client
            .batch_execute(&step.statement)
            .with_context(|| step.statement.clone())?;
        // A step that took long has used up its rounds.
        let before = done.load(Ordering::SeqCst);
        allowed.fetch_max(before + 4, Ordering::SeqCst);
        wait::until("rounds after a step", LIMIT, || {
            Ok(done.load(Ordering::SeqCst) >= before + 3)
        })?;
    }
    Ok(())
}

/// Two sessions insert the same values at the same time, into a table with a
/// partial unique index.
#[test]
fn of_two_equal_rows_one_is_refused_during_a_migration() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = owner(&cluster)?;
    client.batch_execute(
        "CREATE TABLE projects (id serial PRIMARY KEY); INSERT INTO projects SELECT FROM generate_series(1, 5000);
         CREATE TABLE settings (project_id int REFERENCES projects, note text, CHECK (project_id > 0));
         CREATE UNIQUE INDEX one_each ON settings (project_id) WHERE project_id IS NOT NULL;
         INSERT INTO settings (project_id) SELECT NULL FROM generate_series(1, 2000)",
    )?;
    let is_done = AtomicBool::new(false);
    // Rounds that were run, and that may be run: each step has some beside it.
    let (done, allowed) = (AtomicI64::new(0), AtomicI64::new(0));
    let (won, lost) = (AtomicI64::new(0), AtomicI64::new(0));
    let barrier = std::sync::Barrier::new(2);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| -> Result<()> {
        let (is_done, won, lost, barrier, is_over) = (&is_done, &won, &lost, &barrier, &is_over);
        let (done, allowed) = (&done, &allowed);
        let cluster = &cluster;
        let writers: Vec<_> = (0..2)
            .map(|me| {
                scope.spawn(move || -> Result<i64> {
                    let mut writer = cluster.connect_as("keeper", "postgres")?;
                    for n in 1..=5000_i64 {
                        // Both end in the same round.
                        barrier.wait();
                        if me == 0 {
                            done.store(n - 1, Ordering::SeqCst);
                            while n > allowed.load(Ordering::SeqCst)
                                && !is_done.load(Ordering::SeqCst)
                            {
                                thread::sleep(Duration::from_millis(1));
                            }
                            is_over.store(is_done.load(Ordering::SeqCst), Ordering::SeqCst);
                        }
                        barrier.wait();
                        if is_over.load(Ordering::SeqCst) {
                            return Ok(n - 1);
                        }
                        let statement = if n % 2 == 0 {
                            format!("INSERT INTO settings (project_id, note) VALUES ({n}, 'n')")
                        } else {
                            format!("UPDATE settings SET project_id = {n} WHERE ctid = (SELECT ctid FROM settings WHERE project_id IS NULL OFFSET {me} LIMIT 1)")
                        };
                        // An update finds no row that has just been copied.
                        match writer.execute(&statement, &[]) {
                            Ok(rows) => won.fetch_add(i64::try_from(rows)?, Ordering::SeqCst),
                            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                                lost.fetch_add(1, Ordering::SeqCst)
                            }
                            Err(error) => return Err(error).context(statement),
                        };
                    }
                    Ok(5000)
                })
            })
            .collect();
        let migrated = migrate_beside_rounds(&mut client, done, allowed);
        is_done.store(true, Ordering::SeqCst);
        let mut rounds = 0;
        for writer in writers {
            rounds = writer.join().expect("the session's thread")?;
        }
        migrated?;
        let rows = client.number("SELECT count(*) FROM settings WHERE project_id IS NOT NULL")?;
        let distinct = client.number("SELECT count(DISTINCT project_id) FROM settings")?;
        let (won, lost) = (won.load(Ordering::SeqCst), lost.load(Ordering::SeqCst));
        println!(
            "online migration: {rounds} pairs of equal rows at the same time: {won} stayed, {lost} were refused"
        );
        assert_eq!((rows, distinct), (won, won));
        client.answers(
            "SELECT count(*) FROM settings WHERE project_id % 2 = 0",
            rounds / 2,
        )?;
        Ok(())
    })?;
    assert_eq!(online::plan(&mut client, "'projects'")?, []);
    Ok(())
}

/// Expressions that accept integers only: what is created, what the DETAIL says of
/// it, and what removes it.
#[rustfmt::skip]
const INTEGERS_ONLY: &[(&str, &str, &str)] = &[
    ("ALTER TABLE t ADD CONSTRAINT odd CHECK (narrow(id) > 0)", "check constraint odd of f.t cannot use a bigint column: function f.narrow(bigint) does not exist", ""),
    ("CREATE INDEX ind ON t (narrow(id))", "index f.ind cannot use a bigint column: function f.narrow(bigint) does not exist", ""),
    ("CREATE UNIQUE INDEX ind ON t (n) WHERE narrow(id) > 3", "index f.ind cannot use a bigint column: function f.narrow(bigint) does not exist", ""),
    ("CREATE STATISTICS st ON (narrow(id)), n FROM t", "statistics object f.st cannot use a bigint column: function f.narrow(bigint) does not exist", ""),
    ("CREATE TABLE r (t_id int REFERENCES t, CHECK (narrow(t_id) > 0))", "check constraint r_t_id_check of f.r cannot use a bigint column: function f.narrow(bigint) does not exist", ""),
    ("CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq); ALTER TABLE t ADD CHECK (id === id)", "operator does not exist: bigint f.=== bigint",
     "CREATE OPERATOR f.=== (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = int8eq)"),
    ("ALTER TABLE t ADD CONSTRAINT apart EXCLUDE USING gist (int4range(id, id + 1) WITH &&)", "exclusion constraint apart of f.t cannot use a bigint column: function int4range(bigint, bigint) does not exist",
     "ALTER TABLE f.t DROP CONSTRAINT apart"),
];

#[test]
fn expressions_that_accept_integers_only_are_named_before_anything_is_changed() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = owner(&cluster)?;
    let client = &mut client;
    client.batch_execute("SET client_min_messages = error")?;
    for is_online in [false, true] {
        for (setup, said, remedy) in INTEGERS_ONLY {
            client.batch_execute(
                "DROP SCHEMA IF EXISTS f CASCADE; CREATE SCHEMA f; SET search_path = f, public;
                 CREATE FUNCTION narrow(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
                 -- A pair, and one that may not be called without a row.
                 CREATE FUNCTION pair(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
                 CREATE FUNCTION pair(bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
                 CREATE FUNCTION loud(bigint, int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RAISE ''called''; END';
                 CREATE TABLE t (id serial PRIMARY KEY, n int, CHECK (pair(id) > 0), CHECK (id > 0 OR loud(id, n))); CREATE INDEX ON t (pair(id));
                 INSERT INTO t (n) SELECT n FROM generate_series(30, 39) AS n",
            )?;
            client.run([setup, "RESET search_path"])?;
            let before = schema(&cluster, "postgres")?;
            let plan_it =
                format!("SELECT * FROM snowflake_migrate.plan('f.t', online => {is_online})");
            let answer = client.refused(&plan_it, "55000").context(*setup)?;
            assert!(answer.detail.contains(said), "no {said:?} in {answer}");
            assert!(
                answer
                    .detail
                    .contains("with bigint parameters, which accept integers too. Then create the"),
                "{answer}"
            );
            assert_same_schema(&before, &schema(&cluster, "postgres")?, setup);
            let remedy = if remedy.is_empty() {
                "CREATE FUNCTION f.narrow(bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END'"
            } else {
                remedy
            };
            client.batch_execute(remedy)?;
            if is_online {
                online::migrate(client, "'f.t'").context(*setup)?;
            } else {
                client
                    .batch_execute("CALL snowflake_migrate.run('f.t')")
                    .context(*setup)?;
            }
            client.answers("SELECT count(*) FROM f.t WHERE id + 29 = n", 10)?;
        }
    }
    Ok(())
}

/// A foreign key whose unique index includes the migrated column.
#[test]
fn a_foreign_key_on_an_index_that_includes_the_column_is_named_with_a_remedy_that_helps()
-> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = owner(&cluster)?;
    let client = &mut client;
    for is_online in [false, true] {
        client.batch_execute(
            "CREATE TABLE t (id serial PRIMARY KEY, code int, CONSTRAINT t_code UNIQUE (code) INCLUDE (id)); INSERT INTO t (code) VALUES (7);
             CREATE TABLE c (code int REFERENCES t (code)); INSERT INTO c VALUES (7)",
        )?;
        let plan_it = format!("SELECT * FROM snowflake_migrate.plan('t', online => {is_online})");
        let answer = client.refused(&plan_it, "55000")?;
        for part in [
            "foreign key c_code_fkey of public.c depends on unique index public.t_code, which includes column id",
            "without INCLUDE (id), and add the foreign key again",
        ] {
            assert!(answer.detail.contains(part), "no {part:?} in {answer}");
        }
        client.batch_execute(
            "BEGIN; ALTER TABLE c DROP CONSTRAINT c_code_fkey; ALTER TABLE t DROP CONSTRAINT t_code; ALTER TABLE t ADD UNIQUE (code);
             ALTER TABLE c ADD FOREIGN KEY (code) REFERENCES t (code); COMMIT",
        )?;
        if is_online {
            online::migrate(client, "'t'")?;
        } else {
            client.run(vec!["CALL snowflake_migrate.run('t')"; 2])?;
        }
        assert_eq!(plan(client, "'t'")?.len(), 0);
        client.refused("INSERT INTO c VALUES (8)", "23503")?;
        client.batch_execute("DROP TABLE c, t")?;
    }
    Ok(())
}

const GRANTS: &str = "SELECT string_agg(format('%s %s %s %s', g.grantor::regrole, g.grantee::regrole, g.privilege_type, g.is_grantable), ', '
            ORDER BY g.grantor::regrole::text, g.grantee::regrole::text, g.privilege_type)
     FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(a.attacl) AS g WHERE a.attrelid = 't'::regclass AND a.attname = 'id'";

/// A column's privileges that roles have granted on, over two levels, with a grant
/// option of the whole table, and by a role without USAGE on the schema.
#[test]
fn the_grantors_of_column_privileges_are_kept() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = owner(&cluster)?;
    let mut admin = cluster.connect()?;
    admin.batch_execute(
        "CREATE ROLE first LOGIN; CREATE ROLE second LOGIN; CREATE ROLE third; CREATE ROLE member LOGIN IN ROLE keeper, first, second; CREATE ROLE whole LOGIN;
         REVOKE USAGE ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO keeper, first, second, whole",
    )?;
    for migrating in ["postgres", "member", "keeper"] {
        client.batch_execute(
            "CREATE TABLE t (id serial PRIMARY KEY, n int); INSERT INTO t (n) VALUES (1);
             GRANT SELECT (id), UPDATE (id) ON t TO first WITH GRANT OPTION; GRANT SELECT ON t TO whole WITH GRANT OPTION; GRANT REFERENCES (id) ON t TO PUBLIC",
        )?;
        let grants = [
            (
                "first",
                "GRANT SELECT (id) ON t TO second WITH GRANT OPTION; GRANT UPDATE (id) ON t TO third",
            ),
            ("second", "GRANT SELECT (id) ON t TO third"),
            ("whole", "GRANT SELECT (id) ON t TO third"),
        ];
        for (role, statement) in grants {
            cluster
                .connect_as(role, "postgres")?
                .batch_execute(statement)?;
        }
        let before = admin.value(GRANTS)?;
        assert!(
            before.contains("second third SELECT f, whole third SELECT f"),
            "{before}"
        );
        if migrating == "member" {
            admin
                .batch_execute("GRANT whole TO member; REVOKE USAGE ON SCHEMA public FROM whole")?;
        }
        let mut session = cluster.connect_as(migrating, "postgres")?;
        online::migrate(&mut session, "'t'")?;
        let after = admin.value(GRANTS)?;
        match migrating {
            "postgres" => assert_eq!(after, before),
            // The owner grants what a role without USAGE on the schema cannot.
            "member" => assert_eq!(
                after,
                before.replace(", whole third SELECT f", "").replace(
                    "keeper first UPDATE t,",
                    "keeper first UPDATE t, keeper third SELECT f,"
                )
            ),
            // And what roles have granted for which the caller cannot act.
            _ => {
                for part in [
                    "keeper first SELECT t",
                    "keeper second SELECT t",
                    "keeper third SELECT f",
                    "keeper third UPDATE f",
                ] {
                    assert!(after.contains(part), "no {part:?} in {after}");
                }
            }
        }
        if migrating == "member" {
            admin
                .batch_execute("GRANT USAGE ON SCHEMA public TO whole; REVOKE whole FROM member")?;
        }
        client.batch_execute("DROP TABLE t")?;
    }
    Ok(())
}

/// Some minor releases keep a version there, which others refuse.
#[test]
fn options_of_columns_that_begin_with_pg_are_left_out() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = owner(&cluster)?;
    client.batch_execute(
        "CREATE TABLE t (id serial PRIMARY KEY, n int); ALTER TABLE t ALTER id SET (n_distinct = -0.5); INSERT INTO t (n) VALUES (1)",
    )?;
    let mut admin = cluster.connect()?;
    let mark = "UPDATE pg_attribute SET attoptions = array_append(array_remove(attoptions, 'pg_attver=7'), 'pg_attver=7') WHERE attrelid = 't'::regclass AND attnum > 0";
    admin.batch_execute(mark)?;
    let (steps, swap) = run_before(&mut client, "'t'", Step::is_swap)?;
    let said = steps
        .iter()
        .filter(|step| step.statement.contains("pg_attver"))
        .count();
    assert_eq!(said, 0);
    // And with other options in the meantime.
    admin.batch_execute("UPDATE pg_attribute SET attoptions = '{pg_attver=9,n_distinct=-0.75}' WHERE attrelid = 't'::regclass AND attname = 'id'")?;
    client.batch_execute(&steps[swap].statement)?;
    let options = "SELECT array_to_string(ARRAY(SELECT o FROM unnest(attoptions) AS o WHERE o NOT LIKE 'pg_%'), ' ') FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'id'";
    client.answers(options, "n_distinct=-0.75")?;
    Ok(())
}

/// A statistics object of another role.
#[test]
fn the_owner_of_a_statistics_object_is_kept() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = owner(&cluster)?;
    let mut admin = cluster.connect()?;
    client.batch_execute(
        "CREATE TABLE t (id serial PRIMARY KEY, n int); INSERT INTO t (n) SELECT n FROM generate_series(1, 20) AS n; CREATE STATISTICS st ON id, n FROM t; COMMENT ON STATISTICS st IS 'of both'",
    )?;
    admin.batch_execute("CREATE ROLE analyst; GRANT CREATE ON SCHEMA public TO analyst; ALTER STATISTICS st OWNER TO analyst")?;
    let plan_it = "SELECT snowflake_migrate.plan('t', online => true)";
    let answer = client.refused(plan_it, "55000")?;
    assert!(
        answer
            .detail
            .contains("statistics object public.st of public.t belongs to another role, analyst"),
        "{answer}"
    );
    admin.batch_execute("GRANT analyst TO keeper")?;
    online::migrate(&mut client, "'t'")?;
    let found = "SELECT stxowner::regrole || ' ' || obj_description(oid, 'pg_statistic_ext') || ' ' || pg_get_statisticsobjdef(oid) FROM pg_statistic_ext";
    client.answers(
        found,
        "analyst of both CREATE STATISTICS public.st ON n, id FROM t",
    )?;
    Ok(())
}

/// Names of columns are replaced, and names of pg_catalog's objects are qualified.
#[test]
fn names_of_columns_in_expressions_are_replaced() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    #[rustfmt::skip]
    let cases = [
        ("id", "new_id"),
        ("((id > 7) AND (\"Key\" = 1))", "((new_id OPERATOR(pg_catalog.>) 7) AND (\"new \"\"K\" OPERATOR(pg_catalog.=) 1))"),
        ("id(id) || \"id\" || 'id'", "pg_catalog.id(new_id) OPERATOR(pg_catalog.||) new_id OPERATOR(pg_catalog.||) 'id'"),
        ("CASE id WHEN 1 THEN \"Key\" ELSE ID END", "CASE new_id WHEN 1 THEN \"new \"\"K\" ELSE new_id END"),
        ("(ARRAY[id, 2])[id]", "(ARRAY[new_id, 2])[new_id]"),
        ("s.f(id => id, VARIADIC a => id)", "s.f(id => new_id, VARIADIC a => new_id)"),
        ("(id)::id COLLATE \"id\"", "(new_id)::pg_catalog.id COLLATE pg_catalog.\"id\""),
        ("(id)::text[] || (id)::s.text || 'id'::character varying(3)", "(new_id)::pg_catalog.text[] OPERATOR(pg_catalog.||) (new_id)::s.text OPERATOR(pg_catalog.||) 'id'::character varying(3)"),
        ("(id)::\"char\" = 'a'::bpchar", "(new_id)::pg_catalog.\"char\" OPERATOR(pg_catalog.=) 'a'::pg_catalog.bpchar"),
        ("xmlelement(name id, id)", "xmlelement(name id, new_id)"),
        ("EXTRACT(day FROM id)", "EXTRACT(day FROM new_id)"),
        ("COALESCE(id, 0)", "COALESCE(new_id, 0)"),
        ("\"né\" - (- id)", "\"né\" OPERATOR(pg_catalog.-) ( OPERATOR(pg_catalog.-) new_id)"),
        ("(id).id", "(new_id).id"),
        ("id -- id", "new_id -- id"),
        ("/* id */ id", "/* id */ new_id"),
        ("f(E'id\\'id', $$id$$, id)", "pg_catalog.f(E'id\\'id', $$id$$, new_id)"),
        ("NULLIF(id,id) IS DISTINCT FROM GREATEST(id,\"Key\")", "NULLIF(new_id,new_id) IS DISTINCT FROM GREATEST(new_id,\"new \"\"K\")"),
        ("id OPERATOR(id.+) id", "new_id OPERATOR(id.+) new_id"),
        ("(id = ANY (ARRAY[1, 2]))", "(new_id OPERATOR(pg_catalog.=) ANY (ARRAY[1, 2]))"),
        ("(id <> ALL ('{1,2}'::integer[]))", "(new_id OPERATOR(pg_catalog.<>) ALL ('{1,2}'::integer[]))"),
        ("(n ~~ 'id%'::text)", "(n OPERATOR(pg_catalog.~~) 'id%'::pg_catalog.text)"),
        ("(id IS NOT NULL)", "(new_id IS NOT NULL)"),
        ("u&id", "u OPERATOR(pg_catalog.&)new_id"),
        // Whole rows, qualified names, queries, and more than one expression.
        ("t.id", ""), ("(t.*) IS NULL", ""), ("ROW(t.*)", ""), ("(SELECT id)", ""), ("id = ANY (SELECT 1)", ""),
        ("id) , (id", ""), ("id) FROM t WHERE (id > 1", ""), ("id); SELECT (id", ""), ("id) LIMIT (1", ""), ("id) UNION SELECT (id", ""),
        ("U&\"id\"", ""),
    ];
    for (expression, expected) in cases {
        let row = client.query_one(
            "SELECT snowflake_migrate_internal.rename_columns($1::text, ARRAY['id', 'Key']::name[], ARRAY['new_id', 'new \"K']::name[])",
            &[&expression],
        )?;
        let found: Option<String> = row.get(0);
        assert_eq!(found.unwrap_or_default(), expected, "{expression}");
    }
    for text in ["", "id +", "id) (", "'id", "id AS x"] {
        let literal = text.replace('\'', "''");
        let call = format!(
            "SELECT snowflake_migrate_internal.rename_columns('{literal}', '{{id}}', '{{x}}')"
        );
        client.refused(&call, "42601").context(text)?;
    }
    let empty: Vec<Option<String>> = client.column(
        "SELECT snowflake_migrate_internal.rename_columns(NULL, '{id}', '{x}')
         UNION ALL SELECT snowflake_migrate_internal.rename_columns('id', NULL, '{x}')",
    )?;
    ensure!(empty.iter().all(Option::is_none), "{empty:?}");
    Ok(())
}

/// Objects on the search path that match better than those of pg_catalog.
const TRAPS: &str = "CREATE SCHEMA trap;
     CREATE FUNCTION trap.lower(varchar) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'sprung'; END $$;
     CREATE FUNCTION trap.abs(bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'sprung'; END $$;
     CREATE FUNCTION trap.larger(bigint, int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'sprung'; END $$;
     CREATE OPERATOR trap.> (LEFTARG = bigint, RIGHTARG = int, FUNCTION = trap.larger);
     CREATE DOMAIN trap.text AS pg_catalog.text CHECK (false);
     CREATE FUNCTION trap.same(pg_catalog.text, pg_catalog.text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
     CREATE OPERATOR trap.= (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION = trap.same);
     GRANT USAGE ON SCHEMA trap TO PUBLIC";

#[test]
fn expressions_of_a_plan_do_not_depend_on_the_search_path() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = owner(&cluster)?;
    let client = &mut client;
    cluster.run(TRAPS)?;
    client.batch_execute(
        "CREATE TABLE t (id serial PRIMARY KEY, kind varchar, CHECK (id > 0 AND lower(kind) <> 'none'::text));
         CREATE INDEX named ON t (abs(id), lower(kind)) WHERE id > 3 AND kind <> 'x'::text; CREATE STATISTICS st ON (abs(id)), kind FROM t;
         INSERT INTO t (kind) SELECT n FROM generate_series(1, 20) AS n;
         SET search_path = trap, pg_catalog, public",
    )?;
    let sprung = client.refused("SELECT abs(1::bigint)", "P0001")?;
    assert_eq!(sprung.message, "sprung");
    online::migrate(client, "'t'")?;
    client.answers("SELECT count(*) FROM t", 20)?;
    client.batch_execute(
        "CALL snowflake_migrate.revert('t'); DROP TABLE t; SET search_path = public",
    )?;
    // Where no schema can be written, the index is not accepted.
    client.batch_execute(
        "CREATE TABLE t (id serial PRIMARY KEY, kind varchar); CREATE INDEX other ON t (id, nullif(kind, 'x'::varchar)); SET search_path = trap, pg_catalog, public",
    )?;
    let (steps, swap) = run_before(client, "'t'", Step::is_swap)?;
    client.batch_execute("SET search_path = public")?;
    client.refused(&steps[swap].statement, "55000")?;
    let answer = client.refused(
        "SELECT snowflake_migrate.plan('t', online => true)",
        "55000",
    )?;
    assert!(
        answer
            .detail
            .contains("_other has a name that the migration needs"),
        "{answer}"
    );
    let name = client.value("SELECT relname FROM pg_class WHERE relname LIKE 'snowflake%other'")?;
    client.batch_execute(&format!("DROP INDEX {name}"))?;
    online::migrate(client, "'t'")?;
    Ok(())
}

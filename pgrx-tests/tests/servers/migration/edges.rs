//! Tables at the edges: functions that find others by search_path, disabled
//! triggers, hardened privileges, many partitions, keys that no index leads with,
//! prepared transactions; and what a migration leaves in the caller's transaction.

use super::waits;
use crate::support::*;

/// Functions that find another one by the search path, in every place whose code
/// runs while a table is migrated.
const BY_PATH: &str = "
    CREATE SCHEMA app; SET search_path = app, public;
    CREATE FUNCTION other(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN lower(t); END';
    CREATE FUNCTION inlined(t text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT other(t)';
    CREATE FUNCTION called(t text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN other(t); END';
    CREATE FUNCTION is_fine(i bigint) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN other(i::text) <> ''x''; END';
    CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.note := other(NEW.note); RETURN NEW; END';
    CREATE TABLE in_checks (id serial PRIMARY KEY, note text CHECK (inlined(note) <> 'zz'), CHECK (is_fine(id)));
    CREATE TABLE in_generated (id serial PRIMARY KEY, note text, g text GENERATED ALWAYS AS (called(note)) STORED);
    CREATE TABLE in_key (id bigserial, tenant int DEFAULT 1, note text, PRIMARY KEY (tenant, id));
    CREATE TABLE in_trigger (id serial PRIMARY KEY, note text NOT NULL CHECK (inlined(note) <> 'zz'));
    CREATE TRIGGER touch BEFORE UPDATE ON in_trigger FOR EACH ROW EXECUTE FUNCTION touch();
    REVOKE ALL ON SCHEMA app FROM PUBLIC;";

/// The same in indexes, which PostgreSQL 17 and later do not build.
const INDEXES_BY_PATH: &str = "
    CREATE TABLE in_index (id serial PRIMARY KEY, note text);
    CREATE INDEX ON in_index (called(note)); CREATE INDEX ON in_index (note) WHERE called(note) <> 'q';
    CREATE TABLE in_key_index (id bigserial PRIMARY KEY, note text); CREATE INDEX ON in_key_index (called(note));";

#[test]
fn functions_find_others_by_the_callers_search_path() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute("SET client_min_messages = error; CREATE ROLE keeper; GRANT CREATE ON DATABASE postgres TO keeper; SET ROLE keeper")?;
    client.run([BY_PATH, INDEXES_BY_PATH])?;
    let is_old = cluster.installation().major < 17;
    if is_old {
        // Planning a query inlines them.
        client.run([
                "CREATE INDEX ON in_index (inlined(note)); CREATE INDEX ON in_key (inlined(note)); CREATE INDEX ON in_trigger (inlined(note))",
            ],
        )?;
    }
    let tables = [
        "in_checks",
        "in_generated",
        "in_key",
        "in_trigger",
        "in_index",
        "in_key_index",
    ];
    for table in tables {
        client.batch_execute(&format!(
            "INSERT INTO {table} (note) SELECT 'A' || n FROM generate_series(1, 100) AS n"
        ))?;
    }
    for role in ["keeper", "postgres"] {
        for table in ["in_checks", "in_generated", "in_key", "in_key_index"] {
            // A session without the plans of these tables.
            let mut fresh = cluster.connect()?;
            fresh.batch_execute(&format!(
                "SET ROLE {role}; SET client_min_messages = error; SET search_path = app, public; BEGIN;
                 CALL snowflake_migrate.run('{table}'); INSERT INTO {table} (note) VALUES ('B');
                 CALL snowflake_migrate.revert('{table}'); ROLLBACK"
            )).with_context(|| format!("{table} as {role}"))?;
        }
    }
    let mut fresh = cluster.connect()?;
    fresh.batch_execute(
        "SET ROLE keeper; SET client_min_messages = error; SET search_path = app, public",
    )?;
    if is_old {
        fresh.batch_execute("CALL snowflake_migrate.run('in_index')")?;
    } else {
        let plan = "SELECT * FROM snowflake_migrate.plan('in_index')";
        let refused = fresh.refused(plan, "55000")?;
        assert!(
            refused.detail.contains(
                "index in_index_called_idx uses a function that finds others by search_path"
            ) || refused.detail.contains(
                "index app.in_index_called_idx uses a function that finds others by search_path"
            ),
            "{refused}"
        );
        assert!(
            refused
                .detail
                .contains("ALTER FUNCTION app.called(text) SET search_path = app, public"),
            "{refused}"
        );
        fresh.batch_execute(
            "ALTER FUNCTION app.called(text) SET search_path = app, public; CALL snowflake_migrate.run('in_index')",
        )?;
    }
    // A superuser guards the trigger for an owner who may not set session_replication_role.
    fresh.batch_execute("RESET ROLE")?;
    online::migrate(&mut fresh, "'in_trigger'")?;
    fresh.batch_execute("UPDATE in_trigger SET note = 'A' WHERE note = 'A1'")?;
    let touched = "SELECT string_agg(note, ' ') FROM in_trigger WHERE note = lower(note)";
    fresh.answers(touched, "a")?;
    Ok(())
}

/// Frameworks that take every default with "nextval" in it for a sequence's need
/// the function under its other name, which the owner sets after the migration.
#[test]
fn a_key_whose_default_is_snowflake_id_counts_as_migrated() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "SET client_min_messages = error; CREATE ROLE keeper; GRANT CREATE ON SCHEMA public TO keeper; SET ROLE keeper;
         CREATE TABLE by_serial (id bigserial PRIMARY KEY, note text);
         CREATE TABLE by_identity (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text)",
    )?;
    let before = schema(&cluster, "postgres")?;
    client.batch_execute("CREATE TABLE narrow (id serial PRIMARY KEY, note text)")?;
    let tables = ["by_serial", "by_identity", "narrow"];
    for table in tables {
        client.batch_execute(&format!("INSERT INTO {table} (note) VALUES ('old')"))?;
    }
    let mut ids = Vec::new();
    for table in tables {
        if table == "narrow" {
            online::migrate(client, "'narrow'")?;
        } else {
            client.batch_execute(&format!(
                "CALL snowflake_migrate.run('{table}'); CALL snowflake_migrate.run('{table}')"
            ))?;
        }
        client.batch_execute(&format!(
            "ALTER TABLE {table} ALTER COLUMN id SET DEFAULT snowflake_id();
             INSERT INTO {table} (note) SELECT 'new' FROM generate_series(1, 1000)"
        ))?;
        ids.extend(ids::fetch(
            client,
            &format!("SELECT id FROM {table} WHERE note = 'new'"),
        )?);
        for online in [false, true] {
            client.answers(
                &format!(
                    "SELECT count(*) FROM snowflake_migrate.plan('{table}', online => {online})"
                ),
                0,
            )?;
        }
        // Without a column named, the audit finds the one whose default generates IDs.
        let findings: Vec<String> = client.column(&format!(
            "SELECT finding FROM snowflake_audit('{table}', expected_nodes => '{{1}}')"
        ))?;
        assert!(findings.is_empty(), "{table}: {findings:?}");
        client.answers(
            &format!(
                "SELECT count(*) FROM snowflake_migrate.columns WHERE table_name::text = '{table}'"
            ),
            0,
        )?;
    }
    let tally = Tally::of(ids);
    println!("edges: snowflake_id() after three migrations: {tally}");
    assert_eq!(tally.ids, 3_000);
    tally.assert_unique();
    for table in tables {
        client.batch_execute(&format!(
            "CALL snowflake_migrate.revert('{table}'); INSERT INTO {table} (note) VALUES ('reverted')"
        ))?;
        client.answers(
            &format!("SELECT id FROM {table} WHERE note = 'reverted'"),
            2,
        )?;
    }
    // An online migration moves the column to the table's end.
    client.batch_execute("DROP TABLE narrow")?;
    assert_same_schema(&before, &schema(&cluster, "postgres")?, "reverted");
    Ok(())
}

#[test]
fn lock_timeout_is_the_callers_again() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "SET client_min_messages = error; CREATE TABLE t (id serial PRIMARY KEY); CREATE TABLE u (id serial PRIMARY KEY);
         CREATE TABLE r (u_id int REFERENCES u); INSERT INTO t DEFAULT VALUES",
    )?;
    for timeout in ["0", "7s"] {
        // Not in one text, whose settings a ROLLBACK would restore.
        client.batch_execute(&format!("SET lock_timeout = '{timeout}'"))?;
        client.batch_execute("BEGIN; CALL snowflake_migrate.run('t')")?;
        client.answers("SHOW lock_timeout", timeout)?;
        client.batch_execute("CALL snowflake_migrate.revert('t')")?;
        client.answers("SHOW lock_timeout", timeout)?;
        client.batch_execute("ROLLBACK")?;
        // Each statement of an online migration, in a transaction block.
        let steps = online::plan(client, "'u'")?;
        for step in &steps {
            if !step.in_transaction {
                client.batch_execute(&step.statement)?;
                continue;
            }
            client.batch_execute("BEGIN")?;
            client.batch_execute(&step.statement)?;
            client.answers("SHOW lock_timeout", timeout)?;
            // The plan is cancelled by the next statements for the second time.
            client.batch_execute(if step.is_swap() { "ROLLBACK" } else { "COMMIT" })?;
        }
        client.batch_execute("BEGIN; CALL snowflake_migrate.revert('u')")?;
        client.answers("SHOW lock_timeout", timeout)?;
        client.batch_execute("COMMIT")?;
    }
    Ok(())
}

#[test]
fn a_definer_function_of_the_owner_migrates_for_other_roles() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    let wrapper = |name: &str| {
        format!(
            "CREATE FUNCTION app.{name}(what text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = app, pg_temp AS $$
             BEGIN
                 IF what = 'plan' THEN RETURN (SELECT count(*) FROM snowflake_migrate.plan('app.t')); END IF;
                 IF what = 'migrate' THEN CALL snowflake_migrate.run('app.t'); ELSE CALL snowflake_migrate.revert('app.t'); END IF;
                 RETURN 0;
             END $$"
        )
    };
    client.run([
            "SET client_min_messages = error; CREATE ROLE keeper; CREATE ROLE caller; CREATE SCHEMA app AUTHORIZATION keeper; GRANT USAGE ON SCHEMA app TO caller",
            "SET ROLE keeper; CREATE TABLE app.t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text);
             CREATE TABLE app.r (t_id int REFERENCES app.t); INSERT INTO app.t (note) VALUES ('x'); INSERT INTO app.r VALUES (1)",
            &wrapper("by_owner"),
            "RESET ROLE",
            &wrapper("by_superuser"),
        ],
    )?;
    for function in ["by_owner", "by_superuser"] {
        for what in ["plan", "migrate", "plan", "revert"] {
            client.batch_execute("SET SESSION AUTHORIZATION caller")?;
            client
                .batch_execute(&format!("SELECT app.{function}('{what}')"))
                .with_context(|| format!("{function}: {what}"))?;
            // The caller has gained nothing.
            client.refused("ALTER TABLE app.t ADD x int", "42501")?;
            client.batch_execute("RESET SESSION AUTHORIZATION")?;
        }
    }
    let owners: Vec<String> = client.column(
        "SELECT DISTINCT pg_get_userbyid(relowner)::text FROM pg_class WHERE relnamespace = 'app'::regnamespace",
    )?;
    assert_eq!(owners, ["keeper"]);
    Ok(())
}

#[test]
fn roles_that_insert_but_do_not_generate_ids_are_named() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.run([
            "SET client_min_messages = error; REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC;
             CREATE ROLE owner; CREATE ROLE inserting; CREATE ROLE member IN ROLE inserting; CREATE ROLE by_column; CREATE ROLE of_child; CREATE ROLE of_view;
             CREATE ROLE reading; CREATE ROLE generating; CREATE ROLE below IN ROLE generating; GRANT EXECUTE ON FUNCTION snowflake_nextval() TO owner, generating;
             GRANT CREATE ON SCHEMA public TO owner; SET ROLE owner;
             CREATE TABLE t (id bigserial PRIMARY KEY, note text); CREATE TABLE child () INHERITS (t); CREATE VIEW v AS SELECT * FROM t;
             GRANT INSERT ON t TO inserting, below; GRANT INSERT (note) ON t TO by_column; GRANT INSERT ON child TO of_child;
             GRANT INSERT ON v TO of_view; GRANT SELECT ON t TO reading, pg_monitor; GRANT INSERT ON t TO pg_monitor",
        ],
    )?;
    for statement in [
        "SELECT * FROM snowflake_migrate.plan('t')",
        "CALL snowflake_migrate.run('t')",
        "SELECT * FROM snowflake_migrate.plan('t', online => true)",
    ] {
        let refused = client.refused(statement, "42501")?;
        for part in [
            "roles that may insert into public.t may not execute snowflake_nextval(): by_column, inserting, of_child, of_view.",
            "GRANT EXECUTE ON FUNCTION public.snowflake_nextval() TO by_column, inserting, of_child, of_view.",
        ] {
            assert!(refused.detail.contains(part), "{part}: {refused}");
        }
    }
    client.run([
            "RESET ROLE; GRANT EXECUTE ON FUNCTION public.snowflake_nextval() TO by_column, inserting, of_child, of_view",
            "SET ROLE owner; CALL snowflake_migrate.run('t'); RESET ROLE; GRANT USAGE ON SCHEMA public TO PUBLIC",
        ],
    )?;
    for (role, table) in [
        ("inserting", "t"),
        ("member", "t"),
        ("below", "t"),
        ("by_column", "t"),
        ("of_view", "v"),
        ("of_child", "child"),
    ] {
        client.batch_execute(&format!(
            "SET ROLE {role}; INSERT INTO {table} (note) VALUES ('x'); RESET ROLE"
        ))?;
    }
    // Thousands of roles, half of them members of others.
    let roles = tier::size(300, 3000);
    client.run([
            format!(
                "CREATE TABLE many (id bigserial PRIMARY KEY);
                 DO $$ BEGIN FOR n IN 1..{roles} LOOP
                     EXECUTE format('CREATE ROLE r%s', n);
                     IF n % 2 = 0 THEN EXECUTE format('GRANT r%s TO r%s', n - 1, n); ELSE EXECUTE format('GRANT INSERT ON many TO r%s', n); END IF;
                 END LOOP; END $$"
            ),
        ],
    )?;
    let refused = client.refused("SELECT * FROM snowflake_migrate.plan('many')", "42501")?;
    // Half of them are members of the others, and twenty are named.
    let rest = format!(
        "and {} more. GRANT EXECUTE ON FUNCTION public.snowflake_nextval() TO PUBLIC",
        roles / 2 - 20
    );
    assert!(refused.detail.contains(&rest), "{refused}");
    Ok(())
}

/// The triggers of foreign keys, without their numbers.
const TRIGGERS: &str =
    "SELECT format('%s %s %s %s', k.conname, t.tgrelid::regclass, t.tgfoid::regproc, t.tgenabled)
    FROM pg_trigger AS t JOIN pg_constraint AS k ON k.oid = t.tgconstraint ORDER BY 1";

#[test]
fn disabled_foreign_keys_stay_disabled() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "SET client_min_messages = error; CREATE ROLE keeper; GRANT CREATE ON SCHEMA public TO keeper; SET ROLE keeper",
    )?;
    let tables = |n: i32| {
        format!(
            "CREATE TABLE p{n} (id serial PRIMARY KEY); CREATE TABLE c{n} (id serial PRIMARY KEY, p_id int REFERENCES p{n} ON DELETE CASCADE);
             CREATE TABLE s{n} (p_id int REFERENCES p{n}); INSERT INTO p{n} SELECT FROM generate_series(1, 100); INSERT INTO c{n} (p_id) SELECT id FROM p{n}"
        )
    };
    client.run([tables(1), tables(2), tables(3)])?;
    client.batch_execute(
        "CREATE TABLE part (k int, p_id int REFERENCES p1) PARTITION BY LIST (k);
         CREATE TABLE part1 PARTITION OF part FOR VALUES IN (1); CREATE TABLE part2 PARTITION OF part FOR VALUES IN (2); RESET ROLE",
    )?;
    let disable = |n: i32| {
        format!("ALTER TABLE c{n} DISABLE TRIGGER ALL; ALTER TABLE p{n} DISABLE TRIGGER ALL; DO $$ DECLARE name text; BEGIN
             FOR name IN SELECT tgname FROM pg_trigger WHERE tgrelid = 's{n}'::regclass LOOP EXECUTE format('ALTER TABLE s{n} ENABLE REPLICA TRIGGER %I', name); END LOOP; END $$")
    };
    client.run([disable(1), disable(2), disable(3)])?;
    client.batch_execute(
        "ALTER TABLE part1 DISABLE TRIGGER ALL; INSERT INTO c1 (p_id) VALUES (5000)",
    )?;
    let before: Vec<String> = client.column(TRIGGERS)?;
    let detail = "rows of public.c1 violate foreign key c1_p_id_fkey, whose triggers are disabled";
    for online in [false, true] {
        let plan =
            format!("SELECT * FROM snowflake_migrate.plan('c1', 'p_id', online => {online})");
        let plan = plan.replace("'c1', 'p_id'", "'p1'");
        let refused = client.refused(&plan, "55000")?;
        if !online {
            assert!(refused.detail.contains(detail), "{refused}");
            let (_, shown) = refused
                .detail
                .split_once("This shows them: ")
                .context("no query")?;
            let query = shown.split_once(".\n").map_or(shown, |(query, _)| query);
            let rows = client.query(query.trim_end_matches('.'), &[])?;
            ensure!(rows.len() == 1, "{query}: {} rows", rows.len());
        }
    }
    // The owner cannot disable such triggers again.
    let refused = client.refused(
        "SET ROLE keeper; SELECT * FROM snowflake_migrate.plan('p2')",
        "42501",
    )?;
    assert!(
        refused
            .detail
            .contains("triggers of foreign key c2_p_id_fkey of public.c2 are disabled"),
        "{refused}"
    );
    client.batch_execute(
        "RESET ROLE; DELETE FROM c1 WHERE p_id = 5000; CALL snowflake_migrate.run('p1')",
    )?;
    assert_eq!(
        client.column::<String>(TRIGGERS)?,
        before,
        "by snowflake_migrate"
    );
    let pasted = psql(
        &cluster,
        "postgres",
        "postgres",
        "SELECT statement FROM snowflake_migrate.plan('p2') \\gexec\n",
        true,
    )?;
    ensure!(pasted.success, "{pasted:?}");
    assert_eq!(client.column::<String>(TRIGGERS)?, before, "by the plan");
    online::migrate(client, "'p3'")?;
    assert_eq!(client.column::<String>(TRIGGERS)?, before, "online");
    client.batch_execute(
        "CALL snowflake_migrate.revert('p1'); CALL snowflake_migrate.revert('p3')",
    )?;
    assert_eq!(
        client.column::<String>(TRIGGERS)?,
        before,
        "after reverting"
    );
    Ok(())
}

#[test]
fn derived_statistics_are_collected_again() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "SET client_min_messages = error; CREATE TABLE s (id serial PRIMARY KEY, a int); CREATE STATISTICS st (dependencies) ON id, a FROM s;
         CREATE TABLE e (id serial PRIMARY KEY); CREATE INDEX ON e ((id % 10)); CREATE TABLE plain (id serial PRIMARY KEY);
         INSERT INTO s (a) SELECT n % 10 FROM generate_series(1, 1000) AS n; INSERT INTO e SELECT FROM generate_series(1, 1000);
         INSERT INTO plain SELECT FROM generate_series(1, 1000); ANALYZE",
    )?;
    let both = "SELECT format('%s %s', (SELECT count(*) FROM pg_stats_ext WHERE dependencies IS NOT NULL), (SELECT count(*) FROM pg_stats WHERE tablename = 'e_expr_idx'))";
    client.answers(both, "1 1")?;
    client.batch_execute("CALL snowflake_migrate.run('s'); CALL snowflake_migrate.run('e')")?;
    client.answers(both, "1 1")?;
    let analyze =
        "SELECT statement FROM snowflake_migrate.plan('plain') WHERE statement LIKE 'ANALYZE%'";
    client.answers(analyze, "ANALYZE public.plain (id)")?;
    Ok(())
}

#[test]
fn a_key_that_no_index_leads_with_is_scanned_before_the_lock() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    let rows = tier::size(20_000, 1_000_000);
    client.batch_execute(&format!(
        "SET client_min_messages = error;
         CREATE TABLE t (tenant int, id bigserial, note text, PRIMARY KEY (tenant, id)); INSERT INTO t (tenant) SELECT n % 7 FROM generate_series(1, {rows}) AS n",
    ))?;
    let statements: Vec<String> = client.column(
        "SELECT statement FROM snowflake_migrate.plan('t') WHERE statement IS NOT NULL ORDER BY step",
    )?;
    for revert in [false, true] {
        let statement = if revert {
            "CALL snowflake_migrate.revert('t')"
        } else {
            client.batch_execute(&statements[0])?;
            &statements[1]
        };
        // While another transaction writes to the table, it has read the rows, and waits.
        let mut holder = cluster.connect()?;
        let mut observer = cluster.connect()?;
        holder.batch_execute("BEGIN; INSERT INTO t (tenant) VALUES (1)")?;
        let mut runner = cluster.connect()?;
        runner.batch_execute("SET lock_timeout = '100s'; SET client_min_messages = error")?;
        let pid = ids::backend_pid(&mut runner)?;
        let scanned = thread::scope(|scope| -> Result<_> {
            let running = scope.spawn(|| runner.batch_execute(statement));
            ensure!(
                waits(&mut observer, pid, || running.is_finished())?,
                "it did not wait"
            );
            // The scan has left its lock, which it took before.
            let scanned = observer.number(&format!(
                "SELECT count(*) FROM pg_locks WHERE pid = {pid} AND relation = 't'::regclass AND mode = 'AccessShareLock' AND granted"
            ))?;
            holder.batch_execute("COMMIT")?;
            running.join().expect("the session's thread")?;
            Ok(scanned)
        })?;
        assert_eq!(scanned, 1, "{statement}");
    }
    // A sequence that has got above the first snowflake ID since is noticed under the lock.
    client.batch_execute("BEGIN; SELECT setval('t_id_seq', 9000000000000000000); SELECT snowflake_migrate_internal.record_origin('t', 'id'); COMMIT")?;
    let refused = client.refused(&statements[1], "55000")?;
    assert!(
        refused
            .detail
            .contains("sequence public.t_id_seq has reached 9000000000000000000"),
        "{refused}"
    );
    client.batch_execute(&format!("SELECT setval('t_id_seq', {})", rows + 1))?;
    client.run([statements[1].as_str(), "CALL snowflake_migrate.revert('t')"])?;
    let last_old = client.number("SELECT max(id) FROM t WHERE id < 1000000000")?;
    client.answers("SELECT last_value FROM t_id_seq", last_old)?;
    Ok(())
}

#[test]
fn a_prepared_transaction_that_holds_a_lock_is_named() -> Result<()> {
    let cluster = Cluster::builder()
        .conf("max_prepared_transactions", 5)
        .start_with_migrate()?;
    let mut client = cluster.connect()?;
    client.run([
        "CREATE TABLE t (id serial PRIMARY KEY)",
        "BEGIN",
        "INSERT INTO t DEFAULT VALUES; PREPARE TRANSACTION 'it''s mine'",
    ])?;
    let missed = "SET client_min_messages = notice; SET ROLE postgres;
        SELECT snowflake_migrate_internal.lock_missed(ARRAY['t'::regclass], 'ACCESS EXCLUSIVE', clock_timestamp(), clock_timestamp() - interval '6 seconds');\n";
    let waiting = psql(&cluster, "postgres", "postgres", missed, true)?;
    ensure!(
        waiting
            .errors
            .contains("Held by prepared transactions 'it''s mine'."),
        "{waiting:?}"
    );
    let refused = client.refused(
        "SELECT snowflake_migrate_internal.lock_missed(ARRAY['t'::regclass], 'ACCESS EXCLUSIVE', clock_timestamp() - interval '1 hour', clock_timestamp())",
        "55P03",
    )?;
    assert!(
        refused
            .detail
            .contains("Held by prepared transactions 'it''s mine'."),
        "{refused}"
    );
    assert!(refused.hint.contains("ROLLBACK PREPARED"), "{refused}");
    // Beside a session's.
    let mut holder = cluster.connect()?;
    holder.batch_execute("BEGIN; SELECT FROM t")?;
    let waiting = psql(&cluster, "postgres", "postgres", missed, true)?;
    ensure!(
        waiting
            .errors
            .contains(" and prepared transactions 'it''s mine'."),
        "{waiting:?}"
    );
    holder.batch_execute("COMMIT")?;
    client.batch_execute("ROLLBACK PREPARED 'it''s mine'")?;
    Ok(())
}

/// A partitioned table whose partitions have a TOAST table and two indexes.
fn partitions(client: &mut Client, name: &str, count: i32) -> Result<()> {
    // In several transactions, because it takes locks too.
    client.batch_execute(&format!(
        "CREATE TABLE {name} (id serial, k int, note text, PRIMARY KEY (id, k)) PARTITION BY LIST (k); CREATE INDEX ON {name} (note)"
    ))?;
    for n in 1..=count {
        client.batch_execute(&format!(
            "CREATE TABLE {name}_{n} PARTITION OF {name} FOR VALUES IN ({n})"
        ))?;
    }
    Ok(())
}

#[test]
fn more_locks_than_the_server_has_room_for_are_refused() -> Result<()> {
    let cluster = Cluster::builder()
        .conf("max_connections", 20)
        .conf("snowflake.node_id", 1)
        .conf("max_locks_per_transaction", 10)
        .start_with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute("SET client_min_messages = error")?;
    let room = client.number("SELECT snowflake_migrate_internal.lock_slots() * 10")?;
    let mut outcomes = Vec::new();
    for count in [15, 30, 50, 75, 100, 130] {
        let name = format!("p{count}");
        partitions(client, &name, count)?;
        let needed = client.number(&format!(
            "SELECT sum(locks)::bigint FROM snowflake_migrate_internal.lock_needs(ARRAY[('{name}', 'id')::snowflake_migrate_internal.key])"
        ))?;
        let planned =
            client.simple_query(&format!("SELECT * FROM snowflake_migrate.plan('{name}')"));
        let is_refused = planned.is_err();
        let note = client.number(&format!(
            "SELECT count(*) FROM snowflake_migrate.plan('{name}') WHERE note LIKE '%Needs about % locks%'"
        ));
        ensure!(is_refused || note? == i64::from(needed > room), "{count}");
        let mut fresh = cluster.connect()?;
        let altered = fresh.batch_execute(&format!(
            "BEGIN; ALTER TABLE {name} ALTER COLUMN id TYPE bigint"
        ));
        let taken = if altered.is_ok() {
            fresh.number(
                "SELECT count(*) FROM (SELECT DISTINCT locktype, relation, classid, objid FROM pg_locks WHERE pid = pg_backend_pid()) AS l",
            )?
        } else {
            0
        };
        fresh.batch_execute("ROLLBACK")?;
        let failed = altered
            .as_ref()
            .err()
            .and_then(|error| error.code())
            .map(|code| code.code().to_owned());
        // Only what fails is refused.
        ensure!(!is_refused || failed.as_deref() == Some("53200"), "{count}");
        if let Err(error) = planned {
            let error = snowflake_tests::server_error::ServerError::from_error(error)?;
            ensure!(
                error.sqlstate == "55000"
                    && error
                        .detail
                        .contains("Set max_locks_per_transaction to at least"),
                "{error}"
            );
        }
        outcomes.push((is_refused, failed.is_some()));
        if altered.is_ok() {
            ensure!(
                (needed - taken).abs() * 10 <= taken,
                "{count} partitions: estimate {needed}, taken {taken}"
            );
        }
    }
    ensure!(
        outcomes.contains(&(true, true)) && outcomes.contains(&(false, false)),
        "{outcomes:?}"
    );
    Ok(())
}

/// Objects of another role on the path of the role that migrates do not run.
#[test]
fn objects_planted_on_the_callers_path_are_not_called() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.run([
            "SET client_min_messages = error; CREATE ROLE mallory; CREATE SCHEMA arms AUTHORIZATION mallory;
             GRANT USAGE ON SCHEMA arms TO PUBLIC; CREATE ROLE keeper; CREATE SCHEMA app AUTHORIZATION keeper; CREATE DOMAIN app.key AS bigint; GRANT USAGE ON SCHEMA app TO mallory",
            "SET ROLE mallory;
             CREATE FUNCTION arms.hit() RETURNS bool LANGUAGE plpgsql AS 'BEGIN RAISE LOG ''STRUCK: %'', current_user; RETURN true; END';
             CREATE FUNCTION arms.cmp(anyelement, anyelement) RETURNS bool LANGUAGE plpgsql AS 'BEGIN PERFORM arms.hit(); RETURN true; END';
             DO $$ DECLARE l text; r text; o text; BEGIN
                 FOREACH l IN ARRAY '{tid,int2,int4,int8,app.key,oid,text}'::text[] LOOP FOREACH r IN ARRAY '{tid,int2,int4,int8,app.key,oid,text,unknown}'::text[] LOOP
                     CONTINUE WHEN r = 'unknown';
                     EXECUTE format('CREATE FUNCTION arms.cmp(%s, %s) RETURNS bool LANGUAGE plpgsql AS ''BEGIN PERFORM arms.hit(); RETURN true; END''', l, r);
                     FOREACH o IN ARRAY '{=,<>,<,<=,>,>=}'::text[] LOOP EXECUTE format('CREATE OPERATOR arms.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = arms.cmp)', o, l, r); END LOOP;
                 END LOOP; END LOOP; END $$;
             CREATE FUNCTION arms.largest(int8, app.key) RETURNS int8 LANGUAGE plpgsql AS 'BEGIN PERFORM arms.hit(); RETURN 1; END';
             CREATE AGGREGATE arms.max(app.key) (SFUNC = arms.largest, STYPE = int8); CREATE AGGREGATE arms.min(app.key) (SFUNC = arms.largest, STYPE = int8);
             CREATE FUNCTION arms.larger(int8, int8) RETURNS int8 LANGUAGE plpgsql AS 'BEGIN PERFORM arms.hit(); RETURN 1; END';
             CREATE AGGREGATE arms.max(int8) (SFUNC = arms.larger, STYPE = int8); CREATE FUNCTION arms.current_setting(text) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM arms.hit(); RETURN ''arms''; END';
             CREATE FUNCTION arms.set_config(text, text, bool) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM arms.hit(); RETURN ''''; END';
             CREATE FUNCTION arms.int8range(int8, int8) RETURNS int8 LANGUAGE plpgsql AS 'BEGIN PERFORM arms.hit(); RETURN 1; END'; RESET ROLE",
        ],
    )?;
    // The traps work.
    client.batch_execute("SELECT 1 OPERATOR(arms.<) 1, arms.max(5::int8)")?;
    let sprung = |log: &str| log.matches("STRUCK").count();
    let before = sprung(&cluster.log()?);
    ensure!(before >= 2, "{before}");
    let mut place = 0;
    for path in [
        "arms, app, public",
        "arms, pg_catalog, public",
        "pg_temp, arms, public",
    ] {
        for role in ["keeper", "postgres"] {
            place += 1;
            client.run([format!(
                "SET ROLE keeper; CREATE TABLE app.d{place} (tenant int, id app.key, PRIMARY KEY (tenant, id)); CREATE SEQUENCE app.d{place}_id_seq;
                 ALTER TABLE app.d{place} ALTER id SET DEFAULT nextval('app.d{place}_id_seq'); CREATE TABLE app.w{place} (id serial PRIMARY KEY);
                 CREATE TABLE app.r{place} (w_id smallint REFERENCES app.w{place}); CREATE TABLE app.o{place} (id serial PRIMARY KEY);
                 CREATE TABLE app.q{place} (o_id smallint REFERENCES app.o{place}); INSERT INTO app.d{place} (tenant) SELECT n FROM generate_series(1, 50) AS n;
                 INSERT INTO app.w{place} SELECT FROM generate_series(1, 50); INSERT INTO app.r{place} VALUES (7);
                 INSERT INTO app.o{place} SELECT FROM generate_series(1, 50); INSERT INTO app.q{place} VALUES (7); RESET ROLE"
            )])?;
            let mut fresh = cluster.connect()?;
            fresh.batch_execute(&format!(
                "SET ROLE {role}; SET client_min_messages = error; SET search_path = {path}"
            ))?;
            // Written so that the calls themselves need none of the planted names.
            let key = |table: &str| {
                format!("'app.{table}{place}'::pg_catalog.regclass, 'id'::pg_catalog.name")
            };
            let (d, w, o) = (key("d"), key("w"), key("o"));
            for call in [
                format!("CALL snowflake_migrate.run({d})"),
                format!("CALL snowflake_migrate.revert({d})"),
                format!("CALL snowflake_migrate.run({w})"),
                format!("CALL snowflake_migrate.revert({w})"),
            ] {
                fresh
                    .batch_execute(&call)
                    .with_context(|| format!("{role}: {path}: {call}"))?;
            }
            let plan = format!(
                "SELECT statement FROM snowflake_migrate.plan({o}, online => true) LIMIT 1"
            );
            while let Some(row) = fresh.query_opt(&plan, &[])? {
                let statement: String = row.get(0);
                // A path with pg_catalog behind others is that of pasted statements too.
                if path.contains("pg_catalog") {
                    break;
                }
                fresh
                    .batch_execute(&statement)
                    .with_context(|| statement.clone())?;
            }
        }
    }
    let log = cluster.log()?;
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("STRUCK"))
        .skip(before)
        .collect();
    ensure!(lines.is_empty(), "planted code ran: {lines:#?}");
    Ok(())
}

/// Statements of a migration are security-restricted, and PostgreSQL fires no deferred
/// trigger in such a statement.
#[test]
fn tables_with_deferred_constraints_and_triggers_are_migrated() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut admin = cluster.connect()?;
    admin.batch_execute(
        "CREATE ROLE keeper LOGIN; GRANT CREATE ON DATABASE postgres TO keeper; SET ROLE keeper; CREATE SCHEMA own",
    )?;
    for caller in ["keeper", "postgres"] {
        for online in [false, true] {
            let mut client = cluster.connect_as(caller, "postgres")?;
            admin.batch_execute(
                "SET client_min_messages = error; DROP SCHEMA own CASCADE; CREATE SCHEMA own;
                 CREATE FUNCTION own.count() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE own.counted SET n = n + 1; RETURN NULL; END $$;
                 CREATE TABLE own.counted (n int); INSERT INTO own.counted VALUES (0);
                 CREATE TABLE own.t (id serial PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, place int UNIQUE DEFERRABLE INITIALLY DEFERRED);
                 CREATE TABLE own.p (id serial PRIMARY KEY, note text);
                 CREATE TABLE own.c (p_id int REFERENCES own.p DEFERRABLE INITIALLY DEFERRED);
                 CREATE CONSTRAINT TRIGGER counted AFTER INSERT OR UPDATE OF note ON own.p DEFERRABLE INITIALLY DEFERRED
                     FOR EACH ROW EXECUTE FUNCTION own.count();
                 INSERT INTO own.t (place) SELECT n FROM generate_series(1, 500) AS n;
                 INSERT INTO own.p (note) SELECT 'old' FROM generate_series(1, 500);
                 INSERT INTO own.c SELECT id FROM own.p",
            )?;
            for table in ["own.t", "own.p"] {
                // DEFERRABLE keys are not migrated online.
                if online && table != "own.t" {
                    online::migrate(&mut client, &format!("'{table}'"))?;
                } else {
                    client.run([format!("CALL snowflake_migrate.run('{table}')")])?;
                }
            }
            // Places are exchanged, and the trigger fires, at the end of the transaction.
            client.batch_execute(
                "BEGIN; UPDATE own.t SET place = 501 - place; INSERT INTO own.p (note) VALUES ('new');
                 INSERT INTO own.c SELECT max(id) FROM own.p; COMMIT",
            )?;
            admin.answers("SELECT n FROM own.counted", 501)?;
            let kept = "SELECT count(*) FROM pg_constraint WHERE connamespace = 'own'::regnamespace AND condeferrable AND condeferred";
            admin.answers(kept, 4)?;
            for table in ["own.t", "own.p"] {
                client.run([format!("CALL snowflake_migrate.revert('{table}')")])?;
            }
        }
    }
    Ok(())
}

//! `snowflake_nextval()` in every kind of statement that calls a volatile
//! function, as a column default and by hand.
//!
//! Each of these is its own path through the executor, and most of them have
//! been the place of a fault somewhere: a default evaluated once for a whole
//! `ALTER TABLE` or `COPY`, a call folded into a constant in a cached plan,
//! a rolled-back savepoint that gave its numbers back, a function that wrote
//! in a read-only transaction or in a parallel worker.

use std::io::Write;

use anyhow::{Result, ensure};
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::ids::{self, Tally, assert_increasing};

use crate::support::{column, refused};

/// A server, a session, and everything that it received.
struct Received {
    _cluster: Cluster,
    client: Client,
    ids: Vec<i64>,
}

impl Received {
    fn begin() -> Result<Self> {
        let cluster = Cluster::with_extension()?;
        let client = cluster.connect()?;
        Ok(Self {
            _cluster: cluster,
            client,
            ids: Vec::new(),
        })
    }

    fn add(&mut self, kind: &str, ids: Vec<i64>, expected: usize) {
        assert_eq!(ids.len(), expected, "{kind}: rows");
        let tally = Tally::of(ids.clone());
        assert_eq!(tally.duplicates, 0, "{kind}: {tally}");
        self.ids.extend(ids);
        println!("statements: {kind}: {expected} IDs, all distinct");
    }

    /// Adds the IDs that a query returns.
    fn query(&mut self, kind: &str, query: &str, expected: usize) -> Result<()> {
        let ids = column(&mut self.client, query)?;
        self.add(kind, ids, expected);
        Ok(())
    }

    /// Adds the IDs that a table has after a statement.
    fn table(&mut self, kind: &str, statement: &str, table: &str, expected: usize) -> Result<()> {
        self.client.batch_execute(statement)?;
        self.query(kind, &format!("SELECT id FROM {table}"), expected)
    }

    /// Runs a COPY with a number on each line.
    fn copy(&mut self, copy: &str, lines: usize) -> Result<()> {
        let mut writer = self.client.copy_in(copy)?;
        for line in 0..lines {
            writeln!(writer, "{}", line % 10)?;
        }
        writer.finish()?;
        Ok(())
    }

    fn assert_unique(self) -> Result<()> {
        Tally::of(self.ids).assert_unique();
        Ok(())
    }
}

fn table(client: &mut Client, name: &str) -> Result<()> {
    client.batch_execute(&format!(
        "CREATE TABLE {name} (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text)"
    ))?;
    Ok(())
}

fn ids_of(client: &mut Client, table: &str) -> Result<Vec<i64>> {
    ids::fetch(client, &format!("SELECT id FROM {table}"))
}

#[test]
fn copy_gives_each_row_its_own_id() -> Result<()> {
    let mut received = Received::begin()?;
    table(&mut received.client, "copied")?;
    received.copy("COPY copied (note) FROM STDIN", 5_000)?;
    received.table("COPY FROM", "", "copied", 5_000)?;
    received.client.batch_execute(
        "CREATE TABLE measured (id bigint DEFAULT snowflake_nextval(), day int) PARTITION BY RANGE (day);
         CREATE TABLE measured_low PARTITION OF measured FOR VALUES FROM (0) TO (5);
         CREATE TABLE measured_high PARTITION OF measured FOR VALUES FROM (5) TO (10)",
    )?;
    received.copy("COPY measured (day) FROM STDIN", 2_000)?;
    received.table("COPY FROM into partitions", "", "measured", 2_000)?;
    received.client.batch_execute(
        "CREATE FUNCTION give() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN NEW.id := snowflake_nextval(); RETURN NEW; END $$;
         CREATE TABLE triggered (id bigint PRIMARY KEY, note text);
         CREATE TRIGGER give BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION give()",
    )?;
    let insert = "INSERT INTO triggered (note) SELECT 'n' FROM generate_series(1, 1000)";
    received.table("BEFORE INSERT trigger", insert, "triggered", 1_000)?;
    received
        .client
        .batch_execute("UPDATE triggered SET note = 'before'")?;
    received.copy("COPY triggered (note) FROM STDIN", 1_000)?;
    let query = "SELECT id FROM triggered WHERE note <> 'before'";
    received.query("COPY FROM with a trigger", query, 1_000)?;
    received.assert_unique()
}

#[test]
fn insert_gives_each_row_its_own_id() -> Result<()> {
    let mut received = Received::begin()?;
    table(&mut received.client, "selected")?;
    let insert = "INSERT INTO selected (note) SELECT 'n' FROM generate_series(1, 5000)";
    received.table("INSERT ... SELECT", insert, "selected", 5_000)?;
    table(&mut received.client, "listed")?;
    let values = vec!["('n')"; 500].join(", ");
    let insert = format!("INSERT INTO listed (note) VALUES {values} RETURNING id");
    received.query("multi-row VALUES", &insert, 500)?;
    assert_increasing(&received.ids[5_000..], "rows of one VALUES list");
    let values = vec!["(DEFAULT, 'n')"; 100].join(", ");
    let insert = format!("INSERT INTO listed VALUES {values} RETURNING id");
    received.query("multi-row VALUES with DEFAULT", &insert, 100)?;
    let insert = "INSERT INTO listed DEFAULT VALUES RETURNING id";
    received.query("DEFAULT VALUES", insert, 1)?;
    let merge = "MERGE INTO merged USING generate_series(1, 500) AS n ON false
         WHEN NOT MATCHED THEN INSERT (note) VALUES (n::text)";
    table(&mut received.client, "merged")?;
    received.table("MERGE", merge, "merged", 500)?;
    received.query(
        "ON CONFLICT",
        "INSERT INTO merged (note) SELECT 'n' FROM generate_series(1, 500)
         ON CONFLICT DO NOTHING RETURNING id",
        500,
    )?;
    received.query(
        "WITH ... INSERT, UNION ALL",
        "WITH fresh AS (INSERT INTO merged (note) SELECT 'n' FROM generate_series(1, 500) RETURNING id)
         SELECT id FROM fresh UNION ALL SELECT snowflake_nextval() FROM generate_series(1, 500)",
        1_000,
    )?;
    received.assert_unique()
}

#[test]
fn prepared_statements_give_a_new_id_each_time() -> Result<()> {
    let mut received = Received::begin()?;
    table(&mut received.client, "listed")?;
    for plan_cache_mode in ["auto", "force_generic_plan", "force_custom_plan"] {
        let client = &mut received.client;
        client.batch_execute(&format!("SET plan_cache_mode = {plan_cache_mode}"))?;
        let mut ids: Vec<i64> = Vec::new();
        let insert = client.prepare("INSERT INTO listed (note) VALUES ($1) RETURNING id")?;
        let select = client.prepare("SELECT snowflake_nextval()")?;
        for _ in 0..50 {
            ids.push(client.query_one(&insert, &[&"prepared"])?.get(0));
        }
        for _ in 0..50 {
            ids.push(client.query_one(&select, &[])?.get(0));
        }
        client.batch_execute("PREPARE again AS SELECT snowflake_nextval()")?;
        for _ in 0..20 {
            ids.extend(column::<i64>(client, "EXECUTE again")?);
        }
        client.batch_execute("DEALLOCATE again")?;
        assert_increasing(&ids, "prepared statements");
        received.add(&format!("plan_cache_mode = {plan_cache_mode}"), ids, 120);
    }
    received.assert_unique()
}

#[test]
fn functions_give_a_new_id_each_time() -> Result<()> {
    let mut received = Received::begin()?;
    table(&mut received.client, "looped")?;
    let looped = "DO $$
         DECLARE given bigint;
         BEGIN
             FOR i IN 1..500 LOOP
                 given := snowflake_nextval();
                 INSERT INTO looped VALUES (given, 'assigned');
                 INSERT INTO looped (note) VALUES ('default') RETURNING id INTO given;
                 IF given <> snowflake_currval() THEN
                     RAISE 'currval is %, the last ID %', snowflake_currval(), given;
                 END IF;
                 EXECUTE 'INSERT INTO looped (note) VALUES ($1)' USING 'dynamic';
                 BEGIN
                     INSERT INTO looped (note) VALUES ('lost');
                     RAISE division_by_zero;
                 EXCEPTION WHEN division_by_zero THEN NULL;
                 END;
             END LOOP;
         END $$";
    received.table("PL/pgSQL", looped, "looped", 1_500)?;
    let passing =
        "CREATE FUNCTION fresh() RETURNS bigint LANGUAGE sql AS 'SELECT snowflake_nextval()';
         CREATE TEMP TABLE passing (id bigint DEFAULT fresh(), note text);
         INSERT INTO passing (note) SELECT 'n' FROM generate_series(1, 500)";
    received.table("SQL function, temporary table", passing, "passing", 500)?;
    received.assert_unique()
}

#[test]
fn statements_that_rewrite_tables_give_each_row_its_own_id() -> Result<()> {
    let mut received = Received::begin()?;
    received
        .client
        .batch_execute("CREATE TABLE old AS SELECT n FROM generate_series(1, 3000) AS n")?;
    for (kind, statement) in [
        (
            "ALTER TABLE ADD COLUMN DEFAULT",
            "ALTER TABLE old ADD COLUMN id bigint NOT NULL DEFAULT snowflake_nextval()",
        ),
        (
            "ALTER COLUMN TYPE USING",
            "ALTER TABLE old ALTER COLUMN id TYPE bigint USING snowflake_nextval()",
        ),
        ("UPDATE SET", "UPDATE old SET id = snowflake_nextval()"),
        ("UPDATE SET DEFAULT", "UPDATE old SET id = DEFAULT"),
    ] {
        received.table(kind, statement, "old", 3_000)?;
    }
    let series = "SELECT snowflake_nextval() AS id FROM generate_series(1, 2000)";
    for (kind, statement, table) in [
        (
            "CREATE TABLE AS",
            &*format!("CREATE TABLE made AS {series}"),
            "made",
        ),
        (
            "CREATE MATERIALIZED VIEW",
            &format!("CREATE MATERIALIZED VIEW seen AS {series}"),
            "seen",
        ),
        (
            "REFRESH MATERIALIZED VIEW",
            "REFRESH MATERIALIZED VIEW seen",
            "seen",
        ),
    ] {
        received.table(kind, statement, table, 2_000)?;
    }
    received.assert_unique()
}

#[test]
fn select_lists_and_lateral_calls_give_a_new_id_each_time() -> Result<()> {
    let mut received = Received::begin()?;
    received.query(
        "LATERAL",
        "SELECT given FROM generate_series(1, 300) AS n,
                LATERAL (SELECT snowflake_nextval() + 0 * n AS given) AS each",
        300,
    )?;
    let list = "SELECT snowflake_nextvals(500)";
    received.query("snowflake_nextvals in the SELECT list", list, 500)?;
    assert_increasing(&received.ids[300..], "a run in the SELECT list");
    received.query(
        "snowflake_nextvals of growing counts",
        "SELECT given FROM generate_series(1, 20) AS n, LATERAL snowflake_nextvals(n) AS given",
        210,
    )?;
    received.assert_unique()
}

#[test]
fn a_limit_on_a_run_repeats_no_id() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let first: Vec<i64> = column(
        &mut client,
        "SELECT * FROM snowflake_nextvals(1000) LIMIT 10",
    )?;
    assert_eq!(first.len(), 10);
    assert_increasing(&first, "the run");
    let in_list: Vec<i64> = column(&mut client, "SELECT snowflake_nextvals(1000) LIMIT 10")?;
    assert_eq!(in_list.len(), 10);
    let next: Vec<i64> = column(&mut client, "SELECT snowflake_nextval()")?;
    let second: Vec<i64> = column(&mut client, "SELECT * FROM snowflake_nextvals(1000)")?;
    assert_eq!(second.len(), 1_000);
    let all = [first, in_list, next, second].concat();
    assert_increasing(&all, "runs one after another");
    let tally = Tally::of(all);
    println!("statements: LIMIT on snowflake_nextvals: {tally}");
    tally.assert_unique();
    // A run that isn't wanted to its end is left in the middle of a cursor, too.
    let mut transaction = client.transaction()?;
    transaction.batch_execute("DECLARE part CURSOR FOR SELECT * FROM snowflake_nextvals(5000)")?;
    let part = transaction.query("FETCH 7 FROM part", &[])?;
    assert_eq!(part.len(), 7);
    transaction.rollback()?;
    assert!(ids::one(&mut client)? > part[6].get(0));
    Ok(())
}

#[test]
fn ids_that_were_rolled_back_are_not_repeated() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    table(&mut client, "kept")?;
    let mut received: Vec<i64> = Vec::new();
    for _ in 0..100 {
        let mut transaction = client.transaction()?;
        let insert = "INSERT INTO kept (note) VALUES ('n') RETURNING id";
        received.push(transaction.query_one(insert, &[])?.get(0));
        let mut savepoint = transaction.savepoint("here")?;
        received.push(savepoint.query_one(insert, &[])?.get(0));
        savepoint.rollback()?;
        received.push(transaction.query_one(insert, &[])?.get(0));
        let failed = transaction
            .savepoint("failing")?
            .query_one("SELECT 1 / 0 FROM snowflake_nextval()", &[]);
        assert!(failed.is_err());
        transaction.commit()?;
        let mut transaction = client.transaction()?;
        received.push(transaction.query_one(insert, &[])?.get(0));
        transaction.rollback()?;
    }
    assert_increasing(&received, "the session");
    assert_eq!(ids_of(&mut client, "kept")?.len(), 200);
    let tally = Tally::of(received);
    println!("statements: savepoints and transactions rolled back: {tally}");
    tally.assert_unique();
    Ok(())
}

#[test]
fn read_only_transactions_generate_ids() -> Result<()> {
    let cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    // The first ID of a database moves its mark: here, in such a transaction.
    let mut received = Vec::new();
    for (database, begin) in [
        ("read_only", "BEGIN READ ONLY"),
        (
            "serializable",
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
        ),
        (
            "repeatable",
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        ),
    ] {
        let mut client = cluster.connect_to_new_database(database)?;
        client.batch_execute(begin)?;
        received.extend(ids::nextval(&mut client, 1_000)?);
        received.extend(column::<i64>(
            &mut client,
            "SELECT * FROM snowflake_nextvals(1000)",
        )?);
        let row = client.query_one("SELECT pg_current_xact_id_if_assigned()::text", &[])?;
        assert_eq!(
            row.get::<_, Option<&str>>(0),
            None,
            "a transaction ID was used"
        );
        client.batch_execute("COMMIT")?;
    }
    let mut client = cluster.connect_to("read_only")?;
    client.batch_execute("SET default_transaction_read_only = on")?;
    received.extend(ids::nextval(&mut client, 1_000)?);
    let tally = Tally::of(received);
    println!("statements: read-only transactions in three databases: {tally}");
    tally.assert_unique();
    Ok(())
}

#[test]
fn parallel_workers_generate_a_databases_first_ids() -> Result<()> {
    let cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    let mut client = cluster.connect_to_new_database("parallel")?;
    client.batch_execute(
        "CREATE TABLE many (n int) WITH (parallel_workers = 2);
         INSERT INTO many SELECT generate_series(1, 20000);
         SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
         SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
         SET parallel_leader_participation = off",
    )?;
    // No ID was made in this database yet: a worker is the first to read and
    // move the mark, where nothing can be written by ordinary means.
    let query = "SELECT snowflake_nextval() FROM many";
    let mut received = ids::fetch(&mut client, query)?;
    let explain = format!("EXPLAIN (ANALYZE, COSTS off) {query}");
    let plan = column::<String>(&mut client, &explain)?.join("\n");
    ensure!(plan.contains("Workers Launched: 2"), "{plan}");
    received.extend(ids::fetch(&mut client, query)?);
    let tally = Tally::of(received);
    assert_eq!(tally.ids, 40_000);
    println!("statements: a parallel plan, the database's first IDs: {tally}");
    tally.assert_unique();
    Ok(())
}

#[test]
fn cursors_repeat_no_id() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "BEGIN;
         DECLARE walk CURSOR FOR SELECT snowflake_nextval() FROM generate_series(1, 1000);
         DECLARE kept CURSOR WITH HOLD FOR SELECT snowflake_nextval() FROM generate_series(1, 1000)",
    )?;
    let mut received = Vec::new();
    for _ in 0..10 {
        received.extend(column::<i64>(&mut client, "FETCH 50 FROM walk")?);
        // Between two fetches the session generates others.
        received.extend(column::<i64>(&mut client, "SELECT snowflake_nextval()")?);
    }
    client.batch_execute("COMMIT")?;
    received.extend(column::<i64>(&mut client, "FETCH ALL FROM kept")?);
    assert_eq!(received.len(), 1_510);
    let tally = Tally::of(received);
    println!("statements: cursors: {tally}");
    tally.assert_unique();
    Ok(())
}

#[test]
fn the_default_survives_a_restart_and_is_not_a_constant() -> Result<()> {
    let mut cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    table(&mut client, "orders")?;
    client.batch_execute("INSERT INTO orders (note) SELECT 'a' FROM generate_series(1, 100)")?;
    cluster.restart()?;
    let mut client = cluster.connect()?;
    client.batch_execute("INSERT INTO orders (note) SELECT 'b' FROM generate_series(1, 100)")?;
    assert_eq!(ids_of(&mut client, "orders")?.len(), 200);
    // It must not pass for immutable.
    refused(
        &mut client,
        "CREATE INDEX ON orders ((id + snowflake_nextval()))",
        "42P17",
    )?;
    Ok(())
}

/// However a session calls: several calls in one select list, of which one
/// reserves runs, and cursors that rest while other calls are made.
#[test]
fn the_ids_of_a_session_only_increase() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let mut received: Vec<i64> = Vec::new();
    let pairs = [
        "SELECT snowflake_nextvals(4) AS a, snowflake_nextval() AS b",
        "SELECT snowflake_nextvals(20000) AS a, snowflake_nextval() AS b",
        "SELECT snowflake_nextval() AS a, snowflake_nextvals(5000) AS b",
        "SELECT snowflake_nextvals(3000) AS a, snowflake_nextvals(3000) AS b",
        "SELECT a, snowflake_nextval() AS b FROM snowflake_nextvals(3000) AS a",
    ];
    for sql in pairs {
        for row in client.query(sql, &[])? {
            received.extend([row.get::<_, i64>(0), row.get::<_, i64>(1)]);
        }
        let current: i64 = client.query_one("SELECT snowflake_currval()", &[])?.get(0);
        // Beside a set that has ended, PostgreSQL makes one call more than it
        // returns rows.
        ensure!(
            received.iter().max() <= Some(&current),
            "{sql}: currval is not the last one"
        );
    }
    // The last of these is a whole list before the first call of the other.
    let before = received.len() - 6_000;
    assert_increasing(&received[..before], "a session");
    let mut rest: Vec<i64> = received[before..].to_vec();
    rest.sort_unstable();
    let mut cursors = received[..before].to_vec();
    cursors.extend(rest);

    client.batch_execute(
        "BEGIN; \
         DECLARE one NO SCROLL CURSOR FOR SELECT snowflake_nextvals(3000) AS id; \
         DECLARE two NO SCROLL CURSOR FOR SELECT snowflake_nextvals(3000) AS id",
    )?;
    for count in [1, 7, 1, 300, 2, 64].into_iter().cycle().take(40) {
        for sql in [
            format!("FETCH {count} FROM one"),
            "SELECT snowflake_nextval()".to_owned(),
            format!("FETCH {count} FROM two"),
        ] {
            for row in client.query(&sql, &[])? {
                cursors.push(row.get(0));
            }
            let current: i64 = client.query_one("SELECT snowflake_currval()", &[])?.get(0);
            ensure!(cursors.last() == Some(&current), "{sql}: currval went down");
        }
    }
    client.batch_execute("COMMIT")?;
    assert_increasing(&cursors, "a session with cursors");
    let tally = Tally::of(cursors);
    println!("statements: mixed calls and cursors of one session: {tally}, ascending");
    tally.assert_unique();
    Ok(())
}

//! IDs of a database that has generated none before: its mark is moved in transactions that
//! write nothing, and by parallel workers. Each kind of statement has a golden file
//! (`statements`).

use crate::support::*;

#[test]
fn read_only_transactions_generate_ids() -> Result<()> {
    let cluster = Cluster::node(1).start()?;
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
        received.extend(client.column::<i64>("SELECT * FROM snowflake_nextvals(1000)")?);
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
    let cluster = Cluster::node(1).start()?;
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
    let plan = client.column::<String>(&explain)?.join("\n");
    ensure!(plan.contains("Workers Launched: 2"), "{plan}");
    received.extend(ids::fetch(&mut client, query)?);
    let tally = Tally::of(received);
    assert_eq!(tally.ids, 40_000);
    println!("statements: a parallel plan, the database's first IDs: {tally}");
    tally.assert_unique();
    Ok(())
}

//! The tables of the corpus become partitioned by day, as far as the survey says that they can.

use std::collections::BTreeMap;

use snowflake_tests::corpus::{OWNER, Outcome, entries};

use super::corpus::{Trial, left_out, roles, template};
use crate::support::*;

/// What became of the tables of all entries.
#[derive(Debug, Default)]
struct Counts {
    converted: usize,
    /// By the survey, before anything is changed; the reasons without names.
    refused: BTreeMap<String, usize>,
    /// By the plan of the key, in entries that are about such refusals.
    keys_refused: usize,
    failed: Vec<String>,
}

/// A reason without the names that are in it.
fn kind_of(obstacle: &str) -> String {
    let words = obstacle.split([':', '.']).next().unwrap_or_default();
    let is_name = |word: &&str| !word.contains(['_', '"', '/', '(']) && !word.starts_with("orders");
    words
        .split(' ')
        .filter(is_name)
        .take(12)
        .collect::<Vec<_>>()
        .join(" ")
}

/// One table, in which the application continues.
fn convert(trial: &mut Trial, cluster: &Cluster, table: &str) -> Result<()> {
    let count = format!(
        "SELECT concat_ws(' ', count(*), sum(hashtext(to_jsonb(t)::text))) FROM {table} AS t"
    );
    let rows = trial.superuser.value(&count)?;
    // Of a key that has no snowflake IDs yet, the plan is the online one, too.
    let script = format!(
        "SET search_path = shop, public; SET client_min_messages = warning;
SELECT statement FROM snowflake_migrate.partition_plan($t${table}$t$, '1 day', 'UTC') WHERE statement IS NOT NULL ORDER BY step_number \\gexec\n"
    );
    let done = psql(cluster, OWNER, &trial.database, &script, true)?;
    ensure!(done.success, "{}", done.errors);
    trial.superuser.answers(&count, &rows)?;
    let kind = format!("SELECT relkind FROM pg_class WHERE oid = $t${table}$t$::regclass");
    trial.superuser.answers(&kind, "p")?;
    trial.apply("partitioned")?;
    Ok(())
}

/// Each of the corpus' schemas, on which the survey of one session says nothing of what the plan
/// does; its plan takes several transactions.
#[test]
fn tables_of_the_corpus_are_converted_or_refused_before() -> Result<()> {
    let cluster = Cluster::node(1)
        .conf("max_locks_per_transaction", 256)
        .conf("wal_level", "logical")
        .time_limit(Duration::from_secs(1_800))
        .start_with_migrate()?;
    roles(&cluster)?;
    let mut client = cluster.connect_to_new_database("corpus")?;
    client.batch_execute("CREATE EXTENSION snowflake_partitions")?;
    template(client)?;
    let mut counts = Counts::default();
    let chosen = entries().filter(|entry| entry.is_pushed || tier::is_full());
    for (place, entry) in chosen.enumerate() {
        if left_out(&cluster, entry)?.is_some() || entry.by_superuser {
            continue;
        }
        let mut trial = Trial::new(&cluster, entry, (false, false), ("corpus", place))?;
        trial.apply("before")?;
        trial.cure()?;
        let path = "SET search_path = shop, public; SET client_min_messages = warning;";
        let run = format!(
            "{path} CALL snowflake_migrate.run({});\n",
            trial.arguments()
        );
        // Outside of a transaction block.
        let run = run.replace("; CALL", ";\nCALL");
        if matches!(entry.outcome(false), Outcome::Refused { .. })
            || !psql(&cluster, OWNER, &trial.database, &run, true)?.success
        {
            counts.keys_refused += 1;
        } else {
            trial.apply("migrated")?;
            let survey =
                "SELECT target::text FROM snowflake_migrate.partition_survey('shop') ORDER BY 1";
            for table in trial.superuser.column::<String>(survey)? {
                // Anew for each: those that were converted before may refer to it.
                let survey = "SELECT coalesce(obstacles, '{}') FROM snowflake_migrate.partition_survey('shop') WHERE target::text = $1";
                let obstacles: Vec<String> = trial.superuser.query_one(survey, &[&table])?.get(0);
                if let Some(first) = obstacles.first() {
                    *counts.refused.entry(kind_of(first)).or_default() += 1;
                } else if let Err(error) = convert(&mut trial, &cluster, &table) {
                    counts
                        .failed
                        .push(format!("{}, {table}: {error:#}", entry.name));
                } else {
                    counts.converted += 1;
                }
            }
        }
        let database = trial.database.clone();
        drop(trial);
        cluster.run(&format!("DROP DATABASE {database} WITH (FORCE)"))?;
    }
    println!(
        "partitioned: {} tables converted; {} refused before anything changed; {} keys that have no plan; {} failed after a yes",
        counts.converted,
        counts.refused.values().sum::<usize>(),
        counts.keys_refused,
        counts.failed.len()
    );
    for (reason, tables) in &counts.refused {
        println!("  {tables}: {reason}");
    }
    ensure!(counts.failed.is_empty(), "{}", counts.failed.join("\n\n"));
    ensure!(
        counts.converted >= tier::size(8, 40),
        "{} converted",
        counts.converted
    );
    Ok(())
}

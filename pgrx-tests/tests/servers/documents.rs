//! Every SQL block of the README, and after it of each document in docs/, runs
//! in order, as a reader would paste them into psql. A README whose functions
//! don't exist, or whose third example needs a table that no example creates, has
//! been shipped often enough.

mod screens;
mod uninstalling;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use snowflake_tests::Cluster;
use snowflake_tests::document::{self, Block};
use snowflake_tests::migration::psql;
use snowflake_tests::query::number;

use crate::support::column;

/// The documents in docs/, by name.
fn documents() -> Result<Vec<String>> {
    let mut documents = Vec::new();
    for entry in std::fs::read_dir(document::root().join("docs")).context("reading docs/")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            documents.push(name);
        }
    }
    documents.sort();
    Ok(documents)
}

/// The names that begin with `prefix` and have an entry in the reference: a heading, or
/// the first cell of a row.
fn names_in_the_reference(reference: &str, prefix: &str) -> BTreeSet<String> {
    reference
        .lines()
        .filter_map(|line| {
            line.strip_prefix("### `")
                .or_else(|| line.strip_prefix("| `"))
        })
        .map(|entry| entry.strip_prefix("CALL ").unwrap_or(entry))
        .filter_map(|entry| entry.split(['`', '(', ' ']).next())
        .filter(|name| name.starts_with(prefix) && name.contains('.') == prefix.contains('.'))
        .map(str::to_owned)
        .collect()
}

/// What people can call, read and set has an entry in the reference, and nothing else is
/// in the extension's schema.
#[test]
fn the_reference_lists_the_objects_of_the_extension() -> Result<()> {
    let reference = document::read("docs/reference.md")?;
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    for (what, prefix, query) in [
        (
            "objects",
            "snowflake_",
            // Row types go with their relations.
            "SELECT DISTINCT split_part(split_part(i.identity, '.', 2), '(', 1)
             FROM pg_depend AS d
             JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
             CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS i
             WHERE e.extname = 'snowflake' AND d.deptype = 'e' AND d.classid <> 'pg_type'::regclass
               AND i.schema IS DISTINCT FROM 'snowflake_internal'
               AND i.identity <> 'snowflake_internal'",
        ),
        (
            "objects of the tool",
            "snowflake_migrate.",
            "SELECT DISTINCT split_part(i.identity, '(', 1)
             FROM pg_depend AS d
             JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
             CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS i
             WHERE e.extname = 'snowflake_migrate' AND d.deptype = 'e' AND d.classid <> 'pg_type'::regclass
               AND i.schema = 'snowflake_migrate'",
        ),
        (
            "settings",
            "snowflake.",
            "SELECT name FROM pg_settings WHERE name LIKE 'snowflake.%' AND name <> 'snowflake.unprotected'",
        ),
    ] {
        let present: BTreeSet<String> = column(&mut client, query)?.into_iter().collect();
        assert_eq!(
            names_in_the_reference(&reference, prefix),
            present,
            "{what} of docs/reference.md"
        );
        println!("documents: {} {what}, all in the reference", present.len());
    }
    Ok(())
}

/// Runs every SQL block in the database `readme` of a server that is configured as the
/// README says. Returns the server, and the numbers of the README's blocks and the others.
fn with_everything_the_documents_create() -> Result<(Cluster, usize, usize)> {
    let blocks = document::blocks(&document::read("README.md")?);
    let sql: Vec<&Block> = blocks
        .iter()
        .filter(|block| block.language == "sql")
        .collect();
    ensure!(
        sql.len() >= 3,
        "{} sql blocks in the README: is it still there?",
        sql.len()
    );

    // The lines that switch it on are the README's as well, where it has them.
    let mut cluster = Cluster::builder().without_preload().prepare()?;
    let switch_on = blocks.iter().find(|block| {
        !["sql", "sh", "console", "bash"].contains(&block.language.as_str())
            && block
                .text
                .lines()
                .any(|line| line.trim_start().starts_with("shared_preload_libraries"))
    });
    match switch_on {
        Some(block) => cluster.append_conf("postgresql.conf", &block.text)?,
        None => {
            cluster.set_conf("shared_preload_libraries", "snowflake")?;
            cluster.set_conf("snowflake.node_id", 1)?;
        }
    }
    cluster.start()?;
    cluster.connect()?.batch_execute("CREATE DATABASE readme")?;

    let mut script = String::new();
    let mut add = |document: &str, block: &Block| {
        let Block { line, text, .. } = block;
        let _ = writeln!(script, "\\echo {document} line {line}\n{text}");
    };
    for block in &sql {
        add("README.md", block);
    }
    let mut more = 0;
    for name in documents()? {
        for block in document::blocks(&document::read(&format!("docs/{name}"))?) {
            if block.language == "sql" {
                add(&name, &block);
                more += 1;
            }
        }
    }
    let mut psql = cluster
        .client_command("psql", "readme")
        .args(["-X", "-v", "ON_ERROR_STOP=1", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting psql")?;
    let mut input = psql.stdin.take().context("psql's input")?;
    let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
    let output = psql.wait_with_output()?;
    // It fails too where psql stops in the middle; its exit status shows that.
    let _ = writer.join();
    let shown = String::from_utf8_lossy(&output.stdout);
    println!("{shown}");
    ensure!(
        output.status.success(),
        "a block fails; it is the last of these:\n{shown}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok((cluster, sql.len(), more))
}

#[test]
fn every_sql_block_of_the_documents_runs() -> Result<()> {
    let (_cluster, readme, more) = with_everything_the_documents_create()?;
    println!("documents: {readme} sql blocks of the README and {more} of docs/, all run");
    Ok(())
}

/// The guide says that its block for an online migration resumes an interrupted one.
/// psql stops at its first error, also at a \gset without a row.
#[test]
fn the_block_of_an_online_migration_can_be_run_again() -> Result<()> {
    const ROWS: i64 = 20_000;
    let the = |what: &str| document::block("docs/migration.md", what);
    let tables = the("CREATE TABLE deliveries (")?;
    let migration = the("CALL snowflake_migrate.backfill('deliveries', batch_size")?;
    let swap = the("INSERT INTO deliveries (note) VALUES ('the first one with a snowflake ID')")?;

    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let run = |what: &str, script: &str| -> Result<()> {
        let written = psql(&cluster, "postgres", "postgres", script, true)?;
        ensure!(
            written.success && !written.errors.contains("ERROR"),
            "{what}: {}",
            written.errors
        );
        Ok(())
    };
    run("the tables", &tables)?;
    let interrupted = migration
        .replace("statement_timeout = 0", "statement_timeout = '2s'")
        .replace("pause => '20 milliseconds'", "pause => '1 hour'");
    let written = psql(&cluster, "postgres", "postgres", &interrupted, true)?;
    ensure!(
        !written.success && written.errors.contains("statement timeout"),
        "{}",
        written.errors
    );
    run("after an interruption", &migration)?;
    run("again", &migration)?;
    assert_eq!(
        number(&mut client, "SELECT max(id)::bigint FROM deliveries")?,
        ROWS
    );
    run("the swap", &swap)?;
    assert!(number(&mut client, "SELECT max(id) FROM deliveries")? > 1 << 40);
    run("after the swap", &migration)?;
    assert_eq!(
        number(&mut client, "SELECT count(*) FROM deliveries")?,
        ROWS + 1
    );
    println!(
        "documents: the block of an online migration ran, after an interruption, twice before the swap and once after it"
    );
    Ok(())
}

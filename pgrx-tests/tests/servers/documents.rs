//! The SQL blocks of the README and of each document in docs/ run in order, as a reader
//! would paste them into psql: each page in an empty database, and all of them in one. A
//! README whose functions don't exist, or whose third example needs a table that no example
//! creates, has been shipped often enough.

mod screens;
mod uninstalling;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use snowflake_tests::document::{self, Block};

use crate::support::*;

/// The pages, by their paths: the README, and after it the documents in docs/.
fn pages() -> Result<Vec<String>> {
    let mut documents = Vec::new();
    for entry in std::fs::read_dir(document::root().join("docs")).context("reading docs/")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            documents.push(format!("docs/{name}"));
        }
    }
    documents.sort();
    documents.insert(0, "README.md".to_owned());
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
    let cluster = Cluster::with_partitions()?;
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
             WHERE e.extname = 'snowflake' AND d.deptype = 'e'
               AND d.classid NOT IN ('pg_type'::regclass, 'pg_event_trigger'::regclass)
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
            "objects of partitions",
            "snowflake_partitions.",
            "SELECT DISTINCT split_part(i.identity, '(', 1)
             FROM pg_depend AS d
             JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
             CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS i
             WHERE e.extname = 'snowflake_partitions' AND d.deptype = 'e' AND d.classid <> 'pg_type'::regclass
               AND i.schema = 'snowflake_partitions'",
        ),
        (
            "settings",
            "snowflake.",
            "SELECT name FROM pg_settings WHERE name LIKE 'snowflake.%' AND name <> 'snowflake.unprotected'",
        ),
    ] {
        let present: BTreeSet<String> = client.column(query)?.into_iter().collect();
        assert_eq!(
            names_in_the_reference(&reference, prefix),
            present,
            "{what} of docs/reference.md"
        );
    }
    Ok(())
}

/// A server that is configured as the README says, without a database of the extension.
fn as_the_readme_says() -> Result<Cluster> {
    let mut cluster = Cluster::builder().without_preload().prepare()?;
    // The README's statements are all that is needed.
    if what_is_missing()? != "shared_preload_libraries" {
        cluster.start()?;
        return Ok(cluster);
    }
    let readme = document::blocks(&document::read("README.md")?);
    // The lines that switch it on are the README's as well, where it has them.
    let switch_on = readme.iter().find(|block| {
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
    Ok(cluster)
}

/// Runs the SQL blocks of pages in their order, in a new database. Returns their number.
fn run_in_a_new_database(cluster: &Cluster, database: &str, pages: &[String]) -> Result<usize> {
    cluster.run(&format!("CREATE DATABASE {database} TEMPLATE template0"))?;
    let mut script = String::new();
    let mut count = 0;
    for page in pages {
        for Block { line, text, .. } in document::blocks(&document::read(page)?)
            .iter()
            .filter(|block| block.language == "sql")
        {
            let _ = writeln!(script, "\\echo {page} line {line}\n{text}");
            count += 1;
        }
    }
    let mut psql = cluster
        .client_command("psql", database)
        .args(["-X", "-v", "ON_ERROR_STOP=1", "-f", "-"])
        .current_dir(document::root())
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
    Ok(count)
}

/// All pages in the database `readme`, as a reader runs them who comes from the README.
fn with_everything_the_documents_create() -> Result<Cluster> {
    let cluster = as_the_readme_says()?;
    let mut pages = pages()?;
    // Its statements move all columns that have IDs by default.
    pages.retain(|page| page != "docs/without-library.md");
    run_in_a_new_database(&cluster, "readme", &pages)?;
    Ok(cluster)
}

/// A reader may begin at any page: its database has no extension and no table of another
/// page.
#[test]
fn every_sql_block_of_a_page_runs_in_an_empty_database() -> Result<()> {
    let cluster = as_the_readme_says()?;
    let mut counts = Vec::new();
    for (number, page) in pages()?.into_iter().enumerate() {
        let count = run_in_a_new_database(
            &cluster,
            &format!("page_{number}"),
            std::slice::from_ref(&page),
        )
        .with_context(|| format!("{page}, in an empty database"))?;
        counts.push((page, count));
    }
    let readme = counts.first().map_or(0, |(_, count)| *count);
    ensure!(
        readme >= 3,
        "{readme} sql blocks in the README: is it still there?"
    );
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    println!("documents: {all} sql blocks of {} pages", counts.len());
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
        // Of the backfill only: what comes before it takes its time.
        .replace(
            "CALL snowflake_migrate.backfill(",
            "SET statement_timeout = '5s'; CALL snowflake_migrate.backfill(",
        )
        .replace(
            "batch_size => 5000",
            "batch_size => 5000, pause => '1 hour'",
        );
    let written = psql(&cluster, "postgres", "postgres", &interrupted, true)?;
    ensure!(
        !written.success && written.errors.contains("statement timeout"),
        "{}",
        written.errors
    );
    // The pace is kept.
    client
        .batch_execute("CALL snowflake_migrate.pace('deliveries', pause => '20 milliseconds')")?;
    run("after an interruption", &migration)?;
    run("again", &migration)?;
    client.answers("SELECT max(id)::bigint FROM deliveries", ROWS)?;
    run("the swap", &swap)?;
    assert!(client.number("SELECT max(id) FROM deliveries")? > 1 << 40);
    run("after the swap", &migration)?;
    client.answers("SELECT count(*) FROM deliveries", ROWS + 1)?;
    Ok(())
}

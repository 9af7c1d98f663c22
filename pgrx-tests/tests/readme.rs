//! Every SQL block of the README runs, in order, as a reader would paste them
//! into psql. A README whose functions don't exist, or whose third example
//! needs a table that none of them makes, has been shipped often enough.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use snowflake_tests::Cluster;

/// A fenced block.
struct Block {
    /// The line its text begins at.
    line: usize,
    language: String,
    text: String,
}

fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in markdown.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(language)) => {
                open = Some(Block {
                    line: number + 2,
                    language: language.trim().to_ascii_lowercase(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                let _ = writeln!(block.text, "{line}");
            }
            (None, None) => {}
        }
    }
    blocks
}

#[test]
fn every_sql_block_of_the_readme_runs() -> Result<()> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let markdown = std::fs::read_to_string(&readme)
        .with_context(|| format!("reading {}", readme.display()))?;
    let blocks = blocks(&markdown);
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
    for block in &sql {
        let _ = writeln!(
            script,
            "\\echo README.md line {}\n{}",
            block.line, block.text
        );
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
    // It fails too where psql gives up in the middle; its exit status tells.
    let _ = writer.join();
    let shown = String::from_utf8_lossy(&output.stdout);
    println!("{shown}");
    ensure!(
        output.status.success(),
        "a block of the README fails; it is the last of these:\n{shown}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    println!("readme: {} sql blocks, all run", sql.len());
    Ok(())
}

//! What psql prints is what the guides to migrations print below their statements.
//!
//! Golden files compare what a server answers to statements of their own. Whether a
//! document's screen is that of its statements, only running the document shows.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::process::Stdio;
use std::sync::LazyLock;

use regex::Regex;
use snowflake_tests::document::{self, Block};

use crate::support::*;

const GUIDES: [&str; 2] = ["docs/exhausted-key.md", "docs/migration.md"];

/// What psql prints for each of the statements' blocks, errors and notices in their place.
fn printed(cluster: &Cluster, blocks: &[&Block]) -> Result<Vec<String>> {
    const MARK: &str = "-- next block --";
    let mut script = String::new();
    for block in blocks {
        let _ = writeln!(script, "\\echo '{MARK}'\n{}", block.text);
    }
    let mut output = tempfile::tempfile()?;
    let both = |file: &File| -> Result<Stdio> { Ok(Stdio::from(file.try_clone()?)) };
    let mut psql = cluster
        .client_command("psql", "postgres")
        .args(["-X", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(both(&output)?)
        .stderr(both(&output)?)
        .spawn()
        .context("starting psql")?;
    psql.stdin
        .take()
        .context("psql's input")?
        .write_all(script.as_bytes())?;
    ensure!(psql.wait()?.success(), "psql failed");
    let mut all = String::new();
    output.rewind()?;
    output.read_to_string(&mut all)?;
    Ok(all.split(MARK).skip(1).map(str::to_owned).collect())
}

/// Lines without what differs from run to run: numbers, sizes, the widths of columns.
fn lines(text: &str) -> Vec<String> {
    static PLACE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^psql:[^ ]+ ").expect("a pattern"));
    static NUMBER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"[0-9][0-9.,]*( (bytes|[kMG]B))?").expect("a pattern"));
    static RULE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"-{2,}").expect("a pattern"));
    text.lines()
        .map(|line| {
            let line = PLACE.replace(line, "");
            let line = NUMBER.replace_all(&line, "9");
            let line = RULE.replace_all(&line, "--");
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        })
        .filter(|line| !line.is_empty())
        .collect()
}

/// The lines of a screen come in what was printed, in this order; a screen may leave some
/// out.
#[test]
fn the_screens_of_the_guides_are_what_psql_prints() -> Result<()> {
    let mut compared = 0;
    for guide in GUIDES {
        let cluster = Cluster::with_migrate()?;
        let blocks = document::blocks(&document::read(guide)?);
        let statements: Vec<&Block> = blocks.iter().filter(|it| it.language == "sql").collect();
        let printed = printed(&cluster, &statements)?;
        ensure!(printed.len() == statements.len(), "{guide}: psql stopped");
        for pair in blocks.windows(2) {
            let [sql, screen] = pair else { continue };
            // An error is what the statement says when another session holds a lock, and a
            // statement is one that the reader has to complete.
            if sql.language != "sql"
                || screen.language != "text"
                || ["ERROR", "SELECT", "CALL"]
                    .iter()
                    .any(|word| screen.text.starts_with(word))
            {
                continue;
            }
            let place = statements.iter().position(|it| it.line == sql.line);
            let answer = &printed[place.context("a block")?];
            let mut rest = lines(answer).into_iter();
            for line in lines(&screen.text) {
                ensure!(
                    rest.any(|it| it == line),
                    "{guide}, line {}: psql does not print this in its place:\n{line}\nbut:\n{answer}",
                    screen.line
                );
            }
            compared += 1;
        }
    }
    ensure!(compared > 0, "no screen");
    Ok(())
}

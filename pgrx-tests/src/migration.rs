//! Helpers for tests of migrations: scripts through psql, dumps of the schema,
//! checksums of the rows.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Stdio;
use std::thread;

use anyhow::{Context, Result, ensure};
use postgres::Client;

use crate::server::Server;

/// What psql wrote, and whether it succeeded.
#[derive(Debug)]
pub struct PsqlOutput {
    /// Its standard output.
    pub output: String,
    /// Its standard error: errors and notices.
    pub errors: String,
    /// Whether its exit code was 0.
    pub success: bool,
}

/// Runs a script through psql as if it were typed, with or without
/// `ON_ERROR_STOP`.
pub fn psql(
    server: &Server,
    user: &str,
    database: &str,
    script: &str,
    on_error_stop: bool,
) -> Result<PsqlOutput> {
    let mut child = server
        .client_command("psql", database)
        .args(["-X", "-At", "-v"])
        .arg(format!("ON_ERROR_STOP={}", u8::from(on_error_stop)))
        .env("PGUSER", user)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("running psql")?;
    let mut input = child.stdin.take().context("no pipe")?;
    let output = thread::scope(|scope| {
        // Beside reading its output, for which it may wait. The pipe closes early only if
        // psql stops at an error of the script.
        scope.spawn(move || {
            let _ = input.write_all(script.as_bytes());
        });
        child.wait_with_output()
    })?;
    Ok(PsqlOutput {
        output: String::from_utf8(output.stdout)?,
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        success: output.status.success(),
    })
}

/// Runs the plan through psql's `\gexec`, without any error.
pub fn migrate_by_psql(server: &Server, user: &str, database: &str, arguments: &str) -> Result<()> {
    let script = format!("SELECT statement FROM snowflake_migrate.plan({arguments}) \\gexec\n");
    let written = psql(server, user, database, &script, true)?;
    ensure!(
        written.success && written.errors.is_empty(),
        "psql failed:\n{script}\n{}{}",
        written.output,
        written.errors
    );
    Ok(())
}

/// `pg_dump`, as a superuser.
pub fn dump(server: &Server, database: &str, arguments: &[&str]) -> Result<String> {
    let output = server
        .client_command("pg_dump", database)
        .args(arguments)
        .output()
        .context("running pg_dump")?;
    ensure!(
        output.status.success(),
        "pg_dump failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// `pg_dump --schema-only`, without the lines that differ from one dump to the next.
pub fn schema(server: &Server, database: &str) -> Result<String> {
    Ok(dump(server, database, &["--schema-only"])?
        .lines()
        .filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"))
        .flat_map(|line| [line, "\n"])
        .collect())
}

/// Fails with the lines that differ.
pub fn assert_same_schema(expected: &str, found: &str, when: &str) {
    if expected == found {
        return;
    }
    let count = |text: &str| {
        let mut lines: BTreeMap<String, i64> = BTreeMap::new();
        for line in text.lines() {
            *lines.entry(line.to_owned()).or_default() += 1;
        }
        lines
    };
    let (before, after) = (count(expected), count(found));
    let mut report = String::new();
    for (line, number) in &before {
        if after.get(line).unwrap_or(&0) < number {
            report += &format!("- {line}\n");
        }
    }
    for (line, number) in &after {
        if before.get(line).unwrap_or(&0) < number {
            report += &format!("+ {line}\n");
        }
    }
    panic!("{when}: the schema differs:\n{report}");
}

/// A dump in which narrower columns have become bigint. A migration that was
/// reverted may leave no other difference. Each column is a table and a name, as
/// `pg_dump` writes them.
pub fn widened(dump: &str, columns: &[(&str, &str)]) -> Result<String> {
    let mut lines: Vec<String> = dump.lines().map(str::to_owned).collect();
    for (table, column) in columns {
        let heads = [
            format!("CREATE TABLE {table} ("),
            format!("CREATE UNLOGGED TABLE {table} ("),
        ];
        let head = lines
            .iter()
            .position(|line| heads.contains(line))
            .with_context(|| format!("no table {table} in the dump"))?;
        let line = lines[head..]
            .iter_mut()
            .take_while(|line| !line.starts_with(')'))
            .find(|line| {
                ["integer", "smallint"]
                    .iter()
                    .any(|narrow| line.starts_with(&format!("    {column} {narrow}")))
            })
            .with_context(|| format!("no narrow column {column} of {table} in the dump"))?;
        *line = line
            .replacen(" integer", " bigint", 1)
            .replacen(" smallint", " bigint", 1);
    }
    Ok(lines
        .iter()
        .flat_map(|line| [line.as_str(), "\n"])
        .collect())
}

/// How many rows a table has, and a checksum of them.
pub type Contents = BTreeMap<String, (i64, String)>;

/// The rows of every table that is not the extension's, by the table's name.
pub fn contents(client: &mut Client) -> Result<Contents> {
    let tables = client.query(
        "SELECT format('%I.%I', n.nspname, c.relname)
         FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
         WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
           AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass
                             AND d.objid = c.oid AND d.deptype = 'e')
         ORDER BY 1",
        &[],
    )?;
    let mut contents = Contents::new();
    for table in tables {
        let table: String = table.get(0);
        let row = client.query_one(
            &format!(
                "SELECT count(*), coalesce(md5(string_agg(t::text, ',' ORDER BY t::text)), '') FROM ONLY {table} AS t"
            ),
            &[],
        )?;
        contents.insert(table, (row.get(0), row.get(1)));
    }
    Ok(contents)
}

/// Foreign keys, and how many of them are validated.
pub fn foreign_keys(client: &mut Client) -> Result<(i64, i64)> {
    let row = client.query_one(
        "SELECT count(*), count(*) FILTER (WHERE convalidated) FROM pg_constraint WHERE contype = 'f'",
        &[],
    )?;
    Ok((row.get(0), row.get(1)))
}

/// The statements of a plan.
pub fn plan(client: &mut Client, arguments: &str) -> Result<Vec<String>> {
    let query = format!(
        "SELECT statement FROM snowflake_migrate.plan({arguments}) WHERE statement IS NOT NULL ORDER BY step"
    );
    Ok(client
        .query(&query, &[])
        .with_context(|| format!("running: {query}"))?
        .iter()
        .map(|row| row.get(0))
        .collect())
}

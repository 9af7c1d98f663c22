//! Online migrations: the steps of a plan, and comparisons of tables whose
//! columns have changed their order.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use postgres::Client;

use crate::migration::Contents;

/// One statement of a plan that has not been run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its place in the plan, from 1 on.
    pub number: i32,
    /// The statement to run.
    pub statement: String,
    /// The strongest lock that it takes.
    pub lock_level: String,
    /// Whether it rewrites a table.
    pub rewrites: bool,
    /// Whether it may run in a transaction block.
    pub in_transaction: bool,
    /// Its purpose.
    pub note: String,
    /// What it does, in forty characters.
    pub what: String,
}

impl Step {
    /// Whether it copies the IDs.
    pub fn is_backfill(&self) -> bool {
        self.statement.contains("snowflake_migrate.backfill")
    }

    /// Whether it replaces the narrow columns by the wide ones.
    pub fn is_swap(&self) -> bool {
        self.statement.contains("snowflake_migrate_internal.swap")
    }

    /// Its beginning, for output.
    pub fn title(&self) -> String {
        let flat = self.statement.split_whitespace().collect::<Vec<_>>();
        let mut title: String = flat.join(" ").chars().take(96).collect();
        if title.len() < flat.join(" ").len() {
            title += " …";
        }
        title
    }
}

/// The remaining steps. `arguments` are a table and possibly a column, as SQL
/// writes them.
pub fn plan(client: &mut Client, arguments: &str) -> Result<Vec<Step>> {
    plan_for(client, arguments, true)
}

/// The same, online or for a maintenance window.
pub fn plan_for(client: &mut Client, arguments: &str, online: bool) -> Result<Vec<Step>> {
    let query = format!(
        "SELECT step, statement, lock, rewrites, in_transaction, note, what
         FROM snowflake_migrate.plan({arguments}, online => {online}) WHERE statement IS NOT NULL ORDER BY step"
    );
    Ok(client
        .query(&query, &[])
        .with_context(|| format!("running: {query}"))?
        .iter()
        .map(|row| Step {
            number: row.get(0),
            statement: row.get(1),
            lock_level: row.get(2),
            rewrites: row.get(3),
            in_transaction: row.get(4),
            note: row.get(5),
            what: row.get(6),
        })
        .collect())
}

/// Their statements.
pub fn statements(steps: &[Step]) -> Vec<&str> {
    steps.iter().map(|step| step.statement.as_str()).collect()
}

/// Runs the remaining steps in order, each in its own transaction. Returns
/// their number.
pub fn migrate(client: &mut Client, arguments: &str) -> Result<usize> {
    let steps = plan(client, arguments)?;
    for step in &steps {
        client
            .batch_execute(&step.statement)
            .with_context(|| format!("{arguments}: running: {}", step.statement))?;
    }
    let left = plan(client, arguments)?;
    ensure!(left.is_empty(), "{arguments}: left to do: {left:#?}");
    Ok(steps.len())
}

/// The columns of tables, in order, by the tables' names.
pub type Columns = BTreeMap<String, Vec<String>>;

/// The columns of every table that is not the extension's.
pub fn columns(client: &mut Client) -> Result<Columns> {
    let rows = client.query(
        "SELECT format('%I.%I', n.nspname, c.relname), array_agg(quote_ident(a.attname) ORDER BY a.attnum)
         FROM pg_class AS c
         JOIN pg_namespace AS n ON n.oid = c.relnamespace
         JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
           AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass
                             AND d.objid = c.oid AND d.deptype = 'e')
         GROUP BY 1",
        &[],
    )?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// The rows of those columns, by the tables' names. The order of the columns
/// does not matter, and later columns are ignored.
pub fn contents(client: &mut Client, columns: &Columns) -> Result<Contents> {
    let mut contents = Contents::new();
    for (table, names) in columns {
        let mut names = names.clone();
        names.sort();
        let row = client
            .query_one(
                &format!(
                    "SELECT count(*), coalesce(md5(string_agg(r.t, ',' ORDER BY r.t)), '')
                     FROM (SELECT ROW({})::text FROM ONLY {table}) AS r (t)",
                    names.join(", ")
                ),
                &[],
            )
            .with_context(|| format!("reading {table}"))?;
        contents.insert(table.clone(), (row.get(0), row.get(1)));
    }
    Ok(contents)
}

/// Fails unless the columns that are not in `widened` come first, in their old
/// order, and those in `widened` come last. A table that ends in `*` means all
/// whose names begin like this. Returns how many columns have moved.
pub fn check_order(before: &Columns, after: &Columns, widened: &[(&str, &str)]) -> Result<usize> {
    ensure!(
        before.keys().eq(after.keys()),
        "the tables have changed: {:?}",
        after.keys()
    );
    let mut moved = 0;
    for (table, columns) in before {
        let (mut expected, mut last): (Vec<&String>, Vec<&String>) =
            columns.iter().partition(|column| {
                !widened.iter().any(|(of, name)| {
                    let is_it = of
                        .strip_suffix('*')
                        .map_or(of == table, |start| table.starts_with(start));
                    is_it && *name == column.as_str()
                })
            });
        let now = &after[table];
        ensure!(
            now.len() == columns.len(),
            "{table}: {columns:?} before, {now:?} now"
        );
        let mut at_the_end: Vec<&String> = now[expected.len()..].iter().collect();
        at_the_end.sort();
        last.sort();
        ensure!(
            at_the_end == last && now[..expected.len()].iter().eq(expected.iter().copied()),
            "{table}: {columns:?} before, {now:?} now"
        );
        expected.extend(last);
        moved += columns.iter().zip(now).filter(|(a, b)| a != b).count();
    }
    Ok(moved)
}

/// A dump of the schema as sorted lines, one for each statement and column.
/// Two dumps that differ in order only have the same lines.
pub fn unordered(dump: &str) -> String {
    let mut paragraphs: Vec<String> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    for line in dump.lines().chain([""]) {
        if !line.is_empty() {
            if !line.starts_with("--") {
                open.push(line);
            }
            continue;
        }
        if open.is_empty() {
            continue;
        }
        let mut lines = std::mem::take(&mut open);
        let is_table = ["CREATE TABLE ", "CREATE UNLOGGED TABLE "]
            .iter()
            .any(|head| lines[0].starts_with(head));
        if is_table {
            for line in &mut lines {
                *line = line.trim_end_matches(',');
            }
            lines[1..].sort_unstable();
            // One line for each column makes a difference easier to read.
            let head = lines[0];
            paragraphs.extend(lines.iter().map(|line| format!("{head} {}", line.trim())));
        } else {
            paragraphs.push(lines.join(" "));
        }
    }
    paragraphs.sort();
    paragraphs
        .iter()
        .flat_map(|line| [line.as_str(), "\n"])
        .collect()
}

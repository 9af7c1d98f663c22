//! Single values that a query returns.

use std::fmt::Display;

use anyhow::{Context, Result, bail, ensure};
use postgres::Client;

/// The first column of the first row, as text. Fails if there is no row.
pub fn text(client: &mut Client, sql: &str) -> Result<Option<String>> {
    use postgres::SimpleQueryMessage::Row;
    let messages = client
        .simple_query(sql)
        .with_context(|| format!("running: {sql}"))?;
    for message in messages {
        if let Row(row) = message {
            return Ok(row.get(0).map(str::to_owned));
        }
    }
    bail!("no row came from: {sql}")
}

/// The same, which must not be NULL.
pub fn value(client: &mut Client, sql: &str) -> Result<String> {
    text(client, sql)?.with_context(|| format!("NULL came from: {sql}"))
}

/// The same as a number.
pub fn number(client: &mut Client, sql: &str) -> Result<i64> {
    let found = value(client, sql)?;
    found.parse().with_context(|| format!("{found}: {sql}"))
}

/// Fails unless the value is this.
pub fn answers(client: &mut Client, sql: &str, expected: impl Display) -> Result<()> {
    let (found, expected) = (value(client, sql)?, expected.to_string());
    ensure!(found == expected, "{found}, not {expected}: {sql}");
    Ok(())
}

//! What a statement answered when it was refused.

use std::fmt;

use anyhow::{Context, Result, bail};
use postgres::Client;
use postgres::error::DbError;

/// An error of the server, in the parts that a person or a program reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The SQLSTATE, five characters.
    pub sqlstate: String,
    /// The primary message.
    pub message: String,
    /// The DETAIL line; empty where there is none.
    pub detail: String,
    /// The HINT line; empty where there is none.
    pub hint: String,
}

impl Refusal {
    /// The server's part of a client's error; another fault (a connection
    /// that broke, say) is passed on.
    pub fn from_error(error: postgres::Error) -> Result<Self> {
        match error.as_db_error() {
            Some(error) => Ok(Self::from_db_error(error)),
            None => Err(error).context("the client failed, the server said nothing"),
        }
    }

    fn from_db_error(error: &DbError) -> Self {
        Self {
            sqlstate: error.code().code().to_owned(),
            message: error.message().to_owned(),
            detail: error.detail().unwrap_or_default().to_owned(),
            hint: error.hint().unwrap_or_default().to_owned(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.sqlstate, self.message)?;
        if !self.detail.is_empty() {
            write!(formatter, " DETAIL: {}", self.detail)?;
        }
        if !self.hint.is_empty() {
            write!(formatter, " HINT: {}", self.hint)?;
        }
        Ok(())
    }
}

/// Runs statements that must be refused.
pub fn refusal(client: &mut Client, sql: &str) -> Result<Refusal> {
    match client.simple_query(sql) {
        Ok(_) => bail!("this should have been refused: {sql}"),
        Err(error) => Refusal::from_error(error).with_context(|| format!("running: {sql}")),
    }
}

/// The single value of a statement's single row, as text.
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

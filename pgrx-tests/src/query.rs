//! What tests ask of a session.

use std::fmt::Display;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use postgres::Client;
use postgres::types::FromSql;

use crate::server_error::ServerError;
use crate::wait;

/// Statements and their answers.
pub trait Ask {
    /// The session.
    fn client(&mut self) -> &mut Client;

    /// The first column of the first row, as text. Fails if there is no row.
    fn text(&mut self, sql: &str) -> Result<Option<String>> {
        use postgres::SimpleQueryMessage::Row;
        let messages = self
            .client()
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
    fn value(&mut self, sql: &str) -> Result<String> {
        self.text(sql)?
            .with_context(|| format!("NULL came from: {sql}"))
    }

    /// The same as a number.
    fn number(&mut self, sql: &str) -> Result<i64> {
        let found = self.value(sql)?;
        found.parse().with_context(|| format!("{found}: {sql}"))
    }

    /// Fails unless the value is this.
    fn answers(&mut self, sql: &str, expected: impl Display) -> Result<()> {
        let (found, expected) = (self.value(sql)?, expected.to_string());
        ensure!(found == expected, "{found}, not {expected}: {sql}");
        Ok(())
    }

    /// The first column of a query's rows.
    fn column<T: for<'a> FromSql<'a>>(&mut self, sql: &str) -> Result<Vec<T>> {
        let rows = self
            .client()
            .query(sql, &[])
            .with_context(|| format!("running: {sql}"))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Runs statements one by one.
    fn run<S: AsRef<str>>(&mut self, statements: impl IntoIterator<Item = S>) -> Result<()> {
        for statement in statements {
            let sql = statement.as_ref();
            self.client()
                .batch_execute(sql)
                .with_context(|| format!("running: {sql}"))?;
        }
        Ok(())
    }

    /// Runs statements that must fail.
    fn expect_error(&mut self, sql: &str) -> Result<ServerError> {
        match self.client().simple_query(sql) {
            Ok(_) => bail!("this should have failed: {sql}"),
            Err(error) => ServerError::from_error(error).with_context(|| format!("running: {sql}")),
        }
    }

    /// Runs statements that must be refused with this SQLSTATE.
    fn refused(&mut self, sql: &str, sqlstate: &str) -> Result<ServerError> {
        let refused = self.expect_error(sql)?;
        assert_eq!(refused.sqlstate, sqlstate, "{sql}: {refused}");
        // An error that a caller can make does not name the functions that found it.
        let is_mistake = [
            "22023", "3F000", "42703", "42710", "42809", "42P01", "55000",
        ]
        .contains(&sqlstate);
        assert!(
            !is_mistake || !refused.context.contains("snowflake_internal."),
            "{sql}: {refused} CONTEXT: {}",
            refused.context
        );
        Ok(refused)
    }

    /// Waits until a query's answer is `true`. A busy machine may need a minute, and a
    /// statement that takes two ends with an error.
    fn wait_until(&mut self, query: &str) -> Result<()> {
        wait::until(query, Duration::from_secs(100), || {
            Ok(self.value(query)? == "t")
        })
    }
}

impl Ask for Client {
    fn client(&mut self) -> &mut Client {
        self
    }
}

//! Errors of the server, as a client receives them.

use std::fmt;

use anyhow::{Context, Result};
use postgres::error::DbError;

/// An error of the server, in the parts that people and programs read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// The SQLSTATE, five characters.
    pub sqlstate: String,
    /// The primary message.
    pub message: String,
    /// The DETAIL line; empty where there is none.
    pub detail: String,
    /// The HINT line; empty where there is none.
    pub hint: String,
    /// The CONTEXT lines; empty where there are none.
    pub context: String,
}

impl ServerError {
    /// The server's part of a client's error. Any other error, such as a
    /// broken connection, is returned as it is.
    pub fn from_error(error: postgres::Error) -> Result<Self> {
        match error.as_db_error() {
            Some(error) => Ok(Self::from_db_error(error)),
            None => Err(error).context("the client failed, without an error of the server"),
        }
    }

    /// The same from a chain of errors, if the server's is in it: an error in
    /// the middle of a COPY is wrapped in one of the connection.
    pub fn in_chain(error: &anyhow::Error) -> Option<Self> {
        db_error(error).map(Self::from_db_error)
    }

    fn from_db_error(error: &DbError) -> Self {
        Self {
            sqlstate: error.code().code().to_owned(),
            message: error.message().to_owned(),
            detail: error.detail().unwrap_or_default().to_owned(),
            hint: error.hint().unwrap_or_default().to_owned(),
            context: error.where_().unwrap_or_default().to_owned(),
        }
    }
}

impl fmt::Display for ServerError {
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

/// The server's error in a chain of errors.
pub(crate) fn db_error(error: &anyhow::Error) -> Option<&DbError> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

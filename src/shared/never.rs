//! Shared memory of a library that is not preloaded: none before PostgreSQL 17.

use super::Shared;
use crate::error::Error;

/// Whether the process that this one works for clears what is published for it.
pub fn leader_is_watched() -> bool {
    true
}

/// Nothing is to be done in a session.
pub fn init() {}

/// None.
pub fn find() -> Option<Shared> {
    None
}

/// # Errors
/// [`Error::NotPreloaded`]
pub fn make() -> Result<Shared, Error> {
    Err(Error::NotPreloaded)
}

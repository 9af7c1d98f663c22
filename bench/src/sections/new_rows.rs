//! Reading new rows by key: how long after its commit a row can be read, and what that
//! costs.
//!
//! - [`latency`]: readers beside writers, with and without an unrelated transaction
//! - [`calls`]: the call, with many connections
//! - [`before`]: one call and a single row, beside an earlier build of the extension

mod before;
mod calls;
mod latency;

use std::time::Duration;

use anyhow::Result;

use crate::report::Section;
use crate::run::Run;

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    latency::expected(run) + calls::expected(run) + before::expected(run)
}

/// The section.
pub fn section(run: &Run) -> Result<Section> {
    let mut blocks = latency::blocks(run)?;
    blocks.extend(calls::blocks(run)?);
    blocks.extend(before::blocks(run)?);
    Ok(Section {
        title: "Reading new rows",
        blocks,
        describes_itself: true,
        ..Section::default()
    })
}

//! Waiting for something to become true.

use std::fmt::Display;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

/// How often a condition is checked.
const INTERVAL: Duration = Duration::from_millis(5);

/// Waits until the condition is true. Fails after `limit`, and names what was
/// waited for.
pub fn until(
    what: impl Display,
    limit: Duration,
    mut condition: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let begun = Instant::now();
    while !condition()? {
        ensure!(begun.elapsed() < limit, "waited {limit:?} for {what}");
        std::thread::sleep(INTERVAL);
    }
    Ok(())
}

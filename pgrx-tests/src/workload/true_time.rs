//! True time, as a test's clock lets it pass.

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result};

use crate::clock::Clock;
use crate::ids;

/// The machine's time, plus what a test's clock was made to pass. The sessions'
/// threads cannot borrow the clock, so they read that from its file.
#[derive(Debug, Default)]
pub(super) struct TrueTime {
    passed: Option<File>,
}

impl TrueTime {
    /// True time by this clock.
    pub(super) fn of(clock: &Clock) -> Result<Self> {
        let environment = clock.environment();
        let file = environment
            .iter()
            .find(|(name, _)| *name == "SNOWFLAKE_TEST_CLOCK");
        let passed = match file {
            Some((_, path)) => Some(File::open(path).with_context(|| format!("opening {path}"))?),
            // libfaketime's clock lets no time pass.
            None => None,
        };
        Ok(Self { passed })
    }

    /// Microseconds since 1970.
    pub(super) fn now_us(&self) -> Result<i64> {
        let mut passed = [0; 8];
        if let Some(file) = &self.passed {
            // The first of the file's numbers (`src/clock/moved.rs`).
            file.read_exact_at(&mut passed, 0)
                .context("reading the clock's file")?;
        }
        Ok(ids::now_us() + i64::from_ne_bytes(passed))
    }
}

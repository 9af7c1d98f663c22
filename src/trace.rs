//! For tests only: what the protocol asks of the pages, of the log and of shared memory, and
//! what it is answered, one line each, in the file that the environment variable
//! `SNOWFLAKE_TEST_TRACE` names when the server starts. `crates/snowflake-sim/src/traced.rs`
//! accepts such a file, or says what must not have been.
//!
//! | line                                       | what                                        |
//! |--------------------------------------------|---------------------------------------------|
//! | `start NUMBER`                             | shared memory is made                       |
//! | `read-mark DATABASE BOUND NUMBER`          | what is on the page of a mark               |
//! | `write-mark PID DATABASE BOUND NUMBER WALL`| it is about to be written, at that time     |
//! | `read-floor BOUNDS`                        | what is on the page of the floor            |
//! | `write-floor PID BOUNDS`                   | it is about to be written                   |
//! | `wrote PID RECORD`                         | where the record of that ends               |
//! | `flushed RECORD`                           | the log is durable up to there              |
//! | `announce DATABASE TICK`                   | others may issue IDs below this tick        |
//!
//! A line is appended by one call while the lock is held that orders it among the others of
//! its page. So the file has the order in which things happened.

use std::fmt::Arguments;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;

/// Opened in the postmaster; every process inherits it.
static FILE: OnceLock<File> = OnceLock::new();

/// Opens the file; called once, in the postmaster.
pub fn init() {
    if let Some(path) = std::env::var_os("SNOWFLAKE_TEST_TRACE") {
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let _ = FILE.set(file);
    }
}

/// Appends a line.
pub fn line(text: Arguments<'_>) {
    if let Some(mut file) = FILE.get() {
        let _ = file.write_all(format!("{text}\n").as_bytes());
    }
}

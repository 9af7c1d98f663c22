//! For tests only: places between two steps of the protocol at which a test holds a process,
//! by PostgreSQL's injection points, to end the server exactly there. They exist on a
//! PostgreSQL 18 that was built with them (`scripts/server 18`), where the postmaster has the
//! environment variable `SNOWFLAKE_TEST_POINTS`; elsewhere they do nothing.
//!
//! | point                     | what has been done, and what not                            |
//! |---------------------------|-------------------------------------------------------------|
//! | `snowflake-raise`         | the mark was read; the next slot is not raised to it        |
//! | `snowflake-floor-written` | the floor's record is in the log; the mark's is not         |
//! | `snowflake-mark-written`  | the mark's record is in the log; it is not flushed          |
//! | `snowflake-publish`       | both are flushed; the new bound is not announced            |
//! | `snowflake-prepare`       | a prepared transaction has its place; it is not prepared    |
//! | `snowflake-prepared`      | it is prepared; its session's own place is still taken      |
//! | `snowflake-after-utility` | COMMIT PREPARED is done; its own transaction has not ended  |
//! | `snowflake-ended`         | a transaction has ended for all others; not its own place   |

#[cfg(feature = "pg18")]
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set in the postmaster; every process inherits it.
#[cfg(feature = "pg18")]
static ENABLED: AtomicBool = AtomicBool::new(false);

/// Called once, in the postmaster.
pub fn init() {
    #[cfg(feature = "pg18")]
    ENABLED.store(std::env::var_os("SNOWFLAKE_TEST_POINTS").is_some(), Relaxed);
}

/// The process has come to this place.
pub fn at(_point: &std::ffi::CStr) {
    #[cfg(feature = "pg18")]
    if ENABLED.load(Relaxed) {
        crate::pg::injection_point::run(_point);
    }
}

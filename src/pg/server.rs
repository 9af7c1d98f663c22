//! The server: its start and its role.
//!
//! What is safe about each block: it reads a variable that Postgres sets before any code
//! of the library runs in the process, and that only this thread changes, or calls a
//! function that does no more and is guarded by pgrx.
#![allow(clippy::undocumented_unsafe_blocks)] // the contract above

use pgrx::pg_sys;
use snowflake_id::protocol::Clocks;
use snowflake_id::{BootTime, WallTime};

use super::time::POSTGRES_EPOCH_MICROS;

/// Whether `shared_preload_libraries` is being loaded.
pub fn is_preloading() -> bool {
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}

/// Whether the server is in recovery: a standby, or before the end of recovery.
pub fn is_in_recovery() -> bool {
    unsafe { pg_sys::RecoveryInProgress() }
}

/// When the postmaster started.
pub fn started_at() -> WallTime {
    let micros = unsafe { pg_sys::PgStartTime };
    WallTime::from_unix_micros(micros.saturating_add(POSTGRES_EPOCH_MICROS))
}

/// What the clocks showed when the postmaster started, the time since boot to a hundredth of a
/// second. `None` if the system does not tell.
pub fn clocks_at_start() -> Option<Clocks> {
    /// The number of the field after the name, which may contain anything but ends with the
    /// last parenthesis: proc(5).
    const START_TIME: usize = 22 - 3;
    let process = unsafe { pg_sys::PostmasterPid };
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let ticks: i64 = stat
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(START_TIME)?
        .parse()
        .ok()?;
    let ticks_a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    Some(Clocks {
        wall: started_at(),
        boot: BootTime::from_micros(ticks.checked_mul(1_000_000)?.checked_div(ticks_a_second)?),
    })
}

/// Keeps backtraces out of errors. pgrx appends one to the DETAIL of each error
/// of Postgres that passes through, a cancel included, if the server has
/// `RUST_BACKTRACE` in its environment. The standard library decides once, at
/// the first capture, whether to make any. So the first is made here, with a
/// variable that forbids it.
pub fn forgo_backtraces() {
    const NAME: &str = "RUST_LIB_BACKTRACE";
    let before = std::env::var_os(NAME);
    // SAFETY: the process has one thread, so no other one reads the environment.
    unsafe {
        std::env::set_var(NAME, "0");
        let _ = std::backtrace::Backtrace::capture();
        // Other libraries, and programs that the server starts, see no change.
        match before {
            Some(before) => std::env::set_var(NAME, before),
            None => std::env::remove_var(NAME),
        }
    }
}

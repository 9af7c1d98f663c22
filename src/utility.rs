//! What the extension does before and after utility statements: it reports to [`crate::copy`]
//! which statement runs, and DISCARD ALL and DISCARD SEQUENCES forget
//! `snowflake_currval()`.

use crate::copy;
use crate::generator;
use crate::pg;
use crate::pg::callbacks::{Statement, WatchStatements};

/// Starts to watch utility statements; the one that is running, if any, is not seen.
pub fn init() {
    pg::callbacks::watch_statements::<Watch>();
}

struct Watch;

/// What is known of a statement while it runs.
#[derive(Clone, Copy)]
struct Running {
    /// How many statements run around it.
    depth: usize,
    discards_sequences: bool,
}

impl WatchStatements for Watch {
    type Running = Running;

    fn before(statement: Statement<'_>) -> Running {
        Running {
            depth: copy::begin(statement.is_copy_from()),
            discards_sequences: statement.discards_sequences(),
        }
    }

    fn after(running: Running) {
        copy::end(running.depth);
        if running.discards_sequences {
            generator::forget_last_id();
        }
        #[cfg(feature = "testing")]
        crate::crash_points::at(c"snowflake-after-utility");
    }
}

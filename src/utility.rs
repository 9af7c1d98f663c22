//! What the extension does before and after utility statements.
//!
//! - It reports to [`crate::copy`] which statement runs.
//! - DISCARD ALL and DISCARD SEQUENCES forget `snowflake_currval()`.
//! - CREATE TRIGGER on the extension's tables is refused to all roles but superusers
//!   ([`crate::records::triggers`]). Statements like `GRANT ... ON ALL TABLES IN
//!   SCHEMA` are meant for an application's tables, not for these. (Other privileges
//!   have no effect: `sql/snowflake/privileges.sql` explains why.)
//! - `ALTER TABLE ... DISABLE TRIGGER ALL` leaves the triggers of
//!   the tables `restore` enabled: `pg_restore --data-only
//!   --disable-triggers` has it for each table.

use crate::copy;
use crate::generator;
use crate::pg;
use crate::pg::callbacks::{Statement, WatchStatements};
use crate::records;
use crate::restore;

/// Starts to watch utility statements; called while libraries are preloaded.
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
    /// The triggers of the extension's tables, if it creates one.
    triggers: Option<u64>,
    switches_trigger: bool,
}

impl WatchStatements for Watch {
    type Running = Running;

    fn before(statement: Statement<'_>) -> Running {
        let triggers = statement.creates_trigger().then(records::triggers);
        Running {
            depth: copy::begin(statement.is_copy_from()),
            discards_sequences: statement.discards_sequences(),
            triggers: triggers.flatten(),
            switches_trigger: restore::switches_trigger(statement),
        }
    }

    fn after(running: Running) {
        copy::end(running.depth);
        if running.discards_sequences {
            generator::forget_last_id();
        }
        if let Some(before) = running.triggers {
            records::require_triggers(before);
        }
        if running.switches_trigger {
            restore::keep_trigger();
        }
        #[cfg(feature = "testing")]
        crate::crash_points::at(c"snowflake-after-utility");
    }
}

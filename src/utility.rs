//! What the extension does before and after utility statements.
//!
//! - It reports to [`crate::copy`] which statement runs.
//! - DISCARD ALL and DISCARD SEQUENCES forget `snowflake_currval()`.
//! - CREATE TRIGGER on the extension's tables is refused to all roles but superusers
//!   ([`crate::migration::triggers`]). Statements like `GRANT ... ON ALL TABLES IN
//!   SCHEMA` are meant for an application's tables, not for these. (Other privileges
//!   have no effect: `sql/internal/privileges.sql` explains why.)
//! - `ALTER TABLE ... DISABLE TRIGGER ALL` leaves the trigger of
//!   `snowflake_internal.restore` enabled: `pg_restore --data-only
//!   --disable-triggers` has it for each table.
//! - The shadow index of a DEFERRABLE constraint is built as an index of such a
//!   constraint ([`crate::migration::is_counterpart_of_deferrable`]).

use crate::copy;
use crate::generator;
use crate::migration;
use crate::pg::{self, NewIndex, Statement, WatchStatements};
use crate::restore;

/// Starts to watch utility statements; called while libraries are preloaded.
pub fn init() {
    pg::watch_statements::<Watch>();
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

    fn is_deferrable(index: NewIndex<'_>) -> bool {
        migration::is_counterpart_of_deferrable(index)
    }

    fn before(statement: Statement<'_>) -> Running {
        let triggers = statement.creates_trigger().then(migration::triggers);
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
            migration::require_triggers(before);
        }
        if running.switches_trigger {
            restore::keep_trigger();
        }
    }
}

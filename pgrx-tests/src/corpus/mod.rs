//! Tables with the patterns of real schemas: what applications do to their
//! tables, and what a migration of their key must leave working.
//!
//! Each entry has a database of its own. Its tables are in the schema `shop`,
//! and belong to the role [`OWNER`]; the application connects as [`APPLICATION`].
//! Most entries have what depends on a key. Those in `numbers` have what differs
//! from one sequence or column to the next.

mod access;
mod indexes;
mod keys;
mod many;
mod numbers;
mod sequences;
mod storage;
mod triggers;
mod views;

pub use many::{Many, many};

/// The owner of the tables, which is no superuser.
pub const OWNER: &str = "keeper";
/// The role that the application connects as.
pub const APPLICATION: &str = "app";

/// What a migration does with an entry.
#[derive(Debug, Clone, Copy)]
pub enum Outcome {
    /// It goes through, and the application continues to work.
    Migrates,
    /// The plan warns. Once the cure has been run, as before.
    Warned {
        /// A part of a warning or of a note.
        warning: &'static str,
        /// What the owner runs before the migration.
        cure: &'static str,
    },
    /// The plan is refused, because PostgreSQL cannot do it.
    Refused {
        /// The SQLSTATE of the plan.
        sqlstate: &'static str,
        /// A part of its DETAIL.
        obstacle: &'static str,
        /// What PostgreSQL refuses too, and with which SQLSTATE.
        postgres: (&'static str, &'static str),
    },
    /// The plan is refused for another reason, which is named here.
    Avoided {
        /// The SQLSTATE of the plan.
        sqlstate: &'static str,
        /// A part of its DETAIL.
        obstacle: &'static str,
        /// Why.
        reason: &'static str,
    },
}

/// The numbers that a sequence continues with.
#[derive(Debug, Clone, Copy)]
pub struct Next {
    /// The first number after reverting.
    pub first: i64,
    /// The sequence's increment.
    pub step: i64,
    /// How many numbers the sequence gives to a session that inserts two rows.
    pub taken: i64,
}

/// One key with what depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The pattern.
    pub name: &'static str,
    /// The table, as SQL writes it with the search path `shop, public`.
    pub table: &'static str,
    /// The key's column, without quotes.
    pub column: &'static str,
    /// Creates the tables with their rows, as [`OWNER`]. It may `RESET ROLE`.
    pub setup: &'static str,
    /// What the application does. It has to work before, during and after the
    /// migration and after reverting, any number of times. It inserts into the table.
    pub application: &'static str,
    /// The columns that become bigint, as `pg_dump` writes them. A table that
    /// ends in `*` means all tables whose names begin like this.
    pub widened: &'static [(&'static str, &'static str)],
    /// In a maintenance window.
    pub window: Outcome,
    /// Online.
    pub online: Outcome,
    /// Whether a superuser has to migrate it, because the tables have several owners.
    pub by_superuser: bool,
    /// The next numbers of the sequence after reverting. Such an entry's application
    /// uses no number: it inserts only while the column's default is the extension's.
    pub next: Option<Next>,
    /// Whether PostgreSQL can restore its dump.
    pub can_be_restored: bool,
    /// Whether it is run at each push. The others are run in a full run.
    pub is_pushed: bool,
    /// Servers on which PostgreSQL itself refuses it: a condition, and the reason.
    pub left_out: Option<(&'static str, &'static str)>,
}

impl Entry {
    /// Its outcome in one of the two ways.
    pub fn outcome(&self, online: bool) -> Outcome {
        if online { self.online } else { self.window }
    }

    /// The table and the column, as the arguments of a plan.
    pub fn arguments(&self) -> String {
        format!(
            "'{}', '{}'",
            self.table.replace('\'', "''"),
            self.column.replace('\'', "''")
        )
    }
}

/// What most entries have in common.
const ENTRY: Entry = Entry {
    name: "",
    table: "orders",
    column: "id",
    setup: "",
    application: "",
    widened: &[("shop.orders", "id")],
    window: Outcome::Migrates,
    online: Outcome::Migrates,
    by_superuser: false,
    next: None,
    is_pushed: false,
    can_be_restored: true,
    left_out: None,
};

/// All entries.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    [
        views::ENTRIES,
        triggers::ENTRIES,
        indexes::ENTRIES,
        keys::ENTRIES,
        storage::ENTRIES,
        sequences::ENTRIES,
        numbers::ENTRIES,
        access::ENTRIES,
    ]
    .into_iter()
    .flatten()
}

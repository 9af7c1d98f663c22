//! The functions of the extension that conditions call, and that ranges call.

use std::ffi::CStr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use pgrx::pg_sys::{self, ANYELEMENTOID, INT8OID, Oid, TEXTOID, TIMESTAMPTZOID};

use crate::catalog::CORE;
use crate::pg;
use crate::pg::plan_tree::{BaseRelation, Expr};

/// A function in its two forms: by this server's layout, and by one that is named.
#[derive(Clone, Copy)]
pub struct Pair {
    by_server: Oid,
    by_name: Oid,
}

impl Pair {
    fn find(name: &CStr, argument: Oid) -> Option<Self> {
        let overloads = Overloads::find(name);
        Some(Pair {
            by_server: overloads.taking(&[argument])?,
            by_name: overloads.taking(&[argument, TEXTOID])?,
        })
    }

    /// The form for a call with such a layout.
    pub fn form(self, layout: Option<Expr<'_>>) -> Oid {
        match layout {
            None => self.by_server,
            Some(_) => self.by_name,
        }
    }
}

/// The functions of one name.
struct Overloads(Vec<(Oid, Vec<Oid>)>);

impl Overloads {
    fn find(name: &CStr) -> Self {
        let functions = CORE.functions(name).into_iter();
        Overloads(
            functions
                .map(|function| (function, pg::catalog::argument_types(function)))
                .collect(),
        )
    }

    fn taking(&self, types: &[Oid]) -> Option<Oid> {
        self.0.iter().find(|it| it.1 == types).map(|it| it.0)
    }
}

/// The functions, if this database has them.
#[derive(Clone, Copy)]
pub struct Functions {
    timestamp: Pair,
    decode: Pair,
    /// `snowflake_max_id`
    pub max_id: Pair,
    /// `snowflake_max_id_before`
    pub max_id_before: Pair,
    /// `snowflake_internal.saturated`, in the session's time zone.
    pub saturated: Oid,
    /// The same in a named time zone.
    pub saturated_in_zone: Oid,
}

/// What is kept for the session.
struct Cache {
    /// The functions, or that there are none.
    known: Option<Option<Functions>>,
    /// How often the system cache has forgotten a function.
    changes: u64,
}

static CACHE: Mutex<Cache> = Mutex::new(Cache {
    known: None,
    changes: 0,
});

impl Functions {
    /// Those of this session's database. They are looked up once, until a function is
    /// created, changed or dropped.
    pub fn of_database() -> Option<Self> {
        let changes = {
            let cache = CACHE.lock();
            if let Some(known) = cache.known {
                return known;
            }
            cache.changes
        };
        watch_changes();
        let functions = Self::find();
        let mut cache = CACHE.lock();
        // What changed meanwhile may not have been seen.
        if cache.changes == changes {
            cache.known = Some(functions);
        }
        functions
    }

    /// A function counts only if it belongs to the extension: any role can create one of
    /// the same name.
    fn find() -> Option<Self> {
        // Most databases of a server may have no IDs.
        pg::catalog::extension_named(CORE.extension)?;
        let saturated = Overloads::find(c"saturated");
        Some(Functions {
            timestamp: Pair::find(c"snowflake_timestamp", INT8OID)?,
            decode: Pair::find(c"snowflake_decode", INT8OID)?,
            max_id: Pair::find(c"snowflake_max_id", TIMESTAMPTZOID)?,
            max_id_before: Pair::find(c"snowflake_max_id_before", TIMESTAMPTZOID)?,
            saturated: saturated.taking(&[ANYELEMENTOID, INT8OID])?,
            saturated_in_zone: saturated.taking(&[ANYELEMENTOID, INT8OID, TEXTOID])?,
        })
    }

    /// Those that read the time of an ID.
    pub fn readers(&self) -> [Oid; 4] {
        let Functions {
            timestamp, decode, ..
        } = self;
        [
            timestamp.by_server,
            timestamp.by_name,
            decode.by_server,
            decode.by_name,
        ]
    }

    /// If an expression is the time of an ID in a column of this relation.
    ///
    /// For nearly all expressions of queries it is not. Then no function of PostgreSQL is
    /// called.
    pub fn time_of<'a>(&self, expr: Expr<'a>, relation: BaseRelation<'a>) -> Option<TimeOfId<'a>> {
        /// The number of `created_at` in the row of `snowflake_decode`.
        const CREATED_AT: pg_sys::AttrNumber = 1;
        let expr = expr.bare();
        let joined = expr.column_of_function(relation);
        let (call, reader) = match joined.or_else(|| expr.field()) {
            Some((row, CREATED_AT)) => (row.call()?, self.decode),
            Some(_) => return None,
            None => (expr.call()?, self.timestamp),
        };
        let layout = if call.function == reader.by_server {
            None
        } else if call.function == reader.by_name {
            Some(call.arguments.get(1)?)
        } else {
            return None;
        };
        let id = call.arguments.get(0)?;
        id.is_bigint_column_of(relation).then_some(TimeOfId {
            id,
            layout,
            is_joined: joined.is_some(),
        })
    }
}

/// The time of an ID.
#[derive(Clone, Copy)]
pub struct TimeOfId<'a> {
    /// The column.
    pub id: Expr<'a>,
    /// The layout that is named, if any.
    pub layout: Option<Expr<'a>>,
    /// It is a column of `snowflake_decode` in FROM, which an outer join can make NULL.
    pub is_joined: bool,
}

fn watch_changes() {
    // Set last: an error of Postgres in between must not prevent a second try.
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.load(Relaxed) {
        pg::callbacks::on_function_change(forget);
        DONE.store(true, Relaxed);
    }
}

fn forget() {
    let mut cache = CACHE.lock();
    cache.known = None;
    cache.changes += 1;
}

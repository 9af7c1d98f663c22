//! The functions of the extension that conditions call, and that ranges call.

use std::ffi::CStr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use pgrx::pg_sys::{self, Oid};

use crate::catalog;
use crate::pg;
use crate::pg::plan_tree::{BaseRelation, Expr};

/// A function in its two forms: by this server's layout, and by one that is named.
#[derive(Clone, Copy)]
pub struct Pair {
    by_server: Oid,
    by_name: Oid,
}

impl Pair {
    fn find(name: &'static CStr, by_server: &'static CStr, by_name: &'static CStr) -> Option<Self> {
        Some(Pair {
            by_server: catalog::function((name, by_server))?,
            by_name: catalog::function((name, by_name))?,
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

/// The functions, if this database has them.
#[derive(Clone, Copy)]
pub struct Functions {
    timestamp: Pair,
    decode: Pair,
    /// Those that read the other fields of `snowflake_decode`, in its order.
    #[cfg(feature = "pg19")]
    fields: [Pair; 3],
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

    fn find() -> Option<Self> {
        Some(Functions {
            timestamp: Pair::find(
                c"snowflake_timestamp",
                c"snowflake_timestamp_wrapper",
                c"snowflake_timestamp_by_wrapper",
            )?,
            decode: Pair::find(
                c"snowflake_decode",
                c"snowflake_decode_wrapper",
                c"snowflake_decode_by_wrapper",
            )?,
            #[cfg(feature = "pg19")]
            fields: [
                Pair::find(
                    c"snowflake_node_id",
                    c"snowflake_node_id_wrapper",
                    c"snowflake_node_id_by_wrapper",
                )?,
                Pair::find(
                    c"snowflake_backend_id",
                    c"snowflake_backend_id_wrapper",
                    c"snowflake_backend_id_by_wrapper",
                )?,
                Pair::find(
                    c"snowflake_sequence",
                    c"snowflake_sequence_wrapper",
                    c"snowflake_sequence_by_wrapper",
                )?,
            ],
            max_id: Pair::find(
                c"snowflake_max_id",
                c"snowflake_max_id_wrapper",
                c"snowflake_max_id_by_wrapper",
            )?,
            max_id_before: Pair::find(
                c"snowflake_max_id_before",
                c"snowflake_max_id_before_wrapper",
                c"snowflake_max_id_before_by_wrapper",
            )?,
            saturated: catalog::function((c"saturated", c"snowflake_saturated_wrapper"))?,
            saturated_in_zone: catalog::function((
                c"saturated",
                c"snowflake_saturated_in_zone_wrapper",
            ))?,
        })
    }

    /// Whether a function is `snowflake_decode`.
    #[cfg(feature = "pg19")]
    pub fn is_decode(&self, function: Oid) -> bool {
        function == self.decode.by_server || function == self.decode.by_name
    }

    /// The functions that read the fields of `snowflake_decode`, in its order.
    #[cfg(feature = "pg19")]
    pub fn fields(&self, layout: Option<Expr<'_>>) -> [Oid; 4] {
        let [node_id, backend_id, sequence] = self.fields.map(|it| it.form(layout));
        [self.timestamp.form(layout), node_id, backend_id, sequence]
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
        if !id.is_bigint_column_of(relation) {
            return None;
        }
        Some(TimeOfId {
            id: match joined {
                #[cfg(feature = "testing")]
                Some(_) if crate::unprotected::is("range_nulling") => id,
                Some(_) => id.beside(expr, relation)?,
                None => id,
            },
            layout,
            is_joined: joined.is_some(),
            reader: call.function,
            timestamp: self.timestamp.form(layout),
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
    /// The function that reads it here.
    pub reader: Oid,
    /// `snowflake_timestamp`, by the same layout.
    pub timestamp: Oid,
}

impl<'a> TimeOfId<'a> {
    /// The call that reads it.
    pub fn read(&self) -> Expr<'a> {
        let arguments: Vec<_> = [Some(self.id), self.layout]
            .into_iter()
            .flatten()
            .map(Expr::copy)
            .collect();
        Expr::call_of(self.timestamp, pg_sys::TIMESTAMPTZOID, &arguments)
    }
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

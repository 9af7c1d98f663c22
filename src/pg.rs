//! Postgres' C interface behind safe functions and types.
//!
//! The other modules call these, so that few of them open `unsafe`. This one
//! knows none of them. Each of its modules is a subject, which a call names
//! (`pg::transaction::commit()`). Only the types that are used everywhere are
//! exported here again.
//!
//! What makes these wrappers safe:
//!
//! - They run in a server process, in its only thread: the extension starts no
//!   thread, and pgrx refuses calls from another one.
//! - SQL declares a function with the argument and result types of the Rust
//!   function, as pgrx's own types require it too.
//! - What lives as long as a call has the call's lifetime, and what is opened is
//!   closed by its type. If an error of Postgres passes through, closing is left
//!   to the end of the transaction, as in C.
#![allow(unsafe_code)] // calls C and reads what it lays out

pub mod analyze;
pub mod call;
pub mod callbacks;
pub mod catalog;
pub mod checks;
pub mod composite;
pub mod dependents;
#[cfg(feature = "dsm_registry")]
pub mod dsm;
pub mod guc;
pub mod index_ends;
pub mod inheritance;
#[cfg(all(feature = "testing", feature = "pg18"))]
pub mod injection_point;
#[cfg(feature = "pg19")]
pub mod inline;
pub mod lock;
pub mod meaning;
pub mod page;
pub mod parse;
pub mod plan_tree;
pub mod planner;
pub mod privileges;
pub mod process;
pub mod record;
pub mod relation;
pub mod sequence;
pub mod server;
pub mod session;
pub mod statement;
pub mod table;
pub mod text;
pub mod time;
pub mod transaction;
pub mod trigger;
pub mod wait;
pub mod wal;

pub use call::Call;
pub use relation::{Column, Mode, Relation, Row};
pub use text::{Name, Names, Text, TextResult};
pub use trigger::TriggerResult;

/// Declares what an argument's or a result's type is called in SQL.
macro_rules! sql_type {
    (argument $type:ty, $argument:expr) => {
        $crate::pg::sql_type!($type, Ok($argument), Err(ReturnsError::Datum), "argument");
    };
    (result $type:ty, $result:literal) => {
        $crate::pg::sql_type!(
            $type,
            Err(ArgumentError::Datum),
            Ok(ReturnsRef::One(SqlMappingRef::As($result))),
            $result
        );
    };
    ($type:ty, $argument:expr, $result:expr, $ident:literal) => {
        // SAFETY: the type reads or builds values of this SQL type.
        unsafe impl SqlTranslatable for $type {
            const TYPE_IDENT: &'static str = $ident;
            const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
            const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = $argument;
            const RETURN_SQL: Result<ReturnsRef, ReturnsError> = $result;
        }
    };
}
use sql_type;

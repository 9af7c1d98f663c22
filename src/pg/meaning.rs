//! What the names in a statement mean.
//!
//! A text names a table; which one that is, PostgreSQL finds out when it runs the
//! text. Who owns a schema can rename it in between, and put another one in its place,
//! where the name is a view or a table of his own. His code would run with the
//! privileges of the owner of the table that was meant. So:
//!
//! - [`pin_schema`] keeps a schema's name until the end of the transaction. A lock on a
//!   relation keeps the relation's name only, and `ALTER SCHEMA … RENAME` locks nothing
//!   but the schema's row in `pg_namespace`. So that row is locked as a foreign key
//!   locks the row that it references: RENAME and DROP wait for it; GRANT, OWNER TO and
//!   new objects do not.
//! - [`Meaning::checked`] finds what a statement names once it has been analyzed, before
//!   it is planned: planning evaluates functions. That needs no lock, so it also
//!   serves standbys and transactions that are read-only.

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

use parking_lot::Mutex;
use pgrx::{PgList, check_for_interrupts, is_a, pg_guard, pg_sys};

use super::catalog::{Class, each_row};
use super::inheritance::inherits_from;

/// Keeps a schema's name, and the schema, until the end of the transaction. Does
/// nothing where the transaction cannot write, and if there is no such schema.
pub fn pin_schema(schema: pg_sys::Oid) {
    // SAFETY: what is opened is closed; the row is locked while the scan keeps it from
    // being removed. An error leaves all of it to the end of the transaction.
    unsafe {
        if pg_sys::RecoveryInProgress() || pg_sys::XactReadOnly || pg_sys::IsInParallelMode() {
            return;
        }
        let lock = pg_sys::RowShareLock as pg_sys::LOCKMODE;
        let catalog = pg_sys::table_open(pg_sys::NamespaceRelationId, lock);
        while !pin_row(catalog, schema) {
            check_for_interrupts!();
            // Another transaction has changed the row, and may have renamed the schema.
            pg_sys::AcceptInvalidationMessages();
        }
        pg_sys::table_close(catalog, pg_sys::NoLock as pg_sys::LOCKMODE);
    }
}

/// Locks the newest version of a schema's row; false if there is a newer one by now.
///
/// # Safety
/// The catalog of schemas is open.
unsafe fn pin_row(catalog: pg_sys::Relation, schema: pg_sys::Oid) -> bool {
    // SAFETY: the caller's; `row` is valid until the end of the scan.
    unsafe {
        let mut is_pinned = true;
        each_row(
            catalog,
            pg_sys::NamespaceOidIndexId,
            &[(pg_sys::Anum_pg_namespace_oid, schema)],
            |row| {
                let mut locked = MaybeUninit::<pg_sys::HeapTupleData>::zeroed().assume_init();
                locked.t_self = (*row).t_self;
                let mut buffer = 0;
                let mut failure = MaybeUninit::<pg_sys::TM_FailureData>::zeroed().assume_init();
                let result = pg_sys::heap_lock_tuple(
                    catalog,
                    &raw mut locked,
                    pg_sys::GetCurrentCommandId(true),
                    pg_sys::LockTupleMode::LockTupleKeyShare,
                    pg_sys::LockWaitPolicy::LockWaitBlock,
                    false,
                    &raw mut buffer,
                    &raw mut failure,
                );
                pg_sys::ReleaseBuffer(buffer);
                is_pinned = ![pg_sys::TM_Result::TM_Updated, pg_sys::TM_Result::TM_Deleted]
                    .contains(&result);
            },
        );
        is_pinned
    }
}

/// What a statement is meant to name.
#[derive(Clone, Copy)]
pub struct Meaning {
    /// The table, which is locked.
    pub table: pg_sys::Oid,
    /// Its owner, with whose privileges the statement runs.
    pub owner: pg_sys::Oid,
    /// A table of another role that the statement reads.
    pub other: Option<pg_sys::Oid>,
    /// Raises an error: the name of another relation than was meant.
    pub refuse: fn(&CStr) -> !,
}

/// The table that a command alters, by the name that it has now. Raises an error if there
/// is none; `None` for any other statement.
pub fn altered_table(statement: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: a text with a zero byte at its end; the parser's nodes live in the present
    // memory context.
    unsafe {
        let name = target_of_text(statement)?;
        Some(pg_sys::RangeVarGetRelidExtended(
            name,
            pg_sys::NoLock as pg_sys::LOCKMODE,
            0,
            None,
            ptr::null_mut(),
        ))
    }
}

/// # Safety
/// The result lives as long as the present memory context.
unsafe fn target_of_text(statement: &CStr) -> Option<*const pg_sys::RangeVar> {
    // SAFETY: a text with a zero byte at its end, and the parser's nodes.
    unsafe {
        let parsed = pg_sys::pg_parse_query(statement.as_ptr());
        let statements = PgList::<pg_sys::RawStmt>::from_pg(parsed);
        target_of((*statements.get_ptr(0)?).stmt)
    }
}

/// Of the statement that is about to be analyzed.
static EXPECTED: Mutex<Option<Meaning>> = Mutex::new(None);

impl Meaning {
    /// Runs one statement by `run`. Raises an error before the statement has an effect if
    /// it names a table of another role that has nothing to do with the one meant.
    pub fn checked<T>(self, statement: &CStr, run: impl FnOnce() -> T) -> T {
        self.require_target(statement);
        watch_analysis();
        let _guard = Expecting::begin(self);
        run()
    }

    /// A command that alters a table finds it by name when it runs. With the schema pinned
    /// and the table locked, that name does not change any more.
    fn require_target(self, statement: &CStr) {
        // SAFETY: a text with a zero byte at its end; the parser's nodes live in the
        // present memory context.
        unsafe {
            let Some(name) = target_of_text(statement) else {
                return;
            };
            let found = look_up(name);
            if found == pg_sys::InvalidOid {
                // The statement itself says so.
                return;
            }
            if found != self.table {
                pin_schema(pg_sys::get_rel_namespace(found));
            }
            if !self.allows(found) || look_up(name) != found {
                (self.refuse)(CStr::from_ptr((*name).relname));
            }
        }
    }

    /// Whether a statement may name this relation: the tables that are meant and their
    /// children, catalogs, and what belongs to the owner anyway.
    fn allows(self, relation: pg_sys::Oid) -> bool {
        // SAFETY: catalog lookups.
        let schema = unsafe { pg_sys::get_rel_namespace(relation) };
        relation == self.table
            || schema == pg_sys::Oid::from(pg_sys::PG_CATALOG_NAMESPACE)
            || Class::of(relation).is_some_and(|class| class.owner == self.owner)
            || inherits_from(relation, self.table)
            || self
                .other
                .is_some_and(|other| relation == other || inherits_from(relation, other))
    }
}

/// # Safety
/// A name of the parser.
unsafe fn look_up(name: *const pg_sys::RangeVar) -> pg_sys::Oid {
    // SAFETY: the caller's; a name that need not exist.
    unsafe {
        pg_sys::RangeVarGetRelidExtended(
            name,
            pg_sys::NoLock as pg_sys::LOCKMODE,
            pg_sys::RVROption::RVR_MISSING_OK,
            None,
            ptr::null_mut(),
        )
    }
}

/// The table that a command alters by name.
///
/// # Safety
/// A statement of the parser.
unsafe fn target_of(statement: *mut pg_sys::Node) -> Option<*const pg_sys::RangeVar> {
    // SAFETY: the tag shows what the node is.
    unsafe {
        let target = match (*statement).type_ {
            pg_sys::NodeTag::T_AlterTableStmt => {
                let statement = &*statement.cast::<pg_sys::AlterTableStmt>();
                (statement.objtype == pg_sys::ObjectType::OBJECT_TABLE)
                    .then_some(statement.relation)?
            }
            pg_sys::NodeTag::T_RenameStmt => {
                let statement = &*statement.cast::<pg_sys::RenameStmt>();
                [
                    pg_sys::ObjectType::OBJECT_COLUMN,
                    pg_sys::ObjectType::OBJECT_TABCONSTRAINT,
                    pg_sys::ObjectType::OBJECT_TABLE,
                    pg_sys::ObjectType::OBJECT_TRIGGER,
                ]
                .contains(&statement.renameType)
                .then_some(statement.relation)?
            }
            pg_sys::NodeTag::T_CreateTrigStmt => {
                (*statement.cast::<pg_sys::CreateTrigStmt>()).relation
            }
            pg_sys::NodeTag::T_IndexStmt => (*statement.cast::<pg_sys::IndexStmt>()).relation,
            _ => return None,
        };
        (!target.is_null()).then_some(target.cast_const())
    }
}

/// The next statement that is analyzed is the one expected.
struct Expecting;

impl Expecting {
    fn begin(meaning: Meaning) -> Self {
        *EXPECTED.lock() = Some(meaning);
        Expecting
    }
}

impl Drop for Expecting {
    /// Also where an error came before the analysis.
    fn drop(&mut self) {
        *EXPECTED.lock() = None;
    }
}

/// What ran before this hook.
static NEXT: OnceLock<pg_sys::post_parse_analyze_hook_type> = OnceLock::new();

/// Sets the hook, in the sessions that need it.
fn watch_analysis() {
    NEXT.get_or_init(|| {
        // SAFETY: a process has one thread; the function lives as long as the library.
        unsafe {
            let before = pg_sys::post_parse_analyze_hook;
            pg_sys::post_parse_analyze_hook = Some(analyzed);
            before
        }
    });
}

/// What the hook passes on.
#[cfg(not(feature = "pg19"))]
type Jumble = *mut pg_sys::JumbleState;
#[cfg(feature = "pg19")]
type Jumble = *const pg_sys::JumbleState;

/// Not guarded by pgrx, and nothing to drop: an error of the next hook passes it as it
/// passes C.
unsafe extern "C-unwind" fn analyzed(
    state: *mut pg_sys::ParseState,
    query: *mut pg_sys::Query,
    jumble: Jumble,
) {
    // SAFETY: Postgres calls its hook with a query that was analyzed.
    unsafe {
        if let Some(next) = NEXT.get().copied().flatten() {
            next(state, query, jumble);
        }
        check(query);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn check(query: *mut pg_sys::Query) {
    let Some(meaning) = EXPECTED.lock().take() else {
        return;
    };
    let mut search = Search {
        meaning,
        other: pg_sys::InvalidOid,
    };
    // SAFETY: a query, and a context that outlives the walk.
    let is_other = unsafe { visit(query.cast(), (&raw mut search).cast()) };
    if is_other && let Some(class) = Class::of(search.other) {
        (meaning.refuse)(&class.name);
    }
}

struct Search {
    meaning: Meaning,
    /// A relation that the statement is not meant to name.
    other: pg_sys::Oid,
}

/// Walks a query; true ends the walk.
#[pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: the context is that of `check`, and the tags show what the nodes are.
    unsafe {
        if node.is_null() {
            return false;
        }
        if is_a(node, pg_sys::NodeTag::T_RangeTblEntry) {
            let entry = &*node.cast::<pg_sys::RangeTblEntry>();
            let search = &mut *context.cast::<Search>();
            if entry.rtekind == pg_sys::RTEKind::RTE_RELATION && !search.meaning.allows(entry.relid)
            {
                search.other = entry.relid;
                return true;
            }
            // What is in it is visited next.
            return false;
        }
        if is_a(node, pg_sys::NodeTag::T_Query) {
            let flags = pg_sys::QTW_EXAMINE_RTES_BEFORE as i32;
            return pg_sys::query_tree_walker(node.cast(), Some(visit), context, flags);
        }
        pg_sys::expression_tree_walker(node, Some(visit), context)
    }
}

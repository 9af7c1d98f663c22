//! Triggers.

use std::ffi::{CStr, c_char};
use std::ptr;

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};

use super::catalog;
use super::relation::{Column, Columns, Mode, Relation, Row};

/// A trigger that fires.
#[derive(Clone, Copy)]
pub struct Trigger<'a>(&'a pg_sys::TriggerData);

impl<'a> Trigger<'a> {
    /// # Safety
    /// The data is Postgres' own, of a trigger that fires now, for `'a`.
    pub(super) unsafe fn new(data: &'a pg_sys::TriggerData) -> Self {
        Trigger(data)
    }

    /// Its name.
    pub fn name(self) -> &'a CStr {
        // SAFETY: the name ends with a zero byte, and lives as long as the call.
        unsafe { CStr::from_ptr((*self.0.tg_trigger).tgname) }
    }

    /// The name of its table.
    pub fn table_name(self) -> &'a CStr {
        // SAFETY: the relation is open as long as the call, its `pg_class` row
        // with it.
        unsafe { catalog::name(&(*(*self.0.tg_relation).rd_rel).relname) }
    }

    /// Its table.
    pub fn table(self) -> pg_sys::Oid {
        // SAFETY: as above.
        unsafe { (*self.0.tg_relation).rd_id }
    }

    /// The columns of its table.
    pub fn columns(self) -> Columns<'a> {
        // SAFETY: as above.
        unsafe { Columns::new((*self.0.tg_relation).rd_att) }
    }

    /// The row that is about to be written; `None` unless the trigger fires
    /// before a row is inserted or updated.
    pub fn row_to_write(self) -> Option<Row<'a>> {
        let event = self.0.tg_event;
        let is_before_row = event & pg_sys::TRIGGER_EVENT_ROW != 0
            && event & pg_sys::TRIGGER_EVENT_TIMINGMASK == pg_sys::TRIGGER_EVENT_BEFORE;
        let row = match event & pg_sys::TRIGGER_EVENT_OPMASK {
            pg_sys::TRIGGER_EVENT_INSERT if is_before_row => self.0.tg_trigtuple,
            pg_sys::TRIGGER_EVENT_UPDATE if is_before_row => self.0.tg_newtuple,
            _ => return None,
        };
        // SAFETY: a row of the trigger's table, which lives as long as the call.
        Some(unsafe { Row::new(row, self.columns()) })
    }

    /// The row that was inserted; `None` unless the trigger fires after a row was
    /// inserted.
    pub fn inserted_row(self) -> Option<Row<'a>> {
        let event = self.0.tg_event;
        let is_after_insert = event & pg_sys::TRIGGER_EVENT_ROW != 0
            && event & pg_sys::TRIGGER_EVENT_TIMINGMASK == pg_sys::TRIGGER_EVENT_AFTER
            && event & pg_sys::TRIGGER_EVENT_OPMASK == pg_sys::TRIGGER_EVENT_INSERT;
        // SAFETY: a row of the trigger's table, which lives as long as the call.
        is_after_insert.then(|| unsafe { Row::new(self.0.tg_trigtuple, self.columns()) })
    }

    /// Whether it fires for TRUNCATE.
    pub fn is_for_truncate(self) -> bool {
        self.0.tg_event & pg_sys::TRIGGER_EVENT_OPMASK == pg_sys::TRIGGER_EVENT_TRUNCATE
    }

    /// Whether it fires before what it is for.
    pub fn is_before(self) -> bool {
        self.0.tg_event & pg_sys::TRIGGER_EVENT_TIMINGMASK == pg_sys::TRIGGER_EVENT_BEFORE
    }

    /// The columns of the new row that its WHEN condition reads. They follow a
    /// column that is renamed, and differ between partitions.
    pub fn columns_of_condition(self) -> Vec<Column<'a>> {
        let mut columns = Vec::new();
        // SAFETY: the condition, if any, is a node as text, which Postgres has
        // written. The set is that of columns of `NEW`, as numbers from 1 on with an
        // offset that leaves room for system columns.
        unsafe {
            let condition = (*self.0.tg_trigger).tgqual;
            if condition.is_null() {
                return columns;
            }
            let mut set = ptr::null_mut();
            let node = pg_sys::stringToNode(condition);
            pg_sys::pull_varattnos(node.cast(), pg_sys::PRS2_NEW_VARNO, &raw mut set);
            let mut member = -1;
            loop {
                member = pg_sys::bms_next_member(set, member);
                if member < 0 {
                    return columns;
                }
                let number = member + pg_sys::FirstLowInvalidHeapAttributeNumber;
                columns.extend(self.columns().numbered(number));
            }
        }
    }

    /// Its arguments, if there are as many as this.
    pub fn arguments<const N: usize>(self) -> Option<[&'a CStr; N]> {
        // SAFETY: a trigger has as many arguments as it says. They end with a
        // zero byte and live as long as the call.
        unsafe {
            let trigger = &*self.0.tg_trigger;
            (trigger.tgnargs as usize == N)
                .then(|| std::array::from_fn(|index| CStr::from_ptr(*trigger.tgargs.add(index))))
        }
    }

    /// The answer that this row is to be written.
    ///
    /// # Panics
    /// If it is not a row of the trigger's table.
    pub fn write(self, row: Row<'a>) -> TriggerResult {
        assert!(row.columns() == self.columns(), "a row of another table");
        TriggerResult(row.as_ptr())
    }
}

/// What a trigger returns.
pub struct TriggerResult(pg_sys::HeapTuple);

impl TriggerResult {
    /// No row, as triggers of statements return.
    pub fn no_row() -> Self {
        TriggerResult(ptr::null_mut())
    }
}

// SAFETY: the datum is a row, or null, as a trigger's answer has to be.
unsafe impl BoxRet for TriggerResult {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        // SAFETY: a row that lives as long as the call. Null is no SQL NULL.
        unsafe { fcinfo.return_raw_datum(pg_sys::Datum::from(self.0)) }
    }
}

super::sql_type!(result TriggerResult, "trigger");

/// Gives a trigger of a relation a state of `pg_trigger.tgenabled`; `None` if
/// there is no such relation. Raises an error if it has no such trigger.
pub fn set_state(relation: pg_sys::Oid, name: &CStr, state: c_char) -> Option<()> {
    let opened = Relation::open(relation, Mode::WriteAlone)?;
    // SAFETY: an open relation, locked in this mode.
    unsafe { enable_or_disable(opened.as_ptr(), name, state, opened.mode.lock()) };
    Some(())
}

/// On a partitioned table also that trigger of its partitions.
///
/// # Safety
/// The relation is open, and locked in this mode.
#[cfg(feature = "pg15")]
unsafe fn enable_or_disable(
    relation: pg_sys::Relation,
    name: &CStr,
    state: c_char,
    mode: pg_sys::LOCKMODE,
) {
    // SAFETY: the caller's.
    unsafe { pg_sys::EnableDisableTrigger(relation, name.as_ptr(), state, false, mode) };
}

/// On a partitioned table also that trigger of its partitions.
///
/// # Safety
/// The relation is open, and locked in this mode.
#[cfg(not(feature = "pg15"))]
unsafe fn enable_or_disable(
    relation: pg_sys::Relation,
    name: &CStr,
    state: c_char,
    mode: pg_sys::LOCKMODE,
) {
    // SAFETY: the caller's.
    unsafe {
        pg_sys::EnableDisableTrigger(
            relation,
            name.as_ptr(),
            pg_sys::InvalidOid,
            state,
            false,
            true,
            mode,
        );
    }
}

//! The trigger that keeps a `bigint` column beside a narrower one in step with
//! it, while a key is widened under load (`sql/migration/online/`).
//!
//! It is the extension's own, and in Rust, because it runs for each row that
//! is written as long as the migration takes. Its arguments name the two
//! columns, so that it survives a dump; the trigger is also the record of which
//! column is whose shadow.
#![allow(unsafe_code)] // reads and changes the row as Postgres lays it out

use std::ffi::{CStr, c_char};

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::prelude::*;
use pgrx::trigger_support::called_as_trigger;

use crate::encoding::readable;
use crate::error::Error;

/// A row as a trigger returns it.
struct Row(*mut pg_sys::HeapTupleData);

/// When the trigger may fire: at what writes rows.
const EVENTS: [u32; 2] = [pg_sys::TRIGGER_EVENT_INSERT, pg_sys::TRIGGER_EVENT_UPDATE];

/// Gives the row that is about to be written the shadow of its narrow column.
#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.shadow() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.shadow() IS
    'The trigger that keeps a shadow column equal to the narrow column it will replace';
"#)]
fn snowflake_shadow(fcinfo: pg_sys::FunctionCallInfo) -> Row {
    // SAFETY: Postgres calls with a valid call frame; its context is what
    // `called_as_trigger` says. The trigger's data, its relation and its tuples
    // live as long as the call.
    unsafe {
        if !called_as_trigger(fcinfo) {
            Error::NotATrigger.report();
        }
        let data = &*(*fcinfo).context.cast::<pg_sys::TriggerData>();
        let trigger = &*data.tg_trigger;
        let event = data.tg_event & pg_sys::TRIGGER_EVENT_OPMASK;
        let is_before_row = data.tg_event & pg_sys::TRIGGER_EVENT_ROW != 0
            && data.tg_event & pg_sys::TRIGGER_EVENT_TIMINGMASK == pg_sys::TRIGGER_EVENT_BEFORE;
        if !is_before_row || !EVENTS.contains(&event) {
            Error::WrongTrigger(name(trigger.tgname)).report();
        }
        let row = if event == pg_sys::TRIGGER_EVENT_UPDATE {
            data.tg_newtuple
        } else {
            data.tg_trigtuple
        };
        if trigger.tgnargs != 2 {
            Error::ShadowArguments(name(trigger.tgname)).report();
        }
        let relation = &*data.tg_relation;
        let columns = relation.rd_att;
        let source = column(data, *trigger.tgargs);
        let shadow = column(data, *trigger.tgargs.add(1));

        let mut is_null = false;
        let value = pg_sys::SPI_getbinval(row, columns, source, &mut is_null);
        let wide = match pg_sys::SPI_gettypeid(columns, source) {
            pg_sys::INT2OID => i64::from(value.value() as i16),
            pg_sys::INT4OID => i64::from(value.value() as i32),
            _ => Error::ShadowType(name(*trigger.tgargs)).report(),
        };
        if pg_sys::SPI_gettypeid(columns, shadow) != pg_sys::INT8OID {
            Error::ShadowType(name(*trigger.tgargs.add(1))).report();
        }
        let mut was_null = false;
        let before = pg_sys::SPI_getbinval(row, columns, shadow, &mut was_null);
        if is_null == was_null && (is_null || before.value() as i64 == wide) {
            return Row(row);
        }
        // As pointers: what they point to is const from PostgreSQL 18 on.
        let mut shadow = shadow;
        let mut wide = pg_sys::Datum::from(wide);
        Row(pg_sys::heap_modify_tuple_by_cols(
            row,
            columns,
            1,
            &raw mut shadow,
            &raw mut wide,
            &raw mut is_null,
        ))
    }
}

/// The number of the table's column that a trigger's argument names.
///
/// # Safety
/// `data` is a trigger's, and `argument` one of its arguments.
unsafe fn column(data: &pg_sys::TriggerData, argument: *mut c_char) -> i32 {
    // SAFETY: the relation is open, its name and columns with it.
    unsafe {
        let number = pg_sys::SPI_fnumber((*data.tg_relation).rd_att, argument);
        if number <= 0 {
            let table = (*(*data.tg_relation).rd_rel).relname.data.as_ptr();
            Error::ShadowMissing {
                table: name(table),
                column: name(argument),
            }
            .report();
        }
        number
    }
}

/// A name for a message; in the database's encoding.
///
/// # Safety
/// `text` ends with a zero byte.
unsafe fn name(text: *const c_char) -> String {
    // SAFETY: the caller's.
    readable(unsafe { CStr::from_ptr(text) }.to_bytes()).into_owned()
}

// SAFETY: the datum is a row, as a trigger's answer has to be.
unsafe impl BoxRet for Row {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        // SAFETY: a row that the executor passed in, or a new one in its memory.
        unsafe { fcinfo.return_raw_datum(pg_sys::Datum::from(self.0)) }
    }
}

// SAFETY: the function that returns it writes its SQL itself.
unsafe impl SqlTranslatable for Row {
    const TYPE_IDENT: &'static str = "trigger";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Err(ArgumentError::Datum);
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::As("trigger")));
}

//! The trigger that copies a narrow column to its shadow, a `bigint` column,
//! while a key is widened under load (`sql/snowflake_migrate/online/`).
//!
//! It is written in Rust because it runs for each row that is written during the
//! migration. Its arguments name the two columns, so it survives a dump. The
//! trigger is also the record of which column is the shadow of which.

use std::ffi::CStr;

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::encoding::shown;
use crate::error::Error;
use crate::pg::trigger::Trigger;
use crate::pg::{Call, Column, TriggerResult};

/// Sets the shadow column of the row that is about to be written.
#[pg_extern(sql = false)]
fn snowflake_shadow(call: Call<'_>) -> TriggerResult {
    let Some(trigger) = call.trigger() else {
        Error::NotATrigger("snowflake_migrate_internal.shadow").report();
    };
    let Some(row) = trigger.row_to_write() else {
        Error::WrongTrigger(text(trigger.name())).report();
    };
    let Some([source_name, shadow_name]) = trigger.arguments() else {
        Error::ShadowArguments(text(trigger.name())).report();
    };
    let source = column(trigger, source_name);
    let shadow = column(trigger, shadow_name);

    let value = row.value(source);
    let wide = match source.type_oid() {
        pg_sys::INT2OID => value.map(|value| i64::from(value.value() as i16)),
        pg_sys::INT4OID => value.map(|value| i64::from(value.value() as i32)),
        _ => Error::ShadowType(text(source_name)).report(),
    };
    if shadow.type_oid() != pg_sys::INT8OID {
        Error::ShadowType(text(shadow_name)).report();
    }
    let before = row.value(shadow).map(|value| value.value() as i64);
    if before == wide {
        trigger.write(row)
    } else {
        trigger.write(row.with_bigint(shadow, wide))
    }
}

/// The table's column that a trigger's argument names.
fn column<'a>(trigger: Trigger<'a>, name: &CStr) -> Column<'a> {
    let Some(column) = trigger.columns().find(name) else {
        Error::ShadowMissing {
            table: text(trigger.table_name()),
            column: text(name),
        }
        .report();
    };
    column
}

/// A name for a message. An argument of a trigger can be any text.
fn text(name: &CStr) -> String {
    shown(name.to_bytes())
}

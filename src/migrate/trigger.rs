//! The state of a foreign key's triggers.
//!
//! `ALTER TABLE … DISABLE TRIGGER` takes the name of a trigger, which for those of
//! a foreign key has the number of the new trigger in it, and the name of a table,
//! which may belong to another one by then.

use std::ffi::c_char;

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::encoding::shown;
use crate::error::{Error, or_report};
use crate::owner::{class_of, name_of};
use crate::pg::{self, Name, Text};

#[pg_extern(sql = false)]
fn snowflake_migrate_set_trigger_state(
    relation: pg_sys::Oid,
    trigger_name: Name<'_>,
    state: Text<'_>,
) {
    or_report(set(relation, trigger_name, state));
}

fn set(relation: pg_sys::Oid, trigger_name: Name<'_>, state: Text<'_>) -> Result<(), Error> {
    let class = class_of(relation)?;
    // PostgreSQL asks for a superuser for system triggers only.
    if !pg::session::is_superuser() {
        return Err(Error::NotOwner(name_of(&class)));
    }
    let state = match state.bytes() {
        &[state @ (b'O' | b'D' | b'R' | b'A')] => state as c_char,
        other => return Err(Error::InvalidTriggerState(shown(other))),
    };
    pg::trigger::set_state(relation, trigger_name.as_c_str(), state)
        .ok_or(Error::NoRelation(relation))
}

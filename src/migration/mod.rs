//! What a migration needs besides SQL: the tables that keep its records, and the
//! privileges of the owner of the table that is migrated.
//!
//! No routine of the extension is SECURITY DEFINER. These functions check the
//! caller's privileges on a relation by its OID, not by a name. Then they do one
//! thing: write a row of the extension's own tables ([`records`]), or run a
//! statement with the privileges of a table's owner ([`owner`]).
//!
//! The caller's privileges on a relation are checked before it is locked, and again
//! afterwards.

mod code;
mod expression;
mod guard;
mod lock;
mod owner;
mod records;
mod sequence;
mod sleep;
mod trigger;

use pgrx::pg_sys;

pub use guard::{require_triggers, triggers};
pub use records::{Restored, restore_origin};

use crate::encoding::readable;
use crate::error::Error;
use crate::pg::catalog::Class;
use crate::pg::{self, Mode, Relation};

/// What the catalog has of a relation now, without a lock on it.
///
/// # Errors
/// [`Error::NoRelation`].
fn class_of(relation: pg_sys::Oid) -> Result<Class, Error> {
    Class::of(relation).ok_or(Error::NoRelation(relation))
}

/// A relation's name for a message.
fn name_of(class: &Class) -> String {
    readable(class.name.to_bytes()).into_owned()
}

/// What the catalog has of a relation, for its owner only.
///
/// # Errors
/// [`Error::NotOwner`] unless the current user has the owner's privileges.
fn require_owner(class: Class) -> Result<Class, Error> {
    if pg::privileges::has_privileges_of(pg::session::current_user(), class.owner) {
        Ok(class)
    } else {
        Err(Error::NotOwner(name_of(&class)))
    }
}

/// Locks a relation of the current user's against being dropped, until the end
/// of the transaction, and leaves it closed: a statement that alters a table
/// fails if its session has the table open.
///
/// # Errors
/// [`Error::NoRelation`] and [`Error::NotOwner`].
fn hold_owned(relation: pg_sys::Oid) -> Result<Class, Error> {
    require_owner(class_of(relation)?)?;
    let opened = Relation::open(relation, Mode::Hold).ok_or(Error::NoRelation(relation))?;
    require_owner(opened.class())
}

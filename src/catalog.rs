//! Where the extensions' own objects are in a database's catalog.
//!
//! Two extensions are made from this library: `snowflake`, and the tool
//! `snowflake_migrate`. What people do not use directly is in a schema of each.
//!
//! A trusted extension has an owner who is no superuser and can add members to it, and
//! any role can take a name. So neither a name nor membership shows that an object is
//! the extension's own. A function of language C does, whose code is a symbol of this
//! library: only superusers create such functions. Relations are found from one of them:
//! they are in its schema, and a superuser owns them. Everything is looked up anew in each session:
//! `pg_upgrade` gives functions other OIDs.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg;
use crate::pg::catalog::{Class, Function};

/// The file of this library, without directory and suffix.
const LIBRARY: &str = env!("CARGO_PKG_NAME");

/// A function in C: its name, and the symbol of its code.
pub type Symbol = (&'static CStr, &'static CStr);

/// One of the extensions, as the function that shows its schema and its owner.
#[derive(Debug)]
pub struct Home(Symbol);

/// The extension that makes IDs.
pub const CORE: Home = Home((c"guard", c"snowflake_guard_wrapper"));

/// The tool that migrates tables.
pub const MIGRATE: Home = Home((c"shadow", c"snowflake_shadow_wrapper"));

impl Home {
    /// The extension's table of this name. A superuser owns it: statements are made of
    /// its rows, and its owner could write them.
    pub fn table(&self, name: &CStr) -> Option<pg_sys::Oid> {
        self.find(name, |owner, _| pg::privileges::is_superuser(owner))
    }

    /// The extension's sequence of this name. Its owner may be what the one of the functions is:
    /// IDs must not end when a superuser who created the extension ceases to be one.
    /// A value that its owner sets on it can do no more than one that `setval` sets.
    pub fn sequence(&self, name: &CStr) -> Option<pg_sys::Oid> {
        self.find(name, |owner, of_functions| {
            owner == of_functions || pg::privileges::is_superuser(owner)
        })
    }

    fn find(
        &self,
        name: &CStr,
        is_owned: fn(pg_sys::Oid, pg_sys::Oid) -> bool,
    ) -> Option<pg_sys::Oid> {
        let own = function(self.0).and_then(Function::of)?;
        pg::catalog::relation_in(own.schema, name).filter(|relation| {
            Class::of(*relation).is_some_and(|class| is_owned(class.owner, own.owner))
        })
    }
}

/// The function of this library, if this database has it.
pub fn function((name, symbol): Symbol) -> Option<pg_sys::Oid> {
    pg::catalog::functions_in_c(name, LIBRARY.as_bytes(), symbol.to_bytes())
        .first()
        .copied()
}

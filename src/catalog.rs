//! Where the extensions' own objects are in a database's catalog.
//!
//! Two extensions are made from this library: `snowflake`, and the tool
//! `snowflake_migrate`. What people do not use directly is in a schema of each, under a
//! short name.
//!
//! The schema is found by its name, which another role may have taken if the
//! extension's is missing. So an object counts only if it belongs to the same
//! extension as the function that looks for it.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg;

/// One of the extensions.
#[derive(Debug, PartialEq, Eq)]
pub struct Home {
    /// Its name.
    pub extension: &'static CStr,
    /// The schema of what people do not use directly.
    pub schema: &'static CStr,
}

/// The extension that makes IDs.
pub const CORE: Home = Home {
    extension: c"snowflake",
    schema: c"snowflake_internal",
};

/// The tool that migrates tables.
pub const MIGRATE: Home = Home {
    extension: c"snowflake_migrate",
    schema: c"snowflake_migrate_internal",
};

impl Home {
    /// The relation of this name in the schema, if it is the extension's.
    pub fn relation(&self, name: &CStr) -> Option<pg_sys::Oid> {
        let extension = pg::catalog::extension_named(self.extension)?;
        pg::catalog::relation_in(pg::catalog::schema_named(self.schema), name).filter(|relation| {
            pg::catalog::extension_of(pg_sys::RelationRelationId, *relation) == Some(extension)
        })
    }

    /// The functions of this name that are the extension's, in whichever schema.
    pub fn functions(&self, name: &CStr) -> Vec<pg_sys::Oid> {
        let Some(extension) = pg::catalog::extension_named(self.extension) else {
            return Vec::new();
        };
        let mut functions = pg::catalog::functions_named(name);
        functions.retain(|function| {
            pg::catalog::extension_of(pg_sys::ProcedureRelationId, *function) == Some(extension)
        });
        functions
    }

    /// Whether a relation belongs to the extension.
    pub fn owns(&self, relation: pg_sys::Oid) -> bool {
        let extension = pg::catalog::extension_of(pg_sys::RelationRelationId, relation);
        extension.is_some() && extension == pg::catalog::extension_named(self.extension)
    }
}

/// The extension's relation of this name, found by one of its functions.
pub fn relation(function: pg_sys::Oid, name: &CStr) -> Option<pg_sys::Oid> {
    find(
        function,
        pg_sys::RelationRelationId,
        name,
        pg::catalog::relation_in,
    )
}

/// The extension's function of this name without arguments, found by one of its
/// functions.
pub fn function_without_arguments(function: pg_sys::Oid, name: &CStr) -> Option<pg_sys::Oid> {
    find(
        function,
        pg_sys::ProcedureRelationId,
        name,
        pg::catalog::function_in,
    )
}

/// Looks in the schema of the function's extension.
fn find(
    function: pg_sys::Oid,
    class: pg_sys::Oid,
    name: &CStr,
    look_up: fn(pg_sys::Oid, &CStr) -> Option<pg_sys::Oid>,
) -> Option<pg_sys::Oid> {
    let extension = pg::catalog::extension_of(pg_sys::ProcedureRelationId, function)?;
    let is_tool = pg::catalog::extension_named(MIGRATE.extension) == Some(extension);
    let home = if is_tool { MIGRATE } else { CORE };
    let is_ours =
        |object: &pg_sys::Oid| pg::catalog::extension_of(class, *object) == Some(extension);
    look_up(pg::catalog::schema_named(home.schema), name).filter(is_ours)
}

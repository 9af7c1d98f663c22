//! Where the extension's own objects are in a database's catalog.
//!
//! What people do not use directly is in the schema [`SCHEMA`], under a short
//! name.
//!
//! The schema is found by its name, which another role may have taken if the
//! extension's is missing. So an object counts only if it belongs to the same
//! extension as the function that looks for it.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg;

/// The schema of what people do not use directly.
pub const SCHEMA: &CStr = c"snowflake_internal";

/// The extension's relation of this name, found by one of its functions.
pub fn relation(function: pg_sys::Oid, name: &CStr) -> Option<pg_sys::Oid> {
    find(
        function,
        pg_sys::RelationRelationId,
        name,
        pg::catalog::relation_in,
    )
}

/// The relation of this name in the schema [`SCHEMA`], if it is the extension's.
pub fn internal_relation(name: &CStr) -> Option<pg_sys::Oid> {
    let extension = pg::catalog::extension_named(c"snowflake")?;
    pg::catalog::relation_in(pg::catalog::schema_named(SCHEMA), name).filter(|relation| {
        pg::catalog::extension_of(pg_sys::RelationRelationId, *relation) == Some(extension)
    })
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

/// Looks in [`SCHEMA`].
fn find(
    function: pg_sys::Oid,
    class: pg_sys::Oid,
    name: &CStr,
    look_up: fn(pg_sys::Oid, &CStr) -> Option<pg_sys::Oid>,
) -> Option<pg_sys::Oid> {
    let extension = pg::catalog::extension_of(pg_sys::ProcedureRelationId, function)?;
    let is_ours =
        |object: &pg_sys::Oid| pg::catalog::extension_of(class, *object) == Some(extension);
    look_up(pg::catalog::schema_named(SCHEMA), name).filter(is_ours)
}

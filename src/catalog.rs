//! Where the extension's own objects are in a database's catalog.
//!
//! What is not for people is in the schema [`SCHEMA`], under a short name. In a
//! database whose extension is of version 0.1 it is in the extension's schema,
//! with the prefix `snowflake_`: the library of a newer version may be loaded
//! before the extension is updated.
//!
//! The schema is found by its name, which somebody else may have taken where the
//! extension's is missing. So an object counts only if it belongs to the same
//! extension as the function that looks for it.
#![allow(unsafe_code)] // catalog lookups

use std::ffi::{CStr, CString, c_int};

use pgrx::pg_sys;

/// The schema of what is not for people.
const SCHEMA: &CStr = c"snowflake_internal";

/// The extension's relation of this name, found by one of its functions.
pub fn relation(function: pg_sys::Oid, name: &CStr) -> Option<pg_sys::Oid> {
    find(
        function,
        pg_sys::RelationRelationId,
        name,
        |name, schema| {
            // SAFETY: a catalog lookup by a valid name.
            unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) }
        },
    )
}

/// The extension's function of this name without arguments, found by one of its
/// functions.
pub fn function_without_arguments(function: pg_sys::Oid, name: &CStr) -> Option<pg_sys::Oid> {
    find(
        function,
        pg_sys::ProcedureRelationId,
        name,
        |name, schema| {
            // SAFETY: a catalog lookup by a valid name and an empty list of types.
            unsafe {
                pg_sys::GetSysCacheOid(
                    pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as c_int,
                    pg_sys::Anum_pg_proc_oid as pg_sys::AttrNumber,
                    pg_sys::Datum::from(name.as_ptr()),
                    pg_sys::Datum::from(pg_sys::buildoidvector(std::ptr::null(), 0)),
                    pg_sys::Datum::from(schema),
                    pg_sys::Datum::from(0),
                )
            }
        },
    )
}

/// Looks in [`SCHEMA`], then where version 0.1 has the object.
fn find(
    function: pg_sys::Oid,
    class: pg_sys::Oid,
    name: &CStr,
    look_up: impl Fn(&CStr, pg_sys::Oid) -> pg_sys::Oid,
) -> Option<pg_sys::Oid> {
    let extension = extension_of(pg_sys::ProcedureRelationId, function)?;
    let is_ours = |object: &pg_sys::Oid| {
        *object != pg_sys::InvalidOid && extension_of(class, *object) == Some(extension)
    };
    // SAFETY: catalog lookups; a schema that does not exist is `InvalidOid`.
    let (internal, public) = unsafe {
        (
            pg_sys::get_namespace_oid(SCHEMA.as_ptr(), true),
            pg_sys::get_func_namespace(function),
        )
    };
    let former = CString::new([b"snowflake_", name.to_bytes()].concat()).ok()?;
    Some(look_up(name, internal))
        .filter(is_ours)
        .or_else(|| Some(look_up(&former, public)).filter(is_ours))
}

/// The extension that an object belongs to.
fn extension_of(class: pg_sys::Oid, object: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: reads the catalog.
    let extension = unsafe { pg_sys::getExtensionOfObject(class, object) };
    (extension != pg_sys::InvalidOid).then_some(extension)
}

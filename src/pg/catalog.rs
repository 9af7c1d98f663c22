//! The catalog: what there is, and who owns it.
//!
//! What is safe about each call: the function is Postgres' own and guarded by pgrx; its
//! arguments are of the types that it takes, names end with a zero byte, and what they
//! name need not exist. The result is a value that is copied, or an error is raised.
#![allow(clippy::undocumented_unsafe_blocks)] // the contract above

use std::ffi::{CStr, CString, c_int};

use pgrx::pg_sys;

/// The schema of this name; `InvalidOid` if there is none.
pub fn schema_named(name: &CStr) -> pg_sys::Oid {
    unsafe { pg_sys::get_namespace_oid(name.as_ptr(), true) }
}

/// The extension that an object of a catalog (`class`) belongs to.
pub fn extension_of(class: pg_sys::Oid, object: pg_sys::Oid) -> Option<pg_sys::Oid> {
    found(unsafe { pg_sys::getExtensionOfObject(class, object) })
}

/// The extension of this name.
pub fn extension_named(name: &CStr) -> Option<pg_sys::Oid> {
    found(unsafe { pg_sys::get_extension_oid(name.as_ptr(), true) })
}

/// The type that a function returns.
pub fn result_type_of(function: pg_sys::Oid) -> pg_sys::Oid {
    unsafe { pg_sys::get_func_rettype(function) }
}

/// The relation of this name in a schema.
pub fn relation_in(schema: pg_sys::Oid, name: &CStr) -> Option<pg_sys::Oid> {
    found(unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) })
}

/// A relation's name with its schema's, as SQL writes them now.
pub fn qualified_name(relation: pg_sys::Oid) -> Option<CString> {
    unsafe {
        let name = pg_sys::get_rel_name(relation);
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relation));
        if name.is_null() || schema.is_null() {
            return None;
        }
        Some(CStr::from_ptr(pg_sys::quote_qualified_identifier(schema, name)).to_owned())
    }
}

/// The function of this name without arguments in a schema.
pub fn function_in(schema: pg_sys::Oid, name: &CStr) -> Option<pg_sys::Oid> {
    found(unsafe {
        pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as c_int,
            pg_sys::Anum_pg_proc_oid as pg_sys::AttrNumber,
            pg_sys::Datum::from(name.as_ptr()),
            pg_sys::Datum::from(pg_sys::buildoidvector(std::ptr::null(), 0)),
            pg_sys::Datum::from(schema),
            pg_sys::Datum::from(0),
        )
    })
}

/// The functions of this name, in all schemas.
pub fn functions_named(name: &CStr) -> Vec<pg_sys::Oid> {
    // SAFETY: a list of this cache has as many members as it says, which are rows of
    // functions. It is released once.
    unsafe {
        let none = pg_sys::Datum::from(0);
        let list = pg_sys::SearchSysCacheList(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as c_int,
            1,
            pg_sys::Datum::from(name.as_ptr()),
            none,
            none,
        );
        let members = (*list).members.as_slice((*list).n_members as usize);
        let functions = members
            .iter()
            .map(|member| {
                let row = pg_sys::GETSTRUCT(&raw mut (**member).tuple);
                (*row.cast::<pg_sys::FormData_pg_proc>()).oid
            })
            .collect();
        pg_sys::ReleaseCatCacheList(list);
        functions
    }
}

/// The types of a function's arguments, those that it is called with.
pub fn argument_types(function: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut types = std::ptr::null_mut();
    let mut count: c_int = 0;
    // SAFETY: valid out-pointers; the array is allocated, and has as many elements as
    // said.
    unsafe {
        pg_sys::get_func_signature(function, &raw mut types, &raw mut count);
        let argument_types = std::slice::from_raw_parts(types, count as usize).to_vec();
        pg_sys::pfree(types.cast());
        argument_types
    }
}

fn found(object: pg_sys::Oid) -> Option<pg_sys::Oid> {
    (object != pg_sys::InvalidOid).then_some(object)
}

/// The number of a relation's column of this name.
pub fn column_number(relation: pg_sys::Oid, name: &CStr) -> Option<pg_sys::AttrNumber> {
    let number = unsafe { pg_sys::get_attnum(relation, name.as_ptr()) };
    (number > 0).then_some(number)
}

/// The name of a role; raises an error if there is none.
pub fn role_name(role: pg_sys::Oid) -> CString {
    unsafe { CStr::from_ptr(pg_sys::GetUserNameFromId(role, false)).to_owned() }
}

/// What `pg_class` has of a relation.
pub struct Class {
    /// Its owner.
    pub owner: pg_sys::Oid,
    /// Its schema.
    pub schema: pg_sys::Oid,
    /// Its kind (`RELKIND_...`).
    pub kind: u8,
    /// Its name, in the database's encoding.
    pub name: CString,
}

impl Class {
    /// What it has now, without a lock on the relation; `None` if there is none.
    pub fn of(relation: pg_sys::Oid) -> Option<Self> {
        // SAFETY: a row of this cache is that of a relation. It is copied from
        // before it is released.
        unsafe {
            let row = pg_sys::SearchSysCache1(
                pg_sys::SysCacheIdentifier::RELOID as c_int,
                pg_sys::Datum::from(relation),
            );
            if row.is_null() {
                return None;
            }
            let class = Class::from_row(&*pg_sys::GETSTRUCT(row).cast());
            pg_sys::ReleaseSysCache(row);
            Some(class)
        }
    }

    pub(super) fn from_row(class: &pg_sys::FormData_pg_class) -> Self {
        Class {
            owner: class.relowner,
            schema: class.relnamespace,
            kind: class.relkind as u8,
            name: name(&class.relname).to_owned(),
        }
    }
}

/// The text of a `name`.
pub(super) fn name(name: &pg_sys::NameData) -> &CStr {
    unsafe { CStr::from_ptr(name.data.as_ptr()) }
}

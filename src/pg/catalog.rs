//! The catalog: what there is, and who owns it.
//!
//! What is safe about each call: the function is Postgres' own and guarded by pgrx; its
//! arguments are of the types that it takes, names end with a zero byte, and what they
//! name need not exist. The result is a value that is copied, or an error is raised.
#![allow(clippy::undocumented_unsafe_blocks)] // the contract above

use std::ffi::{CStr, CString, c_int};
use std::mem::MaybeUninit;
use std::ptr;

use pgrx::pg_sys;

use super::text::Text;

/// The language C in `pg_language`. Not in pgrx's bindings, but fixed.
const C_LANGUAGE: pg_sys::Oid = pg_sys::Oid::from_u32(13);

/// The schema of this name; `InvalidOid` if there is none.
pub fn schema_named(name: &CStr) -> pg_sys::Oid {
    unsafe { pg_sys::get_namespace_oid(name.as_ptr(), true) }
}

/// The extension that an object of a catalog (`class`) belongs to.
pub fn extension_of(class: pg_sys::Oid, object: pg_sys::Oid) -> Option<pg_sys::Oid> {
    found(unsafe { pg_sys::getExtensionOfObject(class, object) })
}

/// Which transactions have written the rows of this database and of a relation in the catalog; 0
/// where there is no row.
pub fn incarnation(relation: pg_sys::Oid) -> u64 {
    let writer = |cache: pg_sys::SysCacheIdentifier::Type, key: pg_sys::Oid| {
        // SAFETY: a row of the catalog, which is released after its header was read.
        unsafe {
            let row = pg_sys::SearchSysCache1(cache as _, key.into());
            if row.is_null() {
                return 0;
            }
            let xmin = (*(*row).t_data).t_choice.t_heap.t_xmin;
            pg_sys::ReleaseSysCache(row);
            u64::from(u32::from(xmin))
        }
    };
    let database = writer(
        pg_sys::SysCacheIdentifier::DATABASEOID,
        super::session::database(),
    );
    let relation = writer(pg_sys::SysCacheIdentifier::RELOID, relation);
    database << 32 | relation
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

/// The functions of this name, in all schemas, whose code is this symbol of this library.
/// The library is the name of a file without directory and suffix.
pub fn functions_in_c(name: &CStr, library: &[u8], symbol: &[u8]) -> Vec<pg_sys::Oid> {
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
            .filter_map(|member| {
                let row = &raw mut (**member).tuple;
                let function = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_proc>();
                let is_sought = function.prolang == C_LANGUAGE
                    && text_of(row, pg_sys::Anum_pg_proc_prosrc, |it| it == symbol)
                    && text_of(row, pg_sys::Anum_pg_proc_probin, |it| is_file(it, library));
                is_sought.then_some(function.oid)
            })
            .collect();
        pg_sys::ReleaseCatCacheList(list);
        functions
    }
}

/// Whether a text of a function's row is as asked; false for NULL.
///
/// # Safety
/// The row of a function, and the number of a column of type `text`.
unsafe fn text_of(row: pg_sys::HeapTuple, column: u32, is: impl FnOnce(&[u8]) -> bool) -> bool {
    // SAFETY: the caller's.
    unsafe {
        let mut is_null = false;
        let value = pg_sys::SysCacheGetAttr(
            pg_sys::SysCacheIdentifier::PROCOID as c_int,
            row,
            column as pg_sys::AttrNumber,
            &raw mut is_null,
        );
        !is_null && is(Text::from_datum(value).bytes())
    }
}

/// Whether a path is that of this file, with or without a suffix.
fn is_file(path: &[u8], file: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.strip_prefix(file)
        .is_some_and(|suffix| suffix.is_empty() || suffix.starts_with(b"."))
}

/// What `pg_proc` has of a function.
pub struct Function {
    /// Its owner.
    pub owner: pg_sys::Oid,
    /// Its schema.
    pub schema: pg_sys::Oid,
}

impl Function {
    /// What it has now; `None` if there is none.
    pub fn of(function: pg_sys::Oid) -> Option<Self> {
        // SAFETY: a row of this cache is that of a function. It is copied from before it
        // is released.
        unsafe {
            let row = pg_sys::SearchSysCache1(
                pg_sys::SysCacheIdentifier::PROCOID as c_int,
                pg_sys::Datum::from(function),
            );
            if row.is_null() {
                return None;
            }
            let found = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_proc>();
            let function = Function {
                owner: found.proowner,
                schema: found.pronamespace,
            };
            pg_sys::ReleaseSysCache(row);
            Some(function)
        }
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

/// Calls `f` with each row of a catalog that has these OIDs in the first columns of an
/// index.
///
/// # Safety
/// The catalog is open, and the columns are the first ones of the index.
pub(super) unsafe fn each_row<const N: usize>(
    catalog: pg_sys::Relation,
    index: u32,
    columns: &[(u32, pg_sys::Oid); N],
    mut f: impl FnMut(pg_sys::HeapTuple),
) {
    // SAFETY: the caller's; the scan is ended once.
    unsafe {
        let mut keys = columns.map(|(column, oid)| {
            let mut key = MaybeUninit::<pg_sys::ScanKeyData>::zeroed().assume_init();
            pg_sys::ScanKeyInit(
                &raw mut key,
                column as pg_sys::AttrNumber,
                pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
                pg_sys::Oid::from(pg_sys::F_OIDEQ),
                pg_sys::Datum::from(oid),
            );
            key
        });
        let scan = pg_sys::systable_beginscan(
            catalog,
            pg_sys::Oid::from(index),
            true,
            ptr::null_mut(),
            N as c_int,
            keys.as_mut_ptr(),
        );
        loop {
            let row = pg_sys::systable_getnext(scan);
            if row.is_null() {
                break;
            }
            f(row);
        }
        pg_sys::systable_endscan(scan);
    }
}

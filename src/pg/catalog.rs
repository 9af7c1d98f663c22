//! The catalog: what there is, who owns it, who may do what with it; and locks.

use std::ffi::{CStr, CString, c_int};

use pgrx::pg_sys;

/// The schema of this name; `InvalidOid` if there is none.
pub fn schema_named(name: &CStr) -> pg_sys::Oid {
    // SAFETY: a catalog lookup with a valid name, which need not exist.
    unsafe { pg_sys::get_namespace_oid(name.as_ptr(), true) }
}

/// The extension that an object of a catalog (`class`) belongs to.
pub fn extension_of(class: pg_sys::Oid, object: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: reads the catalog.
    found(unsafe { pg_sys::getExtensionOfObject(class, object) })
}

/// The extension of this name.
pub fn extension_named(name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: a catalog lookup with a valid name, which need not exist.
    found(unsafe { pg_sys::get_extension_oid(name.as_ptr(), true) })
}

/// The type that a function returns.
pub fn result_type_of(function: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: a catalog lookup, which raises an error if there is none.
    unsafe { pg_sys::get_func_rettype(function) }
}

/// The relation of this name in a schema.
pub fn relation_in(schema: pg_sys::Oid, name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: a catalog lookup with a valid name.
    found(unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) })
}

/// A relation's name with its schema's, as SQL writes them now.
pub fn qualified_name(relation: pg_sys::Oid) -> Option<CString> {
    // SAFETY: catalog lookups, which return null for what does not exist; names end
    // with a zero byte.
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
    // SAFETY: a catalog lookup with a valid name and an empty list of types.
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

fn found(object: pg_sys::Oid) -> Option<pg_sys::Oid> {
    (object != pg_sys::InvalidOid).then_some(object)
}

/// Whether a role has another one's rights.
pub fn has_rights_of(role: pg_sys::Oid, other: pg_sys::Oid) -> bool {
    // SAFETY: looks memberships up.
    unsafe { pg_sys::has_privs_of_role(role, other) }
}

/// Whether the current user may read all settings, the data directory among them.
pub fn may_see_settings() -> bool {
    let reader = pg_sys::Oid::from(pg_sys::ROLE_PG_READ_ALL_SETTINGS);
    // SAFETY: reads the current user.
    has_rights_of(unsafe { pg_sys::GetUserId() }, reader)
}

/// Whether the current user may see what this role's sessions do, as in
/// `pg_stat_activity`.
pub fn may_see_activity_of(role: pg_sys::Oid) -> bool {
    let reader = pg_sys::Oid::from(pg_sys::ROLE_PG_READ_ALL_STATS);
    let user = super::current_user();
    has_rights_of(user, reader) || has_rights_of(user, role)
}

/// Whether a role that has the rights of another one can become it.
#[cfg(feature = "pg15")]
pub fn may_become(_role: pg_sys::Oid, _other: pg_sys::Oid) -> bool {
    true
}

/// Whether a role that has the rights of another one can become it.
#[cfg(not(feature = "pg15"))]
pub fn may_become(role: pg_sys::Oid, other: pg_sys::Oid) -> bool {
    // SAFETY: looks memberships up.
    unsafe { pg_sys::member_can_set_role(role, other) }
}

/// Whether a role has the rights of an extension's owner.
#[cfg(feature = "pg15")]
pub fn owns_extension(extension: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup, which raises an error if there is none.
    unsafe { pg_sys::pg_extension_ownercheck(extension, role) }
}

/// Whether a role has the rights of an extension's owner.
#[cfg(not(feature = "pg15"))]
pub fn owns_extension(extension: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup, which raises an error if there is none.
    unsafe { pg_sys::object_ownercheck(pg_sys::ExtensionRelationId, extension, role) }
}

/// Whether a role has the rights of the owner of this session's database.
#[cfg(feature = "pg15")]
pub fn owns_database(role: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup of the session's own database.
    unsafe { pg_sys::pg_database_ownercheck(pg_sys::MyDatabaseId, role) }
}

/// Whether a role has the rights of the owner of this session's database.
#[cfg(not(feature = "pg15"))]
pub fn owns_database(role: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup of the session's own database.
    unsafe { pg_sys::object_ownercheck(pg_sys::DatabaseRelationId, pg_sys::MyDatabaseId, role) }
}

/// Whether a role has one of these privileges (`ACL_...`) on a relation.
pub fn has_privilege_on(relation: pg_sys::Oid, role: pg_sys::Oid, privileges: u32) -> bool {
    // SAFETY: looks privileges up; raises an error if there is no relation.
    let result =
        unsafe { pg_sys::pg_class_aclcheck(relation, role, privileges as pg_sys::AclMode) };
    result == pg_sys::AclResult::ACLCHECK_OK
}

/// Whether a role may read a column of a relation; `column` is its number.
pub fn may_read_column(
    relation: pg_sys::Oid,
    column: pg_sys::AttrNumber,
    role: pg_sys::Oid,
) -> bool {
    if has_privilege_on(relation, role, pg_sys::ACL_SELECT) {
        return true;
    }
    // SAFETY: looks privileges up; raises an error if there is no such column.
    let result = unsafe {
        pg_sys::pg_attribute_aclcheck(
            relation,
            column,
            role,
            pg_sys::ACL_SELECT as pg_sys::AclMode,
        )
    };
    result == pg_sys::AclResult::ACLCHECK_OK
}

/// Whether a role may set `session_replication_role`.
pub fn may_set_replication_role(role: pg_sys::Oid) -> bool {
    // SAFETY: looks privileges up, with a valid name.
    let result = unsafe {
        pg_sys::pg_parameter_aclcheck(
            c"session_replication_role".as_ptr(),
            role,
            pg_sys::ACL_SET as pg_sys::AclMode,
        )
    };
    result == pg_sys::AclResult::ACLCHECK_OK
}

/// The number of a relation's column of this name.
pub fn column_number(relation: pg_sys::Oid, name: &CStr) -> Option<pg_sys::AttrNumber> {
    // SAFETY: a catalog lookup with a valid name.
    let number = unsafe { pg_sys::get_attnum(relation, name.as_ptr()) };
    (number > 0).then_some(number)
}

/// Whether the current user may execute a function.
#[cfg(feature = "pg15")]
pub fn may_execute(function: pg_sys::Oid) -> bool {
    // SAFETY: looks privileges up.
    unsafe {
        pg_sys::pg_proc_aclcheck(function, pg_sys::GetUserId(), pg_sys::ACL_EXECUTE)
            == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// Whether the current user may execute a function.
#[cfg(not(feature = "pg15"))]
pub fn may_execute(function: pg_sys::Oid) -> bool {
    // SAFETY: looks privileges up.
    unsafe {
        pg_sys::object_aclcheck(
            pg_sys::ProcedureRelationId,
            function,
            pg_sys::GetUserId(),
            pg_sys::ACL_EXECUTE.into(),
        ) == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// The name of a role; raises an error if there is none.
pub fn role_name(role: pg_sys::Oid) -> CString {
    // SAFETY: a name in memory of its own.
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
    // SAFETY: a name ends with a zero byte.
    unsafe { CStr::from_ptr(name.data.as_ptr()) }
}

/// Locks a relation, which need not exist, until the end of the transaction.
pub fn lock_relation(relation: pg_sys::Oid, mode: u32) {
    // SAFETY: takes a lock, or raises an error.
    unsafe { pg_sys::LockRelationOid(relation, mode as pg_sys::LOCKMODE) };
}

/// Locks the number of an object of a catalog (`class`) until the end of the
/// transaction: another lock than that on a relation of this number. The locks on
/// its parts are independent of each other.
pub fn lock_object(class: pg_sys::Oid, object: pg_sys::Oid, part: u16, mode: u32) {
    // SAFETY: takes a lock, or raises an error.
    unsafe { pg_sys::LockDatabaseObject(class, object, part, mode as pg_sys::LOCKMODE) };
}

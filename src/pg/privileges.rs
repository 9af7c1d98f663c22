//! Privileges: which ones a role has, and code that runs with those of another role.
//!
//! What is safe about each call: the function is Postgres' own and guarded by pgrx; its
//! arguments are of the types that it takes, names end with a zero byte, and what they
//! name need not exist. The result is a value that is copied, or an error is raised.
#![allow(clippy::undocumented_unsafe_blocks)] // the contract above

use std::ffi::{CStr, CString, c_char};

use pgrx::{PgList, pg_sys};

use super::session::current_user;
use super::text::Text;

/// Whether a role has another one's privileges.
pub fn has_privileges_of(role: pg_sys::Oid, other: pg_sys::Oid) -> bool {
    unsafe { pg_sys::has_privs_of_role(role, other) }
}

/// Whether a role is a superuser.
pub fn is_superuser(role: pg_sys::Oid) -> bool {
    unsafe { pg_sys::superuser_arg(role) }
}

/// Whether the current user may read all settings, the data directory among them.
pub fn may_see_settings() -> bool {
    let reader = pg_sys::Oid::from(pg_sys::ROLE_PG_READ_ALL_SETTINGS);
    has_privileges_of(current_user(), reader)
}

/// Whether a role may read all tables.
pub fn may_read_all_data(role: pg_sys::Oid) -> bool {
    has_privileges_of(role, pg_sys::Oid::from(pg_sys::ROLE_PG_READ_ALL_DATA))
}

/// Whether the current user may see what this role's sessions do, as in
/// `pg_stat_activity`.
pub fn may_see_activity_of(role: pg_sys::Oid) -> bool {
    let reader = pg_sys::Oid::from(pg_sys::ROLE_PG_READ_ALL_STATS);
    let user = current_user();
    has_privileges_of(user, reader) || has_privileges_of(user, role)
}

/// Whether a role that has the privileges of another one can become it.
#[cfg(feature = "pg15")]
pub fn may_become(_role: pg_sys::Oid, _other: pg_sys::Oid) -> bool {
    true
}

/// Whether a role that has the privileges of another one can become it.
#[cfg(not(feature = "pg15"))]
pub fn may_become(role: pg_sys::Oid, other: pg_sys::Oid) -> bool {
    unsafe { pg_sys::member_can_set_role(role, other) }
}

/// Whether a role has the privileges of an extension's owner.
#[cfg(feature = "pg15")]
pub fn owns_extension(extension: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    unsafe { pg_sys::pg_extension_ownercheck(extension, role) }
}

/// Whether a role has the privileges of an extension's owner.
#[cfg(not(feature = "pg15"))]
pub fn owns_extension(extension: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    unsafe { pg_sys::object_ownercheck(pg_sys::ExtensionRelationId, extension, role) }
}

/// Whether a role has the privileges of the owner of this session's database.
#[cfg(feature = "pg15")]
pub fn owns_database(role: pg_sys::Oid) -> bool {
    unsafe { pg_sys::pg_database_ownercheck(pg_sys::MyDatabaseId, role) }
}

/// Whether a role has the privileges of the owner of this session's database.
#[cfg(not(feature = "pg15"))]
pub fn owns_database(role: pg_sys::Oid) -> bool {
    unsafe { pg_sys::object_ownercheck(pg_sys::DatabaseRelationId, pg_sys::MyDatabaseId, role) }
}

/// Whether a role has one of these privileges (`ACL_...`) on a relation.
pub fn has_privilege_on(relation: pg_sys::Oid, role: pg_sys::Oid, privileges: u32) -> bool {
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
    let result = unsafe {
        pg_sys::pg_parameter_aclcheck(
            c"session_replication_role".as_ptr(),
            role,
            pg_sys::ACL_SET as pg_sys::AclMode,
        )
    };
    result == pg_sys::AclResult::ACLCHECK_OK
}

/// Whether the current user may execute a function.
pub fn may_execute(function: pg_sys::Oid) -> bool {
    may_execute_as(function, current_user())
}

/// Whether every role may execute a function.
pub fn all_may_execute(function: pg_sys::Oid) -> bool {
    may_execute_as(function, pg_sys::Oid::from(pg_sys::ACL_ID_PUBLIC))
}

#[cfg(feature = "pg15")]
fn may_execute_as(function: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    unsafe {
        pg_sys::pg_proc_aclcheck(function, role, pg_sys::ACL_EXECUTE)
            == pg_sys::AclResult::ACLCHECK_OK
    }
}

#[cfg(not(feature = "pg15"))]
fn may_execute_as(function: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    unsafe {
        pg_sys::object_aclcheck(
            pg_sys::ProcedureRelationId,
            function,
            role,
            pg_sys::ACL_EXECUTE.into(),
        ) == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// A search path in which pg_catalog is first and the schema of temporary objects
/// is last.
pub struct SearchPath(CString);

/// Longer paths are refused: any role can pass any text, and have any setting.
const LONGEST_PATH_BYTES: usize = 1 << 16;

impl SearchPath {
    /// The system schemas.
    pub fn system() -> Self {
        SearchPath(c"pg_catalog, pg_temp".to_owned())
    }

    /// The schemas of a role's path between the system schemas, wherever that path
    /// has those; `$user` is the schema of the current user, which the path may be
    /// used without. `None` for a text that is not a list of names, or too long.
    pub fn of_caller(path: Text<'_>) -> Option<Self> {
        Self::of_list(path.to_c_str())
    }

    /// The same of the session's path; `None` if it is too long.
    pub fn of_session() -> Option<Self> {
        // SAFETY: the setting's value, which ends with a zero byte. It stays while it
        // is copied.
        Self::of_list(unsafe { CStr::from_ptr(pg_sys::namespace_search_path) })
    }

    fn of_list(path: &CStr) -> Option<Self> {
        if path.to_bytes().len() > LONGEST_PATH_BYTES {
            return None;
        }
        let mut schemas = b"pg_catalog".to_vec();
        // SAFETY: the list is parsed in a copy of the text, which its names point
        // into; a name is quoted, and copied at once. The role exists.
        unsafe {
            let raw = pg_sys::pstrdup(path.as_ptr());
            let mut list = std::ptr::null_mut();
            if !pg_sys::SplitIdentifierString(raw, b',' as c_char, &mut list) {
                return None;
            }
            let names = PgList::<c_char>::from_pg(list);
            for name in names.iter_ptr() {
                let name: *const c_char = match CStr::from_ptr(name).to_bytes() {
                    b"pg_catalog" | b"pg_temp" => continue,
                    b"$user" => pg_sys::GetUserNameFromId(pg_sys::GetUserId(), false),
                    _ => name,
                };
                schemas.extend_from_slice(b", ");
                schemas
                    .extend_from_slice(CStr::from_ptr(pg_sys::quote_identifier(name)).to_bytes());
            }
        }
        schemas.extend_from_slice(b", pg_temp");
        CString::new(schemas).ok().map(SearchPath)
    }
}

/// Calls `f` with the privileges of a role, in a security-restricted operation unless
/// the table is a temporary one of the role's own session, and with a search path.
/// Afterwards the user and all settings are what they were. After an error the end of
/// the transaction, or of the subtransaction, restores them.
pub fn with_privileges_of<T>(
    role: pg_sys::Oid,
    table: Option<pg_sys::Oid>,
    search_path: &SearchPath,
    f: impl FnOnce() -> T,
) -> T {
    // SAFETY: the user and the settings are restored, as above.
    unsafe {
        let settings = pg_sys::NewGUCNestLevel();
        set_search_path(search_path);
        let (mut user, mut context) = (pg_sys::InvalidOid, 0);
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        // PostgreSQL rewrites no temporary table in such an operation. No other session
        // can put something in the place of one.
        let is_own_temporary = user == role
            && table.is_some_and(|table| {
                pg_sys::get_rel_persistence(table) as u8 == pg_sys::RELPERSISTENCE_TEMP
            });
        if !is_own_temporary {
            let restricted = context | pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
            pg_sys::SetUserIdAndSecContext(role, restricted);
        }
        let result = f();
        pg_sys::AtEOXact_GUC(false, settings);
        pg_sys::SetUserIdAndSecContext(user, context);
        result
    }
}

/// Until the settings' nest level is left.
fn set_search_path(search_path: &SearchPath) {
    // SAFETY: a setting that every role may change, with a value that is valid.
    unsafe {
        pg_sys::set_config_option(
            c"search_path".as_ptr(),
            search_path.0.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}

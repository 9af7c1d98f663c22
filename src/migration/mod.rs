//! What a migration needs beside SQL: the tables that keep its records, and
//! the rights of the owner of the table that is migrated.
//!
//! No routine of the extension is SECURITY DEFINER. These functions look at who
//! calls, on the relation itself and not on a name, and then do one thing: write
//! a row of the extension's own tables ([`records`]), or run a statement with
//! the rights of a table's owner ([`owner`]).
//!
//! A relation is never locked before its caller's rights to it are known, and
//! they are looked at again once the lock is there.
#![allow(unsafe_code)] // relations and their catalog rows

mod guard;
mod lock;
mod owner;
mod records;
mod sequence;

use std::ffi::CStr;

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::varlena;

use crate::encoding::readable;
use crate::error::Error;

/// What a function returns whose SQL is written by hand; `None` is NULL.
struct Answer(Option<pg_sys::Datum>);

// SAFETY: the datum is of the type that the function's SQL declares.
unsafe impl BoxRet for Answer {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        match self.0 {
            // SAFETY: as above.
            Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
            None => fcinfo.return_null(),
        }
    }
}

// SAFETY: the functions that return it write their SQL themselves.
unsafe impl SqlTranslatable for Answer {
    const TYPE_IDENT: &'static str = "anyelement";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Err(ArgumentError::Datum);
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::As("anyelement")));
}

/// Raises the error of a function that failed.
fn or_report<T>(result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| error.report())
}

/// The arguments of a function whose SQL is written by hand.
struct Arguments<'a>(&'a [pg_sys::NullableDatum]);

impl<'a> Arguments<'a> {
    /// # Safety
    /// `fcinfo` is the frame of the call that runs.
    unsafe fn of(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        // SAFETY: a call frame has as many arguments as it says.
        unsafe { Arguments((*fcinfo).args.as_slice((*fcinfo).nargs as usize)) }
    }

    fn datum(&self, index: usize) -> Option<pg_sys::Datum> {
        let argument = self.0.get(index)?;
        (!argument.isnull).then_some(argument.value)
    }

    /// A `regclass`; NULL is no relation.
    fn relation(&self, index: usize) -> pg_sys::Oid {
        self.datum(index).map_or(pg_sys::InvalidOid, |datum| {
            pg_sys::Oid::from(datum.value() as u32)
        })
    }

    /// # Safety
    /// The argument is a `name`.
    unsafe fn name(&self, index: usize) -> Option<&'a CStr> {
        // SAFETY: a name ends with a zero byte, and lives as long as the call.
        self.datum(index)
            .map(|datum| unsafe { CStr::from_ptr(datum.cast_mut_ptr()) })
    }

    /// # Safety
    /// The argument is a `text`.
    unsafe fn text(&self, index: usize) -> Option<&'a [u8]> {
        // SAFETY: a text is a varlena; what is made of it here lives as long as
        // the call.
        self.datum(index).map(|datum| unsafe { text_bytes(datum) })
    }
}

/// The bytes of a `text`.
///
/// # Safety
/// The datum is one, and lives as long as what is returned.
unsafe fn text_bytes<'a>(datum: pg_sys::Datum) -> &'a [u8] {
    // SAFETY: the caller's.
    unsafe { varlena::varlena_to_byte_slice(pg_sys::pg_detoast_datum_packed(datum.cast_mut_ptr())) }
}

/// What `pg_class` says of a relation now.
struct Class {
    owner: pg_sys::Oid,
    kind: u8,
    name: String,
}

impl Class {
    /// Without a lock on the relation.
    ///
    /// # Errors
    /// [`Error::NoRelation`].
    fn of(relation: pg_sys::Oid) -> Result<Self, Error> {
        // SAFETY: a row of the cache is that of a relation, and is copied from
        // before it is released.
        unsafe {
            let row = pg_sys::SearchSysCache1(
                pg_sys::SysCacheIdentifier::RELOID as i32,
                pg_sys::Datum::from(relation),
            );
            if row.is_null() {
                return Err(Error::NoRelation(relation));
            }
            let class = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_class>();
            let found = Class::from_row(class);
            pg_sys::ReleaseSysCache(row);
            Ok(found)
        }
    }

    fn from_row(class: &pg_sys::FormData_pg_class) -> Self {
        // SAFETY: a name ends with a zero byte.
        let name = unsafe { CStr::from_ptr(class.relname.data.as_ptr()) };
        Class {
            owner: class.relowner,
            kind: class.relkind as u8,
            name: readable(name.to_bytes()).into_owned(),
        }
    }

    /// # Errors
    /// [`Error::NotOwner`] unless the current user has the owner's rights.
    fn require_owner(self) -> Result<Self, Error> {
        // SAFETY: looks memberships up.
        let may = unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), self.owner) };
        if may {
            Ok(self)
        } else {
            Err(Error::NotOwner(self.name))
        }
    }
}

/// Locks a relation of the current user's against being dropped, until the end
/// of the transaction, and leaves it closed: what alters a table wants to be
/// the only one that has it open.
///
/// # Errors
/// [`Error::NoRelation`] and [`Error::NotOwner`].
fn hold_owned(relation: pg_sys::Oid) -> Result<Class, Error> {
    const MODE: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    Class::of(relation)?.require_owner()?;
    // SAFETY: answers null where the relation is gone; closed at once.
    unsafe {
        let opened = pg_sys::try_relation_open(relation, MODE);
        if opened.is_null() {
            return Err(Error::NoRelation(relation));
        }
        let class = Class::from_row(&*(*opened).rd_rel);
        pg_sys::relation_close(opened, pg_sys::NoLock as pg_sys::LOCKMODE);
        class.require_owner()
    }
}

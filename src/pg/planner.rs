//! What a planner support function is asked, and what it answers.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::ptr;

use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{FromDatum, is_a, pg_sys};

/// The argument of a planner support function.
#[derive(Clone, Copy)]
pub struct SupportRequest<'a> {
    node: *mut pg_sys::Node,
    lifetime: PhantomData<&'a ()>,
}

impl<'a> SupportRequest<'a> {
    /// The request to simplify a call; `None` for every other request.
    pub fn simplify(self) -> Option<Simplify<'a>> {
        // SAFETY: a node, which lives as long as the call; the tag shows which.
        unsafe {
            is_a(self.node, pg_sys::NodeTag::T_SupportRequestSimplify)
                .then(|| Simplify(&*self.node.cast()))
        }
    }

    /// The request to put a query in the place of a call in FROM; `None` for every other request.
    #[cfg(feature = "pg19")]
    pub fn inline_in_from(self) -> Option<super::inline::InlineInFrom<'a>> {
        // SAFETY: as above.
        unsafe {
            is_a(self.node, pg_sys::NodeTag::T_SupportRequestInlineInFrom)
                .then(|| super::inline::InlineInFrom::new(&*self.node.cast()))
        }
    }
}

impl FromDatum for SupportRequest<'_> {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _: pg_sys::Oid,
    ) -> Option<Self> {
        (!is_null).then(|| Self {
            node: datum.cast_mut_ptr(),
            lifetime: PhantomData,
        })
    }
}

// SAFETY: an `internal` of a support function, which is a node.
unsafe impl<'fcx> ArgAbi<'fcx> for SupportRequest<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller's.
        unsafe { arg.unbox_arg_using_from_datum() }.expect("a support function is STRICT")
    }
}

super::sql_type!(argument SupportRequest<'_>, SqlMappingRef::As("internal"));

/// The request to put something simpler in the place of a call.
#[derive(Clone, Copy)]
pub struct Simplify<'a>(&'a pg_sys::SupportRequestSimplify);

impl Simplify<'_> {
    /// Whether a statement is being planned, and not an expression alone.
    pub fn is_in_statement(self) -> bool {
        !self.0.root.is_null()
    }

    /// The function that is called.
    pub fn function(self) -> pg_sys::Oid {
        // SAFETY: the call that is being simplified.
        unsafe { (*self.0.fcall).funcid }
    }

    /// The same call of another function; `None` unless both have no arguments
    /// and the same type of result.
    pub fn call_of(self, function: pg_sys::Oid) -> Option<Replacement> {
        // SAFETY: the call that is being simplified; the copy belongs to the
        // caller's memory context. A call without arguments of a function
        // without arguments, with the same result, is valid.
        unsafe {
            let call = self.0.fcall;
            let fits = (*call).args.is_null()
                && pg_sys::get_func_nargs(function) == 0
                && pg_sys::get_func_rettype(function) == (*call).funcresulttype
                && pg_sys::get_func_retset(function) == (*call).funcretset;
            if !fits {
                return None;
            }
            let copy: *mut pg_sys::FuncExpr = pg_sys::copyObjectImpl(call.cast()).cast();
            (*copy).funcid = function;
            Some(Replacement(copy.cast()))
        }
    }
}

/// What a planner support function returns: an expression or a query, or null for "no".
pub struct Replacement(pub(super) *mut pg_sys::Node);

impl Replacement {
    /// No answer.
    pub fn none() -> Self {
        Replacement(ptr::null_mut())
    }
}

// SAFETY: the datum is a node, as a support function's answer has to be.
unsafe impl BoxRet for Replacement {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        // SAFETY: null is "no", not an SQL NULL.
        unsafe { fcinfo.return_raw_datum(pg_sys::Datum::from(self.0)) }
    }
}

super::sql_type!(result Replacement, "internal");

/// Whether the current memory context has this name.
pub fn in_memory_context(name: &CStr) -> bool {
    // SAFETY: the current context exists, and contexts have names.
    unsafe { CStr::from_ptr((*pg_sys::CurrentMemoryContext).name) == name }
}

/// Whether the current memory context has a child of this name.
pub fn memory_context_has(name: &CStr) -> bool {
    // SAFETY: a context's children exist as long as they are its children, and
    // contexts have names.
    unsafe {
        let mut child = (*pg_sys::CurrentMemoryContext).firstchild;
        while !child.is_null() {
            if CStr::from_ptr((*child).name) == name {
                return true;
            }
            child = (*child).nextchild;
        }
        false
    }
}

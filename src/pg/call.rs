//! The call of an SQL function.

use std::marker::PhantomData;
use std::ptr::NonNull;

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{PgList, pg_sys};
use snowflake_id::Layout;

use super::trigger::Trigger;

/// The call of an SQL function: an argument that SQL does not show.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// Valid as long as the call, and Postgres' own.
    frame: NonNull<pg_sys::FunctionCallInfoBaseData>,
    lifetime: PhantomData<&'a ()>,
}

impl<'a> Call<'a> {
    /// What Postgres knows of the function. It is null only where C code calls
    /// the function directly.
    #[inline]
    fn function_info(self) -> Option<NonNull<pg_sys::FmgrInfo>> {
        // SAFETY: the frame is valid.
        NonNull::new(unsafe { (*self.frame.as_ptr()).flinfo })
    }

    /// The OID of the function.
    #[inline]
    pub fn function(self) -> pg_sys::Oid {
        match self.function_info() {
            // SAFETY: valid as long as the call.
            Some(info) => unsafe { (*info.as_ptr()).fn_oid },
            None => pg_sys::InvalidOid,
        }
    }

    /// The layout that was kept with the call's place in the query.
    #[inline]
    pub fn kept_layout(self) -> Option<Layout> {
        let info = self.function_info()?;
        // SAFETY: valid as long as the call. `fn_extra` is the function's own:
        // a set-returning function has pgrx's state there, every other one
        // nothing but what `keep_layout` wrote.
        unsafe {
            if (*info.as_ptr()).fn_retset {
                return None;
            }
            (*info.as_ptr()).fn_extra.cast::<Layout>().as_ref().copied()
        }
    }

    /// Keeps a layout with the call's place in the query, for its later calls.
    pub fn keep_layout(self, layout: Layout) {
        let Some(info) = self.function_info() else {
            return;
        };
        const { assert!(align_of::<Layout>() <= pg_sys::MAXIMUM_ALIGNOF as usize) };
        // SAFETY: as in `kept_layout`. The memory lives as long as what Postgres
        // knows of the function, and is aligned as C aligns any type.
        unsafe {
            let info = info.as_ptr();
            if !(*info).fn_retset {
                let kept = pg_sys::MemoryContextAlloc((*info).fn_mcxt, size_of::<Layout>());
                kept.cast::<Layout>().write(layout);
                (*info).fn_extra = kept;
            }
        }
    }

    /// Whether the function's last argument is a constant in the query.
    pub fn is_last_argument_constant(self) -> bool {
        let Some(info) = self.function_info() else {
            return false;
        };
        // SAFETY: the expression, if any, is the call's; the tags show what the
        // nodes are.
        unsafe {
            let call = (*info.as_ptr()).fn_expr;
            if call.is_null() || !pgrx::is_a(call, pg_sys::NodeTag::T_FuncExpr) {
                return false;
            }
            let arguments = (*call.cast::<pg_sys::FuncExpr>()).args;
            PgList::<pg_sys::Node>::from_pg(arguments)
                .tail()
                .is_some_and(|last| pgrx::is_a(last, pg_sys::NodeTag::T_Const))
        }
    }

    /// Whether it is a CALL that may commit: not in a transaction block, nor in
    /// anything but procedures that may commit themselves.
    pub fn may_commit(self) -> bool {
        // SAFETY: the frame is valid, and its context is what the tag shows.
        unsafe {
            let context = (*self.frame.as_ptr()).context;
            !context.is_null()
                && pgrx::is_a(context, pg_sys::NodeTag::T_CallContext)
                && !(*context.cast::<pg_sys::CallContext>()).atomic
        }
    }

    /// The trigger that calls the function; `None` for any other call.
    pub fn trigger(self) -> Option<Trigger<'a>> {
        // SAFETY: the frame is valid, and its context is what the tag shows. The
        // trigger's data lives as long as the call.
        unsafe {
            let context = (*self.frame.as_ptr()).context;
            (!context.is_null() && pgrx::is_a(context, pg_sys::NodeTag::T_TriggerData))
                .then(|| Trigger::new(&*context.cast::<pg_sys::TriggerData>()))
        }
    }
}

// SAFETY: the frame of the call whose arguments are read.
unsafe impl<'fcx> ArgAbi<'fcx> for Call<'fcx> {
    #[inline]
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller's; pgrx has checked that the frame is not null.
        unsafe {
            let frame = arg.unbox_unchecked::<pg_sys::FunctionCallInfo>();
            Call {
                frame: NonNull::new_unchecked(frame),
                lifetime: PhantomData,
            }
        }
    }

    #[inline]
    fn is_virtual_arg() -> bool {
        true
    }
}

super::sql_type!(argument Call<'_>, SqlMappingRef::Skip);

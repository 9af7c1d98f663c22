//! SQL: IDs as text of fixed width.
#![allow(unsafe_code)] // reads the name of an encoding

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::prelude::*;
use snowflake_id::{Encoding, SnowflakeId};

use crate::datum::{TextArgument, argument_is_text};
use crate::error::Error;
use crate::inspect::or_report;

#[pg_extern(immutable, parallel_safe)]
fn snowflake_to_text(id: i64, encoding: default!(EncodingArgument, "'base32'")) -> String {
    let id = or_report(SnowflakeId::new(id).ok_or(Error::NegativeId(id)));
    encoding.0.encode(id).to_string()
}

#[pg_extern(immutable, parallel_safe)]
fn snowflake_from_text(
    text: TextArgument<'_>,
    encoding: default!(EncodingArgument, "'base32'"),
) -> i64 {
    let readable = text.readable();
    let id = encoding.0.decode(&readable);
    or_report(id.map_err(|reason| Error::InvalidText {
        text: readable.into_owned(),
        reason,
    }))
    .get()
}

/// The encoding that a `text` argument names.
#[derive(Clone, Copy)]
struct EncodingArgument(Encoding);

// SAFETY: reads a `text`, which is what its SQL type says.
unsafe impl<'fcx> ArgAbi<'fcx> for EncodingArgument {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller's.
        let name = unsafe { TextArgument::unbox_arg_unchecked(arg) }.readable();
        let encoding = name.parse();
        Self(or_report(
            encoding.map_err(|_| Error::InvalidEncoding(name.into_owned())),
        ))
    }
}

argument_is_text!(EncodingArgument);

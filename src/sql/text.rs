//! SQL: IDs as text of fixed width.

use pgrx::prelude::*;
use snowflake_id::{Encoding, SnowflakeId};

use crate::error::Error;
use crate::sql::read::or_report;
use crate::sql::values::{AsciiText, TextArgument};

#[pg_extern(immutable, parallel_safe)]
fn snowflake_to_text(id: i64, encoding: default!(TextArgument<'_>, "'base32'")) -> AsciiText {
    let encoding = or_report(encoding_named(encoding));
    let id = or_report(SnowflakeId::new(id).ok_or(Error::NegativeId(id)));
    AsciiText(encoding.encode(id))
}

#[pg_extern(immutable, parallel_safe)]
fn snowflake_from_text(
    text: TextArgument<'_>,
    encoding: default!(TextArgument<'_>, "'base32'"),
) -> i64 {
    let encoding = or_report(encoding_named(encoding));
    match encoding.decode_bytes(text.bytes()) {
        Some(id) => id.get(),
        None => or_report(invalid(encoding, text)).get(),
    }
}

#[cold]
fn invalid(encoding: Encoding, text: TextArgument<'_>) -> Result<SnowflakeId, Error> {
    let text = text.readable();
    encoding.decode(&text).map_err(|reason| Error::InvalidText {
        text: text.into_owned(),
        reason,
    })
}

fn encoding_named(name: TextArgument<'_>) -> Result<Encoding, Error> {
    let named = |it: &Encoding| it.name().as_bytes() == name.bytes();
    match Encoding::ALL.into_iter().find(named) {
        Some(encoding) => Ok(encoding),
        None => Err(Error::InvalidEncoding(name.readable().into_owned())),
    }
}

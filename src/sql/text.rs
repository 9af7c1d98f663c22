//! SQL: IDs as text of fixed width.

use pgrx::prelude::*;
use snowflake_id::{Encoding, SnowflakeId};

use crate::encoding::{readable, shown};
use crate::error::{Error, or_report};
use crate::pg::{Text, TextResult};

#[pg_extern(sql = false)]
fn snowflake_to_text(id: i64, encoding: default!(Text<'_>, "'base32'")) -> TextResult {
    let encoding = or_report(encoding_named(encoding));
    let id = or_report(SnowflakeId::new(id).ok_or(Error::NegativeId(id)));
    TextResult::new(encoding.encode(id).as_bytes())
}

#[pg_extern(sql = false)]
fn snowflake_from_text(text: Text<'_>, encoding: default!(Text<'_>, "'base32'")) -> i64 {
    let encoding = or_report(encoding_named(encoding));
    match encoding.decode_bytes(text.bytes()) {
        Some(id) => id.get(),
        None => or_report(invalid(encoding, text)).get(),
    }
}

#[cold]
fn invalid(encoding: Encoding, text: Text<'_>) -> Result<SnowflakeId, Error> {
    let decoded = encoding.decode(&readable(text.bytes()));
    decoded.map_err(|reason| Error::InvalidText {
        text: shown(text.bytes()),
        reason,
    })
}

fn encoding_named(name: Text<'_>) -> Result<Encoding, Error> {
    let named = |it: &Encoding| it.name().as_bytes() == name.bytes();
    match Encoding::ALL.into_iter().find(named) {
        Some(encoding) => Ok(encoding),
        None => Err(Error::InvalidEncoding(shown(name.bytes()))),
    }
}

//! The slow path to an ID: resolves what is not yet resolved, reserves time,
//! handles clock steps, waits. The protocol decides ([`snowflake_id::protocol::draw`]);
//! this process carries it out ([`Backend`]).

use std::num::NonZeroU32;

use snowflake_id::protocol::{draw, now};

use crate::error::Error;
use crate::generator::next::Batch;
use crate::generator::process::Backend;
use crate::generator::{session, stats};

/// Up to `count` IDs of one tick.
#[cold]
#[inline(never)]
pub fn next_slow(count: NonZeroU32) -> Result<Batch, Error> {
    stats::flush();
    let session = session::resolve()?;
    let (slot, run) = now(draw::draw(&Backend::new(session), count))?;
    // Nothing has been counted since the flush.
    stats::move_to(&session.shared.counters()[slot as usize]);
    Ok(Batch {
        identity: &session.identity,
        slot,
        run,
    })
}

/// Reserves time without an ID, for `snowflake_advance_resolved_id()`: a database that
/// generates no IDs has a resolved ID that stays at its mark. Where IDs are refused or
/// would have to wait, nothing is reserved, and the caller's answer is the old one.
///
/// # Errors
/// If the mark cannot be found.
pub fn reserve_present(session: &session::Session) -> Result<(), Error> {
    now(draw::reserve_present(&Backend::new(session)))
}

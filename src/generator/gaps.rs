//! Slots skip a little time while it is suspected that another server has this
//! server's node number ([`snowflake_id::node_conflict`]).
//!
//! A row with this server's number has come from another server, and this server may
//! have issued its ID: its slot was in use. For a minute after such a row, each
//! process lets its slot skip some time at the end of transactions, so that IDs of
//! another server fall into a gap. That costs one load for each transaction
//! without a suspicion.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

use snowflake_id::node_conflict::Gaps;

use crate::clock::{self, Clocks};
use crate::settings;
use crate::shared::Shared;

/// How long a suspicion lasts, microseconds.
const SUSPICION: i64 = 60_000_000;

/// Notes that a row has come about which nothing is certain, and lets its slot skip time.
pub fn suspect(shared: Shared, backend: u32) {
    let clocks = Clocks::read();
    let until = clocks.boot.micros().saturating_add(SUSPICION);
    shared.conflicts().suspected_until.store(until, Relaxed);
    make(shared, backend, clocks);
}

/// Lets the slot of a process skip time while there is a suspicion.
#[inline]
pub fn probe(shared: Shared, backend: u32) {
    if shared.conflicts().suspected_until.load(Relaxed) != 0 {
        probe_suspected(shared, backend);
    }
}

#[cold]
fn probe_suspected(shared: Shared, backend: u32) {
    let clocks = Clocks::read();
    let suspected_until = &shared.conflicts().suspected_until;
    let until = suspected_until.load(Relaxed);
    if clocks.boot.micros() < until {
        make(shared, backend, clocks);
    } else {
        // Unless another row has come.
        let _ = suspected_until.compare_exchange(until, 0, Relaxed, Relaxed);
    }
}

/// At most one gap of this process at a time.
fn make(shared: Shared, backend: u32, clocks: Clocks) {
    static LAST: AtomicI64 = AtomicI64::new(i64::MIN);
    let now = clocks.boot.micros();
    if now.saturating_sub(LAST.load(Relaxed)) < Gaps::INTERVAL_MICROS {
        return;
    }
    let Some(identity) = settings::identity() else {
        return;
    };
    let layout = identity.layout();
    let Ok(tick) = layout.tick_at(clock::time(clocks.wall)) else {
        return;
    };
    let max_borrow = settings::max_borrow_micros() / u64::from(layout.tick_micros());
    let gaps = &shared.conflicts().gaps;
    if gaps
        .make(identity, shared.slots(), backend, tick, max_borrow)
        .is_some()
    {
        LAST.store(now, Relaxed);
    }
}

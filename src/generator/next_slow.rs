//! The slow path to an ID: resolves what is not yet resolved, reserves time,
//! handles clock steps, waits.
//!
//! It holds no lock of this process while it looks things up, reserves or waits: an
//! error of Postgres may come out of any of these.

use std::num::NonZeroU32;

use pgrx::{check_for_interrupts, pg_sys};
use snowflake_id::{Allowance, Answer, Tick};

use crate::clock::{self, Clocks};
use crate::error::Error;
use crate::generator::next::Batch;
use crate::generator::reading::Reading;
use crate::generator::reserve::{self, Reservation};
use crate::generator::session::{self, FAST_PATH, Session};
use crate::generator::wait::WaitBudget;
use crate::generator::{accepted_layout, log, open_transaction, stats};
use crate::settings;

/// Up to `count` IDs of one tick.
#[cold]
#[inline(never)]
pub fn next_slow(function: pg_sys::Oid, count: NonZeroU32) -> Result<Batch, Error> {
    stats::flush();
    let session = session::resolve()?;
    let mut budget = WaitBudget::new();
    let mut opened = None;
    loop {
        if session.shared.is_stopped() {
            return Err(Error::NodeConflict(session.identity.node()));
        }
        let mut reservation = Reservation::current(session, function)?;
        let clocks = Clocks::read();
        if !reservation.is_known()
            && let Err(reason) = reservation.read_mark(session, clocks, budget.left_ms())
        {
            reserve::wait_for(reason, session, clocks, &mut budget)?;
            continue;
        }
        accepted_layout::check(
            session.shared,
            *session.layout(),
            function,
            reservation.mark(),
        )?;
        let Some(reading) = Reading::take(session, clocks)? else {
            let reached = session.shared.slewed_clock().reached();
            budget.wait_for_clock(clocks.wall, reached, settings::max_clock_step_micros())?;
            continue;
        };
        if opened.is_none() && !open_transaction::has_drawn() {
            opened = Some(open_transaction::begin(session, reading.now));
        }
        let least = opened.as_ref().map_or(reading.now, |(_, least)| *least);
        let allowance = reservation.allowance(reading.now.max(least));
        let (slot, answer) = session.next_run(allowance, count, clocks.wall);
        match answer {
            Answer::Issued(run) => {
                let batch = Batch {
                    identity: &session.identity,
                    slot,
                    run,
                };
                if let Some((opened, _)) = opened {
                    opened.drew(batch.id(0));
                }
                FAST_PATH.observe(clocks.wall);
                reservation.extend_early(session, reading, run.tick)?;
                reservation.keep();
                return Ok(batch);
            }
            Answer::Reserve { tick } => {
                let wait_ms = budget.left_ms();
                if let Err(reason) = reservation.extend(session, reading, tick, wait_ms) {
                    reserve::wait_for(reason, session, clocks, &mut budget)?;
                }
                reservation.keep();
            }
            Answer::Wait { until } => {
                wait_until(until, session, reading, allowance, &mut budget)?;
            }
            // Since the loop began, or about to be opened.
            Answer::Closed => {
                check_for_interrupts!();
            }
        }
    }
}

/// The age of a reading of the clocks by which no call waits, microseconds.
const STALE_MICROS: u64 = 100_000;

/// Waits for the clock to come to this tick, at which the slots may be used again.
fn wait_until(
    until: Tick,
    session: &Session,
    reading: Reading,
    allowance: Allowance,
    budget: &mut WaitBudget,
) -> Result<(), Error> {
    let clocks = reading.clocks;
    // A process that has lost its processor since it read the clocks has seen others move
    // on, and nothing to wait for. Nor is there if the clock was set.
    if clock::wall().micros_since(clocks.wall).unsigned_abs() > STALE_MICROS {
        check_for_interrupts!();
        return Ok(());
    }
    let needed = (until.get() - reading.now.get())
        .saturating_mul(u64::from(session.tick_micros))
        .saturating_mul(reading.slowdown);
    let next = Tick::new(until.get().saturating_add(allowance.max_borrow));
    log::waiting(session.shared, clocks, needed);
    budget.wait(
        i64::try_from(needed).unwrap_or(i64::MAX),
        |needed_ms, max_wait_ms| Error::WaitTooLong {
            wall: clocks.wall,
            next: session.layout().time_of(next).into(),
            needed_ms,
            max_wait_ms,
        },
    )
}

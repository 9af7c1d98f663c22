//! The way to an ID when something has to be read, reserved or awaited first.

use std::num::NonZeroU32;
use std::sync::atomic::Ordering::Relaxed;

use super::session::{self, Session};
use super::{
    Clocks, DrawingProcess, ErrorOf, NotReserved, Reservation, Wait, layout_of, mark, wait,
};
use crate::{Answer, Run, SlotWalk, Tick};

/// The age of a reading of the clocks by which no call waits, microseconds.
const STALE_MICROS: u64 = 100_000;

/// How often [`reserve_present`] begins anew.
const MAX_ATTEMPTS: usize = 3;

/// Up to `count` IDs of one tick: the number of their slot, and what it issued.
///
/// # Errors
/// Those of the process.
pub async fn draw<P: DrawingProcess>(
    process: &P,
    count: NonZeroU32,
) -> Result<(u32, Run), ErrorOf<P>> {
    let session = process.session();
    let mut opened = None;
    let mut has_begun = false;
    let mut tries = 0;
    let mut observed = None;
    loop {
        process.check_stopped()?;
        let mut reservation = reservation(process).await?;
        let clocks = process.clocks().await;
        if !reservation.is_known()
            && let Err(reason) = reservation
                .read_mark(process, clocks, wait::left_ms(process).await)
                .await
        {
            wait::for_mark(process, reason, clocks).await?;
            continue;
        }
        process.check_layout().await?;
        let reading = match process.reading(clocks).await {
            Ok(reading) => reading,
            Err(reason) => {
                wait::for_reading(process, reason, clocks).await?;
                continue;
            }
        };
        if !has_begun {
            if !session.memory().has_drawn() {
                opened = Some(session::begin(session, reading.now).await);
            }
            has_begun = true;
        }
        let least = opened.as_ref().map_or(reading.now, |(_, least)| *least);
        let allowance = reservation.allowance(reading.now.max(least));
        session.step().await;
        let walk = SlotWalk::new(layout_of(process), session.slots(), session.home());
        let position = session.memory().position();
        let (position, answer) = walk.next_run(position, allowance, count);
        session.memory().set_position(position);
        match answer {
            Answer::Issued(run) => {
                let slot = position.slot();
                session.issued(slot, run);
                if let Some((opened, _)) = opened {
                    let id = session.identity().id(slot, run.tick, run.first);
                    opened.drew(session.memory(), id);
                }
                session.memory().observe(clocks.wall);
                if let Err(reason) = reservation.extend_early(process, reading, run.tick).await {
                    wait::for_mark(process, reason, clocks).await?;
                }
                session.memory().keep(reservation);
                return Ok((slot, run));
            }
            Answer::Reserve { tick } => {
                let wait_ms = wait::left_ms(process).await;
                let extended = reservation.extend(process, reading, tick, wait_ms, tries);
                if let Err(reason) = extended.await {
                    wait::for_mark(process, reason, clocks).await?;
                }
                tries += 1;
                session.memory().keep(reservation);
                process.give_way().await;
            }
            Answer::Wait { until } => {
                // A slot is ahead of the time by no more than could be borrowed at any time. So this
                // time has been reached: by a process that has read the clock before it was set back,
                // or since, or that has read another mark.
                let next = until.get().saturating_add(allowance.max_borrow);
                let reached = Tick::new(next.saturating_sub(1 + most_borrowed(process)));
                let fresh = process.clocks().await;
                if reached > reading.now && observed != Some(reached) {
                    observed = Some(reached);
                    let time = layout_of(process).time_of(reached);
                    let slewed_clock = process.shared().slewed_clock;
                    slewed_clock.observe(time.into(), fresh.boot);
                    process.give_way().await;
                    continue;
                }
                // A process that has lost its processor since it read the clocks has seen others move
                // on, and nothing to wait for. Nor is there if the clock was set.
                if fresh.wall.micros_since(clocks.wall).unsigned_abs() > STALE_MICROS {
                    process.give_way().await;
                    continue;
                }
                let wait = Wait {
                    reading,
                    needed: (until.get() - reading.now.get())
                        .saturating_mul(u64::from(layout_of(process).tick_micros()))
                        .saturating_mul(reading.slowdown),
                    next: Tick::new(next),
                };
                wait::for_slots(process, wait).await?;
            }
            // Since the loop began, or about to be opened.
            Answer::Closed => process.give_way().await,
        }
    }
}

/// Reserves time as an ID of this moment would, without one. Where IDs are refused or would have to
/// wait, nothing is reserved.
///
/// # Errors
/// Those of reserving time, and of [`DrawingProcess::check_layout`].
pub async fn reserve_present<P: DrawingProcess>(process: &P) -> Result<(), ErrorOf<P>> {
    for _ in 0..MAX_ATTEMPTS {
        if process.check_stopped().is_err() {
            break;
        }
        let mut reservation = reservation(process).await?;
        let clocks = process.clocks().await;
        if !reservation.is_known() {
            match reservation.read_mark(process, clocks, 0).await {
                Ok(()) => {}
                Err(NotReserved::Raised) => continue,
                Err(_) => break,
            }
        }
        process.check_layout().await?;
        let Ok(reading) = process.reading(clocks).await else {
            break;
        };
        if reservation
            .extend_early(process, reading, reading.now)
            .await
            .is_err()
        {
            break;
        }
        process.session().memory().keep(reservation);
        // Otherwise the mark was set in the meantime, or another process moves it for the first
        // time.
        if reservation.is_known() {
            break;
        }
    }
    Ok(())
}

/// Makes sure that the database's later IDs have at least this tick, and accepts a mark that was
/// set ([`mark::start_at`]).
///
/// # Errors
/// Those of the process; `too_far` for a tick that is further ahead than any mark may raise slots.
pub async fn start_at<P: DrawingProcess>(
    process: &P,
    tick: Tick,
    too_far: impl Fn(Clocks) -> ErrorOf<P>,
) -> Result<(), ErrorOf<P>> {
    loop {
        // The mark is not read first: that would wait for a mark that was set, which this accepts.
        let reservation = reservation(process).await?;
        let clocks = process.clocks().await;
        let layout = layout_of(process);
        let highest = mark::highest_accepted(process.settings(), layout, clocks.wall);
        if tick > highest.min(layout.last_tick()) {
            return Err(too_far(clocks));
        }
        let request = reservation.request(process, clocks, 1, wait::left_ms(process).await);
        match mark::start_at(process, &request, tick).await {
            Ok(_) => return Ok(()),
            Err(reason) => wait::for_mark(process, reason, clocks).await?,
        }
    }
}

/// What this process knows of its database's mark.
async fn reservation<P: DrawingProcess>(process: &P) -> Result<Reservation, ErrorOf<P>> {
    let memory = process.session().memory();
    if let Some((mark, reservation)) = memory.kept(process.take_settings_changed()) {
        process.use_mark(mark);
        return Ok(reservation);
    }
    let mark = process.find_mark().await?;
    memory.watch(mark);
    process.use_mark(mark);
    Ok(Reservation::new(process).await)
}

/// How many ticks could be borrowed at most since the start.
fn most_borrowed<P: DrawingProcess>(process: &P) -> u64 {
    let micros = process.shared().most_borrow.load(Relaxed);
    micros.div_ceil(u64::from(layout_of(process).tick_micros()))
}

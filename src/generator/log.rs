//! Messages to the server's log: once an episode, not once a call.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use snowflake_id::{BootTime, SlewedClock, WallTime};

use crate::clock::{self, Clocks};
use crate::generator::stats;
use crate::settings;
use crate::shared::Shared;

/// A clock step below this is not logged, microseconds.
const NOTABLE: i64 = 250_000;

/// Waits within this of the last one that was logged belong to its episode,
/// microseconds.
const EPISODE: i64 = 60_000_000;

fn line(message: String, detail: String) {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        message,
        "snowflake",
    )
    .set_detail(detail)
    .report(PgLogLevel::LOG);
}

fn seconds(micros: i64) -> String {
    format!("{}.{:03} s", micros / 1_000_000, micros % 1_000_000 / 1_000)
}

/// Logs a clock step, and when time starts and stops to run at half speed. The
/// clock shows `clocks`, and IDs are generated with `time`.
///
/// Both are checked again with fresh clocks. Otherwise a process that lost its
/// processor since it read them would report a step that others have reported,
/// the wrong way round.
pub fn clock(shared: Shared, clocks: Clocks, time: WallTime) {
    let slewed_clock = shared.slewed_clock();
    if slewed_clock.clock_step(clocks.wall, clocks.boot).abs() >= NOTABLE {
        clock_step(slewed_clock);
    }
    let slewing = &shared.episodes().slewing;
    // After each start the clock is behind by what was reserved. That is not logged.
    let news = NOTABLE.max(i64::try_from(settings::lease_micros()).unwrap_or(i64::MAX));
    let behind = time.micros_since(clocks.wall);
    let (begins, ends) = (|behind| behind > news, |behind| behind < NOTABLE);
    if !(if slewing.load(Relaxed) {
        ends(behind)
    } else {
        begins(behind)
    }) {
        return;
    }
    let at = Clocks::read();
    let behind = slewed_clock.reached().micros_since(at.wall);
    if begins(behind) && !slewing.swap(true, AcqRel) {
        line(
            format!(
                "snowflake: the clock is behind by {}; ID timestamps advance at half speed",
                seconds(behind)
            ),
            format!(
                "The clock shows {}; IDs continue from {}.",
                clock::time(at.wall),
                clock::time(time)
            ),
        );
    } else if ends(behind) && slewing.swap(false, AcqRel) {
        line(
            "snowflake: the clock has caught up".into(),
            format!("The clock shows {}.", clock::time(at.wall)),
        );
    }
}

/// Called if the clock seems to have stepped.
fn clock_step(slewed_clock: &SlewedClock) {
    let before = slewed_clock.offset();
    let at = Clocks::read();
    let step = at.offset().step_since(before);
    if step.abs() < NOTABLE || !slewed_clock.accept_step(before, at.offset()) {
        return;
    }
    stats::count_clock_step();
    let way = if step < 0 { "back" } else { "forward" };
    line(
        format!(
            "snowflake: the clock was set {way} by {}",
            seconds(step.abs())
        ),
        format!("The clock now shows {}.", clock::time(at.wall)),
    );
}

/// Logs that the server's layout is not the one of the database's IDs.
pub fn other_layout(remembered: &str, layout: &str) {
    line(
        "snowflake: IDs of this database were generated with another layout".into(),
        format!(
            "They were generated with \"{remembered}\"; snowflake.layout is \"{layout}\". Read old \
             IDs with their own layout. If the change is intended, run SELECT \
             snowflake_accept_layout() as a superuser."
        ),
    );
}

/// Logs that a wait of `needed` microseconds starts.
pub fn waiting(shared: Shared, clocks: Clocks, needed: u64) {
    let last = &shared.episodes().waiting;
    let before = last.load(Relaxed);
    let since = clocks.boot.micros_since(BootTime::from_micros(before));
    if (before != 0 && since < EPISODE)
        || last
            .compare_exchange(before, clocks.boot.micros(), AcqRel, Acquire)
            .is_err()
    {
        return;
    }
    line(
        "snowflake: IDs are requested faster than they can be generated; calls wait".into(),
        format!(
            "This call waits {} ms. IDs have run ahead of the clock by snowflake.max_borrow. A \
             layout with more backend or sequence bits has more IDs.",
            needed.div_ceil(1_000)
        ),
    );
}

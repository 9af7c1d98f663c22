//! What the server's log is told: once an episode, not once a call.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use snowflake_id::Pace;

use crate::clock::{self, Instant};
use crate::generator::stats;
use crate::settings;
use crate::shared::Shared;

/// A step of the wall clock below this is not worth a line, microseconds.
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

/// A clock that is believed, and the time that IDs are made with: says whether
/// the clock has stepped, and when time begins and ends to go on at half speed.
///
/// What `at` and `time` suggest is looked at again with fresh clocks: a process
/// that lost its processor since it read them would report a step that others
/// have reported, the wrong way round.
pub fn clock(shared: Shared, at: Instant, time: i64) {
    let pace = shared.pace();
    if pace.step(at.wall, at.boot).abs() >= NOTABLE {
        step(pace);
    }
    let slewing = &shared.episodes().slewing;
    // After each start the clock is behind by what was reserved: no news.
    let news = NOTABLE.max(i64::try_from(settings::lease_micros()).unwrap_or(i64::MAX));
    let behind = time - at.wall;
    let (begins, ends) = (|behind| behind > news, |behind| behind < NOTABLE);
    if !(if slewing.load(Relaxed) {
        ends(behind)
    } else {
        begins(behind)
    }) {
        return;
    }
    let at = clock::both();
    let behind = pace.reached() - at.wall;
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

/// The clock seems to have stepped.
fn step(pace: &Pace) {
    let before = pace.offset();
    let at = clock::both();
    let step = at.wall - at.boot - before;
    if step.abs() < NOTABLE || !pace.believe(before, at.wall, at.boot) {
        return;
    }
    stats::clock_stepped();
    let way = if step < 0 { "back" } else { "forward" };
    line(
        format!(
            "snowflake: the clock was set {way} by {}",
            seconds(step.abs())
        ),
        format!("The clock now shows {}.", clock::time(at.wall)),
    );
}

/// IDs are made with another layout than the database's IDs have.
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

/// A wait begins.
pub fn waiting(shared: Shared, at: Instant, needed: u64) {
    let last = &shared.episodes().waiting;
    let before = last.load(Relaxed);
    if (before != 0 && at.boot - before < EPISODE)
        || last
            .compare_exchange(before, at.boot, AcqRel, Acquire)
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

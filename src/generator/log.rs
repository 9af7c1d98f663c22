//! Messages to the server's log: once an episode, not once a call.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use snowflake_id::protocol::{Clocks, LEAST_STEP};
use snowflake_id::{BootTime, Identity, Layout, SnowflakeId, WallTime};

use crate::clock;
use crate::error::{log, warn};
use crate::generator::stats;
use crate::settings;
use crate::shared::Shared;

/// Waits within this of the last one that was logged belong to its episode.
const EPISODE_MICROS: i64 = 60_000_000;

fn seconds(micros: i64) -> String {
    format!("{}.{:03} s", micros / 1_000_000, micros % 1_000_000 / 1_000)
}

/// Logs when time starts and stops to run at half speed. The clock shows `clocks`, and
/// IDs are generated with `time`.
///
/// It is checked again with fresh clocks. Otherwise a process that lost its processor
/// since it read them would report what others have reported, the wrong way round.
pub fn clock(shared: Shared, clocks: Clocks, time: WallTime) {
    let slewed_clock = shared.slewed_clock();
    let slewing = &shared.episodes().slewing;
    // After each start the clock is behind by what was reserved. That is not logged.
    let news = LEAST_STEP.max(settings::of_protocol().lease_micros());
    let behind = time.micros_since(clocks.wall);
    let (begins, ends) = (|behind| behind > news, |behind| behind < LEAST_STEP);
    if !(if slewing.load(Relaxed) {
        ends(behind)
    } else {
        begins(behind)
    }) {
        return;
    }
    let at = clock::read();
    let behind = slewed_clock.reached().micros_since(at.wall);
    if begins(behind) && !slewing.swap(true, AcqRel) {
        log(
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
        log(
            "snowflake: the clock has caught up".into(),
            format!("The clock shows {}.", clock::time(at.wall)),
        );
    }
}

/// Logs a clock step that was accepted.
pub fn clock_step(step: i64, at: Clocks) {
    stats::count_clock_step();
    let way = if step < 0 { "back" } else { "forward" };
    log(
        format!(
            "snowflake: the clock was set {way} by {}",
            seconds(step.abs())
        ),
        format!("The clock now shows {}.", clock::time(at.wall)),
    );
}

/// Logs that the server's layout is not the one of the database's IDs.
pub fn other_layout(remembered: &str, layout: &str) {
    log(
        "snowflake: IDs of this database were generated with another layout".into(),
        format!(
            "They were generated with \"{remembered}\"; snowflake.layout is \"{layout}\". Read old \
             IDs with their own layout. If the change is intended, run SELECT \
             snowflake_accept_layout() as a superuser."
        ),
    );
}

/// Whether nothing was logged within [`EPISODE_MICROS`]. If so, the caller logs something now.
fn begins_episode(last: &AtomicI64, now: BootTime) -> bool {
    let before = last.load(Relaxed);
    let since = now.micros_since(BootTime::from_micros(before));
    (before == 0 || since >= EPISODE_MICROS)
        && last
            .compare_exchange(before, now.micros(), AcqRel, Acquire)
            .is_ok()
}

/// Logs that a wait of `needed` microseconds starts.
pub fn waiting(shared: Shared, clocks: Clocks, needed: u64) {
    if !begins_episode(&shared.episodes().waiting, clocks.boot) {
        return;
    }
    log(
        "snowflake: IDs are requested faster than they can be generated; calls wait".into(),
        format!(
            "This call waits {} ms. IDs have run ahead of the clock by snowflake.max_borrow. A \
             layout with more backend or sequence bits has more IDs.",
            needed.div_ceil(1_000)
        ),
    );
}

/// Logs, once a minute, that a transaction has held back the resolved ID for `age`
/// microseconds.
pub fn unresolved(shared: Shared, layout: &Layout, holder: &str, id: SnowflakeId, age: i64) {
    if !begins_episode(&shared.episodes().unresolved, clock::boot()) {
        return;
    }
    warn(
        format!(
            "snowflake: {holder} has held back snowflake_resolved_id() for {}",
            seconds(age)
        ),
        format!(
            "Its transaction has generated ID {id} at {} and is still open. Rows with later IDs are not read until it \
             ends.",
            layout.time_of(layout.tick_of(id)),
        ),
        "See snowflake_unresolved. End the transaction, or set idle_in_transaction_session_timeout.",
    );
}

const SAME_NUMBER: &str = "Give each server a node number of its own: change snowflake.node_id or \
                           snowflake.node_id_source on one of them and restart it.";

/// Logs, once a minute, that a row with this server's node number came from another
/// server.
pub fn node_conflict(
    shared: Shared,
    identity: &Identity,
    id: SnowflakeId,
    table: &str,
    count: u64,
) {
    if !begins_episode(&shared.episodes().conflict, clock::boot()) {
        return;
    }
    let layout = identity.layout();
    warn(
        format!(
            "snowflake: another server issues IDs with the node number of this server, {}",
            identity.node()
        ),
        format!(
            "ID {id} of {} came to table \"{table}\" by replication, and this server has not issued it. \
             There have been {count} such rows. The two servers can issue the same IDs. Another layout on the other \
             server has the same effect.",
            layout.time_of(layout.tick_of(id)),
        ),
        SAME_NUMBER,
    );
}

/// Logs that a conflict has ended the issuing of IDs.
pub fn stopped(identity: &Identity, id: SnowflakeId) {
    warn(
        "snowflake: this server issues no more IDs".into(),
        format!(
            "ID {id} shows that another server has node number {} as well, and snowflake.on_node_conflict is \"stop\".",
            identity.node()
        ),
        "Give one of the servers another node number. If this server keeps its number, run SELECT \
         snowflake_accept_node_id() as a superuser.",
    );
}

//! No ID is repeated when a server is restarted, in order or not, and its
//! clock was set back in the meantime.
//!
//! What IDs had reached is in memory, and memory is gone. A clock that is set
//! back during a restart shows times again at which IDs were made. To have the
//! very same milliseconds repeat, each server here begins with a clock
//! that is behind, issues IDs, has its clock set right, issues more, and is
//! then restarted with the clock well before where it began. When all sessions are
//! back, time is made to pass up to there, and they work for as long as the first
//! time. So however long the restart takes, the same milliseconds come again, and none
//! is left out. On a build that doesn't obey the mark (`snowflake.unprotected =
//! 'mark'`) each of the faults must show duplicates.

use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::Signal;
use snowflake_tests::clock::Offset;
use snowflake_tests::ids::grouped;
use snowflake_tests::workload::{FOUR_SLOTS, Mode, ROWS, Workload};
use snowflake_tests::{Cluster, ClusterBuilder, Stop, processes, tier};

const DATABASES: [&str; 2] = ["first", "second"];

/// Four sessions in each database.
const MODES: [Mode; 8] = [
    Mode::Calls(300),
    Mode::Calls(300),
    Mode::Commit(100),
    Mode::Commit(100),
    Mode::RollBack(100),
    Mode::RollBack(100),
    Mode::Runs(300),
    Mode::Runs(300),
];

/// How many IDs the sessions receive at the times that come again: many in each of
/// the four slots.
const VISIT: usize = 50_000;

/// How far before these times the clock is when the server restarts: longer than a
/// restart takes, on a busy machine too.
const MARGIN: Duration = Duration::from_secs(30);

/// More IDs than the statements that are under way return.
const ENOUGH: usize = 3_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// `pg_ctl stop -m fast`, which is no crash.
    StopFast,
    /// `pg_ctl stop -m immediate`: a crash without a signal to children.
    StopImmediate,
    /// SIGKILL of one backend: the server initialises its memory anew.
    KillBackend,
    /// SIGKILL of the postmaster and all its processes.
    KillAll,
}

impl Fault {
    /// How far the clock is behind when the server begins. It is set back by more.
    fn back(self) -> Duration {
        match self {
            Self::KillAll | Self::StopImmediate => Duration::from_secs(10),
            Self::StopFast | Self::KillBackend => Duration::from_secs(60),
        }
    }
}

fn builder() -> ClusterBuilder {
    Cluster::builder()
        .conf("snowflake.node_id", 1)
        .conf("snowflake.layout", FOUR_SLOTS.layout)
        // Time passes many times faster than processes work. A process that reserves
        // time while it has no processor keeps the others waiting for a long time by
        // this clock.
        .conf("snowflake.max_wait", "1h")
        .movable_clock()
}

/// What one kind of fault showed.
#[derive(Debug, Default)]
struct Outcome {
    duplicates: usize,
    decreases: usize,
}

/// The same fault several times on one server, with sessions in two databases
/// that never stop asking.
fn faults(builder: ClusterBuilder, fault: Fault, rounds: usize, name: &str) -> Result<Outcome> {
    let mut cluster = builder.start()?;
    cluster.clock().set_offset(Offset::back(fault.back()))?;
    // The clock it begins with is what it takes for right.
    cluster.restart()?;
    for database in DATABASES {
        cluster
            .connect_to_new_database(database)?
            .batch_execute(ROWS)?;
    }
    let workload = Workload::start_with_clock(&cluster, &DATABASES, &MODES, &FOUR_SLOTS)?;
    let (mut furthest_back, mut fewest_after, mut longest_outage) =
        (Offset::NONE, usize::MAX, Duration::ZERO);
    for _ in 0..rounds {
        // Anew in each round: the times that are to be repeated.
        cluster.clock().set_offset(Offset::back(fault.back()))?;
        workload.begin_window();
        let began = cluster.clock().now_us();
        workload.wait_for(VISIT)?;
        let ended = cluster.clock().now_us();
        cluster.clock().set_offset(Offset::NONE)?;
        workload.begin_window();
        workload.wait_for(ENOUGH)?;

        let margin = i64::try_from(MARGIN.as_micros())?;
        let step_back = |cluster: &Cluster| {
            let by = cluster.clock().now_us() - began + margin;
            let step = Offset::back(Duration::from_micros(by.try_into()?));
            cluster.clock().step(step)?;
            anyhow::Ok(step)
        };
        workload.begin_window();
        let fault_at = std::time::Instant::now();
        let step = match fault {
            Fault::StopFast | Fault::StopImmediate => {
                let how = if fault == Fault::StopFast {
                    Stop::Fast
                } else {
                    Stop::Immediate
                };
                cluster.stop(how)?;
                let step = step_back(&cluster)?;
                cluster.start()?;
                step
            }
            Fault::KillAll => {
                cluster.kill9_all()?;
                let step = step_back(&cluster)?;
                cluster.start()?;
                step
            }
            Fault::KillBackend => {
                let before = workload.pids();
                processes::send(before[0], Signal::SIGKILL)?;
                let step = step_back(&cluster)?;
                workload.until(|workload| {
                    let now = workload.pids();
                    now.iter().all(|pid| *pid != 0 && !before.contains(pid))
                })?;
                step
            }
        };
        // Every session is a new one: the fault has hit them all.
        workload.until(|workload| workload.window().connections >= MODES.len())?;
        longest_outage = longest_outage.max(fault_at.elapsed());
        workload.begin_window();
        workload.wait_for(ENOUGH)?;
        workload.revisit(cluster.clock(), began, ended)?;
        let after = workload.begin_window();
        assert_eq!(after.errors(), 0, "{after:?}");
        furthest_back = furthest_back.min(step);
        fewest_after = fewest_after.min(after.ids);
    }
    let received = workload.end()?;
    let tallies = received.tallies();
    for (database, tally) in DATABASES.iter().zip(&tallies) {
        println!("{name}: {rounds} x {fault:?}, database {database}: {tally}");
    }
    println!(
        "{name}: {rounds} x {fault:?}, clock {furthest_back} during each: at least {} IDs after each, all sessions back within {} ms, longest statement {} ms",
        grouped(fewest_after),
        longest_outage.as_millis(),
        received.longest.as_millis()
    );
    let both = received.tally();
    println!("{name}: {rounds} x {fault:?}, two databases together: {both}");
    Ok(Outcome {
        duplicates: both.duplicates,
        decreases: received.decreases,
    })
}

fn assert_no_id_repeats(fault: Fault) -> Result<()> {
    let outcome = faults(builder(), fault, tier::size(1, 3), "clock_restarts")?;
    assert_eq!(outcome.duplicates, 0, "an ID was repeated");
    assert_eq!(outcome.decreases, 0, "IDs of a session went down");
    Ok(())
}

#[test]
fn no_id_repeats_after_a_restart_in_order() -> Result<()> {
    assert_no_id_repeats(Fault::StopFast)
}

#[test]
fn no_id_repeats_after_a_backend_is_killed() -> Result<()> {
    assert_no_id_repeats(Fault::KillBackend)
}

#[test]
fn no_id_repeats_after_all_processes_are_killed() -> Result<()> {
    assert_no_id_repeats(Fault::KillAll)
}

#[test]
fn no_id_repeats_after_an_immediate_stop() -> Result<()> {
    assert_no_id_repeats(Fault::StopImmediate)
}

#[test]
fn restarts_with_the_clock_set_back_are_able_to_fail() -> Result<()> {
    for fault in [
        Fault::StopFast,
        Fault::StopImmediate,
        Fault::KillBackend,
        Fault::KillAll,
    ] {
        let unprotected = builder().without_protection("mark");
        let outcome = faults(unprotected, fault, 1, "clock_restarts WITHOUT the mark")?;
        assert!(
            outcome.duplicates > 0,
            "{fault:?}: without the mark this test must find duplicates"
        );
    }
    Ok(())
}

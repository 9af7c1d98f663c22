//! A random mix of faults against eight sessions that request IDs without a pause.
//! All IDs that clients received are compared.
//!
//! The clock stays within ten hours of the true time. So no clock step exceeds
//! `snowflake.max_clock_step`, and no statement may fail because of one.

mod fault;
mod report;
mod steps;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::cluster::{Cluster, ClusterBuilder};
use crate::demand::{Demand, FOUR_SLOTS, Habit, ROWS, Window};
use crate::ids::grouped;
use crate::processes;
use crate::server::Stop;
use crate::watchdog;

pub use fault::Fault;
pub use report::{Count, Report};
use steps::{step_back, step_forward};

const DATABASES: [&str; 2] = ["first", "second"];

/// In both databases. Half of the sessions insert rows, as an application does.
const HABITS: [Habit; 8] = [
    Habit::Calls(300),
    Habit::Calls(300),
    Habit::Calls(300),
    Habit::Runs(300),
    Habit::Commit(50),
    Habit::Commit(50),
    Habit::RollBack(50),
    Habit::RollBack(50),
];

/// How many IDs must arrive after a fault before the next one.
const ENOUGH: usize = 1_000;

/// Runs a soak on a server of its own.
///
/// # Errors
/// If it cannot be run to its end. A duplicate is no error, but in the report.
pub fn run(
    builder: ClusterBuilder,
    length: Duration,
    seed: u64,
    mut progress: impl FnMut(&str),
) -> Result<Report> {
    let mut cluster = builder
        .conf("snowflake.node_id", 1)
        .conf("snowflake.layout", FOUR_SLOTS.layout)
        .movable_clock()
        .time_limit(length + watchdog::USUAL_LIMIT)
        .start()?;
    for database in DATABASES {
        cluster
            .connect_to_new_database(database)?
            .batch_execute(ROWS)?;
    }
    let mut random = StdRng::seed_from_u64(seed);
    let mut counts: BTreeMap<Fault, Count> = BTreeMap::new();
    let mut errors = 0;
    let begun = Instant::now();
    let demand = Demand::start(&cluster, &DATABASES, &HABITS, &FOUR_SLOTS)?;
    while begun.elapsed() < length {
        let fault = *Fault::ALL.choose(&mut random).context("no faults")?;
        let (outage, window) = cause(&mut cluster, &demand, fault, &mut random)
            .with_context(|| format!("{} with seed {seed}", fault.name()))?;
        errors += window.refusals();
        let count = counts.entry(fault).or_default();
        count.faults += 1;
        count.ids_after += window.ids;
        count.longest_outage = count.longest_outage.max(outage);
        progress(&format!(
            "soak: {:>4} s: {}; clock now {} off; {} IDs after it",
            begun.elapsed().as_secs(),
            fault.name(),
            cluster.clock().offset(),
            grouped(window.ids)
        ));
        if fault.ends_sessions() {
            // Otherwise the rows would fill the disk in the end.
            for database in DATABASES {
                cluster
                    .connect_to(database)?
                    .batch_execute("TRUNCATE rows")?;
            }
        }
    }
    let harvest = demand.end()?;
    Ok(Report {
        seed,
        took: begun.elapsed(),
        counts,
        decreases: harvest.decreases,
        errors,
        longest: harvest.longest,
        tally: harvest.into_tally(),
    })
}

/// Causes one fault. Returns the time until the first ID after it (or until the
/// sessions had reconnected), and the window that followed.
fn cause(
    cluster: &mut Cluster,
    demand: &Demand,
    fault: Fault,
    random: &mut StdRng,
) -> Result<(Duration, Window)> {
    let back = fault
        .sets_the_clock_back()
        .then(|| step_back(cluster.clock().offset(), random));
    let step = |cluster: &Cluster| match back {
        Some(offset) => cluster.clock().set_offset(offset),
        None => Ok(()),
    };
    demand.begin_window();
    let begun = Instant::now();
    match fault {
        Fault::ClockBack => step(cluster)?,
        Fault::ClockForward => {
            let offset = step_forward(cluster.clock().offset(), random);
            cluster.clock().set_offset(offset)?;
        }
        Fault::KillBackend | Fault::KillBackendClockBack => {
            // The number of a session that has just connected may not be known yet.
            demand.until(|demand| demand.pids().iter().all(|&pid| pid != 0))?;
            let before = demand.pids();
            let victim = *before.choose(random).context("no session")?;
            ensure!(victim != 0, "a session has no connection");
            processes::send(victim, Signal::SIGKILL)?;
            step(cluster)?;
            demand.until(|demand| {
                let now = demand.pids();
                now.iter().all(|pid| *pid != 0 && !before.contains(pid))
            })?;
        }
        Fault::KillAll | Fault::KillAllClockBack => {
            cluster.kill9_all()?;
            step(cluster)?;
            cluster.start()?;
        }
        Fault::StopFast | Fault::StopFastClockBack => {
            cluster.stop(Stop::Fast)?;
            step(cluster)?;
            cluster.start()?;
        }
        Fault::StopImmediate | Fault::StopImmediateClockBack => {
            cluster.stop(Stop::Immediate)?;
            step(cluster)?;
            cluster.start()?;
        }
    }
    if fault.ends_sessions() {
        demand.until(|demand| demand.window().connections >= HABITS.len())?;
    }
    demand.begin_window();
    demand.wait_for(1)?;
    let outage = begun.elapsed();
    demand.wait_for(ENOUGH)?;
    // The pause until the next fault is often short.
    let pause: f64 = random.random();
    std::thread::sleep(Duration::from_secs_f64(pause * pause * 2.0));
    Ok((outage, demand.begin_window()))
}
